/* SPDX-License-Identifier: Apache-2.0 */
/* hist.c: see hist.h. */
#include "config.h"

#include "dist/hub/hist.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/seams.h"
#include "core/base/thread.h"
#include "core/journal/events.h"

enum {
    POINTS = 2048, /* of an answer, at most */
    FEW = 512,     /* where it was not said how many */
    LOWEST = 19,   /* priority: what the machine trains goes first */
};

struct question {
    int64_t id, from, to; /* ba */
    int most;
    char series[ET_METRIC_NAME];
};

struct etd_hist {
    struct et_ctx *cx;
    int *readers;
    char path[PATH_MAX + 16];                  /* of the log */
    struct question waiting[ETD_HIST_WAITING]; /* the first is the one being answered */
    int n_waiting;
    bool reads;    /* there is a thread */
    bool is_ready; /* there is an answer: */
    struct et_series_point point[POINTS];
    int n_points;
    pthread_t thread;
    atomic_bool done, stop; /* set by the thread; for it */
};

et_status
etd_hist_new(struct et_ctx *cx, const char *directory, int *readers,
             struct etd_hist **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_hist *h = *out = block;
    h->cx = cx;
    h->readers = readers;
    snprintf(h->path, sizeof h->path, "%.*s/events.log", PATH_MAX, directory);
    return ET_OK;
}

/* ---- reading ---- */

/* The thread. It has a context of its own and touches nothing else of the struct but
 * the point that it reads, until it says that it is done. */
static void *
read_points(void *data)
{
    struct etd_hist *h = data;
    const struct question *q = &h->waiting[0];
    struct et_events *e;
    struct et_ctx *cx;
    (void)setpriority(PRIO_PROCESS, 0, LOWEST); /* of Linux: this thread's alone */
    if (et_ctx_new(&cx) == ET_OK) {
        eti_ctx_set_seams(cx, eti_ctx_seams(h->cx));
        if (et_events_open(cx, h->path, &e) == ET_OK) {
            eti_events_stop_when(e, &h->stop);
            if (et_events_fetch(e, q->series, q->from, q->to, q->most, h->point,
                                &h->n_points) != ET_OK)
                h->n_points = 0;
            et_events_close(&e);
        }
        et_ctx_free(&cx);
    }
    atomic_store(&h->done, true);
    return NULL;
}

static void
begin(struct etd_hist *h)
{
    h->n_points = 0;
    atomic_store(&h->done, false);
    h->reads = eti_thread_begin(&h->thread, read_points, h) == 0;
    *h->readers += h->reads;
    h->is_ready = !h->reads; /* without a thread it has no points */
}

static void
join(struct etd_hist *h)
{
    (void)pthread_join(h->thread, NULL);
    h->reads = false;
    --*h->readers;
}

void
etd_hist_free(struct etd_hist **out)
{
    struct etd_hist *h = *out;
    *out = NULL;
    if (!h)
        return;
    atomic_store(&h->stop, true);
    if (h->reads)
        join(h);
    et_free(h->cx, h);
}

/* ---- questions and answers ---- */

void
etd_hist_ask(struct etd_hist *h, const struct etd_frame *question)
{
    const struct etd_map *body = &question->body;
    int64_t most = etd_get_int(body, "most", FEW);
    if (h->n_waiting == ETD_HIST_WAITING)
        return;
    struct question *q = &h->waiting[h->n_waiting++];
    q->id = etd_get_int(body, "id", 0);
    q->from = etd_get_int(body, "from", 0);
    q->to = etd_get_int(body, "to", INT64_MAX);
    q->most = most < 2 ? 2 : most > POINTS ? POINTS : (int)most;
    etd_get_text(body, "series", q->series, sizeof q->series);
}

bool
etd_hist_is_asked(const struct etd_hist *h)
{
    return h && h->n_waiting > 0;
}

size_t
etd_hist_answer(struct etd_hist *h, const struct etd_head *head, void *bytes,
                size_t room)
{
    int64_t ba[POINTS];
    double t[POINTS], v[POINTS];
    struct etd_out out;
    if (h->n_waiting == 0)
        return 0;
    if (!h->reads && !h->is_ready && *h->readers == 0)
        begin(h);
    if (h->reads && atomic_load(&h->done)) {
        join(h);
        h->is_ready = true;
    }
    if (!h->is_ready)
        return 0;
    for (int i = 0; i < h->n_points; i++) {
        ba[i] = h->point[i].ba;
        t[i] = h->point[i].t;
        v[i] = h->point[i].value;
    }
    etd_begin(&out, bytes, room, head, 4);
    etd_put_int(&out, "id", h->waiting[0].id);
    etd_put_ints(&out, "ba", ba, h->n_points);
    etd_put_doubles(&out, "t", t, h->n_points);
    etd_put_doubles(&out, "v", v, h->n_points);
    return etd_end(&out);
}

void
etd_hist_sent(struct etd_hist *h)
{
    h->n_waiting--;
    memmove(h->waiting, h->waiting + 1, (size_t)h->n_waiting * sizeof *h->waiting);
    h->is_ready = false;
}
