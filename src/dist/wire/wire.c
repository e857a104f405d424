/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c: frames: see wire.h. Anybody may have written the bytes that are read: a
 * message is checked as a whole first, and the functions that then read it cannot leave
 * it. */
#include "config.h"

#include "dist/wire/wire.h"

#include <limits.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/base/well_formed.h"

enum { HEAD = 10 }; /* elements of a frame */

static const struct {
    const char *name;
    size_t bytes;
} talk[] = {
#define TALK_ROW(code, bytes) {#code, bytes},
    ETD_TALK_MAP(TALK_ROW)
#undef TALK_ROW
};

const char *
etd_kind_name(enum etd_kind kind)
{
    if ((int)kind < ET_RECORD_COUNT)
        return et_record_name((enum et_record_kind)kind);
    return kind < ETD_KIND_COUNT ? talk[kind - ET_RECORD_COUNT].name : "?";
}

size_t
etd_kind_bytes(enum etd_kind kind)
{
    bool is_talk = (int)kind >= ET_RECORD_COUNT && kind < ETD_KIND_COUNT;
    return is_talk ? talk[kind - ET_RECORD_COUNT].bytes : ETD_STREAM_BYTES;
}

/* ---- writing ---- */

static int
append(void *data, const char *bytes, size_t n)
{
    struct etd_out *o = data;
    if (o->full || n > o->room - o->used) {
        o->full = true;
        return -1;
    }
    memcpy(o->bytes + o->used, bytes, n);
    o->used += n;
    return 0;
}

static msgpack_packer
packer(struct etd_out *o)
{
    msgpack_packer k;
    msgpack_packer_init(&k, o, append);
    return k;
}

/* What does not fit is known by o->full, whatever a packing call returned. */
static void
put_key(struct etd_out *o, const char *key)
{
    msgpack_packer k = packer(o);
    o->full = o->full || o->keys == 0;
    o->keys--;
    (void)msgpack_pack_str_with_body(&k, key, strlen(key));
}

void
etd_begin(struct etd_out *o, void *bytes, size_t room, const struct etd_head *head,
          int n_keys)
{
    *o = (struct etd_out){
        .bytes = bytes,
        .room = room < etd_kind_bytes(head->kind) ? room : etd_kind_bytes(head->kind),
        .keys = n_keys,
        .full = n_keys > ETD_KEYS || head->kind >= ETD_KIND_COUNT,
    };
    msgpack_packer k = packer(o);
    const char *kind = etd_kind_name(head->kind);
    (void)msgpack_pack_array(&k, HEAD);
    (void)msgpack_pack_int(&k, ETD_MAJOR);
    (void)msgpack_pack_int(&k, ETD_MINOR);
    (void)msgpack_pack_str_with_body(&k, kind, strlen(kind));
    (void)msgpack_pack_bin_with_body(&k, head->run, ETD_RUN_ID);
    (void)msgpack_pack_int64(&k, head->incarnation);
    (void)msgpack_pack_int64(&k, head->hseq);
    (void)msgpack_pack_int(&k, head->rank);
    (void)msgpack_pack_int64(&k, head->rseq);
    (void)msgpack_pack_int64(&k, head->t_mono_ns);
    (void)msgpack_pack_map(&k, (size_t)n_keys);
}

void
etd_put_int(struct etd_out *o, const char *key, int64_t value)
{
    msgpack_packer k = packer(o);
    put_key(o, key);
    (void)msgpack_pack_int64(&k, value);
}

void
etd_put_double(struct etd_out *o, const char *key, double value)
{
    msgpack_packer k = packer(o);
    put_key(o, key);
    (void)msgpack_pack_double(&k, value);
}

void
etd_put_bool(struct etd_out *o, const char *key, bool value)
{
    msgpack_packer k = packer(o);
    put_key(o, key);
    (void)(value ? msgpack_pack_true(&k) : msgpack_pack_false(&k));
}

/* Bytes of TEXT of at most MOST, which end with a character. */
static size_t
whole_characters(const char *text, size_t most)
{
    size_t n = strlen(text), at = 0;
    uint32_t c;
    while (at < n) {
        int length = eti_utf8_decode(text + at, n - at, &c);
        size_t step = length > 0 ? (size_t)length : 1;
        if (at + step > most)
            break;
        at += step;
    }
    return at;
}

void
etd_put_text(struct etd_out *o, const char *key, const char *text)
{
    msgpack_packer k = packer(o);
    put_key(o, key);
    (void)msgpack_pack_str_with_body(&k, text, whole_characters(text, ETD_STRING));
}

void
etd_put_bin(struct etd_out *o, const char *key, const void *bytes, size_t n)
{
    msgpack_packer k = packer(o);
    put_key(o, key);
    (void)msgpack_pack_bin_with_body(&k, bytes, n);
}

static void
put_list(struct etd_out *o, const char *key, int n)
{
    msgpack_packer k = packer(o);
    put_key(o, key);
    o->full = o->full || n > ETD_ARRAY;
    (void)msgpack_pack_array(&k, (size_t)n);
}

void
etd_put_ints(struct etd_out *o, const char *key, const int64_t *value, int n)
{
    msgpack_packer k = packer(o);
    put_list(o, key, n);
    for (int i = 0; i < n; i++)
        (void)msgpack_pack_int64(&k, value[i]);
}

void
etd_put_doubles(struct etd_out *o, const char *key, const double *value, int n)
{
    msgpack_packer k = packer(o);
    put_list(o, key, n);
    for (int i = 0; i < n; i++)
        (void)msgpack_pack_double(&k, value[i]);
}

void
etd_put_texts(struct etd_out *o, const char *key, const char *const *value, int n)
{
    msgpack_packer k = packer(o);
    put_list(o, key, n);
    for (int i = 0; i < n; i++)
        (void)msgpack_pack_str_with_body(&k, value[i],
                                         whole_characters(value[i], ETD_STRING));
}

void
etd_put_map(struct etd_out *o, const char *key, int n_keys)
{
    msgpack_packer k = packer(o);
    put_key(o, key);
    o->full = o->full || n_keys > ETD_KEYS;
    o->keys += n_keys;
    (void)msgpack_pack_map(&k, (size_t)n_keys);
}

size_t
etd_end(struct etd_out *o)
{
    return o->full || o->keys != 0 ? 0 : o->used;
}

/* ---- looking through ---- */

static const char *
past_limits(unsigned char first, const struct eti_msgpack_item *item)
{
    bool is_text = (first & 0xe0) == 0xa0 || (first >= 0xd9 && first <= 0xdb);
    bool is_map = (first & 0xf0) == 0x80 || first == 0xde || first == 0xdf;
    if (is_text && item->payload > ETD_STRING)
        return "a text of more than 1 KiB";
    if (is_map && item->elements > 2 * ETD_KEYS)
        return "a map of more than 64 keys";
    if (!is_map && item->elements > ETD_ARRAY)
        return "a list of more than 4,096 elements";
    return NULL;
}

/* Is all of a message there, within the limits? *AT is where it is not. */
static const char *
look_through(const unsigned char *p, size_t n, size_t *at)
{
    size_t left[ETD_DEPTH + 1] = {1}; /* elements to come, of each list that is open */
    int depth = 0;
    *at = 0;
    while (depth >= 0) {
        struct eti_msgpack_item item;
        if (left[depth] == 0) {
            depth--;
            continue;
        }
        left[depth]--;
        if (*at == n || !eti_msgpack_item_read(p + *at, n - *at, &item))
            return *at == n ? "it ends too early" : "no msgpack";
        size_t rest = n - *at;
        if (item.header > rest || item.payload > rest - item.header)
            return "a length past its end";
        if (item.elements > rest - item.header - item.payload)
            return "a count past its end";
        const char *why = past_limits(p[*at], &item);
        if (why)
            return why;
        if (item.elements > 0 && depth == ETD_DEPTH)
            return "deeper than 8";
        *at += item.header + item.payload;
        if (item.elements > 0)
            left[++depth] = item.elements;
    }
    return *at == n ? NULL : "bytes behind its end";
}

/* ---- reading ---- */

static uint64_t
big_endian(const unsigned char *p, size_t n)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++)
        x = x << 8 | p[i];
    return x;
}

/* Numbers and the rest without a payload to point to. */
static void
read_scalar(const unsigned char *p, size_t n, struct etd_value *out)
{
    unsigned char first = p[0];
    uint64_t x = big_endian(p + 1, n);
    out->type = ETD_IS_INT;
    if (first < 0x80 || first >= 0xe0) {
        out->i = first < 0x80 ? first : (int64_t)first - 256;
    } else if (first >= 0xcc && first <= 0xcf) {
        out->i = (int64_t)x;
        out->type = x > INT64_MAX ? ETD_IS_NIL : ETD_IS_INT;
    } else if (first >= 0xd0 && first <= 0xd3) {
        int shift = 64 - 8 * (int)n;
        out->i = (int64_t)(x << shift) >> shift;
    } else if (first == 0xc2 || first == 0xc3) {
        out->type = ETD_IS_BOOL;
        out->i = first == 0xc3;
    } else if (first == 0xca) {
        uint32_t bits = (uint32_t)x;
        float f;
        memcpy(&f, &bits, sizeof f);
        out->type = ETD_IS_DOUBLE;
        out->d = (double)f;
    } else if (first == 0xcb) {
        out->type = ETD_IS_DOUBLE;
        memcpy(&out->d, &x, sizeof out->d);
    } else {
        out->type = ETD_IS_NIL;
    }
    if (out->type == ETD_IS_INT)
        out->d = (double)out->i;
}

/* Bytes of the item at P and of all in it: it has been looked through. */
static const unsigned char *
behind(const unsigned char *p, const unsigned char *end)
{
    size_t left = 1;
    for (struct eti_msgpack_item item; left > 0 && p < end; left += item.elements) {
        if (!eti_msgpack_item_read(p, (size_t)(end - p), &item) ||
            item.header + item.payload > (size_t)(end - p))
            return end;
        p += item.header + item.payload;
        left--;
    }
    return p;
}

void
etd_next(const unsigned char **at, const unsigned char *end, struct etd_value *out)
{
    const unsigned char *p = *at;
    struct eti_msgpack_item item;
    *out = (struct etd_value){.type = ETD_IS_NIL};
    if (p >= end || !eti_msgpack_item_read(p, (size_t)(end - p), &item))
        return;
    unsigned char first = p[0];
    const unsigned char *inside = p + item.header;
    if ((first & 0xf0) == 0x80 || first == 0xde || first == 0xdf) {
        out->type = ETD_IS_MAP;
        out->map = (struct etd_map){inside, end, (int)(item.elements / 2)};
    } else if ((first & 0xf0) == 0x90 || first == 0xdc || first == 0xdd) {
        out->type = ETD_IS_LIST;
        out->n = item.elements;
        out->at = inside;
    } else if ((first & 0xe0) == 0xa0 || (first >= 0xd9 && first <= 0xdb) ||
               (first >= 0xc4 && first <= 0xc6)) {
        out->type = first >= 0xc4 && first <= 0xc6 ? ETD_IS_BIN : ETD_IS_TEXT;
        out->bytes = (const char *)inside;
        out->n = item.payload;
    } else {
        read_scalar(p, item.payload, out);
    }
    *at = behind(p, end);
}

static bool
is_text(const struct etd_value *v, const char *text)
{
    return v->type == ETD_IS_TEXT && v->n == strlen(text) &&
           memcmp(v->bytes, text, v->n) == 0;
}

static enum etd_kind
find_kind(const struct etd_value *v)
{
    int kind = 0;
    while (kind < ETD_KIND_COUNT && !is_text(v, etd_kind_name((enum etd_kind)kind)))
        kind++;
    return (enum etd_kind)kind;
}

static const char *
read_head(const unsigned char **at, const unsigned char *end, struct etd_head *h)
{
    struct etd_value v;
    int64_t *const number[] = {&h->incarnation, &h->hseq, NULL, &h->rseq,
                               &h->t_mono_ns};
    etd_next(at, end, &v);
    if (v.type != ETD_IS_TEXT)
        return "no text for a kind";
    h->kind = find_kind(&v);
    etd_next(at, end, &v);
    if (v.type != ETD_IS_BIN || v.n != ETD_RUN_ID)
        return "no 16 bytes for a run";
    memcpy(h->run, v.bytes, ETD_RUN_ID);
    for (int i = 0; i < 5; i++) {
        etd_next(at, end, &v);
        if (v.type != ETD_IS_INT || v.i < 0 || (!number[i] && v.i > INT_MAX))
            return "no whole number from 0 on";
        if (number[i])
            *number[i] = v.i;
        else
            h->rank = (int)v.i;
    }
    return NULL;
}

static et_status
read_frame(const unsigned char *p, size_t n, struct etd_frame *out,
           struct etd_fault *fault)
{
    const unsigned char *end = p + n, *at = p;
    struct etd_value v, major, minor;
    fault->at = 0;
    fault->why = "no frame";
    etd_next(&at, end, &v);
    at = v.at;
    if (v.type != ETD_IS_LIST || v.n < 2)
        return ET_EFORMAT;
    etd_next(&at, end, &major);
    etd_next(&at, end, &minor);
    if (major.type != ETD_IS_INT || minor.type != ETD_IS_INT || major.i < 0 ||
        minor.i < 0 || major.i > INT_MAX || minor.i > INT_MAX)
        return ET_EFORMAT;
    out->head.major = (int)major.i;
    out->head.minor = (int)minor.i;
    fault->why = "another major version";
    if (out->head.major != ETD_MAJOR)
        return ET_ENOTSUP;
    fault->why = "a frame has 10 elements";
    if (v.n != HEAD)
        return ET_EFORMAT;
    fault->why = read_head(&at, end, &out->head);
    fault->at = (size_t)(at - p);
    if (fault->why)
        return ET_EFORMAT;
    etd_next(&at, end, &v);
    fault->why = "no map for a body";
    if (v.type != ETD_IS_MAP)
        return ET_EFORMAT;
    out->body = v.map;
    if (n <= etd_kind_bytes(out->head.kind))
        return ET_OK;
    fault->why = "longer than a message of its kind";
    return ET_EFORMAT;
}

et_status
etd_read(const void *bytes, size_t n, struct etd_frame *out, struct etd_fault *fault)
{
    *out = (struct etd_frame){.head = {.kind = ETD_KIND_COUNT}};
    *fault = (struct etd_fault){0};
    if (n > ETD_CHUNK_BYTES) {
        fault->why = "longer than any message";
        return ET_EFORMAT;
    }
    fault->why = look_through(bytes, n, &fault->at);
    return fault->why ? ET_EFORMAT : read_frame(bytes, n, out, fault);
}

bool
etd_find(const struct etd_map *m, const char *key, struct etd_value *out)
{
    const unsigned char *at = m->at;
    for (int i = 0; i < m->n; i++) {
        struct etd_value name;
        etd_next(&at, m->end, &name);
        etd_next(&at, m->end, out);
        if (is_text(&name, key))
            return true;
    }
    *out = (struct etd_value){.type = ETD_IS_NIL};
    return false;
}

int64_t
etd_get_int(const struct etd_map *m, const char *key, int64_t otherwise)
{
    struct etd_value v;
    return etd_find(m, key, &v) && v.type == ETD_IS_INT ? v.i : otherwise;
}

double
etd_get_double(const struct etd_map *m, const char *key, double otherwise)
{
    struct etd_value v;
    bool is_number =
        etd_find(m, key, &v) && (v.type == ETD_IS_DOUBLE || v.type == ETD_IS_INT);
    return is_number ? v.d : otherwise;
}

bool
etd_get_bool(const struct etd_map *m, const char *key, bool otherwise)
{
    struct etd_value v;
    return etd_find(m, key, &v) && v.type == ETD_IS_BOOL ? v.i != 0 : otherwise;
}

char *
etd_get_text(const struct etd_map *m, const char *key, char *buf, size_t size)
{
    struct etd_value v;
    size_t n = etd_find(m, key, &v) && v.type == ETD_IS_TEXT ? v.n : 0;
    n = n < size ? n : size - 1;
    if (n > 0)
        memcpy(buf, v.bytes, n);
    buf[n] = '\0';
    return buf;
}

bool
etd_get_id(const struct etd_map *m, const char *key, unsigned char *out, size_t n)
{
    struct etd_value v;
    if (!etd_find(m, key, &v) || v.type != ETD_IS_BIN || v.n != n)
        return false;
    memcpy(out, v.bytes, n);
    return true;
}

bool
etd_run_id(const char *text, unsigned char id[ETD_RUN_ID])
{
    const size_t n = 2 * (size_t)ETD_RUN_ID;
    if (!text || strlen(text) != n || strspn(text, "0123456789abcdef") != n)
        return false;
    for (int i = 0; i < ETD_RUN_ID; i++) {
        unsigned byte = 0;
        (void)sscanf(text + 2 * i, "%2x", &byte);
        id[i] = (unsigned char)byte;
    }
    return true;
}

int
etd_get_doubles(const struct etd_map *m, const char *key, double *out, int room)
{
    struct etd_value v, x;
    int n = 0;
    if (!etd_find(m, key, &v) || v.type != ETD_IS_LIST)
        return 0;
    for (const unsigned char *at = v.at; n < room && (size_t)n < v.n; n++) {
        etd_next(&at, m->end, &x);
        if (x.type != ETD_IS_DOUBLE && x.type != ETD_IS_INT)
            break;
        out[n] = x.d;
    }
    return n;
}

int
etd_get_ints(const struct etd_map *m, const char *key, int64_t *out, int room)
{
    struct etd_value v, x;
    int n = 0;
    if (!etd_find(m, key, &v) || v.type != ETD_IS_LIST)
        return 0;
    for (const unsigned char *at = v.at; n < room && (size_t)n < v.n; n++) {
        etd_next(&at, m->end, &x);
        if (x.type != ETD_IS_INT)
            break;
        out[n] = x.i;
    }
    return n;
}
