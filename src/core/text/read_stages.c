/* SPDX-License-Identifier: Apache-2.0 */
/* read_stages.c: the steps of a tokenizer.json that stand around its model. A table for
 * each kind says which there are; any other is refused by its name. */
#include <inttypes.h>
#include <string.h>
#include <utf8proc.h>

#include "core/base/memory.h"
#include "core/text/base64.h"
#include "core/text/charsmap.h"
#include "core/text/read.h"

typedef et_status reader(struct et_tokenizer *t, const char *name, const json_t *json);
struct row {
    const char *type;
    reader *read;
};

static et_status
read_by(const struct row *rows, const char *kind, struct et_tokenizer *t,
        const char *name, const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    if (!json || json_is_null(json))
        return ET_OK;
    for (const struct row *r = rows; type && r->type; r++)
        if (strcmp(type, r->type) == 0)
            return r->read(t, name, json);
    return ET_FAIL(t->cx, type ? ET_ENOTSUP : ET_EFORMAT,
                   "%s: %s %.100s is not known "
                   "here",
                   name, kind, type ? type : "without a type");
}

/* Reads each of a list. */
static et_status
read_list(struct et_tokenizer *t, const char *name, const json_t *list, reader *read)
{
    const json_t *item;
    size_t i;
    if (!json_is_array(list))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: a Sequence without a list", name);
    json_array_foreach((json_t *)list, i, item) ET_TRY(read(t, name, item));
    return ET_OK;
}

static et_status
check_room(struct et_tokenizer *t, const char *name, int n)
{
    if (n < ETI_MAX_STAGES)
        return ET_OK;
    return ET_FAIL(t->cx, ET_ENOTSUP, "%s: more than %d steps of a kind", name,
                   ETI_MAX_STAGES);
}

/* A text that must be there. */
static et_status
copy_text(struct et_tokenizer *t, const char *name, const json_t *json, const char *key,
          char **out, size_t *n)
{
    const json_t *text = json_object_get(json, key);
    if (!json_is_string(text))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: %s is no text", name, key);
    *n = json_string_length(text);
    return eti_copy(t->cx, json_string_value(text), *n, out);
}

/* {"String": ...} or {"Regex": ...} */
static et_status
read_pattern(struct et_tokenizer *t, const char *name, const json_t *json,
             pcre2_code **out)
{
    const json_t *text = json_object_get(json, "String");
    bool literal = json_is_string(text);
    if (!literal)
        text = json_object_get(json, "Regex");
    if (!json_is_string(text))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: a pattern is neither String nor Regex",
                       name);
    return eti_pattern(t->cx, name, json_string_value(text), json_string_length(text),
                       literal, out);
}

/* ---- normalizers ---- */

static et_status
add_norm(struct et_tokenizer *t, const char *name, struct eti_norm norm,
         struct eti_norm **out)
{
    ET_TRY(check_room(t, name, t->n_norms));
    *out = &t->norm[t->n_norms++];
    **out = norm;
    return ET_OK;
}

static et_status
norm_bert(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_norm *m;
    bool lower = eti_json_flag(json, "lowercase", true);
    return add_norm(t, name,
                    (struct eti_norm){
                        .kind = ETI_NORM_BERT,
                        .clean = eti_json_flag(json, "clean_text", true),
                        .chinese = eti_json_flag(json, "handle_chinese_chars", true),
                        .accents = eti_json_flag(json, "strip_accents", lower),
                        .lower = lower,
                    },
                    &m);
}

static et_status
norm_form(struct et_tokenizer *t, const char *name, const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    int form = UTF8PROC_STABLE;
    struct eti_norm *m;
    form |= type[strlen(type) - 1] == 'C' ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
    form |= type[2] == 'K' ? UTF8PROC_COMPAT : 0;
    return add_norm(t, name, (struct eti_norm){.kind = ETI_NORM_FORM, .form = form},
                    &m);
}

static et_status
norm_lower(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_norm *m;
    (void)json;
    return add_norm(t, name, (struct eti_norm){.kind = ETI_NORM_LOWER}, &m);
}

static et_status
norm_strip_accents(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_norm *m;
    (void)json;
    return add_norm(t, name, (struct eti_norm){.kind = ETI_NORM_STRIP_ACCENTS}, &m);
}

static et_status
norm_strip(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_norm *m;
    t->cuts = false;
    return add_norm(t, name,
                    (struct eti_norm){
                        .kind = ETI_NORM_STRIP,
                        .left = eti_json_flag(json, "strip_left", true),
                        .right = eti_json_flag(json, "strip_right", true),
                    },
                    &m);
}

static et_status
norm_prepend(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_norm *m;
    ET_TRY(add_norm(t, name, (struct eti_norm){.kind = ETI_NORM_PREPEND}, &m));
    return copy_text(t, name, json, "prepend", &m->text, &m->n);
}

static et_status
norm_replace(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_norm *m;
    ET_TRY(add_norm(t, name, (struct eti_norm){.kind = ETI_NORM_REPLACE}, &m));
    ET_TRY(read_pattern(t, name, json_object_get(json, "pattern"), &m->re));
    return copy_text(t, name, json, "content", &m->text, &m->n);
}

static et_status
norm_precompiled(struct et_tokenizer *t, const char *name, const json_t *json)
{
    const json_t *text = json_object_get(json, "precompiled_charsmap");
    struct eti_norm *m;
    uint8_t *table = NULL;
    size_t n = 0;
    t->cuts = false;
    if (!json_is_string(text))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: precompiled_charsmap is no text", name);
    ET_TRY(add_norm(t, name, (struct eti_norm){.kind = ETI_NORM_PRECOMPILED}, &m));
    ET_TRY(et_alloc(t->cx, sizeof *m->map, (void **)&m->map));
    m->map->users.cx = t->cx;
    et_status s = eti_base64_decode(t->cx, json_string_value(text),
                                    json_string_length(text), &table, &n);
    if (s == ET_OK)
        s = eti_charsmap_load(t->cx, m->map, (const char *)table, n);
    et_free(t->cx, table);
    return s == ET_OK ? ET_OK : eti_text_name_file(t, name, "precompiled_charsmap");
}

static et_status
norm_sequence(struct et_tokenizer *t, const char *name, const json_t *json)
{
    return read_list(t, name, json_object_get(json, "normalizers"),
                     eti_read_normalizer);
}

et_status
eti_read_normalizer(struct et_tokenizer *t, const char *name, const json_t *json)
{
    static const struct row rows[] = {
        {"BertNormalizer", norm_bert},
        {"NFC", norm_form},
        {"NFD", norm_form},
        {"NFKC", norm_form},
        {"NFKD", norm_form},
        {"Lowercase", norm_lower},
        {"Strip", norm_strip},
        {"StripAccents", norm_strip_accents},
        {"Precompiled", norm_precompiled},
        {"Prepend", norm_prepend},
        {"Replace", norm_replace},
        {"Sequence", norm_sequence},
        {NULL, NULL},
    };
    return read_by(rows, "normalizer", t, name, json);
}

/* ---- pre-tokenizers ---- */

static et_status
add_split(struct et_tokenizer *t, const char *name, struct eti_split split,
          struct eti_split **out)
{
    ET_TRY(check_room(t, name, t->n_splits));
    if (t->byte_level)
        return ET_FAIL(t->cx, ET_ENOTSUP,
                       "%s: a pre-tokenizer behind ByteLevel is not known here", name);
    *out = &t->split[t->n_splits++];
    **out = split;
    return ET_OK;
}

/* A step that is a pattern of ours. CUTS: it parts a space from the letter before. */
static et_status
split_by(struct et_tokenizer *t, const char *name, const char *pattern, bool matches,
         bool others, bool cuts)
{
    struct eti_split *s;
    bool is_first =
        t->n_splits == 0 || (t->n_splits == 1 && t->split[0].kind == ETI_SPLIT_PREFIX);
    t->cuts |= cuts && is_first;
    ET_TRY(add_split(
        t, name, (struct eti_split){.keeps_matches = matches, .keeps_others = others},
        &s));
    return eti_pattern(t->cx, name, pattern, strlen(pattern), false, &s->re);
}

static et_status
split_bytes(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_split *s;
    if (t->model != ETI_BPE)
        return ET_FAIL(t->cx, ET_ENOTSUP, "%s: ByteLevel without BPE is not known here",
                       name);
    if (eti_json_flag(json, "add_prefix_space", true))
        ET_TRY(add_split(t, name, (struct eti_split){.kind = ETI_SPLIT_PREFIX}, &s));
    if (eti_json_flag(json, "use_regex", true))
        ET_TRY(split_by(t, name, eti_gpt2_pattern, true, true, true));
    t->byte_level = true;
    return ET_OK;
}

static et_status
split_bert(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_split *s;
    (void)json;
    t->cuts |= t->n_splits == 0;
    return add_split(t, name, (struct eti_split){.kind = ETI_SPLIT_BERT}, &s);
}

static et_status
split_whitespace(struct et_tokenizer *t, const char *name, const json_t *json)
{
    (void)json;
    return split_by(t, name,
                    "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]+|"
                    "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}\\s]+",
                    true, false, true);
}

static et_status
split_spaces(struct et_tokenizer *t, const char *name, const json_t *json)
{
    (void)json;
    return split_by(t, name, "\\s+", false, true, true);
}

static et_status
split_digits(struct et_tokenizer *t, const char *name, const json_t *json)
{
    bool each = eti_json_flag(json, "individual_digits", false);
    return split_by(t, name, each ? "\\p{N}" : "\\p{N}+", true, true, false);
}

/* What becomes of matches: kept as words of their own, or left out. */
static et_status
read_behavior(struct et_tokenizer *t, const char *name, const json_t *json,
              bool *removes)
{
    const json_t *behavior = json_object_get(json, "behavior");
    const char *text = json_string_value(behavior);
    *removes = text && strcmp(text, "Removed") == 0;
    if (!behavior || *removes || (text && strcmp(text, "Isolated") == 0))
        return ET_OK;
    return ET_FAIL(t->cx, ET_ENOTSUP,
                   "%s: behavior %.100s is not known here; Isolated and Removed are",
                   name, text ? text : "without a name");
}

static et_status
split_punctuation(struct et_tokenizer *t, const char *name, const json_t *json)
{
    bool removes;
    ET_TRY(read_behavior(t, name, json, &removes));
    return split_by(t, name, "[!-/:-@\\[-`{-~\\p{P}]", !removes, true, false);
}

static et_status
split_pattern(struct et_tokenizer *t, const char *name, const json_t *json)
{
    bool removes, invert = eti_json_flag(json, "invert", false);
    struct eti_split *s;
    ET_TRY(read_behavior(t, name, json, &removes));
    ET_TRY(add_split(t, name,
                     (struct eti_split){.keeps_matches = invert || !removes,
                                        .keeps_others = !invert || !removes},
                     &s));
    return read_pattern(t, name, json_object_get(json, "pattern"), &s->re);
}

static et_status
split_delimiter(struct et_tokenizer *t, const char *name, const json_t *json)
{
    const json_t *text = json_object_get(json, "delimiter");
    struct eti_split *s;
    ET_TRY(add_split(t, name, (struct eti_split){.keeps_others = true}, &s));
    if (!json_is_string(text))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: delimiter is no text", name);
    return eti_pattern(t->cx, name, json_string_value(text), json_string_length(text),
                       true, &s->re);
}

static et_status
read_prepend(struct et_tokenizer *t, const char *name, const json_t *json,
             enum eti_prepend *out)
{
    const char *text = json_string_value(json_object_get(json, "prepend_scheme"));
    *out = eti_json_flag(json, "add_prefix_space", true) ? ETI_PREPEND_ALWAYS
                                                         : ETI_PREPEND_NEVER;
    if (!text)
        return ET_OK;
    if (strcmp(text, "first") == 0)
        *out = ETI_PREPEND_FIRST;
    else if (strcmp(text, "never") == 0)
        *out = ETI_PREPEND_NEVER;
    else if (strcmp(text, "always") == 0)
        *out = ETI_PREPEND_ALWAYS;
    else
        return ET_FAIL(t->cx, ET_ENOTSUP, "%s: prepend_scheme %.100s", name, text);
    return ET_OK;
}

static et_status
split_metaspace(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_split *s;
    ET_TRY(add_split(t, name,
                     (struct eti_split){
                         .kind = ETI_SPLIT_METASPACE,
                         .splits = eti_json_flag(json, "split", true),
                     },
                     &s));
    ET_TRY(read_prepend(t, name, json, &s->prepend));
    ET_TRY(copy_text(t, name, json, "replacement", &s->text, &s->n));
    if (s->n == 0)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: replacement is empty", name);
    return ET_OK;
}

static et_status
split_sequence(struct et_tokenizer *t, const char *name, const json_t *json)
{
    return read_list(t, name, json_object_get(json, "pretokenizers"),
                     eti_read_pre_tokenizer);
}

et_status
eti_read_pre_tokenizer(struct et_tokenizer *t, const char *name, const json_t *json)
{
    static const struct row rows[] = {
        {"ByteLevel", split_bytes},
        {"BertPreTokenizer", split_bert},
        {"Whitespace", split_whitespace},
        {"WhitespaceSplit", split_spaces},
        {"Punctuation", split_punctuation},
        {"Digits", split_digits},
        {"Split", split_pattern},
        {"CharDelimiterSplit", split_delimiter},
        {"Metaspace", split_metaspace},
        {"Sequence", split_sequence},
        {NULL, NULL},
    };
    ET_TRY(read_by(rows, "pre-tokenizer", t, name, json));
    for (int i = 0; i < t->n_norms; i++)
        t->cuts &= t->norm[i].kind < ETI_NORM_STRIP;
    return ET_OK;
}

/* ---- decoders ---- */

static et_status
add_join(struct et_tokenizer *t, const char *name, enum eti_join_kind kind,
         struct eti_join **out)
{
    ET_TRY(check_room(t, name, t->n_joins));
    if (t->n_joins > 0 && (kind == ETI_JOIN_BYTES || t->join[0].kind == ETI_JOIN_BYTES))
        return ET_FAIL(t->cx, ET_ENOTSUP,
                       "%s: a decoder beside ByteLevel is not known here", name);
    *out = &t->join[t->n_joins++];
    **out = (struct eti_join){.kind = kind};
    return ET_OK;
}

static et_status
join_bytes(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_join *j = NULL;
    (void)json;
    if (!t->byte_level)
        return ET_FAIL(t->cx, ET_ENOTSUP,
                       "%s: a decoder ByteLevel without a pre-tokenizer ByteLevel",
                       name);
    return add_join(t, name, ETI_JOIN_BYTES, &j);
}

static et_status
join_wordpiece(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_join *j = NULL;
    ET_TRY(add_join(t, name, ETI_JOIN_WORDPIECE, &j));
    j->cleanup = eti_json_flag(json, "cleanup", true);
    return copy_text(t, name, json, "prefix", &j->text, &j->n);
}

static et_status
join_metaspace(struct et_tokenizer *t, const char *name, const json_t *json)
{
    enum eti_prepend prepend;
    struct eti_join *j = NULL;
    ET_TRY(add_join(t, name, ETI_JOIN_METASPACE, &j));
    ET_TRY(read_prepend(t, name, json, &prepend));
    j->prefix = prepend != ETI_PREPEND_NEVER;
    return copy_text(t, name, json, "replacement", &j->text, &j->n);
}

static et_status
join_suffix(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_join *j = NULL;
    ET_TRY(add_join(t, name, ETI_JOIN_SUFFIX, &j));
    return copy_text(t, name, json, "suffix", &j->text, &j->n);
}

static et_status
join_replace(struct et_tokenizer *t, const char *name, const json_t *json)
{
    const json_t *pattern = json_object_get(json, "pattern");
    struct eti_join *j = NULL;
    ET_TRY(add_join(t, name, ETI_JOIN_REPLACE, &j));
    if (!json_is_string(json_object_get(pattern, "String")))
        return ET_FAIL(t->cx, ET_ENOTSUP,
                       "%s: a decoder's Replace by a pattern is not known here", name);
    ET_TRY(copy_text(t, name, pattern, "String", &j->text, &j->n));
    return copy_text(t, name, json, "content", &j->by, &j->n_by);
}

static et_status
join_fallback(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_join *j = NULL;
    (void)json;
    return add_join(t, name, ETI_JOIN_FALLBACK, &j);
}

static et_status
join_fuse(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_join *j = NULL;
    (void)json;
    return add_join(t, name, ETI_JOIN_FUSE, &j);
}

static et_status
join_strip(struct et_tokenizer *t, const char *name, const json_t *json)
{
    struct eti_join *j = NULL;
    ET_TRY(add_join(t, name, ETI_JOIN_STRIP, &j));
    j->start = json_integer_value(json_object_get(json, "start"));
    j->stop = json_integer_value(json_object_get(json, "stop"));
    return copy_text(t, name, json, "content", &j->text, &j->n);
}

static et_status read_join(struct et_tokenizer *t, const char *name,
                           const json_t *json);

static et_status
join_sequence(struct et_tokenizer *t, const char *name, const json_t *json)
{
    return read_list(t, name, json_object_get(json, "decoders"), read_join);
}

static et_status
read_join(struct et_tokenizer *t, const char *name, const json_t *json)
{
    static const struct row rows[] = {
        {"ByteLevel", join_bytes},     {"WordPiece", join_wordpiece},
        {"Metaspace", join_metaspace}, {"BPEDecoder", join_suffix},
        {"Replace", join_replace},     {"ByteFallback", join_fallback},
        {"Fuse", join_fuse},           {"Strip", join_strip},
        {"Sequence", join_sequence},   {NULL, NULL},
    };
    return read_by(rows, "decoder", t, name, json);
}

et_status
eti_read_decoder(struct et_tokenizer *t, const char *name, const json_t *json)
{
    ET_TRY(read_join(t, name, json));
    t->spaced = t->n_joins == 0;
    return ET_OK;
}

/* ---- post-processors ---- */

/* ["[SEP]", 102] */
static et_status
read_mark(struct et_tokenizer *t, const char *name, const json_t *json, const char *key,
          int32_t *id)
{
    const json_t *number = json_array_get(json_object_get(json, key), 1);
    json_int_t value = json_is_integer(number) ? json_integer_value(number) : -1;
    if (value < 0 || value >= t->vocab.n)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: post-processor: %s is no token", name,
                       key);
    *id = (int32_t)value;
    return ET_OK;
}

static et_status
frame_bert(struct et_tokenizer *t, const char *name, const json_t *json)
{
    int32_t cls, sep;
    ET_TRY(read_mark(t, name, json, "cls", &cls));
    ET_TRY(read_mark(t, name, json, "sep", &sep));
    eti_frame_bert(t, cls, sep);
    return ET_OK;
}

static et_status
frame_roberta(struct et_tokenizer *t, const char *name, const json_t *json)
{
    int32_t cls, sep;
    ET_TRY(read_mark(t, name, json, "cls", &cls));
    ET_TRY(read_mark(t, name, json, "sep", &sep));
    const struct eti_frame all[] = {
        {.id = cls}, {.id = ETI_FRAME_A}, {.id = sep},
        {.id = sep}, {.id = ETI_FRAME_B}, {.id = sep},
    };
    memcpy(t->one, all, 3 * sizeof *all);
    memcpy(t->two, all, sizeof all);
    t->n_one = 3;
    t->n_two = 6;
    return ET_OK;
}

static et_status
add_frame(struct et_tokenizer *t, const char *name, struct eti_frame f,
          struct eti_frame *frame, int *n)
{
    if (*n == ETI_MAX_FRAME)
        return ET_FAIL(t->cx, ET_ENOTSUP, "%s: a template of more than %d parts", name,
                       ETI_MAX_FRAME);
    frame[(*n)++] = f;
    return ET_OK;
}

/* The ids that a template calls by a name. */
static et_status
add_named(struct et_tokenizer *t, const char *name, const json_t *specials,
          const char *called, uint8_t type, struct eti_frame *frame, int *n)
{
    const json_t *ids =
        json_object_get(called ? json_object_get(specials, called) : NULL, "ids");
    const json_t *id;
    size_t i;
    if (json_array_size(ids) == 0)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: template: no ids of %.100s", name,
                       called ? called : "a token");
    json_array_foreach((json_t *)ids, i, id)
    {
        json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value >= t->vocab.n)
            return ET_FAIL(t->cx, ET_EFORMAT, "%s: template: %.100s is no token", name,
                           called);
        ET_TRY(add_frame(
            t, name, (struct eti_frame){.id = (int32_t)value, .type = type}, frame, n));
    }
    return ET_OK;
}

static et_status
read_template(struct et_tokenizer *t, const char *name, const json_t *list,
              const json_t *specials, struct eti_frame *frame, int *n)
{
    const json_t *item;
    size_t i;
    json_array_foreach((json_t *)list, i, item)
    {
        const json_t *text = json_object_get(item, "Sequence");
        const json_t *mark = json_object_get(item, "SpecialToken");
        const json_t *part = text ? text : mark;
        const char *called = json_string_value(json_object_get(part, "id"));
        uint8_t type = (uint8_t)json_integer_value(json_object_get(part, "type_id"));
        if (mark)
            ET_TRY(add_named(t, name, specials, called, type, frame, n));
        else if (called && (strcmp(called, "A") == 0 || strcmp(called, "B") == 0))
            ET_TRY(add_frame(t, name,
                             (struct eti_frame){
                                 .id = *called == 'A' ? ETI_FRAME_A : ETI_FRAME_B,
                                 .type = type,
                             },
                             frame, n));
        else
            return ET_FAIL(t->cx, ET_EFORMAT, "%s: template: a part of no kind", name);
    }
    return ET_OK;
}

static int
count_text(const struct eti_frame *frame, int n, int32_t which)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += frame[i].id == which;
    return count;
}

static et_status
frame_template(struct et_tokenizer *t, const char *name, const json_t *json)
{
    const json_t *specials = json_object_get(json, "special_tokens");
    t->n_one = t->n_two = 0;
    ET_TRY(read_template(t, name, json_object_get(json, "single"), specials, t->one,
                         &t->n_one));
    ET_TRY(read_template(t, name, json_object_get(json, "pair"), specials, t->two,
                         &t->n_two));
    bool good = count_text(t->one, t->n_one, ETI_FRAME_A) == 1 &&
                count_text(t->one, t->n_one, ETI_FRAME_B) == 0 &&
                (t->n_two == 0 || (count_text(t->two, t->n_two, ETI_FRAME_A) == 1 &&
                                   count_text(t->two, t->n_two, ETI_FRAME_B) == 1));
    if (!good)
        return ET_FAIL(t->cx, ET_EFORMAT,
                       "%s: template: each text is to stand in it once", name);
    return ET_OK;
}

/* It moves offsets, which nobody asks for here. */
static et_status
frame_bytes(struct et_tokenizer *t, const char *name, const json_t *json)
{
    (void)t;
    (void)name;
    (void)json;
    return ET_OK;
}

static et_status
frame_sequence(struct et_tokenizer *t, const char *name, const json_t *json)
{
    return read_list(t, name, json_object_get(json, "processors"),
                     eti_read_post_processor);
}

et_status
eti_read_post_processor(struct et_tokenizer *t, const char *name, const json_t *json)
{
    static const struct row rows[] = {
        {"BertProcessing", frame_bert},         {"RobertaProcessing", frame_roberta},
        {"TemplateProcessing", frame_template}, {"ByteLevel", frame_bytes},
        {"Sequence", frame_sequence},           {NULL, NULL},
    };
    return read_by(rows, "post-processor", t, name, json);
}
