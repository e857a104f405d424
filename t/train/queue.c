/* SPDX-License-Identifier: Apache-2.0 */
/* A device with a queue of its own: a warm step is one launch, with no stop and no
 * allocation; and a batch that finds too little memory is done in pieces. On the
 * simulated GPU, which counts. (t/train/ahead.c: that a run's bits do not depend on
 * it.) */
#include <gpusim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/trainer/trainer_impl.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

enum { BATCHES = 10 };

static const char name[] = "gpusim"; /* linked in, to count its calls */

/* Loggers and callbacks that watch every batch. */
#define WATCHED                                                                        \
    "callbacks: {speed_monitor: {window_size: 2}, lr_monitor: , memory_monitor: }\n"   \
    "loggers: {in_memory: }\n"

static void
count(struct et_ctx *cx)
{
    static const char text[] = LENET("100ep") WATCHED;
    struct recipe_run r;
    recipe_open(&r, cx, text, &(struct recipe_choice){.device = name, .workers = -1});
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(BATCHES)));
    struct gpusim_counts before = *gpusim_counts();
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(BATCHES)));
    struct gpusim_counts after = *gpusim_counts();
    is_int(after.graph_launches - before.graph_launches, BATCHES,
           "a warm step is one launch");
    is_int(after.launches - before.launches, 0, "no kernel is launched beside it");
    is_int(after.captures - before.captures, 0, "and none recorded again");
    is_int(after.allocs - before.allocs, 0, "no device memory is asked for");
    is_int(after.pageable_copies - before.pageable_copies, 0,
           "every copy is one that the device makes by itself");
    is_int(after.copies_d2h - before.copies_d2h, BATCHES,
           "what a step came to is one copy");
    /* For a batch's numbers, when two more are queued; the loader's, before it writes
     * into a slot whose copy is three batches old. */
    ok(after.syncs - before.syncs <= 2 * BATCHES, "no step is waited for (%lld waits)",
       (long long)(after.syncs - before.syncs));
    recipe_close(&r);
}

/* A small network: the simulated GPU is slow. */
#define TOKENS                                                                         \
    "max_duration: 100ep\nseed: 17\nmodel: {name: gpt2, n_layers: 1, d_model: 8, "     \
    "n_heads: 1,\n        max_seq_len: 16, vocab_size: 64}\n" TOKEN_DATA ADAMW

/* How many plans are made, and how many of their runs are replays. The first two runs
 * of a plan are launched kernel by kernel. */
static void
count_replays_of(struct et_ctx *cx, const char *what, const char *text, int64_t workers,
                 int64_t grad_accum, int plans)
{
    enum { RUNS = 14 };
    struct recipe_run r;
    struct et_graph_stats stats;
    recipe_open(&r, cx, text,
                &(struct recipe_choice){.device = name,
                                        .workers = workers ? workers : -1,
                                        .grad_accum = grad_accum});
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(RUNS)));
    et_graph_get_stats(r.state->graph, &stats);
    is_int((long)stats.plans_built, plans, "%s, %d workers: plans made", what,
           (int)workers);
    is_int((long)stats.launches, plans * (RUNS - 2),
           "%s: each is replayed in all of %d steps but two", what, RUNS);
    recipe_close(&r);
}

/* A loader with W workers has batches at W + 2 places. Of resident images these are the
 * frames; a batch that is done in pieces is made of them first. Each piece has a plan,
 * and so has the update. */
static void
count_replays(struct et_ctx *cx)
{
    for (int64_t workers = 0; workers <= 8; workers++) {
        count_replays_of(cx, "resident images", LENET("100ep"), workers, 1, 1);
        count_replays_of(cx, "tokens", TOKENS, workers, 1, 1);
    }
    count_replays_of(cx, "resident images in 4 pieces", LENET("100ep"), 4, 4, 6);
    count_replays_of(cx, "tokens in 4 pieces", TOKENS, 4, 4, 5);
}

/* ---- a commit ---- */

/* What a recorded commit consists of: with microbatches it is a graph of its own. */
struct commit {
    int64_t begun, nodes, n;
};

static struct et_tensor *
begin_commit(void *data, struct et_state *s, struct et_tensor *grad)
{
    struct commit *c = data;
    (void)s;
    c->begun = gpusim_counts()->graph_nodes;
    return grad;
}

static et_status
end_commit(void *data, struct et_state *s, enum et_event event)
{
    struct commit *c = data;
    if (event != ET_EVENT_BATCH_START || s->timestamp.batch == 0)
        return ET_OK;
    c->nodes += gpusim_counts()->graph_nodes - c->begun;
    c->n++;
    return ET_OK;
}

#define ALL                                                                            \
    "precision: amp_fp16\nalgorithms:\n  ema: {half_life: 10ba}\n"                     \
    "  gradient_clipping: {clipping_type: norm, clipping_threshold: 0.5}\n"

/* The rates, the norm (of so few weights; of many it is two), the numbers that follow
 * from it, everything that is done to each weight, and what the host is told. */
enum { COMMIT = 6 };

static void
count_commit(struct et_ctx *cx)
{
    static const char text[] = LENET("100ep") ALL;
    struct recipe_run r;
    struct commit c = {0};
    const struct et_trainer_steps steps = {
        .data = &c, .at_event = end_commit, .clip_gradients = begin_commit};
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){.device = name, .grad_accum = 2});
    r.parts.config.loss_scaling.initial = 1024;
    r.parts.config.steps = &steps;
    recipe_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(BATCHES)));
    c.nodes = c.n = 0;
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(BATCHES)));
    is_int(c.nodes, COMMIT * c.n,
           "to unscale, measure, clip, update, average and cast takes %d nodes",
           COMMIT);
    recipe_close(&r);
}

/* Kernels of a warm step of TEXT, whose products take what follows them (EPILOGUES), or
 * do not. */
static int64_t
count_kernels(struct et_ctx *cx, const char *text, uint32_t epilogues)
{
    struct recipe_run r;
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){.device = name, .workers = -1});
    const struct et_device_table *real = r.parts.dev->table;
    struct et_device_table table = *real;
    table.epilogues &= epilogues;
    r.parts.dev->table = &table;
    recipe_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(BATCHES)));
    int64_t before = gpusim_counts()->graph_nodes;
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    int64_t n = gpusim_counts()->graph_nodes - before;
    r.parts.dev->table = real;
    recipe_close(&r);
    return n;
}

/* Of each of the two layers: gelu, its gradient, and the gradients of four biases, of
 * which two are sums in two stages. A gelu of f32 stays apart, and the sum behind its
 * gradient: the library's is not right enough. */
static void
count_epilogues(struct et_ctx *cx)
{
    static const struct {
        const char *what, *text;
        int64_t nodes, fewer;
    } rows[] = {
        {"gpt2", GPT("100ep"), 102, 8},
        {"gpt2 in amp_bf16", GPT("100ep") "precision: amp_bf16\n", 108, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t joined = count_kernels(cx, rows[i].text, UINT32_MAX);
        is_int(joined, rows[i].nodes, "%s: what a step launches", rows[i].what);
        is_int(count_kernels(cx, rows[i].text, 0) - joined, rows[i].fewer,
               "%d kernels fewer than where products stand alone", (int)rows[i].fewer);
    }
}

#define TURNED(where)                                                                  \
    "max_duration: 100ep\nseed: 17\nmodel: {name: lenet}\n" ADAMW                      \
    "train_data: {name: synthetic_images, num_samples: 32, num_unique: 32,\n"          \
    "             type: separable, resolution: 16, batch_size: 8,\n"                   \
    "             transforms_on: " where ",\n"                                         \
    "             transforms: [random_resized_crop: {size: 12}, "                      \
    "random_rotation: {degrees: 9},\n"                                                 \
    "                          color_jitter: {contrast: 0.4, hue: 0.1}, "              \
    "random_erasing]}\n"

/* Pictures that the step turns and changes are one kernel of it, and no launch. */
static void
count_turned(struct et_ctx *cx)
{
    int64_t host = count_kernels(cx, TURNED("host"), UINT32_MAX);
    is_int(count_kernels(cx, TURNED("device"), UINT32_MAX) - host, 1,
           "to turn and change pictures takes one kernel of a step");
    is_int(count_kernels(cx, TURNED("auto"), UINT32_MAX) - host, 1,
           "which auto does on a GPU, too");
    for (int64_t workers = 0; workers <= 4; workers += 4)
        count_replays_of(cx, "pictures turned and changed", TURNED("device"), workers,
                         1, 1);
}

/* Somebody else holds the memory that a whole batch needs: it is done in pieces. */
static void
crowd(struct et_ctx *cx)
{
    static const char text[] =
        "max_duration: 2ba\nmodel: {name: mlp, hidden: 256, layers: 2}\n"
        "train_data: {name: synthetic_images, num_samples: 4096, num_unique: 32,\n"
        "             type: separable, batch_size: 2048, resolution: 8}\n" SGD;
    struct recipe_run r;
    struct et_device_memory used;
    struct et_device_info info;
    char taken[64];
    recipe_open(&r, cx, text, &(struct recipe_choice){.device = name});
    recipe_fit(&r);
    et_device_get_memory(r.parts.dev, &used);
    et_device_get_info(r.parts.dev, &info);
    recipe_close(&r);
    snprintf(taken, sizeof taken, "%zu@1", info.memory_bytes - used.peak_bytes * 3 / 4);
    gpusim_take(taken);
    recipe_open(&r, cx, text,
                &(struct recipe_choice){.device = name, .grad_accum = -1});
    recipe_fit(&r);
    struct et_device_pool pool;
    need(cx, r.parts.dev->table->pool(r.parts.dev->handle, &pool));
    gpusim_take(NULL);
    is_int(r.n_losses, 2, "with memory that another holds every batch is done");
    int64_t pieces = r.trainer->pieces.accum;
    ok(pieces > 1, "in %lld pieces", (long long)pieces);
    is_int((long)pool.retries, 0, "and no memory was asked for in vain");
    recipe_close(&r);
    /* One piece less, asked for, does not fit. */
    gpusim_take(taken);
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){.device = name, .grad_accum = pieces - 1});
    recipe_start(&r);
    is_int(et_trainer_fit(r.trainer, ET_TIME_UNSET), ET_ENOMEM,
           "in %lld it would not have fitted", (long long)pieces - 1);
    gpusim_take(NULL);
    et_error_clear(cx);
    recipe_close(&r);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    setenv("ETUDE_TUNE", "0", 0); /* compiling and timing take longest there */
    setenv("ETUDE_RTC", "0", 0);
    if (!have_device(cx, name))
        skip_all("the device is not there");
    count(cx);
    count_replays(cx);
    count_commit(cx);
    count_epilogues(cx);
    count_turned(cx);
    crowd(cx);
    et_ctx_free(&cx);
    return done();
}
