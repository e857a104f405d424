/* SPDX-License-Identifier: Apache-2.0 */
/* idx.c: any pair of IDX files (images and labels) as a dataset. */
#include "core/data/idx.h"

#include <limits.h>

const struct eti_idx_names eti_idx_mnist_names[2] = {
    [ET_SPLIT_TRAIN] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
    [ET_SPLIT_TEST] = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

/* Loads and parses one of the two files into the set's next block. */
static et_status
load(struct et_ctx *cx, struct eti_image_set *set, const char *path,
     struct eti_idx *idx)
{
    struct eti_bytes *block = &set->block[set->n_blocks];
    struct et_error why = {0};
    ET_TRY(eti_file_load(cx, path, ETI_FILE_MAX, block));
    set->n_blocks++;
    if (eti_idx_parse(block->data, block->n, idx, &why) != ET_OK)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %s", path, why.message);
    return ET_OK;
}

/* Images [N,H,W] or [N,H,W,C], labels [N]. */
static et_status
check_pair(struct et_ctx *cx, const char *image_path, const struct eti_idx *images,
           const char *label_path, const struct eti_idx *labels)
{
    if (images->ndim < 3)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %d axes, images have 3 or 4", image_path,
                       images->ndim);
    if (images->shape[1] > INT16_MAX || images->shape[2] > INT16_MAX ||
        (images->ndim == 4 && images->shape[3] > ET_MAX_CHANNELS))
        return ET_FAIL(cx, ET_EFORMAT, "%s: images of %lldx%lldx%lld exceed %dx%dx%d",
                       image_path, (long long)images->shape[1],
                       (long long)images->shape[2],
                       (long long)(images->ndim == 4 ? images->shape[3] : 1), INT16_MAX,
                       INT16_MAX, ET_MAX_CHANNELS);
    if (labels->ndim != 1)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %d axes, labels have 1", label_path,
                       labels->ndim);
    if (images->shape[0] != labels->shape[0])
        return ET_FAIL(cx, ET_EFORMAT, "%s: %lld images but %lld labels", image_path,
                       (long long)images->shape[0], (long long)labels->shape[0]);
    return ET_OK;
}

et_status
eti_idx_open(struct et_ctx *cx, struct et_dataset *self, const char *dir,
             const char *images, const char *labels, int num_classes)
{
    struct eti_image_set *set = self->state;
    struct eti_idx x, y;
    char image_path[ETI_PATH_MAX], label_path[ETI_PATH_MAX];
    ET_TRY(eti_file_path(cx, image_path, dir, images));
    ET_TRY(eti_file_path(cx, label_path, dir, labels));
    ET_TRY(load(cx, set, image_path, &x));
    ET_TRY(load(cx, set, label_path, &y));
    ET_TRY(check_pair(cx, image_path, &x, label_path, &y));
    int64_t n = x.shape[0];
    ET_TRY(eti_image_set_reserve(cx, set, n));
    int largest = 0;
    for (int64_t i = 0; i < n; i++) {
        set->pixels[i] = x.data + i * x.item_bytes;
        set->labels[i] = y.data[i];
        largest = set->labels[i] > largest ? set->labels[i] : largest;
    }
    num_classes = num_classes ? num_classes : largest + 1;
    et_facts_images(&self->facts, n, x.ndim == 4 ? (int)x.shape[3] : 1, x.shape[1],
                    x.shape[2], num_classes);
    return eti_image_set_check(cx, set, label_path, n, num_classes);
}

et_status
eti_idx_open_mnist(struct et_ctx *cx, struct et_dataset *self)
{
    const struct eti_idx_names *names = &eti_idx_mnist_names[self->common->split];
    return eti_idx_open(cx, self, self->common->path, names->images, names->labels, 10);
}

void
eti_idx_describe_mnist(const void *options, struct et_data_facts *out)
{
    (void)options;
    et_facts_images(out, 0, 1, 28, 28, 10);
}

struct options {
    struct et_data_options common;
    char *images;
    char *labels;
    int64_t num_classes;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "folder with the two IDX files, plain or .gz"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    {
        .name = "images",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, images),
        .flags = ET_OPT_OPTIONAL,
        .help = "file of [N,H,W] or [N,H,W,C] bytes; unset: as MNIST calls it",
    },
    {
        .name = "labels",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, labels),
        .flags = ET_OPT_OPTIONAL,
        .help = "file of [N] bytes; unset: as MNIST calls it",
    },
    {
        .name = "num_classes",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_classes),
        .def = "0",
        .max = 256,
        .help = "labels are below it; 0 = the largest label says",
    },
    {.name = NULL},
};

static et_status
open_idx(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    const struct eti_idx_names *names = &eti_idx_mnist_names[o->common.split];
    return eti_idx_open(cx, self, o->common.path, o->images ? o->images : names->images,
                        o->labels ? o->labels : names->labels, (int)o->num_classes);
}

const struct et_dataset_class et_dataset_idx = {
    .info =
        {
            .name = "idx",
            .class_name = "IDX",
            .summary = "images and labels in a pair of IDX files",
            .source =
                "LeCun, Cortes, Burges, The MNIST database of handwritten digits, 1998",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_image_set),
    .open = open_idx,
    .sample = eti_image_set_sample,
    .close = eti_image_set_close,
};
