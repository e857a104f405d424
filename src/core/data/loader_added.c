/* SPDX-License-Identifier: Apache-2.0 */
/* loader_added.c: transforms that algorithms add to a loader. See loader_impl.h.
 *
 * They change how large images are in a batch, whether they can stay on the device, and
 * whether threads pay: all of that is made anew. What is drawn, and the loader's place,
 * stay. The loader has its own options: threads read them while the run goes on. */
#include "core/data/loader_impl.h"

#include "core/recipe/options.h"

void
eti_added_release(struct et_ctx *cx, struct et_parts *added)
{
    for (int i = 0; i < added->n; i++)
        eti_options_free(cx, added->v[i].component, &added->v[i].options);
    et_free(cx, added->v);
    *added = (struct et_parts){0};
}

static et_status
copy_parts(struct et_ctx *cx, const struct et_parts *from, struct et_parts *out)
{
    void *block;
    *out = (struct et_parts){0};
    if (from->n == 0)
        return ET_OK;
    ET_TRY(et_alloc(cx, (size_t)from->n * sizeof *out->v, &block));
    out->v = block;
    for (int i = 0; i < from->n; i++) {
        struct et_part *p = &out->v[out->n++];
        p->component = from->v[i].component;
        ET_TRY(eti_options_new(cx, p->component, from->v[i].options, &p->options));
    }
    return ET_OK;
}

static bool
has_masks(const struct et_data_facts *f)
{
    for (int i = 0; i < f->n_fields; i++)
        if (f->field[i].kind == ET_FIELD_MASK)
            return true;
    return false;
}

et_status
eti_loader_try(struct et_ctx *cx, const struct et_loader *l,
               const struct et_parts *added, int64_t size[2])
{
    struct eti_pipeline p;
    const struct et_data_options *o = l->data->common;
    const struct et_data_facts *f = &l->data->facts;
    if (added->n == 0 && l->image < 0)
        return ET_OK;
    if (l->image < 0)
        return ET_FAIL(cx, ET_EINVAL, "%s changes images, and %s has none",
                       added->v[0].component->name, l->data->type->info.name);
    ET_TRY(eti_pipeline_init(cx, &p, &f->field[l->image], o->resolution, &o->transforms,
                             added));
    if (o->transforms_on == ET_TRANSFORMS_ON_DEVICE && l->config.dev && *p.host_only)
        return ET_FAIL(cx, ET_EINVAL, "%s: transforms_on is device, and %s",
                       l->data->type->info.name, p.host_only);
    if (p.shrinks && has_masks(f))
        return ET_FAIL(cx, ET_EINVAL,
                       "%s makes images smaller, and their masks stay as they are",
                       p.shrinks);
    size[0] = p.out_h;
    size[1] = p.out_w;
    return ET_OK;
}

static bool
is_held(struct et_loader *l)
{
    bool held = false;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->n_slots; i++)
        held |= l->slots[i].state == ETI_SLOT_HELD;
    pthread_mutex_unlock(&l->lock);
    return held;
}

/* With the parts *ADDED; those that it had are there afterwards. */
static et_status
begin_again(struct et_ctx *cx, struct et_loader *l, struct et_parts *added)
{
    struct et_parts before = l->added;
    l->added = *added;
    *added = before;
    eti_loader_end(l);
    return eti_loader_begin(cx, l);
}

et_status
eti_loader_add(struct et_ctx *cx, struct et_loader *l, const struct et_parts *added)
{
    struct et_parts own;
    int64_t size[2];
    if (added->n == 0 && l->added.n == 0)
        return ET_OK;
    ET_TRY(eti_loader_try(cx, l, added, size));
    if (is_held(l))
        return ET_FAIL(cx, ET_EINVAL, "transforms cannot change while a batch is held");
    et_status status = copy_parts(cx, added, &own);
    if (status == ET_OK) {
        status = begin_again(cx, l, &own);
        if (status != ET_OK && begin_again(cx, l, &own) != ET_OK)
            eti_loader_end(l);
    }
    eti_added_release(cx, &own);
    return status;
}
