/* SPDX-License-Identifier: Apache-2.0 */
/* token_file.h: datasets whose tokens lie in a file, one, two or four bytes each. */
#ifndef ETI_DATA_TOKEN_FILE_H
#define ETI_DATA_TOKEN_FILE_H

#include <time.h>

#include "core/data/file.h"
#include "etude/data.h"

/* The private state of such a dataset. */
struct eti_token_file {
    struct eti_file file;
    bool is_open;
    int width;               /* bytes of a token: 1, or 2 or 4 little-endian */
    int64_t begin;           /* offset of this split's first token, in bytes */
    bool watched;            /* somebody else's file, which may change */
    struct timespec changed; /* when it last was, as it was opened */
};

/* How many tokens of WIDTH bytes follow a header of HEADER bytes in N. Pure; EFORMAT
 * with a sentence in WHY that lacks the name of the file. */
ET_NODISCARD et_status eti_token_count(int64_t n, int64_t header, int width,
                                       int64_t *out, struct et_error *why);

/* Opens PATH as SELF, or takes over FD where that is not -1 (PATH then is for
 * messages). SPLIT: which tokens are SELF's; see the values. */
enum eti_token_split {
    ETI_WHOLE, /* all of the file */
    ETI_90_10, /* train: the first nine tenths; test: the rest */
};
ET_NODISCARD et_status eti_token_file_open(struct et_ctx *cx, struct et_dataset *self,
                                           const char *path, int fd, int width,
                                           int64_t header, int64_t vocab_size,
                                           enum eti_token_split split);
/* The tokens and close hooks. */
ET_NODISCARD et_status eti_token_file_tokens(const struct et_dataset *self, int64_t at,
                                             int64_t n, int32_t *out,
                                             struct et_error *why);
void eti_token_file_close(struct et_dataset *self);

#endif
