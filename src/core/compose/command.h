/* SPDX-License-Identifier: Apache-2.0 */
/* command.h: a sketch as a command line: its file, and what differs from that. */
#ifndef ETI_COMMAND_H
#define ETI_COMMAND_H

#include "core/compose/sketch.h"

enum { ETI_COMMAND_ARGUMENTS = 128 };

/* The arguments behind "etude train": the recipe's path and the overrides that make of
 * its file what the text says. */
struct eti_command {
    struct et_ctx *cx;
    char *argument[ETI_COMMAND_ARGUMENTS];
    int n;
};

/* EINVAL: the text has faults, or no file. ENOTSUP: overrides cannot say the
 * difference, so it must be saved. Release *OUT in any case. */
ET_NODISCARD et_status eti_command_new(struct eti_sketch *d, struct eti_command *out);
void eti_command_release(struct eti_command *command);
/* As one types it in a shell: "etude VERB recipe.yaml optimizer.lr=0.2". Caller frees
 * *OUT with et_free. */
ET_NODISCARD et_status eti_command_text(const struct eti_command *command,
                                        const char *verb, char **out);

#endif
