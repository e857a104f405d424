/* SPDX-License-Identifier: Apache-2.0 */
/* mdoc.c: see mdoc.h. */
#include "man/mdoc.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 72 };

/* ---- text ---- */

/* One word of a line of text; FIRST: the line begins with it. Returns its columns. */
static int
put_word(FILE *out, const char *word, size_t n, bool first)
{
    if (first && (*word == '.' || *word == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < n; i++) {
        bool opens = i == 0 || (i == 1 && word[0] == '-');
        if (word[i] == '\\')
            fputs("\\e", out);
        else if (word[i] == '-' && opens)
            fputs("\\-", out); /* an option, a number: a minus and no hyphen */
        else
            putc(word[i], out);
    }
    return (int)n;
}

/* Words whose full stop ends no sentence. */
static bool
is_abbreviation(const char *word, size_t n)
{
    static const char *const list[] = {"al.", "Proc.", "e.g.", "i.e.",
                                       "vs.", "cf.",   NULL};
    for (const char *const *a = list; *a; a++)
        if (strlen(*a) == n && memcmp(*a, word, n) == 0)
            return true;
    return false;
}

/* Does a sentence end with this word? Not with "..." either. */
static bool
ends_sentence(const char *word, size_t n)
{
    while (n > 0 && strchr(")\"'", word[n - 1]))
        n--;
    return n > 1 && strchr(".!?", word[n - 1]) && word[n - 2] != '.' &&
           !is_abbreviation(word, n);
}

void
mdoc_text(FILE *out, const char *text)
{
    int column = 0;
    bool ended = false;
    for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
        size_t n = strcspn(text, " \n");
        bool first = column == 0;
        if (!first && (ended || column + 1 + (int)n > COLUMNS)) {
            putc('\n', out);
            first = true;
            column = 0;
        }
        if (!first) {
            putc(' ', out);
            column++;
        }
        column += put_word(out, text, n, first);
        if (is_abbreviation(text, n))
            fputs("\\&", out);
        ended = ends_sentence(text, n);
        text += n;
    }
    if (column > 0)
        putc('\n', out);
}

void
mdoc_sentence(FILE *out, const char *text)
{
    char line[4096];
    size_t n = strlen(text);
    if (n == 0)
        return;
    snprintf(line, sizeof line, "%c%s%s", toupper((unsigned char)*text), text + 1,
             strchr(".!?:", text[n - 1]) ? "" : ".");
    /* A name stays as it is spelled: key=value, train_data, gpu. */
    size_t word = strcspn(text, " ,;:");
    if (memchr(text, '=', word) || memchr(text, '_', word) ||
        strncmp(text + word, " = ", 3) == 0)
        line[0] = *text;
    mdoc_text(out, line);
}

void
mdoc_word(FILE *out, const char *word)
{
    size_t n = strlen(word);
    /* What is as short as a macro, or all punctuation, could be taken for it. */
    bool quote = strchr(word, ' ') || n == 0;
    if (quote)
        putc('"', out);
    if (n <= 3 || ispunct((unsigned char)*word))
        fputs("\\&", out);
    for (; *word; word++) {
        if (*word == '\\')
            fputs("\\e", out);
        else if (*word == '"')
            fputs("\\(dq", out);
        else if (*word == '-')
            fputs("\\-", out);
        else
            putc(*word, out);
    }
    if (quote)
        putc('"', out);
}

/* ---- prose ---- */

static void
die(const char *path)
{
    fprintf(stderr, "pages: cannot read %s: %s\n", path, strerror(errno));
    exit(1);
}

void
prose_read(struct prose *p, const char *path)
{
    long size = 0;
    FILE *f = fopen(path, "re");
    if (!f && errno != ENOENT)
        die(path);
    if (f && (fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0))
        die(path);
    p->text = calloc(1, (size_t)size + 1);
    if (!p->text)
        die(path);
    if (f) {
        rewind(f);
        if (fread(p->text, 1, (size_t)size, f) != (size_t)size)
            die(path);
        fclose(f);
    }
}

void
prose_release(struct prose *p)
{
    free(p->text);
    p->text = NULL;
}

/* The next line ".Sh ..." at or behind AT, which begins a line; NULL: none. */
static const char *
next_section(const char *at)
{
    if (strncmp(at, ".Sh ", 4) == 0)
        return at;
    at = strstr(at, "\n.Sh ");
    return at ? at + 1 : NULL;
}

const char *
prose_name(const struct prose *p, int i, size_t *n)
{
    const char *at = next_section(p->text);
    for (; at && i > 0; i--)
        at = next_section(at + 4);
    if (!at)
        return NULL;
    *n = strcspn(at + 4, "\n");
    return at + 4;
}

const char *
prose_section(const struct prose *p, const char *name, size_t *n)
{
    const char *at;
    size_t length;
    for (int i = 0; (at = prose_name(p, i, &length)); i++) {
        if (length != strlen(name) || memcmp(at, name, length) != 0)
            continue;
        at += length + (at[length] == '\n');
        const char *end = next_section(at);
        *n = end ? (size_t)(end - at) : strlen(at);
        return at;
    }
    return NULL;
}

/* ---- references ---- */

void
references_add(struct references *r, const char *name, int section)
{
    for (int i = 0; i < r->n; i++)
        if (r->v[i].section == section && strcmp(r->v[i].name, name) == 0)
            return;
    if (r->n == MAX_REFERENCES) {
        fprintf(stderr, "pages: more than %d references\n", MAX_REFERENCES);
        exit(1);
    }
    snprintf(r->v[r->n].name, sizeof r->v[r->n].name, "%s", name);
    r->v[r->n++].section = section;
}

void
references_of(struct references *r, const struct prose *p)
{
    char name[48];
    int section;
    for (const char *at = p->text; (at = strstr(at, ".Xr ")); at += 4)
        if (sscanf(at, ".Xr %47s %d", name, &section) == 2)
            references_add(r, name, section);
}

static int
compare(const void *x, const void *y)
{
    const struct reference *a = x, *b = y;
    return a->section != b->section ? a->section - b->section
                                    : strcmp(a->name, b->name);
}

void
references_print(struct references *r, FILE *out)
{
    qsort(r->v, (size_t)r->n, sizeof *r->v, compare);
    for (int i = 0; i < r->n; i++)
        fprintf(out, ".Xr %s %d%s\n", r->v[i].name, r->v[i].section,
                i + 1 < r->n ? " ," : "");
}
