/* SPDX-License-Identifier: Apache-2.0 */
/* need.c: see need.h. */
#include "core/base/need.h"

#include <string.h>

et_status
eti_null(struct et_ctx *cx, const char *call, const char *names, int i)
{
    for (; i > 0 && strchr(names, ','); i--)
        names = strchr(names, ',') + 2;
    return ET_FAIL(cx, ET_EINVAL, "%s: %.*s is NULL", call, (int)strcspn(names, ","),
                   names);
}
