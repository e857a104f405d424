/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c: reading filters, and matching with them. */
#include "config.h"

#include "core/library/filter.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"

enum test { WORD, HAS, MATCHES, EQUAL, UNEQUAL, LESS, LESS_EQUAL, MORE, MORE_EQUAL };

struct term {
    enum test test;
    bool negated;
    bool begins_or; /* after a | */
    char *key, *value;
    regex_t regex;
    struct term *next;
};

struct eti_filter {
    struct et_ctx *cx;
    struct eti_arena arena;
    struct term *first;
};

static const struct {
    const char *text;
    enum test test;
} operators[] = {
    {"!=", UNEQUAL}, {"<=", LESS_EQUAL}, {">=", MORE_EQUAL}, {":", MATCHES},
    {"=", EQUAL},    {"<", LESS},        {">", MORE},
};

static char *
copy(struct eti_filter *f, const char *text, size_t n)
{
    char *out = eti_arena_alloc(&f->arena, n + 1);
    if (out)
        memcpy(out, text, n);
    return out;
}

/* The term of N bytes at TEXT, which is no | and not empty. */
static et_status
read_term(struct eti_filter *f, struct term *t, const char *text, size_t n)
{
    size_t at = 0, op = 0;
    if (*text == '"') {
        t->value = copy(f, text + 1, n - 2);
        return t->value ? ET_OK : ET_ENOMEM;
    }
    while (at < n && !strchr(":=<>", text[at]) &&
           !(text[at] == '!' && at + 1 < n && text[at + 1] == '='))
        at++;
    if (at == n) {
        t->value = copy(f, text, n);
        return t->value ? ET_OK : ET_ENOMEM;
    }
    while (strncmp(text + at, operators[op].text, strlen(operators[op].text)) != 0)
        op++;
    t->test = operators[op].test;
    size_t from = at + strlen(operators[op].text);
    if (at == 0 || from == n)
        return ET_FAIL(f->cx, ET_EINVAL, "'%.*s' lacks what stands %s %s", (int)n, text,
                       at == 0 ? "before" : "behind", operators[op].text);
    t->key = copy(f, text, at);
    if (n - from >= 2 && text[from] == '"' && text[n - 1] == '"') {
        from++;
        n--;
    }
    t->value = copy(f, text + from, n - from);
    if (!t->key || !t->value)
        return ET_ENOMEM;
    if (t->test == MATCHES && strcmp(t->key, "has") == 0) {
        t->test = HAS;
        t->key = t->value;
    }
    if (t->test != MATCHES)
        return ET_OK;
    int code = regcomp(&t->regex, t->value, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (code == 0)
        return ET_OK;
    char why[128];
    t->test = WORD; /* there is nothing to free */
    regerror(code, &t->regex, why, sizeof why);
    return ET_FAIL(f->cx, ET_EINVAL, "'%s' is no regular expression: %s", t->value,
                   why);
}

/* Bytes to the end of a term: quotes keep blanks together. */
static size_t
term_length(const char *text)
{
    bool quoted = false;
    size_t n = 0;
    for (; text[n] && (quoted || (text[n] != ' ' && text[n] != '|')); n++)
        quoted = quoted != (text[n] == '"');
    return quoted ? 0 : n;
}

static et_status
read_terms(struct eti_filter *f, const char *text)
{
    struct term **end = &f->first;
    bool or = false;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        if (*text == '|') {
            if (or || !f->first)
                return ET_FAIL(f->cx, ET_EINVAL, "a | has a term on each side");
            or = true;
            text++;
            continue;
        }
        struct term *t = eti_arena_alloc(&f->arena, sizeof *t);
        if (!t)
            return ET_ENOMEM;
        t->begins_or = or ;
        or = false;
        t->negated = *text == '!';
        text += t->negated;
        size_t n = term_length(text);
        if (n == 0 || (n == 1 && *text == '"'))
            return ET_FAIL(f->cx, ET_EINVAL,
                           "a filter has a term behind !, and quotes in pairs");
        ET_TRY(read_term(f, t, text, n));
        *end = t;
        end = &t->next;
        text += n;
    }
    return or ? ET_FAIL(f->cx, ET_EINVAL, "a | has a term on each side") : ET_OK;
}

et_status
eti_filter_new(struct et_ctx *cx, const char *text, struct eti_filter **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct eti_filter *f = block;
    f->cx = cx;
    eti_arena_init(&f->arena, cx, 4096);
    et_status status = read_terms(f, text);
    if (status != ET_OK) {
        eti_filter_free(&f);
        return status;
    }
    *out = f;
    return ET_OK;
}

void
eti_filter_free(struct eti_filter **filter)
{
    struct eti_filter *f = *filter;
    *filter = NULL;
    if (!f)
        return;
    for (struct term *t = f->first; t; t = t->next)
        if (t->test == MATCHES)
            regfree(&t->regex);
    eti_arena_release(&f->arena);
    et_free(f->cx, f);
}

static bool
as_number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

/* -1, 0, 1 as A is less than, equal to, more than B; 2: neither (NaN). */
static int
compare(const char *a, const char *b)
{
    double x, y;
    if (!as_number(a, &x) || !as_number(b, &y)) {
        int order = strcmp(a, b);
        return (order > 0) - (order < 0);
    }
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

static bool
matches(const struct term *t, const struct eti_subject *s)
{
    if (t->test == WORD)
        return s->has_word(s->data, t->value);
    const char *value = s->value(s->data, t->key);
    if (t->test == UNEQUAL)
        return !value || compare(value, t->value) != 0;
    if (!value || t->test == HAS)
        return value;
    if (t->test == MATCHES)
        return regexec(&t->regex, value, 0, NULL, 0) == 0;
    int order = compare(value, t->value);
    return (t->test == EQUAL && order == 0) || (t->test == LESS && order == -1) ||
           (t->test == LESS_EQUAL && (order == -1 || order == 0)) ||
           (t->test == MORE && order == 1) ||
           (t->test == MORE_EQUAL && (order == 1 || order == 0));
}

bool
eti_filter_matches(const struct eti_filter *filter, const struct eti_subject *s)
{
    bool all = true;
    for (const struct term *t = filter->first; t; t = t->next) {
        if (t->begins_or && all)
            return true;
        if (t->begins_or)
            all = true;
        all = all && matches(t, s) != t->negated;
    }
    return all;
}

const char *
eti_filter_unknown(const struct eti_filter *filter,
                   bool (*known)(void *data, const char *key), void *data)
{
    for (const struct term *t = filter->first; t; t = t->next)
        if (t->test != WORD && !known(data, t->key))
            return t->key;
    return NULL;
}
