/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c: see verdict.h. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "dist/run/supervisor.h"
#include "dist/run/verdict.h"

/* Exit codes (UX.md section 2). */
enum { FAILED = 1, HUNG = 5, UNAVAILABLE = 69, PREEMPTED = 75, SIGNALLED = 128 };
static const double LEAST_SECONDS = 60, DEFAULT_SECONDS = 300;
static const double GRACE_MORE = 2, START_SECONDS = 5;

/* ---- a crash ---- */

void
etd_crashes_init(struct etd_crashes *c)
{
    *c = (struct etd_crashes){.left = ETD_BUDGET, .step = {-1, -1, -1}};
}

enum etd_again
etd_crashes_add(struct etd_crashes *c, int64_t step, double *seconds)
{
    static const double waits[ETD_BUDGET] = {4, 2, 1}; /* by what is left */
    *seconds = 0;
    if (step - c->furthest >= ETD_REFILL_STEPS)
        c->left = ETD_BUDGET;
    if (step > c->furthest)
        c->furthest = step;
    c->step[2] = c->step[1];
    c->step[1] = c->step[0];
    c->step[0] = step;
    if (c->step[1] == step && c->step[2] == step)
        return ETD_LOOP;
    if (c->left == 0)
        return ETD_SPENT;
    *seconds = waits[--c->left];
    return ETD_AGAIN;
}

/* ---- a hang ---- */

void
etd_steps_look(struct etd_steps *s, double t, int64_t step)
{
    if (s->at > 0 && step <= s->last)
        return;
    if (s->last > 0) {
        double mean = (t - s->at) / (double)(step - s->last);
        s->longest = mean > s->longest ? mean : s->longest;
    } else {
        s->first = step;
    }
    s->last = step;
    s->at = t;
}

double
etd_hang_seconds(double asked, const struct etd_steps *s)
{
    if (asked > 0)
        return asked;
    if (s->last - s->first < ETD_SETTLED_STEPS || s->longest <= 0)
        return DEFAULT_SECONDS;
    double some = 10 * s->longest;
    return some < LEAST_SECONDS     ? LEAST_SECONDS
           : some < DEFAULT_SECONDS ? some
                                    : DEFAULT_SECONDS;
}

/* ---- who is behind ---- */

static bool
is_same(const struct et_comm_look *a, const struct et_comm_look *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->n == b->n &&
           a->mark.step == b->mark.step && a->mark.which == b->mark.which &&
           a->mark.set == b->mark.set;
}

/* Is RANK in collective C? */
static bool
is_in(const struct etd_sup_rank *rank, const struct et_comm_look *c)
{
    return rank->look.busy && rank->look.seq == c->seq && is_same(&rank->look, c);
}

/* Ranks that are in the collective that rank I is in, itself included. */
static int
company(const struct etd_sup_rank *rank, int n, int i)
{
    int with = 0;
    for (int k = 0; k < n; k++)
        with += is_in(&rank[k], &rank[i].look);
    return with;
}

/* Is rank A the one to blame, rather than B? */
static bool
is_behind(const struct etd_sup_rank *rank, int n, int a, int b)
{
    const struct et_comm_look *la = &rank[a].look, *lb = &rank[b].look;
    uint64_t ma = rank[a].moves, mb = rank[b].moves;
    if (rank[a].stopped != rank[b].stopped)
        return rank[a].stopped;
    if (la->busy != lb->busy)
        return lb->busy;
    if (la->busy && la->seq != lb->seq)
        return la->seq < lb->seq;
    if (la->busy && !is_same(la, lb)) {
        int ca = company(rank, n, a), cb = company(rank, n, b);
        return ca != cb ? ca < cb : ma != mb ? ma > mb : a > b;
    }
    return ma < mb;
}

int
etd_rank_behind(const struct etd_sup_rank *rank, int n, int longest)
{
    int behind = longest;
    for (int i = 0; i < n; i++)
        if (i != behind && rank[i].pid > 0 && is_behind(rank, n, i, behind))
            behind = i;
    return behind;
}

int
etd_rank_that_waits(const struct etd_sup_rank *rank, int n, int behind)
{
    for (int i = 0; i < n; i++)
        if (i != behind && rank[i].look.busy && !is_in(&rank[behind], &rank[i].look))
            return i;
    return -1;
}

/* ---- a stop ---- */

/* Before the first batch there is nothing to save, and a rank may not yet take the
 * signal. */
struct etd_patience
etd_stop_patience(int stops, double grace, bool starting)
{
    double seconds = stops > 1 ? 1 : grace > 0 ? grace + GRACE_MORE : 0;
    bool is_start = stops == 1 && starting;
    return (struct etd_patience){
        .first = is_start ? START_SECONDS : seconds,
        .later = seconds,
    };
}

/* ---- the end ---- */

/* The signal that has ended a process, or for which it has ended itself; 0: none. */
static int
signal_of(int status)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    return WIFEXITED(status) && WEXITSTATUS(status) > SIGNALLED
               ? WEXITSTATUS(status) - SIGNALLED
               : 0;
}

bool
etd_is_crash(int status)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (signal_of(status) == faults[i])
            return true;
    return false;
}

static void
set_end(struct etd_end *end, int exit, const char *state, const char *why)
{
    end->exit = exit;
    snprintf(end->state, sizeof end->state, "%s", state);
    snprintf(end->why, sizeof end->why, "%s", why);
}

struct etd_end
etd_failure_end(const struct etd_failure *f)
{
    struct etd_end end = {.rank = -1};
    bool crashed = etd_is_crash(f->status) && !f->hung; /* those are sent SIGABRT */
    bool signalled = f->stop_signal && signal_of(f->status) && !crashed;
    const char *failed = f->has_directory ? "failed" : "";
    if (signalled && f->again) /* what there was to save has been */
        set_end(&end, PREEMPTED, "preempted", "");
    else if (signalled || f->killed) /* asked to end, and it did not save */
        set_end(&end, SIGNALLED + (f->stop_signal ? f->stop_signal : SIGTERM),
                f->has_directory ? "killed" : "",
                "the run was ended without a checkpoint of its last batch");
    else if (f->no_rank)
        set_end(&end, UNAVAILABLE, failed, f->why);
    else if (f->hung)
        set_end(&end, HUNG, "hung", f->why);
    else if (!f->is_open && WIFEXITED(f->status)) {
        set_end(&end, WEXITSTATUS(f->status), failed, f->why);
        end.said = true; /* before it began, and it has said why */
    } else
        set_end(&end, FAILED, failed, f->why);
    return end;
}

/* Does EXIT tell less of a run than OTHER, of a rank behind it? A rank whose peer has
 * ended fails, and the peer has the reason. */
static bool
says_less(int exit, int other)
{
    const bool has_reason = other > FAILED && other < SIGNALLED && other != PREEMPTED;
    return (exit == 0 && other != 0) || (exit == FAILED && has_reason);
}

int
etd_rank_that_counts(const struct etd_sup_rank *rank, int n)
{
    int counts = 0;
    for (int i = 1; i < n; i++)
        if (says_less(rank[counts].end.exit, rank[i].end.exit))
            counts = i;
    return counts;
}
