/* SPDX-License-Identifier: Apache-2.0 */
/* image.h: launchers of batches made from raw images. */
#ifndef ETUDE_KERNELS_CUDA_IMAGE_H
#define ETUDE_KERNELS_CUDA_IMAGE_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strides count elements. */
struct etk_image {
    int size;        /* bytes of an element of the result */
    int rounded;     /* BF16 or F16: the result's dtype, of a table in f32; else NONE */
    int64_t n;       /* frames */
    int channels;    /* C */
    int h, w;        /* of a frame; h * w * C < 2^31 */
    int64_t samples; /* raw images */
    int raw_h, raw_w;  /* of each */
    int64_t raw[4];    /* strides: sample, channel, row, column */
    int64_t frames[2]; /* strides */
    int64_t table[2];
    int64_t result[4];
    bool plain;       /* the result is dense channels-last */
    bool wide_frames; /* rows of the frames are 32 bytes, and begin at such */
    int sm_count;
};
/* The same of pictures that are turned and changed: rows of NUMBERS, whose strides are
 * those of the frames. */
struct etk_augment {
    struct etk_image image;
    int numbers;
};
cudaError_t etk_launch_image_augment(const struct etk_augment *, const uint8_t *raw,
                                     const int32_t *rows, const void *table, void *out,
                                     cudaStream_t);
/* WIDE: results may be stored 16 bytes at a time. */
cudaError_t etk_launch_image_batch(const struct etk_image *, bool wide,
                                   const uint8_t *raw, const int32_t *frames,
                                   const void *table, void *out, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
