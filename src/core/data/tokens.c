/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c: ready-made tokens: 16-bit little-endian integers in a file, or a folder
 * that `etude data tokenize` wrote, whose tokens.json says how they lie. */
#include <jansson.h>
#include <sys/stat.h>

#include "core/data/token_file.h"

enum { GPT2_VOCABULARY = 50257 };

struct options {
    struct et_data_options common;
    int64_t vocab_size;
    int64_t header;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(
        struct options, NULL, ET_OPT_REQUIRED,
        "file, of which test is the last tenth, or folder with train.bin "
        "and val.bin, such as data tokenize writes"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_TOKEN_OPTIONS(struct options),
    {
        .name = "vocab_size",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, vocab_size),
        .def = "50257",
        .min = 2,
        .max = INT32_MAX,
        .unit = "tokens",
        .help = "all tokens are below it; 50257 is GPT-2's, or what tokens.json says",
    },
    {
        .name = "header",
        .type = ET_OPT_SIZE,
        .offset = offsetof(struct options, header),
        .def = "0",
        .max = 1 << 20,
        .unit = "bytes",
        .help = "to skip at the beginning of the file",
    },
    {.name = NULL},
};

/* What a folder's tokens.json says; without one *WIDTH and *VOCAB_SIZE stay. */
static et_status
read_folder(struct et_ctx *cx, const char *folder, int *width, int64_t *vocab_size)
{
    char path[ETI_PATH_MAX];
    struct eti_bytes b;
    struct stat st;
    json_int_t bytes = 0, size = 0;
    ET_TRY(eti_file_path(cx, path, folder, "tokens.json"));
    if (stat(path, &st) != 0)
        return ET_OK;
    ET_TRY(eti_file_load(cx, path, 1 << 20, &b));
    json_t *json =
        json_loadb((const char *)b.data, (size_t)b.n, JSON_REJECT_DUPLICATES, NULL);
    bool good =
        json &&
        json_unpack(json, "{s:I, s:I}", "bytes", &bytes, "vocab_size", &size) == 0 &&
        (bytes == 2 || bytes == 4) && size > 0 && size <= INT32_MAX;
    json_decref(json);
    et_free(cx, b.data);
    if (!good)
        return ET_FAIL(cx, ET_EFORMAT, "%s: does not say bytes (2 or 4) and vocab_size",
                       path);
    if (*vocab_size != GPT2_VOCABULARY && *vocab_size < size)
        return ET_FAIL(cx, ET_EINVAL, "%s: vocabulary %lld, and vocab_size is %lld",
                       path, (long long)size, (long long)*vocab_size);
    *width = (int)bytes;
    *vocab_size = *vocab_size == GPT2_VOCABULARY ? size : *vocab_size;
    return ET_OK;
}

static et_status
open_tokens(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    const char *path = o->common.path;
    enum eti_token_split split = ETI_90_10;
    char inside[ETI_PATH_MAX];
    int64_t vocab_size = o->vocab_size;
    int width = 2;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        static const char *const names[] = {"train.bin", "val.bin"};
        ET_TRY(read_folder(cx, path, &width, &vocab_size));
        ET_TRY(eti_file_path(cx, inside, path, names[o->common.split]));
        path = inside;
        split = ETI_WHOLE;
    }
    return eti_token_file_open(cx, self, path, -1, width, o->header, vocab_size, split);
}

static void
describe_tokens(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    et_facts_stream(out, 0, o->vocab_size);
}

const struct et_dataset_class et_dataset_tokens = {
    .info =
        {
            .name = "tokens",
            .class_name = "Tokens",
            .summary = "ready-made tokens, 16-bit little-endian",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_token_file),
    .open = open_tokens,
    .tokens = eti_token_file_tokens,
    .close = eti_token_file_close,
    .describe = describe_tokens,
};
