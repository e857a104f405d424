/* SPDX-License-Identifier: Apache-2.0 */
/* Space-time equivalence: a batch is the same batch in 1, 2, 4 or 8 microbatches, for
 * every model and every algorithm there is. A row of models.def or algorithms.def that
 * has no case here fails.
 *
 * Batch norm is the one layer whose statistics are those of a microbatch: its running
 * statistics are frozen (et_module_freeze_stats), so that training uses what evaluation
 * would. The rest of such a model is then held to the same as all others. In deep ones
 * bn_uniform halves what each residual branch adds, or values would double with every
 * block that nothing normalises. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etude/nn.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "core/trainer/state.h"

/* A loss is a sum of eight f32 numbers of its own size, each rounded by 2^-24 of it.
 * The second one also has what the gradient's rounding, once more 2^-24, did to
 * parameters, and they move it by a tenth at most. */
#define ROUNDING (9 * 0x1p-24)
/* What the update between the two losses moves them by at least, or a wrong gradient
 * would not show. */
#define MOVES 1e-4

enum { BATCH = 8, BATCHES = 2 };

#define HEAD(lr)     "max_duration: 9ba\nseed: 17\noptimizer: {name: sgd, lr: " lr "}\n"
#define IMAGES(size) HEAD("0.05") IMAGE_DATA(size)
#define DEEP(size)   HEAD("0.02") IMAGE_DATA(size)
#define IMAGE_DATA(size)                                                               \
    "train_data: {name: synthetic_images, type: separable, num_samples: 8,\n"          \
    "  num_unique: 8, batch_size: 8, workers: 0, resolution: " #size "}\n"
#define TOKENS                                                                         \
    HEAD("0.1")                                                                        \
    "train_data: {name: synthetic_tokens, num_samples: 8, vocab_size: 32,\n"           \
    "  seq_len: 8, batch_size: 8, workers: 0}\n"
/* Arrays that the test writes: pictures with a class for each pixel, texts with tokens
 * to guess or a class each. */
#define ARRAYS(lr, path)                                                               \
    HEAD(lr) "train_data: {name: npy, path: " path ", batch_size: 8, workers: 0}\n"
#define MASKS(lr) ARRAYS(lr, "masks")
#define GUESSES   ARRAYS("0.1", "guesses")
#define SENTENCES ARRAYS("0.1", "sentences")
#define TRANSFORMER                                                                    \
    "n_layers: 2, d_model: 16, n_heads: 2, max_seq_len: 8, dropout: 0.1}\n"

/* Something for each algorithm: strides, pools, norms, dropout, any size of image. */
#define LAYERS                                                                         \
    "model:\n"                                                                         \
    "  name: layers\n"                                                                 \
    "  layers:\n"                                                                      \
    "    - conv2d: {out: 8, kernel: 3, padding: 1}\n"                                  \
    "    - group_norm: {groups: 2}\n"                                                  \
    "    - relu\n"                                                                     \
    "    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n"                       \
    "    - batch_norm\n"                                                               \
    "    - relu\n"                                                                     \
    "    - max_pool2d: {kernel: 2}\n"                                                  \
    "    - dropout: {p: 0.2}\n"                                                        \
    "    - adaptive_avg_pool2d\n"                                                      \
    "    - flatten\n"                                                                  \
    "    - linear: {out: 10}\n"

/* Every word that a network may be spelled with: blocks, ways around, what joins. */
#define SPELLED                                                                        \
    "model:\n"                                                                         \
    "  name: layers\n"                                                                 \
    "  blocks:\n"                                                                      \
    "    unit:\n"                                                                      \
    "      - conv2d: {out: $out, kernel: 3, padding: 1, no_bias: true}\n"              \
    "      - batch_norm\n"                                                             \
    "      - relu\n"                                                                   \
    "  layers:\n"                                                                      \
    "    - unit: {out: 8}\n"                                                           \
    "      as: early\n"                                                                \
    "    - max_pool2d: {kernel: 2}\n"                                                  \
    "    - repeat: {times: 2, layers: [{residual: [{unit: {out: 8}}]}]}\n"             \
    "    - residual:\n"                                                                \
    "        layers: [{unit: {out: 12}}]\n"                                            \
    "        shortcut: [{conv2d: {out: 12, kernel: 1}}]\n"                             \
    "      as: deep\n"                                                                 \
    "    - from: early\n"                                                              \
    "    - conv2d: {out: 12, kernel: 3, stride: 2, padding: 1}\n"                      \
    "    - mul: deep\n"                                                                \
    "    - add: deep\n"                                                                \
    "    - concat: deep\n"                                                             \
    "    - dropout: {p: 0.2}\n"                                                        \
    "    - adaptive_avg_pool2d\n"                                                      \
    "    - flatten\n"                                                                  \
    "    - linear: {out: 10}\n"

struct a_case {
    const char *name, *recipe;
};

static const struct a_case models[] = {
    {"mlp", IMAGES(8) "model: mlp\n"},
    {"lenet", IMAGES(16) "model: lenet\n"},
    {"mnist_classifier", IMAGES(16) "model: mnist_classifier\n"},
    {"resnet8", IMAGES(8) "model: resnet8\n"},
    {"resnet20", IMAGES(8) "model: resnet20\n"},
    {"resnet56", DEEP(8) "model: {name: resnet56, initializer: bn_uniform}\n"},
    {"resnet9", IMAGES(16) "model: resnet9\n"},
    {"resnet18", DEEP(32) "model: {name: resnet18, initializer: bn_uniform}\n"},
    {"resnet34", DEEP(32) "model: {name: resnet34, initializer: bn_uniform}\n"},
    {"resnet50", DEEP(32) "model: {name: resnet50, initializer: bn_uniform}\n"},
    {"resnet101", DEEP(32) "model: {name: resnet101, initializer: bn_uniform}\n"},
    {"resnet152", DEEP(32) "model: {name: resnet152, initializer: bn_uniform}\n"},
    {"efficientnet_b0",
     DEEP(32) "model: {name: efficientnet_b0, initializer: bn_uniform}\n"},
    {"efficientnet_b1",
     DEEP(32) "model: {name: efficientnet_b1, initializer: bn_uniform}\n"},
    {"efficientnet_b2",
     DEEP(32) "model: {name: efficientnet_b2, initializer: bn_uniform}\n"},
    {"efficientnet_b3",
     DEEP(32) "model: {name: efficientnet_b3, initializer: bn_uniform}\n"},
    {"vit_ti16",
     IMAGES(32) "model: {name: vit_ti16, n_layers: 2, d_model: 32, n_heads: 2}\n"},
    {"vit_b16",
     IMAGES(32) "model: {name: vit_b16, n_layers: 2, d_model: 32, n_heads: 2}\n"},
    {"vit_l16",
     IMAGES(32) "model: {name: vit_l16, n_layers: 2, d_model: 32, n_heads: 2}\n"},
    {"vit_s16",
     IMAGES(32) "model: {name: vit_s16, n_layers: 2, d_model: 32, n_heads: 2}\n"},
    {"unet", MASKS("0.05") "model: {name: unet, width: 4, depth: 2}\n"},
    {"deeplabv3plus_resnet50",
     MASKS("0.02") "model: {name: deeplabv3plus_resnet50, initializer: bn_uniform}\n"},
    {"deeplabv3plus_resnet101",
     MASKS("0.02") "model: {name: deeplabv3plus_resnet101, initializer: bn_uniform}\n"},
    {"gpt2", TOKENS "model: {name: gpt2, " TRANSFORMER},
    {"bert", GUESSES "model: {name: bert, " TRANSFORMER},
    {"bert_classifier", SENTENCES "model: {name: bert_classifier, " TRANSFORMER},
    {"layers", IMAGES(16) LAYERS},
};
static const struct a_case spelled = {"layers with blocks", IMAGES(16) SPELLED};

#define ON_IMAGES(text) IMAGES(16) LAYERS "algorithms:\n  " text "\n"
#define ON_MASKS(text)                                                                 \
    MASKS("0.05") "model: {name: unet, width: 4, depth: 2}\nalgorithms:\n  " text "\n"
#define ON_GPT2(text)                                                                  \
    TOKENS "model: {name: gpt2, " TRANSFORMER "algorithms:\n  " text "\n"
#define ON_BERT(text)                                                                  \
    GUESSES "model: {name: bert, " TRANSFORMER "algorithms:\n  " text "\n"
/* Blocks and vectors with dropout, for what leaves them out. */
#define BLOCKS(text)                                                                   \
    IMAGES(8)                                                                          \
    "model:\n  name: layers\n  layers:\n    - bottleneck: {channels: 2}\n"             \
    "    - bottleneck: {channels: 2}\n    - adaptive_avg_pool2d\n    - flatten\n"      \
    "    - dropout: {p: 0.2}\n    - linear: {out: 10}\nalgorithms:\n  " text "\n"
static const struct a_case algorithms[] = {
    {"alibi", ON_GPT2("alibi: {max_sequence_length: 8}")},
    {"augmix", ON_IMAGES("augmix: {severity: 5}")},
    {"blurpool", ON_IMAGES("blurpool: {min_channels: 1}")},
    {"channels_last", ON_IMAGES("channels_last: {}")},
    {"colout", ON_IMAGES("colout: {p_row: 0.3}")},
    {"cutmix", ON_IMAGES("cutmix: {}")},
    {"cutout", ON_IMAGES("cutout: {num_holes: 2}")},
    {"ema", ON_IMAGES("ema: {half_life: 2ba}")},
    {"factorize", ON_IMAGES("factorize: {min_features: 8, min_channels: 8,\n"
                            "    latent_features: 0.25}")},
    {"gated_linear_units", ON_BERT("gated_linear_units: {}")},
    {"ghost_batchnorm", ON_IMAGES("ghost_batchnorm: {ghost_batch_size: 1}")},
    {"gradient_clipping",
     ON_IMAGES("gradient_clipping: {clipping_type: norm, clipping_threshold: 0.1}")},
    {"gyro_dropout", BLOCKS("gyro_dropout: {sigma: 2, tau: 4}")},
    {"label_smoothing", ON_IMAGES("label_smoothing: {smoothing: 0.2}")},
    {"layer_freezing", ON_IMAGES("layer_freezing: {freeze_start: 0.0}")},
    {"low_precision_groupnorm", ON_IMAGES("low_precision_groupnorm: {}")},
    {"low_precision_layernorm", ON_GPT2("low_precision_layernorm: {}")},
    {"mixup", ON_IMAGES("mixup: {alpha: 1.0}")},
    {"progressive_resizing",
     ON_IMAGES("progressive_resizing: {initial_scale: 0.5, finetune_fraction: 0.1}")},
    {"reduce_lr_on_plateau",
     ON_IMAGES("reduce_lr_on_plateau: {monitor: Accuracy, dataloader_label: train}")},
    {"randaugment", ON_IMAGES("randaugment: {}")},
    {"sam", ON_IMAGES("sam: {rho: 0.1}")},
    {"selective_backprop",
     ON_IMAGES("selective_backprop: {start: 0.0, keep: 0.5, interrupt: 0}")},
    {"seq_length_warmup",
     ON_GPT2(
         "seq_length_warmup: {duration: 1.0, min_seq_length: 2, max_seq_length: 8,\n"
         "    step_size: 6, truncate: false}")},
    {"squeeze_excite",
     ON_IMAGES("squeeze_excite: {min_channels: 8, latent_channels: 4}")},
    {"stochastic_depth", BLOCKS("stochastic_depth: {drop_rate: 0.8,\n"
                                "    target_layer_name: ResNetBottleneck}")},
    {"swa", ON_IMAGES("swa: {swa_start: 0.1dur, update_interval: 1ba}")},
    {"weight_standardization", ON_IMAGES("weight_standardization: {}")},
};

/* Those that do something else where targets are masks. */
static const struct a_case on_masks[] = {
    {"colout of masks", ON_MASKS("colout: {p_row: 0.25, p_col: 0.25}")},
    {"cutmix of masks", ON_MASKS("cutmix: {}")},
};

/* ---- data ---- */

static void
write_array(const char *folder, const char *leaf, const char *type, const char *shape,
            const void *bytes, size_t n)
{
    static uint8_t file[8192];
    char name[32];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        bail("no folder %s", folder);
    snprintf(name, sizeof name, "%s/%s", folder, leaf);
    write_file(name, file, make_npy(file, type, shape, bytes, n), false);
}

/* A pixel's class is its brightest channel; a token to guess is the one before it. */
static void
write_arrays(void)
{
    enum { N = 8, SIDE = 16, T = 8, VOCABULARY = 32 };
    static uint8_t images[N * SIDE * SIDE][3], masks[N * SIDE * SIDE];
    int32_t tokens[N][T], before[N][T], labels[N];
    struct et_rng rng = et_rng_at(17, ET_RNG_DATA, 0);
    for (size_t i = 0; i < sizeof masks; i++) {
        uint8_t *p = images[i];
        for (int c = 0; c < 3; c++)
            p[c] = (uint8_t)et_rng_below(&rng, 256);
        masks[i] = (uint8_t)(p[0] >= p[1]   ? p[0] >= p[2] ? 0 : 2
                             : p[1] >= p[2] ? 1
                                            : 2);
    }
    for (int i = 0; i < N; i++) {
        for (int t = 0; t < T; t++)
            tokens[i][t] = (int32_t)et_rng_below(&rng, VOCABULARY);
        for (int t = 0; t < T; t++)
            before[i][t] = tokens[i][t > 0 ? t - 1 : 0];
        labels[i] = tokens[i][0] % 4;
    }
    write_array("masks", "x.npy", "|u1", "(8, 16, 16, 3)", images, sizeof images);
    write_array("masks", "y.npy", "|u1", "(8, 16, 16)", masks, sizeof masks);
    write_array("guesses", "x.npy", "<i4", "(8, 8)", tokens, sizeof tokens);
    write_array("guesses", "y.npy", "<i4", "(8, 8)", before, sizeof before);
    write_array("sentences", "x.npy", "<i4", "(8, 8)", tokens, sizeof tokens);
    write_array("sentences", "y.npy", "<i4", "(8,)", labels, sizeof labels);
}

/* ---- runs ---- */

/* Millions of numbers take seconds to draw, pack and add. */
static bool
is_large(struct et_ctx *cx, struct et_model *m)
{
    int64_t all;
    need(cx, et_module_count(cx, m->root, &all));
    return all > 1 << 21;
}

/* Of large models only small parameters are trained, norms and biases above all: to
 * their gradients every layer still contributes, and small models have the gradients of
 * large layers too. */
static void
train_small_parameters(struct et_ctx *cx, struct et_model *m)
{
    enum { SMALL_PARAMETER = 1 << 12 };
    struct et_leaves l;
    need(cx, et_module_leaves(cx, m->root, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++)
        l.v[i].param->requires_grad =
            et_desc_count(&l.v[i].param->desc) <= SMALL_PARAMETER;
    et_leaves_release(&l);
}

static void
open_run(struct recipe_run *r, struct et_ctx *cx, const char *recipe)
{
    recipe_prepare(r, cx, recipe,
                   &(struct recipe_choice){.device = "cpu", .grad_accum = 1});
    if (is_large(cx, r->parts.model))
        train_small_parameters(cx, r->parts.model);
    recipe_start(r);
    need(cx, et_module_freeze_stats(cx, r->parts.model->root, true));
}

/* From time 0 in K microbatches. */
static void
train(struct recipe_run *r, int k, double loss[BATCHES])
{
    r->n_losses = 0;
    need(r->cx, et_trainer_fit_with(r->trainer, &(struct et_fit_options){
                                                    .reset_time = true,
                                                    .duration = ET_BATCHES(BATCHES),
                                                    .grad_accum = k,
                                                }));
    if (r->n_losses != BATCHES)
        bail("%d batches", r->n_losses);
    memcpy(loss, r->loss, BATCHES * sizeof loss[0]);
}

/* The larger of WORST and the distance of A from B; what is no number is worst. */
static double
farther(double worst, const double *a, const double *b)
{
    for (int i = 0; i < BATCHES; i++) {
        double off = fabs(a[i] - b[i]) / fabs(b[i]);
        worst = off <= worst ? worst : isfinite(off) ? off : INFINITY;
    }
    return worst;
}

static void
is_same(const char *name, const char *counts, const double *one, double worst)
{
    double moved = fabs(one[1] - one[0]) / one[0];
    ok(worst <= ROUNDING && moved >= MOVES, "%s: %s microbatches give the same losses",
       name, counts);
    if (worst > ROUNDING || !(moved >= MOVES))
        diag("they differ by %g of their size, and move by %g", worst, moved);
}

/* One model is made, and put back to where it was for each number of microbatches (its
 * statistics are frozen and stay as they are); a large one for the two ends alone. */
static void
check_model(struct et_ctx *cx, const struct a_case *c)
{
    double one[BATCHES], split[BATCHES], worst = 0;
    struct recipe_run r;
    size_t all;
    open_run(&r, cx, c->recipe);
    struct et_tensor *values = r.state->params->values;
    void *start = recipe_params(&r, &all);
    int step = is_large(cx, r.parts.model) ? BATCH : 2;
    for (int k = 1; k <= BATCH; k *= step) {
        need(cx, et_tensor_write(cx, values, start, et_desc_bytes(&values->desc)));
        train(&r, k, k == 1 ? one : split);
        worst = farther(worst, k == 1 ? one : split, one);
    }
    is_same(c->name, step == 2 ? "1, 2, 4 and 8" : "1 and 8", one, worst);
    free(start);
    recipe_close(&r);
}

/* Algorithms have a state: each number of microbatches is another run. */
static void
check_algorithm(struct et_ctx *cx, const struct a_case *c)
{
    double one[BATCHES], split[BATCHES], worst = 0;
    for (int k = 1; k <= BATCH; k *= 2) {
        struct recipe_run r;
        open_run(&r, cx, c->recipe);
        train(&r, k, k == 1 ? one : split);
        worst = farther(worst, k == 1 ? one : split, one);
        recipe_close(&r);
    }
    is_same(c->name, "1, 2, 4 and 8", one, worst);
}

static const struct a_case *
find(const struct a_case *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    ok(false, "%s has a case", name);
    return NULL;
}

/* t/train/spacetime NAME...: of those models and algorithms alone. */
int
main(int argc, char **argv)
{
    struct et_ctx *cx = need_ctx();
    if (!have_device(cx, "cpu"))
        return done();
    if (chdir(scratch_folder()) != 0)
        bail("no folder for the data");
    write_arrays();
    for (int i = 0; et_model_classes[i]; i++) {
        const struct a_case *c = find(models, sizeof models / sizeof *models,
                                      et_model_classes[i]->info.name);
        if (c && is_chosen(argc, argv, c->name))
            check_model(cx, c);
    }
    if (is_chosen(argc, argv, spelled.name) || is_chosen(argc, argv, "layers"))
        check_model(cx, &spelled);
    for (int i = 0; et_algorithm_classes[i]; i++) {
        const struct a_case *c =
            find(algorithms, sizeof algorithms / sizeof *algorithms,
                 et_algorithm_classes[i]->info.name);
        if (c && is_chosen(argc, argv, c->name))
            check_algorithm(cx, c);
    }
    for (size_t i = 0; i < sizeof on_masks / sizeof *on_masks; i++)
        if (is_chosen(argc, argv, on_masks[i].name))
            check_algorithm(cx, &on_masks[i]);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
