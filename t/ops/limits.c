/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds of what operations take: of each attribute the last value that is taken
 * and the first that is refused, and which operands may have which dtype. */
#include "etude/ctx.h"
#include "etude/op.h"
#include "t/ops/text.h"
#include "t/tap.h"

#include <string.h>

enum { MOST = 16 };

static struct et_ctx *cx;

/* ---- attributes ---- */

#define PAIR(type, one, other)                                                         \
    &(const struct et_##type##_attr)one, &(const struct et_##type##_attr)other,        \
        sizeof(struct et_##type##_attr)
#define WITH(...)                                                                      \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define CONV(down, across, rows, columns, group)                                       \
    {                                                                                  \
        .stride = {2, down}, .dilation = {across, 3}, .pad = {rows, columns},          \
        .groups = group,                                                               \
    }
#define TURNED(dilated, added, side)                                                   \
    {                                                                                  \
        .stride = {2, 2}, .dilation = {dilated, dilated}, .groups = 1,                 \
        .output_pad = {added, 0}, .shape = {1, 2, side, side},                         \
    }
#define POOL(wide, down, apart, border)                                                \
    {                                                                                  \
        .kernel = {2, wide}, .stride = {down, 1}, .dilation = {1, apart},              \
        .pad = {1, border},                                                            \
    }
#define SHAPE(...)                                                                     \
    {                                                                                  \
        .ndim = 2, .shape = { __VA_ARGS__ }                                            \
    }
#define CONSTANT(...)                                                                  \
    {                                                                                  \
        .dtype = ET_F32, .ndim = 1, __VA_ARGS__                                        \
    }

static const struct pair {
    const char *says;
    enum et_op_id op;
    const void *taken, *refused; /* attributes */
    size_t size;
    const char *in; /* operands, see text.h */
} pairs[] = {
    {"numbers are drawn for no sample, and for no fewer", ET_OP_random,
     PAIR(random, WITH(.ndim = 2, .shape = {0, 3}), WITH(.ndim = 2, .shape = {-1, 3})),
     "i64[2]"},
    {"or with no element in each", ET_OP_random,
     PAIR(random, WITH(.ndim = 2, .shape = {3, 0}), WITH(.ndim = 2, .shape = {3, -1})),
     "i64[2]"},
    {"a number may be always 1", ET_OP_random,
     PAIR(random, WITH(.ndim = 1, .shape = {4}, .p = 1),
          WITH(.ndim = 1, .shape = {4}, .p = 1.0000001)),
     "i64[2]"},
    {"or never", ET_OP_random,
     PAIR(random, WITH(.ndim = 1, .shape = {4}, .p = 0),
          WITH(.ndim = 1, .shape = {4}, .p = -1e-300)),
     "i64[2]"},
    {"one has 6 axes at most", ET_OP_random,
     PAIR(random, WITH(.ndim = 6, .shape = {1, 1, 1, 1, 1, 1}), WITH(.ndim = 7)),
     "i64[2]"},
    {"a constant may have no element, and no fewer", ET_OP_fill,
     PAIR(shape, CONSTANT(.shape = {0}), CONSTANT(.shape = {-1})), ""},
    {"one may have 6 axes", ET_OP_fill,
     PAIR(shape, WITH(.dtype = ET_F32, .ndim = 6, .shape = {1, 1, 1, 1, 1, 1}),
          WITH(.dtype = ET_F32, .ndim = 7)),
     ""},
    {"it has the last dtype that there is, and none behind", ET_OP_fill,
     PAIR(shape, WITH(.dtype = ET_DTYPE_COUNT - 1), WITH(.dtype = ET_DTYPE_COUNT)), ""},
    {"and the first, and none before", ET_OP_fill,
     PAIR(shape, WITH(.dtype = ET_NONE + 1), WITH(.dtype = ET_NONE)), ""},
    {"a cast is to the last dtype", ET_OP_cast,
     PAIR(cast, WITH(.dtype = ET_DTYPE_COUNT - 1), WITH(.dtype = ET_DTYPE_COUNT)),
     "f32[2]"},
    {"or to the first", ET_OP_cast,
     PAIR(cast, WITH(.dtype = ET_NONE + 1), WITH(.dtype = ET_NONE)), "f32[2]"},
    {"both bounds of clamp may be one", ET_OP_clamp,
     PAIR(scalar, WITH(.a = 2, .b = 2), WITH(.a = 2, .b = 1.999)), "f32[2]"},
    {"a program has at most 8 results", ET_OP_fused,
     PAIR(fused, WITH(.n_in = 1, .n_out = 8, .n_steps = 0),
          WITH(.n_in = 1, .n_out = 9, .n_steps = 0)),
     "f32[2]"},
    {"and 40 steps", ET_OP_fused,
     PAIR(fused, WITH(.n_in = 1, .n_out = 1),
          WITH(.n_in = 1, .n_out = 1, .n_steps = 41)),
     "f32[2]"},
    {"a length that is not known stays refused where it is not found", ET_OP_reshape,
     PAIR(shape, SHAPE(0, 3), SHAPE(0, -1)), "f32[0,2]"},
    {"an axis of length 1 alone expands", ET_OP_expand,
     PAIR(shape, SHAPE(3, 2), SHAPE(3, 4)), "f32[1,2]"},
    {"to no element at least", ET_OP_expand, PAIR(shape, SHAPE(0, 2), SHAPE(-1, 2)),
     "f32[1,2]"},
    {"an array does not expand to fewer axes", ET_OP_expand,
     PAIR(shape, SHAPE(1, 2), WITH(.ndim = 1, .shape = {2})), "f32[1,2]"},
    {"the last axis is permuted, and none behind", ET_OP_permute,
     PAIR(permute, WITH(.ndim = 2, .axes = {1, 0}), WITH(.ndim = 2, .axes = {2, 0})),
     "f32[2,3]"},
    {"a slice ends with its axis", ET_OP_slice,
     PAIR(slice, WITH(.start = {1}, .size = {2}, .step = {2}),
          WITH(.start = {1}, .size = {2}, .step = {3})),
     "f32[4]"},
    {"one of nothing may begin at the end", ET_OP_slice,
     PAIR(slice, WITH(.start = {4}, .step = {1}), WITH(.start = {5}, .step = {1})),
     "f32[4]"},
    {"it begins at the beginning", ET_OP_slice,
     PAIR(slice, WITH(.size = {1}, .step = {1}),
          WITH(.start = {-1}, .size = {1}, .step = {1})),
     "f32[4]"},
    {"and goes forward", ET_OP_slice,
     PAIR(slice, WITH(.size = {1}, .step = {1}), WITH(.size = {1}, .step = {0})),
     "f32[4]"},
    {"sums are over axes that there are", ET_OP_sum,
     PAIR(reduce, WITH(.axes = 2), WITH(.axes = 4)), "f32[2,3]"},
    {"flips too", ET_OP_flip, PAIR(flip, WITH(.axes = 2), WITH(.axes = 4)), "f32[2,3]"},
    {"the largest is along an axis with elements", ET_OP_argmax,
     PAIR(axis, WITH(.axis = 1), WITH(.axis = 0)), "f32[0,3]"},
    {"along the last axis, and none behind", ET_OP_argmax,
     PAIR(axis, WITH(.axis = 1), WITH(.axis = 2)), "f32[2,3]"},
    {"topk gives all that there are", ET_OP_topk,
     PAIR(axis, WITH(.n = 3), WITH(.n = 4)), "f32[2,3]"},
    {"and one at least", ET_OP_topk, PAIR(axis, WITH(.n = 1), WITH(.n = 0)),
     "f32[2,3]"},
    {"a convolution has a stride", ET_OP_conv2d,
     PAIR(conv2d, CONV(1, 3, 0, 0, 1), CONV(0, 3, 0, 0, 1)),
     "f32[1,2,9,9] f32[2,2,3,3]"},
    {"a dilation", ET_OP_conv2d, PAIR(conv2d, CONV(2, 1, 0, 0, 1), CONV(2, 0, 0, 0, 1)),
     "f32[1,2,9,9] f32[2,2,3,3]"},
    {"no negative padding", ET_OP_conv2d,
     PAIR(conv2d, CONV(2, 3, 0, 0, 1), CONV(2, 3, 0, -1, 1)),
     "f32[1,2,9,9] f32[2,2,3,3]"},
    {"and groups that divide its channels", ET_OP_conv2d,
     PAIR(conv2d, CONV(2, 3, 0, 0, 1), CONV(2, 3, 0, 0, 0)),
     "f32[1,2,9,9] f32[2,2,3,3]"},
    {"a filter may be as large as the padded image", ET_OP_conv2d,
     PAIR(conv2d, CONV(2, 3, 1, 1, 1), CONV(2, 3, 1, 0, 1)),
     "f32[1,2,5,5] f32[2,2,3,3]"},
    {"a transposed one adds rows below its dilation", ET_OP_conv2d_grad_input,
     PAIR(conv2d, TURNED(3, 2, 9), TURNED(3, 3, 9)), "f32[1,2,2,2] f32[2,2,3,3]"},
    {"or below its stride", ET_OP_conv2d_grad_input,
     PAIR(conv2d, TURNED(1, 1, 5), TURNED(1, 2, 5)), "f32[1,2,2,2] f32[2,2,3,3]"},
    {"and takes none away", ET_OP_conv2d_grad_input,
     PAIR(conv2d, TURNED(3, 0, 9), TURNED(3, -1, 9)), "f32[1,2,2,2] f32[2,2,3,3]"},
    {"output padding of the width is not negative", ET_OP_conv2d_grad_input,
     PAIR(conv2d,
          WITH(.stride = {2, 2}, .dilation = {1, 1}, .groups = 1, .output_pad = {1, 0},
               .shape = {1, 2, 5, 5}),
          WITH(.stride = {2, 2}, .dilation = {1, 1}, .groups = 1, .output_pad = {1, -1},
               .shape = {1, 2, 5, 5})),
     "f32[1,2,2,2] f32[2,2,3,3]"},
    {"output padding of the width stays below the stride", ET_OP_conv2d_grad_input,
     PAIR(conv2d,
          WITH(.stride = {2, 2}, .dilation = {1, 1}, .groups = 1, .output_pad = {0, 1},
               .shape = {1, 2, 5, 5}),
          WITH(.stride = {2, 2}, .dilation = {1, 1}, .groups = 1, .output_pad = {0, 2},
               .shape = {1, 2, 5, 5})),
     "f32[1,2,2,2] f32[2,2,3,3]"},
    {"half a window may lie in the padding", ET_OP_max_pool2d,
     PAIR(pool2d, POOL(2, 1, 1, 1), POOL(2, 1, 1, 2)), "f32[1,2,4,4]"},
    {"a window of three allows a padding of at most one", ET_OP_max_pool2d,
     PAIR(pool2d, POOL(3, 1, 1, 1), POOL(3, 1, 1, 2)), "f32[1,2,4,4]"},
    {"and no negative part of it", ET_OP_max_pool2d,
     PAIR(pool2d, POOL(2, 1, 1, 0), POOL(2, 1, 1, -1)), "f32[1,2,4,4]"},
    {"a window has elements", ET_OP_max_pool2d,
     PAIR(pool2d, POOL(1, 1, 1, 0), POOL(0, 1, 1, 0)), "f32[1,2,4,4]"},
    {"a stride", ET_OP_max_pool2d, PAIR(pool2d, POOL(2, 1, 1, 0), POOL(2, 0, 1, 0)),
     "f32[1,2,4,4]"},
    {"and a dilation", ET_OP_max_pool2d,
     PAIR(pool2d, POOL(2, 1, 1, 0), POOL(2, 1, 0, 0)), "f32[1,2,4,4]"},
    {"a window is no larger than the image", ET_OP_max_pool2d,
     PAIR(pool2d, POOL(4, 1, 1, 0), POOL(5, 1, 1, 0)), "f32[1,2,4,4]"},
    {"averages are of neighbours", ET_OP_avg_pool2d,
     PAIR(pool2d, POOL(2, 1, 1, 0), POOL(2, 1, 2, 0)), "f32[1,2,4,4]"},
    {"averages take no dilation downwards either", ET_OP_avg_pool2d,
     PAIR(pool2d, WITH(.kernel = {2, 2}, .stride = {1, 1}, .dilation = {1, 1}),
          WITH(.kernel = {2, 2}, .stride = {1, 1}, .dilation = {2, 1})),
     "f32[1,2,4,4]"},
    {"an adaptive pool makes a pixel at least", ET_OP_adaptive_avg_pool2d,
     PAIR(pool2d, WITH(.shape = {1, 2, 1, 1}), WITH(.shape = {1, 2, 1, 0})),
     "f32[1,2,4,4]"},
    {"so does a resize", ET_OP_resize2d,
     PAIR(resize, WITH(.shape = {1, 2, 1, 1}, .scale = {4, 4}),
          WITH(.shape = {1, 2, 0, 1}, .scale = {4, 4})),
     "f32[1,2,4,4]"},
    {"which keeps samples and channels", ET_OP_resize2d,
     PAIR(resize, WITH(.shape = {1, 2, 8, 8}, .scale = {.5, .5}),
          WITH(.shape = {1, 3, 8, 8}, .scale = {.5, .5})),
     "f32[1,2,4,4]"},
    {"a resize keeps the number of samples", ET_OP_resize2d,
     PAIR(resize, WITH(.shape = {1, 2, 8, 8}, .scale = {.5, .5}),
          WITH(.shape = {2, 2, 8, 8}, .scale = {.5, .5})),
     "f32[1,2,4,4]"},
    {"a resize is nearest or bilinear", ET_OP_resize2d,
     PAIR(resize,
          WITH(.shape = {1, 2, 8, 8}, .scale = {.5, .5}, .mode = ET_RESIZE_BILINEAR),
          WITH(.shape = {1, 2, 8, 8}, .scale = {.5, .5},
               .mode = ET_RESIZE_BILINEAR + 1)),
     "f32[1,2,4,4]"},
    {"a layer norm is over one axis at least", ET_OP_layer_norm,
     PAIR(norm, WITH(.axes = 1), WITH(.axes = 0)), "f32[2,3]"},
    {"and over all at most", ET_OP_layer_norm,
     PAIR(norm, WITH(.axes = 2), WITH(.axes = 3)), "f32[2,3]"},
    {"a group norm has a group for each channel at most", ET_OP_group_norm,
     PAIR(norm, WITH(.groups = 4), WITH(.groups = 8)), "f32[2,4,3]"},
    {"and one at least", ET_OP_group_norm,
     PAIR(norm, WITH(.groups = 1), WITH(.groups = 0)), "f32[2,4,3]"},
    {"scattered elements go to an axis of any length", ET_OP_scatter_add,
     PAIR(axis, WITH(.axis = 1, .n = 0), WITH(.axis = 1, .n = -1)),
     "f32[2,3] i32[2,3]"},
    {"slices are given back to one", ET_OP_take_grad,
     PAIR(axis, WITH(.axis = 1, .n = 0), WITH(.axis = 1, .n = -1)), "f32[2,3] i32[3]"},
    {"from the axis where they lie", ET_OP_take_grad,
     PAIR(axis, WITH(.axis = 1, .n = 7), WITH(.axis = 2, .n = 7)), "f32[2,3] i32[3]"},
    {"a pad adds nothing at least", ET_OP_pad,
     PAIR(pad, WITH(.after = {0, 0}), WITH(.after = {0, -1})), "f32[2,3]"},
    {"before an axis too", ET_OP_pad,
     PAIR(pad, WITH(.before = {0, 0}), WITH(.before = {0, -1})), "f32[2,3]"},
    {"packed arrays do not begin before the pack", ET_OP_pack, (const int64_t[]){4, 0},
     (const int64_t[]){4, -1}, 2 * sizeof(int64_t), "f32[3]"},
    {"packed arrays do not reach beyond the pack", ET_OP_pack, (const int64_t[]){4, 1},
     (const int64_t[]){4, 2}, 2 * sizeof(int64_t), "f32[3]"},
    {"the form of a fused product is a known one", ET_OP_matmul_fused,
     PAIR(matmul_fused, WITH(.form = ET_EPILOGUE_SUM_B), WITH(.form = 99)),
     "f32[2,3] f32[3,4]"},
    {"no element may be dropped", ET_OP_dropout,
     PAIR(dropout, WITH(.p = 0), WITH(.p = -0.001)), "f32[2,3] i64[2]"},
    {"and not quite all", ET_OP_dropout, PAIR(dropout, WITH(.p = 0.999), WITH(.p = 1)),
     "f32[2,3] i64[2]"},
    {"filters are dilated, across too", ET_OP_conv2d,
     PAIR(conv2d, WITH(.stride = {1, 1}, .dilation = {1, 1}, .groups = 1),
          WITH(.stride = {1, 1}, .dilation = {1, 0}, .groups = 1)),
     "f32[1,2,4,4] f32[3,2,3,3]"},
    {"no axis of a constant is negative", ET_OP_fill,
     PAIR(shape, WITH(.dtype = ET_F32, .ndim = 2, .shape = {2, 0}),
          WITH(.dtype = ET_F32, .ndim = 2, .shape = {2, -1})),
     ""},
    {"an axis is permuted once, wherever it is named", ET_OP_permute,
     PAIR(permute, WITH(.ndim = 3, .axes = {2, 0, 1}),
          WITH(.ndim = 3, .axes = {2, 0, 2})),
     "f32[2,3,4]"},
    {"a slice has no negative length", ET_OP_slice,
     PAIR(slice, WITH(.size = {2, 0}, .step = {1, 1}),
          WITH(.size = {2, -1}, .step = {1, 1})),
     "f32[2,3]"},
    {"a frame has rows", ET_OP_image_batch,
     PAIR(image_batch, WITH(.shape = {1, 1}), WITH(.shape = {0, 1})),
     "u8[9,3,8,8] i32[2,8] f32[3,256]"},
    {"and columns", ET_OP_image_batch,
     PAIR(image_batch, WITH(.shape = {1, 1}), WITH(.shape = {1, 0})),
     "u8[9,3,8,8] i32[2,8] f32[3,256]"},
};

/* What OP says of operands IN. */
static et_status
infer(const struct et_op *op, const void *attr, size_t size, const struct et_desc *in,
      int n)
{
    struct et_desc out[MOST];
    int64_t offset;
    struct et_call call = {.op = op->id,
                           .n_in = n,
                           .n_out = op->n_out,
                           .attr = attr,
                           .attr_size = size,
                           .in = in,
                           .out = out};
    memset(out, 0, sizeof out);
    return op->infer(cx, &call, out, &offset);
}

/* A refusal is a sentence that begins with the operation. */
static bool
is_refusal(const struct et_op *op, et_status status)
{
    size_t n = strlen(op->name);
    const char *said = et_error_get(cx)->message;
    bool refused = status != ET_OK && strncmp(said, op->name, n) == 0 && said[n] == ':';
    et_error_clear(cx);
    return refused;
}

static void
check_pair(const struct pair *p)
{
    const struct et_op *op = et_op_get(p->op);
    struct et_desc in[MOST];
    int n = read_descs(p->in, in, MOST);
    et_status taken = infer(op, p->taken, p->size, in, n);
    if (taken != ET_OK)
        diag("refused: %s", et_error_get(cx)->message);
    et_error_clear(cx);
    ok(taken == ET_OK && is_refusal(op, infer(op, p->refused, p->size, in, n)),
       "%s: %s", op->name, p->says);
}

/* ---- operands ---- */

#define ATTR(type, ...)                                                                \
    &(const struct et_##type##_attr){__VA_ARGS__}, sizeof(struct et_##type##_attr)
#define CONV_PLAIN(...) ATTR(conv2d, .stride = {1, 1}, .dilation = {1, 1}, __VA_ARGS__)
#define CONV_FUSED                                                                     \
    ATTR(conv2d_fused, .conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1})
#define FUSED_TAKEN "f32[1,2,4,4] f32[3,2,3,3] f32[3] f32[3] f32[1,3,2,2]"
#define POOL_BACK                                                                      \
    ATTR(pool2d, .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1},               \
         .shape = {1, 2, 4, 4})
#define GELU_BACK ATTR(matmul_fused, .form = ET_EPILOGUE_GELU_GRAD)
#define LOSS      ATTR(cross_entropy, .ignore_index = -1)
#define ATTENDED(rows, result, sums)                                                   \
    rows " f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4] " result " " sums
#define BATCH_BACK(rows, scale, mean, var) rows " f32[2,3] " scale " " mean " " var
#define ROWS_BACK(rows, mean, rstd)        rows " f32[2,3] f32[3] " mean " " rstd

/* One is taken, and then one of its operands differs. */
static const struct change {
    const char *says;
    enum et_op_id op;
    const void *attr;
    size_t size;
    const char *taken, *refused;
} changes[] = {
    {"logits have a class", ET_OP_cross_entropy,
     ATTR(cross_entropy, .ignore_index = -1), "f32[2,1] i32[2]", "f32[2,0] i32[2]"},
    {"there are classes and samples", ET_OP_cross_entropy,
     ATTR(cross_entropy, .ignore_index = -1), "f32[2,3] i32[2]", "f32[3] i32[]"},
    {"a dense target is as the logits are", ET_OP_cross_entropy,
     ATTR(cross_entropy, .ignore_index = -1), "f32[2,3] f32[2,3]", "f32[2,3] f32[2,4]"},
    {"class weights are a number for each class", ET_OP_cross_entropy,
     ATTR(cross_entropy, .ignore_index = -1), "f32[2,3] i32[2] f32[3]",
     "f32[2,3] i32[2] f32[2]"},
    {"the two of a product are of one dtype", ET_OP_matmul, ATTR(matmul, 0),
     "f32[2,3] f32[3,4]", "f32[2,3] bf16[3,4]"},
    {"and its bias", ET_OP_matmul, ATTR(matmul, 0), "f32[2,3] f32[3,4] f32[4]",
     "f32[2,3] f32[3,4] bf16[4]"},
    {"a convolution's filters have its dtype", ET_OP_conv2d,
     ATTR(conv2d, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1),
     "f32[1,2,4,4] f32[2,2,3,3]", "f32[1,2,4,4] bf16[2,2,3,3]"},
    {"and its bias", ET_OP_conv2d,
     ATTR(conv2d, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1),
     "f32[1,2,4,4] f32[2,2,3,3] f32[2]", "f32[1,2,4,4] f32[2,2,3,3] bf16[2]"},
    {"an input has the channels of all groups together", ET_OP_conv2d,
     CONV_PLAIN(.groups = 2), "f32[1,4,4,4] f32[6,2,3,3]", "f32[1,5,4,4] f32[6,2,3,3]"},
    {"the filters divide into the groups", ET_OP_conv2d, CONV_PLAIN(.groups = 2),
     "f32[1,4,4,4] f32[6,2,3,3]", "f32[1,4,4,4] f32[5,2,3,3]"},
    {"the scale of a fused convolution has its dtype", ET_OP_conv2d_fused, CONV_FUSED,
     FUSED_TAKEN, "f32[1,2,4,4] f32[3,2,3,3] bf16[3] f32[3] f32[1,3,2,2]"},
    {"the shift of a fused convolution has its dtype", ET_OP_conv2d_fused, CONV_FUSED,
     FUSED_TAKEN, "f32[1,2,4,4] f32[3,2,3,3] f32[3] bf16[3] f32[1,3,2,2]"},
    {"the shift of a fused convolution has a number for each filter",
     ET_OP_conv2d_fused, CONV_FUSED, FUSED_TAKEN,
     "f32[1,2,4,4] f32[3,2,3,3] f32[3] f32[2] f32[1,3,2,2]"},
    {"the residual of a fused convolution has its dtype", ET_OP_conv2d_fused,
     CONV_FUSED, FUSED_TAKEN, "f32[1,2,4,4] f32[3,2,3,3] f32[3] f32[3] bf16[1,3,2,2]"},
    {"the bias of a transposed convolution is of the channels it makes",
     ET_OP_conv2d_grad_input, CONV_PLAIN(.groups = 1, .shape = {1, 2, 5, 5}),
     "f32[1,3,3,3] f32[3,2,3,3] f32[2]", "f32[1,3,3,3] f32[3,2,3,3] f32[3]"},
    {"the gradient of filters takes a gradient of the convolution's shape",
     ET_OP_conv2d_grad_weight, CONV_PLAIN(.groups = 1, .shape = {3, 2, 3, 3}),
     "f32[1,2,5,5] f32[1,3,3,3]", "f32[1,2,5,5] f32[1,3,3,4]"},
    {"the places of a max pool are i32", ET_OP_max_pool2d_grad, POOL_BACK,
     "f32[1,2,2,2] i32[1,2,2,2]", "f32[1,2,2,2] i64[1,2,2,2]"},
    {"a max pool has a place for each result", ET_OP_max_pool2d_grad, POOL_BACK,
     "f32[1,2,2,2] i32[1,2,2,2]", "f32[1,2,2,2] i32[1,2,2,1]"},
    {"a pool's gradient takes a gradient of the pool's shape", ET_OP_avg_pool2d_grad,
     POOL_BACK, "f32[1,2,2,2]", "f32[1,2,2,1]"},
    {"a picture that is pooled is at least a pixel wide", ET_OP_adaptive_avg_pool2d,
     ATTR(pool2d, .shape = {1, 2, 1, 1}), "f32[1,2,4,1]", "f32[1,2,4,0]"},
    {"arrays that are packed have one dtype", ET_OP_pack, (const int64_t[]){5, 0, 3},
     3 * sizeof(int64_t), "f32[3] f32[2]", "f32[3] f64[2]"},
    {"a pack has at least one array", ET_OP_pack, (const int64_t[]){5, 0, 3},
     3 * sizeof(int64_t), "f32[3] -", "- -"},
    {"a packed array overlaps none of the others", ET_OP_pack,
     (const int64_t[]){9, 4, 0, 3}, 4 * sizeof(int64_t), "f32[5] f32[3] f32[1]",
     "f32[5] f32[3] f32[2]"},
    {"the bounds of segments are a list", ET_OP_segment_sum_squares, NULL, 0,
     "f32[5] i32[3]", "f32[5] i32[3,1]"},
    {"an array of segments has rows", ET_OP_segment_sum_squares, NULL, 0,
     "f32[5] i32[3]", "f32[] i32[3]"},
    {"the gradient of take gives at most 6 axes", ET_OP_take_grad,
     ATTR(axis, .axis = 0, .n = 2), "f32[1,1,1,1,1,1] i32[1]",
     "f32[1,1,1,1,1,1] i32[]"},
    {"the gradient of take has the lengths of its index", ET_OP_take_grad,
     ATTR(axis, .axis = 1, .n = 7), "f32[2,3,5] i32[3,5]", "f32[2,3,5] i32[3,4]"},
    {"batch axes of a product are of equal length", ET_OP_matmul, ATTR(matmul, 0),
     "f32[2,3,4,3] f32[2,3,3,6]", "f32[2,3,4,3] f32[2,4,3,6]"},
    {"both operands of a product have the same number of batch axes", ET_OP_matmul,
     ATTR(matmul, 0), "f32[2,3,4,3] f32[2,3,3,6]", "f32[2,3,4,3] f32[2,3,6]"},
    {"a product with gelu's gradient has no bias", ET_OP_matmul_fused, GELU_BACK,
     "f32[2,3] f32[3,4] - f32[2,4]", "f32[2,3] f32[3,4] f32[4] f32[2,4]"},
    {"gelu's operand has the product's dtype", ET_OP_matmul_fused, GELU_BACK,
     "f32[2,3] f32[3,4] - f32[2,4]", "f32[2,3] f32[3,4] - bf16[2,4]"},
    {"gelu's operand has the product's shape", ET_OP_matmul_fused, GELU_BACK,
     "f32[2,3] f32[3,4] - f32[2,4]", "f32[2,3] f32[3,4] - f32[2,3]"},
    {"a product with gelu takes no operand of gelu", ET_OP_matmul_fused,
     ATTR(matmul_fused, .form = ET_EPILOGUE_GELU), "f32[2,3] f32[3,4] f32[4]",
     "f32[2,3] f32[3,4] f32[4] f32[2,4]"},
    {"the gradient of a loss has a number for each position", ET_OP_cross_entropy_grad,
     LOSS, "f32[2] f32[2,3] i32[2] f32[2]", "f32[3] f32[2,3] i32[2] f32[2]"},
    {"the loss's gradient takes a log-sum for each position", ET_OP_cross_entropy_grad,
     LOSS, "f32[2] f32[2,3] i32[2] f32[2]", "f32[2] f32[2,3] i32[2] f32[3]"},
    {"class weights have a number for each class", ET_OP_cross_entropy_grad, LOSS,
     "f32[2] f32[2,3] i32[2] f32[2] f32[3]", "f32[2] f32[2,3] i32[2] f32[2] f32[2]"},
    {"the gradient of attention has the result's shape", ET_OP_sdpa_grad,
     ATTR(sdpa, .scale = 1), ATTENDED("f32[1,2,3,4]", "f32[1,2,3,4]", "f32[1,2,3]"),
     ATTENDED("f32[1,2,5,4]", "f32[1,2,3,4]", "f32[1,2,3]")},
    {"attention's gradient takes the result of the queries' shape", ET_OP_sdpa_grad,
     ATTR(sdpa, .scale = 1), ATTENDED("f32[1,2,3,4]", "f32[1,2,3,4]", "f32[1,2,3]"),
     ATTENDED("f32[1,2,3,4]", "f32[1,2,5,4]", "f32[1,2,3]")},
    {"attention's gradient takes a sum for each row", ET_OP_sdpa_grad,
     ATTR(sdpa, .scale = 1), ATTENDED("f32[1,2,3,4]", "f32[1,2,3,4]", "f32[1,2,3]"),
     ATTENDED("f32[1,2,3,4]", "f32[1,2,3,4]", "f32[1,2,5]")},
    {"keys are of the queries' dtype", ET_OP_sdpa, ATTR(sdpa, .scale = 1),
     "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4]",
     "f32[1,2,3,4] bf16[1,2,5,4] f32[1,2,5,4]"},
    {"so are values", ET_OP_sdpa, ATTR(sdpa, .scale = 1),
     "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4]",
     "f32[1,2,3,4] f32[1,2,5,4] bf16[1,2,5,4]"},
    {"a mask is for each head, and for each query or for all", ET_OP_sdpa,
     ATTR(sdpa, .scale = 1), "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4] f32[1,2,1,5]",
     "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4] f32[1,1,1,5]"},
    {"what is joined is of one dtype", ET_OP_concat, ATTR(axis, .axis = 0),
     "f32[2] f32[3]", "f32[2] f64[3]"},
    {"and of as many axes", ET_OP_concat, ATTR(axis, .axis = 0), "f32[2] f32[3]",
     "f32[2] f32[3,1]"},
    {"what ranks add up is f32", ET_OP_all_reduce, NULL, 0, "f32[2]", "bf16[2]"},
    {"or f64", ET_OP_all_reduce, NULL, 0, "f64[2]", "i64[2]"},
    {"dense", ET_OP_all_reduce, NULL, 0, "f32[2,3]@1,2", "f32[2,3]@1,3"},
    {"and weighed in f32", ET_OP_all_reduce, NULL, 0, "f64[2] f32[1]", "f64[2] f64[1]"},
    {"a condition is a byte or a float", ET_OP_where, NULL, 0, "u8[2] f32[2] f32[2]",
     "i64[2] f32[2] f32[2]"},
    {"what it chooses from is of one dtype", ET_OP_where, NULL, 0,
     "u8[2] f32[2] f32[2]", "u8[2] f32[2] f64[2]"},
    {"a condition broadcasts as the others do", ET_OP_where, NULL, 0,
     "u8[3,1] f32[2] f32[]", "u8[3,1] f32[2] f32[3]"},
    {"slices are taken to at most 6 axes", ET_OP_take, ATTR(axis, .axis = 0),
     "f32[2,1,1,1] i32[1,1,1]", "f32[2,1,1,1] i32[1,1,1,1]"},
    {"a batch norm has two values a channel", ET_OP_batch_norm, ATTR(norm, .eps = 1),
     "f32[2,3]", "f32[1,3]"},
    {"and images of two or more axes", ET_OP_batch_norm, ATTR(norm, .eps = 1),
     "f32[2,3]", "f32[6]"},
    {"a batch norm's shift has a number for each channel", ET_OP_batch_norm,
     ATTR(norm, .eps = 1), "f32[2,3] - f32[3]", "f32[2,3] - f32[2]"},
    {"a batch norm's residual has the input's shape", ET_OP_batch_norm,
     ATTR(norm, .eps = 1), "f32[2,3] - - f32[2,3]", "f32[2,3] - - f32[3]"},
    {"a batch norm refuses a batch without samples", ET_OP_batch_norm,
     ATTR(norm, .eps = 1), "f32[2,3]", "f32[0,3]"},
    {"the gradient of a batch norm has the result's shape", ET_OP_batch_norm_grad,
     ATTR(norm, 0), BATCH_BACK("f32[2,3]", "f32[3]", "f32[3]", "f32[3]"),
     BATCH_BACK("f32[3,3]", "f32[3]", "f32[3]", "f32[3]")},
    {"a batch norm's gradient takes a scale for each channel", ET_OP_batch_norm_grad,
     ATTR(norm, 0), BATCH_BACK("f32[2,3]", "f32[3]", "f32[3]", "f32[3]"),
     BATCH_BACK("f32[2,3]", "f32[2]", "f32[3]", "f32[3]")},
    {"a batch norm's gradient takes a mean for each channel", ET_OP_batch_norm_grad,
     ATTR(norm, 0), BATCH_BACK("f32[2,3]", "f32[3]", "f32[3]", "f32[3]"),
     BATCH_BACK("f32[2,3]", "f32[3]", "f32[2]", "f32[3]")},
    {"a batch norm's gradient takes a variance for each channel", ET_OP_batch_norm_grad,
     ATTR(norm, 0), BATCH_BACK("f32[2,3]", "f32[3]", "f32[3]", "f32[3]"),
     BATCH_BACK("f32[2,3]", "f32[3]", "f32[3]", "f32[2]")},
    {"a layer norm of f32 takes a residual of bf16, but not of f64", ET_OP_layer_norm,
     ATTR(norm, .axes = 1), "f32[2,3] - - bf16[2,3]", "f32[2,3] - - f64[2,3]"},
    {"the gradient of a layer norm has the result's shape", ET_OP_layer_norm_grad,
     ATTR(norm, .axes = 1), ROWS_BACK("f32[2,3]", "f32[2]", "f32[2]"),
     ROWS_BACK("f32[3,3]", "f32[2]", "f32[2]")},
    {"a layer norm's gradient takes a mean for each row", ET_OP_layer_norm_grad,
     ATTR(norm, .axes = 1), ROWS_BACK("f32[2,3]", "f32[2]", "f32[2]"),
     ROWS_BACK("f32[2,3]", "f32[3]", "f32[2]")},
    {"a layer norm's gradient takes a deviation for each row", ET_OP_layer_norm_grad,
     ATTR(norm, .axes = 1), ROWS_BACK("f32[2,3]", "f32[2]", "f32[2]"),
     ROWS_BACK("f32[2,3]", "f32[2]", "f32[3]")},
    {"the gradient of a group norm has the result's shape", ET_OP_group_norm_grad,
     ATTR(norm, .groups = 1), ROWS_BACK("f32[2,3]", "f32[2,1]", "f32[2,1]"),
     ROWS_BACK("f32[3,3]", "f32[2,1]", "f32[2,1]")},
    {"a group norm's gradient takes a mean for each group", ET_OP_group_norm_grad,
     ATTR(norm, .groups = 1), ROWS_BACK("f32[2,3]", "f32[2,1]", "f32[2,1]"),
     ROWS_BACK("f32[2,3]", "f32[2,3]", "f32[2,1]")},
    {"a group norm's gradient takes a deviation for each group", ET_OP_group_norm_grad,
     ATTR(norm, .groups = 1), ROWS_BACK("f32[2,3]", "f32[2,1]", "f32[2,1]"),
     ROWS_BACK("f32[2,3]", "f32[2,1]", "f32[2,3]")},
    {"the operands of softmax's gradient have one dtype", ET_OP_softmax_grad,
     ATTR(axis, .axis = 1), "f32[2,3] f32[2,3]", "f32[2,3] bf16[2,3]"},
    {"the operands of softmax's gradient have one shape", ET_OP_softmax_grad,
     ATTR(axis, .axis = 1), "f32[2,3] f32[2,3]", "f32[2,3] f32[2,1]"},
    {"a fused program has as many operands as it names", ET_OP_fused,
     ATTR(fused, .n_in = 1, .n_out = 1), "f32[2]", "f32[2] f32[2]"},
    {"a layer norm's scale is of its axes", ET_OP_layer_norm, ATTR(norm, .axes = 1),
     "f32[2,3] f32[3]", "f32[2,3] f32[2]"},
    {"so is its shift", ET_OP_layer_norm, ATTR(norm, .axes = 1),
     "f32[2,3] f32[3] f32[3]", "f32[2,3] f32[3] f32[2]"},
    {"a group norm's are of channels", ET_OP_group_norm, ATTR(norm, .groups = 2),
     "f32[2,4,3] f32[4] f32[4]", "f32[2,4,3] f32[4] f32[3]"},
    {"topk takes floats", ET_OP_topk, ATTR(axis, .n = 1), "f32[3]", "i32[3]"},
    {"topk takes at least one axis", ET_OP_topk, ATTR(axis, .n = 1), "f32[3]", "f32[]"},
    {"argmax takes floats", ET_OP_argmax, ATTR(axis, .axis = 0), "f32[3]", "i32[3]"},
    {"sum takes floats", ET_OP_sum, ATTR(reduce, .axes = 1), "f32[3]", "i32[3]"},
    {"sum_squares takes floats", ET_OP_sum_squares, NULL, 0, "f32[3]", "i32[3]"},
    {"segment_sum_squares takes floats", ET_OP_segment_sum_squares, NULL, 0,
     "f32[5] i32[3]", "i32[5] i32[3]"},
    {"the axis along which slices are taken exists", ET_OP_take, ATTR(axis, .axis = 1),
     "f32[2,3] i32[4]", "f32[2] i32[4]"},
    {"the axis along which elements are gathered exists", ET_OP_gather,
     ATTR(axis, .axis = 1), "f32[2,3] i32[2,4]", "f32[2] i32[2]"},
    {"scatter_add takes floats", ET_OP_scatter_add, ATTR(axis, .axis = 1, .n = 3),
     "f32[2,4] i32[2,4]", "i32[2,4] i32[2,4]"},
    {"the gradient of take is of floats", ET_OP_take_grad,
     ATTR(axis, .axis = 0, .n = 3), "f32[2] i32[2]", "i32[2] i32[2]"},
    {"queries have a batch, heads, rows and columns", ET_OP_sdpa,
     ATTR(sdpa, .scale = 1), "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4]",
     "f32[2,3,4] f32[1,2,5,4] f32[1,2,5,4]"},
    {"queries are floats", ET_OP_sdpa, ATTR(sdpa, .scale = 1),
     "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4]",
     "i32[1,2,3,4] i32[1,2,5,4] i32[1,2,5,4]"},
    {"the mask of attention's gradient fits the scores", ET_OP_sdpa_grad,
     ATTR(sdpa, .scale = 1),
     ATTENDED("f32[1,2,3,4]", "f32[1,2,3,4]", "f32[1,2,3] f32[1,2,3,5]"),
     ATTENDED("f32[1,2,3,4]", "f32[1,2,3,4]", "f32[1,2,3] f32[1,2,3,4]")},
    {"a generator has a key and a place", ET_OP_dropout, ATTR(dropout, .p = .5),
     "f32[2] i64[2]", "f32[2] i64[3]"},
    {"raw images are bytes", ET_OP_image_batch, ATTR(image_batch, .shape = {2, 2}),
     "u8[9,3,8,8] i32[2,8] f32[3,256]", "i32[9,3,8,8] i32[2,8] f32[3,256]"},
    {"a generator of numbers has a key and a place", ET_OP_random,
     ATTR(random, .ndim = 1, .shape = {4}), "i64[2]", "i64[3]"},
    {"a generator has whole numbers", ET_OP_dropout, ATTR(dropout, .p = .5),
     "f32[2] i64[2]", "f32[2] f32[2]"},
    {"dropout takes floats", ET_OP_dropout, ATTR(dropout, .p = .5), "f32[2] i64[2]",
     "i32[2] i64[2]"},
    {"the table of raw images is of floats", ET_OP_image_batch,
     ATTR(image_batch, .shape = {2, 2}), "u8[9,3,8,8] i32[2,8] f32[3,256]",
     "u8[9,3,8,8] i32[2,8] i32[3,256]"},
    {"the row of an augmented image has at least 38 numbers", ET_OP_image_augment,
     ATTR(image_batch, .shape = {2, 2}), "u8[9,3,8,8] i32[2,38] f32[3,256]",
     "u8[9,3,8,8] i32[2,30] f32[3,256]"},
    {"an augmented image has at most twelve changes", ET_OP_image_augment,
     ATTR(image_batch, .shape = {2, 2}), "u8[9,3,8,8] i32[2,134] f32[3,256]",
     "u8[9,3,8,8] i32[2,142] f32[3,256]"},
    {"a batch norm is of four axes at most", ET_OP_batch_norm, ATTR(norm, .eps = 1e-5),
     "f32[2,3,4,5]", "f32[2,3,4,5,6]"},
    {"and of two at least", ET_OP_batch_norm, ATTR(norm, .eps = 1e-5), "f32[2,3]",
     "f32[2]"},
    {"a transposed convolution has a bias for each of its channels",
     ET_OP_conv2d_grad_input,
     ATTR(conv2d, .stride = {1, 1}, .dilation = {1, 1}, .groups = 2,
          .shape = {1, 4, 4, 4}),
     "f32[1,6,2,2] f32[6,2,3,3] f32[4]", "f32[1,6,2,2] f32[6,2,3,3] f32[2]"},
    {"augmented pictures have at most four channels", ET_OP_image_augment,
     ATTR(image_batch, .shape = {2, 2}), "u8[9,4,8,8] i32[2,38] f32[4,256]",
     "u8[9,5,8,8] i32[2,38] f32[5,256]"},
};

static void
check_change(const struct change *c)
{
    const struct et_op *op = et_op_get(c->op);
    struct et_desc in[MOST];
    int n = read_descs(c->taken, in, MOST);
    et_status taken = infer(op, c->attr, c->size, in, n);
    if (taken != ET_OK)
        diag("refused: %s", et_error_get(cx)->message);
    et_error_clear(cx);
    n = read_descs(c->refused, in, MOST);
    ok(taken == ET_OK && is_refusal(op, infer(op, c->attr, c->size, in, n)), "%s: %s",
       op->name, c->says);
}

/* A fused program has as many steps, operands and results as there is room for. */
static void
check_programs(void)
{
    const struct et_op *op = et_op_get(ET_OP_fused);
    for (int k = 0; k < 6; k++) {
        int more = k % 2;
        struct et_fused_attr o = {.n_in = 1, .n_out = 1, .n_steps = 2};
        struct et_desc in[ET_FUSED_MAX_IN + 1];
        if (k / 2 == 0)
            o.n_steps = ET_FUSED_MAX_STEPS + more;
        else if (k / 2 == 1)
            o.n_in = ET_FUSED_MAX_IN + more;
        else
            o.n_out = ET_FUSED_MAX_OUT + more;
        for (int i = 0; i < o.n_steps && i < ET_FUSED_MAX_STEPS; i++)
            o.step[i] = (struct et_fused_step){.op = ET_OP_neg, .n_src = 1};
        for (int i = 0; i < o.n_in; i++)
            et_desc_init(&in[i], ET_F32, 1, (const int64_t[]){3}, ET_ROW_MAJOR);
        et_status status = infer(op, &o, sizeof o, in, o.n_in);
        ok(more ? is_refusal(op, status) : status == ET_OK,
           "fused: %d steps, %d operands, %d results: %s", o.n_steps, o.n_in, o.n_out,
           more ? "refused" : "taken");
        et_error_clear(cx);
    }
}

/* Every pair of shapes of up to two axes broadcasts as NumPy says, or is refused. */
static void
check_broadcasting(void)
{
    static const int64_t lengths[] = {0, 1, 2, 3};
    const struct et_op *add = et_op_get(ET_OP_add);
    int wrong = 0;
    for (int k = 0; k < 256; k++) {
        const int64_t a[] = {lengths[k & 3], lengths[k >> 2 & 3]},
                      b[] = {lengths[k >> 4 & 3], lengths[k >> 6]};
        struct et_desc in[2], out;
        int64_t offset;
        bool fits = true;
        et_desc_init(&in[0], ET_F32, 2, a, ET_ROW_MAJOR);
        et_desc_init(&in[1], ET_F32, 2, b, ET_ROW_MAJOR);
        for (int i = 0; i < 2; i++)
            fits = fits && (a[i] == b[i] || a[i] == 1 || b[i] == 1);
        const struct et_call call = {
            .op = ET_OP_add, .n_in = 2, .n_out = 1, .in = in, .out = &out};
        bool taken = add->infer(cx, &call, &out, &offset) == ET_OK;
        for (int i = 0; i < 2 && taken; i++)
            fits = fits && out.shape[i] == (a[i] == 1 ? b[i] : a[i]);
        wrong += taken != fits;
        et_error_clear(cx);
    }
    is_int(wrong, 0, "256 pairs of shapes broadcast as they should, or are refused");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check_pair(&pairs[i]);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        check_change(&changes[i]);
    check_programs();
    check_broadcasting();
    et_ctx_free(&cx);
    return done();
}
