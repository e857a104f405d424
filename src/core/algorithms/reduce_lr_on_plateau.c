/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_lr_on_plateau.c: lowers all rates when a metric no longer improves.
 *
 *     at each value of the metric:
 *     bad <- 0 and best <- value where value is better than best by the threshold, else
 *     bad + 1; 0 while it cools down
 *     bad > patience: scale <- factor scale, bad <- 0, and it cools down for so many
 *
 * The rates are what the schedules say, times scale, and not below min_lr unless they
 * would be without it. A threshold is relative, |best| threshold, or absolute.
 *
 * torch.optim.lr_scheduler.ReduceLROnPlateau; timm's PlateauLRScheduler. Differs: it is
 * an algorithm, since schedules are functions of the time alone, and multiplies with
 * them; eps is not needed, as nothing is rounded; relative to a negative best, better
 * is still better. */
#include "config.h"

#include <math.h>

#include "core/algorithms/algorithms.h"
#include "core/callbacks/callbacks.h"

struct plateau_options {
    struct eti_watch watch; /* first */
    double factor, threshold, min_lr;
    int64_t patience, cooldown;
    int threshold_mode;
};
enum { RELATIVE, ABSOLUTE };
static const char *const modes[] = {"rel", "abs", NULL};

struct plateau {
    double scale, best;        /* SCALE 0: not yet begun */
    int64_t bad, cooling, any; /* ANY: there is a best value */
};

static bool
is_improvement(const struct plateau_options *o, const struct plateau *own, double value)
{
    if (!own->any || isnan(own->best))
        return !isnan(value);
    double margin =
        o->threshold * (o->threshold_mode == RELATIVE ? fabs(own->best) : 1);
    return eti_watch_is_better(&o->watch, value, own->best) &&
           fabs(value - own->best) > margin;
}

/* VALUE has come: is the rate to fall? */
static bool
judge(const struct plateau_options *o, struct plateau *own, double value)
{
    own->bad++;
    if (is_improvement(o, own, value)) {
        own->best = value;
        own->any = 1;
        own->bad = 0;
    }
    if (own->cooling > 0) {
        own->cooling--;
        own->bad = 0;
    }
    if (own->bad <= o->patience)
        return false;
    own->cooling = o->cooldown;
    own->bad = 0;
    return true;
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct plateau_options *o = self->options;
    return event == ET_EVENT_BATCH_START || eti_watch_is_active(&o->watch, s);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct plateau_options *o = self->options;
    struct plateau *own = self->state;
    double value;
    if (own->scale == 0)
        own->scale = 1;
    if (event == ET_EVENT_BATCH_START) {
        et_state_scale_rate(s, own->scale, o->min_lr);
        return ET_OK;
    }
    ET_TRY(eti_watch_read(s->cx, &o->watch, s, &value));
    if (!judge(o, own, value))
        return ET_OK;
    own->scale *= o->factor;
    et_log_text(log, ET_LOG_INFO, &s->timestamp,
                "reduce_lr_on_plateau: %s of %s has not improved on %g; the learning "
                "rate is %g of its schedule's",
                o->watch.monitor, o->watch.dataloader_label, own->best, own->scale);
    return ET_OK;
}

static et_status
archive(struct et_algorithm *self, struct et_state *s, struct et_archive *a)
{
    struct plateau *own = self->state;
    (void)s;
    ET_TRY(et_archive_f64(a, "scale", &own->scale, 1));
    ET_TRY(et_archive_f64(a, "best", &own->best, 1));
    ET_TRY(et_archive_counts(a, "bad", &own->bad, 1, 0, ET_COUNT_MAX));
    ET_TRY(et_archive_counts(a, "cooling", &own->cooling, 1, 0, ET_COUNT_MAX));
    return et_archive_counts(a, "any", &own->any, 1, 0, 1);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    return eti_watch_check(cx, options);
}

static const struct et_option table[] = {
    ETI_WATCH_OPTIONS(struct plateau_options),
    ETI_ROW(FLOAT, plateau_options, factor, "0.1", 0, 1,
            ET_OPT_MIN_OPEN | ET_OPT_MAX_OPEN, "what the rates are multiplied by",
            .also = "decay_rate"),
    ETI_ROW(INT, plateau_options, patience, "10", 0, -1, 0,
            "values without improvement that are waited for", .also = "patience_t"),
    ETI_ROW(FLOAT, plateau_options, threshold, "1e-4", 0, -1, 0,
            "by how much a value has to be better to be an improvement"),
    ETI_ENUM(plateau_options, threshold_mode, "rel", modes, 0,
             "of the best value, or as it stands"),
    ETI_ROW(INT, plateau_options, cooldown, "0", 0, -1, 0,
            "values after a reduction that are not judged", .also = "cooldown_t"),
    ETI_ROW(FLOAT, plateau_options, min_lr, "0", 0, -1, 0,
            "rates are not reduced below it", .also = "lr_min"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_reduce_lr_on_plateau = {
    .info =
        {
            .name = "reduce_lr_on_plateau",
            .class_name = "ReduceLROnPlateau",
            .summary = "lower the learning rate when a metric no longer improves",
            .source = "PyTorch's ReduceLROnPlateau",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct plateau_options),
        },
    .state_size = sizeof(struct plateau),
    .events = ET_ON(BATCH_START) | ET_ON(EPOCH_END) | ET_ON(EVAL_END),
    .check = check,
    .match = match,
    .apply = apply,
    .archive = archive,
};
