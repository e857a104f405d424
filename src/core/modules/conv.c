/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: convolution and transposed convolution. y[n,k,p,q] = b[k] + sum over c,r,s of
 * w[k,c,r,s] x[n,c,p u + r d - pad, q u + s d - pad] for stride u and dilation d. */
#include "core/modules/common.h"

/* Output length of one axis. */
static int64_t
conv_length(const struct et_conv2d_options *o, int64_t n)
{
    return (n + 2 * o->padding - o->dilation * (o->kernel - 1) - 1) / o->stride + 1;
}

static void
conv2d_defaults(struct et_conv2d_options *o)
{
    o->stride = eti_int_or(o->stride, 1);
    o->dilation = eti_int_or(o->dilation, 1);
    o->groups = eti_int_or(o->groups, 1);
}

static struct et_conv2d_attr
conv_attr(int64_t stride, int64_t pad, int64_t dilation, int64_t groups,
          int64_t output_pad)
{
    return (struct et_conv2d_attr){
        .stride = {(int32_t)stride, (int32_t)stride},
        .pad = {(int32_t)pad, (int32_t)pad},
        .dilation = {(int32_t)dilation, (int32_t)dilation},
        .groups = (int32_t)groups,
        .output_pad = {(int32_t)output_pad, (int32_t)output_pad},
    };
}

static et_status
check_groups(struct et_ctx *cx, int64_t in, int64_t out, int64_t groups)
{
    if (in % groups || out % groups)
        return ET_FAIL(cx, ET_EINVAL,
                       "%lld groups divide neither or only one of %lld input and %lld "
                       "output channels",
                       (long long)groups, (long long)in, (long long)out);
    return ET_OK;
}

static et_status
conv2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_conv2d_module *m = (struct et_conv2d_module *)base;
    m->o = *(const struct et_conv2d_options *)options;
    struct et_conv2d_options *o = &m->o;
    conv2d_defaults(o);
    ETI_NEED_POSITIVE(cx, "conv2d", o, in_channels);
    ETI_NEED_POSITIVE(cx, "conv2d", o, out_channels);
    ETI_NEED_POSITIVE(cx, "conv2d", o, kernel);
    ET_TRY(check_groups(cx, o->in_channels, o->out_channels, o->groups));
    m->attr = conv_attr(o->stride, o->padding, o->dilation, o->groups, 0);
    int64_t group_in = o->in_channels / o->groups;
    struct et_init init = eti_init_fan_in((double)(group_in * o->kernel * o->kernel));
    et_param_declare(&m->weight, init,
                     ET_SHAPE(o->out_channels, group_in, o->kernel, o->kernel));
    if (!o->no_bias)
        et_param_declare(&m->bias, init, ET_SHAPE(o->out_channels));
    return ET_OK;
}

static struct et_tensor *
conv2d_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_conv2d_module *m = (struct et_conv2d_module *)base;
    return et_conv2d(f->g, x, m->weight.tensor, m->bias.tensor, &m->attr);
}

static et_status
conv2d_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_conv2d_options *o = options, full = *o;
    conv2d_defaults(&full);
    if (shape[1] < 1)
        return ET_FAIL(cx, ET_EINVAL, "conv2d takes images, but a vector comes in");
    ET_TRY(eti_adapt_in(cx, "conv2d", "channels", shape[0], &o->in_channels));
    shape[0] = o->out_channels;
    shape[1] = conv_length(&full, shape[1]);
    shape[2] = conv_length(&full, shape[2]);
    if (shape[1] < 1 || shape[2] < 1)
        return ET_FAIL(cx, ET_EINVAL, "a %lldx%lld filter does not fit its input",
                       (long long)o->kernel, (long long)o->kernel);
    return ET_OK;
}

#define ROW(key, field, deflt, ...)                                                    \
    ETI_LAYER_INT(et_conv2d_options, key, field, deflt, __VA_ARGS__)
#define NEED(key, field, ...) ETI_LAYER_NEED(et_conv2d_options, key, field, __VA_ARGS__)

const struct et_module_class et_conv2d_class = {
    .info =
        {
            .name = "conv2d",
            .class_name = "Conv2d",
            .summary = "convolution of images",
            .source = "torch.nn.Conv2d",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ROW("in", in_channels, "0", "input channels; 0 = what comes in",
                        .also = "in_channels"),
                    NEED("out", out_channels, "output channels",
                         .also = "out_channels"),
                    ROW("kernel", kernel, "3", "filter height and width",
                        .also = "kernel_size"),
                    ROW("stride", stride, "1", "step of the filter"),
                    ROW("padding", padding, "0", "zeros around the image"),
                    ROW("dilation", dilation, "1", "spacing of the filter's taps"),
                    ROW("groups", groups, "1", "independent groups of channels"),
                    ETI_LAYER_BOOL(et_conv2d_options, "no_bias", no_bias,
                                   "leave the bias out", .also = "!bias"),
                    {0},
                },
            .options_size = sizeof(struct et_conv2d_options),
        },
    .size = sizeof(struct et_conv2d_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_conv2d_module, weight),
            ET_SLOT(et_conv2d_module, bias),
            {0},
        },
    .init = conv2d_init,
    .forward = conv2d_forward,
    .adapt = conv2d_adapt,
};
#undef ROW
#undef NEED

/* ---- transposed ---- */

static et_status
conv_transpose2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_conv_transpose2d_module *m = (struct et_conv_transpose2d_module *)base;
    m->o = *(const struct et_conv_transpose2d_options *)options;
    struct et_conv_transpose2d_options *o = &m->o;
    o->stride = eti_int_or(o->stride, 1);
    o->groups = eti_int_or(o->groups, 1);
    ETI_NEED_POSITIVE(cx, "conv_transpose2d", o, in_channels);
    ETI_NEED_POSITIVE(cx, "conv_transpose2d", o, out_channels);
    ETI_NEED_POSITIVE(cx, "conv_transpose2d", o, kernel);
    ET_TRY(check_groups(cx, o->in_channels, o->out_channels, o->groups));
    m->attr = conv_attr(o->stride, o->padding, 1, o->groups, o->output_padding);
    int64_t group_out = o->out_channels / o->groups;
    /* PyTorch takes axis 1 for the inputs here too. */
    struct et_init init = eti_init_fan_in((double)(group_out * o->kernel * o->kernel));
    et_param_declare(&m->weight, init,
                     ET_SHAPE(o->in_channels, group_out, o->kernel, o->kernel));
    if (!o->no_bias)
        et_param_declare(&m->bias, init, ET_SHAPE(o->out_channels));
    return ET_OK;
}

static struct et_tensor *
conv_transpose2d_forward(struct et_module *base, struct et_forward *f,
                         struct et_tensor *x)
{
    struct et_conv_transpose2d_module *m = (struct et_conv_transpose2d_module *)base;
    return et_conv_transpose2d(f->g, x, m->weight.tensor, m->bias.tensor, &m->attr);
}

static et_status
conv_transpose2d_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_conv_transpose2d_options *o = options;
    o->in_channels = eti_int_or(o->in_channels, shape[0]);
    if (shape[1] < 1)
        return ET_FAIL(cx, ET_EINVAL, "conv_transpose2d takes images, not vectors");
    shape[0] = o->out_channels;
    for (int i = 1; i < 3; i++)
        shape[i] = (shape[i] - 1) * eti_int_or(o->stride, 1) - 2 * o->padding +
                   o->kernel + o->output_padding;
    return ET_OK;
}

#define ROW(key, field, deflt, ...)                                                    \
    ETI_LAYER_INT(et_conv_transpose2d_options, key, field, deflt, __VA_ARGS__)
#define NEED(key, field, ...)                                                          \
    ETI_LAYER_NEED(et_conv_transpose2d_options, key, field, __VA_ARGS__)

const struct et_module_class et_conv_transpose2d_class = {
    .info =
        {
            .name = "conv_transpose2d",
            .class_name = "ConvTranspose2d",
            .summary = "transposed convolution: enlarges images",
            .source = "torch.nn.ConvTranspose2d",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ROW("in", in_channels, "0", "input channels; 0 = what comes in",
                        .also = "in_channels"),
                    NEED("out", out_channels, "output channels",
                         .also = "out_channels"),
                    ROW("kernel", kernel, "2", "filter height and width",
                        .also = "kernel_size"),
                    ROW("stride", stride, "1", "enlargement"),
                    ROW("padding", padding, "0",
                        "rows and columns cut off on each side"),
                    ROW("output_padding", output_padding, "0",
                        "rows and columns added at the end"),
                    ROW("groups", groups, "1", "independent groups of channels"),
                    ETI_LAYER_BOOL(et_conv_transpose2d_options, "no_bias", no_bias,
                                   "leave the bias out", .also = "!bias"),
                    {0},
                },
            .options_size = sizeof(struct et_conv_transpose2d_options),
        },
    .size = sizeof(struct et_conv_transpose2d_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_conv_transpose2d_module, weight),
            ET_SLOT(et_conv_transpose2d_module, bias),
            {0},
        },
    .init = conv_transpose2d_init,
    .forward = conv_transpose2d_forward,
    .adapt = conv_transpose2d_adapt,
};
#undef ROW
#undef NEED
