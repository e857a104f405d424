/* SPDX-License-Identifier: Apache-2.0 */
/* unigram.c: of all ways to take a text apart the one whose scores sum to most.
 *
 * Source: Kudo, Subword Regularization, 2018; the order of sums, the score of what is
 * unknown and what wins a tie are those of SentencePiece's EncodeOptimized (0.2.3: it
 * sums and compares in floats), and of Hugging Face's tokenizers (doubles). */
#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/text/impl.h"
#include "core/text/unicode.h"

/* How much worse than the worst token an unknown character is. */
#define UNKNOWN_PENALTY 10.0
/* SentencePiece: sums that are longer than this begin at 0 again. */
#define LONGEST_SUM 100000.0F

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
    if (u->in_float)
        score = (float)score;
    if (to->from >= 0 && score <= to->score)
        return;
    *to = (struct eti_way){
        .score = score,
        .from = from,
        .id = id,
    };
}

/* SentencePiece: a token of the user, of N bytes, always wins. */
static double
score_of_users(size_t n)
{
    return (float)(0.1 * (double)(n - 1));
}

static double
score_of_unknown(const struct eti_unigram *u)
{
    double score = u->worst - UNKNOWN_PENALTY;
    return u->in_float ? (float)score : score;
}

/* All tokens that begin at AT; an unknown one where none is the character alone. Gives
 * where the longest ends. */
static size_t
offer_tokens(const struct et_tokenizer *t, struct eti_way *best, const char *text,
             size_t n, size_t at)
{
    const struct eti_unigram *u = &t->unigram;
    double here = best[at].score;
    size_t length, last = at;
    bool good, alone = false;
    uint32_t node = 0;
    (void)eti_char(text + at, n - at, &length, &good);
    for (size_t end = at; end < n && u->trie.n > 0;) {
        node = eti_trie_step(&u->trie, node, (uint8_t)text[end++]);
        if (node == 0)
            break;
        int32_t id = u->trie.value[node];
        if (id < 0)
            continue;
        bool users = u->in_float && t->special[id] == 2;
        double score = users ? score_of_users(end - at) : u->score[id];
        offer(u, &best[end], score + here, (int64_t)at, id);
        alone |= end == at + length;
        last = end;
    }
    if (!alone)
        offer(u, &best[at + length], score_of_unknown(u) + here, (int64_t)at, t->unk);
    return last > at + length ? last : at + length;
}

/* Moves the sums of the ways to AT .. LAST so that the one to AT is 0. */
static void
begin_sums(struct eti_way *best, size_t at, size_t last)
{
    double sum = best[at].score;
    for (size_t i = at; i <= last; i++)
        if (best[i].from >= 0)
            best[i].score = (float)(best[i].score - sum);
}

static void
find_ways(const struct et_tokenizer *t, struct eti_way *best, const char *text,
          size_t n)
{
    size_t last = 0;
    for (size_t at = 0, length; at < n; at += length) {
        bool good;
        if (t->unigram.in_float && fabs(best[at].score) > LONGEST_SUM)
            begin_sums(best, at, last);
        size_t end = offer_tokens(t, best, text, n, at);
        last = end > last ? end : last;
        (void)eti_char(text + at, n - at, &length, &good);
    }
}

et_status
eti_unigram_word(struct et_encoder *e, const char *text, size_t n)
{
    const struct et_tokenizer *t = e->t;
    ET_TRY(eti_grow(e->cx, &e->best, &e->best_room, (int64_t)n + 1, sizeof *e->best));
    struct eti_way *best = e->best;
    for (size_t i = 0; i <= n; i++)
        best[i] = (struct eti_way){.from = -1};
    find_ways(t, best, text, n);
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
