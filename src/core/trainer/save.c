/* save.c: when a run is saved, and what becomes of that.
 *
 * Source: spec/trainer.md 8.3 (intervals), RELIABILITY.md section 3. A save is a copy
 * of the state at *_CHECKPOINT, after evaluation; a thread writes it. Its cost to
 * training is the time the copy and the thread take. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/trainer/checkpoint.h"
#include "etude/span.h"

/* RELIABILITY.md section 3: at the automatic interval saving takes this part of time;
 * the first save comes after that long. */
static const double most_of_time = 0.035, first_after = 20;
/* What is lost in so short a time is not worth the disk. */
static const double least_between = 5;
enum { ALARM_AFTER = 3 }; /* failures in a row */

struct eti_saver {
    struct eti_writer *writer;
    json_t *algorithms; /* for MANIFEST */
    int64_t last_batch; /* of the last save begun; -1: none */
    int failures;       /* in a row */
    char reason[64];    /* of the last one that was reported */
    double stall;      /* seconds of the save under way in which training stood still */
    double next;       /* monotonic seconds from which the automatic interval is due */
    bool final_failed; /* the last save did not succeed */
};

static double
now(const struct et_trainer *t)
{
    return eti_monotonic(t->state.cx);
}

/* ---- setting up ---- */

/* {"name": ..., "options": {name: text}, "joined": true} of an algorithm. */
static et_status
describe_algorithm(struct et_ctx *cx, const struct et_algorithm *a, json_t *list)
{
    json_t *options = json_object();
    et_status status = ET_OK;
    for (const struct et_option *row = a->type->info.options; row && row->name; row++) {
        char *text;
        status = et_option_text(cx, row, a->options, &text);
        if (status != ET_OK)
            break;
        json_object_set_new(options, row->name, json_string(text));
        et_free(cx, text);
    }
    json_t *one =
        json_pack("{s:s, s:o}", "name", a->type->info.name, "options", options);
    if (one && a->joined) /* a run that goes on from here has it before it loads */
        json_object_set_new(one, "joined", json_true());
    if (json_array_append_new(list, one) != 0 && status == ET_OK)
        status = ET_FAIL(cx, ET_ENOMEM, "out of memory: the list of algorithms");
    return status;
}

/* What a dead process left half written. */
static et_status
clean(struct et_trainer *t, const char *directory)
{
    int n;
    ET_TRY(eti_store_clean(t->state.cx, directory, &n));
    if (n > 0)
        et_report(t->state.cx, ET_LOG_WARN, "%d unfinished checkpoints were removed",
                  n);
    return ET_OK;
}

et_status
eti_saver_init(struct et_trainer *t)
{
    const struct et_checkpoint_config *c = t->config.checkpoint;
    struct et_state *s = &t->state;
    char label[ETI_LABEL], data[ETI_DATA_TEXT];
    void *block;
    if (!c || !c->directory || t->config.dry)
        return ET_OK;
    ET_TRY(eti_describe_data(t, data, sizeof data)); /* while they are what they were */
    ET_TRY(et_checkpoint_label(s->cx, eti_label_of(c), s->run_name, &s->timestamp,
                               label, sizeof label));
    ET_TRY(et_alloc(s->cx, sizeof *t->saver, &block));
    t->saver = block;
    if (s->rank == 0)
        ET_TRY(clean(t, c->directory));
    t->saver->last_batch =
        s->timestamp.batch > 0 && t->resumed ? s->timestamp.batch : -1;
    t->saver->next = now(t) + first_after;
    t->saver->algorithms = json_array();
    for (int i = 0; i < s->n_algorithms; i++)
        ET_TRY(describe_algorithm(s->cx, s->algorithms[i], t->saver->algorithms));
    return eti_writer_new(s->cx, c->directory, c->keep, &t->saver->writer);
}

et_status
eti_saver_joined(struct et_trainer *t, const struct et_algorithm *a)
{
    if (!t->saver)
        return ET_OK;
    eti_settle_save(t); /* a thread may be reading the list */
    return describe_algorithm(t->state.cx, a, t->saver->algorithms);
}

void
eti_saver_left(struct et_trainer *t, const struct et_algorithm *a)
{
    json_t *list = t->saver ? t->saver->algorithms : NULL;
    for (size_t i = json_array_size(list); i-- > 0;) {
        json_t *one = json_array_get(list, i);
        if (json_is_true(json_object_get(one, "joined")) &&
            strcmp(json_string_value(json_object_get(one, "name")),
                   a->type->info.name) == 0)
            json_array_remove(list, i);
    }
}

void
eti_saver_free(struct et_trainer *t)
{
    struct eti_saver *v = t->saver;
    t->saver = NULL;
    if (!v)
        return;
    eti_writer_free(&v->writer);
    json_decref(v->algorithms);
    et_free(t->state.cx, v);
}

const char *
eti_label_of(const struct et_checkpoint_config *c)
{
    return c->label ? c->label : "ep{epoch}-ba{batch}";
}

/* ---- what became of it ---- */

/* A record of its own: a save may end within a batch, whose numbers wait in the log. */
static void
tell(struct et_trainer *t, const char *text, const struct et_log_entry *entry, int n)
{
    struct et_record r = {
        .kind = ET_RECORD_CHECKPOINT, .text = text, .entry = entry, .n = n};
    et_log_record(t->state.log, &r, &t->state.timestamp);
}

static void
log_saved(struct et_trainer *t, const struct eti_written *r)
{
    struct et_state *s = &t->state;
    char text[ETI_LABEL + 32];
    double cost = t->saver->stall + r->cpu_seconds;
    if (t->saver->failures > ALARM_AFTER)
        et_report(s->cx, ET_LOG_WARN,
                  "%d checkpoints in a row were not saved before %s",
                  t->saver->failures, r->label);
    t->saver->failures = 0;
    t->saver->reason[0] = '\0';
    t->saver->final_failed = false;
    t->saver->next = now(t) + fmax(cost / most_of_time, least_between);
    const struct et_log_entry entry[] = {
        {"checkpoint/bytes", (double)r->bytes},
        {"checkpoint/seconds", r->seconds},
        {"checkpoint/stall_seconds", t->saver->stall},
    };
    snprintf(text, sizeof text, "saved %s", r->label);
    tell(t, text, entry, sizeof entry / sizeof *entry);
    et_report(s->cx, ET_LOG_INFO,
              "saved %s: %lld bytes in %.3f s, training stood for %.3f s", r->label,
              (long long)r->bytes, r->seconds, t->saver->stall);
    if (r->note[0])
        et_report(s->cx, ET_LOG_WARN, "%s", r->note);
}

/* Is the failure worth a line? The first three are, then the 10th, the 100th and so on,
 * and any with another reason: what stands behind the last colon of WHY. */
static bool
is_news(struct eti_saver *v, const char *why)
{
    const char *colon = strrchr(why, ':');
    char reason[sizeof v->reason];
    int tens = v->failures;
    snprintf(reason, sizeof reason, "%.63s", colon ? colon + 1 : why);
    bool is_other = strcmp(reason, v->reason) != 0;
    memcpy(v->reason, reason, sizeof reason);
    while (tens % 10 == 0)
        tens /= 10;
    return is_other || v->failures <= ALARM_AFTER || tens == 1;
}

/* Training goes on; after three failures in a row somebody should know. */
static void
log_failed(struct et_trainer *t, const struct eti_written *r)
{
    struct et_state *s = &t->state;
    char text[ETI_LABEL + 600];
    int failures = ++t->saver->failures;
    t->saver->final_failed = true;
    t->saver->last_batch = -1;
    t->saver->next = now(t) + first_after;
    snprintf(text, sizeof text, "failed %s: %.500s", r->label, r->why.message);
    tell(t, text, NULL, 0);
    if (is_news(t->saver, r->why.message))
        et_report(s->cx, failures >= ALARM_AFTER ? ET_LOG_ERROR : ET_LOG_WARN,
                  "checkpoint %s was not saved (%d in a row): %s%s%s", r->label,
                  failures, r->why.message, r->why.hint[0] ? "; " : "", r->why.hint);
    if (failures >= ALARM_AFTER && t->config.checkpoint->stop_on_failure) {
        t->outcome = ET_OUTCOME_UNSAVED;
        t->ranks.asks_to_stop = true; /* the step tells the others */
        if (!t->ranks.comm)
            et_state_stop(s, "three checkpoints in a row could not be saved");
    }
}

static void
heed(struct et_trainer *t, const struct eti_written *r)
{
    if (r->status == ET_OK)
        log_saved(t, r);
    else
        log_failed(t, r);
}

/* ---- when ---- */

/* A multiple of the interval lies between the last batch, or epoch, and now. */
static et_status
is_crossed(struct et_trainer *t, enum et_event event, bool *crossed)
{
    struct et_state *s = &t->state;
    struct et_time interval = t->config.checkpoint->interval, at, before;
    *crossed = false;
    if (!et_time_is_set(interval)) {
        /* (Of several ranks rank 0's clock counts, and the step tells the others.) */
        *crossed = event == ET_EVENT_BATCH_CHECKPOINT && !t->ranks.comm &&
                   now(t) >= t->saver->next;
        return ET_OK;
    }
    ET_TRY(eti_settle_interval(t, &interval));
    bool by_epoch = interval.unit == ET_TIME_EPOCH;
    bool by_iteration = interval.unit == ET_TIME_ITERATION;
    enum et_event own = by_epoch       ? ET_EVENT_EPOCH_CHECKPOINT
                        : by_iteration ? ET_EVENT_ITERATION_CHECKPOINT
                                       : ET_EVENT_BATCH_CHECKPOINT;
    if (event != own || interval.value <= 0)
        return ET_OK;
    ET_TRY(et_timestamp_get(s->cx, &s->timestamp, interval.unit, &at));
    ET_TRY(et_timestamp_get(s->cx, &t->before, interval.unit, &before));
    *crossed = floor(at.value / interval.value) > floor(before.value / interval.value);
    return ET_OK;
}

bool
eti_save_is_wanted(const struct et_trainer *t)
{
    const struct et_checkpoint_config *c = t->config.checkpoint;
    if (!t->saver)
        return false;
    if (eti_is_set(c->asked))
        return true;
    return t->state.rank == 0 && !c->only_at_end && !et_time_is_set(c->interval) &&
           now(t) >= t->saver->next;
}

static et_status
is_due(struct et_trainer *t, enum et_event event, bool *due)
{
    struct et_state *s = &t->state;
    const struct et_checkpoint_config *c = t->config.checkpoint;
    bool over;
    *due = false;
    if (!t->saver || t->outcome == ET_OUTCOME_DIVERGED ||
        t->saver->last_batch == s->timestamp.batch) {
        t->controlled.save = false; /* it has been */
        return ET_OK;
    }
    ET_TRY(eti_is_over(t, &over));
    bool asked = t->ranks.comm ? t->ranks.save && t->nonfinite_batches == 0
                               : eti_is_set(c->asked);
    *due = (over && !eti_learned_nothing(t)) || asked || t->controlled.save;
    if (*due || c->only_at_end || t->nonfinite_batches > 0)
        return ET_OK;
    return is_crossed(t, event, due);
}

/* ---- saving ---- */

static et_status
fill_manifest(struct et_trainer *t, struct eti_manifest *m)
{
    const struct et_state *s = &t->state;
    const struct et_checkpoint_config *c = t->config.checkpoint;
    *m = (struct eti_manifest){
        .format = ETI_MANIFEST_FORMAT,
        .incarnation = c->incarnation,
        .step = s->timestamp.batch,
        .epoch = s->timestamp.epoch,
        .batch_in_epoch = s->timestamp.batch_in_epoch,
        .sample = s->timestamp.sample,
        .world_size = s->world,
        .weights_only = c->weights_only,
        .saved = eti_wall(s->cx),
        .algorithms = t->saver->algorithms,
    };
    snprintf(m->run_id, sizeof m->run_id, "%s", c->run_id ? c->run_id : "");
    snprintf(m->run_name, sizeof m->run_name, "%s", s->run_name);
    snprintf(m->recipe, sizeof m->recipe, "%s", c->recipe ? c->recipe : "");
    ET_TRY(eti_describe_data(t, m->data, sizeof m->data));
    return et_checkpoint_label(s->cx, eti_label_of(c), s->run_name, &s->timestamp,
                               m->label, sizeof m->label);
}

/* A copy of everything, and a thread that writes it. */
static et_status
begin_writing(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_saver *v = t->saver;
    struct eti_manifest m;
    struct et_archive *a = eti_writer_archive(v->writer);
    eti_archive_begin(a, s->cx);
    ET_TRY(t->config.checkpoint->weights_only ? eti_archive_model(t, a)
                                              : eti_archive_trainer(t, a));
    ET_TRY(eti_archive_end(a));
    ET_TRY(fill_manifest(t, &m));
    char text[ETI_LABEL + 32];
    snprintf(text, sizeof text, "begun %s", m.label);
    tell(t, text, NULL, 0);
    eti_writer_start(v->writer, &m);
    return ET_OK;
}

et_status
eti_save(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_saver *v = t->saver;
    struct eti_written last;
    double start = now(t);
    if (!v || v->last_batch == s->timestamp.batch)
        return ET_OK;
    if (eti_writer_wait(v->writer, &last))
        heed(t, &last);
    eti_reach(s->cx, "checkpoint.snapshot");
    ET_TRY(eti_ranks_gather(t));
    if (t->ranks.comm) /* all of them, whatever becomes of it in rank 0 */
        v->last_batch = s->timestamp.batch;
    if (s->rank == 0) /* what ranks have alike it has as well */
        ET_TRY(begin_writing(t));
    v->last_batch = s->timestamp.batch;
    v->stall = now(t) - start;
    if (t->config.checkpoint->asked)
        __atomic_store_n(t->config.checkpoint->asked, 0, __ATOMIC_RELAXED);
    t->controlled.save = t->ranks.save = false;
    return ET_OK;
}

/* What stands in the way of a save is no reason to lose the run: it is said and the run
 * goes on. */
static void
try_to_save(struct et_trainer *t)
{
    struct eti_written r = {.step = t->state.timestamp.batch};
    r.status = eti_save(t);
    if (r.status == ET_OK)
        return;
    r.why = *et_error_get(t->state.cx);
    et_error_clear(t->state.cx);
    snprintf(r.label, sizeof r.label, "of batch %lld", (long long)r.step);
    log_failed(t, &r);
}

et_status
eti_checkpoint(struct et_trainer *t, enum et_event event)
{
    struct eti_written done;
    bool due;
    if (t->saver && eti_writer_poll(t->saver->writer, &done))
        heed(t, &done);
    ET_TRY(is_due(t, event, &due));
    if (due && t->readback.n > 0) {
        ET_TRY(eti_readback_deliver(t, 0));
        ET_TRY(is_due(t, event, &due)); /* the last batches may not have been finite */
    }
    t->state.checkpoint_due = due;
    ET_TRY(eti_run(t, event));
    if (due) {
        et_span_begin(t->state.cx, "checkpoint", "save", NULL);
        try_to_save(t);
        et_span_end(t->state.cx, "checkpoint", "save");
    }
    t->state.checkpoint_due = false;
    return ET_OK;
}

void
eti_settle_save(struct et_trainer *t)
{
    struct eti_written done;
    if (t->saver && eti_writer_wait(t->saver->writer, &done))
        heed(t, &done);
}

void
eti_finish_saving(struct et_trainer *t)
{
    eti_settle_save(t);
    if (t->saver && t->saver->final_failed &&
        (t->outcome == ET_OUTCOME_FINISHED || t->outcome == ET_OUTCOME_STOPPED ||
         t->outcome == ET_OUTCOME_TARGET_REACHED ||
         t->outcome == ET_OUTCOME_TARGET_MISSED))
        t->outcome = ET_OUTCOME_UNSAVED;
}

/* ERROR stands again, whatever has been said since. */
static void
put_back(struct et_ctx *cx, const struct et_error *error)
{
    et_error_clear(cx);
    if (error->status == ET_OK)
        return;
    (void)et_fail_at(cx, error->status, error->file, error->line, "%s", error->message);
    et_error_set_code(cx, error->code);
    if (error->hint[0])
        et_hint(cx, "%s", error->hint);
}

void
eti_rescue(struct et_trainer *t)
{
    struct et_error error = *et_error_get(t->state.cx);
    if (!t->saver)
        return;
    et_error_clear(t->state.cx);
    /* (Of several ranks the others are in a step already: the last checkpoint
     * stands.) */
    if (eti_readback_deliver(t, 0) == ET_OK && !t->ranks.comm)
        try_to_save(t);
    eti_finish_saving(t);
    put_back(t->state.cx, &error);
}

void
eti_keep_saved(struct et_trainer *t)
{
    struct et_error error = *et_error_get(t->state.cx);
    et_error_clear(t->state.cx);
    eti_settle_save(t);
    put_back(t->state.cx, &error);
}

et_status
et_trainer_save(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_written done;
    if (!t->saver)
        return ET_FAIL(s->cx, ET_EINVAL, "the trainer has no place to save to");
    ET_TRY(eti_save(t));
    if (!eti_writer_wait(t->saver->writer, &done))
        return ET_OK; /* this state has been saved */
    heed(t, &done);
    if (done.status != ET_OK)
        (void)ET_FAIL(s->cx, done.status, "%s", done.why.message);
    return done.status;
}
