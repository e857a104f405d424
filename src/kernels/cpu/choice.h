/* SPDX-License-Identifier: Apache-2.0 */
/* choice.h: which of two ways is the faster, timed once on a machine. */
#ifndef ETUDE_KERNELS_CPU_CHOICE_H
#define ETUDE_KERNELS_CPU_CHOICE_H

#include <stdbool.h>

/* Seconds that a way takes, the second one or the first; 0: it does not run. */
typedef double etk_measure_fn(void *data, bool second);
/* Is the second way the faster? As is kept on disk (cache.h) for KEY, which names all
 * that it depends on; else as MEASURE says, which is kept. False where one does not
 * run, and nothing is kept. */
bool etk_is_second_faster(const char *key, etk_measure_fn *measure, void *data);

#endif
