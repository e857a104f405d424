/* SPDX-License-Identifier: Apache-2.0 */
/* activation_monitor.c: what goes into modules and comes out of them.
 *
 * For a value x [..., D], with the mean over all but the last axis of what is taken
 * over that one (D = a row):
 *
 *     activations/l2_norm    mean |x|            activations/max    mean max x
 *     activations/average    mean x              activations/kurtosis
 *                                                mean of mean (x - mean x)^4 / var(x)^2
 *
 * under /<module>_input.0 and /<module>_output.0, <module> being the path that names of
 * parameters begin with. A module that is called more than once counts by its last
 * call.
 *
 * Values are those of the first microbatch of the first pass of a batch, in training
 * only, and are computed with it. Source: spec/trainer.md 9.3. Differs: rows without
 * variance, such as what relu cut off, are left out of the kurtosis, which would be
 * 0 / 0; ignore_module_types matches a module's kind as well as its path; a module has
 * one input and one output here; there is no only_log_wandb, and no wandb. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/callbacks/callbacks.h"

struct options {
    struct et_time interval;
    struct et_texts ignore_module_types;
};

static const struct et_option option_table[] = {
    {
        .name = "interval",
        .type = ET_OPT_TIME,
        .offset = offsetof(struct options, interval),
        .def = "25ba",
        .max = -1,
        .flags = ET_OPT_MIN_OPEN,
        .units = 1u << ET_TIME_EPOCH | 1u << ET_TIME_BATCH,
        .help = "look at the batches whose number is a multiple",
    },
    {
        .name = "ignore_module_types",
        .type = ET_OPT_TEXTS,
        .offset = offsetof(struct options, ignore_module_types),
        .flags = ET_OPT_OPTIONAL,
        .help = "leave out modules whose path or kind contains one of these",
    },
    {.name = NULL},
};

enum { L2_NORM, AVERAGE, KURTOSIS, MAX, KINDS };
static const char *const kind_name[KINDS] = {
    [L2_NORM] = "l2_norm",
    [AVERAGE] = "average",
    [KURTOSIS] = "kurtosis",
    [MAX] = "max",
};

/* A value of one module. */
struct seen {
    char name[ET_METRIC_NAME]; /* "layer1.0_input.0" */
    struct et_tensor *value;   /* within the pass */
    int at; /* its first number in the leaf: values seen twice share */
};

struct monitor {
    bool looking;      /* the pass under way is looked at */
    bool done;         /* there are numbers to log at BATCH_END */
    int64_t batch;     /* finished ones when the pass began */
    double last;       /* the counter's value that was logged */
    struct seen *seen; /* [room] */
    int n, room;
    struct et_tensor **part; /* [room * KINDS]: f32 [1] each */
    int n_parts;
    struct et_tensor *leaf; /* f32 [leaf_count] */
    float *host;            /* the same */
    int leaf_count;
};

/* ---- statistics ---- */

/* The mean over the last axis, which stays; X is f32. */
static struct et_tensor *
row_mean(struct et_graph *g, struct et_tensor *x)
{
    return et_mean(g, x, 1u << (x->desc.ndim - 1), true);
}

static struct et_tensor *
kurtosis(struct et_graph *g, struct et_tensor *x)
{
    const int ndim = x->desc.ndim;
    struct et_tensor *d2 = et_square(g, et_sub(g, x, row_mean(g, x)));
    struct et_tensor *var = row_mean(g, d2);
    if (!var)
        return NULL;
    struct et_tensor *zero = et_fill(g, ET_F32, ndim, var->desc.shape, 0);
    struct et_tensor *one = et_fill(g, ET_F32, ndim, var->desc.shape, 1);
    struct et_tensor *flat = et_equal(g, var, zero);
    /* d^2 is 0 where var is, so that 1 may stand for it; d^2 / var first: var^2 may be
     * too small for f32. */
    struct et_tensor *z2 = et_div(g, d2, et_where(g, flat, one, var));
    struct et_tensor *rows = et_sum(g, row_mean(g, et_square(g, z2)), 0, false);
    return et_div(g, rows, et_sum(g, et_where(g, flat, zero, one), 0, false));
}

static void
summarise(struct et_graph *g, struct et_tensor *value, struct et_tensor *out[KINDS])
{
    struct et_tensor *x = et_cast(g, value, ET_F32);
    if (!x)
        return;
    const uint32_t last = 1u << (x->desc.ndim - 1);
    const int64_t one[] = {1};
    out[L2_NORM] =
        et_mean(g, et_sqrt(g, et_sum(g, et_square(g, x), last, false)), 0, false);
    out[AVERAGE] = et_mean(g, x, 0, false);
    out[KURTOSIS] = kurtosis(g, x);
    out[MAX] = et_mean(g, et_amax(g, x, last, false), 0, false);
    for (int k = 0; k < KINDS; k++)
        out[k] = et_reshape(g, out[k], 1, one);
}

/* ---- modules ---- */

/* Writes the first path of WANTED below M behind the LENGTH bytes of BUF. */
static bool
find_path(struct et_module *m, const struct et_module *wanted, char *buf, size_t length)
{
    struct et_module **child;
    const char *name;
    if (m == wanted)
        return true;
    for (int i = 0; (child = et_module_child(m, i, &name)); i++) {
        if (!*child)
            continue;
        size_t room = ET_METRIC_NAME - length;
        int n = snprintf(buf + length, room, "%s%s", length ? "." : "", name);
        if (n >= 0 && (size_t)n < room &&
            find_path(*child, wanted, buf, length + (size_t)n))
            return true;
        buf[length] = '\0';
    }
    return false;
}

static bool
is_ignored(const struct options *o, const struct et_module *m, const char *path)
{
    for (int i = 0; i < o->ignore_module_types.n; i++)
        if (strstr(path, o->ignore_module_types.v[i]) ||
            strstr(m->type->info.name, o->ignore_module_types.v[i]))
            return true;
    return false;
}

static et_status
make_room(struct et_callback *self, struct monitor *own)
{
    if (own->n < own->room)
        return ET_OK;
    const size_t room = own->room ? 2 * (size_t)own->room : 64;
    void *seen, *part;
    ET_TRY(et_alloc(self->cx, room * sizeof *own->seen, &seen));
    et_status status =
        et_alloc(self->cx, room * KINDS * sizeof(struct et_tensor *), &part);
    if (status != ET_OK) {
        et_free(self->cx, seen);
        return status;
    }
    if (own->n) {
        memcpy(seen, own->seen, (size_t)own->n * sizeof *own->seen);
        memcpy(part, own->part, (size_t)own->n_parts * sizeof *own->part);
    }
    et_free(self->cx, own->seen);
    et_free(self->cx, own->part);
    own->seen = seen;
    own->part = part;
    own->room = (int)room;
    return ET_OK;
}

static et_status
add(struct et_callback *self, struct et_graph *g, const char *path, const char *which,
    struct et_tensor *value)
{
    struct monitor *own = self->state;
    if (!et_dtype_is_float(value->desc.dtype) || value->desc.ndim < 1)
        return ET_OK;
    ET_TRY(make_room(self, own));
    struct seen *s = &own->seen[own->n];
    snprintf(s->name, sizeof s->name, "%.*s_%s.0", ET_METRIC_NAME - 10, path, which);
    s->value = value;
    s->at = -1;
    for (int i = 0; i < own->n && s->at < 0; i++)
        if (own->seen[i].value == value)
            s->at = own->seen[i].at;
    if (s->at < 0) {
        s->at = own->n_parts;
        summarise(g, value, own->part + s->at);
        own->n_parts += KINDS;
    }
    own->n++;
    return ET_OK;
}

static void
module(struct et_callback *self, const struct et_state *state, struct et_module *m,
       struct et_tensor *x, struct et_tensor *y)
{
    struct monitor *own = self->state;
    char path[ET_METRIC_NAME] = "";
    if (!own->looking || !find_path(state->model->root, m, path, 0) ||
        is_ignored(self->options, m, path))
        return;
    if (add(self, state->graph, path, "input", x) != ET_OK ||
        add(self, state->graph, path, "output", y) != ET_OK) {
        et_report(self->cx, ET_LOG_WARN, "activation_monitor: %s",
                  et_error_get(self->cx)->message);
        et_error_clear(self->cx);
        own->looking = false;
    }
}

/* ---- events ---- */

static et_status
begin(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct monitor *own = self->state;
    double now;
    bool due;
    if (s->pass > 0 || s->batch.first_row > 0) {
        own->looking = false;
        return ET_OK;
    }
    ET_TRY(eti_at_interval(self->cx, &s->timestamp, o->interval, &now, &due));
    own->looking = due && now != own->last;
    if (own->looking) {
        own->batch = s->timestamp.batch;
        own->n = own->n_parts = 0;
    }
    return ET_OK;
}

static et_status
make_leaf(struct et_callback *self, struct monitor *own, struct et_device *dev)
{
    const int64_t n = own->n_parts;
    void *block;
    if (own->leaf_count == own->n_parts)
        return ET_OK;
    et_tensor_free(&own->leaf);
    et_free(self->cx, own->host);
    own->host = NULL;
    own->leaf_count = 0;
    ET_TRY(et_alloc(self->cx, (size_t)n * sizeof *own->host, &block));
    own->host = block;
    ET_TRY(et_tensor_new(self->cx, dev, ET_F32, 1, &n, ET_ROW_MAJOR,
                         "activation_monitor", &own->leaf));
    own->leaf_count = own->n_parts;
    return ET_OK;
}

static et_status
end(struct et_callback *self, const struct et_state *s)
{
    struct monitor *own = self->state;
    if (!own->looking || own->n_parts == 0)
        return ET_OK;
    own->looking = false;
    ET_TRY(et_graph_status(s->graph));
    ET_TRY(make_leaf(self, own, s->dev));
    et_assign(s->graph, own->leaf, et_concat(s->graph, own->part, own->n_parts, 0));
    own->done = true;
    return et_graph_status(s->graph);
}

static et_status
log_all(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct monitor *own = self->state;
    char name[ET_METRIC_NAME];
    struct et_time now;
    /* Where the host ran ahead, batches before the one looked at are shown first. */
    if (!own->done || s->timestamp.batch != own->batch + 1)
        return ET_OK;
    own->done = false;
    ET_TRY(et_timestamp_get(self->cx, &s->timestamp, o->interval.unit, &now));
    own->last =
        now.value - (o->interval.unit == ET_TIME_BATCH); /* as the pass saw it */
    ET_TRY(et_tensor_read(self->cx, own->leaf, own->host,
                          (size_t)own->leaf_count * sizeof *own->host));
    for (int i = 0; i < own->n; i++)
        for (int k = 0; k < KINDS; k++) {
            snprintf(name, sizeof name, "activations/%s/%.*s", kind_name[k],
                     ET_METRIC_NAME - 22, own->seen[i].name);
            et_log_metric(log, name, (double)own->host[own->seen[i].at + k]);
        }
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct monitor *own = self->state;
    switch (event) {
    case ET_EVENT_INIT:
        own->last = -1;
        return ET_OK;
    case ET_EVENT_BEFORE_FORWARD:
        return begin(self, s);
    case ET_EVENT_AFTER_FORWARD:
        return end(self, s);
    default:
        return log_all(self, s, log);
    }
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct monitor *own = self->state;
    return et_archive_f64(a, "last", &own->last, 1);
}

static void
release(struct et_callback *self)
{
    struct monitor *own = self->state;
    et_tensor_free(&own->leaf);
    et_free(self->cx, own->host);
    et_free(self->cx, own->seen);
    et_free(self->cx, own->part);
    *own = (struct monitor){0};
}

/* The numbers are overwritten by the next pass that is looked at. */
static bool
trails(const struct et_callback *self, const struct et_state *state)
{
    const struct monitor *own = self->state;
    (void)state;
    return !own->done;
}

const struct et_callback_class et_callback_activation_monitor = {
    .info =
        {
            .name = "activation_monitor",
            .class_name = "ActivationMonitor",
            .summary = "size and shape of what goes into modules and comes out",
            .source = "MosaicML Composer, ActivationMonitor",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct monitor),
    .events =
        ET_ON(INIT) | ET_ON(BEFORE_FORWARD) | ET_ON(AFTER_FORWARD) | ET_ON(BATCH_END),
    .module = module,
    .run = run,
    .trails = trails,
    .archive = archive,
    .close = release,
};
