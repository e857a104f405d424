/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c: see csv.h. As RFC 4180 has it: cells may stand in double quotes, in which a
 * quote is doubled and lines may end; lines end with LF or CR LF. */
#include "core/data/csv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "etude/diagnostic.h"

enum { MOST_COLUMNS = 4096 };

et_status
eti_csv_refuse(const struct eti_csv *c, const struct eti_cell *cell, const char *fmt,
               ...)
{
    char text[512], visible[ET_VISIBLE_MAX + 1]; /* a cell may have lines */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return ET_FAIL(c->cx, ET_EFORMAT, "%s:%lld:%lld: %s", c->path,
                   (long long)cell->line, (long long)cell->column,
                   et_visible(visible, sizeof visible, text, strlen(text)));
}

/* ---- cells ---- */

/* Goes past N bytes of the line. */
static void
pass(struct eti_csv *c, int64_t n)
{
    c->text += n;
    c->column += n;
}

static void
end_line(struct eti_csv *c)
{
    c->line++;
    c->column = 1;
}

static bool
at_line_end(const struct eti_csv *c)
{
    return *c->text == '\n' || (*c->text == '\r' && c->text[1] == '\n');
}

static void
skip_empty_lines(struct eti_csv *c)
{
    while (c->text < c->end && at_line_end(c)) {
        c->text += *c->text == '\r' ? 2 : 1;
        end_line(c);
    }
}

/* What stands in quotes, of which the first has been read; false: they do not end. */
static bool
read_quoted(struct eti_csv *c)
{
    char *to = c->text;
    for (; c->text < c->end; pass(c, 1)) {
        if (*c->text == '"' && c->text[1] != '"') {
            pass(c, 1);
            *to = '\0';
            return true;
        }
        if (*c->text == '"')
            pass(c, 1);
        else if (*c->text == '\n') {
            end_line(c);
            c->column = 0; /* this byte is passed below */
        }
        *to++ = *c->text;
    }
    return false;
}

/* The next cell; *GOT is false at the end of the file. */
static et_status
next_cell(struct eti_csv *c, struct eti_cell *out, bool *got)
{
    if (c->column == 1)
        skip_empty_lines(c);
    *got = c->text < c->end || c->column > 1;
    if (!*got)
        return ET_OK;
    *out = (struct eti_cell){.text = c->text, .line = c->line, .column = c->column};
    if (*c->text == '"') {
        pass(c, 1);
        out->text = c->text;
        if (!read_quoted(c))
            return eti_csv_refuse(c, out, "a quote is not closed");
    }
    char *end = c->text;
    while (c->text < c->end && *c->text != c->separator && !at_line_end(c))
        pass(c, 1);
    end = c->text;
    out->last = *end != c->separator || end == c->end;
    if (out->last) {
        c->text += c->text == c->end ? 0 : *c->text == '\r' ? 2 : 1;
        end_line(c);
    } else {
        pass(c, 1);
    }
    *end = '\0';
    return ET_OK;
}

bool
eti_cell_number(const struct eti_cell *cell, double *out)
{
    char *end;
    *out = strtod(cell->text, &end);
    if (end == cell->text || !isfinite(*out))
        return false;
    return end[strspn(end, " \t")] == '\0';
}

/* ---- columns ---- */

int64_t
eti_csv_find(const struct eti_csv *c, const char *name)
{
    for (int64_t i = 0; i < c->n; i++)
        if (strcmp(c->name[i].text, name) == 0)
            return i;
    return -1;
}

et_status
eti_csv_need(const struct eti_csv *c, const char *option, const char *name,
             int64_t *out)
{
    *out = eti_csv_find(c, name);
    if (*out >= 0)
        return ET_OK;
    return ET_FAIL(c->cx, ET_EINVAL, "%s: %s names '%s', and there is no such column",
                   c->path, option, name);
}

static et_status
add_column(struct eti_csv *c, const struct eti_cell *name)
{
    if (c->n == MOST_COLUMNS)
        return eti_csv_refuse(c, name, "more than %d columns", MOST_COLUMNS);
    if (eti_csv_find(c, name->text) >= 0)
        return eti_csv_refuse(c, name, "there are two columns '%s'", name->text);
    ET_TRY(eti_grow(c->cx, &c->name, &c->room, c->n + 1, sizeof *c->name));
    c->name[c->n++] = *name;
    return ET_OK;
}

/* The first line, and room for a row. */
static et_status
read_names(struct eti_csv *c)
{
    struct eti_cell name;
    void *block;
    bool got;
    do {
        ET_TRY(next_cell(c, &name, &got));
        if (!got)
            return ET_FAIL(c->cx, ET_EFORMAT, "%s: it has no line that names columns",
                           c->path);
        ET_TRY(add_column(c, &name));
    } while (!name.last);
    ET_TRY(et_alloc(c->cx, (size_t)c->n * sizeof *c->cell, &block));
    c->cell = block;
    return ET_OK;
}

/* ---- rows ---- */

et_status
eti_csv_row(struct eti_csv *c, bool *got)
{
    for (int64_t i = 0; i < c->n; i++) {
        ET_TRY(next_cell(c, &c->cell[i], got));
        if (!*got)
            return ET_OK; /* before a row: its last cell says that it is that */
        if (c->cell[i].last != (i == c->n - 1))
            return eti_csv_refuse(c, &c->cell[i],
                                  "the line has %s cells than the %lld columns",
                                  c->cell[i].last ? "fewer" : "more", (long long)c->n);
    }
    return ET_OK;
}

/* ---- files ---- */

et_status
eti_csv_begin(struct et_ctx *cx, struct eti_csv *c, const char *path, char *text,
              int64_t n, char separator)
{
    static const char mark[] = "\xef\xbb\xbf";
    *c = (struct eti_csv){.cx = cx,
                          .path = path,
                          .text = text,
                          .end = text + n,
                          .separator = separator,
                          .line = 1,
                          .column = 1};
    *c->end = '\0';
    if (n >= 3 && memcmp(text, mark, 3) == 0)
        c->text += 3;
    return read_names(c);
}

et_status
eti_csv_open(struct et_ctx *cx, struct eti_csv *c, const char *path,
             const char *separator)
{
    struct eti_bytes file;
    void *text;
    *c = (struct eti_csv){.cx = cx, .path = path};
    if (strlen(separator) != 1)
        return ET_FAIL(cx, ET_EINVAL, "%s: separator '%s' is not one character", path,
                       separator);
    ET_TRY(eti_file_load(cx, path, ETI_FILE_MAX, &file));
    et_status status = eti_alloc_dirty(cx, (size_t)file.n + 1, &text);
    if (status == ET_OK)
        memcpy(text, file.data, (size_t)file.n);
    et_free(cx, file.data);
    ET_TRY(status);
    status = eti_csv_begin(cx, c, path, text, file.n, *separator);
    c->file = (struct eti_bytes){.data = text, .n = file.n};
    return status;
}

void
eti_csv_close(struct eti_csv *c)
{
    et_free(c->cx, c->name);
    et_free(c->cx, c->cell);
    et_free(c->cx, c->file.data);
    *c = (struct eti_csv){0};
}
