/* SPDX-License-Identifier: Apache-2.0 */
/* scripted.h: a run's processes without training. etd_launch forks a supervisor and its
 * ranks, as for "etude train", and each rank does what a function of the test says. The
 * test itself is the front, and has the clock of all of them: it lies in memory that
 * they share, and stands still unless the test moves it. */
#ifndef ETUDE_T_DIST_SCRIPTED_H
#define ETUDE_T_DIST_SCRIPTED_H

#include <stdatomic.h>
#include <sys/types.h>

#include "dist/run/rank_impl.h"
#include "etude/run.h"

enum { SCRIPTED_RANKS = 3, SCRIPTED_TEXT = 512 };

/* What the processes share. */
struct scripted {
    _Atomic double now;
    _Atomic int looks; /* of the supervisor at the clock */
    _Atomic pid_t supervisor, pid[SCRIPTED_RANKS];
    _Atomic int code;                   /* of the supervisor; -1: it has none yet */
    _Atomic int starts[SCRIPTED_RANKS]; /* how often each has been started */
    _Atomic int stage[SCRIPTED_RANKS];  /* how far each rank says that it is */
    _Atomic int go;                     /* how far they may go */
    _Atomic int got[SCRIPTED_RANKS];    /* a bit for each signal that it has caught */
    _Atomic int saves[SCRIPTED_RANKS];  /* how often that was SIGUSR1 */
    char text[SCRIPTED_RANKS][SCRIPTED_TEXT]; /* what a rank has to tell the test */
};
extern struct scripted *all;
extern struct et_ctx *context;

/* In the test's own folder from now on; XDG_STATE_HOME is there, too. */
void begin_scripted(void);
void end_scripted(void);

/* ---- in a rank ---- */

/* What a rank does; START counts from 1. Returns its exit code. */
typedef int act_fn(struct etd_rank *r, int start);

/* Which of the ranks here this is. */
int own_place(void);
void reach(int stage);
/* Until the test lets ranks go on to STAGE; until rank PLACE is at it. */
void wait_to_go(int stage);
void wait_for_rank(int place, int stage);
/* From now on it is noted in got and saves, and does nothing else. */
void catch_signal(int number);
void wait_for_signal(int number);
/* The run is opened: a new one, unless it is started again. */
struct et_run *open_run(struct etd_rank *r);
/* It has trained STEP batches, and is at the next. */
void train_to(struct etd_rank *r, int64_t step);
/* Its last word; returns CODE. */
int end_rank(struct etd_rank *r, const char *state, int code);

/* ---- in the front ---- */

/* What it has heard. */
struct heard {
    char text[1 << 18]; /* "KIND NUMBER TEXT", a line for each: "line 2 ..." with the
                           level, "raw 1 ..." with the stream */
    int opened;         /* how often the run was, and */
    struct etd_news as; /* where, and behind which records */
    int64_t line_seq, raw_seq; /* those behind which it heard the last of each */
    size_t raw;                /* bytes that rank 0 printed */
    bool over, lost;
    struct etd_end end;
};
extern struct heard heard;
extern struct etd_front *front;

/* Of NPROC ranks that are all there are, in DIRECTORY. */
struct etd_launch launch_of(const char *directory, int nproc);
/* The front comes back from here, and no other process. */
void launch(const struct etd_launch *l, act_fn *act);
/* Seconds pass, in which the supervisor always has time, and a rank that does not catch
 * SIGUSR1 may be sent it. settle: none, but it has looked at all that it looks at. */
void pass(double seconds);
void settle(void);
/* Hears until COME is true of VALUE. WHAT it waits for, for the failure. */
void hear_until(bool (*come)(int), int value, const char *what);
/* Hears what has been said so far. */
void hear_rest(void);
bool are_at(int stage);
bool has_started(int times);
bool is_said(int times); /* ... "it is started again" */
bool is_over(int unused);
/* Until the run has ended, and all its processes have. */
void finish(void);
/* How it ended: "STATE EXIT RANK"; the same of its run.json: "STATE EXIT STARTS". */
const char *ending(void);
const char *facts(const char *directory);
/* The text of NAME in DIRECTORY; "" where there is none. Borrowed until the next. */
const char *text_of(const char *directory, const char *name);

#endif
