/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks in a checkpoint: one that is loaded goes on as the one that was saved. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/checkpoint/archive.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

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

/* FROM's state becomes TO's, by way of a checkpoint. */
static void
transfer(struct et_ctx *cx, struct et_callback *from, struct et_callback *to)
{
    struct et_archive a = {0};
    eti_archive_begin(&a, cx);
    need(cx, from->type->archive(from, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    a.source = "test";
    a.mode = ET_ARCHIVE_CHECK;
    need(cx, to->type->archive(to, &a));
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, to->type->archive(to, &a));
    eti_archive_release(&a);
}

static void
drop(struct et_callback **c)
{
    if ((*c)->type->close)
        (*c)->type->close(*c);
    et_callback_free(c);
}

/* A state with a metric, whose batches take 3 s and whose evaluations 20 s. */
struct scene {
    struct et_state s;
    struct et_metric_value metric;
};

static void
fire(struct et_callback *c, enum et_event event, struct scene *sc)
{
    et_log_emit(sc->s.log, ET_RECORD_METRIC, &sc->s.timestamp, NULL);
    if (c->type->events & (UINT64_C(1) << event))
        need(sc->s.cx, c->type->run(c, event, &sc->s, sc->s.log));
}

/* An epoch of one batch and an evaluation. */
static void
epoch(struct et_callback *c, struct scene *sc, double value)
{
    sc->s.dataloader_label = "train";
    et_timestamp_next_batch(&sc->s.timestamp, 4, 0, 3);
    fire(c, ET_EVENT_BATCH_END, sc);
    et_timestamp_next_epoch(&sc->s.timestamp);
    sc->s.dataloader_label = "eval";
    sc->metric.value = value;
    sc->s.eval_timestamp.total_wct = 20;
    fire(c, ET_EVENT_EVAL_END, sc);
}

static void
scene_open(struct scene *sc, struct et_state *like)
{
    memset(sc, 0, sizeof *sc);
    sc->s = *like;
    snprintf(sc->metric.name, sizeof sc->metric.name, "metrics/eval/Accuracy");
    sc->s.eval_metrics = &sc->metric;
    sc->s.n_eval_metrics = 1;
    sc->s.timestamp = (struct et_timestamp){0};
    sc->s.max_duration = ET_EPOCHS(10);
    sc->s.train_len = 1;
}

static double
logged(const struct scene *sc, const char *name)
{
    double value;
    return et_log_find(sc->s.log, name, &value) ? value : NAN;
}

/* After three epochs another one takes C's place; C is freed. */
static struct et_callback *
resume(struct scene *sc, struct et_callback *c, const char *const *options)
{
    struct et_ctx *cx = sc->s.cx;
    struct et_callback *next = make(cx, c->type->info.name, options);
    fire(next, ET_EVENT_INIT, sc);
    transfer(cx, c, next);
    drop(&c);
    return next;
}

static void
test_early_stopper(struct et_state *like)
{
    static const char *const options[] = {
        "monitor", "Accuracy", "dataloader_label", "eval", "patience", "2ep", NULL};
    struct scene sc;
    scene_open(&sc, like);
    struct et_callback *c = make(like->cx, "early_stopper", options);
    epoch(c, &sc, .7);
    epoch(c, &sc, .6);
    epoch(c, &sc, .65);
    ok(!c->stop, "two epochs without improvement are borne");
    c = resume(&sc, c, options);
    epoch(c, &sc, .69);
    ok(c->stop != NULL,
       "early_stopper: the third ends the run, also when resumed between");
    drop(&c);
}

static void
test_early_stopping(struct et_state *like)
{
    static const char *const options[] = {"watch_metric", "Accuracy", "patience", "2",
                                          NULL};
    static const double values[] = {.7, .6, .65};
    struct scene sc;
    scene_open(&sc, like);
    struct et_callback *c = make(like->cx, "early_stopping", options);
    for (int i = 0; i < 3; i++) {
        sc.metric.value = values[i];
        sc.s.dataloader_label = "eval";
        need(like->cx, c->type->evaluated(c, &sc.s, sc.s.log));
        if (i > 0) /* resumed after the evaluation and before it is judged */
            c = resume(&sc, c, options);
        fire(c, ET_EVENT_EPOCH_CHECKPOINT, &sc);
        ok(!c->stop == (i < 2), "early_stopping: after epoch %d of %g, resumed between",
           i + 1, values[i]);
    }
    drop(&c);
}

static void
test_threshold_stopper(struct et_state *like)
{
    static const char *const options[] = {
        "monitor", "Accuracy", "dataloader_label", "eval", "threshold", "0.9", NULL};
    struct scene sc;
    scene_open(&sc, like);
    struct et_callback *c = make(like->cx, "threshold_stopper", options);
    epoch(c, &sc, .5);
    c = resume(&sc, c, options);
    ok(*(bool *)c->state,
       "threshold_stopper: it has judged, and does not warn at the end");
    drop(&c);
}

static void
test_clocks(struct et_state *like)
{
    static const char *const speed[] = {"time_unit", "seconds", NULL};
    struct scene sc;
    scene_open(&sc, like);
    struct et_callback *c = make(like->cx, "speed_monitor", speed);
    fire(c, ET_EVENT_INIT, &sc);
    epoch(c, &sc, .5);
    epoch(c, &sc, .5);
    c = resume(&sc, c, speed);
    et_timestamp_next_batch(&sc.s.timestamp, 4, 0, 3);
    fire(c, ET_EVENT_BATCH_END, &sc);
    ok(logged(&sc, "time/val") == 40 && logged(&sc, "time/total") == 49,
       "speed_monitor: evaluations of before are counted");
    drop(&c);

    scene_open(&sc, like);
    c = make(like->cx, "runtime_estimator", speed);
    fire(c, ET_EVENT_INIT, &sc);
    for (int i = 0; i < 5; i++)
        epoch(c, &sc, .5);
    c = resume(&sc, c, speed);
    et_timestamp_next_batch(&sc.s.timestamp, 4, 0, 3);
    fire(c, ET_EVENT_BATCH_END, &sc);
    is_near(logged(&sc, "time/remaining_estimate"), 4 * 3 + 5 * 20, 1e-12,
            "runtime_estimator: 4 batches and 5 evaluations, as if never interrupted");
    drop(&c);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    struct run r;
    run_open(&r, cx, &(struct run_setup){0});
    test_early_stopper(r.state);
    test_early_stopping(r.state);
    test_threshold_stopper(r.state);
    test_clocks(r.state);
    run_close(&r);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
