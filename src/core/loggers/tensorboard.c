/* SPDX-License-Identifier: Apache-2.0 */
/* tensorboard.c: files of events that TensorBoard shows while the run goes on.
 *
 * Every number becomes a scalar under its own name, its step the count of finished
 * batches; the resolved recipe a text. A run that is resumed adds a file, which tells
 * readers to drop the steps that will be repeated.
 *
 * Source: MosaicML Composer, TensorboardLogger. Differs: a flush keeps the file. */
#include "config.h"

#include <string.h>

#include "core/base/seams.h"
#include "core/loggers/tfevents.h"

/* Somebody watches: however long batches take, files are not staler than this. */
static const double stale_seconds = 30;

struct options {
    char *log_dir;
    int64_t flush_interval;
};

static const struct et_option option_table[] = {
    {
        .name = "log_dir",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, log_dir),
        .def = "tb",
        .flags = ET_OPT_OUTPUT,
        .help = "folder in the run directory",
    },
    {
        .name = "flush_interval",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, flush_interval),
        .def = "100",
        .min = 1,
        .max = 1e9,
        .unit = "batches",
        .help = "between writes to the file; 30 s at most",
    },
    {.name = NULL},
};

struct state {
    struct eti_tfevents events;
    double flushed;      /* when, in seconds since 1970 */
    int64_t since_flush; /* batches */
};

/* The recipe as Markdown, which wants a block of code indented. */
static void
put_recipe(struct et_callback *self, struct eti_tfevents *w)
{
    static const char indent[] = "    ";
    char path[4096];
    void *block;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/recipe.resolved.yaml", self->run_directory);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    if (et_alloc(self->cx, ETI_OUTPUT_BUFFER, &block) == ET_OK) {
        char *text = block, *line = text;
        while (n + 512 < ETI_OUTPUT_BUFFER && fgets(line + 4, 508, f)) {
            memcpy(line, indent, 4);
            n += strlen(line);
            line = text + n;
        }
        text[n] = '\0';
        eti_tfevents_text(w, "recipe", text);
        et_free(self->cx, text);
    }
    fclose(f);
}

/* Once the timestamp is what a checkpoint says. */
static et_status
open_file(struct et_callback *self, const struct et_timestamp *ts)
{
    const struct options *o = self->options;
    struct state *l = self->state;
    char path[4096];
    bool resumed;
    if (!self->run_directory)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "%s needs a run directory, and there is none", o->log_dir);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", self->run_directory, o->log_dir) >=
        sizeof path)
        return ET_FAIL(self->cx, ET_EINVAL, "the path of %s is longer than %zu bytes",
                       o->log_dir, sizeof path - 1);
    double wall = eti_wall(self->cx);
    l->flushed = eti_monotonic(self->cx);
    ET_TRY(eti_tfevents_open(self->cx, path, wall, &l->events, &resumed));
    eti_tfevents_start(&l->events, wall, ts->batch + 1);
    if (!resumed)
        put_recipe(self, &l->events);
    eti_tfevents_flush(&l->events);
    return ET_OK;
}

static void
put_record(struct state *l, double t, const struct et_timestamp *ts,
           const struct et_log *log)
{
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    eti_tfevents_at(&l->events, t, ts->batch);
    for (int i = 0; i < n; i++)
        eti_tfevents_scalar(&l->events, entry[i].name, entry[i].value);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct state *l = self->state;
    double now = eti_monotonic(self->cx);
    if (event == ET_EVENT_AFTER_LOAD)
        return open_file(self, &state->timestamp);
    if (event == ET_EVENT_BATCH_END || event == ET_EVENT_EVAL_END)
        put_record(l, eti_wall(self->cx), &state->timestamp, log);
    l->since_flush += event == ET_EVENT_BATCH_END;
    if (event == ET_EVENT_BATCH_END && l->since_flush < o->flush_interval &&
        now - l->flushed < stale_seconds)
        return ET_OK;
    eti_tfevents_flush(&l->events);
    l->since_flush = 0;
    l->flushed = now;
    return ET_OK;
}

static void
close_file(struct et_callback *self)
{
    struct state *l = self->state;
    eti_tfevents_close(&l->events);
}

const struct et_callback_class et_logger_tensorboard = {
    .info =
        {
            .name = "tensorboard",
            .class_name = "TensorboardLogger",
            .summary = "tb/: files of events for TensorBoard",
            .source = "MosaicML Composer, TensorboardLogger",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .is_logger = true,
    .events = ET_ON(AFTER_LOAD) | ET_ON(BATCH_END) | ET_ON(EVAL_END) |
              ET_ON(EPOCH_END) | ET_ON(FIT_END),
    .run = run,
    .close = close_file,
};
