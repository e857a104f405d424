/* SPDX-License-Identifier: Apache-2.0 */
/* Each method on a GPU as on the processor: the losses of a short run, in fp32 to
 * rounding, in amp_fp16 to that dtype's, with the same updates skipped while the scale
 * of the loss comes down. The GPU is the simulated one, or the one that ETUDE_DEVICE
 * names. A row of algorithms.def that has no case here fails. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trainer/state.h"
#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"

enum { BATCHES = 8 };

/* Eight updates carry on what sums in another order round, 2^-24 of each:
 * t/train/golden.c allows as much. */
#define F32_LOSS 1e-5
/* A loss is of outputs in f16, which have 2^-11: eight of these. */
#define F16_LOSS (8 * 0x1p-11)

/* ---- what is trained ---- */

#define HEAD "max_duration: 8ba\nseed: 17\n"
#define IMAGES                                                                         \
    HEAD "optimizer: {name: sgd, lr: 0.02, momentum: 0.9}\n"                           \
         "train_data: {name: synthetic_images, type: separable, num_samples: 16,\n"    \
         "  num_unique: 16, batch_size: 8, workers: 0, resolution: 12}\n"              \
         "model:\n  name: layers\n  layers:\n"
/* Every norm and a dropout; no kinks, at which rounding may choose a side. */
#define NET                                                                            \
    IMAGES "    - conv2d: {out: 8, kernel: 3, padding: 1}\n"                           \
           "    - group_norm: {groups: 2}\n    - silu\n"                               \
           "    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n"                \
           "    - batch_norm\n    - silu\n    - adaptive_avg_pool2d\n"                 \
           "    - flatten\n    - linear: {out: 24}\n    - layer_norm\n    - silu\n"    \
           "    - dropout: {p: 0.2}\n    - linear: {out: 10}\n"
#define BLOCKS                                                                         \
    IMAGES "    - bottleneck: {channels: 2}\n    - bottleneck: {channels: 2}\n"        \
           "    - adaptive_avg_pool2d\n    - flatten\n    - linear: {out: 10}\n"
#define POOLED                                                                         \
    IMAGES "    - conv2d: {out: 8, kernel: 3, padding: 1}\n    - silu\n"               \
           "    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n    - silu\n"    \
           "    - max_pool2d: {kernel: 2, stride: 2}\n    - flatten\n"                 \
           "    - linear: {out: 10}\n"
#define TEXT                                                                           \
    HEAD "optimizer: {name: adamw, lr: 1.0e-3}\n"                                      \
         "train_data: {name: synthetic_tokens, num_samples: 16, vocab_size: 32,\n"     \
         "  seq_len: 8, batch_size: 8, workers: 0}\n"
#define SIZES "n_layers: 2, d_model: 16, n_heads: 2, max_seq_len: 8, vocab_size: 32"
#define GPT2  TEXT "model: {name: gpt2, " SIZES ", dropout: 0.1}\n"
#define BERT  TEXT "model: {name: bert, " SIZES ", dropout: 0.1}\n"

static const struct row {
    const char *name, *options, *recipe;
} rows[] = {
    {"alibi", "{max_sequence_length: 8, train_sequence_length_scaling: 0.5}", GPT2},
    {"augmix", "{}", NET},
    {"blurpool", "{min_channels: 1}", POOLED},
    {"channels_last", "{}", NET},
    {"colout", "{p_row: 0.3, p_col: 0.3}", NET},
    {"cutmix", "{}", NET},
    {"cutout", "{num_holes: 2}", NET},
    {"ema", "{half_life: 2ba}", NET},
    {"factorize", "{min_channels: 8, min_features: 8, latent_features: 4}", NET},
    {"gated_linear_units", "{}", BERT},
    {"ghost_batchnorm", "{ghost_batch_size: 4}", NET},
    {"gradient_clipping", "{clipping_type: norm, clipping_threshold: 0.1}", NET},
    {"gyro_dropout", "{sigma: 2, tau: 4}", NET},
    {"label_smoothing", "{smoothing: 0.2}", NET},
    {"layer_freezing", "{freeze_start: 0.2}", NET},
    {"low_precision_groupnorm", "{}", NET},
    {"low_precision_layernorm", "{}", GPT2},
    {"mixup", "{alpha: 1}", NET},
    {"progressive_resizing",
     "{initial_scale: 0.5, delay_fraction: 0.3, size_increment: 2}", NET},
    {"randaugment", "{}", NET},
    {"reduce_lr_on_plateau",
     "{monitor: Accuracy, dataloader_label: train, patience: 0}", NET},
    {"sam", "{rho: 0.1, interval: 2}", NET},
    {"selective_backprop", "{start: 0, end: 1, keep: 0.5, interrupt: 3}", NET},
    {"seq_length_warmup",
     "{duration: 1, min_seq_length: 2, max_seq_length: 8, step_size: 2}", GPT2},
    {"squeeze_excite", "{min_channels: 8, latent_channels: 4}", NET},
    {"stochastic_depth", "{target_layer_name: ResNetBottleneck, drop_rate: 0.5}",
     BLOCKS},
    {"swa", "{swa_start: 0.1dur, swa_end: 0.7dur, update_interval: 1ba}", NET},
    {"weight_standardization", "{}", NET},
};

static char gpu[32]; /* the device that is compared with the processor */

/* ---- runs ---- */

struct result {
    double loss[BATCHES];
    int n, skipped;
};

static struct result
train(struct et_ctx *cx, const struct row *row, const char *device, bool half)
{
    char text[4096];
    struct recipe_run r;
    struct result out = {.n = 0};
    snprintf(text, sizeof text, "%s%salgorithms:\n  %s: %s\n", row->recipe,
             half ? "precision: amp_fp16\n" : "", row->name, row->options);
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){.device = device, .grad_accum = 1});
    r.parts.config.loss_scaling.initial = 0x1p20; /* overflows until it is less */
    if (strcmp(et_device_name(r.parts.dev), device) != 0)
        bail("a run on %s, not on %s", et_device_name(r.parts.dev), device);
    recipe_start(&r);
    recipe_fit(&r);
    for (; out.n < r.n_losses && out.n < BATCHES; out.n++)
        out.loss[out.n] = r.loss[out.n];
    out.skipped = r.n_losses - (int)r.state->params->slot[0].updates;
    recipe_close(&r);
    return out;
}

/* The largest difference, by the loss's size. */
static double
distance(const struct result *a, const struct result *b)
{
    double worst = a->n == BATCHES && b->n == BATCHES ? 0 : INFINITY;
    for (int i = 0; i < a->n && i < b->n; i++)
        worst = fmax(worst, fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]));
    return isfinite(worst) ? worst : INFINITY;
}

static void
compare(struct et_ctx *cx, const struct row *row, bool half)
{
    struct result host = train(cx, row, "cpu", half), there = train(cx, row, gpu, half);
    double worst = distance(&there, &host), allowed = half ? F16_LOSS : F32_LOSS;
    ok(worst <= allowed, "%s: losses in %s are the processor's (worst %.1e)", row->name,
       half ? "amp_fp16" : "fp32", worst);
    for (int i = 0; worst > allowed && i < BATCHES; i++)
        diag("%.7f, not %.7f", there.loss[i], host.loss[i]);
    if (!half)
        return;
    ok(host.skipped > 0 && host.skipped < BATCHES,
       "%s: the scale comes down in %d skipped updates", row->name, host.skipped);
    is_int(there.skipped, host.skipped, "%s: as many there", row->name);
}

static const struct row *
row_of(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    ok(false, "%s has a case", name);
    return NULL;
}

/* t/algorithms/devices NAME...: those methods alone. */
int
main(int argc, char **argv)
{
    struct et_ctx *cx = need_ctx();
    snprintf(gpu, sizeof gpu, "%s", test_device("gpusim"));
    if (strcmp(gpu, "gpusim") == 0) { /* where compiling and timing take longest */
        setenv("ETUDE_TUNE", "0", 0);
        setenv("ETUDE_RTC", "0", 0);
    }
    unsetenv("ETUDE_DEVICE"); /* "cpu" is the processor here */
    if (!have_device(cx, gpu) || !have_device(cx, "cpu"))
        skip_all("the devices are not there");
    for (int i = 0; et_algorithm_classes[i]; i++) {
        const struct row *row = row_of(et_algorithm_classes[i]->info.name);
        if (!row || !is_chosen(argc, argv, row->name))
            continue;
        compare(cx, row, false);
        compare(cx, row, true);
    }
    et_ctx_free(&cx);
    return done();
}
