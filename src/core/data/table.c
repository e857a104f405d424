/* SPDX-License-Identifier: Apache-2.0 */
/* table.c: the rows of a CSV file as vectors of numbers.
 *
 * The first line names the columns. Numbers become (x - mean) / std, of the training
 * split alone; a column of `categorical` becomes as many numbers as it has different
 * values, 1 for a row's own and 0 for the others. The target is a class where its cells
 * are texts or task says so, else a number.
 *
 * Which rows are for the test is drawn by split_seed, so that it is the same for all
 * runs: the first test_fraction of a permutation of the rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/csv.h"
#include "core/data/file.h"
#include "core/data/order.h"
#include "etude/data.h"

enum { MOST_KINDS = 1000 };
enum { TASK_AUTO, TASK_CLASSIFICATION, TASK_REGRESSION };
static const char *const task_names[] = {"auto", "classification", "regression", NULL};

struct options {
    struct et_data_options common;
    char *target, *separator;
    struct et_texts categorical, columns;
    int task;
    double test_fraction;
    int64_t split_seed;
    bool standardize, standardize_target;
};

/* A column of the file. */
struct column {
    char *name;        /* in the file's text */
    bool used, kinds;  /* it is read; its cells are kinds, not numbers */
    char **kind;       /* the different ones, in the order of KIND's texts at the end */
    int64_t n, room;   /* of KIND */
    double mean, std;  /* of numbers */
    int64_t at, width; /* its place among the values of a sample */
};

struct state {
    struct eti_csv csv; /* columns' names and kinds lie in its text */
    struct column *column;
    int64_t n_columns;
    int64_t target; /* which column */
    double *cell;   /* [rows, columns]: numbers, or which kind */
    int64_t n_cells, cell_room;
    float *values; /* [n, width]: the split's samples */
    void *targets; /* [n]: float, or int32_t */
    int64_t width;
};

/* ---- reading ---- */

struct reader {
    struct et_ctx *cx;
    const struct options *o;
    struct state *s;
};

static bool
is_among(const struct et_texts *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->v[i], name) == 0)
            return true;
    return false;
}

static et_status
choose_columns(struct reader *r)
{
    const struct options *o = r->o;
    struct state *s = r->s;
    int64_t at;
    s->target = s->n_columns - 1;
    if (o->target)
        ET_TRY(eti_csv_need(&s->csv, "target", o->target, &s->target));
    for (int i = 0; i < o->categorical.n; i++)
        ET_TRY(eti_csv_need(&s->csv, "categorical", o->categorical.v[i], &at));
    for (int i = 0; i < o->columns.n; i++)
        ET_TRY(eti_csv_need(&s->csv, "columns", o->columns.v[i], &at));
    for (int i = 0; i < s->n_columns; i++) {
        struct column *c = &s->column[i];
        c->used = i == s->target || o->columns.n == 0 || is_among(&o->columns, c->name);
        c->kinds = is_among(&o->categorical, c->name) ||
                   (i == s->target && o->task == TASK_CLASSIFICATION);
    }
    return ET_OK;
}

/* Which of the column's kinds the cell is. */
static et_status
find_kind(struct reader *r, struct column *c, const struct eti_cell *cell, double *out)
{
    int64_t i = 0;
    while (i < c->n && strcmp(c->kind[i], cell->text) != 0)
        i++;
    *out = (double)i;
    if (i < c->n)
        return ET_OK;
    if (!*cell->text)
        return eti_csv_refuse(&r->s->csv, cell, "the cell of column '%s' is empty",
                              c->name);
    if (c->n == MOST_KINDS)
        return eti_csv_refuse(&r->s->csv, cell,
                              "column '%s' has more than %d different values", c->name,
                              MOST_KINDS);
    ET_TRY(eti_grow(r->cx, &c->kind, &c->room, c->n + 1, sizeof *c->kind));
    c->kind[c->n++] = cell->text;
    return ET_OK;
}

static et_status
read_value(struct reader *r, int64_t row, int column, const struct eti_cell *cell,
           double *out)
{
    struct column *c = &r->s->column[column];
    bool first_target = row == 0 && column == r->s->target;
    *out = 0;
    if (!c->used)
        return ET_OK;
    if (!c->kinds && eti_cell_number(cell, out))
        return ET_OK;
    if (first_target && r->o->task == TASK_AUTO && *cell->text)
        c->kinds = true;
    if (c->kinds)
        return find_kind(r, c, cell, out);
    et_status status =
        *cell->text
            ? eti_csv_refuse(&r->s->csv, cell, "'%.60s' in column '%s' is not a number",
                             cell->text, c->name)
            : eti_csv_refuse(&r->s->csv, cell, "the cell of column '%s' is empty",
                             c->name);
    if (*cell->text)
        et_hint(r->cx, "categorical: [%s] makes kinds of its values", c->name);
    return status;
}

static et_status
read_rows(struct reader *r)
{
    struct state *s = r->s;
    for (int64_t row = 0;; row++) {
        ET_TRY(eti_grow(r->cx, &s->cell, &s->cell_room, s->n_cells + s->n_columns,
                        sizeof *s->cell));
        bool got;
        ET_TRY(eti_csv_row(&s->csv, &got));
        if (!got)
            return ET_OK;
        for (int i = 0; i < s->n_columns; i++)
            ET_TRY(read_value(r, row, i, &s->csv.cell[i], &s->cell[s->n_cells + i]));
        s->n_cells += s->n_columns;
    }
}

/* ---- kinds in their order ---- */

struct kind {
    char *text;
    int64_t was;
};

/* Numbers by value, then the others by their bytes: were 1a between them by its bytes,
 * 2, 10, 1a and 2 again would be in order. */
static int
by_kind(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    const struct eti_cell one = {.text = x->text}, other = {.text = y->text};
    double v, w;
    const bool is_number = eti_cell_number(&one, &v);
    if (is_number != eti_cell_number(&other, &w))
        return is_number ? -1 : 1;
    if (is_number && v != w)
        return v < w ? -1 : 1;
    return strcmp(x->text, y->text);
}

/* Kinds are numbered as they came: from now on by their order, whichever row is first.
 */
static void
sort_kinds(struct state *s, int column)
{
    struct column *c = &s->column[column];
    struct kind all[MOST_KINDS];
    double now[MOST_KINDS];
    for (int64_t i = 0; i < c->n; i++)
        all[i] = (struct kind){c->kind[i], i};
    qsort(all, (size_t)c->n, sizeof *all, by_kind);
    for (int64_t i = 0; i < c->n; i++) {
        c->kind[i] = all[i].text;
        now[all[i].was] = (double)i;
    }
    for (int64_t at = column; at < s->n_cells; at += s->n_columns)
        s->cell[at] = now[(int)s->cell[at]];
}

/* ---- the split ---- */

/* The rows of a part of the table: the I-th of it is ROW[I]. */
struct rows {
    int64_t *row, n;
};

static int
by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The test rows are those that a permutation has first; each part in the file's order.
 */
static et_status
choose_rows(struct reader *r, bool test, struct rows *out)
{
    int64_t all = r->s->n_cells / r->s->n_columns;
    int64_t n_test = (int64_t)(r->o->test_fraction * (double)all + 0.5);
    int64_t first = test ? 0 : n_test, end = test ? n_test : all;
    struct eti_order order;
    void *block;
    if (end <= first)
        return ET_FAIL(r->cx, ET_EFORMAT,
                       "%s: of %lld rows, test_fraction %g leaves none to %s",
                       r->o->common.path, (long long)all, r->o->test_fraction,
                       test ? "test" : "train");
    ET_TRY(et_alloc(r->cx, (size_t)(end - first) * sizeof *out->row, &block));
    out->row = block;
    out->n = end - first;
    eti_order_init(&order, all, (uint32_t)r->o->split_seed, 0);
    for (int64_t i = first; i < end; i++)
        out->row[i - first] = eti_order_at(&order, i);
    qsort(out->row, (size_t)out->n, sizeof *out->row, by_number);
    return ET_OK;
}

/* Mean and deviation of COLUMN over the rows that are trained on. */
static void
measure(const struct state *s, const struct rows *train, int column)
{
    struct column *c = &s->column[column];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < train->n; i++)
        sum += s->cell[train->row[i] * s->n_columns + column];
    c->mean = sum / (double)train->n;
    for (int64_t i = 0; i < train->n; i++) {
        double d = s->cell[train->row[i] * s->n_columns + column] - c->mean;
        squares += d * d;
    }
    c->std = sqrt(squares / (double)train->n);
    if (c->std == 0)
        c->std = 1;
}

/* ---- samples ---- */

static void
place_columns(struct state *s)
{
    for (int i = 0; i < s->n_columns; i++) {
        struct column *c = &s->column[i];
        if (!c->used || i == s->target)
            continue;
        c->at = s->width;
        c->width = c->kinds ? c->n : 1;
        s->width += c->width;
    }
}

static void
write_values(const struct reader *r, const double *cell, float *out)
{
    const struct state *s = r->s;
    for (int i = 0; i < s->n_columns; i++) {
        const struct column *c = &s->column[i];
        if (c->width == 0)
            continue;
        if (c->kinds)
            out[c->at + (int64_t)cell[i]] = 1;
        else
            out[c->at] = (float)((cell[i] - c->mean) / c->std);
    }
}

static et_status
write_samples(struct reader *r, const struct rows *rows)
{
    struct state *s = r->s;
    const struct column *target = &s->column[s->target];
    void *block;
    ET_TRY(et_alloc(r->cx, (size_t)(rows->n * s->width) * sizeof *s->values, &block));
    s->values = block;
    ET_TRY(et_alloc(r->cx, (size_t)rows->n * sizeof(float), &s->targets));
    for (int64_t i = 0; i < rows->n; i++) {
        const double *cell = s->cell + rows->row[i] * s->n_columns;
        write_values(r, cell, s->values + i * s->width);
        if (target->kinds)
            ((int32_t *)s->targets)[i] = (int32_t)cell[s->target];
        else
            ((float *)s->targets)[i] =
                (float)((cell[s->target] - target->mean) / target->std);
    }
    return ET_OK;
}

static et_status
make_samples(struct reader *r, const struct rows *train, const struct rows *rows)
{
    struct state *s = r->s;
    for (int i = 0; i < s->n_columns; i++) {
        struct column *c = &s->column[i];
        if (c->used && c->kinds)
            sort_kinds(s, i);
        c->std = 1;
        if (c->used && !c->kinds &&
            (i == s->target ? r->o->standardize_target : r->o->standardize))
            measure(s, train, i);
    }
    place_columns(s);
    if (s->width == 0)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s: no column is left beside the target",
                       r->o->common.path);
    return write_samples(r, rows);
}

static void
fill_facts(const struct state *s, int64_t n, struct et_data_facts *f)
{
    const struct column *target = &s->column[s->target];
    *f = (struct et_data_facts){
        .n_samples = n,
        .bytes = n * (s->width + 1) * (int64_t)sizeof(float),
        .class_names = target->kinds ? (const char *const *)target->kind : NULL,
    };
    et_facts_add(f, &(struct et_field){.name = "values",
                                       .kind = ET_FIELD_VALUES,
                                       .dtype = ET_F32,
                                       .ndim = 1,
                                       .shape = {s->width}});
    et_facts_add(f, &(struct et_field){.name = "target",
                                       .kind = ET_FIELD_VALUES,
                                       .dtype = target->kinds ? ET_I32 : ET_F32,
                                       .below = target->kinds ? target->n : 0});
}

/* ---- the class ---- */

static et_status
read_table(struct reader *r)
{
    struct state *s = r->s;
    void *block;
    ET_TRY(eti_csv_open(r->cx, &s->csv, r->o->common.path, r->o->separator));
    ET_TRY(et_alloc(r->cx, (size_t)s->csv.n * sizeof *s->column, &block));
    s->column = block;
    s->n_columns = s->csv.n;
    for (int64_t i = 0; i < s->n_columns; i++)
        s->column[i].name = s->csv.name[i].text;
    ET_TRY(choose_columns(r));
    return read_rows(r);
}

static et_status
open_table(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct state *s = self->state;
    struct reader r = {.cx = cx, .o = o, .s = s};
    struct rows train = {0}, test = {0};
    ET_TRY(read_table(&r));
    et_status status = choose_rows(&r, false, &train);
    if (status == ET_OK && o->common.split == ET_SPLIT_TEST)
        status = choose_rows(&r, true, &test);
    const struct rows *rows = o->common.split == ET_SPLIT_TEST ? &test : &train;
    if (status == ET_OK)
        status = make_samples(&r, &train, rows);
    if (status == ET_OK)
        fill_facts(s, rows->n, &self->facts);
    et_free(cx, train.row);
    et_free(cx, test.row);
    et_free(cx, s->cell);
    s->cell = NULL;
    return status;
}

static et_status
read_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    const struct state *s = self->state;
    (void)why;
    out->v[ET_FIELD_X].data = s->values + at * s->width;
    out->v[ET_FIELD_TARGET].data = (const float *)s->targets + at;
    return ET_OK;
}

static void
close_table(struct et_dataset *self)
{
    struct state *s = self->state;
    for (int64_t i = 0; i < s->n_columns; i++)
        et_free(self->cx, s->column[i].kind);
    et_free(self->cx, s->column);
    et_free(self->cx, s->cell);
    et_free(self->cx, s->values);
    et_free(self->cx, s->targets);
    eti_csv_close(&s->csv);
}

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "CSV file, plain or .gz, whose first line names the columns"),
    ET_DATA_OPTIONS(struct options),
    {
        .name = "target",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, target),
        .flags = ET_OPT_OPTIONAL,
        .help = "column to learn; unset: the last one",
    },
    {
        .name = "task",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, task),
        .def = "auto",
        .choices = task_names,
        .help = "what the target is: classes, or numbers; auto: as its first cell says",
    },
    {
        .name = "categorical",
        .type = ET_OPT_TEXTS,
        .offset = offsetof(struct options, categorical),
        .def = "[]",
        .help = "columns whose cells are kinds and not numbers",
    },
    {
        .name = "columns",
        .type = ET_OPT_TEXTS,
        .offset = offsetof(struct options, columns),
        .def = "[]",
        .help = "columns to learn from; empty: all but the target",
    },
    {
        .name = "separator",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, separator),
        .def = "','",
        .help = "character between cells",
    },
    {
        .name = "standardize",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, standardize),
        .def = "true",
        .help = "numbers get mean 0 and deviation 1, as the training rows have them",
    },
    {
        .name = "standardize_target",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, standardize_target),
        .def = "false",
        .help = "so does a target of numbers",
    },
    {
        .name = "test_fraction",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, test_fraction),
        .def = "0.2",
        .min = 0,
        .max = 1,
        .help = "of the rows, drawn at random, that are for the test",
    },
    {
        .name = "split_seed",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, split_seed),
        .def = "0",
        .max = UINT32_MAX,
        .help = "which rows these are; the run's own seed orders the others",
    },
    {.name = NULL},
};

const struct et_dataset_class et_dataset_table = {
    .info =
        {
            .name = "table",
            .class_name = "Table",
            .summary =
                "rows of a CSV file: numbers and kinds, with a class or a number",
            .source = "RFC 4180",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .open = open_table,
    .sample = read_sample,
    .close = close_table,
};
