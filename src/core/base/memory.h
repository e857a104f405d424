/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h: host memory for whole files and states, and arrays that grow. */
#ifndef ETI_MEMORY_H
#define ETI_MEMORY_H

#include <stdint.h>

#include "etude/ctx.h"

/* As et_alloc, but with whatever was there before: for who writes all of it at once.
 * Large blocks ask the system for large pages. Free with et_free. */
ET_NODISCARD et_status eti_alloc_dirty(struct et_ctx *cx, size_t bytes, void **out);

/* ITEMS is the address of a pointer to *ROOM items of SIZE bytes, NULL where that is 0.
 * Where N do not fit, the array is moved into one that is doubled until they do, zeroed
 * behind the old ones. Free it with et_free. After an ENOMEM all is as it was. */
ET_NODISCARD et_status eti_grow(struct et_ctx *cx, void *items, int64_t *room,
                                int64_t n, size_t size);

#endif
