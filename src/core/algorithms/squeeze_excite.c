/* SPDX-License-Identifier: Apache-2.0 */
/* squeeze_excite.c: weighs the channels behind convolutions, by a change of modules.
 *
 *     y = conv(x);  y a per channel, a = sigmoid(W2 relu(W1 mean(y)))
 *
 * Hu et al. 2018, arXiv 1709.01507; spec/algorithms.md 2.24. Differs: a fraction that
 * leaves a convolution no latent channel is refused. */
#include "core/base/need.h"
#include "config.h"

#include <math.h>

#include "core/algorithms/algorithms.h"
#include "etude/nn.h"

struct squeeze_excite_options {
    double latent_channels;
    int64_t min_channels;
};

struct surgery {
    const struct squeeze_excite_options *o;
    struct et_module *inside; /* of the last block met, whose convolution comes next */
};

static et_status
note_block(struct et_ctx *cx, struct et_module *old, int index, void *data,
           struct et_module **out)
{
    struct surgery *s = data;
    (void)cx, (void)index, (void)out;
    s->inside = ((struct et_squeeze_excite_conv2d_module *)old)->conv;
    return ET_OK;
}

static et_status
replace_conv(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    const struct surgery *s = data;
    const struct et_conv2d_options *conv = &((struct et_conv2d_module *)old)->o;
    double latent = s->o->latent_channels;
    (void)index;
    if (old == s->inside || conv->in_channels < s->o->min_channels ||
        conv->out_channels < s->o->min_channels)
        return ET_OK;
    if (latent < 1)
        latent *= (double)conv->out_channels;
    if (latent < 1)
        return ET_FAIL(cx, ET_EINVAL,
                       "squeeze_excite: latent_channels %g of a convolution's %lld "
                       "channels is less than one",
                       s->o->latent_channels, (long long)conv->out_channels);
    return ET_NEW(cx, out, squeeze_excite_conv2d, .conv = old,
                  .latent_channels = (int64_t)latent);
}

et_status
et_apply_squeeze_excite(struct et_ctx *cx, struct et_module *root,
                        double latent_channels, int64_t min_channels,
                        struct et_surgery *out)
{
    static const struct et_surgery_policy policies[] = {
        {&et_squeeze_excite_conv2d_class, note_block},
        {&et_conv2d_class, replace_conv},
    };
    ETI_NEED(cx, cx, root, out);
    const struct squeeze_excite_options o = {latent_channels, min_channels};
    struct surgery s = {.o = &o};
    return et_module_replace(cx, root, policies, 2, &s, out);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct squeeze_excite_options *o = self->options;
    struct et_module *root = s->model->root;
    struct et_surgery surgery;
    int convs, changed, blocks;
    (void)event;
    ET_TRY(et_module_count_class(s->cx, root, &et_conv2d_class, &convs));
    et_status status = et_apply_squeeze_excite(s->cx, root, o->latent_channels,
                                               o->min_channels, &surgery);
    ET_TRY(eti_end_surgery(s, status, &surgery, &changed));
    ET_TRY(
        et_module_count_class(s->cx, root, &et_squeeze_excite_conv2d_class, &blocks));
    et_log_metric(log, "squeeze_excite/num_squeeze_excite_layers", blocks);
    eti_tell_changed(self, changed, convs, "convolutions");
    return ET_OK;
}

static et_status
restore_conv(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    (void)cx, (void)index, (void)data;
    *out = et_module_ref(((struct et_squeeze_excite_conv2d_module *)old)->conv);
    return ET_OK;
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policy = {&et_squeeze_excite_conv2d_class,
                                                    restore_conv};
    (void)self;
    return eti_undo_surgery(s, &policy, 1, NULL);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    double latent = ((const struct squeeze_excite_options *)options)->latent_channels;
    if (latent < 1 || latent == floor(latent))
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "squeeze_excite: latent_channels is a whole number, or a fraction "
                   "of a convolution's channels below 1, not %g",
                   latent);
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, squeeze_excite_options, latent_channels, "64", 0, 1 << 24,
            ET_OPT_MIN_OPEN,
            "channels between the two layers; below 1: a fraction of the "
            "convolution's"),
    ETI_ROW(INT, squeeze_excite_options, min_channels, "128", 0, -1, 0,
            "convolutions with fewer input or output channels stay as they are"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_squeeze_excite = {
    .info =
        {
            .name = "squeeze_excite",
            .class_name = "SqueezeExcite",
            .summary = "weigh channels by what the whole image has of them",
            .source = "Hu et al. 2018, arXiv 1709.01507",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct squeeze_excite_options),
        },
    .events = ET_ON(INIT),
    .flags = ET_ALG_REQUIRED_ON_LOAD,
    .check = check,
    .apply = apply,
    .undo = undo,
};
