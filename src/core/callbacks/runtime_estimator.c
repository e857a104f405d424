/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_estimator.c: time/remaining_estimate. Method: remaining.c. */
#include "config.h"

#include <math.h>

#include "core/callbacks/callbacks.h"

struct options {
    int64_t skip_batches;
    int time_unit;
};

static const struct et_option option_table[] = {
    {
        .name = "skip_batches",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, skip_batches),
        .def = "1",
        .min = 1,
        .max = INFINITY,
        .unit = "batches",
        .help = "batches left out at the start, which are slower than the rest",
    },
    {
        .name = "time_unit",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, time_unit),
        .def = "hours",
        .choices = eti_duration_units,
        .help = "unit of what is logged",
    },
    {.name = NULL},
};

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct eti_remaining *r = self->state;
    if (event == ET_EVENT_INIT) {
        r->skip = o->skip_batches;
    } else if (event == ET_EVENT_EVAL_END) {
        eti_remaining_eval_end(r, state);
    } else {
        double left = eti_remaining_batch_end(r, state);
        if (!isnan(left))
            et_log_metric(log, "time/remaining_estimate",
                          left / eti_duration_unit(o->time_unit));
    }
    return ET_OK;
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    return eti_remaining_archive(self->state, self->cx, a);
}

const struct et_callback_class et_callback_runtime_estimator = {
    .info =
        {
            .name = "runtime_estimator",
            .class_name = "RuntimeEstimator",
            .summary = "how long the run will still take",
            .source = "MosaicML Composer, RuntimeEstimator",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_remaining),
    .events = ET_ON(INIT) | ET_ON(BATCH_END) | ET_ON(EVAL_END),
    .run = run,
    .trails = et_callback_trails,
    .archive = archive,
};
