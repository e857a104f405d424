/* SPDX-License-Identifier: Apache-2.0 */
/* cifar.h: CIFAR's binary files: labels, then 3 x 32 x 32 bytes, again and again. */
#ifndef ETI_DATA_CIFAR_H
#define ETI_DATA_CIFAR_H

#include "core/data/image_set.h"

/* One of the two formats. */
struct eti_cifar {
    int label_bytes; /* before the pixels of each record */
    int label_at;    /* which of them is meant */
    int num_classes;
    const char *const *files[2]; /* by split; each list ends with NULL */
};

/* How many records N bytes hold. Pure; EFORMAT with a sentence in WHY that lacks the
 * name of the file. */
ET_NODISCARD et_status eti_cifar_count(int64_t n, int label_bytes, int64_t *out,
                                       struct et_error *why);
ET_NODISCARD et_status eti_cifar_open(struct et_ctx *cx, struct et_dataset *self,
                                      const struct eti_cifar *format);

#endif
