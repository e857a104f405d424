/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h: which runs a sweep has (sweep_plan.c), for the command (sweep.c).
 *
 * A plan is JSON, which is kept in FOLDER/NAME.sweep:
 *
 *     sweep      its name
 *     recipe     as it was called; "module": true for an installed one
 *     folder     --recipe-folder; absent: beside the recipe
 *     words      what all runs are given: ["seed=3", "--alg", "ema"]
 *     keys       those that differ: ["optimizer.lr", ...]
 *     metric     by what runs are judged; absent: by what they are known by
 *     halving    one of so many goes on from each rung; 0: all do
 *     runs       [{"name", "set": ["optimizer.lr=0.1", ...],
 *                 "rung": how many it has passed, "out": true once it is left,
 *                 "failed": true where that is why}...] */
#ifndef ETUDE_CLI_SWEEP_H
#define ETUDE_CLI_SWEEP_H

#include <jansson.h>

#include "cli/cli.h"

enum { SWEEP_MOST = 1000, SWEEP_RUNG = 64 };

/* From the operands and options; NULL on failure, and *EXIT says how to end. The caller
 * owns it, also below. */
json_t *sweep_plan_make(struct cli *c, int *exit);
/* Where the plan of the sweep NAME is, which may be the path of its file. */
const char *sweep_path(const struct cli *c, const char *name, char buf[PATH_MAX]);
/* The plan of a sweep that was begun. */
json_t *sweep_plan_read(struct cli *c, const char *name, int *exit);
/* Keeps it in FOLDER. Returns an exit code. */
int sweep_plan_write(struct cli *c, const char *folder, const json_t *plan);

/* Rungs of the plan; 1: all runs go on to their end. */
int sweep_rungs(const json_t *plan);
/* How many runs are left behind rung K, of 0 .. rungs - 1. */
int sweep_left(const json_t *plan, int rung);
/* --until of rung K, in a run to MAX: "3ep", "0.25dur"; NULL of the last. */
const char *sweep_until(const json_t *plan, int rung, struct et_time max,
                        char buf[SWEEP_RUNG]);

/* The lists that a line of a file, or a value, is divided into: at the commas (or
 * blanks, SEPARATOR ' ') that are in no brackets and quotes. */
json_t *sweep_split(const char *text, char separator);

/* ---- sweep_results.c ---- */

/* A sweep under way: its plan, and the folder of its runs. Both borrowed. */
struct sweep_view {
    struct cli *c;
    json_t *plan;
    const char *folder;
};
json_t *sweep_runs(const struct sweep_view *s); /* borrowed */
const char *sweep_run_name(const json_t *run);
int64_t sweep_run_rung(const json_t *run);
bool sweep_run_is_out(const json_t *run);
const char *sweep_run_directory(const struct sweep_view *s, const json_t *run,
                                char buf[PATH_MAX]);
/* "optimizer.lr=0.1 seed=3". Returns BUF. */
const char *sweep_run_set(const json_t *run, char *buf, size_t size);
/* Its best value so far; NaN without one. METRIC: its name, or "". */
double sweep_run_best(const struct sweep_view *s, const json_t *run,
                      char metric[ET_METRIC_NAME]);

/* A run as it is ranked. */
struct sweep_ranked {
    json_t *run, *facts; /* FACTS owned; NULL: it has not begun */
    double best;
    bool less;
    char metric[ET_METRIC_NAME];
};

/* All runs of the plan, or those that are still in, the best first; *N of them. The
 * caller frees the list with sweep_free_ranking. */
struct sweep_ranked *sweep_rank(const struct sweep_view *s, bool all, int *n);
void sweep_free_ranking(struct sweep_ranked *list, int n);
/* Prints N of them, as a table or as JSON. */
void sweep_print(const struct sweep_view *s, const struct sweep_ranked *list, int n);

#endif
