/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c: what ONNX calls the operations of a graph that evaluates. Source:
 * onnx.ai, operators of opset 20. What it has no operation for is composed of others,
 * or refused by name. */
#include <math.h>
#include <string.h>

#include "core/onnx/writing.h"

typedef void write_fn(struct eti_onnx *o, const struct et_node *n, const char *out);

/* Operand I of N. */
static const char *
in(struct eti_onnx *o, const struct et_node *n, int i)
{
    return eti_onnx_name(o, i < n->n_in ? n->in[i] : NULL);
}

static const struct et_desc *
desc(const struct et_node *n, int i)
{
    return &n->in[i]->desc;
}

/* ---- views ---- */

static void
write_reshape(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_desc *y = &n->out[0].desc,
                         *other = &eti_onnx_other(o, n)->out[0].desc;
    const char *shape = eti_onnx_shape(o, y->ndim, y->shape, other->shape, true);
    if (!shape)
        eti_onnx_refuse(o, n, "its shape does not follow the batch");
    ETI_ONNX_NODE(o, "Reshape", out, in(o, n, 0), shape);
}

static void
write_expand(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_desc *y = &n->out[0].desc,
                         *other = &eti_onnx_other(o, n)->out[0].desc;
    const char *shape = eti_onnx_shape(o, y->ndim, y->shape, other->shape, false);
    if (!shape)
        eti_onnx_refuse(o, n, "its shape does not follow the batch");
    ETI_ONNX_NODE(o, "Expand", out, in(o, n, 0), shape);
}

static void
write_permute(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_permute_attr *a = n->attr;
    int64_t axes[ET_MAX_DIMS];
    for (int i = 0; i < a->ndim; i++)
        axes[i] = a->axes[i];
    eti_onnx_ints(o, "perm", axes, a->ndim);
    ETI_ONNX_NODE(o, "Transpose", out, in(o, n, 0));
}

static void
write_slice(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_slice_attr *a = n->attr, *other = eti_onnx_other(o, n)->attr;
    const struct et_desc *x = desc(n, 0);
    int64_t start[ET_MAX_DIMS], end[ET_MAX_DIMS], axis[ET_MAX_DIMS], step[ET_MAX_DIMS];
    int k = 0;
    for (int i = 0; i < x->ndim; i++) {
        if (a->start[i] == 0 && a->size[i] == x->shape[i])
            continue;
        if (a->size[i] != other->size[i] || a->start[i] != other->start[i])
            eti_onnx_refuse(o, n, "it takes a part of the batch");
        start[k] = a->start[i];
        step[k] = a->step[i] ? a->step[i] : 1;
        end[k] = start[k] + (a->size[i] - 1) * step[k] + 1;
        axis[k++] = i;
    }
    if (k == 0)
        ETI_ONNX_NODE(o, "Identity", out, in(o, n, 0));
    else
        ETI_ONNX_NODE(o, "Slice", out, in(o, n, 0), eti_onnx_vector(o, start, k),
                      eti_onnx_vector(o, end, k), eti_onnx_vector(o, axis, k),
                      eti_onnx_vector(o, step, k));
}

/* ---- constants ---- */

static void
write_fill(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_shape_attr *a = n->attr;
    const struct et_desc *y = &n->out[0].desc,
                         *other = &eti_onnx_other(o, n)->out[0].desc;
    const char *value = eti_onnx_number(o, y->dtype, a->value);
    const char *shape = eti_onnx_shape(o, y->ndim, y->shape, other->shape, false);
    if (!shape || !eti_onnx_type(y->dtype))
        eti_onnx_refuse(o, n, "its shape or dtype is not ONNX's");
    ETI_ONNX_NODE(o, "Expand", out, value, shape);
}

static void
write_iota(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_desc *y = &n->out[0].desc;
    if (y->shape[0] != eti_onnx_other(o, n)->out[0].desc.shape[0] ||
        !eti_onnx_type(y->dtype))
        eti_onnx_refuse(o, n, "it counts samples");
    ETI_ONNX_NODE(o, "Range", out, eti_onnx_number(o, y->dtype, 0),
                  eti_onnx_number(o, y->dtype, (double)y->shape[0]),
                  eti_onnx_number(o, y->dtype, 1));
}

/* ---- single elements ---- */

static void
write_rsqrt(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    ETI_ONNX_NODE(o, "Reciprocal", out, ETI_ONNX_VALUE(o, "Sqrt", in(o, n, 0)));
}

static void
write_square(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    ETI_ONNX_NODE(o, "Mul", out, in(o, n, 0), in(o, n, 0));
}

static void
write_silu(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    ETI_ONNX_NODE(o, "Mul", out, in(o, n, 0),
                  ETI_ONNX_VALUE(o, "Sigmoid", in(o, n, 0)));
}

static void
write_gelu(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    eti_onnx_text(o, "approximate", n->op->id == ET_OP_gelu ? "none" : "tanh");
    ETI_ONNX_NODE(o, "Gelu", out, in(o, n, 0));
}

static void
write_scalar(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_scalar_attr *a = n->attr;
    const char *op = n->op->id == ET_OP_add_scalar   ? "Add"
                     : n->op->id == ET_OP_mul_scalar ? "Mul"
                                                     : "Pow";
    ETI_ONNX_NODE(o, op, out, in(o, n, 0), eti_onnx_number(o, desc(n, 0)->dtype, a->a));
}

static void
write_clamp(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_scalar_attr *a = n->attr;
    enum et_dtype dtype = desc(n, 0)->dtype;
    ETI_ONNX_NODE(o, "Clip", out, in(o, n, 0), eti_onnx_number(o, dtype, a->a),
                  eti_onnx_number(o, dtype, a->b));
}

static void
write_cast(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    int type = eti_onnx_type(n->out[0].desc.dtype);
    if (!type)
        eti_onnx_refuse(o, n, "its dtype is not written");
    eti_onnx_int(o, "to", type);
    ETI_ONNX_NODE(o, "Cast", out, in(o, n, 0));
}

/* Comparisons give 0 or 1 here, a truth value there. */
static void
write_comparison(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const char *op = n->op->id == ET_OP_equal  ? "Equal"
                     : n->op->id == ET_OP_less ? "Less"
                                               : "LessOrEqual";
    const char *holds = ETI_ONNX_VALUE(o, op, in(o, n, 0), in(o, n, 1));
    eti_onnx_int(o, "to", ONNX_U8);
    ETI_ONNX_NODE(o, "Cast", out, holds);
}

static void
write_where(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    eti_onnx_int(o, "to", ONNX_BOOL);
    const char *holds = ETI_ONNX_VALUE(o, "Cast", in(o, n, 0));
    ETI_ONNX_NODE(o, "Where", out, holds, in(o, n, 1), in(o, n, 2));
}

/* ---- reductions ---- */

static void
write_reduction(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_reduce_attr *a = n->attr;
    const char *op = n->op->id == ET_OP_sum    ? "ReduceSum"
                     : n->op->id == ET_OP_amax ? "ReduceMax"
                                               : "ReduceMin";
    int64_t axes[ET_MAX_DIMS];
    int k = 0;
    for (int i = 0; i < desc(n, 0)->ndim; i++)
        if (a->axes == 0 || a->axes & 1u << i)
            axes[k++] = i;
    eti_onnx_int(o, "keepdims", a->keepdim);
    ETI_ONNX_NODE(o, op, out, in(o, n, 0), eti_onnx_vector(o, axes, k));
}

static void
write_axis(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_axis_attr *a = n->attr;
    eti_onnx_int(o, "axis", a->axis);
    switch (n->op->id) {
    case ET_OP_softmax:
        ETI_ONNX_NODE(o, "Softmax", out, in(o, n, 0));
        return;
    case ET_OP_log_softmax:
        ETI_ONNX_NODE(o, "LogSoftmax", out, in(o, n, 0));
        return;
    case ET_OP_take:
        ETI_ONNX_NODE(o, "Gather", out, in(o, n, 0), in(o, n, 1));
        return;
    default:
        ETI_ONNX_NODE(o, "GatherElements", out, in(o, n, 0), in(o, n, 1));
        return;
    }
}

static void
write_concat(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_axis_attr *a = n->attr;
    const char *parts[64];
    if (n->n_in > (int)(sizeof parts / sizeof *parts))
        eti_onnx_refuse(o, n, "of more than 64 arrays");
    for (int i = 0; i < n->n_in && i < 64; i++)
        parts[i] = in(o, n, i);
    eti_onnx_int(o, "axis", a->axis);
    eti_onnx_node(o, "Concat", parts, n->n_in > 64 ? 64 : n->n_in, out);
}

static void
write_pad(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_pad_attr *a = n->attr;
    int64_t pads[2 * ET_MAX_DIMS];
    int ndim = desc(n, 0)->ndim;
    for (int i = 0; i < ndim; i++) {
        pads[i] = a->before[i];
        pads[ndim + i] = a->after[i];
    }
    ETI_ONNX_NODE(o, "Pad", out, in(o, n, 0), eti_onnx_vector(o, pads, 2 * ndim),
                  eti_onnx_number(o, desc(n, 0)->dtype, a->value));
}

/* ---- products ---- */

/* NAME, of X's shape, with its last two axes exchanged where that is asked for. */
static const char *
transposed(struct eti_onnx *o, const struct et_desc *x, const char *name, bool really)
{
    int64_t axes[ET_MAX_DIMS];
    if (!really)
        return name;
    for (int i = 0; i < x->ndim; i++)
        axes[i] = i;
    axes[x->ndim - 2] = x->ndim - 1;
    axes[x->ndim - 1] = x->ndim - 2;
    eti_onnx_ints(o, "perm", axes, x->ndim);
    return ETI_ONNX_VALUE(o, "Transpose", name);
}

static void
write_matmul(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_matmul_attr *a = n->attr;
    const char *left = transposed(o, desc(n, 0), in(o, n, 0), a->trans_a);
    const char *right = transposed(o, desc(n, 1), in(o, n, 1), a->trans_b);
    if (n->n_in < 3 || !n->in[2]) {
        ETI_ONNX_NODE(o, "MatMul", out, left, right);
        return;
    }
    ETI_ONNX_NODE(o, "Add", out, ETI_ONNX_VALUE(o, "MatMul", left, right), in(o, n, 2));
}

/* Attributes that both kinds of convolution have. */
static void
convolution(struct eti_onnx *o, const struct et_conv2d_attr *a)
{
    eti_onnx_ints(o, "strides", (const int64_t[]){a->stride[0], a->stride[1]}, 2);
    eti_onnx_ints(o, "dilations", (const int64_t[]){a->dilation[0], a->dilation[1]}, 2);
    eti_onnx_ints(o, "pads",
                  (const int64_t[]){a->pad[0], a->pad[1], a->pad[0], a->pad[1]}, 4);
    eti_onnx_int(o, "group", a->groups);
}

static void
write_conv2d(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    convolution(o, n->attr);
    ETI_ONNX_NODE(o, "Conv", out, in(o, n, 0), in(o, n, 1), in(o, n, 2));
}

static void
write_transposed_conv2d(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_conv2d_attr *a = n->attr;
    int64_t more[2];
    for (int i = 0; i < 2; i++)
        more[i] = a->shape[2 + i] -
                  ((desc(n, 0)->shape[2 + i] - 1) * a->stride[i] - 2 * a->pad[i] +
                   a->dilation[i] * (desc(n, 1)->shape[2 + i] - 1) + 1);
    convolution(o, a);
    eti_onnx_ints(o, "output_padding", more, 2);
    ETI_ONNX_NODE(o, "ConvTranspose", out, in(o, n, 0), in(o, n, 1), in(o, n, 2));
}

/* 0 where a query sees a key, else -infinity: [T,S], one for all layers. */
static const char *
causal_mask(struct eti_onnx *o, const struct et_node *n, int64_t t, int64_t s)
{
    void *block;
    if (o->causal[0] == t && o->causal[1] == s)
        return "causal";
    if (o->causal[0]) {
        eti_onnx_refuse(o, n, "attentions of several lengths");
        return NULL;
    }
    et_status status = et_alloc(o->cx, (size_t)(t * s) * sizeof(float), &block);
    if (status != ET_OK) {
        o->status = o->status == ET_OK ? status : o->status;
        return NULL;
    }
    for (int64_t i = 0; i < t * s; i++)
        ((float *)block)[i] = i % s > i / s ? -INFINITY : 0;
    const char *mask = eti_onnx_array(o, ONNX_FLOAT, 2, (const int64_t[]){t, s}, block,
                                      (size_t)(t * s) * sizeof(float));
    et_free(o->cx, block);
    ETI_ONNX_NODE(o, "Identity", "causal", mask);
    o->causal[0] = t;
    o->causal[1] = s;
    return "causal";
}

static void
write_sdpa(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_sdpa_attr *a = n->attr;
    const char *keys = transposed(o, desc(n, 1), in(o, n, 1), true);
    const char *scale = eti_onnx_number(o, ET_F32, a->scale);
    const char *queries = ETI_ONNX_VALUE(o, "Mul", in(o, n, 0), scale);
    const char *s = ETI_ONNX_VALUE(o, "MatMul", queries, keys);
    if (n->n_in > 3 && n->in[3])
        s = ETI_ONNX_VALUE(o, "Add", s, in(o, n, 3));
    if (a->causal)
        s = ETI_ONNX_VALUE(
            o, "Add", s, causal_mask(o, n, desc(n, 0)->shape[2], desc(n, 1)->shape[2]));
    eti_onnx_int(o, "axis", 3);
    s = ETI_ONNX_VALUE(o, "Softmax", s);
    ETI_ONNX_NODE(o, "MatMul", out, s, in(o, n, 2));
}

/* ---- images ---- */

static void
write_pool(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_pool2d_attr *a = n->attr;
    bool max = n->op->id == ET_OP_max_pool2d;
    eti_onnx_ints(o, "kernel_shape", (const int64_t[]){a->kernel[0], a->kernel[1]}, 2);
    eti_onnx_ints(o, "strides", (const int64_t[]){a->stride[0], a->stride[1]}, 2);
    eti_onnx_ints(o, "pads",
                  (const int64_t[]){a->pad[0], a->pad[1], a->pad[0], a->pad[1]}, 4);
    eti_onnx_int(o, "ceil_mode", a->ceil_mode);
    if (max)
        eti_onnx_ints(o, "dilations", (const int64_t[]){a->dilation[0], a->dilation[1]},
                      2);
    else
        eti_onnx_int(o, "count_include_pad", a->count_include_pad);
    ETI_ONNX_NODE(o, max ? "MaxPool" : "AveragePool", out, in(o, n, 0));
}

static void
write_adaptive_pool(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_pool2d_attr *a = n->attr;
    const int64_t *x = desc(n, 0)->shape;
    if (a->shape[2] == 1 && a->shape[3] == 1) {
        ETI_ONNX_NODE(o, "GlobalAveragePool", out, in(o, n, 0));
        return;
    }
    if (x[2] % a->shape[2] || x[3] % a->shape[3]) {
        eti_onnx_refuse(o, n, "windows of different sizes");
        return;
    }
    const int64_t window[] = {x[2] / a->shape[2], x[3] / a->shape[3]};
    eti_onnx_ints(o, "kernel_shape", window, 2);
    eti_onnx_ints(o, "strides", window, 2);
    ETI_ONNX_NODE(o, "AveragePool", out, in(o, n, 0));
}

static void
write_resize(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_resize_attr *a = n->attr;
    bool linear = a->mode == ET_RESIZE_BILINEAR;
    for (int i = 0; i < 2; i++) {
        double whole = (double)desc(n, 0)->shape[2 + i] / (double)a->shape[2 + i];
        if (fabs(a->scale[i] - whole) > 1e-9 * whole)
            eti_onnx_refuse(o, n, "by a step that is not the ratio of the sizes");
    }
    eti_onnx_text(o, "mode", linear ? "linear" : "nearest");
    eti_onnx_text(o, "coordinate_transformation_mode",
                  linear ? "half_pixel" : "asymmetric");
    if (!linear)
        eti_onnx_text(o, "nearest_mode", "floor");
    eti_onnx_ints(o, "axes", (const int64_t[]){2, 3}, 2);
    ETI_ONNX_NODE(o, "Resize", out, in(o, n, 0), "", "",
                  eti_onnx_vector(o, (const int64_t[]){a->shape[2], a->shape[3]}, 2));
}

/* ---- norms ---- */

/* Ones or zeros of X's last AXES axes. */
static const char *
uniform(struct eti_onnx *o, const struct et_desc *x, int axes, double value)
{
    return ETI_ONNX_VALUE(o, "Expand", eti_onnx_number(o, ET_F32, value),
                          eti_onnx_vector(o, &x->shape[x->ndim - axes], axes));
}

static void
write_layer_norm(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_norm_attr *a = n->attr;
    const char *x = in(o, n, 0), *scale = in(o, n, 1);
    if (n->n_in > 3 && n->in[3])
        x = ETI_ONNX_VALUE(o, "Add", x, in(o, n, 3));
    if (!*scale)
        scale = uniform(o, desc(n, 0), a->axes, 1);
    eti_onnx_int(o, "axis", desc(n, 0)->ndim - a->axes);
    eti_onnx_float(o, "epsilon", a->eps);
    ETI_ONNX_NODE(o, "LayerNormalization", out, x, scale, in(o, n, 2));
}

/* Instance norm of [N,G,C/G ...], which has a scale for each group, then that of each
 * channel. */
static void
write_group_norm(struct eti_onnx *o, const struct et_node *n, const char *out)
{
    const struct et_norm_attr *a = n->attr;
    const struct et_desc *x = desc(n, 0), *other = &eti_onnx_other(o, n)->in[0]->desc;
    const int64_t groups[] = {0, a->groups, -1};
    int64_t channel[ET_MAX_DIMS];
    struct et_desc one = {.ndim = 1, .shape = {a->groups}};
    for (int i = 0; i < x->ndim - 1; i++)
        channel[i] = i == 0 ? x->shape[1] : 1;
    const char *y =
        ETI_ONNX_VALUE(o, "Reshape", in(o, n, 0), eti_onnx_vector(o, groups, 3));
    const char *ones = uniform(o, &one, 1, 1), *zeros = uniform(o, &one, 1, 0);
    eti_onnx_float(o, "epsilon", a->eps); /* of the next node */
    y = ETI_ONNX_VALUE(o, "InstanceNormalization", y, ones, zeros);
    y = ETI_ONNX_VALUE(o, "Reshape", y,
                       eti_onnx_shape(o, x->ndim, x->shape, other->shape, true));
    const char *shape = eti_onnx_vector(o, channel, x->ndim - 1);
    if (*in(o, n, 1))
        y = ETI_ONNX_VALUE(o, "Mul", y,
                           ETI_ONNX_VALUE(o, "Reshape", in(o, n, 1), shape));
    if (*in(o, n, 2))
        y = ETI_ONNX_VALUE(o, "Add", y,
                           ETI_ONNX_VALUE(o, "Reshape", in(o, n, 2), shape));
    ETI_ONNX_NODE(o, "Identity", out, y);
}

/* ---- the table ---- */

static const struct {
    enum et_op_id id;
    const char *name; /* of operations that take all operands as they are */
    write_fn *write;  /* of the others */
} table[] = {
    {ET_OP_reshape, NULL, write_reshape},
    {ET_OP_permute, NULL, write_permute},
    {ET_OP_expand, NULL, write_expand},
    {ET_OP_slice, NULL, write_slice},
    {ET_OP_detach, "Identity", NULL},
    {ET_OP_copy, "Identity", NULL},
    {ET_OP_fill, NULL, write_fill},
    {ET_OP_iota, NULL, write_iota},
    {ET_OP_neg, "Neg", NULL},
    {ET_OP_abs, "Abs", NULL},
    {ET_OP_sign, "Sign", NULL},
    {ET_OP_exp, "Exp", NULL},
    {ET_OP_log, "Log", NULL},
    {ET_OP_sin, "Sin", NULL},
    {ET_OP_cos, "Cos", NULL},
    {ET_OP_sqrt, "Sqrt", NULL},
    {ET_OP_rsqrt, NULL, write_rsqrt},
    {ET_OP_square, NULL, write_square},
    {ET_OP_reciprocal, "Reciprocal", NULL},
    {ET_OP_floor, "Floor", NULL},
    {ET_OP_relu, "Relu", NULL},
    {ET_OP_gelu, NULL, write_gelu},
    {ET_OP_gelu_tanh, NULL, write_gelu},
    {ET_OP_silu, NULL, write_silu},
    {ET_OP_sigmoid, "Sigmoid", NULL},
    {ET_OP_tanh, "Tanh", NULL},
    {ET_OP_softplus, "Softplus", NULL},
    {ET_OP_add_scalar, NULL, write_scalar},
    {ET_OP_mul_scalar, NULL, write_scalar},
    {ET_OP_pow_scalar, NULL, write_scalar},
    {ET_OP_clamp, NULL, write_clamp},
    {ET_OP_cast, NULL, write_cast},
    {ET_OP_add, "Add", NULL},
    {ET_OP_sub, "Sub", NULL},
    {ET_OP_mul, "Mul", NULL},
    {ET_OP_div, "Div", NULL},
    {ET_OP_maximum, "Max", NULL},
    {ET_OP_minimum, "Min", NULL},
    {ET_OP_equal, NULL, write_comparison},
    {ET_OP_less, NULL, write_comparison},
    {ET_OP_less_equal, NULL, write_comparison},
    {ET_OP_where, NULL, write_where},
    {ET_OP_sum, NULL, write_reduction},
    {ET_OP_amax, NULL, write_reduction},
    {ET_OP_amin, NULL, write_reduction},
    {ET_OP_softmax, NULL, write_axis},
    {ET_OP_log_softmax, NULL, write_axis},
    {ET_OP_take, NULL, write_axis},
    {ET_OP_gather, NULL, write_axis},
    {ET_OP_concat, NULL, write_concat},
    {ET_OP_pad, NULL, write_pad},
    {ET_OP_matmul, NULL, write_matmul},
    {ET_OP_conv2d, NULL, write_conv2d},
    {ET_OP_conv2d_grad_input, NULL, write_transposed_conv2d},
    {ET_OP_sdpa, NULL, write_sdpa},
    {ET_OP_max_pool2d, NULL, write_pool},
    {ET_OP_avg_pool2d, NULL, write_pool},
    {ET_OP_adaptive_avg_pool2d, NULL, write_adaptive_pool},
    {ET_OP_resize2d, NULL, write_resize},
    {ET_OP_layer_norm, NULL, write_layer_norm},
    {ET_OP_group_norm, NULL, write_group_norm},
};

void
eti_onnx_operation(struct eti_onnx *o, const struct et_node *n)
{
    const char *out = eti_onnx_name(o, &n->out[0]), *operand[4] = {0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].id != n->op->id)
            continue;
        if (table[i].write) {
            table[i].write(o, n, out);
            return;
        }
        for (int k = 0; k < n->n_in && k < 4; k++)
            operand[k] = in(o, n, k);
        eti_onnx_node(o, table[i].name, operand, n->n_in, out);
        return;
    }
    eti_onnx_refuse(o, n, "it has no operation for that");
}
