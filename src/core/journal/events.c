/* SPDX-License-Identifier: Apache-2.0 */
/* events.c: writing events.log (format: events.h).
 *
 * What is written is always a beginning of what was to be written: bytes that do not go
 * to the disk stay in the buffer and are tried again, records for which there is no
 * room then are left out and counted, and get no number. */
#include "config.h"

#include "core/journal/events.h"

#include <errno.h>
#include <fcntl.h>
#include <msgpack.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/seams.h"
#include "core/journal/events_read.h"
#include "core/loggers/spans.h"

enum {
    BUFFER = 256 << 10, /* room for a few of the longest records */
    ENOUGH = 64 << 10,  /* goes to the file */
    NUMBERS = 60 << 10, /* bytes of numbers in a record; the rest is for all else */
    ENTRY = 12,         /* bytes of a number beside its name, at most */
    CELL = 117,         /* bytes of a cell at most */
    BESIDE = 2 << 10,   /* bytes of a summary beside its series, at most */
    SERIES = (ETI_EVENTS_RECORD - BESIDE) / (ETI_PARTS * CELL + ET_METRIC_NAME + 5),
};

static void
put_u32(char *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(x >> 8 * i);
}

static int64_t
position(const struct eti_events_writer *w)
{
    return w->in_file + (int64_t)w->used;
}

/* ---- the file ---- */

void
eti_events_flush(struct eti_events_writer *w)
{
    const struct eti_file_calls *file = &eti_ctx_seams(w->cx)->file;
    size_t done = 0;
    while (done < w->used) {
        ssize_t n = file->write(w->fd, w->buffer + done, w->used - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    w->in_file += (int64_t)done;
    memmove(w->buffer, w->buffer + done, w->used - done);
    w->used -= done;
    bool had_failed = w->failed;
    int error = errno;
    w->failed = w->used > 0;
    if (w->failed && !had_failed)
        et_report(w->cx, ET_LOG_WARN, "cannot write events.log: %s; it is tried again",
                  strerror(error));
    else if (had_failed && !w->failed)
        et_report(w->cx, ET_LOG_WARN,
                  "events.log is written again; it lacks %lld records so far",
                  (long long)w->lost);
}

static et_status
open_file(struct et_ctx *cx, const char *directory, int flags,
          struct eti_events_writer *out)
{
    char path[4096];
    void *block;
    *out = (struct eti_events_writer){.cx = cx, .fd = -1};
    if ((size_t)snprintf(path, sizeof path, "%s/events.log", directory) >= sizeof path)
        return ET_FAIL(cx, ET_EINVAL, "the path of events.log is longer than %zu bytes",
                       sizeof path - 1);
    ET_TRY(et_alloc(cx, BUFFER, &block));
    out->buffer = block;
    out->fd = eti_ctx_seams(cx)->file.open(
        AT_FDCWD, path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (out->fd < 0)
        return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot write %s: %s",
                       path, strerror(errno));
    if (flock(out->fd, LOCK_EX | LOCK_NB) == 0)
        return ET_OK;
    return ET_FAIL(cx, errno == EWOULDBLOCK ? ET_ECANCELED : ET_EIO,
                   errno == EWOULDBLOCK ? "%s is being written by another process"
                                        : "cannot lock %s",
                   path);
}

et_status
eti_events_begin(struct et_ctx *cx, const char *directory, const unsigned char *id,
                 struct eti_events_writer *out)
{
    et_status status = open_file(cx, directory, O_CREAT | O_EXCL, out);
    if (status == ET_OK)
        status = eti_tally_init(&out->tally, cx);
    if (status != ET_OK) {
        eti_events_end(out);
        return status;
    }
    memcpy(out->buffer, ETI_EVENTS_MAGIC, strlen(ETI_EVENTS_MAGIC));
    put_u32(out->buffer + 8, ETI_EVENTS_MAJOR | ETI_EVENTS_MINOR << 16);
    put_u32(out->buffer + 12, 0);
    memcpy(out->buffer + 16, id, ETI_EVENTS_ID);
    out->used = ETI_EVENTS_HEADER;
    eti_events_flush(out);
    return ET_OK;
}

/* What FROM has, BYTES, to the end of TO. */
static et_status
copy_bytes(struct et_ctx *cx, int from, int to, int64_t bytes, char *block, size_t room)
{
    for (int64_t at = 0; at < bytes;) {
        size_t n = bytes - at < (int64_t)room ? (size_t)(bytes - at) : room;
        ET_TRY(eti_read_all(cx, from, "events.log", block, n, at));
        ET_TRY(eti_write_all(cx, to, "events.log", block, n));
        at += (int64_t)n;
    }
    return ET_OK;
}

/* (Linux gives a file that lost its last name no other one: it is copied.) */
et_status
eti_events_restore(struct eti_events_writer *w, const char *directory)
{
    int dir, fd = -1;
    void *block = NULL;
    if (!w->buffer || w->fd < 0)
        return ET_OK;
    eti_events_flush(w);
    ET_TRY(eti_open_folder(w->cx, directory, &dir));
    et_status status = eti_open_at(w->cx, dir, "events.log",
                                   O_RDWR | O_APPEND | O_CREAT | O_EXCL, 0600, &fd);
    bool made = status == ET_OK;
    if (made && flock(fd, LOCK_EX | LOCK_NB) != 0)
        status = ET_FAIL(w->cx, ET_EIO, "cannot lock events.log: %s", strerror(errno));
    if (status == ET_OK)
        status = et_alloc(w->cx, BUFFER, &block);
    if (status == ET_OK)
        status = copy_bytes(w->cx, w->fd, fd, w->in_file, block, BUFFER);
    et_free(w->cx, block);
    if (status == ET_OK) {
        eti_close(w->cx, w->fd);
        w->fd = fd;
    } else if (made) {
        eti_close(w->cx, fd);
        (void)eti_ctx_seams(w->cx)->file.unlink(dir, "events.log", 0);
    }
    eti_close(w->cx, dir);
    return status;
}

void
eti_events_say_thinned(struct eti_events_writer *w, struct et_time interval)
{
    uint32_t thinned = ETI_THINNED_AUTO;
    char bytes[4];
    if (w->fd < 0 || w->in_file < ETI_EVENTS_HEADER)
        return;
    if (et_time_is_set(interval) && interval.unit == ET_TIME_BATCH)
        thinned =
            interval.value > 1 ? (uint32_t)interval.value | ETI_THINNED_BATCHES : 0;
    else if (et_time_is_set(interval))
        thinned = (uint32_t)(interval.value * 1000);
    put_u32(bytes, thinned);
    /* All else is written behind the end, wherever the descriptor stands. */
    int flags = fcntl(w->fd, F_GETFL);
    if (flags < 0 || fcntl(w->fd, F_SETFL, flags & ~O_APPEND) != 0)
        return;
    if (lseek(w->fd, 12, SEEK_SET) != 12 ||
        eti_write_all(w->cx, w->fd, "events.log", bytes, sizeof bytes) != ET_OK)
        et_error_clear(w->cx);
    (void)fcntl(w->fd, F_SETFL, flags);
}

int64_t
eti_events_size(const struct eti_events_writer *w)
{
    return position(w);
}

/* One that was never begun is all zero. */
void
eti_events_end(struct eti_events_writer *w)
{
    if (!w->buffer)
        return;
    if (w->fd >= 0) {
        eti_events_flush(w);
        if (w->used > 0 || w->lost > 0)
            et_report(w->cx, ET_LOG_WARN,
                      "events.log lacks its last %zu bytes and %lld records", w->used,
                      (long long)w->lost);
        eti_close(w->cx, w->fd);
    }
    et_free(w->cx, w->buffer);
    eti_tally_free(&w->tally);
    *w = (struct eti_events_writer){0};
}

/* ---- packing ---- */

static char *
payload(const struct eti_events_writer *w)
{
    return w->buffer + w->used + ETI_EVENTS_FRAME;
}

static int
append(void *data, const char *bytes, size_t n)
{
    struct eti_events_writer *w = data;
    if (n > ETI_EVENTS_RECORD - w->packed)
        return -1;
    memcpy(payload(w) + w->packed, bytes, n);
    w->packed += n;
    return 0;
}

static int
pack_text(msgpack_packer *k, const char *text)
{
    return msgpack_pack_str_with_body(k, text, strlen(text));
}

/* Begins a payload: false where there is no room for the longest. */
static bool
begin_payload(struct eti_events_writer *w, msgpack_packer *k)
{
    const size_t most = ETI_EVENTS_FRAME + ETI_EVENTS_RECORD;
    if (w->used >= ENOUGH)
        eti_events_flush(w);
    w->packed = 0;
    msgpack_packer_init(k, w, append);
    return BUFFER - w->used >= most;
}

static void
end_payload(struct eti_events_writer *w)
{
    char *frame = w->buffer + w->used;
    put_u32(frame, (uint32_t)w->packed);
    put_u32(frame + 4, (uint32_t)crc32(0, (const Bytef *)payload(w), (uInt)w->packed));
    w->used += ETI_EVENTS_FRAME + w->packed;
}

/* ---- summaries ---- */

static int
pack_point(msgpack_packer *k, const struct et_series_point *p)
{
    return msgpack_pack_array(k, 3) | msgpack_pack_int64(k, p->ba) |
           msgpack_pack_double(k, p->t) | msgpack_pack_double(k, p->value);
}

static int
pack_cell(msgpack_packer *k, const struct et_series_stats *s)
{
    if (s->n == 0 && s->bad == 0)
        return msgpack_pack_nil(k);
    return msgpack_pack_array(k, 6) | msgpack_pack_int64(k, s->n) |
           msgpack_pack_int64(k, s->bad) | msgpack_pack_double(k, s->sum) |
           pack_point(k, &s->last) | pack_point(k, &s->min) | pack_point(k, &s->max);
}

static bool
is_present(const struct eti_tally *t, int level, int parts, int series)
{
    for (int i = 0; i < parts; i++) {
        const struct et_series_stats *s = eti_tally_cell(t, level, i, series);
        if (s->n > 0 || s->bad > 0)
            return true;
    }
    return false;
}

static int
pack_int(msgpack_packer *k, const char *key, int64_t value)
{
    return pack_text(k, key) | msgpack_pack_int64(k, value);
}

static int
pack_blocks(msgpack_packer *k, const struct eti_tally *t, int level)
{
    const struct eti_block *b = &t->block[level];
    int parts = eti_tally_parts(t, level), kinds = 0, bad;
    bad = pack_text(k, "parts") | msgpack_pack_array(k, (size_t)parts);
    for (const struct eti_events_part *p = b->part; p < b->part + parts; p++)
        bad |= msgpack_pack_array(k, 5) | msgpack_pack_int64(k, p->at) |
               msgpack_pack_int64(k, p->n) | msgpack_pack_int64(k, p->low) |
               msgpack_pack_int64(k, p->high) | msgpack_pack_int64(k, p->resume);
    bad |= pack_text(k, "last") | msgpack_pack_array(k, ETI_LEVELS);
    for (int i = 0; i < ETI_LEVELS; i++)
        bad |= msgpack_pack_int64(k, t->last[i]);
    for (int i = 0; i < ET_RECORD_COUNT; i++)
        kinds += b->kinds[i] > 0;
    bad |= pack_text(k, "kinds") | msgpack_pack_map(k, (size_t)kinds);
    for (int i = 0; i < ET_RECORD_COUNT; i++)
        if (b->kinds[i] > 0)
            bad |= pack_int(k, et_record_name((enum et_record_kind)i), b->kinds[i]);
    return bad;
}

/* Where a record of a summary stands among the others of it. */
struct piece {
    int64_t end;  /* of the records it is about */
    int64_t more; /* the piece before; 0 = none */
    int left;     /* series from NEXT on that are still to be written */
    int next;
};

/* Packs the next SERIES of them at most. */
static int
pack_piece(msgpack_packer *k, struct eti_events_writer *w, int level, struct piece *p,
           const struct et_record *r)
{
    const struct eti_tally *t = &w->tally;
    int parts = eti_tally_parts(t, level);
    int here = p->left < SERIES ? p->left : SERIES;
    int bad = msgpack_pack_array(k, 7) | pack_text(k, "summary") |
              msgpack_pack_int64(k, w->seq) | msgpack_pack_double(k, r->t) |
              msgpack_pack_int64(k, r->ep) | msgpack_pack_int64(k, r->ba) |
              msgpack_pack_int64(k, r->sp) | msgpack_pack_map(k, 10) |
              pack_int(k, "at", position(w)) | pack_int(k, "level", level + 1) |
              pack_int(k, "from", t->block[level].from) | pack_int(k, "end", p->end) |
              pack_int(k, "more", p->more) | pack_blocks(k, t, level);
    bad |= pack_text(k, "s") | msgpack_pack_map(k, (size_t)here);
    p->left -= here;
    for (; here > 0; p->next++) {
        if (!is_present(t, level, parts, p->next))
            continue;
        bad |=
            pack_text(k, t->names.name[p->next]) | msgpack_pack_array(k, (size_t)parts);
        for (int i = 0; i < parts; i++)
            bad |= pack_cell(k, eti_tally_cell(t, level, i, p->next));
        here--;
    }
    bad |= pack_text(k, "done");
    return bad | (p->left == 0 ? msgpack_pack_true(k) : msgpack_pack_false(k));
}

/* Writes the summary of LEVEL and those above that it completes; R is the last record.
 * Without room the lowest level goes on with wider parts. */
static void
summarise(struct eti_events_writer *w, int level, const struct et_record *r)
{
    struct eti_tally *t = &w->tally;
    struct piece p = {.end = position(w)};
    int parts = eti_tally_parts(t, level);
    int64_t at = 0;
    for (int s = 0; s < t->names.n; s++)
        p.left += is_present(t, level, parts, s);
    do {
        msgpack_packer k;
        bool room = begin_payload(w, &k);
        at = position(w);
        if (!room || pack_piece(&k, w, level, &p, r) != 0) {
            t->off = level > 0 || !!room;
            if (!t->off && eti_tally_parts(t, 0) == ETI_PARTS)
                eti_tally_widen(t);
            return;
        }
        end_payload(w);
        p.more = at;
    } while (p.left > 0);
    eti_tally_close(t, level, at);
    if (level + 1 < ETI_LEVELS && t->block[level + 1].n == ETI_PARTS)
        summarise(w, level + 1, r);
}

et_status
eti_events_continue(struct et_ctx *cx, const char *directory, int64_t *cut,
                    struct eti_events_writer *out)
{
    struct stat st;
    int64_t end = 0;
    *cut = 0;
    et_status status = open_file(cx, directory, 0, out);
    if (status == ET_OK)
        status = eti_tally_init(&out->tally, cx);
    if (status == ET_OK)
        status = eti_events_recount(cx, directory, &out->tally, &out->last, &end);
    if (status == ET_OK && (fstat(out->fd, &st) != 0 ||
                            (st.st_size > end && ftruncate(out->fd, end) != 0)))
        status = ET_FAIL(cx, ET_EIO, "cannot cut %s/events.log to %lld bytes: %s",
                         directory, (long long)end, strerror(errno));
    if (status != ET_OK) {
        eti_events_end(out);
        return status;
    }
    *cut = st.st_size - end;
    out->in_file = end;
    out->seq = out->last.seq;
    /* A crash may have cut off what a summary was to complete. */
    for (int level = 1; level < ETI_LEVELS && !out->tally.off; level++)
        if (out->tally.block[level].n == ETI_PARTS)
            summarise(out, level, &out->last);
    return ET_OK;
}

/* ---- records ---- */

/* Bytes of number I of R at most: its name comes once, or in each of six maps. */
static size_t
bytes_of(const struct et_record *r, int i)
{
    return (strlen(r->entry[i].name) + ENTRY) * (r->span ? 6 : 1);
}

/* How many entries from FIRST on fit into one record. */
static int
count_fitting(const struct et_record *r, int first)
{
    size_t bytes = 0;
    int i = first;
    for (; i < r->n; i++) {
        bytes += bytes_of(r, i);
        if (bytes > NUMBERS)
            break;
    }
    return i - first;
}

bool
eti_events_is_full(const struct et_record *r)
{
    size_t bytes = (ENTRY + ET_METRIC_NAME) * (r->span ? 6 : 1);
    for (int i = 0; i < r->n; i++)
        bytes += bytes_of(r, i);
    return bytes > NUMBERS;
}

static int
pack_about(msgpack_packer *k, const struct et_record *r, enum eti_about about, int n)
{
    int bad = pack_text(k, eti_about_key(about)) | msgpack_pack_map(k, (size_t)n);
    for (int i = 0; i < r->n; i++) {
        double value;
        if (!eti_about_get(r, i, about, &value))
            continue;
        bad |= pack_text(k, r->entry[i].name);
        bad |= eti_about_is_count(about) ? msgpack_pack_int64(k, (int64_t)value)
                                         : msgpack_pack_double(k, value);
    }
    return bad;
}

static int
pack_body(msgpack_packer *k, const struct et_record *r)
{
    bool is_log = r->kind == ET_RECORD_LOG;
    int about[ETI_ABOUT_COUNT], abouts = 0;
    for (int i = 0; i < ETI_ABOUT_COUNT; i++) {
        about[i] = eti_about_size(r, 0, r->n, (enum eti_about)i);
        abouts += about[i] > 0;
    }
    int bad = msgpack_pack_map(k, (r->n > 0) + (r->text != NULL) + is_log +
                                      (r->rank != 0) + 2 * (r->of > 0) + abouts);
    if (r->of > 0)
        bad |= pack_int(k, "of", r->of) | pack_int(k, "from", r->from);
    if (r->n > 0) {
        bad |= pack_text(k, eti_is_series(r) ? "m" : "f") |
               msgpack_pack_map(k, (size_t)r->n);
        for (int i = 0; i < r->n; i++)
            bad |= pack_text(k, r->entry[i].name) |
                   msgpack_pack_double(k, r->entry[i].value);
    }
    for (int i = 0; i < ETI_ABOUT_COUNT; i++)
        if (about[i] > 0)
            bad |= pack_about(k, r, (enum eti_about)i, about[i]);
    if (r->text)
        bad |= pack_text(k, "text") | pack_text(k, r->text);
    if (is_log)
        bad |= pack_text(k, "level") | pack_text(k, et_log_level_name(r->level));
    if (r->rank != 0)
        bad |= pack_int(k, "rank", r->rank);
    return bad;
}

static void
write_one(struct eti_events_writer *w, const struct et_record *r)
{
    msgpack_packer k;
    if (!begin_payload(w, &k)) {
        w->lost++;
        return;
    }
    int bad = msgpack_pack_array(&k, 7) | pack_text(&k, et_record_name(r->kind)) |
              msgpack_pack_int64(&k, w->seq + 1) | msgpack_pack_double(&k, r->t) |
              msgpack_pack_int64(&k, r->ep) | msgpack_pack_int64(&k, r->ba) |
              msgpack_pack_int64(&k, r->sp) | pack_body(&k, r);
    if (bad) {
        et_report(w->cx, ET_LOG_WARN,
                  "events.log: a record of more than %d bytes is left out",
                  ETI_EVENTS_RECORD);
        return;
    }
    int64_t at = position(w);
    end_payload(w);
    w->seq++;
    eti_tally_add(&w->tally, r, at);
    if (!w->tally.off && w->tally.block[0].n == ETI_PARTS)
        summarise(w, 0, r);
}

/* A resume is the first record of a summary of level 1, or there are no more. */
static void
begin_resumed(struct eti_events_writer *w, const struct et_record *r)
{
    struct eti_tally *t = &w->tally;
    if (!t->off && eti_tally_parts(t, 0) > 0)
        summarise(w, 0, r);
    t->off = t->off || eti_tally_parts(t, 0) > 0;
}

void
eti_events_write(struct eti_events_writer *w, const struct et_record *r)
{
    struct et_record part = *r;
    if (!w->buffer)
        return;
    if (r->kind == ET_RECORD_RESUME)
        begin_resumed(w, r);
    part.n = count_fitting(r, 0);
    write_one(w, &part);
    for (int done = part.n; done < r->n; done += part.n) {
        if (eti_is_series(r))
            part.kind = ET_RECORD_METRIC;
        part.text = NULL;
        part.entry = r->entry + done;
        part.span = r->span ? r->span + done : NULL;
        part.n = count_fitting(r, done);
        write_one(w, &part);
    }
    if (r->kind == ET_RECORD_RUN || r->kind == ET_RECORD_EPOCH ||
        r->kind == ET_RECORD_EVAL || r->kind == ET_RECORD_RESUME ||
        r->kind == ET_RECORD_ANNOTATION || r->kind == ET_RECORD_CHECKPOINT ||
        (r->kind == ET_RECORD_LOG && r->level >= ET_LOG_WARN))
        eti_events_flush(w);
}

et_status
eti_events_annotate(struct et_ctx *cx, const char *directory, const char *text,
                    int64_t *cut, struct et_record *out)
{
    char visible[ET_VISIBLE_MAX + 1];
    struct eti_events_writer w;
    ET_TRY(eti_events_continue(cx, directory, cut, &w));
    et_visible(visible, sizeof visible, text, strlen(text));
    *out = (struct et_record){
        .kind = ET_RECORD_ANNOTATION,
        .t = eti_wall(cx),
        .ep = w.last.ep,
        .ba = w.last.ba,
        .sp = w.last.sp,
        .text = visible,
    };
    eti_events_write(&w, out);
    out->text = NULL;
    eti_events_flush(&w);
    bool written = !w.failed && w.lost == 0;
    eti_events_end(&w);
    return written ? ET_OK
                   : ET_FAIL(cx, ET_EIO, "cannot write %s/events.log", directory);
}
