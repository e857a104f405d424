/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of resample.c as processors without SSE2 have them, against those of this
 * one: the same bits, whatever the picture and the sizes. */
#undef __SSE2__
#define eti_axis_of        plain_axis_of
#define eti_resample       plain_resample
#define eti_resampler_free plain_resampler_free
#include "core/image/resample.c"
#undef eti_axis_of
#undef eti_resample
#undef eti_resampler_free

#include <stdlib.h>

#include "etude/rng.h"
#include "t/tap.h"

et_status eti_resample(struct eti_resampler *r, const struct et_pixels *in,
                       const struct eti_axis *y, const struct eti_axis *x,
                       enum et_filter filter, uint8_t *out, int64_t stride,
                       struct et_error *why);

enum { SIDE = 60, MOST = SIDE * SIDE * 4 };

/* Up to SIDE, small ones more often. */
static int64_t
size(struct et_rng *r)
{
    return 1 + (int64_t)et_rng_below(r, 1 + et_rng_below(r, SIDE));
}

static bool
is_same(struct et_rng *r, enum et_filter filter, int C)
{
    static uint8_t plain[MOST], fast[MOST];
    struct eti_resampler a = {0}, b = {0};
    struct et_error why = {0};
    int64_t H = size(r), W = size(r), h = size(r), w = size(r);
    size_t bytes = (size_t)(H * W * C);
    uint8_t *data = malloc(bytes); /* so that a sanitizer sees a read past its end */
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)et_rng_u32(r);
    struct et_pixels p = {data, C, H, W, 1, W * C, C};
    struct eti_axis y = plain_axis_of(0, H, h), x = plain_axis_of(0, W, w);
    bool fine = plain_resample(&a, &p, &y, &x, filter, plain, w * C, &why) == ET_OK &&
                eti_resample(&b, &p, &y, &x, filter, fast, w * C, &why) == ET_OK &&
                memcmp(plain, fast, (size_t)(h * w * C)) == 0;
    plain_resampler_free(&a);
    plain_resampler_free(&b);
    free(data);
    return fine;
}

int
main(void)
{
    static const int channels[] = {1, 3, 4};
    struct et_rng r = et_rng_at(11, ET_RNG_USER, 0);
    for (int k = 0; k < 3; k++)
        for (int f = ET_BILINEAR; f <= ET_BICUBIC; f++) {
            int same = 0;
            for (int i = 0; i < 200; i++)
                same += is_same(&r, (enum et_filter)f, channels[k]);
            is_int(same, 200, "200 pictures of %d channels, %s, have the same bits",
                   channels[k], f == ET_BILINEAR ? "bilinear" : "bicubic");
        }
    return done();
}
