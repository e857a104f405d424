/* SPDX-License-Identifier: Apache-2.0 */
/* console.c: numbers of the run as lines on standard error (or output):
 *
 *     [epoch=2][batch=37/100]:
 *          Train loss/train/total: 2.3026
 *     [Eval batch=4/30] Eval on eval data
 *     [Eval batch=30/30] Eval on eval data:
 *          Eval metrics/eval/Accuracy: 0.7500
 *     [trace]: algorithm_traces/MixUp/after_dataloader: 1
 *
 * A run that is not as long as some epochs says [sample=640/10000] instead. Numbers are
 * gathered, the latest of each name, until the interval is over; the first batch and
 * the first epoch are always shown. Of an evaluation about ten batches are named. What
 * is whole is written so, other numbers with four decimals. Lines go to the descriptor,
 * not to a stream, so that the logger `file` captures them.
 *
 * Source: MosaicML Composer, ConsoleLogger. Differs: one progress bar is cleared before
 * lines, and names pass et_visible. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/loggers/progress.h"
#include "etude/diagnostic.h"

enum { STDERR, STDOUT };

static const char *const streams[] = {"stderr", "stdout", NULL};
static const int descriptors[] = {[STDERR] = STDERR_FILENO, [STDOUT] = STDOUT_FILENO};

struct options {
    struct et_time interval;
    int stream;
    bool log_traces;
};

static const struct et_option option_table[] = {
    {
        .name = "interval",
        .type = ET_OPT_TIME,
        .offset = offsetof(struct options, interval),
        .def = "1ba",
        .units = 1u << ET_TIME_EPOCH | 1u << ET_TIME_BATCH,
        .help = "between lines of training",
    },
    {
        .name = "stream",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, stream),
        .def = "stderr",
        .choices = streams,
        .help = "where lines go",
    },
    {
        .name = "log_traces",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, log_traces),
        .def = "false",
        .help = "a line whenever an algorithm has acted",
    },
    {.name = NULL},
};

struct state {
    int fd;
    struct et_log *latest; /* numbers since the last lines */
};

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct options *o = options;
    char text[ET_TIME_TEXT_BYTES];
    if (o->interval.value >= 1)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL, "interval %s: at least 1 is needed",
                   et_time_text(o->interval, text, sizeof text));
}

/* ---- lines ---- */

/* "[epoch=2][batch=37/100]": where training is. At an epoch's end the timestamp is in
 * the next one already. */
static void
put_place(int fd, const struct et_state *s, bool epoch_ends)
{
    const struct et_timestamp *ts = &s->timestamp;
    enum et_time_unit unit = s->max_duration.unit;
    struct et_time now;
    if (unit == ET_TIME_EPOCH)
        dprintf(fd, "[epoch=%" PRId64 "][batch=%" PRId64 "/", ts->epoch + !epoch_ends,
                epoch_ends ? s->train_len : ts->batch_in_epoch);
    if (unit == ET_TIME_EPOCH && s->train_len > 0)
        dprintf(fd, "%" PRId64 "]:\n", s->train_len);
    else if (unit == ET_TIME_EPOCH)
        dprintf(fd, "?]:\n");
    else if (et_timestamp_get(NULL, ts, unit, &now) == ET_OK)
        dprintf(fd, "[%s=%.0f/%.0f]:\n", et_time_unit_name(unit), floor(now.value),
                s->max_duration.value);
}

static void
put_eval_place(int fd, const struct et_state *s, const char *end)
{
    char label[ET_METRIC_NAME];
    const char *name = s->dataloader_label;
    dprintf(fd, "[Eval batch=%" PRId64 "/%" PRId64 "] Eval on %s data%s\n",
            s->eval_timestamp.batch, s->dataloader_len,
            et_visible(label, sizeof label, name, strlen(name)), end);
}

static void
put_numbers(int fd, const char *what, const struct et_log *log)
{
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    for (int i = 0; i < n; i++) {
        char name[4 * ET_METRIC_NAME], value[32];
        dprintf(fd, "\t %s %s: %s\n", what,
                et_visible(name, sizeof name, entry[i].name, strlen(entry[i].name)),
                eti_number_text(entry[i].value, value, sizeof value));
    }
}

/* What the run was given, once. */
static void
put_config(int fd, const struct et_state *s)
{
    static const char stars[] = "******************************";
    char name[ET_METRIC_NAME], value[32];
    dprintf(fd, "%s\nConfig:\n", stars);
    for (int i = 0; eti_hyperparameter(s, i, name, value); i++)
        dprintf(fd, "%s: %s\n", name, value);
    dprintf(fd, "%s\n", stars);
}

/* ---- when ---- */

/* Is BATCH one of the tenths of N, or any where they are few? Never the last. */
static bool
is_tenth(int64_t batch, int64_t n)
{
    if (n < 11 || batch >= n)
        return batch < n;
    for (int i = 0; i < 10; i++)
        if (batch == (int64_t)nearbyint(1 + (double)(n - 1) * i / 10))
            return true;
    return false;
}

static void
gather(struct et_log *latest, const struct et_log *log)
{
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    for (int i = 0; i < n; i++)
        et_log_metric(latest, entry[i].name, entry[i].value);
}

static void
show_training(struct et_callback *self, const struct et_state *s, bool epoch_ends)
{
    const struct options *o = self->options;
    struct state *c = self->state;
    bool by_epoch = o->interval.unit == ET_TIME_EPOCH;
    int64_t count = by_epoch ? s->timestamp.epoch : s->timestamp.batch;
    gather(c->latest, s->log);
    if (by_epoch != epoch_ends ||
        (count % (int64_t)o->interval.value != 0 && count != 1))
        return;
    eti_progress_clear(s);
    put_place(c->fd, s, epoch_ends);
    put_numbers(c->fd, "Train", c->latest);
    et_log_emit(c->latest, ET_RECORD_BATCH, NULL,
                NULL); /* nowhere: it is empty again */
}

static void
show_evaluation(struct et_callback *self, const struct et_state *s)
{
    struct state *c = self->state;
    int n;
    (void)et_log_entries(s->log, &n);
    if (n == 0)
        return; /* it was broken off */
    eti_progress_clear(s);
    put_eval_place(c->fd, s, ":");
    put_numbers(c->fd, "Eval", s->log);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct state *c = self->state;
    (void)log;
    switch (event) {
    case ET_EVENT_INIT:
        c->fd = descriptors[o->stream];
        return et_log_new(self->cx, NULL, &c->latest);
    case ET_EVENT_FIT_START:
        eti_progress_clear(s);
        put_config(c->fd, s);
        break;
    case ET_EVENT_EVAL_BATCH_END:
        if (s->dataloader_len > 0 &&
            is_tenth(s->eval_timestamp.batch, s->dataloader_len)) {
            eti_progress_clear(s);
            put_eval_place(c->fd, s, "");
        }
        break;
    case ET_EVENT_EVAL_END:
        show_evaluation(self, s);
        break;
    default:
        show_training(self, s, event == ET_EVENT_EPOCH_END);
        break;
    }
    return ET_OK;
}

static void
trace(struct et_callback *self, const struct et_state *s, const struct et_algorithm *a,
      enum et_event event)
{
    const struct options *o = self->options;
    char line[ETI_TRACE];
    if (!o->log_traces)
        return;
    eti_progress_clear(s);
    dprintf(descriptors[o->stream], "[trace]: %s\n", eti_trace_text(a, event, line));
}

static void
release(struct et_callback *self)
{
    struct state *c = self->state;
    et_log_free(&c->latest);
}

const struct et_callback_class et_logger_console = {
    .info =
        {
            .name = "console",
            .class_name = "ConsoleLogger",
            .summary = "every number as lines on the terminal",
            .source = "MosaicML Composer, ConsoleLogger",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .is_logger = true,
    .events = ET_ON(INIT) | ET_ON(FIT_START) | ET_ON(BATCH_END) | ET_ON(EPOCH_END) |
              ET_ON(EVAL_BATCH_END) | ET_ON(EVAL_END),
    .check = check,
    .run = run,
    .trace = trace,
    .close = release,
};
