/* SPDX-License-Identifier: Apache-2.0 */
/* The reference device where numbers end: what does not fit a dtype, indices that are
 * none, frames beyond an image, equal elements in order. By hand, through graphs. */
#include "etude/etude.h"
#include "t/tap.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MOST = 16 };

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;
static struct et_tensor *made[MOST];
static int n_made;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static struct et_tensor *
leaf(enum et_dtype dtype, int ndim, const int64_t *shape, const void *values)
{
    struct et_tensor **t = &made[n_made++];
    must(et_tensor_new(cx, dev, dtype, ndim, shape, ET_ROW_MAJOR, NULL, t));
    must(et_tensor_write(cx, *t, values, et_desc_bytes(&(*t)->desc)));
    return *t;
}

static void
get(struct et_tensor *t, void *out)
{
    if (!t)
        bail("%s", et_error_get(cx)->message);
    must(et_eval(g, &t, 1));
    must(et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)));
}

static void
forget(void)
{
    et_graph_reset(g);
    et_error_clear(cx);
    while (n_made)
        et_tensor_free(&made[--n_made]);
}

#define SHAPE(...)                                                                     \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])             \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }

/* ---- what does not fit ---- */

static void
casts(void)
{
    static const double x[] = {1.75,   -1.75,   300,      -5,    NAN,
                               0x1p63, -0x1p63, INFINITY, 0x1p31};
    enum { N = sizeof x / sizeof *x };
    static const int32_t i32[] = {1,         -1,        300,       -5,       0,
                                  INT32_MAX, INT32_MIN, INT32_MAX, INT32_MAX};
    static const int64_t i64[] = {
        1, -1, 300, -5, 0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_C(1) << 31};
    static const uint8_t u8[] = {1, 0, 255, 0, 0, 255, 0, 255, 255};
    int32_t a[N];
    int64_t b[N];
    uint8_t c[N];
    get(et_cast(g, leaf(ET_F64, SHAPE(N), x), ET_I32), a);
    ok(memcmp(a, i32, sizeof a) == 0, "i32: cut off, the nearest there is, 0 for NaN");
    get(et_cast(g, leaf(ET_F64, SHAPE(N), x), ET_I64), b);
    ok(memcmp(b, i64, sizeof b) == 0, "i64: 2^63 is one too many");
    get(et_cast(g, leaf(ET_F64, SHAPE(N), x), ET_U8), c);
    ok(memcmp(c, u8, sizeof c) == 0, "u8: from 0 to 255");
    forget();
    static const double large[] = {65504, 65519.99, 65520, 1e300, -1e300, INFINITY};
    static const uint16_t f16[] = {0x7bff, 0x7bff, 0x7c00, 0x7c00, 0xfc00, 0x7c00};
    static const uint16_t bf16[] = {0x4780, 0x4780, 0x4780, 0x7f80, 0xff80, 0x7f80};
    uint16_t half[6];
    get(et_cast(g, leaf(ET_F64, SHAPE(6), large), ET_F16), half);
    ok(memcmp(half, f16, sizeof half) == 0, "f16: what is too large is infinite");
    get(et_cast(g, leaf(ET_F64, SHAPE(6), large), ET_BF16), half);
    ok(memcmp(half, bf16, sizeof half) == 0, "bf16: much later");
    forget();
}

/* Whole numbers past 2^24 in a chain of operations. */
static void
whole_chains(void)
{
    static const int32_t x[] = {16777217, 16777219}, one[] = {0, 0};
    int32_t y[2];
    struct et_tensor *t = leaf(ET_I32, SHAPE(2), x),
                     *zero = leaf(ET_I32, SHAPE(2), one);
    get(et_add(g,
               et_mul(g, et_add(g, t, zero),
                      et_add(g, zero, leaf(ET_I32, SHAPE(2), (int32_t[]){1, 1}))),
               zero),
        y);
    ok(y[0] == 16777217 && y[1] == 16777219, "whole numbers are not rounded as floats");
    forget();
}

/* ---- indices that are none ---- */

static void
indices(void)
{
    const float z[] = {1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4};
    const int32_t t[] = {2, 3, -1, -100};
    float l[4];
    get(et_cross_entropy(g, leaf(ET_F32, SHAPE(4, 3), z), leaf(ET_I32, SHAPE(4), t),
                         NULL, -100, ET_REDUCE_NONE),
        l);
    ok(fabsf(l[0] - 0.16984602f) < 1e-6f && isnan(l[1]) && isnan(l[2]) && l[3] == 0,
       "a class beyond the last or below the first has no loss, one to ignore 0");
    forget();
    const float never[] = {-INFINITY, -INFINITY, -INFINITY};
    struct et_tensor *out[2];
    struct et_tensor *in[] = {leaf(ET_F32, SHAPE(1, 3), never),
                              leaf(ET_I32, SHAPE(1), t)};
    const struct et_cross_entropy_attr ce = {.ignore_index = -100};
    et_apply(g, ET_OP_cross_entropy, in, 2, &ce, sizeof ce, out);
    get(out[1], l);
    ok(l[0] == -INFINITY, "the sum of no exponential is 0, its logarithm -infinity");
    forget();
    /* Gradients of 2x2 windows on two planes of 4x4: indices of places, and of none. */
    const float dy[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int32_t index[] = {0, 16, -1, 15, 15, 31, -9, 0};
    float dx[32];
    const struct et_pool2d_attr pool = {
        .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}, .shape = {1, 2, 4, 4}};
    struct et_tensor *back[] = {leaf(ET_F32, SHAPE(1, 2, 2, 2), dy),
                                leaf(ET_I32, SHAPE(1, 2, 2, 2), index)};
    get(et_contiguous(
            g, et_apply(g, ET_OP_max_pool2d_grad, back, 2, &pool, sizeof pool, NULL),
            ET_ROW_MAJOR),
        dx);
    float sum = 0;
    for (int i = 0; i < 32; i++)
        sum += dx[i];
    ok(dx[0] == 1 && dx[15] == 4 && dx[16] == 8 && dx[31] == 5 && sum == 18,
       "an index that is none gets no gradient, and is of no other plane");
    forget();
    /* Stretches of rows: a table that leaves the array. */
    const float rows[] = {9, 9, 9, 9, 1, 2, 3, 4, 9, 9, 9, 9};
    const int32_t table[] = {-3, 1, 3, 9};
    float squares[3];
    struct et_tensor *some = et_slice(g, leaf(ET_F32, SHAPE(12, 1), rows), 0, 4, 4, 1);
    get(et_segment_sum_squares(g, some, leaf(ET_I32, SHAPE(4), table)), squares);
    ok(squares[0] == 1 && squares[1] == 13 && squares[2] == 16,
       "a stretch begins and ends within the array");
    forget();
}

/* ---- frames ---- */

/* One frame on two images of 3x3 bytes, 1 to 9 and 11 to 19; 0 where nothing is. */
static void
frame(const int32_t row[ET_FRAME_NUMBERS], const float want[4], const char *what)
{
    uint8_t raw[18];
    float table[256], y[4];
    int wrong = 0;
    for (int i = 0; i < 18; i++)
        raw[i] = (uint8_t)(i < 9 ? i + 1 : i + 2);
    for (int i = 0; i < 256; i++)
        table[i] = (float)i;
    get(et_image_batch(g, leaf(ET_U8, SHAPE(2, 1, 3, 3), raw),
                       leaf(ET_I32, SHAPE(1, ET_FRAME_NUMBERS), row),
                       leaf(ET_F32, SHAPE(1, 256), table), 2, 2),
        y);
    for (int i = 0; i < 4; i++)
        wrong += isnan(want[i]) ? !isnan(y[i]) : y[i] != want[i];
    ok(wrong == 0, "%s: %g %g %g %g", what, (double)y[0], (double)y[1], (double)y[2],
       (double)y[3]);
    forget();
}

static void
frames(void)
{
    static const struct {
        int32_t row[ET_FRAME_NUMBERS]; /* sample, y, x, min, min, max, max, flipped */
        float want[4];
        const char *what;
    } rows[] = {
        {{0, 0, 0, 0, 0, 3, 3, 0}, {1, 2, 4, 5}, "the first corner"},
        {{1, 1, 1, 0, 0, 3, 3, 0}, {15, 16, 18, 19}, "the last of the second image"},
        {{0, 0, 1, 0, 0, 3, 3, 1}, {3, 2, 6, 5}, "left and right exchanged"},
        {{0, -1, -1, -1, -1, 3, 3, 0}, {0, 0, 0, 1}, "beyond the first corner"},
        {{0, 2, 2, 0, 0, 9, 9, 0}, {9, 0, 0, 0}, "beyond the last"},
        {{0, 0, 0, 1, 0, 3, 3, 0}, {0, 0, 4, 5}, "without the first row"},
        {{0, 0, 0, 0, 1, 3, 3, 0}, {0, 2, 0, 5}, "without the first column"},
        {{0, 0, 0, 0, 0, 1, 3, 0}, {1, 2, 0, 0}, "the first row alone"},
        {{0, 0, 0, 0, 0, 3, 1, 0}, {1, 0, 4, 0}, "the first column alone"},
        {{-1, 0, 0, 0, 0, 3, 3, 0}, {NAN, NAN, NAN, NAN}, "no image before the first"},
        {{2, 0, 0, 0, 0, 3, 3, 0}, {NAN, NAN, NAN, NAN}, "or behind the last"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        frame(rows[i].row, rows[i].want, rows[i].what);
}

/* ---- order ---- */

static void
order(void)
{
    const float x[] = {2, 1, 2, 1, 3, 1};
    static const int32_t want[2][6] = {{1, 3, 5, 0, 2, 4}, {4, 0, 2, 1, 3, 5}};
    for (int k = 0; k < 2; k++) {
        int32_t got[6];
        struct et_tensor *index;
        et_sort(g, leaf(ET_F32, SHAPE(6), x), 0, k, &index);
        get(index, got);
        ok(memcmp(got, want[k], sizeof got) == 0, "equal elements keep their order, %s",
           k ? "descending" : "ascending");
        forget();
    }
    int32_t first[2];
    struct et_tensor *index;
    et_topk(g, leaf(ET_F32, SHAPE(6), x), 2, &index);
    get(index, first);
    ok(first[0] == 4 && first[1] == 0, "of equals the first is among the largest");
    forget();
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    ok(et_device_open(cx, "ref", 1, 1, &dev) == ET_EINVAL,
       "there is one reference device");
    et_error_clear(cx);
    must(et_device_open(cx, "ref", 0, 1, &dev));
    must(et_graph_new(cx, dev, &g));
    casts();
    whole_chains();
    indices();
    frames();
    order();
    et_graph_free(&g);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
