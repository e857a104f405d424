/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.h: protocol buffers as bytes: fields, and messages that grow.
 *
 * A field is a varint, number << 3 | kind (0 varint, 1 eight bytes, 2 length and bytes,
 * 5 four bytes), then what KIND says, little endian. */
#ifndef ETI_PROTOBUF_H
#define ETI_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "etude/ctx.h"

enum { ETI_PB_VARINT, ETI_PB_FIXED64, ETI_PB_BYTES, ETI_PB_FIXED32 = 5 };

/* ---- into memory that has room: each returns where the next begins ---- */

unsigned char *eti_pb_fixed(unsigned char *p, uint64_t x, int bytes);
unsigned char *eti_pb_varint(unsigned char *p, uint64_t x);
unsigned char *eti_pb_key(unsigned char *p, int number, int kind);
unsigned char *eti_pb_bytes(unsigned char *p, int number, const void *bytes, size_t n);
unsigned char *eti_pb_double(unsigned char *p, int number, double x);
unsigned char *eti_pb_float(unsigned char *p, int number, double x);

/* ---- a message that grows ---- */

/* Zeroed but for CX it is empty. Where memory is out it stops growing, and STATUS says
 * so. A short one needs none; one that is not empty must stay where it is. */
struct eti_message {
    struct et_ctx *cx;
    unsigned char *bytes;
    size_t n, room;
    et_status status;
    unsigned char own[256]; /* BYTES to begin with */
};
void eti_message_clear(struct eti_message *m);
void eti_message_release(struct eti_message *m);
void eti_message_varint(struct eti_message *m, int number, uint64_t x);
void eti_message_double(struct eti_message *m, int number, double x);
void eti_message_bytes(struct eti_message *m, int number, const void *bytes, size_t n);
void eti_message_text(struct eti_message *m, int number, const char *text);
/* INNER as a field of M. */
void eti_message_add(struct eti_message *m, int number,
                     const struct eti_message *inner);

#endif
