/* SPDX-License-Identifier: Apache-2.0 */
/* unicode.h: characters as tokenizers see them. */
#ifndef ETI_TEXT_UNICODE_H
#define ETI_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ETI_REPLACEMENT = 0xfffd };

/* The character at S, of N > 0 bytes, and its length. Where they are not UTF-8: U+FFFD,
 * and how many bytes Python's decoder replaces by one: the longest beginning of a
 * character, else 1. *GOOD says which. */
uint32_t eti_char(const char *s, size_t n, size_t *length, bool *good);
/* Writes C to OUT, which has room for 4 bytes; returns how many it took. */
size_t eti_char_put(uint32_t c, char *out);
/* How many bytes TEXT begins with that are UTF-8. */
size_t eti_utf8_span(const char *text, size_t n);
/* Is it ASCII alone? */
bool eti_is_ascii(const char *text, size_t n);

bool eti_is_space(uint32_t c);   /* White_Space */
bool eti_is_control(uint32_t c); /* Cc, Cf, Co; BERT drops them */
bool eti_is_punct(uint32_t c);   /* P*, and ASCII's signs; BERT splits there */
bool eti_is_mark(uint32_t c);    /* Mn: what accents are without their letter */
bool eti_is_word(uint32_t c);    /* L*, M*, Nd, Pc */
bool eti_is_chinese(uint32_t c); /* BERT's ranges of them */
/* C in lower case: one character, of one two. */
int eti_char_lower(uint32_t c, uint32_t out[2]);
/* C decomposed canonically: at most 4 characters. */
int eti_char_decompose(uint32_t c, uint32_t out[8]);

#endif
