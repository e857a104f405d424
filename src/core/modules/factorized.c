/* SPDX-License-Identifier: Apache-2.0 */
/* factorized.c: a linear layer or a convolution as two thin ones.
 *
 *     linear:  linear to k features without bias, linear from k
 *     conv:    conv to k channels without bias, conv 1x1 from k, with a bias always
 *
 * Source: spec/algorithms.md 2.9. Names are Composer's
 * (algorithms/factorize/factorize_modules.py). */
#include "core/modules/common.h"

int64_t
et_factorized_max(int64_t fan_in, int64_t out)
{
    int64_t sum = fan_in + out;
    return (fan_in * out + sum - 1) / sum - 1;
}

static et_status
check(struct et_ctx *cx, int64_t latent, int64_t fan_in, int64_t out)
{
    int64_t most = et_factorized_max(fan_in, out);
    if (latent >= 1 && latent <= most)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "a factorised layer of %lld inputs and %lld outputs needs 1 to %lld "
                   "latent ones to have less work, not %lld",
                   (long long)fan_in, (long long)out, (long long)most,
                   (long long)latent);
}

/* A part of the model that a step may leave out has its layers' weights. */
static void
inherit_gate(struct et_param *to, const struct et_param *from)
{
    to->gate = from->gate;
}

static et_status
factorized_conv2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_factorized_module *m = (struct et_factorized_module *)base;
    const struct et_factorized_conv2d_options *o = options;
    if (!o->layer || !et_module_is(o->layer, &et_conv2d_class))
        return ET_FAIL(cx, ET_EINVAL, "factorized_conv2d is made from a convolution");
    const struct et_conv2d_module *old = (struct et_conv2d_module *)o->layer;
    struct et_conv2d_options thin = old->o;
    int64_t out = thin.out_channels;
    if (thin.groups > 1)
        return ET_FAIL(cx, ET_ENOTSUP, "a convolution of %lld groups is not factorised",
                       (long long)thin.groups);
    ET_TRY(check(cx, o->latent, thin.in_channels * thin.kernel * thin.kernel, out));
    m->no_bias = thin.no_bias;
    thin.out_channels = o->latent;
    thin.no_bias = true;
    ET_TRY(et_module_new(cx, &et_conv2d_class, &thin, &m->module0));
    ET_TRY(ET_NEW(cx, &m->module1, conv2d, .in_channels = o->latent,
                  .out_channels = out, .kernel = 1));
    inherit_gate(&((struct et_conv2d_module *)m->module0)->weight, &old->weight);
    inherit_gate(&((struct et_conv2d_module *)m->module1)->weight, &old->weight);
    inherit_gate(&((struct et_conv2d_module *)m->module1)->bias, &old->weight);
    return ET_OK;
}

static et_status
factorized_linear_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_factorized_module *m = (struct et_factorized_module *)base;
    const struct et_factorized_linear_options *o = options;
    if (!o->layer || !et_module_is(o->layer, &et_linear_class))
        return ET_FAIL(cx, ET_EINVAL, "factorized_linear is made from a linear layer");
    const struct et_linear_options *old = &((struct et_linear_module *)o->layer)->o;
    m->no_bias = old->no_bias;
    ET_TRY(check(cx, o->latent, old->in_features, old->out_features));
    ET_TRY(ET_NEW(cx, &m->module0, linear, .in_features = old->in_features,
                  .out_features = o->latent, .no_bias = true));
    return ET_NEW(cx, &m->module1, linear, .in_features = o->latent,
                  .out_features = old->out_features, .no_bias = old->no_bias);
}

static struct et_tensor *
factorized_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_factorized_module *m = (struct et_factorized_module *)base;
    return et_forward(f, m->module1, et_forward(f, m->module0, x));
}

static const struct et_slot factors[] = {
    ET_SLOT(et_factorized_module, module0),
    ET_SLOT(et_factorized_module, module1),
    {0},
};

const struct et_module_class et_factorized_conv2d_class = {
    .info =
        {
            .name = "factorized_conv2d",
            .class_name = "FactorizedConv2d",
            .summary = "convolution to few channels, then one of 1x1",
            .source = "MosaicML Composer",
            .applies_to = "vision",
            .options_size = sizeof(struct et_factorized_conv2d_options),
        },
    .size = sizeof(struct et_factorized_module),
    .children = factors,
    .init = factorized_conv2d_init,
    .forward = factorized_forward,
};

const struct et_module_class et_factorized_linear_class = {
    .info =
        {
            .name = "factorized_linear",
            .class_name = "FactorizedLinear",
            .summary = "linear layer to few features, then one from these",
            .source = "MosaicML Composer",
            .applies_to = "any",
            .options_size = sizeof(struct et_factorized_linear_options),
        },
    .size = sizeof(struct et_factorized_module),
    .children = factors,
    .init = factorized_linear_init,
    .forward = factorized_forward,
};
