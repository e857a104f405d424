/* SPDX-License-Identifier: Apache-2.0 */
/* golden_run.c: see golden_run.h. */
#include "t/train/golden_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/op.h"
#include "t/tap.h"

enum { IMAGE_BATCH = 16, SIDE = 8, TOKEN_BATCH = 4, T = 16, VOCABULARY = 64 };

static struct et_ctx *cx; /* of the run under way, likewise */
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
fill(const struct et_leaves *l, const struct golden *r)
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

/* For the rows of one of WORLD ranks. */
static struct et_tensor *
leaf(const struct et_desc *d, int world)
{
    struct et_tensor *t;
    int64_t shape[ET_MAX_DIMS];
    memcpy(shape, d->shape, sizeof shape);
    shape[0] /= world;
    must(et_tensor_new(cx, dev, d->dtype, d->ndim, shape,
                       d->ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, NULL, &t));
    return t;
}

/* RANK's rows of the batch V of all ranks. */
static void
send_rows(struct et_tensor *to, const void *v, int rank)
{
    size_t bytes = et_desc_bytes(&to->desc);
    must(et_tensor_write(cx, to, (const char *)v + (size_t)rank * bytes, bytes));
}

int64_t
golden_train(struct et_ctx *in, struct et_device *on, struct et_comm *comm,
             const struct golden *r, enum et_dtype low, int steps, double *loss)
{
    int world = et_comm_world(comm), rank = et_comm_rank(comm);
    cx = in;
    dev = on;
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
    et_graph_set_comm(g, comm);
    struct et_tensor *x = leaf(&r->x, world), *target = leaf(&r->target, world);
    const struct et_samples samples = {.x = x, .target = target};
    void *x_host = calloc(1, et_desc_bytes(&r->x));
    int32_t *target_host = calloc(1, et_desc_bytes(&r->target));
    for (int step = 0; step < steps; step++) {
        r->batch(step, x_host, target_host);
        send_rows(x, x_host, rank);
        send_rows(target, target_host, rank);
        struct et_forward f = {.g = g, .training = true};
        struct et_tensor *z = et_model_forward(m, &f, x);
        struct et_tensor *value = et_model_loss(m, g, z, &samples, ET_REDUCE_MEAN);
        must(et_grad(g, value, params, l.n, grads));
        struct et_tensor *flat = et_param_space_pack(g, space, grads);
        if (world > 1) {
            flat = et_mul_scalar(g, et_all_reduce(g, flat, NULL), 1.0 / world);
            value = et_mul_scalar(g, et_all_reduce(g, value, NULL), 1.0 / world);
        }
        must(et_optimizer_update(g, opt, flat, NULL, NULL));
        must(et_eval(g, &value, 1));
        must(et_item(g, value, &loss[step]));
        et_optimizer_done(opt, false);
        et_graph_reset(g);
    }
    struct et_graph_stats stats;
    et_graph_get_stats(g, &stats);
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
    return (int64_t)stats.plans_built;
}

/* ---- the networks ---- */

static const char *const none[] = {NULL};
static const char *const resnet20_rule[] = {"lr",           "0.002", "momentum", "0.9",
                                            "weight_decay", "5e-3",  NULL};
static const char *const gpt_size[] = {"n_layers",   "2",  "d_model",     "32",
                                       "n_heads",    "4",  "max_seq_len", "16",
                                       "vocab_size", "64", NULL};
static const char *const gpt_rule[] = {"lr",           "3e-3", "betas", "[0.9, 0.95]",
                                       "weight_decay", "0.01", NULL};

#define TOKENS                                                                         \
    {                                                                                  \
        .dtype = ET_I32, .ndim = 2, .shape = {TOKEN_BATCH, T}, .stride = { T, 1 }      \
    }

const struct golden golden_resnet20 = {
    .file = "resnet20.txt",
    .model = "resnet20",
    .optimizer = "sgd",
    .model_options = none,
    .optimizer_options = resnet20_rule,
    .weight = 0.5,
    .bias = 1,
    .facts = {.channels = 3, .height = SIDE, .width = SIDE, .num_classes = 10},
    .x = {.dtype = ET_F32,
          .ndim = 4,
          .shape = {IMAGE_BATCH, 3, SIDE, SIDE},
          .stride = {3 * SIDE * SIDE, SIDE *SIDE, SIDE, 1}},
    .target = {.dtype = ET_I32, .ndim = 1, .shape = {IMAGE_BATCH}, .stride = {1}},
    .products = 20,
    .samples = IMAGE_BATCH,
    .batch = images,
};

const struct golden golden_gpt = {
    .file = "gpt.txt",
    .model = "gpt2",
    .optimizer = "adamw",
    .model_options = gpt_size,
    .optimizer_options = gpt_rule,
    .scale = 0.05,
    .weight = 1,
    .x = TOKENS,
    .target = TOKENS,
    .products = 13, /* two layers of six, and the logits */
    .samples = TOKEN_BATCH * T,
    .batch = tokens,
};

/* ---- against PyTorch ---- */

void
golden_load(const char *file, int steps, int columns, double *value)
{
    const char *root = getenv("ET_SRCDIR");
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/t/golden/%s", root ? root : ".", file);
    FILE *f = fopen(path, "r");
    int n = 0;
    if (!f)
        bail("cannot open %s", path);
    while (n < steps && fgets(line, sizeof line, f)) {
        char *at = line;
        if (line[0] == '#' || strtol(line, &at, 10) != n)
            continue;
        for (int k = 0; k < columns; k++)
            value[n * columns + k] = strtod(at, &at);
        n++;
    }
    fclose(f);
    if (n != steps)
        bail("%s has %d steps, not %d", path, n, steps);
}

int
golden_compare(const double *got, const double *want, int n, double tolerance,
               double *worst)
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
