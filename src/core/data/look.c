/* SPDX-License-Identifier: Apache-2.0 */
/* look.c: see look.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/data/loader_impl.h"
#include "core/data/look.h"
#include "core/image/class_color.h"

int
eti_look_find(const struct eti_batch_look *l, enum et_field_kind kind)
{
    for (int i = 0; i < l->info.n_fields; i++)
        if (l->info.field[i].kind == kind)
            return i;
    return -1;
}

int64_t
eti_look_elements(const struct eti_batch_look *l, int i)
{
    const struct et_desc *d = &l->batch->field[i].desc;
    int64_t n = 1;
    for (int k = 1; k < d->ndim; k++)
        n *= d->shape[k];
    return n;
}

double
eti_look_element(const struct eti_batch_look *l, int i, int64_t at)
{
    const struct et_batch_field *f = &l->batch->field[i];
    return f->desc.dtype == ET_I32 ? f->host.i32[at] : (double)f->host.f32[at];
}

/* The byte whose value, by the loader's transforms, is V in channel C. */
static uint8_t
byte_of(const struct eti_batch_look *l, int c, float v)
{
    float black = l->loader->pipeline.table[c][0],
          white = l->loader->pipeline.table[c][255];
    float share = white != black ? (v - black) / (white - black) : 0;
    return share <= 0 ? 0 : share >= 1 ? 255 : (uint8_t)(share * 255 + 0.5F);
}

void
eti_look_pixels(const struct eti_batch_look *l, int image, int mask, int64_t at,
                uint8_t *rgb)
{
    const struct et_desc *d = &l->batch->field[image].desc;
    int64_t C = d->shape[1], pixels = d->shape[2] * d->shape[3];
    const float *from = l->batch->field[image].host.f32 + at * C * pixels;
    for (int64_t i = 0; i < pixels; i++) {
        uint8_t over[3];
        bool colored =
            mask >= 0 &&
            eti_class_color(l->batch->field[mask].host.i32[at * pixels + i], over);
        for (int c = 0; c < 3; c++) {
            int channel = C >= 3 ? c : 0;
            uint8_t byte = byte_of(l, channel, from[i * C + channel]);
            rgb[i * 3 + c] = colored ? (uint8_t)((byte + over[c]) / 2) : byte;
        }
    }
}

void
eti_look_mask(const struct eti_batch_look *l, int mask, int64_t at, uint8_t *rgb)
{
    const int64_t pixels = eti_look_elements(l, mask);
    const int32_t *from = l->batch->field[mask].host.i32 + at * pixels;
    for (int64_t i = 0; i < pixels; i++)
        (void)eti_class_color(from[i], rgb + 3 * i);
}

int64_t
eti_look_classes(const struct eti_batch_look *l, int mask, int64_t at, int64_t *count)
{
    const int64_t pixels = eti_look_elements(l, mask);
    const int32_t *from = l->batch->field[mask].host.i32 + at * pixels;
    int64_t counted = 0;
    for (int64_t i = 0; i < pixels; i++)
        if (from[i] >= 0 && from[i] < l->info.field[mask].below) {
            count[from[i]]++;
            counted++;
        }
    return counted;
}

/* "29% Dress, 3% Bag": the classes of a mask, but for the ground, the largest first. */
static void
name_mask(const struct eti_batch_look *l, int mask, int64_t at, char *text, size_t size)
{
    int64_t count[ETI_LOOK_CLASSES] = {0};
    const int64_t classes = l->info.field[mask].below;
    size_t used = 0;
    if (classes > ETI_LOOK_CLASSES)
        return;
    eti_look_classes(l, mask, at, count);
    for (;;) {
        int64_t best = 1;
        for (int64_t k = 2; k < classes; k++)
            best = count[k] > count[best] ? k : best;
        if (classes < 2 || count[best] == 0 || used + 1 >= size)
            return;
        int n =
            snprintf(text + used, size - used, "%s%.0f%% ", used > 0 ? ", " : "",
                     100. * (double)count[best] / (double)eti_look_elements(l, mask));
        used = used + (size_t)n < size ? used + (size_t)n : size;
        n = l->facts->class_names
                ? snprintf(text + used, size - used, "%s", l->facts->class_names[best])
                : snprintf(text + used, size - used, "%lld", (long long)best);
        used = used + (size_t)n < size ? used + (size_t)n : size;
        count[best] = 0;
    }
}

const char *
eti_look_target(const struct eti_batch_look *l, int64_t at, char *text, size_t size)
{
    int i = ET_FIELD_TARGET;
    text[0] = '\0';
    if (l->info.n_fields <= i)
        return text;
    if (l->info.field[i].kind == ET_FIELD_MASK) {
        name_mask(l, i, at, text, size);
        return text;
    }
    if (eti_look_elements(l, i) != 1)
        return text;
    double v = eti_look_element(l, i, at);
    bool named = l->facts->class_names && v >= 0 && v < (double)l->info.field[i].below;
    snprintf(text, size, "%.6g%s%s", v, named ? " " : "",
             named ? l->facts->class_names[(int)v] : "");
    return text;
}

int64_t
eti_look_tokens(const struct eti_batch_look *l, int i, int64_t at)
{
    int64_t n = eti_look_elements(l, i), real = 0;
    for (int k = 0; k < l->info.n_fields; k++) {
        if (strcmp(l->info.field[k].name, "attention_mask") != 0)
            continue;
        for (int64_t t = 0; t < n; t++)
            real += l->batch->field[k].host.i32[at * n + t] != 0;
        return real;
    }
    return n;
}

/* A target that is the token after each one is no mask. */
int32_t
eti_look_guessed(const struct eti_batch_look *l, int64_t at, int64_t t)
{
    const int tokens = eti_look_find(l, ET_FIELD_TOKENS), i = ET_FIELD_TARGET;
    if (tokens < 0 || l->info.n_fields <= i || l->info.field[i].kind != ET_FIELD_TOKENS)
        return -1;
    const int64_t n = eti_look_elements(l, i), m = eti_look_elements(l, tokens);
    const int32_t *target = l->batch->field[i].host.i32 + at * n;
    const int32_t *input = l->batch->field[tokens].host.i32 + at * m;
    bool is_next = true;
    for (int64_t k = 0; k + 1 < n && n == m; k++)
        is_next = is_next && (target[k] < 0 || target[k] == input[k + 1]);
    return n == m && t < n && !is_next ? target[t] < 0 ? -1 : target[t] : -1;
}
