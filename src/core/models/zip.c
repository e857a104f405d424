/* SPDX-License-Identifier: Apache-2.0 */
/* zip.c: see zip.h. Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3.7 (a member's own
 * header), 4.3.12 (the directory), 4.3.14 to 4.3.16 (its end), 4.5.3 (64-bit sizes).
 *
 * Nothing is believed before it is checked, and every place is inside the file. By
 * hand: of libzip we would need what these lines do, since members are read in place.
 */
#include "core/models/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 65535,
    DIRECTORY_MAX = 64 << 20,
};
#define END_MARK     0x06054b50u
#define LOCATOR_MARK 0x07064b50u
#define END64_MARK   0x06064b50u
#define ENTRY_MARK   0x02014b50u
#define LOCAL_MARK   0x04034b50u
#define IN_64_BITS   0xffffffffu /* the number is in the extra field */

struct reading {
    struct et_ctx *cx;
    const struct eti_file *f;
    struct eti_zip *out;
    int64_t at, bytes, n; /* the directory: place, length, members */
};

#define REFUSE(r, fmt, ...)                                                            \
    ET_FAIL((r)->cx, ET_EFORMAT, "%s: " fmt, (r)->f->path, __VA_ARGS__)

/* ---- numbers, little-endian ---- */

static uint64_t
number(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static uint32_t
u16(const uint8_t *p)
{
    return (uint32_t)number(p, 2);
}

static uint32_t
u32(const uint8_t *p)
{
    return (uint32_t)number(p, 4);
}

/* A size or place of 8 bytes; -1: larger than a file can be. */
static int64_t
i64(const uint8_t *p)
{
    uint64_t v = number(p, 8);
    return v > INT64_MAX ? -1 : (int64_t)v;
}

static et_status
read_at(const struct reading *r, void *out, int64_t n, int64_t at)
{
    struct et_error why = {0};
    if (at < 0 || n < 0 || at > r->f->size || n > r->f->size - at)
        return REFUSE(r, "a part of the archive lies past its end%s", "");
    et_status status = eti_file_read(r->f, out, n, at, &why);
    return status == ET_OK ? ET_OK : ET_FAIL(r->cx, status, "%s", why.message);
}

/* ---- the end, which says where the directory is ---- */

/* A zip archive ends with its directory's place and a comment: the last place in the N
 * bytes at TAIL where that may be, or -1. */
static int64_t
find_end(const uint8_t *tail, int64_t n)
{
    for (int64_t i = n - END_BYTES; i >= 0; i--)
        if (u32(tail + i) == END_MARK &&
            u16(tail + i + 20) == (uint32_t)(n - i - END_BYTES))
            return i;
    return -1;
}

/* The 64-bit numbers, whose place stands before END. */
static et_status
read_end64(struct reading *r, int64_t end)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    ET_TRY(read_at(r, locator, sizeof locator, end - LOCATOR_BYTES));
    if (u32(locator) != LOCATOR_MARK)
        return REFUSE(r, "the archive's end has no 64-bit %s", "numbers");
    ET_TRY(read_at(r, record, sizeof record, i64(locator + 8)));
    if (u32(record) != END64_MARK)
        return REFUSE(r, "the archive's end has no 64-bit %s", "record");
    r->n = i64(record + 32);
    r->bytes = i64(record + 40);
    r->at = i64(record + 48);
    return ET_OK;
}

static et_status
read_end(struct reading *r)
{
    int64_t n =
        r->f->size < END_BYTES + COMMENT_MAX ? r->f->size : END_BYTES + COMMENT_MAX;
    void *tail;
    ET_TRY(et_alloc(r->cx, (size_t)n + 1, &tail));
    et_status status = read_at(r, tail, n, r->f->size - n);
    int64_t i = status == ET_OK ? find_end(tail, n) : -1;
    if (status == ET_OK && i < 0)
        status = REFUSE(r, "the archive has no %s", "end");
    if (status == ET_OK) {
        const uint8_t *end = (const uint8_t *)tail + i;
        r->n = u16(end + 10);
        r->bytes = u32(end + 12);
        r->at = u32(end + 16);
        if (r->n == 0xffff || r->bytes == IN_64_BITS || r->at == IN_64_BITS)
            status = read_end64(r, r->f->size - n + i);
    }
    et_free(r->cx, tail);
    return status;
}

/* ---- the directory ---- */

/* The numbers of the N-byte extra field that stand for those which are IN_64_BITS, in
 * this order. */
static bool
read_extra(const uint8_t *extra, int64_t n, int64_t *const number64[3],
           const bool wanted[3])
{
    bool any = wanted[0] || wanted[1] || wanted[2];
    while (n >= 4) {
        int64_t size = u16(extra + 2), used = 4;
        if (size > n - 4)
            return false;
        for (int i = 0; i < 3 && u16(extra) == 1; i++) {
            if (!wanted[i])
                continue;
            if (used + 8 > size + 4)
                return false;
            *number64[i] = i64(extra + used);
            used += 8;
        }
        if (u16(extra) == 1)
            return true;
        extra += 4 + size;
        n -= 4 + size;
    }
    return !any;
}

/* M, whose own header is at LOCAL, begins behind that, and has the same name there. */
static et_status
check_local(const struct reading *r, struct eti_zip_member *m, int64_t local)
{
    uint8_t head[LOCAL_BYTES];
    char name[1024];
    size_t n = strlen(m->name);
    ET_TRY(read_at(r, head, sizeof head, local));
    if (u32(head) != LOCAL_MARK || u16(head + 26) != n || n >= sizeof name)
        return REFUSE(r, "'%s' is not where the archive's directory has it", m->name);
    ET_TRY(read_at(r, name, (int64_t)n, local + LOCAL_BYTES));
    if (memcmp(name, m->name, n) != 0)
        return REFUSE(r, "'%s' has another name in the archive's directory", m->name);
    m->at = local + LOCAL_BYTES + (int64_t)n + u16(head + 28);
    if (m->bytes < 0 || m->at > r->f->size || m->bytes > r->f->size - m->at)
        return REFUSE(r, "'%s' ends past the archive", m->name);
    return ET_OK;
}

/* The entry at P, of at most N bytes, becomes M; *USED are its bytes. */
static et_status
read_entry(const struct reading *r, const uint8_t *p, int64_t n, char *name,
           struct eti_zip_member *m, int64_t *used)
{
    if (n < ENTRY_BYTES || u32(p) != ENTRY_MARK)
        return REFUSE(r, "the archive's directory is %s", "damaged");
    int64_t length = u16(p + 28), extra = u16(p + 30), stored = u32(p + 20);
    int64_t local = u32(p + 42);
    *used = ENTRY_BYTES + length + extra + u16(p + 32);
    if (*used > n || length == 0)
        return REFUSE(r, "the archive's directory is %s", "damaged");
    memcpy(name, p + ENTRY_BYTES, (size_t)length);
    for (int64_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ') /* messages have names in them, on one line */
            return REFUSE(r, "a member's name is %s", "damaged");
    *m =
        (struct eti_zip_member){.name = name, .bytes = u32(p + 24), .crc = u32(p + 16)};
    int64_t *const number64[] = {&m->bytes, &stored, &local};
    const bool wanted[] = {m->bytes == IN_64_BITS, stored == IN_64_BITS,
                           local == IN_64_BITS};
    if (!read_extra(p + ENTRY_BYTES + length, extra, number64, wanted))
        return REFUSE(r, "'%.64s': its extra field is damaged", name);
    if (u16(p + 8) & 1 || u16(p + 10) != 0 || stored != m->bytes)
        return REFUSE(r, "'%.64s' is compressed or encrypted", name);
    return check_local(r, m, local);
}

static int
by_name(const void *x, const void *y)
{
    const struct eti_zip_member *a = x, *b = y;
    return strcmp(a->name, b->name);
}

static et_status
read_entries(const struct reading *r, const uint8_t *p)
{
    struct eti_zip *z = r->out;
    int64_t left = r->bytes, used = 0;
    char *name = z->names; /* each is shorter than its entry */
    for (int64_t i = 0; i < r->n; i++) {
        ET_TRY(read_entry(r, p, left, name, &z->v[z->n], &used));
        z->n++;
        name += strlen(name) + 1;
        p += used;
        left -= used;
    }
    if (z->n > 0)
        qsort(z->v, (size_t)z->n, sizeof *z->v, by_name);
    for (int64_t i = 1; i < z->n; i++)
        if (strcmp(z->v[i - 1].name, z->v[i].name) == 0)
            return REFUSE(r, "'%s' is there twice", z->v[i].name);
    return ET_OK;
}

static et_status
read_directory(struct reading *r)
{
    void *block, *directory;
    ET_TRY(read_end(r));
    if (r->n < 0 || r->bytes < 0 || r->bytes > DIRECTORY_MAX ||
        r->n > r->bytes / ENTRY_BYTES)
        return REFUSE(r, "the archive's directory is too %s",
                      r->bytes > DIRECTORY_MAX ? "long" : "short");
    ET_TRY(et_alloc(r->cx, ((size_t)r->n + 1) * sizeof *r->out->v, &block));
    r->out->v = block;
    ET_TRY(et_alloc(r->cx, (size_t)r->bytes + 1, &block));
    r->out->names = block;
    ET_TRY(et_alloc(r->cx, (size_t)r->bytes + 1, &directory));
    et_status status = read_at(r, directory, r->bytes, r->at);
    if (status == ET_OK)
        status = read_entries(r, directory);
    et_free(r->cx, directory);
    return status;
}

et_status
eti_zip_read(struct et_ctx *cx, const struct eti_file *f, struct eti_zip *out)
{
    struct reading r = {.cx = cx, .f = f, .out = out};
    *out = (struct eti_zip){.cx = cx};
    et_status status = read_directory(&r);
    if (status != ET_OK)
        eti_zip_release(out);
    return status;
}

void
eti_zip_release(struct eti_zip *z)
{
    if (!z->cx)
        return;
    et_free(z->cx, z->v);
    et_free(z->cx, z->names);
    *z = (struct eti_zip){0};
}

const struct eti_zip_member *
eti_zip_find(const struct eti_zip *z, const char *name)
{
    const struct eti_zip_member key = {.name = name};
    return z->n ? bsearch(&key, z->v, (size_t)z->n, sizeof key, by_name) : NULL;
}

et_status
eti_zip_load(const struct eti_zip *z, const struct eti_file *f,
             const struct eti_zip_member *m, int64_t limit, struct eti_bytes *out)
{
    const struct reading r = {.cx = z->cx, .f = f};
    char text[32];
    void *block;
    *out = (struct eti_bytes){0};
    if (m->bytes > limit)
        return REFUSE(&r, "'%s' has more than %s", m->name,
                      eti_size_text(limit, text, sizeof text));
    ET_TRY(et_alloc(z->cx, (size_t)m->bytes + 1, &block));
    et_status status = read_at(&r, block, m->bytes, m->at);
    if (status == ET_OK && crc32(0, block, (uInt)m->bytes) != m->crc)
        status = REFUSE(&r, "'%s' is not what its checksum is of", m->name);
    if (status == ET_OK)
        *out = (struct eti_bytes){block, m->bytes};
    else
        et_free(z->cx, block);
    return status;
}
