/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a model are frozen and thawed while it is trained: what keeps a copy of the
 * weights follows, a run that is resumed goes on with what was frozen, and nothing is
 * laid out anew for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/fault/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

#include "etude/functional.h"

enum { BATCHES = 8, FREEZE = 3, THAW = 6, STOP = 5 };

#define RUN      RESNET("8ba") "precision: fp32\n"
#define AVERAGED RUN "algorithms:\n  ema: {half_life: 2ba}\n"

static char folder[300];

/* ---- somebody who freezes all but the last layer ---- */

struct freezer {
    int64_t freeze, thaw; /* after so many batches; 0: never */
    int64_t every;        /* and so many later once more; 0: once */
    bool blur;            /* instead of freezing: max pools and convolutions replaced */
    bool again;           /* on LOADING, as the checkpoint's run had it */
    int loadings, changed;
    int64_t batch;     /* of the checkpoint */
    bool knows_frozen; /* the checkpoint says that the first layer was */
    size_t memory[2];  /* in use before and after the first change */
};

static et_status
set(struct freezer *f, struct et_state *s, bool frozen)
{
    const struct et_module_range rest = {.to = -2, .as_eval = true};
    struct et_device_memory memory;
    int n;
    et_device_get_memory(s->dev, &memory);
    if (f->changed == 0)
        f->memory[0] = memory.current_bytes;
    ET_TRY(frozen ? et_module_freeze(s->cx, s->model->root, &rest, &n)
                  : et_module_unfreeze(s->cx, s->model->root, &rest, &n));
    ET_TRY(et_state_follow_surgery(s));
    et_device_get_memory(s->dev, &memory);
    if (f->changed == 0)
        f->memory[1] = memory.current_bytes;
    f->changed += n;
    return ET_OK;
}

/* Filters that blur come as buffers, and parameters change their names. */
static et_status
blur(struct freezer *f, struct et_state *s)
{
    struct et_surgery surgery;
    et_status status =
        et_apply_blurpool(s->cx, s->model->root, true, true, true, 1, &surgery);
    f->changed = surgery.n;
    et_surgery_release(&surgery);
    return status == ET_OK ? et_state_follow_surgery(s) : status;
}

static et_status
freeze(struct et_algorithm *self, enum et_event event, struct et_state *s,
       struct et_log *log)
{
    struct freezer *f = self->state;
    char path[256];
    (void)log;
    if (f->blur && event == ET_EVENT_BATCH_END && s->timestamp.batch == FREEZE)
        return blur(f, s);
    if (event == ET_EVENT_LOADING) {
        f->loadings++;
        f->batch = s->loading->timestamp.batch;
        snprintf(path, sizeof path, "optimizer/frozen/%s", s->params->slot[0].name);
        f->knows_frozen = et_loading_has(s->loading, path);
        return f->again && f->knows_frozen ? set(f, s, true) : ET_OK;
    }
    int64_t batch = s->timestamp.batch;
    if (f->every && batch > f->every)
        batch -= f->every;
    if (f->freeze && batch == f->freeze)
        return set(f, s, true);
    return f->thaw && batch == f->thaw ? set(f, s, false) : ET_OK;
}

static const struct et_algorithm_class freezer_class = {
    .info = {.name = "freezer"},
    .events = ET_ON(BATCH_END) | ET_ON(LOADING),
    .apply = freeze,
};

/* ---- runs ---- */

struct result {
    double loss[BATCHES];
    void *params;
    size_t bytes;
    int64_t updates[2]; /* of the first parameter and of the last */
    bool frozen;        /* the first; and so in the model */
    uint64_t plans;
};

static void
train(struct et_ctx *cx, const char *text, struct freezer *f,
      struct recipe_choice choice, struct result *out)
{
    struct recipe_run r;
    struct et_algorithm own = {.type = &freezer_class, .cx = cx, .state = f};
    struct et_algorithm *list[8];
    choice.device = "cpu";
    choice.repeats = true;
    recipe_prepare(&r, cx, text, &choice);
    int n = r.parts.config.n_algorithms;
    for (int i = 0; i < n; i++)
        list[i] = r.parts.config.algorithms[i];
    list[n] = &own;
    r.parts.config.algorithms = list;
    r.parts.config.n_algorithms = n + 1;
    recipe_start(&r);
    int64_t first = r.state->timestamp.batch;
    recipe_fit(&r);
    for (int i = 0; i < r.n_losses; i++)
        out->loss[first + i] = r.loss[i];
    free(out->params);
    out->params = recipe_params(&r, &out->bytes);
    const struct et_param_space *space = r.state->params;
    out->updates[0] = space->slot[0].updates;
    out->updates[1] = space->slot[space->n - 1].updates;
    struct et_leaves leaves;
    need(cx, et_module_leaves(cx, r.state->model->root, ET_PARAM, &leaves));
    out->frozen = space->slot[0].frozen && !leaves.v[0].param->requires_grad;
    et_leaves_release(&leaves);
    struct et_graph_stats stats;
    et_graph_get_stats(r.state->graph, &stats);
    out->plans = stats.plans_built;
    recipe_close(&r);
}

static bool
same(const struct result *a, const struct result *b)
{
    return memcmp(a->loss, b->loss, sizeof a->loss) == 0 && a->bytes == b->bytes &&
           memcmp(a->params, b->params, a->bytes) == 0;
}

static void
test_midway(struct et_ctx *cx)
{
    struct result plain = {0}, averaged = {0}, whole = {0};
    struct freezer f = {.freeze = FREEZE, .thaw = THAW}, g = f, none = {0};
    train(cx, RUN, &f, (struct recipe_choice){0}, &plain);
    ok(plain.updates[0] == BATCHES - (THAW - FREEZE) && plain.updates[1] == BATCHES,
       "what is frozen for three batches is updated three times less");
    ok(f.memory[0] == f.memory[1], "freezing takes no memory of the device");
    train(cx, AVERAGED, &g, (struct recipe_choice){0}, &averaged);
    ok(same(&plain, &averaged), "an average of the weights goes on beside it");
    train(cx, RUN, &none, (struct recipe_choice){0}, &whole);
    ok(!same(&plain, &whole), "(and training is another one)");
    is_int(
        (int64_t)(plain.plans - whole.plans), 2,
        "freezing makes one more plan, and thawing, with fewer updates of a part, one");
    struct freezer often = {.freeze = 1, .thaw = 2, .every = 3};
    train(cx, RUN, &often, (struct recipe_choice){0}, &plain);
    ok(plain.updates[0] == BATCHES - 2 && plain.plans - whole.plans == 2,
       "which stay two when it is frozen and thawed again");
    free(plain.params);
    free(averaged.params);
    free(whole.params);
}

static void
test_surgery(struct et_ctx *cx)
{
    struct result plain = {0}, averaged = {0};
    struct freezer f = {.blur = true}, g = f;
    train(cx, RUN, &f, (struct recipe_choice){0}, &plain);
    train(cx, AVERAGED, &g, (struct recipe_choice){0}, &averaged);
    ok(f.changed > 0 && f.changed == g.changed && same(&plain, &averaged),
       "an average goes on where modules are replaced in the midst of a run");
    free(plain.params);
    free(averaged.params);
}

static void
test_resume(struct et_ctx *cx, bool again, const char *what)
{
    const struct et_checkpoint_config to = {
        .directory = folder, .interval = ET_BATCHES(100), .keep = 1, .incarnation = 1};
    const struct et_load_config from = {.directory = folder};
    struct result whole = {0}, parts = {0};
    struct freezer f = {.freeze = FREEZE}, g = f, later = {.again = again};
    train(cx, AVERAGED, &f, (struct recipe_choice){.checkpoint = &to}, &whole);
    remove_tree(folder);
    train(cx, AVERAGED, &g,
          (struct recipe_choice){.checkpoint = &to, .stop_after = STOP}, &parts);
    train(cx, AVERAGED, &later,
          (struct recipe_choice){.checkpoint = &to, .load = &from}, &parts);
    ok(parts.frozen && parts.updates[0] == FREEZE && parts.updates[1] == BATCHES,
       "a run that is resumed, %s, goes on with what was frozen", what);
    ok(later.loadings == 1 && later.batch == STOP && later.knows_frozen,
       "LOADING tells the checkpoint's clock, and what was frozen there");
    if (again)
        ok(same(&whole, &parts), "and goes on bit for bit");
    free(whole.params);
    free(parts.params);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    snprintf(folder, sizeof folder, "%s/checkpoints", scratch_folder());
    test_midway(cx);
    test_surgery(cx);
    test_resume(cx, false, "by a program that freezes nothing");
    test_resume(cx, true, "by one that freezes on LOADING");
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
