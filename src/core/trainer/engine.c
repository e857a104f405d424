/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c: who is called at an event, and in which order.
 *
 * match is asked of all algorithms in user order before any is applied; then the passes
 * of spec/algorithms.md 1.3, then the user's, order those that matched; then they are
 * applied. Callbacks and loggers are never reordered. Differs from Composer:
 * SelectiveBackprop really comes first on AFTER_DATALOADER (D1). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "etude/span.h"
#include "core/base/need.h"
#include "core/base/seams.h"
#include "core/trainer/engine.h"
#include "core/trainer/state.h"

static const char *const event_names[] = {
#define ROW(code, number, text) [number] = text,
    ET_EVENT_MAP(ROW)
#undef ROW
};

const char *
et_event_name(enum et_event e)
{
    return event_names[e];
}

et_status
et_event_parse(struct et_ctx *cx, const char *text, enum et_event *out)
{
    ETI_NEED(cx, text);
    for (int e = 0; e < ET_EVENT_COUNT; e++)
        if (strcasecmp(text, event_names[e]) == 0) {
            *out = (enum et_event)e;
            return ET_OK;
        }
    return ET_FAIL(cx, ET_EINVAL, "'%s' is not one of the %d events", text,
                   ET_EVENT_COUNT);
}

bool
et_event_is_reversed(enum et_event e)
{
    return strncmp(event_names[e], "after_", 6) == 0;
}

const char *
et_event_canonical(enum et_event e, char *buf, size_t n)
{
    if (!buf)
        return NULL;
    static const char *const endings[] = {"_start", "_end"};
    const char *name = event_names[e], *at;
    size_t used = 0, length = strlen(name);
    for (int i = 0; i < 2; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(name + length - ending, endings[i]) == 0) {
            length -= ending;
            break;
        }
    }
    for (at = name; at < name + length && used + 1 < n;) {
        bool first = at == name || at[-1] == '_';
        if (first && strncmp(at, "before_", 7) == 0)
            at += 7;
        else if (first && strncmp(at, "after_", 6) == 0)
            at += 6;
        else
            buf[used++] = *at++;
    }
    buf[used] = '\0';
    return buf;
}

static void
warn_of_two_interpolations(struct et_state *s, struct et_algorithm **list, int n)
{
    const struct et_algorithm *first = NULL;
    for (int i = 0; i < n; i++) {
        const struct et_algorithm *a = list[i];
        if (!a->type->interpolates_loss || !a->type->interpolates_loss(a))
            continue;
        if (first)
            et_report(s->cx, ET_LOG_WARN,
                      "%s and %s both interpolate the loss; they are not meant to be "
                      "combined",
                      first->type->info.name, a->type->info.name);
        first = a;
    }
}

/* ETUDE_ENGINE_DEBUG=1: a line for every event and everyone called at it. */
static void
explain(const struct et_state *s, enum et_event event, const char *called)
{
    const char *name = et_event_name(event);
    char evaluation[32] = "";
    if (!s->explains)
        return;
    if (strncmp(name, "eval_", 5) == 0)
        snprintf(evaluation, sizeof evaluation, "[eval_ba=%lld]",
                 (long long)s->eval_timestamp.batch);
    if (strncmp(name, "predict_", 8) == 0)
        snprintf(evaluation, sizeof evaluation, "[predict_ba=%lld]",
                 (long long)s->predict_timestamp.batch);
    et_report(s->cx, ET_LOG_INFO, "[ep=%lld][ba=%lld]%s[event=%s]: %s",
              (long long)s->timestamp.epoch, (long long)s->timestamp.batch, evaluation,
              name, called);
}

static et_status
run_callbacks(struct et_state *s, enum et_event event, bool loggers)
{
    for (int i = 0; i < s->n_callbacks; i++) {
        struct et_callback *c = s->callbacks[i];
        if (c->type->is_logger != loggers ||
            !(c->type->events & (UINT64_C(1) << event)))
            continue;
        explain(s, event, c->type->info.name);
        const char *category = loggers ? "logger" : "callback";
        et_span_begin(s->cx, category, c->type->info.name, et_event_name(event));
        et_status status = c->type->run(c, event, s, s->log);
        et_span_end(s->cx, category, c->type->info.name);
        ET_TRY(status);
        if (c->stop) {
            et_state_stop(s, c->stop);
            snprintf(s->stopped_by, sizeof s->stopped_by, "%s", c->type->info.name);
            snprintf(s->stopped_why, sizeof s->stopped_why, "%s", c->stop);
        }
        c->stop = NULL;
        s->eval_enough |= c->enough;
        c->enough = false;
    }
    return ET_OK;
}

static void
show_trace(const struct et_state *s, const struct et_algorithm *a, enum et_event event)
{
    for (int i = 0; i < s->n_callbacks; i++)
        if (s->callbacks[i]->type->trace)
            s->callbacks[i]->type->trace(s->callbacks[i], s, a, event);
}

static et_status
run_algorithms(struct et_state *s, enum et_event event, struct et_trace *traces,
               int *n_traces)
{
    struct et_algorithm *list[ET_MAX_ALGORITHMS];
    int n = 0;
    for (int i = 0; i < s->n_algorithms && n < ET_MAX_ALGORITHMS; i++) {
        struct et_algorithm *a = s->algorithms[i];
        if (a->off || !(a->type->events & (UINT64_C(1) << event)))
            continue;
        a->count.fired++;
        if (!a->type->match || a->type->match(a, event, s))
            list[n++] = a;
    }
    ET_TRY(eti_passes_run(s->cx, s->passes, s->n_passes, list, n, event));
    if (event == ET_EVENT_FIT_START)
        warn_of_two_interpolations(s, s->algorithms, s->n_algorithms);
    for (int i = 0; i < n; i++) {
        explain(s, event, list[i]->type->info.name);
        const char *name = list[i]->type->info.name;
        et_span_begin(s->cx, "algorithm", name, et_event_name(event));
        double start = eti_monotonic(s->cx);
        et_status status = list[i]->type->apply(list[i], event, s, s->log);
        list[i]->count.seconds += eti_monotonic(s->cx) - start;
        list[i]->count.applied++;
        list[i]->count.last_ba = s->timestamp.batch;
        et_span_end(s->cx, "algorithm", name);
        ET_TRY(status);
        show_trace(s, list[i], event);
        if (traces)
            traces[i] = (struct et_trace){list[i], event, i};
    }
    if (n_traces)
        *n_traces = n;
    return ET_OK;
}

/* A batch must exist where one is promised; a hook that broke that is named here. */
static et_status
check(const struct et_state *s, enum et_event event)
{
    bool before_data = event <= ET_EVENT_AFTER_LOAD || event == ET_EVENT_LOADING ||
                       event == ET_EVENT_EVAL_STANDALONE_START ||
                       event == ET_EVENT_EVAL_STANDALONE_END;
    if (!before_data && !s->dataloader_label)
        return ET_FAIL(s->cx, ET_EINTERNAL, "%s fired without an active data loader",
                       et_event_name(event));
    return ET_OK;
}

/* ---- spans: from a _start or before_ event to the _end or after_ one ---- */

static bool
ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), length = strlen(ending);
    return n > length && strcmp(name + n - length, ending) == 0;
}

static void
end_span(const struct et_state *s, enum et_event event)
{
    const char *name = et_event_name(event);
    char span[32];
    if (!et_ctx_tracer(s->cx))
        return;
    if (event == ET_EVENT_EPOCH_END) /* the last BEFORE_DATALOADER has no AFTER_ */
        et_span_end(s->cx, "event", "dataloader");
    if (strstr(name, "after_") || ends_with(name, "_end"))
        et_span_end(s->cx, "event", et_event_canonical(event, span, sizeof span));
}

static void
begin_span(const struct et_state *s, enum et_event event)
{
    const char *name = et_event_name(event);
    char span[32];
    if (!et_ctx_tracer(s->cx) ||
        !(strstr(name, "before_") || ends_with(name, "_start")))
        return;
    et_event_canonical(event, span, sizeof span);
    et_span_end(s->cx, "event", span); /* of an attempt that ran out of memory */
    et_span_begin(s->cx, "event", span, NULL);
}

static et_status
run_hooks(struct et_state *s, enum et_event event, struct et_trace *traces, int *n)
{
    if (event == ET_EVENT_INIT) {
        ET_TRY(run_callbacks(s, event, true));
        ET_TRY(run_callbacks(s, event, false));
        return run_algorithms(s, event, traces, n);
    }
    ET_TRY(run_algorithms(s, event, traces, n));
    ET_TRY(run_callbacks(s, event, false));
    return run_callbacks(s, event, true);
}

static et_status
announce(const struct et_state *s, enum et_event event)
{
    ET_TRY(check(s, event));
    explain(s, event, "event");
    eti_reach(s->cx, et_event_name(event));
    end_span(s, event);
    return ET_OK;
}

et_status
et_engine_run(struct et_state *s, enum et_event event, struct et_trace *traces, int *n)
{
    ETI_NEED(s ? s->cx : NULL, s);
    if (n)
        *n = 0;
    ET_TRY(announce(s, event));
    ET_TRY(run_hooks(s, event, traces, n));
    begin_span(s, event);
    return ET_OK;
}

et_status
eti_engine_act(struct et_state *s, enum et_event event)
{
    ET_TRY(announce(s, event));
    return run_algorithms(s, event, NULL, NULL);
}

et_status
eti_engine_watch(struct et_state *s, enum et_event event)
{
    ET_TRY(run_callbacks(s, event, false));
    return run_callbacks(s, event, true);
}

bool
eti_engine_waits(const struct et_state *s, enum et_event event)
{
    for (int i = 0; i < s->n_callbacks; i++) {
        const struct et_callback *c = s->callbacks[i];
        if (!c->type->is_logger && (c->type->events & (UINT64_C(1) << event)) &&
            !(c->type->trails && c->type->trails(c, s)))
            return true;
    }
    return false;
}
