/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.h: launchers of softmax, its logarithm, cross entropy and their gradients. */
#ifndef ETUDE_KERNELS_CUDA_SOFTMAX_H
#define ETUDE_KERNELS_CUDA_SOFTMAX_H

#include "kernels/cuda/lines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sides: x, y; of the gradients dy, y, dx. LOGARITHM: of the softmax. */
struct etk_softmax {
    struct etk_lines lines;
    enum et_dtype dtype;
    bool logarithm, grad;
};
/* PTR: the sides' first elements. */
cudaError_t etk_launch_softmax(const struct etk_softmax *, void *const *ptr,
                               cudaStream_t);

/* Sides: logits, target, loss, lse; of the gradient logits, target, dloss, lse,
 * dlogits, which may take the place of the logits. */
struct etk_cross_entropy {
    struct etk_lines lines;
    enum et_dtype dtype;                     /* of logits and dlogits */
    enum et_dtype target, loss, lse, weight; /* target: I32, or that of distributions */
    int64_t weight_step, ignore;
    bool grad;
};
/* PTR: the sides' first elements; loss and lse may be NULL where they are results. */
cudaError_t etk_launch_cross_entropy(const struct etk_cross_entropy *, void *const *ptr,
                                     const void *weight, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
