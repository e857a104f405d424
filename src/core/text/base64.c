/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c: see base64.h. */
#include "core/text/base64.h"

#include <string.h>

#include "core/base/memory.h"

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

et_status
eti_base64_encode(struct et_ctx *cx, const uint8_t *bytes, size_t n, char **out,
                  size_t *n_out)
{
    *n_out = (n + 2) / 3 * 4;
    ET_TRY(et_alloc(cx, *n_out + 1, (void **)out));
    for (size_t i = 0; i < n; i += 3) {
        char *to = *out + i / 3 * 4;
        const uint32_t three = (uint32_t)bytes[i] << 16 |
                               (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (i + 2 < n ? (uint32_t)bytes[i + 2] : 0);
        to[0] = letters[three >> 18];
        to[1] = letters[three >> 12 & 63];
        to[2] = i + 1 < n ? letters[three >> 6 & 63] : '=';
        to[3] = i + 2 < n ? letters[three & 63] : '=';
    }
    return ET_OK;
}

static uint32_t
value_of(char letter)
{
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? (uint32_t)(at - letters) : 64;
}

et_status
eti_base64_decode(struct et_ctx *cx, const char *text, size_t n, uint8_t **out,
                  size_t *n_out)
{
    size_t pads = 0;
    while (pads < 2 && pads < n && text[n - 1 - pads] == '=')
        pads++;
    if (n % 4 != 0)
        return ET_FAIL(cx, ET_EFORMAT, "base64 of %zu letters, which are no fours", n);
    ET_TRY(et_alloc(cx, n / 4 * 3 + 1, (void **)out));
    *n_out = n / 4 * 3 - pads;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t three = 0;
        for (size_t k = 0; k < 4; k++) {
            const bool pad = i + k >= n - pads;
            const uint32_t value = pad ? 0 : value_of(text[i + k]);
            if (value > 63)
                return ET_FAIL(cx, ET_EFORMAT, "letter %zu is not of base64", i + k);
            three = three << 6 | value;
        }
        for (size_t k = 0; k < 3; k++)
            (*out)[i / 4 * 3 + k] = (uint8_t)(three >> (16 - 8 * k));
    }
    return ET_OK;
}
