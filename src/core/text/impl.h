/* SPDX-License-Identifier: Apache-2.0 */
/* impl.h: a tokenizer from inside: the steps that a text goes through.
 *
 *     text -> added tokens are cut out -> normalizers -> added tokens again -> splits
 *          -> words -> the model -> ids -> what stands around a text
 *
 * Letters and names are those of Hugging Face's tokenizer.json, whose steps these are;
 * the other files are read as the steps that they mean. */
#ifndef ETI_TEXT_IMPL_H
#define ETI_TEXT_IMPL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/text/vocab.h"
#include "etude/tokenizer.h"

enum { ETI_MAX_STAGES = 16 }; /* of a kind */

/* Text in an encoder that grows. */
struct eti_buf {
    char *text;
    int64_t n, room;
};

/* ---- steps ---- */

enum eti_norm_kind {
    ETI_NORM_BERT,
    ETI_NORM_FORM, /* NFC, NFD, NFKC, NFKD */
    ETI_NORM_LOWER,
    ETI_NORM_STRIP_ACCENTS,
    ETI_NORM_STRIP,
    ETI_NORM_PREPEND,
    ETI_NORM_REPLACE,
    ETI_NORM_PIECES,      /* SentencePiece's */
    ETI_NORM_PRECOMPILED, /* its table alone, as tokenizer.json has it */
};
struct eti_norm {
    enum eti_norm_kind kind;
    bool clean, chinese, accents, lower; /* BERT; ACCENTS are stripped */
    bool left, right;                    /* STRIP */
    int form;                            /* FORM: utf8proc's options */
    pcre2_code *re;                      /* REPLACE */
    char *text;                          /* REPLACE: by; PREPEND: this; owned */
    size_t n;
    struct eti_charsmap *map; /* PIECES, PRECOMPILED; owned */
};

enum eti_split_kind {
    ETI_SPLIT_PATTERN,
    ETI_SPLIT_BERT,      /* at spaces, and around each punctuation */
    ETI_SPLIT_PREFIX,    /* puts a space before, unless there is one */
    ETI_SPLIT_METASPACE, /* spaces become TEXT, and each begins a word */
};
enum eti_prepend { ETI_PREPEND_NEVER, ETI_PREPEND_FIRST, ETI_PREPEND_ALWAYS };
struct eti_split {
    enum eti_split_kind kind;
    pcre2_code *re;
    bool keeps_matches, keeps_others; /* PATTERN: as words */
    enum eti_prepend prepend;         /* METASPACE */
    bool splits;                      /* METASPACE */
    char *text;                       /* METASPACE: owned */
    size_t n;
};

enum eti_join_kind {
    ETI_JOIN_BYTES, /* byte-level: bytes end to end */
    ETI_JOIN_WORDPIECE,
    ETI_JOIN_METASPACE,
    ETI_JOIN_SUFFIX, /* TEXT at the end of a word becomes a space */
    ETI_JOIN_REPLACE,
    ETI_JOIN_FALLBACK, /* "<0x0A>" becomes the byte */
    ETI_JOIN_FUSE,
    ETI_JOIN_STRIP,
    ETI_JOIN_PIECES, /* SentencePiece's */
};
struct eti_join {
    enum eti_join_kind kind;
    char *text, *by; /* owned */
    size_t n, n_by;
    bool cleanup; /* WORDPIECE; PIECES: no space begins a text */
    bool prefix;  /* METASPACE, PIECES: the first space is not the text's */
    int64_t start, stop;
};

/* What is put around texts: a list of ids and places of texts. */
struct eti_frame {
    int32_t id; /* -1: text A, -2: text B */
    uint8_t type;
};
enum { ETI_FRAME_A = -1, ETI_FRAME_B = -2, ETI_MAX_FRAME = 16 };

/* ---- models ---- */

struct eti_pair {
    uint64_t key; /* left << 32 | right, plus 1; 0: free */
    int32_t rank; /* the lowest goes first */
    int32_t id;   /* of both together */
};
struct eti_bpe {
    struct eti_pair *pair; /* by hash of the key */
    uint64_t mask;
    int64_t n_pairs;
    int32_t byte_id[256];   /* byte-level: of each byte; else of ASCII; -1: none */
    struct eti_vocab extra; /* characters that only pieces of more than one have: ids
                               from the vocabulary's size on */
    struct eti_trie whole;  /* tokens that are never merged; else empty */
    bool whole_words;       /* a word that is a token is that token */
    bool fuse_unk;
    char *prefix, *suffix; /* of what begins no word; of what ends one; or NULL */
};

struct eti_unigram {
    struct eti_trie trie;
    double *score; /* by id */
    double worst;
    bool fuse_unk;
    bool in_float; /* sums are rounded as SentencePiece's */
};

enum eti_text_model { ETI_BYTES, ETI_BPE, ETI_WORDPIECE, ETI_UNIGRAM };

struct eti_added {
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
};

struct et_tokenizer {
    struct et_ctx *cx;
    char *path;
    enum eti_text_model model;
    struct eti_vocab vocab; /* texts as files have them, added tokens too */
    struct eti_vocab bytes; /* byte-level: what each decodes to */
    bool byte_level;        /* words are bytes, each a symbol */
    bool has_fallback;      /* FALLBACK is used for what is unknown */
    int32_t fallback[256];  /* ids of "<0x00>" ..; -1: none */
    int32_t unk;            /* -1: none */
    int32_t role[ET_TOKEN_ROLES];

    struct eti_norm norm[ETI_MAX_STAGES];
    int n_norms;
    struct eti_split split[ETI_MAX_STAGES];
    int n_splits;
    struct eti_join join[ETI_MAX_STAGES];
    int n_joins;
    bool spaced; /* without a join: tokens with spaces between */
    struct eti_frame one[ETI_MAX_FRAME], two[ETI_MAX_FRAME];
    int n_one, n_two;

    struct eti_added *added; /* by no order */
    int64_t n_added, added_room;
    struct eti_trie raw, normal; /* added tokens, as places in ADDED */
    uint8_t *special;            /* by id: 1 = marks something */

    struct eti_bpe bpe;
    struct eti_trie first, rest; /* WordPiece: what begins a word, what goes on */
    int64_t longest_word;        /* WordPiece: in characters */
    struct eti_unigram unigram;
    bool cuts;         /* a space between two letters of ASCII is a place to cut at */
    bool piece_decode; /* as SentencePiece joins */
    bool plain;        /* special tokens that texts spell are text */
};

/* ---- an encoder ---- */

struct eti_symbol {
    int32_t id, rank, merged;
    uint32_t prev, next; /* of a long word */
};
struct eti_entry;  /* of a heap, encode_bpe.c */
struct eti_way;    /* of a lattice, unigram.c */
struct eti_cached; /* of the cache, words.c */

struct et_encoder {
    struct et_ctx *cx;
    const struct et_tokenizer *t;
    pcre2_match_data *match;
    int32_t *id;
    int64_t n, id_room;
    int32_t *second; /* et_encode_pair: B's, then all */
    int64_t second_room;
    uint8_t *type;
    int64_t type_room;
    struct eti_buf clean, norm[2], stage[ETI_MAX_STAGES], decoded[2];
    struct eti_symbol *symbol;
    int64_t symbol_room;
    struct eti_entry *heap;
    int64_t n_heap, heap_room;
    struct eti_way *best;
    int64_t best_room;
    int64_t *end; /* decoding: where each token ends, of DECODED */
    int64_t end_room;
    struct eti_cached *cache;
    bool first; /* the text's beginning is being split, or joined */
    bool plain; /* special tokens are text */
};

ET_NODISCARD et_status eti_put_id(struct et_encoder *e, int32_t id);
ET_NODISCARD et_status eti_buf_put(struct et_encoder *e, struct eti_buf *b,
                                   const char *text, size_t n);
ET_NODISCARD et_status eti_buf_put_char(struct et_encoder *e, struct eti_buf *b,
                                        uint32_t c);

/* Runs the normalizers over TEXT; *OUT points into E's buffers, or is TEXT. */
ET_NODISCARD et_status eti_normalize(struct et_encoder *e, const char *text, size_t n,
                                     const char **out, size_t *n_out);
/* Splits normalised TEXT into words, and puts the ids of each. */
ET_NODISCARD et_status eti_split(struct et_encoder *e, int stage, const char *text,
                                 size_t n);
/* One word's ids. */
ET_NODISCARD et_status eti_word(struct et_encoder *e, const char *text, size_t n);
ET_NODISCARD et_status eti_bpe_word(struct et_encoder *e, const char *text, size_t n);
ET_NODISCARD et_status eti_wordpiece_word(struct et_encoder *e, const char *text,
                                          size_t n);
ET_NODISCARD et_status eti_unigram_word(struct et_encoder *e, const char *text,
                                        size_t n);
/* Puts ids of the bytes of TEXT, or the unknown token; *WAS_UNK: the id before is that
 * one, and another joins it where FUSE says so. */
ET_NODISCARD et_status eti_put_unknown(struct et_encoder *e, const char *text, size_t n,
                                       bool fuse, bool *was_unk);

/* SentencePiece's own normalizer. */
ET_NODISCARD et_status eti_charsmap_run(struct et_encoder *e,
                                        const struct eti_charsmap *map,
                                        const char *text, size_t n,
                                        struct eti_buf *out);
void eti_charsmap_free(struct et_ctx *cx, struct eti_charsmap *map);

/* ---- reading ---- */

/* A tokenizer for a reader to fill. */
ET_NODISCARD et_status eti_tokenizer_new(struct et_ctx *cx, const char *path,
                                         struct et_tokenizer **out);

/* Readers fill T, which is zeroed but for cx, path, and -1 for roles and unk. NAME: of
 * the file, for messages. */
ET_NODISCARD et_status eti_read_tokenizer_json(struct et_tokenizer *t, const char *name,
                                               const char *text, size_t n);
ET_NODISCARD et_status eti_read_gpt2(struct et_tokenizer *t, const char *name,
                                     const char *vocab, size_t n_vocab,
                                     const char *merges_name, const char *merges,
                                     size_t n_merges);
/* How BERT's text is made simple, by tokenizer_config.json. */
enum { ETI_BERT_LOWER, ETI_BERT_ACCENTS, ETI_BERT_CHINESE, ETI_BERT_FLAGS };
struct eti_bert {
    bool is[ETI_BERT_FLAGS], said[ETI_BERT_FLAGS];
};
ET_NODISCARD et_status eti_read_bert(struct et_tokenizer *t, const char *name,
                                     const char *text, size_t n,
                                     const struct eti_bert *how);
ET_NODISCARD et_status eti_read_pieces(struct et_tokenizer *t, const char *name,
                                       const char *model, size_t n);
/* Roles by tokenizer_config.json or special_tokens_map.json, where T has none. HOW may
 * be NULL. */
ET_NODISCARD et_status eti_read_roles(struct et_tokenizer *t, const char *name,
                                      const char *text, size_t n, struct eti_bert *how);

/* The same by the ids of generation_config.json or config.json. Ids
 * that no token of T has are ignored. */
ET_NODISCARD et_status eti_read_role_ids(struct et_tokenizer *t, const char *name,
                                         const char *text, size_t n);

/* Compiles a pattern that is written for Oniguruma or for us. */
ET_NODISCARD et_status eti_pattern(struct et_ctx *cx, const char *name,
                                   const char *text, size_t n, bool literal,
                                   pcre2_code **out);
extern const char eti_gpt2_pattern[];

ET_NODISCARD et_status eti_bpe_add_pair(struct et_tokenizer *t, int32_t left,
                                        int32_t right, int32_t rank, int32_t id);
/* NULL: none. */
const struct eti_pair *eti_bpe_pair(const struct eti_bpe *b, int32_t left,
                                    int32_t right);
/* The characters that GPT-2 writes bytes as. */
size_t eti_byte_char(uint8_t byte, char out[4]);
/* The bytes that TEXT writes so: at most N. -1 where it is something else. */
int64_t eti_byte_text(const char *text, size_t n, char *out);
/* Are there tokens for all bytes of TEXT, for where it is unknown? */
bool eti_has_bytes(const struct et_tokenizer *t, const char *text, size_t n);
/* What the vocabulary implies: byte_id, fallback, bytes, tries. */
ET_NODISCARD et_status eti_tokenizer_finish(struct et_tokenizer *t, const char *name);
ET_NODISCARD et_status eti_copy(struct et_ctx *cx, const char *text, size_t n,
                                char **out);
ET_NODISCARD et_status eti_tokenizer_add(struct et_tokenizer *t, const char *text,
                                         size_t n, struct eti_added added);

#endif
