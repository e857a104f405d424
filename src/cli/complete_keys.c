/* SPDX-License-Identifier: Apache-2.0 */
/* complete_keys.c: keys of recipes and their values, as far as the tables and the
 * recipe on the command line say what may stand there. */
#include "config.h"

#include <ctype.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/complete.h"
#include "core/library/index.h"
#include "core/recipe/network.h"
#include "core/recipe/value.h"

enum { KEY_BYTES = 512 };

/* Where a key leads: what may stand below it. */
struct place {
    const struct et_option *row;          /* that leads here; NULL: the recipe itself */
    const struct et_option *table;        /* its keys; NULL: by component */
    const struct et_component *component; /* of a part that is known */
    bool is_part;                         /* has a name and a component's options */
    bool is_by_name;                      /* its keys are names of components */
    bool is_list;                         /* its keys are numbers of such (layers) */
    const struct et_option *of;           /* is_list: row of the part that has it */
    const struct eti_network_word *word;  /* "residual": its keys are lists, too */
};

static const struct et_option *
find_row(const struct et_option *table, const char *name, size_t n)
{
    for (const struct et_option *o = table; o && o->name; o++)
        if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return o;
    return NULL;
}

/* The recipe among the operands; NULL: none of them is one, or it is not right yet. */
static struct et_recipe *
load_recipe(const struct cli_typed *t)
{
    extern char **environ;
    const struct et_recipe_env env = {
        .variables = (const char *const *)environ,
        .load_plugins = cli_load_plugins,
        .data = t->c,
    };
    struct et_diagnostics errors = {0};
    struct et_recipe *recipe = NULL;
    char path[PATH_MAX];
    if (t->n_operands == 0)
        return NULL;
    cli_complete_config(t);
    if (!t->module_mode)
        snprintf(path, sizeof path, "%s", t->operand[0]);
    else if (!cli_recipe_find(t->operand[0], path, sizeof path))
        return NULL;
    if (et_recipe_load(t->c->cx, path, NULL, 0, &env, &recipe, &errors) != ET_OK)
        et_error_clear(t->c->cx);
    return recipe;
}

/* The core's components, and those of the plugins that the recipe names. */
static const struct et_registry *
known_components(const struct cli_typed *t)
{
    struct et_recipe *recipe = t->c->registry ? NULL : load_recipe(t);
    et_recipe_free(&recipe); /* its plugins stay */
    return t->c->registry ? t->c->registry : et_registry_core();
}

/* The component that the part at ROW of the recipe has, or that "optimizer=adamw" or
 * "optimizer.name=adamw" gave it. */
static const struct et_component *
component_of(const struct cli_typed *t, const struct et_option *row)
{
    const struct et_component *found = NULL;
    struct et_recipe *recipe = load_recipe(t);
    if (recipe) {
        const void *field = (const char *)recipe + row->offset;
        const struct et_parts *parts = field;
        const struct et_part *part = row->type == ET_OPT_PART ? field
                                     : parts->n > 0           ? &parts->v[0]
                                                              : NULL;
        found = part ? part->component : NULL;
    }
    et_recipe_free(&recipe);
    const struct et_registry *known = known_components(t);
    size_t n = strlen(row->name);
    for (int i = 0; i < t->n_settings; i++) {
        const char *rest = t->setting[i] + n;
        if (strncmp(t->setting[i], row->name, n) != 0)
            continue;
        if (strncmp(rest, ".name", 5) == 0)
            rest += 5;
        if (*rest == '=' && et_registry_find(known, row->kind, rest + 1))
            found = et_registry_find(known, row->kind, rest + 1);
    }
    return found;
}

/* Is NAME [N] a key of WORD that has layers? */
static bool
is_list_key(const struct eti_network_word *word, const char *name, size_t n)
{
    for (const char *const *key = word->keys; *key; key++)
        if (strlen(*key) == n && memcmp(*key, name, n) == 0)
            return strcmp(*key, "times") != 0;
    return false;
}

/* One step from PLACE over the key NAME [N]. false: nothing is below it. */
static bool
enter(const struct cli_typed *t, struct place *p, const char *name, size_t n)
{
    char component[KEY_BYTES];
    if (p->word) {
        const struct eti_network_word *word = p->word;
        p->word = NULL;
        p->is_list = !isdigit((unsigned char)*name);
        p->is_by_name = !p->is_list; /* its list stands there at once */
        return p->is_by_name || is_list_key(word, name, n);
    }
    if (p->is_by_name) {
        snprintf(component, sizeof component, "%.*s", (int)n, name);
        p->word =
            p->row->kind == ET_KIND_LAYER ? eti_network_word_find(component) : NULL;
        if (p->word) {
            p->is_by_name = false;
            return p->word->keys[0] != NULL;
        }
        p->component = et_registry_find(known_components(t), p->row->kind, component);
        p->table = p->component ? p->component->options : NULL;
        p->is_by_name = false;
        return p->table != NULL;
    }
    if (p->is_list) {
        p->is_list = false;
        p->is_by_name = true;
        p->of = NULL; /* what stands in a list further in is not looked up */
        return isdigit((unsigned char)*name);
    }
    if (p->is_part && isdigit((unsigned char)*name))
        return true; /* an item of a list of them */
    const struct et_option *row = find_row(p->table, name, n);
    if (row && row->flags & ET_OPT_ITEMS) {
        *p = (struct place){.row = row, .is_list = true, .of = p->row};
        return true;
    }
    if (!row || (row->type != ET_OPT_TABLE && row->type != ET_OPT_PART &&
                 row->type != ET_OPT_PARTS))
        return false;
    bool is_part = row->type != ET_OPT_TABLE;
    bool is_by_name = is_part && row->flags & ET_OPT_BY_NAME;
    *p = (struct place){
        .row = row,
        .is_part = is_part && !is_by_name,
        .is_by_name = is_by_name,
        .table = is_part ? NULL : row->sub,
    };
    if (p->is_part) {
        p->component = component_of(t, row);
        p->table = p->component ? p->component->options : NULL;
    }
    return true;
}

/* ---- keys ---- */

static void
offer(const struct cli_typed *t, const char *prefix, const char *name,
      const char *ending, const char *what)
{
    char text[KEY_BYTES];
    snprintf(text, sizeof text, "%s%s%s", prefix, name, ending);
    cli_candidate(t, text, what);
}

static void
offer_rows(const struct cli_typed *t, const char *prefix, const struct et_option *table,
           bool bare)
{
    for (const struct et_option *o = table; o && o->name; o++) {
        bool is_part = o->type == ET_OPT_PART || o->type == ET_OPT_PARTS ||
                       o->flags & ET_OPT_ITEMS;
        if (o->type == ET_OPT_TABLE || is_part)
            offer(t, prefix, o->name, ".", o->help);
        if (bare)
            offer(t, prefix, o->name, "", o->help);
        else if ((o->type != ET_OPT_TABLE || o->flags & ET_OPT_BRIEF) &&
                 !(o->flags & ET_OPT_BY_NAME))
            offer(t, prefix, o->name, "=", o->help);
    }
}

/* Options of any component of KIND, each once: which it is is not known. */
static void
offer_any(const struct cli_typed *t, const char *prefix, enum et_kind kind, bool bare)
{
    const struct et_registry *all = known_components(t);
    const struct et_component *c, *before;
    for (int i = 0; (c = all->get(all, kind, i)); i++)
        for (const struct et_option *o = c->options; o && o->name; o++) {
            bool is_new = true;
            for (int k = 0; k < i && (before = all->get(all, kind, k)); k++)
                is_new = is_new && !find_row(before->options, o->name, strlen(o->name));
            if (is_new)
                offer(t, prefix, o->name, bare ? "" : "=", o->help);
        }
}

static void
offer_names(const struct cli_typed *t, const char *prefix, enum et_kind kind, bool bare)
{
    const struct et_registry *all = known_components(t);
    const struct et_component *c;
    for (int i = 0; (c = all->get(all, kind, i)); i++) {
        if (c->options && c->options->name)
            offer(t, prefix, c->name, ".", c->summary);
        offer(t, prefix, c->name, bare ? "" : "=", c->summary);
    }
}

/* The words of a network, which stand where layers do, and the keys of one. */
static void
offer_words(const struct cli_typed *t, const char *prefix, bool bare)
{
    for (int i = 0; i < ETI_NETWORK_WORDS; i++) {
        const struct eti_network_word *word = &eti_network_words[i];
        if (word->keys[0])
            offer(t, prefix, word->name, ".", word->help);
        offer(t, prefix, word->name, bare ? "" : "=", word->help);
    }
}

static void
offer_word_keys(const struct cli_typed *t, const char *prefix,
                const struct eti_network_word *word, bool bare)
{
    for (const char *const *key = word->keys; *key; key++) {
        if (is_list_key(word, *key, strlen(*key)))
            offer(t, prefix, *key, ".", word->help);
        offer(t, prefix, *key, bare ? "" : "=", word->help);
    }
}

/* The places of a list, as many as the recipe has there, and what stands at each. */
static void
offer_places(const struct cli_typed *t, const struct place *p, const char *prefix)
{
    struct et_recipe *recipe = p->of ? load_recipe(t) : NULL;
    const struct et_part *part = NULL;
    if (recipe && p->of->type == ET_OPT_PART)
        part = (const void *)((const char *)recipe + p->of->offset);
    const struct et_value *list = NULL;
    if (part && part->component &&
        find_row(part->component->options, p->row->name, strlen(p->row->name)) ==
            p->row)
        list = *(const struct et_value **)((char *)part->options + p->row->offset);
    const struct et_value *item = list ? list->first : NULL;
    for (int i = 0; item; item = item->next, i++) {
        const struct et_value *says = eti_network_says(item);
        char number[16];
        const char *name = says == item ? item->text : says ? says->key : "from";
        snprintf(number, sizeof number, "%d", i);
        if (says != item)
            offer(t, prefix, number, ".", name);
        offer(t, prefix, number, "=", name);
    }
    et_recipe_free(&recipe);
}

static void
offer_below(const struct cli_typed *t, const struct place *p, const char *prefix,
            bool bare)
{
    if (p->is_by_name) {
        if (p->row->kind == ET_KIND_LAYER)
            offer_words(t, prefix, bare);
        offer_names(t, prefix, p->row->kind, bare);
        return;
    }
    if (p->word)
        offer_word_keys(t, prefix, p->word, bare);
    if (p->is_list)
        offer_places(t, p, prefix);
    if (p->is_part) {
        offer(t, prefix, "name", bare ? "" : "=", "which it is");
        offer_rows(t, prefix, p->row->sub, bare);
        if (!p->component)
            offer_any(t, prefix, p->row->kind, bare);
    }
    offer_rows(t, prefix, p->table, bare);
}

/* ---- values ---- */

static void
offer_values(const struct cli_typed *t, const struct place *p, const char *name)
{
    static const char *const truths[] = {"true", "false", NULL};
    const struct et_option *o = find_row(p->table, name, strlen(name));
    if (p->is_part && !o)
        o = find_row(p->row->sub, name, strlen(name));
    if (p->is_by_name && !(p->row->flags & ET_OPT_ITEMS))
        cli_candidate(t, "false", "named but off");
    if (p->is_list)
        cli_complete_components(t, p->row->kind);
    if (p->is_part && strcmp(name, "name") == 0)
        cli_complete_components(t, p->row->kind);
    if (!o)
        return;
    if (o->flags & ET_OPT_BRIEF)
        o = o->sub;
    if (o->type == ET_OPT_PART || o->type == ET_OPT_PARTS)
        cli_complete_components(t, o->kind);
    if (o->type == ET_OPT_PATH)
        puts(":files");
    for (const char *const *word = o->type == ET_OPT_BOOL ? truths : o->choices;
         word && *word; word++)
        cli_candidate(t, *word, "");
}

void
cli_complete_keys(const struct cli_typed *t, bool bare)
{
    struct cli_typed value = *t;
    struct place p = {.table = t->keys ? t->keys : et_recipe_table};
    char prefix[KEY_BYTES] = "", name[KEY_BYTES];
    const char *const start = t->word + t->fixed; /* behind "--unset=" */
    const char *at = start, *equals = strchr(start, '='), *dot;
    while ((dot = strchr(at, '.')) && (!equals || dot < equals)) {
        if (!enter(t, &p, at, (size_t)(dot - at)))
            return;
        at = dot + 1;
    }
    snprintf(prefix, sizeof prefix, "%.*s", (int)(at - start), start);
    if (!equals) {
        offer_below(t, &p, prefix, bare);
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - at), at);
    value.fixed = (size_t)(equals - t->word) + 1;
    offer_values(&value, &p, name);
}

/* ---- keys of a run that is under way ---- */

json_t *
cli_complete_run(const struct cli_typed *t)
{
    struct eti_index *index = NULL;
    json_t *found = NULL;
    et_status status =
        t->n_operands > 0 ? eti_index_open(t->c->cx, NULL, &index) : ET_OK;
    if (index)
        status = eti_index_find(index, "runs", t->operand[0], &found);
    if (status != ET_OK)
        et_error_clear(t->c->cx);
    eti_index_close(&index);
    return found;
}

static void
offer_changes(const struct cli_typed *t, const char *prefix,
              const struct et_component *of)
{
    for (const struct et_option *o = of ? of->options : NULL; o && o->name; o++)
        if (o->flags & ET_OPT_MAY_CHANGE)
            offer(t, prefix, o->name, "=", o->help);
}

void
cli_complete_changes(const struct cli_typed *t)
{
    char fact[ETI_FACT_TEXT], prefix[KEY_BYTES];
    json_t *facts = cli_complete_run(t);
    const char *optimizer = facts ? eti_facts_get(facts, "optimizer", fact) : NULL;
    const json_t *list = json_object_get(facts, "algorithms");
    if (optimizer)
        offer_changes(t, "optimizer.",
                      et_registry_find(NULL, ET_KIND_OPTIMIZER, optimizer));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        snprintf(prefix, sizeof prefix, "algorithms.%s.", name);
        offer_changes(t, prefix, et_registry_find(NULL, ET_KIND_ALGORITHM, name));
    }
    json_decref(facts);
}
