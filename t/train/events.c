/* SPDX-License-Identifier: Apache-2.0 */
/* The order of events: the golden traces of spec/trainer.md 1.8. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

#define F                                                                              \
    " before_forward after_forward before_loss after_loss before_backward "            \
    "after_backward"
#define DATA                                                                           \
    " before_dataloader after_dataloader batch_start"                                  \
    " before_train_batch"
#define BATCH(passes) DATA passes " after_train_batch batch_end batch_checkpoint"
#define START         "init before_load after_load fit_start epoch_start"
#define EVAL                                                                           \
    " eval_before_all eval_start eval_batch_start eval_before_forward"                 \
    " eval_after_forward eval_batch_end eval_end eval_after_all"

#define EPOCH " before_dataloader epoch_end epoch_checkpoint"
#define ITERATION                                                                      \
    " iteration_start epoch_start" BATCH(F) EPOCH " iteration_end" EVAL                \
                                                  " iteration_checkpoint"

static char trace[8192];

static et_status
note(struct et_algorithm *self, enum et_event event, struct et_state *state,
     struct et_log *log)
{
    (void)self;
    (void)state;
    (void)log;
    size_t at = strlen(trace);
    snprintf(trace + at, sizeof trace - at, "%s%s", at ? " " : "",
             et_event_name(event));
    return ET_OK;
}

static char lines[1 << 14];

static void
keep_line(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    (void)level;
    size_t at = strlen(lines);
    snprintf(lines + at, sizeof lines - at, "%s\n", text);
}

static const struct et_algorithm_class tracer_class = {
    .info = {.name = "tracer"},
    .events = ET_ON_ALL,
    .apply = note,
};

static et_status
two_passes(struct et_state *s, void *data, et_closure_fn *closure)
{
    (void)data;
    ET_TRY(closure(s, 0));
    return closure(s, 1);
}

static void
check(struct et_ctx *cx, const char *what, struct run_setup setup, et_step_fn *step,
      const char *want)
{
    struct et_algorithm tracer = {.type = &tracer_class, .cx = cx}, *list[] = {&tracer};
    struct run r;
    trace[0] = '\0';
    setup.algorithms = list;
    setup.n_algorithms = 1;
    run_open(&r, cx, &setup);
    r.state->step = step;
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_OK, "%s: fit ends well", what);
    is_str(trace, want, "%s: events come in order", what);
    run_close(&r);
}

static void
test_order(struct et_ctx *cx)
{
    struct et_algorithm_class classes[5] = {
        {.info = {.name = "a"}},
        {.info = {.name = "first"}, .flags = ET_ALG_FIRST},
        {.info = {.name = "last"}, .flags = ET_ALG_LAST},
        {.info = {.name = "ema"}, .flags = ET_ALG_INIT_LAST},
        {.info = {.name = "b"}},
    };
    static const struct {
        enum et_event event;
        const char *order;
    } rows[] = {
        {ET_EVENT_BATCH_START, "first ema a b last"},
        {ET_EVENT_INIT, "first a b last ema"},
        {ET_EVENT_AFTER_DATALOADER, "first b a ema last"},
        {ET_EVENT_EVAL_AFTER_FORWARD, "first ema a b last"},
    };
    (void)cx;
    static const int user[] = {3, 0, 2, 4, 1};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct et_algorithm a[5], *list[5];
        char got[64] = "";
        for (int i = 0; i < 5; i++) {
            a[i] = (struct et_algorithm){.type = &classes[user[i]]};
            list[i] = &a[i];
        }
        et_engine_order(list, 5, rows[k].event);
        for (int i = 0; i < 5; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "",
                     list[i]->type->info.name);
        is_str(got, rows[k].order, "algorithms on %s run in the order of the passes",
               et_event_name(rows[k].event));
    }
}

/* ---- passes of the user, and traces ---- */

static char applied[64];

static et_status
apply_named(struct et_algorithm *self, enum et_event event, struct et_state *state,
            struct et_log *log)
{
    (void)log;
    const char *name = self->type->info.name;
    if (event == ET_EVENT_BATCH_START)
        snprintf(applied + strlen(applied), sizeof applied - strlen(applied), "%s ",
                 name);
    if (strcmp(name, "fails") == 0)
        return ET_FAIL(state->cx, ET_EINVAL, "as it was told to");
    return ET_OK;
}

static bool
match_never(struct et_algorithm *self, enum et_event event,
            const struct et_state *state)
{
    (void)self;
    (void)event;
    (void)state;
    return false;
}

/* Moves the first to the end. */
static void
rotate(struct et_algorithm **list, int n, enum et_event event)
{
    (void)event;
    struct et_algorithm *first = list[0];
    memmove(list, list + 1, (size_t)(n - 1) * sizeof *list);
    list[n - 1] = first;
}

static const struct et_algorithm_class named_classes[] = {
    {.info = {.name = "a"}, .events = ET_ON(BATCH_START), .apply = apply_named},
    {.info = {.name = "first"},
     .events = ET_ON(BATCH_START),
     .flags = ET_ALG_FIRST,
     .apply = apply_named},
    {.info = {.name = "never"},
     .events = ET_ON(BATCH_START),
     .match = match_never,
     .apply = apply_named},
    {.info = {.name = "elsewhere"}, .events = ET_ON(FIT_END), .apply = apply_named},
    {.info = {.name = "b"}, .events = ET_ON(BATCH_START), .apply = apply_named},
};

static void
test_passes(struct et_ctx *cx)
{
    static const struct et_pass last = {.name = "rotate", .run = rotate};
    const struct et_pass *const passes[] = {&last};
    struct et_algorithm a[5], *list[5];
    struct run r;
    for (int i = 0; i < 5; i++) {
        a[i] = (struct et_algorithm){.type = &named_classes[i], .cx = cx};
        list[i] = &a[i];
    }
    applied[0] = '\0';
    run_open(&r, cx,
             &(struct run_setup){
                 .algorithms = list,
                 .n_algorithms = 5,
                 .passes = passes,
                 .n_passes = 1,
                 .n = 4,
             });
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_OK,
       "a run with a pass ends well");
    is_str(applied, "a b first ", "a user's pass has the last word on the order");
    run_close(&r);
}

/* ---- where passes come, and what they may do ---- */

/* Swaps the first two, or what the passes below do to names. */
static void
swap(struct et_algorithm **list, int n, enum et_event event)
{
    (void)event;
    struct et_algorithm *first = list[0];
    if (n > 1) {
        list[0] = list[1];
        list[1] = first;
    }
}

static void
drop(struct et_algorithm **list, int n, enum et_event event)
{
    (void)event;
    if (n > 1)
        list[0] = list[1];
}

/* The names of four algorithms, a, b, last and first, as PASSES order them. */
static const char *
ordered(struct et_ctx *cx, const struct et_pass *const *passes, int n,
        enum et_event event)
{
    static const struct et_algorithm_class classes[] = {
        {.info = {.name = "a"}},
        {.info = {.name = "b"}},
        {.info = {.name = "last"}, .flags = ET_ALG_LAST},
        {.info = {.name = "first"}, .flags = ET_ALG_FIRST},
    };
    static char got[64];
    struct et_algorithm a[4], *list[4];
    got[0] = '\0';
    for (int i = 0; i < 4; i++) {
        a[i] = (struct et_algorithm){.type = &classes[i]};
        list[i] = &a[i];
    }
    if (et_engine_order_with(cx, passes, n, list, 4, event) != ET_OK)
        return et_error_get(cx)->message;
    for (int i = 0; i < 4; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "",
                 list[i]->type->info.name);
    return got;
}

static void
test_places(struct et_ctx *cx)
{
    static const struct et_pass behind = {.name = "behind", .run = swap},
                                front = {.name = "front", .run = swap, .after = ""},
                                middle = {.name = "middle",
                                          .run = rotate,
                                          .after = "reverse"},
                                next = {.name = "next",
                                        .run = rotate,
                                        .after = "middle"},
                                lost = {.name = "lost", .run = swap, .after = "nobody"},
                                thief = {.name = "thief", .run = drop};
    const enum et_event e = ET_EVENT_BATCH_START;
    const struct et_pass *one[2] = {NULL, NULL};
    is_str(ordered(cx, NULL, 0, e), "first a b last", "without passes it is as ever");
    one[0] = &behind;
    is_str(ordered(cx, one, 1, e), "a first b last",
           "a pass that says no place comes behind all, and may undo them");
    one[0] = &front;
    is_str(ordered(cx, one, 1, e), "first b a last", "one may come before all");
    one[0] = &middle;
    is_str(ordered(cx, one, 1, e), "first b a last",
           "one behind the reversal is before the sorting");
    is_str(ordered(cx, one, 1, ET_EVENT_AFTER_LOSS), "first b a last",
           "and not in front of the reversal");
    one[1] = &next;
    is_str(ordered(cx, one, 2, e), "first a b last",
           "and another may come behind that one");
    one[0] = &lost;
    is_str(ordered(cx, one, 1, e),
           "pass 'lost' comes behind 'nobody', and no pass is called that",
           "a place that there is not is refused");
    et_error_clear(cx);
    one[0] = one[1] = &behind;
    is_str(ordered(cx, one, 2, e), "two passes are called 'behind'",
           "and a name that is taken");
    et_error_clear(cx);
    one[0] = &thief;
    is_str(ordered(cx, one, 1, e),
           "pass 'thief' has dropped an algorithm or added one at batch_start: it may "
           "only change their order",
           "a pass that loses an algorithm is refused");
    et_error_clear(cx);
}

/* The same in a run. */
static void
test_thief(struct et_ctx *cx)
{
    static const struct et_pass thief = {.name = "thief", .run = drop};
    const struct et_pass *const passes[] = {&thief};
    struct et_algorithm a[2], *list[2];
    struct run r;
    for (int i = 0; i < 2; i++) {
        a[i] = (struct et_algorithm){.type = &named_classes[i], .cx = cx};
        list[i] = &a[i];
    }
    run_open(&r, cx,
             &(struct run_setup){.algorithms = list,
                                 .n_algorithms = 2,
                                 .passes = passes,
                                 .n_passes = 1,
                                 .n = 4});
    is_int(et_trainer_fit(r.trainer, ET_TIME_UNSET), ET_EINVAL,
           "a run ends where a pass loses an algorithm");
    et_error_clear(cx);
    run_close(&r);
}

static void
test_traces(struct et_ctx *cx)
{
    struct et_algorithm a[5], *list[5];
    struct et_trace traces[ET_MAX_ALGORITHMS];
    struct et_state state = {
        .cx = cx,
        .dataloader_label = "train",
        .algorithms = list,
        .n_algorithms = 5,
    };
    int n = -1;
    for (int i = 0; i < 5; i++) {
        a[i] = (struct et_algorithm){.type = &named_classes[i], .cx = cx};
        list[i] = &a[i];
    }
    ok(et_engine_run(&state, ET_EVENT_BATCH_START, traces, &n) == ET_OK && n == 3 &&
           traces[0].algorithm == &a[1] && traces[1].algorithm == &a[0] &&
           traces[2].algorithm == &a[4] && traces[2].order == 2 &&
           traces[2].event == ET_EVENT_BATCH_START,
       "there is a trace for each algorithm that matched, as they were applied");
    ok(et_engine_run(&state, ET_EVENT_EPOCH_END, traces, &n) == ET_OK && n == 0,
       "there is none at an event for which nobody is there");

    static const struct et_algorithm_class fails = {
        .info = {.name = "fails"}, .events = ET_ON(BATCH_START), .apply = apply_named};
    applied[0] = '\0';
    a[0].type = &fails;
    ok(et_engine_run(&state, ET_EVENT_BATCH_START, traces, &n) == ET_EINVAL,
       "the status of an algorithm that fails is the event's");
    is_str(applied, "first fails ", "and no algorithm after it is applied");
    et_error_clear(cx);
}

static void
test_names(struct et_ctx *cx)
{
    enum et_event e;
    char buf[64];
    ok(et_event_parse(cx, "Before_Forward", &e) == ET_OK &&
           e == ET_EVENT_BEFORE_FORWARD,
       "event names are read in any case");
    ok(et_event_parse(cx, "before_lunch", &e) == ET_EINVAL,
       "an unknown event is refused");
    et_error_clear(cx);
    is_str(et_event_canonical(ET_EVENT_AFTER_FORWARD, buf, sizeof buf), "forward",
           "after_forward is the end of forward");
    is_str(et_event_canonical(ET_EVENT_EVAL_BATCH_START, buf, sizeof buf), "eval_batch",
           "eval_batch_start begins eval_batch");
    is_int(ET_EVENT_COUNT, 41, "there are 41 events");
}

/* ETUDE_ENGINE_DEBUG says who is called at which event of which batch. */
static void
test_debug(struct et_ctx *cx)
{
    struct et_algorithm tracer = {.type = &tracer_class, .cx = cx}, *list[] = {&tracer};
    struct run_setup setup = {
        .evaluate = true, .n = 8, .algorithms = list, .n_algorithms = 1};
    struct run r;
    et_ctx_set_log(cx, ET_LOG_INFO, keep_line, NULL);
    for (int on = 0; on < 2; on++) {
        setenv("ETUDE_ENGINE_DEBUG", on ? "1" : "", 1);
        lines[0] = '\0';
        run_open(&r, cx, &setup);
        if (et_trainer_fit(r.trainer, ET_TIME_UNSET) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        run_close(&r);
        is_int(strstr(lines, "[ep=0][ba=1][event=after_loss]: event\n"
                             "[ep=0][ba=1][event=after_loss]: tracer\n") != NULL,
               on, "events of the second batch are %s",
               on ? "explained" : "not explained");
        is_int(strstr(lines,
                      "[ep=1][ba=2][eval_ba=1][event=eval_after_forward]: tracer\n") !=
                   NULL,
               on, "and those of the second batch that is evaluated");
    }
    unsetenv("ETUDE_ENGINE_DEBUG");
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
}

/* Without what happens in a batch. Epochs have 4 batches of 256 tokens: iterations end
 * after batch 2 (of more than 300 tokens), with the first epoch, and after batch 6. */
static void
test_tokens(struct et_ctx *cx)
{
    static struct et_algorithm_class outline;
    struct et_algorithm tracer = {.type = &outline, .cx = cx};
    struct recipe_run r;
    outline = tracer_class;
    outline.events = ET_ON(FIT_START) | ET_ON(ITERATION_START) | ET_ON(EPOCH_START) |
                     ET_ON(BATCH_END) | ET_ON(EPOCH_END) | ET_ON(ITERATION_END) |
                     ET_ON(ITERATION_CHECKPOINT) | ET_ON(FIT_END);
    recipe_prepare(&r, cx, "max_duration: 6ba\niteration_length: 300tok\n" GPT_REST,
                   &(struct recipe_choice){.device = "ref"});
    r.parts.algorithm[0] = &tracer;
    r.parts.config.n_algorithms = 1;
    recipe_start(&r);
    trace[0] = '\0';
    recipe_fit(&r);
    is_str(trace,
           "fit_start iteration_start epoch_start batch_end batch_end iteration_end "
           "iteration_checkpoint iteration_start batch_end batch_end epoch_end "
           "iteration_end iteration_checkpoint iteration_start epoch_start batch_end "
           "batch_end iteration_end iteration_checkpoint fit_end",
           "an iteration of tokens ends with the batch that fills it, also mid-epoch");
    is_int(r.state->timestamp.iteration, 3, "iterations are counted");
    r.parts.config.n_algorithms = 0; /* TRACER is not the recipe's to free */
    recipe_close(&r);
}

static void
test_standalone(struct et_ctx *cx)
{
    struct et_algorithm tracer = {.type = &tracer_class, .cx = cx}, *list[] = {&tracer};
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .n = 4, .evaluate = true, .algorithms = list, .n_algorithms = 1});
    trace[0] = '\0';
    need(cx, et_trainer_eval(r.trainer));
    is_str(trace, "eval_standalone_start" EVAL " eval_standalone_end",
           "an evaluation of its own stands between two events");
    trace[0] = '\0';
    need(cx, et_trainer_predict(r.trainer, r.eval, NULL, NULL));
    is_str(trace,
           "predict_start predict_batch_start predict_before_forward "
           "predict_after_forward predict_batch_end predict_end",
           "a prediction has events of its own");
    run_close(&r);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_debug(cx);
    test_names(cx);
    test_order(cx);
    test_passes(cx);
    test_places(cx);
    test_thief(cx);
    test_traces(cx);
    check(cx, "two batches of two microbatches",
          (struct run_setup){
              .grad_accum = 2, .evaluate = true, .n = 8, .batch_size = 8 / 2},
          NULL,
          START BATCH(F F) BATCH(
              F F) " before_dataloader epoch_end"
                   " eval_before_all eval_start eval_batch_start eval_before_forward"
                   " eval_after_forward eval_batch_end eval_batch_start "
                   "eval_before_forward"
                   " eval_after_forward eval_batch_end eval_end eval_after_all"
                   " epoch_checkpoint fit_end");
    check(cx, "one epoch of one batch", (struct run_setup){.evaluate = true, .n = 4},
          NULL,
          START BATCH(F) " before_dataloader epoch_end" EVAL
                         " epoch_checkpoint fit_end");
    check(cx, "as many batches as an epoch has",
          (struct run_setup){.max_duration = ET_BATCHES(2)}, NULL,
          START BATCH(F) BATCH(F) " epoch_end epoch_checkpoint fit_end");
    check(
        cx, "fewer batches than an epoch has",
        (struct run_setup){.max_duration = ET_BATCHES(1), .evaluate = true, .n = 8},
        NULL,
        START BATCH(
            F) " fit_end eval_before_all eval_start eval_batch_start"
               " eval_before_forward eval_after_forward eval_batch_end eval_batch_start"
               " eval_before_forward eval_after_forward eval_batch_end eval_end "
               "eval_after_all");
    check(cx, "a step that calls its closure twice", (struct run_setup){.n = 4},
          two_passes,
          START DATA F " after_train_batch before_train_batch" F
                       " after_train_batch batch_end batch_checkpoint before_dataloader"
                       " epoch_end epoch_checkpoint fit_end");
    check(cx, "iterations of two epochs",
          (struct run_setup){
              .n = 4, .max_duration = ET_EPOCHS(3), .iteration_length = ET_EPOCHS(2)},
          NULL,
          "init before_load after_load fit_start iteration_start epoch_start" BATCH(F)
              EPOCH " epoch_start" BATCH(F) EPOCH
          " iteration_end iteration_checkpoint"
          " iteration_start epoch_start" BATCH(F) EPOCH " fit_end");
    check(cx, "an evaluation for each iteration",
          (struct run_setup){.n = 4,
                             .evaluate = true,
                             .eval_interval = {1, ET_TIME_ITERATION},
                             .max_duration = {2, ET_TIME_ITERATION},
                             .iteration_length = ET_EPOCHS(1)},
          NULL, "init before_load after_load fit_start" ITERATION ITERATION " fit_end");
    test_tokens(cx);
    test_standalone(cx);
    et_ctx_free(&cx);
    return done();
}
