/* SPDX-License-Identifier: Apache-2.0 */
/* efficientnet.c: EfficientNets B0 to B3: inverted bottlenecks with
 * squeeze-and-excitation.
 *
 * y = x + drop(project(SE(depthwise(expand(x))))), batch norm behind each convolution
 * and SiLU behind the first two. Drop zeroes the branch of a whole sample with a
 * probability that grows linearly to DROP_CONNECT and scales the others up. B1 to B3
 * have more channels and more blocks, as table 1 and torchvision's efficientnet.py say.
 * Source: Tan and Le 2019 (arXiv 1905.11946), spec/trainer.md 15.2; torchvision's
 * names. */
#include <math.h>

#include "etude/model.h"
#include "etude/nn.h"

#define DROP_CONNECT 0.2
enum {
    STEM = 32,
    HEAD = 4,
    STAGES = 7
}; /* the head: times the last stage's channels */

struct stage {
    int64_t repeat, kernel, stride, expansion, channels;
};

/* Of B0. */
static const struct stage stages[STAGES] = {
    {1, 3, 1, 1, 16},  {2, 3, 2, 6, 24},  {2, 5, 2, 6, 40},  {3, 3, 2, 6, 80},
    {3, 5, 1, 6, 112}, {4, 5, 2, 6, 192}, {1, 3, 1, 6, 320},
};

/* ---- convolution, batch norm, SiLU ---- */

static et_status
conv_norm(struct et_ctx *cx, struct et_module *row, const struct et_conv2d_options *o,
          bool activation)
{
    struct et_conv2d_options same = *o;
    same.padding = o->kernel / 2;
    same.no_bias = true;
    ET_TRY(et_module_add(cx, row, NULL, &et_sequential_class, NULL));
    struct et_module *unit = row->items[row->n_items - 1].module;
    ET_TRY(et_module_add(cx, unit, NULL, &et_conv2d_class, &same));
    ET_TRY(ET_ADD(cx, unit, NULL, batch_norm, .num_features = o->out_channels));
    return activation ? et_module_add(cx, unit, NULL, &et_silu_class, NULL) : ET_OK;
}

/* ---- squeeze and excitation: x sigmoid(fc2(silu(fc1(mean x)))) ---- */

struct et_excitation_options {
    int64_t channels, squeezed;
};

struct excitation_module {
    struct et_module base;
    struct et_module *fc1, *fc2;
};

static et_status
excitation_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct excitation_module *m = (struct excitation_module *)base;
    const struct et_excitation_options *o = options;
    ET_TRY(ET_NEW(cx, &m->fc1, conv2d, .in_channels = o->channels,
                  .out_channels = o->squeezed, .kernel = 1));
    return ET_NEW(cx, &m->fc2, conv2d, .in_channels = o->squeezed,
                  .out_channels = o->channels, .kernel = 1);
}

static struct et_tensor *
excitation_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct excitation_module *m = (struct excitation_module *)base;
    struct et_tensor *s = et_adaptive_avg_pool2d(f->g, x, 1, 1);
    s = et_silu(f->g, et_forward(f, m->fc1, s));
    s = et_sigmoid(f->g, et_forward(f, m->fc2, s));
    return et_mul(f->g, x, s);
}

static const struct et_module_class et_excitation_class = {
    .info =
        {
            .name = "excitation",
            .class_name = "SqueezeExcitation",
            .summary = "channels weighed by their means",
            .source = "arXiv 1709.01507",
            .applies_to = "vision",
            .options_size = sizeof(struct et_excitation_options),
        },
    .size = sizeof(struct excitation_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(excitation_module, fc1),
            ET_SLOT(excitation_module, fc2),
            {0},
        },
    .init = excitation_init,
    .forward = excitation_forward,
};

/* ---- inverted bottleneck ---- */

struct et_mbconv_options {
    int64_t in_channels, stride;
    const struct stage *stage;
    double drop;
};

struct mbconv_module {
    struct et_module base;
    struct et_module *block;
    double
        drop; /* probability that a sample skips the branch; 0 where there is no sum */
    bool residual;
};

static et_status
mbconv_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct mbconv_module *m = (struct mbconv_module *)base;
    const struct et_mbconv_options *o = options;
    int64_t wide = o->in_channels * o->stage->expansion, out = o->stage->channels;
    m->residual = o->stride == 1 && o->in_channels == out;
    m->drop = o->drop;
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->block));
    if (wide != o->in_channels)
        ET_TRY(conv_norm(cx, m->block,
                         &(struct et_conv2d_options){.in_channels = o->in_channels,
                                                     .out_channels = wide,
                                                     .kernel = 1},
                         true));
    ET_TRY(conv_norm(cx, m->block,
                     &(struct et_conv2d_options){.in_channels = wide,
                                                 .out_channels = wide,
                                                 .kernel = o->stage->kernel,
                                                 .stride = o->stride,
                                                 .groups = wide},
                     true));
    ET_TRY(ET_ADD(cx, m->block, NULL, excitation, .channels = wide,
                  .squeezed = o->in_channels / 4));
    return conv_norm(cx, m->block,
                     &(struct et_conv2d_options){
                         .in_channels = wide, .out_channels = out, .kernel = 1},
                     false);
}

static struct et_tensor *
mbconv_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct mbconv_module *m = (struct mbconv_module *)base;
    uint64_t ordinal = f->ordinal++;
    struct et_tensor *y = et_forward(f, m->block, x);
    if (!m->residual || !y)
        return y;
    if (f->training && m->drop > 0) {
        struct et_tensor *kept =
            et_fill(f->g, ET_F32, ET_SHAPE(y->desc.shape[0], 1, 1, 1), 1);
        y = et_mul(f->g, y, et_dropout(f->g, kept, f->rng, m->drop, ordinal));
    }
    return et_add(f->g, y, x);
}

static const struct et_module_class et_mbconv_class = {
    .info =
        {
            .name = "mbconv",
            .class_name = "MBConv",
            .summary = "inverted bottleneck with squeeze-and-excitation",
            .source = "arXiv 1801.04381",
            .applies_to = "vision",
            .options_size = sizeof(struct et_mbconv_options),
        },
    .size = sizeof(struct mbconv_module),
    .children = (const struct et_slot[]){ET_SLOT(mbconv_module, block), {0}},
    .init = mbconv_init,
    .forward = mbconv_forward,
};

/* ---- the network ---- */

struct efficientnet_options {
    struct et_model_options common;
};

/* How much more there is than in B0. */
struct scale {
    double width, depth, dropout; /* of the head */
};

/* CHANNELS times the width, to a multiple of 8, not less than nine tenths of it. */
static int64_t
widen(int64_t channels, double width)
{
    double v = (double)channels * width;
    int64_t n = (int64_t)(v + 4) / 8 * 8;
    n = n < 8 ? 8 : n;
    return (double)n < 0.9 * v ? n + 8 : n;
}

static et_status
add_stages(struct et_ctx *cx, struct et_module *features, const struct scale *scale,
           int64_t *channels)
{
    int64_t in = widen(STEM, scale->width), total = 0, done = 0;
    struct stage scaled[STAGES];
    for (int i = 0; i < STAGES; i++) {
        scaled[i] = stages[i];
        scaled[i].channels = widen(stages[i].channels, scale->width);
        scaled[i].repeat = (int64_t)ceil((double)stages[i].repeat * scale->depth);
        total += scaled[i].repeat;
    }
    for (int i = 0; i < STAGES; i++) {
        const struct stage *s = &scaled[i];
        ET_TRY(et_module_add(cx, features, NULL, &et_sequential_class, NULL));
        struct et_module *row = features->items[features->n_items - 1].module;
        for (int64_t k = 0; k < s->repeat; k++, done++) {
            ET_TRY(ET_ADD(cx, row, NULL, mbconv, .in_channels = in,
                          .stride = k == 0 ? s->stride : 1, .stage = s,
                          .drop = DROP_CONNECT * (double)done / (double)total));
            in = s->channels;
        }
    }
    *channels = HEAD * in;
    return conv_norm(cx, features,
                     &(struct et_conv2d_options){
                         .in_channels = in, .out_channels = *channels, .kernel = 1},
                     true);
}

static et_status
efficientnet_build(struct et_ctx *cx, struct et_model *m, const struct scale *scale,
                   const struct et_model_facts *facts)
{
    int64_t channels;
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->root));
    ET_TRY(et_module_add(cx, m->root, "features", &et_sequential_class, NULL));
    struct et_module *features = m->root->items[0].module;
    ET_TRY(
        conv_norm(cx, features,
                  &(struct et_conv2d_options){.in_channels = facts->channels,
                                              .out_channels = widen(STEM, scale->width),
                                              .kernel = 3,
                                              .stride = 2},
                  true));
    ET_TRY(add_stages(cx, features, scale, &channels));
    ET_TRY(
        ET_ADD(cx, m->root, "avgpool", adaptive_avg_pool2d, .height = 1, .width = 1));
    ET_TRY(et_module_add(cx, m->root, "flatten", &et_flatten_class, NULL));
    ET_TRY(et_module_add(cx, m->root, "classifier", &et_sequential_class, NULL));
    struct et_module *classifier = m->root->items[3].module;
    ET_TRY(ET_ADD(cx, classifier, NULL, dropout, .p = scale->dropout));
    return ET_ADD(cx, classifier, NULL, linear, .in_features = channels,
                  .out_features = facts->num_classes);
}

/* torchvision.models.efficientnet.EfficientNet. */
static const char efficientnet_beginning[] =
    "convolutions N(0, 2/fan_out), the head U(+-1/sqrt(classes)), biases 0, norms 1 "
    "and "
    "0, as torchvision";
static const char *const efficientnet_initializer[] = {
    "conv_fan_out_normal", "conv_zero_bias", "linear_fan_out_uniform",
    "linear_zero_bias", NULL};

/* One member: its descriptor, and a build function that knows its size. */
#define EFFICIENTNET(id, class_text, summary_text, ...)                                \
    static et_status id##_build(struct et_ctx *cx, struct et_model *m,                 \
                                const void *options,                                   \
                                const struct et_model_facts *facts)                    \
    {                                                                                  \
        static const struct scale scale = __VA_ARGS__;                                 \
        (void)options;                                                                 \
        return efficientnet_build(cx, m, &scale, facts);                               \
    }                                                                                  \
    const struct et_model_class et_##id##_model = {                                    \
        .info =                                                                        \
            {                                                                          \
                .name = #id,                                                           \
                .class_name = class_text,                                              \
                .summary = summary_text,                                               \
                .source = "arXiv 1905.11946",                                          \
                .applies_to = "vision",                                                \
                .options =                                                             \
                    (const struct et_option[]){ET_MODEL_OPTIONS(efficientnet_options), \
                                               {0}},                                   \
                .options_size = sizeof(struct efficientnet_options),                   \
            },                                                                         \
        .task = ET_TASK_CLASSIFICATION,                                                \
        .beginning = efficientnet_beginning,                                           \
        .initializer = efficientnet_initializer,                                       \
        .build = id##_build,                                                           \
    };

EFFICIENTNET(efficientnet_b0, "EfficientNetB0",
             "inverted bottlenecks with squeeze-and-excitation", {1.0, 1.0, 0.2})
EFFICIENTNET(efficientnet_b1, "EfficientNetB1",
             "EfficientNet with 1.1 times the blocks of B0", {1.0, 1.1, 0.2})
EFFICIENTNET(efficientnet_b2, "EfficientNetB2",
             "EfficientNet with 1.1 times the channels of B0 and 1.2 times its blocks",
             {1.1, 1.2, 0.3})
EFFICIENTNET(efficientnet_b3, "EfficientNetB3",
             "EfficientNet with 1.2 times the channels of B0 and 1.4 times its blocks",
             {1.2, 1.4, 0.3})
