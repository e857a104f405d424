/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h: records on their way from the training thread to the one that sends them.
 *
 * One thread puts, one takes; neither ever waits for the other: putting is some copies
 * into memory that is there already, and two atomic words. There are two rings in it:
 * 4,096 slots for numbers that come with every batch, and 256 for what is told once
 * (states, evaluations, checkpoints, commands, lines of the log). Taking gives both in
 * the order in which they were put. What finds its ring full is left out and
 * counted. */
#ifndef ETD_RING_H
#define ETD_RING_H

#include "etude/logger.h"

enum {
    ETD_RING_SLOTS = 4096,
    ETD_RING_CRITICAL = 256,
    ETD_RING_NUMBERS = 32, /* of a slot; a record with more takes several */
    ETD_RING_NAMES = 2048, /* different ones; numbers of later names are left out */
    ETD_RING_TEXT = 1024, /* bytes of a record's text, zero included: the rest is cut */
    ETD_RING_LINE = ET_RECORD_COUNT, /* in place of a kind: a line for screens alone */
};

struct etd_ring;
/* Some 5 MB. ENOMEM. */
ET_NODISCARD et_status etd_ring_new(struct et_ctx *cx, struct etd_ring **out);
void etd_ring_free(struct etd_ring **ring);

/* Puts a copy of R; false: it is left out. */
bool etd_ring_put(struct etd_ring *ring, const struct et_record *r);

/* The oldest record into *OUT, with text and numbers borrowed until the next call;
 * false: the ring is empty. */
bool etd_ring_take(struct etd_ring *ring, struct et_record *out);

/* Records left out so far, and numbers whose name was one too many: by any thread. */
uint64_t etd_ring_dropped(const struct etd_ring *ring);
uint64_t etd_ring_nameless(const struct etd_ring *ring);

#endif
