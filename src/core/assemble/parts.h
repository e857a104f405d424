/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h: a part of a recipe whose options are refused by what it is of. */
#ifndef ETI_ASSEMBLE_PARTS_H
#define ETI_ASSEMBLE_PARTS_H

#include "core/assemble/assemble.h"

/* Says where in the recipe PART stands, at KEY, which its class refuses with STATUS:
 * "r.yaml:7:13: scheduler: warmup 9ep is ...". INDEX: which of several, -1: there is
 * but one. Returns STATUS; ET_OK and what is no fault of the part's options is as it
 * was. */
ET_NODISCARD et_status eti_part_refused(struct et_ctx *cx, const struct et_part *part,
                                        const char *key, int index, et_status status);
/* Asks the class of each optimizer, scheduler, callback and logger of A's recipe for
 * what it has against its options: before a run is made of them, which asks again. */
ET_NODISCARD et_status eti_parts_check(struct eti_assembly *a);

#endif
