/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the readers of what people bring; see replay.h. The input's first byte
 * says which: c a CSV file, n a .npy file, t a tar file, i an index.json of MDS, m a
 * shard of MDS with three columns, k one with one column. (z, a packed shard, is a seed
 * for t/data/shards alone: zstd's own.)
 *
 * Whatever the bytes: no crash, nothing left allocated; what is accepted lies within
 * the file, what is not has a sentence of one line. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/data/csv.h"
#include "core/data/mds.h"
#include "core/data/npy.h"
#include "core/data/tar.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

enum { CSV, NPY, TAR, INDEX, SHARD, COLUMN, KINDS };
static const char letters[] = "cntimk";
static int accepted[KINDS];

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static bool
judge(int kind, et_status status, const struct et_error *why)
{
    need(status == ET_OK || (why->message[0] && !strchr(why->message, '\n')));
    need(status == ET_OK || status == ET_EFORMAT || status == ET_ENOTSUP);
    accepted[kind] += status == ET_OK;
    return status == ET_OK;
}

static void
try_csv(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    struct eti_csv c;
    bool got = true;
    need(text != NULL);
    need(et_ctx_new(&cx) == ET_OK);
    memcpy(text, data, size);
    et_status status = eti_csv_begin(cx, &c, "x.csv", text, (int64_t)size, ',');
    for (int64_t line = 1; status == ET_OK && got; line = c.line) {
        status = eti_csv_row(&c, &got);
        for (int64_t i = 0; status == ET_OK && got && i < c.n; i++) {
            double number;
            need(c.cell[i].line >= line && c.cell[i].column >= 1);
            need(c.cell[i].text >= text &&
                 c.cell[i].text + strlen(c.cell[i].text) <= text + size);
            (void)eti_cell_number(&c.cell[i], &number);
        }
    }
    judge(CSV, status, et_error_get(cx));
    eti_csv_close(&c);
    et_error_clear(cx);
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    free(text);
}

static void
try_npy(const uint8_t *data, size_t size)
{
    struct eti_npy npy;
    struct et_error why = {0};
    if (!judge(NPY, eti_npy_parse(data, (int64_t)size, &npy, &why), &why))
        return;
    need(npy.header > 0 && npy.header <= (int64_t)size && npy.bytes >= 0);
    need(npy.ndim >= 0 && npy.ndim <= ET_MAX_DIMS);
}

/* The bytes as a file. */
static struct eti_file
as_file(const uint8_t *data, size_t size)
{
    struct eti_file f = {.size = (int64_t)size, .path = "x"};
    f.fd = memfd_create("fuzz", MFD_CLOEXEC);
    need(f.fd >= 0 && write(f.fd, data, size) == (ssize_t)size);
    return f;
}

static void
try_tar(const uint8_t *data, size_t size)
{
    struct eti_file f = as_file(data, size);
    struct eti_tar t = {.f = &f};
    struct eti_tar_member m;
    struct et_error why = {0};
    et_status status;
    bool got;
    int n = 0;
    while ((status = eti_tar_next(&t, &m, &got, &why)) == ET_OK && got) {
        need(m.bytes >= 0 && m.offset >= 512 && m.offset + m.bytes <= f.size);
        need(strlen(m.name) < sizeof m.name && t.at > m.offset - 1);
        n++;
    }
    if (judge(TAR, status, &why))
        need(n <= (int)(size / 512));
    close(f.fd);
}

static void
try_index(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct eti_mds m;
    struct et_error why = {0};
    struct et_alloc_stats stats;
    need(et_ctx_new(&cx) == ET_OK);
    et_status status = eti_mds_parse(cx, (const char *)data, (int64_t)size, &m, &why);
    if (judge(INDEX, status, &why)) {
        need(m.n_columns > 0 && m.n_columns <= ETI_MDS_COLUMNS && m.n_shards > 0);
        for (int64_t i = 0; i < m.n_shards; i++)
            need(m.shard[i].samples >= 0 && m.shard[i].bytes > 0 &&
                 m.shard[i].raw[0] != '/' && !strstr(m.shard[i].raw, ".."));
    }
    eti_mds_free(cx, &m);
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
}

/* The numbers of arrays in column I, and the first of them widened. */
static et_status
try_arrays(const struct eti_mds *m, int i, const struct eti_mds_file *f,
           const uint8_t *data, size_t size, struct et_error *why)
{
    struct eti_mds_array array;
    ET_TRY(eti_mds_array_init(m, i, eti_mds_numbers, &array, why));
    for (int64_t at = 0; at < f->n; at++) {
        const struct eti_mds_number *kind;
        int64_t offset, bytes;
        int32_t id;
        ET_TRY(eti_mds_array_place(&array, f, at, &kind, &offset, &bytes, why));
        need(bytes >= 0 && bytes % kind->width == 0);
        need(offset > 0 && offset + bytes <= (int64_t)size);
        if (bytes > 0)
            need(eti_mds_widen(kind, data + offset, 1, 7, &id) < 1);
    }
    return ET_OK;
}

static void
try_shard(int kind, const struct eti_mds *m, const uint8_t *data, size_t size)
{
    struct eti_mds_file f = {.file = as_file(data, size)};
    struct et_error why = {0};
    uint32_t n = 0;
    memcpy(&n, data, size < sizeof n ? size : sizeof n);
    et_status status = eti_mds_begin(&f, n, &why);
    for (int64_t at = 0; status == ET_OK && at < f.n; at++)
        for (int i = 0; status == ET_OK && i < m->n_columns; i++) {
            int64_t offset, bytes;
            char text[64];
            status = eti_mds_place(m, &f, at, i, &offset, &bytes, &why);
            if (status != ET_OK)
                break;
            need(offset > 0 && bytes >= 0 && offset + bytes <= (int64_t)size);
            struct et_error ignored = {0};
            need(eti_mds_text(m->column[i].encoding, data + offset, bytes, text,
                              sizeof text, &ignored) == ET_OK ||
                 ignored.message[0]);
        }
    for (int i = 0; status == ET_OK && i < m->n_columns; i++)
        if (eti_mds_is_array(m->column[i].encoding))
            status = try_arrays(m, i, &f, data, size, &why);
    judge(kind, status, &why);
    eti_mds_end(&f);
    close(f.file.fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct eti_mds three = {
        .column = {{"image", "bytes", -1}, {"label", "int", 8}, {"name", "str", -1}},
        .n_columns = 3,
        .n_sized = 2,
    };
    static const struct eti_mds one = {
        .column = {{"tokens", "ndarray", -1}}, .n_columns = 1, .n_sized = 1};
    const char *at = size ? strchr(letters, data[0]) : NULL;
    if (!at || !*at)
        return 0;
    switch (at - letters) {
    case CSV:
        try_csv(data + 1, size - 1);
        break;
    case NPY:
        try_npy(data + 1, size - 1);
        break;
    case TAR:
        try_tar(data + 1, size - 1);
        break;
    case INDEX:
        try_index(data + 1, size - 1);
        break;
    case SHARD:
        try_shard(SHARD, &three, data + 1, size - 1);
        break;
    default:
        try_shard(COLUMN, &one, data + 1, size - 1);
    }
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    static const char *const names[KINDS] = {
        "CSV file", "NumPy array", "tar file", "index of MDS", "shard", "shard of one"};
    fuzz_replay("shards-seeds", "\",\n{}[]:0127 \\\377\200xLg");
    for (int i = 0; i < KINDS; i++)
        ok(accepted[i] > 2, "some damaged copies are still a %s (%d)", names[i],
           accepted[i]);
    return done();
}
#endif
