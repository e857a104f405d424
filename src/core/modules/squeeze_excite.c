/* SPDX-License-Identifier: Apache-2.0 */
/* squeeze_excite.c: channels weighed by what the whole image has of them.
 *
 * p = mean of each channel; a = sigmoid(W2 relu(W1 p)); y = a x. W1 is [h, C] and W2
 * [C, h].
 * Source: Hu et al. 2018 (arXiv 1709.01507); spec/algorithms.md 2.24. Names are
 * Composer's (algorithms/squeeze_excite/squeeze_excite.py). */
#include "core/modules/common.h"

static et_status
squeeze_excite2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_squeeze_excite2d_module *m = (struct et_squeeze_excite2d_module *)base;
    const struct et_squeeze_excite2d_options *o = options;
    ETI_NEED_POSITIVE(cx, "squeeze_excite2d", o, channels);
    ETI_NEED_POSITIVE(cx, "squeeze_excite2d", o, latent_channels);
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->pool_and_mlp));
    ET_TRY(ET_ADD(cx, m->pool_and_mlp, NULL, adaptive_avg_pool2d, .height = 1));
    ET_TRY(et_module_add(cx, m->pool_and_mlp, NULL, &et_flatten_class, NULL));
    ET_TRY(ET_ADD(cx, m->pool_and_mlp, NULL, linear, .in_features = o->channels,
                  .out_features = o->latent_channels, .no_bias = true));
    ET_TRY(et_module_add(cx, m->pool_and_mlp, NULL, &et_relu_class, NULL));
    ET_TRY(ET_ADD(cx, m->pool_and_mlp, NULL, linear, .in_features = o->latent_channels,
                  .out_features = o->channels, .no_bias = true));
    return et_module_add(cx, m->pool_and_mlp, NULL, &et_sigmoid_class, NULL);
}

static struct et_tensor *
squeeze_excite2d_forward(struct et_module *base, struct et_forward *f,
                         struct et_tensor *x)
{
    struct et_squeeze_excite2d_module *m = (struct et_squeeze_excite2d_module *)base;
    struct et_tensor *a = et_forward(f, m->pool_and_mlp, x);
    if (!a)
        return NULL;
    const int64_t *n = a->desc.shape;
    return et_mul(f->g, x, et_reshape(f->g, a, ET_SHAPE(n[0], n[1], 1, 1)));
}

static et_status
squeeze_excite2d_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_squeeze_excite2d_options *o = options;
    if (shape[1] < 1)
        return ET_FAIL(cx, ET_EINVAL, "squeeze_excite2d takes images, not vectors");
    o->channels = eti_int_or(o->channels, shape[0]);
    return ET_OK;
}

const struct et_module_class et_squeeze_excite2d_class = {
    .info =
        {
            .name = "squeeze_excite2d",
            .class_name = "SqueezeExcite2d",
            .summary = "weighs channels by what the whole image has of them",
            .source = "arXiv 1709.01507",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_INT(et_squeeze_excite2d_options, "channels", channels,
                                  "0", "channels; 0 = what comes in"),
                    ETI_LAYER_NEED(et_squeeze_excite2d_options, "latent_channels",
                                   latent_channels, "width of the layer between"),
                    {0},
                },
            .options_size = sizeof(struct et_squeeze_excite2d_options),
        },
    .size = sizeof(struct et_squeeze_excite2d_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_squeeze_excite2d_module, pool_and_mlp),
            {0},
        },
    .init = squeeze_excite2d_init,
    .forward = squeeze_excite2d_forward,
    .adapt = squeeze_excite2d_adapt,
};

/* ---- behind a convolution ---- */

static et_status
squeeze_excite_conv2d_init(struct et_ctx *cx, struct et_module *base,
                           const void *options)
{
    struct et_squeeze_excite_conv2d_module *m =
        (struct et_squeeze_excite_conv2d_module *)base;
    const struct et_squeeze_excite_conv2d_options *o = options;
    if (!o->conv || !et_module_is(o->conv, &et_conv2d_class))
        return ET_FAIL(cx, ET_EINVAL,
                       "squeeze_excite_conv2d is made from a convolution");
    const struct et_conv2d_module *conv = (struct et_conv2d_module *)o->conv;
    struct et_leaves own;
    m->conv = et_module_ref(o->conv);
    ET_TRY(ET_NEW(cx, &m->se, squeeze_excite2d, .channels = conv->o.out_channels,
                  .latent_channels = o->latent_channels));
    ET_TRY(et_module_leaves(cx, m->se, ET_PARAM, &own));
    for (int i = 0; i < own.n; i++) /* of the part that the convolution is of */
        own.v[i].param->gate = conv->weight.gate;
    et_leaves_release(&own);
    return ET_OK;
}

static struct et_tensor *
squeeze_excite_conv2d_forward(struct et_module *base, struct et_forward *f,
                              struct et_tensor *x)
{
    struct et_squeeze_excite_conv2d_module *m =
        (struct et_squeeze_excite_conv2d_module *)base;
    return et_forward(f, m->se, et_forward(f, m->conv, x));
}

const struct et_module_class et_squeeze_excite_conv2d_class = {
    .info =
        {
            .name = "squeeze_excite_conv2d",
            .class_name = "SqueezeExciteConv2d",
            .summary = "convolution whose channels are weighed",
            .source = "arXiv 1709.01507",
            .applies_to = "vision",
            .options_size = sizeof(struct et_squeeze_excite_conv2d_options),
        },
    .size = sizeof(struct et_squeeze_excite_conv2d_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_squeeze_excite_conv2d_module, conv),
            ET_SLOT(et_squeeze_excite_conv2d_module, se),
            {0},
        },
    .init = squeeze_excite_conv2d_init,
    .forward = squeeze_excite_conv2d_forward,
};
