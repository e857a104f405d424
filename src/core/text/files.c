/* SPDX-License-Identifier: Apache-2.0 */
/* files.c: see files.h. Source: transformers, tokenization_utils_base.py, for what
 * tokenizer_config.json holds; tokenizers, for tokenizer.json. */
#include "core/text/files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text/impl.h"
#include "core/text/role_ids.h"

/* ---- which files ---- */

static et_status
add(struct et_ctx *cx, struct eti_tokenizer_files *f, const char *from, const char *to)
{
    snprintf(f->v[f->n].from, ETI_PATH_MAX, "%s", from);
    f->v[f->n++].to = to;
    return strlen(from) < ETI_PATH_MAX
               ? ET_OK
               : ET_FAIL(cx, ET_EINVAL, "%.64s...: the path is too long", from);
}

/* The file TO beside PATH, where there is one. */
static et_status
add_beside(struct et_ctx *cx, struct eti_tokenizer_files *f, const char *path,
           const char *to)
{
    const char *slash = strrchr(path, '/');
    char folder[ETI_PATH_MAX], from[ETI_PATH_MAX];
    struct stat st;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    ET_TRY(eti_file_path(cx, from, folder, to));
    return stat(from, &st) == 0 ? add(cx, f, from, to) : ET_OK;
}

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

et_status
eti_tokenizer_files(struct et_ctx *cx, const struct et_tokenizer *t,
                    struct eti_tokenizer_files *out)
{
    static const char *const beside[] = {"special_tokens_map.json",
                                         "tokenizer_config.json"};
    struct et_tokenizer_info info;
    et_tokenizer_get_info(t, &info);
    *out = (struct eti_tokenizer_files){.name = "bytes"};
    if (strcmp(info.model, "bytes") == 0)
        return ET_OK;
    bool pair =
        ends_with(info.path, "vocab.json") || ends_with(info.path, "merges.txt");
    out->name = pair                             ? "vocab.json"
                : ends_with(info.path, ".json")  ? "tokenizer.json"
                : ends_with(info.path, ".model") ? "tokenizer.model"
                                                 : "vocab.txt";
    if (pair) {
        ET_TRY(add_beside(cx, out, info.path, "vocab.json"));
        ET_TRY(add_beside(cx, out, info.path, "merges.txt"));
    } else {
        ET_TRY(add(cx, out, info.path, out->name));
    }
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        ET_TRY(add_beside(cx, out, info.path, beside[i]));
    return ET_OK;
}

bool
eti_tokenizer_has_file(const struct eti_tokenizer_files *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->v[i].to, name) == 0)
            return true;
    return false;
}

/* ---- files that are made ---- */

json_t *
eti_tokenizer_bytes_json(const struct et_tokenizer *t)
{
    struct et_tokenizer_info info;
    json_t *vocab = json_object();
    et_tokenizer_get_info(t, &info);
    for (int32_t id = 0; id < info.vocab_size; id++) {
        size_t n;
        char text[4];
        const char *byte = et_tokenizer_token(t, id, &n);
        if (!byte || n != 1)
            continue;
        n = eti_byte_char((uint8_t)*byte, text);
        json_object_setn_new(vocab, text, n, json_integer(id));
    }
    return json_pack("{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:b, s:b, s:b}, s:n, "
                     "s:{s:s, s:b, s:b, s:b}, "
                     "s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:[]}}",
                     "version", "1.0", "truncation", "padding", "added_tokens",
                     "normalizer", "pre_tokenizer", "type", "ByteLevel",
                     "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0,
                     "post_processor", "decoder", "type", "ByteLevel",
                     "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "model",
                     "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix",
                     "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
                     "ignore_merges", 0, "vocab", vocab, "merges");
}

/* Which of transformers' classes reads the file NAME. */
static const char *
class_of(const char *name)
{
    return strcmp(name, "vocab.json") == 0  ? "GPT2Tokenizer"
           : strcmp(name, "vocab.txt") == 0 ? "BertTokenizer"
                                            : "PreTrainedTokenizerFast";
}

json_t *
eti_tokenizer_config_json(const struct et_tokenizer *t, const char *name,
                          int64_t max_length, bool pairs)
{
    struct et_tokenizer_info info;
    json_t *config =
        json_pack("{s:s, s:I, s:[s,s], s:b}", "tokenizer_class", class_of(name),
                  "model_max_length", (json_int_t)max_length, "model_input_names",
                  "input_ids", "attention_mask", "clean_up_tokenization_spaces", 0);
    int failed = 0;
    et_tokenizer_get_info(t, &info);
    for (int role = 0; config && role < ET_TOKEN_ROLES; role++) {
        size_t n;
        const char *text =
            info.role[role] < 0 ? NULL : et_tokenizer_token(t, info.role[role], &n);
        if (text)
            failed |= json_object_set_new(config, eti_token_role_keys[role],
                                          json_stringn(text, n));
    }
    if (config && pairs)
        failed |= json_array_insert_new(json_object_get(config, "model_input_names"), 1,
                                        json_string("token_type_ids"));
    if (config && strcmp(name, "tokenizer.model") == 0)
        failed |= json_object_set_new(config, "split_special_tokens", json_true());
    if (config && strcmp(name, "vocab.txt") == 0)
        failed |= json_object_set_new(config, "do_lower_case",
                                      json_boolean(t->n_norms && t->norm[0].lower));
    if (failed) {
        json_decref(config);
        return NULL;
    }
    return config;
}
