/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c: of etude-events(7), what can be asked of a run, from the tables that
 * hub and supervisor read commands with. */
#include "man/tables.h"

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/optim/group.h"
#include "dist/wire/errors.h"
#include "dist/wire/wire.h"
#include "etude/algorithm.h"
#include "etude/optim.h"
#include "etude/recipe.h"
#include "man/mdoc.h"

/* "key: the option; value: on or off, a text of less than 160 bytes". */
static void
print_argument(FILE *out, const char *name, const char *what, size_t room)
{
    char line[256];
    bool may_miss = what && what[0] == '[';
    if (!what)
        return;
    fprintf(out, ".Va %s :\n", name);
    snprintf(line, sizeof line, "%.*s, a text of less than %zu bytes%s.",
             (int)(strlen(what) - 2 * may_miss), what + may_miss, room,
             may_miss ? ", or absent" : "");
    mdoc_text(out, line);
}

static void
print_operation(FILE *out, enum etd_op op)
{
    const char *key, *value, *help;
    etd_op_words(op, &key, &value, &help);
    fprintf(out, ".It Cm %s\n", etd_op_name(op));
    mdoc_sentence(out, help);
    print_argument(out, "key", key, ETD_WORD);
    print_argument(out, "value", value, etd_op_room(op));
    if (!key && !value)
        fputs("No arguments.\n", out);
    if (op == ETD_OP_LOGLEVEL) {
        fputs("The levels are", out);
        for (int i = ET_LOG_DEBUG; i <= ET_LOG_ERROR; i++)
            fprintf(out, "%s %s%s", i == ET_LOG_ERROR ? " and" : "",
                    et_log_level_name((enum et_log_level)i),
                    i == ET_LOG_ERROR      ? ".\n"
                    : i + 1 < ET_LOG_ERROR ? ","
                                           : "");
    }
}

static void
print_key(FILE *out, const char *prefix, const struct et_option *o)
{
    char expects[256], line[1024];
    fprintf(out, ".It Cm %s.%s\n", prefix, o->name);
    snprintf(line, sizeof line, "%s: %s", o->help,
             et_option_expects(o, expects, sizeof expects));
    mdoc_sentence(out, line);
}

/* The options of C that may change, as keys behind PREFIX. */
static void
print_keys(FILE *out, const char *prefix, const struct et_component *c)
{
    for (const struct et_option *o = c->options; o && o->name; o++)
        if (o->flags & ET_OPT_MAY_CHANGE)
            print_key(out, prefix, o);
}

/* Has one of the first N of LIST an option NAME that may change? */
static bool
is_known(const struct et_optimizer_class *const *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        for (const struct et_option *o = list[i]->info.options; o && o->name; o++)
            if (o->flags & ET_OPT_MAY_CHANGE && strcmp(o->name, name) == 0)
                return true;
    return false;
}

/* Each key once, be it of several optimizers. */
static void
print_optimizer_keys(FILE *out)
{
    int n;
    const struct et_optimizer_class *const *list = et_optimizer_list(&n);
    for (int i = 0; i < n; i++)
        for (const struct et_option *o = list[i]->info.options; o && o->name; o++)
            if (o->flags & ET_OPT_MAY_CHANGE && !is_known(list, i, o->name))
                print_key(out, "optimizer", o);
}

static void
print_settable(FILE *out)
{
    char prefix[128];
    fputs(".Pp\nKeys of\n.Cm set ,\nand what their values may be:\n"
          ".Bl -tag -width Ds\n",
          out);
    print_optimizer_keys(out);
    print_keys(out, "optimizer.groups.N", &et_param_group_info);
    const struct et_registry *all = et_registry_core();
    const struct et_component *c;
    for (int i = 0; (c = all->get(all, ET_KIND_ALGORITHM, i)); i++) {
        snprintf(prefix, sizeof prefix, "algorithms.%s", c->name);
        print_keys(out, prefix, c);
    }
    fputs(".El\n.Pp\n.Va N\nis the number of a parameter group, from 0.\n"
          "A plugin's optimizer or algorithm has its own.\n",
          out);
}

/* "Of all operations but annotate." */
static void
print_concerned(FILE *out, int code)
{
    char yes[256] = "", no[256] = "";
    int n_no = 0;
    for (int op = 0; op < ETD_OP_COUNT; op++) {
        bool rejects = etd_op_rejects((enum etd_op)op, code);
        char *list = rejects ? yes : no;
        size_t used = strlen(list);
        n_no += !rejects;
        snprintf(list + used, 256 - used, "%s%s", used ? ", " : "",
                 etd_op_name((enum etd_op)op));
    }
    if (n_no == 0)
        return;
    fprintf(out, n_no < ETD_OP_COUNT / 2 ? "Not of\n.Cm %s .\n" : "Of\n.Cm %s .\n",
            n_no < ETD_OP_COUNT / 2 ? no : yes);
}

void
table_operations(FILE *out)
{
    fputs(".Sh OPERATIONS\nThe\n.Va op\nof a command, and its\n.Va args :\n"
          ".Bl -tag -width \"loglevel\"\n",
          out);
    for (int op = 0; op < ETD_OP_COUNT; op++)
        print_operation(out, (enum etd_op)op);
    fputs(".El\n", out);
    print_settable(out);
    fputs(".Sh REJECTIONS\nThe\n.Va code\nof REJECTED:\n.Bl -tag -width 9999\n", out);
#define REJECTION(number, code, exit, what)                                            \
    if (etd_op_rejects(ETD_OP_ALGO, number)) {                                         \
        fprintf(out, ".It %d\n", number);                                              \
        mdoc_sentence(out, what);                                                      \
        print_concerned(out, number);                                                  \
    }
    ETD_ERROR_MAP(REJECTION)
#undef REJECTION
    fputs(".El\n", out);
}
