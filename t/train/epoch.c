/* SPDX-License-Identifier: Apache-2.0 */
/* An epoch that a program writes by its steps: the default one so written is the same
 * to the bit; it may end early; steps in another order are refused. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "t/tap.h"
#include "t/train/fixture.h"

enum { EVENTS = 4096 };

/* What happened in a run. */
struct course {
    char events[EVENTS]; /* their numbers, in order */
    int n;
    double loss[64];
    int batches;
    float weights[1 << 17];
    size_t bytes;
};

static et_status
note(void *data, struct et_state *s, enum et_event event)
{
    struct course *c = data;
    if (c->n < EVENTS)
        c->events[c->n++] = (char)event;
    if (event == ET_EVENT_BATCH_END && c->batches < 64)
        c->loss[c->batches++] = et_state_get_loss_value(s);
    return ET_OK;
}

/* The default epoch, written out by somebody else. */
static et_status
by_steps(void *data, struct et_trainer *t)
{
    int *batches = data;
    bool got;
    for (;;) {
        ET_TRY(et_trainer_next_batch(t, &got));
        if (!got)
            return ET_OK;
        ET_TRY(et_trainer_train_batch(t));
        ET_TRY(et_trainer_end_batch(t));
        ++*batches;
    }
}

/* Trains by EPOCH (NULL: the default) for DURATION. */
static void
train(struct et_ctx *cx, et_epoch_fn *epoch, void *data, struct et_time duration,
      struct et_time iteration, struct course *out)
{
    struct run r;
    struct et_trainer_steps steps = {.data = out, .at_event = note};
    memset(out, 0, sizeof *out);
    run_prepare(&r, cx,
                &(struct run_setup){
                    .n = 22,
                    .batch_size = 4,
                    .evaluate = true,
                    .repeats = true,
                    .max_duration = duration,
                    .iteration_length = iteration,
                });
    r.config.steps = &steps;
    r.config.epoch = epoch;
    r.config.epoch_data = data;
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    const struct et_tensor *w = et_state_get_params(r.state)->values;
    out->bytes = et_desc_bytes(&w->desc);
    if (out->bytes > sizeof out->weights)
        bail("%zu bytes of weights", out->bytes);
    need(cx, et_tensor_read(cx, w, out->weights, out->bytes));
    run_close(&r);
}

static void
test_same(struct et_ctx *cx, const char *what, struct et_time duration,
          struct et_time iteration)
{
    static struct course a, b;
    int batches = 0;
    train(cx, NULL, NULL, duration, iteration, &a);
    train(cx, by_steps, &batches, duration, iteration, &b);
    is_int(batches, a.batches, "%s: an epoch by its steps has as many batches", what);
    ok(a.n == b.n && memcmp(a.events, b.events, (size_t)a.n) == 0,
       "%s: and the same %d events", what, a.n);
    ok(memcmp(a.loss, b.loss, sizeof a.loss) == 0, "%s: and losses, to the bit", what);
    ok(a.bytes == b.bytes && memcmp(a.weights, b.weights, a.bytes) == 0,
       "%s: and weights, to the bit", what);
}

/* ---- epochs that end early ---- */

struct early {
    int epochs;
    int64_t place[8]; /* of each epoch's first sample in the run's order */
};

static et_status
two_batches(void *data, struct et_trainer *t)
{
    struct early *e = data;
    const struct et_state *s = et_trainer_state(t);
    bool got;
    for (int i = 0; i < 2; i++) {
        ET_TRY(et_trainer_next_batch(t, &got));
        if (!got)
            return ET_OK;
        if (i == 0)
            e->place[e->epochs] = et_state_get_first_sample(s);
        ET_TRY(et_trainer_train_batch(t));
        ET_TRY(et_trainer_end_batch(t));
    }
    e->epochs++;
    return ET_OK;
}

static void
test_early(struct et_ctx *cx)
{
    static struct course c;
    struct early e = {.epochs = 0};
    int starts = 0, ends = 0, evaluations = 0;
    train(cx, two_batches, &e, ET_EPOCHS(3), ET_TIME_UNSET, &c);
    for (int i = 0; i < c.n; i++) {
        starts += c.events[i] == ET_EVENT_EPOCH_START;
        ends += c.events[i] == ET_EVENT_EPOCH_END;
        evaluations += c.events[i] == ET_EVENT_EVAL_START;
    }
    is_int(c.batches, 6, "three epochs that end after two batches have six");
    ok(starts == 3 && ends == 3, "each begins and ends once (%d, %d)", starts, ends);
    is_int(evaluations, 3, "and is evaluated behind its end");
    is_int(e.epochs, 3, "the function has run for each");
    ok(e.place[0] == 0 && e.place[1] == 22 && e.place[2] == 44,
       "which begins with the first batch of its own epoch (%lld, %lld)",
       (long long)e.place[1], (long long)e.place[2]);
}

/* ---- what is refused ---- */

static et_status
no_batch(void *data, struct et_trainer *t)
{
    (void)data;
    (void)t;
    return ET_OK;
}

static et_status
no_training(void *data, struct et_trainer *t)
{
    bool got;
    (void)data;
    ET_TRY(et_trainer_next_batch(t, &got));
    return et_trainer_end_batch(t);
}

static et_status
twice(void *data, struct et_trainer *t)
{
    bool got;
    (void)data;
    ET_TRY(et_trainer_next_batch(t, &got));
    return et_trainer_next_batch(t, &got);
}

static et_status
no_end(void *data, struct et_trainer *t)
{
    bool got;
    (void)data;
    ET_TRY(et_trainer_next_batch(t, &got));
    return et_trainer_train_batch(t);
}

static void
test_refused(struct et_ctx *cx)
{
    static const struct {
        const char *name, *why;
        et_epoch_fn *epoch;
    } rows[] = {
        {"an epoch without a batch", "the epoch has trained on no batch", no_batch},
        {"an end without training",
         "et_trainer_end_batch: et_trainer_train_batch comes next", no_training},
        {"a batch behind one that is held",
         "et_trainer_next_batch: et_trainer_train_batch comes next", twice},
        {"a batch that has not ended",
         "the epoch has returned: et_trainer_end_batch comes next", no_end},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        run_prepare(&r, cx, &(struct run_setup){.n = 8});
        r.config.epoch = rows[i].epoch;
        run_start(&r);
        is_int(et_trainer_fit(r.trainer, ET_TIME_UNSET), ET_EINVAL, "%s is refused",
               rows[i].name);
        is_str(et_error_get(cx)->message, rows[i].why, "and said");
        et_error_clear(cx);
        run_close(&r);
    }
    struct run r;
    run_open(&r, cx, &(struct run_setup){.n = 8});
    is_int(et_trainer_train_batch(r.trainer), ET_EINVAL,
           "outside of an epoch there are no steps");
    is_str(et_error_get(cx)->message, "et_trainer_train_batch: no epoch is under way",
           "which is said");
    et_error_clear(cx);
    run_close(&r);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_same(cx, "two epochs", ET_EPOCHS(2), ET_TIME_UNSET);
    test_same(cx, "eight batches", ET_BATCHES(8), ET_TIME_UNSET);
    test_same(cx, "iterations of an epoch", ET_EPOCHS(3), ET_EPOCHS(1));
    test_early(cx);
    test_refused(cx);
    et_ctx_free(&cx);
    return done();
}
