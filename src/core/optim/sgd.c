/* SPDX-License-Identifier: Apache-2.0 */
/* sgd.c: stochastic gradient descent with momentum and coupled weight decay.
 *
 *     d   = g + weight_decay p
 *     buf = d at the first update, then momentum buf + (1 - dampening) d
 *     p  -= lr (nesterov ? d + momentum buf : buf)
 *
 * Sutskever, Martens, Dahl and Hinton 2013; the form of torch.optim.SGD. */
#include "core/optim/optim.h"

#include "etude/ctx.h"

const char *const eti_sgd_moments[] = {"momentum_buffer", NULL};

et_status
eti_sgd_check(struct et_ctx *cx, const void *options)
{
    const struct eti_sgd_options *o = options;
    if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return ET_FAIL(cx, ET_EINVAL,
                       "nesterov needs momentum above 0 and dampening 0, not %g and %g",
                       o->momentum, o->dampening);
    return ET_OK;
}

int
eti_sgd_n_moments(const void *options)
{
    const struct eti_sgd_options *o = options;
    return o->momentum != 0;
}

/* The buffer begins as zeros, so the rule of the first update is a weight of 1. */
void
eti_sgd_hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
              double *hyper)
{
    const struct eti_sgd_options *o = options;
    hyper[ETI_SGD_LR] = group->lr;
    hyper[ETI_SGD_DECAY] = eti_decoupled_decay(group);
    hyper[ETI_SGD_FRESH] = n == 1 ? 1 : 1 - o->dampening;
}

void
eti_sgd_update(struct et_graph *g, struct et_update *u, struct et_tensor *p,
               struct et_tensor *grad)
{
    const struct eti_sgd_options *o = u->options;
    struct et_tensor *d = grad;
    if (o->momentum != 0) {
        if (o->dampening != 0)
            d = et_mul(g, grad, u->hyper[ETI_SGD_FRESH]);
        d = et_add(g, et_mul_scalar(g, u->moment[0], o->momentum), d);
        u->new_moment[0] = d;
        if (o->nesterov)
            d = et_add(g, grad, et_mul_scalar(g, d, o->momentum));
    }
    u->new_p = et_sub(g, p, et_mul(g, d, u->hyper[ETI_SGD_LR]));
}

static void
update(struct et_graph *g, struct et_update *u)
{
    eti_sgd_update(g, u, u->p, eti_coupled_decay(g, u));
}

static const struct et_option table[] = {
    ETI_SGD_OPTIONS(NULL),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_sgd = {
    .info =
        {
            .name = "sgd",
            .class_name = "SGD",
            .summary = "gradient descent with momentum; decay is part of the gradient",
            .source = "Sutskever et al. 2013; torch.optim.SGD",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct eti_sgd_options),
        },
    .moments = eti_sgd_moments,
    .check = eti_sgd_check,
    .n_moments = eti_sgd_n_moments,
    .hyper = eti_sgd_hyper,
    .update = update,
};
