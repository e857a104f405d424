/* SPDX-License-Identifier: Apache-2.0 */
/* session_host.c: a conversation with the host itself: see session.h. */
#include "config.h"

#include "dist/worker/session_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/library/index.h"
#include "dist/wire/errors.h"
#include "dist/worker/host.h"

enum {
    RUNS = 200,             /* told of at most, the newest */
    LOAD_BYTES = 128 << 10, /* of one message */
};
static const double GPU_SECONDS = 10; /* a driver that was not loaded takes some */

/* ---- who it is, and its runs ---- */

static int
count_gpus(void)
{
    struct stat st;
    /* One folder for each; links to a folder count "." and each child's "..". */
    return stat("/proc/driver/nvidia/gpus", &st) == 0 && st.st_nlink > 2
               ? (int)st.st_nlink - 2
               : 0;
}

void
etd_session_welcome_host(struct etd_session *s)
{
    char bytes[ETD_CONTROL_BYTES], name[256] = "";
    struct etd_out o;
    const struct etd_head head = etd_session_head(s, ETD_WELCOME);
    (void)gethostname(name, sizeof name - 1);
    etd_begin(&o, bytes, sizeof bytes, &head, 7);
    etd_put_int(&o, "minor", ETD_MINOR);
    etd_put_bool(&o, "worker", true);
    etd_put_text(&o, "name", name);
    etd_put_text(&o, "role", s->is_operator ? "operator" : "viewer");
    etd_put_text(&o, "version", PACKAGE_VERSION);
    etd_put_int(&o, "cores", sysconf(_SC_NPROCESSORS_ONLN));
    etd_put_int(&o, "gpus", count_gpus());
    s->talk = TALK_HOST;
    etd_session_say(s, bytes, etd_end(&o));
}

json_t *
etd_session_runs(struct etd_session *s, bool alive)
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
    const struct etd_head head = etd_session_head(s, ETD_RUNS);
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
    const struct etd_head head = etd_session_head(s, ETD_MACHINE);
    json_t *list = etd_session_runs(s, true), *one;
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
    etd_session_say(s, s->bytes,
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
    const struct etd_head head = etd_session_head(s, ETD_LOAD);
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
    const struct etd_head head = etd_session_head(s, a->kind);
    etd_session_say(s, bytes, etd_answer_write(bytes, sizeof bytes, &head, a));
}

static void
on_start(struct etd_session *s, const struct etd_frame *f)
{
    struct etd_answer a;
    unsigned char id[ETD_CMD_ID] = {0};
    if (!etd_get_id(&f->body, "id", id, sizeof id)) {
        etd_session_bye(s, "MALFORMED", "START has no id");
    } else if (!s->is_operator) {
        etd_session_answer(s, id, ETD_REJECTED, ETD_E_ROLE,
                           "a viewer's key starts nothing");
    } else if (s->waits) {
        etd_session_answer(s, id, ETD_REJECTED, ETD_E_FULL,
                           "another recipe is being started");
    } else if (!etd_start_take(&s->host->starts, f, count_gpus(), &a)) {
        say_answer(s, &a);
    } else {
        s->waits = true;
        memcpy(s->start_id, id, sizeof s->start_id);
        etd_session_answer(s, id, ETD_RECEIVED, 0, "");
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

/* ---- all ---- */

void
etd_session_ask_host(struct etd_session *s, const struct etd_frame *f)
{
    struct etd_out o;
    const struct etd_head head = etd_session_head(s, ETD_PONG);
    switch (f->head.kind) {
    case ETD_PING:
        etd_begin(&o, s->bytes, sizeof s->bytes, &head, 0);
        etd_session_say(s, s->bytes, etd_end(&o));
        break;
    case ETD_RUNS:
        if (s->runs)
            break; /* they are being told */
        s->runs = etd_session_runs(s, false);
        s->next_run = 0;
        if (!s->runs)
            s->runs = json_array();
        tell_runs(s);
        break;
    case ETD_START:
        on_start(s, f);
        break;
    case ETD_MACHINE:
        on_machine(s);
        break;
    case ETD_LOAD:
        on_load(s, f);
        break;
    default: /* of a later version, or for a run's hub */
        break;
    }
}

void
etd_session_step_host(struct etd_session *s)
{
    step_start(s);
    step_gpus(s);
    step_load(s);
    if (s->runs)
        tell_runs(s);
}
