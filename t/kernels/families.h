/* SPDX-License-Identifier: Apache-2.0 */
/* families.h: the cases of op families that cases.c lists; private to the harness. */
#ifndef T_KERNELS_FAMILIES_H
#define T_KERNELS_FAMILIES_H

#include "kernels/ref/ref.h"
#include "t/kernels/cases.h"
#include "t/kernels/compare.h"

typedef void cases_fn(struct bench *b);

/* A trial of the element-wise op b->op with O, where it has such attributes; what its
 * operands may hold to stay where it is defined. */
struct trial element_trial(struct bench *b, const struct et_scalar_attr *o);
struct et_scalar_attr scalars_of(enum et_op_id op);
enum contents contents_of(enum et_op_id op);

/* What draws are keyed by: a key that no double holds, and the first sample. */
struct operand *draw_key(struct bench *b);
/* The number in [0, 1) that is drawn for element 0 of sample 0 there. */
double first_drawn(const struct operand *key, uint32_t ordinal);

/* Calls CASES for each op of ops.def, or only for those named in ONLY. */
void cases_each(struct bench *b, int n, char *const *only, cases_fn *cases);

cases_fn cases_matmul_fused;
cases_fn cases_reduce, cases_sum_squares, cases_segments, cases_argmax, cases_topk,
    cases_matmul;
cases_fn cases_copy, cases_concat, cases_pack, cases_pad, cases_flip;
cases_fn cases_take, cases_gather, cases_dropout, cases_image_batch;
cases_fn cases_image_augment;
cases_fn cases_sort, cases_cumsum, cases_random;
cases_fn cases_conv2d, cases_conv2d_fused, cases_conv2d_grad_input,
    cases_conv2d_grad_weight;
cases_fn cases_pool, cases_adaptive_pool, cases_resize;
cases_fn cases_batch_norm, cases_row_norm;
cases_fn cases_sdpa, cases_softmax, cases_cross_entropy;

#endif
