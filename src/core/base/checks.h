/* SPDX-License-Identifier: Apache-2.0 */
/* checks.h: what a context knows of the things that were made with it, so that what is
 * used or closed in the wrong order is refused. */
#ifndef ETI_CHECKS_H
#define ETI_CHECKS_H

#include "etude/ctx.h"

struct et_device;

/* Has et_ctx_set_checks turned them on? */
bool eti_ctx_checks(const struct et_ctx *cx);
/* While it is on, CX logs nothing: what is asked now is asked, and said, again. */
void eti_ctx_mute(struct et_ctx *cx, bool on);
/* Says that a close or free function has done nothing, as et_ctx_set_checks has it. */
void eti_ctx_refuse(struct et_ctx *cx, const char *fmt, ...) ET_PRINTF(2, 3);

/* A number that no graph of CX has had, nor, but for a chance of one in 2^32, one of
 * another context. Not 0. */
uint32_t eti_ctx_next_number(struct et_ctx *cx);

/* The first of the devices that are open, which link the others. */
struct et_device *eti_ctx_devices(const struct et_ctx *cx);
/* FIRST is the first now, and MORE (1, -1) are open than before. */
void eti_ctx_set_devices(struct et_ctx *cx, struct et_device *first, int more);

#endif
