/* overhead.c: what the trainer, and all its callbacks and loggers, cost a step.
 *
 *   overhead [WINDOWS] [STEPS] [THREADS] [cpu]
 *
 * ResNet-20 on 28 x 28 images in batches of 128, three ways in one process, in turns of
 * STEPS batches (25), WINDOWS times (15): a loop without a trainer, on the same loader;
 * a trainer without callbacks; a trainer with every callback and logger that observes
 * each batch. Time is the clock's; with "cpu" it is what the process took of the
 * processors, which says more on a busy machine (of one thread: those of OpenMP spin).
 * Prints the medians and the two ratios with their quartiles. Files go to a
 * folder that is removed. PERFORMANCE.md: all of it at most 0.5 % above the bare
 * loop. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/program.h"
#include "core/assemble/assemble.h"
#include "etude/run.h"

enum { MOST = 200, WAYS = 3 };

#define MODEL_AND_DATA                                                                 \
    "max_duration: 1000000ba\n"                                                        \
    "seed: 17\n"                                                                       \
    "model: {name: resnet20, num_classes: 10}\n"                                       \
    "train_data: {name: synthetic_images, num_samples: 12800, num_unique: 256,\n"      \
    "             channels: 1, resolution: 28, batch_size: 128, workers: 1}\n"         \
    "eval_interval: 0ep\n"                                                             \
    "optimizer: {name: sgd, lr: 0.01, momentum: 0.9}\n"

static const char plain[] = MODEL_AND_DATA
    "callbacks: {speed_monitor: false, memory_monitor: false, lr_monitor: false,\n"
    "            runtime_estimator: false}\n"
    "loggers: {jsonl: false}\n";
static const char full[] =
    MODEL_AND_DATA "callbacks: {optimizer_monitor: {batch_log_interval: 10}, "
                   "system_metrics_monitor: ,\n"
                   "            run_history: , model_ema: }\n"
                   "loggers: {csv: , tensorboard: , file: , in_memory: }\n";

static struct et_ctx *cx;
static char folder[] = "/tmp/etude-overhead-XXXXXX";

static clockid_t clock_used = CLOCK_MONOTONIC;

/* Seconds, by the wall or of processor time. */
static double
used(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- with a trainer ---- */

struct way {
    struct et_recipe *recipe;
    struct eti_assembly parts;
    struct et_trainer *trainer; /* NULL: the bare loop */
    struct et_run *run;         /* NULL: none */
    /* of the bare loop */
    struct et_leaves leaves;
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_graph *g;
    struct et_tensor *loss, **param, **grad;
    double seconds[MOST];
};

static void
assemble(struct way *w, const char *text, int threads)
{
    struct et_diagnostics errors = {0};
    const struct eti_assemble_options options = {
        .device = "cpu", .threads = threads, .with_train = true};
    if (et_recipe_parse(cx, text, strlen(text), "overhead.yaml", NULL, 0, NULL,
                        &w->recipe, &errors) != ET_OK) {
        fprintf(stderr, "overhead: %s\n", errors.v[0].message);
        exit(1);
    }
    must(cx, eti_assemble(cx, w->recipe, &options, &w->parts));
}

static void
open_trainer(struct way *w, const char *text, int threads, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assemble(w, text, threads);
    const struct et_run_config config = {.directory = path, .name = name};
    must(cx, et_run_open(cx, &config, &w->run));
    must(cx, eti_assemble_callbacks(&w->parts, w->recipe, et_run_directory(w->run)));
    w->parts.config.sink = et_run_sink(w->run);
    must(cx, et_trainer_new(cx, &w->parts.config, &w->trainer));
}

/* ---- without ---- */

static void
open_bare(struct way *w, int threads)
{
    assemble(w, plain, threads);
    struct et_model *model = w->parts.model;
    must(cx, et_module_leaves(cx, model->root, ET_PARAM, &w->leaves));
    int n = w->leaves.n;
    struct et_param_spec *spec = calloc((size_t)n, sizeof *spec);
    w->param = calloc((size_t)n, sizeof *w->param);
    w->grad = calloc((size_t)n, sizeof *w->grad);
    for (int i = 0; i < n; i++)
        spec[i] = (struct et_param_spec){.name = w->leaves.v[i].name,
                                         .desc = w->leaves.v[i].param->desc};
    must(cx, et_param_space_new(cx, w->parts.dev, spec, n, &w->space));
    for (int i = 0; i < n; i++) {
        struct et_tensor *view;
        must(cx, et_param_space_view(cx, w->space, -1, i, &view));
        must(cx, et_param_bind(cx, w->leaves.v[i].param, spec[i].name, 17, &view));
        w->param[i] = w->leaves.v[i].param->tensor;
    }
    free(spec);
    must(cx, et_module_bind(cx, model->root, w->parts.dev, ET_PARAM | ET_BUFFER, 17));
    must(cx, et_optimizer_new(cx, w->parts.config.optimizer,
                              w->parts.config.optimizer_options, w->space, &w->opt));
    must(cx, et_tensor_new(cx, w->parts.dev, ET_F32, 1, (const int64_t[]){1},
                           ET_ROW_MAJOR, "loss", &w->loss));
    must(cx, et_graph_new(cx, w->parts.dev, &w->g));
}

static void
bare_step(struct way *w)
{
    const struct et_batch *b = NULL;
    float loss;
    while (!b)
        must(cx, et_loader_next(cx, w->parts.train.loader, &b));
    struct et_forward f = {.g = w->g, .training = true};
    struct et_tensor *y = et_model_forward(w->parts.model, &f, et_batch_x(w->g, b));
    struct et_tensor *l =
        et_model_loss(w->parts.model, w->g, y, b->target_tensor, ET_REDUCE_MEAN);
    l = et_reshape(w->g, l, 1, (const int64_t[]){1});
    et_assign(w->g, w->loss, l);
    must(cx, et_grad(w->g, l, w->param, w->leaves.n, w->grad));
    struct et_tensor *flat = et_param_space_pack(w->g, w->space, w->grad);
    must(cx, et_optimizer_update(w->g, w->opt, flat, NULL, NULL));
    must(cx, et_eval(w->g, NULL, 0));
    et_optimizer_done(w->opt, false);
    must(cx, et_tensor_read(cx, w->loss, &loss, sizeof loss));
    et_graph_reset(w->g);
    et_loader_release(w->parts.train.loader, b);
}

/* ---- in turns ---- */

static double
window(struct way *w, int steps)
{
    double start = used();
    if (w->trainer)
        must(cx, et_trainer_fit(w->trainer, ET_BATCHES(steps)));
    else
        for (int i = 0; i < steps; i++)
            bare_step(w);
    return (used() - start) / steps;
}

static void
print_ratio(const char *what, const struct way *a, const struct way *b, int n)
{
    double ratio[MOST];
    for (int i = 0; i < n; i++)
        ratio[i] = a->seconds[i] / b->seconds[i];
    qsort(ratio, (size_t)n, sizeof *ratio, by_size);
    printf("%-44s %+.2f %% (%+.2f .. %+.2f)\n", what, 100 * (part(ratio, n, 0.5) - 1),
           100 * (part(ratio, n, 0.25) - 1), 100 * (part(ratio, n, 0.75) - 1));
}

static void
close_way(struct way *w)
{
    et_trainer_free(&w->trainer);
    et_graph_free(&w->g);
    et_optimizer_free(&w->opt);
    et_tensor_free(&w->loss);
    eti_assembly_release(&w->parts);
    et_param_space_free(&w->space);
    if (w->leaves.n)
        et_leaves_release(&w->leaves);
    et_run_close(&w->run);
    et_recipe_free(&w->recipe);
    free(w->param);
    free(w->grad);
}

int
main(int argc, char **argv)
{
    static const char *const names[] = {"bare", "trainer", "everything"};
    static struct way way[WAYS];
    int windows = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 15,
        steps = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 25;
    int threads = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0;
    char command[64];
    if (argc > 4 && strcmp(argv[4], "cpu") == 0)
        clock_used = CLOCK_PROCESS_CPUTIME_ID;
    if (windows < 1 || windows > MOST || steps < 1) {
        fprintf(stderr, "usage: overhead [WINDOWS] [STEPS] [THREADS] [cpu]\n");
        return 64;
    }
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder))
        return 1;
    open_bare(&way[0], threads);
    open_trainer(&way[1], plain, threads, names[1]);
    open_trainer(&way[2], full, threads, names[2]);
    for (int k = 0; k < WAYS; k++)
        (void)window(&way[k], 5);
    for (int i = 0; i < windows; i++)
        for (int k = 0; k < WAYS; k++) {
            int turn = i % 2 ? WAYS - 1 - k : k; /* so that none is always first */
            way[turn].seconds[i] = window(&way[turn], steps);
        }
    for (int k = 0; k < WAYS; k++) {
        double sorted[MOST];
        memcpy(sorted, way[k].seconds, sizeof sorted);
        qsort(sorted, (size_t)windows, sizeof *sorted, by_size);
        printf("%-12s %8.3f ms a step\n", names[k], 1e3 * part(sorted, windows, 0.5));
    }
    print_ratio("trainer above the bare loop", &way[1], &way[0], windows);
    print_ratio("callbacks and loggers above the trainer", &way[2], &way[1], windows);
    print_ratio("all of it above the bare loop", &way[2], &way[0], windows);
    for (int k = WAYS - 1; k >= 0; k--)
        close_way(&way[k]);
    et_ctx_free(&cx);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0;
}
