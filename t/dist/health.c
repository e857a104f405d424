/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank says of its steps each second is of the same steps, all of it: the time
 * that it waits for others in an evaluation, or in a step that has not ended, is taken
 * from no other step's own time, and pauses are part of none (UX.md section 3). */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/graph/graph_impl.h"
#include "dist/run/rank_impl.h"
#include "etude/algorithm.h"
#include "etude/state.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "core/trainer/state.h"

enum { EPOCH = 4 };                              /* batches of one */
enum { BEFORE = 40, BATCHES = 8, NUMBERS = 64 }; /* the run goes on after BEFORE */
enum { STEP_MS = 5, OTHER_MS = 100 }; /* for which the other rank is waited for */
enum { PAUSE_MS = 20 };               /* between two looks whether a pause is over */
static const double EXACT = 1e-8;     /* sums of nanoseconds, as doubles */

static unsigned late_ms;

/* Of all steps, in seconds. */
struct sums {
    double step, wait;       /* step_ms, wait_ms */
    double rest;             /* step_ms without own_ms */
    double save;             /* seconds of save_ms */
    double part[ETI_SPENTS]; /* forward_ms, backward_ms, optimizer_ms */
    bool positive;           /* own_ms, each time */
    bool placed;             /* each record: in its epoch, behind its samples */
};

/* Batch BA's kernels of PART, in seconds: each batch another time. */
static double
kernels_of(int ba, int part)
{
    return 1e-3 * (ba + 1) * part;
}

/* The other rank. */
static et_status
come_late(void *self, const struct et_comm_call *call, char *why, size_t why_size)
{
    (void)self, (void)call, (void)why, (void)why_size;
    usleep(1000 * late_ms);
    return ET_OK;
}

static void
leave(void *self, bool failed)
{
    (void)self, (void)failed;
}

static const struct et_comm_class others = {"late", come_late, leave};

/* In a collective; the seconds that it took. */
static double
wait_in(struct et_ctx *cx, struct et_comm *comm, unsigned ms)
{
    struct et_comm_look before, after;
    late_ms = ms;
    et_comm_get_look(comm, &before);
    need(cx, et_comm_barrier(cx, comm));
    et_comm_get_look(comm, &after);
    return 1e-9 * (double)(after.wait_ns - before.wait_ns);
}

/* Trains for BATCHES, with a pause in each, an evaluation behind the fifth and a save
 * behind the sixth, and begins the next; the seconds that finished batches waited. */
static double
train(struct et_callback *c, struct et_comm *comm, struct etd_rank *rank,
      struct et_state *s)
{
    struct et_control *control = etd_rank_control(rank);
    double waited = 0;
    need(c->cx, c->type->run(c, ET_EVENT_FIT_START, s, NULL));
    is_int(rank->board->rank[0].step, BEFORE,
           "a rank that goes on says after which batch, before it ends another");
    for (int ba = 0; ba < BATCHES; ba++) {
        need(c->cx, c->type->run(c, ET_EVENT_BEFORE_DATALOADER, s, NULL));
        need(c->cx, c->type->run(c, ET_EVENT_AFTER_DATALOADER, s, NULL));
        waited += wait_in(c->cx, comm, STEP_MS);
        control->wait(control);
        for (int i = ETI_SPENT_FORWARD; i < ETI_SPENTS; i++)
            s->graph->spent[i] += kernels_of(ba, i);
        s->timestamp.batch++;
        s->timestamp.epoch = s->timestamp.batch / EPOCH;
        s->timestamp.sample = 3 * s->timestamp.batch;
        need(c->cx, c->type->run(c, ET_EVENT_BATCH_END, s, NULL));
        if (ba == 4) {
            need(c->cx, c->type->run(c, ET_EVENT_EVAL_BEFORE_ALL, s, NULL));
            (void)wait_in(c->cx, comm, OTHER_MS);
            need(c->cx, c->type->run(c, ET_EVENT_EVAL_AFTER_ALL, s, NULL));
        }
        s->checkpoint_due = ba == 5;
        need(c->cx, c->type->run(c, ET_EVENT_BATCH_CHECKPOINT, s, NULL));
        if (s->checkpoint_due)
            (void)wait_in(c->cx, comm, OTHER_MS);
    }
    need(c->cx, c->type->run(c, ET_EVENT_BEFORE_DATALOADER, s, NULL));
    (void)wait_in(c->cx, comm, OTHER_MS);
    is_int(rank->board->rank[0].step, BEFORE + BATCHES, "and so with each that ends");
    return waited;
}

static const char *const part_names[ETI_SPENTS] = {
    [ETI_SPENT_FORWARD] = "forward_ms",
    [ETI_SPENT_BACKWARD] = "backward_ms",
    [ETI_SPENT_UPDATE] = "optimizer_ms",
};

static double
number(const struct et_record *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].name, name) == 0)
            return r->entry[i].value;
    return NAN;
}

/* Reads what the sender writes to FD until it has told of all batches. */
static void
read_all(int fd, struct sums *out)
{
    static char bytes[1 << 16];
    struct et_log_entry entry[NUMBERS];
    struct etd_packet f;
    struct et_record r;
    size_t n = 0, used;
    for (int64_t ba = BEFORE; ba < BEFORE + BATCHES;) {
        ssize_t got = read(fd, bytes + n, sizeof bytes - n);
        if (got <= 0)
            bail("the sender writes no more");
        n += (size_t)got;
        for (size_t at = 0; etd_packet_next(bytes + at, n - at, &f, &used) == 1;
             at += used) {
            if (!etd_packet_record(&f, entry, NUMBERS, &r) || r.ba <= ba)
                continue;
            double batches = (double)(r.ba - ba);
            ba = r.ba;
            out->step += 1e-3 * batches * number(&r, "step_ms");
            out->wait += 1e-3 * batches * number(&r, "wait_ms");
            out->save += 1e-3 * batches * number(&r, "save_ms");
            out->rest +=
                1e-3 * batches * (number(&r, "step_ms") - number(&r, "own_ms"));
            for (int i = ETI_SPENT_FORWARD; i < ETI_SPENTS; i++)
                out->part[i] += 1e-3 * batches * number(&r, part_names[i]);
            out->positive &= number(&r, "own_ms") > 0;
            out->placed &= r.ep == ba / EPOCH && r.sp == 3 * ba;
        }
    }
}

static double
next_second(void)
{
    static double now = 1000;
    return now += 1;
}

/* Each look at the clock is a second after the one before, so that each look whether a
 * pause is over takes one. */
static void
test_pause(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    struct etd_rank rank = {.cx = cx, .world = 1};
    seams.monotonic = next_second;
    eti_ctx_set_seams(cx, &seams);
    need(cx, etd_board_new(cx, 1, &rank.board));
    etd_rank_init_control(&rank);
    struct et_control *control = etd_rank_control(&rank);
    for (int i = 0; i < 5; i++)
        control->wait(control);
    is_near(rank.held, 5, 0, "a pause lasts from its first look to its last");
    etd_board_free(&rank.board);
    et_ctx_free(&cx);
}

/* ---- while batches end ---- */

static _Thread_local double own_now = 1000;
static _Thread_local bool trains;
static const double DATA = 0x1p-9;  /* of each batch: two looks at the clock */
static const double HOOKS = 0x1p-8; /* of each batch: the seconds of its algorithm */
static atomic_int
    sender_looks; /* looks of the sender at its clock: some each time that it wakes */

/* Each thread's own: the sender's looks are a second apart. */
static double
two_clocks(void)
{
    if (!trains)
        atomic_fetch_add(&sender_looks, 1);
    return own_now += trains ? 0x1p-10 : 1;
}

/* Batches end one after the other until the sender has woken some hundred times; what
 * it wrote, into BYTES; how many bytes. */
static size_t
train_without_pause(struct et_ctx *cx, char *bytes, size_t room)
{
    struct etd_rank rank = {.cx = cx, .world = 2, .rank = 1}; /* tells of no method */
    struct et_algorithm method = {.type = et_algorithm_find("ema")};
    struct et_algorithm *methods[] = {&method};
    struct et_state s = {.cx = cx, .algorithms = methods, .n_algorithms = 1};
    struct et_callback *c;
    struct et_comm *comm;
    int pipes[2];
    if (pipe(pipes) != 0 || fcntl(pipes[1], F_SETPIPE_SZ, (int)room) < 0)
        bail("no pipe");
    need(cx, etd_board_new(cx, 1, &rank.board));
    need(cx, etd_sender_start(cx, pipes[1], 0, &rank.sender));
    need(cx, et_comm_new(cx, &others, NULL, 0, 1, &comm));
    need(cx, etd_rank_watch(&rank, comm, &c));
    trains = true;
    need(cx, c->type->run(c, ET_EVENT_FIT_START, &s, NULL));
    double end = eti_system.monotonic() + 120;
    while (atomic_load(&sender_looks) < 400 && eti_system.monotonic() < end) {
        need(cx, c->type->run(c, ET_EVENT_BEFORE_DATALOADER, &s, NULL));
        need(cx, c->type->run(c, ET_EVENT_AFTER_DATALOADER, &s, NULL));
        s.timestamp.batch++;
        s.timestamp.epoch = s.timestamp.batch / EPOCH;
        s.timestamp.sample = 3 * s.timestamp.batch;
        method.count.seconds += HOOKS;
        need(cx, c->type->run(c, ET_EVENT_BATCH_END, &s, NULL));
    }
    trains = false;
    et_callback_free(&c);
    et_comm_close(&comm);
    etd_sender_stop(&rank.sender);
    etd_board_free(&rank.board);
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(pipes[0], bytes + n, room - n)) > 0;)
        n += (size_t)got;
    close(pipes[0]);
    return n;
}

/* What is told is of whole batches, also where one ends while it is read: each takes as
 * long for its data. */
static void
test_whole_batches(void)
{
    static char bytes[1 << 20];
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    struct et_log_entry entry[NUMBERS];
    struct etd_packet f;
    struct et_record r;
    size_t used;
    int records = 0, whole = 0, placed = 0, hooked = 0, seconds = 0;
    int64_t before = -1;
    seams.monotonic = two_clocks;
    eti_ctx_set_seams(cx, &seams);
    size_t n = train_without_pause(cx, bytes, sizeof bytes);
    for (size_t at = 0; etd_packet_next(bytes + at, n - at, &f, &used) == 1;
         at += used) {
        if (!etd_packet_record(&f, entry, NUMBERS, &r) || isnan(number(&r, "data_ms")))
            continue;
        records++;
        whole += fabs(number(&r, "data_ms") - 1e3 * DATA) < EXACT;
        placed += r.ep == r.ba / EPOCH && r.sp == 3 * r.ba;
        hooked += fabs(number(&r, "hooks_ms") - 1e3 * HOOKS) < EXACT;
        /* The sender's clock advances by whole seconds. */
        double past = (double)(r.ba - before) / number(&r, "ba_per_s");
        seconds += before < 0 || (past > 0.5 && fabs(past - round(past)) < 1e-6);
        before = r.ba;
    }
    ok(records >= 10, "batches are told of while they end, %d times", records);
    is_int(whole, records, "each time with the times of whole batches");
    is_int(placed, records, "and with the place of the last of them");
    is_int(hooked, records, "each record has the time that methods took in a batch");
    is_int(seconds, records, "each record has how many batches there were in a second");
    et_ctx_free(&cx);
}

/* ---- algorithms ---- */

struct told {
    struct et_sink sink;
    char text[512];
};

static void
take_told(struct et_sink *sink, const struct et_record *r)
{
    struct told *t = (struct told *)sink;
    size_t at = strlen(t->text);
    at += (size_t)snprintf(t->text + at, sizeof t->text - at, "%s", r->text);
    for (int i = 0; i < r->n; i++)
        at += (size_t)snprintf(t->text + at, sizeof t->text - at, " %s %g",
                               r->entry[i].name, r->entry[i].value);
    snprintf(t->text + at, sizeof t->text - at, "; ");
}

/* At the end rank 0 tells what each algorithm has done; no other rank does. */
static void
test_algorithms(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_algorithm ema = {.type = et_algorithm_find("ema"),
                               .count = {40, 30, 25, 0.5}};
    struct et_algorithm mixup = {
        .type = et_algorithm_find("mixup"), .off = true, .count = {4, 3, 2, 0.25}};
    struct et_algorithm *both[] = {&ema, &mixup};
    for (int number = 0; number < 2; number++) {
        struct told told = {.sink = {.write = take_told}};
        struct etd_rank rank = {.cx = cx, .world = 2, .rank = number};
        struct et_state s = {.cx = cx,
                             .timestamp = {.batch = 50},
                             .algorithms = both,
                             .n_algorithms = 2};
        struct et_callback *c;
        struct et_comm *comm;
        struct et_log *log;
        need(cx, et_log_new(cx, &told.sink, &log));
        need(cx, etd_board_new(cx, 1, &rank.board));
        need(cx, et_comm_new(cx, &others, NULL, 0, 1, &comm));
        need(cx, etd_rank_watch(&rank, comm, &c));
        need(cx, c->type->run(c, ET_EVENT_FIT_END, &s, log));
        is_str(told.text,
               number > 0 ? ""
                          : "ema fired 40 applied 30 ms 10 last_ba 25 off 0; "
                            "mixup fired 4 applied 3 ms 5 last_ba 2 off 1; ",
               "rank %d %s", number,
               number > 0 ? "says nothing of algorithms"
                          : "tells of each algorithm's events, batches and time");
        et_log_free(&log);
        et_callback_free(&c);
        et_comm_close(&comm);
        etd_board_free(&rank.board);
    }
    et_ctx_free(&cx);
}

/* ---- by a clock that the test sets ---- */

static double set_now;

/* The sender's looks are a second apart. */
static double
set_clock(void)
{
    return trains ? set_now : (own_now += 1);
}

struct bench {
    struct et_ctx *cx;
    struct eti_seams seams;
    struct etd_rank rank;
    struct et_comm *comm;
    struct et_callback *c;
    int pipes[2];
};

/* Rank LOCAL of two that are here. */
static void
bench_begin(struct bench *b, int local)
{
    *b = (struct bench){.cx = need_ctx(), .seams = eti_system};
    b->seams.monotonic = set_clock;
    eti_ctx_set_seams(b->cx, &b->seams);
    b->rank = (struct etd_rank){.cx = b->cx, .world = 2, .rank = local, .local = local};
    if (pipe(b->pipes) != 0)
        bail("no pipe");
    need(b->cx, etd_board_new(b->cx, 2, &b->rank.board));
    need(b->cx, etd_sender_start(b->cx, b->pipes[1], local, &b->rank.sender));
    need(b->cx, et_comm_new(b->cx, &others, NULL, 0, 1, &b->comm));
    need(b->cx, etd_rank_watch(&b->rank, b->comm, &b->c));
    trains = true;
}

static void
bench_end(struct bench *b)
{
    trains = false;
    et_callback_free(&b->c);
    et_comm_close(&b->comm);
    etd_sender_stop(&b->rank.sender);
    etd_board_free(&b->rank.board);
    close(b->pipes[0]);
    close(b->pipes[1]);
    et_ctx_free(&b->cx);
}

/* At T comes EVENT; a batch's end is behind the batch. */
static void
at(struct bench *b, struct et_state *s, double t, enum et_event event,
   struct et_log *log)
{
    set_now = t;
    s->timestamp.batch += event == ET_EVENT_BATCH_END;
    need(b->cx, b->c->type->run(b->c, event, s, log));
}

/* Three batches in 100 s: each reads in two parts, behind the first there are an
 * evaluation and a save, behind the second is a chance to save that nobody takes. */
static void
test_parts_of_steps(void)
{
    static const struct {
        double t;
        enum et_event event;
        bool due;
    } row[] = {
        {0, ET_EVENT_FIT_START, false},         {0, ET_EVENT_BEFORE_DATALOADER, false},
        {1, ET_EVENT_AFTER_DATALOADER, false},  {2, ET_EVENT_BEFORE_DATALOADER, false},
        {4, ET_EVENT_AFTER_DATALOADER, false},  {10, ET_EVENT_BATCH_END, false},
        {11, ET_EVENT_EVAL_BEFORE_ALL, false},  {31, ET_EVENT_EVAL_AFTER_ALL, false},
        {32, ET_EVENT_BATCH_CHECKPOINT, true},  {72, ET_EVENT_BEFORE_DATALOADER, false},
        {73, ET_EVENT_AFTER_DATALOADER, false}, {74, ET_EVENT_BEFORE_DATALOADER, false},
        {76, ET_EVENT_AFTER_DATALOADER, false}, {80, ET_EVENT_BATCH_END, false},
        {81, ET_EVENT_BATCH_CHECKPOINT, false}, {91, ET_EVENT_BEFORE_DATALOADER, false},
        {91, ET_EVENT_AFTER_DATALOADER, false}, {100, ET_EVENT_BATCH_END, false},
    };
    static char bytes[1 << 16];
    for (int local = 0; local < 2; local++) {
        struct et_log_entry entry[NUMBERS];
        struct bench b;
        struct et_state s = {0};
        struct etd_packet f;
        struct et_record r;
        double data = 0, step = 0, save = 0;
        int64_t ba = 0;
        size_t n = 0, used;
        bool of_host = false;
        bench_begin(&b, local);
        s.cx = b.cx;
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
            s.checkpoint_due = row[i].due;
            at(&b, &s, row[i].t, row[i].event, NULL);
        }
        while (ba < 3) {
            ssize_t got = read(b.pipes[0], bytes + n, sizeof bytes - n);
            if (got <= 0)
                bail("the sender writes no more");
            n += (size_t)got;
            size_t from = 0;
            for (; etd_packet_next(bytes + from, n - from, &f, &used) == 1;
                 from += used) {
                if (!etd_packet_record(&f, entry, NUMBERS, &r))
                    continue;
                of_host = of_host || !isnan(number(&r, "ram_total_gb"));
                if (r.ba <= ba)
                    continue;
                double batches = (double)(r.ba - ba);
                ba = r.ba;
                data += 1e-3 * batches * number(&r, "data_ms");
                step += 1e-3 * batches * number(&r, "step_ms");
                save += 1e-3 * batches * number(&r, "save_ms");
            }
            memmove(bytes, bytes + from, n -= from);
        }
        is_near(data, 6, EXACT, "what is read in parts is read for all of their time");
        is_near(step, 40, EXACT,
                "a step has neither an evaluation nor a save, nor both of them");
        is_near(save, 40, EXACT, "a save is told of once, and only where there is one");
        is_int(of_host, local == 0, "rank %d here %s the machine", local,
               local ? "does not speak of" : "speaks of");
        bench_end(&b);
    }
}

/* While it trains rank 0 tells of algorithms every ten seconds, and when one of them
 * was switched. */
static void
test_algorithms_again(void)
{
    struct bench b;
    bench_begin(&b, 0);
    struct et_algorithm ema = {.type = et_algorithm_find("ema")};
    struct et_algorithm mixup = {.type = et_algorithm_find("mixup"), .off = true};
    struct et_algorithm *both[] = {&ema, &mixup};
    const struct {
        double t;
        bool ema_off, mixup_off, told;
        const char *why;
    } row[] = {
        {109, false, true, false, "nothing is told for nine seconds"},
        {109.5, true, true, true, "that one was switched off is told at once"},
        {109.75, true, true, false, "and once"},
        {110, false, false, true, "so is that one is on again,"},
        {119, false, false, false, "and then nothing for nine seconds"},
        {120, false, false, true, "after ten it is told again"},
        {129.5, false, false, false, "and then nothing until"},
        {130, false, false, true, "ten more have passed"},
    };
    struct told told = {.sink = {.write = take_told}};
    struct et_state s = {.cx = b.cx, .algorithms = both, .n_algorithms = 2};
    struct et_log *log;
    need(b.cx, et_log_new(b.cx, &told.sink, &log));
    at(&b, &s, 100, ET_EVENT_FIT_START, log);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        told.text[0] = '\0';
        ema.off = row[i].ema_off;
        mixup.off = row[i].mixup_off;
        at(&b, &s, row[i].t, ET_EVENT_BATCH_END, log);
        is_int(told.text[0] != '\0', row[i].told, "%s", row[i].why);
    }
    et_log_free(&log);
    bench_end(&b);
}

/* ---- phases ---- */

/* The phase in which the board shows a rank after each event. */
static void
test_phases(void)
{
    static const struct {
        enum et_event event;
        int phase;
    } row[] = {
        {ET_EVENT_BEFORE_DATALOADER, ETD_PHASE_DATA},
        {ET_EVENT_AFTER_DATALOADER, ETD_PHASE_DATA},
        {ET_EVENT_BEFORE_FORWARD, ETD_PHASE_FORWARD},
        {ET_EVENT_BEFORE_BACKWARD, ETD_PHASE_BACKWARD},
        {ET_EVENT_AFTER_TRAIN_BATCH, ETD_PHASE_UPDATE},
        {ET_EVENT_EVAL_BATCH_END, ETD_PHASE_EVALUATION},
        {ET_EVENT_BATCH_CHECKPOINT, ETD_PHASE_CHECKPOINT},
        {ET_EVENT_EVAL_START, ETD_PHASE_EVALUATION},
        {ET_EVENT_EPOCH_CHECKPOINT, ETD_PHASE_CHECKPOINT},
        {ET_EVENT_BEFORE_DATALOADER, ETD_PHASE_DATA},
        {ET_EVENT_FIT_END, ETD_PHASE_CHECKPOINT},
    };
    struct et_ctx *cx = need_ctx();
    struct etd_rank rank = {.cx = cx, .world = 4, .rank = 3, .local = 1};
    struct et_state s = {.cx = cx};
    struct et_callback *c;
    struct et_comm *comm;
    need(cx, etd_board_new(cx, 2, &rank.board));
    need(cx, et_comm_new(cx, &others, NULL, 0, 1, &comm));
    need(cx, etd_rank_watch(&rank, comm, &c));
    const struct etd_board_rank *own = &rank.board->rank[1];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint64_t moves = own->moves;
        need(cx, c->type->run(c, row[i].event, &s, NULL));
        ok(own->phase == row[i].phase && own->moves > moves,
           "after %s the board shows a rank in phase %s, and that it has moved",
           et_event_name(row[i].event), etd_phase_name(row[i].phase));
    }
    ok(rank.board->rank[0].moves == 0,
       "the board does not show that the other rank of this machine has moved");
    et_callback_free(&c);
    et_comm_close(&comm);
    etd_board_free(&rank.board);
    et_ctx_free(&cx);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct etd_rank rank = {.cx = cx, .world = 2};
    struct et_state state = {.cx = cx, .timestamp = {.batch = BEFORE}};
    struct et_callback *callback;
    struct et_comm *comm;
    struct sums said = {.positive = true, .placed = true};
    int pipes[2];
    test_pause();
    test_whole_batches();
    test_algorithms();
    test_parts_of_steps();
    test_algorithms_again();
    test_phases();
    if (pipe(pipes) != 0)
        bail("no pipe");
    need(cx, et_device_open(cx, "ref", 0, 1, &state.dev));
    need(cx, et_graph_new(cx, state.dev, &state.graph));
    need(cx, etd_board_new(cx, 1, &rank.board));
    need(cx, etd_sender_start(cx, pipes[1], 0, &rank.sender));
    need(cx, et_comm_new(cx, &others, NULL, 0, 2, &comm));
    etd_rank_init_control(&rank);
    need(cx, etd_rank_watch(&rank, comm, &callback));
    double begin = eti_monotonic(cx);
    double waited = train(callback, comm, &rank, &state);
    double all = eti_monotonic(cx) - begin;
    read_all(pipes[0], &said);
    is_near(said.wait, waited, EXACT,
            "what finished steps waited for others is all that wait_ms has");
    is_near(said.rest, waited, EXACT, "and all that own_ms has not");
    for (int i = ETI_SPENT_FORWARD; i < ETI_SPENTS; i++) {
        double all_batches = 0;
        for (int ba = 0; ba < BATCHES; ba++)
            all_batches += kernels_of(ba, i);
        is_near(said.part[i], all_batches, EXACT,
                "%s has the kernels of its batches, and of no others", part_names[i]);
    }
    ok(said.save >= 1e-3 * OTHER_MS && said.save < all,
       "save_ms has the time of the one save, in seconds: %g", said.save);
    ok(said.positive, "which is never nothing");
    ok(said.placed, "each record has the epoch and the samples of its batch");
    ok(said.step < all - 1e-3 * (BATCHES * PAUSE_MS + 3 * OTHER_MS),
       "pauses, evaluations and saves are part of no step") ||
        (diag("%g s of %g s with pauses of %g s", said.step, all, rank.held), 0);
    et_callback_free(&callback);
    et_comm_close(&comm);
    etd_sender_stop(&rank.sender);
    etd_board_free(&rank.board);
    close(pipes[0]);
    close(pipes[1]);
    et_graph_free(&state.graph);
    et_device_close(&state.dev);
    et_ctx_free(&cx);
    return done();
}
