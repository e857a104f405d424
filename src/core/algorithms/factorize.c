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

/* ---- taking it back ---- */

/* The convolution in M, which other methods may have put into modules of theirs.
 * *STRIDE: its own, or what a blur behind it has of it. */
static struct et_conv2d_module *
find_conv(struct et_module *m, int64_t *stride)
{
    *stride = 0;
    while (!et_module_is(m, &et_conv2d_class)) {
        if (et_module_is(m, &et_squeeze_excite_conv2d_class)) {
            m = ((struct et_squeeze_excite_conv2d_module *)m)->conv;
        } else {
            struct et_blur_conv2d_module *blur = (struct et_blur_conv2d_module *)m;
            *stride = blur->blur_last ? blur->stride : *stride;
            m = blur->conv;
        }
    }
    struct et_conv2d_module *conv = (struct et_conv2d_module *)m;
    *stride = *stride ? *stride : conv->o.stride;
    return conv;
}

struct factors {
    struct et_param *weight[2], *bias, *whole; /* [k, m], [n, k], [n], [n, m] */
    int64_t k, m, n;
};

/* WHOLE = weight[1] weight[0], on the host: once, between two batches. */
static et_status
multiply(struct et_ctx *cx, const struct factors *f)
{
    size_t n[] = {(size_t)(f->k * f->m), (size_t)(f->n * f->k), (size_t)(f->n * f->m)};
    void *block;
    ET_TRY(et_alloc(cx, (n[0] + n[1] + n[2]) * sizeof(float), &block));
    float *a = block, *b = a + n[0], *c = b + n[1];
    et_status status = et_param_read(cx, f->weight[0], "", 0, a, (int64_t)n[0]);
    if (status == ET_OK)
        status = et_param_read(cx, f->weight[1], "", 0, b, (int64_t)n[1]);
    for (int64_t i = 0; i < f->n && status == ET_OK; i++)
        for (int64_t p = 0; p < f->k; p++)
            for (int64_t j = 0; j < f->m; j++)
                c[i * f->m + j] += b[i * f->k + p] * a[p * f->m + j];
    if (status == ET_OK)
        status = et_param_write(cx, f->whole, c, (int64_t)n[2]);
    et_free(cx, block);
    return status;
}

static et_status
merge(struct et_ctx *cx, struct factors *f, struct et_param *bias)
{
    f->k = f->weight[0]->desc.shape[0];
    f->m = et_desc_count(&f->weight[0]->desc) / f->k;
    f->n = f->weight[1]->desc.shape[0];
    f->whole->gate = f->weight[1]->gate;
    if (f->weight[0]->tensor && f->weight[1]->tensor)
        ET_TRY(multiply(cx, f));
    return bias->desc.dtype == ET_NONE ? ET_OK : et_param_move(cx, bias, f->bias);
}

/* One layer whose weights are the two's product. A bias that only the two had goes. */
static et_status
restore_conv(struct et_ctx *cx, struct et_module *base, int index, void *data,
             struct et_module **out)
{
    struct et_factorized_module *two = (struct et_factorized_module *)base;
    int64_t one, stride;
    struct et_conv2d_module *b = find_conv(two->module1, &one);
    struct et_conv2d_module *a = find_conv(two->module0, &stride);
    struct et_conv2d_options o = a->o;
    (void)index, (void)data;
    o.stride = stride;
    o.out_channels = b->o.out_channels;
    o.no_bias = two->no_bias;
    ET_TRY(et_module_new(cx, &et_conv2d_class, &o, out));
    struct et_conv2d_module *conv = (struct et_conv2d_module *)*out;
    struct factors f = {{&a->weight, &b->weight}, &b->bias, &conv->weight, 0, 0, 0};
    return merge(cx, &f, &conv->bias);
}

static et_status
restore_linear(struct et_ctx *cx, struct et_module *base, int index, void *data,
               struct et_module **out)
{
    struct et_factorized_module *two = (struct et_factorized_module *)base;
    struct et_linear_module *a = (struct et_linear_module *)two->module0;
    struct et_linear_module *b = (struct et_linear_module *)two->module1;
    struct et_linear_options o = a->o;
    (void)index, (void)data;
    o.out_features = b->o.out_features;
    o.no_bias = two->no_bias;
    ET_TRY(et_module_new(cx, &et_linear_class, &o, out));
    struct et_linear_module *linear = (struct et_linear_module *)*out;
    struct factors f = {{&a->weight, &b->weight}, &b->bias, &linear->weight, 0, 0, 0};
    return merge(cx, &f, &linear->bias);
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policies[] = {
        {&et_factorized_conv2d_class, restore_conv},
        {&et_factorized_linear_class, restore_linear},
    };
    (void)self;
    return eti_undo_surgery(s, policies, 2, NULL);
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
    .undo = undo,
};
