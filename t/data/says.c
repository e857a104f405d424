/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/data/fields.h"
#include "t/data/fixture.h"
#include "t/data/says.h"
#include "t/tap.h"

struct et_ctx *cx;

struct text {
    char s[4096];
    size_t n;
};

#define ADD(t, ...)                                                                    \
    ((t)->n += (size_t)snprintf((t)->s + (t)->n, sizeof(t)->s - (t)->n, __VA_ARGS__))

static void
add_field(struct text *t, const struct et_field *f)
{
    static const char *const kinds[] = {
        [ET_FIELD_IMAGE] = "image",
        [ET_FIELD_TOKENS] = "tokens",
        [ET_FIELD_MASK] = "mask",
        [ET_FIELD_VALUES] = "values",
    };
    ADD(t, "; %s: %s %s [", f->name, kinds[f->kind], et_dtype_name(f->dtype));
    for (int i = 0; i < f->ndim; i++)
        ADD(t, "%s%" PRId64, i ? "," : "", f->shape[i]);
    ADD(t, "]");
    if (f->below)
        ADD(t, " < %" PRId64, f->below);
    if (f->pad)
        ADD(t, " pad %g", (double)f->pad);
}

/* "3 samples, 40 bytes; tokens: tokens i32 [-1] < 256; ...", and names of classes. */
static void
add_facts(struct text *t, const struct et_data_facts *f)
{
    ADD(t, "%" PRId64 " samples, %" PRId64 " bytes", f->n_samples, f->bytes);
    if (f->n_tokens)
        ADD(t, ", %" PRId64 " tokens", f->n_tokens);
    if (f->wants_attention_mask)
        ADD(t, ", masked");
    for (int i = 0; i < f->n_fields; i++)
        add_field(t, &f->field[i]);
    const int64_t n = f->class_names ? et_facts_classes(f) : 0;
    for (int64_t i = 0; i < n; i++)
        ADD(t, "%s%s", i ? ", " : "; ", f->class_names[i]);
    ADD(t, "\n");
}

/* The N numbers of FIELD at DATA; "-": there is nothing to predict. */
static void
add_numbers(struct text *t, const struct et_field *field, const void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ADD(t, "%s", i ? " " : "");
        if (field->dtype == ET_F32)
            ADD(t, "%g", (double)((const float *)data)[i]);
        else if (field->dtype == ET_U8)
            ADD(t, "%d", ((const uint8_t *)data)[i]);
        else if (((const int32_t *)data)[i] == ET_IGNORE_INDEX)
            ADD(t, "-");
        else
            ADD(t, "%" PRId32, ((const int32_t *)data)[i]);
    }
}

/* A picture that is a file, by its path, which each has as its bytes; and what a mask's
 * values become. */
static void
add_file(struct text *t, const struct et_field *field, const struct et_sample_value *v)
{
    const char *path = v->file + strlen(scratch_folder()) + 1;
    const size_t n = (size_t)v->shape[0];
    ADD(t, "%s", path);
    if (n != strlen(path) || memcmp(v->data, path, n) != 0)
        ADD(t, " with other bytes");
    for (int i = 0; i < 256 && field->kind == ET_FIELD_MASK; i++)
        if (i < 3 || i > 253)
            ADD(t, " %d->%d", i, v->classes[i]);
}

/* Rows of each channel. */
static void
add_pixels(struct text *t, const struct et_pixels *p)
{
    for (int c = 0; c < p->C; c++)
        for (int64_t y = 0; y < p->H; y++) {
            ADD(t, "%s", y ? "," : c ? "; " : "");
            for (int64_t x = 0; x < p->W; x++)
                ADD(t, "%s%d", x ? " " : "",
                    p->data[c * p->stride_c + y * p->stride_y + x * p->stride_x]);
        }
}

/* "1 2 3 | 2 3 -", a line for each sample. */
static void
add_samples(struct text *t, const struct et_dataset *d)
{
    struct eti_room room = {0};
    for (int64_t at = 0; d->type->sample && at < d->facts.n_samples; at++) {
        struct et_sample s;
        struct et_error why;
        bool broken;
        need(cx, eti_sample_read(d, at, NULL, &room, &s, &why, &broken));
        for (int f = 0; f < d->facts.n_fields; f++) {
            const struct et_field *field = &d->facts.field[f];
            int64_t n = 1;
            for (int i = 0; i < field->ndim; i++)
                n *= s.v[f].shape[i];
            ADD(t, "%s", f ? " | " : "");
            if (eti_value_is_file(field, &s.v[f]))
                add_file(t, field, &s.v[f]);
            else if (field->kind == ET_FIELD_IMAGE || field->kind == ET_FIELD_MASK)
                add_pixels(t, &s.v[f].pixels);
            else
                add_numbers(t, field, s.v[f].data, n);
        }
        ADD(t, "%s\n",
            !d->type->length || d->type->length(d, at) == s.v[0].shape[0]
                ? ""
                : " (has another length)");
    }
    eti_room_free(&room);
}

void
says(const char *what, const char *name, const char *const *set, const char *want)
{
    const struct et_dataset_class *c = et_dataset_find(name);
    struct text t = {.n = 0};
    struct et_data_facts before = {0};
    struct et_dataset *d;
    void *options;
    need(cx, et_options_new(cx, &c->info, set, &options));
    if (c->describe) {
        c->describe(options, &before);
        add_facts(&t, &before);
    }
    need(cx, et_dataset_open(cx, c, options, &d));
    add_facts(&t, &d->facts);
    add_samples(&t, d);
    is_str(t.s, want, "%s", what);
    et_dataset_close(&d);
    et_options_free(&c->info, &options);
}
