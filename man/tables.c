/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c: see tables.h. */
#include "man/tables.h"

#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "etude/metric.h"
#include "etude/module.h"
#include "man/mdoc.h"
#include "tui/keys.h"
#include "tui/theme.h"

/* ---- the command line ---- */

/* A help that lists choices begins with one, which stays as it is spelled. */
static void
print_help(FILE *out, const struct cli_option *o)
{
    size_t n = strcspn(o->help, " ,");
    char line[512];
    bool is_choice = false;
    for (const char *const *c = o->choices; c && *c; c++)
        is_choice = is_choice || (strlen(*c) == n && memcmp(*c, o->help, n) == 0);
    snprintf(line, sizeof line, "%s.", o->help);
    if (is_choice)
        mdoc_text(out, line);
    else
        mdoc_sentence(out, o->help);
}

void
table_options(FILE *out, const char *group, const char *title, const char *command)
{
    bool any = false;
    for (const struct cli_option *o = cli_option_table; o->name; o++) {
        if (o->type == CLI_LATER || strcmp(o->group, group) != 0 ||
            (command && !cli_takes(o, command)))
            continue;
        if (!any && title) {
            fputs(".Pp\n", out);
            mdoc_text(out, title);
        }
        if (!any)
            fputs(".Bl -tag -width Ds\n", out);
        any = true;
        fputs(".It", out);
        if (o->letter)
            fprintf(out, " Fl %c ,", o->letter);
        fputs(" Fl ", out);
        fprintf(out, "\\-%s", o->name);
        if (o->metavar) {
            fputs(" Ar ", out);
            mdoc_word(out, o->metavar);
        }
        putc('\n', out);
        print_help(out, o);
    }
    if (any)
        fputs(".El\n", out);
}

void
table_commands(FILE *out)
{
    const char *group = "";
    for (const struct cli_command *m = cli_commands; m->name; m++) {
        if (!m->run)
            continue;
        if (strcmp(group, m->group) != 0)
            fprintf(out, "%s.Ss Commands: %s\n.Bl -tag -width Ds -compact\n",
                    *group ? ".El\n" : "", m->group);
        group = m->group;
        fprintf(out, ".It Xr etude-%s 1\n", m->name);
        mdoc_sentence(out, m->summary);
    }
    fputs(".El\n", out);
}

void
table_errors(FILE *out)
{
    fputs(".Sh DIAGNOSTICS\n"
          "What goes wrong is said in one line on standard error, with a number that "
          "stays\nthe same, and where there is one a hint what to try:\n"
          ".Bl -tag -width E9999\n",
          out);
#define ERROR_ROW(number, code, exit, what)                                            \
    fprintf(out, ".It E%d\n", number);                                                 \
    mdoc_sentence(out, what);
    CLI_ERROR_MAP(ERROR_ROW)
#undef ERROR_ROW
#define DIAGNOSTIC_ROW(number, code, what)                                             \
    fprintf(out, ".It E%d\n", number);                                                 \
    mdoc_sentence(out, what);
    ET_DIAGNOSTIC_MAP(DIAGNOSTIC_ROW)
#undef DIAGNOSTIC_ROW
    fputs(".El\n", out);
}

/* ---- tables of options ---- */

/* "One of auto, cpu; default auto." */
static void
print_value(FILE *out, const struct et_option *o)
{
    char expects[512], also[128], line[1024];
    size_t n;
    et_option_expects(o, expects, sizeof expects);
    if (o->def)
        snprintf(line, sizeof line, "%s; default %s", expects, o->def);
    else if (o->flags & ET_OPT_REQUIRED)
        snprintf(line, sizeof line, "%s; required", expects);
    else
        snprintf(line, sizeof line, "%s; unset by default", expects);
    n = strlen(line);
    if (*et_option_other_names(o, also, sizeof also))
        snprintf(line + n, sizeof line - n, "; also %s", also);
    mdoc_sentence(out, line);
}

static void
print_row(FILE *out, const struct et_option *o, const char *prefix)
{
    char line[1024];
    fputs(".It Cm ", out);
    snprintf(line, sizeof line, "%s%s", prefix, o->name);
    mdoc_word(out, line);
    putc('\n', out);
    snprintf(line, sizeof line, "%s%s%s", o->help, o->unit ? ", in " : "",
             o->unit ? o->unit : "");
    mdoc_sentence(out, line);
    if (o->type != ET_OPT_TABLE)
        print_value(out, o);
}

/* A row of a component, and those of the mapping that it is. */
static void
print_option(FILE *out, const struct et_option *o)
{
    char prefix[64];
    print_row(out, o, "");
    if (o->type != ET_OPT_TABLE)
        return;
    snprintf(prefix, sizeof prefix, "%s.", o->name);
    fputs(".Bl -tag -width Ds -compact\n", out);
    for (const struct et_option *sub = o->sub; sub->name; sub++)
        print_row(out, sub, prefix);
    fputs(".El\n", out);
}

static void
print_setting(void *data, const char *path, const struct et_option *row)
{
    FILE *out = data;
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%.*s", (int)(strlen(path) - strlen(row->name)),
             path);
    print_row(out, row, prefix);
}

void
table_settings(FILE *out)
{
    fputs(".Pp\nThe settings:\n.Bl -tag -width Ds\n", out);
    eti_config_each(NULL, print_setting, out);
    fputs(".El\n", out);
}

/* ---- keys ---- */

static void
print_binding(FILE *out, const struct tui_keys *keys, const struct tui_binding *b)
{
    char key[TUI_KEY_TEXT];
    fputs(".It Ic", out);
    for (int i = 0; i < TUI_TWINS && keys->key[b->action][i]; i++) {
        fputs(i ? " , " : " ", out);
        mdoc_word(out, tui_key_text(keys->key[b->action][i], key));
    }
    fputs(" Pq Cm ", out);
    mdoc_word(out, b->id);
    putc('\n', out);
    mdoc_sentence(out, b->name);
}

void
table_keys(FILE *out)
{
    struct tui_keys keys;
    tui_keys_default(&keys);
    fputs(".Sh KEYS\n"
          "The name in parentheses is that of the action, for\n.Pa keys.yaml .\n",
          out);
    for (int where = 0; where < TUI_WHERES; where++) {
        bool any = false;
        for (int i = 0; i < TUI_ACTIONS - 1; i++) {
            if ((int)tui_bindings[i].where != where)
                continue;
            if (!any)
                fprintf(out, ".Ss %s (%s)\n.Bl -tag -width Ds\n",
                        tui_where_title((enum tui_where)where),
                        tui_where_word((enum tui_where)where));
            any = true;
            print_binding(out, &keys, &tui_bindings[i]);
        }
        if (any)
            fputs(".El\n", out);
    }
    fputs(".Sh THEMES\nThe roles that a theme colours:\n", out);
    for (int i = 0; i < TUI_ROLES; i++)
        fprintf(out, ".Cm %s%s\n", tui_role_word((enum tui_role)i),
                i + 1 < TUI_ROLES ? " ," : " .");
}

/* ---- a recipe ---- */

/* "ALGORITHMS" for the kind. Returns BUF. */
static const char *
kind_title(enum et_kind kind, char buf[32])
{
    size_t n = 0;
    for (const char *c = et_kind_word(kind); *c && n < 30; c++)
        buf[n++] = (char)toupper((unsigned char)*c);
    if (n > 0 && buf[n - 1] == 'S') /* losses */
        buf[n++] = 'E';
    buf[n++] = 'S';
    buf[n] = '\0';
    return buf;
}

static void
print_recipe_row(FILE *out, const struct et_option *o)
{
    char title[32], prefix[64];
    print_row(out, o, "");
    if (o->type == ET_OPT_PART || o->type == ET_OPT_PARTS)
        fprintf(out, "See %s in\n.Xr etude-algorithms 7 .\n",
                kind_title(o->kind, title));
    if (o->flags & ET_OPT_RESUME)
        fputs("May differ when the run is resumed.\n", out);
    if (!o->sub)
        return;
    if (o->type != ET_OPT_TABLE)
        fputs("Beside its own options each may have:\n", out);
    snprintf(prefix, sizeof prefix, "%s.", o->name);
    fputs(".Bl -tag -width Ds\n", out);
    for (const struct et_option *sub = o->sub; sub->name; sub++)
        print_row(out, sub, prefix);
    fputs(".El\n", out);
}

void
table_recipe(FILE *out)
{
    fputs(".Sh KEYS\n.Bl -tag -width Ds\n", out);
    for (const struct et_option *o = et_recipe_table; o->name; o++)
        print_recipe_row(out, o);
    fputs(".El\n", out);
}

/* ---- components ---- */

/* A list of components: a kind of them, the layers, the metrics. */
struct components {
    const struct et_component *v[128];
    int n;
};

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static const struct et_option *
find_option(const struct et_component *c, const struct et_option *like)
{
    for (const struct et_option *o = c->options; o && o->name; o++)
        if (strcmp(o->name, like->name) == 0 && same_text(o->help, like->help) &&
            same_text(o->def, like->def) && o->type == like->type)
            return o;
    return NULL;
}

/* Every one of LIST has it: it is listed once for all. */
static bool
is_common(const struct components *list, const struct et_option *o)
{
    bool all = list->n > 1;
    for (int i = 0; i < list->n && all; i++)
        all = find_option(list->v[i], o) != NULL;
    return all;
}

/* The first of LIST that has it: it is described there. */
static const struct et_component *
describes(const struct components *list, const struct et_option *o)
{
    for (int i = 0; i < list->n; i++)
        if (find_option(list->v[i], o))
            return list->v[i];
    return NULL;
}

static void
print_common(FILE *out, const struct components *list)
{
    bool any = false;
    for (const struct et_option *o = list->v[0]->options; o && o->name; o++) {
        if (!is_common(list, o))
            continue;
        fputs(any ? "" : "All of them take:\n.Bl -tag -width Ds -compact\n", out);
        any = true;
        print_option(out, o);
    }
    if (any)
        fputs(".El\n", out);
}

/* "As with mlp: num_classes, loss." for each of those before C that have them too. */
static void
print_shared(FILE *out, const struct components *list, const struct et_component *c)
{
    for (int i = 0; list->v[i] != c; i++) {
        char line[1024] = "";
        size_t n = 0;
        for (const struct et_option *o = c->options; o && o->name; o++)
            if (describes(list, o) == list->v[i] && !is_common(list, o))
                n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", n ? ", " : "",
                                      o->name);
        if (n == 0)
            continue;
        fputs("As with\n.Cm ", out);
        mdoc_word(out, list->v[i]->name);
        fputs(" :\n", out);
        snprintf(line + n, sizeof line - n, ".");
        mdoc_text(out, line);
    }
}

static void
print_own(FILE *out, const struct components *list, const struct et_component *c)
{
    bool any = false;
    for (const struct et_option *o = c->options; o && o->name; o++) {
        if (describes(list, o) != c || is_common(list, o))
            continue;
        fputs(any ? "" : ".Bl -tag -width Ds -compact\n", out);
        any = true;
        print_option(out, o);
    }
    if (any)
        fputs(".El\n", out);
}

static void
print_events(FILE *out, const char *algorithm)
{
    const struct et_algorithm_class *a = et_algorithm_find(algorithm);
    char line[2048] = "Acts at";
    for (int e = 0; a && e < ET_EVENT_COUNT; e++) {
        size_t n = strlen(line);
        if (a->events & UINT64_C(1) << e)
            snprintf(line + n, sizeof line - n, "%s %s", n > 7 ? "," : "",
                     et_event_name((enum et_event)e));
    }
    mdoc_sentence(out, line);
    const char *why = a ? et_algorithm_why_not_join(a) : NULL;
    if (a && why)
        snprintf(line, sizeof line, "Is for recipes alone: it %s", why);
    else if (a)
        snprintf(line, sizeof line, "May join a run that goes on without it");
    if (a)
        mdoc_sentence(out, line);
}

/* What only components of its KIND have. */
static void
print_kind(FILE *out, const struct et_component *c, int kind)
{
    char line[1024];
    if (kind == ET_KIND_ALGORITHM)
        print_events(out, c->name);
    if (kind != ET_KIND_MODEL)
        return;
    snprintf(line, sizeof line, "Begins with %s.",
             et_model_beginning(ETI_CLASS(model, c)));
    mdoc_text(out, line);
}

static void
print_component(FILE *out, const struct components *list, const struct et_component *c,
                int kind)
{
    char line[1024];
    fputs(".It Cm ", out);
    mdoc_word(out, c->name);
    putc('\n', out);
    mdoc_sentence(out, c->summary ? c->summary : c->name);
    if (c->applies_to && strcmp(c->applies_to, "any") != 0) {
        snprintf(line, sizeof line, "For %s.", c->applies_to);
        mdoc_text(out, line);
    }
    print_kind(out, c, kind);
    if (c->source) {
        snprintf(line, sizeof line, "Source: %s", c->source);
        mdoc_sentence(out, line);
    }
    print_shared(out, list, c);
    print_own(out, list, c);
}

static void
print_components(FILE *out, const char *title, const struct components *list, int kind)
{
    if (list->n == 0)
        return;
    fprintf(out, ".Sh %s\n", title);
    print_common(out, list);
    fputs(".Bl -tag -width Ds\n", out);
    for (int i = 0; i < list->n; i++)
        print_component(out, list, list->v[i], kind);
    fputs(".El\n", out);
}

static void
add(struct components *list, const struct et_component *c)
{
    if (list->n == (int)(sizeof list->v / sizeof *list->v)) {
        fprintf(stderr, "pages: more than %d components of a kind\n", list->n);
        exit(1);
    }
    list->v[list->n++] = c;
}

void
table_components(FILE *out)
{
    const struct et_registry *all = et_registry_core();
    char title[32];
    for (int kind = 0; kind < ET_KIND_COUNT; kind++) {
        const struct et_component *c;
        struct components list = {.n = 0};
        for (int i = 0; (c = all->get(all, (enum et_kind)kind, i)); i++)
            add(&list, c);
        print_components(out, kind_title((enum et_kind)kind, title), &list, kind);
    }
}
