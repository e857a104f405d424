/* SPDX-License-Identifier: Apache-2.0 */
/* proto.h: messages of protocol buffers, written. Source: protobuf.dev, encoding.
 *
 * By hand: we write one kind of message, of which a generated library would be larger
 * than what is below, and a program more to build it with. */
#ifndef ETI_ONNX_PROTO_H
#define ETI_ONNX_PROTO_H

#include "etude/ctx.h"

/* A message that grows. After a failure all that follows does nothing. */
struct eti_proto {
    struct et_ctx *cx;
    uint8_t *bytes; /* owned */
    size_t n, cap;
    et_status status; /* ENOMEM */
};

void eti_proto_release(struct eti_proto *p);
/* Empty again; the memory stays. */
void eti_proto_clear(struct eti_proto *p);

/* One field each. */
void eti_proto_int(struct eti_proto *p, int field, int64_t v);
void eti_proto_float(struct eti_proto *p, int field, float v);
void eti_proto_bytes(struct eti_proto *p, int field, const void *bytes, size_t n);
void eti_proto_text(struct eti_proto *p, int field, const char *text);
void eti_proto_message(struct eti_proto *p, int field, const struct eti_proto *inner);
/* The beginning of a field of N bytes that the caller writes behind it. */
void eti_proto_begin(struct eti_proto *p, int field, uint64_t n);
/* Bytes as they are. */
void eti_proto_raw(struct eti_proto *p, const void *bytes, size_t n);

#endif
