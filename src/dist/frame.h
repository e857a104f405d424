/* frame.h: what the processes of a run say to each other through pipes.
 *
 *     length u32 (of what follows), kind u8, body
 *
 * Both ends are the same program on the same machine: numbers are as in memory. A
 * reader trusts no length all the same: the other end may have gone mad. */
#ifndef ETD_FRAME_H
#define ETD_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "etude/logger.h"

/* code: body */
enum etd_frame_kind {
    ETD_FRAME_RECORD = 1, /* a record: of the ring */
    ETD_FRAME_LINE,       /* level u8, text: a line of the log for screens */
    ETD_FRAME_OUT,        /* text for the one who started the run: standard output */
    ETD_FRAME_ERR,        /* likewise, standard error */
    ETD_FRAME_OPEN,       /* rank 0: open the run directory; JSON of rank.c */
    ETD_FRAME_OPENED,     /* the answer: JSON */
    ETD_FRAME_END,        /* rank: how it came out; JSON */
    ETD_FRAME_ANSWER,     /* rank 0: of a request; JSON */
    ETD_FRAME_ASK,        /* a client of the supervisor: JSON */
    ETD_FRAME_STATE,      /* supervisor to the front: JSON */
};

enum { ETD_FRAME_HEAD = 5, ETD_FRAME_MAX = 1 << 20 };

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

/* Appends a whole frame; its body is the N bytes at BODY. */
void etd_frame_add(struct etd_bytes *b, enum etd_frame_kind kind, const void *body,
                   size_t n);
void etd_frame_add_record(struct etd_bytes *b, const struct et_record *r);
void etd_frame_add_line(struct etd_bytes *b, enum et_log_level level, const char *text);

struct etd_frame {
    enum etd_frame_kind kind;
    const char *body; /* borrowed from the bytes it was found in */
    size_t n;
};
/* The frame that B begins with, whose bytes *USED then counts. 0: it is not whole yet;
 * 1: here it is; -1: that is no frame. */
int etd_frame_next(const char *at, size_t n, struct etd_frame *out, size_t *used);
/* The record in F, with numbers in ENTRY [ROOM] and text borrowed from F. False where
 * the body is none. */
bool etd_frame_record(const struct etd_frame *f, struct et_log_entry *entry, int room,
                      struct et_record *out);

#endif
