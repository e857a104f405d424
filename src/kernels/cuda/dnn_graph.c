/* SPDX-License-Identifier: Apache-2.0 */
/* dnn_graph.c: writing down a graph for cuDNN, its text, and its descriptors. */
#include "kernels/cuda/dnn.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/dnn_plan.h"

/* ---- writing ---- */

static int
add_tensor(struct etk_dnn_graph *g, cudnnDataType_t dtype, int ndim,
           const int64_t *shape, const int64_t *stride, int slot)
{
    if (g->n_tensors == ETK_DNN_TENSORS || ndim < 1 || ndim > CUDNN_DIM_MAX ||
        slot >= ETK_DNN_SLOTS) {
        g->overflow = true;
        return 0;
    }
    struct etk_dnn_tensor *t = &g->tensor[g->n_tensors];
    *t = (struct etk_dnn_tensor){.dtype = dtype, .ndim = ndim, .slot = slot};
    int64_t dense = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        t->shape[i] = shape ? shape[i] : 1;
        t->stride[i] = stride ? stride[i] : dense;
        dense *= t->shape[i];
    }
    return g->n_tensors++;
}

int
etk_dnn_tensor(struct etk_dnn_graph *g, cudnnDataType_t dtype, int ndim,
               const int64_t *shape, const int64_t *stride, int slot)
{
    return add_tensor(g, dtype, ndim, shape, stride, slot);
}

int
etk_dnn_virtual(struct etk_dnn_graph *g, cudnnDataType_t dtype, int ndim,
                const int64_t *shape)
{
    return add_tensor(g, dtype, ndim, shape, NULL, ETK_DNN_VIRTUAL);
}

int
etk_dnn_virtual_strided(struct etk_dnn_graph *g, cudnnDataType_t dtype, int ndim,
                        const int64_t *shape, const int64_t *stride)
{
    return add_tensor(g, dtype, ndim, shape, stride, ETK_DNN_VIRTUAL);
}

int
etk_dnn_value(struct etk_dnn_graph *g, int ndim, float value)
{
    int at = add_tensor(g, CUDNN_DATA_FLOAT, ndim, NULL, NULL, ETK_DNN_BY_VALUE);
    g->tensor[at].value = value;
    return at;
}

/* The operation of N inputs whose other fields are STEP's. */
static int
add_node(struct etk_dnn_graph *g, enum etk_dnn_kind kind,
         const struct etk_dnn_node *step, int a, int b, int c, int out)
{
    if (g->n_nodes == ETK_DNN_NODES) {
        g->overflow = true;
        return out;
    }
    struct etk_dnn_node *n = &g->node[g->n_nodes++];
    *n = *step;
    n->kind = kind;
    n->in[0] = a;
    n->in[1] = b;
    n->in[2] = c;
    n->out = out;
    return out;
}

int
etk_dnn_pointwise(struct etk_dnn_graph *g, cudnnPointwiseMode_t mode, int x, int b,
                  int t, int out)
{
    return add_node(g, ETK_DNN_POINTWISE, &(struct etk_dnn_node){.mode = (int)mode}, x,
                    b, t, out);
}

int
etk_dnn_index(struct etk_dnn_graph *g, int axis, int x, int out)
{
    struct etk_dnn_node step = {.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = axis};
    return add_node(g, ETK_DNN_POINTWISE, &step, x, ETK_DNN_NO_TENSOR,
                    ETK_DNN_NO_TENSOR, out);
}

int
etk_dnn_reduce(struct etk_dnn_graph *g, cudnnReduceTensorOp_t op, int x, int out)
{
    return add_node(g, ETK_DNN_REDUCTION, &(struct etk_dnn_node){.mode = (int)op}, x,
                    ETK_DNN_NO_TENSOR, ETK_DNN_NO_TENSOR, out);
}

int
etk_dnn_matmul(struct etk_dnn_graph *g, int a, int b, int out)
{
    return add_node(g, ETK_DNN_MATMUL, &(struct etk_dnn_node){0}, a, b,
                    ETK_DNN_NO_TENSOR, out);
}

int
etk_dnn_conv(struct etk_dnn_graph *g, enum etk_dnn_kind kind,
             const struct etk_dnn_node *step, int a, int b, int out)
{
    return add_node(g, kind, step, a, b, ETK_DNN_NO_TENSOR, out);
}

int
etk_dnn_reshape(struct etk_dnn_graph *g, int x, int out)
{
    return add_node(g, ETK_DNN_RESHAPE, &(struct etk_dnn_node){0}, x, ETK_DNN_NO_TENSOR,
                    ETK_DNN_NO_TENSOR, out);
}

int
etk_dnn_rng(struct etk_dnn_graph *g, int seed, int offset, double probability, int out)
{
    struct etk_dnn_node step = {.probability = probability};
    return add_node(g, ETK_DNN_RNG, &step, seed, offset, ETK_DNN_NO_TENSOR, out);
}

/* ---- text ---- */

struct text {
    char *at, *end;
};

static void
say(struct text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->at, (size_t)(t->end - t->at), fmt, args);
    va_end(args);
    t->at = n < t->end - t->at ? t->at + n : t->end;
}

static void
say_all(struct text *t, char letter, const int64_t *v, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "%c%lld", i ? ',' : letter, (long long)v[i]);
}

bool
etk_dnn_text(const struct etk_dnn_graph *g, char *text, size_t size)
{
    struct text t = {text, text + size};
    for (int i = 0; i < g->n_tensors; i++) {
        const struct etk_dnn_tensor *v = &g->tensor[i];
        say(&t, "t%d", (int)v->dtype);
        say_all(&t, ':', v->shape, v->ndim);
        say_all(&t, '/', v->stride, v->ndim);
        if (v->slot == ETK_DNN_BY_VALUE)
            say(&t, "=%a", (double)v->value);
        else
            say(&t, "@%d", v->slot);
        say(&t, "\n");
    }
    for (int i = 0; i < g->n_nodes; i++) {
        const struct etk_dnn_node *n = &g->node[i];
        say(&t, "n%d.%d.%d(%d,%d,%d)%d", (int)n->kind, n->mode, n->axis, n->in[0],
            n->in[1], n->in[2], n->out);
        say_all(&t, 'p', n->pad, 2);
        say_all(&t, 'q', n->post_pad, 2);
        say_all(&t, 's', n->stride, 2);
        say_all(&t, 'd', n->dilation, 2);
        say(&t, "b%a;%a\n", n->probability, (double)n->beta);
    }
    return t.at < t.end;
}

/* ---- descriptors ---- */

void
etk_dnn_drop(struct etk_dnn_descs *s)
{
    /* Last made, first freed: what refers to others goes before them. */
    while (s->n > 0)
        (void)cudnnBackendDestroyDescriptor(s->all[--s->n]);
}

/* A descriptor being filled in; the first failure stays. */
struct maker {
    struct etk_dnn_descs *descs;
    cudnnBackendDescriptor_t d;
    cudnnStatus_t status;
};

static void
begin(struct maker *m, cudnnBackendDescriptorType_t type)
{
    m->d = NULL;
    if (m->status != CUDNN_STATUS_SUCCESS)
        return;
    m->status = cudnnBackendCreateDescriptor(type, &m->d);
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->descs->all[m->descs->n++] = m->d;
}

static void
set(struct maker *m, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
    int64_t n, const void *value)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendSetAttribute(m->d, name, type, n, value);
}

static void
set_desc(struct maker *m, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t d)
{
    set(m, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d);
}

static void
set_dtype(struct maker *m, cudnnBackendAttributeName_t name, cudnnDataType_t dtype)
{
    set(m, name, CUDNN_TYPE_DATA_TYPE, 1, &dtype);
}

static cudnnBackendDescriptor_t
finish(struct maker *m)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendFinalize(m->d);
    return m->d;
}

static cudnnBackendDescriptor_t
make_tensor(struct maker *m, const struct etk_dnn_tensor *t, int number)
{
    int64_t uid = number + 1, align = ETK_DNN_ALIGN;
    bool is_virtual = t->slot == ETK_DNN_VIRTUAL,
         by_value = t->slot == ETK_DNN_BY_VALUE;
    begin(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(m, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set_dtype(m, CUDNN_ATTR_TENSOR_DATA_TYPE, t->dtype);
    set(m, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->ndim, t->shape);
    set(m, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->ndim, t->stride);
    set(m, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    set(m, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    set(m, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    return finish(m);
}

static cudnnDataType_t
precision_of(int mode)
{
    return mode == CUDNN_POINTWISE_GEN_INDEX ? CUDNN_DATA_INT32
           : mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_LOGICAL_NOT
               ? CUDNN_DATA_BOOLEAN
               : CUDNN_DATA_FLOAT;
}

/* What an operation is, beside its operands: NULL where it has no such descriptor. */
static cudnnBackendDescriptor_t
make_kind(struct maker *m, const struct etk_dnn_node *n)
{
    int64_t axis = n->axis, spatial = 2;
    cudnnPointwiseMode_t pointwise = (cudnnPointwiseMode_t)n->mode;
    cudnnReduceTensorOp_t reduce = (cudnnReduceTensorOp_t)n->mode;
    cudnnConvolutionMode_t cross = CUDNN_CROSS_CORRELATION;
    cudnnRngDistribution_t bernoulli = CUDNN_RNG_DISTRIBUTION_BERNOULLI;
    switch (n->kind) {
    case ETK_DNN_POINTWISE:
        begin(m, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        set(m, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &pointwise);
        set_dtype(m, CUDNN_ATTR_POINTWISE_MATH_PREC, precision_of(n->mode));
        if (n->mode == CUDNN_POINTWISE_GEN_INDEX)
            set(m, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
        break;
    case ETK_DNN_REDUCTION:
        begin(m, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
        set_dtype(m, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
        set(m, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
            &reduce);
        break;
    case ETK_DNN_MATMUL:
        begin(m, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
        set_dtype(m, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
        break;
    case ETK_DNN_CONV:
    case ETK_DNN_CONV_DATA:
    case ETK_DNN_CONV_FILTER:
        begin(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
        set(m, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
            &cross);
        set_dtype(m, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
        set(m, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
        set(m, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, n->dilation);
        set(m, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, n->stride);
        set(m, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, n->pad);
        set(m, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, n->post_pad);
        break;
    case ETK_DNN_RNG:
        begin(m, CUDNN_BACKEND_RNG_DESCRIPTOR);
        set(m, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1, &bernoulli);
        set(m, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, 1,
            &n->probability);
        break;
    case ETK_DNN_RESHAPE:
    case ETK_DNN_KINDS:
        return NULL;
    }
    return finish(m);
}

/* Where an operation of a kind has what; 0: nowhere. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t desc, in[3], out, alpha, beta;
} rows[ETK_DNN_KINDS] = {
    [ETK_DNN_POINTWISE] = {.type = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                           .desc = CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                           .in = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                  CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                  CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
                           .out = CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
    [ETK_DNN_REDUCTION] = {.type = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                           .desc = CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                           .in = {CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
                           .out = CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
    [ETK_DNN_MATMUL] = {.type = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                        .desc = CUDNN_ATTR_OPERATION_MATMUL_DESC,
                        .in = {CUDNN_ATTR_OPERATION_MATMUL_ADESC,
                               CUDNN_ATTR_OPERATION_MATMUL_BDESC},
                        .out = CUDNN_ATTR_OPERATION_MATMUL_CDESC},
    [ETK_DNN_CONV] = {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                      .desc = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                      .in = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
                      .out = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                      .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                      .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [ETK_DNN_CONV_DATA] =
        {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         .desc = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         .in = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
         .out = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
         .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [ETK_DNN_CONV_FILTER] =
        {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         .desc = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         .in = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
         .out = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    [ETK_DNN_RESHAPE] = {.type = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                         .in = {CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
                         .out = CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
    [ETK_DNN_RNG] = {.type = CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                     .desc = CUDNN_ATTR_OPERATION_RNG_DESC,
                     .in = {CUDNN_ATTR_OPERATION_RNG_SEED,
                            CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC},
                     .out = CUDNN_ATTR_OPERATION_RNG_YDESC},
};

/* TENSOR: the descriptors of the graph's tensors. */
static cudnnBackendDescriptor_t
make_node(struct maker *m, const struct etk_dnn_node *n,
          const cudnnBackendDescriptor_t *tensor)
{
    float one = 1;
    cudnnBackendDescriptor_t kind = make_kind(m, n);
    begin(m, rows[n->kind].type);
    if (rows[n->kind].desc)
        set_desc(m, rows[n->kind].desc, kind);
    for (int i = 0; i < 3; i++)
        if (n->in[i] != ETK_DNN_NO_TENSOR)
            set_desc(m, rows[n->kind].in[i], tensor[n->in[i]]);
    set_desc(m, rows[n->kind].out, tensor[n->out]);
    if (rows[n->kind].alpha) {
        set(m, rows[n->kind].alpha, CUDNN_TYPE_FLOAT, 1, &one);
        set(m, rows[n->kind].beta, CUDNN_TYPE_FLOAT, 1, &n->beta);
    }
    return finish(m);
}

cudnnStatus_t
etk_dnn_lower(const struct etk_dnn_graph *g, cudnnHandle_t handle,
              struct etk_dnn_descs *out)
{
    struct maker m = {.descs = out};
    cudnnBackendDescriptor_t tensor[ETK_DNN_TENSORS], node[ETK_DNN_NODES];
    out->n = 0;
    for (int i = 0; i < g->n_tensors; i++)
        tensor[i] = make_tensor(&m, &g->tensor[i], i);
    for (int i = 0; i < g->n_nodes; i++)
        node[i] = make_node(&m, &g->node[i], tensor);
    begin(&m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(&m, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_nodes,
        node);
    if (handle)
        set(&m, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    out->graph = finish(&m);
    return m.status;
}
