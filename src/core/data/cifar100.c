/* SPDX-License-Identifier: Apache-2.0 */
/* cifar100.c: photographs, 50,000 and 10,000 images of 32x32, 100 classes in 20
 * groups. */
#include "core/data/cifar.h"

struct options {
    struct et_data_options common;
    int labels;
};

enum { COARSE, FINE }; /* in the order of the label bytes */
static const char *const label_names[] = {"coarse", "fine", NULL};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "folder of the binary version, cifar-100-binary"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    {
        .name = "labels",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, labels),
        .def = "fine",
        .choices = label_names,
        .help = "the 100 classes, or the 20 groups of five",
    },
    {.name = NULL},
};

static const char *const train_files[] = {"train.bin", NULL};
static const char *const test_files[] = {"test.bin", NULL};

static et_status
open_cifar100(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct eti_cifar format = {
        .label_bytes = 2,
        .label_at = o->labels,
        .num_classes = o->labels == FINE ? 100 : 20,
        .files = {train_files, test_files},
    };
    return eti_cifar_open(cx, self, &format);
}

static void
describe_cifar100(const void *options, struct et_data_facts *out)
{
    (void)options;
    et_facts_images(out, 0, 3, 32, 32, 100);
}

const struct et_dataset_class et_dataset_cifar100 = {
    .info =
        {
            .name = "cifar100",
            .class_name = "CIFAR100",
            .summary = "photographs, 32x32 colour, 100 classes",
            .source = "Krizhevsky, Learning multiple layers of features from tiny "
                      "images, 2009",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_image_set),
    .open = open_cifar100,
    .sample = eti_image_set_sample,
    .close = eti_image_set_close,
    .describe = describe_cifar100,
};
