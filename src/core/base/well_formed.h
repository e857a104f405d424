/* SPDX-License-Identifier: Apache-2.0 */
/* well_formed.h: looking at msgpack from outside, before anybody decodes it: see
 * well_formed.c. */
#ifndef ETI_WELL_FORMED_H
#define ETI_WELL_FORMED_H

#include <stdbool.h>
#include <stddef.h>

/* What stands at one place: bytes of the header, bytes behind it of what it says
 * itself, and elements that follow as items of their own (of a map two for each
 * key). */
struct eti_msgpack_item {
    size_t header, payload, elements;
};

/* The item that begins at P, with N (1 or more) bytes left: false where its header is
 * cut off, or its first byte begins no item. Payload and elements may run past the end:
 * the caller compares. */
bool eti_msgpack_item_read(const unsigned char *p, size_t n,
                           struct eti_msgpack_item *out);

/* Are these N bytes one whole object, with every element there and a bounded depth? */
bool eti_is_well_formed(const char *bytes, size_t n);

#endif
