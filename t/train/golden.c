/* Training, step for step, against losses of the same networks in PyTorch: t/golden
 * holds the programs that wrote them and one line a step. */
#include "etude/model.h"
#include "etude/optim.h"
#include "t/device.h"
#include "t/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Relative, at every step. Rounding alone carries PyTorch's own f32 less than 3e-6 from
 * its f64, which is what we compare with; a wrong formula goes past 1e-4 at once. */
#define TOLERANCE 1e-4

/* Of amp_bf16, against PyTorch's autocast, which rounds in other places and another
 * order: P products in a row round two operands and a result to 2^-9 each, errors that
 * add up like a random walk, and the loss is the mean of N samples; two runs that are
 * each so far from the exact one are at most twice that apart. (PyTorch's
 * own comes 2.9e-3 from its f64 in these steps of ResNet-20, where this allows 7.6e-3,
 * and 2.1e-4 in those of GPT-2, of 3.0e-3.) */
static double
mixed_tolerance(int products, int samples)
{
    return 2 * sqrt(3.0 * products / samples) * 0x1p-9;
}

enum {
    STEPS = 50,
    MIXED_STEPS = 12,
    IMAGE_BATCH = 16,
    SIDE = 8,
    TOKEN_BATCH = 4,
    T = 16,
    VOCABULARY = 64
};

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* golden.py's unit(): number I of STREAM, in [0, 1). */
static double
unit(uint32_t stream, uint32_t i)
{
    uint32_t x = i * 0x9E3779B1u + stream * 0x85EBCA77u;
    x = (x ^ x >> 16) * 0x21F0AAADu;
    x = (x ^ x >> 15) * 0x735A2D97u;
    return (x ^ x >> 15) * 0x1p-32;
}

struct run {
    const char *file, *model, *optimizer;
    const char *const *model_options, *const
                                          *optimizer_options; /* name, text ..., NULL */
    struct et_model_facts facts;
    double scale;        /* of initial weights; 0: sqrt(3 / fan_in) */
    double weight, bias; /* initial values of arrays with one axis */
    struct et_desc x, target;
    int products, samples; /* in a row; in the loss's mean */
    void (*batch)(int step, void *x, int32_t *target);
};

static void
images(int step, void *x, int32_t *target)
{
    const uint32_t pixels = 3 * SIDE * SIDE;
    float *v = x;
    for (uint32_t n = 0; n < IMAGE_BATCH; n++) {
        target[n] = (int32_t)(unit(2000 + (uint32_t)step, n) * 10);
        for (uint32_t i = 0; i < pixels; i++)
            v[n * pixels + i] =
                (float)(2 * unit(1000 + (uint32_t)step, n * pixels + i) - 1 +
                        (target[n] - 4.5) / 4.5);
    }
}

static void
tokens(int step, void *x, int32_t *target)
{
    int32_t *v = x;
    for (int b = 0; b < TOKEN_BATCH; b++) {
        int32_t token =
            (int32_t)(unit(1000 + (uint32_t)step, (uint32_t)b) * VOCABULARY);
        for (int t = 0; t < T; t++) {
            v[b * T + t] = token;
            token = (5 * token + 3) % VOCABULARY;
            target[b * T + t] = token;
        }
    }
}

static void *
options_of(const struct et_component *c, const char *const *set)
{
    void *o = calloc(1, c->options_size);
    must(et_options_init(cx, c->options, o));
    for (int i = 0; set[i]; i += 2)
        must(et_options_set(cx, c->options, o, set[i], set[i + 1]));
    return o;
}

/* golden.py's fill(). */
static void
fill(const struct et_leaves *l, const struct run *r)
{
    for (int j = 0; j < l->n; j++) {
        const struct et_desc *d = &l->v[j].param->desc;
        const char *dot = strrchr(l->v[j].name, '.');
        bool is_weight = dot && strcmp(dot, ".weight") == 0;
        int64_t n = et_desc_count(d);
        double s =
            r->scale > 0 ? r->scale : sqrt(3 / ((double)n / (double)d->shape[0]));
        float *v = calloc((size_t)n, sizeof *v);
        for (int64_t i = 0; i < n; i++)
            v[i] = (float)(d->ndim < 2 ? is_weight ? r->weight : r->bias
                                       : (2 * unit((uint32_t)j, (uint32_t)i) - 1) * s);
        must(et_param_write(cx, l->v[j].param, v, n));
        free(v);
    }
}

/* Lays the parameters out and binds them; TENSOR takes them in order. */
static struct et_param_space *
lay_out(const struct et_leaves *l, struct et_tensor **tensor)
{
    struct et_param_spec *specs = calloc((size_t)l->n, sizeof *specs);
    struct et_param_space *space;
    for (int i = 0; i < l->n; i++)
        specs[i] =
            (struct et_param_spec){.name = l->v[i].name, .desc = l->v[i].param->desc};
    must(et_param_space_new(cx, dev, specs, l->n, &space));
    for (int i = 0; i < l->n; i++) {
        struct et_tensor *view;
        must(et_param_space_view(cx, space, -1, i, &view));
        must(et_param_bind(cx, l->v[i].param, l->v[i].name, 0, &view));
        tensor[i] = l->v[i].param->tensor;
    }
    free(specs);
    return space;
}

static struct et_tensor *
leaf(const struct et_desc *d)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, d->dtype, d->ndim, d->shape,
                       d->ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, NULL, &t));
    return t;
}

/* Trains STEPS steps with products in LOW (NONE: f32) and fills LOSS. */
static void
train(const struct run *r, enum et_dtype low, int steps, double *loss)
{
    const struct et_model_class *mc = et_model_class_find(r->model);
    const struct et_optimizer_class *oc = et_optimizer_find(r->optimizer);
    void *model_options = options_of(&mc->info, r->model_options);
    void *optimizer_options = options_of(&oc->info, r->optimizer_options);
    struct et_model *m;
    struct et_leaves l;
    struct et_optimizer *opt;
    struct et_graph *g;
    must(et_model_new(cx, mc, model_options, &r->facts, &m));
    must(et_module_leaves(cx, m->root, ET_PARAM, &l));
    if (l.n < 1)
        bail("%s has no parameters", r->model);
    fill(&l, r);
    struct et_tensor **params = calloc((size_t)l.n, sizeof(void *));
    struct et_tensor **grads = calloc((size_t)l.n, sizeof(void *));
    struct et_param_space *space = lay_out(&l, params);
    must(et_module_bind(cx, m->root, dev, ET_BUFFER, 0));
    must(et_optimizer_new(cx, oc, optimizer_options, space, &opt));
    must(et_graph_new(cx, dev, &g));
    must(et_graph_set_low_dtype(g, low));
    struct et_tensor *x = leaf(&r->x), *target = leaf(&r->target);
    void *x_host = calloc(1, et_desc_bytes(&r->x));
    int32_t *target_host = calloc(1, et_desc_bytes(&r->target));
    for (int step = 0; step < steps; step++) {
        r->batch(step, x_host, target_host);
        must(et_tensor_write(cx, x, x_host, et_desc_bytes(&r->x)));
        must(et_tensor_write(cx, target, target_host, et_desc_bytes(&r->target)));
        struct et_forward f = {.g = g, .training = true};
        struct et_tensor *z = et_model_forward(m, &f, x);
        struct et_tensor *value = et_model_loss(m, g, z, target, ET_REDUCE_MEAN);
        must(et_grad(g, value, params, l.n, grads));
        struct et_tensor *flat = et_param_space_pack(g, space, grads);
        must(et_optimizer_update(g, opt, flat, NULL, NULL));
        must(et_eval(g, &value, 1));
        must(et_item(g, value, &loss[step]));
        et_optimizer_done(opt, false);
        et_graph_reset(g);
    }
    struct et_graph_stats stats;
    et_graph_get_stats(g, &stats);
    is_int((int64_t)stats.plans_built, 1, "%s: one plan serves all steps", r->model);
    free(x_host);
    free(target_host);
    free(params);
    free(grads);
    et_tensor_free(&x);
    et_tensor_free(&target);
    et_graph_free(&g);
    et_optimizer_free(&opt);
    et_leaves_release(&l);
    et_model_free(&m);
    et_param_space_free(&space);
    et_options_release(mc->info.options, model_options);
    et_options_release(oc->info.options, optimizer_options);
    free(model_options);
    free(optimizer_options);
}

/* The columns of t/golden/FILE computed in f64 and under autocast to bf16. */
static void
load(const char *file, double *exact, double *mixed)
{
    const char *root = getenv("ET_SRCDIR");
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/t/golden/%s", root ? root : ".", file);
    FILE *f = fopen(path, "r");
    int n = 0, step;
    if (!f)
        bail("cannot open %s", path);
    while (fgets(line, sizeof line, f) && n < STEPS)
        if (line[0] != '#' &&
            sscanf(line, "%d %lf %*f %lf", &step, &exact[n], &mixed[n]) == 3 &&
            step == n)
            n++;
    fclose(f);
    if (n != STEPS)
        bail("%s has %d steps, not %d", path, n, STEPS);
}

/* The first step of N at which GOT is further than TOLERANCE from WANT; -1: none. */
static int
compare(const double *got, const double *want, int n, double tolerance, double *worst)
{
    int bad = -1;
    *worst = 0;
    for (int i = 0; i < n; i++) {
        double error = fabs(got[i] - want[i]) / want[i];
        *worst = fmax(*worst, error);
        if (!(error <= tolerance) && bad < 0)
            bad = i;
    }
    if (bad >= 0)
        diag("step %d: got %.9g, want %.9g", bad, got[bad], want[bad]);
    return bad;
}

static void
check(const struct run *r)
{
    double loss[STEPS], low[STEPS], exact[STEPS], mixed[STEPS], worst;
    const char *device = et_device_name(dev);
    load(r->file, exact, mixed);
    train(r, ET_NONE, STEPS, loss);
    int bad = compare(loss, exact, STEPS, TOLERANCE, &worst);
    ok(bad < 0, "%s on %s: %d losses are PyTorch's (worst %.1e)", r->model, device,
       STEPS, worst);
    ok(loss[STEPS - 1] < loss[0] / 2, "and fall by more than half (%.3f to %.3f)",
       loss[0], loss[STEPS - 1]);
    train(r, ET_BF16, MIXED_STEPS, low);
    bad = compare(low, mixed, MIXED_STEPS, mixed_tolerance(r->products, r->samples),
                  &worst);
    ok(bad < 0, "%s in bf16 on %s: %d losses are autocast's (worst %.1e)", r->model,
       device, MIXED_STEPS, worst);
    (void)compare(low, loss, MIXED_STEPS, 1, &worst);
    ok(worst > TOLERANCE, "and not those of f32 (%.1e apart)", worst);
}

int
main(void)
{
    struct run resnet = {
        .file = "resnet20.txt",
        .model = "resnet20",
        .optimizer = "sgd",
        .model_options = (const char *[]){NULL},
        .optimizer_options = (const char *[]){"lr", "0.002", "momentum", "0.9",
                                              "weight_decay", "5e-3", NULL},
        .weight = 0.5,
        .bias = 1,
        .facts = {.channels = 3, .height = SIDE, .width = SIDE, .num_classes = 10},
        .products = 20,
        .samples = IMAGE_BATCH,
        .batch = images,
    };
    struct run gpt = {
        .file = "gpt.txt",
        .model = "gpt2",
        .optimizer = "adamw",
        .model_options =
            (const char *[]){"n_layers", "2", "d_model", "32", "n_heads", "4",
                             "max_seq_len", "16", "vocab_size", "64", NULL},
        .optimizer_options = (const char *[]){"lr", "3e-3", "betas", "[0.9, 0.95]",
                                              "weight_decay", "0.01", NULL},
        .scale = 0.05,
        .weight = 1,
        .products = 13, /* two layers of six, and the logits */
        .samples = TOKEN_BATCH * T,
        .batch = tokens,
    };
    et_desc_init(&resnet.x, ET_F32, 4, (int64_t[]){IMAGE_BATCH, 3, SIDE, SIDE},
                 ET_ROW_MAJOR);
    et_desc_init(&resnet.target, ET_I32, 1, (int64_t[]){IMAGE_BATCH}, ET_ROW_MAJOR);
    et_desc_init(&gpt.x, ET_I32, 2, (int64_t[]){TOKEN_BATCH, T}, ET_ROW_MAJOR);
    gpt.target = gpt.x;

    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 1, &dev));
    check(&resnet);
    check(&gpt);
    et_device_close(&dev);
    if (et_device_open(cx, test_device("cpu"), 0, 1, &dev) != ET_OK) {
        skip(10, et_error_get(cx)->message);
        et_error_clear(cx);
    } else {
        check(&resnet);
        check(&gpt);
        et_device_close(&dev);
    }
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
