/* SPDX-License-Identifier: Apache-2.0 */
/* Setting one value in a YAML text: what changes, what stays, what is refused. */
#include "core/recipe/edit.h"

#include <string.h>

#include "etude/ctx.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_diagnostics errors;

static et_status
set(const char *text, const char *path, const char *value, char **out)
{
    memset(&errors, 0, sizeof errors);
    return eti_yaml_set(cx, text, strlen(text), "c.yaml", path, value, &errors, out);
}

static void
becomes(const char *text, const char *path, const char *value, const char *want,
        const char *name)
{
    char *out;
    et_status status = set(text, path, value, &out);
    is_str(status == ET_OK ? out : et_error_get(cx)->message, want, "%s", name);
    et_error_clear(cx);
    et_free(cx, out);
}

static void
refuses(const char *text, const char *path, const char *value, et_status want,
        const char *part, const char *name)
{
    char *out;
    et_status status = set(text, path, value, &out);
    if (!ok(status == want && !out && strstr(et_error_get(cx)->message, part), "%s",
            name))
        diag("%s: %s", et_status_name(status), et_error_get(cx)->message);
    et_error_clear(cx);
    et_free(cx, out);
}

static void
replacing(void)
{
    becomes("# mine\ncolor: auto  # always?\nprogress: bar\n", "color", "never",
            "# mine\ncolor: never  # always?\nprogress: bar\n",
            "a value changes where it stands, comments and order stay");
    becomes("a: \"old \\\" text\" # c\n", "a", "new", "a: new # c\n",
            "a text in quotes goes with its quotes");
    becomes("a: 'it''s'\n", "a", "[1, 2]", "a: [1, 2]\n", "in single quotes too");
    becomes("ui:\n    plot: ascii   # small\n    x: 1\n", "ui.plot", "braille",
            "ui:\n    plot: braille   # small\n    x: 1\n", "so does one deeper down");
    becomes("ui: {plot: ascii, x: 1}\n", "ui.plot", "braille",
            "ui: {plot: braille, x: 1}\n", "or in flow style");
    becomes("a: [1, 2] # two\nb: 3\n", "a", "[4]", "a: [4] # two\nb: 3\n",
            "a list in flow style is replaced whole");
    becomes("a:\n  - 1\n  - 2\n# end\nb: 3\n", "a", "[4]", "a:\n  [4]\n# end\nb: 3\n",
            "one in block style too, and no comment with it");
    becomes("a: 1", "a", "2", "a: 2", "the last line may lack its end");
    becomes("a: \xc3\xa4\xc3\xb6 # \xe2\x82\xac\nb: 1\n", "b", "2",
            "a: \xc3\xa4\xc3\xb6 # \xe2\x82\xac\nb: 2\n",
            "places are counted in bytes");
    becomes("a:   # nothing\nb: 1\n", "a", "x", "a: x   # nothing\nb: 1\n",
            "an empty value is filled behind its colon");
    becomes("a: |\n  one\n  two\nb: 1\n", "b", "2", "a: |\n  one\n  two\nb: 2\n",
            "other lines are left as they are");
}

static void
inserting(void)
{
    becomes("", "a", "1", "a: 1\n", "an empty text gets its first key");
    becomes("# only this\n", "a.b", "1", "# only this\na: {b: 1}\n",
            "after comments, with what leads there");
    becomes("a: 1  # one\n", "b", "2", "a: 1  # one\nb: 2\n", "a new key comes last");
    becomes("a: 1", "b", "2", "a: 1\nb: 2", "also where the last line has no end");
    becomes("ui:\n  plot: ascii  # small\n# between\nz: 1\n", "ui.x", "true",
            "ui:\n  plot: ascii  # small\n  x: true\n# between\nz: 1\n",
            "a new key of a mapping stands with its others");
    becomes("ui: {}\n", "ui.x", "1", "ui: {x: 1}\n", "an empty mapping gets its first");
    becomes("ui: {a: 1}  # c\n", "ui.x.y", "1", "ui: {a: 1, x: {y: 1}}  # c\n",
            "in flow style before the bracket");
    becomes("ui:\nz: 1\n", "ui.x", "1", "ui: {x: 1}\nz: 1\n",
            "an empty value becomes a mapping");
    becomes("a: 1\n", "weird key: {", "1", "a: 1\n\"weird key: {\": 1\n",
            "a key that needs quotes has them");
    becomes("a: |\n  one\n", "b", "2", "a: |\n  one\nb: 2\n", "after a block of text");
}

/* What TEXT becomes where the entry at PATH is removed, or goes to INDEX. */
static void
is_edited(const char *text, enum eti_edit_kind kind, const char *path, int index,
          const char *want, const char *name)
{
    const struct eti_edit edit = {
        .kind = kind, .path = path, .index = index, .is_recipe = true};
    char *out;
    memset(&errors, 0, sizeof errors);
    et_status status =
        eti_yaml_edit(cx, text, strlen(text), "c.yaml", &edit, &errors, &out, NULL);
    is_str(status == ET_OK ? out : et_error_get(cx)->message, want, "%s", name);
    et_error_clear(cx);
    et_free(cx, out);
}

/* A component that is not written is its own item 0: its options are set below its key,
 * and no key "0" is made. */
static void
first_items(void)
{
    static const struct {
        const char *text, *path, *want;
        bool is_recipe;
    } rows[] = {
        {"a: 1\n", "scheduler.0.t_max", "a: 1\nscheduler:\n  t_max: 5\n", true},
        {"scheduler:\n", "scheduler.0.t_max", "scheduler:\n  t_max: 5\n", true},
        {"scheduler: {}\n", "scheduler.0.t_max", "scheduler: {t_max: 5}\n", true},
        {"scheduler: step\n", "scheduler.0.gamma",
         "scheduler: {name: step, gamma: 5}\n", true},
        {"a: {b: 1}\n", "a.c.0.d", "a: {b: 1, c: {d: 5}}\n", true},
        {"a: 1\n", "b.0.c.0.d", "a: 1\nb:\n  c:\n    d: 5\n", true},
        {"a: 1\n", "b.00.c", "a: 1\nb:\n  \"00\":\n    c: 5\n", true},
        {"a: 1\n", "b.0.c", "a: 1\nb: {\"0\": {c: 5}}\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct eti_edit edit = {.kind = ETI_EDIT_SET,
                                      .path = rows[i].path,
                                      .value = "5",
                                      .is_recipe = rows[i].is_recipe};
        char *out;
        memset(&errors, 0, sizeof errors);
        et_status status = eti_yaml_edit(cx, rows[i].text, strlen(rows[i].text),
                                         "c.yaml", &edit, &errors, &out, NULL);
        is_str(status == ET_OK ? out : et_error_get(cx)->message, rows[i].want,
               "%s in '%.*s'", rows[i].path, (int)strcspn(rows[i].text, "\n"),
               rows[i].text);
        et_error_clear(cx);
        et_free(cx, out);
    }
}

static void
removing(void)
{
    is_edited("a: 1\nb: 2\nc: 3\n", ETI_EDIT_REMOVE, "b", 0, "a: 1\nc: 3\n",
              "an entry goes with its line");
    is_edited("a: 1\nb: 2", ETI_EDIT_REMOVE, "b", 0, "a: 1\n", "the last one, too");
    is_edited("a: 1\n# of b\nb: 2  # two\nc: 3\n", ETI_EDIT_REMOVE, "b", 0,
              "a: 1\n# of b\n# two\nc: 3\n", "and comments stay");
    is_edited("a: 1\nb: 2  # two", ETI_EDIT_REMOVE, "b", 0, "a: 1\n# two\n",
              "in a last line without an end, too");
    is_edited("a: 1\nb: \"x # y\"\nc: 'u # v'\n", ETI_EDIT_REMOVE, "b", 0,
              "a: 1\nc: 'u # v'\n", "but what only looks like one in a text");
    is_edited("a: 1\nb:\n  # in b\n  x: \"p #q\"  # of x\n  y: 2\nc: 3\n",
              ETI_EDIT_REMOVE, "b", 0, "a: 1\n# in b\n# of x\nc: 3\n",
              "those within a mapping move out of it");
    is_edited("a: {x: 1, y: 2, z: 3}\n", ETI_EDIT_REMOVE, "a.y", 0, "a: {x: 1, z: 3}\n",
              "in flow style its comma goes, too");
    is_edited("a: {x: 1, y: 2}\n", ETI_EDIT_REMOVE, "a.y", 0, "a: {x: 1}\n",
              "before the bracket the one before it");
    is_edited("a: {x: 1}\n", ETI_EDIT_REMOVE, "a.x", 0, "a: {}\n",
              "and the brackets stay");
    is_edited("a:\n- p\n- q  # Q\n- r\n", ETI_EDIT_REMOVE, "a.1", 0,
              "a:\n- p\n# Q\n- r\n", "an item of a list goes with its dash");
    is_edited("a: 1\nscheduler: {name: step, gamma: 2}\n", ETI_EDIT_REMOVE,
              "scheduler.0", 0, "a: 1\n",
              "one component is its own item 0, and goes with its key");
    is_edited("a: 1\nscheduler: cosine\nb: 2\n", ETI_EDIT_MOVE, "scheduler.0", 0,
              "scheduler: cosine\na: 1\nb: 2\n", "or moves with it");
}

static void
moving(void)
{
    static const char block[] =
        "l:\n  # of a\n  a: 1\n  b: 2  # two\n  # of c\n  # and more\n  c: 3\n";
    is_edited(block, ETI_EDIT_MOVE, "l.c", 0,
              "l:\n  # of c\n  # and more\n  c: 3\n  # of a\n  a: 1\n  b: 2  # two\n",
              "an entry moves with the comments right above it, and with no other's");
    is_edited(block, ETI_EDIT_MOVE, "l.a", 1,
              "l:\n  b: 2  # two\n  # of a\n  a: 1\n  # of c\n  # and more\n  c: 3\n",
              "also down, over one");
    is_edited(block, ETI_EDIT_MOVE, "l.a", -1,
              "l:\n  b: 2  # two\n  # of c\n  # and more\n  c: 3\n  # of a\n  a: 1\n",
              "or to the end");
    is_edited(block, ETI_EDIT_MOVE, "l.b", 1, block, "or nowhere");
    is_edited("# top\na: 1\nb: 2", ETI_EDIT_MOVE, "b", 0, "# top\nb: 2\na: 1\n",
              "a last line without an end gets one, and what heads the text stays");
    is_edited("a: {x: 1,  y: 2, z: 3}\n", ETI_EDIT_MOVE, "a.z", 0,
              "a: {z: 3,  x: 1, y: 2}\n", "in flow style separators stay");
    is_edited("a: [p, q, r]\n", ETI_EDIT_MOVE, "a.0", 2, "a: [q, r, p]\n",
              "also those of a list");
}

static void
refusing(void)
{
    refuses("a: [1\n", "a", "1", ET_EINVAL, "c.yaml is not YAML",
            "a text that is no YAML");
    is_int(errors.n, 1, "whose fault is among the errors");
    refuses("a: 1\n", "a", "[", ET_EINVAL, "the value is not YAML",
            "nor a value that is none");
    refuses("a: 1\n", "a.b", "2", ET_EINVAL, "'b' cannot be set in 1",
            "a path through a number");
    refuses("x: &x {a: 1}\ny: *x\n", "y.a", "2", ET_ENOTSUP, "only an editor",
            "a place that an alias shares");
}

/* Edits of recipes: what each text becomes, or what is said of one that cannot be. */
static void
recipes(void)
{
    static const struct {
        enum eti_edit_kind kind;
        const char *text, *path;
        int index;
        const char *what, *want;
    } rows[] = {
        {ETI_EDIT_REMOVE, "a: {x: 1, # one\n  y: 2}\n", "a.x", 0,
         "a comment in flow style has no place",
         "c.yaml is written in a way that only an editor can change"},
        {ETI_EDIT_REMOVE, "a: [p, # one\n  q]\n", "a.0", 0, "nor has one in a list",
         "c.yaml is written in a way that only an editor can change"},
        {ETI_EDIT_REMOVE, "a: {x: 1, y: 2} # end\nb: 1\n", "a", 0,
         "one behind the bracket stays", "# end\nb: 1\n"},
        {ETI_EDIT_REMOVE, "t:\n  a:\n    x: 1  # of x\n    y: 2\n  b: 3\n", "t.a", 0,
         "comments that stay stand where the entry did", "t:\n  # of x\n  b: 3\n"},
        {ETI_EDIT_REMOVE, "l:\n  # first\n  - a\n  # second\n  - b\nz: 1\n", "l.1", 0,
         "those above an item stay, too", "l:\n  # first\n  - a\n  # second\nz: 1\n"},
        {ETI_EDIT_REMOVE, "a: 1\t# c\nb: 2\n", "a", 0,
         "a tab is a blank before a comment", "# c\nb: 2\n"},
        {ETI_EDIT_REMOVE, "a: 1\nb: x#y # z\nc: 2\n", "b", 0,
         "a sign within a word is no comment", "a: 1\n# z\nc: 2\n"},
        {ETI_EDIT_REMOVE, "a: >\n  x # no\n\n  y\n\nb: 1\n", "a", 0,
         "a text of several lines goes whole", "b: 1\n"},
        {ETI_EDIT_REMOVE, "a: 1\nb: \"x\n  y\"\nc: 2\n", "b", 0, "in quotes as well",
         "a: 1\nc: 2\n"},
        {ETI_EDIT_REMOVE, "a:\n  b: |\n    x\n  c: 1\n", "a.b", 0,
         "and before another key", "a:\n  c: 1\n"},
        {ETI_EDIT_REMOVE, "a: {x: , y: 1}\n", "a.x", 0,
         "an empty value in flow style goes with its colon", "a: {y: 1}\n"},
        {ETI_EDIT_REMOVE, "a: {y: 1, x: }\n", "a.x", 0, "as the last one, too",
         "a: {y: 1 }\n"},
        {ETI_EDIT_REMOVE, "a: {y: 1, x}\n", "a.x", 0, "or without one", "a: {y: 1}\n"},
        {ETI_EDIT_REMOVE, "a: {x, y: 1}\n", "a.x", 0, "or as the first", "a: {y: 1}\n"},
        {ETI_EDIT_REMOVE, "a: {x: , y: 1}\n", "a.y", 0, "which is left alone",
         "a: {x:}\n"},
        {ETI_EDIT_REMOVE, "l:\n- name: ema\n  half_life: 1ba\n- sam\n", "l.ema", 0,
         "an item goes by its name", "l:\n- sam\n"},
        {ETI_EDIT_REMOVE, "l:\n- name: ema\n  half_life: 1ba  # short\n- sam\n",
         "l.ema.half_life", 0, "its option without it",
         "l:\n- name: ema\n  # short\n- sam\n"},
        {ETI_EDIT_REMOVE, "l:\n- half_life: 1ba\n  name: ema\n- sam\n", "l.0.half_life",
         0, "also where that stands behind the dash", "l:\n- name: ema\n- sam\n"},
        {ETI_EDIT_REMOVE, "l:\n- ema: {half_life: 1ba, x: 2}\n- sam\n", "l.ema", 0,
         "one of a key alone is an item", "l:\n- sam\n"},
        {ETI_EDIT_REMOVE, "l:\n- ema: {half_life: 1ba, x: 2}\n- sam\n", "l.ema.x", 0,
         "and has options", "l:\n- ema: {half_life: 1ba}\n- sam\n"},
        {ETI_EDIT_REMOVE, "l:\n- {ema: {x: 1}, sam: {y: 2}}\n- b\n", "l.0", 0,
         "one of two keys goes with both", "l:\n- b\n"},
        {ETI_EDIT_REMOVE, "a:\n  x: 1\nb: 2\n", "a.x", 0,
         "a mapping that is left empty is nothing", "a:\nb: 2\n"},
        {ETI_EDIT_REMOVE, "a: {}\nb: 2\n", "a.x", 0, "what is not there is said",
         "a.x is not set"},
        {ETI_EDIT_INSERT, "algorithms: [ema, sam]\n", "algorithms.mixup", 0,
         "an item in flow style comes first", "algorithms: [mixup, ema, sam]\n"},
        {ETI_EDIT_INSERT, "algorithms: [ema, sam]\n", "algorithms.mixup", 1,
         "between two", "algorithms: [ema, mixup, sam]\n"},
        {ETI_EDIT_INSERT, "algorithms: [ema, sam]\n", "algorithms.mixup", 2, "last",
         "algorithms: [ema, sam, mixup]\n"},
        {ETI_EDIT_INSERT, "algorithms: [ema, sam]\n", "algorithms.mixup", -1,
         "or last where no place is said", "algorithms: [ema, sam, mixup]\n"},
        {ETI_EDIT_INSERT, "algorithms: []\n", "algorithms.mixup", 0, "or alone",
         "algorithms: [mixup]\n"},
        {ETI_EDIT_INSERT, "algorithms: {ema: {x: 1}}\n", "algorithms.mixup", 0,
         "a key in flow style, too", "algorithms: {mixup:, ema: {x: 1}}\n"},
        {ETI_EDIT_INSERT,
         "algorithms:\n  # of ema\n  ema:\n    x: 1\n  # of sam\n  sam:\nz: 1\n",
         "algorithms.mixup", 0, "in block style below its key",
         "algorithms:\n  mixup:\n  # of ema\n  ema:\n    x: 1\n  # of sam\n  sam:\nz: "
         "1\n"},
        {ETI_EDIT_INSERT,
         "algorithms:\n  # of ema\n  ema:\n    x: 1\n  # of sam\n  sam:\nz: 1\n",
         "algorithms.mixup", 1, "behind the one before it",
         "algorithms:\n  # of ema\n  ema:\n    x: 1\n  mixup:\n  # of sam\n  sam:\nz: "
         "1\n"},
        {ETI_EDIT_INSERT,
         "algorithms:\n  # of ema\n  ema:\n    x: 1\n  # of sam\n  sam:\nz: 1\n",
         "algorithms.mixup", 2, "and at the end",
         "algorithms:\n  # of ema\n  ema:\n    x: 1\n  # of sam\n  sam:\n  mixup:\nz: "
         "1\n"},
        {ETI_EDIT_INSERT,
         "algorithms:\n  # of ema\n  - ema: {x: 1}\n  # of sam\n  - sam\nz: 1\n",
         "algorithms.mixup", 0, "an item likewise",
         "algorithms:\n  - mixup\n  # of ema\n  - ema: {x: 1}\n  # of sam\n  - sam\nz: "
         "1\n"},
        {ETI_EDIT_INSERT,
         "algorithms:\n  # of ema\n  - ema: {x: 1}\n  # of sam\n  - sam\nz: 1\n",
         "algorithms.mixup", 1, "behind the one before it",
         "algorithms:\n  # of ema\n  - ema: {x: 1}\n  - mixup\n  # of sam\n  - sam\nz: "
         "1\n"},
        {ETI_EDIT_INSERT, "a: 1\nz: 1\n", "algorithms.mixup", 0,
         "what leads there comes last", "a: 1\nz: 1\nalgorithms:\n  mixup:\n"},
        {ETI_EDIT_INSERT, "algorithms:\nz: 1\n", "algorithms.mixup", 0,
         "a key of nothing gets it below", "algorithms:\n  mixup:\nz: 1\n"},
        {ETI_EDIT_INSERT, "algorithms:\n  ema:\n", "algorithms.ema", 0,
         "what is there is not inserted", "algorithms.ema is set already"},
        {ETI_EDIT_INSERT, "t:\n  a: 1\n", "t.b.c.d", 0,
         "a path below a mapping has its own lines",
         "t:\n  a: 1\n  b:\n    c:\n      d:\n"},
        {ETI_EDIT_MOVE, "l:\n  # first\n  - a\n  # second\n  - b\n  - c\n", "l.2", 1,
         "an item moves up over comments of others",
         "l:\n  # first\n  - a\n  - c\n  # second\n  - b\n"},
        {ETI_EDIT_MOVE, "l:\n  # first\n  - a\n  # second\n  - b\n  - c\n", "l.1", 0,
         "and with its own", "l:\n  # second\n  - b\n  # first\n  - a\n  - c\n"},
        {ETI_EDIT_MOVE, "l:\n  # first\n  - a\n  # second\n  - b\n  - c\n", "l.0", 2,
         "or down", "l:\n  # second\n  - b\n  - c\n  # first\n  - a\n"},
        {ETI_EDIT_MOVE, "a: {x: 1, y: 2}\n", "a.x", 0, "or stays", "a: {x: 1, y: 2}\n"},
        {ETI_EDIT_MOVE, "a: {x: 1, y: 2}\n", "a.z", 0,
         "what is not there moves nowhere", "a.z is not set"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct eti_edit edit = {
            .kind = rows[i].kind,
            .path = rows[i].path,
            .value = "",
            .index = rows[i].index,
            .is_recipe = true,
        };
        struct eti_change change;
        char *out;
        memset(&errors, 0, sizeof errors);
        const size_t n = strlen(rows[i].text);
        et_status status =
            eti_yaml_edit(cx, rows[i].text, n, "c.yaml", &edit, &errors, &out, &change);
        is_str(status == ET_OK ? out : et_error_get(cx)->message, rows[i].want, "%s",
               rows[i].what);
        if (status == ET_OK)
            ok(strlen(out) == n - change.removed + change.added &&
                   memcmp(out, rows[i].text, change.at) == 0 &&
                   strcmp(out + change.at + change.added,
                          rows[i].text + change.at + change.removed) == 0,
               "and that is where it differs");
        et_error_clear(cx);
        et_free(cx, out);
    }
}

/* Lines that an entry is to have, with an end or without; keys that are numbers; an
 * item of a list within a list. */
static void
rest(void)
{
    static const struct {
        const char *text;
        struct eti_edit edit;
        const char *want;
    } rows[] = {
        {"a:\n  x: 1\nz: 2\n",
         {.kind = ETI_EDIT_INSERT,
          .path = "a.y",
          .index = -1,
          .value = "3",
          .lines = "  y: 3  # mine"},
         "a:\n  x: 1\n  y: 3  # mine\nz: 2\n"},
        {"a:\n  x: 1\nz: 2\n",
         {.kind = ETI_EDIT_INSERT,
          .path = "a.y",
          .index = -1,
          .value = "3",
          .lines = "  y: 3  # mine\n"},
         "a:\n  x: 1\n  y: 3  # mine\nz: 2\n"},
        {"a: {x: 1}\n",
         {.kind = ETI_EDIT_INSERT,
          .path = "a.y",
          .index = -1,
          .value = "3",
          .lines = "  y: 3  # mine\n"},
         "a: {x: 1, y: 3}\n"},
        {"a: 1\n", {.path = "0.b", .value = "3"}, "a: 1\n\"0\":\n  b: 3\n"},
        {"a:\n# at the left\n  x: 1\nb: 2\n",
         {.kind = ETI_EDIT_REMOVE, .path = "a"},
         "# at the left\nb: 2\n"},
        {"l:\n- a\n- residual:\n  - b\n  - c\n",
         {.kind = ETI_EDIT_INSERT,
          .path = "l.1.residual.relu",
          .value = "",
          .index = 1,
          .is_item = true},
         "l:\n- a\n- residual:\n  - b\n  - relu\n  - c\n"},
        {"l:\n- relu\n- b\n",
         {.kind = ETI_EDIT_INSERT,
          .path = "l.relu",
          .value = "",
          .index = 1,
          .is_item = true},
         "l:\n- relu\n- relu\n- b\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct eti_edit edit = rows[i].edit;
        char *out;
        edit.is_recipe = true;
        memset(&errors, 0, sizeof errors);
        et_status status = eti_yaml_edit(cx, rows[i].text, strlen(rows[i].text),
                                         "c.yaml", &edit, &errors, &out, NULL);
        is_str(status == ET_OK ? out : et_error_get(cx)->message, rows[i].want,
               "%s in '%.*s'", edit.path, (int)strcspn(rows[i].text, "\n"),
               rows[i].text);
        et_error_clear(cx);
        et_free(cx, out);
    }
}

/* Whatever allocation fails, the text is whole or there is none. */
static void
torture(void)
{
    struct et_alloc_stats before, after;
    char *out;
    int refused = 0;
    et_alloc_get_stats(cx, &before);
    et_status status = ET_ENOMEM;
    for (uint64_t k = 1; status == ET_ENOMEM; k++) {
        et_alloc_fail_at(cx, k);
        status = set("a: 1\nb: {c: 2}\n", "b.c", "3", &out);
        et_alloc_fail_at(cx, 0);
        refused += status == ET_ENOMEM && !out;
        et_error_clear(cx);
    }
    ok(status == ET_OK && refused > 3, "every allocation can fail");
    et_free(cx, out);
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)after.live, (int64_t)before.live, "and leaves nothing behind");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    replacing();
    inserting();
    first_items();
    removing();
    moving();
    recipes();
    rest();
    refusing();
    torture();
    et_ctx_free(&cx);
    return done();
}
