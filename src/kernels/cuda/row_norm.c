/* SPDX-License-Identifier: Apache-2.0 */
/* row_norm.c: layer norm of rows that fit into registers: how the threads share
 * them. */
#include "kernels/cuda/norm.h"

#include <string.h>

enum { LANES = 512, THREADS = 256 }; /* of a row at most; of a block at least */

/* Accesses of V elements that a thread may hold: 24 floats where lanes can be had, 32
 * beyond. */
static int
chunks_for(int vector, int lanes)
{
    return vector == 8 ? (lanes < LANES ? 3 : 4) : (lanes < LANES ? 4 : 8);
}

/* Rows in flight: as many blocks as fit at once, which go through their rows in
 * turns. */
static int64_t
blocks_for(const struct etk_norm_rows *n, const struct etk_gpu *gpu, bool grad)
{
    int64_t rows = n->threads / n->lanes, want = etk_ceil_div(n->count, rows);
    int64_t per_sm = grad ? 1024 / n->threads : 32;
    if (grad && n->shared > 0 && (int64_t)(gpu->shared / n->shared) < per_sm)
        per_sm = (int64_t)(gpu->shared / n->shared);
    int64_t most = per_sm * gpu->sm_count;
    /* What blocks write for the second kernel should stay in the cache. */
    int64_t sums = (int64_t)gpu->l2 / 4 / (n->size * 2 * (int64_t)sizeof(float));
    if (grad && most > sums)
        most = sums > gpu->sm_count ? sums : gpu->sm_count;
    return want < most ? want : most;
}

bool
etk_norm_rows_shape(struct etk_norm_rows *n, const struct etk_gpu *gpu, int vector,
                    bool grad)
{
    if (n->size % vector)
        return false;
    int64_t accesses = n->size / vector;
    int lanes = 8;
    while (lanes < LANES && (int64_t)lanes * chunks_for(vector, lanes) < accesses)
        lanes *= 2;
    if ((int64_t)lanes * chunks_for(vector, lanes) < accesses)
        return false;
    n->vector = vector;
    n->lanes = lanes;
    n->chunks = (int)etk_ceil_div(accesses, lanes);
    n->threads = lanes > THREADS ? lanes : THREADS;
    n->shared = (size_t)(n->threads / lanes * 2 * n->size) * sizeof(float);
    n->most_shared = gpu->shared - 1024; /* the kernel's own, and a reserve */
    if (grad && n->shared > n->most_shared)
        return false;
    n->blocks = (int)blocks_for(n, gpu, grad);
    return true;
}

/* Rows of N neighbours at a fixed distance: the last AXES axes are dense, the others
 * one behind another. */
static bool
is_rows(const struct et_desc *d, int axes, int64_t *stride)
{
    int64_t dense = 1, outer = -1, count = 1;
    for (int i = d->ndim - 1; i >= 0; i--) {
        if (d->shape[i] == 1)
            continue;
        if (i >= d->ndim - axes) {
            if (d->stride[i] != dense)
                return false;
            dense *= d->shape[i];
            continue;
        }
        if (outer < 0)
            outer = d->stride[i];
        if (d->stride[i] != outer * count)
            return false;
        count *= d->shape[i];
    }
    *stride = outer < 0 ? 0 : outer;
    return true;
}

/* Arrays that may be narrower than x. */
static bool
may_be_narrow(int role)
{
    return role == ETK_NORM_BRANCH || role == ETK_NORM_Y || role == ETK_NORM_DY ||
           role == ETK_NORM_DBRANCH;
}

/* Notes down the dtype of the array of ROLE; false where no kernel has it. */
static bool
takes_dtype(struct etk_norm_rows *n, int role, enum et_dtype dtype)
{
    if ((int)dtype == n->dtype)
        return true;
    if (!may_be_narrow(role) || n->dtype != ET_F32 ||
        (dtype != ET_BF16 && dtype != ET_F16) ||
        (n->narrowed && n->narrow != (int)dtype))
        return false;
    n->narrow = dtype;
    n->narrowed |= 1 << role;
    return true;
}

bool
etk_norm_rows_plan(const struct etk_norm *o, const struct etk_gpu *gpu,
                   struct etk_norm_rows *n, size_t *ws, cudaError_t *code)
{
    const struct et_desc *x = o->desc[ETK_NORM_X];
    memset(n, 0, sizeof *n);
    n->eps = o->eps;
    n->dtype = n->narrow = x->dtype;
    n->count = n->size = 1;
    for (int i = 0; i < x->ndim; i++)
        *(i < x->ndim - o->attr->axes ? &n->count : &n->size) *= x->shape[i];
    if (o->batch || o->group || x->dtype == ET_F64 || n->count == 0 || n->size == 0)
        return false;
    for (int role = 0; role < ETK_NORM_ROLES; role++) {
        const struct et_desc *d = o->desc[role];
        if (!d)
            continue;
        bool statistic = role == ETK_NORM_MEAN || role == ETK_NORM_SPREAD;
        if (etk_norm_is_image(role)
                ? !takes_dtype(n, role, d->dtype) ||
                      !is_rows(d, o->attr->axes, &n->stride[role])
                : !et_desc_is_contiguous(d, ET_ROW_MAJOR) || d->dtype == ET_F64 ||
                      (statistic && d->dtype != ET_F32))
            return false;
        n->param[role].dtype = d->dtype;
    }
    size_t bytes = 0;
    bool any = false,
         sums = o->grad && (o->desc[ETK_NORM_DGAMMA] || o->desc[ETK_NORM_DBETA]);
    for (int wide = 0; wide < 2; wide++) {
        struct etk_norm_rows shaped = *n;
        if (!etk_norm_rows_shape(&shaped, gpu, wide ? etk_norm_widest(n->dtype) : 1,
                                 o->grad))
            continue;
        size_t parts = (size_t)(shaped.blocks * 2 * n->size) * sizeof(float);
        bytes = parts > bytes ? parts : bytes;
        any = true;
        if (sums && *code == cudaSuccess)
            *code = etk_norm_rows_allow(&shaped);
    }
    if (sums)
        *ws = bytes > *ws ? bytes : *ws;
    return any;
}

/* May accesses of VECTOR elements be used at these addresses? */
static bool
aligned(const struct etk_norm_rows *n, int vector)
{
    for (int role = 0; role < ETK_NORM_ROLES; role++) {
        int dtype = n->narrowed >> role & 1 ? n->narrow : n->dtype;
        size_t access = (size_t)vector * et_dtype_size((enum et_dtype)dtype);
        if (etk_norm_is_image(role) && n->p[role] &&
            ((uintptr_t)n->p[role] % access || n->stride[role] % vector))
            return false;
    }
    return true;
}

bool
etk_norm_rows_run(struct et_kernel *base, const struct etk_norm_rows *planned,
                  bool grad, void *const *p, void *ws, cudaStream_t stream,
                  et_status *status)
{
    struct etk_norm_rows n = *planned;
    int wide = etk_norm_widest(n.dtype);
    etk_norm_bind(p, n.p, n.param);
    if (!(aligned(&n, wide) && etk_norm_rows_shape(&n, &base->dev->gpu, wide, grad)) &&
        !etk_norm_rows_shape(&n, &base->dev->gpu, 1, grad))
        return false;
    if (n.param[ETK_NORM_DGAMMA].p || n.param[ETK_NORM_DBETA].p)
        n.parts = ws;
    *status = etk_launched(base, grad ? etk_launch_norm_rows_grad(&n, stream)
                                      : etk_launch_norm_rows(&n, stream));
    return true;
}
