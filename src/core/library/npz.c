/* SPDX-License-Identifier: Apache-2.0 */
/* npz.c: see npz.h. */
#include "config.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "core/library/npz.h"

/* What is known of an array once it is written. */
struct entry {
    const char *name;
    uint64_t bytes;
    uint32_t crc;
    int64_t at;
};

static void
put_little(FILE *f, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(x >> 8 * i & 0xff), f);
}

static size_t
data_bytes(const struct eti_npz_array *a)
{
    size_t n = a->each;
    for (int k = 0; k < a->ndim; k++)
        n *= (size_t)a->shape[k];
    return n;
}

/* Its header in BUF; returns the bytes. */
static int
npy_head(const struct eti_npz_array *a, char *buf, size_t size)
{
    char shape[96];
    size_t used = 0;
    for (int k = 0; k < a->ndim; k++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRId64,
                                 k > 0 ? ", " : "", a->shape[k]);
    snprintf(shape + used, sizeof shape - used, a->ndim == 1 ? "," : "");
    int n = snprintf(buf + 10, size - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                     a->type, shape);
    const int all = (10 + n + 1 + 63) / 64 * 64;
    memset(buf + 10 + n, ' ', (size_t)(all - 10 - n));
    buf[all - 1] = '\n';
    memcpy(buf, "\x93NUMPY\x01\x00", 8);
    buf[8] = (char)((all - 10) & 0xff);
    buf[9] = (char)((all - 10) >> 8);
    return all;
}

/* What both of a file's entries have: version, method, time, checksum, sizes, name. */
static void
put_entry(FILE *f, const struct entry *e)
{
    put_little(f, 20, 2); /* version */
    put_little(f, 0, 2);  /* flags */
    put_little(f, 0, 2);  /* stored */
    put_little(f, 0, 2);
    put_little(f, 0x21, 2); /* 1980-01-01 */
    put_little(f, e->crc, 4);
    put_little(f, e->bytes, 4);
    put_little(f, e->bytes, 4);
    put_little(f, strlen(e->name), 2);
    put_little(f, 0, 2);
}

static void
put_array(FILE *f, const struct eti_npz_array *a, struct entry *e)
{
    char head[256];
    const int n = npy_head(a, head, sizeof head);
    const size_t data = data_bytes(a);
    uLong crc = crc32(crc32(0, Z_NULL, 0), (const Bytef *)head, (uInt)n);
    for (size_t at = 0; at < data; at += 1 << 20)
        crc = crc32(crc, (const Bytef *)a->data + at,
                    (uInt)(data - at < 1 << 20 ? data - at : 1 << 20));
    *e = (struct entry){a->name, (uint64_t)n + data, (uint32_t)crc, ftell(f)};
    put_little(f, 0x04034b50, 4);
    put_entry(f, e);
    fputs(a->name, f);
    fwrite(head, 1, (size_t)n, f);
    fwrite(a->data, 1, data, f);
}

bool
eti_npz_put(FILE *f, const struct eti_npz_array *array, int n)
{
    struct entry entry[ETI_NPZ_MOST];
    double all = 0;
    for (int i = 0; i < n; i++)
        all += (double)data_bytes(&array[i]);
    if (all > 4e9)
        return false;
    for (int i = 0; i < n; i++)
        put_array(f, &array[i], &entry[i]);
    const int64_t from = ftell(f);
    for (int i = 0; i < n; i++) {
        put_little(f, 0x02014b50, 4);
        put_little(f, 20, 2);
        put_entry(f, &entry[i]);
        put_little(f, 0, 2 + 2 + 2); /* comment, disk, what it is */
        put_little(f, 0, 4);
        put_little(f, (uint64_t)entry[i].at, 4);
        fputs(entry[i].name, f);
    }
    const int64_t to = ftell(f);
    put_little(f, 0x06054b50, 4);
    put_little(f, 0, 4);
    put_little(f, (uint64_t)n, 2);
    put_little(f, (uint64_t)n, 2);
    put_little(f, (uint64_t)(to - from), 4);
    put_little(f, (uint64_t)from, 4);
    put_little(f, 0, 2);
    return true;
}
