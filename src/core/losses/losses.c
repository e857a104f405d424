/* SPDX-License-Identifier: Apache-2.0 */
/* losses.c: the list of losses, and what several of them need. */
#include "core/losses/losses.h"

#include <string.h>

#include "core/ops/ops.h"

const struct et_loss_class *const et_loss_classes[] = {
#define ET_LOSS(name) &et_loss_##name,
#include "core/losses/losses.def"
#undef ET_LOSS
    NULL,
};

const char *const et_loss_names[] = {
#define ET_LOSS(name) #name,
#include "core/losses/losses.def"
#undef ET_LOSS
    NULL,
};

const struct et_loss_class *
et_loss_find(const char *name)
{
    for (const struct et_loss_class *const *c = et_loss_classes; name && *c; c++)
        if (strcmp((*c)->info.name, name) == 0)
            return *c;
    return NULL;
}

struct et_tensor *
eti_loss_reduce(struct et_graph *g, struct et_tensor *v, enum et_reduction reduction)
{
    uint32_t all_but_first = v ? (1u << v->desc.ndim) - 2 : 0;
    switch (reduction) {
    case ET_REDUCE_MEAN:
        return et_mean(g, v, 0, false);
    case ET_REDUCE_SUM:
        return et_sum(g, v, 0, false);
    case ET_REDUCE_NONE:
        break;
    }
    return all_but_first ? et_mean(g, v, all_but_first, false) : v;
}

struct et_tensor *
eti_loss_dense(struct et_graph *g, struct et_tensor *z, struct et_tensor *target)
{
    if (!z || !target || et_desc_same_shape(&z->desc, &target->desc))
        return target;
    return et_one_hot(g, target, z->desc.shape[1]);
}

/* Classes of the loader's are negative or none is ignored; dense targets that were made
 * of them have less in the places of those. */
struct et_tensor *
eti_loss_counted(struct et_graph *g, struct et_tensor *target, struct et_tensor *weight,
                 int64_t ignore_index, bool masked)
{
    const bool is_class = target && !et_dtype_is_float(target->desc.dtype);
    if (!target || !(masked || (is_class && (weight || ignore_index >= 0))))
        return NULL;
    return eti_total_weight(g, target, weight, ignore_index, ET_F32);
}

struct et_tensor *
eti_loss_apart(struct et_graph *g, struct et_tensor *y, struct et_tensor *target)
{
    if (!y || !target)
        return NULL;
    if (!et_desc_same_shape(&y->desc, &target->desc) &&
        et_desc_count(&y->desc) == et_desc_count(&target->desc))
        target = et_reshape(g, target, y->desc.ndim, y->desc.shape);
    return et_sub(g, y, target);
}
