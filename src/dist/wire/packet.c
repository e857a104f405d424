/* SPDX-License-Identifier: Apache-2.0 */
/* packet.c: see packet.h. A record's body:
 *
 *     struct head, text [text_n, zero included], { length u8, name, value f64 } [n] */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dist/wire/packet.h"

void
etd_bytes_free(struct etd_bytes *b)
{
    free(b->at);
    *b = (struct etd_bytes){0};
}

/* Room for N more behind what is there; false: memory is out. */
static bool
reserve(struct etd_bytes *b, size_t n)
{
    size_t room = b->room ? b->room : 4096;
    if (b->n + n <= b->room)
        return true;
    while (room < b->n + n)
        room *= 2;
    char *at = realloc(b->at, room);
    if (!at) {
        b->failed = true;
        return false;
    }
    b->at = at;
    b->room = room;
    return true;
}

void
etd_bytes_add(struct etd_bytes *b, const void *bytes, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->at + b->n, bytes, n);
    b->n += n;
}

void
etd_bytes_drop(struct etd_bytes *b, size_t n)
{
    b->n -= n;
    if (b->n)
        memmove(b->at, b->at + n, b->n);
}

/* ---- writing ---- */

/* Begins a packet; its length comes with finish(). Returns where it begins. */
static size_t
begin(struct etd_bytes *b, enum etd_packet_kind kind)
{
    size_t from = b->n;
    const char head[ETD_PACKET_HEAD] = {0, 0, 0, 0, (char)kind};
    etd_bytes_add(b, head, sizeof head);
    return from;
}

/* A packet that does not fit, or is longer than a reader takes, is left out whole. */
static void
finish(struct etd_bytes *b, size_t from)
{
    size_t n = b->n - from;
    if (b->failed || n > ETD_PACKET_MAX) {
        b->n = from;
        b->failed = false;
        return;
    }
    uint32_t length = (uint32_t)(n - sizeof length);
    memcpy(b->at + from, &length, sizeof length);
}

void
etd_packet_add(struct etd_bytes *b, enum etd_packet_kind kind, const void *body,
               size_t n)
{
    size_t from = begin(b, kind);
    etd_bytes_add(b, body, n);
    finish(b, from);
}

void
etd_packet_add_line(struct etd_bytes *b, enum et_log_level level, const char *text)
{
    size_t from = begin(b, ETD_PACKET_LINE);
    const unsigned char byte = (unsigned char)level;
    etd_bytes_add(b, &byte, 1);
    etd_bytes_add(b, text, strlen(text));
    finish(b, from);
}

struct head {
    double t;
    int64_t seq, ep, ba, sp;
    int32_t kind, level, rank, n, text_n;
    int32_t none; /* where padding would be, which nobody sets and which is sent */
};

/* There is room for them. */
static void
add_numbers(struct etd_bytes *b, const struct et_record *r)
{
    char *to = b->at + b->n;
    for (const struct et_log_entry *e = r->entry; e < r->entry + r->n; e++) {
        size_t n = strlen(e->name);
        *to++ = (char)n;
        memcpy(to, e->name, n);
        memcpy(to + n, &e->value, sizeof e->value);
        to += n + sizeof e->value;
    }
    b->n = (size_t)(to - b->at);
}

void
etd_packet_add_record(struct etd_bytes *b, const struct et_record *r)
{
    size_t from = begin(b, ETD_PACKET_RECORD);
    const struct head h = {
        .t = r->t,
        .seq = r->seq,
        .ep = r->ep,
        .ba = r->ba,
        .sp = r->sp,
        .kind = (int32_t)r->kind,
        .level = (int32_t)r->level,
        .rank = r->rank,
        .n = r->n,
        .text_n = r->text ? (int32_t)strlen(r->text) + 1 : 0,
    };
    etd_bytes_add(b, &h, sizeof h);
    etd_bytes_add(b, r->text, (size_t)h.text_n);
    if (reserve(b, (size_t)r->n * (ET_METRIC_NAME + sizeof(double))))
        add_numbers(b, r);
    finish(b, from);
}

/* ---- reading ---- */

int
etd_packet_next(const char *at, size_t n, struct etd_packet *out, size_t *used)
{
    uint32_t length;
    if (n < sizeof length)
        return 0;
    memcpy(&length, at, sizeof length);
    if (length < 1 || length > ETD_PACKET_MAX)
        return -1;
    if (n < sizeof length + length)
        return 0;
    *out = (struct etd_packet){
        .kind = (enum etd_packet_kind)(unsigned char)at[4],
        .body = at + ETD_PACKET_HEAD,
        .n = length - 1,
    };
    *used = sizeof length + length;
    return 1;
}

/* Copies N bytes from *AT, which END bounds. */
static bool
take(const char **at, const char *end, void *out, size_t n)
{
    if ((size_t)(end - *at) < n)
        return false;
    memcpy(out, *at, n);
    *at += n;
    return true;
}

bool
etd_packet_record(const struct etd_packet *f, struct et_log_entry *entry, int room,
                  struct et_record *out)
{
    struct head h;
    const char *at = f->body, *end = f->body + f->n;
    if (!take(&at, end, &h, sizeof h) || h.kind < 0 || h.kind >= ET_RECORD_COUNT ||
        h.level < ET_LOG_DEBUG || h.level > ET_LOG_ERROR || h.rank < 0 || h.n < 0 ||
        h.n > room || h.text_n < 0 || h.text_n > end - at ||
        (h.text_n > 0 && at[h.text_n - 1] != '\0'))
        return false;
    const char *text = h.text_n > 0 ? at : NULL;
    at += h.text_n;
    for (int i = 0; i < h.n; i++) {
        unsigned char length;
        if (!take(&at, end, &length, 1) || length >= ET_METRIC_NAME ||
            !take(&at, end, entry[i].name, length))
            return false;
        entry[i].name[length] = '\0';
        if (!take(&at, end, &entry[i].value, sizeof(double)))
            return false;
    }
    *out = (struct et_record){
        .kind = (enum et_record_kind)h.kind,
        .t = h.t,
        .seq = h.seq,
        .ep = h.ep,
        .ba = h.ba,
        .sp = h.sp,
        .text = text,
        .level = (enum et_log_level)h.level,
        .rank = h.rank,
        .entry = entry,
        .n = h.n,
    };
    return true;
}
