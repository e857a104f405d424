/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c: making a trainer: parameters, metrics, the events of construction.
 *
 * Construction follows spec/trainer.md 1.3 as far as one process goes. Surgery on INIT
 * changes the tree; the flat parameter space is laid out before INIT, so that
 * algorithms find an optimizer, and again after whatever replaced modules (bind.c). */
#include "config.h"

#include <stdlib.h>

#include "core/base/comm.h"
#include "core/base/need.h"
#include "core/optim/group.h"
#include "core/recipe/options.h"
#include "core/base/sized.h"
#include "core/trainer/loop.h"
#include "core/trainer/ranks.h"
#include "core/trainer/trainer_impl.h"

struct et_state *
et_trainer_state(struct et_trainer *t)
{
    return t ? &t->state : NULL;
}

enum et_outcome
et_trainer_outcome(const struct et_trainer *t)
{
    if (!t)
        return (enum et_outcome)0;
    return t->common.outcome;
}

/* Without an optimizer: decoupled SGD at 0.1, which trains most things a little. */
static et_status
choose_default_optimizer(struct et_trainer *t, void **options)
{
    struct et_ctx *cx = t->state.cx;
    const struct et_optimizer_class *c = et_optimizer_find("decoupled_sgdw");
    et_report(cx, ET_LOG_WARN, "no optimizer given: using %s with lr 0.1",
              c->info.name);
    t->config.optimizer = c;
    ET_TRY(eti_options_new(cx, &c->info, NULL, options));
    t->config.optimizer_options = *options;
    return et_options_set(cx, c->info.options, *options, "lr", "0.1");
}

static et_status
make_optimizer(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    void *own = NULL;
    et_status status = t->config.optimizer ? ET_OK : choose_default_optimizer(t, &own);
    if (status == ET_OK)
        status =
            et_optimizer_new(s->cx, t->config.optimizer, t->config.optimizer_options,
                             s->params, &s->optimizer);
    eti_options_free(s->cx, &t->config.optimizer->info, &own);
    ET_TRY(status);
    t->config.optimizer_options = eti_optimizer_options(s->optimizer);
    return eti_groups_follow(t);
}

/* Loggers after the others, each group in the order given. */
static et_status
adopt_hooks(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    if (t->config.n_algorithms > ET_MAX_ALGORITHMS ||
        t->config.n_callbacks > ET_MAX_ALGORITHMS)
        return ET_FAIL(s->cx, ET_EINVAL, "more than %d algorithms or callbacks",
                       ET_MAX_ALGORITHMS);
    for (int i = 0; i < t->config.n_algorithms; i++)
        t->hooks.algorithm[i] = t->config.algorithms[i];
    s->algorithms = t->hooks.algorithm;
    s->n_algorithms = t->config.n_algorithms;
    if (t->config.n_passes > 0)
        ET_TRY(eti_passes_place(s->cx, t->config.passes, t->config.n_passes, s->passes,
                                &s->n_passes));
    for (int loggers = 0; loggers < 2; loggers++)
        for (int i = 0; i < t->config.n_callbacks; i++)
            if (t->config.callbacks[i]->type->is_logger == loggers)
                t->hooks.callback[s->n_callbacks++] = t->config.callbacks[i];
    s->callbacks = t->hooks.callback;
    return ET_OK;
}

et_status
eti_take_precision(struct et_trainer *t, int precision)
{
    struct et_state *s = &t->state;
    if (precision > ET_PRECISION_AMP_BF16)
        return ET_FAIL(s->cx, ET_ENOTSUP,
                       "precision amp_fp8: no device here computes in fp8");
    s->precision = precision;
    if (s->params)
        ET_TRY(et_param_space_shadow(s->params, eti_low_dtype(precision)));
    return et_graph_set_low_dtype(s->graph, eti_low_dtype(precision));
}

static et_status
build(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const int64_t two[] = {2};
    ET_TRY(eti_parts_make(t));
    if (t->config.deterministic)
        ET_TRY(et_device_set(s->dev, ET_DEVICE_DETERMINISTIC, 1));
    ET_TRY(et_graph_new(s->cx, s->dev, &s->graph));
    ET_TRY(eti_take_precision(t, s->precision));
    et_graph_set_dry(s->graph, t->config.dry);
    ET_TRY(et_log_new(s->cx, t->config.sink, &s->log));
    ET_TRY(et_tensor_new(s->cx, s->dev, ET_I64, 1, two, ET_ROW_MAJOR, "rng", &t->rng));
    ET_TRY(eti_groups_init(t));
    ET_TRY(eti_bind_parameters(t));
    ET_TRY(make_optimizer(t));
    ET_TRY(adopt_hooks(t));
    if (t->config.memory_limit)
        et_device_set_limit(s->dev, t->config.memory_limit);
    ET_TRY(eti_run(t, ET_EVENT_INIT));
    ET_TRY(eti_groups_check(t));
    ET_TRY(eti_parts_init(t));
    ET_TRY(eti_evaluators_add(t, t->config.evaluators, t->config.n_evaluators));
    ET_TRY(eti_target_init(t));
    ET_TRY(eti_set_length(t));
    ET_TRY(eti_run(t, ET_EVENT_BEFORE_LOAD));
    ET_TRY(eti_load(t));
    ET_TRY(eti_saver_begin(t));
    ET_TRY(eti_run(t, ET_EVENT_AFTER_LOAD));
    return eti_ranks_begin(t);
}

/* Read once: hooks are called some forty times in a step. */
static bool
explains(void)
{
    const char *on = getenv("ETUDE_ENGINE_DEBUG");
    return on && *on;
}

et_status
et_trainer_new_sized(struct et_ctx *cx, size_t size,
                     const struct et_trainer_config *config, struct et_trainer **out)
{
    ETI_NEED(cx, out);
    struct et_trainer_config own;
    *out = NULL;
    ET_TRY(eti_sized(cx, "struct et_trainer_config", config, size, &own, sizeof own));
    config = &own;
    if (!config->dev || !config->model)
        return ET_FAIL(cx, ET_EINVAL, "a trainer needs a device and a model");
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_trainer *t = block;
    t->config = *config;
    t->common.comm = et_comm_world(config->comm) > 1 ? config->comm : NULL;
    /* With ranks that meet within a step none can stand in for its part of one. */
    t->pieces.is_auto = config->grad_accum == 0 && config->microbatch_size == 0 &&
                        !config->deterministic &&
                        !(config->sync_batch_norm && t->common.comm);
    t->pieces.accum = config->grad_accum ? config->grad_accum : 1;
    t->evaluation.split = 1;
    t->state = (struct et_state){
        .cx = cx,
        .dev = config->dev,
        .run_name = config->run_name ? config->run_name : "run",
        .seed = config->seed,
        .precision = config->precision == ET_PRECISION_AUTO ? ET_PRECISION_FP32
                                                            : config->precision,
        .model = config->model,
        .comm = t->common.comm,
        .rank = et_comm_rank(config->comm),
        .world = et_comm_world(config->comm),
        .lr_factor = 1,
        .explains = explains(),
        .max_duration = ET_TIME_UNSET,
        .grad_accum = t->pieces.accum,
        .eval_metrics = t->evaluation.value,
    };
    eti_comm_begin(t->common.comm);
    et_status status = build(t);
    eti_comm_fail(t->common.comm, status); /* the others wait in eti_ranks_begin */
    if (status != ET_OK) {
        t->config.released = NULL; /* the caller still has what it owns */
        et_trainer_free(&t);
        return status;
    }
    *out = t;
    return ET_OK;
}

void
et_trainer_free(struct et_trainer **out)
{
    if (!out)
        return;
    struct et_trainer *t = *out;
    *out = NULL;
    if (!t)
        return;
    struct et_state *s = &t->state;
    void (*released)(void *owner) = t->config.released;
    void *owner = t->config.owner;
    for (int i = 0; i < s->n_callbacks; i++)
        if (ETI_HOOK(s->callbacks[i]->type, close))
            s->callbacks[i]->type->close(s->callbacks[i]);
    for (int i = 0; i < s->n_algorithms; i++)
        if (ETI_HOOK(s->algorithms[i]->type, close))
            s->algorithms[i]->type->close(s->algorithms[i]);
    eti_parts_free(t);
    et_free(s->cx, t->hooks.switches.v);
    for (int i = 0; i < t->hooks.n_own; i++)
        et_algorithm_free(&t->hooks.own[i]);
    eti_evaluators_drop(t, 0);
    et_tensor_free(&t->rng);
    et_optimizer_free(&s->optimizer);
    eti_unbind_parameters(t);
    eti_group_patterns_release(&t->groups.patterns);
    et_graph_free(&s->graph);
    et_log_free(&s->log);
    et_free(s->cx, t);
    if (released)
        released(owner);
}
