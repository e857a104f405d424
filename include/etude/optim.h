/* SPDX-License-Identifier: Apache-2.0 */
/* optim.h: parameters in flat memory, and the rules that update them.
 *
 * All parameters of a model lie in one flat f32 buffer and each optimizer moment in
 * another of the same layout, so that an update, a clip, an average or a checkpoint is
 * a single pass. A parameter that a module holds is a view.
 *
 * A step, with the graph G that holds the gradients:
 *
 *     et_optimizer_set_alpha(opt, alpha);                 rate = initial_lr * alpha
 *     flat = et_param_space_pack(g, space, grads);        one array, NULLs left out
 *     ... clip, reduce over ranks ...                     formulas on FLAT
 *     et_optimizer_update(g, opt, flat, has_grad, skip);  formulas and assignments
 *     et_eval(g, ...);                                    the commit changes parameters
 *     et_optimizer_done(opt, skipped);                    counts the update
 *
 * A parameter without gradient keeps value and moments: no decay, no momentum. An
 * evaluation that failed has changed nothing; the step may be built again. */
#ifndef ETUDE_OPTIM_H
#define ETUDE_OPTIM_H

#include "etude/graph.h"
#include "etude/option.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_gate;

enum {
    ET_PARAM_ALIGN = 64,      /* elements; the gaps stay zero */
    ET_MAX_MOMENTS = 4,       /* arrays an optimizer may keep besides the parameters */
    ET_MAX_STATES = 4,        /* arrays of its own shapes that it may keep of each */
    ET_MAX_HYPER = 4,         /* numbers that change from step to step */
    ET_MAX_PARAM_GROUPS = 16, /* that a trainer may be given */
};

/* ---- parameters in flat memory ---- */

/* What a parameter is to its layer, for rules that treat matrices apart (muon). */
enum et_param_role {
    ET_ROLE_OTHER = 0,  /* vectors; embeddings; the layer that gives the outputs */
    ET_ROLE_MATRIX = 1, /* weights of a hidden layer [out, ...]: filters too */
    ET_ROLE_MATRIX_IN_OUT = 2 /* the same, [in, out] */
};

/* What is asked for. */
struct et_param_spec {
    const char *name;    /* full dotted path; unique; copied */
    struct et_desc desc; /* f32, dense: how it lies in memory */
    int group;           /* from 0; groups lie one after another, and may be empty */
    enum et_param_role role;
    bool frozen;                /* it begins without gradient: see the slot */
    const struct et_gate *gate; /* see the slot */
};

/* What one parameter got. */
struct et_param_slot {
    char *name;
    struct et_desc desc;
    int group;
    enum et_param_role role;
    int64_t offset;  /* first element */
    int64_t count;   /* elements */
    int64_t updates; /* how often an optimizer has changed it */
    bool frozen;     /* no update touches it; value, moments and place stay */
    const struct et_gate *gate; /* of the part of the model that it is of, borrowed
                                   (module.h): an update of a step that leaves the part
                                   out does not count for it. NULL: there is none */
};

/* Flat memory beside the parameters that goes where they go, an average of them. */
struct et_param_copy {
    struct et_ctx *cx;
    struct et_tensor *values; /* leaf f32 [total] */
    int64_t moves; /* how often surgery has replaced VALUES, with the views on it */
    struct et_param_space *space; /* NULL: it was freed */
    struct et_param_copy *next;
};

/* Read the fields; change none, except that a checkpoint restores updates and that
 * frozen and gate may be set between steps. */
struct et_param_space {
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_param_slot *slot; /* in the order of the specs */
    int n;
    int n_groups;
    int64_t total;            /* elements of every flat array, gaps included */
    struct et_tensor *values; /* leaf f32 [total] */
    int n_moments;
    struct et_tensor *moment[ET_MAX_MOMENTS]; /* leaves f32 [total]; begin as zeros */
    const char *moment_name[ET_MAX_MOMENTS];  /* "exp_avg"; constant text */
    bool *has_grad; /* [n]: which gradients the last et_param_space_pack got */
    struct et_param_copy *copies;
    int n_states; /* of rules by tensor: arrays of shapes of their own */
    struct et_tensor **state[ET_MAX_STATES]; /* [n] each, leaves f32, begin as zeros;
                                              * NULL where the parameter has none */
    const char *state_name[ET_MAX_STATES];
    struct et_tensor **param; /* [n], borrowed: those of the modules that
                                 et_model_bind_space bound; NULL: it has bound none */
};

/* Lays N parameters out, all zero. EINVAL for a name given twice, EDTYPE and ESHAPE for
 * descriptions that are not dense f32. */
ET_NODISCARD et_status et_param_space_new(struct et_ctx *cx, struct et_device *dev,
                                          const struct et_param_spec *specs, int n,
                                          struct et_param_space **out);
/* The views handed out stay valid: memory ends with the last of them. */
void et_param_space_free(struct et_param_space **space);

/* The values have a copy in LOW, BF16 or F16, that mixed precision reads in place of a
 * cast of each parameter; ET_NONE (the start): they have none. Every assignment and
 * et_tensor_write keeps it right. Between steps. ENOMEM. */
ET_NODISCARD et_status et_param_space_shadow(struct et_param_space *space,
                                             enum et_dtype low);

/* Index of the parameter, or -1. */
int et_param_space_find(const struct et_param_space *space, const char *name);

/* A copy, all zero, that et_optimizer_move takes along: what a parameter of the new
 * space has in common with one of the old by name and shape is copied, the others begin
 * as the parameters' values. ENOMEM. To be freed before or after the space. */
ET_NODISCARD et_status et_param_copy_new(struct et_param_space *space, const char *name,
                                         struct et_param_copy **out);
void et_param_copy_free(struct et_param_copy **copy);

/* Parameter I of the values (ARRAY -1) or of moment ARRAY, as a leaf that the caller
 * owns. et_param_bind takes such a view. */
ET_NODISCARD et_status et_param_space_view(struct et_ctx *cx,
                                           const struct et_param_space *space,
                                           int array, int i, struct et_tensor **out);

/* The N gradients (NULL = none) as one f32 [total]; where there is none it is zero.
 * Each is brought into the order in memory of its parameter. NULL when all are. */
struct et_tensor *et_param_space_pack(struct et_graph *g, struct et_param_space *space,
                                      struct et_tensor *const *grads);

/* The gradient of LOSS, one number, with respect to the parameters that
 * et_model_bind_space has bound to SPACE and that are not frozen, packed as above. */
struct et_tensor *et_param_space_gradient(struct et_graph *g,
                                          struct et_param_space *space,
                                          struct et_tensor *loss);

/* ---- update rules ---- */

/* The options of every optimizer begin with these, as the member `common`. */
struct et_optimizer_options {
    double lr;           /* becomes initial_lr of each group */
    double weight_decay; /* of each group */
};

/* Their rows in the option table of an optimizer whose options are a T (struct
 * my_options), with the defaults as text: "1e-3"; NULL: it must be given. Both may be
 * set while a run goes on. */
#define ET_OPTIMIZER_OPTIONS(T, default_lr, default_decay)                             \
    ET_OPTIMIZER_LR(T, default_lr), ET_OPTIMIZER_DECAY(T, default_decay)
/* Each alone. */
#define ET_OPTIMIZER_LR(T, defaults)                                                   \
    ET_OPTIMIZER_ROW(T, lr, defaults, "learning rate before the schedule")
#define ET_OPTIMIZER_DECAY(T, defaults)                                                \
    ET_OPTIMIZER_ROW(T, weight_decay, defaults, "decay of the weights towards 0")
/* clang-format off */
#define ET_OPTIMIZER_ROW(T, field, defaults, text)                                     \
    {                                                                                  \
        .name = #field,                                                                \
        .type = ET_OPT_FLOAT,                                                          \
        .offset = offsetof(T, common.field),                                           \
        .def = defaults,                                                               \
        .min = 0,                                                                      \
        .max = -1, /* none */                                                          \
        .flags = ((defaults) ? 0 : ET_OPT_REQUIRED) | ET_OPT_MAY_CHANGE,               \
        .help = text,                                                                  \
    }
/* clang-format on */

struct et_optimizer_group {
    double initial_lr;
    double lr; /* now */
    double weight_decay;
};

/* A run as rows of ET_PARAM_ALIGN elements, of which none has two parameters': what is
 * one number per parameter is one per row, and a formula of both is still one pass. */
struct et_param_rows {
    int n;                                   /* parameters of the run */
    const struct et_param_slot *const *slot; /* [n]: as they lie in memory */
    int64_t count;                           /* rows */
    struct et_tensor *p; /* the run's, f32 [count, ET_PARAM_ALIGN] */
    struct et_tensor *moment[ET_MAX_MOMENTS]; /* likewise */
    struct et_tensor *first; /* I32 [n + 1]: the row that each begins with, and the end:
                              * what et_segment_sum_squares takes */
    struct et_tensor *owner; /* I32 [count]: whose each row is: what et_take takes */
    struct et_tensor *number; /* f32 [count, 1]: type->number_of; NULL where that is */
};

/* Parameters that a trainer's optimizer treats apart from the rest, which are group 0
 * of the space: a row of a recipe's optimizer.groups. */
struct et_param_group {
    char *match; /* extended regular expression (regex(7)): some part of the parameter's
                    dotted name. The first of the rows that fits has the parameter */
    char *lr;    /* "0.01", or "0.1x": times the optimizer's; NULL: the optimizer's */
    double weight_decay;                   /* NaN: the optimizer's */
    const struct et_scheduler *schedulers; /* instead of the run's */
    int n_schedulers;                      /* 0: as the run's */
};

/* What an update rule works on: a run of parameters of one group, all with a gradient
 * and the same number of updates. Arrays are f32 [run]; results may also be f32 rows,
 * as those of ROWS are. A rule by tensor is given one parameter at a time instead, and
 * its arrays have the parameter's shape: SLOT->desc. */
struct et_update {
    const void *options;
    const struct et_optimizer_group *group;
    const struct et_param_rows *rows;             /* NULL but for type->by_parameter */
    struct et_tensor *p, *grad;                   /* now */
    struct et_tensor *moment[ET_MAX_MOMENTS];     /* now */
    struct et_tensor *hyper[ET_MAX_HYPER];        /* f32 [1]: what type->hyper gave */
    struct et_tensor *new_p;                      /* result */
    struct et_tensor *new_moment[ET_MAX_MOMENTS]; /* results; what stays: its moment */
    const struct et_param_slot *slot;             /* NULL but for type->by_tensor */
    struct et_tensor *state[ET_MAX_STATES];       /* now; NULL: it has none */
    struct et_tensor *new_state[ET_MAX_STATES];   /* results; what stays: its state */
};

struct et_optimizer_class {
    struct et_component info;
    const char *const *moments; /* names, NULL-terminated, at most ET_MAX_MOMENTS */
    bool by_parameter;          /* the rule tells parameters apart: it gets rows */

    /* Refuses combinations of options; warns. (optional) */
    et_status (*check)(struct et_ctx *cx, const void *options);

    /* How many of the moments these options need. (optional: all) */
    int (*n_moments)(const void *options);

    /* What changes from step to step, as numbers: HYPER [ET_MAX_HYPER] for update N
     * (from 1) of the parameters in GROUP. */
    void (*hyper)(const void *options, const struct et_optimizer_group *group,
                  int64_t n, double *hyper);

    /* With by_parameter: a number that a parameter has for ever. (optional) */
    double (*number_of)(const void *options, const struct et_param_slot *slot);

    /* Appends the formulas: fills new_p, new_moment of all that n_moments says, and
     * new_state of all that there are, from the rest of U; et_optimizer_update refuses
     * an update that leaves one out. Must build the same nodes at every step. */
    void (*update)(struct et_graph *g, struct et_update *u);

    /* The rule sees each parameter with its shape: update is called for one at a time.
     * Not together with by_parameter. */
    bool by_tensor;
    /* With by_tensor, beside moments: arrays of other shapes, as factored moments and
     * preconditioners are. Names, NULL-terminated, at most ET_MAX_STATES; they are
     * saved with the run under these. (optional) */
    const char *const *states;
    /* The shape of state K of the parameter SLOT into SHAPE [ET_MAX_DIMS]; returns how
     * many axes it has, -1: this parameter has no such state. A pure function. */
    int (*state_shape)(const void *options, const struct et_param_slot *slot, int k,
                       int64_t *shape);
};

const struct et_optimizer_class *et_optimizer_find(const char *name); /* NULL: none */
/* All classes, *N of them; borrowed, for ever. */
const struct et_optimizer_class *const *et_optimizer_list(int *n);

struct et_optimizer;

/* An optimizer with zero moments for the parameters of SPACE, to which it adds them.
 * OPTIONS (type->info.options_size bytes) are copied (option.h); NULL = all defaults.
 * SPACE is borrowed, until it is freed. */
ET_NODISCARD et_status et_optimizer_new(struct et_ctx *cx,
                                        const struct et_optimizer_class *type,
                                        const void *options,
                                        struct et_param_space *space,
                                        struct et_optimizer **out);
void et_optimizer_free(struct et_optimizer **opt);

const struct et_optimizer_class *et_optimizer_class(const struct et_optimizer *opt);
struct et_param_space *et_optimizer_space(const struct et_optimizer *opt);
/* Group I; its weight_decay and initial_lr may be changed before the first update. */
struct et_optimizer_group *et_optimizer_group(struct et_optimizer *opt, int i);

/* The rate of every group becomes its initial_lr times ALPHA (the product of the
 * schedulers). Before the first call it is initial_lr. */
void et_optimizer_set_alpha(struct et_optimizer *opt, double alpha);
/* That of group I alone. */
void et_optimizer_set_group_alpha(struct et_optimizer *opt, int i, double alpha);

/* Appends the update, and writes the numbers that changed since the last one. FLAT:
 * gradients, f32 [total]. HAS_GRAD [n]: which parameters have one; NULL = those that
 * the last et_param_space_pack got. What is frozen has none, whatever it says. SKIP:
 * one number of any dtype; other than 0 = nothing changes (a gradient was not finite);
 * NULL = never. */
ET_NODISCARD et_status et_optimizer_update(struct et_graph *g, struct et_optimizer *opt,
                                           struct et_tensor *flat, const bool *has_grad,
                                           struct et_tensor *skip);
/* For those who watch: run I of the last et_optimizer_update, from element *BEGIN to
 * *END of flat memory, with what it is computed from and what comes of it (new_p and
 * new_moment, of the run or as its rows: where SKIP says so, what was there before;
 * NULL where the rule does without that moment). NULL past the last run. Values of the
 * graph, until it is reset. */
const struct et_update *et_optimizer_pending(const struct et_optimizer *opt, int i,
                                             int64_t *begin, int64_t *end);
/* The evaluation of the last et_optimizer_update went through: counts it for the
 * parameters concerned, unless it was SKIPPED. */
void et_optimizer_done(struct et_optimizer *opt, bool skipped);
/* For a device that the host runs ahead of: whether the last AHEAD (0 to 4) updates
 * were skipped may be unknown when the next is built. et_optimizer_done then says
 * false, and et_optimizer_settle, once for each in their order and at most AHEAD later,
 * what came of it; the numbers of the updates in between are those they would have had.
 * Between updates, with none unsettled. */
ET_NODISCARD et_status et_optimizer_run_ahead(struct et_optimizer *opt, int ahead);
void et_optimizer_settle(struct et_optimizer *opt, bool skipped);

/* After surgery: continues on SPACE. Values, moments, counts and copies of the
 * parameters whose name and shape both spaces have are copied; the others begin anew. A
 * group that the old one did not have begins as the options say. The old space is the
 * caller's to free; after an ENOMEM so is the optimizer, and only that. */
ET_NODISCARD et_status et_optimizer_move(struct et_ctx *cx, struct et_optimizer *opt,
                                         struct et_param_space *space);

#ifdef __cplusplus
}
#endif
#endif
