/* SPDX-License-Identifier: Apache-2.0 */
/* drafts.c: a recipe while it is written: what is kept of texts with faults, what undo
 * says, which comments stay, what comes back where; layers and forms with all that they
 * say of each line. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/compose/form.h"
#include "core/compose/layers.h"
#include "core/compose/sketch.h"
#include "core/compose/timeline.h"
#include "etude/ctx.h"
#include "etude/state.h"
#include "t/tap.h"

static struct et_ctx *cx;

#define LEAST                                                                          \
    "max_duration: 2ep\nmodel: lenet\n"                                                \
    "train_data: {name: synthetic_images, batch_size: 8}\n"

static struct eti_sketch *
sketch_of(const char *text)
{
    struct eti_sketch *d;
    if (eti_sketch_new(cx, NULL, &d) != ET_OK ||
        eti_sketch_begin(d, text, strlen(text), "r.yaml") != ET_OK)
        bail("no sketch");
    return d;
}

static void
must(et_status status, const char *what)
{
    if (status != ET_OK)
        bail("%s: %s", what, et_error_get(cx)->message);
}

/* ---- faults ---- */

static void
test_faults(void)
{
    struct eti_sketch *d = sketch_of(LEAST "seed: 1\n");
    const char *what;
    int changes = d->changes;
    must(eti_sketch_set(d, "seed", "2"), "set");
    must(eti_sketch_set(d, "seed", "3"), "set");
    is_int(d->changes - changes, 2, "each change is counted");
    must(eti_sketch_set(d, "seed", "x"), "set");
    must(eti_sketch_set(d, "max_duration", "y"), "set");
    is_int(d->errors.total, 2, "a text with two mistakes has two faults");
    ok(d->last && eti_sketch_shown(d) == d->last && d->last->seed == 3,
       "and the last text without any is shown");
    must(eti_sketch_undo(d, &what), "undo");
    is_int(d->errors.total, 1, "one that is mended is none any more");
    ok(eti_sketch_shown(d) == d->last && d->last->seed == 3, "which changes nothing");
    must(eti_sketch_undo(d, &what), "undo");
    ok(eti_sketch_is_valid(d) && eti_sketch_shown(d) == d->recipe && !d->last,
       "without faults the text itself is shown");
    must(eti_sketch_set(d, "seed", "4"), "set");
    ok(eti_sketch_shown(d)->seed == 4, "also after the next change");

    must(eti_sketch_set(d, "seed", "x"), "set");
    must(eti_sketch_put_place(d, "/tmp/r.yaml"), "place");
    must(eti_sketch_begin(d, "seed: z\n", 8, "other"), "begin");
    ok(!d->last && eti_sketch_shown(d) == d->recipe && d->errors.total > 0 &&
           strcmp(d->name, "other") == 0 && !eti_sketch_place(d),
       "of the text before nothing is left when another is begun");
    ok(eti_sketch_undo(d, &what) == ET_OK && !what &&
           eti_sketch_redo(d, &what) == ET_OK && !what &&
           strcmp(d->text, "seed: z\n") == 0,
       "nor does undo lead back to it");
    eti_sketch_free(&d);

    d = sketch_of(LEAST "algorithms:\n  ema: {half_life: 2ba, smoothing: 0.9}\n");
    is_str(d->errors.v[0].path, "algorithms.ema", "a fault of an algorithm is its");
    eti_sketch_free(&d);
    must(eti_sketch_new(cx, NULL, &d), "new");
    ok(!eti_sketch_is_changed(d), "a text that is empty and new is not changed");
    must(eti_sketch_begin(d, "seed: 1\n", 8, "x"), "begin");
    ok(eti_sketch_is_changed(d), "one that is not empty is");
    eti_sketch_free(&d);
}

/* ---- what undo says ---- */

static void
test_names(void)
{
    static const char *const names[] = {"train_data.batch_size 16",
                                        "optimizer adamw",
                                        "optimizer.lr 0.25",
                                        "optimizer.lr: default",
                                        "ema on",
                                        "line 1",
                                        "blurpool on",
                                        "blurpool moved up",
                                        "blurpool moved down"};
    enum { N = sizeof names / sizeof *names };
    struct eti_sketch *d = sketch_of(LEAST "optimizer: {name: sgd}\n");
    const char *what;
    must(eti_sketch_set(d, "train_data.batch_size", "16"), "set");
    must(eti_sketch_choose(d, "optimizer", ET_KIND_OPTIMIZER, "adamw"), "choose");
    must(eti_sketch_set(d, "optimizer.lr", "0.25"), "set");
    must(eti_sketch_default(d, "optimizer.lr"), "default");
    must(eti_sketch_toggle(d, "ema"), "toggle");
    must(eti_sketch_put_line(d, 1, "max_duration: 3ep"), "line");
    must(eti_sketch_put_line(d, 1, "max_duration: 3ep"), "line");
    must(eti_sketch_toggle(d, "blurpool"), "toggle");
    must(eti_sketch_move(d, "blurpool", -1), "move");
    must(eti_sketch_move(d, "blurpool", 1), "move");
    for (int i = N - 1; i >= 0; i--) {
        must(eti_sketch_undo(d, &what), "undo");
        is_str(what, names[i], "undo says what it undoes");
    }
    for (int i = 0; i < N; i++) {
        must(eti_sketch_redo(d, &what), "redo");
        is_str(what, names[i], "redo says what it does again");
    }
    for (int i = 0; i < 3; i++)
        must(eti_sketch_undo(d, &what), "undo");
    must(eti_sketch_set(d, "seed", "5"), "set");
    ok(eti_sketch_redo(d, &what) == ET_OK && !what,
       "behind a change nothing that was undone can be done again");
    must(eti_sketch_undo(d, &what), "undo");
    is_str(what, "seed 5", "undo takes the change back");
    must(eti_sketch_undo(d, &what), "undo");
    is_str(what, "line 1", "and then the one that had stood before it");
    eti_sketch_free(&d);
}

/* ---- comments ---- */

static void
test_comments(void)
{
    static const struct {
        const char *was, *is;
    } rows[] = {
        {"{name: mlp, weights: 'a # b', hidden: 16}  # note",
         "{name: lenet, weights: 'a # b'}"},
        {"{name: mlp, weights: \"it's # b\", hidden: 16}  # note",
         "{name: lenet, weights: \"it's # b\"}"},
        {"{name: mlp, weights: it's, hidden: 16}  # note",
         "{name: lenet, weights: it's}"},
        {"{name: mlp, weights: a#b, hidden: 16}\t# note",
         "{name: lenet, weights: a#b}"},
        {"\n  # above\n  name: mlp  # note\n  # it stays\n  weights: w  # stays, too\n"
         "  hidden: 16  # goes\n  # below",
         "\n  # above\n  name: lenet\n  # it stays\n  weights: w  # stays, too\n"
         "  # below"},
        {"\n  hidden: 16  # goes\n  name: mlp\n  layers: 2  # goes, too\n  weights: w",
         "\n  name: lenet\n  weights: w"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char was[512], is[512];
        snprintf(was, sizeof was, "seed: 1  # first\nmodel: %s\nmax_duration: 2ep\n",
                 rows[i].was);
        snprintf(is, sizeof is, "seed: 1  # first\nmodel: %s\nmax_duration: 2ep\n",
                 rows[i].is);
        struct eti_sketch *d = sketch_of(was);
        must(eti_sketch_choose(d, "model", ET_KIND_MODEL, "lenet"), "choose");
        is_str(d->text, is,
               "another model keeps what is of all, and the comments of what stays");
        eti_sketch_free(&d);
    }
    struct eti_sketch *d = sketch_of(
        "model:\n  name: layers\n  layers:  # goes\n  # stays\n  - relu  # goes\n"
        "  - linear:  # goes\n      out: 8  # goes\n      # stays, too\n      bias: "
        "false"
        "  # goes\nseed: 1  # last\n"
        "optimizer: {name: sgd, momentum: .5, groups: [{match: bias}]}\n");
    must(eti_sketch_choose(d, "model", ET_KIND_MODEL, "lenet"), "choose");
    must(eti_sketch_choose(d, "optimizer", ET_KIND_OPTIMIZER, "adamw"), "choose");
    is_str(d->text,
           "model:\n  name: lenet\n  # stays\n  # stays, too\nseed: 1  # last\n"
           "optimizer: {name: adamw, groups: [{match: bias}]}\n",
           "of what goes with all of its lines the lines of comment alone stay");
    eti_sketch_free(&d);
}

/* ---- off and on ---- */

#define THREE                                                                          \
    "algorithms:\n  ema:  # first\n  mixup:  # second\n    # softly\n    alpha: 0.3\n" \
    "  sam:\n"

static void
test_back(void)
{
    const char *what;
    struct eti_sketch *d = sketch_of(LEAST THREE);
    must(eti_sketch_toggle(d, "mixup"), "off");
    must(eti_sketch_set(d, "max_duration", "1000ep"), "set");
    must(eti_sketch_set(d, "train_data.batch_size", "1024"), "set");
    must(eti_sketch_undo(d, &what), "undo");
    must(eti_sketch_undo(d, &what), "undo");
    must(eti_sketch_redo(d, &what), "redo");
    must(eti_sketch_undo(d, &what), "undo");
    must(eti_sketch_toggle(d, "mixup"), "on");
    is_str(d->text, LEAST THREE, "changes before it, undone, move nothing");
    must(eti_sketch_toggle(d, "mixup"), "off");
    must(eti_sketch_set(d, "max_duration", "9ba"), "set");
    must(eti_sketch_set(d, "seed", "7"), "set");
    must(eti_sketch_toggle(d, "mixup"), "on");
    is_str(d->text,
           "max_duration: 9ba\nmodel: lenet\n"
           "train_data: {name: synthetic_images, batch_size: 8}\n" THREE "seed: 7\n",
           "changes before and behind it leave it its place");
    eti_sketch_free(&d);

    d = sketch_of(LEAST "algorithms:\n  ema:\n  mixup: {alpha: 0.3}\n  sam:\n");
    must(eti_sketch_toggle(d, "mixup"), "off");
    must(eti_sketch_move(d, "sam", -1), "move");
    must(eti_sketch_toggle(d, "mixup"), "on");
    is_str(d->text + strlen(LEAST),
           "algorithms:\n  sam:\n  ema:\n  mixup: {alpha: 0.3}\n",
           "one comes back behind the one that stood before it");
    must(eti_sketch_set(d, "algorithms.mixup.alpha", "0.5"), "set");
    must(eti_sketch_toggle(d, "mixup"), "off");
    must(eti_sketch_toggle(d, "ema"), "off");
    must(eti_sketch_toggle(d, "mixup"), "on");
    is_str(d->text + strlen(LEAST), "algorithms:\n  sam:\n  mixup: {alpha: 0.5}\n",
           "last where that has gone, with the options that it had last");
    must(eti_sketch_toggle(d, "sam"), "off");
    must(eti_sketch_toggle(d, "blurpool"), "on");
    must(eti_sketch_move(d, "blurpool", -1), "move");
    must(eti_sketch_toggle(d, "sam"), "on");
    is_str(d->text + strlen(LEAST),
           "algorithms:\n  sam:\n  blurpool:\n  mixup: {alpha: 0.5}\n",
           "one that was the first is the first again");
    eti_sketch_free(&d);

    d = sketch_of(LEAST "algorithms: {ema: {half_life: 3ba}, mixup: {alpha: 0.25}}\n");
    must(eti_sketch_toggle(d, "ema"), "off");
    must(eti_sketch_put_line(d, 4, "algorithms:\n  mixup: {alpha: 0.25}"), "line");
    must(eti_sketch_toggle(d, "ema"), "on");
    is_str(d->text + strlen(LEAST),
           "algorithms:\n  ema: {half_life: 3ba}\n  mixup: {alpha: 0.25}\n",
           "where the list is written otherwise it has its options all the same");
    ok(eti_sketch_is_on(d, "ema") && !eti_sketch_is_on(d, "sam"), "and is on");
    must(eti_sketch_set(d, "algorithms.ema", "false"), "set");
    ok(!eti_sketch_is_on(d, "ema"), "one that the text says is off is off");
    eti_sketch_free(&d);
}

static void
put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) == EOF || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* What another file of the recipe says. */
static void
test_included(void)
{
    struct eti_sketch *d;
    put_file("rest.yaml", "algorithms: {ema: {half_life: 4ba}}\n");
    put_file("r.yaml", "include: rest.yaml\n" LEAST);
    must(eti_sketch_new(cx, NULL, &d), "new");
    must(eti_sketch_open(d, "r.yaml"), "open");
    ok(eti_sketch_is_valid(d) && eti_sketch_is_on(d, "ema"),
       "an algorithm of a file that is included is on");
    must(eti_sketch_toggle(d, "ema"), "off");
    ok(eti_sketch_is_valid(d) && !eti_sketch_is_on(d, "ema") &&
           strstr(d->text, "ema: false"),
       "it is turned off in the recipe");
    must(eti_sketch_toggle(d, "ema"), "on");
    ok(eti_sketch_is_on(d, "ema"), "and on again");
    if (mkdir("below", 0700) != 0)
        bail("no folder");
    must(eti_sketch_put_place(d, "/nowhere/r.yaml"), "place");
    is_str(eti_sketch_place(d), "r.yaml", "paths begin beside the file that it has");
    must(eti_sketch_save(d, "below/r.yaml", false), "save");
    ok(!eti_sketch_is_valid(d) && strcmp(eti_sketch_place(d), "below/r.yaml") == 0,
       "saved elsewhere it includes what is there");
    put_file("below/r.yaml", "seed: 1\n");
    ok(eti_sketch_save(d, NULL, false) == ET_ECANCELED, "the new file is looked at");
    et_error_clear(cx);
    must(eti_sketch_save(d, "r.yaml", true), "save");
    ok(eti_sketch_is_valid(d) && !eti_sketch_is_changed(d), "saved back it is right");
    char *copy = strdup(d->text);
    must(eti_sketch_begin(d, copy, d->n, "y"), "begin");
    ok(eti_sketch_is_changed(d), "begun anew with as many letters it is in no file");
    free(copy);
    unlink("below/r.yaml");
    rmdir("below");
    unlink("r.yaml");
    unlink("rest.yaml");
    eti_sketch_free(&d);
}

/* ---- layers ---- */

static const char network[] =
    "max_duration: 2ep\n"
    "model:\n"
    "  name: layers\n"
    "  layers:\n"
    "  - {conv2d: {out: 4, kernel: 3}, as: low}\n"
    "  - relu\n"
    "  - repeat: {times: 3, layers: [relu, {linear: {out: 7}}]}\n"
    "  - residual:\n"
    "      layers: [{linear: {out: 8}}, relu]\n"
    "      shortcut: [{linear: {out: 9}}]\n"
    "  - residual: [relu]\n"
    "  - body\n"
    "  - {add: [low], from: low}\n"
    "  - {from: low}\n"
    "  blocks:\n"
    "    body: [relu, {residual: [relu, flatten]}]\n"
    "train_data: {name: synthetic_images, batch_size: 8}\n";

static const char *
lines_of(const struct eti_sketch *d)
{
    static char text[4096];
    static struct eti_layer_line line[32];
    size_t n = 0;
    int lines = eti_layer_lines(d, line, 32);
    text[0] = '\0';
    for (int i = 0; i < lines; i++)
        n += (size_t)snprintf(
            text + n, sizeof text - n, "%s|%s %d/%d^%d %s|%s|%s|%s%s%s\n", line[i].path,
            line[i].list, line[i].at, line[i].n, line[i].depth, line[i].name,
            line[i].options, line[i].as, line[i].module, line[i].is_text ? " text" : "",
            line[i].has_layers ? " layers" : "");
    return text;
}

static void
find_line(const struct eti_sketch *d, const char *path, struct eti_layer_line *out)
{
    static struct eti_layer_line line[32];
    int n = eti_layer_lines(d, line, 32);
    for (int i = 0; i < n; i++)
        if (strcmp(line[i].path, path) == 0) {
            *out = line[i];
            return;
        }
    bail("no layer %s", path);
}

static void
test_layers(void)
{
    struct eti_sketch *d = sketch_of(network);
    struct eti_layer_line line;
    is_str(lines_of(d),
           "model.layers.0|model.layers 0/8^0 conv2d|out: 4, kernel: 3|low|0\n"
           "model.layers.1|model.layers 1/8^0 relu|||1 text\n"
           "model.layers.2|model.layers 2/8^0 repeat|times: 3||2 layers\n"
           "model.layers.2.repeat.layers.0|model.layers.2.repeat.layers 0/2^1 "
           "relu|||2.0.0 text\n"
           "model.layers.2.repeat.layers.1|model.layers.2.repeat.layers 1/2^1 "
           "linear|out: 7||2.0.1\n"
           "model.layers.3|model.layers 3/8^0 residual|||3 layers\n"
           "model.layers.3.residual.layers.0|model.layers.3.residual.layers 0/2^1 "
           "linear|out: 8||3.residual.0\n"
           "model.layers.3.residual.layers.1|model.layers.3.residual.layers 1/2^1 "
           "relu|||3.residual.1 text\n"
           "model.layers.3.residual.shortcut.0|model.layers.3.residual.shortcut 0/1^1 "
           "linear|out: 9||3.shortcut.0\n"
           "model.layers.4|model.layers 4/8^0 residual|||4 layers\n"
           "model.layers.4.residual.0|model.layers.4.residual 0/1^1 "
           "relu|||4.residual.0 text\n"
           "model.layers.5|model.layers 5/8^0 body|||5 text\n"
           "model.layers.6|model.layers 6/8^0 add|[low]||6\n"
           "model.layers.7|model.layers 7/8^0 from|low||7\n"
           "| 0/0^0 body|||\n"
           "model.blocks.body.0|model.blocks.body 0/2^1 relu||| text\n"
           "model.blocks.body.1|model.blocks.body 1/2^1 residual||| layers\n"
           "model.blocks.body.1.residual.0|model.blocks.body.1.residual 0/2^2 relu||| "
           "text\n"
           "model.blocks.body.1.residual.1|model.blocks.body.1.residual 1/2^2 "
           "flatten||| text\n",
           "all that is said of each layer");
    eti_sketch_free(&d);

    d = sketch_of(LEAST);
    is_str(lines_of(d), "", "a model with a name of its own has none");
    eti_sketch_free(&d);
    d = sketch_of("model:\n  name: layers\n  layers:\n  - relu\n  - flatten\n"
                  "  - {linear: {out: 8}}\n");
    must(eti_sketch_insert_layer(d, "model.layers", 1, "linear", "{out: 5}"), "insert");
    must(eti_sketch_insert_layer(d, "model.layers", 0, "tanh", ""), "insert");
    is_str(d->text,
           "model:\n  name: layers\n  layers:\n  - tanh\n  - relu\n"
           "  - linear: {out: 5}\n  - flatten\n  - {linear: {out: 8}}\n",
           "layers are put in where it was said, with their options");
    find_line(d, "model.layers.1", &line);
    must(eti_sketch_set_layer(d, &line, "{a: 1}"), "set");
    find_line(d, "model.layers.4", &line);
    must(eti_sketch_set_layer(d, &line, "{out: 6}"), "set");
    must(eti_sketch_move_layer(d, &line, -1), "move");
    ok(eti_sketch_move_layer(d, &line, 1) == ET_ENOENT &&
           strcmp(et_error_get(cx)->message,
                  "linear is the last of its list already") == 0,
       "the last does not move down");
    et_error_clear(cx);
    find_line(d, "model.layers.0", &line);
    ok(eti_sketch_move_layer(d, &line, -1) == ET_ENOENT &&
           strcmp(et_error_get(cx)->message, "tanh is the first of its list already") ==
               0,
       "nor the first up");
    et_error_clear(cx);
    must(eti_sketch_remove_layer(d, &line), "remove");
    is_str(d->text,
           "model:\n  name: layers\n  layers:\n  - {relu: {a: 1}}\n"
           "  - linear: {out: 5}\n  - {linear: {out: 6}}\n  - flatten\n",
           "they are changed, moved and taken out");
    static const char *const names[] = {"tanh taken out", "linear moved up"};
    for (int i = 0; i < 2; i++) {
        const char *what;
        must(eti_sketch_undo(d, &what), "undo");
        is_str(what, names[i], "which undo says");
    }
    eti_sketch_free(&d);

    d = sketch_of("model:\n  name: layers\n  layers:\n  - relu\n  - flatten\n"
                  "  - tanh\n");
    find_line(d, "model.layers.1", &line);
    must(eti_sketch_move_layer(d, &line, 1), "move");
    is_str(d->text,
           "model:\n  name: layers\n  layers:\n  - relu\n  - tanh\n  - flatten\n",
           "the last but one is moved behind the last");
    eti_sketch_free(&d);

    d = sketch_of("model: {name: layers, layers: [relu, flatten]}\n");
    find_line(d, "model.layers.0", &line);
    must(eti_sketch_remove_layer(d, &line), "remove");
    find_line(d, "model.layers.0", &line);
    is_int(eti_sketch_remove_layer(d, &line), ET_EINVAL, "the only layer stays");
    et_error_clear(cx);
    eti_sketch_free(&d);

    const struct et_component *linear = et_registry_find(NULL, ET_KIND_LAYER, "linear");
    static const struct {
        const char *options, *says;
    } tries[] = {{"{out: 4}", NULL},
                 {"", "key 'out' is missing"},
                 {"{out: four}", "out: expected"},
                 {"{out: 4, wide: 1}", "unknown key"}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        et_status status = eti_layer_try(cx, linear, tries[i].options);
        const char *said = et_error_get(cx)->message;
        ok(tries[i].says ? status == ET_EINVAL && strstr(said, tries[i].says)
                         : status == ET_OK,
           "linear: %s: %s", tries[i].options, said);
        et_error_clear(cx);
    }
}

/* ---- forms ---- */

/* Rows that the recipe sets and sections that say something: "path (section) depth
 * value @line:column, + where it is set". */
static void
test_forms(void)
{
    static char text[8192];
    size_t n = 0;
    struct eti_form f;
    struct eti_sketch *d =
        sketch_of("max_duration: 2ep\n"
                  "model: {name: mlp, hidden: 0x10}\n"
                  "train_data: {name: synthetic_images, batch_size: 8}\n"
                  "optimizer:\n  name: sgd\n  lr: 1.0e-1\n  groups:\n"
                  "  - {match: bias, scheduler: constant}\n"
                  "scheduler: [{name: cosine, alpha_f: .5}]\n"
                  "checkpoint:\n  keep: 2\n  name: \"e{epoch}\"\n"
                  "callbacks:\n  lr_monitor: \n  early_stopper: {monitor: Accuracy}\n"
                  "  speed_monitor: false\n"
                  "launch: {nproc: 2}\n");
    must(eti_form_of_recipe(cx, d->recipe, &f), "form");
    for (int i = 0; i < f.n; i++) {
        const struct eti_form_row *r = &f.row[i];
        if (r->is_set || (r->is_section && *r->value))
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "%s (%s) %d %s @%d:%d%s%s\n", r->path,
                                  r->parent >= 0 ? f.row[r->parent].path : "", r->depth,
                                  r->value, r->line, r->column, r->is_set ? " +" : "",
                                  r->is_section ? " section" : "");
    }
    is_str(text,
           "max_duration () 0 2ep @1:15 +\n"
           "model () 0 mlp @2:8 + section\n"
           "model.name (model) 1 mlp @2:15 +\n"
           "model.hidden (model) 1 0x10 @2:28 +\n"
           "train_data () 0 synthetic_images @3:13 + section\n"
           "train_data.name (train_data) 1 synthetic_images @3:20 +\n"
           "train_data.batch_size (train_data) 1 8 @3:50 +\n"
           "optimizer () 0 sgd @5:3 + section\n"
           "optimizer.name (optimizer) 1 sgd @5:9 +\n"
           "optimizer.lr (optimizer) 1 1.0e-1 @6:7 +\n"
           "optimizer.groups (optimizer) 1 bias @8:3 + section\n"
           "optimizer.groups.0.name (optimizer.groups) 2 group @8:5 +\n"
           "optimizer.groups.0.match (optimizer.groups.0.name) 3 bias @8:13 +\n"
           "optimizer.groups.0.scheduler (optimizer.groups.0.name) 3 constant @8:30 + "
           "section\n"
           "optimizer.groups.0.scheduler.0.name (optimizer.groups.0.scheduler) 4 "
           "constant @8:30 +\n"
           "scheduler () 0 cosine @9:12 + section\n"
           "scheduler.0.name (scheduler) 1 cosine @9:20 +\n"
           "scheduler.0.alpha_f (scheduler.0.name) 2 .5 @9:37 +\n"
           "callbacks () 0 memory_monitor, runtime_estimator, lr_monitor, "
           "early_stopper @14:3 + section\n"
           "callbacks.lr_monitor (callbacks) 1 {} @14:3 +\n"
           "callbacks.early_stopper (callbacks) 1 monitor Accuracy @15:18 + section\n"
           "callbacks.early_stopper.monitor (callbacks.early_stopper) 2 Accuracy "
           "@15:28 +\n"
           "callbacks.speed_monitor (callbacks) 1 false @16:18 +\n"
           "loggers () 0 jsonl @0:0 section\n"
           "checkpoint () 0 keep 2, name \"e{epoch}\" @11:3 + section\n"
           "checkpoint.keep (checkpoint) 1 2 @11:9 +\n"
           "checkpoint.name (checkpoint) 1 \"e{epoch}\" @12:9 +\n"
           "launch () 0 nproc 2 @17:9 + section\n"
           "launch.nproc (launch) 1 2 @17:17 +\n",
           "all that is said of each row");
    eti_form_release(&f);
    eti_sketch_free(&d);

    text[0] = '\0';
    n = 0;
    d = sketch_of(LEAST "algorithms:\n  cutout: \n  ema:\n    half_life: 7ba\n");
    must(eti_form_of_algorithm(cx, d->recipe,
                               et_registry_find(NULL, ET_KIND_ALGORITHM, "ema"), &f),
         "form");
    for (int i = 0; i < f.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %s %s @%d:%d %d %d%s\n",
                              f.row[i].path, f.row[i].label, f.row[i].value,
                              f.row[i].line, f.row[i].column, f.row[i].depth,
                              f.row[i].parent, f.row[i].is_set ? " +" : "");
    is_str(text,
           "algorithms.ema.half_life half_life 7ba @7:16 0 -1 +\n"
           "algorithms.ema.smoothing smoothing null @0:0 0 -1\n"
           "algorithms.ema.ema_start ema_start 0dur @0:0 0 -1\n"
           "algorithms.ema.update_interval update_interval null @0:0 0 -1\n",
           "and of an algorithm's");
    eti_form_release(&f);
    eti_sketch_free(&d);
}

/* ---- the order of algorithms ---- */

static void
last_first(struct et_algorithm **list, int n, enum et_event event)
{
    (void)event;
    struct et_algorithm *last = list[n - 1];
    memmove(list + 1, list, sizeof *list * (size_t)(n - 1));
    list[0] = last;
}

static void
turns_are(int passes, int algorithms, enum et_event event, const char *want)
{
    static const struct et_pass pass = {.name = "last_first", .run = last_first};
    const struct et_pass *list[] = {&pass};
    const struct et_algorithm_class *all[] = {
        et_algorithm_find("mixup"), et_algorithm_find("ema"),
        et_algorithm_find("blurpool"), et_algorithm_find("progressive_resizing"),
        et_algorithm_find("selective_backprop")};
    struct eti_turn t[5];
    char text[512] = "";
    size_t at = 0;
    int n;
    must(eti_timeline_with(cx, list, passes, all, algorithms, event, t, &n),
         "timeline");
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s (%s) ",
                               all[t[i].who]->info.name, t[i].reason);
    is_str(text, want, "%d algorithms at %s, %d passes", algorithms,
           et_event_name(event), passes);
}

static void
test_turns(void)
{
    turns_are(0, 5, ET_EVENT_INIT, "blurpool () ema (after the model is complete) ");
    turns_are(1, 5, ET_EVENT_INIT,
              "ema (by a plugin's pass) blurpool (by a plugin's pass) ");
    turns_are(0, 5, ET_EVENT_AFTER_DATALOADER,
              "selective_backprop (before all others) progressive_resizing (reverse "
              "order) ");
    turns_are(1, 5, ET_EVENT_AFTER_DATALOADER,
              "progressive_resizing (by a plugin's pass) selective_backprop (by a "
              "plugin's pass) ");
    turns_are(0, 4, ET_EVENT_AFTER_DATALOADER, "progressive_resizing () ");
    turns_are(1, 4, ET_EVENT_AFTER_DATALOADER, "progressive_resizing () ");
    turns_are(0, 5, ET_EVENT_BATCH_END, "ema () ");
}

int
main(void)
{
    char folder[] = "/tmp/etude-drafts.XXXXXX";
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder) || chdir(folder) != 0)
        bail("no context or folder");
    test_faults();
    test_names();
    test_comments();
    test_back();
    test_included();
    test_layers();
    test_forms();
    test_turns();
    if (chdir("/") != 0 || rmdir(folder) != 0)
        ok(false, "%s is left with nothing", folder);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
