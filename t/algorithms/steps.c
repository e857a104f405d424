/* SPDX-License-Identifier: Apache-2.0 */
/* What a step with a method costs, in kernels and plans, and that it is the same step
 * however a batch is split; in fp32 and in amp_bf16. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

/* No batch norm, no chance, nothing with a kink; 16 samples are two batches. */
#define IMAGES                                                                         \
    "max_duration: 12ba\nseed: 17\n"                                                   \
    "train_data: {name: synthetic_images, type: separable, num_samples: 16,\n"         \
    "  num_unique: 16, batch_size: 8, workers: 0, resolution: 12}\n"                   \
    "optimizer: {name: sgd, lr: 0.02}\n"
#define NET                                                                            \
    IMAGES "model:\n  name: layers\n  layers:\n"                                       \
           "    - conv2d: {out: 8, kernel: 3, padding: 1}\n"                           \
           "    - group_norm: {groups: 2}\n    - silu\n"                               \
           "    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n    - silu\n"    \
           "    - adaptive_avg_pool2d\n    - flatten\n    - linear: {out: 24}\n"       \
           "    - layer_norm\n    - silu\n    - linear: {out: 10}\n"
#define BLOCKS                                                                         \
    IMAGES "model:\n  name: layers\n  layers:\n    - bottleneck: {channels: 2}\n"      \
           "    - bottleneck: {channels: 2}\n    - bottleneck: {channels: 2}\n"        \
           "    - adaptive_avg_pool2d\n    - flatten\n    - dropout: {p: 0.5}\n"       \
           "    - linear: {out: 10}\n"
#define RESIDUAL IMAGES "model: {name: resnet8}\n"
#define TEXT                                                                           \
    "max_duration: 12ba\nseed: 17\n"                                                   \
    "train_data: {name: synthetic_tokens, num_samples: 16, vocab_size: 32,\n"          \
    "  seq_len: 8, batch_size: 8, workers: 0}\n"                                       \
    "optimizer: {name: adamw, lr: 1.0e-3}\n"
#define SIZES    "n_layers: 2, d_model: 16, n_heads: 2, max_seq_len: 8, vocab_size: 32"
#define GPT2_NET TEXT "model: {name: gpt2, " SIZES ", dropout: 0}\n"
#define BERT_NET TEXT "model: {name: bert, " SIZES ", dropout: 0}\n"

/* Kernels of a step in a trainer, without and with the method. Fewer is what one hopes
 * for; more needs its reason in the commit. */
static const struct row {
    const char *method, *recipe;
    int without, with;         /* in fp32 */
    int low_without, low_with; /* in amp_bf16 */
    bool splits;               /* microbatches make no other step of a batch */
    int plans;                 /* of a run behind the second step */
} rows[] = {
    {"squeeze_excite: {min_channels: 8, latent_channels: 0.5}", NET, 52, 66, 64, 80,
     true, 0},
    {"swa: {swa_start: 0ep, swa_end: 99ep, update_interval: 1ba}", NET, 52, 53, 64, 65,
     true, 0},
    {"layer_freezing: {freeze_start: 0}", NET, 52, 37, 64, 42, true, 1},
    {"ghost_batchnorm: {ghost_batch_size: 4}", RESIDUAL, 82, 147, 94, 159, false, 0},
    {"channels_last:", NET, 52, 52, 64, 64, true, 0},
    {"factorize: {min_channels: 8, min_features: 8, latent_features: 4}", NET, 52, 61,
     64, 76, true, 0},
    {"weight_standardization:", NET, 52, 56, 64, 70, true, 0},
    {"low_precision_layernorm:", GPT2_NET, 79, 79, 95, 114, true, 0},
    {"low_precision_groupnorm:", NET, 52, 52, 64, 64, true, 0},
    {"gated_linear_units:", BERT_NET, 114, 120, 145, 151, true, 0},
    {"alibi: {max_sequence_length: 8, train_sequence_length_scaling: 0.5}", GPT2_NET,
     79, 77, 95, 93, true, 0},
    {"stochastic_depth: {target_layer_name: ResNetBottleneck, drop_rate: 0.5}", BLOCKS,
     97, 112, 110, 125, false, 0},
    {"stochastic_depth: {target_layer_name: ResNetBottleneck, drop_rate: 0.5,\n"
     "    stochastic_method: sample}",
     BLOCKS, 97, 105, 110, 121, false, 0},
    {"gyro_dropout: {sigma: 2, tau: 4}", BLOCKS, 97, 98, 110, 111, false, 0},
    {"seq_length_warmup: {duration: 0.5, min_seq_length: 2, max_seq_length: 8,\n"
     "    step_size: 6}",
     GPT2_NET, 79, 79, 95, 95, true, 0},
    {"cutmix: {alpha: 1}", NET, 52, 68, 64, 80, true, 0},
    {"cutout: {num_holes: 2}", NET, 52, 64, 64, 75, true, 0},
    {"colout: {p_row: 0.3, p_col: 0.3}", NET, 52, 54, 64, 66, true, 0},
    {"colout: {p_row: 0.3, p_col: 0.3, batch: false}", NET, 52, 52, 64, 64, true, 0},
    {"augmix: {depth: 2, width: 2}", NET, 52, 52, 64, 64, true, 0},
    {"randaugment: {depth: 2}", NET, 52, 52, 64, 64, true, 0},
};

struct result {
    double loss[8];
    int n;
    int64_t kernels;       /* of a step */
    int64_t plans, blocks; /* of the steps behind the second */
};

static struct result
run(struct et_ctx *cx, const char *recipe, const char *method, bool low, int64_t accum)
{
    char text[4096];
    struct recipe_run r;
    struct et_graph_stats before, after;
    struct et_alloc_stats blocks, blocks_after;
    struct result out = {0};
    snprintf(text, sizeof text, "%s%s%s%s%s", recipe,
             low ? "precision: amp_bf16\n" : "", *method ? "algorithms:\n  " : "",
             method, *method ? "\n" : "");
    recipe_open(&r, cx, text, &(struct recipe_choice){.grad_accum = accum});
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(2)));
    et_graph_get_stats(r.state->graph, &before);
    et_alloc_get_stats(cx, &blocks);
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(2)));
    et_graph_get_stats(r.state->graph, &after);
    et_alloc_get_stats(cx, &blocks_after);
    out.blocks = (int64_t)(blocks_after.allocs - blocks.allocs);
    out.kernels = (int64_t)(after.kernels_run - before.kernels_run) / 2;
    out.plans = (int64_t)(after.plans_built - before.plans_built);
    for (int i = 0; i < r.n_losses && i < 8; i++)
        out.loss[out.n++] = r.loss[i];
    recipe_close(&r);
    return out;
}

/* The largest difference of the first N losses, by their size. */
static double
distance(const struct result *a, const struct result *b)
{
    double worst = a->n == 4 && b->n == 4 ? 0 : INFINITY;
    for (int i = 0; i < a->n && i < b->n; i++)
        worst = fmax(worst, fabs(a->loss[i] - b->loss[i]) / fabs(a->loss[i]));
    return isfinite(worst) ? worst : INFINITY;
}

/* The runs without a method; those of a row are as those of the row before where both
 * have one recipe. */
static struct result plain, low_plain;
static const char *plain_of;

static void
test_row(struct et_ctx *cx, const struct row *row)
{
    char name[32];
    if (!plain_of || strcmp(plain_of, row->recipe) != 0) {
        plain = run(cx, row->recipe, "", false, 1);
        low_plain = run(cx, row->recipe, "", true, 1);
        plain_of = row->recipe;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->method, ":"), row->method);
    struct result one = run(cx, row->recipe, row->method, false, 1);
    is_int(plain.kernels, row->without, "%s: a step without it", name);
    is_int(one.kernels, row->with, "%s: with it %d kernels more", name,
           row->with - row->without);
    is_int(one.plans, row->plans, "%s: plans behind the second step", name);
    if (row->plans == 0)
        is_int(one.blocks, plain.blocks, "%s: it takes no memory a step", name);
    struct result low = run(cx, row->recipe, row->method, true, 1);
    is_int(low_plain.kernels, row->low_without, "%s: a step in amp_bf16 without it",
           name);
    is_int(low.kernels, row->low_with, "%s: with it", name);
    ok(distance(&one, &low) < 0.03, "%s: losses are near those of fp32 (%g)", name,
       distance(&one, &low));
    if (!row->splits)
        return;
    struct result split = run(cx, row->recipe, row->method, false, 4);
    ok(distance(&one, &split) < STEPS_TOL, "%s: in four microbatches they are the same",
       name);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        test_row(cx, &rows[i]);
    return finish(cx);
}
