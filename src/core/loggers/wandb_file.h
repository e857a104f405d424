/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_file.h: writing the log that `wandb sync` reads. Format: wandb_file.c. */
#ifndef ETI_WANDB_FILE_H
#define ETI_WANDB_FILE_H

#include "core/loggers/loggers.h"
#include "core/loggers/protobuf.h"

struct eti_wandb_file {
    struct eti_output file;
    struct eti_message record; /* the one under way */
    int64_t at;                /* bytes that were written */
    int64_t num;               /* of the last record */
};
/* Fields of a record that say what it is about. */
enum eti_wandb_kind {
    ETI_WANDB_HISTORY = 2,
    ETI_WANDB_SUMMARY = 3,
    ETI_WANDB_RUN = 17,
    ETI_WANDB_EXIT = 18,
    ETI_WANDB_HEADER = 21,
};

/* Begins DIRECTORY/NAME. EINVAL, EIO. */
ET_NODISCARD et_status eti_wandb_open(struct et_ctx *cx, const char *directory,
                                      const char *name, struct eti_wandb_file *out);
/* Adds the record BODY of KIND, and empties BODY. */
void eti_wandb_put(struct eti_wandb_file *w, enum eti_wandb_kind kind,
                   struct eti_message *body);
/* Adds {1: key  16: value as JSON} to BODY as field NUMBER: an item of a history, a
 * summary or a configuration. */
void eti_wandb_item(struct eti_message *body, int number, const char *key,
                    const char *json);
/* VALUE as JSON, with the words that Python has for what is not finite. Returns BUF of
 * ETI_NUMBER bytes. */
const char *eti_wandb_number(double value, char *buf);
void eti_wandb_close(struct eti_wandb_file *w);

#endif
