/* SPDX-License-Identifier: Apache-2.0 */
/* fashion_mnist.c: clothes, 60,000 and 10,000 images of 28x28, ten classes.
 *
 * Debian's package dataset-fashion-mnist puts them where the default path says. */
#include "core/data/idx.h"

struct options {
    struct et_data_options common;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, "/usr/share/datasets/fashion-mnist", 0,
                        "folder with the four IDX files, plain or .gz"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    {.name = NULL},
};

static const char *const classes[] = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                      "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                      "Bag",         "Ankle boot"};

static et_status
open_fashion_mnist(struct et_ctx *cx, struct et_dataset *self)
{
    et_status s = eti_idx_open_mnist(cx, self);
    self->facts.class_names = classes;
    if (s == ET_ENOENT)
        et_hint(cx, "apt install dataset-fashion-mnist, or set path");
    return s;
}

const struct et_dataset_class et_dataset_fashion_mnist = {
    .info =
        {
            .name = "fashion_mnist",
            .class_name = "FashionMNIST",
            .summary = "articles of clothing, 28x28 grey, ten classes",
            .source = "Xiao, Rasul, Vollgraf, Fashion-MNIST, 2017, arXiv 1708.07747",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_image_set),
    .open = open_fashion_mnist,
    .sample = eti_image_set_sample,
    .close = eti_image_set_close,
    .describe = eti_idx_describe_mnist,
};
