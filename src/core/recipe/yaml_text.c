/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_text.c: see yaml_text.h. */
#include "config.h"

#include "core/recipe/yaml_text.h"

#include <string.h>

#include "core/base/utf8.h"

bool
eti_yaml_check_bytes(const char *text, size_t n, const struct eti_source *source,
                     size_t most, struct et_diagnostics *errors)
{
    struct et_place at = {.file = source->name, .order = source->order};
    if (n > most) {
        bool is_large = n >= 1 << 20;
        et_diagnostics_add(errors, ET_E_SYNTAX, &at, NULL, NULL,
                           "%.1f %s exceeds %zu KiB",
                           (double)n / (is_large ? 1 << 20 : 1 << 10),
                           is_large ? "MiB" : "KiB", most >> 10);
        return false;
    }
    for (size_t i = 0; i < n;) {
        uint32_t u;
        int length = eti_utf8_decode(text + i, n - i, &u);
        bool is_control = length == 1 && (u < 0x20 || u == 0x7f) && u != '\t' &&
                          u != '\n' && u != '\r';
        if (length == 0 || is_control) {
            et_diagnostics_add(errors, ET_E_SYNTAX, &at, NULL, NULL, "byte %zu is %s",
                               i,
                               length == 0 ? "not UTF-8"
                               : u == 0    ? "NUL"
                                           : "a control character");
            return false;
        }
        i += (size_t)length;
    }
    return true;
}

bool
eti_yaml_check_runs(const char *text, size_t n, const struct eti_source *source,
                    struct et_diagnostics *errors)
{
    enum { SPACE = 1000, DIRECTIVES = 1000 };
    struct et_place at = {
        .file = source->name, .order = source->order, .line = 1, .column = 1};
    size_t space = 0, directives = 0; /* bytes in a row; bytes in all */
    bool is_directive = n > 0 && text[0] == '%';
    for (size_t i = 0; i < n && space <= SPACE && directives <= DIRECTIVES; i++) {
        bool is_end = text[i] == '\n';
        space = text[i] && strchr(" \t\r\n", text[i]) ? space + 1 : 0;
        directives += is_directive;
        at.line += is_end;
        if (is_end)
            is_directive = i + 1 < n && text[i + 1] == '%';
    }
    if (space > SPACE)
        et_diagnostics_add(errors, ET_E_LIMIT, &at, NULL, NULL,
                           "more than %d blanks and line ends in a row", SPACE);
    else if (directives > DIRECTIVES)
        et_diagnostics_add(errors, ET_E_LIMIT, &at, NULL, NULL,
                           "directives (%%) of more than %d bytes", DIRECTIVES);
    return space <= SPACE && directives <= DIRECTIVES;
}

size_t
eti_yaml_find_deep(const char *text, size_t n)
{
    enum { DEEP = 64 }; /* far above the limit: ordinary texts are read once */
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        depth += text[i] == '[' || text[i] == '{';
        depth -= text[i] == ']' || text[i] == '}';
        if (depth > DEEP)
            return i;
    }
    return n;
}
