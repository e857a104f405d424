/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule that is held where an update is skipped: rates follow the updates that
 * were made, as where lr_scheduler.step() is left out with optimizer.step(), and a run
 * that is resumed goes on so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trainer/state.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

enum { BATCHES = 10, EPOCH = 4, BATCH = 8 };

/* An epoch is 4 batches of 8. */
#define HEAD                                                                           \
    "max_duration: 10ba\nseed: 17\nmodel: mlp\n" IMAGE_DATA                            \
    "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
#define HELD      HEAD "nonfinite: {action: skip, hold_schedule: true}\n"
#define RAMP(end) "scheduler: {name: linear, alpha_i: 1, alpha_f: 0, t_max: " end "}\n"
#define BY_EPOCH                                                                       \
    "scheduler: {name: linear, alpha_i: 1, alpha_f: 0, t_max: 10ba, step_every: "      \
    "epoch}\n"
#define GROUPED                                                                        \
    "max_duration: 10ba\nseed: 17\nmodel: mlp\n" IMAGE_DATA                            \
    "optimizer:\n  name: sgd\n  lr: 0.1\n  groups:\n"                                  \
    "    - {match: '.*', scheduler: {name: linear, alpha_i: 1, alpha_f: 0, t_max: "    \
    "10ba}}\n"                                                                         \
    "nonfinite: {action: skip, hold_schedule: true}\n"

static double rate[BATCHES]; /* as parts of the optimizer's, by the batch's number */

static bool
is_spoilt(int64_t batch)
{
    return batch == 2 || batch == 5 || batch == 6;
}

static struct et_tensor *
spoil(void *data, struct et_state *s)
{
    struct et_tensor *loss =
        et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    (void)data;
    return is_spoilt(s->timestamp.batch) ? et_mul_scalar(s->graph, loss, (double)NAN)
                                         : loss;
}

static et_status
note(void *data, struct et_state *s, enum et_event event)
{
    struct recipe_run *r = data;
    if (event == ET_EVENT_BEFORE_FORWARD && s->timestamp.batch < BATCHES)
        rate[s->timestamp.batch] =
            et_optimizer_group(s->optimizer, s->params->slot[0].group)->lr / 0.1;
    if (event == ET_EVENT_BATCH_END && r->stop_after &&
        s->timestamp.batch >= r->stop_after)
        r->interrupt = 1;
    return ET_OK;
}

/* Trains TEXT until after batch STOP (0: to the end), saving into FOLDER and going on
 * from what is there; NULL: neither. The parameters, for free(). */
static float *
train(struct et_ctx *cx, const char *text, int64_t stop, const char *folder,
      size_t *bytes)
{
    const struct et_checkpoint_config save = {
        .directory = folder, .interval = ET_BATCHES(100), .keep = 1, .incarnation = 1};
    const struct et_load_config load = {.directory = folder};
    struct recipe_run r;
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){.stop_after = stop,
                                           .grad_accum = 1,
                                           .checkpoint = folder ? &save : NULL,
                                           .load = folder && !stop ? &load : NULL});
    r.steps.train_loss = spoil;
    r.steps.at_event = note;
    recipe_start(&r);
    recipe_fit(&r);
    float *params = recipe_params(&r, bytes);
    recipe_close(&r);
    return params;
}

/* The worst distance of the rates from WANT(batch, updates made before it). */
static double
distance(double (*want)(int64_t batch, int64_t made))
{
    double worst = 0;
    for (int64_t i = 0, made = 0; i < BATCHES; i++) {
        worst = fmax(worst, fabs(rate[i] - want(i, made)));
        made += !is_spoilt(i);
    }
    return worst;
}

static double
by_update(int64_t batch, int64_t made)
{
    (void)batch;
    return 1 - (double)made / BATCHES;
}

static double
by_batch(int64_t batch, int64_t made)
{
    (void)made;
    return 1 - (double)batch / BATCHES;
}

/* As many updates as there had been when the epoch began: 0, 3, 5. */
static double
by_epoch(int64_t batch, int64_t made)
{
    (void)made;
    return 1 - (double[]){0, 3, 5}[batch / EPOCH] / BATCHES;
}

static void
test_rates(struct et_ctx *cx)
{
    static const struct {
        const char *text, *what;
        double (*want)(int64_t batch, int64_t made);
    } rows[] = {
        {HELD RAMP("10ba"), "an update that is skipped does not move the schedule",
         by_update},
        {HELD RAMP("80sp"), "... by its samples either", by_update},
        {HELD RAMP("1dur"), "... nor where it lasts as long as the run", by_update},
        {GROUPED, "... nor that of a group", by_update},
        {HELD BY_EPOCH, "a schedule that steps with epochs steps there", by_epoch},
        {HEAD "nonfinite: {action: skip}\n" RAMP("10ba"), "unless held it goes on",
         by_batch},
    };
    size_t bytes;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memset(rate, 0, sizeof rate);
        free(train(cx, rows[i].text, 0, NULL, &bytes));
        is_near(distance(rows[i].want), 0, 1e-12, "%s", rows[i].what);
    }
}

static void
test_resume(struct et_ctx *cx)
{
    for (int64_t stop = 3; stop <= 7; stop += 4) {
        char folder[512], name[16];
        size_t bytes, same;
        snprintf(name, sizeof name, "held-%d", (int)stop);
        snprintf(folder, sizeof folder, "%s/%s", scratch_folder(), name);
        float *whole = train(cx, HELD RAMP("10ba"), 0, NULL, &bytes);
        free(train(cx, HELD RAMP("10ba"), stop, folder, &same));
        float *rest = train(cx, HELD RAMP("10ba"), 0, folder, &same);
        ok(same == bytes && memcmp(whole, rest, bytes) == 0 &&
               distance(by_update) < 1e-12,
           "resumed after batch %d, it goes on to the same bits", (int)stop);
        free(whole);
        free(rest);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_rates(cx);
    test_resume(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
