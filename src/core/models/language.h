/* SPDX-License-Identifier: Apache-2.0 */
/* language.h: what models of text share: rows of their tables, and their vocabulary. */
#ifndef ETI_MODELS_LANGUAGE_H
#define ETI_MODELS_LANGUAGE_H

#include "etude/model.h"

/* Settles M->num_classes: the recipe's VOCAB_SIZE, else the data's, else FALLBACK.
 * EINVAL when the data have more tokens, or longer sequences than MAX_SEQ_LEN. */
ET_NODISCARD et_status eti_language_size(struct et_ctx *cx, struct et_model *m,
                                         int64_t vocab_size, int64_t max_seq_len,
                                         int64_t fallback,
                                         const struct et_model_facts *facts);

/* Does M read tokens, not images or vectors? */
static inline bool
eti_reads_tokens(const struct et_model *m)
{
    return m->type->task == ET_TASK_LANGUAGE || m->type->reads_tokens;
}

/* clang-format off */
#define ETI_MODEL_COUNT(tag, field, deflt, text)                                       \
    {.name = #field, .type = ET_OPT_INT, .offset = offsetof(struct tag, field),        \
     .def = (deflt), .min = 1, .max = 1 << 24, .help = (text)}
#define ETI_MODEL_VOCABULARY(tag, fallback)                                            \
    {.name = "vocab_size", .type = ET_OPT_INT,                                         \
     .offset = offsetof(struct tag, vocab_size), .min = 1, .max = 1 << 24,             \
     .flags = ET_OPT_OPTIONAL, .unit = "tokens",                                       \
     .help = "tokens known; unset: as the data have, else " fallback}
#define ETI_MODEL_DROPOUT(tag, deflt)                                                  \
    {.name = "dropout", .type = ET_OPT_FLOAT, .offset = offsetof(struct tag, dropout), \
     .def = (deflt), .min = 0, .max = 1, .flags = ET_OPT_MAX_OPEN,                     \
     .help = "probability of zero behind embeddings and branches"}
#define ETI_MODEL_ATTENTION_DROPOUT(tag)                                               \
    {.name = "attention_dropout", .type = ET_OPT_FLOAT,                                \
     .offset = offsetof(struct tag, attention_dropout), .def = "0", .min = 0,          \
     .max = 1, .flags = ET_OPT_MAX_OPEN | ET_OPT_LATER,                                \
     .help = "probability of zero of what attention gives a token"}
/* clang-format on */

#endif
