/* SPDX-License-Identifier: Apache-2.0 */
/* weights_saver.c: the weights of a moment as a file of their own, beside checkpoints.
 *
 *     <run directory>/weights/<name>.safetensors
 *
 * whenever a multiple of interval has gone by, and at the times of `at`: for averaging,
 * for looking back, and before and after the decays of warmup_stable_decay. They stay:
 * keep is for checkpoints. A name without placeholders is one file, replaced each time.
 *
 * Source: spec/trainer.md 8.3, a further CheckpointSaver with weights_only. Differs:
 * f32 safetensors; a file that cannot be written is warned about and not tried
 * again. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/callbacks/callbacks.h"
#include "core/checkpoint/label.h"

enum { LABEL = 128 };

struct options {
    struct et_time interval;
    struct et_times at;
    char *name;
};

static const struct et_option option_table[] = {
    {
        .name = "interval",
        .type = ET_OPT_TIME,
        .offset = offsetof(struct options, interval),
        .def = "1ep",
        .help = "how often; 0 = only at the times of at",
    },
    {
        .name = "at",
        .type = ET_OPT_TIMES,
        .offset = offsetof(struct options, at),
        .help = "further times, such as 0.9dur",
    },
    {
        .name = "name",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, name),
        .def = "ep{epoch}-ba{batch}",
        .flags = ET_OPT_OUTPUT,
        .help = "of the file in weights/, with the placeholders of checkpoint.name",
    },
    {.name = NULL},
};

struct saver {
    struct et_timestamp before; /* at the last look */
};

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct options *o = options;
    const struct et_timestamp zero = {0};
    char label[LABEL];
    if (eti_checkpoint_label(cx, o->name, "run", 1, &zero, label, sizeof label) ==
            ET_OK &&
        !strchr(o->name, '/'))
        return ET_OK;
    et_error_clear(cx);
    return ET_FAIL(cx, ET_EINVAL,
                   "weights_saver: name: '%s' is no name of a file with the "
                   "placeholders of checkpoint.name",
                   o->name);
}

static et_status
open_folder(const struct et_callback *self)
{
    char path[ETI_BEST_PATH];
    if (!self->run_directory)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "weights_saver needs a run directory, and there is none");
    if ((size_t)snprintf(path, sizeof path, "%s/weights", self->run_directory) >=
        sizeof path - LABEL - 16)
        return ET_FAIL(self->cx, ET_EINVAL, "weights_saver: the path is too long");
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return ET_FAIL(self->cx, ET_EIO, "cannot make %s: %s", path, strerror(errno));
    return ET_OK;
}

/* The counters of T's unit, now and at the last look, and T in that unit. */
static et_status
count(const struct et_callback *self, const struct et_state *s, struct et_time t,
      double *span, double *now, double *before)
{
    const struct saver *own = self->state;
    const struct et_run_length length = {s->max_duration, s->train_len, 1};
    struct et_time a, b;
    if (t.unit == ET_TIME_DURATION)
        ET_TRY(et_time_resolve(self->cx, t, &length, &t));
    ET_TRY(et_timestamp_get(self->cx, &s->timestamp, t.unit, &a));
    ET_TRY(et_timestamp_get(self->cx, &own->before, t.unit, &b));
    *span = t.value;
    *now = a.value;
    *before = b.value;
    return ET_OK;
}

static et_status
is_due(const struct et_callback *self, const struct et_state *s, bool *due)
{
    const struct options *o = self->options;
    double span, now, before;
    *due = false;
    if (o->interval.value > 0) {
        ET_TRY(count(self, s, o->interval, &span, &now, &before));
        span = fmax(span, 1); /* a fraction of a run of few batches */
        *due = floor(now / span) > floor(before / span);
    }
    for (int i = 0; i < o->at.n && !*due; i++) {
        ET_TRY(count(self, s, o->at.v[i], &span, &now, &before));
        *due = now >= span && before < span;
    }
    return ET_OK;
}

static et_status
save(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    const struct eti_best none = {0};
    char label[LABEL], path[LABEL + 32];
    bool saved;
    ET_TRY(eti_checkpoint_label(self->cx, o->name, s->run_name, s->world, &s->timestamp,
                                label, sizeof label));
    snprintf(path, sizeof path, "weights/%s.safetensors", label);
    const struct eti_best_options file = {.save_path = path};
    return eti_best_save(self, &file, &none, s, NAN, log, &saved);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct saver *own = self->state;
    bool due;
    if (event == ET_EVENT_INIT)
        return open_folder(self);
    if (event == ET_EVENT_FIT_START) { /* which may have gone back to the beginning */
        if (s->timestamp.batch < own->before.batch)
            own->before = s->timestamp;
        return ET_OK;
    }
    ET_TRY(is_due(self, s, &due));
    own->before = s->timestamp;
    return due ? save(self, s, log) : ET_OK;
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct saver *own = self->state;
    return et_archive_timestamp(a, "before", &own->before);
}

const struct et_callback_class et_callback_weights_saver = {
    .info =
        {
            .name = "weights_saver",
            .class_name = "WeightsSaver",
            .summary = "keeps the weights of certain times, beside checkpoints",
            .source = "MosaicML Composer, CheckpointSaver with weights_only",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct saver),
    .events = ET_ON(INIT) | ET_ON(FIT_START) | ET_ON(BATCH_CHECKPOINT) |
              ET_ON(EPOCH_CHECKPOINT) | ET_ON(ITERATION_CHECKPOINT),
    .check = check,
    .run = run,
    .archive = archive,
};
