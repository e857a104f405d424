/* setup.c: making a trainer: parameters, metrics, the events of construction.
 *
 * Construction follows spec/trainer.md 1.3 as far as one process goes. Surgery on INIT
 * changes the tree; the flat parameter space is laid out before INIT, so that
 * algorithms find an optimizer, and again after whatever replaced modules (bind.c). */
#include "config.h"

#include <math.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"

/* Events that come at every batch, and do not need the last one's numbers. */
static bool
is_within_batch(enum et_event event)
{
    const uint64_t within =
        ET_ON(BEFORE_DATALOADER) | ET_ON(AFTER_DATALOADER) | ET_ON(BATCH_START) |
        ET_ON(BEFORE_TRAIN_BATCH) | ET_ON(BEFORE_FORWARD) | ET_ON(AFTER_FORWARD) |
        ET_ON(BEFORE_LOSS) | ET_ON(AFTER_LOSS) | ET_ON(BEFORE_BACKWARD) |
        ET_ON(AFTER_BACKWARD) | ET_ON(AFTER_TRAIN_BATCH) | ET_ON(BATCH_CHECKPOINT);
    return within >> event & 1;
}

et_status
eti_run(struct et_trainer *t, enum et_event event)
{
    if (t->readback.n > 0 && !is_within_batch(event))
        ET_TRY(eti_readback_deliver(t, 0));
    ET_TRY(eti_step_at(t, event));
    return et_engine_run(&t->state, event, NULL, NULL);
}

struct et_state *
et_trainer_state(struct et_trainer *t)
{
    return &t->state;
}

enum et_outcome
et_trainer_outcome(const struct et_trainer *t)
{
    return t->outcome;
}

static et_status
new_metric(struct et_trainer *t, const struct et_metric_class *c,
           struct et_metric **out)
{
    struct et_metric_options options;
    ET_TRY(et_options_init(t->state.cx, c->info.options, &options));
    options.num_classes = t->state.model->num_classes;
    options.model = t->state.model;
    return et_metric_new(t->state.cx, t->state.dev, c, &options, out);
}

et_status
eti_metrics_new(struct et_trainer *t, const char *names, struct et_metric **out, int *n)
{
    char name[64];
    while (*names) {
        size_t length = strcspn(names, " ");
        if (length >= sizeof name || *n == ETI_MAX_METRICS)
            return ET_FAIL(t->state.cx, ET_EINTERNAL, "bad list of metrics '%s'",
                           names);
        memcpy(name, names, length);
        name[length] = '\0';
        names += length + (names[length] == ' ');
        const struct et_metric_class *c = et_metric_find(name);
        if (!c)
            return ET_FAIL(t->state.cx, ET_EINTERNAL, "there is no metric %s", name);
        ET_TRY(new_metric(t, c, &out[*n]));
        (*n)++;
    }
    return ET_OK;
}

/* Without an optimizer: decoupled SGD at 0.1, which trains most things a little. */
static et_status
choose_default_optimizer(struct et_trainer *t)
{
    struct et_ctx *cx = t->state.cx;
    const struct et_optimizer_class *c = et_optimizer_find("decoupled_sgdw");
    et_report(cx, ET_LOG_WARN, "no optimizer given: using %s with lr 0.1",
              c->info.name);
    ET_TRY(et_alloc(cx, c->info.options_size, &t->own_options));
    ET_TRY(et_options_init(cx, c->info.options, t->own_options));
    ET_TRY(et_options_set(cx, c->info.options, t->own_options, "lr", "0.1"));
    t->config.optimizer = c;
    t->config.optimizer_options = t->own_options;
    return ET_OK;
}

static et_status
make_optimizer(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    if (!t->config.optimizer)
        ET_TRY(choose_default_optimizer(t));
    ET_TRY(et_optimizer_new(s->cx, t->config.optimizer, t->config.optimizer_options,
                            s->params, &s->optimizer));
    return eti_groups_follow(t);
}

static et_status
make_leaves(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const int64_t one[] = {1}, two[] = {2};
    ET_TRY(et_tensor_new(s->cx, s->dev, ET_I64, 1, two, ET_ROW_MAJOR, "rng", &t->rng));
    return et_tensor_new(s->cx, s->dev, ET_F32, 1, one, ET_ROW_MAJOR,
                         "loss/train/total", &t->total);
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
        t->algorithm[i] = t->config.algorithms[i];
    s->algorithms = t->algorithm;
    s->n_algorithms = t->config.n_algorithms;
    s->passes = t->config.passes;
    s->n_passes = t->config.n_passes;
    for (int loggers = 0; loggers < 2; loggers++)
        for (int i = 0; i < t->config.n_callbacks; i++)
            if (t->config.callbacks[i]->type->is_logger == loggers)
                t->callback[s->n_callbacks++] = t->config.callbacks[i];
    s->callbacks = t->callback;
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
    if (t->config.deterministic)
        ET_TRY(et_device_set(s->dev, ET_DEVICE_DETERMINISTIC, 1));
    ET_TRY(et_graph_new(s->cx, s->dev, &s->graph));
    ET_TRY(eti_take_precision(t, s->precision));
    et_graph_set_dry(s->graph, t->config.dry);
    ET_TRY(et_log_new(s->cx, t->config.sink, &s->log));
    ET_TRY(make_leaves(t));
    ET_TRY(eti_scaler_init(t));
    ET_TRY(eti_groups_init(t));
    ET_TRY(eti_bind_parameters(t));
    ET_TRY(make_optimizer(t));
    ET_TRY(adopt_hooks(t));
    if (t->config.memory_limit)
        et_device_set_limit(s->dev, t->config.memory_limit);
    ET_TRY(eti_run(t, ET_EVENT_INIT));
    ET_TRY(eti_groups_check(t));
    ET_TRY(eti_metrics_new(t, et_task_metrics(s->model->type->task, true),
                           t->train_metric, &t->n_train_metrics));
    ET_TRY(eti_readback_init(t));
    ET_TRY(eti_ranks_init(t));
    ET_TRY(eti_evaluators_add(t, t->config.evaluators, t->config.n_evaluators));
    ET_TRY(eti_target_init(t));
    ET_TRY(eti_set_length(t));
    ET_TRY(eti_run(t, ET_EVENT_BEFORE_LOAD));
    ET_TRY(eti_load(t));
    ET_TRY(eti_saver_init(t));
    ET_TRY(eti_run(t, ET_EVENT_AFTER_LOAD));
    return eti_ranks_begin(t);
}

et_status
et_trainer_new(struct et_ctx *cx, const struct et_trainer_config *config,
               struct et_trainer **out)
{
    *out = NULL;
    if (!config->dev || !config->model)
        return ET_FAIL(cx, ET_EINVAL, "a trainer needs a device and a model");
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_trainer *t = block;
    t->config = *config;
    t->is_auto = config->grad_accum == 0 && config->microbatch_size == 0 &&
                 !config->deterministic;
    t->accum = config->grad_accum ? config->grad_accum : 1;
    t->eval_split = 1;
    t->state = (struct et_state){
        .cx = cx,
        .dev = config->dev,
        .run_name = config->run_name ? config->run_name : "run",
        .seed = config->seed,
        .precision = config->precision == ET_PRECISION_AUTO ? ET_PRECISION_FP32
                                                            : config->precision,
        .model = config->model,
        .rank = et_comm_rank(config->comm),
        .world = et_comm_world(config->comm),
        .lr_factor = 1,
        .max_duration = ET_TIME_UNSET,
        .grad_accum = t->accum,
        .train_metrics = t->train_value,
        .eval_metrics = t->eval_value,
    };
    et_status status = build(t);
    if (status != ET_OK) {
        et_trainer_free(&t);
        return status;
    }
    *out = t;
    return ET_OK;
}

void
et_trainer_free(struct et_trainer **out)
{
    struct et_trainer *t = *out;
    *out = NULL;
    if (!t)
        return;
    struct et_state *s = &t->state;
    for (int i = 0; i < s->n_callbacks; i++)
        if (s->callbacks[i]->type->close)
            s->callbacks[i]->type->close(s->callbacks[i]);
    for (int i = 0; i < s->n_algorithms; i++)
        if (s->algorithms[i]->type->close)
            s->algorithms[i]->type->close(s->algorithms[i]);
    eti_saver_free(t);
    eti_readback_release(t);
    eti_ranks_release(t);
    et_free(s->cx, t->controlled.superseded);
    for (int i = 0; i < t->n_own_algorithms; i++)
        et_algorithm_free(&t->own_algorithm[i]);
    eti_evaluators_drop(t, 0);
    for (int i = 0; i < t->n_train_metrics; i++)
        et_metric_free(&t->train_metric[i]);
    et_tensor_free(&t->rng);
    et_tensor_free(&t->total);
    et_tensor_free(&t->grad_sum);
    eti_free_parts(t);
    eti_scaler_release(t);
    et_optimizer_free(&s->optimizer);
    eti_stats_release(t);
    eti_unbind_parameters(t);
    eti_group_patterns_release(&t->groups.patterns);
    et_graph_free(&s->graph);
    et_log_free(&s->log);
    if (t->own_options)
        et_options_release(t->config.optimizer->info.options, t->own_options);
    et_free(s->cx, t->own_options);
    et_free(s->cx, t);
}
