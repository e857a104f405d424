/* SPDX-License-Identifier: Apache-2.0 */
/* lion.c: the sign of an interpolated momentum, and decay scaled by the rate.
 *
 *     p -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay p)
 *     m  = beta2 m + (1 - beta2) g
 *
 * Chen et al. 2023, arXiv 2302.06675, algorithm 2. */
#include "core/optim/optim.h"

struct options {
    struct et_optimizer_options common;
    struct et_floats betas;
};

static const char *const moments[] = {"exp_avg", NULL};
enum { LR, DECAY };

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
    (void)options;
    (void)n;
    out[LR] = group->lr;
    out[DECAY] = group->lr * group->weight_decay;
}

static void
update(struct et_graph *g, struct et_update *u)
{
    const struct options *o = u->options;
    struct et_tensor *p = eti_apart_decay(g, u, u->hyper[DECAY]);
    struct et_tensor *m = u->moment[0];
    /* Both averages from one difference, which makes of the two chains one pass. */
    struct et_tensor *way = et_sub(g, u->grad, m);
    struct et_tensor *d =
        et_sign(g, et_add(g, et_mul_scalar(g, way, 1 - o->betas.v[0]), m));
    u->new_p = et_sub(g, p, et_mul(g, d, u->hyper[LR]));
    u->new_moment[0] = et_add(g, et_mul_scalar(g, way, 1 - o->betas.v[1]), m);
}

static const struct et_option table[] = {
    ET_OPTIMIZER_LR(struct options, "1e-4"),
    ETI_OPTIM_BETAS(struct options, "[0.9, 0.99]"),
    ET_OPTIMIZER_DECAY(struct options, "0.0"),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_lion = {
    .info =
        {
            .name = "lion",
            .class_name = "Lion",
            .summary = "steps of one size, in the direction of the momentum's sign",
            .source = "Chen et al. 2023, arXiv 2302.06675",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .moments = moments,
    .check = check,
    .hyper = hyper,
    .update = update,
};
