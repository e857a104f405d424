/* SPDX-License-Identifier: Apache-2.0 */
/* step.h: the parts of a batch's time, as the ranks say them in records of "health",
 * and their series.
 *
 * A model has a series "step/step_ms" of the whole step, and "step/NUMBER" of each part
 * that rank 0 says. Their points come with that rank's records, about one a second, and
 * each is the median over the ranks, in milliseconds. */
#ifndef ETD_STEP_H
#define ETD_STEP_H

#include "dist/hub/model.h"

/* A part that no record has: what own time is beside those that are measured. */
#define ETD_COMPUTE  "compute_ms"
#define ETD_STEP     "step/" /* begins the names of series */
#define ETD_STEP_ALL ETD_STEP "step_ms"

struct etd_step_part {
    const char *number; /* of a rank's health */
    bool is_waiting;    /* for others: what a person may want to end */
    const char *name;
};
extern const struct etd_step_part etd_step_parts[]; /* ends with number NULL */

/* The number of a rank, ETD_COMPUTE among them; NaN: it is not said. */
double etd_step_number(const struct etd_part *rank, const char *number);
/* The median of that over the ranks; NaN: nobody says it. */
double etd_step_median(const struct etd_model *m, const char *number);
/* The label of the part whose series is NAME; "step" for the whole step, NULL for any
 * other series. */
const char *etd_step_name(const char *name);

enum { ETD_STEP_ROOM = 16 };
/* For etd_model_apply: the names of the series that R adds points to, in ENTRY
 * [ETD_STEP_ROOM]. Returns how many; 0: R is no such record. */
int etd_step_name_all(const struct et_record *r, struct et_log_entry *entry);

#endif
