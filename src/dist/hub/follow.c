/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c: see follow.h. */
#include "config.h"

#include "dist/hub/follow.h"

#include <limits.h>
#include <stdio.h>

#include "core/base/seams.h"

enum { STRIDE = 64 }; /* records between looks at the clock */

struct etd_follow {
    struct et_ctx *cx;
    struct et_events *log;
    struct etd_model *model;
    void (*fn)(void *data, const struct et_record *r);
    void *data;
    struct et_record held; /* read, and not in the model for want of memory */
    bool holds;
};

et_status
etd_follow_open(struct et_ctx *cx, const char *directory, struct etd_follow **out)
{
    char path[PATH_MAX];
    void *block;
    *out = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/events.log", directory) >= sizeof path)
        return ET_FAIL(cx, ET_EINVAL, "a run's path has at most %zu bytes",
                       sizeof path - 12);
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_follow *f = block;
    f->cx = cx;
    et_status status = etd_model_new(cx, &f->model);
    if (status == ET_OK)
        status = et_events_open(cx, path, &f->log);
    if (status != ET_OK) {
        etd_follow_close(&f);
        return status;
    }
    *out = f;
    return ET_OK;
}

void
etd_follow_close(struct etd_follow **out)
{
    struct etd_follow *f = *out;
    *out = NULL;
    if (!f)
        return;
    et_events_close(&f->log);
    etd_model_free(&f->model);
    et_free(f->cx, f);
}

/* One record. *GOT is false at the end of the log. */
static et_status
read_one(struct etd_follow *f, bool *got)
{
    *got = f->holds;
    if (!f->holds)
        ET_TRY(et_events_next(f->log, &f->held, got));
    if (!*got)
        return ET_OK;
    f->holds = true;
    ET_TRY(etd_model_apply(f->model, &f->held));
    f->holds = false;
    if (f->fn)
        f->fn(f->data, &f->held);
    return ET_OK;
}

et_status
etd_follow_read(struct etd_follow *f, double seconds, int64_t until, int64_t *left)
{
    double end = eti_monotonic(f->cx) + seconds;
    bool got = true;
    et_status status = et_events_again(f->log);
    for (int i = 1; status == ET_OK && got && (until == 0 || f->model->seq < until);
         i++) {
        status = read_one(f, &got);
        if (i % STRIDE == 0 && eti_monotonic(f->cx) >= end)
            break;
    }
    *left = et_events_torn_bytes(f->log);
    return status;
}

struct etd_model *
etd_follow_model(struct etd_follow *f)
{
    return f->model;
}

void
etd_follow_progress(const struct etd_follow *f, int64_t *done, int64_t *all)
{
    int64_t left = et_events_torn_bytes(f->log);
    *all = et_events_bytes(f->log);
    *done = *all - left;
}

void
etd_follow_watch(struct etd_follow *f,
                 void (*fn)(void *data, const struct et_record *r), void *data)
{
    f->fn = fn;
    f->data = data;
}
