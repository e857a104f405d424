/* SPDX-License-Identifier: Apache-2.0 */
/* unicode.c: see unicode.h. */
#include "core/text/unicode.h"

#include <string.h>
#include <utf8proc.h>

/* How many bytes at S begin a character that is cut short or broken behind them. */
static size_t
broken_length(const uint8_t *s, size_t n)
{
    uint8_t low = 0x80, high = 0xbf;
    int more = s[0] >= 0xc2 && s[0] <= 0xdf ? 1 : (s[0] & 0xf0) == 0xe0 ? 2 : 0;
    if (s[0] >= 0xf0 && s[0] <= 0xf4)
        more = 3;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    size_t length = 1;
    for (; length < n && (int)length <= more; length++) {
        if (s[length] < low || s[length] > high)
            break;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

static const uint8_t *
bytes_of(const char *s)
{
    return (const uint8_t *)s;
}

uint32_t
eti_char(const char *s, size_t n, size_t *length, bool *good)
{
    const uint8_t *b = bytes_of(s);
    *good = true;
    *length = 1;
    if (b[0] < 0x80)
        return b[0];
    size_t whole = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    *length = broken_length(b, n);
    if (b[0] < 0xc2 || b[0] > 0xf4 || *length != whole) {
        *good = false;
        return ETI_REPLACEMENT;
    }
    uint32_t c = b[0] & (0xffu >> (whole + 1));
    for (size_t i = 1; i < whole; i++)
        c = c << 6 | (b[i] & 0x3f);
    return c;
}

size_t
eti_char_put(uint32_t c, char *out)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)out);
}

size_t
eti_utf8_span(const char *text, size_t n)
{
    size_t at = 0, length;
    bool good;
    while (at < n) {
        uint64_t eight;
        while (at + sizeof eight <= n) {
            memcpy(&eight, text + at, sizeof eight);
            if (eight & 0x8080808080808080u)
                break;
            at += sizeof eight;
        }
        if (at == n)
            break;
        (void)eti_char(text + at, n - at, &length, &good);
        if (!good)
            break;
        at += length;
    }
    return at;
}

bool
eti_is_ascii(const char *text, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= (uint8_t)text[i];
    return any < 0x80;
}

static utf8proc_category_t
category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

/* Marks, punctuation and controls that are younger than Unicode 8, or became so since:
 * Hugging Face's tokenizers has that version's classes (its crate unicode_categories),
 * and models were trained with them. Made by comparing all characters with version
 * 0.23 of it. */
/* clang-format off */
static const uint32_t younger[][2] = {
    {0x61d, 0x61d}, {0x7fd, 0x7fd}, {0x890, 0x891}, {0x898, 0x89f}, {0x8ca, 0x8e2},
    {0x9fd, 0x9fe}, {0xa76, 0xa76}, {0xafa, 0xaff}, {0xb55, 0xb55}, {0xc04, 0xc04},
    {0xc3c, 0xc3c}, {0xc77, 0xc77}, {0xc84, 0xc84}, {0xd00, 0xd00}, {0xd3b, 0xd3c},
    {0xd81, 0xd81}, {0xeba, 0xeba}, {0xece, 0xece}, {0x166d, 0x166d}, {0x1734, 0x1734},
    {0x180f, 0x180f}, {0x1885, 0x1886}, {0x1abf, 0x1ace}, {0x1b7d, 0x1b7e},
    {0x1df6, 0x1dfb}, {0x2e43, 0x2e4f}, {0x2e52, 0x2e5d}, {0xa82c, 0xa82c},
    {0xa8c5, 0xa8c5}, {0xa8ff, 0xa8ff}, {0xa9bd, 0xa9bd}, {0x10d24, 0x10d27},
    {0x10eab, 0x10ead}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f55, 0x10f59},
    {0x10f82, 0x10f89}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110c2, 0x110c2},
    {0x110cd, 0x110cd}, {0x111c9, 0x111c9}, {0x111cf, 0x111cf}, {0x1123e, 0x1123e},
    {0x11241, 0x11241}, {0x1133b, 0x1133b}, {0x11438, 0x1143f}, {0x11442, 0x11444},
    {0x11446, 0x11446}, {0x1144b, 0x1144f}, {0x1145a, 0x1145b}, {0x1145d, 0x1145e},
    {0x11660, 0x1166c}, {0x116b9, 0x116b9}, {0x1182f, 0x11837}, {0x11839, 0x1183b},
    {0x1193b, 0x1193c}, {0x1193e, 0x1193e}, {0x11943, 0x11946}, {0x119d4, 0x119d7},
    {0x119da, 0x119db}, {0x119e0, 0x119e0}, {0x119e2, 0x119e2}, {0x11a01, 0x11a0a},
    {0x11a33, 0x11a38}, {0x11a3b, 0x11a47}, {0x11a51, 0x11a56}, {0x11a59, 0x11a5b},
    {0x11a8a, 0x11a96}, {0x11a98, 0x11a9c}, {0x11a9e, 0x11aa2}, {0x11b00, 0x11b09},
    {0x11c30, 0x11c36}, {0x11c38, 0x11c3d}, {0x11c3f, 0x11c3f}, {0x11c41, 0x11c45},
    {0x11c70, 0x11c71}, {0x11c92, 0x11ca7}, {0x11caa, 0x11cb0}, {0x11cb2, 0x11cb3},
    {0x11cb5, 0x11cb6}, {0x11d31, 0x11d36}, {0x11d3a, 0x11d3a}, {0x11d3c, 0x11d3d},
    {0x11d3f, 0x11d45}, {0x11d47, 0x11d47}, {0x11d90, 0x11d91}, {0x11d95, 0x11d95},
    {0x11d97, 0x11d97}, {0x11ef3, 0x11ef4}, {0x11ef7, 0x11ef8}, {0x11f00, 0x11f01},
    {0x11f36, 0x11f3a}, {0x11f40, 0x11f40}, {0x11f42, 0x11f4f}, {0x11fff, 0x11fff},
    {0x12ff1, 0x12ff2}, {0x13430, 0x13440}, {0x13447, 0x13455}, {0x16e97, 0x16e9a},
    {0x16f4f, 0x16f4f}, {0x16fe2, 0x16fe2}, {0x16fe4, 0x16fe4}, {0x1cf00, 0x1cf2d},
    {0x1cf30, 0x1cf46}, {0x1e000, 0x1e006}, {0x1e008, 0x1e018}, {0x1e01b, 0x1e021},
    {0x1e023, 0x1e024}, {0x1e026, 0x1e02a}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136},
    {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1e944, 0x1e94a},
    {0x1e95e, 0x1e95f},
};
/* clang-format on */

static bool
is_younger(uint32_t c)
{
    size_t low = 0, high = sizeof younger / sizeof *younger;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > younger[middle][1])
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof younger / sizeof *younger && c >= younger[low][0];
}

bool
eti_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    if (c == 0x85)
        return true;
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL ||
           k == UTF8PROC_CATEGORY_ZP;
}

bool
eti_is_control(uint32_t c)
{
    if (c < 0x80)
        return (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
    utf8proc_category_t k = category(c);
    bool is = k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF ||
              k == UTF8PROC_CATEGORY_CO;
    return is && !is_younger(c);
}

bool
eti_is_punct(uint32_t c)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') ||
               (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO && !is_younger(c);
}

bool
eti_is_mark(uint32_t c)
{
    return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN && !is_younger(c);
}

bool
eti_is_word(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) ||
           k == UTF8PROC_CATEGORY_PC;
}

bool
eti_is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

int
eti_char_lower(uint32_t c, uint32_t out[2])
{
    if (c == 0x130) { /* I with a dot: the one letter that becomes two characters */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}

int
eti_char_decompose(uint32_t c, uint32_t out[8])
{
    utf8proc_int32_t all[8];
    int last = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t n = utf8proc_decompose_char(
        (utf8proc_int32_t)c, all, 8, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &last);
    if (n < 1 || n > 8) {
        out[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < n; i++)
        out[i] = (uint32_t)all[i];
    return (int)n;
}
