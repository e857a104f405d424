/* SPDX-License-Identifier: Apache-2.0 */
/* array.h: arrays, positions and the ops of the reference device (private to it). */
#ifndef ETK_REF_ARRAY_H
#define ETK_REF_ARRAY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "etude/device.h"

struct etk_array {
    struct et_desc d;
    char *p; /* NULL: operand left out, or result nobody wants */
};

/* One prepared op. */
struct etk_ref {
    enum et_op_id op;
    const void *attr;
    int n_in, n_out;
    struct etk_array *in, *out;
    double *acc[4]; /* per output, where the op sums by scattering: zeros; see flush */
};

/* What the loops do for every element is inline, here and below: this device takes most
 * of the time of the tests, and that was most of its own. */

/* bf16 is the upper half of an f32. */
static inline double
etk_from_bf16(uint16_t bits)
{
    uint32_t whole = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &whole, sizeof v);
    return (double)v;
}

/* f16 has a sign, 5 bits of exponent (its bias is 15, a double's 1023) and 10 of
 * fraction (a double has 52). An exponent of 0 counts units of the smallest: it is read
 * as that of 1, whose leading 1 is taken off again. There is no branch in it, since
 * zeros come as they will. */
static inline double
etk_from_f16(uint16_t bits)
{
    unsigned exponent = bits >> 10 & 31, fraction = bits & 1023, small = exponent == 0;
    uint64_t widened = exponent == 31 ? 2047 : exponent + small + 1023 - 15;
    uint64_t whole = widened << 52 | (uint64_t)fraction << 42;
    double v;
    memcpy(&v, &whole, sizeof v);
    v -= small * 0x1p-14;
    memcpy(&whole, &v, sizeof v);
    whole |= (uint64_t)(bits & 0x8000) << 48;
    memcpy(&v, &whole, sizeof v);
    return v;
}

/* Elements as doubles. Offsets count elements. Absent arrays: get_or gives OTHERWISE,
 * set does nothing. Floats become integers by truncation, saturating; NaN becomes 0. */
static inline double
etk_get(const struct etk_array *a, int64_t offset)
{
    const void *p = a->p;
    switch (a->d.dtype) {
    case ET_F32:
        return ((const float *)p)[offset];
    case ET_F64:
        return ((const double *)p)[offset];
    case ET_BF16:
        return etk_from_bf16(((const uint16_t *)p)[offset]);
    case ET_F16:
        return etk_from_f16(((const uint16_t *)p)[offset]);
    case ET_I32:
        return ((const int32_t *)p)[offset];
    case ET_I64:
        return (double)((const int64_t *)p)[offset];
    case ET_U8:
        return ((const uint8_t *)p)[offset];
    default:
        return NAN;
    }
}
double etk_get_or(const struct etk_array *a, int64_t offset, double otherwise);
void etk_set(const struct etk_array *a, int64_t offset, double value);
/* One element, exactly where the dtypes agree or are both integer. */
void etk_move(const struct etk_array *dst, int64_t dst_offset,
              const struct etk_array *src, int64_t src_offset);
/* Sum of A times B over N positions from the offsets given, along one axis of each. */
double etk_dot(const struct etk_array *a, int64_t a_offset, int a_axis,
               const struct etk_array *b, int64_t b_offset, int b_axis, int64_t n);
int64_t etk_get_int(const struct etk_array *a, int64_t offset);
/* VALUE as DTYPE holds it. */
double etk_round(enum et_dtype dtype, double value);
/* What an index out of range reads: NaN, or 0 in an integer array. */
void etk_set_nothing(const struct etk_array *a, int64_t offset);

/* A walk over all positions of a shape in row-major order:
 *   for (struct etk_pos i = etk_begin(&d); !i.end; etk_next(&d, &i)) */
struct etk_pos {
    int64_t ix[ET_MAX_DIMS];
    int64_t n; /* positions passed: the row-major index */
    bool end;
};
static inline struct etk_pos
etk_begin(const struct et_desc *d)
{
    return (struct etk_pos){.end = et_desc_count(d) == 0};
}

static inline void
etk_next(const struct et_desc *d, struct etk_pos *i)
{
    i->n++;
    for (int axis = d->ndim - 1; axis >= 0; axis--) {
        if (++i->ix[axis] < d->shape[axis])
            return;
        i->ix[axis] = 0;
    }
    i->end = true;
}

static inline int64_t
etk_offset(const struct et_desc *d, const int64_t *ix)
{
    int64_t offset = 0;
    for (int i = 0; i < d->ndim; i++)
        offset += ix[i] * d->stride[i];
    return offset;
}

/* IX belongs to an array of NDIM axes that D is broadcast to: right-aligned, length 1
 * repeats. */
static inline int64_t
etk_offset_broadcast(const struct et_desc *d, int ndim, const int64_t *ix)
{
    int64_t offset = 0;
    for (int i = 0; i < d->ndim; i++)
        if (d->shape[i] != 1)
            offset += ix[i + ndim - d->ndim] * d->stride[i];
    return offset;
}

/* Of the N-th element in row-major order. */
int64_t etk_offset_linear(const struct et_desc *d, int64_t n);
/* Of element n, c, h, w. */
static inline int64_t
etk_offset4(const struct et_desc *d, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t *s = d->stride;
    return n * s[0] + c * s[1] + h * s[2] + w * s[3];
}

/* D with AXIS of length 1: walks everything but that axis. */
struct et_desc etk_without(const struct et_desc *d, int axis);

/* Stores acc[i] (row-major) into output i. */
void etk_flush(const struct etk_ref *r, int output);

/* Does A win over B? NaN wins over numbers; equals do not win. */
bool etk_wins(double a, double b);

/* Element functions, shared by the single ops and fused programs. x: the operands;
 * a, b: scalar attributes. NULL where OP is not one. */
typedef double etk_scalar_fn(const double *x, double a, double b);
etk_scalar_fn *etk_scalar(enum et_op_id op);
int etk_scalar_operands(enum et_op_id op);

/* Element-wise ops with a scalar function. */
void etk_ref_elementwise(const struct etk_ref *r);

/* Every other op with a kernel. */
/* clang-format off */
#define ETK_REF_LIST(X)                                                        \
    X(fill) X(iota) X(cast) X(fused)                                           \
    X(sum) X(amax) X(amin) X(sum_squares) X(segment_sum_squares)               \
    X(argmax) X(topk) X(sort) X(cumsum) X(matmul)                              \
    X(conv2d) X(conv2d_fused) X(conv2d_grad_input) X(conv2d_grad_weight)       \
    X(max_pool2d) X(avg_pool2d) X(adaptive_avg_pool2d) X(resize2d)             \
    X(batch_norm) X(batch_norm_grad) X(layer_norm) X(group_norm)               \
    X(softmax) X(softmax_grad) X(log_softmax) X(log_softmax_grad)              \
    X(cross_entropy) X(cross_entropy_grad)                                     \
    X(take) X(gather) X(copy) X(concat) X(pack) X(pad) X(flip) X(dropout)      \
    X(random) X(image_batch) X(image_augment)
/* Those of them that sum in acc. */
#define ETK_REF_ACC_LIST(X)                                                    \
    X(sdpa) X(sdpa_grad) X(max_pool2d_grad) X(avg_pool2d_grad)                 \
    X(adaptive_avg_pool2d_grad) X(resize2d_grad) X(layer_norm_grad)            \
    X(group_norm_grad) X(take_grad) X(scatter_add) X(matmul_fused)
/* clang-format on */

#define ETK_REF_DECLARE(name) void etk_ref_##name(const struct etk_ref *r);
ETK_REF_LIST(ETK_REF_DECLARE)
ETK_REF_ACC_LIST(ETK_REF_DECLARE)
#undef ETK_REF_DECLARE

#endif
