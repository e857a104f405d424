/* SPDX-License-Identifier: Apache-2.0 */
/* data.h: what the files of `etude data` share. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "cli/cli.h"

/* Fills the options of TYPE, *OUT, with their defaults and the command line's
 * key=value, for COMMAND, whose name is in what it says of an option that is missing.
 * Returns the exit code. To be freed also where it is not CLI_OK. */
int cli_data_options(struct cli *c, const struct et_dataset_class *type,
                     const char *command, void **out);
void cli_data_options_free(struct cli *c, const struct et_dataset_class *type,
                           void *options);
/* `etude data show`; returns the exit code. */
int cli_data_show(struct cli *c);

#endif
