/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: et_print is C's printf but for texts, which move no terminal; JSON is JSON
 * with every character that could written as a number. */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "etude/ctx.h"
#include "etude/diagnostic.h"
#include "t/tap.h"

static FILE *to;
static char *got;
static size_t got_n;

static void
begin(void)
{
    free(got);
    got = NULL;
    to = open_memstream(&got, &got_n);
    if (!to)
        bail("no memory");
}

/* Both print the same. */
#define SAME(...)                                                                      \
    do {                                                                               \
        char want[512];                                                                \
        begin();                                                                       \
        et_print(to, __VA_ARGS__);                                                     \
        fclose(to);                                                                    \
        snprintf(want, sizeof want, __VA_ARGS__);                                      \
        is_str(got, want, "%s", #__VA_ARGS__);                                         \
    } while (0)

static void
test_formats(void)
{
    SAME("plain");
    SAME("100 %%, %c and %c", 'x', '\n');
    SAME("%d %i %5d|%-5d|%05d|%+d|% d", 1, -2, 3, 4, 5, 6, 7);
    SAME("%u %x %X %o %#x %#o", 4000000000u, 0xbeefu, 0xbeefu, 8u, 255u, 8u);
    SAME("%hhd %hd %ld %lld", 5, 6, LONG_MIN, LLONG_MAX);
    SAME("%lu %llu %zu %zd", ULONG_MAX, ULLONG_MAX, SIZE_MAX, (ssize_t)-1);
    SAME("%jd %ju %td", INTMAX_MIN, UINTMAX_MAX, (ptrdiff_t)-3);
    SAME("%f %.0f %.3f %8.2f|%-8.2f|%+.1f", 1.5, 2.5, 3.14159, 4.0, 5.0, 6.0);
    SAME("%e %.2e %g %G %a", 12345.678, 0.001, 1e-7, 1e20, 0.5);
    SAME("%g %f %g", INFINITY, -INFINITY, 0.1);
    SAME("%*d|%-*d|%*d", 5, 1, 5, 2, -5, 3);
    SAME("%.*f|%*.*f", 2, 1.005, 9, 3, 2.5);
    SAME("%s|%10s|%-10s|%.2s|%.*s|%*s", "a", "bc", "de", "fgh", 1, "ij", 4, "k");
    SAME("%.0s|%.*s|%3.0s|", "none", 0, "none", "none");
    SAME("%.5d|%8.3d|%-8.3d|", 42, 43, 44);
}

static void
test_texts(void)
{
    const char *const none = getenv("ETUDE_NO_SUCH_VARIABLE");
    begin();
    et_print(to, "%s|%.3s|%6s|%-6s|%s", "a\033[2Jb", "x\ny z", "\t", "\r", none);
    fclose(to);
    is_str(got, "a\\x1b[2Jb|x\\x0ay|  \\x09|\\x0d  |(null)",
           "what a text has that moves a terminal is shown, and counts as it is shown");
    begin();
    et_print(to, "ends\n%s", "\xe2\x80\xae");
    fclose(to);
    ok(strncmp(got, "ends\n", 5) == 0 && !strstr(got, "\xe2\x80\xae"),
       "a format's own ends of lines stay, a change of direction does not");
}

static void
test_json(void)
{
    static const struct {
        const char *text, *want, *name;
    } rows[] = {
        {"{\"a\": \"b\"}\n", "{\"a\": \"b\"}\n", "plain text and ends of lines stay"},
        {"\033[2J", "\\u001b[2J", "an escape is a number"},
        {"a\tb", "a\\u0009b", "so is a tab"},
        {"\x7f", "\\u007f", "and DEL"},
        {"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac", "letters of any kind stay"},
        {"\xe2\x80\xae", "\\u202e", "a change of direction does not"},
        {"a\xff"
         "b",
         "a\\ufffdb", "what is no text is replaced, byte by byte"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        eti_print_json(to, rows[i].text);
        fclose(to);
        is_str(got, rows[i].want, "%s", rows[i].name);
    }
}

int
main(void)
{
    test_formats();
    test_texts();
    test_json();
    free(got);
    return done();
}
