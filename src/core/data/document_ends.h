/* SPDX-License-Identifier: Apache-2.0 */
/* document_ends.h: where each document of a file of tokens ends: core/text/shards.h. */
#ifndef ETI_DATA_DOCUMENT_ENDS_H
#define ETI_DATA_DOCUMENT_ENDS_H

#include "core/data/packing.h"

struct eti_document_ends {
    int64_t *end; /* [n]: of each document, in tokens; rising */
    int64_t n;
};

/* Reads PATH, whose documents have N_TOKENS together. EIO; EFORMAT: the ends do not
 * rise up to N_TOKENS. Free it in any case. */
ET_NODISCARD et_status eti_document_ends_read(struct et_ctx *cx, const char *path,
                                              int64_t n_tokens,
                                              struct eti_document_ends *out);
void eti_document_ends_free(struct et_ctx *cx, struct eti_document_ends *e);
/* The document that token AT is of. */
int64_t eti_document_of(const struct eti_document_ends *e, int64_t at);
/* Cuts documents, but for the last TAIL tokens of each, into pieces of at most MOST.
 * *OUT, the caller's also after an error, has *N of them. */
ET_NODISCARD et_status eti_document_pieces(struct et_ctx *cx,
                                           const struct eti_document_ends *e,
                                           int64_t most, int64_t tail,
                                           struct eti_piece **out, int64_t *n);

#endif
