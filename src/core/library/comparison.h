/* SPDX-License-Identifier: Apache-2.0 */
/* comparison.h: runs beside each other: in what they differ, how good they were, and
 * when each came to a target.
 *
 * With a target, what a run cost is the time (or money, energy, samples,
 * processors' time) to it, else to
 * its best value. Time is of the clock, from the start of the run: a pause before a
 * resume counts. Money is that time at a price for an hour. Energy is what its GPUs
 * drew, as their sensors said each second; of a run without any what the processors
 * drew. Processors' time is that of the ranks' processes, evaluations and beginning
 * included: who else works on the machine does not change it. */
#ifndef ETI_COMPARISON_H
#define ETI_COMPARISON_H

#include <stdio.h>

#include "core/config/settings.h"
#include "core/library/facts.h"
#include "etude/logger.h"

enum { ETI_COMPARED_RUNS = 64 };

/* What is to be little. */
enum eti_figure {
    ETI_TIME,
    ETI_COST,
    ETI_ENERGY,
    ETI_SAMPLES,
    ETI_CPU_TIME,
    ETI_FIGURES
};
extern const char *const eti_figure_names[]; /* "time"; ends with a NULL */

struct eti_compared_run {
    json_t *facts; /* borrowed */
    double best;   /* NaN: not known */
    /* Seconds, money, kWh, samples, processors' seconds. NaN: not known; of the target:
     * never. */
    double to_best[ETI_FIGURES], to_target[ETI_FIGURES];
    bool on_front;
    int place; /* where it was named: what is named first is what others are beside */
};

/* CX, RUN[].facts, N, TARGET_TEXT, BY and PRICE are the caller's to set. */
struct eti_comparison {
    struct et_ctx *cx;
    struct eti_compared_run run[ETI_COMPARED_RUNS];
    int n;
    const char *target_text; /* "accuracy>=.765"; NULL: none. Borrowed */
    enum eti_figure by;
    const struct eti_config_price *price; /* NULL: none. Borrowed */
    char metric[ET_METRIC_NAME];          /* "" without one that all have */
    bool less;                            /* is better */
    bool has_target, below, or_equal;
    double target;
};

/* Settles the metric: the target's, or what the first run is known by. EINVAL: the
 * target is none; ENOENT: no run has that metric, or two fit. */
ET_NODISCARD et_status eti_comparison_choose(struct eti_comparison *k);
/* Reads what run I came to; its energy, cost and processors' time only where they are
 * what it goes by, as that reads more of the log. Statuses of et_events_open. */
ET_NODISCARD et_status eti_comparison_judge(struct eti_comparison *k, int i);
/* What R cost, by what the comparison goes by. */
double eti_comparison_cost(const struct eti_comparison *k,
                           const struct eti_compared_run *r);
/* Is there a price? */
bool eti_comparison_has_price(const struct eti_comparison *k);
/* What the run of FACTS cost until its end, or so far in training, by as many ranks as
 * its recipe launches; NaN: not known. */
double eti_run_cost(const json_t *facts, const struct eti_config_price *price);
/* "1.2 kWh", "3.5 Wh"; "12.50 USD". BUF [SIZE] is returned. */
const char *eti_energy_text(double kwh, char *buf, size_t size);
const char *eti_money_text(const struct eti_config_price *price, double money,
                           char *buf, size_t size);
/* Sets on_front of all. */
void eti_comparison_front(struct eti_comparison *k);
/* The keys of the recipes in which not all agree, and their values in the order of the
 * runs, null where one has none; a run's name is no setting. A block that is off in
 * some
 * (`checkpoint: false`) is one row, "off" and "on", and those of its keys in which the
 * others differ. The caller owns it. */
json_t *eti_comparison_differences(const struct eti_comparison *k);
/* A key that says that the runs were evaluated on other data: they are not compared.
 * NULL: no key says so. */
const char *eti_comparison_unlike(const json_t *differences);

/* ---- runs that differ by their seed alone: comparison_alike.c ---- */

struct eti_alike {
    int run[ETI_COMPARED_RUNS], n; /* places in the comparison */
    /* The runs' names without their number where no other runs have that, else the
     * settings that the runs which were named first have not, "ema=off lr=0.1". */
    char label[256];
    /* Medians. NaN: not known; of to_target: most of them never came there. */
    double best, to_best[ETI_FIGURES], to_target[ETI_FIGURES];
};

/* Divides the runs of K, which have been judged, into OUT [ETI_COMPARED_RUNS]; returns
 * into how many. Those with the run that was named first come first, the others by
 * how good they are. DIFFERENCES: of eti_comparison_differences. */
int eti_comparison_alike(const struct eti_comparison *k, const json_t *differences,
                         struct eti_alike *out);
/* What ALIKE cost, by what the comparison goes by. */
double eti_alike_cost(const struct eti_comparison *k, const struct eti_alike *alike);

/* The Pareto front of K as a picture that needs nothing else: a dot for each run,
 * filled on the front, a ring at the median of each of ALIKE [N]. EINVAL where no run
 * has a place in it; EIO. */
ET_NODISCARD et_status eti_comparison_svg(const struct eti_comparison *k,
                                          const struct eti_alike *alike, int n,
                                          FILE *out);

#endif
