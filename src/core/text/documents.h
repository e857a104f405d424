/* SPDX-License-Identifier: Apache-2.0 */
/* documents.h: the texts of files and folders, block by block. */
#ifndef ETI_TEXT_DOCUMENTS_H
#define ETI_TEXT_DOCUMENTS_H

#include "core/text/shards.h"

struct eti_documents;

/* What the bytes of a block are. */
enum eti_block_kind {
    ETI_BLOCK_TEXT,
    ETI_BLOCK_JSONL,
    ETI_BLOCK_RECORDS, /* of MDS shards (mds_texts.h): texts */
    ETI_BLOCK_IDS,     /* likewise: tokens */
};

/* Some text that can be encoded on its own. */
struct eti_text_block {
    char *text; /* in memory of the block's own, used again */
    int64_t n, room;
    const char *path; /* of its file; lasts as long as the documents */
    int64_t line;     /* of the text's first line, from 1; of records the first's
                         number, from 0 */
    enum eti_block_kind kind;
    bool ends_document; /* its last document ends with it */
    bool last;          /* there is no other */
};

/* Lists all files; ENOENT where an input is not there. */
ET_NODISCARD et_status eti_documents_open(struct et_ctx *cx,
                                          const struct et_tokenizer *t,
                                          const struct eti_shards_config *config,
                                          struct eti_documents **out);
void eti_documents_close(struct eti_documents **d);
/* The next block; *OUT's memory is grown with CX. False in *FOUND at the end. */
ET_NODISCARD et_status eti_documents_next(struct eti_documents *d,
                                          struct eti_text_block *out, bool *found);
/* Are there tokens among the documents, of MDS shards? */
bool eti_documents_have_ids(const struct eti_documents *d);
/* Is there one document alone, whose end is set apart? */
bool eti_documents_cuts_tail(const struct eti_documents *d);
/* Of where the files are, how large, and when they were written. */
uint64_t eti_documents_hash(const struct eti_documents *d);
void eti_documents_progress(const struct eti_documents *d,
                            struct eti_shards_progress *p);

#endif
