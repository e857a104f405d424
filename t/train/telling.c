/* SPDX-License-Identifier: Apache-2.0 */
/* telling.c: what a run tells of itself: its time without evaluations and pauses, its
 * counters, its work, why it ended; and that a step that is only planned is in none of
 * that. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etude/control.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

/* ---- time ---- */

enum { STEP = 2, EVALUATION = 100, PAUSE = 1000, MOST = 64 };
static struct own_clock *ticks;
static int64_t flops[MOST]; /* of each batch */
static bool has_batch;      /* at FIT_START */

/* A batch takes STEP seconds, each batch of an evaluation EVALUATION. */
static et_status
pass_time(struct et_algorithm *self, enum et_event event, struct et_state *s,
          struct et_log *log)
{
    (void)self, (void)log;
    if (event == ET_EVENT_FIT_START)
        has_batch = s->batch.x || s->full.x;
    else if (event == ET_EVENT_BATCH_END && s->timestamp.batch <= MOST)
        flops[s->timestamp.batch - 1] = s->batch_flops;
    else if (event == ET_EVENT_AFTER_TRAIN_BATCH)
        ticks->now += STEP;
    else if (event == ET_EVENT_EVAL_BATCH_END)
        ticks->now += EVALUATION;
    return ET_OK;
}

static const struct et_algorithm_class passing_class = {
    .info = {.name = "passing"},
    .events = ET_ON(FIT_START) | ET_ON(AFTER_TRAIN_BATCH) | ET_ON(BATCH_END) |
              ET_ON(EVAL_BATCH_END),
    .apply = pass_time,
};

/* Requests, each once so many batches are done; a pause takes PAUSE seconds. */
struct teller {
    struct et_control control; /* first */
    struct {
        int64_t at;
        const char *text;
    } ask[4];
    int next, n_applied;
};

static bool
next(struct et_control *c, int64_t step, struct et_request *out)
{
    struct teller *t = (struct teller *)c;
    if (!t->ask[t->next].text || t->ask[t->next].at > step)
        return false;
    if (et_request_parse(NULL, t->ask[t->next++].text, out) != ET_OK)
        bail("a test asks in words that are none");
    return true;
}

static void
answered(struct et_control *c, const struct et_request *r, int64_t step, bool applied,
         const char *answer)
{
    (void)r, (void)step;
    ((struct teller *)c)->n_applied += applied;
    if (!applied)
        diag("%s", answer);
}

static void
wait_here(struct et_control *c)
{
    struct teller *t = (struct teller *)c;
    ticks->now += PAUSE;
    t->ask[t->next].at = 0; /* what comes next is asked for now */
}

static const struct et_control asking = {
    .next = next, .done = answered, .wait = wait_here};

static void
test_time(struct et_ctx *cx)
{
    struct et_algorithm passing = {.type = &passing_class, .cx = cx},
                        *list[] = {&passing};
    struct teller teller = {.control = asking, .ask = {{3, "pause"}, {99, "continue"}}};
    struct run r;
    run_prepare(&r, cx,
                &(struct run_setup){.n = 16,
                                    .evaluate = true,
                                    .eval_interval = ET_BATCHES(3),
                                    .max_duration = ET_EPOCHS(2),
                                    .algorithms = list,
                                    .n_algorithms = 1});
    r.config.control = &teller.control;
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_int(teller.n_applied, 2, "a run is paused, and goes on");
    is_near(r.state->timestamp.total_wct, 8 * STEP, 1e-9,
            "its time is that of its 8 batches, without pause and evaluations");
    is_near(r.state->timestamp.epoch_wct, 0, 1e-9, "and none of an epoch's at its end");
    is_near(r.state->eval_timestamp.total_wct, 4 * EVALUATION, 1e-9,
            "an evaluation's is its own");
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(2)));
    is_near(r.state->timestamp.total_wct, 10 * STEP, 1e-9,
            "a second fit adds its batches, not what was between");
    int uneven = 0;
    for (int i = 1; i < 10; i++)
        uneven += flops[i] != flops[0];
    ok(flops[0] > 0 && uneven == 0, "each batch is told to cost as much as the others");
    run_close(&r);
}

/* ---- counters ---- */

enum { TOKENS = 256, SAMPLES = 16, EPOCH = 4 }; /* a batch; batches */

struct counters {
    struct et_sink sink; /* first */
    int n, wrong;
};

static void
count(struct et_sink *sink, const struct et_record *r)
{
    struct counters *c = (struct counters *)sink;
    if (r->kind != ET_RECORD_BATCH)
        return;
    const int64_t b = ++c->n, in_epoch = (b - 1) % EPOCH + 1, epoch = (b - 1) / EPOCH;
    const struct {
        const char *name;
        int64_t is;
    } want[] = {
        {"time/epoch", epoch},
        {"time/batch", b},
        {"time/sample", SAMPLES * b},
        {"time/token", TOKENS * b},
        {"time/batch_in_epoch", in_epoch},
        {"time/sample_in_epoch", SAMPLES * in_epoch},
        {"time/token_in_epoch", TOKENS * in_epoch},
    };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        double is = -1;
        for (int i = 0; i < r->n; i++)
            if (strcmp(r->entry[i].name, want[k].name) == 0)
                is = r->entry[i].value;
        c->wrong += is != (double)want[k].is;
        if (is != (double)want[k].is)
            diag("batch %d: %s is %g", c->n, want[k].name, is);
    }
    c->wrong += r->ba != b || r->ep != epoch || r->sp != SAMPLES * b;
}

static void
test_counters(struct et_ctx *cx)
{
    struct recipe_run r;
    struct counters c = {.sink.write = count};
    recipe_prepare(&r, cx, GPT("5ba"), &(struct recipe_choice){.device = "ref"});
    r.parts.config.sink = &c.sink;
    recipe_start(&r);
    recipe_fit(&r);
    ok(c.n == 5 && c.wrong == 0,
       "each record of a batch has the counters of run and epoch");
    recipe_close(&r);
}

/* What a prediction is shown of its time. */
static et_status
see_prediction(void *data, const struct et_state *s, const struct et_prediction *p)
{
    int *n = data;
    (void)p;
    *n += s->predict_timestamp.batch == *n && s->predict_timestamp.sample == 4 * *n;
    return ET_OK;
}

static void
test_prediction(struct et_ctx *cx)
{
    struct run r;
    int n = 0;
    run_open(&r, cx, &(struct run_setup){.n = 12, .evaluate = true});
    need(cx, et_trainer_predict(r.trainer, r.eval, see_prediction, &n));
    ok(n == 3 && r.state->predict_timestamp.batch == 3 &&
           r.state->predict_timestamp.sample == 12,
       "a prediction counts its batches and samples");
    run_close(&r);
}

/* ---- why it ended ---- */

struct stopper {
    struct et_callback callback; /* first */
    const char *why;
    int64_t at;
};

static et_status
stop_there(struct et_callback *self, enum et_event event, const struct et_state *s,
           struct et_log *log)
{
    const struct stopper *p = (const struct stopper *)self;
    (void)event, (void)log;
    if (s->timestamp.batch == p->at)
        self->stop = p->why;
    return ET_OK;
}

static const struct et_callback_class stopper_class = {
    .info = {.name = "stopper"},
    .events = ET_ON(BATCH_END),
    .run = stop_there,
};

static void
test_reasons(struct et_ctx *cx)
{
    struct stopper first = {{.type = &stopper_class, .cx = cx}, "enough", 3};
    struct stopper second = {{.type = &stopper_class, .cx = cx}, "more than enough", 3};
    struct et_callback *list[] = {&first.callback, &second.callback};
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){.n = 16,
                                 .max_duration = ET_EPOCHS(2),
                                 .callbacks = list,
                                 .n_callbacks = 2});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_int(r.state->timestamp.batch, 3, "a callback ends a run");
    is_str(r.state->stop_reason, "enough", "of two the first says why");
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(4)));
    ok(r.state->timestamp.batch == 7 && !r.state->stop_reason,
       "and the next fit is not ended by it");
    run_close(&r);
}

/* A hook fails with a hint: what has to be waited for and freed after it takes neither
 * from the error. */
static et_status
fail_there(struct et_algorithm *self, enum et_event event, struct et_state *s,
           struct et_log *log)
{
    (void)self, (void)event, (void)log;
    et_status status = ET_FAIL(s->cx, ET_EIO, "it broke");
    et_error_set_code(s->cx, 4711);
    et_hint(s->cx, "mend it");
    return status;
}

static const struct et_algorithm_class failing_class = {
    .info = {.name = "failing"},
    .events = ET_ON(BATCH_START),
    .apply = fail_there,
};

static void
test_error(struct et_ctx *cx)
{
    struct et_algorithm failing = {.type = &failing_class, .cx = cx},
                        *list[] = {&failing};
    struct run r;
    run_open(&r, cx, &(struct run_setup){.algorithms = list, .n_algorithms = 1});
    is_int(et_trainer_fit(r.trainer, ET_TIME_UNSET), ET_EIO, "a hook ends a run");
    const struct et_error *e = et_error_get(cx);
    ok(strcmp(e->message, "it broke") == 0 && strcmp(e->hint, "mend it") == 0 &&
           e->code == 4711,
       "its error has its sentence, its hint and its number");
    et_error_clear(cx);
    run_close(&r);
}

/* The loss itself as a part of it. */
static struct et_tensor *
loss_of_one_part(void *data, struct et_state *s)
{
    (void)data;
    struct et_tensor *loss =
        et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    return et_state_log_loss(s, "whole", loss) == ET_OK ? loss : NULL;
}

struct parts {
    struct et_sink sink; /* first */
    int n, differ;
};

static void
compare_parts(struct et_sink *sink, const struct et_record *r)
{
    struct parts *p = (struct parts *)sink;
    double total = 0, part = -1;
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].name, "loss/train/total") == 0)
            total = r->entry[i].value;
        else if (strcmp(r->entry[i].name, "loss/train/whole") == 0)
            part = r->entry[i].value;
    p->n += r->kind == ET_RECORD_BATCH;
    p->differ += r->kind == ET_RECORD_BATCH && part != total;
}

static void
test_parts(struct et_ctx *cx)
{
    static const char text[] =
        "max_duration: 4ba\nseed: 3\nmodel: {name: mlp, hidden: 8, layers: 1}\n"
        "train_data: {name: synthetic_images, batch_size: 4, num_samples: 16}\n"
        "optimizer: {name: sgd, lr: 0.1}\nalgorithms: {sam: {interval: 1}}\n";
    const struct et_trainer_steps steps = {.train_loss = loss_of_one_part};
    struct parts p = {.sink.write = compare_parts};
    struct recipe_run r;
    recipe_prepare(&r, cx, text, &(struct recipe_choice){.device = "ref"});
    r.parts.config.sink = &p.sink;
    r.parts.config.steps = &steps;
    recipe_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    ok(p.n == 4 && p.differ == 0,
       "with two passes parts of the loss are of the first, as the loss is");
    recipe_close(&r);
}

/* ---- what was saved ---- */

/* A folder that is a file for a while cannot be saved to. */
static void
test_saves(struct et_ctx *cx)
{
    static char folder[1024], step[1100];
    struct stat st;
    snprintf(folder, sizeof folder, "%s/saves", scratch_folder());
    snprintf(step, sizeof step, "%s/step-000000000000/MANIFEST", folder);
    const struct et_checkpoint_config save = {
        .directory = folder, .interval = ET_BATCHES(100), .keep = -1};
    struct run r;
    if (mkdir(folder, 0700) != 0)
        bail("no folder");
    run_open(&r, cx, &(struct run_setup){.checkpoint = &save});
    FILE *f = rmdir(folder) == 0 ? fopen(folder, "w") : NULL;
    if (!f || fclose(f) != 0)
        bail("no file");
    ok(et_trainer_save(r.trainer) != ET_OK, "a save that cannot be fails");
    et_error_clear(cx);
    if (unlink(folder) != 0 || mkdir(folder, 0700) != 0)
        bail("no folder");
    is_int(et_trainer_save(r.trainer), ET_OK, "the next one of the same batch");
    ok(stat(step, &st) == 0, "is a save again");
    is_int(et_trainer_save(r.trainer), ET_OK, "and a third has nothing to do");
    run_close(&r);
}

/* Who else is called: a letter for each BATCH_END and each closing, a small one where
 * it is no logger; and each beginning of a batch. */
static struct {
    char order[64];
    int begun;
} calls;

static void
note_turn(struct et_callback *self)
{
    const size_t n = strlen(calls.order);
    if (n + 1 < sizeof calls.order)
        calls.order[n] = self->type->is_logger ? 'L' : 'c';
}

static et_status
note_call(struct et_callback *self, enum et_event event, const struct et_state *s,
          struct et_log *log)
{
    (void)s, (void)log;
    if (event == ET_EVENT_BATCH_START)
        calls.begun += !self->type->is_logger;
    else
        note_turn(self);
    return ET_OK;
}

static const struct et_callback_class noting_class = {
    .info = {.name = "noting"},
    .events = ET_ON(BATCH_START) | ET_ON(BATCH_END),
    .run = note_call,
    .close = note_turn,
};
static const struct et_callback_class noting_logger_class = {
    .info = {.name = "noting_logger"},
    .is_logger = true,
    .events = ET_ON(BATCH_START) | ET_ON(BATCH_END),
    .run = note_call,
    .close = note_turn,
};

static void
test_callbacks(struct et_ctx *cx)
{
    static struct et_callback many[ET_MAX_ALGORITHMS + 1];
    struct et_callback *list[ET_MAX_ALGORITHMS + 1];
    struct run r;
    for (int i = 0; i <= ET_MAX_ALGORITHMS; i++) {
        many[i] = (struct et_callback){
            .type = i % 2 ? &noting_class : &noting_logger_class, .cx = cx};
        list[i] = &many[i];
    }
    struct run_setup setup = {.n = 4, .callbacks = list, .n_callbacks = 4};
    calls.order[0] = '\0';
    run_open(&r, cx, &setup);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_str(calls.order, "ccLL",
           "loggers come after all others, however they are given");
    run_close(&r);
    is_str(calls.order + 4, "ccLL", "and are closed after them");
    setup.n_callbacks = ET_MAX_ALGORITHMS;
    run_open(&r, cx, &setup);
    run_close(&r);
    setup.n_callbacks = ET_MAX_ALGORITHMS + 1;
    run_prepare(&r, cx, &setup);
    is_int(et_trainer_new(cx, &r.config, &r.trainer), ET_EINVAL,
           "one callback more than there is room for is refused");
    take_error(cx);
    r.config.n_callbacks = 1;
    run_start(&r); /* which leaves the model as it was */
    run_close(&r);
}

/* ---- what is only planned ---- */

static void
test_joins(struct et_ctx *cx)
{
    struct et_algorithm passing = {.type = &passing_class, .cx = cx},
                        *list[] = {&passing};
    struct teller teller = {
        .control = asking,
        .ask = {{0, "algo label_smoothing on"}, {2, "algo mixup on"}}};
    struct et_callback watching = {.type = &noting_class, .cx = cx};
    struct et_callback *watchers[] = {&watching};
    struct run r;
    calls.begun = 0;
    run_prepare(&r, cx,
                &(struct run_setup){.n = 16,
                                    .algorithms = list,
                                    .n_algorithms = 1,
                                    .callbacks = watchers,
                                    .n_callbacks = 1});
    r.config.control = &teller.control;
    run_start(&r);
    has_batch = true;
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_int(teller.n_applied, 2,
           "algorithms join before the first batch and behind one");
    ok(!has_batch,
       "before the first batch hooks are shown none, also not a planned one");
    is_int(passing.count.applied, 1 + 2 * 4,
           "what others count of themselves is of batches that were trained");
    is_int(passing.count.fired, 1 + 2 * 4, "whether they acted or were asked");
    is_int(calls.begun, 4, "and callbacks are called for these alone");
    run_close(&r);
}

/* ---- memory ---- */

static void
test_shortage(struct et_ctx *cx)
{
    struct run r;
    struct et_device_memory memory;
    struct run_setup setup = {
        .n = 128, .batch_size = 128, .auto_accum = true, .max_duration = ET_BATCHES(1)};
    run_open(&r, cx, &setup);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    et_device_get_memory(r.dev, &memory);
    const size_t peak = memory.peak_bytes;
    run_close(&r);

    run_open(&r, cx, &setup);
    et_device_set_limit(r.dev, peak - 6000);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    ok(r.state->grad_accum > 1, "a batch that does not fit is trained in pieces");
    run_close(&r);

    run_open(&r, cx, &setup);
    et_device_set_limit(r.dev, peak - 6000);
    is_int(et_trainer_fit_with(r.trainer, &(struct et_fit_options){.grad_accum = 1}),
           ET_ENOMEM, "but not where fit is told how many there are");
    et_error_clear(cx);
    run_close(&r);

    setup.n = 8;
    setup.batch_size = 4;
    run_open(&r, cx, &setup);
    et_device_get_memory(r.dev, &memory);
    et_device_set_limit(r.dev, memory.current_bytes);
    is_int(et_trainer_fit(r.trainer, ET_TIME_UNSET), ET_ENOMEM,
           "where a single sample does not fit the run ends");
    et_error_clear(cx);
    run_close(&r);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    ticks = own_clock(cx);
    alarm(60); /* of a run that never ends */
    test_time(cx);
    test_counters(cx);
    test_prediction(cx);
    test_reasons(cx);
    test_error(cx);
    test_parts(cx);
    test_saves(cx);
    test_callbacks(cx);
    test_joins(cx);
    test_shortage(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
