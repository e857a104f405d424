/* SPDX-License-Identifier: Apache-2.0 */
/* earlier.h: the runs of the same recipe that there were before one. */
#ifndef ETI_EARLIER_H
#define ETI_EARLIER_H

#include "core/library/facts.h"
#include "etude/logger.h"

/* The metric that a run is known by: an accuracy of its evaluations, else the first of
 * them; NULL. Borrowed. */
const char *eti_facts_main_metric(const json_t *facts);
/* Its best value of METRIC; NaN. */
double eti_facts_best(const json_t *facts, const char *metric);

/* The best of a run's predecessors. */
struct eti_earlier {
    const json_t *facts;         /* of it; NULL: there is no such run */
    char metric[ET_METRIC_NAME]; /* what it is the best by */
    double best;
    int n; /* runs that it is the best of */
};

/* The runs of the recipe of FACTS that lie beside it, or are known elsewhere. The
 * caller owns it; NULL: none is known. */
json_t *eti_earlier_list(struct et_ctx *cx, const json_t *facts);
/* The best by METRIC of those of LIST that finished, and were started before the run of
 * FACTS. METRIC NULL: what the first of them is known by. OUT->facts is LIST's. */
void eti_earlier_find(const json_t *list, const json_t *facts, const char *metric,
                      struct eti_earlier *out);

#endif
