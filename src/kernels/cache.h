/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h: what took long to find, kept on disk: choices of algorithms, compiled
 * kernels.
 *
 * An entry is a file of its own under $ETUDE_CACHE_DIR, or $XDG_CACHE_HOME/etude, or
 * ~/.cache/etude, in the folder "kernels". It is found by the text of its key, which
 * names everything that its contents depend on: the source or the shapes, the GPU or
 * the processor, the driver, the library's version. What cannot be kept or read is
 * found anew: no failure here is an error. Any thread and any process at once. */
#ifndef ETUDE_KERNELS_CACHE_H
#define ETUDE_KERNELS_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* The contents kept for KEY under KIND (a word of lower-case letters, part of the
 * file's name), at least one byte: the caller frees *BYTES. False where there are none,
 * or the file is damaged. */
bool etk_cache_read(const char *kind, const char *key, void **bytes, size_t *size);
/* Keeps SIZE > 0 bytes for KEY, in place of what was kept before: as a whole, or not at
 * all. */
void etk_cache_write(const char *kind, const char *key, const void *bytes, size_t size);

#endif
