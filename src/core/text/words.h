/* SPDX-License-Identifier: Apache-2.0 */
/* words.h: the cache of words. */
#ifndef ETI_TEXT_WORDS_H
#define ETI_TEXT_WORDS_H

#include "core/text/impl.h"

/* Gives E a cache, where its tokenizer has words that come again. */
ET_NODISCARD et_status eti_cache_new(struct et_encoder *e);

#endif
