/* SPDX-License-Identifier: Apache-2.0 */
/* shadow.c: see shadow.h. */
#include "config.h"

#include "core/graph/shadow.h"

struct et_shadow {
    struct et_storage *low; /* the elements in DTYPE, each at its index */
    enum et_dtype dtype;
    bool marked; /* some are not those of the storage */
};

void
eti_shadow_free(struct et_storage *storage)
{
    struct et_shadow *s = storage->shadow;
    storage->shadow = NULL;
    if (!s)
        return;
    et_storage_unref(s->low);
    et_free(storage->dev->cx, s);
}

et_status
eti_shadow_set(struct et_ctx *cx, struct et_storage *storage, enum et_dtype dtype)
{
    if (storage->shadow && storage->shadow->dtype == dtype)
        return ET_OK;
    eti_shadow_free(storage);
    if (dtype == ET_NONE)
        return ET_OK;
    void *block;
    ET_TRY(et_alloc(storage->dev->cx, sizeof *storage->shadow, &block));
    struct et_shadow *s = block;
    *s = (struct et_shadow){.dtype = dtype, .marked = true};
    et_status status =
        et_storage_new(cx, storage->dev,
                       storage->bytes / sizeof(float) * et_dtype_size(dtype), &s->low);
    if (status != ET_OK) {
        et_free(storage->dev->cx, s);
        return status;
    }
    storage->shadow = s;
    return ET_OK;
}

void
eti_shadow_mark(struct et_storage *storage)
{
    if (storage->shadow)
        storage->shadow->marked = true;
}

static struct et_shadow *
shadow_of(const struct et_tensor *leaf)
{
    bool has = !leaf->node && leaf->storage && leaf->desc.dtype == ET_F32;
    return has ? leaf->storage->shadow : NULL;
}

void
eti_shadow_read(const struct et_graph *g, const struct et_tensor *leaf,
                struct et_tensor *to)
{
    const struct et_shadow *s = shadow_of(leaf);
    if (g->eager || !s || s->dtype != to->desc.dtype ||
        !eti_same_space(&leaf->desc, &to->desc))
        return;
    to->storage = s->low;
    to->offset = leaf->offset;
    to->data =
        (char *)s->low->data + (size_t)leaf->offset * et_dtype_size(to->desc.dtype);
}

struct et_tensor *
eti_shadow_leaf(struct et_graph *g, const struct et_tensor *leaf)
{
    const struct et_shadow *s = shadow_of(leaf);
    struct et_tensor *low = s ? eti_graph_alloc(g, sizeof *low) : NULL;
    if (!low)
        return NULL;
    low->desc = leaf->desc;
    low->desc.dtype = s->dtype;
    low->storage = s->low;
    low->offset = leaf->offset;
    low->name = "shadow";
    return low;
}

/* One kernel over all of it, in a graph of its own: G is being evaluated. */
static et_status
make_anew(struct et_graph *g, struct et_storage *storage)
{
    struct et_shadow *s = storage->shadow;
    struct et_tensor from = {.storage = storage, .name = "parameters"};
    struct et_tensor to = {.storage = s->low, .name = "shadow"};
    const int64_t n = (int64_t)(storage->bytes / sizeof(float));
    struct et_graph *own;
    et_desc_init(&from.desc, ET_F32, 1, &n, ET_ROW_MAJOR);
    et_desc_init(&to.desc, s->dtype, 1, &n, ET_ROW_MAJOR);
    ET_TRY(et_graph_new(g->cx, g->dev, &own));
    own->eager = false;
    et_assign(own, &to, et_cast(own, &from, s->dtype));
    et_status status = et_eval(own, NULL, 0);
    et_graph_free(&own);
    s->marked = status != ET_OK;
    return status;
}

et_status
eti_shadow_refresh(struct et_graph *g, const struct eti_ir *ir)
{
    for (int i = 0; i < ir->n_bindings; i++) {
        const struct et_tensor *t = ir->binding[i];
        const struct et_tensor *leaf = t->node && t->node->n_in ? t->node->in[0] : NULL;
        const struct et_shadow *s = leaf ? shadow_of(leaf) : NULL;
        if (s && s->marked && t->storage == s->low)
            ET_TRY(make_anew(g, leaf->storage));
    }
    return ET_OK;
}
