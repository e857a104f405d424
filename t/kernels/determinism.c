/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's own loops give the same bits when the same call runs again, with one thread
 * and with several; between them, and between them and the reference, only the rounding
 * of sums may differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ref/ref.h"
#include "t/kernels/module.h"
#include "t/tap.h"

#define MAX_ARRAYS 10
#define RUNS       5
/* Sums of up to 2^18 terms, kept in f64 beyond some dozen. */
#define TOLERANCE 2e-5
/* Blocks of f32 within sums of 25088 numbers below 1: 25088 * 2^-24 at most. */
#define REFERENCE_TOLERANCE 2e-3

enum contents { NOTHING, NUMBERS, POSITIVE, INDEX, COUNTER, ASCENDING };

struct array {
    enum contents contents;
    int ndim;
    int64_t shape[ET_MAX_DIMS];
};

struct test {
    enum et_op_id op;
    const char *name;
    enum et_format format;
    int n_in;
    struct array
        array[MAX_ARRAYS]; /* operands, then results up to the first of ndim -1 */
    size_t attr_size;
    union {
        struct et_reduce_attr reduce;
        struct et_axis_attr axis;
        struct et_conv2d_attr conv;
        struct et_pool2d_attr pool;
        struct et_norm_attr norm;
        struct et_cross_entropy_attr loss;
        struct et_sdpa_attr sdpa;
        struct et_resize_attr resize;
        struct et_dropout_attr dropout;
        struct et_random_attr random;
        struct et_scalar_attr scalar;
    } attr;
};

#define S(...)                                                                         \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                         \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define END                                                                            \
    {                                                                                  \
        NOTHING, -1,                                                                   \
        {                                                                              \
            0                                                                          \
        }                                                                              \
    }
#define IMAGES S(32, 16, 28, 28)
#define ROWS_  S(600, 300)
#define HEADS  S(4, 3, 65, 16)
#define ATTR(field, ...)                                                               \
    sizeof(((struct test *)0)->attr.field),                                            \
    {                                                                                  \
        .field = { __VA_ARGS__ }                                                       \
    }
#define NO_ATTR                                                                        \
    0,                                                                                 \
    {                                                                                  \
        .axis = {.axis = 0 }                                                           \
    }

static const struct test tests[] = {
    {ET_OP_gelu,
     "gelu",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, IMAGES}, {NUMBERS, IMAGES}, END},
     NO_ATTR},
    {ET_OP_mul,
     "mul by rows",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, ROWS_}, {NUMBERS, S(300)}, {NUMBERS, ROWS_}, END},
     NO_ATTR},
    {ET_OP_sum,
     "sum of all",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {NUMBERS, 0, {0}}, END},
     ATTR(reduce, .axes = 3)},
    {ET_OP_sum,
     "sum of rows",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {NUMBERS, S(600)}, END},
     ATTR(reduce, .axes = 2)},
    {ET_OP_sum,
     "sum of columns",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {NUMBERS, S(300)}, END},
     ATTR(reduce, .axes = 1)},
    {ET_OP_sum,
     "sum of many columns",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, S(300, 700)}, {NUMBERS, S(700)}, END},
     ATTR(reduce, .axes = 1)},
    {ET_OP_sum,
     "sum per channel",
     ET_CHANNELS_LAST,
     1,
     {{NUMBERS, IMAGES}, {NUMBERS, S(16)}, END},
     ATTR(reduce, .axes = 13)},
    {ET_OP_amax,
     "amax of all",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {NUMBERS, 0, {0}}, END},
     ATTR(reduce, .axes = 3)},
    {ET_OP_sum_squares,
     "sum_squares",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, IMAGES}, {NUMBERS, 0, {0}}, END},
     NO_ATTR},
    {ET_OP_segment_sum_squares,
     "segment_sum_squares",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, ROWS_}, {ASCENDING, S(41)}, {NUMBERS, S(40)}, END},
     NO_ATTR},
    {ET_OP_argmax,
     "argmax",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {INDEX, S(600)}, END},
     ATTR(axis, .axis = 1)},
    {ET_OP_softmax,
     "softmax",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {NUMBERS, ROWS_}, END},
     ATTR(axis, .axis = 1)},
    {ET_OP_cross_entropy,
     "cross_entropy",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, ROWS_}, {INDEX, S(600)}, {NUMBERS, S(600)}, {NUMBERS, S(600)}, END},
     ATTR(loss, .ignore_index = 3)},
    {ET_OP_cross_entropy_grad,
     "cross_entropy_grad",
     ET_ROW_MAJOR,
     4,
     {{NUMBERS, S(600)},
      {NUMBERS, ROWS_},
      {INDEX, S(600)},
      {POSITIVE, S(600)},
      {NUMBERS, ROWS_},
      END},
     ATTR(loss, .ignore_index = 3)},
    {ET_OP_batch_norm,
     "batch_norm",
     ET_CHANNELS_LAST,
     4,
     {{NUMBERS, IMAGES},
      {POSITIVE, S(16)},
      {NUMBERS, S(16)},
      {NUMBERS, IMAGES},
      {NUMBERS, IMAGES},
      {NUMBERS, S(16)},
      {NUMBERS, S(16)},
      END},
     ATTR(norm, .eps = 1e-5, .relu = 1)},
    {ET_OP_batch_norm_grad,
     "batch_norm_grad",
     ET_CHANNELS_LAST,
     6,
     {{NUMBERS, IMAGES},
      {NUMBERS, IMAGES},
      {POSITIVE, S(16)},
      {NUMBERS, S(16)},
      {POSITIVE, S(16)},
      {NUMBERS, IMAGES},
      {NUMBERS, IMAGES},
      {NUMBERS, S(16)},
      {NUMBERS, S(16)},
      {NUMBERS, IMAGES}},
     ATTR(norm, .eps = 1e-5, .relu = 1)},
    {ET_OP_layer_norm,
     "layer_norm",
     ET_ROW_MAJOR,
     3,
     {{NUMBERS, ROWS_},
      {POSITIVE, S(300)},
      {NUMBERS, S(300)},
      {NUMBERS, ROWS_},
      {NUMBERS, S(600)},
      {NUMBERS, S(600)},
      END},
     ATTR(norm, .eps = 1e-5, .axes = 1)},
    {ET_OP_layer_norm,
     "layer_norm of a sum that is not wanted",
     ET_ROW_MAJOR,
     4,
     {{NUMBERS, ROWS_},
      {POSITIVE, S(300)},
      {NUMBERS, S(300)},
      {NUMBERS, ROWS_},
      {NUMBERS, ROWS_},
      {NUMBERS, S(600)},
      {NUMBERS, S(600)},
      END},
     ATTR(norm, .eps = 1e-5, .axes = 1)},
    {ET_OP_layer_norm_grad,
     "layer_norm_grad",
     ET_ROW_MAJOR,
     5,
     {{NUMBERS, ROWS_},
      {NUMBERS, ROWS_},
      {POSITIVE, S(300)},
      {NUMBERS, S(600)},
      {POSITIVE, S(600)},
      {NUMBERS, ROWS_},
      {NUMBERS, S(300)},
      {NUMBERS, S(300)},
      END},
     ATTR(norm, .eps = 1e-5, .axes = 1)},
    {ET_OP_take_grad,
     "take_grad",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, ROWS_}, {INDEX, S(600)}, {NUMBERS, S(20, 300)}, END},
     ATTR(axis, .n = 20)},
    {ET_OP_scatter_add,
     "scatter_add",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, ROWS_}, {INDEX, ROWS_}, {NUMBERS, S(20, 300)}, END},
     ATTR(axis, .n = 20)},
    {ET_OP_dropout,
     "dropout",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, ROWS_}, {COUNTER, S(2)}, {NUMBERS, ROWS_}, END},
     ATTR(dropout, .p = .3)},
    {ET_OP_resize2d_grad,
     "resize2d_grad",
     ET_CHANNELS_LAST,
     1,
     {{NUMBERS, IMAGES}, {NUMBERS, S(32, 16, 20, 20)}, END},
     ATTR(resize, .mode = ET_RESIZE_BILINEAR, .scale = {20 / 28., 20 / 28.},
          .shape = {32, 16, 20, 20})},
    {ET_OP_sdpa,
     "sdpa",
     ET_ROW_MAJOR,
     3,
     {{NUMBERS, HEADS},
      {NUMBERS, HEADS},
      {NUMBERS, HEADS},
      {NUMBERS, HEADS},
      {NUMBERS, S(4, 3, 65)},
      END},
     ATTR(sdpa, .scale = .25, .causal = 1)},
    {ET_OP_sdpa_grad,
     "sdpa_grad",
     ET_ROW_MAJOR,
     6,
     {{NUMBERS, HEADS},
      {NUMBERS, HEADS},
      {NUMBERS, HEADS},
      {NUMBERS, HEADS},
      {NUMBERS, HEADS},
      {POSITIVE, S(4, 3, 65)},
      {NUMBERS, HEADS},
      {NUMBERS, HEADS},
      {NUMBERS, HEADS},
      END},
     ATTR(sdpa, .scale = .25, .causal = 1)},
    {ET_OP_take,
     "take along the second axis",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, S(7, 20, 64)}, {INDEX, S(50)}, {NUMBERS, S(7, 50, 64)}, END},
     ATTR(axis, .axis = 1)},
    {ET_OP_gather,
     "gather along the second axis",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, S(7, 20, 64)}, {INDEX, S(7, 50, 64)}, {NUMBERS, S(7, 50, 64)}, END},
     ATTR(axis, .axis = 1)},
    {ET_OP_dropout,
     "dropout of large samples",
     ET_ROW_MAJOR,
     2,
     {{NUMBERS, S(3, 20001)}, {COUNTER, S(2)}, {NUMBERS, S(3, 20001)}, END},
     ATTR(dropout, .p = .3)},
    {ET_OP_resize2d,
     "resize2d",
     ET_CHANNELS_LAST,
     1,
     {{NUMBERS, S(2, 40, 20, 20)}, {NUMBERS, S(2, 40, 28, 28)}, END},
     ATTR(resize, .mode = ET_RESIZE_BILINEAR, .scale = {20 / 28., 20 / 28.},
          .shape = {2, 40, 28, 28})},
    {ET_OP_resize2d_grad,
     "resize2d_grad of few samples",
     ET_CHANNELS_LAST,
     1,
     {{NUMBERS, S(1, 40, 28, 28)}, {NUMBERS, S(1, 40, 20, 20)}, END},
     ATTR(resize, .mode = ET_RESIZE_BILINEAR, .scale = {20 / 28., 20 / 28.},
          .shape = {1, 40, 20, 20})},
    {ET_OP_conv2d_grad_weight,
     "gradient of depthwise filters",
     ET_CHANNELS_LAST,
     2,
     {{NUMBERS, S(7, 40, 8, 8)},
      {NUMBERS, S(7, 40, 8, 8)},
      {NUMBERS, S(40, 1, 3, 3)},
      END},
     ATTR(conv, .stride = {1, 1}, .pad = {1, 1}, .dilation = {1, 1}, .groups = 40,
          .shape = {40, 1, 3, 3})},
    {ET_OP_max_pool2d,
     "max_pool2d",
     ET_CHANNELS_LAST,
     1,
     {{NUMBERS, S(5, 24, 15, 15)},
      {NUMBERS, S(5, 24, 8, 8)},
      {INDEX, S(5, 24, 8, 8)},
      END},
     ATTR(pool, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .dilation = {1, 1})},
    {ET_OP_avg_pool2d,
     "avg_pool2d",
     ET_CHANNELS_LAST,
     1,
     {{NUMBERS, S(5, 24, 15, 15)}, {NUMBERS, S(5, 24, 8, 8)}, END},
     ATTR(pool, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .dilation = {1, 1})},
    {ET_OP_avg_pool2d_grad,
     "avg_pool2d_grad",
     ET_CHANNELS_LAST,
     1,
     {{NUMBERS, S(5, 24, 8, 8)}, {NUMBERS, S(5, 24, 15, 15)}, END},
     ATTR(pool, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .dilation = {1, 1},
          .shape = {5, 24, 15, 15})},
    {ET_OP_topk,
     "topk",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {NUMBERS, S(600, 5)}, {INDEX, S(600, 5)}, END},
     ATTR(axis, .axis = 1, .n = 5)},
    {ET_OP_sort,
     "sort",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {NUMBERS, ROWS_}, {INDEX, ROWS_}, END},
     ATTR(axis, .axis = 1)},
    {ET_OP_cumsum,
     "cumsum of columns",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, ROWS_}, {NUMBERS, ROWS_}, END},
     ATTR(axis, .axis = 0)},
    {ET_OP_random,
     "random",
     ET_ROW_MAJOR,
     1,
     {{COUNTER, S(2)}, {NUMBERS, ROWS_}, END},
     ATTR(random, .kind = ET_RANDOM_NORMAL, .ndim = 2, .shape = {600, 300})},
    {ET_OP_copy,
     "copy of one long row",
     ET_ROW_MAJOR,
     1,
     {{NUMBERS, S(100001)}, {NUMBERS, S(100001)}, END},
     NO_ATTR},
};

/* Counts that leave parts of unequal size, and more parts than two. */
static const int counts[] = {2, 3, 5};

static uint32_t
next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static void
fill(void *p, enum contents contents, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t v = next(&seed);
        if (contents == COUNTER)
            ((int64_t *)p)[i] = i;
        else if (contents == ASCENDING)
            ((int32_t *)p)[i] = (int32_t)(i * i / 3);
        else if (contents == INDEX)
            ((int32_t *)p)[i] = (int32_t)(v % 20);
        else
            ((float *)p)[i] = (float)v / (1 << 23) - (contents == POSITIVE ? -0.1f : 1);
    }
}

static void *
block_of(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p)
        bail("no memory");
    memset(p, 0x55, bytes);
    return p;
}

struct arrays {
    int n;
    struct et_desc desc[MAX_ARRAYS];
    void *ptr[MAX_ARRAYS];
};

static struct arrays
arrays_of(const struct test *t)
{
    static const enum et_dtype dtypes[] = {ET_NONE, ET_F32, ET_F32,
                                           ET_I32,  ET_I64, ET_I32};
    struct arrays a = {.n = 0};
    for (; a.n < MAX_ARRAYS && t->array[a.n].ndim >= 0; a.n++) {
        const struct array *v = &t->array[a.n];
        et_desc_init(&a.desc[a.n], dtypes[v->contents], v->ndim, v->shape, t->format);
        a.ptr[a.n] = block_of(et_desc_bytes(&a.desc[a.n]));
        if (a.n < t->n_in)
            fill(a.ptr[a.n], v->contents, et_desc_count(&a.desc[a.n]), (uint32_t)a.n);
    }
    return a;
}

static void
arrays_free(struct arrays *a)
{
    for (int i = 0; i < a->n; i++)
        free(a->ptr[i]);
}

/* Runs the call RUNS times; false where it cannot or results differ between runs. */
static bool
repeats(const struct et_device_table *table, const struct test *t, struct arrays *a,
        int threads, int runs)
{
    struct et_device_handle *device;
    struct et_kernel *k;
    char why[256] = "";
    size_t workspace;
    struct et_call call = {
        .op = t->op,
        .n_in = t->n_in,
        .n_out = a->n - t->n_in,
        .attr = &t->attr,
        .attr_size = t->attr_size,
        .in = a->desc,
        .out = a->desc + t->n_in,
    };
    if (table->open(0, threads, &device, why, sizeof why) != ET_OK)
        bail("%s", why);
    if (table->prepare(device, &call, &k, &workspace, why, sizeof why) != ET_OK) {
        diag("%s", why);
        table->close(device);
        return false;
    }
    void *ws = block_of(workspace), *first[MAX_ARRAYS];
    bool same = true;
    for (int run = 0; run < runs; run++) {
        memset(ws, 0x33 + run, workspace);
        same &= table->run(k, a->ptr, ws, NULL) == ET_OK;
        for (int i = t->n_in; i < a->n; i++) {
            size_t bytes = et_desc_bytes(&a->desc[i]);
            if (run == 0)
                memcpy(first[i] = block_of(bytes), a->ptr[i], bytes);
            same &= memcmp(first[i], a->ptr[i], bytes) == 0;
        }
    }
    for (int i = t->n_in; i < a->n; i++)
        free(first[i]);
    free(ws);
    table->release(k);
    table->close(device);
    return same;
}

static double
distance(const struct et_desc *d, const void *a, const void *b)
{
    double worst = 0;
    if (d->dtype != ET_F32)
        return memcmp(a, b, et_desc_bytes(d)) == 0 ? 0 : INFINITY;
    for (int64_t i = 0; i < et_desc_count(d); i++) {
        double x = ((const float *)a)[i], y = ((const float *)b)[i];
        double error = x == y ? 0 : fabs(x - y) / fmax(1, fabs(x));
        worst = error <= worst ? worst : error;
    }
    return worst;
}

/* The largest distance of their results. */
static double
apart(const struct test *t, const struct arrays *a, const struct arrays *b)
{
    double worst = 0;
    for (int k = t->n_in; k < a->n; k++)
        worst = fmax(worst, distance(&a->desc[k], a->ptr[k], b->ptr[k]));
    return worst;
}

int
main(void)
{
    const struct et_device_table *cpu = open_module();
    if (!cpu)
        skip_all("the CPU module was not built");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        const struct test *t = &tests[i];
        struct arrays one = arrays_of(t), other = arrays_of(t);
        ok(repeats(cpu, t, &one, 1, RUNS),
           "%s gives the same bits again with one thread", t->name);
        double worst = repeats(etk_ref_device(), t, &other, 1, 1)
                           ? apart(t, &other, &one)
                           : INFINITY;
        ok(worst <= REFERENCE_TOLERANCE, "%s is what the reference computes: %.1e",
           t->name, worst);
        arrays_free(&other);
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            other = arrays_of(t);
            ok(repeats(cpu, t, &other, counts[k], RUNS),
               "%s gives the same bits again with %d threads", t->name, counts[k]);
            worst = apart(t, &one, &other);
            ok(worst <= TOLERANCE, "%s differs by rounding between 1 and %d: %.1e",
               t->name, counts[k], worst);
            arrays_free(&other);
        }
        arrays_free(&one);
    }
    return done();
}
