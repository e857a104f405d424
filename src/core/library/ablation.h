/* SPDX-License-Identifier: Apache-2.0 */
/* ablation.h: what each training method of a recipe bought, from the runs of it that
 * there are: the recipe as it is beside the same without one method, as `etude sweep
 * --leave-one-out` makes them. */
#ifndef ETI_ABLATION_H
#define ETI_ABLATION_H

#include <jansson.h>
#include <stdbool.h>

#include "etude/logger.h"

enum { ETI_ABLATION_METHODS = 32, ETI_ABLATION_NAME = 64 };

/* Runs that differ by their seed alone, by their medians. */
struct eti_ablation_runs {
    int n;          /* 0: no run to tell by */
    double value;   /* of the metric, in the last evaluation */
    double seconds; /* of training; NaN: not known */
};

struct eti_ablation {
    int n;                       /* methods; 0: no run tells */
    char run[ETI_ABLATION_NAME]; /* the newest that has all of them */
    char metric[ET_METRIC_NAME];
    bool less; /* is better */
    /* How many settings of the recipe those runs have otherwise, methods left out, and
     * the name of the first, or "". */
    int n_differ;
    char differs[ETI_ABLATION_NAME];
    struct eti_ablation_runs with;
    struct {
        char name[ETI_ABLATION_NAME];
        struct eti_ablation_runs without;
    } method[ETI_ABLATION_METHODS];
};

/* Of the recipe whose methods are NAME [N] and whose settings are CONFIG (see
 * eti_facts_config; NULL: any), from LIST, facts of runs, the newest first. Only runs
 * count that have finished, to which no method was added while they went on, which
 * learn the same (its model, from its training data), and whose settings are equal but
 * for seeds and one method. Of several such groups that counts whose settings differ
 * least from the recipe's. */
void eti_ablation_find(const json_t *list, const json_t *config,
                       const char *const *name, int n, struct eti_ablation *out);
/* The part of it that is about the method NAME; NULL: no run is without it alone. */
const struct eti_ablation_runs *eti_ablation_of(const struct eti_ablation *a,
                                                const char *name);

/* Does the run of FACTS have the method NAME, and not off? */
bool eti_ablation_has(const json_t *facts, const char *name);

/* How many settings of the recipe CONFIG the run of FACTS has otherwise. Names and
 * seeds do not count, nor what the recipe leaves to be chosen; a method that is on in
 * one of both alone counts once. KEY [MOST] gets the paths of the first: those of
 * methods, "algorithms.NAME", before those of settings. */
int eti_ablation_differences(const json_t *config, const json_t *facts,
                             char (*key)[ETI_ABLATION_NAME], int most);

#endif
