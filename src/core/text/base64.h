/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h: bytes as letters, as tokenizer.json has them. Source: RFC 4648. */
#ifndef ETI_TEXT_BASE64_H
#define ETI_TEXT_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include "etude/ctx.h"

/* N bytes as text of *N_OUT letters, which ends with 0; OUT: et_free. */
ET_NODISCARD et_status eti_base64_encode(struct et_ctx *cx, const uint8_t *bytes,
                                         size_t n, char **out, size_t *n_out);
/* The bytes of N letters; OUT: et_free. EFORMAT: they are no base64. */
ET_NODISCARD et_status eti_base64_decode(struct et_ctx *cx, const char *text, size_t n,
                                         uint8_t **out, size_t *n_out);

#endif
