/* SPDX-License-Identifier: Apache-2.0 */
/* decoupled_adamw.c: Adam whose decay depends neither on the gradient nor on the rate.
 *
 *     p *= 1 - (lr / initial_lr) weight_decay;   then as adam.c without its decay
 *
 * Loshchilov and Hutter 2019, arXiv 1711.05101; MosaicML Composer,
 * composer/optim/decoupled_weight_decay.py. */
#include "core/optim/optim.h"

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct eti_adam_options *o = options;
    eti_warn_decay(cx, "decoupled_adamw", o->common.weight_decay);
    return eti_adam_check(cx, options);
}

static void
hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
      double *out)
{
    eti_adam_hyper(options, group, n, out);
    out[ETI_ADAM_DECAY] = eti_decoupled_decay(group);
}

static void
update(struct et_graph *g, struct et_update *u)
{
    eti_adam_update(g, u, eti_apart_decay(g, u, u->hyper[ETI_ADAM_DECAY]), u->grad);
}

static const struct et_option table[] = {
    ETI_ADAM_OPTIONS("[0.9, 0.95]", "1e-5"),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_decoupled_adamw = {
    .info =
        {
            .name = "decoupled_adamw",
            .class_name = "DecoupledAdamW",
            .summary = "Adam with decay that does not depend on lr",
            .source = "Loshchilov and Hutter 2019, arXiv 1711.05101; MosaicML Composer",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct eti_adam_options),
        },
    .moments = eti_adam_moments,
    .check = check,
    .n_moments = eti_adam_n_moments,
    .hyper = hyper,
    .update = update,
};
