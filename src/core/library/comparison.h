/* SPDX-License-Identifier: Apache-2.0 */
/* comparison.h: runs beside each other: in what they differ, how good they were, and
 * when each came to a target.
 *
 * With a target, what a run cost is the time (or money, energy, samples) to it, else to
 * its best value. Time is of the clock, from the start of the run: a pause before a
 * resume counts. Money is that time at a price for an hour. Energy is what its GPUs
 * drew, as their sensors said each second; of a run without any what the processors
 * drew. */
#ifndef ETI_COMPARISON_H
#define ETI_COMPARISON_H

#include "core/config/settings.h"
#include "core/library/facts.h"
#include "etude/logger.h"

enum { ETI_COMPARED_RUNS = 64 };

/* What is to be little. */
enum eti_figure { ETI_TIME, ETI_COST, ETI_ENERGY, ETI_SAMPLES, ETI_FIGURES };
extern const char *const eti_figure_names[]; /* "time"; ends with a NULL */

struct eti_compared_run {
    json_t *facts; /* borrowed */
    double best;   /* NaN: not known */
    /* Seconds, money, kWh, samples. NaN: not known; of the target: never. */
    double to_best[ETI_FIGURES], to_target[ETI_FIGURES];
    bool on_front;
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
/* Reads what run I came to; its energy and cost only where they are what it goes by,
 * as that reads more of the log. Statuses of et_events_open. */
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

#endif
