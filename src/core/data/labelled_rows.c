/* SPDX-License-Identifier: Apache-2.0 */
/* labelled_rows.c: see labelled_rows.h. Cells of TSV are what is between tabs: GLUE's
 * files have quotes that do not pair. */
#include "core/data/labelled_rows.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CELLS = 3 };

struct reading {
    struct et_ctx *cx;
    const char *path;
    const char *name[CELLS]; /* of text, text2, label */
    int column[CELLS];       /* TSV: their places; -1: none */
    eti_row_fn *fn;
    void *data;
};

static et_status
give(const struct reading *r, const struct eti_text_cell cell[CELLS], int64_t line)
{
    struct eti_labelled_row row = {cell[0], cell[1], cell[2], line};
    return r->fn(r->data, &row);
}

/* Cell NUMBER of a line; .text is NULL where it has fewer. */
static struct eti_text_cell
cell_at(const char *line, size_t n, int number)
{
    struct eti_text_cell c = {0};
    for (int i = 0; i <= number; i++) {
        const char *tab = n ? memchr(line, '\t', n) : NULL;
        size_t length = tab ? (size_t)(tab - line) : n;
        if (i == number)
            c = (struct eti_text_cell){line, length};
        else if (!tab)
            return c;
        line += length + (tab != NULL);
        n -= length + (tab != NULL);
    }
    return c;
}

static et_status
read_header(struct reading *r, const char *line, size_t n)
{
    for (int k = 0; k < CELLS; k++) {
        struct eti_text_cell c;
        r->column[k] = -1;
        for (int i = 0; r->name[k] && (c = cell_at(line, n, i)).text; i++)
            if (c.n == strlen(r->name[k]) && memcmp(c.text, r->name[k], c.n) == 0)
                r->column[k] = i;
        if (r->name[k] && r->column[k] < 0)
            return ET_FAIL(r->cx, ET_EFORMAT, "%s:1: no column '%s'", r->path,
                           r->name[k]);
    }
    return ET_OK;
}

static et_status
read_tsv(const struct reading *r, const char *line, size_t n, int64_t number)
{
    struct eti_text_cell cell[CELLS] = {0};
    for (int k = 0; k < CELLS; k++) {
        if (r->column[k] < 0)
            continue;
        cell[k] = cell_at(line, n, r->column[k]);
        if (!cell[k].text)
            return ET_FAIL(r->cx, ET_EFORMAT,
                           "%s:%" PRId64 ": no cell in column %d, '%s'", r->path,
                           number, r->column[k] + 1, r->name[k]);
    }
    return give(r, cell, number);
}

static et_status
read_json(const struct reading *r, const char *line, size_t n, int64_t number)
{
    struct eti_text_cell cell[CELLS] = {0};
    json_error_t error;
    char label[64];
    json_t *json = json_loadb(line, n, JSON_ALLOW_NUL, &error);
    if (!json)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s:%" PRId64 ":%d: %s", r->path, number,
                       error.column, error.text);
    et_status s = ET_OK;
    for (int k = 0; k < CELLS && s == ET_OK; k++) {
        const json_t *v = r->name[k] ? json_object_get(json, r->name[k]) : NULL;
        if (json_is_string(v)) {
            cell[k] =
                (struct eti_text_cell){json_string_value(v), json_string_length(v)};
        } else if (k == CELLS - 1 && json_is_number(v)) {
            int length = snprintf(label, sizeof label, "%.9g", json_number_value(v));
            cell[k] = (struct eti_text_cell){label, (size_t)length};
        } else if (r->name[k]) {
            s = ET_FAIL(r->cx, ET_EFORMAT, "%s:%" PRId64 ": no %s called '%s'", r->path,
                        number, k == CELLS - 1 ? "label" : "text", r->name[k]);
        }
    }
    if (s == ET_OK)
        s = give(r, cell, number);
    json_decref(json);
    return s;
}

static bool
is_json(const char *path)
{
    return strstr(path, ".jsonl") || strstr(path, ".ndjson");
}

static et_status
read_lines(struct reading *r, const char *text, size_t n)
{
    bool json = is_json(r->path);
    int64_t number = 1;
    for (size_t at = 0, length; at < n; at += length + 1, number++) {
        const char *end = memchr(text + at, '\n', n - at);
        length = end ? (size_t)(end - (text + at)) : n - at;
        size_t kept = length && text[at + length - 1] == '\r' ? length - 1 : length;
        if (number == 1 && !json)
            ET_TRY(read_header(r, text + at, kept));
        else if (kept > 0)
            ET_TRY(json ? read_json(r, text + at, kept, number)
                        : read_tsv(r, text + at, kept, number));
    }
    return ET_OK;
}

et_status
eti_labelled_rows(struct et_ctx *cx, const char *path,
                  const struct eti_row_names *names, eti_row_fn *fn, void *data)
{
    struct reading r = {
        .cx = cx,
        .path = path,
        .name = {names->text, names->text2, names->label},
        .fn = fn,
        .data = data,
    };
    struct eti_bytes b;
    ET_TRY(eti_file_load(cx, path, ETI_FILE_MAX, &b));
    et_status s = read_lines(&r, (const char *)b.data, (size_t)b.n);
    et_free(cx, b.data);
    return s;
}

bool
eti_split_file(const char *folder, enum et_split split, char out[ETI_PATH_MAX])
{
    static const char *const names[2][4] = {{"train"}, {"dev", "validation", "test"}};
    static const char *const ends[] = {"tsv", "jsonl", "tsv.gz", "jsonl.gz"};
    for (int i = 0; i < 4 && names[split][i]; i++)
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            if (snprintf(out, ETI_PATH_MAX, "%s/%s.%s", folder, names[split][i],
                         ends[k]) < ETI_PATH_MAX &&
                access(out, F_OK) == 0)
                return true;
    return false;
}
