/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: see text.h. */
#include "config.h"

#include "core/recipe/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
reserve(struct eti_text *t, size_t more)
{
    if (t->status != ET_OK || t->used + more < t->size)
        return;
    size_t size = t->size ? 2 * t->size : 256;
    while (size <= t->used + more)
        size *= 2;
    void *block;
    t->status = et_alloc(t->cx, size, &block);
    if (t->status != ET_OK)
        return;
    if (t->used)
        memcpy(block, t->text, t->used);
    et_free(t->cx, t->text);
    t->text = block;
    t->size = size;
}

void
eti_text_add(struct eti_text *t, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    reserve(t, (size_t)n);
    if (t->status == ET_OK)
        t->used += (size_t)vsnprintf(t->text + t->used, t->size - t->used, fmt, again);
    va_end(again);
    va_end(args);
}

/* Letters, digits and a few marks, none of which begins or ends anything in YAML. */
static bool
is_plain(const char *text)
{
    static const char first[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/."
        "0123456789";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/."
                               "0123456789+-=<>()^$*\\";
    struct et_value v = {.text = text};
    if (!*text || !strchr(first, *text) || text[strspn(text, rest)])
        return false;
    eti_value_resolve_plain(&v);
    return v.type == ET_VALUE_STRING;
}

void
eti_text_add_scalar(struct eti_text *t, const char *text)
{
    if (is_plain(text)) {
        eti_text_add(t, "%s", text);
        return;
    }
    eti_text_add(t, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            eti_text_add(t, "\\%c", c);
        else if (c == '\n')
            eti_text_add(t, "\\n");
        else if (c < 0x20 || c == 0x7f)
            eti_text_add(t, "\\x%02x", c);
        else
            eti_text_add(t, "%c", c);
    }
    eti_text_add(t, "\"");
}

void
eti_text_add_number(struct eti_text *t, double x)
{
    if (isinf(x)) {
        eti_text_add(t, x < 0 ? "-.inf" : ".inf");
        return;
    }
    char buf[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, x);
        if (strtod(buf, NULL) == x)
            break;
    }
    eti_text_add(t, "%s", buf);
}

void
eti_text_add_duration(struct eti_text *t, double seconds)
{
    static const struct {
        double seconds;
        const char *suffix;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}};
    for (size_t i = 0; seconds > 0 && i < sizeof units / sizeof units[0]; i++)
        if (fmod(seconds, units[i].seconds) == 0) {
            eti_text_add_number(t, seconds / units[i].seconds);
            eti_text_add(t, "%s", units[i].suffix);
            return;
        }
    eti_text_add_number(t, seconds);
    eti_text_add(t, "s");
}

void
eti_text_add_size(struct eti_text *t, int64_t bytes)
{
    static const char *const suffixes[] = {"", "Ki", "Mi", "Gi"};
    int unit = 0;
    while (unit < 3 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    eti_text_add(t, "%lld%s", (long long)bytes, suffixes[unit]);
}

void
eti_text_add_value(struct eti_text *t, const struct et_value *v)
{
    bool is_map = v->type == ET_VALUE_MAP;
    if (v->type == ET_VALUE_STRING)
        eti_text_add_scalar(t, v->text);
    else if (v->type == ET_VALUE_NULL)
        eti_text_add(t, "null");
    else if (!is_map && v->type != ET_VALUE_LIST)
        eti_text_add(t, "%s", v->text);
    if (!is_map && v->type != ET_VALUE_LIST)
        return;
    eti_text_add(t, is_map ? "{" : "[");
    for (const struct et_value *c = v->first; c; c = c->next) {
        if (is_map) {
            eti_text_add_scalar(t, c->key);
            eti_text_add(t, ": ");
        }
        eti_text_add_value(t, c);
        eti_text_add(t, c->next ? ", " : "");
    }
    eti_text_add(t, is_map ? "}" : "]");
}
