/* SPDX-License-Identifier: Apache-2.0 */
/* charsmap.h: SentencePiece's normalizer. */
#ifndef ETI_TEXT_CHARSMAP_H
#define ETI_TEXT_CHARSMAP_H

#include "core/text/impl.h"

struct eti_charsmap {
    uint32_t *unit; /* of the trie */
    size_t n_units;
    char *text; /* the replacements, each with a 0 behind it */
    size_t n_texts;
    struct eti_trie users; /* tokens that are left as they are */
    bool prepends;         /* a space before the text */
    bool removes;          /* spaces that are doubled, or at an end */
    bool escapes;          /* a space becomes U+2581 */
    bool as_suffix;        /* spaces are put behind words */
};
/* The table of a model file, of N bytes; 0: it has none. */
ET_NODISCARD et_status eti_charsmap_load(struct et_ctx *cx, struct eti_charsmap *m,
                                         const char *blob, size_t n);
/* The table as those bytes again; OUT: et_free. */
ET_NODISCARD et_status eti_charsmap_save(struct et_ctx *cx,
                                         const struct eti_charsmap *m, uint8_t **out,
                                         size_t *n);
/* What the text KEY, of N bytes, becomes by the table; NULL: it is not in it. */
const char *eti_charsmap_find(const struct eti_charsmap *m, const char *key, size_t n);
/* Calls EACH for the texts of the table, none of which has more than 32 bytes, until it
 * fails. EFORMAT: a table that does not end. */
typedef et_status eti_charsmap_fn(void *arg, const char *key, size_t n, const char *by);
ET_NODISCARD et_status eti_charsmap_each(struct et_ctx *cx,
                                         const struct eti_charsmap *m,
                                         eti_charsmap_fn *each, void *arg);
/* The table alone, as Hugging Face's Precompiled uses it. */
ET_NODISCARD et_status eti_charsmap_precompiled(struct et_encoder *e,
                                                const struct eti_charsmap *m,
                                                const char *text, size_t n,
                                                struct eti_buf *out);

#endif
