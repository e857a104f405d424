/* SPDX-License-Identifier: Apache-2.0 */
/* image_set.h: image sets held in memory whole: what IDX and CIFAR files become. */
#ifndef ETI_DATA_IMAGE_SET_H
#define ETI_DATA_IMAGE_SET_H

#include "core/data/file.h"
#include "etude/data.h"

/* The private state of such a dataset. */
struct eti_image_set {
    struct eti_bytes block[8]; /* the files' bytes; owned */
    int n_blocks;
    const uint8_t **pixels; /* N pointers to raw samples in the blocks; owned */
    int32_t *labels;        /* N; owned */
    bool planar;            /* channel by channel, not those of a pixel side by side */
};

/* Allocates PIXELS and LABELS for N samples. */
ET_NODISCARD et_status eti_image_set_reserve(struct et_ctx *cx,
                                             struct eti_image_set *set, int64_t n);
/* Labels must be below NUM_CLASSES: "label 12 at index 31 but 10 classes". */
ET_NODISCARD et_status eti_image_set_check(struct et_ctx *cx,
                                           const struct eti_image_set *set,
                                           const char *path, int64_t n,
                                           int num_classes);
/* The sample and close hooks. */
ET_NODISCARD et_status eti_image_set_sample(const struct et_dataset *self, int64_t at,
                                            struct et_sample *out,
                                            struct et_error *why);
void eti_image_set_close(struct et_dataset *self);

#endif
