/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of torch.save's files: the archive and the pickle in it; see replay.h.
 * The input is a file. Where its first byte is 0, the rest is the pickle alone, which
 * an archive's checksum would keep damage from.
 *
 * Whatever the bytes: no crash, nothing left allocated, and each tensor that is
 * accepted lies in the file. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/models/pickle.h"
#include "core/models/pth.h"
#include "core/models/weight_file.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted, pickles;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static void
read_archive(struct et_ctx *cx, const uint8_t *data, size_t size)
{
    struct eti_file f = {
        .fd = memfd_create("pth", 0), .size = (int64_t)size, .path = "x"};
    struct eti_st_header h;
    need(f.fd >= 0 && write(f.fd, data, size) == (ssize_t)size);
    if (eti_pth_read(cx, &f, &h) == ET_OK) {
        accepted++;
        for (int64_t i = 0; i < h.n; i++)
            need(h.v[i].begin >= 0 && h.v[i].begin <= h.v[i].end &&
                 h.v[i].end <= f.size && eti_st_is_name(h.v[i].name));
        eti_st_release(&h);
    }
    close(f.fd);
}

static void
read_pickle(struct et_ctx *cx, const uint8_t *data, size_t size)
{
    struct eti_arena arena;
    struct eti_pickle_tensor *t;
    int64_t n;
    eti_arena_init(&arena, cx, 1 << 12);
    if (eti_pickle_read(cx, "x", data, (int64_t)size, &arena, &t, &n) == ET_OK) {
        pickles++;
        for (int64_t i = 0; i < n; i++)
            need(t[i].name && t[i].storage && t[i].ndim <= ETI_ST_MAX_DIMS &&
                 t[i].offset >= 0 && t[i].elements >= 0);
    }
    eti_arena_release(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        return 0;
    if (size > 0 && data[0] == 0)
        read_pickle(cx, data + 1, size - 1);
    else
        read_archive(cx, data, size);
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
    fuzz_replay("pth-seeds", "}]()tuseabRQcqrhjXJKMN.\x80\x85\x86\x87\x8a\x8c\x94");
    ok(accepted > 5, "some damaged copies are still files of weights (%d)", accepted);
    ok(pickles > 20, "some damaged pickles are still of tensors (%d)", pickles);
    return done();
}
#endif
