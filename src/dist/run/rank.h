/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h: a rank's end of its supervisor. */
#ifndef ETD_RANK_H
#define ETD_RANK_H

#include <stdio.h>

#include "dist/run/board.h"
#include "dist/run/launch.h"
#include "dist/run/sender.h"
#include "etude/comm.h"

struct etd_rank;

int etd_rank_number(const struct etd_rank *r);
/* Ranks of the run. */
int etd_rank_world(const struct etd_rank *r);
/* How often the group has been started before; then there is a run to go on with, in
 * the directory that this gives. NULL: it is the first time, or there was no run
 * yet. */
const char *etd_rank_resumes(const struct etd_rank *r);

/* Asks for the run directory: makes it, or goes on in RESUMED (NULL: a new one). Only
 * what rank 0 asks with counts. The run is joined: see et_run_join. What the supervisor
 * could not do is the error that stands. */
struct etd_rank_open {
    const char *resumed, *resolved, *name;
    int threads;
};
ET_NODISCARD et_status etd_rank_open(struct et_ctx *cx, struct etd_rank *r,
                                     const struct etd_rank_open *o,
                                     struct et_run **out);
/* Streams of text for whoever started the run, shown when it has ended. Borrowed. */
FILE *etd_rank_out(struct etd_rank *r);
FILE *etd_rank_err(struct etd_rank *r);
/* A line of the log for screens. */
void etd_rank_line(struct etd_rank *r, enum et_log_level level, const char *text);
/* What "loglevel" has asked for: enum et_log_level; -1: nothing. */
int etd_rank_level(const struct etd_rank *r);
/* How it ended: the last word. */
void etd_rank_end(struct etd_rank *r, const struct etd_end *end);
void etd_rank_free(struct etd_rank **r);

/* What people ask, from the board. */
struct et_control *etd_rank_control(struct etd_rank *r);
/* "set" and "algo" of the log of the run in DIRECTORY: *OUT, N of them, free with
 * et_free. A log that cannot be read has none. */
ET_NODISCARD et_status etd_rank_replay(struct et_ctx *cx, const char *directory,
                                       struct et_request **out, int *n);
/* A callback, the caller's, that says what the rank is at, and each second how it is:
 * health.c. COMM may be NULL. */
ET_NODISCARD et_status etd_rank_watch(struct etd_rank *r, struct et_comm *comm,
                                      struct et_callback **out);

/* launch.c: for the child that will be rank NUMBER of those here. The descriptors are
 * its own from then on; TO is the pipe, LINK the socket. RESUMES, copied: the directory
 * of the run that there is, or "". */
ET_NODISCARD et_status etd_rank_new(struct et_ctx *cx, const struct etd_launch *l,
                                    struct etd_board *board, int number, int to,
                                    int link, const char *resumes,
                                    struct etd_rank **out);

#endif
