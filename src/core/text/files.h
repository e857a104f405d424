/* SPDX-License-Identifier: Apache-2.0 */
/* files.h: the files that a tokenizer was read from, by the names that a folder has
 * them under. */
#ifndef ETI_TEXT_FILES_H
#define ETI_TEXT_FILES_H

#include <jansson.h>

#include "core/data/file.h"
#include "etude/tokenizer.h"

enum { ETI_TOKENIZER_FILES = 4 };

struct eti_tokenizer_files {
    const char *name; /* what et_tokenizer_open is given in the folder; "bytes": none */
    struct {
        char from[ETI_PATH_MAX];
        const char *to;
    } v[ETI_TOKENIZER_FILES];
    int n;
};
/* EINVAL: a path is too long. */
ET_NODISCARD et_status eti_tokenizer_files(struct et_ctx *cx,
                                           const struct et_tokenizer *t,
                                           struct eti_tokenizer_files *out);
/* Does one of them become the file called NAME? */
bool eti_tokenizer_has_file(const struct eti_tokenizer_files *f, const char *name);

/* The tokenizer.json of T, whose tokens are the bytes: byte-level BPE without merges.
 * Ends with json_decref; NULL: no memory. */
json_t *eti_tokenizer_bytes_json(const struct et_tokenizer *t);

/* What transformers reads of T beside those files, as tokenizer_config.json: its class,
 * and which tokens have a role. MAX_LENGTH: of a text, in tokens. PAIRS: the model
 * reads which of two texts a token is of. Ends with json_decref; NULL: no memory. */
json_t *eti_tokenizer_config_json(const struct et_tokenizer *t, const char *name,
                                  int64_t max_length, bool pairs);

#endif
