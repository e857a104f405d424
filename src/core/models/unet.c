/* SPDX-License-Identifier: Apache-2.0 */
/* unet.c: a small U-Net: halve and double channels going down, join on the way up.
 *
 * Source: Ronneberger et al. 2015 (arXiv 1505.04597). Differs: padded convolutions, so
 * the output has the input's size; batch norm; odd sizes are resized on the way up. */
#include <math.h>

#include "etude/model.h"
#include "etude/nn.h"

#define MAX_DEPTH 6

struct et_unet_options {
    struct et_model_options common;
    int64_t width, depth;
};

struct unet_module {
    struct et_module base;
    int depth;
    struct et_module *down[MAX_DEPTH], *bottom, *up[MAX_DEPTH], *join[MAX_DEPTH];
    struct et_module *pool, *head;
};

static et_status
double_conv(struct et_ctx *cx, struct et_module **slot, int64_t in, int64_t out)
{
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, slot));
    for (int i = 0; i < 2; i++) {
        ET_TRY(ET_ADD(cx, *slot, NULL, conv2d, .in_channels = i ? out : in,
                      .out_channels = out, .kernel = 3, .padding = 1, .no_bias = true));
        ET_TRY(ET_ADD(cx, *slot, NULL, batch_norm, .num_features = out));
        ET_TRY(et_module_add(cx, *slot, NULL, &et_relu_class, NULL));
    }
    return ET_OK;
}

/* N(0, 2/N) for N values that enter a unit of the output, which no two taps of a filter
 * reach together where the stride is its size. */
static void
start_up(struct et_module *up)
{
    struct et_conv_transpose2d_module *m = (struct et_conv_transpose2d_module *)up;
    m->weight.init = (struct et_init){.kind = ET_INIT_NORMAL,
                                      .b = sqrt(2 / (double)m->o.in_channels)};
    m->bias.init = (struct et_init){.kind = ET_INIT_CONSTANT};
}

static et_status
unet_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct unet_module *m = (struct unet_module *)base;
    const struct et_unet_options *o = options;
    int64_t in = o->common.in_channels;
    m->depth = (int)o->depth;
    for (int i = 0; i < m->depth; i++) {
        int64_t c = o->width << i;
        ET_TRY(double_conv(cx, &m->down[i], in, c));
        ET_TRY(ET_NEW(cx, &m->up[i], conv_transpose2d, .in_channels = 2 * c,
                      .out_channels = c, .kernel = 2, .stride = 2));
        start_up(m->up[i]);
        ET_TRY(double_conv(cx, &m->join[i], 2 * c, c));
        in = c;
    }
    ET_TRY(double_conv(cx, &m->bottom, in, o->width << m->depth));
    ET_TRY(et_module_new(cx, &et_max_pool2d_class,
                         &(struct et_pool2d_options){.kernel = 2}, &m->pool));
    return ET_NEW(cx, &m->head, conv2d, .in_channels = o->width,
                  .out_channels = o->common.num_classes, .kernel = 1);
}

/* X at the height and width of LIKE. */
static struct et_tensor *
fit(struct et_graph *g, struct et_tensor *x, const struct et_tensor *like)
{
    if (!x || !like)
        return NULL;
    const int64_t *have = x->desc.shape, *want = like->desc.shape;
    if (have[2] == want[2] && have[3] == want[3])
        return x;
    return et_resize2d(g, x, ET_RESIZE_NEAREST, want[2], want[3]);
}

static struct et_tensor *
unet_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct unet_module *m = (struct unet_module *)base;
    struct et_tensor *skip[MAX_DEPTH];
    for (int i = 0; i < m->depth; i++) {
        skip[i] = et_forward(f, m->down[i], x);
        x = et_forward(f, m->pool, skip[i]);
    }
    x = et_forward(f, m->bottom, x);
    for (int i = m->depth - 1; i >= 0; i--) {
        x = fit(f->g, et_forward(f, m->up[i], x), skip[i]);
        x = et_concat(f->g, (struct et_tensor *[]){skip[i], x}, 2, 1);
        x = et_forward(f, m->join[i], x);
    }
    return et_forward(f, m->head, x);
}

#define LEVEL(i)                                                                       \
    {"down" #i, offsetof(struct unet_module, down[i])},                                \
        {"up" #i, offsetof(struct unet_module, up[i])},                                \
    {                                                                                  \
        "join" #i, offsetof(struct unet_module, join[i])                               \
    }

static const struct et_module_class et_unet_class = {
    .info =
        {
            .name = "unet",
            .class_name = "UNet",
            .summary = "encoder and decoder with skips",
            .source = "arXiv 1505.04597",
            .applies_to = "vision",
            .options_size = sizeof(struct et_unet_options),
        },
    .size = sizeof(struct unet_module),
    .children =
        (const struct et_slot[]){
            LEVEL(0),
            LEVEL(1),
            LEVEL(2),
            LEVEL(3),
            LEVEL(4),
            LEVEL(5),
            ET_SLOT(unet_module, bottom),
            ET_SLOT(unet_module, pool),
            ET_SLOT(unet_module, head),
            {0},
        },
    .init = unet_init,
    .forward = unet_forward,
};

static et_status
unet_build(struct et_ctx *cx, struct et_model *m, const void *options,
           const struct et_model_facts *facts)
{
    struct et_unet_options o = *(const struct et_unet_options *)options;
    o.common.in_channels = facts->channels;
    o.common.num_classes = facts->num_classes;
    return et_module_new(cx, &et_unet_class, &o, &m->root);
}

const struct et_model_class et_unet_model = {
    .info =
        {
            .name = "unet",
            .class_name = "UNet",
            .summary = "small U-Net: a class for every pixel",
            .source = "arXiv 1505.04597",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ET_MODEL_OPTIONS(et_unet_options),
                    {
                        .name = "width",
                        .type = ET_OPT_INT,
                        .offset = offsetof(struct et_unet_options, width),
                        .def = "16",
                        .min = 1,
                        .max = 1024,
                        .unit = "channels",
                        .help = "channels at full resolution",
                    },
                    {
                        .name = "depth",
                        .type = ET_OPT_INT,
                        .offset = offsetof(struct et_unet_options, depth),
                        .def = "3",
                        .min = 1,
                        .max = MAX_DEPTH,
                        .help = "how often the size is halved",
                    },
                    {0},
                },
            .options_size = sizeof(struct et_unet_options),
        },
    .task = ET_TASK_SEGMENTATION,
    .beginning =
        "convolutions N(0, 2/N) for N values that enter a unit, biases 0, norms 1 "
        "and 0 (arXiv 1505.04597, section 3)",
    .initializer = (const char *const[]){"conv_fan_in_normal", "conv_zero_bias", NULL},
    .build = unet_build,
};
