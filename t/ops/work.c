/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic that operations count, and the bytes that they move where these differ
 * from their operands and results. All sizes are different. */
#include "etude/ctx.h"
#include "etude/op.h"
#include "t/ops/text.h"
#include "t/tap.h"

#include <string.h>

enum { MOST = 16, PLAIN = -1 }; /* PLAIN: operands and results */

#define ATTR(type, ...)                                                                \
    &(const struct et_##type##_attr){__VA_ARGS__}, sizeof(struct et_##type##_attr)
#define NO_ATTR NULL, 0
#define CONV                                                                           \
    .stride = {2, 1}, .pad = {1, 2}, .dilation = {1, 2}, .groups = 2 /* y [2,6,4,4] */
#define POOL  .kernel = {3, 2}, .stride = {2, 3}, .dilation = {1, 1} /* y [2,3,3,3] */
#define HEADS "f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8]"

/* (a + b)^2 < a: three steps, one result. */
static const struct et_fused_attr three_steps = {
    .n_in = 2,
    .n_out = 1,
    .n_steps = 3,
    .out = {4},
    .step = {{.op = ET_OP_add, .src = {0, 1}, .n_src = 2},
             {.op = ET_OP_square, .src = {2}, .n_src = 1},
             {.op = ET_OP_less, .src = {3, 0}, .n_src = 2}},
};

static const struct work {
    enum et_op_id op;
    const void *attr;
    size_t attr_size;
    const char *in; /* the operands, see text.h */
    int64_t flops, bytes;
} rows[] = {
    {ET_OP_conv2d, ATTR(conv2d, CONV), "f32[2,4,7,8] f32[6,2,3,5]", 11520, PLAIN},
    {ET_OP_conv2d_fused, ATTR(conv2d_fused, .conv = {CONV}),
     "f32[2,4,7,8] f32[6,2,3,5] f32[6] f32[6]", 11520, PLAIN},
    {ET_OP_conv2d_grad_input, ATTR(conv2d, CONV, .shape = {2, 4, 7, 8}),
     "f32[2,6,4,4] f32[6,2,3,5]", 11520, PLAIN},
    {ET_OP_conv2d_grad_weight, ATTR(conv2d, CONV, .shape = {6, 2, 3, 5}),
     "f32[2,4,7,8] f32[2,6,4,4]", 11520, PLAIN},
    {ET_OP_matmul, ATTR(matmul, .trans_a = 1, .trans_b = 1), "f32[5,3,2] f32[5,4,3]",
     240, PLAIN},
    {ET_OP_matmul_fused, ATTR(matmul_fused, .trans_a = 1, .form = ET_EPILOGUE_SUM_A),
     "f32[5,2] f32[5,3]", 60, PLAIN},
    {ET_OP_sdpa, ATTR(sdpa, .scale = 1), HEADS, 3840, PLAIN},
    {ET_OP_sdpa, ATTR(sdpa, .scale = 1, .causal = 1), HEADS, 1920, PLAIN},
    {ET_OP_sdpa_grad, ATTR(sdpa, .scale = 1),
     "f32[2,3,4,8] " HEADS " f32[2,3,4,8] f32[2,3,4]", 9600, PLAIN},

    {ET_OP_max_pool2d, ATTR(pool2d, POOL), "f32[2,3,7,8]", 324, PLAIN},
    {ET_OP_avg_pool2d, ATTR(pool2d, POOL), "f32[2,3,7,8]", 324, PLAIN},
    {ET_OP_max_pool2d_grad, ATTR(pool2d, POOL, .shape = {2, 3, 7, 8}),
     "f32[2,3,3,3] i32[2,3,3,3]", 54, PLAIN},
    {ET_OP_avg_pool2d_grad, ATTR(pool2d, POOL, .shape = {2, 3, 7, 8}), "f32[2,3,3,3]",
     54, PLAIN},
    {ET_OP_adaptive_avg_pool2d, ATTR(pool2d, .shape = {2, 3, 1, 2}), "f32[2,3,7,8]",
     336, PLAIN},
    {ET_OP_resize2d,
     ATTR(resize, .mode = ET_RESIZE_BILINEAR, .scale = {2, 2}, .shape = {2, 3, 4, 5}),
     "f32[2,3,8,9]", 960, PLAIN},
    {ET_OP_resize2d, ATTR(resize, .scale = {2, 2}, .shape = {2, 3, 4, 5}),
     "f32[2,3,8,9]", 0, PLAIN},
    {ET_OP_resize2d_grad,
     ATTR(resize, .mode = ET_RESIZE_BILINEAR, .scale = {2, 2}, .shape = {2, 3, 8, 9}),
     "f32[2,3,4,5]", 960, PLAIN},
    {ET_OP_resize2d_grad, ATTR(resize, .scale = {2, 2}, .shape = {2, 3, 8, 9}),
     "f32[2,3,4,5]", 0, PLAIN},

    {ET_OP_sum, ATTR(reduce, .axes = 2), "f32[2,3,4]", 24, PLAIN},
    {ET_OP_amax, ATTR(reduce, .axes = 2), "f32[2,3,4]", 24, PLAIN},
    {ET_OP_amin, ATTR(reduce, .axes = 2), "f32[2,3,4]", 24, PLAIN},
    {ET_OP_argmax, ATTR(axis, .axis = 1), "f32[2,3,4]", 24, PLAIN},
    {ET_OP_topk, ATTR(axis, .n = 2), "f32[3,5]", 15, PLAIN},
    {ET_OP_sum_squares, NO_ATTR, "bf16[2,3]", 12, PLAIN},
    {ET_OP_segment_sum_squares, NO_ATTR, "f32[5,3] i32[4]", 30, PLAIN},
    {ET_OP_sort, ATTR(axis, .axis = 1), "f32[2,4,3]", 48, PLAIN},
    {ET_OP_sort, ATTR(axis, .axis = 1), "f32[2,5,3]", 90, PLAIN},
    {ET_OP_sort, ATTR(axis, .axis = 1), "f32[2,1,3]", 0, PLAIN},
    {ET_OP_softmax, ATTR(axis, .axis = 1), "f32[2,3]", 30, PLAIN},
    {ET_OP_softmax_grad, ATTR(axis, .axis = 1), "f32[2,3] f32[2,3]", 30, PLAIN},
    {ET_OP_cross_entropy, ATTR(cross_entropy, -100), "f32[2,10] i32[2]", 100, PLAIN},
    {ET_OP_cross_entropy_grad, ATTR(cross_entropy, -100),
     "f32[2] f32[2,10] i32[2] f32[2]", 100, PLAIN},

    {ET_OP_batch_norm, ATTR(norm, .eps = 1), "f32[4,3]", 96, PLAIN},
    {ET_OP_batch_norm_grad, ATTR(norm, .eps = 1), "f32[4,3] f32[4,3] - f32[3] f32[3]",
     96, PLAIN},
    {ET_OP_layer_norm, ATTR(norm, .axes = 1), "f32[4,3]", 96, PLAIN},
    {ET_OP_layer_norm, ATTR(norm, .axes = 1), "f32[4,3] - - f32[4,3]", 108, PLAIN},
    {ET_OP_layer_norm_grad, ATTR(norm, .axes = 1), "f32[4,3] f32[4,3] - f32[4] f32[4]",
     96, PLAIN},
    {ET_OP_layer_norm_grad, ATTR(norm, .axes = 1),
     "f32[4,3] f32[4,3] - f32[4] f32[4] f32[4,3]", 108, PLAIN},
    {ET_OP_group_norm, ATTR(norm, .groups = 1), "f32[4,3]", 96, PLAIN},
    {ET_OP_group_norm_grad, ATTR(norm, .groups = 1),
     "f32[4,3] f32[4,3] - f32[4,1] f32[4,1]", 96, PLAIN},

    {ET_OP_fused, &three_steps, sizeof three_steps, "f32[2,3] f32[3]", 18, PLAIN},

    /* Of a table only the rows taken are read, and no more than it has. */
    {ET_OP_take, ATTR(axis, .axis = 0), "f32[9,4] i32[3]", 0, 12 + 48 + 48},
    {ET_OP_take, ATTR(axis, .axis = 0), "f32[9,4] i32[20]", 0, 80 + 144 + 320},
    {ET_OP_gather, ATTR(axis, .axis = 1), "f64[2,9] i32[2,3]", 0, 24 + 48 + 48},
    {ET_OP_take_grad, ATTR(axis, .axis = 0, .n = 9), "f32[3,4] i32[3]", 12, PLAIN},
    {ET_OP_scatter_add, ATTR(axis, .axis = 1, .n = 9), "f32[2,3] i32[2,3]", 6, PLAIN},
    /* Operations that only move data cost no FLOP. */
    {ET_OP_copy, ATTR(copy, .format = ET_CHANNELS_LAST), "f32[2,3,4,5]", 0, PLAIN},
    {ET_OP_concat, ATTR(axis, .axis = 1), "f32[2,3] f32[2,5]", 0, PLAIN},
    {ET_OP_pad, ATTR(pad, .after = {0, 2}), "f32[2,3]", 0, PLAIN},
    {ET_OP_flip, ATTR(flip, .axes = 2), "f32[2,3]", 0, PLAIN},
    {ET_OP_all_reduce, NO_ATTR, "f32[2,3] f32[1]", 6, PLAIN},
    /* A byte is read for each of 180 numbers, four bytes where neighbours are mixed. */
    {ET_OP_image_batch, ATTR(image_batch, .shape = {5, 6}),
     "u8[9,3,8,8] i32[2,8] f32[3,256]", 0, 180 + 64 + 3072 + 720},
    {ET_OP_image_batch, ATTR(image_batch, .shape = {5, 6}, .dtype = ET_F16),
     "u8[9,3,8,8] i32[2,8] f32[3,256]", 0, 180 + 64 + 3072 + 360},
    {ET_OP_image_augment, ATTR(image_batch, .shape = {5, 6}),
     "u8[9,3,8,8] i32[2,38] f32[3,256]", 0, 4 * 180 + 304 + 3072 + 720},
};

static void
check(struct et_ctx *cx, const struct work *w)
{
    const struct et_op *op = et_op_get(w->op);
    struct et_desc in[MOST], out[MOST];
    int64_t offset = 0;
    struct et_call call = {
        .op = w->op,
        .n_in = read_descs(w->in, in, MOST),
        .n_out = op->n_out,
        .attr = w->attr,
        .attr_size = w->attr_size,
        .in = in,
        .out = out,
    };
    memset(out, 0, sizeof out);
    if (op->infer(cx, &call, out, &offset) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    is_int(op->flops ? op->flops(&call) : et_desc_count(&out[0]), w->flops,
           "%s of %s counts its arithmetic", op->name, w->in);
    is_int(op->bytes ? op->bytes(&call) : PLAIN, w->bytes,
           "%s of %s counts the bytes it moves", op->name, w->in);
}

int
main(void)
{
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(cx, &rows[i]);
    et_ctx_free(&cx);
    return done();
}
