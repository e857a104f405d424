/* SPDX-License-Identifier: Apache-2.0 */
/* sized.h: structs that callers pass with their size. */
#ifndef ETI_SIZED_H
#define ETI_SIZED_H

#include "etude/status.h"

/* Makes of a caller's struct NAME, SIZE bytes at FROM, one of HERE bytes at TO: what an
 * older caller's does not have is 0. EINVAL, with the name: a newer caller's has more,
 * and something in it is not 0. FROM may be NULL; then all is 0. */
ET_NODISCARD et_status eti_sized(struct et_ctx *cx, const char *name, const void *from,
                                 size_t size, void *to, size_t here);

/* Does the class at TYPE, perhaps of an older caller, have FIELD? All have those of the
 * first release; what is added at the end since is read as ETI_HOOK, or behind this. */
#define ETI_HAS(type, field)                                                           \
    ((type)->info.class_size == 0 ||                                                   \
     (type)->info.class_size >=                                                        \
         (size_t)((const char *)(&(type)->field + 1) - (const char *)(type)))
/* The function FIELD of the class at TYPE; NULL: it has none. */
#define ETI_HOOK(type, field) (ETI_HAS(type, field) ? (type)->field : NULL)

/* EINVAL where CALL, a function's name, was given no class: what a find function gives
 * for a name that it does not know. */
ET_NODISCARD et_status eti_need_class(struct et_ctx *cx, const char *call,
                                      const void *type);

#endif
