/* SPDX-License-Identifier: Apache-2.0 */
/* What the results of every op look like, what it says about operands that do not fit,
 * and what it counts as its work. One row per case; each row of ops.def has one. */
#include "etude/ctx.h"
#include "etude/op.h"
#include "t/ops/text.h"
#include "t/tap.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 16 }; /* operands or results of a case */

struct test {
    const char *says;
    enum et_op_id op;
    const void *attr;
    size_t attr_size;
    const char *in;   /* operands, see text.h */
    const char *want; /* results, or "!status: sentence" */
    int64_t offset;   /* views: first element */
    int64_t flops;    /* 0: not checked */
};

#define ATTR(type, ...)                                                                \
    &(const struct et_##type##_attr){__VA_ARGS__}, sizeof(struct et_##type##_attr)
#define NO_ATTR NULL, 0
#define CONV(...)                                                                      \
    ATTR(conv2d, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1, __VA_ARGS__)
#define POOL(...) ATTR(pool2d, .dilation = {1, 1}, __VA_ARGS__)
#define UNARY(op)                                                                      \
    {                                                                                  \
#op " keeps shape and order", ET_OP_##op, NO_ATTR, "f32[2,3,4,5]cl",           \
            "f32[2,3,4,5]cl", .flops = 120                                             \
    }
#define GRAD2(op)                                                                      \
    {                                                                                  \
#op " takes two of one shape", ET_OP_##op, NO_ATTR, "f64[4,3] f64[4,3]",       \
            "f64[4,3]", .flops = 12                                                    \
    }

static const int64_t pack_three[] = {24, 0, 8, 12}; /* et_pack_attr: total, offsets */
static const int64_t pack_back[] = {24, 12, 8, 0};

static const struct et_fused_attr fused_two = {
    .n_in = 2,
    .n_out = 2,
    .n_steps = 2,
    .out = {3, 2},
    .step = {{.op = ET_OP_add, .src = {0, 1}, .n_src = 2},
             {.op = ET_OP_less, .src = {2, 0}, .n_src = 2}},
};

/* Rows leave out the numbers that they do not check. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct test tests[] = {
    /* leaves and effects */
    {"a leaf takes a value of its shape", ET_OP_assign, NO_ATTR, "f32[2,3] f32[2,3]",
     ""},
    {"a leaf does not take another dtype", ET_OP_assign, NO_ATTR, "f32[2] f64[2]",
     "!dtype mismatch: assign: value has dtype f64; it must have f32"},
    {"fill has the shape asked for", ET_OP_fill,
     ATTR(shape, .dtype = ET_F32, .ndim = 2, .shape = {2, 3}), "", "f32[2,3]"},
    {"fill refuses a length below 0", ET_OP_fill,
     ATTR(shape, .dtype = ET_F32, .ndim = 1, .shape = {-2}), "",
     "!shape mismatch: fill: axis 0 has length -2"},
    {"iota counts along one axis", ET_OP_iota,
     ATTR(shape, .dtype = ET_I32, .ndim = 1, .shape = {7}), "", "i32[7]"},

    /* views */
    {"a row-major array is flattened in place", ET_OP_reshape,
     ATTR(shape, .ndim = 1, .shape = {24}), "f32[2,3,4]", "f32[24]@1"},
    {"axes of a transposed array are split in place", ET_OP_reshape,
     ATTR(shape, .ndim = 3, .shape = {2, 2, 3}), "f32[4,3]@1,4", "f32[2,2,3]@2,1,4"},
    {"a transposed array is not flattened in place", ET_OP_reshape,
     ATTR(shape, .ndim = 1, .shape = {12}), "f32[4,3]@1,4",
     "!invalid value: reshape: f32[12] is not a view of f32[4,3] as that lies in "
     "memory"},
    {"planes of a channels-last image are flattened in place", ET_OP_reshape,
     ATTR(shape, .ndim = 3, .shape = {2, 3, 20}), "f32[2,3,4,5]cl",
     "f32[2,3,20]@60,1,3"},
    {"a channels-last image of 1x1 is flattened in place", ET_OP_reshape,
     ATTR(shape, .ndim = 2, .shape = {2, 3}), "f32[2,3,1,1]cl", "f32[2,3]"},
    {"a repeated axis is split in place", ET_OP_reshape,
     ATTR(shape, .ndim = 3, .shape = {3, 2, 2}), "f32[3,4]@1,0", "f32[3,2,2]@1,0,0"},
    {"a reshape keeps the number of elements", ET_OP_reshape,
     ATTR(shape, .ndim = 1, .shape = {5}), "f32[2,3]",
     "!shape mismatch: reshape: f32[2,3] has 6 elements and f32[5] has 5"},
    {"an array has at most 6 axes", ET_OP_reshape, ATTR(shape, .ndim = 7), "f32[2]",
     "!shape mismatch: reshape: 7 axes; an array has at most 6"},
    {"permuted axes take their strides along", ET_OP_permute,
     ATTR(permute, .ndim = 3, .axes = {2, 0, 1}), "f32[2,3,4]", "f32[4,2,3]@1,12,4"},
    {"an axis is permuted once", ET_OP_permute,
     ATTR(permute, .ndim = 2, .axes = {1, 1}), "f32[2,3]",
     "!invalid value: permute: axis 1 is named twice"},
    {"an expanded axis has stride 0", ET_OP_expand,
     ATTR(shape, .ndim = 3, .shape = {4, 2, 3}), "f32[2,1]", "f32[4,2,3]@0,1,0"},
    {"only length 1 expands", ET_OP_expand, ATTR(shape, .ndim = 1, .shape = {4}),
     "f32[2]", "!shape mismatch: expand: f32[2] does not expand to f32[4]"},
    {"a slice begins inside its operand", ET_OP_slice,
     ATTR(slice, .start = {1, 2}, .size = {2, 3}, .step = {1, 2}), "f32[3,7]",
     "f32[2,3]@7,2", .offset = 9},
    {"a slice stays inside its operand", ET_OP_slice,
     ATTR(slice, .start = {1}, .size = {3}, .step = {2}), "f32[5]",
     "!shape mismatch: slice: 3 elements from 1 by 2 are outside axis 0 of f32[5]"},
    {"detach changes nothing", ET_OP_detach, NO_ATTR, "f32[2,3]@1,2", "f32[2,3]@1,2"},

/* element-wise */
#define ET_OP(name, number)
#define ET_OP_UNARY(name, number) UNARY(name),
#define ET_OP_BINARY(name, number)
#include "etude/ops.def"
#undef ET_OP
    {"the result of a view with gaps is row-major", ET_OP_exp, NO_ATTR, "f32[2,3]@1,7",
     "f32[2,3]"},
    {"a transposed operand gives a transposed result", ET_OP_exp, NO_ATTR,
     "f32[2,3]@1,2", "f32[2,3]@1,2"},
    {"functions are of floats", ET_OP_exp, NO_ATTR, "i32[2]",
     "!dtype mismatch: exp: operand has dtype i32; it must be a float"},
    {"add_scalar keeps shape", ET_OP_add_scalar, ATTR(scalar, .a = 1), "bf16[3]",
     "bf16[3]"},
    {"mul_scalar keeps shape", ET_OP_mul_scalar, ATTR(scalar, .a = 1), "f32[]",
     "f32[]"},
    {"pow_scalar keeps shape", ET_OP_pow_scalar, ATTR(scalar, .a = 1), "f32[0]",
     "f32[0]"},
    {"clamp keeps shape", ET_OP_clamp, ATTR(scalar, .a = 1, .b = 2), "f32[3]",
     "f32[3]"},
    {"the bounds of clamp are in order", ET_OP_clamp, ATTR(scalar, .a = 2, .b = 1),
     "f32[3]", "!invalid value: clamp: the lower bound 2 is above the upper bound 1"},
    {"cast gives the dtype", ET_OP_cast, ATTR(cast, .dtype = ET_BF16), "f32[2,3]@1,2",
     "bf16[2,3]@1,2"},
    {"cast knows its dtypes", ET_OP_cast, ATTR(cast, .dtype = 99), "f32[2]",
     "!dtype mismatch: cast: there is no dtype 99"},
    {"operands broadcast from the last axis", ET_OP_add, NO_ATTR, "f32[3,1] f32[2,1,4]",
     "f32[2,3,4]", .flops = 24},
    {"the operand of full shape gives the order", ET_OP_mul, NO_ATTR,
     "f32[1,3,1,1] f32[2,3,4,5]cl", "f32[2,3,4,5]cl"},
    {"a repeated operand does not give the order", ET_OP_mul, NO_ATTR,
     "f32[2,3]@0,0 f32[2,3]@1,2", "f32[2,3]@1,2"},
    {"shapes that do not broadcast are named", ET_OP_sub, NO_ATTR, "f32[2,3] f32[2]",
     "!shape mismatch: sub: f32[2,3] and f32[2] do not broadcast"},
    {"a third operand that does not broadcast is named beside the shape of the others",
     ET_OP_where, NO_ATTR, "u8[2,1] f32[3] f32[4]",
     "!shape mismatch: where: u8[2,3] and f32[4] do not broadcast"},
    {"of two operands of full shape the first gives the order", ET_OP_mul, NO_ATTR,
     "f32[2,3,4,5]cl f32[2,3,4,5]", "f32[2,3,4,5]cl"},
    {"dtypes that differ are named", ET_OP_add, NO_ATTR, "f32[2] bf16[2]",
     "!dtype mismatch: add: operands have dtypes f32 and bf16; cast one"},
    {"whole numbers are subtracted", ET_OP_sub, NO_ATTR, "i32[2] i32[]", "i32[2]"},
    {"whole numbers are not divided", ET_OP_div, NO_ATTR, "i32[2] i32[2]",
     "!dtype mismatch: div: operand has dtype i32; it must be a float"},
    {"div broadcasts", ET_OP_div, NO_ATTR, "f32[2,1] f32[3]", "f32[2,3]"},
    {"maximum broadcasts", ET_OP_maximum, NO_ATTR, "i32[2,1] i32[3]", "i32[2,3]"},
    {"minimum broadcasts", ET_OP_minimum, NO_ATTR, "f32[2,1] f32[3]", "f32[2,3]"},
    {"equal gives bytes", ET_OP_equal, NO_ATTR, "i32[2,1] i32[3]", "u8[2,3]"},
    {"less gives bytes", ET_OP_less, NO_ATTR, "f32[3] f32[]", "u8[3]"},
    {"less_equal gives bytes", ET_OP_less_equal, NO_ATTR, "f32[3] f32[3]", "u8[3]"},
    {"where broadcasts all three", ET_OP_where, NO_ATTR, "u8[2,1] f32[3] f32[]",
     "f32[2,3]"},
    {"the condition of where may be a float", ET_OP_where, NO_ATTR,
     "f32[] f32[2] f32[2]", "f32[2]"},
    {"the condition of where is not a count", ET_OP_where, NO_ATTR,
     "i32[2] f32[2] f32[2]",
     "!dtype mismatch: where: condition has dtype i32; it must be a float"},
    GRAD2(relu_grad),
    GRAD2(gelu_grad),
    GRAD2(gelu_tanh_grad),
    GRAD2(silu_grad),
    GRAD2(sigmoid_grad),
    GRAD2(tanh_grad),
    {"a fused program has the results of its steps", ET_OP_fused, &fused_two,
     sizeof fused_two, "f32[2,3] f32[3]", "u8[2,3] f32[2,3]", .flops = 12},

    /* reductions */
    {"sum drops the axes of its mask", ET_OP_sum, ATTR(reduce, .axes = 5), "f32[2,3,4]",
     "f32[3]", .flops = 24},
    {"kept axes have length 1 and the operand's order", ET_OP_sum,
     ATTR(reduce, .axes = 1, .keepdim = 1), "f32[2,3,4,5]cl", "f32[1,3,4,5]cl"},
    {"a mask is of axes there are", ET_OP_sum, ATTR(reduce, .axes = 4), "f32[2,3]",
     "!invalid value: sum: axis mask 0x4 of an array of 2 axes"},
    {"amax drops all axes", ET_OP_amax, ATTR(reduce, .axes = 3), "f32[2,3]", "f32[]"},
    {"amin drops one axis", ET_OP_amin, ATTR(reduce, .axes = 2), "f32[2,3]", "f32[2]"},
    {"squares of half floats add up in f32", ET_OP_sum_squares, NO_ATTR, "bf16[2,3]",
     "f32[]"},
    {"stretches of rows have a sum each", ET_OP_segment_sum_squares, NO_ATTR,
     "f16[5,2,3] i32[4]", "f32[3]"},
    {"a table has its end", ET_OP_segment_sum_squares, NO_ATTR, "f32[5] i32[0]",
     "!shape mismatch: segment_sum_squares: a table of 0 rows says of no stretch"},
    {"a table counts rows", ET_OP_segment_sum_squares, NO_ATTR, "f32[5] f32[2]",
     "!dtype mismatch: segment_sum_squares: table has dtype f32; it must have i32"},
    {"argmax drops its axis", ET_OP_argmax, ATTR(axis, .axis = 1), "f32[2,3,4]",
     "i32[2,4]"},
    {"argmax needs its axis", ET_OP_argmax, ATTR(axis, .axis = 2), "f32[2,3]",
     "!invalid value: argmax: there is no axis 2 in f32[2,3]"},
    {"topk gives values and places", ET_OP_topk, ATTR(axis, .n = 2), "f32[3,5]",
     "f32[3,2] i32[3,2]"},
    {"sort gives values and places", ET_OP_sort, ATTR(axis, .axis = 1), "f32[2,3,4]",
     "f32[2,3,4] i32[2,3,4]", .flops = 48},
    {"sort needs its axis", ET_OP_sort, ATTR(axis, .axis = 3), "f32[2,3,4]",
     "!invalid value: sort: there is no axis 3 in f32[2,3,4]"},
    {"whole numbers are not sorted", ET_OP_sort, ATTR(axis, .axis = 0), "i32[2]",
     "!dtype mismatch: sort: operand has dtype i32; it must be a float"},
    {"cumsum keeps the shape", ET_OP_cumsum, ATTR(axis, .axis = 3), "f32[2,3,4,5]cl",
     "f32[2,3,4,5]", .flops = 120},
    {"a number has no axis to sum along", ET_OP_cumsum, ATTR(axis, .axis = 0), "f32[]",
     "!invalid value: cumsum: there is no axis 0 in f32[]"},
    {"topk does not give more than there are", ET_OP_topk, ATTR(axis, .n = 6),
     "f32[3,5]", "!invalid value: topk: the 6 largest of 5 elements"},

    /* linear algebra */
    {"a batch times one matrix", ET_OP_matmul, ATTR(matmul, .trans_b = 1),
     "f32[5,2,3] f32[4,3] f32[4]", "f32[5,2,4]", .flops = 240},
    {"a batch times a batch", ET_OP_matmul, ATTR(matmul, .trans_a = 1),
     "f32[5,3,2] f32[5,3,4]", "f32[5,2,4]", .flops = 240},
    {"the inner lengths are equal", ET_OP_matmul, ATTR(matmul, .trans_b = 1),
     "f32[2,3] f32[3,4]",
     "!shape mismatch: matmul: f32[2,3] times f32[3,4]^T does not fit"},
    {"batches are equal", ET_OP_matmul, ATTR(matmul, 0), "f32[2,3,4] f32[3,4,5]",
     "!shape mismatch: matmul: f32[2,3,4] times f32[3,4,5] does not fit"},
    {"a bias is as long as a row", ET_OP_matmul, ATTR(matmul, 0),
     "f32[2,3] f32[3,4] f32[3]",
     "!shape mismatch: matmul: bias is f32[3]; it must be f32[4]"},
    {"a product and gelu of it", ET_OP_matmul_fused,
     ATTR(matmul_fused, .trans_b = 1, .form = ET_EPILOGUE_GELU),
     "f32[5,2,3] f32[4,3] f32[4]", "f32[5,2,4] f32[5,2,4]", .flops = 240},
    {"a gradient through gelu, and its sums", ET_OP_matmul_fused,
     ATTR(matmul_fused, .form = ET_EPILOGUE_GELU_GRAD),
     "f32[5,2,3] f32[3,4] - f32[5,2,4]", "f32[5,2,4] f32[4]", .flops = 240},
    {"that needs what gelu was taken of", ET_OP_matmul_fused,
     ATTR(matmul_fused, .form = ET_EPILOGUE_GELU_GRAD), "f32[2,3] f32[3,4]",
     "!invalid value: matmul_fused: form 1 needs pre"},
    {"a product, and the sums of a", ET_OP_matmul_fused,
     ATTR(matmul_fused, .trans_a = 1, .form = ET_EPILOGUE_SUM_A), "f32[3,2] f32[3,4]",
     "f32[2,4] f32[2]", .flops = 48},
    {"a product, and the sums of b", ET_OP_matmul_fused,
     ATTR(matmul_fused, .trans_a = 1, .form = ET_EPILOGUE_SUM_B), "f32[3,2] f32[3,4]",
     "f32[2,4] f32[4]", .flops = 48},
    {"sums are of one matrix", ET_OP_matmul_fused,
     ATTR(matmul_fused, .form = ET_EPILOGUE_SUM_B), "f32[5,2,3] f32[3,4]",
     "!shape mismatch: matmul_fused: a is f32[5,2,3]; it must have 2 axes"},
    {"a strided, padded, grouped convolution", ET_OP_conv2d,
     ATTR(conv2d, .stride = {2, 1}, .pad = {1, 2}, .dilation = {1, 2}, .groups = 2),
     "f32[2,4,7,8]cl f32[6,2,3,3]cl f32[6]", "f32[2,6,4,8]cl", .flops = 13824},
    {"filters are not larger than the image", ET_OP_conv2d, CONV(.pad = {0}),
     "f32[2,3,4,4] f32[8,3,5,5]",
     "!shape mismatch: conv2d: 5x5 filters are larger than the padded 4x4 image"},
    {"filters have the image's channels", ET_OP_conv2d, CONV(.pad = {0}),
     "f32[2,3,4,4] f32[8,4,3,3]",
     "!shape mismatch: conv2d: filters of 8x4 channels do not fit 3 channels in 1 "
     "groups"},
    {"a convolution strides", ET_OP_conv2d, ATTR(conv2d, .groups = 1),
     "f32[2,3,4,4] f32[8,3,3,3]",
     "!invalid value: conv2d: stride 0, dilation 0, padding 0"},
    {"images have 4 axes", ET_OP_conv2d, CONV(.pad = {0}), "f32[2,3,4] f32[8,3,3,3]",
     "!shape mismatch: conv2d: x is f32[2,3,4]; it must have 4 axes"},
    {"a convolution and what follows it", ET_OP_conv2d_fused,
     ATTR(conv2d_fused, .conv = {.stride = {2, 1}, .dilation = {1, 1}, .groups = 1}),
     "f32[2,3,9,8]cl f32[6,3,3,3]cl f32[6] f32[6] f32[2,6,4,6]cl", "f32[2,6,4,6]cl"},
    {"whose scale is one for each filter", ET_OP_conv2d_fused,
     ATTR(conv2d_fused, .conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}),
     "f32[2,3,9,8] f32[6,3,3,3] f32[3] f32[6]",
     "!shape mismatch: conv2d_fused: scale is f32[3]; it must be f32[6]"},
    {"and whose residual is like its result", ET_OP_conv2d_fused,
     ATTR(conv2d_fused, .conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}),
     "f32[2,3,9,8] f32[6,3,3,3] f32[6] f32[6] f32[2,6,9,8]",
     "!shape mismatch: conv2d_fused: residual is f32[2,6,9,8]; it must be "
     "f32[2,6,7,6]"},
    {"the gradient of x has its shape", ET_OP_conv2d_grad_input,
     CONV(.pad = {1, 1}, .shape = {2, 4, 7, 8}), "f32[2,6,7,8]cl f32[6,4,3,3]cl",
     "f32[2,4,7,8]cl", .flops = 48384},
    {"dy is of the convolution's shape", ET_OP_conv2d_grad_input,
     CONV(.shape = {2, 4, 7, 8}), "f32[2,6,7,8]cl f32[6,4,3,3]cl",
     "!shape mismatch: conv2d_grad_input: dy is f32[2,6,7,8]; it must be f32[2,6,5,6]"},
    {"the gradient of filters has their shape", ET_OP_conv2d_grad_weight,
     CONV(.pad = {1, 1}, .shape = {6, 4, 3, 3}), "f32[2,4,7,8]cl f32[2,6,7,8]cl",
     "f32[6,4,3,3]cl", .flops = 48384},
    {"attention gives rows and their sums", ET_OP_sdpa, ATTR(sdpa, .scale = 1),
     "f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8] f32[1,3,1,5]", "f32[2,3,4,8] f32[2,3,4]",
     .flops = 3840},
    {"keys and values are as many", ET_OP_sdpa, ATTR(sdpa, .scale = 1),
     "f32[2,3,4,8] f32[2,3,5,8] f32[2,3,6,8]",
     "!shape mismatch: sdpa: v is f32[2,3,6,8]; it must be f32[2,3,5,8]"},
    {"an attention bias fits the scores", ET_OP_sdpa, ATTR(sdpa, .scale = 1),
     "f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8] f32[2,3,2,5]",
     "!shape mismatch: sdpa: bias is f32[2,3,2,5]; it must be f32[2,3,4,5]"},
    {"attention gives three gradients", ET_OP_sdpa_grad,
     ATTR(sdpa, .scale = 1, .causal = 1),
     "f32[2,3,4,8] f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8] f32[2,3,4,8] f32[2,3,4]",
     "f32[2,3,4,8] f32[2,3,5,8] f32[2,3,5,8]", .flops = 4800},

    {"each gradient of attention has its operand's strides", ET_OP_sdpa_grad,
     ATTR(sdpa, .scale = 1),
     "f32[2,3,4,8] f32[2,3,4,8]@96,8,24,1 f32[2,3,5,8] f32[2,3,5,8]@120,8,24,1 "
     "f32[2,3,4,8] f32[2,3,4]",
     "f32[2,3,4,8]@96,8,24,1 f32[2,3,5,8] f32[2,3,5,8]@120,8,24,1"},

    /* pooling and resizing */
    {"max pooling gives values and places", ET_OP_max_pool2d,
     POOL(.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}), "f32[2,3,7,8]cl",
     "f32[2,3,4,4]cl i32[2,3,4,4]cl", .flops = 864},
    {"ceil_mode rounds up", ET_OP_max_pool2d,
     POOL(.kernel = {2, 2}, .stride = {2, 2}, .ceil_mode = 1), "f32[2,3,7,8]cl",
     "f32[2,3,4,4]cl i32[2,3,4,4]cl"},
    {"no window begins behind the image", ET_OP_avg_pool2d,
     POOL(.kernel = {2, 1}, .stride = {3, 2}, .pad = {1, 0}, .ceil_mode = 1),
     "f32[1,1,5,1]cl", "f32[1,1,2,1]cl"},
    {"padding is at most half a window", ET_OP_max_pool2d,
     POOL(.kernel = {3, 3}, .stride = {2, 2}, .pad = {2, 2}), "f32[2,3,7,8]cl",
     "!invalid value: max_pool2d: kernel 3, stride 2, padding 2 (at most half the "
     "kernel), "
     "dilation 1"},
    {"the gradient of max pooling has x's shape", ET_OP_max_pool2d_grad,
     POOL(.kernel = {2, 2}, .stride = {2, 2}, .shape = {2, 3, 7, 8}),
     "f32[2,3,3,4]cl i32[2,3,3,4]cl", "f32[2,3,7,8]cl"},
    {"average pooling", ET_OP_avg_pool2d, POOL(.kernel = {2, 3}, .stride = {2, 3}),
     "f32[2,3,7,8]cl", "f32[2,3,3,2]cl"},
    {"averages are of neighbours", ET_OP_avg_pool2d,
     ATTR(pool2d, .kernel = {2, 2}, .stride = {2, 2}, .dilation = {2, 2}),
     "f32[2,3,7,8]cl",
     "!not supported: avg_pool2d: dilation 2x2; averages take neighbours only"},
    {"the gradient of averages has x's shape", ET_OP_avg_pool2d_grad,
     POOL(.kernel = {2, 3}, .stride = {2, 3}, .shape = {2, 3, 7, 8}), "f32[2,3,3,2]cl",
     "f32[2,3,7,8]cl"},
    {"adaptive pooling gives the size asked for", ET_OP_adaptive_avg_pool2d,
     ATTR(pool2d, .shape = {2, 3, 1, 1}), "f32[2,3,7,8]cl", "f32[2,3,1,1]cl"},
    {"its gradient gives back x's", ET_OP_adaptive_avg_pool2d_grad,
     ATTR(pool2d, .shape = {2, 3, 7, 8}), "f32[2,3,1,1]cl", "f32[2,3,7,8]cl"},
    {"resizing gives the size asked for", ET_OP_resize2d,
     ATTR(resize, .mode = ET_RESIZE_BILINEAR, .scale = {2, 2}, .shape = {2, 3, 4, 4}),
     "f32[2,3,8,8]cl", "f32[2,3,4,4]cl", .flops = 768},
    {"an image does not shrink to nothing", ET_OP_resize2d,
     ATTR(resize, .shape = {2, 3, 0, 4}), "f32[2,3,8,8]cl",
     "!shape mismatch: resize2d: [2,3,0,4] from 2x3 planes"},
    {"an image does not grow out of nothing", ET_OP_resize2d,
     ATTR(resize, .shape = {2, 3, 4, 4}), "f32[2,3,0,8]cl",
     "!shape mismatch: resize2d: planes of 0x8 pixels"},
    {"its gradient gives back x's size", ET_OP_resize2d_grad,
     ATTR(resize, .scale = {2, 2}, .shape = {2, 3, 8, 8}), "f32[2,3,4,4]cl",
     "f32[2,3,8,8]cl"},

    /* normalisation */
    {"batch norm gives its statistics", ET_OP_batch_norm, ATTR(norm, .eps = 1),
     "bf16[2,3,4,5]cl f32[3] f32[3]", "bf16[2,3,4,5]cl f32[3] f32[3]"},
    {"batch norm of a matrix", ET_OP_batch_norm, ATTR(norm, .eps = 1), "f64[4,3]",
     "f64[4,3] f64[3] f64[3]"},
    {"one value per channel has no variance", ET_OP_batch_norm, ATTR(norm, .eps = 1),
     "f32[1,3,1,1]cl",
     "!shape mismatch: batch_norm: one value per channel has no variance: training "
     "needs a "
     "larger batch or image"},
    {"two values have one", ET_OP_batch_norm, ATTR(norm, .eps = 1), "f32[1,3,1,2]cl",
     "f32[1,3,1,2]cl f32[3] f32[3]"},
    {"gamma has one number per channel", ET_OP_batch_norm, ATTR(norm, .eps = 1),
     "f32[2,3,4,5]cl f32[4]",
     "!shape mismatch: batch_norm: gamma is f32[4]; it must be f32[3]"},
    {"batch norm gives four gradients", ET_OP_batch_norm_grad, ATTR(norm, .eps = 1),
     "f32[2,3,4,5]cl f32[2,3,4,5]cl - f32[3] f32[3]",
     "f32[2,3,4,5]cl f32[3] f32[3] f32[2,3,4,5]cl"},
    {"gradients of gamma and beta are f32 where there are no gamma and beta",
     ET_OP_batch_norm_grad, ATTR(norm, .eps = 1), "bf16[4,3] bf16[4,3] - f32[3] f32[3]",
     "bf16[4,3] f32[3] f32[3] bf16[4,3]"},
    {"a fused relu needs y", ET_OP_batch_norm_grad, ATTR(norm, .relu = 1),
     "f32[4,3] f32[4,3] f32[3] f32[3] f32[3]",
     "!invalid value: batch_norm_grad: operand 5 (y) is missing"},
    {"which is not there where it is left out", ET_OP_batch_norm_grad,
     ATTR(norm, .relu = 1), "f32[4,3] f32[4,3] f32[3] f32[3] f32[3] -",
     "!invalid value: batch_norm_grad: operand 5 (y) is missing"},
    {"layer norm has statistics of the other axes", ET_OP_layer_norm,
     ATTR(norm, .axes = 2), "f32[5,2,3,4] f32[3,4] f32[3,4]",
     "f32[5,2,3,4] f32[5,2] f32[5,2] f32[5,2,3,4]", .flops = 960},
    {"layer norm of a sum in mixed precision", ET_OP_layer_norm, ATTR(norm, .axes = 1),
     "f32[5,4] f32[4] - bf16[5,4]", "f32[5,4] f32[5] f32[5] f32[5,4]", .flops = 180},
    {"a residual is of x's shape", ET_OP_layer_norm, ATTR(norm, .axes = 1),
     "f32[5,4] - - f32[4]",
     "!shape mismatch: layer_norm: residual is f32[4]; it must be f32[5,4]"},
    {"a residual is not wider than x", ET_OP_layer_norm, ATTR(norm, .axes = 1),
     "bf16[5,4] - - f32[5,4]",
     "!dtype mismatch: layer_norm: a residual of f32 is not added to bf16"},
    {"layer norm is over axes there are", ET_OP_layer_norm, ATTR(norm, .axes = 3),
     "f32[3,4]", "!invalid value: layer_norm: 3 axes of an array of 2"},
    {"a row of nothing has no statistics", ET_OP_layer_norm, ATTR(norm, .axes = 1),
     "f32[3,0]", "!shape mismatch: layer_norm: axis 1 has no elements"},
    {"nor have rows of nothing along one of their axes", ET_OP_layer_norm,
     ATTR(norm, .axes = 2), "f32[3,0,4]",
     "!shape mismatch: layer_norm: axis 1 has no elements"},
    {"or the other", ET_OP_layer_norm, ATTR(norm, .axes = 2), "f32[3,4,0]",
     "!shape mismatch: layer_norm: axis 2 has no elements"},
    {"no row has none to compute", ET_OP_layer_norm, ATTR(norm, .axes = 1),
     "f32[3,0,4]", "f32[3,0,4] f32[3,0] f32[3,0] f32[3,0,4]"},
    {"whichever axis is empty", ET_OP_layer_norm, ATTR(norm, .axes = 1), "f32[0,3,4]",
     "f32[0,3,4] f32[0,3] f32[0,3] f32[0,3,4]"},
    {"layer norm gives four gradients", ET_OP_layer_norm_grad, ATTR(norm, .axes = 1),
     "bf16[5,4] bf16[5,4] f32[4] f32[5] f32[5]", "bf16[5,4] f32[4] f32[4] bf16[5,4]"},
    {"what its sum gets besides is of x's shape", ET_OP_layer_norm_grad,
     ATTR(norm, .axes = 1), "f32[5,4] f32[5,4] - f32[5] f32[5] f32[5]",
     "!shape mismatch: layer_norm_grad: dsum is f32[5]; it must be f32[5,4]"},
    {"group norm has statistics of its groups", ET_OP_group_norm,
     ATTR(norm, .groups = 2), "f32[2,6,4,5]cl f32[6]",
     "f32[2,6,4,5]cl f32[2,2] f32[2,2]"},
    {"groups divide the channels", ET_OP_group_norm, ATTR(norm, .groups = 4),
     "f32[2,6,3]", "!invalid value: group_norm: 6 channels do not split into 4 groups"},
    {"a group of nothing has no statistics", ET_OP_group_norm, ATTR(norm, .groups = 2),
     "f32[2,4,0]", "!shape mismatch: group_norm: axis 2 has no elements"},
    {"group norm gives three gradients", ET_OP_group_norm_grad, ATTR(norm, .groups = 2),
     "f32[2,6] f32[2,6] - f32[2,2] f32[2,2]", "f32[2,6] f32[6] f32[6]"},

    /* softmax and losses */
    {"softmax is row-major", ET_OP_softmax, ATTR(axis, .axis = 1), "f32[2,3,4,5]cl",
     "f32[2,3,4,5]", .flops = 600},
    {"the gradient of softmax", ET_OP_softmax_grad, ATTR(axis, .axis = 1),
     "f32[2,3] f32[2,3]", "f32[2,3]"},
    {"log_softmax needs its axis", ET_OP_log_softmax, ATTR(axis, .axis = -1),
     "f32[2,3]", "!invalid value: log_softmax: there is no axis -1 in f32[2,3]"},
    {"the gradient of log_softmax is of y's shape", ET_OP_log_softmax_grad,
     ATTR(axis, .axis = 1), "f32[2,3] f32[3,2]",
     "!shape mismatch: log_softmax_grad: y is f32[3,2]; it must be f32[2,3]"},
    {"labels give a loss each", ET_OP_cross_entropy, ATTR(cross_entropy, -100),
     "bf16[2,10,4,5]cl i32[2,4,5] f32[10]", "f32[2,4,5] f32[2,4,5]"},
    {"distributions give a loss each", ET_OP_cross_entropy, ATTR(cross_entropy, -100),
     "f32[2,10] f32[2,10]", "f32[2] f32[2]"},
    {"labels are one per position", ET_OP_cross_entropy, ATTR(cross_entropy, -100),
     "f32[2,10] i32[2,10]",
     "!shape mismatch: cross_entropy: index target is i32[2,10]; it must be i32[2]"},
    {"the gradient of logits lies like them", ET_OP_cross_entropy_grad,
     ATTR(cross_entropy, -100), "f32[2,4,5] f32[2,10,4,5]cl i32[2,4,5] f32[2,4,5]",
     "f32[2,10,4,5]cl"},

    /* indexing and movement */
    {"an index replaces its axis", ET_OP_take, ATTR(axis, .axis = 1),
     "f32[2,9,4] i32[3,5]", "f32[2,3,5,4]"},
    {"indices are I32", ET_OP_take, ATTR(axis, 0), "f32[9] i64[2]",
     "!dtype mismatch: take: index has dtype i64; it must have i32"},
    {"taken slices go back", ET_OP_take_grad, ATTR(axis, .axis = 1, .n = 9),
     "f32[2,3,5,4] i32[3,5]", "f32[2,9,4]"},
    {"only what was taken goes back", ET_OP_take_grad, ATTR(axis, .axis = 1, .n = 9),
     "f32[2,3,5,4] i32[5,3]",
     "!shape mismatch: take_grad: f32[2,3,5,4] was not taken along axis 1 by i32[5,3]"},
    {"gather has the index's shape", ET_OP_gather, ATTR(axis, .axis = 1),
     "f32[2,9] i32[2,3]", "f32[2,3]"},
    {"the other axes of an index are the operand's", ET_OP_gather,
     ATTR(axis, .axis = 1), "f32[2,9] i32[4,3]",
     "!shape mismatch: gather: index is i32[4,3]; it must be i32[2,3]"},
    {"scatter_add makes the axis asked for", ET_OP_scatter_add,
     ATTR(axis, .axis = 1, .n = 9), "f32[2,3] i32[2,3]", "f32[2,9]"},
    {"each element is scattered by an index of its own", ET_OP_scatter_add,
     ATTR(axis, .axis = 1, .n = 9), "f32[2,3] i32[2,4]",
     "!shape mismatch: scatter_add: index is i32[2,4]; it must be i32[2,3]"},
    {"and none is left out", ET_OP_scatter_add, ATTR(axis, .axis = 1, .n = 9),
     "f32[2,3] i32[2,2]",
     "!shape mismatch: scatter_add: index is i32[2,2]; it must be i32[2,3]"},
    {"an index of gather has the operand's axes", ET_OP_gather, ATTR(axis, .axis = 1),
     "f32[2,9] i32[2]",
     "!shape mismatch: gather: index is i32[2]; it must be i32[2,9]"},
    {"a copy is dense", ET_OP_copy, ATTR(copy, .format = ET_CHANNELS_LAST),
     "f32[2,3,4,5]", "f32[2,3,4,5]cl"},
    {"only images lie channels-last", ET_OP_copy,
     ATTR(copy, .format = ET_CHANNELS_LAST), "f32[2,3]",
     "!shape mismatch: copy: an array to lie channels-last is f32[2,3]; it must have 4 "
     "axes"},
    {"lengths add up along the axis", ET_OP_concat, ATTR(axis, .axis = 1),
     "f32[2,3,4,4]cl f32[2,5,4,4] f32[2,1,4,4]", "f32[2,9,4,4]cl"},
    {"other lengths are equal", ET_OP_concat, ATTR(axis, .axis = 1),
     "f32[2,3] f32[3,3]",
     "!shape mismatch: concat: operand is f32[3,3]; it must be f32[2,3]"},
    {"arrays are packed at their offsets", ET_OP_pack, &pack_three,
     sizeof(struct et_pack_attr) + 3 * sizeof(int64_t), "f32[8] - f32[3,4]@1,3",
     "f32[24]"},
    {"packed arrays stay inside", ET_OP_pack, &pack_three,
     sizeof(struct et_pack_attr) + 3 * sizeof(int64_t), "f32[8] - f32[13]",
     "!shape mismatch: pack: operand 2, f32[13], at 12 ends past 24"},
    {"packed arrays may come in any order", ET_OP_pack, &pack_back,
     sizeof(struct et_pack_attr) + 3 * sizeof(int64_t), "f32[12] f32[4] f32[8]",
     "f32[24]", .flops = 0},
    {"and do not lie over each other by one", ET_OP_pack, &pack_three,
     sizeof(struct et_pack_attr) + 3 * sizeof(int64_t), "f32[9] f32[1] -",
     "!invalid value: pack: operand 1, at 8, lies over operand 0, at 0"},
    {"whichever begins first", ET_OP_pack, &pack_back,
     sizeof(struct et_pack_attr) + 3 * sizeof(int64_t), "f32[12] f32[4] f32[9]",
     "!invalid value: pack: operand 2, at 0, lies over operand 1, at 8"},
    {"but for one without elements", ET_OP_pack, &pack_three,
     sizeof(struct et_pack_attr) + 3 * sizeof(int64_t), "f32[12] f32[0] f32[12]",
     "f32[24]", .flops = 0},
    {"packed arrays are dense", ET_OP_pack, &pack_three,
     sizeof(struct et_pack_attr) + 3 * sizeof(int64_t), "f32[8] - f32[2,2]@3,1",
     "!invalid value: pack: operand 2, f32[2,2], is not dense"},
    {"a border makes axes longer", ET_OP_pad,
     ATTR(pad, .before = {0, 0, 1, 2}, .after = {0, 0, 1, 0}), "f32[2,3,4,5]cl",
     "f32[2,3,6,7]cl"},
    {"a border is not negative", ET_OP_pad, ATTR(pad, .before = {-1}), "f32[2]",
     "!invalid value: pad: axis 0 by -1 and 0"},
    {"flip keeps shape and order", ET_OP_flip, ATTR(flip, .axes = 8), "f32[2,3,4,5]cl",
     "f32[2,3,4,5]cl"},
    {"dropout keeps shape and order", ET_OP_dropout, ATTR(dropout, .p = 0.5),
     "f32[2,3,4,5]cl i64[2]", "f32[2,3,4,5]cl"},
    {"all is not dropped", ET_OP_dropout, ATTR(dropout, .p = 1), "f32[2] i64[2]",
     "!invalid value: dropout: probability 1 is outside [0, 1)"},
    {"numbers are drawn in the shape asked for", ET_OP_random,
     ATTR(random, .ndim = 2, .shape = {4, 3}), "i64[2]", "f32[4,3]"},
    {"numbers are drawn for samples", ET_OP_random, ATTR(random, .ndim = 0), "i64[2]",
     "!shape mismatch: random: 0 axes; there must be 1, the sample, to 6"},
    {"a number of samples is not negative", ET_OP_random,
     ATTR(random, .ndim = 2, .shape = {-1, 3}), "i64[2]",
     "!shape mismatch: random: axis 0 has the length -1"},
    {"numbers are drawn by a key", ET_OP_random, ATTR(random, .ndim = 1, .shape = {4}),
     "f32[2]", "!dtype mismatch: random: rng has dtype f32; it must have i64"},
    {"a probability is at most 1", ET_OP_random,
     ATTR(random, .ndim = 1, .shape = {4}, .p = 1.5), "i64[2]",
     "!invalid value: random: probability 1.5 is outside [0, 1]"},
    {"a node of a class is not made by its number", ET_OP_custom, NO_ATTR, "f32[2]",
     "!invalid value: custom: et_custom makes such nodes"},
    {"ranks add up what lies in any order", ET_OP_all_reduce, NULL, 0,
     "f32[2,3,4,5]cl f32[1]", "f32[2,3,4,5]cl"},
    {"ranks add up floats", ET_OP_all_reduce, NULL, 0, "i32[2]",
     "!dtype mismatch: all_reduce: x is i32[2]; ranks add up f32 and f64"},
    {"a rank has one weight", ET_OP_all_reduce, NULL, 0, "f32[2] f32[2]",
     "!shape mismatch: all_reduce: weight is f32[2]; it must be f32[1]"},
    {"frames on raw images are a batch, channels-last", ET_OP_image_batch,
     ATTR(image_batch, .shape = {5, 6}), "u8[9,3,8,8] i32[2,8] f32[3,256]",
     "f32[2,3,5,6]cl"},
    {"a table has a row for each channel", ET_OP_image_batch,
     ATTR(image_batch, .shape = {5, 6}), "u8[9,3,8,8] i32[2,8] f32[1,256]",
     "!shape mismatch: image_batch: table is f32[1,256]; it must be f32[3,256]"},
    {"a batch may be rounded", ET_OP_image_batch,
     ATTR(image_batch, .shape = {5, 6}, .dtype = ET_F16),
     "u8[9,3,8,8] i32[2,8] f32[3,256]", "f16[2,3,5,6]cl"},
    {"what is rounded is f32", ET_OP_image_batch,
     ATTR(image_batch, .shape = {5, 6}, .dtype = ET_F16),
     "u8[9,3,8,8] i32[2,8] f64[3,256]",
     "!dtype mismatch: image_batch: table has dtype f64; it must have f32"},
    {"a batch is rounded to 16 bits", ET_OP_image_batch,
     ATTR(image_batch, .shape = {5, 6}, .dtype = ET_F64),
     "u8[9,3,8,8] i32[2,8] f32[3,256]",
     "!dtype mismatch: image_batch: a batch is rounded to bf16 or f16, not f64"},
    {"a frame is eight numbers", ET_OP_image_batch, ATTR(image_batch, .shape = {5, 6}),
     "u8[9,3,8,8] i32[2,7] f32[3,256]",
     "!shape mismatch: image_batch: frames is i32[2,7]; it must be i32[2,8]"},
    {"raw images are bytes", ET_OP_image_batch, ATTR(image_batch, .shape = {5, 6}),
     "f32[9,3,8,8] i32[2,8] f32[3,256]",
     "!dtype mismatch: image_batch: raw has dtype f32; it must have u8"},
    {"a frame has pixels", ET_OP_image_batch, ATTR(image_batch, .shape = {0, 6}),
     "u8[9,3,8,8] i32[2,8] f32[3,256]", "!shape mismatch: image_batch: frames of 0x6"},
    {"rows with two changes on raw images are a batch", ET_OP_image_augment,
     ATTR(image_batch, .shape = {5, 6}), "u8[9,3,8,8] i32[2,54] f32[3,256]",
     "f32[2,3,5,6]cl"},
    {"a row is whole changes", ET_OP_image_augment, ATTR(image_batch, .shape = {5, 6}),
     "u8[9,3,8,8] i32[2,53] f32[3,256]",
     "!shape mismatch: image_augment: rows of 53 numbers: there are 38, and 8 more for "
     "each of at most 12 changes"},
    {"of which there are twelve at most", ET_OP_image_augment,
     ATTR(image_batch, .shape = {5, 6}), "u8[9,3,8,8] i32[2,142] f32[3,256]",
     "!shape mismatch: image_augment: rows of 142 numbers: there are 38, and 8 more "
     "for "
     "each of at most 12 changes"},
    {"pictures have four channels at most", ET_OP_image_augment,
     ATTR(image_batch, .shape = {5, 6}), "u8[9,5,8,8] i32[2,38] f32[5,256]",
     "!shape mismatch: image_augment: images of 5 channels: there are 4 at most"},
    {"rows are whole numbers", ET_OP_image_augment, ATTR(image_batch, .shape = {5, 6}),
     "u8[9,3,8,8] f32[2,38] f32[3,256]",
     "!dtype mismatch: image_augment: rows has dtype f32; it must have i32"},
};

static const char *
text_of(const struct et_desc *d, int n, char *buf, size_t size)
{
    buf[0] = '\0';
    for (int i = 0; i < n; i++) {
        char one[128];
        size_t used = strlen(buf);
        snprintf(buf + used, size - used, "%s%s", i ? " " : "",
                 write_desc(&d[i], one, sizeof one));
    }
    return buf;
}

static bool
same(const struct et_desc *a, const struct et_desc *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!et_desc_equal(&a[i], &b[i]))
            return false;
    return true;
}

static void
check_error(struct et_ctx *cx, const struct test *t)
{
    char got[1200];
    snprintf(got, sizeof got, "!%s: %s", et_status_name(et_error_get(cx)->status),
             et_error_get(cx)->message);
    is_str(got, t->want, "%s", t->says);
    et_error_clear(cx);
}

/* No result is written without its bytes, nothing is read twice, and no operation does
 * more than combine everything with everything. */
static void
check_costs(const struct et_op *op, const struct et_call *call, const char *says)
{
    int64_t n = 0, read = 0, written = 0;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        bool in = i < call->n_in;
        const struct et_desc *d = in ? &call->in[i] : &call->out[i - call->n_in];
        if (d->dtype == ET_NONE)
            continue;
        n += et_desc_count(d);
        *(in ? &read : &written) += (int64_t)et_desc_bytes(d);
    }
    int64_t flops = op->flops ? op->flops(call) : 0;
    int64_t bytes = op->bytes ? op->bytes(call) : read + written;
    ok(flops >= 0 && flops <= 10 * n * n && bytes >= written &&
           bytes <= 2 * written + read,
       "%s: what it costs is plausible (%lld FLOP, %lld bytes)", says, (long long)flops,
       (long long)bytes);
}

static void
check(struct et_ctx *cx, const struct test *t)
{
    const struct et_op *op = et_op_get(t->op);
    struct et_desc in[MOST], out[MOST], want[MOST];
    int64_t offset = 0;
    struct et_call call = {
        .op = t->op,
        .n_in = read_descs(t->in, in, MOST),
        .n_out = op->n_out,
        .attr = t->attr,
        .attr_size = t->attr_size,
        .in = in,
        .out = out,
    };
    memset(out, 0, sizeof out);
    et_status status = op->infer(cx, &call, out, &offset);
    if (*t->want == '!' || status != ET_OK) {
        check_error(cx, t);
        return;
    }
    int n = read_descs(t->want, want, MOST);
    char a[512], b[512];
    bool fits = n <= op->n_out && same(out, want, n) && offset == t->offset;
    if (!ok(fits, "%s", t->says))
        diag("got %s at %lld, wanted %s at %lld", text_of(out, n, a, sizeof a),
             (long long)offset, text_of(want, n, b, sizeof b), (long long)t->offset);
    if (!(op->flags & ET_OPF_VIEW))
        check_costs(op, &call, t->says);
    if (t->flops)
        is_int(op->flops ? op->flops(&call) : et_desc_count(&out[0]), t->flops,
               "%s: operations counted", t->says);
}

static void
check_row(const struct et_op *op, enum et_op_id id, const char *name)
{
    int cases = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        cases += tests[i].op == id;
    ok(op && op->id == id && !strcmp(op->name, name) && et_op_find(name) == op &&
           op->summary && op->infer,
       "%s is in its row of the table", name);
    ok(cases > 0, "%s has a case here", name);
}

/* Operands that make no sense give a sentence, never a crash. */
static void
check_nonsense(struct et_ctx *cx, const struct et_op *op)
{
    static const char zero[4096];
    static const char *const operand[] = {
        "-",          "f32[]",        "f32[0]",          "i32[2,2]",
        "f32[2,2,2]", "f32[2,2,2,2]", "f32[1,1,1,1,1,1]"};
    bool good = true;
    for (size_t k = 0; k < sizeof operand / sizeof *operand; k++) {
        struct et_desc in[MOST], out[MOST];
        int64_t offset = 0;
        struct et_call call = {
            .op = op->id,
            .n_in = op->max_in < 0 ? 3 : op->max_in,
            .n_out = op->n_out,
            .attr = zero,
            .attr_size = op->attr_size,
            .in = in,
            .out = out,
        };
        for (int i = 0; i < call.n_in; i++)
            read_descs(operand[k], &in[i], 1);
        if (op->infer(cx, &call, out, &offset) == ET_OK)
            continue;
        const char *said = et_error_get(cx)->message;
        size_t n = strlen(op->name);
        good = good && !strncmp(said, op->name, n) && !strncmp(said + n, ": ", 2);
        et_error_clear(cx);
    }
    ok(good, "%s refuses nonsense in a sentence of its own", op->name);
}

int
main(void)
{
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        check(cx, &tests[i]);
#define ET_OP(name, number) check_row(et_op_get(ET_OP_##name), ET_OP_##name, #name);
#include "etude/ops.def"
#undef ET_OP
    for (int id = 0; id < ET_OP_COUNT; id++)
        check_nonsense(cx, et_op_get((enum et_op_id)id));
    ok(!et_op_get(ET_OP_COUNT) && !et_op_find("nonsense"), "there are no other ops");
    et_ctx_free(&cx);
    return done();
}
