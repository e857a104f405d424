/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c: see csv.h. As RFC 4180 has it: cells may stand in double quotes, in which a
 * quote is doubled and lines may end; lines end with LF or CR LF. */
#include "core/data/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/file.h"

void
eti_csv_begin(struct eti_csv *c, char *text, int64_t n, char separator)
{
    static const char mark[] = "\xef\xbb\xbf";
    *c = (struct eti_csv){
        .text = text, .end = text + n, .separator = separator, .line = 1, .column = 1};
    *c->end = '\0';
    if (n >= 3 && memcmp(text, mark, 3) == 0)
        c->text += 3;
}

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
        else if (*c->text == '\n')
            end_line(c);
        *to++ = *c->text;
    }
    return false;
}

bool
eti_csv_next(struct eti_csv *c, struct eti_cell *out, et_status *status,
             struct et_error *why)
{
    *status = ET_OK;
    if (c->column == 1)
        skip_empty_lines(c);
    if (c->text >= c->end && c->column == 1)
        return false;
    *out = (struct eti_cell){.text = c->text, .line = c->line, .column = c->column};
    if (*c->text == '"') {
        pass(c, 1);
        out->text = c->text;
        if (!read_quoted(c)) {
            *status = eti_why(why, ET_EFORMAT, "a quote is not closed");
            return false;
        }
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
    return true;
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
