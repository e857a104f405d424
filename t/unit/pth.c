/* SPDX-License-Identifier: Apache-2.0 */
/* Files of torch.save: their tensors are read, and nothing else is done. The files:
 * t/golden/make_pth.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "core/models/weight_file.h"
#include "core/models/zip.h"
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

/* ---- other pickles ---- */

/* The file "plain", in whose pickle each FROM, three bytes or five, is what TO says. */
static et_status
changed(const unsigned char (*from)[5], const unsigned char (*to)[5], int changes,
        struct eti_weight_file *out)
{
    char path[ETI_PATH_MAX];
    struct eti_bytes all;
    struct eti_file f = {.fd = -1};
    struct eti_zip z;
    const struct eti_zip_member *m = NULL;
    need(cx, eti_file_load(cx, seed("plain", path), 1 << 20, &all));
    snprintf(f.path, sizeof f.path, "%s", path);
    need(cx, eti_file_open(cx, path, &f.fd, &f.size));
    need(cx, eti_zip_read(cx, &f, &z));
    for (int64_t i = 0; i < z.n && !m; i++)
        if (strstr(z.v[i].name, "/data.pkl"))
            m = &z.v[i];
    if (!m)
        bail("%s has no pickle", path);
    struct eti_bytes pickle = {all.data + m->at, m->bytes};
    for (int i = 0; i < changes; i++)
        if (replace(&pickle, from[i], to[i], from[i][4] ? 5 : 3) != 1)
            bail("the pickle does not have once what is to be changed");
    const uint32_t sum = (uint32_t)crc32(0, pickle.data, (uInt)pickle.n);
    unsigned char was[4], now[4];
    for (int i = 0; i < 4; i++) {
        was[i] = (unsigned char)(m->crc >> 8 * i);
        now[i] = (unsigned char)(sum >> 8 * i);
    }
    (void)replace(&all, was, now, 4);
    eti_zip_release(&z);
    close(f.fd);
    et_status status = eti_weight_file_open(
        cx, write_file("p.pth", all.data, (size_t)all.n, false), out);
    et_free(cx, all.data);
    return status;
}

/* Strides of axes that are not gone along say nothing, and a storage is as long as its
 * member. */
static void
layouts(void)
{
    static const struct {
        unsigned char from[2][5], to[2][5];
        int n;
        const char *want;
    } table[] = {
        {{"K\2K\3\x86"}, {"K\1K\6\x86"}, 1, "weight f32[1,6] 0 0.5 1 1.5 2 2.5"},
        {{"K\2K\3\x86"}, {"K\6K\1\x86"}, 1, "does not lie row by row"},
        {{"K\2K\3\x86", "K\3K\1\x86"},
         {"K\0K\3\x86", "K\1K\2\x86"},
         2,
         "weight f32[0,3]"},
        {{"K\2K\3\x86", "K\3K\1\x86"},
         {"K\2K\3\x86", "K\1K\2\x86"},
         2,
         "does not lie row by row"},
        {{"K\6t"}, {"K\7t"}, 1, "'weight' is larger than data/0"},
        {{"K\6t"}, {"K\5t"}, 1, "'weight' is larger than data/0"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct eti_weight_file f;
        const et_status status = changed(table[i].from, table[i].to, table[i].n, &f);
        const char *said = status == ET_OK ? told(&f, 0) : take_error(cx);
        if (!ok(strstr(said, table[i].want) != NULL, "pickle %zu: %s", i,
                table[i].want))
            diag("%s", said);
        if (status == ET_OK)
            eti_weight_file_close(&f);
    }
}

/* ---- archives of our own ---- */

struct member {
    const char *name, *data;
    const char *own_name; /* in its own header; NULL: the same */
    int flags, method;
    int more_stored;   /* bytes that are stored beside those that are said */
    int past;          /* bytes that are said beside those that are there */
    int wrong_sum;     /* what its checksum is off by */
    int own_extra;     /* bytes between its own header and its data */
    int in64;          /* 1: its bytes, 2: those stored, 4: its place have 64 bits */
    int other_extra;   /* bytes of another kind of extra field before that */
    int missing_extra; /* bytes that the extra field is too short */
};

struct archive {
    const char *what;
    struct member m[3];
    const char *comment;
    int end64;        /* 1: members, 2: bytes, 4: place of the directory have 64 */
    int before;       /* bytes before the first member */
    const char *want; /* what is said; NULL: it is read */
};

static uint8_t made[4096];
static size_t n_made;

static void
put(uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        made[n_made++] = (uint8_t)(v >> 8 * i);
}

static void
put_text(const char *text)
{
    memcpy(made + n_made, text, strlen(text));
    n_made += strlen(text);
}

/* What both of a member's headers have alike: flags to sizes. */
static void
put_facts(const struct member *m, bool has_64)
{
    const uint64_t bytes = strlen(m->data) + (size_t)m->past;
    put((uint64_t)m->flags, 2);
    put((uint64_t)m->method, 2);
    put(0, 4);
    put(crc32(0, (const Bytef *)m->data, (uInt)strlen(m->data)) + (uLong)m->wrong_sum,
        4);
    put(has_64 && m->in64 & 2 ? 0xffffffff : bytes + (uint64_t)m->more_stored, 4);
    put(has_64 && m->in64 & 1 ? 0xffffffff : bytes, 4);
}

static void
put_member(const struct member *m)
{
    const char *name = m->own_name ? m->own_name : m->name;
    put(0x04034b50, 4);
    put(20, 2);
    put_facts(m, false);
    put(strlen(name), 2);
    put((uint64_t)m->own_extra, 2);
    put_text(name);
    for (int i = 0; i < m->own_extra; i++)
        put('x', 1);
    put_text(m->data);
}

static void
put_entry(const struct member *m, uint64_t place)
{
    const uint64_t bytes = strlen(m->data);
    const int n = (m->in64 & 1) + (m->in64 >> 1 & 1) + (m->in64 >> 2 & 1);
    const int extra = m->in64 ? 4 + 8 * n - m->missing_extra : 0;
    put(0x02014b50, 4);
    put(20, 2);
    put(20, 2);
    put_facts(m, true);
    put(strlen(m->name), 2);
    put((uint64_t)(extra + (m->other_extra ? 4 + m->other_extra : 0)), 2);
    put(0, 10);
    put(m->in64 & 4 ? 0xffffffff : place, 4);
    put_text(m->name);
    if (m->other_extra) {
        put(0x5455, 2);
        put((uint64_t)m->other_extra, 2);
        for (int i = 0; i < m->other_extra; i++)
            put('y', 1);
    }
    const size_t at = n_made;
    if (m->in64) {
        put(1, 2);
        put((uint64_t)(extra - 4), 2);
    }
    if (m->in64 & 1)
        put(bytes, 8);
    if (m->in64 & 2)
        put(bytes, 8);
    if (m->in64 & 4)
        put(place, 8);
    n_made = at + (size_t)extra;
}

static int
make_archive(const struct archive *a)
{
    uint64_t place[3];
    int n = 0;
    n_made = 0;
    for (int i = 0; i < a->before; i++)
        put('b', 1);
    for (; n < 3 && a->m[n].name; n++) {
        place[n] = n_made;
        put_member(&a->m[n]);
    }
    const uint64_t at = n_made;
    for (int i = 0; i < n; i++)
        put_entry(&a->m[i], place[i]);
    const uint64_t bytes = n_made - at, end = n_made;
    if (a->end64) {
        put(0x06064b50, 4);
        put(44, 8);
        put(45, 2);
        put(45, 2);
        put(0, 8);
        put((uint64_t)n, 8);
        put((uint64_t)n, 8);
        put(bytes, 8);
        put(at, 8);
        put(0x07064b50, 4);
        put(0, 4);
        put(end, 8);
        put(1, 4);
    }
    put(0x06054b50, 4);
    put(0, 4);
    put(a->end64 & 1 ? 0xffff : (uint64_t)n, 2);
    put(a->end64 & 1 ? 0xffff : (uint64_t)n, 2);
    put(a->end64 & 2 ? 0xffffffff : bytes, 4);
    put(a->end64 & 4 ? 0xffffffff : at, 4);
    put(a->comment ? strlen(a->comment) : 0, 2);
    put_text(a->comment ? a->comment : "");
    return n;
}

/* The members of Z are those of A. */
static void
compare_members(const struct archive *a, int n, const struct eti_file *f,
                const struct eti_zip *z)
{
    is_int(z->n, n, "%s: has its members", a->what);
    for (int i = 0; i < n; i++) {
        const struct eti_zip_member *m = eti_zip_find(z, a->m[i].name);
        const int64_t bytes = (int64_t)strlen(a->m[i].data);
        struct eti_bytes b;
        ok(m && m->bytes == bytes && eti_zip_load(z, f, m, bytes, &b) == ET_OK,
           "%s is there, as long as it is", a->m[i].name);
        ok(b.n == bytes && memcmp(b.data, a->m[i].data, (size_t)bytes) == 0,
           "and is what was put in");
        et_free(cx, b.data);
        ok(eti_zip_load(z, f, m, bytes - 1, &b) == ET_EFORMAT &&
               strstr(take_error(cx), "has more than"),
           "which is more than a byte less");
    }
}

#define M(n, ...)                                                                      \
    {                                                                                  \
        .name = (n), .data = __VA_ARGS__                                               \
    }
#define AB M("a", "first"), M("b", "second one")

static void
archives(void)
{
    static const struct archive table[] = {
        {.what = "an archive", .m = {AB}},
        {.what = "one in another order", .m = {M("b", "second one"), M("a", "first")}},
        {.what = "one behind something else", .m = {AB}, .before = 7},
        {.what = "one with a comment",
         .m = {AB},
         .comment = "PK\5\6 is how an end begins, too"},
        {.what = "one with 64 bits for its members", .m = {AB}, .end64 = 1},
        {.what = "one with 64 bits for its directory's bytes", .m = {AB}, .end64 = 2},
        {.what = "one with 64 bits for its directory's place", .m = {AB}, .end64 = 4},
        {.what = "own extra fields",
         .m = {M("a", "first", .own_extra = 28), M("b", "second")}},
        {.what = "64 bits for bytes",
         .m = {M("a", "first", .in64 = 3), M("b", "second", .in64 = 1)}},
        {.what = "64 bits for those stored", .m = {M("a", "first", .in64 = 2)}},
        {.what = "64 bits for places", .m = {AB, M("c", "third", .in64 = 4)}},
        {.what = "64 bits for all", .m = {AB, M("c", "third", .in64 = 7)}},
        {.what = "another extra field",
         .m = {AB, M("c", "third", .in64 = 7, .other_extra = 9)}},
        {.what = "an extra field that is too short",
         .m = {AB, M("c", "third", .in64 = 5, .missing_extra = 8)},
         .want = "'c': its extra field is damaged"},
        {.what = "two of a name",
         .m = {AB, M("a", "third")},
         .want = "'a' is there twice"},
        {.what = "two names of one",
         .m = {M("a", "first", .own_name = "b")},
         .want = "has another name"},
        {.what = "a name that is longer",
         .m = {M("a", "first", .own_name = "aa")},
         .want = "is not where"},
        {.what = "an encrypted one",
         .m = {M("a", "first", .flags = 1)},
         .want = "encrypted"},
        {.what = "one with a flag that says nothing",
         .m = {M("a", "first", .flags = 0x800)}},
        {.what = "a compressed one",
         .m = {M("a", "first", .method = 8)},
         .want = "is compressed"},
        {.what = "one of two lengths",
         .m = {M("a", "first", .more_stored = 1)},
         .want = "is compressed"},
        {.what = "one that ends past the archive",
         .m = {M("a", "first", .past = 80)},
         .want = "'a' ends past the archive"},
        {.what = "a name with a line in it",
         .m = {M("a\nb", "first")},
         .want = "a member's name is damaged"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct eti_file f = {.fd = -1};
        struct eti_zip z;
        const int n = make_archive(&table[i]);
        snprintf(f.path, sizeof f.path, "%s", write_file("z.zip", made, n_made, false));
        need(cx, eti_file_open(cx, f.path, &f.fd, &f.size));
        const et_status status = eti_zip_read(cx, &f, &z);
        if (table[i].want)
            ok(status == ET_EFORMAT && strstr(take_error(cx), table[i].want),
               "%s is refused: %s", table[i].what, table[i].want);
        else if (ok(status == ET_OK, "%s is read", table[i].what))
            compare_members(&table[i], n, &f, &z);
        else
            diag("%s", take_error(cx));
        eti_zip_release(&z);
        close(f.fd);
    }
    struct archive wrong = {.m = {M("a", "first", .wrong_sum = 1)}};
    struct eti_file f = {.fd = -1};
    struct eti_zip z;
    struct eti_bytes b;
    make_archive(&wrong);
    snprintf(f.path, sizeof f.path, "%s", write_file("z.zip", made, n_made, false));
    need(cx, eti_file_open(cx, f.path, &f.fd, &f.size));
    need(cx, eti_zip_read(cx, &f, &z));
    ok(eti_zip_load(&z, &f, eti_zip_find(&z, "a"), 5, &b) == ET_EFORMAT &&
           strstr(take_error(cx), "is not what its checksum is of"),
       "a member that is not what was put in is refused");
    ok(!eti_zip_find(&z, "b"), "what is not there is not found");
    eti_zip_release(&z);
    close(f.fd);
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
    layouts();
    archives();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
