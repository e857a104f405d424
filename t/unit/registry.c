/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of all components of this build: what each promises, for each alike; what
 * each takes is in ranges.txt. */
#include "core/plugin/fields.h"
#include "core/recipe/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/etude.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* A row says what it is; its default is a value that is printed and read back. */
static bool
is_sound(const struct et_option *table, const struct et_option *row, void *options,
         const char *name)
{
    char *text = NULL, *again = NULL;
    bool has_help =
        row->help && row->help[0] && row->help[strlen(row->help) - 1] != '.';
    bool has_choices = row->type != ET_OPT_ENUM || (row->choices && row->choices[0]);
    bool has_default = row->def || row->type != ET_OPT_BOOL;
    bool is_same = false;
    if (et_option_text(cx, row, options, &text) == ET_OK &&
        et_options_set(cx, table, options, row->name, text) == ET_OK &&
        et_option_text(cx, row, options, &again) == ET_OK)
        is_same = strcmp(text, again) == 0;
    if (!is_same)
        diag("%s.%s: %s read back as %s: %s", name, row->name, text ? text : "nothing",
             again ? again : "nothing", et_error_get(cx)->message);
    if (!has_help || !has_choices || !has_default)
        diag("%s.%s: help, choices or default missing", name, row->name);
    et_error_clear(cx);
    et_free(cx, text);
    et_free(cx, again);
    return is_same && has_help && has_choices && has_default;
}

static bool
is_unique(const struct et_option *table, const struct et_option *row)
{
    for (const struct et_option *o = table; o != row; o++)
        if (strcmp(o->name, row->name) == 0 || o->offset == row->offset) {
            diag("%s and %s have one name, or one place", o->name, row->name);
            return false;
        }
    return true;
}

/* Options of C, those of FROM or with its defaults where that is NULL, while the K-th
 * allocation fails, for each k: there are none, and nothing is left of them. */
static bool
is_clean(const struct et_component *c, const void *from)
{
    struct et_alloc_stats before, after;
    et_status status = ET_ENOMEM;
    bool clean = true;
    for (uint64_t k = 1; clean && status != ET_OK; k++) {
        void *options = NULL;
        et_alloc_get_stats(cx, &before);
        et_alloc_fail_at(cx, k);
        status = eti_options_new(cx, c, from, &options);
        et_alloc_fail_at(cx, 0);
        clean = status == ET_OK || (status == ET_ENOMEM && !options);
        if (status == ET_OK)
            eti_options_free(cx, c, &options);
        et_alloc_get_stats(cx, &after);
        clean &= !options && after.live == before.live;
        et_error_clear(cx);
    }
    if (!clean)
        diag("%s: options that could not be made are not gone", c->name);
    return clean;
}

/* ---- what a user may give ---- */

static char ranges[1 << 19];

/* What a flag lets a user do. (The range itself says whether its ends belong to it.) */
static const struct {
    unsigned flag;
    const char *says;
} allowed[] = {
    {ET_OPT_REQUIRED, "required"},
    {ET_OPT_OPTIONAL, "or unset"},
    {ET_OPT_FALSE, "or false"},
    {ET_OPT_BRIEF, "or its first row alone"},
    {ET_OPT_BY_NAME, "by name"},
    {ET_OPT_ITEMS, "checked as components"},
    {ET_OPT_KEEP, "besides the default's"},
    {ET_OPT_OUTPUT, "within the run directory"},
    {ET_OPT_MAY_CHANGE, "may change in a run"},
    {ET_OPT_RESUME, "may differ in a resume"},
    {ET_OPT_LATER, "newer than saved runs"},
};

/* Adds a line for each option of TABLE, which OF has, and of those below: the values
 * that it takes, what its flags allow, its default. */
static void
note_ranges(const char *of, const struct et_option *table)
{
    char text[1024], below[256];
    for (const struct et_option *row = table; row && row->name; row++) {
        size_t used = strlen(ranges);
        used += (size_t)snprintf(ranges + used, sizeof ranges - used, "%s.%s: %s", of,
                                 row->name, et_option_expects(row, text, sizeof text));
        for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
            if (row->flags & allowed[i].flag)
                used += (size_t)snprintf(ranges + used, sizeof ranges - used, ", %s",
                                         allowed[i].says);
        snprintf(ranges + used, sizeof ranges - used, "%s%s\n", row->def ? "; " : "",
                 row->def ? row->def : "");
        snprintf(below, sizeof below, "%s.%s", of, row->name);
        note_ranges(below, row->sub);
    }
}

static void
test_ranges(void)
{
    static char want[sizeof ranges];
    char path[1024];
    snprintf(path, sizeof path, "%s/t/unit/ranges.txt",
             getenv("ET_SRCDIR") ? getenv("ET_SRCDIR") : ".");
    FILE *f = fopen(path, getenv("ETUDE_UPDATE") ? "w+" : "r");
    if (f && getenv("ETUDE_UPDATE")) {
        fputs(ranges, f);
        rewind(f);
    }
    want[f ? fread(want, 1, sizeof want - 1, f) : 0] = 0;
    if (f)
        fclose(f);
    const char *a = want, *b = ranges;
    if (ok(strcmp(want, ranges) == 0,
           "options take what t/unit/ranges.txt says (ETUDE_UPDATE=1 writes it anew)"))
        return;
    while (*a && strncmp(a, b, strcspn(a, "\n") + 1) == 0) {
        b += strcspn(a, "\n") + 1;
        a += strcspn(a, "\n") + 1;
    }
    diag("the first that does not: %.*s", (int)strcspn(b, "\n"), b);
    diag("where there was: %.*s", (int)strcspn(a, "\n"), a);
}

/* Whole numbers count something, and have a least one: names of those that are taken
 * however small. (ignore_index is no class, whichever number it is.) */
static char boundless[1024];

static void
find_boundless(const struct et_component *c, enum et_kind kind, void *options)
{
    for (const struct et_option *row = c->options; row && row->name; row++) {
        size_t n = strlen(boundless);
        if (row->type == ET_OPT_INT && strcmp(row->name, "ignore_index") != 0 &&
            et_options_set(cx, c->options, options, row->name, "-987654321") == ET_OK)
            snprintf(boundless + n, sizeof boundless - n, " %s %s.%s",
                     et_kind_word(kind), c->name, row->name);
        et_error_clear(cx);
    }
}

static void
test_component(const struct et_component *c, enum et_kind kind)
{
    char of[128];
    snprintf(of, sizeof of, "%s %s", et_kind_word(kind), c->name);
    note_ranges(of, c->options);
    void *options = calloc(1, c->options_size + 1);
    bool held = options && c->summary && c->summary[0];
    if (et_options_init(cx, c->options, options) != ET_OK) {
        diag("%s", et_error_get(cx)->message);
        et_error_clear(cx);
        held = false;
    }
    for (const struct et_option *row = c->options; row && row->name; row++)
        held &= row->offset < c->options_size && is_unique(c->options, row) &&
                is_sound(c->options, row, options, c->name);
    ok(is_clean(c, NULL) && is_clean(c, options),
       "%s %s: options that cannot be made are gone", et_kind_word(kind), c->name);
    if (options)
        find_boundless(c, kind, options);
    et_options_release(c->options, options);
    free(options);
    ok(held, "%s %s: defaults are set, printed and read back", et_kind_word(kind),
       c->name);
    ok(et_registry_find(NULL, kind, c->name) == c, "%s %s is found by its name",
       et_kind_word(kind), c->name);
}

/* What a plugin's class of each kind cannot do without: WANT is missing where FIELDS
 * alone are set. */
static void
test_needs(void)
{
    enum { ROOM = 1024 };
#define AT(tag, name) offsetof(struct et_##tag##_class, name)
    static const struct {
        enum et_kind kind;
        size_t fields[5]; /* offsets; 0: no more */
        const char *want;
    } rows[] = {
        {ET_KIND_MODEL, {0}, ".build is missing"},
        {ET_KIND_MODEL, {AT(model, build)}, ""},
        {ET_KIND_DATASET, {AT(dataset, sample)}, ".open is missing"},
        {ET_KIND_DATASET, {AT(dataset, open)}, ".sample or .tokens is missing"},
        {ET_KIND_DATASET, {AT(dataset, open), AT(dataset, sample)}, ""},
        {ET_KIND_DATASET, {AT(dataset, open), AT(dataset, tokens)}, ""},
        {ET_KIND_TRANSFORM, {0}, ".geometry, .pixels or .value is missing"},
        {ET_KIND_TRANSFORM, {AT(transform, geometry)}, ""},
        {ET_KIND_TRANSFORM, {AT(transform, pixels)}, ""},
        {ET_KIND_TRANSFORM, {AT(transform, value)}, ""},
        {ET_KIND_OPTIMIZER,
         {AT(optimizer, hyper), AT(optimizer, update)},
         ".moments is missing"},
        {ET_KIND_OPTIMIZER,
         {AT(optimizer, moments), AT(optimizer, update)},
         ".hyper is missing"},
        {ET_KIND_OPTIMIZER,
         {AT(optimizer, moments), AT(optimizer, hyper)},
         ".update is missing"},
        {ET_KIND_OPTIMIZER,
         {AT(optimizer, moments), AT(optimizer, hyper), AT(optimizer, update)},
         ""},
        {ET_KIND_OPTIMIZER,
         {AT(optimizer, moments), AT(optimizer, hyper), AT(optimizer, update),
          AT(optimizer, states)},
         ".state_shape is missing, which .states needs"},
        {ET_KIND_OPTIMIZER,
         {AT(optimizer, moments), AT(optimizer, hyper), AT(optimizer, update),
          AT(optimizer, state_shape)},
         ".states is missing, which .state_shape needs"},
        {ET_KIND_OPTIMIZER,
         {AT(optimizer, moments), AT(optimizer, hyper), AT(optimizer, update),
          AT(optimizer, states), AT(optimizer, state_shape)},
         ".by_tensor is missing, which .states needs"},
        {ET_KIND_SCHEDULER, {0}, ".alpha is missing"},
        {ET_KIND_SCHEDULER, {AT(scheduler, alpha)}, ""},
        {ET_KIND_ALGORITHM, {0}, ".events is missing"},
        {ET_KIND_ALGORITHM,
         {AT(algorithm, events)},
         ".apply is missing, which .events needs"},
        {ET_KIND_ALGORITHM,
         {AT(algorithm, transform), AT(algorithm, apply)},
         ".events is missing, which .apply needs"},
        {ET_KIND_ALGORITHM, {AT(algorithm, transform)}, ""},
        {ET_KIND_ALGORITHM, {AT(algorithm, update)}, ""},
        {ET_KIND_CALLBACK,
         {AT(callback, events)},
         ".run is missing, which .events needs"},
        {ET_KIND_CALLBACK, {AT(callback, run)}, ".events is missing, which .run needs"},
        {ET_KIND_CALLBACK, {0}, ""},
        {ET_KIND_LOGGER,
         {AT(callback, is_logger), AT(callback, events)},
         ".run is missing, which .events needs"},
        {ET_KIND_LOGGER,
         {AT(callback, is_logger), AT(callback, run)},
         ".events is missing, which .run needs"},
        {ET_KIND_LOGGER,
         {AT(callback, events), AT(callback, run)},
         ".is_logger is missing"},
        {ET_KIND_METRIC, {AT(metric, compute)}, ".update is missing"},
        {ET_KIND_METRIC, {AT(metric, update)}, ".compute is missing"},
        {ET_KIND_METRIC,
         {AT(metric, update), AT(metric, compute)},
         ".n_sums or .n_sums_per_class is missing"},
        {ET_KIND_METRIC,
         {AT(metric, update), AT(metric, compute), AT(metric, n_sums_per_class)},
         ""},
        {ET_KIND_LOSS, {0}, ".each or .whole is missing"},
        {ET_KIND_LOSS, {AT(loss, whole)}, ""},
        {ET_KIND_LAYER, {AT(module, forward)}, ".size is missing"},
        {ET_KIND_LAYER, {AT(module, size)}, ".forward is missing"},
        {ET_KIND_LAYER, {AT(module, size), AT(module, forward)}, ""},
    };
#undef AT
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        union {
            struct et_component info;
            unsigned char bytes[ROOM];
        } class = {.info = {.name = "own", .class_size = ROOM}};
        char why[256] = "";
        for (int k = 0; k < 5 && rows[i].fields[k]; k++)
            class.bytes[rows[i].fields[k]] = 1;
        const bool lacks = eti_class_lacks(rows[i].kind, &class.info, why, sizeof why);
        if (!ok(lacks == (*rows[i].want != 0) && strstr(why, rows[i].want),
                "class of %s: %s", et_kind_word(rows[i].kind),
                lacks ? rows[i].want : "nothing is missing"))
            diag("%s", why);
    }
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    const struct et_registry *r = et_registry_core();
    for (int kind = 0; kind < ET_KIND_COUNT; kind++) {
        const struct et_component *c;
        for (int i = 0; (c = r->get(r, kind, i)) != NULL; i++)
            test_component(c, kind);
        ok(et_registry_find(NULL, kind, "no such name") == NULL,
           "no %s has a name that nobody gave", et_kind_word(kind));
    }
    note_ranges("recipe", et_recipe_table);
    test_ranges();
    test_needs();
    is_str(boundless, "", "whole numbers have a least one");
    struct et_recipe recipe = {0};
    bool held = et_options_init(cx, et_recipe_table, &recipe) == ET_OK;
    for (const struct et_option *row = et_recipe_table; row->name; row++)
        held &= is_unique(et_recipe_table, row) &&
                (row->type >= ET_OPT_TABLE ||
                 is_sound(et_recipe_table, row, &recipe, "recipe"));
    et_options_release(et_recipe_table, &recipe);
    ok(held, "the keys of a recipe have sound defaults");
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
