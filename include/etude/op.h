/* op.h: the operations a graph is built from.
 *
 * Letters: N C H W images, K out-channels, R S filter, B T D sequences, M N K matrices.
 * Every function appends a node and returns its value, or NULL when the graph already
 * holds an error or this call is wrong (which then sticks). Tensors passed are borrowed.
 * Results belong to the graph until its reset. Optional operands may be NULL.
 *
 * Element-wise results are dense in the axis order of their first operand of full shape;
 * convolution, pooling, resizing and batch norm of 4-d arrays are channels-last (they
 * copy an operand that is not); matmul, softmax and layer norm keep row-major order. */
#ifndef ETUDE_OP_H
#define ETUDE_OP_H

#include <stdint.h>

#include "etude/attr.h"
#include "etude/device.h"
#include "etude/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_graph;

/* A node: one use of an operation in a graph. */
struct et_node {
    const struct et_op *op;
    const void *attr;       /* op-specific struct, attr_size bytes; in the arena */
    size_t attr_size;
    int n_in, n_out;
    struct et_tensor **in;  /* NULL entries: optional operand left out */
    struct et_tensor *out;  /* n_out values */
    uint32_t id;            /* position in build order */
    uint32_t flags;         /* internal */
};

enum {
    ET_OPF_VIEW = 1,        /* result shares memory with input 0: no kernel */
    ET_OPF_ELEMENTWISE = 2, /* same shape in and out: fusable, may run in place */
    ET_OPF_EFFECT = 4,      /* writes a leaf: never dead */
    ET_OPF_IN_PLACE = 8,    /* output 0 may be operand 0, of the same description */
    ET_OPF_STRIDED = 16,    /* kernels write outputs of any strides */
};

/* What one op is: facts and rules, device-free. Attributes it does not list are none. */
struct et_op {
    const char *name, *summary;
    enum et_op_id id;
    int min_in, max_in; /* operands, the first min_in not optional; max_in -1 = any number */
    int n_out;
    size_t attr_size;   /* 0 for none; a variable-size attribute states its fixed part */
    uint32_t flags;     /* ET_OPF_* */

    /* Descriptions of the results from those of the operands. May say why not with
     * ET_FAIL. An absent operand has dtype ET_NONE. View ops also say at which element
     * of input 0 the view begins. */
    et_status (*infer)(struct et_ctx *cx, const struct et_call *call, struct et_desc *out,
                       int64_t *view_offset);

    /* Appends the gradient: DY[i] is the gradient of output i (NULL: none); fills DX[j]
     * for inputs whose WANT[j] is set. (optional: NULL = not differentiable) */
    et_status (*gradient)(struct et_graph *g, const struct et_node *node,
                          struct et_tensor *const *dy, const bool *want,
                          struct et_tensor **dx);

    /* Floating-point operations of one run. (optional: NULL = one per output element) */
    int64_t (*flops)(const struct et_call *call);
};

const struct et_op *et_op_get(enum et_op_id id);
const struct et_op *et_op_find(const char *name); /* NULL when there is none */

/* The generic form all functions below use: appends a node with N operands and the
 * attribute struct copied. Returns output 0; OUT (may be NULL) receives all outputs. */
struct et_tensor *et_apply(struct et_graph *g, enum et_op_id op, struct et_tensor *const *in,
                           int n_in, const void *attr, size_t attr_size,
                           struct et_tensor **out);

/* ---- constants and views ---- */
struct et_tensor *et_fill(struct et_graph *g, enum et_dtype dtype, int ndim,
                          const int64_t *shape, double value);
struct et_tensor *et_iota(struct et_graph *g, enum et_dtype dtype, int64_t n);
/* One length may be -1. Row-major order of elements is kept; a channels-last operand is
 * copied where the result cannot be a view. */
struct et_tensor *et_reshape(struct et_graph *g, struct et_tensor *x, int ndim,
                             const int64_t *shape);
struct et_tensor *et_permute(struct et_graph *g, struct et_tensor *x, const int *axes);
struct et_tensor *et_transpose(struct et_graph *g, struct et_tensor *x, int a, int b);
struct et_tensor *et_expand(struct et_graph *g, struct et_tensor *x, int ndim,
                            const int64_t *shape);
/* Elements start, start + step, ... (size of them) of one axis; negative axes from the end. */
struct et_tensor *et_slice(struct et_graph *g, struct et_tensor *x, int axis, int64_t start,
                           int64_t size, int64_t step);
struct et_tensor *et_detach(struct et_graph *g, struct et_tensor *x);

/* ---- element-wise ---- */
#define ET_UNARY_LIST(X)                                                       \
    X(neg) X(abs) X(sign) X(exp) X(log) X(sqrt) X(rsqrt) X(square) X(reciprocal) \
    X(floor) X(relu) X(gelu) X(gelu_tanh) X(silu) X(sigmoid) X(tanh) X(softplus)
#define ET_BINARY_LIST(X)                                                      \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(equal) X(less) X(less_equal)
#define ET_DECLARE_UNARY(name) struct et_tensor *et_##name(struct et_graph *g, struct et_tensor *x);
#define ET_DECLARE_BINARY(name)                                                \
    struct et_tensor *et_##name(struct et_graph *g, struct et_tensor *a, struct et_tensor *b);
ET_UNARY_LIST(ET_DECLARE_UNARY)
ET_BINARY_LIST(ET_DECLARE_BINARY)
struct et_tensor *et_add_scalar(struct et_graph *g, struct et_tensor *x, double a);
struct et_tensor *et_mul_scalar(struct et_graph *g, struct et_tensor *x, double a);
struct et_tensor *et_pow_scalar(struct et_graph *g, struct et_tensor *x, double a);
struct et_tensor *et_clamp(struct et_graph *g, struct et_tensor *x, double lo, double hi);
struct et_tensor *et_cast(struct et_graph *g, struct et_tensor *x, enum et_dtype dtype);
struct et_tensor *et_where(struct et_graph *g, struct et_tensor *cond, struct et_tensor *a,
                           struct et_tensor *b);

/* ---- reductions; AXES is a bit mask, 0 = all axes ---- */
struct et_tensor *et_sum(struct et_graph *g, struct et_tensor *x, uint32_t axes, bool keepdim);
struct et_tensor *et_mean(struct et_graph *g, struct et_tensor *x, uint32_t axes, bool keepdim);
struct et_tensor *et_amax(struct et_graph *g, struct et_tensor *x, uint32_t axes, bool keepdim);
struct et_tensor *et_amin(struct et_graph *g, struct et_tensor *x, uint32_t axes, bool keepdim);
struct et_tensor *et_var(struct et_graph *g, struct et_tensor *x, uint32_t axes, bool keepdim,
                         bool unbiased);
struct et_tensor *et_sum_squares(struct et_graph *g, struct et_tensor *x);
struct et_tensor *et_norm2(struct et_graph *g, struct et_tensor *x); /* of all elements */
struct et_tensor *et_argmax(struct et_graph *g, struct et_tensor *x, int axis);
/* The K largest of the last axis, descending; INDEX (may be NULL) receives I32. */
struct et_tensor *et_topk(struct et_graph *g, struct et_tensor *x, int64_t k,
                          struct et_tensor **index);
/* Sums X down to SHAPE: the gradient of broadcasting. */
struct et_tensor *et_sum_to(struct et_graph *g, struct et_tensor *x, int ndim,
                            const int64_t *shape);

/* ---- linear algebra ---- */
/* a [..., M, K] b [..., K, N] -> [..., M, N]; leading axes equal, or B has none. */
struct et_tensor *et_matmul(struct et_graph *g, struct et_tensor *a, struct et_tensor *b,
                            bool trans_a, bool trans_b);
/* x [..., I], w [O, I], bias [O]? -> [..., O] */
struct et_tensor *et_linear(struct et_graph *g, struct et_tensor *x, struct et_tensor *w,
                            struct et_tensor *bias);
/* x [N,C,H,W], w [K,C/groups,R,S], bias [K]? -> [N,K,P,Q]. O's SHAPE is ignored; 0 for
 * stride, dilation or groups means 1. */
struct et_tensor *et_conv2d(struct et_graph *g, struct et_tensor *x, struct et_tensor *w,
                            struct et_tensor *bias, const struct et_conv2d_attr *o);
/* x [N,K,P,Q], w [K,C/groups,R,S], bias [C]? -> [N,C,H,W] */
struct et_tensor *et_conv_transpose2d(struct et_graph *g, struct et_tensor *x,
                                      struct et_tensor *w, struct et_tensor *bias,
                                      const struct et_conv2d_attr *o);
/* softmax(scale q k^T + bias) v. q [B,H,T,D], k v [B,H,S,D], bias [1|B,H,1|T,S]? (constant:
 * it gets no gradient). SCALE 0 = 1/sqrt(D). */
struct et_tensor *et_sdpa(struct et_graph *g, struct et_tensor *q, struct et_tensor *k,
                          struct et_tensor *v, struct et_tensor *bias, bool causal,
                          double scale);

/* ---- images; in O, 0 for the stride means the kernel, for the dilation 1 ---- */
struct et_tensor *et_max_pool2d(struct et_graph *g, struct et_tensor *x,
                                const struct et_pool2d_attr *o);
struct et_tensor *et_avg_pool2d(struct et_graph *g, struct et_tensor *x,
                                const struct et_pool2d_attr *o);
struct et_tensor *et_adaptive_avg_pool2d(struct et_graph *g, struct et_tensor *x, int64_t height,
                                         int64_t width);
struct et_tensor *et_resize2d(struct et_graph *g, struct et_tensor *x, enum et_resize_mode mode,
                              int64_t height, int64_t width);

/* ---- normalisation ---- */
/* Training: y from the batch's statistics; MEAN and VAR (biased), [C], go to the caller. */
struct et_tensor *et_batch_norm(struct et_graph *g, struct et_tensor *x, struct et_tensor *gamma,
                                struct et_tensor *beta, double eps, struct et_tensor **mean,
                                struct et_tensor **var);
/* Evaluation: y from given statistics. */
struct et_tensor *et_batch_norm_eval(struct et_graph *g, struct et_tensor *x,
                                     struct et_tensor *gamma, struct et_tensor *beta,
                                     struct et_tensor *mean, struct et_tensor *var, double eps);
/* Over the last AXES axes. */
struct et_tensor *et_layer_norm(struct et_graph *g, struct et_tensor *x, struct et_tensor *gamma,
                                struct et_tensor *beta, int axes, double eps);
struct et_tensor *et_group_norm(struct et_graph *g, struct et_tensor *x, struct et_tensor *gamma,
                                struct et_tensor *beta, int groups, double eps);

/* ---- softmax and losses ---- */
struct et_tensor *et_softmax(struct et_graph *g, struct et_tensor *x, int axis);
struct et_tensor *et_log_softmax(struct et_graph *g, struct et_tensor *x, int axis);
enum et_reduction { ET_REDUCE_MEAN, ET_REDUCE_SUM, ET_REDUCE_NONE };
/* Soft cross entropy (spec/algorithms.md 1.8). logits [N,C,...]; target I32 [N,...] or f32
 * of the logits' shape; class weight [C]?. Mean: over positions not ignored; dense: times
 * P / sum(target). */
struct et_tensor *et_cross_entropy(struct et_graph *g, struct et_tensor *logits,
                                   struct et_tensor *target, struct et_tensor *weight,
                                   int64_t ignore_index, enum et_reduction reduction);
struct et_tensor *et_bce_with_logits(struct et_graph *g, struct et_tensor *logits,
                                     struct et_tensor *target, enum et_reduction reduction);
/* Index targets [N,...] as f32 [N,C,...]; negative targets give rows of zeros. */
struct et_tensor *et_one_hot(struct et_graph *g, struct et_tensor *target, int64_t classes);

/* ---- indexing and movement ---- */
struct et_tensor *et_take(struct et_graph *g, struct et_tensor *x, struct et_tensor *index,
                          int axis);
struct et_tensor *et_embedding(struct et_graph *g, struct et_tensor *weight,
                               struct et_tensor *index);
struct et_tensor *et_gather(struct et_graph *g, struct et_tensor *x, struct et_tensor *index,
                            int axis);
struct et_tensor *et_scatter_add(struct et_graph *g, struct et_tensor *src,
                                 struct et_tensor *index, int axis, int64_t n);
/* X itself where it already lies that way. */
struct et_tensor *et_contiguous(struct et_graph *g, struct et_tensor *x, enum et_format format);
struct et_tensor *et_concat(struct et_graph *g, struct et_tensor *const *x, int n, int axis);
struct et_tensor *et_pad(struct et_graph *g, struct et_tensor *x, const int64_t *before,
                         const int64_t *after, double value);
struct et_tensor *et_flip(struct et_graph *g, struct et_tensor *x, uint32_t axes);
/* N arrays at OFFSETS of a flat array of TOTAL elements, each in the order in which a
 * leaf of its shape lies in memory: 4-d channels-last, others row-major (one that lies
 * otherwise is copied). NULL entries leave zeros. */
struct et_tensor *et_pack(struct et_graph *g, struct et_tensor *const *x, const int64_t *offsets,
                          int n, int64_t total, enum et_dtype dtype);
/* Zeroes with probability P and scales the rest by 1/(1-p). RNG: I64 [2] = key, index of
 * the first sample; axis 0 of X is the sample. */
struct et_tensor *et_dropout(struct et_graph *g, struct et_tensor *x, struct et_tensor *rng,
                             double p, uint64_t ordinal);

#ifdef __cplusplus
}
#endif
#endif
