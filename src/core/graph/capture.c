/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c: plans that have become one launch.
 *
 * On a device that can capture, a plan that has run twice is recorded while it is
 * launched once more, and from then on replayed: what the host does for a step no
 * longer grows with its kernels. A recording is for one set of addresses. Leaves that
 * move at every run are read from fixed places (inputs.c); the few sets of addresses
 * that are left, as when one plan serves two models in turns, have a recording each.
 *
 * The first two runs are launched one by one, since libraries load code and allocate at
 * their first call, which a capture forbids (ENGINE.md section 10). Addresses that are
 * met for the first time are launched one by one, too, unless they are known to stay:
 * making a recording takes longer than launching its kernels. */
#include "config.h"

#include "core/graph/capture.h"

enum { RUNS_BEFORE = 2 };

static bool
is_for(const struct eti_recording *one, uint64_t key)
{
    return one->last_use > 0 && one->key == key;
}

/* The place of KEY, or the one that was used least recently. */
static struct eti_recording *
find(struct eti_recordings *r, uint64_t key)
{
    struct eti_recording *oldest = &r->v[0];
    for (int i = 0; i < ETI_RECORDINGS; i++) {
        if (is_for(&r->v[i], key))
            return &r->v[i];
        if (r->v[i].last_use < oldest->last_use)
            oldest = &r->v[i];
    }
    return oldest;
}

bool
eti_is_known(const struct eti_recordings *r, uint64_t key)
{
    for (int i = 0; i < ETI_RECORDINGS; i++)
        if (is_for(&r->v[i], key))
            return true;
    return false;
}

static void
forget(const struct et_device *dev, struct eti_recording *one)
{
    if (one->capture)
        dev->table->capture_free(one->capture);
    *one = (struct eti_recording){0};
}

void
eti_recordings_clear(const struct et_device *dev, struct eti_recordings *r)
{
    for (int i = 0; i < ETI_RECORDINGS; i++)
        forget(dev, &r->v[i]);
}

bool
eti_can_capture(const struct et_graph *g)
{
    return g->capture && g->dev->table->capture_begin;
}

/* Launches into a recording. What cannot be recorded is launched as before, from now
 * on: slower, and right. */
static et_status
record(struct et_graph *g, struct eti_recordings *r, struct eti_recording *one,
       et_status (*launch)(void *), void *data)
{
    const struct et_device_table *t = g->dev->table;
    struct et_capture *capture = NULL;
    et_status status = t->capture_begin(g->dev->handle, NULL);
    if (status == ET_OK) {
        et_status launched = launch(data);
        status = t->capture_end(g->dev->handle, NULL, &capture);
        status = launched != ET_OK ? launched : status;
    }
    if (status == ET_OK) {
        one->capture = capture;
        g->stats.captures++;
        return ET_OK;
    }
    if (capture)
        t->capture_free(capture);
    if (status == ET_EDEVICE)
        return status;
    et_report(g->cx, ET_LOG_WARN,
              "a step could not be captured: %s; it runs uncaptured",
              t->why ? t->why(g->dev->handle) : et_status_name(status));
    et_error_clear(g->cx);
    r->refused = true;
    return ET_OK;
}

et_status
eti_launch_recorded(struct et_graph *g, struct eti_recordings *r, uint64_t key,
                    bool stays, et_status (*launch)(void *), void *data)
{
    if (r->refused)
        return launch(data);
    struct eti_recording *one = find(r, key);
    bool expected = stays || is_for(one, key);
    if (!is_for(one, key)) {
        forget(g->dev, one);
        one->key = key;
    }
    one->last_use = ++r->runs;
    if (!one->capture && r->runs > RUNS_BEFORE && expected)
        ET_TRY(record(g, r, one, launch, data));
    if (!one->capture)
        return launch(data);
    g->stats.launches++;
    return g->dev->table->replay(one->capture, NULL);
}
