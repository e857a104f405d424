/* SPDX-License-Identifier: Apache-2.0 */
/* gyro_dropout.c: see core/modules/gyro_dropout.c, which has the formula.
 *
 * MosaicML Composer; spec/algorithms.md 2.13. Differs: the run's steps are counted
 * whatever the unit of max_duration (D12); a step is one of the optimizer's (D29); a
 * run that goes on has the masks it had (D13), and the period, also if it is longer
 * now. */
#include "config.h"

#include "core/algorithms/algorithms.h"
#include "core/modules/gyro_dropout.h"
#include "etude/nn.h"

struct gyro_dropout_options {
    double p;
    int64_t sigma, tau;
};

struct gyro_dropout {
    struct et_gyro_dropout *layers;
    int64_t period; /* of the run; 0: it has not begun */
};

static et_status
operate(struct et_algorithm *self, struct et_state *s)
{
    const struct gyro_dropout_options *o = self->options;
    struct gyro_dropout *own = self->state;
    int64_t steps;
    if (own->layers) /* another fit */
        return ET_OK;
    ET_TRY(eti_total_steps(self, s, &steps));
    ET_TRY(et_apply_gyro_dropout(s->cx, s->model->root, s->dev, steps, o->p, o->sigma,
                                 o->tau, s->seed, &own->layers));
    int64_t *period = eti_gyro_dropout_period(own->layers);
    if (own->period)
        *period = own->period;
    own->period = *period;
    int n = et_gyro_dropout_layers(own->layers);
    if (n == 0)
        et_report(s->cx, ET_LOG_WARN,
                  "gyro_dropout changed nothing: the model has no dropout layers");
    else
        eti_tell_changed(self, n, n, "dropout layers");
    return ET_OK;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    struct gyro_dropout *own = self->state;
    (void)log;
    switch (event) {
    case ET_EVENT_FIT_START:
        return operate(self, s);
    case ET_EVENT_BEFORE_DATALOADER:
        eti_gyro_dropout_pick(own->layers, s->timestamp.batch);
        return ET_OK;
    default: /* BEFORE_TRAIN_BATCH */
        return et_gyro_dropout_begin(own->layers, s->timestamp.batch, s->full.n);
    }
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct gyro_dropout *own = self->state;
    (void)s;
    return event == ET_EVENT_FIT_START || et_gyro_dropout_layers(own->layers) > 0;
}

static et_status
settle(struct et_algorithm *self, struct et_state *s)
{
    (void)s;
    et_gyro_dropout_rest(((struct gyro_dropout *)self->state)->layers);
    return ET_OK;
}

static et_status
archive(struct et_algorithm *self, struct et_state *s, struct et_archive *a)
{
    struct gyro_dropout *own = self->state;
    (void)s;
    ET_TRY(et_archive_counts(a, "period", &own->period, 1, 0, ET_COUNT_MAX));
    if (own->layers && own->period && et_archive_mode(a) == ET_ARCHIVE_LOAD)
        *eti_gyro_dropout_period(own->layers) = own->period;
    return ET_OK;
}

static et_status
restore_dropout(struct et_ctx *cx, struct et_module *old, int index, void *data,
                struct et_module **out)
{
    (void)index, (void)data;
    return ET_NEW(cx, out, dropout, .p = ((struct et_gyro_dropout_module *)old)->o.p);
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policy = {&et_gyro_dropout_class,
                                                    restore_dropout};
    struct gyro_dropout *own = self->state;
    et_gyro_dropout_free(&own->layers);
    own->period = 0;
    return eti_undo_surgery(s, &policy, 1, NULL);
}

static void
close_gyro_dropout(struct et_algorithm *self)
{
    et_gyro_dropout_free(&((struct gyro_dropout *)self->state)->layers);
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, gyro_dropout_options, p, "0.5", 0, 1, ET_OPT_MAX_OPEN,
            "probability of zero, in the place of the layers' own"),
    ETI_ROW(INT, gyro_dropout_options, sigma, "256", 1, 1 << 24, 0,
            "masks that a layer has in all"),
    ETI_ROW(INT, gyro_dropout_options, tau, "16", 1, 1 << 24, 0,
            "masks that are used at once; it divides a rank's batch"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_gyro_dropout = {
    .info =
        {
            .name = "gyro_dropout",
            .class_name = "GyroDropout",
            .summary = "dropout with masks that stay for several steps",
            .source = "Lee et al., MLSys 2022; MosaicML Composer",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct gyro_dropout_options),
        },
    .state_size = sizeof(struct gyro_dropout),
    .events = ET_ON(FIT_START) | ET_ON(BEFORE_DATALOADER) | ET_ON(BEFORE_TRAIN_BATCH),
    .flags = ET_ALG_REQUIRED_ON_LOAD,
    .match = match,
    .apply = apply,
    .settle = settle,
    .archive = archive,
    .close = close_gyro_dropout,
    .undo = undo,
};
