/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c: from the bytes of a raw image to the floats of a batch.
 *
 * Geometry changes a view of the image; pixels are read when they are to be changed, or
 * at the end. Where a list only cuts and flips they are read once, through a table of
 * 256 values per channel that holds (byte / 255 - mean) / std, and written where the
 * batch wants them: y[i, j, c] = table[c][raw(f.y + i, f.x + j, c)], black where the
 * frame hangs over; 1 byte read and 4 written per value, and no copy in between. Else
 * there is a canvas of bytes in between, and another one wherever geometry follows what
 * changed pixels. */
#include "core/data/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/file.h"

/* ---- the list ---- */

static et_status
add_step(struct et_ctx *cx, struct eti_pipeline *p, const struct et_part *part,
         uint64_t ordinal)
{
    if (p->n_steps == ETI_MAX_STEPS)
        return ET_FAIL(cx, ET_EINVAL, "transforms: more than %d", ETI_MAX_STEPS);
    /* Its component is the first member of its class. */
    p->step[p->n_steps++] = (struct eti_transform_step){
        .type = (const struct et_transform_class *)part->component,
        .options = part->options,
        .ordinal = ordinal,
    };
    return ET_OK;
}

/* Adds the transforms that are on. Each has its own ordinals: one more draw in a first
 * one does not shift a second one's. */
static et_status
add_steps(struct et_ctx *cx, struct eti_pipeline *p, const struct et_parts *transforms)
{
    for (int i = 0; i < transforms->n; i++)
        if (!transforms->v[i].off)
            ET_TRY(add_step(cx, p, &transforms->v[i], (uint64_t)p->n_steps << 32));
    return ET_OK;
}

/* FNV-1a. */
static uint32_t
hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* Adds those of algorithms, keyed by their names: one that is switched on or off
 * changes no draw of another's. */
static et_status
add_more(struct et_ctx *cx, struct eti_pipeline *p, const struct et_parts *added)
{
    struct eti_transform_step last = {0};
    if (p->n_steps > 0 && p->step[p->n_steps - 1].type->value)
        last = p->step[--p->n_steps];
    for (int i = 0; added && i < added->n; i++)
        ET_TRY(add_step(cx, p, &added->v[i],
                        (uint64_t)hash(added->v[i].component->name) << 32));
    if (!last.type)
        return ET_OK;
    if (p->n_steps == ETI_MAX_STEPS)
        return ET_FAIL(cx, ET_EINVAL, "transforms: more than %d", ETI_MAX_STEPS);
    p->step[p->n_steps++] = last;
    return ET_OK;
}

static et_status
check_steps(struct et_ctx *cx, struct eti_pipeline *p)
{
    for (int i = 0; i < p->n_steps; i++) {
        const struct eti_transform_step *t = &p->step[i];
        if (t->type->value && i != p->n_steps - 1)
            return ET_FAIL(cx, ET_EINVAL,
                           "transforms: %s must be last, it is number %d of %d",
                           t->type->info.name, i + 1, p->n_steps);
        int64_t h = p->out_h, w = p->out_w;
        if (t->type->check)
            ET_TRY(t->type->check(cx, t->options, p->C, &p->out_h, &p->out_w));
        if (t->type->pixels && !p->shrinks && (p->out_h != h || p->out_w != w))
            p->shrinks = t->type->info.name;
        p->cuts = p->cuts && !t->type->pixels && (!t->type->geometry || t->type->cuts);
    }
    return ET_OK;
}

/* ---- on a device ---- */

/* Why a device cannot do step I of P, behind BEFORE, the last that changes pixels;
 * false where it can. */
static bool
find_refusal(struct eti_pipeline *p, int i, const struct et_transform_class *before)
{
    const struct eti_transform_step *t = &p->step[i];
    const char *name = t->type->info.name;
    const size_t n = sizeof p->host_only;
    int told = t->type->pixels && t->type->changes && t->type->n_changes
                   ? t->type->n_changes(t->options)
                   : 0;
    p->n_changes += told;
    if (t->type->geometry && before)
        snprintf(p->host_only, n, "%s comes after %s, which changes pixels", name,
                 before->info.name);
    else if (t->type->pixels && told == 0)
        snprintf(p->host_only, n, "%s%s is done by the host alone", name,
                 t->type->changes ? " with these options" : "");
    else if (told > 0 && p->C != 1 && p->C != 3)
        snprintf(p->host_only, n, "%s is for pictures of 1 or 3 channels there, not %d",
                 name, p->C);
    else if (p->n_changes > ET_MAX_CHANGES)
        snprintf(p->host_only, n, "there are more than %d changes of pixels up to %s",
                 ET_MAX_CHANGES, name);
    return p->host_only[0];
}

static void
find_host_only(struct eti_pipeline *p)
{
    const struct et_transform_class *before = NULL;
    if (p->h < 0 || p->w < 0) {
        snprintf(p->host_only, sizeof p->host_only, "the images differ in size");
        return;
    }
    for (int i = 0; i < p->n_steps; i++) {
        if (find_refusal(p, i, before))
            return;
        if (p->step[i].type->pixels)
            before = p->step[i].type;
    }
}

/* A batch has images of one size. */
static et_status
check_size(struct et_ctx *cx, const struct eti_pipeline *p)
{
    if (p->out_h > 0 && p->out_w > 0)
        return ET_OK;
    et_status status =
        ET_FAIL(cx, ET_EINVAL, "the images differ in size, and a batch has one");
    et_hint(cx,
            "resize, center_crop, random_crop or random_resized_crop give them one, "
            "and so does resolution");
    return status;
}

static void
fill_table(struct eti_pipeline *p)
{
    const struct eti_transform_step *last =
        p->n_steps ? &p->step[p->n_steps - 1] : NULL;
    for (int c = 0; c < p->C; c++)
        for (int byte = 0; byte < 256; byte++) {
            double v = byte / 255.0;
            if (last && last->type->value)
                v = last->type->value(last->options, c, v);
            p->table[c][byte] = (float)v;
        }
}

et_status
eti_pipeline_init(struct et_ctx *cx, struct eti_pipeline *p,
                  const struct et_field *image, int64_t resolution,
                  const struct et_parts *transforms, const struct et_parts *added)
{
    *p = (struct eti_pipeline){
        .C = (int)image->shape[0],
        .h = image->shape[1],
        .w = image->shape[2],
        .resolution = resolution,
    };
    p->out_h = resolution ? resolution : p->h;
    p->out_w = resolution ? resolution : p->w;
    p->cuts = p->h > 0 && p->w > 0 && p->out_h == p->h && p->out_w == p->w;
    ET_TRY(add_steps(cx, p, transforms));
    ET_TRY(add_more(cx, p, added));
    ET_TRY(check_steps(cx, p));
    ET_TRY(check_size(cx, p));
    find_host_only(p);
    fill_table(p);
    return ET_OK;
}

/* ---- one sample's draws ---- */

static struct et_rng
draws_of(const struct eti_transform_step *t, uint32_t seed, int64_t place)
{
    struct et_rng draws = et_rng_at(seed, ET_RNG_AUGMENT, (uint64_t)place);
    draws.ordinal = t->ordinal;
    return draws;
}

static struct et_view
first_view(const struct eti_pipeline *p, int64_t h, int64_t w)
{
    struct et_view v = et_view_of(h, w);
    if (p->resolution)
        et_view_resize(&v, p->resolution, p->resolution, ET_BILINEAR);
    return v;
}

/* Does the geometry from step I on. Returns the first step that changes pixels; with
 * ALL, of which there is none, those are passed over. */
static int
move(const struct eti_pipeline *p, int i, bool all, uint32_t seed, int64_t place,
     struct et_view *v)
{
    for (; i < p->n_steps && (all || !p->step[i].type->pixels); i++) {
        const struct eti_transform_step *t = &p->step[i];
        if (!t->type->geometry)
            continue;
        struct et_rng draws = draws_of(t, seed, place);
        t->type->geometry(t->options, &draws, v);
    }
    return i;
}

/* V, which is whole along y and x, as a frame; it is not flipped up and down. */
static void
to_frame(const struct et_view *v, struct eti_shown *out)
{
    const struct et_view_axis *y = &v->y, *x = &v->x;
    int64_t top = (int64_t)y->origin, left = (int64_t)x->origin;
    bool flipped = x->step < 0;
    *out = (struct eti_shown){
        .y = top,
        .x = flipped ? left - v->w : left,
        .h = v->h,
        .w = v->w,
        .y_min = top + y->from,
        .y_max = top + y->to,
        .x_min = flipped ? left - x->to : left + x->from,
        .x_max = flipped ? left - x->from : left + x->to,
        .flipped = flipped,
    };
}

void
eti_pipeline_frame(const struct eti_pipeline *p, uint32_t seed, int64_t place,
                   struct eti_shown *out)
{
    struct et_view v = first_view(p, p->h, p->w);
    (void)move(p, 0, false, seed, place, &v);
    to_frame(&v, out);
}

_Static_assert(sizeof(struct et_shown) == ET_SHOWN_NUMBERS * sizeof(int32_t),
               "a row begins with what is shown");
_Static_assert(sizeof(struct et_pixel_change) == ET_CHANGE_NUMBERS * sizeof(int32_t),
               "and the changes are behind it");

int64_t
eti_pipeline_numbers(const struct eti_pipeline *p)
{
    return ET_SHOWN_NUMBERS + (int64_t)p->n_changes * ET_CHANGE_NUMBERS;
}

void
eti_pipeline_tell(const struct eti_pipeline *p, uint32_t seed, int64_t place,
                  int64_t at, int32_t *row)
{
    struct et_shown shown;
    struct et_pixel_change change[ET_MAX_CHANGES] = {0};
    struct et_view v = first_view(p, p->h, p->w);
    int n = 0;
    for (int i = move(p, 0, false, seed, place, &v); i < p->n_steps; i++) {
        const struct eti_transform_step *t = &p->step[i];
        struct et_rng draws = draws_of(t, seed, place);
        if (t->type->changes)
            n += t->type->changes(t->options, &draws, v.h, v.w, &change[n]);
    }
    eti_view_tell(&v, &shown);
    shown.sample = (int32_t)at;
    shown.n_changes = n;
    memcpy(row, &shown, sizeof shown);
    memcpy(row + ET_SHOWN_NUMBERS, change, (size_t)p->n_changes * sizeof *change);
}

/* ---- writing ---- */

static int64_t
clamp(int64_t v, int64_t high)
{
    return v < 0 ? 0 : v > high ? high : v;
}

static float *
write_black(const struct eti_pipeline *p, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < p->C; c++)
            *out++ = p->table[c][0];
    return out;
}

/* N pixels of C channels from SRC on, STEP bytes apart. Inlined for the constants
 * below: a loop over unknown strides takes three times as long. */
static inline __attribute__((always_inline)) float *
write_span(const float table[][256], const uint8_t *src, int64_t step, int64_t stride_c,
           int C, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < C; c++)
            out[i * C + c] = table[c][src[i * step + c * stride_c]];
    return out + n * C;
}

static float *
write_pixels(const struct eti_pipeline *p, const uint8_t *src, int64_t step,
             int64_t stride_c, int64_t n, float *out)
{
    int C = p->C;
    if (C == 1 && step == 1)
        return write_span(p->table, src, 1, 0, 1, n, out);
    if (C == 1 && step == -1)
        return write_span(p->table, src, -1, 0, 1, n, out);
    if (C == 3 && step == 3 && stride_c == 1)
        return write_span(p->table, src, 3, 1, 3, n, out);
    if (C == 3)
        return write_span(p->table, src, step, stride_c, 3, n, out);
    return write_span(p->table, src, step, stride_c, C, n, out);
}

static void
write_frame(const struct eti_pipeline *p, const struct et_pixels *r,
            const struct eti_shown *f, float *out)
{
    /* Columns [from, to) of the frame are seen. */
    int64_t from = clamp(f->x_min - f->x, f->w), to = clamp(f->x_max - f->x, f->w);
    to = to < from ? from : to;
    if (f->flipped) {
        int64_t left = f->w - to;
        to = f->w - from;
        from = left;
    }
    int64_t step = f->flipped ? -r->stride_x : r->stride_x;
    int64_t first = f->flipped ? f->x + f->w - 1 - from : f->x + from;
    for (int64_t i = 0; i < f->h; i++) {
        int64_t y = f->y + i;
        if (y < f->y_min || y >= f->y_max) {
            out = write_black(p, f->w, out);
            continue;
        }
        out = write_black(p, from, out);
        out = write_pixels(p, r->data + y * r->stride_y + first * r->stride_x, step,
                           r->stride_c, to - from, out);
        out = write_black(p, f->w - to, out);
    }
}

/* V is whole: it may be flipped up and down. */
static void
write_whole(const struct eti_pipeline *p, const struct et_pixels *pixels,
            struct et_view v, float *out)
{
    struct et_pixels seen = *pixels;
    struct eti_shown f;
    if (v.y.step < 0) {
        seen = eti_pixels_flip_y(&seen);
        v.y.origin = (double)seen.H - v.y.origin;
        v.y.step = 1;
    }
    to_frame(&v, &f);
    write_frame(p, &seen, &f, out);
}

/* ---- one image ---- */

et_status
eti_pipeline_take(const struct eti_pipeline *p, struct eti_shot *s,
                  const struct et_sample_value *v, uint32_t seed, int64_t place,
                  struct et_error *why)
{
    struct eti_picture picture;
    if (v->pixels.data) {
        s->pixels = v->pixels;
        s->H = s->pixels.H;
        s->W = s->pixels.W;
        s->view = first_view(p, s->H, s->W);
        s->step = move(p, 0, false, seed, place, &s->view);
        return ET_OK;
    }
    ET_TRY(eti_decoder_open(&s->decoder, v->data, (size_t)v->shape[0], why));
    s->H = s->decoder.info.H;
    s->W = s->decoder.info.W;
    s->view = first_view(p, s->H, s->W);
    s->step = move(p, 0, false, seed, place, &s->view);
    struct eti_picture_want want = eti_view_want(&s->view, p->C);
    ET_TRY(eti_decoder_read(&s->decoder, &want, &picture, why));
    eti_view_onto(&s->view, &picture);
    s->pixels = picture.pixels;
    return ET_OK;
}

static const uint8_t black[ET_MAX_CHANNELS];

/* Looks at S onto its canvas WHICH, and makes that its pixels. */
static et_status
look(struct eti_shot *s, int which, struct et_canvas *c, struct et_error *why)
{
    struct et_view *v = &s->view;
    size_t bytes = (size_t)(v->h * v->w * s->pixels.C);
    ET_TRY(eti_scratch_need(&s->canvas[which], bytes, why));
    *c = (struct et_canvas){
        .data = s->canvas[which].data,
        .C = s->pixels.C,
        .H = v->h,
        .W = v->w,
        .room = &s->room,
    };
    ET_TRY(eti_view_look(&s->looker, v, &s->pixels, v->filter, black, c->data, why));
    s->pixels = eti_canvas_view(c);
    s->view = et_view_of(v->h, v->w);
    return ET_OK;
}

/* The steps that change pixels from S->step on. */
static et_status
change(const struct eti_pipeline *p, struct eti_shot *s, struct et_canvas *c,
       uint32_t seed, int64_t place, struct et_error *why)
{
    for (; s->step < p->n_steps && p->step[s->step].type->pixels; s->step++) {
        const struct eti_transform_step *t = &p->step[s->step];
        struct et_rng draws = draws_of(t, seed, place);
        ET_TRY(t->type->pixels(t->options, &draws, c, why));
    }
    s->pixels = eti_canvas_view(c); /* which may have become smaller */
    s->view = et_view_of(c->H, c->W);
    return ET_OK;
}

et_status
eti_pipeline_run(const struct eti_pipeline *p, struct eti_shot *s, uint32_t seed,
                 int64_t place, float *out, struct et_error *why)
{
    struct et_canvas c;
    int which = 0; /* the canvas that the pixels do not lie on */
    for (; s->step < p->n_steps && p->step[s->step].type->pixels; which = 1 - which) {
        ET_TRY(look(s, which, &c, why));
        ET_TRY(change(p, s, &c, seed, place, why));
        s->step = move(p, s->step, false, seed, place, &s->view);
    }
    if (!eti_view_is_whole(&s->view))
        ET_TRY(look(s, which, &c, why));
    write_whole(p, &s->pixels, s->view, out);
    return ET_OK;
}

et_status
eti_pipeline_mask(const struct eti_pipeline *p, struct eti_shot *s,
                  const struct et_pixels *mask, uint32_t seed, int64_t place,
                  int32_t *out, struct et_error *why)
{
    static const uint8_t outside[1] = {UINT8_MAX};
    struct et_view v = first_view(p, mask->H, mask->W);
    (void)move(p, 0, true, seed, place, &v);
    size_t n = (size_t)(v.h * v.w);
    ET_TRY(eti_scratch_need(&s->room, n, why));
    const uint8_t *class = s->room.data;
    ET_TRY(eti_view_look(&s->looker, &v, mask, ET_NEAREST, outside, s->room.data, why));
    for (size_t i = 0; i < n; i++)
        out[i] = class[i] == UINT8_MAX ? ET_IGNORE_INDEX : class[i];
    return ET_OK;
}

void
eti_shot_free(struct eti_shot *s)
{
    eti_decoder_free(&s->decoder);
    for (int i = 0; i < ET_MAX_FIELDS; i++)
        eti_decoder_free(&s->mask[i]);
    eti_looker_free(&s->looker);
    for (int i = 0; i < 2; i++)
        eti_scratch_free(&s->canvas[i]);
    eti_scratch_free(&s->room);
}
