/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c: progress of a run that another process trains: its records become the events
 * and the state that progress.c was made for.
 *
 *     run "running", with run/epochs ...     what the run is at and how long it is
 *     run, with eval/<label>/batch           EVAL_START, EVAL_BATCH_END
 *     run, with run/ended                    FIT_END
 *     batch, epoch, eval                     BATCH_END, EPOCH_END, EVAL_END
 *     resume                                 where it goes on: no event
 *
 * Times of training are those between records. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "core/base/need.h"
#include "core/journal/events.h"
#include "core/loggers/progress.h"

enum { METRICS = 64 };

/* What is known of the run: enough of a state for all that progress shows. */
struct et_relay {
    struct et_state s;
    struct et_log *log;
    /* of the record before, while the clock of training runs; NaN: it stands */
    double t;
    double eval_t; /* when the evaluation under way began */
    char label[ET_METRIC_NAME];
    struct et_metric_value metric[METRICS];
    bool waits; /* EVENT, for the rest of its numbers, of the time NEXT_T */
    enum et_event event;
    double next_t;
};

static bool
get(const struct et_record *r, const char *name, double *out)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].name, name) == 0) {
            *out = r->entry[i].value;
            return true;
        }
    return false;
}

static int64_t
count(const struct et_record *r, const char *name, int64_t otherwise)
{
    double value;
    return get(r, name, &value) ? (int64_t)value : otherwise;
}

/* The length in the unit that the run was given it in: watch.c adds batches to
 * others. */
static void
take_length(struct et_state *s, const struct et_record *r)
{
    static const struct {
        const char *name;
        enum et_time_unit unit;
    } units[] = {
        {"run/epochs", ET_TIME_EPOCH},  {"run/samples", ET_TIME_SAMPLE},
        {"run/tokens", ET_TIME_TOKEN},  {"run/seconds", ET_TIME_SECOND},
        {"run/batches", ET_TIME_BATCH},
    };
    double value;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (get(r, units[i].name, &value)) {
            s->max_duration = (struct et_time){value, units[i].unit};
            break;
        }
    s->train_len = count(r, "run/epoch_batches", s->train_len);
    s->batch_size = count(r, "run/batch_size", s->batch_size);
    s->grad_accum = count(r, "run/grad_accum", s->grad_accum);
}

static void
set_label(struct et_relay *y, const char *label, size_t n)
{
    if (n >= sizeof y->label)
        n = sizeof y->label - 1;
    memmove(y->label, label, n);
    y->label[n] = '\0';
    y->s.dataloader_label = y->label;
}

/* "eval/<label>/batch" and "eval/<label>/batches". False: R is not about one. */
static bool
take_evaluation(struct et_relay *y, const struct et_record *r)
{
    static const char head[] = "eval/", done[] = "/batch", all[] = "/batches";
    bool found = false;
    y->s.eval_timestamp.batch = 0;
    y->s.dataloader_len = -1;
    for (int i = 0; i < r->n; i++) {
        const char *name = r->entry[i].name, *tail = strrchr(name, '/');
        if (strncmp(name, head, strlen(head)) != 0 || tail < name + strlen(head))
            continue;
        set_label(y, name + strlen(head), (size_t)(tail - name) - strlen(head));
        found = true;
        if (strcmp(tail, done) == 0)
            y->s.eval_timestamp.batch = (int64_t)r->entry[i].value;
        if (strcmp(tail, all) == 0)
            y->s.dataloader_len = (int64_t)r->entry[i].value;
    }
    return found;
}

static void
add_entries(struct et_relay *y, const struct et_record *r)
{
    for (int i = 0; i < r->n; i++)
        et_log_metric(y->log, r->entry[i].name, r->entry[i].value);
}

static void
take_entries(struct et_relay *y, const struct et_record *r)
{
    et_log_emit(y->log, r->kind, NULL, NULL); /* it goes nowhere, and is empty then */
    add_entries(y, r);
}

static void
fire(struct et_callback *progress, struct et_relay *y, enum et_event event)
{
    (void)progress->type->run(progress, event, &y->s, y->log);
}

/* EVENT, which R tells of, now or with what follows R. */
static void
fire_whole(struct et_callback *progress, struct et_relay *y, enum et_event event,
           const struct et_record *r)
{
    y->waits = eti_events_is_full(r);
    y->event = event;
    y->next_t = r->t;
    if (!y->waits)
        fire(progress, y, event);
}

/* ---- kinds of records ---- */

static void
take_run(struct et_callback *progress, struct et_relay *y, const struct et_record *r)
{
    double ended;
    bool trains = r->text && strcmp(r->text, "running") == 0;
    take_length(&y->s, r);
    y->t = trains ? r->t : NAN;
    take_entries(y, (const struct et_record *)&(struct et_record){.kind = r->kind});
    if (get(r, "run/ended", &ended))
        fire(progress, y, ET_EVENT_FIT_END);
    if (!take_evaluation(y, r))
        return;
    if (isnan(y->eval_t) || y->s.eval_timestamp.batch == 0) {
        y->eval_t = r->t;
        fire(progress, y, ET_EVENT_EVAL_START);
    }
    if (y->s.eval_timestamp.batch > 0)
        fire(progress, y, ET_EVENT_EVAL_BATCH_END);
}

/* It may have nothing left to do. */
static void
take_resume(struct et_callback *progress, struct et_relay *y, const struct et_record *r)
{
    (void)progress;
    y->s.timestamp.epoch = r->ep;
    y->s.timestamp.batch = r->ba;
    y->s.timestamp.sample = r->sp;
}

static void
take_batch(struct et_callback *progress, struct et_relay *y, const struct et_record *r)
{
    struct et_timestamp *ts = &y->s.timestamp;
    double seconds = isnan(y->t) ? 0 : r->t - y->t;
    ts->epoch = r->ep;
    ts->batch = r->ba;
    ts->sample = r->sp;
    ts->batch_in_epoch = count(r, "time/batch_in_epoch", ts->batch_in_epoch + 1);
    ts->sample_in_epoch = count(r, "time/sample_in_epoch", ts->sample_in_epoch);
    ts->token = count(r, "time/token", ts->token);
    ts->batch_wct = seconds / (r->of > 1 ? (double)r->of : 1);
    ts->total_wct += seconds;
    ts->epoch_wct += seconds;
    y->t = r->t;
    (void)get(r, "loss/train/total", &y->s.loss_value);
    y->s.dataloader_label = "train";
    y->s.dataloader_len = y->s.train_len;
    take_entries(y, r);
    fire_whole(progress, y, ET_EVENT_BATCH_END, r);
}

static void
take_epoch(struct et_callback *progress, struct et_relay *y, const struct et_record *r)
{
    struct et_timestamp *ts = &y->s.timestamp;
    et_timestamp_next_epoch(ts);
    ts->epoch = r->ep;
    take_entries(y, r);
    fire_whole(progress, y, ET_EVENT_EPOCH_END, r);
}

static void
keep_metric(struct et_state *s, const struct et_log_entry *e)
{
    int i = 0;
    while (i < s->n_eval_metrics && strcmp(s->eval_metrics[i].name, e->name) != 0)
        i++;
    if (i == METRICS || strncmp(e->name, "metrics/", 8) != 0)
        return;
    if (i == s->n_eval_metrics)
        s->n_eval_metrics++;
    snprintf(s->eval_metrics[i].name, sizeof s->eval_metrics[i].name, "%s", e->name);
    s->eval_metrics[i].value = e->value;
}

static void
take_eval(struct et_callback *progress, struct et_relay *y, const struct et_record *r)
{
    const char *label = r->text ? r->text : "eval";
    set_label(y, label, strlen(label));
    y->s.eval_timestamp.total_wct = isnan(y->eval_t) ? 0 : r->t - y->eval_t;
    y->eval_t = NAN;
    for (int i = 0; i < r->n; i++)
        keep_metric(&y->s, &r->entry[i]);
    take_entries(y, r);
    fire_whole(progress, y, ET_EVENT_EVAL_END, r);
}

/* The numbers that did not fit into the record before. */
static void
take_rest(struct et_callback *progress, struct et_relay *y, const struct et_record *r)
{
    for (int i = 0; i < r->n && y->event == ET_EVENT_EVAL_END; i++)
        keep_metric(&y->s, &r->entry[i]);
    add_entries(y, r);
    fire_whole(progress, y, y->event, r);
}

/* ---- the whole ---- */

et_status
et_relay_new(struct et_ctx *cx, struct et_relay **out)
{
    ETI_NEED(cx, cx, out);
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_relay *y = block;
    y->s = (struct et_state){
        .cx = cx,
        .max_duration = ET_TIME_UNSET,
        .train_len = -1,
        .loss_value = NAN,
        .dataloader_label = "train",
        .eval_metrics = y->metric,
    };
    y->t = y->eval_t = NAN;
    et_status status = et_log_new(cx, NULL, &y->log);
    if (status != ET_OK)
        et_relay_free(&y);
    *out = y;
    return status;
}

void
et_relay_free(struct et_relay **relay)
{
    if (!relay)
        return;
    struct et_relay *y = *relay;
    *relay = NULL;
    if (!y)
        return;
    et_log_free(&y->log);
    et_free(y->s.cx, y);
}

const struct et_state *
et_relay_state(const struct et_relay *y)
{
    return y ? &y->s : NULL;
}

void
et_relay_record(struct et_relay *y, struct et_callback *progress,
                const struct et_record *r)
{
    if (!y || !r)
        return;
    static void (*const take[ET_RECORD_COUNT])(struct et_callback *, struct et_relay *,
                                               const struct et_record *) = {
        [ET_RECORD_RUN] = take_run,       [ET_RECORD_BATCH] = take_batch,
        [ET_RECORD_EPOCH] = take_epoch,   [ET_RECORD_EVAL] = take_eval,
        [ET_RECORD_RESUME] = take_resume,
    };
    if (r->rank != 0 || (!y->waits && !take[r->kind]))
        return;
    if (y->waits && r->kind == ET_RECORD_METRIC && r->t == y->next_t) {
        take_rest(progress, y, r);
        return;
    }
    if (y->waits)
        fire(progress, y, y->event);
    y->waits = false;
    if (take[r->kind])
        take[r->kind](progress, y, r);
}
