/* families.h: the cases of op families that cases.c lists; private to the harness. */
#ifndef T_KERNELS_FAMILIES_H
#define T_KERNELS_FAMILIES_H

#include "kernels/ref/ref.h"
#include "t/kernels/cases.h"
#include "t/kernels/compare.h"

typedef void cases_fn(struct bench *b);

cases_fn cases_conv2d, cases_conv2d_grad_input, cases_conv2d_grad_weight;
cases_fn cases_pool, cases_adaptive_pool, cases_resize;
cases_fn cases_batch_norm, cases_row_norm;
cases_fn cases_sdpa, cases_softmax, cases_cross_entropy;

#endif
