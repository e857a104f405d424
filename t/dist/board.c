/* SPDX-License-Identifier: Apache-2.0 */
/* board.c: what ranks tell their supervisor through memory that they share, and what
 * becomes of its requests. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dist/run/board.h"
#include "t/tap.h"

enum { RANKS = 3, STEPS = 20000 };
static struct etd_board *b;

static bool
is_look(const struct et_comm_look *a, const struct et_comm_look *b2)
{
    return a->busy == b2->busy && a->seq == b2->seq && a->kind == b2->kind &&
           a->dtype == b2->dtype && a->n == b2->n && a->mark.step == b2->mark.step &&
           a->mark.which == b2->mark.which && a->mark.set == b2->mark.set;
}

static void
test_looks(void)
{
    struct et_comm_look look[RANKS];
    for (int i = 0; i < RANKS; i++) {
        look[i] = (struct et_comm_look){
            .busy = i != 1,
            .seq = 11 + (uint64_t)i,
            .kind = ET_COMM_ALL_REDUCE + (i == 2),
            .dtype = i == 0 ? ET_BF16 : ET_F32,
            .n = 21 + i,
            .mark = {.step = 31 + i, .which = 41 + i, .set = 51 + (uint32_t)i},
        };
        etd_board_collective(b, i, &look[i]);
        etd_board_step(b, i, 61 + i);
        etd_board_move(b, i, ETD_PHASE_DATA + i);
    }
    etd_board_move(b, 1, ETD_PHASE_UPDATE);
    for (int i = 0; i < RANKS; i++) {
        const struct et_comm_look got = etd_board_look(b, i);
        ok(is_look(&got, &look[i]), "rank %d is in the collective that it said", i);
        is_int(b->rank[i].step, 61 + i, "behind as many batches");
        is_int(b->rank[i].moves, i == 1 ? 2 : 1, "each of its events is counted");
        is_int(b->rank[i].phase, i == 1 ? ETD_PHASE_UPDATE : ETD_PHASE_DATA + i,
               "and it is where it said last");
    }
}

static void
test_recorded(void)
{
    static const struct {
        bool busy, failed;
        enum etd_flight_kind kind;
        const char *name;
    } rows[] = {
        {true, false, ETD_FLIGHT_BEGINS, "that a collective begins"},
        {false, false, ETD_FLIGHT_ENDS, "that it ends"},
        {false, true, ETD_FLIGHT_FAILS, "or fails"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_comm_look look = {
            .busy = rows[i].busy, .failed = rows[i].failed, .seq = 71};
        etd_board_collective(b, 0, &look);
        const struct etd_flight_recorder *f = &b->rank[0].recorder;
        const struct etd_flight_entry *e = &f->entry[(f->n - 1) % ETD_FLIGHT_EVENTS];
        ok(e->kind == (int)rows[i].kind && e->seq == 71, "a rank's recorder has %s",
           rows[i].name);
    }
}

static void
test_clear(void)
{
    const struct et_request request = {.id = 1};
    etd_board_collective(b, 1, &(struct et_comm_look){.busy = true, .seq = 9});
    if (!etd_board_ask(b, &request))
        bail("nothing can be asked");
    etd_board_clear(b);
    ok(!etd_board_next(b, &(struct et_request){0}),
       "ranks that are started anew find no old request");
    for (int i = 0; i < RANKS; i++) {
        const struct etd_board_rank *r = &b->rank[i];
        ok(r->step == 0 && r->phase == ETD_PHASE_STARTING && r->seq == 0 && !r->busy &&
               r->recorder.n == 0,
           "rank %d is starting, has done nothing and is in no collective", i);
    }
}

static void
test_names(void)
{
    static const char *const names[] = {
#define WORD(code, word) word,
        ETD_PHASE_MAP(WORD)
#undef WORD
    };
    for (int i = 0; i < ETD_PHASE_COUNT; i++)
        is_str(etd_phase_name(i), names[i], "a phase is called %s", names[i]);
    is_str(etd_phase_name(ETD_PHASE_COUNT), "?", "one of another version has no name");
    is_str(etd_phase_name(-1), "?", "nor has what is none");
}

/* A queue that does what board.h says: ids that were asked, and whether each was
 * withdrawn. */
struct queue {
    uint64_t id[STEPS];
    bool withdrawn[STEPS];
    int first, n; /* of those that rank 0 has not looked at */
};

static bool
withdraws(struct queue *q, uint64_t id)
{
    for (int i = q->first; i < q->n; i++)
        if (q->id[i] == id) {
            bool did = !q->withdrawn[i];
            q->withdrawn[i] = true;
            return did;
        }
    return false;
}

/* The id of the next one; 0: none. */
static uint64_t
next_of(struct queue *q)
{
    while (q->first < q->n && q->withdrawn[q->first])
        q->first++;
    return q->first < q->n ? q->id[q->first++] : 0;
}

static uint64_t state;

/* 0 .. N - 1: Knuth's MMIX generator. */
static int
draw(int n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

static void
test_requests(unsigned seed)
{
    static struct queue q;
    int wrong = 0, refused = 0, taken = 0, withdrawn = 0;
    uint64_t id = 0;
    state = seed;
    for (int i = 0; i < STEPS; i++) {
        struct et_request r = {.id = id + 1};
        /* Phases in which more is asked than taken, and the other way round. */
        int what = draw(10), more = i / 500 % 2 ? 6 : 3;
        if (what < more) {
            bool room = q.n - q.first < ETD_BOARD_ROOM;
            wrong += etd_board_ask(b, &r) != room;
            refused += !room;
            if (room)
                q.id[q.n++] = ++id;
        } else if (what < 7) {
            uint64_t want = next_of(&q);
            bool got = etd_board_next(b, &r);
            wrong += got != (want != 0) || (got && r.id != want);
            taken += got;
        } else {
            uint64_t some = id > 40 ? id - (uint64_t)draw(40) : 1;
            bool want = withdraws(&q, some);
            wrong += etd_board_withdraw(b, some) != want;
            withdrawn += want;
        }
    }
    is_int(wrong, 0,
           "of %d random steps each asks, takes or takes back what a queue would "
           "(seed %u)",
           STEPS, seed);
    ok(refused > 100 && taken > 1000 && withdrawn > 1000,
       "with a full board (%d), requests that are taken (%d) and taken back (%d)",
       refused, taken, withdrawn);
}

int
main(void)
{
    struct et_ctx *cx;
    const char *seed = getenv("ETUDE_BOARD_SEED");
    if (et_ctx_new(&cx) != ET_OK || etd_board_new(cx, RANKS, &b) != ET_OK)
        bail("no board");
    test_looks();
    test_recorded();
    test_clear();
    test_names();
    test_requests(seed ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)time(NULL));
    etd_board_free(&b);
    et_ctx_free(&cx);
    return done();
}
