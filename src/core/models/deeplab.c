/* SPDX-License-Identifier: Apache-2.0 */
/* deeplab.c: DeepLabV3+: classes of pixels, from a ResNet whose last stage is dilated.
 *
 * The last stage [2048, H/16] goes through ASPP: a 1x1 convolution, three 3x3 of rates
 * 6, 12 and 18, and the mean of the image, side by side, then 1x1 to 256. The decoder
 * enlarges that to the first stage's size, puts 48 channels of that stage behind it,
 * and two 3x3 convolutions and a 1x1 give the classes, which are enlarged to the image.
 * Source: Chen et al. 2018 (arXiv 1802.02611), output stride 16; the backbone and ASPP
 * have torchvision's names (segmentation/deeplabv3.py). Differs: the decoder's
 * convolutions are not depthwise separable, as the paper's table 5 with a ResNet. */
#include "core/models/resnet.h"
#include "etude/nn.h"

enum { WIDE = 2048, LOW = 256, LOW_KEPT = 48, MIDDLE = 256, RATES = 3 };

struct et_deeplab_options {
    struct et_model_options common;
    const int64_t *blocks; /* of the backbone's stages */
    double dropout;
};

struct deeplab_module {
    struct et_module base;
    struct et_module *backbone, *aspp, *low, *decoder, *classifier;
};

/* ---- pieces ---- */

static et_status
conv_norm(struct et_ctx *cx, struct et_module *row, int64_t in, int64_t out,
          int64_t kernel, int64_t rate)
{
    ET_TRY(ET_ADD(cx, row, NULL, conv2d, .in_channels = in, .out_channels = out,
                  .kernel = kernel, .padding = kernel == 1 ? 0 : rate, .dilation = rate,
                  .no_bias = true));
    ET_TRY(ET_ADD(cx, row, NULL, batch_norm, .num_features = out));
    return et_module_add(cx, row, NULL, &et_relu_class, NULL);
}

static et_status
row_new(struct et_ctx *cx, struct et_module *parent, const char *name,
        struct et_module **out)
{
    ET_TRY(et_module_add(cx, parent, name, &et_sequential_class, NULL));
    *out = parent->items[parent->n_items - 1].module;
    return ET_OK;
}

/* X in the size of LIKE. */
static struct et_tensor *
enlarge(struct et_forward *f, struct et_tensor *x, const struct et_tensor *like)
{
    return x && like ? et_resize2d(f->g, x, ET_RESIZE_BILINEAR, like->desc.shape[2],
                                   like->desc.shape[3])
                     : NULL;
}

/* ---- ASPP ---- */

struct aspp_module {
    struct et_module base;
    struct et_module *convs, *project;
};

static et_status
aspp_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    static const int64_t rates[RATES] = {6, 12, 18};
    struct aspp_module *m = (struct aspp_module *)base;
    const struct et_deeplab_options *o = options;
    struct et_module *row;
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->convs));
    ET_TRY(row_new(cx, m->convs, NULL, &row));
    ET_TRY(conv_norm(cx, row, WIDE, MIDDLE, 1, 1));
    for (int i = 0; i < RATES; i++) {
        ET_TRY(row_new(cx, m->convs, NULL, &row));
        ET_TRY(conv_norm(cx, row, WIDE, MIDDLE, 3, rates[i]));
    }
    ET_TRY(row_new(cx, m->convs, NULL, &row));
    ET_TRY(ET_ADD(cx, row, NULL, adaptive_avg_pool2d, 0));
    ET_TRY(conv_norm(cx, row, WIDE, MIDDLE, 1, 1));
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->project));
    ET_TRY(conv_norm(cx, m->project, (RATES + 2) * MIDDLE, MIDDLE, 1, 1));
    return ET_ADD(cx, m->project, NULL, dropout, .p = o->dropout);
}

static struct et_tensor *
aspp_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct aspp_module *m = (struct aspp_module *)base;
    struct et_tensor *y[RATES + 2];
    for (int i = 0; i < RATES + 2; i++)
        y[i] = et_forward(f, m->convs->items[i].module, x);
    y[RATES + 1] = enlarge(f, y[RATES + 1], x);
    return et_forward(f, m->project, et_concat(f->g, y, RATES + 2, 1));
}

static const struct et_module_class aspp_class = {
    .info =
        {
            .name = "aspp",
            .class_name = "ASPP",
            .summary = "convolutions of several rates side by side",
            .source = "arXiv 1706.05587",
            .applies_to = "vision",
            .options_size = sizeof(struct et_deeplab_options),
        },
    .size = sizeof(struct aspp_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(aspp_module, convs),
            ET_SLOT(aspp_module, project),
            {0},
        },
    .init = aspp_init,
    .forward = aspp_forward,
};

/* ---- the network ---- */

static et_status
deeplab_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct deeplab_module *m = (struct deeplab_module *)base;
    const struct et_deeplab_options *o = options;
    ET_TRY(eti_resnet_backbone(cx, o->blocks, o->common.in_channels, &m->backbone));
    ET_TRY(et_module_new(cx, &aspp_class, o, &m->aspp));
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->low));
    ET_TRY(conv_norm(cx, m->low, LOW, LOW_KEPT, 1, 1));
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->decoder));
    ET_TRY(conv_norm(cx, m->decoder, MIDDLE + LOW_KEPT, MIDDLE, 3, 1));
    ET_TRY(conv_norm(cx, m->decoder, MIDDLE, MIDDLE, 3, 1));
    return ET_NEW(cx, &m->classifier, conv2d, .in_channels = MIDDLE,
                  .out_channels = o->common.num_classes, .kernel = 1);
}

static struct et_tensor *
deeplab_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct deeplab_module *m = (struct deeplab_module *)base;
    struct et_tensor *first;
    struct et_tensor *last = eti_resnet_stages(f, m->backbone, x, &first);
    struct et_tensor *y = enlarge(f, et_forward(f, m->aspp, last), first);
    y = et_concat(f->g, (struct et_tensor *[]){y, et_forward(f, m->low, first)}, 2, 1);
    y = et_forward(f, m->classifier, et_forward(f, m->decoder, y));
    return enlarge(f, y, x);
}

static const struct et_module_class deeplab_class = {
    .info =
        {
            .name = "deeplab",
            .class_name = "DeepLabV3Plus",
            .summary = "dilated residual network with a decoder",
            .source = "arXiv 1802.02611",
            .applies_to = "vision",
            .options_size = sizeof(struct et_deeplab_options),
        },
    .size = sizeof(struct deeplab_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(deeplab_module, backbone),
            ET_SLOT(deeplab_module, aspp),
            ET_SLOT(deeplab_module, low),
            ET_SLOT(deeplab_module, decoder),
            ET_SLOT(deeplab_module, classifier),
            {0},
        },
    .init = deeplab_init,
    .forward = deeplab_forward,
};

/* ---- the family ---- */

static const struct et_option deeplab_options[] = {
    ET_MODEL_OPTIONS(et_deeplab_options),
    {
        .name = "dropout",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct et_deeplab_options, dropout),
        .def = "0.5",
        .min = 0,
        .max = 1,
        .flags = ET_OPT_MAX_OPEN,
        .help = "probability of zero behind ASPP",
    },
    {0},
};

static et_status
deeplab_build(struct et_ctx *cx, struct et_model *m, const void *options,
              const struct et_model_facts *facts, const int64_t *blocks)
{
    struct et_deeplab_options o = *(const struct et_deeplab_options *)options;
    o.blocks = blocks;
    o.common.in_channels = facts->channels;
    o.common.num_classes = facts->num_classes;
    return et_module_new(cx, &deeplab_class, &o, &m->root);
}

#define DEEPLAB(id, class_text, summary_text, ...)                                     \
    static et_status id##_build(struct et_ctx *cx, struct et_model *m,                 \
                                const void *options,                                   \
                                const struct et_model_facts *facts)                    \
    {                                                                                  \
        static const int64_t blocks[4] = __VA_ARGS__;                                  \
        return deeplab_build(cx, m, options, facts, blocks);                           \
    }                                                                                  \
    const struct et_model_class et_##id##_model = {                                    \
        .info =                                                                        \
            {                                                                          \
                .name = #id,                                                           \
                .class_name = class_text,                                              \
                .summary = summary_text,                                               \
                .source = "arXiv 1802.02611",                                          \
                .applies_to = "vision",                                                \
                .options = deeplab_options,                                            \
                .options_size = sizeof(struct et_deeplab_options),                     \
            },                                                                         \
        .task = ET_TASK_SEGMENTATION,                                                  \
        .beginning = "convolutions N(0, 2/fan_out), norms 1 and 0, as torchvision's "  \
                     "ResNet",                                                         \
        .initializer = eti_resnet_initializer,                                         \
        .build = id##_build,                                                           \
    };

DEEPLAB(deeplabv3plus_resnet50, "DeepLabV3PlusResNet50",
        "classes of pixels by ResNet-50, ASPP and a decoder", {3, 4, 6, 3})
DEEPLAB(deeplabv3plus_resnet101, "DeepLabV3PlusResNet101",
        "classes of pixels by ResNet-101, ASPP and a decoder", {3, 4, 23, 3})
