/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c: what a run is at, as records: see et_run_watch. */
#include "config.h"

#include <stdio.h>

#include "core/base/need.h"
#include "core/base/seams.h"
#include "etude/logger.h"
#include "etude/run.h"
#include "core/trainer/state.h"

enum { NUMBERS = 12 };
static const double PAUSE = 0.25; /* seconds between records of an evaluation */

struct watch {
    struct et_log_entry number[NUMBERS];
    int n;
    double next; /* monotonic time of an evaluation's next record */
};

static void
put(struct watch *w, const char *name, double value)
{
    if (w->n == NUMBERS || !(value > 0))
        return;
    struct et_log_entry *e = &w->number[w->n++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->value = value;
}

/* The length in the unit it was given in, and in batches where that follows. */
static void
put_length(struct watch *w, const struct et_state *s)
{
    static const char *const names[ET_TIME_UNIT_COUNT] = {
        [ET_TIME_EPOCH] = "run/epochs",   [ET_TIME_BATCH] = "run/batches",
        [ET_TIME_SAMPLE] = "run/samples", [ET_TIME_TOKEN] = "run/tokens",
        [ET_TIME_SECOND] = "run/seconds",
    };
    const struct et_time length = s->max_duration;
    if (!et_time_is_set(length))
        return;
    if (length.unit < ET_TIME_UNIT_COUNT && names[length.unit])
        put(w, names[length.unit], length.value);
    if (length.unit == ET_TIME_EPOCH && s->train_len > 0)
        put(w, "run/batches", length.value * (double)s->train_len);
    if (length.unit == ET_TIME_SAMPLE && s->batch_size > 0)
        put(w, "run/batches", length.value / (double)s->batch_size);
}

static void
say(struct watch *w, const struct et_state *s, struct et_log *log, const char *state)
{
    struct et_record r = {
        .kind = ET_RECORD_RUN,
        .text = state,
        .entry = w->number,
        .n = w->n,
    };
    et_log_record(log, &r, &s->timestamp);
    w->n = 0;
}

static void
say_evaluation(struct watch *w, const struct et_state *s, struct et_log *log)
{
    char name[ET_METRIC_NAME];
    double now = eti_monotonic(s->cx);
    if (now < w->next)
        return;
    w->next = now + PAUSE;
    snprintf(name, sizeof name, "eval/%s/batch", s->dataloader_label);
    put(w, name, (double)s->eval_timestamp.batch);
    snprintf(name, sizeof name, "eval/%s/batches", s->dataloader_label);
    put(w, name, (double)s->dataloader_len);
    say(w, s, log, "evaluating");
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct watch *w = self->state;
    switch (event) {
    case ET_EVENT_EVAL_BEFORE_ALL:
        say(w, s, log, "evaluating");
        break;
    case ET_EVENT_EVAL_START:
        w->next = 0;
        say_evaluation(w, s, log);
        break;
    case ET_EVENT_FIT_END:
        put(w, "run/ended", 1);
        say(w, s, log, "running");
        break;
    case ET_EVENT_EVAL_BATCH_END:
        say_evaluation(w, s, log);
        break;
    default: /* training begins, or goes on */
        put_length(w, s);
        put(w, "run/epoch_batches", (double)s->train_len);
        put(w, "run/batch_size", (double)s->batch_size);
        put(w, "run/grad_accum", (double)s->grad_accum);
        say(w, s, log, "running");
    }
    return ET_OK;
}

static const struct et_callback_class watch_class = {
    .info =
        {
            .name = "run_state",
            .class_name = "RunState",
            .summary = "says what a run is at",
            .applies_to = "any",
        },
    .state_size = sizeof(struct watch),
    .events = ET_ON(FIT_START) | ET_ON(FIT_END) | ET_ON(EVAL_BEFORE_ALL) |
              ET_ON(EVAL_START) | ET_ON(EVAL_BATCH_END) | ET_ON(EVAL_AFTER_ALL),
    .run = run,
};

et_status
et_run_watch(struct et_ctx *cx, struct et_callback **out)
{
    ETI_NEED(cx, cx, out);
    return et_callback_new(cx, &watch_class, NULL, NULL, out);
}
