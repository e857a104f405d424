/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_nodes' operations, and what files say of them. */

/* clang-format off */
#define UNARY(name) ROW(do_##name, { return et_##name(g, x); })
UNARY(neg) UNARY(abs) UNARY(sign) UNARY(exp) UNARY(log) UNARY(sin) UNARY(cos)
UNARY(sqrt) UNARY(rsqrt) UNARY(square) UNARY(reciprocal) UNARY(floor) UNARY(relu)
UNARY(gelu) UNARY(gelu_tanh) UNARY(silu) UNARY(sigmoid) UNARY(tanh)
UNARY(softplus) UNARY(detach)

#define BINARY(name) \
    ROW(do_##name, { return et_##name(g, x, fill(g, SHAPE(5), 0.5)); })
BINARY(add) BINARY(sub) BINARY(mul) BINARY(div) BINARY(maximum) BINARY(minimum)
BINARY(equal) BINARY(less) BINARY(less_equal)
    /* clang-format on */

    /* ---- views and constants ---- */

    ROW(do_reshape,
        {
            return et_reshape(g, x, SHAPE(n, 1, 5));
        }) ROW(do_flatten, { return et_reshape(g, x, SHAPE(n * 5)); })
        ROW(do_expand, { return et_expand(g, x, SHAPE(3, n, 5)); })
            ROW(do_expand_twice,
                {
                    x = et_expand(g, et_reshape(g, x, SHAPE(n * 5)), SHAPE(2, n * 5));
                    return et_expand(g, et_reshape(g, x, SHAPE(2, 1, n, 5)),
                                     SHAPE(2, 3, n, 5));
                }) ROW(do_permute,
                       {
                           return et_permute(g, et_reshape(g, x, SHAPE(n, 1, 5)),
                                             (const int[]){1, 2, 0});
                       }) ROW(do_slice, { return et_slice(g, x, 1, 1, 2, 3); })
                ROW(do_end, { return et_slice(g, x, 1, 1, 4, 1); })
                    ROW(do_all, { return et_slice(g, x, 1, 0, 5, 1); })
                        ROW(do_part, { return et_slice(g, x, 0, 1, n - 1, 1); })
                            ROW(do_fill,
                                { return et_add(g, x, fill(g, SHAPE(n, 5), -1.25)); })
                                ROW(do_bytes,
                                    {
                                        (void)x;
                                        return et_fill(g, ET_U8, SHAPE(2), 200);
                                    }) ROW(do_longs,
                                           {
                                               (void)x;
                                               return et_fill(g, ET_I64, SHAPE(2, 3),
                                                              -5000000000);
                                           })
                                    ROW(do_halves,
                                        {
                                            (void)x;
                                            return et_fill(g, ET_F16, SHAPE(5), 1);
                                        }) ROW(do_one_more,
                                               {
                                                   (void)x;
                                                   return fill(g, SHAPE(n + 1), 1);
                                               })
                                        ROW(do_one_less,
                                            {
                                                (void)x;
                                                return fill(g, SHAPE(n - 1), 1);
                                            })
    /* What nothing needs is not written. */
    ROW(do_unneeded,
        {
            (void)et_sort(g, x, 1, true, NULL);
            return et_neg(g, x);
        })
        ROW(do_more_nodes, { return n == 3 ? et_neg(g, et_neg(g, x)) : et_neg(g, x); })
            ROW(do_square_of_batches,
                {
                    x = et_expand(g, et_reshape(g, x, SHAPE(n, 1, 5)), SHAPE(n, n, 5));
                    return et_reshape(g, x, SHAPE(n, n, 1, 5));
                }) ROW(do_iota,
                       {
                           (void)x;
                           return et_iota(g, ET_I32, 7);
                       }) ROW(do_samples,
                              {
                                  (void)x;
                                  return et_iota(g, ET_I32, n);
                              })

    /* ---- numbers ---- */

    ROW(do_add_scalar, { return et_add_scalar(g, x, 1.5); })
        ROW(do_mul_scalar, { return et_mul_scalar(g, x, 2.5); })
            ROW(do_pow_scalar, { return et_pow_scalar(g, x, 3.5); })
                ROW(do_clamp, { return et_clamp(g, x, -0.5, 6); })
                    ROW(do_cast, { return et_cast(g, x, ET_I32); })
                        ROW(do_cast_half, { return et_cast(g, x, ET_F16); })
                            ROW(do_where,
                                {
                                    return et_where(g, x, fill(g, SHAPE(5), 2),
                                                    fill(g, SHAPE(1), 3));
                                })

    /* ---- reductions, along axes ---- */

    ROW(do_sum, { return et_sum(g, et_reshape(g, x, SHAPE(n, 1, 5)), 6, false); })
        ROW(do_amax,
            { return et_amax(g, x, 2, true); }) ROW(do_amin,
                                                    { return et_amin(g, x, 2, false); })
            ROW(do_softmax,
                { return et_softmax(g, et_reshape(g, x, SHAPE(n, 5, 1)), 1); })
                ROW(do_log_softmax,
                    { return et_log_softmax(g, et_reshape(g, x, SHAPE(n, 1, 5)), 2); })
                    ROW(do_take, { return et_take(g, x, et_iota(g, ET_I32, 3), 1); })
                        ROW(do_gather,
                            {
                                return et_gather(g, fill(g, SHAPE(2, 3), 7),
                                                 et_fill(g, ET_I32, SHAPE(2, 1), 1), 1);
                            }) ROW(do_concat,
                                   {
                                       struct et_tensor *parts[] = {x, et_neg(g, x), x};
                                       return et_concat(g, parts, 3, 1);
                                   })
                            ROW(do_pad,
                                {
                                    return et_pad(g, x, (const int64_t[]){0, 1},
                                                  (const int64_t[]){0, 2}, -3);
                                })
                                ROW(do_sort, { return et_sort(g, x, 1, true, NULL); })

    /* ---- products ---- */

    ROW(do_matmul, { return et_matmul(g, x, fill(g, SHAPE(5, 2), 4), false, false); })
        ROW(do_right, { return et_matmul(g, x, fill(g, SHAPE(2, 5), 4), false, true); })
            ROW(do_left,
                {
                    return et_matmul(g, et_reshape(g, x, SHAPE(n, 5, 1)),
                                     fill(g, SHAPE(5, 2), 4), true, false);
                }) ROW(do_linear,
                       {
                           return et_linear(g, x, fill(g, SHAPE(2, 5), 4),
                                            fill(g, SHAPE(2), 5));
                       })

    /* Pictures of [batch,4,1,5]. */
    static struct et_tensor *pictures(struct et_graph *g, struct et_tensor *x)
{
    int64_t n = x->desc.shape[0];
    return et_expand(g, et_reshape(g, x, SHAPE(n, 1, 1, 5)), SHAPE(n, 4, 1, 5));
}

ROW(do_conv, {
    return et_conv2d(
        g, pictures(g, x), fill(g, SHAPE(6, 2, 2, 3), 1), fill(g, SHAPE(6), 2),
        &(struct et_conv2d_attr){
            .stride = {2, 1}, .pad = {3, 4}, .dilation = {1, 2}, .groups = 2});
})
ROW(do_transposed, {
    return et_conv_transpose2d(g, pictures(g, x), fill(g, SHAPE(4, 3, 2, 3), 1),
                               fill(g, SHAPE(6), 2),
                               &(struct et_conv2d_attr){.stride = {3, 2},
                                                        .pad = {0, 1},
                                                        .dilation = {2, 1},
                                                        .output_pad = {2, 1},
                                                        .groups = 2});
})
ROW(do_attention, {
    struct et_tensor *q = et_reshape(g, x, SHAPE(n, 1, 1, 5));
    return et_sdpa(g, q, et_neg(g, q), et_exp(g, q), fill(g, SHAPE(1, 1, 1, 1), 9),
                   false, 0.125);
})
ROW(do_causal, {
    struct et_tensor *q = et_reshape(g, x, SHAPE(n, 1, 5, 1));
    return et_sdpa(g, q, q, q, NULL, true, 2);
})
ROW(do_causal_biased, {
    struct et_tensor *q = et_reshape(g, x, SHAPE(n, 1, 5, 1));
    return et_sdpa(g, q, q, q, fill(g, SHAPE(1, 1, 1, 5), 9), true, 2);
})
ROW(do_causal_twice, {
    struct et_tensor *q = et_reshape(g, x, SHAPE(n, 1, 5, 1));
    struct et_tensor *k = et_slice(g, q, 2, 1, 3, 1);
    return et_sdpa(g, et_sdpa(g, q, q, q, NULL, true, 2), k, k, NULL, true, 2);
})

/* ---- pictures ---- */

ROW(do_max_pool, {
    return et_max_pool2d(g, pictures(g, et_slice(g, x, 1, 0, 5, 1)),
                         &(struct et_pool2d_attr){.kernel = {2, 3},
                                                  .stride = {1, 2},
                                                  .pad = {1, 1},
                                                  .dilation = {1, 2},
                                                  .ceil_mode = 1});
})
ROW(do_avg_pool, {
    return et_avg_pool2d(
        g, pictures(g, x),
        &(struct et_pool2d_attr){
            .kernel = {2, 4}, .stride = {3, 1}, .pad = {1, 2}, .count_include_pad = 1});
})
ROW(do_avg_pool_without, {
    return et_avg_pool2d(g, pictures(g, x),
                         &(struct et_pool2d_attr){.kernel = {1, 2}, .pad = {0, 1}});
})
ROW(do_global, { return et_adaptive_avg_pool2d(g, pictures(g, x), 1, 1); })
ROW(do_adaptive,
    { return et_adaptive_avg_pool2d(g, fill(g, SHAPE(1, 1, 4, 9), 1), 2, 3); })
ROW(do_adaptive_row,
    { return et_adaptive_avg_pool2d(g, fill(g, SHAPE(1, 1, 4, 9), 1), 1, 3); })
ROW(do_nearest, { return et_resize2d(g, pictures(g, x), ET_RESIZE_NEAREST, 2, 15); })
ROW(do_bilinear, { return et_resize2d(g, pictures(g, x), ET_RESIZE_BILINEAR, 3, 7); })
ROW(do_resize_by,
    { return et_resize2d_by(g, pictures(g, x), ET_RESIZE_BILINEAR, 2, 11, 0.45); })

/* ---- norms ---- */

ROW(do_layer_norm, {
    return et_layer_norm(g, et_reshape(g, x, SHAPE(n, 1, 5)), fill(g, SHAPE(1, 5), 2),
                         fill(g, SHAPE(1, 5), 3), 2, 0.25);
})
ROW(do_layer_norm_plain,
    { return et_layer_norm(g, et_reshape(g, x, SHAPE(n, 1, 5)), NULL, NULL, 1, 0.5); })
ROW(do_layer_norm_shift,
    { return et_layer_norm(g, x, NULL, fill(g, SHAPE(5), 3), 1, 0.5); })
ROW(do_layer_norm_residual, {
    struct et_norm_attr a = {.eps = 0.5, .axes = 1};
    struct et_tensor *in[] = {x, NULL, NULL, et_neg(g, x)};
    return et_apply(g, ET_OP_layer_norm, in, 4, &a, sizeof a, NULL);
})
ROW(do_group_norm, {
    return et_group_norm(g, pictures(g, x), fill(g, SHAPE(4), 2), fill(g, SHAPE(4), 3),
                         2, 0.25);
})
ROW(do_group_norm_plain,
    { return et_group_norm(g, pictures(g, x), NULL, NULL, 4, 0.5); })

#define BATCH "Gather(Shape(input), [0])"
#define PICTURES                                                                       \
    "Identity(Expand(Reshape(x, [-1 1 1 5]), Concat(" BATCH ", [4], [1], [5] "         \
    "axis=0)))"

static const struct {
    const char *name;
    build_fn *fn;
    const char *says;
} rows[] = {
    {"neg", do_neg, "Neg(x)"},
    {"abs", do_abs, "Abs(x)"},
    {"sign", do_sign, "Sign(x)"},
    {"exp", do_exp, "Exp(x)"},
    {"log", do_log, "Log(x)"},
    {"sin", do_sin, "Sin(x)"},
    {"cos", do_cos, "Cos(x)"},
    {"sqrt", do_sqrt, "Sqrt(x)"},
    {"rsqrt", do_rsqrt, "Reciprocal(Sqrt(x))"},
    {"square", do_square, "Mul(x, x)"},
    {"reciprocal", do_reciprocal, "Reciprocal(x)"},
    {"floor", do_floor, "Floor(x)"},
    {"relu", do_relu, "Relu(x)"},
    {"gelu", do_gelu, "Gelu(x approximate=none)"},
    {"gelu_tanh", do_gelu_tanh, "Gelu(x approximate=tanh)"},
    {"silu", do_silu, "Mul(x, Sigmoid(x))"},
    {"sigmoid", do_sigmoid, "Sigmoid(x)"},
    {"tanh", do_tanh, "Tanh(x)"},
    {"softplus", do_softplus, "Softplus(x)"},
    {"detach", do_detach, "Identity(x)"},
    {"add", do_add, "Add(x, Expand(0.5, [5]))"},
    {"sub", do_sub, "Sub(x, Expand(0.5, [5]))"},
    {"mul", do_mul, "Mul(x, Expand(0.5, [5]))"},
    {"div", do_div, "Div(x, Expand(0.5, [5]))"},
    {"maximum", do_maximum, "Max(x, Expand(0.5, [5]))"},
    {"minimum", do_minimum, "Min(x, Expand(0.5, [5]))"},
    {"equal", do_equal, "Cast(Equal(x, Expand(0.5, [5])) to=2)"},
    {"less", do_less, "Cast(Less(x, Expand(0.5, [5])) to=2)"},
    {"less_equal", do_less_equal, "Cast(LessOrEqual(x, Expand(0.5, [5])) to=2)"},
    {"reshape", do_reshape, "Reshape(x, [-1 1 5])"},
    {"flatten", do_flatten, "Reshape(x, [-1])"},
    {"expand", do_expand, "Expand(x, Concat([3], " BATCH ", [5] axis=0))"},
    {"expand_twice", do_expand_twice,
     "Expand(Reshape(Expand(Reshape(x, [-1]), "
     "Concat([2], Mul(" BATCH ", [5]) axis=0)), [2 1 -1 5]), Concat([2], [3], " BATCH
     ", [5] axis=0))"},
    {"permute", do_permute, "Transpose(Reshape(x, [-1 1 5]) perm=1,2,0)"},
    {"slice", do_slice, "Slice(x, [1], [5], [1], [3])"},
    {"end", do_end, "Slice(x, [1], [5], [1], [1])"},
    {"all", do_all, "Identity(x)"},
    {"part", do_part, "ONNX: slice of f32[2,5]: it takes a part of the batch"},
    {"fill", do_fill, "Add(x, Expand(-1.25, Concat(" BATCH ", [5] axis=0)))"},
    {"bytes", do_bytes, "Expand(200u8, [2])"},
    {"longs", do_longs, "Expand(-5000000000, [2 3])"},
    {"halves", do_halves,
     "ONNX: fill of a number: its shape or dtype is not "
     "ONNX's"},
    {"one_more", do_one_more,
     "ONNX: fill of a number: its shape or dtype is not "
     "ONNX's"},
    {"one_less", do_one_less,
     "ONNX: fill of a number: its shape or dtype is not "
     "ONNX's"},
    {"unneeded", do_unneeded, "Neg(x)"},
    {"more_nodes", do_more_nodes,
     "ONNX: what the model computes depends on the "
     "size of the batch"},
    {"square_of_batches", do_square_of_batches,
     "Reshape(Expand(Reshape(x, [-1 1 "
     "5]), Concat(" BATCH ", " BATCH ", [5] axis=0)), Concat(" BATCH ", " BATCH
     ", [1], [5] axis=0))"},
    {"iota", do_iota, "Range(0i32, 7i32, 1i32)"},
    {"samples", do_samples, "ONNX: iota of a number: it counts samples"},
    {"add_scalar", do_add_scalar, "Add(x, 1.5)"},
    {"mul_scalar", do_mul_scalar, "Mul(x, 2.5)"},
    {"pow_scalar", do_pow_scalar, "Pow(x, 3.5)"},
    {"clamp", do_clamp, "Clip(x, -0.5, 6)"},
    {"cast", do_cast, "Cast(x to=6)"},
    {"cast_half", do_cast_half, "ONNX: cast of f32[2,5]: its dtype is not written"},
    {"where", do_where, "Where(Cast(x to=9), Expand(2, [5]), Expand(3, [1]))"},
    {"sum", do_sum, "ReduceSum(Reshape(x, [-1 1 5]), [1 2] keepdims=0)"},
    {"amax", do_amax, "ReduceMax(x, [1] keepdims=1)"},
    {"amin", do_amin, "ReduceMin(x, [1] keepdims=0)"},
    {"softmax", do_softmax, "Softmax(Reshape(x, [-1 5 1]) axis=1)"},
    {"log_softmax", do_log_softmax, "LogSoftmax(Reshape(x, [-1 1 5]) axis=2)"},
    {"take", do_take, "Gather(x, Range(0i32, 3i32, 1i32) axis=1)"},
    {"gather", do_gather,
     "GatherElements(Expand(7, [2 3]), Expand(1i32, [2 1]) "
     "axis=1)"},
    {"concat", do_concat, "Concat(x, Neg(x), x axis=1)"},
    {"pad", do_pad, "Pad(x, [0 1 0 2], -3)"},
    {"sort", do_sort, "ONNX: sort of f32[2,5]: it has no operation for that"},
    {"matmul", do_matmul, "MatMul(x, Expand(4, [5 2]))"},
    {"right", do_right, "MatMul(x, Transpose(Expand(4, [2 5]) perm=1,0))"},
    {"left", do_left,
     "MatMul(Transpose(Reshape(x, [-1 5 1]) perm=0,2,1), "
     "Expand(4, [5 2]))"},
    {"linear", do_linear,
     "Add(MatMul(x, Transpose(Expand(4, [2 5]) perm=1,0)), "
     "Expand(5, [2]))"},
    {"conv", do_conv,
     "Conv(" PICTURES ", Identity(Expand(1, [6 2 2 3])), "
     "Expand(2, [6]) strides=2,1 dilations=1,2 pads=3,4,3,4 group=2)"},
    {"transposed", do_transposed,
     "ConvTranspose(" PICTURES ", "
     "Identity(Expand(1, [4 3 2 3])), Expand(2, [6]) strides=3,2 dilations=2,1 "
     "pads=0,1,0,1 group=2 output_padding=2,1)"},
    {"attention", do_attention,
     "MatMul(Softmax(Add(MatMul(Mul(Reshape(x, [-1 1 "
     "1 5]), 0.125), Transpose(Neg(Reshape(x, [-1 1 1 5])) perm=0,1,3,2)), "
     "Expand(9, [1 1 1 1])) axis=3), Exp(Reshape(x, [-1 1 1 5])))"},
    {"causal", do_causal,
     "MatMul(Softmax(Add(MatMul(Mul(Reshape(x, [-1 1 5 1]), "
     "2), Transpose(Reshape(x, [-1 1 5 1]) perm=0,1,3,2)), Identity([5x5: 0 -inf "
     "-inf -inf -inf 0 0 -inf -inf -inf 0 0 0 -inf -inf 0 0 0 0 -inf 0 0 0 0 "
     "0])) axis=3), Reshape(x, [-1 1 5 1]))"},
    {"causal_biased", do_causal_biased,
     "MatMul(Softmax(Add(Add(MatMul(Mul(Reshape(x, [-1 1 5 1]), "
     "2), Transpose(Reshape(x, [-1 1 5 1]) perm=0,1,3,2)), Expand(9, [1 1 1 5])), "
     "Identity([5x5: 0 -inf -inf -inf -inf 0 0 -inf -inf -inf 0 0 0 -inf -inf 0 0 0 0 "
     "-inf 0 0 0 0 0])) axis=3), Reshape(x, [-1 1 5 1]))"},
    {"causal_twice", do_causal_twice,
     "ONNX: sdpa of f32[2,1,5,1]: attentions of "
     "several lengths"},
    {"max_pool", do_max_pool,
     "MaxPool(Identity(Expand(Reshape(Identity(x), [-1 "
     "1 1 5]), Concat(" BATCH ", [4], [1], [5] axis=0))) kernel_shape=2,3 "
     "strides=1,2 pads=1,1,1,1 ceil_mode=1 dilations=1,2)"},
    {"avg_pool", do_avg_pool,
     "AveragePool(" PICTURES " kernel_shape=2,4 "
     "strides=3,1 pads=1,2,1,2 ceil_mode=0 count_include_pad=1)"},
    {"avg_pool_without", do_avg_pool_without,
     "AveragePool(" PICTURES
     " kernel_shape=1,2 strides=1,2 pads=0,1,0,1 ceil_mode=0 count_include_pad=0)"},
    {"global", do_global, "GlobalAveragePool(" PICTURES ")"},
    {"adaptive", do_adaptive,
     "AveragePool(Expand(1, [1 1 4 9]) kernel_shape=2,3 "
     "strides=2,3)"},
    {"adaptive_row", do_adaptive_row,
     "AveragePool(Expand(1, [1 1 4 9]) "
     "kernel_shape=4,3 strides=4,3)"},
    {"nearest", do_nearest,
     "Resize(" PICTURES ", -, -, [2 15] mode=nearest "
     "coordinate_transformation_mode=asymmetric nearest_mode=floor axes=2,3)"},
    {"bilinear", do_bilinear,
     "Resize(" PICTURES ", -, -, [3 7] mode=linear "
     "coordinate_transformation_mode=half_pixel axes=2,3)"},
    {"resize_by", do_resize_by,
     "ONNX: resize2d of f32[2,4,1,5]: by a step that "
     "is not the ratio of the sizes"},
    {"layer_norm", do_layer_norm,
     "LayerNormalization(Reshape(x, [-1 1 5]), "
     "Expand(2, [1 5]), Expand(3, [1 5]) axis=1 epsilon=0.25)"},
    {"layer_norm_plain", do_layer_norm_plain,
     "LayerNormalization(Reshape(x, [-1 "
     "1 5]), Expand(1, [5]) axis=2 epsilon=0.5)"},
    {"layer_norm_shift", do_layer_norm_shift,
     "LayerNormalization(x, Expand(1, "
     "[5]), Expand(3, [5]) axis=1 epsilon=0.5)"},
    {"layer_norm_residual", do_layer_norm_residual,
     "LayerNormalization(Add(x, "
     "Neg(x)), Expand(1, [5]) axis=1 epsilon=0.5)"},
    {"group_norm", do_group_norm,
     "Identity(Add(Mul(Reshape(InstanceNormalization(Reshape(" PICTURES ", [0 2 "
     "-1]), Expand(1, [2]), Expand(0, [2]) epsilon=0.25), [-1 4 1 5]), "
     "Reshape(Expand(2, [4]), [4 1 1])), Reshape(Expand(3, [4]), [4 1 1])))"},
    {"group_norm_plain", do_group_norm_plain,
     "Identity(Reshape(InstanceNormalization(Reshape(" PICTURES ", [0 4 -1]), "
     "Expand(1, [4]), Expand(0, [4]) epsilon=0.5), [-1 4 1 5]))"},
};
