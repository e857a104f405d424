/* SPDX-License-Identifier: Apache-2.0 */
/* text_source.c: see text_source.h. */
#include "core/data/text_source.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "core/base/thread.h"
#include "core/data/cache.h"
#include "core/data/mds.h"
#include "core/recipe/options.h"
#include "core/text/documents.h"

/* Changes when the same texts become other tokens. */
enum { CACHE_VERSION = 1, WHOLE = 8, TEST_SEED = 17, BYTES = 256 };
#define TEST_FRACTION 0.1

et_status
eti_token_folder_read(struct et_ctx *cx, const char *folder,
                      struct eti_token_folder *out, bool *found)
{
    char path[ETI_PATH_MAX];
    struct eti_bytes b;
    struct stat st;
    json_int_t bytes = 0, size = 0;
    json_t *end = NULL;
    const char *tokenizer = NULL;
    ET_TRY(eti_file_path(cx, path, folder, "tokens.json"));
    *found = stat(path, &st) == 0;
    if (!*found)
        return ET_OK;
    ET_TRY(eti_file_load(cx, path, 1 << 20, &b));
    json_t *json =
        json_loadb((const char *)b.data, (size_t)b.n, JSON_REJECT_DUPLICATES, NULL);
    bool good = json &&
                json_unpack(json, "{s:I, s:I, s:s, s?o}", "bytes", &bytes, "vocab_size",
                            &size, "tokenizer", &tokenizer, "end", &end) == 0 &&
                (bytes == 2 || bytes == 4) && size > 0 && size <= INT32_MAX &&
                strlen(tokenizer) < sizeof out->tokenizer && !strchr(tokenizer, '/');
    if (good) {
        *out = (struct eti_token_folder){.width = (int)bytes, .vocab_size = size};
        out->end = json_is_integer(end) ? (int32_t)json_integer_value(end) : -1;
        snprintf(out->tokenizer, sizeof out->tokenizer, "%s", tokenizer);
    }
    json_decref(json);
    et_free(cx, b.data);
    return good ? ET_OK
                : ET_FAIL(cx, ET_EFORMAT,
                          "%s: does not say bytes (2 or 4), vocab_size and tokenizer",
                          path);
}

/* A name for what TEXT becomes by a tokenizer: of where and how large the files are,
 * when they were written, and of the tokenizer's own bytes. */
static et_status
cache_name(struct et_ctx *cx, const struct et_tokenizer *t,
           const struct eti_shards_config *c, char out[64])
{
    struct et_tokenizer_info info;
    struct eti_documents *d;
    struct eti_bytes b = {0};
    et_tokenizer_get_info(t, &info);
    ET_TRY(eti_documents_open(cx, t, c, &d));
    uint64_t name = eti_documents_hash(d);
    eti_documents_close(&d);
    if (strcmp(info.model, "bytes") != 0)
        ET_TRY(eti_file_load(cx, info.path, ETI_FILE_MAX, &b));
    unsigned seed =
        CACHE_VERSION * 16 + c->document + (c->val_fraction > 0 ? 0 : WHOLE);
    name ^= XXH3_64bits_withSeed(b.data, (size_t)b.n, seed);
    et_free(cx, b.data);
    snprintf(out, 64, "text-%016" PRIx64, name);
    return ET_OK;
}

/* Makes the folder of tokens, unless it is there; another process may be faster. */
static et_status
fill_cache(struct et_ctx *cx, const struct et_tokenizer *t,
           const struct eti_shards_config *c)
{
    struct eti_token_folder known;
    struct eti_shards_progress progress;
    bool found;
    ET_TRY(eti_token_folder_read(cx, c->folder, &known, &found));
    if (found)
        return ET_OK;
    et_status s = eti_shards_write(cx, t, c, &progress);
    if (s == ET_OK)
        return s;
    struct et_error why = *et_error_get(cx);
    et_error_clear(cx);
    ET_TRY(eti_token_folder_read(cx, c->folder, &known, &found));
    return found ? ET_OK : ET_FAIL(cx, s, "%s", why.message);
}

/* Makes tokens of PATH, with a test split unless the split is a folder of its own. */
static et_status
tokenize(struct et_ctx *cx, const char *path, bool apart,
         const struct eti_text_options *text, char folder[ETI_PATH_MAX])
{
    const char *input[] = {path};
    struct eti_shards_config c = {
        .input = input,
        .n_inputs = 1,
        .folder = folder,
        .field = "text",
        .document = (enum eti_document)text->document,
        .val_fraction = apart ? 0 : TEST_FRACTION,
        .seed = TEST_SEED,
        .threads = eti_thread_count(),
    };
    struct et_tokenizer *t;
    char name[64], cache[ETI_PATH_MAX];
    ET_TRY(et_tokenizer_open(cx, text->tokenizer ? text->tokenizer : "bytes", &t));
    et_status s = cache_name(cx, t, &c, name);
    if (s == ET_OK && !eti_cache_folder(cache))
        s = ET_FAIL(cx, ET_EIO, "no folder for a cache: set XDG_CACHE_HOME");
    if (s == ET_OK)
        s = eti_file_path(cx, folder, cache, name);
    if (s == ET_OK)
        s = fill_cache(cx, t, &c);
    et_tokenizer_free(&t);
    return s;
}

/* The tokenizer of FOLDER, whose tokens.json says KNOWN. */
static et_status
open_known(struct et_ctx *cx, const char *folder, const struct eti_token_folder *known,
           struct et_tokenizer **out)
{
    char file[ETI_PATH_MAX];
    if (strcmp(known->tokenizer, "bytes") == 0)
        return et_tokenizer_open(cx, "bytes", out);
    ET_TRY(eti_file_path(cx, file, folder, known->tokenizer));
    return et_tokenizer_open(cx, file, out);
}

/* Where PATH has folders of MDS shards for its splits, *APART, OUT is that of SPLIT. */
static et_status
find_part(struct et_ctx *cx, const char *path, int split, char out[ETI_PATH_MAX],
          bool *apart)
{
    *apart = false;
    for (int i = 0; i <= ET_SPLIT_TEST && !*apart; i++) {
        ET_TRY(eti_mds_folder(cx, path, i, out, apart));
        *apart = *apart && eti_mds_is_folder(cx, out);
    }
    if (*apart)
        return eti_file_path(cx, out, path, split == ET_SPLIT_TEST ? "val" : "train");
    snprintf(out, ETI_PATH_MAX, "%s", path);
    return ET_OK;
}

et_status
eti_text_open(struct et_ctx *cx, struct et_dataset *self, const char *path,
              const struct eti_text_options *text, struct eti_text_found *found)
{
    static const char *const names[] = {"train.bin", "val.bin"};
    static const char *const end_names[] = {"train.ends", "val.ends"};
    char folder[ETI_PATH_MAX], part[ETI_PATH_MAX], file[ETI_PATH_MAX];
    struct eti_token_folder known;
    bool has_tokens, apart = false;
    int split = self->common->split;
    ET_TRY(eti_token_folder_read(cx, path, &known, &has_tokens));
    if (has_tokens && text->tokenizer)
        return ET_FAIL(cx, ET_EINVAL, "%s has tokens, and its own tokenizer", path);
    snprintf(folder, sizeof folder, "%s", path);
    if (!has_tokens) {
        ET_TRY(find_part(cx, path, split, part, &apart));
        ET_TRY(tokenize(cx, part, apart, text, folder));
        ET_TRY(eti_token_folder_read(cx, folder, &known, &has_tokens));
    }
    split = apart ? ET_SPLIT_TRAIN : split;
    ET_TRY(eti_file_path(cx, file, folder, names[split]));
    ET_TRY(eti_token_file_open(cx, self, file, -1, known.width, 0, known.vocab_size,
                               ETI_WHOLE));
    if (!found)
        return ET_OK;
    found->end = known.end;
    return eti_file_path(cx, found->ends, folder, end_names[split]);
}

et_status
eti_text_tokenizer(struct et_ctx *cx, const struct et_dataset *data,
                   struct et_tokenizer **out)
{
    const struct et_option *row =
        eti_option_find(data->type->info.options, "tokenizer");
    const char *path = data->common->path;
    struct eti_token_folder known;
    bool found = false;
    *out = NULL;
    if (row && (row->type == ET_OPT_PATH || row->type == ET_OPT_TEXT)) {
        const char *named = *(char **)eti_option_field(row, data->options);
        if (named)
            return et_tokenizer_open(cx, named, out);
    }
    if (path)
        ET_TRY(eti_token_folder_read(cx, path, &known, &found));
    if (found)
        return open_known(cx, path, &known, out);
    if (data->facts.field[ET_FIELD_X].below == BYTES)
        return et_tokenizer_open(cx, "bytes", out);
    et_status status =
        ET_FAIL(cx, ET_ENOENT, "%s says of no tokenizer what its tokens are",
                data->type->info.name);
    et_hint(cx, "name the tokenizer's file");
    return status;
}
