/* SPDX-License-Identifier: Apache-2.0 */
/* unigram.c: of all ways to take a text apart the one whose scores sum to most.
 *
 * Source: Kudo, Subword Regularization, 2018; the order of sums, the score of what is
 * unknown and what wins a tie are those of SentencePiece's EncodeOptimized, and of
 * Hugging Face's tokenizers, which sums in doubles. */
#include <string.h>

#include "core/base/memory.h"
#include "core/text/impl.h"
#include "core/text/unicode.h"

/* How much worse than the worst token an unknown character is. */
#define UNKNOWN_PENALTY 10.0

/* The best way to here. */
struct eti_way {
    double score;
    int64_t from; /* where its last token begins; -1: there is none yet */
    int32_t id;
};

static void
offer(const struct eti_unigram *u, struct eti_way *to, double score, int64_t from,
      int32_t id)
{
    if (to->from >= 0 && score <= to->score)
        return;
    *to = (struct eti_way){
        .score = u->in_float ? (float)score : score,
        .from = from,
        .id = id,
    };
}

/* All tokens that begin at AT; an unknown one where none is the character alone. */
static void
offer_tokens(const struct et_tokenizer *t, struct eti_way *best, const char *text,
             size_t n, size_t at)
{
    const struct eti_unigram *u = &t->unigram;
    double here = best[at].score;
    size_t length;
    bool good, alone = false;
    uint32_t node = 0;
    (void)eti_char(text + at, n - at, &length, &good);
    for (size_t end = at; end < n;) {
        node = eti_trie_step(&u->trie, node, (uint8_t)text[end++]);
        if (node == 0)
            break;
        int32_t id = u->trie.value[node];
        if (id < 0)
            continue;
        /* SentencePiece: tokens of the user always win. */
        bool users = u->in_float && t->special[id] == 2;
        double score = users ? (double)(end - at) * u->best - 0.1 : u->score[id];
        offer(u, &best[end], score + here, (int64_t)at, id);
        alone |= end == at + length;
    }
    if (!alone)
        offer(u, &best[at + length], u->worst - UNKNOWN_PENALTY + here, (int64_t)at,
              t->unk);
}

et_status
eti_unigram_word(struct et_encoder *e, const char *text, size_t n)
{
    const struct et_tokenizer *t = e->t;
    ET_TRY(eti_grow(e->cx, &e->best, &e->best_room, (int64_t)n + 1, sizeof *e->best));
    struct eti_way *best = e->best;
    for (size_t i = 0; i <= n; i++)
        best[i] = (struct eti_way){.from = -1};
    for (size_t at = 0, length; at < n; at += length) {
        bool good;
        offer_tokens(t, best, text, n, at);
        (void)eti_char(text + at, n - at, &length, &good);
    }
    /* The way back, turned: SCORE is no more needed, and holds where each goes on. */
    int64_t to = (int64_t)n, next = (int64_t)n;
    while (to > 0) {
        int64_t from = best[to].from;
        best[to].score = (double)next;
        next = to;
        to = from;
    }
    bool was_unk = false;
    for (int64_t from = 0, end = n ? next : 0; from < (int64_t)n;) {
        if (best[end].id == t->unk) {
            ET_TRY(eti_put_unknown(e, text + from, (size_t)(end - from),
                                   t->unigram.fuse_unk, &was_unk));
        } else {
            was_unk = false;
            ET_TRY(eti_put_id(e, best[end].id));
        }
        from = end;
        end = (int64_t)best[end].score;
    }
    return ET_OK;
}
