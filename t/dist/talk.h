/* SPDX-License-Identifier: Apache-2.0 */
/* talk.h: a hub whose clock is the test's, and viewers that say to it what they like,
 * message by message: for what an etd_client never does. */
#ifndef ETUDE_T_DIST_TALK_H
#define ETUDE_T_DIST_TALK_H

#include <stdatomic.h>

#include "core/base/seams.h"
#include "dist/wire/channel.h"
#include "t/dist/house.h"

/* What test and hub share. */
struct talk_desk {
    _Atomic double now;     /* seconds, of both clocks: they grow in talk_pass alone */
    atomic_int turns;       /* of the hub's loop so far, */
    atomic_int syncs;       /* and files that it has synced */
    atomic_bool sync_fails; /* with EIO */
    atomic_int dumpable;    /* what prctl says of the hub */
};
extern struct talk_desk *desk;

struct talk {
    struct house *house;
    struct etd_channel *line;
    bool gone; /* the connection is */
    /* what was heard */
    struct etd_frame f;     /* last, until the next is heard */
    size_t n;               /* its bytes */
    char code[32];          /* of the last REFUSE or BYE */
    int64_t records, bytes; /* of the stream, and of their frames */
    int64_t seq;            /* the last one's, */
    bool whole;             /* whose last frame it was */
    int64_t chunks;         /* of snapshots */
    int64_t spent;          /* messages since it last gave credit by itself */
};

/* A house whose hubs, and whose own context, have that clock; its hub starts, and
 * WATCH, who has every record and more credit than it needs. */
void talk_begin(struct house *h, struct talk *watch);
/* Another hub in place of the last, which is killed; and WATCH again. */
void talk_restart(struct house *h, struct talk *watch);

/* A limit of RELIABILITY.md, and who tests it. */
struct talk_limit {
    const char *section, *limit;
    void (*test)(void);
};
/* The N tests in LIMIT, PAUSE seconds before each, and the end of both. What main
 * returns. */
int talk_run(struct house *h, struct talk *watch, double pause,
             const struct talk_limit *limit, size_t n);

/* Connects, and says nothing. */
struct talk talk_open(struct house *h);
/* Goes without a word. */
void talk_close(struct talk *t);

/* That of the last WELCOME: the run, and its start. */
struct etd_head talk_head(void);
/* Begins a message of KIND to that run and start, with a body of N_KEYS;
 * talk_send ends it. The bytes are the next call's. */
struct etd_out talk_say(enum etd_kind kind, int n_keys);
void talk_send(struct talk *t, struct etd_out *o);
void talk_send_bytes(struct talk *t, const void *bytes, size_t n);
/* HELLO: after record AFTER (-1: with a snapshot; -2: no stream at all), with CREDIT
 * (-1: nothing is said of it), AS somebody (NULL). What answers. */
enum etd_kind talk_hello(struct talk *t, int64_t after, int64_t credit, const char *as);
/* PING with CREDIT, and all that comes up to its PONG, which is returned: or what ended
 * the conversation. */
enum etd_kind talk_ping(struct talk *t, int64_t credit);
/* The next message; ETD_KIND_COUNT: none comes, as the connection is gone. */
enum etd_kind talk_hear(struct talk *t);
/* Is that REFUSE, BYE or the end of the connection? */
bool talk_is_over(enum etd_kind heard);
/* All up to one of KIND, or what ended the conversation. */
enum etd_kind talk_until(struct talk *t, enum etd_kind kind);

/* Tests that A and B, who are served and have said nothing for a second, may say 200
 * messages a second, and no more: they are left. */
void talk_test_rate(struct talk *a, struct talk *b);

/* N records of so many NUMBERS, of 106 bytes each, go to the log, and WATCH has
 * them. */
void talk_tell(struct talk *watch, int n, int numbers);
/* The hub has looked at its clock and its viewers since. */
void talk_settle(const struct house *h);
/* Time goes by, in steps in which WATCH is heard. */
void talk_pass(struct talk *watch, double seconds);

#endif
