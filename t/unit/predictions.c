/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions: probabilities and losses, files and back, the worst and their
 * pictures. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/image/class_color.h"
#include "core/library/npz.h"
#include "core/library/predictions.h"
#include "etude/field.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { N = 6, C = 3, MOST = 1 << 16 };
static const float scores[N * C] = {2, 1, 0, 0, 3, 0,  -1, -2, -3,
                                    5, 5, 5, 0, 0, 80, 1,  0,  0};
static const int32_t labels[N] = {0, 0, 2, 1, 1, -100};

static const char *
path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    return path;
}

static void
test_numbers(struct eti_predictions *all)
{
    int64_t worst[N];
    need(all->cx, eti_predictions_add(all, scores, labels, 4, C));
    need(all->cx, eti_predictions_add(all, scores + 4 * C, labels + 4, 2, C));
    const double sum = exp(2) + exp(1) + 1;
    ok(fabs(all->p[0] - exp(2) / sum) < 1e-6, "probabilities are the softmax");
    ok(fabs(all->loss[0] + log(exp(2) / sum)) < 1e-6,
       "the loss is minus the logarithm of the label's");
    ok(fabs(all->loss[4] - 80) < 1e-4 && all->p[4 * C + 2] == 1,
       "also of scores whose exponential is none");
    is_int(all->class[1], 1, "the class is the one of the greatest score");
    is_int(all->class[3], 0, "the first of equal ones");
    ok(isnan(all->loss[5]), "a label that counts nothing has no loss");
    is_int(eti_predictions_worst(all, -1, 0, worst, N), 4, "four are wrong");
    ok(worst[0] == 4 && worst[1] == 1 && worst[2] == 2 && worst[3] == 3,
       "the worst first");
    is_int(eti_predictions_worst(all, -1, 0, worst, 2), 2, "or two of them");
    ok(worst[0] == 4 && worst[1] == 1, "which are the worst");
    is_int(eti_predictions_worst(all, 0, 1, worst, N), 1,
           "those of one label taken for one class");
    is_int(worst[0], 1, "alone");
    is_int(eti_predictions_add(all, scores, labels, 1, 2), ET_EINVAL,
           "other classes than before are refused");
    et_error_clear(all->cx);
}

static void
test_files(const struct eti_predictions *all)
{
    struct eti_predictions back;
    char text[MOST];
    need(all->cx, eti_predictions_write(all, path_of("p.csv"), ETI_AS_CSV));
    need(all->cx, eti_predictions_read(all->cx, path_of("p.csv"), &back));
    is_int(back.n, N, "a CSV is read back");
    bool same = back.classes == C;
    for (int i = 0; i < N && same; i++)
        same =
            back.label[i] == all->label[i] && back.class[i] == all->class[i] &&
            (isnan(back.loss[i]) ? isnan(all->loss[i]) : back.loss[i] == all->loss[i]);
    ok(same && memcmp(back.p, all->p, sizeof scores) == 0, "to the same numbers");
    eti_predictions_release(&back);
    static const char *const wrong[] = {"", "a,b\n1,2\n",
                                        "sample,label,class,loss,p0\n0,0,7,1,1\n",
                                        "sample,label,class,loss,p0,p1\n0,0,0,1,.5\n",
                                        "sample,label,class,loss,p0\n0,x1,0,1,1\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file("bad.csv", wrong[i], strlen(wrong[i]), false);
        is_int(eti_predictions_read(all->cx, path_of("bad.csv"), &back), ET_EFORMAT,
               "what is no such file is refused");
        et_error_clear(all->cx);
    }
    is_int(eti_predictions_read(all->cx, path_of("none.csv"), &back), ET_ENOENT,
           "one that is not there is not there");
    et_error_clear(all->cx);
    need(all->cx, eti_predictions_write(all, path_of("p.npz"), ETI_AS_NPZ));
    FILE *f = fopen(path_of("p.npz"), "rb");
    const size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    const char *root = getenv("ET_SRCDIR");
    char golden[512], want[MOST];
    snprintf(golden, sizeof golden, "%s/t/golden/readers/predictions.npz",
             root ? root : ".");
    f = fopen(golden, getenv("ETUDE_UPDATE") ? "w+b" : "rb");
    if (f && getenv("ETUDE_UPDATE") && fwrite(text, 1, n, f) == n)
        rewind(f);
    const size_t there = f ? fread(want, 1, sizeof want, f) : 0;
    if (f)
        fclose(f);
    ok(n == there && memcmp(text, want, n) == 0,
       "an npz is byte for byte the one that numpy has read");
}

static void
test_sheet(struct et_ctx *cx)
{
    enum { SIDE = 100 };
    static float x[SIDE * SIDE * 3];
    struct eti_sheet sheet = {.cx = cx}, back;
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        x[i] = (float)(i % 3) + (i / 3 % SIDE >= SIDE / 2 ? 10 : 0);
    for (int i = 0; i < ETI_TILES + 10; i++)
        need(cx, eti_sheet_add(&sheet, i, (float)(i * 37 % 100), x, 3, SIDE, SIDE));
    is_int(sheet.n, ETI_TILES, "a sheet has so many pictures");
    bool falls = true;
    for (int i = 1; i < sheet.n; i++)
        falls = falls && sheet.loss[i] <= sheet.loss[i - 1];
    ok(falls, "by loss");
    ok(!eti_sheet_wants(&sheet, sheet.loss[sheet.n - 1]) &&
           eti_sheet_wants(&sheet, 1000),
       "and wants worse ones alone");
    ok(sheet.w == ETI_TILE && sheet.h == ETI_TILE, "large pictures are made smaller");
    ok(sheet.rgb[0][0] == 0 && sheet.rgb[0][2] == 42 &&
           sheet.rgb[0][3 * (ETI_TILE - 1) + 2] == 255,
       "from black to white, in their colours");
    need(cx, eti_sheet_write(&sheet, path_of("s.ppm")));
    need(cx, eti_sheet_read(cx, path_of("s.ppm"), &back));
    ok(back.n == sheet.n && back.sample[5] == sheet.sample[5] &&
           memcmp(back.rgb[7], sheet.rgb[7], 3 * ETI_TILE * ETI_TILE) == 0,
       "a sheet is read back");
    eti_sheet_release(&back);
    eti_sheet_release(&sheet);
    need(cx, eti_sheet_write(&sheet, path_of("s.ppm")));
    need(cx, eti_sheet_read(cx, path_of("s.ppm"), &back));
    is_int(back.n, 0, "also an empty one");
    static const char *const wrong[] = {"P6\n1 1\n255\nabc", "P6\n# etude 9 9 99 1\n",
                                        "P6\n# etude 2 2 1 7\n2 2\n255\nabc",
                                        "P6\n# etude 2 2 1 7\n4 2\n255\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file("bad.ppm", wrong[i], strlen(wrong[i]), false);
        is_int(eti_sheet_read(cx, path_of("bad.ppm"), &back), ET_EFORMAT,
               "what is no sheet is refused");
        et_error_clear(cx);
    }
}

/* The checksum of ZIP files, a bit at a time. */
static uint32_t
checksum(const unsigned char *at, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static uint32_t
little(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* An npz whose arrays are about as long as the pieces that are summed at a time. */
static void
test_npz_sums(void)
{
    static unsigned char data[(2 << 20) + 1];
    static const int64_t sizes[] = {0, 1, (1 << 20) - 1, 1 << 20, (2 << 20) + 1};
    enum { HEAD = 30 }; /* of an entry, before its name */
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct eti_npz_array array = {"a.npy", "|u1", 1, data, 1, {sizes[i]}};
        char *text = NULL;
        size_t n;
        FILE *f = open_memstream(&text, &n);
        const bool is_put = f && eti_npz_put(f, &array, 1);
        if (!f || fclose(f) != 0 || !is_put)
            bail("no npz");
        const unsigned char *at = (unsigned char *)text;
        const uint32_t bytes = little(at + 18);
        ok(little(at + 14) == checksum(at + HEAD + strlen(array.name), bytes) &&
               bytes % 64 == sizes[i] % 64 && bytes > sizes[i],
           "the checksum of %lld bytes is that of the header and all of them",
           (long long)sizes[i]);
        free(text);
    }
}

/* Lines that are read and lines that are not, at each edge. */
static void
test_refused_lines(struct et_ctx *cx)
{
#define CLASSES "sample,label,class,loss,p0,p1\n"
#define VALUES  "sample,loss,target0,value0"
    static const struct {
        const char *text;
        int line; /* 0: it is fine; 1: of the first line no number is told */
    } rows[] = {
        {CLASSES "0,0,1,.5,.25,.75\n", 0},
        {CLASSES "0,0,2,.5,.25,.75\n", 2},
        {CLASSES "0,0,-1,.5,.25,.75\n", 2},
        {CLASSES "0,1,1,.5,.25,.75\n1,1e9,1,1,1,0\n", 3},
        {CLASSES "0,-100,1,,.25,.75\n1,0,1,.5,.25,.75\n2,0,1,.5,.25\n", 4},
        {"sample,pixels,right,loss,iou0\n0,4,4,0,1\n", 0},
        {"sample,pixels,right,loss,iou0\n0,4,5,0,1\n", 2},
        {"sample,tokens,right,loss\n0,3,4,1\n", 2},
        {VALUES "\n0,.5,1,2\n", 0},
        {VALUES ",target1\n0,.5,1,2,3\n", 1},
        {VALUES ",target1,value1\n0,.5,1,2,3,4\n", 0},
        {VALUES "\n0,.5,1,x\n", 2},
    };
#undef CLASSES
#undef VALUES
    struct eti_predictions back;
    char want[40];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file("edge.csv", rows[i].text, strlen(rows[i].text), false);
        const et_status status = eti_predictions_read(cx, path_of("edge.csv"), &back);
        snprintf(want, sizeof want, "edge.csv:%d: ", rows[i].line);
        if (rows[i].line == 0)
            ok(status == ET_OK && back.n == 1, "lines with all edges are read: %s",
               rows[i].text);
        else
            ok(status == ET_EFORMAT &&
                   (rows[i].line == 1 || strstr(et_error_get(cx)->message, want)),
               "%s is line %d of\n%s", et_error_get(cx)->message, rows[i].line,
               rows[i].text);
        et_error_clear(cx);
        if (status == ET_OK)
            eti_predictions_release(&back);
    }
}

/* How the text of the file NAME begins. */
static const char *
head_of(const char *name)
{
    static char text[MOST];
    FILE *f = fopen(path_of(name), "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    return text;
}

/* Names of classes with all that a CSV gives a meaning to; what values are called. */
static void
test_csv_text(struct et_ctx *cx)
{
    static const char *const names[] = {"plain", "a \"b\", c", "two\nlines"};
    static const float score[3] = {0, 1, 0}, value[] = {1, 2}, target[] = {3, 4};
    static const int32_t label[] = {2};
    struct eti_predictions all = {.cx = cx}, values = {.cx = cx};
    need(cx, eti_predictions_add(&all, score, label, 1, 3));
    need(cx, eti_predictions_set_names(&all, names, 3));
    need(cx, eti_predictions_write(&all, path_of("q.csv"), ETI_AS_CSV));
    ok(strstr(head_of("q.csv"), ",\"two\nlines\",\"a \"\"b\"\", c\"\n") != NULL,
       "names are quoted as RFC 4180 says: %s", head_of("q.csv"));
    eti_predictions_release(&all);
    need(cx, eti_predictions_add_values(&values, value, target, 1, 2));
    need(cx, eti_predictions_write(&values, path_of("w.csv"), ETI_AS_CSV));
    is_str(head_of("w.csv"), "sample,loss,target0,value0,target1,value1\n0,4,3,1,4,2\n",
           "a target stands before its value, under its name");
    eti_predictions_release(&values);
}

/* Of losses in any order the greatest stay, each with its own number and picture. */
static void
test_sheet_keeps(struct et_ctx *cx)
{
    enum { MANY = 3 * ETI_TILES + 1 };
    struct eti_sheet sheet = {.cx = cx};
    int wrong = 0;
    for (int i = 0; i < MANY; i++) {
        const int loss = 50 * i % MANY; /* each number below MANY, once */
        float x[2 * 2 * 3] = {0};
        x[0] = 255; /* the scale: white is 255 */
        x[3] = (float)loss;
        need(cx, eti_sheet_add(&sheet, 1000 + loss, (float)loss, x, 3, 2, 2));
    }
    for (int i = 0; i < sheet.n; i++)
        wrong += sheet.loss[i] != (float)(MANY - 1 - i) ||
                 sheet.sample[i] != 1000 + MANY - 1 - i ||
                 sheet.rgb[i][3] != MANY - 1 - i || sheet.rgb[i][0] != 255;
    is_int(sheet.n, ETI_TILES, "a sheet is full");
    is_int(wrong, 0, "of the %d worst, each with its number and its picture",
           ETI_TILES);
    eti_sheet_release(&sheet);
}

/* Pictures of one and of two channels are grey, by the first. */
static void
test_sheet_grey(struct et_ctx *cx)
{
    for (int n = 1; n <= 3; n++) {
        struct eti_sheet sheet = {.cx = cx};
        float x[4 * 3];
        int wrong = 0;
        for (int i = 0; i < 4 * n; i++)
            x[i] = (float)(i % n == 0 ? 85 * (i / n) : 200);
        need(cx, eti_sheet_add(&sheet, 0, 1, x, n, 2, 2));
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 3; k++)
                wrong += sheet.rgb[0][3 * i + k] != (n == 3 && k > 0 ? 200 : 85 * i);
        is_int(wrong, 0, "a picture of %d channels is %s", n,
               n < 3 ? "grey" : "in its colours");
        eti_sheet_release(&sheet);
    }
}

/* A tile of masks: the choice over the picture, the label, the choice. */
static void
test_sheet_masks(struct et_ctx *cx)
{
    enum { H = 2, W = 3 };
    static const int32_t label[H * W] = {0, 1, 2, 3, 4, -100};
    static const int32_t chosen[H * W] = {5, 0, 2, 1, 4, 3};
    static const float x[H * W] = {0, 255, 51, 102, 153, 204};
    struct eti_sheet sheet = {.cx = cx};
    int wrong[3] = {0};
    need(cx, eti_sheet_add_masks(&sheet, 7, 1, x, 1, H, W, label, chosen));
    ok(sheet.n == 1 && sheet.w == 3 * W && sheet.h == H && sheet.sample[0] == 7,
       "a tile of masks is three pictures wide");
    for (int i = 0; i < H * W && sheet.w == 3 * W; i++) {
        const uint8_t *at = sheet.rgb[0] + 3 * (i / W * 3 * W + i % W);
        uint8_t own[3], other[3];
        const bool is_over = eti_class_color(chosen[i], own);
        (void)eti_class_color(label[i], other);
        for (int k = 0; k < 3; k++) {
            const int grey = (int)x[i];
            wrong[0] += at[k] != (is_over ? (grey + own[k]) / 2 : grey);
            wrong[1] += at[3 * W + k] != other[k];
            wrong[2] += at[6 * W + k] != own[k];
        }
    }
    is_int(wrong[0], 0, "first the picture, under the colours of what was chosen");
    is_int(wrong[1], 0, "then the label's colours");
    is_int(wrong[2], 0, "then those of what was chosen");
    eti_sheet_release(&sheet);
}

/* Masks in an npz: what was chosen and the labels, as bytes. */
static void
test_mask_bytes(struct et_ctx *cx)
{
    static const int32_t chosen[] = {254, 1, 2, 3, 4, 5},
                         label[] = {6, 7, ET_IGNORE_INDEX, 8, 254, 0},
                         many[] = {0, 0, 0, 0, 0, 255};
    static const uint8_t bytes[] = {6, 7, 255, 8, 254, 0, 254, 1, 2, 3, 4, 5};
    struct eti_predictions all = {.cx = cx};
    struct eti_detail d = {.cx = cx, .path = path_of("d.npz"), .as = ETI_AS_NPZ};
    need(cx, eti_detail_mask(&d, chosen, label, 2, 3));
    need(cx, eti_detail_mask(&d, label, chosen, 2, 3));
    static const int sizes[][2] = {{3, 2}, {2, 2}, {3, 3}, {1, 6}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        is_int(eti_detail_mask(&d, chosen, label, sizes[i][0], sizes[i][1]), ET_ENOTSUP,
               "a mask of %d x %d after 2 x 3 is refused", sizes[i][0], sizes[i][1]);
        et_error_clear(cx);
    }
    is_int(eti_detail_mask(&d, many, label, 2, 3), ET_ENOTSUP,
           "class 255 has no byte: that counts nothing");
    ok(strstr(et_error_get(cx)->message, "class 255: masks in bytes have at most 255"),
       "with the numbers");
    et_error_clear(cx);
    need(cx, eti_detail_write(&d, &all));
    FILE *f = fopen(path_of("d.npz"), "rb");
    char text[MOST];
    const size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    const char *name = memmem(text, n, "label.npy", 9);
    const char *at = name ? memmem(name, n - (size_t)(name - text), "\n", 1) : NULL;
    ok(at && memcmp(at + 1, bytes, sizeof bytes) == 0,
       "the array of labels has the labels, 255 where nothing counts");
    eti_detail_release(&d);
}

/* Two masks of four pixels and two classes: scores are [C][H * W]. */
static void
test_masks(struct et_ctx *cx)
{
    static const float both[2][2 * 4] = {{1, 1, 0, 0, 0, 0, 1, 1},
                                         {1, 0, 0, 0, 0, 1, 1, 1}};
    static const int32_t label[2][4] = {{0, 0, 1, 0}, {0, 0, ET_IGNORE_INDEX, 1}};
    struct eti_predictions all = {.cx = cx}, back;
    struct eti_predictions_sum sum;
    int32_t chosen[4];
    for (int i = 0; i < 2; i++)
        need(cx, eti_predictions_add_mask(&all, both[i], label[i], 4, 2, chosen));
    is_int(chosen[2], 1, "a pixel's class is the one of the greatest score");
    is_int(all.label[1], 3, "pixels that count nothing are not counted");
    is_int(all.class[1], 2, "those that are right are");
    is_near(all.p[0], 2 / 3.0, 1e-6, "a mask has an IoU of each class");
    is_near(eti_predictions_iou(&all, 0), 3 / 5.0, 1e-9,
            "over all masks it is that of their pixels together");
    is_near(eti_predictions_iou(&all, 1), 2 / 4.0, 1e-9, "for each class");
    eti_predictions_sum(&all, &sum);
    is_near(sum.mean_iou, 0.55, 1e-9, "and their mean");
    is_int(sum.counted, 7, "of all pixels that count");
    is_near(all.loss[0], (3 * log(1 + exp(-1)) + log(1 + exp(1))) / 4, 1e-6,
            "the loss is a mean over pixels");
    static const char *const names[] = {"sky, blue", "dog"};
    need(cx, eti_predictions_set_names(&all, names, 2));
    need(cx, eti_predictions_keep(&all, scratch_folder(), "m"));
    need(cx, eti_predictions_read(cx, path_of("m.csv"), &back));
    ok(back.answer == ETI_ANSWER_MASK && back.n == 2 && back.classes == 2 &&
           back.label[1] == 3 && back.p[0] == all.p[0],
       "masks are read back");
    ok(back.confusion && back.confusion[1] == all.confusion[1] && back.name &&
           strcmp(back.name[0], "sky, blue") == 0,
       "with the confusion of their pixels and the names of classes");
    eti_predictions_release(&back);
    eti_predictions_release(&all);
}

static void
test_tokens(struct et_ctx *cx)
{
    static const float each[3 * 2] = {0, 2, 0, 2, 0, 2};
    static const int32_t input[] = {0, 1, 1}, label[] = {1, 0, ET_IGNORE_INDEX};
    struct eti_predictions all = {.cx = cx}, back;
    struct eti_predictions_sum sum;
    int32_t chosen[3];
    float loss[3];
    need(cx, eti_predictions_add_tokens(&all, each, label, 3, 2, chosen, loss));
    need(cx, eti_predictions_keep_sequence(&all, input, label, chosen, loss, 3));
    is_near(loss[1] - loss[0], 2, 1e-6, "each token has its loss");
    ok(isnan(loss[2]), "but one that counts nothing");
    eti_predictions_sum(&all, &sum);
    ok(sum.counted == 2 && sum.right == 1, "one of two is right");
    is_near(sum.loss, (loss[0] + loss[1]) / 2, 1e-6, "the loss is a mean over tokens");
    need(cx, eti_predictions_keep(&all, scratch_folder(), "t"));
    need(cx, eti_predictions_read(cx, path_of("t.csv"), &back));
    const struct eti_sequence *one = back.sequences ? &back.sequences->v[0] : NULL;
    ok(one && one->n == 3 && one->input[1] == 1 && one->label[2] == ET_IGNORE_INDEX &&
           one->class[1] == 1 && isnan(one->loss[2]),
       "the worst are read back token by token");
    eti_predictions_release(&back);
    for (int i = 0; i < ETI_SEQUENCES + 5; i++) {
        static const float other[3 * 2] = {0};
        need(cx, eti_predictions_add_tokens(&all, i % 2 ? other : each, label, 3, 2,
                                            chosen, loss));
        need(cx, eti_predictions_keep_sequence(&all, input, label, chosen, loss, 3));
    }
    bool falls = all.sequences->n == ETI_SEQUENCES;
    for (int i = 1; i < all.sequences->n; i++)
        falls = falls && all.sequences->v[i].mean <= all.sequences->v[i - 1].mean;
    ok(falls, "so many are kept, by loss");
    eti_predictions_release(&all);
}

/* In an order in which good and bad ones come early and late. */
static void
test_worst_sequences(struct et_ctx *cx)
{
    enum { MANY = 3 * ETI_SEQUENCES + 1 };
    struct eti_predictions all = {.cx = cx, .classes = 2};
    int32_t token = 1;
    float loss = 0;
    bool worst = true;
    for (int i = 0; i < MANY; i++) {
        const int mean = 7 * i % MANY;
        const struct eti_sequence one = {.sample = mean,
                                         .mean = (float)mean,
                                         .n = 1,
                                         .input = &token,
                                         .label = &token,
                                         .class = &token,
                                         .loss = &loss};
        need(cx, eti_predictions_add_sequence(&all, &one));
    }
    for (int i = 0; i < ETI_SEQUENCES; i++)
        worst = worst && all.sequences->v[i].sample == MANY - 1 - i &&
                all.sequences->v[i].mean == (float)(MANY - 1 - i);
    ok(worst, "those with the greatest losses are kept, the greatest first");
    eti_predictions_release(&all);
}

static void
test_values(struct et_ctx *cx)
{
    static const float value[] = {1, 2, 3, 4}, target[] = {1, 0, 5, 4};
    struct eti_predictions all = {.cx = cx}, back;
    struct eti_predictions_sum sum;
    need(cx, eti_predictions_add_values(&all, value, target, 4, 1));
    eti_predictions_sum(&all, &sum);
    is_near(sum.mae, 1, 1e-9, "values are off by their mean distance");
    is_near(sum.rmse, sqrt(2), 1e-9, "and the root of the mean of its squares");
    is_near(sum.r2, 1 - 8 / 17.0, 1e-6, "R2 is the part that is explained");
    need(cx, eti_predictions_keep(&all, scratch_folder(), "v"));
    need(cx, eti_predictions_read(cx, path_of("v.csv"), &back));
    ok(back.answer == ETI_ANSWER_VALUES && back.n == 4 && back.p[2] == 0 &&
           back.p[3] == 2 && back.loss[1] == 4,
       "they are read back");
    eti_predictions_release(&back);
    int64_t worst[4];
    is_int(eti_predictions_worst(&all, -1, 0, worst, 4), 4, "none of them is right");
    ok(worst[0] == 1 && worst[1] == 2, "the worst are those that are off most");
    eti_predictions_release(&all);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_predictions all = {.cx = cx};
    struct et_alloc_stats stats;
    test_numbers(&all);
    test_files(&all);
    test_npz_sums();
    test_refused_lines(cx);
    test_csv_text(cx);
    test_sheet(cx);
    test_sheet_keeps(cx);
    test_sheet_grey(cx);
    test_sheet_masks(cx);
    test_mask_bytes(cx);
    test_masks(cx);
    test_tokens(cx);
    test_worst_sequences(cx);
    test_values(cx);
    eti_predictions_release(&all);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
