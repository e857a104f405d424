/* SPDX-License-Identifier: Apache-2.0 */
/* vocab.h: the texts of tokens by id, and their ids by text. */
#ifndef ETI_TEXT_VOCAB_H
#define ETI_TEXT_VOCAB_H

#include <stdint.h>

#include "etude/ctx.h"

/* More ids than any tokenizer has: a file cannot ask for more memory than these. */
enum { ETI_VOCAB_MAX = 1 << 24 };

struct eti_word {
    uint32_t at, n; /* in the text; AT is UINT32_MAX where the id is of no token */
};

struct eti_vocab {
    struct et_ctx *cx;
    char *text;
    int64_t n_text, text_room;
    struct eti_word *word; /* by id */
    int64_t n, word_room;  /* ids are below N */
    int32_t *slot;         /* id + 1 by hash of the text; 0: free */
    uint64_t mask;
    int64_t n_used; /* slots */
};

/* Gives ID a text. EFORMAT: it has one, or is out of range. Where two ids have one
 * text, that text means the later. */
ET_NODISCARD et_status eti_vocab_add(struct eti_vocab *v, int64_t id, const char *text,
                                     size_t n);
void eti_vocab_release(struct eti_vocab *v);
/* -1: none. */
int32_t eti_vocab_find(const struct eti_vocab *v, const char *text, size_t n);
/* NULL: none. */
const char *eti_vocab_text(const struct eti_vocab *v, int64_t id, size_t *n);

/* Adds N bytes to TEXT, which has *AT of them, and grows it. */
ET_NODISCARD et_status eti_text_append(struct et_ctx *cx, char **text, int64_t *at,
                                       int64_t *room, const char *more, size_t n);

/* ---- the longest token that a text begins with ---- */

struct eti_branch {
    uint64_t key; /* node << 8 | byte, plus 1; 0: free */
    uint32_t node;
};
struct eti_trie {
    struct et_ctx *cx;
    struct eti_branch *branch; /* by hash of the key */
    uint64_t mask;
    int32_t *value; /* by node: an id, -1 where no token ends; node 0 is the root */
    int64_t n, room;
    bool begins[256]; /* tokens begin with this byte */
};

ET_NODISCARD et_status eti_trie_add(struct eti_trie *t, const char *text, size_t n,
                                    int32_t id);
void eti_trie_release(struct eti_trie *t);

/* The node behind NODE by BYTE; 0: none. */
static inline uint32_t
eti_trie_step(const struct eti_trie *t, uint32_t node, uint8_t byte)
{
    uint64_t key = ((uint64_t)node << 8 | byte) + 1;
    uint64_t at = (key * 0x9e3779b97f4a7c15u) >> 20;
    for (;; at++) {
        const struct eti_branch *b = &t->branch[at & t->mask];
        if (b->key == key)
            return b->node;
        if (b->key == 0)
            return 0;
    }
}

/* Bytes of the longest token that TEXT, of N bytes, begins with; 0: none. */
size_t eti_trie_longest(const struct eti_trie *t, const char *text, size_t n,
                        int32_t *id);

#endif
