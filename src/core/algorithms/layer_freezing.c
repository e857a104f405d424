/* SPDX-License-Identifier: Apache-2.0 */
/* layer_freezing.c: stops training early layers as the run goes on.
 *
 *     f = level (e - start) / (1 - start) at the fraction e of the run, 0 up to start
 *     the first trunc(f (n - 1)) of n layers, those with parameters and no children, in
 *     the order of declaration, are trained no more
 *
 * Spec/algorithms.md 2.15. Running statistics of what is frozen go on. A checkpoint
 * says what was frozen (D15); what is frozen has no gradient, so that no norm counts it
 * (D11). */
#include "config.h"

#include "core/algorithms/algorithms.h"

struct layer_freezing_options {
    double freeze_start, freeze_level;
};

double
et_freeze_fraction(double elapsed, double freeze_start, double freeze_level)
{
    if (elapsed <= freeze_start)
        return 0;
    return freeze_level * (elapsed - freeze_start) / (1 - freeze_start);
}

static void
freeze_one(struct et_module *m)
{
    struct et_param *p;
    for (int i = 0; (p = et_module_param(m, i, NULL)); i++)
        if (p->kind == ET_PARAM)
            p->requires_grad = false;
}

static bool
has_parameters(struct et_module *m)
{
    struct et_param *p;
    for (int i = 0; (p = et_module_param(m, i, NULL)); i++)
        if (p->kind == ET_PARAM && p->desc.dtype != ET_NONE)
            return true;
    return false;
}

/* Freezes the layers of M that are among the first DEPTH, of which *N were met so
 * far. */
static void
walk(struct et_module *m, int depth, int *n)
{
    struct et_module **child;
    bool is_leaf = true;
    for (int i = 0; (child = et_module_child(m, i, NULL)); i++) {
        if (!*child)
            continue;
        is_leaf = false;
        walk(*child, depth, n);
    }
    if (!is_leaf || !has_parameters(m))
        return;
    if (*n < depth)
        freeze_one(m);
    ++*n;
}

void
et_freeze_layers(struct et_module *root, double fraction, int *frozen, int *layers)
{
    int again = 0;
    if (!frozen || !layers)
        return;
    *frozen = *layers = 0;
    walk(root, 0, layers);
    if (*layers > 0)
        *frozen = (int)(fraction * (*layers - 1));
    walk(root, *frozen, &again);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct layer_freezing_options *o = self->options;
    int *last = self->state, frozen, layers;
    double elapsed;
    (void)event;
    ET_TRY(et_state_elapsed(s, &elapsed));
    double fraction = et_freeze_fraction(elapsed, o->freeze_start, o->freeze_level);
    et_freeze_layers(s->model->root, fraction, &frozen, &layers);
    if (frozen > *last) {
        ET_TRY(et_state_follow_surgery(s));
        eti_tell_changed(self, frozen, layers, "layers");
        *last = frozen;
    }
    et_log_metric(log, "layer_freezing/layers_frozen", frozen);
    et_log_metric(log, "layer_freezing/percentage_frozen", fraction);
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, layer_freezing_options, freeze_start, "0.5", 0, 1, ET_OPT_MAX_OPEN,
            "fraction of the run after which layers are frozen"),
    ETI_ROW(FLOAT, layer_freezing_options, freeze_level, "1.0", 0, 1, 0,
            "fraction of the layers that is frozen at the end"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_layer_freezing = {
    .info =
        {
            .name = "layer_freezing",
            .class_name = "LayerFreezing",
            .summary = "stop training early layers as the run goes on",
            .source = "Brock et al. 2017, arXiv 1706.04983; MosaicML Composer",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct layer_freezing_options),
        },
    .state_size = sizeof(int),
    .events = ET_ON(EPOCH_END),
    .apply = apply,
};
