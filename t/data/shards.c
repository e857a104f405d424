/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures and tokens that many lie in a file: CSV lists, webdataset's tar shards,
 * MosaicML's MDS shards, as these programs wrote them (t/golden/make_shards.py); and
 * the cache of decoded pictures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/fields.h"
#include "core/data/mds.h"
#include "core/data/members.h"
#include "etude/tokenizer.h"
#include "t/data/fixture.h"
#include "t/image/pictures.h"
#include "t/tap.h"

enum { PATH_MOST = 4096, SIDE = 12 };

static struct et_ctx *cx;

/* ---- files ---- */

/* The path of NAME in the test's folder; the folders that it lies in are made. */
static const char *
place(const char *name)
{
    static char path[PATH_MOST];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    for (char *at = strchr(path + strlen(scratch_folder()) + 1, '/'); at;
         at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    return path;
}

static void
put(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(place(name), "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        bail("cannot write %s", name);
}

static void
put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/* A seed of t/fuzz, without its first byte, to BYTES; how long it is. */
static size_t
seed(const char *name, uint8_t bytes[1 << 16])
{
    char path[128];
    snprintf(path, sizeof path, "t/fuzz/shards-seeds/%s", name);
    FILE *f = fopen(source_path(path), "rb");
    if (!f || fgetc(f) < 0)
        bail("cannot read %s", path);
    size_t n = fread(bytes, 1, 1 << 16, f);
    fclose(f);
    return n;
}

static void
put_seed(const char *name, const char *from)
{
    static uint8_t bytes[1 << 16];
    size_t n = seed(from, bytes);
    put(name, bytes, n);
}

static void
put_picture(const char *name, const char *from)
{
    static struct picture_file p;
    picture_load(&p, from);
    put(name, p.bytes, p.n);
}

/* ---- data sets ---- */

struct opened {
    const struct et_dataset_class *type;
    struct et_dataset *data;
    struct eti_room room;
    struct et_sample sample;
};

/* SET: name, text, ..., NULL, of options besides the path. */
/* Data whose description, without their files, differed from what was opened. */
static int n_described, n_misdescribed;

static void
compare_described(const struct et_dataset_class *type, const void *options,
                  const struct et_data_facts *opened)
{
    struct et_data_facts told = {.n_fields = 0};
    if (!type->describe)
        return;
    type->describe(options, &told);
    bool same = told.n_fields == opened->n_fields &&
                (told.n_tokens == 0 || told.n_tokens == opened->n_tokens);
    for (int i = 0; i < told.n_fields && same; i++) {
        const struct et_field *a = &told.field[i], *b = &opened->field[i];
        same = strcmp(a->name, b->name) == 0 && a->dtype == b->dtype &&
               a->ndim == b->ndim && (a->below <= 0 || a->below == b->below);
        for (int k = 0; k < a->ndim && same; k++)
            same = a->shape[k] < 0 || a->shape[k] == b->shape[k];
    }
    n_described++;
    n_misdescribed += !same;
    if (!same)
        diag("%s is described otherwise than it is", type->info.name);
}

static et_status
try_open(struct opened *o, const char *name, const char *path, const char *const *set)
{
    void *options = NULL;
    *o = (struct opened){.type = et_dataset_find(name)};
    need(cx, et_options_new(cx, &o->type->info, set, &options));
    need(cx, et_options_set(cx, o->type->info.options, options, "path", place(path)));
    et_status status = et_dataset_open(cx, o->type, options, &o->data);
    if (status == ET_OK)
        compare_described(o->type, options, &o->data->facts);
    et_options_free(&o->type->info, &options);
    return status;
}

static void
finish(struct opened *o)
{
    et_dataset_close(&o->data);
    eti_room_free(&o->room);
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
refused(et_status want, const char *message, const char *name, const char *path,
        const char *const *set, const char *why)
{
    struct opened o;
    is_int(try_open(&o, name, path, set), want, "%s is refused", why);
    const char *got = take_error(cx);
    ok(strstr(got, message) != NULL, "and the sentence says so: %s", got);
    finish(&o);
}

static const struct et_sample *
read_at(struct opened *o, int64_t at)
{
    struct et_error why = {0};
    bool broken;
    if (eti_sample_read(o->data, at, NULL, &o->room, &o->sample, &why, &broken) !=
        ET_OK)
        bail("%s", why.message);
    return &o->sample;
}

static int32_t
label_at(struct opened *o, int64_t at)
{
    return *(const int32_t *)read_at(o, at)->v[1].data;
}

/* Are the bytes of sample AT's picture those of SEED? */
static bool
is_picture(struct opened *o, int64_t at, const char *from)
{
    static struct picture_file p;
    const struct et_sample_value *v = &read_at(o, at)->v[0];
    picture_load(&p, from);
    return v->data && v->shape[0] == (int64_t)p.n && memcmp(v->data, p.bytes, p.n) == 0;
}

/* ---- CSV ---- */

static void
csv(void)
{
    struct opened o;
    put_picture("csv/p/a.png", "rgb.png");
    put_picture("csv/p/b.jpg", "444.jpg");
    put_text("csv/list.csv", "file,kind,x,y\np/a.png,dog,0.5,1\np/b.jpg,cat,-2,3e1\n");
    need(cx, try_open(&o, "csv_images", "csv/list.csv", SET("target", "[kind]")));
    const struct et_data_facts *f = &o.data->facts;
    ok(f->n_samples == 2 && et_facts_classes(f) == 2 &&
           strcmp(f->class_names[0], "cat") == 0 && label_at(&o, 0) == 1 &&
           label_at(&o, 1) == 0,
       "names of a column are classes, in the order of their bytes");
    ok(is_picture(&o, 0, "rgb.png") && is_picture(&o, 1, "444.jpg"),
       "paths begin at the file's folder");
    finish(&o);
    need(cx, try_open(&o, "csv_images", "csv/list.csv", SET("target", "[x, y]")));
    const float *v = read_at(&o, 1)->v[1].data;
    ok(o.data->facts.field[1].ndim == 1 && o.data->facts.field[1].shape[0] == 2 &&
           v[0] == -2 && v[1] == 30,
       "several columns of numbers are one target");
    finish(&o);
    need(cx, try_open(&o, "csv_images", "csv/list.csv",
                      SET("target", "[kind]", "classes", "[dog, bird, cat]")));
    ok(et_facts_classes(&o.data->facts) == 3 && label_at(&o, 0) == 0 &&
           label_at(&o, 1) == 2,
       "the user's order of classes counts, also of those that no row has");
    finish(&o);
    put_text("csv/alike.csv", "file,kind\np/a.png,Cat\np/b.jpg,cat\np/a.png,ca\n"
                              "p/b.jpg,cats\n");
    need(cx, try_open(&o, "csv_images", "csv/alike.csv",
                      SET("classes", "[ca, Cat, cats, cat]")));
    ok(label_at(&o, 0) == 1 && label_at(&o, 1) == 3 && label_at(&o, 2) == 0 &&
           label_at(&o, 3) == 2,
       "classes are whole names, and none is one that begins so");
    finish(&o);
    refused(ET_EFORMAT, "alike.csv:5: column 'kind': the class 'cats' is not one of",
            "csv_images", "csv/alike.csv", SET("classes", "[ca, Cat, cat]"),
            "nor is one that only begins as one of the list");
    need(cx, try_open(&o, "csv_images", "csv/list.csv", NULL));
    ok(o.data->facts.field[1].dtype == ET_I32 && et_facts_classes(&o.data->facts) == 31,
       "whole numbers are classes, of the last column where none is named");
    finish(&o);
    need(cx, try_open(&o, "csv_images", "csv/list.csv", SET("task", "regression")));
    ok(o.data->facts.field[1].dtype == ET_F32 && o.data->facts.field[1].ndim == 0,
       "or numbers to learn, where the task says so");
    finish(&o);
    refused(ET_EFORMAT, "list.csv:3: column 'kind': the class 'cat' is not one of",
            "csv_images", "csv/list.csv", SET("target", "[kind]", "classes", "[dog]"),
            "a class that the list has not");
    refused(ET_EFORMAT, "list.csv:2: column 'kind': 'dog' is not a number",
            "csv_images", "csv/list.csv", SET("target", "[x, kind]"),
            "text among numbers");
    refused(ET_EFORMAT, "the class 30, and num_classes is 9", "csv_images",
            "csv/list.csv", SET("num_classes", "9"), "a class beyond the number");
    refused(ET_EINVAL, "target names 'z', and there is no such column", "csv_images",
            "csv/list.csv", SET("target", "[z]"), "a column that is not there");
    put_text("csv/short.csv", "file,kind\na.png,1\nb.png\n");
    refused(ET_EFORMAT, "short.csv:3:1: the line has fewer cells than the 2 columns",
            "csv_images", "csv/short.csv", NULL, "a short line");
}

/* ---- patterns ---- */

static void
patterns(void)
{
    struct eti_strings s = {0};
    need(cx, eti_strings_of_pattern(cx, "a{08..11}/{x,yy}.tar", &s));
    ok(s.n == 8 && strcmp(eti_string(&s, 0), "a08/x.tar") == 0 &&
           strcmp(eti_string(&s, 7), "a11/yy.tar") == 0,
       "braces stand for texts and for numbers with zeros in front");
    eti_strings_free(cx, &s);
    need(cx, eti_strings_of_pattern(cx, "{2..0}", &s));
    ok(s.n == 3 && strcmp(eti_string(&s, 0), "2") == 0, "numbers may go down");
    eti_strings_free(cx, &s);
    is_int(eti_strings_of_pattern(cx, "a{1", &s), ET_EINVAL,
           "an open brace is refused");
    take_error(cx);
    eti_strings_free(cx, &s);
}

/* ---- tar ---- */

static void
tar(void)
{
    struct opened o;
    put_seed("wds/s-00.tar", "tar-webdataset");
    put_seed("wds/s-01.tar", "tar-webdataset");
    need(cx, try_open(&o, "tar_shards", "wds/s-{00..01}.tar", NULL));
    ok(o.data->facts.n_samples == 6 && et_facts_classes(&o.data->facts) == 6,
       "shards follow each other, and numbers of .cls are classes");
    ok(label_at(&o, 0) == 2 && label_at(&o, 1) == 0 && label_at(&o, 5) == 5,
       "each sample has its own");
    ok(is_picture(&o, 4, "444.jpg") && is_picture(&o, 0, "rgb.png") &&
           is_picture(&o, 5, "alpha.png"),
       "and its picture, read in any order");
    finish(&o);
    need(cx, try_open(&o, "tar_shards", "wds", SET("target", "json")));
    ok(o.data->facts.n_samples == 6 && o.data->facts.class_names &&
           strcmp(o.data->facts.class_names[2], "kind 5") == 0 && label_at(&o, 5) == 2,
       "a folder has its .tar files, and JSON its texts");
    finish(&o);
    refused(ET_EFORMAT, "no number or text 'of' in it", "tar_shards", "wds",
            SET("target", "json", "json_key", "of"), "another key, of a list,");
    put_seed("long/gnu.tar", "tar-gnu");
    put_seed("long/pax.tar", "tar-pax");
    need(cx, try_open(&o, "tar_shards", "long", NULL));
    ok(o.data->facts.n_samples == 2 &&
           strcmp(o.data->facts.class_names[0], "a kind") == 0 &&
           is_picture(&o, 0, "rgb.png") && is_picture(&o, 1, "rgb.png"),
       "long names of GNU and pax are read, and links passed over");
    finish(&o);
    int64_t n[2];
    for (int i = 0; i < 2; i++) {
        need(cx, try_open(&o, "tar_shards", "wds/s-00.tar",
                          SET("split", i ? "test" : "train", "test_fraction", "0.75")));
        n[i] = o.data->facts.n_samples;
        finish(&o);
    }
    ok(n[0] == 2 && n[1] == 1, "a fraction of the keys is to test with, by a hash");
}

static void
tar_masks(void)
{
    struct opened o;
    put_seed("m/m.tar", "tar-masks");
    need(cx, try_open(&o, "tar_shards", "m/m.tar", SET("num_classes", "12")));
    const struct et_field *f = &o.data->facts.field[1];
    ok(o.data->facts.n_samples == 1 && f->kind == ET_FIELD_MASK && f->below == 12 &&
           is_picture(&o, 0, "rgb.png"),
       "KEY.seg.png is the mask of KEY.png, and a file without a point is no sample");
    finish(&o);
    refused(ET_EINVAL, "num_classes is missing", "tar_shards", "m/m.tar", NULL,
            "a mask without a number of classes");
}

static void
bad_tar(void)
{
    static uint8_t bytes[1 << 16];
    size_t n = seed("tar-webdataset", bytes);
    put("bad/cut.tar", bytes, 5700);
    refused(ET_EFORMAT, "cut.tar: it ends within the member at byte 5120", "tar_shards",
            "bad/cut.tar", NULL, "a file that ends early");
    memcpy(bytes, "\x1f\x8b\x08", 3);
    put("bad/gz.tar", bytes, n);
    refused(ET_ENOTSUP, "gunzip it first", "tar_shards", "bad/gz.tar", NULL,
            "a compressed one");
    n = seed("tar-webdataset", bytes);
    bytes[3] ^= 1;
    put("bad/bit.tar", bytes, n);
    refused(ET_EFORMAT, "bit.tar: it does not begin as a tar file does", "tar_shards",
            "bad/bit.tar", NULL, "a header that is damaged");
    bytes[3] ^= 1;
    put("bad/no.tar", bytes, n);
    refused(ET_EFORMAT, "no.tar: sample a/000 has no file that ends in one of cls2",
            "tar_shards", "bad/no.tar", SET("target", "cls2"), "a missing label");
    refused(ET_ENOENT, "there is no such file", "tar_shards", "bad/none.tar", NULL,
            "no file");
}

/* An index is of its shards' sizes and times. */
static void
changed_tar(void)
{
    struct opened o;
    put_seed("new/s.tar", "tar-webdataset");
    need(cx, try_open(&o, "tar_shards", "new/s.tar", NULL));
    is_int(o.data->facts.n_samples, 3, "a shard is indexed");
    finish(&o);
    put_seed("new/s.tar", "tar-pax");
    need(cx, try_open(&o, "tar_shards", "new/s.tar", NULL));
    is_int(o.data->facts.n_samples, 1, "and again when it has changed");
    finish(&o);
}

/* ---- MDS ---- */

static void
mds_images(void)
{
    struct opened o;
    put_seed("mds/index.json", "mds-index");
    put_seed("mds/shard.00000.mds", "mds-images");
    need(cx, try_open(&o, "mds_images", "mds", SET("image", "image")));
    ok(o.data->facts.n_samples == 3 && et_facts_classes(&o.data->facts) == 6 &&
           label_at(&o, 0) == 2 && label_at(&o, 2) == 5 &&
           is_picture(&o, 0, "rgb.png") && is_picture(&o, 1, "444.jpg"),
       "samples of Streaming's shards have their bytes and numbers");
    finish(&o);
    need(cx,
         try_open(&o, "mds_images", "mds", SET("image", "image", "target", "name")));
    ok(et_facts_classes(&o.data->facts) == 3 &&
           strcmp(o.data->facts.class_names[1], "a/001.x") == 0 && label_at(&o, 1) == 1,
       "a column of texts has classes by name");
    finish(&o);
    put_seed("packed/index.json", "mds-packed-index");
    put_seed("packed/shard.00000.mds.zstd", "mds-packed");
    if (try_open(&o, "mds_images", "packed", SET("image", "image")) == ET_OK)
        ok(label_at(&o, 2) == 5 && is_picture(&o, 2, "alpha.png"),
           "a packed shard is unpacked once");
    else
        ok(strstr(take_error(cx), "without zstd"), "packed shards need zstd");
    finish(&o);
    refused(ET_EINVAL, "there is no column 'picture'", "mds_images", "mds",
            SET("image", "picture"), "a column that is not there");
    refused(ET_EINVAL, "no column of pictures", "mds_images", "mds", NULL,
            "a choice that nobody made");
    put_seed("short/index.json", "mds-index");
    put_seed("short/shard.00000.mds", "mds-dynamic");
    refused(ET_EFORMAT, "bytes, and its index says 3793", "mds_images", "short",
            SET("image", "image"), "a shard of another size");
}

/* ---- MDS of columns in any order ---- */

enum { COLUMNS = 4, IMAGE = 0, SEG, LABEL, NAME };

/* Writes 4 columns in ORDER as one shard of 3 samples into FOLDER: pictures, masks,
 * numbers 2, 0, 1 and texts. */
static void
put_columns(const char *folder, const int *order)
{
    static const char *const names[] = {"image", "seg", "label", "name"};
    static const char *const encodings[] = {"png", "png", "int", "str"};
    static const char *const images[] = {"rgb.png", "alpha.png", "rgb.png"};
    static const char *const texts[] = {"ox", "a cat", "dog"};
    static uint8_t bytes[1 << 16];
    static struct picture_file p;
    char path[64], index[1024];
    const uint32_t n = 3;
    uint32_t offset[4];
    size_t at = sizeof n + sizeof offset;
    for (int s = 0; s < 3; s++) {
        offset[s] = (uint32_t)at;
        uint8_t *size = bytes + at;
        at += 3 * sizeof(uint32_t);
        for (int c = 0; c < COLUMNS; c++) {
            const int64_t number = (s + 2) % 3;
            const void *from = &number;
            uint32_t length = sizeof number;
            if (order[c] <= SEG) {
                picture_load(&p, order[c] == SEG ? "palette.png" : images[s]);
                from = p.bytes;
                length = (uint32_t)p.n;
            } else if (order[c] == NAME) {
                from = texts[s];
                length = (uint32_t)strlen(texts[s]);
            }
            memcpy(bytes + at, from, length);
            at += length;
            if (order[c] != LABEL) {
                memcpy(size, &length, sizeof length);
                size += sizeof length;
            }
        }
    }
    offset[3] = (uint32_t)at;
    memcpy(bytes, &n, sizeof n);
    memcpy(bytes + sizeof n, offset, sizeof offset);
    snprintf(path, sizeof path, "%s/shard.00000.mds", folder);
    put(path, bytes, at);
    int used =
        snprintf(index, sizeof index,
                 "{\"version\": 2, \"shards\": [{\"version\": 2, \"format\": \"mds\", "
                 "\"samples\": 3, \"compression\": null, \"zip_data\": null, "
                 "\"raw_data\": {\"basename\": \"shard.00000.mds\", \"bytes\": "
                 "%zu}, \"column_names\": [",
                 at);
    for (int c = 0; c < COLUMNS; c++)
        used += snprintf(index + used, sizeof index - (size_t)used, "%s\"%s\"",
                         c ? ", " : "", names[order[c]]);
    used += snprintf(index + used, sizeof index - (size_t)used,
                     "], \"column_encodings\": [");
    for (int c = 0; c < COLUMNS; c++)
        used += snprintf(index + used, sizeof index - (size_t)used, "%s\"%s\"",
                         c ? ", " : "", encodings[order[c]]);
    used +=
        snprintf(index + used, sizeof index - (size_t)used, "], \"column_sizes\": [");
    for (int c = 0; c < COLUMNS; c++)
        used += snprintf(index + used, sizeof index - (size_t)used, "%s%s",
                         c ? ", " : "", order[c] == LABEL ? "8" : "null");
    snprintf(index + used, sizeof index - (size_t)used, "]}]}");
    snprintf(path, sizeof path, "%s/index.json", folder);
    put_text(path, index);
}

/* Does sample 1 have image and target of these columns? */
static bool
has_columns(struct opened *o, int image, int target)
{
    static struct picture_file p;
    if (!is_picture(o, 1, image == SEG ? "palette.png" : "alpha.png"))
        return false;
    if (target == LABEL)
        return label_at(o, 1) == 0 && label_at(o, 0) == 2;
    if (target == NAME)
        return label_at(o, 1) == 0 && label_at(o, 0) == 2 &&
               strcmp(o->data->facts.class_names[2], "ox") == 0;
    const struct et_sample_value *v = &read_at(o, 1)->v[1];
    picture_load(&p, target == SEG ? "palette.png" : "alpha.png");
    return o->data->facts.field[1].kind == ET_FIELD_MASK &&
           v->shape[0] == (int64_t)p.n && memcmp(v->data, p.bytes, p.n) == 0;
}

/* The first of ORDER that is a picture, if PICTURE, and is not NOT. */
static int
first_of(const int *order, bool picture, int not )
{
    for (int c = 0; c < COLUMNS; c++)
        if (order[c] != not &&(!picture || order[c] <= SEG))
            return order[c];
    return -1;
}

/* Whatever the order of the columns, and whichever of them options name. */
static void
mds_columns(void)
{
    static const char *const names[] = {"image", "seg", "label", "name"};
    int wrong = 0, tried = 0;
    for (int k = 0; k < 256; k++) {
        const int order[] = {k & 3, k >> 2 & 3, k >> 4 & 3, k >> 6};
        char folder[32];
        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15)
            continue;
        snprintf(folder, sizeof folder, "columns/%d", k);
        put_columns(folder, order);
        for (int image = -1; image <= SEG; image++)
            for (int target = -1; target < COLUMNS; target++) {
                const char *set[8] = {"num_classes", "12"};
                int n = 2, picture = image, other = target;
                if (image >= 0 && image == target)
                    continue;
                if (image >= 0)
                    set[n++] = "image", set[n++] = names[image];
                if (target >= 0)
                    set[n++] = "target", set[n++] = names[target];
                picture = image >= 0 ? image : first_of(order, true, target);
                other = target >= 0 ? target : first_of(order, false, picture);
                struct opened o;
                tried++;
                if (try_open(&o, "mds_images", folder, set) != ET_OK ||
                    !has_columns(&o, picture, other)) {
                    diag("columns %d %d %d %d, image %d, target %d: %s", order[0],
                         order[1], order[2], order[3], image, target, take_error(cx));
                    wrong++;
                }
                finish(&o);
            }
    }
    is_int(tried, 24 * 13, "columns in each order, and each choice of two of them");
    is_int(wrong, 0, "the image is the first picture, the target the first other one");
}

/* As many columns as there is room for, and one more. */
static void
mds_many_columns(void)
{
    for (int n = ETI_MDS_COLUMNS; n <= ETI_MDS_COLUMNS + 1; n++) {
        static char text[1 << 13];
        struct opened o;
        int used = snprintf(text, sizeof text,
                            "{\"version\": 2, \"shards\": [{\"version\": 2, "
                            "\"format\": \"mds\", \"samples\": 0, \"compression\": "
                            "null, \"zip_data\": null, \"raw_data\": {\"basename\": "
                            "\"s.mds\", \"bytes\": 9}");
        static const char *const lists[] = {"column_names", "column_encodings",
                                            "column_sizes"};
        for (int list = 0; list < 3; list++) {
            used += snprintf(text + used, sizeof text - (size_t)used, ", \"%s\": [",
                             lists[list]);
            for (int i = 0; i < n; i++)
                used += snprintf(text + used, sizeof text - (size_t)used,
                                 list == 0   ? "%s\"c%d\""
                                 : list == 1 ? "%s\"int\""
                                             : "%s8",
                                 i ? ", " : "", i);
            used += snprintf(text + used, sizeof text - (size_t)used, "]");
        }
        snprintf(text + used, sizeof text - (size_t)used, "}]}");
        put_text("wide/index.json", text);
        ok(try_open(&o, "mds_images", "wide", NULL) != ET_OK, "%d columns of numbers",
           n);
        const char *said = take_error(cx);
        ok((strstr(said, "not lists of 1 to 64") != NULL) == (n > ETI_MDS_COLUMNS),
           "are refused as what they are: %s", said);
        finish(&o);
    }
}

/* A column has a size from 0 to 2^31 - 1, or none. */
static void
mds_sizes(void)
{
    static const struct {
        const char *size;
        bool good;
    } rows[] = {{"null", true},       {"0", true},           {"8", true},
                {"2147483647", true}, {"2147483648", false}, {"-1", false},
                {"-8", false},        {"8.0", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        struct opened o;
        snprintf(text, sizeof text,
                 "{\"version\": 2, \"shards\": [{\"version\": 2, \"format\": \"mds\", "
                 "\"samples\": 0, \"compression\": null, \"zip_data\": null, "
                 "\"raw_data\": {\"basename\": \"s.mds\", \"bytes\": 9}, "
                 "\"column_names\": [\"c\"], \"column_encodings\": [\"bytes\"], "
                 "\"column_sizes\": [%s]}]}",
                 rows[i].size);
        put_text("sized/index.json", text);
        ok(try_open(&o, "mds_images", "sized", NULL) != ET_OK, "a column of size %s",
           rows[i].size);
        const char *said = take_error(cx);
        ok(!strstr(said, "column 0 has no name, encoding or size") == rows[i].good,
           "is %s: %s", rows[i].good ? "none that is refused" : "refused", said);
        finish(&o);
    }
}

/* What lies in train and val is not cut besides. */
static void
mds_apart(void)
{
    static const int order[] = {IMAGE, SEG, LABEL, NAME};
    static const char *const splits[] = {"train", "test"};
    put_columns("apart/train", order);
    put_columns("apart/val", order);
    for (int i = 0; i < 2; i++) {
        struct opened o;
        need(cx, try_open(
                     &o, "mds_images", "apart",
                     SET("target", "label", "split", splits[i], "test_fraction", "1")));
        is_int(o.data->facts.n_samples, 3, "shards that lie apart are whole: %s",
               splits[i]);
        finish(&o);
    }
    struct opened o;
    put_columns("one", order);
    need(cx, try_open(&o, "mds_images", "one",
                      SET("target", "label", "split", "test", "test_fraction", "1")));
    is_int(o.data->facts.n_samples, 3, "others may be there to test with alone");
    finish(&o);
    refused(ET_EFORMAT, "no pictures to train with", "mds_images", "one",
            SET("target", "label", "test_fraction", "1"), "training with none");
}

/* An index as FROM, with OLD as NEW. */
static void
put_index(const char *name, const char *from, const char *old, const char *new)
{
    static uint8_t bytes[1 << 16];
    static char text[1 << 16];
    size_t n = seed(from, bytes);
    bytes[n] = 0;
    const char *all = (char *)bytes, *at = strstr(all, old);
    if (!at)
        bail("%s has no %s", from, old);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - all), all, new,
             at + strlen(old));
    put_text(name, text);
}

/* Indexes that cannot be: their files may lie in their folder alone. */
static void
mds_indexes(void)
{
    static const struct {
        const char *old, *new;
    } rows[] = {
        {"shard.00000.mds\"", "../mds/shard.00000.mds\""},
        {"shard.00000.mds\"", "/shard.00000.mds\""},
        {"shard.00000.mds\"", "\""},
        {"\"bytes\": 3793", "\"bytes\": 0"},
        {"\"bytes\": 3793", "\"bytes\": -3793"},
        {"\"samples\": 3", "\"samples\": -3"},
        {"\"samples\": 3", "\"samples\": 4294967296"},
        {"\"zip_data\": null", "\"zip_data\": {\"basename\": \"../mds/x.zstd\"}"},
        {"\"zip_data\": null", "\"zip_data\": {\"basename\": 3}"},
    };
    put_seed("odd/shard.00000.mds", "mds-images");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_index("odd/index.json", "mds-index", rows[i].old, rows[i].new);
        refused(ET_EFORMAT, "names and sizes of its files", "mds_images", "odd",
                SET("image", "image"), rows[i].new);
    }
    struct opened o;
    put_seed("less/shard.00000.mds.zstd", "mds-packed");
    put_index("less/index.json", "mds-packed-index", "3797", "3798");
    is_int(try_open(&o, "mds_images", "less", SET("image", "image")) == ET_OK, 0,
           "a shard that unpacks to less than its index says is refused");
    const char *got = take_error(cx);
    ok(strstr(got, "3797 bytes, and its index says 3798") ||
           strstr(got, "without zstd"),
       "and the sentence says so: %s", got);
    finish(&o);
}

static void
mds_tokens(void)
{
    static const char *const names[] = {"dynamic", "typed", "static", "bytes"};
    for (int i = 0; i < 4; i++) {
        struct opened o;
        struct et_error why = {0};
        int32_t v[20];
        char from[64];
        snprintf(from, sizeof from, "mds-%s-index", names[i]);
        put_seed("tok/index.json", from);
        snprintf(from, sizeof from, "mds-%s", names[i]);
        put_seed("tok/shard.00000.mds", from);
        need(cx, try_open(&o, "mds_tokens", "tok",
                          SET("vocab_size", "70", "seq_len", "4")));
        ok(o.data->facts.n_tokens == 63, "nine tenths of 70 tokens are to train with");
        need(cx, o.type->tokens(o.data, 5, 20, v, &why));
        bool good = true;
        for (int k = 0; k < 20; k++)
            good = good && v[k] == 5 + k;
        ok(good, "%s: tokens go on from sample to sample", names[i]);
        finish(&o);
        need(cx, try_open(&o, "mds_tokens", "tok",
                          SET("vocab_size", "66", "split", "test", "seq_len", "4")));
        is_int(o.type->tokens(o.data, 0, 3, v, &why), ET_OK, "the others to test");
        ok(v[0] == 63 && o.data->facts.n_tokens == 7, "of which the first follows");
        is_int(o.type->tokens(o.data, 0, 7, v, &why), ET_EFORMAT,
               "one that is not in the vocabulary is refused: %s", why.message);
        finish(&o);
    }
}

/* ---- texts ---- */

/* Opens texts of MDS shards, which BERT's tokenizer makes tokens of. */
static void
open_texts(struct opened *o, const char *name, const char *path, const char *split,
           const char *seq_len)
{
    char bert[PATH_MOST];
    snprintf(bert, sizeof bert, "%s", source_path("t/golden/tokenizers/bert.json"));
    need(cx, try_open(o, name, path,
                      SET("tokenizer", bert, "seq_len", seq_len, "packing", "best_fit",
                          "split", split)));
}

/* Samples of 40 lines: how many of them the rows have, by the mark behind each. */
static int
count_lines(struct opened *o, int64_t *tokens)
{
    struct et_tokenizer_info info;
    struct et_tokenizer *t;
    struct et_error why;
    bool broken;
    int lines = 0;
    need(cx, et_tokenizer_open(cx, source_path("t/golden/tokenizers/bert.json"), &t));
    et_tokenizer_get_info(t, &info);
    *tokens = 0;
    for (int64_t at = 0; at < o->data->facts.n_samples; at++) {
        need(cx,
             eti_sample_read(o->data, at, NULL, &o->room, &o->sample, &why, &broken));
        const int32_t *token = o->sample.v[0].data;
        *tokens += o->sample.v[0].shape[0];
        for (int64_t i = 0; i < o->sample.v[0].shape[0]; i++)
            lines += token[i] == info.role[ET_TOKEN_SEP];
    }
    et_tokenizer_free(&t);
    return lines;
}

static void
put_texts(const char *folder)
{
    char name[128];
    static const char *const from[] = {"mds-text-index", "mds-text-0", "mds-text-1"};
    static const char *const to[] = {"index.json", "shard.00000.mds",
                                     "shard.00001.mds"};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, to[i]);
        put_seed(name, from[i]);
    }
}

static void
mds_texts(void)
{
    struct opened o;
    int64_t tokens, again;
    put_texts("texts");
    open_texts(&o, "masked_text", "texts", "train", "64");
    int train = count_lines(&o, &tokens);
    finish(&o);
    open_texts(&o, "masked_text", "texts", "test", "64");
    int test = count_lines(&o, &tokens);
    finish(&o);
    ok(train > 30 && test > 0 && train + test == 40,
       "texts of two shards are documents, a tenth to test (%d, %d)", train, test);
    put_texts("parts/train");
    put_texts("parts/val");
    open_texts(&o, "masked_text", "parts", "train", "64");
    train = count_lines(&o, &tokens);
    finish(&o);
    open_texts(&o, "masked_text", "parts", "test", "64");
    test = count_lines(&o, &again);
    finish(&o);
    ok(train == 40 && test == 40 && tokens == again,
       "folders train and val are the splits, whole");
    open_texts(&o, "packed_text", "texts", "train", "64");
    ok(o.data->facts.n_fields == 4 && count_lines(&o, &tokens) > 30,
       "packed_text reads them, too");
    finish(&o);
    refused(ET_EINVAL, "there is no column 'text'", "masked_text", "mds",
            SET("tokenizer", source_path("t/golden/tokenizers/bert.json")),
            "a folder without texts");
}

/* Tokens are those of the samples, in each way that a column has them. */
static void
mds_known_tokens(void)
{
    static const char *const names[] = {"dynamic", "typed", "static", "bytes"};
    for (int i = 0; i < 4; i++) {
        struct opened o;
        struct et_error why = {0};
        int32_t v[63], n = 0;
        char from[64], folder[64], name[128];
        snprintf(folder, sizeof folder, "known-%s", names[i]);
        snprintf(from, sizeof from, "mds-%s-index", names[i]);
        snprintf(name, sizeof name, "%s/index.json", folder);
        put_seed(name, from);
        snprintf(from, sizeof from, "mds-%s", names[i]);
        snprintf(name, sizeof name, "%s/shard.00000.mds", folder);
        put_seed(name, from);
        need(cx, try_open(&o, "text", folder, SET("seq_len", "4")));
        n = (int32_t)o.data->facts.n_tokens;
        bool good = n % 7 == 0 && n > 35 && n < 70;
        need(cx, o.type->tokens(o.data, 0, n < 63 ? n : 63, v, &why));
        for (int k = 1; k < n && k < 63; k++)
            good = good && (k % 7 ? v[k] == v[k - 1] + 1 : v[k] % 7 == 0);
        ok(good, "%s: samples of tokens are documents as they are (%d)", names[i], n);
        finish(&o);
    }
    struct opened o;
    char bert[PATH_MOST];
    put_seed("known-typed/index.json", "mds-typed-index");
    snprintf(bert, sizeof bert, "%s", source_path("t/golden/tokenizers/gpt2.json"));
    need(cx, try_open(&o, "packed_text", "known-typed",
                      SET("tokenizer", bert, "seq_len", "7")));
    int64_t rows = o.data->facts.n_samples;
    ok(rows > 5 && rows < 10, "without an end that no sample has (%d)", (int)rows);
    finish(&o);
}

/* ---- the cache ---- */

/* A batch of samples by SET, as numbers: their sum, weighted by place. */
static double
sum_of(const char *name, const char *path, const char *const *set)
{
    struct opened o;
    struct et_loader *loader;
    const struct et_batch *b;
    need(cx, try_open(&o, name, path, set));
    need(cx,
         et_loader_new(cx, o.data, &(struct et_loader_config){.seed = 5, .train = true},
                       &loader));
    need(cx, et_loader_next(cx, loader, &b));
    double sum = 0;
    const int64_t *n = b->field[0].desc.shape;
    for (int64_t i = 0; i < n[0] * n[1] * n[2] * n[3]; i++)
        sum += b->field[0].host.f32[i] * (double)(1 + i % 997);
    for (int64_t i = 0; i < b->field[1].desc.shape[0]; i++)
        sum += b->field[1].host.i32[i] * 1e-3 * (double)i;
    et_loader_release(loader, b);
    et_loader_free(&loader);
    finish(&o);
    return sum;
}

static int warnings;
static void
count_warning(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    warnings +=
        level >= ET_LOG_WARN && strstr(text, "decoded once") && strstr(text, "KiB");
}

static void
cache(void)
{
    char folder[PATH_MOST];
    snprintf(folder, sizeof folder, "%s", place("kept/pictures/x"));
    *strrchr(folder, '/') = 0;
    for (int i = 0; i < 6; i++) {
        char name[64];
        snprintf(name, sizeof name, "many/%c/%d.png", 'a' + i % 2, i);
        put_picture(name, i % 3 ? "rgb.png" : "alpha.png");
    }
    put_text("many/a/4.png", "no picture");
    const char *plain[] = {"batch_size",
                           "6",
                           "max_corrupt",
                           "0.5",
                           "transforms",
                           "[resize_short: {size: 9}, random_crop: {size: 7}, "
                           "horizontal_flip]",
                           NULL,
                           NULL,
                           NULL,
                           NULL,
                           NULL};
    double want = sum_of("imagefolder", "many", plain);
    et_ctx_set_log(cx, ET_LOG_WARN, count_warning, NULL);
    plain[6] = "cache";
    plain[7] = folder;
    plain[8] = "cache_size";
    plain[9] = "9";
    double got = sum_of("imagefolder", "many", plain);
    ok(got == want, "what is kept gives the same batch: order, draws and pixels");
    is_int(warnings, 1, "how large it gets is said first");
    plain[5] = "[random_crop: {size: 7}, horizontal_flip]";
    sum_of("imagefolder", "many", plain);
    is_int(warnings, 1, "it is made once");
    put_picture("many/a/0.png", "palette.png");
    double changed = sum_of("imagefolder", "many", plain);
    is_int(warnings, 2, "and again when a file has changed");
    ok(changed != want, "whose picture is then the new one");
    plain[9] = "8";
    sum_of("imagefolder", "many", plain);
    is_int(warnings, 3, "another size is another cache");
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
}

static void
kept_masks(void)
{
    char folder[PATH_MOST];
    struct opened o;
    snprintf(folder, sizeof folder, "%s", place("kept/masks/x"));
    *strrchr(folder, '/') = 0;
    put_picture("seg/images/a.png", "rgb.png");
    put_picture("seg/masks/a.png", "palette.png");
    need(cx, try_open(&o, "segmentation", "seg",
                      SET("num_classes", "12", "cache", folder, "cache_size", "5",
                          "ignore_index", "3")));
    const struct et_sample *s = read_at(&o, 0);
    const struct et_pixels *p = &s->v[0].pixels, *m = &s->v[1].pixels;
    ok(p->H == 5 && p->W == 7 && m->H == 5 && m->W == 7,
       "masks are kept with pictures");
    int most = 0;
    for (int i = 0; i < 35; i++)
        most = m->data[i] > most ? m->data[i] : most;
    ok(most == 255 || most < 12, "and have classes, and what counts nothing");
    finish(&o);
}

int
main(void)
{
    unsetenv("ETUDE_CACHE_DIR"); /* the cache is where each test has it */
    cx = need_ctx();
    setenv("XDG_CACHE_HOME", place("cache"), 1);
    csv();
    patterns();
    tar();
    tar_masks();
    bad_tar();
    changed_tar();
    mds_images();
    mds_columns();
    mds_many_columns();
    mds_sizes();
    mds_apart();
    mds_indexes();
    mds_tokens();
    mds_texts();
    mds_known_tokens();
    cache();
    kept_masks();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "all memory is given back");
    et_ctx_free(&cx);
    ok(n_described > 0 && n_misdescribed == 0,
       "what data say of themselves without files is so when they are opened");
    return done();
}
