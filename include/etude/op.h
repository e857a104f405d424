/* SPDX-License-Identifier: Apache-2.0 */
/* op.h: the operations a graph is built from.
 *
 * Letters: N C H W images, K out-channels, R S filter, B T D sequences, M N K matrices.
 * Every function appends a node and returns its value, or NULL when the graph already
 * holds an error or this call is wrong, which then sticks. What is wrong is one of
 * ESHAPE, EDTYPE (operands must be floats of one dtype unless the comment says
 * otherwise; nothing is cast silently), and EINVAL: an attribute, or an operand that is
 * NULL, a leaf on another device, or a value of another graph or an earlier step. The
 * sentence counts operands from 1: "et_add: operand 2 is NULL".
 * Tensors passed are borrowed. Results belong to the graph until its reset. Operands
 * marked with ? are optional: they may be NULL.
 *
 * The result has the dtype of the operands where nothing else is said. An axis may be
 * given from the end: -1 is the last.
 *
 * Element-wise results are dense in the axis order of their first operand of full
 * shape; convolution, pooling, resizing and batch norm of 4-d arrays are channels-last
 * (they copy an operand that is not); matmul, softmax and layer norm keep row-major
 * order. */
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
    const void *attr; /* op-specific struct, attr_size bytes; in the arena */
    size_t attr_size;
    int n_in, n_out;
    struct et_tensor **in; /* NULL entries: optional operand left out */
    struct et_tensor *out; /* n_out values */
    uint32_t id;           /* position in build order */
    uint32_t flags;        /* internal */
};

enum {
    ET_OPF_VIEW = 1,        /* result shares memory with input 0: no kernel */
    ET_OPF_ELEMENTWISE = 2, /* same shape in and out: fusable, may run in place */
    ET_OPF_EFFECT = 4,      /* writes a leaf: never dead */
    ET_OPF_IN_PLACE = 8,    /* output 0 may be operand 0, of the same description */
    ET_OPF_STRIDED = 16,    /* kernels write outputs of any strides */
    ET_OPF_PRODUCT = 32,    /* sums of products: what matrix units are for */
};

/* What one op is: facts and rules, device-free. Attributes not listed are none. */
struct et_op {
    const char *name, *summary;
    enum et_op_id id;
    int min_in, max_in; /* operands; the first min_in must be there, max_in -1: any */
    int n_out;
    size_t attr_size; /* 0 for none; a variable-size attribute states its fixed part */
    uint32_t flags;   /* ET_OPF_* */

    /* Descriptions of the results from those of the operands. May say why not with
     * ET_FAIL. An absent operand has dtype ET_NONE. View ops also say at which element
     * of input 0 the view begins. */
    et_status (*infer)(struct et_ctx *cx, const struct et_call *call,
                       struct et_desc *out, int64_t *view_offset);

    /* Appends the gradient: DY[i] is the gradient of output i (NULL: none); fills DX[j]
     * for inputs whose WANT[j] is set. (optional: NULL = not differentiable) */
    et_status (*gradient)(struct et_graph *g, const struct et_node *node,
                          struct et_tensor *const *dy, const bool *want,
                          struct et_tensor **dx);

    /* Floating-point operations of one run. (optional: one per output element) */
    int64_t (*flops)(const struct et_call *call);
    /* Bytes read and written by one run. (optional: all operands and results, once) */
    int64_t (*bytes)(const struct et_call *call);
};

const struct et_op *et_op_get(enum et_op_id id);  /* every id of ops.def has one */
const struct et_op *et_op_find(const char *name); /* NULL when there is none */

/* The generic form all functions below use: appends a node with N operands and the
 * attribute struct copied. Returns output 0; OUT (may be NULL) receives all outputs. */
struct et_tensor *et_apply(struct et_graph *g, enum et_op_id op,
                           struct et_tensor *const *in, int n_in, const void *attr,
                           size_t attr_size, struct et_tensor **out);

/* ---- constants and views ---- */
/* VALUE everywhere, of any dtype. */
struct et_tensor *et_fill(struct et_graph *g, enum et_dtype dtype, int ndim,
                          const int64_t *shape, double value);
/* 0, 1, ... N - 1, of any dtype: [N]. */
struct et_tensor *et_iota(struct et_graph *g, enum et_dtype dtype, int64_t n);
/* The same elements, of any dtype, in another shape. One length may be -1. Row-major
 * order of elements is kept; a channels-last operand is copied where the result cannot
 * be a view. */
struct et_tensor *et_reshape(struct et_graph *g, struct et_tensor *x, int ndim,
                             const int64_t *shape);
/* A view, of any dtype, whose axis i is axis AXES[i] of X; AXES has as many entries as
 * X has axes, each of them once. */
struct et_tensor *et_permute(struct et_graph *g, struct et_tensor *x, const int *axes);
/* The same with axes A and B exchanged. */
struct et_tensor *et_transpose(struct et_graph *g, struct et_tensor *x, int a, int b);
/* A view, of any dtype, in which new axes in front and axes of length 1 repeat. */
struct et_tensor *et_expand(struct et_graph *g, struct et_tensor *x, int ndim,
                            const int64_t *shape);
/* A view, of any dtype, of the SIZE elements START, START + STEP, ... of one axis; STEP
 * is at least 1. */
struct et_tensor *et_slice(struct et_graph *g, struct et_tensor *x, int axis,
                           int64_t start, int64_t size, int64_t step);
/* The same value, through which no gradient passes. */
struct et_tensor *et_detach(struct et_graph *g, struct et_tensor *x);

/* ---- element-wise ----
 * Shapes broadcast by NumPy's rules: aligned at the last axis, length 1 repeats.
 *
 *   one operand    what the names say; gelu has the erf form, gelu_tanh its tanh
 *                  approximation, softplus is log(1 + e^x); sin and cos take radians
 *   two operands   add, sub, mul, maximum, minimum: any one dtype; div: floats;
 *                  equal, less, less_equal: any one dtype, the result is U8 0 or 1 and
 *                  has no gradient */
#define ET_OP(name, number)
#define ET_OP_UNARY(name, number)                                                      \
    struct et_tensor *et_##name(struct et_graph *g, struct et_tensor *x);
#define ET_OP_BINARY(name, number)                                                     \
    struct et_tensor *et_##name(struct et_graph *g, struct et_tensor *a,               \
                                struct et_tensor *b);
#include "etude/ops.def"
#undef ET_OP
/* x + a, a x, x^a with a number that is part of the plan: one that changes from step to
 * step is a leaf, or each step needs a plan of its own. */
struct et_tensor *et_add_scalar(struct et_graph *g, struct et_tensor *x, double a);
struct et_tensor *et_mul_scalar(struct et_graph *g, struct et_tensor *x, double a);
struct et_tensor *et_pow_scalar(struct et_graph *g, struct et_tensor *x, double a);
/* X kept inside [LO, HI]. EINVAL unless LO <= HI. */
struct et_tensor *et_clamp(struct et_graph *g, struct et_tensor *x, double lo,
                           double hi);
/* From any dtype to any; X itself where it has that dtype. */
struct et_tensor *et_cast(struct et_graph *g, struct et_tensor *x, enum et_dtype dtype);
/* A where COND (U8 or a float) is not 0, else B; the three broadcast. */
struct et_tensor *et_where(struct et_graph *g, struct et_tensor *cond,
                           struct et_tensor *a, struct et_tensor *b);

/* ---- reductions ----
 * AXES is a bit mask, bit i = axis i; 0 = all axes. With KEEPDIM the reduced axes stay,
 * with length 1. */
struct et_tensor *et_sum(struct et_graph *g, struct et_tensor *x, uint32_t axes,
                         bool keepdim);
struct et_tensor *et_mean(struct et_graph *g, struct et_tensor *x, uint32_t axes,
                          bool keepdim);
/* Their gradient is shared equally among equals. */
struct et_tensor *et_amax(struct et_graph *g, struct et_tensor *x, uint32_t axes,
                          bool keepdim);
struct et_tensor *et_amin(struct et_graph *g, struct et_tensor *x, uint32_t axes,
                          bool keepdim);
/* The variance; UNBIASED: divided by one less than the elements reduced. */
struct et_tensor *et_var(struct et_graph *g, struct et_tensor *x, uint32_t axes,
                         bool keepdim, bool unbiased);
/* Of all elements: a scalar, F32 (F64 for F64 operands). */
struct et_tensor *et_sum_squares(struct et_graph *g, struct et_tensor *x);
struct et_tensor *et_norm2(struct et_graph *g, struct et_tensor *x);
/* Of each of S stretches along axis 0 of x [R, ...]: stretch i is the rows FIRST[i] to
 * FIRST[i + 1] - 1. FIRST: I32 [S + 1], ascending; what of it lies outside of x is cut
 * off. -> [S], F32 (F64 for F64 operands). It has no gradient. */
struct et_tensor *et_segment_sum_squares(struct et_graph *g, struct et_tensor *x,
                                         struct et_tensor *first);
/* Where the largest lies along AXIS, which goes: I32, the first of equals. */
struct et_tensor *et_argmax(struct et_graph *g, struct et_tensor *x, int axis);
/* The K largest of the last axis, descending; INDEX (may be NULL) receives their
 * places, I32. EINVAL unless 1 <= K <= that axis. */
struct et_tensor *et_topk(struct et_graph *g, struct et_tensor *x, int64_t k,
                          struct et_tensor **index);
/* X along AXIS in ascending order, or descending; equals stay in their order, NaN
 * counts as the largest. INDEX (may be NULL) receives the places that the elements had,
 * I32. */
struct et_tensor *et_sort(struct et_graph *g, struct et_tensor *x, int axis,
                          bool descending, struct et_tensor **index);
/* y[.., j, ..] = the sum of x[.., i, ..] for i <= j along AXIS; REVERSE: for i >= j. */
struct et_tensor *et_cumsum(struct et_graph *g, struct et_tensor *x, int axis,
                            bool reverse);
/* Sums X down to SHAPE, which broadcasts to X's: the gradient of broadcasting. */
struct et_tensor *et_sum_to(struct et_graph *g, struct et_tensor *x, int ndim,
                            const int64_t *shape);

/* ---- linear algebra ---- */
/* a [..., M, K] b [..., K, N] -> [..., M, N]; leading axes equal, or B has none.
 * TRANS_A, TRANS_B: that operand's last two axes are given the other way round. */
struct et_tensor *et_matmul(struct et_graph *g, struct et_tensor *a,
                            struct et_tensor *b, bool trans_a, bool trans_b);
/* x [..., I], w [O, I], bias? [O] -> [..., O]. On a GPU, of many rows, where O is 1,024
 * or more and no multiple of 64, the result is a view of an array whose rows are
 * longer: what multiplies it, and its gradient, then reads aligned rows. */
struct et_tensor *et_linear(struct et_graph *g, struct et_tensor *x,
                            struct et_tensor *w, struct et_tensor *bias);
/* Products of N arrays, 1 to 16, summed over axes by name, as NumPy's einsum: EQUATION
 * has a letter for each axis of each operand, and for each axis of the result behind
 * "->", "bij,bjk->bik"; spaces count nothing. One letter has one length. Letters that
 * the result lacks are summed over; a letter that an operand has twice takes its
 * diagonal. Without "->" the result has the letters that occur once, in the alphabet's
 * order. Operands are multiplied from the left to the right, and no product on the way
 * may have more than ET_MAX_DIMS axes. There is no ellipsis. What is wrong (EINVAL,
 * ESHAPE) is told with its place in EQUATION. */
struct et_tensor *et_einsum(struct et_graph *g, const char *equation,
                            struct et_tensor *const *x, int n);
/* x [N,C,H,W], w [K,C/groups,R,S], bias? [K] -> [N,K,P,Q]. O's SHAPE is ignored; 0 for
 * stride, dilation or groups means 1. */
struct et_tensor *et_conv2d(struct et_graph *g, struct et_tensor *x,
                            struct et_tensor *w, struct et_tensor *bias,
                            const struct et_conv2d_attr *o);
/* x [N,K,P,Q], w [K,C/groups,R,S], bias? [C] -> [N,C,H,W] */
struct et_tensor *et_conv_transpose2d(struct et_graph *g, struct et_tensor *x,
                                      struct et_tensor *w, struct et_tensor *bias,
                                      const struct et_conv2d_attr *o);
/* softmax(scale q k^T + bias) v. q [B,H,T,D], k v [B,H,S,D], bias? [1|B,H,1|T,S]
 * (constant: it gets no gradient) -> [B,H,T,D]. CAUSAL: position i sees positions <= i.
 * A query that sees no key, for the bias is -infinity at all, gives 0 and has a
 * gradient of 0, as in PyTorch. SCALE 0 = 1/sqrt(D). */
struct et_tensor *et_sdpa(struct et_graph *g, struct et_tensor *q, struct et_tensor *k,
                          struct et_tensor *v, struct et_tensor *bias, bool causal,
                          double scale);

/* ---- images ----
 * [N,C,H,W] -> [N,C,P,Q]. In O, 0 for the stride means the kernel, for the dilation 1;
 * the padding is at most half the kernel (EINVAL). */
/* The length that O makes of AXIS, 0 for the height, of SIZE pixels; below 1: its
 * window does not fit. O has no zeros for its stride and dilation. */
int64_t et_pooled_size(const struct et_pool2d_attr *o, int axis, int64_t size);
/* Padding never wins. */
struct et_tensor *et_max_pool2d(struct et_graph *g, struct et_tensor *x,
                                const struct et_pool2d_attr *o);
/* ENOTSUP for a dilation. */
struct et_tensor *et_avg_pool2d(struct et_graph *g, struct et_tensor *x,
                                const struct et_pool2d_attr *o);
/* The means of HEIGHT x WIDTH windows that divide the image evenly. */
struct et_tensor *et_adaptive_avg_pool2d(struct et_graph *g, struct et_tensor *x,
                                         int64_t height, int64_t width);

/* X at another size, by the nearest pixel or bilinearly. */
struct et_tensor *et_resize2d(struct et_graph *g, struct et_tensor *x,
                              enum et_resize_mode mode, int64_t height, int64_t width);
/* The same, where a step of one pixel in the result is one of STEP pixels in X,
 * whatever the sizes come to: PyTorch's interpolate with a scale_factor of 1 / STEP. */
struct et_tensor *et_resize2d_by(struct et_graph *g, struct et_tensor *x,
                                 enum et_resize_mode mode, int64_t height,
                                 int64_t width, double step);

/* ---- between ranks ---- */
/* The sum over the ranks of the graph's communicator (graph.h) of WEIGHT X, the same on
 * each: X of F32 or F64, WEIGHT F32 [1], NULL = 1. A rank with the weight 0 adds zeros,
 * whatever X holds. Other work of the evaluation goes on meanwhile; all ranks build the
 * same ones in the same order. An evaluation where another rank fails gives EPEER; only
 * devices that work in the host's memory have it. */
struct et_tensor *et_all_reduce(struct et_graph *g, struct et_tensor *x,
                                struct et_tensor *weight);

/* ---- normalisation: y = gamma (x - mean) / sqrt(var + eps) + beta ----
 * Statistics are F32 (F64 for F64 operands) whatever X is. */
/* Over all axes of X [N,C], [N,C,L] or [N,C,H,W] but C; gamma? beta? [C]. Training:
 * from the batch's statistics; MEAN and VAR (biased), [C], go to the caller. */
struct et_tensor *et_batch_norm(struct et_graph *g, struct et_tensor *x,
                                struct et_tensor *gamma, struct et_tensor *beta,
                                double eps, struct et_tensor **mean,
                                struct et_tensor **var);
/* Evaluation: from the statistics given, [C]. */
struct et_tensor *et_batch_norm_eval(struct et_graph *g, struct et_tensor *x,
                                     struct et_tensor *gamma, struct et_tensor *beta,
                                     struct et_tensor *mean, struct et_tensor *var,
                                     double eps);
/* Over the last AXES axes, whose shape gamma? and beta? have. */
struct et_tensor *et_layer_norm(struct et_graph *g, struct et_tensor *x,
                                struct et_tensor *gamma, struct et_tensor *beta,
                                int axes, double eps);
/* Of X [N,C,...] over each sample's GROUPS stretches of channels; gamma? beta? [C].
 * EINVAL unless GROUPS divides C. */
struct et_tensor *et_group_norm(struct et_graph *g, struct et_tensor *x,
                                struct et_tensor *gamma, struct et_tensor *beta,
                                int groups, double eps);

/* ---- softmax and losses ---- */
struct et_tensor *et_softmax(struct et_graph *g, struct et_tensor *x, int axis);
struct et_tensor *et_log_softmax(struct et_graph *g, struct et_tensor *x, int axis);
enum et_reduction { ET_REDUCE_MEAN = 0, ET_REDUCE_SUM = 1, ET_REDUCE_NONE = 2 };
/* Cross entropy of logits [N,C,...] with a target that is an index I32 [N,...] or dense
 * f32 of the logits' shape, WEIGHT? [C] of the classes; P positions [N,...]:
 *
 *   index   l = -w[t] log_softmax(z)[t]; 0 where t is IGNORE_INDEX; NaN, as its
 *           gradient is, where t is another number that is no class
 *   dense   l = -sum over c of w[c] t[c] log_softmax(z)[c]
 *
 * NONE: l [N,...]. SUM: of all l. MEAN: that sum over the positions not ignored (their
 * weights, where there are any), dense over the sum of the target. Source: Composer's
 * soft_cross_entropy. */
struct et_tensor *et_cross_entropy(struct et_graph *g, struct et_tensor *logits,
                                   struct et_tensor *target, struct et_tensor *weight,
                                   int64_t ignore_index, enum et_reduction reduction);
/* Of each element with a target in [0, 1] of the same shape and dtype; MEAN over all
 * elements. */
struct et_tensor *et_bce_with_logits(struct et_graph *g, struct et_tensor *logits,
                                     struct et_tensor *target,
                                     enum et_reduction reduction);
/* Index targets I32 [N,...] as f32 [N,C,...]; negative targets give rows of zeros. */
struct et_tensor *et_one_hot(struct et_graph *g, struct et_tensor *target,
                             int64_t classes);

/* ---- indexing and movement ----
 * X may be of any dtype, INDEX is I32. An index outside the axis reads NaN (0 in
 * integer arrays) and adds nothing. */
/* Whole slices: y[.., j.., ..] = x[.., index[j..], ..]; INDEX has any shape, which
 * takes the place of AXIS. */
struct et_tensor *et_take(struct et_graph *g, struct et_tensor *x,
                          struct et_tensor *index, int axis);
/* weight [V,D], index [...] -> [...,D] */
struct et_tensor *et_embedding(struct et_graph *g, struct et_tensor *weight,
                               struct et_tensor *index);
/* Element by element: y[.., j, ..] = x[.., index[.., j, ..], ..]; INDEX has X's shape
 * but for AXIS. */
struct et_tensor *et_gather(struct et_graph *g, struct et_tensor *x,
                            struct et_tensor *index, int axis);
/* The gradient of gather: zeros, N along AXIS, to which each float of SRC is added
 * where INDEX, of SRC's shape, says. */
struct et_tensor *et_scatter_add(struct et_graph *g, struct et_tensor *src,
                                 struct et_tensor *index, int axis, int64_t n);
/* X dense in FORMAT (channels-last: 4-d only); X itself where it lies that way. */
struct et_tensor *et_contiguous(struct et_graph *g, struct et_tensor *x,
                                enum et_format format);
/* N arrays of one dtype, and one shape but for AXIS, one after the other along it. */
struct et_tensor *et_concat(struct et_graph *g, struct et_tensor *const *x, int n,
                            int axis);
/* VALUE around X: BEFORE[i] and AFTER[i] elements of axis i, 0 or more. */
struct et_tensor *et_pad(struct et_graph *g, struct et_tensor *x, const int64_t *before,
                         const int64_t *after, double value);
/* The axes of the mask AXES in reverse. */
struct et_tensor *et_flip(struct et_graph *g, struct et_tensor *x, uint32_t axes);
/* N arrays, cast to DTYPE, at OFFSETS of a flat array of TOTAL elements, each in the
 * order in which a leaf of its shape lies in memory: 4-d channels-last, others
 * row-major (one that lies otherwise is copied). NULL entries leave zeros. EINVAL: two
 * lie over each other. */
struct et_tensor *et_pack(struct et_graph *g, struct et_tensor *const *x,
                          const int64_t *offsets, int n, int64_t total,
                          enum et_dtype dtype);
/* Zeroes with probability P in [0, 1) and scales the rest by 1/(1-p) (arXiv 1207.0580).
 * RNG: I64 [2] = key (et_rng_key), index of the first sample; axis 0 of X is the
 * sample. ORDINAL tells the dropouts of one model apart. P 0: X itself. */
struct et_tensor *et_dropout(struct et_graph *g, struct et_tensor *x,
                             struct et_tensor *rng, double p, uint64_t ordinal);
/* Random numbers F32 of SHAPE, whose axis 0 is the sample. RNG: I64 [2] = key
 * (et_rng_key), index of the first sample. What a sample gets is a function of key,
 * sample and ORDINAL, which tells the draws and the dropouts of one model apart: the
 * same in whatever batch, microbatch or rank it is. They have no gradient. Multiples of
 * 2^-24 in [0, 1), the same bits on every device: */
struct et_tensor *et_random_uniform(struct et_graph *g, struct et_tensor *rng,
                                    uint64_t ordinal, int ndim, const int64_t *shape);
/* Mean 0 and variance 1, none beyond 5.8; devices differ in rounding. */
struct et_tensor *et_random_normal(struct et_graph *g, struct et_tensor *rng,
                                   uint64_t ordinal, int ndim, const int64_t *shape);
/* 1 with probability P in [0, 1], else 0; the same on every device. */
struct et_tensor *et_random_bernoulli(struct et_graph *g, struct et_tensor *rng,
                                      double p, uint64_t ordinal, int ndim,
                                      const int64_t *shape);
/* Frames of HEIGHT x WIDTH on raw images, byte by byte through a table: raw U8
 * [S,C,R,Q], frames I32 [N,ET_FRAME_NUMBERS] (enum et_frame_number, in attr.h), table
 * [C,256] -> [N,C,HEIGHT,WIDTH] of the table's dtype. No gradient.
 *
 *   y[n,c,i,j] = table[c][raw[s,c,Y,X]]    Y = y + i, X = x + j
 *                                          (flipped: X = x + WIDTH - 1 - j)
 *
 * and table[c][0] where row Y or column X is not seen. A sample outside of [0,S) reads
 * NaN. A cast to BF16 or F16 that alone reads it is made by it: no f32 is written. */
struct et_tensor *et_image_batch(struct et_graph *g, struct et_tensor *raw,
                                 struct et_tensor *frames, struct et_tensor *table,
                                 int64_t height, int64_t width);
/* The same of pictures that are resized, turned and changed too: raw U8 [S,C,R,Q] of at
 * most four channels, rows I32 [N,ET_SHOWN_NUMBERS + k ET_CHANGE_NUMBERS] (struct
 * et_shown, in attr.h, and k <= ET_MAX_CHANGES changes), table [C,256] ->
 * [N,C,HEIGHT,WIDTH] of the table's dtype. No gradient.
 *
 *   y[n,c,i,j] = table[c][p(i,j)[c]],  p = change_m(... change_1(show(raw[s])))
 *
 * Every step in between is a byte, as on the host (et_loader_next), and computed as
 * there. Rows may hold anything: what they say of pixels that are not there is black.
 */
struct et_tensor *et_image_augment(struct et_graph *g, struct et_tensor *raw,
                                   struct et_tensor *rows, struct et_tensor *table,
                                   int64_t height, int64_t width);

#ifdef __cplusplus
}
#endif
#endif
