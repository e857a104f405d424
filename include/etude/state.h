/* SPDX-License-Identifier: Apache-2.0 */
/* state.h: what algorithms edit and callbacks read.
 *
 * Within a step tensors are values of state->graph: an algorithm changes the run by
 * replacing them with expressions (state->loss = et_add(...)). What changes from step
 * to step enters through small leaves that the algorithm owns and rewrites with
 * et_tensor_write; it never becomes an attribute, or each step would need a plan. */
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
struct et_state;

/* Samples on their way through the model: a rank's batch, or one microbatch of it. */
struct et_samples {
    struct et_tensor *x, *target; /* leaves, or values of the step's graph */
    int64_t n;                    /* rows */
    int64_t first_row;            /* microbatch: its first row in the rank's batch */
};

/* One forward and backward pass over the rank's batch, AFTER_TRAIN_BATCH included; then
 * state->grad is the gradient and state->loss_value will be the loss. PASS counts calls
 * within a step, from 0; running statistics move in pass 0 only. */
typedef et_status et_closure_fn(struct et_state *state, int pass);
/* Runs closures and updates the parameters. Default: one closure, one update. */
typedef et_status et_step_fn(struct et_state *state, void *data,
                             et_closure_fn *closure);

/* Reorders LIST, the N > 0 algorithms that will act at EVENT; adds and drops none. */
typedef void et_engine_pass(struct et_algorithm **list, int n, enum et_event event);

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

struct et_state {
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_graph *graph;
    struct et_log *log;
    const char *run_name;
    uint32_t seed;
    int rank, world; /* of the run's processes: 0 .. world - 1; 0 and 1 for one */
    int precision;   /* enum et_precision, never auto */

    struct et_model *model;
    struct et_param_space *params;
    struct et_optimizer *optimizer;
    const struct et_loading *loading; /* on LOADING; NULL at any other time */
    int64_t
        surgeries;    /* how often parameters or buffers of the model were replaced: who
                          keeps tensors of them looks for these anew */
    double lr_factor; /* product of the schedules for the update under way */

    struct et_time max_duration;           /* scaled; unset at INIT */
    struct et_timestamp timestamp;         /* of training: finished things */
    struct et_timestamp eval_timestamp;    /* of the evaluation under way */
    struct et_timestamp predict_timestamp; /* of the prediction under way */
    bool stop;                             /* set by et_state_stop: the loop ends */
    const char *stop_reason;               /* a sentence, borrowed; NULL */
    bool target_reached;
    bool eval_enough; /* the evaluation under way ends with this batch */
    bool explains;    /* ETUDE_ENGINE_DEBUG: events are told, and who is called */
    bool interrupted; /* somebody wants the run to stop: it may be resumed */

    const char *dataloader_label; /* "train", an evaluator's label; NULL: none yet */
    int64_t dataloader_len;       /* batches of the active loader; -1 = unknown */
    int64_t train_len;            /* batches per epoch of the train loader */
    int64_t train_samples;        /* likewise samples, as consumed */
    int64_t max_seq_len;          /* token data: T; else 0 */

    int64_t grad_accum;      /* microbatches per batch, now */
    int64_t batch_size;      /* global, as configured */
    struct et_samples full;  /* the rank's batch, as AFTER_DATALOADER left it */
    struct et_samples batch; /* from BEFORE_FORWARD to AFTER_BACKWARD a microbatch; at
                                AFTER_DATALOADER, BATCH_START, BATCH_END the rank's */
    int64_t first_sample;    /* place of the rank's first sample in the run's order */
    int pass;                /* of the closure under way */
    /* The closure under way leaves state->grad this rank's own: a step that replaces
     * the default sets it before, and takes it back. */
    bool keep_local;

    struct et_tensor *outputs; /* from AFTER_FORWARD */
    struct et_tensor *loss;    /* from AFTER_LOSS: mean over the microbatch */
    struct et_tensor *grad;    /* flat, from AFTER_TRAIN_BATCH; see et_param_space */
    struct et_tensor *grad_squares, *squares_of; /* internal: et_state_grad_squares */
    double loss_scale;   /* of the batch under way; 1 but for amp_fp16 */
    double loss_value;   /* of the last finished batch: mean over its samples */
    int64_t batch_flops; /* of the last finished batch, from BATCH_START on */

    et_step_fn *step; /* NULL: the default */
    void *step_data;

    struct et_algorithm **algorithms;
    int n_algorithms;
    et_engine_pass *const *passes; /* the user's; run after the built-in ones */
    int n_passes;
    struct et_callback **callbacks; /* loggers last */
    int n_callbacks;

    struct et_metric_value *train_metrics, *eval_metrics; /* last computed */
    int n_train_metrics, n_eval_metrics;
    bool checkpoint_due; /* at *_CHECKPOINT: a saver will save now */
};

/* The loop ends at its next check; WHY is a string constant. */
void et_state_stop(struct et_state *s, const char *why);
/* Fraction of max_duration done; EINVAL when that is not set yet. */
ET_NODISCARD et_status et_state_elapsed(const struct et_state *s, double *out);
/* The last value of a train or eval metric by full name; false when there is none. */
bool et_state_metric(const struct et_state *s, const char *name, double *out);
/* The model's loss of OUTPUTS on TARGET as nodes; per sample with ET_REDUCE_NONE. */
struct et_tensor *et_state_loss(struct et_state *s, struct et_tensor *outputs,
                                struct et_tensor *target, enum et_reduction reduction);
/* The sum of squares of state->grad, f32 [1], as one pass however many ask: for norms,
 * and for whether all of it is finite. From AFTER_TRAIN_BATCH on. NULL: state->graph
 * has failed. */
struct et_tensor *et_state_grad_squares(struct et_state *s);
/* state->grad becomes FACTOR, f32 [1], times what it is, and its sum of squares is
 * known without another pass. */
void et_state_scale_grad(struct et_state *s, struct et_tensor *factor);
/* VALUE, one number, is a part of the microbatch's loss: its mean over the batch, by
 * samples, is logged as loss/train/NAME. Between BEFORE_LOSS and AFTER_LOSS; one value
 * a NAME and microbatch. EINVAL: more than 16 names. */
ET_NODISCARD et_status et_state_log_loss(struct et_state *s, const char *name,
                                         struct et_tensor *value);
/* Dense targets: index targets as one-hot rows of f32, negative
 * ones all zero; dense ones as they are. */
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
