/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h: what the files of op families share.
 *
 * An op is three rules on descriptions and nodes: infer (what the results look like, or
 * a sentence saying why there are none), gradient (more nodes), flops. A builder only
 * puts operands and attributes together; whatever can be wrong is found by infer, so
 * that et_apply makes it stick to the graph. */
#ifndef ETI_OPS_H
#define ETI_OPS_H

#include <string.h>

#include "etude/graph.h"
#include "etude/op.h"

#define ET_OP(name, number) extern const struct et_op et_op_##name;
#include "etude/ops.def"
#undef ET_OP

/* Heads of the functions of a descriptor: every parameter, used or not. */
#define ETI_UNUSED __attribute__((unused))
#define ETI_INFER(function)                                                            \
    static et_status function(                                                         \
        ETI_UNUSED struct et_ctx *cx, const struct et_call *call,                      \
        ETI_UNUSED struct et_desc *out, ETI_UNUSED int64_t *view_offset)
#define ETI_GRADIENT(function)                                                         \
    static et_status function(struct et_graph *g,                                      \
                              ETI_UNUSED const struct et_node *node,                   \
                              ETI_UNUSED struct et_tensor *const *dy,                  \
                              const bool *want, struct et_tensor **dx)

/* Fails with "<op>: sentence". */
#define ETI_FAIL(cx, call, status, fmt, ...)                                           \
    ET_FAIL(cx, status, "%s: " fmt, et_op_get((call)->op)->name, __VA_ARGS__)

/* Applies an op to the operands listed; ATTR points to a zeroed and filled struct. */
#define ETI_LIST(...) ((struct et_tensor *const[]){__VA_ARGS__})
#define ETI_COUNT(...)                                                                 \
    ((int)(sizeof ETI_LIST(__VA_ARGS__) / sizeof(struct et_tensor *)))
#define ETI_APPLY(g, name, out, ...)                                                   \
    et_apply(g, ET_OP_##name, ETI_LIST(__VA_ARGS__), ETI_COUNT(__VA_ARGS__), NULL, 0,  \
             out)
#define ETI_APPLY_ATTR(g, name, attr, out, ...)                                        \
    et_apply(g, ET_OP_##name, ETI_LIST(__VA_ARGS__), ETI_COUNT(__VA_ARGS__), attr,     \
             sizeof *(attr), out)

/* What a function returns that needs its operands, one of which is NULL. Where the
 * graph has no error yet, the missing operand becomes its error, with the function's
 * name. */
#define ETI_MISSING(g, ...)                                                            \
    eti_missing(g, __func__, ETI_LIST(__VA_ARGS__), ETI_COUNT(__VA_ARGS__))
struct et_tensor *eti_missing(struct et_graph *g, const char *call,
                              struct et_tensor *const *in, int n);

enum { ETI_TEXT = 96 }; /* room for et_desc_text */

/* ---- for infer ---- */

/* Operand I, or NULL where it is left out. */
const struct et_desc *eti_operand(const struct et_call *call, int i);
/* Operand I must be there. WHAT names it: "weight". */
ET_NODISCARD et_status eti_need(struct et_ctx *cx, const struct et_call *call, int i,
                                const char *what);
ET_NODISCARD et_status eti_need_ndim(struct et_ctx *cx, const struct et_call *call,
                                     int i, const char *what, int low, int high);
ET_NODISCARD et_status eti_need_dtype(struct et_ctx *cx, const struct et_call *call,
                                      int i, const char *what, enum et_dtype dtype);
ET_NODISCARD et_status eti_need_float(struct et_ctx *cx, const struct et_call *call,
                                      int i, const char *what);
ET_NODISCARD et_status eti_need_shape(struct et_ctx *cx, const struct et_call *call,
                                      int i, const char *what, int ndim,
                                      const int64_t *shape);
/* The same for an operand that may be left out. */
ET_NODISCARD et_status eti_may_shape(struct et_ctx *cx, const struct et_call *call,
                                     int i, const char *what, int ndim,
                                     const int64_t *shape);
ET_NODISCARD et_status eti_need_axis(struct et_ctx *cx, const struct et_call *call,
                                     int i, int axis);

/* OUT: dense, in the axis order of the first dense operand that has the whole shape. */
ET_NODISCARD et_status eti_broadcast(struct et_ctx *cx, const struct et_call *call,
                                     enum et_dtype dtype, struct et_desc *out);
/* OUT: dense in the axis order of LIKE, of its shape. */
void eti_desc_same(struct et_desc *out, enum et_dtype dtype,
                   const struct et_desc *like);
/* What statistics and losses of DTYPE are kept in: F64 for F64, else F32. */
enum et_dtype eti_wide(enum et_dtype dtype);
/* For flops: of an operation that only moves, and one per element of operand 0. */
int64_t eti_flops_none(const struct et_call *call);
int64_t eti_flops_operand(const struct et_call *call);
/* Strides of OUT (shape given) as a view of X in row-major order of elements, if
 * any. */
bool eti_view_strides(const struct et_desc *x, struct et_desc *out);

/* ---- for builders and gradients ---- */

/* The same axis counted from the front; one that is not there stays as it is. */
int eti_axis(const struct et_tensor *x, int axis);
struct et_tensor *eti_sum_like(struct et_graph *g, struct et_tensor *x,
                               const struct et_tensor *like);
struct et_tensor *eti_reshape_like(struct et_graph *g, struct et_tensor *x,
                                   const struct et_tensor *like);
/* 4-d: channels-last; else X itself. */
struct et_tensor *eti_image(struct et_graph *g, struct et_tensor *x);
/* The convention: 4-d channels-last, everything else row-major. */
struct et_tensor *eti_standard(struct et_graph *g, struct et_tensor *x);
/* x [N,C,...] -> [C]: what an operand added per channel gets. */
struct et_tensor *eti_sum_channels(struct et_graph *g, struct et_tensor *x);
/* v [C] -> [1,C,1,...] of NDIM axes. */
struct et_tensor *eti_channel_view(struct et_graph *g, struct et_tensor *v, int ndim);
struct et_tensor *eti_slice_box(struct et_graph *g, struct et_tensor *x,
                                const struct et_slice_attr *box);
/* What the mean of et_cross_entropy divides by, as one number of DTYPE: the positions
 * that count, or what they or a dense target weigh. (loss.c) */
struct et_tensor *eti_total_weight(struct et_graph *g, struct et_tensor *target,
                                   struct et_tensor *weight, int64_t ignore_index,
                                   enum et_dtype dtype);

/* STATUS, which has been said, sticks to G, unless one does already. NULL.
 * (graph/build.c) */
struct et_tensor *eti_graph_fail(struct et_graph *g, et_status status);
/* As et_apply, of an operation that is described by OP: until G's reset.
 * (graph/build.c) */
struct et_tensor *eti_apply_op(struct et_graph *g, const struct et_op *op,
                               struct et_tensor *const *in, int n_in, const void *attr,
                               size_t attr_size, struct et_tensor **out);
/* What et_device_table.aligned_columns of G's device says. (graph/build.c) */
int64_t eti_aligned_columns(const struct et_graph *g);
/* X in the dtype that a product takes it in. (graph/autocast.c) */
struct et_tensor *eti_autocast_low(struct et_graph *g, struct et_tensor *x);
/* X in f32 where mixed precision has a norm or a loss take that: for one that is made
 * of element-wise operations. NULL stays NULL. (graph/autocast.c) */
struct et_tensor *eti_autocast_wide(struct et_graph *g, struct et_tensor *x);

/* A gradient that is zero everywhere: nothing is added to DX. */
ET_NODISCARD et_status eti_gradient_zero(struct et_graph *g, const struct et_node *node,
                                         struct et_tensor *const *dy, const bool *want,
                                         struct et_tensor **dx);

#endif
