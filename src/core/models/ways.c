/* SPDX-License-Identifier: Apache-2.0 */
/* ways.c: see ways.h. A list keeps the values that have names while it computes, so
 * that what is in it, at any depth, finds them there. */
#include "core/models/ways.h"

#include <stdio.h>
#include <string.h>

#include "core/ops/ops.h"

/* ---- values from elsewhere ---- */

/* A field as layers read one: [N,C] or [N,C,H,W], f32 unless integers are wanted. */
static struct et_tensor *
field_value(const struct eti_row_module *row, struct et_forward *f,
            const struct eti_ways_ref *way, bool is_integer)
{
    struct et_tensor *v = et_forward_input(f, way->field);
    if (!v)
        return eti_graph_fail(f->g, ET_FAIL(row->base.cx, ET_EINVAL,
                                            "the network reads the field %s, which "
                                            "these samples do not have",
                                            way->field));
    const int64_t *s = v->desc.shape;
    if (v->desc.ndim == 1)
        v = et_reshape(f->g, v, ET_SHAPE(s[0], 1));
    else if (v->desc.ndim == 3)
        v = et_reshape(f->g, v, ET_SHAPE(s[0], 1, s[1], s[2]));
    return v && !is_integer && !et_dtype_is_float(v->desc.dtype)
               ? et_cast(f->g, v, ET_F32)
               : v;
}

static struct et_tensor *
value_at(const struct eti_row_module *row, struct et_forward *f,
         const struct eti_ways_ref *way, bool is_integer)
{
    if (way->kind == ETI_WAY_FIELD)
        return field_value(row, f, way, is_integer);
    for (int i = 0; i < way->up; i++)
        row = row->outer;
    return way->kind == ETI_WAY_INPUT ? row->x : row->named[way->named].y;
}

/* ---- layers of plugins ---- */

/* "r.yaml:7:5: test_gain", "layers[2] (test_gain)" */
static const char *
own_place(const struct eti_row_module *m, const struct eti_row_own *own, char buf[256])
{
    const char *name = m->base.items[own->item].module->type->info.name;
    if (own->line > 0)
        snprintf(buf, 256, "%s:%d:%d: layer %s", m->file, own->line, own->column, name);
    else
        snprintf(buf, 256, "layers[%d] (%s)", own->item, name);
    return buf;
}

/* Is Y what was said that X becomes? Sizes of images are those of the recipe's data or,
 * while a run resizes them, others. */
static bool
is_as_said(const struct eti_row_own *own, const struct et_desc *x,
           const struct et_desc *y)
{
    const int64_t *in = own->in, *out = own->out;
    if (y->ndim == 3) /* of a sequence nothing was said */
        return true;
    if (out[1] == 0)
        return y->ndim == 2 && y->shape[1] == out[0];
    if (y->ndim != 4 || y->shape[1] != out[0])
        return false;
    return x->ndim != 4 || x->shape[2] != in[1] || x->shape[3] != in[2] ||
           (y->shape[2] == out[1] && y->shape[3] == out[2]);
}

static struct et_tensor *
refuse_own(const struct eti_row_module *m, struct et_graph *g,
           const struct eti_row_own *own, const struct et_desc *x,
           const struct et_desc *y)
{
    char place[256], a[96], b[96], shape[96];
    const int64_t *out = own->out;
    if (out[1] > 0)
        snprintf(shape, sizeof shape, "%s[%lld,%lld,%lld,%lld]",
                 et_dtype_name(y->dtype), (long long)x->shape[0], (long long)out[0],
                 (long long)out[1], (long long)out[2]);
    else
        snprintf(shape, sizeof shape, "%s[%lld,%lld]", et_dtype_name(y->dtype),
                 (long long)x->shape[0], (long long)out[0]);
    et_status status =
        ET_FAIL(m->base.cx, ET_ESHAPE, "%s makes %s of %s, and %s is what was wanted",
                own_place(m, own, place), et_desc_text(y, b, sizeof b),
                et_desc_text(x, a, sizeof a), shape);
    et_hint(m->base.cx, "its adapt says what becomes of a sample; without one the "
                        "shape stays");
    return eti_graph_fail(g, status);
}

/* It has failed, or forgot to. */
static struct et_tensor *
explain_own(const struct eti_row_module *m, struct et_graph *g,
            const struct eti_row_own *own, const struct et_desc *x)
{
    char place[256], a[96];
    struct et_ctx *cx = m->base.cx;
    const struct et_error said = *et_error_get(cx);
    const et_status status = et_graph_status(g);
    own_place(m, own, place);
    et_desc_text(x, a, sizeof a);
    if (status == ET_OK)
        return eti_graph_fail(
            g, ET_FAIL(cx, ET_EINVAL, "%s makes nothing of %s", place, a));
    if (status == ET_ENOMEM)
        return NULL;
    et_error_clear(cx);
    (void)ET_FAIL(cx, status, "%s, of %s: %s", place, a, said.message);
    if (*said.hint)
        et_hint(cx, "%s", said.hint);
    return NULL;
}

static struct et_tensor *
check_own(const struct eti_row_module *m, struct et_graph *g,
          const struct eti_row_own *own, struct et_tensor *x, struct et_tensor *y)
{
    if (!x)
        return NULL;
    if (!y)
        return explain_own(m, g, own, &x->desc);
    return is_as_said(own, &x->desc, &y->desc)
               ? y
               : refuse_own(m, g, own, &x->desc, &y->desc);
}

/* ---- lists ---- */

static struct et_tensor *
row_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct eti_row_module *m = (struct eti_row_module *)base;
    int from = 0, named = 0, own = 0;
    m->x = x;
    for (int i = 0; i < base->n_items; i++) {
        const struct eti_row_from *other = &m->from[from];
        if (from < m->n_from && other->item == i) {
            x = value_at(m, f, &other->way, other->is_integer);
            from++;
        }
        struct et_tensor *y = et_forward(f, base->items[i].module, x);
        if (own < m->n_own && m->own[own].item == i)
            y = check_own(m, f->g, &m->own[own++], x, y);
        x = y;
        if (named < m->n_named && m->named[named].item == i)
            m->named[named++].y = x;
    }
    return x;
}

const struct et_module_class eti_row_class = {
    .info = {.name = "layers",
             .class_name = "Layers",
             .summary = "layers in order, whose values may have names",
             .source = "Etude",
             .applies_to = "any"},
    .base = &et_sequential_class,
    .size = sizeof(struct eti_row_module),
    .forward = row_forward,
};

const char *
eti_ways_block(const struct et_module *m)
{
    const struct eti_row_module *row = (const struct eti_row_module *)m;
    return m->type == &eti_row_class && *row->block ? row->block : NULL;
}

static struct et_tensor *
repeat_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    for (int i = 0; i < m->n_items; i++)
        x = et_forward(f, m->items[i].module, x);
    return x;
}

const struct et_module_class eti_repeat_class = {
    .info = {.name = "repeat",
             .class_name = "Repeat",
             .summary = "lists of layers that are alike, one after the other",
             .source = "Etude",
             .applies_to = "any"},
    .base = &et_sequential_class,
    .size = sizeof(struct et_module),
    .forward = repeat_forward,
};

static struct et_tensor *
residual_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct eti_residual_module *m = (struct eti_residual_module *)base;
    struct et_tensor *y = et_forward(f, m->residual, x);
    return et_add(f->g, y, et_forward(f, m->shortcut, x));
}

const struct et_module_class eti_residual_class = {
    .info = {.name = "residual",
             .class_name = "Residual",
             .summary = "what layers give plus what comes in, or what a shortcut makes "
                        "of it",
             .source = "arXiv 1512.03385",
             .applies_to = "any"},
    .size = sizeof(struct eti_residual_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(eti_residual_module, residual),
            ET_SLOT(eti_residual_module, shortcut),
            {0},
        },
    .forward = residual_forward,
};

/* ---- joins ---- */

/* The value at WAY beside X: of X's dtype; a vector beside an image is a number for
 * each channel. */
static struct et_tensor *
beside(const struct eti_join_module *m, struct et_forward *f,
       const struct eti_ways_ref *way, const struct et_tensor *x)
{
    struct et_tensor *v = value_at(m->row, f, way, false);
    if (!v || !x)
        return NULL;
    if (x->desc.ndim == 4 && v->desc.ndim == 2)
        v = et_reshape(f->g, v, ET_SHAPE(v->desc.shape[0], v->desc.shape[1], 1, 1));
    return v && v->desc.dtype != x->desc.dtype ? et_cast(f->g, v, x->desc.dtype) : v;
}

static struct et_tensor *
add_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    const struct eti_join_module *m = (struct eti_join_module *)base;
    for (int i = 0; i < m->n; i++)
        x = et_add(f->g, x, beside(m, f, &m->way[i], x));
    return x;
}

static struct et_tensor *
mul_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    const struct eti_join_module *m = (struct eti_join_module *)base;
    for (int i = 0; i < m->n; i++)
        x = et_mul(f->g, x, beside(m, f, &m->way[i], x));
    return x;
}

static struct et_tensor *
concat_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    const struct eti_join_module *m = (struct eti_join_module *)base;
    struct et_tensor *all[ETI_WAYS_JOINED] = {x};
    for (int i = 0; i < m->n; i++)
        all[1 + i] = beside(m, f, &m->way[i], x);
    return et_concat(f->g, all, 1 + m->n, 1);
}

/* clang-format off */
#define JOIN(id, class_text, summary_text)                                             \
    const struct et_module_class eti_##id##_class = {                                  \
        .info = {.name = #id,                                                          \
                 .class_name = class_text,                                             \
                 .summary = summary_text,                                              \
                 .source = "Etude",                                                    \
                 .applies_to = "any"},                                                 \
        .size = sizeof(struct eti_join_module),                                        \
        .forward = id##_forward,                                                       \
    };
/* clang-format on */
JOIN(add, "Add", "the sum of values")
JOIN(mul, "Mul", "the product of values")
JOIN(concat, "Concat", "the channels of values, one after the other")

static struct et_tensor *
from_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    (void)m, (void)f;
    return x;
}

const struct et_module_class eti_from_class = {
    .info = {.name = "from",
             .class_name = "From",
             .summary = "a value from elsewhere",
             .source = "Etude",
             .applies_to = "any"},
    .size = sizeof(struct et_module),
    .forward = from_forward,
};

/* ---- what is read besides ---- */

struct fields {
    const struct eti_ways_ref **v;
    int n, room;
};

static void
note(struct fields *l, const struct eti_ways_ref *way)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->v[i]->field, way->field) == 0)
            return;
    if (way->kind == ETI_WAY_FIELD && l->n < l->room)
        l->v[l->n++] = way;
}

static void
walk(struct et_module *m, struct fields *l)
{
    struct et_module **child;
    if (et_module_is(m, &eti_row_class)) {
        const struct eti_row_module *row = (struct eti_row_module *)m;
        for (int i = 0; i < row->n_from; i++)
            note(l, &row->from[i].way);
    }
    if (m->type == &eti_add_class || m->type == &eti_mul_class ||
        m->type == &eti_concat_class) {
        const struct eti_join_module *join = (struct eti_join_module *)m;
        for (int i = 0; i < join->n; i++)
            note(l, &join->way[i]);
    }
    for (int i = 0; (child = et_module_child(m, i, NULL)) != NULL; i++)
        if (*child)
            walk(*child, l);
}

et_status
eti_ways_samples(struct et_ctx *cx, struct et_module *root, struct et_device *dev,
                 struct et_tensor *x, struct et_samples *out)
{
    const struct eti_ways_ref *way[ET_MAX_FIELDS];
    struct fields l = {.v = way, .room = ET_MAX_FIELDS};
    walk(root, &l);
    *out = (struct et_samples){.x = x, .n = x->desc.shape[0]};
    for (; out->n_others < l.n; out->n_others++) {
        struct et_named_tensor *other = &out->other[out->n_others];
        const struct eti_ways_ref *w = way[out->n_others];
        int64_t shape[ET_MAX_DIMS] = {out->n};
        memcpy(shape + 1, w->shape, (size_t)w->ndim * sizeof *shape);
        other->name = w->field;
        ET_TRY(et_tensor_new(cx, dev, w->dtype, 1 + w->ndim, shape,
                             w->ndim == 3 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, w->field,
                             &other->tensor));
    }
    return ET_OK;
}

void
eti_ways_release(struct et_samples *samples)
{
    for (int i = 0; i < samples->n_others; i++)
        et_tensor_free(&samples->other[i].tensor);
    *samples = (struct et_samples){0};
}
