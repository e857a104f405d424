/* SPDX-License-Identifier: Apache-2.0 */
/* IDX files: what a header may claim, gzip, pairs of files; Fashion-MNIST where it
 * is. */
#include "core/data/idx.h"

#include "core/data/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* As the idx data set's own. */
struct options {
    struct et_data_options common;
    char *images;
    char *labels;
    int64_t num_classes;
};

static size_t
make_idx(uint8_t *out, int ndim, const uint32_t *shape, size_t payload)
{
    size_t n = 0;
    out[n++] = 0;
    out[n++] = 0;
    out[n++] = 8;
    out[n++] = (uint8_t)ndim;
    for (int i = 0; i < ndim; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            out[n++] = (uint8_t)(shape[i] >> shift);
    for (size_t i = 0; i < payload; i++)
        out[n++] = (uint8_t)i;
    return n;
}

static void
headers(void)
{
    static const struct {
        const char *name, *message;
        int ndim;
        uint32_t shape[4];
        size_t payload;
        int at, byte; /* one byte changed */
        size_t cut;   /* bytes left out at the end */
    } lies[] = {
        {"a file that is cut off",
         "header says 5x2x3 (46 bytes), file has 45",
         3,
         {5, 2, 3},
         29,
         0,
         0,
         0},
        {"a file that goes on",
         "header says 5x2x3 (46 bytes), file has 47",
         3,
         {5, 2, 3},
         31,
         0,
         0,
         0},
        {"a magic of another format",
         "bad magic 01000803, not an IDX file",
         3,
         {5, 2, 3},
         30,
         0,
         1,
         0},
        {"no axes", "bad magic 00000800, not an IDX file", 3, {5, 2, 3}, 30, 3, 0, 0},
        {"too many axes",
         "bad magic 00000805, not an IDX file",
         3,
         {5, 2, 3},
         30,
         3,
         5,
         0},
        {"floats",
         "IDX type 0x0d, only unsigned bytes (0x08) are read",
         3,
         {5, 2, 3},
         30,
         2,
         13,
         0},
        {"no samples", "header says 0x2x3: no samples", 3, {0, 2, 3}, 0, 0, 0, 0},
        {"sizes that overflow",
         "header says 4294967295x4294967295x4294967295, more than any file holds",
         3,
         {UINT32_MAX, UINT32_MAX, UINT32_MAX},
         30,
         0,
         0,
         0},
        {"a header that is cut off",
         "12 bytes are too few for a header of 20",
         4,
         {1, 1, 0, 0},
         0,
         0,
         0,
         8},
    };
    uint8_t bytes[256];
    struct eti_idx idx;
    struct et_error why;
    for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
        size_t n =
            make_idx(bytes, lies[k].ndim, lies[k].shape, lies[k].payload) - lies[k].cut;
        bytes[lies[k].at] = (uint8_t)lies[k].byte;
        why = (struct et_error){0};
        is_int(eti_idx_parse(bytes, (int64_t)n, &idx, &why), ET_EFORMAT,
               "%s is refused", lies[k].name);
        is_str(why.message, lies[k].message, "and the sentence says so");
    }
    is_int(eti_idx_parse(bytes, 3, &idx, &why), ET_EFORMAT, "three bytes are refused");
    size_t n = make_idx(bytes, 3, (uint32_t[]){5, 2, 3}, 30);
    is_int(eti_idx_parse(bytes, (int64_t)n, &idx, &why), ET_OK,
           "an honest file is read");
    ok(idx.ndim == 3 && idx.shape[0] == 5 && idx.item_bytes == 6 && idx.data[29] == 29,
       "and its shape and data found");
    /* Any one byte of the header changed gives an error or the same amount of data. */
    int sound = 0;
    for (int i = 0; i < 16; i++)
        for (int v = 0; v < 256; v++) {
            uint8_t copy[64];
            memcpy(copy, bytes, n);
            copy[i] = (uint8_t)v;
            et_status s = eti_idx_parse(copy, (int64_t)n, &idx, &why);
            sound += s == ET_EFORMAT ||
                     idx.data - copy + idx.item_bytes * idx.shape[0] == (int64_t)n;
        }
    is_int(sound, 16 * 256, "no header byte leads beyond the file");
}

static et_status
try_open(struct options *o, struct et_dataset **data)
{
    return et_dataset_open(cx, et_dataset_find("idx"), o, data);
}

/* Does image I of DATA have the bytes that make_idx wrote, each where the file has it:
 * row by row, pixel by pixel, and a pixel's channels side by side? */
static bool
has_counted_bytes(struct et_dataset *data, int i)
{
    const struct et_pixels p = raw_image(data, i, NULL);
    int64_t n = i * p.H * p.W * p.C, wrong = 0;
    for (int y = 0; y < p.H; y++)
        for (int x = 0; x < p.W; x++)
            for (int c = 0; c < p.C; c++)
                wrong +=
                    p.data[y * p.stride_y + x * p.stride_x + c * p.stride_c] != n++;
    return wrong == 0;
}

static void
pairs(void)
{
    uint8_t x[256], y[64];
    size_t nx = make_idx(x, 3, (uint32_t[]){5, 2, 3}, 30);
    size_t ny = make_idx(y, 1, (uint32_t[]){5}, 5);
    struct options o = {
        .common = common_options(2),
        .images = (char *)"x",
        .labels = (char *)"y",
    };
    struct et_dataset *data;
    char folder[300], want[600];
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    o.common.path = folder;
    is_int(try_open(&o, &data), ET_ENOENT, "a file that is not there is ENOENT");
    snprintf(want, sizeof want, "cannot read %s/x: No such file or directory", folder);
    is_str(take_error(cx), want, "and the sentence names it");

    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    write_file("x", x, nx, false);
    write_file("y.gz", y, ny, true);
    need(cx, try_open(&o, &data));
    int32_t label;
    const uint8_t *pixels = raw_image(data, 4, &label).data;
    ok(data->facts.n_samples == 5 && data->facts.field[0].shape[1] == 2 &&
           data->facts.field[0].shape[2] == 3 && data->facts.field[0].shape[0] == 1 &&
           data->facts.field[1].below == 5 && pixels[5] == 29 && label == 4,
       "a plain and a gzipped file make a data set");
    ok(has_counted_bytes(data, 4), "two rows of three pixels lie as in the file");
    et_dataset_close(&data);

    o.num_classes = 4;
    is_int(try_open(&o, &data), ET_EFORMAT, "a label beyond the classes is refused");
    snprintf(want, sizeof want, "%s/y: label 4 at index 4 but 4 classes", folder);
    is_str(take_error(cx), want, "and the sentence says where");

    ny = make_idx(y, 1, (uint32_t[]){4}, 4);
    write_file("y.gz", y, ny, true);
    is_int(try_open(&o, &data), ET_EFORMAT, "fewer labels than images are refused");
    snprintf(want, sizeof want, "%s/x: 5 images but 4 labels", folder);
    is_str(take_error(cx), want, "and the sentence counts them");
    o.num_classes = 0;
    ny = make_idx(y, 1, (uint32_t[]){6}, 6);
    write_file("y.gz", y, ny, true);
    is_int(try_open(&o, &data), ET_EFORMAT, "so are more");
    snprintf(want, sizeof want, "%s/x: 5 images but 6 labels", folder);
    is_str(take_error(cx), want, "and the sentence counts them");

    nx = make_idx(x, 1, (uint32_t[]){5}, 5);
    write_file("x", x, nx, false);
    is_int(try_open(&o, &data), ET_EFORMAT, "labels for images are refused");
    et_error_clear(cx);
    nx = make_idx(x, 2, (uint32_t[]){6, 5}, 30);
    write_file("x", x, nx, false);
    is_int(try_open(&o, &data), ET_EFORMAT, "so are images of one axis");
    snprintf(want, sizeof want, "%s/x: 2 axes, images have 3 or 4", folder);
    is_str(take_error(cx), want, "and the sentence says how many there are");
    ny = make_idx(y, 1, (uint32_t[]){5}, 5);
    write_file("y.gz", y, ny, true);
    nx = make_idx(x, 3, (uint32_t[]){5, 2, 3}, 30);
    const char *path = write_file("z.gz", x, nx, true);
    o.images = (char *)"z";
    need(cx, try_open(&o, &data));
    et_dataset_close(&data);
    gzFile twice = gzopen(path, "ab"); /* the size it claims is that of its end */
    if (!twice || gzwrite(twice, x, (unsigned)nx) != (int)nx || gzclose(twice) != Z_OK)
        bail("cannot add to %s", path);
    is_int(try_open(&o, &data), ET_EFORMAT, "a gzip file that goes on is refused");
    snprintf(want, sizeof want, "%s/z.gz: longer than the 46 bytes it claims to hold",
             folder);
    is_str(take_error(cx), want, "and the sentence says so");
    if (truncate(path, 40) != 0)
        bail("cannot cut %s", path);
    is_int(try_open(&o, &data), ET_EFORMAT, "a cut gzip file is refused");
    et_error_clear(cx);
    o.images = (char *)".";
    is_int(try_open(&o, &data), ET_EFORMAT, "a folder is no file");
    snprintf(want, sizeof want, "%s/.: not a regular file", folder);
    is_str(take_error(cx), want, "and the sentence says so");

    nx = make_idx(x, 4, (uint32_t[]){2, 4, 2, 3}, 48);
    ny = make_idx(y, 1, (uint32_t[]){2}, 2);
    write_file("x", x, nx, false);
    write_file("y.gz", y, ny, true);
    o.images = (char *)"x";
    need(cx, try_open(&o, &data));
    ok(data->facts.field[0].shape[1] == 4 && data->facts.field[0].shape[2] == 2 &&
           data->facts.field[0].shape[0] == 3 && has_counted_bytes(data, 1),
       "a fourth axis is channels, here of four rows of two pixels");
    et_dataset_close(&data);
    et_status status = ET_ENOMEM;
    int failures = 0;
    for (; status == ET_ENOMEM && failures < 100; failures++) {
        et_alloc_fail_at(cx, (uint64_t)failures + 1);
        status = try_open(&o, &data);
        et_error_clear(cx);
    }
    et_alloc_fail_at(cx, 0);
    ok(status == ET_OK && failures > 5, "each of %d allocations may fail",
       failures - 1);
    et_dataset_close(&data);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind by all that");
}

static int
open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Removes what was inflated. */
static void
empty_cache(const char *home)
{
    char path[800];
    snprintf(path, sizeof path, "%s/etude", home);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/etude/%.64s", home, e->d_name);
        if (strncmp(e->d_name, "inflated-", 9) == 0)
            unlink(path);
    }
    closedir(dir);
}

static void
cached(void)
{
    enum { N = 2000 };
    static uint8_t big[N * 784 + 16], bytes[N + 8];
    size_t nx = make_idx(big, 3, (uint32_t[]){N, 28, 28}, N * 784);
    size_t ny = make_idx(bytes, 1, (uint32_t[]){N}, N);
    char folder[300], home[400], path[800];
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    snprintf(home, sizeof home, "%s/cache", folder);
    struct options o = {
        .common = common_options(2),
        .images = (char *)"big",
        .labels = (char *)"labels",
    };
    o.common.path = folder;
    write_file("labels", bytes, ny, false);
    write_file("big.gz", big, nx, true);
    setenv("XDG_CACHE_HOME", home, 1);
    struct et_dataset *data;
    for (int turn = 0; turn < 3; turn++) {
        need(cx, try_open(&o, &data));
        int32_t label;
        const uint8_t *pixels = raw_image(data, N - 1, &label).data;
        ok(memcmp(pixels, big + 16 + (N - 1) * 784, 784) == 0 && label == (N - 1) % 256,
           "%s",
           turn == 0   ? "a large gzip file is inflated into the cache"
           : turn == 1 ? "then read from there"
                       : "and made again where it was cut");
        et_dataset_close(&data);
        int files = 0;
        snprintf(path, sizeof path, "%s/etude", home);
        DIR *dir = opendir(path);
        for (struct dirent *e; dir && (e = readdir(dir));) {
            if (strncmp(e->d_name, "inflated-", 9) != 0)
                continue;
            files++;
            snprintf(path, sizeof path, "%s/etude/%.64s", home, e->d_name);
            if (turn == 1 && truncate(path, 100) != 0)
                bail("cannot cut %s", path);
            struct stat st;
            if (turn == 2 && stat(path, &st) == 0)
                is_int(st.st_size, (int64_t)nx, "now whole");
            if (turn == 2)
                unlink(path);
        }
        closedir(dir);
        is_int(files, 1, "of which there is one file");
    }
    snprintf(path, sizeof path, "%s/big", folder);
    const int before = open_files();
    struct eti_bytes loaded;
    need(cx, eti_file_load(cx, path, (int64_t)sizeof big, &loaded)); /* it is cached */
    et_free(cx, loaded.data);
    int refused = 0, wrong = 0;
    for (uint64_t k = 1; k <= 8; k++) {
        et_alloc_fail_at(cx, k);
        const et_status status = eti_file_load(cx, path, (int64_t)sizeof big, &loaded);
        et_alloc_fail_at(cx, 0);
        et_error_clear(cx);
        refused += status != ET_OK;
        wrong += status == ET_OK &&
                 (loaded.n != (int64_t)nx || memcmp(loaded.data, big, nx) != 0);
        et_free(cx, loaded.data);
    }
    ok(refused > 0 && wrong == 0 && open_files() == before,
       "it is loaded as a whole too; whichever allocation fails, no file stays open");
    empty_cache(home);
    snprintf(path, sizeof path, "%s/etude", home);
    ok(rmdir(path) == 0 && rmdir(home) == 0, "and no other is left");
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
}

static void
fashion(void)
{
    const struct et_dataset_class *c = et_dataset_find("fashion_mnist");
    char *path = NULL;
    for (const struct et_option *o = c->info.options; o->name; o++)
        if (strcmp(o->name, "path") == 0)
            path = (char *)o->def;
    if (access(path, R_OK) != 0) {
        skip(6, "dataset-fashion-mnist is not installed");
        return;
    }
    struct options o = {.common = common_options(128)};
    o.common.path = path;
    need(cx, et_options_set(cx, c->info.options, &o, "transforms",
                            "[normalize: {mean: [0.286], std: [0.353]}]"));
    struct et_dataset *data;
    need(cx, et_dataset_open(cx, c, &o, &data));
    ok(data->facts.n_samples == 60000 && data->facts.field[0].shape[1] == 28 &&
           data->facts.field[0].shape[2] == 28 && data->facts.field[1].below == 10,
       "Fashion-MNIST has 60,000 images of 28x28 in ten classes to train");
    struct et_loader_config config = {.seed = 17};
    struct et_loader *loader;
    need(cx, et_loader_new(cx, data, &config, &loader));
    double sum = 0, squares = 0;
    int64_t classes[10] = {0}, even = 0;
    const struct et_batch *b;
    for (;;) {
        need(cx, et_loader_next(cx, loader, &b));
        if (!b)
            break;
        const float *x = b->field[0].host.any;
        for (int64_t i = 0; i < b->n_samples; i++)
            classes[b->field[1].host.i32[i]]++;
        for (int64_t i = 0; i < b->n_samples * 784; i++) {
            sum += x[i];
            squares += (double)x[i] * x[i];
        }
        et_loader_release(loader, b);
    }
    for (int i = 0; i < 10; i++)
        even += classes[i] == 6000;
    is_int(even, 10, "and 6,000 of each");
    /* The published mean and deviation have three digits: 5e-4 / 0.353. */
    is_near(sum / 47040000, 0, 2e-3, "normalised, their mean is 0");
    is_near(squares / 47040000, 1, 3e-3, "and their variance 1");
    et_loader_free(&loader);
    et_dataset_close(&data);
    o.common.split = ET_SPLIT_TEST;
    need(cx, et_dataset_open(cx, c, &o, &data));
    is_int(data->facts.n_samples, 10000, "and 10,000 to test");
    et_dataset_close(&data);
    o.common.path = (char *)"/nowhere";
    is_int(et_dataset_open(cx, c, &o, &data), ET_ENOENT, "elsewhere there is none");
    et_error_clear(cx);
    o.common.path = NULL; /* not the options' own */
    et_options_release(c->info.options, &o);
}

static int
count_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

int
main(void)
{
    unsetenv("ETUDE_CACHE_DIR"); /* the cache is where each test has it */
    cx = need_ctx();
    int open_before = count_descriptors();
    headers();
    pairs();
    cached();
    fashion();
    is_int(count_descriptors(), open_before,
           "no file stays open, compressed, refused or damaged");
    et_ctx_free(&cx);
    return done();
}
