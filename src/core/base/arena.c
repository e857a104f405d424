/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c: see arena.h. */
#include "config.h"

#include "core/base/arena.h"

#include <string.h>

enum { POISON = 0xA5 };

struct eti_arena_block {
    struct eti_arena_block *next;
    size_t bytes;
    _Alignas(16) unsigned char data[];
};

void
eti_arena_init(struct eti_arena *a, struct et_ctx *cx, size_t block_size)
{
    *a = (struct eti_arena){.cx = cx, .block_size = block_size};
}

void
eti_arena_release(struct eti_arena *a)
{
    struct eti_arena_block *next;
    for (struct eti_arena_block *b = a->first; b; b = next) {
        next = b->next;
        et_free(a->cx, b);
    }
    a->first = a->now = NULL;
    a->used = 0;
}

static struct eti_arena_block *
next_block(struct eti_arena *a, size_t bytes)
{
    struct eti_arena_block *after = a->now ? a->now->next : a->first;
    if (after && after->bytes >= bytes)
        return after;
    size_t size = bytes > a->block_size ? bytes : a->block_size;
    void *block;
    if (et_alloc(a->cx, sizeof(struct eti_arena_block) + size, &block) != ET_OK)
        return NULL;
    struct eti_arena_block *b = block;
    b->bytes = size;
    b->next = after;
    if (a->now)
        a->now->next = b;
    else
        a->first = b;
    return b;
}

void *
eti_arena_alloc(struct eti_arena *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->now || a->used + bytes > a->now->bytes) {
        struct eti_arena_block *b = next_block(a, bytes);
        if (!b)
            return NULL;
        a->now = b;
        a->used = 0;
    }
    void *p = a->now->data + a->used;
    a->used += bytes;
    return memset(p, 0, bytes);
}

void
eti_arena_reset(struct eti_arena *a)
{
#ifdef ET_DEBUG
    for (struct eti_arena_block *b = a->first; b; b = b->next)
        memset(b->data, POISON, b->bytes);
#endif
    a->now = a->first;
    a->used = 0;
}
