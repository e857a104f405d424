/* SPDX-License-Identifier: Apache-2.0 */
/* boxes.c: see boxes.h.
 *
 * A box is data, four numbers of a leaf: another one each step is no other plan. */
#include "config.h"

#include "core/algorithms/boxes.h"

static int32_t
cut(int64_t at, int64_t n)
{
    return (int32_t)(at < 0 ? 0 : at < n ? at : n);
}

void
et_box_at(int64_t y, int64_t x, int64_t height, int64_t width, int64_t H, int64_t W,
          int32_t box[4])
{
    if (!box)
        return;
    box[0] = cut(y - height / 2, H);
    box[1] = cut(x - width / 2, W);
    box[2] = cut(y + height / 2, H);
    box[3] = cut(x + width / 2, W);
}

/* The middle of a box of SIDE pixels along N: in the picture; or up to half a side, the
 * odd pixel at its beginning, outside of it. */
static int64_t
draw_middle(struct et_rng *rng, int64_t side, int64_t n, bool uniform_sampling)
{
    int64_t before = uniform_sampling ? (side + 1) / 2 : 0;
    int64_t behind = uniform_sampling ? side / 2 : 0;
    return (int64_t)et_rng_below(rng, (uint64_t)(before + n + behind)) - before;
}

void
et_box_draw(struct et_rng *rng, int64_t height, int64_t width, int64_t H, int64_t W,
            bool uniform_sampling, int32_t box[4])
{
    if (!rng || !box || H < 1 || W < 1)
        return;
    int64_t y = draw_middle(rng, height, H, uniform_sampling);
    int64_t x = draw_middle(rng, width, W, uniform_sampling);
    et_box_at(y, x, height, width, H, W, box);
}

/* Which of N rows or columns lie in the box: K rows of [K,N], U8. SIDE: its first
 * column of BOXES, the last is two further. */
static struct et_tensor *
cover_axis(struct et_graph *g, struct et_tensor *boxes, int side, int64_t n)
{
    struct et_tensor *at = et_iota(g, ET_I32, n);
    struct et_tensor *from = et_slice(g, boxes, 1, side, 1, 1);
    struct et_tensor *to = et_slice(g, boxes, 1, side + 2, 1, 1);
    return et_mul(g, et_less_equal(g, from, at), et_less(g, at, to));
}

/* Where a picture lies in any of BOXES: U8 or f32 [H,W], not 0 there. */
static struct et_tensor *
cover(struct et_graph *g, struct et_tensor *boxes, int64_t H, int64_t W)
{
    int64_t k = boxes->desc.shape[0];
    struct et_tensor *rows = cover_axis(g, boxes, 0, H);
    struct et_tensor *columns = cover_axis(g, boxes, 1, W);
    rows = et_reshape(g, rows, 3, (const int64_t[]){k, H, 1});
    columns = et_reshape(g, columns, 3, (const int64_t[]){k, 1, W});
    struct et_tensor *all = et_mul(g, rows, columns);
    if (k == 1)
        return et_reshape(g, all, 2, (const int64_t[]){H, W});
    return et_amax(g, et_cast(g, all, ET_F32), 1u << 0, false);
}

struct et_tensor *
eti_boxes_paste(struct et_graph *g, struct et_tensor *boxes, struct et_tensor *a,
                struct et_tensor *b)
{
    if (!a || !b)
        return NULL;
    const struct et_desc *d = &b->desc;
    const int64_t *size = d->shape + d->ndim - 2;
    struct et_tensor *inside = cover(g, boxes, size[0], size[1]);
    if (et_dtype_is_float(d->dtype))
        return et_where(g, inside, a, b);
    /* Classes, which f32 has exactly. */
    a = et_cast(g, a, ET_F32);
    return et_cast(g, et_where(g, inside, a, et_cast(g, b, ET_F32)), d->dtype);
}

bool
eti_is_picture_of(const struct et_tensor *t, const struct et_tensor *x)
{
    int n = t ? t->desc.ndim : 0;
    return (n == 3 || n == 4) && x->desc.ndim == 4 &&
           t->desc.shape[n - 2] == x->desc.shape[2] &&
           t->desc.shape[n - 1] == x->desc.shape[3];
}

et_status
eti_boxes_reserve(struct et_state *s, struct eti_boxes *b, int64_t n)
{
    if (b->leaf && b->n == n)
        return ET_OK;
    eti_boxes_release(s->cx, b);
    void *block;
    ET_TRY(et_alloc(s->cx, (size_t)n * 4 * sizeof *b->v, &block));
    b->v = block;
    b->n = n;
    return et_tensor_new(s->cx, s->dev, ET_I32, 2, (const int64_t[]){n, 4},
                         ET_ROW_MAJOR, "boxes", &b->leaf);
}

et_status
eti_boxes_write(struct et_state *s, struct eti_boxes *b)
{
    return et_tensor_write(s->cx, b->leaf, b->v, (size_t)b->n * 4 * sizeof *b->v);
}

void
eti_boxes_release(struct et_ctx *cx, struct eti_boxes *b)
{
    et_tensor_free(&b->leaf);
    et_free(cx, b->v);
    *b = (struct eti_boxes){0};
}
