/* SPDX-License-Identifier: Apache-2.0 */
/* typed.c: what the screen Compose asks for and says while a recipe is changed: values
 * that are typed, names out of lists, faults that are mended. */
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
open_app(const char *text)
{
    const struct tui_compose_setup setup = {.runs = "runs"};
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_compose,
        .rows = 36,
        .cols = 120,
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

static const char *
text_in(struct tui_app *app)
{
    return state_of(app)->sketch->text;
}

static void
go_to(struct tui_app *app, const char *path)
{
    if (!compose_go_to(state_of(app), path))
        bail("no key %s", path);
    picture_draw(app);
}

/* What a box has: its lines, then its items with what stands behind them. Good until
 * the next call. */
static const char *
box_of(const struct tui_app *app)
{
    static char text[8192];
    const struct tui_popup *p = &app->popup;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < p->n_lines && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", p->line[i]);
    for (int i = 0; i < p->n_items && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s%s\n",
                                 p->item[i].text, *p->item[i].note ? " | " : "",
                                 p->item[i].note, *p->item[i].why ? " - " : "",
                                 p->item[i].why);
    return text;
}

/* ---- values that are typed ---- */

/* After KEYS, pressed at the key PATH, the screen says exactly SAID. */
static void
says(struct tui_app *app, const char *path, const char *keys, const char *said,
     const char *name)
{
    if (*path)
        go_to(app, path);
    app->message[0] = '\0';
    press(app, keys);
    if (!is_str(app->message, said, "%s", name))
        diag("\n%s", picture);
}

static void
test_values(void)
{
    struct tui_app *app = open_app(recipe);
    const struct compose *c = state_of(app);
    go_to(app, "optimizer.lr");
    press(app, "e<ctrl-u>1 2<ctrl-w>");
    is_str(c->field.text, "1 ", "a word is deleted where that is pressed");
    press(app, "x");
    ok(*c->reason != '\0', "a value that will not do has a reason: %s", c->reason);
    press(app, "<ctrl-w>");
    is_str(c->field.text, "1 ", "without the word");
    is_str(c->reason, "", "it will do again");
    press(app, "<ctrl-u>0.5x");
    ok(*c->reason != '\0', "one more that will not do");
    press(app, "<left><ctrl-u>");
    is_str(c->field.text, "x", "ctrl-u deletes up to the cursor");
    press(app, "<esc>");
    says(app, "", "e<enter>", "", "what was left is no reason the next time");
    ok(!c->is_editing && strstr(text_in(app), "lr: 0.02\n"), "the value is as it was");

    press(app, "/run_name<enter>e");
    is_str(c->field.text, "", "a value that is not set is typed from nothing");
    press(app, "calm<enter>");
    ok(strstr(text_in(app), "\nrun_name: calm\n") != NULL, "a text is set");
    press(app, "e<ctrl-u><enter>");
    ok(strstr(text_in(app), "\nrun_name: null\n") != NULL, "and unset: %s",
       text_in(app));
    go_to(app, "seed");
    press(app, "e7<enter>e<ctrl-u>");
    is_str(c->reason, "", "a number may be unset, too");
    press(app, "<enter>");
    ok(strstr(text_in(app), "\nseed: null\n") != NULL, "likewise");
    tui_app_free(&app);
}

/* A text that is no YAML is typed line by line; then values again. */
static void
test_lines(void)
{
    static const char broken[] = "max_duration: 10ba\n"
                                 "model: {name: mlp}\n"
                                 "train_data: {name: synthetic_images, batch_size: 4}\n"
                                 "optimizer: {name: sgd, lr: 0.02\n";
    struct tui_app *app = open_app(recipe);
    const struct compose *c = state_of(app);
    go_to(app, "optimizer.lr");
    press(app, "e<ctrl-u>fast<esc>");
    put("broken.yaml", broken);
    if (tui_compose_open(app, "broken.yaml") != ET_OK)
        bail("no recipe");
    picture_draw(app);
    press(app, "e");
    ok(c->is_editing && c->line > 0, "a line is typed: %d", c->line);
    press(app, "<enter>");
    ok(!c->is_editing, "for which no value's reason counts");
    compose_type_line(state_of(app), 4);
    is_str(c->field.text, "optimizer: {name: sgd, lr: 0.02", "the line that is asked");
    press(app, "}");
    is_str(c->reason, "", "is tried as no value");
    press(app, "<enter>");
    ok(eti_sketch_is_valid(c->sketch), "and mends the text");
    press(app, "e<esc>");
    go_to(app, "optimizer.lr");
    press(app, "e<ctrl-u>0.5<enter>");
    ok(strstr(text_in(app), "\noptimizer: {name: sgd, lr: 0.5}\n") != NULL,
       "then a value is set where it belongs:\n%s", text_in(app));
    compose_type_line(state_of(app), 0);
    ok(!c->is_editing, "no line is none to be typed");
    compose_type_line(state_of(app), 9);
    ok(!c->is_editing, "nor is one behind the last");
    tui_app_free(&app);
}

static void
test_names(void)
{
    struct tui_app *app = open_app(recipe);
    const struct tui_popup *p = &app->popup;
    go_to(app, "train_data");
    press(app, "e");
    is_str(p->item[p->list.at].text, "synthetic_images",
           "a list of names begins at the one there");
    ok(p->list.at > 0 && !state_of(app)->is_editing, "and nothing is typed");
    ok(*p->item[0].note && strcmp(p->item[0].note, p->item[0].text) != 0,
       "each says what it is: %s", p->item[0].note);
    press(app, "<esc>");
    go_to(app, "train_data");
    press(app, "eidx<enter>");
    const struct compose *c = state_of(app);
    ok(c->is_editing, "what another one needs is asked for");
    is_str(c->path, "train_data.path", "the first of it");
    press(app, "<esc>");
    ok(strstr(text_in(app), "train_data: {name: idx") != NULL, "it is chosen:\n%s",
       text_in(app));
    tui_app_free(&app);
}

/* What is found is selected, and stays so when the search ends. */
static void
test_find(void)
{
    struct tui_app *app = open_app(recipe);
    const struct compose *c = state_of(app);
    press(app, "/nest<enter>");
    is_str(compose_key_row(c)->path, "optimizer.nesterov", "a key is found");
    press(app, "<esc>");
    ok(c->find.n == 0 && *c->find.text == '\0', "esc ends the search");
    is_str(compose_key_row(c)->path, "optimizer.nesterov", "and stays at the key");
    press(app, "/label<enter>");
    ok(compose_place(c) == TUI_C_ALGORITHMS &&
           strcmp(compose_method(c)->name, "label_smoothing") == 0,
       "an algorithm comes before a key");
    press(app, "e");
    ok(c->is_editing && c->focus == TUI_C_OPTIONS, "e goes to its options");
    is_str(c->path, "algorithms.label_smoothing.smoothing", "and types the first");
    press(app, "<ctrl-u>0.3<enter>");
    ok(strstr(text_in(app), "label_smoothing: {smoothing: 0.3}") != NULL,
       "which is set:\n%s", text_in(app));
    press(app, "<esc>");
    ok(c->find.n == 0 && *c->find.text == '\0', "esc ends this search, too");
    press(app, "/ema<enter>e");
    ok(c->is_editing && strncmp(c->path, "algorithms.ema.", 15) == 0,
       "that of another one likewise: %s", c->path);
    press(app, "<esc>");
    says(app, "", "U", "nothing to do again", "something is said");
    go_to(app, "optimizer.lr");
    press(app, "e");
    ok(app->message_end == 0, "which a value that is typed takes the place of");
    press(app, "<esc>");
    tui_app_free(&app);
}

/* ---- what is said ---- */

static void
test_said(void)
{
    struct tui_app *app = open_app(recipe);
    struct compose *c = state_of(app);
    says(app, "", "u", "nothing to undo", "nothing was done yet");
    says(app, "", "U", "nothing to do again", "nor undone");
    says(app, "optimizer.momentum", "<bksp>", "momentum has its default",
         "a value that is not set");
    says(app, "train_data.batch_size", "<bksp>",
         "! batch_size is needed; u brings it back", "one that is needed");
    says(app, "", "<bksp>", "batch_size has no default", "which is gone");
    says(app, "", "u", "undone: train_data.batch_size: default", "what is undone");
    says(app, "", "U", "again: train_data.batch_size: default", "what is done again");
    says(app, "", "u", "undone: train_data.batch_size: default",
         "and undone once more");
    says(app, "eval_data", "<bksp>", "default again; u takes that back",
         "what has a default");
    says(app, "optimizer.lr", "<bksp>", "lr has no default: e gives it another value",
         "what has none");
    says(app, "", "/ema<enter>[", "ema acts earlier now", "an algorithm is moved up");
    says(app, "", "]", "ema acts later now", "and down");
    says(app, "", " ", "ema is off", "turned off");
    says(app, "", " ", "ema is on", "and on");
    says(app, "", "<bksp>", "backspace gives a value its default: tab to one",
         "algorithms have no default");
    press(app, "<esc>");
    c->focus = TUI_C_TIMELINE;
    says(app, "", " ", "space turns algorithms and switches on and off",
         "nothing is turned on in the timeline");
    says(app, "optimizer.lr", " ", "", "space on a number");
    ok(c->is_editing, "types it");
    press(app, "<esc>");
    tui_app_free(&app);

    /* A fault of another part than the algorithm. */
    app = open_app("max_duration: 10ba\nmodel: {name: mlp}\n"
                   "train_data: {name: synthetic_images}\n"
                   "optimizer: {name: sgd, lr: 0.02}\n");
    says(app, "", "/mixup<enter> ", "mixup is on", "an algorithm that needs no more");
    says(app, "", "<esc>/gradient_c<enter> ", "gradient_clipping is on",
         "and one that needs more, where another fault is the first");
    tui_app_free(&app);
    app = open_app("max_duration: 10ba\n"
                   "model: {name: gpt2, n_layers: 2, d_model: 64, n_heads: 2, "
                   "max_seq_len: 64, vocab_size: 256}\n"
                   "train_data: {name: synthetic_tokens, batch_size: 4, seq_len: 64, "
                   "vocab_size: 256}\n"
                   "optimizer: {name: sgd, lr: 0.02}\n");
    says(app, "", "/mixup<enter> ", "! mixup is on; it is for vision",
         "an algorithm for other models");
    tui_app_free(&app);
}

/* m moves an algorithm up to the one that it must precede, at once. */
static void
test_warnings(void)
{
    char text[1024];
    snprintf(text, sizeof text,
             "%s  weight_standardization:\n  mixup:\n  cutmix:\n  blurpool:\n", recipe);
    struct tui_app *app = open_app(text);
    says(app, "", "m", "mixup acts earlier now", "the first warning is mended");
    ok(strstr(text_in(app), "\n  mixup:\n  label_smoothing:") != NULL,
       "above what it must precede:\n%s", text_in(app));
    says(app, "", "m", "mixup is off", "of two that do not go together one is off");
    says(app, "", "m", "cutmix acts earlier now", "then the next is mended");
    says(app, "", "m", "blurpool acts earlier now", "and the last");
    ok(strstr(text_in(app), "\n  blurpool:\n  weight_standardization:") != NULL,
       "over all between:\n%s", text_in(app));
    says(app, "", "m", "there is no warning that a key can mend", "then none is left");
    tui_app_free(&app);
}

/* ---- faults ---- */

/* The rows of the picture's third panel from the one with TEXT on; NULL: there is
 * none. */
static const char *
panel_from(const char *text, int rows)
{
    static char out[1024];
    const char *at = strstr(picture, text);
    size_t used = 0;
    if (!at)
        return NULL;
    const char *line = at;
    while (line > picture && line[-1] != '\n')
        line--;
    const size_t x = (size_t)(at - line);
    out[0] = '\0';
    for (int i = 0; i < rows && *line; i++) {
        const size_t n = strcspn(line, "\n");
        used += (size_t)snprintf(out + used, sizeof out - used, "%.*s\n",
                                 n > x ? (int)(n - x) : 0, n > x ? line + x : "");
        line += n + 1;
    }
    return out;
}

/* Each fault stands between the lines around it, with a mark below its word. */
static void
test_faults(void)
{
    static const struct {
        const char *wrong, *panel, *others;
    } rows[] = {
        {"{name: synthetic_images, batch_siz: 4}",
         "fault 1 of 6 ------------------------\n"
         "2 | model: {name: mlp}\n"
         "3 | train_data: {name: synthetic_i..\n"
         "                ^\n"
         "4 | optimizer:\n",
         "m asks for batch_size"},
        {"batch_siz: 4}",
         "fault 2 of 6 ------------------------\n"
         "2 | model: {name: mlp}\n"
         "3 | train_data: {name: synthetic_i..\n"
         "\n"
         "4 | optimizer:\n",
         "m mends it: batch_size"},
        {"lrr: 0.3",
         "fault 3 of 6 ------------------------\n"
         "4 | optimizer:\n"
         "5 |   lrr: 0.3 # fast\n"
         "      ^^^\n"
         "6 |   name: sgd\n",
         "m mends it: lr"},
        {"lrr: 0.3",
         "fault 4 of 6 ------------------------\n"
         "4 | optimizer:\n"
         "5 |   lrr: 0.3 # fast\n"
         "      ^^^\n"
         "6 |   name: sgd\n",
         "m asks for lr"},
        {"batch_siz: 4}",
         "fault 5 of 6 ------------------------\n"
         "6 |   name: sgd\n"
         "7 | eval_data: {name: synthetic_im..\n"
         "\n"
         "8 | scheduler: {name: linear, t_ma..\n",
         "m mends it: batch_size"},
        {"soon",
         "fault 6 of 6 ------------------------\n"
         "7 | eval_data: {name: synthetic_im..\n"
         "8 | scheduler: {name: linear, t_ma..\n"
         "\n"
         "9 |   }\n",
         "m edits the line"},
    };
    struct tui_app *app =
        open_app("max_duration: 10ba\n"
                 "model: {name: mlp}\n"
                 "train_data: {name: synthetic_images, batch_siz: 4}\n"
                 "optimizer:\n"
                 "  lrr: 0.3 # fast\n"
                 "  name: sgd\n"
                 "eval_data: {name: synthetic_images, batch_siz: 4}\n"
                 "scheduler: {name: linear, t_max: soon   # why\n"
                 "  }\n");
    struct compose *c = state_of(app);
    const struct et_diagnostics *e = &c->sketch->errors;
    is_int(e->n, 6, "six faults");
    is_int(c->fault, 1, "the misspelt key before that it is missing");
    for (int i = 0; i < 6; i++) {
        char buf[200];
        press(app, "x<Home>");
        for (int k = 0; k < i; k++)
            press(app, "<down>");
        press(app, "<enter>");
        is_int(c->fault, i, "x leads to fault %d", i + 1);
        is_str(compose_wrong_text(c, &e->v[i], buf, sizeof buf), rows[i].wrong,
               "what was not understood, without its comment");
        is_str(panel_from("fault ", 5), rows[i].panel, "its place in the text");
        picture_has(rows[i].others, "and what m does");
        press(app, "x");
        is_int(app->popup.list.at, i, "the list begins at it");
        press(app, "<esc>");
    }
    picture_has("t_max               x soon",
                "a value that is wrong stands in its row");
    press(app, "x<Home><down><down><enter>");
    is_str(panel_from("-- fault 3", 14),
           "-- fault 3 of 6 ------------------------\n"
           "   4 | optimizer:\n"
           "   5 |   lrr: 0.3 # fast\n"
           "         ^^^\n"
           "   6 |   name: sgd\n"
           " optimizer: unknown key 'lrr' (did you\n"
           " mean 'lr'?)\n"
           " m mends it: lr\n"
           "\n"
           "   3 train_data: key 'batch_size' is ..\n"
           "   3 train_data: unknown key 'batch_s..\n"
           "   5 optimizer: key 'lr' is missing\n"
           "   7 eval_data: unknown key 'batch_si..\n"
           "   8 scheduler.t_max: expected time i..\n",
           "beside what else is wrong");
    press(app, "x");
    is_str(box_of(app),
           "line 3: train_data: key 'batch_size' is missing\n"
           "line 3: train_data: unknown key 'batch_siz' (did you mean 'batch_size'?)\n"
           "line 5: optimizer: unknown key 'lrr' (did you mean 'lr'?)\n"
           "line 5: optimizer: key 'lr' is missing\n"
           "line 7: eval_data: unknown key 'batch_siz' (did you mean 'batch_size'?)\n"
           "line 8: scheduler.t_max: expected time in iter, ep, ba, sp, tok or dur, "
           "got \"so\n",
           "all are listed");
    press(app, "<Home><down><down><enter>");
    says(app, "", "m", "mended: lr; u takes that back", "m mends the one looked at");
    ok(strstr(text_in(app), "\n  lr: 0.3 # fast\n") != NULL &&
           strstr(text_in(app), "\ntrain_data: {name: synthetic_images, batch_siz: 4}"),
       "and not the first:\n%s", text_in(app));
    press(app, "x<Home><down><down><enter>");
    says(app, "", "m", "mended: batch_size; u takes that back", "or the last but one");
    ok(strstr(text_in(app), "\neval_data: {name: synthetic_images, batch_size: 4}\n") !=
           NULL,
       "with the rest of its line:\n%s", text_in(app));
    press(app, "x<Home><down><down><enter>m");
    ok(c->is_editing && c->line == 8, "a line is edited where m knows no better");
    press(app, "<esc>");
    tui_app_free(&app);
}

/* The key m mends a fault: it sets the word that was probably meant, or asks for what
 * is missing. It does not change what another file says. */
static void
test_mended(void)
{
    char text[2048] = "";
    struct tui_app *app = open_app("max_duration: 10ba\nmodel: {name: mlp}\n"
                                   "train_data: {name: synthetic_images}\n"
                                   "eval_data: {name: synthetic_images}\n"
                                   "optimizer: {name: sgd, lr: 0.1}\n"
                                   "precision: amp_bf1 # half\ntf32: yes\n");
    press(app, "m");
    is_str(state_of(app)->path, "train_data.batch_size", "m asks for what is missing");
    press(app, "8<enter>");
    says(app, "", "m", "mended: amp_bf16; u takes that back",
         "m sets what may be meant");
    picture_has("| write true", "a hint is told");
    says(app, "", "m", "mended: true; u takes that back", "and what is to be written");
    ok(strstr(text_in(app), "\nprecision: amp_bf16 # half\ntf32: true\n") != NULL,
       "as values:\n%s", text_in(app));
    tui_app_free(&app);

    mkdir("deep", 0700);
    put("deep/base.yaml", "max_duration: 1ba\nmodel: {name: mlp}\n"
                          "train_data: {name: synthetic_images, batch_size: 4}\n"
                          "optimizer: {name: sgd, lr: fast}\n");
    put("deep/r.yaml", "include: base.yaml\nseeed: 4\n");
    app = open_app(recipe);
    if (tui_compose_open(app, "deep/r.yaml") != ET_OK)
        bail("no recipe");
    picture_draw(app);
    picture_has("   1 | include: base.yaml", "the line before it is the first");
    says(app, "", "m", "mended: seed; u takes that back", "a fault of this text");
    says(app, "", "m", "only an editor mends that", "and one of another file");
    ok(!state_of(app)->is_editing, "which is not typed here");
    tui_app_free(&app);

    for (int i = 1; i < 60; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                 i == 45 ? "model: {name: mlp]\n" : "# more\n");
    app = open_app(text);
    picture_has("--\n  30 | # more  ", "a text that is no YAML is shown");
    picture_has("\n  44 | # more                               |\n"
                "  45 | model: {name: mlp]                   |\n"
                "                        ^                   |\n"
                "  46 | # more ",
                "around the line with the fault");
    tui_app_free(&app);
}

/* Where another section lacks a key, and one is misspelt, it may be another matter. */
static void
test_first_fault(void)
{
    static const struct {
        const char *text;
        int first;
        const char *name;
    } rows[] = {
        {"train_data: {name: synthetic_images}\n"
         "eval_data: {name: synthetic_images, batch_siz: 4}\n"
         "optimizer: {name: sgd, lr: 0.1}\n",
         0, "a key misspelt in another section"},
        {"train_data: {name: synthetic_images, num_sampels: 4}\n"
         "optimizer: {name: sgd, lr: 0.1}\n",
         0, "another key misspelt"},
        {"train_data: {name: synthetic_images, num_sampels: 4, batch_siz: 4}\n"
         "optimizer: {name: sgd, lr: 0.1}\n",
         2, "the key that is missing, misspelt"},
    };
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text, "max_duration: 10ba\nmodel: {name: mlp}\n%s",
                 rows[i].text);
        struct tui_app *app = open_app(text);
        const struct compose *c = state_of(app);
        ok(strstr(c->sketch->errors.v[0].message, "'batch_size' is missing") != NULL,
           "a key is missing");
        is_int(c->fault, rows[i].first, "%s", rows[i].name);
        tui_app_free(&app);
    }
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-typed.XXXXXX";
    struct et_alloc_stats stats;
    (void)argv;
    if (argc > 1) /* an estimate is asked for */
        return 70;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    setenv("XDG_STATE_HOME", directory, 1);
    test_values();
    test_lines();
    test_names();
    test_find();
    test_said();
    test_warnings();
    test_faults();
    test_mended();
    test_first_fault();
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
