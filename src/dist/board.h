/* board.h: memory that a supervisor shares with its ranks: what is asked of them, and
 * how far each is.
 *
 * A request is written once, by the supervisor, and applied by every rank after the
 * same batch: rank 0, when it first sees it after batch b, says "after b + 1", and no
 * rank ends batch b + 1 without rank 0, so that all have read that by then. A rank
 * alone applies it at once. */
#ifndef ETD_BOARD_H
#define ETD_BOARD_H

#include <stdatomic.h>

#include "etude/control.h"

enum { ETD_BOARD_ROOM = 32, ETD_BOARD_UNKNOWN = -1 };

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
    _Atomic uint64_t moves;            /* goes up with every phase of every step */
    _Atomic int phase;                 /* enum etd_phase */
    _Atomic uint64_t taken;            /* requests applied */
};

struct etd_board_slot {
    struct et_request request;
    _Atomic int64_t
        after; /* finished batches; ETD_BOARD_UNKNOWN: rank 0 has not said */
};

struct etd_board {
    size_t bytes;
    int n; /* ranks here */
    _Atomic uint64_t
        asked; /* requests so far; number i is in slot i % ETD_BOARD_ROOM */
    struct etd_board_slot slot[ETD_BOARD_ROOM];
    struct etd_board_rank rank[]; /* [n] */
};

/* Memory that processes forked from now on share. ENOMEM. */
ET_NODISCARD et_status etd_board_new(struct et_ctx *cx, int n, struct etd_board **out);
void etd_board_free(struct etd_board **board);
/* Before ranks are started: nothing is asked, and all are starting. */
void etd_board_clear(struct etd_board *b);
/* The supervisor's: asks R of all ranks. False: too much is asked already. */
bool etd_board_ask(struct etd_board *b, const struct et_request *r);
/* A rank's, as et_control.next has it. */
bool etd_board_next(struct etd_board *b, int rank, int64_t step,
                    struct et_request *out);
void etd_board_move(struct etd_board *b, int rank, enum etd_phase phase);

#endif
