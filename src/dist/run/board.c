/* SPDX-License-Identifier: Apache-2.0 */
/* board.c: see board.h. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/seams.h"
#include "dist/run/board.h"

const char *
etd_phase_name(int phase)
{
    static const char *const names[] = {
#define ROW(code, word) word,
        ETD_PHASE_MAP(ROW)
#undef ROW
    };
    return phase >= 0 && phase < ETD_PHASE_COUNT ? names[phase] : "?";
}

et_status
etd_board_new(struct et_ctx *cx, int n, struct etd_board **out)
{
    size_t bytes = sizeof **out + (size_t)n * sizeof(struct etd_board_rank);
    void *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *out = NULL;
    if (at == MAP_FAILED)
        return ET_FAIL(cx, ET_ENOMEM, "no memory to share with the ranks: %s",
                       strerror(errno));
    *out = at;
    (*out)->bytes = bytes;
    (*out)->n = n;
    return ET_OK;
}

void
etd_board_free(struct etd_board **board)
{
    if (*board)
        munmap(*board, (*board)->bytes);
    *board = NULL;
}

void
etd_board_clear(struct etd_board *b)
{
    b->asked = b->taken = 0;
    for (int i = 0; i < b->n; i++) {
        struct etd_board_rank *r = &b->rank[i];
        r->step = 0;
        r->phase = ETD_PHASE_STARTING;
        r->seq = 0;
        r->busy = false;
        r->recorder.n = 0;
    }
}

/* What becomes of a request: rank 0 takes it, or the supervisor takes it back, and only
 * one of the two. */
enum state { ASKED, TAKEN, WITHDRAWN };

static bool
settle(struct etd_board *b, uint64_t number, enum state state)
{
    int asked = ASKED;
    return atomic_compare_exchange_strong(&b->state[number % ETD_BOARD_ROOM], &asked,
                                          (int)state);
}

bool
etd_board_ask(struct etd_board *b, const struct et_request *r)
{
    uint64_t asked = b->asked;
    if (asked - b->taken >= ETD_BOARD_ROOM)
        return false;
    b->slot[asked % ETD_BOARD_ROOM] = *r;
    b->state[asked % ETD_BOARD_ROOM] = ASKED;
    atomic_store_explicit(&b->asked, asked + 1, memory_order_release);
    return true;
}

bool
etd_board_withdraw(struct etd_board *b, uint64_t id)
{
    for (uint64_t i = b->taken; i < b->asked; i++)
        if (b->slot[i % ETD_BOARD_ROOM].id == id)
            return settle(b, i, WITHDRAWN);
    return false;
}

bool
etd_board_next(struct etd_board *b, struct et_request *out)
{
    uint64_t taken = atomic_load_explicit(&b->taken, memory_order_relaxed);
    bool got = false;
    while (!got && atomic_load_explicit(&b->asked, memory_order_acquire) != taken) {
        *out = b->slot[taken % ETD_BOARD_ROOM];
        got = settle(b, taken, TAKEN);
        atomic_store_explicit(&b->taken, ++taken, memory_order_release);
    }
    return got;
}

void
etd_board_step(struct etd_board *b, int rank, int64_t step)
{
    atomic_store_explicit(&b->rank[rank].step, step, memory_order_relaxed);
}

void
etd_board_move(struct etd_board *b, int rank, enum etd_phase phase)
{
    struct etd_board_rank *own = &b->rank[rank];
    atomic_store_explicit(&own->phase, (int)phase, memory_order_relaxed);
    atomic_fetch_add_explicit(&own->moves, 1, memory_order_relaxed);
}

void
etd_board_collective(struct etd_board *b, int rank, const struct et_comm_look *look)
{
    struct etd_board_rank *own = &b->rank[rank];
    atomic_store_explicit(&own->seq, look->seq, memory_order_relaxed);
    atomic_store_explicit(&own->kind, (int)look->kind, memory_order_relaxed);
    atomic_store_explicit(&own->dtype, (int)look->dtype, memory_order_relaxed);
    atomic_store_explicit(&own->n, look->n, memory_order_relaxed);
    atomic_store_explicit(&own->mark_step, look->mark.step, memory_order_relaxed);
    atomic_store_explicit(&own->mark_which, look->mark.which, memory_order_relaxed);
    atomic_store_explicit(&own->mark_set, look->mark.set, memory_order_relaxed);
    atomic_store_explicit(&own->busy, look->busy, memory_order_release);
    etd_flight_collective(&own->recorder,
                          look->busy     ? ETD_FLIGHT_BEGINS
                          : look->failed ? ETD_FLIGHT_FAILS
                                         : ETD_FLIGHT_ENDS,
                          look);
}

struct et_comm_look
etd_board_look(const struct etd_board *b, int rank)
{
    const struct etd_board_rank *r = &b->rank[rank];
    return (struct et_comm_look){
        .busy = atomic_load_explicit(&r->busy, memory_order_acquire),
        .seq = r->seq,
        .kind = (enum et_comm_kind)r->kind,
        .dtype = (enum et_dtype)r->dtype,
        .n = r->n,
        .mark = {r->mark_step, r->mark_which, r->mark_set},
    };
}
