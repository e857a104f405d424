/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c: what viewers are sent: a snapshot, then the records behind it.
 *
 * There are no queues for viewers. Each has a place in one ring of encoded frames, and
 * moves on when it has credit; one that has fallen out of the ring goes on with a new
 * snapshot, in which a series has one value where many were missed. So the hub's memory
 * is the ring and the snapshots that are under way, however many are slow. Snapshots
 * are shared: those who come within a second get the same one. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/library/facts.h"
#include "dist/hub/hub_parts.h"

enum {
    CHUNK = 60 << 10, /* bytes of a snapshot in a message */
    HELD = 24 << 20,  /* bytes of snapshots at once: then others wait */
    AT_ONCE = 512,    /* messages for one viewer before it is the next one's turn */
};
/* Messages that a viewer may send for each that it is sent, beside its rate: at least
 * every 128th it gives credit. */
static const double FRESH = 1; /* seconds for which a snapshot is handed to others */

/* ---- the ring ---- */

et_status
etd_backlog_init(struct etd_hub *h)
{
    void *block;
    ET_TRY(et_alloc(h->cx, sizeof *h->ring.slot * ETD_BACKLOG_SLOTS, &block));
    h->ring = (struct etd_backlog){.slot = block};
    h->digest_at = -1;
    return ET_OK;
}

static struct etd_backlog_slot *
slot_at(const struct etd_hub *h, int64_t position)
{
    return &h->ring.slot[position % ETD_BACKLOG_SLOTS];
}

static int64_t
slot_bytes(const struct etd_hub *h, int64_t position)
{
    return (int64_t)zmq_msg_size(&slot_at(h, position)->message);
}

static void
drop_oldest(struct etd_hub *h)
{
    zmq_msg_close(&slot_at(h, h->ring.from)->message);
    h->ring.from++;
}

void
etd_backlog_release(struct etd_hub *h)
{
    while (h->ring.slot && h->ring.from < h->ring.to)
        drop_oldest(h);
    et_free(h->cx, h->ring.slot);
    h->ring.slot = NULL;
}

static bool
is_too_full(const struct etd_hub *h)
{
    const struct etd_backlog *r = &h->ring;
    return r->to > r->from && (r->bytes - slot_at(h, r->from)->at > ETD_BACKLOG_BYTES ||
                               r->to - r->from > ETD_BACKLOG_MESSAGES);
}

/* What viewers lack here they get by a snapshot. */
static void
make_hole(struct etd_hub *h)
{
    while (h->ring.from < h->ring.to)
        drop_oldest(h);
    h->ring.from = ++h->ring.to;
}

void
etd_backlog_add(void *data, const struct et_record *r)
{
    struct etd_hub *h = data;
    struct etd_backlog *ring = &h->ring;
    const struct etd_head head = etd_hub_head(h, (enum etd_kind)r->kind);
    int from = 0;
    if (h->left >
        2 * ETD_BACKLOG_BYTES) { /* of a long log that is read for the first time */
        make_hole(h);
        return;
    }
    do {
        struct etd_backlog_slot *slot = slot_at(h, ring->to);
        bool first = from == 0;
        size_t n = etd_record_write(h->bytes, ETD_RECORD_BYTES, &head, r, &from);
        if (n == 0 || zmq_msg_init_size(&slot->message, n) != 0) {
            make_hole(h);
            return;
        }
        memcpy(zmq_msg_data(&slot->message), h->bytes, n);
        slot->seq = r->seq;
        slot->at = ring->bytes;
        slot->first = first;
        ring->bytes += (int64_t)n;
        ring->to++;
        if (ring->to - ring->from > ETD_BACKLOG_MESSAGES)
            drop_oldest(h);
    } while (from < r->n);
    while (is_too_full(h))
        drop_oldest(h);
}

/* The position of the first frame of record SEQ, which may be the next to come; -1: the
 * ring has it no more. */
static int64_t
find_position(const struct etd_hub *h, int64_t seq)
{
    int64_t low = h->ring.from, high = h->ring.to;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (slot_at(h, middle)->seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == h->ring.to) {
        int64_t last = etd_follow_model(h->follow)->seq;
        return seq == last + 1 ? low : -1;
    }
    return slot_at(h, low)->seq == seq && slot_at(h, low)->first ? low : -1;
}

/* ---- snapshots ---- */

static void
free_chunk(void *data, void *hint)
{
    atomic_size_t *held = hint;
    atomic_fetch_sub(held, CHUNK);
    free(data);
}

static void
release_snap(struct etd_hub *h, struct etd_snap **snap)
{
    struct etd_snap *s = *snap;
    *snap = NULL;
    if (!s || --s->users > 0)
        return;
    for (int i = 0; i < s->n; i++)
        zmq_msg_close(&s->message[i]);
    et_free(h->cx, s->message);
    et_free(h->cx, s);
}

/* The frame in h->bytes becomes the next message of S. */
static bool
add_message(struct etd_hub *h, struct etd_snap *s, size_t n, bool is_chunk)
{
    zmq_msg_t *m = &s->message[s->n];
    if (n == 0)
        return false;
    if (!is_chunk) {
        if (zmq_msg_init_size(m, n) != 0)
            return false;
        memcpy(zmq_msg_data(m), h->bytes, n);
        s->n++;
        return true;
    }
    void *copy = malloc(n);
    if (!copy)
        return false;
    memcpy(copy, h->bytes, n);
    atomic_fetch_add(&h->held, CHUNK);
    if (zmq_msg_init_data(m, copy, n, free_chunk, &h->held) != 0) {
        free_chunk(copy, &h->held);
        return false;
    }
    s->n++;
    return true;
}

static bool
fill_snap(struct etd_hub *h, struct etd_snap *s, const char *facts, size_t n_facts,
          const char *model, size_t n_model)
{
    struct etd_out o;
    struct etd_head head = etd_hub_head(h, ETD_SNAP_BEGIN);
    etd_begin(&o, h->bytes, sizeof h->bytes, &head, 4);
    etd_put_int(&o, "s", s->s);
    etd_put_int(&o, "bytes", (int64_t)n_model);
    etd_put_int(&o, "facts", (int64_t)n_facts);
    etd_put_bin(&o, "digest", h->digest, ETD_DIGEST);
    if (!add_message(h, s, etd_end(&o), false))
        return false;
    head.kind = ETD_SNAP_CHUNK;
    for (size_t at = 0, n; at < n_facts + n_model; at += n) {
        bool in_facts = at < n_facts;
        const char *from = in_facts ? facts + at : model + (at - n_facts);
        size_t left = in_facts ? n_facts - at : n_facts + n_model - at;
        n = left < CHUNK ? left : CHUNK;
        etd_begin(&o, h->bytes, sizeof h->bytes, &head, 2);
        etd_put_int(&o, "at", (int64_t)at);
        etd_put_bin(&o, "data", from, n);
        if (!add_message(h, s, etd_end(&o), true))
            return false;
    }
    head.kind = ETD_SNAP_END;
    etd_begin(&o, h->bytes, sizeof h->bytes, &head, 0);
    return add_message(h, s, etd_end(&o), false);
}

bool
etd_hub_digest(struct etd_hub *h, unsigned char digest[ETD_DIGEST])
{
    const struct etd_model *m = etd_follow_model(h->follow);
    if (h->digest_at != m->seq) {
        if (etd_model_digest(m, h->digest) != ET_OK) {
            et_error_clear(h->cx);
            return false;
        }
        h->digest_at = m->seq;
    }
    memcpy(digest, h->digest, ETD_DIGEST);
    return true;
}

static struct etd_snap *
make_snap(struct etd_hub *h)
{
    const struct etd_model *m = etd_follow_model(h->follow);
    unsigned char digest[ETD_DIGEST];
    char *model = NULL, *facts = NULL;
    size_t n_model = 0;
    void *block = NULL, *messages = NULL;
    json_t *json = NULL;
    if (eti_facts_read(h->cx, h->directory, &json) == ET_OK) {
        eti_facts_make_true(json);
        facts = json_dumps(json, JSON_COMPACT);
        json_decref(json);
    }
    et_error_clear(h->cx);
    size_t n_facts = facts ? strlen(facts) : 0;
    struct etd_snap *s = NULL;
    if (etd_hub_digest(h, digest) && etd_model_save(m, &model, &n_model) == ET_OK &&
        n_model <= ETD_SNAPSHOT_BYTES && et_alloc(h->cx, sizeof *s, &block) == ET_OK &&
        et_alloc(h->cx, sizeof *s->message * (4 + n_facts / CHUNK + n_model / CHUNK),
                 &messages) == ET_OK) {
        s = block;
        *s = (struct etd_snap){.users = 1, .s = m->seq, .message = messages};
        if (!fill_snap(h, s, facts, n_facts, model, n_model))
            release_snap(h, &s);
    } else {
        et_free(h->cx, block);
    }
    et_error_clear(h->cx);
    et_free(h->cx, model);
    free(facts);
    return s;
}

/* The newest snapshot, or another where that is old; NULL: there is no room for one. */
static struct etd_snap *
find_snap(struct etd_hub *h)
{
    double now = eti_monotonic(h->cx);
    bool fresh =
        h->snap && now - h->snap_at < FRESH && find_position(h, h->snap->s + 1) >= 0;
    if (fresh)
        return h->snap;
    release_snap(h, &h->snap);
    if (atomic_load(&h->held) >= HELD)
        return NULL;
    h->snap = make_snap(h);
    h->snap_at = now;
    return h->snap;
}

/* ---- viewers ---- */

void
etd_stream_forget(struct etd_hub *h, struct etd_peer *p)
{
    release_snap(h, &p->snap);
    p->wants_snap = false;
}

/* P goes on at POSITION. */
static void
set_place(const struct etd_hub *h, struct etd_peer *p, int64_t position)
{
    p->next = position;
    p->at = position >= 0 && position < h->ring.to ? slot_at(h, position)->at
                                                   : h->ring.bytes;
    p->moved = eti_monotonic(h->cx);
}

bool
etd_stream_begin(struct etd_hub *h, struct etd_peer *p, int64_t after)
{
    int64_t position =
        after >= 0 && after < INT64_MAX ? find_position(h, after + 1) : -1;
    etd_stream_forget(h, p);
    p->behind_since = 0;
    set_place(h, p, position);
    p->wants_snap = position < 0;
    return position >= 0;
}

void
etd_stream_rewind(struct etd_hub *h, struct etd_peer *p, int64_t from)
{
    if (!p->snap && !p->wants_snap)
        (void)etd_stream_begin(h, p, from > 0 ? from - 1 : -1);
}

void
etd_stream_end(struct etd_hub *h)
{
    release_snap(h, &h->snap);
}

int64_t
etd_stream_behind(const struct etd_hub *h, const struct etd_peer *p)
{
    bool counts = p->streams && !p->snap && !p->wants_snap;
    return counts ? h->ring.bytes - p->at : 0;
}

/* Sends the rest of P's snapshot. True: it is through. */
static bool
pump_snap(struct etd_hub *h, struct etd_peer *p)
{
    struct etd_snap *s = p->snap;
    for (; p->snap_next < s->n; p->snap_next++) {
        bool counts = p->snap_next > 0 && p->snap_next < s->n - 1;
        if (counts && p->credit <= 0)
            return false;
        if (!etd_hub_send_message(h, p, &s->message[p->snap_next]))
            return false;
        p->credit -= counts;
        p->messages.tokens += counts * ETD_EARNED;
        p->moved = eti_monotonic(h->cx);
    }
    set_place(h, p, find_position(h, s->s + 1));
    release_snap(h, &p->snap);
    p->wants_snap = p->next < 0;
    return !p->wants_snap;
}

static bool
begin_snap(struct etd_hub *h, struct etd_peer *p)
{
    struct etd_snap *s = p->credit > 0 ? find_snap(h) : NULL;
    if (!s)
        return false;
    s->users++;
    p->snap = s;
    p->snap_next = 0;
    p->moved = eti_monotonic(h->cx);
    p->wants_snap = false;
    return true;
}

void
etd_stream_pump(struct etd_hub *h, struct etd_peer *p)
{
    if (!etd_hub_flush(h, p) || !p->streams)
        return;
    if (!p->snap && !p->wants_snap && p->next < h->ring.from && p->credit > 0)
        p->wants_snap = true; /* it has fallen out of the ring */
    if (p->wants_snap && !begin_snap(h, p))
        return;
    if (p->snap && !pump_snap(h, p))
        return;
    for (int i = 0; p->next < h->ring.to && p->next >= h->ring.from; i++) {
        if (p->credit <= 0)
            return;
        if (i == AT_ONCE ||
            !etd_hub_send_message(h, p, &slot_at(h, p->next)->message)) {
            h->blocked = true;
            return;
        }
        p->credit--;
        p->messages.tokens += ETD_EARNED;
        p->at = slot_at(h, p->next)->at + slot_bytes(h, p->next);
        p->next++;
    }
}
