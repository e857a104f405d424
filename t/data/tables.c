/* SPDX-License-Identifier: Apache-2.0 */
/* Tables from CSV files and NumPy's arrays: what becomes of them, and what is refused,
 * where. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "core/data/csv.h"
#include "core/data/fields.h"
#include "core/data/npy.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

struct opened {
    const struct et_dataset_class *type;
    void *options;
    struct et_dataset *data;
};

static et_status
try_open(struct opened *o, const char *name, const char *path, const char *const *set)
{
    *o = (struct opened){.type = et_dataset_find(name)};
    need(cx, et_options_new(cx, &o->type->info, set, &o->options));
    need(cx, et_options_set(cx, o->type->info.options, o->options, "path", path));
    return et_dataset_open(cx, o->type, o->options, &o->data);
}

static void
finish(struct opened *o)
{
    et_dataset_close(&o->data);
    et_options_free(&o->type->info, &o->options);
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Sample AT of O, which may be as long as the data set is open. */
static struct et_sample
sample_of(const struct opened *o, int64_t at)
{
    static struct eti_room room; /* which nothing is read into */
    struct et_sample s;
    struct et_error why = {0};
    bool broken;
    if (eti_sample_read(o->data, at, NULL, &room, &s, &why, &broken) != ET_OK)
        bail("%s", why.message);
    return s;
}

static const float *
floats(const struct et_sample *s, int i)
{
    return s->v[i].data;
}

/* ---- tables ---- */

static const char people[] = "\xef\xbb\xbf"
                             "age,town,\"height, cm\",likes\r\n"
                             "20,Ulm,170,tea\r\n"
                             "30,\"Bad \"\"Ems\"\"\",180,coffee\n"
                             "40,Ulm,160,tea\n"
                             "50,Aue,190,coffee\n"
                             "\n"
                             "60,Ulm,175,mate";

static void
test_table(void)
{
    char path[600];
    struct opened o;
    snprintf(path, sizeof path, "%s",
             write_file("people.csv", people, sizeof people - 1, false));
    need(cx, try_open(&o, "table", path,
                      SET("categorical", "[town]", "test_fraction", "0")));
    const struct et_data_facts *f = &o.data->facts;
    ok(f->n_samples == 5 && f->n_fields == 2 && f->field[0].ndim == 1 &&
           f->field[0].shape[0] == 5 && f->field[1].dtype == ET_I32 &&
           et_facts_classes(f) == 3,
       "two numbers and three towns are five values, and three drinks are classes");
    ok(strcmp(f->class_names[0], "coffee") == 0 &&
           strcmp(f->class_names[1], "mate") == 0,
       "which are in their order, whichever comes first");
    /* Ages 20 to 60: mean 40, deviation sqrt(200); heights: 175, 10. */
    struct et_sample s = sample_of(&o, 1);
    const float want[] = {(float)(-10 / sqrt(200)), 0, 1, 0, 0.5F};
    int same = 0;
    for (int i = 0; i < 5; i++)
        same += fabsf(floats(&s, 0)[i] - want[i]) < 1e-6F;
    is_int(same, 5, "numbers are standardised, kinds are told apart, quotes are read");
    ok(*(const int32_t *)s.v[1].data == 0 &&
           *(const int32_t *)sample_of(&o, 4).v[1].data == 1,
       "a sample has its class");
    finish(&o);

    need(cx, try_open(&o, "table", path,
                      SET("target", "age", "columns", "['height, cm']", "standardize",
                          "false", "test_fraction", "0")));
    ok(o.data->facts.field[0].shape[0] == 1 && o.data->facts.field[1].dtype == ET_F32 &&
           o.data->facts.field[1].ndim == 0 && et_facts_classes(&o.data->facts) == 0,
       "a column of numbers is a number to learn");
    s = sample_of(&o, 2);
    ok(floats(&s, 0)[0] == 160 && floats(&s, 1)[0] == 40,
       "as it stands, where asked for");
    finish(&o);
    need(cx, try_open(&o, "table", path,
                      SET("target", "age", "columns", "['height, cm']", "task",
                          "classification", "test_fraction", "0")));
    ok(et_facts_classes(&o.data->facts) == 5 &&
           strcmp(o.data->facts.class_names[0], "20") == 0,
       "or a class, where task says so");
    finish(&o);
}

/* By their bytes alone 1a is between 10 and 2. */
static void
test_order_of_kinds(void)
{
    static const char *const rows[] = {"2", "10", "1a", "-3", "b"};
    static const char *const want[] = {"-3", "2", "10", "1a", "b"};
    for (int first = 0; first < 5; first++) {
        char text[64] = "x,y\n";
        struct opened o;
        for (int i = 0; i < 5; i++) {
            size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, "%d,%s\n", i, rows[(first + i) % 5]);
        }
        need(cx,
             try_open(&o, "table", write_file("kinds.csv", text, strlen(text), false),
                      SET("task", "classification", "test_fraction", "0")));
        int same = 0;
        for (int i = 0; i < 5; i++)
            same += strcmp(o.data->facts.class_names[i], want[i]) == 0;
        is_int(same, 5, "classes are in one order where '%s' comes first", rows[first]);
        finish(&o);
    }
}

/* 100 rows of x = row: who is where, and by whose mean and deviation. */
static void
test_splits(void)
{
    static char text[4096];
    char path[600], seen[100] = {0};
    size_t n = (size_t)snprintf(text, sizeof text, "x,y\n");
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d,%d\n", i, i);
    snprintf(path, sizeof path, "%s", write_file("rows.csv", text, n, true));
    struct opened o[2];
    double sum = 0, squares = 0;
    int twice = 0, apart = 0;
    for (int k = 0; k < 2; k++) {
        need(cx, try_open(&o[k], "table", path,
                          SET("split", k ? "test" : "train", "test_fraction", "0.3")));
        is_int(o[k].data->facts.n_samples, k ? 30 : 70, "rows to %s",
               k ? "test" : "train");
        for (int64_t i = 0; i < o[k].data->facts.n_samples; i++) {
            struct et_sample s = sample_of(&o[k], i);
            int row = (int)floats(&s, 1)[0];
            twice += seen[row]++;
            sum += k ? 0 : row;
            squares += k ? 0 : row * row;
        }
    }
    is_int(twice, 0, "no row is in both");
    double mean = sum / 70, std = sqrt(squares / 70 - mean * mean);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < o[k].data->facts.n_samples; i++) {
            struct et_sample s = sample_of(&o[k], i);
            apart += fabs((double)floats(&s, 0)[0] -
                          ((double)floats(&s, 1)[0] - mean) / std) > 1e-5;
        }
    is_int(apart, 0, "both are standardised by the rows that are trained on");
    struct opened other;
    need(cx, try_open(&other, "table", path,
                      SET("split", "test", "test_fraction", "0.3", "split_seed", "1")));
    int same = 0;
    for (int64_t i = 0; i < 30; i++) {
        struct et_sample a = sample_of(&other, i), b = sample_of(&o[1], i);
        same += floats(&a, 1)[0] == floats(&b, 1)[0];
    }
    ok(same < 15, "another split_seed draws others");
    finish(&other);
    finish(&o[0]);
    finish(&o[1]);
}

static void
test_bad_tables(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "bad.csv: it has no line that names columns"},
        {"a,b\n", "bad.csv: of 0 rows, test_fraction 0 leaves none to train"},
        {"a,a\n1,2\n", "bad.csv:1:3: there are two columns 'a'"},
        {"a,b\n1,2\n3,x\n", "bad.csv:3:3: 'x' in column 'b' is not a number"},
        {"a,b\n1,2\nnan,3\n", "bad.csv:3:1: 'nan' in column 'a' is not a number"},
        {"a,b\n1,2\n,3\n", "bad.csv:3:1: the cell of column 'a' is empty"},
        {"a,b\n1,2\n1\n", "bad.csv:3:1: the line has fewer cells than the 2 columns"},
        {"a,b\n1,2\n1,2,3\n",
         "bad.csv:3:3: the line has more cells than the 2 columns"},
        {"a,b\n\"1,2\n1,2\n", "bad.csv:2:1: a quote is not closed"},
        {"a,b\n\"1\",2\n\n1x,2", "bad.csv:4:1: '1x' in column 'a' is not a number"},
        {"a\n1\n", "bad.csv: no column is left beside the target"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opened o;
        const char *path =
            write_file("bad.csv", rows[i].text, strlen(rows[i].text), false);
        et_status status = try_open(&o, "table", path, SET("test_fraction", "0"));
        const char *said = take_error(cx);
        ok(status == ET_EFORMAT && strstr(said, rows[i].says), "refused: %s", said);
        finish(&o);
    }
    struct opened o;
    const char *path = write_file("good.csv", "a,b\n1,2\n", 8, false);
    is_int(try_open(&o, "table", path, SET("categorical", "[c]")), ET_EINVAL,
           "a column that is not there is refused");
    ok(strstr(take_error(cx), "categorical names 'c', and there is no such column") !=
           NULL,
       "by its name");
    finish(&o);
}

/* ---- arrays ---- */

static void
put(uint8_t *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(v >> 8 * i);
}

/* A zip of files as they are; DEFLATED says that they are packed, and lies. */
struct zip {
    uint8_t bytes[8192], directory[1024];
    size_t n, n_directory;
    int files;
};

static void
add_file(struct zip *z, const char *name, const uint8_t *bytes, size_t n, bool deflated)
{
    uint8_t *at = z->bytes + z->n, *entry = z->directory + z->n_directory;
    size_t length = strlen(name);
    uLong crc = crc32(0, bytes, (uInt)n);
    memset(at, 0, 30);
    memcpy(at, "PK\3\4", 4);
    put(at + 8, deflated ? 8 : 0, 2);
    put(at + 14, crc, 4);
    put(at + 18, n, 4);
    put(at + 22, n, 4);
    put(at + 26, length, 2);
    memcpy(at + 30, name, length);
    memcpy(at + 30 + length, bytes, n);
    memset(entry, 0, 46);
    memcpy(entry, "PK\1\2", 4);
    put(entry + 10, deflated ? 8 : 0, 2);
    put(entry + 16, crc, 4);
    put(entry + 20, n, 4);
    put(entry + 24, n, 4);
    put(entry + 28, length, 2);
    put(entry + 42, z->n, 4);
    memcpy(entry + 46, name, length);
    z->n += 30 + length + n;
    z->n_directory += 46 + length;
    z->files++;
}

static size_t
end_zip(struct zip *z)
{
    uint8_t *end = z->bytes + z->n + z->n_directory;
    memcpy(z->bytes + z->n, z->directory, z->n_directory);
    memset(end, 0, 22);
    memcpy(end, "PK\5\6", 4);
    put(end + 8, (uint64_t)z->files, 2);
    put(end + 10, (uint64_t)z->files, 2);
    put(end + 12, z->n_directory, 4);
    put(end + 16, z->n, 4);
    return z->n + z->n_directory + 22;
}

enum { N = 6 };
static uint8_t images[N][4][3], masks[N][4][3];
static double prices[N];

static void
make_arrays(struct zip *z, bool deflated)
{
    static uint8_t npy[4096];
    memset(z, 0, sizeof *z);
    for (int i = 0; i < N; i++) {
        prices[i] = i / 4.0;
        for (int k = 0; k < 12; k++) {
            images[i][k / 3][k % 3] = (uint8_t)(20 * i + k);
            masks[i][k / 3][k % 3] = (uint8_t)(k == 11 ? 255 : (i + k) % 3);
        }
    }
    add_file(z, "x.npy", npy, make_npy(npy, "|u1", "(6, 4, 3)", images, sizeof images),
             deflated);
    add_file(z, "y.npy", npy, make_npy(npy, "|u1", "(6, 4, 3)", masks, sizeof masks),
             deflated);
    add_file(z, "price.npy", npy, make_npy(npy, "<f8", "(6,)", prices, sizeof prices),
             deflated);
}

static void
test_arrays(void)
{
    static struct zip z;
    struct opened o;
    make_arrays(&z, false);
    const char *path = write_file("all.npz", z.bytes, end_zip(&z), false);
    need(cx, try_open(&o, "npy", path, SET("others", "[price]")));
    const struct et_data_facts *f = &o.data->facts;
    ok(f->n_samples == N && f->n_fields == 3 && f->field[0].kind == ET_FIELD_IMAGE &&
           f->field[0].shape[0] == 1 && f->field[0].shape[1] == 4 &&
           f->field[1].kind == ET_FIELD_MASK && f->field[1].below == 3 &&
           strcmp(f->field[2].name, "price") == 0 && f->field[2].dtype == ET_F64,
       "an .npz has images with a mask and a number");
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        struct et_sample s = sample_of(&o, i);
        const struct et_pixels *p = &s.v[0].pixels, *q = &s.v[1].pixels;
        for (int k = 0; k < 12; k++)
            wrong += p->data[k / 3 * p->stride_y + k % 3] != images[i][k / 3][k % 3] ||
                     q->data[k / 3 * q->stride_y + k % 3] != masks[i][k / 3][k % 3];
        wrong += *(const double *)s.v[2].data != i / 4.0;
        wrong += eti_sample_is_read(&s, 0);
    }
    is_int(wrong, 0, "read where they lie");
    finish(&o);
    make_arrays(&z, true);
    path = write_file("all.npz", z.bytes, end_zip(&z), false);
    is_int(try_open(&o, "npy", path, NULL), ET_EFORMAT,
           "one that is packed is refused");
    ok(strstr(et_error_get(cx)->hint, "np.savez writes what is read") != NULL,
       "and what to do");
    et_error_clear(cx);
    finish(&o);
    make_arrays(&z, false);
    z.bytes[400]++;
    path = write_file("all.npz", z.bytes, end_zip(&z), false);
    is_int(try_open(&o, "npy", path, NULL), ET_EFORMAT, "so is one that is damaged");
    et_error_clear(cx);
    finish(&o);
    make_arrays(&z, false);
    add_file(&z, "y.npy", z.bytes, 8, false);
    path = write_file("all.npz", z.bytes, end_zip(&z), false);
    is_int(try_open(&o, "npy", path, NULL), ET_EFORMAT,
           "so is one with two of a name, though they are the last");
    ok(strstr(et_error_get(cx)->message, "'y.npy' is there twice") != NULL,
       "and the sentence says so: %s", et_error_get(cx)->message);
    et_error_clear(cx);
    finish(&o);
    make_arrays(&z, false);
    path = write_file("all.npz", z.bytes, end_zip(&z), false);
    is_int(try_open(&o, "npy", path,
                    SET("others", "[price, price, price, price, price, price, price]")),
           ET_EINVAL, "and more arrays than a sample has fields");
    ok(strstr(et_error_get(cx)->message, "more than 8 arrays") != NULL,
       "and the sentence says so: %s", et_error_get(cx)->message);
    et_error_clear(cx);
    finish(&o);
    /* A folder of .npy files, with parts. */
    static uint8_t npy[4096];
    char folder[400], name[32];
    int32_t tokens[2][3] = {{5, 6, 7}, {8, 9, 4}};
    float numbers[2][2] = {{1, 2}, {3, 4}};
    snprintf(folder, sizeof folder, "%s/arrays", scratch_folder());
    mkdir(folder, 0777);
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "arrays/%s", k ? "test" : "train");
        char whole[500];
        snprintf(whole, sizeof whole, "%s/%s", scratch_folder(), name);
        mkdir(whole, 0777);
        snprintf(name, sizeof name, "arrays/%s/x.npy", k ? "test" : "train");
        tokens[0][0] += k;
        write_file(name, npy, make_npy(npy, "<i4", "(2, 3)", tokens, sizeof tokens),
                   false);
        snprintf(name, sizeof name, "arrays/%s/y.npy", k ? "test" : "train");
        write_file(name, npy, make_npy(npy, "<f4", "(2, 2)", numbers, sizeof numbers),
                   false);
    }
    for (int k = 0; k < 2; k++) {
        need(cx, try_open(&o, "npy", folder, SET("split", k ? "test" : "train")));
        f = &o.data->facts;
        struct et_sample s = sample_of(&o, 0);
        ok(f->field[0].kind == ET_FIELD_TOKENS && f->field[0].below == 10 &&
               f->field[1].ndim == 1 && f->field[1].shape[0] == 2 &&
               ((const int32_t *)s.v[0].data)[0] == 5 + k && floats(&s, 1)[1] == 2,
           "a folder has tokens with numbers to learn, to %s", k ? "test" : "train");
        finish(&o);
    }
    write_file("arrays/test/y.npy", npy,
               make_npy(npy, "<i4", "(2, 3)", tokens, sizeof tokens), false);
    need(cx, try_open(&o, "npy", folder, SET("split", "test")));
    f = &o.data->facts;
    ok(f->field[1].kind == ET_FIELD_TOKENS && f->field[1].below == 10,
       "or with tokens to guess");
    finish(&o);
}

/* A folder with an .npz for each part. */
static void
test_parts(void)
{
    static struct zip z;
    static uint8_t npy[256];
    static const int count[] = {3, 2};
    char folder[400], name[32], shape[16];
    double v[3] = {1, 2, 3};
    snprintf(folder, sizeof folder, "%s/parts", scratch_folder());
    mkdir(folder, 0777);
    for (int k = 0; k < 2; k++) {
        memset(&z, 0, sizeof z);
        snprintf(shape, sizeof shape, "(%d, 1)", count[k]);
        size_t n = make_npy(npy, "<f8", shape, v, (size_t)count[k] * sizeof *v);
        add_file(&z, "x.npy", npy, n, false);
        add_file(&z, "y.npy", npy, n, false);
        snprintf(name, sizeof name, "parts/%s.npz", et_split_names[k]);
        write_file(name, z.bytes, end_zip(&z), false);
    }
    for (int k = 0; k < 2; k++) {
        struct opened o;
        need(cx, try_open(&o, "npy", folder, SET("split", et_split_names[k])));
        is_int(o.data->facts.n_samples, count[k], "a folder has an .npz, to %s",
               et_split_names[k]);
        finish(&o);
    }
}

static void
test_bad_arrays(void)
{
    static uint8_t npy[4096];
    static const struct {
        const char *type, *shape, *says;
        size_t bytes;
    } rows[] = {
        {">f4", "(2,)", "its numbers are '>f4'", 8},
        {"<u2", "(2,)", "and not u1, b1, i4, i8, f2, f4 or f8", 4},
        {"<f4", "(2, -1)", "the shape in the header is none", 8},
        {"<f4", "(2, 4611686018427387904)", "more numbers than there can be", 8},
        {"<f4", "(1, 1, 1, 1, 1, 1, 1)", "more than 6 axes", 8},
        {"<f4", "()", "has no samples", 4},
        {"<f4", "(0, 3)", "has no samples", 0},
        {"<f4", "(4,)", "is cut off: 8 bytes of 16", 8},
    };
    char folder[400];
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opened o;
        write_file(
            "x.npy", npy,
            make_npy(npy, rows[i].type, rows[i].shape, npy + 2048, rows[i].bytes),
            false);
        et_status status = try_open(&o, "npy", folder, SET("target", "''"));
        const char *said = take_error(cx);
        ok(status == ET_EFORMAT && strstr(said, rows[i].says), "refused: %s", said);
        finish(&o);
    }
    int held = 0;
    for (int64_t length = 0; length < 128; length++) {
        struct eti_npy is;
        struct et_error why = {0};
        held += eti_npy_parse(npy, length, &is, &why) == ET_OK;
    }
    is_int(held, 0, "no header that is cut off is one");
}

/* Headers of every version, dtype and number of axes say the same. */
static void
test_headers(void)
{
    static const struct {
        const char *descr;
        enum et_dtype dtype;
    } type[] = {{"|u1", ET_U8},  {"|b1", ET_U8},  {"<i4", ET_I32}, {"<i8", ET_I64},
                {"<f2", ET_F16}, {"<f4", ET_F32}, {"<f8", ET_F64}};
    static const char *const shape[] = {"()", "(300,)", "(3, 5)", "(2, 3, 4)"};
    static const int64_t count[] = {1, 300, 15, 24};
    uint8_t first[256], npy[256];
    for (int version = 1; version <= 3; version++) {
        const int64_t begin = version == 1 ? 10 : 12;
        bool same = true;
        for (int i = 0; i < 7 * 4; i++) {
            struct eti_npy is;
            struct et_error why = {0};
            const int64_t bytes =
                count[i % 4] * (int64_t)et_dtype_size(type[i / 4].dtype);
            make_npy(first, type[i / 4].descr, shape[i % 4], "", 0);
            memcpy(npy, "\x93NUMPY\0\0\x76\0\0\0", 12);
            npy[6] = (uint8_t)version;
            memcpy(npy + begin, first + 10, 118);
            same = same && eti_npy_parse(npy, begin + 118, &is, &why) == ET_OK &&
                   is.dtype == type[i / 4].dtype && is.ndim == i % 4 &&
                   is.bytes == bytes && is.header == begin + 118;
        }
        ok(same, "headers of version %d are read, of each dtype and shape", version);
    }
}

int
main(void)
{
    cx = need_ctx();
    test_table();
    test_order_of_kinds();
    test_splits();
    test_bad_tables();
    test_arrays();
    test_parts();
    test_bad_arrays();
    test_headers();
    et_ctx_free(&cx);
    return done();
}
