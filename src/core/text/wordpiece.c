/* SPDX-License-Identifier: Apache-2.0 */
/* wordpiece.c: WordPiece, as BERT's: from the left the longest piece that is a token; a
 * word that cannot be taken apart so, or is too long, is unknown as a whole.
 *
 * Source: Devlin et al., BERT, 2019, and its tokenization.py. */
#include "core/text/impl.h"
#include "core/text/unicode.h"

static int64_t
count_chars(const char *text, size_t n)
{
    int64_t chars = 0;
    for (size_t i = 0; i < n; i++)
        chars += ((uint8_t)text[i] & 0xc0) != 0x80;
    return chars;
}

et_status
eti_wordpiece_word(struct et_encoder *e, const char *text, size_t n)
{
    const struct et_tokenizer *t = e->t;
    int64_t before = e->n;
    bool good =
        (int64_t)n <= t->longest_word || count_chars(text, n) <= t->longest_word;
    for (size_t at = 0, length; good && at < n; at += length) {
        int32_t id = -1;
        length =
            eti_trie_longest(at == 0 ? &t->first : &t->rest, text + at, n - at, &id);
        good = length > 0;
        if (good)
            ET_TRY(eti_put_id(e, id));
    }
    if (good)
        return ET_OK;
    e->n = before;
    return eti_put_id(e, t->unk);
}
