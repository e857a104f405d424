/* SPDX-License-Identifier: Apache-2.0 */
/* limit_eval_steps.c: evaluations within an epoch see the first batches only.
 *
 * Metrics are then those of num_eval_steps batches. With limit_intermediate_only, the
 * evaluation at an epoch's end, and the one at the run's, is whole. Evaluations outside
 * of fit always are. Source: spec/trainer.md 14.6, LimitEvalSteps. */
#include "config.h"

#include "core/callbacks/callbacks.h"

struct options {
    int64_t num_eval_steps;
    bool limit_intermediate_only;
};

static const struct et_option option_table[] = {
    {
        .name = "num_eval_steps",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_eval_steps),
        .min = 1,
        .max = -1,
        .flags = ET_OPT_REQUIRED,
        .unit = "batches",
        .help = "of an evaluation, the others are left out",
    },
    {
        .name = "limit_intermediate_only",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, limit_intermediate_only),
        .def = "true",
        .help = "not at the end of an epoch or of the run",
    },
    {.name = NULL},
};

struct limit {
    bool ended;      /* the evaluation under way is the run's last */
    bool standalone; /* it is outside of fit */
};

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct limit *own = self->state;
    const struct et_timestamp *ts = &s->timestamp;
    (void)log;
    if (event == ET_EVENT_FIT_START || event == ET_EVENT_FIT_END) {
        own->ended = event == ET_EVENT_FIT_END;
        own->standalone = false; /* one that has failed had no end */
    } else if (event != ET_EVENT_EVAL_BATCH_END) {
        own->standalone = event == ET_EVENT_EVAL_STANDALONE_START;
    } else {
        /* 0: the epoch has ended; train_len: its last batch has */
        bool within =
            !own->ended && ts->batch_in_epoch > 0 && ts->batch_in_epoch != s->train_len;
        self->enough = !own->standalone && (within || !o->limit_intermediate_only) &&
                       s->eval_timestamp.batch >= o->num_eval_steps;
    }
    return ET_OK;
}

const struct et_callback_class et_callback_limit_eval_steps = {
    .info =
        {
            .name = "limit_eval_steps",
            .class_name = "LimitEvalSteps",
            .summary = "evaluations within an epoch see the first batches only",
            .source = "pytorch-accelerated, LimitEvalStepsCallback",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct limit),
    .acts = true,
    .events = ET_ON(FIT_START) | ET_ON(FIT_END) | ET_ON(EVAL_BATCH_END) |
              ET_ON(EVAL_STANDALONE_START) | ET_ON(EVAL_STANDALONE_END),
    .run = run,
};
