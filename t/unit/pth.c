/* SPDX-License-Identifier: Apache-2.0 */
/* Files of torch.save: their tensors are read, and nothing else is done. The files:
 * t/golden/make_pth.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/models/weight_file.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

static char *
seed(const char *name, char path[ETI_PATH_MAX])
{
    const char *root = getenv("ET_SRCDIR");
    snprintf(path, ETI_PATH_MAX, "%s/t/fuzz/pth-seeds/%s", root ? root : ".", name);
    return path;
}

/* F's tensor I as text: "name f32[2,3] 0 0.5 1". */
static const char *
told(const struct eti_weight_file *f, int64_t i)
{
    static char text[512];
    const struct eti_st_tensor *t = &f->header.v[i];
    char shape[64];
    uint8_t raw[256];
    double v[256];
    int64_t bytes = t->end - t->begin, n = bytes / (int64_t)et_dtype_size(t->dtype);
    need(cx, eti_weight_file_read(f, t, 0, raw, bytes));
    eti_widen(t->dtype, raw, n, v);
    snprintf(text, sizeof text, "%s %s%s", t->name, et_dtype_name(t->dtype),
             eti_st_shape_text(t->ndim, t->shape, shape, sizeof shape));
    for (int64_t k = 0; k < n; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %g", v[k]);
    return text;
}

#define LINEAR "weight f32[2,3] 0 0.5 1 1.5 2 2.5", "bias f32[2] 1 1.5"

static void
read_files(void)
{
    static const struct {
        const char *name, *what, *tensors[8];
    } table[] = {
        {"plain", "a state_dict", {LINEAR}},
        {"protocol4", "one of a later protocol", {LINEAR}},
        {"zip64", "one with sizes of 64 bits", {LINEAR}},
        {"nested", "one within a checkpoint", {LINEAR}},
        {"kinds",
         "tensors of all dtypes",
         {"half f16[3] 0 0.5 1", "brain bf16[2,2] 1 1.5 2 2.5", "double f64[2] 2 2.5",
          "long i64[] 3", "int i32[2] 4 4", "byte u8[2] 5 5", "none f32[0,3]"}},
        {"shared",
         "views of one array",
         {"table f32[4,2] 0 0.5 1 1.5 2 2.5 3 3.5", "rows f32[2,2] 1 1.5 2 2.5",
          "copy f32[4,2] 0 0.5 1 1.5 2 2.5 3 3.5"}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char path[ETI_PATH_MAX];
        struct eti_weight_file f;
        int64_t n = 0;
        et_status status = eti_weight_file_open(cx, seed(table[i].name, path), &f);
        ok(status == ET_OK, "%s is read", table[i].what);
        if (status != ET_OK) {
            diag("%s", take_error(cx));
            continue;
        }
        while (n < 8 && table[i].tensors[n])
            n++;
        is_int(f.header.n, n, "all of its tensors are there");
        for (int64_t k = 0; k < n && k < f.header.n; k++)
            is_str(told(&f, k), table[i].tensors[k], "this is one of them");
        eti_weight_file_close(&f);
    }
}

/* Numbers of a pickle have one byte, two or four: shapes say which were read. */
static void
read_sizes(void)
{
    static const char *const want[] = {"two u8[300,1]", "four f32[0,70000]",
                                       "most f32[0,65535]"};
    char path[ETI_PATH_MAX], shape[64], got[128];
    struct eti_weight_file f;
    need(cx, eti_weight_file_open(cx, seed("sizes", path), &f));
    is_int(f.header.n, 3, "tensors with axes of more than a byte are read");
    for (int64_t i = 0; i < 3 && i < f.header.n; i++) {
        const struct eti_st_tensor *t = &f.header.v[i];
        snprintf(got, sizeof got, "%s %s%s", t->name, et_dtype_name(t->dtype),
                 eti_st_shape_text(t->ndim, t->shape, shape, sizeof shape));
        is_str(got, want[i], "this is one of them");
    }
    uint8_t last;
    need(cx, eti_weight_file_read(&f, &f.header.v[0], 299, &last, 1));
    is_int(last, 149, "the last of 300 is");
    eti_weight_file_close(&f);
}

static void
refused_files(void)
{
    static const struct {
        const char *name, *want;
    } table[] = {
        {"evil", "the pickle asks for posix.system, which is no tensor"},
        {"beyond", "'rows' is larger than data/0"},
        {"strided", "'t' does not lie row by row: save it as tensor.contiguous()"},
        {"short", "a tensor is a ShortStorage, which is not read"},
        {"number", "the pickle is no dictionary of tensors"},
        {"deflated", "is compressed or encrypted"},
        {"old", "is a pickle; convert it to safetensors elsewhere"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char path[ETI_PATH_MAX];
        struct eti_weight_file f;
        et_status status = eti_weight_file_open(cx, seed(table[i].name, path), &f);
        const char *said = take_error(cx);
        ok(status == ET_EFORMAT && strstr(said, table[i].want), "refused: %s",
           table[i].want);
        if (!strstr(said, table[i].want))
            diag("%s", said);
    }
}

/* A pickle of our own in an archive whose checksum is not its. */
static void
damaged(void)
{
    char path[ETI_PATH_MAX];
    struct eti_bytes all;
    need(cx, eti_file_load(cx, seed("plain", path), 1 << 20, &all));
    int64_t at = 0;
    while (at + 11 < all.n && memcmp(all.data + at, "OrderedDict", 11) != 0)
        at++;
    all.data[at] = 'X';
    struct eti_weight_file f;
    et_status status = eti_weight_file_open(
        cx, write_file("d.pth", all.data, (size_t)all.n, false), &f);
    ok(status == ET_EFORMAT && strstr(take_error(cx), "is not what its checksum is of"),
       "a pickle that has changed since is refused");
    et_free(cx, all.data);
}

/* How often FROM [N] stood in ALL; TO stands there now. */
static int
replace(struct eti_bytes *all, const void *from, const void *to, int64_t n)
{
    int found = 0;
    for (int64_t at = 0; at + n <= all->n; at++)
        if (memcmp(all->data + at, from, (size_t)n) == 0) {
            memcpy(all->data + at, to, (size_t)n);
            found++;
        }
    return found;
}

/* BYTES: the checksum of TEXT and its two lengths, as an archive has them. */
static void
checked(const char *text, unsigned char bytes[12])
{
    const size_t n = strlen(text);
    const uLong sum = crc32(0, (const Bytef *)text, (uInt)n);
    memset(bytes, 0, 12);
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(sum >> 8 * i);
    bytes[4] = bytes[8] = (unsigned char)n;
}

/* Saved where numbers lie the other way round: the archive says ORDER, of at most six
 * letters, instead of "little". */
static void
other_byte_order(const char *order)
{
    char path[ETI_PATH_MAX], text[8] = "xxxxxx";
    unsigned char was[12], now[12];
    struct eti_bytes all;
    struct eti_weight_file f;
    need(cx, eti_file_load(cx, seed("plain", path), 1 << 20, &all));
    memcpy(text, order, strlen(order));
    checked("little", was);
    checked(order, now);
    is_int(replace(&all, "little", text, 6), 1, "an archive has its byte order once");
    ok(replace(&all, was, now, 12) >= 1, "an archive has its checksum and length");
    et_status status = eti_weight_file_open(
        cx, write_file("o.pth", all.data, (size_t)all.n, false), &f);
    ok(status == ET_EFORMAT && strstr(take_error(cx), "are not little-endian"),
       "an archive whose byte order is %s is refused", order);
    et_free(cx, all.data);
}

int
main(void)
{
    cx = need_ctx();
    read_files();
    read_sizes();
    refused_files();
    damaged();
    other_byte_order("biggie");
    other_byte_order("big");
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
