/* events.c: events.log, the records of a run, in order; nothing in it ever changes.
 *
 *     file    "etude.ev", major u16, minor u16, 0 u32, id of the run [16], record...
 *     record  length u32, crc32 u32, payload [length]          (all little endian)
 *     payload msgpack [kind, seq, t, ep, ba, sp, body]
 *     body    {"m": {name: number}, "text": text, "level": text}, each if there is one
 *
 * kind is a word of logger.h, seq counts from 1 without gaps, t is in seconds since
 * 1970, numbers are IEEE doubles. The checksum is zlib's, of the payload. A minor
 * version adds kinds and keys of the body only: readers skip what they do not know.
 *
 * A crash can cut the last record off: a length that runs past the end of the file, a
 * length of 0 (space the file system had set aside), or a wrong checksum in the last
 * record mean that the log ends before it. The same anywhere else is damage. */
#include "config.h"

#include "core/run/events.h"

#include <errno.h>
#include <msgpack.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum {
    MAJOR = 1,
    MINOR = 0,
    HEADER = 32,
    FRAME = 8,
    MAX_ENTRIES = 512,
    MAX_TEXT = 4096
};
static const char magic[8] = {'e', 't', 'u', 'd', 'e', '.', 'e', 'v'};

static void
put_u32(unsigned char *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(x >> 8 * i);
}

static uint32_t
get_u32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t
checksum(const void *data, size_t bytes)
{
    return (uint32_t)crc32(0, data, (uInt)bytes);
}

/* ---- writing ---- */

et_status
eti_events_begin(struct et_ctx *cx, const char *directory, const unsigned char *id,
                 struct eti_events_writer *out)
{
    unsigned char header[HEADER] = {0};
    void *block;
    *out = (struct eti_events_writer){0};
    ET_TRY(et_alloc(cx, ETI_EVENTS_RECORD, &block));
    out->record = block;
    ET_TRY(eti_output_open(cx, directory, "events.log", &out->file));
    memcpy(header, magic, sizeof magic);
    put_u32(header + 8, MAJOR | MINOR << 16);
    memcpy(header + 16, id, ETI_EVENTS_ID);
    fwrite(header, 1, sizeof header, out->file.f);
    eti_output_flush(&out->file);
    return ET_OK;
}

static int
append(void *data, const char *bytes, size_t n)
{
    struct eti_events_writer *w = data;
    if (n > ETI_EVENTS_RECORD - w->used)
        return -1;
    memcpy(w->record + w->used, bytes, n);
    w->used += n;
    return 0;
}

static int
pack_text(msgpack_packer *k, const char *text)
{
    return msgpack_pack_str_with_body(k, text, strlen(text));
}

static int
pack_body(msgpack_packer *k, const struct et_record *r)
{
    bool is_log = r->kind == ET_RECORD_LOG;
    int bad = msgpack_pack_map(k, (r->n > 0) + (r->text != NULL) + is_log);
    if (r->n > 0) {
        bad |= pack_text(k, "m") | msgpack_pack_map(k, (size_t)r->n);
        for (int i = 0; i < r->n; i++)
            bad |= pack_text(k, r->entry[i].name) |
                   msgpack_pack_double(k, r->entry[i].value);
    }
    if (r->text)
        bad |= pack_text(k, "text") | pack_text(k, r->text);
    if (is_log)
        bad |= pack_text(k, "level") | pack_text(k, et_log_level_name(r->level));
    return bad;
}

void
eti_events_write(struct eti_events_writer *w, const struct et_record *r)
{
    msgpack_packer k;
    unsigned char frame[FRAME];
    w->used = 0;
    msgpack_packer_init(&k, w, append);
    int bad = msgpack_pack_array(&k, 7) | pack_text(&k, et_record_name(r->kind)) |
              msgpack_pack_int64(&k, w->seq + 1) | msgpack_pack_double(&k, r->t) |
              msgpack_pack_int64(&k, r->ep) | msgpack_pack_int64(&k, r->ba) |
              msgpack_pack_int64(&k, r->sp) | pack_body(&k, r);
    if (bad) {
        et_report(w->file.cx, ET_LOG_WARN,
                  "events.log: a record of more than %d bytes is left out",
                  ETI_EVENTS_RECORD);
        return;
    }
    w->seq++;
    put_u32(frame, (uint32_t)w->used);
    put_u32(frame + 4, checksum(w->record, w->used));
    fwrite(frame, 1, sizeof frame, w->file.f);
    fwrite(w->record, 1, w->used, w->file.f);
    if (r->kind == ET_RECORD_RUN || r->kind == ET_RECORD_EPOCH ||
        r->kind == ET_RECORD_EVAL ||
        (r->kind == ET_RECORD_LOG && r->level >= ET_LOG_WARN))
        eti_output_flush(&w->file);
}

void
eti_events_end(struct eti_events_writer *w)
{
    eti_output_close(&w->file);
    if (w->record)
        et_free(w->file.cx, w->record);
    w->record = NULL;
}

/* ---- reading ---- */

struct et_events {
    struct et_ctx *cx;
    FILE *f;
    int64_t size, at; /* bytes of the file; where the next record begins */
    int64_t seq;      /* of the last record */
    unsigned char payload[ETI_EVENTS_RECORD];
    struct et_log_entry entry[MAX_ENTRIES];
    char text[MAX_TEXT];
};

static et_status
read_header(struct et_events *e, const char *path)
{
    unsigned char header[HEADER];
    struct stat st;
    if (fstat(fileno(e->f), &st) != 0)
        return ET_FAIL(e->cx, ET_EIO, "cannot read %s: %s", path, strerror(errno));
    e->size = st.st_size;
    e->at = HEADER;
    if (fread(header, 1, HEADER, e->f) != HEADER ||
        memcmp(header, magic, sizeof magic) != 0)
        return ET_FAIL(e->cx, ET_EFORMAT, "%s is not a log of events", path);
    unsigned major = header[8] | header[9] << 8;
    if (major != MAJOR)
        return ET_FAIL(e->cx, ET_EFORMAT, "%s has format %u, this program reads %d",
                       path, major, MAJOR);
    return ET_OK;
}

et_status
et_events_open(struct et_ctx *cx, const char *path, struct et_events **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_events *e = block;
    e->cx = cx;
    e->f = fopen(path, "rbe");
    et_status status = e->f ? read_header(e, path)
                            : ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO,
                                      "cannot read %s: %s", path, strerror(errno));
    if (status != ET_OK) {
        et_events_close(&e);
        return status;
    }
    *out = e;
    return ET_OK;
}

void
et_events_close(struct et_events **out)
{
    struct et_events *e = *out;
    *out = NULL;
    if (!e)
        return;
    if (e->f)
        fclose(e->f);
    et_free(e->cx, e);
}

int64_t
et_events_torn_bytes(const struct et_events *e)
{
    return e->size - e->at;
}

static bool
is_text(const msgpack_object *o, const char *text)
{
    return o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(text) &&
           memcmp(o->via.str.ptr, text, o->via.str.size) == 0;
}

static void
copy_text(char *to, size_t n, const msgpack_object *o)
{
    size_t length = o->via.str.size < n - 1 ? o->via.str.size : n - 1;
    memcpy(to, o->via.str.ptr, length);
    to[length] = '\0';
}

static bool
is_number(const msgpack_object *o)
{
    return o->type == MSGPACK_OBJECT_FLOAT64 || o->type == MSGPACK_OBJECT_FLOAT32;
}

static void
read_metrics(struct et_events *e, const msgpack_object *o, struct et_record *r)
{
    if (o->type != MSGPACK_OBJECT_MAP)
        return;
    for (uint32_t i = 0; i < o->via.map.size && r->n < MAX_ENTRIES; i++) {
        const msgpack_object_kv *kv = &o->via.map.ptr[i];
        if (kv->key.type != MSGPACK_OBJECT_STR || !is_number(&kv->val))
            continue;
        struct et_log_entry *entry = &e->entry[r->n++];
        copy_text(entry->name, sizeof entry->name, &kv->key);
        entry->value = kv->val.via.f64;
    }
    r->entry = e->entry;
}

static void
read_body(struct et_events *e, const msgpack_object *o, struct et_record *r)
{
    for (uint32_t i = 0; i < o->via.map.size; i++) {
        const msgpack_object_kv *kv = &o->via.map.ptr[i];
        if (is_text(&kv->key, "m")) {
            read_metrics(e, &kv->val, r);
        } else if (is_text(&kv->key, "text") && kv->val.type == MSGPACK_OBJECT_STR) {
            copy_text(e->text, sizeof e->text, &kv->val);
            r->text = e->text;
        } else if (is_text(&kv->key, "level")) {
            for (int level = ET_LOG_DEBUG; level <= ET_LOG_ERROR; level++)
                if (is_text(&kv->val, et_log_level_name((enum et_log_level)level)))
                    r->level = (enum et_log_level)level;
        }
    }
}

/* *KNOWN is false for a kind of a later minor version. */
static bool
read_record(struct et_events *e, const msgpack_object *o, struct et_record *r,
            bool *known)
{
    const msgpack_object *a = o->via.array.ptr;
    int64_t *const counters[] = {&r->seq, &r->ep, &r->ba, &r->sp};
    static const int places[] = {1, 3, 4, 5};
    if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size < 7 || !is_number(&a[2]) ||
        a[6].type != MSGPACK_OBJECT_MAP)
        return false;
    *r = (struct et_record){.kind = ET_RECORD_COUNT, .t = a[2].via.f64};
    for (int i = 0; i < 4; i++) {
        if (a[places[i]].type != MSGPACK_OBJECT_POSITIVE_INTEGER)
            return false;
        *counters[i] = (int64_t)a[places[i]].via.u64;
    }
    for (int kind = 0; kind < ET_RECORD_COUNT; kind++)
        if (is_text(&a[0], et_record_name((enum et_record_kind)kind)))
            r->kind = (enum et_record_kind)kind;
    *known = r->kind != ET_RECORD_COUNT;
    read_body(e, &a[6], r);
    return true;
}

/* The payload of the next record; *BYTES is 0 at the end. */
static et_status
next_payload(struct et_events *e, size_t *bytes)
{
    unsigned char frame[FRAME];
    *bytes = 0;
    int64_t left = e->size - e->at - FRAME;
    if (left < 0 || fread(frame, 1, FRAME, e->f) != FRAME)
        return ET_OK;
    uint32_t length = get_u32(frame);
    if (length == 0 || length > left)
        return ET_OK;
    if (length > ETI_EVENTS_RECORD || fread(e->payload, 1, length, e->f) != length)
        return ET_FAIL(e->cx, ET_EFORMAT, "record %lld, at byte %lld, is damaged",
                       (long long)e->seq + 1, (long long)e->at);
    if (checksum(e->payload, length) != get_u32(frame + 4)) {
        if (length == left)
            return ET_OK;
        return ET_FAIL(e->cx, ET_EFORMAT,
                       "record %lld, at byte %lld, has a wrong checksum",
                       (long long)e->seq + 1, (long long)e->at);
    }
    *bytes = length;
    e->at += FRAME + length;
    return ET_OK;
}

static et_status
decode(struct et_events *e, size_t bytes, struct et_record *out, bool *known)
{
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    bool fine = msgpack_unpack_next(&u, (const char *)e->payload, bytes, NULL) ==
                    MSGPACK_UNPACK_SUCCESS &&
                read_record(e, &u.data, out, known);
    msgpack_unpacked_destroy(&u);
    if (!fine || out->seq != e->seq + 1)
        return ET_FAIL(e->cx, ET_EFORMAT, "record %lld, before byte %lld, is not one",
                       (long long)e->seq + 1, (long long)e->at);
    e->seq = out->seq;
    return ET_OK;
}

et_status
et_events_next(struct et_events *e, struct et_record *out, bool *got)
{
    for (*got = false; !*got;) {
        size_t bytes;
        ET_TRY(next_payload(e, &bytes));
        if (bytes == 0)
            return ET_OK;
        ET_TRY(decode(e, bytes, out, got));
    }
    return ET_OK;
}
