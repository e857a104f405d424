/* SPDX-License-Identifier: Apache-2.0 */
/* The predictions of the same samples at each evaluation, in lines and read back; masks
 * and tokens in full; and the text of predictions in each format. Heights, widths,
 * labels and classes all differ. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/library/predictions.h"
#include "core/library/tracked.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static const char *
path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    return path;
}

/* Reads the file NAME, at most MOST bytes, with a zero behind them; removes it. */
static size_t
take_file(const char *name, char *out, size_t most)
{
    FILE *f = fopen(path_of(name), "rb");
    if (!f)
        bail("no %s", name);
    size_t n = fread(out, 1, most - 1, f);
    fclose(f);
    unlink(path_of(name));
    out[n] = '\0';
    return n;
}

static struct et_desc
desc_of(int ndim, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t shape[] = {a, b, c, d};
    struct et_desc out;
    et_desc_init(&out, ET_F32, ndim, shape, ET_ROW_MAJOR);
    return out;
}

/* ---- lines ---- */

static void
test_classes(struct et_ctx *cx)
{
    enum { N = 2, H = 2, W = 3 };
    static const float outputs[N * 3] = {0, 2, 1, 3, 0, 0};
    static const int32_t target[N] = {2, 0};
    static const char *const names[] = {"ant", "bee"};
    static float image[N * 3 * H * W];
    for (int i = 0; i < N * 3 * H * W; i++)
        image[i] = (float)(i / (3 * H * W) ? 35 - i % 18 * 2 : i % 18 * 2);
    struct eti_tracked_batch b = {.outputs = outputs,
                                  .desc = desc_of(2, N, 3, 0, 0),
                                  .target = target,
                                  .image = image,
                                  .image_desc = desc_of(4, N, 3, H, W),
                                  .epoch = 3,
                                  .batch = 70,
                                  .names = names,
                                  .n_names = 2};
    need(cx, eti_tracked_write(cx, scratch_folder(), "c", &b));
    json_t *all = eti_tracked_read(path_of("c.track.jsonl"));
    const json_t *line = json_array_get(all, 0);
    ok(json_integer_value(json_object_get(line, "ep")) == 3 &&
           json_integer_value(json_object_get(line, "ba")) == 70,
       "a line has its epoch and its batch");
    static const char *const keys[] = {"label", "class"};
    static const int want[][N] = {{2, 0}, {1, 0}};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < N; i++)
            is_int(json_integer_value(
                       json_array_get(json_object_get(line, keys[k]), (size_t)i)),
                   want[k][i], "a line has the %s of sample %d", keys[k], i);
    const double first = exp(2) / (exp(2) + exp(1) + 1), second = exp(3) / (exp(3) + 2);
    const json_t *p = json_object_get(line, "p");
    is_near(json_number_value(json_array_get(p, 0)), first, 1e-5,
            "a line has the probability of the first sample's class");
    is_near(json_number_value(json_array_get(p, 1)), second, 1e-5,
            "a line has the probability of the second sample's class");
    const char *bee = eti_tracked_name(line, 1);
    ok(bee && strcmp(bee, "bee") == 0 && !eti_tracked_name(line, 2),
       "a class has its name, and a class without a name has none");
    json_decref(all);
    struct eti_sheet sheet;
    need(cx, eti_sheet_read(cx, path_of("c.track.ppm"), &sheet));
    ok(sheet.n == N && sheet.w == W && sheet.h == H && sheet.sample[0] == 0 &&
           sheet.sample[1] == 1,
       "the sheet has the pictures of all samples in their order");
    int wrong = 0;
    for (int i = 0; i < N && sheet.n == N; i++) {
        const float *x = image + i * 3 * H * W;
        float least = i ? 1 : 0, most = i ? 35 : 34;
        for (int at = 0; at < H * W; at++)
            for (int k = 0; k < 3; k++)
                wrong += sheet.rgb[i][3 * at + k] !=
                         lrint((x[k * H * W + at] - least) * 255. / (most - least));
    }
    is_int(wrong, 0, "each picture of the sheet has its own pixels and colours");
    eti_sheet_release(&sheet);
    unlink(path_of("c.track.jsonl"));
    unlink(path_of("c.track.ppm"));
}

static void
test_masks(struct et_ctx *cx)
{
    enum { H = 2, W = 3, C = 20 };
    static float outputs[C * H * W];
    static const int32_t want[H * W] = {1, 2, 3, 17, 18, 19},
                                  target[H * W] = {1, 2, 3, 0, -1, -1};
    for (int i = 0; i < H * W; i++)
        outputs[want[i] * H * W + i] = 1;
    struct eti_tracked_batch b = {.outputs = outputs,
                                  .desc = desc_of(4, 1, C, H, W),
                                  .target = target,
                                  .epoch = 1,
                                  .batch = 2};
    need(cx, eti_tracked_write(cx, scratch_folder(), "m", &b));
    json_t *all = eti_tracked_read(path_of("m.track.jsonl"));
    const json_t *line = json_array_get(all, 0);
    const char *mask =
        json_string_value(json_array_get(json_object_get(line, "mask"), 0));
    is_str(mask ? mask : "none", "010203111213", "a mask is written row by row");
    ok(json_integer_value(json_object_get(line, "h")) == H &&
           json_integer_value(json_object_get(line, "w")) == W,
       "a mask is written with its height and its width");
    is_near(json_number_value(json_array_get(json_object_get(line, "p"), 0)), 0.75,
            1e-6, "a mask is written with the share of its pixels that are right");
    json_decref(all);
    unlink(path_of("m.track.jsonl"));
}

/* The longer side is cut down to the limit, and the other one in proportion. */
static void
test_sides(struct et_ctx *cx)
{
    static const struct {
        int64_t H, W, h, w;
    } row[] = {{48, 5, 48, 5}, {5, 48, 5, 48}, {96, 20, 48, 10}, {2, 480, 1, 48}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int64_t area = row[i].H * row[i].W;
        float *outputs = calloc((size_t)area * 2, sizeof *outputs);
        int32_t *target = calloc((size_t)area, sizeof *target);
        for (int64_t at = 0; at < area; at++) /* the right half is of class 1 */
            outputs[area + at] = at % row[i].W >= row[i].W / 2;
        struct eti_tracked_batch b = {.outputs = outputs,
                                      .desc = desc_of(4, 1, 2, row[i].H, row[i].W),
                                      .target = target};
        need(cx, eti_tracked_write(cx, scratch_folder(), "s", &b));
        json_t *all = eti_tracked_read(path_of("s.track.jsonl"));
        const json_t *line = json_array_get(all, 0);
        const char *mask =
            json_string_value(json_array_get(json_object_get(line, "mask"), 0));
        ok(json_integer_value(json_object_get(line, "h")) == row[i].h &&
               json_integer_value(json_object_get(line, "w")) == row[i].w && mask &&
               (int64_t)strlen(mask) == 2 * row[i].h * row[i].w,
           "of a mask of %lld x %lld pixels %lld x %lld are kept", (long long)row[i].H,
           (long long)row[i].W, (long long)row[i].h, (long long)row[i].w);
        int wrong = 0;
        for (int64_t at = 0; mask && mask[2 * at]; at++)
            wrong += mask[2 * at + 1] != '0' + (at % row[i].w >= row[i].w / 2);
        is_int(wrong, 0, "the pixels that are kept come from their places in the mask");
        json_decref(all);
        free(outputs);
        free(target);
        unlink(path_of("s.track.jsonl"));
    }
}

/* Lines that are incomplete are ignored; of a batch the last line counts. */
static void
test_read(void)
{
    static char text[ETI_TRACKED_LINES * 32];
    static const char few[] = "{\"ba\":1,\"p\":[1]}\n{\"ba\":2,\"p\":[\n"
                              "{\"ba\":3,\"p\":[3]}\n{\"ba\":4,\"p\":[4]}\n"
                              "{\"ba\":3,\"p\":[5]}\n{\"ba\":9}\n";
    const char *path = write_file("r.track.jsonl", few, sizeof few - 1, false);
    json_t *all = eti_tracked_read(path);
    ok(json_array_size(all) == 2 &&
           json_integer_value(json_object_get(json_array_get(all, 0), "ba")) == 1 &&
           json_integer_value(
               json_array_get(json_object_get(json_array_get(all, 1), "p"), 0)) == 5,
       "the last line of a batch counts, and lines of later batches before it are "
       "dropped");
    json_decref(all);
    size_t n = 0;
    for (int i = 0; i < ETI_TRACKED_LINES + 3; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"ba\":%d,\"p\":[]}\n", i);
    path = write_file("r.track.jsonl", text, n, false);
    all = eti_tracked_read(path);
    ok(json_array_size(all) == ETI_TRACKED_LINES &&
           json_integer_value(json_object_get(json_array_get(all, 0), "ba")) == 3 &&
           json_integer_value(
               json_object_get(json_array_get(all, ETI_TRACKED_LINES - 1), "ba")) ==
               ETI_TRACKED_LINES + 2,
       "of too many lines the newest are read");
    json_decref(all);
    unlink(path);
}

/* ---- files in full ---- */

/* More masks than fit at first. */
static void
test_detail(struct et_ctx *cx)
{
    enum { H = 2, W = 3, N = 70 };
    static char text[1 << 16];
    char path[512];
    struct eti_predictions all = {.cx = cx};
    struct eti_detail d = {.cx = cx, .as = ETI_AS_NPZ};
    snprintf(path, sizeof path, "%s", path_of("d.npz"));
    d.path = path;
    float loss[N];
    for (int i = 0; i < N; i++) {
        int32_t chosen[H * W], label[H * W];
        for (int k = 0; k < H * W; k++) {
            chosen[k] = i + k;
            label[k] = i == 69 && k == 5 ? -1 : 100 + i + k;
        }
        loss[i] = (float)i;
        need(cx, eti_detail_mask(&d, chosen, label, H, W));
    }
    all.loss = loss;
    all.n = N;
    need(cx, eti_detail_write(&d, &all));
    size_t n = take_file("d.npz", text, sizeof text);
    int wrong = 0;
    const char *at[2] = {memmem(text, n, "NUMPY", 5), NULL};
    at[1] =
        at[0] ? memmem(at[0] + 1, n - (size_t)(at[0] + 1 - text), "NUMPY", 5) : NULL;
    for (int a = 0; a < 2; a++) {
        ok(at[a] && memmem(at[a], 128, "'shape': (70, 2, 3)", 19) != NULL,
           "arrays have the axes number, height and width");
        const uint8_t *bytes =
            (const uint8_t *)(at[a] ? at[a] : text) - 1 + 10 +
            (at[a] ? (uint8_t)at[a][7] + 256 * (uint8_t)at[a][8] : 0);
        for (int i = 0; at[a] && i < N; i++)
            for (int k = 0; k < H * W; k++) {
                int want = a && i == 69 && k == 5 ? 255 : 100 * a + i + k;
                wrong += bytes[i * H * W + k] != want;
            }
    }
    is_int(wrong, 0,
           "arrays have each mask and label, and 255 for a pixel that does not count");
    const int32_t many[H * W] = {255}, none[H * W] = {0};
    ok(eti_detail_mask(&d, none, none, H, W + 1) == ET_ENOTSUP,
       "a mask of another width is refused");
    et_error_clear(cx);
    ok(eti_detail_mask(&d, many, none, H, W) == ET_ENOTSUP,
       "a class that does not fit a byte is refused");
    et_error_clear(cx);
    eti_detail_release(&d);

    d = (struct eti_detail){.cx = cx, .as = ETI_AS_JSONL};
    snprintf(path, sizeof path, "%s", path_of("d.jsonl"));
    d.path = path;
    static const int32_t input[] = {1, 2}, label[] = {3, -1}, class[] = {5, 6};
    static const float losses[] = {0.5F, NAN};
    for (int i = 0; i < 2; i++)
        need(cx, eti_detail_tokens(&d, input, label, class, losses, 2));
    need(cx, eti_detail_write(&d, &all));
    eti_detail_release(&d);
    take_file("d.jsonl", text, sizeof text);
    is_str(text,
           "{\"sample\":0,\"input\":[1,2],\"label\":[3,-1],\"class\":[5,6],"
           "\"losses\":[0.5,null]}\n"
           "{\"sample\":1,\"input\":[1,2],\"label\":[3,-1],\"class\":[5,6],"
           "\"losses\":[0.5,null]}\n",
           "tokens are written with one number for each place");
}

/* ---- formats ---- */

static void
test_formats(struct et_ctx *cx)
{
    static const float score[] = {0, 0}, value[] = {1, NAN}, target[] = {2, 3};
    static const int32_t label = 1;
    static const char *const names[] = {"a", "b\"c"};
    static char text[4096];
    struct eti_predictions all = {.cx = cx};
    need(cx, eti_predictions_add(&all, score, &label, 1, 2));
    need(cx, eti_predictions_set_names(&all, names, 2));
    need(cx, eti_predictions_write(&all, path_of("f.jsonl"), ETI_AS_JSONL));
    take_file("f.jsonl", text, sizeof text);
    is_str(text,
           "{\"sample\":0,\"label\":1,\"class\":0,\"label_name\":\"b\\\"c\","
           "\"class_name\":\"a\",\"loss\":0.693147182,\"p\":[0.5,0.5]}\n",
           "a line of JSON for classes has label and class by number and name");
    eti_predictions_release(&all);
    need(cx, eti_predictions_add_values(&all, value, target, 1, 2));
    need(cx, eti_predictions_write(&all, path_of("f.jsonl"), ETI_AS_JSONL));
    take_file("f.jsonl", text, sizeof text);
    is_str(text, "{\"sample\":0,\"loss\":null,\"target\":[2,3],\"value\":[1,null]}\n",
           "a line of JSON for values has targets and values");
    need(cx, eti_predictions_write(&all, path_of("f.csv"), ETI_AS_CSV));
    take_file("f.csv", text, sizeof text);
    is_str(text, "sample,loss,target0,value0,target1,value1\n0,,2,1,3,nan\n",
           "CSV for values has nan for a value that is no number");
    eti_predictions_release(&all);
    static const struct {
        const char *name;
        bool is_one;
        enum eti_predictions_as as;
    } row[] = {
        {"a.csv", true, ETI_AS_CSV}, {"a.jsonl", true, ETI_AS_JSONL},
        {"a.npz", true, ETI_AS_NPZ}, {"a/", true, ETI_AS_FOLDER},
        {".csv", false, ETI_AS_CSV}, {"a.json", false, ETI_AS_CSV},
        {"", false, ETI_AS_CSV},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        enum eti_predictions_as as;
        bool is_one = eti_predictions_format(row[i].name, &as);
        ok(is_one == row[i].is_one && (!is_one || as == row[i].as),
           "'%s' is %s of a format of predictions", row[i].name,
           row[i].is_one ? "a name" : "no name");
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_classes(cx);
    test_masks(cx);
    test_sides(cx);
    test_read();
    test_detail(cx);
    test_formats(cx);
    et_ctx_free(&cx);
    return done();
}
