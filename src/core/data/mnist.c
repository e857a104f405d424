/* SPDX-License-Identifier: Apache-2.0 */
/* mnist.c: handwritten digits, 60,000 and 10,000 images of 28x28, ten classes. */
#include "core/data/idx.h"

struct options {
    struct et_data_options common;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "folder with the four IDX files, plain or .gz"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    {.name = NULL},
};

const struct et_dataset_class et_dataset_mnist = {
    .info =
        {
            .name = "mnist",
            .class_name = "MNIST",
            .summary = "handwritten digits, 28x28 grey, ten classes",
            .source =
                "LeCun, Cortes, Burges, The MNIST database of handwritten digits, 1998",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_image_set),
    .open = eti_idx_open_mnist,
    .sample = eti_image_set_sample,
    .close = eti_image_set_close,
    .describe = eti_idx_describe_mnist,
};
