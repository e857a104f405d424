/* SPDX-License-Identifier: Apache-2.0 */
/* train.c: one step of a model, in training or evaluation, again and again, for the
 * referees.
 *
 *   train MODEL BATCH SIZE [KEY=VALUE...]
 *
 * MODEL is one of models.def; SIZE the pixels of a side, or the tokens of a sequence.
 * Keys (with what they are if not given): device=cpu index=0 threads=0 (all),
 * precision=fp32 (or tf32, amp_bf16, amp_fp16), lr=0.01, clip=0 (the gradient's norm; 0
 * = as it is), channels=1, classes=10 (of an image or a pixel; of a sequence: the
 * vocabulary), weights=FILE (safetensors: the weights before the first step), do=train
 * (or eval: a step is a forward pass and its loss), accumulate=1 (a step trains on so
 * many batches of BATCH / accumulate samples and updates once). Any other is an option
 * of the model, n_layers=4. SGD with momentum 0.9 for images, AdamW for text.
 *
 * Reads lines from standard input and answers each with a line of JSON:
 *   run N      N steps:  seconds (until the device has done them), loss (of the last
 *              batch), replays (steps that were one launch of a recording), peak_bytes
 *              (most device memory ever in use), rss_bytes (most memory the process
 *              ever had), import_bytes (what it had when the device was open and
 *              nothing else was)
 *   proof N    the same, and of the last step grad_norm, before clipping, and change,
 *              the norm of the parameters' difference to those before the first proof;
 *              of an evaluation output_norm instead
 *   save FILE  the weights as they are now, into FILE; answers {}
 *   about 1    device, library: what the device says of itself
 *   plan 1     the next step's plan, which does not run:  kernels, flops, bytes,
 *              slab_bytes (intermediates), least_seconds (at the device's peaks, or
 *              those of ETUDE_ROOFLINE; 0 = not known). With ETUDE_DUMP=plan the
 *              kernels one by one, on standard error
 *
 * Ends at end of input. There are eight batches, which take turns. One is a hash of its
 * number and the index, the same in bench/peer.py, and lies on the device: pixels are
 * uniform with variance 1, tokens and labels uniform. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/program.h"
#include "core/graph/graph_impl.h"
#include "etude/functional.h"
#include "etude/model.h"
#include "etude/optim.h"

enum { BATCHES = 8, MODEL_OPTIONS = 16 };

static struct et_ctx *cx;

/* ---- what is asked for ---- */

struct settings {
    const char *model, *device, *precision, *lr, *weights, *does;
    const char *batch, *size, *index, *threads, *channels, *classes, *clip, *accumulate;
    const char *option[MODEL_OPTIONS]; /* "n_layers=4": the model's own */
    int n_options;
};

static const struct {
    const char *key;
    size_t offset;
} keys[] = {
    {"device", offsetof(struct settings, device)},
    {"index", offsetof(struct settings, index)},
    {"threads", offsetof(struct settings, threads)},
    {"precision", offsetof(struct settings, precision)},
    {"lr", offsetof(struct settings, lr)},
    {"clip", offsetof(struct settings, clip)},
    {"channels", offsetof(struct settings, channels)},
    {"classes", offsetof(struct settings, classes)},
    {"weights", offsetof(struct settings, weights)},
    {"do", offsetof(struct settings, does)},
    {"accumulate", offsetof(struct settings, accumulate)},
    {NULL, 0},
};

static void
usage(const char *why)
{
    fprintf(stderr, "train: %s\nusage: train MODEL BATCH SIZE [KEY=VALUE...]\n", why);
    exit(64);
}

static void
read_arguments(struct settings *s, int argc, char **argv)
{
    *s = (struct settings){
        .device = "cpu",
        .precision = "fp32",
        .lr = "0.01",
        .index = "0",
        .threads = "0",
        .channels = "1",
        .classes = "10",
        .clip = "0",
        .does = "train",
        .accumulate = "1",
    };
    if (argc < 4)
        usage("it needs a model, a batch and a size");
    s->model = argv[1];
    s->batch = argv[2];
    s->size = argv[3];
    for (int i = 4; i < argc; i++) {
        size_t n = strcspn(argv[i], "=");
        int k = 0;
        if (argv[i][n] != '=')
            usage("an argument is not KEY=VALUE");
        while (keys[k].key &&
               (strlen(keys[k].key) != n || strncmp(keys[k].key, argv[i], n) != 0))
            k++;
        if (keys[k].key)
            *(const char **)((char *)s + keys[k].offset) = argv[i] + n + 1;
        else if (s->n_options < MODEL_OPTIONS)
            s->option[s->n_options++] = argv[i];
        else
            usage("too many options of the model");
    }
}

static int64_t
number(const char *text)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    if (*end || end == text || n < 0)
        usage("a number is none");
    return n;
}

/* ---- what is trained ---- */

/* As GradScaler: times 2 after 2,000 clean steps, half after one that is not finite.
 * Such a step changes no parameter. (It is counted as an update, so that the host need
 * not wait for the verdict: AdamW's correction of its first moments is then a step
 * ahead of PyTorch's.) */
struct scaler {
    struct et_tensor *scale, *clean; /* NULL: none */
};

struct bench {
    struct et_device *dev;
    struct et_model *model;
    struct et_leaves leaves;
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_graph *g;
    struct et_tensor *x[BATCHES], *target[BATCHES]; /* made when first needed */
    struct et_tensor *loss, *norm; /* norm: the gradient's, or the outputs' */
    struct et_tensor *grad_sum;    /* of a step's batches so far; NULL: it has one */
    struct et_tensor **param, **grad;
    struct scaler scaler;
    int64_t n, size, channels, classes; /* n: samples of a batch */
    int64_t accumulate, batches;        /* batches of a step, and of all done steps */
    double clip;
    enum et_task task;
    bool evaluates;
    float *first;        /* parameters before the first proof; NULL: there was none */
    size_t import_bytes; /* of the process, when it had only opened the device */
};

static const int64_t one[] = {1};

static struct et_tensor *
new_number(struct bench *b, const char *name, float value)
{
    struct et_tensor *t;
    must(cx, et_tensor_new(cx, b->dev, ET_F32, 1, one, ET_ROW_MAJOR, name, &t));
    must(cx, et_tensor_write(cx, t, &value, sizeof value));
    return t;
}

static float
read_number(const struct et_tensor *t)
{
    float value;
    must(cx, et_tensor_read(cx, t, &value, sizeof value));
    return value;
}

static void
make_model(struct bench *b, const struct settings *s)
{
    const struct et_model_class *c = et_model_class_find(s->model);
    if (!c)
        usage("there is no such model");
    b->task = c->task;
    const struct et_model_facts facts = {
        .channels = b->channels,
        .height = b->size,
        .width = b->size,
        .num_classes = b->classes,
        .vocab_size = b->classes,
        .seq_len = b->size,
    };
    void *options = calloc(1, c->info.options_size);
    must(cx, et_options_init(cx, c->info.options, options));
    if (b->task == ET_TASK_LANGUAGE) {
        must(cx,
             et_options_set(cx, c->info.options, options, "vocab_size", s->classes));
        must(cx, et_options_set(cx, c->info.options, options, "max_seq_len", s->size));
    }
    for (int i = 0; i < s->n_options; i++) {
        char key[64];
        size_t n = strcspn(s->option[i], "=");
        snprintf(key, sizeof key, "%.*s", (int)n, s->option[i]);
        must(cx,
             et_options_set(cx, c->info.options, options, key, s->option[i] + n + 1));
    }
    must(cx, et_model_new(cx, c, options, &facts, &b->model));
    free(options);
}

static void
make_parameters(struct bench *b, const struct settings *s)
{
    must(cx, et_module_leaves(cx, b->model->root, ET_PARAM, &b->leaves));
    int n = b->leaves.n;
    struct et_param_spec *spec = calloc((size_t)n, sizeof *spec);
    b->param = calloc((size_t)n, sizeof *b->param);
    b->grad = calloc((size_t)n, sizeof *b->grad);
    for (int i = 0; i < n; i++)
        spec[i] = (struct et_param_spec){
            .name = b->leaves.v[i].name,
            .desc = b->leaves.v[i].param->desc,
        };
    must(cx, et_param_space_new(cx, b->dev, spec, n, &b->space));
    for (int i = 0; i < n; i++) {
        struct et_tensor *view;
        must(cx, et_param_space_view(cx, b->space, -1, i, &view));
        must(cx, et_param_bind(cx, b->leaves.v[i].param, spec[i].name, 17, &view));
        b->param[i] = b->leaves.v[i].param->tensor;
    }
    free(spec);
    must(cx, et_module_bind(cx, b->model->root, b->dev, ET_PARAM | ET_BUFFER, 17));
    if (s->weights)
        must(cx, et_model_load_weights(cx, b->model, s->weights));
    bool text = b->task == ET_TASK_LANGUAGE;
    const struct et_optimizer_class *c = et_optimizer_find(text ? "adamw" : "sgd");
    void *options = calloc(1, c->info.options_size);
    must(cx, et_options_init(cx, c->info.options, options));
    must(cx, et_options_set(cx, c->info.options, options, "lr", s->lr));
    if (!text)
        must(cx, et_options_set(cx, c->info.options, options, "momentum", "0.9"));
    must(cx, et_optimizer_new(cx, c, options, b->space, &b->opt));
}

static void
set_precision(struct bench *b, const char *name)
{
    if (strcmp(name, "amp_bf16") == 0) {
        must(cx, et_graph_set_low_dtype(b->g, ET_BF16));
        must(cx, et_param_space_shadow(b->space, ET_BF16));
    } else if (strcmp(name, "amp_fp16") == 0) {
        must(cx, et_graph_set_low_dtype(b->g, ET_F16));
        must(cx, et_param_space_shadow(b->space, ET_F16));
        b->scaler.scale = new_number(b, "loss scale", 65536);
        b->scaler.clean = new_number(b, "clean steps", 0);
    } else if (strcmp(name, "tf32") == 0) {
        const struct et_device_table *table = b->dev->table;
        if (!table->set || table->set(b->dev->handle, ET_DEVICE_TF32, 1) != ET_OK)
            usage("this device has no tf32");
    } else if (strcmp(name, "fp32") != 0) {
        usage("precision is fp32, tf32, amp_bf16 or amp_fp16");
    }
}

/* ---- batches ---- */

/* Two multiplications, three shifts: as t/golden/golden.py. */
static uint32_t
hash(uint32_t stream, uint64_t i)
{
    uint32_t x = (uint32_t)(i * 0x9E3779B1u + stream * 0x85EBCA77u);
    x ^= x >> 16;
    x *= 0x21F0AAADu;
    x ^= x >> 15;
    x *= 0x735A2D97u;
    return x ^ x >> 15;
}

static struct et_tensor *
make_integers(struct bench *b, uint32_t stream, int ndim, const char *name)
{
    const int64_t shape[] = {b->n, b->size, b->size};
    size_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= (size_t)shape[i];
    int32_t *v = malloc(count * sizeof *v);
    struct et_tensor *t;
    for (size_t i = 0; i < count; i++)
        v[i] = (int32_t)(hash(stream, i) % (uint32_t)b->classes);
    must(cx, et_tensor_new(cx, b->dev, ET_I32, ndim, shape, ET_ROW_MAJOR, name, &t));
    must(cx, et_tensor_write(cx, t, v, count * sizeof *v));
    free(v);
    return t;
}

static struct et_tensor *
make_images(struct bench *b, uint32_t stream)
{
    const int64_t shape[] = {b->n, b->channels, b->size, b->size};
    const float width = 3.4641016f; /* sqrt(12): variance 1 */
    size_t count = (size_t)(b->n * b->channels * b->size * b->size);
    float *v = malloc(count * sizeof *v);
    struct et_tensor *t;
    for (size_t i = 0; i < count; i++)
        v[i] = ((float)(hash(stream, i) >> 8) * 0x1p-24f - 0.5f) * width;
    must(cx, et_tensor_new(cx, b->dev, ET_F32, 4, shape, ET_CHANNELS_LAST, "x", &t));
    must(cx, et_tensor_write(cx, t, v, count * sizeof *v));
    free(v);
    return t;
}

static void
need_batch(struct bench *b, int k)
{
    if (b->x[k])
        return;
    uint32_t stream = 2 * (uint32_t)k;
    bool text = b->task == ET_TASK_LANGUAGE;
    int ndim = text ? 2 : b->task == ET_TASK_SEGMENTATION ? 3 : 1;
    b->x[k] = text ? make_integers(b, stream, 2, "x") : make_images(b, stream);
    b->target[k] = make_integers(b, stream + 1, ndim, "target");
}

/* ---- the step ---- */

/* 0 where FLAT is finite, else 1; and the scale of the next step. */
static struct et_tensor *
settle_scale(struct bench *b, struct et_tensor *flat)
{
    struct et_graph *g = b->g;
    struct scaler *s = &b->scaler;
    struct et_tensor *zero = et_fill(g, ET_F32, 1, one, 0);
    struct et_tensor *sum = et_reshape(g, et_sum_squares(g, flat), 1, one);
    struct et_tensor *skip = et_where(g, et_equal(g, et_mul_scalar(g, sum, 0), zero),
                                      zero, et_fill(g, ET_F32, 1, one, 1));
    struct et_tensor *clean = et_add_scalar(g, s->clean, 1);
    struct et_tensor *missing = et_add_scalar(g, clean, -2000);
    struct et_tensor *same =
        et_where(g, missing, s->scale, et_mul_scalar(g, s->scale, 2));
    et_assign(g, s->scale, et_where(g, skip, et_mul_scalar(g, s->scale, 0.5), same));
    et_assign(g, s->clean, et_where(g, skip, zero, et_where(g, missing, clean, zero)));
    return skip;
}

/* The loss of batch K, which becomes b->loss; *Y: the outputs. */
static struct et_tensor *
forward(struct bench *b, int64_t k, struct et_tensor **y)
{
    struct et_forward f = {.g = b->g, .training = !b->evaluates};
    int slot = (int)(k % BATCHES);
    need_batch(b, slot);
    const struct et_samples samples = {.target = b->target[slot]};
    *y = et_model_forward(b->model, &f, b->x[slot]);
    struct et_tensor *loss =
        et_model_loss(b->model, b->g, *y, &samples, ET_REDUCE_MEAN);
    loss = et_reshape(b->g, loss, 1, one);
    et_assign(b->g, b->loss, loss);
    return loss;
}

/* The gradient of batch K, in one array. */
static struct et_tensor *
gradient(struct bench *b, int64_t k)
{
    struct et_tensor *y, *loss = forward(b, k, &y);
    if (b->scaler.scale)
        loss = et_mul(b->g, loss, b->scaler.scale);
    must(cx, et_grad(b->g, loss, b->param, b->leaves.n, b->grad));
    return et_param_space_pack(b->g, b->space, b->grad);
}

/* Builds the end of a step: its last batch, K, and the update. */
static void
build_update(struct bench *b, int64_t k, bool proof)
{
    struct et_graph *g = b->g;
    struct et_tensor *skip = NULL, *flat = gradient(b, k);
    if (b->grad_sum)
        flat =
            et_mul_scalar(g, et_add(g, b->grad_sum, flat), 1 / (double)b->accumulate);
    if (b->scaler.scale) {
        flat = et_mul(g, flat, et_reciprocal(g, b->scaler.scale));
        skip = settle_scale(b, flat);
    }
    if (proof)
        et_assign(g, b->norm, et_reshape(g, et_norm2(g, flat), 1, one));
    if (b->clip > 0)
        flat = et_apply_gradient_clipping(g, flat, b->space, ET_CLIP_NORM, b->clip, 0);
    must(cx, et_optimizer_update(g, b->opt, flat, NULL, skip));
}

static void
build_evaluation(struct bench *b, int64_t k, bool proof)
{
    struct et_tensor *y;
    (void)forward(b, k, &y);
    if (proof) {
        y = et_cast(b->g, y, ET_F32);
        et_assign(b->g, b->norm, et_reshape(b->g, et_norm2(b->g, y), 1, one));
    }
}

/* Builds what runs at the end of a step, whose last batch is K. */
static void
build(struct bench *b, int64_t k, bool proof)
{
    (b->evaluates ? build_evaluation : build_update)(b, k, proof);
}

static void
step(struct bench *b, bool proof)
{
    int64_t last = b->batches + b->accumulate - 1;
    for (int64_t k = b->batches; k < last; k++) {
        struct et_tensor *flat = gradient(b, k);
        et_assign(b->g, b->grad_sum,
                  k > b->batches ? et_add(b->g, b->grad_sum, flat) : flat);
        must(cx, et_eval_keeping_casts(b->g));
    }
    build(b, last, proof);
    must(cx, et_eval(b->g, NULL, 0));
    if (!b->evaluates)
        et_optimizer_done(b->opt, false);
    et_graph_reset(b->g);
    b->batches += b->accumulate;
}

static void
plan(struct bench *b)
{
    struct et_plan_info info;
    build(b, b->batches + b->accumulate - 1, false);
    must(cx, et_plan(b->g, NULL, 0, &info));
    et_graph_abandon(b->g);
    et_graph_reset(b->g);
    printf("{\"kernels\": %d, \"flops\": %lld, \"bytes\": %lld, \"slab_bytes\": %zu, "
           "\"least_seconds\": %.9g}\n",
           info.kernels, (long long)info.flops, (long long)info.moved_bytes,
           info.slab_bytes, info.least_seconds);
}

/* ---- what is proven ---- */

/* A copy of the parameters, in the host's memory. */
static float *
copy_parameters(struct bench *b)
{
    size_t size = (size_t)b->space->total * sizeof(float);
    float *copy = malloc(size);
    if (!copy)
        usage("there is no memory for a copy of the parameters");
    must(cx, et_tensor_read(cx, b->space->values, copy, size));
    return copy;
}

/* The norm of the parameters' difference to b->first. A norm in f32 of all parameters
 * would not show it: ResNet-50's is the same after 100 steps at a rate of 1e-5. */
static double
change(struct bench *b)
{
    float *present = copy_parameters(b);
    double sum = 0;
    for (int64_t i = 0; i < b->space->total; i++) {
        double d = (double)present[i] - (double)b->first[i];
        sum += d * d;
    }
    free(present);
    return sqrt(sum);
}

/* A row of /proc/self/status in bytes: VmHWM is the most the process has had. */
static size_t
process_memory(const char *row)
{
    char line[256];
    size_t n = strlen(row), kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, row, n) == 0)
            kib = strtoul(line + n, NULL, 10);
    if (f)
        fclose(f);
    return kib << 10;
}

static void
print_number(const char *name, double value)
{
    if (isfinite(value))
        printf(", \"%s\": %.9g", name, value);
    else
        printf(", \"%s\": NaN", name);
}

/* Runs STEPS steps, and answers. */
static void
answer(struct bench *b, int64_t steps, bool proof)
{
    struct et_graph_stats before, after;
    if (proof && !b->first && !b->evaluates)
        b->first = copy_parameters(b);
    et_graph_get_stats(b->g, &before);
    double start = now();
    for (int64_t i = 0; i < steps; i++)
        step(b, proof && i == steps - 1);
    float loss = read_number(b->loss); /* waits for the device */
    printf("{\"seconds\": %.6f", now() - start);
    et_graph_get_stats(b->g, &after);
    printf(", \"replays\": %" PRIu64, after.launches - before.launches);
    print_number("loss", (double)loss);
    if (proof) {
        print_number(b->evaluates ? "output_norm" : "grad_norm",
                     (double)read_number(b->norm));
        if (!b->evaluates)
            print_number("change", change(b));
    }
    struct et_device_memory memory;
    et_device_get_memory(b->dev, &memory);
    printf(", \"peak_bytes\": %zu, \"rss_bytes\": %zu, \"import_bytes\": %zu}\n",
           memory.peak_bytes, process_memory("VmHWM:"), b->import_bytes);
}

static void
about(struct bench *b)
{
    struct et_device_info info;
    et_device_get_info(b->dev, &info);
    printf("{\"device\": \"%s\", \"library\": \"%s\"}\n", info.name, info.library);
}

/* Answers LINE; false if it is no command that this file knows. */
static bool
obey(struct bench *b, const char *line)
{
    char word[16], what[4096];
    if (sscanf(line, "%15s %4095[^\n]", word, what) != 2)
        return false;
    if (strcmp(word, "save") == 0) {
        must(cx, et_model_save_weights(cx, b->model, 17, what));
        printf("{}\n");
        return true;
    }
    int64_t n = number(what);
    bool proof = strcmp(word, "proof") == 0;
    if (n == 1 && strcmp(word, "plan") == 0)
        plan(b);
    else if (n == 1 && strcmp(word, "about") == 0)
        about(b);
    else if (n >= 1 && (proof || strcmp(word, "run") == 0))
        answer(b, n, proof);
    else
        return false;
    return true;
}

static void
print_log(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

static void
read_sizes(struct bench *b, const struct settings *s)
{
    b->accumulate = number(s->accumulate);
    b->evaluates = strcmp(s->does, "eval") == 0;
    if (!b->evaluates && strcmp(s->does, "train") != 0)
        usage("do is train or eval");
    if (b->accumulate < 1 || number(s->batch) % b->accumulate ||
        (b->evaluates && b->accumulate > 1))
        usage("a step cannot be cut into so many batches");
    b->n = number(s->batch) / b->accumulate;
    b->size = number(s->size);
    b->channels = number(s->channels);
    b->classes = number(s->classes);
    b->clip = strtod(s->clip, NULL);
}

int
main(int argc, char **argv)
{
    struct settings s;
    struct bench b = {0};
    read_arguments(&s, argc, argv);
    if (et_ctx_new(&cx) != ET_OK)
        return 1;
    et_ctx_set_log(cx, ET_LOG_INFO, print_log, NULL);
    read_sizes(&b, &s);
    must(cx, et_device_open(cx, s.device, (int)number(s.index), (int)number(s.threads),
                            &b.dev));
    b.import_bytes = process_memory("VmRSS:");
    make_model(&b, &s);
    make_parameters(&b, &s);
    if (b.accumulate > 1)
        must(cx, et_tensor_new(cx, b.dev, ET_F32, 1, (const int64_t[]){b.space->total},
                               ET_ROW_MAJOR, "sum of gradients", &b.grad_sum));
    b.loss = new_number(&b, "loss", 0);
    b.norm = new_number(&b, "norm", 0);
    must(cx, et_graph_new(cx, b.dev, &b.g));
    set_precision(&b, s.precision);
    for (char line[4096]; fgets(line, sizeof line, stdin);) {
        if (!obey(&b, line)) {
            fprintf(stderr, "train: not understood: %s", line);
            return 1;
        }
        fflush(stdout);
    }
    return 0;
}
