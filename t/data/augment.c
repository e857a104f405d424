/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of transforms: geometry and pixels in their order, draws that belong to samples
 * and to nothing else, and what random parts are like. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/loader_impl.h"
#include "core/data/transform_rows.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* What sample I of the counted images has at (Y, X, C). */
static int
counted(int i, int y, int x, int c)
{
    return (7 * i + 8 * y + x + 50 * c) & 255;
}

/* ---- order ---- */

/* The byte of the batch of TRANSFORMS, whose pictures are 4 x 4, at (I, Y, X, C). */
static int
byte_at(const struct et_batch *b, int i, int y, int x, int c)
{
    return (int)lrintf(b->field[0].host.f32[((i * 4 + y) * 4 + x) * 3 + c] * 255);
}

static void
order(void)
{
    static const struct {
        const char *transforms, *what;
        int flip_y, flip_x, invert;
    } lists[] = {
        {"[center_crop: {size: 4}, vertical_flip: {p: 1}]", "a flip up and down", 1, 0,
         0},
        {"[random_invert: {p: 1}, center_crop: {size: 4}, horizontal_flip: {p: 1}]",
         "geometry after pixels", 0, 1, 1},
        {"[horizontal_flip: {p: 1}, random_invert: {p: 1}, center_crop: {size: 4}, "
         "random_invert: {p: 1}, vertical_flip: {p: 1}]",
         "geometry, pixels, geometry, pixels, geometry", 1, 1, 0},
        {"[random_invert: {p: 1}, random_invert: {p: 1}, random_invert: {p: 1}, "
         "center_crop: {size: 4}]",
         "pixels three times", 0, 0, 1},
    };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        struct counted_loader s = counted_loader(cx, 5, 5, 3, lists[k].transforms);
        need(cx, counted_begin(cx, &s));
        const struct et_batch *b = counted_next(cx, &s);
        int wrong = 0;
        for (int at = 0; at < 5 * 4 * 4 * 3; at++) {
            int i = at / 48, y = at / 12 % 4, x = at / 3 % 4, c = at % 3;
            int want = counted(i, 1 + (lists[k].flip_y ? 3 - y : y),
                               2 + (lists[k].flip_x ? 3 - x : x), c);
            wrong += byte_at(b, i, y, x, c) != (lists[k].invert ? 255 - want : want);
        }
        is_int(wrong, 0, "%s is done in its order", lists[k].what);
        et_loader_release(s.loader, b);
        counted_end(&s);
    }
}

/* ---- draws ---- */

static const char everything[] =
    "[random_resized_crop: {size: 6, scale: [0.3, 1]}, horizontal_flip, vertical_flip, "
    "color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.2}, "
    "random_affine: {degrees: 20, translate: 0.1, scale: [0.8, 1.2], shear: 10}, "
    "random_grayscale: {p: 0.3}, gaussian_blur: {kernel_size: 3, p: 0.5}, "
    "random_posterize, random_solarize, random_sharpness, random_autocontrast, "
    "random_equalize, gaussian_noise: {sigma: 0.05}, random_erasing: {fill: noise}, "
    "normalize: {mean: [0.5], std: [0.25]}]";

/* The floats of two epochs, whatever the batches are. */
static void
gather(struct counted_loader *s, float *out, size_t sample)
{
    const struct et_batch *b;
    need(cx, counted_begin(cx, s));
    for (int epoch = 0; epoch < 2; epoch++)
        while ((b = counted_next(cx, s))) {
            memcpy(out + (size_t)b->first * sample, b->field[0].host.any,
                   (size_t)b->n_samples * sample * sizeof *out);
            et_loader_release(s->loader, b);
        }
    et_loader_free(&s->loader);
    et_dataset_close(&s->data);
}

static void
draws(void)
{
    enum { N = 24, SAMPLE = 6 * 6 * 3 };
    static float want[2 * N * SAMPLE], got[2 * N * SAMPLE];
    struct counted_loader s = counted_loader(cx, N, N, 3, everything);
    s.options.common.shuffle = true;
    gather(&s, want, SAMPLE);
    ok(memcmp(want, want + N * SAMPLE, sizeof want / 2) != 0, "epochs differ");
    for (int workers = 0; workers < 3; workers++) {
        memset(got, 0, sizeof got);
        s.options.common.batch_size = 3 + workers;
        s.options.common.workers = workers;
        gather(&s, got, SAMPLE);
        ok(memcmp(want, got, sizeof want) == 0,
           "every transform draws the same in batches of %d with %d workers",
           3 + workers, workers);
    }
    memset(got, 0, sizeof got);
    s.options.common.batch_size = 8;
    s.config.world_size = 4;
    for (s.config.rank = 0; s.config.rank < 4; s.config.rank++)
        gather(&s, got, SAMPLE);
    ok(memcmp(want, got, sizeof want) == 0, "and on four ranks");
    counted_end(&s);
}

/* ---- transforms that are added ---- */

/* The transforms of TEXT as parts, whose options are S's. */
static struct et_parts
parts_of(struct counted_loader *s, const char *text)
{
    *s = counted_loader(cx, 1, 1, 3, text);
    return s->options.common.transforms;
}

static void
added(void)
{
    enum { N = 24, SAMPLE = 6 * 6 * 3 };
    static float plain[2 * N * SAMPLE], whole[2 * N * SAMPLE], got[2 * N * SAMPLE];
    static const char crop[] = "[random_crop: {size: 6}, normalize: {mean: [0.5], "
                               "std: [0.25]}]";
    struct counted_loader noise, s = counted_loader(cx, N, N, 3, crop);
    struct et_parts more = parts_of(&noise, "[gaussian_noise: {sigma: 0.1}]");
    const struct et_batch *b;
    int64_t size[2];
    s.options.common.shuffle = true;
    gather(&s, plain, SAMPLE);
    for (int workers = 0; workers < 3; workers++) {
        s.options.common.batch_size = 3 + workers;
        s.options.common.workers = workers;
        need(cx, counted_begin(cx, &s));
        need(cx, eti_loader_try(cx, s.loader, &more, size));
        ok(size[0] == 6 && size[1] == 6, "noise leaves the size as it is");
        need(cx, eti_loader_add(cx, s.loader, &more));
        float *out = workers ? got : whole;
        for (int epoch = 0; epoch < 2; epoch++)
            while ((b = counted_next(cx, &s))) {
                memcpy(out + (size_t)b->first * SAMPLE, b->field[0].host.any,
                       (size_t)b->n_samples * SAMPLE * sizeof *out);
                et_loader_release(s.loader, b);
            }
        if (workers)
            ok(memcmp(whole, got, sizeof whole) == 0,
               "what is added draws the same in batches of %d with %d workers",
               3 + workers, workers);
        et_loader_free(&s.loader);
        et_dataset_close(&s.data);
    }
    int black = 0, differ = 0;
    for (int i = 0; i < 2 * N * SAMPLE; i++) {
        black += fabsf(whole[i] - plain[i]) > 4; /* 255 of 255 are 4 */
        differ += whole[i] != plain[i];
    }
    ok(black == 0 && differ > N * SAMPLE, "and changes bytes, before they are numbers");
    counted_end(&s);
    counted_end(&noise);
}

/* Draws of one that is added are its own, whatever else is added. */
static void
added_apart(void)
{
    enum { N = 4, SAMPLE = 6 * 8 * 3 };
    float got[2][N * SAMPLE];
    for (int k = 0; k < 2; k++) {
        struct counted_loader list, s = counted_loader(cx, N, N, 3, NULL);
        struct et_parts more = parts_of(
            &list, k ? "[random_grayscale: {p: 0}, gaussian_noise: {sigma: 0.1}]"
                     : "[gaussian_noise: {sigma: 0.1}]");
        need(cx, counted_begin(cx, &s));
        need(cx, eti_loader_add(cx, s.loader, &more));
        const struct et_batch *b = counted_next(cx, &s);
        memcpy(got[k], b->field[0].host.any, sizeof got[k]);
        et_loader_release(s.loader, b);
        counted_end(&s);
        counted_end(&list);
    }
    ok(memcmp(got[0], got[1], sizeof got[0]) == 0,
       "what is added in front of another changes none of its draws");
}

/* In the midst of an epoch, and away again. */
static void
added_on_the_way(void)
{
    enum { N = 12, SAMPLE = 6 * 8 * 3 };
    static float plain[2 * N * SAMPLE];
    struct counted_loader noise, s = counted_loader(cx, N, 4, 3, NULL);
    struct et_parts more = parts_of(&noise, "[random_invert: {p: 1}]"), none = {0};
    const struct et_batch *b;
    gather(&s, plain, SAMPLE);
    s.options.common.workers = 2;
    need(cx, counted_begin(cx, &s));
    for (int i = 0; i < 3; i++) {
        need(cx, eti_loader_add(cx, s.loader, i == 1 ? &more : &none));
        b = counted_next(cx, &s);
        float v = b->field[0].host.f32[0], was = plain[4 * i * SAMPLE];
        ok(b->first == 4 * i && fabsf(v - (i == 1 ? 1 - was : was)) < 1e-6f,
           "batch %d comes in its turn, %s it", i, i == 1 ? "with" : "without");
        et_status status = eti_loader_add(cx, s.loader, i == 1 ? &none : &more);
        ok(status == ET_EINVAL, "nothing is added while it is held: %s",
           take_error(cx));
        et_loader_release(s.loader, b);
    }
    ok(!counted_next(cx, &s), "then the epoch ends");
    need(cx, eti_loader_add(cx, s.loader, &more));
    b = counted_next(cx, &s);
    ok(b->epoch == 1 && b->batch == 0, "and the next begins, also with another list");
    et_loader_release(s.loader, b);
    counted_end(&s);
    counted_end(&noise);
}

/* The size of images that are no squares, with what is added. */
static void
added_to_broad(void)
{
    struct counted_loader noise, s = counted_loader(cx, 2, 2, 3, "[horizontal_flip]");
    struct et_parts more = parts_of(&noise, "[gaussian_noise: {sigma: 0.1}]");
    int64_t size[2];
    need(cx, counted_begin(cx, &s));
    need(cx, eti_loader_try(cx, s.loader, &more, size));
    const int64_t *shape = s.data->facts.field[ET_FIELD_X].shape;
    ok(size[0] == shape[1] && size[1] == shape[2] && size[0] != size[1],
       "images of %d x %d stay so with noise", (int)shape[1], (int)shape[2]);
    counted_end(&s);
    counted_end(&noise);
}

/* ---- parts ---- */

static void
parts(void)
{
    enum { N = 4000 };
    double areas[] = {0.1, 0.5}, ratios[] = {0.5, 2}, area = 0, log_ratio = 0;
    const struct et_floats scale = {areas, 2}, ratio = {ratios, 2};
    struct et_rng r = et_rng_at(1, ET_RNG_AUGMENT, 0);
    int inside = 0, found = 0, left = 0;
    for (int i = 0; i < N; i++) {
        int64_t y, x, h, w;
        if (!eti_transform_part(&scale, &ratio, 300, 400, &r, &y, &x, &h, &w))
            continue;
        found++;
        inside += y >= 0 && x >= 0 && y + h <= 300 && x + w <= 400;
        area += (double)(h * w) / (300 * 400);
        log_ratio += log((double)w / (double)h);
        left += 2 * x + w < 400;
    }
    is_int(inside, found, "a random part lies within its picture");
    is_int(found, N, "and is found where there are enough that fit");
    /* Deviations of the mean: 0.4 / sqrt(12 N), 2 log 2 / sqrt(12 N), 1 / (2 sqrt N).
     */
    is_near(area / N, 0.3, 5 * 0.4 / sqrt(12.0 * N) + 0.002,
            "its area is even in scale");
    is_near(log_ratio / N, 0, 5 * 2 * log(2) / sqrt(12.0 * N),
            "its shape even in the logarithm of ratio");
    is_near((double)left / N, 0.5, 5 * 0.5 / sqrt(N),
            "and it is as often left as right");
}

/* Where none fits: the largest part in the middle that is allowed. */
static void
way_out(void)
{
    struct counted_loader s = counted_loader(
        cx, 2, 2, 1, "[random_resized_crop: {size: 8, scale: [1, 1], ratio: [4, 4]}]");
    need(cx, counted_begin(cx, &s));
    const struct et_batch *b = counted_next(cx, &s);
    /* 8 wide and as high as the shape allows in 6: 2, from row 2 on; up to 8 rows. */
    int top = (int)lrintf(b->field[0].host.f32[0] * 255);
    int bottom = (int)lrintf(b->field[0].host.f32[7 * 8] * 255);
    ok(top == counted(0, 2, 0, 0) && bottom == counted(0, 3, 0, 0),
       "where no part fits, one in the middle is taken (%d to %d)", top, bottom);
    et_loader_release(s.loader, b);
    counted_end(&s);
}

int
main(void)
{
    cx = need_ctx();
    order();
    draws();
    added();
    added_apart();
    added_on_the_way();
    added_to_broad();
    parts();
    way_out();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "all memory is given back");
    et_ctx_free(&cx);
    return done();
}
