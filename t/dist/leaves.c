/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that leaves the trainer with an error, wherever that is: its peers end at
 * once, each with the loss of a peer for reason, and not when a collective's time is
 * over. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/seams.h"
#include "t/data/fixture.h"
#include "t/dist/group.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { RANKS = 3, TIMEOUT_S = 60, FAR_LESS_S = 30, LONG = 200 };
/* How a rank ends. */
enum { WELL = 0, FAILED = 3, LOST_A_PEER = 4, OTHERWISE = 5 };

enum by { CALLBACK, ALGORITHM, EPOCH, SAMPLE, TAKER };

/* Rank RANK fails with STATUS; -1: all do. At EVENT, after one batch. */
static const struct leaving {
    const char *what;
    enum by by;
    enum et_event event;
    int rank;
    et_status status;
} cases[] = {
    {"a callback as the trainer is made", CALLBACK, ET_EVENT_INIT, 1, ET_EIO},
    {"a callback of rank 0 there", CALLBACK, ET_EVENT_AFTER_LOAD, 0, ET_EIO},
    {"a callback before the first epoch", CALLBACK, ET_EVENT_FIT_START, 1, ET_EINVAL},
    {"a callback of rank 0 then", CALLBACK, ET_EVENT_EPOCH_START, 0, ET_EINVAL},
    {"a callback behind a batch", CALLBACK, ET_EVENT_BATCH_END, 1, ET_ENOTSUP},
    {"a callback that is canceled", CALLBACK, ET_EVENT_BATCH_END, 2, ET_ECANCELED},
    {"an algorithm before the forward pass", ALGORITHM, ET_EVENT_BEFORE_FORWARD, 1,
     ET_EINVAL},
    {"an algorithm before the update", ALGORITHM, ET_EVENT_AFTER_BACKWARD, 1, ET_EIO},
    {"an algorithm of rank 0 there", ALGORITHM, ET_EVENT_AFTER_BACKWARD, 0, ET_EIO},
    {"a callback in an evaluation", CALLBACK, ET_EVENT_EVAL_BATCH_END, 1, ET_EIO},
    {"a callback behind one", CALLBACK, ET_EVENT_EVAL_END, 2, ET_EIO},
    {"a callback at a checkpoint", CALLBACK, ET_EVENT_BATCH_CHECKPOINT, 1, ET_EIO},
    {"the user's epoch", EPOCH, ET_EVENT_EPOCH_START, 1, ET_EDTYPE},
    {"a sample", SAMPLE, ET_EVENT_BATCH_START, 1, ET_EIO},
    {"a callback in an evaluation alone", CALLBACK, ET_EVENT_EVAL_STANDALONE_START, 1,
     ET_EIO},
    {"a callback in a prediction", CALLBACK, ET_EVENT_PREDICT_BATCH_END, 1, ET_EIO},
    {"who takes predictions", TAKER, ET_EVENT_PREDICT_START, 0, ET_EIO},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Of a rank's process: what it does, and whether it is its turn. */
static const struct leaving *is;
static bool mine;

static et_status
leave(struct et_ctx *cx)
{
    return ET_FAIL(cx, is->status, "%s has failed", is->what);
}

static et_status
call(struct et_callback *self, enum et_event event, const struct et_state *s,
     struct et_log *log)
{
    (void)s;
    (void)log;
    return mine && is->by == CALLBACK && event == is->event ? leave(self->cx) : ET_OK;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)log;
    return mine && is->by == ALGORITHM && event == is->event && s->timestamp.batch == 1
               ? leave(self->cx)
               : ET_OK;
}

static et_status
epoch(void *data, struct et_trainer *t)
{
    return mine && is->by == EPOCH ? leave(et_trainer_state(t)->cx)
                                   : et_trainer_run_epoch(data, t);
}

static et_status
take(void *data, const struct et_state *s, const struct et_prediction *p)
{
    (void)data;
    (void)p;
    return mine && is->by == TAKER ? leave(s->cx) : ET_OK;
}

static et_status
no_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
          struct et_error *why)
{
    (void)self;
    (void)at;
    (void)out;
    why->status = ET_EIO;
    return ET_EIO;
}

static const struct et_callback_class calling = {
    .info = {.name = "calling"}, .acts = true, .events = ~UINT64_C(0), .run = call};
static const struct et_algorithm_class applying = {.info = {.name = "applying"},
                                                   .events = ET_ON(BEFORE_FORWARD) |
                                                             ET_ON(AFTER_BACKWARD),
                                                   .apply = apply};

static void
prepare(struct run *r, struct et_ctx *cx, struct et_comm *c)
{
    static struct et_callback callback = {.type = &calling}, *callbacks = &callback;
    static struct et_algorithm algorithm = {.type = &applying},
                               *algorithms = &algorithm;
    callback.cx = algorithm.cx = cx;
    const struct run_setup setup = {.device = "ref",
                                    .evaluate = true,
                                    .n = 24,
                                    .batch_size = 6,
                                    .max_duration = ET_EPOCHS(2),
                                    .callbacks = &callbacks,
                                    .n_callbacks = 1,
                                    .algorithms = &algorithms,
                                    .n_algorithms = 1};
    run_prepare(r, cx, &setup);
    r->config.comm = c;
    r->config.epoch = epoch;
}

/* All that a trainer does. */
static et_status
do_all(struct run *r)
{
    ET_TRY(et_trainer_new(r->cx, &r->config, &r->trainer));
    ET_TRY(et_trainer_fit(r->trainer, ET_TIME_UNSET));
    ET_TRY(et_trainer_eval(r->trainer));
    return et_trainer_predict(r->trainer, r->eval, take, NULL);
}

static int
end_of(struct et_ctx *cx, et_status status)
{
    const char *said = et_error_get(cx)->message;
    printf("%s", said);
    return status == ET_OK        ? WELL
           : status == is->status ? FAILED
           : status == ET_EPEER   ? LOST_A_PEER
                                  : OTHERWISE;
}

static int
be_rank(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct run r;
    struct et_dataset_class broken;
    is = data;
    mine = et_comm_rank(c) == is->rank;
    prepare(&r, cx, c);
    if (mine && is->by == SAMPLE) {
        broken = *r.data->type;
        broken.sample = no_sample;
        r.data->type = &broken;
    }
    return end_of(cx, do_all(&r));
}

static bool
test_leaving(const struct leaving *l)
{
    struct group g;
    int wrong = 0;
    struct leaving own = *l;
    group_start(&g, RANKS, TIMEOUT_S, be_rank, &own);
    group_wait(&g, FAR_LESS_S, -1);
    for (int i = 0; i < RANKS; i++)
        wrong += g.exit[i] != (i == l->rank ? FAILED : LOST_A_PEER);
    is_int(wrong, 0, "%s fails, rank %d: its peers end at once", l->what, l->rank);
    for (int i = 0; wrong && i < RANKS; i++)
        diag("rank %d: exit %d: %s", i, g.exit[i], g.text[i]);
    return wrong == 0;
}

/* ---- all ranks alike ---- */

static int
try_again(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct run r;
    is = data;
    prepare(&r, cx, c);
    need(cx, et_trainer_new(cx, &r.config, &r.trainer));
    mine = true;
    if (et_trainer_fit(r.trainer, ET_TIME_UNSET) != is->status)
        return FAILED;
    et_error_clear(cx);
    mine = false;
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    r.state = et_trainer_state(r.trainer);
    int code = r.state->timestamp.epoch == 2 ? WELL : OTHERWISE;
    run_close(&r);
    return code;
}

/* ---- a full disk ---- */

static int
sync_nothing(int fd)
{
    (void)fd;
    errno = ENOSPC;
    return -1;
}

/* Checkpoints of each batch are to be written by rank 0, which ends all by a step. */
static int
save_in_vain(struct et_ctx *cx, struct et_comm *c, void *data)
{
    const struct et_checkpoint_config to = {.directory = data,
                                            .interval = ET_BATCHES(1),
                                            .keep = 1,
                                            .incarnation = 1,
                                            .stop_on_failure = true};
    struct eti_seams seams = eti_system;
    struct run r;
    is = &cases[0];
    prepare(&r, cx, c);
    r.config.checkpoint = &to;
    seams.file.sync = sync_nothing;
    eti_ctx_set_seams(cx, &seams);
    need(cx, et_trainer_new(cx, &r.config, &r.trainer));
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(LONG)));
    r.state = et_trainer_state(r.trainer);
    const bool unsaved = et_trainer_outcome(r.trainer) == ET_OUTCOME_UNSAVED;
    printf("%d", (int)r.state->timestamp.batch);
    run_close(&r);
    return et_comm_rank(c) > 0 || unsaved ? WELL : OTHERWISE;
}

static void
test_full_disk(void)
{
    char folder[300];
    struct group g;
    int wrong = 0;
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    group_start(&g, RANKS, TIMEOUT_S, save_in_vain, folder);
    group_wait(&g, FAR_LESS_S, -1);
    for (int i = 0; i < RANKS; i++)
        wrong += g.exit[i] != WELL || strcmp(g.text[i], g.text[0]) != 0;
    const long batch = strtol(g.text[0], NULL, 10);
    ok(wrong == 0 && batch >= 3 && batch < LONG,
       "where the disk is full to rank 0, all end behind the same batch: %s",
       g.text[0]);
    for (int i = 0; wrong && i < RANKS; i++)
        diag("rank %d: exit %d: %s", i, g.exit[i], g.text[i]);
}

int
main(void)
{
    if (!group_possible())
        skip_all("built without Gloo");
    bool good = true; /* waiting for each takes long */
    for (int i = 0; i < CASES && good; i++)
        good = test_leaving(&cases[i]);
    struct leaving first = cases[2];
    ok(group_run(RANKS, try_again, &first),
       "where all ranks failed with the same, they may fit again");
    test_full_disk();
    return done();
}
