/* SPDX-License-Identifier: Apache-2.0 */
/* language.c: see language.h. */
#include "core/models/language.h"

et_status
eti_language_size(struct et_ctx *cx, struct et_model *m, int64_t vocab_size,
                  int64_t max_seq_len, int64_t fallback,
                  const struct et_model_facts *facts)
{
    m->num_classes = vocab_size > 0          ? vocab_size
                     : facts->vocab_size > 0 ? facts->vocab_size
                                             : fallback;
    if (facts->seq_len > max_seq_len)
        return ET_FAIL(
            cx, ET_EINVAL,
            "the data have sequences of %lld tokens, the model's max_seq_len "
            "is %lld",
            (long long)facts->seq_len, (long long)max_seq_len);
    if (facts->vocab_size > m->num_classes)
        return ET_FAIL(cx, ET_EINVAL,
                       "the data have %lld tokens, the model's vocab_size is %lld",
                       (long long)facts->vocab_size, (long long)m->num_classes);
    return ET_OK;
}
