/* SPDX-License-Identifier: Apache-2.0 */
/* part.h: the parts of a trainer, and the stages at which a batch passes through them.
 *
 * A part has one subject (loss scaling, ranks, running statistics, ...) and a struct of
 * its own, which no other file sees. At each stage the loop calls the parts in the
 * order of parts.def; step.c has the stages of a batch from top to bottom. What a part
 * leaves for others is in struct eti_train_step, what belongs to the whole run in
 * struct eti_common. A part does not look into struct et_trainer (t/lint/layers.t):
 * what it may ask of it is declared here. */
#ifndef ETI_TRAINER_PART_H
#define ETI_TRAINER_PART_H

#include "core/trainer/state.h"
#include "etude/archive.h"
#include "etude/comm.h"
#include "etude/trainer.h"

enum eti_part_id {
#define PART(id, type) ETI_PART_##id,
#include "core/trainer/parts.def"
    ETI_N_PARTS
};

enum { ETI_MAX_LOSS_PARTS = 16, ETI_MAX_METRICS = 16 };
enum { ETI_MAX_NUMBERS = 4 + ETI_MAX_LOSS_PARTS + 2 * ETI_MAX_METRICS };

/* The batch under way: tensors are f32 [1] and values of state->graph. */
struct eti_train_step {
    bool several;              /* it takes several evaluations */
    bool alone;                /* its gradient comes from one microbatch */
    bool spare;                /* its rows are counted by another rank */
    int64_t first, n;          /* rows of the microbatch under way */
    struct et_samples samples; /* it, as the loader had it */
    struct et_tensor *loss;    /* what to go backward from */
    struct et_tensor **grads;  /* [params->n], after that; NULL: frozen */
    struct et_tensor *weight;  /* ranks: this one's share of a full batch; else NULL */
    /* Of the microbatch: the part of the rank's batch that counts and is in it; NULL:
     * as much as its rows are. It is settled by the first that asks. */
    struct et_tensor *share;
    bool share_is_known;
    /* The sum of these: what loss, its parts and gradient are still to be divided by.
     * NULL: 1. */
    struct et_tensor *counted;
    struct et_tensor *total;  /* the batch's mean loss, over all ranks */
    struct et_tensor *failed; /* ranks: not 0 where one has no gradient; else NULL */
    struct et_tensor *skip;   /* not 0: the update changes nothing */
    unsigned losses;          /* bit i: part i of the loss was logged */
};

/* A batch's numbers, once they are on the host. */
struct eti_numbers {
    const float *at; /* the next that was reported; its part goes on behind it */
    int64_t batch;   /* counted from 1 */
    unsigned losses; /* bit i: part i of the loss was logged */
    bool skipped;    /* the update changed nothing */
    bool excused;    /* ... and the loss scale was to blame */
};

/* What the run has come to. */
struct eti_common {
    struct et_comm *comm; /* NULL: one rank */
    enum et_outcome outcome;
    struct et_timestamp before; /* the timestamp as the batch under way found it */
    int64_t nonfinite_batches;  /* in a row */
    bool skipped;               /* the last batch's update changed nothing */
    /* Batches, samples and tokens whose updates did not count, where these hold the
     * schedule (config->hold_schedule); epochs do not matter. */
    struct et_timestamp held;
    bool resumed; /* the timestamp is a checkpoint's, and nothing has been done since */
    bool is_trial; /* the step under way is planned, and counts for nothing: join.c */
};

struct eti_part {
    const struct eti_part_type *type;
    void *own; /* type->size bytes, zeroed at first */
    struct et_trainer *t;
    struct et_state *s;
    struct et_trainer_config *config;
    struct eti_common *common;
};

/* NULL: there is nothing to do. */
struct eti_part_type {
    size_t size;
    /* After surgery on INIT, before anything is loaded; and release what it made. */
    et_status (*init)(struct eti_part *p);
    void (*release)(struct eti_part *p);
    /* The model has other parameters or buffers than before; before init, too. */
    et_status (*bind)(struct eti_part *p);

    /* ---- a batch, stage by stage ---- */

    /* An attempt at the batch begins. */
    et_status (*begin)(struct eti_part *p, struct eti_train_step *k);
    /* K->loss is a microbatch's: becomes what to go backward from. */
    et_status (*loss)(struct eti_part *p, struct eti_train_step *k);
    /* K->grads are that microbatch's. */
    et_status (*add)(struct eti_part *p, struct eti_train_step *k);
    /* After the last microbatch: state->grad becomes the batch's gradient. */
    et_status (*grad)(struct eti_part *p, struct eti_train_step *k);
    /* K->skip comes about, from what the gradient is after clipping. */
    et_status (*skip)(struct eti_part *p, struct eti_train_step *k);
    /* The update is in the graph; this is the batch's last evaluation. */
    et_status (*append)(struct eti_part *p, struct eti_train_step *k);
    /* The attempt did not get that far, or was not to count. */
    et_status (*undo)(struct eti_part *p);

    /* ---- numbers ---- */

    /* N_SUMS f32 that ranks add up; SUMS puts this rank's into V, in as many tensors as
     * it returns. Neither depends on what the batch has in it. */
    int64_t (*n_sums)(const struct eti_part *p);
    int (*sums)(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v);
    /* One number of the host's that goes with them, and what it came to over all ranks.
     * AGAIN: the batch is to be done again. */
    float (*say)(struct eti_part *p);
    void (*hear)(struct eti_part *p, float sum, bool again);
    /* N_REPORTED: the most f32 that the host will read of a batch; REPORT puts them
     * into V as SUMS does; TAKE is called when they are there, maybe some batches
     * later. */
    int64_t (*n_reported)(const struct eti_part *p);
    int (*report)(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v);
    void (*take)(struct eti_part *p, struct eti_numbers *numbers);

    /* ---- checkpoints ---- */

    /* Before a save, on all ranks: what other ranks alone know. */
    et_status (*gather)(struct eti_part *p);
    et_status (*archive)(struct eti_part *p, struct et_archive *a);
};

/* ---- parts.c ---- */

#define PART(id, type) extern const struct eti_part_type type;
#include "core/trainer/parts.def"

/* The part ID, and its own struct. */
struct eti_part *eti_part_of(struct et_trainer *t, enum eti_part_id id);
void *eti_part_own(struct et_trainer *t, enum eti_part_id id);
/* The batch under way. */
struct eti_train_step *eti_train_step_of(struct et_trainer *t);
/* Each stage: all parts in order, until one fails. */
ET_NODISCARD et_status eti_parts_init(struct et_trainer *t);
void eti_parts_release(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_bind(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_begin(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_loss(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_add(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_grad(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_skip(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_append(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_undo(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_gather(struct et_trainer *t);
ET_NODISCARD et_status eti_parts_archive(struct et_trainer *t, struct et_archive *a);
/* All that parts sum; P's first one is number eti_sums_before(P). */
int64_t eti_count_sums(struct et_trainer *t);
int64_t eti_sums_before(const struct eti_part *p);
int eti_parts_sums(struct et_trainer *t, struct et_tensor *v[ETI_MAX_NUMBERS]);
/* SAID [eti_count_said]: a number of each part that says one. */
int eti_count_said(struct et_trainer *t);
void eti_parts_say(struct et_trainer *t, float *said);
void eti_parts_hear(struct et_trainer *t, const float *said, bool again);
int64_t eti_count_reported(struct et_trainer *t);
int eti_parts_report(struct et_trainer *t, struct et_tensor *v[ETI_MAX_NUMBERS]);
void eti_parts_take(struct et_trainer *t, struct eti_numbers *numbers);

/* ---- accumulate.c: what a microbatch is of its batch ---- */

/* V, f32 [1], a mean over the microbatch under way, as a part of the batch's. */
struct et_tensor *eti_share(const struct eti_part *p, struct eti_train_step *k,
                            struct et_tensor *v);
/* V, a sum of such parts, as the rank's mean; one rank's is the batch's. */
struct et_tensor *eti_whole(struct et_graph *g, const struct eti_train_step *k,
                            struct et_tensor *v);
/* How many of the rank's positions there are, by those of a full batch. */
double eti_rank_share(const struct eti_part *p);

/* ---- ranks.c: sums over ranks ---- */

/* V, a rank's own, where its rows count, else 0; and that times its share of them. */
struct et_tensor *eti_counted(struct et_graph *g, const struct eti_train_step *k,
                              struct et_tensor *v);
struct et_tensor *eti_weighed(struct et_graph *g, const struct eti_train_step *k,
                              struct et_tensor *v);
/* With several ranks: N of P's sums from number AT on, as the last exchange left them;
 * and of one that was weighed its mean over the batch. */
struct et_tensor *eti_sum_over_ranks(const struct eti_part *p, int64_t at, int64_t n);
struct et_tensor *eti_mean_over_ranks(const struct eti_part *p, int64_t at);

/* ---- what a part may ask of the trainer ---- */

/* steps.c: the user's step at EVENT, then the hooks. */
ET_NODISCARD et_status eti_run(struct et_trainer *t, enum et_event event);
/* metrics.c: those called NAMES ("accuracy loss"), behind the *N that OUT
 * [ETI_MAX_METRICS] has. */
ET_NODISCARD et_status eti_metrics_new(struct et_state *s, const char *names,
                                       struct et_metric **out, int *n);
/* The metric USE behind them, unless its class is there. */
ET_NODISCARD et_status eti_metrics_add(struct et_state *s,
                                       const struct et_metric_use *use,
                                       struct et_metric **out, int *n);
/* state.c: has the run come to its end? */
ET_NODISCARD et_status eti_is_over(const struct et_state *s, bool *over);
/* Has somebody written T in a struct that a program fills? */
static inline bool
eti_is_given(struct et_time t)
{
    return et_time_is_set(t) && t.value != 0;
}
/* INTERVAL in a unit that is counted: a dur becomes that part of max_duration, in
 * batches where that is in epochs. EINVAL: the loader's length is not known. */
ET_NODISCARD et_status eti_settle_interval(const struct et_state *s,
                                           struct et_time *interval);
/* interrupt.c: a new fit begins: forgets what interrupted or stopped the fit before. */
void eti_interrupt_forget(struct et_trainer *t);
/* interrupt.c: has somebody asked the run to stop? Then it will. */
bool eti_interrupted(struct et_trainer *t);
void eti_ask_to_stop(struct et_trainer *t);
/* This rank has a reason to stop, WHY, that others do not know. */
void eti_stop_all_ranks(struct et_trainer *t, const char *why);
/* Where no step tells it: has any rank been asked to? */
ET_NODISCARD et_status eti_listen_for_stop(struct et_trainer *t);
/* clock.c: a batch's time begins now, or SECONDS later than it did. */
void eti_clock_start(struct et_trainer *t);
void eti_clock_skip(struct et_trainer *t, double seconds);
/* The time of the batch that ends: of several ranks rank 0's, from the end of one
 * step's forward pass to that of the next, so that what ends by the clock ends on all.
 */
double eti_clock_batch(struct et_trainer *t);
/* readback.c: waits for the oldest batches, until KEEP are left that nobody was shown,
 * and shows each. */
ET_NODISCARD et_status eti_readback_deliver(struct et_trainer *t, int keep);
int eti_readback_waiting(struct et_trainer *t);
/* save.c: saves what is between two steps at the next chance; false: the run has no
 * place to save to. */
bool eti_ask_to_save(struct et_trainer *t);
bool eti_save_is_asked(struct et_trainer *t);
/* Fires EVENT, one of *_CHECKPOINT, and saves if that is due. */
ET_NODISCARD et_status eti_checkpoint(struct et_trainer *t, enum et_event event);
/* verdict.c: was no batch of the run finite, so that each update was skipped? */
bool eti_learned_nothing(const struct eti_common *c, const struct et_state *s);
/* archive.c: every value that later steps depend on, to save or to load; the model's
 * alone. */
ET_NODISCARD et_status eti_archive_trainer(struct et_trainer *t, struct et_archive *a);
ET_NODISCARD et_status eti_archive_model(struct et_trainer *t, struct et_archive *a);
/* "60000 samples in batches of 128, ...": what the train data must be again. */
ET_NODISCARD et_status eti_describe_data(struct et_trainer *t, char *buf, size_t size);
/* groups.c: rates and decays of the optimizer's groups, as options and rows have them.
 */
ET_NODISCARD et_status eti_groups_follow(struct et_trainer *t);
/* join.c: the algorithm NAME, with OPTIONS ("name=value name=value"; "": its defaults),
 * joins the run behind the others, on all ranks. NOTE [SIZE]: what is to be said of it.
 * What it is refused with changes nothing: EINVAL, ENOTSUP, ENOMEM, EPEER where another
 * rank could not. */
ET_NODISCARD et_status eti_algorithm_join(struct et_trainer *t, const char *name,
                                          const char *options, char *note, size_t size);
/* Between two batches: what A, unless it is off, has put in place of the run's goes. */
ET_NODISCARD et_status eti_algorithm_settle(struct et_trainer *t,
                                            struct et_algorithm *a);

/* Has somebody set *FLAG, in this or another thread? NULL: never. */
static inline bool
eti_is_set(volatile const int *flag)
{
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

#endif
