/* SPDX-License-Identifier: Apache-2.0 */
/* shards_folder.h: a folder that is made beside its place and gets its name when it is
 * whole. */
#ifndef ETI_TEXT_SHARDS_FOLDER_H
#define ETI_TEXT_SHARDS_FOLDER_H

#include "etude/tokenizer.h"

struct eti_new_folder {
    int parent, dir; /* -1: closed */
    char name[256], temporary[288];
    const char *path; /* borrowed; for messages */
};

/* EINVAL where PATH is something, but an empty folder. */
ET_NODISCARD et_status eti_new_folder_begin(struct et_ctx *cx, const char *path,
                                            struct eti_new_folder *f);
/* A new file in it, to be written. */
ET_NODISCARD et_status eti_new_folder_file(struct et_ctx *cx, struct eti_new_folder *f,
                                           const char *name, int *fd);
/* Copies the files that T is read from, by the names that a folder's tokenizer has.
 * *NAME: which of them et_tokenizer_open is given; "bytes" for none. */
ET_NODISCARD et_status eti_new_folder_tokenizer(struct et_ctx *cx,
                                                struct eti_new_folder *f,
                                                const struct et_tokenizer *t,
                                                const char **name);
/* Gives it its name. */
ET_NODISCARD et_status eti_new_folder_commit(struct et_ctx *cx,
                                             struct eti_new_folder *f);
/* Takes away what has no name yet, and closes. */
void eti_new_folder_end(struct et_ctx *cx, struct eti_new_folder *f);

#endif
