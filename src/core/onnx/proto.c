/* SPDX-License-Identifier: Apache-2.0 */
/* proto.c: see proto.h. */
#include "core/onnx/proto.h"

#include <string.h>

enum wire { VARINT = 0, LENGTH = 2, FIXED32 = 5 };

void
eti_proto_release(struct eti_proto *p)
{
    if (p->cx)
        et_free(p->cx, p->bytes);
    *p = (struct eti_proto){0};
}

void
eti_proto_clear(struct eti_proto *p)
{
    p->n = 0;
}

void
eti_proto_raw(struct eti_proto *p, const void *bytes, size_t n)
{
    if (p->status == ET_OK && p->n + n > p->cap) {
        size_t cap = 2 * (p->n + n) + 64;
        void *block;
        p->status = et_alloc(p->cx, cap, &block);
        if (p->status == ET_OK) {
            if (p->n)
                memcpy(block, p->bytes, p->n);
            et_free(p->cx, p->bytes);
            p->bytes = block;
            p->cap = cap;
        }
    }
    if (p->status != ET_OK || n == 0)
        return;
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
}

static void
varint(struct eti_proto *p, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (uint8_t)(v & 127);
        v >>= 7;
        bytes[n++] |= v ? 128 : 0;
    } while (v);
    eti_proto_raw(p, bytes, n);
}

static void
key(struct eti_proto *p, int field, enum wire wire)
{
    varint(p, (uint64_t)field << 3 | wire);
}

void
eti_proto_int(struct eti_proto *p, int field, int64_t v)
{
    key(p, field, VARINT);
    varint(p, (uint64_t)v);
}

void
eti_proto_float(struct eti_proto *p, int field, float v)
{
    key(p, field, FIXED32);
    eti_proto_raw(p, &v, sizeof v);
}

void
eti_proto_begin(struct eti_proto *p, int field, uint64_t n)
{
    key(p, field, LENGTH);
    varint(p, n);
}

void
eti_proto_bytes(struct eti_proto *p, int field, const void *bytes, size_t n)
{
    eti_proto_begin(p, field, n);
    eti_proto_raw(p, bytes, n);
}

void
eti_proto_text(struct eti_proto *p, int field, const char *text)
{
    eti_proto_bytes(p, field, text, strlen(text));
}

void
eti_proto_message(struct eti_proto *p, int field, const struct eti_proto *inner)
{
    eti_proto_bytes(p, field, inner->bytes, inner->n);
    if (p->status == ET_OK)
        p->status = inner->status;
}
