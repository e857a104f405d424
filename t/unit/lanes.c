/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on their way to a device (upload.c), on one that has two streams and runs
 * what is queued as late as it may, and in the order that shows most: the steps first,
 * or the copies. Each step reads its own batch, whatever the order. */
#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/graph/upload.h"
#include "t/tap.h"

enum { N = 3, BATCHES = 12, MOST = 256 };

/* ---- a device of two streams ---- */

struct et_fence {
    int set, reached; /* how often it was set, and the last of these that was reached */
};

struct et_stream {
    int unused;
};

enum what { COPY, WAIT, SET, READ };

/* READ: a step copies what it is given to where it is looked at. */
struct work {
    enum what what;
    void *to;
    const void *from;
    size_t bytes;
    struct et_fence *fence;
    int turn; /* of the fence */
};

static struct work queue[2][MOST];
static int begun[2], queued[2], first_to_run;
static struct et_stream uploads;
static int fences;

static void
push(struct et_stream *s, struct work w)
{
    const int k = s != NULL;
    if (queued[k] == MOST)
        bail("too much is queued");
    queue[k][queued[k]++] = w;
}

/* Runs what stream K can run; false: nothing. */
static bool
advance(int k)
{
    bool any = false;
    for (; begun[k] < queued[k]; begun[k]++, any = true) {
        const struct work *w = &queue[k][begun[k]];
        if (w->what == WAIT && w->fence->reached < w->turn)
            break;
        if (w->what == SET)
            w->fence->reached = w->turn;
        else if (w->what != WAIT)
            memcpy(w->to, w->from, w->bytes);
    }
    return any;
}

static void
run_all(void)
{
    while (advance(first_to_run) || advance(!first_to_run))
        ;
}

static et_status
stream_new(struct et_device_handle *h, struct et_stream **out)
{
    (void)h;
    *out = &uploads;
    return ET_OK;
}

static et_status
copy(struct et_device_handle *h, void *to, const void *from, size_t bytes,
     struct et_stream *s)
{
    (void)h;
    push(s, (struct work){COPY, to, from, bytes, NULL, 0});
    return ET_OK;
}

/* A device keeps a fence until what waits for it has run: none is used twice. */
static et_status
fence_new(struct et_device_handle *h, struct et_fence **out)
{
    static struct et_fence all[MOST];
    static int made;
    (void)h;
    if (made == MOST)
        bail("too many fences");
    *out = &all[made++];
    fences++;
    return ET_OK;
}

static et_status
fence_set(struct et_fence *f, struct et_stream *s)
{
    push(s, (struct work){.what = SET, .fence = f, .turn = ++f->set});
    return ET_OK;
}

static et_status
fence_wait(struct et_fence *f)
{
    while (f->reached < f->set)
        if (!advance(first_to_run) && !advance(!first_to_run))
            bail("a fence is never reached");
    return ET_OK;
}

static et_status
stream_wait(struct et_stream *s, struct et_fence *f)
{
    push(s, (struct work){.what = WAIT, .fence = f, .turn = f->set});
    return ET_OK;
}

static void
fence_free(struct et_fence *f)
{
    (void)f;
    fences--;
}

/* ---- batches ---- */

/* BATCHES batches through LANES lanes, each of which is written again when its turn
 * comes, and the host's memory once a lane says that it may be. */
static void
test_order(struct et_ctx *cx, struct et_device *dev, int lanes, int steps_first)
{
    static float source[4][N], seen[BATCHES][N];
    struct eti_lane *lane[4];
    struct et_tensor *t[4];
    int wrong = 0;
    memset(begun, 0, sizeof begun);
    memset(queued, 0, sizeof queued);
    first_to_run = !steps_first;
    for (int i = 0; i < lanes; i++)
        if (eti_lane_new(dev, &lane[i]) != ET_OK ||
            et_tensor_new(cx, dev, ET_F32, 1, (int64_t[]){N}, ET_ROW_MAJOR, NULL,
                          &t[i]) != ET_OK)
            bail("%s", et_error_get(cx)->message);
    for (int k = 0; k < BATCHES; k++) {
        const int i = k % lanes;
        const void *from[] = {source[i]};
        wrong += eti_lane_wait(lane[i]) != ET_OK;
        for (int j = 0; j < N; j++)
            source[i][j] = (float)(100 * k + j);
        wrong += eti_lane_send(lane[i], &t[i], from, 1) != ET_OK;
        push(NULL, (struct work){READ, seen[k], et_tensor_data(t[i]), sizeof seen[k],
                                 NULL, 0});
        wrong += eti_lane_release(lane[i]) != ET_OK;
        if (k % 5 == 4)
            (void)advance(first_to_run);
    }
    for (int i = 0; i < lanes; i++) {
        eti_lane_free(&lane[i]);
        memset(source[i], 0xff, sizeof source[i]);
        wrong += lane[i] != NULL;
    }
    run_all();
    for (int k = 0; k < BATCHES; k++)
        for (int j = 0; j < N; j++)
            wrong += seen[k][j] != (float)(100 * k + j);
    is_int(wrong, 0, "%d lanes, %s first: every step has its batch", lanes,
           steps_first ? "steps" : "copies");
    is_int(fences, 0, "%d lanes: fences are given back", lanes);
    for (int i = 0; i < lanes; i++)
        et_tensor_free(&t[i]);
}

int
main(void)
{
    struct et_ctx *cx;
    struct et_device *dev;
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK)
        bail("no device");
    const struct et_device_table *real = dev->table;
    struct et_device_table table = *real;
    ok(!eti_lane_needed(dev), "a device whose memory is the host's needs no lane");
    table.stream_new = stream_new;
    table.fence_new = fence_new;
    table.fence_set = fence_set;
    table.fence_wait = fence_wait;
    table.fence_free = fence_free;
    table.stream_wait = stream_wait;
    for (int lanes = 1; lanes < 5; lanes++)
        for (int steps_first = 0; steps_first < 2; steps_first++) {
            table.copy = copy;
            dev->table = &table;
            test_order(cx, dev, lanes, steps_first);
        }
    dev->table = real;
    dev->uploads = NULL; /* the test's */
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
