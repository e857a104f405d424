/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: maximum, average and adaptive average over windows of [N,C,H,W]. */
#include "core/modules/common.h"

static void
pool2d_defaults(struct et_pool2d_options *o)
{
    o->stride = eti_int_or(o->stride, o->kernel);
    o->dilation = eti_int_or(o->dilation, 1);
}

static struct et_pool2d_attr
pool2d_attr(const struct et_pool2d_options *o)
{
    return (struct et_pool2d_attr){
        .kernel = {(int32_t)o->kernel, (int32_t)o->kernel},
        .stride = {(int32_t)o->stride, (int32_t)o->stride},
        .pad = {(int32_t)o->padding, (int32_t)o->padding},
        .dilation = {(int32_t)o->dilation, (int32_t)o->dilation},
        .ceil_mode = o->ceil_mode,
        .count_include_pad = 1,
    };
}

static et_status
pool2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_pool2d_module *m = (struct et_pool2d_module *)base;
    m->o = *(const struct et_pool2d_options *)options;
    struct et_pool2d_options *o = &m->o;
    pool2d_defaults(o);
    ETI_NEED_POSITIVE(cx, base->type->info.name, o, kernel);
    if (2 * o->padding > o->kernel)
        return ET_FAIL(cx, ET_EINVAL,
                       "padding %lld is more than half the pool's kernel %lld",
                       (long long)o->padding, (long long)o->kernel);
    m->attr = pool2d_attr(o);
    return ET_OK;
}

static et_status
pool2d_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_pool2d_options o = *(const struct et_pool2d_options *)options;
    pool2d_defaults(&o);
    const struct et_pool2d_attr attr = pool2d_attr(&o);
    for (int i = 1; i < 3; i++) {
        const int64_t size = et_pooled_size(&attr, i - 1, shape[i]);
        if (shape[i] < 1 || size < 1)
            return ET_FAIL(cx, ET_EINVAL, "a pool of %lldx%lld does not fit %lldx%lld",
                           (long long)o.kernel, (long long)o.kernel,
                           (long long)shape[1], (long long)shape[2]);
        shape[i] = size;
    }
    return ET_OK;
}

static struct et_tensor *
max_pool2d_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    return et_max_pool2d(f->g, x, &((struct et_pool2d_module *)m)->attr);
}

static struct et_tensor *
avg_pool2d_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    return et_avg_pool2d(f->g, x, &((struct et_pool2d_module *)m)->attr);
}

#define ROW(key, field, deflt, ...)                                                    \
    ETI_LAYER_INT(et_pool2d_options, key, field, deflt, __VA_ARGS__)
static const struct et_option pool2d_options[] = {
    ROW("kernel", kernel, "2", "window height and width", .also = "kernel_size"),
    ROW("stride", stride, "0", "step of the window; 0 = its size"),
    ROW("padding", padding, "0", "rows and columns around the image"),
    ROW("dilation", dilation, "1", "spacing inside the window; maximum only"),
    ETI_LAYER_BOOL(et_pool2d_options, "ceil_mode", ceil_mode, "round the size up"),
    {0},
};
#undef ROW

const struct et_module_class et_max_pool2d_class = {
    .info =
        {
            .name = "max_pool2d",
            .class_name = "MaxPool2d",
            .summary = "maximum of each window",
            .source = "torch.nn.MaxPool2d",
            .applies_to = "vision",
            .options = pool2d_options,
            .options_size = sizeof(struct et_pool2d_options),
        },
    .size = sizeof(struct et_pool2d_module),
    .init = pool2d_init,
    .forward = max_pool2d_forward,
    .adapt = pool2d_adapt,
};

static et_status
avg_pool2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    const struct et_pool2d_options *o = options;
    if (o->dilation > 1)
        return ET_FAIL(cx, ET_EINVAL, "avg_pool2d has no dilation");
    return pool2d_init(cx, base, options);
}

const struct et_module_class et_avg_pool2d_class = {
    .info =
        {
            .name = "avg_pool2d",
            .class_name = "AvgPool2d",
            .summary = "mean of each window",
            .source = "torch.nn.AvgPool2d",
            .applies_to = "vision",
            .options = pool2d_options,
            .options_size = sizeof(struct et_pool2d_options),
        },
    .size = sizeof(struct et_pool2d_module),
    .init = avg_pool2d_init,
    .forward = avg_pool2d_forward,
    .adapt = pool2d_adapt,
};

/* ---- adaptive ---- */

static et_status
adaptive_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_adaptive_avg_pool2d_module *m =
        (struct et_adaptive_avg_pool2d_module *)base;
    (void)cx;
    m->o = *(const struct et_adaptive_avg_pool2d_options *)options;
    m->o.height = eti_int_or(m->o.height, 1);
    m->o.width = eti_int_or(m->o.width, 1);
    return ET_OK;
}

static struct et_tensor *
adaptive_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_adaptive_avg_pool2d_module *m =
        (struct et_adaptive_avg_pool2d_module *)base;
    return et_adaptive_avg_pool2d(f->g, x, m->o.height, m->o.width);
}

static et_status
adaptive_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    const struct et_adaptive_avg_pool2d_options *o = options;
    if (shape[1] < 1)
        return ET_FAIL(cx, ET_EINVAL, "adaptive_avg_pool2d takes images, not vectors");
    shape[1] = eti_int_or(o->height, 1);
    shape[2] = eti_int_or(o->width, 1);
    return ET_OK;
}

const struct et_module_class et_adaptive_avg_pool2d_class = {
    .info =
        {
            .name = "adaptive_avg_pool2d",
            .class_name = "AdaptiveAvgPool2d",
            .summary = "means of as many windows as asked for",
            .source = "torch.nn.AdaptiveAvgPool2d",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_INT(et_adaptive_avg_pool2d_options, "height", height, "1",
                                  "rows to produce", .also = "~output_size"),
                    ETI_LAYER_INT(et_adaptive_avg_pool2d_options, "width", width, "1",
                                  "columns to produce"),
                    {0},
                },
            .options_size = sizeof(struct et_adaptive_avg_pool2d_options),
        },
    .size = sizeof(struct et_adaptive_avg_pool2d_module),
    .init = adaptive_init,
    .forward = adaptive_forward,
    .adapt = adaptive_adapt,
};
