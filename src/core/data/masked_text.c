/* SPDX-License-Identifier: Apache-2.0 */
/* masked_text.c: text with some tokens hidden, which are to be guessed.
 *
 * wrapped: a sample is a window of all documents end to end, between the marks of the
 * beginning and the end of a text where the tokenizer has them. best_fit: a sample has
 * as many documents as fit, each between such marks, whole unless it is longer than a
 * sample; tokens see their own document alone, whose positions begin with 0.
 *
 * Of the other tokens each is chosen with probability mask_prob; 80 % of the chosen
 * become the mask, 10 % a token at random, 10 % stay. The target is the token where
 * one was chosen, else it counts nothing. What is chosen is drawn by the sample's
 * place in the run's order, so another epoch has other masks; to evaluate, by the
 * sample's number.
 *
 * Source: Devlin et al., BERT, 2019, appendix A.1. */
#include <inttypes.h>

#include "core/data/document_ends.h"
#include "core/data/text_source.h"

enum packing { WRAPPED, BEST_FIT };
static const char *const packing_names[] = {"wrapped", "best_fit", NULL};

struct options {
    struct et_data_options common;
    struct eti_text_options text;
    double mask_prob;
    int packing;
};

struct state {
    struct eti_token_file file; /* first: eti_token_file_tokens reads it */
    int64_t n_tokens;
    int32_t first, last, mask, pad; /* ids; -1: there is no such mark */
    uint8_t *special;               /* by id: is never chosen */
    struct eti_packed packed;       /* best_fit; pieces with their marks */
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "text file, folder of such, JSONL or MDS shards, or what data "
                        "tokenize wrote; test is a tenth of the documents, or of an "
                        "only one"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_TOKEN_OPTIONS(struct options),
    ETI_TEXT_OPTIONS(struct options),
    {
        .name = "mask_prob",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, mask_prob),
        .def = "0.15",
        .min = 0.001,
        .max = 1,
        .help = "of the tokens, those that are to be guessed",
        .also = "mlm_probability",
    },
    {
        .name = "packing",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, packing),
        .def = "wrapped",
        .choices = packing_names,
        .flags = ET_OPT_LATER,
        .help = "wrapped cuts the stream at each seq_len, best_fit keeps documents "
                "whole and apart",
    },
    {.name = NULL},
};

/* ---- opening ---- */

static void
set_facts(struct et_data_facts *f, int64_t n, int64_t T, int64_t vocab_size)
{
    struct et_field tokens = {
        .name = "tokens",
        .kind = ET_FIELD_TOKENS,
        .dtype = ET_I32,
        .ndim = 1,
        .shape = {T},
        .below = vocab_size,
    };
    *f = (struct et_data_facts){
        .n_samples = n,
        .bytes = n * T * (int64_t)sizeof(int32_t),
    };
    et_facts_add(f, &tokens);
    tokens.name = "target";
    tokens.pad = ET_IGNORE_INDEX;
    et_facts_add(f, &tokens);
}

static int
n_marks(const struct state *s)
{
    return (s->first >= 0) + (s->last >= 0);
}

/* Tokens of text in a sample, or in one document's part of it. */
static int64_t
body_length(const struct et_dataset *self)
{
    return self->common->seq_len - n_marks(self->state);
}

static et_status
find_marks(struct et_ctx *cx, struct et_dataset *self, const struct et_tokenizer *t)
{
    struct state *s = self->state;
    struct et_tokenizer_info info;
    et_tokenizer_get_info(t, &info);
    s->first = info.role[ET_TOKEN_CLS];
    s->last = info.role[ET_TOKEN_SEP];
    s->mask = info.role[ET_TOKEN_MASK];
    s->pad = info.role[ET_TOKEN_PAD];
    if (s->mask < 0)
        return ET_FAIL(cx, ET_EINVAL, "%s has no token that masks, such as [MASK]",
                       info.path);
    ET_TRY(et_alloc(cx, (size_t)info.vocab_size, (void **)&s->special));
    for (int32_t id = 0; id < info.vocab_size; id++)
        s->special[id] = et_tokenizer_is_special(t, id);
    return ET_OK;
}

/* Documents as pieces of sequences, without the mark that the stream has at their
 * ends. */
static et_status
pack(struct et_ctx *cx, struct et_dataset *self, const struct eti_text_found *found)
{
    struct state *s = self->state;
    struct eti_document_ends ends;
    struct eti_piece *piece = NULL;
    int64_t n = 0, tail = found->end >= 0 && found->end == s->last;
    et_status status = eti_document_ends_read(cx, found->ends, s->n_tokens, &ends);
    if (status == ET_OK)
        status = eti_document_pieces(cx, &ends, body_length(self), tail, &piece, &n);
    eti_document_ends_free(cx, &ends);
    for (int64_t i = 0; status == ET_OK && i < n; i++)
        piece[i].n += n_marks(s);
    if (status == ET_OK && n > 0)
        return eti_pack_best_fit(cx, piece, n, self->common->seq_len, &s->packed);
    et_free(cx, piece);
    return status == ET_OK ? ET_FAIL(cx, ET_EINVAL, "%s: its documents have no tokens",
                                     self->common->path)
                           : status;
}

static et_status
check_length(struct et_ctx *cx, const struct et_dataset *self, int64_t least)
{
    const struct state *s = self->state;
    int64_t body = body_length(self);
    if (body >= 1 && s->n_tokens >= least)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "%s: %" PRId64 " tokens (%s), and seq_len %" PRId64
                   " takes %" PRId64,
                   self->common->path, s->n_tokens, et_split_names[self->common->split],
                   self->common->seq_len, body);
}

static et_status
open_masked(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct state *s = self->state;
    struct eti_text_found found;
    struct et_tokenizer *t = NULL;
    ET_TRY(eti_text_open(cx, self, o->common.path, &o->text, &found));
    s->n_tokens = self->facts.n_tokens;
    et_status status = eti_text_tokenizer(cx, self, &t);
    if (status == ET_OK)
        status = find_marks(cx, self, t);
    et_tokenizer_free(&t);
    ET_TRY(status);
    const int64_t vocab_size = self->facts.field[0].below, T = o->common.seq_len;
    ET_TRY(check_length(cx, self, o->packing == WRAPPED ? body_length(self) : 1));
    if (o->packing == WRAPPED) {
        set_facts(&self->facts, s->n_tokens / body_length(self), T, vocab_size);
        return ET_OK;
    }
    ET_TRY(pack(cx, self, &found));
    eti_packed_facts(&self->facts, s->packed.n_rows, T, vocab_size,
                     s->pad < 0 ? 0 : s->pad, true);
    self->facts.bytes = s->n_tokens * (int64_t)sizeof(int32_t);
    return ET_OK;
}

static void
close_masked(struct et_dataset *self)
{
    struct state *s = self->state;
    eti_packed_release(self->cx, &s->packed);
    et_free(self->cx, s->special);
    eti_token_file_close(self);
}

/* ---- samples ---- */

/* Chooses among N tokens; those that are not chosen have no target. */
static void
hide(const struct et_dataset *self, struct et_rng *r, int32_t *token, int32_t *target,
     int64_t n)
{
    const struct options *o = self->options;
    const struct state *s = self->state;
    uint64_t vocab_size = (uint64_t)self->facts.field[0].below;
    for (int64_t i = 0; i < n; i++) {
        target[i] = ET_IGNORE_INDEX;
        if (s->special[token[i]] || et_rng_uniform(r) >= o->mask_prob)
            continue;
        double how = et_rng_uniform(r);
        target[i] = token[i];
        if (how < 0.8)
            token[i] = s->mask;
        else if (how < 0.9)
            token[i] = (int32_t)et_rng_below(r, vocab_size);
    }
}

/* Writes N tokens from AT on between the marks, some of them hidden. */
static et_status
read_piece(const struct et_dataset *self, int64_t at, int64_t n, struct et_rng *r,
           int32_t *token, int32_t *target, struct et_error *why)
{
    const struct state *s = self->state;
    int64_t from = s->first >= 0;
    ET_TRY(eti_token_file_tokens(self, at, n, token + from, why));
    hide(self, r, token + from, target + from, n);
    if (s->first >= 0) {
        token[0] = s->first;
        target[0] = ET_IGNORE_INDEX;
    }
    if (s->last >= 0) {
        token[from + n] = s->last;
        target[from + n] = ET_IGNORE_INDEX;
    }
    return ET_OK;
}

static et_status
read_wrapped(const struct et_dataset *self, int64_t at, struct et_sample *out,
             struct et_error *why)
{
    int64_t T = self->common->seq_len, body = body_length(self);
    int32_t *token = et_sample_room(out, 0, (size_t)T * sizeof *token);
    int32_t *target = et_sample_room(out, 1, (size_t)T * sizeof *target);
    struct et_rng r = out->draws;
    if (!token || !target)
        return eti_why(why, ET_ENOMEM, "no memory for a sample of %" PRId64 " tokens",
                       T);
    ET_TRY(read_piece(self, at * body, body, &r, token, target, why));
    out->v[0].data = token;
    out->v[1].data = target;
    return ET_OK;
}

static et_status
read_packed(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    const struct state *s = self->state;
    struct et_rng r = out->draws;
    struct eti_packed_row row;
    ET_TRY(eti_packed_row_begin(&row, out, self->common->seq_len, why));
    for (int64_t i = s->packed.first[at]; i < s->packed.first[at + 1]; i++) {
        const struct eti_piece *p = &s->packed.piece[i];
        ET_TRY(read_piece(self, p->begin, p->n - n_marks(s), &r, row.token + row.n,
                          row.target + row.n, why));
        eti_packed_row_add(&row, p->n);
    }
    eti_packed_row_end(&row);
    return ET_OK;
}

static et_status
read_masked(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    const struct options *o = self->options;
    return o->packing == WRAPPED ? read_wrapped(self, at, out, why)
                                 : read_packed(self, at, out, why);
}

static int64_t
length_of(const struct et_dataset *self, int64_t at)
{
    const struct options *o = self->options;
    const struct state *s = self->state;
    return o->packing == WRAPPED ? self->common->seq_len
                                 : eti_packed_length(&s->packed, at);
}

static void
describe_masked(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    if (o->packing == WRAPPED)
        set_facts(out, 0, o->common.seq_len, 0);
    else
        eti_packed_facts(out, 0, o->common.seq_len, 0, 0, true);
}

const struct et_dataset_class et_dataset_masked_text = {
    .info =
        {
            .name = "masked_text",
            .class_name = "MaskedText",
            .summary = "text files with some tokens hidden, which are the targets",
            .source = "arXiv 1810.04805",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .open = open_masked,
    .sample = read_masked,
    .length = length_of,
    .close = close_masked,
    .describe = describe_masked,
};
