/* SPDX-License-Identifier: Apache-2.0 */
/* early_stopping.c: ends a run after so many epochs in a row without improvement.
 *
 *     at the end of an epoch in which the metric was evaluated, with its last value:
 *     better than best by more than threshold:  best <- value, n <- 0
 *     otherwise:                                n <- n + 1, stop when n >= patience
 *
 * early_stopper, which is Composer's, goes on for one more: there the epochs since the
 * best must be more than its patience.
 *
 * Source: spec/trainer.md 14.6, EarlyStopping. Differs: options without the prefix
 * early_stopping_; watch_metric is a name of GLOSSARY.md, in full or its last part;
 * greater_is_better may be left to the name; an epoch that had no evaluation is not
 * judged; any number is an improvement on a NaN. */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "core/callbacks/callbacks.h"

struct options {
    struct eti_pick pick;
    int64_t patience;
    double threshold;
    bool reset_on_train;
};

static const struct et_option option_table[] = {
    ETI_PICK_OPTIONS(struct options, pick),
    {
        .name = "patience",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, patience),
        .def = "1",
        .min = 1,
        .max = 1 << 30,
        .unit = "epochs",
        .help = "without improvement, in a row, that end the run",
    },
    {
        .name = "threshold",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, threshold),
        .def = "0.01",
        .min = 0,
        .max = HUGE_VAL,
        .help = "a value that is better by no more than this is no improvement",
    },
    {
        .name = "reset_on_train",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, reset_on_train),
        .def = "true",
        .help = "a further call of fit forgets the best value of those before",
    },
    {.name = NULL},
};

struct stopper {
    char metric[ET_METRIC_NAME]; /* its full name, once seen */
    bool any;                    /* there is a best value */
    bool fresh;                  /* value is of an evaluation not judged yet */
    double best, value;
    int64_t n;   /* epochs in a row without improvement */
    bool fitted; /* in this process */
};

static et_status
evaluated(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct stopper *st = self->state;
    (void)log;
    if (!s->stop && eti_pick_value(&o->pick, st->metric, s, &st->value))
        st->fresh = true;
    return ET_OK;
}

static bool
is_improvement(const struct options *o, const struct stopper *st)
{
    if (!st->any || (isnan(st->best) && !isnan(st->value)))
        return true;
    return eti_pick_is_better(&o->pick, st->metric, st->value, st->best) &&
           fabs(st->value - st->best) > o->threshold;
}

static void
judge(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct stopper *st = self->state;
    st->fresh = false;
    if (is_improvement(o, st)) {
        st->any = true;
        st->best = st->value;
        st->n = 0;
        return;
    }
    if (++st->n < o->patience)
        return;
    et_log_text(log, ET_LOG_INFO, &s->timestamp,
                "early_stopping: %s has not improved on %g for %" PRId64 " epochs",
                st->metric, st->best, st->n);
    self->stop = "the watched metric no longer improved";
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct stopper *st = self->state;
    if (event == ET_EVENT_FIT_START && o->reset_on_train && st->fitted) {
        st->any = st->fresh = false;
        st->n = 0;
    } else if (event == ET_EVENT_EPOCH_CHECKPOINT && st->fresh) {
        judge(self, s, log);
    } else if (event == ET_EVENT_FIT_END) {
        st->fitted = true;
        if (!st->metric[0])
            eti_pick_warn(&o->pick, self->type->info.name, "nothing was judged", s,
                          log);
    }
    return ET_OK;
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct stopper *st = self->state;
    ET_TRY(et_archive_text(a, "metric", st->metric, sizeof st->metric));
    ET_TRY(et_archive_flag(a, "any", &st->any));
    ET_TRY(et_archive_flag(a, "fresh", &st->fresh));
    ET_TRY(et_archive_f64(a, "best", &st->best, 1));
    ET_TRY(et_archive_f64(a, "value", &st->value, 1));
    return et_archive_i64(a, "n", &st->n, 1);
}

const struct et_callback_class et_callback_early_stopping = {
    .info =
        {
            .name = "early_stopping",
            .class_name = "EarlyStopping",
            .summary = "ends the run after epochs in a row without improvement",
            .source = "pytorch-accelerated, EarlyStoppingCallback",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct stopper),
    .acts = true,
    .events = ET_ON(FIT_START) | ET_ON(EPOCH_CHECKPOINT) | ET_ON(FIT_END),
    .evaluated = evaluated,
    .run = run,
    .archive = archive,
};
