/* ema.c: an exponential moving average of the weights, to evaluate and save with.
 *
 *     shadow = s shadow + (1 - s) weights
 *     s = smoothing, or 2^(-update_interval / half_life)
 *
 * Spec/algorithms.md 2.8. From the start on, the shadow begins as the weights of that
 * moment. EVAL_START and checkpoints exchange shadow and weights; EVAL_END and the next
 * batch change them back. Differs: training weights are back before every update (D8);
 * smoothing alone updates every batch (D7). */
#include "config.h"

#include <math.h>

#include "core/algorithms/algorithms.h"

struct ema_options {
    struct et_time half_life, ema_start, update_interval;
    double smoothing; /* NaN: from half_life */
};

/* An averaged array and its average. */
struct pair {
    struct et_tensor *live;   /* a buffer of the model; NULL: the flat weights */
    struct et_tensor *shadow; /* while ACTIVE the two hold each other's contents */
};

struct ema {
    struct pair *pair; /* weights first, then the buffers */
    int n;
    bool active, started;
};

struct et_tensor *
et_compute_ema(struct et_graph *g, struct et_tensor *shadow, struct et_tensor *value,
               double smoothing)
{
    return et_add(g, shadow, et_mul_scalar(g, et_sub(g, value, shadow), 1 - smoothing));
}

double
et_ema_smoothing(double half_life, double update_interval)
{
    return exp2(-update_interval / half_life);
}

static struct et_time
interval_of(const struct ema_options *o)
{
    if (et_time_is_set(o->update_interval))
        return o->update_interval;
    return et_time_is_set(o->half_life) ? (struct et_time){1, o->half_life.unit}
                                        : ET_BATCHES(1);
}

static double
smoothing_of(const struct ema_options *o)
{
    if (!isnan(o->smoothing))
        return o->smoothing;
    return et_ema_smoothing(o->half_life.value, interval_of(o).value);
}

/* ---- the pairs ---- */

static void
release(struct et_ctx *cx, struct ema *own)
{
    for (int i = 0; i < own->n; i++)
        et_tensor_free(&own->pair[i].shadow);
    et_free(cx, own->pair);
    own->pair = NULL;
    own->n = 0;
}

/* The weights are asked for anew: surgery may have laid them out again. */
static struct et_tensor *
live(const struct et_state *s, const struct pair *p)
{
    return p->live ? p->live : s->params->values;
}

static et_status
add_pair(struct et_state *s, struct ema *own, struct et_tensor *buffer)
{
    struct pair *p = &own->pair[own->n];
    p->live = buffer;
    const struct et_desc *d = &live(s, p)->desc;
    enum et_format format = d->ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR;
    ET_TRY(et_tensor_new(s->cx, s->dev, d->dtype, d->ndim, d->shape, format, "ema",
                         &p->shadow));
    own->n++;
    return ET_OK;
}

/* Lists what the model consists of now. */
static et_status
make_pairs(struct et_state *s, struct ema *own)
{
    struct et_leaves buffers;
    void *block;
    release(s->cx, own);
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_BUFFER, &buffers));
    et_status status =
        et_alloc(s->cx, ((size_t)buffers.n + 1) * sizeof *own->pair, &block);
    if (status == ET_OK) {
        own->pair = block;
        status = add_pair(s, own, NULL);
    }
    for (int i = 0; i < buffers.n && status == ET_OK; i++)
        status = add_pair(s, own, buffers.v[i].param->tensor);
    et_leaves_release(&buffers);
    return status;
}

/* ---- what is done with them ---- */

static et_status
snapshot(struct et_state *s, struct ema *own)
{
    ET_TRY(make_pairs(s, own));
    et_graph_reset(s->graph);
    for (int i = 0; i < own->n; i++)
        et_assign(s->graph, own->pair[i].shadow, live(s, &own->pair[i]));
    return et_eval(s->graph, NULL, 0);
}

static et_status
average(struct et_state *s, struct ema *own, double smoothing)
{
    et_graph_reset(s->graph);
    for (int i = 0; i < own->n; i++) {
        struct pair *p = &own->pair[i];
        et_assign(s->graph, p->shadow,
                  et_compute_ema(s->graph, p->shadow, live(s, p), smoothing));
    }
    return et_eval(s->graph, NULL, 0);
}

/* Makes the average active or the training weights. At BATCH_START the batch may be a
 * value of the graph already; it is computed before the exchange. */
static et_status
use_average(struct et_state *s, struct ema *own, bool yes, enum et_event event)
{
    struct et_tensor *want[] = {s->batch.x, s->batch.target};
    bool in_step = event == ET_EVENT_BATCH_START;
    if (own->active == yes)
        return ET_OK;
    if (!in_step)
        et_graph_reset(s->graph);
    for (int i = 0; i < own->n; i++) {
        struct pair *p = &own->pair[i];
        et_assign(s->graph, live(s, p), p->shadow);
        et_assign(s->graph, p->shadow, live(s, p));
    }
    ET_TRY(et_eval(s->graph, want, in_step ? 2 : 0));
    own->active = yes;
    return ET_OK;
}

static et_status
has_started(const struct ema_options *o, const struct et_state *s, bool *yes)
{
    if (o->ema_start.unit == ET_TIME_DURATION) {
        double elapsed;
        ET_TRY(et_state_elapsed(s, &elapsed));
        *yes = elapsed >= o->ema_start.value;
        return ET_OK;
    }
    int order;
    ET_TRY(et_timestamp_compare(s->cx, &s->timestamp, o->ema_start, &order));
    *yes = order >= 0;
    return ET_OK;
}

static et_status
update(struct et_algorithm *self, struct et_state *s, enum et_event event)
{
    const struct ema_options *o = self->options;
    struct ema *own = self->state;
    struct et_time interval = interval_of(o), now;
    ET_TRY(use_average(s, own, false, event));
    if (!own->started) {
        ET_TRY(has_started(o, s, &own->started));
        if (!own->started)
            return ET_OK;
        ET_TRY(snapshot(s, own));
    }
    ET_TRY(et_timestamp_get(s->cx, &s->timestamp, interval.unit, &now));
    if (fmod(now.value, interval.value) != 0)
        return ET_OK;
    return average(s, own, smoothing_of(o));
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct ema *own = self->state;
    bool by_epoch = interval_of(self->options).unit == ET_TIME_EPOCH;
    switch (event) {
    case ET_EVENT_INIT:
        return true;
    case ET_EVENT_BATCH_END:
        return !by_epoch;
    case ET_EVENT_EPOCH_END:
        return by_epoch;
    case ET_EVENT_BATCH_CHECKPOINT:
    case ET_EVENT_EPOCH_CHECKPOINT:
        return own->started && s->checkpoint_due;
    default:
        return own->started;
    }
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    struct ema *own = self->state;
    (void)log;
    switch (event) {
    case ET_EVENT_INIT:
        return snapshot(s, own);
    case ET_EVENT_BATCH_END:
    case ET_EVENT_EPOCH_END:
        return update(self, s, event);
    case ET_EVENT_BATCH_START:
    case ET_EVENT_EVAL_END:
        return use_average(s, own, false, event);
    default: /* EVAL_START, *_CHECKPOINT */
        return use_average(s, own, true, event);
    }
}

/* The buffers under their names in the model. */
static et_status
archive_buffers(struct ema *own, const struct et_leaves *buffers, struct et_archive *a)
{
    for (int i = 0; i < buffers->n && i + 1 < own->n; i++)
        ET_TRY(et_archive_tensor(a, buffers->v[i].name, own->pair[i + 1].shadow));
    return ET_OK;
}

/* While the average is in use the shadow holds the training weights: both are saved
 * where they are. */
static et_status
archive(struct et_algorithm *self, struct et_state *s, struct et_archive *a)
{
    struct ema *own = self->state;
    struct et_leaves buffers;
    ET_TRY(et_archive_flag(a, "started", &own->started));
    ET_TRY(et_archive_flag(a, "active", &own->active));
    ET_TRY(et_archive_tensor(a, "weights", own->pair[0].shadow));
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_BUFFER, &buffers));
    et_status status = et_archive_enter(a, "buffers");
    if (status == ET_OK)
        status = archive_buffers(own, &buffers, a);
    et_archive_leave(a);
    et_leaves_release(&buffers);
    return status;
}

static void
close_ema(struct et_algorithm *self)
{
    release(self->cx, self->state);
}

/* ---- options ---- */

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct ema_options *o = options;
    bool by_life = et_time_is_set(o->half_life);
    if (by_life == !isnan(o->smoothing))
        return ET_FAIL(cx, ET_EINVAL,
                       by_life ? "ema takes half_life or smoothing, not both: with "
                                 "smoothing set half_life to null"
                               : "ema needs half_life or smoothing");
    struct et_time interval = interval_of(o);
    if (by_life && interval.unit != o->half_life.unit)
        return ET_FAIL(
            cx, ET_EINVAL,
            "ema: update_interval is in %s but half_life in %s; they need one unit",
            et_time_unit_suffix(interval.unit), et_time_unit_suffix(o->half_life.unit));
    return ET_OK;
}

enum { EP_OR_BA = 1 << ET_TIME_EPOCH | 1 << ET_TIME_BATCH };

#define TIME(field, defaults, in, more, words)                                         \
    {                                                                                  \
        .name = #field, .type = ET_OPT_TIME,                                           \
        .offset = offsetof(struct ema_options, field), .def = defaults, .max = -1,     \
        .units = in, .flags = more, .help = words,                                     \
    }

static const struct et_option table[] = {
    TIME(half_life, "1000ba", EP_OR_BA, ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN,
         "after how long a weight counts half"),
    ETI_ROW(FLOAT, ema_options, smoothing, NULL, 0, 1,
            ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN | ET_OPT_MAX_OPEN,
            "what an update keeps of the average, instead of half_life"),
    TIME(ema_start, "0.0dur", EP_OR_BA | 1 << ET_TIME_DURATION, 0,
         "when averaging begins"),
    TIME(update_interval, NULL, EP_OR_BA, ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN,
         "time between updates; unset: 1 in the unit of half_life"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_ema = {
    .info =
        {
            .name = "ema",
            .class_name = "EMA",
            .summary = "evaluate and save with a moving average of the weights",
            .source = "Polyak and Juditsky 1992; MosaicML Composer",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct ema_options),
        },
    .state_size = sizeof(struct ema),
    .events = ET_ON(INIT) | ET_ON(BATCH_START) | ET_ON(BATCH_END) | ET_ON(EPOCH_END) |
              ET_ON(EVAL_START) | ET_ON(EVAL_END) | ET_ON(BATCH_CHECKPOINT) |
              ET_ON(EPOCH_CHECKPOINT),
    .flags = ET_ALG_INIT_LAST,
    .check = check,
    .match = match,
    .apply = apply,
    .archive = archive,
    .close = close_ema,
};
