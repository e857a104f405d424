/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_run.c: see recipe_run.h. */
#include "t/train/recipe_run.h"

#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"
#include "core/trainer/state.h"

static void
record(struct et_sink *sink, const struct et_record *r)
{
    struct recipe_run *run = (struct recipe_run *)sink;
    for (int i = 0; r->kind == ET_RECORD_BATCH && i < r->n; i++)
        if (run->n_losses < MAX_LOSSES &&
            strcmp(r->entry[i].name, "loss/train/total") == 0)
            run->loss[run->n_losses++] = r->entry[i].value;
}

/* By the event: the record comes later where the host runs ahead. */
static et_status
stop_in_time(void *data, struct et_state *s, enum et_event event)
{
    struct recipe_run *run = data;
    if (event == ET_EVENT_BATCH_END && run->stop_after &&
        s->timestamp.batch >= run->stop_after)
        run->interrupt = 1;
    return ET_OK;
}

static struct et_recipe *
parse(struct et_ctx *cx, const char *text)
{
    struct et_recipe *recipe;
    struct et_diagnostics errors = {0};
    if (et_recipe_parse(cx, text, strlen(text), "test.yaml", NULL, 0, NULL, &recipe,
                        &errors) == ET_OK)
        return recipe;
    bail("test.yaml: %s", errors.n ? errors.v[0].message : et_error_get(cx)->message);
}

void
recipe_prepare(struct recipe_run *r, struct et_ctx *cx, const char *text,
               const struct recipe_choice *choice)
{
    const struct eti_assemble_options options = {
        .device = test_device(choice->device),
        .threads = choice->threads ? choice->threads : 1,
        .with_train = true,
        .with_eval = true,
        .comm = choice->comm,
    };
    *r = (struct recipe_run){.sink = {.write = record}, .cx = cx};
    r->recipe = parse(cx, text);
    if (choice->workers)
        ((struct et_data_options *)r->recipe->train_data.options)->workers =
            choice->workers > 0 ? choice->workers : 0;
    /* Devices are compared in f32, unless the text asks for something. */
    if (r->recipe->precision == ET_PRECISION_AUTO)
        r->recipe->precision = ET_PRECISION_FP32;
    need(cx, eti_assemble(cx, r->recipe, &options, &r->parts));
    if (choice->repeats)
        need(cx, test_device_repeat(r->parts.dev));
    need(cx,
         eti_assemble_callbacks(&r->parts, r->recipe,
                                choice->folder ? choice->folder : scratch_folder()));
    r->parts.config.sink = &r->sink;
    r->parts.config.interrupt = &r->interrupt;
    r->parts.config.checkpoint = choice->checkpoint;
    r->parts.config.load = choice->load;
    r->stop_after = choice->stop_after;
    r->steps = (struct et_trainer_steps){.data = r, .at_event = stop_in_time};
    r->parts.config.steps = &r->steps;
    if (choice->grad_accum)
        r->parts.config.grad_accum = choice->grad_accum > 0 ? choice->grad_accum : 0;
}

void
recipe_start(struct recipe_run *r)
{
    need(r->cx, et_trainer_new(r->cx, &r->parts.config, &r->trainer));
    r->state = et_trainer_state(r->trainer);
}

void
recipe_open(struct recipe_run *r, struct et_ctx *cx, const char *text,
            const struct recipe_choice *choice)
{
    recipe_prepare(r, cx, text, choice);
    recipe_start(r);
}

void
recipe_close(struct recipe_run *r)
{
    et_trainer_free(&r->trainer);
    eti_assembly_release(&r->parts);
    et_recipe_free(&r->recipe);
}

void
recipe_fit(struct recipe_run *r)
{
    need(r->cx, et_trainer_fit(r->trainer, ET_TIME_UNSET));
}

void *
recipe_params(struct recipe_run *r, size_t *bytes)
{
    const struct et_tensor *all = r->state->params->values;
    struct et_leaves buffers;
    size_t at = et_desc_bytes(&all->desc);
    need(r->cx, et_module_leaves(r->cx, r->state->model->root, ET_BUFFER, &buffers));
    *bytes = at;
    for (int i = 0; i < buffers.n; i++)
        *bytes += et_desc_bytes(&buffers.v[i].param->tensor->desc);
    char *copy = malloc(*bytes);
    if (!copy)
        bail("no memory");
    need(r->cx, et_tensor_read(r->cx, all, copy, at));
    for (int i = 0; i < buffers.n; i++) {
        const struct et_tensor *x = buffers.v[i].param->tensor;
        need(r->cx, et_tensor_read(r->cx, x, copy + at, et_desc_bytes(&x->desc)));
        at += et_desc_bytes(&x->desc);
    }
    et_leaves_release(&buffers);
    return copy;
}

bool
have_device(struct et_ctx *cx, const char *name)
{
    struct et_device *dev;
    if (et_device_open(cx, test_device(name), 0, 1, &dev) != ET_OK) {
        skip(1, take_error(cx));
        return false;
    }
    et_device_close(&dev);
    return true;
}

bool
is_chosen(int argc, char **argv, const char *name)
{
    bool chosen = argc < 2;
    for (int i = 1; i < argc; i++)
        chosen |= strcmp(argv[i], name) == 0;
    return chosen;
}
