/* train.c: one training step of a model, again and again, for bench/cpu/referee.py.
 *
 *   train MODEL BATCH SIZE [THREADS]
 *
 * MODEL: resnet8 resnet20 resnet18 lenet (SIZE: pixels, 1 channel, 10 classes), a
 * residual network with another stem behind a slash, such as resnet8/strided, or gpt2
 * (SIZE: tokens of a sequence; the byte GPT of recipes/bible_gpt.yaml). Reads "N" lines
 * from standard input, runs N steps over eight rotating random batches, and answers
 * "SECONDS LOSS". SGD with momentum, AdamW for gpt2. Ends at end of input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "etude/model.h"
#include "etude/optim.h"
#include "etude/rng.h"

enum { BATCHES = 8 };

static struct et_ctx *cx;

static void
must(et_status status)
{
    if (status == ET_OK)
        return;
    fprintf(stderr, "train: %s\n", et_error_get(cx)->message);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct bench {
    struct et_device *dev;
    struct et_model *model;
    struct et_leaves leaves;
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_graph *g;
    struct et_tensor *x[BATCHES], *target[BATCHES], *loss;
    struct et_tensor **param, **grad;
};

static void
make_model(struct bench *b, const char *name, int64_t size, bool text)
{
    char family[32];
    snprintf(family, sizeof family, "%.*s", (int)strcspn(name, "/"), name);
    const char *stem = strchr(name, '/');
    const struct et_model_class *c = et_model_class_find(family);
    if (!c) {
        fprintf(stderr, "train: there is no model %s\n", name);
        exit(64);
    }
    const struct et_model_facts facts = {
        .channels = 1,
        .height = size,
        .width = size,
        .num_classes = 10,
        .vocab_size = 256,
        .seq_len = size,
    };
    static const char *const gpt[][2] = {
        {"n_layers", "4"}, {"d_model", "128"}, {"n_heads", "4"}, {"max_seq_len", "128"},
    };
    void *options = calloc(1, c->info.options_size);
    must(et_options_init(cx, c->info.options, options));
    for (int i = 0; text && i < 4; i++)
        must(et_options_set(cx, c->info.options, options, gpt[i][0], gpt[i][1]));
    if (stem)
        must(et_options_set(cx, c->info.options, options, "stem", stem + 1));
    must(et_model_new(cx, c, options, &facts, &b->model));
    free(options);
}

static void
make_parameters(struct bench *b, bool text)
{
    must(et_module_leaves(cx, b->model->root, ET_PARAM, &b->leaves));
    int n = b->leaves.n;
    struct et_param_spec *spec = calloc((size_t)n, sizeof *spec);
    b->param = calloc((size_t)n, sizeof *b->param);
    b->grad = calloc((size_t)n, sizeof *b->grad);
    for (int i = 0; i < n; i++)
        spec[i] = (struct et_param_spec){
            .name = b->leaves.v[i].name,
            .desc = b->leaves.v[i].param->desc,
        };
    must(et_param_space_new(cx, b->dev, spec, n, &b->space));
    for (int i = 0; i < n; i++) {
        struct et_tensor *view;
        must(et_param_space_view(cx, b->space, -1, i, &view));
        must(et_param_bind(cx, b->leaves.v[i].param, spec[i].name, 17, &view));
        b->param[i] = b->leaves.v[i].param->tensor;
    }
    free(spec);
    must(et_module_bind(cx, b->model->root, b->dev, ET_PARAM | ET_BUFFER, 17));
    const struct et_optimizer_class *c = et_optimizer_find(text ? "adamw" : "sgd");
    void *options = calloc(1, c->info.options_size);
    must(et_options_init(cx, c->info.options, options));
    must(et_options_set(cx, c->info.options, options, "lr", text ? "1e-3" : "0.01"));
    if (!text)
        must(et_options_set(cx, c->info.options, options, "momentum", "0.9"));
    must(et_optimizer_new(cx, c, options, b->space, &b->opt));
}

static void
make_batches(struct bench *b, int64_t n, int64_t size, bool text)
{
    const int64_t image[] = {n, 1, size, size}, tokens[] = {n, size}, labels[] = {n};
    struct et_rng r = et_rng_at(17, ET_RNG_DATA, 0);
    size_t count = (size_t)(n * size * (text ? 1 : size));
    float *pixels = malloc(count * sizeof *pixels);
    int32_t *ids = malloc(count * sizeof *ids);
    for (int k = 0; k < BATCHES; k++) {
        for (size_t i = 0; i < count; i++) {
            pixels[i] = (float)et_rng_normal(&r);
            ids[i] = (int32_t)et_rng_below(&r, 256);
        }
        if (text)
            must(et_tensor_new(cx, b->dev, ET_I32, 2, tokens, ET_ROW_MAJOR, "x", &b->x[k]));
        else
            must(et_tensor_new(cx, b->dev, ET_F32, 4, image, ET_CHANNELS_LAST, "x", &b->x[k]));
        must(et_tensor_write(cx, b->x[k], text ? (void *)ids : pixels, count * 4));
        for (size_t i = 0; i < count; i++)
            ids[i] = (int32_t)et_rng_below(&r, text ? 256 : 10);
        must(et_tensor_new(cx, b->dev, ET_I32, text ? 2 : 1, text ? tokens : labels,
                           ET_ROW_MAJOR, "target", &b->target[k]));
        must(et_tensor_write(cx, b->target[k], ids, (text ? count : (size_t)n) * 4));
    }
    free(pixels);
    free(ids);
}

static void
step(struct bench *b, int k)
{
    struct et_forward f = {.g = b->g, .training = true};
    struct et_tensor *y = et_model_forward(b->model, &f, b->x[k]);
    struct et_tensor *loss = et_model_loss(b->model, b->g, y, b->target[k], ET_REDUCE_MEAN);
    loss = et_reshape(b->g, loss, 1, (const int64_t[]){1});
    et_assign(b->g, b->loss, loss);
    must(et_grad(b->g, loss, b->param, b->leaves.n, b->grad));
    struct et_tensor *flat = et_param_space_pack(b->g, b->space, b->grad);
    must(et_optimizer_update(b->g, b->opt, flat, NULL, NULL));
    must(et_eval(b->g, NULL, 0));
    et_optimizer_done(b->opt, false);
    et_graph_reset(b->g);
}

static void
print_log(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

int
main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: train MODEL BATCH SIZE [THREADS]\n");
        return 64;
    }
    int64_t n = strtoll(argv[2], NULL, 10), size = strtoll(argv[3], NULL, 10);
    bool text = strcmp(argv[1], "gpt2") == 0;
    struct bench b = {0};
    if (et_ctx_new(&cx) != ET_OK)
        return 1;
    et_ctx_set_log(cx, ET_LOG_INFO, print_log, NULL);
    int threads = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 0;
    must(et_device_open(cx, "cpu", 0, threads, &b.dev));
    make_model(&b, argv[1], size, text);
    make_parameters(&b, text);
    make_batches(&b, n, size, text);
    must(et_tensor_new(cx, b.dev, ET_F32, 1, (const int64_t[]){1}, ET_ROW_MAJOR, "loss", &b.loss));
    must(et_graph_new(cx, b.dev, &b.g));
    char line[64];
    for (int k = 0; fgets(line, sizeof line, stdin);) {
        int steps = (int)strtol(line, NULL, 10);
        double start = now();
        for (int i = 0; i < steps; i++)
            step(&b, k++ % BATCHES);
        double seconds = now() - start;
        float loss;
        must(et_tensor_read(cx, b.loss, &loss, sizeof loss));
        printf("%.6f %.6f\n", seconds, (double)loss);
        fflush(stdout);
    }
    return 0;
}
