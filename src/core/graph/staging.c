/* SPDX-License-Identifier: Apache-2.0 */
/* staging.c: small writes into a device's memory that the host does not wait for.
 *
 * Where the host cannot write device memory itself, what changes from step to step (a
 * learning rate, a seed, a coefficient) is copied into a ring of pinned memory and from
 * there in stream order, after what is queued and before what comes next. The ring has
 * parts; a fence marks the end of the copies out of each, and the host waits for it
 * only when it comes round to that part again, many steps later. */
#include "config.h"

#include <string.h>

#include "core/graph/staging.h"

enum {
    PARTS = 4,
    PART_BYTES = ETI_STAGED_BYTES, /* a step of the largest recipe writes 10 KiB */
    ALIGN = 64,
};

struct eti_staging {
    char *block; /* pinned */
    struct et_fence *fence[PARTS];
    int part;
    size_t used; /* bytes of the part */
};

void
eti_staging_free(struct et_device *dev)
{
    struct eti_staging *s = dev->staging;
    const struct et_device_table *t = dev->table;
    dev->staging = NULL;
    if (!s)
        return;
    for (int i = 0; i < PARTS; i++)
        if (s->fence[i]) {
            (void)t->fence_wait(
                s->fence[i]); /* a lost device has nothing to wait for */
            t->fence_free(s->fence[i]);
        }
    if (s->block)
        t->host_free(dev->handle, s->block);
    et_free(dev->cx, s);
}

static et_status
open_staging(struct et_device *dev)
{
    const struct et_device_table *t = dev->table;
    void *block;
    ET_TRY(et_alloc(dev->cx, sizeof(struct eti_staging), &block));
    dev->staging = block;
    et_status status = t->host_alloc(dev->handle, (size_t)PARTS * PART_BYTES, &block);
    if (status == ET_OK)
        dev->staging->block = block;
    for (int i = 0; i < PARTS && status == ET_OK; i++)
        status = t->fence_new(dev->handle, &dev->staging->fence[i]);
    if (status != ET_OK)
        eti_staging_free(dev);
    return status;
}

/* Room of BYTES that nothing queued still reads. */
static et_status
take(struct et_device *dev, size_t bytes, char **out)
{
    struct eti_staging *s = dev->staging;
    if (s->used + bytes > PART_BYTES) {
        ET_TRY(dev->table->fence_set(s->fence[s->part], NULL));
        s->part = (s->part + 1) % PARTS;
        s->used = 0;
        ET_TRY(dev->table->fence_wait(s->fence[s->part]));
    }
    *out = s->block + (size_t)s->part * PART_BYTES + s->used;
    s->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return ET_OK;
}

static et_status
blocking(struct et_device *dev, void *dst, const void *src, size_t bytes)
{
    ET_TRY(dev->table->copy(dev->handle, dst, src, bytes, NULL));
    return dev->table->sync ? dev->table->sync(dev->handle, NULL) : ET_OK;
}

static et_status
staged(struct et_device *dev, void *dst, const void *src, size_t bytes)
{
    char *room;
    if (!dev->staging)
        ET_TRY(open_staging(dev));
    ET_TRY(take(dev, bytes, &room));
    memcpy(room, src, bytes);
    return dev->table->copy(dev->handle, dst, room, bytes, NULL);
}

et_status
eti_device_write(struct et_device *dev, void *dst, const void *src, size_t bytes)
{
    bool stage = dev->table->host_alloc && bytes <= PART_BYTES;
    return eti_device_check(dev, (stage ? staged : blocking)(dev, dst, src, bytes),
                            "a write");
}
