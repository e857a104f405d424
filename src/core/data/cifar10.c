/* SPDX-License-Identifier: Apache-2.0 */
/* cifar10.c: photographs, 50,000 and 10,000 images of 32x32, ten classes. */
#include "core/data/cifar.h"

struct options {
    struct et_data_options common;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "folder of the binary version, cifar-10-batches-bin"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    {.name = NULL},
};

static const char *const train_files[] = {
    "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
    "data_batch_4.bin", "data_batch_5.bin", NULL,
};
static const char *const test_files[] = {"test_batch.bin", NULL};

static et_status
open_cifar10(struct et_ctx *cx, struct et_dataset *self)
{
    static const struct eti_cifar format = {
        .label_bytes = 1,
        .num_classes = 10,
        .files = {train_files, test_files},
    };
    static const char *const classes[] = {"airplane", "automobile", "bird", "cat",
                                          "deer",     "dog",        "frog", "horse",
                                          "ship",     "truck"};
    ET_TRY(eti_cifar_open(cx, self, &format));
    self->facts.class_names = classes;
    return ET_OK;
}

static void
describe_cifar10(const void *options, struct et_data_facts *out)
{
    (void)options;
    et_facts_images(out, 0, 3, 32, 32, 10);
}

const struct et_dataset_class et_dataset_cifar10 = {
    .info =
        {
            .name = "cifar10",
            .class_name = "CIFAR10",
            .summary = "photographs, 32x32 colour, ten classes",
            .source = "Krizhevsky, Learning multiple layers of features from tiny "
                      "images, 2009",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_image_set),
    .open = open_cifar10,
    .sample = eti_image_set_sample,
    .close = eti_image_set_close,
    .describe = describe_cifar10,
};
