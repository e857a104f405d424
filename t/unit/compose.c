/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe while it is being written: what an edit changes and what stays, undo, the
 * command line that says the difference, the file; and random edits of the recipes that
 * are installed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/algorithms/methods.h"
#include "core/compose/checks.h"
#include "core/compose/command.h"
#include "core/compose/diff.h"
#include "core/compose/sketch.h"
#include "core/compose/form.h"
#include "core/compose/timeline.h"
#include "core/recipe/edit.h"
#include "core/assemble/assemble.h"
#include "etude/ctx.h"
#include "etude/data.h"
#include "t/tap.h"

static struct et_ctx *cx;

static const char small[] = "# mine\n"
                            "max_duration: 2ep   # short\n"
                            "model: lenet\n"
                            "train_data: {name: synthetic_images, batch_size: 8}\n"
                            "optimizer:\n"
                            "  name: sgd     # plain\n"
                            "  lr: 0.1\n"
                            "# the methods\n"
                            "algorithms:  # in order\n"
                            "  mixup:\n"
                            "    alpha: 0.3 # weak\n"
                            "  # softer targets\n"
                            "  label_smoothing: {smoothing: 0.1}\n"
                            "  ema:\n";

static struct eti_sketch *
sketch_of(const char *text)
{
    struct eti_sketch *d;
    if (eti_sketch_new(cx, NULL, &d) != ET_OK ||
        eti_sketch_begin(d, text, strlen(text), "r.yaml") != ET_OK)
        bail("no sketch");
    return d;
}

/* ---- edits of texts ---- */

static void
edits_to(const char *text, const struct eti_edit *edit, const char *want,
         const char *name)
{
    struct et_diagnostics errors = {0};
    char *out;
    et_status status =
        eti_yaml_edit(cx, text, strlen(text), "r.yaml", edit, &errors, &out, NULL);
    is_str(status == ET_OK ? out : et_error_get(cx)->message, want, "%s", name);
    et_error_clear(cx);
    et_free(cx, out);
}

#define REMOVE(its_path)                                                               \
    &(struct eti_edit)                                                                 \
    {                                                                                  \
        ETI_EDIT_REMOVE, its_path, .is_recipe = true                                   \
    }
#define SET(its_path, its_value)                                                       \
    &(struct eti_edit)                                                                 \
    {                                                                                  \
        ETI_EDIT_SET, its_path, its_value, .is_recipe = true                           \
    }
#define INSERT(its_path, its_value, at)                                                \
    &(struct eti_edit)                                                                 \
    {                                                                                  \
        ETI_EDIT_INSERT, its_path, its_value, .index = at, .is_recipe = true           \
    }
#define MOVE(its_path, at)                                                             \
    &(struct eti_edit)                                                                 \
    {                                                                                  \
        ETI_EDIT_MOVE, its_path, .index = at, .is_recipe = true                        \
    }

static void
removing(void)
{
    edits_to("a: 1\nb: 2 # two\nc: 3\n", REMOVE("b"), "a: 1\n# two\nc: 3\n",
             "an entry goes with its line, its comment stays on one of its own");
    edits_to("o:\n  x: 1\n  y:\n    z: 1  # zed\n    # deep\n    w: 2\nc: 3\n",
             REMOVE("o.y"), "o:\n  x: 1\n  # zed\n  # deep\nc: 3\n",
             "a mapping goes with all of its lines, not with their comments");
    edits_to("o:  # why\n  x: 1\nc: 3\n", REMOVE("o.x"), "o:  # why\nc: 3\n",
             "the last entry leaves its key with nothing");
    edits_to("o: {a: 1, b: 2, c: 3}\n", REMOVE("o.a"), "o: {b: 2, c: 3}\n",
             "in flow style the first goes with its comma");
    edits_to("o: {a: 1, b: 2, c: 3}\n", REMOVE("o.c"), "o: {a: 1, b: 2}\n",
             "and the last with the one before it");
    edits_to("o: {a: , b: 2}\n", REMOVE("o.a"), "o: {b: 2}\n",
             "one without a value too");
    edits_to("l:\n  - name: x\n    v: 1\n", REMOVE("l.0.v"), "l:\n  - name: x\n",
             "items of lists have numbers");
    edits_to("l:\n  - v: 1\n    name: x\n", REMOVE("l.0.v"), "l:\n  - name: x\n",
             "the first key of an item leaves its place to the next");
    edits_to("algorithms:\n  - ema: {half_life: 1ep} # x\n  - mixup\n",
             REMOVE("algorithms.ema"), "algorithms:\n  # x\n  - mixup\n",
             "components of a list have names");
    edits_to("t: |\n  # no comment\n  two\nb: 1\n", REMOVE("t"), "b: 1\n",
             "what looks like a comment in a text is none");
    edits_to("a: 'x # y' # z\nb: 1\n", REMOVE("a"), "# z\nb: 1\n", "nor in quotes");
    edits_to("a: 1\nb: 2", REMOVE("b"), "a: 1\n", "the last line may lack its end");
}

static void
inserting(void)
{
    edits_to("algorithms:  # here\n  # first\n  a: 1\n  b:\n",
             INSERT("algorithms.c", "", 0),
             "algorithms:  # here\n  c:\n  # first\n  a: 1\n  b:\n",
             "a first entry leaves comments with what they stand above");
    edits_to("algorithms:\n  a:\n    x: 1\n  # about b\n  b:\n",
             INSERT("algorithms.c", "{k: 1}", 1),
             "algorithms:\n  a:\n    x: 1\n  c: {k: 1}\n  # about b\n  b:\n",
             "so does one in the middle");
    edits_to("algorithms:  # none yet\nz: 1\n", INSERT("algorithms.ema", "", -1),
             "algorithms:  # none yet\n  ema:\nz: 1\n",
             "a key with nothing gets a line");
    edits_to("z: 1\n", INSERT("algorithms.ema", "", -1), "z: 1\nalgorithms:\n  ema:\n",
             "where the key is not there it comes last");
    edits_to("algorithms: {a: 1}\n", INSERT("algorithms.b", "", 0),
             "algorithms: {b:, a: 1}\n", "flow style stays what it is");
    edits_to("algorithms: [a]\n", INSERT("algorithms.b", "", -1),
             "algorithms: [a, b]\n", "a list too");
    edits_to("algorithms:\n  - a\n", INSERT("algorithms.b", "{k: 1}", -1),
             "algorithms:\n  - a\n  - b: {k: 1}\n", "in lines as well");
    edits_to("optimizer: adamw  # fine\n", SET("optimizer.lr", "0.2"),
             "optimizer: {name: adamw, lr: 0.2}  # fine\n",
             "a component's name alone gets options");
    edits_to("algorithms:\n  ema: false\n", SET("algorithms.ema.half_life", "1ep"),
             "algorithms:\n  ema: {half_life: 1ep}\n", "so does one that is off");
    edits_to("scheduler: {name: cosine}\n", SET("scheduler.0.alpha_f", "0.1"),
             "scheduler: {name: cosine, alpha_f: 0.1}\n",
             "one component is item 0 of its list");
}

static void
moving(void)
{
    static const char text[] =
        "algorithms:\n  a:\n    x: 1  # ex\n  # about b\n  b:\n  c: {y: 2}\nz: 1\n";
    edits_to(
        text, MOVE("algorithms.b", 0),
        "algorithms:\n  # about b\n  b:\n  a:\n    x: 1  # ex\n  c: {y: 2}\nz: 1\n",
        "an entry moves up with the comment above it");
    edits_to(
        text, MOVE("algorithms.a", -1),
        "algorithms:\n  # about b\n  b:\n  c: {y: 2}\n  a:\n    x: 1  # ex\nz: 1\n",
        "and down with its lines");
    edits_to("a: {x: 1,  y: , z: 3}\n", MOVE("a.z", 0), "a: {z: 3,  x: 1 , y:}\n",
             "in flow style what stands between stays");
    edits_to("algorithms:\n  - a\n  - b: {x: 1}", MOVE("algorithms.b", 0),
             "algorithms:\n  - b: {x: 1}\n  - a\n", "items of lists move too");
}

/* ---- sketches ---- */

static void
toggling(void)
{
    struct eti_sketch *d = sketch_of(small);
    const char *what;
    ok(eti_sketch_is_valid(d) && eti_sketch_is_on(d, "mixup"),
       "a sketch knows who is on");
    ok(eti_sketch_toggle(d, "mixup") == ET_OK && !eti_sketch_is_on(d, "mixup") &&
           strstr(d->text, "algorithms:  # in order\n  # weak\n  # softer"),
       "off takes the mapping away and leaves its comment");
    ok(eti_sketch_toggle(d, "mixup") == ET_OK, "on again");
    is_str(d->text, small, "brings the lines back, where they stood");
    ok(eti_sketch_toggle(d, "label_smoothing") == ET_OK &&
           eti_sketch_toggle(d, "label_smoothing") == ET_OK,
       "one in the middle off and on");
    is_str(d->text, small, "changes nothing either");
    ok(eti_sketch_toggle(d, "sam") == ET_OK && strstr(d->text, "  ema:\n  sam:\n"),
       "a new one comes last");
    for (int i = 0; i < 5; i++)
        if (eti_sketch_undo(d, &what) != ET_OK)
            bail("undo");
    is_str(d->text, small, "undo leads back to the first bytes");
    ok(eti_sketch_undo(d, &what) == ET_OK && !what, "and no further");
    for (int i = 0; i < 5; i++)
        if (eti_sketch_redo(d, &what) != ET_OK)
            bail("redo");
    ok(strstr(d->text, "  ema:\n  sam:\n") && what && strcmp(what, "sam on") == 0,
       "redo leads forth again, and says what was done");
    eti_sketch_free(&d);
}

static void
choosing(void)
{
    struct eti_sketch *d = sketch_of(small);
    ok(eti_sketch_set(d, "optimizer.momentum", "0.5") == ET_OK &&
           eti_sketch_is_valid(d),
       "an option of the optimizer is set");
    ok(eti_sketch_choose(d, "optimizer", ET_KIND_OPTIMIZER, "adamw") == ET_OK &&
           eti_sketch_is_valid(d) && strstr(d->text, "  name: adamw\n  lr: 0.1\n# the"),
       "another optimizer keeps the options that it has, and drops the others");
    ok(eti_sketch_set(d, "optimizer.lr", "fast") == ET_OK && !eti_sketch_is_valid(d) &&
           d->errors.v[0].line == 7 && d->errors.v[0].column == 7,
       "a wrong value is a fault with its place");
    ok(d->recipe && d->last && eti_sketch_shown(d) == d->last,
       "and the last right recipe is kept");
    ok(eti_sketch_set(d, "max_duration", "[") != ET_OK &&
           strstr(d->text, "2ep   # short"),
       "what is not YAML is not put in");
    et_error_clear(cx);
    eti_sketch_free(&d);
    d = sketch_of("train_data:  # what to see\n"
                  "  name: synthetic_images  # made up: '#1'\n"
                  "  # of all ranks\n"
                  "  batch_size: 8  # small\n"
                  "  type: separable  # easy\n"
                  "  num_samples: 64\n"
                  "eval_data: synthetic_images  # as well\n");
    if (eti_sketch_choose(d, "train_data", ET_KIND_DATASET, "fashion_mnist") != ET_OK ||
        eti_sketch_choose(d, "eval_data", ET_KIND_DATASET, "mnist") != ET_OK)
        bail("choose");
    is_str(d->text,
           "train_data:  # what to see\n"
           "  name: fashion_mnist\n"
           "  # of all ranks\n"
           "  batch_size: 8  # small\n"
           "eval_data: mnist\n",
           "the old name's comment goes with it, and those of options that go");
    eti_sketch_free(&d);
    d = sketch_of("seed: 1\nmodel: {lenet\n");
    ok(!d->recipe && d->errors.n > 0 && d->errors.v[0].line == 2,
       "a text that is no YAML has a fault with its line");
    eti_sketch_free(&d);
}

/* Relative paths begin beside the file, or where the text says it came from. */
static void
places(void)
{
    static const char text[] = "model: lenet\ntrain_data: {name: idx, path: mine}\n";
    struct eti_sketch *d = sketch_of(text);
    struct eti_form f;
    if (eti_sketch_put_place(d, "/tmp/r.yaml") != ET_OK)
        bail("place");
    const struct et_data_options *o = d->recipe->train_data.options;
    is_str(o->path, "/tmp/mine", "a relative path begins where the text came from");
    if (eti_form_of_recipe(cx, d->recipe, &f) != ET_OK)
        bail("form");
    for (int i = 0; i < f.n; i++)
        if (strcmp(f.row[i].path, "train_data.path") == 0)
            is_str(f.row[i].value, "mine", "and is shown as it is written");
    eti_form_release(&f);
    eti_sketch_free(&d);
}

static void
moving_algorithms(void)
{
    struct eti_sketch *d = sketch_of(small);
    ok(eti_sketch_move(d, "ema", -1) == ET_OK &&
           eti_sketch_move(d, "ema", -1) == ET_OK &&
           strcmp(d->recipe->algorithms.v[0].component->name, "ema") == 0,
       "an algorithm moves to the front");
    ok(eti_sketch_move(d, "ema", -1) == ET_ENOENT, "and no further");
    et_error_clear(cx);
    eti_sketch_free(&d);
}

/* ---- files, differences, command lines ---- */

static void
saving(void)
{
    char path[64], other[80], *text;
    snprintf(path, sizeof path, "compose-%ld.yaml", (long)getpid());
    snprintf(other, sizeof other, "%s.other", path);
    struct eti_sketch *d = sketch_of(small);
    ok(eti_sketch_save(d, NULL, false) == ET_EINVAL, "without a name nothing is saved");
    et_error_clear(cx);
    ok(eti_sketch_save(d, path, false) == ET_OK && !eti_sketch_is_changed(d),
       "saved under a name");
    ok(eti_sketch_toggle(d, "sam") == ET_OK && eti_sketch_is_changed(d) &&
           eti_sketch_save(d, NULL, false) == ET_OK,
       "then it has one");
    FILE *f = fopen(path, "a");
    fputs("# from elsewhere\n", f);
    fclose(f);
    ok(eti_sketch_is_stale(d) && eti_sketch_save(d, NULL, false) == ET_ECANCELED,
       "what another program wrote is not written over");
    et_error_clear(cx);
    ok(eti_sketch_save(d, NULL, true) == ET_OK, "unless that is wanted");
    f = fopen(other, "w");
    fclose(f);
    ok(eti_sketch_save(d, other, false) == ET_ECANCELED,
       "nor is another file that is there");
    et_error_clear(cx);
    unlink(other);

    struct eti_command c;
    ok(eti_sketch_set(d, "optimizer.lr", "0.25") == ET_OK &&
           eti_sketch_toggle(d, "label_smoothing") == ET_OK &&
           eti_sketch_default(d, "algorithms.mixup.alpha") == ET_OK &&
           eti_sketch_toggle(d, "blurpool") == ET_OK && eti_command_new(d, &c) == ET_OK,
       "changes make a command line");
    ok(eti_command_text(&c, "train", &text) == ET_OK, "as text");
    char want[256];
    snprintf(want, sizeof want,
             "etude train %s optimizer.lr=0.25 algorithms.mixup=null --no-alg "
             "label_smoothing --alg blurpool",
             path);
    is_str(text, want, "that says what is different");
    et_free(cx, text);
    eti_command_release(&c);
    ok(eti_sketch_move(d, "blurpool", -1) == ET_OK && eti_command_new(d, &c) == ET_OK,
       "another order too");
    eti_command_release(&c);
    unlink(path);
    eti_sketch_free(&d);
}

/* The difference of two texts, a line for each of its: sign, number, text. */
static const char *
difference(const char *old, const char *now)
{
    static char buf[512];
    struct eti_diff d;
    size_t n = 0;
    if (eti_diff_new(cx, old, strlen(old), now, strlen(now), &d) != ET_OK)
        bail("no difference");
    buf[0] = '\0';
    for (int i = 0; i < d.n && n < sizeof buf; i++)
        n += (size_t)snprintf(buf + n, sizeof buf - n, "%c%d %.*s\n", d.line[i].sign,
                              d.line[i].line, (int)d.line[i].n, d.line[i].text);
    eti_diff_release(&d);
    return buf;
}

static void
differences(void)
{
    is_str(difference("a\nb\nc\nd\n", "a\nB\nc\nd\n"), " 1 a\n-2 b\n+2 B\n 3 c\n",
           "a difference has the lines and those around them, with their numbers");
    is_str(difference("a\n", "a\n"), "", "the same texts have no difference");
    is_str(difference("a\na\n", "a\na\na\n"), " 2 a\n+3 a\n",
           "a line that is repeated once more is one line");
    is_str(difference("a\na\na\n", "a\na\n"), " 2 a\n-3 a\n", "or once less");
    is_str(difference("x\na\nb\na\ny\n", "x\na\ny\n"), " 2 a\n-3 b\n-4 a\n 3 y\n",
           "lines at the beginning are not counted again at the end");
    is_str(difference("a\n", "a\nb\n"), " 1 a\n+2 b\n", "lines come at the end");
    is_str(difference("b\n", "a\nb\n"), "+1 a\n 2 b\n", "and at the beginning");
    is_str(difference("", "a\nb"), "+1 a\n+2 b\n", "all of a new text is new");
    is_str(difference("a\nb\n", ""), "-1 a\n-2 b\n", "all of an empty one is gone");
    is_str(difference("a\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nF\n"),
           "-1 a\n+1 A\n 2 b\n 5 e\n-6 f\n+6 F\n",
           "of those between two changes the first and the last stand there");
}

/* ---- forms, checks, timelines ---- */

static const struct eti_form_row *
find_row(const struct eti_form *f, const char *path)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->row[i].path, path) == 0)
            return &f->row[i];
    return NULL;
}

/* What shut sections say of an optimizer with parameter groups. */
static void
form_of_groups(void)
{
    struct eti_sketch *d = sketch_of(
        "max_duration: 1ep\nmodel: mlp\n"
        "train_data: {name: synthetic_images, batch_size: 8, num_samples: 32}\n"
        "optimizer:\n  name: sgd\n  lr: 0.1\n  groups:\n"
        "    - {match: bias, scheduler: constant}\n    - {match: '^fc'}\n");
    struct eti_form f;
    ok(eti_form_of_recipe(cx, d->recipe, &f) == ET_OK, "a recipe has groups");
    is_str(find_row(&f, "optimizer.groups")->value, "bias, \"^fc\"",
           "they are summed up by their patterns");
    is_str(find_row(&f, "optimizer")->value, "sgd", "and their optimizer by its name");
    eti_form_release(&f);
    eti_sketch_free(&d);
}

static void
forms(void)
{
    struct eti_sketch *d = sketch_of(small);
    struct eti_form f;
    ok(eti_form_of_recipe(cx, d->recipe, &f) == ET_OK, "a recipe is a form");
    const struct eti_form_row *lr = find_row(&f, "optimizer.lr");
    const struct eti_form_row *optimizer = find_row(&f, "optimizer");
    const struct eti_form_row *seed = find_row(&f, "seed");
    ok(lr && lr->is_set && strcmp(lr->value, "0.1") == 0 && lr->line == 7 &&
           &f.row[lr->parent] == optimizer,
       "a value knows where it stands, and its section");
    ok(optimizer && optimizer->is_section && strcmp(optimizer->value, "sgd") == 0,
       "a section is summed up by its name");
    ok(seed && !seed->is_set, "a default is one");
    ok(eti_form_try(cx, NULL, lr, "0.5") == ET_OK, "a value may be tried");
    ok(eti_form_try(cx, NULL, lr, "fast") == ET_EINVAL, "a wrong one is refused");
    is_str(et_error_get(cx)->message, "lr: expected number >= 0, got \"fast\"",
           "in a sentence");
    et_error_clear(cx);
    ok(eti_form_try(cx, NULL, find_row(&f, "optimizer.name"), "adamv") == ET_EINVAL &&
           strstr(et_error_get(cx)->message, "did you mean 'adam"),
       "a name is looked up");
    et_error_clear(cx);
    int sections = 0;
    for (int i = 0; i < f.n; i++) {
        sections += f.row[i].is_section;
        if (!f.row[i].is_section && !f.row[i].part &&
            strcmp(f.row[i].value, "null") != 0 &&
            eti_form_try(cx, NULL, &f.row[i], f.row[i].value) != ET_OK) {
            diag("%s: %s", f.row[i].path, et_error_get(cx)->message);
            et_error_clear(cx);
            sections = -1000;
        }
    }
    ok(sections > 5, "every value that is there may stand there");
    eti_form_release(&f);
    const struct et_component *mixup =
        et_registry_find(NULL, ET_KIND_ALGORITHM, "mixup");
    ok(eti_form_of_algorithm(cx, d->recipe, mixup, &f) == ET_OK &&
           strcmp(f.row[0].value, "0.3") == 0 && f.row[0].is_set,
       "so are an algorithm's options");
    is_int(f.row[0].line * 100 + f.row[0].column, 1112, "with where they stand");
    eti_form_release(&f);
    eti_sketch_free(&d);
    d = sketch_of("max_duration: 1ep\nmodel: lenet\n"
                  "train_data: {name: synthetic_images, batch_size: 8}\n"
                  "checkpoint: {name: 'e{epoch}', keep: 0x3}\n"
                  "algorithms: {mixup: false}\n");
    if (!d->recipe || eti_form_of_recipe(cx, d->recipe, &f) != ET_OK)
        bail("no form");
    is_str(find_row(&f, "checkpoint.name")->value, "\"e{epoch}\"",
           "a text stands in quotes where it needs them");
    is_str(find_row(&f, "checkpoint.keep")->value, "0x3", "a number as it is written");
    eti_form_release(&f);
    ok(d->recipe && eti_form_of_algorithm(cx, d->recipe, mixup, &f) == ET_OK &&
           strcmp(f.row[0].path, "algorithms.mixup.alpha") == 0 &&
           strcmp(f.row[0].value, mixup->options[0].def) == 0 && !f.row[0].is_set &&
           f.row[0].line == 0,
       "those of one that is off are its defaults, and stand nowhere");
    eti_form_release(&f);
    eti_sketch_free(&d);
    d = sketch_of("max_duration: 1ep\nmodel: lenet\n"
                  "train_data: {name: synthetic_images, batch_size: 8}\n"
                  "algorithms: [mixup: {alpha: 0.3}, mixup: false]\n");
    ok(d->recipe && eti_form_of_algorithm(cx, d->recipe, mixup, &f) == ET_OK &&
           strcmp(f.row[0].value, "0.3") == 0 && f.row[0].is_set,
       "of two of a name those of the one that is on");
    eti_form_release(&f);
    eti_sketch_free(&d);
}

/* What a run in epochs never comes to, since the clock of methods goes by them. */
static void
epochs(void)
{
    static const struct {
        const char *duration, *method, *misses; /* NULL: nothing */
    } rows[] = {
        {"4ep", "progressive_resizing", "images never have their full size"},
        {"5ep", "progressive_resizing", NULL},
        {"100ba", "progressive_resizing", NULL},
        {"4ba", "progressive_resizing", NULL},
        {"4ep", "progressive_resizing: {finetune_fraction: 0.25}", NULL},
        {"1ep", "selective_backprop", "no batch is ever pruned"},
        {"2ep", "selective_backprop", NULL},
        {"3ep", "selective_backprop: {start: 0.4, end: 0.6}", "no batch"},
        {"1ep", "selective_backprop: {start: 0}", NULL},
        {"2ep", "layer_freezing", "no layer is frozen"},
        {"3ep", "layer_freezing", NULL},
        {"2ep",
         "stochastic_depth: {target_layer_name: ResNetBottleneck, drop_warmup: "
         "0.6dur}",
         "never left out at drop_rate"},
        {"2ep",
         "stochastic_depth: {target_layer_name: ResNetBottleneck, drop_warmup: "
         "0.5dur}",
         NULL},
        {"3ep", "ema: {ema_start: 0.7dur}", "the average never begins"},
        {"3ep", "ema: {ema_start: 0.7dur, half_life: 1ep}", NULL},
        {"10ep", "swa: {update_interval: 1ba}", "never becomes the weights"},
        {"10ep", "swa: {update_interval: 1ba, swa_end: 0.9dur}", NULL},
        {"10ep", "swa", NULL},
        {"1ep", "cutmix", NULL},
    };
    struct eti_check c[ETI_CHECKS_MAX];
    char recipe[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool own = strchr(rows[i].method, ':') != NULL, found = false;
        snprintf(recipe, sizeof recipe,
                 "max_duration: %s\nmodel: resnet50\n"
                 "train_data: {name: synthetic_images, batch_size: 8}\n"
                 "algorithms:\n  %s%s\n",
                 rows[i].duration, rows[i].method, own ? "" : ":");
        struct eti_sketch *d = sketch_of(recipe);
        int n = d->recipe ? eti_checks(cx, d->recipe, c, ETI_CHECKS_MAX) : -1;
        const char *want = rows[i].misses ? rows[i].misses : "the clock of methods";
        for (int k = 0; k < n; k++)
            found =
                found || (c[k].is_warning && c[k].line == 5 && strstr(c[k].text, want));
        ok(n >= 0 && found == (rows[i].misses != NULL), "%s of %s: %s", rows[i].method,
           rows[i].duration, rows[i].misses ? want : "all happens");
        eti_sketch_free(&d);
    }
}

static void
checks(void)
{
    struct eti_check c[ETI_CHECKS_MAX];
    struct eti_sketch *d = sketch_of(small);
    int n = eti_checks(cx, d->recipe, c, ETI_CHECKS_MAX);
    ok(n > 0 && c[0].is_warning && strstr(c[0].text, "no eval_data"),
       "a recipe without evaluation is warned about");
    if (eti_sketch_move(d, "label_smoothing", -1) != ET_OK)
        bail("move");
    eti_checks(cx, d->recipe, c, ETI_CHECKS_MAX);
    ok(c[0].fix == ETI_FIX_MOVE_UP && strcmp(c[0].who, "mixup") == 0 && c[0].by == 1,
       "an order that does not work is, with what helps");
    if (eti_sketch_choose(d, "model", ET_KIND_MODEL, "gpt2") != ET_OK)
        bail("choose");
    ok(d->errors.n == 1 && d->errors.v[0].line == 4 &&
           strstr(d->errors.v[0].message, "model gpt2 reads tokens"),
       "a model of text on images is a fault, at the data");
    if (eti_sketch_choose(d, "train_data", ET_KIND_DATASET, "synthetic_tokens") !=
        ET_OK)
        bail("choose");
    n = eti_checks(cx, eti_sketch_shown(d), c, ETI_CHECKS_MAX);
    bool found = false;
    for (int i = 0; i < n; i++)
        found = found ||
                (c[i].fix == ETI_FIX_TURN_OFF && strstr(c[i].text, "is for vision"));
    ok(found, "so is an algorithm that is for other models");
    eti_sketch_free(&d);

    d = sketch_of("max_duration: 1ep\nmodel: lenet\n"
                  "train_data: {name: synthetic_images, batch_size: 8}\n"
                  "eval_data: [synthetic_images, {name: synthetic_tokens, label: b}, "
                  "{name: fashion_mnist, label: c}]\n"
                  "optimizer: {name: sgd, lr: 0.1}\n");
    n = eti_checks(cx, d->recipe, c, ETI_CHECKS_MAX);
    is_str(c[0].text,
           "eval_data synthetic_tokens is for text, train_data synthetic_images for "
           "vision",
           "evaluation on data of another kind is warned about");
    is_str(c[1].text, "eval_data is fashion_mnist, train_data is synthetic_images",
           "and on another dataset");
    ok(c[0].line == 4 && n > 1 && !c[2].is_warning, "but not on the same one");
    eti_sketch_free(&d);

    struct eti_method m[ETI_METHODS_MAX];
    n = eti_methods(NULL, m, ETI_METHODS_MAX);
    int known = 0;
    for (int i = 0; i < n; i++)
        known += strcmp(m[i].name, "reduce_lr_on_plateau") != 0;
    is_int(known, ETI_METHODS_KNOWN, "the 27 methods are listed");
    bool sorted = true, said = true;
    for (int i = 0; i < n; i++) {
        sorted = sorted && (i == 0 || strcmp(m[i - 1].name, m[i].name) < 0);
        said = said && m[i].summary && m[i].applies_to;
    }
    ok(sorted && said, "each once, by name, with what it does and for what");
}

/* The text of the first check that begins with WORD; "" . */
static const char *
said(const struct eti_check *c, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (strncmp(c[i].text, word, strlen(word)) == 0)
            return c[i].text;
    return "";
}

static void
found(void)
{
    struct eti_check c[ETI_CHECKS_MAX];
    struct eti_sketch *d = sketch_of(small);
    struct eti_found f = {
        .data = {{"imagefolder", false, 1281167, 1000},
                 {"bible_kjv", true, 950000, 256}},
        .n_data = 2,
        .checkpoint_bytes = 214e6,
        .free_bytes = 812e9,
    };
    if (eti_sketch_set(d, "checkpoint.keep", "3") != ET_OK)
        bail("set");
    int n = eti_checks_found(cx, d->recipe, &f, c, ETI_CHECKS_MAX);
    is_str(said(c, n, "imagefolder"), "imagefolder: 1,281,167 images, 1,000 classes",
           "what is in the data is said");
    is_str(said(c, n, "evaluation"),
           "evaluation: bible_kjv: 950,000 tokens, 256 words in its vocabulary",
           "and in that of evaluations");
    is_str(said(c, n, "disk"), "disk: 3 checkpoints need 642 MB, 812 GB free",
           "what is kept of checkpoints, and what room there is");
    f.free_bytes = 700e6;
    n = eti_checks_found(cx, d->recipe, &f, c, ETI_CHECKS_MAX);
    bool warned = false;
    for (int i = 0; i < n; i++)
        warned = warned || (c[i].is_warning && strncmp(c[i].text, "disk", 4) == 0);
    ok(warned, "too little for the next is warned about: %s", said(c, n, "disk"));
    if (eti_sketch_set(d, "checkpoint.keep", "-1") != ET_OK)
        bail("set");
    n = eti_checks_found(cx, d->recipe, &f, c, ETI_CHECKS_MAX);
    is_str(said(c, n, "disk"),
           "disk: each checkpoint needs 214 MB and is kept, 700 MB free",
           "where all are kept it is said of each");
    snprintf(f.run, sizeof f.run, "brisk-otter");
    f.microbatches = 4;
    n = eti_checks_found(cx, d->recipe, &f, c, ETI_CHECKS_MAX);
    ok(c[0].is_warning && c[0].fix == ETI_FIX_SET && c[0].by == 4 &&
           strcmp(c[0].who, "grad_accum") == 0,
       "what auto came to is offered: %s", c[0].text);
    if (eti_sketch_set(d, "grad_accum", "2") != ET_OK)
        bail("set");
    n = eti_checks_found(cx, d->recipe, &f, c, ETI_CHECKS_MAX);
    is_str(said(c, n, "grad_accum"), "", "but not where it is given");
    f.data[1] = f.data[0];
    f.data[1].kinds = 10;
    snprintf(f.problem, sizeof f.problem, "cannot read data");
    n = eti_checks_found(cx, d->recipe, &f, c, ETI_CHECKS_MAX);
    ok(c[0].is_warning && strcmp(c[0].text, "cannot read data") == 0,
       "data that cannot be read are the first warning");
    is_str(c[1].text, "imagefolder has 1,000 classes, imagefolder has 10",
           "so are classes that differ between training and evaluation");
    ok(!c[0].is_fatal, "which may be ignored where training could begin");
    f.is_refused = true;
    n = eti_checks_found(cx, d->recipe, &f, c, ETI_CHECKS_MAX);
    ok(c[0].is_fatal && !c[1].is_fatal, "and not where it could not");
    f.checkpoint_bytes = NAN;
    n = eti_checks_found(cx, d->recipe, &f, c, ETI_CHECKS_MAX);
    is_str(said(c, n, "disk"), "", "nothing is said of what is not known");
    eti_sketch_free(&d);
}

static void
timelines(void)
{
    const struct et_algorithm_class *all[] = {et_algorithm_find("ema"),
                                              et_algorithm_find("blurpool"),
                                              et_algorithm_find("progressive_resizing"),
                                              et_algorithm_find("selective_backprop")};
    struct eti_turn t[4];
    int n = eti_timeline_at(all, 4, ET_EVENT_INIT, t);
    ok(n == 2 && t[0].who == 1 && t[1].who == 0 &&
           strcmp(t[1].reason, "after the model is complete") == 0,
       "at init ema comes behind the surgery, with the reason");
    n = eti_timeline_at(all, 4, ET_EVENT_AFTER_DATALOADER, t);
    ok(n == 2 && t[0].who == 3 && strcmp(t[0].reason, "before all others") == 0 &&
           strcmp(t[1].reason, "reverse order") == 0,
       "who must be first is, and after_ events say that they are reversed");
}

/* ---- any edits, then undo ---- */

static uint64_t state;

static uint32_t
draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* Comments of TEXT that are not in OTHER. */
static int
comments_lost(const char *text, const char *other)
{
    int lost = 0;
    for (const char *at = text; (at = strchr(at, '#')) != NULL; at++) {
        char comment[256];
        if (at > text && at[-1] != ' ' && at[-1] != '\n')
            continue;
        snprintf(comment, sizeof comment, "%.*s", (int)strcspn(at, "\n"), at);
        lost += strstr(other, comment) == NULL;
    }
    return lost;
}

/* What the recipe says of PATH; "" where nothing does. */
static void
value_at(struct eti_sketch *d, const char *path, char out[256])
{
    struct eti_form f;
    out[0] = '\0';
    if (!d->recipe || eti_form_of_recipe(cx, d->recipe, &f) != ET_OK)
        bail("no form of the edited recipe");
    const struct eti_form_row *r = find_row(&f, path);
    snprintf(out, 256, "%s", r ? r->value : "");
    eti_form_release(&f);
}

/* One random edit; true if it did what it was to do. */
static bool
edit(struct eti_sketch *d)
{
    static const struct {
        const char *path, *value;
    } sets[] = {
        {"optimizer.lr", "0.25"},
        {"max_duration", "7ep"},
        {"seed", "99"},
        {"checkpoint.keep", "5"},
        {"train_data.batch_size", "64"},
        {"scheduler.0.alpha_f", "0.5"},
        {"tf32", "true"},
        {"optimizer.weight_decay", "0.01"},
    };
    struct eti_method m[ETI_METHODS_MAX];
    const char *what;
    char now[256];
    int n = eti_methods(NULL, m, ETI_METHODS_MAX), i = (int)draw((uint32_t)n);
    uint32_t k = draw(sizeof sets / sizeof *sets);
    bool was = eti_sketch_is_on(d, m[i].name);
    et_status status = ET_OK;
    bool done = true;
    switch (draw(6)) {
    case 0:
    case 1:
        status = eti_sketch_toggle(d, m[i].name);
        done = status == ET_OK && d->recipe && eti_sketch_is_on(d, m[i].name) != was;
        break;
    case 2:
        status = eti_sketch_move(d, m[i].name, draw(2) ? 1 : -1);
        done = status == ET_OK || status == ET_ENOENT;
        break;
    case 3:
        status = eti_sketch_set(d, sets[k].path, sets[k].value);
        value_at(d, sets[k].path, now);
        done = status == ET_OK && (strcmp(now, sets[k].value) == 0 || !*now);
        break;
    case 4:
        status = eti_sketch_default(d, sets[k].path);
        done = status == ET_OK || status == ET_ENOENT;
        break;
    default:
        status = draw(2) ? eti_sketch_undo(d, &what) : eti_sketch_redo(d, &what);
        done = status == ET_OK;
    }
    if (!done)
        diag("%s or %s: %s\n%s", m[i].name, sets[k].path, et_error_get(cx)->message,
             d->text);
    et_error_clear(cx);
    return done;
}

static void
random_edits(const char *path)
{
    enum { ROUNDS = 60, EDITS = 25 };
    const char *what;
    int failed = 0, lost = 0, changed = 0, odd = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct eti_sketch *d;
        if (eti_sketch_new(cx, NULL, &d) != ET_OK || eti_sketch_open(d, path) != ET_OK)
            bail(path);
        state = (uint64_t)round * 7919 + 1;
        for (int i = 0; i < EDITS; i++)
            failed += !edit(d);
        lost += comments_lost(d->saved, d->text);
        struct eti_command c;
        if (eti_sketch_is_valid(d) && eti_command_new(d, &c) != ET_OK) {
            diag("%s\n%s", et_error_get(cx)->message, d->text);
            et_error_clear(cx);
            odd++;
        }
        if (eti_sketch_is_valid(d))
            eti_command_release(&c);
        do
            if (eti_sketch_undo(d, &what) != ET_OK)
                bail("undo");
        while (what);
        changed += eti_sketch_is_changed(d);
        eti_sketch_free(&d);
    }
    is_int(failed, 0, "%s: each of %d edits does what it says", path, ROUNDS * EDITS);
    is_int(lost, 0, "no comment is lost");
    is_int(odd, 0, "overrides of the file say the same as the text");
    is_int(changed, 0, "undo gives the file's bytes back");
}

int
main(void)
{
    const char *root = getenv("ET_SRCDIR") ? getenv("ET_SRCDIR") : ".";
    static const char *const recipes[] = {
        "recipes/fashion_mnist.yaml", "recipes/fashion_mnist_resnet20.yaml",
        "recipes/bible_gpt.yaml",     "recipes/synthetic_resnet18.yaml",
        "t/recipes/vision.yaml",      "t/recipes/text.yaml",
    };
    char path[512];
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    removing();
    inserting();
    moving();
    toggling();
    choosing();
    places();
    moving_algorithms();
    saving();
    differences();
    forms();
    form_of_groups();
    checks();
    epochs();
    found();
    timelines();
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        snprintf(path, sizeof path, "%s/%s", root, recipes[i]);
        random_edits(path);
    }
    et_ctx_free(&cx);
    return done();
}
