/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: see replay.h.
 *
 * A viewer that has nothing of the run gets a snapshot: the model is read here, a
 * little at a time, so that others are served meanwhile. A viewer that has the records
 * up to some number gets those that follow, straight from the log. */
#include "config.h"

#include "dist/worker/replay.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/library/facts.h"
#include "dist/hub/follow.h"
#include "dist/hub/hist.h"
#include "dist/wire/router.h"

enum {
    CHUNK = 60 << 10, /* bytes of a snapshot in a message */
    STRIDE = 64,      /* records between looks at the clock */
    MOST_CREDIT = 1 << 16,
};
static const double SLICE = 0.01; /* seconds of a step */
static const double LOOK = 2; /* seconds between looks whether the run goes on again */
static const double QUESTIONS = 20; /* HIST a second */
static const double BEHIND = 10;    /* seconds without taking a part of the snapshot */

enum stage {
    READING,  /* the log, into the model */
    SNAPSHOT, /* is being sent */
    RECORDS,  /* are being sent */
    TOLD,
};

struct etd_replay {
    struct et_ctx *cx;
    etd_send_fn *send;
    void *data;
    char directory[PATH_MAX];
    struct etd_head head; /* of what is said: the run, and its incarnation */
    enum stage stage;
    bool stays, over;
    bool blocked; /* the viewer's connection was full at the last step */
    int64_t credit;
    double looked; /* monotonic: whether it goes on again */
    double questions, filled;
    struct etd_hist *hist; /* NULL: it has asked for none */
    int *readers, *models;

    struct etd_follow *follow; /* the model, until the snapshot was sent; else NULL */
    int64_t seq;               /* of the record that the snapshot is behind */
    double moved;              /* when a part of it was taken */
    unsigned char digest[ETD_DIGEST];
    bool has_digest;
    char *payload; /* facts, then the model, as they are sent */
    size_t n_facts, n_payload, at;
    bool has_begun; /* SNAP_BEGIN was sent */

    struct et_events *log; /* of RECORDS */
    struct et_record held; /* the one that is being sent; */
    int from;              /* its first number that has not been sent */
    bool holds;
    int64_t after;

    char bytes[ETD_STREAM_BYTES]; /* a frame being made */
};

/* ---- saying ---- */

static struct etd_head
head_of(const struct etd_replay *p, enum etd_kind kind)
{
    struct etd_head head = p->head;
    head.kind = kind;
    head.t_mono_ns = (int64_t)(1e9 * eti_monotonic(p->cx));
    return head;
}

static bool
send_frame(struct etd_replay *p, size_t n)
{
    p->blocked = n > 0 && !p->send(p->data, p->bytes, n);
    return n > 0 && !p->blocked;
}

static void
say_welcome(struct etd_replay *p, const struct etd_replay_options *o, const char *name)
{
    struct etd_out out;
    const struct etd_head head = head_of(p, ETD_WELCOME);
    etd_begin(&out, p->bytes, sizeof p->bytes, &head, 9);
    etd_put_int(&out, "minor", ETD_MINOR);
    etd_put_text(&out, "name", name);
    etd_put_text(&out, "role", o->role);
    etd_put_int(&out, "beat_ms", (int64_t)(1000 * ETD_BEAT));
    etd_put_int(&out, "head", o->after > 0 ? o->after : 0);
    etd_put_bool(&out, "goes_on", o->after >= 0);
    etd_put_int(&out, "clients", ETD_CLIENTS);
    etd_put_bool(&out, "ended", true);
    etd_put_bool(&out, "files", true);
    (void)send_frame(p, etd_end(&out));
}

static void
say_bye(struct etd_replay *p, const char *code, const char *text)
{
    const struct etd_head head = head_of(p, ETD_BYE);
    p->over =
        send_frame(p, etd_reason_write(p->bytes, sizeof p->bytes, &head, code, text));
}

/* The run's facts as JSON, which the caller frees; NULL: they cannot be read. */
static char *
facts_text(struct etd_replay *p)
{
    json_t *facts;
    if (eti_facts_read(p->cx, p->directory, &facts) != ET_OK) {
        et_error_clear(p->cx);
        return NULL;
    }
    eti_facts_make_true(facts);
    char *text = json_dumps(facts, JSON_COMPACT);
    json_decref(facts);
    return text;
}

/* ---- a snapshot ---- */

static et_status
make_snapshot(struct etd_replay *p)
{
    const struct etd_model *m = etd_follow_model(p->follow);
    char *facts = facts_text(p), *model = NULL;
    size_t n_model = 0;
    void *block = NULL;
    p->n_facts = facts ? strlen(facts) : 0;
    et_status status = etd_model_digest(m, p->digest);
    if (status == ET_OK)
        status = etd_model_save(m, &model, &n_model);
    if (status == ET_OK &&
        (n_model > ETD_SNAPSHOT_BYTES || p->n_facts > ETD_SNAPSHOT_BYTES))
        status = ET_FAIL(p->cx, ET_EINVAL,
                         "the run's snapshot has %zu bytes, and %zu of facts: more "
                         "than %d are not sent",
                         n_model, p->n_facts, ETD_SNAPSHOT_BYTES);
    if (status == ET_OK)
        status = et_alloc(p->cx, p->n_facts + n_model, &block);
    if (status == ET_OK) {
        p->payload = block;
        if (facts)
            memcpy(p->payload, facts, p->n_facts);
        memcpy(p->payload + p->n_facts, model, n_model);
        p->n_payload = p->n_facts + n_model;
        p->head.incarnation = m->incarnation;
        p->seq = m->seq;
        p->moved = eti_monotonic(p->cx);
        p->has_digest = true;
    }
    et_free(p->cx, model);
    free(facts);
    return status;
}

/* Reads on. A log that is damaged or torn somewhere is told up to there. */
static void
read_on(struct etd_replay *p)
{
    struct etd_model *m = etd_follow_model(p->follow);
    int64_t before = m->seq, left;
    et_status status = etd_follow_read(p->follow, SLICE, 0, &left);
    if (status == ET_OK && left > 0 && m->seq > before)
        return;
    if (status != ET_ENOMEM) {
        et_error_clear(p->cx);
        status = make_snapshot(p);
    }
    if (status == ET_OK) {
        p->stage = SNAPSHOT;
        return;
    }
    say_bye(p, "GONE",
            status == ET_ENOMEM ? "the worker has too little memory to read this run"
                                : et_error_get(p->cx)->message);
    et_error_clear(p->cx);
    p->over = true;
}

static size_t
write_begin(struct etd_replay *p)
{
    struct etd_out out;
    const struct etd_head head = head_of(p, ETD_SNAP_BEGIN);
    etd_begin(&out, p->bytes, sizeof p->bytes, &head, 4);
    etd_put_int(&out, "s", p->seq);
    etd_put_int(&out, "bytes", (int64_t)(p->n_payload - p->n_facts));
    etd_put_int(&out, "facts", (int64_t)p->n_facts);
    etd_put_bin(&out, "digest", p->digest, ETD_DIGEST);
    return etd_end(&out);
}

static size_t
write_chunk(struct etd_replay *p, size_t n)
{
    struct etd_out out;
    const struct etd_head head = head_of(p, ETD_SNAP_CHUNK);
    etd_begin(&out, p->bytes, sizeof p->bytes, &head, 2);
    etd_put_int(&out, "at", (int64_t)p->at);
    etd_put_bin(&out, "data", p->payload + p->at, n);
    return etd_end(&out);
}

/* Frees the snapshot and the model: all of it was sent. */
static void
forget_model(struct etd_replay *p)
{
    if (!p->follow)
        return;
    etd_follow_close(&p->follow);
    --*p->models;
    et_free(p->cx, p->payload);
    p->payload = NULL;
}

static void
send_snapshot(struct etd_replay *p)
{
    struct etd_out out;
    const struct etd_head end = head_of(p, ETD_SNAP_END);
    if (!p->has_begun && !send_frame(p, write_begin(p)))
        return;
    p->has_begun = true;
    while (p->at < p->n_payload) {
        size_t left = p->n_payload - p->at, n = left < CHUNK ? left : CHUNK;
        if (p->credit <= 0 || !send_frame(p, write_chunk(p, n)))
            return;
        p->credit--;
        p->at += n;
        p->moved = eti_monotonic(p->cx);
    }
    etd_begin(&out, p->bytes, sizeof p->bytes, &end, 0);
    if (!send_frame(p, etd_end(&out)))
        return;
    forget_model(p);
    p->stage = TOLD;
}

/* ---- records ---- */

/* How it ended, for a viewer that saw it go on. */
static void
send_facts(struct etd_replay *p)
{
    struct etd_out out;
    const struct etd_head head = head_of(p, ETD_FACTS);
    char *facts = facts_text(p);
    if (!facts)
        return;
    etd_begin(&out, p->bytes, sizeof p->bytes, &head, 1);
    etd_put_bin(&out, "facts", facts, strlen(facts));
    (void)send_frame(p, etd_end(&out)); /* (more than 64 KiB: it does without) */
    free(facts);
}

/* The next frame of the record that is held. False: not now. */
static bool
send_part(struct etd_replay *p)
{
    const struct etd_head head = head_of(p, (enum etd_kind)p->held.kind);
    int from = p->from;
    size_t n = etd_record_write(p->bytes, ETD_RECORD_BYTES, &head, &p->held, &from);
    if (p->credit <= 0 || (n > 0 && !send_frame(p, n)))
        return false;
    p->credit--;
    p->from = from;
    p->holds = n > 0 && from < p->held.n;
    return true;
}

static void
send_records(struct etd_replay *p)
{
    double end = eti_monotonic(p->cx) + SLICE;
    for (int i = 1;; i++) {
        bool got;
        while (p->holds)
            if (!send_part(p))
                return;
        if (et_events_next(p->log, &p->held, &got) != ET_OK || !got) {
            et_error_clear(p->cx); /* damage: what follows cannot be told */
            send_facts(p);
            p->stage = TOLD;
            return;
        }
        p->holds = p->held.seq > p->after;
        p->from = 0;
        if (i % STRIDE == 0 && eti_monotonic(p->cx) >= end)
            return;
    }
}

/* To the records after AFTER. */
static void
rewind_to(struct etd_replay *p, int64_t after)
{
    char path[PATH_MAX + 16];
    struct et_events *log;
    snprintf(path, sizeof path, "%s/events.log", p->directory);
    if (et_events_open(p->cx, path, &log) != ET_OK) {
        et_error_clear(p->cx);
        return;
    }
    et_events_close(&p->log);
    p->log = log;
    p->holds = false;
    p->after = after;
    p->stage = RECORDS;
}

/* ---- what the viewer says ---- */

/* It takes MORE messages. */
static void
give_credit(struct etd_replay *p, int64_t more)
{
    int64_t room = MOST_CREDIT - p->credit;
    if (more > 0)
        p->credit += more < room ? more : room;
}

static void
on_ping(struct etd_replay *p, const struct etd_frame *f)
{
    struct etd_out out;
    const struct etd_head head = head_of(p, ETD_PONG);
    give_credit(p, etd_get_int(&f->body, "credit", 0));
    bool digest = p->has_digest && etd_get_bool(&f->body, "digest", false);
    etd_begin(&out, p->bytes, sizeof p->bytes, &head, 2 * digest);
    if (digest) {
        etd_put_int(&out, "at", p->seq);
        etd_put_bin(&out, "digest", p->digest, ETD_DIGEST);
    }
    (void)send_frame(p, etd_end(&out));
}

static void
on_hist(struct etd_replay *p, const struct etd_frame *f)
{
    double now = eti_monotonic(p->cx);
    p->questions += QUESTIONS * (now - p->filled);
    p->questions = p->questions < QUESTIONS ? p->questions : QUESTIONS;
    p->filled = now;
    if (p->questions < 1)
        return;
    p->questions -= 1;
    if (!p->hist && etd_hist_new(p->cx, p->directory, p->readers, &p->hist) != ET_OK)
        et_error_clear(p->cx);
    if (p->hist)
        etd_hist_ask(p->hist, f);
}

static void
answer_hist(struct etd_replay *p)
{
    const struct etd_head head = head_of(p, ETD_HIST);
    size_t n = p->hist ? etd_hist_answer(p->hist, &head, p->bytes, sizeof p->bytes) : 0;
    if (n > 0 && send_frame(p, n))
        etd_hist_sent(p->hist);
}

void
etd_replay_message(struct etd_replay *p, const struct etd_frame *f)
{
    int64_t from = etd_get_int(&f->body, "from", 0);
    if (f->head.kind == ETD_PING)
        on_ping(p, f);
    else if (f->head.kind == ETD_HIST)
        on_hist(p, f);
    else if (f->head.kind == ETD_NACK && from > 0 && p->stage >= RECORDS)
        rewind_to(p, from - 1);
}

/* ---- all ---- */

/* A run that was resumed has a hub again, which knows more. */
static bool
goes_on_again(struct etd_replay *p)
{
    json_t *facts;
    double now = eti_monotonic(p->cx);
    if (now - p->looked < LOOK)
        return false;
    p->looked = now;
    if (eti_facts_read_state(p->cx, p->directory, &facts) != ET_OK) {
        et_error_clear(p->cx);
        return false;
    }
    eti_facts_make_true(facts);
    bool alive = eti_facts_is_alive(facts);
    json_decref(facts);
    return alive;
}

bool
etd_replay_step(struct etd_replay *p)
{
    p->blocked = false;
    if (!p->over && goes_on_again(p)) {
        say_bye(p, "GONE", "the run goes on again");
        p->over = true;
    }
    if (!p->over && p->stage == READING)
        read_on(p);
    if (!p->over && p->stage == SNAPSHOT)
        send_snapshot(p);
    if (p->stage == SNAPSHOT && eti_monotonic(p->cx) - p->moved >= BEHIND) {
        say_bye(p, "LAGGED", "nothing of the run was taken for 10 s");
        p->over = true;
    }
    if (!p->over && p->stage == RECORDS)
        send_records(p);
    if (!p->over)
        answer_hist(p);
    if (!p->over && p->stage == TOLD && !p->stays)
        say_bye(p, "END", "the run has ended");
    return !p->over;
}

bool
etd_replay_is_busy(const struct etd_replay *p)
{
    bool sends = p->stage == SNAPSHOT || p->stage == RECORDS;
    return p->stage == READING || (sends && p->credit > 0 && !p->blocked);
}

bool
etd_replay_is_reading(const struct etd_replay *p)
{
    return etd_hist_is_asked(p->hist);
}

et_status
etd_replay_open(struct et_ctx *cx, const struct etd_replay_options *o,
                struct etd_replay **out)
{
    void *block;
    const char *directory = json_string_value(json_object_get(o->facts, "directory"));
    const char *name = json_string_value(json_object_get(o->facts, "name"));
    *out = NULL;
    if (!directory || strlen(directory) >= PATH_MAX || !name)
        return ET_FAIL(cx, ET_EFORMAT, "the run's run.json does not say what it is");
    const bool is_viewer = strcmp(o->role, "viewer") == 0;
    if (o->after < 0 &&
        *o->models >= (is_viewer ? ETD_REPLAY_OF_VIEWERS : ETD_REPLAY_MODELS))
        return ET_FAIL(cx, ET_ECANCELED,
                       "%d ended runs are being read here already: try again in some "
                       "seconds",
                       *o->models);
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_replay *p = block;
    p->cx = cx;
    p->send = o->send;
    p->data = o->data;
    p->stays = o->stays;
    p->readers = o->readers;
    p->models = o->models;
    give_credit(p, o->credit > 0 ? o->credit : ETD_CREDIT);
    p->looked = p->filled = eti_monotonic(cx);
    p->questions = QUESTIONS;
    snprintf(p->directory, sizeof p->directory, "%s", directory);
    (void)etd_run_id(json_string_value(json_object_get(o->facts, "id")), p->head.run);
    et_status status = ET_OK;
    if (o->after < 0) {
        status = etd_follow_open(cx, directory, &p->follow);
        *p->models += status == ET_OK;
    } else {
        rewind_to(p, o->after);
        if (!p->log)
            status = ET_FAIL(cx, ET_EIO, "its events.log cannot be read");
    }
    if (status != ET_OK) {
        etd_replay_close(&p);
        return status;
    }
    say_welcome(p, o, name);
    *out = p;
    return ET_OK;
}

void
etd_replay_close(struct etd_replay **out)
{
    struct etd_replay *p = *out;
    *out = NULL;
    if (!p)
        return;
    forget_model(p);
    etd_hist_free(&p->hist);
    et_events_close(&p->log);
    et_free(p->cx, p);
}
