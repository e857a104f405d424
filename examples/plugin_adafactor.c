/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_adafactor.c: an optimizer that sees the shape of each parameter, and keeps
 * states of shapes of its own.
 *
 * Adafactor's second moment of a matrix [n, m] is two vectors, the means of its rows
 * and of its columns, in the place of n m numbers. With G the gradient, at update t:
 *
 *     k  = t^-decay_rate                        1 at first: nothing is known yet
 *     r += k (mean of (G^2 + eps) over each row    - r)          [n]
 *     c += k (mean of (G^2 + eps) over each column - c)          [m]
 *     V  = r c' / mean(r)                       a vector has V itself: full += k (...)
 *     U  = G / sqrt(V);  U /= max(1, rms(U) / clip)
 *     p -= lr (max(1e-3, rms(p)) U + weight_decay p)
 *
 * What has more than two axes is a matrix of its first axis and the rest. Shampoo is
 * written likewise: its states are [n, n] and [m, m], whose roots are made of products
 * of matrices.
 *
 *     cc -shared -fPIC $(pkg-config --cflags etude) -o adafactor.so plugin_adafactor.c
 *     etude config set plugins.adafactor "{path: $PWD/adafactor.so, develop: true}"
 *
 * and in a recipe
 *
 *     plugins: [adafactor]
 *     optimizer: {name: adafactor, lr: 0.05}
 *
 * Shazeer and Stern 2018, arXiv 1804.04235. Differs: no first moment, and lr is given,
 * not a function of t. */
#include <etude/plugin.h>

#include <math.h>

struct adafactor_options {
    struct et_optimizer_options common; /* first: lr and weight_decay */
    double decay_rate, eps, clip;
};

#define NUMBER(its_name, field, its_default, its_help)                                 \
    {                                                                                  \
        .name = its_name, .type = ET_OPT_FLOAT,                                        \
        .offset = offsetof(struct adafactor_options, field), .def = its_default,       \
        .max = HUGE_VAL, .help = its_help,                                             \
    }

static const struct et_option table[] = {
    /* lr is relative to the size of the parameter. */
    ET_OPTIMIZER_OPTIONS(struct adafactor_options, "0.05", "0.0"),
    NUMBER("decay_rate", decay_rate, "0.8", "how fast old squares are forgotten"),
    NUMBER("eps", eps, "1e-30", "added to squares"),
    NUMBER("clip", clip, "1.0", "largest root of the mean square of a step"),
    {.name = NULL},
};

/* ---- what it keeps of a parameter ---- */

enum { ROWS, COLUMNS, FULL };
static const char *const states[] = {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq",
                                     NULL};
static const char *const no_moments[] = {NULL};

/* A matrix has the first two, a vector the third. The shape of a state follows from the
 * parameter's alone, so that a run that goes on finds what it saved. */
static int
state_shape(const void *options, const struct et_param_slot *slot, int k,
            int64_t *shape)
{
    const int64_t n = slot->desc.shape[0];
    (void)options;
    if ((slot->desc.ndim > 1) != (k != FULL))
        return -1;
    shape[0] = k == COLUMNS ? slot->count / n : n;
    return 1;
}

/* ---- the rule ---- */

enum { LR, K };

static void
hyper(const void *options, const struct et_optimizer_group *group, int64_t t,
      double *out)
{
    const struct adafactor_options *o = options;
    out[LR] = group->lr;
    out[K] = pow((double)t, -o->decay_rate);
}

/* State I moves towards NOW by k. Returns it. */
static struct et_tensor *
follow(struct et_graph *g, struct et_update *u, int i, struct et_tensor *now)
{
    struct et_tensor *old = u->state[i];
    u->new_state[i] = et_add(g, old, et_mul(g, et_sub(g, now, old), u->hyper[K]));
    return u->new_state[i];
}

/* max(LEAST, the root of the mean square of X): one number. */
static struct et_tensor *
rms(struct et_graph *g, struct et_tensor *x, double least)
{
    struct et_tensor *mean = et_mean(g, et_square(g, x), 0, false);
    return et_maximum(g, et_sqrt(g, mean), et_fill(g, ET_F32, 0, NULL, least));
}

/* 1 / sqrt(V) of a matrix G [n, m]. */
static struct et_tensor *
factored(struct et_graph *g, struct et_update *u, struct et_tensor *squares, int64_t n,
         int64_t m)
{
    struct et_tensor *r = follow(g, u, ROWS, et_mean(g, squares, 1u << 1, false));
    struct et_tensor *c = follow(g, u, COLUMNS, et_mean(g, squares, 1u << 0, false));
    r = et_div(g, r, et_mean(g, r, 0, false));
    return et_mul(g,
                  et_reshape(g, et_pow_scalar(g, r, -.5), 2, (const int64_t[]){n, 1}),
                  et_reshape(g, et_pow_scalar(g, c, -.5), 2, (const int64_t[]){1, m}));
}

/* Called for one parameter at a time; every array has its shape. */
static void
update(struct et_graph *g, struct et_update *u)
{
    const struct adafactor_options *o = u->options;
    const struct et_desc *d = &u->slot->desc;
    const int64_t n = d->shape[0], m = u->slot->count / n;
    struct et_tensor *step = u->grad, *scale;
    if (d->ndim > 1)
        step = et_reshape(g, step, 2, (const int64_t[]){n, m});
    struct et_tensor *squares = et_add_scalar(g, et_square(g, step), o->eps);
    if (d->ndim > 1)
        scale = factored(g, u, squares, n, m);
    else
        scale = et_pow_scalar(g, follow(g, u, FULL, squares), -.5);
    step = et_mul(g, step, scale);
    step = et_div(g, step, rms(g, et_mul_scalar(g, step, 1 / o->clip), 1));
    step = et_mul(g, et_reshape(g, step, d->ndim, d->shape), rms(g, u->p, 1e-3));
    if (u->group->weight_decay != 0)
        step = et_add(g, step, et_mul_scalar(g, u->p, u->group->weight_decay));
    u->new_p = et_sub(g, u->p, et_mul(g, step, u->hyper[LR]));
}

static const struct et_optimizer_class adafactor = {
    .info =
        {
            ET_CLASS(optimizer),
            .name = "adafactor",
            .class_name = "Adafactor",
            .summary = "Adam's scale from the means of rows and columns",
            .source = "Shazeer and Stern 2018, arXiv 1804.04235",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct adafactor_options),
        },
    .moments = no_moments,
    .hyper = hyper,
    .update = update,
    .by_tensor = true,
    .states = states,
    .state_shape = state_shape,
};

static const struct et_optimizer_class *const optimizers[] = {&adafactor, NULL};

ET_PLUGIN(.optimizers = optimizers)
