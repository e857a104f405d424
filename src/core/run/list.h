/* list.h: runs as people see a list of them: which, in which order, and as text. */
#ifndef ETI_LIST_H
#define ETI_LIST_H

#include "core/run/facts.h"
#include "core/run/filter.h"

/* Those of LIST, an array of facts, that FILTER matches: words stand in what a person
 * sees of a run, keys are those of eti_facts_get. The caller owns it. */
json_t *eti_runs_choose(const struct eti_filter *filter, const json_t *list);
/* LIST by KEY: metrics from the best, others from the least; "-KEY" the other way
 * round. The caller owns it. */
json_t *eti_runs_sort(const json_t *list, const char *key);

/* "*" alive, "+" done, "p" stopped with a checkpoint, "x" failed. */
char eti_run_sign(const json_t *facts);
/* The evaluated metric that a run is known by, and its entry; NULL without. */
const json_t *eti_run_metric(const json_t *facts, const char **name);
/* "6/16ep": in the unit that the run ends in, where that is counted. Returns BUF. */
const char *eti_run_progress(const json_t *facts, char *buf, size_t size);
/* "today 13:56", "11-20 13:56", "2025-11-20": T, when it is TODAY, local. Returns BUF.
 */
const char *eti_run_when(double t, double today, char *buf, size_t size);

#endif
