/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the log of events; see replay.h. The input is a file, whose checksums
 * are made right so that what they guard is reached.
 *
 * Whatever the bytes: no crash, nothing left allocated, and points of a series
 * are no more than were asked for. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "core/journal/events.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

enum { POINTS = 64 };

static int accepted;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static void
correct(uint8_t *data, size_t size)
{
    for (size_t at = ETI_EVENTS_HEADER; at + ETI_EVENTS_FRAME <= size;) {
        uint32_t length = data[at] | (uint32_t)data[at + 1] << 8 |
                          (uint32_t)data[at + 2] << 16 | (uint32_t)data[at + 3] << 24;
        if (length == 0 || length > size - at - ETI_EVENTS_FRAME)
            break;
        uint32_t sum = (uint32_t)crc32(0, data + at + ETI_EVENTS_FRAME, length);
        for (int i = 0; i < 4; i++)
            data[at + 4 + (size_t)i] = (uint8_t)(sum >> 8 * i);
        at += ETI_EVENTS_FRAME + length;
    }
}

static void
read_all(struct et_ctx *cx, struct et_events *e)
{
    struct et_series_point p[POINTS];
    const struct et_series *list;
    struct et_record r;
    bool got = true;
    int n, n_series;
    while (et_events_next(e, &r, &got) == ET_OK && got)
        ;
    et_error_clear(cx);
    if (et_events_series(e, &list, &n_series) == ET_OK) {
        accepted += n_series > 0;
        for (int i = 0; i < n_series && i < 8; i++) {
            need(et_events_fetch(e, list[i].name, 2, 90, POINTS, p, &n) != ET_OK ||
                 n <= POINTS);
            et_error_clear(cx);
        }
    }
    et_error_clear(cx);
    if (et_events_only(e, UINT64_C(1) << ET_RECORD_RESUME) == ET_OK)
        while (et_events_next(e, &r, &got) == ET_OK && got)
            need(r.kind == ET_RECORD_RESUME);
    et_error_clear(cx);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct et_events *e;
    struct et_alloc_stats stats;
    char path[64];
    uint8_t *copy = malloc(size ? size : 1);
    int fd = memfd_create("events", MFD_CLOEXEC);
    need(copy && fd >= 0 && et_ctx_new(&cx) == ET_OK);
    memcpy(copy, data, size);
    correct(copy, size);
    need(write(fd, copy, size) == (ssize_t)size);
    free(copy);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (et_events_open(cx, path, &e) == ET_OK) {
        read_all(cx, e);
        et_events_close(&e);
    }
    et_error_clear(cx);
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    close(fd);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("events-seeds", "\x80\x90\xa0\xc0\xca\xcb\xd9\xdc\xdd\xde\xdf\x97");
    ok(accepted > 10, "some damaged copies still have series (%d)", accepted);
    return done();
}
#endif
