/* SPDX-License-Identifier: Apache-2.0 */
/* network.c: a network that a recipe spells out, as Compose lists it: what is told of
 * each layer, what can be done with one, and what becomes of the text. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/recipe/network.h"
#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/unit/store.h"
#include "tui/compose.h"

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

static const char network[] =
    "max_duration: 10ba\n"
    "model:\n"
    "  name: layers\n"
    "  blocks:\n"
    "    keeps:\n"
    "      - conv2d: {out: $out, kernel: 3, padding: 1, stride: 1, no_bias: true}\n"
    "      - relu\n"
    "  layers:\n"
    "    - conv2d: {out: 8, kernel: 3}\n"
    "    - repeat: {times: 3, layers: [keeps: {out: 8}]}\n"
    "    - residual: {layers: [keeps, relu], shortcut: [conv2d: {out: 8, kernel: 1}]}\n"
    "    - {relu: , as: here}\n"
    "    - keeps\n"
    "    - flatten\n"
    "    - linear: {out: 10}\n"
    "train_data: {name: synthetic_images, batch_size: 4}\n"
    "optimizer: {name: sgd, lr: 0.02}\n";

/* What is told of each layer, what can be done with it, and what is typed for it. */
static void
test_layers(void)
{
    static const struct {
        const char *title, *above, *typed;
        bool first, last, only;
    } rows[] = {
        {"0.conv2d", "convolution of images\nout: 8, kernel: 3\n", "out: 8, kernel: 3",
         .first = true},
        {"1.repeat", "times: 3\n", "3", .last = false},
        {"1.repeat.layers.0.keeps", "out: 8\n", "out: 8", true, true, true},
        {"2.residual", "", NULL, .last = false},
        {"2.residual.layers.0.keeps", "", "", .first = true},
        {"2.residual.layers.1.relu", "max(0, x)\n", NULL, .last = true},
        {"2.residual.shortcut.0.conv2d", "convolution of images\nout: 8, kernel: 1\n",
         "out: 8, kernel: 1", true, true, true},
        {"3.relu", "max(0, x)\n", NULL, .last = false},
        {"4.keeps", "", "", .last = false},
        {"5.flatten", "all axes but the first as one\n", NULL, .last = false},
        {"6.linear", "fully connected layer\nout: 10\n", "out: 10", .last = true},
    };
    struct tui_app *app = open_app(network);
    struct compose *c = state_of(app);
    go_to(app, "model.layers");
    press(app, "e");
    is_str(box_of(app),
           "0 conv2d  out: 8, kernel: 3\n"
           "1 repeat  times: 3\n"
           "  0 keeps  out: 8\n"
           "2 residual\n"
           "  0 keeps\n"
           "  1 relu\n"
           "  shortcut 0 conv2d  out: 8, kernel: 1\n"
           "3 relu  as here\n"
           "4 keeps\n"
           "5 flatten\n"
           "6 linear  out: 10\n"
           "the block keeps\n"
           "  0 conv2d  out: \"$out\", kernel: 3, padding: 1, st..\n"
           "  1 relu\n",
           "layers, with their options as far as there is room");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[512];
        compose_pick_layers(c, NULL);
        app->popup.list.at = (int)i;
        press(app, "<enter>");
        snprintf(want, sizeof want, "model.layers.%s", rows[i].title);
        is_str(app->popup.title, want, "one is chosen");
        snprintf(want, sizeof want,
                 "%sits options%s\na layer behind it\na layer before it\n"
                 "move it up%s\nmove it down%s\ntake it out%s\n",
                 rows[i].above, rows[i].typed ? "" : " - it has none",
                 rows[i].first ? " - it is the first" : "",
                 rows[i].last ? " - it is the last" : "",
                 rows[i].only ? " - a list has one layer at least" : "");
        is_str(box_of(app), want, "with what can be done with it");
        press(app, "e");
        is_int(app->popup.kind, rows[i].typed ? TUI_PROMPT : TUI_MENU,
               "its options are asked for where it has some");
        if (rows[i].typed)
            is_str(app->popup.field.text, rows[i].typed, "as they are");
        press(app, "<esc>");
    }
    tui_app_free(&app);
}

/* KEYS where the list of layers is open make NEW of OLD, and the list opens at AT. */
static void
layers_become(const char *keys, const char *old, const char *new, int at,
              const char *name)
{
    char want[2048];
    struct tui_app *app = open_app(network);
    const char *was = strstr(network, old);
    if (!was)
        bail("no %s", old);
    snprintf(want, sizeof want, "%.*s%s%s", (int)(was - network), network, new,
             was + strlen(old));
    go_to(app, "model.layers");
    press(app, "e");
    press(app, keys);
    is_str(text_in(app), want, "%s", name);
    is_int(app->popup.list.at, at, "and the list opens there");
    tui_app_free(&app);
}

static void
test_layer_changes(void)
{
    layers_become("<down><enter>e<ctrl-u>5<enter>", "times: 3", "times: 5", 1,
                  "a repeat is typed as a number");
    layers_become("<down><down><enter>e<ctrl-u>out: 4<enter>", "[keeps: {out: 8}]",
                  "[keeps: {out: 4}]", 2, "a block's options in braces");
    layers_become("<down><down><enter>e<ctrl-u><enter>", "[keeps: {out: 8}]",
                  "[keeps: {}]", 2, "or none of them");
    layers_become(
        "<down><down><down><down><down><down><down><down><down><down><enter>[",
        "    - flatten\n    - linear: {out: 10}\n",
        "    - linear: {out: 10}\n    - flatten\n", 9,
        "a layer that is moved up is where the list opens");
    layers_become("<enter>akeeps<enter>out: 3<enter>", "    - repeat: {times",
                  "    - keeps: {out: 3}\n    - repeat: {times", 1,
                  "a block is put behind, with its options");
    layers_become("<enter>iflatten<enter>", "    - conv2d: {out: 8, kernel: 3}\n",
                  "    - flatten\n    - conv2d: {out: 8, kernel: 3}\n", 0,
                  "a layer before, without any");
    struct tui_app *app = open_app(network);
    go_to(app, "model.layers");
    press(app, "e<enter>aconv2d<enter>");
    is_str(app->popup.field.text, "out: ", "what is needed is there to be filled in");
    is_str(app->popup.title, "conv2d: its options", "of a layer its options");
    is_str(app->popup.line[0], "out        output channels; needed",
           "those that are needed come first");
    is_str(app->popup.line[2], "kernel     filter height and width; else 3",
           "the others with what holds else");
    press(app, "<esc>");
    static const struct {
        const char *name, *title;
    } others[] = {
        {"repeat", "repeat: what stands behind it"},
        {"keeps", "keeps: the options of this block"},
        {"from", "from: what stands behind it"},
    };
    for (int i = 0; i < 3; i++) {
        char keys[64];
        const struct eti_network_word *word = eti_network_word_find(others[i].name);
        compose_pick_layers(state_of(app), NULL);
        snprintf(keys, sizeof keys, "<enter>a%s<enter>", others[i].name);
        press(app, keys);
        is_str(app->popup.title, others[i].title, "what %s needs is asked for",
               others[i].name);
        is_str(app->popup.field.text,
               word     ? word->example
               : i == 2 ? "input"
                        : "",
               "beginning with an example");
        press(app, "<esc>");
    }
    tui_app_free(&app);

    /* A network that was right, and is not. */
    app = open_app("max_duration: 10ba\n"
                   "model:\n"
                   "  name: layers\n"
                   "  layers:\n"
                   "    - flatten\n"
                   "    - {relu: , as: here}\n"
                   "    - linear: {out: 10}\n"
                   "    - add: here\n"
                   "train_data: {name: synthetic_images, batch_size: 4}\n"
                   "optimizer: {name: sgd, lr: 0.02}\n");
    go_to(app, "model.layers");
    press(app, "e<down><down><down><enter>d");
    is_str(app->message, "! nothing reads 'here'; u takes it back",
           "a change that makes it wrong is told");
    press(app, "<esc>");
    tui_app_free(&app);
}

/* Shapes are told of the text that they are of. */
static void
test_shapes(void)
{
    struct tui_app *app = open_app(network);
    struct compose *c = state_of(app);
    c->layers.shapes = json_pack("[{s:s, s:[i]}, {s:s, s:[i, i, i]}, {s:s, s:[i]}]",
                                 "path", "00", "shape", 5, "path", "0", "shape", 8, 26,
                                 24, "path", "5", "shape", 99);
    c->layers.of = c->sketch->changes;
    go_to(app, "model.layers");
    press(app, "e");
    is_str(app->popup.item[0].note, "8 x 26 x 24", "a layer has its shape");
    is_str(app->popup.item[1].note, "", "none where it is not known");
    is_str(app->popup.item[9].note, "99", "wherever the layer stands");
    c->layers.of--;
    picture_draw(app);
    is_str(app->popup.item[0].note, "", "that of another text is none");
    c->layers.of++;
    picture_draw(app);
    is_str(app->popup.item[0].note, "8 x 26 x 24", "it comes while the list is open");
    ok(app->popup.n_lines == 0, "without a word above");
    c->numbers.of = c->sketch->changes;
    c->numbers.is_refused = true;
    snprintf(c->numbers.problem, sizeof c->numbers.problem, "no such data");
    picture_draw(app);
    is_str(app->popup.line[0], "x no such data", "or why it does not come");
    press(app, "<enter>");
    ok(strstr(box_of(app), "gives 8 x 26 x 24\n") != NULL, "one that is chosen has it");
    press(app, "<esc>");
    tui_app_free(&app);
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-network.XXXXXX";
    struct et_alloc_stats stats;
    (void)argv;
    if (argc > 1) /* an estimate is asked for */
        return 70;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    setenv("XDG_STATE_HOME", directory, 1);
    test_layers();
    test_layer_changes();
    test_shapes();
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
