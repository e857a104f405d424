/* SPDX-License-Identifier: Apache-2.0 */
/* low_precision_layernorm.c: layer norms in the dtype of mixed precision.
 *
 * Spec/algorithms.md 2.17; the norm: modules/low_precision.c. */
#include "core/base/need.h"
#include "config.h"

#include "core/algorithms/low_precision.h"
#include "etude/nn.h"

static et_status
replace_norm(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    (void)index, (void)data;
    if (et_module_is(old, &et_low_precision_layer_norm_class))
        return ET_OK;
    return ET_NEW(cx, out, low_precision_layer_norm, .norm = old);
}

et_status
et_apply_low_precision_layernorm(struct et_ctx *cx, struct et_module *root,
                                 struct et_surgery *out)
{
    static const struct et_surgery_policy policy = {&et_layer_norm_class, replace_norm};
    ETI_NEED(cx, cx, root, out);
    return et_module_replace(cx, root, &policy, 1, NULL, out);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)event, (void)log;
    return eti_low_precision_apply(self, s, &et_layer_norm_class, "layer norms",
                                   et_apply_low_precision_layernorm);
}

static et_status
restore_norm(struct et_ctx *cx, struct et_module *base, int index, void *data,
             struct et_module **out)
{
    struct et_layer_norm_module *old = (struct et_layer_norm_module *)base, *norm;
    (void)index, (void)data;
    ET_TRY(et_module_new(cx, &et_layer_norm_class, &old->o, out));
    norm = (struct et_layer_norm_module *)*out;
    ET_TRY(et_param_move(cx, &norm->weight, &old->weight));
    return et_param_move(cx, &norm->bias, &old->bias);
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policy = {&et_low_precision_layer_norm_class,
                                                    restore_norm};
    (void)self;
    return eti_undo_surgery(s, &policy, 1, NULL);
}

static const struct et_option table[] = {
    ETI_ENUM(eti_low_precision_options, apply_at, "init", eti_low_precision_times, 0,
             "when the norms are replaced"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_low_precision_layernorm = {
    .info =
        {
            .name = "low_precision_layernorm",
            .class_name = "LowPrecisionLayerNorm",
            .summary = "compute layer norms in low precision",
            .source = "MosaicML Composer",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct eti_low_precision_options),
        },
    .events = ET_ON(INIT) | ET_ON(BEFORE_LOAD) | ET_ON(AFTER_LOAD),
    .flags = ET_ALG_REQUIRED_ON_LOAD | ET_ALG_LAST,
    .match = eti_low_precision_match,
    .apply = apply,
    .undo = undo,
};
