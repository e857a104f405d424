/* SPDX-License-Identifier: Apache-2.0 */
/* raw.c: see raw.h. */
#include "config.h"

#include "core/assemble/raw.h"

#include <stdio.h>
#include <string.h>

static const char mask_name[] = "attention_mask";

/* What may be given, as fields of one sample, -1 where samples differ, and as LONGEST
 * where they do not. The loader makes the last, attention_mask, where it is not
 * given. */
struct known {
    struct et_field field[ET_MAX_FIELDS], longest[ET_MAX_FIELDS];
    int n;
};

/* Data that stand in for others have one size: what differs, their class says. */
static void
mark_what_differs(const struct et_dataset *like, struct et_field *f)
{
    struct et_data_facts facts = {.n_fields = 0};
    const struct et_field *described;
    if (!like->type->describe)
        return;
    like->type->describe(like->options, &facts);
    described = et_field_find(facts.field, facts.n_fields, f->name);
    for (int k = 0; described && k < f->ndim && k < described->ndim; k++)
        if (described->shape[k] < 0)
            f->shape[k] = -1;
}

static void
add(struct known *k, const struct et_dataset *like, struct et_field f)
{
    for (int axis = 0; axis < f.ndim; axis++)
        if (f.shape[axis] < 0 && f.kind >= ET_FIELD_TOKENS && like->common->seq_len > 0)
            f.shape[axis] = like->common->seq_len;
    k->longest[k->n] = f;
    mark_what_differs(like, &f);
    k->field[k->n++] = f;
}

static struct known
know(const struct et_dataset *like)
{
    const struct et_data_facts *f = &like->facts;
    struct known k = {.n = 0};
    for (int i = 0; i < f->n_fields && k.n < ET_MAX_FIELDS; i++)
        if (i != ET_FIELD_TARGET)
            add(&k, like, f->field[i]);
    if (like->type->tokens) /* the loader cuts a stream into windows of one length */
        k.field[ET_FIELD_X].shape[0] = like->common->seq_len;
    if (!f->wants_attention_mask || f->n_fields <= ET_FIELD_TARGET)
        return k;
    k.longest[k.n] = k.longest[ET_FIELD_X];
    k.field[k.n] = k.field[ET_FIELD_X];
    k.field[k.n].name = k.longest[k.n].name = mask_name;
    k.field[k.n].dtype = k.longest[k.n].dtype = ET_I32;
    k.field[k.n].below = 2;
    k.n++;
    return k;
}

/* The shape of N samples of F, -1 where they differ, as they lie in memory. */
static int
shape_of(const struct et_field *f, int64_t n, int64_t shape[ET_MAX_DIMS])
{
    int ndim = 0;
    shape[ndim++] = n;
    if (f->kind == ET_FIELD_IMAGE) {
        shape[ndim++] = f->shape[1];
        shape[ndim++] = f->shape[2];
        shape[ndim++] = f->shape[0];
        return ndim;
    }
    for (int k = 0; k < f->ndim && ndim < ET_MAX_DIMS; k++)
        shape[ndim++] = f->shape[k];
    return ndim;
}

int
eti_raw_fields(const struct et_dataset *like, int64_t n, struct et_raw_field *out)
{
    const struct known known = know(like);
    for (int i = 0; i < known.n; i++) {
        const struct et_field *f = &known.longest[i];
        int64_t shape[ET_MAX_DIMS];
        const int ndim = shape_of(f, n, shape);
        for (int k = 1; k < ndim; k++)
            shape[k] = shape[k] < 0 ? 0 : shape[k];
        out[i] = (struct et_raw_field){.name = f->name};
        et_desc_init(&out[i].desc, f->dtype, ndim, shape, ET_ROW_MAJOR);
    }
    return known.n;
}

/* How long an axis of F may be where samples differ; 0: no bound. */
static int64_t
most(const struct et_dataset *like, const struct et_field *f)
{
    return f->kind >= ET_FIELD_TOKENS && like->common->seq_len > 0
               ? like->common->seq_len
               : 0;
}

/* ---- what is given ---- */

/* "u8[N,28,28,1]", "i32[N,<=128]" */
static const char *
wanted(const struct et_dataset *like, const struct et_field *f, char buf[128])
{
    int64_t shape[ET_MAX_DIMS];
    const int ndim = shape_of(f, 0, shape);
    size_t at = (size_t)snprintf(buf, 128, "%s[N", et_dtype_name(f->dtype));
    for (int k = 1; k < ndim; k++) {
        if (shape[k] >= 0)
            at += (size_t)snprintf(buf + at, 128 - at, ",%lld", (long long)shape[k]);
        else if (most(like, f) > 0)
            at += (size_t)snprintf(buf + at, 128 - at, ",<=%lld",
                                   (long long)most(like, f));
        else
            at += (size_t)snprintf(buf + at, 128 - at, ",any");
    }
    snprintf(buf + at, 128 - at, "]");
    return buf;
}

static bool
shape_fits(const struct et_dataset *like, const struct et_field *f,
           const struct et_desc *d)
{
    int64_t shape[ET_MAX_DIMS];
    if (d->ndim != shape_of(f, d->shape[0], shape))
        return false;
    for (int k = 1; k < d->ndim; k++) {
        const int64_t bound = most(like, f);
        if (shape[k] >= 0 ? d->shape[k] != shape[k]
                          : d->shape[k] < 1 || (bound > 0 && d->shape[k] > bound))
            return false;
    }
    return true;
}

static et_status
check(struct et_ctx *cx, const struct et_dataset *like, const struct et_field *f,
      const struct et_raw_field *given)
{
    char has[128], takes[128];
    const struct et_desc *d = &given->desc;
    const bool fits = shape_fits(like, f, d);
    if (!given->data)
        return ET_FAIL(cx, ET_EINVAL, "%s has no data", f->name);
    if (d->dtype != f->dtype || !fits)
        return ET_FAIL(cx, d->dtype != f->dtype ? ET_EDTYPE : ET_ESHAPE,
                       "%s is %s, and the model's data have %s", f->name,
                       et_desc_text(d, has, sizeof has), wanted(like, f, takes));
    if (!et_desc_is_contiguous(d, ET_ROW_MAJOR))
        return ET_FAIL(cx, ET_ESHAPE, "%s is %s, and not row-major", f->name,
                       et_desc_text(d, has, sizeof has));
    return ET_OK;
}

/* F becomes what each sample of D is. */
static void
settle(struct et_field *f, const struct et_desc *d)
{
    if (f->kind == ET_FIELD_IMAGE) {
        f->shape[1] = d->shape[1];
        f->shape[2] = d->shape[2];
        return;
    }
    for (int k = 0; k < f->ndim; k++)
        f->shape[k] = d->shape[k + 1];
}

static et_status
find(struct et_ctx *cx, const struct known *known, const char *name, int *out)
{
    const char *names[ET_MAX_FIELDS], *near;
    for (int i = 0; i < known->n; i++) {
        names[i] = known->field[i].name;
        if (!name || strcmp(names[i], name) == 0) {
            *out = i;
            return ET_OK;
        }
    }
    near = et_nearest(name, names, known->n);
    et_status status =
        ET_FAIL(cx, ET_EINVAL, "the model's data have no field '%s'%s%s%s", name,
                near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    et_hint(cx, "the first is '%s', and samples have %d in all", names[0], known->n);
    return status;
}

/* Which of FIELDS each of KNOWN is, into PLACE [KNOWN->n]; -1: none. All are
 * checked. */
static et_status
place_all(struct et_ctx *cx, const struct et_dataset *like, const struct known *known,
          const struct et_raw_field *fields, int n, int *place)
{
    for (int i = 0; i < known->n; i++)
        place[i] = -1;
    for (int i = 0; i < n; i++) {
        int at = 0;
        ET_TRY(find(cx, known, fields[i].name, &at));
        if (place[at] >= 0)
            return ET_FAIL(cx, ET_EINVAL, "%s is there twice", known->field[at].name);
        place[at] = i;
        ET_TRY(check(cx, like, &known->field[at], &fields[i]));
        if (fields[i].desc.shape[0] != fields[0].desc.shape[0])
            return ET_FAIL(cx, ET_ESHAPE, "%s has %lld samples, and another field %lld",
                           known->field[at].name, (long long)fields[i].desc.shape[0],
                           (long long)fields[0].desc.shape[0]);
    }
    if (place[ET_FIELD_X] < 0)
        return ET_FAIL(cx, ET_EINVAL, "%s, which the model reads, is not there",
                       known->field[ET_FIELD_X].name);
    return ET_OK;
}

/* The target is as long, or as large, as what the model reads. */
static void
settle_target(struct et_data_facts *facts, const struct et_dataset *like)
{
    const struct et_field *x = &facts->field[ET_FIELD_X];
    struct et_field target = like->facts.field[ET_FIELD_TARGET];
    const int first = x->kind == ET_FIELD_IMAGE ? 1 : 0;
    for (int k = 0; k < target.ndim; k++)
        if (target.shape[k] < 0)
            target.shape[k] = x->shape[k + first];
    et_facts_add(facts, &target);
}

et_status
eti_raw_take(struct et_ctx *cx, const struct et_dataset *like,
             const struct et_raw_field *fields, int n, struct et_data_facts *facts,
             const void **data)
{
    const struct known known = know(like);
    int place[ET_MAX_FIELDS];
    ET_TRY(place_all(cx, like, &known, fields, n, place));
    if (fields[0].desc.shape[0] < 1)
        return ET_FAIL(cx, ET_EINVAL, "0 samples are none");
    *facts = like->facts;
    facts->n_samples = fields[0].desc.shape[0];
    data[ET_FIELD_X] = fields[place[ET_FIELD_X]].data;
    if (like->type->tokens)
        return ET_OK;
    facts->n_fields = 0;
    for (int i = 0; i < known.n; i++) {
        struct et_field f = known.field[i];
        if (place[i] < 0)
            continue;
        settle(&f, &fields[place[i]].desc);
        data[facts->n_fields] = fields[place[i]].data;
        et_facts_add(facts, &f);
        if (f.name == mask_name)
            facts->wants_attention_mask = false;
        if (i == ET_FIELD_X && like->facts.n_fields > ET_FIELD_TARGET) {
            data[facts->n_fields] = NULL;
            settle_target(facts, like);
        }
    }
    return ET_OK;
}
