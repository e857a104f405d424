/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs of a plan replay a recording, where the leaves that it reads lie at one
 * place, at another each time, at two in turns; where the plan writes them; and where
 * copying them costs more than it saves, or there is no memory for it. Results are
 * compared at every run. */
#include <gpusim.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/graph/graph_impl.h"
#include "etude/functional.h"
#include "t/tap.h"

enum { RUNS = 12, N = 100, ROUNDS = 3, MOST = 16 };

static struct et_ctx *cx;
static struct et_device *dev;

static void
need(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static struct et_tensor *
new_leaf(float first)
{
    const int64_t shape[] = {N};
    float v[N];
    struct et_tensor *t;
    for (int i = 0; i < N; i++)
        v[i] = first + (float)i;
    need(et_tensor_new(cx, dev, ET_F32, 1, shape, ET_ROW_MAJOR, "x", &t));
    need(et_tensor_write(cx, t, v, sizeof v));
    return t;
}

/* Element I of T. */
static float
element(const struct et_tensor *t, int i)
{
    float v[N];
    need(et_tensor_read(cx, t, v, (size_t)et_desc_count(&t->desc) * sizeof *v));
    return v[i];
}

/* RUNS runs of y = 4 x from element FROM on, x being leaf k mod N_LEAVES: how many are
 * replays, and do all give what they should? Leaf k begins with 100 k. */
static void
run(const char *what, int n_leaves, int64_t from, int replays)
{
    struct et_tensor *leaf[MOST], *y;
    struct et_graph *g;
    struct et_graph_stats stats;
    int right = 0;
    const int64_t shape[] = {N - from};
    need(et_graph_new(cx, dev, &g));
    need(et_tensor_new(cx, dev, ET_F32, 1, shape, ET_ROW_MAJOR, "y", &y));
    for (int i = 0; i < n_leaves; i++)
        leaf[i] = new_leaf(100.0f * (float)i);
    for (int k = 0; k < RUNS; k++) {
        struct et_tensor *x = et_slice(g, leaf[k % n_leaves], 0, from, N - from, 1);
        struct et_tensor *sum = x;
        for (int i = 0; i < ROUNDS; i++)
            sum = et_add(g, sum, x);
        et_assign(g, y, sum);
        need(et_eval(g, &x, 1));
        /* x itself is the leaf's, not the plan's copy of it. */
        float is = element(x, 7);
        right +=
            is == 100.0f * (float)(k % n_leaves) + 7 + (float)from &&
            element(y, 7) == 4 * is &&
            et_tensor_data(x) == (char *)et_tensor_data(leaf[k % n_leaves]) + from * 4;
        et_graph_reset(g);
    }
    et_graph_get_stats(g, &stats);
    is_int(right, RUNS, "%s: every run gives what it should", what);
    is_int((long)stats.plans_built, 1, "%s: one plan", what);
    is_int((long)stats.launches, replays, "%s: %d of %d runs are replays", what,
           replays, RUNS);
    for (int i = 0; i < n_leaves; i++)
        et_tensor_free(&leaf[i]);
    et_tensor_free(&y);
    et_graph_free(&g);
}

/* READS: another kernel then reads what was written. */
static void
run_in_place(bool reads)
{
    struct et_tensor *whole[MOST];
    struct et_graph *g;
    struct et_graph_stats stats;
    int right = 0;
    need(et_graph_new(cx, dev, &g));
    for (int i = 0; i < 8; i++)
        whole[i] = new_leaf(0);
    for (int k = 0; k < RUNS; k++) {
        struct et_tensor *w = whole[k % 8];
        struct et_tensor *v = et_add_scalar(g, w, 1);
        struct et_tensor *most = reads ? et_amax(g, v, 1, false) : NULL;
        et_assign(g, w, v);
        need(et_eval(g, &most, reads));
        float added = (float)(k / 8 + 1);
        bool seen = !reads || element(most, 0) == N - 1 + added;
        et_graph_reset(g);
        right += seen && element(w, 5) == 5 + added;
    }
    et_graph_get_stats(g, &stats);
    is_int(right, RUNS, "leaves that a plan writes%s: every run gives what it should",
           reads ? ", and then reads" : "");
    is_int((long)stats.launches, 0, "and, while they move, none is a replay");
    for (int i = 0; i < 8; i++)
        et_tensor_free(&whole[i]);
    et_graph_free(&g);
}

/* Parameters that move once, beside batches that move at each run. */
static void
run_moved_once(void)
{
    enum { BATCHES = 5 };
    struct et_tensor *batch[BATCHES], *weight[2];
    struct et_graph *g;
    struct et_graph_stats stats;
    struct gpusim_counts before = {0}, after = {0};
    int right = 0;
    need(et_graph_new(cx, dev, &g));
    for (int i = 0; i < BATCHES; i++)
        batch[i] = new_leaf((float)i);
    weight[0] = new_leaf(10);
    weight[1] = new_leaf(20);
    for (int k = 0; k < RUNS; k++) {
        int which = k >= 6;
        before = *gpusim_counts();
        struct et_tensor *y = et_add(g, batch[k % BATCHES],
                                     et_exp(g, et_mul_scalar(g, weight[which], 0)));
        y = et_add(g, y, weight[which]);
        need(et_eval(g, &y, 1));
        after = *gpusim_counts();
        right += element(y, 0) == (float)(k % BATCHES) + 1 + (which ? 20 : 10);
        et_graph_reset(g);
    }
    et_graph_get_stats(g, &stats);
    is_int(right, RUNS, "a leaf that moves once: every run gives what it should");
    is_int((long)stats.launches, RUNS - 3, "and one run more is none of a recording");
    is_int(after.copies_d2d - before.copies_d2d, 1,
           "only the leaf that moves at every run is copied");
    for (int i = 0; i < BATCHES; i++)
        et_tensor_free(&batch[i]);
    et_tensor_free(&weight[0]);
    et_tensor_free(&weight[1]);
    et_graph_free(&g);
}

/* y = x + x, with x of BYTES at five places: are its runs replays, with LIMIT bytes of
 * device memory beyond what the first two runs took? (0: any.) */
static void
run_large(const char *what, int64_t bytes, size_t limit, int replays)
{
    enum { PLACES = 5 };
    struct et_tensor *leaf[PLACES], *y;
    struct et_graph *g;
    struct et_graph_stats stats;
    struct et_device_memory used;
    const int64_t shape[] = {bytes / 4};
    need(et_graph_new(cx, dev, &g));
    need(et_tensor_new(cx, dev, ET_F32, 1, shape, ET_ROW_MAJOR, "y", &y));
    for (int i = 0; i < PLACES; i++)
        need(et_tensor_new(cx, dev, ET_F32, 1, shape, ET_ROW_MAJOR, "x", &leaf[i]));
    for (int k = 0; k < RUNS; k++) {
        et_assign(g, y, et_add(g, leaf[k % PLACES], leaf[k % PLACES]));
        need(et_eval(g, NULL, 0));
        et_graph_reset(g);
        et_device_get_memory(dev, &used);
        if (k == 1 && limit)
            et_device_set_limit(dev, used.current_bytes + limit);
    }
    et_device_set_limit(dev, 0);
    et_graph_get_stats(g, &stats);
    is_int((long)stats.launches, replays, "%s: %d runs are replays", what, replays);
    for (int i = 0; i < PLACES; i++)
        et_tensor_free(&leaf[i]);
    et_tensor_free(&y);
    et_graph_free(&g);
}

int
main(void)
{
    setenv("ETUDE_TUNE", "0", 0);
    setenv("ETUDE_RTC", "0", 0);
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    if (et_device_open(cx, "gpusim", 0, 0, &dev) != ET_OK)
        skip_all("the device is not there");
    run("a leaf that stays", 1, 0, RUNS - 2);
    run("a leaf at two places in turns", 2, 0, RUNS - 2);
    run("a leaf at three places in turns", 3, 0, RUNS - 2);
    run("a leaf at eight places in turns", 8, 0, RUNS - 2);
    run("a part of a leaf at five places", 5, 33, RUNS - 2);
    run_in_place(false);
    run_in_place(true);
    run_moved_once();
    run_large("a leaf of 64 KiB, one kernel", 65536, 0, RUNS - 2);
    run_large("with memory for a copy", 65536, 65536, RUNS - 2);
    run_large("without", 65536, 65535, 0);
    run_large("a leaf of 5 MiB, whose copy takes longer than a launch", 5 << 20, 0, 0);
    struct et_device_memory used;
    et_device_get_memory(dev, &used);
    is_int((long)used.current_bytes, 0, "all memory of copies is given back");
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
