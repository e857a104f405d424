/* SPDX-License-Identifier: Apache-2.0 */
/* What changes pixels one by one, against plain words of what torchvision does: of
 * pictures of all kinds of values, or of one value; and changes that are told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/image/blur.h"
#include "core/image/levels.h"
#include "t/tap.h"

enum { SIDE = 90, MOST = SIDE * SIDE * 3, PICTURES = 60 };

static struct et_rng rng;

/* A picture of up to SIDE x SIDE pixels whose channels have from one value to all. */
static struct et_canvas
draw(uint8_t *data)
{
    struct et_canvas c = {.data = data, .C = et_rng_below(&rng, 2) ? 3 : 1};
    c.H = 1 + (int64_t)et_rng_below(&rng, SIDE);
    c.W = 1 + (int64_t)et_rng_below(&rng, SIDE);
    for (int k = 0; k < c.C; k++) {
        static const uint64_t counts[] = {1, 2, 3, 20, 200, 256};
        uint64_t values = counts[et_rng_below(&rng, 6)];
        uint64_t low = et_rng_below(&rng, 257 - values);
        for (int64_t i = 0; i < c.H * c.W; i++)
            data[i * c.C + k] = (uint8_t)(low + et_rng_below(&rng, values));
    }
    return c;
}

/* The values of channel K: how often, the smallest and the largest. */
static void
measure(const struct et_canvas *c, const uint8_t *p, int k, int64_t *times, int *low,
        int *high)
{
    memset(times, 0, 256 * sizeof *times);
    for (int64_t i = 0; i < c->H * c->W; i++)
        times[p[i * c->C + k]]++;
    for (*low = 0; !times[*low];)
        ++*low;
    for (*high = 255; !times[*high];)
        --*high;
}

typedef int reference(const int64_t *times, int low, int high, int64_t n, int v);

/* (v - low) 255 / (high - low); a channel of one value stays. */
static int
stretched(const int64_t *times, int low, int high, int64_t n, int v)
{
    (void)times;
    (void)n;
    return high == low ? v : (v - low) * 255 / (high - low);
}

/* Pillow's equalize: a step is a 255th of the pixels without the largest value's; a
 * value becomes the steps below it, from half a step on. */
static int
evened(const int64_t *times, int low, int high, int64_t n, int v)
{
    int64_t step = (n - times[high]) / 255, below = step / 2;
    (void)low;
    for (int i = 0; i < v; i++)
        below += times[i];
    if (step == 0)
        return v;
    return (int)(below / step > 255 ? 255 : below / step);
}

/* TOLERANCE: 1 where a float may fall on either side of a whole number. */
static void
test_by_channel(const char *name, void (*fn)(struct et_canvas *), reference *ref,
                int tolerance)
{
    static uint8_t data[MOST], was[MOST];
    int64_t times[256];
    int wrong = 0, low, high;
    for (int i = 0; i < PICTURES; i++) {
        struct et_canvas c = draw(data);
        memcpy(was, data, sizeof was);
        fn(&c);
        for (int k = 0; k < c.C; k++) {
            measure(&c, was, k, times, &low, &high);
            for (int64_t at = k; at < c.H * c.W * c.C; at += c.C)
                wrong += abs(data[at] - ref(times, low, high, c.H * c.W, was[at])) >
                         tolerance;
        }
    }
    is_int(wrong, 0, "%s of %d pictures, channels of one value among them", name,
           PICTURES);
}

/* ---- noise ---- */

static void
test_noise(void)
{
    static const struct {
        double mean;
        int v, to;
    } rows[] = {{0.2, 100, 151}, {0, 100, 100},  {-0.2, 100, 49}, {1, 0, 255},
                {0.5, 200, 255}, {-0.5, 100, 0}, {0.002, 7, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t data[12];
        struct et_canvas c = {.data = data, .C = 3, .H = 2, .W = 2};
        int wrong = 0;
        memset(data, rows[i].v, sizeof data);
        eti_noise(&c, rows[i].mean, 0, &rng);
        for (int k = 0; k < 12; k++)
            wrong += data[k] != rows[i].to;
        is_int(wrong, 0, "noise of mean %g, where white is 1, makes %d of %d",
               rows[i].mean, rows[i].to, rows[i].v);
    }
}

/* ---- changes that are told ---- */

/* Each kind that is told does what the function of its name does. */
static void
test_told(void)
{
    static uint8_t data[MOST], told[MOST];
    int wrong[ET_CHANGES] = {0};
    for (int i = 0; i < PICTURES; i++)
        for (int kind = 0; kind < ET_CHANGES; kind++) {
            struct et_canvas a = draw(data), b = a;
            const double f = (double)et_rng_below(&rng, 200) / 100;
            const int64_t h = 1 + (int64_t)et_rng_below(&rng, (uint64_t)a.H),
                          w = 1 + (int64_t)et_rng_below(&rng, (uint64_t)a.W);
            const int v = 1 + (int)et_rng_below(&rng, 8);
            const uint8_t values[] = {(uint8_t)v, (uint8_t)v, (uint8_t)v};
            struct et_pixel_change t = {.kind = kind,
                                        .value = v,
                                        .own = (float)f,
                                        .other = (float)(1 - f),
                                        .y = a.H - h,
                                        .x = a.W - w,
                                        .h = h,
                                        .w = w};
            memcpy(told, data, sizeof told);
            b.data = told;
            switch ((enum et_change_kind)kind) {
            case ET_CHANGE_BLEND:
                t.other = 0;
                eti_brightness(&a, f);
                break;
            case ET_CHANGE_CONTRAST:
                eti_contrast(&a, f);
                break;
            case ET_CHANGE_SATURATION:
                eti_saturation(&a, f);
                break;
            case ET_CHANGE_HUE:
                t.own = (float)(6 * (f / 4 + 0.1));
                eti_hue(&a, f / 4 + 0.1);
                break;
            case ET_CHANGE_GREY:
                eti_grey(&a);
                break;
            case ET_CHANGE_INVERT:
                eti_invert(&a);
                break;
            case ET_CHANGE_POSTERIZE:
                eti_posterize(&a, v);
                break;
            case ET_CHANGE_SOLARIZE:
                eti_solarize(&a, v);
                break;
            case ET_CHANGE_AUTOCONTRAST:
                eti_autocontrast(&a);
                break;
            case ET_CHANGE_EQUALIZE:
                eti_equalize(&a);
                break;
            case ET_CHANGE_ERASE:
                eti_erase(&a, t.y, t.x, h, w, values, NULL);
                break;
            case ET_CHANGES:
                break;
            }
            et_canvas_change(&b, &t);
            wrong[kind] += memcmp(data, told, sizeof told) != 0;
        }
    for (int kind = 0; kind < ET_CHANGES; kind++)
        is_int(wrong[kind], 0, "change %d, told, does what its function does", kind);
}

/* ---- ends of the tables ---- */

static void
test_tables(void)
{
    int wrong = 0;
    for (int v = 0; v < 256; v++)
        for (int by = 0; by <= 256; by++) {
            uint8_t p[3] = {(uint8_t)v, (uint8_t)v, (uint8_t)v};
            struct et_canvas c = {.data = p, .C = 1, .H = 3, .W = 1};
            eti_solarize(&c, by);
            wrong += p[0] != (v >= by ? 255 - v : v) || p[2] != p[0];
        }
    is_int(wrong, 0, "values from the threshold on are inverted");
    for (int v = 0; v < 256; v++)
        for (int bits = 1; bits <= 8; bits++) {
            uint8_t p[1] = {(uint8_t)v};
            struct et_canvas c = {.data = p, .C = 1, .H = 1, .W = 1};
            eti_posterize(&c, bits);
            wrong += p[0] != v >> (8 - bits) << (8 - bits);
        }
    is_int(wrong, 0, "of each value the upper bits stay");
}

/* ---- blurred ---- */

/* Weights add up to 1, and values are rounded: what is even stays so. */
static void
test_even(void)
{
    static uint8_t data[9 * 11 * 3];
    struct eti_scratch room = {0};
    struct et_error why = {0};
    int wrong = 0, refused = 0;
    for (int v = 0; v < 256; v++)
        for (int size = 3; size <= 7; size += 2) {
            struct et_canvas c = {.data = data, .C = 3, .H = 9, .W = 11, .room = &room};
            memset(data, v, sizeof data);
            refused += eti_gaussian_blur(&c, size, 0.3 * size, &why) != ET_OK;
            refused += eti_sharpness(&c, 0.25 * size, &why) != ET_OK;
            for (size_t i = 0; i < sizeof data; i++)
                wrong += data[i] != v;
        }
    ok(wrong == 0 && refused == 0,
       "a picture of one value stays, blurred and sharpened (%d values do not)", wrong);
    struct et_canvas none = {.data = data, .C = 3, .H = 9, .W = 11};
    struct et_canvas some = {.data = data, .C = 3, .H = 9, .W = 11, .room = &room};
    ok(!et_canvas_room(&none, 8) && et_canvas_room(&some, 1 << 16) == room.data &&
           room.bytes == 1 << 16,
       "a transform has room to work in where its canvas has");
    eti_scratch_free(&room);
}

int
main(void)
{
    rng = et_rng_at(17, ET_RNG_USER, 0);
    test_by_channel("autocontrast", eti_autocontrast, stretched, 1);
    test_by_channel("equalize", eti_equalize, evened, 0);
    test_noise();
    test_told();
    test_tables();
    test_even();
    return done();
}
