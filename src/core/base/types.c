/* SPDX-License-Identifier: Apache-2.0 */
/* types.c: dtypes and array descriptions. */
#include "etude/types.h"

#include <stdio.h>
#include <string.h>

size_t
et_dtype_size(enum et_dtype dtype)
{
    static const size_t sizes[] = {
#define ROW(code, number, text, bytes, st) [number] = bytes,
        ET_DTYPE_MAP(ROW)
#undef ROW
    };
    return sizes[dtype];
}

const char *
et_dtype_name(enum et_dtype dtype)
{
    static const char *const names[] = {
#define ROW(code, number, text, bytes, st) [number] = text,
        ET_DTYPE_MAP(ROW)
#undef ROW
    };
    return names[dtype];
}

bool
et_dtype_is_float(enum et_dtype dtype)
{
    return dtype == ET_F32 || dtype == ET_F64 || dtype == ET_BF16 || dtype == ET_F16;
}

void
et_desc_init(struct et_desc *d, enum et_dtype dtype, int ndim, const int64_t *shape,
             enum et_format format)
{
    if (!d || (ndim > 0 && !shape))
        return;
    static const int row_major[] = {0, 1, 2, 3, 4, 5};
    static const int channels_last[] = {0, 2, 3, 1};
    const int *order =
        format == ET_CHANNELS_LAST && ndim == 4 ? channels_last : row_major;

    memset(d, 0, sizeof *d);
    d->dtype = dtype;
    d->ndim = ndim;
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        d->shape[i] = shape[i];
        d->stride[order[i]] = stride;
        stride *= shape[order[i]];
    }
}

int64_t
et_desc_count(const struct et_desc *d)
{
    if (!d)
        return 0;
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++)
        n *= d->shape[i];
    return n;
}

size_t
et_desc_bytes(const struct et_desc *d)
{
    if (!d)
        return 0;
    return (size_t)et_desc_count(d) * et_dtype_size(d->dtype);
}

/* Axes from the slowest in memory to the fastest; axes of length 1 count for
 * nothing. */
static void
memory_order(const struct et_desc *d, int *order)
{
    for (int i = 0; i < d->ndim; i++) {
        int at = i;
        while (at > 0 && d->stride[order[at - 1]] < d->stride[i]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

bool
et_desc_is_dense(const struct et_desc *d)
{
    if (!d)
        return false;
    int order[ET_MAX_DIMS];
    memory_order(d, order);
    int64_t stride = 1;
    for (int i = d->ndim - 1; i >= 0; i--) {
        int axis = order[i];
        if (d->shape[axis] == 1)
            continue;
        if (d->stride[axis] != stride)
            return false;
        stride *= d->shape[axis];
    }
    return true;
}

bool
et_desc_is_contiguous(const struct et_desc *d, enum et_format format)
{
    if (!d)
        return false;
    struct et_desc want;
    et_desc_init(&want, d->dtype, d->ndim, d->shape, format);
    for (int i = 0; i < d->ndim; i++)
        if (d->shape[i] > 1 && d->stride[i] != want.stride[i])
            return false;
    return true;
}

bool
et_desc_same_shape(const struct et_desc *a, const struct et_desc *b)
{
    if (!a || !b)
        return false;
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

bool
et_desc_equal(const struct et_desc *a, const struct et_desc *b)
{
    if (!a || !b)
        return false;
    if (a->dtype != b->dtype || !et_desc_same_shape(a, b))
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1 && a->stride[i] != b->stride[i])
            return false;
    return true;
}

void
et_desc_like(struct et_desc *d, enum et_dtype dtype, int ndim, const int64_t *shape,
             const struct et_desc *like)
{
    if (!d || (ndim > 0 && !shape) || !like)
        return;
    et_desc_init(d, dtype, ndim, shape, ET_ROW_MAJOR);
    if (like->ndim != ndim)
        return;
    for (int i = 0; i < ndim; i++)
        if (like->shape[i] > 1 && like->stride[i] == 0)
            return; /* a broadcast axis has no place in an order */
    int order[ET_MAX_DIMS];
    memory_order(like, order);
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        d->stride[order[i]] = stride;
        stride *= shape[order[i]];
    }
}

const char *
et_desc_text(const struct et_desc *d, char *buf, size_t n)
{
    if (!d || !buf)
        return NULL;
    size_t at = (size_t)snprintf(buf, n, "%s[", et_dtype_name(d->dtype));
    for (int i = 0; i < d->ndim && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", i ? "," : "",
                               (long long)d->shape[i]);
    if (at < n)
        snprintf(buf + at, n - at, "]");
    return buf;
}
