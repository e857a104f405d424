/* SPDX-License-Identifier: Apache-2.0 */
/* collate.c: how the fields of samples become the tensors of a batch.
 *
 * Fields of one size are stacked. Where samples differ in length, each is written with
 * room for the longest there may be, which is the data's seq_len; when all are there
 * the batch is made as long as its longest sample, rounded up, and what is short is
 * filled.
 *
 * Lengths are rounded up because a batch of another length is another step to plan, and
 * of plans a graph keeps 32 for training and evaluation together: whatever
 * pad_to_multiple is, there are no more than 16 lengths. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "core/data/file.h"
#include "core/data/loader_impl.h"

enum { MOST_LENGTHS = 16 };

/* ---- which columns ---- */

/* The field as batches have it. */
static void
describe_field(const struct et_loader *l, int i, struct et_field *out)
{
    *out = l->data->facts.field[i];
    out->dtype = eti_field_dtype(out);
    if (out->kind > ET_FIELD_MASK)
        return;
    out->shape[out->ndim - 2] = l->pipeline.out_h;
    out->shape[out->ndim - 1] = l->pipeline.out_w;
}

static void
add_column(struct et_loader *l, int from, const struct et_field *field)
{
    struct eti_column *c = &l->column[l->n_columns];
    int64_t shape[ET_MAX_DIMS] = {l->batch_size / l->config.world_size};
    l->field[l->n_columns++] = *field;
    memcpy(shape + 1, field->shape, (size_t)field->ndim * sizeof *shape);
    c->from = from;
    c->differs = field->ndim > 0 && field->shape[0] < 0;
    if (c->differs)
        shape[1] = l->data->common->seq_len;
    et_desc_init(&c->desc, field->dtype, field->ndim + 1, shape,
                 field->kind == ET_FIELD_IMAGE ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
    c->row = et_desc_count(&c->desc) / shape[0];
    c->step = c->differs ? c->row / shape[1] : 0;
}

static void
choose_multiple(struct et_loader *l)
{
    const struct et_data_options *o = l->data->common;
    int64_t m = o->pad_to_multiple > 0 ? o->pad_to_multiple : 1;
    int64_t least = (o->seq_len + MOST_LENGTHS - 1) / MOST_LENGTHS;
    l->multiple = (least + m - 1) / m * m;
    l->multiple = l->multiple > 0 ? l->multiple : 1;
}

et_status
eti_collate_init(struct et_ctx *cx, struct et_loader *l)
{
    const struct et_data_facts *f = &l->data->facts;
    struct et_field field;
    choose_multiple(l);
    l->raw_bytes = 0;
    for (int i = 0; i < f->n_fields; i++) {
        int64_t n = eti_field_count(&f->field[i]);
        describe_field(l, i, &field);
        add_column(l, i, &field);
        if (l->column[i].differs && l->data->common->seq_len < 1)
            return ET_FAIL(cx, ET_EINVAL,
                           "data set %s: '%s' differs in length, and there is no "
                           "seq_len that bounds it",
                           l->data->type->info.name, field.name);
        if (l->column[i].differs)
            n = l->column[i].row;
        if (n < 0 || l->raw_bytes == INT64_MAX)
            l->raw_bytes = INT64_MAX;
        else if (f->field[i].ndim > 0)
            l->raw_bytes += n * (int64_t)et_dtype_size(f->field[i].dtype);
    }
    if (l->data->type->tokens)
        l->raw_bytes = 0;
    if (!f->wants_attention_mask)
        return ET_OK;
    field = l->field[ET_FIELD_X];
    field.name = "attention_mask";
    field.below = 2;
    field.pad = 0;
    add_column(l, -1, &field);
    return ET_OK;
}

/* ---- writing ---- */

static size_t
size_of(const struct eti_column *c)
{
    return et_dtype_size(c->desc.dtype);
}

static et_status
write_value(const struct et_loader *l, struct eti_slot *s, int64_t r, int64_t at, int i,
            const struct et_sample_value *v)
{
    const struct eti_column *c = &l->column[i];
    const struct et_field *f = &l->data->facts.field[i];
    char *to = (char *)s->of[i].memory + (size_t)(r * c->row) * size_of(c);
    int64_t n = c->row;
    if (c->differs) {
        s->of[i].length[r] = (int32_t)v->shape[0];
        n = v->shape[0] * c->step;
    }
    if (eti_convert(v->data, f->dtype, n, c->desc.dtype, to))
        return ET_OK;
    return eti_why(&s->why, ET_EFORMAT,
                   "%s: sample %" PRId64 " has a number in '%s' that does not fit 32 "
                   "bits",
                   l->data->type->info.name, at, f->name);
}

et_status
eti_collate_sample(const struct et_loader *l, struct eti_slot *s, int64_t r, int64_t at,
                   struct eti_shot *shot, const struct et_sample *sample)
{
    for (int i = 0; i < l->data->facts.n_fields; i++) {
        const struct eti_column *c = &l->column[i];
        if (l->field[i].kind == ET_FIELD_MASK)
            ET_TRY(eti_pipeline_mask(&l->pipeline, shot, &sample->v[i].pixels,
                                     l->config.seed, s->batch.first + r,
                                     (int32_t *)s->of[i].memory + r * c->row, &s->why));
        else if (l->field[i].kind != ET_FIELD_IMAGE)
            ET_TRY(write_value(l, s, r, at, i, &sample->v[i]));
    }
    return ET_OK;
}

/* ---- lengths ---- */

/* How long the batch is in column C. */
static int64_t
choose_length(const struct et_loader *l, const struct eti_slot *s, int i)
{
    const int64_t most = l->column[i].desc.shape[1], m = l->multiple;
    int64_t longest = 1;
    if (l->data->common->pad == ET_PAD_MAX)
        return most;
    for (int64_t r = 0; r < s->batch.n_samples; r++)
        longest = s->of[i].length[r] > longest ? s->of[i].length[r] : longest;
    longest = (longest + m - 1) / m * m;
    return longest < most ? longest : most;
}

/* N numbers of a column from the one at FIRST on become its padding. */
static void
fill(const struct eti_column *c, double pad, void *memory, int64_t first, int64_t n)
{
    for (int64_t i = first; i < first + n; i++)
        if (c->desc.dtype == ET_F32)
            ((float *)memory)[i] = (float)pad;
        else
            ((int32_t *)memory)[i] = (int32_t)pad;
}

/* Rows of ROOM become rows of the batch's own length, in place from the first on. */
static void
close_up(const struct et_loader *l, struct eti_slot *s, int i)
{
    const struct eti_column *c = &l->column[i];
    const int64_t row = choose_length(l, s, i) * c->step;
    char *memory = s->of[i].memory;
    for (int64_t r = 0; r < s->batch.n_samples; r++) {
        int64_t n = s->of[i].length[r] * c->step;
        memmove(memory + (size_t)(r * row) * size_of(c),
                memory + (size_t)(r * c->row) * size_of(c), (size_t)n * size_of(c));
        fill(c, l->field[i].pad, memory, r * row + n, row - n);
    }
}

static void
write_mask(const struct et_loader *l, struct eti_slot *s, int i)
{
    int32_t *mask = s->of[i].memory;
    const int32_t *length = s->of[ET_FIELD_X].length;
    const int64_t T = s->batch.field[ET_FIELD_X].desc.shape[1];
    for (int64_t r = 0; r < s->batch.n_samples; r++, mask += T)
        for (int64_t t = 0; t < T; t++)
            mask[t] = !l->column[i].differs || t < length[r];
}

/* Is one of the N numbers negative? */
static bool
any_negative(const int32_t *v, int64_t n)
{
    int32_t all = 0;
    for (int64_t i = 0; i < n; i++)
        all |= v[i];
    return all < 0;
}

static bool
is_masked(const struct et_loader *l, const struct eti_slot *s)
{
    const struct et_desc *d = &s->batch.field[ET_FIELD_TARGET].desc;
    return l->n_columns > ET_FIELD_TARGET && d->dtype == ET_I32 &&
           any_negative(s->of[ET_FIELD_TARGET].memory, et_desc_count(d));
}

bool
eti_batch_is_masked(const struct et_batch *b)
{
    const char *slot = (const char *)b - offsetof(struct eti_slot, batch);
    return ((const struct eti_slot *)(const void *)slot)->masked;
}

void
eti_collate_end(const struct et_loader *l, struct eti_slot *s)
{
    struct et_batch *b = &s->batch;
    for (int i = 0; i < l->n_columns; i++) {
        const struct eti_column *c = &l->column[i];
        int64_t shape[ET_MAX_DIMS];
        memcpy(shape, c->desc.shape, sizeof shape);
        shape[0] = b->n_samples;
        if (c->differs && c->from >= 0) {
            close_up(l, s, i);
            shape[1] = choose_length(l, s, i);
        } else if (c->differs) {
            shape[1] = b->field[ET_FIELD_X].desc.shape[1];
        }
        et_desc_init(&b->field[i].desc, c->desc.dtype, c->desc.ndim, shape,
                     l->field[i].kind == ET_FIELD_IMAGE ? ET_CHANNELS_LAST
                                                        : ET_ROW_MAJOR);
        if (c->from < 0)
            write_mask(l, s, i);
    }
    s->masked = is_masked(l, s);
}
