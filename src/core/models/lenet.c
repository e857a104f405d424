/* SPDX-License-Identifier: Apache-2.0 */
/* lenet.c: two small convolutional networks for digits.
 *
 * lenet: LeNet-5's layout (LeCun et al. 1998) with ReLU and maximum pooling.
 * mnist_classifier: the baseline of spec/trainer.md 15.2. */
#include "core/models/stack.h"

struct plain_options {
    struct et_model_options common;
};

static const struct et_option plain_options[] = {ET_MODEL_OPTIONS(plain_options), {0}};

static et_status
plain(struct eti_stack *s, const char *name, const struct et_module_class *type)
{
    return eti_stack_add(s, name, type, NULL);
}

static et_status
halve(struct eti_stack *s, const char *name)
{
    return eti_stack_add(s, name, &et_max_pool2d_class,
                         &(struct et_pool2d_options){.kernel = 2});
}

static et_status
lenet_build(struct et_ctx *cx, struct et_model *m, const void *options,
            const struct et_model_facts *facts)
{
    struct eti_stack s;
    (void)options;
    ET_TRY(eti_stack_begin(cx, facts, &m->root, &s));
    ET_TRY(
        ETI_STACK(&s, "conv1", conv2d, .out_channels = 6, .kernel = 5, .padding = 2));
    ET_TRY(plain(&s, "relu1", &et_relu_class));
    ET_TRY(halve(&s, "pool1"));
    ET_TRY(ETI_STACK(&s, "conv2", conv2d, .out_channels = 16, .kernel = 5));
    ET_TRY(plain(&s, "relu2", &et_relu_class));
    ET_TRY(halve(&s, "pool2"));
    ET_TRY(plain(&s, "flatten", &et_flatten_class));
    ET_TRY(ETI_STACK(&s, "fc1", linear, .out_features = 120));
    ET_TRY(plain(&s, "relu3", &et_relu_class));
    ET_TRY(ETI_STACK(&s, "fc2", linear, .out_features = 84));
    ET_TRY(plain(&s, "relu4", &et_relu_class));
    return ETI_STACK(&s, "fc3", linear, .out_features = facts->num_classes);
}

const struct et_model_class et_lenet_model = {
    .info =
        {
            .name = "lenet",
            .class_name = "LeNet",
            .summary = "two convolutions and three fully connected layers",
            .source = "LeCun et al., Proc. IEEE 86, 1998",
            .applies_to = "vision",
            .options = plain_options,
            .options_size = sizeof(struct plain_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .build = lenet_build,
};

static et_status
mnist_classifier_build(struct et_ctx *cx, struct et_model *m, const void *options,
                       const struct et_model_facts *facts)
{
    struct eti_stack s;
    (void)options;
    ET_TRY(eti_stack_begin(cx, facts, &m->root, &s));
    ET_TRY(ETI_STACK(&s, "conv1", conv2d, .out_channels = 16, .kernel = 3));
    ET_TRY(plain(&s, "relu1", &et_relu_class));
    ET_TRY(ETI_STACK(&s, "conv2", conv2d, .out_channels = 32, .kernel = 3));
    ET_TRY(ETI_STACK(&s, "bn", batch_norm, 0));
    ET_TRY(plain(&s, "relu2", &et_relu_class));
    ET_TRY(ETI_STACK(&s, "pool", adaptive_avg_pool2d, .height = 4, .width = 4));
    ET_TRY(plain(&s, "flatten", &et_flatten_class));
    ET_TRY(ETI_STACK(&s, "fc1", linear, .out_features = 32));
    ET_TRY(plain(&s, "relu3", &et_relu_class));
    return ETI_STACK(&s, "fc2", linear, .out_features = facts->num_classes);
}

const struct et_model_class et_mnist_classifier_model = {
    .info =
        {
            .name = "mnist_classifier",
            .class_name = "MNISTClassifier",
            .summary = "two convolutions, batch norm and two fully connected layers",
            .source = "spec/trainer.md 15.2",
            .applies_to = "vision",
            .options = plain_options,
            .options_size = sizeof(struct plain_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .build = mnist_classifier_build,
};
