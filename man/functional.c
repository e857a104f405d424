/* SPDX-License-Identifier: Apache-2.0 */
/* functional.c: of etude-functional(3) and etude-dist(3), the functions, from the
 * header that declares them: what a comment says stands below what it is about. */
#include "man/tables.h"

#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "man/mdoc.h"

enum { WIDTH = 72, MOST = 4096 };

static char *
read_header(const char *path)
{
    FILE *f = fopen(path, "re");
    static char text[1 << 17];
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (!f || ferror(f) || n == sizeof text - 1) {
        fprintf(stderr, "pages: cannot read %s: %s\n", path, strerror(errno));
        exit(1);
    }
    fclose(f);
    text[n] = '\0';
    return text;
}

/* One part of TEXT, up to END, with single blanks, into OUT. */
static void
squeeze(const char *text, const char *end, char *out)
{
    size_t n = 0;
    for (; text < end && n < MOST - 1; text++) {
        bool blank = *text == ' ' || *text == '\n';
        if (!blank)
            out[n++] = *text;
        else if (n > 0 && out[n - 1] != ' ' && out[n - 1] != '(')
            out[n++] = ' ';
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

/* The words of a comment, up to END: without the stars in front of its lines. */
static void
print_comment(FILE *out, const char *text, const char *end)
{
    char plain[MOST], words[MOST];
    size_t n = 0;
    for (; text < end && n < MOST - 1; text++) {
        plain[n++] = *text;
        if (text[0] == '\n' && text[1] == ' ' && text[2] == '*')
            text += 2;
    }
    squeeze(plain, plain + n, words);
    mdoc_text(out, words);
}

/* How much of TEXT stands on one line in any case: a parameter with its comma. */
static size_t
part_length(const char *text)
{
    const char *comma = strstr(text, ", ");
    return comma ? (size_t)(comma - text) + 1 : strlen(text);
}

/* TEXT in lines of WIDTH, all but the first indented. */
static void
print_filled(FILE *out, const char *text)
{
    size_t at = 0;
    while (*text) {
        size_t n = part_length(text);
        if (at > 0 && at + 1 + n > WIDTH) {
            fputs("\n   ", out);
            at = 3;
        }
        at += (size_t)fprintf(out, "%s%.*s", at ? " " : "", (int)n, text);
        text += n + (text[n] == ' ');
    }
    putc('\n', out);
}

/* The declarations from TEXT to END, each of which ends with a semicolon. */
static void
print_declarations(FILE *out, const char *text, const char *end)
{
    static const char status[] = "ET_NODISCARD ";
    char line[MOST];
    bool any = false;
    while (text < end) {
        int depth = 0;
        const char *stop = text;
        for (; stop < end && (*stop != ';' || depth); stop++)
            depth += (*stop == '{') - (*stop == '}');
        squeeze(text, stop < end ? stop + 1 : end, line);
        const char *from = line;
        if (strncmp(from, status, sizeof status - 1) == 0)
            from += sizeof status - 1;
        /* that a struct is there says nothing */
        if (*from && !(strncmp(from, "struct ", 7) == 0 && !strchr(from, '('))) {
            fputs(any ? "" : ".Bd -literal\n", out);
            print_filled(out, from);
            any = true;
        }
        text = stop + (stop < end);
    }
    fputs(any ? ".Ed\n.Pp\n" : "", out);
}

void
functional_body(const char *path, FILE *out)
{
    const char *at = strstr(read_header(path), "extern \"C\" {");
    const char *end = at ? strstr(at, "#ifdef __cplusplus\n}") : NULL;
    fputs(".Sh FUNCTIONS\n", out);
    for (at = at ? strstr(at, "\n/* ") : NULL; at && end && at < end;) {
        const char *close = strstr(at, "*/");
        const char *next = strstr(close, "\n/* ");
        if (!next || next > end)
            next = end;
        print_declarations(out, close + 2, next);
        print_comment(out, at + 4, close);
        at = next < end ? next : NULL;
    }
}
