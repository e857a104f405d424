/* memory.h: host memory for whole files and states. */
#ifndef ETI_MEMORY_H
#define ETI_MEMORY_H

#include "etude/ctx.h"

/* As et_alloc, but with whatever was there before: for who writes all of it at once.
 * Large blocks ask the system for large pages. Free with et_free. */
ET_NODISCARD et_status eti_alloc_dirty(struct et_ctx *cx, size_t bytes, void **out);

#endif
