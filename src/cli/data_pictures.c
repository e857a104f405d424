/* SPDX-License-Identifier: Apache-2.0 */
/* data_pictures.c: `etude data show --pictures`: what the screen that shows data draws,
 * as JSON.
 *
 *     {"samples": 60000, "fields": [...], "transforms": [{"name", "on"}...],
 *      "class_names": [...], "counts": [...], "counted": 20000,
 *      "counted_what": "pixels" (of masks, in the samples that are shown),
 *      "first": 0, "shown": [{"target": "3 Dress", "h", "w", "rgb": "00ff..."}...]}
 *
 * A picture has at most MOST pixels a side, two hexadecimal digits a byte; with a mask
 * there are also "over" and "mask". Of sequences there is "tokens", a text each, and
 * "guessed", {place: the token that the model is to find there}. */
#include "config.h"

#include <string.h>

#include "cli/data.h"
#include "core/data/fields.h"
#include "core/recipe/options.h"
#include "etude/tokenizer.h"

enum {
    MOST = 48,       /* pixels of a side */
    COUNTED = 20000, /* samples whose classes are counted */
    TOKENS = 512,
    NUMBERS = 32
};

struct words { /* of tokens; ENCODER NULL: they are bytes, or have no texts */
    struct et_tokenizer *tokenizer;
    struct et_encoder *encoder;
    bool is_bytes;
};

/* ---- pictures ---- */

/* RGB [H][W] as hexadecimal digits, of H2 x W2 pixels. */
static json_t *
to_hex(struct cli *c, const uint8_t *rgb, int64_t h, int64_t w, int64_t h2, int64_t w2)
{
    static const char digit[] = "0123456789abcdef";
    void *block;
    if (et_alloc(c->cx, (size_t)(h2 * w2 * 6 + 1), &block) != ET_OK)
        return NULL;
    char *text = block, *to = text;
    for (int64_t y = 0; y < h2; y++)
        for (int64_t x = 0; x < w2; x++)
            for (int k = 0; k < 3; k++) {
                const uint8_t v = rgb[(y * h / h2 * w + x * w / w2) * 3 + k];
                *to++ = digit[v >> 4];
                *to++ = digit[v & 15];
            }
    *to = '\0';
    json_t *out = json_string(text);
    et_free(c->cx, block);
    return out;
}

static void
put_picture(struct cli *c, const struct eti_batch_look *l, int64_t at, json_t *out)
{
    const int image = eti_look_find(l, ET_FIELD_IMAGE);
    const int mask = eti_look_find(l, ET_FIELD_MASK);
    if (image < 0)
        return;
    const struct et_desc *d = &l->batch->field[image].desc;
    const int64_t h = d->shape[2], w = d->shape[3], side = h > w ? h : w;
    const int64_t h2 = side > MOST ? (h * MOST + side - 1) / side : h;
    const int64_t w2 = side > MOST ? (w * MOST + side - 1) / side : w;
    void *rgb;
    if (et_alloc(c->cx, (size_t)(h * w * 3), &rgb) != ET_OK)
        return;
    json_object_set_new(out, "h", json_integer((json_int_t)h2));
    json_object_set_new(out, "w", json_integer((json_int_t)w2));
    eti_look_pixels(l, image, -1, at, rgb);
    json_object_set_new(out, "rgb", to_hex(c, rgb, h, w, h2, w2));
    if (mask >= 0) {
        eti_look_pixels(l, image, mask, at, rgb);
        json_object_set_new(out, "over", to_hex(c, rgb, h, w, h2, w2));
        eti_look_mask(l, mask, at, rgb);
        json_object_set_new(out, "mask", to_hex(c, rgb, h, w, h2, w2));
    }
    et_free(c->cx, rgb);
}

/* ---- words ---- */

/* The tokenizer that the data's options name, if there is one. */
static void
find_words(struct cli *c, const struct et_dataset *data, const struct eti_batch_look *l,
           struct words *out)
{
    const int tokens = eti_look_find(l, ET_FIELD_TOKENS);
    const struct et_option *row =
        eti_option_find(data->type->info.options, "tokenizer");
    *out =
        (struct words){.is_bytes = tokens >= 0 && l->info.field[tokens].below == 256};
    if (!row || (row->type != ET_OPT_PATH && row->type != ET_OPT_TEXT))
        return;
    char *const *path = eti_option_field(row, data->options);
    if (!*path || et_tokenizer_open(c->cx, *path, &out->tokenizer) != ET_OK ||
        et_encoder_new(c->cx, out->tokenizer, &out->encoder) != ET_OK)
        et_error_clear(c->cx); /* numbers are shown */
}

static json_t *
word_of(struct cli *c, const struct words *words, int32_t token)
{
    char text[24];
    struct et_text out;
    if (words->encoder && token >= 0) {
        if (et_decode(words->encoder, &token, 1, 0, &out) == ET_OK) {
            json_t *word = json_stringn(out.text, out.n);
            if (word) /* NULL for a part of a character */
                return word;
        }
        et_error_clear(c->cx);
    }
    if (words->is_bytes && token >= 0 && token < 128)
        snprintf(text, sizeof text, "%c", (char)token);
    else if (words->is_bytes)
        snprintf(text, sizeof text, "\\x%02x", (unsigned)token & 255);
    else
        snprintf(text, sizeof text, "%d", (int)token);
    return json_string(text);
}

static void
put_words(struct cli *c, const struct eti_batch_look *l, const struct words *words,
          int64_t at, json_t *out)
{
    const int tokens = eti_look_find(l, ET_FIELD_TOKENS);
    if (tokens < 0)
        return;
    const int64_t n = eti_look_elements(l, tokens);
    const int64_t real = eti_look_tokens(l, tokens, at);
    json_t *list = json_array(), *guessed = json_object();
    for (int64_t t = 0; t < real && t < TOKENS; t++) {
        char place[24];
        const int32_t token = l->batch->field[tokens].host.i32[at * n + t];
        const int32_t was = eti_look_guessed(l, at, t);
        json_array_append_new(list, word_of(c, words, token));
        snprintf(place, sizeof place, "%lld", (long long)t);
        if (was >= 0)
            json_object_set_new(guessed, place, word_of(c, words, was));
    }
    json_object_set_new(out, "tokens", list);
    json_object_set_new(out, "guessed", guessed);
    json_object_set_new(out, "length", json_integer((json_int_t)real));
}

/* ---- numbers ---- */

static void
put_values(const struct eti_batch_look *l, int64_t at, json_t *out)
{
    json_t *all = json_object();
    for (int i = 0; i < l->info.n_fields; i++) {
        const int64_t n = eti_look_elements(l, i);
        if (l->info.field[i].kind != ET_FIELD_VALUES || n < 1 ||
            (i == ET_FIELD_TARGET && n == 1))
            continue;
        json_t *list = json_array();
        for (int64_t k = 0; k < n && k < NUMBERS; k++)
            json_array_append_new(list, json_real(eti_look_element(l, i, at * n + k)));
        json_object_set_new(all, l->info.field[i].name, list);
    }
    json_object_set_new(out, "values", all);
}

static void
put_numbers(const struct et_dataset *data, const int64_t *count, int64_t classes,
            int64_t counted, json_t *out)
{
    json_t *list = json_array(), *names = json_array();
    for (int64_t k = 0; k < classes; k++) {
        json_array_append_new(list, json_integer((json_int_t)count[k]));
        if (data->facts.class_names)
            json_array_append_new(names, json_string(data->facts.class_names[k]));
    }
    json_object_set_new(out, "counts", list);
    json_object_set_new(out, "class_names", names);
    json_object_set_new(out, "counted", json_integer((json_int_t)counted));
}

/* How often each class is the target of the first samples: of data whose target is
 * one. */
static void
put_counts(struct cli *c, const struct et_dataset *data, json_t *out)
{
    const struct et_field *target = et_facts_target(&data->facts);
    const int64_t classes = et_facts_classes(&data->facts);
    const int64_t n = data->facts.n_samples < COUNTED ? data->facts.n_samples : COUNTED;
    struct eti_room room = {0};
    void *block;
    if (!target || target->kind != ET_FIELD_VALUES || target->ndim > 0 ||
        et_dtype_is_float(target->dtype) || classes < 1 || classes > 1000 ||
        data->type->tokens || !data->type->sample ||
        et_alloc(c->cx, (size_t)classes * sizeof(int64_t), &block) != ET_OK)
        return;
    int64_t *count = memset(block, 0, (size_t)classes * sizeof *count), counted = 0;
    for (int64_t i = 0; i < n; i++) {
        struct et_sample sample;
        struct et_error why = {0};
        bool broken;
        int32_t label = -1;
        if (eti_sample_read(data, i, NULL, &room, &sample, &why, &broken) != ET_OK ||
            !eti_convert(sample.v[ET_FIELD_TARGET].data, target->dtype, 1, ET_I32,
                         &label) ||
            label < 0 || label >= classes)
            continue;
        count[label]++;
        counted++;
    }
    eti_room_free(&room);
    put_numbers(data, count, classes, counted, out);
    et_free(c->cx, block);
}

/* The same of masks: the pixels of each class in the N samples that are shown. */
static void
put_mask_counts(struct cli *c, const struct eti_batch_look *l,
                const struct et_dataset *data, int64_t n, json_t *out)
{
    const int mask = ET_FIELD_TARGET;
    void *block;
    if (l->info.n_fields <= mask || l->info.field[mask].kind != ET_FIELD_MASK)
        return;
    const int64_t classes = l->info.field[mask].below;
    if (classes < 1 || classes > ETI_LOOK_CLASSES ||
        et_alloc(c->cx, (size_t)classes * sizeof(int64_t), &block) != ET_OK)
        return;
    int64_t *count = memset(block, 0, (size_t)classes * sizeof *count), counted = 0;
    for (int64_t at = 0; at < n; at++)
        counted += eti_look_classes(l, mask, at, count);
    put_numbers(data, count, classes, counted, out);
    json_object_set_new(out, "counted_what", json_string("pixels"));
    et_free(c->cx, block);
}

static json_t *
fields_json(const struct eti_batch_look *l)
{
    static const char *const kinds[] = {"image", "mask", "tokens", "values"};
    json_t *list = json_array();
    for (int i = 0; i < l->info.n_fields; i++) {
        json_t *shape = json_array();
        const struct et_desc *d = &l->batch->field[i].desc;
        for (int k = 1; k < d->ndim; k++)
            json_array_append_new(shape, json_integer((json_int_t)d->shape[k]));
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o}", "name", l->info.field[i].name, "kind",
                            kinds[l->info.field[i].kind], "shape", shape));
    }
    return list;
}

json_t *
cli_data_pictures(struct cli *c, const struct eti_batch_look *look,
                  const struct et_dataset *data, int64_t n, json_t *transforms)
{
    struct words words;
    json_t *shown = json_array();
    find_words(c, data, look, &words);
    for (int64_t at = 0; at < n; at++) {
        char text[64];
        json_t *one = json_object();
        eti_look_target(look, at, text, sizeof text);
        json_object_set_new(one, "target", json_string(text));
        put_picture(c, look, at, one);
        put_words(c, look, &words, at, one);
        put_values(look, at, one);
        json_array_append_new(shown, one);
    }
    et_encoder_free(&words.encoder);
    et_tokenizer_free(&words.tokenizer);
    json_t *out =
        json_pack("{s:s, s:I, s:o, s:O, s:I, s:o}", "data", data->type->info.name,
                  "samples", (json_int_t)look->info.samples_per_epoch, "fields",
                  fields_json(look), "transforms", transforms, "first",
                  (json_int_t)look->batch->first, "shown", shown);
    put_counts(c, data, out);
    put_mask_counts(c, look, data, n, out);
    return out;
}
