/* SPDX-License-Identifier: Apache-2.0 */
/* rehearse.c: begins a run and does one step of it on a small batch that is made up, to
 * find what would be wrong, without the run's data, device and weights. */
#include "config.h"

#include "core/assemble/assemble.h"
#include "core/trainer/loop.h"
#include "etude/callback.h"
#include "etude/data.h"

enum { SAMPLES = 8 }; /* of a batch: kinds and shapes do not depend on its size */

/* A small batch in one piece, prepared by the calling thread. */
static void
shrink(struct et_part *part)
{
    struct et_data_options *o = part->component ? part->options : NULL;
    if (!o)
        return;
    if (o->batch_size > SAMPLES || o->batch_size == ET_INT_UNSET)
        o->batch_size = SAMPLES;
    o->workers = 0;
}

static et_status
stop(struct et_callback *self, enum et_event event, const struct et_state *state,
     struct et_log *log)
{
    (void)event, (void)state, (void)log;
    self->stop = "one batch is enough";
    return ET_OK;
}

/* Ends the run behind its first batch. The run is as long as it will be: methods judge
 * what they are to do by its length. */
static const struct et_callback_class one_batch = {
    .info = {.name = "one_batch", .summary = "ends a rehearsal"},
    .events = ET_ON(BATCH_END),
    .run = stop,
};

/* How many schedules the run and its groups have. */
struct schedules {
    int run, group[ET_MAX_PARAM_GROUPS];
};

/* Their times are for data of another length; eti_assemble has asked them. */
static struct schedules
leave_out(struct eti_assembly *a)
{
    struct schedules n = {.run = a->config.n_schedulers};
    a->config.n_schedulers = 0;
    for (int i = 0; i < a->config.n_groups; i++) {
        n.group[i] = a->group[i]->n_schedulers;
        a->group[i]->n_schedulers = 0;
    }
    return n;
}

et_status
eti_check_callbacks(struct et_trainer *t, const struct et_recipe *recipe)
{
    for (int i = 0; i < recipe->callbacks.n; i++) {
        const struct et_part *part = &recipe->callbacks.v[i];
        if (part->component && !part->off)
            ET_TRY(eti_check_component_times(t, part->component, part->options));
    }
    return ET_OK;
}

/* What the rehearsal is without: are its times in units that the run counts? */
static et_status
check_left_out(struct et_trainer *t, const struct eti_assembly *a,
               const struct schedules *n, const struct et_recipe *recipe)
{
    ET_TRY(eti_check_scheduler_times(t, a->config.schedulers, n->run));
    for (int i = 0; i < a->config.n_groups; i++)
        ET_TRY(eti_check_scheduler_times(t, a->group[i]->schedulers, n->group[i]));
    return eti_check_callbacks(t, recipe);
}

static et_status
step(struct et_ctx *cx, struct eti_assembly *a, const struct et_recipe *recipe)
{
    struct et_trainer *t;
    struct et_callback *last;
    ET_TRY(et_callback_new(cx, &one_batch, NULL, NULL, &last));
    ET_TRY(eti_assembly_add(a, last));
    a->config.dry = true;
    const struct schedules n = leave_out(a);
    ET_TRY(et_trainer_new(cx, &a->config, &t));
    et_status status = et_trainer_fit(t, ET_TIME_UNSET);
    if (status == ET_OK)
        status = check_left_out(t, a, &n, recipe);
    if (status == ET_OK && a->config.n_evaluators > 0)
        status = et_trainer_eval(t);
    et_trainer_free(&t);
    return status;
}

/* Does the step fail because this machine lacks something (memory, a device, the data)?
 * Then the recipe may be right. */
static bool
is_elsewhere(et_status status, enum eti_stage stage)
{
    return status == ET_ENOMEM || status == ET_ENOTSUP || status == ET_EDEVICE ||
           stage == ETI_STAGE_DEVICE ||
           (stage == ETI_STAGE_DATA && status != ET_EINVAL);
}

et_status
eti_rehearse(struct et_ctx *cx, struct et_recipe *recipe, bool *tried)
{
    struct eti_assembly a;
    const struct eti_assemble_options options = {
        .device = eti_assemble_cpu,
        .threads = 1,
        .with_train = recipe->train_data.component != NULL,
        .with_eval = recipe->eval_data.n > 0,
        .stands_in = true,
    };
    shrink(&recipe->train_data);
    for (int i = 0; i < recipe->eval_data.n; i++)
        shrink(&recipe->eval_data.v[i]);
    recipe->grad_accum = 1;
    recipe->microbatch_size = ET_INT_UNSET;
    if (recipe->seed == ET_INT_UNSET)
        recipe->seed = 0;
    *tried = false;
    if (!options.with_train) /* nothing is trained: `eval` alone */
        return ET_OK;
    et_status status = eti_assemble(cx, recipe, &options, &a);
    if (status == ET_OK)
        status = step(cx, &a, recipe);
    enum eti_stage stage = a.stage;
    eti_assembly_release(&a);
    if (status != ET_OK && is_elsewhere(status, stage)) {
        et_error_clear(cx);
        return ET_OK;
    }
    *tried = true;
    return status;
}
