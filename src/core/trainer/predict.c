/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c: the model's outputs for every sample of a loader. Source: spec/trainer.md
 * 1.7. */
#include "config.h"

#include "core/base/need.h"
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

static et_status
hand_over(struct et_state *s, struct receiver *to, const struct et_batch *b,
          const struct et_tensor *outputs)
{
    size_t bytes = et_desc_bytes(&outputs->desc);
    ET_TRY(reserve(s->cx, to, bytes));
    ET_TRY(et_tensor_read(s->cx, outputs, to->values, bytes));
    const struct et_prediction p = {
        .outputs = to->values, .desc = outputs->desc, .batch = b};
    return to->fn(to->data, s, &p);
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
    if (to->fn)
        ET_TRY(hand_over(s, to, b, outputs));
    eti_show_batch(t, b);
    s->outputs = NULL;
    et_timestamp_next_batch(&s->predict_timestamp, b->n_samples, b->n_tokens, 0);
    return eti_run(t, ET_EVENT_PREDICT_BATCH_END);
}

static et_status
predict_all(struct et_trainer *t, struct et_loader *loader, struct receiver *to)
{
    struct et_state *s = &t->state;
    ET_TRY(eti_run(t, ET_EVENT_PREDICT_START));
    ET_TRY(et_loader_seek(s->cx, loader, 0, 0));
    while (!eti_interrupted(t)) {
        const struct et_batch *b;
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
    et_status status = predict_all(t, loader, &to);
    s->predict_timestamp.total_wct = eti_monotonic(s->cx) - start;
    s->dataloader_label = label;
    s->dataloader_len = length;
    et_free(s->cx, to.values);
    return status;
}
