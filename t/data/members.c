/* SPDX-License-Identifier: Apache-2.0 */
/* What lies where in files of many samples: members of tar files, columns of MDS shards
 * and the numbers in them; and the names that a pattern stands for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/data/fields.h"
#include "core/data/mds.h"
#include "core/data/members.h"
#include "core/data/picture_list.h"
#include "core/data/tar.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* Writes N bytes to a file and opens it; close_it closes it. */
static void
open_it(struct eti_file *f, const void *bytes, size_t n)
{
    snprintf(f->path, sizeof f->path, "%s", write_file("shard", bytes, n, false));
    need(cx, eti_file_open(cx, f->path, &f->fd, &f->size));
}

static void
close_it(struct eti_file *f)
{
    close(f->fd);
}

/* ---- tar ---- */

enum { BLOCK = 512 };

struct tape {
    uint8_t bytes[32 * BLOCK];
    size_t n;
};

/* Adds a header of these fields, with the checksum of its bytes. */
static uint8_t *
put_header(struct tape *t, const char *name, const char *size, char type,
           const char *magic, const char *prefix)
{
    uint8_t *h = t->bytes + t->n;
    char sum[8];
    int all = 0;
    memset(h, 0, BLOCK);
    memcpy(h, name, strlen(name));
    memcpy(h + 124, size, strnlen(size, 12));
    h[156] = (uint8_t)type;
    memcpy(h + 257, magic, strlen(magic));
    memcpy(h + 345, prefix, strlen(prefix));
    memset(h + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++)
        all += h[i];
    snprintf(sum, sizeof sum, "%06o", all);
    memcpy(h + 148, sum, 7);
    t->n += BLOCK;
    return h;
}

/* Adds a header and contents of N bytes, which begin with TEXT. */
static void
put_member(struct tape *t, const char *name, char type, const char *text, size_t n)
{
    char size[16];
    snprintf(size, sizeof size, "%011o", (unsigned)n);
    put_header(t, name, size, type, "ustar", "");
    memset(t->bytes + t->n, 0, (n + BLOCK - 1) / BLOCK * BLOCK);
    memcpy(t->bytes + t->n, text, strlen(text));
    t->n += (n + BLOCK - 1) / BLOCK * BLOCK;
}

/* Lists all members of T as text: name, offset, bytes, and "-" where a member is no
 * file; or the sentence that refuses them. */
static void
list(const struct tape *t, char *out, size_t size)
{
    struct eti_file f = {.fd = -1};
    struct eti_tar tar = {.f = &f};
    struct eti_tar_member m;
    struct et_error why = {0};
    bool got = true;
    size_t n = 0;
    open_it(&f, t->bytes, t->n);
    out[0] = 0;
    while (got) {
        if (eti_tar_next(&tar, &m, &got, &why) != ET_OK) {
            snprintf(out + n, size - n, "%s%s", n ? " " : "", why.message);
            break;
        }
        if (got)
            n += (size_t)snprintf(out + n, size - n, "%s%s@%d+%d%s", n ? " " : "",
                                  m.name, (int)m.offset, (int)m.bytes,
                                  m.is_file ? "" : "-");
    }
    close_it(&f);
}

static void
lists(const struct tape *t, const char *want, const char *what)
{
    char got[4096];
    list(t, got, sizeof got);
    is_str(got, want, "%s", what);
}

static void
test_members(void)
{
    static struct tape t;
    static const int sizes[] = {0, 1, 511, 512, 513};
    char hundred[101], want[256];
    for (int i = 0; i < 5; i++)
        put_member(&t, "f", '0', "", (size_t)sizes[i]);
    lists(&t, "f@512+0 f@1024+1 f@2048+511 f@3072+512 f@4096+513",
          "contents of a tar member are filled up to whole blocks");
    memset(t.bytes + t.n, 0, BLOCK);
    t.n += BLOCK;
    put_member(&t, "behind", '0', "", 1);
    lists(&t, "f@512+0 f@1024+1 f@2048+511 f@3072+512 f@4096+513",
          "a tar file ends at a block of zeros, whatever is behind it");
    t.n = 0;
    put_header(&t, "a", "00000000000", '0', "ustar", "where");
    put_header(&t, "a", "00000000000", '0', "ustar  ", "where");
    put_header(&t, "a", "00000000000", '0', "", "where");
    lists(&t, "where/a@512+0 a@1024+0 a@1536+0",
          "only headers of ustar have a folder before the name");
    t.n = 0;
    memset(hundred, 'n', 100);
    hundred[100] = 0;
    put_header(&t, hundred, "0", '0', "ustar", "");
    snprintf(want, sizeof want, "%s@512+0", hundred);
    lists(&t, want, "a name of a hundred letters ends where its field does");
    t.n = 0;
    for (const char *type = "01234567"; *type; type++)
        put_header(&t, "x", "0", *type, "ustar", "");
    put_header(&t, "x", "0", 0, "ustar", "");
    lists(
        &t,
        "x@512+0 x@1024+0- x@1536+0- x@2048+0- x@2560+0- x@3072+0- x@3584+0- x@4096+0 "
        "x@4608+0",
        "links, devices and folders in a tar file are no files");
}

static void
test_sizes(void)
{
    static const struct {
        const char *size, *want;
    } rows[] = {
        {"00000000012", "a@512+10"},
        {"         12 ", "a@512+10"},
        {"12", "a@512+10"},
        {"000000000012", "a@512+10"},
        {"\x80\0\0\0\0\0\0\0\0\0\0\x0a", "a@512+10"},
        {"\x80\0\0\0\0\0\0\0\0\0\1\x02", "a@512+258"},
        {"12a", "it ends within the member at byte 0"},
        {"18", "it ends within the member at byte 0"},
        {"           ", "it ends within the member at byte 0"},
        {"\x80\0\0\x7f\xff\xff\xff\xff\xff\xff\xff\xff",
         "it ends within the member at byte 0"},
        {"\x80\0\0\1\0\0\0\0\0\0\0\x0a", "it ends within the member at byte 0"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
         "it ends within the member at byte 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct tape t;
        char octal[13] = {0}, want[64];
        t.n = 0;
        memcpy(octal, rows[i].size,
               (uint8_t)rows[i].size[0] & 0x80 ? 12 : strlen(rows[i].size));
        uint8_t *h = put_header(&t, "a", "", '0', "ustar", "");
        int all = 0;
        memcpy(h + 124, octal, 12);
        memset(h + 148, ' ', 8);
        for (int k = 0; k < BLOCK; k++)
            all += h[k];
        snprintf((char *)h + 148, 7, "%06o", all);
        memset(t.bytes + t.n, 0, BLOCK);
        t.n += BLOCK;
        snprintf(want, sizeof want, "%s", rows[i].want);
        lists(&t, want,
              "a tar member's size is read from digits, blanks or bytes, or refused");
    }
}

static void
test_damage(void)
{
    static struct tape t;
    put_member(&t, "a", '0', "", 5);
    put_member(&t, "b", '0', "", 5);
    t.bytes[2 * BLOCK + 3] ^= 1;
    lists(&t, "a@512+5 a damaged header at byte 1024",
          "a damaged header is reported with its place");
    t.bytes[2 * BLOCK + 3] ^= 1;
    t.bytes[2 * BLOCK + 148] = ' ';
    lists(&t, "a@512+5 b@1536+5", "a header's checksum may have blanks before it");
    t.n = 3 * BLOCK - 1;
    lists(&t, "a@512+5 it ends within a header",
          "a tar file that is cut within a header is refused");
    t.n = BLOCK + 4;
    lists(&t, "it ends within the member at byte 0",
          "a tar file that is cut within a member's contents is refused");
    t.n = BLOCK - 1;
    lists(&t, "too short for a tar file",
          "a file shorter than a block is refused as a tar file");
    t.n = 0;
    lists(&t, "it is empty", "an empty file is refused as a tar file");
    t.n = BLOCK;
    memcpy(t.bytes, "BZh9", 4);
    lists(&t, "it is compressed, and samples are read in any order: bunzip2 it first",
          "a file of bzip2 is refused, with the program that unpacks it");
    memcpy(t.bytes,
           "\xfd"
           "7zXZ",
           5);
    lists(&t, "it is compressed, and samples are read in any order: unxz it first",
          "a file of xz is refused, with the program that unpacks it");
}

static void
test_extra(void)
{
    static struct tape t;
    /* Records of pax: their length counts its own digits and the line's end. */
    static const char path[] = "22 path=some/name.jpg\n12 size=600\n";
    put_member(&t, "pax", 'x', path, sizeof path - 1);
    put_header(&t, "short", "00000000001", '0', "ustar", "");
    t.n += 2 * BLOCK; /* the 600 bytes of the record's size */
    put_member(&t, "next", '0', "", 1);
    lists(&t, "some/name.jpg@1536+600 next@3072+1",
          "a pax record gives the next member alone its name and size");
    t.n = 0;
    put_member(&t, "global", 'g', path, sizeof path - 1);
    put_member(&t, "a", '0', "", 3);
    put_member(&t, "link", 'K', "elsewhere", 10);
    put_member(&t, "b", '0', "", 3);
    put_member(&t, "long", 'L', "a/long.name", 12);
    put_member(&t, "c", '0', "", 3);
    put_member(&t, "d", '0', "", 3);
    lists(&t, "a@1536+3 b@3584+3 a/long.name@5632+3 d@6656+3",
          "a GNU long name holds for the next member alone; global pax records and "
          "long link names are ignored");
    static const char *const bad[] = {"22 path some/name.jp\n",
                                      "8 path=x\n",
                                      "12 path=xy\n",
                                      "0 path=x\n",
                                      "x path=x\n",
                                      "11 path=abX",
                                      "11 size=-1\n",
                                      "11 size=1x\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        t.n = 0;
        put_member(&t, "pax", 'x', bad[i], strlen(bad[i]));
        put_member(&t, "a", '0', "", 3);
        lists(&t, "a pax header that is none",
              "a pax header whose text is no record is refused");
    }
}

/* ---- numbers and texts of MDS ---- */

static void
test_texts(void)
{
    static const uint8_t all[] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t one[] = {1, 2, 0, 0, 0, 0, 0, 0};
    const float f = -0.15625F;
    const double d = 0.1;
    const struct {
        const char *encoding;
        const void *data;
        int64_t n;
        const char *want; /* NULL: refused */
    } rows[] = {
        {"int", all, 8, "-2"},
        {"int64", one, 8, "513"},
        {"int32", all, 4, "-2"},
        {"int16", all, 2, "-2"},
        {"int8", all, 1, "-2"},
        {"uint64", all, 8, "18446744073709551614"},
        {"uint32", all, 4, "4294967294"},
        {"uint16", all, 2, "65534"},
        {"uint8", all, 1, "254"},
        {"float32", &f, 4, "-0.15625"},
        {"float64", &d, 8, "0.10000000000000001"},
        {"str", "word", 3, "wor"},
        {"str_int", "12", 2, "12"},
        {"str_float", "1.5", 3, "1.5"},
        {"str_decimal", "0.1", 3, "0.1"},
        {"str", "", 0, ""},
        {"int", one, 4, NULL},
        {"int32", one, 8, NULL},
        {"int16", one, 1, NULL},
        {"int8", one, 0, NULL},
        {"uint8", one, 2, NULL},
        {"float64", &f, 4, NULL},
        {"float32", &d, 8, NULL},
        {"jpeg", one, 8, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[32] = "";
        struct et_error why = {0};
        et_status s =
            eti_mds_text(rows[i].encoding, rows[i].data, rows[i].n, out, 24, &why);
        ok(rows[i].want ? s == ET_OK && strcmp(out, rows[i].want) == 0
                        : s == (i == 23 ? ET_ENOTSUP : ET_EFORMAT),
           "a value of MDS type %s in %d bytes becomes a text or is refused: %s%s",
           rows[i].encoding, (int)rows[i].n, out, why.message);
    }
    char out[32];
    struct et_error why;
    ok(eti_mds_text("str", all, 23, out, 24, &why) == ET_OK &&
           eti_mds_text("str", all, 24, out, 24, &why) == ET_EFORMAT,
       "a text of MDS may fill the room but for its terminating zero");
}

/* Whole numbers of each width: the largest that fits, and one that does not fit. */
static void
test_widened(void)
{
    static const struct {
        const char *name;
        int width, code;
        uint64_t most; /* for types above 32 bits: INT32_MAX */
    } rows[] = {{"uint8", 1, 8, 255},        {"uint16", 2, 16, 65535},
                {"int16", 2, 17, 65535},     {"uint32", 4, 32, INT32_MAX},
                {"int32", 4, 33, INT32_MAX}, {"uint64", 8, 64, INT32_MAX},
                {"int64", 8, 65, INT32_MAX}};
    for (int i = 0; i < 7; i++) {
        const struct eti_mds_number *k = &eti_mds_numbers[i];
        uint8_t bytes[24] = {[0] = 7};
        int32_t v[3] = {0};
        memset(bytes + k->width, 0xff, (size_t)k->width);
        bytes[2 * k->width] = 9;
        const int64_t above = (int64_t)rows[i].most + 1, at = (int64_t)rows[i].most;
        bool same = strcmp(k->name, rows[i].name) == 0 &&
                    strcmp(eti_mds_number_names[i], rows[i].name) == 0 &&
                    k->width == rows[i].width && k->code == rows[i].code;
        same = same && eti_mds_widen(k, bytes, 3, above, v) == -1 && v[0] == 7 &&
               v[1] == (int32_t)rows[i].most && v[2] == 9;
        ok(same && eti_mds_widen(k, bytes, 3, at, v) == 1 &&
               eti_mds_widen(k, bytes, 3, 7, v) == 0 &&
               eti_mds_widen(k, bytes, 1, 8, v) == -1,
           "the MDS type %s has %d bytes, and a number above its limit is found",
           k->name, k->width);
    }
}

/* ---- places in MDS shards ---- */

/* Makes a shard of N samples, each of BYTES at SAMPLE. */
static size_t
make_shard(uint8_t *out, uint32_t n, const uint8_t *const *sample,
           const uint32_t *bytes)
{
    uint32_t at = 4 * (n + 2);
    memcpy(out, &n, 4);
    for (uint32_t i = 0; i <= n; i++) {
        memcpy(out + 4 + 4 * i, &at, 4);
        if (i < n)
            memcpy(out + at, sample[i], bytes[i]);
        at += i < n ? bytes[i] : 0;
    }
    return at;
}

static struct eti_mds
columns(int n, const char *const *encoding, const int64_t *size)
{
    struct eti_mds m = {.n_columns = n};
    for (int i = 0; i < n; i++) {
        snprintf(m.column[i].name, sizeof m.column[i].name, "c%d", i);
        snprintf(m.column[i].encoding, sizeof m.column[i].encoding, "%s", encoding[i]);
        m.column[i].size = size[i];
        m.n_sized += size[i] < 0;
    }
    return m;
}

/* Where the columns of a sample lie: the sizes of those without a fixed one come first.
 */
static void
test_places(void)
{
    static const char *const encoding[] = {"int", "str", "int32", "bytes"};
    static const struct {
        int64_t size[4];
        uint8_t head[8], n; /* the sizes that the sample begins with; its bytes */
        int64_t at[4], bytes[4];
        const char *says;
    } rows[] = {
        {{8, -1, 4, -1},
         {3, 0, 0, 0, 5, 0, 0, 0},
         28,
         {8, 16, 19, 23},
         {8, 3, 4, 5},
         0},
        {{8, -1, 4, 2}, {7, 0, 0, 0}, 21, {4, 12, 15, 19}, {8, 3, 4, 2}, NULL},
        {{8, 3, 4, 2}, {0}, 17, {0, 8, 11, 15}, {8, 3, 4, 2}, NULL},
        {{8, 3, 4, 2}, {0}, 18, {0}, {0}, "has 18 bytes, and its columns 17"},
        {{8, 3, 4, 2}, {0}, 16, {0}, {0}, "of 16 bytes is too short for its columns"},
        {{8, -1, 4, -1}, {3, 0, 0, 0, 6}, 28, {0}, {0}, "28 bytes, and its columns 29"},
        {{8, -1, 4, -1}, {0}, 19, {0}, {0}, "of 19 bytes is too short"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t sample[64] = {0}, shard[256];
        const uint8_t *const both[] = {sample, sample};
        const uint32_t bytes[] = {rows[i].n, rows[i].n};
        struct eti_mds m = columns(4, encoding, rows[i].size);
        struct eti_mds_file f = {.n = 0};
        struct et_error why = {0};
        memcpy(sample, rows[i].head, 8);
        open_it(&f.file, shard, make_shard(shard, 2, both, bytes));
        need(cx, eti_mds_begin(&f, 2, &why));
        int wrong = 0;
        for (int c = 0; c < 4; c++) {
            int64_t at, n;
            et_status s = eti_mds_place(&m, &f, 1, c, &at, &n, &why);
            wrong += rows[i].says
                         ? s != ET_EFORMAT || !strstr(why.message, rows[i].says)
                         : s != ET_OK || at != 16 + rows[i].n + rows[i].at[c] ||
                               n != rows[i].bytes[c];
        }
        is_int(wrong, 0, "the columns of an MDS sample have these places, row %d: %s",
               (int)i, why.message);
        eti_mds_end(&f);
        close_it(&f.file);
    }
}

/* Heads of shards, right and wrong. */
static void
test_heads(void)
{
    static const struct {
        uint32_t
            head[5]; /* the number of samples, then where each begins, and the end */
        int64_t n;
        const char *says; /* NULL: nothing is wrong */
    } rows[] = {
        {{3, 20, 24, 24, 28}, 3, NULL},
        {{3, 20, 20, 20, 20}, 3, NULL},
        {{2, 20, 24, 24, 28}, 3, "2 samples, and its index says 3"},
        {{3, 19, 24, 24, 28}, 3, "sample 0 begins at byte 19"},
        {{3, 20, 24, 23, 28}, 3, "sample 2 begins at byte 23"},
        {{3, 20, 24, 24, 23}, 3, "sample 2 ends at byte 23"},
        {{3, 20, 24, 24, 29}, 3, "sample 2 ends at byte 29"},
        {{9, 20, 24, 24, 28}, 9, "28 bytes cannot hold 9 samples"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[28] = {0};
        struct eti_mds_file f = {.n = 0};
        struct et_error why = {0};
        memcpy(bytes, rows[i].head, sizeof rows[i].head);
        open_it(&f.file, bytes, sizeof bytes);
        et_status s = eti_mds_begin(&f, rows[i].n, &why);
        ok(rows[i].says ? s == ET_EFORMAT && strstr(why.message, rows[i].says)
                        : s == ET_OK && f.n == 3,
           "a shard's head is read or refused: %s",
           rows[i].says ? why.message : "as it should be");
        eti_mds_end(&f);
        close_it(&f.file);
    }
}

/* Arrays whose encodings name their type and shape, and arrays that begin with them. */
static void
test_arrays(void)
{
    static const struct {
        const char *encoding;
        uint8_t sample[16], n;
        const char *kind; /* NULL: refused */
        int64_t at;       /* where its numbers begin */
    } rows[] = {
        {"ndarray", {16, 1 << 2 | 0, 3, 1, 0, 2, 0, 3, 0}, 9, "uint16", 3},
        {"ndarray", {33, 1 << 2 | 2, 1, 0, 0, 0, 9, 0, 0, 0}, 10, "int32", 6},
        {"ndarray", {8, 2 << 2 | 1, 1, 0, 2, 0, 7, 8}, 8, "uint8", 6},
        {"ndarray", {65, 0 << 2 | 0, 1, 0, 0, 0, 0, 0, 0, 0}, 10, "int64", 2},
        {"ndarray", {99, 1 << 2, 1, 0}, 4, NULL, 0},
        {"ndarray", {16, 1 << 2, 1, 5}, 4, NULL, 0},
        {"ndarray", {16}, 1, NULL, 0},
        {"ndarray:int16", {1 << 2 | 0, 1, 5, 0}, 4, "int16", 2},
        {"ndarray:uint8", {1 << 2 | 3, 1, 0, 0, 0, 0, 0, 0, 0, 5}, 10, "uint8", 9},
        {"ndarray:uint32:2", {5, 0, 0, 0, 6, 0, 0, 0}, 8, "uint32", 0},
        {"bytes", {5, 0, 0, 0, 0, 0, 0, 0}, 8, "uint64", 0},
        {"bytes", {5, 0, 0, 0}, 4, NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const int64_t size[] = {-1};
        uint8_t sample[20] = {0}, shard[64];
        const uint8_t *const one[] = {sample};
        const uint32_t bytes[] = {4U + rows[i].n};
        struct eti_mds m = columns(1, &rows[i].encoding, size);
        struct eti_mds_file f = {.n = 0};
        struct eti_mds_array a;
        const struct eti_mds_number *kind = NULL;
        struct et_error why = {0};
        int64_t at = 0, n = 0;
        sample[0] = rows[i].n;
        memcpy(sample + 4, rows[i].sample, rows[i].n);
        open_it(&f.file, shard, make_shard(shard, 1, one, bytes));
        need(cx, eti_mds_begin(&f, 1, &why));
        need(cx, eti_mds_array_init(&m, 0, &eti_mds_numbers[5], &a, &why));
        et_status s = eti_mds_array_place(&a, &f, 0, &kind, &at, &n, &why);
        ok(rows[i].kind ? s == ET_OK && strcmp(kind->name, rows[i].kind) == 0 &&
                              at == 16 + rows[i].at && n == rows[i].n - rows[i].at
                        : s == ET_EFORMAT,
           "an array of MDS encoding %s has its type and place: %s", rows[i].encoding,
           rows[i].kind ? rows[i].kind : why.message);
        eti_mds_end(&f);
        close_it(&f.file);
    }
    static const struct {
        const char *encoding;
        bool array, whole;
    } names[] = {{"bytes", true, true},
                 {"ndarray", true, true},
                 {"ndarray:int32", true, true},
                 {"ndarray:int32:4,4", true, true},
                 {"ndarray:float32", true, false},
                 {"ndarray:int3", true, false},
                 {"ndarrays", false, false},
                 {"int", false, false}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static const int64_t size[] = {-1};
        struct eti_mds m = columns(1, &names[i].encoding, size);
        struct eti_mds_array a;
        struct et_error why;
        ok(eti_mds_is_array(names[i].encoding) == names[i].array &&
               (!names[i].array ||
                (eti_mds_array_init(&m, 0, &eti_mds_numbers[0], &a, &why) == ET_OK) ==
                    names[i].whole),
           "the MDS encoding %s is %s", names[i].encoding,
           names[i].whole ? "of whole numbers" : "of something else");
    }
}

/* ---- indexes ---- */

/* Parses an index of two shards, of which SECOND is the second. */
static et_status
parse(const char *second, struct eti_mds *m, struct et_error *why)
{
    char text[2048];
    int n =
        snprintf(text, sizeof text,
                 "{\"shards\": [{\"version\": 2, \"format\": \"mds\", \"samples\": 5, "
                 "\"compression\": \"zstd:3\", \"raw_data\": {\"basename\": \"a\", "
                 "\"bytes\": 70}, \"zip_data\": {\"basename\": \"a.zstd\"}, "
                 "\"column_names\": [\"x\", \"y\"], \"column_encodings\": [\"int\", "
                 "\"str\"], \"column_sizes\": [8, null]}, {%s}]}",
                 second);
    return eti_mds_parse(cx, text, n, m, why);
}

#define SHARD(version, format, samples, compression, names, encodings, sizes)          \
    "\"version\": " version ", \"format\": \"" format "\", \"samples\": " samples      \
    ", \"compression\": " compression                                                  \
    ", \"raw_data\": {\"basename\": \"b\", \"bytes\": 90}, \"column_names\": [" names  \
    "], \"column_encodings\": [" encodings "], \"column_sizes\": [" sizes "]"

static void
test_indexes(void)
{
    static const struct {
        const char *second, *says;
    } rows[] = {
        {SHARD("2", "mds", "7", "null", "\"x\", \"y\"", "\"int\", \"str\"", "8, null"),
         NULL},
        {SHARD("2", "mds", "4294967295", "null", "\"x\", \"y\"", "\"int\", \"str\"",
               "8, null"),
         NULL},
        {SHARD("3", "mds", "7", "null", "\"x\", \"y\"", "\"int\", \"str\"", "8, null"),
         "shard 1: a shard of format 'mds', not mds version 2"},
        {SHARD("2", "json", "7", "null", "\"x\", \"y\"", "\"int\", \"str\"", "8, null"),
         "shard 1: a shard of format 'json'"},
        {SHARD("2", "mds", "7", "\"gz\"", "\"x\", \"y\"", "\"int\", \"str\"",
               "8, null"),
         "shard 1: shards are compressed by gz"},
        {SHARD("2", "mds", "7", "null", "\"x\", \"z\"", "\"int\", \"str\"", "8, null"),
         "shard 1: its columns are not those of shard 0"},
        {SHARD("2", "mds", "7", "null", "\"x\", \"y\"", "\"int\", \"int\"", "8, null"),
         "shard 1: its columns are not those of shard 0"},
        {SHARD("2", "mds", "7", "null", "\"x\", \"y\"", "\"int\", \"str\"", "8, 4"),
         "shard 1: its columns are not those of shard 0"},
        {SHARD("2", "mds", "7", "null", "\"x\", \"y\", \"z\"",
               "\"int\", \"str\", \"int\"", "8, null, 8"),
         "shard 1: its columns are not those of shard 0"},
        {SHARD("2", "mds", "7", "null", "\"x\"", "\"int\"", "8"),
         "shard 1: its columns are not those of shard 0"},
        {SHARD("2", "mds", "7", "null", "\"x\", \"y\"", "\"int\"", "8, null"),
         "are not lists of 1 to 64"},
        {SHARD("2", "mds", "7", "null", "\"x\", \"y\"", "\"int\", \"str\"", "8"),
         "are not lists of 1 to 64"},
        {SHARD("2", "mds", "7", "null", "\"x\", \"y\"", "\"int\", 3", "8, null"),
         "shard 1: column 1 has no name, encoding or size"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct eti_mds m;
        struct et_error why = {0};
        et_status s = parse(rows[i].second, &m, &why);
        if (rows[i].says)
            ok(s != ET_OK && strstr(why.message, rows[i].says),
               "an index of shards is refused: %s", why.message);
        else
            ok(s == ET_OK && m.n_shards == 2 && m.n_columns == 2 && m.n_sized == 1 &&
                   m.shard[0].samples == 5 && m.shard[0].bytes == 70 &&
                   strcmp(m.shard[0].raw, "a") == 0 &&
                   strcmp(m.shard[0].zipped, "a.zstd") == 0 &&
                   m.shard[1].samples == (i ? UINT32_MAX : 7) &&
                   m.shard[1].bytes == 90 && strcmp(m.shard[1].raw, "b") == 0 &&
                   !m.shard[1].zipped[0] && m.column[0].size == 8 &&
                   m.column[1].size == -1 && eti_mds_column(&m, "y") == 1 &&
                   eti_mds_column(&m, "z") == -1,
               "an index has its shards, their files and sizes, and its columns");
        eti_mds_free(cx, &m);
    }
}

/* ---- patterns ---- */

static void
test_patterns(void)
{
    static const struct {
        const char *pattern, *want; /* NULL: refused */
    } rows[] = {
        {"plain", "plain"},
        {"s{9..11}", "s9 s10 s11"},
        {"s{09..11}", "s09 s10 s11"},
        {"s{9..011}", "s009 s010 s011"},
        {"{3..3}x", "3x"},
        {"{11..9}", "11 10 9"},
        {"{a,bc}{1..2}.tar", "a1.tar a2.tar bc1.tar bc2.tar"},
        {"x{,y}z", "xz xyz"},
        {"{1..x}", "1..x"},
        {"{-1..2}", "-1..2"},
        {"{1..2,3}", "1..2 3"},
        {"a{b", NULL},
        {"{a}{a}{a}{a}{a}{a}{a}{a}", "aaaaaaaa"},
        {"{a}{a}{a}{a}{a}{a}{a}{a}{a}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct eti_strings s = {0};
        char got[256] = "";
        size_t n = 0;
        et_status status = eti_strings_of_pattern(cx, rows[i].pattern, &s);
        for (int64_t k = 0; k < s.n; k++)
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%s", k ? " " : "",
                                  eti_string(&s, k));
        ok(rows[i].want ? status == ET_OK && strcmp(got, rows[i].want) == 0
                        : status == ET_EINVAL,
           "the pattern %s stands for: %s", rows[i].pattern,
           rows[i].want ? got : take_error(cx));
        eti_strings_free(cx, &s);
    }
}

int
main(void)
{
    cx = need_ctx();
    test_members();
    test_sizes();
    test_damage();
    test_extra();
    test_texts();
    test_widened();
    test_places();
    test_heads();
    test_arrays();
    test_indexes();
    test_patterns();
    et_ctx_free(&cx);
    return done();
}
