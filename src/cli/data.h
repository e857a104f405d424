/* SPDX-License-Identifier: Apache-2.0 */
/* data.h: what the files of `etude data` share. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include <jansson.h>

#include "cli/cli.h"
#include "core/data/look.h"

/* Fills the options of TYPE, *OUT, with their defaults and the command line's
 * key=value, for COMMAND, whose name is in what it says of an option that is missing.
 * Returns the exit code. To be freed also where it is not CLI_OK. */
int cli_data_options(struct cli *c, const struct et_dataset_class *type,
                     const char *command, void **out);
void cli_data_options_free(struct cli *c, const struct et_dataset_class *type,
                           void *options);
enum { CLI_TRANSFORMS = 16 };
/* What a screen shows of the first N samples of LOOK, of DATA: pictures, texts, class
 * counts, and TRANSFORMS, a list of {name, on}. The caller's; NULL: no memory. */
json_t *cli_data_pictures(struct cli *c, const struct eti_batch_look *look,
                          const struct et_dataset *data, int64_t n, json_t *transforms);
/* `etude data show`; returns the exit code. */
int cli_data_show(struct cli *c);

#endif
