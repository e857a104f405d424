/* The order of events: the golden traces of spec/trainer.md 1.8. */
#include <stdio.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

#define F " before_forward after_forward before_loss after_loss before_backward after_backward"
#define DATA " before_dataloader after_dataloader batch_start before_train_batch"
#define BATCH(passes) DATA passes " after_train_batch batch_end batch_checkpoint"
#define START "init before_load after_load fit_start epoch_start"
#define EVAL                                                                   \
    " eval_before_all eval_start eval_batch_start eval_before_forward"         \
    " eval_after_forward eval_batch_end eval_end eval_after_all"

static char trace[8192];

static et_status
note(struct et_algorithm *self, enum et_event event, struct et_state *state,
     struct et_log *log)
{
    (void)self;
    (void)state;
    (void)log;
    size_t at = strlen(trace);
    snprintf(trace + at, sizeof trace - at, "%s%s", at ? " " : "", et_event_name(event));
    return ET_OK;
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

static void
test_names(struct et_ctx *cx)
{
    enum et_event e;
    char buf[64];
    ok(et_event_parse(cx, "Before_Forward", &e) == ET_OK && e == ET_EVENT_BEFORE_FORWARD,
       "event names are read in any case");
    ok(et_event_parse(cx, "before_lunch", &e) == ET_EINVAL, "an unknown event is refused");
    et_error_clear(cx);
    is_str(et_event_canonical(ET_EVENT_AFTER_FORWARD, buf, sizeof buf), "forward",
           "after_forward is the end of forward");
    is_str(et_event_canonical(ET_EVENT_EVAL_BATCH_START, buf, sizeof buf), "eval_batch",
           "eval_batch_start begins eval_batch");
    is_int(ET_EVENT_COUNT, 40, "there are 40 events");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_names(cx);
    test_order(cx);
    check(cx, "two batches of two microbatches",
          (struct run_setup){.grad_accum = 2, .evaluate = true, .n = 8, .batch_size = 8 / 2},
          NULL,
          START BATCH(F F) BATCH(F F) " before_dataloader epoch_end"
          " eval_before_all eval_start eval_batch_start eval_before_forward"
          " eval_after_forward eval_batch_end eval_batch_start eval_before_forward"
          " eval_after_forward eval_batch_end eval_end eval_after_all"
          " epoch_checkpoint fit_end");
    check(cx, "one epoch of one batch",
          (struct run_setup){.evaluate = true, .n = 4}, NULL,
          START BATCH(F) " before_dataloader epoch_end" EVAL " epoch_checkpoint fit_end");
    check(cx, "as many batches as an epoch has",
          (struct run_setup){.max_duration = ET_BATCHES(2)}, NULL,
          START BATCH(F) BATCH(F) " epoch_end epoch_checkpoint fit_end");
    check(cx, "fewer batches than an epoch has",
          (struct run_setup){.max_duration = ET_BATCHES(1), .evaluate = true, .n = 8}, NULL,
          START BATCH(F) " fit_end eval_before_all eval_start eval_batch_start"
          " eval_before_forward eval_after_forward eval_batch_end eval_batch_start"
          " eval_before_forward eval_after_forward eval_batch_end eval_end eval_after_all");
    check(cx, "a step that calls its closure twice",
          (struct run_setup){.n = 4}, two_passes,
          START DATA F " after_train_batch before_train_batch" F
          " after_train_batch batch_end batch_checkpoint before_dataloader"
          " epoch_end epoch_checkpoint fit_end");
    et_ctx_free(&cx);
    return done();
}
