/* SPDX-License-Identifier: Apache-2.0 */
/* optim.h: what the files of src/core/optim share. */
#ifndef ETI_OPTIM_H
#define ETI_OPTIM_H

#include <math.h>

#include "etude/optim.h"

#define ET_OPTIMIZER(name) extern const struct et_optimizer_class et_optimizer_##name;
#include "core/optim/optimizers.def"
#undef ET_OPTIMIZER

/* Elements from a parameter to the next: its own, rounded up. */
static inline int64_t
eti_param_span(const struct et_param_slot *slot)
{
    return (slot->count + ET_PARAM_ALIGN - 1) / ET_PARAM_ALIGN * ET_PARAM_ALIGN;
}

/* Zero moments of those names; EINVAL when there are some already. */
ET_NODISCARD et_status eti_param_space_add_moments(struct et_ctx *cx,
                                                   struct et_param_space *s,
                                                   const char *const *names, int n);
/* Adds the states that TYPE, a rule by tensor, keeps with OPTIONS, as zeros. EINVAL: a
 * state's shape has too many axes or one below 1. */
ET_NODISCARD et_status eti_param_states_add(struct et_ctx *cx, struct et_param_space *s,
                                            const struct et_optimizer_class *type,
                                            const void *options);
void eti_param_states_free(struct et_param_space *s);
/* Copies states of one shape from parameter J of FROM to parameter I of TO. */
ET_NODISCARD et_status eti_param_states_carry(struct et_ctx *cx,
                                              struct et_param_space *to, int i,
                                              const struct et_param_space *from, int j);
/* SLOT's part of FLAT, f32 [total], with the parameter's shape. */
struct et_tensor *eti_param_shaped(struct et_graph *g, struct et_tensor *flat,
                                   const struct et_param_slot *slot);
/* Leaves of DESC on the values and on each moment, from element BEGIN on: the caller's,
 * also where it fails on the way. */
ET_NODISCARD et_status eti_param_space_views(const struct et_param_space *s,
                                             int64_t begin, const struct et_desc *desc,
                                             struct et_tensor **p,
                                             struct et_tensor **moment);
/* N parameters from FIRST on of et_param_space_pack's, as f32 [end - begin]: what lies
 * at [BEGIN, END) of it. Not NULL where all are. */
struct et_tensor *eti_param_space_pack_part(struct et_graph *g,
                                            const struct et_param_space *s,
                                            struct et_tensor *const *grads, int first,
                                            int n, int64_t begin, int64_t end);
/* Copies values, moments and counts of the parameters both have, and takes over FROM's
 * copies. Both have the same moments. WAS [to->n]: the slot of FROM that each goes on
 * from, -1: none; NULL: that of its name and shape. */
ET_NODISCARD et_status eti_param_space_carry(struct et_ctx *cx,
                                             struct et_param_space *to,
                                             struct et_param_space *from,
                                             const int *was);
/* C, of another space, becomes one of TO with *VALUES, f32 [to->total], which it owns
 * from here on. */
void eti_param_copy_adopt(struct et_param_space *to, struct et_param_copy *c,
                          struct et_tensor **values);
/* et_optimizer_move, with eti_param_space_carry's WAS. */
ET_NODISCARD et_status eti_optimizer_move(struct et_optimizer *opt,
                                          struct et_param_space *space, const int *was);
/* OPT goes back to SPACE, where it has been before: moments and counts are as it left
 * them. The other space is the caller's to free; after an ENOMEM so is OPT. */
ET_NODISCARD et_status eti_optimizer_return(struct et_optimizer *opt,
                                            struct et_param_space *space);

/* (lr / initial_lr) weight_decay, the ratio taken as 1 when initial_lr is 0. Formulas
 * write p - decay p: in f32 it is nearer than a factor of 1 - decay. */
double eti_decoupled_decay(const struct et_optimizer_group *group);
/* Warns when each step of decoupled decay takes away 1e-3 or more. */
void eti_warn_decay(struct et_ctx *cx, const char *name, double weight_decay);

/* A number >= 0 (> 0 with ET_OPT_MIN_OPEN). DEFAULTS NULL: it must be given. */
#define ETI_OPTIM_FLOAT(S, field, text, defaults, more_flags, words)                   \
    {                                                                                  \
        .name = text, .type = ET_OPT_FLOAT, .offset = offsetof(S, field),              \
        .def = defaults, .min = 0, .max = HUGE_VAL,                                    \
        .flags = ((defaults) ? 0 : ET_OPT_REQUIRED) | (more_flags), .help = words,     \
    }

#define ETI_OPTIM_EPS(S, defaults)                                                     \
    ETI_OPTIM_FLOAT(S, eps, "eps", defaults, ET_OPT_MIN_OPEN,                          \
                    "added to the denominator")
#define ETI_OPTIM_MOMENTUM(S)                                                          \
    ETI_OPTIM_FLOAT(S, momentum, "momentum", "0.0", 0,                                 \
                    "how much of the last direction is kept")
#define ETI_OPTIM_BETAS(S, defaults)                                                   \
    {                                                                                  \
        .name = "betas", .type = ET_OPT_FLOATS, .offset = offsetof(S, betas),          \
        .def = defaults, .min = 0, .max = 1, .flags = ET_OPT_MAX_OPEN,                 \
        .help = "decay of the averages of gradient and squared gradient",              \
    }

/* EINVAL unless there are two. */
ET_NODISCARD et_status eti_check_betas(struct et_ctx *cx,
                                       const struct et_floats *betas);
/* Fills ROWS, zero before, for the run from BEGIN to END of flat memory. To be released
 * also where it fails. ENOTSUP for more rows than an I32 counts. */
ET_NODISCARD et_status eti_param_rows_init(struct et_param_rows *rows,
                                           const struct et_param_space *s,
                                           const struct et_optimizer_class *type,
                                           const void *options, int64_t begin,
                                           int64_t end);
void eti_param_rows_release(struct et_param_rows *rows, struct et_ctx *cx);
/* X, f32 [run], as its rows. */
struct et_tensor *eti_as_rows(struct et_graph *g, const struct et_update *u,
                              struct et_tensor *x);
/* Of each parameter's part of X, f32 [run] or rows: its norm. f32 [parameters]. */
struct et_tensor *eti_param_norms(struct et_graph *g, const struct et_update *u,
                                  struct et_tensor *x);
/* V, f32 [parameters], for each row: f32 [rows, 1]. */
struct et_tensor *eti_per_row(struct et_graph *g, const struct et_update *u,
                              struct et_tensor *v);
/* The gradient plus weight_decay p; nodes only where the group decays. */
struct et_tensor *eti_coupled_decay(struct et_graph *g, const struct et_update *u);
/* p less FRACTION p, FRACTION one of u's hyper; nodes only where the group decays. */
struct et_tensor *eti_apart_decay(struct et_graph *g, const struct et_update *u,
                                  struct et_tensor *fraction);
/* x + (1 - decay) (y - x) = decay x + (1 - decay) y, as one chain of operations. */
struct et_tensor *eti_average(struct et_graph *g, struct et_tensor *x,
                              struct et_tensor *y, double decay);

/* ---- stochastic gradient descent ---- */

struct eti_sgd_options {
    struct et_optimizer_options common;
    double momentum, dampening;
    bool nesterov;
};
extern const char *const eti_sgd_moments[];
ET_NODISCARD et_status eti_sgd_check(struct et_ctx *cx, const void *options);
int eti_sgd_n_moments(const void *options);
/* hyper: rate, fraction of p that decoupled decay takes, weight of the gradient in the
 * momentum buffer. */
enum { ETI_SGD_LR, ETI_SGD_DECAY, ETI_SGD_FRESH };
void eti_sgd_hyper(const void *options, const struct et_optimizer_group *group,
                   int64_t n, double *hyper);
/* new_p = p - lr d, where d is GRAD through the momentum buffer. */
void eti_sgd_update(struct et_graph *g, struct et_update *u, struct et_tensor *p,
                    struct et_tensor *grad);

#define ETI_SGD_OPTIONS(default_lr)                                                    \
    ET_OPTIMIZER_LR(struct eti_sgd_options, default_lr),                               \
        ETI_OPTIM_MOMENTUM(struct eti_sgd_options),                                    \
        ETI_OPTIM_FLOAT(struct eti_sgd_options, dampening, "dampening", "0.0", 0,      \
                        "how much less the gradient weighs in the momentum buffer"),   \
        ET_OPTIMIZER_DECAY(struct eti_sgd_options, "0.0"),                             \
    {                                                                                  \
        .name = "nesterov", .type = ET_OPT_BOOL,                                       \
        .offset = offsetof(struct eti_sgd_options, nesterov), .def = "false",          \
        .help = "look ahead by the momentum; needs momentum, no dampening",            \
    }

/* ---- Adam ---- */

struct eti_adam_options {
    struct et_optimizer_options common;
    struct et_floats betas;
    double eps;
    bool amsgrad;
};
extern const char *const eti_adam_moments[];
ET_NODISCARD et_status eti_adam_check(struct et_ctx *cx, const void *options);
int eti_adam_n_moments(const void *options);
/* hyper: lr / (1 - beta1^n), 1 / sqrt(1 - beta2^n), fraction of p that decay takes. */
enum { ETI_ADAM_RATE, ETI_ADAM_ROOT, ETI_ADAM_DECAY };
/* Sets the first two. */
void eti_adam_hyper(const void *options, const struct et_optimizer_group *group,
                    int64_t n, double *hyper);
/* Fills the moments of U, and new_p = p - rate m / (root sqrt(v) + eps). */
void eti_adam_update(struct et_graph *g, struct et_update *u, struct et_tensor *p,
                     struct et_tensor *grad);

#define ETI_ADAM_OPTIONS(default_betas, default_decay)                                 \
    ET_OPTIMIZER_LR(struct eti_adam_options, "1e-3"),                                  \
        ETI_OPTIM_BETAS(struct eti_adam_options, default_betas),                       \
        ETI_OPTIM_EPS(struct eti_adam_options, "1e-8"),                                \
        ET_OPTIMIZER_DECAY(struct eti_adam_options, default_decay),                    \
    {                                                                                  \
        .name = "amsgrad", .type = ET_OPT_BOOL,                                        \
        .offset = offsetof(struct eti_adam_options, amsgrad), .def = "false",          \
        .help = "divide by the largest second moment so far",                          \
    }

#endif
