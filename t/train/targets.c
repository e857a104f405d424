/* SPDX-License-Identifier: Apache-2.0 */
/* targets.c: the goal that ends a run: how it is written, which metric it means, when
 * it is reached, and what becomes of that. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/desk.h"
#include "t/train/fixture.h"
#include "t/train/recipes.h"

/* ---- how it is written ---- */

static void
test_texts(struct et_ctx *cx)
{
    static const struct {
        const char *target, *why; /* NULL: it is one */
    } rows[] = {
        {"accuracy>=.5", NULL},
        {"ACCURACY>=.5", NULL},
        {"metrics/eval/Accuracy>=.5", NULL},
        {"accuracy >= .5", NULL},
        {"CrossEntropy<1e-3", NULL},
        {"acc>=.5", "target: 0 metrics are called 'acc'"},
        {"accurac>=.5", "target: 0 metrics are called 'accurac'"},
        {"accuracyy>=.5", "target: 0 metrics are called 'accuracyy'"},
        {"eval/Accuracy>=.5", "target: 0 metrics are called 'eval/Accuracy'"},
        {"metrics/eval/accuracy>=.5",
         "target: 0 metrics are called 'metrics/eval/accuracy'"},
        {"accuracy", "target 'accuracy' is not METRIC>=NUMBER or METRIC<=NUMBER"},
        {"accuracy=.5", "target 'accuracy=.5' is not METRIC>=NUMBER or METRIC<=NUMBER"},
        {"accuracy>=", "target 'accuracy>=' is not METRIC>=NUMBER or METRIC<=NUMBER"},
        {"accuracy>x", "target 'accuracy>x' is not METRIC>=NUMBER or METRIC<=NUMBER"},
        {"accuracy>.5x",
         "target 'accuracy>.5x' is not METRIC>=NUMBER or METRIC<=NUMBER"},
        {">.5", "target '>.5' is not METRIC>=NUMBER or METRIC<=NUMBER"},
    };
    struct run r;
    run_prepare(&r, cx, &(struct run_setup){.evaluate = true});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_trainer *t;
        r.config.target = rows[i].target;
        et_status status = et_trainer_new(cx, &r.config, &t);
        is_str(status == ET_OK ? "taken" : take_error(cx),
               rows[i].why ? rows[i].why : "taken", "target %s", rows[i].target);
        et_trainer_free(&t);
    }
    const struct et_evaluator two[] = {{.loader = r.eval},
                                       {.loader = r.eval, .label = "other"}};
    struct et_trainer *t;
    r.config.evaluators = two;
    r.config.n_evaluators = 2;
    r.config.target = "accuracy>.5";
    is_int(et_trainer_new(cx, &r.config, &t), ET_EINVAL, "two metrics of a name");
    is_str(take_error(cx),
           "target: 2 metrics are called 'accuracy'; give the full name",
           "have to be told apart");
    r.config.target = "metrics/other/Accuracy>.5";
    run_start(&r);
    run_close(&r);
}

/* ---- when it is reached ---- */

/* Is TARGET reached where the evaluation's accuracy is VALUE, and its entropy 7? */
static bool
is_reached(struct et_trainer *t, const char *target, double value)
{
    bool reached;
    t->config.target = target;
    for (int i = 0; i < t->state.n_eval_metrics; i++)
        t->evaluation.value[i].value =
            strcmp(t->evaluation.value[i].name, "metrics/eval/Accuracy") == 0 ? value
                                                                              : 7;
    need(t->state.cx, eti_target_check(t, &reached));
    return reached;
}

static void
test_bounds(struct et_ctx *cx)
{
    static const struct {
        const char *target;
        bool below, at, above;
    } rows[] = {
        {"accuracy>=.5", false, true, true},
        {"accuracy>.5", false, false, true},
        {"accuracy<=.5", true, true, false},
        {"accuracy<.5", true, false, false},
        {"metrics/eval/Accuracy>=.5", false, true, true},
    };
    struct run r;
    run_open(&r, cx, &(struct run_setup){.evaluate = true});
    need(cx, et_trainer_eval(r.trainer));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ok(is_reached(r.trainer, rows[i].target, 0.25) == rows[i].below &&
               is_reached(r.trainer, rows[i].target, 0.5) == rows[i].at &&
               is_reached(r.trainer, rows[i].target, 0.75) == rows[i].above &&
               !is_reached(r.trainer, rows[i].target, NAN),
           "%s is judged below, at and above its bound, and never by what is no number",
           rows[i].target);
    r.trainer->config.target = NULL;
    run_close(&r);
}

/* ---- what becomes of it ---- */

/* Gives each evaluation the next of these accuracies. */
static const double *next_value;

static et_status
set_value(struct et_algorithm *self, enum et_event event, struct et_state *s,
          struct et_log *log)
{
    struct et_trainer *t = (struct et_trainer *)s;
    (void)self, (void)event, (void)log;
    for (int i = 0; i < s->n_eval_metrics; i++)
        t->evaluation.value[i].value = *next_value;
    next_value++;
    return ET_OK;
}

static const struct et_algorithm_class setter_class = {
    .info = {.name = "setter"},
    .events = ET_ON(EVAL_AFTER_ALL),
    .apply = set_value,
};

static void
test_ends(struct et_ctx *cx)
{
    static const double values[] = {.1, .9, .2};
    struct et_algorithm setter = {.type = &setter_class, .cx = cx}, *list[] = {&setter};
    struct run r;
    run_prepare(&r, cx,
                &(struct run_setup){.evaluate = true,
                                    .max_duration = ET_EPOCHS(4),
                                    .algorithms = list,
                                    .n_algorithms = 1,
                                    .target = "metrics/often/Accuracy>=.5"});
    const struct et_evaluator two[] = {
        {.label = "often", .loader = r.eval, .interval = ET_BATCHES(1)},
        {.label = "seldom", .loader = r.eval, .interval = ET_BATCHES(5)},
    };
    r.config.evaluators = two;
    r.config.n_evaluators = 2;
    run_start(&r);
    next_value = values;
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_int(r.state->timestamp.batch, 2,
           "a run ends with the batch at which it is there");
    is_int(next_value - values, 3, "what was not evaluated there is at the end");
    is_int(et_trainer_outcome(r.trainer), ET_OUTCOME_TARGET_REACHED,
           "and what that comes to does not take the target back");
    is_str(r.state->stop_reason, "the target was reached", "it says why it ended");
    run_close(&r);
}

/* A run that reached its target, and goes on with one that it has not. */
static void
test_another(struct et_ctx *cx)
{
#define WITH_TARGET(target)                                                            \
    RESNET("12ba")                                                                     \
    "eval_data: {name: synthetic_images, num_samples: 8, batch_size: 8}\n"             \
    "eval_interval: 4ba\ntarget: " target "\n"
    struct result r;
    (void)desk_train(
        cx, &(struct how){.text = WITH_TARGET("accuracy>=0"), .saved = true}, &r);
    ok(r.batches == 4 && r.outcome == ET_OUTCOME_TARGET_REACHED,
       "a run ends at its first evaluation");
    free(r.params);
    (void)desk_train(cx,
                     &(struct how){.text = WITH_TARGET("accuracy>=0"),
                                   .saved = true,
                                   .resumed = true},
                     &r);
    ok(r.batches == 4 && r.outcome == ET_OUTCOME_TARGET_REACHED,
       "it is there still when it goes on with the same target");
    free(r.params);
    (void)desk_train(cx,
                     &(struct how){.text = WITH_TARGET("accuracy>=2"),
                                   .saved = true,
                                   .resumed = true},
                     &r);
    ok(r.batches == BATCHES && r.outcome == ET_OUTCOME_TARGET_MISSED,
       "with another one it trains to its end, and has missed that");
    free(r.params);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_texts(cx);
    test_bounds(cx);
    test_ends(cx);
    test_another(cx);
    desk_clear();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
