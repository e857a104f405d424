/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c: see fixture.h. */
#include "t/train/fixture.h"

#include <string.h>

#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"

static void
open_model(struct run *r, const char *name)
{
    const struct et_model_class *c = et_model_class_find(name);
    const struct et_dataset *d = r->data;
    const struct et_model_facts facts = {
        .channels = d->facts.field[ET_FIELD_X].shape[0],
        .height = d->facts.field[ET_FIELD_X].shape[1],
        .width = d->facts.field[ET_FIELD_X].shape[2],
        .num_classes = et_facts_classes(&d->facts),
    };
    void *options;
    need(r->cx, et_alloc(r->cx, c->info.options_size, &options));
    need(r->cx, et_options_init(r->cx, c->info.options, options));
    need(r->cx, et_model_new(r->cx, c, options, &facts, &r->model));
    et_options_release(c->info.options, options);
    et_free(r->cx, options);
}

void
run_prepare(struct run *r, struct et_ctx *cx, const struct run_setup *s)
{
    memset(r, 0, sizeof *r);
    r->cx = cx;
    r->dev = s->with ? s->with->dev : NULL;
    r->borrows = s->with != NULL;
    if (!r->borrows)
        need(cx, et_device_open(cx, test_device(s->device), 0, 1, &r->dev));
    if (s->repeats)
        need(cx, test_device_repeat(r->dev));
    r->data_options = (struct counted_options){
        .common = common_options(s->batch_size ? s->batch_size : 4),
        .n = s->n ? s->n : 8,
        .C = 1,
    };
    need(cx, et_dataset_open(cx, &counted_images, &r->data_options, &r->data));
    const struct et_loader_config config = {.seed = 17, .train = true, .dev = r->dev};
    need(cx, et_loader_new(cx, r->data, &config, &r->train));
    need(cx, et_loader_new(cx, r->data, &(struct et_loader_config){.dev = r->dev},
                           &r->eval));
    open_model(r, s->model ? s->model : "mlp");
    const struct et_optimizer_class *o =
        s->own_optimizer ? s->own_optimizer
                         : et_optimizer_find(s->optimizer ? s->optimizer : "sgd");
    need(cx, et_alloc(cx, o->info.options_size, &r->options));
    need(cx, et_options_init(cx, o->info.options, r->options));
    need(cx, et_options_set(cx, o->info.options, r->options, "lr", "0.1"));
    for (const char *const *p = s->optimizer_options; p && *p; p += 2)
        need(cx, et_options_set(cx, o->info.options, r->options, p[0], p[1]));
    r->evaluator = (struct et_evaluator){
        .label = "eval",
        .loader = r->eval,
        .interval = ET_TIME_UNSET,
    };
    r->config = (struct et_trainer_config){
        .dev = r->dev,
        .model = r->model,
        .train = r->train,
        .evaluators = &r->evaluator,
        .n_evaluators = s->evaluate,
        .optimizer = o,
        .optimizer_options = r->options,
        .algorithms = s->algorithms,
        .n_algorithms = s->n_algorithms,
        .passes = s->passes,
        .n_passes = s->n_passes,
        .callbacks = s->callbacks,
        .n_callbacks = s->n_callbacks,
        .checkpoint = s->checkpoint,
        .sink = s->sink,
        .max_duration = s->max_duration.value ? s->max_duration : ET_EPOCHS(1),
        .eval_interval = s->eval_interval.value ? s->eval_interval : ET_TIME_UNSET,
        .iteration_length =
            s->iteration_length.value ? s->iteration_length : ET_TIME_UNSET,
        .grad_accum = s->auto_accum || s->microbatch_size ? 0
                      : s->grad_accum                     ? s->grad_accum
                                                          : 1,
        .microbatch_size = s->microbatch_size,
        .seed = 17,
        .target = s->target,
        .dry = s->dry,
    };
}

void
run_start(struct run *r)
{
    need(r->cx, et_trainer_new(r->cx, &r->config, &r->trainer));
    r->state = et_trainer_state(r->trainer);
}

void
run_open(struct run *r, struct et_ctx *cx, const struct run_setup *s)
{
    run_prepare(r, cx, s);
    run_start(r);
}

void
run_close(struct run *r)
{
    const struct et_optimizer_class *o = et_optimizer_class(r->state->optimizer);
    et_trainer_free(&r->trainer);
    et_model_free(&r->model);
    et_loader_free(&r->train);
    et_loader_free(&r->eval);
    et_dataset_close(&r->data);
    et_options_release(o->info.options, r->options);
    et_free(r->cx, r->options);
    if (!r->borrows)
        et_device_close(&r->dev);
}
