/* SPDX-License-Identifier: Apache-2.0 */
/* tax.c: what each training method costs a step beyond its own arithmetic.
 *
 *   tax [WINDOWS [STEPS [METHOD]]]
 *
 * For each method a run of a small network without it and one with it, on one thread,
 * in turns of STEPS batches (10), WINDOWS times (7). The tax is the processor time of
 * the thread in the method's own functions, in percent of a step without the method:
 * they note down formulas, and compute nothing but the kernels that `evals` counts.
 * Prints besides how many kernels the method adds to a step, the plans built and the
 * blocks a step took once both were warm, beyond those of the run without it, and by
 * how much a step is longer in processor time, its arithmetic included. Times of steps
 * are medians. PERFORMANCE.md: a tax of at most 2 %. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/program.h"
#include "core/assemble/assemble.h"
#include "core/trainer/state.h"

enum { MOST = 100, TEXT = 2048, WARM = 4 };

static const char pictures[] =
    "max_duration: 1000000ba\nseed: 17\nmodel: {name: resnet8, num_classes: 10}\n"
    "train_data: {name: synthetic_images, num_samples: 6400, num_unique: 256,\n"
    "  channels: 1, resolution: 28, batch_size: 64, workers: 0}\n";
static const char bottlenecks[] =
    "max_duration: 1000000ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"
    "    - conv2d: {out: 32, kernel: 3, padding: 1}\n    - group_norm: {groups: 4}\n"
    "    - relu\n    - bottleneck: {channels: 16}\n    - bottleneck: {channels: 16}\n"
    "    - adaptive_avg_pool2d\n    - flatten\n    - dropout: {p: 0.2}\n"
    "    - linear: {out: 10}\n"
    "train_data: {name: synthetic_images, num_samples: 6400, num_unique: 256,\n"
    "  channels: 1, resolution: 28, batch_size: 64, workers: 0}\n";
static const char text[] =
    "max_duration: 1000000ba\nseed: 17\n"
    "model: {name: gpt2, n_layers: 2, d_model: 64, n_heads: 2, max_seq_len: 64}\n"
    "train_data: {name: synthetic_tokens, num_samples: 6400, vocab_size: 256,\n"
    "  seq_len: 64, batch_size: 8, workers: 0}\n";
/* An epoch has two batches, and half of the run's come within the windows. */
static const char epochs[] =
    "max_duration: 160ba\nseed: 17\nmodel: {name: resnet8, num_classes: 10}\n"
    "train_data: {name: synthetic_images, num_samples: 128, num_unique: 128,\n"
    "  channels: 1, resolution: 28, batch_size: 64, workers: 0}\n";
static const char masked[] =
    "max_duration: 1000000ba\nseed: 17\n"
    "model: {name: bert, n_layers: 2, d_model: 64, n_heads: 2, max_seq_len: 64}\n"
    "train_data: {name: synthetic_tokens, num_samples: 6400, vocab_size: 256,\n"
    "  seq_len: 64, batch_size: 8, workers: 0}\n";
static const char low_text[] =
    "precision: amp_bf16\nmax_duration: 1000000ba\nseed: 17\n"
    "model: {name: gpt2, n_layers: 2, d_model: 64, n_heads: 2, max_seq_len: 64}\n"
    "train_data: {name: synthetic_tokens, num_samples: 6400, vocab_size: 256,\n"
    "  seq_len: 64, batch_size: 8, workers: 0}\n";
static const char low_pictures[] =
    "precision: amp_bf16\nmax_duration: 1000000ba\nseed: 17\nmodel:\n"
    "  name: layers\n  layers:\n"
    "    - conv2d: {out: 32, kernel: 3, padding: 1}\n    - group_norm: {groups: 4}\n"
    "    - relu\n    - conv2d: {out: 32, kernel: 3, padding: 1}\n"
    "    - group_norm: {groups: 4}\n    - relu\n    - adaptive_avg_pool2d\n"
    "    - flatten\n    - linear: {out: 10}\n"
    "train_data: {name: synthetic_images, num_samples: 6400, num_unique: 256,\n"
    "  channels: 1, resolution: 28, batch_size: 64, workers: 0}\n";
static const char rest[] = "eval_interval: 0ep\n"
                           "optimizer: {name: sgd, lr: 0.001, momentum: 0.9}\n"
                           "callbacks: {speed_monitor: false, memory_monitor: false,\n"
                           "  lr_monitor: false, runtime_estimator: false}\n"
                           "loggers: {jsonl: false}\n";

static const struct row {
    const char *name, *options, *net;
} rows[] = {
    {"alibi", "{max_sequence_length: 64, train_sequence_length_scaling: 1}", text},
    {"augmix", "{}", pictures},
    {"blurpool", "{}", pictures},
    {"channels_last", "{}", pictures},
    {"colout", "{}", pictures},
    {"cutmix", "{}", pictures},
    {"cutout", "{}", pictures},
    {"ema", "{half_life: 100ba, update_interval: 1ba}", pictures},
    {"factorize", "{min_channels: 32, min_features: 32}", pictures},
    {"gated_linear_units", "{}", masked},
    {"ghost_batchnorm", "{ghost_batch_size: 16}", pictures},
    {"gradient_clipping", "{clipping_type: norm, clipping_threshold: 0.1}", pictures},
    {"gyro_dropout", "{sigma: 4, tau: 2}", bottlenecks},
    {"label_smoothing", "{}", pictures},
    {"layer_freezing", "{freeze_start: 0.0}", epochs},
    {"low_precision_groupnorm", "{}", low_pictures},
    {"low_precision_layernorm", "{}", low_text},
    {"mixup", "{}", pictures},
    {"progressive_resizing", "{}", pictures},
    {"randaugment", "{}", pictures},
    {"sam", "{}", pictures},
    {"selective_backprop", "{start: 0.0}", pictures},
    {"seq_length_warmup", "{duration: 1.0, max_seq_length: 64, step_size: 56}", text},
    {"squeeze_excite", "{min_channels: 16, latent_channels: 8}", pictures},
    {"stochastic_depth", "{target_layer_name: ResNetBottleneck}", bottlenecks},
    {"swa", "{swa_start: 0.0dur, update_interval: 1ba}", pictures},
    {"weight_standardization", "{}", pictures},
};
enum { ROWS = sizeof rows / sizeof *rows };

static struct et_ctx *cx;

/* ---- a method, watched ---- */

static const struct et_algorithm_class *watched; /* the real one */
static double own_seconds;                       /* in its functions */
static uint64_t own_kernels;                     /* that ran within them */

static double
processor_time(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t
kernels_run(const struct et_state *s)
{
    struct et_graph_stats stats;
    et_graph_get_stats(s->graph, &stats);
    return stats.kernels_run;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    uint64_t before = kernels_run(s);
    double from = processor_time(CLOCK_THREAD_CPUTIME_ID);
    et_status status = watched->apply(self, event, s, log);
    own_seconds += processor_time(CLOCK_THREAD_CPUTIME_ID) - from;
    own_kernels += kernels_run(s) - before;
    return status;
}

static et_status
update(struct et_algorithm *self, struct et_state *s)
{
    double from = processor_time(CLOCK_THREAD_CPUTIME_ID);
    et_status status = watched->update(self, s);
    own_seconds += processor_time(CLOCK_THREAD_CPUTIME_ID) - from;
    return status;
}

/* ---- a run ---- */

struct way {
    struct et_recipe *recipe;
    struct eti_assembly parts;
    struct et_algorithm_class class; /* of the method, with the functions above */
    struct et_trainer *trainer;
    struct et_trainer_steps steps; /* that end a window */
    int64_t until;                 /* where it ends, in batches */
    volatile int interrupt;
    double seconds[MOST];          /* of a step: processor time */
    double kernels, plans, blocks; /* of a step; of all windows */
};

static void
assemble(struct way *w, const struct row *r, bool with)
{
    struct et_diagnostics errors = {0};
    char recipe[TEXT];
    const struct eti_assemble_options options = {
        .device = "cpu", .threads = 1, .with_train = true};
    snprintf(recipe, sizeof recipe, "%s%s", r->net, rest);
    size_t n = strlen(recipe);
    if (with)
        snprintf(recipe + n, sizeof recipe - n, "algorithms: {%s: %s}\n", r->name,
                 r->options);
    if (et_recipe_parse(cx, recipe, strlen(recipe), "tax.yaml", NULL, 0, NULL,
                        &w->recipe, &errors) != ET_OK) {
        fprintf(stderr, "tax: %s: %s\n", r->name, errors.v[0].message);
        exit(1);
    }
    must(cx, eti_assemble(cx, w->recipe, &options, &w->parts));
}

/* W has its method by the functions above. */
static void
watch(struct way *w)
{
    struct et_algorithm *a = w->parts.config.algorithms[0];
    watched = a->type;
    w->class = *a->type;
    w->class.apply = a->type->apply ? apply : NULL;
    w->class.update = a->type->update ? update : NULL;
    a->type = &w->class;
}

static void
count(struct way *w, struct et_graph_stats *graph, uint64_t *allocs)
{
    struct et_alloc_stats stats;
    et_graph_get_stats(et_trainer_state(w->trainer)->graph, graph);
    et_alloc_get_stats(cx, &stats);
    *allocs = stats.allocs;
}

/* A window is a piece of the run, and no run of its own: methods that wait for a part
 * of it, as swa does, go on where they were. */
static et_status
end_window(void *data, struct et_state *s, enum et_event event)
{
    struct way *w = data;
    if (event == ET_EVENT_BATCH_END && s->timestamp.batch >= w->until)
        w->interrupt = 1;
    return ET_OK;
}

/* STEPS steps; I < 0: not counted. */
static void
window(struct way *w, int steps, int i)
{
    struct et_graph_stats before, after;
    uint64_t allocs, allocs_after;
    count(w, &before, &allocs);
    w->until = et_trainer_state(w->trainer)->timestamp.batch + steps;
    w->interrupt = 0;
    double from = processor_time(CLOCK_PROCESS_CPUTIME_ID);
    must(cx, et_trainer_fit(w->trainer, ET_TIME_UNSET));
    double seconds = processor_time(CLOCK_PROCESS_CPUTIME_ID) - from;
    count(w, &after, &allocs_after);
    if (i < 0)
        return;
    w->seconds[i] = seconds / steps;
    w->kernels = (double)(after.kernels_run - before.kernels_run) / steps;
    w->plans += (double)(after.plans_built - before.plans_built);
    w->blocks += (double)(allocs_after - allocs);
}

static void
open_way(struct way *w, const struct row *r, bool with)
{
    *w = (struct way){.trainer = NULL};
    assemble(w, r, with);
    if (with)
        watch(w);
    w->steps = (struct et_trainer_steps){.data = w, .at_event = end_window};
    w->parts.config.steps = &w->steps;
    w->parts.config.interrupt = &w->interrupt;
    must(cx, et_trainer_new(cx, &w->parts.config, &w->trainer));
    window(w, WARM, -1);
}

static void
close_way(struct way *w)
{
    et_trainer_free(&w->trainer);
    eti_assembly_release(&w->parts);
    et_recipe_free(&w->recipe);
}

static double
median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return part(v, n, 0.5);
}

static void
measure(const struct row *r, int windows, int steps)
{
    static struct way way[2]; /* without it, with it */
    double more[MOST];
    for (int k = 0; k < 2; k++)
        open_way(&way[k], r, k == 1);
    own_seconds = 0;
    own_kernels = 0;
    for (int i = 0; i < windows; i++) {
        for (int k = 0; k < 2; k++)
            window(&way[i % 2 ? 1 - k : k], steps, i);
        more[i] = way[1].seconds[i] / way[0].seconds[i] - 1;
    }
    double all = (double)windows * steps, plain = median(way[0].seconds, windows);
    printf("%-24s %8.2f %6.1f %8.2f %7.1f %+8.1f %6.0f %7.2f %+8.1f\n", r->name,
           1e3 * plain, 1e6 * own_seconds / all, 100 * own_seconds / all / plain,
           (double)own_kernels / all, way[1].kernels - way[0].kernels,
           way[1].plans - way[0].plans, (way[1].blocks - way[0].blocks) / all,
           100 * median(more, windows));
    fflush(stdout);
    close_way(&way[1]);
    close_way(&way[0]);
}

int
main(int argc, char **argv)
{
    int windows = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 7;
    int steps = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 10;
    if (windows < 1 || windows > MOST || steps < 1) {
        fprintf(stderr, "usage: tax [WINDOWS [STEPS [METHOD]]]\n");
        return 64;
    }
    if (et_ctx_new(&cx) != ET_OK)
        return 1;
    printf("%-24s %8s %6s %8s %7s %8s %6s %7s %8s\n", "method", "step ms", "own us",
           "tax %", "evals", "kernels", "plans", "blocks", "step %");
    for (int i = 0; i < ROWS; i++)
        if (argc < 4 || strcmp(argv[3], rows[i].name) == 0)
            measure(&rows[i], windows, steps);
    et_ctx_free(&cx);
    return 0;
}
