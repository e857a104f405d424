/* SPDX-License-Identifier: Apache-2.0 */
/* composing.c: what the keys of Compose do to a recipe's text, and to its file. The
 * estimates that the screen asks for are this program once more. */
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

static const char recipe[] = "# mine\n"
                             "max_duration: 10ba\n"
                             "model: {name: mlp}\n"
                             "train_data: {name: synthetic_images, batch_size: 4}\n"
                             "eval_data: {name: synthetic_images}\n"
                             "optimizer:\n"
                             "  name: sgd # plain\n"
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

static const struct eti_sketch *
sketch_of(struct tui_app *app)
{
    return ((struct compose *)tui_app_state(app, TUI_IN_compose))->sketch;
}

/* After KEYS the text has NEW in place of OLD, and the screen says SAID. */
static void
becomes(const char *keys, const char *old, const char *new, const char *said,
        const char *name)
{
    char want[2048];
    struct tui_app *app = open_app(recipe);
    const char *at = strstr(recipe, old);
    if (!at)
        bail("no %s", old);
    snprintf(want, sizeof want, "%.*s%s%s", (int)(at - recipe), recipe, new,
             at + strlen(old));
    press(app, keys);
    if (!is_str(sketch_of(app)->text, want, "'%s': %s", keys, name))
        diag("\n%s", picture);
    if (*said && !ok(strstr(picture, said) != NULL, "and says '%s'", said))
        diag("\n%s", picture);
    tui_app_free(&app);
}

static void
test_edits(void)
{
    becomes("/lr<enter>e<ctrl-u>0.5<enter>", "lr: 0.02", "lr: 0.5",
            "~ optimizer.lr  0.02 -> 0.5", "a value is found, and edited");
    becomes("/lr<enter>e<ctrl-u>fast<enter>", "lr: 0.02", "lr: 0.02",
            "expected number >= 0, got \"fast\"", "one that will not do is not taken");
    becomes("/lr<enter>e<ctrl-u>0.5<esc>", "lr: 0.02", "lr: 0.02", "",
            "esc leaves it as it was");
    becomes("/lr<enter>e<ctrl-u>0.5<enter>u", "lr: 0.02", "lr: 0.02", "undone",
            "u undoes");
    becomes("/lr<enter>e<ctrl-u>0.5<enter>uU", "lr: 0.02", "lr: 0.5", "",
            "U does it again");
    becomes("/lr<enter><bksp>", "lr: 0.02", "lr: 0.02", "lr has no default",
            "backspace says where there is no default");
    becomes("/momentum<enter>e<ctrl-u>0.9<enter>", "  lr: 0.02\n",
            "  lr: 0.02\n  momentum: 0.9\n", "+ optimizer.momentum  0.9",
            "a value that the text lacks comes behind the others");
    becomes("/momentum<enter>e<ctrl-u>0.9<enter><bksp>", "lr: 0.02", "lr: 0.02", "",
            "and backspace gives the default back");
    becomes("/on_failure<enter><space>", "  ema:\n",
            "  ema:\ncheckpoint:\n  on_failure: stop\n", "",
            "space takes the next choice of a value");
    becomes("/on_failure<enter><space><space>", "  ema:\n",
            "  ema:\ncheckpoint:\n  on_failure: continue\n", "",
            "and after the last the first");
    becomes("/tf32<enter><space>", "  ema:\n", "  ema:\ntf32: true\n", "",
            "and turns a switch on,");
    becomes("/tf32<enter><space><space>", "  ema:\n", "  ema:\ntf32: false\n", "",
            "and off");
    becomes("/scheduler<enter>e<enter>", "  ema:\n",
            "  ema:\nscheduler:\n  name: constant\n", "+ scheduler",
            "a component that is the default is written where it is chosen");
    becomes("/scheduler<enter>elinear<enter>", "  ema:\n",
            "  ema:\nscheduler:\n  name: linear\n", "unsaved   checking...",
            "so is another");
    becomes("/t_max<enter>e<ctrl-u>5ba<enter>", "  ema:\n",
            "  ema:\nscheduler:\n  t_max: 5ba\n", "unsaved   checking...",
            "an option of the default's is set without its name");
    becomes("/optimizer<enter>e<enter>", "sgd # plain", "sgd # plain", "is sgd already",
            "what is written may be chosen again");
    becomes("/mixup<enter><space>", "  ema:\n", "  ema:\n  mixup:\n", "mixup is on",
            "space turns an algorithm on, behind the others");
    becomes("/ema<enter><space>", "  ema:\n", "", "ema is off", "and off");
    becomes("/ema<enter>[", "  label_smoothing: {smoothing: 0.1}\n  ema:\n",
            "  ema:\n  label_smoothing: {smoothing: 0.1}\n", "", "[ moves it up");
    becomes("/ema<enter>[]", "  ema:\n", "  ema:\n", "", "] moves it down");
    becomes("/ema<enter>]", "  ema:\n", "  ema:\n", "ema is the last already",
            "the last moves no further");
}

static const char network[] = "max_duration: 10ba\n"
                              "model:\n"
                              "  name: layers\n"
                              "  layers:\n"
                              "    - conv2d: {out: 8, kernel: 3}\n"
                              "    - relu # plain\n"
                              "    - residual:\n"
                              "        - dropout\n"
                              "    - flatten\n"
                              "    - linear: {out: 10}\n"
                              "train_data: {name: synthetic_images, batch_size: 4}\n"
                              "optimizer: {name: sgd, lr: 0.02}\n";

/* After the keys of PICK, pressed where the layers are listed, OLD is NEW. */
static void
layers_become(const char *pick, const char *old, const char *new, const char *said,
              const char *name)
{
    char want[2048];
    struct tui_app *app = open_app(network);
    const char *at = strstr(network, old);
    if (!at)
        bail("no %s", old);
    snprintf(want, sizeof want, "%.*s%s%s", (int)(at - network), network, new,
             at + strlen(old));
    if (!compose_go_to(tui_app_state(app, TUI_IN_compose), "model.layers"))
        bail("no layers");
    press(app, "e");
    press(app, pick);
    if (!is_str(sketch_of(app)->text, want, "'%s': %s", pick, name))
        diag("\n%s", picture);
    if (*said && !ok(strstr(picture, said) != NULL, "and says '%s'", said))
        diag("\n%s", picture);
    tui_app_free(&app);
}

static void
test_layers(void)
{
    layers_become("", "relu", "relu", "0 conv2d  out: 8, kernel: 3",
                  "layers are listed");
    layers_become("", "relu", "relu", "  0 dropout", "those within a residual, too");
    layers_become("<enter>", "relu", "relu", "convolution of images",
                  "a layer is explained");
    layers_become("<down><enter>d", "    - relu # plain\n", "    # plain\n",
                  "1 residual", "one is taken out");
    layers_become("<down><enter>d<esc>u", "relu", "relu", "", "and u brings it back");
    layers_become("<down><enter>]",
                  "    - relu # plain\n    - residual:\n        - "
                  "dropout\n",
                  "    - residual:\n        - dropout\n    - relu # plain\n", "2 relu",
                  "one is moved");
    layers_become("<down><enter>]<enter>[", "relu", "relu", "1 relu",
                  "the list opens at the layer that was moved, which is moved back");
    layers_become("<enter>agelu<enter>", "    - relu # plain\n",
                  "    - gelu\n    - relu # plain\n", "1 gelu",
                  "one is chosen from the list, and stands behind");
    layers_become("<down><enter>imax_pool<enter><ctrl-u>kernel: 2<enter>",
                  "    - relu # plain\n",
                  "    - max_pool2d: {kernel: 2}\n    - relu # plain\n",
                  "1 max_pool2d  kernel: 2", "another before, with its options");
    layers_become("<down><enter>imax_pool<enter><ctrl-u>kernel: x<enter>", "relu",
                  "relu", "expected integer", "options that will not do are not taken");
    layers_become("<enter>aresidual<enter><enter>", "    - relu # plain\n",
                  "    - residual: [identity]\n    - relu # plain\n", "  0 identity",
                  "a way around layers is chosen likewise");
    layers_become("<down><down><down><enter>e<ctrl-u>p: 0.5<enter>", "dropout",
                  "{dropout: {p: 0.5}}", "  0 dropout  p: 0.5",
                  "a layer within gets options");
    layers_become("<enter>e<ctrl-u>out: 4, kernel: 1<enter>", "{out: 8, kernel: 3}",
                  "{out: 4, kernel: 1}", "0 conv2d  out: 4, kernel: 1",
                  "options are changed where they stand");
}

/* What may be a layer: blocks that the recipe has, and no layer within another. */
static void
test_offered(void)
{
    static const char with_block[] = "max_duration: 10ba\n"
                                     "model:\n"
                                     "  name: layers\n"
                                     "  blocks:\n"
                                     "    mine:\n"
                                     "      - relu\n"
                                     "  layers:\n"
                                     "    - mine\n"
                                     "    - residual: [dropout]\n"
                                     "    - linear: {out: 10}\n";
    static const char *const texts[] = {network, with_block};
    for (int i = 0; i < 2; i++) {
        int n = 0;
        struct tui_app *app = open_app(texts[i]);
        if (!compose_go_to(tui_app_state(app, TUI_IN_compose), "model.layers"))
            bail("no layers");
        press(app, "e<enter>a");
        for (const char *at = picture; (at = strstr(at, "a block of this recipe"));
             at++)
            n++;
        if (!is_int(n, i, "%d blocks of the recipe are offered", i))
            diag("\n%s", picture);
        tui_app_free(&app);
    }
}

/* A click, or another thing that the mouse does, on the first TEXT of the picture. */
static void
point(struct tui_app *app, const char *text, int what)
{
    int y = 0;
    const char *line = picture, *at;
    while (!(at = strstr(line, text)) || at > line + strcspn(line, "\n")) {
        line += strcspn(line, "\n");
        if (!*line++)
            bail("no %s in\n%s", text, picture);
        y++;
    }
    const struct tui_mouse m = {.y = y, .x = (int)(at - line), .what = what};
    tui_app_mouse(app, &m);
    picture_draw(app);
}

static void
test_mouse(void)
{
    struct tui_app *app = open_app(recipe);
    const struct compose *c = tui_app_state(app, TUI_IN_compose);
    point(app, "] mixup", TUI_CLICK);
    picture_has("-- mixup (data, vision)", "a click selects an algorithm");
    ok(!eti_sketch_is_on(c->sketch, "mixup"), "and does no more");
    point(app, "] mixup", TUI_CLICK);
    ok(eti_sketch_is_on(c->sketch, "mixup"), "one on the selected row turns it on");
    point(app, "batch_size          4", TUI_CLICK);
    picture_has("-- train_data.batch_size", "a click selects a key");
    point(app, "batch_size          4", TUI_CLICK);
    ok(c->is_editing, "one on the selected row edits it");
    press(app, "<esc>");
    const int row = c->recipe.at;
    point(app, "batch_size          4", TUI_WHEEL_DOWN);
    ok(c->recipe.at > row, "a wheel moves down");
    point(app, "batch_size          4", TUI_WHEEL_UP);
    is_int(c->recipe.at, row, "and up");
    press(app, "?");
    point(app, "redo an edit", TUI_CLICK);
    ok(app->shows_help, "in help a click selects a line");
    tui_app_free(&app);
}

static void
test_paste(void)
{
    char long_text[2 * TUI_FIELD];
    struct tui_app *app = open_app(recipe);
    const struct compose *c = tui_app_state(app, TUI_IN_compose);
    tui_app_paste(app, "0.5");
    picture_draw(app);
    picture_has("nothing is typed here", "what is pasted is no keys");
    press(app, "/lr<enter>e<ctrl-u>");
    tui_app_paste(app, "0.75   ");
    is_str(c->field.text, "0.75", "where something is typed it is, without its end");
    press(app, "<ctrl-u>");
    memset(long_text, '7', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    tui_app_paste(app, long_text);
    picture_draw(app);
    picture_has("what was pasted is too long", "a text that has no room is cut");
    is_int((int64_t)c->field.n, TUI_FIELD - 1, "to what has room");
    tui_app_free(&app);
}

/* A text that is no YAML is mended line by line. */
static void
test_broken(void)
{
    static const char *const line[] = {"model: mlp", "max_duration: [", "seed: 3", ""};
    struct tui_app *app = open_app("model: mlp\nmax_duration: [\nseed: 3\n");
    press(app, "e");
    const struct compose *c = tui_app_state(app, TUI_IN_compose);
    ok(c->is_editing && c->line > 0 && c->line <= 4, "e edits the line with the fault");
    is_str(c->field.text, line[c->line > 0 && c->line <= 4 ? c->line - 1 : 3],
           "as it stands there");
    press(app, "<ctrl-u>max_duration: 5ba<enter>");
    ok(strstr(sketch_of(app)->text, "max_duration: 5ba\n") != NULL, "which is taken");
    tui_app_free(&app);
}

/* Of two alike words of a line the one at the fault is mended. */
static void
test_mend(void)
{
    struct tui_app *app =
        open_app("max_duration: 1ba\n"
                 "model: {name: mlp}\n"
                 "train_data: {name: mnist, path: batch_siz, batch_siz: 4}\n"
                 "optimizer: {name: sgd, lr: 0.1}\n");
    press(app, "m");
    if (!ok(strstr(sketch_of(app)->text, "path: batch_siz, batch_size: 4}") != NULL,
            "m mends the word that the fault is about"))
        diag("\n%s", picture);
    tui_app_free(&app);
}

/* Two faults in a file that the recipe includes, which nothing here mends. */
static void
test_elsewhere(void)
{
    put("base.yaml", "max_duration: 1ba\nmodel: {name: mlp}\n"
                     "train_data: {name: synthetic_images, batch_size: 4}\n"
                     "optimizer: {name: sgd, lr: fast, momentum: slow}\n");
    struct tui_app *app = open_app("include: base.yaml\n");
    const char *other = strstr(picture, " 4 optimizer.momentum: exp");
    int rows = 0;
    for (const char *p = strstr(picture, "fault 1 of 2"); p && p < other; p++)
        rows += *p == '\n';
    const char *file = other;
    for (int back = 0; file && file > picture && back < 3; file--)
        back += file[-1] == '\n';
    ok(other && rows > 3 && strstr(file, "base.yaml") &&
           strstr(file, "base.yaml") < other,
       "the file of a fault is named, and one row further the other fault stands");
    if (!other || rows <= 3)
        diag("%d rows\n%s", rows, picture);
    ok(strstr(picture, "m mends") == NULL && strstr(picture, "m asks") == NULL,
       "and nothing is said to mend them");
    remove("base.yaml");
    tui_app_free(&app);
}

/* As if the estimate had ended with REFUSAL. */
static void
refuse(struct compose *c, const char *refusal)
{
    c->numbers.of = c->sketch->changes;
    c->numbers.is_refused = true;
    tui_job_stop(&c->estimate);
    snprintf(c->numbers.problem, sizeof c->numbers.problem, "%s", refusal);
    compose_list_checks(c);
}

/* The lines that panels are given for checks are those that drawing takes. */
static void
check_lines(const char *text, const char *refusal, const char *name)
{
    struct tui_app *app = open_app(text);
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    const struct tui_pane all = tui_pane_of(&app->grid);
    if (refusal) {
        refuse(c, refusal);
        is_int(c->n_fatal, 1, "%s comes first", name);
    }
    bool all_same = c->n_checks > 0, first_same = c->n_warnings > 0;
    for (int w = 30; w <= 120; w++) {
        const struct tui_pane p = tui_pane_part(&all, 0, 0, all.h, w);
        const int first = compose_first_check_lines(c, w);
        const struct tui_pane one = tui_pane_part(&all, 0, 0, first, w);
        all_same = all_same && compose_draw_checks(c, &p) == compose_check_lines(c, w);
        const struct tui_pane less = tui_pane_part(&all, 0, 0, first - 1, w);
        first_same = first_same && compose_draw_checks(c, &one) == first &&
                     compose_draw_checks(c, &less) == (c->n_fatal ? 0 : first - 1);
    }
    ok(all_same, "%s: as many lines as are drawn, at every width", name);
    ok(first_same, "%s: and for the first alone", name);
    tui_app_free(&app);
}

static void
test_checks(void)
{
    char text[2048];
    snprintf(text, sizeof text, "%s  mixup:\n  cutmix:\n", recipe);
    check_lines(text, NULL, "a warning");
    check_lines(recipe,
                "the batch does not fit: 12 GB are needed and the device has 8 GB",
                "a refusal");
}

/* A warning may be ignored, what forbids the launch not; what this machine lacks does
 * not where another one is to launch. */
static void
test_fatal(void)
{
    char text[2048];
    snprintf(text, sizeof text, "%s  mixup:\n  cutmix:\n", recipe);
    struct tui_app *app = open_app(text);
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    refuse(c, "there is no such device");
    const int n = c->n_warnings;
    ok(n > 1 && c->n_fatal == 1 && compose_is_refused(c), "one refusal, and warnings");
    for (int i = 0; i < n; i++)
        snprintf(c->ignored[c->n_ignored++], sizeof c->ignored[0], "%s",
                 c->check[i].text);
    compose_list_checks(c);
    ok(c->n_warnings == 1 && c->n_fatal == 1 &&
           strstr(c->check[0].text, "there is no such device"),
       "all warnings can be ignored, and the refusal not");
    tui_app_free(&app);
    snprintf(text, sizeof text, "%slaunch: {worker: lab}\n", recipe);
    app = open_app(text);
    c = tui_app_state(app, TUI_IN_compose);
    refuse(c, "there is no such device");
    ok(!compose_is_refused(c) && c->n_fatal == 0,
       "what this machine lacks another one may have");
    tui_app_free(&app);
}

/* The timeline has the events of algorithms that are on. */
static void
test_events(void)
{
    static const char plain[] = "max_duration: 10ba\n"
                                "model: {name: mlp}\n"
                                "train_data: {name: synthetic_images, batch_size: 4}\n"
                                "optimizer: {name: sgd, lr: 0.02}\n";
    static const char *const more[] = {
        "", "algorithms:\n  ema: false\n", "algorithms:\n  mixup:\n",
        "algorithms:\n  mixup:\n  ema: false\n", "algorithms:\n  mixup:\n  ema:\n"};
    int n[5];
    for (int i = 0; i < 5; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", plain, more[i]);
        struct tui_app *app = open_app(text);
        struct compose *c = tui_app_state(app, TUI_IN_compose);
        compose_list_events(c);
        n[i] = c->n_events;
        tui_app_free(&app);
    }
    ok(n[0] == 0 && n[1] == 0, "what is off acts at no event: %d and %d", n[0], n[1]);
    ok(n[2] > 0 && n[3] == n[2] && n[4] > n[2], "what is on acts: %d, %d and %d", n[2],
       n[3], n[4]);
}

/* What the estimate says of checkpoints is of those that the recipe writes. */
static void
test_estimate(void)
{
    static const char *const more[] = {"", "checkpoint: {weights_only: true}\n"};
    static const double want[] = {4e6, 1e6};
    for (int i = 0; i < 2; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s", recipe, more[i]);
        struct tui_app *app = open_app(text);
        struct compose *c = tui_app_state(app, TUI_IN_compose);
        app->config.is_dump = true; /* which waits for jobs */
        compose_tick(app, c);
        ok(c->numbers.is_known && c->numbers.params == 98765, "an estimate is there");
        ok(c->numbers.found.checkpoint_bytes == want[i],
           "with the bytes of a checkpoint: %g", c->numbers.found.checkpoint_bytes);
        app->config.is_dump = false;
        tui_app_free(&app);
    }
}

/* A run that was launched on some GPUs of a worker is looked for at that worker. */
static void
test_launched(void)
{
    static const char *const names[] = {"lab", "lab:0", "lab:0,1", "gone:1"};
    static const char *const argument[] = {"nothing", NULL};
    if (mkdir("conf", 0700) != 0)
        bail("no folder");
    put("conf/workers.yaml", "lab: {address: \"ssh://nowhere.invalid\"}\n");
    chmod("conf/workers.yaml", 0600);
    for (int i = 0; i < 4; i++) {
        struct tui_app *app = open_app(recipe);
        struct compose *c = tui_app_state(app, TUI_IN_compose);
        if (tui_workers_setup(app, "conf") != ET_OK)
            bail("no workers");
        snprintf(c->on, sizeof c->on, "%s", names[i]);
        snprintf(c->run_name, sizeof c->run_name, "calm-yak");
        if (tui_job_start(&c->launch, cx, argument, NULL, 0) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        app->config.is_dump = true;
        compose_tick(app, c);
        app->config.is_dump = false;
        if (i < 3)
            ok(app->screen[app->at]->where == TUI_IN_monitor && app->source &&
                   strcmp(app->source->place, "lab") == 0,
               "a run at '%s' is watched there", names[i]);
        else
            is_str(app->message, "x calm-yak has started, but no worker is called gone",
                   "where the worker is in no list any more that is said");
        tui_app_free(&app);
    }
}

/* Every key that help lists is seen at every height, scrolling where it must. */
static void
test_help(void)
{
    static bool seen[TUI_ACTIONS];
    struct tui_app *app = open_app(recipe);
    int missing = 0;
    for (int rows = 20; rows <= 60; rows++) {
        memset(seen, 0, sizeof seen);
        tui_app_resize(app, rows, 100);
        press(app, "?");
        for (int page = 0; page < 20; page++, press(app, "<PgDn>"))
            for (int i = 0; i < TUI_ACTIONS - 1; i++) {
                const struct tui_binding *b = &tui_bindings[i];
                seen[i] = seen[i] || !b->help || strstr(picture, b->help) ||
                          !tui_binding_holds(&app->config.keys, b, TUI_IN_compose);
            }
        for (int i = 0; i < TUI_ACTIONS - 1; i++)
            if (!seen[i]) {
                missing++;
                diag("%d rows: no '%s'", rows, tui_bindings[i].help);
            }
        press(app, "<esc>");
    }
    is_int(missing, 0, "help shows every key at every height");
    tui_app_free(&app);
}

static void
test_files(void)
{
    char text[2048];
    struct tui_app *app = open_app(recipe);
    press(app, "/lr<enter>e<ctrl-u>0.5<enter>w");
    FILE *f = fopen("r.yaml", "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    is_str(text, sketch_of(app)->text, "w saves the text");
    ok(!eti_sketch_is_changed(sketch_of(app)), "which is no change any more");
    press(app, "/lr<enter>e<ctrl-u>0.25<enter>q");
    picture_has("leave etude", "who leaves with a change is asked");
    ok(!app->leaves, "and does not leave");
    press(app, "<esc>W<ctrl-u>other.yaml<enter>");
    is_str(sketch_of(app)->path, "other.yaml", "W saves under another name");
    press(app, "q");
    ok(app->leaves, "then nothing keeps one");
    app->leaves = false;
    put("other.yaml", "max_duration: 1ba\n");
    press(app, "/lr<enter>e<ctrl-u>0.125<enter>w");
    picture_has("another program", "what another program wrote is not written over");
    tui_app_free(&app);
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-composing.XXXXXX";
    struct et_alloc_stats stats;
    if (argc > 1 && strcmp(argv[1], "estimate") == 0)
        puts("{\"seconds_per_batch\": 0.5, \"peak_bytes\": 1.5e6, \"params\": 98765, "
             "\"checkpoint_bytes\": 4e6, \"weights_bytes\": 1e6}");
    if (argc > 1)
        return 0;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    setenv("XDG_STATE_HOME", directory, 1);
    test_edits();
    test_layers();
    test_offered();
    test_mouse();
    test_paste();
    test_broken();
    test_mend();
    test_elsewhere();
    test_checks();
    test_fatal();
    test_events();
    test_estimate();
    test_launched();
    test_help();
    test_files();
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
