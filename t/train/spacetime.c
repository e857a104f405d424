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
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    {"unet", IMAGES(16) "model: {name: unet, width: 4, depth: 2, num_classes: 3}\n"},
    {"gpt2", TOKENS "model: {name: gpt2, " TRANSFORMER},
    {"bert", TOKENS "model: {name: bert, " TRANSFORMER},
    {"layers", IMAGES(16) LAYERS},
};

#define ON_IMAGES(text) IMAGES(16) LAYERS "algorithms:\n  " text "\n"
static const struct a_case algorithms[] = {
    {"blurpool", ON_IMAGES("blurpool: {min_channels: 1}")},
    {"ema", ON_IMAGES("ema: {half_life: 2ba}")},
    {"gradient_clipping",
     ON_IMAGES("gradient_clipping: {clipping_type: norm, clipping_threshold: 0.1}")},
    {"label_smoothing", ON_IMAGES("label_smoothing: {smoothing: 0.2}")},
    {"mixup", ON_IMAGES("mixup: {alpha: 1.0}")},
    {"progressive_resizing",
     ON_IMAGES("progressive_resizing: {initial_scale: 0.5, finetune_fraction: 0.1}")},
    {"sam", ON_IMAGES("sam: {rho: 0.1}")},
    {"selective_backprop",
     ON_IMAGES("selective_backprop: {start: 0.0, keep: 0.5, interrupt: 0}")},
};

/* ---- a class for every pixel ---- */

static et_status
segment(struct et_algorithm *self, enum et_event event, struct et_state *s,
        struct et_log *log)
{
    (void)self;
    (void)event;
    (void)log;
    s->batch.target = et_argmax(s->graph, s->batch.x, 1);
    return et_graph_status(s->graph);
}

/* No data set here has masks: a pixel's class is its brightest channel. */
static const struct et_algorithm_class segment_class = {
    .info = {.name = "segment"},
    .events = ET_ON(AFTER_DATALOADER),
    .apply = segment,
};

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

static struct et_algorithm masks = {.type = &segment_class};

static void
open_run(struct recipe_run *r, struct et_ctx *cx, const char *recipe)
{
    recipe_prepare(r, cx, recipe,
                   &(struct recipe_choice){.device = "cpu", .grad_accum = 1});
    if (is_large(cx, r->parts.model))
        train_small_parameters(cx, r->parts.model);
    if (r->parts.model->type->task == ET_TASK_SEGMENTATION) {
        masks.cx = cx;
        r->parts.algorithm[r->parts.config.n_algorithms++] = &masks;
    }
    recipe_start(r);
    need(cx, et_module_freeze_stats(cx, r->parts.model->root, true));
}

static void
close_run(struct recipe_run *r)
{
    int *n = &r->parts.config.n_algorithms;
    if (*n > 0 && r->parts.algorithm[*n - 1] == &masks)
        --*n; /* not the recipe's to free */
    recipe_close(r);
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
    close_run(&r);
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
        close_run(&r);
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
    for (int i = 0; et_model_classes[i]; i++) {
        const struct a_case *c = find(models, sizeof models / sizeof *models,
                                      et_model_classes[i]->info.name);
        if (c && is_chosen(argc, argv, c->name))
            check_model(cx, c);
    }
    for (int i = 0; et_algorithm_classes[i]; i++) {
        const struct a_case *c =
            find(algorithms, sizeof algorithms / sizeof *algorithms,
                 et_algorithm_classes[i]->info.name);
        if (c && is_chosen(argc, argv, c->name))
            check_algorithm(cx, c);
    }
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
