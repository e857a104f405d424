/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h: a model that follows a run's events.log as it grows. */
#ifndef ETD_FOLLOW_H
#define ETD_FOLLOW_H

#include "dist/hub/model.h"

struct etd_follow;
/* Opens DIRECTORY/events.log. ENOENT, EIO, EFORMAT. */
ET_NODISCARD et_status etd_follow_open(struct et_ctx *cx, const char *directory,
                                       struct etd_follow **out);
void etd_follow_close(struct etd_follow **f);
/* Applies records for about SECONDS, some at least, or up to the one of the seq UNTIL
 * (0: no such end). *LEFT: bytes of the log behind the last one applied; 0: all that is
 * there is in the model. EFORMAT: the log is damaged there. */
ET_NODISCARD et_status etd_follow_read(struct etd_follow *f, double seconds,
                                       int64_t until, int64_t *left);
struct etd_model *etd_follow_model(struct etd_follow *f); /* borrowed */
/* Bytes of the log now, and of what has been applied: for "history 41% of 1.2 MB". */
void etd_follow_progress(const struct etd_follow *f, int64_t *done, int64_t *all);
/* For each record applied from now on; NULL: none. R is borrowed for the call. */
void etd_follow_watch(struct etd_follow *f,
                      void (*fn)(void *data, const struct et_record *r), void *data);

#endif
