/* SPDX-License-Identifier: Apache-2.0 */
/* The reference device against numbers worked out by hand. */
#include "etude/rng.h"
#include "kernels/ref/ref.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARRAYS 12

/* The results are rounded to f32 once. */
#define TOL 1e-6

static const struct et_device_table *ref;
static struct et_device_handle *handle;

struct operand {
    struct et_desc d;
    void *p;
};

static struct operand
array(enum et_dtype dtype, void *p, int ndim, const int64_t *shape)
{
    struct operand a = {.p = p};
    et_desc_init(&a.d, dtype, ndim, shape, ET_ROW_MAJOR);
    return a;
}

#define SHAPE(...)                                                                     \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])             \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define F32(p, ...) array(ET_F32, p, SHAPE(__VA_ARGS__))
#define I32(p, ...) array(ET_I32, p, SHAPE(__VA_ARGS__))
#define NOTHING     ((struct operand){.p = NULL})

/* Inputs, then outputs. */
static void
run(enum et_op_id op, const void *attr, size_t attr_size, int n_in, int n_out,
    const struct operand *a)
{
    struct et_desc d[MAX_ARRAYS];
    void *p[MAX_ARRAYS];
    for (int i = 0; i < n_in + n_out; i++) {
        d[i] = a[i].d;
        p[i] = a[i].p;
    }
    struct et_call call = {
        .op = op,
        .n_in = n_in,
        .n_out = n_out,
        .attr = attr,
        .attr_size = attr_size,
        .in = d,
        .out = d + n_in,
    };
    struct et_kernel *k;
    size_t bytes;
    char why[256] = "";
    if (ref->prepare(handle, &call, &k, &bytes, why, sizeof why) != ET_OK)
        bail("op %d: %s", op, why);
    void *workspace;
    if (ref->alloc(handle, bytes, &workspace) != ET_OK)
        bail("no memory");
    if (ref->run(k, p, workspace, NULL) != ET_OK)
        bail("op %d does not run", op);
    ref->free(handle, workspace, bytes);
    ref->release(k);
}

#define RUN(op, attr, n_in, n_out, ...)                                                \
    run(ET_OP_##op, &(attr), sizeof(attr), n_in, n_out, (struct operand[]){__VA_ARGS__})
#define RUN_PLAIN(op, n_in, n_out, ...)                                                \
    run(ET_OP_##op, NULL, 0, n_in, n_out, (struct operand[]){__VA_ARGS__})
#define IS(got, tol, name, ...)                                                        \
    is_near_array(got, (float[]){__VA_ARGS__},                                         \
                  sizeof((float[]){__VA_ARGS__}) / sizeof(float), tol, name)

static void
elementwise(void)
{
    float x[4] = {-2, -0.5f, 0, 3}, y[4];
    RUN_PLAIN(relu, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, 0, "relu clears what is negative", 0, 0, 0, 3);
    RUN_PLAIN(gelu, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, TOL, "gelu is x times the normal distribution", -0.04550026f, -0.15426877f, 0,
       2.99595031f);
    RUN_PLAIN(softplus, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, TOL, "softplus is log(1 + e^x)", 0.12692801f, 0.47407698f, 0.69314718f,
       3.04858735f);
    struct et_scalar_attr limits = {.a = -1, .b = 2};
    RUN(clamp, limits, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, 0, "clamp limits both sides", -1, -0.5, 0, 2);

    float a[6] = {1, 2, 3, 4, 5, 6}, row[3] = {10, 20, 30}, sum[6];
    RUN_PLAIN(add, 2, 1, F32(a, 2, 3), F32(row, 3), F32(sum, 2, 3));
    IS(sum, 0, "a row broadcasts over a matrix", 11, 22, 33, 14, 25, 36);
    struct operand turned = F32(a, 2, 3);
    turned.d.shape[0] = 3, turned.d.shape[1] = 2;
    turned.d.stride[0] = 1, turned.d.stride[1] = 3;
    RUN_PLAIN(neg, 1, 1, turned, F32(sum, 3, 2));
    IS(sum, 0, "strides are followed", -1, -4, -2, -5, -3, -6);

    struct et_fused_attr program = {.n_in = 2, .n_out = 1, .n_steps = 2, .out = {3}};
    program.step[0] =
        (struct et_fused_step){.op = ET_OP_mul, .src = {0, 1}, .n_src = 2};
    program.step[1] =
        (struct et_fused_step){.op = ET_OP_add_scalar, .src = {2}, .n_src = 1, .a = 1};
    RUN(fused, program, 2, 1, F32(a, 2, 3), F32(row, 3), F32(a, 2, 3));
    IS(a, 0, "a fused program runs in place", 11, 41, 91, 41, 101, 181);
}

static void
dtypes(void)
{
    float x[4] = {1, -2.5f, 65536, 0x1p-24f}, back[4];
    uint16_t half[4];
    struct et_cast_attr to = {.dtype = ET_F16};
    RUN(cast, to, 1, 1, F32(x, 4), array(ET_F16, half, SHAPE(4)));
    ok(half[0] == 0x3c00 && half[1] == 0xc100 && half[2] == 0x7c00 && half[3] == 1,
       "f16: one, a negative, overflow and the smallest number");
    to.dtype = ET_F32;
    RUN(cast, to, 1, 1, array(ET_F16, half, SHAPE(4)), F32(back, 4));
    ok(back[0] == 1 && back[1] == -2.5f && isinf(back[2]) && back[3] == 0x1p-24f,
       "f16 reads back what it holds");
    float tie[3] = {1 + 0x1p-8f, 1 + 0x3p-8f, 3.4e38f};
    uint16_t brain[3];
    to.dtype = ET_BF16;
    RUN(cast, to, 1, 1, F32(tie, 3), array(ET_BF16, brain, SHAPE(3)));
    ok(brain[0] == 0x3f80 && brain[1] == 0x3f82 && brain[2] == 0x7f80,
       "bf16 rounds ties to even and overflows to infinity");
    float wild[4] = {-1.5f, 300, NAN, 2.9f};
    uint8_t byte[4];
    to.dtype = ET_U8;
    RUN(cast, to, 1, 1, F32(wild, 4), array(ET_U8, byte, SHAPE(4)));
    ok(byte[0] == 0 && byte[1] == 255 && byte[2] == 0 && byte[3] == 2,
       "integers truncate and saturate; NaN becomes 0");
}

static void
movement(void)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[12];
    struct et_flip_attr flip = {.axes = 2};
    RUN(flip, flip, 1, 1, F32(x, 2, 3), F32(y, 2, 3));
    IS(y, 0, "flip reverses one axis", 3, 2, 1, 6, 5, 4);
    struct et_pad_attr pad = {.before = {0, 1}, .after = {1, -1}, .value = 9};
    RUN(pad, pad, 1, 1, F32(x, 2, 3), F32(y, 3, 3));
    IS(y, 0, "pad adds a value, and cuts where negative", 9, 1, 2, 9, 4, 5, 9, 9, 9);
    struct et_axis_attr axis = {.axis = 1};
    RUN(concat, axis, 2, 1, F32(x, 2, 3), F32(((float[]){7, 8}), 2, 1), F32(y, 2, 4));
    IS(y, 0, "concat joins along an axis", 1, 2, 3, 7, 4, 5, 6, 8);
    int32_t index[3] = {2, 0, 5};
    RUN(take, axis, 2, 1, F32(x, 2, 3), I32(index, 3), F32(y, 2, 3));
    ok(y[0] == 3 && y[1] == 1 && isnan(y[2]) && y[3] == 6 && y[4] == 4 && isnan(y[5]),
       "take selects columns; an index out of range reads NaN");
    RUN(take_grad, axis, 2, 1, F32(x, 2, 3), I32(index, 3), F32(y, 2, 3));
    IS(y, 0, "its gradient adds back and drops what was out of range", 2, 0, 1, 5, 0,
       4);
    int32_t where[4] = {0, 0, 1, -1};
    axis = (struct et_axis_attr){.axis = 0, .n = 2};
    RUN(scatter_add, axis, 2, 1, F32(x, 2, 2), I32(where, 2, 2), F32(y, 2, 2));
    IS(y, 0, "scatter_add sums where an index repeats", 1, 2, 3, 0);

    int64_t pack[] = {9, 4, 0}; /* struct et_pack_attr: total, offsets */
    struct operand turned = F32(x, 2, 2);
    turned.d.stride[0] = 1, turned.d.stride[1] = 2;
    RUN(pack, pack, 2, 1, turned, F32(((float[]){7, 8}), 2), F32(y, 9));
    IS(y, 0, "pack keeps memory order and clears the gaps", 7, 8, 0, 0, 1, 2, 3, 4, 0);
}

static void
reductions(void)
{
    float x[6] = {1, 5, 3, 4, 5, 0}, y[6];
    int32_t index[4];
    struct et_reduce_attr rows = {.axes = 2}, all = {.axes = 3};
    RUN(sum, rows, 1, 1, F32(x, 2, 3), F32(y, 2));
    IS(y, 0, "sum over the last axis", 9, 9);
    RUN(amin, all, 1, 1, F32(x, 2, 3), array(ET_F32, y, 0, NULL));
    IS(y, 0, "the least of all", 0);
    RUN_PLAIN(sum_squares, 1, 1, F32(x, 2, 3), array(ET_F32, y, 0, NULL));
    IS(y, 0, "the sum of squares", 76);
    int32_t first[4] = {0, 1, 1, 9};
    RUN_PLAIN(segment_sum_squares, 2, 1, F32(x, 2, 3), I32(first, 4), F32(y, 3));
    IS(y, 0, "the sums of squares of one row, of none and of what is left", 35, 0, 41);
    struct et_axis_attr axis = {.axis = 0};
    RUN(argmax, axis, 1, 1, F32(x, 2, 3), I32(index, 3));
    ok(index[0] == 1 && index[1] == 0 && index[2] == 0,
       "argmax takes the first of equals");
    axis = (struct et_axis_attr){.axis = 1, .n = 2};
    RUN(topk, axis, 1, 2, F32(x, 2, 3), F32(y, 2, 2), I32(index, 2, 2));
    IS(y, 0, "topk descends", 5, 3, 5, 4);
    ok(index[0] == 1 && index[1] == 2 && index[2] == 1 && index[3] == 0,
       "topk says where its values were");
}

static void
products(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[4] = {1, -1, 2, 0}, y[6];
    struct et_matmul_attr plain = {0}, turn_a = {.trans_a = 1, .trans_b = 1};
    RUN(matmul, plain, 3, 1, F32(a, 3, 2), F32(b, 2, 2), F32(((float[]){10, 20}), 2),
        F32(y, 3, 2));
    IS(y, 0, "matmul adds its bias to each row", 15, 19, 21, 17, 27, 15);
    RUN(matmul, turn_a, 3, 1, F32(a, 2, 3), F32(b, 2, 2), NOTHING, F32(y, 3, 2));
    IS(y, 0, "matmul reads both operands turned", -3, 2, -3, 4, -3, 6);
}

/* What becomes of numbers that are none behind a convolution, whose ReLU they pass. */
static void
convolutions_with_more(void)
{
    const struct et_conv2d_fused_attr o = {
        .conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}, .relu = 1};
    float x[2] = {2, 3}, w[4] = {1, -1, 1, NAN}, scale[4] = {1, 2, INFINITY, 1};
    float shift[4] = {-1, 1, 0, 0}, residual[8] = {0, 5, 7, 5, 0, 0, 0, 0}, y[8];
    RUN(conv2d_fused, o, 5, 1, F32(x, 1, 1, 1, 2), F32(w, 4, 1, 1, 1), F32(scale, 4),
        F32(shift, 4), F32(residual, 1, 4, 1, 2), F32(y, 1, 4, 1, 2));
    IS(y, 0, "a convolution with what follows it", 1, 7, 4, 0);
    ok(isinf(y[4]) && isinf(y[5]) && isnan(y[6]) && isnan(y[7]),
       "whose ReLU passes what is no number");
}

/* Products that take what follows them: A [2, 3], B [3, 2]. */
static void
products_with_more(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, -1, 2, 0, 0.5f, 3}, y[4];
    float bias[2] = {-5.5f, -6}, pre[4] = {1, -1, 0, 2}, more[4] = {0};
    struct et_matmul_fused_attr o = {.form = ET_EPILOGUE_SUM_A};
    RUN(matmul_fused, o, 4, 2, F32(a, 2, 3), F32(b, 3, 2), NOTHING, NOTHING,
        F32(y, 2, 2), F32(more, 2));
    IS(y, 0, "a product beside a sum", 6.5, 8, 17, 14);
    IS(more, 0, "of the left operand over its terms", 6, 15, 0, 0);
    o.form = ET_EPILOGUE_SUM_B;
    RUN(matmul_fused, o, 4, 2, F32(a, 2, 3), F32(b, 3, 2), NOTHING, NOTHING,
        F32(y, 2, 2), F32(more, 2));
    IS(more, 0, "or of the right one over its own", 3.5, 2, 0, 0);
    o.form = ET_EPILOGUE_GELU;
    RUN(matmul_fused, o, 4, 2, F32(a, 2, 3), F32(b, 3, 2), F32(bias, 2), NOTHING,
        F32(y, 2, 2), F32(more, 2, 2));
    IS(more, 0, "what a gelu behind a product is of", 1, 2, 11.5, 8);
    IS(y, TOL, "and what it makes of that", 0.8411920f, 1.9545977f, 11.5, 8);
    o.form = ET_EPILOGUE_GELU_GRAD;
    memset(more, 0, sizeof more);
    RUN(matmul_fused, o, 4, 2, F32(a, 2, 3), F32(b, 3, 2), NOTHING, F32(pre, 2, 2),
        F32(y, 2, 2), F32(more, 2));
    IS(y, TOL, "a product through the slope of a gelu", 6.5f * 1.0829641f,
       8 * -0.0829641f, 17 * 0.5f, 14 * 1.0860992f);
    IS(more, 4 * TOL, "and the sums of its columns", 6.5f * 1.0829641f + 17 * 0.5f,
       8 * -0.0829641f + 14 * 1.0860992f, 0, 0);
}

static void
convolutions(void)
{
    /* BlurPool's filter: spec/algorithms.md 2.3 (8)(a) to (c). */
    float blur[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1}, ones[16], ramp[16], y[16], most[16];
    for (int i = 0; i < 9; i++)
        blur[i] /= 16;
    for (int i = 0; i < 16; i++) {
        ones[i] = 1;
        ramp[i] = (float)i;
    }
    struct et_conv2d_attr o = {
        .stride = {1, 1}, .pad = {1, 1}, .dilation = {1, 1}, .groups = 1};
    RUN(conv2d, o, 3, 1, F32(ones, 1, 1, 4, 4), F32(blur, 1, 1, 3, 3), NOTHING,
        F32(y, 1, 1, 4, 4));
    IS(y, TOL, "blurring ones leaves 1, 3/4 at the edges and 9/16 in the corners",
       .5625, .75, .75, .5625, .75, 1, 1, .75, .75, 1, 1, .75, .5625, .75, .75, .5625);
    o.stride[0] = o.stride[1] = 2;
    RUN(conv2d, o, 3, 1, F32(ramp, 1, 1, 4, 4), F32(blur, 1, 1, 3, 3), NOTHING,
        F32(y, 1, 1, 2, 2));
    IS(y, TOL, "blurring a ramp with stride 2", .9375, 2.5, 6.25, 10);
    struct et_pool2d_attr pool = {
        .kernel = {2, 2}, .stride = {1, 1}, .dilation = {1, 1}};
    RUN(max_pool2d, pool, 1, 2, F32(ramp, 1, 1, 4, 4), F32(most, 1, 1, 3, 3), NOTHING);
    RUN(conv2d, o, 3, 1, F32(most, 1, 1, 3, 3), F32(blur, 1, 1, 3, 3), NOTHING,
        F32(y, 1, 1, 2, 2));
    IS(y, TOL, "max-pooling and blurring a ramp", 3.75, 4.5, 6.75, 7.5);

    /* Two groups of one channel, taps two apart: out k = 10^k (x[0] + x[2]) + bias. */
    float x[6] = {1, 2, 3, 4, 5, 6}, w[4] = {1, 1, 10, 10}, bias[2] = {.5, .25};
    struct et_conv2d_attr g = {.stride = {1, 1}, .dilation = {1, 2}, .groups = 2};
    RUN(conv2d, g, 3, 1, F32(x, 1, 2, 1, 3), F32(w, 2, 1, 1, 2), F32(bias, 2),
        F32(y, 1, 2, 1, 1));
    IS(y, 0, "groups, dilation and bias", 4.5, 100.25);
    RUN(conv2d_grad_input, g, 3, 1, F32(((float[]){1, 2}), 1, 2, 1, 1),
        F32(w, 2, 1, 1, 2), NOTHING, F32(y, 1, 2, 1, 3));
    IS(y, 0, "the input gradient puts each tap back", 1, 0, 1, 20, 0, 20);
    RUN(conv2d_grad_weight, g, 2, 1, F32(x, 1, 2, 1, 3),
        F32(((float[]){1, 2}), 1, 2, 1, 1), F32(y, 2, 1, 1, 2));
    IS(y, 0, "the weight gradient pairs each tap with its pixel", 1, 3, 8, 12);
    struct et_conv2d_attr up = {
        .stride = {1, 2}, .dilation = {1, 1}, .groups = 1, .output_pad = {0, 1}};
    RUN(conv2d_grad_input, up, 3, 1, F32(x, 1, 1, 1, 2), F32(w + 1, 1, 1, 1, 2),
        F32(bias, 1), F32(y, 1, 1, 1, 5));
    IS(y, 0, "transposed convolution with stride, bias and output padding", 1.5, 10.5,
       2.5, 20.5, .5);
}

static void
pooling(void)
{
    float x[9] = {1, 5, 2, 5, 0, 3, -1, 4, 6}, y[9];
    int32_t index[4];
    struct et_pool2d_attr o = {
        .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}, .ceil_mode = 1};
    RUN(max_pool2d, o, 1, 2, F32(x, 1, 1, 3, 3), F32(y, 1, 1, 2, 2),
        I32(index, 1, 1, 2, 2));
    IS(y, 0, "max-pooling with a partial last window", 5, 3, 4, 6);
    ok(index[0] == 1 && index[1] == 5 && index[2] == 7 && index[3] == 8,
       "the first of equal maxima wins");
    RUN(max_pool2d_grad, o, 2, 1, F32(((float[]){1, 2, 3, 4}), 1, 1, 2, 2),
        I32(index, 1, 1, 2, 2), F32(y, 1, 1, 3, 3));
    IS(y, 0, "its gradient goes to the winners", 0, 1, 0, 0, 0, 2, 0, 3, 4);
    o.pad[0] = o.pad[1] = 1;
    o.ceil_mode = 0;
    RUN(avg_pool2d, o, 1, 1, F32(x, 1, 1, 3, 3), F32(y, 1, 1, 2, 2));
    IS(y, TOL, "average pooling divides by the pixels inside", 1, 3.5, 2, 3.25);
    o.count_include_pad = 1;
    RUN(avg_pool2d, o, 1, 1, F32(x, 1, 1, 3, 3), F32(y, 1, 1, 2, 2));
    IS(y, TOL, "or by the window with its padding", .25, 1.75, 1, 3.25);
    RUN(avg_pool2d_grad, o, 1, 1, F32(((float[]){4, 8, 12, 16}), 1, 1, 2, 2),
        F32(y, 1, 1, 3, 3));
    IS(y, TOL, "its gradient spreads evenly", 1, 2, 2, 3, 4, 4, 3, 4, 4);
    struct et_pool2d_attr adaptive = {.shape = {1, 1, 2, 1}};
    RUN(adaptive_avg_pool2d, adaptive, 1, 1, F32(x, 1, 1, 3, 3), F32(y, 1, 1, 2, 1));
    IS(y, TOL, "adaptive windows overlap where they do not divide", 16 / 6.f, 17 / 6.f);
    RUN(adaptive_avg_pool2d_grad, adaptive, 1, 1, F32(((float[]){6, 12}), 1, 1, 2, 1),
        F32(y, 1, 1, 3, 3));
    IS(y, TOL, "and so do their gradients", 1, 1, 1, 3, 3, 3, 2, 2, 2);
}

static void
resizing(void)
{
    float x[4] = {1, 2, 3, 4}, y[6];
    struct et_resize_attr o = {.mode = ET_RESIZE_NEAREST, .scale = {1, 4 / 3.}};
    RUN(resize2d, o, 1, 1, F32(x, 1, 1, 1, 4), F32(y, 1, 1, 1, 3));
    IS(y, 0, "nearest takes floor(dst * scale)", 1, 2, 3);
    o = (struct et_resize_attr){.mode = ET_RESIZE_BILINEAR, .scale = {1, .5}};
    RUN(resize2d, o, 1, 1, F32(x, 1, 1, 1, 2), F32(y, 1, 1, 1, 4));
    IS(y, TOL, "bilinear has half-pixel centres", 1, 1.25, 1.75, 2);
    RUN(resize2d_grad, o, 1, 1, F32(x, 1, 1, 1, 4), F32(y, 1, 1, 1, 2));
    IS(y, TOL, "its gradient is the transpose", 1 + 1.5f + .75f, .5f + 2.25f + 4);
}

/* Which pixel each of the others is, for all sizes up to MOST, in f32 as PyTorch has
 * it: where a product is a whole number in one precision and just below it in another,
 * the pixel is another one. */
static void
nearest_pixels(void)
{
    enum { MOST = 64 };
    float x[MOST], y[MOST];
    int wrong = 0, told_apart = 0;
    for (int i = 0; i < MOST; i++)
        x[i] = (float)i;
    for (int from = 1; from <= MOST; from++)
        for (int to = 1; to <= MOST; to++) {
            const double scale = (double)from / to;
            struct et_resize_attr o = {.mode = ET_RESIZE_NEAREST, .scale = {1, scale}};
            RUN(resize2d, o, 1, 1, F32(x, 1, 1, 1, from), F32(y, 1, 1, 1, to));
            for (int i = 0; i < to; i++) {
                const float at = (float)i * (float)scale;
                wrong += y[i] != fminf(floorf(at), (float)from - 1);
                told_apart += floorf(at) != floor(i * scale);
            }
        }
    ok(wrong == 0 && told_apart > 0,
       "nearest pixels are found in f32, for all sizes "
       "(%d would be others)",
       told_apart);
}

static void
norms(void)
{
    /* Mean 2.5, variance 1.25: (x - 2.5)/1.118. */
    float x[4] = {1, 2, 3, 4}, y[4], mean[2], var[2], gamma[2] = {2, 1},
          beta[2] = {0, 1};
    struct et_norm_attr o = {.eps = 0, .axes = 1, .groups = 2};
    RUN(layer_norm, o, 3, 3, F32(x, 1, 4), NOTHING, NOTHING, F32(y, 1, 4), F32(mean, 1),
        F32(var, 1));
    IS(y, TOL, "layer norm has mean 0 and variance 1", -1.3416408f, -.4472136f,
       .4472136f, 1.3416408f);
    is_near(var[0], 0.89442719, TOL, "and hands out 1/sqrt(var)");
    RUN(group_norm, o, 3, 3, F32(x, 1, 2, 2), F32(gamma, 2), F32(beta, 2),
        F32(y, 1, 2, 2), F32(mean, 1, 2), F32(var, 1, 2));
    IS(y, TOL, "group norm scales and shifts by channel", -2, 2, 0, 2);
    float residual[4] = {0, 0, 1, -5};
    o.relu = 1;
    RUN(batch_norm, o, 4, 3, F32(x, 2, 2), F32(gamma, 2), F32(beta, 2),
        F32(residual, 2, 2), F32(y, 2, 2), F32(mean, 2), F32(var, 2));
    IS(y, TOL, "batch norm adds the residual, then clears what is negative", 0, 0, 3,
       0);
    ok(mean[0] == 2 && mean[1] == 3 && var[0] == 1 && var[1] == 1,
       "batch norm hands out the mean and the biased variance");
    float dx[4], dgamma[2], dbeta[2], dresidual[4], dy[4] = {1, 2, 3, 4};
    RUN(batch_norm_grad, o, 6, 4, F32(dy, 2, 2), F32(x, 2, 2), F32(gamma, 2),
        F32(mean, 2), F32(var, 2), F32(y, 2, 2), F32(dx, 2, 2), F32(dgamma, 2),
        F32(dbeta, 2), F32(dresidual, 2, 2));
    IS(dresidual, 0, "relu masks what flows back", 0, 0, 3, 0);
    ok(dgamma[0] == 3 && dgamma[1] == 0 && dbeta[0] == 3 && dbeta[1] == 0,
       "gradients of gamma and beta are sums over the channel");
    IS(dx, TOL, "two samples leave nothing of the gradient", 0, 0, 0, 0);
}

/* What an op does beside its own work is what another op would do behind it. */
static void
norms_with_more(void)
{
    enum { N = 4, C = 3, COUNT = N * C };
    static const enum et_dtype dtypes[] = {ET_F32, ET_BF16, ET_F16};
    float x[COUNT], other[COUNT], whole[COUNT], part[COUNT], mean[C], var[C];
    for (int i = 0; i < COUNT; i++) {
        x[i] = sinf(1.7f * (float)i);
        other[i] = cosf(2.3f * (float)i);
    }
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        const enum et_dtype dtype = dtypes[k];
        uint32_t low[4][COUNT]; /* has room for any of them */
        struct et_cast_attr to = {.dtype = dtype}, back = {.dtype = ET_F32};
        struct et_norm_attr o = {.eps = 1e-5, .stored = dtype};
        RUN(batch_norm, o, 4, 3, F32(x, N, C), NOTHING, NOTHING, F32(other, N, C),
            F32(whole, N, C), F32(mean, C), F32(var, C));
        RUN(batch_norm, o, 4, 3, F32(x, N, C), NOTHING, NOTHING, NOTHING,
            array(dtype, low[0], SHAPE(N, C)), NOTHING, NOTHING);
        RUN(cast, back, 1, 1, array(dtype, low[0], SHAPE(N, C)), F32(part, N, C));
        for (int i = 0; i < COUNT; i++)
            part[i] += other[i];
        is_near_array(whole, part, COUNT, 0,
                      "batch norm adds to what it would have stored as %s",
                      et_dtype_name(dtype));

        struct et_norm_attr rows = {.eps = 1e-5, .axes = 1};
        struct operand dx[2], dy = array(dtype, low[0], SHAPE(N, C)),
                              in = array(dtype, low[1], SHAPE(N, C));
        float rstd[N], row_mean[N];
        RUN(cast, to, 1, 1, F32(other, N, C), dy);
        RUN(cast, to, 1, 1, F32(x, N, C), in);
        RUN(layer_norm, rows, 3, 3, in, NOTHING, NOTHING, NOTHING, F32(row_mean, N),
            F32(rstd, N));
        for (int i = 0; i < 2; i++) {
            dx[i] = array(dtype, low[2 + i], SHAPE(N, C));
            RUN(layer_norm_grad, rows, 6, 3, dy, in, NOTHING, F32(row_mean, N),
                F32(rstd, N), i ? in : NOTHING, dx[i], NOTHING, NOTHING);
        }
        RUN_PLAIN(add, 2, 1, dx[0], in, dx[0]);
        ok(memcmp(low[2], low[3], COUNT * et_dtype_size(dtype)) == 0,
           "the gradient of layer norm is stored as %s before another is added",
           et_dtype_name(dtype));
    }
}

/* Ops that move elements keep every bit of them, whatever these stand for. */
static void
moved_bits(void)
{
    enum { N = 64 };
    static const enum et_dtype dtypes[] = {ET_F32, ET_F64, ET_BF16, ET_F16,
                                           ET_I32, ET_I64, ET_U8};
    struct et_rng rng = et_rng_at(5, ET_RNG_DATA, 0);
    uint64_t x[N], y[2][N + 4];
    int32_t index[N];
    for (int i = 0; i < N; i++) {
        x[i] = (uint64_t)et_rng_below(&rng, UINT64_MAX);
        index[i] = N - 1 - i;
    }
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        const enum et_dtype dtype = dtypes[k];
        const size_t size = et_dtype_size(dtype);
        struct operand from = array(dtype, x, SHAPE(N));
        struct operand to[2] = {array(dtype, y[0], SHAPE(N)),
                                array(dtype, y[1], SHAPE(N))};
        struct et_axis_attr axis = {.axis = 0};
        struct et_flip_attr flip = {.axes = 1};
        struct et_cast_attr cast = {.dtype = (int32_t)dtype};
        int wrong = 0;
        RUN(flip, flip, 1, 1, from, to[0]);
        RUN(take, axis, 2, 1, to[0], I32(index, N), to[1]);
        wrong += memcmp(y[1], x, N * size) != 0;
        RUN(gather, axis, 2, 1, to[1], I32(index, N), to[0]);
        RUN(flip, flip, 1, 1, to[0], to[1]);
        wrong += memcmp(y[1], x, N * size) != 0;
        RUN(cast, cast, 1, 1, from, to[0]);
        wrong += memcmp(y[0], x, N * size) != 0;
        struct operand half[2] = {array(dtype, x, SHAPE(N / 2)),
                                  array(dtype, (char *)x + N / 2 * size, SHAPE(N / 2))};
        RUN(concat, axis, 2, 1, half[0], half[1], to[1]);
        wrong += memcmp(y[1], x, N * size) != 0;
        struct et_pad_attr pad = {.before = {2}, .after = {2}};
        RUN(pad, pad, 1, 1, from, array(dtype, y[0], SHAPE(N + 4)));
        wrong += memcmp((char *)y[0] + 2 * size, x, N * size) != 0;
        is_int(wrong, 0, "%s: elements are moved with every bit", et_dtype_name(dtype));
    }
}

static void
refusals(void)
{
    struct et_desc d[10], none = {.dtype = ET_NONE};
    const struct et_norm_attr with = {.eps = 1e-5, .relu = 1}, without = {.eps = 1e-5};
    struct et_kernel *k = NULL;
    size_t bytes;
    char why[256] = "";
    for (int i = 0; i < 10; i++)
        et_desc_init(&d[i], ET_F32, i < 2 || (i > 4 && i < 7) ? 2 : 1,
                     (int64_t[]){i < 2 || (i > 4 && i < 7) ? 4 : 3, 3}, ET_ROW_MAJOR);
    struct et_call call = {.op = ET_OP_batch_norm_grad,
                           .n_in = 5,
                           .n_out = 3,
                           .attr = &with,
                           .attr_size = sizeof with,
                           .in = d,
                           .out = d + 6};
    is_int(ref->prepare(handle, &call, &k, &bytes, why, sizeof why), ET_EINVAL,
           "the gradient through relu is refused without y");
    is_str(why, "the gradient through relu needs y", "which is said");
    call.n_in = 6;
    is_int(ref->prepare(handle, &call, &k, &bytes, why, sizeof why), ET_OK,
           "with y it is not");
    ref->release(k);
    d[5] = none;
    is_int(ref->prepare(handle, &call, &k, &bytes, why, sizeof why), ET_EINVAL,
           "where y is left out, it is again");
    call.attr = &without;
    is_int(ref->prepare(handle, &call, &k, &bytes, why, sizeof why), ET_OK,
           "and without relu nobody needs y");
    ref->release(k);
    /* Steps of a program are element-wise, each of them. */
    for (int bad = 0; bad <= 3; bad++) {
        struct et_fused_attr program = {
            .n_in = 1, .n_out = 1, .n_steps = 3, .out = {3}};
        for (int i = 0; i < 3; i++)
            program.step[i] = (struct et_fused_step){.op = i == bad ? ET_OP_matmul
                                                           : i == 1 ? ET_OP_neg
                                                                    : ET_OP_cast,
                                                     .src = {(uint8_t)i},
                                                     .n_src = 1,
                                                     .a = ET_F32};
        const struct et_call fused = {.op = ET_OP_fused,
                                      .n_in = 1,
                                      .n_out = 1,
                                      .attr = &program,
                                      .attr_size = sizeof program,
                                      .in = d,
                                      .out = d + 1};
        et_status status = ref->prepare(handle, &fused, &k, &bytes, why, sizeof why);
        is_int(status, bad < 3 ? ET_ENOTSUP : ET_OK, "a product as step %d is %s", bad,
               bad < 3 ? "refused" : "none of three");
        if (status == ET_OK)
            ref->release(k);
    }
}

static void
losses(void)
{
    /* e^0 : e^(ln 3) = 1 : 3. */
    const float ln3 = 1.0986123f, ln4 = 1.3862944f;
    float z[6] = {0, ln3, ln3, 0, 0, 0}, y[6], loss[3], lse[3];
    struct et_axis_attr axis = {.axis = 1};
    RUN(softmax, axis, 1, 1, F32(z, 3, 2), F32(y, 3, 2));
    IS(y, TOL, "softmax of log odds", .25, .75, .75, .25, .5, .5);
    RUN(log_softmax, axis, 1, 1, F32(z, 3, 2), F32(y, 3, 2));
    IS(y, TOL, "log softmax", -ln4, ln3 - ln4, ln3 - ln4, -ln4, -.6931472f, -.6931472f);
    struct et_cross_entropy_attr o = {.ignore_index = -100};
    int32_t target[3] = {1, -100, 2};
    float weight[2] = {1, 2}, soft[6] = {.5, .5, 1, 0, 0, 0}, ones[3] = {1, 1, 1};
    RUN(cross_entropy, o, 3, 2, F32(z, 3, 2), I32(target, 3), F32(weight, 2),
        F32(loss, 3), F32(lse, 3));
    is_near(loss[0], 2 * (ln4 - ln3), TOL, "cross entropy times the class's weight");
    ok(loss[1] == 0, "the ignored target costs nothing");
    ok(isnan(loss[2]), "a target that is no class makes the loss NaN");
    is_near(lse[0], ln4, TOL, "and the log of the sum is handed out");
    RUN(cross_entropy_grad, o, 5, 1, F32(ones, 3), F32(z, 3, 2), I32(target, 3),
        F32(lse, 3), F32(weight, 2), F32(y, 3, 2));
    ok(fabsf(y[0] - .5f) < 1e-6 && fabsf(y[1] + .5f) < 1e-6 && y[2] == 0 && y[3] == 0,
       "its gradient is w (softmax - one hot), and 0 where ignored");
    RUN(cross_entropy, o, 3, 2, F32(z, 3, 2), F32(soft, 3, 2), F32(weight, 2),
        F32(loss, 3), NOTHING);
    IS(loss, TOL, "dense targets weigh every class", .5f * ln4 + ln4 - ln3, ln4 - ln3,
       0);
}

static void
attention(void)
{
    /* Scores of query 1 are 0 and ln 3: weights 1/4 and 3/4. */
    const float ln3 = 1.0986123f;
    float q[2] = {5, 1}, k[2] = {0, ln3}, v[2] = {4, 8}, o[2], lse[2];
    float dq[2], dk[2], dv[2], dout[2] = {1, 1};
    struct et_sdpa_attr a = {.scale = 1, .causal = 1};
    RUN(sdpa, a, 4, 2, F32(q, 1, 1, 2, 1), F32(k, 1, 1, 2, 1), F32(v, 1, 1, 2, 1),
        NOTHING, F32(o, 1, 1, 2, 1), F32(lse, 1, 1, 2));
    IS(o, TOL, "the first position sees itself, the second both", 4, 7);
    IS(lse, TOL, "attention hands out the log of the sum", 0, 1.3862944f);
    RUN(sdpa_grad, a, 7, 3, F32(dout, 1, 1, 2, 1), F32(q, 1, 1, 2, 1),
        F32(k, 1, 1, 2, 1), F32(v, 1, 1, 2, 1), F32(o, 1, 1, 2, 1), F32(lse, 1, 1, 2),
        NOTHING, F32(dq, 1, 1, 2, 1), F32(dk, 1, 1, 2, 1), F32(dv, 1, 1, 2, 1));
    IS(dv, TOL, "dv is the weights turned", 1.25, .75);
    IS(dk, TOL, "dk: ds = w (v - o) = -3/4, 3/4", -.75, .75);
    IS(dq, TOL, "dq = 3/4 ln 3", 0, .75f * ln3);
    float bias[2] = {ln3, 0};
    a.causal = 0;
    RUN(sdpa, a, 4, 2, F32(q + 1, 1, 1, 1, 1), F32(k, 1, 1, 2, 1), F32(v, 1, 1, 2, 1),
        F32(bias, 1, 1, 1, 2), F32(o, 1, 1, 1, 1), NOTHING);
    is_near(o[0], 6, TOL, "a bias of ln 3 evens the odds");
    /* The first query sees nothing, the second its own position. */
    float hides[4] = {-INFINITY, -INFINITY, -INFINITY, 0};
    RUN(sdpa, a, 4, 2, F32(q, 1, 1, 2, 1), F32(k, 1, 1, 2, 1), F32(v, 1, 1, 2, 1),
        F32(hides, 1, 1, 2, 2), F32(o, 1, 1, 2, 1), F32(lse, 1, 1, 2));
    IS(o, 0, "a query that sees no key gives 0", 0, 8);
    RUN(sdpa_grad, a, 7, 3, F32(dout, 1, 1, 2, 1), F32(q, 1, 1, 2, 1),
        F32(k, 1, 1, 2, 1), F32(v, 1, 1, 2, 1), F32(o, 1, 1, 2, 1), F32(lse, 1, 1, 2),
        F32(hides, 1, 1, 2, 2), F32(dq, 1, 1, 2, 1), F32(dk, 1, 1, 2, 1),
        F32(dv, 1, 1, 2, 1));
    IS(dv, 0, "and adds nothing to the gradient of values", 0, 1);
    IS(dk, 0, "nor of keys", 0, 0);
    IS(dq, 0, "its own is 0", 0, 0);
}

static void
dropout(void)
{
    enum { N = 3, M = 1001 };
    static float x[N * M], y[N * M], late[M];
    for (int i = 0; i < N * M; i++)
        x[i] = 1;
    int64_t rng[2] = {0x123456789abcdef, 40};
    struct et_dropout_attr o = {.p = .25, .ordinal = 7};
    RUN(dropout, o, 2, 1, F32(x, N, M), array(ET_I64, rng, SHAPE(2)), F32(y, N, M));
    int kept = 0, wrong = 0;
    for (int i = 0; i < N * M; i++) {
        kept += y[i] != 0;
        wrong += y[i] != 0 && fabsf(y[i] - 4 / 3.f) > 1e-6f;
    }
    ok(wrong == 0, "what dropout keeps is scaled by 1/(1-p)");
    /* Five standard deviations of a binomial count. */
    is_near(kept / (double)(N * M), .75, 5 * sqrt(.25 * .75 / (N * M)),
            "dropout keeps 1-p of the elements");
    rng[1] = 42;
    RUN(dropout, o, 2, 1, F32(x, 1, M), array(ET_I64, rng, SHAPE(2)), F32(late, 1, M));
    ok(memcmp(late, y + 2 * M, sizeof late) == 0,
       "a sample's mask does not depend on the batch it is in");
    o.ordinal = 8;
    RUN(dropout, o, 2, 1, F32(x, 1, M), array(ET_I64, rng, SHAPE(2)), F32(y, 1, M));
    ok(memcmp(late, y, sizeof late) != 0, "another ordinal gives another mask");
    o.p = 1;
    RUN(dropout, o, 2, 1, F32(x, 1, M), array(ET_I64, rng, SHAPE(2)), F32(y, 1, M));
    bool any = false;
    for (int i = 0; i < M; i++)
        any |= y[i] != 0;
    ok(!any, "dropout of everything leaves zeros");
}

/* What is compared with a probability: at one that is drawn itself, and beside it. */
static void
draws_at_their_bound(void)
{
    enum { N = 40 };
    float ones[N], u[N], drawn[N], kept[N];
    int64_t rng[2] = {77, 3};
    struct operand key = array(ET_I64, rng, SHAPE(2));
    struct et_random_attr o = {
        .kind = ET_RANDOM_UNIFORM, .ndim = 2, .shape = {1, N}, .ordinal = 2};
    int wrong = 0;
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    RUN(random, o, 1, 1, key, F32(u, 1, N));
    o.kind = ET_RANDOM_BERNOULLI;
    for (int k = 0; k < 3 * N; k++) {
        struct et_dropout_attr drop = {.p = u[k / 3] + (k % 3 - 1) * 0x1p-24,
                                       .ordinal = 2};
        o.p = drop.p;
        RUN(random, o, 1, 1, key, F32(drawn, 1, N));
        RUN(dropout, drop, 2, 1, F32(ones, 1, N), key, F32(kept, 1, N));
        for (int i = 0; i < N; i++) {
            wrong += drawn[i] != (u[i] < o.p);
            wrong += (kept[i] != 0) != (u[i] >= o.p);
        }
    }
    is_int(wrong, 0, "a number below p is 1, and dropped; one that is p is neither");
}

/* An element function of 16 bits is that of f32, rounded, for every number there is:
 * as if it stood in a fused program. */
static void
every_low_number(void)
{
    enum { N = 1 << 16 };
    static const enum et_op_id ops[] = {ET_OP_exp,  ET_OP_log,     ET_OP_tanh,
                                        ET_OP_gelu, ET_OP_sigmoid, ET_OP_rsqrt};
    static const enum et_dtype dtypes[] = {ET_BF16, ET_F16};
    static uint16_t x[N], y[N], rounded[N];
    static float wide[N], result[N];
    for (int i = 0; i < N; i++)
        x[i] = (uint16_t)i;
    for (int k = 0; k < 2; k++) {
        struct et_cast_attr to = {.dtype = dtypes[k]}, back = {.dtype = ET_F32};
        int wrong = 0;
        RUN(cast, back, 1, 1, array(dtypes[k], x, SHAPE(N)), F32(wide, N));
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            const struct operand low[] = {array(dtypes[k], x, SHAPE(N)),
                                          array(dtypes[k], y, SHAPE(N))};
            const struct operand high[] = {F32(wide, N), F32(result, N)};
            run(ops[i], NULL, 0, 1, 1, low);
            run(ops[i], NULL, 0, 1, 1, high);
            RUN(cast, to, 1, 1, F32(result, N), array(dtypes[k], rounded, SHAPE(N)));
            for (int j = 0; j < N; j++)
                wrong += y[j] != rounded[j] && !isnan(result[j]);
        }
        is_int(wrong, 0, "%s: functions of all numbers are those of f32, rounded",
               et_dtype_name(dtypes[k]));
    }
}

/* Programs on integers, and programs some of whose results nobody wants. */
static void
programs(void)
{
    int32_t i32[3] = {(1 << 24) + 1, -(1 << 30) - 1, 7}, y32[3];
    int64_t i64[3] = {(INT64_C(1) << 52) + 1, -(INT64_C(1) << 51) - 1, 7}, y64[3];
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    struct et_fused_attr twice = {.n_in = 1, .n_out = 1, .n_steps = 2, .out = {2}};
    twice.step[0] = (struct et_fused_step){.op = ET_OP_neg, .src = {0}, .n_src = 1};
    twice.step[1] = (struct et_fused_step){.op = ET_OP_neg, .src = {1}, .n_src = 1};
    RUN(fused, twice, 1, 1, I32(i32, 3), I32(y32, 3));
    RUN(fused, twice, 1, 1, array(ET_I64, i64, SHAPE(3)), array(ET_I64, y64, SHAPE(3)));
    ok(memcmp(i32, y32, sizeof i32) == 0 && memcmp(i64, y64, sizeof i64) == 0,
       "a program on integers keeps all of their bits");
    struct et_fused_attr two = twice;
    two.n_out = 2;
    two.out[0] = 2;
    two.out[1] = 1;
    RUN(fused, two, 1, 2, F32(x, 4), NOTHING, F32(y, 4));
    IS(y, 0, "a program of which the second result alone is wanted", -1, -2, -3, -4);
    RUN(fused, two, 1, 2, F32(x, 4), F32(y, 4), NOTHING);
    IS(y, 0, "or the first alone", 1, 2, 3, 4);
    struct et_fused_attr there = twice;
    for (int i = 0; i < 2; i++) {
        there.step[i].op = ET_OP_add_scalar;
        there.step[i].a = i ? -0x1p25 : 0x1p25;
    }
    RUN(fused, there, 1, 1, F32(x, 4), F32(y, 4));
    IS(y, 0, "each step of a program is rounded to f32", 0, 0, 4, 4);
}

int
main(void)
{
    ref = etk_ref_device();
    char why[256];
    if (ref->open(0, 1, &handle, why, sizeof why) != ET_OK)
        bail("%s", why);
    ok(ref->open(1, 1, &handle, why, sizeof why) == ET_EINVAL, "there is one device");
    elementwise();
    programs();
    dtypes();
    every_low_number();
    movement();
    reductions();
    products();
    products_with_more();
    convolutions();
    convolutions_with_more();
    pooling();
    resizing();
    nearest_pixels();
    norms();
    norms_with_more();
    moved_bits();
    refusals();
    losses();
    attention();
    dropout();
    draws_at_their_bound();
    ref->close(handle);
    return done();
}
