/* SPDX-License-Identifier: Apache-2.0 */
/* radam.c: Adam whose adaptive rate is rectified by its variance early in training.
 *
 *     m, v as in adam.c, g with weight_decay p;   rho_inf = 2 / (1 - beta2) - 1
 *     rho = rho_inf - 2 n beta2^n / (1 - beta2^n)
 *     r   = sqrt((rho - 4) (rho - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho))
 *     p  -= lr / (1 - beta1^n) m (rho > 5 ? r sqrt(1 - beta2^n) / (sqrt(v) + eps) : 1)
 *
 * Which branch holds is a number, not another plan: one of two rates is 0. Liu et al.
 * 2020, arXiv 1908.03265; the form of torch.optim.RAdam. */
#include "core/optim/optim.h"

#include <math.h>

struct options {
    struct et_optimizer_options common;
    struct et_floats betas;
    double eps;
};

enum { M, V };
static const char *const moments[] = {"exp_avg", "exp_avg_sq", NULL};
enum { ADAPTIVE, PLAIN }; /* hyper: the two rates */

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct options *o = options;
    return eti_check_betas(cx, &o->betas);
}

static void
hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
      double *out)
{
    const struct options *o = options;
    double beta2 = o->betas.v[1], left = pow(beta2, (double)n);
    double rate = group->lr / (1 - pow(o->betas.v[0], (double)n));
    double inf = 2 / (1 - beta2) - 1, rho = inf - 2 * (double)n * left / (1 - left);
    out[ADAPTIVE] = out[PLAIN] = 0;
    if (rho > 5)
        out[ADAPTIVE] =
            rate * sqrt(1 - left) *
            sqrt((rho - 4) * (rho - 2) * inf / ((inf - 4) * (inf - 2) * rho));
    else
        out[PLAIN] = rate;
}

static void
update(struct et_graph *g, struct et_update *u)
{
    const struct options *o = u->options;
    struct et_tensor *grad = eti_coupled_decay(g, u);
    struct et_tensor *m = eti_average(g, u->moment[M], grad, o->betas.v[0]);
    struct et_tensor *v =
        eti_average(g, u->moment[V], et_square(g, grad), o->betas.v[1]);
    struct et_tensor *inverse =
        et_reciprocal(g, et_add_scalar(g, et_sqrt(g, v), o->eps));
    struct et_tensor *rate =
        et_add(g, et_mul(g, inverse, u->hyper[ADAPTIVE]), u->hyper[PLAIN]);
    u->new_moment[M] = m;
    u->new_moment[V] = v;
    u->new_p = et_sub(g, u->p, et_mul(g, m, rate));
}

static const struct et_option table[] = {
    ET_OPTIMIZER_LR(struct options, "1e-3"),
    ETI_OPTIM_BETAS(struct options, "[0.9, 0.999]"),
    ETI_OPTIM_EPS(struct options, "1e-8"),
    ET_OPTIMIZER_DECAY(struct options, "0.0"),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_radam = {
    .info =
        {
            .name = "radam",
            .class_name = "RAdam",
            .summary = "Adam that rectifies its rate while second moments are young",
            .source = "Liu et al. 2020, arXiv 1908.03265; torch.optim.RAdam",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .moments = moments,
    .check = check,
    .hyper = hyper,
    .update = update,
};
