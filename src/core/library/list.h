/* SPDX-License-Identifier: Apache-2.0 */
/* list.h: runs as people see a list of them: which, in which order, and as text. */
#ifndef ETI_LIST_H
#define ETI_LIST_H

#include "core/library/facts.h"
#include "core/library/filter.h"
#include "core/library/state.h"

/* Those of LIST, an array of facts, that FILTER matches: words stand in what a person
 * sees of a run, keys are those of eti_facts_get. The caller owns it. */
json_t *eti_runs_choose(const struct eti_filter *filter, const json_t *list);
/* Is every key of FILTER (NULL: none), and SORT (NULL; "-" before it reverses), one
 * that a run of LIST has, or that any could have? EINVAL with a sentence that says what
 * was probably meant. A LIST without runs has nothing against any. */
ET_NODISCARD et_status eti_runs_check(struct et_ctx *cx,
                                      const struct eti_filter *filter, const char *sort,
                                      const json_t *list);
/* LIST by KEY: metrics from the best, others from the least; "-KEY" the other way
 * round. The caller owns it. */
json_t *eti_runs_sort(const json_t *list, const char *key);

/* Of its state; broken where that is not an end and its process is gone. */
enum eti_state_kind eti_run_kind(const json_t *facts);
/* The evaluated metric that a run is known by, and its entry; NULL without. */
const json_t *eti_run_metric(const json_t *facts, const char **name);
/* "6/16ep": in the unit that the run ends in, where that is counted. Returns BUF. */
const char *eti_run_progress(const json_t *facts, char *buf, size_t size);
/* Samples a second that the run told last; of one too short to have told any, of all
 * its training. NaN: not known. */
double eti_run_speed(const json_t *facts);
/* 0 to 1: how much of the run is done, by its batches where it is known how many it
 * has; NaN: not known. */
double eti_run_done(const json_t *facts);
/* "today 13:56", "11-20 13:56", "2025-11-20": T, when it is TODAY, local. Returns
 * BUF. */
const char *eti_run_when(double t, double today, char *buf, size_t size);

#endif
