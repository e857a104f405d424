/* SPDX-License-Identifier: Apache-2.0 */
/* blurpool.c: anti-aliased downsampling by a change of modules.
 *
 *     conv, stride s:  blur, conv stride s;  or conv stride 1, blur stride s
 *     max pool, stride s:  max pool stride 1, blur stride s
 *     blur = [1 2 1; 2 4 2; 1 2 1] / 16 per channel (modules/blur.c)
 *
 * Zhang 2019, arXiv 1904.11486; spec/algorithms.md 2.3. Differs: nothing; weights are
 * moved, not copied, and keep their state in the optimizer by name. */
#include "config.h"

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"
#include "etude/nn.h"

struct blurpool_options {
    bool replace_convs, replace_maxpools, blur_first;
    int64_t min_channels;
};

static et_status
replace_conv(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    const struct blurpool_options *o = data;
    const struct et_conv2d_options *conv = &((struct et_conv2d_module *)old)->o;
    (void)index;
    if (!o->replace_convs || old->marked || conv->stride < 2 ||
        conv->in_channels < o->min_channels)
        return ET_OK;
    return ET_NEW(cx, out, blur_conv2d, .conv = old, .blur_last = !o->blur_first);
}

static et_status
replace_pool(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    const struct blurpool_options *o = data;
    (void)index;
    if (!o->replace_maxpools || old->marked)
        return ET_OK;
    return ET_NEW(cx, out, blur_max_pool2d, .pool = old);
}

et_status
et_apply_blurpool(struct et_ctx *cx, struct et_module *root, bool replace_convs,
                  bool replace_maxpools, bool blur_first, int64_t min_channels,
                  struct et_surgery *out)
{
    ETI_NEED(cx, cx, root, out);
    static const struct et_surgery_policy policies[] = {
        {&et_conv2d_class, replace_conv},
        {&et_max_pool2d_class, replace_pool},
    };
    struct blurpool_options o = {
        .replace_convs = replace_convs,
        .replace_maxpools = replace_maxpools,
        .blur_first = blur_first,
        .min_channels = min_channels,
    };
    return et_module_replace(cx, root, policies, 2, &o, out);
}

static et_status
report(struct et_state *s, struct et_log *log)
{
    int convs, pools;
    struct et_module *root = s->model->root;
    ET_TRY(et_module_count_class(s->cx, root, &et_blur_conv2d_class, &convs));
    ET_TRY(et_module_count_class(s->cx, root, &et_blur_max_pool2d_class, &pools));
    et_log_metric(log, "blurpool/num_blurconv_layers", convs);
    et_log_metric(log, "blurpool/num_blurpool_layers", pools);
    if (convs + pools == 0)
        et_report(s->cx, ET_LOG_WARN,
                  "blurpool changed nothing: the model has no max pool and no strided "
                  "convolution that qualifies");
    return ET_OK;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct blurpool_options *o = self->options;
    struct et_surgery surgery;
    int changed;
    (void)event;
    et_status status =
        et_apply_blurpool(s->cx, s->model->root, o->replace_convs, o->replace_maxpools,
                          o->blur_first, o->min_channels, &surgery);
    ET_TRY(eti_end_surgery(s, status, &surgery, &changed));
    return report(s, log);
}

/* ---- taking it back ---- */

/* The convolution whose stride is M's: other methods may have put it into a module of
 * theirs. */
static struct et_conv2d_module *
find_conv(struct et_module *m)
{
    while (!et_module_is(m, &et_conv2d_class))
        m = et_module_is(m, &et_squeeze_excite_conv2d_class)
                ? ((struct et_squeeze_excite_conv2d_module *)m)->conv
                : ((struct et_factorized_module *)m)->module0;
    return (struct et_conv2d_module *)m;
}

static et_status
restore_conv(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    struct et_blur_conv2d_module *blur = (struct et_blur_conv2d_module *)old;
    struct et_conv2d_module *conv = find_conv(blur->conv);
    (void)cx, (void)index, (void)data;
    if (blur->blur_last) {
        conv->o.stride = blur->stride;
        conv->attr.stride[0] = conv->attr.stride[1] = (int32_t)blur->stride;
    }
    conv->base.marked = false;
    *out = et_module_ref(blur->conv);
    return ET_OK;
}

static et_status
restore_pool(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    struct et_blur_max_pool2d_module *blur = (struct et_blur_max_pool2d_module *)old;
    struct et_pool2d_options o = ((struct et_pool2d_module *)blur->pool)->o;
    (void)index, (void)data;
    o.stride = blur->stride;
    return et_module_new(cx, &et_max_pool2d_class, &o, out);
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policies[] = {
        {&et_blur_conv2d_class, restore_conv},
        {&et_blur_max_pool2d_class, restore_pool},
    };
    (void)self;
    return eti_undo_surgery(s, policies, 2, NULL);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct blurpool_options *o = options;
    if (o->replace_convs || o->replace_maxpools)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "blurpool: replace_convs and replace_maxpools are both "
                   "false; there is nothing to do");
}

static const struct et_option table[] = {
    ETI_BOOL(blurpool_options, replace_convs, "true", "blur strided convolutions"),
    ETI_BOOL(blurpool_options, replace_maxpools, "true", "blur max pools"),
    ETI_BOOL(blurpool_options, blur_first, "true",
             "blur in front of a convolution; false: behind it, slower"),
    ETI_ROW(INT, blurpool_options, min_channels, "16", 0, -1, 0,
            "convolutions with fewer input channels stay as they are"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_blurpool = {
    .info =
        {
            .name = "blurpool",
            .class_name = "BlurPool",
            .summary = "blur before downsampling, against aliasing",
            .source = "Zhang 2019, arXiv 1904.11486",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct blurpool_options),
        },
    .events = ET_ON(INIT),
    .flags = ET_ALG_REQUIRED_ON_LOAD,
    .check = check,
    .apply = apply,
    .undo = undo,
};
