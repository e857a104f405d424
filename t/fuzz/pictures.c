/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of pictures; see replay.h. The input is a file. It is read whole, in
 * part, shrunk, as grey and as a mask.
 *
 * Whatever the bytes: no crash; what is accepted has the pixels that were asked for,
 * what is not has a sentence. */
#include <stdlib.h>
#include <string.h>

#include "core/image/decode.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted, refused;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static bool
judge(et_status status, const struct et_error *why)
{
    need(status == ET_OK || why->message[0]);
    need(status == ET_OK || status == ET_EFORMAT || status == ET_ENOTSUP);
    return status == ET_OK;
}

/* Looks at every pixel. */
static void
look(const struct et_pixels *p)
{
    unsigned sum = 0;
    for (int64_t y = 0; y < p->H; y++)
        for (int64_t x = 0; x < p->W; x++)
            for (int c = 0; c < p->C; c++)
                sum += p->data[y * p->stride_y + x * p->stride_x + c * p->stride_c];
    need(sum <= 255u * (unsigned)(p->H * p->W * p->C));
}

static void
try_read(struct eti_decoder *d, const uint8_t *data, size_t size,
         struct eti_picture_want want)
{
    struct et_error why = {0};
    struct eti_picture p;
    if (!judge(eti_decoder_open(d, data, size, &why), &why))
        return;
    int64_t H = d->info.H, W = d->info.W;
    need(H > 0 && W > 0 && H * W <= d->max_pixels);
    if (want.h) {
        want.y = H / 3;
        want.x = W / 4;
        want.h = H - want.y - H / 5;
        want.w = W - want.x;
    }
    bool fine = judge(eti_decoder_read(d, &want, &p, &why), &why);
    accepted += fine;
    refused += !fine;
    if (!fine)
        return;
    need(p.pixels.C == want.C);
    if (p.shrunk == 1)
        need(p.pixels.H == (want.h ? want.h : H) &&
             p.pixels.W == (want.h ? want.w : W));
    look(&p.pixels);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct eti_picture_want wants[] = {
        {.C = 3},
        {.C = 1},
        {.C = 3, .h = 1},
        {.C = 3, .h = 1, .out_h = 4, .out_w = 5},
        {.C = 1, .classes = true},
    };
    struct eti_decoder d = {.max_pixels = 1 << 16};
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
        try_read(&d, data, size, wants[i]);
    eti_decoder_free(&d);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    /* Markers of JPEG, sizes, chunk lengths. */
    static const char indicators[] = "\377\330\300\304\332\331\1\2\10\20\200\177";
    fuzz_replay("pictures-seeds", indicators);
    ok(accepted > 500, "damage that hits nothing is passed over (%d)", accepted);
    ok(refused > 500, "and files that open are refused as they are read (%d)", refused);
    return done();
}
#endif
