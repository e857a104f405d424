/* SPDX-License-Identifier: Apache-2.0 */
/* drafts.c: what Compose says of a text while its estimate is being made: nothing that
 * was said of the text before. The estimates are this program once more, and end when
 * the test lets them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/unit/store.h"
#include "tui/compose.h"

enum { PATIENCE = 6000 }; /* hundredths of a second: then it will never come */

/* ---- the commands that the screen starts ---- */

static int
be_estimate(void)
{
    char why[200] = "";
    FILE *f = NULL;
    for (int i = 0; i < PATIENCE && !(f = fopen("answer", "r")); i++)
        usleep(10000);
    if (!f || unlink("answer") != 0)
        return 70;
    if (fgets(why, sizeof why, f))
        fprintf(stderr, "{\"message\": \"%s\"}\n", why);
    else
        puts("{\"seconds_per_batch\": 0.5, \"peak_bytes\": 1e6, \"params\": 9}");
    fclose(f);
    return *why ? 65 : 0;
}

static int
be_command(const char *what)
{
    if (strcmp(what, "estimate") == 0)
        return be_estimate();
    puts(
        "{\"learning_rate\": {\"batches\": 10, \"points\": [{\"ba\": 0, \"lr\": 0.02}, "
        "{\"ba\": 9, \"lr\": 0.02}]}}");
    return 0;
}

/* ---- the screen ---- */

static double now = 100;

static double
tell_now(void)
{
    return now;
}

/* The estimate that is waited for ends: it refuses the recipe with WHY; "": it does
 * not. */
static void
answer(const char *why)
{
    FILE *f = fopen("answer.new", "w");
    if (!f || fputs(why, f) < 0 || fclose(f) != 0 ||
        rename("answer.new", "answer") != 0)
        bail("no answer");
}

/* Time goes on until the jobs of the text as it is have begun, or, for AT_END,
 * ended. */
static void
go_on(struct tui_app *app, bool at_end)
{
    const struct compose *c = tui_app_state(app, TUI_IN_compose);
    for (int i = 0; i < PATIENCE; i++) {
        now += 1;
        tui_app_tick(app, 0);
        bool begun = c->numbers.of == c->sketch->changes;
        bool ended =
            begun && c->estimate.pid <= 0 && !c->explains && c->explain.pid <= 0;
        if (at_end ? ended : begun) {
            picture_draw(app);
            return;
        }
        usleep(10000);
    }
    bail("an estimate has not %s", at_end ? "ended" : "begun");
}

static void
lacks(const char *text, const char *name)
{
    if (!ok(strstr(picture, text) == NULL, "%s", name))
        diag("\n%s", picture);
}

static struct tui_app *
open_app(struct et_ctx *cx)
{
    static const char recipe[] = "max_duration: 10ba\n"
                                 "model: {name: mlp}\n"
                                 "train_data: {name: synthetic_images, batch_size: 4}\n"
                                 "eval_data: {name: synthetic_images}\n"
                                 "optimizer: {name: sgd, lr: 0.02}\n";
    const struct tui_compose_setup setup = {.runs = "runs"};
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = tui_glyphs_of(ETI_PLOT_ASCII),
        .first = TUI_IN_compose,
        .rows = 36,
        .cols = 120,
    };
    FILE *f = fopen("odd.yaml", "w");
    if (!f || fputs(recipe, f) < 0 || fclose(f) != 0)
        bail("no recipe");
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK ||
        tui_compose_setup(app, &setup) != ET_OK ||
        tui_compose_open(app, "odd.yaml") != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    picture_draw(app);
    return app;
}

static void
check_estimates(struct tui_app *app)
{
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    go_on(app, false);
    picture_has("odd.yaml   checking...",
                "a text is not called valid before its estimate");
    answer("cannot read nope.txt");
    go_on(app, true);
    picture_has("odd.yaml   x cannot start", "which may refuse it");
    picture_has("x cannot read nope.txt", "and says why");
    picture_has("lr over the run\n", "its learning rate is drawn");

    if (eti_sketch_set(c->sketch, "optimizer.lr", "0.5") != ET_OK)
        bail("no change");
    for (int i = 0; i < 2; i++) {
        picture_draw(app);
        picture_has("*1 unsaved   checking...",
                    i ? "while that is made" : "after a change it is made anew");
        lacks("nope.txt", "what the one before found is not said");
        picture_has("lr over the run, before the change",
                    "and the curve is said to be old");
        go_on(app, false);
    }
    picture_press(app, "L");
    picture_has("estimate   being made...",
                "nor does a launch say the estimate before");
    answer("cannot read other.txt");
    go_on(app, true);
    picture_has("estimate   cannot read other.txt",
                "it says the new one as soon as it is there");
    picture_has("start it  (it cannot start here)", "with what follows from it");
    picture_press(app, "\033");

    if (eti_sketch_set(c->sketch, "optimizer.lr", "0.1") != ET_OK)
        bail("no change");
    go_on(app, false);
    picture_press(app, "L");
    answer("");
    go_on(app, true);
    picture_has("estimate   5s or more", "also where it refuses nothing");
    picture_press(app, "\033");
    picture_has("+ valid", "and the text is valid then");
    picture_has("lr over the run\n", "with its own curve");
    lacks("before the change", "which is not old");
}

/* An estimate begins when nobody has typed for a while. */
static void
check_rest(struct tui_app *app)
{
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    static const double steps[] = {0, 0.3, 0, 0.3, 0.2};
    for (int i = 0; i < 5; i++) {
        if (i == 0 || i == 2) {
            if (eti_sketch_set(c->sketch, "optimizer.lr", i ? "0.3" : "0.2") != ET_OK)
                bail("no change");
            compose_refresh(c);
        }
        now += steps[i];
        tui_app_tick(app, 0);
        is_int(c->numbers.of == c->sketch->changes, i == 4,
               i == 4 ? "then it is estimated" : "while it is typed nothing is");
    }
    answer("");
    go_on(app, true);
}

/* A run of the recipe is in STATE from hour AT on. */
static void
put_run(const char *state, int at)
{
    store_run("calm-otter", 1, state);
    store_date("runs/calm-otter/run.json", at);
    store_date("runs/calm-otter", at);
    store_date("runs", at);
}

static void
check_runs(struct tui_app *app)
{
    tui_app_resize(app, 50, 200);
    picture_draw(app);
    picture_has("no run of a recipe of this name is known", "the recipe was never run");
    put_run("running", 1);
    now += 60;
    tui_app_tick(app, 0);
    picture_draw(app);
    picture_has("calm-otter running", "a run that begins is told after some time");
    put_run("finished", 2);
    tui_app_tick(app, 0);
    picture_draw(app);
    picture_has("calm-otter running", "runs are not looked for without end");
    tui_app_go(app, TUI_IN_logs);
    tui_app_tick(app, 0);
    tui_app_go(app, TUI_IN_compose);
    tui_app_tick(app, 0);
    picture_draw(app);
    picture_has("calm-otter finished", "but at once where another screen was seen");
}

int
main(int argc, char **argv)
{
    char directory[] = "drafts-XXXXXX", state[4096];
    struct eti_seams seams = eti_system;
    struct et_ctx *cx;
    if (argc > 1)
        return be_command(argv[1]);
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0 ||
        !getcwd(state, sizeof state))
        bail("no directory for files");
    setenv("XDG_STATE_HOME", state, 1);
    seams.monotonic = tell_now;
    eti_ctx_set_seams(cx, &seams);

    struct tui_app *app = open_app(cx);
    check_estimates(app);
    check_rest(app);
    check_runs(app);
    tui_app_free(&app);
    free(picture);
    et_ctx_free(&cx);
    if (chdir("..") != 0)
        bail("cannot leave");
    store_remove(directory);
    return done();
}
