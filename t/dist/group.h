/* SPDX-License-Identifier: Apache-2.0 */
/* group.h: ranks as processes of this test. */
#ifndef T_DIST_GROUP_H
#define T_DIST_GROUP_H

#include <sys/types.h>

#include "dist/comm/rank_env.h"

enum { GROUP_MOST = 8 };

struct group {
    int world, port;
    pid_t pid[GROUP_MOST];
    int exit[GROUP_MOST]; /* exit code; -n: killed by signal n; -1000: still there */
    int said[GROUP_MOST]; /* pipes: what each rank says */
    char text[GROUP_MOST][2048];
};

/* What a rank does. What it prints to stdout is its text; it returns its exit code. */
typedef int group_fn(struct et_ctx *cx, struct et_comm *c, void *data);

/* Is there anything that ranks could talk through? */
bool group_possible(void);
/* A port of 127.0.0.1 at which nobody listens, as long as the socket returned is
 * open. */
int group_hold_port(int *port);
/* Starts WORLD processes with the environment of ranks; each opens its communicator
 * with TIMEOUT_S and calls FN. One that finds no others says why, and exits with
 * 100. */
void group_start(struct group *g, int world, int timeout_s, group_fn *fn, void *data);
/* The same, but no communicator is opened: C is NULL. */
void group_start_bare(struct group *g, int world, int timeout_s, group_fn *fn,
                      void *data);
/* Waits for all but rank BUT (-1: none is meant), MOST_S seconds; those that are still
 * there are killed. */
void group_wait(struct group *g, double most_s, int but);
/* Both. True if all ended with 0. */
bool group_run(int world, group_fn *fn, void *data);

#endif
