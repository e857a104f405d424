/* SPDX-License-Identifier: Apache-2.0 */
/* factorize.c: two thin layers in the place of a large one.
 *
 *     k = latent, or latent times min(in, out) where that is below 1
 *     replaced where min(in, out) is large enough, a convolution has one group, and
 *     k <= et_factorized_max(fan_in, out): fewer multiplications
 *
 * Spec/algorithms.md 2.9; the two layers: modules/factorized.c. Differs: applied twice
 * it changes nothing more, where Composer's may split the thin layers again. */
#include "core/base/need.h"
#include "config.h"

#include <math.h>

#include "core/algorithms/algorithms.h"
#include "etude/nn.h"

struct factorize_options {
    bool factorize_convs, factorize_linears;
    int64_t min_channels, min_features;
    double latent_channels, latent_features;
};

struct surgery {
    const struct factorize_options *o;
    const struct et_factorized_module *inside; /* the last pair met */
    int convs, linears;                        /* replaced so far */
};

static et_status
note_pair(struct et_ctx *cx, struct et_module *old, int index, void *data,
          struct et_module **out)
{
    (void)cx, (void)index, (void)out;
    ((struct surgery *)data)->inside = (struct et_factorized_module *)old;
    return ET_OK;
}

static bool
is_thin(const struct surgery *s, const struct et_module *m)
{
    return s->inside && (m == s->inside->module0 || m == s->inside->module1);
}

static int64_t
latent_of(double latent, int64_t in, int64_t out)
{
    if (latent >= 1)
        return (int64_t)latent;
    int64_t k = (int64_t)(latent * (double)(in < out ? in : out));
    return k > 1 ? k : 1;
}

static et_status
replace_conv(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    struct surgery *s = data;
    const struct et_conv2d_options *c = &((struct et_conv2d_module *)old)->o;
    int64_t k = latent_of(s->o->latent_channels, c->in_channels, c->out_channels);
    (void)index;
    if (!s->o->factorize_convs || is_thin(s, old) || c->groups > 1 ||
        c->in_channels < s->o->min_channels || c->out_channels < s->o->min_channels ||
        k > et_factorized_max(c->in_channels * c->kernel * c->kernel, c->out_channels))
        return ET_OK;
    s->convs++;
    return ET_NEW(cx, out, factorized_conv2d, .layer = old, .latent = k);
}

static et_status
replace_linear(struct et_ctx *cx, struct et_module *old, int index, void *data,
               struct et_module **out)
{
    struct surgery *s = data;
    const struct et_linear_options *l = &((struct et_linear_module *)old)->o;
    int64_t k = latent_of(s->o->latent_features, l->in_features, l->out_features);
    (void)index;
    if (!s->o->factorize_linears || is_thin(s, old) ||
        l->in_features < s->o->min_features || l->out_features < s->o->min_features ||
        k > et_factorized_max(l->in_features, l->out_features))
        return ET_OK;
    s->linears++;
    return ET_NEW(cx, out, factorized_linear, .layer = old, .latent = k);
}

static et_status
operate(struct et_ctx *cx, struct et_module *root, struct surgery *s,
        struct et_surgery *out)
{
    static const struct et_surgery_policy policies[] = {
        {&et_factorized_conv2d_class, note_pair},
        {&et_factorized_linear_class, note_pair},
        {&et_conv2d_class, replace_conv},
        {&et_linear_class, replace_linear},
    };
    return et_module_replace(cx, root, policies, 4, s, out);
}

et_status
et_apply_factorization(struct et_ctx *cx, struct et_module *root, bool factorize_convs,
                       bool factorize_linears, int64_t min_channels,
                       double latent_channels, int64_t min_features,
                       double latent_features, struct et_surgery *out)
{
    ETI_NEED(cx, cx, root, out);
    const struct factorize_options o = {
        .factorize_convs = factorize_convs,
        .factorize_linears = factorize_linears,
        .min_channels = min_channels,
        .min_features = min_features,
        .latent_channels = latent_channels,
        .latent_features = latent_features,
    };
    struct surgery s = {.o = &o};
    return operate(cx, root, &s, out);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    struct surgery own = {.o = self->options};
    struct et_module *root = s->model->root;
    struct et_surgery surgery;
    int convs, linears, changed;
    (void)event;
    ET_TRY(et_module_count_class(s->cx, root, &et_conv2d_class, &convs));
    ET_TRY(et_module_count_class(s->cx, root, &et_linear_class, &linears));
    et_status status = operate(s->cx, root, &own, &surgery);
    ET_TRY(eti_end_surgery(s, status, &surgery, &changed));
    et_log_metric(log, "factorize/num_conv2d_replacements", own.convs);
    et_log_metric(log, "factorize/num_linear_replacements", own.linears);
    convs = own.o->factorize_convs ? convs : 0;
    linears = own.o->factorize_linears ? linears : 0;
    if (own.convs > 0)
        eti_tell_changed(self, own.convs, convs, "convolutions");
    if (own.linears > 0)
        eti_tell_changed(self, own.linears, linears, "linear layers");
    if (own.convs + own.linears == 0)
        eti_tell_changed(self, 0, convs + linears, "convolutions and linear layers");
    return ET_OK;
}

static et_status
check_latent(struct et_ctx *cx, const char *name, double latent, double below)
{
    if (latent < below || (latent >= 1 && latent == floor(latent)))
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "factorize: %s is a whole number from 1 on, or a fraction below %g, "
                   "not %g",
                   name, below, latent);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct factorize_options *o = options;
    if (!o->factorize_convs && !o->factorize_linears)
        return ET_FAIL(cx, ET_EINVAL,
                       "factorize: factorize_convs and factorize_linears are both "
                       "false; there is nothing to do");
    ET_TRY(check_latent(cx, "latent_channels", o->latent_channels, 1));
    return check_latent(cx, "latent_features", o->latent_features, 0.5);
}

static const struct et_option table[] = {
    ETI_BOOL(factorize_options, factorize_convs, "true", "split convolutions"),
    ETI_BOOL(factorize_options, factorize_linears, "true", "split linear layers"),
    ETI_ROW(INT, factorize_options, min_channels, "256", 1, -1, 0,
            "convolutions with fewer input or output channels stay as they are"),
    ETI_ROW(FLOAT, factorize_options, latent_channels, "0.25", 0, 1 << 24, 0,
            "channels between; below 1: a fraction of the smaller of a convolution's "
            "two numbers of them"),
    ETI_ROW(INT, factorize_options, min_features, "256", 1, -1, 0,
            "linear layers with fewer inputs or outputs stay as they are"),
    ETI_ROW(FLOAT, factorize_options, latent_features, "128", 0, 1 << 24, 0,
            "features between; below 0.5: a fraction of the smaller of a layer's "
            "inputs and outputs"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_factorize = {
    .info =
        {
            .name = "factorize",
            .class_name = "Factorize",
            .summary = "split large layers into two of lower rank",
            .source = "MosaicML Composer",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct factorize_options),
        },
    .events = ET_ON(INIT),
    .flags = ET_ALG_REQUIRED_ON_LOAD,
    .check = check,
    .apply = apply,
};
