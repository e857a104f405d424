/* SPDX-License-Identifier: Apache-2.0 */
/* composed.c: what the screen Compose keeps: where its focus and its cursors are, which
 * sections are open, what differs from the file, what an estimate said. The estimates
 * that it asks for are this program once more. */
#include "config.h"

#include <math.h>
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

/* The command that was started: it answers what ./answer of its name says. */
static int
be_command(const char *what)
{
    char text[2048], path[64];
    snprintf(path, sizeof path, "answer.%s", what);
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    if (n > 0 && text[0] == '!') { /* it fails with the rest */
        fwrite(text + 1, 1, n - 1, stderr);
        return 65;
    }
    fwrite(text, 1, n, stdout);
    return 0;
}

static void
put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static struct compose *
state_of(struct tui_app *app)
{
    return tui_app_state(app, TUI_IN_compose);
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

static void
go_to(struct tui_app *app, const char *path)
{
    if (!compose_go_to(state_of(app), path))
        bail("no key %s", path);
    picture_draw(app);
}

/* The names of the algorithms that are listed, as far as there is room. */
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

/* ---- panels ---- */

static void
test_panels(void)
{
    static const struct {
        int cols;
        const char *want; /* recipe, algorithms, options, timeline */
    } rows[] = {{120, "0123012"}, {80, "0303030"}};
    for (int i = 0; i < 2; i++) {
        struct tui_app *app = open_app(recipe, 36, rows[i].cols);
        const struct compose *c = state_of(app);
        char forth[8] = "", back[8] = "";
        for (int k = 0; k < 7; k++, press(app, "<tab>"))
            forth[k] = (char)('0' + (int)c->focus);
        is_str(forth, rows[i].want, "%d columns: tab goes from panel to panel",
               rows[i].cols);
        press(app, "<s-tab>");
        for (int k = 6; k >= 0; k--, press(app, "<s-tab>"))
            back[k] = (char)('0' + (int)c->focus);
        is_str(back, rows[i].want, "shift-tab goes back");
        tui_app_free(&app);
    }
    struct tui_app *app = open_app(recipe, 24, 80);
    struct compose *c = state_of(app);
    const int rows_narrow = c->n_rows;
    tui_app_resize(app, 36, 120);
    picture_draw(app);
    ok(!c->is_inline && c->n_rows < rows_narrow,
       "a wider screen has the algorithms in a panel, and not in the recipe");
    c->focus = TUI_C_ALGORITHMS;
    tui_app_resize(app, 24, 80);
    picture_draw(app);
    ok(c->is_inline && c->focus == TUI_C_RECIPE && c->n_rows == rows_narrow,
       "a narrow one has them in the recipe, and no focus on a panel that is gone");
    tui_app_free(&app);
}

/* A click at row ROW of PANEL's lines; -1: its title. */
static void
click(struct tui_app *app, enum tui_compose_panel panel, int row)
{
    const struct tui_rect *r = &state_of(app)->area[panel];
    const struct tui_mouse m = {.y = r->y + 1 + row, .x = r->x + 2, .what = TUI_CLICK};
    tui_app_mouse(app, &m);
    picture_draw(app);
}

static void
test_clicks(void)
{
    struct tui_app *app = open_app(recipe, 36, 120);
    struct compose *c = state_of(app);
    click(app, TUI_C_ALGORITHMS, 2);
    is_int(c->algorithms.at, 2, "a click selects the row that it is on");
    is_int(c->focus, TUI_C_ALGORITHMS, "and its panel");
    click(app, TUI_C_RECIPE, -1);
    is_int(c->focus, TUI_C_RECIPE, "one on a title selects the panel");
    is_int(c->recipe.at, 0, "and no row");
    const int n = c->n_rows;
    if (c->area[TUI_C_RECIPE].h > n + 2) {
        click(app, TUI_C_RECIPE, n - 1);
        is_int(c->recipe.at, n - 1, "one on the last row selects that");
        click(app, TUI_C_RECIPE, n);
        is_int(c->recipe.at, n - 1, "one below it none");
    }
    tui_app_free(&app);
}

/* ---- sections ---- */

static void
test_modes(void)
{
    static const struct {
        const char *path;
        int wide, low;
    } rows[] = {
        {"model", TUI_C_SET, TUI_C_SET},        {"train_data", TUI_C_SET, TUI_C_SET},
        {"eval_data", TUI_C_SHUT, TUI_C_SHUT},  {"optimizer", TUI_C_SET, TUI_C_SET},
        {"checkpoint", TUI_C_SHUT, TUI_C_SHUT}, {"launch", TUI_C_SHUT, TUI_C_SHUT},
        {"scheduler.0", TUI_C_SET, TUI_C_SHUT},
    };
    for (int low = 0; low < 2; low++) {
        char text[1024];
        snprintf(text, sizeof text, "%sscheduler: {name: linear}\nlaunch: {nproc: 2}\n",
                 recipe);
        struct tui_app *app = open_app(text, low ? 30 : 36, 120);
        const struct compose *c = state_of(app);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (int k = 0; k < c->form.n; k++)
                if (c->form.row[k].is_section &&
                    strcmp(c->form.row[k].path, rows[i].path) == 0)
                    is_int(compose_mode_of(c, k), low ? rows[i].low : rows[i].wide,
                           "%s is %s at first", rows[i].path,
                           compose_mode_of(c, k) ? "open" : "shut");
        tui_app_free(&app);
    }
    struct tui_app *app = open_app(recipe, 36, 120);
    struct compose *c = state_of(app);
    go_to(app, "optimizer");
    static const int section[] = {TUI_C_WHOLE, TUI_C_SHUT, TUI_C_SET, TUI_C_WHOLE};
    for (int i = 0; i < 4; i++) {
        press(app, "<enter>");
        is_int(compose_mode_at(c, "optimizer", -1), section[i],
               "enter opens all of a section, shuts it, shows what is set");
    }
    press(app, "G");
    is_int(c->row[c->recipe.at].kind, TUI_C_MORE, "the last row is about the others");
    static const int all[] = {TUI_C_WHOLE, TUI_C_SET, TUI_C_WHOLE, TUI_C_SET};
    for (int i = 0; i < 4; i++) {
        press(app, "G<enter>");
        is_int(compose_mode_at(c, "", -1), all[i], "which it shows and hides");
        ok(c->recipe.at < c->n_rows, "with the cursor on a row");
    }
    for (int i = 0; i < TUI_C_SECTIONS + 2; i++) {
        char path[16];
        snprintf(path, sizeof path, "s%d", i);
        compose_turn_section(c, path, TUI_C_WHOLE);
    }
    int kept = 0;
    for (int i = 0; i < c->n_sections; i++)
        kept += compose_mode_at(c, c->section[i].path, -1) == c->section[i].mode;
    is_int(c->n_sections, TUI_C_SECTIONS, "as many sections are kept as have room");
    is_int(kept, TUI_C_SECTIONS, "each with its own mode");
    is_int(compose_mode_at(c, "optimizer", -1), TUI_C_WHOLE, "also the first of them");
    tui_app_free(&app);
}

static void
test_go_to(void)
{
    struct tui_app *app = open_app(recipe, 36, 120);
    struct compose *c = state_of(app);
    compose_turn_section(c, "optimizer", TUI_C_SHUT);
    go_to(app, "optimizer.lr");
    is_str(compose_key_row(c)->path, "optimizer.lr", "the cursor goes to a key");
    is_int(compose_mode_at(c, "optimizer", -1), TUI_C_SET,
           "whose section shows what is set, where it is");
    go_to(app, "optimizer.momentum");
    is_int(compose_mode_at(c, "optimizer", -1), TUI_C_WHOLE, "else all of it");
    go_to(app, "checkpoint.on_failure");
    is_str(compose_key_row(c)->path, "checkpoint.on_failure",
           "a section that was shut");
    press(app, "/smooth<enter>");
    ok(c->find.n > 0, "something is looked for");
    go_to(app, "optimizer.lr");
    is_str(compose_key_row(c)->path, "optimizer.lr", "which does not hide the key");
    is_int((int64_t)c->find.n, 0, "and ends");
    tui_app_free(&app);
}

static void
test_paths(void)
{
    static const struct {
        const char *told, *path;
        bool is;
    } rows[] = {
        {"scheduler.t_warmup", "scheduler.0.t_warmup", true},
        {"a.b", "a.b", true},
        {"a.0.b", "a.0.b", true},
        {"a.0.b.c", "a.0.b.0.c", true},
        {"a.b", "a.1.b", false},
        {"lr", "0.lr", false},
        {"layers.1x", "layers.10.x", false},
        {"a", "a.0.b", false},
        {"a.b.c", "a.b", false},
        {"", "", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(compose_is_path(rows[i].told, rows[i].path), rows[i].is, "'%s' %s '%s'",
               rows[i].told, rows[i].is ? "is" : "is not", rows[i].path);
}

static void
test_missing(void)
{
    struct tui_app *app = open_app("max_duration: 10ba\n"
                                   "model: {name: mlp}\n"
                                   "train_data: {name: synthetic_images}\n"
                                   "eval_data: {name: synthetic_images}\n"
                                   "optimizer: {name: sgd}\n",
                                   50, 200);
    const struct compose *c = state_of(app);
    char missing[256] = "";
    for (int i = 0; i < c->form.n; i++)
        if (compose_is_missing(c, &c->form.row[i]))
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s ",
                     c->form.row[i].path);
    is_str(missing, "train_data.batch_size optimizer.lr ",
           "what is missing is told where it is needed, and nowhere else");
    tui_app_free(&app);
}

/* ---- algorithms ---- */

static void
test_filters(void)
{
    struct tui_app *app = open_app(recipe, 50, 120);
    struct compose *c = state_of(app);
    const char *all;
    is_int(c->n_on, 2, "two algorithms are on");
    ok(c->n_can > 2 && c->n_can < c->n_methods, "of %d %d can act", c->n_methods,
       c->n_can);
    is_int(c->n_shown, c->n_can, "those are listed");
    all = listed(c);
    ok(strncmp(all, "label_smoothing ema ", 20) == 0,
       "those that are on first, in the recipe's order: %.40s", all);
    ok(c->has_fold, "and a row says that there are others");
    c->focus = TUI_C_ALGORITHMS;
    press(app, "gj");
    is_str(compose_method(c)->name, "ema", "one of them is selected");
    press(app, "f");
    is_int(c->filter, TUI_C_ON, "f lists those that are on");
    is_str(listed(c), "label_smoothing ema", "alone");
    is_str(compose_method(c)->name, "ema", "and the same is selected");
    press(app, "f");
    is_int(c->n_shown, c->n_methods, "then all");
    press(app, "G");
    ok(compose_method(c) == NULL, "the last row is the fold");
    press(app, "<enter>");
    is_int(c->filter, TUI_C_CAN, "enter on it goes back to those that can act");
    is_int(c->n_shown, c->n_can, "all of them");
    press(app, "G<enter>");
    is_int(c->filter, TUI_C_ALL, "or on to all");
    tui_app_free(&app);

    app = open_app(recipe, 30, 80);
    c = state_of(app);
    ok(c->is_inline, "a narrow screen");
    is_int(c->n_shown, 4, "has four of them, until");
    compose_turn_section(c, "algorithms", TUI_C_WHOLE);
    is_int(c->n_shown, c->n_can, "the section is opened");
    compose_turn_section(c, "algorithms", TUI_C_SET);
    c->filter = TUI_C_ALL;
    compose_list_methods(c);
    is_int(c->n_shown, c->n_methods, "or all are asked for");
    tui_app_free(&app);
}

static void
test_options(void)
{
    struct tui_app *app = open_app(recipe, 50, 120);
    struct compose *c = state_of(app);
    c->focus = TUI_C_ALGORITHMS;
    press(app, "gj<tab>jj");
    is_str(compose_method(c)->name, "ema", "options of the second");
    is_int(c->values.at, 2, "of which the third is selected");
    press(app, "<s-tab>k");
    is_int(c->values.at, 0, "those of another begin with their first");
    press(app, "<tab><tab>");
    is_int(c->focus, TUI_C_TIMELINE, "in the timeline");
    press(app, "j");
    ok(c->is_about_method, "what is said stays about the algorithm");
    press(app, "<tab>j");
    ok(!c->is_about_method, "in the recipe it is about the key");
    tui_app_free(&app);
}

/* ---- changes ---- */

static const char *
changes(const struct compose *c)
{
    static char text[2048];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < c->n_changes && used < sizeof text; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%c %s|%s\n",
                             c->change[i].sign, c->change[i].path, c->change[i].text);
    return text;
}

static void
test_changes(void)
{
    char text[1024];
    const char *eval = strstr(recipe, "images}\n");
    snprintf(text, sizeof text, "%.*simages, batch_size: 2%s", (int)(eval - recipe),
             recipe, eval + 6);
    struct tui_app *app = open_app(text, 36, 120);
    struct compose *c = state_of(app);
    is_str(changes(c), "", "at first nothing differs from the file");
    if (eti_sketch_set(c->sketch, "optimizer.lr", "0.5") != ET_OK ||
        eti_sketch_set(c->sketch, "seed", "7") != ET_OK ||
        eti_sketch_default(c->sketch, "train_data.batch_size") != ET_OK ||
        eti_sketch_set(c->sketch, "train_data.batch_size", "8") != ET_OK ||
        eti_sketch_toggle(c->sketch, "mixup") != ET_OK ||
        eti_sketch_toggle(c->sketch, "ema") != ET_OK ||
        eti_sketch_set(c->sketch, "algorithms.label_smoothing.smoothing", "0.2") !=
            ET_OK)
        bail("no change: %s", et_error_get(cx)->message);
    compose_refresh(c);
    is_str(changes(c),
           "+ seed|7\n"
           "~ train_data.batch_size|4 -> 8\n"
           "~ optimizer.lr|0.02 -> 0.5\n"
           "- algorithms.ema|off\n"
           "~ algorithms.label_smoothing.smoothing|0.1 -> 0.2\n"
           "+ algorithms.mixup|on\n",
           "each change is told, with its old value and its new one");
    const struct tui_compose_change *one = compose_change_at(c, "optimizer.lr");
    ok(one && one->sign == '~', "and found at its key");
    compose_list_changes(c);
    is_int(c->n_changes, 6, "listed again they are the same");
    press(app, "w");
    is_str(changes(c), "", "once it is saved none is left");
    if (eti_sketch_set(c->sketch, "optimizer.lr", "0.25") != ET_OK ||
        eti_sketch_default(c->sketch, "seed") != ET_OK)
        bail("no change: %s", et_error_get(cx)->message);
    compose_refresh(c);
    is_str(changes(c), "~ optimizer.lr|0.5 -> 0.25\n- seed|7\n",
           "and then it is told against what was saved");
    tui_app_free(&app);
}

static void
test_diff(void)
{
    char text[4096];
    snprintf(text, sizeof text, "%s", recipe);
    for (int i = 0; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "# line %d\n", i);
    struct tui_app *app = open_app(recipe, 16, 60);
    struct compose *c = state_of(app);
    if (eti_sketch_begin(c->sketch, text, strlen(text), "new") != ET_OK)
        bail("no new recipe");
    compose_begun(c);
    press(app, "d");
    ok(c->shows_diff, "d shows the difference");
    press(app, "<down><down><down>");
    const int down = c->diff_top;
    ok(down > 0, "which scrolls down: %d", down);
    press(app, "<up>");
    is_int(c->diff_top, down - 1, "and up");
    press(app, "dd");
    is_int(c->diff_top, 0, "it is shown again from its beginning");
    press(app, "<esc>");
    ok(!c->shows_diff, "esc leaves it");
    press(app, "z");
    const bool full = c->is_full;
    press(app, "<esc>");
    ok(full && !c->is_full, "esc leaves one panel that fills the screen");
    press(app, "/ema<enter>/");
    is_str(c->find.text, "", "a search begins without the text of the last");
    press(app, "<esc>");
    tui_app_free(&app);
}

/* ---- warnings ---- */

static void
test_warnings(void)
{
    char text[1024];
    snprintf(text, sizeof text, "%s  mixup:\n  cutmix:\n", recipe);
    struct tui_app *app = open_app(text, 36, 120);
    struct compose *c = state_of(app);
    const int n = c->n_warnings;
    ok(n > 0 && c->n_fatal == 0, "a warning does not keep it from starting");
    c->numbers.is_refused = true;
    snprintf(c->numbers.problem, sizeof c->numbers.problem, "no such data");
    c->numbers.of = c->sketch->changes - 1;
    compose_list_checks(c);
    ok(c->n_warnings == n && c->n_fatal == 0,
       "nor does what the estimate of an older text said");
    c->numbers.of = c->sketch->changes;
    tui_job_stop(&c->estimate);
    compose_list_checks(c);
    ok(c->n_warnings == n + 1 && c->n_fatal == 1, "that of this text does");
    const struct eti_check refusal = c->check[0], second = c->check[1];
    press(app, "i");
    is_int(c->n_ignored, 1, "i ignores one,");
    is_str(c->ignored[0], second.text, "the first that is no refusal,");
    ok(c->n_warnings == n && strcmp(c->check[0].text, refusal.text) == 0,
       "which is told no more");
    c->n_ignored = TUI_C_IGNORED;
    press(app, "i");
    is_int(c->n_ignored, TUI_C_IGNORED, "there is no room for more than there is");
    tui_app_free(&app);
}

/* ---- estimates ---- */

static void
wait_jobs(struct tui_app *app)
{
    app->config.is_dump = true; /* which waits for jobs */
    compose_tick(app, state_of(app));
    app->config.is_dump = false;
}

static void
test_numbers(void)
{
    struct tui_app *app = open_app(recipe, 36, 120);
    struct compose *c = state_of(app);
    const struct tui_compose_numbers *n = &c->numbers;
    put("answer.estimate",
        "{\"seconds_per_batch\": 0.5, \"peak_bytes\": 1.5e6, \"params\": 98765, "
        "\"checkpoint_bytes\": 4e6, \"weights_bytes\": 1e6, \"data\": [{\"name\": "
        "\"pictures\", \"samples\": 210, \"classes\": 10, \"vocab_size\": 3}, "
        "{\"name\": "
        "\"words\", \"tokens\": 500, \"samples\": 9, \"vocab_size\": 70, \"classes\": "
        "4}]}");
    put("answer.explain", "{\"learning_rate\": {\"batches\": 10, \"points\": [{\"ba\": "
                          "0, \"lr\": 0.1}, {\"ba\": 4, \"lr\": 0.4}, {\"ba\": 9, "
                          "\"lr\": 0.01}]}}");
    wait_jobs(app);
    ok(n->is_known && n->of == c->sketch->changes, "an estimate is of its text");
    is_near(n->seconds, 0.5, 0, "seconds of a batch,");
    is_near(n->peak_bytes, 1.5e6, 0, "bytes,");
    is_near(n->params, 98765, 0, "parameters,");
    is_near(n->found.checkpoint_bytes, 4e6, 0, "those of a checkpoint,");
    ok(n->found.free_bytes > 1e6, "and those that are free: %g", n->found.free_bytes);
    is_int(n->found.n_data, 2, "two sets of data:");
    is_str(n->found.data[0].name, "pictures", "one of pictures,");
    ok(!n->found.data[0].is_text && n->found.data[0].n == 210 &&
           n->found.data[0].kinds == 10,
       "with their samples and classes,");
    ok(n->found.data[1].is_text && n->found.data[1].n == 500 &&
           n->found.data[1].kinds == 70,
       "one of text, with its tokens and words");
    ok(n->batches == 10 && n->n == 3, "the learning rate of ten batches");
    is_near(n->at[1], 4, 0, "at its steps");
    is_near(n->rate[1], 0.4, 0, "with its values");
    is_near(n->highest, 0.4, 0, "and the highest of them");

    put("answer.estimate", "!{\"message\": \"no such data\"}");
    put("answer.explain", "{\"learning_rate\": {\"points\": [{\"ba\": 0, \"lr\": "
                          "0.05}]}}");
    if (eti_sketch_set(c->sketch, "optimizer.lr", "0.5") != ET_OK)
        bail("no change");
    wait_jobs(app);
    ok(!n->is_known && n->is_refused, "a text that is refused has no numbers");
    is_str(n->problem, "no such data", "but why");
    ok(n->batches == -1 && n->n == 1, "nor the length of the one before");
    is_near(n->highest, 0.05, 0, "nor its highest rate");

    put("answer.estimate", "!Segmentation fault");
    if (eti_sketch_set(c->sketch, "optimizer.lr", "0.25") != ET_OK)
        bail("no change");
    wait_jobs(app);
    ok(!n->is_known && !n->is_refused, "an estimate that crashed refuses nothing");
    is_str(n->problem, "Segmentation fault", "and says what it said");

    put("answer.estimate", "{\"seconds_per_batch\": 2, \"peak_bytes\": 5}");
    if (eti_sketch_set(c->sketch, "optimizer.lr", "0.125") != ET_OK)
        bail("no change");
    wait_jobs(app);
    ok(n->is_known && !n->is_refused && !*n->problem, "the next one knows no problem");
    ok(isnan(n->params) && isnan(n->found.checkpoint_bytes),
       "and what it does not say is not known");
    is_int(n->found.n_data, 0, "nor the data of the one before");
    tui_app_free(&app);
}

/* ---- the timeline ---- */

/* Enter tells of the event that the cursor is on, as a table of all events and, where
 * borders leave no room for one, as a list of those at which somebody acts. */
static void
test_why(void)
{
    struct tui_app *app = open_app(recipe, 50, 200);
    struct compose *c = state_of(app);
    c->focus = TUI_C_TIMELINE;
    picture_draw(app);
    ok(c->has_table, "a large screen has a table of events");
    press(app, "jj<enter>");
    ok(strncmp(app->message, "AFTER_LOAD:", 11) == 0, "the third is told of: %s",
       app->message);
    struct tui_borders *b = &app->borders;
    for (int i = 0; i < b->n_spots; i++)
        if (strncmp(b->spot[i].name, "compose.checks", 14) == 0) {
            snprintf(b->moved[b->n_moved].name, TUI_BORDER_NAME, "%s", b->spot[i].name);
            b->moved[b->n_moved++].by = -10;
            break;
        }
    picture_draw(app);
    ok(!c->has_table, "with less room it has a list");
    press(app, "gj<enter>");
    char name[64];
    snprintf(name, sizeof name, "%s", et_event_name((enum et_event)c->event[1]));
    ok(strncasecmp(app->message, name, strlen(name)) == 0,
       "whose second event is told of, %s: %s", name, app->message);
    is_int(c->timeline.page, c->area[TUI_C_TIMELINE].h - 1,
           "all its rows but the title's are for events");
    tui_app_free(&app);
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-composed.XXXXXX";
    struct et_alloc_stats stats;
    if (argc > 1)
        return be_command(argv[1]);
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    setenv("XDG_STATE_HOME", directory, 1);
    test_panels();
    test_clicks();
    test_modes();
    test_go_to();
    test_paths();
    test_missing();
    test_filters();
    test_options();
    test_changes();
    test_diff();
    test_warnings();
    test_numbers();
    test_why();
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
