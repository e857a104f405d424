/* SPDX-License-Identifier: Apache-2.0 */
/* lamb.c: Adam's step, scaled for each parameter to the size of the parameter.
 *
 *     r  = mhat / (sqrt(vhat) + eps) + weight_decay p         mhat, vhat as in adam.c
 *     p -= lr (|p| / |r|) r                                   1 where |p| or |r| is 0
 *
 * All parameters at once: one pass over flat memory for the moments and r, one over p
 * and one over r for the norms of each parameter, one for p. On a GPU the norms are
 * sums in f32, off by 4e-6 at worst for 38 million elements (kernels/cuda/segment.cu),
 * and so is the ratio; what the rate is off by does not add up over steps.
 *
 * You et al. 2020, arXiv 1904.00962, algorithm 2. */
#include "core/optim/optim.h"

#include <math.h>

struct options {
    struct et_optimizer_options common;
    struct et_floats betas;
    double eps;
};

enum { M, V };
static const char *const moments[] = {"exp_avg", "exp_avg_sq", NULL};
enum {
    LR,
    M_SCALE,
    V_ROOT
}; /* hyper: rate, 1 / (1 - beta1^n), 1 / sqrt(1 - beta2^n) */

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
    out[LR] = group->lr;
    out[M_SCALE] = 1 / (1 - pow(o->betas.v[0], (double)n));
    out[V_ROOT] = 1 / sqrt(1 - pow(o->betas.v[1], (double)n));
}

/* |p| / |r| of each parameter, or 1 where one of them is 0: f32 [parameters]. */
static struct et_tensor *
trust_ratios(struct et_graph *g, const struct et_update *u, struct et_tensor *r)
{
    static const int64_t one[] = {1};
    struct et_tensor *zero = et_fill(g, ET_F32, 1, one, 0);
    struct et_tensor *size = eti_param_norms(g, u, u->rows->p);
    struct et_tensor *step = eti_param_norms(g, u, r);
    struct et_tensor *both = et_less(g, zero, et_minimum(g, size, step));
    return et_where(g, both, et_div(g, size, step), et_fill(g, ET_F32, 1, one, 1));
}

static void
update(struct et_graph *g, struct et_update *u)
{
    const struct options *o = u->options;
    struct et_tensor *m = eti_average(g, u->moment[M], u->grad, o->betas.v[0]);
    struct et_tensor *v =
        eti_average(g, u->moment[V], et_square(g, u->grad), o->betas.v[1]);
    struct et_tensor *root = et_mul(g, et_sqrt(g, v), u->hyper[V_ROOT]);
    struct et_tensor *r =
        et_div(g, et_mul(g, m, u->hyper[M_SCALE]), et_add_scalar(g, root, o->eps));
    if (u->group->weight_decay != 0)
        r = et_add(g, r, et_mul_scalar(g, u->p, u->group->weight_decay));
    struct et_tensor *rate = et_mul(g, trust_ratios(g, u, r), u->hyper[LR]);
    u->new_moment[M] = m;
    u->new_moment[V] = v;
    u->new_p =
        et_sub(g, u->rows->p, et_mul(g, eti_as_rows(g, u, r), eti_per_row(g, u, rate)));
}

static const struct et_option table[] = {
    ET_OPTIMIZER_LR(struct options, "1e-3"),
    ETI_OPTIM_BETAS(struct options, "[0.9, 0.999]"),
    ETI_OPTIM_EPS(struct options, "1e-6"),
    ET_OPTIMIZER_DECAY(struct options, "0.0"),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_lamb = {
    .info =
        {
            .name = "lamb",
            .class_name = "LAMB",
            .summary =
                "Adam steps as large as each parameter allows, for large batches",
            .source = "You et al. 2020, arXiv 1904.00962",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .moments = moments,
    .by_parameter = true,
    .check = check,
    .hyper = hyper,
    .update = update,
};
