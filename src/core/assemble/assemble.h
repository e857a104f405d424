/* SPDX-License-Identifier: Apache-2.0 */
/* assemble.h: a recipe made into what a trainer needs: device, data, model, hooks.
 *
 * Train, eval, estimate and explain differ only in what they ask for. Everything made
 * belongs to the assembly; the trainer borrows it. */
#ifndef ETI_ASSEMBLE_H
#define ETI_ASSEMBLE_H

#include "etude/algorithm.h"
#include "etude/callback.h"
#include "etude/recipe.h"
#include "etude/trainer.h"

/* The class whose info a recipe's component is: classes begin with it. */
#define ETI_CLASS(kind, component)                                                     \
    ((const struct et_##kind##_class *)(const void *)(component))

enum { ETI_MAX_EVAL_DATA = 16, ETI_MAX_SCHEDULERS = 16, ETI_MAX_OWN_METRICS = 16 };

/* What was being made when something failed: whose fault it may be. */
enum eti_stage {
    ETI_STAGE_RECIPE,
    ETI_STAGE_DEVICE,
    ETI_STAGE_DATA,
    ETI_STAGE_PARTS,  /* model, optimizer, schedules, algorithms, callbacks */
    ETI_STAGE_OUTPUT, /* the run directory and what is in it */
    ETI_STAGE_RUN,
};

struct eti_assemble_options {
    const char *device;    /* NULL: as the recipe says; "ref" for tests */
    int threads;           /* 0 = all cores */
    struct et_device *dev; /* opened already; the assembly's from then on */
    struct et_comm *comm;  /* of the run's ranks; borrowed; NULL: there is one */
    bool with_train;       /* open train_data */
    bool with_eval;        /* open eval_data */
    bool stands_in;        /* blank data of the same shapes where they are known
                              (core/data/stand_in.h), and no file of weights */
    bool is_trial;         /* no cache of pictures is filled (core/data/stand_in.h) */
    bool loads_weights;    /* with stands_in: the file of weights all the same */
    int64_t limit_batches; /* of each epoch and evaluation; 0 = no limit */
};

/* The data that one component of the recipe names. */
struct eti_data {
    struct et_dataset *set;
    struct et_loader *loader;
};

struct eti_assembly {
    struct et_ctx *cx;
    const struct et_recipe *recipe; /* borrowed */
    enum eti_stage stage;           /* reached */
    bool stands_in, loads_weights;  /* as the options have them */
    struct et_device *dev;
    struct eti_data train, eval[ETI_MAX_EVAL_DATA];
    struct et_model *model;
    struct et_evaluator evaluator[ETI_MAX_EVAL_DATA];
    const char **patterns[ETI_MAX_EVAL_DATA]; /* evaluator.metrics */
    struct et_scheduler scheduler[ETI_MAX_SCHEDULERS];
    struct et_param_group *group[ET_MAX_PARAM_GROUPS];
    struct et_scheduler group_scheduler[ET_MAX_PARAM_GROUPS][ETI_MAX_SCHEDULERS];
    struct et_algorithm *algorithm[ET_MAX_ALGORITHMS];
    struct et_callback *callback[ET_MAX_ALGORITHMS];
    struct et_metric_use metric[ETI_MAX_OWN_METRICS];
    struct et_trainer_config config; /* complete but for sink, interrupt and dry */
};

/* Opens the device NAME, or the one that RECIPE asks for, and settles what the recipe
 * leaves to it: device, precision. THREADS as above. ENOENT, ENOTSUP: no device. */
ET_NODISCARD et_status eti_assemble_device(struct et_ctx *cx, struct et_recipe *recipe,
                                           const char *name, int threads,
                                           struct et_device **out);
/* Makes what OPTIONS ask for. The components take over their options from RECIPE, which
 * must outlive the assembly: write it down before. On failure A->stage says what was
 * being made; release it in any case. The recipe has a seed. */
ET_NODISCARD et_status eti_assemble(struct et_ctx *cx, struct et_recipe *recipe,
                                    const struct eti_assemble_options *options,
                                    struct eti_assembly *a);
/* The device that computes on a processor: "cpu", or "ref" without oneDNN. */
extern const char eti_assemble_cpu[];
/* Callbacks and loggers, which write beneath RUN_DIRECTORY, borrowed: for `train`.
 * NULL: callbacks alone. */
ET_NODISCARD et_status eti_assemble_callbacks(struct eti_assembly *a,
                                              struct et_recipe *recipe,
                                              const char *run_directory);
/* One more callback, which is the assembly's from now on, or freed. EINVAL: there are
 * too many. */
ET_NODISCARD et_status eti_assembly_add(struct eti_assembly *a, struct et_callback *c);
/* The algorithms alone, N of them in user order: for `explain`. */
ET_NODISCARD et_status eti_assemble_algorithms(struct eti_assembly *a,
                                               struct et_recipe *recipe);
/* Call after the trainer is gone. */
void eti_assembly_release(struct eti_assembly *a);

/* predictor.c: opens the tokenizer of the data that P's samples are like, or the one at
 * PATH where that is not NULL. The caller's. */
struct et_predictor;
struct et_tokenizer;
ET_NODISCARD et_status eti_predictor_tokenizer(struct et_predictor *p, const char *path,
                                               struct et_tokenizer **out);

/* The state of a run that ended so: "finished", "diverged". */
const char *eti_outcome_state(enum et_outcome outcome);

/* rehearse.c: begins a run of RECIPE and builds one step of it with blank data, so that
 * layers, shapes and dtypes are looked at as `train` would. RECIPE is good for no run
 * afterwards. EINVAL, ESHAPE, EDTYPE: what the run would end with. *TRIED: false where
 * that cannot be known here, as the shapes of data whose files are not here. */
ET_NODISCARD et_status eti_rehearse(struct et_ctx *cx, struct et_recipe *recipe,
                                    bool *tried);
/* Are the times of RECIPE's callbacks in units that T counts, which is without them and
 * has begun? EINVAL names the option. */
ET_NODISCARD et_status eti_check_callbacks(struct et_trainer *t,
                                           const struct et_recipe *recipe);
/* kinds.c: what of model and data cannot go together, by their classes, goes to
 * ERRORS. */
void eti_recipe_check_kinds(const struct et_recipe *recipe,
                            struct et_diagnostics *errors);
/* available.c: what the recipe asks for and this version does not do goes to ERRORS, a
 * line for each key; and what eti_recipe_check_kinds finds. EINVAL then. */
ET_NODISCARD et_status eti_recipe_check_available(struct et_ctx *cx,
                                                  const struct et_recipe *recipe,
                                                  struct et_diagnostics *errors);

#endif
