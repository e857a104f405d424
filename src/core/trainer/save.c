/* SPDX-License-Identifier: Apache-2.0 */
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

#include "core/base/need.h"
#include "core/base/seams.h"
#include "core/checkpoint/label.h"
#include "core/checkpoint/writer.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/loop.h"
#include "core/trainer/part.h"
#include "etude/span.h"

/* RELIABILITY.md section 3: at the automatic interval saving takes this part of time;
 * the first save comes after that long. */
static const double most_of_time = 0.035, first_after = 20;
/* What is lost in so short a time is not worth the disk. */
static const double least_between = 5;
enum { ALARM_AFTER = 3 }; /* failures in a row */

struct saver {
    struct eti_writer *writer; /* NULL: nothing is saved */
    json_t *algorithms;        /* for MANIFEST */
    json_t *switched;          /* likewise; NULL: none was */
    json_t *left_out;          /* likewise: patterns; NULL: nothing is */
    bool told_unused;          /* of those that nothing fits */
    int64_t last_batch;        /* of the last save begun; -1: none */
    int failures;              /* in a row */
    char reason[64];           /* of the last one that was reported */
    double stall;      /* seconds of the save under way in which training stood still */
    double next;       /* monotonic seconds from which the automatic interval is due */
    bool final_failed; /* the last save did not succeed */
    bool asked;        /* by a request: not done yet */
    bool listed;       /* a time of the list has come: not done yet */
    bool agreed;       /* ranks: asked for, or due, in the last step */
};

static struct eti_part *
part_of(struct et_trainer *t)
{
    return eti_part_of(t, ETI_PART_SAVER);
}

static bool
saves(const struct eti_part *p)
{
    const struct saver *own = p->own;
    return own->writer != NULL;
}

static double
now(const struct eti_part *p)
{
    return eti_monotonic(p->s->cx);
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

static const char *
label_of(const struct et_checkpoint_config *c)
{
    return c->label ? c->label : "ep{epoch}-ba{batch}";
}

/* What a dead process left half written. */
static et_status
clean(struct et_ctx *cx, const char *directory)
{
    int n;
    ET_TRY(eti_store_clean(cx, directory, &n));
    if (n > 0)
        et_report(cx, ET_LOG_WARN, "%d unfinished checkpoints were removed", n);
    return ET_OK;
}

static et_status
list_left_out(struct eti_part *p)
{
    struct saver *own = p->own;
    const char *const *ignore = p->config->checkpoint->ignore;
    own->left_out = ignore && *ignore ? json_array() : NULL;
    for (; ignore && *ignore; ignore++)
        if (json_array_append_new(own->left_out, json_string(*ignore)) != 0)
            return ET_FAIL(p->s->cx, ET_EINVAL,
                           "checkpoint.ignore_keys: '%s' is no UTF-8", *ignore);
    return ET_OK;
}

/* A link may not stand where a checkpoint does, or elsewhere. */
static et_status
check_latest(struct et_ctx *cx, const char *name)
{
    if (!name ||
        (name[0] && name[0] != '.' && !strchr(name, '/') && eti_step_parse(name) < 0))
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "checkpoint.latest: '%s' is no name for a link beside checkpoints",
                   name);
}

et_status
eti_saver_begin(struct et_trainer *t)
{
    struct eti_part *p = part_of(t);
    struct saver *own = p->own;
    const struct et_checkpoint_config *c = p->config->checkpoint;
    struct et_state *s = p->s;
    char label[ETI_LABEL], data[ETI_DATA_TEXT];
    if (!c || !c->directory || p->config->dry)
        return ET_OK;
    ET_TRY(eti_describe_data(t, data, sizeof data)); /* while they are what they were */
    ET_TRY(eti_checkpoint_label(s->cx, label_of(c), s->run_name, s->world,
                                &s->timestamp, label, sizeof label));
    if (s->rank == 0)
        ET_TRY(clean(s->cx, c->directory));
    own->last_batch =
        s->timestamp.batch > 0 && p->common->resumed ? s->timestamp.batch : -1;
    own->next = now(p) + first_after;
    own->algorithms = json_array();
    for (int i = 0; i < s->n_algorithms; i++)
        ET_TRY(describe_algorithm(s->cx, s->algorithms[i], own->algorithms));
    ET_TRY(eti_switches_list(t, &own->switched));
    ET_TRY(list_left_out(p));
    ET_TRY(check_latest(s->cx, c->latest));
    return eti_writer_new(s->cx, c->directory, c->keep, c->latest, &own->writer);
}

et_status
eti_saver_joined(struct et_trainer *t, const struct et_algorithm *a)
{
    struct eti_part *p = part_of(t);
    struct saver *own = p->own;
    if (!eti_settle_save(t)) /* a thread may be reading the list */
        return ET_OK;
    return describe_algorithm(p->s->cx, a, own->algorithms);
}

et_status
eti_saver_switched(struct et_trainer *t)
{
    struct saver *own = eti_part_own(t, ETI_PART_SAVER);
    if (!eti_settle_save(t))
        return ET_OK;
    if (part_of(t)->config->nonfinite_action == ET_NONFINITE_ROLLBACK)
        (void)eti_ask_to_save(t); /* earlier ones have another model's parameters */
    return eti_switches_list(t, &own->switched);
}

void
eti_saver_left(struct et_trainer *t, const struct et_algorithm *a)
{
    struct saver *own = eti_part_own(t, ETI_PART_SAVER);
    for (size_t i = json_array_size(own->algorithms); i-- > 0;) {
        json_t *one = json_array_get(own->algorithms, i);
        if (json_is_true(json_object_get(one, "joined")) &&
            strcmp(json_string_value(json_object_get(one, "name")),
                   a->type->info.name) == 0)
            json_array_remove(own->algorithms, i);
    }
}

static void
release(struct eti_part *p)
{
    struct saver *own = p->own;
    eti_writer_free(&own->writer);
    json_decref(own->algorithms);
    json_decref(own->switched);
    json_decref(own->left_out);
    *own = (struct saver){0};
}

/* ---- what became of it ---- */

/* A record of its own: a save may end within a batch, whose numbers wait in the log. */
static void
tell(struct eti_part *p, const char *text, const struct et_log_entry *entry, int n)
{
    struct et_record r = {
        .kind = ET_RECORD_CHECKPOINT, .text = text, .entry = entry, .n = n};
    et_log_record(p->s->log, &r, &p->s->timestamp);
}

static void
log_saved(struct eti_part *p, const struct eti_written *r)
{
    struct et_state *s = p->s;
    struct saver *own = p->own;
    char text[ETI_LABEL + 32];
    double cost = own->stall + r->cpu_seconds;
    if (own->failures > ALARM_AFTER)
        et_report(s->cx, ET_LOG_WARN,
                  "%d checkpoints in a row were not saved before %s", own->failures,
                  r->label);
    own->failures = 0;
    own->reason[0] = '\0';
    own->final_failed = false;
    own->next = now(p) + fmax(cost / most_of_time, least_between);
    const struct et_log_entry entry[] = {
        {"checkpoint/bytes", (double)r->bytes},
        {"checkpoint/seconds", r->seconds},
        {"checkpoint/stall_seconds", own->stall},
    };
    snprintf(text, sizeof text, "saved %s", r->label);
    tell(p, text, entry, sizeof entry / sizeof *entry);
    et_report(s->cx, ET_LOG_INFO,
              "saved %s: %lld bytes in %.3f s, training stood for %.3f s", r->label,
              (long long)r->bytes, r->seconds, own->stall);
    if (r->note[0])
        et_report(s->cx, ET_LOG_WARN, "%s", r->note);
}

/* Is the failure worth a line? The first three are, then the 10th, the 100th and so on,
 * and any with another reason: what stands behind the last colon of WHY. */
static bool
is_news(struct saver *own, const char *why)
{
    const char *colon = strrchr(why, ':');
    char reason[sizeof own->reason];
    int tens = own->failures;
    snprintf(reason, sizeof reason, "%.63s", colon ? colon + 1 : why);
    bool is_other = strcmp(reason, own->reason) != 0;
    memcpy(own->reason, reason, sizeof reason);
    while (tens % 10 == 0)
        tens /= 10;
    return is_other || own->failures <= ALARM_AFTER || tens == 1;
}

/* Training goes on; after three failures in a row somebody should know. */
static void
log_failed(struct eti_part *p, const struct eti_written *r)
{
    struct et_state *s = p->s;
    struct saver *own = p->own;
    char text[ETI_LABEL + 600];
    int failures = ++own->failures;
    own->final_failed = true;
    own->last_batch = -1;
    own->next = now(p) + first_after;
    snprintf(text, sizeof text, "failed %s: %.500s", r->label, r->why.message);
    tell(p, text, NULL, 0);
    if (is_news(own, r->why.message))
        et_report(s->cx, failures >= ALARM_AFTER ? ET_LOG_ERROR : ET_LOG_WARN,
                  "checkpoint %s was not saved (%d in a row): %s%s%s", r->label,
                  failures, r->why.message, r->why.hint[0] ? "; " : "", r->why.hint);
    if (failures >= ALARM_AFTER && p->config->checkpoint->stop_on_failure) {
        p->common->outcome = ET_OUTCOME_UNSAVED;
        eti_stop_all_ranks(p->t, "three checkpoints in a row could not be saved");
    }
}

static void
heed(struct eti_part *p, const struct eti_written *r)
{
    if (r->status == ET_OK)
        log_saved(p, r);
    else
        log_failed(p, r);
}

/* ---- when ---- */

/* The event at which a time in UNIT may have come. */
static enum et_event
event_of(enum et_time_unit unit)
{
    return unit == ET_TIME_EPOCH       ? ET_EVENT_EPOCH_CHECKPOINT
           : unit == ET_TIME_ITERATION ? ET_EVENT_ITERATION_CHECKPOINT
                                       : ET_EVENT_BATCH_CHECKPOINT;
}

/* A multiple of the interval lies between the last batch, or epoch, and now. */
static et_status
is_crossed(struct eti_part *p, enum et_event event, bool *crossed)
{
    struct et_state *s = p->s;
    const struct saver *own = p->own;
    struct et_time interval = p->config->checkpoint->interval, at, before;
    *crossed = false;
    if (!eti_is_given(interval)) {
        /* (Of several ranks rank 0's clock counts, and the step tells the others.) */
        *crossed = event == ET_EVENT_BATCH_CHECKPOINT && !p->common->comm &&
                   now(p) >= own->next;
        return ET_OK;
    }
    ET_TRY(eti_settle_interval(s, &interval));
    if (event != event_of(interval.unit) || interval.value <= 0)
        return ET_OK;
    ET_TRY(et_timestamp_get(s->cx, &s->timestamp, interval.unit, &at));
    ET_TRY(et_timestamp_get(s->cx, &p->common->before, interval.unit, &before));
    *crossed = floor(at.value / interval.value) > floor(before.value / interval.value);
    return ET_OK;
}

/* Has the batch, or epoch, that ends at EVENT come to a time of the list? Behind the
 * last batch of an epoch that is over, too: what is saved there is not saved again. */
static et_status
is_listed(const struct eti_part *p, enum et_event event, bool *listed)
{
    const struct et_checkpoint_config *c = p->config->checkpoint;
    const struct et_state *s = p->s;
    *listed = false;
    for (int i = 0; i < c->n_at && !*listed; i++) {
        struct et_time due = c->at[i], at, before;
        ET_TRY(eti_settle_interval(s, &due));
        ET_TRY(et_timestamp_get(s->cx, &s->timestamp, due.unit, &at));
        ET_TRY(et_timestamp_get(s->cx, &p->common->before, due.unit, &before));
        if (event == event_of(due.unit))
            *listed = at.value >= due.value && before.value < due.value;
        else if (due.unit == ET_TIME_EPOCH && event == ET_EVENT_BATCH_CHECKPOINT)
            *listed = s->timestamp.batch_in_epoch == s->train_len &&
                      at.value + 1 == due.value;
    }
    return ET_OK;
}

/* Has this rank a reason to save after the batch under way: asked to, or it is time? */
static float
say(struct eti_part *p)
{
    const struct saver *own = p->own;
    const struct et_checkpoint_config *c = p->config->checkpoint;
    if (!saves(p))
        return 0;
    return eti_is_set(c->asked) || (p->s->rank == 0 && !c->only_at_end &&
                                    !eti_is_given(c->interval) && now(p) >= own->next);
}

static void
hear(struct eti_part *p, float sum, bool again)
{
    struct saver *own = p->own;
    (void)again;
    own->agreed |= sum > 0;
}

bool
eti_ask_to_save(struct et_trainer *t)
{
    struct eti_part *p = part_of(t);
    struct saver *own = p->own;
    own->asked = saves(p);
    return own->asked;
}

bool
eti_save_is_asked(struct et_trainer *t)
{
    const struct saver *own = eti_part_own(t, ETI_PART_SAVER);
    return own->asked;
}

static et_status
is_due(struct eti_part *p, enum et_event event, bool *due)
{
    struct et_state *s = p->s;
    struct saver *own = p->own;
    const struct et_checkpoint_config *c = p->config->checkpoint;
    const struct eti_common *common = p->common;
    bool over, listed;
    *due = false;
    if (!saves(p) || common->outcome == ET_OUTCOME_DIVERGED ||
        own->last_batch == s->timestamp.batch) {
        own->asked = false; /* it has been */
        return ET_OK;
    }
    ET_TRY(eti_is_over(s, &over));
    bool asked = common->comm ? own->agreed && common->nonfinite_batches == 0
                              : eti_is_set(c->asked);
    *due = (over && !eti_learned_nothing(common, s)) || asked || own->asked;
    ET_TRY(is_listed(p, event, &listed));
    own->listed |= listed;
    if (*due || c->only_at_end || common->nonfinite_batches > 0)
        return ET_OK;
    *due = own->listed;
    return own->listed ? ET_OK : is_crossed(p, event, due);
}

/* ---- saving ---- */

static et_status
fill_manifest(struct eti_part *p, struct eti_manifest *m)
{
    const struct saver *own = p->own;
    const struct et_state *s = p->s;
    const struct et_checkpoint_config *c = p->config->checkpoint;
    *m = (struct eti_manifest){
        .format = ETI_MANIFEST_FORMAT,
        .incarnation = c->incarnation,
        .step = s->timestamp.batch,
        .epoch = s->timestamp.epoch,
        .batch_in_epoch = s->timestamp.batch_in_epoch,
        .sample = s->timestamp.sample,
        .world_size = s->world,
        .weights_only = c->weights_only,
        .stays = own->listed,
        .saved = eti_wall(s->cx),
        .algorithms = own->algorithms,
        .switched = own->switched,
        .left_out = own->left_out,
    };
    snprintf(m->run_id, sizeof m->run_id, "%s", c->run_id ? c->run_id : "");
    snprintf(m->run_name, sizeof m->run_name, "%s", s->run_name);
    snprintf(m->recipe, sizeof m->recipe, "%s", c->recipe ? c->recipe : "");
    ET_TRY(eti_describe_data(p->t, m->data, sizeof m->data));
    return eti_checkpoint_label(s->cx, label_of(c), s->run_name, s->world,
                                &s->timestamp, m->label, sizeof m->label);
}

/* Once: a pattern that nothing fits is one that was not meant so. */
static void
tell_unused(struct eti_part *p, uint64_t used)
{
    struct saver *own = p->own;
    const char *const *ignore = p->config->checkpoint->ignore;
    for (int k = 0; ignore && ignore[k] && k < 64 && !own->told_unused; k++)
        if (!(used >> k & 1))
            et_report(p->s->cx, ET_LOG_WARN,
                      "checkpoint.ignore_keys: nothing is called '%s'", ignore[k]);
    own->told_unused = true;
}

/* A copy of everything, and a thread that writes it. */
static et_status
begin_writing(struct eti_part *p)
{
    struct saver *own = p->own;
    struct eti_manifest m;
    struct et_archive *a = eti_writer_archive(own->writer);
    eti_archive_begin(a, p->s->cx);
    a->ignore = p->config->checkpoint->ignore;
    a->used = 0;
    ET_TRY(p->config->checkpoint->weights_only ? eti_archive_model(p->t, a)
                                               : eti_archive_trainer(p->t, a));
    ET_TRY(eti_archive_end(a));
    tell_unused(p, a->used);
    ET_TRY(fill_manifest(p, &m));
    char text[ETI_LABEL + 32];
    snprintf(text, sizeof text, "begun %s", m.label);
    tell(p, text, NULL, 0);
    own->listed = false;
    eti_writer_start(own->writer, &m);
    return ET_OK;
}

/* What is between two steps now, unless it has been; a thread writes it. */
static et_status
save(struct eti_part *p)
{
    struct et_state *s = p->s;
    struct saver *own = p->own;
    struct eti_written last;
    double start = now(p);
    if (!saves(p) || own->last_batch == s->timestamp.batch)
        return ET_OK;
    if (eti_writer_wait(own->writer, &last))
        heed(p, &last);
    eti_reach(s->cx, "checkpoint.snapshot");
    ET_TRY(eti_parts_gather(p->t));
    if (p->common->comm) /* all of them, whatever becomes of it in rank 0 */
        own->last_batch = s->timestamp.batch;
    if (s->rank == 0) /* what ranks have alike it has as well */
        ET_TRY(begin_writing(p));
    own->last_batch = s->timestamp.batch;
    own->stall = now(p) - start;
    if (p->config->checkpoint->asked)
        __atomic_store_n(p->config->checkpoint->asked, 0, __ATOMIC_RELAXED);
    own->asked = own->agreed = false;
    return ET_OK;
}

/* What stands in the way of a save is no reason to lose the run: it is said and the run
 * goes on. */
static void
try_to_save(struct eti_part *p)
{
    struct eti_written r = {.step = p->s->timestamp.batch};
    r.status = save(p);
    if (r.status == ET_OK)
        return;
    r.why = *et_error_get(p->s->cx);
    et_error_clear(p->s->cx);
    snprintf(r.label, sizeof r.label, "of batch %lld", (long long)r.step);
    log_failed(p, &r);
}

et_status
eti_checkpoint(struct et_trainer *t, enum et_event event)
{
    struct eti_part *p = part_of(t);
    struct saver *own = p->own;
    struct et_state *s = p->s;
    struct eti_written done;
    bool due;
    if (saves(p) && eti_writer_poll(own->writer, &done))
        heed(p, &done);
    ET_TRY(is_due(p, event, &due));
    if (due && eti_readback_waiting(t) > 0) {
        ET_TRY(eti_readback_deliver(t, 0));
        ET_TRY(is_due(p, event, &due)); /* the last batches may not have been finite */
    }
    s->checkpoint_due = due;
    ET_TRY(eti_run(t, event));
    if (due) {
        et_span_begin(s->cx, "checkpoint", "save", NULL);
        try_to_save(p);
        et_span_end(s->cx, "checkpoint", "save");
    }
    s->checkpoint_due = false;
    return ET_OK;
}

bool
eti_settle_save(struct et_trainer *t)
{
    struct eti_part *p = part_of(t);
    struct saver *own = p->own;
    struct eti_written done;
    if (saves(p) && eti_writer_wait(own->writer, &done))
        heed(p, &done);
    return saves(p);
}

void
eti_finish_saving(struct et_trainer *t)
{
    const struct saver *own = eti_part_own(t, ETI_PART_SAVER);
    enum et_outcome *outcome = &part_of(t)->common->outcome;
    (void)eti_settle_save(t);
    if (own->final_failed &&
        (*outcome == ET_OUTCOME_FINISHED || *outcome == ET_OUTCOME_STOPPED ||
         *outcome == ET_OUTCOME_TARGET_REACHED || *outcome == ET_OUTCOME_TARGET_MISSED))
        *outcome = ET_OUTCOME_UNSAVED;
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
    struct eti_part *p = part_of(t);
    struct et_error error = *et_error_get(p->s->cx);
    if (!saves(p))
        return;
    et_error_clear(p->s->cx);
    /* (Of several ranks the others are in a step already: the last checkpoint
     * stands.) */
    if (eti_readback_deliver(t, 0) == ET_OK && !p->common->comm)
        try_to_save(p);
    eti_finish_saving(t);
    put_back(p->s->cx, &error);
}

void
eti_keep_saved(struct et_trainer *t)
{
    struct et_ctx *cx = part_of(t)->s->cx;
    struct et_error error = *et_error_get(cx);
    et_error_clear(cx);
    (void)eti_settle_save(t);
    put_back(cx, &error);
}

et_status
et_trainer_save(struct et_trainer *t)
{
    ETI_NEED(NULL, t);
    struct eti_part *p = part_of(t);
    struct saver *own = p->own;
    struct et_ctx *cx = p->s->cx;
    struct eti_written done;
    if (!saves(p))
        return ET_FAIL(cx, ET_EINVAL, "the trainer has no place to save to");
    ET_TRY(save(p));
    if (!eti_writer_wait(own->writer, &done))
        return ET_OK; /* this state has been saved */
    heed(p, &done);
    if (done.status != ET_OK)
        (void)ET_FAIL(cx, done.status, "%s", done.why.message);
    return done.status;
}

const struct eti_part_type eti_part_saver = {
    .size = sizeof(struct saver),
    .release = release,
    .say = say,
    .hear = hear,
};
