/* SPDX-License-Identifier: Apache-2.0 */
/* shards.h: files of text to a folder of tokens, which the dataset `tokens` reads.
 *
 *     train.bin   the tokens of all documents end to end: 2 bytes little-endian, or 4
 *                 where the vocabulary has more than 65,536
 *     train.ends  where each document ends: 8 bytes little-endian, in tokens
 *     val.bin, val.ends   likewise, where some documents were set apart
 *     tokenizer.json ...  the tokenizer's own files
 *     tokens.json         what all that is; who finds it finds the rest whole
 */
#ifndef ETI_TEXT_SHARDS_H
#define ETI_TEXT_SHARDS_H

#include <stdint.h>

#include "etude/tokenizer.h"

/* What is one document. */
enum eti_document { ETI_DOCUMENT_FILE, ETI_DOCUMENT_LINE, ETI_DOCUMENT_BLANK };
extern const char *const eti_document_names[]; /* "file", "line", "blank" */

struct eti_shards_progress {
    int64_t bytes, all_bytes; /* of the input; as it lies, packed files too */
    int64_t text_bytes;       /* of text */
    int64_t n_files, files, skipped;
    int64_t documents, tokens;         /* both splits */
    int64_t val_documents, val_tokens; /* of them */
    double seconds;
};

struct eti_shards_config {
    const char *const *input; /* files and folders */
    int n_inputs;
    const char *folder; /* to be made; one that is empty may be there */
    const char *field;  /* of a line of JSONL */
    enum eti_document document;
    const char *end;     /* the token behind each document; NULL: the tokenizer's,
                              "": none */
    double val_fraction; /* of the documents */
    uint32_t seed;       /* which these are */
    int threads;
    bool plain; /* special tokens that texts spell are text */
    /* Called about twice a second and at the end; false ends it with ECANCELED. */
    bool (*tell)(void *data, const struct eti_shards_progress *p);
    void *data;
};

/* Writes the folder, whole or not at all. ENOENT, EIO: a file; EFORMAT: what is in one,
 * with file:line. */
ET_NODISCARD et_status eti_shards_write(struct et_ctx *cx, const struct et_tokenizer *t,
                                        const struct eti_shards_config *config,
                                        struct eti_shards_progress *out);

#endif
