/* SPDX-License-Identifier: Apache-2.0 */
/* rmsprop.c: steps divided by the root of a running mean square of the gradient.
 *
 *     g  += weight_decay p;   s = alpha s + (1 - alpha) g^2
 *     d   = g / (sqrt(s) + eps);   buf = momentum buf + d
 *     p  -= lr (momentum ? buf : d)
 *
 * Tieleman and Hinton 2012 (lecture 6.5); the form of torch.optim.RMSprop. */
#include "core/optim/optim.h"

struct options {
    struct et_optimizer_options common;
    double alpha, eps, momentum;
};

enum { MEAN_SQUARE, BUFFER };
static const char *const moments[] = {"square_avg", "momentum_buffer", NULL};

static int
n_moments(const void *options)
{
    const struct options *o = options;
    return o->momentum != 0 ? 2 : 1;
}

static void
hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
      double *out)
{
    (void)options;
    (void)n;
    out[0] = group->lr;
}

static void
update(struct et_graph *g, struct et_update *u)
{
    const struct options *o = u->options;
    struct et_tensor *grad = eti_coupled_decay(g, u);
    struct et_tensor *s =
        eti_average(g, u->moment[MEAN_SQUARE], et_square(g, grad), o->alpha);
    struct et_tensor *d = et_div(g, grad, et_add_scalar(g, et_sqrt(g, s), o->eps));
    u->new_moment[MEAN_SQUARE] = s;
    if (o->momentum != 0)
        u->new_moment[BUFFER] = d =
            et_add(g, et_mul_scalar(g, u->moment[BUFFER], o->momentum), d);
    u->new_p = et_sub(g, u->p, et_mul(g, d, u->hyper[0]));
}

static const struct et_option table[] = {
    ET_OPTIMIZER_LR(struct options, "0.01"),
    {
        .name = "alpha",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, alpha),
        .def = "0.99",
        .min = 0,
        .max = 1,
        .flags = ET_OPT_MAX_OPEN,
        .help = "decay of the mean square",
    },
    ETI_OPTIM_EPS(struct options, "1e-8"),
    ETI_OPTIM_MOMENTUM(struct options),
    ET_OPTIMIZER_DECAY(struct options, "0.0"),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_rmsprop = {
    .info =
        {
            .name = "rmsprop",
            .class_name = "RMSprop",
            .summary = "steps divided by a running root mean square of the gradient",
            .source = "Tieleman and Hinton 2012; torch.optim.RMSprop",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .moments = moments,
    .n_moments = n_moments,
    .hyper = hyper,
    .update = update,
};
