/* SPDX-License-Identifier: Apache-2.0 */
/* curve.h: the learning rate over a run, before it is run: what `explain` draws. */
#ifndef ETI_CURVE_H
#define ETI_CURVE_H

#include "etude/recipe.h"
#include "etude/sched.h"

enum { ETI_CURVE_POINTS = 1 << 16 }; /* updates looked at, of a longer run evenly */

struct eti_curve {
    struct et_ctx *cx;
    int64_t batches;   /* updates of the run */
    int64_t per_epoch; /* batches of an epoch; -1 = not known, nor needed */
    /* The rate is set at the start of each epoch, as all schedules step so; else of
     * each batch. */
    bool by_epoch;
    int n;          /* points: at most ETI_CURVE_POINTS */
    int64_t *batch; /* [n] update, from 0 to batches - 1 */
    double *rate;   /* [n] of that update */
};

/* The run of RECIPE, whose checks have passed. Opens the training data where the length
 * of an epoch is needed. EINVAL where the run's length in batches cannot be known; the
 * data's own statuses. Release *OUT in any case. */
ET_NODISCARD et_status eti_curve_of_recipe(struct et_ctx *cx,
                                           const struct et_recipe *recipe,
                                           struct eti_curve *out);
/* One schedule, of rate 1, over EPOCHS epochs of PER_EPOCH batches of one sample. */
ET_NODISCARD et_status eti_curve_of_schedule(struct et_ctx *cx,
                                             const struct et_scheduler *schedule,
                                             int64_t epochs, int64_t per_epoch,
                                             struct eti_curve *out);
void eti_curve_release(struct eti_curve *curve);

#endif
