/* SPDX-License-Identifier: Apache-2.0 */
/* help.c: help texts, made from the tables of commands and options. */
#include "config.h"

#include <string.h>

#include "cli/workbench.h"

static const char *
not_yet(bool later)
{
    return later ? " (not in this version)" : "";
}

/* "-n, --nproc N", "    --json". */
static void
print_option(const struct cli_option *o)
{
    char left[64];
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
             o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
             o->metavar ? " " : "", o->metavar ? o->metavar : "");
    et_print(stdout, "  %-28s %s%s\n", left, o->help, not_yet(o->type == CLI_LATER));
}

/* The options of GROUP that COMMAND takes (NULL: any). */
static void
print_group(const char *group, const char *title, const char *command)
{
    bool any = false;
    for (const struct cli_option *o = cli_option_table; o->name; o++) {
        if (strcmp(o->group, group) != 0 || (command && !cli_takes(o, command)))
            continue;
        if (!any)
            et_print(stdout, "\n%s\n", title);
        any = true;
        print_option(o);
    }
}

static void
print_commands(void)
{
    static const char *const groups[] = {"make",  "run",  "look", "move",
                                         "hosts", "help", NULL};
    for (const char *const *g = groups; *g; g++) {
        et_print(stdout, "\n%s\n", *g);
        for (const struct cli_command *m = cli_commands; m->name; m++)
            if (strcmp(m->group, *g) == 0)
                et_print(stdout, "  %-11s %s%s\n", m->name, m->summary,
                         not_yet(!m->run));
    }
}

static int
help_command(struct cli *c, const char *name)
{
    const struct cli_command *m = cli_command_find(name);
    if (!m)
        return cli_fail(c, CLI_E_COMMAND, "etude help lists them",
                        "unknown command '%s'", name);
    et_print(stdout, "etude %s [OPTIONS]%s%s\n  %s%s\n", m->name,
             *m->synopsis ? " " : "", m->synopsis, m->summary, not_yet(!m->run));
    if (!m->run)
        return CLI_OK;
    print_group("command", "options", m->name);
    print_group("recipe", "changes to the recipe", m->name);
    print_group("launch", "launch", m->name);
    print_group("global", "everywhere", m->name);
    return CLI_OK;
}

/* The help of the screen that the workbench begins with. */
static int
begin(struct cli *c, struct tui_app *app, void *data)
{
    (void)c, (void)data;
    tui_app_act(app, TUI_DO_everywhere_help);
    return CLI_OK;
}

int
cli_help(struct cli *c)
{
    bool asked = c->command && strcmp(c->command->name, "help") == 0;
    if (asked && c->n_args > 1)
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "help is about one command, not also '%s'", c->arg[1]);
    if (asked && c->opt.dump_screen && c->n_args == 0) {
        int code = cli_config_load(c);
        return code == CLI_OK ? cli_workbench(c, TUI_IN_compose, begin, NULL) : code;
    }
    if (asked && c->n_args == 1)
        return help_command(c, c->arg[0]);
    if (c->command && !asked)
        return help_command(c, c->command->name);
    printf("etude [GLOBAL] COMMAND [OPTIONS] [ARG...]\n"
           "etude recipe.yaml [key=value...]       the same as: etude train "
           "recipe.yaml ...\n");
    print_commands();
    print_group("global", "global options", NULL);
    printf(
        "\netude help COMMAND says more. Begin with: etude train -m fashion_mnist\n");
    return CLI_OK;
}
