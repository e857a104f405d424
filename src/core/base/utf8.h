/* utf8.h: strict decoding of UTF-8 (RFC 3629: no overlong forms, no surrogates). */
#ifndef ETI_UTF8_H
#define ETI_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the character at S (N bytes left, N > 0), 0 if it is not UTF-8. */
int eti_utf8_decode(const char *s, size_t n, uint32_t *out);

#endif
