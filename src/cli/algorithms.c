/* SPDX-License-Identifier: Apache-2.0 */
/* algorithms.c: `etude algorithms`: the training methods, and what each may set. */
#include "config.h"

#include <fnmatch.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "core/algorithms/methods.h"

/* The name, or a part of it, or a pattern with * and ?. */
static bool
matches(const char *pattern, const char *name)
{
    if (!pattern)
        return true;
    return strpbrk(pattern, "*?[") ? fnmatch(pattern, name, 0) == 0
                                   : strstr(name, pattern) != NULL;
}

static json_t *
to_json(const struct et_algorithm_class *a)
{
    const struct et_component *i = &a->info;
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "name", i->name, "class",
        i->class_name, "summary", i->summary, "source", i->source ? i->source : "",
        "applies_to", i->applies_to ? i->applies_to : "", "events",
        cli_events_json(a->events), "options", cli_options_json(i->options), "switches",
        json_boolean(et_algorithm_switches(a)), "joins",
        json_boolean(!et_algorithm_why_not_join(a)));
}

static json_t *
find_all(struct cli *c, const char *pattern)
{
    const struct et_component *i;
    json_t *list = json_array();
    const struct et_registry *r = cli_all_components(c);
    for (int n = 0; (i = r->get(r, ET_KIND_ALGORITHM, n)) != NULL; n++)
        if (matches(pattern, i->name))
            json_array_append_new(list, to_json(ETI_CLASS(algorithm, i)));
    return list;
}

/* Name and summary, when it acts, options with their defaults. */
static void
print_one(const json_t *one)
{
    json_t *row;
    size_t i;
    et_print(stdout, "%-24s %s\n%-24s at",
             json_string_value(json_object_get(one, "name")),
             json_string_value(json_object_get(one, "summary")), "");
    json_array_foreach(json_object_get(one, "events"), i, row)
        et_print(stdout, " %s", json_string_value(row));
    et_print(stdout, "\n%-24s %s", "",
             json_is_true(json_object_get(one, "joins"))
                 ? "may be switched on while a run goes on"
                 : "is for a recipe alone");
    json_array_foreach(json_object_get(one, "options"), i, row)
    {
        const char *def = json_string_value(json_object_get(row, "default"));
        bool required = json_is_true(json_object_get(row, "required"));
        if (i == 0)
            et_print(stdout, "\n%-24s", "");
        et_print(stdout, " %s=%s", json_string_value(json_object_get(row, "name")),
                 def        ? def
                 : required ? "(required)"
                            : "null");
    }
    printf("\n");
}

static void
print_text(const json_t *list)
{
    json_t *one;
    size_t i;
    json_array_foreach(list, i, one) print_one(one);
}

int
cli_algorithms(struct cli *c)
{
    const char *pattern = c->n_args > 0 ? c->arg[0] : NULL;
    if (c->n_args > 1)
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "algorithms takes one pattern, not also '%s'", c->arg[1]);
    json_t *list = find_all(c, pattern);
    bool none = json_array_size(list) == 0;
    int code = CLI_OK;
    if (none)
        code = cli_fail(c, CLI_E_NAME, "etude algorithms lists them",
                        "no algorithm matches '%s'", pattern ? pattern : "*");
    else if (c->opt.json)
        return cli_print_json(list);
    else
        print_text(list);
    json_decref(list);
    return code;
}
