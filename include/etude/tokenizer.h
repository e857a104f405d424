/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.h: text to the numbers of tokens, and back.
 *
 * A tokenizer is read from files that other programs wrote. Once open it does not
 * change, and any number of threads may use it at once, each through an encoder of its
 * own, which has the room that encoding needs:
 *
 *     struct et_tokenizer *t;
 *     struct et_encoder *e;
 *     struct et_encoding a;
 *     struct et_text b;
 *     ET_TRY(et_tokenizer_open(cx, "gpt2/tokenizer.json", &t));
 *     ET_TRY(et_encoder_new(cx, t, &e));
 *     ET_TRY(et_encode(e, text, n, 0, &a));
 *     ET_TRY(et_decode(e, a.id, a.n, 0, &b));
 *
 * What is read, by what the file is:
 *     "bytes"              no file: the 256 bytes are the tokens
 *     *.json               Hugging Face's tokenizer.json: models BPE, WordPiece and
 *                          Unigram; what else it asks for and is not known here is
 *                          refused by name
 *     vocab.json           GPT-2's byte-level BPE, with merges.txt beside it
 *     merges.txt           the same, with vocab.json beside it
 *     *.txt                BERT's WordPiece, a token a line; tokenizer_config.json
 *                          beside it may say that it is not uncased
 *     *.model              SentencePiece's: unigram and BPE
 *     a folder             that has one of these, looked for in this order
 *
 * Text that is not UTF-8: where the tokens are bytes (is_exact) it is kept as it is,
 * and each run of such bytes is a word of its own; elsewhere it becomes U+FFFD, as
 * Python's bytes.decode(errors="replace") has it. */
#ifndef ETUDE_TOKENIZER_H
#define ETUDE_TOKENIZER_H

#include <stdint.h>

#include "etude/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_tokenizer;

/* Reads PATH, as above; CX is for this call and et_tokenizer_free. ENOENT, EIO: the
 * file; EFORMAT: what is in it; ENOTSUP: what it asks for, by name. */
ET_NODISCARD et_status et_tokenizer_open(struct et_ctx *cx, const char *path,
                                         struct et_tokenizer **out);
/* Its encoders must be gone. *T becomes NULL; NULL within is allowed. */
void et_tokenizer_free(struct et_tokenizer **t);

/* What a token is for, where the files say so or its text does ("[MASK]"). */
enum et_token_role {
    ET_TOKEN_UNK = 0,  /* text that no token stands for */
    ET_TOKEN_BOS = 1,  /* begins a text */
    ET_TOKEN_EOS = 2,  /* ends a text: "<|endoftext|>", "</s>" */
    ET_TOKEN_PAD = 3,  /* fills a row of a batch */
    ET_TOKEN_CLS = 4,  /* begins a text that is to be classified */
    ET_TOKEN_SEP = 5,  /* ends each of two texts */
    ET_TOKEN_MASK = 6, /* stands for a token that is to be guessed */
    ET_TOKEN_ROLES = 7
};

struct et_tokenizer_info {
    const char *path;             /* that it was read from */
    const char *model;            /* "bytes", "bpe", "wordpiece", "unigram" */
    int64_t vocab_size;           /* all ids are below it */
    bool is_exact;                /* decoding gives the very bytes back */
    int32_t role[ET_TOKEN_ROLES]; /* ids; -1: it has none */
};
void et_tokenizer_get_info(const struct et_tokenizer *t, struct et_tokenizer_info *out);

/* The text of token ID as its file has it; *N: its bytes. NULL where ID is of none. */
const char *et_tokenizer_token(const struct et_tokenizer *t, int32_t id, size_t *n);
/* The number of the token that has this text; -1 where no token has it. */
int32_t et_tokenizer_id(const struct et_tokenizer *t, const char *text, size_t n);
/* Is it a token that marks something, such as "[CLS]", and stands for no text? */
bool et_tokenizer_is_special(const struct et_tokenizer *t, int32_t id);

/* Where TEXT, of N bytes, may be cut so that the tokens of both parts are those of the
 * whole: the first such place at or behind FROM, N where none is known. For long texts
 * that several threads share. */
size_t et_tokenizer_cut(const struct et_tokenizer *t, const char *text, size_t n,
                        size_t from);

/* ---- one thread's use of it ---- */

struct et_encoder;
ET_NODISCARD et_status et_encoder_new(struct et_ctx *cx, const struct et_tokenizer *t,
                                      struct et_encoder **out);
void et_encoder_free(struct et_encoder **e);

enum {
    /* What the files put around a text is put there: "[CLS]", "[SEP]". */
    ET_ENCODE_SPECIAL = 1 << 0,
    /* Special tokens that TEXT spells, such as "<|endoftext|>", are text like any
     * other: for what strangers wrote. */
    ET_ENCODE_PLAIN = 1 << 1,
    /* Decoding leaves special tokens out. */
    ET_DECODE_SKIP_SPECIAL = 1 << 2,
};

/* Borrowed until the encoder is used again. */
struct et_encoding {
    const int32_t *id;
    const uint8_t *type; /* of et_encode_pair: 0, or 1 for what belongs to B */
    int64_t n;
};
/* FLAGS: of ET_ENCODE_*. ENOMEM; EFORMAT: a pattern of the tokenizer gave up. */
ET_NODISCARD et_status et_encode(struct et_encoder *e, const char *text, size_t n,
                                 unsigned flags, struct et_encoding *out);
/* Two texts, and what the files put around them. B may be NULL: A alone. Where LIMIT
 * is above 0, tokens are taken from the end of the longer text until that many are left
 * in all (Hugging Face's truncation longest_first). */
ET_NODISCARD et_status et_encode_pair(struct et_encoder *e, const char *a, size_t n_a,
                                      const char *b, size_t n_b, int64_t limit,
                                      unsigned flags, struct et_encoding *out);

/* Borrowed until the encoder is used again; ends with a 0 that N leaves out. */
struct et_text {
    const char *text;
    size_t n;
};
/* EINVAL: an id of no token. */
ET_NODISCARD et_status et_decode(struct et_encoder *e, const int32_t *id, int64_t n,
                                 unsigned flags, struct et_text *out);

#ifdef __cplusplus
}
#endif
#endif
