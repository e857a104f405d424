/* SPDX-License-Identifier: Apache-2.0 */
/* adam.c: Adam with coupled weight decay.
 *
 *     g  += weight_decay p
 *     m   = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
 *     p  -= lr / (1 - beta1^n) m / (sqrt(v) / sqrt(1 - beta2^n) + eps)
 *
 * at update n = 1, 2, ...
 *
 * amsgrad divides by the largest v so far. Kingma and Ba 2015, arXiv 1412.6980; Reddi
 * et al. 2018; the form of torch.optim.Adam. */
#include "core/optim/optim.h"

#include <math.h>

enum { M, V, V_MAX };
const char *const eti_adam_moments[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq",
                                        NULL};

et_status
eti_adam_check(struct et_ctx *cx, const void *options)
{
    const struct eti_adam_options *o = options;
    return eti_check_betas(cx, &o->betas);
}

int
eti_adam_n_moments(const void *options)
{
    const struct eti_adam_options *o = options;
    return o->amsgrad ? 3 : 2;
}

void
eti_adam_hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
               double *hyper)
{
    const struct eti_adam_options *o = options;
    hyper[ETI_ADAM_RATE] = group->lr / (1 - pow(o->betas.v[0], (double)n));
    hyper[ETI_ADAM_ROOT] = 1 / sqrt(1 - pow(o->betas.v[1], (double)n));
}

void
eti_adam_update(struct et_graph *g, struct et_update *u, struct et_tensor *p,
                struct et_tensor *grad)
{
    const struct eti_adam_options *o = u->options;
    struct et_tensor *m = eti_average(g, u->moment[M], grad, o->betas.v[0]);
    struct et_tensor *v =
        eti_average(g, u->moment[V], et_square(g, grad), o->betas.v[1]);
    u->new_moment[M] = m;
    u->new_moment[V] = v;
    if (o->amsgrad)
        u->new_moment[V_MAX] = v = et_maximum(g, u->moment[V_MAX], v);
    struct et_tensor *root = et_mul(g, et_sqrt(g, v), u->hyper[ETI_ADAM_ROOT]);
    struct et_tensor *step = et_div(g, m, et_add_scalar(g, root, o->eps));
    u->new_p = et_sub(g, p, et_mul(g, step, u->hyper[ETI_ADAM_RATE]));
}

static void
update(struct et_graph *g, struct et_update *u)
{
    eti_adam_update(g, u, u->p, eti_coupled_decay(g, u));
}

static const struct et_option table[] = {
    ETI_ADAM_OPTIONS("[0.9, 0.999]", "0.0"),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_adam = {
    .info =
        {
            .name = "adam",
            .class_name = "Adam",
            .summary = "steps scaled by averages of the gradient and its square",
            .source = "Kingma and Ba 2015, arXiv 1412.6980; torch.optim.Adam",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct eti_adam_options),
        },
    .moments = eti_adam_moments,
    .check = eti_adam_check,
    .n_moments = eti_adam_n_moments,
    .hyper = eti_adam_hyper,
    .update = update,
};
