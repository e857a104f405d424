/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c: what a dataset holds, for `etude data inspect`. */
#include <math.h>
#include <stdio.h>

#include "core/base/need.h"
#include "core/data/fields.h"

enum { TOKENS_AT_ONCE = 4096 };

/* Sums over the pixels of a channel. */
struct moments {
    double n, sum, squares;
};

static void
add_pixels(const struct et_pixels *f, struct moments *m)
{
    for (int c = 0; c < f->C; c++) {
        int64_t sum = 0, squares = 0;
        for (int64_t y = 0; y < f->H; y++) {
            const uint8_t *p = f->data + c * f->stride_c + y * f->stride_y;
            for (int64_t x = 0; x < f->W; x++, p += f->stride_x) {
                sum += *p;
                squares += *p * *p;
            }
        }
        m[c].n += (double)f->H * (double)f->W;
        m[c].sum += (double)sum;
        m[c].squares += (double)squares;
    }
}

static void
note_value(struct et_data_summary *s, int32_t value)
{
    s->counts[value]++;
    if (s->n_first < (int)(sizeof s->first / sizeof *s->first))
        s->first[s->n_first++] = value;
    s->n_read++;
}

/* Labels are counted; other targets are not. */
static void
note_label(const struct et_sample *sample, struct et_data_summary *s)
{
    const struct et_field *target = et_facts_target(sample->facts);
    int32_t label = -1;
    s->n_read++;
    if (!target || target->kind != ET_FIELD_VALUES || target->ndim > 0 ||
        et_dtype_is_float(target->dtype))
        return;
    if (eti_convert(sample->v[ET_FIELD_TARGET].data, target->dtype, 1, ET_I32,
                    &label) &&
        label >= 0 && label < s->n_counts)
        s->counts[label]++;
    if (s->n_first < (int)(sizeof s->first / sizeof *s->first))
        s->first[s->n_first++] = label;
}

/* A sample whose file is damaged is counted; else STATUS is returned, with WHY. */
static et_status
note_failure(struct et_ctx *cx, et_status status, bool broken,
             const struct et_error *why, struct et_data_summary *s)
{
    if (broken || status != ET_EFORMAT)
        return ET_FAIL(cx, status, "%s", why->message);
    if (s->n_unreadable++ == 0)
        snprintf(s->unreadable, sizeof s->unreadable, "%.255s", why->message);
    return ET_OK;
}

static et_status
read_samples(struct et_ctx *cx, const struct et_dataset *data, int64_t n,
             struct et_data_summary *s)
{
    struct moments m[ET_MAX_CHANNELS] = {{0}};
    struct eti_room room = {0};
    struct eti_decoder decoder = {.codec = NULL};
    struct et_sample sample;
    int image = eti_facts_image(&data->facts);
    et_status status = ET_OK;
    for (int64_t i = 0; i < n && status == ET_OK; i++) {
        struct et_error why = {0};
        bool broken;
        status = eti_sample_read(data, i, NULL, &room, &sample, &why, &broken);
        if (status == ET_OK && image >= 0 &&
            eti_value_is_file(&data->facts.field[image], &sample.v[image]))
            status =
                eti_sample_decode(data, i, image, &decoder, &sample, &why, &broken);
        if (status != ET_OK) {
            status = note_failure(cx, status, broken, &why, s);
            continue;
        }
        if (image >= 0)
            add_pixels(&sample.v[image].pixels, m);
        note_label(&sample, s);
    }
    eti_room_free(&room);
    eti_decoder_free(&decoder);
    for (int c = 0; c < ET_MAX_CHANNELS && m[c].n > 0; c++) {
        double mean = m[c].sum / m[c].n, square = m[c].squares / m[c].n;
        s->mean[c] = mean / 255;
        s->std[c] = sqrt(square > mean * mean ? square - mean * mean : 0) / 255;
    }
    return status;
}

static et_status
read_tokens(struct et_ctx *cx, const struct et_dataset *data, int64_t n,
            struct et_data_summary *s)
{
    int32_t tokens[TOKENS_AT_ONCE];
    while (s->n_read < n) {
        int64_t some = n - s->n_read < TOKENS_AT_ONCE ? n - s->n_read : TOKENS_AT_ONCE;
        struct et_error why = {0};
        et_status status = data->type->tokens(data, s->n_read, some, tokens, &why);
        if (status != ET_OK)
            return ET_FAIL(cx, status, "%s", why.message);
        for (int64_t i = 0; i < some; i++)
            note_value(s, tokens[i]);
    }
    return ET_OK;
}

et_status
et_data_summarise(struct et_ctx *cx, const struct et_dataset *data, int64_t limit,
                  struct et_data_summary *out)
{
    ETI_NEED(cx, cx, data, out);
    bool is_text = data->type->tokens != NULL;
    int64_t n = is_text ? data->facts.n_tokens : data->facts.n_samples;
    if (limit > 0 && limit < n)
        n = limit;
    *out = (struct et_data_summary){.facts = data->facts};
    out->n_counts =
        is_text ? data->facts.field[ET_FIELD_X].below : et_facts_classes(&data->facts);
    ET_TRY(et_alloc(cx, (size_t)out->n_counts * sizeof *out->counts,
                    (void **)&out->counts));
    et_status s =
        is_text ? read_tokens(cx, data, n, out) : read_samples(cx, data, n, out);
    if (s != ET_OK)
        et_data_summary_release(cx, out);
    return s;
}

void
et_data_summary_release(struct et_ctx *cx, struct et_data_summary *s)
{
    if (!s)
        return;
    et_free(cx, s->counts);
    s->counts = NULL;
}
