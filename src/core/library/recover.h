/* SPDX-License-Identifier: Apache-2.0 */
/* recover.h: a run whose run.json or events.log was lost goes on all the same: they
 * tell of the run, and only its checkpoints are needed (RELIABILITY.md section 3). */
#ifndef ETI_RUN_RECOVER_H
#define ETI_RUN_RECOVER_H

#include "core/journal/events.h"

enum { ETI_RECOVER_TEXT = 1024 };

/* Does DIRECTORY hold checkpoints? Of a run that has no run.json, which is how a run is
 * known otherwise. */
bool eti_has_checkpoints(struct et_ctx *cx, const char *directory);

/* run.json of DIRECTORY could not be read, as the error that stands in CX says: it is
 * set aside, if it is there. *OUT is what can be known of the run without it: "name"
 * (NAME if no checkpoint says it), "id", "incarnation" (the last one's), "started",
 * "recipe", "joined". SAID: a sentence about it. ENOMEM; EIO when the file cannot be
 * renamed. */
struct json_t;
ET_NODISCARD et_status eti_recover_facts(struct et_ctx *cx, const char *directory,
                                         const char *name, struct json_t **out,
                                         char said[ETI_RECOVER_TEXT]);

/* events.log of DIRECTORY cannot be gone on with, as the error that stands in CX says:
 * it is set aside, if it is there, and OUT is a new one of the run ID (32 hexadecimal
 * digits) that begins with those of its records that can be read. SAID: a sentence
 * about it. EIO, ENOMEM. */
ET_NODISCARD et_status eti_recover_events(struct et_ctx *cx, const char *directory,
                                          const char *id, struct eti_events_writer *out,
                                          char said[ETI_RECOVER_TEXT]);

#endif
