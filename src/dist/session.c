/* session.c: see session.h.
 *
 * A viewer's key may only watch: of what it sends, HELLO, NACK, HIST, PING and BYE
 * reach a hub. (The hub takes whoever is of its own uid for an operator, as the worker
 * is.) */
#include "config.h"

#include "dist/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/run/facts.h"
#include "core/run/index.h"
#include "dist/child.h"
#include "dist/endpoint.h"
#include "dist/errors.h"
#include "dist/host.h"

enum {
    RUNS = 200, /* told of at most, the newest */
    RECIPE = 200 << 10,
    ARGS = 32,              /* of a recipe that is sent */
    SAID = 2048,            /* bytes of what `train` says that are kept */
    LOAD_BYTES = 128 << 10, /* of one message */
};
static const double GPU_SECONDS = 10; /* a driver that was not loaded takes some */

enum talk { TALK_NONE, TALK_HOST, TALK_RUN };

struct etd_session {
    struct etd_host *host;
    char who[ETD_WORD];
    bool is_operator;
    bool (*send)(void *data, const void *bytes, size_t n);
    void *data;
    enum talk talk;
    bool over;
    struct etd_line *line;         /* to the hub */
    unsigned char run[ETD_RUN_ID]; /* whose it is to be */
    const char *held; /* of the hub, that the viewer did not take; NULL: none */
    size_t n_held;
    json_t *runs; /* being told; NULL: none are */
    size_t next_run;
    struct etd_child gpus; /* what it says of them goes into MACHINE */
    double gpus_until;     /* monotonic */
    int64_t load;          /* bytes that are still to be sent */
    bool waits;            /* for the answer to */
    unsigned char start_id[ETD_CMD_ID];
    char bytes[ETD_CHUNK_BYTES];
};

/* ---- answering ---- */

static struct etd_head
head_of(const struct etd_session *s, enum etd_kind kind)
{
    return (struct etd_head){.kind = kind,
                             .t_mono_ns = (int64_t)(1e9 * eti_monotonic(s->host->cx))};
}

static bool
say(struct etd_session *s, enum etd_kind kind, const char *code, const char *text)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = head_of(s, kind);
    etd_begin(&o, bytes, sizeof bytes, &head, 2);
    etd_put_text(&o, "code", code);
    etd_put_text(&o, "text", text);
    return s->send(s->data, bytes, etd_end(&o));
}

void
etd_session_bye(struct etd_session *s, const char *code, const char *text)
{
    (void)say(s, ETD_BYE, code, text);
    s->over = true;
}

static void
refuse(struct etd_session *s, const char *code, const char *text)
{
    (void)say(s, ETD_REFUSE, code, text);
    s->over = true;
}

static void
answer(struct etd_session *s, const unsigned char *id, enum etd_kind kind, int code,
       const char *text)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_answer a = {.kind = kind, .code = code};
    const struct etd_head head = head_of(s, kind);
    memcpy(a.id, id, sizeof a.id);
    snprintf(a.text, sizeof a.text, "%s", text);
    (void)s->send(s->data, bytes, etd_answer_write(bytes, sizeof bytes, &head, &a));
}

/* ---- the host itself ---- */

static int
count_gpus(void)
{
    struct stat st;
    /* One folder for each; links to a folder count "." and each child's "..". */
    return stat("/proc/driver/nvidia/gpus", &st) == 0 && st.st_nlink > 2
               ? (int)st.st_nlink - 2
               : 0;
}

static void
welcome_host(struct etd_session *s)
{
    char bytes[ETD_CONTROL_BYTES], name[256] = "";
    struct etd_out o;
    const struct etd_head head = head_of(s, ETD_WELCOME);
    (void)gethostname(name, sizeof name - 1);
    etd_begin(&o, bytes, sizeof bytes, &head, 7);
    etd_put_int(&o, "minor", ETD_MINOR);
    etd_put_bool(&o, "worker", true);
    etd_put_text(&o, "name", name);
    etd_put_text(&o, "role", s->is_operator ? "operator" : "viewer");
    etd_put_text(&o, "version", PACKAGE_VERSION);
    etd_put_int(&o, "cores", sysconf(_SC_NPROCESSORS_ONLN));
    etd_put_int(&o, "gpus", count_gpus());
    (void)s->send(s->data, bytes, etd_end(&o));
    s->talk = TALK_HOST;
}

/* The newest runs, or those that are ALIVE. */
static json_t *
list_runs(struct etd_session *s, bool alive)
{
    struct eti_index *index;
    json_t *list = NULL;
    if (eti_index_open(s->host->cx, NULL, &index) == ET_OK) {
        et_status status = eti_index_update(index, "runs", false);
        if (status == ET_OK)
            status = alive ? eti_index_live(index, &list)
                           : eti_index_list(index, RUNS, &list);
        if (status != ET_OK)
            list = NULL;
        eti_index_close(&index);
    }
    et_error_clear(s->host->cx);
    return list;
}

/* Tells of as many runs as the viewer takes now. */
static void
tell_runs(struct etd_session *s)
{
    size_t n = s->runs ? json_array_size(s->runs) : 0;
    const struct etd_head head = head_of(s, ETD_RUNS);
    while (s->runs && s->next_run <= n) {
        bool last = s->next_run == n;
        char *text =
            last ? NULL
                 : json_dumps(json_array_get(s->runs, s->next_run), JSON_COMPACT);
        struct etd_out o;
        etd_begin(&o, s->bytes, sizeof s->bytes, &head, 1 + !!text + last);
        etd_put_int(&o, "i", (int64_t)s->next_run);
        if (text)
            etd_put_bin(&o, "facts", text, strlen(text));
        if (last)
            etd_put_bool(&o, "done", true);
        free(text);
        size_t size = etd_end(&o); /* 0: facts of more than 64 KiB are left out */
        if (size > 0 && !s->send(s->data, s->bytes, size))
            return;
        s->next_run++;
    }
    json_decref(s->runs);
    s->runs = NULL;
}

/* ---- being tested ---- */

static void
tell_machine(struct etd_session *s, const char *gpus)
{
    struct etd_host_facts facts = {0};
    const struct etd_head head = head_of(s, ETD_MACHINE);
    json_t *list = list_runs(s, true), *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (facts.runs++ == 0 && name)
            snprintf(facts.run, sizeof facts.run, "%.63s", name);
    }
    json_decref(list);
    etd_host_look(&facts);
    etd_host_read_gpus(gpus, &facts);
    (void)s->send(s->data, s->bytes,
                  etd_host_write(s->bytes, sizeof s->bytes, &head, &facts));
}

static void
on_machine(struct etd_session *s)
{
    if (s->gpus.pid > 0)
        return; /* it is being found out */
    s->gpus_until = eti_monotonic(s->host->cx) + GPU_SECONDS;
    if (!etd_child_start(&s->gpus, etd_host_gpu_query[0], etd_host_gpu_query, false))
        tell_machine(s, ""); /* no such program: no such GPUs */
}

static void
step_gpus(struct etd_session *s)
{
    int status;
    if (etd_child_step(&s->gpus, &status)) {
        bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        tell_machine(s, fine ? s->gpus.said : "");
    } else if (s->gpus.pid > 0 && eti_monotonic(s->host->cx) >= s->gpus_until) {
        etd_child_kill(&s->gpus); /* a driver that hangs */
        tell_machine(s, "");
    }
}

/* As much as the viewer takes now. */
static void
step_load(struct etd_session *s)
{
    static const char nothing[LOAD_BYTES];
    const struct etd_head head = head_of(s, ETD_LOAD);
    while (s->load > 0) {
        struct etd_out o;
        size_t n = s->load < LOAD_BYTES ? (size_t)s->load : LOAD_BYTES;
        bool last = s->load == (int64_t)n;
        etd_begin(&o, s->bytes, sizeof s->bytes, &head, 1 + last);
        etd_put_bin(&o, "data", nothing, n);
        if (last)
            etd_put_bool(&o, "done", true);
        if (!s->send(s->data, s->bytes, etd_end(&o)))
            return;
        s->load -= (int64_t)n;
    }
}

static void
on_load(struct etd_session *s, const struct etd_frame *f)
{
    int64_t n = etd_get_int(&f->body, "bytes", 0);
    if (s->load > 0 || n < 1)
        return; /* one at a time */
    s->load = n < ETD_LOAD_MOST ? n : ETD_LOAD_MOST;
    step_load(s);
}

/* ---- starting a recipe ---- */

static void
say_answer(struct etd_session *s, const struct etd_answer *a)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = head_of(s, a->kind);
    (void)s->send(s->data, bytes, etd_answer_write(bytes, sizeof bytes, &head, a));
}

static void
on_start(struct etd_session *s, const struct etd_frame *f)
{
    struct etd_answer a;
    unsigned char id[ETD_CMD_ID] = {0};
    if (!etd_get_id(&f->body, "id", id, sizeof id)) {
        etd_session_bye(s, "MALFORMED", "START has no id");
    } else if (!s->is_operator) {
        answer(s, id, ETD_REJECTED, ETD_E_ROLE, "a viewer's key starts nothing");
    } else if (s->waits) {
        answer(s, id, ETD_REJECTED, ETD_E_FULL, "another recipe is being started");
    } else if (!etd_start_take(&s->host->starts, f, count_gpus(), &a)) {
        say_answer(s, &a);
    } else {
        s->waits = true;
        memcpy(s->start_id, id, sizeof s->start_id);
        answer(s, id, ETD_RECEIVED, 0, "");
    }
}

static void
step_start(struct etd_session *s)
{
    struct etd_answer a;
    if (!s->waits || !etd_start_answer(&s->host->starts, s->start_id, &a))
        return;
    memcpy(a.id, s->start_id, sizeof a.id);
    s->waits = false;
    say_answer(s, &a);
}

/* ---- a run ---- */

static bool
is_known(struct etd_session *s, const char *name)
{
    struct eti_index *index;
    json_t *facts = NULL;
    if (eti_index_open(s->host->cx, NULL, &index) == ET_OK) {
        if (eti_index_find(index, "runs", name, &facts) != ET_OK)
            facts = NULL;
        eti_index_close(&index);
    }
    et_error_clear(s->host->cx);
    bool found = facts != NULL;
    json_decref(facts);
    return found;
}

/* Facts of the run NAME, or of the newest that is alive; NULL with *WHY. */
static json_t *
find_run(struct etd_session *s, const char *name, const char **why)
{
    json_t *list = list_runs(s, true), *found = NULL;
    *why = name[0] ? "no run of that name is known here" : "no run is going on here";
    for (size_t i = 0; i < json_array_size(list) && !found; i++) {
        json_t *facts = json_array_get(list, i);
        const char *called = json_string_value(json_object_get(facts, "name"));
        if (!name[0] || (called && strcmp(called, name) == 0))
            found = json_incref(facts);
    }
    json_decref(list);
    if (!found && name[0] && is_known(s, name))
        *why = "that run has ended";
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
    (void)etd_line_send(s->line, bytes, etd_end(&o));
}

static et_status
begin_run(struct etd_session *s, const struct etd_frame *f)
{
    char name[ET_RUN_NAME], path[ETD_SOCKET_PATH];
    const char *why;
    etd_get_text(&f->body, "run", name, sizeof name);
    json_t *facts = find_run(s, name, &why);
    if (!facts) {
        refuse(s, "NO_RUN", why);
        return ET_OK;
    }
    const char *id = json_string_value(json_object_get(facts, "id"));
    et_status status = etd_endpoint_find(
        s->host->cx, json_string_value(json_object_get(facts, "name")), id, path);
    memset(s->run, 0, sizeof s->run);
    (void)etd_run_id(id, s->run);
    json_decref(facts);
    etd_line_close(&s->line);
    s->held = NULL;
    if (status == ET_OK)
        status = etd_line_open(
            s->host->cx,
            &(struct etd_line_options){.target = path, .zmq = s->host->zmq}, &s->line);
    if (status == ET_ENOMEM)
        return status;
    if (status != ET_OK) {
        /* Its hub is being started again: the viewer tries again too. */
        etd_session_bye(s, "GONE", et_error_get(s->host->cx)->message);
        et_error_clear(s->host->cx);
        return ET_OK;
    }
    s->talk = TALK_RUN;
    pass_hello(s, f);
    return ET_OK;
}

/* The hub's WELCOME, with the role that the viewer's key has. */
static size_t
make_welcome(struct etd_session *s, const struct etd_frame *f)
{
    char name[ET_RUN_NAME], lease[ETD_WORD];
    struct etd_out o;
    etd_get_text(&f->body, "lease", lease, sizeof lease);
    etd_begin(&o, s->bytes, sizeof s->bytes, &f->head, 7 + 2 * !!lease[0]);
    etd_put_int(&o, "minor", etd_get_int(&f->body, "minor", 0));
    etd_put_text(&o, "name", etd_get_text(&f->body, "name", name, sizeof name));
    etd_put_text(&o, "role", s->is_operator ? "operator" : "viewer");
    etd_put_int(&o, "beat_ms", etd_get_int(&f->body, "beat_ms", 1000));
    etd_put_int(&o, "head", etd_get_int(&f->body, "head", 0));
    etd_put_bool(&o, "goes_on", etd_get_bool(&f->body, "goes_on", false));
    etd_put_int(&o, "clients", etd_get_int(&f->body, "clients", ETD_CLIENTS));
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
        answer(s, c.id, ETD_REJECTED, ETD_E_ROLE, "a viewer's key gives no commands");
        return;
    }
    if (!is_viewers(f->head.kind) && f->head.kind != ETD_CMD)
        return;
    if (n > ETD_INBOUND_BYTES || !etd_line_send(s->line, bytes, n))
        etd_session_bye(s, "LAGGED", "the hub takes nothing more");
}

static void
step_hub(struct etd_session *s)
{
    while (s->line && !s->over) {
        struct etd_frame f;
        struct etd_fault fault;
        if (!s->held) {
            switch (etd_line_receive(s->line, &s->held, &s->n_held)) {
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
                /* A run of the same name has the place while its own hub starts. */
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
    if (f.head.kind == ETD_HELLO && !etd_get_bool(&f.body, "worker", false))
        return begin_run(s, &f);
    if (f.head.kind == ETD_HELLO) {
        welcome_host(s);
    } else if (s->talk == TALK_RUN) {
        pass_to_hub(s, &f, bytes, n);
    } else if (s->talk == TALK_NONE) {
        etd_session_bye(s, "UNKNOWN", "say HELLO first");
    } else if (f.head.kind == ETD_PING) {
        struct etd_out o;
        const struct etd_head head = head_of(s, ETD_PONG);
        etd_begin(&o, s->bytes, sizeof s->bytes, &head, 0);
        (void)s->send(s->data, s->bytes, etd_end(&o));
    } else if (f.head.kind == ETD_RUNS && !s->runs) {
        s->runs = list_runs(s, false);
        s->next_run = 0;
        if (!s->runs)
            s->runs = json_array();
        tell_runs(s);
    } else if (f.head.kind == ETD_START) {
        on_start(s, &f);
    } else if (f.head.kind == ETD_MACHINE) {
        on_machine(s);
    } else if (f.head.kind == ETD_LOAD) {
        on_load(s, &f);
    }
    if (f.head.kind == ETD_BYE)
        s->over = true;
    return ET_OK;
}

int
etd_session_hub_fd(const struct etd_session *s)
{
    return s->line ? etd_line_fd(s->line) : -1;
}

int
etd_session_child_fd(const struct etd_session *s)
{
    return s->gpus.pid > 0 ? s->gpus.fd : -1;
}

bool
etd_session_step(struct etd_session *s)
{
    step_start(s);
    step_gpus(s);
    step_load(s);
    if (s->runs)
        tell_runs(s);
    step_hub(s);
    return !s->over;
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
    etd_line_close(&s->line);
    json_decref(s->runs);
    etd_child_kill(&s->gpus);
    et_free(s->host->cx, s);
}
