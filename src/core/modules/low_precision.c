/* SPDX-License-Identifier: Apache-2.0 */
/* low_precision.c: layer and group norm that compute in the dtype of mixed precision.
 *
 * Where a graph casts, x, weight and bias go to its low dtype, and so does y; mean and
 * variance are f32 in any case. Elsewhere they are the norms they were made from.
 * Source: spec/algorithms.md 2.16 and 2.17. */
#include "core/modules/common.h"
#include "core/ops/ops.h"

/* The operands in the low dtype, where F casts; what is built until et_autocast takes
 * back what this returns stays in it. */
static bool
go_low(struct et_graph *g, struct et_tensor **x, struct et_tensor **weight,
       struct et_tensor **bias)
{
    *x = eti_autocast_low(g, *x);
    *weight = eti_autocast_low(g, *weight);
    *bias = eti_autocast_low(g, *bias);
    return et_autocast(g, false);
}

static et_status
low_precision_layer_norm_init(struct et_ctx *cx, struct et_module *base,
                              const void *options)
{
    struct et_layer_norm_module *m = (struct et_layer_norm_module *)base;
    const struct et_low_precision_layer_norm_options *o = options;
    if (!o->norm || !et_module_is(o->norm, &et_layer_norm_class))
        return ET_FAIL(cx, ET_EINVAL,
                       "low_precision_layer_norm is made from a layer norm");
    struct et_layer_norm_module *old = (struct et_layer_norm_module *)o->norm;
    ET_TRY(et_layer_norm_class.init(cx, base, &old->o));
    ET_TRY(et_param_move(cx, &m->weight, &old->weight));
    return et_param_move(cx, &m->bias, &old->bias);
}

static struct et_tensor *
low_precision_layer_norm_forward(struct et_module *base, struct et_forward *f,
                                 struct et_tensor *x)
{
    struct et_layer_norm_module *m = (struct et_layer_norm_module *)base;
    struct et_tensor *weight = m->weight.tensor, *bias = m->bias.tensor;
    bool was = go_low(f->g, &x, &weight, &bias);
    x = et_layer_norm(f->g, x, weight, bias, 1, m->o.eps);
    et_autocast(f->g, was);
    return x;
}

const struct et_module_class et_low_precision_layer_norm_class = {
    .info =
        {
            .name = "low_precision_layer_norm",
            .class_name = "LPLayerNorm",
            .summary = "layer norm in the dtype of mixed precision",
            .source = "MosaicML Composer",
            .applies_to = "any",
            .options_size = sizeof(struct et_low_precision_layer_norm_options),
        },
    .base = &et_layer_norm_class,
    .size = sizeof(struct et_layer_norm_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_layer_norm_module, weight),
            ET_SLOT(et_layer_norm_module, bias),
            {0},
        },
    .init = low_precision_layer_norm_init,
    .forward = low_precision_layer_norm_forward,
};

/* ---- group norm ---- */

static et_status
low_precision_group_norm_init(struct et_ctx *cx, struct et_module *base,
                              const void *options)
{
    struct et_group_norm_module *m = (struct et_group_norm_module *)base;
    const struct et_low_precision_group_norm_options *o = options;
    if (!o->norm || !et_module_is(o->norm, &et_group_norm_class))
        return ET_FAIL(cx, ET_EINVAL,
                       "low_precision_group_norm is made from a group norm");
    struct et_group_norm_module *old = (struct et_group_norm_module *)o->norm;
    ET_TRY(et_group_norm_class.init(cx, base, &old->o));
    ET_TRY(et_param_move(cx, &m->weight, &old->weight));
    return et_param_move(cx, &m->bias, &old->bias);
}

static struct et_tensor *
low_precision_group_norm_forward(struct et_module *base, struct et_forward *f,
                                 struct et_tensor *x)
{
    struct et_group_norm_module *m = (struct et_group_norm_module *)base;
    struct et_tensor *weight = m->weight.tensor, *bias = m->bias.tensor;
    bool was = go_low(f->g, &x, &weight, &bias);
    x = et_group_norm(f->g, x, weight, bias, (int)m->o.num_groups, m->o.eps);
    et_autocast(f->g, was);
    return x;
}

const struct et_module_class et_low_precision_group_norm_class = {
    .info =
        {
            .name = "low_precision_group_norm",
            .class_name = "LPGroupNorm",
            .summary = "group norm in the dtype of mixed precision",
            .source = "MosaicML Composer",
            .applies_to = "vision",
            .options_size = sizeof(struct et_low_precision_group_norm_options),
        },
    .base = &et_group_norm_class,
    .size = sizeof(struct et_group_norm_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(et_group_norm_module, weight),
            ET_SLOT(et_group_norm_module, bias),
            {0},
        },
    .init = low_precision_group_norm_init,
    .forward = low_precision_group_norm_forward,
};
