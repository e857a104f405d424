/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c: the model's outputs for every sample of a loader. Source: spec/trainer.md
 * 1.7. */
#include "config.h"

#include "core/base/comm.h"
#include "core/base/need.h"
#include "core/trainer/gather.h"
#include "core/trainer/ranks.h"
#include "core/trainer/trainer_impl.h"
#include "core/trainer/view.h"

struct receiver {
    et_predict_fn *fn;
    void *data;
    float *values; /* of the batch under way, on the host; grows to the largest */
    size_t bytes;
};

static et_status
reserve(struct et_ctx *cx, struct receiver *to, size_t bytes)
{
    void *block;
    if (to->bytes >= bytes)
        return ET_OK;
    ET_TRY(et_alloc(cx, bytes, &block));
    et_free(cx, to->values);
    to->values = block;
    to->bytes = bytes;
    return ET_OK;
}

/* ---- with several ranks ---- */

/* A batch of all ranks on the host. */
struct whole {
    struct et_batch batch;
    struct eti_rows_of field[ET_MAX_FIELDS], outputs;
};

static void
release_whole(struct et_ctx *cx, struct whole *w)
{
    for (int i = 0; i < ET_MAX_FIELDS; i++)
        eti_gathered_free(cx, &w->field[i]);
    eti_gathered_free(cx, &w->outputs);
}

/* Field I of B, of all ranks. What the device makes is left out. */
static et_status
gather_field(struct et_trainer *t, const struct et_batch *b, int64_t n, int i,
             struct whole *w)
{
    const struct et_batch_field *own = &b->field[i];
    struct eti_rows_of *all = &w->field[i];
    w->batch.field[i] = (struct et_batch_field){.desc = own->desc};
    if (!own->host.any) /* on all ranks, whose devices are alike */
        return ET_OK;
    ET_TRY(eti_gather_rows(t->state.cx, t->common.comm, own->host.any, n, &own->desc,
                           b->fields[i].pad, all));
    w->batch.field[i].desc = all->desc;
    w->batch.field[i].host.any = all->data;
    return ET_OK;
}

/* P of this rank becomes that of all, in W. */
static et_status
gather_all(struct et_trainer *t, struct et_prediction *p, struct whole *w)
{
    const struct et_batch *b = p->batch;
    const int64_t n = b->spare ? 0 : b->n_samples;
    w->batch = *b;
    w->batch.raw = w->batch.frames = w->batch.table = NULL;
    w->batch.n_samples = b->all_samples;
    w->batch.n_tokens = b->all_tokens;
    w->batch.spare = false;
    for (int i = 0; i < b->n_fields; i++)
        ET_TRY(gather_field(t, b, n, i, w));
    ET_TRY(eti_gather_rows(t->state.cx, t->common.comm, p->outputs, n, &p->desc, 0,
                           &w->outputs));
    *p = (struct et_prediction){
        .outputs = w->outputs.data, .desc = w->outputs.desc, .batch = &w->batch};
    return ET_OK;
}

static et_status
hand_over_all(struct et_trainer *t, struct receiver *to, struct et_prediction *p)
{
    struct whole w = {0};
    et_status status = gather_all(t, p, &w);
    if (status == ET_OK && t->state.rank == 0 && to->fn)
        status = to->fn(to->data, &t->state, p);
    release_whole(t->state.cx, &w);
    return status;
}

static et_status
hand_over(struct et_trainer *t, struct receiver *to, const struct et_batch *b,
          const struct et_tensor *outputs)
{
    struct et_state *s = &t->state;
    size_t bytes = et_desc_bytes(&outputs->desc);
    ET_TRY(reserve(s->cx, to, bytes));
    ET_TRY(et_tensor_read(s->cx, outputs, to->values, bytes));
    struct et_prediction p = {.outputs = to->values, .desc = outputs->desc, .batch = b};
    return t->common.comm ? hand_over_all(t, to, &p) : to->fn(to->data, s, &p);
}

static et_status
predict_batch(struct et_trainer *t, struct receiver *to, const struct et_batch *b)
{
    struct et_state *s = &t->state;
    eti_show_batch(t, b);
    ET_TRY(eti_run(t, ET_EVENT_PREDICT_BATCH_START));
    ET_TRY(eti_run(t, ET_EVENT_PREDICT_BEFORE_FORWARD));
    s->outputs = eti_step_predict_forward(t);
    ET_TRY(eti_run(t, ET_EVENT_PREDICT_AFTER_FORWARD));
    struct et_tensor *outputs = et_cast(s->graph, s->outputs, ET_F32);
    ET_TRY(et_eval(s->graph, &outputs, 1));
    if (to->fn || t->common.comm)
        ET_TRY(hand_over(t, to, b, outputs));
    eti_show_batch(t, b);
    s->outputs = NULL;
    et_timestamp_next_batch(&s->predict_timestamp, b->all_samples, b->all_tokens, 0);
    return eti_run(t, ET_EVENT_PREDICT_BATCH_END);
}

static et_status
predict_all(struct et_trainer *t, struct et_loader *loader, struct receiver *to)
{
    struct et_state *s = &t->state;
    ET_TRY(eti_run(t, ET_EVENT_PREDICT_START));
    ET_TRY(eti_ranks_share_buffers(t));
    ET_TRY(et_loader_seek(s->cx, loader, 0, 0));
    for (;;) {
        const struct et_batch *b;
        ET_TRY(eti_listen_for_stop(t));
        if (eti_interrupted(t))
            break;
        ET_TRY(et_loader_next(s->cx, loader, &b));
        if (!b)
            break;
        et_status status = predict_batch(t, to, b);
        et_loader_release(loader, b);
        s->batch = s->full = (struct et_samples){0};
        ET_TRY(status);
    }
    return eti_run(t, ET_EVENT_PREDICT_END);
}

et_status
et_trainer_predict(struct et_trainer *t, struct et_loader *loader, et_predict_fn *fn,
                   void *data)
{
    ETI_NEED(t ? t->state.cx : NULL, t, loader);
    struct et_state *s = &t->state;
    struct receiver to = {.fn = fn, .data = data};
    struct et_loader_info info;
    const char *label = s->dataloader_label;
    int64_t length = s->dataloader_len;
    double start = eti_monotonic(s->cx);
    et_loader_get_info(loader, &info);
    s->dataloader_label = "predict";
    s->dataloader_len = info.batches_per_epoch;
    s->predict_timestamp = (struct et_timestamp){0};
    eti_comm_begin(t->common.comm);
    et_status status = predict_all(t, loader, &to);
    eti_comm_fail(t->common.comm, status);
    s->predict_timestamp.total_wct = eti_monotonic(s->cx) - start;
    s->dataloader_label = label;
    s->dataloader_len = length;
    et_free(s->cx, to.values);
    return status;
}
