/* families.h: the cases of op families that cases.c lists; private to the harness. */
#ifndef T_KERNELS_FAMILIES_H
#define T_KERNELS_FAMILIES_H

#include "kernels/ref/ref.h"
#include "t/kernels/cases.h"
#include "t/kernels/compare.h"

typedef void cases_fn(struct bench *b);

cases_fn cases_matmul_fused;
cases_fn cases_reduce, cases_sum_squares, cases_segments, cases_argmax, cases_topk, cases_matmul;
cases_fn cases_copy, cases_concat, cases_pack, cases_pad, cases_flip;
cases_fn cases_take, cases_gather, cases_dropout, cases_image_batch;
cases_fn cases_conv2d, cases_conv2d_grad_input, cases_conv2d_grad_weight;
cases_fn cases_pool, cases_adaptive_pool, cases_resize;
cases_fn cases_batch_norm, cases_row_norm;
cases_fn cases_sdpa, cases_softmax, cases_cross_entropy;

#endif
