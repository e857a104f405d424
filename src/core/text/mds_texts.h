/* SPDX-License-Identifier: Apache-2.0 */
/* mds_texts.h: the texts, or the tokens, of a folder of MDS shards. */
#ifndef ETI_TEXT_MDS_TEXTS_H
#define ETI_TEXT_MDS_TEXTS_H

#include "core/data/mds.h"
#include "core/text/documents.h"

/* A folder, and the column that is read. */
struct eti_mds_texts {
    struct eti_mds mds;
    int column;
    bool has_ids;               /* it has tokens */
    struct eti_mds_array array; /* where it has_ids */
    /* The shard that is being read. */
    struct eti_mds_file file;
    int64_t at; /* the next sample */
};

/* Opens FOLDER: column FIELD where there is one, else tokens or input_ids. EINVAL: it
 * has none of them; ENOTSUP: that is no text and no array. */
ET_NODISCARD et_status eti_mds_texts_open(struct et_ctx *cx, const char *folder,
                                          const char *field,
                                          struct eti_mds_texts **out);
void eti_mds_texts_close(struct et_ctx *cx, struct eti_mds_texts **t);

/* Begins shard I, whose file is PATH. */
ET_NODISCARD et_status eti_mds_texts_begin(struct et_ctx *cx, struct eti_mds_texts *t,
                                           int64_t i, const char *path);
/* Puts the next samples into OUT, whose text becomes records: 4 bytes of length, then
 * the bytes of a text or int32 ids. *ENDED: the shard has no others. */
ET_NODISCARD et_status eti_mds_texts_next(struct et_ctx *cx, struct eti_mds_texts *t,
                                          int64_t most, struct eti_text_block *out,
                                          bool *ended);
void eti_mds_texts_end(struct eti_mds_texts *t);

#endif
