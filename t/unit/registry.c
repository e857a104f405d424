/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of all components of this build: what each promises, for each alike. */
#include "etude/recipe.h"

#include <stdlib.h>
#include <string.h>

#include "etude/ctx.h"
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
        if (strcmp(o->name, row->name) == 0)
            return false;
    return true;
}

static void
test_component(const struct et_component *c, enum et_kind kind)
{
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
    et_options_release(c->options, options);
    free(options);
    ok(held, "%s %s: defaults are set, printed and read back", et_kind_word(kind),
       c->name);
    ok(et_registry_find(NULL, kind, c->name) == c, "%s %s is found by its name",
       et_kind_word(kind), c->name);
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
