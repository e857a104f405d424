/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: text for people, and JSON, in which nothing from outside moves a
 * terminal. */
#include "config.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "etude/diagnostic.h"

/* ---- et_print ---- */

/* A conversion of a format, such as "%-8.3f". */
struct conversion {
    const char *flags;
    int n_flags, width, precision; /* -1: none */
    size_t size;                   /* of a whole number */
    char type;
};

/* A number that a format has, or with * the argument STAR. */
static int
read_number(const char **format, int star)
{
    if (**format == '*') {
        ++*format;
        return star;
    }
    return (int)strtol(*format, (char **)(uintptr_t)format, 10);
}

static size_t
read_size(const char **format)
{
    static const struct {
        const char *text;
        size_t size;
    } lengths[] = {
        {"hh", sizeof(int)},      {"h", sizeof(int)},      {"ll", sizeof(long long)},
        {"l", sizeof(long)},      {"j", sizeof(intmax_t)}, {"z", sizeof(size_t)},
        {"t", sizeof(ptrdiff_t)},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = strlen(lengths[i].text);
        if (strncmp(*format, lengths[i].text, n) == 0) {
            *format += n;
            return lengths[i].size;
        }
    }
    return sizeof(int);
}

static void
put_text(FILE *f, const struct conversion *c, const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    text = text ? text : "(null)";
    size_t n = c->precision < 0 ? strlen(text) : strnlen(text, (size_t)c->precision);
    bool left = memchr(c->flags, '-', (size_t)c->n_flags) != NULL;
    et_visible(visible, sizeof visible, text, n);
    fprintf(f, "%*s", left ? -c->width : c->width, visible);
}

/* C for C's printf; a whole number is an intmax_t. Returns BUF. */
static const char *
spec_of(const struct conversion *c, char buf[64])
{
    char width[16] = "", precision[16] = "";
    if (c->width != 0)
        snprintf(width, sizeof width, "%d", c->width);
    if (c->precision >= 0)
        snprintf(precision, sizeof precision, ".%d", c->precision);
    snprintf(buf, 64, "%%%.*s%s%s%s%c", c->n_flags < 8 ? c->n_flags : 8, c->flags,
             width, precision, strchr("diuxXo", c->type) ? "j" : "", c->type);
    return buf;
}

void
et_print(FILE *f, const char *format, ...)
{
    if (!f || !format)
        return;
    va_list args;
    char spec[64];
    va_start(args, format);
    for (;;) {
        struct conversion c = {.precision = -1};
        int star = 0;
        size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, f);
        format += plain;
        if (*format++ == '\0')
            break;
        c.flags = format;
        format += c.n_flags = (int)strspn(format, "-+ #0");
        star = *format == '*' ? va_arg(args, int) : 0;
        c.width = read_number(&format, star);
        if (*format == '.') {
            star = *++format == '*' ? va_arg(args, int) : 0;
            c.precision = read_number(&format, star);
        }
        c.size = read_size(&format);
        c.type = *format++;
        if (c.type == '%')
            fputc('%', f);
        else if (c.type == 's')
            put_text(f, &c, va_arg(args, const char *));
        else if (c.type == 'c')
            fputc(va_arg(args, int), f);
        else if (strchr("di", c.type))
            fprintf(f, spec_of(&c, spec),
                    c.size == sizeof(int) ? (intmax_t)va_arg(args, int)
                                          : va_arg(args, intmax_t));
        else if (strchr("uxXo", c.type))
            fprintf(f, spec_of(&c, spec),
                    c.size == sizeof(int) ? (uintmax_t)va_arg(args, unsigned)
                                          : va_arg(args, uintmax_t));
        else /* f, g, e, a */
            fprintf(f, spec_of(&c, spec), va_arg(args, double));
    }
    va_end(args);
}

/* ---- JSON ---- */

void
eti_print_json(FILE *f, const char *json)
{
    for (size_t n = strlen(json), length; n > 0; n -= length, json += length) {
        uint32_t u = 0;
        int bytes = eti_utf8_decode(json, n, &u);
        length = bytes > 0 ? (size_t)bytes : 1;
        if (bytes == 0)
            fputs("\\ufffd", f); /* it could be no text in JSON */
        else if (eti_is_hostile(u) && u != '\n')
            fprintf(f, "\\u%04x", (unsigned)u);
        else
            fwrite(json, 1, length, f);
    }
}
