/* SPDX-License-Identifier: Apache-2.0 */
/* flight_recorder.h: the last 2,000 things that a rank did, in memory that its
 * supervisor holds as well: it outlives the rank, however that ends, and is read then.
 *
 * Any thread of the rank notes; the supervisor prints when the rank is gone, or does
 * not go on. Noting is an atomic count and some stores. */
#ifndef ETD_FLIGHT_RECORDER_H
#define ETD_FLIGHT_RECORDER_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "etude/comm.h"

enum { ETD_FLIGHT_EVENTS = 2000 };

enum etd_flight_kind {
    ETD_FLIGHT_EVENT,  /* what: enum et_event */
    ETD_FLIGHT_BEGINS, /* a collective; what: enum et_comm_kind */
    ETD_FLIGHT_ENDS,   /* likewise */
    ETD_FLIGHT_FAILS,  /* likewise */
};

struct etd_flight_entry {
    _Atomic uint64_t number; /* of the entry, from 1; 0: it is being written */
    int64_t t_ns;            /* CLOCK_MONOTONIC */
    int64_t ba;              /* finished batches; -1: a collective */
    int16_t kind, what;      /* enum etd_flight_kind */
    int32_t dtype;           /* collective: enum et_dtype */
    uint64_t seq;            /* collective: its number, from 1 */
    int64_t n;               /* collective: elements */
    int64_t step;            /* collective: of its mark */
    int32_t which;           /* likewise */
};

struct etd_flight_recorder {
    _Atomic uint64_t n; /* noted so far; entry i is in slot (i - 1) % the room */
    struct etd_flight_entry entry[ETD_FLIGHT_EVENTS];
};

void etd_flight_event(struct etd_flight_recorder *f, int event, int64_t ba);
void etd_flight_collective(struct etd_flight_recorder *f, enum etd_flight_kind kind,
                           const struct et_comm_look *look);
/* One line for each, the newest last, with the seconds since. */
void etd_flight_print(FILE *to, const struct etd_flight_recorder *f);

/* "all_reduce 57 of 10 f32" in BUF, which it returns; of one of a step's graph
 * "all_reduce 57 of 10 f32 [12.3]": the third in the step behind 12 batches. */
const char *etd_collective_text(const struct et_comm_look *look, char *buf,
                                size_t size);

#endif
