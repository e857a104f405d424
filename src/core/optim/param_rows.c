/* SPDX-License-Identifier: Apache-2.0 */
/* param_rows.c: a run of parameters as rows of flat memory, for rules that tell
 * parameters apart.
 *
 * Parameters begin at multiples of ET_PARAM_ALIGN elements, so that a row of as many
 * belongs to one of them. Norms of all parameters are then one segment_sum_squares over
 * rows, and a number per parameter comes back to its elements as one per row. The
 * tables are leaves, written once: what plans know of them is how long they are. */
#include "core/optim/optim.h"

static et_status
list_slots(struct et_param_rows *rows, const struct et_param_space *s, int64_t begin,
           int64_t end)
{
    const struct et_param_slot **slot;
    void *block;
    ET_TRY(et_alloc(s->cx, (size_t)s->n * sizeof(struct et_param_slot *), &block));
    rows->slot = slot = block;
    for (int i = 0; i < s->n; i++) { /* of one group, in which offsets rise */
        const struct et_param_slot *at = &s->slot[i];
        if (at->offset >= begin && at->offset + eti_param_span(at) <= end)
            slot[rows->n++] = at;
    }
    return ET_OK;
}

/* A leaf of the shape [N] or, as a column, [N, 1]. */
static et_status
new_table(const struct et_param_space *s, enum et_dtype dtype, int64_t n, bool column,
          const void *numbers, const char *name, struct et_tensor **out)
{
    const int64_t shape[] = {n, 1};
    ET_TRY(et_tensor_new(s->cx, s->dev, dtype, column ? 2 : 1, shape, ET_ROW_MAJOR,
                         name, out));
    return et_tensor_write(s->cx, *out, numbers, et_desc_bytes(&(*out)->desc));
}

/* FIRST [n + 1], OWNER and NUMBER [count]: what the leaves of these names hold. */
static void
fill_tables(const struct et_param_rows *rows, const struct et_optimizer_class *type,
            const void *options, int64_t begin, int32_t *first, int32_t *owner,
            float *number)
{
    for (int i = 0; i < rows->n; i++) {
        const struct et_param_slot *slot = rows->slot[i];
        int64_t at = (slot->offset - begin) / ET_PARAM_ALIGN;
        int64_t end = at + eti_param_span(slot) / ET_PARAM_ALIGN;
        double v = type->number_of ? type->number_of(options, slot) : 0;
        first[i] = (int32_t)at;
        for (; at < end; at++) {
            owner[at] = i;
            number[at] = (float)v;
        }
    }
    first[rows->n] = (int32_t)rows->count;
}

static et_status
make_tables(struct et_param_rows *rows, const struct et_param_space *s,
            const struct et_optimizer_class *type, const void *options, int64_t begin)
{
    void *block;
    size_t room = (size_t)(rows->n + 1 + 2 * rows->count);
    ET_TRY(et_alloc(s->cx, room * sizeof(int32_t), &block));
    int32_t *first = block, *owner = first + rows->n + 1;
    float *number = (float *)(owner + rows->count);
    fill_tables(rows, type, options, begin, first, owner, number);
    et_status status =
        new_table(s, ET_I32, rows->n + 1, false, first, "first rows", &rows->first);
    if (status == ET_OK)
        status = new_table(s, ET_I32, rows->count, false, owner, "owners of rows",
                           &rows->owner);
    if (status == ET_OK && type->number_of)
        status = new_table(s, ET_F32, rows->count, true, number, "numbers of rows",
                           &rows->number);
    et_free(s->cx, block);
    return status;
}

et_status
eti_param_rows_init(struct et_param_rows *rows, const struct et_param_space *s,
                    const struct et_optimizer_class *type, const void *options,
                    int64_t begin, int64_t end)
{
    struct et_desc desc;
    rows->count = (end - begin) / ET_PARAM_ALIGN;
    if (rows->count > INT32_MAX)
        return ET_FAIL(s->cx, ET_ENOTSUP, "%s: %lld rows are more than an i32 counts",
                       type->info.name, (long long)rows->count);
    et_desc_init(&desc, ET_F32, 2, (const int64_t[]){rows->count, ET_PARAM_ALIGN},
                 ET_ROW_MAJOR);
    ET_TRY(eti_param_space_views(s, begin, &desc, &rows->p, rows->moment));
    ET_TRY(list_slots(rows, s, begin, end));
    return make_tables(rows, s, type, options, begin);
}

void
eti_param_rows_release(struct et_param_rows *rows, struct et_ctx *cx)
{
    et_tensor_free(&rows->p);
    for (int k = 0; k < ET_MAX_MOMENTS; k++)
        et_tensor_free(&rows->moment[k]);
    et_tensor_free(&rows->first);
    et_tensor_free(&rows->owner);
    et_tensor_free(&rows->number);
    et_free(cx, (void *)rows->slot);
}

/* ---- in formulas ---- */

struct et_tensor *
eti_as_rows(struct et_graph *g, const struct et_update *u, struct et_tensor *x)
{
    return et_reshape(g, x, 2, (const int64_t[]){u->rows->count, ET_PARAM_ALIGN});
}

/* Gaps are zero, and add nothing. */
struct et_tensor *
eti_param_norms(struct et_graph *g, const struct et_update *u, struct et_tensor *x)
{
    if (x && x->desc.ndim == 1)
        x = eti_as_rows(g, u, x);
    return et_sqrt(g, et_segment_sum_squares(g, x, u->rows->first));
}

struct et_tensor *
eti_per_row(struct et_graph *g, const struct et_update *u, struct et_tensor *v)
{
    return et_reshape(g, et_take(g, v, u->rows->owner, 0), 2,
                      (const int64_t[]){u->rows->count, 1});
}
