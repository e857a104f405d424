/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c: what several update rules compute alike: decay of weights, averages, and the
 * check of Adam's two betas. */
#include "core/optim/optim.h"
#include "etude/ctx.h"
#include "etude/op.h"

double
eti_decoupled_decay(const struct et_optimizer_group *group)
{
    double ratio = group->initial_lr == 0 ? 1 : group->lr / group->initial_lr;
    return ratio * group->weight_decay;
}

void
eti_warn_decay(struct et_ctx *cx, const char *name, double weight_decay)
{
    if (weight_decay >= 1e-3)
        et_report(cx, ET_LOG_WARN,
                  "%s: weight_decay %g is not scaled by the learning rate: every step "
                  "multiplies the weights by %g",
                  name, weight_decay, 1 - weight_decay);
}

et_status
eti_check_betas(struct et_ctx *cx, const struct et_floats *betas)
{
    if (betas->n != 2)
        return ET_FAIL(cx, ET_EINVAL, "betas has %d numbers, not 2", betas->n);
    return ET_OK;
}

struct et_tensor *
eti_coupled_decay(struct et_graph *g, const struct et_update *u)
{
    double decay = u->group->weight_decay;
    return decay != 0 ? et_add(g, u->grad, et_mul_scalar(g, u->p, decay)) : u->grad;
}

struct et_tensor *
eti_apart_decay(struct et_graph *g, const struct et_update *u,
                struct et_tensor *fraction)
{
    bool decays = u->group->weight_decay != 0;
    return decays ? et_sub(g, u->p, et_mul(g, u->p, fraction)) : u->p;
}

struct et_tensor *
eti_average(struct et_graph *g, struct et_tensor *x, struct et_tensor *y, double decay)
{
    return et_add(g, et_mul_scalar(g, et_sub(g, y, x), 1 - decay), x);
}
