/* SPDX-License-Identifier: Apache-2.0 */
/* sized.c: see sized.h. */
#include "core/base/sized.h"

#include <string.h>

et_status
eti_sized(struct et_ctx *cx, const char *name, const void *from, size_t size, void *to,
          size_t here)
{
    const unsigned char *bytes = from;
    size_t n = size < here ? size : here;
    memset(to, 0, here);
    if (!from)
        return ET_OK;
    for (size_t i = here; i < size; i++)
        if (bytes[i])
            return ET_FAIL(cx, ET_EINVAL,
                           "%s is %zu bytes in the program and %zu here, and says "
                           "something that this etude does not know",
                           name, size, here);
    memcpy(to, from, n);
    return ET_OK;
}

et_status
eti_need_class(struct et_ctx *cx, const char *call, const void *type)
{
    return type ? ET_OK
                : ET_FAIL(cx, ET_EINVAL,
                          "%s: the class is NULL: no class has the name that was "
                          "looked for",
                          call);
}
