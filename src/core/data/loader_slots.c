/* SPDX-License-Identifier: Apache-2.0 */
/* loader_slots.c: the memory of a loader's batches. See loader_impl.h. */
#include "core/base/memory.h"
#include "core/data/loader_impl.h"
#include "core/graph/upload.h"

et_status
eti_slot_view(struct et_ctx *cx, struct eti_slot *s, int i, const struct et_desc *d,
              struct et_tensor **out)
{
    struct eti_views *of = &s->of[i];
    for (int64_t k = 0; k < of->n; k++)
        if (et_desc_equal(&of->v[k]->desc, d)) {
            *out = of->v[k];
            return ET_OK;
        }
    ET_TRY(eti_grow(cx, &of->v, &of->room, of->n + 1, sizeof(struct et_tensor *)));
    ET_TRY(et_tensor_view(cx, of->v[0]->storage, 0, d, of->v[0]->name, out));
    of->v[of->n++] = *out;
    return ET_OK;
}

/* The device's memory for column I, for the longest batch; or for what images of the
 * device are shown of. */
static et_status
make_tensor(struct et_ctx *cx, const struct et_loader *l, struct eti_slot *s, int i)
{
    const struct eti_column *c = &l->column[i];
    struct eti_views *of = &s->of[i];
    struct et_desc d = c->desc;
    const char *name = i == ET_FIELD_X ? "x" : l->field[i].name;
    if (l->resident && i == ET_FIELD_X) {
        const int64_t frames[] = {d.shape[0], l->row_numbers};
        et_desc_init(&d, ET_I32, 2, frames, ET_ROW_MAJOR);
        name = "frames";
    }
    ET_TRY(eti_grow(cx, &of->v, &of->room, 2, sizeof(struct et_tensor *)));
    ET_TRY(et_tensor_new(cx, l->config.dev, d.dtype, d.ndim, d.shape,
                         l->field[i].kind == ET_FIELD_IMAGE && d.ndim == 4
                             ? ET_CHANNELS_LAST
                             : ET_ROW_MAJOR,
                         name, &of->v[0]));
    of->n = 1;
    /* The epoch's last batch may be smaller. */
    bool spare;
    int64_t first, n = eti_loader_slice(l, l->batches - 1, &first, &spare);
    struct et_tensor *last;
    d.shape[0] = n;
    return c->differs ? ET_OK : eti_slot_view(cx, s, i, &d, &last);
}

/* Where column I is written: in the device's memory itself if the host reaches it, so
 * that a step reads it where it lies. */
static et_status
make_column(struct et_ctx *cx, const struct et_loader *l, struct eti_slot *s, int i)
{
    struct et_device *dev = l->config.dev;
    const struct eti_column *c = &l->column[i];
    struct eti_views *of = &s->of[i];
    size_t bytes = et_desc_bytes(&c->desc);
    if (c->differs)
        ET_TRY(et_alloc(cx, (size_t)c->desc.shape[0] * sizeof *of->length,
                        (void **)&of->length));
    if (!dev)
        return et_alloc(cx, bytes, &of->memory);
    ET_TRY(make_tensor(cx, l, s, i));
    if (!eti_lane_needed(dev) && l->resident && i == ET_FIELD_X) {
        s->frames = et_tensor_data(of->v[0]);
        return ET_OK;
    }
    if (!eti_lane_needed(dev)) {
        of->memory = et_tensor_data(of->v[0]);
        return ET_OK;
    }
    if (l->resident && i == ET_FIELD_X)
        return eti_pinned_new(dev, et_desc_bytes(&of->v[0]->desc), (void **)&s->frames);
    return eti_pinned_new(dev, bytes, &of->memory);
}

et_status
eti_slot_make(struct et_ctx *cx, struct et_loader *l, struct eti_slot *s)
{
    struct et_batch *b = &s->batch;
    b->raw = l->resident ? eti_resident_tensor(l->resident) : NULL;
    b->table = l->table;
    b->fields = l->field;
    b->n_fields = l->n_columns;
    for (int i = 0; i < l->n_columns; i++) {
        ET_TRY(make_column(cx, l, s, i));
        b->field[i].desc = l->column[i].desc;
        b->field[i].host.any = s->of[i].memory;
    }
    if (l->config.dev && eti_lane_needed(l->config.dev))
        ET_TRY(eti_lane_new(l->config.dev, &s->lane));
    if (l->data->common->bucket)
        ET_TRY(et_alloc(cx, eti_bucket_bytes(l), (void **)&s->bucket.place));
    return ET_OK;
}

static void
free_column(struct et_loader *l, struct eti_views *of)
{
    struct et_device *dev = l->config.dev;
    if (dev && eti_lane_needed(dev))
        eti_pinned_free(dev, of->memory);
    else if (!dev)
        et_free(l->cx, of->memory);
    while (of->n > 0)
        et_tensor_free(&of->v[--of->n]);
    et_free(l->cx, of->v);
    et_free(l->cx, of->length);
}

void
eti_slot_free(struct et_loader *l, struct eti_slot *s)
{
    struct et_device *dev = l->config.dev;
    if (dev && eti_lane_needed(dev)) {
        eti_lane_free(&s->lane);
        eti_pinned_free(dev, s->frames);
    }
    for (int i = 0; i < l->n_columns; i++)
        free_column(l, &s->of[i]);
    for (int i = 0; i < 2; i++) {
        eti_room_free(&s->room[i]);
        eti_shot_free(&s->shot[i]);
    }
    et_free(l->cx, s->bucket.place);
}
