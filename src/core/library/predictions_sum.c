/* SPDX-License-Identifier: Apache-2.0 */
/* predictions_sum.c: what predictions come to, and the JSON that has it, names of
 * classes, the confusion of pixels and the worst passages: see predictions.h. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/library/predictions.h"

/* ---- numbers ---- */

double
eti_predictions_iou(const struct eti_predictions *all, int class)
{
    const int64_t *count = all->confusion;
    int64_t any = 0;
    for (int k = 0; count && k < all->classes; k++)
        any += count[class * all->classes + k] +
               (k != class ? count[k * all->classes + class] : 0);
    return any > 0 ? (double)count[class * all->classes + class] / (double)any : NAN;
}

static double
mean_iou(const struct eti_predictions *all)
{
    double sum = 0;
    int n = 0;
    for (int k = 0; k < all->classes; k++) {
        const double iou = eti_predictions_iou(all, k);
        sum += isnan(iou) ? 0 : iou;
        n += !isnan(iou);
    }
    return n > 0 ? sum / n : NAN;
}

/* R2 is 1 minus the squares of what is left over those of what differs from the
 * targets' mean. */
static void
sum_values(const struct eti_predictions *all, struct eti_predictions_sum *out)
{
    double off = 0, square = 0, mean = 0, left = 0, whole = 0;
    for (int64_t i = 0; i < all->n * all->classes; i++) {
        const double d = (double)all->p[2 * i + 1] - all->p[2 * i];
        off += fabs(d);
        square += d * d;
    }
    for (int64_t i = 0; i < all->n; i++)
        mean += (double)all->p[i * all->columns] / (double)all->n;
    for (int64_t i = 0; i < all->n; i++) {
        const float *p = all->p + i * all->columns;
        left += ((double)p[1] - p[0]) * ((double)p[1] - p[0]);
        whole += (p[0] - mean) * (p[0] - mean);
    }
    const double n = (double)all->n * all->classes;
    out->mae = n > 0 ? off / n : NAN;
    out->rmse = n > 0 ? sqrt(square / n) : NAN;
    out->r2 = whole > 0 ? 1 - left / whole : NAN;
}

void
eti_predictions_sum(const struct eti_predictions *all, struct eti_predictions_sum *out)
{
    const bool is_class = all->answer == ETI_ANSWER_CLASS;
    double loss = 0, weight = 0;
    *out = (struct eti_predictions_sum){
        .mean_iou = NAN, .mae = NAN, .rmse = NAN, .r2 = NAN};
    for (int64_t i = 0; i < all->n; i++) {
        if (isnan(all->loss[i]))
            continue;
        const double w = all->answer == ETI_ANSWER_TOKENS ? all->label[i] : 1;
        loss += w * (double)all->loss[i];
        weight += w;
        out->counted += is_class ? 1 : all->label[i];
        out->right += is_class ? all->class[i] == all->label[i] : all->class[i];
    }
    out->loss = weight > 0 ? loss / weight : NAN;
    if (all->answer == ETI_ANSWER_MASK)
        out->mean_iou = mean_iou(all);
    if (all->answer == ETI_ANSWER_VALUES)
        sum_values(all, out);
}

/* ---- JSON ---- */

static void
set_number(json_t *all, const char *key, double v)
{
    if (isfinite(v))
        json_object_set_new(all, key, json_real(v));
}

static void
put_masks(const struct eti_predictions *all, json_t *out)
{
    json_t *iou = json_array(), *rows = json_array();
    for (int i = 0; i < all->classes; i++) {
        const double v = eti_predictions_iou(all, i);
        json_t *row = json_array();
        json_array_append_new(iou, isnan(v) ? json_null() : json_real(v));
        for (int k = 0; k < all->classes; k++)
            json_array_append_new(
                row, json_integer((json_int_t)all->confusion[i * all->classes + k]));
        json_array_append_new(rows, row);
    }
    json_object_set_new(out, "iou", iou);
    json_object_set_new(out, "confusion", rows);
}

static json_t *
integers(const int32_t *v, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(v[i]));
    return list;
}

static json_t *
losses(const float *v, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list,
                              isfinite(v[i]) ? json_real((double)v[i]) : json_null());
    return list;
}

static json_t *
sequences_json(const struct eti_sequences *all)
{
    json_t *list = json_array();
    for (int i = 0; i < all->n; i++) {
        const struct eti_sequence *p = &all->v[i];
        json_array_append_new(
            list,
            json_pack("{s:I, s:f, s:o, s:o, s:o, s:o}", "sample", (json_int_t)p->sample,
                      "loss", (double)p->mean, "input", integers(p->input, p->n),
                      "label", integers(p->label, p->n), "class",
                      integers(p->class, p->n), "losses", losses(p->loss, p->n)));
    }
    return list;
}

json_t *
eti_predictions_json(const struct eti_predictions *all, const char *data)
{
    struct eti_predictions_sum sum;
    eti_predictions_sum(all, &sum);
    json_t *out =
        json_pack("{s:s, s:s, s:I}", "data", data, "answer",
                  eti_answer_names[all->answer], "samples", (json_int_t)all->n);
    set_number(out, "loss", sum.loss);
    if (all->answer == ETI_ANSWER_VALUES) {
        json_object_set_new(out, "values", json_integer(all->classes));
        set_number(out, "mae", sum.mae);
        set_number(out, "rmse", sum.rmse);
        set_number(out, "r2", sum.r2);
        return out;
    }
    json_object_set_new(out, "classes", json_integer(all->classes));
    json_object_set_new(out, "counted", json_integer((json_int_t)sum.counted));
    set_number(out, "accuracy",
               sum.counted > 0 ? (double)sum.right / (double)sum.counted : NAN);
    if (all->name) {
        json_t *names = json_array();
        for (int k = 0; k < all->classes; k++)
            json_array_append_new(names, json_string(all->name[k]));
        json_object_set_new(out, "class_names", names);
    }
    if (all->confusion) {
        set_number(out, "mean_iou", sum.mean_iou);
        put_masks(all, out);
    }
    if (all->sequences) {
        json_object_set_new(out, "is_bytes", json_boolean(all->sequences->is_bytes));
        json_object_set_new(out, "worst", sequences_json(all->sequences));
    }
    return out;
}

/* ---- back ---- */

static et_status
bad(const struct eti_predictions *all, const char *key)
{
    return ET_FAIL(all->cx, ET_EFORMAT,
                   "predictions: '%s' is not what etude predict writes", key);
}

static et_status
take_names(struct eti_predictions *all, const json_t *names)
{
    void *block;
    const char **name;
    if (!names || (int)json_array_size(names) != all->classes)
        return ET_OK;
    ET_TRY(et_alloc(all->cx, (size_t)all->classes * sizeof *name, &block));
    name = block;
    for (int k = 0; k < all->classes; k++) {
        const char *text = json_string_value(json_array_get(names, (size_t)k));
        name[k] = text ? text : "";
    }
    et_status status = eti_predictions_set_names(all, name, all->classes);
    et_free(all->cx, block);
    return status;
}

static et_status
take_confusion(struct eti_predictions *all, const json_t *rows)
{
    const size_t c = (size_t)all->classes;
    void *block;
    if (all->answer != ETI_ANSWER_MASK)
        return ET_OK;
    if (json_array_size(rows) != c)
        return bad(all, "confusion");
    ET_TRY(et_alloc(all->cx, c * c * sizeof *all->confusion, &block));
    all->confusion = block;
    for (size_t i = 0; i < c * c; i++)
        all->confusion[i] =
            json_integer_value(json_array_get(json_array_get(rows, i / c), i % c));
    return ET_OK;
}

static bool
read_integers(const json_t *list, int32_t *out, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    return (int)json_array_size(list) == n;
}

static et_status
take_sequence(struct eti_predictions *all, const json_t *one)
{
    int32_t room[3][ETI_SEQUENCE_MOST];
    float loss[ETI_SEQUENCE_MOST];
    const size_t n = json_array_size(json_object_get(one, "input"));
    struct eti_sequence p = {
        .sample = json_integer_value(json_object_get(one, "sample")),
        .mean = (float)json_number_value(json_object_get(one, "loss")),
        .n = (int)n,
        .input = room[0],
        .label = room[1],
        .class = room[2],
        .loss = loss,
    };
    if (n < 1 || n > ETI_SEQUENCE_MOST ||
        !read_integers(json_object_get(one, "input"), p.input, p.n) ||
        !read_integers(json_object_get(one, "label"), p.label, p.n) ||
        !read_integers(json_object_get(one, "class"), p.class, p.n))
        return bad(all, "worst");
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(json_object_get(one, "losses"), i);
        loss[i] = json_is_number(v) ? (float)json_number_value(v) : NAN;
    }
    return eti_predictions_add_sequence(all, &p);
}

et_status
eti_predictions_take_json(struct eti_predictions *all, const json_t *from)
{
    const json_t *one, *answer = json_object_get(from, "answer");
    size_t i;
    if (!json_is_string(answer) ||
        strcmp(json_string_value(answer), eti_answer_names[all->answer]) != 0)
        return bad(all, "answer");
    ET_TRY(take_names(all, json_object_get(from, "class_names")));
    ET_TRY(take_confusion(all, json_object_get(from, "confusion")));
    if (all->answer != ETI_ANSWER_TOKENS)
        return ET_OK;
    json_array_foreach(json_object_get(from, "worst"), i, one)
        ET_TRY(take_sequence(all, one));
    if (all->sequences)
        all->sequences->is_bytes = json_is_true(json_object_get(from, "is_bytes"));
    return ET_OK;
}
