/* SPDX-License-Identifier: Apache-2.0 */
/* refuse.c: what a table expects, what was found instead, and what may have been
 * meant. */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/recipe/options.h"

/* ---- what is expected ---- */

static bool
has_min(const struct et_option *row)
{
    return row->min != 0 || row->max != 0 || row->flags & ET_OPT_MIN_OPEN;
}

static bool
has_max(const struct et_option *row)
{
    return row->max > row->min && !isinf(row->max);
}

bool
eti_option_in_range(const struct et_option *row, double x)
{
    bool open_min = row->flags & ET_OPT_MIN_OPEN,
         open_max = row->flags & ET_OPT_MAX_OPEN;
    if (!isfinite(x))
        return false;
    if (has_min(row) && (open_min ? x <= row->min : x < row->min))
        return false;
    return !has_max(row) || (open_max ? x < row->max : x <= row->max);
}

static size_t append(char *buf, size_t size, size_t used, const char *fmt, ...)
    ET_PRINTF(4, 5);

static size_t
append(char *buf, size_t size, size_t used, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = used < size ? vsnprintf(buf + used, size - used, fmt, args) : 0;
    va_end(args);
    return used + (size_t)n;
}

static size_t
append_units(char *buf, size_t size, size_t used, unsigned units)
{
    static const char *const suffixes[] = {
#define SUFFIX(code, number, suffix, name) [number] = suffix,
        ET_TIME_UNIT_MAP(SUFFIX)
#undef SUFFIX
    };
    const char *before = " in ";
    for (int i = 0; i < ET_TIME_UNIT_COUNT; i++)
        if (units & 1u << i) {
            used = append(buf, size, used, "%s%s", before, suffixes[i]);
            unsigned rest = units >> (i + 1);
            before = rest & (rest - 1) ? ", " : " or "; /* the next is the last? */
        }
    return used;
}

const char *
et_option_expects(const struct et_option *row, char *buf, size_t size)
{
    if (!row || !buf)
        return NULL;
    static const char *const words[] = {
#define WORD(code, number, ctype, word) [number] = word,
        ET_OPTION_TYPE_MAP(WORD)
#undef WORD
    };
    size_t used = 0;
    const char *before = "one of ";
    if (row->type != ET_OPT_ENUM) {
        bool in_units = row->type == ET_OPT_TIME && row->units;
        used = append(buf, size, 0, "%s", in_units ? "time" : words[row->type]);
        if (row->flags & ET_OPT_BRIEF)
            used = append(buf, size, used, " or %s", words[row->sub->type]);
        if (in_units)
            used = append_units(buf, size, used, row->units);
        if (has_min(row))
            used = append(buf, size, used, " %s %g",
                          row->flags & ET_OPT_MIN_OPEN ? ">" : ">=", row->min);
        if (has_max(row))
            used = append(buf, size, used, "%s %s %.10g", has_min(row) ? " and" : "",
                          row->flags & ET_OPT_MAX_OPEN ? "<" : "<=", row->max);
        before = ", or ";
    }
    for (const char *const *c = row->choices; c && *c; c++) {
        used = append(buf, size, used, "%s%s", before, *c);
        before = ", ";
    }
    return buf;
}

/* ---- errors ---- */

const struct eti_foreign *
eti_foreign_find(const struct eti_fill *fill, const char *path, const char *theirs)
{
    for (const struct eti_foreign *f = fill->foreign; f && f->theirs; f++)
        if (strcmp(f->path, path) == 0 && strcmp(f->theirs, theirs) == 0)
            return f;
    return NULL;
}

void
eti_bad_value(const struct eti_fill *fill, const struct et_value *v, const char *path,
              const char *hint, const char *expected)
{
    char quote[128];
    struct et_place at = eti_value_place(v);
    et_diagnostics_add(fill->errors, ET_E_VALUE, &at, path, hint, "expected %s, got %s",
                       expected, eti_value_quote(v, quote, sizeof quote));
}

/* What the person may have meant by text V, or "". */
static void
hint_for(const struct eti_fill *fill, const struct et_option *row,
         const struct et_value *v, const char *path, char hint[128])
{
    char unit[ET_TIME_TEXT_BYTES];
    struct et_time time;
    hint[0] = '\0';
    const struct eti_foreign *f =
        v->text ? eti_foreign_find(fill, path, v->text) : NULL;
    if (f) {
        snprintf(hint, 128, "did you mean '%s'?", f->ours);
    } else if (row->type == ET_OPT_ENUM && v->text) {
        int n = 0;
        while (row->choices[n])
            n++;
        const char *near = et_nearest(v->text, row->choices, n);
        if (near)
            snprintf(hint, 128, "did you mean '%s'?", near);
    } else if (row->type == ET_OPT_BOOL && v->text) {
        bool yes = strcasecmp(v->text, "yes") == 0 || strcasecmp(v->text, "on") == 0;
        bool no = strcasecmp(v->text, "no") == 0 || strcasecmp(v->text, "off") == 0;
        if (yes || no)
            snprintf(hint, 128, "write %s", yes ? "true" : "false");
    } else if (row->type == ET_OPT_SECONDS && v->type == ET_VALUE_INT && v->i >= 0) {
        snprintf(hint, 128, "write %ss", v->text);
    } else if (row->type == ET_OPT_TIME && v->text &&
               et_time_placeholder(v->text, &time)) {
        snprintf(hint, 128, "write %s", et_time_text(time, unit, sizeof unit));
    } else if ((row->type == ET_OPT_FLOAT || row->type == ET_OPT_INT) &&
               v->type == ET_VALUE_STRING) {
        char *end;
        double x = strtod(v->text, &end);
        bool fits = end != v->text && eti_option_in_range(row, x) &&
                    (row->type == ET_OPT_FLOAT ||
                     strspn(v->text, "0123456789") == (size_t)(end - v->text));
        if (fits)
            snprintf(hint, 128, "write %.*s", (int)(end - v->text), v->text);
    }
}

et_status
eti_refuse(const struct eti_fill *fill, const struct et_option *row,
           const struct et_value *v, const char *path)
{
    char expected[256], hint[128];
    hint_for(fill, row, v, path, hint);
    eti_bad_value(fill, v, path, hint,
                  et_option_expects(row, expected, sizeof expected));
    return ET_OK;
}

bool
eti_looks_secret(const char *key)
{
    static const char *const words[] = {
        "secret",     "password",  "passwd",       "passphrase", "api_key",
        "apikey",     "api-key",   "auth_key",     "access_key", "private_key",
        "credential", "api_token", "access_token", "auth_token", "bearer",
    };
    char lower[64];
    size_t n = 0;
    for (; key[n] && n < sizeof lower - 1; n++)
        lower[n] = (char)tolower((unsigned char)key[n]);
    lower[n] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(lower, words[i]))
            return true;
    return strcmp(lower, "token") == 0 ||
           (n > 6 && strcmp(lower + n - 6, "_token") == 0);
}

/* The row, of either table, that is like what is called KEY elsewhere. */
static const struct et_option *
find_like(const struct et_option *a, const struct et_option *b, const char *key)
{
    char mark;
    const struct et_option *row = eti_option_also(a, key, &mark);
    return row ? row : eti_option_also(b, key, &mark);
}

/* "known: lr, momentum, ..." of the tables, or "" where that is too long for a hint. */
static void
list_keys(const struct et_option *a, const struct et_option *b, char *hint, size_t size)
{
    size_t used = append(hint, size, 0, "known: ");
    const char *before = "";
    for (int i = 0; i < 2; i++)
        for (const struct et_option *row = i ? b : a; row && row->name; row++) {
            used = append(hint, size, used, "%s%s", before, row->name);
            before = ", ";
        }
    if (used >= size || !*before)
        *hint = '\0';
}

void
eti_unknown_key(const struct eti_fill *fill, const struct et_value *v, const char *path,
                const struct et_option *a, const struct et_option *b)
{
    struct et_place at = eti_value_key_place(v);
    if (eti_looks_secret(v->key)) {
        et_diagnostics_add(fill->errors, ET_E_SECRET, &at, path, NULL,
                           "'%s' looks like a secret; recipes are copied and shown",
                           v->key);
        return;
    }
    struct eti_names names = {.n = 0};
    eti_names_add(&names, a);
    eti_names_add(&names, b);
    const struct eti_foreign *f = eti_foreign_find(fill, path, v->key);
    const struct et_option *like = find_like(a, b, v->key);
    const char *near = f      ? f->ours
                       : like ? like->name
                              : et_nearest(v->key, names.v, names.n);
    /* A file's line shows where the key is; elsewhere the whole path must. */
    bool is_file = v->source->origin <= ETI_ORIGIN_RECIPE;
    char key[ETI_PATH_BYTES], meant[ETI_PATH_BYTES];
    eti_path_join(key, is_file ? "" : path, v->key);
    eti_path_join(meant, is_file ? "" : path, near ? near : "");
    if (near) {
        et_diagnostics_add(fill->errors, ET_E_UNKNOWN, &at, is_file ? path : NULL,
                           like ? like->help : NULL,
                           "unknown key '%s' (did you mean '%s'?)", key, meant);
    } else {
        char hint[sizeof((struct et_diagnostic *)0)->hint];
        list_keys(a, b, hint, sizeof hint);
        et_diagnostics_add(fill->errors, ET_E_UNKNOWN, &at, is_file ? path : NULL,
                           *hint ? hint : NULL, "unknown key '%s'", key);
    }
}
