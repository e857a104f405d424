/* SPDX-License-Identifier: Apache-2.0 */
/* param_space.c: parameters laid out in flat buffers, and carried over by name. */
#include "core/base/assert.h"
#include "core/base/need.h"
#include "core/graph/shadow.h"
#include "core/optim/optim.h"

#include <string.h>

#include "etude/ctx.h"

static et_status
copy_text(struct et_ctx *cx, const char *text, char **out)
{
    void *block;
    size_t n = strlen(text) + 1;
    ET_TRY(et_alloc(cx, n, &block));
    memcpy(block, text, n);
    *out = block;
    return ET_OK;
}

static et_status
check_spec(struct et_ctx *cx, const struct et_param_spec *specs, int i)
{
    const struct et_param_spec *s = &specs[i];
    char text[96];
    if (s->desc.dtype != ET_F32)
        return ET_FAIL(cx, ET_EDTYPE, "parameter %s is %s; masters are f32", s->name,
                       et_dtype_name(s->desc.dtype));
    if (!et_desc_is_dense(&s->desc))
        return ET_FAIL(cx, ET_ESHAPE, "parameter %s, %s, is not dense", s->name,
                       et_desc_text(&s->desc, text, sizeof text));
    if (s->group < 0)
        return ET_FAIL(cx, ET_EINVAL, "parameter %s is in group %d", s->name, s->group);
    for (int j = 0; j < i; j++)
        if (strcmp(specs[j].name, s->name) == 0)
            return ET_FAIL(cx, ET_EINVAL, "two parameters are named %s", s->name);
    return ET_OK;
}

static et_status
fill_slots(struct et_ctx *cx, struct et_param_space *s,
           const struct et_param_spec *specs)
{
    for (int i = 0; i < s->n; i++) {
        ET_TRY(check_spec(cx, specs, i));
        s->slot[i].desc = specs[i].desc;
        s->slot[i].group = specs[i].group;
        s->slot[i].role = specs[i].role;
        s->slot[i].frozen = specs[i].frozen;
        s->slot[i].gate = specs[i].gate;
        s->slot[i].count = et_desc_count(&specs[i].desc);
        ET_TRY(copy_text(cx, specs[i].name, &s->slot[i].name));
        if (specs[i].group >= s->n_groups)
            s->n_groups = specs[i].group + 1;
    }
    for (int group = 0; group < s->n_groups; group++)
        for (int i = 0; i < s->n; i++) {
            if (s->slot[i].group != group)
                continue;
            s->slot[i].offset = s->total;
            s->total += eti_param_span(&s->slot[i]);
        }
    return ET_OK;
}

et_status
et_param_space_new(struct et_ctx *cx, struct et_device *dev,
                   const struct et_param_spec *specs, int n,
                   struct et_param_space **out)
{
    ETI_NEED(cx, cx, out);
    if (n > 0)
        ETI_NEED(cx, specs);
    *out = NULL;
    if (n < 1)
        return ET_FAIL(cx, ET_EINVAL, "a model without parameters cannot be trained");
    void *block;
    ET_TRY(et_alloc(cx, sizeof(struct et_param_space), &block));
    struct et_param_space *s = block;
    s->cx = cx;
    s->dev = dev;
    et_status status = et_alloc(cx, (size_t)n * sizeof *s->slot, &block);
    if (status == ET_OK) {
        s->slot = block;
        s->n = n;
        status = fill_slots(cx, s, specs);
    }
    if (status == ET_OK && (status = et_alloc(cx, (size_t)n, &block)) == ET_OK)
        s->has_grad = block;
    if (status == ET_OK)
        status = et_tensor_new(cx, dev, ET_F32, 1, &s->total, ET_ROW_MAJOR,
                               "parameters", &s->values);
    if (status != ET_OK)
        et_param_space_free(&s);
    *out = s;
    return status;
}

void
et_param_space_free(struct et_param_space **space)
{
    if (!space)
        return;
    struct et_param_space *s = *space;
    *space = NULL;
    if (!s)
        return;
    while (s->copies) {
        s->copies->space = NULL;
        s->copies = s->copies->next;
    }
    for (int i = 0; i < s->n; i++)
        et_free(s->cx, s->slot[i].name);
    for (int i = 0; i < s->n_moments; i++)
        et_tensor_free(&s->moment[i]);
    eti_param_states_free(s);
    if (s->values)
        et_tensor_free(&s->values);
    et_free(s->cx, s->param);
    et_free(s->cx, s->has_grad);
    et_free(s->cx, s->slot);
    et_free(s->cx, s);
}

et_status
et_param_space_shadow(struct et_param_space *space, enum et_dtype low)
{
    ETI_NEED(space ? space->cx : NULL, space);
    return eti_shadow_set(space->cx, space->values->storage, low);
}

int
et_param_space_find(const struct et_param_space *space, const char *name)
{
    if (!space || !name)
        return 0;
    for (int i = 0; i < space->n; i++)
        if (strcmp(space->slot[i].name, name) == 0)
            return i;
    return -1;
}

et_status
et_param_space_view(struct et_ctx *cx, const struct et_param_space *space, int array,
                    int i, struct et_tensor **out)
{
    ETI_NEED(cx, cx, space, out);
    if (i < 0 || i >= space->n || array >= space->n_moments)
        return ET_FAIL(cx, ET_EINVAL, "there is no parameter %d, or no moment %d", i,
                       array);
    const struct et_param_slot *slot = &space->slot[i];
    struct et_tensor *flat = array < 0 ? space->values : space->moment[array];
    return et_tensor_view(cx, flat->storage, slot->offset, &slot->desc, slot->name,
                          out);
}

et_status
eti_param_space_add_moments(struct et_ctx *cx, struct et_param_space *s,
                            const char *const *names, int n)
{
    if (s->n_moments)
        return ET_FAIL(cx, ET_EINVAL, "these parameters have an optimizer already");
    for (int i = 0; i < n; i++) {
        ET_TRY(et_tensor_new(cx, s->dev, ET_F32, 1, &s->total, ET_ROW_MAJOR, names[i],
                             &s->moment[i]));
        s->moment_name[i] = names[i];
        s->n_moments = i + 1;
    }
    return ET_OK;
}

et_status
eti_param_space_views(const struct et_param_space *s, int64_t begin,
                      const struct et_desc *desc, struct et_tensor **p,
                      struct et_tensor **moment)
{
    ET_TRY(et_tensor_view(s->cx, s->values->storage, begin, desc, "parameters", p));
    for (int k = 0; k < s->n_moments; k++)
        ET_TRY(et_tensor_view(s->cx, s->moment[k]->storage, begin, desc,
                              s->moment_name[k], &moment[k]));
    return ET_OK;
}

/* ---- copies ---- */

et_status
et_param_copy_new(struct et_param_space *space, const char *name,
                  struct et_param_copy **out)
{
    ETI_NEED(space ? space->cx : NULL, space, out);
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(space->cx, sizeof(struct et_param_copy), &block));
    struct et_param_copy *c = block;
    et_status status = et_tensor_new(space->cx, space->dev, ET_F32, 1, &space->total,
                                     ET_ROW_MAJOR, name, &c->values);
    if (status != ET_OK) {
        et_free(space->cx, c);
        return status;
    }
    c->cx = space->cx;
    c->space = space;
    c->next = space->copies;
    space->copies = *out = c;
    return ET_OK;
}

void
et_param_copy_free(struct et_param_copy **copy)
{
    if (!copy)
        return;
    struct et_param_copy *c = *copy;
    *copy = NULL;
    if (!c)
        return;
    for (struct et_param_copy **at = c->space ? &c->space->copies : NULL; at && *at;
         at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    et_tensor_free(&c->values);
    et_free(c->cx, c);
}

/* ---- gradients ---- */

/* Two dense layouts of one shape agree when the strides of all axes longer than 1
 * do. */
static struct et_tensor *
in_memory_order(struct et_graph *g, struct et_tensor *grad, const struct et_desc *like)
{
    if (grad->desc.dtype != ET_F32)
        grad = et_cast(g, grad, ET_F32);
    if (!grad || et_desc_equal(&grad->desc, like))
        return grad;
    bool channels_last = et_desc_is_contiguous(like, ET_CHANNELS_LAST);
    return et_contiguous(g, grad, channels_last ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
}

struct et_tensor *
et_param_space_pack(struct et_graph *g, struct et_param_space *s,
                    struct et_tensor *const *grads)
{
    ETI_NEED_IN(g, g, s, grads);
    int64_t *offset = eti_graph_alloc(g, (size_t)s->n * sizeof *offset);
    struct et_tensor **part = eti_graph_alloc(g, (size_t)s->n * sizeof *part);
    int present = 0;
    if (!offset || !part)
        return NULL;
    for (int i = 0; i < s->n; i++) {
        s->has_grad[i] = grads[i] != NULL;
        if (!grads[i])
            continue;
        offset[present] = s->slot[i].offset;
        part[present++] = in_memory_order(g, grads[i], &s->slot[i].desc);
    }
    return present ? et_pack(g, part, offset, present, s->total, ET_F32) : NULL;
}

struct et_tensor *
et_param_space_gradient(struct et_graph *g, struct et_param_space *s,
                        struct et_tensor *loss)
{
    ETI_NEED_IN(g, g, s);
    struct et_tensor **leaf = eti_graph_alloc(g, (size_t)s->n * sizeof(*leaf));
    struct et_tensor **grad = eti_graph_alloc(g, (size_t)s->n * sizeof(*grad));
    int n = 0;
    if (!leaf || !grad)
        return NULL;
    ET_ASSERT(s->param);
    for (int i = 0; i < s->n; i++)
        if (!s->slot[i].frozen)
            leaf[n++] = s->param[i];
    if (et_grad(g, loss, leaf, n, grad) != ET_OK)
        return NULL;
    for (int i = s->n - 1; i >= 0; i--) /* each to its parameter's place */
        grad[i] = s->slot[i].frozen ? NULL : grad[--n];
    return et_param_space_pack(g, s, grad);
}

struct et_tensor *
eti_param_space_pack_part(struct et_graph *g, const struct et_param_space *s,
                          struct et_tensor *const *grads, int first, int n,
                          int64_t begin, int64_t end)
{
    int64_t *offset = eti_graph_alloc(g, (size_t)n * sizeof *offset);
    struct et_tensor **part = eti_graph_alloc(g, (size_t)n * sizeof *part);
    int present = 0;
    if (!offset || !part)
        return NULL;
    for (int i = first; i < first + n; i++) {
        if (!grads[i])
            continue;
        offset[present] = s->slot[i].offset - begin;
        part[present++] = in_memory_order(g, grads[i], &s->slot[i].desc);
    }
    return et_pack(g, part, offset, present, end - begin, ET_F32);
}

/* ---- carrying over ---- */

/* The elements of slot J of FROM, flat memory, become those of slot I of TO. */
static et_status
carry_slot(struct et_ctx *cx, struct et_tensor *to, const struct et_param_slot *i,
           struct et_tensor *from, const struct et_param_slot *j)
{
    size_t bytes = et_desc_bytes(&i->desc);
    struct et_tensor *source = NULL, *target = NULL;
    void *buffer;
    ET_TRY(et_alloc(cx, bytes, &buffer));
    et_status status =
        et_tensor_view(cx, from->storage, j->offset, &j->desc, j->name, &source);
    if (status == ET_OK)
        status = et_tensor_view(cx, to->storage, i->offset, &i->desc, i->name, &target);
    if (status == ET_OK)
        status = et_tensor_read(cx, source, buffer, bytes);
    if (status == ET_OK)
        status = et_tensor_write(cx, target, buffer, bytes);
    et_tensor_free(&source);
    et_tensor_free(&target);
    et_free(cx, buffer);
    return status;
}

/* Of what both spaces have: FROM's slot for each of TO's. */
struct carrying {
    struct et_param_space *to, *from;
    const int *was; /* NULL: by name */
};

/* The slot of FROM that slot I of TO goes on from; NULL: it is new. */
static const struct et_param_slot *
predecessor(const struct carrying *c, int i)
{
    const struct et_param_slot *slot = &c->to->slot[i];
    int j = c->was ? c->was[i] : et_param_space_find(c->from, slot->name);
    return j >= 0 && et_desc_same_shape(&c->from->slot[j].desc, &slot->desc)
               ? &c->from->slot[j]
               : NULL;
}

/* Of flat memory of both spaces. Slots that are new take their elements from FRESH,
 * flat memory of TO; NULL: they stay. */
static et_status
carry_array(struct et_ctx *cx, const struct carrying *c, struct et_tensor *array,
            struct et_tensor *old, struct et_tensor *fresh)
{
    for (int i = 0; i < c->to->n; i++) {
        const struct et_param_slot *slot = &c->to->slot[i], *was = predecessor(c, i);
        if (was)
            ET_TRY(carry_slot(cx, array, slot, old, was));
        else if (fresh)
            ET_TRY(carry_slot(cx, array, slot, fresh, slot));
    }
    return ET_OK;
}

void
eti_param_copy_adopt(struct et_param_space *to, struct et_param_copy *c,
                     struct et_tensor **values)
{
    struct et_param_copy **at = &c->space->copies;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    et_tensor_free(&c->values);
    c->values = *values;
    *values = NULL;
    c->moves++;
    c->space = to;
    c->next = to->copies;
    to->copies = c;
}

/* The first of FROM's copies becomes one of TO. */
static et_status
carry_copy(struct et_ctx *cx, const struct carrying *c)
{
    struct et_param_copy *copy = c->from->copies;
    struct et_tensor *values;
    ET_TRY(et_tensor_new(cx, c->to->dev, ET_F32, 1, &c->to->total, ET_ROW_MAJOR,
                         copy->values->name, &values));
    et_status status = carry_array(cx, c, values, copy->values, c->to->values);
    if (status == ET_OK)
        eti_param_copy_adopt(c->to, copy, &values);
    et_tensor_free(&values);
    return status;
}

et_status
eti_param_space_carry(struct et_ctx *cx, struct et_param_space *to,
                      struct et_param_space *from, const int *was)
{
    const struct carrying c = {to, from, was};
    ET_TRY(carry_array(cx, &c, to->values, from->values, NULL));
    for (int k = 0; k < to->n_moments; k++)
        ET_TRY(carry_array(cx, &c, to->moment[k], from->moment[k], NULL));
    for (int i = 0; i < to->n; i++) {
        const struct et_param_slot *old = predecessor(&c, i);
        if (!old)
            continue;
        to->slot[i].updates = old->updates;
        ET_TRY(eti_param_states_carry(cx, to, i, from, (int)(old - from->slot)));
    }
    while (from->copies)
        ET_TRY(carry_copy(cx, &c));
    return ET_OK;
}
