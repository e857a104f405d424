/* SPDX-License-Identifier: Apache-2.0 */
/* param_states.c: parameters one at a time and with their shape, for rules by tensor:
 * their gradients, and the states of other shapes that such rules keep.
 *
 * Flat memory has a place for arrays of the parameter's own shape alone (moments), so
 * each state is a leaf of its own. */
#include "core/optim/optim.h"

#include <string.h>

static et_status
new_state(struct et_ctx *cx, struct et_param_space *s,
          const struct et_optimizer_class *type, const void *options, int k, int i)
{
    const struct et_param_slot *slot = &s->slot[i];
    int64_t shape[ET_MAX_DIMS] = {0};
    int ndim = type->state_shape(options, slot, k, shape);
    bool good = ndim <= ET_MAX_DIMS;
    for (int axis = 0; axis < ndim && good; axis++)
        good = shape[axis] > 0;
    if (!good)
        return ET_FAIL(cx, ET_EINVAL, "%s: state %s of %s has no shape that there is",
                       type->info.name, type->states[k], slot->name);
    if (ndim < 0)
        return ET_OK;
    return et_tensor_new(cx, s->dev, ET_F32, ndim, shape, ET_ROW_MAJOR, type->states[k],
                         &s->state[k][i]);
}

et_status
eti_param_states_add(struct et_ctx *cx, struct et_param_space *s,
                     const struct et_optimizer_class *type, const void *options)
{
    for (int k = 0; type->states && type->states[k]; k++) {
        void *block;
        if (k == ET_MAX_STATES || !type->by_tensor || !type->state_shape)
            return ET_FAIL(cx, ET_EINVAL,
                           "%s: states are at most %d, of a rule by tensor, with a "
                           "state_shape",
                           type->info.name, ET_MAX_STATES);
        ET_TRY(et_alloc(cx, (size_t)s->n * sizeof(struct et_tensor *), &block));
        s->state[k] = block;
        s->state_name[k] = type->states[k];
        s->n_states = k + 1;
        for (int i = 0; i < s->n; i++)
            ET_TRY(new_state(cx, s, type, options, k, i));
    }
    return ET_OK;
}

void
eti_param_states_free(struct et_param_space *s)
{
    for (int k = 0; k < s->n_states; k++) {
        for (int i = 0; i < s->n; i++)
            et_tensor_free(&s->state[k][i]);
        et_free(s->cx, s->state[k]);
    }
    s->n_states = 0;
}

et_status
eti_param_states_carry(struct et_ctx *cx, struct et_param_space *to, int i,
                       const struct et_param_space *from, int j)
{
    for (int k = 0; k < to->n_states && k < from->n_states; k++) {
        struct et_tensor *new = to->state[k][i], *old = from->state[k][j];
        void *buffer;
        if (!new || !old || !et_desc_same_shape(&new->desc, &old->desc))
            continue;
        size_t bytes = et_desc_bytes(&new->desc);
        ET_TRY(et_alloc(cx, bytes, &buffer));
        et_status status = et_tensor_read(cx, old, buffer, bytes);
        if (status == ET_OK)
            status = et_tensor_write(cx, new, buffer, bytes);
        et_free(cx, buffer);
        ET_TRY(status);
    }
    return ET_OK;
}

/* Memory has the axes of the greatest strides first; the array is cut out in that order
 * and its axes are put where they belong. */
struct et_tensor *
eti_param_shaped(struct et_graph *g, struct et_tensor *flat,
                 const struct et_param_slot *slot)
{
    const struct et_desc *d = &slot->desc;
    int64_t shape[ET_MAX_DIMS] = {0};
    int place[ET_MAX_DIMS] = {0};
    bool moved = false;
    for (int axis = 0; axis < d->ndim; axis++) {
        for (int other = 0; other < d->ndim; other++)
            place[axis] += d->stride[other] > d->stride[axis] ||
                           (d->stride[other] == d->stride[axis] && other < axis);
        shape[place[axis]] = d->shape[axis];
        moved |= place[axis] != axis;
    }
    struct et_tensor *x = et_slice(g, flat, 0, slot->offset, slot->count, 1);
    x = et_reshape(g, x, d->ndim, shape);
    return moved ? et_permute(g, x, place) : x;
}
