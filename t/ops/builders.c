/* SPDX-License-Identifier: Apache-2.0 */
/* What builders do besides appending a node: layouts, defaults, compositions,
 * errors. */
#include "etude/etude.h"
#include "t/ops/text.h"
#include "t/tap.h"

#include <math.h>
#include <string.h>

/* f32 results of a few additions near 1. */
static const double tolerance = 1e-6;

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;

enum { MOST = 64 };
static struct et_tensor *made[MOST];
static int n_made;

static void
need(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* A leaf described as in text.h, holding VALUE (NULL: zeros). */
static struct et_tensor *
leaf(const char *text, const void *value)
{
    struct et_desc d;
    read_descs(text, &d, 1);
    enum et_format format =
        et_desc_is_contiguous(&d, ET_ROW_MAJOR) ? ET_ROW_MAJOR : ET_CHANNELS_LAST;
    struct et_tensor **x = &made[n_made++];
    need(et_tensor_new(cx, dev, d.dtype, d.ndim, d.shape, format, NULL, x));
    if (value)
        need(et_tensor_write(cx, *x, value, et_desc_bytes(&d)));
    return *x;
}

static void
begin(void)
{
    et_error_clear(cx);
    et_graph_reset(g);
    while (n_made)
        et_tensor_free(&made[--n_made]);
}

static bool
lies_as(const struct et_tensor *x, const char *text)
{
    struct et_desc d;
    char got[128];
    read_descs(text, &d, 1);
    bool same = x && et_desc_equal(&x->desc, &d);
    if (!same)
        diag("got %s", x ? write_desc(&x->desc, got, sizeof got) : "nothing");
    return same;
}

static bool
made_by(const struct et_tensor *x, enum et_op_id op)
{
    return x && x->node && x->node->op->id == op;
}

static double
item(struct et_tensor *x)
{
    double got = NAN;
    need(et_item(g, x, &got));
    return got;
}

static void
test_layouts(void)
{
    begin();
    struct et_tensor *image = leaf("f32[2,3,4,5]cl", NULL),
                     *rows = leaf("f32[2,3,4,5]", NULL);
    ok(et_contiguous(g, image, ET_CHANNELS_LAST) == image &&
           et_contiguous(g, rows, ET_ROW_MAJOR) == rows,
       "an array that already lies so is not copied");
    struct et_tensor *flat = et_reshape(g, image, 2, (int64_t[]){2, -1});
    ok(lies_as(flat, "f32[2,60]") && made_by(flat->node->in[0], ET_OP_copy),
       "flattening a channels-last image copies it to row-major order");
    ok(!made_by(et_reshape(g, rows, 2, (int64_t[]){2, -1})->node->in[0], ET_OP_copy),
       "flattening a row-major array is a view");
    ok(et_reshape(g, rows, 4, (int64_t[]){2, 3, -1, 5}) == rows,
       "a reshape to the same shape is the operand");
    ok(et_cast(g, rows, ET_F32) == rows, "a cast to the same dtype is the operand");
    ok(et_dropout(g, rows, NULL, 0, 0) == rows, "dropout of nothing is the operand");

    struct et_tensor *w = leaf("f32[6,3,3,3]", NULL);
    struct et_tensor *y = et_conv2d(g, rows, w, NULL, NULL);
    ok(lies_as(y, "f32[2,6,2,3]cl") && made_by(y->node->in[0], ET_OP_copy) &&
           made_by(y->node->in[1], ET_OP_copy),
       "a convolution copies operands that are not channels-last");
    ok(lies_as(et_conv_transpose2d(g, y, w, NULL,
                                   &(struct et_conv2d_attr){
                                       .stride = {2, 2},
                                       .output_pad = {1, 0},
                                   }),
               "f32[2,3,6,7]cl"),
       "a transposed convolution adds the rows asked for");
    struct et_conv2d_attr beyond = {
        .dilation = {1, 3}, .pad = {0, 1}, .output_pad = {0, 2}};
    float bias = 0.5F, got[4];
    struct et_tensor *row = et_conv_transpose2d(g, leaf("f32[1,1,1,1]", &(float){2}),
                                                leaf("f32[1,1,1,2]", (float[]){3, 5}),
                                                leaf("f32[1]", &bias), &beyond);
    need(et_eval(g, &row, 1));
    need(et_tensor_read(cx, row, got, sizeof got));
    ok(got[0] == 0.5F && got[1] == 0.5F && got[2] == 10.5F && got[3] == 0.5F,
       "of a dilated filter more of them than the stride: %g %g %g %g", got[0], got[1],
       got[2], got[3]);
    ok(lies_as(et_max_pool2d(g, rows, &(struct et_pool2d_attr){.kernel = {2, 2}}),
               "f32[2,3,2,2]cl"),
       "the stride of pooling is its window where none is given");
    ok(lies_as(et_transpose(g, rows, 1, -1), "f32[2,5,4,3]@60,1,5,20"),
       "axes count from the end where they are negative");
    need(et_graph_status(g));
}

static void
test_errors(void)
{
    begin();
    struct et_conv2d_attr far = {
        .stride = {2, 2}, .dilation = {1, 3}, .output_pad = {0, 3}};
    ok(!et_conv_transpose2d(g, leaf("f32[1,1,2,2]", NULL), leaf("f32[1,1,2,2]", NULL),
                            NULL, &far) &&
           et_graph_status(g) == ET_EINVAL,
       "rows added to a transposed convolution have a bound");
    is_str(et_error_get(cx)->message,
           "conv2d_grad_input: output padding 3 is neither below stride 2 nor below "
           "dilation 3",
           "which the message names");
    begin();
    struct et_tensor *x = leaf("f32[2,3]", NULL);
    ok(!et_relu(g, et_slice(g, x, 2, 0, 1, 1)) && et_graph_status(g) == ET_EINVAL,
       "the first error sticks and what follows is nothing");
    is_str(et_error_get(cx)->message,
           "slice: no such axis of f32[2,3], or a step below 1",
           "a wrong axis of a slice is named");
    begin();
    x = leaf("f32[2,3]", NULL);
    ok(!et_reshape(g, x, 3, (int64_t[]){-1, 6, -1}) && et_graph_status(g) == ET_ESHAPE,
       "of two lengths that are not known neither is found");
    begin();
    x = leaf("f32[2,3]", NULL);
    ok(!et_reshape(g, x, 2, (int64_t[]){-1, 4}),
       "a length that does not divide is not found");
    is_str(et_error_get(cx)->message,
           "reshape: axis 0 of f32[-1,4] cannot be found from f32[2,3]",
           "and the error says so");
    begin();
    x = leaf("f32[2,3]", NULL);
    ok(!et_transpose(g, x, 0, 5) && !et_transpose(g, x, 5, 0) &&
           et_graph_status(g) == ET_EINVAL,
       "axes that are not there are not exchanged");
    begin();
    x = leaf("f32[2,3]", NULL);
    ok(!et_one_hot(g, leaf("i32[1,1,1,1,1,1]", NULL), 3) &&
           et_graph_status(g) == ET_ESHAPE,
       "labels of 6 axes have no room for classes");
    begin();
}

static void
test_losses(void)
{
    const float z[] = {1, 2, 3, 0, 0, 0, 3, 1, 1, 0, 1, 0};
    const int32_t label[] = {2, 0, -100, 1};
    const float weight[] = {1, 2, 3};
    /* -log softmax of the labels' logits */
    double l0 = log(exp(-2) + exp(-1) + 1), l1 = log(3), l3 = log(2 + exp(1)) - 1;

    begin();
    struct et_tensor *logits = leaf("f32[4,3]", z), *target = leaf("i32[4]", label);
    struct et_tensor *w = leaf("f32[3]", weight);
    is_near(item(et_cross_entropy(g, logits, target, NULL, -100, ET_REDUCE_MEAN)),
            (l0 + l1 + l3) / 3, tolerance, "the mean is over positions not ignored");
    is_near(item(et_cross_entropy(g, logits, target, w, -100, ET_REDUCE_MEAN)),
            (3 * l0 + l1 + 2 * l3) / 6, tolerance,
            "a weighted mean divides by the weights");
    is_near(item(et_cross_entropy(g, logits, target, w, -100, ET_REDUCE_SUM)),
            3 * l0 + l1 + 2 * l3, tolerance, "a sum does not divide");

    float rows[12];
    struct et_tensor *dense = et_one_hot(g, target, 3);
    need(et_eval(g, &dense, 1));
    need(et_tensor_read(cx, dense, rows, sizeof rows));
    const float want[] = {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0};
    ok(!memcmp(rows, want, sizeof rows),
       "one_hot of a negative label is a row of zeros");
    is_near(item(et_cross_entropy(g, logits, dense, NULL, -100, ET_REDUCE_MEAN)),
            (l0 + l1 + l3) / 3, tolerance,
            "a dense mean divides by what the target sums to");
    is_near(item(et_cross_entropy(g, logits, dense, w, -100, ET_REDUCE_MEAN)),
            (3 * l0 + l1 + 2 * l3) / 3, tolerance, "class weights do not change that");

    const float far[] = {-1000, 1000}, yes[] = {0, 1};
    is_near(item(et_bce_with_logits(g, leaf("f32[2]", far), leaf("f32[2]", yes),
                                    ET_REDUCE_SUM)),
            0, tolerance, "binary cross entropy does not overflow");
    const float odds[] = {0, 0, -1000, 1000};
    struct et_tensor *x = leaf("f32[2,2]", odds),
                     *t = leaf("f32[2,2]", (float[]){0, 1, 0, 1});
    is_near(item(et_bce_with_logits(g, x, t, ET_REDUCE_SUM)), 2 * log(2), tolerance,
            "its sum is that of all labels,");
    is_near(item(et_bce_with_logits(g, x, t, ET_REDUCE_MEAN)), log(2) / 2, tolerance,
            "its mean a part of that,");
    ok(lies_as(et_bce_with_logits(g, x, t, ET_REDUCE_NONE), "f32[2,2]"),
       "and without either there is one for each");
}

/* A map of labels [1,2,3] of two classes: [1,2,2,3], classes behind samples. */
static void
test_maps(void)
{
    const int32_t label[] = {0, 1, 1, 1, 0, 7};
    const float want[] = {1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0};
    float got[12];
    begin();
    struct et_tensor *map = et_one_hot(g, leaf("i32[1,2,3]", label), 2);
    need(et_eval(g, &map, 1));
    need(et_tensor_read(cx, map, got, sizeof got));
    ok(map->desc.ndim == 4 && map->desc.shape[1] == 2 && map->desc.shape[2] == 2 &&
           map->desc.shape[3] == 3 && !memcmp(got, want, sizeof got),
       "one_hot of a map has a map for each class");
}

/* One query of depth 4 and two keys: without a scale of its own an attention divides by
 * the root of the depth, however many queries, keys and heads there are. */
static void
test_attention(void)
{
    const float key[] = {1, 1, 1, 1, 0, 0, 0, 0}, value[] = {1, 0, 0, 0, 0, 0, 0, 0};
    float got[12];
    begin();
    struct et_tensor *q = leaf("f32[1,1,3,4]", (float[12]){1, 1, 1, 1});
    struct et_tensor *k = leaf("f32[1,1,2,4]", key), *v = leaf("f32[1,1,2,4]", value);
    static const double scales[] = {0, 0.25};
    for (int i = 0; i < 2; i++) {
        struct et_tensor *y = et_sdpa(g, q, k, v, NULL, false, scales[i]);
        need(et_eval(g, &y, 1));
        need(et_tensor_read(cx, y, got, sizeof got));
        double e = exp(4 * (scales[i] ? scales[i] : 1 / sqrt(4)));
        is_near(got[0], e / (e + 1), tolerance, "an attention scales by %s",
                scales[i] ? "what it is given" : "the root of its depth");
        is_near(got[4], 0.5, tolerance, "a query of zeros sees all keys alike");
    }
}

static void
test_pack(void)
{
    /* 1 x 2 x 1 x 2: rows 0 1 of channel 0, 2 3 of channel 1. */
    const float x[] = {0, 1, 2, 3}, y[] = {4, 5};
    const float want[] = {0, 2, 1, 3, 0, 4, 5, 0};
    float got[8];

    begin();
    struct et_tensor *list[] = {leaf("f32[1,2,1,2]", x), NULL, leaf("f32[2]", y)};
    struct et_tensor *flat = et_pack(g, list, (int64_t[]){0, 4, 5}, 3, 8, ET_F32);
    need(et_eval(g, &flat, 1));
    need(et_tensor_read(cx, flat, got, sizeof got));
    ok(!memcmp(got, want, sizeof got),
       "pack lays images out channels-last, zeros between");
    struct et_tensor *first[] = {leaf("f32[2]", y), NULL};
    flat = et_pack(g, first, (int64_t[]){1, 4}, 2, 8, ET_F32);
    need(et_eval(g, &flat, 1));
    need(et_tensor_read(cx, flat, got, sizeof got));
    ok(!memcmp(got, (const float[8]){0, 4, 5}, sizeof got),
       "also where the last of them is nothing");
    struct et_tensor *none[] = {NULL, NULL};
    ok(lies_as(et_pack(g, none, (int64_t[]){0, 4}, 2, 8, ET_BF16), "bf16[8]"),
       "pack of nothing is zeros");
}

/* Each function of op.h's lists appends the operation of its name. */
/* Has the graph an error? It forgets it, and keeps its nodes. */
static bool
is_refused(void)
{
    bool is = et_graph_status(g) == ET_EINVAL;
    et_graph_abandon(g);
    et_error_clear(cx);
    return is;
}

static void
test_lists(void)
{
    begin();
    struct et_tensor *x = leaf("f32[3]", NULL), *y = leaf("f32[2,3]", NULL);
    ok(!et_dropout(g, x, leaf("i64[2]", NULL), -0.25, 0) && is_refused(),
       "dropout of less than nothing is an error");
#define ET_OP(name, number)
#define ET_OP_UNARY(name, number)                                                      \
    ok(made_by(et_##name(g, x), ET_OP_##name), "et_%s appends its operation", #name);  \
    ok(!et_##name(g, NULL) && is_refused(), "et_%s of nothing is an error", #name);
#define ET_OP_BINARY(name, number)                                                     \
    struct et_tensor *name = et_##name(g, x, y);                                       \
    ok(made_by(name, ET_OP_##name) && name->node->in[0] == x && name->desc.ndim == 2,  \
       "et_%s appends its operation, broadcast", #name);                               \
    ok(!et_##name(g, x, NULL) && is_refused() && !et_##name(g, NULL, x) &&             \
           is_refused(),                                                               \
       "et_%s needs both", #name);
#include "etude/ops.def"
#undef ET_OP
    ok(less->desc.dtype == ET_U8, "comparisons are U8");
}

static void
test_reductions(void)
{
    const float rows[] = {1, 5, 3, 4, 2, 6};
    float got[6];
    int32_t at[4];

    begin();
    struct et_tensor *x = leaf("f32[2,3]", rows);
    is_near(item(et_var(g, x, 0, false, false)), 17.5 / 6, tolerance,
            "the biased variance divides by the count");
    is_near(item(et_var(g, x, 0, false, true)), 17.5 / 5, tolerance,
            "the unbiased one by one less");
    is_near(item(et_mean(g, x, 0, false)), 3.5, tolerance, "no axes are all axes");
    is_near(item(et_amin(g, x, 0, false)), 1, 0, "amin is the smallest");
    is_near(item(et_norm2(g, x)), sqrt(91), tolerance, "norm2 is of all elements");
    ok(lies_as(et_sum(g, x, 2, true), "f32[2,1]") &&
           lies_as(et_sum(g, x, 2, false), "f32[2]"),
       "a reduced axis stays where it is asked to");

    struct et_tensor *index, *top = et_topk(g, x, 2, &index);
    struct et_tensor *both[] = {top, index};
    need(et_eval(g, both, 2));
    need(et_tensor_read(cx, top, got, 4 * sizeof *got));
    need(et_tensor_read(cx, index, at, sizeof at));
    ok(!memcmp(got, (const float[]){5, 3, 6, 4}, 4 * sizeof *got) &&
           !memcmp(at, (const int32_t[]){1, 2, 2, 0}, sizeof at),
       "topk gives the largest, descending, and their places");

    struct et_tensor *sum = et_sum_to(g, x, 1, (int64_t[]){3});
    need(et_eval(g, &sum, 1));
    need(et_tensor_read(cx, sum, got, 3 * sizeof *got));
    ok(!memcmp(got, (const float[]){5, 7, 9}, 3 * sizeof *got),
       "sum_to undoes broadcasting");
    ok(!et_topk(g, x, 4, NULL) && et_graph_status(g) == ET_EINVAL,
       "more than there are cannot be the largest");
}

/* Images go to kernels as these have them, however they lie; so do their gradients. */
static void
test_images(void)
{
    const struct et_pool2d_attr pool = {.kernel = {2, 2}};
    for (int i = 0; i < 8; i++) {
        begin();
        struct et_tensor *x = leaf("f32[2,4,5,6]", NULL), *dx;
        struct et_tensor *w = leaf("f32[4,3,2,2]", NULL);
        struct et_tensor *y =
            i == 0   ? et_max_pool2d(g, x, &pool)
            : i == 1 ? et_avg_pool2d(g, x, &pool)
            : i == 2 ? et_adaptive_avg_pool2d(g, x, 2, 3)
            : i == 3 ? et_resize2d(g, x, ET_RESIZE_BILINEAR, 7, 8)
            : i == 4 ? et_resize2d_by(g, x, ET_RESIZE_NEAREST, 10, 12, 0.5)
            : i == 5 ? et_group_norm(g, x, NULL, NULL, 2, 1e-5)
            : i == 6 ? et_batch_norm(g, x, NULL, NULL, 1e-5, NULL, NULL)
                     : et_conv_transpose2d(g, x, w, NULL, NULL);
        need(et_graph_status(g));
        ok(made_by(y->node->in[0], ET_OP_copy) &&
               et_desc_is_contiguous(&y->node->in[0]->desc, ET_CHANNELS_LAST) &&
               et_desc_is_contiguous(&y->desc, ET_CHANNELS_LAST),
           "%s copies an image that is not channels-last", y->node->op->name);
        /* A gradient that lies in rows: that of a product with an array in rows. */
        struct et_tensor *rows = et_contiguous(g, y, ET_ROW_MAJOR);
        need(et_grad(g, et_sum(g, et_square(g, rows), 0, false), &x, 1, &dx));
        bool as_image = et_desc_is_contiguous(&dx->node->in[0]->desc, ET_CHANNELS_LAST);
        ok(et_desc_same_shape(&dx->desc, &x->desc) && (as_image || i == 5),
           "and so its gradient, for %s", dx->node->op->name);
        need(et_eval(g, &dx, 1));
    }
}

/* How many windows there are, by hand. */
static void
test_windows(void)
{
    static const struct {
        int kernel, stride, pad, dilation, up;
        int64_t size, want;
    } rows[] = {
        {3, 1, 0, 1, 1, 5, 3}, {2, 2, 0, 1, 0, 5, 2}, {2, 2, 0, 1, 1, 5, 3},
        {3, 2, 0, 1, 1, 5, 2}, {3, 2, 1, 1, 0, 6, 3}, {3, 2, 1, 1, 1, 6, 4},
        {2, 2, 1, 1, 1, 3, 2}, {2, 3, 0, 2, 1, 7, 3}, {5, 1, 0, 1, 1, 4, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_pool2d_attr o = {.kernel = {9, rows[i].kernel},
                                         .stride = {9, rows[i].stride},
                                         .pad = {9, rows[i].pad},
                                         .dilation = {9, rows[i].dilation},
                                         .ceil_mode = rows[i].up};
        is_int(et_pooled_size(&o, 1, rows[i].size), rows[i].want,
               "windows of %d by %d on %d, rounded %s", rows[i].kernel, rows[i].stride,
               (int)rows[i].size, rows[i].up ? "up" : "down");
    }
}

/* A sum of two dtypes has a gradient for each, of its own. */
static void
test_residual(void)
{
    const struct et_norm_attr attr = {.eps = 1e-5, .axes = 1};
    begin();
    struct et_tensor *x = leaf("f32[2,4]", NULL), *r = leaf("bf16[2,4]", NULL);
    struct et_tensor *in[] = {x, NULL, NULL, r}, *leaves[] = {x, r}, *dx[2];
    struct et_tensor *y =
        et_apply(g, ET_OP_layer_norm, in, 4, &attr, sizeof attr, NULL);
    need(et_grad(g, et_sum_squares(g, y), leaves, 2, dx));
    ok(lies_as(dx[0], "f32[2,4]") && lies_as(dx[1], "bf16[2,4]"),
       "the gradient of a residual in bf16 is bf16");
}

/* A transposed convolution is as large as its formula says, each side by its own
 * numbers. */
static void
test_transposed(void)
{
    static const struct et_conv2d_attr rows[] = {
        {.stride = {1, 2}, .dilation = {3, 4}, .pad = {1, 2}, .output_pad = {2, 3}},
        {.stride = {2, 1}, .dilation = {4, 3}, .pad = {2, 1}, .output_pad = {3, 2}},
        {.stride = {3, 2}, .dilation = {1, 1}, .pad = {0, 1}, .output_pad = {2, 1}},
        {.stride = {1, 2}, .dilation = {3, 4}, .pad = {1, 2}, .output_pad = {2, 0}},
        {.stride = {2, 1}, .dilation = {4, 3}, .pad = {2, 1}, .output_pad = {0, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_conv2d_attr *o = &rows[i];
        const int64_t side[] = {5, 6}, filter[] = {3, 2};
        bool right = true;
        begin();
        struct et_tensor *y = et_conv_transpose2d(g, leaf("f32[1,2,5,6]", NULL),
                                                  leaf("f32[2,3,3,2]", NULL), NULL, o);
        for (int k = 0; k < 2 && y; k++)
            right &= y->desc.shape[2 + k] ==
                     (side[k] - 1) * o->stride[k] - 2 * o->pad[k] +
                         o->dilation[k] * (filter[k] - 1) + o->output_pad[k] + 1;
        ok(y && right, "a transposed convolution is of the size that is said, %d",
           (int)i);
    }
}

/* Ranks add up whatever lies dense, or a copy that does. */
static void
test_apart(void)
{
    begin();
    struct et_tensor *x = et_slice(g, leaf("f32[4,3]", NULL), 1, 0, 2, 1);
    ok(!et_desc_is_dense(&x->desc) && lies_as(et_all_reduce(g, x, NULL), "f32[4,2]"),
       "ranks add up a part of an array");
    x = et_slice(g, leaf("f32[2,3,4,5]cl", NULL), 1, 0, 2, 1);
    ok(lies_as(et_all_reduce(g, x, NULL), "f32[2,2,4,5]cl"), "of images as they lie");
}

static void
test_indexing(void)
{
    const float rows[] = {1, 2, 3, 4, 5, 6};
    const int32_t index[] = {1, 7}, column[] = {2, 0};
    float got[6];

    begin();
    struct et_tensor *x = leaf("f32[2,3]", rows), *i = leaf("i32[2]", index);
    struct et_tensor *taken = et_take(g, x, i, 0);
    struct et_tensor *picked = et_gather(g, x, leaf("i32[2,1]", column), -1);
    struct et_tensor *both[] = {taken, picked};
    ok(lies_as(et_embedding(g, x, leaf("i32[4,5]", NULL)), "f32[4,5,3]"),
       "an embedding has the index's shape and the table's width");
    need(et_eval(g, both, 2));
    need(et_tensor_read(cx, taken, got, sizeof got));
    ok(got[0] == 4 && got[2] == 6 && isnan(got[3]) && isnan(got[5]),
       "rows are taken; one that is not there is NaN");
    need(et_tensor_read(cx, picked, got, 2 * sizeof *got));
    ok(got[0] == 3 && got[1] == 4, "gather picks one of each row");
}

static void
test_lines(void)
{
    const float rows[] = {3, NAN, -1, 0, 2, 2};
    float got[6];
    int32_t at[6];

    begin();
    struct et_tensor *x = leaf("f32[2,3]", rows), *index;
    struct et_tensor *up = et_sort(g, x, -1, false, &index);
    struct et_tensor *both[] = {up, index};
    need(et_eval(g, both, 2));
    need(et_tensor_read(cx, up, got, sizeof got));
    need(et_tensor_read(cx, index, at, sizeof at));
    ok(got[0] == -1 && got[1] == 3 && isnan(got[2]) && got[3] == 0 && got[5] == 2 &&
           !memcmp(at, (const int32_t[]){2, 0, 1, 0, 1, 2}, sizeof at),
       "sort puts the least first and NaN last, and leaves equals in their order");
    struct et_tensor *down = et_sort(g, x, 0, true, NULL);
    need(et_eval(g, &down, 1));
    need(et_tensor_read(cx, down, got, sizeof got));
    ok(got[0] == 3 && isnan(got[1]) && got[2] == 2 && got[3] == 0 && got[4] == 2 &&
           got[5] == -1,
       "sort of columns, the largest first");
    struct et_tensor *clean = leaf("f32[2,3]", (const float[]){1, 2, 3, 4, 5, 6});
    struct et_tensor *sums[] = {et_cumsum(g, clean, 1, false),
                                et_cumsum(g, clean, 0, true)};
    need(et_eval(g, sums, 2));
    need(et_tensor_read(cx, sums[0], got, sizeof got));
    ok(!memcmp(got, (const float[]){1, 3, 6, 4, 9, 15}, sizeof got),
       "cumsum adds up each row");
    need(et_tensor_read(cx, sums[1], got, sizeof got));
    ok(!memcmp(got, (const float[]){5, 7, 9, 4, 5, 6}, sizeof got),
       "or each column from its end");
    ok(!et_sort(g, NULL, 0, false, &index) && !index && et_graph_status(g) != ET_OK,
       "sort of nothing sticks to the graph");
}

/* Numbers of N samples from sample FIRST on, 5 each, into OUT. */
static void
draw(int64_t first, int64_t n, uint64_t ordinal, float *out)
{
    const int64_t rng[] = {0x123456789abcdef, first}, shape[] = {n, 5};
    begin();
    struct et_tensor *y = et_random_uniform(g, leaf("i64[2]", rng), ordinal, 2, shape);
    need(et_eval(g, &y, 1));
    need(et_tensor_read(cx, y, out, (size_t)(5 * n) * sizeof *out));
}

static void
test_random(void)
{
    enum { N = 20000 };
    static float ones[N], kept[N], y[N];
    const int64_t rng[] = {42, 7}, shape[] = {100, 200};
    float whole[20], part[10];
    double mean = 0, square = 0;
    int odd = 0, out = 0;

    draw(10, 4, 3, whole);
    draw(12, 2, 3, part);
    ok(!memcmp(whole + 10, part, sizeof part),
       "a sample's numbers do not depend on the batch that it is in");
    draw(12, 2, 4, part);
    ok(memcmp(whole + 10, part, sizeof part), "another ordinal draws others");

    begin();
    struct et_tensor *key = leaf("i64[2]", rng);
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    struct et_tensor *x = leaf("f32[100,200]", ones);
    struct et_tensor *all[] = {
        et_random_bernoulli(g, key, 0.3, 5, 2, shape), et_dropout(g, x, key, 0.3, 5),
        et_random_uniform(g, key, 5, 2, shape), et_random_normal(g, key, 5, 2, shape)};
    need(et_eval(g, all, 4));
    need(et_tensor_read(cx, all[0], y, sizeof y));
    need(et_tensor_read(cx, all[1], kept, sizeof kept));
    for (int i = 0; i < N; i++)
        odd += (y[i] != 0 && y[i] != 1) || (y[i] == 1) != (kept[i] == 0);
    is_int(odd, 0, "a Bernoulli draw is 1 where a dropout of its ordinal drops");
    need(et_tensor_read(cx, all[2], kept, sizeof kept));
    for (int i = 0; i < N; i++)
        out += kept[i] < 0 || kept[i] >= 1 || (y[i] == 1) != ((double)kept[i] < 0.3);
    is_int(out, 0, "uniform numbers are in [0, 1), and below p where that is 1");
    need(et_tensor_read(cx, all[3], y, sizeof y));
    for (int i = 0; i < N; i++) {
        mean += (double)y[i] / N;
        square += (double)y[i] * (double)y[i] / N;
    }
    /* Five standard deviations of each. */
    is_near(mean, 0, 5 / sqrt(N), "normal numbers have mean 0");
    is_near(square, 1, 5 * sqrt(2. / N), "and variance 1");
    et_random_normal(g, NULL, 5, 2, shape);
    is_str(et_error_get(cx)->message, "et_random_normal: operand 1 is NULL",
           "drawing without a key is told by the function's name");
}

int
main(void)
{
    need(et_ctx_new(&cx));
    need(et_device_open(cx, "ref", 0, 1, &dev));
    need(et_graph_new(cx, dev, &g));
    test_layouts();
    test_errors();
    test_losses();
    test_maps();
    test_attention();
    test_pack();
    test_lists();
    test_reductions();
    test_images();
    test_windows();
    test_residual();
    test_transposed();
    test_apart();
    test_indexing();
    test_lines();
    test_random();
    begin();
    et_graph_free(&g);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
