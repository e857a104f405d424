/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h: bump allocation for what ends together (a step's nodes, a call's scratch).
 *
 * Blocks are kept at reset, so a warm arena allocates nothing. Debug builds poison what
 * a reset or rewind gives back. */
#ifndef ETI_ARENA_H
#define ETI_ARENA_H

#include "etude/ctx.h"

struct eti_arena_block;

struct eti_arena {
    struct et_ctx *cx;
    struct eti_arena_block *first, *now;
    size_t used;       /* bytes of NOW in use */
    size_t block_size; /* bytes of a new block */
};

void eti_arena_init(struct eti_arena *a, struct et_ctx *cx, size_t block_size);
void eti_arena_release(struct eti_arena *a);
/* Zeroed and 16-byte aligned; NULL when memory is out (recorded in the context). */
void *eti_arena_alloc(struct eti_arena *a, size_t bytes);
void eti_arena_reset(struct eti_arena *a);

#endif
