/* readback.c: what a batch came to: reading it, and not waiting for it.
 *
 * The last evaluation of a batch gathers its numbers (loss, verdict, loss scale, parts,
 * metrics) into one leaf. Where work runs at once they are read right away. On a device
 * with a queue of its own that would empty the queue at every step; there they are
 * copied to pinned memory behind the step, and the host builds the next batches
 * meanwhile.
 *
 * What depends on them comes later by at most ETI_AHEAD batches, always in the batches'
 * order, and always by as many: nothing depends on how fast the device is. That is the
 * judgement of batches that were not finite, callbacks and loggers at BATCH_END, and
 * the record; they are shown timestamp, rate and log as they were. Algorithms act in
 * time. Every event outside of a batch (an epoch's end, an evaluation, a checkpoint)
 * waits for all that is parked. An update that was skipped has changed nothing on the
 * device, which also knows what the updates since should count
 * (et_optimizer_run_ahead). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/staging.h"
#include "core/graph/tensor.h"
#include "core/trainer/trainer_impl.h"

enum { TOTAL, SKIPPED, OVERFLOW, SCALE, SCALARS };

static int64_t
count_room(const struct et_trainer *t)
{
    int64_t n = SCALARS + ETI_MAX_LOSS_PARTS;
    for (int i = 0; i < t->n_train_metrics; i++)
        n += 2 * et_metric_n_sums(t->train_metric[i]);
    return n;
}

static et_status
make_batch(struct et_trainer *t, struct eti_readback_batch *b, float *number)
{
    struct et_device *dev = t->state.dev;
    b->number = number;
    ET_TRY(eti_book_new(t->state.cx, &b->book));
    if (t->readback.ahead == 0)
        return ET_OK;
    return eti_device_check(dev, dev->table->fence_new(dev->handle, &b->fence),
                            "a fence");
}

/* ETUDE_AHEAD=0: wait for each batch, to find out what a difference comes from. */
static bool
may_run_ahead(const struct et_device *dev)
{
    const char *ahead = getenv("ETUDE_AHEAD");
    return dev->table->fence_new && dev->table->host_alloc &&
           !(ahead && strcmp(ahead, "0") == 0);
}

et_status
eti_readback_init(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_readback *l = &t->readback;
    const struct et_device_table *table = s->dev->table;
    void *block;
    l->ahead = may_run_ahead(s->dev) ? ETI_AHEAD : 0;
    l->room = count_room(t);
    ET_TRY(et_storage_new(s->cx, s->dev, (size_t)l->room * sizeof(float), &l->report));
    size_t bytes = (size_t)(l->ahead + 1) * (size_t)l->room * sizeof(float);
    if (l->ahead > 0)
        ET_TRY(eti_device_check(
            s->dev, table->host_alloc(s->dev->handle, bytes, &block), "pinned memory"));
    else
        ET_TRY(et_alloc(s->cx, bytes, &block));
    l->block = block;
    for (int i = 0; i <= l->ahead; i++)
        ET_TRY(make_batch(t, &l->batch[i], l->block + i * l->room));
    return et_optimizer_run_ahead(s->optimizer, l->ahead);
}

void
eti_readback_release(struct et_trainer *t)
{
    struct eti_readback *l = &t->readback;
    struct et_device *dev = t->state.dev;
    for (int i = 0; i <= ETI_AHEAD; i++) {
        eti_book_free(&l->batch[i].book);
        if (l->batch[i].fence) {
            (void)dev->table->fence_wait(l->batch[i].fence); /* it writes to BLOCK */
            dev->table->fence_free(l->batch[i].fence);
        }
    }
    if (l->ahead > 0 && l->block)
        dev->table->host_free(dev->handle, l->block);
    else
        et_free(t->state.cx, l->block);
    for (int i = 0; i <= ETI_MAX_LOSS_PARTS; i++)
        et_tensor_free(&l->leaf[i]);
    et_storage_unref(l->report);
    *l = (struct eti_readback){0};
}

/* ---- numbers ---- */

static struct eti_readback_batch *
under_way(struct eti_readback *l)
{
    return &l->batch[(l->first + l->n) % (l->ahead + 1)];
}

/* The batch's numbers, in the order in which take reads them. */
static int
collect(struct et_trainer *t, struct et_tensor *skip, struct et_tensor **v)
{
    struct et_graph *g = t->state.graph;
    struct et_tensor *none = skip;
    int n = 0;
    v[n++] = eti_ranks_total(t);
    v[n++] = skip;
    v[n++] = t->scaler.scale ? et_pending(g, t->scaler.overflow) : none;
    v[n++] = t->scaler.scale ? et_pending(g, t->scaler.scale) : none;
    for (int i = 0; i < t->n_parts; i++)
        if (t->part[i].logged)
            v[n++] = eti_ranks_part(t, i);
    for (int i = 0; i < t->n_train_metrics; i++) {
        eti_ranks_metric_totals(t, i, &v[n], &v[n + 1]);
        n += 2;
    }
    return n;
}

static int
count_parts(const struct et_trainer *t)
{
    int n = 0;
    for (int i = 0; i < t->n_parts; i++)
        n += t->part[i].logged;
    return n;
}

et_status
eti_readback_append(struct et_trainer *t, struct et_tensor *skip)
{
    struct et_graph *g = t->state.graph;
    struct et_tensor *v[SCALARS + ETI_MAX_LOSS_PARTS + 2 * ETI_MAX_METRICS];
    struct et_tensor **leaf = &t->readback.leaf[count_parts(t)];
    int n = collect(t, skip, v);
    struct et_tensor *all = et_concat(g, v, n, 0);
    ET_TRY(et_graph_status(g));
    if (!*leaf)
        ET_TRY(et_tensor_view(t->state.cx, t->readback.report, 0, &all->desc, "report",
                              leaf));
    et_assign(g, *leaf, all);
    return et_graph_status(g);
}

et_status
eti_readback_send(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_readback *l = &t->readback;
    struct eti_readback_batch *b = under_way(l);
    const struct et_device_table *table = s->dev->table;
    struct et_tensor *leaf = l->leaf[count_parts(t)];
    b->parts = 0;
    for (int i = 0; i < t->n_parts; i++) {
        b->parts |= (unsigned)t->part[i].logged << i;
        t->part[i].logged = false;
    }
    size_t bytes = et_desc_bytes(&leaf->desc);
    if (l->ahead == 0)
        return et_tensor_read(s->cx, leaf, b->number, bytes);
    et_optimizer_done(s->optimizer, false);
    ET_TRY(eti_device_copy(s->dev, b->number, et_tensor_data(leaf), bytes));
    return eti_device_check(s->dev, table->fence_set(b->fence, NULL), "a fence");
}

static void
log_parts(struct et_trainer *t, unsigned parts, const float **at)
{
    char name[ET_METRIC_NAME];
    for (int i = 0; i < t->n_parts; i++) {
        if (!(parts & 1u << i))
            continue;
        snprintf(name, sizeof name, "loss/train/%s", t->part[i].name);
        et_log_metric(t->state.log, name, (double)*(*at)++);
    }
}

static void
log_train_metrics(struct et_trainer *t, const float *at)
{
    struct et_state *s = &t->state;
    s->n_train_metrics = t->n_train_metrics;
    for (int i = 0; i < t->n_train_metrics; i++) {
        struct et_metric_value *v = &t->train_value[i];
        const struct et_metric *m = t->train_metric[i];
        int n = et_metric_n_sums(m);
        snprintf(v->name, sizeof v->name, "metrics/train/%s",
                 et_metric_class(m)->info.name);
        v->value = et_metric_value_of(m, at, at + n);
        et_log_metric(s->log, v->name, v->value);
        at += 2 * n;
    }
}

/* Into state and log. BATCH: its number, from 1. */
static void
take(struct et_trainer *t, const struct eti_readback_batch *b, int64_t batch)
{
    struct et_state *s = &t->state;
    const float *v = b->number;
    bool skipped = v[SKIPPED] != 0;
    if (t->readback.ahead > 0)
        et_optimizer_settle(s->optimizer, skipped);
    else
        et_optimizer_done(s->optimizer, skipped);
    bool excused = eti_scaler_settle(t, batch, v[OVERFLOW], v[SCALE]);
    t->nonfinite_batches = skipped && !excused ? t->nonfinite_batches + 1 : 0;
    s->loss_value = (double)v[TOTAL];
    et_log_metric(s->log, "loss/train/total", s->loss_value);
    v += SCALARS;
    log_parts(t, b->parts, &v);
    et_log_metric(s->log,
                  t->config.microbatch_size ? "trainer/device_train_microbatch_size"
                                            : "trainer/grad_accum",
                  (double)(t->config.microbatch_size ? t->config.microbatch_size
                                                     : s->grad_accum));
    log_train_metrics(t, v);
}

void
eti_readback_take(struct et_trainer *t)
{
    if (t->readback.ahead == 0)
        take(t, under_way(&t->readback), t->state.timestamp.batch + 1);
}

/* ---- batches ---- */

static struct eti_view
look(const struct et_trainer *t)
{
    const struct et_state *s = &t->state;
    struct eti_view v = {
        .ts = s->timestamp,
        .batch = s->batch,
        .full = s->full,
        .lr_factor = s->lr_factor,
        .grad_accum = s->grad_accum,
        .flops = s->batch_flops,
    };
    memcpy(v.group_factor, t->groups.factor, sizeof v.group_factor);
    return v;
}

static void
show(struct et_trainer *t, const struct eti_view *v)
{
    struct et_state *s = &t->state;
    s->timestamp = v->ts;
    s->batch = v->batch;
    s->full = v->full;
    s->lr_factor = v->lr_factor;
    s->grad_accum = v->grad_accum;
    s->batch_flops = v->flops;
    memcpy(t->groups.factor, v->group_factor, sizeof v->group_factor);
    eti_groups_apply(t);
}

void
eti_readback_park(struct et_trainer *t)
{
    struct eti_readback *l = &t->readback;
    struct eti_readback_batch *b = under_way(l);
    b->view = look(t);
    eti_log_swap(t->state.log, &b->book);
    l->n++;
}

static struct eti_readback_batch *
oldest(struct eti_readback *l)
{
    struct eti_readback_batch *b = &l->batch[l->first];
    l->first = (l->first + 1) % (l->ahead + 1);
    l->n--;
    return b;
}

static void
forget(struct eti_view *v)
{
    v->batch.x = v->batch.target = v->full.x = v->full.target = NULL;
}

/* Everything at the end of a batch that was left for when its numbers are there. */
static et_status
deliver(struct et_trainer *t, struct eti_readback_batch *b)
{
    struct et_state *s = &t->state;
    struct eti_view now = look(t);
    ET_TRY(eti_device_check(s->dev, s->dev->table->fence_wait(b->fence), "a step"));
    if (now.batch.x != b->view.batch.x || now.ts.batch != b->view.ts.batch)
        forget(&b->view); /* the loader has the batch back */
    eti_log_swap(s->log, &b->book);
    show(t, &b->view);
    take(t, b, b->view.ts.batch);
    bool back = eti_judge(t);
    et_status status = eti_engine_watch(s, ET_EVENT_BATCH_END);
    if (status == ET_OK)
        et_log_emit(s->log, ET_RECORD_BATCH, &b->view.ts, NULL);
    eti_log_swap(s->log, &b->book);
    if (!back)
        show(t, &now);
    return status;
}

et_status
eti_readback_deliver(struct et_trainer *t, int keep)
{
    struct eti_readback *l = &t->readback;
    et_status status = ET_OK;
    if (l->delivering)
        return ET_OK;
    l->delivering = true;
    while (l->n > keep && status == ET_OK)
        status = deliver(t, oldest(l));
    l->delivering = false;
    return status;
}

et_status
eti_readback_discard(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    while (t->readback.n > 0) {
        struct eti_readback_batch *b = oldest(&t->readback);
        ET_TRY(eti_device_check(s->dev, s->dev->table->fence_wait(b->fence), "a step"));
        et_optimizer_settle(s->optimizer, b->number[SKIPPED] != 0);
        eti_book_clear(b->book);
    }
    return ET_OK;
}
