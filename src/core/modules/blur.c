/* SPDX-License-Identifier: Apache-2.0 */
/* blur.c: anti-aliased downsampling. Blur = depthwise cross-correlation with
 * [1 2 1; 2 4 2; 1 2 1] / 16, zero padding 1.
 *
 * Source: Zhang 2019 (arXiv 1904.11486); spec/algorithms.md 2.3. Names and shapes of
 * the filters are Composer's (algorithms/blurpool/blurpool_layers.py). */
#include "core/modules/common.h"

enum { TAPS = 9 };

/* The filter, CHANNELS times, as buffer P. */
static et_status
declare_filter(struct et_ctx *cx, struct et_param *p, int64_t channels)
{
    static const float filter[TAPS] = {
        1 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 4 / 16.f,
        2 / 16.f, 1 / 16.f, 2 / 16.f, 1 / 16.f,
    };
    void *block;
    et_buffer_declare(p, eti_init_constant(0), ET_SHAPE(channels, 1, 3, 3));
    ET_TRY(et_alloc(cx, (size_t)(channels * TAPS) * sizeof(float), &block));
    for (int64_t i = 0; i < channels * TAPS; i++)
        ((float *)block)[i] = filter[i % TAPS];
    et_status status = et_param_write(cx, p, block, channels * TAPS);
    et_free(cx, block);
    return status;
}

/* FILTER has one row for each channel, or one that serves all. */
static struct et_tensor *
blur(struct et_forward *f, struct et_tensor *x, const struct et_param *filter,
     int64_t stride)
{
    struct et_tensor *w = filter->tensor;
    if (!x || !w)
        return NULL;
    int64_t c = x->desc.shape[1];
    struct et_conv2d_attr o = {
        .stride = {(int32_t)stride, (int32_t)stride},
        .pad = {1, 1},
        .dilation = {1, 1},
        .groups = (int32_t)c,
    };
    if (w->desc.shape[0] != c)
        w = et_contiguous(f->g, et_expand(f->g, w, ET_SHAPE(c, 1, 3, 3)),
                          ET_CHANNELS_LAST);
    return et_conv2d(f->g, x, w, NULL, &o);
}

static et_status
blur_pool2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_blur_pool2d_module *m = (struct et_blur_pool2d_module *)base;
    m->o = *(const struct et_blur_pool2d_options *)options;
    m->o.stride = eti_int_or(m->o.stride, 1);
    return declare_filter(cx, &m->filt2d, 1);
}

static struct et_tensor *
blur_pool2d_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_blur_pool2d_module *m = (struct et_blur_pool2d_module *)base;
    return blur(f, x, &m->filt2d, m->o.stride);
}

const struct et_module_class et_blur_pool2d_class = {
    .info =
        {
            .name = "blur_pool2d",
            .class_name = "BlurPool2d",
            .summary = "3x3 binomial blur with a stride",
            .source = "arXiv 1904.11486",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_INT(et_blur_pool2d_options, "stride", stride, "1",
                                  "step of the blur"),
                    {0},
                },
            .options_size = sizeof(struct et_blur_pool2d_options),
        },
    .size = sizeof(struct et_blur_pool2d_module),
    .params = (const struct et_slot[]){ET_SLOT(et_blur_pool2d_module, filt2d), {0}},
    .init = blur_pool2d_init,
    .forward = blur_pool2d_forward,
};

static et_status
blur_conv2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_blur_conv2d_module *m = (struct et_blur_conv2d_module *)base;
    const struct et_blur_conv2d_options *o = options;
    if (!o->conv || !et_module_is(o->conv, &et_conv2d_class))
        return ET_FAIL(cx, ET_EINVAL, "blur_conv2d is made from a convolution");
    struct et_conv2d_module *old = (struct et_conv2d_module *)o->conv;
    struct et_conv2d_options inner = old->o;
    m->blur_last = o->blur_last;
    if (m->blur_last)
        inner.stride = 1;
    ET_TRY(et_module_new(cx, &et_conv2d_class, &inner, &m->conv));
    m->stride = m->blur_last ? old->o.stride : 1;
    ET_TRY(declare_filter(cx, &m->blur_filter,
                          m->blur_last ? inner.out_channels : inner.in_channels));
    struct et_conv2d_module *conv = (struct et_conv2d_module *)m->conv;
    base->marked = m->conv->marked = true;
    ET_TRY(et_param_move(cx, &conv->weight, &old->weight));
    return et_param_move(cx, &conv->bias, &old->bias);
}

static struct et_tensor *
blur_conv2d_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_blur_conv2d_module *m = (struct et_blur_conv2d_module *)base;
    if (m->blur_last)
        return blur(f, et_forward(f, m->conv, x), &m->blur_filter, m->stride);
    return et_forward(f, m->conv, blur(f, x, &m->blur_filter, m->stride));
}

const struct et_module_class et_blur_conv2d_class = {
    .info =
        {
            .name = "blur_conv2d",
            .class_name = "BlurConv2d",
            .summary = "strided convolution behind or before a blur",
            .source = "arXiv 1904.11486",
            .applies_to = "vision",
            .options_size = sizeof(struct et_blur_conv2d_options),
        },
    .size = sizeof(struct et_blur_conv2d_module),
    .params =
        (const struct et_slot[]){ET_SLOT(et_blur_conv2d_module, blur_filter), {0}},
    .children = (const struct et_slot[]){ET_SLOT(et_blur_conv2d_module, conv), {0}},
    .init = blur_conv2d_init,
    .forward = blur_conv2d_forward,
};

static et_status
blur_max_pool2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_blur_max_pool2d_module *m = (struct et_blur_max_pool2d_module *)base;
    const struct et_blur_max_pool2d_options *o = options;
    if (!o->pool || !et_module_is(o->pool, &et_max_pool2d_class))
        return ET_FAIL(cx, ET_EINVAL, "blur_max_pool2d is made from a max pool");
    struct et_pool2d_options inner = ((struct et_pool2d_module *)o->pool)->o;
    m->stride = inner.stride;
    inner.stride = 1;
    ET_TRY(et_module_new(cx, &et_max_pool2d_class, &inner, &m->pool));
    ET_TRY(declare_filter(cx, &m->filt2d, 1));
    base->marked = m->pool->marked = true;
    return ET_OK;
}

static struct et_tensor *
blur_max_pool2d_forward(struct et_module *base, struct et_forward *f,
                        struct et_tensor *x)
{
    struct et_blur_max_pool2d_module *m = (struct et_blur_max_pool2d_module *)base;
    return blur(f, et_forward(f, m->pool, x), &m->filt2d, m->stride);
}

const struct et_module_class et_blur_max_pool2d_class = {
    .info =
        {
            .name = "blur_max_pool2d",
            .class_name = "BlurMaxPool2d",
            .summary = "max pool at stride 1, then a strided blur",
            .source = "arXiv 1904.11486",
            .applies_to = "vision",
            .options_size = sizeof(struct et_blur_max_pool2d_options),
        },
    .size = sizeof(struct et_blur_max_pool2d_module),
    .params = (const struct et_slot[]){ET_SLOT(et_blur_max_pool2d_module, filt2d), {0}},
    .children = (const struct et_slot[]){ET_SLOT(et_blur_max_pool2d_module, pool), {0}},
    .init = blur_max_pool2d_init,
    .forward = blur_max_pool2d_forward,
};
