/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of a plan's launches (capture.c), on a device that writes down what it is
 * told: whatever the addresses do, each run does its own work, once; and what fails
 * while it is recorded. */
#include <stdlib.h>
#include <string.h>

#include "core/graph/capture.h"
#include "etude/rng.h"
#include "t/tap.h"

enum { MOST = 16, KERNELS = 3, RUNS = 300 };

/* What a launch of addresses KEY has done: kernel i of it is 10 KEY + i. */
struct et_capture {
    int work[MOST], n;
};

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_capture done_now, recording;
static bool is_recording;
static int recordings_live, begins;
static et_status begin_says, end_says;

static et_status
begin(struct et_device_handle *h, struct et_stream *stream)
{
    (void)h, (void)stream;
    begins++;
    if (begin_says != ET_OK)
        return begin_says;
    is_recording = true;
    recording.n = 0;
    return ET_OK;
}

static et_status
end(struct et_device_handle *h, struct et_stream *stream, struct et_capture **out)
{
    (void)h, (void)stream;
    is_recording = false;
    if (end_says != ET_OK)
        return end_says;
    *out = malloc(sizeof **out);
    **out = recording;
    recordings_live++;
    return ET_OK;
}

static et_status
replay(struct et_capture *c, struct et_stream *stream)
{
    (void)stream;
    for (int i = 0; i < c->n && done_now.n < MOST; i++)
        done_now.work[done_now.n++] = c->work[i];
    return ET_OK;
}

static void
forget(struct et_capture *c)
{
    recordings_live--;
    free(c);
}

/* The plan's launches: of addresses KEY, of which the first WHOLE kernels start. The
 * others fail: FAILURE, where it is recorded alone if ONLY_RECORDED. */
struct work {
    int key, whole;
    et_status failure;
    bool only_recorded;
};

static et_status
launch(void *data)
{
    const struct work *w = data;
    struct et_capture *to = is_recording ? &recording : &done_now;
    for (int i = 0; i < KERNELS; i++) {
        if (i == w->whole && (is_recording || !w->only_recorded))
            return w->failure;
        if (to->n < MOST)
            to->work[to->n++] = 10 * w->key + i;
    }
    return ET_OK;
}

static bool
is_done_once(int key)
{
    bool right = done_now.n == KERNELS;
    for (int i = 0; right && i < KERNELS; i++)
        right = done_now.work[i] == 10 * key + i;
    return right;
}

static et_status
run(struct et_graph *g, struct eti_recordings *r, const struct work *w, bool stays)
{
    struct work own = *w;
    done_now.n = 0;
    return eti_launch_recorded(g, r, (uint64_t)w->key, stays, launch, &own);
}

/* Addresses that come and go, more of them than there are places for recordings. */
static void
any_order(struct et_graph *g, int keys, bool stays)
{
    struct eti_recordings r = {0};
    struct et_rng rng = et_rng_at((uint32_t)keys, ET_RNG_DATA, stays);
    struct et_graph_stats before, after;
    int right = 0, most = 0;
    et_graph_get_stats(g, &before);
    for (int i = 0; i < RUNS; i++) {
        const struct work w = {1 + (int)et_rng_below(&rng, (uint64_t)keys), KERNELS,
                               ET_OK, false};
        right += run(g, &r, &w, stays) == ET_OK && is_done_once(w.key);
        most = recordings_live > most ? recordings_live : most;
    }
    et_graph_get_stats(g, &after);
    is_int(right, RUNS, "%d addresses: each run does its own work, once", keys);
    ok(most <= ETI_RECORDINGS && after.launches > before.launches,
       "%d addresses: %d recordings at most, and some runs are replays", keys, most);
    eti_recordings_clear(dev, &r);
    is_int(recordings_live, 0, "%d addresses: recordings are given back", keys);
}

/* The first two runs are launched one by one; the third is recorded. */
static void
when(struct et_graph *g)
{
    struct eti_recordings r = {0};
    const struct work w = {1, KERNELS, ET_OK, false};
    int first = 0;
    begins = 0;
    for (int i = 1; i < 6; i++) {
        (void)run(g, &r, &w, true);
        first = first == 0 && begins ? i : first;
    }
    is_int(first, 3, "the third run is the first that is recorded");
    is_int(begins, 1, "and the only one");
    eti_recordings_clear(dev, &r);
}

/* FAILURE of the launches, the beginning or the end of a recording. */
static void
failing(struct et_graph *g, const char *what, et_status begins_with,
        et_status ends_with, const struct work *w, et_status want)
{
    struct eti_recordings r = {0};
    const struct work whole = {1, KERNELS, ET_OK, false};
    for (int i = 0; i < 2; i++)
        (void)run(g, &r, &whole, true);
    begin_says = begins_with;
    end_says = ends_with;
    is_int(run(g, &r, w, true), want, "%s: the run %s", what,
           want == ET_OK ? "goes on" : "fails");
    if (want == ET_OK)
        ok(is_done_once(w->key), "%s: with all of its work", what);
    begin_says = end_says = ET_OK;
    int right = 0;
    for (int i = 0; i < 3; i++)
        right += run(g, &r, &whole, true) == ET_OK && is_done_once(1);
    is_int(right, 3, "%s: so have the runs behind it", what);
    eti_recordings_clear(dev, &r);
    is_int(recordings_live, 0, "%s: no recording is left", what);
    et_error_clear(cx);
}

int
main(void)
{
    struct et_graph *g;
    const struct work whole = {1, KERNELS, ET_OK, false},
                      cannot = {1, 1, ET_ENOTSUP, true},
                      lost = {1, 1, ET_EDEVICE, false};
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK ||
        et_graph_new(cx, dev, &g) != ET_OK)
        bail("no device");
    const struct et_device_table *real = dev->table;
    struct et_device_table table = *real;
    table.capture_begin = begin;
    table.capture_end = end;
    table.replay = replay;
    table.capture_free = forget;
    dev->table = &table;
    for (int keys = 1; keys < 8; keys++) {
        any_order(g, keys, false);
        any_order(g, keys, true);
    }
    when(g);
    failing(g, "what cannot be recorded", ET_OK, ET_OK, &cannot, ET_OK);
    failing(g, "a recording that cannot begin", ET_ENOTSUP, ET_OK, &whole, ET_OK);
    failing(g, "a recording that cannot end", ET_OK, ET_ENOTSUP, &whole, ET_OK);
    failing(g, "a device that is lost in it", ET_OK, ET_OK, &lost, ET_EDEVICE);
    failing(g, "a device that is lost before it", ET_EDEVICE, ET_OK, &whole,
            ET_EDEVICE);
    dev->table = real;
    et_graph_free(&g);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
