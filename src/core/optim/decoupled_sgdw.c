/* SPDX-License-Identifier: Apache-2.0 */
/* decoupled_sgdw.c: gradient descent with momentum, and decay apart from the gradient.
 *
 *     p *= 1 - (lr / initial_lr) weight_decay;   then as sgd.c without its decay
 *
 * Loshchilov and Hutter 2019, arXiv 1711.05101; MosaicML Composer,
 * composer/optim/decoupled_weight_decay.py. */
#include "core/optim/optim.h"

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct eti_sgd_options *o = options;
    eti_warn_decay(cx, "decoupled_sgdw", o->common.weight_decay);
    return eti_sgd_check(cx, options);
}

static void
update(struct et_graph *g, struct et_update *u)
{
    eti_sgd_update(g, u, eti_apart_decay(g, u, u->hyper[ETI_SGD_DECAY]), u->grad);
}

static const struct et_option table[] = {
    ETI_SGD_OPTIONS(NULL),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_decoupled_sgdw = {
    .info =
        {
            .name = "decoupled_sgdw",
            .class_name = "DecoupledSGDW",
            .summary = "gradient descent with momentum; decay does not depend on lr",
            .source = "Loshchilov and Hutter 2019, arXiv 1711.05101; MosaicML Composer",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct eti_sgd_options),
        },
    .moments = eti_sgd_moments,
    .check = check,
    .n_moments = eti_sgd_n_moments,
    .hyper = eti_sgd_hyper,
    .update = update,
};
