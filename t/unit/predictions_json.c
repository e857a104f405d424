/* SPDX-License-Identifier: Apache-2.0 */
/* What JSON says of predictions, all of it, and what is read back from there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/predictions.h"
#include "etude/field.h"
#include "t/data/fixture.h"
#include "t/tap.h"

/* All that JSON says of predictions, and says again of what is read from it. */
static void
says(struct eti_predictions *all, const char *want, const char *what)
{
    json_t *json = eti_predictions_json(all, "eval");
    char *text = json_dumps(json, JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
    is_str(text, want, "%s", what);
    struct eti_predictions back = {
        .cx = all->cx, .answer = all->answer, .classes = all->classes};
    need(all->cx, eti_predictions_take_json(&back, json));
    json_t *again = eti_predictions_json(&back, "eval");
    static const char *const keys[] = {"iou", "confusion", "class_names", "worst",
                                       "is_bytes"};
    for (int i = 0; i < 5; i++)
        if (json_object_get(json, keys[i]))
            ok(json_equal(json_object_get(again, keys[i]),
                          json_object_get(json, keys[i])),
               "%s is read back", keys[i]);
    free(text);
    json_decref(json);
    json_decref(again);
    eti_predictions_release(&back);
}

/* Class 2 is nowhere, and of the last sample nothing counts. */
static void
test_all_of_masks(struct et_ctx *cx)
{
    static const float scores[2][3 * 4] = {{9, 0, 0, 0, 0, 9, 9, 9, 0, 0, 0, 0},
                                           {0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0}};
    static const int32_t labels[3][4] = {
        {0, 0, 1, 0}, {1, 1, 1, ET_IGNORE_INDEX}, {-100, -100, -100, -100}};
    static const char *const names[] = {"sky", "dog", "eel"};
    struct eti_predictions all = {.cx = cx};
    int32_t chosen[4];
    for (int i = 0; i < 3; i++)
        need(cx,
             eti_predictions_add_mask(&all, scores[i % 2], labels[i], 4, 3, chosen));
    need(cx, eti_predictions_set_names(&all, names, 3));
    says(&all,
         "{\"accuracy\": 0.571429, \"answer\": \"mask\", \"class_names\": [\"sky\", "
         "\"dog\", \"eel\"], \"classes\": 3, \"confusion\": [[1, 2, 0], [1, 3, 0], [0, "
         "0, 0]], \"counted\": 7, \"data\": \"eval\", \"iou\": [0.25, 0.5, null], "
         "\"loss\": 3.75025, \"mean_iou\": 0.375, \"samples\": 3}",
         "of masks");
    eti_predictions_release(&all);
}

static void
test_all_of_values(struct et_ctx *cx)
{
    static const float value[] = {1, 2, 3, 4}, target[] = {1, 0, 5, 4};
    struct eti_predictions all = {.cx = cx};
    need(cx, eti_predictions_add_values(&all, value, target, 2, 2));
    says(&all,
         "{\"answer\": \"values\", \"data\": \"eval\", \"loss\": 2.0, \"mae\": 1.0, "
         "\"r2\": 0.5, \"rmse\": 1.41421, \"samples\": 2, \"values\": 2}",
         "of two numbers each");
    eti_predictions_release(&all);
}

/* Sequences of which three tokens count, and one. */
static void
test_all_of_tokens(struct et_ctx *cx)
{
    static const float each[3 * 2] = {0, 2, 0, 2, 0, 2};
    static const int32_t input[] = {0, 1, 1};
    static const int32_t label[2][3] = {{1, 0, 1},
                                        {ET_IGNORE_INDEX, 0, ET_IGNORE_INDEX}};
    struct eti_predictions all = {.cx = cx};
    int32_t chosen[3];
    float loss[3];
    for (int i = 0; i < 2; i++) {
        need(cx, eti_predictions_add_tokens(&all, each, label[i], 3, 2, chosen, loss));
        need(cx, eti_predictions_keep_sequence(&all, input, label[i], chosen, loss, 3));
    }
    all.sequences->is_bytes = true;
    says(
        &all,
        "{\"accuracy\": 0.5, \"answer\": \"tokens\", \"classes\": 2, \"counted\": 4, "
        "\"data\": \"eval\", \"is_bytes\": true, \"loss\": 1.12693, \"samples\": 2, "
        "\"worst\": [{\"class\": [1, 1, 1], \"input\": [0, 1, 1], \"label\": [-100, 0, "
        "-100], \"loss\": 2.12693, \"losses\": [null, 2.12693, null], \"sample\": 1}, "
        "{\"class\": [1, 1, 1], \"input\": [0, 1, 1], \"label\": [1, 0, 1], \"loss\": "
        "0.793595, \"losses\": [0.126928, 2.12693, 0.126928], \"sample\": 0}]}",
        "of tokens");
    eti_predictions_release(&all);
}

static void
test_all_of_classes(struct et_ctx *cx)
{
    static const float scores[3 * 2] = {0, 2, 2, 0, 0, 2};
    static const int32_t label[] = {1, 1, ET_IGNORE_INDEX};
    struct eti_predictions all = {.cx = cx};
    need(cx, eti_predictions_add(&all, scores, label, 3, 2));
    says(&all,
         "{\"accuracy\": 0.5, \"answer\": \"class\", \"classes\": 2, \"counted\": 2, "
         "\"data\": \"eval\", \"loss\": 1.12693, \"samples\": 3}",
         "of classes");
    eti_predictions_release(&all);
}

/* What is not as it is written is refused; names of another number are none. */
static void
test_bad_json(struct et_ctx *cx)
{
    static const struct {
        enum eti_answer answer;
        const char *json, *bad; /* NULL: it is taken */
    } row[] = {
        {ETI_ANSWER_MASK, "{'answer':'class'}", "answer"},
        {ETI_ANSWER_MASK, "{'answer':7}", "answer"},
        {ETI_ANSWER_MASK, "{'answer':'mask','confusion':[[1,2]]}", "confusion"},
        {ETI_ANSWER_MASK, "{'answer':'mask','confusion':[[1,2],[3,4],[5,6]]}",
         "confusion"},
        {ETI_ANSWER_CLASS, "{'answer':'class','class_names':['a','b','c']}", NULL},
        {ETI_ANSWER_TOKENS,
         "{'answer':'tokens','worst':[{'input':[],'label':[],'class':[]}]}", "worst"},
        {ETI_ANSWER_TOKENS,
         "{'answer':'tokens','worst':[{'input':[1],'label':[1,2],'class':[1]}]}",
         "worst"},
        {ETI_ANSWER_TOKENS,
         "{'answer':'tokens','worst':[{'input':[1],'label':[1],'class':[]}]}", "worst"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_predictions all = {.cx = cx, .answer = row[i].answer, .classes = 2};
        char text[256], want[96];
        snprintf(text, sizeof text, "%s", row[i].json);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        json_t *json = json_loads(text, 0, NULL);
        et_status s = eti_predictions_take_json(&all, json);
        snprintf(want, sizeof want,
                 "predictions: '%s' is not what etude predict writes",
                 row[i].bad ? row[i].bad : "");
        is_str(s == ET_OK ? "taken" : take_error(cx), row[i].bad ? want : "taken", "%s",
               row[i].json);
        ok(!all.name, "no names are left");
        json_decref(json);
        eti_predictions_release(&all);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_all_of_masks(cx);
    test_all_of_values(cx);
    test_all_of_tokens(cx);
    test_all_of_classes(cx);
    test_bad_json(cx);
    et_ctx_free(&cx);
    return done();
}
