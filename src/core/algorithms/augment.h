/* SPDX-License-Identifier: Apache-2.0 */
/* augment.h: what methods share that change pictures in the loader. */
#ifndef ETI_ALGORITHMS_AUGMENT_H
#define ETI_ALGORITHMS_AUGMENT_H

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"
#include "core/data/file.h"
#include "core/image/augment.h"

/* The transform T with OPTIONS, whose set is SET, on the picture PIXELS [H,W,C] alone,
 * in place. EINVAL: options that T's table refuses, a size below 1, more channels than
 * it changes. */
ET_NODISCARD et_status eti_augment_image(struct et_ctx *cx,
                                         const struct et_transform_class *t,
                                         const void *options,
                                         enum et_augmentation_set set, uint8_t *pixels,
                                         int C, int64_t H, int64_t W,
                                         struct et_rng *rng);

/* AugMix: SUM [N] + WEIGHT CHAIN; X becomes (1 - M) X + M SUM, in f32 and cut off. */
void eti_augmix_add(float *sum, const uint8_t *chain, int64_t n, float weight);
void eti_augmix_end(uint8_t *x, const float *sum, int64_t n, float m);

#endif
