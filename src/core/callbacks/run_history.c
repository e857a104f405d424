/* SPDX-License-Identifier: Apache-2.0 */
/* run_history.c: what a run came to, epoch by epoch, to be asked for (callback.h).
 *
 * At each epoch's end the mean of the training loss and metrics over its samples, under
 * their names; at each evaluation's end its metrics. Source: spec/trainer.md 14.5,
 * RunHistory. Differs: names are those of GLOSSARY.md; a second call of fit continues
 * the history, as the timestamp does, until it is reset. All of it is in
 * checkpoints. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/need.h"
#include "core/callbacks/callbacks.h"

enum { MAX_MEANS = 32 }; /* the loss and what metrics a model trains with */

struct series {
    char name[ET_METRIC_NAME];
    double *value;
    int64_t n, room;
};

/* A mean over the samples of the epoch so far. */
struct mean {
    char name[ET_METRIC_NAME];
    double sum, weight;
};

struct history {
    char prefix[ET_METRIC_NAME];
    int64_t epoch; /* from 1: the one under way */
    struct series *series;
    int64_t n, room;
    struct mean mean[MAX_MEANS];
    int n_means;
};

static struct history *
history_of(const struct et_callback *c)
{
    return c && c->type == &et_callback_run_history ? c->state : NULL;
}

/* ---- series ---- */

static struct series *
find(const struct history *h, const char *name)
{
    for (int64_t i = 0; i < h->n; i++)
        if (strcmp(h->series[i].name, name) == 0)
            return &h->series[i];
    return NULL;
}

static et_status
add(struct et_ctx *cx, struct history *h, const char *name, double value)
{
    struct series *s = find(h, name);
    if (!s) {
        ET_TRY(eti_grow(cx, &h->series, &h->room, h->n + 1, sizeof *s));
        s = &h->series[h->n++];
        *s = (struct series){.n = 0};
        snprintf(s->name, sizeof s->name, "%s", name);
    }
    ET_TRY(eti_grow(cx, &s->value, &s->room, s->n + 1, sizeof *s->value));
    s->value[s->n++] = value;
    return ET_OK;
}

static void
forget(struct et_ctx *cx, struct history *h)
{
    for (int64_t i = 0; i < h->n; i++)
        et_free(cx, h->series[i].value);
    h->n = 0;
}

/* ---- asking ---- */

const char *
et_history_name(const struct et_callback *c, int64_t i)
{
    const struct history *h = history_of(c);
    return h && i >= 0 && i < h->n ? h->series[i].name : NULL;
}

bool
et_history_values(const struct et_callback *c, const char *name, const double **values,
                  int64_t *n)
{
    if (!values || !n)
        return false;
    const struct history *h = history_of(c);
    const struct series *s = h ? find(h, name) : NULL;
    *values = s ? s->value : NULL;
    *n = s ? s->n : 0;
    return s != NULL;
}

et_status
et_history_latest(const struct et_callback *c, const char *name, double *out)
{
    ETI_NEED(c ? c->cx : NULL, c);
    const double *values;
    int64_t n;
    if (!et_history_values(c, name, &values, &n) || n == 0)
        return ET_FAIL(c->cx, ET_EINVAL, "the history has no %s", name);
    *out = values[n - 1];
    return ET_OK;
}

et_status
et_history_update(struct et_callback *c, const char *name, double value)
{
    ETI_NEED(c ? c->cx : NULL, c);
    struct history *h = history_of(c);
    char full[2 * ET_METRIC_NAME];
    if (!h)
        return ET_FAIL(c->cx, ET_EINVAL, "%s is no run_history", c->type->info.name);
    snprintf(full, sizeof full, "%s%s", h->prefix, name);
    if (strlen(full) >= ET_METRIC_NAME)
        return ET_FAIL(c->cx, ET_EINVAL, "'%s' is longer than %d bytes", full,
                       ET_METRIC_NAME - 1);
    return add(c->cx, h, full, value);
}

void
et_history_set_prefix(struct et_callback *c, const char *prefix)
{
    struct history *h = history_of(c);
    if (h)
        snprintf(h->prefix, sizeof h->prefix, "%s", prefix);
}

int64_t
et_history_epoch(const struct et_callback *c)
{
    const struct history *h = history_of(c);
    return h ? h->epoch : 0;
}

void
et_history_delete(struct et_callback *c, const char *name)
{
    struct history *h = history_of(c);
    struct series *s = h ? find(h, name) : NULL;
    if (!s)
        return;
    et_free(c->cx, s->value);
    memmove(s, s + 1, (size_t)(h->series + h->n - (s + 1)) * sizeof *s);
    h->n--;
}

void
et_history_reset(struct et_callback *c)
{
    struct history *h = history_of(c);
    if (!h)
        return;
    forget(c->cx, h);
    h->epoch = 1;
    h->n_means = 0;
}

/* ---- recording ---- */

static void
weigh(struct history *h, const char *name, double value, double weight)
{
    int i = 0;
    while (i < h->n_means && strcmp(h->mean[i].name, name) != 0)
        i++;
    if (i == MAX_MEANS)
        return;
    if (i == h->n_means) {
        snprintf(h->mean[i].name, sizeof h->mean[i].name, "%s", name);
        h->mean[i].sum = h->mean[i].weight = 0;
        h->n_means++;
    }
    h->mean[i].sum += weight * value;
    h->mean[i].weight += weight;
}

static et_status
end_epoch(struct et_callback *self)
{
    struct history *h = self->state;
    for (int i = 0; i < h->n_means; i++)
        ET_TRY(et_history_update(self, h->mean[i].name,
                                 h->mean[i].sum / h->mean[i].weight));
    h->n_means = 0;
    h->epoch++;
    return ET_OK;
}

static et_status
end_evaluation(struct et_callback *self, const struct et_state *s)
{
    char place[ET_METRIC_NAME];
    int n = snprintf(place, sizeof place, "metrics/%s/", s->dataloader_label);
    if (s->interrupted) /* it was broken off and has no values */
        return ET_OK;
    for (int i = 0; i < s->n_eval_metrics; i++)
        if (strncmp(s->eval_metrics[i].name, place, (size_t)n) == 0)
            ET_TRY(et_history_update(self, s->eval_metrics[i].name,
                                     s->eval_metrics[i].value));
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct history *h = self->state;
    double samples = (double)s->batch.n;
    (void)log;
    switch (event) {
    case ET_EVENT_INIT:
        if (h->epoch == 0)
            h->epoch = 1;
        return ET_OK;
    case ET_EVENT_BATCH_END:
        weigh(h, "loss/train/total", s->loss_value, samples);
        for (int i = 0; i < s->n_train_metrics; i++)
            weigh(h, s->train_metrics[i].name, s->train_metrics[i].value, samples);
        return ET_OK;
    case ET_EVENT_EPOCH_END:
        return end_epoch(self);
    default:
        return end_evaluation(self, s);
    }
}

/* ---- checkpoints ---- */

/* What was read takes the place of the series; it is not trusted. */
static et_status
take_series(struct et_callback *self, const char *names, int64_t n_names,
            const int64_t *counts, const double *values, int64_t n_values)
{
    char name[ET_METRIC_NAME];
    struct history *h = self->state;
    forget(self->cx, h);
    for (int64_t i = 0; i < n_names; i++) {
        snprintf(name, sizeof name, "%.*s", ET_METRIC_NAME - 1,
                 names + i * ET_METRIC_NAME);
        if (counts[i] < 0 || counts[i] > n_values)
            return ET_FAIL(self->cx, ET_EFORMAT, "run_history: %lld values of %s",
                           (long long)counts[i], name);
        for (int64_t k = 0; k < counts[i]; k++)
            ET_TRY(add(self->cx, h, name, *values++));
        n_values -= counts[i];
    }
    return ET_OK;
}

struct flat {
    void *names, *counts, *values;
    int64_t n, n_counts, n_values;
};

static et_status
flatten(struct et_callback *self, struct flat *f)
{
    const struct history *h = self->state;
    int64_t at = 0;
    f->n = f->n_counts = h->n;
    for (int64_t i = 0; i < h->n; i++)
        f->n_values += h->series[i].n;
    ET_TRY(et_alloc(self->cx, (size_t)f->n * ET_METRIC_NAME + 1, &f->names));
    ET_TRY(et_alloc(self->cx, ((size_t)f->n + 1) * sizeof(int64_t), &f->counts));
    ET_TRY(et_alloc(self->cx, ((size_t)f->n_values + 1) * sizeof(double), &f->values));
    for (int64_t i = 0; i < h->n; i++) {
        const struct series *s = &h->series[i];
        memcpy((char *)f->names + i * ET_METRIC_NAME, s->name, ET_METRIC_NAME);
        ((int64_t *)f->counts)[i] = s->n;
        for (int64_t k = 0; k < s->n; k++)
            ((double *)f->values)[at++] = s->value[k];
    }
    return ET_OK;
}

static et_status
archive_flat(struct et_callback *self, struct et_archive *a, struct flat *f)
{
    ET_TRY(et_archive_list(a, "names", &f->names, &f->n, ET_METRIC_NAME));
    ET_TRY(et_archive_list(a, "counts", &f->counts, &f->n_counts, sizeof(int64_t)));
    ET_TRY(et_archive_list(a, "values", &f->values, &f->n_values, sizeof(double)));
    if (et_archive_mode(a) != ET_ARCHIVE_LOAD)
        return ET_OK;
    if (f->n != f->n_counts)
        return ET_FAIL(self->cx, ET_EFORMAT, "run_history: %lld names, %lld counts",
                       (long long)f->n, (long long)f->n_counts);
    return take_series(self, f->names, f->n, f->counts, f->values, f->n_values);
}

static et_status
archive_means(struct et_callback *self, struct et_archive *a)
{
    struct history *h = self->state;
    bool saving = et_archive_mode(a) == ET_ARCHIVE_SAVE;
    void *block = saving ? h->mean : NULL;
    int64_t n = saving ? h->n_means : 0;
    ET_TRY(et_archive_list(a, "means", &block, &n, sizeof *h->mean));
    if (et_archive_mode(a) != ET_ARCHIVE_LOAD)
        return ET_OK;
    h->n_means = (int)(n < MAX_MEANS ? n : MAX_MEANS);
    if (n)
        memcpy(h->mean, block, (size_t)h->n_means * sizeof *h->mean);
    for (int i = 0; i < h->n_means; i++)
        h->mean[i].name[ET_METRIC_NAME - 1] = '\0';
    et_free(self->cx, block);
    return ET_OK;
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct history *h = self->state;
    struct flat f = {0};
    ET_TRY(et_archive_i64(a, "epoch", &h->epoch, 1));
    ET_TRY(et_archive_text(a, "prefix", h->prefix, sizeof h->prefix));
    ET_TRY(archive_means(self, a));
    et_status status =
        et_archive_mode(a) == ET_ARCHIVE_SAVE ? flatten(self, &f) : ET_OK;
    if (status == ET_OK)
        status = archive_flat(self, a, &f);
    et_free(self->cx, f.names);
    et_free(self->cx, f.counts);
    et_free(self->cx, f.values);
    return status;
}

static void
release(struct et_callback *self)
{
    struct history *h = self->state;
    forget(self->cx, h);
    et_free(self->cx, h->series);
    *h = (struct history){0};
}

const struct et_callback_class et_callback_run_history = {
    .info =
        {
            .name = "run_history",
            .class_name = "RunHistory",
            .summary =
                "means of each epoch and results of evaluations, to be asked for",
            .source = "pytorch-accelerated, RunHistory",
            .applies_to = "any",
        },
    .state_size = sizeof(struct history),
    .events = ET_ON(INIT) | ET_ON(BATCH_END) | ET_ON(EPOCH_END) | ET_ON(EVAL_END),
    .run = run,
    .trails = et_callback_trails,
    .archive = archive,
    .close = release,
};
