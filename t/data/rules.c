/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the data, each on both sides of its bounds: which numbers a resize makes,
 * what a border is, whose draws are whose, where an epoch ends, which file is read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/cache.h"
#include "core/data/file.h"
#include "core/data/loader_impl.h"
#include "core/data/token_file.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static int
counted(int i, int y, int x, int c)
{
    return (7 * i + 8 * y + x + 50 * c) & 255;
}

/* ---- pixels ---- */

/* A tent around the middle of output pixel I of TO, as wide as two pixels of the
 * output, or of the source where these are larger: its height at source pixel AT of
 * FROM. */
static double
tent(int i, int to, int at, int from)
{
    double middle = (i + 0.5) * from / to, scale = from > to ? (double)from / to : 1;
    double d = 1 - fabs(middle - (at + 0.5)) / scale;
    return d > 0 ? d : 0;
}

/* How much of source pixel AT is in output pixel I. */
static double
share(int i, int to, int at, int from)
{
    double sum = 0;
    for (int k = 0; k < from; k++)
        sum += tent(i, to, k, from);
    return tent(i, to, at, from) / sum;
}

static double
resized(int i, int row, int col, int c, int h, int w)
{
    double v = 0;
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 8; x++)
            v += share(row, h, y, 6) * share(col, w, x, 8) * counted(i, y, x, c);
    return v;
}

static void
test_resize(void)
{
    static const int sizes[] = {1, 3, 5, 6, 7, 13};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int size = sizes[k];
        char text[64];
        snprintf(text, sizeof text, "[resize: {size: %d}]", size);
        struct counted_loader s = counted_loader(cx, 40, 40, 3, text);
        need(cx, counted_begin(cx, &s));
        const struct et_batch *b = counted_next(cx, &s);
        const float *x = b->field[0].host.any;
        int wrong = 0;
        for (int i = 0; i < 40; i++)
            for (int row = 0; row < size; row++)
                for (int col = 0; col < size; col++)
                    for (int c = 0; c < 3; c++, x++) {
                        double want = resized(i, row, col, c, size, size);
                        /* Rounded once, by weights of 14 bits and a line of 14: 255
                         * times 8 and 6 of these at most, and half of one of that. */
                        wrong += !(fabs(*x * 255.0 - want) < 0.5 + 0.12);
                    }
        is_int(wrong, 0, "6x8 becomes %dx%d of what each covers", size, size);
        et_loader_release(s.loader, b);
        counted_end(&s);
    }
}

static void
test_border(void)
{
    static const double mean[] = {0.25, 0.5, 0.75}, std[] = {0.5, 0.25, 0.125};
    struct counted_loader s =
        counted_loader(cx, 1, 1, 3,
                       "[random_crop: {size: 6, padding: 100}, normalize: "
                       "{mean: [0.25, 0.5, 0.75], std: [0.5, 0.25, 0.125]}]");
    need(cx, counted_begin(cx, &s));
    int black = 0, other = 0;
    for (int epoch = 0; epoch < 50; epoch++) {
        const struct et_batch *b = counted_next(cx, &s);
        const float *x = b->field[0].host.any;
        for (int i = 0; i < 36 * 3; i++) {
            bool is_black = x[i] == (float)(-mean[i % 3] / std[i % 3]);
            /* Shown: what some pixel of the channel becomes. */
            bool is_shown = false;
            for (int p = 0; p < 48 && !is_black; p++)
                is_shown = is_shown ||
                           x[i] == (float)((counted(0, p / 8, p % 8, i % 3) / 255.0 -
                                            mean[i % 3]) /
                                           std[i % 3]);
            black += is_black;
            other += !is_black && !is_shown;
        }
        et_loader_release(s.loader, b);
        ok(!counted_next(cx, &s), "an epoch of one batch ends");
    }
    ok(black > 1000, "most of a wide border is black, %d values", black);
    is_int(other, 0, "as each channel has it");
    counted_end(&s);
}

static void
test_draws_apart(void)
{
    enum { N = 1000 };
    struct counted_loader s =
        counted_loader(cx, N, N, 1, "[horizontal_flip, horizontal_flip]");
    need(cx, counted_begin(cx, &s));
    const struct et_batch *b = counted_next(cx, &s);
    int flipped = 0;
    for (int i = 0; i < N; i++)
        flipped += b->field[0].host.f32[48 * i] != (float)(counted(i, 0, 0, 0) / 255.0);
    is_near(flipped, N / 2.0, 5 * sqrt(N / 4.0), "a second flip has draws of its own");
    et_loader_release(s.loader, b);
    counted_end(&s);
}

/* How many transforms there may be, and how many numbers one may have. */
static void
test_transform_limits(void)
{
    static const struct {
        const char *normalize;
        et_status want;
        int flips;
    } rows[] = {{"mean: [0.5], std: [1]", ET_OK, 15},
                {"mean: [0.5], std: [1]", ET_EINVAL, 16},
                {"mean: [0.5, 0, 1], std: [1]", ET_OK, 0},
                {"mean: [0.5], std: [1, 2, 3]", ET_OK, 0},
                {"mean: [0.5], std: [1, 2]", ET_EINVAL, 0},
                {"mean: [0.5, 1], std: [1]", ET_EINVAL, 0},
                {"mean: [0.5], std: [1, 2, 3, 4]", ET_EINVAL, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512] = "[";
        size_t n = 1;
        for (int k = 0; k < rows[i].flips; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, "horizontal_flip, ");
        snprintf(text + n, sizeof text - n, "normalize: {%s}]", rows[i].normalize);
        struct counted_loader s = counted_loader(cx, 1, 1, 3, text);
        is_int(counted_begin(cx, &s), rows[i].want, "%d flips and %s are %s",
               rows[i].flips, rows[i].normalize,
               rows[i].want == ET_OK ? "taken" : "refused");
        et_error_clear(cx);
        counted_end(&s);
    }
}

/* ---- epochs ---- */

static void
test_ends(void)
{
    struct counted_loader s = counted_loader(cx, 10, 4, 1, NULL);
    need(cx, counted_begin(cx, &s));
    need(cx, et_loader_seek(cx, s.loader, 2, 3));
    ok(!counted_next(cx, &s), "behind the last batch an epoch ends");
    const struct et_batch *b = counted_next(cx, &s);
    ok(b && b->epoch == 3 && b->batch == 0, "and the next one begins");
    et_loader_release(s.loader, b);
    need(cx, et_loader_seek(cx, s.loader, 2, 0));
    b = counted_next(cx, &s);
    ok(b && b->epoch == 2 && b->batch == 0, "which it need not where one begins");
    et_loader_release(s.loader, b);
    is_int(et_loader_seek(cx, s.loader, 2, 4), ET_EINVAL, "no batch is behind the end");
    et_error_clear(cx);
    counted_end(&s);

    static const struct {
        int64_t subset;
        bool drop_last;
        int64_t batches, samples;
    } rows[] = {{-1, false, 3, 10}, {-1, true, 2, 8},  {1, false, 1, 4},
                {2, true, 2, 8},    {2, false, 2, 8},  {3, false, 3, 10},
                {3, true, 2, 8},    {9, false, 3, 10}, {9, true, 2, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        s = counted_loader(cx, 10, 4, 1, NULL);
        s.options.common.subset_num_batches = rows[i].subset;
        s.options.common.drop_last = rows[i].drop_last;
        need(cx, counted_begin(cx, &s));
        struct et_loader_info info;
        et_loader_get_info(s.loader, &info);
        ok(info.batches_per_epoch == rows[i].batches &&
               info.samples_per_epoch == rows[i].samples,
           "%d batches are asked for of ten samples%s: there are %d",
           (int)rows[i].subset, rows[i].drop_last ? " less the last" : "",
           (int)rows[i].batches);
        int64_t place = 0, wrong = 0;
        for (int epoch = 0; epoch < 3; epoch++)
            while ((b = counted_next(cx, &s))) {
                wrong += b->first != place;
                place += b->n_samples;
                et_loader_release(s.loader, b);
            }
        ok(wrong == 0 && place == 3 * rows[i].samples,
           "and each begins where the one before ended");
        counted_end(&s);
    }
}

/* Each epoch has an order of its own, which is found again where one seeks. */
static void
test_shuffles(void)
{
    enum { N = 50, EPOCHS = 4 };
    int32_t order[EPOCHS][N];
    struct counted_loader s = counted_loader(cx, N, N, 1, NULL);
    s.options.common.shuffle = true;
    need(cx, counted_begin(cx, &s));
    int twice = 0, other = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        const struct et_batch *b = counted_next(cx, &s);
        memcpy(order[epoch], b->field[1].host.any, sizeof order[epoch]);
        et_loader_release(s.loader, b);
        ok(!counted_next(cx, &s), "an epoch of one batch ends");
        for (int k = 0; k < epoch; k++)
            twice += memcmp(order[k], order[epoch], sizeof order[k]) == 0;
    }
    is_int(twice, 0, "no epoch has another one's order");
    for (int epoch = EPOCHS - 1; epoch >= 0; epoch--) {
        need(cx, et_loader_seek(cx, s.loader, epoch, 0));
        const struct et_batch *b = counted_next(cx, &s);
        other += memcmp(order[epoch], b->field[1].host.any, sizeof order[epoch]) != 0;
        et_loader_release(s.loader, b);
    }
    is_int(other, 0, "and each is found again");
    counted_end(&s);
}

/* ---- samples that cannot be read ---- */

static void
count_lines(void *data, enum et_log_level level, const char *text)
{
    (void)text;
    *(int *)data += level == ET_LOG_WARN;
}

static void
test_warnings(void)
{
    int lines = 0;
    et_ctx_set_log(cx, ET_LOG_WARN, count_lines, &lines);
    struct counted_loader s = counted_loader(cx, 100, 10, 1, NULL);
    s.options.bad_every = 25;
    s.options.common.max_corrupt = 0.04;
    need(cx, counted_begin(cx, &s));
    const struct et_batch *b;
    for (int epoch = 0; epoch < 3; epoch++)
        while ((b = counted_next(cx, &s)))
            et_loader_release(s.loader, b);
    is_int(lines, 4, "each of four unreadable samples is warned of once");
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    counted_end(&s);
}

static et_status
broken_image(const struct et_dataset *self, int64_t at, struct et_sample *out,
             struct et_error *why)
{
    if (at == 3)
        return eti_why(why, ET_EIO, "the disk is gone");
    return counted_images.sample(self, at, out, why);
}

static void
test_broken(void)
{
    struct et_dataset_class c = counted_images;
    c.sample = broken_image;
    struct counted_options options = {.common = common_options(4), .n = 8, .C = 1};
    options.common.shuffle = false;
    options.common.max_corrupt = 1;
    struct et_dataset *data;
    struct et_loader *loader;
    const struct et_batch *b;
    need(cx, et_dataset_open(cx, &c, &options, &data));
    need(cx, et_loader_new(cx, data, &(struct et_loader_config){0}, &loader));
    is_int(et_loader_next(cx, loader, &b), ET_EIO, "a broken disk is never skipped");
    is_str(take_error(cx), "the disk is gone (sample 3)", "and the sample is named");
    et_loader_free(&loader);
    et_dataset_close(&data);
}

/* ---- what data are ---- */

static et_status
open_any(const char *name, const char *path, const char *const *settings,
         void **options, struct et_dataset **data)
{
    const struct et_dataset_class *type = et_dataset_find(name);
    *options = calloc(1, type->info.options_size);
    need(cx, et_options_init(cx, type->info.options, *options));
    if (path)
        need(cx, et_options_set(cx, type->info.options, *options, "path", path));
    for (; *settings; settings += 2)
        need(cx, et_options_set(cx, type->info.options, *options, settings[0],
                                settings[1]));
    return et_dataset_open(cx, type, *options, data);
}

static void
close_any(const char *name, void *options, struct et_dataset **data)
{
    et_dataset_close(data);
    et_options_release(et_dataset_find(name)->info.options, options);
    free(options);
}

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
put32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Writes N images of H x W x C, C = 0: without an axis for it, whose bytes count up. */
static void
write_images(uint32_t n, uint32_t h, uint32_t w, uint32_t C)
{
    const uint32_t shape[] = {n, h, w, C};
    const int ndim = C ? 4 : 3;
    size_t bytes = (size_t)n * h * w * (C ? C : 1), head = 4 + 4 * (size_t)ndim;
    uint8_t *x = calloc(1, head + bytes), y[64] = {0, 0, 8, 1};
    x[2] = 8;
    x[3] = (uint8_t)ndim;
    for (int i = 0; i < ndim; i++)
        put32(x + 4 + 4 * i, shape[i]);
    for (size_t i = 0; i < bytes; i++)
        x[head + i] = (uint8_t)i;
    put32(y + 4, n);
    write_file("x", x, head + bytes, false);
    write_file("y", y, 8 + n, false);
    free(x);
}

static et_status
open_images(void **options, struct et_dataset **data)
{
    return open_any("idx", scratch_folder(), SETTINGS("images", "x", "labels", "y"),
                    options, data);
}

static void
test_sizes(void)
{
    static const struct {
        uint32_t h, w, C;
        et_status want;
    } rows[] = {{1, INT16_MAX, 0, ET_OK},
                {1, INT16_MAX + 1, 0, ET_EFORMAT},
                {INT16_MAX, 1, 0, ET_OK},
                {INT16_MAX + 1, 1, 0, ET_EFORMAT},
                {2, 2, ET_MAX_CHANNELS, ET_OK},
                {2, 2, ET_MAX_CHANNELS + 1, ET_EFORMAT},
                {2, 2, 1, ET_OK}};
    void *options;
    struct et_dataset *data;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_images(2, rows[i].h, rows[i].w, rows[i].C);
        is_int(open_images(&options, &data), rows[i].want, "images of %ux%ux%u %s",
               rows[i].h, rows[i].w, rows[i].C,
               rows[i].want == ET_OK ? "are read" : "are too large");
        et_error_clear(cx);
        close_any("idx", options, &data);
    }
}

/* Bytes of headers that say nothing but what the file is. */
static void
test_idx_heads(void)
{
    static const struct {
        uint8_t head[4];
        et_status want;
    } rows[] = {{{0, 0, 8, 1}, ET_OK},      {{1, 0, 8, 1}, ET_EFORMAT},
                {{0, 1, 8, 1}, ET_EFORMAT}, {{0, 0, 9, 1}, ET_EFORMAT},
                {{0, 0, 8, 2}, ET_EFORMAT}, {{0, 0, 8, 0}, ET_EFORMAT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *options;
        struct et_dataset *data;
        /* Two labels, or two axes of which the second is 1. */
        uint8_t bytes[14] = {[7] = 2, [11] = rows[i].head[3] == 2};
        memcpy(bytes, rows[i].head, 4);
        write_images(2, 2, 2, 0);
        write_file("y", bytes, rows[i].head[3] == 2 ? 14 : 10, false);
        is_int(open_images(&options, &data), rows[i].want,
               "labels that begin %d %d %d %d", rows[i].head[0], rows[i].head[1],
               rows[i].head[2], rows[i].head[3]);
        et_error_clear(cx);
        close_any("idx", options, &data);
    }
}

static void
test_shapes_are_known(void)
{
    static const uint32_t shape[][3] = {{2, 3, 0}, {3, 2, 0}, {1, 6, 0}, {2, 1, 3}};
    uint64_t print[4];
    int twice = 0;
    for (int i = 0; i < 4; i++) {
        void *options;
        struct et_dataset *data;
        write_images(5, shape[i][0], shape[i][1], shape[i][2]);
        need(cx, open_images(&options, &data));
        need(cx, eti_data_fingerprint(cx, data, &print[i]));
        close_any("idx", options, &data);
        for (int k = 0; k < i; k++)
            twice += print[k] == print[i];
    }
    is_int(twice, 0, "the same bytes in other shapes are other data");
}

static void
test_summary(void)
{
    static const int64_t limits[] = {0, 1, 39, 40, 41, 1000};
    struct counted_loader s = counted_loader(cx, 40, 40, 3, NULL);
    need(cx, counted_begin(cx, &s));
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
        struct et_data_summary got;
        const int n = limits[k] > 0 && limits[k] < 40 ? (int)limits[k] : 40;
        need(cx, et_data_summarise(cx, s.data, limits[k], &got));
        is_int(got.n_read, n, "of 40 images at most %d are read", (int)limits[k]);
        for (int c = 0; c < 3; c++) {
            double sum = 0, squares = 0;
            for (int i = 0; i < n * 48; i++) {
                double v = counted(i / 48, i % 48 / 8, i % 8, c) / 255.0;
                sum += v;
                squares += v * v;
            }
            double mean = sum / n / 48, std = sqrt(squares / n / 48 - mean * mean);
            is_near(got.mean[c], mean, 1e-12, "their mean in channel %d", c);
            is_near(got.std[c], std, 1e-9, "their deviation");
        }
        et_data_summary_release(cx, &got);
    }
    counted_end(&s);
}

/* ---- tokens ---- */

static void
test_token_counts(void)
{
    static const struct {
        int64_t bytes, header, want; /* -1: refused */
        int width;
    } rows[] = {{0, 0, 0, 2},   {1, 0, -1, 2},   {1, 0, 1, 1},
                {5, 1, 2, 2},   {4, 1, -1, 2},   {10, 10, 0, 2},
                {9, 10, -1, 2}, {11, 10, -1, 2}, {12, 10, 1, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_error why;
        int64_t n;
        et_status s =
            eti_token_count(rows[i].bytes, rows[i].header, rows[i].width, &n, &why);
        is_int(s == ET_OK ? n : -1, rows[i].want,
               "%d bytes with a header of %d, %d a token", (int)rows[i].bytes,
               (int)rows[i].header, rows[i].width);
    }
}

/* A text of n bytes: how many windows of four there are to evaluate, each with the
 * token behind it. */
static void
test_windows(void)
{
    static const struct {
        int bytes, want;
    } rows[] = {{5, 1}, {8, 1}, {9, 2}, {12, 2}, {13, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *options;
        struct et_dataset *data;
        write_file("val.bin", "0123456789abcdef0123456789abcdef",
                   2 * (size_t)rows[i].bytes, false);
        need(cx, open_any("tokens", scratch_folder(),
                          SETTINGS("split", "test", "seq_len", "4"), &options, &data));
        is_int(data->facts.n_samples, rows[i].want, "%d tokens are %d windows of four",
               rows[i].bytes, rows[i].want);
        close_any("tokens", options, &data);
    }
}

/* Synthetic tokens last for as many samples as are asked for, at every phase. */
static void
test_synthetic_windows(void)
{
    void *options;
    struct et_dataset *data;
    need(cx, open_any("synthetic_tokens", NULL,
                      SETTINGS("num_samples", "10", "seq_len", "4"), &options, &data));
    is_int(data->facts.n_tokens, 44,
           "ten samples of four tokens, and room for a phase");
    is_int(eti_loader_windows(&data->facts, 4, true), 10, "are ten to train");
    close_any("synthetic_tokens", options, &data);
}

static void
test_splits_differ(void)
{
    static const char *const names[] = {"synthetic_tokens", "synthetic_images"};
    for (int k = 0; k < 2; k++) {
        uint64_t print[2];
        for (int split = 0; split < 2; split++) {
            void *options;
            struct et_dataset *data;
            need(cx,
                 open_any(names[k], NULL, SETTINGS("split", split ? "test" : "train"),
                          &options, &data));
            need(cx, eti_data_fingerprint(cx, data, &print[split]));
            close_any(names[k], options, &data);
        }
        ok(print[0] != print[1], "%s to test are others than to train", names[k]);
    }
}

/* ---- files ---- */

static void
test_which_file(void)
{
    static uint8_t zeros[2000];
    struct eti_bytes got;
    char path[600];
    write_file("both.gz", "zipped", 6, true);
    snprintf(path, sizeof path, "%s/both", scratch_folder());
    need(cx, eti_file_load(cx, path, 100, &got));
    ok(got.n == 6 && memcmp(got.data, "zipped", 6) == 0, "a file may be zipped");
    et_free(cx, got.data);
    write_file("both", "plain", 5, false);
    need(cx, eti_file_load(cx, path, 100, &got));
    ok(got.n == 5 && memcmp(got.data, "plain", 5) == 0, "but is read where it is not");
    et_free(cx, got.data);

    write_file("like", "\x1f\x00 is how this one begins", 26, false);
    snprintf(path, sizeof path, "%s/like", scratch_folder());
    need(cx, eti_file_load(cx, path, 100, &got));
    ok(got.n == 26 && got.data[0] == 0x1f, "half a magic number is none");
    et_free(cx, got.data);

    write_file("zeros", zeros, sizeof zeros, true);
    snprintf(path, sizeof path, "%s/zeros", scratch_folder());
    need(cx, eti_file_load(cx, path, 2000, &got));
    is_int(got.n, 2000, "as many bytes as are allowed are read");
    et_free(cx, got.data);
    is_int(eti_file_load(cx, path, 1999, &got), ET_EFORMAT, "and not one more");
    ok(strstr(take_error(cx), "2000 bytes exceed 1999") != NULL, "zipped or not");

    /* A hundred bytes as they are, of which the file has fifty; then its claim. */
    uint8_t cut[19 + 50] = {0x1f, 0x8b, 8, [9] = 3, [10] = 1, 100, 0, 155, 255};
    for (int i = 0; i < 50; i++)
        cut[15 + i] = (uint8_t)(i + 1);
    cut[65] = 100;
    write_file("cut", cut, sizeof cut, false);
    snprintf(path, sizeof path, "%s/cut", scratch_folder());
    is_int(eti_file_load(cx, path, 1000, &got), ET_EFORMAT,
           "half a zipped file is none");
    ok(strstr(take_error(cx), "compressed data ends early") != NULL, "and is told");
    ok(!got.data && got.n == 0, "nothing is given");
}

static et_status
write_word(struct et_ctx *ctx, int fd, void *data)
{
    (void)ctx, (void)data;
    return write(fd, "word", 4) == 4 ? ET_OK : ET_EIO;
}

static void
test_cache_place(void)
{
    char home[300], path[400];
    char *old = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    int fd = -1;
    struct stat st;
    snprintf(home, sizeof home, "%s/home", scratch_folder());
    mkdir(home, 0700);
    if (chdir(scratch_folder()) != 0)
        bail("cannot go to %s", scratch_folder());
    setenv("HOME", home, 1);
    setenv("XDG_CACHE_HOME", "beside", 1);
    need(cx, eti_cache_open(cx, "thing", 4, write_word, NULL, &fd));
    close(fd);
    snprintf(path, sizeof path, "%s/.cache/etude/thing", home);
    ok(access(path, R_OK) == 0,
       "a cache that is not named from the root is the home's");
    ok(access("beside", F_OK) != 0, "and none is made where one happens to be");
    snprintf(path, sizeof path, "%s/own", scratch_folder());
    setenv("ETUDE_CACHE_DIR", path, 1);
    need(cx, eti_cache_open(cx, "thing", 4, write_word, NULL, &fd));
    close(fd);
    unsetenv("ETUDE_CACHE_DIR");
    ok(access("own/thing", R_OK) == 0, "ETUDE_CACHE_DIR says where else it is");
    setenv("HOME", "beside", 1);
    is_int(eti_cache_open(cx, "thing", 4, write_word, NULL, &fd), ET_EIO,
           "a home that is not named from the root is none");
    et_error_clear(cx);
    if (old)
        setenv("HOME", old, 1);
    else
        unsetenv("HOME");
    free(old);
    need(cx, eti_temporary_open(cx, write_word, NULL, &fd));
    ok(fstat(fd, &st) == 0 && st.st_nlink == 0 && st.st_size == 4,
       "a temporary file has no name any more");
    close(fd);
}

int
main(void)
{
    unsetenv("ETUDE_CACHE_DIR"); /* the cache is where each test has it */
    cx = need_ctx();
    test_resize();
    test_border();
    test_draws_apart();
    test_transform_limits();
    test_ends();
    test_shuffles();
    test_warnings();
    test_broken();
    test_sizes();
    test_idx_heads();
    test_shapes_are_known();
    test_summary();
    test_token_counts();
    test_windows();
    test_synthetic_windows();
    test_splits_differ();
    test_which_file();
    test_cache_place();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "all memory is given back");
    et_ctx_free(&cx);
    return done();
}
