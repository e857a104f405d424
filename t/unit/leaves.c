/* SPDX-License-Identifier: Apache-2.0 */
/* What a device says of its memory and its options, what leaves hold that do not lie
 * row by row, and what a graph says of itself: numbers that are read out of it, what it
 * has run, and how it goes on behind what failed. */
#include "core/graph/collective.h"
#include "core/graph/graph_impl.h"
#include "core/graph/tensor.h"
#include "etude/etude.h"
#include "etude/span.h"
#include "t/tap.h"

#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;

static void
need(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static struct et_graph *
new_graph(void)
{
    struct et_graph *g;
    need(et_graph_new(cx, dev, &g));
    return g;
}

/* A row of N elements of DTYPE, which are VALUES. */
static struct et_tensor *
row(enum et_dtype dtype, int64_t n, const void *values)
{
    struct et_tensor *t;
    need(et_tensor_new(cx, dev, dtype, 1, &n, ET_ROW_MAJOR, "row", &t));
    if (values)
        need(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

/* ---- devices ---- */

static void
test_memory(void)
{
    struct et_device_memory before, with, after;
    struct et_tensor *large, *small;
    et_device_get_memory(dev, &before);
    large = row(ET_F32, 1 << 20, NULL);
    et_device_get_memory(dev, &with);
    is_int((int64_t)(with.current_bytes - before.current_bytes), 4 << 20,
           "memory in use is what leaves take");
    et_tensor_free(&large);
    small = row(ET_F32, 16, NULL);
    et_device_get_memory(dev, &after);
    is_int((int64_t)(after.current_bytes - before.current_bytes), 64,
           "what is freed is in use no longer");
    is_int((int64_t)after.peak_bytes, (int64_t)with.current_bytes,
           "the peak is the most that ever was, not what came last");
    is_int((int64_t)(after.allocs - before.allocs), 2, "blocks are counted");
    et_tensor_free(&small);
}

/* Options of devices that know none: to be switched off, and to give the same bits each
 * time, is all that they do. */
static void
test_options(void)
{
    static const struct {
        enum et_device_option option;
        int value;
        et_status want;
        const char *says;
    } rows[] = {
        {ET_DEVICE_TF32, 0, ET_OK, "f32 products are not rounded: so it is"},
        {ET_DEVICE_TF32, 1, ET_ENOTSUP, "they cannot be"},
        {ET_DEVICE_DETERMINISTIC, 0, ET_OK, "other bits each time are allowed"},
        {ET_DEVICE_DETERMINISTIC, 1, ET_OK, "and the same ones are what comes"},
    };
    static const char *const names[] = {"ref", "cpu"};
    for (int d = 0; d < 2; d++) {
        struct et_device *one;
        if (et_device_open(cx, names[d], 0, 1, &one) != ET_OK) { /* built without */
            et_error_clear(cx);
            continue;
        }
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            ok(et_device_set(one, rows[i].option, rows[i].value) == rows[i].want,
               "%s: %s", names[d], rows[i].says);
        et_error_clear(cx);
        et_device_close(&one);
    }
}

/* ---- leaves ---- */

/* A view that takes every second column of a 3 x 6 storage, turned: 3 columns of 3. */
static struct et_desc
turned(void)
{
    struct et_desc d;
    et_desc_init(&d, ET_F32, 2, (const int64_t[]){3, 3}, ET_ROW_MAJOR);
    d.stride[0] = 2;
    d.stride[1] = 6;
    return d;
}

static void
test_strided(void)
{
    float all[18], part[9], got[18];
    struct et_tensor *whole, *view;
    const struct et_desc d = turned();
    int wrong = 0;
    for (int i = 0; i < 18; i++)
        all[i] = (float)(i + 1);
    whole = row(ET_F32, 18, all);
    need(et_tensor_view(cx, whole->storage, 1, &d, "view", &view));
    need(et_tensor_read(cx, view, part, sizeof part));
    for (int i = 0; i < 9; i++)
        wrong += part[i] != all[1 + 2 * (i / 3) + 6 * (i % 3)];
    is_int(wrong, 0, "a view is read in the order of its axes");
    for (int i = 0; i < 9; i++)
        part[i] = (float)-i - 1;
    need(et_tensor_write(cx, view, part, sizeof part));
    need(et_tensor_read(cx, whole, got, sizeof got));
    for (int i = 0; i < 9; i++)
        all[1 + 2 * (i / 3) + 6 * (i % 3)] = part[i];
    is_near_array(got, all, 18, 0,
                  "and written so, and what lies between its elements stays");
    et_tensor_free(&view);
    et_tensor_free(&whole);
}

/* Arrays as they lie are put in rows to be saved: any order of axes, any dtype. */
static void
test_rows(void)
{
    enum { N = 2 * 3 * 4 };
    static const int64_t shape[] = {2, 3, 4};
    static const int64_t strides[][3] = {{12, 4, 1}, {1, 2, 6}, {12, 1, 3}, {3, 1, 6}};
    static const enum et_dtype dtypes[] = {ET_F32, ET_F64, ET_I32, ET_U8};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        for (size_t s = 0; s < sizeof strides / sizeof *strides; s++) {
            size_t size = et_dtype_size(dtypes[k]);
            unsigned char from[N * 8], rows[N * 8] = {0};
            struct et_desc d;
            int wrong = 0, n = 0;
            et_desc_init(&d, dtypes[k], 3, shape, ET_ROW_MAJOR);
            memcpy(d.stride, strides[s], sizeof strides[s]);
            for (size_t i = 0; i < sizeof from; i++)
                from[i] = (unsigned char)(i * 37 + 11);
            eti_desc_to_rows(&d, from, rows);
            for (int64_t a = 0; a < 2; a++)
                for (int64_t b = 0; b < 3; b++)
                    for (int64_t c = 0; c < 4; c++, n++) {
                        int64_t at =
                            a * d.stride[0] + b * d.stride[1] + c * d.stride[2];
                        wrong += memcmp(rows + (size_t)n * size,
                                        from + (size_t)at * size, size) != 0;
                    }
            is_int(wrong, 0, "%s with strides %d, %d, %d comes in rows",
                   et_dtype_name(dtypes[k]), (int)d.stride[0], (int)d.stride[1],
                   (int)d.stride[2]);
        }
}

/* ---- graphs ---- */

/* One number of each dtype. What was read last is no part of it: each is narrower than
 * one before it whose bytes are all set. */
static void
test_items(void)
{
    static const int64_t whole = -1;
    static const int32_t thirty = -7;
    static const uint8_t byte = 200;
    static const double wide = -1.0 / 3;
    static const float single = 0.5f;
    static const uint16_t low = 0x3f80;
    const struct {
        enum et_dtype dtype;
        const void *value;
        double want;
    } rows[] = {
        {ET_I64, &whole, -1},  {ET_U8, &byte, 200},   {ET_I64, &whole, -1},
        {ET_I32, &thirty, -7}, {ET_F64, &wide, wide}, {ET_F32, &single, 0.5},
    };
    struct et_graph *g = new_graph();
    double v;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_tensor *t = row(rows[i].dtype, 1, rows[i].value);
        ok(et_item(g, t, &v) == ET_OK && v == rows[i].want, "a number of %s is %g",
           et_dtype_name(rows[i].dtype), rows[i].want);
        et_tensor_free(&t);
    }
    struct et_tensor *t = row(ET_BF16, 1, &low), *two = row(ET_F32, 2, NULL);
    ok(et_item(g, t, &v) == ET_EDTYPE, "one of bf16 is not read");
    ok(et_item(g, two, &v) == ET_ESHAPE, "nor one of two");
    et_error_clear(cx);
    et_tensor_free(&t);
    et_tensor_free(&two);
    et_graph_free(&g);
}

/* A product of an array of N numbers and a constant, and one of that with the array. */
static void
count_runs(int64_t n, bool once)
{
    enum { RUNS = 3 };
    struct et_tensor *x = row(ET_F32, n, NULL);
    struct et_graph *g = new_graph();
    struct et_graph_stats stats;
    struct et_plan_info info;
    for (int i = 0; i < RUNS; i++) {
        struct et_tensor *y = et_mul(g, x, et_fill(g, ET_F32, 1, &n, 2));
        y = et_matmul(g, et_reshape(g, y, 2, (const int64_t[]){1, n}),
                      et_reshape(g, x, 2, (const int64_t[]){n, 1}), false, false);
        need(et_eval(g, &y, 1));
        et_graph_last_plan(g, &info);
        et_graph_reset(g);
    }
    et_graph_get_stats(g, &stats);
    is_int(info.kernels, once ? 2 : 3, "%d numbers are %s", (int)n,
           once ? "filled in once, and no kernel of a run" : "filled in by each run");
    is_int(info.moved_bytes, (3 * n + 2 * n + 1 + (once ? 0 : n)) * 4,
           "so are the bytes that a run moves,");
    is_int(info.flops, n + 2 * n + (once ? 0 : n), "and its FLOPs");
    is_int((int64_t)stats.kernels_run, RUNS * info.kernels, "%d runs have the kernels,",
           RUNS);
    is_int(stats.moved_bytes, RUNS * info.moved_bytes, "the bytes,");
    is_int(stats.flops, RUNS * info.flops, "and the FLOPs of each");
    is_int((int64_t)stats.replays, RUNS, "they are as many evaluations");
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* What a plan computes once is no part of what its runs come to: constants of up to 256
 * bytes. */
static void
test_counts(void)
{
    count_runs(64, true);
    count_runs(65, false);
}

/* An eager graph's views of leaves lie where the leaves do: what is assigned to one
 * leaf is not read by another that has other memory of the same storage. */
static void
test_eager_views(void)
{
    const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    float got[8];
    struct et_tensor *whole = row(ET_F32, 8, values), *upper;
    struct et_desc half;
    const int64_t four = 4;
    et_desc_init(&half, ET_F32, 1, &four, ET_ROW_MAJOR);
    need(et_tensor_view(cx, whole->storage, 4, &half, "upper", &upper));
    setenv("ETUDE_EAGER", "1", 1);
    struct et_graph *g = new_graph();
    unsetenv("ETUDE_EAGER");
    /* [7, 8, 5, 6] into [5, 6, 7, 8]: the parts are views of what is overwritten. */
    struct et_tensor *part[] = {et_slice(g, upper, 0, 2, 2, 1),
                                et_slice(g, upper, 0, 0, 2, 1)};
    is_int(part[0]->offset, 6, "a view of a part of a storage begins in that part");
    et_assign(g, upper, et_concat(g, part, 2, 0));
    need(et_eval(g, NULL, 0));
    need(et_tensor_read(cx, whole, got, sizeof got));
    is_near_array(got, (const float[]){1, 2, 3, 4, 7, 8, 5, 6}, 8, 0,
                  "halves of it are exchanged");
    et_graph_free(&g);
    et_tensor_free(&upper);
    et_tensor_free(&whole);
}

/* Views of one storage that overlap by some numbers, or share none, in one graph: what
 * may be computed straight into a leaf for one pair may not for the other. */
static void
test_distances(void)
{
    enum { N = 4, ALL = 12 };
    static const int64_t at[] = {N, 1, 2 * N}, four = N;
    float values[ALL], got[N], want[N];
    struct et_tensor *whole = row(ET_F32, ALL, NULL), *first, *other;
    struct et_graph *g = new_graph();
    struct et_desc d;
    et_desc_init(&d, ET_F32, 1, &four, ET_ROW_MAJOR);
    need(et_tensor_view(cx, whole->storage, 0, &d, "first", &first));
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < ALL; i++)
            values[i] = (float)(i + 1);
        for (int i = 0; i < N; i++)
            want[i] = values[at[k] + N - 1 - i];
        need(et_tensor_write(cx, whole, values, sizeof values));
        need(et_tensor_view(cx, whole->storage, at[k], &d, "other", &other));
        et_assign(g, first, et_flip(g, other, 1));
        need(et_eval(g, NULL, 0));
        need(et_tensor_read(cx, first, got, sizeof got));
        is_near_array(got, want, N, 0,
                      "a leaf is set to another one, %d numbers on, in reverse",
                      (int)at[k]);
        et_graph_reset(g);
        et_tensor_free(&other);
    }
    et_graph_free(&g);
    et_tensor_free(&first);
    et_tensor_free(&whole);
}

/* A piece of a part of a storage that was asked for still is one in the evaluation
 * behind: another leaf, which shares numbers with it, is not written before it is
 * read. */
static void
test_settled_views(void)
{
    enum { N = 4, ALL = 12 };
    static const int64_t four = N, eight = 8;
    float values[ALL], got[ALL], want[ALL];
    struct et_tensor *whole = row(ET_F32, ALL, NULL), *upper, *other;
    struct et_graph *g = new_graph();
    struct et_desc d;
    for (int i = 0; i < ALL; i++)
        values[i] = want[i] = (float)(i + 1);
    for (int i = 0; i < N; i++)
        want[7 + i] = values[6 + N - 1 - i];
    need(et_tensor_write(cx, whole, values, sizeof values));
    et_desc_init(&d, ET_F32, 1, &eight, ET_ROW_MAJOR);
    need(et_tensor_view(cx, whole->storage, 4, &d, "upper", &upper));
    et_desc_init(&d, ET_F32, 1, &four, ET_ROW_MAJOR);
    need(et_tensor_view(cx, whole->storage, 7, &d, "other", &other));
    struct et_tensor *piece = et_slice(g, upper, 0, 2, N, 1);
    need(et_eval(g, &piece, 1));
    et_assign(g, other, et_flip(g, piece, 1));
    need(et_eval(g, NULL, 0));
    need(et_tensor_read(cx, whole, got, sizeof got));
    is_near_array(got, want, ALL, 0, "a leaf is set to a piece that was asked for");
    et_graph_free(&g);
    et_tensor_free(&other);
    et_tensor_free(&upper);
    et_tensor_free(&whole);
}

/* A result of a step stays while the step lasts, also where a later plan needs all
 * memory. */
static void
test_step(void)
{
    enum { N = 4096 };
    struct et_tensor *x = row(ET_F32, N, NULL), *y, *wide;
    struct et_graph *g = new_graph();
    struct et_device_memory before, after;
    struct et_alloc_stats host[2];
    struct et_graph_stats stats;
    et_device_get_memory(dev, &before);
    y = et_add_scalar(g, x, 3);
    et_alloc_get_stats(cx, &host[0]);
    need(et_eval(g, &y, 1));
    et_alloc_get_stats(cx, &host[1]);
    et_device_get_memory(dev, &after);
    et_graph_get_stats(g, &stats);
    ok(after.allocs > before.allocs && stats.allocs == host[1].allocs - host[0].allocs +
                                                           after.allocs - before.allocs,
       "an evaluation counts the blocks that it allocates, on the host and on the "
       "device");
    et_device_set_limit(dev, before.current_bytes + 2 * N * sizeof(float));
    wide = et_concat(g, (struct et_tensor *[]){x, y, x, y}, 4, 0);
    is_int(et_eval(g, &wide, 1), ET_ENOMEM,
           "a second plan of a step is refused where memory is used up");
    et_error_clear(cx);
    et_device_get_memory(dev, &after);
    if (ok(after.current_bytes >= before.current_bytes + N * sizeof(float),
           "a second plan of a step does not free the first one's result")) {
        float got[N];
        need(et_tensor_read(cx, y, got, sizeof got));
        ok(got[0] == 3 && got[N - 1] == 3,
           "the first result of a step keeps its values");
    }
    et_device_set_limit(dev, 0);
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* ---- what failed ---- */

/* After a plan that did not fit, one that does. */
static void
test_shortage(void)
{
    struct et_tensor *x = row(ET_F32, 1024, NULL);
    struct et_graph *g = new_graph();
    struct et_device_memory memory;
    size_t needed, had;
    et_device_get_memory(dev, &memory);
    et_device_set_limit(dev, memory.current_bytes + 1000);
    struct et_tensor *y = et_concat(g, (struct et_tensor *[]){x, x}, 2, 0);
    ok(et_eval(g, &y, 1) == ET_ENOMEM, "a plan does not fit");
    et_error_clear(cx);
    et_graph_shortage(g, &needed, &had);
    ok(needed >= 8192 && had >= 1000 && had < needed,
       "it needs %zu bytes, and there are %zu", needed, had);
    et_graph_reset(g);
    y = et_sum(g, x, 0, false);
    need(et_eval(g, &y, 1));
    et_graph_shortage(g, &needed, &had);
    ok(needed == 0 && had == 0, "where the next one fits nothing is short");
    et_device_set_limit(dev, 0);
    et_graph_free(&g);
    et_tensor_free(&x);
}

static void
test_abandon(void)
{
    struct et_tensor *x = row(ET_F32, 2, (const float[]){1, 2});
    struct et_graph *g = new_graph();
    float got[2];
    et_assign(g, x, et_mul_scalar(g, x, 2));
    ok(!et_matmul(g, x, x, false, false) && et_graph_status(g) != ET_OK,
       "a graph has failed");
    et_error_clear(cx);
    et_graph_abandon(g);
    is_int(et_graph_status(g), ET_OK, "what is abandoned has not");
    struct et_tensor *y = et_add_scalar(g, x, 1);
    need(et_eval(g, &y, 1));
    need(et_tensor_read(cx, y, got, sizeof got));
    is_near_array(got, (const float[]){2, 3}, 2, 0, "it computes,");
    need(et_tensor_read(cx, x, got, sizeof got));
    is_near_array(got, (const float[]){1, 2}, 2, 0, "and assigns nothing any more");
    et_assign(g, x, et_mul_scalar(g, x, 3));
    et_graph_reset(g);
    ok(et_pending(g, x) == x, "nor does the step behind a reset");
    y = et_add_scalar(g, x, 1);
    need(et_eval(g, &y, 1));
    need(et_tensor_read(cx, x, got, sizeof got));
    is_near_array(got, (const float[]){1, 2}, 2, 0, "which leaves it as it is");
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* Is the graph's error of STATUS and this sentence? It is forgotten, and the graph is
 * empty again. */
static void
refuses(struct et_graph *g, et_status status, const char *says)
{
    is_int(et_graph_status(g), status, "refused: %s", says);
    is_str(et_error_get(cx)->message, says, "by this sentence");
    et_error_clear(cx);
    et_graph_reset(g);
}

/* What cannot be built is refused where it is written. */
static void
test_refusals(void)
{
    float got[3];
    struct et_tensor *x = row(ET_F32, 2, (const float[]){1, 2}), *grad;
    struct et_tensor *y = row(ET_F32, 2, NULL), *three = row(ET_F32, 3, NULL);
    struct et_tensor *whole = row(ET_I32, 2, NULL);
    struct et_tensor *const pair[] = {x, NULL, x};
    struct et_graph *g = new_graph();
    ok(!et_apply(g, ET_OP_add, pair, 1, NULL, 0, NULL),
       "one operand is too few for add");
    refuses(g, ET_EINVAL, "add takes 2 to 2 operands, got 1");
    ok(!et_apply(g, ET_OP_add, pair, 3, NULL, 0, NULL), "three are too many");
    refuses(g, ET_EINVAL, "add takes 2 to 2 operands, got 3");
    ok(!et_apply(g, ET_OP_add, pair, 2, NULL, 0, NULL), "and each has to be there");
    refuses(g, ET_EINVAL, "et_add: operand 2 is NULL");
    et_assign(g, et_exp(g, x), x);
    refuses(g, ET_EINVAL, "assign: f32[2] is not a leaf");
    et_assign(g, x, three);
    refuses(g, ET_ESHAPE, "assign: f32[2] cannot take f32[3]");
    et_assign(g, x, whole);
    refuses(g, ET_ESHAPE, "assign: f32[2] cannot take i32[2]");
    et_assign(g, x, et_exp(g, x));
    et_assign(g, y, x);
    ok(et_graph_status(g) == ET_OK && et_pending(g, y) == x &&
           et_pending(g, three) == three,
       "two leaves may be assigned at once");
    et_assign(g, y, x);
    refuses(g, ET_EINVAL, "assign: row is assigned twice in one evaluation");
    ok(et_grad(g, et_exp(g, x), &x, 1, &grad) == ET_ESHAPE, "a loss is a number");
    refuses(g, ET_ESHAPE, "grad: the loss must be one number, not f32[2]");
    struct et_tensor *z = et_exp(g, x);
    ok(et_tensor_read(cx, z, got, 8) == ET_EINVAL, "what was not computed is not read");
    is_str(et_error_get(cx)->message, "tensor f32[2] has not been evaluated",
           "by this sentence");
    et_error_clear(cx);
    ok(et_tensor_read(cx, x, got, 12) == ET_ESHAPE, "nor more of a leaf than there is");
    is_str(et_error_get(cx)->message, "12 bytes given for f32[2], which has 8",
           "by this one");
    ok(et_tensor_write(cx, x, got, 4) == ET_ESHAPE, "nor less of it written");
    et_error_clear(cx);
    struct et_tensor *old = et_exp(g, x);
    et_graph_reset(g);
    ok(!et_exp(g, old), "what is of a step that has ended is no operand");
    refuses(g, ET_EINVAL, "et_exp: operand 1 is a value of a step that has ended");
    struct et_tensor *both[] = {x, old, NULL};
    ok(et_eval(g, both, 3) == ET_EINVAL, "nor is it evaluated");
    is_str(et_error_get(cx)->message,
           "et_eval: tensor 2 is a value of a step that has ended", "by its number");
    et_error_clear(cx);
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&y);
    et_tensor_free(&three);
    et_tensor_free(&whole);
}

/* Losses that are a parameter themselves, or do not depend on one; an operation of many
 * operands. */
static void
test_gradients(void)
{
    enum { PARTS = 20 };
    struct et_tensor *one = row(ET_F32, 1, (const float[]){7});
    struct et_tensor *other = row(ET_F32, 1, (const float[]){8}), *grad[PARTS];
    struct et_tensor *pair[] = {one, other}, *part[PARTS];
    struct et_graph *g = new_graph();
    float got[2];
    int wrong = 0;
    need(et_grad(g, one, pair, 2, grad));
    ok(grad[0] && !grad[1], "a parameter is no loss of another one");
    need(et_eval(g, grad, 1));
    need(et_tensor_read(cx, grad[0], got, 4));
    is_near(got[0], 1, 0, "and grows with itself");
    et_graph_reset(g);
    struct et_tensor *twice = et_mul_scalar(g, one, 2);
    need(et_grad(g, et_add(g, et_mul(g, twice, twice), twice), pair, 2, grad));
    need(et_eval(g, grad, 1));
    need(et_tensor_read(cx, grad[0], got, 4));
    is_near(got[0], 2 * (2 * 14 + 1), 0,
            "what is read three times has all three gradients");
    et_graph_reset(g);
    struct et_tensor *middle = et_mul_scalar(g, one, 3), *both[] = {middle, one};
    need(et_grad(g, et_square(g, middle), both, 2, grad));
    need(et_eval(g, grad, 2));
    need(et_tensor_read(cx, grad[0], &got[0], 4));
    need(et_tensor_read(cx, grad[1], &got[1], 4));
    ok(got[0] == 42 && got[1] == 126,
       "a value has a gradient, and so has what it is made of: %g, %g", (double)got[0],
       (double)got[1]);
    et_graph_reset(g);
    struct et_tensor *whole = et_cast(g, et_cast(g, one, ET_I32), ET_F32);
    need(et_grad(g, et_mul(g, one, whole), pair, 1, grad));
    need(et_eval(g, grad, 1));
    need(et_tensor_read(cx, grad[0], got, 4));
    is_near(got[0], 7, 0, "no gradient passes through whole numbers");
    et_graph_reset(g);
    for (int i = 0; i < PARTS; i++)
        part[i] = row(ET_F32, 2, (const float[]){(float)i, 1});
    /* The sum of squares of all; the gradient of each part is twice the part. */
    struct et_tensor *loss = et_sum_squares(g, et_concat(g, part, PARTS, 0));
    need(et_grad(g, loss, part, PARTS, grad));
    need(et_eval(g, grad, PARTS));
    for (int i = 0; i < PARTS; i++) {
        need(et_tensor_read(cx, grad[i], got, sizeof got));
        wrong += got[0] != 2 * (float)i || got[1] != 2;
    }
    is_int(wrong, 0,
           "each of twenty parts of an array has its own part of the gradient");
    et_graph_reset(g);
    ok(et_grad(g, et_slice(g, part[0], 0, 0, 0, 1), part, 1, grad) == ET_ESHAPE,
       "no number is no loss");
    et_error_clear(cx);
    et_graph_free(&g);
    for (int i = 0; i < PARTS; i++)
        et_tensor_free(&part[i]);
    et_tensor_free(&one);
    et_tensor_free(&other);
}

/* A leaf keeps its name, whatever becomes of the text. */
static void
test_names(void)
{
    char name[] = "first";
    const int64_t two = 2;
    struct et_tensor *x;
    need(et_tensor_new(cx, dev, ET_F32, 1, &two, ET_ROW_MAJOR, name, &x));
    memset(name, '?', sizeof name - 1);
    is_str(x->name, "first", "a leaf has a copy of its name");
    et_tensor_free(&x);
}

/* A device whose LEFT-th kernel from now on fails. */
static struct et_device_table failing;
static et_status (*run_kernel)(struct et_kernel *, void *const *, void *,
                               struct et_stream *);
static int left;

static et_status
run_or_fail(struct et_kernel *k, void *const *ptr, void *ws, struct et_stream *stream)
{
    return --left == 0 ? ET_EDEVICE : run_kernel(k, ptr, ws, stream);
}

static int open_spans, spans;

static void
span_begin(struct et_tracer *t, const char *category, const char *name,
           const char *detail)
{
    (void)t, (void)category, (void)name, (void)detail;
    open_spans++;
    spans++;
}

static void
span_end(struct et_tracer *t, const char *category, const char *name)
{
    (void)t, (void)category, (void)name;
    open_spans--;
}

/* Each kernel of a plan fails in turn: whoever follows the run sees all spans end. */
static void
test_spans(void)
{
    enum { KERNELS = 3 };
    struct et_tracer tracer = {span_begin, span_end};
    struct et_tensor *x = row(ET_F32, 4, (const float[]){1, 2, 3, 4});
    const struct et_device_table *table = dev->table;
    failing = *table;
    run_kernel = table->run;
    failing.run = run_or_fail;
    dev->table = &failing;
    et_ctx_set_tracer(cx, &tracer);
    for (int k = 1; k <= KERNELS + 1; k++) {
        struct et_graph *g = new_graph();
        struct et_tensor *y = et_reshape(g, x, 2, (const int64_t[]){2, 2});
        for (int i = 0; i < KERNELS; i++)
            y = et_matmul(g, y, y, false, false);
        open_spans = spans = 0;
        left = k;
        et_status status = et_eval(g, &y, 1);
        ok(status == (k <= KERNELS ? ET_EDEVICE : ET_OK) && spans > k &&
               open_spans == 0,
           "%s: all %d spans have ended",
           k <= KERNELS ? "a kernel fails" : "no kernel fails", spans);
        et_error_clear(cx);
        et_graph_free(&g);
    }
    et_ctx_set_tracer(cx, NULL);
    dev->table = table;
    et_tensor_free(&x);
}

/* ---- ranks ---- */

static et_status
add_twice(void *self, const struct et_comm_call *call, char *why, size_t why_size)
{
    (void)self, (void)why, (void)why_size;
    const float *in = call->in;
    float *out = call->out;
    for (int64_t i = 0; call->kind == ET_COMM_ALL_REDUCE && i < call->n; i++)
        out[i] = 2 * in[i];
    return ET_OK;
}

static void
leave(void *self, bool failed)
{
    (void)self, (void)failed;
}

static const struct et_comm_class twins = {"twins", add_twice, leave};

/* Of several collectives one cannot be begun: the others are waited for, and it is
 * not. */
static void
test_collectives(struct et_comm *comm)
{
    static const enum et_dtype dtypes[] = {ET_F32, ET_I32, ET_F32};
    float in[3] = {1, 2, 3}, out[3] = {0};
    struct eti_collectives c = {0};
    struct et_graph *g = new_graph();
    et_graph_set_comm(g, comm);
    for (int i = 0, index; i < 3; i++) {
        const struct eti_extent none = {0};
        need(eti_collectives_add(cx, &c, 1, dtypes[i], &none, &none, &index));
        void *const address[] = {&in[i], NULL, &out[i]};
        et_status want = dtypes[i] == ET_F32 ? ET_OK : ET_EDTYPE;
        ok(eti_collectives_start(g, &c, index, address) == want &&
               c.v[i].running == (want == ET_OK),
           "a collective of %s %s", et_dtype_name(dtypes[i]),
           want == ET_OK ? "is under way" : "cannot be begun, and is not under way");
    }
    et_error_clear(cx);
    if (ok(!c.v[1].running, "only what is under way is waited for"))
        ok(eti_collectives_wait(g, &c, 3) == ET_OK && out[0] == 2 && out[1] == 0 &&
               out[2] == 6 && !c.v[0].running && !c.v[2].running,
           "and then has ended");
    et_free(cx, c.v);
    et_graph_free(&g);
}

/* A collective reads bytes 0 to 16 and writes bytes 32 to 48: does a step have to wait?
 */
static void
test_waits(void)
{
    static const struct {
        size_t begin, end;
        bool writes;
        int want;
        const char *says;
    } rows[] = {
        {0, 16, false, 0, "a step that reads what a collective reads does not wait"},
        {15, 20, true, 1, "a step that writes what a collective reads waits"},
        {16, 32, true, 0,
         "a step that writes behind what a collective reads does not wait"},
        {16, 32, false, 0,
         "a step that reads behind what a collective reads does not wait"},
        {31, 33, false, 1, "a step that reads what a collective writes waits"},
        {47, 60, true, 1, "a step that writes what a collective writes waits"},
        {48, 60, true, 0,
         "a step that writes behind what a collective writes does not wait"},
    };
    const struct eti_extent in = {.base = 1, .end = 16};
    const struct eti_extent out = {.base = 1, .begin = 32, .end = 48};
    struct eti_collectives c = {0};
    int index;
    need(eti_collectives_add(cx, &c, 4, ET_F32, &in, &out, &index));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct eti_extent e = {.base = 1, .begin = rows[i].begin, .end = rows[i].end};
        is_int(eti_collectives_before(&c, &e, rows[i].writes), rows[i].want, "%s",
               rows[i].says);
        e.base = 2;
        is_int(eti_collectives_before(&c, &e, rows[i].writes), 0,
               "a step in other memory does not wait");
    }
    et_free(cx, c.v);
}

/* The sum of two equal ranks, each of which weighs a quarter, as a plan and eagerly. */
static void
test_weights(struct et_comm *comm)
{
    const float quarter = 0.25f;
    struct et_tensor *x = row(ET_F32, 2, (const float[]){4, -8});
    struct et_tensor *weight = row(ET_F32, 1, &quarter);
    for (int eager = 0; eager < 2; eager++) {
        float got[2];
        setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
        struct et_graph *g = new_graph();
        unsetenv("ETUDE_EAGER");
        et_graph_set_comm(g, comm);
        struct et_tensor *y = et_all_reduce(g, x, weight);
        struct et_tensor *plain = et_all_reduce(g, x, NULL);
        struct et_tensor *both[] = {y, plain};
        need(et_eval(g, both, 2));
        need(et_tensor_read(cx, y, got, sizeof got));
        is_near_array(got, (const float[]){2, -4}, 2, 0, "ranks add what each weighs%s",
                      eager ? ", eagerly too" : "");
        need(et_tensor_read(cx, plain, got, sizeof got));
        is_near_array(got, (const float[]){8, -16}, 2, 0, "without weights all of it");
        et_graph_free(&g);
    }
    et_tensor_free(&x);
    et_tensor_free(&weight);
}

static void
count_release(void *owner)
{
    ++*(int *)owner;
}

/* A leaf in memory of the caller's, at an address that no allocator would give. */
static void
test_wrapped(void)
{
    float memory[7] = {9, 1, 2, 3, 9, 9, 9};
    const int64_t shape[] = {3};
    int released = 0;
    struct et_device_memory before, with;
    struct et_storage *storage;
    struct et_tensor *t;
    struct et_desc d;
    et_device_get_memory(dev, &before);
    need(et_storage_wrap(cx, dev, memory + 1, 3 * sizeof(float), count_release,
                         &released, &storage));
    et_device_get_memory(dev, &with);
    ok(with.current_bytes == before.current_bytes,
       "memory of the caller's is none of the device's");
    et_desc_init(&d, ET_F32, 1, shape, ET_ROW_MAJOR);
    need(et_tensor_view(cx, storage, 0, &d, NULL, &t));
    et_storage_unref(storage);
    ok(et_tensor_data(t) == memory + 1, "a leaf lies in it, and is no copy");
    struct et_graph *g = new_graph();
    struct et_tensor *sum = et_add(g, t, t);
    et_assign(g, t, sum);
    need(et_eval(g, &sum, 1));
    is_near_array(memory, (const float[]){9, 2, 4, 6, 9, 9, 9}, 7, 0,
                  "what is computed into the leaf is there, and nothing beside it");
    et_graph_free(&g);
    is_int(released, 0, "it is kept while there is a leaf");
    et_tensor_free(&t);
    is_int(released, 1, "and given back once with the last");
    ok(et_storage_wrap(cx, dev, NULL, 4, count_release, &released, &storage) ==
               ET_EINVAL &&
           !storage,
       "no memory is refused");
    et_error_clear(cx);
    is_int(released, 1, "and nothing is given back then");
}

int
main(void)
{
    struct et_alloc_stats stats;
    struct et_comm *comm;
    unsetenv("ETUDE_EAGER");
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK)
        bail("no reference device");
    need(et_comm_new(cx, &twins, NULL, 0, 2, &comm));
    test_memory();
    test_options();
    test_strided();
    test_rows();
    test_items();
    test_counts();
    test_eager_views();
    test_distances();
    test_settled_views();
    test_step();
    test_shortage();
    test_abandon();
    test_refusals();
    test_gradients();
    test_names();
    test_spans();
    test_collectives(comm);
    test_waits();
    test_weights(comm);
    test_wrapped();
    et_comm_close(&comm);
    et_device_close(&dev);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
