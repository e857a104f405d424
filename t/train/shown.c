/* SPDX-License-Identifier: Apache-2.0 */
/* shown.c: what a trainer shows and tells: times, metrics, evaluations. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/trainer/loop.h"
#include "core/trainer/trainer_impl.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

/* ---- times ---- */

/* Schedules do not see the batches that were held back. */
static void
test_schedule_time(void)
{
    static struct et_trainer t;
    t.state.timestamp = (struct et_timestamp){.iteration = 3,
                                              .epoch = 5,
                                              .batch = 1100,
                                              .sample = 2300,
                                              .token = 4700,
                                              .batch_in_epoch = 190,
                                              .sample_in_epoch = 410,
                                              .token_in_epoch = 830};
    t.common.held = (struct et_timestamp){.epoch = 2,
                                          .batch = 7,
                                          .sample = 11,
                                          .token = 13,
                                          .batch_in_epoch = 17,
                                          .sample_in_epoch = 19,
                                          .token_in_epoch = 23};
    const struct et_timestamp ts = eti_schedule_time(&t);
    const int64_t got[] = {ts.iteration,       ts.epoch,         ts.batch,
                           ts.sample,          ts.token,         ts.batch_in_epoch,
                           ts.sample_in_epoch, ts.token_in_epoch};
    static const int64_t want[] = {3, 5, 1093, 2289, 4687, 173, 391, 807};
    for (int i = 0; i < 8; i++)
        is_int(got[i], want[i], "what is held is taken off of count %d", i);
}

static void
test_intervals(struct et_ctx *cx)
{
    static const struct {
        struct et_time interval, run;
        int64_t train_len;
        struct et_time want; /* value 0: refused */
    } rows[] = {
        {{.25, ET_TIME_DURATION}, {10, ET_TIME_BATCH}, 4, {3, ET_TIME_BATCH}},
        {{.5, ET_TIME_DURATION}, {3, ET_TIME_EPOCH}, 5, {8, ET_TIME_BATCH}},
        {{.5, ET_TIME_DURATION}, {7, ET_TIME_SAMPLE}, 5, {4, ET_TIME_SAMPLE}},
        {{.5, ET_TIME_DURATION}, {3, ET_TIME_EPOCH}, 0, {0, ET_TIME_EPOCH}},
        {{2, ET_TIME_EPOCH}, {3, ET_TIME_EPOCH}, 0, {2, ET_TIME_EPOCH}},
        {{1.5, ET_TIME_SECOND}, {9, ET_TIME_BATCH}, 5, {1.5, ET_TIME_SECOND}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_state s = {
            .cx = cx, .max_duration = rows[i].run, .train_len = rows[i].train_len};
        struct et_time interval = rows[i].interval;
        et_status status = eti_settle_interval(&s, &interval);
        if (rows[i].want.value == 0) {
            is_int(status, ET_EINVAL, "a part of epochs needs their length");
            et_error_clear(cx);
            continue;
        }
        ok(status == ET_OK && interval.value == rows[i].want.value &&
               interval.unit == rows[i].want.unit,
           "interval %d is %g of unit %d", (int)i, interval.value, (int)interval.unit);
    }
}

/* ---- what hooks ask for ---- */

static void
test_metrics(void)
{
    struct et_metric_value train[] = {{.name = "metrics/train/a", .value = 2}};
    struct et_metric_value eval[] = {{.name = "metrics/eval/a", .value = 3},
                                     {.name = "metrics/eval/b", .value = 5},
                                     {.name = "metrics/eval/c", .value = 7}};
    const struct et_state s = {.train_metrics = train,
                               .n_train_metrics = 1,
                               .eval_metrics = eval,
                               .n_eval_metrics = 2};
    static const char *const names[] = {"metrics/train/a", "metrics/eval/a",
                                        "metrics/eval/b"};
    static const double want[] = {2, 3, 5};
    for (int i = 0; i < 3; i++) {
        double v = 0;
        ok(et_state_metric(&s, names[i], &v) && v == want[i], "%s is %g", names[i],
           want[i]);
    }
    double v = 11;
    ok(!et_state_metric(&s, "metrics/eval/c", &v) && v == 11,
       "one that there is not yet is not found");
}

static void
test_stop(void)
{
    struct et_state s = {.seed = 1};
    et_state_stop(&s, "first");
    et_state_stop(&s, "second");
    ok(s.stop, "a run is asked to stop twice");
    is_str(s.stop_reason, "first", "and says why it was at first");
}

static void
test_squares(struct et_ctx *cx)
{
    static const float values[] = {3, 4}, half[] = {.5f};
    struct et_tensor *grad, *factor;
    struct run r;
    float squares = 0, scaled[2];
    run_open(&r, cx, &(struct run_setup){.n = 4});
    const int64_t n[] = {2, 1};
    need(cx, et_tensor_new(cx, r.dev, ET_F32, 1, &n[0], ET_ROW_MAJOR, NULL, &grad));
    need(cx, et_tensor_new(cx, r.dev, ET_F32, 1, &n[1], ET_ROW_MAJOR, NULL, &factor));
    need(cx, et_tensor_write(cx, grad, values, sizeof values));
    need(cx, et_tensor_write(cx, factor, half, sizeof half));
    struct et_state *s = r.state;
    et_graph_reset(s->graph);
    s->grad = grad;
    for (int i = 0; i < 2; i++)
        et_state_scale_grad(s, factor);
    struct et_tensor *want[] = {et_state_grad_squares(s), s->grad};
    need(cx, et_eval(s->graph, want, 2));
    need(cx, et_tensor_read(cx, want[0], &squares, sizeof squares));
    need(cx, et_tensor_read(cx, want[1], scaled, sizeof scaled));
    ok(scaled[0] == .75f && scaled[1] == 1, "a gradient is scaled twice by a half");
    is_near(squares, 25. / 16, 0, "and its norm with it");
    s->grad = NULL;
    et_graph_reset(s->graph);
    et_tensor_free(&grad);
    et_tensor_free(&factor);
    run_close(&r);
}

/* ---- records ---- */

enum { BATCHES = 6 }; /* two epochs of three, of 4, 4 and 2 samples */
static double times[BATCHES][5];
static int n_records;

static void
note(struct et_sink *sink, const struct et_record *r)
{
    static const char *const names[] = {"time/epoch", "time/batch", "time/sample",
                                        "time/batch_in_epoch", "time/sample_in_epoch"};
    (void)sink;
    if (r->kind != ET_RECORD_BATCH || n_records == BATCHES)
        return;
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < 5; k++)
            if (strcmp(r->entry[i].name, names[k]) == 0)
                times[n_records][k] = r->entry[i].value;
    n_records++;
}

static void
test_records(struct et_ctx *cx)
{
    static const double want[BATCHES][5] = {
        {0, 1, 4, 1, 4},  {0, 2, 8, 2, 8},  {0, 3, 10, 3, 10},
        {1, 4, 14, 1, 4}, {1, 5, 18, 2, 8}, {1, 6, 20, 3, 10},
    };
    struct et_sink sink = {.write = note};
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){.n = 10, .max_duration = ET_EPOCHS(2), .sink = &sink});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    is_int(n_records, BATCHES, "six batches");
    for (int i = 0; i < BATCHES; i++)
        ok(memcmp(times[i], want[i], sizeof *want) == 0,
           "batch %d: epoch %g, batch %g, sample %g, of the epoch %g and %g", i,
           times[i][0], times[i][1], times[i][2], times[i][3], times[i][4]);
}

/* ---- evaluations ---- */

static char story[1024];

static enum et_event refused; /* that `tell` fails at; 0: none */

static et_status
tell(struct et_algorithm *self, enum et_event event, struct et_state *s,
     struct et_log *log)
{
    const size_t used = strlen(story);
    const struct et_timestamp *ts = &s->eval_timestamp;
    (void)self, (void)log;
    if (refused && event == refused)
        return ET_FAIL(s->cx, ET_EINVAL, "it does not want to");
    snprintf(story + used, sizeof story - used, "%s%s %s %d %d/%d", used ? "; " : "",
             et_event_name(event), s->dataloader_label, (int)s->dataloader_len,
             (int)ts->batch, (int)ts->sample);
    return ET_OK;
}

static const struct et_algorithm_class telling = {
    .info = {.name = "telling"},
    .events = ET_ON(EPOCH_START) | ET_ON(EVAL_START) | ET_ON(EVAL_END),
    .apply = tell,
};

/* An evaluation that fails leaves nothing of its loader, whose label is a caller's. */
static void
test_broken_evaluation(struct run *r, const struct et_evaluator *other)
{
    static const enum et_event events[] = {ET_EVENT_EVAL_START, ET_EVENT_EVAL_END};
    for (int i = 0; i < 2; i++) {
        refused = events[i];
        is_int(et_trainer_eval_on(r->trainer, other, 1), ET_EINVAL,
               "an evaluation fails at %s", et_event_name(refused));
        et_error_clear(r->cx);
        is_str(r->state->dataloader_label, "train", "and the label is as it was");
        is_int(r->state->dataloader_len, 3, "and so is the length");
    }
    refused = 0;
}

/* Each evaluation shows its own loader and begins to count anew; behind it stands what
 * is trained on. */
static void
test_evaluations(struct et_ctx *cx)
{
    struct et_algorithm a = {.type = &telling, .cx = cx}, *list[] = {&a};
    struct run_setup setup = {.n = 10,
                              .evaluate = true,
                              .max_duration = ET_EPOCHS(2),
                              .algorithms = list,
                              .n_algorithms = 1};
    struct run small, r;
    run_open(&small, cx, &(struct run_setup){.n = 6});
    setup.with = &small;
    run_prepare(&r, cx, &setup);
    const struct et_evaluator two[] = {{.loader = r.eval, .label = "own"},
                                       {.loader = small.train, .label = "small"}};
    r.config.evaluators = two;
    r.config.n_evaluators = 2;
    run_start(&r);
    need(cx, et_trainer_eval_on(r.trainer, &two[1], 1));
    ok(!r.state->dataloader_label, "before a run there is no label to go back to");
    *story = '\0';
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_str(story,
           "epoch_start train 3 2/6; "
           "eval_start own 3 0/0; eval_end own 3 3/10; "
           "eval_start small 2 0/0; eval_end small 2 2/6; "
           "epoch_start train 3 2/6; "
           "eval_start own 3 0/0; eval_end own 3 3/10; "
           "eval_start small 2 0/0; eval_end small 2 2/6",
           "loaders and counts of an evaluation are its own");
    double value;
    is_int(r.state->n_eval_metrics, 4, "two metrics of two evaluations are there");
    ok(et_state_metric(r.state, "metrics/own/Accuracy", &value) &&
           et_state_metric(r.state, "metrics/own/CrossEntropy", &value) &&
           et_state_metric(r.state, "metrics/small/Accuracy", &value) &&
           et_state_metric(r.state, "metrics/small/CrossEntropy", &value),
       "each under the name of its own");
    *story = '\0';
    need(cx, et_trainer_eval_on(r.trainer, &two[1], 1));
    is_str(story, "eval_start small 2 0/0; eval_end small 2 2/6",
           "so are those of one by itself");
    *story = '\0';
    need(cx, et_trainer_eval(r.trainer));
    is_str(story,
           "eval_start own 3 0/0; eval_end own 3 3/10; "
           "eval_start small 2 0/0; eval_end small 2 2/6",
           "which leaves the run's own as they were");
    is_str(r.state->dataloader_label, "train", "behind which the label is as it was");
    is_int(r.state->dataloader_len, 3, "and so is the length");
    test_broken_evaluation(&r, &two[1]);
    run_close(&r);
    run_close(&small);
}

static int64_t first_bad; /* the batch from which on losses are not finite */

static et_status
spoil(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)self, (void)event, (void)log;
    if (s->timestamp.batch + 1 >= first_bad)
        s->loss = et_add_scalar(s->graph, s->loss, INFINITY);
    return ET_OK;
}

static const struct et_algorithm_class spoiling = {
    .info = {.name = "spoiling"}, .events = ET_ON(AFTER_LOSS), .apply = spoil};

/* Runs of 4 batches of which the last two may be spoilt: whether there is an evaluation
 * behind the last one, and what schedules have seen of it. */
static void
test_ends(struct et_ctx *cx)
{
    static const struct {
        const char *what;
        int64_t bad;
        int action; /* enum et_nonfinite_action */
        bool hold;
        struct et_time interval;
        int evaluations;
        int64_t batches, seen; /* by the run and by its schedules */
    } rows[] = {
        {"a run", 9, ET_NONFINITE_SKIP, true, {9, ET_TIME_BATCH}, 1, 4, 4},
        {"one that is never to", 9, ET_NONFINITE_SKIP, true, ET_NEVER, 0, 4, 4},
        {"one that holds its schedule",
         3,
         ET_NONFINITE_SKIP,
         true,
         {3, ET_TIME_BATCH},
         2,
         4,
         2},
        {"one that does not", 3, ET_NONFINITE_SKIP, false, {4, ET_TIME_BATCH}, 1, 4, 4},
        {"one that diverges", 3, ET_NONFINITE_STOP, true, {9, ET_TIME_BATCH}, 0, 3, 2},
    };
    struct et_algorithm a = {.type = &telling, .cx = cx},
                        b = {.type = &spoiling, .cx = cx}, *list[] = {&a, &b};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        int n = 0;
        first_bad = rows[i].bad;
        *story = '\0';
        run_prepare(&r, cx,
                    &(struct run_setup){.n = 6,
                                        .evaluate = true,
                                        .max_duration = ET_BATCHES(4),
                                        .algorithms = list,
                                        .n_algorithms = 2});
        r.config.nonfinite_action = rows[i].action;
        r.config.hold_schedule = rows[i].hold;
        r.evaluator.interval = rows[i].interval;
        run_start(&r);
        need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
        for (const char *at = story; (at = strstr(at, "eval_start")); at++)
            n++;
        is_int(n, rows[i].evaluations, "%s is evaluated as often", rows[i].what);
        is_int(r.state->timestamp.batch, rows[i].batches, "has its batches");
        is_int(eti_schedule_time(r.trainer).batch, rows[i].seen,
               "and its schedules have theirs");
        run_close(&r);
    }
}

/* An evaluation by itself that fails is over: those of a run that follows are the
 * run's, which end where limit_eval_steps has them end, and beside which model_ema's
 * average has its own. */
static void
test_behind_broken(struct et_ctx *cx)
{
    struct et_algorithm a = {.type = &telling, .cx = cx}, *list[] = {&a};
    static const char *const first[] = {"num_eval_steps", "1",
                                        "limit_intermediate_only", "false", NULL};
    const struct et_callback_class *limit = et_callback_find("limit_eval_steps");
    struct et_callback *c[2];
    struct run r;
    void *options;
    need(cx, et_callback_new(cx, et_callback_find("model_ema"), NULL, scratch_folder(),
                             &c[0]));
    need(cx, et_options_new(cx, &limit->info, first, &options));
    need(cx, et_callback_new(cx, limit, options, NULL, &c[1]));
    et_options_free(&limit->info, &options);
    run_open(&r, cx,
             &(struct run_setup){.n = 6,
                                 .evaluate = true,
                                 .max_duration = ET_EPOCHS(2),
                                 .algorithms = list,
                                 .n_algorithms = 1,
                                 .callbacks = c,
                                 .n_callbacks = 2});
    refused = ET_EVENT_EVAL_START;
    is_int(et_trainer_eval(r.trainer), ET_EINVAL, "an evaluation by itself fails");
    et_error_clear(cx);
    refused = 0;
    *story = '\0';
    need(cx, et_trainer_fit(r.trainer, ET_EPOCHS(1)));
    is_str(
        story,
        "epoch_start train 2 0/0; eval_start eval 2 0/0; eval_end eval 2 1/4; "
        "eval_start ema_model_eval 2 0/0; eval_end ema_model_eval 2 1/4",
        "a run behind it evaluates the average too, and as many batches as it is to");
    run_close(&r);
    for (int i = 0; i < 2; i++)
        et_callback_free(&c[i]);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_schedule_time();
    test_intervals(cx);
    test_metrics();
    test_stop();
    test_squares(cx);
    test_records(cx);
    test_evaluations(cx);
    test_behind_broken(cx);
    test_ends(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
