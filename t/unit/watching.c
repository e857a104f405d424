/* SPDX-License-Identifier: Apache-2.0 */
/* Observers on numbers nobody chose: what they log is what their definitions say. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/callbacks/callbacks.h"
#include "core/checkpoint/archive.h"
#include "core/graph/graph_impl.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

/* Sums and quotients of up to a hundred doubles. */
#define ROUNDING 1e-11

static struct et_ctx *cx;
static struct et_rng random_numbers;

static int
below(int n)
{
    return (int)et_rng_below(&random_numbers, (uint64_t)n);
}

static struct et_callback *
make(const char *name, const char *const *options)
{
    const struct et_callback_class *c = et_callback_find(name);
    struct et_callback *out;
    void *values = NULL;
    if (!c)
        bail("there is no callback %s", name);
    need(cx, et_options_new(cx, &c->info, options, &values));
    need(cx, et_callback_new(cx, c, values, NULL, &out));
    et_options_free(&c->info, &values);
    return out;
}

#define MAKE(name, ...)                                                                \
    make(name, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void
drop(struct et_callback **c)
{
    if ((*c)->type->close)
        (*c)->type->close(*c);
    et_callback_free(c);
}

/* Calls C at an event as the engine would; the record is empty before. */
static void
fire(struct et_callback *c, enum et_event event, struct et_state *s)
{
    et_log_emit(s->log, ET_RECORD_METRIC, &s->timestamp, NULL);
    if (c->type->events & (UINT64_C(1) << event))
        need(cx, c->type->run(c, event, s, s->log));
}

static double
logged(const struct et_state *s, const char *name)
{
    double value;
    return et_log_find(s->log, name, &value) ? value : NAN;
}

static bool
same(double got, double want)
{
    return isnan(want) ? isnan(got) : fabs(got - want) <= ROUNDING * fabs(want);
}

/* What FROM saves is what INTO has then. */
static void
hand_over(struct et_callback *from, struct et_callback *into)
{
    struct et_archive a = {0};
    eti_archive_begin(&a, cx);
    need(cx, from->type->archive(from, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    a.source = "memory";
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, into->type->archive(into, &a));
    eti_archive_release(&a);
}

/* ---- speed_monitor ---- */

enum { BATCHES = 40 };
struct course {
    double seconds, sample, token, flops;
};

static double
rate(double before, double after, double seconds)
{
    return seconds > 0 && after != before ? (after - before) / seconds : NAN;
}

static void
test_speed(struct et_state s, int window)
{
    static const char *const names[] = {"batches_per_sec", "samples_per_sec",
                                        "tokens_per_sec", "flops_per_sec"};
    char text[16], name[64];
    struct course at[BATCHES + 1] = {{0}};
    int wrong = 0;
    double eval = 0;
    snprintf(text, sizeof text, "%d", window);
    struct et_callback *c = MAKE("speed_monitor", "window_size", text,
                                 "gpu_flops_available", "32", "time_unit", "seconds");
    s.timestamp = (struct et_timestamp){0};
    fire(c, ET_EVENT_INIT, &s);
    for (int n = 1; n <= BATCHES; n++) {
        struct course *now = &at[n];
        int samples = below(3), tokens = below(2);
        double seconds = below(4);
        *now = at[n - 1];
        now->seconds += seconds;
        now->sample += samples;
        now->token += tokens;
        s.batch_flops = below(100);
        now->flops += (double)s.batch_flops;
        if (below(5) == 0) {
            s.eval_timestamp.total_wct = below(9);
            eval += s.eval_timestamp.total_wct;
            fire(c, ET_EVENT_EVAL_END, &s);
        }
        et_timestamp_next_batch(&s.timestamp, samples, tokens, seconds);
        fire(c, ET_EVENT_BATCH_END, &s);
        const struct course *then = &at[n > window ? n - window : n];
        double span = now->seconds - then->seconds;
        const double want[] = {
            rate(0, window, span), rate(then->sample, now->sample, span),
            rate(then->token, now->token, span), rate(then->flops, now->flops, span)};
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "throughput/%s", names[k]);
            wrong += !same(logged(&s, name), want[k]);
            snprintf(name, sizeof name, "throughput/device/%s", names[k]);
            wrong += !same(logged(&s, name), want[k]);
        }
        wrong += !same(logged(&s, "throughput/device/mfu"), want[3] / 32);
        wrong += !same(logged(&s, "time/train"), now->seconds);
        wrong += !same(logged(&s, "time/val"), eval);
        wrong += !same(logged(&s, "time/total"), now->seconds + eval);
    }
    is_int(wrong, 0, "rates over the last %d batches, and clocks", window);

    struct et_callback *next = MAKE("speed_monitor", "time_unit", "minutes");
    fire(next, ET_EVENT_INIT, &s);
    hand_over(c, next);
    et_timestamp_next_batch(&s.timestamp, 1, 1, 0);
    fire(next, ET_EVENT_BATCH_END, &s);
    ok(eval > 0 && same(logged(&s, "time/val"), eval / 60) &&
           same(logged(&s, "time/train"), at[BATCHES].seconds / 60),
       "a run that goes on knows the time of its evaluations");
    drop(&next);
    drop(&c);
}

/* ---- runtime_estimator ---- */

struct mean {
    double n, seconds, fraction;
};

static double
fraction_of(const struct et_state *s)
{
    const struct et_timestamp *ts = &s->timestamp;
    double value = s->max_duration.value, now = 0;
    switch (s->max_duration.unit) {
    case ET_TIME_EPOCH:
        now =
            (double)ts->epoch +
            (s->train_len > 0 ? (double)ts->batch_in_epoch / (double)s->train_len : 0);
        break;
    case ET_TIME_BATCH:
        now = (double)ts->batch;
        break;
    case ET_TIME_SAMPLE:
        now = (double)ts->sample;
        break;
    case ET_TIME_TOKEN:
        now = (double)ts->token;
        break;
    default:
        now = ts->total_wct;
    }
    return now < value ? now / value : 1;
}

static void
test_remaining(struct et_state s, struct et_time length, int64_t train_len, int skip)
{
    enum { LABELS = 18, KEPT = 16 }; /* more than it has room for */
    struct mean eval[LABELS] = {{0}};
    char text[16], label[LABELS][16];
    int wrong = 0, batches = 0, order[LABELS], known = 0;
    double first_wct = 0, first = -1;
    snprintf(text, sizeof text, "%d", skip);
    struct et_callback *c =
        MAKE("runtime_estimator", "skip_batches", text, "time_unit", "seconds");
    s.timestamp = (struct et_timestamp){0};
    s.max_duration = length;
    s.train_len = train_len;
    fire(c, ET_EVENT_INIT, &s);
    for (int step = 0; step < 120; step++) {
        int which = below(4 * LABELS);
        if (which < LABELS) { /* an evaluation ends */
            double f = fraction_of(&s);
            s.dataloader_label = label[which];
            snprintf(label[which], sizeof label[which], "e%d", which);
            s.eval_timestamp.total_wct = 1 + below(9);
            fire(c, ET_EVENT_EVAL_END, &s);
            int i = 0;
            while (i < known && order[i] != which)
                i++;
            if (!(f > 0) || i == KEPT)
                continue;
            if (i == known)
                order[known++] = which;
            eval[which].n++;
            eval[which].seconds += s.eval_timestamp.total_wct;
            eval[which].fraction = f;
            continue;
        }
        et_timestamp_next_batch(&s.timestamp, 2, 3, 1 + below(5));
        if (train_len > 0 && s.timestamp.batch_in_epoch == train_len)
            et_timestamp_next_epoch(&s.timestamp);
        fire(c, ET_EVENT_BATCH_END, &s);
        double f = fraction_of(&s), want = NAN;
        if (++batches == skip) {
            first_wct = s.timestamp.total_wct;
            first = f;
        } else if (batches > skip && f > first) {
            want = (s.timestamp.total_wct - first_wct) / (f - first) * (1 - f);
            for (int i = 0; i < known; i++) {
                const struct mean *e = &eval[order[i]];
                double to_come = e->n / e->fraction - e->n;
                want += e->seconds / e->n * (to_come > 0 ? to_come : 0);
            }
        }
        wrong += !same(logged(&s, "time/remaining_estimate"), want);
        if (step % 40 != 39)
            continue;
        struct et_callback *next = /* goes on from a checkpoint */
            MAKE("runtime_estimator", "skip_batches", "9", "time_unit", "seconds");
        fire(next, ET_EVENT_INIT, &s);
        hand_over(c, next);
        drop(&c);
        c = next;
    }
    ok(wrong == 0 && known > 3,
       "%d batches of a run of %g %s, %d not counted: %d wrong", batches, length.value,
       et_time_unit_name(length.unit), skip, wrong);
    drop(&c);
}

/* ---- memory_monitor ---- */

/* In GB, to five digits. */
static double
gigabytes(uint64_t bytes)
{
    uint64_t step = 1;
    while (bytes / step >= 100000)
        step *= 10;
    return (double)((bytes + step / 2) / step * step) / 1e9;
}

static struct et_device_pool pool;
static et_status pool_status;

static et_status
tell_pool(struct et_device_handle *handle, struct et_device_pool *out)
{
    (void)handle;
    *out = pool;
    return pool_status;
}

static size_t
any_bytes(void)
{
    return (size_t)(et_rng_u32(&random_numbers) + ((uint64_t)below(1000) << 32)) >>
           below(40);
}

static void
test_memory(struct et_state s)
{
    struct et_device dev = *s.dev;
    struct et_device_table table = *dev.table;
    struct et_callback *c = MAKE("memory_monitor");
    size_t inactive = 0;
    int wrong = 0;
    table.pool = tell_pool;
    dev.table = &table;
    s.dev = &dev;
    for (int i = 0; i < 200; i++) {
        dev.memory.current_bytes = any_bytes();
        dev.memory.peak_bytes = any_bytes();
        pool.used = any_bytes();
        pool.reserved = pool.used + any_bytes();
        pool.peak_used = any_bytes();
        pool.peak_reserved = any_bytes();
        pool.retries = (uint64_t)below(9);
        inactive =
            pool.reserved - pool.used > inactive ? pool.reserved - pool.used : inactive;
        fire(c, ET_EVENT_BATCH_END, &s);
        const struct {
            const char *name;
            double want;
        } rows[] = {
            {"current_allocated_mem", gigabytes(dev.memory.current_bytes)},
            {"peak_allocated_mem", gigabytes(dev.memory.peak_bytes)},
            {"current_active_mem", gigabytes(pool.used)},
            {"peak_active_mem", gigabytes(pool.peak_used)},
            {"current_inactive_mem", gigabytes(pool.reserved - pool.used)},
            {"peak_inactive_mem", gigabytes(inactive)},
            {"current_reserved_mem", gigabytes(pool.reserved)},
            {"peak_reserved_mem", gigabytes(pool.peak_reserved)},
            {"alloc_retries", (double)pool.retries},
        };
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            char name[64];
            snprintf(name, sizeof name, "memory/%s", rows[k].name);
            wrong += !same(logged(&s, name), rows[k].want);
        }
    }
    is_int(wrong, 0, "memory in use and of the pool, to five digits, and its peaks");
    pool_status = ET_ENOTSUP;
    fire(c, ET_EVENT_BATCH_END, &s);
    ok(isnan(logged(&s, "memory/current_active_mem")) &&
           !isnan(logged(&s, "memory/current_allocated_mem")),
       "a pool that says nothing is none");
    drop(&c);
}

/* ---- activation_monitor ---- */

enum { L2_NORM, AVERAGE, KURTOSIS, MAX, KINDS };
static const char *const kinds[KINDS] = {"l2_norm", "average", "kurtosis", "max"};
enum { MOST_ROWS = 6, MOST_WIDTH = 7 };

/* Up to 42 numbers of size 1 in f32: each of five steps is out by 42 eps at most. */
#define ROWS_ROUNDING (5 * 42 * 6e-8)

/* Rows of random numbers, some of one number each, and what is to be said of them. */
static struct et_tensor *
random_rows(struct et_state *s, double *want)
{
    const int rows = 1 + below(MOST_ROWS), width = 1 + below(MOST_WIDTH);
    const bool deep = rows % 2 == 0;
    const int64_t shape[] = {deep ? 2 : rows, deep ? rows / 2 : width, width};
    float v[MOST_ROWS * MOST_WIDTH];
    double kurtosis = 0, uneven = 0;
    struct et_tensor *out;
    memset(want, 0, KINDS * sizeof *want);
    for (int r = 0; r < rows; r++) {
        float *row = v + r * width;
        const bool flat = width == 1 || below(3) == 0;
        double sum = 0, squares = 0, m2 = 0, m4 = 0, max = -INFINITY;
        for (int i = 0; i < width; i++) {
            row[i] = flat && i ? row[0] : (float)(below(64) - 32) / 32;
            if (!flat && i == width - 1 && row[i] == row[0])
                row[i] += 1;
            sum += row[i];
            squares += (double)row[i] * row[i];
            max = row[i] > max ? row[i] : max;
        }
        for (int i = 0; i < width; i++) {
            double d = row[i] - sum / width;
            m2 += d * d / width;
            m4 += d * d * d * d / width;
        }
        want[L2_NORM] += sqrt(squares) / rows;
        want[AVERAGE] += sum / (rows * width);
        want[MAX] += max / rows;
        uneven += !flat;
        kurtosis += flat ? 0 : m4 / (m2 * m2);
    }
    want[KURTOSIS] = uneven > 0 ? kurtosis / uneven : NAN;
    need(cx, et_tensor_new(cx, s->dev, ET_F32, deep ? 3 : 2, shape, ET_ROW_MAJOR, "x",
                           &out));
    need(cx, et_tensor_write(cx, out, v, (size_t)(rows * width) * sizeof *v));
    return out;
}

static int
differ(const struct et_state *s, const char *side, const double *want)
{
    char name[64];
    int n = 0;
    for (int k = 0; k < KINDS; k++) {
        snprintf(name, sizeof name, "activations/%s/_%s.0", kinds[k], side);
        double got = logged(s, name);
        n += isnan(want[k])
                 ? !isnan(got)
                 : !(fabs(got - want[k]) <= ROWS_ROUNDING * (1 + fabs(want[k])));
    }
    return n;
}

static void
test_activations(struct et_state s)
{
    struct et_callback *c = MAKE("activation_monitor", "interval", "1ba");
    int wrong = 0, without = 0;
    s.timestamp = (struct et_timestamp){0};
    s.pass = 0;
    s.batch.first_row = 0;
    fire(c, ET_EVENT_INIT, &s);
    for (int i = 0; i < 60; i++) {
        double x_is[KINDS], y_is[KINDS];
        struct et_tensor *x = random_rows(&s, x_is), *y = random_rows(&s, y_is);
        const bool twice = below(4) == 0; /* what goes in comes out */
        fire(c, ET_EVENT_BEFORE_FORWARD, &s);
        c->type->module(c, &s, s.model->root, x, twice ? x : y);
        fire(c, ET_EVENT_AFTER_FORWARD, &s);
        need(cx, et_eval(s.graph, NULL, 0));
        et_graph_reset(s.graph);
        et_timestamp_next_batch(&s.timestamp, 1, 0, 1);
        fire(c, ET_EVENT_BATCH_END, &s);
        wrong += differ(&s, "input", x_is) + differ(&s, "output", twice ? x_is : y_is);
        without += isnan(x_is[KURTOSIS]);
        et_tensor_free(&x);
        et_tensor_free(&y);
    }
    ok(wrong == 0 && without > 0 && without < 30,
       "rows of which some are flat: %d numbers are wrong", wrong);
    drop(&c);
}

/* Is the model looked at in microbatch ROW of PASS, modules called WORD being
 * ignored? */
static bool
looks(struct et_state s, int64_t row, int pass, const char *word)
{
    char text[64];
    double is[KINDS];
    snprintf(text, sizeof text, "[nothing, %s]", word);
    struct et_callback *c =
        MAKE("activation_monitor", "interval", "1ba", "ignore_module_types", text);
    struct et_tensor *x = random_rows(&s, is);
    s.timestamp = (struct et_timestamp){0};
    s.pass = pass;
    s.batch.first_row = row;
    fire(c, ET_EVENT_INIT, &s);
    fire(c, ET_EVENT_BEFORE_FORWARD, &s);
    c->type->module(c, &s, s.model->root, x, x);
    fire(c, ET_EVENT_AFTER_FORWARD, &s);
    need(cx, et_eval(s.graph, NULL, 0));
    et_graph_reset(s.graph);
    et_timestamp_next_batch(&s.timestamp, 1, 0, 1);
    fire(c, ET_EVENT_BATCH_END, &s);
    et_tensor_free(&x);
    drop(&c);
    return !isnan(logged(&s, "activations/average/_input.0"));
}

/* Of the first two blocks that it needs to look at a module, the K-th is one too
 * many. */
static void
test_no_memory(struct et_state s, int k)
{
    struct et_callback *c = MAKE("activation_monitor", "interval", "1ba");
    struct et_alloc_stats before, after;
    double is[KINDS];
    struct et_tensor *x = random_rows(&s, is);
    s.timestamp = (struct et_timestamp){0};
    s.pass = 0;
    s.batch.first_row = 0;
    fire(c, ET_EVENT_INIT, &s);
    fire(c, ET_EVENT_BEFORE_FORWARD, &s);
    et_alloc_get_stats(cx, &before);
    et_alloc_fail_at(cx, k);
    c->type->module(c, &s, s.model->root, x, x);
    et_alloc_fail_at(cx, 0);
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)(after.live - before.live), 0,
           "without memory for block %d nothing stays of what it has", k);
    fire(c, ET_EVENT_AFTER_FORWARD, &s);
    et_graph_reset(s.graph);
    et_timestamp_next_batch(&s.timestamp, 1, 0, 1);
    fire(c, ET_EVENT_BATCH_END, &s);
    ok(isnan(logged(&s, "activations/average/_input.0")), "and nothing is logged");
    et_tensor_free(&x);
    drop(&c);
}

static void
test_looks(struct et_state s)
{
    ok(looks(s, 0, 0, "none"), "the first microbatch of the first pass is looked at");
    ok(!looks(s, 4, 0, "none"), "later ones are not");
    ok(!looks(s, 0, 1, "none"), "nor are later passes");
    ok(!looks(s, 0, 0, s.model->root->type->info.name),
       "nor is a module whose kind is ignored");
}

/* ---- what a run is at ---- */

/* The records of a run's state, in words: "running run/batches=8; evaluating; ". */
struct told {
    struct et_sink sink; /* first */
    char text[512];
};

static void
tell(struct et_sink *sink, const struct et_record *r)
{
    struct told *told = (struct told *)sink;
    size_t n = strlen(told->text);
    if (r->kind != ET_RECORD_RUN)
        return; /* fire begins a record */
    n += (size_t)snprintf(told->text + n, sizeof told->text - n, "%s", r->text);
    for (int i = 0; i < r->n && n < sizeof told->text; i++)
        n += (size_t)snprintf(told->text + n, sizeof told->text - n, " %s=%g",
                              r->entry[i].name, r->entry[i].value);
    if (n < sizeof told->text)
        snprintf(told->text + n, sizeof told->text - n, "; ");
}

/* What is told at EVENT. */
static const char *
told_at(struct et_callback *c, struct told *told, enum et_event event,
        struct et_state *s)
{
    told->text[0] = '\0';
    fire(c, event, s);
    return told->text;
}

static void
test_run_state(struct et_state s)
{
    static const struct {
        struct et_time length;
        const char *told;
    } rows[] = {
        {{3, ET_TIME_EPOCH}, "run/epochs=3 run/batches=30"},
        {{70, ET_TIME_BATCH}, "run/batches=70"},
        {{64, ET_TIME_SAMPLE}, "run/samples=64 run/batches=8"},
        {{99, ET_TIME_TOKEN}, "run/tokens=99"},
        {{50, ET_TIME_SECOND}, "run/seconds=50"},
    };
    struct told told = {.sink.write = tell};
    struct own_clock *clock = own_clock(cx);
    struct et_callback *c;
    char want[160];
    need(cx, et_run_watch(cx, &c));
    need(cx, et_log_new(cx, &told.sink, &s.log));
    s.train_len = 10;
    s.batch_size = 8;
    s.grad_accum = 2;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        s.max_duration = rows[i].length;
        snprintf(want, sizeof want,
                 "running %s run/epoch_batches=10 run/batch_size=8 run/grad_accum=2; ",
                 rows[i].told);
        is_str(told_at(c, &told, ET_EVENT_FIT_START, &s), want,
               "a run says how long it is, in batches where that follows");
    }
    s.dataloader_len = 5;
    for (int set = 0; set < 2; set++) {
        s.dataloader_label = set ? "far" : "near";
        s.eval_timestamp = (struct et_timestamp){0};
        snprintf(want, sizeof want, "evaluating eval/%s/batches=5; ",
                 s.dataloader_label);
        is_str(told_at(c, &told, ET_EVENT_EVAL_START, &s), want,
               "an evaluation is told when it begins, however soon behind another");
        s.eval_timestamp.batch = 1;
        is_str(told_at(c, &told, ET_EVENT_EVAL_BATCH_END, &s), "",
               "not after each of its batches");
        clock->now += 0.25;
        s.eval_timestamp.batch = 2;
        snprintf(want, sizeof want, "evaluating eval/%s/batch=2 eval/%s/batches=5; ",
                 s.dataloader_label, s.dataloader_label);
        is_str(told_at(c, &told, ET_EVENT_EVAL_BATCH_END, &s), want,
               "but four times a second");
    }
    is_str(told_at(c, &told, ET_EVENT_FIT_END, &s), "running run/ended=1; ",
           "and its end is told");
    et_log_free(&s.log);
    drop(&c);
}

int
main(void)
{
    static const struct {
        struct et_time length;
        int64_t train_len;
        int skip;
    } runs[] = {
        {{7, ET_TIME_EPOCH}, 10, 1},   {{60, ET_TIME_BATCH}, 10, 2},
        {{150, ET_TIME_SAMPLE}, 0, 1}, {{260, ET_TIME_TOKEN}, 7, 5},
        {{300, ET_TIME_SECOND}, 0, 3}, {{30, ET_TIME_EPOCH}, 3, 1},
    };
    struct et_alloc_stats stats;
    struct run r;
    cx = need_ctx();
    random_numbers = et_rng_at(21, ET_RNG_DATA, 0);
    run_open(&r, cx, &(struct run_setup){0});
    for (int window = 1; window <= 9; window += 2)
        test_speed(*r.state, window);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        test_remaining(*r.state, runs[i].length, runs[i].train_len, runs[i].skip);
    test_memory(*r.state);
    test_activations(*r.state);
    for (int k = 1; k <= 2; k++)
        test_no_memory(*r.state, k);
    test_looks(*r.state);
    test_run_state(*r.state);
    run_close(&r);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
