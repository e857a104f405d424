/* SPDX-License-Identifier: Apache-2.0 */
/* preview.h: what a long log says before all of it has been read: the newest values
 * first, then the series, coarse and then finer.
 *
 * It is a model as any other, made of the log's first and newest records and of points
 * that its summaries give between them. What only all records tell (times in
 * evaluations, notes, checkpoints) is not in it, so that it stands in for the real one
 * while that is read, and never longer. */
#ifndef ETD_PREVIEW_H
#define ETD_PREVIEW_H

#include "dist/hub/model.h"

struct etd_preview;
/* At DIRECTORY/events.log as it is now. ENOENT, EIO, EFORMAT. */
ET_NODISCARD et_status etd_preview_open(struct et_ctx *cx, const char *directory,
                                        struct etd_preview **out);
void etd_preview_close(struct etd_preview **g);
/* Works for about SECONDS, a little at least. *DONE: there is nothing finer. Statuses
 * of et_events_next; then what there is stays. */
ET_NODISCARD et_status etd_preview_step(struct etd_preview *g, double seconds,
                                        bool *done);
/* The best there is so far, borrowed until the next step; NULL: none yet. */
const struct etd_model *etd_preview_model(const struct etd_preview *g);

#endif
