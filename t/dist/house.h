/* SPDX-License-Identifier: Apache-2.0 */
/* house.h: a run without a trainer: its directory, its log, and its hub as a process of
 * its own, with the test in the place of the supervisor. */
#ifndef ETUDE_T_DIST_HOUSE_H
#define ETUDE_T_DIST_HOUSE_H

#include <sys/types.h>

#include "core/journal/events.h"
#include "dist/hub/client.h"

struct house {
    struct et_ctx *cx;
    char folder[64];     /* XDG_RUNTIME_DIR, and the run's folder in it */
    char directory[128]; /* of the run */
    char socket[128];    /* where its hub listens */
    const char *name;
    struct eti_events_writer log;
    int64_t ba;
    const struct eti_seams *seams; /* NULL: its hub is etude; else a child of the test
                                      with these */
    pid_t hub;                     /* 0: none */
    int supervisor;                /* our end of the pair; -1 */
    struct etd_follow *follow; /* of house_is_equal: what the log says, up to there */
    /* of house_supervise */
    int64_t rev, applied, commands;
    struct etd_command last; /* that the hub passed on */
    bool holds_answers; /* commands are applied and recorded, but not yet answered */
    char held[1024];    /* the answer to the last one, meanwhile */
    size_t n_held;
    int places; /* how often it said where it listens, or why it does not; */
    char place[128], why[256]; /* and what it said last */
    struct et_mark {
        unsigned char id[ETD_CMD_ID];
        struct etd_answer answer;
    } * mark; /* [applied] */
};

/* Everything under a folder of its own; ends the test where it cannot. */
void house_begin(struct house *h);
void house_end(struct house *h);
/* Starts the hub and waits for its HELLO. False: it ended; *EXIT is how. */
bool house_start(struct house *h, int *exit);
/* Sends it BYE and waits for its end: its exit status. */
int house_stop(struct house *h);
void house_kill(struct house *h);
/* Adds N records of batches, evaluations and lines of text, and writes them down. */
void house_tell(struct house *h, int n);
/* Answers the commands that came: a set with value "bad" is REJECTED, a checkpoint
 * EXPIRED, all else APPLIED once. What the hub says of its place is kept. While answers
 * are held one command may come. */
void house_supervise(struct house *h);
/* Of the hub: bytes in memory that are its own, open descriptors. */
int64_t house_memory(const struct house *h);
int house_descriptors(const struct house *h);

/* A client of it; CONTROL: commands alone. */
struct etd_client *house_client(struct house *h, bool control);
/* Steps all N clients, and supervises, until UNTIL says so. False: it never did, in two
 * minutes, which no machine takes for what comes at all. */
bool house_drive(struct house *h, struct etd_client **c, int n,
                 bool (*until)(struct house *h, struct etd_client **c, int n));
bool all_live(struct house *h, struct etd_client **c, int n);
/* All have every record, and the hub's digest. */
bool all_equal(struct house *h, struct etd_client **c, int n);
/* Is C's digest that of a model made of the log itself? */
bool house_is_equal(struct house *h, struct etd_client *c);

/* A clock for a context's seams, of the whole program: the system's, until it is
 * stopped; then it stands still but for the seconds that the test lets pass, and goes
 * on from there. */
double house_clock(void);
void house_stop_clock(void);
void house_pass(double seconds);
void house_start_clock(void);

#endif
