/* SPDX-License-Identifier: Apache-2.0 */
/* tensorboard.c: files of events that TensorBoard shows while the run goes on.
 *
 * Every number becomes a scalar under its own name, its step the count of finished
 * batches; pictures that callbacks make are pictures there; the resolved recipe is a
 * text, and each of its values a hyperparameter. A run that is resumed adds a file,
 * which tells readers to drop the steps that will be repeated.
 *
 * Source: MosaicML Composer, TensorboardLogger. Differs: a flush keeps the file. */
#include "config.h"

#include <string.h>

#include "core/base/folders.h"
#include "core/base/seams.h"
#include "core/loggers/given.h"
#include "core/loggers/tfevents.h"
#include "core/trainer/log.h"

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

static void
put_value(void *data, const char *key, const struct et_value *v)
{
    const bool is_number = v->type == ET_VALUE_INT || v->type == ET_VALUE_FLOAT;
    const char *text = v->type == ET_VALUE_BOOL   ? (v->b ? "true" : "false")
                       : v->type == ET_VALUE_NULL ? "null"
                                                  : v->text;
    eti_tfevents_given(data, key, is_number ? eti_value_number(v) : 0,
                       is_number ? NULL : text);
}

/* The values of the recipe, for the table of runs. */
static void
put_values(struct et_callback *self, struct eti_tfevents *w)
{
    struct eti_message session = {.cx = self->cx};
    struct eti_given given;
    eti_given_read(self->run_directory, &given);
    if (eti_given_recipe(self->cx, self->run_directory, put_value, &session) == ET_OK &&
        session.n > 0)
        eti_tfevents_begin_session(w, &session, given.name);
    et_error_clear(self->cx); /* the curves are there without them */
    eti_message_release(&session);
}

/* Pictures that were written of this step. */
static void
put_pictures(struct et_callback *self, const struct et_log *log)
{
    enum { MOST = 16 << 20 };
    struct state *l = self->state;
    int n;
    const struct eti_logged_picture *picture = eti_log_pictures(log, &n);
    for (int i = 0; i < n; i++) {
        void *block;
        FILE *f = eti_open_regular(picture[i].path);
        if (f && et_alloc(self->cx, MOST, &block) == ET_OK) {
            const size_t bytes = fread(block, 1, MOST, f);
            if (bytes > 0 && bytes < MOST)
                eti_tfevents_image(&l->events, picture[i].tag, picture[i].width,
                                   picture[i].height, block, bytes);
            et_free(self->cx, block);
        }
        if (f)
            fclose(f);
    }
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
    eti_tfevents_at(&l->events, wall, ts->batch);
    if (!resumed) {
        put_recipe(self, &l->events);
        put_values(self, &l->events);
    }
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
    if (event == ET_EVENT_BATCH_END || event == ET_EVENT_EVAL_END) {
        put_record(l, eti_wall(self->cx), &state->timestamp, log);
        put_pictures(self, log);
    }
    if (event == ET_EVENT_EVAL_END) {
        int n;
        const struct eti_passage *passage = eti_log_passages(log, &n);
        for (int i = 0; i < n; i++)
            eti_tfevents_text(&l->events, passage[i].tag, passage[i].text);
    }
    if (event == ET_EVENT_FIT_END)
        eti_tfevents_end_session(&l->events);
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
