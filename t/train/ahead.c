/* SPDX-License-Identifier: Apache-2.0 */
/* A run gives the same bits whether its steps are recorded or not and whether the host
 * runs ahead or not, with updates that are skipped among them: on the simulated GPU, or
 * on the one that ETUDE_DEVICE names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"
#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

enum { BATCHES = 10 };

static const char *name; /* of the device */

/* What the host may do differently, each by an environment variable. */
static const struct way {
    const char *what, *variable;
} ways[] = {
    {"recorded, the host ahead", "ETUDE_NONE"},
    {"one kernel at a time", "ETUDE_CAPTURE"},
    {"each batch waited for", "ETUDE_AHEAD"},
};

struct result {
    double loss[MAX_LOSSES];
    int n_losses, skipped;
    void *params;
    size_t bytes;
};

static struct result
train(struct et_ctx *cx, const char *text, const struct way *way, int64_t grad_accum)
{
    struct recipe_run r;
    struct result out;
    setenv(way->variable, "0", 1);
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){
                       .device = name, .repeats = true, .grad_accum = grad_accum});
    r.parts.config.loss_scaling.initial = 0x1p22; /* overflows until it has come down */
    recipe_start(&r);
    recipe_fit(&r);
    memcpy(out.loss, r.loss, sizeof r.loss);
    out.n_losses = r.n_losses;
    out.skipped = r.n_losses - (int)r.state->params->slot[0].updates;
    out.params = recipe_params(&r, &out.bytes);
    recipe_close(&r);
    unsetenv(way->variable);
    return out;
}

static void
compare(struct et_ctx *cx, const char *what, const char *text, int64_t grad_accum,
        bool skips)
{
    struct result first = train(cx, text, &ways[0], grad_accum);
    is_int(first.n_losses, BATCHES, "%s: every batch has its record", what);
    ok((first.skipped > 0) == skips && first.skipped < BATCHES,
       "%s: %d updates are skipped", what, first.skipped);
    for (size_t i = 1; i < sizeof ways / sizeof ways[0]; i++) {
        struct result other = train(cx, text, &ways[i], grad_accum);
        int same = 0;
        while (same < BATCHES && first.loss[same] == other.loss[same])
            same++;
        is_int(same, BATCHES, "%s: the losses are those of %s", what, ways[i].what);
        ok(memcmp(first.params, other.params, first.bytes) == 0,
           "%s: and so are the parameters", what);
        free(other.params);
    }
    free(first.params);
}

/* ---- what observers are shown ---- */

/* Who looks at a run on whose device the host runs ahead. */
static struct watch {
    struct et_sink sink; /* first */
    struct et_sink *to;  /* that of the run */
    int64_t begun;       /* the batch that has begun last, from 0 */
    int late;            /* batches whose end was shown after the next one had begun */
    int stale;           /* of these, such that were shown with a batch */
    int records, wrong;  /* records of batches, with what is of another one */
    int64_t spoiled;     /* the loss of this batch, from 1, is no number; 0: of none */
} watch;

/* Each batch logs a name of its own. */
static et_status
log_name(struct et_algorithm *self, enum et_event event, struct et_state *s,
         struct et_log *log)
{
    char own[32];
    (void)self, (void)event;
    snprintf(own, sizeof own, "own/%lld", (long long)s->timestamp.batch + 1);
    et_log_metric(log, own, 1);
    return ET_OK;
}

static const struct et_algorithm_class naming_class = {
    .info = {.name = "naming"}, .events = ET_ON(BATCH_START), .apply = log_name};

static et_status
look(struct et_callback *self, enum et_event event, const struct et_state *s,
     struct et_log *log)
{
    (void)self, (void)log;
    if (event == ET_EVENT_BATCH_START) {
        watch.begun = s->timestamp.batch;
        return ET_OK;
    }
    const bool is_late = watch.begun >= s->timestamp.batch;
    watch.late += is_late;
    watch.stale += is_late && s->batch.x;
    return ET_OK;
}

static bool
trail(const struct et_callback *self, const struct et_state *s)
{
    (void)self, (void)s;
    return true;
}

static const struct et_callback_class looking_class = {
    .info = {.name = "looking"},
    .events = ET_ON(BATCH_START) | ET_ON(BATCH_END),
    .run = look,
    .trails = trail,
};

static void
read_record(struct et_sink *sink, const struct et_record *r)
{
    struct watch *w = (struct watch *)sink;
    int own = 0;
    for (int i = 0; r->kind == ET_RECORD_BATCH && i < r->n; i++)
        if (strncmp(r->entry[i].name, "own/", 4) == 0) {
            own++;
            w->wrong += strtol(r->entry[i].name + 4, NULL, 10) != r->ba;
        }
    w->records += own == 1;
    w->wrong += r->kind == ET_RECORD_BATCH && own != 1;
    w->to->write(w->to, r);
}

static struct et_tensor *
loss_of(void *data, struct et_state *s)
{
    struct et_tensor *loss =
        et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    (void)data;
    return s->timestamp.batch + 1 == watch.spoiled ? et_mul_scalar(s->graph, loss, NAN)
                                                   : loss;
}

/* A run that looks at itself, whose batch SPOILED, if any, leads back to a
 * checkpoint. */
static void
watch_run(struct et_ctx *cx, const char *text, int64_t spoiled)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%s/back-%d", scratch_folder(), (int)spoiled);
    const struct et_checkpoint_config to = {
        .directory = folder, .interval = ET_BATCHES(2), .keep = 1, .incarnation = 1};
    struct et_algorithm naming = {.type = &naming_class, .cx = cx}, *algorithms[8];
    struct et_callback looking = {.type = &looking_class, .cx = cx}, *callbacks[16];
    struct recipe_run r;
    recipe_prepare(
        &r, cx, text,
        &(struct recipe_choice){.device = name, .checkpoint = spoiled ? &to : NULL});
    struct et_trainer_config *c = &r.parts.config;
    watch = (struct watch){.sink = {.write = read_record}, .to = c->sink};
    watch.spoiled = spoiled;
    for (int i = 0; i < c->n_algorithms; i++)
        algorithms[i] = c->algorithms[i];
    for (int i = 0; i < c->n_callbacks; i++)
        callbacks[i] = c->callbacks[i];
    algorithms[c->n_algorithms++] = &naming;
    callbacks[c->n_callbacks++] = &looking;
    c->algorithms = algorithms;
    c->callbacks = callbacks;
    c->sink = &watch.sink;
    if (spoiled) {
        r.steps.train_loss = loss_of;
        c->nonfinite_action = ET_NONFINITE_ROLLBACK;
        c->nonfinite_grace = 1;
    }
    recipe_start(&r);
    recipe_fit(&r);
    recipe_close(&r);
}

static void
watched(struct et_ctx *cx)
{
    watch_run(cx, LENET("10ba"), 0);
    ok(watch.late > 3, "%d ends of batches come when the next has begun", watch.late);
    is_int(watch.stale, 0, "and show no batch, which the loader has back");
    is_int(watch.records, BATCHES, "each record has what its batch has logged");
    is_int(watch.wrong, 0, "and no other's");
    watch_run(cx, LENET("10ba"), 5);
    ok(watch.records >= BATCHES - 1, "a run goes back to a checkpoint, and on");
    is_int(watch.wrong, 0, "and nothing is left of what was thrown away");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    name = test_device("gpusim");
    if (strcmp(name, "gpusim") == 0) { /* where compiling and timing take longest */
        setenv("ETUDE_TUNE", "0", 0);
        setenv("ETUDE_RTC", "0", 0);
    }
    if (!have_device(cx, name))
        skip_all("the device is not there");
    watched(cx);
    compare(cx, "lenet with adamw", LENET("10ba"), 1, false);
    compare(cx, "lenet in amp_fp16", LENET("10ba") "precision: amp_fp16\n", 1, true);
    compare(cx, "lenet in amp_fp16, two microbatches",
            LENET("10ba") "precision: amp_fp16\n", 2, true);
    compare(cx, "layers in amp_bf16", LAYERS("10ba") "precision: amp_bf16\n", 1, false);
    compare(cx, "gpt2 in amp_bf16, two microbatches",
            GPT("10ba") "precision: amp_bf16\n", 2, false);
    et_ctx_free(&cx);
    return done();
}
