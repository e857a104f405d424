/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h: rows of all ranks, in the order of the data: gather.c. */
#ifndef ETI_TRAINER_GATHER_H
#define ETI_TRAINER_GATHER_H

#include "etude/comm.h"
#include "etude/ctx.h"
#include "etude/types.h"

/* Rows on the host. */
struct eti_rows_of {
    struct et_desc desc; /* [n,...], as they lie in memory */
    void *data;          /* et_alloc's; NULL: no rank had any */
};

/* ROWS, as D says, of which only the first N are this rank's own to give: *OUT has
 * those of all ranks in the order of ranks, on all of them. A rank that has none may
 * not know D, whose ndim is 0 then, as OUT's will be. Where they differ in the length
 * of axis 1 the short ones are filled with PAD (f32 and I32). To be freed with
 * eti_gathered_free, also after a failure. EPEER, ENOMEM. */
ET_NODISCARD et_status eti_gather_rows(struct et_ctx *cx, struct et_comm *c,
                                       const void *rows, int64_t n,
                                       const struct et_desc *d, double pad,
                                       struct eti_rows_of *out);
void eti_gathered_free(struct et_ctx *cx, struct eti_rows_of *rows);

#endif
