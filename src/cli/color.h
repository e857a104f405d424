/* SPDX-License-Identifier: Apache-2.0 */
/* color.h: whether what is printed has colours, and which. */
#ifndef CLI_COLOR_H
#define CLI_COLOR_H

#include "cli/cli.h"
#include "tui/theme.h"

/* What the command line, the environment and the configuration say, in this order. */
enum eti_color cli_color(const struct cli *c);
/* Are there to be colours in what is written to the descriptor FD? */
bool cli_has_color(const struct cli *c, int fd);

/* The sequence that begins ROLE in BUF, which it returns: of the eight colours that
 * every terminal has and a person has set up, since what is printed knows no
 * background. */
enum { CLI_SGR = 24 };
const char *cli_sgr(enum tui_role role, char buf[CLI_SGR]);
/* Ends it. */
#define CLI_SGR_OFF "\033[0m"

#endif
