/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h: what a supervisor decides: when a run is started again, when it hangs, how
 * long a stop may take, what it came to. Functions of what is known, without processes
 * and clocks: t/dist/verdict.c has their rules as tables. RELIABILITY.md section 4. */
#ifndef ETD_VERDICT_H
#define ETD_VERDICT_H

#include <stdint.h>

#include "dist/run/launch.h"

struct etd_sup_rank;

enum { ETD_BUDGET = 3, ETD_REFILL_STEPS = 200, ETD_SETTLED_STEPS = 200 };

/* ---- a crash ---- */

/* The crashes of a run, and how many of them it may still have. */
struct etd_crashes {
    int left;
    int64_t furthest; /* step that one came at; from there the budget is counted */
    int64_t step[3];  /* of the last ones, the newest first; -1: none */
};
enum etd_again {
    ETD_AGAIN, /* the group is started again */
    ETD_SPENT, /* it has been often enough */
    ETD_LOOP,  /* that was the third crash at one step */
};
void etd_crashes_init(struct etd_crashes *c);
/* Counts a crash at STEP. AGAIN: after *SECONDS. */
enum etd_again etd_crashes_add(struct etd_crashes *c, int64_t step, double *seconds);

/* ---- a hang ---- */

/* How fast a run goes, as it is looked at now and then. */
struct etd_steps {
    double at;      /* when it was looked at last; 0: it has not been */
    int64_t first;  /* steps when there were some for the first time */
    int64_t last;   /* steps now; a run that goes on begins with those before */
    double longest; /* seconds of a step, on the mean between two looks */
};
void etd_steps_look(struct etd_steps *s, double t, int64_t step);
/* Seconds without progress that are a hang: as ASKED by the recipe or command line; 0,
 * by neither: 5 minutes, and after 200 steps more 10 of the longest, but at least 60
 * s. */
double etd_hang_seconds(double asked, const struct etd_steps *s);

/* Of N ranks in a run that hangs, the one to blame; LONGEST has stood still for too
 * long. In this order: a process that is stopped; a rank in no collective while others
 * wait in theirs; the rank with fewer collectives; of ranks that wait in different
 * collectives, the one with less company (it has left one out, or has gone on further
 * since); and the one that has gone on the least. */
int etd_rank_behind(const struct etd_sup_rank *rank, int n, int longest);
/* A rank that waits in a collective that BEHIND is not in; -1: none does. */
int etd_rank_that_waits(const struct etd_sup_rank *rank, int n, int behind);

/* ---- a stop ---- */

/* Seconds after which what is still there is killed; 0: never. */
struct etd_patience {
    double first; /* where the run is starting, if it has not begun by then */
    double later; /* and if it has */
};
/* After the signal number STOPS that ends a run; GRACE as in etd_launch. */
struct etd_patience etd_stop_patience(int stops, double grace, bool starting);

/* ---- the end ---- */

/* What is known of a run that a rank has failed in, when no rank is there any more. */
struct etd_failure {
    int status;      /* of the rank that was the first to fail: waitpid's */
    int stop_signal; /* the first that was to end the run; 0: none came */
    bool killed;     /* on request */
    bool no_rank;    /* one could not be started */
    bool hung;
    bool is_open;       /* its run directory is, and */
    bool has_directory; /* it had one */
    bool again;         /* it was being started again, and had not begun to train */
    const char *why;
};
/* Did a process end by a fault of its own? STATUS: waitpid's. Signals that end runs are
 * no such fault. */
bool etd_is_crash(int status);
/* How that ends: state, exit, said and why. */
struct etd_end etd_failure_end(const struct etd_failure *f);
/* N ranks have ended by themselves: the one whose end is the run's. */
int etd_rank_that_counts(const struct etd_sup_rank *rank, int n);

#endif
