/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c: regular expressions of tokenizer files, by PCRE2.
 *
 * They are written for Oniguruma, whose \s is Unicode's White_Space; PCRE2's has
 * U+180E as well. So \s and \S are written out; ^ and $ are of lines. */
#include <string.h>

#include "core/text/impl.h"

const char eti_gpt2_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|"
                                " ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

#define SPACES "\\t-\\r\\x{85}\\p{Z}"
enum { PATTERN_MAX = 8192 };

/* Copies the pattern with \s and \S written out; false: it is too long. */
static bool
translate(const char *text, size_t n, char *out, size_t *n_out)
{
    bool in_class = false;
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        char part[3] = {text[i]};
        const char *by = part;
        size_t length = 1;
        if (text[i] == '\\' && i + 1 < n) {
            part[1] = text[++i];
            length = 2;
            if (text[i] == 's')
                by = in_class ? SPACES : "[" SPACES "]";
            else if (text[i] == 'S' && !in_class)
                by = "[^" SPACES "]";
            length = by == part ? length : strlen(by);
        } else if (text[i] == '[' && !in_class) {
            in_class = true;
        } else if (text[i] == ']' && in_class) {
            in_class = false;
        }
        if (*n_out + length > PATTERN_MAX)
            return false;
        memcpy(out + *n_out, by, length);
        *n_out += length;
    }
    return true;
}

et_status
eti_pattern(struct et_ctx *cx, const char *name, const char *text, size_t n,
            bool literal, pcre2_code **out)
{
    char whole[PATTERN_MAX];
    size_t n_whole = n, at;
    int error = 0;
    uint32_t options =
        PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
    *out = NULL;
    if (n == 0)
        return ET_FAIL(cx, ET_EFORMAT, "%s: a pattern that is empty", name);
    if (n > PATTERN_MAX || (!literal && !translate(text, n, whole, &n_whole)))
        return ET_FAIL(cx, ET_ENOTSUP, "%s: a pattern of %zu bytes", name, n);
    *out = pcre2_compile((PCRE2_SPTR)(literal ? text : whole), n_whole, options, &error,
                         &at, NULL);
    if (!*out) {
        PCRE2_UCHAR why[128] = "";
        (void)pcre2_get_error_message(error, why, sizeof why);
        return ET_FAIL(cx, ET_ENOTSUP, "%s: pattern %.*s: %s", name,
                       (int)(n < 100 ? n : 100), text, (const char *)why);
    }
    (void)pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE); /* else it is only slower */
    return ET_OK;
}
