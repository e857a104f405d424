/* SPDX-License-Identifier: Apache-2.0 */
/* adamw.c: Adam whose decay is apart from the gradient and scaled by the rate.
 *
 *     p *= 1 - lr weight_decay;   then as adam.c without its decay
 *
 * Loshchilov and Hutter 2019, arXiv 1711.05101; the form of torch.optim.AdamW. */
#include "core/optim/optim.h"

static void
hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
      double *out)
{
    eti_adam_hyper(options, group, n, out);
    out[ETI_ADAM_DECAY] = group->lr * group->weight_decay;
}

static void
update(struct et_graph *g, struct et_update *u)
{
    eti_adam_update(g, u, eti_apart_decay(g, u, u->hyper[ETI_ADAM_DECAY]), u->grad);
}

static const struct et_option table[] = {
    ETI_ADAM_OPTIONS("[0.9, 0.999]", "0.01"),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_adamw = {
    .info =
        {
            .name = "adamw",
            .class_name = "AdamW",
            .summary = "Adam with decay apart from the gradient, scaled by lr",
            .source = "Loshchilov and Hutter 2019, arXiv 1711.05101; torch.optim.AdamW",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct eti_adam_options),
        },
    .moments = eti_adam_moments,
    .check = eti_adam_check,
    .n_moments = eti_adam_n_moments,
    .hyper = hyper,
    .update = update,
};
