/* SPDX-License-Identifier: Apache-2.0 */
/* packing.h: several texts in one sequence of a batch.
 *
 * A sequence is made of pieces: whole texts, or parts of those that are longer than a
 * sequence. The target of a token is the next one of its text; the last of a text has
 * none, so that no loss goes from one text to another. Where attention is to stay
 * within a text the sequence has two fields more: document, which piece a token is of,
 * from 1, and position, its place in the piece, from 0. */
#ifndef ETI_DATA_PACKING_H
#define ETI_DATA_PACKING_H

#include "etude/data.h"

/* N tokens from BEGIN on of wherever the data set has them. */
struct eti_piece {
    int64_t begin;
    int32_t n;
    bool goes_on; /* the next token is of the same text */
};

/* Which pieces each sequence has. */
struct eti_packed {
    struct eti_piece *piece; /* by sequence */
    int64_t n_pieces;
    int64_t *first; /* [n_rows + 1]: the first piece of each */
    int64_t n_rows;
};

/* Packs the N pieces, none longer than T, into sequences of T tokens by best-fit
 * decreasing: the longest first, each where it leaves the least room. It depends on
 * their lengths and order alone. PIECE, of et_alloc, is OUT's from now on, also after
 * an error; free with eti_packed_release.
 * Source: Ding et al., "Fewer truncations improve language modeling", 2024
 * (2404.10830), section 3.2. */
ET_NODISCARD et_status eti_pack_best_fit(struct et_ctx *cx, struct eti_piece *piece,
                                         int64_t n, int64_t T, struct eti_packed *out);
void eti_packed_release(struct et_ctx *cx, struct eti_packed *p);
/* Tokens of sequence AT. */
int64_t eti_packed_length(const struct eti_packed *p, int64_t at);

/* Facts of N_ROWS such sequences of at most T tokens below VOCAB_SIZE; PAD fills what
 * is shorter. */
void eti_packed_facts(struct et_data_facts *f, int64_t n_rows, int64_t T,
                      int64_t vocab_size, int32_t pad, bool with_documents);

/* A sequence that is being written, in the rooms of a sample. */
struct eti_packed_row {
    struct et_sample *sample;
    int32_t *token, *target;
    int32_t *document, *position; /* NULL: the data have no such fields */
    int64_t n;                    /* tokens written */
    int32_t n_pieces;
};
ET_NODISCARD et_status eti_packed_row_begin(struct eti_packed_row *row,
                                            struct et_sample *sample, int64_t T,
                                            struct et_error *why);
/* The next N tokens, which the caller has put at ROW->token + ROW->n with their targets
 * beside, are a piece. */
void eti_packed_row_add(struct eti_packed_row *row, int64_t n);
void eti_packed_row_end(struct eti_packed_row *row);

#endif
