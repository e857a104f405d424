/* SPDX-License-Identifier: Apache-2.0 */
/* channel_norm.c: batch and group norm with channels innermost: how blocks share the
 * columns and the rows. */
#include "kernels/cuda/norm.h"

#include <limits.h>
#include <string.h>

enum {
    THREADS = 256,
    COLUMNS = 32,     /* accesses beside each other in a block */
    SMALL_ROWS = 2048 /* at most so many: one kernel reads them twice, out of the cache,
                         in less time than two more launches take (an estimate) */
};

void
etk_norm_channels_shape(struct etk_norm_channels *n, int vector)
{
    int64_t accesses = n->channels / vector;
    n->vector = vector;
    n->small = n->batch && n->rows <= SMALL_ROWS;
    if (n->small) { /* 32 bytes of a row, which is what memory gives at least */
        int64_t columns = vector == 1 ? 8 : 2;
        n->columns = (int)(columns < accesses ? columns : accesses);
        n->tiles = (int)etk_ceil_div(accesses, n->columns);
    } else {
        n->tiles = (int)etk_ceil_div(accesses, COLUMNS);
        n->columns = (int)etk_ceil_div(accesses, n->tiles);
    }
    n->lines = THREADS / n->columns;
    /* Two blocks a multiprocessor are what registers allow, and all have equal
     * shares. */
    int64_t most = etk_ceil_div(n->rows, n->lines);
    n->splits = 2 * n->sm_count / (n->tiles * n->samples);
    n->splits = n->splits < 1 ? 1 : n->splits < most ? n->splits : most;
    n->each = n->tiles * n->samples * etk_ceil_div(most, 16) < 8 * n->sm_count ? 4 : 16;
}

static size_t
parts_bytes(const struct etk_norm_channels *n)
{
    return etk_round_up((size_t)(n->samples * n->channels * n->splits * 2) *
                        sizeof(float));
}

/* D's channels lie beside each other, its positions one behind another. */
static bool
channels_innermost(const struct et_desc *d)
{
    int64_t stride = d->shape[1];
    if (d->shape[1] > 1 && d->stride[1] != 1)
        return false;
    for (int i = d->ndim - 1; i >= 0; i--) {
        if (i == 1)
            continue;
        if (d->shape[i] > 1 && d->stride[i] != stride)
            return false;
        stride *= d->shape[i];
    }
    return true;
}

/* Blocks are counted in 31 bits. */
static bool
countable(const struct etk_norm_channels *n)
{
    int64_t stretches = etk_ceil_div(n->rows, n->each * n->lines);
    return n->samples * n->groups <= INT_MAX &&
           n->tiles * n->samples <= INT_MAX / (stretches + n->splits);
}

bool
etk_norm_channels_plan(const struct etk_norm *o, const struct etk_gpu *gpu,
                       struct etk_norm_channels *n, size_t *ws)
{
    const struct et_desc *x = o->desc[ETK_NORM_X];
    if (!(o->batch || o->group) || x->dtype == ET_F64 || et_desc_count(x) == 0 ||
        x->shape[1] > INT_MAX || (o->desc[ETK_NORM_RESIDUAL] && o->stored != x->dtype))
        return false;
    memset(n, 0, sizeof *n);
    n->eps = o->eps;
    n->dtype = x->dtype;
    n->relu = o->relu;
    n->batch = o->batch;
    n->sm_count = gpu->sm_count;
    n->channels = x->shape[1];
    n->samples = o->batch ? 1 : x->shape[0];
    n->rows = et_desc_count(x) / n->channels / n->samples;
    n->groups = o->batch ? n->channels : o->attr->groups;
    for (int role = 0; role < ETK_NORM_ROLES; role++) {
        const struct et_desc *d = o->desc[role];
        bool statistic = role == ETK_NORM_MEAN || role == ETK_NORM_SPREAD;
        if (!d)
            continue;
        if (etk_norm_is_image(role)
                ? d->dtype != x->dtype || !channels_innermost(d)
                : !et_desc_is_contiguous(d, ET_ROW_MAJOR) || d->dtype == ET_F64 ||
                      (statistic && d->dtype != ET_F32))
            return false;
        n->param[role].dtype = d->dtype;
    }
    size_t bytes = 0;
    for (int wide = 0; wide < 2; wide++) {
        etk_norm_channels_shape(n, wide ? etk_norm_widest(n->dtype) : 1);
        if (!countable(n))
            return false;
        bytes = parts_bytes(n) > bytes ? parts_bytes(n) : bytes;
        if (n->channels % etk_norm_widest(n->dtype))
            break;
    }
    bytes += (size_t)(n->samples * 4 * n->channels) * sizeof(float);
    *ws = bytes > *ws ? bytes : *ws;
    return true;
}

et_status
etk_norm_channels_run(struct et_kernel *base, const struct etk_norm_channels *planned,
                      bool grad, void *const *p, void *ws, cudaStream_t stream)
{
    struct etk_norm_channels n = *planned;
    int wide = etk_norm_widest(n.dtype);
    bool aligned = n.channels % wide == 0;
    etk_norm_bind(p, n.p, n.param);
    for (int role = 0; role < ETK_NORM_ROLES; role++)
        if (etk_norm_is_image(role) && (uintptr_t)n.p[role] % 16)
            aligned = false;
    etk_norm_channels_shape(&n, aligned ? wide : 1);
    n.parts = ws;
    n.coef = (float *)((char *)ws + parts_bytes(&n));
    return etk_launched(base, grad ? etk_launch_norm_channels_grad(&n, stream)
                                   : etk_launch_norm_channels(&n, stream));
}
