/* SPDX-License-Identifier: Apache-2.0 */
/* launches.c: what Compose tells of a launch, what it offers, and with which words a
 * run is started. The commands that it starts are this program once more. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/unit/store.h"
#include "tui/compose.h"
#include "tui/workers.h"

static const char recipe[] = "max_duration: 10ba\n"
                             "model: {name: mlp}\n"
                             "train_data: {name: synthetic_images, batch_size: 4}\n"
                             "eval_data: {name: synthetic_images}\n"
                             "optimizer: {name: sgd, lr: 0.02}\n";

static struct et_ctx *cx;

/* Writes down the words of a run that is started, which does not start. */
static int
be_command(int n, char **word)
{
    if (strcmp(word[1], "estimate") == 0)
        puts("{\"seconds_per_batch\": 2, \"peak_bytes\": 1.5e6, \"params\": 7e8}");
    if (strcmp(word[1], "train") != 0)
        return 0;
    FILE *f = fopen("asked", "w");
    for (int i = 1; f && i < n; i++)
        fprintf(f, "%s%s", word[i], i + 1 < n ? " " : "");
    if (f)
        fclose(f);
    if (access("why", F_OK) == 0)
        fputs("no place is left\nand more\n", stderr);
    return 1;
}

static const char *
text_of(const char *path)
{
    static char text[4096];
    FILE *f = fopen(path, "r");
    if (!f)
        return "-";
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void
put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static bool
is_in_lib(const char *path)
{
    return strncmp(path, "lib/", 4) == 0;
}

/* MORE is behind the recipe's text in its file. */
static struct tui_app *
open_app(const char *path, const char *more)
{
    const struct tui_compose_setup setup = {.runs = "kept", .is_installed = is_in_lib};
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_compose,
        .rows = 36,
        .cols = 120,
    };
    char text[2048];
    snprintf(text, sizeof text, "%s%s", recipe, more);
    put(path, text);
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK ||
        tui_compose_setup(app, &setup) != ET_OK ||
        tui_workers_setup(app, "conf") != ET_OK || tui_compose_open(app, path) != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    picture_draw(app);
    return app;
}

static void
press(struct tui_app *app, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;) {
        tui_app_key(app, key);
        picture_draw(app);
    }
}

static struct compose *
state_of(struct tui_app *app)
{
    return tui_app_state(app, TUI_IN_compose);
}

static void
change(struct tui_app *app, const char *path, const char *value)
{
    if (eti_sketch_set(state_of(app)->sketch, path, value) != ET_OK)
        bail("no change: %s", et_error_get(cx)->message);
    picture_draw(app);
}

/* The box's lines, then its items with what stands behind them. Good until the next
 * call. */
static const char *
box_of(const struct tui_app *app)
{
    static char text[4096];
    const struct tui_popup *p = &app->popup;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < p->n_lines && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", p->line[i]);
    for (int i = 0; i < p->n_items && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s\n",
                                 p->item[i].text, *p->item[i].why ? " - " : "",
                                 p->item[i].why);
    return text;
}

/* As if the estimate, and the learning rate of BATCHES, had ended. */
static struct tui_compose_numbers *
estimated(struct tui_app *app, int64_t batches)
{
    struct compose *c = state_of(app);
    tui_job_stop(&c->estimate);
    tui_job_stop(&c->explain);
    c->explains = false;
    c->numbers.of = c->sketch->changes;
    c->numbers.is_known = true;
    c->numbers.seconds = 2.5;
    c->numbers.peak_bytes = 1.5e6;
    c->numbers.params = 7e8;
    c->numbers.batches = batches;
    return &c->numbers;
}

static void
wait_jobs(struct tui_app *app)
{
    app->config.is_dump = true; /* which waits for jobs */
    compose_tick(app, state_of(app));
    app->config.is_dump = false;
    picture_draw(app);
}

/* ---- the box ---- */

#define WAYS "start it\nstart it on another machine...\n"

static void
test_box(void)
{
    struct tui_app *app = open_app("r.yaml", "");
    press(app, "L");
    is_str(box_of(app),
           "ranks      1, on this machine\n"
           "directory  kept/ and the time\n"
           "estimate   being made...\n"
           "recipe     r.yaml\n" WAYS,
           "a launch says where it will be");
    estimated(app, 40);
    press(app, "<esc>L");
    is_str(app->popup.line[2], "estimate   1m40s or more, 1.5 MB of memory",
           "and how long it takes, with how much memory");
    state_of(app)->explains = true;
    press(app, "<esc>L");
    is_str(app->popup.line[2], "estimate   being made...",
           "of the length of the run nothing is known yet");
    estimated(app, 0)->problem[0] = '\0';
    press(app, "<esc>L");
    is_str(app->popup.line[2], "estimate   not known yet", "or ever");
    press(app, "<esc>");
    change(app, "optimizer.lr", "0.5");
    press(app, "L");
    is_str(app->popup.line[3], "recipe     r.yaml, with what is not saved",
           "what is not saved goes along");
    is_str(app->popup.item[2].text, "save, then start it", "or is saved first");
    press(app, "<esc>");
    change(app, "launch", "{nproc: 4}");
    press(app, "L");
    is_str(app->popup.line[0], "ranks      4, on this machine", "ranks are counted");
    press(app, "<esc>");
    change(app, "launch", "{worker: lab}");
    press(app, "L");
    is_str(app->popup.line[0], "ranks      1, on lab", "on another machine");
    ok(strncmp(app->popup.line[1], "estimate", 8) == 0, "in whose folder is not known");
    estimated(app, 40)->is_refused = true;
    press(app, "<esc>L");
    ok(!strstr(box_of(app), "cannot start"), "what is refused here may start there");
    press(app, "<esc>");
    change(app, "launch", "{nproc: 2}");
    estimated(app, 40)->is_refused = true;
    press(app, "L");
    ok(strstr(box_of(app), "start it - it cannot start here\n"
                           "start it on another machine...\n"
                           "save, then start it - it cannot start here\n") != NULL,
       "what is refused here cannot be started here:\n%s", box_of(app));
    press(app, "<esc>");
    tui_app_free(&app);

    app = open_app("lib/r.yaml", "");
    change(app, "optimizer.lr", "0.5");
    press(app, "L");
    is_int(app->popup.n_items, 2, "an installed recipe is not saved on the way");
    press(app, "<esc>");
    if (eti_sketch_begin(state_of(app)->sketch, recipe, strlen(recipe), "my thing") !=
        ET_OK)
        bail("no text");
    compose_begun(state_of(app));
    press(app, "L");
    is_str(app->popup.line[3],
           "recipe     my thing, in no file: the run's directory keeps it",
           "a text without a file is the run's");
    is_str(app->popup.item[2].text, "save it as a file", "or gets one");
    press(app, "s");
    is_str(app->popup.title, "save as", "of a name that is asked for");
    press(app, "<esc>");
    tui_app_free(&app);
}

/* Two warnings are told, and none that the estimate told already. */
static void
test_warnings(void)
{
    struct tui_app *app =
        open_app("r.yaml", "algorithms:\n  label_smoothing:\n  mixup:\n  cutmix:\n");
    struct compose *c = state_of(app);
    ok(c->n_warnings > 2 && c->n_fatal == 0, "a recipe with some warnings: %d",
       c->n_warnings);
    press(app, "L");
    is_int(app->popup.n_lines, 6, "two of them are told where it is launched");
    for (int i = 0; i < 2; i++)
        ok(strncmp(app->popup.line[4 + i], "! ", 2) == 0 &&
               strncmp(app->popup.line[4 + i] + 2, c->check[i].text, 100) == 0,
           "the first: %s", app->popup.line[4 + i]);
    press(app, "<esc>");
    struct tui_compose_numbers *n = estimated(app, 40);
    n->is_known = false;
    n->is_refused = true;
    snprintf(n->problem, sizeof n->problem, "no such data");
    compose_list_checks(c);
    is_int(c->n_fatal, 1, "one that forbids it");
    press(app, "L");
    is_str(app->popup.line[2], "estimate   no such data", "stands with the estimate");
    is_int(app->popup.n_lines, 5, "and one more is told");
    ok(strncmp(app->popup.line[4] + 2, c->check[1].text, 100) == 0, "the next: %s",
       app->popup.line[4]);
    press(app, "<esc>");
    tui_app_free(&app);
}

/* What becomes known while the box is open is told there, and the cursor stays. */
static void
test_renewed(void)
{
    struct tui_app *app = open_app("r.yaml", "");
    press(app, "L<down>");
    wait_jobs(app);
    ok(strncmp(app->popup.line[2], "estimate   being", 16) != 0,
       "an estimate that is made is told: %s", app->popup.line[2]);
    is_int(app->popup.list.at, 1, "with the cursor where it was");
    press(app, "<esc>");
    change(app, "optimizer.lr", "0.5");
    compose_pick_layers(state_of(app), NULL);
    press(app, "W");
    is_str(app->popup.title, "save as", "another box");
    wait_jobs(app);
    is_str(app->popup.title, "save as", "stays that one");
    press(app, "<esc>");
    tui_app_free(&app);
}

/* ---- what is started ---- */

/* The words of the run that was started, whose name is NAME then. */
static const char *
asked(struct tui_app *app)
{
    static char text[4096];
    const struct compose *c = state_of(app);
    unlink("asked");
    wait_jobs(app);
    snprintf(text, sizeof text, "%s", text_of("asked"));
    char *name = strstr(text, c->run_name);
    if (name && *c->run_name) {
        const size_t n = strlen(c->run_name);
        memmove(name + 4, name + n, strlen(name + n) + 1);
        memcpy(name, "NAME", 4);
    }
    return text;
}

static void
test_started(void)
{
    struct tui_app *app = open_app("r.yaml", "");
    press(app, "L<enter>");
    is_str(asked(app), "train -d --run_name NAME r.yaml", "a recipe is started");
    is_str(app->message, "x not started: etude train failed", "which may fail");
    put("why", "");
    change(app, "optimizer.lr", "0.5");
    press(app, "L<enter>");
    is_str(asked(app), "train -d --run_name NAME r.yaml optimizer.lr=0.5",
           "what is not saved goes with it");
    is_str(app->message, "x not started: no place is left", "why it failed is told");
    unlink("why");
    is_str(text_of("r.yaml"), recipe, "and the file stays");
    press(app, "Ls");
    is_str(asked(app), "train -d --run_name NAME r.yaml", "saved first, it is started");
    ok(strstr(text_of("r.yaml"), "lr: 0.5") != NULL, "as it was saved");
    press(app, "Lo");
    is_str(box_of(app), "Data and paths are those of that machine.\nlab\nzoo\n",
           "other machines are offered");
    is_str(app->popup.item[1].note, "ssh://zoo", "with their addresses");
    press(app, "<down><enter>");
    is_str(asked(app), "train -d --run_name NAME --on zoo r.yaml",
           "it is started on that one");
    press(app, "L<enter>");
    is_str(asked(app), "train -d --run_name NAME r.yaml", "and the next here again");
    change(app, "launch", "{worker: lab}");
    press(app, "L<enter>");
    is_str(asked(app), "train -d --run_name NAME --on lab r.yaml launch.worker=lab",
           "or where the recipe says");
    tui_app_free(&app);

    mkdir("deep", 0700);
    app = open_app("deep/r.yaml", "");
    if (eti_sketch_begin(state_of(app)->sketch, recipe, strlen(recipe), "mine") !=
            ET_OK ||
        eti_sketch_put_place(state_of(app)->sketch, "deep/recipe.yaml") != ET_OK)
        bail("no text");
    compose_begun(state_of(app));
    press(app, "L<enter>");
    is_str(asked(app), "train -d --run_name NAME --recipe-folder deep " TUI_JOB_INPUT,
           "a text goes as it is, with the folder of its paths");
    if (eti_sketch_put_place(state_of(app)->sketch, "/recipe.yaml") != ET_OK)
        bail("no place");
    press(app, "L<enter>");
    is_str(asked(app), "train -d --run_name NAME --recipe-folder / " TUI_JOB_INPUT,
           "also the first of all");
    if (eti_sketch_put_place(state_of(app)->sketch, "recipe.yaml") != ET_OK)
        bail("no place");
    press(app, "L<enter>");
    is_str(asked(app), "train -d --run_name NAME --recipe-folder . " TUI_JOB_INPUT,
           "or this one");
    tui_app_free(&app);
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-launches.XXXXXX";
    struct et_alloc_stats stats;
    if (argc > 1)
        return be_command(argc, argv);
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0 ||
        mkdir("lib", 0700) != 0 || mkdir("conf", 0700) != 0)
        bail("no directory for files");
    setenv("XDG_STATE_HOME", directory, 1);
    put("conf/workers.yaml",
        "lab: {address: \"ssh://lab\"}\nzoo: {address: \"ssh://zoo\"}\n");
    chmod("conf/workers.yaml", 0600);
    test_box();
    test_warnings();
    test_renewed();
    test_started();
    free(picture);
    picture = NULL;
    if (chdir("/") != 0)
        bail("cannot leave");
    store_remove(directory);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
