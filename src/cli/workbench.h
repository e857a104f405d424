/* SPDX-License-Identifier: Apache-2.0 */
/* workbench.h: the workbench, begun by `etude`, `compose`, `attach` and others. */
#ifndef ET_CLI_WORKBENCH_H
#define ET_CLI_WORKBENCH_H

#include "cli/cli.h"
#include "tui/app.h"

/* Runs the workbench with the screen FIRST; or prints a screen with --dump-screen.
 * BEGIN (may be NULL) is called with DATA before anything is shown: what it returns, if
 * not CLI_OK, is the end. Returns the exit code. */
int cli_workbench(struct cli *c, enum tui_where first,
                  int (*begin)(struct cli *c, struct tui_app *app, void *data),
                  void *data);

/* The same with the run of FACTS (borrowed) watched. */
struct json_t;
int cli_workbench_run(struct cli *c, enum tui_where first, struct json_t *facts);

#endif
