/* SPDX-License-Identifier: Apache-2.0 */
/* elf.h: what a shared library exports, read from its bytes, so that nothing of it
 * runs. */
#ifndef ETI_ELF_H
#define ETI_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the object SYMBOL, that a library exports for this machine, begins in the N
 * bytes of the file: *OFFSET, with *SIZE bytes stored. Returns NULL, or why not: a
 * sentence's end
 * ("is no shared library"), constant text. A pure function of its arguments. */
const char *eti_elf_find(const void *bytes, size_t n, const char *symbol,
                         size_t *offset, size_t *size);

/* The addresses, from *BEGIN to before *END, of the loaded library that ADDRESS is
 * in. */
bool eti_elf_range(const void *address, uintptr_t *begin, uintptr_t *end);

#endif
