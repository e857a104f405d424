/* SPDX-License-Identifier: Apache-2.0 */
/* sender.h: a rank's end of the pipe to its supervisor.
 *
 * Records go through a ring (ring.h) to a thread that packs them and writes them to the
 * pipe, 20 times a second or whenever 64 KiB have come together. The training thread
 * never waits for it, but where it asks to, and with a command: that is never left
 * out. */
#ifndef ETD_SENDER_H
#define ETD_SENDER_H

#include "dist/wire/packet.h"
#include "etude/logger.h"

struct etd_sender;
/* Writes to FD, borrowed, what rank RANK has to say. EIO: no thread; ENOMEM. */
ET_NODISCARD et_status etd_sender_start(struct et_ctx *cx, int fd, int rank,
                                        struct etd_sender **out);
/* Sends what is there, and ends the thread. */
void etd_sender_stop(struct etd_sender **s);

/* Where records go. Borrowed; of one thread. */
struct et_sink *etd_sender_sink(struct etd_sender *s);
/* A line for screens, in its place among the records. Of the same thread. */
void etd_sender_line(struct etd_sender *s, enum et_log_level level, const char *text);
/* A packet behind all records so far; returns when the pipe has it. */
void etd_sender_put(struct etd_sender *s, enum etd_packet_kind kind, const void *body,
                    size_t n);
/* Is asked each second, on the sender's thread, for a record to send, whose entries it
 * fills: at most ROOM; false: it has no record now. Set before training begins. */
typedef bool etd_health_fn(void *data, struct et_record *r, struct et_log_entry *entry,
                           int room);
void etd_sender_watch(struct etd_sender *s, etd_health_fn *fn, void *data);

#endif
