/* SPDX-License-Identifier: Apache-2.0 */
/* ETUDE_EAGER=1, where each node is computed alone, gives the planned run bit for bit.
 *
 * The plan fuses: chains of element-wise ops, batch norm with the sum and ReLU behind
 * it, the parts of a concatenation, updates of all parameters. Fused kernels round
 * where the single ones store, so that the two do not differ; but on a GPU, whose
 * library rounds a gelu behind a product in other places, and adds a bias' gradient up
 * in another order beside a product: there losses are near. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"
#include "core/trainer/state.h"

static const struct {
    const char *name, *text;
} models[] = {
    {"resnet8", RESNET("6ba")},
    {"gpt2", GPT("6ba")},
    {"lenet", LENET("6ba")},
    {"layers", LAYERS("6ba")},
    {"resnet8 with algorithms",
     RESNET("6ba") "algorithms:\n  blurpool:\n  label_smoothing:\n  mixup:\n"
                   "  ema: {half_life: 2ba}\n  sam:\n"
                   "  gradient_clipping: {clipping_type: norm, "
                   "clipping_threshold: 0.5}\n"},
    {"resnet8 in bf16", RESNET("6ba") "precision: amp_bf16\n"},
    {"gpt2 in bf16", GPT("6ba") "precision: amp_bf16\n"},
    {"layers in f16", LAYERS("6ba") "precision: amp_fp16\n"},
    {"resnet8 in bf16 with ema and evaluations",
     RESNET("6ba") "precision: amp_bf16\nalgorithms:\n  ema: {half_life: 2ba}\n"
                   "eval_interval: 2ba\n"
                   "eval_data: {name: synthetic_images, num_samples: 16, type: "
                   "separable,\n"
                   "            resolution: 12, batch_size: 8}\n"},
    {"resnet8 in f16 with sam",
     RESNET("6ba") "precision: amp_fp16\nalgorithms:\n  sam:\n"
                   "  gradient_clipping: {clipping_type: norm, "
                   "clipping_threshold: 0.5}\n"},
};

enum { MAX_METRICS = 4 };
struct result {
    int n_losses;
    double loss[MAX_LOSSES];
    void *params;
    size_t bytes;
    uint64_t kernels;
    double near; /* how far losses may be apart, by their size; 0: not at all */
    int n_metrics;
    double metric[MAX_METRICS];
};

/* Rounding carries f32 less than 3e-6 in these steps (t/train/golden.c); one rounding
 * to bf16, where a loss is the mean of many numbers that have several each. */
#define NEAR       1e-5
#define NEAR_MIXED 0x1p-8

static struct result
train(struct et_ctx *cx, const char *text, const char *device, bool eager)
{
    struct recipe_run r;
    struct result out = {0};
    struct et_graph_stats stats;
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    recipe_open(&r, cx, text,
                &(struct recipe_choice){.device = device, .repeats = true});
    if (strcmp(et_device_name(r.parts.dev), "cuda") == 0 ||
        strcmp(et_device_name(r.parts.dev), "gpusim") == 0)
        out.near = r.recipe->precision == ET_PRECISION_FP32 ? NEAR : NEAR_MIXED;
    recipe_fit(&r);
    unsetenv("ETUDE_EAGER");
    out.n_losses = r.n_losses;
    memcpy(out.loss, r.loss, sizeof r.loss);
    out.n_metrics = r.state->n_eval_metrics;
    for (int i = 0; i < out.n_metrics && i < MAX_METRICS; i++)
        out.metric[i] = r.state->eval_metrics[i].value;
    out.params = recipe_params(&r, &out.bytes);
    et_graph_get_stats(r.state->graph, &stats);
    out.kernels = stats.kernels_run;
    recipe_close(&r);
    return out;
}

static void
compare(struct et_ctx *cx, const char *name, const char *text, const char *device)
{
    struct result planned = train(cx, text, device, false);
    struct result eager = train(cx, text, device, true);
    int same = 0;
    while (same < planned.n_losses && fabs(planned.loss[same] - eager.loss[same]) <=
                                          planned.near * fabs(planned.loss[same]))
        same++;
    ok(planned.n_losses == 6 && eager.n_losses == 6 && same == 6,
       "%s on %s: eager losses are the planned ones", name, device);
    if (same < planned.n_losses)
        diag("batch %d: planned %.9g, eager %.9g", same + 1, planned.loss[same],
             eager.loss[same]);
    ok(planned.near > 0 || memcmp(planned.params, eager.params, planned.bytes) == 0,
       "%s on %s: so are the parameters%s", name, device,
       planned.near > 0 ? " (not compared)" : "");
    ok(planned.n_metrics == eager.n_metrics &&
           memcmp(planned.metric, eager.metric, sizeof planned.metric) == 0,
       "%s on %s: and what an evaluation found (%d numbers)", name, device,
       planned.n_metrics);
    ok(planned.kernels < eager.kernels, "%s on %s: the plan ran fewer kernels (%d, %d)",
       name, device, (int)planned.kernels, (int)eager.kernels);
    free(planned.params);
    free(eager.params);
}

int
main(void)
{
    static const char *const devices[] = {"ref", "cpu"};
    struct et_ctx *cx = need_ctx();
    for (int d = 0; d < 2; d++)
        if (have_device(cx, devices[d]))
            for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
                compare(cx, models[i].name, models[i].text, devices[d]);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
