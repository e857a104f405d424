/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c: batch, layer and group normalisation. y = w (x - mean) / sqrt(var + eps) + b.
 *
 * Sources: Ioffe and Szegedy 2015 (arXiv 1502.03167); Ba et al. 2016 (1607.06450); Wu
 * and He 2018 (1803.08494). Differs: there is no num_batches_tracked, which PyTorch
 * needs only for momentum None; its loader fills it in, ours skips it. */
#include "core/modules/common.h"
#include "core/modules/sync_norm.h"

static et_status
batch_norm_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_batch_norm_module *m = (struct et_batch_norm_module *)base;
    m->o = *(const struct et_batch_norm_options *)options;
    m->o.eps = eti_float_or(m->o.eps, 1e-5);
    m->o.momentum = eti_float_or(m->o.momentum, 0.1);
    ETI_NEED_POSITIVE(cx, "batch_norm", &m->o, num_features);
    int64_t c = m->o.num_features;
    if (!m->o.no_affine) {
        et_param_declare(&m->weight, eti_init_constant(1), ET_SHAPE(c));
        et_param_declare(&m->bias, eti_init_constant(0), ET_SHAPE(c));
    }
    et_buffer_declare(&m->running_mean, eti_init_constant(0), ET_SHAPE(c));
    et_buffer_declare(&m->running_var, eti_init_constant(1), ET_SHAPE(c));
    return ET_OK;
}

/* Queues r <- (1 - momentum) r + momentum s, where the part under way is used. */
static void
follow(struct et_forward *f, struct et_tensor *r, struct et_tensor *s, double momentum,
       double scale)
{
    struct et_graph *g = f->g;
    struct et_tensor *now = et_pending(g, r);
    struct et_tensor *next = et_add(g, et_mul_scalar(g, now, 1 - momentum),
                                    et_mul_scalar(g, s, momentum * scale));
    if (f->gate)
        next = et_where(g, et_gate_closed(g, f->gate), now, next);
    et_assign(g, r, next);
}

void
et_batch_norm_update(struct et_batch_norm_module *m, struct et_forward *f,
                     struct et_tensor *mean, struct et_tensor *var, int64_t count,
                     double momentum)
{
    if (!m || !f)
        return;
    double unbiased = count > 1 ? (double)count / (double)(count - 1) : 1;
    if (f->keep_stats)
        return;
    follow(f, m->running_mean.tensor, et_detach(f->g, mean), momentum, 1);
    follow(f, m->running_var.tensor, et_detach(f->g, var), momentum, unbiased);
}

static struct et_tensor *
batch_norm_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_batch_norm_module *m = (struct et_batch_norm_module *)base;
    struct et_tensor *mean, *var, *w = m->weight.tensor, *b = m->bias.tensor;
    if (!f->training)
        return et_batch_norm_eval(f->g, x, w, b, m->running_mean.tensor,
                                  m->running_var.tensor, m->o.eps);
    if (f->place)
        return eti_sync_batch_norm(m, f, x);
    struct et_tensor *y = et_batch_norm(f->g, x, w, b, m->o.eps, &mean, &var);
    if (y)
        et_batch_norm_update(m, f, mean, var,
                             et_desc_count(&x->desc) / m->o.num_features,
                             m->o.momentum);
    return y;
}

static et_status
batch_norm_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_batch_norm_options *o = options;
    (void)cx;
    o->num_features = eti_int_or(o->num_features, shape[0]);
    return ET_OK;
}

const struct et_module_class et_batch_norm_class = {
    .info =
        {
            .name = "batch_norm",
            .class_name = "BatchNorm2d",
            .summary = "normalises each channel over the batch",
            .source = "arXiv 1502.03167",
            .applies_to = "any",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_INT(et_batch_norm_options, "features", num_features, "0",
                                  "channels; 0 = what comes in",
                                  .also = "num_features"),
                    ETI_LAYER_FLOAT(et_batch_norm_options, "eps", eps, "1e-5", 0, 1,
                                    "added to the variance"),
                    ETI_LAYER_FLOAT(et_batch_norm_options, "momentum", momentum, "0.1",
                                    0, 1,
                                    "weight of a batch in the running statistics"),
                    ETI_LAYER_BOOL(et_batch_norm_options, "no_affine", no_affine,
                                   "leave weight and bias out", .also = "!affine"),
                    {0},
                },
            .options_size = sizeof(struct et_batch_norm_options),
        },
    .size = sizeof(struct et_batch_norm_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_batch_norm_module, weight),
            ET_SLOT(et_batch_norm_module, bias),
            ET_SLOT(et_batch_norm_module, running_mean),
            ET_SLOT(et_batch_norm_module, running_var),
            {0},
        },
    .init = batch_norm_init,
    .forward = batch_norm_forward,
    .adapt = batch_norm_adapt,
};

/* ---- layer norm ---- */

static et_status
layer_norm_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_layer_norm_module *m = (struct et_layer_norm_module *)base;
    m->o = *(const struct et_layer_norm_options *)options;
    m->o.eps = eti_float_or(m->o.eps, 1e-5);
    ETI_NEED_POSITIVE(cx, "layer_norm", &m->o, features);
    if (!m->o.no_affine)
        et_param_declare(&m->weight, eti_init_constant(1), ET_SHAPE(m->o.features));
    if (!m->o.no_affine && !m->o.no_bias)
        et_param_declare(&m->bias, eti_init_constant(0), ET_SHAPE(m->o.features));
    return ET_OK;
}

static struct et_tensor *
layer_norm_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_layer_norm_module *m = (struct et_layer_norm_module *)base;
    return et_layer_norm(f->g, x, m->weight.tensor, m->bias.tensor, 1, m->o.eps);
}

static et_status
layer_norm_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_layer_norm_options *o = options;
    if (shape[1] > 0)
        return ET_FAIL(cx, ET_EINVAL,
                       "layer_norm takes vectors here; put flatten before it");
    o->features = eti_int_or(o->features, shape[0]);
    return ET_OK;
}

const struct et_module_class et_layer_norm_class = {
    .info =
        {
            .name = "layer_norm",
            .class_name = "LayerNorm",
            .summary = "normalises over the last axis",
            .source = "arXiv 1607.06450",
            .applies_to = "any",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_INT(et_layer_norm_options, "features", features, "0",
                                  "length of the last axis; 0 = what comes in",
                                  .also = "normalized_shape"),
                    ETI_LAYER_FLOAT(et_layer_norm_options, "eps", eps, "1e-5", 0, 1,
                                    "added to the variance"),
                    ETI_LAYER_BOOL(et_layer_norm_options, "no_affine", no_affine,
                                   "leave weight and bias out",
                                   .also = "!elementwise_affine"),
                    ETI_LAYER_BOOL(et_layer_norm_options, "no_bias", no_bias,
                                   "leave the bias out", .also = "!bias"),
                    {0},
                },
            .options_size = sizeof(struct et_layer_norm_options),
        },
    .size = sizeof(struct et_layer_norm_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_layer_norm_module, weight),
            ET_SLOT(et_layer_norm_module, bias),
            {0},
        },
    .init = layer_norm_init,
    .forward = layer_norm_forward,
    .adapt = layer_norm_adapt,
};

/* ---- group norm ---- */

static et_status
group_norm_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_group_norm_module *m = (struct et_group_norm_module *)base;
    m->o = *(const struct et_group_norm_options *)options;
    m->o.eps = eti_float_or(m->o.eps, 1e-5);
    ETI_NEED_POSITIVE(cx, "group_norm", &m->o, num_groups);
    ETI_NEED_POSITIVE(cx, "group_norm", &m->o, num_channels);
    if (m->o.num_channels % m->o.num_groups)
        return ET_FAIL(cx, ET_EINVAL, "%lld groups do not divide %lld channels",
                       (long long)m->o.num_groups, (long long)m->o.num_channels);
    if (!m->o.no_affine) {
        et_param_declare(&m->weight, eti_init_constant(1), ET_SHAPE(m->o.num_channels));
        et_param_declare(&m->bias, eti_init_constant(0), ET_SHAPE(m->o.num_channels));
    }
    return ET_OK;
}

static struct et_tensor *
group_norm_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_group_norm_module *m = (struct et_group_norm_module *)base;
    return et_group_norm(f->g, x, m->weight.tensor, m->bias.tensor,
                         (int)m->o.num_groups, m->o.eps);
}

static et_status
group_norm_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct et_group_norm_options *o = options;
    (void)cx;
    o->num_channels = eti_int_or(o->num_channels, shape[0]);
    return ET_OK;
}

const struct et_module_class et_group_norm_class = {
    .info =
        {
            .name = "group_norm",
            .class_name = "GroupNorm",
            .summary = "normalises groups of channels of one sample",
            .source = "arXiv 1803.08494",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ETI_LAYER_NEED(et_group_norm_options, "groups", num_groups,
                                   "groups of channels", .also = "num_groups"),
                    ETI_LAYER_INT(et_group_norm_options, "channels", num_channels, "0",
                                  "channels; 0 = what comes in",
                                  .also = "num_channels"),
                    ETI_LAYER_FLOAT(et_group_norm_options, "eps", eps, "1e-5", 0, 1,
                                    "added to the variance"),
                    ETI_LAYER_BOOL(et_group_norm_options, "no_affine", no_affine,
                                   "leave weight and bias out", .also = "!affine"),
                    {0},
                },
            .options_size = sizeof(struct et_group_norm_options),
        },
    .size = sizeof(struct et_group_norm_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_group_norm_module, weight),
            ET_SLOT(et_group_norm_module, bias),
            {0},
        },
    .init = group_norm_init,
    .forward = group_norm_forward,
    .adapt = group_norm_adapt,
};
