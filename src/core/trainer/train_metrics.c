/* SPDX-License-Identifier: Apache-2.0 */
/* train_metrics.c: the task's metrics over the batch that is trained on. */
#include "config.h"

#include <stdio.h>

#include "core/trainer/part.h"

struct metrics {
    struct et_metric *v[ETI_MAX_METRICS];
    struct et_metric_value value[ETI_MAX_METRICS];
    int n;
};

static et_status
init(struct eti_part *p)
{
    struct metrics *own = p->own;
    p->s->train_metrics = own->value;
    ET_TRY(eti_metrics_new(p->s, et_task_metrics(p->s->model->task, true), own->v,
                           &own->n));
    for (int i = 0; i < p->config->n_metrics; i++)
        ET_TRY(eti_metrics_add(p->s, &p->config->metrics[i], own->v, &own->n));
    return ET_OK;
}

static void
release(struct eti_part *p)
{
    struct metrics *own = p->own;
    for (int i = 0; i < own->n; i++)
        et_metric_free(&own->v[i]);
    own->n = 0;
}

static et_status
add(struct eti_part *p, struct eti_train_step *k)
{
    struct metrics *own = p->own;
    struct et_state *s = p->s;
    for (int i = 0; s->pass == 0 && i < own->n; i++)
        (k->first ? et_metric_update : et_metric_begin)(s->graph, own->v[i], s->outputs,
                                                        &k->samples);
    return et_graph_status(s->graph);
}

/* Each has its sums, and what they carry. */
static int64_t
count(const struct eti_part *p)
{
    const struct metrics *own = p->own;
    int64_t n = 0;
    for (int i = 0; i < own->n; i++)
        n += 2 * et_metric_n_sums(own->v[i]);
    return n;
}

static int
sums(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v)
{
    struct metrics *own = p->own;
    struct et_graph *g = p->s->graph;
    int n = 0;
    for (int i = 0; i < own->n; i++, n += 2) {
        et_metric_totals(g, own->v[i], &v[n], &v[n + 1]);
        v[n] = eti_counted(g, k, v[n]);
        v[n + 1] = eti_counted(g, k, v[n + 1]);
    }
    return n;
}

static int
report(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v)
{
    struct metrics *own = p->own;
    int64_t at = 0;
    (void)k;
    for (int i = 0; i < own->n; i++) {
        int64_t n = et_metric_n_sums(own->v[i]);
        if (p->common->comm) {
            v[2 * i] = eti_sum_over_ranks(p, at, n);
            v[2 * i + 1] = eti_sum_over_ranks(p, at + n, n);
        } else {
            et_metric_totals(p->s->graph, own->v[i], &v[2 * i], &v[2 * i + 1]);
        }
        at += 2 * n;
    }
    return 2 * own->n;
}

static void
name_value(struct metrics *own, int i)
{
    snprintf(own->value[i].name, sizeof own->value[i].name, "metrics/train/%s",
             et_metric_class(own->v[i])->info.name);
}

static void
take(struct eti_part *p, struct eti_numbers *numbers)
{
    struct metrics *own = p->own;
    p->s->n_train_metrics = own->n;
    for (int i = 0; i < own->n; i++) {
        struct et_metric_value *to = &own->value[i];
        int n = et_metric_n_sums(own->v[i]);
        name_value(own, i);
        to->value = et_metric_value_of(own->v[i], numbers->at, numbers->at + n);
        et_log_metric(p->s->log, to->name, to->value);
        numbers->at += 2 * n;
    }
}

/* The values of the last batch: what ends an epoch may come after a run has been
 * resumed, and stoppers look at them there. Older checkpoints have none. */
static et_status
archive(struct eti_part *p, struct et_archive *a)
{
    struct metrics *own = p->own;
    bool saves = et_archive_mode(a) == ET_ARCHIVE_SAVE;
    int n = saves ? p->s->n_train_metrics : own->n, had = 0;
    ET_TRY(et_archive_enter(a, "train_metrics"));
    for (int i = 0; i < n; i++) {
        const char *name = et_metric_class(own->v[i])->info.name;
        if (!et_archive_has(a, name))
            continue;
        ET_TRY(et_archive_f64(a, name, &own->value[i].value, 1));
        name_value(own, i);
        had++;
    }
    et_archive_leave(a);
    if (et_archive_mode(a) == ET_ARCHIVE_LOAD && had == n)
        p->s->n_train_metrics = n;
    return ET_OK;
}

const struct eti_part_type eti_part_metrics = {
    .size = sizeof(struct metrics),
    .init = init,
    .release = release,
    .add = add,
    .n_sums = count,
    .sums = sums,
    .n_reported = count,
    .report = report,
    .take = take,
    .archive = archive,
};
