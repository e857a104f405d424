/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c: the payload of a record of events.log (format: events.h), read in one
 * pass.
 *
 * A log of a day has 10^8 numbers, so nothing is built of them: a cursor goes over the
 * bytes once, and numbers end up where the caller reads them. Names are copied only
 * where they differ from those of the record before. Whatever is not known is passed
 * over, item by item; nothing is read past the end, and no count is believed that the
 * bytes left could not hold. */
#include "config.h"

#include <endian.h>
#include <limits.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/well_formed.h"
#include "core/journal/events_read.h"
#include "core/loggers/spans.h"

struct bytes {
    const unsigned char *at, *end;
};

static size_t
left(const struct bytes *b)
{
    return (size_t)(b->end - b->at);
}

/* Passes over one item with all that is in it: false where it is not all there. */
static bool
skip(struct bytes *b)
{
    size_t items = 1;
    while (items > 0) {
        struct eti_msgpack_item item;
        if (left(b) == 0 || !eti_msgpack_item_read(b->at, left(b), &item) ||
            item.header > left(b) || item.payload > left(b) - item.header)
            return false;
        b->at += item.header + item.payload;
        if (item.elements > left(b))
            return false;
        items += item.elements - 1;
    }
    return true;
}

/* Each of these takes the next item if it is of that type, and else leaves it. */

static bool
take_text(struct bytes *b, const char **text, size_t *n)
{
    struct eti_msgpack_item item;
    if (left(b) == 0)
        return false;
    unsigned char first = b->at[0];
    if ((first & 0xe0) == 0xa0)
        item = (struct eti_msgpack_item){.header = 1, .payload = first & 31};
    else if (first < 0xd9 || first > 0xdb ||
             !eti_msgpack_item_read(b->at, left(b), &item) || item.header > left(b))
        return false;
    if (item.payload > left(b) - item.header)
        return false;
    *text = (const char *)b->at + item.header;
    *n = item.payload;
    b->at += item.header + item.payload;
    return true;
}

static bool
take_number(struct bytes *b, double *out)
{
    uint64_t bits;
    uint32_t few;
    float narrow;
    if (left(b) >= 9 && b->at[0] == 0xcb) {
        memcpy(&bits, b->at + 1, sizeof bits);
        bits = be64toh(bits);
        memcpy(out, &bits, sizeof bits);
        b->at += 9;
        return true;
    }
    if (left(b) < 5 || b->at[0] != 0xca)
        return false;
    memcpy(&few, b->at + 1, sizeof few);
    few = be32toh(few);
    memcpy(&narrow, &few, sizeof few);
    *out = (double)narrow;
    b->at += 5;
    return true;
}

/* A whole number from 0 on. */
static bool
take_count(struct bytes *b, int64_t *out)
{
    struct eti_msgpack_item item;
    uint64_t x = 0;
    if (left(b) == 0 || !eti_msgpack_item_read(b->at, left(b), &item))
        return false;
    unsigned char first = b->at[0];
    bool is_signed = first >= 0xd0 && first <= 0xd3;
    if (first < 0x80)
        x = first;
    else if ((first < 0xcc || first > 0xd3) || item.payload > left(b) - item.header)
        return false;
    else if (is_signed && b->at[1] & 0x80)
        return false;
    for (size_t i = 0; i < item.payload; i++)
        x = x << 8 | b->at[1 + i];
    if (x > INT64_MAX)
        return false;
    *out = (int64_t)x;
    b->at += item.header + item.payload;
    return true;
}

/* The header of a list or map: N elements follow, of a map two for each key. */
static bool
take_header(struct bytes *b, bool is_map, size_t *n)
{
    struct eti_msgpack_item item;
    if (left(b) == 0)
        return false;
    unsigned char first = b->at[0], wide = is_map ? 0xde : 0xdc;
    bool fits =
        (first & 0xf0) == (is_map ? 0x80 : 0x90) || first == wide || first == wide + 1;
    if (!fits || !eti_msgpack_item_read(b->at, left(b), &item) ||
        item.elements > left(b) - item.header)
        return false;
    b->at += item.header;
    *n = item.elements;
    return true;
}

static bool
is_word(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(text, word, n) == 0;
}

/* ---- numbers ---- */

static et_status
make_room(struct et_events *e, size_t n)
{
    ET_TRY(eti_grow(e->cx, &e->entry, &e->room, (int64_t)n, sizeof *e->entry));
    return eti_grow(e->cx, &e->length, &e->lengths, (int64_t)n, sizeof *e->length);
}

static void
set_name(struct et_events *e, int i, const char *name, size_t n)
{
    struct et_log_entry *entry = &e->entry[i];
    n = n < sizeof entry->name ? n : sizeof entry->name - 1;
    if (e->length[i] == n && memcmp(entry->name, name, n) == 0)
        return;
    memcpy(entry->name, name, n);
    entry->name[n] = '\0';
    e->length[i] = (unsigned char)n;
}

/* A map of names and numbers becomes those of R; what is neither is left out. */
static et_status
read_numbers(struct et_events *e, struct bytes *b, size_t n, struct et_record *r,
             bool *sound)
{
    ET_TRY(make_room(e, n));
    r->entry = e->entry;
    r->n = 0;
    for (; n > 0; n--) {
        const char *name;
        size_t length;
        if (!take_text(b, &name, &length)) {
            if (!skip(b) || !skip(b))
                return ET_OK;
        } else if (take_number(b, &e->entry[r->n].value)) {
            set_name(e, r->n++, name, length);
        } else if (!skip(b)) {
            return ET_OK;
        }
    }
    *sound = true;
    return ET_OK;
}

/* ---- what a record stands for ---- */

/* What the keys of a body may be; of a key that comes twice the first counts. */
enum {
    M = 1,
    F = 2,
    TEXT = 4,
    LEVEL = 8,
    RANK = 16,
    OF = 32,
    FROM = 64,
    ABOUT = 128 /* shifted by an eti_about */
};

/* Nothing has been said of any number of R. */
static et_status
begin_spans(struct et_events *e, const struct et_record *r)
{
    ET_TRY(eti_grow(e->cx, &e->span, &e->spans, r->n, sizeof *e->span));
    for (int i = 0; i < r->n; i++)
        e->span[i] = eti_span_unknown;
    return ET_OK;
}

/* Index of the number of that name; from GUESS on, as they come in the same order. */
static int
find_number(const struct et_events *e, const struct et_record *r, int guess,
            const char *name, size_t n)
{
    n = n < ET_METRIC_NAME ? n : ET_METRIC_NAME - 1;
    for (int k = 0; k < r->n; k++) {
        int i = (guess + k) % r->n;
        if (e->length[i] == n && memcmp(e->entry[i].name, name, n) == 0)
            return i;
    }
    return -1;
}

/* The map of ABOUT. False where it is not whole. */
static bool
read_about(struct et_events *e, struct bytes *b, enum eti_about about, size_t n,
           const struct et_record *r)
{
    bool is_count = eti_about_is_count(about);
    for (int guess = 0; n > 0; n--) {
        const char *name;
        size_t length;
        double value = 0;
        int64_t count = 0;
        if (!take_text(b, &name, &length)) {
            if (!skip(b) || !skip(b))
                return false;
            continue;
        }
        int i = r->n > 0 ? find_number(e, r, guess, name, length) : -1;
        if (is_count ? take_count(b, &count) : take_number(b, &value)) {
            if (i >= 0)
                eti_span_set(&e->span[i], about, is_count ? (double)count : value);
        } else if (!skip(b)) {
            return false;
        }
        guess = i + 1;
    }
    return true;
}

static et_status
complete(struct et_events *e, struct eti_payload *p)
{
    struct et_record *r = &p->r;
    if (r->of <= 0 || !p->is_series) {
        r->of = r->from = 0;
        return ET_OK;
    }
    r->of = r->of < ETI_SPAN_MOST ? r->of : ETI_SPAN_MOST;
    r->from = r->from < r->ba ? r->from : r->ba;
    if (!p->has_spans)
        ET_TRY(begin_spans(e, r));
    for (int i = 0; i < r->n; i++)
        eti_span_complete(&e->span[i], e->entry[i].value, r->of);
    r->span = e->span;
    return ET_OK;
}

/* ---- the rest of a body ---- */

static et_status
copy_text(struct et_events *e, const char *text, size_t n, struct et_record *r)
{
    ET_TRY(eti_grow(e->cx, &e->text, &e->text_room, (int64_t)n + 1, 1));
    memcpy(e->text, text, n);
    e->text[n] = '\0';
    r->text = e->text;
    return ET_OK;
}

static enum et_log_level
level_of(const char *word, size_t n, enum et_log_level otherwise)
{
    for (int level = ET_LOG_DEBUG; level <= ET_LOG_ERROR; level++)
        if (is_word(word, n, et_log_level_name((enum et_log_level)level)))
            return (enum et_log_level)level;
    return otherwise;
}

static int
key_of(const char *key, size_t n)
{
    static const struct {
        const char *word;
        int key;
    } keys[] = {
        {"m", M},       {"f", F},   {"text", TEXT}, {"level", LEVEL},
        {"rank", RANK}, {"of", OF}, {"from", FROM},
    };
    enum eti_about about = eti_about_find(key, n);
    if (about < ETI_ABOUT_COUNT)
        return ABOUT << about;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_word(key, n, keys[i].word))
            return keys[i].key;
    return 0;
}

/* The value of KEY: taken where it is what it should be, and else passed over. */
static et_status
read_value(struct et_events *e, struct bytes *b, int key, struct eti_payload *p,
           bool *sound)
{
    struct et_record *r = &p->r;
    const char *text;
    int64_t rank;
    size_t n;
    *sound = false;
    if ((key == M || (key == F && !p->is_series)) && take_header(b, true, &n)) {
        p->is_series = key == M;
        return read_numbers(e, b, n / 2, r, sound);
    }
    /* They come behind "m". Behind "f" they are passed over: "m" may still follow, with
     * more numbers than there would be spans. */
    if (key >= ABOUT && p->is_series && take_header(b, true, &n)) {
        int about = 0;
        while (key >> about != ABOUT)
            about++;
        if (!p->has_spans)
            ET_TRY(begin_spans(e, r));
        p->has_spans = true;
        *sound = read_about(e, b, (enum eti_about)about, n / 2, r);
        return ET_OK;
    }
    if ((key == OF && take_count(b, &r->of)) ||
        (key == FROM && take_count(b, &r->from))) {
        *sound = true;
        return ET_OK;
    }
    if ((key == TEXT || key == LEVEL) && take_text(b, &text, &n)) {
        *sound = true;
        if (key == TEXT)
            return copy_text(e, text, n, r);
        r->level = level_of(text, n, r->level);
        return ET_OK;
    }
    if (key == RANK && take_count(b, &rank)) {
        r->rank = rank <= INT_MAX ? (int)rank : 0;
        *sound = true;
        return ET_OK;
    }
    *sound = skip(b);
    return ET_OK;
}

static et_status
read_body(struct et_events *e, struct bytes *b, struct eti_payload *p, bool *sound)
{
    size_t n;
    int seen = 0;
    *sound = take_header(b, true, &n);
    for (n /= 2; *sound && n > 0; n--) {
        const char *text;
        size_t length;
        int key = 0;
        if (take_text(b, &text, &length))
            key = key_of(text, length);
        else if (!skip(b)) {
            *sound = false;
            return ET_OK;
        }
        if (seen & key)
            key = 0;
        seen |= key;
        ET_TRY(read_value(e, b, key, p, sound));
    }
    return ET_OK;
}

/* ---- all of it ---- */

/* Records are much alike: GUESS is what the last one was. */
static enum et_record_kind
kind_of(const char *word, size_t n, enum et_record_kind guess)
{
    if (is_word(word, n, et_record_name(guess)))
        return guess;
    for (int kind = 0; kind < ET_RECORD_COUNT; kind++)
        if (is_word(word, n, et_record_name((enum et_record_kind)kind)))
            return (enum et_record_kind)kind;
    return ET_RECORD_COUNT;
}

et_status
eti_payload_read(struct et_events *e, const char *bytes, size_t n,
                 struct eti_payload *out, bool *sound)
{
    struct bytes b = {(const unsigned char *)bytes, (const unsigned char *)bytes + n};
    struct et_record *r = &out->r;
    const char *word;
    size_t elements, length;
    *out = (struct eti_payload){.r.kind = ET_RECORD_COUNT};
    *sound = false;
    if (!take_header(&b, false, &elements) || elements < 7 ||
        !take_text(&b, &word, &length) || !take_count(&b, &r->seq) ||
        !take_number(&b, &r->t) || !take_count(&b, &r->ep) || !take_count(&b, &r->ba) ||
        !take_count(&b, &r->sp))
        return ET_OK;
    out->is_summary = is_word(word, length, "summary");
    *sound = out->is_summary;
    if (out->is_summary)
        return ET_OK;
    r->kind = kind_of(word, length, e->kind);
    if (r->kind != ET_RECORD_COUNT)
        e->kind = r->kind;
    ET_TRY(read_body(e, &b, out, sound));
    ET_TRY(complete(e, out));
    for (elements -= 7; *sound && elements > 0; elements--)
        *sound = skip(&b);
    *sound = *sound && left(&b) == 0;
    return ET_OK;
}
