/* SPDX-License-Identifier: Apache-2.0 */
/* freed.c: contexts of tests are freed here, which tells of the memory that they hold.
 * A file of its own: some tests have no context, and are linked without the library. */
#include "etude/ctx.h"
#include "t/tap.h"

#undef et_ctx_free

void
tap_ctx_free(struct et_ctx **cx)
{
    struct et_alloc_stats left = {0};
    if (cx && *cx)
        et_alloc_get_stats(*cx, &left);
    et_ctx_free(cx);
    /* (One that has checks refuses, and is not freed yet.) */
    if (left.live > 0 && !*cx)
        tap_leaked(left.live);
}
