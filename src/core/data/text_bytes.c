/* SPDX-License-Identifier: Apache-2.0 */
/* text_bytes.c: the bytes of any file as tokens 0 .. 255. */
#include "core/data/token_file.h"

struct options {
    struct et_data_options common;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "file; train is its first nine tenths, test the rest"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_TOKEN_OPTIONS(struct options),
    {.name = NULL},
};

static et_status
open_text_bytes(struct et_ctx *cx, struct et_dataset *self)
{
    return eti_token_file_open(cx, self, self->common->path, -1, 1, 0, 256, ETI_90_10);
}

static void
describe_text_bytes(const void *options, struct et_data_facts *out)
{
    (void)options;
    et_facts_stream(out, 0, 256);
}

const struct et_dataset_class et_dataset_text_bytes = {
    .info =
        {
            .name = "text_bytes",
            .class_name = "TextBytes",
            .summary = "the bytes of a file, a vocabulary of 256",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_token_file),
    .open = open_text_bytes,
    .tokens = eti_token_file_tokens,
    .close = eti_token_file_close,
    .describe = describe_text_bytes,
};
