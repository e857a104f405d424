/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h: the parts of `etude compare`. */
#ifndef ETUDE_CLI_COMPARE_H
#define ETUDE_CLI_COMPARE_H

#include <jansson.h>

#include "cli/cli.h"
#include "core/library/comparison.h"

/* "seconds": what a figure is called in JSON; by enum eti_figure. */
extern const char *const compare_figure_keys[];
/* X of WHAT: "14m51s", "12.50 USD". BUF [SIZE] may be returned. */
const char *compare_figure_text(const struct eti_comparison *k, enum eti_figure what,
                                double x, char *buf, size_t size);
/* The number X, null if it is not known. */
json_t *compare_number(double x);

/* Prints the runs that differ by their seed alone as one. DIFFERENCES: of
 * eti_comparison_differences. Returns an exit code, as below. */
int compare_print_seeds(struct cli *c, const struct eti_comparison *k,
                        const json_t *differences);
/* Draws the Pareto front to --svg. */
int compare_draw(struct cli *c, const struct eti_comparison *k,
                 const json_t *differences);

#endif
