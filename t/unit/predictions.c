/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions: probabilities and losses, files and back, the worst and their
 * pictures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    test_sheet(cx);
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
