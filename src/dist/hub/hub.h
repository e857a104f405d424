/* SPDX-License-Identifier: Apache-2.0 */
/* hub.h: the process that serves a run to its viewers (RELIABILITY.md 1 and 5 to 7). */
#ifndef ETD_HUB_H
#define ETD_HUB_H

#include "etude/ctx.h"

/* Serves the run in DIRECTORY until the supervisor at the other end of SUPERVISOR, one
 * of a pair of sockets with packets (wire.h), says BYE or is gone. What it knows is
 * from events.log, which it reads as it grows: one that is started again loses nothing.
 *
 * Fails before anybody is served where it may not listen (errors.h has the numbers), or
 * the directory holds no run. Uses at most 64 MiB, whatever viewers do. */
ET_NODISCARD et_status etd_hub_run(struct et_ctx *cx, const char *directory,
                                   int supervisor);

#endif
