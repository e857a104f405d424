/* SPDX-License-Identifier: Apache-2.0 */
/* module.c: instances, their tree, and the list of its leaves. See module.h. */
#include "core/base/need.h"
#include "core/modules/common.h"
#include "core/base/sized.h"
#include "etude/module.h"

#include <stdio.h>
#include <string.h>

#include "core/modules/leaves.h"
#include "core/ops/ops.h"
#include "etude/nn.h"

const struct et_module_class *const et_module_classes[] = {
#define ET_MODULE(name) &et_##name##_class,
#include "etude/modules.def"
#undef ET_MODULE
    NULL,
};

const struct et_module_class *
et_module_class_find(const char *name)
{
    if (!name)
        return NULL;
    for (const struct et_module_class *const *c = et_module_classes; *c; c++)
        if (strcmp((*c)->info.name, name) == 0)
            return *c;
    return NULL;
}

/* Without OPTIONS all of them are 0. */
static et_status
init(struct et_ctx *cx, struct et_module *m, const void *options)
{
    void *zeros = NULL;
    if (!options && m->type->info.options_size > 0)
        ET_TRY(et_alloc(cx, m->type->info.options_size, &zeros));
    et_status status = m->type->init(cx, m, options ? options : zeros);
    et_free(cx, zeros);
    return status;
}

et_status
et_module_new(struct et_ctx *cx, const struct et_module_class *type,
              const void *options, struct et_module **out)
{
    ETI_NEED(cx, out);
    void *block;
    *out = NULL;
    ET_TRY(eti_need_class(cx, "et_module_new", type));
    ETI_NEED(cx, cx);
    ET_TRY(et_alloc(cx, type->size, &block));
    struct et_module *m = block;
    m->type = type;
    m->cx = cx;
    m->refs = 1;
    et_status status = type->init ? init(cx, m, options) : ET_OK;
    if (status != ET_OK)
        et_module_free(&m);
    *out = m;
    return status;
}

et_status
et_module_new_sized(struct et_ctx *cx, const struct et_module_class *type,
                    const void *options, size_t size, struct et_module **out)
{
    ETI_NEED(cx, cx, out);
    size_t here = type ? type->info.options_size : 0;
    void *own;
    *out = NULL;
    if (!options || here == 0 || here == size)
        return et_module_new(cx, type, options, out);
    ET_TRY(et_alloc(cx, here, &own));
    et_status status = eti_sized(cx, type->info.name, options, size, own, here);
    if (status == ET_OK)
        status = et_module_new(cx, type, own, out);
    et_free(cx, own);
    return status;
}

et_status
et_module_add(struct et_ctx *cx, struct et_module *parent, const char *name,
              const struct et_module_class *type, const void *options)
{
    ETI_NEED(cx, cx, parent, type);
    return et_module_add_sized(cx, parent, name, type, options,
                               type->info.options_size);
}

et_status
et_module_add_sized(struct et_ctx *cx, struct et_module *parent, const char *name,
                    const struct et_module_class *type, const void *options,
                    size_t size)
{
    ETI_NEED(cx, cx, parent, type);
    void *block;
    ET_TRY(
        et_alloc(cx, (size_t)(parent->n_items + 1) * sizeof(struct et_child), &block));
    struct et_child *items = block, *last = &items[parent->n_items];
    if (parent->items)
        memcpy(items, parent->items, (size_t)parent->n_items * sizeof *items);
    et_free(cx, parent->items);
    parent->items = items;
    if (name)
        snprintf(last->name, sizeof last->name, "%s", name);
    else
        snprintf(last->name, sizeof last->name, "%d", parent->n_items);
    ET_TRY(et_module_new_sized(cx, type, options, size, &last->module));
    parent->n_items++;
    return ET_OK;
}

struct et_module *
et_module_ref(struct et_module *m)
{
    if (!m)
        return NULL;
    m->refs++;
    return m;
}

void
et_module_free(struct et_module **mp)
{
    if (!mp)
        return;
    struct et_module *m = *mp, **child;
    struct et_param *p;
    *mp = NULL;
    if (!m || --m->refs > 0)
        return;
    for (int i = 0; (child = et_module_child(m, i, NULL)); i++)
        et_module_free(child);
    for (int i = 0; (p = et_module_param(m, i, NULL)); i++) {
        et_tensor_free(&p->tensor);
        et_free(m->cx, p->value);
    }
    et_free(m->cx, m->items);
    et_free(m->cx, m);
}

bool
et_module_is(const struct et_module *m, const struct et_module_class *type)
{
    if (!m)
        return false;
    for (const struct et_module_class *c = m->type; c; c = c->base)
        if (c == type)
            return true;
    return false;
}

struct et_tensor *
et_forward_input(const struct et_forward *f, const char *name)
{
    return f && f->samples ? et_samples_find(f->samples, name) : NULL;
}

struct et_tensor *
et_gate_closed(struct et_graph *g, const struct et_gate *gate)
{
    ETI_NEED_IN(g, g, gate);
    return et_slice(g, gate->closed, 0, gate->at, 1, 1);
}

struct et_tensor *
et_forward(struct et_forward *f, struct et_module *m, struct et_tensor *x)
{
    if (!f)
        return NULL;
    if (!x)
        return ETI_MISSING(f->g, x);
    if (!m)
        return x;
    bool training = f->training;
    f->training = training && !m->as_eval;
    struct et_tensor *y = m->type->forward(m, f, x);
    f->training = training;
    if (f->look && y)
        f->look(f->look_data, f->g, m, x, y);
    return y;
}

/* Row I of a table that ends with a NULL name; *N is its length when I is past it. */
static const struct et_slot *
slot_at(const struct et_slot *table, int i, int *n)
{
    *n = 0;
    for (; table && table->name; table++, (*n)++)
        if (*n == i)
            return table;
    return NULL;
}

struct et_module **
et_module_child(struct et_module *m, int i, const char **name)
{
    if (!m)
        return NULL;
    int fixed;
    const struct et_slot *s = slot_at(m->type->children, i, &fixed);
    if (!s && i - fixed >= m->n_items)
        return NULL;
    if (name)
        *name = s ? s->name : m->items[i - fixed].name;
    return s ? (struct et_module **)(void *)((char *)m + s->offset)
             : &m->items[i - fixed].module;
}

struct et_param *
et_module_param(struct et_module *m, int i, const char **name)
{
    if (!m)
        return NULL;
    int n;
    const struct et_slot *s = slot_at(m->type->params, i, &n);
    if (s && name)
        *name = s->name;
    return s ? (struct et_param *)(void *)((char *)m + s->offset) : NULL;
}

struct et_module *
et_module_find(struct et_module *root, const char *path)
{
    if (!path)
        return NULL;
    struct et_module *m = root, **child;
    while (m && *path) {
        size_t length = strcspn(path, ".");
        struct et_module *next = NULL;
        const char *name;
        for (int i = 0; !next && (child = et_module_child(m, i, &name)); i++)
            if (strlen(name) == length && memcmp(name, path, length) == 0)
                next = *child;
        m = next;
        path += length + (path[length] == '.');
    }
    return m;
}

/* ---- leaves ---- */

/* Walks M, whose path is NAME (LENGTH bytes of a buffer), and counts or lists leaves. A
 * leaf met again (a shared module) keeps its first name. */
static void
collect(struct et_module *m, unsigned kinds, char *name, size_t length,
        struct et_leaves *list, int capacity)
{
    const size_t size = sizeof list->v->name;
    const char *key;
    struct et_param *p;
    struct et_module **child;
    const char *dot = length ? "." : "";
    for (int i = 0; (p = et_module_param(m, i, &key)); i++) {
        bool known = p->desc.dtype == ET_NONE || !(p->kind & kinds);
        for (int j = 0; j < list->n && j < capacity && !known; j++)
            known = list->v[j].param == p;
        if (known)
            continue;
        if (list->n < capacity) {
            struct et_leaf *leaf = &list->v[list->n];
            snprintf(name + length, size - length, "%s%s", dot, key);
            memcpy(leaf->name, name, size);
            leaf->param = p;
            leaf->module = m;
        }
        list->n++;
    }
    for (int i = 0; (child = et_module_child(m, i, &key)); i++) {
        if (!*child)
            continue;
        int more = snprintf(name + length, size - length, "%s%s", dot, key);
        size_t end = length + (size_t)more;
        collect(*child, kinds, name, end < size ? end : size - 1, list, capacity);
    }
}

et_status
et_module_leaves(struct et_ctx *cx, struct et_module *root, unsigned kinds,
                 struct et_leaves *out)
{
    ETI_NEED(cx, cx, root, out);
    char name[sizeof out->v->name] = "";
    void *block;
    *out = (struct et_leaves){.cx = cx};
    collect(root, kinds, name, 0, out,
            0); /* counts shared ones twice: an upper bound */
    int capacity = out->n;
    ET_TRY(et_alloc(cx, (size_t)(capacity + 1) * sizeof *out->v, &block));
    out->v = block;
    out->n = 0;
    collect(root, kinds, name, 0, out, capacity);
    return ET_OK;
}

void
et_leaves_release(struct et_leaves *l)
{
    if (!l)
        return;
    if (l->v)
        et_free(l->cx, l->v);
    *l = (struct et_leaves){0};
}

struct et_leaf *
et_leaves_find(const struct et_leaves *l, const char *name)
{
    if (!l || !name)
        return NULL;
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->v[i].name, name) == 0)
            return &l->v[i];
    return NULL;
}

et_status
et_module_count(struct et_ctx *cx, struct et_module *root, int64_t *out)
{
    ETI_NEED(cx, cx, root, out);
    struct et_leaves l;
    *out = 0;
    ET_TRY(et_module_leaves(cx, root, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++)
        *out += et_desc_count(&l.v[i].param->desc);
    et_leaves_release(&l);
    return ET_OK;
}

et_status
et_module_freeze_stats(struct et_ctx *cx, struct et_module *root, bool frozen)
{
    ETI_NEED(cx, cx, root);
    struct et_leaves l;
    ET_TRY(et_module_leaves(cx, root, ET_BUFFER, &l));
    for (int i = 0; i < l.n; i++)
        if (et_module_is(l.v[i].module, &et_batch_norm_class))
            l.v[i].module->as_eval = frozen;
    et_leaves_release(&l);
    return ET_OK;
}

/* Tensors for the leaves that have none: buffers side by side, parameters each by
 * itself. What OUT has already is of others, and stays. */
static et_status
allocate(struct et_ctx *cx, struct et_device *dev, const struct et_leaves *l,
         struct et_tensor **out)
{
    for (int i = 0; i < l->n; i++) {
        const struct et_desc *d = &l->v[i].param->desc;
        if (!out[i] && l->v[i].param->kind == ET_PARAM)
            ET_TRY(et_tensor_new(cx, dev, ET_F32, d->ndim, d->shape,
                                 d->ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR,
                                 l->v[i].name, &out[i]));
    }
    return eti_leaves_allocate(cx, dev, l, NULL, out);
}

et_status
et_module_bind(struct et_ctx *cx, struct et_module *root, struct et_device *dev,
               unsigned kinds, uint32_t seed)
{
    ETI_NEED(cx, cx, root, dev);
    struct et_leaves l;
    void *block;
    ET_TRY(et_module_leaves(cx, root, kinds, &l));
    et_status status =
        et_alloc(cx, ((size_t)l.n + 1) * sizeof(struct et_tensor *), &block);
    struct et_tensor **t = status == ET_OK ? block : NULL;
    for (int i = 0; t && i < l.n; i++)
        t[i] = l.v[i].param->tensor;
    if (t)
        status = allocate(cx, dev, &l, t);
    for (int i = 0; t && i < l.n; i++) {
        if (t[i] == l.v[i].param->tensor)
            continue;
        if (status == ET_OK)
            status = et_param_bind(cx, l.v[i].param, l.v[i].name, seed, &t[i]);
        et_tensor_free(&t[i]);
    }
    et_free(cx, t);
    et_leaves_release(&l);
    return status;
}

et_status
eti_adapt_in(struct et_ctx *cx, const char *layer, const char *what, int64_t here,
             int64_t *size)
{
    *size = eti_int_or(*size, here);
    if (*size == here)
        return ET_OK;
    et_status status = ET_FAIL(cx, ET_EINVAL, "%s has in: %lld, but %lld %s come in",
                               layer, (long long)*size, (long long)here, what);
    et_hint(cx, "without in: it takes what comes in");
    return status;
}
