/* SPDX-License-Identifier: Apache-2.0 */
/* predict_take.c: what a model answers to a batch: see predict.h.
 *
 *     outputs        target         the answer is
 *     [N,C]          i32 [N]        a class
 *     [N,C,H,W]      i32 [N,H,W]    a mask
 *     [N,T,V]        i32 [N,T]      tokens
 *     [N,K] or [N]   f32, as many   values
 *
 * Data without a target: by the outputs alone, and nothing counts. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "cli/predict.h"
#include "core/trainer/state.h"

/* A field of a batch on the host. */
struct host_field {
    union {
        const int32_t *i32;
        const float *f32;
    } v;
    struct et_desc desc;
    void *own; /* to be freed; NULL: the batch's memory */
};

void
cli_taken_release(struct cli_taken *t)
{
    eti_predictions_release(&t->all);
    eti_sheet_release(&t->sheet);
    eti_detail_release(&t->detail);
    et_free(t->cx, t->picture);
    et_free(t->cx, t->chosen);
    et_free(t->cx, t->loss);
}

static et_status
read_field(struct et_ctx *cx, const struct et_batch *b, int i, struct host_field *out)
{
    const struct et_batch_field *f = &b->field[i];
    const size_t bytes = et_desc_bytes(&f->desc);
    *out = (struct host_field){.desc = f->desc};
    out->v.f32 = f->host.f32;
    if (out->v.f32 || bytes == 0)
        return ET_OK;
    ET_TRY(et_alloc(cx, bytes, &out->own));
    out->v.f32 = out->own;
    return et_tensor_read(cx, f->tensor, out->own, bytes);
}

/* The target; without one, numbers that count nothing, one for each of COUNT. */
static et_status
read_target(struct et_ctx *cx, const struct et_batch *b, int64_t count,
            struct host_field *out)
{
    if (b->n_fields > ET_FIELD_TARGET)
        return read_field(cx, b, ET_FIELD_TARGET, out);
    *out = (struct host_field){.desc = {.dtype = ET_I32}};
    ET_TRY(et_alloc(cx, (size_t)count * sizeof(int32_t), &out->own));
    int32_t *none = out->own;
    for (int64_t i = 0; i < count; i++)
        none[i] = ET_IGNORE_INDEX;
    out->v.i32 = none;
    return ET_OK;
}

/* ---- pictures ---- */

/* The images of the batch as [N][H][W][C] in T->picture; false: it has none that can be
 * shown. */
static bool
read_pictures(struct cli_taken *t, const struct et_batch *b, struct et_desc *d)
{
    const struct et_batch_field *x = &b->field[ET_FIELD_X];
    void *block;
    *d = x->desc;
    const size_t bytes = et_desc_bytes(d);
    if (b->fields[ET_FIELD_X].kind != ET_FIELD_IMAGE || d->dtype != ET_F32 ||
        (!x->host.f32 && !x->tensor))
        return false;
    if (t->bytes < bytes) {
        if (et_alloc(t->cx, bytes, &block) != ET_OK)
            return false;
        et_free(t->cx, t->picture);
        t->picture = block;
        t->bytes = bytes;
    }
    if (x->host.f32) { /* as the loader left it: channels are last */
        memcpy(t->picture, x->host.f32, bytes);
        return true;
    }
    if (et_alloc(t->cx, bytes, &block) != ET_OK)
        return false;
    float *from = block;
    const bool is_read = et_tensor_read(t->cx, x->tensor, from, bytes) == ET_OK;
    const int64_t C = d->shape[1], area = d->shape[2] * d->shape[3];
    for (int64_t n = 0; n < d->shape[0] && is_read; n++)
        for (int64_t k = 0; k < C; k++)
            for (int64_t i = 0; i < area; i++)
                t->picture[(n * area + i) * C + k] = from[(n * C + k) * area + i];
    et_free(t->cx, from);
    return is_read;
}

/* The pictures of those of the batch, from sample FROM on, that are wrong and worst. */
static et_status
keep_pictures(struct cli_taken *t, const struct et_batch *b, int64_t from)
{
    const struct eti_predictions *all = &t->all;
    struct et_desc d;
    bool any = false;
    for (int64_t i = from; i < all->n; i++)
        any = any || (!eti_predictions_is_right(all, i) &&
                      eti_sheet_wants(&t->sheet, all->loss[i]));
    if (!any)
        return ET_OK;
    if (!read_pictures(t, b, &d)) {
        et_error_clear(t->cx); /* the numbers do without */
        return ET_OK;
    }
    const int64_t each = d.shape[1] * d.shape[2] * d.shape[3];
    for (int64_t i = from; i < all->n; i++)
        if (!eti_predictions_is_right(all, i))
            ET_TRY(eti_sheet_add(&t->sheet, i, all->loss[i],
                                 t->picture + (i - from) * each, (int)d.shape[1],
                                 (int)d.shape[2], (int)d.shape[3]));
    return ET_OK;
}

/* ---- each kind of answer ---- */

/* Room for the answers of N places. */
static et_status
reserve(struct cli_taken *t, int64_t n)
{
    void *block;
    if (t->places >= (size_t)n)
        return ET_OK;
    et_free(t->cx, t->chosen);
    t->chosen = NULL;
    ET_TRY(et_alloc(t->cx, (size_t)n * sizeof *t->chosen, &block));
    t->chosen = block;
    et_free(t->cx, t->loss);
    t->loss = NULL;
    ET_TRY(et_alloc(t->cx, (size_t)n * sizeof *t->loss, &block));
    t->loss = block;
    t->places = (size_t)n;
    return ET_OK;
}

static et_status
take_masks(struct cli_taken *t, const struct et_prediction *p, const int32_t *label)
{
    const int C = (int)p->desc.shape[1];
    const int64_t H = p->desc.shape[2], W = p->desc.shape[3];
    struct et_desc d;
    const bool has_pictures =
        read_pictures(t, p->batch, &d) && d.shape[2] == H && d.shape[3] == W;
    if (!has_pictures)
        et_error_clear(t->cx);
    ET_TRY(reserve(t, H * W));
    for (int64_t i = 0; i < p->desc.shape[0]; i++) {
        const int32_t *own = label + i * H * W;
        ET_TRY(eti_predictions_add_mask(&t->all, p->outputs + i * C * H * W, own, H * W,
                                        C, t->chosen));
        if (t->detail.path && eti_detail_has(ETI_ANSWER_MASK, t->detail.as))
            ET_TRY(eti_detail_mask(&t->detail, t->chosen, own, H, W));
        if (has_pictures && !eti_predictions_is_right(&t->all, t->all.n - 1))
            ET_TRY(
                eti_sheet_add_masks(&t->sheet, t->all.n - 1, t->all.loss[t->all.n - 1],
                                    t->picture + i * d.shape[1] * H * W,
                                    (int)d.shape[1], (int)H, (int)W, own, t->chosen));
    }
    return ET_OK;
}

static et_status
take_tokens(struct cli_taken *t, const struct et_prediction *p, const int32_t *label)
{
    const int64_t T = p->desc.shape[1], V = p->desc.shape[2];
    struct host_field x;
    ET_TRY(reserve(t, T));
    et_status status = read_field(t->cx, p->batch, ET_FIELD_X, &x);
    const bool has_input = status == ET_OK && x.desc.dtype == ET_I32 &&
                           x.desc.ndim == 2 && x.desc.shape[1] == T;
    for (int64_t i = 0; i < p->desc.shape[0] && status == ET_OK; i++) {
        const int32_t *own = label + i * T, *input = has_input ? x.v.i32 + i * T : own;
        status = eti_predictions_add_tokens(&t->all, p->outputs + i * T * V, own, T,
                                            (int)V, t->chosen, t->loss);
        if (status == ET_OK)
            status = eti_predictions_keep_sequence(&t->all, input, own, t->chosen,
                                                   t->loss, T);
        if (status == ET_OK && t->detail.path &&
            eti_detail_has(ETI_ANSWER_TOKENS, t->detail.as))
            status = eti_detail_tokens(&t->detail, input, own, t->chosen, t->loss, T);
    }
    et_free(t->cx, x.own);
    return status;
}

static et_status
take_classes(struct cli_taken *t, const struct et_prediction *p, const int32_t *label)
{
    const int64_t from = t->all.n;
    ET_TRY(eti_predictions_add(&t->all, p->outputs, label, p->desc.shape[0],
                               (int)p->desc.shape[1]));
    return keep_pictures(t, p->batch, from);
}

/* Have the targets, a number each or none, the shape that OUTPUTS ask for? */
static bool
fits(const struct et_desc *outputs, const struct et_desc *target)
{
    const int axes = outputs->ndim - 1; /* without that of the classes */
    const int classes = outputs->ndim == 4 ? 1 : outputs->ndim - 1;
    if (target->ndim == 0)
        return true;
    if (target->ndim != axes)
        return false;
    for (int k = 0, i = 0; k < outputs->ndim; k++)
        if (k != classes && outputs->shape[k] != target->shape[i++])
            return false;
    return true;
}

static et_status
take_any(struct cli_taken *t, const struct et_prediction *p,
         const struct host_field *target)
{
    const struct et_desc *d = &p->desc;
    const int64_t n = d->shape[0], count = et_desc_count(d);
    if (target->desc.dtype == ET_F32 && et_desc_count(&target->desc) == count && n > 0)
        return eti_predictions_add_values(&t->all, p->outputs, target->v.f32, n,
                                          (int)(count / n));
    if (target->desc.dtype == ET_I32 && fits(d, &target->desc))
        switch (d->ndim) {
        case 2:
            return take_classes(t, p, target->v.i32);
        case 3:
            return take_tokens(t, p, target->v.i32);
        case 4:
            return take_masks(t, p, target->v.i32);
        default:
            break;
        }
    return ET_FAIL(t->cx, ET_ENOTSUP,
                   "the model's outputs have %d axes, %" PRId64
                   " numbers a sample, which are no answer to a target of %d axes",
                   d->ndim, n > 0 ? count / n : 0, target->desc.ndim);
}

et_status
cli_take_batch(void *data, const struct et_state *s, const struct et_prediction *p)
{
    struct cli_taken *t = data;
    struct host_field target;
    (void)s;
    et_status status = read_target(t->cx, p->batch, et_desc_count(&p->desc), &target);
    if (status == ET_OK)
        status = take_any(t, p, &target);
    et_free(t->cx, target.own);
    return status;
}
