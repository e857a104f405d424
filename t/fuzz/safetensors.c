/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the safetensors header; see replay.h. The input is a file.
 *
 * Whatever the bytes: no crash, nothing left allocated; what is accepted covers its
 * data and is accepted again, the same, once written. */
#include <stdlib.h>
#include <string.h>

#include "core/models/safetensors.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static bool
reads(struct et_ctx *cx, const uint8_t *data, int64_t size, int64_t data_bytes,
      struct eti_st_header *out)
{
    int64_t n;
    bool read = size >= ETI_ST_PREFIX &&
                eti_st_header_bytes(cx, "x", data, size + data_bytes, &eti_st_limits,
                                    &n) == ET_OK &&
                n <= size - ETI_ST_PREFIX &&
                eti_st_parse(cx, "x", (const char *)data + ETI_ST_PREFIX, n,
                             size + data_bytes - ETI_ST_PREFIX - n, &eti_st_limits,
                             out) == ET_OK;
    et_error_clear(cx);
    return read;
}

static void
check_again(struct et_ctx *cx, const struct eti_st_header *h)
{
    struct eti_st_header again;
    int64_t bytes, at = 0;
    uint8_t *text;
    for (int64_t i = 0; i < h->n; i++) {
        need(h->v[i].begin == at && h->v[i].end >= at);
        at = h->v[i].end;
    }
    need(eti_st_print(cx, h->v, h->n, &text, &bytes) == ET_OK);
    need(reads(cx, text, bytes, at, &again));
    need(again.n == h->n);
    for (int64_t i = 0; i < h->n; i++) {
        const struct eti_st_tensor *a = &h->v[i], *b = &again.v[i];
        need(a->begin == b->begin && a->end == b->end);
        /* Empty tensors of one place have no order. */
        need(a->begin == a->end ||
             (a->dtype == b->dtype && strcmp(a->name, b->name) == 0));
    }
    eti_st_release(&again);
    et_free(cx, text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct eti_st_header h;
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        return 0;
    if (reads(cx, data, (int64_t)size, 0, &h)) {
        accepted++;
        check_again(cx, &h);
        eti_st_release(&h);
    }
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("safetensors-seeds", "{}[]:,\"0123456789-.eE \\u");
    ok(accepted > 10, "some damaged copies are still weight files (%d)", accepted);
    return done();
}
#endif
