/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the readers of tokenizers; see replay.h. The input's first byte says
 * which: j a tokenizer.json; g a vocab.json, a zero byte and a merges.txt; b a
 * vocab.txt; p a SentencePiece model.
 *
 * Whatever the bytes: no crash, nothing left allocated, a refusal has one line; what is
 * accepted encodes texts to ids that are below its size, decodes them, and gives the
 * bytes back where it says that it does. */
#include <stdlib.h>
#include <string.h>

#include "core/text/impl.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted[4];
static const char kinds[] = "jgbp";

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static et_status
read_as(int kind, struct et_tokenizer *t, const char *text, size_t n)
{
    const char *zero = n ? memchr(text, 0, n) : NULL;
    size_t first = zero ? (size_t)(zero - text) : n;
    switch (kinds[kind]) {
    case 'j':
        return eti_read_tokenizer_json(t, "x", text, n);
    case 'g':
        return eti_read_gpt2(t, "x", text, first, "y", zero ? zero + 1 : text,
                             zero ? n - first - 1 : 0);
    case 'b':
        return eti_read_bert(t, "x", text, n, &(struct eti_bert){{false}, {false}});
    default:
        return eti_read_pieces(t, "x", text, n);
    }
}

static void
try_text(struct et_encoder *e, const struct et_tokenizer_info *info, const char *text,
         size_t n)
{
    int32_t ids[512];
    struct et_encoding a;
    struct et_text t;
    if (et_encode(e, text, n, 0, &a) != ET_OK) { /* a pattern may give up */
        et_error_clear(e->cx);
        return;
    }
    int64_t n_ids = a.n;
    for (int64_t i = 0; i < n_ids; i++)
        need(a.id[i] >= 0 && a.id[i] < info->vocab_size);
    if (n_ids > 512)
        return;
    if (n_ids > 0)
        memcpy(ids, a.id, (size_t)n_ids * sizeof *ids);
    need(et_decode(e, ids, n_ids, 0, &t) == ET_OK);
    need(!info->is_exact || (t.n == n && memcmp(t.text, text, n) == 0));
    need(et_encode_pair(e, text, n, "b", 1, 7, ET_ENCODE_SPECIAL, &a) == ET_OK);
}

static void
use(struct et_ctx *cx, const struct et_tokenizer *t, const uint8_t *data, size_t size)
{
    static const char text[] =
        "In a\tb  c'd \xc3\x89\xcc\x81\xff <s>[MASK] 12\xe4\xb8\xad";
    struct et_tokenizer_info info;
    struct et_encoder *e;
    et_tokenizer_get_info(t, &info);
    need(et_encoder_new(cx, t, &e) == ET_OK);
    try_text(e, &info, text, sizeof text);
    try_text(e, &info, (const char *)data, size < 256 ? size : 256);
    et_encoder_free(&e);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct et_tokenizer *t;
    struct et_alloc_stats stats;
    const char *at = size ? strchr(kinds, data[0]) : NULL;
    if (!at || !*at || et_ctx_new(&cx) != ET_OK)
        return 0;
    if (eti_tokenizer_new(cx, "x", &t) != ET_OK)
        abort();
    if (read_as((int)(at - kinds), t, (const char *)data + 1, size - 1) == ET_OK) {
        accepted[at - kinds]++;
        use(cx, t, data + 1, size - 1);
    } else {
        need(et_error_get(cx)->message[0] && !strchr(et_error_get(cx)->message, '\n'));
        et_error_clear(cx);
    }
    et_tokenizer_free(&t);
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "vocab.txt",
                                        "SentencePiece model"};
    fuzz_replay("tokenizer-seeds", "{}[]:,\"0123456789#_<>\n \x0a\x12\x1a\x22\x80\xff");
    for (int i = 0; i < 4; i++)
        ok(accepted[i] > 2, "some damaged copies are still a %s (%d)", names[i],
           accepted[i]);
    return done();
}
#endif
