/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c: what is settled when a kernel that works line by line is prepared. */
#include "kernels/cuda/lines.h"

struct et_desc
etk_drop_axis(const struct et_desc *d, int axis)
{
    struct et_desc rest = {.dtype = d->dtype, .ndim = d->ndim - 1};
    for (int i = 0, to = 0; i < d->ndim; i++)
        if (i != axis) {
            rest.shape[to] = d->shape[i];
            rest.stride[to++] = d->stride[i];
        }
    return rest;
}

/* A thread a line where lines are so short that a warp would idle, or so many, one
 * beside the other, that neighbouring threads read neighbours; else a warp or a
 * block. */
static int
team_of(int64_t n, int64_t count, bool neighbours)
{
    enum { SHORT = 16, MANY = 4096, LONG = 2048 };
    if (n <= SHORT || (!neighbours && count >= MANY))
        return 1;
    return n <= LONG ? 32 : 256;
}

void
etk_lines_init(struct etk_lines *l, const struct et_device_handle *d, int axis,
               const struct et_desc *const *side, int sides)
{
    struct et_desc rest[ETK_LINE_SIDES];
    const struct et_desc *to[ETK_LINE_SIDES] = {NULL};
    bool neighbours = true;
    l->n = side[0]->shape[axis];
    for (int i = 0; i < sides; i++) {
        bool line = side[i]->ndim == side[0]->ndim;
        rest[i] = line ? etk_drop_axis(side[i], axis) : *side[i];
        to[i] = &rest[i];
        l->step[i] = line ? side[i]->stride[axis] : 0;
        neighbours &= !line || l->step[i] == 1 || l->n == 1;
    }
    etk_walk_init(&l->rest, to, sides);
    l->team = team_of(l->n, l->rest.count, neighbours);
    l->sm_count = d->gpu.sm_count;
}

et_status
etk_need_float(const struct et_desc *d, const char *op, char *why, size_t why_size)
{
    if (d->dtype == ET_F32 || d->dtype == ET_BF16 || d->dtype == ET_F16)
        return ET_OK;
    return etk_refuse(why, why_size,
                      "the CUDA module computes %s in f32, bf16 and f16,"
                      " not %s",
                      op, et_dtype_name(d->dtype));
}
