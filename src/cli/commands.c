/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c: the table of commands. */
#include "config.h"

#include <string.h>

#include "cli/cli.h"

const struct cli_command cli_commands[] = {
#define CLI_COMMAND(its_name, its_group, its_synopsis, its_summary)                    \
    {                                                                                  \
        .name = #its_name,                                                             \
        .group = its_group,                                                            \
        .synopsis = its_synopsis,                                                      \
        .summary = its_summary,                                                        \
        .run = cli_##its_name,                                                         \
    },
#define CLI_LATER_COMMAND(its_name, its_group, its_synopsis, its_summary)              \
    {                                                                                  \
        .name = its_name,                                                              \
        .group = its_group,                                                            \
        .synopsis = its_synopsis,                                                      \
        .summary = its_summary,                                                        \
    },
#include "cli/commands.def"
#undef CLI_COMMAND
#undef CLI_LATER_COMMAND
    {0},
};

const struct cli_command *
cli_command_find(const char *name)
{
    for (const struct cli_command *m = cli_commands; m->name; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}
