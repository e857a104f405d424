/* SPDX-License-Identifier: Apache-2.0 */
/* well_formed.c: is a payload one whole msgpack object that a decoder may be given?
 *
 * msgpack-c makes room for as many elements as a header promises, and goes as deep as
 * it is led. Here every element is there, and the depth is bounded
 * (RELIABILITY.md 5.9). */
#include "config.h"

#include "core/base/well_formed.h"

enum { DEPTH = 8 };

static size_t
big_endian(const unsigned char *p, size_t n)
{
    size_t x = 0;
    for (size_t i = 0; i < n; i++)
        x = x << 8 | p[i];
    return x;
}

/* Headers 0xc0 to 0xdf: bytes of the length after the first, bytes besides, elements
 * per unit of the length (0: it counts bytes). */
static const struct {
    unsigned char length, fixed, elements;
} forms[32] = {
    [0x04] = {1, 0, 0},  [0x05] = {2, 0, 0}, [0x06] = {4, 0, 0}, /* bin */
    [0x07] = {1, 1, 0},  [0x08] = {2, 1, 0}, [0x09] = {4, 1, 0}, /* ext */
    [0x0a] = {0, 4, 0},  [0x0b] = {0, 8, 0},                     /* float */
    [0x0c] = {0, 1, 0},  [0x0d] = {0, 2, 0}, [0x0e] = {0, 4, 0}, /* uint */
    [0x0f] = {0, 8, 0},  [0x10] = {0, 1, 0}, [0x11] = {0, 2, 0}, /* int */
    [0x12] = {0, 4, 0},  [0x13] = {0, 8, 0}, [0x14] = {0, 2, 0}, /* fixext */
    [0x15] = {0, 3, 0},  [0x16] = {0, 5, 0}, [0x17] = {0, 9, 0},
    [0x18] = {0, 17, 0}, [0x19] = {1, 0, 0}, [0x1a] = {2, 0, 0}, /* str */
    [0x1b] = {4, 0, 0},  [0x1c] = {2, 0, 1}, [0x1d] = {4, 0, 1}, /* array */
    [0x1e] = {2, 0, 2},  [0x1f] = {4, 0, 2},                     /* map */
};

bool
eti_msgpack_item_read(const unsigned char *p, size_t n, struct eti_msgpack_item *out)
{
    unsigned char first = p[0];
    *out = (struct eti_msgpack_item){.header = 1};
    if (first < 0x80 || first >= 0xe0)
        return true;
    if (first < 0x90)
        out->elements = 2 * (size_t)(first & 15);
    else if (first < 0xa0)
        out->elements = first & 15;
    else if (first < 0xc0)
        out->payload = first & 31;
    if (first < 0xc0)
        return true;
    size_t form = first - 0xc0, length = forms[form].length;
    if (first == 0xc1 || n < 1 + length)
        return false;
    size_t count = big_endian(p + 1, length);
    out->header += length;
    out->payload = forms[form].fixed + (forms[form].elements ? 0 : count);
    out->elements = forms[form].elements * count;
    return true;
}

bool
eti_is_well_formed(const char *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    size_t left[DEPTH] = {1}; /* elements to come, of each list that is open */
    int depth = 0;
    while (depth >= 0) {
        struct eti_msgpack_item item;
        if (left[depth] == 0) {
            depth--;
            continue;
        }
        left[depth]--;
        if (n == 0 || !eti_msgpack_item_read(p, n, &item) ||
            item.header + item.payload > n)
            return false;
        p += item.header + item.payload;
        n -= item.header + item.payload;
        if (item.elements > n || (item.elements > 0 && depth + 1 == DEPTH))
            return false;
        if (item.elements > 0)
            left[++depth] = item.elements;
    }
    return n == 0;
}
