/* SPDX-License-Identifier: Apache-2.0 */
/* packet.h: what the processes of a run say to each other through pipes.
 *
 *     length u32 (of what follows), kind u8, body
 *
 * Both ends are the same program on the same machine: numbers are as in memory. A
 * reader trusts no length all the same: the other end may have gone mad. */
#ifndef ETD_PACKET_H
#define ETD_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "etude/logger.h"

enum etd_packet_kind {
    ETD_PACKET_RECORD = 1, /* rank: a record, of the ring */
    ETD_PACKET_LINE,   /* level u8, text: a line of the log for screens. To the front
                              with seq i64 before it, of the last record then */
    ETD_PACKET_OUT,    /* text for the one who started the run: standard output */
    ETD_PACKET_ERR,    /* likewise, standard error */
    ETD_PACKET_OPEN,   /* rank: open the run directory; JSON of rank.c */
    ETD_PACKET_END,    /* rank: how it came out; JSON */
    ETD_PACKET_ANSWER, /* rank 0, of a request: "ID STEP APPLIED TEXT" */
    ETD_PACKET_STATE,  /* to the front: the run is open, or over; JSON */
    ETD_PACKET_PRINT,  /* to the front: seq i64, stream u8, what rank 0 printed */
};

enum { ETD_PACKET_HEAD = 5, ETD_PACKET_MAX = 1 << 20 };

/* Bytes that grow; all zero is empty. Free with etd_bytes_free. */
struct etd_bytes {
    char *at;
    size_t n, room;
    bool failed; /* memory was out: what was added last is not there */
};
void etd_bytes_free(struct etd_bytes *b);
void etd_bytes_add(struct etd_bytes *b, const void *bytes, size_t n);
/* Takes the first N away. */
void etd_bytes_drop(struct etd_bytes *b, size_t n);

/* Appends a whole packet; its body is the N bytes at BODY. */
void etd_packet_add(struct etd_bytes *b, enum etd_packet_kind kind, const void *body,
                    size_t n);
void etd_packet_add_record(struct etd_bytes *b, const struct et_record *r);
void etd_packet_add_line(struct etd_bytes *b, enum et_log_level level,
                         const char *text);

struct etd_packet {
    enum etd_packet_kind kind;
    const char *body; /* borrowed from the bytes it was found in */
    size_t n;
};
/* Reads the packet at the beginning of B; *USED is its bytes. 1: it is whole; 0: more
 * bytes have to come; -1: these bytes are not a packet. */
int etd_packet_next(const char *at, size_t n, struct etd_packet *out, size_t *used);
/* The record in F, with numbers in ENTRY [ROOM] and text borrowed from F. False where
 * the body is none. */
bool etd_packet_record(const struct etd_packet *f, struct et_log_entry *entry, int room,
                       struct et_record *out);

#endif
