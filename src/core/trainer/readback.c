/* SPDX-License-Identifier: Apache-2.0 */
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

#include <stdlib.h>
#include <string.h>

#include "core/graph/staging.h"
#include "core/graph/tensor.h"
#include "core/trainer/log.h"
#include "core/trainer/part.h"
#include "core/trainer/readback.h"
#include "core/trainer/view.h"

/* Enough that the device's queue never runs dry while the host is at work. */
enum { AHEAD = 2 };

/* A batch whose numbers are on their way. */
struct parked {
    struct eti_view view;
    struct eti_book *book;  /* what has been logged of it */
    unsigned losses;        /* as eti_numbers has them */
    float *number;          /* host memory: as the report's leaf has them */
    struct et_fence *fence; /* after their copy; NULL where copies are done at once */
    bool settled;           /* the optimizer knows whether its update was skipped */
};

struct readback {
    int ahead;                 /* AHEAD, or 0 */
    struct et_storage *report; /* room for a batch's numbers, in the parts' order */
    int64_t room;              /* f32: whether it was skipped, and what parts report */
    /* Its beginning as a leaf, for so many tensors; made when needed. */
    struct et_tensor *leaf[2 + ETI_MAX_NUMBERS];
    struct et_tensor *sent; /* that of the batch under way */
    unsigned losses;        /* of it */
    float *block;           /* of all NUMBER, pinned where the device has such memory */
    struct parked batch[AHEAD + 1];
    int first, n;    /* parked: oldest, how many */
    bool is_sent;    /* so is the batch behind them, which is not parked yet */
    bool delivering; /* an older batch is being shown */
};

static et_status
make_batch(const struct eti_part *p, struct parked *b, float *number)
{
    const struct readback *own = p->own;
    struct et_device *dev = p->s->dev;
    b->number = number;
    ET_TRY(eti_book_new(p->s->cx, &b->book));
    if (own->ahead == 0)
        return ET_OK;
    return eti_device_check(dev, dev->table->fence_new(dev->handle, &b->fence),
                            "a fence");
}

/* ETUDE_AHEAD=0: wait for each batch, to find out what a difference comes from. A
 * schedule that is held waits as well: the next rate depends on the verdict. */
static bool
may_run_ahead(const struct eti_part *p)
{
    const struct et_device *dev = p->s->dev;
    const char *ahead = getenv("ETUDE_AHEAD");
    return !p->config->hold_schedule && dev->table->fence_new &&
           dev->table->host_alloc && !(ahead && strcmp(ahead, "0") == 0);
}

static et_status
init(struct eti_part *p)
{
    struct et_state *s = p->s;
    struct readback *own = p->own;
    const struct et_device_table *table = s->dev->table;
    void *block;
    own->ahead = may_run_ahead(p) ? AHEAD : 0;
    own->room = 1 + eti_count_reported(p->t);
    ET_TRY(
        et_storage_new(s->cx, s->dev, (size_t)own->room * sizeof(float), &own->report));
    size_t bytes = (size_t)(own->ahead + 1) * (size_t)own->room * sizeof(float);
    if (own->ahead > 0)
        ET_TRY(eti_device_check(
            s->dev, table->host_alloc(s->dev->handle, bytes, &block), "pinned memory"));
    else
        ET_TRY(et_alloc(s->cx, bytes, &block));
    own->block = block;
    for (int i = 0; i <= own->ahead; i++)
        ET_TRY(make_batch(p, &own->batch[i], own->block + i * own->room));
    return et_optimizer_run_ahead(s->optimizer, own->ahead);
}

static void
release(struct eti_part *p)
{
    struct readback *own = p->own;
    struct et_device *dev = p->s->dev;
    for (int i = 0; i <= AHEAD; i++) {
        eti_book_free(&own->batch[i].book);
        if (own->batch[i].fence) {
            (void)dev->table->fence_wait(own->batch[i].fence); /* it writes to BLOCK */
            dev->table->fence_free(own->batch[i].fence);
        }
    }
    if (own->ahead > 0 && own->block)
        dev->table->host_free(dev->handle, own->block);
    else
        et_free(p->s->cx, own->block);
    for (int i = 0; i < 2 + ETI_MAX_NUMBERS; i++)
        et_tensor_free(&own->leaf[i]);
    et_storage_unref(own->report);
    *own = (struct readback){0};
}

int
eti_readback_ahead(struct et_trainer *t)
{
    const struct readback *own = eti_part_own(t, ETI_PART_READBACK);
    return own->ahead;
}

int
eti_readback_waiting(struct et_trainer *t)
{
    const struct readback *own = eti_part_own(t, ETI_PART_READBACK);
    return own->n;
}

/* ---- numbers ---- */

static struct parked *
under_way(struct readback *own)
{
    return &own->batch[(own->first + own->n) % (own->ahead + 1)];
}

et_status
eti_readback_append(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_READBACK);
    struct eti_train_step *k = eti_train_step_of(t);
    struct readback *own = p->own;
    struct et_graph *g = p->s->graph;
    struct et_tensor *v[1 + ETI_MAX_NUMBERS] = {k->skip};
    int n = 1 + eti_parts_report(p->t, v + 1);
    struct et_tensor *all = et_concat(g, v, n, 0);
    ET_TRY(et_graph_status(g));
    if (!own->leaf[n])
        ET_TRY(et_tensor_view(p->s->cx, own->report, 0, &all->desc, "report",
                              &own->leaf[n]));
    own->sent = own->leaf[n];
    own->losses = k->losses;
    et_assign(g, own->sent, all);
    return et_graph_status(g);
}

static bool
was_skipped(const struct parked *b)
{
    return b->number[0] != 0;
}

static void
settle(struct eti_part *p, struct parked *b)
{
    if (!b->settled)
        et_optimizer_settle(p->s->optimizer, was_skipped(b));
    b->settled = true;
}

/* Into state and log. BATCH: its number, from 1. */
static void
take(struct eti_part *p, struct parked *b, int64_t batch)
{
    const struct readback *own = p->own;
    struct eti_numbers numbers = {
        .at = b->number + 1,
        .batch = batch,
        .losses = b->losses,
        .skipped = was_skipped(b),
    };
    eti_parts_take(p->t, &numbers);
    if (own->ahead > 0)
        settle(p, b);
    else
        et_optimizer_done(p->s->optimizer, numbers.skipped);
}

et_status
eti_readback_send(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_READBACK);
    struct readback *own = p->own;
    struct et_state *s = p->s;
    struct parked *b = under_way(own);
    const struct et_device_table *table = s->dev->table;
    size_t bytes = et_desc_bytes(&own->sent->desc);
    b->losses = own->losses;
    if (own->ahead == 0) {
        ET_TRY(et_tensor_read(s->cx, own->sent, b->number, bytes));
        take(p, b, s->timestamp.batch + 1);
        return ET_OK;
    }
    et_optimizer_done(s->optimizer, false);
    b->settled = false;
    own->is_sent = true;
    ET_TRY(eti_device_copy(s->dev, b->number, et_tensor_data(own->sent), bytes));
    return eti_device_check(s->dev, table->fence_set(b->fence, NULL), "a fence");
}

/* ---- batches ---- */

void
eti_readback_park(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_READBACK);
    struct readback *own = p->own;
    struct parked *b = under_way(own);
    eti_view_take(t, &b->view);
    eti_log_swap(p->s->log, &b->book);
    own->n++;
    own->is_sent = false;
}

static struct parked *
oldest(struct readback *own)
{
    struct parked *b = &own->batch[own->first];
    own->first = (own->first + 1) % (own->ahead + 1);
    own->n--;
    return b;
}

static void
forget(struct eti_view *v)
{
    v->batch = (struct et_samples){.n = v->batch.n, .first_row = v->batch.first_row};
    v->full = (struct et_samples){.n = v->full.n};
}

static et_status
wait_for(const struct eti_part *p, const struct parked *b)
{
    struct et_device *dev = p->s->dev;
    return eti_device_check(dev, dev->table->fence_wait(b->fence), "a step");
}

/* Everything at the end of a batch that was left for when its numbers are there. */
static et_status
deliver(struct eti_part *p, struct parked *b)
{
    struct et_log *log = p->s->log;
    struct eti_view now;
    bool back;
    eti_view_take(p->t, &now);
    ET_TRY(wait_for(p, b));
    if (now.batch.x != b->view.batch.x || now.ts.batch != b->view.ts.batch)
        forget(&b->view); /* the loader has the batch back */
    eti_log_swap(log, &b->book);
    eti_view_show(p->t, &b->view);
    take(p, b, b->view.ts.batch);
    et_status status = eti_view_end_batch(p->t, &back);
    eti_log_swap(log, &b->book);
    if (!back)
        eti_view_show(p->t, &now);
    return status;
}

et_status
eti_readback_deliver(struct et_trainer *t, int keep)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_READBACK);
    struct readback *own = p->own;
    et_status status = ET_OK;
    if (own->delivering)
        return ET_OK;
    own->delivering = true;
    while (own->n > keep && status == ET_OK)
        status = deliver(p, oldest(own));
    own->delivering = false;
    return status;
}

et_status
eti_readback_settle(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_READBACK);
    struct readback *own = p->own;
    ET_TRY(eti_readback_deliver(t, 0));
    for (int i = 0; i < own->n + own->is_sent; i++) {
        struct parked *b = &own->batch[(own->first + i) % (own->ahead + 1)];
        ET_TRY(wait_for(p, b));
        settle(p, b);
    }
    return ET_OK;
}

et_status
eti_readback_discard(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_READBACK);
    struct readback *own = p->own;
    while (own->n > 0) {
        struct parked *b = oldest(own);
        ET_TRY(wait_for(p, b));
        settle(p, b);
        eti_book_clear(b->book);
    }
    return ET_OK;
}

const struct eti_part_type eti_part_readback = {
    .size = sizeof(struct readback),
    .init = init,
    .release = release,
};
