/* SPDX-License-Identifier: Apache-2.0 */
/* preview.c: see preview.h. */
#include "config.h"

#include "dist/hub/preview.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "core/base/seams.h"
#include "core/journal/events.h"

enum {
    HEAD = 64,  /* records at the start: what the run is and how long it is to be */
    MOST = 512, /* points of a series */
};
/* Points of each series, one model after the other: the first has the newest alone. */
static const int levels[] = {0, 64, MOST};
enum { LEVELS = sizeof levels / sizeof *levels };

struct etd_preview {
    struct et_ctx *cx;
    char path[PATH_MAX];
    struct et_events *log; /* for points */
    struct etd_model *shown, *making;
    int level, series; /* that come next */
    int64_t newest;    /* ba of the first of the newest records */
    struct et_series_point point[MOST];
};

et_status
etd_preview_open(struct et_ctx *cx, const char *directory, struct etd_preview **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_preview *g = block;
    g->cx = cx;
    et_status status = ET_OK;
    if ((size_t)snprintf(g->path, sizeof g->path, "%s/events.log", directory) >=
        sizeof g->path)
        status = ET_FAIL(cx, ET_EINVAL, "a run's path has at most %zu bytes",
                         sizeof g->path - 12);
    if (status == ET_OK)
        status = et_events_open(cx, g->path, &g->log);
    if (status != ET_OK)
        etd_preview_close(&g);
    *out = g;
    return status;
}

void
etd_preview_close(struct etd_preview **out)
{
    struct etd_preview *g = *out;
    *out = NULL;
    if (!g)
        return;
    et_events_close(&g->log);
    etd_model_free(&g->shown);
    etd_model_free(&g->making);
    et_free(g->cx, g);
}

/* ---- records ---- */

/* The log's first records. */
static et_status
take_head(struct etd_preview *g)
{
    struct et_events *e;
    struct et_record r;
    bool got = true;
    ET_TRY(et_events_open(g->cx, g->path, &e));
    et_status status = ET_OK;
    for (int i = 0; i < HEAD && status == ET_OK && got; i++) {
        status = et_events_next(e, &r, &got);
        if (status == ET_OK && got)
            status = etd_model_apply(g->making, &r);
    }
    et_events_close(&e);
    return status;
}

/* The epoch that R lies in began here, as far as its batches are known. */
static et_status
begin_epoch(struct etd_preview *g, const struct et_record *r)
{
    double per = etd_model_length(g->making, "run/epoch_batches");
    struct et_record epoch = *r;
    if (!(per >= 1))
        return ET_OK;
    epoch.kind = ET_RECORD_EPOCH;
    epoch.rank = 0;
    epoch.ba = (int64_t)(floor((double)r->ba / per) * per);
    epoch.n = 0;
    epoch.text = NULL;
    return etd_model_apply(g->making, &epoch);
}

/* The newest, behind those of the head. */
static et_status
take_newest(struct etd_preview *g)
{
    struct et_events *e;
    struct et_record r;
    int64_t head = g->making->seq;
    bool got = true, first = true;
    ET_TRY(et_events_open(g->cx, g->path, &e));
    et_status status = eti_events_newest(e);
    while (status == ET_OK && got) {
        status = et_events_next(e, &r, &got);
        if (status != ET_OK || !got || r.seq <= head)
            continue;
        if (first && r.seq > head + 1)
            status = begin_epoch(g, &r);
        if (first)
            g->newest = r.ba;
        first = false;
        if (status == ET_OK)
            status = etd_model_apply(g->making, &r);
    }
    et_events_close(&e);
    return status;
}

/* ---- points ---- */

/* The points of one series, as records that say nothing else: MOST of them. Those of
 * the newest records come with these. */
static et_status
take_series(struct etd_preview *g, const char *name, int most)
{
    struct et_log_entry entry;
    const struct etd_model *m = g->making;
    double batch = etd_model_length(m, "run/batch_size");
    double per = etd_model_length(m, "run/epoch_batches");
    int n;
    ET_TRY(et_events_fetch(g->log, name, 0, g->newest, most, g->point, &n));
    snprintf(entry.name, sizeof entry.name, "%s", name);
    for (int i = 0; i < n; i++) {
        const struct et_series_point *p = &g->point[i];
        entry.value = p->value;
        const struct et_record r = {
            .kind = ET_RECORD_METRIC,
            .t = p->t,
            .seq = m->seq, /* it is none of the log's */
            .ep = per >= 1 ? (int64_t)((double)p->ba / per) : 0,
            .ba = p->ba,
            .sp = batch > 0 ? (int64_t)((double)p->ba * batch) : 0,
            .entry = &entry,
            .n = 1,
        };
        ET_TRY(etd_model_apply(g->making, &r));
    }
    return ET_OK;
}

/* One series more; *MORE: there was one. */
static et_status
next_series(struct etd_preview *g, bool *more)
{
    const struct et_series *list;
    int n;
    *more = false;
    if (levels[g->level] == 0)
        return ET_OK;
    ET_TRY(et_events_series(g->log, &list, &n));
    if (g->series >= n || g->series >= ETD_SERIES)
        return ET_OK;
    *more = true;
    return take_series(g, list[g->series++].name, levels[g->level]);
}

/* ---- all ---- */

static et_status
finish(struct etd_preview *g)
{
    ET_TRY(take_newest(g));
    etd_model_free(&g->shown);
    g->shown = g->making;
    g->making = NULL;
    g->series = 0;
    g->level++;
    return ET_OK;
}

et_status
etd_preview_step(struct etd_preview *g, double seconds, bool *done)
{
    double end = eti_monotonic(g->cx) + seconds;
    bool more;
    while (g->level < LEVELS) {
        if (!g->making) {
            ET_TRY(etd_model_new(g->cx, &g->making));
            ET_TRY(take_head(g));
        }
        ET_TRY(next_series(g, &more));
        if (!more)
            ET_TRY(finish(g));
        if (eti_monotonic(g->cx) >= end)
            break;
    }
    *done = g->level == LEVELS;
    return ET_OK;
}

const struct etd_model *
etd_preview_model(const struct etd_preview *g)
{
    return g->shown;
}
