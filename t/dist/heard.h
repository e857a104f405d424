/* SPDX-License-Identifier: Apache-2.0 */
/* heard.h: a worker's conversation without a worker or a viewer: what is said to it,
 * and what it says, message by message. */
#ifndef ETUDE_T_DIST_HEARD_H
#define ETUDE_T_DIST_HEARD_H

#include "dist/worker/session.h"

enum { HEARD_MOST = 4096 };

extern struct etd_host
    heard_host; /* whose conversations these are: the test's to fill */
/* What was said, and has not been forgotten, oldest first. */
extern struct heard {
    char *bytes;
    size_t n;
} heard[HEARD_MOST];
extern int heard_n;
extern bool heard_full; /* the viewer's connection takes nothing more, */
extern int heard_room;  /* or nothing beyond so many that have not been forgotten */

void heard_forget(void);
/* Message I; its kind is ETD_KIND_COUNT if fewer have come. */
struct etd_frame heard_frame(int i);
int heard_count(enum etd_kind kind);
struct etd_frame heard_last(enum etd_kind kind);

struct etd_session *heard_open(bool is_operator);
/* Says BYTES to it. */
void heard_tell(struct etd_session *s, const char *bytes, size_t n);
/* HELLO of a viewer of minor version MINOR, for RUN: AFTER -1, from the beginning. */
void heard_hello(struct etd_session *s, int minor, const char *run, int64_t after,
                 int64_t credit);
/* Until the session waits for the viewer. False: the conversation is over. */
bool heard_drive(struct etd_session *s);

#endif
