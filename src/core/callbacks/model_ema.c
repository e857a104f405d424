/* SPDX-License-Identifier: Apache-2.0 */
/* model_ema.c: an average of the model over epochs, evaluated and saved beside it.
 *
 *     average = decay average + (1 - decay) model       at the end of each epoch,
 *
 * buffers included, from the model as it was when training began. After each evaluation
 * a second one is of the average, under metrics/ema_model_<label>/...; the best of
 * these is kept as save_path (best.c). With evaluate_during_training off, the average
 * of each epoch replaces the one before.
 *
 * Source: spec/trainer.md 14.6, ModelEma. Differs: watch_metric and greater_is_better
 * as in best_model_saver; no further callbacks and no other kind of average. The
 * algorithm ema averages by batches and evaluates the average alone. */
#include "config.h"

#include <math.h>

#include "core/callbacks/callbacks.h"
#include "core/trainer/average.h"

static const char prefix[] = "ema_model_";

struct options {
    struct eti_best_options best; /* first */
    double decay;
    bool evaluate_during_training;
};

static const struct et_option option_table[] = {
    ETI_BEST_OPTIONS(struct options, "ema_model.safetensors"),
    {
        .name = "decay",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, decay),
        .def = "0.99",
        .max = 1,
        .help = "what an epoch keeps of the average",
    },
    {
        .name = "evaluate_during_training",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, evaluate_during_training),
        .def = "true",
        .help = "evaluate the average after each evaluation, and keep the best",
    },
    {.name = NULL},
};

struct model_ema {
    struct eti_average average;
    struct eti_best best;
    bool started;    /* the average is of this training */
    bool standalone; /* the evaluation under way is outside of fit */
    bool owed;       /* the average's evaluation was broken off */
};

/* The trained weights come back whatever STATUS the use of the average ended with,
 * which is what is returned: who fits again goes on from them. */
static et_status
put_back(struct model_ema *own, const struct et_state *s, et_status status)
{
    et_status back = eti_average_use(&own->average, s, false, NULL, 0);
    return status == ET_OK ? back : status;
}

static et_status
evaluate(struct et_callback *self, const struct et_state *s)
{
    struct model_ema *own = self->state;
    own->owed = true;
    ET_TRY(eti_average_use(&own->average, s, true, NULL, 0));
    et_status status = put_back(own, s, et_state_evaluate(s, prefix));
    own->owed = s->interrupted;
    return status;
}

static et_status
end_epoch(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct model_ema *own = self->state;
    bool saved;
    ET_TRY(eti_average_add(&own->average, s, o->decay));
    if (o->evaluate_during_training)
        return ET_OK;
    ET_TRY(eti_average_use(&own->average, s, true, NULL, 0));
    return put_back(own, s,
                    eti_best_save(self, &o->best, &own->best, s, NAN, log, &saved));
}

static et_status
start(struct et_callback *self, const struct et_state *s)
{
    struct model_ema *own = self->state;
    own->standalone = false; /* one that has failed had no end */
    if (!own->started)
        ET_TRY(eti_average_copy(&own->average, s));
    own->started = true;
    return own->owed ? evaluate(self, s) : ET_OK;
}

static et_status
evaluated(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct model_ema *own = self->state;
    return own->average.active ? eti_best_offer(self, &o->best, &own->best, s, log)
                               : ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct model_ema *own = self->state;
    switch (event) {
    case ET_EVENT_INIT:
        return eti_best_open(self, &o->best);
    case ET_EVENT_BEFORE_LOAD: /* a place for what is loaded, surgery being done */
        return eti_average_copy(&own->average, s);
    case ET_EVENT_FIT_START:
        return start(self, s);
    case ET_EVENT_EPOCH_END:
        return end_epoch(self, s, log);
    case ET_EVENT_EVAL_STANDALONE_START:
    case ET_EVENT_EVAL_STANDALONE_END:
        own->standalone = event == ET_EVENT_EVAL_STANDALONE_START;
        return ET_OK;
    default: /* EVAL_AFTER_ALL */
        if (!o->evaluate_during_training || own->standalone || s->interrupted)
            return ET_OK;
        return evaluate(self, s);
    }
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct model_ema *own = self->state;
    ET_TRY(et_archive_flag(a, "started", &own->started));
    ET_TRY(et_archive_flag(a, "owed", &own->owed));
    ET_TRY(eti_average_archive(&own->average, a));
    return eti_best_archive(&own->best, a);
}

static void
release(struct et_callback *self)
{
    struct model_ema *own = self->state;
    eti_average_release(&own->average, self->cx);
}

const struct et_callback_class et_callback_model_ema = {
    .info =
        {
            .name = "model_ema",
            .class_name = "ModelEma",
            .summary = "an average of the model over epochs, evaluated beside it",
            .source = "pytorch-accelerated, ModelEmaCallback",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct model_ema),
    .acts = true,
    .events = ET_ON(INIT) | ET_ON(BEFORE_LOAD) | ET_ON(FIT_START) | ET_ON(EPOCH_END) |
              ET_ON(EVAL_STANDALONE_START) | ET_ON(EVAL_STANDALONE_END) |
              ET_ON(EVAL_AFTER_ALL),
    .evaluated = evaluated,
    .run = run,
    .archive = archive,
    .close = release,
};
