/* SPDX-License-Identifier: Apache-2.0 */
/* board.h: memory that a supervisor shares with its ranks: what is asked of them, and
 * how far each is.
 *
 * A request is written once, by the supervisor, and taken by rank 0, which tells the
 * others (core/trainer/ranks_sync.c): all apply it after the same batch. */
#ifndef ETD_BOARD_H
#define ETD_BOARD_H

#include <stdatomic.h>

#include "dist/run/flight_recorder.h"
#include "etude/control.h"

enum { ETD_BOARD_ROOM = 32 };

/* What a rank is at; word. The first two are no training: nobody waits for progress. */
#define ETD_PHASE_MAP(X)                                                               \
    X(STARTING, "starting")                                                            \
    X(PAUSED, "paused")                                                                \
    X(ENDED, "at its end")                                                             \
    X(DATA, "reading data")                                                            \
    X(FORWARD, "forward")                                                              \
    X(BACKWARD, "backward")                                                            \
    X(UPDATE, "update")                                                                \
    X(EVALUATION, "evaluation")                                                        \
    X(CHECKPOINT, "checkpoint")
enum etd_phase {
#define ETD_PHASE_ENUM(code, word) ETD_PHASE_##code,
    ETD_PHASE_MAP(ETD_PHASE_ENUM)
#undef ETD_PHASE_ENUM
        ETD_PHASE_COUNT
};
const char *etd_phase_name(int phase);

struct etd_board_rank {
    _Alignas(64) _Atomic int64_t step; /* finished batches */
    _Atomic uint64_t moves;            /* goes up with every event of training */
    _Atomic int phase;                 /* enum etd_phase */
    /* The collective under way, or the last one: et_comm_look of the same names. */
    _Atomic uint64_t seq;
    _Atomic int64_t n;
    _Atomic int kind, dtype;
    _Atomic int64_t mark_step;
    _Atomic int mark_which;
    _Atomic uint32_t mark_set;
    _Atomic bool busy;
    struct etd_flight_recorder recorder;
};

struct etd_board {
    size_t bytes;
    int n; /* ranks here */
    _Atomic uint64_t
        asked; /* requests so far; number i is in slot i % ETD_BOARD_ROOM */
    _Atomic uint64_t taken; /* of them, by rank 0: the ranks tell each other */
    struct et_request slot[ETD_BOARD_ROOM];
    _Atomic int state[ETD_BOARD_ROOM]; /* of each: board.c */
    struct etd_board_rank rank[];      /* [n] */
};

/* Memory that processes forked from now on share. ENOMEM. */
ET_NODISCARD et_status etd_board_new(struct et_ctx *cx, int n, struct etd_board **out);
void etd_board_free(struct etd_board **board);
/* Before ranks are started: nothing is asked, and all are starting. */
void etd_board_clear(struct etd_board *b);
/* The supervisor's: asks R of all ranks. False: too much is asked already. */
bool etd_board_ask(struct etd_board *b, const struct et_request *r);
/* Takes request ID back; false: rank 0 has it already, or there is none. */
bool etd_board_withdraw(struct etd_board *b, uint64_t id);
/* Rank 0's, as et_control.next has it. */
bool etd_board_next(struct etd_board *b, struct et_request *out);
/* A rank's: STEP batches are finished; and what it is at now. */
void etd_board_step(struct etd_board *b, int rank, int64_t step);
void etd_board_move(struct etd_board *b, int rank, enum etd_phase phase);
/* It begins a collective, or has ended it. */
void etd_board_collective(struct etd_board *b, int rank,
                          const struct et_comm_look *look);
/* Anyone's: the same of RANK, as far as the board has it. */
struct et_comm_look etd_board_look(const struct etd_board *b, int rank);

#endif
