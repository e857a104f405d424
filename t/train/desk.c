/* SPDX-License-Identifier: Apache-2.0 */
/* desk.c: see desk.h. */
#include "t/train/desk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/seams.h"
#include "etude/functional.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "core/trainer/state.h"

static bool
next(struct et_control *c, int64_t step, struct et_request *out)
{
    struct desk *d = (struct desk *)c;
    d->now = step;
    if (d->next == d->n || d->ask[d->next].at > step + d->waits)
        return false;
    if (et_request_parse(NULL, d->ask[d->next++].text, out) != ET_OK)
        bail("a test asks in words that are none");
    snprintf(out->who, sizeof out->who, "uid:7");
    return true;
}

static void
answered(struct et_control *c, const struct et_request *r, int64_t step, bool applied,
         const char *answer)
{
    struct desk *d = (struct desk *)c;
    (void)r;
    d->step[d->n_done] = step;
    d->n_refused += !applied;
    snprintf(d->answer[d->n_done++], ET_REQUEST_ANSWER, "%s", answer);
}

static double waited; /* seconds, by the clock of runs */

static double
desk_clock(void)
{
    return eti_system.monotonic() + waited;
}

static void
wait_here(struct et_control *c)
{
    struct desk *d = (struct desk *)c;
    d->waits++;
    d->waited_at = d->now;
    waited += DESK_WAIT;
}

static void
level(struct et_control *c, enum et_log_level l)
{
    ((struct desk *)c)->level = l;
}

/* ---- a run ---- */

struct tape {
    struct et_sink sink; /* first */
    struct et_sink *to;  /* that of the run */
    struct result *result;
};

static void
record(struct et_sink *sink, const struct et_record *r)
{
    struct tape *tape = (struct tape *)sink;
    struct result *to = tape->result;
    if (r->kind == ET_RECORD_COMMAND) {
        to->ba[to->n_commands] = r->ba;
        snprintf(to->command[to->n_commands++], ET_REQUEST_TEXT, "%s", r->text);
    }
    if (r->kind == ET_RECORD_LOG && r->level == ET_LOG_WARN)
        snprintf(to->warned, sizeof to->warned, "%s", r->text);
    if (r->kind == ET_RECORD_RUN && r->text)
        snprintf(to->states + strlen(to->states),
                 sizeof to->states - strlen(to->states), "%s:%lld ", r->text,
                 (long long)r->ba);
    tape->to->write(tape->to, r);
}

static const char *
folder(void)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/checkpoints", scratch_folder());
    return path;
}

void
desk_clear(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder());
    if (system(command) != 0)
        bail("cannot clear %s", folder());
}

static int64_t spoiled; /* how->spoil of the run under way */

static struct et_tensor *
loss_of(void *data, struct et_state *s)
{
    struct et_tensor *loss =
        et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    (void)data;
    return s->timestamp.batch + 1 == spoiled ? et_mul_scalar(s->graph, loss, NAN)
                                             : loss;
}

struct desk
desk_train(struct et_ctx *cx, const struct how *how, struct result *out)
{
    struct desk d = {
        .control = {.next = next, .done = answered, .wait = wait_here, .level = level},
        .ask = how->ask,
        .n = how->n,
        .level = ET_LOG_ERROR,
    };
    const struct et_checkpoint_config to = {
        .directory = folder(),
        .interval = ET_BATCHES(how->every ? how->every : 100),
        .keep = 1,
        .incarnation = 1,
    };
    const struct et_load_config from = {.directory = folder()};
    struct recipe_run r;
    *out = (struct result){0};
    if (how->saved && !how->resumed)
        desk_clear();
    recipe_prepare(&r, cx, how->text,
                   &(struct recipe_choice){
                       .device = "cpu",
                       .repeats = true,
                       .stop_after = how->stop,
                       .checkpoint = how->saved ? &to : NULL,
                       .load = how->resumed ? &from : NULL,
                   });
    struct tape tape = {{record}, r.parts.config.sink, out};
    r.parts.config.sink = &tape.sink;
    r.parts.config.control = &d.control;
    r.parts.config.replay = how->replay;
    r.parts.config.n_replay = how->n_replay;
    r.parts.config.memory_limit = how->memory_limit;
    struct eti_seams seams = eti_system;
    seams.monotonic = desk_clock;
    eti_ctx_set_seams(cx, &seams);
    spoiled = how->spoil;
    if (how->spoil)
        r.steps.train_loss = loss_of;
    if (how->goes_back) {
        r.parts.config.nonfinite_action = ET_NONFINITE_ROLLBACK;
        r.parts.config.nonfinite_grace = 1;
    }
    recipe_start(&r);
    int64_t first = r.state->timestamp.batch;
    recipe_fit(&r);
    for (int i = 0; i < r.n_losses && first + i < BATCHES; i++)
        out->loss[first + i] = r.loss[i];
    out->batches = r.state->timestamp.batch;
    out->outcome = et_trainer_outcome(r.trainer);
    out->seconds = r.state->timestamp.total_wct;
    out->params = recipe_params(&r, &out->bytes);
    struct et_device_memory memory;
    et_device_get_memory(r.parts.dev, &memory);
    out->peak = memory.peak_bytes;
    recipe_close(&r);
    eti_ctx_set_seams(cx, &eti_system);
    return d;
}

bool
same_params(const struct result *a, const struct result *b)
{
    return a->bytes == b->bytes && memcmp(a->params, b->params, a->bytes) == 0;
}

int
same_losses(const struct result *a, const struct result *b)
{
    int i = 0;
    while (i < BATCHES && memcmp(&a->loss[i], &b->loss[i], sizeof(double)) == 0)
        i++;
    return i;
}
