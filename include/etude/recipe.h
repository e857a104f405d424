/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.h: a training run as one YAML file: read, checked, written down again.
 *
 * Every key is a row of an option table (option.h); components bring their own tables.
 * A recipe is the defaults, its include files, the file, ETUDE_SET_* variables and the
 * command line, each above the one before; all that is wrong is reported at once.
 *
 *     struct et_diagnostics errors = {0};
 *     ET_TRY(et_recipe_load(cx, "recipe.yaml", NULL, 0, NULL, &recipe, &errors));
 *
 * Where a component's `name` changes in a later layer, the options that an earlier one
 * gave to the other component are dropped. */
#ifndef ETUDE_RECIPE_H
#define ETUDE_RECIPE_H

#include "etude/diagnostic.h"
#include "etude/option.h"
#include "etude/time.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- registries ---- */

struct et_registry {
    /* The I-th component of KIND in its folder's order; NULL past the end. */
    const struct et_component *(*get)(const struct et_registry *self, enum et_kind kind,
                                      int i);
    /* Also knows other names for them. (optional: names alone) */
    const struct et_component *(*find)(const struct et_registry *self,
                                       enum et_kind kind, const char *name);
};

/* The core's own: what this build was made with. */
const struct et_registry *et_registry_core(void);
/* The component of KIND called NAME, or NULL. REGISTRY NULL = the core's. */
const struct et_component *et_registry_find(const struct et_registry *registry,
                                            enum et_kind kind, const char *name);
const char *et_kind_word(enum et_kind kind);

/* ---- the recipe ---- */

enum et_run_device { ET_RUN_AUTO = 0, ET_RUN_CPU = 1, ET_RUN_GPU = 2 };
enum et_precision {
    ET_PRECISION_AUTO = 0,
    ET_PRECISION_FP32 = 1,
    ET_PRECISION_AMP_FP16 = 2,
    ET_PRECISION_AMP_BF16 = 3,
    ET_PRECISION_AMP_FP8 = 4,
};
enum et_on_failure { ET_FAILURE_CONTINUE = 0, ET_FAILURE_STOP = 1 };
enum et_nonfinite_action {
    ET_NONFINITE_STOP = 0,
    ET_NONFINITE_SKIP = 1,
    ET_NONFINITE_ROLLBACK = 2
};
enum et_sync {
    ET_SYNC_AUTO = 0,
    ET_SYNC_SINGLE_AUTO = 1,
    ET_SYNC_MULTI_AUTO = 2,
    ET_SYNC_FORCED = 3
};

struct et_recipe_checkpoint {
    bool off;                /* only at stop and end */
    struct et_time interval; /* unset = auto, see checkpoint.h */
    struct et_times at;      /* and at these, which KEEP leaves alone */
    int64_t keep;            /* -1 = all */
    char *name;              /* label, a template: "ep{epoch}-ba{batch}" */
    bool weights_only;
    int on_failure;              /* enum et_on_failure */
    struct et_texts ignore_keys; /* parts of the state to leave out */
    char *latest;                /* name of a link to the newest; NULL = none */
};

struct et_recipe_load {
    char *path; /* run or checkpoint to start from; NULL = from scratch */
    bool weights_only;
    bool strict; /* names and shapes must all match */
    struct et_texts ignore_keys;
    struct et_texts exclude_algorithms;
};

struct et_recipe_nonfinite {
    int action;         /* enum et_nonfinite_action */
    int64_t grace;      /* batches in a row before it is taken */
    bool hold_schedule; /* an update that is skipped does not move the schedule */
};

struct et_recipe_parallel {
    int64_t zero;      /* ZeRO stage 0 .. 3 */
    int64_t bucket_mb; /* of gradients reduced together */
    int sync;          /* enum et_sync */
};

struct et_recipe_launch {
    int64_t nproc; /* ranks; ET_INT_UNSET = the environment's, else one per GPU */
    char *worker;  /* where: NAME[:GPUS],...; NULL = here */
};

struct et_recipe_profiler {
    bool off;                                 /* no profile */
    int64_t skip_first, wait, warmup, active; /* batches */
    int64_t repeat;                           /* cycles; 0 = until the end */
};

/* Keys that stand beside an optimizer's own: et_part.extra. */
struct et_recipe_optimizer {
    struct et_parts groups; /* what struct et_param_group is made of */
};

/* Keys that stand beside a dataset's own in eval_data: et_part.extra. */
struct et_recipe_eval {
    char *label;             /* in metrics/<label>/... */
    struct et_texts metrics; /* regular expressions; none = all the model has */
    struct et_time interval; /* unset = the recipe's eval_interval */
};

#define ET_RECIPE_TIMEOUT 300.0 /* seconds */

/* The keys in the order in which a recipe is written down. Fields may be set (what auto
 * chose, a drawn seed) before that. */
struct et_recipe {
    struct et_texts include; /* always empty: the files have been merged */
    char *run_name;          /* NULL = two words */
    struct et_texts tags;
    int64_t seed; /* 0 .. 2^32 - 1; ET_INT_UNSET = to be drawn */
    bool deterministic;
    int device;    /* enum et_run_device */
    int precision; /* enum et_precision */
    bool tf32;
    struct et_time max_duration;     /* any unit but dur */
    struct et_time iteration_length; /* ep or tok; may be unset */
    struct et_part model;
    struct et_part train_data;    /* options begin with struct et_data_options */
    struct et_parts eval_data;    /* likewise; extra is struct et_recipe_eval */
    struct et_time eval_interval; /* 0 = never */
    struct et_part optimizer;     /* extra is struct et_recipe_optimizer */
    struct et_parts scheduler;    /* they multiply */
    double scale_schedule_ratio;
    int64_t grad_accum;      /* ET_INT_UNSET = auto */
    int64_t microbatch_size; /* samples; ET_INT_UNSET = by grad_accum */
    bool sync_batch_norm;    /* batch statistics are those of all ranks */
    struct et_parts algorithms, callbacks, loggers;
    struct et_parts metrics; /* beside the task's own */
    struct et_part loss;     /* none: as the model's option says */
    struct et_recipe_checkpoint checkpoint;
    struct et_recipe_load load;
    char *target; /* "accuracy>=.765"; NULL = none */
    struct et_recipe_nonfinite nonfinite;
    struct et_time record_interval; /* ba or sec; unset = auto, see run.h */
    double timeout, grace; /* seconds; timeout: ET_RECIPE_TIMEOUT unless it is set */
    struct et_recipe_parallel parallel;
    struct et_recipe_launch launch;
    struct et_recipe_profiler profiler;
    struct et_texts plugins;
};

/* The table of struct et_recipe, for help, man pages and forms. */
extern const struct et_option et_recipe_table[];

/* ---- reading ---- */

enum et_override_kind {
    /* "optimizer.lr=0.1", VALUE is YAML; items of lists by index */
    ET_OVERRIDE_SET = 0,
    ET_OVERRIDE_UNSET = 1,  /* "optimizer.lr": as if it were not there */
    ET_OVERRIDE_ALG = 2,    /* "cutmix" or "cutmix(alpha=.5)": appends or changes */
    ET_OVERRIDE_NO_ALG = 3, /* "ema": algorithms.ema=false */
};
struct et_override {
    enum et_override_kind kind;
    const char *text;
};

/* What a recipe may see of the world outside its folder. */
struct et_recipe_env {
    const char *const *variables;       /* "NAME=VALUE", NULL-terminated; NULL = none.
                                           ETUDE_SET_a__b=VALUE sets a.b */
    const char *const *allowed;         /* names ${env:NAME} may use; NULL = none */
    const struct et_registry *registry; /* NULL = the core's */

    /* Called where the recipe names plugins: adds them to what is known. NAMES [N] and
     * their PLACES; *OUT is the registry from here on, the caller's, and outlives the
     * recipe. What is wrong goes to ERRORS, with EINVAL as et_plugins_load has it, or
     * with ET_OK. (optional: refused) */
    et_status (*load_plugins)(void *data, const char *const *names,
                              const struct et_place *places, int n,
                              struct et_diagnostics *errors,
                              const struct et_registry **out);
    void *data;
    const char *folder; /* where relative paths and includes begin; NULL = that of the
                           file */
};

/* Reads the recipe at PATH with N OVERRIDES, in order. ENV may be NULL. What is wrong
 * is in ERRORS (the caller's, {0} before) and the status is EINVAL, or ENOENT where
 * PATH cannot be read; *OUT is then NULL. Caller frees with et_recipe_free. */
ET_NODISCARD et_status et_recipe_load(struct et_ctx *cx, const char *path,
                                      const struct et_override *overrides, int n,
                                      const struct et_recipe_env *env,
                                      struct et_recipe **out,
                                      struct et_diagnostics *errors);
/* The same from SIZE bytes of TEXT called NAME; it has no folder, so it includes
 * nothing and relative paths stay as they are. */
ET_NODISCARD et_status et_recipe_parse(struct et_ctx *cx, const char *text, size_t size,
                                       const char *name,
                                       const struct et_override *overrides, int n,
                                       const struct et_recipe_env *env,
                                       struct et_recipe **out,
                                       struct et_diagnostics *errors);
void et_recipe_free(struct et_recipe **recipe);
/* The bytes of the file that et_recipe_load read, *SIZE of them, borrowed from RECIPE;
 * NULL for a recipe that was parsed. */
const char *et_recipe_bytes(const struct et_recipe *recipe, size_t *size);

/* ---- checks that need more than the recipe; EINVAL and ERRORS as above ---- */

/* There is something to train on, and all batches divide by RANKS (1 or more). */
ET_NODISCARD et_status et_recipe_check_train(struct et_ctx *cx,
                                             const struct et_recipe *recipe,
                                             int64_t ranks,
                                             struct et_diagnostics *errors);
/* NOW differs from SAVED, the recipe of the run to resume, only where it may. */
ET_NODISCARD et_status et_recipe_check_resume(struct et_ctx *cx,
                                              const struct et_recipe *now,
                                              const struct et_recipe *saved,
                                              struct et_diagnostics *errors);

/* ---- writing; caller frees *OUT with et_free ---- */

/* recipe.resolved.yaml: every key with its value, its origin in a comment. Reads back
 * to the same recipe. */
ET_NODISCARD et_status et_recipe_resolved(struct et_ctx *cx,
                                          const struct et_recipe *recipe, char **out);
/* `explain --origin`: for each value a line "optimizer.lr = 0.1  (r.yaml:14:7)". */
ET_NODISCARD et_status et_recipe_origins(struct et_ctx *cx,
                                         const struct et_recipe *recipe, char **out);

#ifdef __cplusplus
}
#endif
#endif
