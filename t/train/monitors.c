/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors that look into the step: what they log is what can be computed from the
 * parameters, moments and activations by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

/* Sums of up to 64 floats in f32 on the device, then in double, against double: the
 * error of a sum of n terms of one sign is at most n eps of it, with n = 64 and eps =
 * 2^-24; roots and quotients add a few eps. Products of both signs are compared with
 * what their vectors' lengths allow. */
#define BLOCK_ROUNDING (70 * 6e-8)

static struct et_callback *
make(struct et_ctx *cx, const char *name, const char *const *options)
{
    const struct et_callback_class *c = et_callback_find(name);
    struct et_callback *out;
    void *values;
    if (!c)
        bail("there is no callback %s", name);
    need(cx, et_options_new(cx, &c->info, options, &values));
    need(cx, et_callback_new(cx, c, values, NULL, &out));
    et_options_free(&c->info, &values);
    return out;
}

#define MAKE(cx, name, ...) make(cx, name, (const char *const[]){__VA_ARGS__, NULL})

/* ---- the other side: flat arrays copied before and behind an update ---- */

struct spy {
    const struct et_state *state;
    struct et_tensor *grad; /* leaf that takes the gradient of the update */
    float *before, *after, *g, *moment[ET_MAX_MOMENTS];
};
static struct spy spy;

static float *
copy(const struct et_state *s, const struct et_tensor *flat, float *to)
{
    size_t bytes = et_desc_bytes(&flat->desc);
    if (!to && !(to = malloc(bytes)))
        bail("no memory");
    need(s->cx, et_tensor_read(s->cx, flat, to, bytes));
    return to;
}

static et_status
spy_update(struct et_callback *self, const struct et_state *s)
{
    (void)self;
    if (!spy.grad)
        need(s->cx, et_tensor_new(s->cx, s->dev, ET_F32, 1, &s->params->total,
                                  ET_ROW_MAJOR, "spy", &spy.grad));
    spy.before = copy(s, s->params->values, spy.before);
    et_assign(s->graph, spy.grad, s->grad);
    return ET_OK;
}

static et_status
spy_run(struct et_callback *self, enum et_event event, const struct et_state *s,
        struct et_log *log)
{
    (void)self;
    (void)event;
    (void)log;
    spy.after = copy(s, s->params->values, spy.after);
    spy.g = copy(s, spy.grad, spy.g);
    for (int i = 0; i < s->params->n_moments; i++)
        spy.moment[i] = copy(s, s->params->moment[i], spy.moment[i]);
    return ET_OK;
}

static void
spy_close(struct et_callback *self)
{
    (void)self;
    et_tensor_free(&spy.grad);
    free(spy.before);
    free(spy.after);
    free(spy.g);
    for (int i = 0; i < ET_MAX_MOMENTS; i++)
        free(spy.moment[i]);
    memset(&spy, 0, sizeof spy);
}

static const struct et_callback_class spy_class = {
    .info = {.name = "spy", .class_name = "Spy"},
    .events = ET_ON(BATCH_END),
    .update = spy_update,
    .run = spy_run,
    .close = spy_close,
};

/* ---- the sink: what was logged in the last batch's record ---- */

struct notes {
    struct et_sink sink; /* first */
    int n, norms;
    struct et_log_entry entry[512];
};

static void
note(struct et_sink *sink, const struct et_record *r)
{
    struct notes *notes = (struct notes *)sink;
    if (r->kind != ET_RECORD_BATCH)
        return;
    notes->n = notes->norms = 0;
    for (int i = 0; i < r->n && i < 512; i++) {
        notes->entry[notes->n++] = r->entry[i];
        notes->norms += strncmp(r->entry[i].name, "l2_norm", 7) == 0 ||
                        strncmp(r->entry[i].name, "cosine", 6) == 0;
    }
}

static double
noted(const struct notes *notes, const char *what, const char *whose)
{
    char name[ET_METRIC_NAME];
    snprintf(name, sizeof name, "%s/%s", what, whose);
    for (int i = 0; i < notes->n; i++)
        if (strcmp(notes->entry[i].name, name) == 0)
            return notes->entry[i].value;
    return NAN;
}

/* ---- optimizer_monitor ---- */

struct by_hand {
    double g2, m2, v, p2, u2, mg, ug;
};

static void
add_by_hand(struct by_hand *h, int64_t from, int64_t n, int first, int second)
{
    for (int64_t i = from; i < from + n; i++) {
        double g = spy.g[i], p = spy.after[i];
        double u = spy.before[i] - spy.after[i]; /* f32, as the device has it */
        double m = first < 0 ? 0 : spy.moment[first][i];
        h->g2 += g * g;
        h->m2 += m * m;
        h->v += second < 0 ? 0 : spy.moment[second][i];
        h->p2 += p * p;
        h->u2 += u * u;
        h->mg += m * g;
        h->ug += u * g;
    }
}

static void
compare(const struct notes *n, const struct by_hand *h, const char *whose, int first,
        int second)
{
    double tol = BLOCK_ROUNDING;
    is_near(noted(n, "l2_norm/grad", whose), sqrt(h->g2), tol, "|g| of %s", whose);
    is_near(noted(n, "l2_norm/param", whose), sqrt(h->p2), tol, "|p| of %s", whose);
    is_near(noted(n, "l2_norm/update", whose) / sqrt(h->u2), 1, tol, "|u| of %s",
            whose);
    is_near(noted(n, "l2_norm_ratio/update_param", whose) / sqrt(h->u2 / h->p2), 1,
            2 * tol, "|u| / |p| of %s", whose);
    is_near(noted(n, "cosine/update_grad", whose), h->ug / sqrt(h->u2 * h->g2), 2 * tol,
            "the angle of u and g of %s", whose);
    if (first >= 0) {
        is_near(noted(n, "l2_norm/moment", whose), sqrt(h->m2), tol, "|m| of %s",
                whose);
        is_near(noted(n, "l2_norm_ratio/moment_grad", whose), sqrt(h->m2 / h->g2),
                2 * tol, "|m| / |g| of %s, not its inverse", whose);
        is_near(noted(n, "cosine/moment_grad", whose), h->mg / sqrt(h->m2 * h->g2),
                2 * tol, "the angle of m and g of %s", whose);
    } else {
        ok(isnan(noted(n, "l2_norm/moment", whose)), "no moment, no |m| of %s", whose);
    }
    if (second >= 0)
        is_near(noted(n, "l2_norm/second_moment_sqrt", whose), sqrt(h->v), tol,
                "|sqrt v| of %s", whose);
}

/* What a test of an optimizer needs to know. */
struct optimizer_row {
    const char *name;
    const char *const *options;
    int first, second;
    int64_t accum;
    bool by_tensor; /* the same rule, given each parameter with its shape */
};

static void
test_optimizer(struct et_ctx *cx, const struct optimizer_row *row)
{
    struct notes notes = {.sink = {.write = note}};
    struct et_callback own = {.type = &spy_class, .cx = cx};
    struct et_callback *monitor =
        MAKE(cx, "optimizer_monitor", "batch_log_interval", "2");
    struct et_callback *both[] = {monitor, &own};
    struct by_hand all = {0};
    struct et_optimizer_class shaped = *et_optimizer_find(row->name);
    struct run r;
    shaped.by_tensor = true;
    run_open(&r, cx,
             &(struct run_setup){
                 .optimizer = row->name,
                 .own_optimizer = row->by_tensor ? &shaped : NULL,
                 .optimizer_options = row->options,
                 .grad_accum = row->accum,
                 .callbacks = both,
                 .n_callbacks = 2,
                 .sink = &notes.sink,
             });
    diag("%s, %d microbatches%s", row->name, (int)row->accum,
         row->by_tensor ? ", by tensor" : "");
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(3)));
    is_int(notes.norms, 0, "batch 3 is not logged with an interval of 2");
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    const struct et_param_space *space = r.state->params;
    for (int i = 0; i < space->n; i++) {
        struct by_hand h = {0};
        add_by_hand(&h, space->slot[i].offset, space->slot[i].count, row->first,
                    row->second);
        compare(&notes, &h, space->slot[i].name, row->first, row->second);
    }
    add_by_hand(&all, 0, space->total, row->first, row->second);
    compare(&notes, &all, "global", row->first, row->second);
    run_close(&r);
    et_callback_free(&monitor);
}

static int
names_with(struct et_ctx *cx, const char *option, const char *value)
{
    struct notes notes = {.sink = {.write = note}};
    struct et_callback *monitor =
        MAKE(cx, "optimizer_monitor", "batch_log_interval", "1", option, value);
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .optimizer = "adamw",
                 .callbacks = &monitor,
                 .n_callbacks = 1,
                 .sink = &notes.sink,
             });
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    int n = r.state->params->n;
    ok(noted(&notes, "l2_norm/grad", "global") > 0, "%s %s: |g| is there", option,
       value);
    run_close(&r);
    et_callback_free(&monitor);
    return notes.norms - n;
}

/* What steps with the monitor and without cost: evaluations and kernels of batch 1 and
 * of batch 2, which is logged. */
static void
count_steps(struct et_ctx *cx, struct et_callback *monitor, uint64_t *kernels,
            uint64_t *evals)
{
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .optimizer = "adamw",
                 .callbacks = &monitor,
                 .n_callbacks = monitor ? 1 : 0,
             });
    for (int i = 0; i < 2; i++) {
        struct et_graph_stats before, after;
        et_graph_get_stats(r.state->graph, &before);
        need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
        et_graph_get_stats(r.state->graph, &after);
        kernels[i] = after.kernels_run - before.kernels_run;
        evals[i] = after.replays - before.replays;
    }
    run_close(&r);
}

/* LOGGED: which of the two batches the monitor, which it frees, logs. */
static void
test_cost(struct et_ctx *cx, struct et_callback *monitor, int logged)
{
    uint64_t plain[2], watched[2], plain_evals[2], evals[2];
    const char *name = monitor->type->info.name;
    count_steps(cx, NULL, plain, plain_evals);
    count_steps(cx, monitor, watched, evals);
    et_callback_free(&monitor);
    is_int((int64_t)watched[!logged], (int64_t)plain[!logged],
           "%s: a batch that is not logged launches what it would without", name);
    ok(watched[logged] > plain[logged], "one that is launches more");
    ok(evals[0] == plain_evals[0] && evals[1] == plain_evals[1],
       "but is one evaluation still");
}

/* ---- activation_monitor ---- */

enum { MAX_SEEN = 32 };

/* Copies of what modules got and made, in the order they were called. */
struct seen {
    struct et_module *module;
    struct et_tensor *leaf[2]; /* x, y */
    int64_t calls;             /* of this module, over the run */
};
static struct seen seen[MAX_SEEN];
static int n_seen;

static void
seen_module(struct et_callback *self, const struct et_state *s, struct et_module *m,
            struct et_tensor *x, struct et_tensor *y)
{
    struct et_tensor *both[] = {x, y};
    int i = 0;
    (void)self;
    while (i < n_seen && seen[i].module != m)
        i++;
    if (i == n_seen)
        seen[n_seen++].module = m;
    if (s->batch.first_row > 0)
        return; /* a second microbatch */
    seen[i].calls++;
    for (int k = 0; k < 2; k++) {
        const struct et_desc *d = &both[k]->desc;
        if (!seen[i].leaf[k])
            need(s->cx, et_tensor_new(s->cx, s->dev, d->dtype, d->ndim, d->shape,
                                      ET_ROW_MAJOR, "seen", &seen[i].leaf[k]));
        et_assign(s->graph, seen[i].leaf[k], both[k]);
    }
}

static et_status
seen_run(struct et_callback *self, enum et_event event, const struct et_state *s,
         struct et_log *log)
{
    (void)self;
    (void)event;
    (void)s;
    (void)log;
    return ET_OK;
}

static const struct et_callback_class seen_class = {
    .info = {.name = "seen", .class_name = "Seen"},
    .run = seen_run,
    .module = seen_module,
};

static void
forget_seen(void)
{
    for (int i = 0; i < n_seen; i++)
        for (int k = 0; k < 2; k++)
            et_tensor_free(&seen[i].leaf[k]);
    memset(seen, 0, sizeof seen);
    n_seen = 0;
}

struct shape {
    double l2, average, kurtosis, max;
};

/* By the definitions, in double. */
static struct shape
shape_of(struct et_ctx *cx, const struct et_tensor *t)
{
    int64_t n = et_desc_count(&t->desc), row = t->desc.shape[t->desc.ndim - 1];
    int64_t rows = n / row, uneven = 0;
    float *x = malloc((size_t)n * sizeof *x);
    struct shape out = {0};
    need(cx, et_tensor_read(cx, t, x, (size_t)n * sizeof *x));
    for (int64_t r = 0; r < rows; r++) {
        const float *v = x + r * row;
        double sum = 0, sum2 = 0, m2 = 0, m4 = 0, max = -INFINITY;
        for (int64_t i = 0; i < row; i++) {
            sum += v[i];
            sum2 += (double)v[i] * v[i];
            max = v[i] > max ? v[i] : max;
        }
        for (int64_t i = 0; i < row; i++) {
            double d = v[i] - sum / (double)row;
            m2 += d * d / (double)row;
            m4 += d * d * d * d / (double)row;
        }
        out.l2 += sqrt(sum2) / (double)rows;
        out.average += sum / (double)n;
        out.max += max / (double)rows;
        uneven += m2 > 0;
        out.kurtosis += m2 > 0 ? m4 / (m2 * m2) : 0;
    }
    out.kurtosis /= (double)uneven;
    free(x);
    return out;
}

/* The name under which the test expects module M's values. */
static const char *
path_of(struct et_state *s, const struct et_module *m)
{
    static const char *const paths[] = {"",      "fc1",   "fc2",    "fc",
                                        "relu1", "relu2", "flatten"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (et_module_find(s->model->root, paths[i]) == m)
            return paths[i];
    return NULL;
}

static int
compare_module(struct et_ctx *cx, const struct notes *notes, const char *path,
               struct seen *what)
{
    static const char *const sides[] = {"input", "output"};
    int compared = 0;
    for (int k = 0; k < 2; k++) {
        struct shape want = shape_of(cx, what->leaf[k]);
        char name[64];
        snprintf(name, sizeof name, "%s_%s.0", path, sides[k]);
        is_near(noted(notes, "activations/l2_norm", name), want.l2, BLOCK_ROUNDING,
                "mean |row| of %s", name);
        is_near(noted(notes, "activations/average", name), want.average, BLOCK_ROUNDING,
                "mean of %s", name);
        is_near(noted(notes, "activations/max", name), want.max, BLOCK_ROUNDING,
                "mean largest of %s", name);
        /* four factors instead of one */
        is_near(noted(notes, "activations/kurtosis", name), want.kurtosis,
                4 * BLOCK_ROUNDING, "kurtosis of %s", name);
        compared++;
    }
    return compared;
}

static int
activations_in(const struct notes *notes)
{
    int n = 0;
    for (int i = 0; i < notes->n; i++)
        n += strncmp(notes->entry[i].name, "activations/", 12) == 0;
    return n;
}

static void
test_activations(struct et_ctx *cx, int64_t accum)
{
    struct notes notes = {.sink = {.write = note}};
    struct et_callback own = {.type = &seen_class, .cx = cx};
    struct et_callback *monitor = MAKE(cx, "activation_monitor", "interval", "2ba");
    struct et_callback *both[] = {&own, monitor};
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = both,
                 .n_callbacks = 2,
                 .grad_accum = accum,
                 .evaluate = true,
                 .sink = &notes.sink,
             });
    diag("%d microbatches", (int)accum);
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(2)));
    is_int(activations_in(&notes), 0, "of every two batches one is left alone");
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    int compared = 0;
    for (int i = 0; i < n_seen; i++) {
        const char *path = path_of(r.state, seen[i].module);
        ok(path != NULL && seen[i].calls == 3,
           "an evaluation is not looked at: three batches, three calls");
        if (path)
            compared += compare_module(cx, &notes, path, &seen[i]);
    }
    ok(n_seen >= 4 && compared == 2 * n_seen, "modules were seen: %d", n_seen);
    is_int(activations_in(&notes), 4 * compared, "and nothing else is logged");
    forget_seen(); /* leaves of the device */
    run_close(&r);
    et_callback_free(&monitor);
}

static void
test_flat_activations(struct et_ctx *cx)
{
    struct notes notes = {.sink = {.write = note}};
    struct et_callback *monitor =
        MAKE(cx, "activation_monitor", "ignore_module_types", "[fc1, fc2]");
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = &monitor,
                 .n_callbacks = 1,
                 .sink = &notes.sink,
             });
    size_t bytes = et_desc_bytes(&r.state->params->values->desc);
    float *zeros = calloc(1, bytes);
    need(cx, et_tensor_write(cx, r.state->params->values, zeros, bytes));
    free(zeros);
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    ok(noted(&notes, "activations/l2_norm", "fc_output.0") == 0 &&
           noted(&notes, "activations/max", "fc_output.0") == 0,
       "a network of zeros gives zeros");
    ok(isnan(noted(&notes, "activations/kurtosis", "fc_output.0")),
       "rows without variance have no kurtosis");
    ok(isfinite(noted(&notes, "activations/kurtosis", "_input.0")),
       "the images that go in have one");
    ok(isnan(noted(&notes, "activations/l2_norm", "fc1_output.0")) &&
           isnan(noted(&notes, "activations/l2_norm", "fc2_input.0")),
       "ignored modules are not logged");
    run_close(&r);
    et_callback_free(&monitor);
}

/* What one batch of MODEL has of NAME, and how many values it has in all. */
static double
activation_of(struct et_ctx *cx, const char *model, const char *ignored,
              const char *name, int *n)
{
    struct notes notes = {.sink = {.write = note}};
    struct et_callback *monitor =
        MAKE(cx, "activation_monitor", "ignore_module_types", ignored);
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){.model = model,
                                 .callbacks = &monitor,
                                 .n_callbacks = 1,
                                 .sink = &notes.sink});
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    *n = activations_in(&notes);
    const double value = noted(&notes, "activations/l2_norm", name);
    run_close(&r);
    et_callback_free(&monitor);
    return value;
}

/* A module is left out by a part of its kind's name too; the others have the numbers
 * that they had, of however many. */
static void
test_kinds(struct et_ctx *cx)
{
    int all, few;
    double whole = activation_of(cx, "mlp", "[none]", "relu1_input.0", &all);
    is_near(activation_of(cx, "mlp", "[inea]", "relu1_input.0", &few), whole, 0,
            "what is not left out has its numbers");
    ok(few > 0 && few < all, "where linear modules are left out (%d of %d)", few, all);
    whole = activation_of(cx, "resnet8", "[none]", "fc_input.0", &all);
    ok(all > 4 * 64, "a larger network has more values: %d", all);
    is_near(activation_of(cx, "resnet8", "[conv, norm, relu]", "fc_input.0", &few),
            whole, 0, "each has its own numbers");
    ok(few < 4 * 64, "as where there are few of them: %d", few);
}

/* The batches of two epochs of two that are looked at, a bit each. */
static int
looks_every(struct et_ctx *cx, const char *interval)
{
    struct notes notes = {.sink = {.write = note}};
    struct et_callback *monitor = MAKE(cx, "activation_monitor", "interval", interval);
    struct run r;
    int bits = 0;
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = &monitor, .n_callbacks = 1, .sink = &notes.sink});
    for (int i = 0; i < 4; i++) {
        need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
        bits |= (activations_in(&notes) > 0) << i;
    }
    run_close(&r);
    et_callback_free(&monitor);
    return bits;
}

int
main(void)
{
    static const char *const both[] = {"lr", "0.01", "momentum", "0.9", NULL};
    static const char *const sgd[] = {"lr", "0.1", "momentum", "0.9", NULL};
    static const char *const rate[] = {"lr", "0.01", NULL};
    static const struct optimizer_row rows[] = {
        {"decoupled_adamw", rate, 0, 1, 1, false},
        {"decoupled_adamw", rate, 0, 1, 2, false},
        {"lamb", rate, 0, 1, 1, false},
        {"sgd", sgd, 0, -1, 1, false},
        {"sgd", rate, -1, -1, 1, false},
        {"rmsprop", rate, -1, 0, 1, false},
        {"rmsprop", both, 1, 0, 1, false},
        {"decoupled_adamw", rate, 0, 1, 2, true},
    };
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        test_optimizer(cx, &rows[i]);
    is_int(names_with(cx, "log_optimizer_metrics", "false"), 1,
           "gradients alone: one number for each parameter and one for all");
    ok(names_with(cx, "only_global", "true") < 9,
       "only_global: nine numbers whatever the parameters");
    test_cost(cx, MAKE(cx, "optimizer_monitor", "batch_log_interval", "2"), 1);
    test_activations(cx, 1);
    test_activations(cx, 2);
    test_flat_activations(cx);
    test_kinds(cx);
    is_int(looks_every(cx, "1ba"), 15, "each batch is looked at");
    is_int(looks_every(cx, "1ep"), 5, "or the first one of each epoch");
    test_cost(cx, MAKE(cx, "activation_monitor", "interval", "2ba"), 0);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
