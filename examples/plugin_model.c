/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_model.c: a model in a shared library.
 *
 * The all convolutional net (Springenberg et al. 2014, arXiv 1412.6806): no pooling,
 * for convolutions of stride 2 do what pooling does, and no linear layer, for the last
 * convolution has a channel for each class, whose mean over the image is its logit.
 *
 *     cc -shared -fPIC $(pkg-config --cflags etude) -o all_conv.so plugin_model.c
 *
 * Allowed as plugin.c says, a recipe has it as
 *
 *     plugins: [all_conv]
 *     model: {name: all_conv, width: 32}
 *
 * with what every model has besides: num_classes, in_channels, loss, initializer and
 * weights. "etude explain all_conv --model" shows its layers. */
#include <etude/nn.h>
#include <etude/plugin.h>

#include <stdio.h>

/* Every model's options begin with these. */
struct all_conv_options {
    struct et_model_options common;
    int64_t width;
};

static const struct et_option all_conv_table[] = {
    ET_MODEL_OPTIONS(all_conv_options),
    {
        .name = "width",
        .type = ET_OPT_INT,
        .offset = offsetof(struct all_conv_options, width),
        .def = "96",
        .min = 1,
        .max = 4096,
        .unit = "channels",
        .help = "of the first layers; those behind have twice as many",
    },
    {.name = NULL},
};

/* The layers in order; each is followed by a ReLU. */
static const struct {
    int width; /* times the option; 0: one for each class */
    int kernel, stride;
} convolutions[] = {
    {1, 3, 1}, {1, 3, 1}, {1, 3, 2}, {2, 3, 1}, {2, 3, 1},
    {2, 3, 2}, {2, 3, 1}, {2, 1, 1}, {0, 1, 1},
};
enum { LAYERS = sizeof convolutions / sizeof *convolutions };

/* Makes M->root of modules that are there. What it declares takes no memory, and
 * parameters are called by the path to them: "conv3.weight". */
static et_status
all_conv_build(struct et_ctx *cx, struct et_model *m, const void *options,
               const struct et_model_facts *facts)
{
    const struct all_conv_options *o = options;
    int64_t channels = facts->channels;
    if (facts->height < 4 || facts->width < 4)
        return ET_FAIL(cx, ET_ESHAPE,
                       "all_conv takes images of at least 4 x 4, not %lld x %lld",
                       (long long)facts->height, (long long)facts->width);
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->root));
    for (int i = 0; i < LAYERS; i++) {
        const int64_t kernel = convolutions[i].kernel;
        const int64_t out = convolutions[i].width * o->width;
        char conv[16], relu[16];
        snprintf(conv, sizeof conv, "conv%d", i + 1);
        snprintf(relu, sizeof relu, "relu%d", i + 1);
        ET_TRY(ET_ADD(cx, m->root, conv, conv2d, .in_channels = channels,
                      .out_channels = out ? out : facts->num_classes, .kernel = kernel,
                      .stride = convolutions[i].stride, .padding = kernel / 2));
        ET_TRY(et_module_add(cx, m->root, relu, &et_relu_class, NULL));
        channels = out;
    }
    ET_TRY(ET_ADD(cx, m->root, "mean", adaptive_avg_pool2d, .height = 1, .width = 1));
    return et_module_add(cx, m->root, "flatten", &et_flatten_class, NULL);
}

/* The first weights are drawn by this rule, unless a recipe has another. */
static const char *const he[] = {"kaiming_normal", "conv_zero_bias", NULL};

static const struct et_model_class all_conv = {
    .info =
        {
            ET_CLASS(model),
            .name = "all_conv",
            .class_name = "AllConv",
            .summary = "nine convolutions, and neither pooling nor linear layers",
            .source = "Springenberg et al. 2014, arXiv 1412.6806, All-CNN-C",
            .applies_to = "vision",
            .options = all_conv_table,
            .options_size = sizeof(struct all_conv_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .beginning = "He et al. 2015, arXiv 1502.01852; biases are 0",
    .initializer = he,
    .build = all_conv_build,
};

static const struct et_model_class *const models[] = {&all_conv, NULL};

ET_PLUGIN(.models = models)
