/* SPDX-License-Identifier: Apache-2.0 */
/* csv_images.c: pictures that a CSV file names, with a class or numbers beside each.
 *
 * The first line names the columns. One has the pictures' files, by paths from the
 * file's own folder or from `images`; others say what is to be learnt: one column of
 * classes or numbers, or several of numbers, which are one target together (of 0 and 1,
 * a picture may have several labels). */
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/csv.h"
#include "core/data/file.h"
#include "core/data/picture_labels.h"

enum { MOST_COLUMNS = 4096, MOST_TARGETS = 1024 };

struct options {
    struct et_data_options common;
    int color;
    char *images, *file_column, *separator;
    struct et_texts target;
    double test_fraction;
    struct eti_label_options labels;
    struct eti_cache_options cache;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "CSV file, plain or .gz, whose first line names the columns"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    ETI_CHANNELS_OPTION(struct options),
    {
        .name = "images",
        .type = ET_OPT_PATH,
        .offset = offsetof(struct options, images),
        .flags = ET_OPT_OPTIONAL,
        .help = "folder that the pictures' paths begin at; unset: the CSV file's",
    },
    {
        .name = "file_column",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, file_column),
        .flags = ET_OPT_OPTIONAL,
        .help = "column of the pictures' files; unset: the first one",
    },
    {
        .name = "target",
        .type = ET_OPT_TEXTS,
        .offset = offsetof(struct options, target),
        .def = "[]",
        .help = "columns to learn; several are of numbers; empty: the last one",
    },
    {
        .name = "separator",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, separator),
        .def = "','",
        .help = "character between cells",
    },
    ETI_TEST_FRACTION_OPTION(struct options),
    ETI_LABEL_OPTIONS(struct options),
    ETI_CACHE_OPTIONS(struct options),
    {.name = NULL},
};

struct reader {
    struct et_ctx *cx;
    const struct options *o;
    struct eti_picture_list *l;
    struct eti_csv csv;
    char folder[ETI_PATH_MAX];    /* that the pictures' paths begin at */
    struct eti_strings columns;   /* their names */
    int64_t file;                 /* the place of file_column */
    int64_t target[MOST_TARGETS]; /* places of columns */
    int64_t n_targets;
    char *cell[MOST_COLUMNS];  /* of the row that is read: in the file's text */
    struct eti_strings labels; /* [rows, n_targets] */
    int64_t *line, line_room;  /* [rows]: where each begins */
};

/* What is wrong with CELL, as "FILE:LINE:COLUMN: ...". */
static et_status ET_PRINTF(3, 4)
    refuse(struct reader *r, const struct eti_cell *cell, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return ET_FAIL(r->cx, ET_EFORMAT, "%s:%lld:%lld: %s", r->o->common.path,
                   (long long)cell->line, (long long)cell->column, text);
}

/* The next cell; *GOT false at the end of the file. */
static et_status
read_cell(struct reader *r, struct eti_cell *out, bool *got)
{
    struct et_error why = {0};
    et_status status;
    *got = eti_csv_next(&r->csv, out, &status, &why);
    return status == ET_OK ? ET_OK : refuse(r, out, "%s", why.message);
}

/* ---- columns ---- */

static et_status
find_column(struct reader *r, const char *option, const char *name, int64_t *out)
{
    for (*out = 0; *out < r->columns.n; ++*out)
        if (strcmp(eti_string(&r->columns, *out), name) == 0)
            return ET_OK;
    return ET_FAIL(r->cx, ET_EINVAL, "%s: %s names '%s', and there is no such column",
                   r->o->common.path, option, name);
}

static et_status
read_columns(struct reader *r)
{
    struct eti_cell cell;
    bool got;
    do {
        ET_TRY(read_cell(r, &cell, &got));
        if (!got)
            return ET_FAIL(r->cx, ET_EFORMAT, "%s: no line that names the columns",
                           r->o->common.path);
        if (r->columns.n == MOST_COLUMNS)
            return refuse(r, &cell, "more than %d columns", MOST_COLUMNS);
        ET_TRY(eti_strings_add(r->cx, &r->columns, cell.text));
    } while (!cell.last);
    return ET_OK;
}

static et_status
choose_columns(struct reader *r)
{
    const struct options *o = r->o;
    if (o->file_column)
        ET_TRY(find_column(r, "file_column", o->file_column, &r->file));
    if (o->target.n > MOST_TARGETS)
        return ET_FAIL(r->cx, ET_EINVAL, "csv_images: more than %d columns of target",
                       MOST_TARGETS);
    for (int i = 0; i < o->target.n; i++)
        ET_TRY(find_column(r, "target", o->target.v[i], &r->target[i]));
    r->n_targets = o->target.n;
    if (o->target.n == 0)
        r->target[r->n_targets++] = r->columns.n - 1;
    for (int64_t i = 0; i < r->n_targets; i++)
        if (r->target[i] == r->file)
            return ET_FAIL(r->cx, ET_EINVAL,
                           "%s: column '%s' is of the pictures, and the target too",
                           o->common.path, eti_string(&r->columns, r->file));
    return ET_OK;
}

/* ---- rows ---- */

static et_status
add_row(struct reader *r, int64_t line)
{
    const struct options *o = r->o;
    const char *name = r->cell[r->file];
    char path[ETI_PATH_MAX];
    const struct eti_picture_at at = {.file = (int32_t)r->l->files.n, .bytes = -1};
    if (o->test_fraction > 0 &&
        !eti_is_of_split(name, o->test_fraction, o->common.split))
        return ET_OK;
    if (name[0] == '/')
        snprintf(path, sizeof path, "%s", name);
    else
        ET_TRY(eti_file_path(r->cx, path, r->folder, name));
    ET_TRY(eti_grow(r->cx, &r->line, &r->line_room, r->l->n + 1, sizeof *r->line));
    r->line[r->l->n] = line;
    for (int64_t i = 0; i < r->n_targets; i++)
        ET_TRY(eti_strings_add(r->cx, &r->labels, r->cell[r->target[i]]));
    ET_TRY(eti_strings_add(r->cx, &r->l->files, path));
    return eti_picture_list_add_at(r->cx, r->l, &at, NULL);
}

static et_status
read_rows(struct reader *r)
{
    for (;;) {
        struct eti_cell cell = {0};
        int64_t n = r->columns.n, line = 0;
        for (int64_t i = 0; i < n; i++) {
            bool got;
            ET_TRY(read_cell(r, &cell, &got));
            if (!got && i == 0)
                return ET_OK;
            if (!got || cell.last != (i == n - 1))
                return refuse(r, &cell, "the line has %s cells than the %lld columns",
                              !got || cell.last ? "fewer" : "more", (long long)n);
            r->cell[i] = cell.text;
            line = i == 0 ? cell.line : line;
            if (i == r->file && !cell.text[0])
                return refuse(r, &cell, "the picture has no name");
        }
        ET_TRY(add_row(r, line));
    }
}

static et_status
take_labels(struct reader *r)
{
    struct et_error why = {0};
    int64_t at;
    et_status status =
        eti_labels_end(r->cx, r->l, &r->labels, r->n_targets, &r->o->labels, &at, &why);
    if (at < 0)
        return status;
    return ET_FAIL(r->cx, status, "%s:%lld: column '%s': %s", r->o->common.path,
                   (long long)r->line[at / r->n_targets],
                   eti_string(&r->columns, r->target[at % r->n_targets]), why.message);
}

/* The folder that the CSV file lies in, unless there is one of pictures. */
static void
find_folder(struct reader *r)
{
    const char *path = r->o->images ? r->o->images : r->o->common.path;
    snprintf(r->folder, sizeof r->folder, "%s", path);
    if (r->o->images)
        return;
    char *slash = strrchr(r->folder, '/');
    if (slash)
        slash[slash == r->folder] = 0;
    else
        snprintf(r->folder, sizeof r->folder, ".");
}

static et_status
read_all(struct reader *r, const struct eti_bytes *file)
{
    eti_csv_begin(&r->csv, (char *)file->data, file->n, *r->o->separator);
    ET_TRY(read_columns(r));
    ET_TRY(choose_columns(r));
    ET_TRY(read_rows(r));
    return take_labels(r);
}

static et_status
read_file(struct reader *r)
{
    struct eti_bytes file;
    void *text;
    ET_TRY(eti_file_load(r->cx, r->o->common.path, ETI_FILE_MAX, &file));
    et_status status = et_alloc(r->cx, (size_t)file.n + 1, &text);
    if (status == ET_OK)
        memcpy(text, file.data, (size_t)file.n);
    et_free(r->cx, file.data);
    ET_TRY(status);
    file.data = text; /* a byte behind it, for the end of its last cell */
    status = read_all(r, &file);
    et_free(r->cx, file.data);
    return status;
}

static et_status
open_csv(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct reader *r;
    if (strlen(o->separator) != 1)
        return ET_FAIL(cx, ET_EINVAL, "csv_images: separator '%s' is not one character",
                       o->separator);
    ET_TRY(et_alloc(cx, sizeof *r, (void **)&r));
    r->cx = cx;
    r->o = o;
    r->l = self->state;
    find_folder(r);
    et_status status = read_file(r);
    eti_strings_free(cx, &r->columns);
    eti_strings_free(cx, &r->labels);
    et_free(cx, r->line);
    et_free(cx, r);
    ET_TRY(status);
    return eti_picture_list_end(cx, self, o->color ? 3 : 1, 0, &o->cache);
}

const struct et_dataset_class et_dataset_csv_images = {
    .info =
        {
            .name = "csv_images",
            .class_name = "CsvImages",
            .summary = "pictures that a CSV file names, with classes or numbers",
            .source = "RFC 4180",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_picture_list),
    .open = open_csv,
    .sample = eti_picture_list_sample,
    .close = eti_picture_list_close,
};
