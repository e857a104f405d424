/* SPDX-License-Identifier: Apache-2.0 */
/* idx.h: the IDX format, and datasets made of a file of images and one of labels. */
#ifndef ETI_DATA_IDX_H
#define ETI_DATA_IDX_H

#include "core/data/image_set.h"

/* What a header says. */
struct eti_idx {
    int ndim; /* 1 .. 4 */
    int64_t shape[4];
    int64_t item_bytes;  /* of one entry of axis 0 */
    const uint8_t *data; /* borrowed from the bytes parsed */
};

/* Reads the header of N bytes that hold unsigned bytes and checks that they are all
 * there. A pure function: EFORMAT with a sentence in WHY that begins "header says",
 * "bad magic" or the like and lacks the name of the file. */
ET_NODISCARD et_status eti_idx_parse(const uint8_t *bytes, int64_t n,
                                     struct eti_idx *out, struct et_error *why);

/* Opens IMAGES and LABELS of folder DIR as SELF. NUM_CLASSES 0: the largest label
 * says. */
ET_NODISCARD et_status eti_idx_open(struct et_ctx *cx, struct et_dataset *self,
                                    const char *dir, const char *images,
                                    const char *labels, int num_classes);
/* The open hook where the files have MNIST's names and ten classes. */
ET_NODISCARD et_status eti_idx_open_mnist(struct et_ctx *cx, struct et_dataset *self);
/* What is known of such sets: describe of et_dataset_class. */
void eti_idx_describe_mnist(const void *options, struct et_data_facts *out);

/* What MNIST's two files are called, by split. */
struct eti_idx_names {
    const char *images, *labels;
};
extern const struct eti_idx_names eti_idx_mnist_names[2];

#endif
