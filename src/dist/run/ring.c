/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c: see ring.h.
 *
 * Each ring has a head, which the putter moves, and a tail, which the taker moves, both
 * counting up for ever; a slot is its number modulo the room. Every record carries its
 * place in the common order: the taker goes on with the ring whose next record has the
 * place that comes next, and ends where neither has it yet.
 *
 * Names are numbered when they are first put. As records of a kind have the same names
 * in the same order, the name behind the last one is nearly always the right guess. */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/seams.h"
#include "dist/run/ring.h"

enum {
    N = ETD_RING_NUMBERS,
    BUCKETS = 2 * ETD_RING_NAMES,
    BLOCK = 32, /* bytes of a name that are compared at once */
};

/* Putting costs mostly the cache lines that it takes back from the taker's processor,
 * some 20 ns each: so all but the numbers is one, of the numbers' names another. */
struct slot {
    _Alignas(64) uint64_t place; /* in the order of both rings, from 0 */
    double t;
    int64_t seq, ep, ba, sp;
    int32_t rank;
    uint16_t more; /* slots that follow it and are of the same record */
    uint8_t n;     /* numbers in this slot */
    uint8_t kind, level;
    bool has_text;
    _Alignas(64) uint16_t name[N];
    double value[N];
};

struct name {
    char text[ET_METRIC_NAME];
    int before;               /* blocks before the one with its end */
    uint64_t mask[BLOCK / 8]; /* of the bytes of that one that count, zero included */
};
_Static_assert(ET_METRIC_NAME % BLOCK == 0, "a name is blocks");

/* What one side writes stays out of the other's cache lines. */
struct lane {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    struct slot *slot;           /* [room] */
    char (*text)[ETD_RING_TEXT]; /* [room]; NULL: its records have none */
    uint64_t room;               /* a power of two */
    uint64_t seen;               /* putter's: a tail that is not above the true one */
};

struct etd_ring {
    struct et_ctx *cx;
    struct lane lane[2]; /* numbers; what is told once */
    uint64_t place;      /* putter's: of the next record */
    _Atomic uint64_t dropped, nameless;

    struct name *name;     /* [ETD_RING_NAMES]; read by the taker once published */
    int32_t *bucket;       /* putter's: 1 + number, 0 = free */
    int32_t n_names, last; /* putter's */

    uint64_t expected;          /* taker's: the place that comes next */
    struct et_log_entry *entry; /* taker's [ETD_RING_NAMES + N] */
    char (*own_text)[ETD_RING_TEXT];
};

static et_status
lane_init(struct et_ctx *cx, struct lane *l, uint64_t room, bool has_text)
{
    void *block;
    l->room = room;
    ET_TRY(et_alloc(cx, room * sizeof *l->slot, &block));
    l->slot = block;
    if (!has_text)
        return ET_OK;
    ET_TRY(et_alloc(cx, room * sizeof *l->text, &block));
    l->text = block;
    return ET_OK;
}

static et_status
fill(struct etd_ring *r)
{
    void *block;
    ET_TRY(lane_init(r->cx, &r->lane[0], ETD_RING_SLOTS, false));
    ET_TRY(lane_init(r->cx, &r->lane[1], ETD_RING_CRITICAL, true));
    ET_TRY(et_alloc(r->cx, ETD_RING_NAMES * sizeof *r->name, &block));
    r->name = block;
    ET_TRY(et_alloc(r->cx, BUCKETS * sizeof *r->bucket, &block));
    r->bucket = block;
    ET_TRY(et_alloc(r->cx, (ETD_RING_NAMES + N) * sizeof *r->entry, &block));
    r->entry = block;
    ET_TRY(et_alloc(r->cx, sizeof *r->own_text, &block));
    r->own_text = block;
    return ET_OK;
}

et_status
etd_ring_new(struct et_ctx *cx, struct etd_ring **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_ring *r = block;
    r->cx = cx;
    et_status status = fill(r);
    if (status != ET_OK)
        etd_ring_free(&r);
    *out = r;
    return status;
}

void
etd_ring_free(struct etd_ring **ring)
{
    struct etd_ring *r = *ring;
    *ring = NULL;
    if (!r)
        return;
    for (int i = 0; i < 2; i++) {
        et_free(r->cx, r->lane[i].slot);
        et_free(r->cx, r->lane[i].text);
    }
    et_free(r->cx, r->name);
    et_free(r->cx, r->bucket);
    et_free(r->cx, r->entry);
    et_free(r->cx, r->own_text);
    et_free(r->cx, r);
}

/* ---- putting ---- */

/* FNV-1a of what a name keeps. */
static uint32_t
hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (int i = 0; i < ET_METRIC_NAME - 1 && name[i]; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    return h;
}

/* The bits in which the words at A and B differ. */
static inline uint64_t
differ(const char *a, const char *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x ^ y;
}

/* Is TEXT, ET_METRIC_NAME bytes, the name K? It nearly always is, and names are short:
 * so all of a block is compared, without a branch, and then it is asked. */
static inline bool
is_name(const struct name *k, const char *text)
{
    const char *a = k->text, *b = text;
    for (int i = 0; i < k->before; i++, a += BLOCK, b += BLOCK)
        if (differ(a, b) | differ(a + 8, b + 8) | differ(a + 16, b + 16) |
            differ(a + 24, b + 24))
            return false;
    return ((differ(a, b) & k->mask[0]) | (differ(a + 8, b + 8) & k->mask[1]) |
            (differ(a + 16, b + 16) & k->mask[2]) |
            (differ(a + 24, b + 24) & k->mask[3])) == 0;
}

/* The number of NAME; -1: it is one too many. */
static int32_t
find_name(struct etd_ring *r, const char *name)
{
    uint32_t at = hash(name) % BUCKETS;
    for (; r->bucket[at]; at = (at + 1) % BUCKETS)
        if (strncmp(r->name[r->bucket[at] - 1].text, name, ET_METRIC_NAME - 1) == 0)
            return r->bucket[at] - 1;
    if (r->n_names == ETD_RING_NAMES)
        return -1;
    struct name *k = &r->name[r->n_names];
    size_t n = strnlen(name, ET_METRIC_NAME - 1);
    memcpy(k->text, name, n); /* was zero */
    k->before = (int)(n / BLOCK);
    memset(k->mask, 0xff, n % BLOCK + 1);
    r->bucket[at] = ++r->n_names;
    return r->n_names - 1;
}

static bool
is_critical(const struct et_record *r)
{
    return r->kind != ET_RECORD_BATCH && r->kind != ET_RECORD_METRIC &&
           r->kind != ET_RECORD_MEMORY && r->kind != ET_RECORD_THROUGHPUT &&
           r->kind != ET_RECORD_HEALTH && r->kind != ET_RECORD_ALGORITHM;
}

static void
count(_Atomic uint64_t *counter, uint64_t n)
{
    /* The putter alone writes it. */
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Numbers [FIRST, FIRST + N) of R that have a name into S. */
static void
put_numbers(struct etd_ring *ring, struct slot *s, const struct et_record *r, int first)
{
    int end = r->n < first + N ? r->n : first + N, n = 0;
    int32_t name = ring->last, n_names = ring->n_names;
    for (int i = first; i < end; i++) {
        const struct et_log_entry *e = &r->entry[i];
        name = name + 1 < n_names ? name + 1 : 0;
        if (n_names == 0 || !is_name(&ring->name[name], e->name)) {
            int32_t found = find_name(ring, e->name);
            if (found < 0) {
                count(&ring->nameless, 1);
                continue;
            }
            name = found;
            n_names = ring->n_names;
        }
        s->name[n] = (uint16_t)name;
        s->value[n++] = e->value;
    }
    ring->last = name;
    s->n = (uint8_t)n;
}

static void
put_text(struct lane *l, uint64_t at, struct slot *s, const char *text)
{
    s->has_text = l->text && text;
    if (!s->has_text)
        return;
    char *to = l->text[at & (l->room - 1)];
    size_t n = strnlen(text, ETD_RING_TEXT - 1);
    memcpy(to, text, n);
    to[n] = '\0';
}

bool
etd_ring_put(struct etd_ring *ring, const struct et_record *r)
{
    /* A text needs the lane that has room for texts. */
    struct lane *l = &ring->lane[is_critical(r) || r->text];
    uint64_t head = atomic_load_explicit(&l->head, memory_order_relaxed);
    uint64_t slots = r->n > N ? (uint64_t)(r->n + N - 1) / N : 1;
    if (head + slots - l->seen > l->room)
        l->seen = atomic_load_explicit(&l->tail, memory_order_acquire);
    if (head + slots - l->seen > l->room) {
        count(&ring->dropped, 1);
        return false;
    }
    for (uint64_t i = 0; i < slots; i++) {
        struct slot *s = &l->slot[(head + i) & (l->room - 1)];
        s->place = ring->place;
        s->t = r->t;
        s->seq = r->seq;
        s->ep = r->ep;
        s->ba = r->ba;
        s->sp = r->sp;
        s->kind = (uint8_t)r->kind;
        s->level = (uint8_t)r->level;
        s->rank = r->rank;
        s->more = (uint16_t)(slots - 1 - i);
        put_numbers(ring, s, r, (int)i * N);
        put_text(l, head + i, s, i == 0 ? r->text : NULL);
    }
    ring->place++;
    atomic_store_explicit(&l->head, head + slots, memory_order_release);
    return true;
}

/* ---- taking ---- */

static bool
take_from(struct etd_ring *ring, struct lane *l, struct et_record *out)
{
    uint64_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed);
    if (atomic_load_explicit(&l->head, memory_order_acquire) == tail ||
        l->slot[tail & (l->room - 1)].place != ring->expected)
        return false;
    const struct slot *s = &l->slot[tail & (l->room - 1)];
    *out = (struct et_record){
        .kind = (enum et_record_kind)s->kind,
        .t = s->t,
        .seq = s->seq,
        .ep = s->ep,
        .ba = s->ba,
        .sp = s->sp,
        .level = (enum et_log_level)s->level,
        .rank = s->rank,
        .entry = ring->entry,
    };
    if (s->has_text)
        out->text =
            memcpy(*ring->own_text, l->text[tail & (l->room - 1)], ETD_RING_TEXT);
    uint64_t slots = (uint64_t)s->more + 1;
    for (uint64_t i = 0; i < slots; i++) {
        s = &l->slot[(tail + i) & (l->room - 1)];
        for (int k = 0; k < s->n && out->n < ETD_RING_NAMES; k++) {
            struct et_log_entry *e = &ring->entry[out->n++];
            memcpy(e->name, ring->name[s->name[k]].text, ET_METRIC_NAME);
            e->value = s->value[k];
        }
    }
    ring->expected++;
    atomic_store_explicit(&l->tail, tail + slots, memory_order_release);
    return true;
}

bool
etd_ring_take(struct etd_ring *ring, struct et_record *out)
{
    return take_from(ring, &ring->lane[0], out) || take_from(ring, &ring->lane[1], out);
}

uint64_t
etd_ring_dropped(const struct etd_ring *ring)
{
    return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}

uint64_t
etd_ring_nameless(const struct etd_ring *ring)
{
    return atomic_load_explicit(&ring->nameless, memory_order_relaxed);
}
