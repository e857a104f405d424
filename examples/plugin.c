/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c: components in a shared library, which recipes name like the program's own.
 *
 * Here an optimizer, that steps by the gradient's sign alone,
 *
 *     p -= lr (sign(g) + weight_decay p)
 *
 * and a callback that logs the worst loss so far. The headers are all it is built with:
 *
 *     cc -shared -fPIC $(pkg-config --cflags etude) -o signs.so plugin.c
 *
 * A library runs with your rights, so you allow it once, by its path and its bytes:
 *
 *     etude config set plugins.signs "{path: $PWD/signs.so,
 *         sha256: '$(sha256sum <signs.so | cut -d ' ' -f 1)'}"
 *
 * and a recipe says
 *
 *     plugins: [signs]
 *     optimizer: {name: sign_sgd, lr: 0.002}
 *     callbacks: {worst_loss: }
 *
 * "etude explain sign_sgd" then knows its options, and a misspelt one is an error with
 * line and column, for both read the tables below. */
#include <etude/plugin.h>

/* ---- the optimizer ---- */

/* What a recipe may set. The options of every optimizer begin with lr and
 * weight_decay. */
struct sign_options {
    struct et_optimizer_options common;
};

static const struct et_option sign_table[] = {
    ET_OPTIMIZER_OPTIONS(struct sign_options, "1e-3", "0.0"),
    {.name = NULL},
};

static const char *const no_moments[] = {NULL};

/* A step is planned once and replayed; what changes from step to step is a number in a
 * small array, not a part of the formula. */
static void
sign_hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
           double *hyper)
{
    (void)options;
    (void)n;
    hyper[0] = group->lr;
}

/* Formulas on a graph: nothing is computed here. */
static void
sign_update(struct et_graph *g, struct et_update *u)
{
    struct et_tensor *step = et_sign(g, u->grad);
    if (u->group->weight_decay != 0)
        step = et_add(g, step, et_mul_scalar(g, u->p, u->group->weight_decay));
    u->new_p = et_sub(g, u->p, et_mul(g, step, u->hyper[0]));
}

static const struct et_optimizer_class sign_sgd = {
    .info =
        {
            ET_CLASS(optimizer),
            .name = "sign_sgd",
            .class_name = "SignSGD",
            .summary = "steps of one size, in the direction of the gradient's sign",
            .source = "Bernstein et al. 2018, arXiv 1802.04434",
            .applies_to = "any",
            .options = sign_table,
            .options_size = sizeof(struct sign_options),
        },
    .moments = no_moments,
    .hyper = sign_hyper,
    .update = sign_update,
};

/* ---- the callback ---- */

/* What it keeps between events; zeroed when it is made. */
struct worst {
    double loss;
    bool is_set;
};

static et_status
worst_run(struct et_callback *self, enum et_event event, const struct et_state *state,
          struct et_log *log)
{
    struct worst *own = self->state;
    double loss = et_state_get_loss_value(state);
    (void)event;
    if (!own->is_set || loss > own->loss)
        own->loss = loss;
    own->is_set = true;
    et_log_metric(log, "loss/train/worst", own->loss);
    return ET_OK;
}

/* A run that goes on from a checkpoint goes on with what it names. */
static et_status
worst_archive(struct et_callback *self, struct et_archive *a)
{
    struct worst *own = self->state;
    ET_TRY(et_archive_flag(a, "is_set", &own->is_set));
    return et_archive_f64(a, "loss", &own->loss, 1);
}

static const struct et_callback_class worst_loss = {
    .info =
        {
            ET_CLASS(callback),
            .name = "worst_loss",
            .class_name = "WorstLoss",
            .summary = "the largest loss of a batch so far",
            .applies_to = "any",
        },
    .state_size = sizeof(struct worst),
    .events = ET_ON(BATCH_END),
    .run = worst_run,
    .archive = worst_archive,
};

/* ---- what the library exports: lists of each kind, ending with NULL ---- */

static const struct et_optimizer_class *const optimizers[] = {&sign_sgd, NULL};
static const struct et_callback_class *const callbacks[] = {&worst_loss, NULL};

ET_PLUGIN(.optimizers = optimizers, .callbacks = callbacks)
