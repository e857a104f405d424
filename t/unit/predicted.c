/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions of each kind of answer, with numbers that tell all places apart: more
 * than fit at first, labels that do not count, the worst passages, and the sums, in
 * JSON and read back. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/predictions.h"
#include "t/data/fixture.h"
#include "t/tap.h"

/* ---- classes ---- */

/* Samples keep their numbers when the arrays grow. */
static void
test_many(struct et_ctx *cx)
{
    enum { CHUNK = 100, CHUNKS = 6 };
    struct eti_predictions all = {.cx = cx};
    int wrong = 0;
    for (int k = 0; k < CHUNKS; k++) {
        float scores[2 * CHUNK];
        int32_t label[CHUNK];
        for (int i = 0; i < CHUNK; i++) {
            scores[2 * i] = (float)(k * CHUNK + i - 299) / 100;
            scores[2 * i + 1] = 0;
            label[i] = i % 2;
        }
        need(cx, eti_predictions_add(&all, scores, label, CHUNK, 2));
    }
    for (int i = 0; i < CHUNK * CHUNKS; i++) {
        double p = 1 / (1 + exp(-(i - 299) / 100.0));
        double loss = -log(i % 2 ? 1 - p : p);
        wrong += fabs(all.p[2 * i] - p) > 1e-5 ||
                 fabs(all.p[2 * i + 1] - (1 - p)) > 1e-5 || all.label[i] != i % 2 ||
                 all.class[i] != (i < 299) || fabs(all.loss[i] - loss) > 1e-5;
    }
    is_int(wrong, 0, "each of 600 samples has its class, probabilities and loss");
    static const float score[] = {1, 0};
    static const int32_t one = 0;
    int32_t chosen;
    float loss;
    ok(eti_predictions_add_tokens(&all, score, &one, 1, 2, &chosen, &loss) == ET_EINVAL,
       "tokens cannot be added to predictions of classes");
    et_error_clear(cx);
    ok(eti_predictions_add_mask(&all, score, &one, 1, 2, &chosen) == ET_EINVAL,
       "masks cannot be added to predictions of classes");
    et_error_clear(cx);
    eti_predictions_release(&all);
}

static void
test_labels(struct et_ctx *cx)
{
    static const float scores[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
    static const int32_t label[] = {-1, 3, 2, 0};
    static const char *const names[] = {"a", "b", "c", "d"};
    struct eti_predictions all = {.cx = cx};
    struct eti_predictions_sum sum;
    char text[32];
    int64_t worst[4];
    need(cx, eti_predictions_add(&all, scores, label, 4, 3));
    ok(isnan(all.loss[0]) && isnan(all.loss[1]) && !isnan(all.loss[2]) &&
           !isnan(all.loss[3]),
       "a label below 0 or above the classes does not count");
    eti_predictions_sum(&all, &sum);
    ok(sum.counted == 2 && sum.right == 1,
       "of four samples two count, and one of these is right");
    is_near(sum.loss, (all.loss[2] + all.loss[3]) / 2.0, 1e-6,
            "the loss is the mean of the two samples that count");
    ok(eti_predictions_worst(&all, -1, 0, worst, 4) == 1 && worst[0] == 3,
       "of two samples that count one is among the worst");
    ok(eti_predictions_worst(&all, 0, 2, worst, 4) == 1 &&
           eti_predictions_worst(&all, 0, 1, worst, 4) == 0 &&
           eti_predictions_worst(&all, 1, 2, worst, 4) == 0,
       "the worst samples of a pair have its label and its class");
    need(cx, eti_predictions_set_names(&all, names, 4));
    is_str(eti_predictions_name(&all, 2, text, sizeof text), "2",
           "names for another number of classes name none");
    need(cx, eti_predictions_set_names(&all, names, 3));
    is_str(eti_predictions_name(&all, 2, text, sizeof text), "2 c",
           "the last class has its name");
    is_str(eti_predictions_name(&all, 3, text, sizeof text), "3",
           "a class behind the last has no name");
    is_str(eti_predictions_name(&all, -1, text, sizeof text), "-1",
           "a class before the first has no name");
    json_t *json = eti_predictions_json(&all, "test");
    ok(json_integer_value(json_object_get(json, "samples")) == 4 &&
           json_integer_value(json_object_get(json, "counted")) == 2 &&
           json_number_value(json_object_get(json, "accuracy")) == 0.5 &&
           json_integer_value(json_object_get(json, "classes")) == 3,
       "JSON says how many samples there are, count and are right");
    json_decref(json);
    eti_predictions_release(&all);
}

/* ---- masks ---- */

/* Scores of 1 for the class of each of N pixels, and of 0 for other classes. */
static void
score_pixels(const int32_t *class, int n, float *scores)
{
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n; i++)
            scores[k * n + i] = class[i] == k;
}

static void
test_masks(struct et_ctx *cx)
{
    enum { PIXELS = 6 };
    static const int32_t want[2][PIXELS] = {{0, 1, 1, 2, 2, 2}, {1, 1, 0, 0, 0, 2}},
                         label[2][PIXELS] = {{0, 0, 1, -1, 100, 2},
                                             {1, 1, 1, 1, -1, -1}};
    static const int64_t confusion[] = {1, 1, 0, 2, 3, 0, 0, 0, 1};
    struct eti_predictions all = {.cx = cx};
    struct eti_predictions_sum sum;
    float scores[3 * PIXELS];
    int32_t chosen[PIXELS];
    for (int i = 0; i < 2; i++) {
        score_pixels(want[i], PIXELS, scores);
        need(cx, eti_predictions_add_mask(&all, scores, label[i], PIXELS, 3, chosen));
        ok(memcmp(chosen, want[i], sizeof chosen) == 0,
           "each pixel has the class with the greatest score");
    }
    const double all_of = log(exp(1) + 2), first = all_of - 3 / 4.,
                 second = all_of - .5;
    ok(all.label[0] == 4 && all.class[0] == 3 && all.label[1] == 4 && all.class[1] == 2,
       "a mask has the number of its pixels that count, and of those that are right");
    ok(fabs(all.loss[0] - first) < 1e-5 && fabs(all.loss[1] - second) < 1e-5,
       "the loss of a mask is the mean of its pixels that count");
    ok(all.p[0] == .5F && all.p[1] == .5F && all.p[2] == 1 && all.p[3] == 0 &&
           all.p[4] == .5F && isnan(all.p[5]),
       "a mask has the IoU of each class over its pixels that count");
    ok(memcmp(all.confusion, confusion, sizeof confusion) == 0,
       "all pixels are counted by label and class");
    ok(eti_predictions_iou(&all, 0) == 1 / 4. &&
           eti_predictions_iou(&all, 1) == 3 / 6. && eti_predictions_iou(&all, 2) == 1,
       "the IoU of each class is that of all masks together");
    eti_predictions_sum(&all, &sum);
    is_near(sum.loss, (first + second) / 2, 1e-5,
            "the loss of all masks gives each mask the same weight");
    ok(sum.counted == 8 && sum.right == 5, "the pixels of all masks are added up");
    is_near(sum.mean_iou, (.25 + .5 + 1) / 3, 1e-9,
            "the mean IoU is that of the classes");
    json_t *json = eti_predictions_json(&all, "test");
    struct eti_predictions back = {
        .cx = cx, .answer = ETI_ANSWER_MASK, .classes = 3, .columns = 3};
    need(cx, eti_predictions_take_json(&back, json));
    ok(memcmp(back.confusion, confusion, sizeof confusion) == 0,
       "JSON has the pixels by label and class");
    json_decref(json);
    eti_predictions_release(&back);
    eti_predictions_release(&all);
}

/* ---- tokens ---- */

static void
add_passage(struct eti_predictions *all, int64_t sample, float mean)
{
    int32_t input[] = {10, 11, (int32_t)sample}, label[] = {20, -1, 22},
            class[] = {30, 31, 32};
    float loss[] = {0.5F, NAN, mean};
    const struct eti_sequence p = {.sample = sample,
                                   .mean = mean,
                                   .n = 3,
                                   .input = input,
                                   .label = label,
                                   .class = class,
                                   .loss = loss};
    need(all->cx, eti_predictions_add_sequence(all, &p));
}

static void
test_passages(struct et_ctx *cx)
{
    struct eti_predictions all = {.cx = cx, .answer = ETI_ANSWER_TOKENS, .classes = 7};
    int wrong = 0;
    for (int i = 0; i < 40; i++) /* means 2, 3 ... 21, each twice */
        add_passage(&all, i, (float)(2 + i * 7 % 20));
    add_passage(&all, 99, 1);
    is_int(all.sequences->n, ETI_SEQUENCES,
           "no more than ETI_SEQUENCES of the worst passages are kept");
    for (int i = 0; i < ETI_SEQUENCES; i++) {
        const struct eti_sequence *p = &all.sequences->v[i];
        wrong += p->mean != (float)(21 - i / 2) || p->input[2] != p->sample ||
                 p->sample >= 40 || p->loss[2] != p->mean || p->label[0] != 20 ||
                 p->label[2] != 22 || p->class[1] != 31;
        wrong += i % 2 && p->sample < p[-1].sample;
    }
    is_int(wrong, 0,
           "passages come worst first, the earlier of two equal ones first, each with "
           "its own numbers");
    json_t *json = eti_predictions_json(&all, "test");
    struct eti_predictions back = {.cx = cx, .answer = ETI_ANSWER_TOKENS, .classes = 7};
    need(cx, eti_predictions_take_json(&back, json));
    wrong = back.sequences->n != ETI_SEQUENCES || back.sequences->is_bytes;
    for (int i = 0; i < ETI_SEQUENCES && !wrong; i++) {
        const struct eti_sequence *p = &all.sequences->v[i], *q = &back.sequences->v[i];
        wrong += p->sample != q->sample || p->mean != q->mean || q->n != 3 ||
                 memcmp(p->input, q->input, 12) != 0 ||
                 memcmp(p->label, q->label, 12) != 0 ||
                 memcmp(p->class, q->class, 12) != 0 || q->loss[0] != 0.5F ||
                 !isnan(q->loss[1]) || q->loss[2] != p->loss[2];
    }
    is_int(wrong, 0, "JSON has all passages, and the places that do not count");
    json_decref(json);
    eti_predictions_release(&back);
    eti_predictions_release(&all);
}

static void
test_tokens(struct et_ctx *cx)
{
    static const float scores[] = {1, 0, 0, 1, 1, 0};
    static const int32_t first[] = {0, 0, 0}, second[] = {1, -1, -1};
    struct eti_predictions all = {.cx = cx};
    struct eti_predictions_sum sum;
    int32_t chosen[3];
    float loss[3];
    need(cx, eti_predictions_add_tokens(&all, scores, first, 3, 2, chosen, loss));
    need(cx, eti_predictions_keep_sequence(&all, first, first, chosen, loss, 3));
    need(cx, eti_predictions_add_tokens(&all, scores, second, 3, 2, chosen, loss));
    need(cx, eti_predictions_keep_sequence(&all, second, second, chosen, loss, 3));
    const double all_of = log(exp(1) + 1);
    eti_predictions_sum(&all, &sum);
    ok(sum.counted == 4 && sum.right == 2,
       "of six tokens four count, and two of these are right");
    is_near(sum.loss, (3 * all_of - 2 + all_of) / 4, 1e-5,
            "each token has the same weight in the loss");
    ok(all.sequences->v[0].sample == 1 && all.sequences->v[1].sample == 0,
       "a passage is of the sample that was added last");
    eti_predictions_release(&all);
}

/* ---- values ---- */

static void
test_values(struct et_ctx *cx)
{
    static const float value[] = {1, 10, 2, 20, 4, 30},
                       target[] = {2, 10, 4, 24, 7, 30};
    struct eti_predictions all = {.cx = cx};
    struct eti_predictions_sum sum;
    need(cx, eti_predictions_add_values(&all, value, target, 3, 2));
    for (int i = 0; i < 6; i++)
        ok(all.p[2 * i] == target[i] && all.p[2 * i + 1] == value[i],
           "targets and values alternate");
    ok(all.loss[0] == .5F && all.loss[1] == 10 && all.loss[2] == 4.5F,
       "the loss of values is the mean square of the differences");
    ok(!eti_predictions_is_right(&all, 0), "predictions of values are never right");
    eti_predictions_sum(&all, &sum);
    is_near(sum.mae, (1 + 2 + 4 + 3) / 6., 1e-9,
            "MAE is the mean of the absolute differences");
    is_near(sum.rmse, sqrt((1 + 4 + 16 + 9) / 6.), 1e-9,
            "RMSE is the root of the mean square of the differences");
    const double mean = 13 / 3.,
                 whole = pow(2 - mean, 2) + pow(4 - mean, 2) + pow(7 - mean, 2);
    is_near(sum.r2, 1 - (1 + 4 + 9) / whole, 1e-6,
            "R2 is that of the first number of each sample");
    json_t *json = eti_predictions_json(&all, "test");
    static const char *const keys[] = {"loss", "mae", "rmse", "r2"};
    const double want[] = {sum.loss, sum.mae, sum.rmse, sum.r2};
    for (int i = 0; i < 4; i++)
        is_near(json_number_value(json_object_get(json, keys[i])), want[i], 1e-9,
                "JSON has %s", keys[i]);
    json_decref(json);
    eti_predictions_release(&all);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_many(cx);
    test_labels(cx);
    test_masks(cx);
    test_passages(cx);
    test_tokens(cx);
    test_values(cx);
    et_ctx_free(&cx);
    return done();
}
