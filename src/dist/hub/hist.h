/* SPDX-License-Identifier: Apache-2.0 */
/* hist.h: answers to HIST: points of a series of a run, read from its log beside the
 * loop that serves viewers.
 *
 * A log without summaries is read from its end to its beginning for them, which takes
 * seconds: in a thread of its own, one for all conversations of a process, so that
 * viewers who ask without end take one processor's idle time and nobody's turn. */
#ifndef ETD_HIST_H
#define ETD_HIST_H

#include "dist/wire/wire.h"

/* The questions of one conversation. */
struct etd_hist;
/* About the run in DIRECTORY. READERS counts the threads of all conversations, and is
 * borrowed. ENOMEM. */
ET_NODISCARD et_status etd_hist_new(struct et_ctx *cx, const char *directory,
                                    int *readers, struct etd_hist **out);
/* Ends its thread, where it has one. NULL is fine. */
void etd_hist_free(struct etd_hist **h);
/* QUESTION is a HIST; answered in the order in which they came. One that comes while
 * ETD_HIST_WAITING wait is left out. */
enum { ETD_HIST_WAITING = 20 };
void etd_hist_ask(struct etd_hist *h, const struct etd_frame *question);
/* Has it been asked what it has not answered? Then etd_hist_answer is to be called
 * every few milliseconds. */
bool etd_hist_is_asked(const struct etd_hist *h);
/* Begins to read, where nobody else does. Bytes of the answer in HEAD's name; 0: it
 * is still being read. The same again until it was sent. */
size_t etd_hist_answer(struct etd_hist *h, const struct etd_head *head, void *bytes,
                       size_t room);
void etd_hist_sent(struct etd_hist *h);

#endif
