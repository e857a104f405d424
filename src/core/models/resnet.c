/* SPDX-License-Identifier: Apache-2.0 */
/* resnet.c: residual networks for small images (CIFAR) and for ImageNet.
 *
 * Source: He et al. 2015 (arXiv 1512.03385); names and ImageNet structure as
 * torchvision. ResNet-CIFAR of depth 6n + 2: stem of 16, three stages of n basic
 * blocks, 16/32/64. Differs: its transitions have 1x1 convolutions with batch norm, as
 * spec/trainer.md 15.2, where the paper pads the identity. */
#include "core/models/resnet.h"
#include "etude/nn.h"

/* torchvision.models.resnet.ResNet: kaiming_normal_(mode="fan_out") for every Conv2d;
 * batch norm 1 and 0 (zero_init_residual is off); fc as nn.Linear is made. */
const char *const eti_resnet_initializer[] = {"conv_fan_out_normal", NULL};

enum { STEM_SMALL, STEM_STRIDED, STEM_IMAGENET };
static const char *const stem_names[] = {"small", "strided", "imagenet", NULL};

struct resnet_shape {
    int64_t blocks[4]; /* per stage; 0: no such stage */
    int64_t width;     /* of the first stage; doubles with each */
    bool bottleneck;
    int stem;      /* as published */
    bool backbone; /* no head, and the last stage is dilated, not strided */
};

struct et_resnet_options {
    const struct resnet_shape *shape;
    int stem;
    int64_t in_channels, num_classes;
};

struct resnet_module {
    struct et_module base;
    struct et_module *conv1, *bn1, *relu, *maxpool; /* maxpool: ImageNet only */
    struct et_module *layer[4];                     /* the last is ImageNet's only */
    struct et_module *avgpool, *flatten, *fc;
};

static et_status
stage_new(struct et_ctx *cx, const struct resnet_shape *shape, int stage,
          int64_t *channels, struct et_module **slot)
{
    int64_t width = shape->width << stage;
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, slot));
    for (int64_t i = 0; i < shape->blocks[stage]; i++) {
        bool dilated = shape->backbone && stage == 3;
        int64_t stride = stage > 0 && i == 0 && !dilated ? 2 : 1;
        if (shape->bottleneck)
            ET_TRY(ET_ADD(cx, *slot, NULL, bottleneck, .in_channels = *channels,
                          .channels = width, .stride = stride,
                          .dilation = dilated && i > 0 ? 2 : 1));
        else
            ET_TRY(ET_ADD(cx, *slot, NULL, basic_block, .in_channels = *channels,
                          .channels = width, .stride = stride));
        *channels = shape->bottleneck ? 4 * width : width;
    }
    return ET_OK;
}

static et_status
resnet_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct resnet_module *m = (struct resnet_module *)base;
    const struct et_resnet_options *o = options;
    const struct resnet_shape *shape = o->shape;
    bool large = o->stem == STEM_IMAGENET;
    int64_t channels = shape->width;
    ET_TRY(ET_NEW(cx, &m->conv1, conv2d, .in_channels = o->in_channels,
                  .out_channels = channels, .kernel = large ? 7 : 3,
                  .stride = o->stem == STEM_SMALL ? 1 : 2, .padding = large ? 3 : 1,
                  .no_bias = true));
    ET_TRY(ET_NEW(cx, &m->bn1, batch_norm, .num_features = channels));
    ET_TRY(et_module_new(cx, &et_relu_class, NULL, &m->relu));
    if (large)
        ET_TRY(et_module_new(
            cx, &et_max_pool2d_class,
            &(struct et_pool2d_options){.kernel = 3, .stride = 2, .padding = 1},
            &m->maxpool));
    for (int i = 0; i < 4 && shape->blocks[i]; i++)
        ET_TRY(stage_new(cx, shape, i, &channels, &m->layer[i]));
    if (shape->backbone)
        return ET_OK;
    ET_TRY(ET_NEW(cx, &m->avgpool, adaptive_avg_pool2d, 0));
    ET_TRY(et_module_new(cx, &et_flatten_class, NULL, &m->flatten));
    return ET_NEW(cx, &m->fc, linear, .in_features = channels,
                  .out_features = o->num_classes);
}

static struct et_tensor *
resnet_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct resnet_module *m = (struct resnet_module *)base;
    x = et_forward(f, m->bn1, et_forward(f, m->conv1, x));
    x = et_forward(f, m->maxpool, et_forward(f, m->relu, x));
    for (int i = 0; i < 4; i++)
        x = et_forward(f, m->layer[i], x);
    x = et_forward(f, m->flatten, et_forward(f, m->avgpool, x));
    return et_forward(f, m->fc, x);
}

static const struct et_module_class et_resnet_class = {
    .info =
        {
            .name = "resnet",
            .class_name = "ResNet",
            .summary = "residual network",
            .source = "arXiv 1512.03385",
            .applies_to = "vision",
            .options_size = sizeof(struct et_resnet_options),
        },
    .size = sizeof(struct resnet_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(resnet_module, conv1),
            ET_SLOT(resnet_module, bn1),
            ET_SLOT(resnet_module, relu),
            ET_SLOT(resnet_module, maxpool),
            {"layer1", offsetof(struct resnet_module, layer[0])},
            {"layer2", offsetof(struct resnet_module, layer[1])},
            {"layer3", offsetof(struct resnet_module, layer[2])},
            {"layer4", offsetof(struct resnet_module, layer[3])},
            ET_SLOT(resnet_module, avgpool),
            ET_SLOT(resnet_module, flatten),
            ET_SLOT(resnet_module, fc),
            {0},
        },
    .init = resnet_init,
    .forward = resnet_forward,
};

/* ---- a backbone ---- */

et_status
eti_resnet_backbone(struct et_ctx *cx, const int64_t blocks[4], int64_t in_channels,
                    struct et_module **out)
{
    const struct resnet_shape shape = {
        .blocks = {blocks[0], blocks[1], blocks[2], blocks[3]},
        .width = 64,
        .bottleneck = true,
        .backbone = true,
    };
    return ET_NEW(cx, out, resnet, .shape = &shape, .stem = STEM_IMAGENET,
                  .in_channels = in_channels);
}

struct et_tensor *
eti_resnet_stages(struct et_forward *f, struct et_module *backbone, struct et_tensor *x,
                  struct et_tensor **first)
{
    struct resnet_module *m = (struct resnet_module *)backbone;
    x = et_forward(f, m->bn1, et_forward(f, m->conv1, x));
    x = et_forward(f, m->maxpool, et_forward(f, m->relu, x));
    *first = x = et_forward(f, m->layer[0], x);
    for (int i = 1; i < 4; i++)
        x = et_forward(f, m->layer[i], x);
    return x;
}

/* ---- the family ---- */

struct resnet_model_options {
    struct et_model_options common;
    int stem;
};

static const struct et_option resnet_options[] = {
    ET_MODEL_OPTIONS(resnet_model_options),
    {
        .name = "stem",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct resnet_model_options, stem),
        .choices = stem_names,
        .flags = ET_OPT_OPTIONAL,
        .help = "3x3, 3x3 with stride 2, 7x7 with stride 2 and a max pool; unset: as "
                "published",
    },
    {0},
};

static et_status
resnet_build(struct et_ctx *cx, struct et_model *m, const struct resnet_shape *shape,
             const struct resnet_model_options *o, const struct et_model_facts *facts)
{
    return ET_NEW(cx, &m->root, resnet, .shape = shape,
                  .stem = o->stem < 0 ? shape->stem : o->stem,
                  .in_channels = facts->channels, .num_classes = facts->num_classes);
}

/* One member: its descriptor, and a build function that knows its shape. */
#define RESNET(id, class_text, summary_text, ...)                                      \
    static et_status id##_build(struct et_ctx *cx, struct et_model *m,                 \
                                const void *options,                                   \
                                const struct et_model_facts *facts)                    \
    {                                                                                  \
        static const struct resnet_shape shape = __VA_ARGS__;                          \
        return resnet_build(cx, m, &shape, options, facts);                            \
    }                                                                                  \
    const struct et_model_class et_##id##_model = {                                    \
        .info =                                                                        \
            {                                                                          \
                .name = #id,                                                           \
                .class_name = class_text,                                              \
                .summary = summary_text,                                               \
                .source = "arXiv 1512.03385",                                          \
                .applies_to = "vision",                                                \
                .options = resnet_options,                                             \
                .options_size = sizeof(struct resnet_model_options),                   \
            },                                                                         \
        .task = ET_TASK_CLASSIFICATION,                                                \
        .beginning = ETI_RESNET_BEGINNING,                                             \
        .initializer = eti_resnet_initializer,                                         \
        .build = id##_build,                                                           \
    };

RESNET(resnet8, "ResNet8", "residual network of depth 8 for small images",
       {.blocks = {1, 1, 1}, .width = 16})
RESNET(resnet20, "ResNet20", "residual network of depth 20 for small images",
       {.blocks = {3, 3, 3}, .width = 16})
RESNET(resnet56, "ResNet56", "residual network of depth 56 for small images",
       {.blocks = {9, 9, 9}, .width = 16})
RESNET(resnet18, "ResNet18", "residual network of depth 18 for ImageNet",
       {.blocks = {2, 2, 2, 2}, .width = 64, .stem = STEM_IMAGENET})
RESNET(resnet34, "ResNet34", "residual network of depth 34 for ImageNet",
       {.blocks = {3, 4, 6, 3}, .width = 64, .stem = STEM_IMAGENET})
RESNET(resnet50, "ResNet50", "bottleneck residual network of depth 50 for ImageNet",
       {.blocks = {3, 4, 6, 3}, .width = 64, .stem = STEM_IMAGENET, .bottleneck = true})
RESNET(
    resnet101, "ResNet101", "bottleneck residual network of depth 101 for ImageNet",
    {.blocks = {3, 4, 23, 3}, .width = 64, .stem = STEM_IMAGENET, .bottleneck = true})
RESNET(
    resnet152, "ResNet152", "bottleneck residual network of depth 152 for ImageNet",
    {.blocks = {3, 8, 36, 3}, .width = 64, .stem = STEM_IMAGENET, .bottleneck = true})
