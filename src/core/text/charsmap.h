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

#endif
