/* SPDX-License-Identifier: Apache-2.0 */
/* overhead.c: what the trainer, and all its callbacks and loggers, cost a step.
 *
 *   overhead [NET [WINDOWS [STEPS [THREADS [WAY]]]]]
 *
 * NET is resnet20 (28 x 28 pixels, batches of 128; if not given), gpt (of bytes: 2
 * layers of 64, batches of 8 x 64) or mlp (8 x 8 pixels, batches of 8). Three ways in
 * one process, in turns of STEPS batches (25), WINDOWS times (15): a loop without a
 * trainer, on the same loader; a trainer without callbacks; a trainer with every
 * callback and logger that observes each batch. Prints of each the median times of a
 * step, by the clock and of the process's processor time, how often in a step its
 * threads gave a processor up or had it taken away, and the ratios of times with their
 * quartiles. Files go to a folder that is removed. PERFORMANCE.md: all of it at most
 * 0.5 % above the bare loop.
 *
 * WAY bare, trainer or everything does that alone: under valgrind --tool=callgrind the
 * difference of two such runs, or of two numbers of steps, is a count of instructions
 * (t/train/instructions has a limit for that of the training thread). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/program.h"
#include "core/assemble/assemble.h"
#include "etude/run.h"

enum { MOST = 200, WAYS = 3, CLOCKS = 2 };

#define IMAGES(model, pixels, size)                                                    \
    "max_duration: 100000000ba\n"                                                      \
    "seed: 17\n"                                                                       \
    "model: {name: " model ", num_classes: 10}\n"                                      \
    "train_data: {name: synthetic_images, num_samples: 12800, num_unique: 256,\n"      \
    "             channels: 1, resolution: " pixels ", batch_size: " size              \
    ", workers: 1}\n"                                                                  \
    "eval_interval: 0ep\n"                                                             \
    "optimizer: {name: sgd, lr: 0.01, momentum: 0.9}\n"

static const struct {
    const char *name, *text;
} nets[] = {
    {"resnet20", IMAGES("resnet20", "28", "128")},
    {"mlp", IMAGES("mlp", "8", "8")},
    {"gpt",
     "max_duration: 100000000ba\n"
     "seed: 17\n"
     "model: {name: gpt2, n_layers: 2, d_model: 64, n_heads: 2}\n"
     "train_data: {name: synthetic_tokens, num_samples: 12800, vocab_size: 256,\n"
     "             seq_len: 64, batch_size: 8, workers: 1}\n"
     "eval_interval: 0ep\n"
     "optimizer: {name: adamw, lr: 0.001}\n"},
};

static const char plain[] =
    "callbacks: {speed_monitor: false, memory_monitor: false, lr_monitor: false,\n"
    "            runtime_estimator: false}\n"
    "loggers: {jsonl: false}\n";
static const char full[] = "callbacks: {optimizer_monitor: {batch_log_interval: 10}, "
                           "system_metrics_monitor: ,\n"
                           "            run_history: , model_ema: }\n"
                           "loggers: {csv: , tensorboard: , file: , in_memory: }\n";

static struct et_ctx *cx;
static char folder[] = "/tmp/etude-overhead-XXXXXX";

static const char *net; /* its recipe */

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
    /* of a step, window by window */
    double seconds[CLOCKS][MOST], given_up[MOST], taken[MOST];
};

static void
assemble(struct way *w, const char *observers, int threads)
{
    struct et_diagnostics errors = {0};
    char text[2048];
    snprintf(text, sizeof text, "%s%s", net, observers);
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
open_trainer(struct way *w, const char *observers, int threads, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assemble(w, observers, threads);
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
    const struct et_samples samples = et_batch_samples(w->g, b);
    struct et_tensor *y = et_model_forward(w->parts.model, &f, samples.x);
    struct et_tensor *l =
        et_model_loss(w->parts.model, w->g, y, &samples, ET_REDUCE_MEAN);
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

struct use {
    double seconds[CLOCKS];
    struct rusage of_threads;
};

static struct use
use_now(void)
{
    struct use u;
    struct timespec t;
    u.seconds[0] = now();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    u.seconds[1] = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    getrusage(RUSAGE_SELF, &u.of_threads);
    return u;
}

/* STEPS steps, which become W's window I. */
static void
window(struct way *w, int steps, int i)
{
    struct use from = use_now();
    if (w->trainer)
        must(cx, et_trainer_fit(w->trainer, ET_BATCHES(steps)));
    else
        for (int k = 0; k < steps; k++)
            bare_step(w);
    struct use to = use_now();
    for (int c = 0; c < CLOCKS; c++)
        w->seconds[c][i] = (to.seconds[c] - from.seconds[c]) / steps;
    w->given_up[i] =
        (double)(to.of_threads.ru_nvcsw - from.of_threads.ru_nvcsw) / steps;
    w->taken[i] = (double)(to.of_threads.ru_nivcsw - from.of_threads.ru_nivcsw) / steps;
}

static double
median(const double *v, int n)
{
    double sorted[MOST];
    memcpy(sorted, v, (size_t)n * sizeof *v);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    return part(sorted, n, 0.5);
}

static void
print_ratio(const char *what, const struct way *a, const struct way *b, int n)
{
    printf("%-42s", what);
    for (int c = 0; c < CLOCKS; c++) {
        double ratio[MOST];
        for (int i = 0; i < n; i++)
            ratio[i] = a->seconds[c][i] / b->seconds[c][i];
        qsort(ratio, (size_t)n, sizeof *ratio, by_size);
        printf("%s%+.2f %% (%+.2f .. %+.2f)", c ? ", processor time " : "",
               100 * (part(ratio, n, 0.5) - 1), 100 * (part(ratio, n, 0.25) - 1),
               100 * (part(ratio, n, 0.75) - 1));
    }
    putchar('\n');
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

static const char *const names[WAYS] = {"bare", "trainer", "everything"};

static void
usage(void)
{
    fprintf(stderr, "usage: overhead [NET [WINDOWS [STEPS [THREADS [WAY]]]]]\n");
    exit(64);
}

static void
print_ways(struct way *way, int windows, int only)
{
    printf("%-12s %10s %15s %9s %6s  of a step\n", "", "the clock", "processor time",
           "given up", "taken");
    for (int k = 0; k < WAYS; k++)
        if (only < 0 || only == k)
            printf("%-12s %7.3f ms %12.3f ms %9.2f %6.2f\n", names[k],
                   1e3 * median(way[k].seconds[0], windows),
                   1e3 * median(way[k].seconds[1], windows),
                   median(way[k].given_up, windows), median(way[k].taken, windows));
    if (only >= 0)
        return;
    print_ratio("trainer above the bare loop", &way[1], &way[0], windows);
    print_ratio("callbacks and loggers above the trainer", &way[2], &way[1], windows);
    print_ratio("all of it above the bare loop", &way[2], &way[0], windows);
}

/* The place of NAME among the N names at V, each so many BYTES from the next. */
static int
place(const char *name, const void *v, int n, size_t bytes)
{
    for (int i = 0; i < n; i++)
        if (strcmp(*(const char *const *)((const char *)v + (size_t)i * bytes), name) ==
            0)
            return i;
    usage();
    return -1;
}

static void
open_way(struct way *w, int k, int threads)
{
    if (k == 0)
        open_bare(w, threads);
    else
        open_trainer(w, k == 1 ? plain : full, threads, names[k]);
    window(w, 5, 0);
}

int
main(int argc, char **argv)
{
    static struct way way[WAYS];
    enum { NETS = sizeof nets / sizeof nets[0] };
    net = nets[argc > 1 ? place(argv[1], nets, NETS, sizeof nets[0]) : 0].text;
    int windows = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 15,
        steps = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 25;
    int threads = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 0;
    int only = argc > 5 ? place(argv[5], names, WAYS, sizeof names[0]) : -1;
    char command[64];
    if (windows < 1 || windows > MOST || steps < 1)
        usage();
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder))
        return 1;
    for (int k = 0; k < WAYS; k++)
        if (only < 0 || only == k)
            open_way(&way[k], k, threads);
    for (int i = 0; i < windows; i++)
        for (int k = 0; k < WAYS; k++) {
            int turn = i % 2 ? WAYS - 1 - k : k; /* so that none is always first */
            if (only < 0 || only == turn)
                window(&way[turn], steps, i);
        }
    print_ways(way, windows, only);
    for (int k = WAYS - 1; k >= 0; k--)
        if (only < 0 || only == k)
            close_way(&way[k]);
    et_ctx_free(&cx);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0;
}
