/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c: ready-made tokens: 16-bit little-endian integers in a file, or a folder
 * that `etude data tokenize` wrote, whose tokens.json says how they lie. */
#include <sys/stat.h>

#include "core/data/text_source.h"

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

/* A folder's tokens.json says how its tokens lie; without one *WIDTH and *VOCAB_SIZE
 * stay. */
static et_status
read_folder(struct et_ctx *cx, const char *folder, int *width, int64_t *vocab_size)
{
    struct eti_token_folder known;
    bool found;
    ET_TRY(eti_token_folder_read(cx, folder, &known, &found));
    if (!found)
        return ET_OK;
    if (*vocab_size != GPT2_VOCABULARY && *vocab_size < known.vocab_size)
        return ET_FAIL(cx, ET_EINVAL, "%s: vocabulary %lld, and vocab_size is %lld",
                       folder, (long long)known.vocab_size, (long long)*vocab_size);
    *width = known.width;
    *vocab_size = *vocab_size == GPT2_VOCABULARY ? known.vocab_size : *vocab_size;
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
