/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: see session.h.
 *
 * A viewer's key may only watch: of what it sends, HELLO, NACK, HIST, PING and BYE
 * reach a hub. (The hub takes whoever is of its own uid for an operator, as the worker
 * is.) */
#include "config.h"

#include "dist/worker/session_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/library/facts.h"
#include "core/library/index.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "dist/wire/piece.h"
#include "dist/wire/router.h"

/* ---- answering ---- */

struct etd_head
etd_session_head(const struct etd_session *s, enum etd_kind kind)
{
    return (struct etd_head){.kind = kind,
                             .t_mono_ns = (int64_t)(1e9 * eti_monotonic(s->host->cx))};
}

static bool
say(struct etd_session *s, enum etd_kind kind, const char *code, const char *text)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = etd_session_head(s, kind);
    return s->send(s->data, bytes,
                   etd_reason_write(bytes, sizeof bytes, &head, code, text));
}

/* ---- answers that wait ---- */

static bool
keep_waiting(struct etd_session *s, const void *bytes, size_t n)
{
    void *copy;
    if (s->n_waiting == ETD_SESSION_WAITING ||
        s->waiting_bytes + n > ETD_SESSION_WAITING_BYTES)
        return false;
    if (et_alloc(s->host->cx, n, &copy) != ET_OK) {
        et_error_clear(s->host->cx);
        return false;
    }
    memcpy(copy, bytes, n);
    s->waiting[s->n_waiting++] = (struct etd_session_answer){copy, n};
    s->waiting_bytes += n;
    return true;
}

void
etd_session_say(struct etd_session *s, const void *bytes, size_t n)
{
    if (n == 0 || s->talk == TALK_OVER ||
        (s->n_waiting == 0 && s->send(s->data, bytes, n)))
        return;
    if (!keep_waiting(s, bytes, n))
        etd_session_bye(s, "LAGGED", "more was asked than is taken");
}

/* True: nothing waits any more. */
static bool
send_waiting(struct etd_session *s)
{
    int done = 0;
    for (; done < s->n_waiting; done++) {
        struct etd_session_answer *a = &s->waiting[done];
        if (!s->send(s->data, a->bytes, a->n))
            break;
        s->waiting_bytes -= a->n;
        et_free(s->host->cx, a->bytes);
    }
    s->n_waiting -= done;
    memmove(s->waiting, s->waiting + done, (size_t)s->n_waiting * sizeof *s->waiting);
    return s->n_waiting == 0;
}

/* Lets go of all that was under way. */
static void
end_talk(struct etd_session *s)
{
    s->talk = TALK_OVER;
    s->held = NULL;
    etd_channel_close(&s->channel);
    etd_replay_close(&s->replay);
    json_decref(s->runs);
    s->runs = NULL;
    etd_child_kill(&s->gpus);
    while (s->n_waiting > 0)
        et_free(s->host->cx, s->waiting[--s->n_waiting].bytes);
    s->waiting_bytes = 0;
    s->load = 0;
    s->waits = false;
}

void
etd_session_bye(struct etd_session *s, const char *code, const char *text)
{
    if (s->talk != TALK_OVER)
        (void)say(s, ETD_BYE, code, text);
    end_talk(s);
}

static void
refuse(struct etd_session *s, const char *code, const char *text)
{
    (void)say(s, ETD_REFUSE, code, text);
    end_talk(s);
}

void
etd_session_answer(struct etd_session *s, const unsigned char *id, enum etd_kind kind,
                   int code, const char *text)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_answer a = {.kind = kind, .code = code};
    const struct etd_head head = etd_session_head(s, kind);
    memcpy(a.id, id, sizeof a.id);
    snprintf(a.text, sizeof a.text, "%s", text);
    etd_session_say(s, bytes, etd_answer_write(bytes, sizeof bytes, &head, &a));
}

/* ---- a run ---- */

/* Facts of the newest run that is called NAME; NULL: none is known. */
static json_t *
find_known(struct etd_session *s, const char *name)
{
    struct eti_index *index;
    json_t *facts = NULL;
    if (et_run_name_check(s->host->cx, name) == ET_OK &&
        eti_index_open(s->host->cx, NULL, &index) == ET_OK) {
        if (eti_index_find(index, "runs", name, &facts) != ET_OK)
            facts = NULL;
        eti_index_close(&index);
    }
    et_error_clear(s->host->cx);
    /* (The index also finds runs by their directory.) */
    const char *called = json_string_value(json_object_get(facts, "name"));
    if (facts && called && strcmp(called, name) == 0)
        return facts;
    json_decref(facts);
    return NULL;
}

/* Facts of the run NAME that is alive, or of the newest that is; NULL: none is. */
static json_t *
find_alive(struct etd_session *s, const char *name)
{
    json_t *list = etd_session_runs(s, true), *found = NULL;
    for (size_t i = 0; i < json_array_size(list) && !found; i++) {
        json_t *facts = json_array_get(list, i);
        const char *called = json_string_value(json_object_get(facts, "name"));
        if (!name[0] || (called && strcmp(called, name) == 0))
            found = json_incref(facts);
    }
    json_decref(list);
    return found;
}

static void
pass_hello(struct etd_session *s, const struct etd_frame *f)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    struct etd_head head = f->head;
    int64_t after = etd_get_int(&f->body, "after", -1);
    etd_begin(&o, bytes, sizeof bytes, &head, 4 + (after >= 0));
    etd_put_int(&o, "minor", ETD_MINOR);
    etd_put_bool(&o, "stream", etd_get_bool(&f->body, "stream", true));
    etd_put_int(&o, "credit", etd_get_int(&f->body, "credit", ETD_CREDIT));
    etd_put_text(&o, "as", s->who);
    if (after >= 0)
        etd_put_int(&o, "after", after);
    (void)etd_channel_send(s->channel, bytes, etd_end(&o));
}

/* What a viewer says of a run that has ended. */
static void
answer_past(struct etd_session *s, const struct etd_frame *f)
{
    struct etd_command c;
    if (f->head.kind != ETD_CMD) {
        etd_replay_message(s->replay, f);
        return;
    }
    (void)etd_command_read(f, &c);
    etd_session_answer(s, c.id, ETD_REJECTED, ETD_E_FULL, "the run has ended");
}

/* A run that has ended, from its directory. */
static et_status
begin_past(struct etd_session *s, const struct etd_frame *f, const json_t *facts)
{
    const struct etd_replay_options o = {
        .facts = facts,
        .role = s->is_operator ? "operator" : "viewer",
        .after = etd_get_int(&f->body, "after", -1),
        .credit = etd_get_int(&f->body, "credit", ETD_CREDIT),
        .stays = f->head.minor >= 1,
        .readers = &s->host->readers,
        .models = &s->host->models,
        .send = s->send,
        .data = s->data,
    };
    if (!etd_get_bool(&f->body, "stream", true)) {
        refuse(s, "NO_RUN", "that run has ended");
        return ET_OK;
    }
    et_status status = etd_replay_open(s->host->cx, &o, &s->replay);
    if (status == ET_ENOMEM)
        return status;
    if (status == ET_OK)
        s->talk = TALK_REPLAY;
    else
        refuse(s, status == ET_ECANCELED ? "FULL" : "UNREADABLE",
               et_error_get(s->host->cx)->message);
    et_error_clear(s->host->cx);
    return ET_OK;
}

/* One that goes on: with its hub. */
static et_status
begin_alive(struct etd_session *s, const struct etd_frame *f, const json_t *facts)
{
    char path[ETD_SOCKET_PATH];
    const char *id = json_string_value(json_object_get(facts, "id"));
    et_status status = etd_endpoint_find(
        s->host->cx, json_string_value(json_object_get(facts, "name")), id, path);
    memset(s->run, 0, sizeof s->run);
    (void)etd_run_id(id, s->run);
    if (status == ET_OK)
        status = etd_channel_open(
            s->host->cx,
            &(struct etd_channel_options){.target = path, .zmq = s->host->zmq},
            &s->channel);
    if (status == ET_ENOMEM)
        return status;
    if (status != ET_OK) {
        /* The hub is being restarted: the viewer is to try again. */
        etd_session_bye(s, "GONE", et_error_get(s->host->cx)->message);
        et_error_clear(s->host->cx);
        return ET_OK;
    }
    s->talk = TALK_RUN;
    pass_hello(s, f);
    return ET_OK;
}

static et_status
begin_run(struct etd_session *s, const struct etd_frame *f)
{
    char name[ET_RUN_NAME];
    etd_get_text(&f->body, "run", name, sizeof name);
    json_t *alive = find_alive(s, name);
    json_t *facts = alive || !name[0] ? alive : find_known(s, name);
    if (!facts) {
        refuse(s, "NO_RUN",
               name[0] ? "no run of that name is known here"
                       : "no run is going on here");
        return ET_OK;
    }
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    snprintf(s->directory, sizeof s->directory, "%s", directory ? directory : "");
    et_status status = alive ? begin_alive(s, f, facts) : begin_past(s, f, facts);
    json_decref(facts);
    return status;
}

static void
on_file(struct etd_session *s, const struct etd_frame *f)
{
    const struct etd_head head = etd_session_head(s, ETD_FILE);
    if (s->held == s->bytes)
        return; /* WELCOME waits there: the viewer cannot know of files yet */
    etd_session_say(
        s, s->bytes,
        etd_piece_answer(s->directory, &head, f, s->bytes, sizeof s->bytes));
}

/* The hub's WELCOME, with the role that the viewer's key has. */
static size_t
make_welcome(struct etd_session *s, const struct etd_frame *f)
{
    char name[ET_RUN_NAME], lease[ETD_WORD];
    struct etd_out o;
    etd_get_text(&f->body, "lease", lease, sizeof lease);
    etd_begin(&o, s->bytes, sizeof s->bytes, &f->head, 8 + 2 * !!lease[0]);
    etd_put_int(&o, "minor", etd_get_int(&f->body, "minor", 0));
    etd_put_text(&o, "name", etd_get_text(&f->body, "name", name, sizeof name));
    etd_put_text(&o, "role", s->is_operator ? "operator" : "viewer");
    etd_put_int(&o, "beat_ms", etd_get_int(&f->body, "beat_ms", 1000));
    etd_put_int(&o, "head", etd_get_int(&f->body, "head", 0));
    etd_put_bool(&o, "goes_on", etd_get_bool(&f->body, "goes_on", false));
    etd_put_int(&o, "clients", etd_get_int(&f->body, "clients", ETD_CLIENTS));
    etd_put_bool(&o, "files", true);
    if (lease[0]) {
        etd_put_text(&o, "lease", lease);
        etd_put_bool(&o, "mine", etd_get_bool(&f->body, "mine", false));
    }
    return etd_end(&o);
}

static bool
is_viewers(enum etd_kind kind)
{
    return kind == ETD_NACK || kind == ETD_HIST || kind == ETD_PING || kind == ETD_BYE;
}

static void
pass_to_hub(struct etd_session *s, const struct etd_frame *f, const void *bytes,
            size_t n)
{
    struct etd_command c;
    if (f->head.kind == ETD_CMD && !s->is_operator) {
        (void)etd_command_read(f, &c);
        etd_session_answer(s, c.id, ETD_REJECTED, ETD_E_ROLE,
                           "a viewer's key gives no commands");
        return;
    }
    if (!is_viewers(f->head.kind) && f->head.kind != ETD_CMD)
        return;
    if (n > ETD_INBOUND_BYTES || !etd_channel_send(s->channel, bytes, n))
        etd_session_bye(s, "LAGGED", "the hub takes nothing more");
    else if (f->head.kind == ETD_BYE)
        etd_channel_finish(s->channel); /* so that it hears it */
}

static void
step_hub(struct etd_session *s)
{
    while (s->talk == TALK_RUN) {
        struct etd_frame f;
        struct etd_fault fault;
        if (!s->held) {
            switch (etd_channel_receive(s->channel, &s->held, &s->n_held)) {
            case ETD_GOT_NOTHING:
                s->held = NULL;
                return;
            case ETD_GOT_MESSAGE:
                break;
            case ETD_GOT_GONE:
            case ETD_GOT_DENIED:
                etd_session_bye(s, "GONE", "the run's hub is gone");
                return;
            }
            if (etd_read(s->held, s->n_held, &f, &fault) == ET_OK &&
                f.head.kind == ETD_WELCOME) {
                /* Another run of the same name may answer there while this run's hub
                 * starts. */
                if (memcmp(f.head.run, s->run, sizeof s->run) != 0) {
                    etd_session_bye(s, "GONE", "the run's hub is not there yet");
                    return;
                }
                s->n_held = make_welcome(s, &f);
                s->held = s->bytes;
            }
        }
        if (!s->send(s->data, s->held, s->n_held))
            return;
        s->held = NULL;
    }
}

/* ---- either ---- */

et_status
etd_session_message(struct etd_session *s, const void *bytes, size_t n)
{
    struct etd_frame f;
    struct etd_fault fault;
    char text[128];
    if (s->talk == TALK_OVER)
        return ET_OK;
    et_status status = etd_read(bytes, n, &f, &fault);
    if (status == ET_ENOTSUP) {
        snprintf(text, sizeof text, "worker speaks protocol %d, this is %d", ETD_MAJOR,
                 f.head.major);
        refuse(s, "VERSION", text);
        return ET_OK;
    }
    if (status != ET_OK) {
        snprintf(text, sizeof text, "malformed at byte %zu: %s", fault.at, fault.why);
        etd_session_bye(s, "MALFORMED", text);
        return ET_OK;
    }
    if (f.head.kind == ETD_HELLO && s->talk != TALK_NONE) {
        etd_session_bye(s, "UNKNOWN",
                        "HELLO begins a conversation, and this has begun");
        return ET_OK;
    }
    switch (s->talk) {
    case TALK_NONE:
        if (f.head.kind != ETD_HELLO)
            etd_session_bye(s, "UNKNOWN", "say HELLO first");
        else if (etd_get_bool(&f.body, "worker", false))
            etd_session_welcome_host(s);
        else
            return begin_run(s, &f);
        break;
    case TALK_HOST:
        etd_session_ask_host(s, &f);
        break;
    case TALK_RUN:
        if (f.head.kind == ETD_FILE)
            on_file(s, &f);
        else
            pass_to_hub(s, &f, bytes, n);
        break;
    case TALK_REPLAY:
        if (f.head.kind == ETD_FILE)
            on_file(s, &f);
        else
            answer_past(s, &f);
        break;
    case TALK_OVER:
        break;
    }
    if (f.head.kind == ETD_BYE)
        end_talk(s);
    return ET_OK;
}

int
etd_session_hub_fd(const struct etd_session *s)
{
    return s->channel ? etd_channel_fd(s->channel) : -1;
}

int
etd_session_child_fd(const struct etd_session *s)
{
    return s->gpus.pid > 0 ? s->gpus.fd : -1;
}

bool
etd_session_step(struct etd_session *s)
{
    if (s->talk == TALK_OVER || !send_waiting(s))
        return s->talk != TALK_OVER;
    etd_session_step_host(s);
    step_hub(s);
    if (s->talk == TALK_REPLAY && !etd_replay_step(s->replay))
        end_talk(s);
    return s->talk != TALK_OVER;
}

bool
etd_session_is_busy(const struct etd_session *s)
{
    return s->n_waiting == 0 && s->talk == TALK_REPLAY && etd_replay_is_busy(s->replay);
}

bool
etd_session_is_reading(const struct etd_session *s)
{
    return s->talk == TALK_REPLAY && etd_replay_is_reading(s->replay);
}

et_status
etd_session_new(struct etd_host *host, const char *who, bool is_operator,
                bool (*send)(void *data, const void *bytes, size_t n), void *data,
                struct etd_session **out)
{
    void *block;
    ET_TRY(et_alloc(host->cx, sizeof **out, &block));
    struct etd_session *s = *out = block;
    s->host = host;
    s->gpus.fd = -1;
    s->is_operator = is_operator;
    s->send = send;
    s->data = data;
    snprintf(s->who, sizeof s->who, "%s", who);
    return ET_OK;
}

void
etd_session_free(struct etd_session **out)
{
    struct etd_session *s = *out;
    *out = NULL;
    if (!s)
        return;
    end_talk(s);
    et_free(s->host->cx, s);
}
