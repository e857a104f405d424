/* SPDX-License-Identifier: Apache-2.0 */
/* linear.c: y = x W^T + b; and GPT-2's conv1d, y = x W + b with W stored [in, out]. */
#include "core/modules/common.h"

static et_status
linear_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_linear_module *m = (struct et_linear_module *)base;
    m->o = *(const struct et_linear_options *)options;
    ETI_NEED_POSITIVE(cx, "linear", &m->o, in_features);
    ETI_NEED_POSITIVE(cx, "linear", &m->o, out_features);
    struct et_init init = eti_init_fan_in((double)m->o.in_features);
    et_param_declare(&m->weight, init, ET_SHAPE(m->o.out_features, m->o.in_features));
    if (!m->o.no_bias)
        et_param_declare(&m->bias, init, ET_SHAPE(m->o.out_features));
    return ET_OK;
}

static struct et_tensor *
linear_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_linear_module *m = (struct et_linear_module *)base;
    return et_linear(f->g, x, m->weight.tensor, m->bias.tensor);
}

static et_status
linear_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_linear_options *o = options;
    if (shape[1] > 0)
        return ET_FAIL(
            cx, ET_EINVAL,
            "linear takes vectors, but images of %lldx%lldx%lld come in; put "
            "flatten before it",
            (long long)shape[0], (long long)shape[1], (long long)shape[2]);
    ET_TRY(eti_adapt_in(cx, "linear", "numbers", shape[0], &o->in_features));
    shape[0] = o->out_features;
    return ET_OK;
}

const struct et_module_class et_linear_class = {
    .info =
        {
            .name = "linear",
            .class_name = "Linear",
            .summary = "fully connected layer",
            .source = "torch.nn.Linear",
            .applies_to = "any",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_INT(et_linear_options, "in", in_features, "0",
                                  "input features; 0 = what comes in",
                                  .also = "in_features"),
                    ETI_LAYER_NEED(et_linear_options, "out", out_features,
                                   "output features", .also = "out_features"),
                    ETI_LAYER_BOOL(et_linear_options, "no_bias", no_bias,
                                   "leave the bias out", .also = "!bias"),
                    {0},
                },
            .options_size = sizeof(struct et_linear_options),
        },
    .size = sizeof(struct et_linear_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_linear_module, weight),
            ET_SLOT(et_linear_module, bias),
            {0},
        },
    .init = linear_init,
    .forward = linear_forward,
    .adapt = linear_adapt,
};

static et_status
conv1d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_conv1d_module *m = (struct et_conv1d_module *)base;
    m->o = *(const struct et_conv1d_options *)options;
    m->o.std = eti_float_or(m->o.std, 0.02);
    ETI_NEED_POSITIVE(cx, "conv1d", &m->o, in_features);
    ETI_NEED_POSITIVE(cx, "conv1d", &m->o, out_features);
    et_param_declare(&m->weight, eti_init_normal(m->o.std),
                     ET_SHAPE(m->o.in_features, m->o.out_features));
    et_param_declare(&m->bias, eti_init_constant(0), ET_SHAPE(m->o.out_features));
    return ET_OK;
}

static struct et_tensor *
conv1d_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_conv1d_module *m = (struct et_conv1d_module *)base;
    struct et_tensor *in[] = {x, m->weight.tensor, m->bias.tensor};
    struct et_matmul_attr attr = {0};
    return et_apply(f->g, ET_OP_matmul, in, 3, &attr, sizeof attr, NULL);
}

const struct et_module_class et_conv1d_class = {
    .info =
        {
            .name = "conv1d",
            .class_name = "Conv1D",
            .summary = "fully connected layer with GPT-2's weight layout",
            .source = "transformers.pytorch_utils.Conv1D",
            .applies_to = "text",
            .options_size = sizeof(struct et_conv1d_options),
        },
    .size = sizeof(struct et_conv1d_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_conv1d_module, weight),
            ET_SLOT(et_conv1d_module, bias),
            {0},
        },
    .init = conv1d_init,
    .forward = conv1d_forward,
};
