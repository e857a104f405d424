/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of a model's snapshot; see replay.h.
 *
 * Whatever the bytes: no crash, nothing left allocated, a model that refused them is as
 * it was; one that took them is saved to bytes that it takes again, the same, and goes
 * on with records. */
#include <stdlib.h>
#include <string.h>

#include "dist/hub/model.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static void
check_again(struct et_ctx *cx, struct etd_model *m)
{
    static const struct et_log_entry entry[] = {{"loss/train/total", 1.5}, {"x", 2}};
    struct etd_model *other;
    unsigned char a[16], b[16];
    char *bytes;
    size_t n;
    bool settled;
    need(etd_model_new(cx, &other) == ET_OK);
    need(etd_model_save(m, &bytes, &n) == ET_OK);
    need(etd_model_load(other, bytes, n) == ET_OK);
    need(etd_model_digest(m, a) == ET_OK && etd_model_digest(other, b) == ET_OK);
    need(memcmp(a, b, sizeof a) == 0);
    for (int i = 0; i < ET_RECORD_COUNT; i++)
        need(etd_model_apply(m, &(struct et_record){.kind = (enum et_record_kind)i,
                                                    .seq = 7,
                                                    .t = 5,
                                                    .ba = 1000 * i,
                                                    .text = "running",
                                                    .entry = entry,
                                                    .n = 2}) == ET_OK);
    (void)etd_model_left(m, &settled);
    (void)etd_model_done(m);
    et_free(cx, bytes);
    etd_model_free(&other);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct etd_model *m;
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        return 0;
    need(etd_model_new(cx, &m) == ET_OK);
    m->seq = 3;
    if (etd_model_load(m, (const char *)data, size) == ET_OK) {
        accepted++;
        check_again(cx, m);
    } else {
        need(m->seq == 3 && et_error_get(cx)->message[0]);
    }
    etd_model_free(&m);
    et_error_clear(cx);
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("snapshot-seeds", "\x90\xa0\xc0\xcb\xcc\xd0\xd3\xd9\xdc");
    ok(accepted > 0, "some are snapshots");
    return done();
}
#endif
