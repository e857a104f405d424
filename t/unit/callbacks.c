/* SPDX-License-Identifier: Apache-2.0 */
/* Observers: what they log is what can be computed by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "core/callbacks/callbacks.h"
#include "core/checkpoint/archive.h"
#include "etude/comm.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

/* Sums and quotients of a few doubles. */
#define ROUNDING 1e-12

/* OPTIONS: name, value, ..., NULL. */
static struct et_callback *
make_with(struct et_ctx *cx, const char *name, const char *const *options)
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

static struct et_callback *
make(struct et_ctx *cx, const char *name, const char *option, const char *value)
{
    return make_with(cx, name, (const char *const[]){option, value, NULL});
}

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
        need(s->cx, c->type->run(c, event, s, s->log));
}

static double
logged(const struct et_state *s, const char *name)
{
    double value;
    return et_log_find(s->log, name, &value) ? value : NAN;
}

/* A batch of 4 samples and 8 tokens that took SECONDS. */
static void
batch(struct et_callback *c, struct et_state *s, double seconds)
{
    fire(c, ET_EVENT_BATCH_START, s);
    et_timestamp_next_batch(&s->timestamp, 4, 8, seconds);
    fire(c, ET_EVENT_BATCH_END, s);
}

/* Gives TO the contents of a checkpoint of FROM. */
static void
carry(struct et_callback *from, struct et_callback *to)
{
    struct et_archive a = {0};
    eti_archive_begin(&a, from->cx);
    need(from->cx, from->type->archive(from, &a));
    need(from->cx, eti_archive_end(&a));
    need(from->cx, eti_archive_sort(&a));
    a.source = "test";
    a.mode = ET_ARCHIVE_LOAD;
    need(from->cx, to->type->archive(to, &a));
    eti_archive_release(&a);
}

/* An evaluation under LABEL that took SECONDS. */
static void
evaluation(struct et_callback *c, struct et_state *s, const char *label, double seconds)
{
    s->dataloader_label = label;
    s->eval_timestamp.total_wct = seconds;
    fire(c, ET_EVENT_EVAL_END, s);
}

static void
test_speed(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = make(cx, "speed_monitor", "window_size", "2");
    s.timestamp = (struct et_timestamp){0};
    fire(c, ET_EVENT_INIT, &s);
    batch(c, &s, 100);
    ok(isnan(logged(&s, "throughput/samples_per_sec")), "a rate waits for its window");
    batch(c, &s, 1);
    batch(c, &s, 3);
    is_near(logged(&s, "throughput/samples_per_sec"), 8 / 4.0, ROUNDING,
            "samples of the window over its seconds, the slow first batch left out");
    is_near(logged(&s, "throughput/tokens_per_sec"), 16 / 4.0, ROUNDING,
            "tokens likewise");
    is_near(logged(&s, "throughput/batches_per_sec"), 2 / 4.0, ROUNDING,
            "batches likewise");
    is_near(logged(&s, "throughput/device/samples_per_sec"), 2, ROUNDING,
            "one rank's share is everything");
    ok(isnan(logged(&s, "throughput/device/mfu")),
       "without a peak rate there is no mfu");
    batch(c, &s, 1);
    is_near(logged(&s, "throughput/samples_per_sec"), 8 / 4.0, ROUNDING,
            "the window slides");
    batch(c, &s, 7);
    is_near(logged(&s, "throughput/samples_per_sec"), 8 / 8.0, ROUNDING,
            "and slides on");
    s.eval_timestamp.total_wct = 248;
    s.dataloader_label = "eval";
    fire(c, ET_EVENT_EVAL_END, &s);
    batch(c, &s, 248);
    is_near(logged(&s, "time/train"), 360 / 3600.0, ROUNDING, "training time in hours");
    is_near(logged(&s, "time/val"), 248 / 3600.0, ROUNDING, "evaluation apart from it");
    is_near(logged(&s, "time/total"), 608 / 3600.0, ROUNDING, "and both together");
    drop(&c);
}

/* 6e9 FLOPs a batch of 2 s, on a device that can do 8e9 a second. */
static void
test_speed_of_device(struct et_ctx *cx, struct et_state s)
{
    static const char *const options[] = {
        "window_size", "1", "gpu_flops_available", "8e9", "time_unit", "minutes", NULL};
    static const struct {
        const char *name;
        double want;
    } rows[] = {
        {"throughput/batches_per_sec", .5},
        {"throughput/samples_per_sec", 2},
        {"throughput/tokens_per_sec", 4},
        {"throughput/flops_per_sec", 3e9},
        {"throughput/device/batches_per_sec", .5},
        {"throughput/device/samples_per_sec", 2},
        {"throughput/device/tokens_per_sec", 4},
        {"throughput/device/flops_per_sec", 3e9},
        {"throughput/device/mfu", 3 / 8.},
        {"time/train", 4 / 60.},
        {"time/val", 2},
        {"time/total", 2 + 4 / 60.},
    };
    struct et_callback *c = make_with(cx, "speed_monitor", options);
    s.timestamp = (struct et_timestamp){0};
    s.batch_flops = (int64_t)6e9;
    fire(c, ET_EVENT_INIT, &s);
    evaluation(c, &s, "eval", 90);
    batch(c, &s, 2);
    evaluation(c, &s, "other", 30);
    batch(c, &s, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_near(logged(&s, rows[i].name) / rows[i].want, 1, ROUNDING,
                "speed_monitor logs %s as %g", rows[i].name, rows[i].want);
    struct et_callback *next = make_with(cx, "speed_monitor", options);
    fire(next, ET_EVENT_INIT, &s);
    carry(c, next);
    batch(next, &s, 2);
    is_near(logged(&s, "time/val"), 2, ROUNDING,
            "speed_monitor counts evaluations from before a resume");
    drop(&next);
    drop(&c);
}

/* A run of 8 batches of 3 s each, of which the first takes 100 s. */
static void
test_remaining_evaluations(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = make(cx, "runtime_estimator", "time_unit", "seconds");
    s.timestamp = (struct et_timestamp){0};
    s.max_duration = ET_BATCHES(8);
    fire(c, ET_EVENT_INIT, &s);
    batch(c, &s, 100);
    batch(c, &s, 3);
    evaluation(c, &s, "a", 20);
    batch(c, &s, 3);
    batch(c, &s, 3);
    evaluation(c, &s, "a", 40);
    evaluation(c, &s, "b", 6);
    batch(c, &s, 3);
    is_near(logged(&s, "time/remaining_estimate"), 3 * 3 + 2 * 30 + 6, ROUNDING,
            "runtime_estimator expects an evaluator that came twice in half of the run "
            "twice more, and one that came once once more");
    struct et_callback *next = make(cx, "runtime_estimator", "time_unit", "seconds");
    fire(next, ET_EVENT_INIT, &s);
    carry(c, next);
    batch(next, &s, 3);
    is_near(logged(&s, "time/remaining_estimate"), 2 * 3 + 2 * 30 + 6, ROUNDING,
            "runtime_estimator goes on with its numbers after a resume");
    evaluation(next, &s, "b", 10);
    batch(next, &s, 3);
    is_near(logged(&s, "time/remaining_estimate"), 3 + 2 * 30 + 8 * 2 / 3.0, ROUNDING,
            "runtime_estimator counts an evaluation after a resume: two of 8 s in "
            "three quarters");
    drop(&next);
    drop(&c);
}

static void
test_remaining(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = make(cx, "runtime_estimator", "time_unit", "seconds");
    s.timestamp = (struct et_timestamp){0};
    s.max_duration = ET_EPOCHS(2);
    s.train_len = 5;
    fire(c, ET_EVENT_INIT, &s);
    batch(c, &s, 100);
    ok(isnan(logged(&s, "time/remaining_estimate")), "one batch says nothing yet");
    batch(c, &s, 3);
    is_near(logged(&s, "time/remaining_estimate"), 8 * 3, ROUNDING,
            "8 batches of the 10 are left, the first does not count in the rate");
    batch(c, &s, 3);
    batch(c, &s, 3);
    batch(c, &s, 3);
    s.eval_timestamp.total_wct = 20;
    s.dataloader_label = "eval";
    fire(c, ET_EVENT_EVAL_END, &s);
    batch(c, &s, 3);
    is_near(logged(&s, "time/remaining_estimate"), 4 * 3 + 20, ROUNDING,
            "an evaluation at half time comes once more");
    drop(&c);
    s.max_duration = ET_TIME_UNSET;
    c = make(cx, "runtime_estimator", NULL, NULL);
    fire(c, ET_EVENT_INIT, &s);
    batch(c, &s, 1);
    batch(c, &s, 1);
    ok(isnan(logged(&s, "time/remaining_estimate")),
       "without an end there is no estimate");
    drop(&c);
}

static void
test_lr_and_memory(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = make(cx, "lr_monitor", NULL, NULL);
    et_optimizer_set_alpha(s.optimizer, 0.5);
    fire(c, ET_EVENT_BATCH_END, &s);
    is_near(logged(&s, "lr-SGD/group0"), 0.05, ROUNDING,
            "the rate of the update, under its class");
    drop(&c);

    struct et_device_memory m;
    c = make(cx, "memory_monitor", NULL, NULL);
    fire(c, ET_EVENT_BATCH_END, &s);
    et_device_get_memory(s.dev, &m);
    is_near(logged(&s, "memory/current_allocated_mem"), (double)m.current_bytes / 1e9,
            1e-4, "memory in GB, to 5 digits");
    char five[32];
    snprintf(five, sizeof five, "%.4e", (double)m.peak_bytes);
    is_near(logged(&s, "memory/peak_allocated_mem") / (strtod(five, NULL) / 1e9), 1,
            ROUNDING, "the peak of memory is logged in GB, to 5 digits");
    ok(m.peak_bytes >= m.current_bytes &&
           fabs(logged(&s, "memory/peak_allocated_mem") / ((double)m.peak_bytes / 1e9) -
                1) < 1e-4,
       "the peak is the device's");
    drop(&c);
}

/* Of three ranks the second has three times as much as the first, and the third twice
 * as much. */
static et_status
gather_three(void *self, const struct et_comm_call *call, char *why, size_t why_size)
{
    static const double times[] = {1, 3, 2};
    const double *in = call->in;
    double *out = call->out;
    const int64_t n = call->n / (int64_t)sizeof *in;
    (void)self, (void)why, (void)why_size;
    for (int r = 0; call->kind == ET_COMM_ALL_GATHER && r < 3; r++)
        for (int64_t i = 0; i < n; i++)
            out[r * n + i] = times[r] * in[i];
    return ET_OK;
}

static void
leave(void *self, bool failed)
{
    (void)self, (void)failed;
}

static void
test_memory_of_ranks(struct et_ctx *cx, struct et_state s)
{
    static const struct et_comm_class three = {"three", gather_three, leave};
    static const char *const names[] = {"memory/current_allocated_mem",
                                        "memory/peak_allocated_mem"};
    static const struct {
        const char *ending;
        double times;
    } rows[] = {{"_avg", 2}, {"_min", 1}, {"_max", 3}};
    struct et_callback *c =
        make(cx, "memory_monitor", "dist_aggregate_batch_interval", "2");
    char name[64];
    for (s.rank = 0; s.rank < 2; s.rank++) {
        need(cx, et_comm_new(cx, &three, NULL, s.rank, 3, &s.comm));
        s.timestamp.batch = 4;
        fire(c, ET_EVENT_BATCH_END, &s);
        for (size_t i = 0; i < 6; i++) {
            double own = logged(&s, names[i / 3]);
            snprintf(name, sizeof name, "%s%s", names[i / 3], rows[i % 3].ending);
            if (s.rank == 0) /* five digits of each */
                is_near(logged(&s, name) / own, rows[i % 3].times, 3e-4,
                        "rank 0 logs %s of three ranks", name);
            else
                ok(isnan(logged(&s, name)) && isnan(own), "rank 1 does not log %s",
                   name);
        }
        s.timestamp.batch = 5;
        fire(c, ET_EVENT_BATCH_END, &s);
        ok(isnan(logged(&s, name)) && isnan(logged(&s, names[0])) == (s.rank == 1),
           "between two gatherings rank 0 logs its own memory alone");
        et_comm_close(&s.comm);
    }
    drop(&c);
}

/* What a sample says of memory and disk agrees with itself and with the system. */
static void
test_machine(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = make(cx, "system_metrics_monitor", "interval", "0s");
    struct statvfs v;
    fire(c, ET_EVENT_INIT, &s);
    fire(c, ET_EVENT_BATCH_START, &s);
    const double total = logged(&s, "cpu_memory_total"),
                 used = logged(&s, "cpu_memory_used");
    ok(total > 0 && used == total - logged(&s, "cpu_memory_available"),
       "memory is used or available");
    ok(logged(&s, "cpu_memory_free") <= total, "and no more is free than there is");
    is_near(logged(&s, "cpu_memory_percent"), 100 * used / total, ROUNDING,
            "used, of all, in percent");
    if (statvfs("/", &v) != 0)
        bail("no disk");
    const double block = (double)v.f_frsize, disk = logged(&s, "disk_memory_total"),
                 taken = logged(&s, "disk_memory_used"),
                 left = logged(&s, "disk_memory_free");
    ok(disk == block * (double)v.f_blocks, "the disk is as large as the system says");
    is_near(taken / disk, (double)(v.f_blocks - v.f_bfree) / (double)v.f_blocks, 0.02,
            "used is what is not free, for root too");
    is_near(left / disk, (double)v.f_bavail / (double)v.f_blocks, 0.02,
            "free is what is left for us");
    is_near(logged(&s, "disk_memory_percent"), 100 * taken / (taken + left), 1e-9,
            "used in percent of both");
    drop(&c);
}

/* Options of time/remaining_estimate: its unit, and how many batches do not count. */
static void
test_estimate(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        const char *unit;
        double seconds;
    } rows[] = {{"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}};
    s.max_duration = ET_BATCHES(10);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_callback *c =
            make(cx, "runtime_estimator", "time_unit", rows[i].unit);
        s.timestamp = (struct et_timestamp){0};
        fire(c, ET_EVENT_INIT, &s);
        batch(c, &s, 100);
        batch(c, &s, 43200);
        is_near(logged(&s, "time/remaining_estimate"), 8 * 43200 / rows[i].seconds,
                ROUNDING, "what is left in %s", rows[i].unit);
        drop(&c);
    }
    struct et_callback *c = make(cx, "runtime_estimator", "skip_batches", "3");
    s.timestamp = (struct et_timestamp){0};
    fire(c, ET_EVENT_INIT, &s);
    for (int i = 0; i < 3; i++)
        batch(c, &s, 1000);
    ok(isnan(logged(&s, "time/remaining_estimate")), "three batches do not count");
    batch(c, &s, 3600);
    is_near(logged(&s, "time/remaining_estimate"), 6, ROUNDING, "the fourth does");
    drop(&c);
}

/* Series of names that come, stay away and come back in another order. */
static void
test_series(struct et_ctx *cx, struct et_state s)
{
    static const char *const orders[] = {"abc", "abc", "cab", "b", "xca", "abcx", "x"};
    struct et_callback *memory;
    int wrong = 0;
    need(cx, et_callback_new(cx, et_logger_find("in_memory"), NULL, NULL, &memory));
    et_log_emit(s.log, ET_RECORD_METRIC, &s.timestamp, NULL);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        s.timestamp = (struct et_timestamp){.batch = (int64_t)i};
        for (const char *p = orders[i]; *p; p++)
            et_log_metric(s.log, (char[]){*p, '\0'}, (double)(*p * 100 + (int)i));
        need(cx, memory->type->run(memory, ET_EVENT_BATCH_END, &s, s.log));
        et_log_emit(s.log, ET_RECORD_METRIC, &s.timestamp, NULL);
    }
    for (const char *p = "abcx"; *p; p++) {
        const struct et_point *point;
        int64_t n, at = 0;
        if (!et_logger_series(memory, (char[]){*p, '\0'}, &point, &n))
            bail("no series %c", *p);
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
            if (strchr(orders[i], *p)) {
                wrong += at >= n || point[at].ts.batch != (int64_t)i ||
                         point[at].value != *p * 100 + (int)i;
                at++;
            }
        wrong += at != n;
    }
    is_int(wrong, 0, "each number is in the series of its name, in whatever order");
    memory->type->close(memory);
    et_callback_free(&memory);
}

/* ---- the best so far ---- */

static void
test_best(struct et_ctx *cx, struct et_state s)
{
    char directory[ETI_BEST_PATH];
    struct et_metric_value value = {"metrics/eval/Accuracy", .5};
    struct et_callback c = {.cx = cx,
                            .type = et_callback_find("best_model_saver"),
                            .run_directory = directory};
    const struct eti_best_options o = {
        .save_path = (char *)"best.safetensors",
        .pick = {.watch_metric = (char *)"Accuracy", .greater_is_better = -1}};
    const size_t most = sizeof directory - sizeof "/best.safetensors";
    memset(directory, 'x', sizeof directory);
    directory[most] = '\0';
    is_int(eti_best_open(&c, &o), ET_OK, "a path may be as long as there is room");
    directory[most] = 'x';
    directory[most + 1] = '\0';
    is_int(eti_best_open(&c, &o), ET_EINVAL, "and no longer");
    et_error_clear(cx);

    snprintf(directory, sizeof directory, "%s", scratch_folder());
    struct eti_best best = {.any = false}, again = {.any = false};
    s.eval_metrics = &value;
    s.n_eval_metrics = 1;
    s.dataloader_label = "eval";
    s.run_name = "a run";
    s.timestamp = (struct et_timestamp){.epoch = 3, .batch = 17, .sample = 71};
    need(cx, eti_best_offer(&c, &o, &best, &s, s.log));
    ok(best.any && best.best == .5 && best.at.epoch == 3 && best.at.batch == 17,
       "the best value is kept with its time");
    is_str(best.metric, "metrics/eval/Accuracy", "and with its full name");
    s.timestamp.batch = 19;
    need(cx, eti_best_offer(&c, &o, &best, &s, s.log));
    is_int(best.at.batch, 17, "one that is as good is no better");
    value.value = .75;
    need(cx, eti_best_offer(&c, &o, &best, &s, s.log));
    ok(best.best == .75 && best.at.batch == 19, "a better one takes its place");

    struct et_archive a = {.source = "test"};
    eti_archive_begin(&a, cx);
    need(cx, eti_best_archive(&best, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, eti_best_archive(&again, &a));
    eti_archive_release(&a);
    ok(again.any && again.best == .75 && again.at.epoch == 3 && again.at.batch == 19 &&
           again.at.sample == 71 && strcmp(again.metric, best.metric) == 0,
       "a checkpoint has all of it");
}

static void
test_run(struct et_ctx *cx)
{
    struct et_callback *c[] = {
        make(cx, "speed_monitor", "window_size", "2"),
        make(cx, "memory_monitor", NULL, NULL),
        make(cx, "lr_monitor", NULL, NULL),
        make(cx, "runtime_estimator", NULL, NULL),
    };
    const int n = sizeof c / sizeof *c;
    struct et_callback *memory;
    struct run r;
    need(cx, et_callback_new(cx, et_logger_find("in_memory"), NULL, NULL, &memory));
    struct et_callback *all[] = {memory, c[0], c[1], c[2], c[3]};
    const struct run_setup setup = {
        .callbacks = all,
        .n_callbacks = n + 1,
        .max_duration = ET_EPOCHS(3),
        .evaluate = true,
    };
    run_open(&r, cx, &setup);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    const struct et_point *p;
    int64_t count;
    ok(et_logger_series(memory, "loss/train/total", &p, &count),
       "a run's loss is kept");
    is_int(count, 6, "a point per batch");
    is_int(p[5].ts.batch, 6, "with the count of finished batches");
    ok(et_logger_series(memory, "throughput/flops_per_sec", &p, &count) && count == 4 &&
           p[0].value > 0,
       "FLOPs are those of the plans, once the window is full");
    ok(et_logger_series(memory, "lr-SGD/group0", &p, &count) && count == 6,
       "a logger sees what callbacks logged, also when it was given first");
    ok(!et_logger_series(memory, "loss", &p, &count) && count == 0,
       "other names have no series");
    run_close(&r);
    et_callback_free(&memory);
    for (int i = 0; i < n; i++)
        et_callback_free(&c[i]);
}

/* Without options each has its defaults, or says what it cannot do without. */
static void
test_defaults(struct et_ctx *cx)
{
    const struct et_registry *r = et_registry_core();
    for (int k = 0; k < 2; k++) {
        const struct et_component *info;
        enum et_kind kind = k == 0 ? ET_KIND_CALLBACK : ET_KIND_LOGGER;
        for (int i = 0; (info = r->get(r, kind, i)) != NULL; i++) {
            struct et_callback *c = NULL;
            et_status status = et_callback_new(
                cx, (const struct et_callback_class *)info, NULL, scratch_folder(), &c);
            ok(status == ET_OK ? c != NULL : status == ET_EINVAL && !c,
               "%s without options: %s", info->name,
               status == ET_OK ? "its defaults" : et_error_get(cx)->message);
            et_error_clear(cx);
            et_callback_free(&c);
        }
    }
}

int
main(void)
{
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    struct run r;
    need(NULL, et_ctx_new(&cx));
    run_open(&r, cx, &(struct run_setup){0});
    test_speed(cx, *r.state);
    test_speed_of_device(cx, *r.state);
    test_remaining(cx, *r.state);
    test_remaining_evaluations(cx, *r.state);
    test_lr_and_memory(cx, *r.state);
    test_memory_of_ranks(cx, *r.state);
    test_machine(cx, *r.state);
    test_estimate(cx, *r.state);
    test_series(cx, *r.state);
    test_best(cx, *r.state);
    run_close(&r);
    test_run(cx);
    test_defaults(cx);
    ok(!et_callback_find("speed"), "a name that is none finds none");
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
