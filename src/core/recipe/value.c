/* SPDX-License-Identifier: Apache-2.0 */
/* value.c: trees of values: scalars by YAML 1.2's core schema, and editing. */
#include "config.h"

#include "core/recipe/value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static const char *
skip_digits(const char *s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

/* [-+]? [0-9]+, 0o[0-7]+ or 0x[0-9a-fA-F]+. One too large for 64 bits is left to be a
 * float. */
static bool
read_int(const char *text, int64_t *out)
{
    int base = 10;
    const char *digits = text;
    if (text[0] == '0' && (text[1] == 'o' || text[1] == 'x')) {
        base = text[1] == 'o' ? 8 : 16;
        digits = text + 2;
        if (digits[strspn(digits, base == 8 ? "01234567" : "0123456789abcdefABCDEF")])
            return false;
    } else {
        const char *first = text + (*text == '-' || *text == '+');
        if (*skip_digits(first))
            return false;
        if (!*first)
            return false;
    }
    if (!*digits)
        return false;
    errno = 0;
    *out = strtoll(digits, NULL, base);
    return errno == 0;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?, .inf, .nan */
static bool
read_float(const char *text, double *out)
{
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    const char *s = text + (*text == '-' || *text == '+');
    if (is_one_of(s, infinities)) {
        *out = *text == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (is_one_of(text, nans)) {
        *out = NAN;
        return true;
    }
    const char *whole = skip_digits(s), *end = whole;
    if (*end == '.') {
        end = skip_digits(end + 1);
        if (whole == s && end == whole + 1)
            return false;
    } else if (whole == s) {
        return false;
    }
    if (*end == 'e' || *end == 'E') {
        const char *exponent = end + 1 + (end[1] == '-' || end[1] == '+');
        end = skip_digits(exponent);
        if (end == exponent)
            return false;
    }
    if (*end)
        return false;
    *out = strtod(text, NULL);
    return true;
}

void
eti_value_resolve_plain(struct et_value *v)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    if (is_one_of(v->text, nulls)) {
        v->type = ET_VALUE_NULL;
    } else if (is_one_of(v->text, trues) || is_one_of(v->text, falses)) {
        v->type = ET_VALUE_BOOL;
        v->b = v->text[0] == 't' || v->text[0] == 'T';
    } else if (read_int(v->text, &v->i)) {
        v->type = ET_VALUE_INT;
    } else if (read_float(v->text, &v->f)) {
        v->type = ET_VALUE_FLOAT;
    } else {
        v->type = ET_VALUE_STRING;
    }
}

struct et_value *
eti_value_get(const struct et_value *v, const char *key)
{
    if (!v || v->type != ET_VALUE_MAP)
        return NULL;
    for (struct et_value *c = v->first; c; c = c->next)
        if (strcmp(c->key, key) == 0)
            return c;
    return NULL;
}

struct et_value *
eti_value_at(const struct et_value *v, int index)
{
    struct et_value *c = v ? v->first : NULL;
    while (c && index-- > 0)
        c = c->next;
    return c;
}

double
eti_value_number(const struct et_value *v)
{
    return v->type == ET_VALUE_INT ? (double)v->i : v->f;
}

struct et_place
eti_value_place(const struct et_value *v)
{
    return (struct et_place){
        .file = v->source->origin <= ETI_ORIGIN_RECIPE ? v->source->name : NULL,
        .line = v->line,
        .column = v->column,
        .order = v->source->order,
    };
}

struct et_place
eti_value_key_place(const struct et_value *v)
{
    struct et_place at = eti_value_place(v);
    if (v->key_line) {
        at.line = v->key_line;
        at.column = v->key_column;
    }
    return at;
}

const char *
eti_value_quote(const struct et_value *v, char *buf, size_t size)
{
    switch (v->type) {
    case ET_VALUE_NULL:
        snprintf(buf, size, "nothing");
        break;
    case ET_VALUE_LIST:
        snprintf(buf, size, v->n == 1 ? "a list of %d item" : "a list of %d items",
                 v->n);
        break;
    case ET_VALUE_MAP:
        snprintf(buf, size, "a mapping");
        break;
    case ET_VALUE_STRING:
        snprintf(buf, size, strlen(v->text) > 80 ? "\"%.80s...\"" : "\"%s\"", v->text);
        break;
    default:
        snprintf(buf, size, "%s", v->text);
    }
    return buf;
}

struct et_value *
eti_value_new(struct eti_arena *arena, enum et_value_type type,
              const struct eti_source *source, const char *text)
{
    struct et_value *v = eti_arena_alloc(arena, sizeof *v);
    if (v) {
        v->type = type;
        v->source = source;
        v->text = text;
    }
    return v;
}

struct et_value *
eti_value_copy(struct eti_arena *arena, const struct et_value *v, int *budget)
{
    struct et_value *copy = eti_arena_alloc(arena, sizeof *copy);
    if (!copy)
        return NULL;
    if (budget)
        *budget -= v->key ? 2 : 1;
    *copy = *v;
    copy->next = copy->first = NULL;
    copy->n = 0;
    struct et_value **end = &copy->first;
    for (const struct et_value *c = v->first; c && (!budget || *budget >= 0);
         c = c->next) {
        *end = eti_value_copy(arena, c, budget);
        if (!*end)
            return NULL;
        end = &(*end)->next;
        copy->n++;
    }
    return copy;
}

void
eti_value_append(struct et_value *parent, const char *key, struct et_value *child)
{
    struct et_value **end = &parent->first;
    while (*end)
        end = &(*end)->next;
    *end = child;
    child->key = key;
    child->next = NULL;
    parent->n++;
}

void
eti_value_replace(struct et_value *parent, struct et_value *old, struct et_value *now)
{
    struct et_value **at = &parent->first;
    while (*at != old)
        at = &(*at)->next;
    now->next = old->next;
    now->key = old->key;
    *at = now;
}

void
eti_value_become(struct et_value *v, const struct et_value *now)
{
    const struct et_value old = *v;
    *v = *now;
    v->key = old.key;
    v->key_line = old.key_line;
    v->key_column = old.key_column;
    v->next = old.next;
}

void
eti_value_remove(struct et_value *parent, const struct et_value *child)
{
    struct et_value **at = &parent->first;
    while (*at != child)
        at = &(*at)->next;
    *at = child->next;
    parent->n--;
}

char *
eti_arena_text(struct eti_arena *arena, const char *text, size_t n)
{
    char *copy = eti_arena_alloc(arena, n + 1);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}
