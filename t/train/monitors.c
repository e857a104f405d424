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
    need(cx, et_alloc(cx, c->info.options_size, &values));
    need(cx, et_options_init(cx, c->info.options, values));
    for (; *options; options += 2)
        need(cx, et_options_set(cx, c->info.options, values, options[0], options[1]));
    need(cx, et_callback_new(cx, c, values, NULL, &out));
    et_free(cx, values);
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
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .optimizer = row->name,
                 .optimizer_options = row->options,
                 .grad_accum = row->accum,
                 .callbacks = both,
                 .n_callbacks = 2,
                 .sink = &notes.sink,
             });
    diag("%s, %d microbatches", row->name, (int)row->accum);
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

static void
test_cost(struct et_ctx *cx)
{
    uint64_t plain[2], watched[2], plain_evals[2], evals[2];
    struct et_callback *monitor =
        MAKE(cx, "optimizer_monitor", "batch_log_interval", "2");
    count_steps(cx, NULL, plain, plain_evals);
    count_steps(cx, monitor, watched, evals);
    et_callback_free(&monitor);
    is_int((int64_t)watched[0], (int64_t)plain[0],
           "a batch that is not logged launches what it would without the monitor");
    ok(watched[1] > plain[1], "one that is launches more");
    ok(evals[0] == plain_evals[0] && evals[1] == plain_evals[1],
       "but is one evaluation still");
}

int
main(void)
{
    static const char *const sgd[] = {"lr", "0.1", "momentum", "0.9", NULL};
    static const char *const rate[] = {"lr", "0.01", NULL};
    static const struct optimizer_row rows[] = {
        {"decoupled_adamw", rate, 0, 1, 1},
        {"decoupled_adamw", rate, 0, 1, 2},
        {"lamb", rate, 0, 1, 1},
        {"sgd", sgd, 0, -1, 1},
        {"sgd", rate, -1, -1, 1},
        {"rmsprop", rate, -1, 0, 1},
    };
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        test_optimizer(cx, &rows[i]);
    is_int(names_with(cx, "log_optimizer_metrics", "false"), 1,
           "gradients alone: one number for each parameter and one for all");
    ok(names_with(cx, "only_global", "true") < 9,
       "only_global: nine numbers whatever the parameters");
    test_cost(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
