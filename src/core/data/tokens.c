/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c: tokens that another program made: 16-bit little-endian integers in a
 * file. */
#include <sys/stat.h>

#include "core/data/token_file.h"

struct options {
    struct et_data_options common;
    int64_t vocab_size;
    int64_t header;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(
        struct options, NULL, ET_OPT_REQUIRED,
        "file, of which test is the last tenth, or folder with train.bin "
        "and val.bin"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_TOKEN_OPTIONS(struct options),
    {
        .name = "vocab_size",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, vocab_size),
        .def = "50257",
        .min = 2,
        .max = 65536,
        .unit = "tokens",
        .help = "all tokens are below it; 50257 is GPT-2's",
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

static et_status
open_tokens(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    const char *path = o->common.path;
    enum eti_token_split split = ETI_90_10;
    char inside[ETI_PATH_MAX];
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        static const char *const names[] = {"train.bin", "val.bin"};
        ET_TRY(eti_file_path(cx, inside, path, names[o->common.split]));
        path = inside;
        split = ETI_WHOLE;
    }
    return eti_token_file_open(cx, self, path, -1, 2, o->header, o->vocab_size, split);
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
