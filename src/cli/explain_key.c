/* SPDX-License-Identifier: Apache-2.0 */
/* explain_key.c: `etude explain kernel_size`: keys of recipes and options of components
 * by their names, and by other names for them. */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "core/recipe/options.h"

enum { PATH_BYTES = 160 };

struct search {
    struct cli *c;
    const char *word;
    const char *owner, *kind; /* of the table that is looked through; NULL: a recipe */
    const char *shown;        /* the owner above the last row printed */
    json_t *found;            /* with --json */
    int matches;
    char near[64]; /* the name that is nearest to the word; "": none is near */
};

/* Is ROW, whose path is PATH, what the word means: by its name or another name for it,
 * by its path, or by "conv2d.kernel"? */
static bool
is_meant(const struct search *s, const struct et_option *row, const char *path)
{
    const size_t n = s->owner ? strlen(s->owner) : 0;
    char mark;
    if (strcmp(s->word, row->name) == 0 || strcmp(s->word, path) == 0)
        return true;
    if (s->owner && strncmp(s->word, s->owner, n) == 0 && s->word[n] == '.' &&
        strcmp(s->word + n + 1, path) == 0)
        return true;
    return eti_option_has_name(row, s->word, &mark) && mark != '~';
}

static void
show(struct search *s, const struct et_option *row, const char *path)
{
    struct et_option one[] = {*row, {.name = NULL}};
    s->matches++;
    one->name = path;
    if (s->c->opt.json) {
        json_t *option = cli_options_json(one);
        json_array_append_new(s->found, json_pack("{s:s?, s:s, s:O}", "name", s->owner,
                                                  "kind", s->kind ? s->kind : "recipe",
                                                  "option", json_array_get(option, 0)));
        json_decref(option);
        return;
    }
    const char *owner = s->owner ? s->owner : "recipe";
    if (s->shown != owner)
        et_print(stdout, "%s%s%s\n", owner, s->kind ? ", " : "",
                 s->kind ? s->kind : "");
    s->shown = owner;
    cli_print_options(one, "  ");
}

/* One of the N NAMES may be nearer to the word than what there has been so far. */
static void
consider(struct search *s, const char *const *names, int n)
{
    const char *both[] = {et_nearest(s->word, names, n), s->near};
    const char *near = both[0] ? et_nearest(s->word, both, *s->near ? 2 : 1) : NULL;
    if (near && near != s->near)
        snprintf(s->near, sizeof s->near, "%s", near);
}

/* The rows of TABLE, and of tables in it; PREFIX is "" or "checkpoint.". */
static void
look_through(struct search *s, const struct et_option *table, const char *prefix)
{
    struct eti_names names = {.n = 0};
    eti_names_add(&names, table);
    consider(s, names.v, names.n);
    for (const struct et_option *row = table; row && row->name; row++) {
        char path[PATH_BYTES], below[PATH_BYTES + 1];
        snprintf(path, sizeof path, "%s%s", prefix, row->name);
        if (is_meant(s, row, path))
            show(s, row, path);
        snprintf(below, sizeof below, "%s.", path);
        if (row->sub)
            look_through(s, row->sub, below);
    }
}

bool
cli_explain_key(struct cli *c, const char *word, int *code)
{
    struct search s = {
        .c = c, .word = word, .found = c->opt.json ? json_array() : NULL};
    const struct et_registry *all = cli_all_components(c);
    const struct et_component *i;
    look_through(&s, et_recipe_table, "");
    for (int kind = 0; kind < ET_KIND_COUNT; kind++)
        for (int k = 0; (i = all->get(all, (enum et_kind)kind, k)); k++) {
            consider(&s, &i->name, 1);
            s.owner = i->name;
            s.kind = et_kind_word((enum et_kind)kind);
            look_through(&s, i->options, "");
        }
    const bool is_near = s.matches == 0 && !strpbrk(word, "./") && *s.near;
    *code = CLI_OK;
    if (s.matches > 0 && c->opt.json)
        *code = cli_print_json(json_incref(s.found));
    else if (is_near)
        *code = cli_fail(c, CLI_E_NAME, NULL,
                         "no file, component or key is called '%s' (did you mean "
                         "'%s'?)",
                         word, s.near);
    json_decref(s.found);
    return s.matches > 0 || is_near;
}
