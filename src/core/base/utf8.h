/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h: strict decoding of UTF-8 (RFC 3629: no overlong forms, no surrogates). */
#ifndef ETI_UTF8_H
#define ETI_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Length of the character at S (N bytes left, N > 0), 0 if it is not UTF-8. */
int eti_utf8_decode(const char *s, size_t n, uint32_t *out);
/* May U move a terminal, or turn text around? C0, DEL, C1, bidirectional controls. */
bool eti_is_hostile(uint32_t u);
/* Writes JSON, which has been made, with such characters as \u202e: they mean the same,
 * and what it is printed on does not see them. */
void eti_print_json(FILE *f, const char *json);

#endif
