/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c: see upload.h. */
#include "config.h"

#include "core/graph/upload.h"

#include "core/graph/graph_impl.h"

struct eti_lane {
    struct et_device *dev;
    struct et_fence *read; /* by the steps: the lane may be written again */
    struct et_fence *sent; /* the sources may be */
};

bool
eti_lane_needed(struct et_device *dev)
{
    struct et_device_info info;
    et_device_get_info(dev, &info);
    return !info.host_memory;
}

et_status
eti_pinned_new(struct et_device *dev, size_t bytes, void **out)
{
    return eti_device_check(dev, dev->table->host_alloc(dev->handle, bytes, out),
                            "pinned memory for batches");
}

void
eti_pinned_free(struct et_device *dev, void *block)
{
    if (block)
        dev->table->host_free(dev->handle, block);
}

void
eti_lane_free(struct eti_lane **lane)
{
    struct eti_lane *l = *lane;
    *lane = NULL;
    if (!l)
        return;
    const struct et_device_table *t = l->dev->table;
    if (l->sent)
        (void)t->fence_wait(l->sent); /* a lost device writes nothing any more */
    if (l->sent)
        t->fence_free(l->sent);
    if (l->read)
        t->fence_free(l->read);
    et_free(l->dev->cx, l);
}

/* The first lane brings the stream; it stays with the device. */
static et_status
make_lane(struct eti_lane *l)
{
    struct et_device *dev = l->dev;
    const struct et_device_table *t = dev->table;
    if (!dev->uploads)
        ET_TRY(t->stream_new(dev->handle, &dev->uploads));
    ET_TRY(t->fence_new(dev->handle, &l->read));
    ET_TRY(t->fence_new(dev->handle, &l->sent));
    return t->fence_set(l->read, NULL); /* what clears the tensors comes first */
}

et_status
eti_lane_new(struct et_device *dev, struct eti_lane **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(dev->cx, sizeof **out, &block));
    struct eti_lane *l = block;
    l->dev = dev;
    et_status status = eti_device_check(dev, make_lane(l), "a stream for batches");
    if (status != ET_OK)
        eti_lane_free(&l);
    *out = l;
    return status;
}

static et_status
send(struct eti_lane *l, struct et_tensor *const *tensor, const void *const *source,
     int n)
{
    const struct et_device_table *t = l->dev->table;
    struct et_stream *stream = l->dev->uploads;
    ET_TRY(t->stream_wait(stream, l->read));
    for (int i = 0; i < n; i++)
        ET_TRY(t->copy(l->dev->handle, et_tensor_data(tensor[i]), source[i],
                       et_desc_bytes(&tensor[i]->desc), stream));
    ET_TRY(t->fence_set(l->sent, stream));
    return t->stream_wait(NULL, l->sent);
}

et_status
eti_lane_send(struct eti_lane *l, struct et_tensor *const *t, const void *const *source,
              int n)
{
    return eti_device_check(l->dev, send(l, t, source, n), "the copy of a batch");
}

et_status
eti_lane_release(struct eti_lane *l)
{
    return l->dev->table->fence_set(l->read, NULL);
}

et_status
eti_lane_wait(struct eti_lane *l)
{
    return l->dev->table->fence_wait(l->sent);
}
