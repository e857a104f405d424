/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c: see fixture.h. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "t/device.h"

/* ---- one on its own ---- */

static et_status
make(struct et_ctx *cx, const char *name, const char *const *options,
     struct et_algorithm **out)
{
    const struct et_algorithm_class *c = et_algorithm_find(name);
    void *o = NULL;
    if (!c)
        bail("there is no algorithm %s", name);
    need(cx, et_alloc(cx, c->info.options_size + 1, &o));
    need(cx, et_options_init(cx, c->info.options, o));
    et_status status = ET_OK;
    for (; *options && status == ET_OK; options += 2)
        status = et_options_set(cx, c->info.options, o, options[0], options[1]);
    *out = NULL;
    if (status == ET_OK)
        status = et_algorithm_new(cx, c, o, out);
    et_options_release(c->info.options, o);
    et_free(cx, o);
    return status;
}

struct et_algorithm *
algorithm(struct et_ctx *cx, const char *name, const char *const *options)
{
    struct et_algorithm *a;
    need(cx, make(cx, name, options, &a));
    return a;
}

const char *
refusal(struct et_ctx *cx, const char *name, const char *const *options)
{
    struct et_algorithm *a;
    if (make(cx, name, options, &a) == ET_OK) {
        et_algorithm_free(&a);
        return "";
    }
    return take_error(cx);
}

struct last {
    struct et_sink sink; /* first */
    const char *name;
    double value;
};

static void
keep_last(struct et_sink *sink, const struct et_record *r)
{
    struct last *last = (struct last *)sink;
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].name, last->name) == 0)
            last->value = r->entry[i].value;
}

double
last_logged(struct et_ctx *cx, struct run_setup setup, const char *name)
{
    struct last last = {.sink = {.write = keep_last}, .name = name, .value = NAN};
    struct run r;
    setup.sink = &last.sink;
    run_open(&r, cx, &setup);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    return last.value;
}

/* ---- formulas ---- */

void
formula_open(struct formula *f, struct et_ctx *cx)
{
    *f = (struct formula){.cx = cx};
    need(cx, et_device_open(cx, test_device(NULL), 0, 1, &f->dev));
    need(cx, et_graph_new(cx, f->dev, &f->g));
}

void
formula_close(struct formula *f)
{
    et_graph_free(&f->g);
    et_device_close(&f->dev);
}

static struct et_tensor *
leaf(struct formula *f, enum et_dtype dtype, const void *values, int ndim,
     const int64_t *shape)
{
    struct et_tensor *t;
    enum et_format format = ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR;
    need(f->cx, et_tensor_new(f->cx, f->dev, dtype, ndim, shape, format, NULL, &t));
    need(f->cx, et_tensor_write(f->cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

struct et_tensor *
reals(struct formula *f, const float *values, int ndim, const int64_t *shape)
{
    return leaf(f, ET_F32, values, ndim, shape);
}

struct et_tensor *
integers(struct formula *f, const int32_t *values, int ndim, const int64_t *shape)
{
    return leaf(f, ET_I32, values, ndim, shape);
}

void
evaluate(struct formula *f, struct et_tensor *value, float *out, int64_t n)
{
    need(f->cx, et_graph_status(f->g));
    need(f->cx, et_eval(f->g, &value, 1));
    if (et_desc_count(&value->desc) != n)
        bail("%d elements, not %d", (int)et_desc_count(&value->desc), (int)n);
    need(f->cx, et_tensor_read(f->cx, value, out, (size_t)n * sizeof *out));
}

/* ---- runs ---- */

struct tape {
    struct et_sink sink; /* first */
    struct losses losses;
};

static void
record(struct et_sink *sink, const struct et_record *r)
{
    struct losses *l = &((struct tape *)sink)->losses;
    for (int i = 0; r->kind == ET_RECORD_BATCH && i < r->n && l->n < MAX_STEPS; i++)
        if (strcmp(r->entry[i].name, "loss/train/total") == 0)
            l->v[l->n++] = r->entry[i].value;
}

struct losses
train(struct et_ctx *cx, struct run_setup setup, struct et_algorithm **list, int n)
{
    struct tape tape = {.sink = {.write = record}};
    struct run r;
    setup.algorithms = list;
    setup.n_algorithms = n;
    setup.sink = &tape.sink;
    run_open(&r, cx, &setup);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    return tape.losses;
}

double
difference(const struct losses *a, const struct losses *b)
{
    double worst = a->n == b->n && a->n > 0 ? 0 : INFINITY;
    for (int i = 0; i < a->n && i < b->n; i++)
        worst = fmax(worst, fabs(a->v[i] - b->v[i]) / fmax(1, fabs(a->v[i])));
    return worst;
}

static struct losses
train_with(struct et_ctx *cx, struct run_setup setup, const struct choice *choices,
           int n)
{
    struct et_algorithm *list[ET_MAX_ALGORITHMS];
    for (int i = 0; i < n; i++)
        list[i] = algorithm(cx, choices[i].name, choices[i].options);
    struct losses l = train(cx, setup, list, n);
    for (int i = 0; i < n; i++)
        et_algorithm_free(&list[i]);
    return l;
}

static void
is_same(const struct losses *want, const struct losses *got, const char *what,
        const char *how)
{
    double worst = difference(want, got);
    ok(worst < STEPS_TOL, "%s: %s the losses are the same (worst %.1e)", what, how,
       worst);
}

void
check_runs(struct et_ctx *cx, struct run_setup setup, const char *what,
           const struct choice *choices, int n)
{
    struct losses plain = train(cx, setup, NULL, 0), other;
    struct losses one = train_with(cx, setup, choices, n);
    ok(difference(&plain, &one) > 0, "%s: the run is another", what);
    other = train_with(cx, setup, choices, n);
    ok(difference(&one, &other) == 0, "%s: twice it has the same bits", what);
    for (setup.grad_accum = 2; setup.grad_accum <= 4; setup.grad_accum *= 2) {
        other = train_with(cx, setup, choices, n);
        is_same(&one, &other, what,
                setup.grad_accum == 2 ? "in two microbatches" : "in four microbatches");
    }
    setup.grad_accum = 1;
    setup.device = test_device("cpu");
    struct et_device *dev;
    if (et_device_open(cx, setup.device, 0, 1, &dev) != ET_OK) {
        skip(1, take_error(cx));
        return;
    }
    et_device_close(&dev);
    other = train_with(cx, setup, choices, n);
    is_same(&one, &other, what, "on the CPU");
}

void
check_run(struct et_ctx *cx, struct run_setup setup, const char *name,
          const char *const *options)
{
    check_runs(cx, setup, name, &(const struct choice){name, options}, 1);
}

static const char *wanted;
static int told;

static void
count_told(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level;
    told += strcmp(text, wanted) == 0;
}

void
check_told(struct et_ctx *cx, const char *name, const char *const *options,
           const char *model, const char *want)
{
    struct et_algorithm *a = algorithm(cx, name, options);
    wanted = want;
    told = 0;
    et_ctx_set_log(cx, ET_LOG_INFO, count_told, NULL);
    train(cx, (struct run_setup){.n = 4, .model = model}, &a, 1);
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    is_int(told, 1, "a run says \"%s\"", want);
    et_algorithm_free(&a);
}

int
finish(struct et_ctx *cx)
{
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
