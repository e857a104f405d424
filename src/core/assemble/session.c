/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: see etude/session.h: a recipe trained, evaluated or asked by a program;
 * and et_trainer_from_recipe, whose trainer is a session's and owns it. */
#include "config.h"

#include "etude/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/assemble/assemble.h"
#include "core/assemble/saving.h"
#include "core/base/need.h"
#include "core/recipe/recipe.h"
#include "core/trainer/state.h"

struct et_session {
    struct et_sink sink; /* of the trainer: first, for it is what write is given */
    struct et_ctx *cx;
    struct et_recipe *recipe;
    struct eti_assembly a;
    struct eti_origin_run from; /* checkpoints "": a recipe */
    struct et_load_config load;
    struct eti_saving saving;
    struct et_run *run;
    struct et_trainer *trainer;
    struct et_graph *graph; /* of predictions; NULL: none yet */
    char *resolved, *directory;
    char digest[ETI_RECIPE_DIGEST];
    bool no_directory, is_assembled;
    bool resumes;        /* DIRECTORY holds a run, which goes on */
    bool is_trainers;    /* et_trainer_from_recipe: it ends with the trainer */
    bool is_begun;       /* the trainer is of a run, and may train */
    bool trained;        /* a fit has come to its end */
    const char *outcome; /* of the run; NULL: it has not ended */
    struct et_algorithm *algorithm[ET_MAX_ALGORITHMS]; /* the recipe's, the caller's */
    struct et_algorithm *const *algorithms;            /* the caller's */
    int n_algorithms;
    struct et_callback *callback[ET_MAX_ALGORITHMS]; /* likewise */
    struct et_callback *const *callbacks;
    int n_callbacks;
    struct et_sink *own_sink; /* the caller's; NULL: none */
    uint64_t events;
    et_session_fn *fn;
    void *data;
    volatile int interrupt;
};

/* ---- what is called at events ---- */

/* Records go to the run until it has ended. Evaluations after that do not belong to
 * it. */
static void
write_record(struct et_sink *sink, const struct et_record *record)
{
    struct et_session *s = (struct et_session *)sink;
    if (s->run && !s->outcome)
        et_run_sink(s->run)->write(et_run_sink(s->run), record);
    if (s->own_sink)
        s->own_sink->write(s->own_sink, record);
}

/* What the two callbacks below keep. */
struct hook {
    struct et_session *session;
};

static et_status
run_hook(struct et_callback *self, enum et_event event, const struct et_state *state,
         struct et_log *log)
{
    const struct et_session *s = ((struct hook *)self->state)->session;
    (void)log;
    if (!s || !(s->events & UINT64_C(1) << event))
        return ET_OK;
    et_status status = s->fn(s->data, event, state);
    return status == ET_OK || et_error_get(s->cx)->status != ET_OK
               ? status
               : ET_FAIL(s->cx, status, "the session's function failed at %s",
                         et_event_name(event));
}

static const struct et_callback_class hook_class = {
    .info = {.name = "session",
             .class_name = "Session",
             .summary = "a function of the program that trains",
             .applies_to = "any"},
    .state_size = sizeof(struct hook),
    .events = ET_ON_ALL,
    .run = run_hook,
};

static et_status
watch_fit(struct et_callback *self, enum et_event event, const struct et_state *state,
          struct et_log *log)
{
    struct et_session *s = ((struct hook *)self->state)->session;
    (void)state;
    (void)log;
    s->trained = event == ET_EVENT_FIT_END;
    return ET_OK;
}

static et_status end_run(struct et_session *s, const char *state, int code);

/* The trainer ends: so does a run that its user has trained himself. */
static void
end_with_trainer(struct et_callback *self)
{
    struct et_session *s = ((struct hook *)self->state)->session;
    if (s->outcome || !s->trainer)
        return;
    enum et_outcome outcome = et_trainer_outcome(s->trainer);
    bool is_good = s->trained && outcome <= ET_OUTCOME_TARGET_REACHED;
    s->outcome = s->trained ? eti_outcome_state(outcome) : "failed";
    (void)!end_run(s, s->outcome, !is_good); /* nobody is there to be told */
}

static const struct et_callback_class end_class = {
    .info = {.name = "session_end",
             .class_name = "SessionEnd",
             .summary = "ends the run with its trainer",
             .applies_to = "any"},
    .state_size = sizeof(struct hook),
    .events = ET_ON(FIT_START) | ET_ON(FIT_END),
    .run = watch_fit,
    .close = end_with_trainer,
};

static et_status
add_callback(struct et_session *s, const struct et_callback_class *type)
{
    struct et_callback *c;
    ET_TRY(et_callback_new(s->cx, type, NULL, NULL, &c));
    ((struct hook *)c->state)->session = s;
    return eti_assembly_add(&s->a, c);
}

/* The caller's own stand behind those of the recipe. */
static et_status
add_own(struct et_session *s)
{
    struct et_trainer_config *c = &s->a.config;
    if (c->n_algorithms + s->n_algorithms > ET_MAX_ALGORITHMS ||
        c->n_callbacks + s->n_callbacks > ET_MAX_ALGORITHMS)
        return ET_FAIL(s->cx, ET_EINVAL, "more than %d algorithms or callbacks",
                       ET_MAX_ALGORITHMS);
    memcpy(s->algorithm, s->a.algorithm, sizeof s->algorithm);
    memcpy(s->callback, s->a.callback, sizeof s->callback);
    for (int i = 0; i < s->n_algorithms; i++)
        s->algorithm[c->n_algorithms + i] = s->algorithms[i];
    for (int i = 0; i < s->n_callbacks; i++)
        s->callback[c->n_callbacks + i] = s->callbacks[i];
    return ET_OK;
}

/* ---- the recipe ---- */

/* Is PATH a run or a checkpoint? */
static bool
is_origin(struct et_session *s, const char *path)
{
    bool found = eti_origin_find(s->cx, path, &s->from) == ET_OK;
    if (!found) {
        et_error_clear(s->cx);
        s->from = (struct eti_origin_run){0};
    }
    return found && s->from.directory[0];
}

/* The run in DIRECTORY goes on: what it drew is not drawn again, and the recipe differs
 * from its own only where it may. */
static et_status
go_on(struct et_session *s, const struct et_session_options *o,
      struct et_diagnostics *errors)
{
    char path[ETI_RUN_PATH + 32];
    struct et_recipe *then;
    snprintf(path, sizeof path, "%s/recipe.resolved.yaml", s->directory);
    ET_TRY(et_recipe_load(s->cx, path, NULL, 0, o->env, &then, errors));
    et_status status = eti_resume_take_over(s->cx, then, s->recipe);
    if (status == ET_OK)
        status = eti_recipe_check_resume(s->cx, then, s->recipe, errors);
    et_recipe_free(&then);
    return status;
}

static et_status
read_recipe(struct et_session *s, const char *path, const struct et_session_options *o,
            struct et_diagnostics *errors)
{
    char of_run[ETI_RUN_PATH + 32];
    if (is_origin(s, path)) {
        snprintf(of_run, sizeof of_run, "%s/recipe.resolved.yaml", s->from.directory);
        path = of_run;
        s->load = (struct et_load_config){
            .directory = s->from.checkpoints,
            .name = s->from.name[0] ? s->from.name : NULL,
            .weights_only = true,
        };
    }
    ET_TRY(et_recipe_load(s->cx, path, o->overrides, o->n_overrides, o->env, &s->recipe,
                          errors));
    struct et_parts *loggers = &s->recipe->loggers;
    for (int i = 0; o->no_directory && i < loggers->n; i++)
        loggers->v[i].off = true; /* they write there */
    ET_TRY(eti_recipe_check_available(s->cx, s->recipe, errors));
    if (s->is_trainers || (!o->no_train && s->recipe->train_data.component))
        ET_TRY(et_recipe_check_train(s->cx, s->recipe, 1, errors));
    return s->resumes ? go_on(s, o, errors) : ET_OK;
}

/* What the recipe leaves open: seed, name, device. It is written down then. */
static et_status
settle(struct et_session *s, const struct et_session_options *o)
{
    char drawn[ET_RUN_NAME];
    uint64_t random[2] = {0};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return ET_FAIL(s->cx, ET_EIO, "the system gives no random numbers");
    if (s->recipe->seed == ET_INT_UNSET)
        s->recipe->seed = (int64_t)(random[0] & 0xffffffffu);
    if (!s->recipe->run_name || s->from.directory[0])
        ET_TRY(et_options_set(s->cx, et_recipe_table, s->recipe, "run_name",
                              et_run_name_draw(random[1], drawn)));
    struct et_device *dev;
    ET_TRY(eti_assemble_device(s->cx, s->recipe, o->device, o->threads, &dev));
    s->a.dev = dev; /* freed with the assembly, which has nothing else yet */
    ET_TRY(et_recipe_resolved(s->cx, s->recipe, &s->resolved));
    return eti_recipe_digest(s->cx, s->recipe, s->digest);
}

static et_status
assemble(struct et_session *s, const struct et_session_options *o)
{
    bool has_train = !o->no_train && s->recipe->train_data.component;
    bool has_eval = !o->no_eval && s->recipe->eval_data.n > 0;
    const struct eti_assemble_options options = {
        .dev = s->a.dev,
        .threads = o->threads,
        .with_train = has_train || !has_eval,
        .with_eval = has_eval,
        .stands_in = !has_train && !has_eval, /* for the shapes alone */
        .loads_weights = !s->from.directory[0],
    };
    s->is_assembled = true;
    return eti_assemble(s->cx, s->recipe, &options, &s->a);
}

static et_status
keep_options(struct et_session *s, const struct et_session_options *o)
{
    void *copy;
    s->no_directory = o->no_directory;
    s->algorithms = o->algorithms;
    s->n_algorithms = o->n_algorithms;
    s->callbacks = o->callbacks;
    s->n_callbacks = o->n_callbacks;
    s->own_sink = o->sink;
    s->events = o->events;
    s->fn = o->fn;
    s->data = o->data;
    if (!o->directory)
        return ET_OK;
    size_t n = strlen(o->directory) + 1;
    if (n > ETI_RUN_PATH)
        return ET_FAIL(s->cx, ET_EINVAL, "the name of the run's directory is too long");
    ET_TRY(et_alloc(s->cx, n, &copy));
    s->directory = memcpy(copy, o->directory, n);
    s->resumes = o->resume && !o->no_directory && eti_is_run(s->cx, s->directory);
    return ET_OK;
}

static et_status
open_session(struct et_ctx *cx, const char *path,
             const struct et_session_options *options, struct et_diagnostics *errors,
             bool is_trainers, struct et_session **out)
{
    static const struct et_session_options plain = {.threads = 0};
    struct et_diagnostics own = {0};
    void *block;
    *out = NULL;
    options = options ? options : &plain;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_session *s = block;
    s->cx = cx;
    s->is_trainers = is_trainers;
    et_status status = keep_options(s, options);
    if (status == ET_OK)
        status = read_recipe(s, path, options, errors ? errors : &own);
    if (status == ET_OK)
        status = settle(s, options);
    if (status == ET_OK)
        status = assemble(s, options);
    if (status != ET_OK)
        et_session_close(&s);
    *out = s;
    return status;
}

et_status
et_session_open(struct et_ctx *cx, const char *path,
                const struct et_session_options *options, struct et_diagnostics *errors,
                struct et_session **out)
{
    ETI_NEED(cx, cx, path, out);
    return open_session(cx, path, options, errors, false, out);
}

/* ---- the run ---- */

static et_status
begin_saving(struct et_session *s)
{
    struct et_checkpoint_info *list = NULL;
    int n = 0, damaged = 0, unfinished;
    ET_TRY(eti_saving_init(&s->saving, s->cx, s->recipe, s->digest, s->run));
    if (s->resumes)
        ET_TRY(et_checkpoint_list(s->cx, s->saving.directory, &list, &n, &damaged,
                                  &unfinished));
    et_free(s->cx, list);
    if (n > 0 || damaged > 0)
        eti_saving_resume(&s->saving, NULL);
    return ET_OK;
}

static et_status
open_run(struct et_session *s)
{
    struct et_device_info info;
    struct et_callback *watch;
    size_t size;
    const char *bytes = et_recipe_bytes(s->recipe, &size);
    et_device_get_info(s->a.dev, &info);
    const struct et_run_config config = {
        .directory = s->directory,
        .name = s->recipe->run_name,
        .recipe = bytes,
        .recipe_bytes = size,
        .resolved = s->resolved,
        .threads = info.threads,
        .record_interval = s->recipe->record_interval,
        .resume = s->resumes,
    };
    ET_TRY(et_run_open(s->cx, &config, &s->run));
    ET_TRY(et_run_watch(s->cx, &watch));
    ET_TRY(eti_assembly_add(&s->a, watch));
    ET_TRY(add_callback(s, &end_class));
    return begin_saving(s);
}

static void
release_with_trainer(void *owner)
{
    struct et_session *s = owner;
    s->trainer = NULL;
    et_session_close(&s);
}

/* Makes the trainer, unless it is there: IS_RUN: of a run, which it begins. */
static et_status
begin(struct et_session *s, bool is_run)
{
    struct et_trainer_config *config = &s->a.config;
    bool has_run = is_run && !s->no_directory;
    if (s->trainer)
        return ET_OK;
    if (has_run) {
        ET_TRY(open_run(s));
        eti_saving_apply(&s->saving, config);
    }
    if (is_run)
        ET_TRY(eti_assemble_callbacks(&s->a, s->recipe,
                                      has_run ? et_run_directory(s->run) : NULL));
    if (s->fn && s->events)
        ET_TRY(add_callback(s, &hook_class));
    if (s->from.checkpoints[0])
        config->load = &s->load;
    s->is_begun = is_run;
    s->sink.write = write_record;
    config->sink = s->run || s->own_sink ? &s->sink : NULL;
    config->interrupt = &s->interrupt;
    config->registry = eti_recipe_registry(s->recipe);
    config->released = s->is_trainers ? release_with_trainer : NULL;
    config->owner = s;
    ET_TRY(add_own(s));
    /* (The assembly frees those that it counts: the recipe's.) */
    struct et_trainer_config all = *config;
    all.algorithms = s->algorithm;
    all.n_algorithms += s->n_algorithms;
    all.callbacks = s->callback;
    all.n_callbacks += s->n_callbacks;
    return et_trainer_new(s->cx, &all, &s->trainer);
}

static et_status
end_run(struct et_session *s, const char *state, int code)
{
    if (!s->run)
        return ET_OK;
    const struct et_state *now = s->trainer ? et_trainer_state(s->trainer) : NULL;
    struct et_run_report report;
    if (now)
        report = (struct et_run_report){
            .ts = now->timestamp,
            .reason = now->stop_reason,
            .metrics = now->eval_metrics,
            .n_metrics = now->n_eval_metrics,
            .microbatches = now->grad_accum,
        };
    return et_run_finish(s->run, state, code, now ? &report : NULL);
}

static et_status
may_train(const struct et_session *s)
{
    if (s->outcome || (s->trainer && !s->is_begun))
        return ET_FAIL(s->cx, ET_EINVAL,
                       "a session trains once, before it evaluates or predicts");
    if (!s->a.train.loader || s->a.stands_in)
        return ET_FAIL(s->cx, ET_EINVAL, "the session has no train_data");
    return ET_OK;
}

et_status
et_session_trainer(struct et_session *s, struct et_trainer **out)
{
    ETI_NEED(s ? s->cx : NULL, s, out);
    *out = NULL;
    ET_TRY(begin(s, s->a.train.loader && !s->a.stands_in));
    *out = s->trainer;
    return ET_OK;
}

et_status
et_trainer_from_recipe(struct et_ctx *cx, const char *path,
                       const struct et_session_options *options,
                       struct et_diagnostics *errors, struct et_trainer **out)
{
    ETI_NEED(cx, cx, path, out);
    struct et_session *s;
    *out = NULL;
    ET_TRY(open_session(cx, path, options, errors, true, &s));
    et_status status = may_train(s);
    if (status == ET_OK)
        status = begin(s, true);
    *out = s->trainer;
    if (status != ET_OK)
        et_session_close(&s);
    return status;
}

et_status
et_session_fit(struct et_session *s)
{
    ETI_NEED(s ? s->cx : NULL, s);
    ET_TRY(may_train(s));
    et_status status = begin(s, true);
    if (status == ET_OK)
        status = et_trainer_fit(s->trainer, ET_TIME_UNSET);
    if (status == ET_OK) {
        enum et_outcome outcome = et_trainer_outcome(s->trainer);
        s->outcome = eti_outcome_state(outcome);
        return end_run(s, s->outcome, outcome > ET_OUTCOME_TARGET_REACHED);
    }
    s->outcome = status == ET_ENOMEM ? "oom" : "failed";
    if (s->run)
        et_run_note(s->run, ET_LOG_ERROR, et_error_get(s->cx)->message);
    (void)!end_run(s, s->outcome, 1); /* what went wrong is said by what stands */
    return status;
}

const char *
et_session_outcome(const struct et_session *s)
{
    if (!s)
        return NULL;
    return s->outcome;
}

void
et_session_stop(struct et_session *s)
{
    if (!s)
        return;
    s->interrupt = 1;
}

et_status
et_session_eval(struct et_session *s)
{
    ETI_NEED(s ? s->cx : NULL, s);
    ET_TRY(begin(s, false));
    return et_trainer_eval(s->trainer);
}

/* ---- predictions ---- */

static et_status
compute(struct et_session *s, struct et_tensor *x, struct et_tensor **out)
{
    struct et_graph *g = s->graph;
    struct et_forward f = {.g = g};
    void *values;
    struct et_tensor *y = et_cast(g, et_model_forward(s->a.model, &f, x), ET_F32),
                     *leaf = NULL;
    ET_TRY(et_eval(g, &y, 1));
    size_t bytes = et_desc_bytes(&y->desc);
    ET_TRY(et_alloc(s->cx, bytes, &values));
    et_status status = et_tensor_read(s->cx, y, values, bytes);
    if (status == ET_OK)
        status = et_tensor_new(s->cx, s->a.dev, ET_F32, y->desc.ndim, y->desc.shape,
                               ET_ROW_MAJOR, NULL, &leaf);
    if (status == ET_OK)
        status = et_tensor_write(s->cx, leaf, values, bytes);
    if (status != ET_OK)
        et_tensor_free(&leaf);
    et_free(s->cx, values);
    *out = leaf;
    return status;
}

et_status
et_session_predict(struct et_session *s, struct et_tensor *x, struct et_tensor **out)
{
    ETI_NEED(s ? s->cx : NULL, s, x, out);
    *out = NULL;
    ET_TRY(begin(s, false));
    if (!s->graph)
        ET_TRY(et_graph_new(s->cx, s->a.dev, &s->graph));
    et_status status = compute(s, x, out);
    et_graph_reset(s->graph);
    return status;
}

/* ---- what it has ---- */

void
et_session_close(struct et_session **session)
{
    if (!session)
        return;
    struct et_session *s = *session;
    *session = NULL;
    if (!s)
        return;
    struct et_trainer *t = s->trainer; /* which end_with_trainer looks at meanwhile */
    et_graph_free(&s->graph);
    et_trainer_free(&t);
    s->trainer = NULL;
    if (s->run && !s->outcome) /* it has not come to a trainer */
        (void)!end_run(s, "failed", 1);
    eti_saving_release(&s->saving);
    if (s->is_assembled)
        eti_assembly_release(&s->a);
    else
        et_device_close(&s->a.dev);
    et_run_close(&s->run);
    et_recipe_free(&s->recipe);
    et_free(s->cx, s->resolved);
    et_free(s->cx, s->directory);
    et_free(s->cx, s);
}

struct et_device *
et_session_device(struct et_session *s)
{
    if (!s)
        return NULL;
    return s->a.dev;
}

struct et_model *
et_session_model(struct et_session *s)
{
    if (!s)
        return NULL;
    return s->a.model;
}

const struct et_state *
et_session_state(struct et_session *s)
{
    if (!s)
        return NULL;
    return s->trainer ? et_trainer_state(s->trainer) : NULL;
}

const char *
et_session_directory(const struct et_session *s)
{
    if (!s)
        return NULL;
    return s->run ? et_run_directory(s->run) : NULL;
}

const char *
et_session_recipe(const struct et_session *s)
{
    if (!s)
        return NULL;
    return s->resolved;
}

struct et_loader *
et_session_loader(struct et_session *s, int i)
{
    if (!s)
        return NULL;
    if (s->a.stands_in || i >= ETI_MAX_EVAL_DATA)
        return NULL;
    return i < 0 ? s->a.train.loader : s->a.eval[i].loader;
}
