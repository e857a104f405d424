/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c: leaves: handles on storages, and moving their elements to and from the
 * host. */
#include "config.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/need.h"
#include "core/graph/shadow.h"
#include "core/graph/staging.h"
#include "core/graph/tensor.h"

et_status
et_tensor_view(struct et_ctx *cx, struct et_storage *storage, int64_t offset,
               const struct et_desc *desc, const char *name, struct et_tensor **out)
{
    ETI_NEED(cx, cx, storage, desc, out);
    *out = NULL;
    size_t name_size = name ? strlen(name) + 1 : 0;
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out + name_size, &block));
    struct et_tensor *t = block;
    t->desc = *desc;
    t->storage = et_storage_ref(storage);
    t->offset = offset;
    if (name)
        t->name = memcpy(t + 1, name, name_size);
    *out = t;
    return ET_OK;
}

et_status
et_tensor_new(struct et_ctx *cx, struct et_device *dev, enum et_dtype dtype, int ndim,
              const int64_t *shape, enum et_format format, const char *name,
              struct et_tensor **out)
{
    ETI_NEED(cx, cx, dev, out);
    if (ndim > 0)
        ETI_NEED(cx, shape);
    *out = NULL;
    struct et_desc desc;
    et_desc_init(&desc, dtype, ndim, shape, format);
    struct et_storage *storage;
    ET_TRY(et_storage_new(cx, dev, et_desc_bytes(&desc), &storage));
    et_status status = et_tensor_view(cx, storage, 0, &desc, name, out);
    et_storage_unref(storage); /* the tensor holds it now */
    return status;
}

void
et_tensor_free(struct et_tensor **t)
{
    if (!t)
        return;
    struct et_tensor *old = *t;
    *t = NULL;
    if (!old || eti_is_freed(old))
        return;
    struct et_device *dev = old->storage->dev;
    et_storage_unref(old->storage);
    if (!eti_keep_freed(dev, old))
        et_free(dev->cx, old);
}

void *
et_tensor_data(const struct et_tensor *t)
{
    if (!t)
        return NULL;
    if (t->data)
        return t->data;
    if (!t->storage)
        return NULL;
    return (char *)t->storage->data + (size_t)t->offset * et_dtype_size(t->desc.dtype);
}

/* Elements from the first to the last in memory, both included. */
static int64_t
span(const struct et_desc *d)
{
    int64_t last = 0;
    for (int i = 0; i < d->ndim; i++) {
        if (d->shape[i] == 0)
            return 0;
        last += (d->shape[i] - 1) * d->stride[i];
    }
    return last + 1;
}

/* Walks D in row-major order; strided side in ARRAY, row-major side in ROWS. */
static void
strided_copy(const struct et_desc *d, char *array, char *rows, bool to_rows)
{
    size_t size = et_dtype_size(d->dtype);
    int64_t n = et_desc_count(d), at[ET_MAX_DIMS] = {0}, offset = 0;
    for (int64_t i = 0; i < n; i++) {
        char *a = array + (size_t)offset * size, *r = rows + (size_t)i * size;
        memcpy(to_rows ? r : a, to_rows ? a : r, size);
        for (int axis = d->ndim - 1; axis >= 0; axis--) {
            offset += d->stride[axis];
            if (++at[axis] < d->shape[axis])
                break;
            offset -= at[axis] * d->stride[axis];
            at[axis] = 0;
        }
    }
}

static struct et_device *
device_of(const struct et_tensor *t)
{
    return t->storage ? t->storage->dev : NULL;
}

static et_status
check(struct et_ctx *cx, const struct et_tensor *t, size_t bytes)
{
    char text[128];
    if (!et_tensor_data(t))
        return ET_FAIL(cx, ET_EINVAL, "tensor %s has not been evaluated",
                       et_desc_text(&t->desc, text, sizeof text));
    if (bytes != et_desc_bytes(&t->desc))
        return ET_FAIL(cx, ET_ESHAPE, "%zu bytes given for %s, which has %zu", bytes,
                       et_desc_text(&t->desc, text, sizeof text),
                       et_desc_bytes(&t->desc));
    return ET_OK;
}

et_status
eti_device_copy(struct et_device *dev, void *dst, const void *src, size_t bytes)
{
    return eti_device_check(dev, dev->table->copy(dev->handle, dst, src, bytes, NULL),
                            "a copy");
}

static et_status
transfer(struct et_device *dev, void *dst, const void *src, size_t bytes)
{
    ET_TRY(eti_device_copy(dev, dst, src, bytes));
    if (!dev->table->sync)
        return ET_OK;
    return eti_device_check(dev, dev->table->sync(dev->handle, NULL), "a step");
}

et_status
et_tensor_write(struct et_ctx *cx, struct et_tensor *t, const void *src, size_t bytes)
{
    ETI_NEED(cx, t);
    ET_TRY(check(cx, t, bytes));
    struct et_device *dev = device_of(t);
    eti_shadow_mark(t->storage);
    if (et_desc_is_contiguous(&t->desc, ET_ROW_MAJOR))
        return eti_device_write(dev, et_tensor_data(t), src, bytes);
    size_t span_bytes = (size_t)span(&t->desc) * et_dtype_size(t->desc.dtype);
    void *host;
    ET_TRY(et_alloc(cx, span_bytes, &host));
    et_status status = transfer(dev, host, et_tensor_data(t), span_bytes);
    if (status == ET_OK) {
        strided_copy(&t->desc, host, (char *)src, false);
        status = transfer(dev, et_tensor_data(t), host, span_bytes);
    }
    et_free(cx, host);
    return status;
}

et_status
et_tensor_read(struct et_ctx *cx, const struct et_tensor *t, void *dst, size_t bytes)
{
    ETI_NEED(cx, t);
    ET_TRY(check(cx, t, bytes));
    struct et_device *dev = device_of(t);
    if (et_desc_is_contiguous(&t->desc, ET_ROW_MAJOR))
        return transfer(dev, dst, et_tensor_data(t), bytes);
    size_t span_bytes = (size_t)span(&t->desc) * et_dtype_size(t->desc.dtype);
    void *host;
    ET_TRY(et_alloc(cx, span_bytes, &host));
    et_status status = transfer(dev, host, et_tensor_data(t), span_bytes);
    if (status == ET_OK)
        strided_copy(&t->desc, host, dst, true);
    et_free(cx, host);
    return status;
}

et_status
eti_tensor_copy_out(struct et_ctx *cx, const struct et_tensor *t, void *dst)
{
    ET_TRY(check(cx, t, et_desc_bytes(&t->desc)));
    ET_ASSERT(et_desc_count(&t->desc) == 0 || et_desc_is_dense(&t->desc));
    return transfer(device_of(t), dst, et_tensor_data(t), et_desc_bytes(&t->desc));
}

/* The innermost axis is walked by itself: files are written through this. */
void
eti_desc_to_rows(const struct et_desc *d, const void *array, void *rows)
{
    int last = d->ndim - 1;
    struct et_desc outer = *d;
    if (d->dtype != ET_F32 || last < 1 || d->shape[last] == 0) {
        strided_copy(d, (char *)array, rows, true);
        return;
    }
    outer.ndim = last;
    const float *from = array;
    float *to = rows;
    int64_t n = et_desc_count(&outer), at[ET_MAX_DIMS] = {0}, offset = 0;
    int64_t inner = d->shape[last], stride = d->stride[last];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < inner; k++)
            *to++ = from[offset + k * stride];
        for (int axis = last - 1; axis >= 0; axis--) {
            offset += d->stride[axis];
            if (++at[axis] < d->shape[axis])
                break;
            offset -= at[axis] * d->stride[axis];
            at[axis] = 0;
        }
    }
}
