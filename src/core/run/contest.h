/* contest.h: runs beside each other: in what they differ, how good they were, and when
 * each came to a target.
 *
 * With a target, how quick a run is is the time (or samples) to it, else to its best
 * value. Time is of the clock, from the start of the run: a pause before a resume
 * counts. */
#ifndef ETI_CONTEST_H
#define ETI_CONTEST_H

#include "core/run/facts.h"
#include "etude/logger.h"

enum { ETI_CONTENDERS = 64 };

struct eti_contender {
    json_t *facts;                           /* borrowed */
    double best, best_seconds, best_samples; /* NaN: not known */
    double seconds, samples;                 /* to the target; NaN: never */
    bool on_front;
};

/* CX, RUN[].facts, N, TARGET_TEXT and BY_SAMPLES are the caller's to set. */
struct eti_contest {
    struct et_ctx *cx;
    struct eti_contender run[ETI_CONTENDERS];
    int n;
    const char *target_text;     /* "accuracy>=.765"; NULL: none. Borrowed */
    bool by_samples;             /* quick is who needs few samples, not little time */
    char metric[ET_METRIC_NAME]; /* "" without one that all have */
    bool less;                   /* is better */
    bool has_target, below, or_equal;
    double target;
};

/* Settles the metric: the target's, or what the first run is known by. EINVAL: the
 * target is none; ENOENT: no run has that metric, or two fit. */
ET_NODISCARD et_status eti_contest_choose(struct eti_contest *k);
/* Reads what run I came to. Statuses of et_events_open. */
ET_NODISCARD et_status eti_contest_judge(struct eti_contest *k, int i);
/* What R cost: seconds, or samples. */
double eti_contest_cost(const struct eti_contest *k, const struct eti_contender *r);
/* Sets on_front of all. */
void eti_contest_front(struct eti_contest *k);
/* The keys of the recipes in which not all agree, and their values in the order of the
 * runs, null where one has none; a run's name is no setting. The caller owns it. */
json_t *eti_contest_differences(const struct eti_contest *k);
/* A key that says that the runs were evaluated on other data: they are no contest.
 * NULL: there is none. */
const char *eti_contest_unlike(const json_t *differences);

#endif
