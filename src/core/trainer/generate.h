/* SPDX-License-Identifier: Apache-2.0 */
/* generate.h: text from a language model, token by token.
 *
 * Each next token is drawn from the softmax of the model's scores divided by the
 * temperature, among the TOP_K greatest, and of these among the fewest whose
 * probabilities sum up to TOP_P (Holtzman et al., "The curious case of neural text
 * degeneration", 2020, 1904.09751). What is drawn is a function of the seed and of how
 * many tokens were drawn before. */
#ifndef ETI_TRAINER_GENERATE_H
#define ETI_TRAINER_GENERATE_H

#include "etude/graph.h"
#include "etude/model.h"
#include "etude/tokenizer.h"

struct eti_generate {
    int64_t length;     /* tokens to add, at most */
    double temperature; /* 0: always the greatest score */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint32_t seed;
    bool recompute; /* the whole text goes through the model for each token: slower, and
                       what the quick way is compared with */
};

struct eti_generator;
/* For MODEL, bound on DEV, of which a sequence has T tokens: more than that it does not
 * look back. Both are borrowed. ENOTSUP: it is no language model. */
ET_NODISCARD et_status eti_generator_new(struct et_ctx *cx, struct et_device *dev,
                                         struct et_model *model, int64_t T,
                                         struct eti_generator **out);
/* What its evaluations have cost so far; borrowed. */
const struct et_graph *eti_generator_graph(const struct eti_generator *generator);
void eti_generator_free(struct eti_generator **generator);
/* Adds up to HOW->length tokens to TOKEN [N + HOW->length], of which the first N, at
 * least one, are the prompt. It ends behind the token END, unless that is below 0.
 * *MADE: how many were added. */
ET_NODISCARD et_status eti_generator_run(struct eti_generator *generator,
                                         const struct eti_generate *how, int32_t end,
                                         int32_t *token, int64_t n, int64_t *made);

/* What was written, UTF-8: bytes that are none became U+FFFD, and the beginning of a
 * character that has no end was left out. */
struct eti_generated {
    char *text; /* the prompt, as it was given, and what follows; et_free */
    size_t n;
    int64_t prompt_tokens, tokens; /* given, and drawn */
    bool ended;                    /* by the token that ends a text */
};
/* The same with the tokens of T, whose encoder is E: PROMPT has N bytes, and the text
 * ends where the token that ends texts is drawn. ENOTSUP: the model has fewer tokens
 * than T. */
ET_NODISCARD et_status eti_generator_text(struct eti_generator *generator,
                                          const struct eti_generate *how,
                                          const struct et_tokenizer *t,
                                          struct et_encoder *e, const char *prompt,
                                          size_t n, struct eti_generated *out);

#endif
