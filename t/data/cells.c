/* SPDX-License-Identifier: Apache-2.0 */
/* CSV files: where cells begin and end, which are numbers, what tables make of them,
 * and what the labels beside pictures are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/csv.h"
#include "core/data/fields.h"
#include "core/data/picture_list.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- cells ---- */

/* Writes the cells of TEXT to OUT, each with the line and column where it begins. */
static void
cells_of(const char *text, char separator, char *out, size_t size)
{
    char copy[256];
    struct eti_csv c;
    size_t n = 0;
    bool got = true;
    snprintf(copy, sizeof copy, "%s", text);
    need(cx, eti_csv_begin(cx, &c, "x.csv", copy, (int64_t)strlen(text), separator));
    for (int64_t i = 0; i < c.n; i++)
        n += (size_t)snprintf(out + n, size - n, "[%s]", c.name[i].text);
    for (;;) {
        need(cx, eti_csv_row(&c, &got));
        if (!got)
            break;
        for (int64_t i = 0; i < c.n; i++)
            n += (size_t)snprintf(out + n, size - n, " %d:%d=%s", (int)c.cell[i].line,
                                  (int)c.cell[i].column, c.cell[i].text);
    }
    eti_csv_close(&c);
}

static void
test_cells(void)
{
    static const struct {
        const char *text;
        char separator;
        const char *want;
    } rows[] = {
        {"a,b\n1,22\n3,4", ',', "[a][b] 2:1=1 2:3=22 3:1=3 3:3=4"},
        {"a,b\r\n1,22\r\n", ',', "[a][b] 2:1=1 2:3=22"},
        {"a,b\n1,\n,\n", ',', "[a][b] 2:1=1 2:3= 3:1= 3:2="},
        {"a,b\n1,", ',', "[a][b] 2:1=1 2:3="},
        {"a;b\n1,5;2\n", ';', "[a][b] 2:1=1,5 2:5=2"},
        {"a\tb\n 1\t2 \n", '\t', "[a][b] 2:1= 1 2:4=2 "},
        {"\n\r\na,b\n\n\r\n\n1,2\n\n", ',', "[a][b] 7:1=1 7:3=2"},
        {"a,b\n1\r2,3\n", ',', "[a][b] 2:1=1\r2 2:5=3"},
        {"a,b\n\"1,2\",3\n", ',', "[a][b] 2:1=1,2 2:7=3"},
        {"a,b\n\"say \"\"x\"\"\",3\n", ',', "[a][b] 2:1=say \"x\" 2:13=3"},
        {"a,b\n\"\",\"\"\n", ',', "[a][b] 2:1= 2:4="},
        {"a,b\n\"u\nvw\",x\ny,z\n", ',', "[a][b] 2:1=u\nvw 3:5=x 4:1=y 4:3=z"},
        {"a,b\n\"\n\",x\n", ',', "[a][b] 2:1=\n 3:3=x"},
        {"\xef\xbb\xbf\"a\",b\n1,2\n", ',', "[a][b] 2:1=1 2:3=2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[256];
        cells_of(rows[i].text, rows[i].separator, got, sizeof got);
        is_str(
            got, rows[i].want,
            "the cells of text %d have their contents and the places where they begin",
            (int)i);
    }
}

static void
test_numbers(void)
{
    static const struct {
        char text[16];
        double want; /* NaN: none */
    } rows[] = {{"1", 1},     {" 2.5", 2.5}, {"-3e2 \t", -300}, {"+.5", 0.5},
                {"", NAN},    {" ", NAN},    {"1x", NAN},       {"1 2", NAN},
                {"inf", NAN}, {"nan", NAN},  {"1e999", NAN},    {"x", NAN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct eti_cell cell = {.text = (char *)rows[i].text};
        double v;
        const bool is = eti_cell_number(&cell, &v);
        ok(is == !isnan(rows[i].want) && (!is || v == rows[i].want),
           "the cell '%s' is %s", rows[i].text, is ? "a number" : "no number");
    }
}

/* ---- data sets ---- */

struct opened {
    const struct et_dataset_class *type;
    struct et_dataset *data;
};

static et_status
try_open(struct opened *o, const char *name, const char *path, const char *const *set)
{
    void *options;
    *o = (struct opened){.type = et_dataset_find(name)};
    need(cx, et_options_new(cx, &o->type->info, set, &options));
    need(cx, et_options_set(cx, o->type->info.options, options, "path", path));
    et_status status = et_dataset_open(cx, o->type, options, &o->data);
    et_options_free(&o->type->info, &options);
    return status;
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Opens TEXT as a file of the data set NAME. SAYS: a part of the sentence that refuses
 * it; NULL: it is opened. */
static void
expect(struct opened *o, const char *name, const char *text, const char *const *set,
       const char *says)
{
    char path[600];
    snprintf(path, sizeof path, "%s",
             write_file("rows.csv", text, strlen(text), false));
    et_status status = try_open(o, name, path, set);
    if (!says) {
        need(cx, status);
        return;
    }
    const char *said = take_error(cx);
    ok(status != ET_OK && strstr(said, says), "a data set is refused: %s", said);
    et_dataset_close(&o->data);
}

/* Number K of field I of sample AT, valid as long as the data are open. */
static double
number(const struct opened *o, int64_t at, int i, int k)
{
    static struct eti_room room;
    struct et_sample s;
    struct et_error why = {0};
    bool broken;
    s.facts = &o->data->facts;
    if (eti_sample_read(o->data, at, NULL, &room, &s, &why, &broken) != ET_OK)
        bail("%s", why.message);
    return o->data->facts.field[i].dtype == ET_I32
               ? ((const int32_t *)s.v[i].data)[k]
               : (double)((const float *)s.v[i].data)[k];
}

/* ---- tables ---- */

static void
test_separators(void)
{
    struct opened o;
    static const char text[] = "a;b\n1;5\n2;7\n";
    expect(&o, "table", text, SET("separator", ";", "test_fraction", "0"), NULL);
    ok(o.data->facts.n_samples == 2 && number(&o, 1, 1, 0) == 7,
       "a table's cells may be separated by another character than a comma");
    et_dataset_close(&o.data);
    expect(&o, "table", text, SET("separator", ";;"), "';;' is not one character");
    expect(&o, "table", text, SET("separator", "''"), "'' is not one character");
}

/* The values 1, 4, 7 of column 'a' have mean 4 and deviation sqrt(6); 'c' is always 5.
 */
static void
test_standards(void)
{
    static const char text[] = "a,c,y\n1,5,10\n4,5,20\n7,5,60\n";
    for (int k = 0; k < 4; k++) {
        struct opened o;
        expect(&o, "table", text,
               SET("standardize", k & 1 ? "true" : "false", "standardize_target",
                   k & 2 ? "true" : "false", "test_fraction", "0"),
               NULL);
        const double a = k & 1 ? 3 / sqrt(6) : 7, c = k & 1 ? 0 : 5;
        const double y = k & 2 ? 30 / sqrt(1400.0 / 3) : 60;
        ok(fabs(number(&o, 2, 0, 0) - a) < 1e-6 && number(&o, 2, 0, 1) == c &&
               fabs(number(&o, 2, 1, 0) - y) < 1e-5,
           "a table has numbers %s and the target %s; a column of equal numbers "
           "becomes 0",
           k & 1 ? "standardised" : "as they are", k & 2 ? "standardised" : "as it is");
        is_int(o.data->facts.bytes, 3 * 3 * 4,
               "a table counts three numbers of four bytes for each row");
        et_dataset_close(&o.data);
    }
}

static void
test_kinds(void)
{
    struct opened o;
    expect(&o, "table", "n,y\n10,b\n9,a\n100,b\n9,a\n",
           SET("categorical", "[n]", "test_fraction", "0"), NULL);
    int wrong = o.data->facts.field[0].shape[0] != 3;
    static const int place[] = {1, 0, 2, 0}, class[] = {1, 0, 1, 0};
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++)
            wrong += number(&o, i, 0, k) != (k == place[i]);
        wrong += number(&o, i, 1, 0) != class[i];
    }
    is_int(wrong, 0, "categories that are numbers are ordered by value: 9, 10, 100");
    et_dataset_close(&o.data);
    expect(&o, "table", "x,y\n1,a\n2,7\n3,12\n", SET("test_fraction", "0"), NULL);
    ok(et_facts_classes(&o.data->facts) == 3 &&
           strcmp(o.data->facts.class_names[0], "7") == 0 &&
           strcmp(o.data->facts.class_names[2], "a") == 0 && number(&o, 1, 1, 0) == 0,
       "a target whose first label is a text has its labels as classes");
    et_dataset_close(&o.data);
    expect(&o, "table", "x,y\na,1\n,2\n", SET("categorical", "[x]"),
           "rows.csv:3:1: the cell of column 'x' is empty");
    expect(&o, "table", "x,y\n1,3\n2,b\n", NULL,
           "rows.csv:3:3: 'b' in column 'y' is not a number");
}

/* Tables of 1000 categories and of one more; of 4096 columns and of one more. */
static void
test_most(void)
{
    struct opened o;
    static char text[1 << 16];
    for (int n = 1000; n <= 1001; n++) {
        size_t used = (size_t)snprintf(text, sizeof text, "x,y\n");
        for (int i = 0; i < n; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "k%d,%d\n", i, i);
        expect(&o, "table", text, SET("categorical", "[x]", "test_fraction", "0"),
               n == 1000 ? NULL
                         : "1002:1: column 'x' has more than 1000 different values");
        if (n == 1000)
            is_int(o.data->facts.field[0].shape[0], 1000,
                   "a column may have 1000 categories");
        et_dataset_close(&o.data);
    }
    for (int n = 4096; n <= 4097; n++) {
        size_t used = 0;
        for (int row = 0; row < 2; row++)
            for (int i = 0; i < n; i++)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%d%c",
                                         row ? "" : "c", i, i + 1 < n ? ',' : '\n');
        expect(&o, "table", text, SET("test_fraction", "0"),
               n == 4096 ? NULL : "more than 4096 columns");
        if (n == 4096)
            is_int(o.data->facts.field[0].shape[0], 4095,
                   "a table may have 4096 columns");
        et_dataset_close(&o.data);
    }
}

/* Each test_fraction of ten rows leaves so many to test; both parts keep the file's
 * order. */
static void
test_fractions(void)
{
    static const struct {
        const char *fraction;
        int want;
    } rows[] = {{"0.04", 0}, {"0.05", 1}, {"0.24", 2}, {"0.25", 3}, {"0.94", 9}};
    static const char text[] =
        "x,y\n0,0\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n7,7\n8,8\n9,9\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int falls = 0, n[2];
        for (int k = 0; k < 2; k++) {
            struct opened o;
            const char *const *set =
                SET("test_fraction", rows[i].fraction, "split", k ? "test" : "train");
            expect(&o, "table", text, set,
                   k && rows[i].want == 0
                       ? "of 10 rows, test_fraction 0.04 leaves none "
                         "to test"
                       : NULL);
            n[k] = o.data ? (int)o.data->facts.n_samples : 0;
            for (int at = 1; at < n[k]; at++)
                falls += number(&o, at, 1, 0) <= number(&o, at - 1, 1, 0);
            et_dataset_close(&o.data);
        }
        ok(n[0] == 10 - rows[i].want && n[1] == rows[i].want && falls == 0,
           "a test_fraction of %s leaves %d of ten rows to test, in the file's order",
           rows[i].fraction, n[1]);
    }
    struct opened o;
    expect(&o, "table", text, SET("test_fraction", "1"),
           "of 10 rows, test_fraction 1 leaves none to train");
}

/* ---- pictures of a list ---- */

static const char *
file_at(const struct opened *o, int64_t at)
{
    const struct eti_picture_list *l = o->data->state;
    return eti_string(&l->files, at);
}

static void
test_paths(void)
{
    struct opened o;
    char want[700];
    static const char text[] = "y,file,z\n1,a.png,/r/b.png\n0,/q/c.png,d/e.png\n";
    expect(&o, "csv_images", text,
           SET("file_column", "file", "target", "[y]", "images", "/pictures"), NULL);
    ok(strcmp(file_at(&o, 0), "/pictures/a.png") == 0 &&
           strcmp(file_at(&o, 1), "/q/c.png") == 0,
       "relative paths of pictures begin at the option images, absolute ones stay");
    et_dataset_close(&o.data);
    expect(&o, "csv_images", text, SET("file_column", "z", "target", "[y]"), NULL);
    snprintf(want, sizeof want, "%s/d/e.png", scratch_folder());
    ok(strcmp(file_at(&o, 0), "/r/b.png") == 0 && strcmp(file_at(&o, 1), want) == 0,
       "relative paths of pictures begin at the CSV file's folder by default");
    et_dataset_close(&o.data);
    expect(&o, "csv_images", text, SET("file_column", "z"),
           "column 'z' is of the pictures, and the target too");
    expect(&o, "csv_images", text, SET("file_column", "z", "target", "[y, z]"),
           "column 'z' is of the pictures, and the target too");
    expect(&o, "csv_images", text, SET("file_column", "w"),
           "file_column names 'w', and there is no such column");
    expect(&o, "csv_images", "file|y\na|1\n|2\n", SET("separator", "'|'"),
           "rows.csv:3:1: the picture has no name");
}

/* The type, the number of classes and the values that the four labels of column y
 * become. */
static void
test_labels(void)
{
    static const struct {
        const char *labels[4], *set[5];
        int64_t classes; /* 0: they are numbers */
        double want[4];
    } rows[] = {
        {{"2", "0", "1.0", " 4"}, {NULL}, 5, {2, 0, 1, 4}},
        {{"2", "0", "1", "4"}, {"num_classes", "5"}, 5, {2, 0, 1, 4}},
        {{"2", "0", "1", "4"}, {"num_classes", "9"}, 9, {2, 0, 1, 4}},
        {{"2", "0", "1", "4.5"}, {NULL}, 0, {2, 0, 1, 4.5}},
        {{"2", "0", "-1", "4"}, {NULL}, 0, {2, 0, -1, 4}},
        {{"2", "0", "1", "16777216"}, {NULL}, 0, {2, 0, 1, 16777216}},
        {{"2", "0", "1", "16777215"}, {NULL}, 16777216, {2, 0, 1, 16777215}},
        {{"2", "0", "1", "4"}, {"task", "regression"}, 0, {2, 0, 1, 4}},
        {{"2", "0.5", "1", "4"}, {"task", "classification"}, 4, {2, 0, 1, 3}},
        {{"2", "10", "1", "x"}, {NULL}, 4, {2, 1, 0, 3}},
        {{"2", "10", "10", "2"}, {"classes", "[10, 7, 2]"}, 3, {2, 0, 0, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opened o;
        char text[256];
        size_t n = (size_t)snprintf(text, sizeof text, "file,y\n");
        for (int k = 0; k < 4; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%d.png,%s\n", k,
                                  rows[i].labels[k]);
        expect(&o, "csv_images", text, rows[i].set, NULL);
        const struct et_field *f = &o.data->facts.field[1];
        int wrong = et_facts_classes(&o.data->facts) != rows[i].classes ||
                    f->dtype != (rows[i].classes ? ET_I32 : ET_F32) || f->ndim != 0;
        const struct eti_picture_list *l = o.data->state;
        for (int k = 0; k < 4; k++)
            wrong += (rows[i].classes ? l->label[k] : (double)l->values[k]) !=
                     rows[i].want[k];
        is_int(wrong, 0, "the labels %s, %s, %s, %s are read as %s", rows[i].labels[0],
               rows[i].labels[1], rows[i].labels[2], rows[i].labels[3],
               rows[i].classes ? "classes" : "numbers");
        et_dataset_close(&o.data);
    }
}

/* A fault in one of several target columns names this column, and the line where its
 * row begins. */
static void
test_named(void)
{
    struct opened o;
    static const char text[] = "file,x,y,z\na,1,2,3\n\n\"b\n\",4,5,6\n"
                               "c,7,8,9\nd,10,eleven,12\n";
    expect(&o, "csv_images", text, SET("target", "[z, x, y]"),
           "rows.csv:7: column 'y': 'eleven' is not a number");
    expect(&o, "csv_images", text, SET("target", "[x]", "num_classes", "7"),
           "rows.csv:6: column 'x': the class 7, and num_classes is 7");
    expect(&o, "csv_images", "file,y\na,k\n\nb,\n", NULL,
           "rows.csv:4: column 'y': the label is empty");
    expect(&o, "csv_images", text, SET("target", "[z, x]"), NULL);
    const struct eti_picture_list *l = o.data->state;
    static const float want[] = {3, 1, 6, 4, 9, 7, 12, 10};
    ok(o.data->facts.field[1].shape[0] == 2 &&
           memcmp(l->values, want, sizeof want) == 0,
       "several target columns come in the order of the option target");
    et_dataset_close(&o.data);
}

int
main(void)
{
    cx = need_ctx();
    test_cells();
    test_numbers();
    test_separators();
    test_standards();
    test_kinds();
    test_most();
    test_fractions();
    test_paths();
    test_labels();
    test_named();
    et_ctx_free(&cx);
    return done();
}
