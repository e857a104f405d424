/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c: what a dataset holds, for `etude data inspect`. */
#include <math.h>

#include "etude/data.h"

enum { TOKENS_AT_ONCE = 4096 };

/* Sums over the pixels of a channel. */
struct moments {
    double n, sum, squares;
};

static void
add_pixels(const struct et_data_facts *f, const uint8_t *pixels, struct moments *m)
{
    for (int c = 0; c < f->C; c++) {
        int64_t sum = 0, squares = 0;
        for (int64_t y = 0; y < f->H; y++) {
            const uint8_t *p = pixels + c * f->stride_c + y * f->stride_y;
            for (int64_t x = 0; x < f->W; x++, p += f->stride_x) {
                sum += *p;
                squares += *p * *p;
            }
        }
        m[c].n += (double)f->H * f->W;
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

static et_status
read_images(struct et_ctx *cx, const struct et_dataset *data, int64_t n,
            struct et_data_summary *s)
{
    const struct et_data_facts *f = &data->facts;
    struct moments m[ET_MAX_CHANNELS] = {{0}};
    uint8_t *scratch;
    ET_TRY(et_alloc(cx, (size_t)f->C * f->H * f->W, (void **)&scratch));
    et_status status = ET_OK;
    for (int64_t i = 0; i < n && status == ET_OK; i++) {
        const uint8_t *pixels;
        int32_t label;
        struct et_error why = {0};
        status = data->type->image(data, i, scratch, &pixels, &label, &why);
        if (status == ET_OK) {
            add_pixels(f, pixels, m);
            note_value(s, label);
        } else {
            ET_FAIL(cx, status, "%s", why.message);
        }
    }
    et_free(cx, scratch);
    for (int c = 0; c < f->C && m[c].n > 0; c++) {
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
    bool is_text = data->facts.kind == ET_DATA_TOKENS;
    int64_t n = is_text ? data->facts.n_tokens : data->facts.n_samples;
    if (limit > 0 && limit < n)
        n = limit;
    *out = (struct et_data_summary){.facts = data->facts};
    out->n_counts = is_text ? data->facts.vocab_size : data->facts.num_classes;
    ET_TRY(et_alloc(cx, (size_t)out->n_counts * sizeof *out->counts,
                    (void **)&out->counts));
    et_status s =
        is_text ? read_tokens(cx, data, n, out) : read_images(cx, data, n, out);
    if (s != ET_OK)
        et_data_summary_release(cx, out);
    return s;
}

void
et_data_summary_release(struct et_ctx *cx, struct et_data_summary *s)
{
    et_free(cx, s->counts);
    s->counts = NULL;
}
