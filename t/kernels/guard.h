/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h: host memory whose end and surroundings are watched.
 *
 * A block ends where a page ends, and the pages before and behind it cannot be touched:
 * what reads or writes beyond it is stopped there, with or without a sanitizer. What
 * lies on the block's own pages before it holds a pattern of bytes that must stay. */
#ifndef T_KERNELS_GUARD_H
#define T_KERNELS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct guard {
    char *map; /* NULL: there is no block */
    size_t length;
    char *at; /* the block */
    size_t bytes;
};

/* A block of BYTES, filled with BYTE like all around it. Ends the program where there
 * is no memory. */
void guard_new(struct guard *g, size_t bytes, int byte);
/* Frees it; false where something wrote beside it. */
bool guard_free(struct guard *g, int byte);
/* What is under way: what is printed, as a test that fails, if a block is left from now
 * on. TEXT stays the caller's. */
void guard_watch(const char *text);

#endif
