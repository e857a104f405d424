/* SPDX-License-Identifier: Apache-2.0 */
/* state.h: what algorithms edit and callbacks read.
 *
 * Within a step tensors are values of the state's graph: an algorithm changes the run
 * by replacing them with expressions (et_state_set_loss(s, et_add(...))). What changes
 * from step to step enters through small leaves that the algorithm owns and rewrites
 * with et_tensor_write; it never becomes an attribute, or each step would need a plan.
 */
#ifndef ETUDE_STATE_H
#define ETUDE_STATE_H

#include "etude/data.h"
#include "etude/event.h"
#include "etude/graph.h"
#include "etude/model.h"
#include "etude/optim.h"
#include "etude/time.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_algorithm;
struct et_callback;
struct et_log;
struct et_comm;
struct et_state;

/* One forward and backward pass over the rank's batch, AFTER_TRAIN_BATCH included; then
 * et_state_get_grad is the gradient, et_state_get_loss_value will be the loss. PASS
 * counts calls within a step, from 0; running statistics move in pass 0 only. */
typedef et_status et_closure_fn(struct et_state *state, int pass);
/* Runs closures and updates the parameters. Default: one closure, one update. */
typedef et_status et_step_fn(struct et_state *state, void *data,
                             et_closure_fn *closure);

/* Reorders LIST, the N > 0 algorithms that will act at EVENT; adds and drops none. */
typedef void et_engine_pass(struct et_algorithm **list, int n, enum et_event event);
/* One with a name, as a plugin adds it (plugin.h). Two are built in: reverse, where the
 * event's name begins with AFTER_, and then sort, by ET_ALG_FIRST, ET_ALG_LAST, and on
 * INIT ET_ALG_INIT_AFTER_SURGERY and ET_ALG_INIT_LAST. */
struct et_pass {
    const char *name;    /* a-z, 0-9 and _: no other pass has it */
    const char *summary; /* one line */
    et_engine_pass *run;
    const char *after; /* the pass that it comes behind; those behind the same one keep
                          the order in which they are given; "": before all; NULL:
                          behind all */
};

/* A number that a metric reached, under its full name. */
struct et_metric_value {
    char name[96];
    double value;
};

/* On LOADING: a checkpoint that has been read and not been checked or taken over yet,
 * so that the model can be made what it was there: replaced modules, frozen ones. */
struct et_loading {
    const char *name;              /* "step-000000000120" */
    struct et_timestamp timestamp; /* the run's, there; zero: it holds weights only */
    const struct et_archive *archive; /* internal: et_loading_has */
};

/* ---- the state: read by all who are called, changed by algorithms ---- */

/* Callbacks have it as const: nothing below that takes it so changes the run. What is
 * returned is borrowed, and as it is at this event. */
struct et_ctx *et_state_get_ctx(const struct et_state *s);
struct et_device *et_state_get_device(const struct et_state *s);
/* The step's, to append nodes to. */
struct et_graph *et_state_get_graph(const struct et_state *s);
struct et_log *et_state_get_log(const struct et_state *s);
const char *et_state_get_run_name(const struct et_state *s);
uint32_t et_state_get_seed(const struct et_state *s);
/* Of the run's processes: 0 .. world - 1; 0 and 1 for one. */
int et_state_get_rank(const struct et_state *s);
int et_state_get_world(const struct et_state *s);
/* Of the run's ranks, for collectives of a hook that every rank has; borrowed; NULL:
 * there is one rank. */
struct et_comm *et_state_get_comm(const struct et_state *s);
int
et_state_get_precision(const struct et_state *s); /* enum et_precision, never auto */

const struct et_model *et_state_get_model(const struct et_state *s);
const struct et_param_space *et_state_get_params(const struct et_state *s);
const struct et_optimizer *et_state_get_optimizer(const struct et_state *s);
/* On LOADING; NULL at any other time. */
const struct et_loading *et_state_get_loading(const struct et_state *s);
/* How often parameters or buffers of the model were replaced: who keeps tensors of them
 * looks for these anew. */
int64_t et_state_get_surgeries(const struct et_state *s);
/* The product of the schedules for the update under way. */
double et_state_get_lr_factor(const struct et_state *s);

/* Scaled; unset at INIT. */
struct et_time et_state_get_max_duration(const struct et_state *s);
/* Finished things, of training; of the evaluation and the prediction under way. */
const struct et_timestamp *et_state_get_timestamp(const struct et_state *s);
const struct et_timestamp *et_state_get_eval_timestamp(const struct et_state *s);
const struct et_timestamp *et_state_get_predict_timestamp(const struct et_state *s);
/* Why the loop ends at its next check, a sentence; NULL: it goes on. */
const char *et_state_get_stop_reason(const struct et_state *s);
bool et_state_get_target_reached(const struct et_state *s);
/* Somebody wants the run to stop: it may be resumed. */
bool et_state_get_interrupted(const struct et_state *s);
/* A saver will save now; at EPOCH_CHECKPOINT and BATCH_CHECKPOINT. */
bool et_state_get_checkpoint_due(const struct et_state *s);

/* "train", an evaluator's label; NULL: none yet. */
const char *et_state_get_dataloader_label(const struct et_state *s);
/* Batches of the active loader; -1 = unknown. */
int64_t et_state_get_dataloader_len(const struct et_state *s);
int64_t et_state_get_train_len(const struct et_state *s); /* batches per epoch */
int64_t
et_state_get_train_samples(const struct et_state *s);       /* likewise, as consumed */
int64_t et_state_get_max_seq_len(const struct et_state *s); /* token data: T; else 0 */

int64_t
et_state_get_grad_accum(const struct et_state *s); /* microbatches a batch, now */
int64_t et_state_get_batch_size(const struct et_state *s); /* global, as configured */
/* The rank's batch, as AFTER_DATALOADER left it. */
const struct et_samples *et_state_get_full(const struct et_state *s);
/* From BEFORE_FORWARD to AFTER_BACKWARD a microbatch; at AFTER_DATALOADER, BATCH_START
 * and BATCH_END the rank's batch. */
const struct et_samples *et_state_get_batch(const struct et_state *s);
/* The place of the rank's first sample in the run's order. */
int64_t et_state_get_first_sample(const struct et_state *s);
int et_state_get_pass(const struct et_state *s); /* of the closure under way */

/* From AFTER_FORWARD; from AFTER_LOSS, the mean over the microbatch; from
 * AFTER_TRAIN_BATCH, flat as et_param_space has it. */
struct et_tensor *et_state_get_outputs(const struct et_state *s);
struct et_tensor *et_state_get_loss(const struct et_state *s);
struct et_tensor *et_state_get_grad(const struct et_state *s);
/* Of the batch under way; 1 but for amp_fp16. */
double et_state_get_loss_scale(const struct et_state *s);
/* Of the last finished batch: the loss, a mean over its samples; what it computed,
 * known from BATCH_START on. */
double et_state_get_loss_value(const struct et_state *s);
int64_t et_state_get_batch_flops(const struct et_state *s);

/* Algorithm and callback I, in the user's order, loggers last; NULL past the end. */
const struct et_algorithm *et_state_get_algorithm(const struct et_state *s, int i);
const struct et_callback *et_state_get_callback(const struct et_state *s, int i);
/* The *N values that were computed last, of training and of evaluations. */
const struct et_metric_value *et_state_get_train_metrics(const struct et_state *s,
                                                         int *n);
const struct et_metric_value *et_state_get_eval_metrics(const struct et_state *s,
                                                        int *n);

/* What algorithms, and the trainer's steps, replace. Tensors are values of the step's
 * graph, or leaves whose owner keeps them. */
void et_state_set_full(struct et_state *s, const struct et_samples *samples);
void et_state_set_batch(struct et_state *s, const struct et_samples *samples);
void et_state_set_outputs(struct et_state *s, struct et_tensor *outputs);
void et_state_set_loss(struct et_state *s, struct et_tensor *loss);
void et_state_set_grad(struct et_state *s, struct et_tensor *grad);
/* NULL: the default. DATA is borrowed. */
void et_state_set_step(struct et_state *s, et_step_fn *step, void *data);
/* KEEP: the closure under way leaves the gradient this rank's own. A step that replaces
 * the default says so before, and takes it back. */
void et_state_set_keep_local(struct et_state *s, bool keep);
/* The model, its parameters and its optimizer, to change: their own functions do it. */
struct et_model *et_state_edit_model(struct et_state *s);
struct et_param_space *et_state_edit_params(struct et_state *s);
struct et_optimizer *et_state_edit_optimizer(struct et_state *s);

/* The loop ends at its next check; WHY is a string constant. */
void et_state_stop(struct et_state *s, const char *why);
/* Fraction of max_duration done; EINVAL when that is not set yet. */
ET_NODISCARD et_status et_state_elapsed(const struct et_state *s, double *out);
/* The last value of a train or eval metric by full name; false when there is none. */
bool et_state_metric(const struct et_state *s, const char *name, double *out);
/* The model's loss of OUTPUTS on TARGET, in the place of the batch's own, as nodes; per
 * sample with ET_REDUCE_NONE. */
struct et_tensor *et_state_loss(struct et_state *s, struct et_tensor *outputs,
                                struct et_tensor *target, enum et_reduction reduction);
/* The sum of squares of the gradient, f32 [1], as one pass however many ask: for norms,
 * and for whether all of it is finite. From AFTER_TRAIN_BATCH on. NULL: the graph
 * has failed. */
struct et_tensor *et_state_grad_squares(struct et_state *s);
/* The gradient becomes FACTOR, f32 [1], times what it is, and its sum of squares is
 * known without another pass. */
void et_state_scale_grad(struct et_state *s, struct et_tensor *factor);
/* All rates of the update under way are what the schedules say, times FACTOR, but not
 * below MIN_RATE where the schedules are above it. At BATCH_START; several such factors
 * multiply. */
void et_state_scale_rate(struct et_state *s, double factor, double min_rate);
/* VALUE, one number, is a part of the microbatch's loss: its mean over the batch,
 * weighed as the loss is, is logged as loss/train/NAME. Between BEFORE_LOSS and
 * AFTER_LOSS; one value a NAME and microbatch. EINVAL: more than 16 names. */
ET_NODISCARD et_status et_state_log_loss(struct et_state *s, const char *name,
                                         struct et_tensor *value);
/* Dense targets: index targets as one-hot rows of f32, negative ones all zero; dense
 * ones as they are. */
struct et_tensor *et_state_dense_target(struct et_state *s, struct et_tensor *outputs,
                                        struct et_tensor *target);
/* For a callback that has put other weights in place for a while, between evaluations
 * or at FIT_START: evaluates on everything once more, under labels that begin with
 * PREFIX: "metrics/ema_model_eval/Accuracy". Broken off by an interrupt like any
 * other. */
ET_NODISCARD et_status et_state_evaluate(const struct et_state *s, const char *prefix);
/* Does the checkpoint have a value at PATH: "model/fc.weight", "optimizer/frozen/NAME"
 * (what was frozen), "algorithms/ema/started"? */
bool et_loading_has(const struct et_loading *loading, const char *path);
/* After modules have been replaced, frozen or thawed, between batches: values, moments
 * and averages are carried over by name to the parameters that there are now. Where
 * only what is frozen has changed nothing moves, and no memory is taken. EINVAL: all is
 * frozen; ENOMEM. */
ET_NODISCARD et_status et_state_follow_surgery(struct et_state *s);

#ifdef __cplusplus
}
#endif
#endif
