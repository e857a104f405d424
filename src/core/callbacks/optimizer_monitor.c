/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer_monitor.c: how large gradients, moments, weights and updates are.
 *
 * With g the gradient that the update used (clipped, averaged over microbatches), m and
 * v the first and second moment and p the weights behind it, u = p before - p behind
 * it:
 *
 *     l2_norm/grad         |g|               l2_norm_ratio/moment_grad   |m| / |g|
 *     l2_norm/moment       |m|               l2_norm_ratio/update_param  |u| / |p|
 *     l2_norm/param        |p|               cosine/moment_grad       m.g / (|m| |g|)
 *     l2_norm/update       |u|               cosine/update_grad       u.g / (|u| |g|)
 *     l2_norm/second_moment_sqrt   |sqrt v|
 *
 * each with /<parameter> and with /global for all parameters as one vector. A cosine
 * with a vector of zeros is 0. Source: spec/trainer.md 9.3. Differs: |m| / |g| and
 * |sqrt v| are what their names say (appendix B 24); u is the change that was made, of
 * any optimizer, and not a formula of Adam's; all have a /global.
 *
 * The device sums blocks of 64 elements of flat memory, in which no two parameters meet
 * and gaps are zero, in the update's own evaluation; the host adds the blocks of each
 * parameter in double. Batches that are not logged are not touched. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/callbacks/callbacks.h"

struct options {
    bool log_optimizer_metrics;
    int64_t batch_log_interval;
    bool only_global;
};

static const struct et_option option_table[] = {
    {
        .name = "log_optimizer_metrics",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, log_optimizer_metrics),
        .def = "true",
        .help = "moments, weights and updates, not only gradients",
    },
    {
        .name = "batch_log_interval",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, batch_log_interval),
        .def = "10",
        .min = 1,
        .max = INFINITY,
        .unit = "batches",
        .help = "log every so many batches",
    },
    {
        .name = "only_global",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, only_global),
        .def = "false",
        .help = "all parameters together, not each of them",
    },
    {.name = NULL},
};

/* What is summed. */
enum { GRAD2, MOMENT2, SECOND, PARAM2, UPDATE2, MOMENT_GRAD, UPDATE_GRAD, SUMS };

struct monitor {
    const struct et_param_space *space; /* what the rest was made for */
    int64_t total;
    int n;                   /* parameters */
    int first, second;       /* which moments are m and v; -1: not kept */
    int n_sums;              /* 1 or SUMS */
    int64_t blocks;          /* of flat memory */
    struct et_tensor *sums;  /* leaf f32 [n_sums * blocks] */
    float *host;             /* the same */
    struct et_tensor **part; /* [n_sums * parameters]: for et_pack */
    int64_t *at;             /* likewise */
};

static void
release(struct et_callback *self)
{
    struct monitor *m = self->state;
    et_tensor_free(&m->sums);
    et_free(self->cx, m->host);
    et_free(self->cx, m->part);
    et_free(self->cx, m->at);
    *m = (struct monitor){0};
}

/* The moment that has either name; -1 when none has. */
static int
find_moment(const struct et_param_space *space, const char *a, const char *b)
{
    for (int i = 0; i < space->n_moments; i++)
        if (strcmp(space->moment_name[i], a) == 0 ||
            strcmp(space->moment_name[i], b) == 0)
            return i;
    return -1;
}

/* Surgery makes another space, perhaps at the same place. */
static et_status
make_room(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct monitor *m = self->state;
    void *block;
    if (m->space == s->params && m->total == s->params->total && m->n == s->params->n)
        return ET_OK;
    release(self);
    m->first = find_moment(s->params, "exp_avg", "momentum_buffer");
    m->second = find_moment(s->params, "exp_avg_sq", "square_avg");
    m->n_sums = o->log_optimizer_metrics ? SUMS : 1;
    m->blocks = s->params->total / ET_PARAM_ALIGN;
    const int64_t numbers = m->n_sums * m->blocks;
    const size_t parts = (size_t)m->n_sums * (size_t)s->params->n;
    ET_TRY(et_alloc(self->cx, (size_t)numbers * sizeof *m->host, &block));
    m->host = block;
    ET_TRY(et_alloc(self->cx, parts * sizeof(struct et_tensor *), &block));
    m->part = block;
    ET_TRY(et_alloc(self->cx, parts * sizeof *m->at, &block));
    m->at = block;
    ET_TRY(et_tensor_new(self->cx, s->dev, ET_F32, 1, &numbers, ET_ROW_MAJOR,
                         "optimizer_monitor", &m->sums));
    m->space = s->params;
    m->total = s->params->total;
    m->n = s->params->n;
    return ET_OK;
}

/* A value of a run as one array in whole blocks. Rules may give it as rows; those by
 * tensor give and are given the parameter's shape, behind which a gap of zeros lies. */
static struct et_tensor *
flat(struct et_graph *g, const struct et_update *u, struct et_tensor *x)
{
    static const int64_t zero = 0;
    if (!x)
        return NULL;
    x = et_reshape(g, x, 1, (const int64_t[]){-1});
    int64_t n = u->slot ? u->slot->count : ET_PARAM_ALIGN, gap = -n % ET_PARAM_ALIGN;
    return gap ? et_pack(g, &x, &zero, 1, n + ET_PARAM_ALIGN + gap, ET_F32) : x;
}

/* The sums of X Y (Y NULL: of X) over each block: f32 [blocks]. */
static struct et_tensor *
block_sums(struct et_graph *g, struct et_tensor *x, struct et_tensor *y)
{
    if (!x)
        return NULL;
    const int64_t shape[] = {et_desc_count(&x->desc) / ET_PARAM_ALIGN, ET_PARAM_ALIGN};
    return et_sum(g, et_reshape(g, y ? et_mul(g, x, y) : x, 2, shape), 1u << 1, false);
}

/* The sums of one run of parameters, by kind. */
static void
sum_run(const struct monitor *m, struct et_graph *g, const struct et_update *u,
        struct et_tensor *sums[SUMS])
{
    struct et_tensor *grad = flat(g, u, u->grad);
    sums[GRAD2] = block_sums(g, grad, grad);
    if (m->n_sums == 1)
        return;
    struct et_tensor *moment =
        m->first < 0 ? NULL : flat(g, u, u->new_moment[m->first]);
    struct et_tensor *second =
        m->second < 0 ? NULL : flat(g, u, u->new_moment[m->second]);
    struct et_tensor *param = flat(g, u, u->new_p),
                     *change = et_sub(g, flat(g, u, u->p), param);
    sums[MOMENT2] = block_sums(g, moment, moment);
    sums[SECOND] = block_sums(g, second, NULL);
    sums[PARAM2] = block_sums(g, param, param);
    sums[UPDATE2] = block_sums(g, change, change);
    sums[MOMENT_GRAD] = block_sums(g, moment, grad);
    sums[UPDATE_GRAD] = block_sums(g, change, grad);
}

static et_status
update(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct monitor *m = self->state;
    const struct et_update *u;
    int64_t begin, end;
    int runs = 0;
    if ((s->timestamp.batch + 1) % o->batch_log_interval != 0)
        return ET_OK;
    ET_TRY(make_room(self, s));
    while (et_optimizer_pending(s->optimizer, runs, &begin, &end))
        runs++;
    for (int i = 0; i < runs; i++) {
        struct et_tensor *sums[SUMS] = {NULL};
        u = et_optimizer_pending(s->optimizer, i, &begin, &end);
        sum_run(m, s->graph, u, sums);
        for (int k = 0; k < m->n_sums;
             k++) { /* et_pack wants them in ascending order */
            m->part[k * runs + i] = sums[k];
            m->at[k * runs + i] = k * m->blocks + begin / ET_PARAM_ALIGN;
        }
    }
    et_assign(s->graph, m->sums,
              et_pack(s->graph, m->part, m->at, m->n_sums * runs, m->n_sums * m->blocks,
                      ET_F32));
    return et_graph_status(s->graph);
}

static void
put(struct et_log *log, const char *what, const char *whose, double value)
{
    char name[ET_METRIC_NAME];
    snprintf(name, sizeof name, "%s/%s", what, whose);
    et_log_metric(log, name, value);
}

static double
cosine(double product, double a2, double b2)
{
    return a2 == 0 || b2 == 0 ? 0 : product / sqrt(a2) / sqrt(b2);
}

static void
put_all(const struct monitor *m, const double *sum, const char *whose,
        struct et_log *log)
{
    double grad = sqrt(sum[GRAD2]);
    put(log, "l2_norm/grad", whose, grad);
    if (m->n_sums == 1)
        return;
    if (m->first >= 0) {
        put(log, "l2_norm/moment", whose, sqrt(sum[MOMENT2]));
        put(log, "l2_norm_ratio/moment_grad", whose, sqrt(sum[MOMENT2]) / grad);
        put(log, "cosine/moment_grad", whose,
            cosine(sum[MOMENT_GRAD], sum[MOMENT2], sum[GRAD2]));
    }
    if (m->second >= 0)
        put(log, "l2_norm/second_moment_sqrt", whose, sqrt(sum[SECOND]));
    put(log, "l2_norm/param", whose, sqrt(sum[PARAM2]));
    put(log, "l2_norm/update", whose, sqrt(sum[UPDATE2]));
    put(log, "cosine/update_grad", whose,
        cosine(sum[UPDATE_GRAD], sum[UPDATE2], sum[GRAD2]));
    put(log, "l2_norm_ratio/update_param", whose, sqrt(sum[UPDATE2] / sum[PARAM2]));
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    const struct monitor *m = self->state;
    double all[SUMS] = {0};
    (void)event;
    if (!m->sums || s->timestamp.batch % o->batch_log_interval != 0)
        return ET_OK;
    ET_TRY(et_tensor_read(self->cx, m->sums, m->host, et_desc_bytes(&m->sums->desc)));
    for (int i = 0; i < s->params->n; i++) {
        const struct et_param_slot *slot = &s->params->slot[i];
        int64_t from = slot->offset / ET_PARAM_ALIGN;
        int64_t to = (slot->offset + slot->count - 1) / ET_PARAM_ALIGN;
        double sum[SUMS] = {0};
        if (!s->params->has_grad[i])
            continue;
        for (int k = 0; k < m->n_sums; k++) {
            for (int64_t b = from; b <= to; b++)
                sum[k] += (double)m->host[k * m->blocks + b];
            all[k] += sum[k];
        }
        if (!o->only_global)
            put_all(m, sum, slot->name, log);
    }
    put_all(m, all, "global", log);
    return ET_OK;
}

/* The sums are overwritten by the next batch. */
static bool
trails(const struct et_callback *self, const struct et_state *state)
{
    const struct options *o = self->options;
    return state->timestamp.batch % o->batch_log_interval != 0;
}

const struct et_callback_class et_callback_optimizer_monitor = {
    .info =
        {
            .name = "optimizer_monitor",
            .class_name = "OptimizerMonitor",
            .summary = "norms of gradients, moments, weights and updates",
            .source = "MosaicML Composer, OptimizerMonitor",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct monitor),
    .events = ET_ON(BATCH_END),
    .update = update,
    .run = run,
    .trails = trails,
    .close = release,
};
