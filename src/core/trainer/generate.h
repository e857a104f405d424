/* SPDX-License-Identifier: Apache-2.0 */
/* generate.h: text from a language model, token by token.
 *
 * Each next token is drawn from the softmax of the model's scores divided by the
 * temperature, among the TOP_K greatest. What is drawn is a function of the seed and of
 * the token's place. */
#ifndef ETI_TRAINER_GENERATE_H
#define ETI_TRAINER_GENERATE_H

#include "etude/graph.h"
#include "etude/model.h"

struct eti_generate {
    int64_t length;     /* tokens to add */
    double temperature; /* 0: always the greatest score */
    int64_t top_k;      /* 0: all */
    uint32_t seed;
};

struct eti_generator;
/* For MODEL, bound on DEV, of which a sequence has T tokens: more than that it does not
 * look back. Both are borrowed. ENOTSUP: it is no language model. */
ET_NODISCARD et_status eti_generator_new(struct et_ctx *cx, struct et_device *dev,
                                         struct et_model *model, int64_t T,
                                         struct eti_generator **out);
void eti_generator_free(struct eti_generator **generator);
/* Adds HOW->length tokens to TOKEN [N + HOW->length], of which the first N, at least
 * one, are the prompt. */
ET_NODISCARD et_status eti_generator_run(struct eti_generator *generator,
                                         const struct eti_generate *how, int32_t *token,
                                         int64_t n);
/* The same with bytes as tokens, for a model with 256 of them: adds to TEXT [N + length
 * + 1], which then ends with a zero. ENOTSUP for another model. */
ET_NODISCARD et_status eti_generator_bytes(struct eti_generator *generator,
                                           const struct eti_generate *how, char *text,
                                           int64_t n);

#endif
