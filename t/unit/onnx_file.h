/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX file, read field by field: protocol buffers. */
#ifndef T_UNIT_ONNX_FILE_H
#define T_UNIT_ONNX_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct span {
    const uint8_t *p, *end;
};

struct field {
    int number, wire;
    uint64_t value; /* of a varint */
    struct span bytes;
};

/* The number that S begins with, behind which S then is. */
uint64_t varint(struct span *s);
/* The next field of S; false: that was all. A length that is too long ends the test. */
bool next(struct span *s, struct field *f);
bool is_text(struct span s, const char *text);
/* The text or message in field NUMBER of the message S. */
struct span text_of(struct span s, int number);

#endif
