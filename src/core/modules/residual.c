/* SPDX-License-Identifier: Apache-2.0 */
/* residual.c: the two blocks of residual networks.
 *
 * Source: He et al. 2015 (arXiv 1512.03385), with the stride on the 3x3 convolution of
 * the bottleneck as torchvision has it ("v1.5"). Names are torchvision's. */
#include "core/modules/common.h"

/* conv1x1 + BN where the shapes of x and F(x) differ; else none, the identity. */
static et_status
shortcut_new(struct et_ctx *cx, int64_t in, int64_t out, int64_t stride,
             double momentum, struct et_module **slot)
{
    if (in == out && stride == 1)
        return ET_OK;
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, slot));
    ET_TRY(ET_ADD(cx, *slot, NULL, conv2d, .in_channels = in, .out_channels = out,
                  .kernel = 1, .stride = stride, .no_bias = true));
    return ET_ADD(cx, *slot, NULL, batch_norm, .num_features = out,
                  .momentum = momentum);
}

static et_status
basic_block_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_basic_block_module *m = (struct et_basic_block_module *)base;
    struct et_basic_block_options o = *(const struct et_basic_block_options *)options;
    o.stride = eti_int_or(o.stride, 1);
    ET_TRY(ET_NEW(cx, &m->conv1, conv2d, .in_channels = o.in_channels,
                  .out_channels = o.channels, .kernel = 3, .stride = o.stride,
                  .padding = 1, .no_bias = true));
    ET_TRY(ET_NEW(cx, &m->bn1, batch_norm, .num_features = o.channels,
                  .momentum = o.momentum));
    ET_TRY(et_module_new(cx, &et_relu_class, NULL, &m->relu));
    ET_TRY(ET_NEW(cx, &m->conv2, conv2d, .in_channels = o.channels,
                  .out_channels = o.channels, .kernel = 3, .padding = 1,
                  .no_bias = true));
    ET_TRY(ET_NEW(cx, &m->bn2, batch_norm, .num_features = o.channels,
                  .momentum = o.momentum));
    return shortcut_new(cx, o.in_channels, o.channels, o.stride, o.momentum,
                        &m->downsample);
}

static struct et_tensor *
basic_block_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_basic_block_module *m = (struct et_basic_block_module *)base;
    struct et_tensor *y = et_forward(f, m->bn1, et_forward(f, m->conv1, x));
    y = et_forward(f, m->relu, y);
    y = et_forward(f, m->bn2, et_forward(f, m->conv2, y));
    y = et_add(f->g, y, et_forward(f, m->downsample, x));
    return et_forward(f, m->relu, y);
}

/* Sizes behind a block: 3x3 with padding 1, then as it is. */
static et_status
adapt(struct et_ctx *cx, int64_t *in, int64_t out, int64_t stride, int64_t shape[3])
{
    if (shape[1] < 1)
        return ET_FAIL(cx, ET_EINVAL, "a residual block takes images, not vectors");
    *in = eti_int_or(*in, shape[0]);
    shape[0] = out;
    shape[1] = (shape[1] - 1) / stride + 1;
    shape[2] = (shape[2] - 1) / stride + 1;
    return ET_OK;
}

static et_status
basic_block_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_basic_block_options *o = options;
    return adapt(cx, &o->in_channels, o->channels, eti_int_or(o->stride, 1), shape);
}

const struct et_module_class et_basic_block_class = {
    .info =
        {
            .name = "basic_block",
            .class_name = "ResNetBasicBlock",
            .summary = "two 3x3 convolutions with a shortcut",
            .source = "arXiv 1512.03385",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_INT(et_basic_block_options, "in", in_channels, "0",
                                  "input channels; 0 = what comes in"),
                    ETI_LAYER_NEED(et_basic_block_options, "channels", channels,
                                   "output channels"),
                    ETI_LAYER_INT(et_basic_block_options, "stride", stride, "1",
                                  "step of the 3x3 filter"),
                    ETI_LAYER_FLOAT(et_basic_block_options, "momentum", momentum, "0.1",
                                    0, 1,
                                    "weight of a batch in the running statistics"),
                    {0},
                },
            .options_size = sizeof(struct et_basic_block_options),
        },
    .size = sizeof(struct et_basic_block_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_basic_block_module, conv1),
            ET_SLOT(et_basic_block_module, bn1),
            ET_SLOT(et_basic_block_module, relu),
            ET_SLOT(et_basic_block_module, conv2),
            ET_SLOT(et_basic_block_module, bn2),
            ET_SLOT(et_basic_block_module, downsample),
            {0},
        },
    .init = basic_block_init,
    .forward = basic_block_forward,
    .adapt = basic_block_adapt,
};

static et_status
bottleneck_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bottleneck_module *m = (struct et_bottleneck_module *)base;
    struct et_bottleneck_options o = *(const struct et_bottleneck_options *)options;
    int64_t width = o.channels, out = 4 * o.channels;
    o.stride = eti_int_or(o.stride, 1);
    o.dilation = eti_int_or(o.dilation, 1);
    ET_TRY(ET_NEW(cx, &m->conv1, conv2d, .in_channels = o.in_channels,
                  .out_channels = width, .kernel = 1, .no_bias = true));
    ET_TRY(ET_NEW(cx, &m->bn1, batch_norm, .num_features = width));
    ET_TRY(ET_NEW(cx, &m->conv2, conv2d, .in_channels = width, .out_channels = width,
                  .kernel = 3, .stride = o.stride, .padding = o.dilation,
                  .dilation = o.dilation, .no_bias = true));
    ET_TRY(ET_NEW(cx, &m->bn2, batch_norm, .num_features = width));
    ET_TRY(ET_NEW(cx, &m->conv3, conv2d, .in_channels = width, .out_channels = out,
                  .kernel = 1, .no_bias = true));
    ET_TRY(ET_NEW(cx, &m->bn3, batch_norm, .num_features = out));
    ET_TRY(et_module_new(cx, &et_relu_class, NULL, &m->relu));
    return shortcut_new(cx, o.in_channels, out, o.stride, 0, &m->downsample);
}

static struct et_tensor *
branch(struct et_bottleneck_module *m, struct et_forward *f, struct et_tensor *x)
{
    const struct et_gate *around = f->gate;
    if (m->gate)
        f->gate = m->gate;
    struct et_tensor *y = et_forward(f, m->bn1, et_forward(f, m->conv1, x));
    y = et_forward(f, m->relu, y);
    y = et_forward(f, m->bn2, et_forward(f, m->conv2, y));
    y = et_forward(f, m->relu, y);
    y = et_forward(f, m->bn3, et_forward(f, m->conv3, y));
    f->gate = around;
    return y;
}

/* What the block adds to its shortcut, from Y, which its branch gives: in training less
 * the samples that it drops, else so much that the mean is training's. */
static struct et_tensor *
weigh_branch(const struct et_bottleneck_module *m, struct et_forward *f,
             struct et_tensor *y)
{
    double kept = 1 - m->drop_rate;
    if (!y || kept == 1)
        return y;
    if (!f->training)
        return et_mul_scalar(f->g, y, kept);
    if (!m->drops_samples)
        return y;
    struct et_tensor *mask = et_random_bernoulli(f->g, f->rng, kept, f->ordinal++,
                                                 ET_SHAPE(y->desc.shape[0], 1, 1, 1));
    return et_mul(f->g, y, et_cast(f->g, mask, y->desc.dtype));
}

static struct et_tensor *
bottleneck_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_bottleneck_module *m = (struct et_bottleneck_module *)base;
    struct et_tensor *y = weigh_branch(m, f, branch(m, f, x));
    struct et_tensor *shortcut = et_forward(f, m->downsample, x);
    y = et_forward(f, m->relu, et_add(f->g, y, shortcut));
    if (!m->gate || !f->training)
        return y;
    if (m->downsample)
        shortcut = et_forward(f, m->relu, shortcut);
    return et_where(f->g, et_gate_closed(f->g, m->gate), shortcut, y);
}

static et_status
bottleneck_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_bottleneck_options *o = options;
    return adapt(cx, &o->in_channels, 4 * o->channels, eti_int_or(o->stride, 1), shape);
}

const struct et_module_class et_bottleneck_class = {
    .info =
        {
            .name = "bottleneck",
            .class_name = "ResNetBottleneck",
            .summary = "1x1, 3x3 and 1x1 convolutions with a shortcut",
            .source = "arXiv 1512.03385",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_INT(et_bottleneck_options, "in", in_channels, "0",
                                  "input channels; 0 = what comes in"),
                    ETI_LAYER_NEED(et_bottleneck_options, "channels", channels,
                                   "channels inside; four times as many come out"),
                    ETI_LAYER_INT(et_bottleneck_options, "stride", stride, "1",
                                  "step of the 3x3 filter"),
                    {0},
                },
            .options_size = sizeof(struct et_bottleneck_options),
        },
    .size = sizeof(struct et_bottleneck_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_bottleneck_module, conv1),
            ET_SLOT(et_bottleneck_module, bn1),
            ET_SLOT(et_bottleneck_module, conv2),
            ET_SLOT(et_bottleneck_module, bn2),
            ET_SLOT(et_bottleneck_module, conv3),
            ET_SLOT(et_bottleneck_module, bn3),
            ET_SLOT(et_bottleneck_module, relu),
            ET_SLOT(et_bottleneck_module, downsample),
            {0},
        },
    .init = bottleneck_init,
    .forward = bottleneck_forward,
    .adapt = bottleneck_adapt,
};
