/* SPDX-License-Identifier: Apache-2.0 */
/* packed_text.c: the documents of text files, several in one sequence, to learn each
 * next token of a document.
 *
 * best_fit: documents stay whole where they fit a sequence, and longer ones are cut
 * into parts of its length; a sequence that none fits into any more is filled up with
 * padding. wrapped: all documents end to end, cut at each seq_len tokens, without
 * padding.
 *
 * Either way no token is to predict another document's first, and with attention:
 * document it sees its own document alone, whose positions begin with 0 again. */
#include <inttypes.h>
#include <string.h>

#include "core/data/document_ends.h"
#include "core/data/text_source.h"

enum packing { BEST_FIT, WRAPPED };
enum attention { OWN_DOCUMENT, ALL_BEFORE };
static const char *const attention_names[] = {"document", "all", NULL};
static const char *const packing_names[] = {"best_fit", "wrapped", NULL};

struct options {
    struct et_data_options common;
    struct eti_text_options text;
    int packing, attention;
};

struct state {
    struct eti_token_file file; /* first: eti_token_file_tokens reads it */
    struct eti_document_ends ends;
    int64_t n_tokens;
    struct eti_packed packed; /* best_fit */
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "text file, folder of such, JSONL or MDS shards, or what data "
                        "tokenize wrote; test is a tenth of the documents, or of an "
                        "only one"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_SEQUENCE_OPTIONS(struct options, "128"),
    ETI_TEXT_OPTIONS(struct options),
    {
        .name = "packing",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, packing),
        .def = "best_fit",
        .choices = packing_names,
        .help = "best_fit keeps documents whole, wrapped cuts them at each seq_len",
    },
    {
        .name = "attention",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, attention),
        .def = "document",
        .choices = attention_names,
        .help = "what tokens see: their own document, or all before them",
    },
    {.name = NULL},
};

/* ---- opening ---- */

static et_status
pack(struct et_ctx *cx, struct et_dataset *self)
{
    const int64_t T = self->common->seq_len;
    struct state *s = self->state;
    struct eti_piece *piece;
    int64_t n;
    et_status status = eti_document_pieces(cx, &s->ends, T, 0, &piece, &n);
    if (status == ET_OK)
        return eti_pack_best_fit(cx, piece, n, T, &s->packed);
    et_free(cx, piece);
    return status;
}

static et_status
open_packed(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    const int64_t T = o->common.seq_len;
    struct state *s = self->state;
    struct eti_text_found found;
    ET_TRY(eti_text_open(cx, self, o->common.path, &o->text, &found));
    s->n_tokens = self->facts.n_tokens;
    int64_t rows = (s->n_tokens + T - 1) / T;
    if (s->n_tokens < 2)
        return ET_FAIL(cx, ET_EINVAL, "%s: %" PRId64 " tokens (%s)", o->common.path,
                       s->n_tokens, et_split_names[o->common.split]);
    ET_TRY(eti_document_ends_read(cx, found.ends, s->n_tokens, &s->ends));
    if (o->packing == BEST_FIT) {
        ET_TRY(pack(cx, self));
        rows = s->packed.n_rows;
    }
    eti_packed_facts(&self->facts, rows, T, self->facts.field[0].below, 0,
                     o->attention == OWN_DOCUMENT);
    self->facts.bytes = s->n_tokens * (int64_t)sizeof(int32_t);
    return ET_OK;
}

static void
close_packed(struct et_dataset *self)
{
    struct state *s = self->state;
    eti_packed_release(self->cx, &s->packed);
    eti_document_ends_free(self->cx, &s->ends);
    eti_token_file_close(self);
}

/* ---- samples ---- */

/* Writes the tokens of a piece, and their targets: each next one. */
static et_status
add_piece(const struct et_dataset *self, struct eti_packed_row *row,
          const struct eti_piece *p, struct et_error *why)
{
    int32_t *token = row->token + row->n, *target = row->target + row->n;
    ET_TRY(eti_token_file_tokens(self, p->begin, p->n, token, why));
    memcpy(target, token + 1, (size_t)(p->n - 1) * sizeof *target);
    target[p->n - 1] = ET_IGNORE_INDEX;
    if (p->goes_on)
        ET_TRY(eti_token_file_tokens(self, p->begin + p->n, 1, target + p->n - 1, why));
    eti_packed_row_add(row, p->n);
    return ET_OK;
}

/* Tokens of sequence AT where all documents lie end to end. */
static int64_t
wrapped_length(const struct et_dataset *self, int64_t at)
{
    const struct state *s = self->state;
    int64_t T = self->common->seq_len, left = s->n_tokens - at * T;
    return left < T ? left : T;
}

static et_status
add_wrapped(const struct et_dataset *self, int64_t at, struct eti_packed_row *row,
            struct et_error *why)
{
    const struct state *s = self->state;
    int64_t from = at * self->common->seq_len, to = from + wrapped_length(self, at);
    for (int64_t i = eti_document_of(&s->ends, from); from < to; i++) {
        int64_t end = s->ends.end[i] < to ? s->ends.end[i] : to;
        struct eti_piece p = {from, (int32_t)(end - from), end < s->ends.end[i]};
        if (p.n > 0)
            ET_TRY(add_piece(self, row, &p, why));
        from = end;
    }
    return ET_OK;
}

static et_status
read_packed(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    const struct options *o = self->options;
    const struct state *s = self->state;
    struct eti_packed_row row;
    ET_TRY(eti_packed_row_begin(&row, out, o->common.seq_len, why));
    if (o->packing == WRAPPED)
        ET_TRY(add_wrapped(self, at, &row, why));
    else
        for (int64_t i = s->packed.first[at]; i < s->packed.first[at + 1]; i++)
            ET_TRY(add_piece(self, &row, &s->packed.piece[i], why));
    eti_packed_row_end(&row);
    return ET_OK;
}

static int64_t
length_of(const struct et_dataset *self, int64_t at)
{
    const struct options *o = self->options;
    const struct state *s = self->state;
    if (o->packing == WRAPPED)
        return wrapped_length(self, at);
    return eti_packed_length(&s->packed, at);
}

static void
describe_packed(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    eti_packed_facts(out, 0, o->common.seq_len, o->text.tokenizer ? 0 : 256, 0,
                     o->attention == OWN_DOCUMENT);
}

const struct et_dataset_class et_dataset_packed_text = {
    .info =
        {
            .name = "packed_text",
            .class_name = "PackedText",
            .summary = "documents of text files, several in one sequence",
            .source = "arXiv 2404.10830",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .open = open_packed,
    .sample = read_packed,
    .length = length_of,
    .close = close_packed,
    .describe = describe_packed,
    .gives_next = true,
};
