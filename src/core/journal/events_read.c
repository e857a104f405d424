/* SPDX-License-Identifier: Apache-2.0 */
/* events_read.c: reading the records of events.log (format: events.h). */
#include "config.h"

#include "core/journal/events_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/need.h"
#include "core/base/seams.h"
#include "core/base/well_formed.h"

enum {
    AHEAD = 256 << 10, /* bytes read at once where the next ones will be wanted */
    /* Bytes from the end in which the newest summary is looked for: 2,048 of the
     * longest records, and what a crash may have left behind them. */
    BACK = 160 << 20,
};

static uint32_t
get_u32(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- bytes ---- */

/* N bytes at AT, borrowed until the next call; WANT are read where they are not at
 * hand. NULL past the end, or where they cannot be read. */
static const char *
bytes_at(struct et_events *e, int64_t at, size_t n, size_t want)
{
    e->failed = 0;
    if (at < 0 || at > e->size || (int64_t)n > e->size - at || n > e->window_room ||
        (e->stop && atomic_load(e->stop)))
        return NULL;
    if (at >= e->window_at && at + (int64_t)n <= e->window_at + (int64_t)e->window_used)
        return e->window + (at - e->window_at);
    want = want > n ? want : n;
    want = want < e->window_room ? want : e->window_room;
    e->window_at = at;
    e->window_used = 0;
    while (e->window_used < n) {
        ssize_t got = eti_ctx_seams(e->cx)->file.read(e->fd, e->window + e->window_used,
                                                      want - e->window_used,
                                                      at + (int64_t)e->window_used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            e->failed = errno;
        if (got <= 0)
            return NULL;
        e->window_used += (size_t)got;
        e->read += (uint64_t)got;
    }
    return e->window;
}

static et_status
read_header(struct et_events *e, const char *path)
{
    struct stat st;
    if (fstat(e->fd, &st) != 0)
        return ET_FAIL(e->cx, ET_EIO, "cannot read %s: %s", path, strerror(errno));
    e->size = st.st_size;
    const char *header = bytes_at(e, 0, ETI_EVENTS_HEADER, 0);
    if (!S_ISREG(st.st_mode) || !header ||
        memcmp(header, ETI_EVENTS_MAGIC, strlen(ETI_EVENTS_MAGIC)) != 0)
        return ET_FAIL(e->cx, ET_EFORMAT, "%s is not a log of events", path);
    e->major = get_u32(header + 8) & 0xffff;
    for (int i = 0; i < ETI_EVENTS_ID; i++)
        snprintf(e->id + 2 * i, 3, "%02x", (unsigned char)header[16 + i]);
    if (e->major < 1 || e->major > ETI_EVENTS_MAJOR)
        return ET_FAIL(e->cx, ET_EFORMAT,
                       "%s has format %u, this program reads %d and older", path,
                       e->major, ETI_EVENTS_MAJOR);
    e->cursor = (struct eti_cursor){.at = ETI_EVENTS_HEADER, .end = e->size};
    return ET_OK;
}

et_status
eti_events_open_fd(struct et_ctx *cx, int fd, const char *name, struct et_events **out)
{
    void *block, *window;
    *out = NULL;
    et_status status = et_alloc(cx, sizeof **out, &block);
    if (status != ET_OK) {
        close(fd);
        return status;
    }
    struct et_events *e = block;
    *e = (struct et_events){.cx = cx, .fd = fd, .kinds = UINT64_MAX};
    if (!msgpack_zone_init(&e->zone, MSGPACK_ZONE_CHUNK_SIZE)) {
        close(fd);
        et_free(cx, e);
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: %s", name);
    }
    status = et_alloc(cx, AHEAD, &window);
    if (status == ET_OK) {
        e->window = window;
        e->window_room = AHEAD;
        status = read_header(e, name);
    }
    if (status != ET_OK) {
        et_events_close(&e);
        return status;
    }
    *out = e;
    return ET_OK;
}

et_status
et_events_open(struct et_ctx *cx, const char *path, struct et_events **out)
{
    ETI_NEED(cx, cx, path, out);
    *out = NULL;
    int fd = eti_ctx_seams(cx)->file.open(AT_FDCWD, path,
                                          O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return ET_FAIL(cx, errno == ENOENT || errno == ENOTDIR ? ET_ENOENT : ET_EIO,
                       "cannot read %s: %s", path, strerror(errno));
    ET_TRY(eti_events_open_fd(cx, fd, path, out));
    void *copy;
    if (et_alloc(cx, strlen(path) + 1, &copy) == ET_OK)
        (*out)->path = memcpy(copy, path, strlen(path) + 1);
    else
        et_error_clear(cx); /* it is not looked for again where it is removed */
    return ET_OK;
}

void
et_events_close(struct et_events **out)
{
    if (!out)
        return;
    struct et_events *e = *out;
    *out = NULL;
    if (!e)
        return;
    if (e->fd >= 0)
        close(e->fd);
    msgpack_zone_destroy(&e->zone);
    eti_series_names_free(e->cx, &e->names);
    et_free(e->cx, e->series);
    et_free(e->cx, e->range);
    et_free(e->cx, e->entry);
    et_free(e->cx, e->span);
    et_free(e->cx, e->length);
    et_free(e->cx, e->text);
    et_free(e->cx, e->window);
    et_free(e->cx, e->path);
    et_free(e->cx, e);
}

/* The file was removed: where its writer has made it again (eti_events_restore), that
 * one is read from here on. */
static void
take_restored(struct et_events *e, struct stat *st)
{
    char own[ETI_EVENTS_HEADER], other[ETI_EVENTS_HEADER];
    struct stat new;
    const struct eti_file_calls *file = &eti_ctx_seams(e->cx)->file;
    int fd = file->open(AT_FDCWD, e->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    bool same = fd >= 0 && fstat(fd, &new) == 0 && S_ISREG(new.st_mode) &&
                new.st_size >= e->size &&
                file->read(e->fd, own, sizeof own, 0) == sizeof own &&
                file->read(fd, other, sizeof other, 0) ==
                    sizeof other &&memcmp(own, other, sizeof own) == 0;
    if (same) {
        close(e->fd);
        e->fd = fd;
        e->window_used = 0;
        *st = new;
    } else if (fd >= 0) {
        close(fd);
    }
}

/* (A writer that goes on after a crash cuts off what is torn: what was cached of it is
 * not what will be there.) */
et_status
et_events_again(struct et_events *e)
{
    ETI_NEED(e ? e->cx : NULL, e);
    struct stat st;
    if (fstat(e->fd, &st) != 0)
        return ET_FAIL(e->cx, ET_EIO, "cannot read the log of events: %s",
                       strerror(errno));
    if (st.st_nlink == 0 && e->path)
        take_restored(e, &st);
    if (st.st_size < e->cursor.at)
        return ET_FAIL(e->cx, ET_EFORMAT,
                       "the log of events shrank to %lld bytes, %lld had been read",
                       (long long)st.st_size, (long long)e->cursor.at);
    if (st.st_size != e->size)
        e->window_used = 0;
    e->size = st.st_size;
    if (!e->range)
        e->cursor.end = e->size;
    return ET_OK;
}

void
eti_events_stop_when(struct et_events *e, const atomic_bool *stop)
{
    e->stop = stop;
}

int64_t
et_events_bytes(const struct et_events *e)
{
    if (!e)
        return 0;
    return e->size;
}

int64_t
et_events_torn_bytes(const struct et_events *e)
{
    if (!e)
        return 0;
    return e->size - e->cursor.at;
}

uint64_t
et_events_bytes_read(const struct et_events *e)
{
    if (!e)
        return 0;
    return e->read;
}

/* ---- frames ---- */

enum frame { FRAME_RECORD, FRAME_END, FRAME_DAMAGED };

/* The frame at AT: its payload, borrowed until the next call. */
static enum frame
read_frame(struct et_events *e, int64_t at, int64_t end, size_t want,
           const char **payload, size_t *bytes, bool *right)
{
    *right = false;
    e->failed = 0;
    int64_t left = end - at - ETI_EVENTS_FRAME;
    const char *frame = left < 0 ? NULL : bytes_at(e, at, ETI_EVENTS_FRAME, want);
    if (!frame)
        return FRAME_END;
    uint32_t length = get_u32(frame), sum = get_u32(frame + 4);
    if (length > ETI_EVENTS_RECORD)
        return FRAME_DAMAGED;
    if (length == 0 || length > left)
        return FRAME_END;
    frame = bytes_at(e, at, ETI_EVENTS_FRAME + length, want);
    if (!frame)
        return FRAME_DAMAGED;
    *payload = frame + ETI_EVENTS_FRAME;
    *bytes = length;
    *right = crc32(0, (const Bytef *)*payload, length) == sum;
    return !*right && length == left && end == e->size ? FRAME_END : FRAME_RECORD;
}

static et_status
damaged(struct et_events *e, const struct eti_cursor *c, int64_t at)
{
    return ET_FAIL(e->cx, ET_EFORMAT, "record %lld, at byte %lld, is damaged",
                   (long long)c->seq + 1, (long long)at);
}

/* A damaged record is passed over, and is no loss where the next one has the number
 * that it would have had: it was a summary. */
et_status
eti_events_read(struct et_events *e, struct eti_cursor *c, struct eti_payload *out,
                bool *got)
{
    *got = false;
    for (;;) {
        const char *payload;
        size_t bytes;
        bool right, sound;
        size_t want = c->end - c->at < AHEAD ? (size_t)(c->end - c->at) : AHEAD;
        enum frame frame = read_frame(e, c->at, c->end, want, &payload, &bytes, &right);
        if (frame != FRAME_RECORD && e->failed)
            return ET_FAIL(e->cx, ET_EIO, "cannot read %s at byte %lld: %s",
                           e->path ? e->path : "a log of events", (long long)c->at,
                           strerror(e->failed));
        if (frame == FRAME_DAMAGED)
            return damaged(e, c, c->at);
        if (frame == FRAME_END)
            return ET_OK;
        if (right)
            ET_TRY(eti_payload_read(e, payload, bytes, out, &sound));
        c->begun = c->at;
        c->at += ETI_EVENTS_FRAME + (int64_t)bytes;
        if (!right) {
            c->damaged = c->begun;
            continue;
        }
        if (!sound)
            return damaged(e, c, c->begun);
        if (c->seq >= 0 && out->r.seq != c->seq + !out->is_summary)
            return damaged(e, c, c->damaged ? c->damaged : c->begun);
        c->seq = out->r.seq;
        c->damaged = 0;
        if (!out->is_summary) {
            *got = true;
            return ET_OK;
        }
    }
}

/* ---- records ---- */

/* Goes to the next stretch that et_events_only wants, if there is one. */
static bool
next_range(struct et_events *e)
{
    if (!e->range || e->next_range == e->n_ranges)
        return false;
    const struct eti_range *r = &e->range[e->next_range++];
    e->cursor = (struct eti_cursor){.at = r->at, .end = r->end, .seq = -1};
    return true;
}

et_status
et_events_next(struct et_events *e, struct et_record *out, bool *got)
{
    ETI_NEED(e ? e->cx : NULL, e, out, got);
    for (*got = false; !*got;) {
        struct eti_payload p;
        bool more;
        ET_TRY(eti_events_read(e, &e->cursor, &p, &more));
        if (!more && next_range(e))
            continue;
        if (!more)
            return ET_OK;
        if (p.r.kind == ET_RECORD_COUNT || !(e->kinds >> p.r.kind & 1))
            continue;
        *out = p.r;
        *got = true;
    }
    return ET_OK;
}

/* (A payload is an array of seven, or in a later version of some more.) */
et_status
eti_events_seek(struct et_events *e, int64_t at, bool *found)
{
    struct eti_payload p;
    const char *frame, *payload;
    size_t bytes;
    bool right;
    *found = false;
    for (at = at > ETI_EVENTS_HEADER ? at : ETI_EVENTS_HEADER;
         !*found && (frame = bytes_at(e, at, ETI_EVENTS_FRAME + 1, AHEAD)); at++) {
        if (((unsigned char)frame[ETI_EVENTS_FRAME] & 0xf0) != 0x90 ||
            read_frame(e, at, e->size, AHEAD, &payload, &bytes, &right) !=
                FRAME_RECORD ||
            !right)
            continue;
        ET_TRY(eti_payload_read(e, payload, bytes, &p, found));
        if (*found)
            e->cursor = (struct eti_cursor){.at = at, .end = e->size, .seq = -1};
    }
    return ET_OK;
}

/* ---- summaries ---- */

static bool
is_text(const msgpack_object *o, const char *text)
{
    return o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(text) &&
           memcmp(o->via.str.ptr, text, o->via.str.size) == 0;
}

static bool
is_number(const msgpack_object *o, double *value)
{
    if (o->type != MSGPACK_OBJECT_FLOAT64 && o->type != MSGPACK_OBJECT_FLOAT32)
        return false;
    *value = o->via.f64;
    return true;
}

static const msgpack_object *
find(const msgpack_object *map, const char *key)
{
    for (uint32_t i = 0; i < map->via.map.size; i++)
        if (is_text(&map->via.map.ptr[i].key, key))
            return &map->via.map.ptr[i].val;
    return NULL;
}

static bool
get_int(const msgpack_object *map, const char *key, int64_t *out)
{
    const msgpack_object *o = find(map, key);
    if (!o || o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 > INT64_MAX)
        return false;
    *out = (int64_t)o->via.u64;
    return true;
}

/* The body of a payload if that is a summary's; NULL. */
static const msgpack_object *
unpack(struct et_events *e, const char *bytes, size_t n)
{
    msgpack_object o;
    size_t used = 0;
    msgpack_zone_clear(&e->zone);
    msgpack_object *kept = msgpack_zone_malloc(&e->zone, sizeof *kept);
    if (!kept || !eti_is_well_formed(bytes, n) ||
        msgpack_unpack(bytes, n, &used, &e->zone, &o) != MSGPACK_UNPACK_SUCCESS ||
        o.type != MSGPACK_OBJECT_ARRAY || o.via.array.size < 7 ||
        !is_text(&o.via.array.ptr[0], "summary") ||
        o.via.array.ptr[6].type != MSGPACK_OBJECT_MAP)
        return NULL;
    *kept = o.via.array.ptr[6];
    return kept;
}

static bool
get_ints(const msgpack_object *o, int64_t *out, uint32_t n)
{
    if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const msgpack_object *x = &o->via.array.ptr[i];
        if (x->type != MSGPACK_OBJECT_POSITIVE_INTEGER &&
            x->type != MSGPACK_OBJECT_NEGATIVE_INTEGER)
            return false;
        out[i] = x->via.i64;
    }
    return true;
}

/* Its parts follow each other in the file, within the records it is about. */
static bool
get_parts(const msgpack_object *o, struct eti_summary *s)
{
    if (!o || o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size < 1 ||
        o->via.array.size > ETI_PARTS)
        return false;
    s->n = (int)o->via.array.size;
    for (int i = 0; i < s->n; i++) {
        struct eti_events_part *p = &s->part[i];
        int64_t v[5], before = i > 0 ? s->part[i - 1].at + 1 : s->from;
        if (!get_ints(&o->via.array.ptr[i], v, 5) || v[0] < before || v[0] >= s->end)
            return false;
        *p = (struct eti_events_part){v[0], v[1], v[2], v[3], v[4]};
    }
    return true;
}

static bool
get_kinds(const msgpack_object *o, struct eti_summary *s)
{
    if (!o || o->type != MSGPACK_OBJECT_MAP)
        return false;
    for (int kind = 0; kind < ET_RECORD_COUNT; kind++)
        (void)get_int(o, et_record_name((enum et_record_kind)kind), &s->kinds[kind]);
    return true;
}

bool
eti_summary_read(struct et_events *e, int64_t at, struct eti_summary *s,
                 const msgpack_object **series)
{
    const size_t usual = 24 << 10; /* that of 14 series */
    const char *payload;
    size_t bytes;
    bool right;
    int64_t level;
    const msgpack_object *body, *o;
    *s = (struct eti_summary){0};
    if (read_frame(e, at, e->size, usual, &payload, &bytes, &right) != FRAME_RECORD ||
        !right || !(body = unpack(e, payload, bytes)))
        return false;
    bool fine = get_int(body, "at", &s->at) && get_int(body, "level", &level) &&
                get_int(body, "from", &s->from) && get_int(body, "end", &s->end) &&
                get_int(body, "more", &s->more) && (o = find(body, "last")) &&
                get_ints(o, s->last, ETI_LEVELS);
    if (!fine || s->at != at || level < 1 || level > ETI_LEVELS ||
        s->from < ETI_EVENTS_HEADER || s->end > at || s->more >= at)
        return false;
    for (int i = 0; i < ETI_LEVELS; i++)
        if (s->last[i] < 0 || s->last[i] >= at)
            return false;
    s->level = (int)level;
    o = find(body, "done");
    s->done = o && o->type == MSGPACK_OBJECT_BOOLEAN && o->via.boolean;
    *series = find(body, "s");
    return get_parts(find(body, "parts"), s) && get_kinds(find(body, "kinds"), s) &&
           *series && (*series)->type == MSGPACK_OBJECT_MAP;
}

static bool
get_point(const msgpack_object *o, struct et_series_point *p)
{
    return o->type == MSGPACK_OBJECT_ARRAY && o->via.array.size == 3 &&
           get_ints(&(msgpack_object){.type = MSGPACK_OBJECT_ARRAY,
                                      .via.array = {1, o->via.array.ptr}},
                    &p->ba, 1) &&
           is_number(&o->via.array.ptr[1], &p->t) &&
           is_number(&o->via.array.ptr[2], &p->value);
}

bool
eti_summary_cell(const msgpack_object *o, struct et_series_stats *out)
{
    int64_t counts[2] = {0};
    if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != 6)
        return false;
    const msgpack_object *a = o->via.array.ptr;
    bool fine = get_ints(&(msgpack_object){.type = MSGPACK_OBJECT_ARRAY,
                                           .via.array = {2, o->via.array.ptr}},
                         counts, 2) &&
                is_number(&a[2], &out->sum) && get_point(&a[3], &out->last) &&
                get_point(&a[4], &out->min) && get_point(&a[5], &out->max);
    out->n = counts[0];
    out->bad = counts[1];
    return fine;
}

bool
eti_summary_find_last(struct et_events *e, int64_t end, struct eti_summary *s,
                      int64_t *next)
{
    const size_t mark = strlen(ETI_SUMMARY_BEGIN);
    const msgpack_object *series;
    const int64_t least =
        end - BACK > ETI_EVENTS_HEADER ? end - BACK : ETI_EVENTS_HEADER;
    if (e->major < 2)
        return false;
    while (end > least) {
        int64_t from = end - AHEAD / 2;
        from = from > least ? from : least;
        size_t n = (size_t)(end - from);
        for (size_t i = n; i > 0; i--) { /* a summary's reading may move the window */
            const char *text = bytes_at(e, from, n, 0);
            const char *at = text ? memrchr(text, ETI_SUMMARY_BEGIN[0], i) : NULL;
            if (!at)
                break;
            i = (size_t)(at - text) + 1;
            int64_t begin = from + (at - text) - ETI_EVENTS_FRAME;
            if (n - i + 1 >= mark && memcmp(at, ETI_SUMMARY_BEGIN, mark) == 0 &&
                eti_summary_read(e, begin, s, &series) && s->done) {
                const char *frame = bytes_at(e, begin, ETI_EVENTS_FRAME, 0);
                *next = begin + ETI_EVENTS_FRAME + (frame ? get_u32(frame) : 0);
                return frame != NULL;
            }
        }
        if (from == least)
            break;
        end = from + (int64_t)mark - 1;
    }
    return false;
}
