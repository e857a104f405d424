/* SPDX-License-Identifier: Apache-2.0 */
/* read_json.c: Hugging Face's tokenizer.json: the model and the added tokens; the other
 * steps are in read_stages.c. Truncation and padding are not read: they are what
 * somebody did with the tokenizer, and batches have their own. */
#include <inttypes.h>
#include <string.h>

#include "core/text/read.h"

bool
eti_json_flag(const json_t *json, const char *key, bool otherwise)
{
    const json_t *flag = json_object_get(json, key);
    return json_is_boolean(flag) ? json_is_true(flag) : otherwise;
}

/* A member that is a text with something in it, as a copy; NULL without. */
static et_status
copy_member(struct et_tokenizer *t, const json_t *json, const char *key, char **out)
{
    const json_t *text = json_object_get(json, key);
    if (!json_is_string(text) || json_string_length(text) == 0)
        return ET_OK;
    return eti_copy(t->cx, json_string_value(text), json_string_length(text), out);
}

/* ---- BPE ---- */

static et_status
read_merge(struct et_tokenizer *t, const char *name, int64_t rank, const json_t *merge)
{
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    char where[256];
    snprintf(where, sizeof where, "%.200s: merges", name);
    if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right))
        return eti_read_merge(t, where, rank, json_string_value(left),
                              json_string_length(left), json_string_value(right),
                              json_string_length(right));
    const char *text = json_string_value(merge),
               *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' '))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: merge %" PRId64 " is no two texts",
                       where, rank + 1);
    return eti_read_merge(t, where, rank, text, (size_t)(space - text), space + 1,
                          strlen(space + 1));
}

static et_status
read_bpe(struct et_tokenizer *t, const char *name, const json_t *model)
{
    const json_t *merges = json_object_get(model, "merges"), *merge;
    const json_t *dropout = json_object_get(model, "dropout");
    size_t i;
    t->model = ETI_BPE;
    t->bpe.fuse_unk = eti_json_flag(model, "fuse_unk", false);
    t->bpe.whole_words = eti_json_flag(model, "ignore_merges", false);
    t->has_fallback = eti_json_flag(model, "byte_fallback", false);
    if (json_is_number(dropout) && json_number_value(dropout) > 0)
        return ET_FAIL(t->cx, ET_ENOTSUP, "%s: model: dropout is not known here", name);
    ET_TRY(copy_member(t, model, "continuing_subword_prefix", &t->bpe.prefix));
    ET_TRY(copy_member(t, model, "end_of_word_suffix", &t->bpe.suffix));
    ET_TRY(eti_read_vocab(t, name, json_object_get(model, "vocab")));
    if (!json_is_array(merges))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: merges is no list", name);
    json_array_foreach((json_t *)merges, i, merge)
        ET_TRY(read_merge(t, name, (int64_t)i, merge));
    return ET_OK;
}

/* ---- WordPiece ---- */

static et_status
read_wordpiece(struct et_tokenizer *t, const char *name, const json_t *model)
{
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");
    t->model = ETI_WORDPIECE;
    t->longest_word = json_is_integer(longest) ? json_integer_value(longest) : 100;
    ET_TRY(copy_member(t, model, "continuing_subword_prefix", &t->bpe.prefix));
    return eti_read_vocab(t, name, json_object_get(model, "vocab"));
}

/* ---- Unigram ---- */

static et_status
read_piece(struct et_tokenizer *t, const char *name, int64_t id, const json_t *piece)
{
    const json_t *text = json_array_get(piece, 0), *score = json_array_get(piece, 1);
    struct eti_unigram *u = &t->unigram;
    if (json_array_size(piece) != 2 || !json_is_string(text) || !json_is_number(score))
        return ET_FAIL(t->cx, ET_EFORMAT,
                       "%s: piece %" PRId64 " is not a text and a score", name, id);
    size_t n = json_string_length(text);
    if (eti_vocab_add(&t->vocab, id, json_string_value(text), n) != ET_OK)
        return eti_text_name_file(t, name, "vocab");
    u->score[id] = json_number_value(score);
    if (id == 0 || u->score[id] < u->worst)
        u->worst = u->score[id];
    return n ? eti_trie_add(&u->trie, json_string_value(text), n, (int32_t)id) : ET_OK;
}

static et_status
read_unigram(struct et_tokenizer *t, const char *name, const json_t *model)
{
    const json_t *vocab = json_object_get(model, "vocab"), *piece;
    const json_t *unk = json_object_get(model, "unk_id");
    size_t i, n = json_array_size(vocab);
    t->model = ETI_UNIGRAM;
    t->unigram.fuse_unk = true;
    t->has_fallback = eti_json_flag(model, "byte_fallback", false);
    if (n == 0)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: vocab is no list of pieces", name);
    ET_TRY(et_alloc(t->cx, n * sizeof *t->unigram.score, (void **)&t->unigram.score));
    json_array_foreach((json_t *)vocab, i, piece)
        ET_TRY(read_piece(t, name, (int64_t)i, piece));
    if (json_is_integer(unk) && json_integer_value(unk) >= 0 &&
        json_integer_value(unk) < (json_int_t)n)
        t->unk = (int32_t)json_integer_value(unk);
    return ET_OK;
}

/* ---- the model ---- */

static const struct {
    const char *type, *member; /* files that name no type have the member */
    et_status (*read)(struct et_tokenizer *t, const char *name, const json_t *model);
} models[] = {
    {"BPE", "merges", read_bpe},
    {"WordPiece", "max_input_chars_per_word", read_wordpiece},
    {"Unigram", "unk_id", read_unigram},
};

static et_status
read_model(struct et_tokenizer *t, const char *name, const json_t *model)
{
    const char *type = json_string_value(json_object_get(model, "type"));
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (type ? strcmp(type, models[i].type) == 0
                 : json_object_get(model, models[i].member) != NULL)
            return models[i].read(t, name, model);
    if (!json_is_object(model))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: no model", name);
    return ET_FAIL(t->cx, ET_ENOTSUP,
                   "%s: model %.100s is not known here; BPE, WordPiece and Unigram are",
                   name, type ? type : "without a type");
}

/* ---- added tokens ---- */

static et_status
read_added(struct et_tokenizer *t, const char *name, const json_t *token)
{
    const json_t *text = json_object_get(token, "content");
    const json_t *id = json_object_get(token, "id");
    if (!json_is_string(text) || json_string_length(text) == 0 || !json_is_integer(id))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: an added token without content or id",
                       name);
    size_t n = json_string_length(text);
    int32_t known = eti_vocab_find(&t->vocab, json_string_value(text), n);
    json_int_t wanted = known >= 0 ? known : json_integer_value(id);
    if (wanted < 0 || wanted >= ETI_VOCAB_MAX)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: an added token's id is %" PRId64, name,
                       (int64_t)wanted);
    struct eti_added added = {
        .id = (int32_t)wanted,
        .single_word = eti_json_flag(token, "single_word", false),
        .lstrip = eti_json_flag(token, "lstrip", false),
        .rstrip = eti_json_flag(token, "rstrip", false),
        .special = eti_json_flag(token, "special", false),
    };
    added.normalized = eti_json_flag(token, "normalized", !added.special);
    if (eti_tokenizer_add(t, json_string_value(text), n, added) != ET_OK)
        return eti_text_name_file(t, name, "added_tokens");
    return ET_OK;
}

static et_status
read_unk(struct et_tokenizer *t, const char *name, const json_t *model)
{
    const json_t *unk = json_object_get(model, "unk_token");
    if (t->model == ETI_WORDPIECE || json_is_string(unk)) {
        const char *text = json_is_string(unk) ? json_string_value(unk) : "[UNK]";
        t->unk = eti_vocab_find(&t->vocab, text, strlen(text));
        if (t->unk < 0)
            return ET_FAIL(t->cx, ET_EFORMAT, "%s: unk_token %.100s is no token", name,
                           text);
    }
    return ET_OK;
}

static et_status
read_all(struct et_tokenizer *t, const char *name, const json_t *json)
{
    const json_t *model = json_object_get(json, "model"), *token;
    const json_t *added = json_object_get(json, "added_tokens");
    size_t i;
    ET_TRY(read_model(t, name, model));
    json_array_foreach((json_t *)added, i, token) ET_TRY(read_added(t, name, token));
    ET_TRY(read_unk(t, name, model));
    ET_TRY(eti_read_normalizer(t, name, json_object_get(json, "normalizer")));
    ET_TRY(eti_read_pre_tokenizer(t, name, json_object_get(json, "pre_tokenizer")));
    ET_TRY(eti_read_decoder(t, name, json_object_get(json, "decoder")));
    ET_TRY(eti_read_post_processor(t, name, json_object_get(json, "post_processor")));
    return eti_tokenizer_finish(t, name);
}

et_status
eti_read_tokenizer_json(struct et_tokenizer *t, const char *name, const char *text,
                        size_t n)
{
    json_t *json;
    ET_TRY(eti_json(t->cx, name, text, n, &json));
    et_status s = read_all(t, name, json);
    json_decref(json);
    return s;
}
