/* SPDX-License-Identifier: Apache-2.0 */
/* write_pieces.h: a SentencePiece model as Hugging Face's tokenizer.json. */
#ifndef ETI_TEXT_WRITE_PIECES_H
#define ETI_TEXT_WRITE_PIECES_H

#include <jansson.h>

#include "core/text/impl.h"

/* The tokenizer.json of T, which was read from a SentencePiece model, that gives the
 * ids that SentencePiece does as far as tokenizers can; reports a warning for what it
 * cannot. *OUT ends with json_decref. */
ET_NODISCARD et_status eti_pieces_json(struct et_ctx *cx, const struct et_tokenizer *t,
                                       json_t **out);

#endif
