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

enum { MOST_TARGETS = 1024 };

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
    int64_t file;                 /* the place of file_column */
    int64_t target[MOST_TARGETS]; /* places of columns */
    int64_t n_targets;
    struct eti_strings labels; /* [rows, n_targets] */
    int64_t *line, line_room;  /* [rows]: where each begins */
    struct eti_strings rest;   /* likewise of the other split's rows, which come last */
    int64_t *rest_line, n_rest, rest_room;
};

/* ---- columns ---- */

static et_status
choose_columns(struct reader *r)
{
    const struct options *o = r->o;
    if (o->file_column)
        ET_TRY(eti_csv_need(&r->csv, "file_column", o->file_column, &r->file));
    if (o->target.n > MOST_TARGETS)
        return ET_FAIL(r->cx, ET_EINVAL, "csv_images: more than %d columns of target",
                       MOST_TARGETS);
    for (int i = 0; i < o->target.n; i++)
        ET_TRY(eti_csv_need(&r->csv, "target", o->target.v[i], &r->target[i]));
    r->n_targets = o->target.n;
    if (o->target.n == 0)
        r->target[r->n_targets++] = r->csv.n - 1;
    for (int64_t i = 0; i < r->n_targets; i++)
        if (r->target[i] == r->file)
            return ET_FAIL(r->cx, ET_EINVAL,
                           "%s: column '%s' is of the pictures, and the target too",
                           o->common.path, r->csv.name[r->file].text);
    return ET_OK;
}

/* ---- rows ---- */

/* A row of the other split: its labels alone. */
static et_status
add_other_row(struct reader *r)
{
    const struct eti_cell *cell = r->csv.cell;
    ET_TRY(eti_grow(r->cx, &r->rest_line, &r->rest_room, r->n_rest + 1,
                    sizeof *r->rest_line));
    r->rest_line[r->n_rest++] = cell->line;
    for (int64_t i = 0; i < r->n_targets; i++)
        ET_TRY(eti_strings_add(r->cx, &r->rest, cell[r->target[i]].text));
    return ET_OK;
}

static et_status
add_row(struct reader *r)
{
    const struct options *o = r->o;
    const struct eti_cell *cell = r->csv.cell;
    const char *name = cell[r->file].text;
    char path[ETI_PATH_MAX];
    const struct eti_picture_at at = {.file = (int32_t)r->l->files.n, .bytes = -1};
    if (!name[0])
        return eti_csv_refuse(&r->csv, &cell[r->file], "the picture has no name");
    if (o->test_fraction > 0 &&
        !eti_is_of_split(name, o->test_fraction, o->common.split))
        return add_other_row(r);
    if (name[0] == '/')
        snprintf(path, sizeof path, "%s", name);
    else
        ET_TRY(eti_file_path(r->cx, path, r->folder, name));
    ET_TRY(eti_grow(r->cx, &r->line, &r->line_room, r->l->n + 1, sizeof *r->line));
    r->line[r->l->n] = cell->line;
    for (int64_t i = 0; i < r->n_targets; i++)
        ET_TRY(eti_strings_add(r->cx, &r->labels, cell[r->target[i]].text));
    ET_TRY(eti_strings_add(r->cx, &r->l->files, path));
    return eti_picture_list_add_at(r->cx, r->l, &at, NULL);
}

static et_status
read_rows(struct reader *r)
{
    for (;;) {
        bool got;
        ET_TRY(eti_csv_row(&r->csv, &got));
        if (!got)
            return ET_OK;
        ET_TRY(add_row(r));
    }
}

static et_status
take_labels(struct reader *r)
{
    struct et_error why = {0};
    int64_t at;
    for (int64_t i = 0; i < r->rest.n; i++)
        ET_TRY(eti_strings_add(r->cx, &r->labels, eti_string(&r->rest, i)));
    et_status status =
        eti_labels_end(r->cx, r->l, &r->labels, r->n_targets, &r->o->labels, &at, &why);
    if (at < 0)
        return status;
    const int64_t row = at / r->n_targets;
    return ET_FAIL(
        r->cx, status, "%s:%lld: column '%s': %s", r->o->common.path,
        (long long)(row < r->l->n ? r->line[row] : r->rest_line[row - r->l->n]),
        r->csv.name[r->target[at % r->n_targets]].text, why.message);
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
read_all(struct reader *r)
{
    ET_TRY(eti_csv_open(r->cx, &r->csv, r->o->common.path, r->o->separator));
    ET_TRY(choose_columns(r));
    ET_TRY(read_rows(r));
    return take_labels(r);
}

static et_status
open_csv(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct reader *r;
    ET_TRY(et_alloc(cx, sizeof *r, (void **)&r));
    r->cx = cx;
    r->o = o;
    r->l = self->state;
    find_folder(r);
    et_status status = read_all(r);
    eti_csv_close(&r->csv);
    eti_strings_free(cx, &r->labels);
    eti_strings_free(cx, &r->rest);
    et_free(cx, r->line);
    et_free(cx, r->rest_line);
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
