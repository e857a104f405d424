/* SPDX-License-Identifier: Apache-2.0 */
/* tracked.c: see tracked.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/folders.h"
#include "core/library/tracked.h"

/* One evaluation on its way into a line. */
struct line {
    struct et_ctx *cx;
    const struct eti_tracked_batch *b;
    struct eti_predictions all;
    int32_t *chosen; /* of masks: [H][W] */
    float *picture;  /* [H][W][C] */
    json_t *masks;
    bool has_sheet; /* it is written: there is no other */
    struct eti_sheet sheet;
};

/* ---- a line ---- */

/* Sample I of the pictures, channels last. */
static const float *
picture_of(struct line *l, int64_t i)
{
    const struct et_desc *d = &l->b->image_desc;
    const int64_t C = d->shape[1], area = d->shape[2] * d->shape[3];
    const float *from = l->b->image + i * C * area;
    for (int64_t k = 0; k < C; k++)
        for (int64_t at = 0; at < area; at++)
            l->picture[at * C + k] = from[k * area + at];
    return l->picture;
}

/* Losses of a sheet fall: samples stay in their order. */
static et_status
add_picture(struct line *l, int64_t i, const int32_t *label)
{
    const struct et_desc *d = &l->b->image_desc;
    const int C = (int)d->shape[1], H = (int)d->shape[2], W = (int)d->shape[3];
    if (l->has_sheet || !l->b->image)
        return ET_OK;
    const float *x = picture_of(l, i);
    if (label)
        return eti_sheet_add_masks(&l->sheet, i, -(float)i, x, C, H, W, label,
                                   l->chosen);
    return eti_sheet_add(&l->sheet, i, -(float)i, x, C, H, W);
}

static json_t *
mask_text(const int32_t *mask, int64_t H, int64_t W, int64_t h, int64_t w)
{
    static const char digit[] = "0123456789abcdef";
    char text[2 * ETI_TRACKED_SIDE * ETI_TRACKED_SIDE + 1], *to = text;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int32_t class = mask[y * H / h * W + x * W / w];
            const int byte = class < 0 || class > 254 ? 255 : (int)class;
            *to++ = digit[byte >> 4];
            *to++ = digit[byte & 15];
        }
    *to = '\0';
    return json_string(text);
}

static int64_t
side(int64_t own, int64_t other)
{
    const int64_t most = own > other ? own : other;
    const int64_t side = own * ETI_TRACKED_SIDE / most;
    return most <= ETI_TRACKED_SIDE ? own : side > 0 ? side : 1;
}

static et_status
add_masks(struct line *l)
{
    const struct et_desc *d = &l->b->desc;
    const int64_t C = d->shape[1], H = d->shape[2], W = d->shape[3];
    void *block;
    ET_TRY(et_alloc(l->cx, (size_t)(H * W) * sizeof *l->chosen, &block));
    l->chosen = block;
    const bool is_same =
        l->b->image && l->b->image_desc.shape[2] == H && l->b->image_desc.shape[3] == W;
    l->masks = json_array();
    for (int64_t i = 0; i < d->shape[0]; i++) {
        const int32_t *label = l->b->target + i * H * W;
        ET_TRY(eti_predictions_add_mask(&l->all, l->b->outputs + i * C * H * W, label,
                                        H * W, (int)C, l->chosen));
        json_array_append_new(l->masks,
                              mask_text(l->chosen, H, W, side(H, W), side(W, H)));
        memset(l->chosen, 0, (size_t)(H * W) * sizeof *l->chosen); /* nothing over it */
        if (is_same)
            ET_TRY(add_picture(l, i, label));
    }
    return ET_OK;
}

static et_status
add_classes(struct line *l)
{
    const struct et_desc *d = &l->b->desc;
    ET_TRY(eti_predictions_add(&l->all, l->b->outputs, l->b->target, d->shape[0],
                               (int)d->shape[1]));
    for (int64_t i = 0; i < d->shape[0]; i++)
        ET_TRY(add_picture(l, i, NULL));
    return ET_OK;
}

/* The key of CLASS among names. */
static const char *
key_of(int class, char out[16])
{
    snprintf(out, 16, "%d", class);
    return out;
}

static void
add_name(json_t *names, const struct eti_tracked_batch *b, int class)
{
    char key[16];
    if (class >= 0 && class < b->n_names)
        json_object_set_new(names, key_of(class, key), json_string(b->names[class]));
}

static json_t *
names_json(const struct line *l)
{
    json_t *names = json_object();
    for (int64_t i = 0; i < l->all.n; i++) {
        add_name(names, l->b, l->all.label[i]);
        add_name(names, l->b, l->all.class[i]);
    }
    return names;
}

const char *
eti_tracked_name(const json_t *line, int class)
{
    char key[16];
    const json_t *names = json_object_get(line, "names");
    return json_string_value(json_object_get(names, key_of(class, key)));
}

static json_t *
line_json(const struct line *l)
{
    json_t *label = json_array(), *class = json_array(), *p = json_array();
    const struct et_desc *d = &l->b->desc;
    for (int64_t i = 0; i < l->all.n; i++) {
        const int32_t of = l->all.label[i], right = l->all.class[i];
        const double share =
            l->masks ? (of > 0 ? (double)right / of : 0)
                     : (double)l->all.p[i * l->all.columns + l->all.class[i]];
        if (!l->masks) {
            json_array_append_new(label, json_integer(of));
            json_array_append_new(class, json_integer(right));
        }
        json_array_append_new(p, json_real(share));
    }
    json_t *out =
        json_pack("{s:I, s:I, s:o, s:o, s:o}", "ep", (json_int_t)l->b->epoch, "ba",
                  (json_int_t)l->b->batch, "label", label, "class", class, "p", p);
    if (!l->masks && l->b->names)
        json_object_set_new(out, "names", names_json(l));
    if (l->masks) {
        json_object_set(out, "mask", l->masks);
        json_object_set_new(out, "h", json_integer(side(d->shape[2], d->shape[3])));
        json_object_set_new(out, "w", json_integer(side(d->shape[3], d->shape[2])));
    }
    return out;
}

static et_status
append(struct line *l, const char *path)
{
    json_t *json = line_json(l);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(json);
    if (!text)
        return ET_FAIL(l->cx, ET_ENOMEM, "out of memory: %s", path);
    FILE *f = fopen(path, "a");
    bool is_written = f && fprintf(f, "%s\n", text) > 0;
    is_written = f && fclose(f) == 0 && is_written;
    free(text);
    return is_written
               ? ET_OK
               : ET_FAIL(l->cx, ET_EIO, "cannot write %s: %s", path, strerror(errno));
}

et_status
eti_tracked_write(struct et_ctx *cx, const char *folder, const char *label,
                  const struct eti_tracked_batch *b)
{
    struct line l = {.cx = cx, .b = b, .all.cx = cx, .sheet.cx = cx};
    char lines[4096], pictures[4096];
    void *block;
    if (snprintf(lines, sizeof lines, "%s/%s.track.jsonl", folder, label) >=
            (int)sizeof lines ||
        snprintf(pictures, sizeof pictures, "%s/%s.track.ppm", folder, label) >=
            (int)sizeof pictures)
        return ET_FAIL(cx, ET_EINVAL, "the path of predictions is too long");
    l.has_sheet = access(pictures, F_OK) == 0;
    const size_t bytes = b->image ? et_desc_bytes(&b->image_desc) : sizeof(float);
    ET_TRY(et_alloc(cx, bytes, &block));
    l.picture = block;
    et_status status = b->desc.ndim == 4 ? add_masks(&l) : add_classes(&l);
    if (status == ET_OK && l.sheet.n > 0)
        status = eti_sheet_write(&l.sheet, pictures);
    if (status == ET_OK)
        status = append(&l, lines);
    eti_predictions_release(&l.all);
    eti_sheet_release(&l.sheet);
    json_decref(l.masks);
    et_free(cx, l.chosen);
    et_free(cx, l.picture);
    return status;
}

/* ---- reading ---- */

static json_int_t
batch_of(const json_t *lines, size_t i)
{
    return json_integer_value(json_object_get(json_array_get(lines, i), "ba"));
}

json_t *
eti_tracked_read(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    json_t *all = json_array(), *one;
    FILE *f = eti_open_regular(path);
    while (f && getline(&text, &room, f) > 0) {
        one = json_loads(text, 0, NULL);
        const json_int_t ba = json_integer_value(json_object_get(one, "ba"));
        if (!json_is_array(json_object_get(one, "p"))) {
            json_decref(one); /* the end of one that was broken off */
            continue;
        }
        while (json_array_size(all) > 0 &&
               batch_of(all, json_array_size(all) - 1) >= ba)
            json_array_remove(all, json_array_size(all) - 1);
        if (json_array_size(all) == ETI_TRACKED_LINES)
            json_array_remove(all, 0);
        json_array_append_new(all, one);
    }
    free(text);
    if (f)
        fclose(f);
    if (json_array_size(all) > 0)
        return all;
    json_decref(all);
    return NULL;
}
