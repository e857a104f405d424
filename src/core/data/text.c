/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: text files as a stream of a tokenizer's tokens. */
#include "core/data/text_source.h"

struct options {
    struct et_data_options common;
    struct eti_text_options text;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "text file, folder of such or JSONL, or what data tokenize "
                        "wrote; test is a tenth of the documents, or of an only one"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_TOKEN_OPTIONS(struct options),
    ETI_TEXT_OPTIONS(struct options),
    {.name = NULL},
};

static et_status
open_text(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    return eti_text_open(cx, self, o->common.path, &o->text, NULL);
}

static void
describe_text(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    et_facts_stream(out, 0, o->text.tokenizer ? 0 : 256);
}

const struct et_dataset_class et_dataset_text = {
    .info =
        {
            .name = "text",
            .class_name = "Text",
            .summary = "text files through a tokenizer",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_token_file),
    .open = open_text,
    .tokens = eti_token_file_tokens,
    .close = eti_token_file_close,
    .describe = describe_text,
};
