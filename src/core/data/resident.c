/* SPDX-License-Identifier: Apache-2.0 */
/* resident.c: sets of images that lie on a device as bytes. See resident.h.
 *
 * A batch of small images is mostly bytes on their way: as floats, four times those of
 * the images that it shows. Where all images fit beside the run they are sent once, and
 * a batch sends 36 bytes a sample where images are cut: its row of struct eti_shown's
 * numbers, and its label; and some hundred where they are turned and changed (struct
 * et_shown). Each loader has its own table from bytes to floats, for its own
 * transforms. */
#include "core/data/resident.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/need.h"
#include "core/data/fields.h"
#include "core/data/file.h"
#include "core/graph/staging.h"
#include "core/graph/upload.h"
#include "etude/op.h"

/* A part of the free memory small enough that models and batches do not miss it. */
enum { SHARE = 8 };

struct eti_resident {
    struct eti_resident *next; /* of the data set, on another device */
    struct et_dataset *data;
    struct et_device *dev;
    struct et_tensor *raw;
    int users;
};

/* How all images lie, one behind the other, if they do as P, the first; false where
 * that leaves gaps. */
static bool
describe(const struct et_pixels *p, int64_t n, struct et_desc *d)
{
    const int64_t shape[] = {n, p->C, p->H, p->W};
    et_desc_init(d, ET_U8, 4, shape, ET_ROW_MAJOR);
    d->stride[1] = p->stride_c;
    d->stride[2] = p->stride_y;
    d->stride[3] = p->stride_x;
    return et_desc_is_dense(d);
}

static bool
lies_as(const struct et_pixels *p, const struct et_pixels *first)
{
    return p->stride_c == first->stride_c && p->stride_y == first->stride_y &&
           p->stride_x == first->stride_x;
}

/* Image AT, if it can be had as pixels; from the data set's own memory, unless MUST. */
static bool
find_image(const struct et_dataset *data, int64_t at, bool must, struct eti_room *room,
           struct et_pixels *out)
{
    const int i = eti_facts_image(&data->facts);
    struct et_sample s;
    struct et_error why = {0};
    bool broken;
    if (eti_sample_read(data, at, NULL, room, &s, &why, &broken) != ET_OK ||
        !s.v[i].pixels.data || (!must && eti_sample_is_read(&s, i)))
        return false;
    *out = s.v[i].pixels;
    return true;
}

/* Would N samples of BYTES take no more than their share? */
static bool
is_small(struct et_device *dev, int64_t n, int64_t bytes)
{
    size_t left;
    if (!dev->table->memory_free || n > INT32_MAX ||
        dev->table->memory_free(dev->handle, &left) != ET_OK)
        return false;
    return (uint64_t)n <= left / SHARE / (uint64_t)bytes;
}

/* ---- sending ---- */

struct sender {
    struct et_device *dev;
    char *to;     /* device memory */
    size_t used;  /* bytes of BLOCK */
    char block[]; /* ETI_STAGED_BYTES */
};

static et_status
flush(struct sender *s)
{
    if (s->used == 0)
        return ET_OK;
    ET_TRY(eti_device_write(s->dev, s->to, s->block, s->used));
    s->to += s->used;
    s->used = 0;
    return ET_OK;
}

static et_status
put(struct sender *s, const uint8_t *from, size_t bytes)
{
    while (bytes > 0) {
        size_t room = ETI_STAGED_BYTES - s->used, part = bytes < room ? bytes : room;
        memcpy(s->block + s->used, from, part);
        s->used += part;
        from += part;
        bytes -= part;
        if (s->used == ETI_STAGED_BYTES)
            ET_TRY(flush(s));
    }
    return ET_OK;
}

/* *WHOLE: every image could be had, and lies as the first. */
static et_status
send_samples(const struct et_dataset *data, struct sender *s, bool must,
             struct eti_room *room, size_t bytes, bool *whole)
{
    struct et_pixels first = {0}, p;
    *whole = false;
    for (int64_t at = 0; at < data->facts.n_samples; at++) {
        if (!find_image(data, at, must, room, &p))
            return ET_OK;
        if (at == 0)
            first = p;
        if (!lies_as(&p, &first))
            return ET_OK;
        ET_TRY(put(s, p.data, bytes));
    }
    *whole = true;
    return flush(s);
}

static et_status
send(struct et_ctx *cx, struct eti_resident *r, bool must, bool *whole)
{
    const int64_t *n = r->raw->desc.shape;
    struct eti_room room = {0};
    void *block;
    ET_TRY(et_alloc(cx, sizeof(struct sender) + ETI_STAGED_BYTES, &block));
    struct sender *s = block;
    s->dev = r->dev;
    s->to = et_tensor_data(r->raw);
    et_status status =
        send_samples(r->data, s, must, &room, (size_t)(n[1] * n[2] * n[3]), whole);
    eti_room_free(&room);
    et_free(cx, s);
    return status;
}

/* ---- the interface ---- */

static void
free_resident(struct eti_resident *r)
{
    et_tensor_free(&r->raw);
    et_free(r->data->cx, r);
}

static et_status
make(struct et_ctx *cx, struct eti_resident *r, const struct et_desc *d, bool must,
     bool *whole)
{
    struct et_storage *storage;
    ET_TRY(et_storage_new(cx, r->dev, et_desc_bytes(d), &storage));
    et_status status = et_tensor_view(cx, storage, 0, d, "raw", &r->raw);
    et_storage_unref(storage);
    return status == ET_OK ? send(cx, r, must, whole) : status;
}

/* Could the images lie on DEV, and how would they? Says why not where that is not its
 * memory. */
static bool
may_lie(const struct et_dataset *data, struct et_device *dev, bool must,
        struct et_desc *d, const char **why)
{
    struct eti_room room = {0};
    struct et_pixels p;
    bool has = data->facts.n_samples > 0 && find_image(data, 0, must, &room, &p);
    eti_room_free(&room);
    *why = !has ? "its images are not there as pixels (a cache would keep them so)"
                : "its images do not lie one behind the other";
    return has && describe(&p, data->facts.n_samples, d) &&
           (must || is_small(dev, data->facts.n_samples, p.C * p.H * p.W));
}

static struct eti_resident *
find(const struct et_dataset *data, const struct et_device *dev)
{
    struct eti_resident *r = data->resident;
    while (r && r->dev != dev)
        r = r->next;
    return r;
}

et_status
eti_resident_open(struct et_ctx *cx, struct et_dataset *data, struct et_device *dev,
                  bool must, struct eti_resident **out, const char **why)
{
    struct et_desc d;
    bool whole = false;
    char text[32];
    *out = find(data, dev);
    if (*out) {
        (*out)->users++;
        return ET_OK;
    }
    if ((!must && !eti_lane_needed(dev)) || !may_lie(data, dev, must, &d, why))
        return ET_OK;
    struct eti_resident *r;
    ET_TRY(et_alloc(cx, sizeof *r, (void **)&r));
    *r = (struct eti_resident){.data = data, .dev = dev, .users = 1};
    et_status status = make(cx, r, &d, must, &whole);
    if (status != ET_OK || !whole) {
        free_resident(r);
        *why = "one of its images cannot be read, or is not as the first";
        if (status != ET_ENOMEM || must)
            return status;
        et_error_clear(cx); /* others took it: batches are sent, then */
        return ET_OK;
    }
    r->next = data->resident;
    data->resident = *out = r;
    et_report(cx, ET_LOG_DEBUG,
              "%s: %" PRId64 " images lie on the device (%s), which makes the batches",
              data->type->info.name, data->facts.n_samples,
              eti_size_text((int64_t)et_desc_bytes(&d), text, sizeof text));
    return ET_OK;
}

void
eti_resident_close(struct eti_resident **resident)
{
    struct eti_resident *r = *resident;
    *resident = NULL;
    if (!r || --r->users > 0)
        return;
    struct eti_resident **at = &r->data->resident;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    free_resident(r);
}

struct et_tensor *
eti_resident_tensor(const struct eti_resident *r)
{
    return r->raw;
}

struct et_tensor *
et_batch_x(struct et_graph *g, const struct et_batch *b)
{
    ETI_NEED_IN(g, b);
    const struct et_batch_field *x = &b->field[ET_FIELD_X];
    if (!b->raw)
        return x->tensor;
    return (b->frames->desc.shape[1] == ET_FRAME_NUMBERS ? et_image_batch
                                                         : et_image_augment)(
        g, b->raw, b->frames, b->table, x->desc.shape[2], x->desc.shape[3]);
}

struct et_samples
et_batch_samples(struct et_graph *g, const struct et_batch *b)
{
    if (!b)
        return (struct et_samples){0};
    struct et_samples s = {.x = et_batch_x(g, b), .n = b->n_samples};
    if (b->n_fields > ET_FIELD_TARGET)
        s.target = b->field[ET_FIELD_TARGET].tensor;
    for (int i = ET_FIELD_TARGET + 1; i < b->n_fields; i++)
        s.other[s.n_others++] =
            (struct et_named_tensor){b->fields[i].name, b->field[i].tensor};
    return s;
}

struct et_tensor *
et_batch_tensor(const struct et_batch *b, const char *name)
{
    if (!b)
        return NULL;
    const struct et_field *field = et_field_find(b->fields, b->n_fields, name);
    return field ? b->field[field - b->fields].tensor : NULL;
}
