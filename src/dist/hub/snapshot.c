/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c: a model as bytes, and back.
 *
 * The bytes are one msgpack array: the format's number, then the fields of the model in
 * the order of code_model, lists and structs being arrays in turn. Numbers are integers
 * or IEEE doubles, every NaN the same one; rings begin with their oldest element, so
 * that equal models have equal bytes.
 *
 * One function describes each struct, for both directions: a codec either packs a field
 * or reads it. What is read is bounded field by field, straight from the bytes, before
 * anything is allocated for it (RELIABILITY.md 5.9). */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <msgpack.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/seams.h"
#include "dist/hub/model.h"

enum { FORMAT = 1, LONGEST = 16 << 20 };

struct codec {
    struct et_ctx *cx;
    bool saving;
    bool bad; /* reading: the bytes are no snapshot; saving: there is no memory */
    et_status status; /* ENOMEM, where that was why */
    /* saving */
    msgpack_packer pack;
    char *out;
    size_t used, room;
    /* reading */
    const unsigned char *at, *end;
};

/* ---- bytes ---- */

static int
append(void *data, const char *bytes, size_t n)
{
    struct codec *c = data;
    if (c->room - c->used < n) {
        void *block;
        size_t room = c->room ? c->room : 64 << 10;
        while (room - c->used < n)
            room *= 2;
        c->status = et_alloc(c->cx, room, &block);
        if (c->status != ET_OK) {
            c->bad = true;
            return -1;
        }
        if (c->used > 0)
            memcpy(block, c->out, c->used);
        et_free(c->cx, c->out);
        c->out = block;
        c->room = room;
    }
    memcpy(c->out + c->used, bytes, n);
    c->used += n;
    return 0;
}

/* N bytes, big-endian; 0 past the end. */
static uint64_t
take(struct codec *c, size_t n)
{
    uint64_t x = 0;
    if (c->bad || (size_t)(c->end - c->at) < n) {
        c->bad = true;
        return 0;
    }
    for (; n > 0; n--)
        x = x << 8 | *c->at++;
    return x;
}

static int64_t
take_int(struct codec *c)
{
    uint64_t first = take(c, 1), x;
    if (first < 0x80)
        return (int64_t)first;
    if (first >= 0xe0)
        return (int64_t)first - 0x100;
    if (first >= 0xcc && first <= 0xcf) {
        x = take(c, (size_t)1 << (first - 0xcc));
        c->bad = c->bad || x > INT64_MAX;
        return c->bad ? 0 : (int64_t)x;
    }
    switch (first) {
    case 0xd0:
        return (int8_t)take(c, 1);
    case 0xd1:
        return (int16_t)take(c, 2);
    case 0xd2:
        return (int32_t)take(c, 4);
    case 0xd3:
        return (int64_t)take(c, 8);
    default:
        c->bad = true;
        return 0;
    }
}

static size_t
take_length(struct codec *c, uint64_t fixed, uint64_t mask, uint64_t first8)
{
    uint64_t first = take(c, 1);
    if ((first & ~mask) == fixed)
        return first & mask;
    if (first8 && first == first8)
        return take(c, 1);
    if (first == (first8 ? first8 + 1 : 0xdc))
        return take(c, 2);
    c->bad = true;
    return 0;
}

/* ---- fields ---- */

static void
code_int(struct codec *c, int64_t *x, int64_t least, int64_t most)
{
    if (c->saving) {
        msgpack_pack_int64(&c->pack, *x);
        return;
    }
    int64_t v = take_int(c);
    c->bad = c->bad || v < least || v > most;
    *x = c->bad ? least : v;
}

static void
code_small(struct codec *c, int *x, int least, int most)
{
    int64_t v = *x;
    code_int(c, &v, least, most);
    *x = (int)v;
}

static void
code_number(struct codec *c, double *x)
{
    if (c->saving) {
        msgpack_pack_double(&c->pack, isnan(*x) ? NAN : *x);
        return;
    }
    c->bad = c->bad || take(c, 1) != 0xcb;
    uint64_t bits = take(c, 8);
    memcpy(x, &bits, sizeof *x);
}

static void
code_text(struct codec *c, char *text, size_t size)
{
    if (c->saving) {
        msgpack_pack_str_with_body(&c->pack, text, strlen(text));
        return;
    }
    size_t n = take_length(c, 0xa0, 0x1f, 0xd9);
    if (c->bad || n >= size || n > (size_t)(c->end - c->at) || memchr(c->at, 0, n)) {
        c->bad = true;
        text[0] = '\0';
        return;
    }
    memcpy(text, c->at, n);
    text[n] = '\0';
    c->at += n;
}

static void
code_flag(struct codec *c, bool *x)
{
    int v = *x;
    code_small(c, &v, 0, 1);
    *x = v;
}

/* The head of an array of N fields. */
static void
code_fields(struct codec *c, size_t n)
{
    if (c->saving)
        msgpack_pack_array(&c->pack, n);
    else
        c->bad = take_length(c, 0x90, 0x0f, 0) != n || c->bad;
}

/* The head of a list of *N elements, MOST at most. */
static void
code_count(struct codec *c, int *n, int most)
{
    if (c->saving) {
        msgpack_pack_array(&c->pack, (size_t)*n);
        return;
    }
    size_t v = take_length(c, 0x90, 0x0f, 0);
    c->bad = c->bad || v > (size_t)most || v > (size_t)(c->end - c->at);
    *n = c->bad ? 0 : (int)v;
}

/* The same for a ring of SIZE, whose oldest element is FIRST. */
static int
code_ring(struct codec *c, int *first, int *n, int size)
{
    code_count(c, n, size);
    if (!c->saving)
        *first = 0;
    return *n;
}

/* ---- what a model is made of ---- */

static void
code_bins(struct codec *c, struct etd_series *s)
{
    code_count(c, &s->n_bins, ETD_BINS);
    if (!c->saving && s->n_bins > 0) {
        void *block;
        c->status = et_alloc(c->cx, (size_t)s->n_bins * sizeof *s->bin, &block);
        if (c->status != ET_OK) {
            c->bad = true;
            s->n_bins = 0;
            return;
        }
        s->bin = block;
        s->room = s->n_bins;
    }
    for (struct etd_bin *b = s->bin; b < s->bin + s->n_bins; b++) {
        int number = b->bin, n = b->n;
        code_fields(c, 5);
        code_small(c, &number, b > s->bin ? b[-1].bin + 1 : 0, ETD_BINS - 1);
        code_small(c, &n, 0, INT_MAX);
        b->bin = number;
        b->n = n;
        code_number(c, &b->min);
        code_number(c, &b->max);
        code_number(c, &b->last);
    }
}

static void
code_series(struct codec *c, struct etd_series *s)
{
    code_fields(c, 9);
    code_text(c, s->name, sizeof s->name);
    code_int(c, &s->n, 0, INT64_MAX);
    code_int(c, &s->bad, 0, INT64_MAX);
    code_number(c, &s->last);
    code_number(c, &s->best);
    code_int(c, &s->last_ba, INT64_MIN, INT64_MAX);
    code_int(c, &s->best_ba, INT64_MIN, INT64_MAX);
    code_number(c, &s->last_t);
    code_bins(c, s);
}

/* Bins without a record are nil. */
static void
code_axis(struct codec *c, struct etd_axis *a)
{
    if (c->saving && isnan(a->t)) {
        msgpack_pack_nil(&c->pack);
        return;
    }
    if (!c->saving && c->at < c->end && *c->at == 0xc0) {
        c->at++;
        *a = (struct etd_axis){.t = NAN};
        return;
    }
    code_fields(c, 3);
    code_number(c, &a->t);
    code_int(c, &a->ep, INT64_MIN, INT64_MAX);
    code_int(c, &a->sp, INT64_MIN, INT64_MAX);
}

static void
code_event(struct codec *c, struct etd_event *e)
{
    int kind = (int)e->kind, level = (int)e->level;
    code_fields(c, 7);
    code_number(c, &e->t);
    code_int(c, &e->seq, 0, INT64_MAX);
    code_int(c, &e->ba, INT64_MIN, INT64_MAX);
    code_small(c, &e->rank, INT_MIN, INT_MAX);
    code_small(c, &kind, 0, ET_RECORD_COUNT - 1);
    code_small(c, &level, ET_LOG_DEBUG, ET_LOG_ERROR);
    e->kind = (enum et_record_kind)kind;
    e->level = (enum et_log_level)level;
    code_text(c, e->text, sizeof e->text);
}

static void
code_mark(struct codec *c, struct etd_mark *k)
{
    int kind = (int)k->kind;
    code_fields(c, 4);
    code_small(c, &kind, 0, ET_RECORD_COUNT - 1);
    k->kind = (enum et_record_kind)kind;
    code_int(c, &k->ba, INT64_MIN, INT64_MAX);
    code_number(c, &k->t);
    code_text(c, k->text, sizeof k->text);
}

static void
code_numbers(struct codec *c, struct etd_number *list, int *n)
{
    code_count(c, n, ETD_NUMBERS);
    for (int i = 0; i < *n; i++) {
        code_fields(c, 2);
        code_text(c, list[i].name, sizeof list[i].name);
        code_number(c, &list[i].value);
    }
}

static void
code_parts(struct codec *c, struct etd_part **list, int *n, int *room, int most)
{
    code_count(c, n, most);
    if (!c->saving && *n > 0) {
        void *block;
        c->status = et_alloc(c->cx, (size_t)*n * sizeof **list, &block);
        if (c->status != ET_OK) {
            c->bad = true;
            *n = 0;
            return;
        }
        *list = block;
        *room = *n;
    }
    for (struct etd_part *p = *list; p < *list + *n; p++) {
        int trail = ETD_TRAIL;
        code_fields(c, 5);
        code_text(c, p->name, sizeof p->name);
        code_number(c, &p->t);
        code_int(c, &p->ba, INT64_MIN, INT64_MAX);
        code_numbers(c, p->number, &p->n);
        code_count(c, &trail, ETD_TRAIL);
        for (int i = 0; i < trail; i++) {
            double own = p->trail[i];
            code_number(c, &own);
            p->trail[i] = (float)own;
        }
    }
}

static void
code_eval(struct codec *c, struct etd_eval *v)
{
    code_fields(c, 4);
    code_text(c, v->label, sizeof v->label);
    code_number(c, &v->batch);
    code_number(c, &v->batches);
    code_flag(c, &v->running);
}

static void
code_tick(struct codec *c, struct etd_tick *t)
{
    code_fields(c, 3);
    code_number(c, &t->t);
    code_int(c, &t->ba, INT64_MIN, INT64_MAX);
    code_int(c, &t->sp, INT64_MIN, INT64_MAX);
}

static void
code_state(struct codec *c, struct etd_model *m)
{
    code_fields(c, 18);
    code_int(c, &m->seq, 0, INT64_MAX);
    code_number(c, &m->t);
    code_number(c, &m->from);
    code_int(c, &m->ep, INT64_MIN, INT64_MAX);
    code_int(c, &m->ba, INT64_MIN, INT64_MAX);
    code_int(c, &m->sp, INT64_MIN, INT64_MAX);
    code_int(c, &m->incarnation, 1, INT64_MAX);
    code_text(c, m->state, sizeof m->state);
    code_number(c, &m->state_since);
    code_numbers(c, m->length, &m->n_length);
    code_number(c, &m->epoch_t);
    code_int(c, &m->epoch_ba, INT64_MIN, INT64_MAX);
    code_number(c, &m->train_s);
    code_number(c, &m->eval_s);
    code_int(c, &m->n_evaluated, 0, INT64_MAX);
    int n = code_ring(c, &m->first_tick, &m->n_ticks, ETD_TICKS);
    for (int i = 0; i < n; i++)
        code_tick(c, &m->tick[(m->first_tick + i) % ETD_TICKS]);
    code_fields(c, sizeof m->finish / sizeof *m->finish);
    for (size_t i = 0; i < sizeof m->finish / sizeof *m->finish; i++)
        code_number(c, &m->finish[i]);
    code_int(c, &m->left_out, 0, INT64_MAX);
}

static void
code_model(struct codec *c, struct etd_model *m)
{
    int format = FORMAT;
    code_fields(c, 12);
    code_small(c, &format, FORMAT, FORMAT);
    code_state(c, m);
    code_int(c, &m->width, 1, INT64_MAX);
    code_fields(c, ETD_BINS);
    for (int i = 0; i < ETD_BINS; i++)
        code_axis(c, &m->axis[i]);
    code_count(c, &m->n_series, ETD_SERIES);
    for (int i = 0; i < m->n_series; i++)
        code_series(c, &m->series[i]);
    int n = code_ring(c, &m->first_event, &m->n_events, ETD_EVENTS);
    for (int i = 0; i < n; i++)
        code_event(c, &m->event[(m->first_event + i) % ETD_EVENTS]);
    code_int(c, &m->n_warnings, 0, INT64_MAX);
    code_int(c, &m->n_errors, 0, INT64_MAX);
    n = code_ring(c, &m->first_mark, &m->n_marks, ETD_MARKS);
    for (int i = 0; i < n; i++)
        code_mark(c, &m->mark[(m->first_mark + i) % ETD_MARKS]);
    code_parts(c, &m->rank, &m->n_ranks, &m->rank_room, ETD_RANKS);
    code_parts(c, &m->algorithm, &m->n_algorithms, &m->algorithm_room, ETD_ALGORITHMS);
    code_count(c, &m->n_evals, ETD_EVALS);
    for (int i = 0; i < m->n_evals; i++)
        code_eval(c, &m->eval[i]);
}

/* ---- whole snapshots ---- */

et_status
etd_model_save(const struct etd_model *m, char **out, size_t *n)
{
    struct codec c = {.cx = m->cx, .saving = true};
    msgpack_packer_init(&c.pack, &c, append);
    /* A codec that saves changes nothing of it. */
    code_model(&c, (struct etd_model *)m);
    *out = c.out;
    *n = c.used;
    if (!c.bad)
        return ET_OK;
    et_free(m->cx, c.out);
    *out = NULL;
    return c.status;
}

et_status
etd_model_load(struct etd_model *m, const char *bytes, size_t n)
{
    struct etd_model *fresh;
    struct codec c = {
        .cx = m->cx,
        .at = (const unsigned char *)bytes,
        .end = (const unsigned char *)bytes + n,
    };
    if (n > LONGEST)
        return ET_FAIL(m->cx, ET_EFORMAT, "a snapshot of %zu bytes exceeds %d", n,
                       LONGEST);
    ET_TRY(etd_model_new(m->cx, &fresh));
    code_model(&c, fresh);
    et_status status = c.status;
    if (status == ET_OK && (c.bad || c.at != c.end || !etd_model_adopt(fresh)))
        status = ET_FAIL(m->cx, ET_EFORMAT, "no snapshot: damaged at byte %td of %zu",
                         c.at - (const unsigned char *)bytes, n);
    if (status == ET_OK) {
        struct etd_model old = *m;
        *m = *fresh;
        *fresh = old;
    }
    etd_model_free(&fresh);
    return status;
}

et_status
etd_model_digest(const struct etd_model *m, unsigned char digest[16])
{
    char *bytes;
    size_t n;
    XXH128_canonical_t canonical;
    ET_TRY(etd_model_save(m, &bytes, &n));
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, n));
    memcpy(digest, canonical.digest, sizeof canonical.digest);
    et_free(m->cx, bytes);
    return ET_OK;
}
