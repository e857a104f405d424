/* SPDX-License-Identifier: Apache-2.0 */
/* weight_standardization.c: convolutions by filters of mean 0 and variance 1.
 *
 *     W' = (W - mean) / sqrt(var + 1e-10) per filter, at every use; W is trained
 *
 * Qiao et al. 2019, arXiv 1903.10520; spec/algorithms.md 2.27. Differs: convolutions
 * are counted as the model declares them, which is the order in which the models here
 * apply them; a checkpoint needs it, since it renames weights (D21). */
#include "core/base/need.h"
#include "config.h"

#include "core/algorithms/algorithms.h"
#include "etude/nn.h"

struct weight_standardization_options {
    int64_t n_last_layers_ignore;
};

static et_status
replace_conv(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    if (index >= *(const int64_t *)data ||
        et_module_is(old, &et_standardized_conv2d_class))
        return ET_OK;
    return ET_NEW(cx, out, standardized_conv2d, .conv = old);
}

et_status
et_apply_weight_standardization(struct et_ctx *cx, struct et_module *root,
                                int64_t n_last_layers_ignore, struct et_surgery *out)
{
    static const struct et_surgery_policy policy = {&et_conv2d_class, replace_conv};
    int convs;
    ETI_NEED(cx, cx, root, out);
    *out = (struct et_surgery){.cx = cx};
    ET_TRY(et_module_count_class(cx, root, &et_conv2d_class, &convs));
    int64_t first = convs - n_last_layers_ignore;
    return et_module_replace(cx, root, &policy, 1, &first, out);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct weight_standardization_options *o = self->options;
    struct et_module *root = s->model->root;
    struct et_surgery surgery;
    int convs, standardized;
    (void)event;
    et_status status =
        et_apply_weight_standardization(s->cx, root, o->n_last_layers_ignore, &surgery);
    ET_TRY(eti_end_surgery(s, status, &surgery, &standardized));
    ET_TRY(et_module_count_class(s->cx, root, &et_conv2d_class, &convs));
    ET_TRY(et_module_count_class(s->cx, root, &et_standardized_conv2d_class,
                                 &standardized));
    et_log_metric(log, "WeightStandardization/num_weights_standardized", standardized);
    eti_tell_changed(self, standardized, convs, "convolutions");
    return ET_OK;
}

static et_status
restore_conv(struct et_ctx *cx, struct et_module *base, int index, void *data,
             struct et_module **out)
{
    struct et_conv2d_module *old = (struct et_conv2d_module *)base, *conv;
    (void)index, (void)data;
    ET_TRY(et_module_new(cx, &et_conv2d_class, &old->o, out));
    conv = (struct et_conv2d_module *)*out;
    conv->base.marked = base->marked;
    ET_TRY(et_param_move(cx, &conv->weight, &old->weight));
    return et_param_move(cx, &conv->bias, &old->bias);
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policy = {&et_standardized_conv2d_class,
                                                    restore_conv};
    (void)self;
    return eti_undo_surgery(s, &policy, 1, NULL);
}

static const struct et_option table[] = {
    ETI_ROW(INT, weight_standardization_options, n_last_layers_ignore, "0", 0, -1, 0,
            "convolutions at the end that stay as they are"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_weight_standardization = {
    .info =
        {
            .name = "weight_standardization",
            .class_name = "WeightStandardization",
            .summary = "standardise the filters of convolutions",
            .source = "Qiao et al. 2019, arXiv 1903.10520",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct weight_standardization_options),
        },
    .events = ET_ON(INIT),
    .flags = ET_ALG_REQUIRED_ON_LOAD,
    .apply = apply,
    .undo = undo,
};
