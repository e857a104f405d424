/* SPDX-License-Identifier: Apache-2.0 */
/* colout.c: rows and columns of pictures left out.
 *
 *     trunc((1 - p_row) H) of the H rows, trunc((1 - p_col) W) of the W columns, drawn
 *     evenly, in their order
 *
 * MosaicML Composer; spec/algorithms.md 2.5. A batch has the same ones, and its masks
 * too; or each picture its own, as a transform of the loader. Differs: what leaves no
 * row or column is refused (D4); one draw for all ranks (1.5). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/algorithms/boxes.h"
#include "core/base/need.h"
#include "core/data/file.h"

enum { TARGET_FALSE, TARGET_TRUE, TARGET_AUTO };

struct colout_options {
    double p_row, p_col;
    bool batch;
    int resize_target;
};

struct colout {
    struct eti_rows rows, columns;
    int32_t *order; /* [room]: to draw in */
    int64_t room;
};

int64_t
et_colout_kept(double p, int64_t n)
{
    return (int64_t)((1 - p) * (double)n);
}

static int
ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

void
et_colout_draw(struct et_rng *rng, int64_t n, int64_t kept, int32_t *index)
{
    if (!rng || !index)
        return;
    et_rng_permutation(rng, index, n);
    qsort(index, (size_t)kept, sizeof *index, ascending);
}

struct et_tensor *
et_colout_batch(struct et_graph *g, struct et_tensor *x, struct et_tensor *rows,
                struct et_tensor *columns)
{
    ETI_NEED_IN(g, g);
    return et_crop_batch(g, x, rows, columns);
}

/* How many rows (AXIS 0) or columns (1) are kept of N. EINVAL: none. */
static et_status
count_kept(struct et_ctx *cx, const struct colout_options *o, int axis, int64_t n,
           int64_t *out)
{
    double p = axis == 0 ? o->p_row : o->p_col;
    *out = et_colout_kept(p, n);
    if (*out > 0)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL, "colout: p_%s %g leaves none of %lld %s",
                   axis == 0 ? "row" : "col", p, (long long)n,
                   axis == 0 ? "rows" : "columns");
}

/* ---- on a batch ---- */

static et_status
draw_axis(struct et_algorithm *self, struct et_state *s, int axis, struct et_rng *rng,
          struct eti_rows *out)
{
    struct colout *own = self->state;
    int64_t n = s->batch.x->desc.shape[2 + axis], kept;
    ET_TRY(count_kept(s->cx, self->options, axis, n, &kept));
    if (own->room < n) {
        et_free(s->cx, own->order);
        own->order = NULL;
        own->room = 0;
        ET_TRY(et_alloc(s->cx, (size_t)n * sizeof *own->order, (void **)&own->order));
        own->room = n;
    }
    ET_TRY(eti_rows_reserve(s, out, kept));
    et_colout_draw(rng, n, kept, own->order);
    memcpy(out->v, own->order, (size_t)kept * sizeof *out->v);
    return eti_rows_write(s, out);
}

/* Do masks lose the rows and columns that X loses? */
static et_status
follows(const struct colout_options *o, struct et_state *s, const struct et_tensor *t,
        bool *out)
{
    *out = o->resize_target != TARGET_FALSE && eti_is_picture_of(t, s->batch.x);
    if (*out || o->resize_target != TARGET_TRUE)
        return ET_OK;
    return ET_FAIL(s->cx, ET_EINVAL,
                   "colout: resize_target needs targets of as many pixels as the "
                   "images; these have %d axes",
                   t ? t->desc.ndim : 0);
}

/* Other fields that are as large as the images are masks of them, and follow. */
static void
change_others(struct et_state *s, struct colout *own)
{
    for (int i = 0; i < s->batch.n_others; i++) {
        struct et_tensor **t = &s->batch.other[i].tensor;
        if (eti_is_picture_of(*t, s->batch.x))
            *t = et_colout_batch(s->graph, *t, own->rows.leaf, own->columns.leaf);
    }
}

static et_status
change_batch(struct et_algorithm *self, struct et_state *s)
{
    const struct colout_options *o = self->options;
    struct colout *own = self->state;
    struct et_samples *b = &s->batch;
    struct et_rng rng = eti_draws(self, s, ET_RNG_MIX, s->timestamp.sample, 0);
    bool with_target;
    if (!b->x)
        return et_graph_status(s->graph);
    if (b->x->desc.ndim != 4)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "colout needs images [N,C,H,W]; the inputs have %d axes",
                       b->x->desc.ndim);
    ET_TRY(draw_axis(self, s, 0, &rng, &own->rows));
    ET_TRY(draw_axis(self, s, 1, &rng, &own->columns));
    ET_TRY(follows(o, s, b->target, &with_target));
    if (o->resize_target != TARGET_FALSE)
        change_others(s, own);
    if (with_target)
        b->target =
            et_colout_batch(s->graph, b->target, own->rows.leaf, own->columns.leaf);
    b->x = et_colout_batch(s->graph, b->x, own->rows.leaf, own->columns.leaf);
    return et_graph_status(s->graph);
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct colout_options *o = self->options;
    (void)s;
    return o->batch == (event == ET_EVENT_AFTER_DATALOADER);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)log;
    if (event == ET_EVENT_AFTER_DATALOADER)
        return change_batch(self, s);
    eti_tell_transform(self);
    return ET_OK;
}

static void
close_colout(struct et_algorithm *self)
{
    struct colout *own = self->state;
    eti_rows_release(self->cx, &own->rows);
    eti_rows_release(self->cx, &own->columns);
    et_free(self->cx, own->order);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct colout_options *o = options;
    if (!o->batch && o->resize_target == TARGET_TRUE)
        return ET_FAIL(cx, ET_ENOTSUP,
                       "colout: resize_target is for batch: true; what is left out of "
                       "each picture is not left out of its mask");
    return ET_OK;
}

/* ---- on one picture ---- */

static et_status
check_picture(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    int64_t *size[] = {h, w};
    (void)C;
    for (int i = 0; i < 2; i++)
        if (*size[i] > 0)
            ET_TRY(count_kept(cx, options, i, *size[i], size[i]));
    return ET_OK;
}

static et_status
change_picture(const void *options, struct et_rng *r, struct et_canvas *c,
               struct et_error *why)
{
    const struct colout_options *o = options;
    int64_t H = et_colout_kept(o->p_row, c->H), W = et_colout_kept(o->p_col, c->W);
    int32_t *rows = et_canvas_room(c, (size_t)(c->H + c->W) * sizeof *rows);
    uint8_t *out = c->data;
    if (!rows)
        return eti_why(why, ET_ENOMEM, "colout: no memory for a picture");
    if (H < 1 || W < 1)
        return eti_why(why, ET_EINVAL, "colout leaves none of %lld x %lld pixels",
                       (long long)c->W, (long long)c->H);
    int32_t *columns = rows + c->H;
    et_colout_draw(r, c->H, H, rows);
    et_colout_draw(r, c->W, W, columns);
    for (int64_t i = 0; i < H; i++)
        for (int64_t j = 0; j < W; j++, out += c->C) /* behind what is read */
            memmove(out, c->data + (rows[i] * c->W + columns[j]) * c->C, (size_t)c->C);
    c->H = H;
    c->W = W;
    return ET_OK;
}

static const char *const targets[] = {"false", "true", "auto", NULL};

static const struct et_option table[] = {
    ETI_ROW(FLOAT, colout_options, p_row, "0.15", 0, 1, 0,
            "fraction of the rows left out"),
    ETI_ROW(FLOAT, colout_options, p_col, "0.15", 0, 1, 0,
            "fraction of the columns left out"),
    ETI_BOOL(
        colout_options, batch, "true",
        "the same for all pictures of a batch, on the device; false: each its own, "
        "in the loader"),
    ETI_ENUM(colout_options, resize_target, "auto", targets, 0,
             "targets lose them too; auto: those that are masks of the pictures"),
    {.name = NULL},
};

#define COLOUT_INFO                                                                    \
    {                                                                                  \
        .name = "colout", .class_name = "ColOut",                                      \
        .summary = "leave rows and columns of pictures out",                           \
        .source = "MosaicML Composer", .applies_to = "vision", .options = table,       \
        .options_size = sizeof(struct colout_options),                                 \
    }

static const struct et_transform_class of_picture = {
    .info = COLOUT_INFO,
    .check = check_picture,
    .pixels = change_picture,
};

static const struct et_transform_class *
transform(const struct et_algorithm *self)
{
    return ((const struct colout_options *)self->options)->batch ? NULL : &of_picture;
}

const struct et_algorithm_class et_algorithm_colout = {
    .info = COLOUT_INFO,
    .state_size = sizeof(struct colout),
    .events = ET_ON(AFTER_DATALOADER) | ET_ON(FIT_START),
    .flags = ET_ALG_PREPARES,
    .check = check,
    .match = match,
    .apply = apply,
    .close = close_colout,
    .transform = transform,
};
