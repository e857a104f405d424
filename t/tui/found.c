/* SPDX-License-Identifier: Apache-2.0 */
/* found.c: what the screen Compose lists and finds, where a click goes in it, and what
 * begins anew with another recipe. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/unit/store.h"
#include "tui/compose.h"

static const char recipe[] = "max_duration: 10ba\n"
                             "model: {name: mlp}\n"
                             "train_data: {name: synthetic_images, batch_size: 4}\n"
                             "eval_data: {name: synthetic_images}\n"
                             "optimizer:\n"
                             "  name: sgd\n"
                             "  lr: 0.02\n"
                             "algorithms:\n"
                             "  label_smoothing: {smoothing: 0.1}\n"
                             "  ema:\n";

static struct et_ctx *cx;

static void
put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static struct tui_app *
open_app(const char *text, int rows, int cols)
{
    const struct tui_compose_setup setup = {.runs = "runs"};
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_compose,
        .rows = rows,
        .cols = cols,
    };
    put("r.yaml", text);
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK ||
        tui_compose_setup(app, &setup) != ET_OK ||
        tui_compose_open(app, "r.yaml") != ET_OK)
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

/* The names of the algorithms that are listed. */
static const char *
listed(const struct compose *c)
{
    static char text[2048];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < c->n_shown && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                                 c->method[c->shown[i]].name);
    return text;
}

/* A search looks among all algorithms, whichever are listed. */
static void
test_search(void)
{
    struct tui_app *app = open_app(recipe, 36, 120);
    struct compose *c = state_of(app);
    press(app, "/alibi<enter>");
    is_str(listed(c), "alibi", "one that cannot act here is found");
    press(app, "<esc>f");
    is_str(listed(c), "label_smoothing ema", "those that are on are listed");
    press(app, "/mix<enter>");
    is_str(listed(c), "augmix cutmix mixup", "others are found all the same");
    is_str(compose_method(c)->name, "augmix", "and the first is selected");
    press(app, "<esc>");
    is_str(listed(c), "label_smoothing ema", "then those that are on are listed again");
    press(app, "/nest<esc>");
    is_int((int64_t)c->find.n, 0, "esc while it is typed ends the search,");
    ok(!c->is_finding, "too");
    is_str(compose_key_row(c)->path, "optimizer.nesterov", "at the key that was found");
    press(app, "G/sgd");
    ok(c->recipe.at < c->n_rows, "where less is listed the cursor is on a row");
    press(app, "<esc>");
    tui_app_free(&app);
}

/* ---- rows ---- */

static int
row_of(const struct compose *c, const char *path)
{
    for (int i = 0; i < c->form.n; i++)
        if (strcmp(c->form.row[i].path, path) == 0)
            return i;
    bail("no row %s", path);
}

/* The name of a section's only component stands beside it, and its options one below;
 * of several each stands for itself. */
static void
test_names(void)
{
    static const char one[] = "  - {name: synthetic_images, num_samples: 8}\n",
                      other[] = "  - {name: synthetic_images, label: b}\n";
    for (int n = 1; n <= 2; n++) {
        char text[1024];
        snprintf(text, sizeof text, "%.*seval_data:\n%s%sscheduler: {name: linear}\n",
                 (int)(strstr(recipe, "eval_data") - recipe), recipe, one,
                 n > 1 ? other : "");
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                 strstr(recipe, "optimizer"));
        struct tui_app *app = open_app(text, 50, 120);
        const struct compose *c = state_of(app);
        if (!c->sketch->recipe || c->sketch->errors.n > 0)
            bail("%s", c->sketch->errors.v[0].message);
        is_int(compose_name_of(c, row_of(c, "optimizer")), row_of(c, "optimizer.name"),
               "the name of a component stands beside it");
        is_int(compose_name_of(c, row_of(c, "eval_data")),
               n > 1 ? -1 : row_of(c, "eval_data.0.name"), "%d in a list", n);
        is_int(compose_depth_of(c, row_of(c, "optimizer.lr")), 1, "options are below");
        is_int(compose_depth_of(c, row_of(c, "scheduler.0.t_max")), 1,
               "those of a list's only item, too");
        is_int(compose_depth_of(c, row_of(c, "eval_data.0.num_samples")), n,
               "and of several each below its own name");
        if (n > 1)
            is_int(compose_depth_of(c, row_of(c, "eval_data.1.num_samples")), n,
                   "the second like the first");
        tui_app_free(&app);
    }
}

/* ---- warnings ---- */

static void
test_microbatches(void)
{
    struct tui_app *app = open_app(recipe, 36, 120);
    struct compose *c = state_of(app);
    snprintf(c->last_run, sizeof c->last_run, "calm-elk");
    c->last_microbatches = 4;
    compose_list_checks(c);
    picture_draw(app);
    ok(strstr(picture, "calm-elk came to 4") != NULL ||
           strstr(c->check[0].text, "calm-elk came to 4: save that?") != NULL,
       "what the last run came to is offered: %s", c->check[0].text);
    press(app, "m");
    is_str(app->message, "grad_accum is 4 now; w saves it", "m takes it");
    ok(strstr(c->sketch->text, "\ngrad_accum: 4\n") != NULL, "into the recipe");
    tui_app_free(&app);
}

/* ---- another recipe ---- */

static void
test_anew(void)
{
    char text[1024];
    snprintf(text, sizeof text, "%s  mixup:\n  cutmix:\n", recipe);
    struct tui_app *app = open_app(text, 36, 120);
    struct compose *c = state_of(app);
    snprintf(c->last_run, sizeof c->last_run, "calm-elk");
    c->last_microbatches = 4;
    c->runs_alike = json_array();
    press(app, "i");
    compose_turn_section(c, "optimizer", TUI_C_SHUT);
    press(app, "jjj<tab>jj<tab>j");
    c->timeline.at = 1;
    press(app, "/label<enter>");
    if (tui_compose_open(app, "r.yaml") != ET_OK)
        bail("no recipe");
    picture_draw(app);
    is_int(c->n_ignored, 0, "of another recipe no warning is ignored,");
    is_int(c->n_sections, 0, "its sections are as at first,");
    ok(c->recipe.at == 0 && c->algorithms.at == 0 && c->values.at == 0 &&
           c->timeline.at == 0,
       "the cursors at their beginning,");
    is_int((int64_t)c->find.n, 0, "nothing is looked for,");
    ok(!*c->last_run && c->last_microbatches == 0 && !c->runs_alike,
       "and no runs are its own");
    tui_app_free(&app);
}

/* ---- clicks ---- */

static void
click_at(struct tui_app *app, int y, int x)
{
    const struct tui_mouse m = {.y = y, .x = x, .what = TUI_CLICK};
    tui_app_mouse(app, &m);
    picture_draw(app);
}

static void
test_clicks(void)
{
    struct tui_app *app = open_app(recipe, 24, 120);
    struct compose *c = state_of(app);
    const struct tui_rect *r = &c->area[TUI_C_ALGORITHMS];
    c->focus = TUI_C_ALGORITHMS;
    press(app, "G");
    const int top = c->algorithms.top;
    ok(top > 0, "a list that is scrolled");
    click_at(app, r->y + 1 + 2, r->x + r->w - 1);
    is_int(c->algorithms.at, top + 2, "a click counts from its first row");
    ok(c->focus == TUI_C_ALGORITHMS, "up to the panel's last column");
    const int n_on = c->n_on;
    c->focus = TUI_C_RECIPE;
    picture_draw(app);
    const int row = c->algorithms.at - c->algorithms.top;
    click_at(app, r->y + 1 + row, r->x + 2);
    is_int(c->n_on, n_on, "one in another panel selects that alone,");
    is_int(c->focus, TUI_C_ALGORITHMS, "also where it was the row of");
    click_at(app, r->y + 1 + row, r->x + 2);
    is_int(c->n_on, n_on + 1, "and the second turns it on");
    const struct tui_rect *recipe_at = &c->area[TUI_C_RECIPE];
    click_at(app, recipe_at->y + 1, recipe_at->x + recipe_at->w - 1);
    is_int(c->focus, TUI_C_RECIPE, "the last column of the first panel is its own");
    tui_app_free(&app);
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-found.XXXXXX";
    struct et_alloc_stats stats;
    (void)argv;
    if (argc > 1) /* an estimate is asked for */
        return 70;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    setenv("XDG_STATE_HOME", directory, 1);
    test_search();
    test_names();
    test_microbatches();
    test_anew();
    test_clicks();
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
