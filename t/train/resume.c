/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is stopped after any of its batches and begun again from its checkpoint
 * gives the same bits as one that never stopped: losses, evaluations, parameters. For
 * every algorithm there is, mid-epoch, with workers, dropout, augmentation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/masked.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"
#include "core/trainer/state.h"

enum { BATCHES = 10, MAX_METRICS = 8 }; /* of 4 an epoch */

#define EVALUATION(data)                                                               \
    "eval_interval: 3ba\n"                                                             \
    "eval_data:\n" data

#define IMAGES_TO_EVALUATE                                                             \
    "  name: synthetic_images\n"                                                       \
    "  num_samples: 12\n"                                                              \
    "  type: separable\n"                                                              \
    "  resolution: 16\n"                                                               \
    "  batch_size: 8\n"                                                                \
    "  transforms: [center_crop: {size: 12}]\n"

#define IMAGE_RUN RESNET("10ba") EVALUATION(IMAGES_TO_EVALUATE)

/* What each algorithm is tested with: options that make it act in so short a run. One
 * that is not here is tested with its defaults. */
static const struct {
    const char *name, *text;
} options[] = {
    {"ema", "{half_life: 2ba, ema_start: 2ba}"},
    {"selective_backprop", "{start: 0.0, end: 1.0, keep: 0.5, interrupt: 3}"},
    {"progressive_resizing", "{initial_scale: 0.7, delay_fraction: 0.1, mode: crop}"},
    {"sam", "{rho: 0.05, interval: 2}"},
    {"colout", "{p_row: 0.3}"},
    {"randaugment", "{severity: 5}"},
    {"squeeze_excite", "{min_channels: 8, latent_channels: 0.5}"},
    {"swa", "{swa_start: 0.2dur, swa_end: 0.8dur, update_interval: 1ba, "
            "schedule_swa_lr: true, swa_lr: 0.005}"},
    {"layer_freezing", "{freeze_start: 0.1}"},
    {"reduce_lr_on_plateau",
     "{monitor: Accuracy, dataloader_label: train, patience: 0, "
     "threshold: 10, threshold_mode: abs, factor: 0.5}"},
    {"ghost_batchnorm", "{ghost_batch_size: 4}"},
    {"factorize", "{min_channels: 16}"},
    {"alibi", "{max_sequence_length: 16}"},
    {"gyro_dropout", "{sigma: 3, tau: 2}"},
    {"seq_length_warmup", "{duration: 0.8, min_seq_length: 4, max_seq_length: 16, "
                          "step_size: 4}"},
    {"stochastic_depth", "{target_layer_name: ResNetBottleneck, drop_rate: 0.6, "
                         "drop_warmup: 0.5dur}"},
    {"gradient_clipping", "{clipping_type: norm, clipping_threshold: 0.1}"},
};

/* Residual blocks, some of which have Adam's moments and counts of their own, and
 * dropout of vectors. */
#define BLOCKS(duration)                                                               \
    "max_duration: " duration "\nseed: 17\nmodel:\n  name: layers\n  layers:\n"        \
    "    - bottleneck: {channels: 2}\n    - bottleneck: {channels: 2, stride: 2}\n"    \
    "    - bottleneck: {channels: 2}\n    - adaptive_avg_pool2d\n    - flatten\n"      \
    "    - dropout: {p: 0.2}\n    - linear: {out: 10}\n" IMAGE_DATA ADAMW

/* And in which run, where it is not IMAGE_RUN. */
static const struct {
    const char *name, *text;
} runs[] = {
    {"low_precision_layernorm", GPT("10ba") "precision: amp_bf16\n"},
    {"low_precision_groupnorm", LAYERS("3ep") "precision: amp_bf16\n"},
    {"gated_linear_units", BERT("10ba")},
    {"alibi", GPT("10ba")},
    {"seq_length_warmup", GPT("10ba")},
    {"stochastic_depth", BLOCKS("10ba") EVALUATION(IMAGES_TO_EVALUATE)},
    {"gyro_dropout", BLOCKS("10ba")},
};

static const struct {
    const char *name, *text;
} others[] = {
    {"resnet8, an evaluation every 3 batches", IMAGE_RUN},
    {"gpt2 with dropout", GPT("10ba")},
    /* of which some end in the middle of an epoch */
    {"iterations of tokens", "iteration_length: 300tok\n" GPT("10ba")},
    {"layers of all kinds", LAYERS("3ep")},
    {"a schedule by epochs",
     "max_duration: 10ba\nseed: 3\nmodel: {name: lenet}\n" IMAGE_DATA
     "optimizer: {name: lamb, lr: 0.01}\n"
     "scheduler: {name: step, step_size: 1ep, step_every: epoch}\n"},
    {"amp_bf16, averaged, an evaluation every 3 batches",
     IMAGE_RUN "precision: amp_bf16\nalgorithms:\n  ema: {half_life: 2ba}\n"},
    {"parameter groups", "max_duration: 10ba\nseed: 17\n" GPT_MODEL TOKEN_DATA
                         "optimizer: {name: adamw, lr: 1.0e-3, groups: [{match: "
                         "'ln|bias', weight_decay: 0},"
                         " {match: 'h.1', lr: 0.1x, scheduler: constant}]}\n"
                         "scheduler: {name: linear_with_warmup, t_warmup: 2ba}\n"},
    {"algorithms together",
     IMAGE_RUN "algorithms:\n  mixup:\n  label_smoothing:\n  ema: {half_life: 2ba}\n"
               "  gradient_clipping: {clipping_type: norm, clipping_threshold: 1.0}\n"
               "  sam: {interval: 3}\n"},
};

struct result {
    struct et_timestamp clock;
    int64_t batches;
    double loss[MAX_LOSSES];
    int n_metrics;
    struct et_metric_value metric[MAX_METRICS];
    void *params;
    size_t bytes;
};

static char folder[256];
/* Two wait for each other, which takes as long as the work where other tests run beside
 * this one: the recipes are trained on two, and each algorithm on one. */
static int threads = 2;

static struct et_checkpoint_config
saving(void)
{
    return (struct et_checkpoint_config){
        .directory = folder,
        .interval = ET_BATCHES(100),
        .keep = 1,
        .incarnation = 1,
    };
}

/* Trains up to STOP (0: to the end), from the checkpoint where RESUMED, and notes
 * losses, in their places, and how it stands. */
static void
train(struct et_ctx *cx, const char *text, int64_t stop, bool resumed, bool saved,
      struct result *out)
{
    struct recipe_run r;
    const struct et_checkpoint_config to = saving();
    const struct et_load_config from = {.directory = folder};
    recipe_open(&r, cx, text,
                &(struct recipe_choice){
                    .device = "cpu",
                    .repeats = true,
                    .threads = threads,
                    .workers = 2,
                    .stop_after = stop,
                    .checkpoint = saved ? &to : NULL,
                    .load = resumed ? &from : NULL,
                });
    int64_t first = r.state->timestamp.batch;
    recipe_fit(&r);
    for (int i = 0; i < r.n_losses; i++)
        out->loss[first + i] = r.loss[i];
    out->clock = r.state->timestamp;
    out->batches = out->clock.batch;
    out->n_metrics = r.state->n_eval_metrics;
    for (int i = 0; i < out->n_metrics && i < MAX_METRICS; i++)
        out->metric[i] = r.state->eval_metrics[i];
    free(out->params);
    out->params = recipe_params(&r, &out->bytes);
    recipe_close(&r);
}

/* "" where B is what A is, or what differs first. */
static const char *
difference(const struct result *a, const struct result *b)
{
    static char text[128];
    if (a->batches != b->batches)
        return snprintf(text, sizeof text, "%d batches, not %d", (int)b->batches,
                        (int)a->batches),
               text;
    const struct et_timestamp *x = &a->clock, *y = &b->clock;
    if (x->iteration != y->iteration || x->token_in_iteration != y->token_in_iteration)
        return snprintf(text, sizeof text,
                        "iteration %d after %d tokens, not %d after %d",
                        (int)y->iteration, (int)y->token_in_iteration,
                        (int)x->iteration, (int)x->token_in_iteration),
               text;
    if (x->epoch != y->epoch || x->sample != y->sample || x->token != y->token)
        return "epochs, samples or tokens";
    for (int i = 0; i < a->batches; i++)
        if (memcmp(&a->loss[i], &b->loss[i], sizeof a->loss[i]) != 0)
            return snprintf(text, sizeof text, "loss %d is %.9g, not %.9g", i,
                            b->loss[i], a->loss[i]),
                   text;
    for (int i = 0; i < a->n_metrics; i++)
        if (a->n_metrics != b->n_metrics ||
            memcmp(&a->metric[i], &b->metric[i], sizeof a->metric[i]) != 0)
            return "an evaluation";
    return a->bytes == b->bytes && memcmp(a->params, b->params, a->bytes) == 0
               ? ""
               : "parameters";
}

static void
clear(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        bail("cannot clear %s", folder);
}

/* Stops after each batch in turn; and once after every batch of one run. */
static void
check_recipe(struct et_ctx *cx, const char *name, const char *text)
{
    struct result whole = {0}, parts = {0}, all = {0};
    const char *wrong = "";
    int stop;
    train(cx, text, 0, false, false, &whole);
    for (stop = 1; stop < whole.batches && !wrong[0]; stop++) {
        clear();
        train(cx, text, stop, false, true, &parts);
        if (parts.batches != stop)
            bail("%s: stopped after %d batches, not %d", name, (int)parts.batches,
                 stop);
        train(cx, text, 0, true, true, &parts);
        wrong = difference(&whole, &parts);
    }
    ok(!wrong[0], "%s: stopped after any batch, it goes on bit for bit", name);
    if (wrong[0])
        diag("stopped after %d: %s", stop - 1, wrong);
    clear();
    train(cx, text, 1, false, true, &all);
    for (stop = 2; stop <= whole.batches; stop++)
        train(cx, text, stop < whole.batches ? stop : 0, true, true, &all);
    wrong = difference(&whole, &all);
    ok(!wrong[0], "%s: so does one that is stopped after every batch", name);
    if (wrong[0])
        diag("%s", wrong);
    free(whole.params);
    free(parts.params);
    free(all.params);
}

static void
check_algorithm(struct et_ctx *cx, const struct et_algorithm_class *c)
{
    char text[4096];
    const char *with = "", *run = IMAGE_RUN;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i].name, c->info.name) == 0)
            with = options[i].text;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        if (strcmp(runs[i].name, c->info.name) == 0)
            run = runs[i].text;
    snprintf(text, sizeof text, "%salgorithms:\n  %s: %s\n", run, c->info.name, with);
    check_recipe(cx, c->info.name, text);
}

/* Lines of 1 to 14 words, several in a sequence of 16, some of whose tokens are hidden
 * anew each epoch: four batches an epoch. */
static const char *
packed_recipe(const char *to)
{
    static char text[2048];
    static const char vocabulary[] =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\ngreen\nblue\nsea\nsky\nsun\n";
    char lines[4096];
    size_t n = 0;
    for (int i = 0; i < 34; i++)
        for (int k = 0, last = i * 5 % 14; k <= last; k++)
            n += (size_t)snprintf(lines + n, sizeof lines - n, "%s%c",
                                  (const char *[]){"red", "green", "blue", "sea", "sky",
                                                   "sun"}[(i * i + k * 7) % 6],
                                  k < last ? ' ' : '\n');
    write_masked(to, "vocab.txt", vocabulary);
    write_masked(to, "lines.txt", lines);
    snprintf(
        text, sizeof text,
        "max_duration: 10ba\nseed: 17\n"
        "model: {name: bert, n_layers: 1, d_model: 16, n_heads: 2, max_seq_len: 16,\n"
        "        dropout: 0.1}\n"
        "train_data: {name: masked_text, path: %s/lines.txt, document: line,\n"
        "  packing: best_fit, tokenizer: %s/vocab.txt, seq_len: 16, batch_size: "
        "4}\n" ADAMW,
        to, to);
    return text;
}

/* t/train/resume NAME...: of those recipes and algorithms alone. */
int
main(int argc, char **argv)
{
    struct et_ctx *cx = need_ctx();
    if (!have_device(cx, "cpu"))
        return done();
    snprintf(folder, sizeof folder, "%s/checkpoints", scratch_folder());
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_chosen(argc, argv, others[i].name))
            check_recipe(cx, others[i].name, others[i].text);
    if (is_chosen(argc, argv, "packed masked text"))
        check_recipe(cx, "packed masked text", packed_recipe(scratch_folder()));
    threads = 1;
    for (const struct et_algorithm_class *const *c = et_algorithm_classes; *c; c++)
        if (is_chosen(argc, argv, (*c)->info.name))
            check_algorithm(cx, *c);
    clear();
    et_ctx_free(&cx);
    return done();
}
