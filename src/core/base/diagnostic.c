/* SPDX-License-Identifier: Apache-2.0 */
/* diagnostic.c: see diagnostic.h; and the one sanitiser of text from outside. */
#include "config.h"

#include "etude/diagnostic.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

int
eti_utf8_decode(const char *s, size_t n, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)s[0];
    int length = c < 0x80       ? 1
                 : c >> 5 == 6  ? 2
                 : c >> 4 == 14 ? 3
                 : c >> 3 == 30 ? 4
                                : 0;
    if (length == 0 || (size_t)length > n)
        return 0;
    uint32_t u = length == 1 ? c : c & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
        u = u << 6 | ((unsigned char)s[i] & 0x3f);
    }
    if (u < least[length] || u > 0x10ffff || (u >= 0xd800 && u <= 0xdfff))
        return 0;
    *out = u;
    return length;
}

static bool
is_control(uint32_t u)
{
    return u < 0x20 || (u >= 0x7f && u < 0xa0);
}

static bool
is_bidi_control(uint32_t u)
{
    return u == 0x61c || u == 0x200e || u == 0x200f || (u >= 0x202a && u <= 0x202e) ||
           (u >= 0x2066 && u <= 0x2069);
}

bool
eti_is_hostile(uint32_t u)
{
    return is_control(u) || is_bidi_control(u);
}

const char *
et_visible(char *buf, size_t size, const char *text, size_t n)
{
    if (!buf || (n > 0 && !text))
        return NULL;
    if (size == 0)
        return buf;
    size_t room = size - 1 < ET_VISIBLE_MAX ? size - 1 : ET_VISIBLE_MAX;
    size_t used = 0, cut = 0; /* CUT: the last place where "..." still fits */
    for (size_t i = 0; i < n;) {
        char escape[12];
        const char *piece = escape;
        uint32_t u = 0;
        int length = eti_utf8_decode(text + i, n - i, &u);
        size_t bytes = (size_t)length;
        if (length == 0 || is_control(u))
            bytes = (size_t)snprintf(escape, sizeof escape, "\\x%02x",
                                     length ? (unsigned)u : (unsigned char)text[i]);
        else if (is_bidi_control(u))
            bytes = (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)u);
        else
            piece = text + i;
        if (used + bytes > room) {
            memcpy(buf + cut, "...", room - cut < 3 ? room - cut : 3);
            used = room - cut < 3 ? room : cut + 3;
            break;
        }
        memcpy(buf + used, piece, bytes);
        used += bytes;
        if (used + 3 <= room)
            cut = used;
        i += (size_t)(length ? length : 1);
    }
    buf[used] = '\0';
    return buf;
}

static void
show(char *buf, size_t size, const char *text)
{
    et_visible(buf, size, text ? text : "", text ? strlen(text) : 0);
}

static bool
is_before(const struct et_diagnostic *a, const struct et_diagnostic *b)
{
    if (a->order != b->order)
        return a->order < b->order;
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

void
et_diagnostics_add(struct et_diagnostics *list, int code, const struct et_place *at,
                   const char *path, const char *hint, const char *fmt, ...)
{
    if (!list || !fmt)
        return;
    struct et_diagnostic d = {
        .code = code,
        .order = at ? at->order : 0,
        .line = at ? at->line : 0,
        .column = at ? at->column : 0,
    };
    char message[ET_VISIBLE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    show(d.message, sizeof d.message, message);
    show(d.file, sizeof d.file, at ? at->file : NULL);
    show(d.path, sizeof d.path, path);
    show(d.hint, sizeof d.hint, hint);

    list->total++;
    int i = list->n;
    while (i > 0 && is_before(&d, &list->v[i - 1]))
        i--;
    if (i == ET_DIAGNOSTICS_MAX)
        return;
    if (list->n < ET_DIAGNOSTICS_MAX)
        list->n++;
    memmove(&list->v[i + 1], &list->v[i], sizeof d * (size_t)(list->n - 1 - i));
    list->v[i] = d;
}

const char *
et_diagnostic_text(const struct et_diagnostic *d, char *buf, size_t size)
{
    if (!d || !buf)
        return NULL;
    char place[224] = "";
    if (d->file[0] && d->line)
        snprintf(place, sizeof place, "%s:%d:%d: ", d->file, d->line, d->column);
    else if (d->file[0])
        snprintf(place, sizeof place, "%s: ", d->file);
    snprintf(buf, size, "error E%d: %s%s%s%s%s%s", d->code, place, d->path,
             d->path[0] ? ": " : "", d->message, d->hint[0] ? "\n  hint: " : "",
             d->hint);
    return buf;
}

/* Appends "NAME":"TEXT". What et_visible made needs no more than these two escapes. */
static size_t
json_text(char *buf, size_t size, size_t used, const char *name, const char *text)
{
    char quoted[2 * sizeof((struct et_diagnostic){0}.message)];
    size_t n = 0;
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            quoted[n++] = '\\';
        quoted[n++] = *text;
    }
    quoted[n] = '\0';
    if (used < size)
        used +=
            (size_t)snprintf(buf + used, size - used, ",\"%s\":\"%s\"", name, quoted);
    return used;
}

const char *
et_diagnostic_json(const struct et_diagnostic *d, char *buf, size_t size)
{
    if (!d || !buf)
        return NULL;
    size_t used = (size_t)snprintf(buf, size, "{\"code\":\"E%d\"", d->code);
    used = json_text(buf, size, used, "file", d->file);
    if (used < size)
        used += (size_t)snprintf(buf + used, size - used, ",\"line\":%d,\"column\":%d",
                                 d->line, d->column);
    used = json_text(buf, size, used, "path", d->path);
    used = json_text(buf, size, used, "message", d->message);
    used = json_text(buf, size, used, "hint", d->hint);
    if (used < size)
        snprintf(buf + used, size - used, "}");
    return buf;
}
