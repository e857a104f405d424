/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.h: the training loop.
 *
 * A trainer borrows a model, data, an optimizer and schedules, calls algorithms and
 * callbacks at every event, and turns each batch into one evaluation of the step's
 * graph (k microbatches: k + 1). The comment in event.h has the events' order. That of
 * a recipe is made by et_trainer_from_recipe (session.h).
 *
 *     const struct et_trainer_config config = {
 *         .dev = dev, .model = model, .train = loader, .seed = 1,
 *         .optimizer = et_optimizer_find("adamw"), .max_duration = ET_EPOCHS(3)};
 *     ET_TRY(et_trainer_new(cx, &config, &trainer));
 *     ET_TRY(et_trainer_fit(trainer, ET_TIME_UNSET));
 */
#ifndef ETUDE_TRAINER_H
#define ETUDE_TRAINER_H

#include "etude/algorithm.h"
#include "etude/callback.h"
#include "etude/checkpoint.h"
#include "etude/comm.h"
#include "etude/control.h"
#include "etude/metric.h"
#include "etude/recipe.h"
#include "etude/sched.h"
#include "etude/state.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_trainer;

/* Something to evaluate on. */
struct et_evaluator {
    const char *label;        /* in metric names; "eval" */
    struct et_loader *loader; /* borrowed */
    struct et_time interval;  /* in any unit; unset or zeroed = the trainer's;
                                 ET_NEVER = not even at the end */
    /* Regular expressions, NULL-terminated: any that matches keeps one of the task's
     * usual metrics, and one that matches none of them may choose another that makes
     * sense for the task (et_task_more_metrics). NULL = the usual ones. */
    const char *const *metrics;
};

/* Outputs for the batch, as nodes. F is ready for et_model_forward, which is what
 * the default calls with the model; it is training or not as the loop is. */
typedef struct et_tensor *et_forward_step(void *data, struct et_state *s,
                                          struct et_forward *f);

/* Steps of the loop that a user may replace, as the methods of pytorch-accelerated's
 * Trainer are overridden. A NULL slot means the default. Algorithms and callbacks are
 * called at all events whatever is replaced. Steps append nodes; what runs between
 * BEFORE_TRAIN_BATCH and AFTER_TRAIN_BATCH must stand being run again for the same
 * batch (SAM, or memory that was short).
 *
 *     there                                 here
 *     calculate_train_batch_loss            train_forward, train_loss
 *     calculate_eval_batch_loss             eval_forward
 *     backward_step                         backward
 *     _clip_gradients                       clip_gradients
 *     optimizer_step, scheduler_step        the same
 *     create_scheduler                      et_fit_options.schedulers
 *     train_epoch_start and the like        at_event
 *     create_train_dataloader and the like  et_fit_options.train, .evaluators */
struct et_trainer_steps {
    void *data; /* handed to each of them; borrowed */

    /* Called at every event, before the algorithms: FIT_START is training_run_start,
     * EPOCH_START and _END are train_epoch_start and _end, EVAL_START and _END those of
     * an evaluation's epoch, EPOCH_CHECKPOINT is training_run_epoch_end, FIT_END
     * training_run_end, EVAL_STANDALONE_START and _END evaluation_run_start and
     * _end. */
    et_status (*at_event)(void *data, struct et_state *s, enum et_event event);

    et_forward_step *train_forward;   /* between BEFORE_FORWARD and AFTER_FORWARD */
    et_forward_step *eval_forward;    /* EVAL_BEFORE_FORWARD and EVAL_AFTER_FORWARD */
    et_forward_step *predict_forward; /* PREDICT_BEFORE_FORWARD and _AFTER_FORWARD */
    /* The loss of the outputs for the batch, one number, a mean over its samples.
     * Between BEFORE_LOSS and AFTER_LOSS. Default: et_state_loss. */
    struct et_tensor *(*train_loss)(void *data, struct et_state *s);
    /* The gradients of LOSS with respect to the N PARAMS into GRADS; NULL where there
     * is none. LOSS is weighted and scaled already. Default: et_grad. */
    et_status (*backward)(void *data, struct et_state *s, struct et_tensor *loss,
                          struct et_tensor *const *params, int n,
                          struct et_tensor **grads);
    /* The gradient to update with in place of GRAD, flat as et_param_space has it.
     * After AFTER_TRAIN_BATCH. */
    struct et_tensor *(*clip_gradients)(void *data, struct et_state *s,
                                        struct et_tensor *grad);
    /* Changes the parameters by GRAD unless SKIP, f32 [1], is 1. Default:
     * et_optimizer_update. */
    et_status (*optimizer_step)(void *data, struct et_state *s, struct et_tensor *grad,
                                struct et_tensor *skip);
    /* What the learning rate is multiplied by in the update to come. Default: the
     * schedulers' product. */
    et_status (*scheduler_step)(void *data, struct et_state *s, double *factor);
};

/* Dynamic loss scaling of amp_fp16. 0 in any place means the number in brackets. */
struct et_loss_scaling {
    double initial;   /* the first scale, 1 or more [65536] */
    double growth;    /* times this after INTERVAL updates in a row [2] */
    double backoff;   /* times this when a gradient was not finite [0.5] */
    int64_t interval; /* [2000] */
};

/* One epoch of the training loop, written by its steps (et_trainer_next_batch and those
 * that follow it): pytorch-accelerated's Trainer._run_train_epoch. */
typedef et_status et_epoch_fn(void *data, struct et_trainer *t);

struct et_trainer_config {
    struct et_device *dev;   /* required; borrowed */
    struct et_comm *comm;    /* of the run's ranks (comm.h); borrowed; NULL: one rank */
    struct et_model *model;  /* required; borrowed */
    struct et_loader *train; /* required by fit; borrowed */
    const struct et_evaluator *evaluators;
    int n_evaluators;
    const struct et_optimizer_class *optimizer; /* NULL: decoupled_sgdw, a warning */
    const void *optimizer_options;              /* its struct, copied; NULL: defaults */
    const struct et_scheduler *schedulers;
    int n_schedulers;
    /* Parameters treated apart, at most ET_MAX_PARAM_GROUPS rows; borrowed, and lr and
     * weight_decay read again when a request has set them. EINVAL: a row that no
     * parameter of the model is in. */
    struct et_param_group *const *groups;
    int n_groups;
    struct et_algorithm **algorithms; /* in user order; borrowed */
    int n_algorithms;
    const struct et_pass *const *passes; /* beside the built-in ones; borrowed */
    int n_passes;
    struct et_callback **callbacks; /* borrowed; loggers are put last */
    int n_callbacks;
    const struct et_metric_use *metrics; /* beside those of the task, for batches that
                                            are trained on and evaluations; borrowed */
    int n_metrics;
    struct et_sink *sink; /* NULL: records go nowhere */
    /* Unset or zeroed: */
    struct et_time max_duration;     /* fit needs a duration */
    struct et_time eval_interval;    /* 1ep; ET_NEVER: not even at the end */
    struct et_time iteration_length; /* no ITERATION_* events */
    double scale_schedule_ratio;     /* 0 means 1 */
    int64_t grad_accum;              /* microbatches; 0 = auto: the fewest that fit */
    int64_t microbatch_size;         /* samples instead; 0 = by grad_accum */
    size_t memory_limit;             /* bytes that auto may fill; 0 = what is free */
    uint32_t seed;
    bool deterministic;   /* nothing that follows memory or the clock: auto is 1, pieces
                             are not cut smaller, max_duration is not in sec */
    const char *run_name; /* borrowed; NULL: "run" */
    const char *target;   /* "accuracy>=.765"; NULL */
    int precision;        /* enum et_precision; auto: fp32 */
    struct et_loss_scaling loss_scaling; /* of amp_fp16 */
    int nonfinite_action;                /* enum et_nonfinite_action */
    int64_t nonfinite_grace;             /* batches in a row before a stop; 0 = 1 */
    /* Schedules count the updates that were made: one that was skipped, as not finite,
     * moves them neither by its batch nor by its samples and tokens. Each batch is then
     * waited for. */
    bool hold_schedule;
    /* Batch norm normalises by what all ranks have, as torch.nn.SyncBatchNorm. ENOTSUP
     * where batches are cut into microbatches. */
    bool sync_batch_norm;
    const struct et_trainer_steps *steps;          /* NULL: all defaults */
    const struct et_checkpoint_config *checkpoint; /* NULL: nothing is saved */
    const struct et_load_config *load;             /* NULL: begin at 0 */
    volatile const int *interrupt;   /* not 0: stop after this batch; NULL: never asked.
                                      Any thread may set it; for handlers of signals
                                      see et_device_open */
    struct et_control *control;      /* what people ask of the run; NULL: nothing */
    const struct et_request *replay; /* "set" and "algo" of the run so far, by step */
    int n_replay;
    const struct et_registry *registry; /* whose algorithms may be switched on while the
                                           run goes on; borrowed; NULL: the core's */
    bool dry;                           /* plan only: et_trainer_estimate */
    /* Called with OWNER when the trainer has been freed, for who gives it all that it
     * borrows; not where et_trainer_new fails. (optional) */
    void (*released)(void *owner);
    void *owner;
    et_epoch_fn *epoch; /* NULL: et_trainer_run_epoch */
    void *epoch_data;   /* handed to it; borrowed */
};

/* Builds state and engine, fires INIT, BEFORE_LOAD, AFTER_LOAD. CONFIG is copied, what
 * it points to is borrowed as its comments say, until the trainer is freed. SIZE: of
 * the caller's struct, which et_trainer_new passes itself (abi.h). */
ET_NODISCARD et_status et_trainer_new_sized(struct et_ctx *cx, size_t size,
                                            const struct et_trainer_config *config,
                                            struct et_trainer **out);
/* et_trainer_new(cx, config, out). (As a list, so that CONFIG may be a literal.) */
#define et_trainer_new(cx, ...)                                                        \
    et_trainer_new_sized((cx), sizeof(struct et_trainer_config), __VA_ARGS__)
/* Closes callbacks and algorithms (their close functions), frees the rest. */
void et_trainer_free(struct et_trainer **t);

/* Trains until max_duration, or for DURATION more when it is set. EINVAL: nothing to
 * do. ENOMEM: not even one sample fits. May be called again: time goes on. */
ET_NODISCARD et_status et_trainer_fit(struct et_trainer *t, struct et_time duration);

/* ---- an epoch by its steps ----
 * For config.epoch, and only while it runs: EINVAL at any other time, and in another
 * order than next, train, end.
 *
 *     for (;;) {
 *         ET_TRY(et_trainer_next_batch(t, &got));
 *         if (!got)
 *             return ET_OK;
 *         ET_TRY(et_trainer_train_batch(t));
 *         ET_TRY(et_trainer_end_batch(t));
 *     }
 *
 * A function that returns before *GOT was false ends the epoch there; the next one
 * begins with the first of its batches. All ranks of a run have to do so at the same
 * batch. */

/* Waits while the run is paused; ITERATION_START and EPOCH_START where one begins;
 * BEFORE_DATALOADER, the next batch of the loader, AFTER_DATALOADER, BATCH_START. *GOT
 * is false when the epoch is over or the run is to end. */
ET_NODISCARD et_status et_trainer_next_batch(struct et_trainer *t, bool *got);
/* Sets the learning rate; forward, loss, backward and update of that batch, with all
 * events from BEFORE_TRAIN_BATCH to AFTER_TRAIN_BATCH. */
ET_NODISCARD et_status et_trainer_train_batch(struct et_trainer *t);
/* Counts the batch; BATCH_END, the record, evaluations and checkpoints that are due,
 * the batch's memory. */
ET_NODISCARD et_status et_trainer_end_batch(struct et_trainer *t);
/* The three as above, until the epoch is over: what a trainer does otherwise. DATA is
 * not read. */
ET_NODISCARD et_status et_trainer_run_epoch(void *data, struct et_trainer *t);

/* What a call of fit may do differently from the one before; what is 0, NULL or unset
 * stays as it is. What is given holds for later calls too. Pointers are borrowed until
 * the trainer is freed or they are replaced. */
struct et_fit_options {
    struct et_time duration; /* max_duration becomes now + this, which may be
                                in another unit; 0: as it is */
    bool reset_time;         /* begin at time 0: parameters, the optimizer's
                                state and algorithms stay as they are */
    struct et_loader *train; /* other data */
    const struct et_evaluator *evaluators; /* in place of those there are */
    int n_evaluators;
    const struct et_scheduler *schedulers; /* likewise */
    int n_schedulers;
    double scale_schedule_ratio; /* of these; max_duration is multiplied by it too */
    int64_t grad_accum;          /* either of these two ends auto */
    int64_t microbatch_size;
    int precision; /* enum et_precision; auto: as it is. Given, also the same again,
                      the loss scale begins anew */
};
/* As et_trainer_fit. EINVAL also for a ratio without schedulers, and for both ways to
 * cut a batch; ENOTSUP for a precision that no device has. */
ET_NODISCARD et_status et_trainer_fit_with_sized(struct et_trainer *t, size_t size,
                                                 const struct et_fit_options *options);
/* et_trainer_fit_with(t, options) */
#define et_trainer_fit_with(t, ...)                                                    \
    et_trainer_fit_with_sized((t), sizeof(struct et_fit_options), __VA_ARGS__)
/* Evaluates now on all evaluators, between EVAL_STANDALONE_START and _END; results are
 * what et_state_get_eval_metrics has then. EINVAL: there is no evaluator. Where memory
 * is short and grad_accum is auto, batches are evaluated in pieces. */
ET_NODISCARD et_status et_trainer_eval(struct et_trainer *t);
/* The same on N others, which are forgotten after it; only their metrics stay, in place
 * of those that had the same label. Intervals do not matter. */
ET_NODISCARD et_status et_trainer_eval_on(struct et_trainer *t,
                                          const struct et_evaluator *evaluators, int n);

/* What the model makes of one batch. All of it ends with the call that gets it. */
struct et_prediction {
    const float *outputs; /* row-major by axes, on the host */
    struct et_desc desc;  /* their shape: [N,classes], [N,classes,H,W], [B,T,V] */
    const struct et_batch *batch;
};
typedef et_status et_predict_fn(void *data, const struct et_state *s,
                                const struct et_prediction *p);
/* The model's outputs for all of LOADER, in its order, between PREDICT_START and
 * PREDICT_END; batches are not cut. FN gets each batch's outputs as
 * PREDICT_AFTER_FORWARD left them, and what it fails with ends the call; NULL: only
 * hooks see them. Targets are not read: a data set without any may give what it likes.
 * Of several ranks all call it, with the same data: FN of rank 0 gets the outputs of
 * all of them, and a batch on the host that has the samples of all; the others' FN is
 * not called. */
ET_NODISCARD et_status et_trainer_predict(struct et_trainer *t,
                                          struct et_loader *loader, et_predict_fn *fn,
                                          void *data);

/* How a run ended, for exit codes and run.json. */
enum et_outcome {
    ET_OUTCOME_FINISHED = 0,
    ET_OUTCOME_TARGET_REACHED = 1,
    ET_OUTCOME_TARGET_MISSED = 2,
    ET_OUTCOME_STOPPED = 3,  /* interrupted; saved, if there is where */
    ET_OUTCOME_UNSAVED = 4,  /* what it came to could not be saved */
    ET_OUTCOME_DIVERGED = 5, /* not finite */
};
enum et_outcome et_trainer_outcome(const struct et_trainer *t);

struct et_estimate {
    int64_t params;          /* trained numbers */
    double flops_per_sample; /* forward, backward and update */
    size_t peak_bytes;       /* of device memory, as the run will show it */
    struct et_plan_info train, eval;
    double seconds_per_batch; /* predicted from the device's measured rates */
    int64_t grad_accum;
    size_t checkpoint_bytes; /* what one holds; its files add names, some percent */
    size_t weights_bytes;    /* of it the model's */
};
/* From the plans alone: nothing is computed. */
ET_NODISCARD et_status et_trainer_estimate(struct et_trainer *t,
                                           struct et_estimate *out);

/* Saves the state between two calls of fit, and waits. EINVAL without a config for it,
 * EIO when it cannot be written. */
ET_NODISCARD et_status et_trainer_save(struct et_trainer *t);

/* What hooks see: borrowed, until the trainer is freed. */
struct et_state *et_trainer_state(struct et_trainer *t);

/* ---- the engine: who is called at an event, in which order ---- */

/* What happened at one event, for each algorithm that matched. */
struct et_trace {
    const struct et_algorithm *algorithm;
    enum et_event event;
    int order; /* from 0, as applied */
};
enum { ET_MAX_ALGORITHMS = 64 };

/* Fires EVENT: matches, orders, applies; then callbacks, then loggers (INIT: loggers
 * and callbacks first). TRACES (ET_MAX_ALGORITHMS entries) and N may be NULL. */
ET_NODISCARD et_status et_engine_run(struct et_state *s, enum et_event event,
                                     struct et_trace *traces, int *n);
/* The built-in passes alone, for `etude explain`: reversed where the event's name
 * begins with AFTER_; then, each time keeping the order of equals, by the flags
 * ET_ALG_FIRST, ET_ALG_LAST, and on INIT ET_ALG_INIT_AFTER_SURGERY and
 * ET_ALG_INIT_LAST. */
void et_engine_order(struct et_algorithm **list, int n, enum et_event event);
/* The same with N more, which stand where each says. EINVAL names a pass that is behind
 * one that is not there, has a name that is taken, or has added an algorithm or dropped
 * one. */
ET_NODISCARD et_status et_engine_order_with(struct et_ctx *cx,
                                            const struct et_pass *const *passes,
                                            int n_passes, struct et_algorithm **list,
                                            int n, enum et_event event);

#ifdef __cplusplus
}
#endif
#endif
