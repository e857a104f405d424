/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h: schedules: what the learning rate is multiplied by, now.
 *
 * A scheduler is a pure function of where the run is and how long it will be; it keeps
 * no state, so plots and resumption are free. The rate of update k (from 0) is
 * initial_lr times the product of all schedulers at the timestamp with k finished
 * batches: no lag.
 *
 * A schedule of one's own is a struct et_scheduler_class: examples/plugin_schedule.c.
 *
 * All times are resolved by et_time_resolve at every evaluation; "t" below is the
 * timestamp's counter in the unit that results.
 *
 * Source: MosaicML Composer, composer/optim/scheduler.py. Differs: several schedulers
 * multiply (there the last one wins); with scale_warmup the scaled length holds in the
 * test for warmup too; polynomial stays at alpha_f after t_max. */
#ifndef ETUDE_SCHED_H
#define ETUDE_SCHED_H

#include "etude/option.h"
#include "etude/time.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_scheduler_class {
    struct et_component info;
    const char *alias; /* another name recipes may use; NULL = none */

    /* The multiplier at TS in a run of LENGTH. EINVAL when an option cannot be resolved
     * or makes no schedule. */
    et_status (*alpha)(struct et_ctx *cx, const void *options,
                       const struct et_timestamp *ts,
                       const struct et_run_length *length, double *out);

    /* Called once before a run: refuses options that alpha could live with but a person
     * did not mean, and warns. (optional) */
    et_status (*check)(struct et_ctx *cx, const void *options,
                       const struct et_run_length *length);
};

/* How often a rate changes: the option step_every of each scheduler. By epoch it is,
 * for the whole epoch, what it was for the first update. */
enum et_step_every { ET_STEP_BATCH = 0, ET_STEP_EPOCH = 1 };

/* The options of every scheduler begin with these, as the member `common`. */
struct et_scheduler_options {
    int step_every; /* enum et_step_every */
};
extern const char *const et_step_every_names[]; /* NULL-terminated */

/* Their row in the option table of a scheduler whose options are a T (struct
 * my_options). */
/* clang-format off */
#define ET_SCHEDULER_OPTIONS(T)                                                        \
    {                                                                                  \
        .name = "step_every",                                                          \
        .type = ET_OPT_ENUM,                                                           \
        .offset = offsetof(T, common.step_every),                                      \
        .def = "batch",                                                                \
        .choices = et_step_every_names,                                                \
        .help = "how often the rate is set",                                           \
    }
/* clang-format on */
/* The units of a row for a time in a schedule, which is counted and not timed: all but
 * seconds. */
#define ET_SCHEDULE_UNITS ((1u << ET_TIME_UNIT_COUNT) - 1 - (1u << ET_TIME_SECOND))

/* A scheduler of a recipe. OPTIONS is a struct of type->info.options_size bytes, filled
 * by et_options_init and et_options_set; borrowed. */
struct et_scheduler {
    const struct et_scheduler_class *type;
    const void *options;
};

/* The class of that name or alias; NULL when there is none. */
const struct et_scheduler_class *et_scheduler_find(const char *name);
/* All classes, *N of them; borrowed, for ever. */
const struct et_scheduler_class *const *et_scheduler_list(int *n);

/* The product of N multipliers at TS, each by its step_every; 1 for none. Call before
 * each update: nothing is kept from one call to the next, so a resumed run has the
 * rates of one that was never stopped. */
ET_NODISCARD et_status et_schedule_alpha(struct et_ctx *cx,
                                         const struct et_scheduler *list, int n,
                                         const struct et_timestamp *ts,
                                         const struct et_run_length *length,
                                         double *out);
/* Runs every check, and alpha at the start, so that what is wrong is said before the
 * first batch. */
ET_NODISCARD et_status et_schedule_check(struct et_ctx *cx,
                                         const struct et_scheduler *list, int n,
                                         const struct et_run_length *length);

#ifdef __cplusplus
}
#endif
#endif
