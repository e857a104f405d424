/* SPDX-License-Identifier: Apache-2.0 */
/* rank_impl.h: what rank.c and health.c share. */
#ifndef ETD_RANK_IMPL_H
#define ETD_RANK_IMPL_H

#include "dist/run/rank.h"

struct etd_rank {
    struct et_ctx *cx;
    struct et_control control;
    struct etd_board *board; /* shared with the supervisor */
    struct etd_sender *sender;
    int local, rank, world;
    int to, link; /* the pipe, the socket: its own */
    int lock;     /* the run's, held until the end; -1: not yet */
    int level;    /* of lines that screens show; -1: as the program was called */
    double held;  /* seconds, in all, that people had it paused */
    char resumes[ETD_LAUNCH_DIRECTORY]; /* own: a supervisor's memory goes; "": none */
    FILE *out, *err;
};

void etd_rank_init_control(struct etd_rank *r);

#endif
