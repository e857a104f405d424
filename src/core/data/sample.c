/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c: one raw sample: room for it, reading it, and whether it is as its data set
 * says. See fields.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/fields.h"
#include "core/data/file.h"

/* ---- room ---- */

/* Not the context's memory, which belongs to the caller's thread. */
void *
et_sample_room(struct et_sample *s, int i, size_t bytes)
{
    struct eti_room *r = s ? s->room : NULL;
    if (!r || i < 0 || i >= ET_MAX_FIELDS)
        return NULL;
    if (r->bytes[i] >= bytes && r->block[i])
        return r->block[i];
    free(r->block[i]);
    r->block[i] = malloc(bytes + 1);
    r->bytes[i] = r->block[i] ? bytes : 0;
    return r->block[i];
}

void
eti_room_free(struct eti_room *r)
{
    for (int i = 0; i < ET_MAX_FIELDS; i++)
        free(r->block[i]);
    memset(r, 0, sizeof *r);
}

bool
eti_sample_is_read(const struct et_sample *s, int i)
{
    const void *at = s->facts->field[i].kind <= ET_FIELD_MASK
                         ? (const void *)s->v[i].pixels.data
                         : s->v[i].data;
    const char *block = s->room->block[i], *data = at;
    return block && data >= block && data < block + s->room->bytes[i] + 1;
}

void
et_sample_number(struct et_sample *s, int i, double number)
{
    void *to = et_sample_room(s, i, sizeof number);
    if (s && i >= 0 && i < ET_MAX_FIELDS)
        s->v[i].data = to;
    if (!to)
        return;
    switch (s->facts->field[i].dtype) {
    case ET_F32:
        *(float *)to = (float)number;
        break;
    case ET_F64:
        *(double *)to = number;
        break;
    case ET_I32:
        *(int32_t *)to = (int32_t)number;
        break;
    case ET_I64:
        *(int64_t *)to = (int64_t)number;
        break;
    case ET_U8:
        *(uint8_t *)to = (uint8_t)number;
        break;
    default: /* halves: nobody has a label of them */
        s->v[i].data = NULL;
    }
}

et_status
eti_sample_zero(struct et_sample *s, int i)
{
    const struct et_field *f = &s->facts->field[i];
    const int64_t *n = f->shape;
    size_t bytes = (size_t)eti_field_count(f) * et_dtype_size(f->dtype);
    void *zeros = et_sample_room(s, i, bytes);
    if (!zeros)
        return ET_ENOMEM;
    memset(zeros, 0, bytes);
    s->v[i].data = zeros;
    if (f->kind == ET_FIELD_IMAGE)
        s->v[i].pixels = et_pixels_hwc(zeros, (int)n[0], n[1], n[2]);
    else if (f->kind == ET_FIELD_MASK)
        s->v[i].pixels = et_pixels_hwc(zeros, 1, n[0], n[1]);
    return ET_OK;
}

/* ---- numbers ---- */

static float
from_half(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double v = exponent == 31 ? (mantissa ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                              : ldexp(mantissa, -24);
    return (float)(h >> 15 ? -v : v);
}

static float
from_bfloat(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void
to_floats(const void *from, enum et_dtype type, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        switch (type) {
        case ET_F64:
            out[i] = (float)((const double *)from)[i];
            break;
        case ET_F16:
            out[i] = from_half(((const uint16_t *)from)[i]);
            break;
        default:
            out[i] = from_bfloat(((const uint16_t *)from)[i]);
        }
}

bool
eti_convert(const void *from, enum et_dtype type, int64_t n, enum et_dtype to,
            void *out)
{
    if (type == to) {
        memcpy(out, from, (size_t)n * et_dtype_size(to));
        return true;
    }
    if (to == ET_F32) {
        to_floats(from, type, n, out);
        return true;
    }
    int32_t *v = out;
    for (int64_t i = 0; i < n; i++) {
        if (type == ET_U8) {
            v[i] = ((const uint8_t *)from)[i];
            continue;
        }
        int64_t x = ((const int64_t *)from)[i];
        if (x < INT32_MIN || x > INT32_MAX)
            return false;
        v[i] = (int32_t)x;
    }
    return true;
}

/* ---- is it as its data set says? ---- */

static bool
shape_fits(const struct et_field *f, const struct et_sample_value *v)
{
    const int64_t image[] = {v->pixels.C, v->pixels.H, v->pixels.W};
    const int64_t *is = f->kind == ET_FIELD_IMAGE  ? image
                        : f->kind == ET_FIELD_MASK ? image + 1
                                                   : v->shape;
    if (f->kind <= ET_FIELD_MASK ? !v->pixels.data : !v->data)
        return false;
    for (int k = 0; k < f->ndim; k++)
        if (is[k] < 0 || (f->shape[k] >= 0 && is[k] != f->shape[k]) ||
            (f->kind <= ET_FIELD_MASK && is[k] < 1))
            return false;
    return true;
}

/* What integers of a field are called; the target's have the name that people use. */
static const char *
word_of(const struct et_field *f, bool is_target)
{
    if (f->kind == ET_FIELD_TOKENS)
        return "token";
    return is_target ? "label" : f->name;
}

/* The integer of V that is not below its bound, or is negative where none may be; true
 * if there is one. */
static bool
find_beyond(const struct et_field *f, const void *data, int64_t n, bool may_be_negative,
            int64_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t x = f->dtype == ET_I32   ? ((const int32_t *)data)[i]
                    : f->dtype == ET_I64 ? ((const int64_t *)data)[i]
                                         : ((const uint8_t *)data)[i];
        if (x >= f->below || (x < 0 && !may_be_negative)) {
            *out = x;
            return true;
        }
    }
    return false;
}

/* The same of a mask, with where it stands there. */
static et_status
check_classes(const struct et_dataset *data, int64_t at, const struct et_field *f,
              const struct et_pixels *p, struct et_error *why)
{
    for (int64_t y = 0; y < p->H; y++)
        for (int64_t x = 0; x < p->W; x++) {
            int v = p->data[y * p->stride_y + x * p->stride_x];
            if (v >= f->below && v != UINT8_MAX)
                return eti_why(why, ET_EFORMAT,
                               "%s: sample %" PRId64 " has the class %d at x %" PRId64
                               ", y %" PRId64 ", and there are %" PRId64 " classes",
                               data->type->info.name, at, v, x, y, f->below);
        }
    return ET_OK;
}

static et_status
check_value(const struct et_dataset *data, int64_t at, int i,
            const struct et_sample_value *v, struct et_error *why)
{
    const struct et_field *f = &data->facts.field[i];
    const bool is_target = i == ET_FIELD_TARGET;
    int64_t n = 1, bad = 0, most = data->common->seq_len;
    if (eti_value_is_file(f, v))
        return ET_OK;
    if (!shape_fits(f, v))
        return eti_why(why, ET_EINVAL,
                       "%s: sample %" PRId64 " has a '%s' of another size than it says",
                       data->type->info.name, at, f->name);
    if (f->kind >= ET_FIELD_TOKENS && f->ndim > 0 && f->shape[0] < 0 &&
        v->shape[0] > most)
        return eti_why(why, ET_EINVAL,
                       "%s: sample %" PRId64 " is %" PRId64
                       " long in '%s', more than seq_len %" PRId64,
                       data->type->info.name, at, v->shape[0], f->name, most);
    if (f->below == 0 || et_dtype_is_float(f->dtype) || f->kind == ET_FIELD_IMAGE)
        return ET_OK;
    if (f->kind == ET_FIELD_MASK)
        return check_classes(data, at, f, &v->pixels, why);
    for (int k = 0; k < f->ndim; k++)
        n *= v->shape[k];
    if (!find_beyond(f, v->data, n, is_target, &bad))
        return ET_OK;
    return eti_why(why, ET_EFORMAT,
                   "%s: sample %" PRId64 " has the %s %" PRId64
                   ", and there are %" PRId64 "%s",
                   data->type->info.name, at, word_of(f, is_target), bad, f->below,
                   is_target && f->kind == ET_FIELD_VALUES ? " classes" : "");
}

struct et_rng
eti_sample_draws(uint32_t seed, int64_t index)
{
    struct et_rng r = et_rng_at(seed, ET_RNG_AUGMENT, (uint64_t)index);
    r.ordinal = (uint64_t)1 << 33; /* far from what cuts and flips */
    return r;
}

et_status
eti_sample_read(const struct et_dataset *data, int64_t at, const struct et_rng *draws,
                struct eti_room *room, struct et_sample *s, struct et_error *why,
                bool *broken)
{
    const struct et_data_facts *f = &data->facts;
    s->facts = f;
    s->room = room;
    s->draws = draws ? *draws : eti_sample_draws(0, at);
    *broken = false;
    for (int i = 0; i < f->n_fields; i++) {
        s->v[i] = (struct et_sample_value){.data = NULL};
        memcpy(s->v[i].shape, f->field[i].shape, sizeof s->v[i].shape);
    }
    ET_TRY(data->type->sample(data, at, s, why));
    for (int i = 0; i < f->n_fields; i++) {
        et_status status = check_value(data, at, i, &s->v[i], why);
        *broken = status != ET_OK;
        ET_TRY(status);
    }
    return ET_OK;
}

/* ---- pictures that come as files ---- */

bool
eti_value_is_file(const struct et_field *field, const struct et_sample_value *v)
{
    return field->kind <= ET_FIELD_MASK && !v->pixels.data && v->data;
}

et_status
eti_name_file(const struct et_sample_value *v, struct et_error *why)
{
    char message[sizeof why->message];
    et_status status = why->status;
    if (!v->file)
        return status;
    snprintf(message, sizeof message, "%s", why->message);
    return eti_why(why, status, "%.400s: %.600s", v->file, message);
}

et_status
eti_sample_decode(const struct et_dataset *data, int64_t at, int i,
                  struct eti_decoder *d, struct et_sample *s, struct et_error *why,
                  bool *broken)
{
    const struct et_field *f = &data->facts.field[i];
    struct et_sample_value *v = &s->v[i];
    bool mask = f->kind == ET_FIELD_MASK;
    struct eti_picture_want want = {.C = mask ? 1 : (int)f->shape[0], .classes = mask};
    struct eti_picture p;
    *broken = false;
    if (eti_decoder_open(d, v->data, (size_t)v->shape[0], why) != ET_OK ||
        eti_decoder_read(d, &want, &p, why) != ET_OK)
        return eti_name_file(v, why);
    if (mask && v->classes) {
        uint8_t *at_byte = d->pixels.data;
        for (int64_t k = 0; k < p.pixels.H * p.pixels.W; k++)
            at_byte[k] = v->classes[at_byte[k]];
    }
    v->pixels = p.pixels;
    et_status status = check_value(data, at, i, v, why);
    *broken = status != ET_OK;
    return status == ET_OK ? ET_OK : eti_name_file(v, why);
}
