/* SPDX-License-Identifier: Apache-2.0 */
/* A device that copies and fills as late as it may: when the host waits, or a kernel
 * runs, which comes behind them. The host spoils what it has handed over as soon as the
 * call is back. So a wait that is left out is seen, as it is not on a device that works
 * at once. */
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/graph/staging.h"
#include "etude/etude.h"
#include "t/tap.h"

enum { QUEUE = 4096, LEAVES = 4, MOST = 40000, TURNS = 3000 };

/* What is queued: a copy, or a fill where there is no source. */
struct work {
    void *dst;
    const void *src;
    size_t bytes;
    int byte;
};

struct et_fence {
    long mark; /* the number of works given before it */
};

static struct et_ctx *cx;
static struct et_device *dev;
static const struct et_device_table *now; /* the reference's */
static struct et_device_table late;
static struct work work[QUEUE];
static long n_given, n_done;

/* ---- the device ---- */

static struct work *
give(void)
{
    if (n_given - n_done == QUEUE)
        bail("%d works are waiting", QUEUE);
    struct work *w = &work[n_given++ % QUEUE];
    memset(w, 0, sizeof *w);
    return w;
}

static et_status
do_until(long mark)
{
    for (; n_done < mark; n_done++) {
        const struct work *w = &work[n_done % QUEUE];
        if (w->src)
            ET_TRY(now->copy(dev->handle, w->dst, w->src, w->bytes, NULL));
        else
            ET_TRY(now->fill(dev->handle, w->dst, w->byte, w->bytes, NULL));
    }
    return ET_OK;
}

static et_status
late_copy(struct et_device_handle *h, void *dst, const void *src, size_t bytes,
          struct et_stream *stream)
{
    struct work *w = give();
    (void)h, (void)stream;
    w->dst = dst;
    w->src = src;
    w->bytes = bytes;
    return ET_OK;
}

static et_status
late_fill(struct et_device_handle *h, void *dst, int byte, size_t bytes,
          struct et_stream *stream)
{
    struct work *w = give();
    (void)h, (void)stream;
    w->dst = dst;
    w->byte = byte;
    w->bytes = bytes;
    return ET_OK;
}

static et_status
late_sync(struct et_device_handle *h, struct et_stream *stream)
{
    (void)h, (void)stream;
    return do_until(n_given);
}

static et_status
late_run(struct et_kernel *k, void *const *ptr, void *workspace,
         struct et_stream *stream)
{
    ET_TRY(do_until(n_given));
    return now->run(k, ptr, workspace, stream);
}

static void
late_free(struct et_device_handle *h, void *block, size_t bytes)
{
    if (do_until(n_given) != ET_OK)
        bail("a queued copy failed");
    now->free(h, block, bytes);
}

static et_status
late_fence_new(struct et_device_handle *h, struct et_fence **out)
{
    (void)h;
    *out = calloc(1, sizeof **out);
    return *out ? ET_OK : ET_ENOMEM;
}

static void
late_fence_free(struct et_fence *f)
{
    free(f);
}

static et_status
late_fence_set(struct et_fence *f, struct et_stream *stream)
{
    (void)stream;
    f->mark = n_given;
    return ET_OK;
}

static et_status
late_fence_wait(struct et_fence *f)
{
    return f->mark > n_done ? do_until(f->mark) : ET_OK;
}

static et_status
late_host_alloc(struct et_device_handle *h, size_t bytes, void **out)
{
    (void)h;
    *out = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return *out ? ET_OK : ET_ENOMEM;
}

static void
late_host_free(struct et_device_handle *h, void *block)
{
    (void)h;
    free(block);
}

/* With memory that the device copies from by itself, or without. */
static void
make_late(bool has_pinned)
{
    now = dev->table;
    late = *now;
    late.copy = late_copy;
    late.fill = late_fill;
    late.sync = late_sync;
    late.run = late_run;
    late.free = late_free;
    if (has_pinned) {
        late.host_alloc = late_host_alloc;
        late.host_free = late_host_free;
        late.fence_new = late_fence_new;
        late.fence_free = late_fence_free;
        late.fence_set = late_fence_set;
        late.fence_wait = late_fence_wait;
    }
    dev->table = &late;
}

/* ---- leaves, as they are and as they ought to be ---- */

static struct et_tensor *leaf[LEAVES], *turned[LEAVES];
static float want[LEAVES][MOST];
static int64_t length[LEAVES] = {2, 300, 4000, MOST}; /* the last is not staged */
static float handed[MOST];
static uint64_t state;

static int64_t
draw(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % n;
}

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static void
make_leaves(void)
{
    for (int i = 0; i < LEAVES; i++) {
        struct et_desc d;
        must(et_tensor_new(cx, dev, ET_F32, 1, &length[i], ET_ROW_MAJOR, "leaf",
                           &leaf[i]));
        et_desc_init(&d, ET_F32, 2, (const int64_t[]){2, length[i] / 2}, ET_ROW_MAJOR);
        d.stride[0] = 1;
        d.stride[1] = 2;
        must(et_tensor_view(cx, leaf[i]->storage, 0, &d, "turned", &turned[i]));
    }
}

/* Writes leaf I, by rows or turned, and spoils what was handed over. */
static void
write_leaf(int i)
{
    int64_t n = length[i];
    bool turns = draw(400) == 0;
    for (int64_t k = 0; k < n; k++)
        handed[k] = (float)draw(1000);
    for (int64_t k = 0; k < n; k++)
        want[i][turns ? k % (n / 2) * 2 + k / (n / 2) : k] = handed[k];
    must(et_tensor_write(cx, turns ? turned[i] : leaf[i], handed,
                         (size_t)n * sizeof *handed));
    memset(handed, 0x7f, sizeof handed);
}

static bool
is_right(int i)
{
    must(et_tensor_read(cx, leaf[i], handed, (size_t)length[i] * sizeof *handed));
    bool same = memcmp(handed, want[i], (size_t)length[i] * sizeof *handed) == 0;
    memset(handed, 0x7f, sizeof handed);
    return same;
}

/* Mostly one leaf, whose copies go around the ring before another is written anew. */
static int
pick(void)
{
    if (draw(400) == 0)
        return LEAVES - 1;
    return draw(40) == 0 ? (int)draw(LEAVES - 2) : LEAVES - 2;
}

static void
add_to(struct et_graph *g, int i)
{
    et_assign(g, leaf[i], et_add_scalar(g, leaf[i], 1));
    must(et_eval(g, NULL, 0));
    et_graph_reset(g);
    for (int64_t k = 0; k < length[i]; k++)
        want[i][k] += 1;
}

static void
test(bool has_pinned, bool eager)
{
    struct et_graph *g;
    int wrong = 0;
    must(et_device_open(cx, "ref", 0, 1, &dev));
    make_late(has_pinned);
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    must(et_graph_new(cx, dev, &g));
    unsetenv("ETUDE_EAGER");
    make_leaves();
    state = 1;
    for (int i = 0; i < LEAVES; i++)
        write_leaf(i);
    for (int turn = 0; turn < TURNS; turn++) {
        int i = pick();
        int what = (int)draw(400);
        if (what < 394)
            write_leaf(i);
        else if (what < 397)
            add_to(g, i);
        else
            wrong += !is_right(i);
    }
    for (int i = 0; i < LEAVES; i++)
        wrong += !is_right(i);
    is_int(wrong, 0, "%s%s: %d writes, sums and reads find what was written",
           has_pinned ? "with memory for the device" : "without",
           eager ? ", eagerly" : "", TURNS);
    for (int i = 0; i < LEAVES; i++) {
        et_tensor_free(&turned[i]);
        et_tensor_free(&leaf[i]);
    }
    et_graph_free(&g);
    et_device_close(&dev);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (int way = 0; way < 4; way++)
        test(way & 1, way >> 1);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
