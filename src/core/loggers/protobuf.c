/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.c: see protobuf.h. Source: protobuf.dev, "Encoding". */
#include "config.h"

#include <string.h>

#include "core/loggers/protobuf.h"

enum { HEAD = 20 }; /* bytes of a key and a length, at most */

unsigned char *
eti_pb_fixed(unsigned char *p, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p++ = (unsigned char)(x >> 8 * i);
    return p;
}

unsigned char *
eti_pb_varint(unsigned char *p, uint64_t x)
{
    for (; x > 0x7f; x >>= 7)
        *p++ = (unsigned char)(x | 0x80);
    *p++ = (unsigned char)x;
    return p;
}

unsigned char *
eti_pb_key(unsigned char *p, int number, int kind)
{
    return eti_pb_varint(p, (uint64_t)(number << 3 | kind));
}

unsigned char *
eti_pb_bytes(unsigned char *p, int number, const void *bytes, size_t n)
{
    p = eti_pb_varint(eti_pb_key(p, number, ETI_PB_BYTES), n);
    memcpy(p, bytes, n);
    return p + n;
}

unsigned char *
eti_pb_double(unsigned char *p, int number, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return eti_pb_fixed(eti_pb_key(p, number, ETI_PB_FIXED64), bits, 8);
}

unsigned char *
eti_pb_float(unsigned char *p, int number, double x)
{
    uint32_t bits;
    const float narrow = (float)x;
    memcpy(&bits, &narrow, sizeof bits);
    return eti_pb_fixed(eti_pb_key(p, number, ETI_PB_FIXED32), bits, 4);
}

/* ---- messages ---- */

void
eti_message_clear(struct eti_message *m)
{
    m->n = 0;
    m->status = ET_OK;
}

void
eti_message_release(struct eti_message *m)
{
    if (m->cx && m->bytes != m->own)
        et_free(m->cx, m->bytes);
    *m = (struct eti_message){.cx = m->cx};
}

/* Room for N bytes more, at their place; NULL: there is none. */
static unsigned char *
reserve(struct eti_message *m, size_t n)
{
    void *block;
    if (m->status != ET_OK)
        return NULL;
    if (!m->bytes) {
        m->bytes = m->own;
        m->room = sizeof m->own;
    }
    size_t room = m->room;
    while (room - m->n < n)
        room *= 2;
    if (room == m->room)
        return m->bytes + m->n;
    m->status = et_alloc(m->cx, room, &block);
    if (m->status != ET_OK)
        return NULL;
    if (m->n > 0)
        memcpy(block, m->bytes, m->n);
    if (m->bytes != m->own)
        et_free(m->cx, m->bytes);
    m->bytes = block;
    m->room = room;
    return m->bytes + m->n;
}

static void
end(struct eti_message *m, const unsigned char *p)
{
    m->n = (size_t)(p - m->bytes);
}

void
eti_message_varint(struct eti_message *m, int number, uint64_t x)
{
    unsigned char *p = reserve(m, HEAD);
    if (p)
        end(m, eti_pb_varint(eti_pb_key(p, number, ETI_PB_VARINT), x));
}

void
eti_message_double(struct eti_message *m, int number, double x)
{
    unsigned char *p = reserve(m, HEAD);
    if (p)
        end(m, eti_pb_double(p, number, x));
}

void
eti_message_bytes(struct eti_message *m, int number, const void *bytes, size_t n)
{
    unsigned char *p = reserve(m, n + HEAD);
    if (p)
        end(m, eti_pb_bytes(p, number, bytes, n));
}

void
eti_message_text(struct eti_message *m, int number, const char *text)
{
    eti_message_bytes(m, number, text, strlen(text));
}

void
eti_message_add(struct eti_message *m, int number, const struct eti_message *inner)
{
    if (m->status == ET_OK)
        m->status = inner->status;
    if (inner->n > 0)
        eti_message_bytes(m, number, inner->bytes, inner->n);
    else
        eti_message_bytes(m, number, "", 0);
}
