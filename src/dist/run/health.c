/* SPDX-License-Identifier: Apache-2.0 */
/* health.c: how a rank is: a callback that moves its place on the board, so that a hang
 * shows, notes what it does there, and measures where its time goes.
 *
 *     health, each second      own_ms queue_ms wait_ms data_ms step_ms hooks_ms
 *                              save_ms forward_ms backward_ms optimizer_ms: means
 *                              over the batches since the last;
 *                              ba_per_s; machine.h's
 *     algorithm, each 10 s     fired applied ms last_ba: rank 0's
 *
 * step_ms is from one batch's end to the next without evaluations, checkpoints and
 * pauses; of it wait_ms is spent waiting for other ranks and own_ms is the rest. For
 * queue_ms of own_ms the training thread was ready, and no processor was free. That
 * thread adds up nanoseconds at the end of each batch, so that all parts are of the
 * same steps; the sender's thread takes what has come together. */
#include "config.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/graph/spent.h"
#include "dist/run/machine.h"
#include "dist/run/rank_impl.h"
#include "etude/algorithm.h"
#include "etude/trainer.h"
#include "core/trainer/state.h"

static const double ALGORITHM_SECONDS = 10;

enum part { DATA, STEP, WAIT, HOOKS, SAVE, FORWARD, BACKWARD, UPDATE, BATCHES, PARTS };

/* A moment of the training thread, in seconds that pauses do not count in. */
struct moment {
    double at;     /* NaN: it has not come */
    double waited; /* for other ranks, in all until then */
};

/* The callback's state. */
struct health {
    struct etd_rank *rank;
    struct et_comm *comm;
    _Atomic int64_t sum[PARTS]; /* ns; the last: batches */
    _Atomic int64_t ba, ep, sp;
    _Atomic unsigned ends; /* of batches that were added, twice; odd: one is now */
    /* The training thread's. */
    struct moment step, eval, save; /* when they began */
    struct moment aside;  /* since STEP, by both clocks, what is not part of the step */
    double data_at, data; /* of the step: when reading began, and seconds of it */
    double algorithms_at;
    uint64_t on;  /* a bit for each algorithm that was on when they were told of */
    double hooks; /* seconds of algorithms, up to the last batch */
    double spent[ETI_SPENTS]; /* of kernels, likewise */
    /* The sender's. */
    int64_t before[PARTS];
    double queued; /* seconds of the training thread TID, when it was looked at last */
    double at;
    int tid;
    struct etd_machine machine; /* of both: see there */
};

static void
add(struct health *h, enum part part, double seconds)
{
    h->sum[part] += (int64_t)(seconds * 1e9);
}

/* ---- on the sender's thread ---- */

static void
put(struct et_record *r, struct et_log_entry *entry, const char *name, double value)
{
    struct et_log_entry *e = &entry[r->n++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->value = value;
}

/* Copies all sums as of the same batch. False: a batch is being added. */
static bool
read_sums(const struct health *h, int64_t *sum, struct et_record *r)
{
    unsigned ends = h->ends;
    for (int i = 0; i < PARTS; i++)
        sum[i] = h->sum[i];
    r->ba = h->ba;
    r->ep = h->ep;
    r->sp = h->sp;
    return ends % 2 == 0 && h->ends == ends;
}

static bool
report(void *data, struct et_record *r, struct et_log_entry *entry, int room)
{
    static const char *const names[] = {
        [DATA] = "data_ms",         [STEP] = "step_ms",        [WAIT] = "wait_ms",
        [HOOKS] = "hooks_ms",       [SAVE] = "save_ms",        [FORWARD] = "forward_ms",
        [BACKWARD] = "backward_ms", [UPDATE] = "optimizer_ms",
    };
    struct health *h = data;
    double now = eti_monotonic(h->rank->cx), past = now - h->at;
    int64_t sum[PARTS];
    double queued = etd_machine_queued(h->tid);
    if (room < PARTS + 2 + ETD_MACHINE_NUMBERS || past <= 0)
        return false;
    while (!read_sums(h, sum, r))
        sched_yield();
    for (int i = 0; i < PARTS; i++) {
        int64_t all = sum[i];
        sum[i] -= h->before[i];
        h->before[i] = all;
    }
    double batches = (double)sum[BATCHES] / 1e9;
    if (batches > 0) {
        double own = 1e-6 * (double)(sum[STEP] - sum[WAIT]) / batches;
        put(r, entry, "own_ms", own);
        /* (Some of it may have been in a collective: no more than is there.) */
        if (!isnan(queued))
            put(r, entry, "queue_ms", fmin(1e3 * (queued - h->queued) / batches, own));
        for (int i = DATA; i <= SAVE; i++)
            put(r, entry, names[i], 1e-6 * (double)sum[i] / batches);
        /* (A device with streams does not tell: each is 0.) */
        for (int i = FORWARD; i <= UPDATE && sum[FORWARD] > 0; i++)
            put(r, entry, names[i], 1e-6 * (double)sum[i] / batches);
    }
    put(r, entry, "ba_per_s", batches / past);
    r->n += etd_machine_read(&h->machine, now, entry + r->n);
    h->at = now;
    h->queued = queued;
    return true;
}

/* ---- on the training thread ---- */

static struct moment
now_of(const struct health *h)
{
    struct et_comm_look look;
    et_comm_get_look(h->comm, &look);
    return (struct moment){eti_monotonic(h->rank->cx) - h->rank->held,
                           1e-9 * (double)look.wait_ns};
}

/* Leaves the time since BEGIN out of the step. */
static void
set_aside(struct health *h, struct moment begin, struct moment now)
{
    h->aside.at += now.at - begin.at;
    h->aside.waited += now.waited - begin.waited;
}

static uint64_t
on_of(const struct et_state *s)
{
    uint64_t on = 0;
    _Static_assert(ET_MAX_ALGORITHMS <= 64, "a bit for each");
    for (int i = 0; i < s->n_algorithms; i++)
        on |= (uint64_t)!s->algorithms[i]->off << i;
    return on;
}

/* What each algorithm has done so far: rank 0 tells. */
static void
tell_algorithms(struct health *h, const struct et_state *s, struct et_log *log)
{
    h->algorithms_at = eti_monotonic(h->rank->cx) + ALGORITHM_SECONDS;
    h->on = on_of(s);
    for (int i = 0; i < s->n_algorithms && h->rank->rank == 0; i++) {
        const struct et_algorithm *a = s->algorithms[i];
        double ba = s->timestamp.batch > 0 ? (double)s->timestamp.batch : 1;
        struct et_log_entry entry[] = {
            {"fired", (double)a->count.fired},
            {"applied", (double)a->count.applied},
            {"ms", 1e3 * a->count.seconds / ba},
            {"last_ba", (double)a->count.last_ba},
            {"off", a->off},
        };
        struct et_record r = {
            .kind = ET_RECORD_ALGORITHM,
            .text = a->type->info.name,
            .entry = entry,
            .n = sizeof entry / sizeof *entry,
        };
        et_log_record(log, &r, &s->timestamp);
    }
}

static void
end_batch(struct health *h, const struct et_state *s, struct et_log *log)
{
    const struct moment now = now_of(h);
    double hooks = 0, step = now.at - h->step.at - h->aside.at,
           waited = now.waited - h->step.waited - h->aside.waited;
    for (int i = 0; i < s->n_algorithms; i++)
        hooks += s->algorithms[i]->count.seconds;
    h->ends++;
    add(h, DATA, h->data);
    add(h, STEP, step);
    add(h, WAIT, fmin(waited, step)); /* two clocks */
    add(h, HOOKS, hooks - h->hooks);
    for (int i = ETI_SPENT_FORWARD; i < ETI_SPENTS; i++) {
        const double spent = eti_graph_spent(s->graph, (enum eti_spent)i);
        add(h, FORWARD + i - ETI_SPENT_FORWARD, spent - h->spent[i]);
        h->spent[i] = spent;
    }
    add(h, BATCHES, 1);
    h->ba = s->timestamp.batch;
    h->ep = s->timestamp.epoch;
    h->sp = s->timestamp.sample;
    h->ends++;
    h->hooks = hooks;
    h->step = now;
    h->aside = (struct moment){0};
    h->data = 0;
    if (on_of(s) != h->on || eti_monotonic(h->rank->cx) >= h->algorithms_at)
        tell_algorithms(h, s, log);
}

/* The copy that a save begins with is over: its thread writes from now on. */
static void
end_save(struct health *h)
{
    struct moment now = now_of(h);
    if (isnan(h->save.at))
        return;
    add(h, SAVE, now.at - h->save.at);
    set_aside(h, h->save, now);
    h->save.at = NAN;
}

static const struct {
    enum et_event event;
    enum etd_phase phase;
} phases[] = {
    {ET_EVENT_BEFORE_DATALOADER, ETD_PHASE_DATA},
    {ET_EVENT_BEFORE_FORWARD, ETD_PHASE_FORWARD},
    {ET_EVENT_BEFORE_BACKWARD, ETD_PHASE_BACKWARD},
    {ET_EVENT_AFTER_TRAIN_BATCH, ETD_PHASE_UPDATE},
    {ET_EVENT_EVAL_START, ETD_PHASE_EVALUATION},
    {ET_EVENT_EVAL_BATCH_END, ETD_PHASE_EVALUATION},
    {ET_EVENT_BATCH_CHECKPOINT, ETD_PHASE_CHECKPOINT},
    {ET_EVENT_EPOCH_CHECKPOINT, ETD_PHASE_CHECKPOINT},
    {ET_EVENT_FIT_END, ETD_PHASE_CHECKPOINT},
};

/* Every event is progress, and some begin a phase. */
static void
move(struct etd_rank *r, enum et_event event, int64_t ba)
{
    struct etd_board_rank *own = &r->board->rank[r->local];
    enum etd_phase phase = (enum etd_phase)own->phase;
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (phases[i].event == event)
            phase = phases[i].phase;
    etd_flight_event(&own->recorder, (int)event, ba);
    etd_board_move(r->board, r->local, phase);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct health *h = self->state;
    double now = eti_monotonic(self->cx);
    move(h->rank, event, s->timestamp.batch);
    switch (event) {
    case ET_EVENT_FIT_START:
        etd_board_step(h->rank->board, h->rank->local, s->timestamp.batch);
        h->step = now_of(h);
        h->at = now;
        h->tid = gettid();
        h->queued = etd_machine_queued(h->tid);
        etd_machine_start(&h->machine, h->rank->local == 0, now);
        etd_machine_ask_gpu(&h->machine, s, now);
        h->algorithms_at = now + ALGORITHM_SECONDS;
        h->on = on_of(s);
        etd_board_move(h->rank->board, h->rank->local, ETD_PHASE_DATA);
        etd_sender_watch(h->rank->sender, report, h);
        break;
    case ET_EVENT_BEFORE_DATALOADER:
        end_save(h);
        h->data_at = now;
        break;
    case ET_EVENT_AFTER_DATALOADER:
        h->data += now - h->data_at;
        break;
    case ET_EVENT_BATCH_END:
        etd_board_step(h->rank->board, h->rank->local, s->timestamp.batch);
        end_batch(h, s, log);
        etd_machine_ask_gpu(&h->machine, s, now);
        break;
    case ET_EVENT_EVAL_BATCH_END:
        etd_machine_ask_gpu(&h->machine, s, now);
        break;
    case ET_EVENT_EVAL_BEFORE_ALL:
        h->eval = now_of(h);
        break;
    case ET_EVENT_EVAL_AFTER_ALL:
        set_aside(h, h->eval, now_of(h));
        break;
    case ET_EVENT_BATCH_CHECKPOINT:
    case ET_EVENT_EPOCH_CHECKPOINT:
        h->save = now_of(h);
        h->save.at = s->checkpoint_due ? h->save.at : NAN;
        break;
    case ET_EVENT_FIT_END:
        tell_algorithms(h, s, log);
        break;
    default:
        break;
    }
    return ET_OK;
}

/* Nobody asks a callback that is gone. */
static void
close_health(struct et_callback *self)
{
    struct health *h = self->state;
    if (!h->rank)
        return;
    etd_sender_watch(h->rank->sender, NULL, NULL);
    et_comm_watch(h->comm, NULL, NULL);
}

static void
see_collective(void *data, const struct et_comm_look *look)
{
    const struct etd_rank *r = data;
    etd_board_collective(r->board, r->local, look);
}

static const struct et_callback_class health_class = {
    .info =
        {
            .name = "health",
            .class_name = "Health",
            .summary = "says how a rank is",
            .applies_to = "any",
        },
    .state_size = sizeof(struct health),
    .events = ET_ON_ALL,
    .run = run,
    .trails = et_callback_trails,
    .close = close_health,
};

et_status
etd_rank_watch(struct etd_rank *r, struct et_comm *comm, struct et_callback **out)
{
    ET_TRY(et_callback_new(r->cx, &health_class, NULL, NULL, out));
    struct health *h = (*out)->state;
    h->rank = r;
    h->comm = comm;
    h->save.at = NAN;
    et_comm_watch(comm, see_collective, r);
    return ET_OK;
}
