/* SPDX-License-Identifier: Apache-2.0 */
/* strides.c: the axes that several arrays are walked along together. */
#include "kernels/cuda/cuda.h"

#include <string.h>

/* Stride of SIDE along axis AXIS of an array of NDIM axes that it broadcasts to. */
static int64_t
stride_of(const struct et_desc *side, int ndim, int axis)
{
    int own = axis - (ndim - side->ndim);
    return own < 0 || side->shape[own] == 1 ? 0 : side->stride[own];
}

/* Do the axes OUTER and INNER run on as one in every array? */
static bool
runs_on(const struct et_desc *const *side, int sides, int outer, int inner)
{
    const struct et_desc *full = side[0];
    for (int i = 0; i < sides; i++)
        if (stride_of(side[i], full->ndim, outer) !=
            full->shape[inner] * stride_of(side[i], full->ndim, inner))
            return false;
    return true;
}

void
etk_walk_init(struct etk_walk *w, const struct et_desc *const *side, int sides)
{
    const struct et_desc *full = side[0];
    int order[ET_MAX_DIMS], n = 0;
    for (int i = 0; i < full->ndim; i++) {
        if (full->shape[i] == 1)
            continue;
        int at = n++;
        for (; at > 0 && full->stride[order[at - 1]] < full->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    memset(w, 0, sizeof *w);
    w->sides = sides;
    w->count = et_desc_count(full);
    for (int i = 0; i < n; i++) {
        int axis = order[i];
        bool joins = i > 0 && runs_on(side, sides, order[i - 1], axis);
        int last = joins ? w->ndim - 1 : w->ndim++;
        w->shape[last] = (joins ? w->shape[last] : 1) * full->shape[axis];
        for (int k = 0; k < sides; k++)
            w->stride[k][last] = stride_of(side[k], full->ndim, axis);
    }
    if (w->ndim == 0) {
        w->ndim = 1;
        w->shape[0] = 1;
    }
}
