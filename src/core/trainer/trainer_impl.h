/* trainer_impl.h: what the files of src/core/trainer share. */
#ifndef ETI_TRAINER_IMPL_H
#define ETI_TRAINER_IMPL_H

#include "core/base/assert.h"
#include "core/base/seams.h"
#include "core/optim/group.h"
#include "core/trainer/ranks.h"
#include "core/trainer/readback.h"
#include "etude/archive.h"
#include "etude/trainer.h"

enum { ETI_MAX_METRICS = 16, ETI_MAX_EVALUATORS = 16 };

struct eti_evaluator {
    struct et_evaluator config;
    struct et_metric *metric[ETI_MAX_METRICS];
    int n_metrics;
    int64_t last_batch; /* timestamp.batch at its last run; -1 before the first */
};

/* scaler.c: dynamic loss scaling; all NULL without. */
struct eti_scaler {
    struct et_loss_scaling rule;
    struct et_tensor *scale; /* f32 [1] */
    struct et_tensor *clean; /* f32 [1]: updates since the scale changed */
    /* f32 [1]: 1 if a gradient of this step was not finite */
    struct et_tensor *overflow;
    struct et_tensor *checked; /* the gradient that OVERFLOW speaks of; never read */
};

/* What et_state_log_loss was given. */
struct eti_loss_part {
    char name[64];
    struct et_tensor *sum; /* f32 [1]: of the microbatches so far, weighted */
    bool logged;           /* in the batch under way */
};

/* The model's buffers, and a copy of them from before the batch under way. */
struct eti_stats {
    struct et_leaves leaves;
    struct et_storage *kept; /* NULL: the model has none */
    struct et_tensor **copy; /* [leaves.n], in kept */
    bool is_kept;            /* the copy is of before the batch under way */
};

/* The last time that the run went back to a checkpoint. */
struct eti_rollback {
    int64_t at;       /* batches that were finished then */
    int64_t lost;     /* of them, those that it went back by */
    int64_t in_a_row; /* how often, each before it had made up for what was lost */
};

/* What requests have come to: control.c. */
struct eti_controlled {
    bool paused, stop, save; /* asked for, and not done yet */
    int replayed;            /* of config.replay */
    bool is_replay;          /* what is applied is the log's */
    bool *superseded; /* [config.n_replay]: what has been asked anew; NULL: none */
};

struct et_trainer {
    struct et_state state; /* first: hooks are given it and may reach the trainer */
    struct et_trainer_config config;
    void *own_options; /* of the default optimizer; NULL when one was given */
    struct et_algorithm *algorithm[ET_MAX_ALGORITHMS];
    struct et_callback *callback[ET_MAX_ALGORITHMS];

    struct et_param **param; /* [n_params]: the model's, in the order of the space */
    int n_params;
    struct et_tensor *
        *grads; /* [n_params]: of the pass under way; NULL: frozen, none */
    struct eti_trained {
        struct et_tensor **leaf; /* [n]: tensors of what is not frozen, borrowed */
        struct et_tensor **grad; /* [n]: of the pass under way */
        int *slot;               /* [n]: their places in the space */
        int n;
    } trained;

    struct eti_groups {
        struct eti_group_patterns patterns;
        double factor[1 + ET_MAX_PARAM_GROUPS]; /* of the update under way */
    } groups;

    struct et_metric *train_metric[ETI_MAX_METRICS];
    int n_train_metrics;
    struct et_metric_value train_value[ETI_MAX_METRICS];
    struct et_metric_value eval_value[ETI_MAX_METRICS * ETI_MAX_EVALUATORS];
    struct eti_evaluator evaluator[ETI_MAX_EVALUATORS];
    int n_evaluators;

    struct et_tensor *rng;   /* I64 [2]: dropout's key, first sample of the pass */
    struct et_tensor *total; /* f32 [1]: loss of the batch so far */
    struct eti_loss_part part[ETI_MAX_LOSS_PARTS];
    int n_parts;
    struct et_tensor *grad_sum; /* f32 [total]: of the microbatches so far */
    struct eti_scaler scaler;
    struct eti_stats stats;
    struct eti_readback readback;
    struct eti_ranks ranks;
    struct et_plan_info train_plan, eval_plan; /* of the last batches */
    int64_t train_flops, train_bytes;          /* of the last training batch */
    struct et_run_length length;
    bool is_auto;  /* grad_accum adapts to memory */
    int64_t accum; /* grad_accum when it is fixed, or what auto has come to */
    /* pieces of an evaluation's batch; more where memory is short */
    int64_t eval_split;
    int64_t nonfinite_batches; /* in a row */
    struct eti_rollback rollback;
    enum et_outcome outcome;
    struct eti_controlled controlled;
    double clock;               /* monotonic seconds when the batch under way began */
    struct et_timestamp before; /* the timestamp as the batch under way found it */
    int pending_eval; /* event whose evaluation was broken off or left out; 0: none */
    bool resumed;     /* the timestamp is a checkpoint's */
    bool is_trial; /* the step under way is planned, and counts for nothing: join.c */
    const struct et_batch *shown;           /* that the state shows; NULL: none */
    const struct et_loader *fingerprint_of; /* whose data have it; NULL: not taken */
    uint64_t fingerprint;
    struct eti_saver *saver; /* save.c; NULL: nothing is saved */
    struct et_algorithm *own_algorithm[ET_MAX_ALGORITHMS]; /* that a load, or somebody
                                                              while it went on, added */
    int n_own_algorithms;
};

/* readback.c. After metrics and optimizer have been made. */
ET_NODISCARD et_status eti_readback_init(struct et_trainer *t);
void eti_readback_release(struct et_trainer *t);
/* In a batch's last evaluation: its numbers go into one leaf; after it: on their way.
 */
ET_NODISCARD et_status eti_readback_append(struct et_trainer *t,
                                           struct et_tensor *skip);
ET_NODISCARD et_status eti_readback_send(struct et_trainer *t);
/* Without running ahead: into state and log, now. */
void eti_readback_take(struct et_trainer *t);
/* At the end of a batch: puts by what observers will be shown of it. */
void eti_readback_park(struct et_trainer *t);
/* Waits for the oldest parked batches, until KEEP are left, and shows each. */
ET_NODISCARD et_status eti_readback_deliver(struct et_trainer *t, int keep);
/* The same, shown to nobody: the run goes back to before them. */
ET_NODISCARD et_status eti_readback_discard(struct et_trainer *t);
/* fit.c: what to do about the last batch's gradient; true: the run went back. */
bool eti_judge(struct et_trainer *t);
/* Was no batch of the run finite, so that each update was skipped? */
bool eti_learned_nothing(const struct et_trainer *t);
/* fit.c: an empty graph, and in the state what B holds, for all who read batches. */
void eti_show_batch(struct et_trainer *t, const struct et_batch *b);
/* fit.c: the same for the batch that is shown already, if any is. */
void eti_show_again(struct et_trainer *t);
/* step.c: one batch through closure and update, with retries. */
ET_NODISCARD et_status eti_train_batch(struct et_trainer *t);
/* The same in a dry graph, which leaves nothing behind; in pieces where the batch does
 * not fit and grad_accum is auto. The caller drops what is pending. */
ET_NODISCARD et_status eti_plan_step(struct et_trainer *t);
/* Rows [FIRST, FIRST + N) of ALL, as nodes. */
struct et_samples eti_rows(struct et_graph *g, const struct et_samples *all,
                           int64_t first, int64_t n);
/* Computes what hooks made of the batch, which the pieces of it then share. */
ET_NODISCARD et_status eti_keep_batch(struct et_trainer *t);
/* Losses in pieces and microbatches of a batch with N samples. */
int64_t eti_count_microbatches(const struct et_trainer *t, int64_t n, int64_t *rows);
/* How many pieces to try next, at most MOST, after NOW were too large for memory. Not
 * ALONE: other ranks, which know no more than that, must come to the same number. */
int64_t eti_more_pieces(const struct et_trainer *t, int64_t now, int64_t most,
                        bool alone);
/* f32 [1]: not finite where GRAD has an element that is not, or where a sum of squares
 * in f32 is too much. */
/* 1 where V, f32 [1], is not finite, else 0. */
struct et_tensor *eti_not_finite(struct et_graph *g, struct et_tensor *v);
/* stats.c: the buffers that the model has now. */
ET_NODISCARD et_status eti_stats_bind(struct et_trainer *t);
void eti_stats_release(struct et_trainer *t);
/* Before a batch of several evaluations, and after one that did not get to its end. */
ET_NODISCARD et_status eti_stats_keep(struct et_trainer *t);
ET_NODISCARD et_status eti_stats_put_back(struct et_trainer *t);
/* In the batch's last evaluation: where SKIP, f32 [1], is not 0 they stay as they
 * were. */
void eti_stats_guard(struct et_trainer *t, struct et_tensor *skip);
/* setup.c: what products are computed in from the next step on; ENOTSUP. */
ET_NODISCARD et_status eti_take_precision(struct et_trainer *t, int precision);
/* scaler.c, all of them. Leaves, if the precision scales losses. */
ET_NODISCARD et_status eti_scaler_init(struct et_trainer *t);
void eti_scaler_release(struct et_trainer *t);
/* What to go backward from. */
struct et_tensor *eti_scaler_scale(struct et_trainer *t, struct et_tensor *loss);
/* state->grad, all of the batch's, becomes the true gradient. */
ET_NODISCARD et_status eti_scaler_unscale(struct et_trainer *t, int pass);
/* Whether to skip the update with state->grad: f32 [1]; and the next scale. */
struct et_tensor *eti_scaler_skip(struct et_trainer *t);
/* What BATCH, counted from 1, made of overflow and scale: true when the scale was to
 * blame for a skip. Logs. */
bool eti_scaler_settle(struct et_trainer *t, int64_t batch, float overflow,
                       float scale);
/* Scale and count of clean steps, for checkpoints. */
ET_NODISCARD et_status eti_scaler_archive(struct et_trainer *t, struct et_archive *a);
/* steps.c: the user's step, or the default. */
ET_NODISCARD et_status eti_step_at(struct et_trainer *t, enum et_event event);
struct et_tensor *eti_step_train_forward(struct et_trainer *t, struct et_forward *f);
struct et_tensor *eti_step_eval_forward(struct et_trainer *t);
struct et_tensor *eti_step_predict_forward(struct et_trainer *t);
struct et_tensor *eti_step_train_loss(struct et_trainer *t);
/* The gradients of LOSS into t->grads. */
ET_NODISCARD et_status eti_step_backward(struct et_trainer *t, struct et_tensor *loss);
/* What state->grad becomes for the update. */
struct et_tensor *eti_step_clip(struct et_trainer *t);
ET_NODISCARD et_status eti_step_optimizer(struct et_trainer *t, struct et_tensor *skip);
/* Sets state->lr_factor. */
ET_NODISCARD et_status eti_step_scheduler(struct et_trainer *t);
void eti_free_parts(struct et_trainer *t);
/* prepare.c: how long the run is to be, from config and the loader. */
ET_NODISCARD et_status eti_set_length(struct et_trainer *t);
/* Everything of OPTIONS, and the loader at the timestamp's place. */
ET_NODISCARD et_status eti_prepare_fit(struct et_trainer *t,
                                       const struct et_fit_options *options);
/* fit.c: has the run come to its end? */
ET_NODISCARD et_status eti_is_over(struct et_trainer *t, bool *over);
/* groups.c: the config's rows are looked at; first of all. */
ET_NODISCARD et_status eti_groups_init(struct et_trainer *t);
/* The group of the parameter NAME. */
int eti_groups_find(const struct et_trainer *t, const char *name);
/* After surgery on INIT: has each row a parameter? */
ET_NODISCARD et_status eti_groups_check(struct et_trainer *t);
/* Rates and decays of the optimizer's groups, as its options and the rows have them. */
ET_NODISCARD et_status eti_groups_follow(struct et_trainer *t);
ET_NODISCARD et_status eti_groups_check_schedules(struct et_trainer *t);
/* The factors of the update to come, state->lr_factor being known; and what the
 * optimizer has of them. */
ET_NODISCARD et_status eti_groups_schedule(struct et_trainer *t);
void eti_groups_apply(struct et_trainer *t);
/* bind.c: what a precision other than fp8 multiplies in; NONE: f32. */
enum et_dtype eti_low_dtype(int precision);
/* bind.c: the flat parameter space of the model as it is now: the one there is, with
 * other parameters frozen, where these are the same. */
ET_NODISCARD et_status eti_bind_parameters(struct et_trainer *t);
/* What is frozen in the space becomes so in the model, and is no longer differentiated.
 */
ET_NODISCARD et_status eti_follow_frozen(struct et_trainer *t);
/* After eti_bind_parameters. */
void eti_unbind_parameters(struct et_trainer *t);
/* Has somebody set *FLAG, in this or another thread? NULL: never. */
static inline bool
eti_is_set(volatile const int *flag)
{
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}
/* fit.c: has somebody asked the run to stop? Then it will. */
bool eti_interrupted(struct et_trainer *t);
/* control.c: applies what is asked for after the batches so far; holds while it is to
 * be paused. */
ET_NODISCARD et_status eti_control_poll(struct et_trainer *t);
/* join.c: the algorithm NAME, with OPTIONS ("name=value name=value"; "": its defaults),
 * joins the run behind the others, on all ranks. NOTE [SIZE]: what is to be said of it.
 * What it is refused with changes nothing: EINVAL, ENOTSUP, ENOMEM, EPEER where another
 * rank could not. */
ET_NODISCARD et_status eti_algorithm_join(struct et_trainer *t, const char *name,
                                          const char *options, char *note, size_t size);
/* Behind the others, the trainer's own from then on: there is room. */
void eti_algorithm_add(struct et_trainer *t, struct et_algorithm *a);
/* A makes itself ready: those of EVENTS that came before the first batch. */
ET_NODISCARD et_status eti_algorithm_prepare(struct et_trainer *t,
                                             struct et_algorithm *a, uint64_t events);
/* Between two batches: what A, unless it is off, has put in place of the run's goes. */
ET_NODISCARD et_status eti_algorithm_settle(struct et_trainer *t,
                                            struct et_algorithm *a);
/* save.c: checkpoints name A from here on, if any are saved. */
ET_NODISCARD et_status eti_saver_joined(struct et_trainer *t,
                                        const struct et_algorithm *a);
/* And no more, if they did. */
void eti_saver_left(struct et_trainer *t, const struct et_algorithm *a);
/* Do both change the same setting? request.c */
bool eti_request_same(const struct et_request *a, const struct et_request *b);
ET_NODISCARD et_status eti_control_hold(struct et_trainer *t);
/* evaluate.c */
ET_NODISCARD et_status eti_evaluate_due(struct et_trainer *t, enum et_event event);
/* evaluators.c: N more; and those from FIRST on no more. */
ET_NODISCARD et_status eti_evaluators_add(struct et_trainer *t,
                                          const struct et_evaluator *evaluators, int n);
void eti_evaluators_drop(struct et_trainer *t, int first);
/* target.c: "accuracy>=.765" fits one metric of the evaluators: EINVAL. */
ET_NODISCARD et_status eti_target_init(struct et_trainer *t);
/* The same against the metrics of an evaluation. */
ET_NODISCARD et_status eti_target_check(struct et_trainer *t, bool *reached);

/* save.c: checkpoints. init is for after eti_load; nothing is saved without a
 * config. */
ET_NODISCARD et_status eti_saver_init(struct et_trainer *t);
void eti_saver_free(struct et_trainer *t);
/* Fires EVENT, one of *_CHECKPOINT, and saves if that is due. */
ET_NODISCARD et_status eti_checkpoint(struct et_trainer *t, enum et_event event);
/* Saves what is between two steps now, unless it has been; a thread writes it. */
ET_NODISCARD et_status eti_save(struct et_trainer *t);
/* Has this rank a reason to save after the batch under way: asked to, or it is time? */
bool eti_save_is_wanted(const struct et_trainer *t);
/* After the last step: waits for the thread; the outcome says if that was in vain. */
void eti_finish_saving(struct et_trainer *t);
/* The run ends with the error that stands, between two steps: saves what there is. */
void eti_rescue(struct et_trainer *t);
/* After any other failure: waits until what is being written is written. */
void eti_keep_saved(struct et_trainer *t);
const char *eti_label_of(const struct et_checkpoint_config *c);
/* load.c: parameters, optimizer and algorithms as the newest checkpoint has them; data
 * and clock go on. False, with WHY, where that cannot be. */
bool eti_roll_back(struct et_trainer *t, char *why, size_t size);
/* save.c: waits for the save under way, and says what became of it. */
void eti_settle_save(struct et_trainer *t);
/* load.c: takes over what config.load says: between BEFORE_LOAD and AFTER_LOAD. */
ET_NODISCARD et_status eti_load(struct et_trainer *t);
/* evaluate.c: an interval in a unit that is counted, see settle there. */
ET_NODISCARD et_status eti_settle_interval(struct et_trainer *t,
                                           struct et_time *interval);
/* An evaluation that the checkpoint's run was kept from. */
ET_NODISCARD et_status eti_evaluate_pending(struct et_trainer *t);

ET_NODISCARD et_status eti_metrics_new(struct et_trainer *t, const char *names,
                                       struct et_metric **out, int *n);
ET_NODISCARD et_status eti_run(struct et_trainer *t, enum et_event event);

#endif
