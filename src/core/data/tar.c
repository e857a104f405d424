/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c: see tar.h. Members are headers of 512 bytes and contents that are filled up to
 * such. Read are V7's, ustar's, GNU's (long names, sizes beyond eight octal digits) and
 * those of pax (path, size).
 *
 * libarchive reads such files from the first byte to the last, and does not say where
 * the contents of a member lie; samples are read in any order.
 *
 * Source: POSIX.1-2017, pax, "ustar Interchange Format"; GNU tar's manual, "Basic Tar
 * Format". */
#include "core/data/tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, PAX_MOST = 1 << 20 };

/* The fields of a header that are used: where each begins, and how long it is. */
enum {
    NAME = 0,
    NAME_N = 100,
    SIZE = 124,
    SIZE_N = 12,
    SUM = 148,
    SUM_N = 8,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_N = 155,
};

/* What extra headers say of the member that follows. */
struct extra {
    bool has_name, has_size;
    int64_t size;
};

static const struct {
    const char *bytes;
    size_t n;
    const char *program;
} compressed[] = {
    {"\x1f\x8b", 2, "gunzip"},
    {"BZh", 3, "bunzip2"},
    {"\xfd"
     "7zXZ",
     5, "unxz"},
    {"\x28\xb5\x2f\xfd", 4, "unzstd"},
    {"\x04\x22\x4d\x18", 4, "unlz4"},
};

static et_status
refuse_first(const uint8_t *block, struct et_error *why)
{
    for (size_t i = 0; i < sizeof compressed / sizeof *compressed; i++)
        if (memcmp(block, compressed[i].bytes, compressed[i].n) == 0)
            return eti_why(why, ET_ENOTSUP,
                           "it is compressed, and samples are read in any order: %s it "
                           "first",
                           compressed[i].program);
    return eti_why(why, ET_EFORMAT, "it does not begin as a tar file does");
}

/* A number of octal digits, or of GNU's 63 bits behind a byte of 128; -1: none. */
static int64_t
number_at(const uint8_t *field, int n)
{
    int64_t v = 0;
    int i = 0;
    if (field[0] & 0x80) {
        v = field[0] & 0x7f;
        for (i = 1; i < n; i++) {
            if (v > INT64_MAX >> 8)
                return -1;
            v = v << 8 | field[i];
        }
        return v;
    }
    while (i < n && field[i] == ' ')
        i++;
    int first = i;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
        v = v * 8 + (field[i] - '0');
    bool ended = i == n || field[i] == ' ' || field[i] == 0;
    return ended && i > first ? v : -1;
}

/* Is the sum that the header has the sum of its bytes, with blanks for itself? */
static bool
has_sum(const uint8_t *block)
{
    int64_t sum = 0, own = number_at(block + SUM, SUM_N);
    for (int i = 0; i < BLOCK; i++)
        sum += i >= SUM && i < SUM + SUM_N ? ' ' : block[i];
    return own == sum;
}

static bool
is_zero(const uint8_t *block)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* A name of at most N bytes, which need not end with a zero. */
static int
length_of(const uint8_t *text, int n)
{
    return (int)strnlen((const char *)text, (size_t)n);
}

static void
take_name(const uint8_t *block, struct eti_tar_member *out)
{
    const char *name = (const char *)block + NAME,
               *prefix = (const char *)block + PREFIX;
    int n = length_of(block + NAME, NAME_N), p = length_of(block + PREFIX, PREFIX_N);
    if (memcmp(block + MAGIC, "ustar", 6) != 0) /* GNU's has a blank behind it */
        p = 0;
    snprintf(out->name, sizeof out->name, "%.*s%s%.*s", p, prefix, p ? "/" : "", n,
             name);
}

/* ---- extra headers ---- */

/* "LENGTH KEY=VALUE\n", of which LENGTH counts all; the record behind it, or NULL where
 * the text is no record. */
static const char *
take_record(const char *at, const char *end, struct eti_tar_member *out,
            struct extra *e)
{
    char *key;
    long n = strtol(at, &key, 10);
    if (n <= 0 || n > end - at || *key != ' ' || at[n - 1] != '\n')
        return NULL;
    const char *stop = at + n - 1;
    key++;
    const char *value = memchr(key, '=', stop > key ? (size_t)(stop - key) : 0);
    if (!value)
        return NULL;
    size_t key_n = (size_t)(value - key);
    value++;
    if (key_n == 4 && memcmp(key, "path", 4) == 0) {
        if (stop - value >= ETI_PATH_MAX)
            return NULL;
        snprintf(out->name, sizeof out->name, "%.*s", (int)(stop - value), value);
        e->has_name = true;
    } else if (key_n == 4 && memcmp(key, "size", 4) == 0) {
        char *digits;
        e->size = strtoll(value, &digits, 10);
        e->has_size = digits == stop && e->size >= 0;
        if (!e->has_size)
            return NULL;
    }
    return stop + 1;
}

/* The contents of an extra header of TYPE, N bytes at OFFSET. */
static et_status
read_extra(const struct eti_tar *t, int type, int64_t offset, int64_t n,
           struct eti_tar_member *out, struct extra *e, struct et_error *why)
{
    if (n > (type == 'x' ? PAX_MOST : ETI_PATH_MAX - 1))
        return eti_why(why, ET_EFORMAT, "an extra header of %" PRId64 " bytes", n);
    char *text = malloc((size_t)n + 1);
    if (!text)
        return eti_why(why, ET_ENOMEM, "no memory for a header of %" PRId64 " bytes",
                       n);
    et_status status = eti_file_read(t->f, text, n, offset, why);
    text[n] = 0;
    if (status == ET_OK && type == 'L') {
        snprintf(out->name, sizeof out->name, "%s", text);
        e->has_name = true;
    }
    for (const char *at = text; status == ET_OK && type == 'x' && at < text + n;) {
        at = take_record(at, text + n, out, e);
        if (!at) {
            status = eti_why(why, ET_EFORMAT, "a pax header that is none");
            break;
        }
    }
    free(text);
    return status;
}

/* ---- members ---- */

/* The block at T->at; *GOT false: the file ends there. */
static et_status
read_header(const struct eti_tar *t, uint8_t block[BLOCK], bool *got,
            struct et_error *why)
{
    *got = t->at < t->f->size;
    if (!*got)
        return t->at == 0 ? eti_why(why, ET_EFORMAT, "it is empty") : ET_OK;
    if (t->f->size - t->at < BLOCK)
        return t->at == 0 ? eti_why(why, ET_EFORMAT, "too short for a tar file")
                          : eti_why(why, ET_EFORMAT, "it ends within a header");
    ET_TRY(eti_file_read(t->f, block, BLOCK, t->at, why));
    *got = !is_zero(block);
    if (!*got || has_sum(block))
        return ET_OK;
    return t->at == 0
               ? refuse_first(block, why)
               : eti_why(why, ET_EFORMAT, "a damaged header at byte %" PRId64, t->at);
}

et_status
eti_tar_next(struct eti_tar *t, struct eti_tar_member *out, bool *got,
             struct et_error *why)
{
    struct extra e = {false};
    uint8_t block[BLOCK];
    for (;;) {
        ET_TRY(read_header(t, block, got, why));
        if (!*got)
            return ET_OK;
        int type = block[TYPE];
        bool is_extra = type == 'L' || type == 'x' || type == 'K' || type == 'g';
        int64_t n = number_at(block + SIZE, SIZE_N), offset = t->at + BLOCK;
        if (!is_extra && e.has_size)
            n = e.size;
        if (n < 0 || n > t->f->size - offset)
            return eti_why(why, ET_EFORMAT,
                           "it ends within the member at byte %" PRId64, t->at);
        t->at = offset + (n + BLOCK - 1) / BLOCK * BLOCK;
        if (type == 'L' || type == 'x')
            ET_TRY(read_extra(t, type, offset, n, out, &e, why));
        if (is_extra)
            continue;
        if (!e.has_name)
            take_name(block, out);
        out->is_file = type == '0' || type == 0 || type == '7';
        out->offset = offset;
        out->bytes = n;
        return ET_OK;
    }
}
