/* SPDX-License-Identifier: Apache-2.0 */
/* packing.c: see packing.h.
 *
 * Sequences with the same room are in a list, and a bit per room says where there are
 * any, so that the best place is the first bit from a length on. */
#include "core/data/packing.h"

#include <inttypes.h>
#include <string.h>

#include "core/data/file.h"

enum { BITS = 64 };

struct bins {
    uint64_t *has; /* a bit per room, 0 .. T: there is a sequence that has it */
    int64_t *head; /* [T + 1]: such a sequence, -1: none */
    int64_t *next; /* by sequence: another with the same room */
    int64_t *row;  /* by piece, in the order of packing */
    int64_t T, n_rows;
};

static void
put(struct bins *b, int64_t row, int64_t room)
{
    b->next[row] = b->head[room];
    b->head[room] = row;
    b->has[room / BITS] |= (uint64_t)1 << room % BITS;
}

/* The least room of N or more that a sequence has; -1: none has. */
static int64_t
find_room(const struct bins *b, int64_t n)
{
    uint64_t mask = ~(uint64_t)0 << n % BITS;
    for (int64_t w = n / BITS; w <= b->T / BITS; w++, mask = ~(uint64_t)0)
        if (b->has[w] & mask)
            return w * BITS + __builtin_ctzll(b->has[w] & mask);
    return -1;
}

/* The sequence that a piece of N tokens goes into. */
static int64_t
choose_row(struct bins *b, int64_t n)
{
    int64_t room = find_room(b, n), row;
    if (room < 0) {
        room = b->T;
        row = b->n_rows++;
    } else {
        row = b->head[room];
        b->head[room] = b->next[row];
        if (b->head[room] < 0)
            b->has[room / BITS] &= ~((uint64_t)1 << room % BITS);
    }
    put(b, row, room - n);
    return row;
}

/* Puts the N pieces FROM into TO by rising keys, or FALLING ones. KEY: [N], none above
 * MOST; NULL: their lengths. Pieces with equal keys stay in their order. COUNT:
 * [MOST + 2], scratch. */
static void
sort_pieces(const struct eti_piece *from, const int64_t *key, int64_t n, int64_t most,
            bool falling, int64_t *count, struct eti_piece *to)
{
    memset(count, 0, (size_t)(most + 2) * sizeof *count);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = key ? key[i] : from[i].n;
        count[(falling ? most - k : k) + 1]++;
    }
    for (int64_t k = 0; k <= most; k++)
        count[k + 1] += count[k];
    for (int64_t i = 0; i < n; i++) {
        int64_t k = key ? key[i] : from[i].n;
        to[count[falling ? most - k : k]++] = from[i];
    }
}

static et_status
allocate(struct et_ctx *cx, struct bins *b, int64_t n)
{
    size_t rows = (size_t)n + 1;
    ET_TRY(et_alloc(cx, (size_t)(b->T / BITS + 1) * sizeof *b->has, (void **)&b->has));
    ET_TRY(et_alloc(cx, (size_t)(b->T + 1) * sizeof *b->head, (void **)&b->head));
    ET_TRY(et_alloc(cx, rows * sizeof *b->next, (void **)&b->next));
    return et_alloc(cx, rows * sizeof *b->row, (void **)&b->row);
}

static et_status
pack(struct et_ctx *cx, struct bins *b, struct eti_packed *out)
{
    const int64_t n = out->n_pieces, most = b->T > n ? b->T : n;
    struct eti_piece *sorted = NULL;
    int64_t *count = NULL;
    ET_TRY(allocate(cx, b, n));
    memset(b->head, -1, (size_t)(b->T + 1) * sizeof *b->head);
    ET_TRY(et_alloc(cx, (size_t)(n + 2) * sizeof *out->first, (void **)&out->first));
    et_status s = et_alloc(cx, (size_t)(n + 1) * sizeof *sorted, (void **)&sorted);
    if (s == ET_OK)
        s = et_alloc(cx, (size_t)(most + 2) * sizeof *count, (void **)&count);
    if (s == ET_OK) {
        sort_pieces(out->piece, NULL, n, b->T, true, count, sorted);
        for (int64_t i = 0; i < n; i++)
            b->row[i] = choose_row(b, sorted[i].n);
        sort_pieces(sorted, b->row, n, n, false, count, out->piece);
        for (int64_t i = 0; i < n; i++)
            out->first[b->row[i] + 1]++;
        out->n_rows = b->n_rows;
        for (int64_t r = 0; r < out->n_rows; r++)
            out->first[r + 1] += out->first[r];
    }
    et_free(cx, sorted);
    et_free(cx, count);
    return s;
}

et_status
eti_pack_best_fit(struct et_ctx *cx, struct eti_piece *piece, int64_t n, int64_t T,
                  struct eti_packed *out)
{
    struct bins b = {.T = T};
    *out = (struct eti_packed){.piece = piece, .n_pieces = n};
    et_status s = pack(cx, &b, out);
    et_free(cx, b.has);
    et_free(cx, b.head);
    et_free(cx, b.next);
    et_free(cx, b.row);
    return s;
}

void
eti_packed_release(struct et_ctx *cx, struct eti_packed *p)
{
    et_free(cx, p->piece);
    et_free(cx, p->first);
    *p = (struct eti_packed){.piece = NULL};
}

int64_t
eti_packed_length(const struct eti_packed *p, int64_t at)
{
    int64_t n = 0;
    for (int64_t i = p->first[at]; i < p->first[at + 1]; i++)
        n += p->piece[i].n;
    return n;
}

/* ---- sequences as samples ---- */

enum { DOCUMENT = ET_FIELD_TARGET + 1, POSITION };

void
eti_packed_facts(struct et_data_facts *f, int64_t n_rows, int64_t T, int64_t vocab_size,
                 int32_t pad, bool with_documents)
{
    struct et_field field = {
        .name = "tokens",
        .kind = ET_FIELD_TOKENS,
        .dtype = ET_I32,
        .ndim = 1,
        .shape = {-1},
        .below = vocab_size,
        .pad = pad,
    };
    *f = (struct et_data_facts){.n_samples = n_rows};
    et_facts_add(f, &field);
    field.name = "target";
    field.pad = ET_IGNORE_INDEX;
    et_facts_add(f, &field);
    if (!with_documents)
        return;
    field.name = "document";
    field.pad = 0;
    field.below = 0;
    et_facts_add(f, &field);
    field.name = "position";
    field.below = T;
    et_facts_add(f, &field);
}

et_status
eti_packed_row_begin(struct eti_packed_row *row, struct et_sample *sample, int64_t T,
                     struct et_error *why)
{
    int32_t *field[POSITION + 1] = {NULL};
    for (int i = 0; i < sample->facts->n_fields; i++) {
        field[i] = et_sample_room(sample, i, (size_t)(T + 1) * sizeof(int32_t));
        if (!field[i])
            return eti_why(why, ET_ENOMEM,
                           "no memory for a sample of %" PRId64 " tokens", T);
    }
    *row = (struct eti_packed_row){
        .sample = sample,
        .token = field[ET_FIELD_X],
        .target = field[ET_FIELD_TARGET],
        .document = field[DOCUMENT],
        .position = field[POSITION],
    };
    return ET_OK;
}

void
eti_packed_row_add(struct eti_packed_row *row, int64_t n)
{
    row->n_pieces++;
    for (int64_t i = 0; row->document && i < n; i++) {
        row->document[row->n + i] = row->n_pieces;
        row->position[row->n + i] = (int32_t)i;
    }
    row->n += n;
}

void
eti_packed_row_end(struct eti_packed_row *row)
{
    const int32_t *const field[] = {row->token, row->target, row->document,
                                    row->position};
    for (int i = 0; i < row->sample->facts->n_fields; i++) {
        row->sample->v[i].data = field[i];
        row->sample->v[i].shape[0] = row->n;
    }
}
