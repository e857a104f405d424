/* SPDX-License-Identifier: Apache-2.0 */
/* What a step's commit takes: the gradient unscaled, measured and clipped, the update,
 * the average of the weights, the numbers for the host. All of it is counted: kernels,
 * copies and memory cleared, from the end of the last backward pass to the beginning of
 * the next batch. With two microbatches these are evaluations of their own.
 *
 * Whoever changes a plan changes these numbers: fewer is what one hopes for; more needs
 * its reason in the commit. */
#include <stdio.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"
#include "core/trainer/state.h"

/* Hidden layers without running statistics, all but the first of one shape, and one for
 * the outputs: two parameters each. */
#define PERCEPTRON                                                                     \
    "max_duration: 100ep\nseed: 17\n"                                                  \
    "model: {name: mlp, hidden: 32, layers: %d}\n" IMAGE_DATA

#define CLIP "  gradient_clipping: {clipping_type: norm, clipping_threshold: 0.5}\n"
#define EMA  "  ema: {half_life: 10ba}\n"

enum { PLAIN, CLIPPED, BF16, F16, AVERAGED, ALL, WAYS };
static const struct {
    const char *name, *text;
} ways[WAYS] = {
    [PLAIN] = {"plain", ""},
    [CLIPPED] = {"clipped", "algorithms:\n" CLIP},
    [BF16] = {"in bf16", "precision: amp_bf16\n"},
    [F16] = {"in f16", "precision: amp_fp16\n"},
    [AVERAGED] = {"averaged", "algorithms:\n" EMA},
    [ALL] = {"in f16, clipped and averaged",
             "precision: amp_fp16\nalgorithms:\n" CLIP EMA},
};

static const struct row {
    const char *optimizer;
    int launches[WAYS];
    int gpu[2]; /* plain, and all together; one is to count skips by parameter */
} rows[] = {
    {"{name: sgd, lr: 0.01}", {4, 4, 4, 4, 4, 4}, {6, 6}},
    {"{name: sgd, lr: 0.01, momentum: 0.9, weight_decay: 5.0e-4}",
     {4, 4, 4, 4, 4, 4},
     {6, 6}},
    {"{name: decoupled_sgdw, lr: 0.01, momentum: 0.9, weight_decay: 1.0e-5}",
     {4, 4, 4, 4, 4, 4},
     {6, 6}},
    {"{name: adam, lr: 1.0e-3}", {4, 4, 4, 4, 4, 4}, {6, 6}},
    {"{name: adamw, lr: 1.0e-3}", {4, 4, 4, 4, 4, 4}, {6, 6}},
    {"{name: adamw, lr: 1.0e-3, amsgrad: true}", {4, 4, 4, 4, 4, 4}, {6, 6}},
    {"{name: decoupled_adamw, lr: 1.0e-3, weight_decay: 1.0e-5}",
     {4, 4, 4, 4, 4, 4},
     {6, 6}},
    {"{name: rmsprop, lr: 1.0e-3, momentum: 0.9}", {4, 4, 4, 4, 4, 4}, {6, 6}},
    {"{name: radam, lr: 1.0e-3}", {4, 4, 4, 4, 4, 4}, {6, 6}},
    {"{name: lion, lr: 1.0e-4}", {4, 4, 4, 4, 4, 4}, {6, 6}},
    /* More: norms of weights and steps, ratios, their rows, the weights' own pass. */
    {"{name: lamb, lr: 1.0e-3, weight_decay: 0.01}", {9, 9, 9, 9, 9, 9}, {11, 11}},
    /* More: a norm, rows, a division, 2 packs, the pass behind, and for both shapes of
     * matrices five times three products and two passes. */
    {"{name: muon, lr: 0.02}", {61, 62, 61, 62, 61, 62}, {63, 64}},
};

/* None of it follows from how many parameters there are: 14 and 82, with more of them
 * than a constant in a plan has room for. */
enum { LAYERS = 3, MORE_LAYERS = 6, MANY_LAYERS = 40 };

/* ---- from the last backward pass to the next batch ---- */

struct watch {
    uint64_t begun; /* what had run when the update was begun */
    int64_t launches, commits;
};

static uint64_t
launches(const struct et_graph *g)
{
    struct et_graph_stats stats;
    et_graph_get_stats(g, &stats);
    return stats.kernels_run;
}

/* The microbatches are computed; what follows up to the next batch counts. */
static struct et_tensor *
begin(void *data, struct et_state *s, struct et_tensor *grad)
{
    struct watch *w = data;
    w->begun = launches(s->graph);
    return grad;
}

static et_status
end(void *data, struct et_state *s, enum et_event event)
{
    struct watch *w = data;
    if (event != ET_EVENT_BATCH_START || s->timestamp.batch == 0)
        return ET_OK;
    w->launches += (int64_t)(launches(s->graph) - w->begun);
    w->commits++;
    return ET_OK;
}

enum { WARM = 2, BATCHES = 2 };

static void
test_one(struct et_ctx *cx, const struct row *row, int way, int layers,
         const char *device, int launches)
{
    char text[2048];
    struct recipe_run r;
    struct watch w = {0};
    struct et_trainer_steps steps = {
        .data = &w, .at_event = end, .clip_gradients = begin};
    snprintf(text, sizeof text, PERCEPTRON "optimizer: %s\n%s", layers, row->optimizer,
             ways[way].text);
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){.device = device, .grad_accum = 2});
    r.parts.config.steps = &steps;
    r.parts.config.loss_scaling.initial = 1024; /* no update is skipped */
    recipe_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(WARM + 1)));
    w.launches = w.commits = 0;
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(BATCHES)));
    is_int(w.commits, BATCHES, "%s %s, %d layers on %s: %d commits are counted",
           row->optimizer, ways[way].name, layers, device, BATCHES);
    is_int(w.launches, launches * w.commits, "each of %d launches", launches);
    recipe_close(&r);
}

static void
test_all(struct et_ctx *cx, const struct row *row, const char *device)
{
    for (int way = 0; way < WAYS; way++)
        test_one(cx, row, way, LAYERS, device, row->launches[way]);
    test_one(cx, row, PLAIN, MORE_LAYERS, device, row->launches[PLAIN]);
    test_one(cx, row, ALL, MANY_LAYERS, device, row->launches[ALL]);
}

/* The host, which does not wait for a GPU, leaves it to choose the numbers of the
 * update that it comes to: one kernel more. Muon's clipped gradient is a pass of its
 * own, and comes before that choice: the count of skipped updates is then copied behind
 * it. */
static void
test_gpu(struct et_ctx *cx, const struct row *row, const char *device)
{
    test_one(cx, row, PLAIN, LAYERS, device, row->gpu[0]);
    test_one(cx, row, PLAIN, MORE_LAYERS, device, row->gpu[0]);
    test_one(cx, row, ALL, MANY_LAYERS, device, row->gpu[1]);
}

int
main(void)
{
    static const char *const devices[] = {"ref", "cpu", "gpusim"};
    struct et_ctx *cx = need_ctx();
    for (int d = 0; d < 3; d++)
        for (size_t i = 0;
             i < sizeof rows / sizeof rows[0] && have_device(cx, devices[d]); i++)
            (d < 2 ? test_all : test_gpu)(cx, &rows[i], devices[d]);
    et_ctx_free(&cx);
    return done();
}
