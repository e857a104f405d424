/* SPDX-License-Identifier: Apache-2.0 */
/* edges.h: special values, and sizes about the tiles of kernels, for every op.
 *
 * edges.def has a row for each op and each form in which its operands are made: which
 * special values do not go through it, and why. A form (edges_forms.c) says how the
 * operands of some ops depend on a few sizes, and at which sizes a kernel goes over
 * from one loop to another. From these edges_run.c makes all cases:
 *
 *   one size a tile, or one less or one more, or 0 or 1, the others as usual
 *   one operand with one special value, in a few places or in all
 *
 * What the op does not take must be refused; what it takes has the reference's results:
 * NaN where that has NaN, infinity where that has the same, other numbers as near as
 * compare.c asks. */
#ifndef T_KERNELS_EDGES_H
#define T_KERNELS_EDGES_H

#include "t/kernels/families.h"

#define EDGE_KINDS(X)                                                                  \
    X(NOT_A_NUMBER, "NaN")                                                             \
    X(PLUS_INFINITY, "infinity")                                                       \
    X(MINUS_INFINITY, "-infinity")                                                     \
    X(INFINITIES, "infinities of both signs")                                          \
    X(MINUS_ZERO, "-0")                                                                \
    X(TINY, "denormals")                                                               \
    X(LARGEST, "the largest number")                                                   \
    X(LOWEST, "the lowest number")

enum edge_kind {
#define EDGE_KIND(name, text) EDGE_##name,
    EDGE_KINDS(EDGE_KIND)
#undef EDGE_KIND
        EDGE_KIND_COUNT
};

/* Operand NUMBER of those of floats has values of KIND. */
struct edge_special {
    enum edge_kind kind;
    bool everywhere;
    int operand;
};

/* One case while it is made. */
struct edge {
    struct trial t; /* its results are made from the op's own rules where n_out is 0 */
    union {
        struct et_scalar_attr scalar;
        struct et_cast_attr cast;
        struct et_shape_attr shape;
        struct et_reduce_attr reduce;
        struct et_axis_attr axis;
        struct et_matmul_attr matmul;
        struct et_matmul_fused_attr matmul_fused;
        struct et_conv2d_attr conv2d;
        struct et_conv2d_fused_attr conv2d_fused;
        struct et_sdpa_attr sdpa;
        struct et_pool2d_attr pool2d;
        struct et_resize_attr resize;
        struct et_norm_attr norm;
        struct et_cross_entropy_attr cross_entropy;
        struct et_copy_attr copy;
        struct et_pad_attr pad;
        struct et_flip_attr flip;
        struct et_dropout_attr dropout;
        struct et_random_attr random;
        struct et_image_batch_attr image_batch;
        struct et_fused_attr fused;
        int64_t pack[4]; /* struct et_pack_attr */
    } attr;
    const struct edge_special *special; /* NULL: usual numbers */
    int floats;                         /* operands of floats made so far */
    bool refused;                       /* by the op whose results are operands */
    char name[160];
};

enum { EDGE_SIZES = 3 };

struct edge_form {
    const char *sizes;                /* a letter for each */
    int64_t usual[EDGE_SIZES];        /* where special values are tried */
    const int64_t *tiles[EDGE_SIZES]; /* ends with 0 */
    void (*build)(struct bench *b, struct edge *e, const int64_t *n);
};

/* Those that the table names. */
#define EDGE(name, form, signs, refused, lacks)                                        \
    extern const struct edge_form edge_##form;
#define EDGE_NONE(name)
#define EDGE_BUT(name, form, operands, kinds, lenience, why)
#include "t/kernels/edges.def"
#undef EDGE
#undef EDGE_NONE
#undef EDGE_BUT

/* For forms. An operand of floats, filled; the same of f32; one of I32 whose elements
 * are indices into N elements, with some outside: -1, N, and the least and greatest
 * there are. */
struct operand *edge_operand(struct bench *b, struct edge *e, enum et_dtype dtype,
                             enum contents contents, enum layout layout, int ndim,
                             const int64_t *shape);
struct operand *edge_floats(struct bench *b, struct edge *e, enum contents contents,
                            enum layout layout, int ndim, const int64_t *shape);
struct operand *edge_indices(struct bench *b, int64_t n, int ndim,
                             const int64_t *shape);
/* Makes the results of T, of OP; false where the op refuses the operands. */
bool edge_results(struct bench *b, enum et_op_id op, struct trial *t);
/* The same, and computes them on the reference: operands of a gradient. */
void edge_compute(struct bench *b, struct edge *e, enum et_op_id op, struct trial *t);

/* The cases of b->op. */
cases_fn edges_of_op;

#endif
