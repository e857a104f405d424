/* SPDX-License-Identifier: Apache-2.0 */
/* speed_monitor.c: throughput over a sliding window of batches, and the run's clocks.
 *
 * A ring holds what has been counted by the end of each of the last window_size + 1
 * batches; when it is full, each rate is (last - first) / (seconds of training
 * between). throughput/device/... is a rank's share. FLOPs are those of the step's
 * plans: forward, backward and update, as they were run.
 *
 * Source: spec/trainer.md 9.1, the newest names and units. Differs: the peak rate of a
 * device is an option and not a table of product names; without it there is no mfu. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "core/callbacks/callbacks.h"

struct options {
    int64_t window_size;
    double gpu_flops_available;
    int time_unit;
};

static const struct et_option option_table[] = {
    {
        .name = "window_size",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, window_size),
        .def = "100",
        .min = 1,
        .max = 1e6,
        .unit = "batches",
        .help = "batches that a rate is the mean of",
    },
    {
        .name = "gpu_flops_available",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, gpu_flops_available),
        .max = INFINITY,
        .flags = ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN,
        .unit = "FLOP/s",
        .help = "what a device can do at best, for throughput/device/mfu",
    },
    {
        .name = "time_unit",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, time_unit),
        .def = "hours",
        .choices = eti_duration_units,
        .help = "unit of time/train, time/val and time/total",
    },
    {.name = NULL},
};

enum { BATCHES, SAMPLES, TOKENS, FLOPS, N_COUNTERS };
static const char *const counter_name[N_COUNTERS] = {
    [BATCHES] = "batches_per_sec",
    [SAMPLES] = "samples_per_sec",
    [TOKENS] = "tokens_per_sec",
    [FLOPS] = "flops_per_sec",
};

struct point {
    double seconds;
    double count[N_COUNTERS];
};

struct speed {
    struct point *ring; /* [window_size + 1] */
    int64_t n;          /* points ever pushed */
    double flops;       /* of training batches, all together */
    double eval_seconds;
};

static void
log_rates(const struct options *o, const struct point *first, const struct point *last,
          struct et_log *log)
{
    char name[ET_METRIC_NAME];
    double seconds = last->seconds - first->seconds;
    if (!(seconds > 0))
        return;
    for (int i = 0; i < N_COUNTERS; i++) {
        double rate = (last->count[i] - first->count[i]) / seconds;
        if (rate == 0) /* images have no tokens */
            continue;
        snprintf(name, sizeof name, "throughput/%s", counter_name[i]);
        et_log_metric(log, name, rate);
        snprintf(name, sizeof name, "throughput/device/%s", counter_name[i]);
        et_log_metric(log, name, rate);
        if (i == FLOPS && o->gpu_flops_available > 0)
            et_log_metric(log, "throughput/device/mfu", rate / o->gpu_flops_available);
    }
}

static void
end_batch(const struct options *o, struct speed *sp, const struct et_state *state,
          struct et_log *log)
{
    const struct et_timestamp *ts = &state->timestamp;
    int64_t room = o->window_size + 1;
    double unit = eti_duration_unit(o->time_unit);
    sp->flops += (double)state->batch_flops;
    sp->ring[sp->n++ % room] = (struct point){
        .seconds = ts->total_wct,
        .count = {(double)ts->batch, (double)ts->sample, (double)ts->token, sp->flops},
    };
    if (sp->n >= room)
        log_rates(o, &sp->ring[sp->n % room], &sp->ring[(sp->n - 1) % room], log);
    et_log_metric(log, "time/train", ts->total_wct / unit);
    et_log_metric(log, "time/val", sp->eval_seconds / unit);
    et_log_metric(log, "time/total", (ts->total_wct + sp->eval_seconds) / unit);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct speed *sp = self->state;
    void *block;
    if (event == ET_EVENT_INIT && !sp->ring) {
        size_t room = (size_t)o->window_size + 1;
        ET_TRY(et_alloc(self->cx, room * sizeof *sp->ring, &block));
        sp->ring = block;
    } else if (event == ET_EVENT_BATCH_END) {
        end_batch(o, sp, state, log);
    } else if (event == ET_EVENT_EVAL_END) {
        sp->eval_seconds += state->eval_timestamp.total_wct;
    }
    return ET_OK;
}

/* Rates are of the time that goes by: their window begins anew. */
static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct speed *sp = self->state;
    return et_archive_f64(a, "eval_seconds", &sp->eval_seconds, 1);
}

static void
close_ring(struct et_callback *self)
{
    struct speed *sp = self->state;
    et_free(self->cx, sp->ring);
    sp->ring = NULL;
}

const struct et_callback_class et_callback_speed_monitor = {
    .info =
        {
            .name = "speed_monitor",
            .class_name = "SpeedMonitor",
            .summary = "samples, tokens and FLOPs per second; the run's clocks",
            .source = "MosaicML Composer, SpeedMonitor",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct speed),
    .events = ET_ON(INIT) | ET_ON(BATCH_END) | ET_ON(EVAL_END),
    .run = run,
    .trails = et_callback_trails,
    .archive = archive,
    .close = close_ring,
};
