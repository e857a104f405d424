/* SPDX-License-Identifier: Apache-2.0 */
/* predictions.c: answers sample by sample: see predictions.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/library/predictions.h"

const char *const eti_answer_names[ETI_ANSWERS] = {
    [ETI_ANSWER_CLASS] = "class",
    [ETI_ANSWER_MASK] = "mask",
    [ETI_ANSWER_TOKENS] = "tokens",
    [ETI_ANSWER_VALUES] = "values",
};

static void
release_sequences(struct eti_predictions *all)
{
    for (int i = 0; all->sequences && i < all->sequences->n; i++)
        et_free(all->cx, all->sequences->v[i].input);
    et_free(all->cx, all->sequences);
}

static void
release_names(struct eti_predictions *all)
{
    for (int k = 0; all->name && k < all->classes; k++)
        et_free(all->cx, all->name[k]);
    et_free(all->cx, all->name);
    all->name = NULL;
}

void
eti_predictions_release(struct eti_predictions *all)
{
    if (all->cx) {
        et_free(all->cx, all->label);
        et_free(all->cx, all->class);
        et_free(all->cx, all->loss);
        et_free(all->cx, all->p);
        et_free(all->cx, all->confusion);
        release_names(all);
        release_sequences(all);
    }
    *all = (struct eti_predictions){.cx = all->cx};
}

/* *BLOCK, USED bytes of it, becomes one of BYTES. */
static et_status
grow(struct et_ctx *cx, void **block, size_t used, size_t bytes)
{
    void *new;
    ET_TRY(et_alloc(cx, bytes, &new));
    if (used > 0)
        memcpy(new, *block, used);
    et_free(cx, *block);
    *block = new;
    return ET_OK;
}

et_status
eti_predictions_make_room(struct eti_predictions *all, int64_t n)
{
    int64_t room = all->room ? all->room : 256;
    const size_t used = (size_t)all->n, c = (size_t)all->columns;
    while (room < n)
        room *= 2;
    if (room == all->room)
        return ET_OK;
    void *label = all->label, *class = all->class, *loss = all->loss, *p = all->p;
    et_status status = grow(all->cx, &label, used * 4, (size_t)room * 4);
    all->label = label;
    if (status == ET_OK)
        status = grow(all->cx, &class, used * 4, (size_t)room * 4);
    all->class = class;
    if (status == ET_OK)
        status = grow(all->cx, &loss, used * 4, (size_t)room * 4);
    all->loss = loss;
    if (status == ET_OK && c > 0)
        status = grow(all->cx, &p, used * c * 4, (size_t)room * c * 4);
    all->p = p;
    if (status == ET_OK)
        all->room = room;
    return status;
}

/* Room for N more samples, whose answers are of CLASSES. */
static et_status
begin(struct eti_predictions *all, enum eti_answer answer, int64_t n, int classes,
      int columns)
{
    if (all->classes == 0) {
        all->answer = answer;
        all->classes = classes;
        all->columns = columns;
    }
    if (classes != all->classes || answer != all->answer)
        return ET_FAIL(all->cx, ET_EINVAL, "%d classes after %d", classes,
                       all->classes);
    return eti_predictions_make_room(all, all->n + n);
}

/* The place of the greatest of N scores, STEP apart; *SUM: of their exponentials, the
 * greatest taken off. */
static int
find_best(const float *score, int n, int64_t step, double *sum)
{
    float most = -INFINITY;
    int best = 0;
    for (int k = 0; k < n; k++)
        if (score[k * step] > most) {
            most = score[k * step];
            best = k;
        }
    *sum = 0;
    for (int k = 0; k < n; k++)
        *sum += exp(score[k * step] - most);
    return best;
}

/* ---- classes ---- */

/* One sample behind those there are. */
static void
add_one(struct eti_predictions *all, const float *score, int32_t label)
{
    const int c = all->classes;
    float *p = all->p + all->n * c;
    double sum;
    const int best = find_best(score, c, 1, &sum);
    const float most = score[best];
    for (int k = 0; k < c; k++)
        p[k] = (float)(exp(score[k] - most) / sum);
    const bool counts = label >= 0 && label < c;
    all->label[all->n] = label;
    all->class[all->n] = best;
    all->loss[all->n++] = counts ? (float)(log(sum) + most - score[label]) : NAN;
}

et_status
eti_predictions_add(struct eti_predictions *all, const float *scores,
                    const int32_t *label, int64_t n, int classes)
{
    ET_TRY(begin(all, ETI_ANSWER_CLASS, n, classes, classes));
    for (int64_t i = 0; i < n; i++)
        add_one(all, scores + i * classes, label[i]);
    return ET_OK;
}

/* ---- masks and tokens: many classes a sample ---- */

/* Of N places with scores ACROSS apart, those of the next BEYOND it: the classes, and
 * the losses where LOSS is not NULL. Adds the sample's line. */
static void
add_many(struct eti_predictions *all, const float *scores, const int32_t *label,
         int64_t n, int64_t across, int64_t beyond, int32_t *chosen, float *loss)
{
    int64_t counted = 0, right = 0;
    double all_losses = 0, sum;
    for (int64_t i = 0; i < n; i++) {
        const float *score = scores + i * beyond;
        const int best = find_best(score, all->classes, across, &sum);
        const bool counts = label[i] >= 0 && label[i] < all->classes;
        const double own =
            counts ? log(sum) + score[best * across] - score[label[i] * across] : 0;
        chosen[i] = best;
        if (loss)
            loss[i] = counts ? (float)own : NAN;
        counted += counts;
        right += counts && best == label[i];
        all_losses += own;
    }
    all->label[all->n] = (int32_t)counted;
    all->class[all->n] = (int32_t)right;
    all->loss[all->n++] = counted > 0 ? (float)(all_losses / (double)counted) : NAN;
}

/* The IoU of CLASS in one mask; NaN: neither has it. */
static float
iou_of(const int32_t *label, const int32_t *chosen, int64_t n, int classes, int class)
{
    int64_t both = 0, any = 0;
    for (int64_t i = 0; i < n; i++) {
        if (label[i] < 0 || label[i] >= classes)
            continue;
        both += label[i] == class && chosen[i] == class;
        any += label[i] == class || chosen[i] == class;
    }
    return any > 0 ? (float)((double)both / (double)any) : NAN;
}

et_status
eti_predictions_add_mask(struct eti_predictions *all, const float *scores,
                         const int32_t *label, int64_t pixels, int classes,
                         int32_t *chosen)
{
    const size_t cells = (size_t)classes * (size_t)classes;
    void *block;
    ET_TRY(begin(all, ETI_ANSWER_MASK, 1, classes, classes));
    if (!all->confusion) {
        ET_TRY(et_alloc(all->cx, cells * sizeof *all->confusion, &block));
        all->confusion = memset(block, 0, cells * sizeof *all->confusion);
    }
    float *iou = all->p + all->n * classes;
    add_many(all, scores, label, pixels, pixels, 1, chosen, NULL);
    for (int k = 0; k < classes; k++)
        iou[k] = iou_of(label, chosen, pixels, classes, k);
    for (int64_t i = 0; i < pixels; i++)
        if (label[i] >= 0 && label[i] < classes)
            all->confusion[label[i] * classes + chosen[i]]++;
    return ET_OK;
}

et_status
eti_predictions_add_tokens(struct eti_predictions *all, const float *scores,
                           const int32_t *label, int64_t T, int classes,
                           int32_t *chosen, float *loss)
{
    ET_TRY(begin(all, ETI_ANSWER_TOKENS, 1, classes, 0));
    add_many(all, scores, label, T, 1, classes, chosen, loss);
    return ET_OK;
}

static et_status
new_sequence(struct et_ctx *cx, int n, struct eti_sequence *out)
{
    void *block;
    ET_TRY(et_alloc(cx, 4 * (size_t)n * sizeof *out->input, &block));
    *out = (struct eti_sequence){.n = n, .input = block};
    out->label = out->input + n;
    out->class = out->label + n;
    out->loss = (float *)(void *)(out->class + n);
    return ET_OK;
}

et_status
eti_predictions_add_sequence(struct eti_predictions *all, const struct eti_sequence *p)
{
    struct eti_sequence *v, own;
    void *block;
    if (!all->sequences) {
        ET_TRY(et_alloc(all->cx, sizeof *all->sequences, &block));
        all->sequences = memset(block, 0, sizeof *all->sequences);
        all->sequences->is_bytes = all->classes == 256;
    }
    v = all->sequences->v;
    int at = all->sequences->n;
    if (at == ETI_SEQUENCES && !(p->mean > v[at - 1].mean))
        return ET_OK;
    ET_TRY(new_sequence(all->cx, p->n, &own));
    own.sample = p->sample;
    own.mean = p->mean;
    const size_t bytes = (size_t)p->n * sizeof *p->input;
    memcpy(own.input, p->input, bytes);
    memcpy(own.label, p->label, bytes);
    memcpy(own.class, p->class, bytes);
    memcpy(own.loss, p->loss, bytes);
    if (at == ETI_SEQUENCES)
        et_free(all->cx, v[--at].input);
    for (all->sequences->n = at + 1; at > 0 && v[at - 1].mean < p->mean; at--)
        v[at] = v[at - 1];
    v[at] = own;
    return ET_OK;
}

et_status
eti_predictions_keep_sequence(struct eti_predictions *all, const int32_t *input,
                              const int32_t *label, const int32_t *class,
                              const float *loss, int64_t T)
{
    const struct eti_sequence p = {
        .sample = all->n - 1,
        .mean = all->loss[all->n - 1],
        .n = T < ETI_SEQUENCE_MOST ? (int)T : ETI_SEQUENCE_MOST,
        .input = (int32_t *)(uintptr_t)input,
        .label = (int32_t *)(uintptr_t)label,
        .class = (int32_t *)(uintptr_t) class,
        .loss = (float *)(uintptr_t)loss,
    };
    return isnan(p.mean) ? ET_OK : eti_predictions_add_sequence(all, &p);
}

/* ---- values ---- */

et_status
eti_predictions_add_values(struct eti_predictions *all, const float *values,
                           const float *target, int64_t n, int count)
{
    ET_TRY(begin(all, ETI_ANSWER_VALUES, n, count, 2 * count));
    for (int64_t i = 0; i < n; i++) {
        float *p = all->p + all->n * all->columns;
        double square = 0;
        for (int k = 0; k < count; k++) {
            p[2 * k] = target[i * count + k];
            p[2 * k + 1] = values[i * count + k];
            const double off = (double)p[2 * k + 1] - p[2 * k];
            square += off * off;
        }
        all->label[all->n] = all->class[all->n] = 0;
        all->loss[all->n++] = (float)(square / count);
    }
    return ET_OK;
}

/* ---- names ---- */

et_status
eti_predictions_set_names(struct eti_predictions *all, const char *const *name, int n)
{
    void *block;
    release_names(all);
    if (!name || n != all->classes)
        return ET_OK;
    ET_TRY(et_alloc(all->cx, (size_t)n * sizeof *all->name, &block));
    all->name = memset(block, 0, (size_t)n * sizeof *all->name);
    for (int k = 0; k < n; k++) {
        const size_t bytes = strlen(name[k]) + 1;
        ET_TRY(et_alloc(all->cx, bytes, &block));
        all->name[k] = memcpy(block, name[k], bytes);
    }
    return ET_OK;
}

const char *
eti_predictions_name(const struct eti_predictions *all, int class, char *buf,
                     size_t size)
{
    if (all->name && class >= 0 && class < all->classes)
        snprintf(buf, size, "%d %s", class, all->name[class]);
    else
        snprintf(buf, size, "%d", class);
    return buf;
}

/* ---- the worst ---- */

bool
eti_predictions_is_right(const struct eti_predictions *all, int64_t i)
{
    return all->answer != ETI_ANSWER_VALUES && all->class[i] == all->label[i];
}

int64_t
eti_predictions_worst(const struct eti_predictions *all, int label, int class,
                      int64_t *out, int64_t most)
{
    const bool any = label < 0 || all->answer != ETI_ANSWER_CLASS;
    int64_t n = 0;
    for (int64_t i = 0; i < all->n; i++) {
        const bool is_wrong = !eti_predictions_is_right(all, i);
        const bool is_pair = all->class[i] == class && all->label[i] == label;
        if (isnan(all->loss[i]) || !(any ? is_wrong : is_pair))
            continue;
        int64_t at = n < most ? n : most; /* insertion: MOST is small */
        while (at > 0 && all->loss[out[at - 1]] < all->loss[i]) {
            if (at < most)
                out[at] = out[at - 1];
            at--;
        }
        if (at < most)
            out[at] = i;
        n += n < most;
    }
    return n;
}
