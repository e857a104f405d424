/* SPDX-License-Identifier: Apache-2.0 */
/* instructions.c: what is asked and what is to be answered: the loss is of the answers
 * alone.
 *
 * Each line becomes tokens once, when the data set is opened. What is given and what is
 * to be learned are encoded apart, so a prompt has the tokens that it has alone; behind
 * an answer that ends the line comes the tokenizer's end of text, which is learned too.
 * A line of more than seq_len tokens loses its end, or its beginning (truncation). A
 * line with nothing left to learn is left out, and that is told.
 *
 * With `packing: none` each line has a sequence of its own, else some share one. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "core/data/instruction_rows.h"
#include "core/data/labelled_rows.h"
#include "core/data/packing.h"
#include "core/data/text_source.h"
#include "etude/diagnostic.h"

enum truncation { KEEP_START, KEEP_END };
static const char *const truncation_names[] = {"keep_start", "keep_end", NULL};
static const char *const packing_names[] = {"best_fit", "none", NULL};
enum packing { BEST_FIT, NONE };

struct options {
    struct et_data_options common;
    char *tokenizer, *text, *message, *response;
    int packing, truncation;
};

struct state {
    int32_t *id;
    uint8_t *learned; /* by token: it is of an answer */
    int64_t n, id_room, learned_room;
    struct eti_piece *piece; /* a line each, until they are packed */
    int64_t n_pieces, piece_room;
    struct eti_packed packed;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(
        struct options, NULL, ET_OPT_REQUIRED,
        ".jsonl, of which test is each tenth line, or folder with train "
        "and dev, validation or test"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_SEQUENCE_OPTIONS(struct options, "512"),
    {
        .name = "tokenizer",
        .type = ET_OPT_PATH,
        .offset = offsetof(struct options, tokenizer),
        .flags = ET_OPT_OPTIONAL,
        .help = "tokenizer.json, vocab.json, vocab.txt, *.model or their folder; else "
                "bytes",
    },
    {
        .name = "template",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, text),
        .def = "'{prompt}{response}'",
        .help = "the text of a line, with its members in braces",
    },
    {
        .name = "response",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, response),
        .def = "response",
        .help = "the member of a line from which on the loss counts",
    },
    {
        .name = "message",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, message),
        .def = "\"<|im_start|>{role}\\n{content}<|im_end|>\\n\"",
        .help = "the text of one of a line's messages, of which the assistant's count",
    },
    {
        .name = "packing",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, packing),
        .def = "best_fit",
        .choices = packing_names,
        .help = "best_fit puts several lines into a sequence, none pads each",
    },
    {
        .name = "truncation",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, truncation),
        .def = "keep_start",
        .choices = truncation_names,
        .help = "which part of a line that is longer than seq_len is kept",
    },
    {.name = NULL},
};

/* ---- reading ---- */

struct reading {
    struct et_ctx *cx;
    struct et_dataset *self;
    struct et_encoder *e;
    int32_t end; /* of a text; -1: the tokenizer has none */
    int part;    /* of a file that is both splits: which lines are taken; -1: all */
    int64_t seen, left_out, cut;
};

static et_status
add_tokens(struct reading *r, const int32_t *id, int64_t n, bool is_learned)
{
    struct state *s = r->self->state;
    ET_TRY(eti_grow(r->cx, &s->id, &s->id_room, s->n + n + 1, sizeof *s->id));
    ET_TRY(eti_grow(r->cx, &s->learned, &s->learned_room, s->n + n + 1, 1));
    if (n > 0)
        memcpy(s->id + s->n, id, (size_t)n * sizeof *id);
    memset(s->learned + s->n, is_learned, (size_t)n);
    s->n += n;
    return ET_OK;
}

static et_status
encode_parts(struct reading *r, const struct eti_instruction *row)
{
    struct et_encoding a;
    for (int64_t i = 0; i < row->n_parts; i++) {
        const struct eti_instruction_part *p = &row->part[i];
        ET_TRY(et_encode(r->e, row->text + p->at, p->n, 0, &a));
        ET_TRY(add_tokens(r, a.id, a.n, p->is_learned));
    }
    if (r->end >= 0 && row->part[row->n_parts - 1].is_learned)
        ET_TRY(add_tokens(r, &r->end, 1, true));
    return ET_OK;
}

/* The first token of a sequence is nobody's target. */
static bool
has_targets(const struct state *s, int64_t begin, int64_t n)
{
    return n > 1 && memchr(s->learned + begin + 1, 1, (size_t)n - 1);
}

static et_status
take_row(void *data, const struct eti_instruction *row)
{
    struct reading *r = data;
    struct state *s = r->self->state;
    const struct options *o = r->self->options;
    enum et_split split = eti_row_split(r->seen++);
    if (r->part >= 0 && (int)split != r->part)
        return ET_OK;
    int64_t before = s->n, T = o->common.seq_len;
    ET_TRY(encode_parts(r, row));
    int64_t n = s->n - before, begin = before;
    const bool is_cut = n > T;
    if (is_cut) {
        begin = o->truncation == KEEP_END ? s->n - T : before;
        n = T;
    }
    if (!has_targets(s, begin, n)) {
        s->n = before;
        r->left_out++;
        return ET_OK;
    }
    r->cut += is_cut;
    ET_TRY(
        eti_grow(r->cx, &s->piece, &s->piece_room, s->n_pieces + 1, sizeof *s->piece));
    s->piece[s->n_pieces++] = (struct eti_piece){begin, (int32_t)n, false};
    return ET_OK;
}

static et_status
read_files(struct reading *r)
{
    const struct options *o = r->self->options;
    const struct eti_instruction_form form = {o->text, o->message, o->response};
    const char *path = o->common.path;
    char inside[ETI_PATH_MAX];
    struct stat st;
    ET_TRY(eti_instruction_check(r->cx, &form));
    r->part = o->common.split;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        r->part = -1;
        if (!eti_split_file(path, (enum et_split)o->common.split, inside))
            return ET_FAIL(r->cx, ET_ENOENT, "%s: no %s.jsonl", path,
                           o->common.split ? "dev, validation or test" : "train");
        path = inside;
    }
    return eti_instruction_rows(r->cx, path, &form, take_row, r);
}

static et_status
check_rows(const struct reading *r)
{
    const struct state *s = r->self->state;
    const char *path = r->self->common->path;
    const int64_t T = r->self->common->seq_len;
    if (s->n_pieces == 0)
        return ET_FAIL(r->cx, ET_EFORMAT,
                       "%s: no lines (%s); %" PRId64
                       " have nothing to learn in their %" PRId64 " tokens",
                       path, et_split_names[r->self->common->split], r->left_out, T);
    if (r->left_out > 0)
        et_report(r->cx, ET_LOG_WARN,
                  "%s: %" PRId64 " of %" PRId64
                  " lines are left out: there is nothing to learn in their %" PRId64
                  " tokens",
                  path, r->left_out, r->left_out + s->n_pieces, T);
    if (r->cut > 0)
        et_report(r->cx, ET_LOG_WARN,
                  "%s: %" PRId64 " lines are longer than %" PRId64
                  " tokens and are cut",
                  path, r->cut, T);
    return ET_OK;
}

/* ---- the data set ---- */

static et_status
pack(struct reading *r)
{
    struct state *s = r->self->state;
    const struct options *o = r->self->options;
    if (o->packing == NONE)
        return ET_OK;
    struct eti_piece *piece = s->piece;
    s->piece = NULL;
    return eti_pack_best_fit(r->cx, piece, s->n_pieces, o->common.seq_len, &s->packed);
}

static et_status
open_with(struct reading *r, const struct et_tokenizer *t)
{
    struct et_dataset *self = r->self;
    const struct options *o = self->options;
    struct state *s = self->state;
    struct et_tokenizer_info info;
    et_tokenizer_get_info(t, &info);
    r->end = info.role[ET_TOKEN_EOS];
    ET_TRY(et_encoder_new(r->cx, t, &r->e));
    ET_TRY(read_files(r));
    ET_TRY(check_rows(r));
    ET_TRY(pack(r));
    int32_t pad = info.role[ET_TOKEN_PAD];
    eti_packed_facts(&self->facts, o->packing == NONE ? s->n_pieces : s->packed.n_rows,
                     o->common.seq_len, info.vocab_size, pad > 0 ? pad : 0,
                     o->packing != NONE);
    self->facts.bytes = s->n * (int64_t)sizeof *s->id;
    return ET_OK;
}

static et_status
open_instructions(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct reading r = {.cx = cx, .self = self};
    struct et_tokenizer *t;
    ET_TRY(et_tokenizer_open(cx, o->tokenizer ? o->tokenizer : "bytes", &t));
    et_status s = open_with(&r, t);
    et_encoder_free(&r.e);
    et_tokenizer_free(&t);
    return s;
}

static void
close_instructions(struct et_dataset *self)
{
    struct state *s = self->state;
    eti_packed_release(self->cx, &s->packed);
    et_free(self->cx, s->piece);
    et_free(self->cx, s->id);
    et_free(self->cx, s->learned);
}

static void
add_piece(const struct state *s, struct eti_packed_row *row, const struct eti_piece *p)
{
    const int32_t *id = s->id + p->begin;
    const uint8_t *learned = s->learned + p->begin;
    int32_t *target = row->target + row->n;
    memcpy(row->token + row->n, id, (size_t)p->n * sizeof *id);
    for (int64_t i = 0; i < p->n; i++)
        target[i] = i + 1 < p->n && learned[i + 1] ? id[i + 1] : ET_IGNORE_INDEX;
    eti_packed_row_add(row, p->n);
}

/* The pieces of sequence AT: [*FIRST, *LAST). */
static const struct eti_piece *
pieces_of(const struct et_dataset *self, int64_t at, int64_t *first, int64_t *last)
{
    const struct options *o = self->options;
    const struct state *s = self->state;
    *first = o->packing == NONE ? at : s->packed.first[at];
    *last = o->packing == NONE ? at + 1 : s->packed.first[at + 1];
    return o->packing == NONE ? s->piece : s->packed.piece;
}

static et_status
read_instructions(const struct et_dataset *self, int64_t at, struct et_sample *out,
                  struct et_error *why)
{
    struct eti_packed_row row;
    int64_t i, last;
    const struct eti_piece *piece = pieces_of(self, at, &i, &last);
    ET_TRY(eti_packed_row_begin(&row, out, self->common->seq_len, why));
    for (; i < last; i++)
        add_piece(self->state, &row, &piece[i]);
    eti_packed_row_end(&row);
    return ET_OK;
}

static int64_t
length_of(const struct et_dataset *self, int64_t at)
{
    int64_t i, last, n = 0;
    const struct eti_piece *piece = pieces_of(self, at, &i, &last);
    for (; i < last; i++)
        n += piece[i].n;
    return n;
}

static void
describe_instructions(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    eti_packed_facts(out, 0, o->common.seq_len, o->tokenizer ? 0 : 256, 0,
                     o->packing != NONE);
}

const struct et_dataset_class et_dataset_instructions = {
    .info =
        {
            .name = "instructions",
            .class_name = "Instructions",
            .summary = "prompts and responses, or messages, to learn the responses of",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .open = open_instructions,
    .sample = read_instructions,
    .length = length_of,
    .close = close_instructions,
    .describe = describe_instructions,
    .gives_next = true,
};
