/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c: the fields of data sets: found, described, checked. See etude/field.h. */
#include "core/data/fields.h"

#include <string.h>

#include "etude/ctx.h"

const struct et_field *
et_field_find(const struct et_field *fields, int n, const char *name)
{
    for (int i = 0; fields && name && i < n; i++)
        if (fields[i].name && strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

struct et_tensor *
et_samples_find(const struct et_samples *s, const char *name)
{
    if (!s || !name)
        return NULL;
    if (strcmp(name, "target") == 0)
        return s->target;
    for (int i = 0; i < s->n_others; i++)
        if (strcmp(s->other[i].name, name) == 0)
            return s->other[i].tensor;
    return NULL;
}

/* ---- facts ---- */

void
et_facts_add(struct et_data_facts *f, const struct et_field *field)
{
    if (!f || !field)
        return;
    if (f->n_fields < ET_MAX_FIELDS)
        f->field[f->n_fields] = *field;
    f->n_fields++; /* one too many is found when the facts are checked */
}

void
et_facts_images(struct et_data_facts *f, int64_t n, int C, int64_t H, int64_t W,
                int64_t num_classes)
{
    if (!f)
        return;
    *f = (struct et_data_facts){.n_samples = n, .bytes = H < 0 ? 0 : n * C * H * W};
    et_facts_add(f, &(struct et_field){.name = "image",
                                       .kind = ET_FIELD_IMAGE,
                                       .dtype = ET_U8,
                                       .ndim = 3,
                                       .shape = {C, H, W}});
    et_facts_add(f, &(struct et_field){.name = "target",
                                       .kind = ET_FIELD_VALUES,
                                       .dtype = ET_I32,
                                       .below = num_classes});
}

void
et_facts_stream(struct et_data_facts *f, int64_t n_tokens, int64_t vocab_size)
{
    if (!f)
        return;
    struct et_field tokens = {.name = "tokens",
                              .kind = ET_FIELD_TOKENS,
                              .dtype = ET_I32,
                              .ndim = 1,
                              .shape = {-1},
                              .below = vocab_size};
    *f = (struct et_data_facts){.n_tokens = n_tokens,
                                .bytes = n_tokens * (int64_t)sizeof(int32_t)};
    et_facts_add(f, &tokens);
    tokens.name = "target";
    et_facts_add(f, &tokens);
}

const struct et_field *
et_facts_target(const struct et_data_facts *f)
{
    return f && f->n_fields > ET_FIELD_TARGET ? &f->field[ET_FIELD_TARGET] : NULL;
}

int64_t
et_facts_classes(const struct et_data_facts *f)
{
    const struct et_field *target = et_facts_target(f);
    return target && target->kind != ET_FIELD_TOKENS ? target->below : 0;
}

int
eti_facts_image(const struct et_data_facts *f)
{
    for (int i = 0; i < f->n_fields; i++)
        if (f->field[i].kind == ET_FIELD_IMAGE)
            return i;
    return -1;
}

enum et_dtype
eti_field_dtype(const struct et_field *field)
{
    if (field->kind == ET_FIELD_IMAGE)
        return ET_F32;
    return et_dtype_is_float(field->dtype) ? ET_F32 : ET_I32;
}

int64_t
eti_field_count(const struct et_field *field)
{
    int64_t n = 1;
    for (int k = 0; k < field->ndim; k++) {
        if (field->shape[k] < 0)
            return -1;
        n *= field->shape[k];
    }
    return n;
}

/* ---- are they sound? ---- */

/* May axis K of FIELD differ by sample? */
static bool
may_differ(const struct et_field *field, int k)
{
    switch (field->kind) {
    case ET_FIELD_IMAGE:
        return k > 0;
    case ET_FIELD_MASK:
        return true;
    default:
        return k == 0;
    }
}

/* What is wrong with the kind of a field; NULL: nothing. */
static const char *
find_fault(const struct et_field *f)
{
    if (!f->name || !*f->name)
        return "has no name";
    if (f->kind < ET_FIELD_IMAGE || f->kind > ET_FIELD_VALUES)
        return "is of no kind there is";
    if (f->dtype <= ET_NONE || f->dtype >= ET_DTYPE_COUNT)
        return "is of no type there is";
    if (f->ndim < 0 || f->ndim >= ET_MAX_DIMS)
        return "has more axes than a batch can have";
    if (f->kind == ET_FIELD_IMAGE && (f->dtype != ET_U8 || f->ndim != 3))
        return "is an image, and so bytes [C,H,W]";
    if (f->kind == ET_FIELD_IMAGE && (f->shape[0] < 1 || f->shape[0] > ET_MAX_CHANNELS))
        return "is an image, of 1 to 4 channels";
    if (f->kind == ET_FIELD_MASK && (f->dtype != ET_U8 || f->ndim != 2))
        return "is a mask, and so bytes [H,W]";
    if (f->kind == ET_FIELD_TOKENS && (et_dtype_is_float(f->dtype) || f->ndim != 1))
        return "has tokens, and so integers [T]";
    for (int k = 0; k < f->ndim; k++)
        if (f->shape[k] < 0 && !may_differ(f, k))
            return "has an axis that may not differ by sample";
    return NULL;
}

static et_status
check_field(struct et_ctx *cx, const struct et_dataset *data, int i)
{
    const struct et_data_facts *f = &data->facts;
    const char *fault = find_fault(&f->field[i]);
    if (!fault && i == ET_FIELD_TARGET && strcmp(f->field[i].name, "target") != 0)
        fault = "is the second, and so the one called \"target\"";
    if (!fault &&
        et_field_find(f->field, f->n_fields, f->field[i].name) != &f->field[i])
        fault = "is there twice";
    if (!fault && f->field[i].kind == ET_FIELD_IMAGE && eti_facts_image(f) != i)
        fault = "is a second image, and samples have one at most";
    if (!fault && f->field[i].kind == ET_FIELD_MASK && eti_facts_image(f) < 0)
        fault = "is a mask, of no image";
    if (!fault)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL, "data set %s: field %d (%s) %s",
                   data->type->info.name, i + 1,
                   f->field[i].name ? f->field[i].name : "", fault);
}

et_status
eti_facts_check(struct et_ctx *cx, const struct et_dataset *data)
{
    const struct et_data_facts *f = &data->facts;
    const char *name = data->type->info.name;
    if (!data->type->sample == !data->type->tokens)
        return ET_FAIL(cx, ET_EINVAL,
                       "data set %s sets %s of sample and tokens, and one it must",
                       name, data->type->sample ? "both" : "none");
    if (f->n_fields < 1)
        return ET_FAIL(cx, ET_EINVAL, "data set %s has no fields", name);
    if (f->n_fields + f->wants_attention_mask > ET_MAX_FIELDS)
        return ET_FAIL(cx, ET_EINVAL, "data set %s has %d fields, more than %d", name,
                       f->n_fields + f->wants_attention_mask, ET_MAX_FIELDS);
    if (f->wants_attention_mask && f->field[ET_FIELD_X].kind != ET_FIELD_TOKENS)
        return ET_FAIL(cx, ET_EINVAL,
                       "data set %s wants an attention mask and begins with no tokens",
                       name);
    for (int i = 0; i < f->n_fields; i++)
        ET_TRY(check_field(cx, data, i));
    return ET_OK;
}
