/* blur.c: anti-aliased downsampling. Blur = depthwise cross-correlation with
 * [1 2 1; 2 4 2; 1 2 1] / 16, zero padding 1.
 *
 * Source: Zhang 2019 (arXiv 1904.11486); spec/algorithms.md 2.3. */
#include "core/modules/common.h"

static et_status
blur_pool2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    static const float filter[9] = {
        1 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 4 / 16.f,
        2 / 16.f, 1 / 16.f, 2 / 16.f, 1 / 16.f,
    };
    struct et_blur_pool2d_module *m = (struct et_blur_pool2d_module *)base;
    m->o = *(const struct et_blur_pool2d_options *)options;
    m->o.stride = eti_int_or(m->o.stride, 1);
    et_buffer_declare(&m->blur_filter, eti_init_constant(0), ET_SHAPE(1, 1, 3, 3));
    return et_param_write(cx, &m->blur_filter, filter, 9);
}

/* The one filter serves every channel, so the layer needs no channel count. */
static struct et_tensor *
blur_pool2d_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_blur_pool2d_module *m = (struct et_blur_pool2d_module *)base;
    if (!x)
        return NULL;
    int64_t c = x->desc.shape[1];
    int32_t stride = (int32_t)m->o.stride;
    struct et_conv2d_attr o = {
        .stride = {stride, stride},
        .pad = {1, 1},
        .dilation = {1, 1},
        .groups = (int32_t)c,
    };
    struct et_tensor *w = et_expand(f->g, m->blur_filter.tensor, ET_SHAPE(c, 1, 3, 3));
    return et_conv2d(f->g, x, et_contiguous(f->g, w, ET_CHANNELS_LAST), NULL, &o);
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
    .params =
        (const struct et_slot[]){ET_SLOT(et_blur_pool2d_module, blur_filter), {0}},
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
    ET_TRY(
        ET_NEW(cx, &m->blur, blur_pool2d, .stride = m->blur_last ? old->o.stride : 1));
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
        return et_forward(f, m->blur, et_forward(f, m->conv, x));
    return et_forward(f, m->conv, et_forward(f, m->blur, x));
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
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_blur_conv2d_module, blur),
            ET_SLOT(et_blur_conv2d_module, conv),
            {0},
        },
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
    int64_t stride = inner.stride;
    inner.stride = 1;
    ET_TRY(et_module_new(cx, &et_max_pool2d_class, &inner, &m->pool));
    ET_TRY(ET_NEW(cx, &m->blur, blur_pool2d, .stride = stride));
    base->marked = m->pool->marked = true;
    return ET_OK;
}

static struct et_tensor *
blur_max_pool2d_forward(struct et_module *base, struct et_forward *f,
                        struct et_tensor *x)
{
    struct et_blur_max_pool2d_module *m = (struct et_blur_max_pool2d_module *)base;
    return et_forward(f, m->blur, et_forward(f, m->pool, x));
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
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_blur_max_pool2d_module, pool),
            ET_SLOT(et_blur_max_pool2d_module, blur),
            {0},
        },
    .init = blur_max_pool2d_init,
    .forward = blur_max_pool2d_forward,
};
