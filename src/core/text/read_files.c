/* SPDX-License-Identifier: Apache-2.0 */
/* read_files.c: the files that came before tokenizer.json: GPT-2's vocab.json and
 * merges.txt, BERT's vocab.txt, and what stands beside them. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "core/text/read.h"
#include "core/text/role_ids.h"

et_status
eti_json(struct et_ctx *cx, const char *name, const char *text, size_t n, json_t **out)
{
    json_error_t error;
    *out = json_loadb(text ? text : "", n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
                      &error);
    if (*out && json_is_object(*out))
        return ET_OK;
    bool is_json = *out != NULL;
    json_decref(*out);
    *out = NULL;
    if (is_json)
        return ET_FAIL(cx, ET_EFORMAT, "%s: no JSON object", name);
    return ET_FAIL(cx, ET_EFORMAT, "%s:%d:%d: %s", name, error.line, error.column,
                   error.text);
}

/* ---- the vocabulary as an object of texts and numbers ---- */

et_status
eti_read_vocab(struct et_tokenizer *t, const char *name, const json_t *vocab)
{
    const char *text;
    json_t *id;
    if (!json_is_object(vocab))
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: vocab is no object", name);
    json_object_foreach((json_t *)vocab, text, id)
    {
        if (!json_is_integer(id))
            return ET_FAIL(t->cx, ET_EFORMAT, "%s: vocab: %.100s has no number", name,
                           text);
        if (eti_vocab_add(&t->vocab, json_integer_value(id), text, strlen(text)) !=
            ET_OK)
            return eti_text_name_file(t, name, "vocab");
    }
    return ET_OK;
}

/* Says which file the error that stands is of. */
et_status
eti_text_name_file(struct et_tokenizer *t, const char *name, const char *where)
{
    struct et_error why = *et_error_get(t->cx);
    et_error_clear(t->cx);
    return ET_FAIL(t->cx, why.status, "%s: %s: %s", name, where, why.message);
}

/* A line of two texts; WHERE is for the message. */
et_status
eti_read_merge(struct et_tokenizer *t, const char *where, int64_t rank,
               const char *left, size_t n_left, const char *right, size_t n_right)
{
    char both[1024];
    const char *prefix = t->bpe.prefix ? t->bpe.prefix : "";
    size_t skip = strlen(prefix);
    int32_t a = eti_vocab_find(&t->vocab, left, n_left);
    int32_t b = eti_vocab_find(&t->vocab, right, n_right);
    skip = n_right >= skip && memcmp(right, prefix, skip) == 0 ? skip : 0;
    if (rank >= INT32_MAX || n_left + n_right > sizeof both)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: a merge of %zu bytes", where,
                       n_left + n_right);
    if (a < 0 || b < 0)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: merge %" PRId64 ": '%.*s' is no token",
                       where, rank + 1, (int)(a < 0 ? n_left : n_right),
                       a < 0 ? left : right);
    memcpy(both, left, n_left);
    memcpy(both + n_left, right + skip, n_right - skip);
    int32_t id = eti_vocab_find(&t->vocab, both, n_left + n_right - skip);
    if (id < 0)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: merge %" PRId64 ": '%.*s' is no token",
                       where, rank + 1, (int)(n_left + n_right - skip), both);
    return eti_bpe_add_pair(t, a, b, (int32_t)rank, id);
}

/* ---- lines ---- */

/* The next line of TEXT at *AT, without its end. */
static bool
next_line(const char *text, size_t n, size_t *at, const char **line, size_t *n_line)
{
    if (*at >= n)
        return false;
    const char *end = memchr(text + *at, '\n', n - *at);
    *line = text + *at;
    *n_line = end ? (size_t)(end - *line) : n - *at;
    *at += *n_line + 1;
    if (*n_line > 0 && (*line)[*n_line - 1] == '\r')
        --*n_line;
    return true;
}

static et_status
read_merges(struct et_tokenizer *t, const char *name, const char *text, size_t n)
{
    const char *line, *space;
    size_t at = 0, n_line;
    int64_t rank = 0;
    for (int64_t number = 1; next_line(text, n, &at, &line, &n_line); number++) {
        char where[256];
        if (n_line == 0 ||
            (number == 1 && n_line >= 8 && memcmp(line, "#version", 8) == 0))
            continue;
        space = memchr(line, ' ', n_line);
        snprintf(where, sizeof where, "%.200s:%" PRId64, name, number);
        if (!space || memchr(space + 1, ' ', n_line - (size_t)(space + 1 - line)))
            return ET_FAIL(t->cx, ET_EFORMAT, "%s: a merge is two texts", where);
        size_t n_left = (size_t)(space - line);
        ET_TRY(eti_read_merge(t, where, rank++, line, n_left, space + 1,
                              n_line - n_left - 1));
    }
    return ET_OK;
}

et_status
eti_read_gpt2(struct et_tokenizer *t, const char *name, const char *vocab,
              size_t n_vocab, const char *merges_name, const char *merges,
              size_t n_merges)
{
    static const char end[] = "<|endoftext|>";
    json_t *json;
    ET_TRY(eti_json(t->cx, name, vocab, n_vocab, &json));
    t->model = ETI_BPE;
    t->byte_level = true;
    t->cuts = true;
    et_status s = eti_read_vocab(t, name, json);
    json_decref(json);
    ET_TRY(s);
    ET_TRY(read_merges(t, merges_name, merges, n_merges));
    struct eti_split *split = &t->split[t->n_splits++];
    *split = (struct eti_split){.keeps_matches = true, .keeps_others = true};
    ET_TRY(eti_pattern(t->cx, name, eti_gpt2_pattern, strlen(eti_gpt2_pattern), false,
                       &split->re));
    t->join[t->n_joins++] = (struct eti_join){.kind = ETI_JOIN_BYTES};
    int32_t id = eti_vocab_find(&t->vocab, end, sizeof end - 1);
    if (id >= 0)
        ET_TRY(eti_tokenizer_add(t, end, sizeof end - 1,
                                 (struct eti_added){.id = id, .special = true}));
    return eti_tokenizer_finish(t, name);
}

/* ---- BERT ---- */

static et_status
add_marks(struct et_tokenizer *t)
{
    static const char *const marks[] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
    int32_t id[5];
    for (int i = 0; i < 5; i++) {
        id[i] = eti_vocab_find(&t->vocab, marks[i], strlen(marks[i]));
        if (id[i] >= 0)
            ET_TRY(eti_tokenizer_add(t, marks[i], strlen(marks[i]),
                                     (struct eti_added){.id = id[i], .special = true}));
    }
    t->unk = id[0];
    if (id[1] >= 0 && id[2] >= 0)
        eti_frame_bert(t, id[1], id[2]);
    return ET_OK;
}

void
eti_frame_bert(struct et_tokenizer *t, int32_t cls, int32_t sep)
{
    const struct eti_frame all[] = {
        {.id = cls},
        {.id = ETI_FRAME_A},
        {.id = sep},
        {.id = ETI_FRAME_B, .type = 1},
        {.id = sep, .type = 1},
    };
    memcpy(t->one, all, 3 * sizeof *all);
    memcpy(t->two, all, sizeof all);
    t->n_one = 3;
    t->n_two = 5;
}

et_status
eti_read_bert(struct et_tokenizer *t, const char *name, const char *text, size_t n,
              const struct eti_bert *how)
{
    const bool lower = !how->said[ETI_BERT_LOWER] || how->is[ETI_BERT_LOWER];
    const char *line;
    size_t at = 0, n_line;
    for (int64_t id = 0; next_line(text, n, &at, &line, &n_line); id++)
        if (eti_vocab_add(&t->vocab, id, line, n_line) != ET_OK)
            return eti_text_name_file(t, name, "a line");
    t->model = ETI_WORDPIECE;
    t->longest_word = 100;
    t->cuts = true;
    ET_TRY(eti_copy(t->cx, "##", 2, &t->bpe.prefix));
    t->norm[t->n_norms++] = (struct eti_norm){
        .kind = ETI_NORM_BERT,
        .clean = true,
        .chinese = !how->said[ETI_BERT_CHINESE] || how->is[ETI_BERT_CHINESE],
        .accents = how->said[ETI_BERT_ACCENTS] ? how->is[ETI_BERT_ACCENTS] : lower,
        .lower = lower,
    };
    t->split[t->n_splits++] = (struct eti_split){.kind = ETI_SPLIT_BERT};
    t->join[t->n_joins] =
        (struct eti_join){.kind = ETI_JOIN_WORDPIECE, .cleanup = true};
    ET_TRY(eti_copy(t->cx, "##", 2, &t->join[t->n_joins++].text));
    t->join[t->n_joins - 1].n = 2;
    ET_TRY(add_marks(t));
    return eti_tokenizer_finish(t, name);
}

/* ---- roles ---- */

const char *const eti_token_role_keys[ET_TOKEN_ROLES] = {
    "unk_token", "bos_token", "eos_token",  "pad_token",
    "cls_token", "sep_token", "mask_token",
};

/* A token is a text, or an object whose content is one. */
static void
read_role(struct et_tokenizer *t, const json_t *json, const char *key,
          enum et_token_role role)
{
    const json_t *token = json_object_get(json, key);
    if (json_is_object(token))
        token = json_object_get(token, "content");
    if (t->role[role] < 0 && json_is_string(token))
        t->role[role] = eti_vocab_find(&t->vocab, json_string_value(token),
                                       json_string_length(token));
}

static void
read_flag(struct eti_bert *how, const json_t *json, int flag)
{
    static const char *const keys[ETI_BERT_FLAGS] = {
        [ETI_BERT_LOWER] = "do_lower_case",
        [ETI_BERT_ACCENTS] = "strip_accents",
        [ETI_BERT_CHINESE] = "tokenize_chinese_chars",
    };
    const json_t *value = json_object_get(json, keys[flag]);
    if (!json_is_boolean(value))
        return;
    how->said[flag] = true;
    how->is[flag] = json_is_true(value);
}

et_status
eti_read_roles(struct et_tokenizer *t, const char *name, const char *text, size_t n,
               struct eti_bert *how)
{
    json_t *json;
    ET_TRY(eti_json(t->cx, name, text, n, &json));
    for (int i = 0; i < ET_TOKEN_ROLES; i++)
        read_role(t, json, eti_token_role_keys[i], (enum et_token_role)i);
    for (int i = 0; how && i < ETI_BERT_FLAGS; i++)
        read_flag(how, json, i);
    t->plain |= eti_json_flag(json, "split_special_tokens", false);
    json_decref(json);
    return ET_OK;
}

const struct eti_role_id eti_role_ids[] = {
    {"bos_token_id", ET_TOKEN_BOS},
    {"eos_token_id", ET_TOKEN_EOS},
    {"pad_token_id", ET_TOKEN_PAD},
    {NULL, ET_TOKEN_UNK},
};

/* ID, or the first of a list of them, becomes the token of ROLE. */
static void
take_id(struct et_tokenizer *t, const json_t *id, enum et_token_role role)
{
    size_t n;
    if (json_is_array(id))
        id = json_array_get(id, 0);
    const json_int_t i = json_is_integer(id) ? json_integer_value(id) : -1;
    if (t->role[role] < 0 && i >= 0 && i < t->vocab.n &&
        eti_vocab_text(&t->vocab, i, &n))
        t->role[role] = (int32_t)i;
}

et_status
eti_read_role_ids(struct et_tokenizer *t, const char *name, const char *text, size_t n)
{
    json_t *json;
    ET_TRY(eti_json(t->cx, name, text, n, &json));
    for (size_t i = 0; eti_role_ids[i].key; i++)
        take_id(t, json_object_get(json, eti_role_ids[i].key), eti_role_ids[i].role);
    json_decref(json);
    return ET_OK;
}
