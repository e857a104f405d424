/* SPDX-License-Identifier: Apache-2.0 */
/* assemble.c: see assemble.h. */
#include "config.h"

#include <string.h>

#include "core/algorithms/methods.h"
#include "core/assemble/assemble.h"
#include "core/assemble/formulas.h"
#include "core/assemble/match.h"
#include "core/assemble/parts.h"
#include "core/assemble/saving.h"
#include "core/data/stand_in.h"
#include "core/optim/group.h"
#include "core/recipe/recipe.h"
#include "etude/plugin.h"
#include "etude/run.h"

/* ---- device ---- */

/* What computes on a processor. */
#ifdef ET_CPU_DEVICE
#define ETI_CPU "cpu"
#else
#define ETI_CPU "ref"
#endif

#define ETI_GPU "cuda"

const char eti_assemble_cpu[] = ETI_CPU;

static et_status
open_cpu(struct et_ctx *cx, int threads, struct et_device **out)
{
    if (strcmp(ETI_CPU, "ref") == 0)
        et_report(cx, ET_LOG_WARN,
                  "this program was built without oneDNN: the plain C reference "
                  "computes, slowly");
    return et_device_open(cx, ETI_CPU, 0, threads, out);
}

static et_status
open_gpu(struct et_ctx *cx, struct et_device **out)
{
    et_status status = et_device_open(cx, ETI_GPU, 0, 0, out);
    if (status != ET_OK)
        et_hint(cx,
                "device=cpu trains on the processor; etude version -v lists devices");
    return status;
}

/* A GPU that is there and cannot be used is worth a word; none at all is not. */
static et_status
open_any(struct et_ctx *cx, int threads, struct et_device **out)
{
    et_status status = et_device_open(cx, ETI_GPU, 0, 0, out);
    if (status == ET_OK || status == ET_ENOMEM)
        return status;
    if (status != ET_ENOENT)
        et_report(cx, ET_LOG_WARN, "the processor computes: %s",
                  et_error_get(cx)->message);
    et_error_clear(cx);
    return open_cpu(cx, threads, out);
}

static et_status
open_named(struct et_ctx *cx, const struct et_recipe *recipe, const char *name,
           int threads, struct et_device **out)
{
    if (name)
        return et_device_open(cx, name, 0, threads, out);
    switch (recipe->device) {
    case ET_RUN_CPU:
        return open_cpu(cx, threads, out);
    case ET_RUN_GPU:
        return open_gpu(cx, out);
    default:
        return open_any(cx, threads, out);
    }
}

/* What the recipe leaves to the device. */
static void
settle(struct et_recipe *recipe, const struct et_device *dev)
{
    struct et_device_info info;
    et_device_get_info(dev, &info);
    if (recipe->device == ET_RUN_AUTO)
        recipe->device = info.host_memory ? ET_RUN_CPU : ET_RUN_GPU;
    if (recipe->precision != ET_PRECISION_AUTO)
        return;
    recipe->precision = info.fast == ET_BF16  ? ET_PRECISION_AMP_BF16
                        : info.fast == ET_F16 ? ET_PRECISION_AMP_FP16
                                              : ET_PRECISION_FP32;
}

et_status
eti_assemble_device(struct et_ctx *cx, struct et_recipe *recipe, const char *name,
                    int threads, struct et_device **out)
{
    ET_TRY(open_named(cx, recipe, name, threads, out));
    settle(recipe, *out);
    et_status status = recipe->tf32 ? et_device_set(*out, ET_DEVICE_TF32, 1) : ET_OK;
    if (status != ET_OK) {
        et_hint(cx, "tf32=false computes in fp32 everywhere");
        et_device_close(out);
    }
    return status;
}

/* The device may have been opened before. */
static et_status
take_device(struct eti_assembly *a, struct et_recipe *recipe,
            const struct eti_assemble_options *o)
{
    a->stage = ETI_STAGE_DEVICE;
    a->dev = o->dev;
    if (!a->dev)
        ET_TRY(eti_assemble_device(a->cx, recipe, o->device, o->threads, &a->dev));
    a->config.dev = a->dev;
    a->config.precision = recipe->precision;
    return ET_OK;
}

/* ---- data ---- */

static et_status
open_data(struct eti_assembly *a, const struct et_part *part, bool train,
          const struct eti_assemble_options *o, struct eti_data *out)
{
    struct et_data_options *common = part->options;
    const struct et_dataset_class *c = ETI_CLASS(dataset, part->component);
    const struct et_loader_config config = {
        .seed = (uint32_t)a->recipe->seed,
        .train = train,
        .world_size = et_comm_world(o->comm),
        .rank = et_comm_rank(o->comm),
        .dev = a->dev,
    };
    int64_t n = common->subset_num_batches;
    if (o->limit_batches > 0 && (n < 0 || n > o->limit_batches))
        common->subset_num_batches = o->limit_batches;
    a->stage = ETI_STAGE_DATA;
    et_status status = ET_ENOTSUP;
    if (o->stands_in)
        status = eti_stand_in_open(a->cx, c, part->options, &out->set);
    if (status == ET_ENOTSUP) {
        et_error_clear(a->cx);
        status = o->stands_in  ? eti_headers_open(a->cx, c, part->options, &out->set)
                 : o->is_trial ? eti_trial_open(a->cx, c, part->options, &out->set)
                               : et_dataset_open(a->cx, c, part->options, &out->set);
    }
    if (status == ET_ENOENT || status == ET_EIO || status == ET_EFORMAT)
        et_hint(a->cx, "etude data inspect %s path=... reads them alone", c->info.name);
    ET_TRY(status);
    return et_loader_new(a->cx, out->set, &config, &out->loader);
}

static et_status
open_train(struct eti_assembly *a, const struct eti_assemble_options *o)
{
    if (!o->with_train)
        return ET_OK;
    ET_TRY(open_data(a, &a->recipe->train_data, true, o, &a->train));
    a->config.train = a->train.loader;
    return ET_OK;
}

/* The regular expressions of `metrics:` as a NULL-terminated list; NULL where none. */
static et_status
copy_patterns(struct eti_assembly *a, const struct et_texts *texts, const char ***out)
{
    void *block;
    *out = NULL;
    if (texts->n == 0)
        return ET_OK;
    ET_TRY(et_alloc(a->cx, ((size_t)texts->n + 1) * sizeof **out, &block));
    *out = block;
    for (int i = 0; i < texts->n; i++)
        (*out)[i] = texts->v[i];
    return ET_OK;
}

static et_status
open_eval(struct eti_assembly *a, const struct eti_assemble_options *o)
{
    const struct et_parts *parts = &a->recipe->eval_data;
    if (!o->with_eval)
        return ET_OK;
    if (parts->n > ETI_MAX_EVAL_DATA)
        return ET_FAIL(a->cx, ET_EINVAL, "%d eval_data, at most %d are possible",
                       parts->n, ETI_MAX_EVAL_DATA);
    for (int i = 0; i < parts->n; i++) {
        const struct et_recipe_eval *extra = parts->v[i].extra;
        ET_TRY(open_data(a, &parts->v[i], false, o, &a->eval[i]));
        ET_TRY(copy_patterns(a, &extra->metrics, &a->patterns[i]));
        a->evaluator[i] = (struct et_evaluator){
            .label = extra->label,
            .loader = a->eval[i].loader,
            .interval = eti_interval(extra->interval),
            .metrics = a->patterns[i],
        };
    }
    a->config.evaluators = a->evaluator;
    a->config.n_evaluators = parts->n;
    return ET_OK;
}

/* ---- model ---- */

/* What the model reads, as the batches of the first loader there is have it. */
static void
find_facts(const struct eti_assembly *a, struct et_loader_info *info,
           struct et_model_facts *out)
{
    const struct eti_data *data = a->train.loader ? &a->train : &a->eval[0];
    memset(out, 0, sizeof *out);
    if (!data->loader)
        return;
    et_loader_get_info(data->loader, info);
    const struct et_field *x = &info->field[ET_FIELD_X];
    const int64_t *shape = info->desc[ET_FIELD_X].shape + 1;
    out->field = info->field;
    out->n_fields = info->n_fields;
    out->num_classes = et_facts_classes(&data->set->facts);
    if (x->kind == ET_FIELD_TOKENS) {
        out->vocab_size = x->below;
        out->seq_len = shape[0];
        return;
    }
    out->channels = x->ndim > 0 ? shape[0] : 1;
    out->height = x->ndim == 3 ? shape[1] : 0;
    out->width = x->ndim == 3 ? shape[2] : 0;
}

static et_status
make_model(struct eti_assembly *a)
{
    const struct et_part *part = &a->recipe->model;
    const struct et_model_class *c = ETI_CLASS(model, part->component);
    struct et_model_facts facts;
    struct et_loader_info info;
    a->stage = ETI_STAGE_PARTS;
    ET_TRY(eti_match_kind(a, c));
    find_facts(a, &info, &facts);
    const struct et_model_options *options = part->options;
    facts.registry = eti_recipe_registry(a->recipe);
    et_status status = et_model_new(a->cx, c, options, &facts, &a->model);
    if (c->info.class_size > 0) /* a plugin's: what is it of that says so? */
        status = eti_part_refused(a->cx, part, "model", -1, status);
    ET_TRY(status);
    if (a->recipe->loss.component)
        et_model_set_loss(a->model, ETI_CLASS(loss, a->recipe->loss.component),
                          a->recipe->loss.options);
    ET_TRY(eti_match_outputs(a));
    if (facts.field)
        ET_TRY(et_model_check_loss(a->model, facts.n_fields > ET_FIELD_TARGET
                                                 ? &facts.field[ET_FIELD_TARGET]
                                                 : NULL));
    a->config.model = a->model;
    const struct et_model_weights *weights = &options->weights;
    if (!weights->path && (!weights->strict || weights->ignore.n > 0))
        return ET_FAIL(a->cx, ET_EINVAL,
                       "model.weights names no file: 'path' is missing");
    if (!weights->path || (a->stands_in && !a->loads_weights))
        return ET_OK;
    a->stage = ETI_STAGE_DATA;
    return et_model_load_some_weights(a->cx, a->model, weights);
}

/* ---- optimizer and schedules ---- */

static et_status
choose_schedules(struct eti_assembly *a, const struct et_parts *parts,
                 struct et_scheduler *out, int *n)
{
    if (parts->n > ETI_MAX_SCHEDULERS)
        return ET_FAIL(a->cx, ET_EINVAL, "more than %d schedulers", ETI_MAX_SCHEDULERS);
    for (int i = 0; i < parts->n; i++)
        out[i] = (struct et_scheduler){
            .type = ETI_CLASS(scheduler, parts->v[i].component),
            .options = parts->v[i].options,
        };
    *n = parts->n;
    return ET_OK;
}

static et_status
choose_groups(struct eti_assembly *a)
{
    const struct et_recipe_optimizer *extra = a->recipe->optimizer.extra;
    int n = extra ? extra->groups.n : 0;
    if (n > ET_MAX_PARAM_GROUPS)
        return ET_FAIL(a->cx, ET_EINVAL, "%d optimizer.groups, at most %d are possible",
                       n, ET_MAX_PARAM_GROUPS);
    for (int i = 0; i < n; i++) {
        struct eti_group_options *o = extra->groups.v[i].options;
        o->is.schedulers = a->group_scheduler[i];
        ET_TRY(choose_schedules(a, &o->scheduler, a->group_scheduler[i],
                                &o->is.n_schedulers));
        a->group[i] = &o->is;
    }
    a->config.groups = a->group;
    a->config.n_groups = n;
    return ET_OK;
}

/* What is measured of stand-ins is not what the run will have. */
static et_status
settle_formulas(struct eti_assembly *a)
{
    struct eti_placeholders p;
    if (!eti_has_formulas(a->recipe))
        return ET_OK;
    eti_placeholders_of(a->recipe, a->train.loader, a->eval[0].loader, &p);
    bool all = !a->stands_in && a->config.n_evaluators == a->recipe->eval_data.n;
    return eti_formulas_settle(a->cx, a->recipe, &p, all, NULL, NULL);
}

static et_status
choose_rules(struct eti_assembly *a)
{
    const struct et_recipe *r = a->recipe;
    a->config.optimizer = ETI_CLASS(optimizer, r->optimizer.component);
    a->config.optimizer_options = r->optimizer.options;
    a->config.schedulers = a->scheduler;
    ET_TRY(choose_schedules(a, &r->scheduler, a->scheduler, &a->config.n_schedulers));
    return choose_groups(a);
}

static et_status
choose_metrics(struct eti_assembly *a)
{
    const struct et_parts *parts = &a->recipe->metrics;
    int n = 0;
    for (int i = 0; i < parts->n; i++) {
        const struct et_part *part = &parts->v[i];
        if (part->off || !part->component)
            continue;
        if (n == ETI_MAX_OWN_METRICS)
            return ET_FAIL(a->cx, ET_EINVAL, "more than %d metrics",
                           ETI_MAX_OWN_METRICS);
        a->metric[n++] = (struct et_metric_use){
            .type = ETI_CLASS(metric, part->component),
            .options = part->options,
        };
    }
    a->config.metrics = a->metric;
    a->config.n_metrics = n;
    return ET_OK;
}

/* ---- hooks ---- */

static et_status
too_many(struct eti_assembly *a, const char *what)
{
    return ET_FAIL(a->cx, ET_EINVAL, "more than %d %s", ET_MAX_ALGORITHMS, what);
}

static void
warn_of_epochs(struct eti_assembly *a, const struct et_recipe *recipe,
               const struct et_part *part)
{
    char text[256];
    if (eti_method_misses(part->component, part->options, recipe->max_duration, text,
                          sizeof text))
        et_report(a->cx, ET_LOG_WARN, "%s", text);
}

et_status
eti_assemble_algorithms(struct eti_assembly *a, struct et_recipe *recipe)
{
    int n = 0;
    a->stage = ETI_STAGE_PARTS;
    for (int i = 0; i < recipe->algorithms.n; i++) {
        struct et_part *part = &recipe->algorithms.v[i];
        if (part->off || !part->component)
            continue;
        if (n == ET_MAX_ALGORITHMS)
            return too_many(a, "algorithms");
        et_status status =
            et_algorithm_new(a->cx, ETI_CLASS(algorithm, part->component),
                             part->options, &a->algorithm[n]);
        ET_TRY(eti_part_refused(a->cx, part, "algorithms", -1, status));
        a->config.n_algorithms = ++n;
        warn_of_epochs(a, recipe, part);
    }
    a->config.algorithms = a->algorithm;
    a->config.passes =
        et_registry_passes(eti_recipe_registry(recipe), &a->config.n_passes);
    return ET_OK;
}

static et_status
make_callbacks(struct eti_assembly *a, struct et_parts *parts,
               const char *run_directory)
{
    for (int i = 0; i < parts->n; i++) {
        struct et_part *part = &parts->v[i];
        if (part->off || !part->component)
            continue;
        if (et_comm_rank(a->config.comm) > 0 &&
            !ETI_CLASS(callback, part->component)->acts)
            continue; /* rank 0 watches and writes for all */
        int n = a->config.n_callbacks;
        if (n == ET_MAX_ALGORITHMS)
            return too_many(a, "callbacks and loggers");
        ET_TRY(et_callback_new(a->cx, ETI_CLASS(callback, part->component),
                               part->options, run_directory, &a->callback[n]));
        a->config.n_callbacks = n + 1;
    }
    a->config.callbacks = a->callback;
    return ET_OK;
}

et_status
eti_assembly_add(struct eti_assembly *a, struct et_callback *c)
{
    if (a->config.n_callbacks == ET_MAX_ALGORITHMS) {
        et_callback_free(&c);
        return too_many(a, "callbacks and loggers");
    }
    a->callback[a->config.n_callbacks++] = c;
    a->config.callbacks = a->callback;
    return ET_OK;
}

/* Loggers that are not told otherwise write as many records as events.log has. */
static et_status
set_interval(struct eti_assembly *a, struct et_recipe *recipe)
{
    struct et_time every = recipe->record_interval;
    char text[64];
    if (!et_time_is_set(every))
        return ET_OK;
    et_time_text(every, text, sizeof text);
    for (int i = 0; i < recipe->loggers.n; i++) {
        const struct et_part *part = &recipe->loggers.v[i];
        const struct et_option *row = part->component ? part->component->options : NULL;
        while (row && row->name && strcmp(row->name, "record_interval") != 0)
            row++;
        if (!row || !row->name || !part->options)
            continue;
        const struct et_time *own =
            (const void *)((const char *)part->options + row->offset);
        if (!et_time_is_set(*own))
            ET_TRY(et_options_set(a->cx, part->component->options, part->options,
                                  row->name, text));
    }
    return ET_OK;
}

/* Before the others, so that what they do is in the profile. */
static et_status
make_profiler(struct eti_assembly *a, const struct et_recipe *recipe,
              const char *run_directory)
{
    if (recipe->profiler.off || !run_directory)
        return ET_OK;
    if (a->config.n_callbacks == ET_MAX_ALGORITHMS)
        return too_many(a, "callbacks and loggers");
    ET_TRY(et_profiler_new(a->cx, &recipe->profiler, run_directory,
                           &a->callback[a->config.n_callbacks]));
    a->config.n_callbacks++;
    return ET_OK;
}

et_status
eti_assemble_callbacks(struct eti_assembly *a, struct et_recipe *recipe,
                       const char *run_directory)
{
    a->stage = ETI_STAGE_PARTS;
    ET_TRY(make_profiler(a, recipe, run_directory));
    ET_TRY(make_callbacks(a, &recipe->callbacks, run_directory));
    ET_TRY(set_interval(a, recipe));
    if (run_directory)
        ET_TRY(make_callbacks(a, &recipe->loggers, run_directory));
    a->stage = ETI_STAGE_RUN;
    return ET_OK;
}

static int64_t
given(int64_t value)
{
    return value == ET_INT_UNSET ? 0 : value;
}

et_status
eti_assemble(struct et_ctx *cx, struct et_recipe *recipe,
             const struct eti_assemble_options *options, struct eti_assembly *a)
{
    *a = (struct eti_assembly){
        .cx = cx,
        .recipe = recipe,
        .config =
            {
                .max_duration = recipe->max_duration,
                .eval_interval = eti_interval(recipe->eval_interval),
                .iteration_length = recipe->iteration_length,
                .scale_schedule_ratio = recipe->scale_schedule_ratio,
                .grad_accum = given(recipe->grad_accum),
                .microbatch_size = given(recipe->microbatch_size),
                .seed = (uint32_t)recipe->seed,
                .deterministic = recipe->deterministic,
                .run_name = recipe->run_name,
                .target = recipe->target,
                .nonfinite_action = recipe->nonfinite.action,
                .nonfinite_grace = recipe->nonfinite.grace,
                .hold_schedule = recipe->nonfinite.hold_schedule,
                .sync_batch_norm = recipe->sync_batch_norm,
            },
    };
    a->config.comm = options->comm;
    a->stands_in = options->stands_in;
    a->loads_weights = options->loads_weights;
    ET_TRY(take_device(a, recipe, options));
    ET_TRY(open_train(a, options));
    ET_TRY(open_eval(a, options));
    ET_TRY(make_model(a));
    ET_TRY(settle_formulas(a));
    ET_TRY(choose_rules(a));
    ET_TRY(choose_metrics(a));
    ET_TRY(eti_assemble_algorithms(a, recipe));
    ET_TRY(eti_parts_check(a));
    a->stage = ETI_STAGE_RUN;
    return ET_OK;
}

const char *
eti_outcome_state(enum et_outcome outcome)
{
    static const char *const states[] = {
        [ET_OUTCOME_FINISHED] = "finished",
        [ET_OUTCOME_TARGET_REACHED] = "reached-target",
        [ET_OUTCOME_TARGET_MISSED] = "finished",
        [ET_OUTCOME_STOPPED] = "preempted",
        [ET_OUTCOME_UNSAVED] = "failed",
        [ET_OUTCOME_DIVERGED] = "diverged",
    };
    return states[outcome];
}

void
eti_assembly_release(struct eti_assembly *a)
{
    for (int i = 0; i < a->config.n_callbacks; i++)
        et_callback_free(&a->callback[i]);
    for (int i = 0; i < a->config.n_algorithms; i++)
        et_algorithm_free(&a->algorithm[i]);
    et_model_free(&a->model);
    for (int i = 0; i < ETI_MAX_EVAL_DATA; i++) {
        et_loader_free(&a->eval[i].loader);
        et_dataset_close(&a->eval[i].set);
        et_free(a->cx, a->patterns[i]);
    }
    et_loader_free(&a->train.loader);
    et_dataset_close(&a->train.set);
    et_device_close(&a->dev);
    memset(a, 0, sizeof *a);
}
