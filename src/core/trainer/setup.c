/* setup.c: making a trainer: parameters, metrics, the events of construction.
 *
 * Construction follows spec/trainer.md 1.3 as far as one process goes. Surgery on INIT
 * changes the tree; the flat parameter space is laid out before INIT, so that algorithms
 * find an optimizer, and again after whatever replaced modules. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"

/* Events that come at every batch, and do not need the last one's numbers. */
static bool
is_within_batch(enum et_event event)
{
    const uint64_t within = ET_ON(BEFORE_DATALOADER) | ET_ON(AFTER_DATALOADER) |
                            ET_ON(BATCH_START) | ET_ON(BEFORE_TRAIN_BATCH) |
                            ET_ON(BEFORE_FORWARD) | ET_ON(AFTER_FORWARD) |
                            ET_ON(BEFORE_LOSS) | ET_ON(AFTER_LOSS) |
                            ET_ON(BEFORE_BACKWARD) | ET_ON(AFTER_BACKWARD) |
                            ET_ON(AFTER_TRAIN_BATCH) | ET_ON(BATCH_CHECKPOINT);
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
new_metric(struct et_trainer *t, const struct et_metric_class *c, struct et_metric **out)
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
            return ET_FAIL(t->state.cx, ET_EINTERNAL, "bad list of metrics '%s'", names);
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

static et_status
collect_params(struct et_trainer *t, const struct et_leaves *leaves, struct et_param_spec *spec)
{
    struct et_ctx *cx = t->state.cx;
    void *block;
    int n = 0;
    et_free(cx, t->param);
    et_free(cx, t->param_leaf);
    et_free(cx, t->grads);
    t->param = NULL;
    t->param_leaf = t->grads = NULL;
    size_t room = (size_t)leaves->n + 1;
    ET_TRY(et_alloc(cx, room * sizeof *t->param, &block));
    t->param = block;
    ET_TRY(et_alloc(cx, room * sizeof *t->param_leaf, &block));
    t->param_leaf = block;
    ET_TRY(et_alloc(cx, room * sizeof *t->grads, &block));
    t->grads = block;
    for (int i = 0; i < leaves->n; i++) {
        struct et_leaf *l = &leaves->v[i];
        if (!l->param->requires_grad)
            continue;
        spec[n] = (struct et_param_spec){
            .name = l->name,
            .desc = l->param->desc,
            .role = et_model_param_role(t->state.model, leaves, i),
        };
        t->param[n++] = l->param;
    }
    t->n_params = n;
    return ET_OK;
}

static et_status
bind_views(struct et_trainer *t, struct et_param_space *space)
{
    for (int i = 0; i < t->n_params; i++) {
        struct et_tensor *view;
        ET_TRY(et_param_space_view(t->state.cx, space, -1, i, &view));
        et_status status = et_param_bind(t->state.cx, t->param[i], space->slot[i].name,
                                         t->state.seed, &view);
        et_tensor_free(&view);
        ET_TRY(status);
        t->param_leaf[i] = t->param[i]->tensor;
    }
    return ET_OK;
}

/* What each precision multiplies in; NONE: as written, in f32. */
static const enum et_dtype low_dtypes[] = {
    [ET_PRECISION_FP32] = ET_NONE,
    [ET_PRECISION_AMP_FP16] = ET_F16,
    [ET_PRECISION_AMP_BF16] = ET_BF16,
};

et_status
eti_bind_parameters(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_leaves leaves = {0};
    struct et_param_space *space = NULL;
    void *block = NULL;
    et_status status =
        et_module_leaves(s->cx, s->model->root, ET_PARAM, &leaves);
    if (status == ET_OK)
        status = et_alloc(s->cx, ((size_t)leaves.n + 1) * sizeof(struct et_param_spec), &block);
    if (status == ET_OK)
        status = collect_params(t, &leaves, block);
    if (status == ET_OK && t->n_params == 0)
        status = ET_FAIL(s->cx, ET_EINVAL, "the model has no parameters to train");
    if (status == ET_OK)
        status = et_param_space_new(s->cx, s->dev, block, t->n_params, &space);
    if (status == ET_OK)
        status = et_param_space_shadow(space, low_dtypes[s->precision]);
    if (status == ET_OK)
        status = bind_views(t, space);
    if (status == ET_OK)
        status = et_module_bind(s->cx, s->model->root, s->dev, ET_PARAM | ET_BUFFER, s->seed);
    if (status == ET_OK && s->optimizer)
        status = et_optimizer_move(s->cx, s->optimizer, space);
    et_free(s->cx, block);
    et_leaves_release(&leaves);
    if (status != ET_OK) {
        et_param_space_free(&space);
        return status;
    }
    et_param_space_free(&s->params);
    s->params = space;
    et_tensor_free(&t->grad_sum);
    ET_TRY(eti_ranks_bind(t));
    return eti_stats_bind(t);
}

/* Without an optimizer: decoupled SGD at 0.1, which trains most things a little. */
static et_status
choose_default_optimizer(struct et_trainer *t)
{
    struct et_ctx *cx = t->state.cx;
    const struct et_optimizer_class *c = et_optimizer_find("decoupled_sgdw");
    et_report(cx, ET_LOG_WARN, "no optimizer given: using %s with lr 0.1", c->info.name);
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
    return et_optimizer_new(s->cx, t->config.optimizer, t->config.optimizer_options, s->params,
                            &s->optimizer);
}

static et_status
make_leaves(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const int64_t one[] = {1}, two[] = {2};
    ET_TRY(et_tensor_new(s->cx, s->dev, ET_I64, 1, two, ET_ROW_MAJOR, "rng", &t->rng));
    return et_tensor_new(s->cx, s->dev, ET_F32, 1, one, ET_ROW_MAJOR, "loss/train/total",
                         &t->total);
}

/* Loggers after the others, each group in the order given. */
static et_status
adopt_hooks(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    if (t->config.n_algorithms > ET_MAX_ALGORITHMS || t->config.n_callbacks > ET_MAX_ALGORITHMS)
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
    size_t n = sizeof low_dtypes / sizeof low_dtypes[0];
    if ((unsigned)precision >= n)
        return ET_FAIL(s->cx, ET_ENOTSUP, "precision amp_fp8: no device here computes in fp8");
    s->precision = precision;
    if (s->params)
        ET_TRY(et_param_space_shadow(s->params, low_dtypes[precision]));
    return et_graph_set_low_dtype(s->graph, low_dtypes[precision]);
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
    ET_TRY(eti_bind_parameters(t));
    ET_TRY(make_optimizer(t));
    ET_TRY(adopt_hooks(t));
    if (t->config.memory_limit)
        et_device_set_limit(s->dev, t->config.memory_limit);
    ET_TRY(eti_run(t, ET_EVENT_INIT));
    ET_TRY(eti_metrics_new(t, et_task_metrics(s->model->type->task, true), t->train_metric,
                           &t->n_train_metrics));
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
    et_param_space_free(&s->params);
    et_graph_free(&s->graph);
    et_log_free(&s->log);
    if (t->own_options)
        et_options_release(t->config.optimizer->info.options, t->own_options);
    et_free(s->cx, t->own_options);
    et_free(s->cx, t->param);
    et_free(s->cx, t->param_leaf);
    et_free(s->cx, t->grads);
    et_free(s->cx, t);
}
