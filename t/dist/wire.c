/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c: frames are what they were, keep their limits, and refuse all else. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/wire/wire.h"
#include "t/tap.h"

static char space[ETD_CHUNK_BYTES + 1024];
static struct et_ctx *cx;

static const struct etd_head head = {
    .kind = ETD_PING,
    .run = "0123456789abcdef",
    .incarnation = 2,
    .t_mono_ns = 77,
};

static et_status
read_bytes(const void *bytes, size_t n, const char **why)
{
    /* Of exactly that size, so that a sanitizer sees a read past the end. */
    static struct etd_fault fault;
    struct etd_frame f;
    void *exact = malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    et_status status = etd_read(exact, n, &f, &fault);
    free(exact);
    *why = status == ET_OK ? "" : fault.why;
    return status;
}

/* A frame whose body is {"x": BYTES of msgpack}. */
static size_t
frame_with(const void *bytes, size_t n)
{
    struct etd_out o;
    struct etd_head h = head;
    h.kind = ETD_SNAP_CHUNK;
    etd_begin(&o, space, sizeof space, &h, 1);
    etd_put_bool(&o, "x", true);
    size_t used = etd_end(&o) - 1;
    memcpy(space + used, bytes, n);
    return used + n;
}

static void
is_refused(const void *bytes, size_t n, const char *want, const char *what)
{
    const char *why;
    et_status status = read_bytes(space, frame_with(bytes, n), &why);
    ok(status == ET_EFORMAT, "%s is refused", what);
    is_str(why, want, "and it says why");
}

static void
is_taken(const void *bytes, size_t n, const char *what)
{
    const char *why;
    et_status status = read_bytes(space, frame_with(bytes, n), &why);
    ok(status == ET_OK, "%s is taken: %s", what, why);
}

static void
test_values(void)
{
    static const double numbers[] = {1.5, -0.25, 1e300};
    static const int64_t whole[] = {0, -1, INT64_MAX, INT64_MIN};
    double got[3];
    int64_t ints[4];
    char text[8];
    unsigned char id[3];
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_value v;
    etd_begin(&o, space, sizeof space, &head, 8);
    etd_put_int(&o, "int", -40000);
    etd_put_double(&o, "nan", NAN);
    etd_put_bool(&o, "bool", true);
    etd_put_text(&o, "text", "grün");
    etd_put_bin(&o, "bin", "a\0b", 3);
    etd_put_ints(&o, "ints", whole, 4);
    etd_put_doubles(&o, "doubles", numbers, 3);
    etd_put_map(&o, "map", 1);
    etd_put_int(&o, "inside", 5);
    size_t n = etd_end(&o);
    ok(n > 0 && etd_read(space, n, &f, &fault) == ET_OK, "a frame is read back");
    is_int(f.head.kind, ETD_PING, "with its kind");
    is_int(f.head.incarnation * 1000 + f.head.t_mono_ns, 2077, "and its numbers");
    ok(memcmp(f.head.run, head.run, ETD_RUN_ID) == 0, "and its run");
    is_int(etd_get_int(&f.body, "int", 0), -40000, "a whole number");
    ok(isnan(etd_get_double(&f.body, "nan", 0)), "NaN is a value");
    ok(etd_get_bool(&f.body, "bool", false), "a truth");
    is_str(etd_get_text(&f.body, "text", text, sizeof text), "grün", "a text");
    is_str(etd_get_text(&f.body, "text", text, 3), "gr", "cut to the room there is");
    ok(etd_get_id(&f.body, "bin", id, 3) && memcmp(id, "a\0b", 3) == 0, "bytes");
    ok(!etd_get_id(&f.body, "bin", id, 2), "which have their length");
    is_int(etd_get_ints(&f.body, "ints", ints, 4), 4, "a list");
    ok(memcmp(ints, whole, sizeof whole) == 0, "of whole numbers");
    is_int(etd_get_doubles(&f.body, "doubles", got, 2), 2, "as much as there is room");
    ok(got[0] == 1.5 && got[1] == -0.25, "of numbers");
    ok(etd_find(&f.body, "map", &v) && etd_get_int(&v.map, "inside", 0) == 5, "a map");
    ok(!etd_find(&f.body, "nothing", &v), "a key that is not there is not found");
    is_int(etd_get_int(&f.body, "text", 9), 9, "nor one of another type");
}

static void
test_limits(void)
{
    static char big[ETD_CHUNK_BYTES];
    unsigned char b[ETD_STRING + 8] = {0};
    const char *why;

    b[0] = 0xda, b[1] = ETD_STRING >> 8, b[2] = ETD_STRING & 255;
    is_taken(b, 3 + ETD_STRING, "a text of 1 KiB");
    b[2]++;
    is_refused(b, 4 + ETD_STRING, "a text of more than 1 KiB", "a longer one");

    memset(big, 0, sizeof big);
    big[0] = (char)0xdc, big[1] = ETD_ARRAY >> 8;
    is_taken(big, 3 + ETD_ARRAY, "a list of 4,096");
    big[2] = 1;
    is_refused(big, 4 + ETD_ARRAY, "a list of more than 4,096 elements",
               "a longer one");

    big[0] = (char)0xde, big[1] = 0, big[2] = ETD_KEYS;
    is_taken(big, 3 + 2 * ETD_KEYS, "a map of 64 keys");
    big[2]++;
    is_refused(big, 5 + 2 * ETD_KEYS, "a map of more than 64 keys", "a larger one");

    /* The frame and its body are two. */
    memset(big, 0x91, 16);
    big[ETD_DEPTH - 2] = 0;
    is_taken(big, ETD_DEPTH - 1, "a depth of 8");
    big[ETD_DEPTH - 2] = (char)0x91, big[ETD_DEPTH - 1] = 0;
    is_refused(big, ETD_DEPTH, "deeper than 8", "a deeper one");

    is_refused("\xdd\xff\xff\xff\xff", 5, "a count past its end", "a list of 2^32 - 1");
    is_refused("\xdf\xff\xff\xff\xff", 5, "a count past its end", "a map of 2^32 - 1");
    is_refused("\xc6\xff\xff\xff\xff", 5, "a length past its end", "2^32 - 1 bytes");
    is_refused("\xdb\xff\xff\xff\xff", 5, "a length past its end", "a text of them");
    is_refused("\xc9\xff\xff\xff\xff", 5, "a length past its end", "an extension");
    is_refused("\xdc\x00", 2, "no msgpack", "a count that is cut off");
    is_refused("\xc1", 1, "no msgpack", "the byte that msgpack never uses");
    is_refused("", 0, "it ends too early", "a value that is not there");
    is_refused("\xc0\xc0", 2, "bytes behind its end", "more than one");
    is_taken("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, "a number past 2^63");
    is_taken("\xd6\x01\x00\x00\x00\x00", 6, "an extension that is there");
    is_taken("\xca\x3f\x80\x00\x00", 5, "a short float");

    ok(read_bytes(big, 0, &why) == ET_EFORMAT, "no bytes are no frame");
    ok(read_bytes("\x01", 1, &why) == ET_EFORMAT, "nor is a number");
    ok(read_bytes("\x90", 1, &why) == ET_EFORMAT, "nor an empty list");
}

static void
test_kinds(void)
{
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_head h = head;
    static char bytes[ETD_CHUNK_BYTES];
    for (int kind = 0; kind < ETD_KIND_COUNT; kind++) {
        size_t most = etd_kind_bytes((enum etd_kind)kind), n;
        h.kind = (enum etd_kind)kind;
        etd_begin(&o, space, sizeof space, &h, 1);
        etd_put_bin(&o, "b", bytes, most - 100);
        n = etd_end(&o);
        bool fits = n > 0 && etd_read(space, n, &f, &fault) == ET_OK &&
                    (int)f.head.kind == kind;
        etd_begin(&o, space, sizeof space, &h, 1);
        etd_put_bin(&o, "b", bytes, most);
        ok(fits && etd_end(&o) == 0, "%s has %zu bytes at most",
           etd_kind_name((enum etd_kind)kind), most);
    }
    /* Somebody else's HELLO of 5 KiB: the text of a longer kind, overwritten. */
    h.kind = ETD_START;
    etd_begin(&o, space, sizeof space, &h, 1);
    etd_put_bin(&o, "b", bytes, 5 << 10);
    size_t n = etd_end(&o);
    char *name = memmem(space, n, "START", 5);
    memcpy(name, "HELLO", 5);
    ok(etd_read(space, n, &f, &fault) == ET_EFORMAT, "a longer HELLO is refused");
    is_str(fault.why, "longer than a message of its kind", "and it says why");
    memcpy(name, "LATER", 5);
    ok(etd_read(space, n, &f, &fault) == ET_OK && f.head.kind == ETD_KIND_COUNT,
       "a kind of a later version is read, and known as one");
}

static void
test_versions(void)
{
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    etd_begin(&o, space, sizeof space, &head, 0);
    size_t n = etd_end(&o);
    space[1] = 2;
    ok(etd_read(space, n, &f, &fault) == ET_ENOTSUP && f.head.major == 2,
       "another major version is told from damage");
    space[1] = ETD_MAJOR;
    space[2] = 7;
    ok(etd_read(space, n, &f, &fault) == ET_OK && f.head.minor == 7,
       "a later minor version is read");
    etd_begin(&o, space, sizeof space, &head, 2);
    etd_put_int(&o, "a", 1);
    is_int((int64_t)etd_end(&o), 0, "a frame that lacks a key is none");
    etd_begin(&o, space, sizeof space, &head, 0);
    etd_put_int(&o, "a", 1);
    is_int((int64_t)etd_end(&o), 0, "nor is one with a key too many");
    for (size_t room = 0; room < n; room++) {
        etd_begin(&o, space, room, &head, 0);
        if (etd_end(&o) != 0)
            break;
        n = room == n - 1 ? 0 : n;
    }
    is_int((int64_t)n, 0, "nor one that did not fit");
}

/* Each number of a head is itself, a body has 64 keys at most, and a frame fits into
 * just as many bytes as it has. */
static void
test_whole_heads(void)
{
    const struct etd_head all = {.kind = ETD_HIST,
                                 .run = "fedcba9876543210",
                                 .incarnation = 1LL << 33,
                                 .hseq = 1LL << 34,
                                 .rank = 1 << 20,
                                 .rseq = 1LL << 35,
                                 .t_mono_ns = 1LL << 36};
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    char key[16];
    size_t n = 0;
    for (int more = 0; more < 2; more++) {
        etd_begin(&o, space, sizeof space, &all, ETD_KEYS + more);
        for (int i = 0; i < ETD_KEYS + more; i++) {
            snprintf(key, sizeof key, "k%d", i);
            etd_put_int(&o, key, i);
        }
        const size_t size = etd_end(&o);
        ok((size > 0) == !more, "a body of %d keys is %s", ETD_KEYS + more,
           more ? "none" : "written");
        n = more ? n : size;
    }
    etd_begin(&o, space, sizeof space, &all, 1);
    etd_put_int(&o, "k", 5);
    n = etd_end(&o);
    etd_begin(&o, space, n, &all, 1);
    etd_put_int(&o, "k", 5);
    ok(etd_end(&o) == n && etd_read(space, n, &f, &fault) == ET_OK,
       "a frame of %zu bytes fits into as many", n);
    ok(f.head.kind == all.kind && f.head.major == ETD_MAJOR &&
           f.head.minor == ETD_MINOR && memcmp(f.head.run, all.run, ETD_RUN_ID) == 0 &&
           f.head.incarnation == all.incarnation && f.head.hseq == all.hseq &&
           f.head.rank == all.rank && f.head.rseq == all.rseq &&
           f.head.t_mono_ns == all.t_mono_ns,
       "and has each number of its head");
}

/* A frame that is just as long as its kind may be. */
static void
test_whole_kinds(void)
{
    static char bytes[ETD_CHUNK_BYTES];
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    int wrong = 0;
    for (int kind = 0; kind < ETD_KIND_COUNT; kind++) {
        struct etd_head h = head;
        h.kind = (enum etd_kind)kind;
        const size_t most = etd_kind_bytes(h.kind);
        etd_begin(&o, space, sizeof space, &h, 1);
        etd_put_bin(&o, "b", bytes, most - 100);
        const size_t more = most - etd_end(&o);
        etd_begin(&o, space, sizeof space, &h, 1);
        etd_put_bin(&o, "b", bytes, most - 100 + more);
        const size_t n = etd_end(&o);
        wrong += n != most || etd_read(space, n, &f, &fault) != ET_OK;
    }
    is_int(wrong, 0, "a frame may have all the bytes of its kind");
}

/* What the parts of a record have, and which of them belong together. */
static void
test_own_parts(void)
{
    enum { N = ETD_KEYS + 6 };
    static struct et_log_entry entry[N];
    struct et_record got,
        r = {.seq = 5, .kind = ET_RECORD_LOG, .text = "t", .entry = entry, .n = N};
    struct etd_join join;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_value v;
    bool whole = true;
    etd_join_init(&join, cx);
    for (int i = 0; i < N; i++)
        snprintf(entry[i].name, sizeof entry->name, "k%d", i);
    for (int part = 0, from = 0; part < 2; part++) {
        size_t n = etd_record_write(space, sizeof space, &head, &r, &from);
        ok(etd_read(space, n, &f, &fault) == ET_OK &&
               etd_find(&f.body, "text", &v) == (part == 0),
           "part %d has %s text", part, part ? "no" : "the");
        if (part == 0 && etd_join_add(&join, &f, &got, &whole) != ET_OK)
            bail("a part is not taken");
    }
    f.head.hseq++;
    ok(!whole && etd_join_add(&join, &f, &got, &whole) == ET_EFORMAT,
       "the second part of another record is not taken");
    et_error_clear(cx);
    r = (struct et_record){.seq = 6, .kind = ET_RECORD_BATCH, .of = INT64_MAX, .n = 0};
    int from = 0;
    size_t n = etd_record_write(space, sizeof space, &head, &r, &from);
    ok(etd_read(space, n, &f, &fault) == ET_OK &&
           etd_join_add(&join, &f, &got, &whole) == ET_OK && got.of == 1LL << 40,
       "a record stands for 2^40 at most");
    etd_join_release(&join);
}

/* Records one behind the other, each with what the one before had not. */
static void
test_next_records(void)
{
    struct et_record got;
    struct etd_join join;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_out o;
    struct etd_head h = head;
    bool whole;
    etd_join_init(&join, cx);
    for (int level = ET_LOG_DEBUG; level <= ET_LOG_ERROR; level++) {
        const struct et_record r = {.kind = ET_RECORD_LOG,
                                    .seq = 7 + level,
                                    .text = level % 2 ? NULL : "a line",
                                    .level = (enum et_log_level)level};
        int from = 0;
        size_t n = etd_record_write(space, sizeof space, &head, &r, &from);
        ok(etd_read(space, n, &f, &fault) == ET_OK &&
               etd_join_add(&join, &f, &got, &whole) == ET_OK && whole &&
               got.level == r.level && !got.text == !r.text,
           "a line of level %d has it, and %s text", level, r.text ? "a" : "no");
    }
    static const int64_t rows[][4] = {
        /* of, from, and what they are taken for, in a record of batch 10 */
        {3, 8, 3, 8},
        {3, 10, 3, 10},
        {3, 11, 3, 10},
        {-1, 8, 0, 0},
        {0, 8, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        h.kind = (enum etd_kind)ET_RECORD_BATCH;
        h.hseq = 20 + (int64_t)i;
        etd_begin(&o, space, sizeof space, &h, 3);
        etd_put_int(&o, "ba", 10);
        etd_put_int(&o, "of", rows[i][0]);
        etd_put_int(&o, "from", rows[i][1]);
        ok(etd_read(space, etd_end(&o), &f, &fault) == ET_OK &&
               etd_join_add(&join, &f, &got, &whole) == ET_OK && whole &&
               got.ba == 10 && got.of == rows[i][2] && got.from == rows[i][3],
           "a record for %lld from %lld on is one for %lld from %lld on",
           (long long)rows[i][0], (long long)rows[i][1], (long long)rows[i][2],
           (long long)rows[i][3]);
    }
    etd_join_release(&join);
}

/* What an operation may be refused for, as its manual page has it. */
static void
test_reasons(void)
{
    static const int always[] = {5008, 5009, 5012, 5014};
    for (int op = 0; op < ETD_OP_COUNT; op++) {
        int wrong = 0;
        for (int code = 4990; code < 5050; code++) {
            bool may = code == 5010 || code == 5011 ||
                       (code == 5013 && op != ETD_OP_ANNOTATE) ||
                       (code == 5017 && op == ETD_OP_ALGO);
            for (int i = 0; i < 4; i++)
                may = may || code == always[i];
            wrong += etd_op_rejects((enum etd_op)op, code) != may;
        }
        is_int(wrong, 0, "%s is refused for its reasons alone",
               etd_op_name((enum etd_op)op));
    }
}

/* A text with a zero inside would be another one. */
static void
test_zero(void)
{
    struct etd_command c = {.op = ETD_OP_SET,
                            .key = "a-key",
                            .value = "v",
                            .if_rev = -1,
                            .ttl_ms = 5},
                       got;
    struct etd_frame f;
    struct etd_fault fault;
    size_t n = etd_command_write(space, sizeof space, &head, &c);
    char *key = memmem(space, n, "a-key", 5);
    if (!key)
        bail("a key is not in its command");
    key[1] = '\0';
    const char *why =
        etd_read(space, n, &f, &fault) == ET_OK ? etd_command_read(&f, &got) : "unread";
    is_str(why ? why : "fine", "a text that is too long", "a key with a zero is none");
}

/* Texts of a list, one of which is longer than a text may be. */
static void
test_texts(void)
{
    static char longest[ETD_STRING + 3];
    const char *const texts[] = {"short", longest, ""};
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_value v, one[3];
    struct etd_head h = head;
    h.kind = ETD_SNAP_CHUNK;
    memset(longest, 'x', sizeof longest - 1);
    etd_begin(&o, space, sizeof space, &h, 1);
    etd_put_texts(&o, "texts", texts, 3);
    if (etd_read(space, etd_end(&o), &f, &fault) != ET_OK ||
        !etd_find(&f.body, "texts", &v) || v.type != ETD_IS_LIST || v.n != 3)
        bail("a list of texts is not read: %s", fault.why);
    for (int i = 0; i < 3; i++)
        etd_next(&v.at, f.body.end, &one[i]);
    ok(one[0].n == 5 && memcmp(one[0].bytes, "short", 5) == 0 &&
           one[1].n == ETD_STRING && one[2].n == 0,
       "texts of a list are cut where any text is");
}

/* A frame of N elements, element WHICH of them replaced by BYTES. */
static et_status
read_with(int n, int which, const char *bytes, size_t size, const char **why)
{
    static const struct {
        const char *bytes;
        size_t n;
    } part[] = {
        {"\x01", 1},
        {"\x00", 1},
        {"\xa4PING", 5},
        {"\xc4\x10"
         "0123456789abcdef",
         18},
        {"\xcd\x01\x00", 3},
        {"\x00", 1},
        {"\x00", 1},
        {"\x00", 1},
        {"\x05", 1},
        {"\x80", 1},
        {"\xc0", 1},
    };
    char message[512];
    size_t used = 1;
    message[0] = (char)(0x90 + n);
    for (int i = 0; i < n; i++) {
        const char *from = i == which ? bytes : part[i].bytes;
        size_t length = i == which ? size : part[i].n;
        memcpy(message + used, from, length);
        used += length;
    }
    return read_bytes(message, used, why);
}

static void
test_heads(void)
{
    static const struct {
        int n, which;
        const char *bytes;
        size_t size;
        const char *why; /* NULL: it is read */
    } row[] = {
        {10, -1, "", 0, NULL},
        {9, -1, "", 0, "a frame has 10 elements"},
        {11, -1, "", 0, "a frame has 10 elements"},
        {1, -1, "", 0, "no frame"},
        {10, 0,
         "\xa1"
         "1",
         2, "no frame"},
        {10, 0, "\xff", 1, "no frame"},
        {10, 0, "\xce\xff\xff\xff\xff", 5, "no frame"},
        {10, 0, "\x02", 1, "another major version"},
        {10, 1, "\xc2", 1, "no frame"},
        {10, 1, "\xd0\xff", 2, "no frame"},
        {10, 1, "\xcf\x00\x00\x00\x01\x00\x00\x00\x00", 9, "no frame"},
        {10, 1, "\x07", 1, NULL},
        {10, 2, "\x01", 1, "no text for a kind"},
        {10, 2,
         "\xd9\x04"
         "PING",
         6, NULL},
        {10, 3, "\xa1x", 2, "no 16 bytes for a run"},
        {10, 3, "\xc4\x01x", 3, "no 16 bytes for a run"},
        {10, 4, "\xff", 1, "no whole number from 0 on"},
        {10, 5, "\xcb\0\0\0\0\0\0\0\0", 9, "no whole number from 0 on"},
        {10, 6, "\xce\xff\xff\xff\xff", 5, "no whole number from 0 on"},
        {10, 7, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, "no whole number from 0 on"},
        {10, 8, "\xc0", 1, "no whole number from 0 on"},
        {10, 9, "\x90", 1, "no map for a body"},
        {10, 9, "\xde\x00\x00", 3, NULL},
        {10, 9, "\xdf\x00\x00\x00\x00", 5, NULL},
        {10, 9,
         "\x81\xa1"
         "a",
         3, "it ends too early"},
    };
    static char long_one[ETD_CHUNK_BYTES + 1];
    const char *why;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        et_status status =
            read_with(row[i].n, row[i].which, row[i].bytes, row[i].size, &why);
        is_str(status == ET_OK ? "read" : why, row[i].why ? row[i].why : "read",
               "%d elements, element %d of %zu bytes", row[i].n, row[i].which,
               row[i].size);
    }
    ok(read_bytes(long_one, sizeof long_one, &why) == ET_EFORMAT,
       "256 KiB and one byte");
    is_str(why, "longer than any message", "are no message");
}

/* Every form in which a value may stand. */
static void
test_forms(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        enum etd_type type;
        double d; /* of a number */
    } row[] = {
        {"\x7f", 1, ETD_IS_INT, 127},
        {"\xe0", 1, ETD_IS_INT, -32},
        {"\xcc\xff", 2, ETD_IS_INT, 255},
        {"\xcd\xff\xff", 3, ETD_IS_INT, 65535},
        {"\xce\xff\xff\xff\xff", 5, ETD_IS_INT, 4294967295.0},
        {"\xcf\0\0\0\1\0\0\0\0", 9, ETD_IS_INT, 4294967296.0},
        {"\xcf\xff\0\0\1\0\0\0\0", 9, ETD_IS_NIL, 0},
        {"\xd0\x80", 2, ETD_IS_INT, -128},
        {"\xd1\x80\x00", 3, ETD_IS_INT, -32768},
        {"\xd2\xff\xff\xff\xff", 5, ETD_IS_INT, -1},
        {"\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", 9, ETD_IS_INT, -2},
        {"\xca\x3f\x80\x00\x00", 5, ETD_IS_DOUBLE, 1},
        {"\xcb\x3f\xf0\0\0\0\0\0\0", 9, ETD_IS_DOUBLE, 1},
        {"\xc2", 1, ETD_IS_BOOL, 0},
        {"\xc0", 1, ETD_IS_NIL, 0},
        {"\xd4\x01x", 3, ETD_IS_NIL, 0},
        {"\xc7\x01\x01x", 4, ETD_IS_NIL, 0},
        {"\xa1x", 2, ETD_IS_TEXT, 0},
        {"\xda\x00\x01x", 4, ETD_IS_TEXT, 0},
        {"\xdb\0\0\0\1x", 6, ETD_IS_TEXT, 0},
        {"\xc4\1x", 3, ETD_IS_BIN, 0},
        {"\xc5\0\1x", 4, ETD_IS_BIN, 0},
        {"\xc6\0\0\0\1x", 6, ETD_IS_BIN, 0},
        {"\x91\x01", 2, ETD_IS_LIST, 0},
        {"\xdc\x00\x01\x01", 4, ETD_IS_LIST, 0},
        {"\xdd\0\0\0\1\1", 6, ETD_IS_LIST, 0},
        {"\x81\xa1y\x01", 4, ETD_IS_MAP, 0},
        {"\xde\x00\x01\xa1y\x01", 6, ETD_IS_MAP, 0},
        {"\xdf\0\0\0\1\xa1y\x01", 8, ETD_IS_MAP, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_frame f;
        struct etd_fault fault;
        struct etd_value v;
        double d[2];
        int64_t n[2];
        char text[4];
        unsigned char id[1];
        const enum etd_type type = row[i].type;
        size_t size = frame_with(row[i].bytes, row[i].n);
        ok(etd_read(space, size, &f, &fault) == ET_OK && etd_find(&f.body, "x", &v) &&
               v.type == type && v.d == (type == ETD_IS_BOOL ? 0 : row[i].d),
           "form %02x is a value of type %d", (unsigned char)row[i].bytes[0], type);
        bool number = type == ETD_IS_INT || type == ETD_IS_DOUBLE;
        ok(etd_get_int(&f.body, "x", -7) ==
                   (type == ETD_IS_INT ? (int64_t)row[i].d : -7) &&
               etd_get_double(&f.body, "x", -7) == (number ? row[i].d : -7) &&
               etd_get_bool(&f.body, "x", true) == (type != ETD_IS_BOOL) &&
               strcmp(etd_get_text(&f.body, "x", text, sizeof text),
                      type == ETD_IS_TEXT ? "x" : "") == 0 &&
               etd_get_id(&f.body, "x", id, 1) == (type == ETD_IS_BIN) &&
               etd_get_ints(&f.body, "x", n, 2) == (type == ETD_IS_LIST) &&
               etd_get_doubles(&f.body, "x", d, 2) == (type == ETD_IS_LIST),
           "and of no other");
    }
    struct etd_frame f;
    struct etd_fault fault;
    double d[2];
    int64_t n[2];
    size_t size = frame_with("\x92\xc0\x01", 3);
    ok(etd_read(space, size, &f, &fault) == ET_OK &&
           etd_get_ints(&f.body, "x", n, 2) == 0 &&
           etd_get_doubles(&f.body, "x", d, 2) == 0,
       "a list is read up to what is no number");
    size = frame_with("\x92\x01\xcb\x3f\xf0\0\0\0\0\0\0", 11);
    ok(etd_read(space, size, &f, &fault) == ET_OK &&
           etd_get_ints(&f.body, "x", n, 2) == 1 &&
           etd_get_doubles(&f.body, "x", d, 2) == 2 && d[1] == 1,
       "whole numbers are numbers too");
}

static void
test_writing_limits(void)
{
    static int64_t many[ETD_ARRAY + 1];
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    char text[8];
    struct etd_head h = head;
    h.kind = ETD_HIST;
    etd_begin(&o, space, sizeof space, &h, 1);
    etd_put_ints(&o, "x", many, ETD_ARRAY);
    ok(etd_end(&o) > 0, "a list of 4,096 is written");
    etd_begin(&o, space, sizeof space, &h, 1);
    etd_put_ints(&o, "x", many, ETD_ARRAY + 1);
    is_int((int64_t)etd_end(&o), 0, "a longer one is not");
    etd_begin(&o, space, sizeof space, &h, 1);
    etd_put_map(&o, "x", ETD_KEYS + 1);
    o.keys = 0;
    is_int((int64_t)etd_end(&o), 0, "nor a map of 65 keys");
    etd_begin(&o, space, sizeof space, &h, ETD_KEYS + 1);
    o.keys = 0;
    is_int((int64_t)etd_end(&o), 0, "nor a body of as many");
    h.kind = ETD_KIND_COUNT;
    etd_begin(&o, space, sizeof space, &h, 0);
    is_int((int64_t)etd_end(&o), 0, "nor a kind that is none");
    is_str(etd_kind_name(ETD_KIND_COUNT), "?", "which has no name");
    is_str(etd_op_name(ETD_OP_COUNT), "?", "nor has an operation");
    etd_begin(&o, space, sizeof space, &head, 1);
    etd_put_text(&o, "x", "a\xff\xfe");
    ok(etd_read(space, etd_end(&o), &f, &fault) == ET_OK &&
           strcmp(etd_get_text(&f.body, "x", text, sizeof text), "a\xff\xfe") == 0,
       "bytes that are no UTF-8 pass as they are");
}

/* A record of N numbers, there and back. */
static void
is_same_record(int n, enum et_record_kind kind, const char *text)
{
    struct et_log_entry *entry = calloc((size_t)n + 1, sizeof *entry);
    struct et_record r = {.kind = kind,
                          .t = 1.75e9,
                          .seq = 12345,
                          .ep = 1,
                          .ba = 2,
                          .sp = INT64_MAX,
                          .level = ET_LOG_WARN,
                          .rank = 3,
                          .text = text,
                          .entry = entry,
                          .n = n};
    struct etd_join join;
    struct et_record got = {0};
    bool whole = false;
    int frames = 0, from = 0;
    for (int i = 0; i < n; i++) {
        snprintf(entry[i].name, sizeof entry[i].name, "metrics/eval/%d", i);
        entry[i].value = i ? 1.0 / i : NAN;
    }
    etd_join_init(&join, cx);
    do {
        struct etd_frame f;
        struct etd_fault fault;
        size_t bytes = etd_record_write(space, sizeof space, &head, &r, &from);
        if (whole || bytes == 0 || etd_read(space, bytes, &f, &fault) != ET_OK ||
            f.head.hseq != r.seq || etd_join_add(&join, &f, &got, &whole) != ET_OK)
            break;
        frames++;
    } while (from < n);
    bool same = whole && got.kind == kind && got.t == r.t && got.seq == r.seq &&
                got.ep == 1 && got.ba == 2 && got.sp == INT64_MAX && got.rank == 3 &&
                got.n == n && (kind != ET_RECORD_LOG || got.level == ET_LOG_WARN);
    for (int i = 0; same && i < n; i++)
        same = strcmp(entry[i].name, got.entry[i].name) == 0 &&
               memcmp(&entry[i].value, &got.entry[i].value, sizeof(double)) == 0;
    ok(same, "a %s of %d numbers is the same behind the wire", et_record_name(kind), n);
    is_str(got.text ? got.text : "(none)", text ? text : "(none)", "so is its text");
    is_int(frames, n ? (n + ETD_KEYS - 1) / ETD_KEYS : 1, "64 numbers to a frame");
    etd_join_release(&join);
    free(entry);
}

static void
test_records(void)
{
    static char long_text[3000];
    struct etd_join join;
    struct etd_frame f;
    struct etd_fault fault;
    struct et_log_entry entry[ETD_KEYS + 1] = {{"a", 1}};
    struct et_record got, r = {.seq = 1, .entry = entry, .n = ETD_KEYS + 1};
    bool whole;
    int from = 0;
    for (int kind = 0; kind < ET_RECORD_COUNT; kind++)
        is_same_record(2, (enum et_record_kind)kind, "text");
    is_same_record(0, ET_RECORD_RUN, NULL);
    is_same_record(0, ET_RECORD_RUN, "");
    is_same_record(ETD_KEYS, ET_RECORD_BATCH, NULL);
    is_same_record(ETD_KEYS + 1, ET_RECORD_EVAL, "eval");
    is_same_record(ETD_KEYS + 1, ET_RECORD_EVAL, "");
    is_same_record(ETD_RECORD_NUMBERS - 1, ET_RECORD_METRIC, NULL);

    memset(long_text, 'x', sizeof long_text - 1);
    memcpy(long_text + ETD_STRING - 1, "ü", 2);
    r.text = long_text;
    size_t n = etd_record_write(space, sizeof space, &head, &r, &from);
    etd_join_init(&join, cx);
    ok(etd_read(space, n, &f, &fault) == ET_OK &&
           etd_join_add(&join, &f, &got, &whole) == ET_OK && !whole,
       "the first part of a record is not the record");
    is_int((int64_t)strlen(join.text), ETD_STRING - 1, "a text ends with a character");
    ok(etd_join_add(&join, &f, &got, &whole) == ET_EFORMAT,
       "the same part again is refused");
    et_error_clear(cx);
    ok(etd_join_add(&join, &f, &got, &whole) == ET_OK, "it may begin again");
    n = etd_record_write(space, sizeof space, &head, &r, &from);
    ok(etd_read(space, n, &f, &fault) == ET_OK &&
           etd_join_add(&join, &f, &got, &whole) == ET_OK && whole &&
           got.n == ETD_KEYS + 1,
       "and is whole with its last part");
    ok(etd_join_add(&join, &f, &got, &whole) == ET_EFORMAT,
       "a last part without a first is refused");
    et_error_clear(cx);
    etd_join_release(&join);
}

/* Another version may send names that have no room here: they are cut. What is no
 * number is passed over. */
static void
test_names_of_others(void)
{
    static const size_t length[] = {
        1,  ET_METRIC_NAME - 2, ET_METRIC_NAME - 1, ET_METRIC_NAME, ET_METRIC_NAME + 1,
        200};
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        struct etd_out o;
        struct etd_frame f;
        struct etd_fault fault;
        struct etd_join join;
        struct et_record got = {0};
        struct etd_head h = head;
        char name[256] = "";
        bool whole = false;
        const size_t room = ET_METRIC_NAME - 1;
        memset(name, 'n', length[i]);
        h.kind = (enum etd_kind)ET_RECORD_BATCH;
        etd_begin(&o, space, sizeof space, &h, 1);
        etd_put_map(&o, "m", 4);
        etd_put_double(&o, "first", 1);
        etd_put_double(&o, name, 2);
        etd_put_text(&o, "text", "3");
        etd_put_double(&o, "last", 4);
        size_t n = etd_end(&o);
        etd_join_init(&join, cx);
        ok(n > 0 && etd_read(space, n, &f, &fault) == ET_OK &&
               etd_join_add(&join, &f, &got, &whole) == ET_OK && whole && got.n == 3,
           "a name of %zu bytes is read", length[i]);
        is_int(got.n == 3 ? (int64_t)strlen(got.entry[1].name) : -1,
               (int64_t)(length[i] < room ? length[i] : room), "... as much as fits");
        ok(got.n == 3 && strcmp(got.entry[0].name, "first") == 0 &&
               got.entry[0].value == 1 && got.entry[1].value == 2 &&
               strcmp(got.entry[2].name, "last") == 0 && got.entry[2].value == 4,
           "... and what stands beside it");
        etd_join_release(&join);
    }
}

/* One that stands for 7. There is as much to say of the first 64 numbers as can be:
 * they vary, were not always there and not always finite. Of the others every second
 * one varies. Names are as long as they may be. */
static void
test_thinned(void)
{
    enum { N = 2 * ETD_KEYS + 5 };
    static struct et_log_entry entry[N];
    static struct et_log_span span[N];
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_join join;
    struct et_record got = {0}, r = {.kind = ET_RECORD_BATCH,
                                     .seq = 1,
                                     .ba = 40,
                                     .of = 7,
                                     .from = 34,
                                     .entry = entry,
                                     .span = span,
                                     .n = N};
    bool whole = false;
    int from = 0;
    for (int i = 0; i < N; i++) {
        const struct et_log_span all = {7, 0, i, i, 7.0 * i},
                                 few = {4, 2, 0, i, 2.0 * i};
        bool most = i < ETD_KEYS;
        memset(entry[i].name, 'n', sizeof entry->name - 1);
        snprintf(entry[i].name, 8, "%06d", i);
        entry[i].name[6] = '/';
        entry[i].value = i;
        span[i] = most ? few : all;
        span[i].min -= most || i % 2 == 0;
    }
    etd_join_init(&join, cx);
    do {
        size_t n = etd_record_write(space, ETD_RECORD_BYTES, &head, &r, &from);
        if (etd_read(space, n, &f, &fault) != ET_OK ||
            etd_join_add(&join, &f, &got, &whole) != ET_OK)
            break;
    } while (from < N);
    ok(whole && got.n == N && got.of == 7 && got.from == 34 && got.span,
       "a record that stands for several is so behind the wire");
    int wrong = 0;
    for (int i = 0; whole && i < N; i++) {
        const struct et_log_span *a = &span[i], *b = &got.span[i];
        wrong += a->n != b->n || a->bad != b->bad || a->min != b->min ||
                 a->max != b->max || fabs(a->sum - b->sum) > 1e-9;
    }
    is_int(wrong, 0, "with the span of each number, whatever the length of its name");
    etd_join_release(&join);
}

/* The first frame says nothing of several records, the second does. */
static void
test_late_span(void)
{
    struct et_log_entry entry[ETD_KEYS + 1] = {{"a", 1}};
    struct et_log_span span[ETD_KEYS + 1] = {{2, 0, 0, 1, 1}};
    struct et_record got = {0}, r = {.kind = ET_RECORD_BATCH,
                                     .seq = 1,
                                     .entry = entry,
                                     .span = span,
                                     .n = ETD_KEYS + 1};
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_join join;
    bool whole = false;
    int from = 0;
    etd_join_init(&join, cx);
    size_t n = etd_record_write(space, ETD_RECORD_BYTES, &head, &r, &from);
    bool first = etd_read(space, n, &f, &fault) == ET_OK &&
                 etd_join_add(&join, &f, &got, &whole) == ET_OK && !whole;
    r.of = 2;
    n = etd_record_write(space, ETD_RECORD_BYTES, &head, &r, &from);
    ok(first && etd_read(space, n, &f, &fault) == ET_OK &&
           etd_join_add(&join, &f, &got, &whole) == ET_OK && whole && got.of == 0 &&
           !got.span,
       "a record whose second frame alone has spans has none: the first have nothing");
    etd_join_release(&join);
}

static void
test_join_limit(void)
{
    struct etd_join join;
    struct etd_frame f;
    struct etd_fault fault;
    struct et_log_entry entry[2 * ETD_KEYS] = {{"a", 1}};
    struct et_record got, r = {.seq = 1, .entry = entry, .n = 2 * ETD_KEYS};
    bool whole;
    int taken = 0, from = 0;
    et_status status;
    size_t n = etd_record_write(space, sizeof space, &head, &r, &from);
    etd_join_init(&join, cx);
    ok(etd_read(space, n, &f, &fault) == ET_OK, "somebody sends a record without end");
    while ((status = etd_join_add(&join, &f, &got, &whole)) == ET_OK && taken < 1000) {
        struct etd_out o;
        taken++;
        struct etd_head h = head;
        h.kind = (enum etd_kind)r.kind;
        h.hseq = 1;
        etd_begin(&o, space, sizeof space, &h, 3);
        etd_put_map(&o, "m", ETD_KEYS);
        for (int i = 0; i < ETD_KEYS; i++)
            etd_put_double(&o, "a", 1);
        etd_put_int(&o, "part", taken);
        etd_put_bool(&o, "more", true);
        if (etd_read(space, etd_end(&o), &f, &fault) != ET_OK)
            break;
    }
    ok(status == ET_EFORMAT && taken == ETD_RECORD_NUMBERS / ETD_KEYS,
       "it is refused at %d numbers", ETD_RECORD_NUMBERS);
    et_error_clear(cx);
    etd_join_release(&join);
}

/* Key, value and who of C, each as long as it may be, and a byte longer. */
static void
test_words(const struct etd_command *c)
{
    static const struct {
        const char *op, *key;
        size_t key_n, value_n, who_n;
        bool fits;
    } row[] = {
        {"set", "key", 159, 159, 159, true},    {"set", "key", 160, 1, 1, false},
        {"set", "key", 1, 160, 1, false},       {"set", "key", 1, 1, 160, false},
        {"annotate", NULL, 0, 1024, 1, true},   {"algo", "key", 1, 159, 0, true},
        {"algo", "key", 1, 160, 0, false},      {"loglevel", NULL, 0, 160, 0, false},
        {"checkpoint", NULL, 0, 160, 0, false},
    };
    char text[ETD_NOTE];
    struct etd_command got;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_head h = head;
    struct etd_out o;
    h.kind = ETD_CMD;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        etd_begin(&o, space, sizeof space, &h, 5);
        etd_put_bin(&o, "id", c->id, ETD_CMD_ID);
        etd_put_text(&o, "op", row[i].op);
        etd_put_int(&o, "ttl_ms", 1000);
        etd_put_map(&o, "args", 1 + (row[i].key != NULL));
        snprintf(text, sizeof text, "%0*d", (int)row[i].key_n, 7);
        if (row[i].key)
            etd_put_text(&o, "key", text);
        snprintf(text, sizeof text, "%0*d", (int)row[i].value_n, 8);
        etd_put_text(&o, "value", text);
        snprintf(text, sizeof text, "%0*d", (int)row[i].who_n, 9);
        etd_put_text(&o, "who", text);
        const char *why = etd_read(space, etd_end(&o), &f, &fault) == ET_OK
                              ? etd_command_read(&f, &got)
                              : "unread";
        is_str(why ? why : "fine", row[i].fits ? "fine" : "a text that is too long",
               "%s with %zu, %zu and %zu bytes", row[i].op, row[i].key_n,
               row[i].value_n, row[i].who_n);
        if (row[i].fits)
            ok(strlen(got.key) == row[i].key_n && strlen(got.value) == row[i].value_n &&
                   (row[i].who_n == 0 || strlen(got.who) == row[i].who_n),
               "which are all there");
    }
    is_int((int64_t)etd_op_room(ETD_OP_ANNOTATE), 1025, "a note has 1 KiB");
    is_int((int64_t)etd_op_room(ETD_OP_SET), 160, "a value has 159 bytes");
}

/* What the viewers of other languages send for a number: all have no integers. */
static void
test_numbers_of_commands(void)
{
    enum form { WHOLE, DOUBLE, TEXT };
    static const struct {
        enum form form;
        double value;
        const char *why, *what;
    } row[] = {
        {WHOLE, 12, NULL, "an integer"},
        {DOUBLE, 12, NULL, "a double without a fraction"},
        {DOUBLE, 12.5, "is no whole number", "a double with one"},
        {DOUBLE, NAN, "is no whole number", "what is no number"},
        {DOUBLE, 0x1p60, "is no whole number", "a double that has lost its last bits"},
        {TEXT, 12, "is no whole number", "a text of digits"},
    };
    static const char *const keys[] = {"ttl_ms", "if_rev"};
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_command got;
    for (size_t i = 0; i < 2 * (sizeof row / sizeof *row); i++) {
        const char *key = keys[i % 2];
        char want[64] = "fine";
        struct etd_out o;
        struct etd_head h = head;
        h.kind = ETD_CMD;
        etd_begin(&o, space, sizeof space, &h, 5 + (int)(i % 2));
        etd_put_bin(&o, "id", "fedcba987654321", ETD_CMD_ID);
        etd_put_text(&o, "op", "stop");
        etd_put_map(&o, "args", 0);
        if (i % 2)
            etd_put_int(&o, "ttl_ms", 1000);
        if (row[i / 2].form == WHOLE)
            etd_put_int(&o, key, (int64_t)row[i / 2].value);
        else if (row[i / 2].form == DOUBLE)
            etd_put_double(&o, key, row[i / 2].value);
        else
            etd_put_text(&o, key, "12");
        etd_put_text(&o, "who", "uid:7");
        if (row[i / 2].why)
            snprintf(want, sizeof want, "%s %s", key, row[i / 2].why);
        const char *why = etd_read(space, etd_end(&o), &f, &fault) == ET_OK
                              ? etd_command_read(&f, &got)
                              : "unread";
        is_str(why ? why : "fine", want, "%s as %s", key, row[i / 2].what);
        ok(row[i / 2].why || (i % 2 ? got.if_rev : got.ttl_ms) == 12, "it is that one");
    }
}

/* A revision below 0 is not taken for none. */
static void
test_negative_revision(void)
{
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_command got;
    struct etd_out o;
    struct etd_head h = head;
    h.kind = ETD_CMD;
    etd_begin(&o, space, sizeof space, &h, 5);
    etd_put_bin(&o, "id", "fedcba987654321", ETD_CMD_ID);
    etd_put_text(&o, "op", "stop");
    etd_put_int(&o, "ttl_ms", 1000);
    etd_put_map(&o, "args", 0);
    etd_put_int(&o, "if_rev", -1);
    const char *why = etd_read(space, etd_end(&o), &f, &fault) == ET_OK
                          ? etd_command_read(&f, &got)
                          : "unread";
    is_str(why ? why : "fine", "if_rev below 0", "a revision below 0 is refused");
}

/* A number where a text is asked is not taken as something else. */
static void
test_texts_of_commands(void)
{
    static const char *const keys[] = {"key", "value"};
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_command got;
    for (int i = 0; i < 2; i++) {
        struct etd_out o;
        struct etd_head h = head;
        h.kind = ETD_CMD;
        etd_begin(&o, space, sizeof space, &h, 4);
        etd_put_bin(&o, "id", "fedcba987654321", ETD_CMD_ID);
        etd_put_text(&o, "op", "set");
        etd_put_int(&o, "ttl_ms", 1000);
        etd_put_map(&o, "args", 2);
        etd_put_text(&o, keys[!i], "x");
        etd_put_double(&o, keys[i], 0.05);
        const char *why = etd_read(space, etd_end(&o), &f, &fault) == ET_OK
                              ? etd_command_read(&f, &got)
                              : "unread";
        is_str(why, "key and value are texts: \"0.05\", not 0.05",
               "a number as %s is refused, and how it is written is said", keys[i]);
    }
}

static void
test_commands(void)
{
    static const struct {
        const char *op, *key, *value, *why;
        int ttl;
    } row[] = {
        {"stop", NULL, NULL, NULL, 1},
        {"set", "optimizer.lr", "0.1", NULL, 60000},
        {"algo", "mixup", "off", NULL, 1000},
        {"checkpoint", NULL, NULL, NULL, 1000},
        {"checkpoint", NULL, "best", NULL, 1000},
        {"set", "optimizer.lr", NULL, "no value", 1000},
        {"set", NULL, "0.1", "no key", 1000},
        {"pause", "x", NULL, "a key that it does not take", 1000},
        {"pause", NULL, "x", "a value that it does not take", 1000},
        {"reboot", NULL, NULL, "no such operation", 1000},
        {"stop", NULL, NULL, "ttl_ms outside [1, 60000]", 0},
        {"stop", NULL, NULL, "ttl_ms outside [1, 60000]", 60001},
    };
    struct etd_command c = {.op = ETD_OP_SET,
                            .id = "fedcba987654321",
                            .key = "optimizer.lr",
                            .value = "1e-3",
                            .who = "uid 7",
                            .if_rev = 4,
                            .ttl_ms = 500},
                       got;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_out o;
    struct etd_head h = head;
    size_t n = etd_command_write(space, sizeof space, &head, &c);
    ok(etd_read(space, n, &f, &fault) == ET_OK && !etd_command_read(&f, &got),
       "a command is read back");
    ok(memcmp(&c, &got, sizeof c) == 0, "and is the same");
    c.if_rev = 0;
    n = etd_command_write(space, sizeof space, &head, &c);
    ok(etd_read(space, n, &f, &fault) == ET_OK && !etd_command_read(&f, &got) &&
           got.if_rev == 0,
       "the settings that a run begins with are a revision");
    h.kind = ETD_CMD;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        etd_begin(&o, space, sizeof space, &h, 4);
        etd_put_bin(&o, "id", c.id, ETD_CMD_ID);
        etd_put_text(&o, "op", row[i].op);
        etd_put_int(&o, "ttl_ms", row[i].ttl);
        etd_put_map(&o, "args", !!row[i].key + !!row[i].value);
        if (row[i].key)
            etd_put_text(&o, "key", row[i].key);
        if (row[i].value)
            etd_put_text(&o, "value", row[i].value);
        const char *why = etd_read(space, etd_end(&o), &f, &fault) == ET_OK
                              ? etd_command_read(&f, &got)
                              : "unread";
        is_str(why ? why : "fine", row[i].why ? row[i].why : "fine", "%s %s %s",
               row[i].op, row[i].key ? row[i].key : "-",
               row[i].value ? row[i].value : "-");
        ok(memcmp(got.id, c.id, ETD_CMD_ID) == 0, "its id is known for the answer");
    }
    etd_begin(&o, space, sizeof space, &h, 3);
    etd_put_bin(&o, "id", c.id, ETD_CMD_ID);
    etd_put_text(&o, "op", "stop");
    etd_put_map(&o, "args", 0);
    ok(etd_read(space, etd_end(&o), &f, &fault) == ET_OK &&
           strcmp(etd_command_read(&f, &got), "no ttl_ms") == 0,
       "one that does not say how long it holds is refused");
    test_words(&c);
    for (int op = 0; op < ETD_OP_COUNT; op++)
        ok((int)etd_op_of(etd_op_name((enum etd_op)op)) == op,
           "%s is known by its name", etd_op_name((enum etd_op)op));
}

static void
test_answers(void)
{
    static const struct etd_answer answers[] = {
        {.id = "1", .kind = ETD_RECEIVED},
        {.id = "2",
         .kind = ETD_APPLIED,
         .step = 1 << 20,
         .rev = 3,
         .text = "0.1 -> 0.2"},
        {.id = "3",
         .kind = ETD_REJECTED,
         .code = 5008,
         .text = "lr 1e9 outside (0, 10]"},
        {.id = "4", .kind = ETD_EXPIRED},
    };
    struct etd_answer got;
    struct etd_frame f;
    struct etd_fault fault;
    for (int i = 0; i < 4; i++) {
        size_t n = etd_answer_write(space, sizeof space, &head, &answers[i]);
        ok(etd_read(space, n, &f, &fault) == ET_OK && etd_answer_read(&f, &got) &&
               memcmp(&got, &answers[i], sizeof got) == 0,
           "%s is read back", etd_kind_name(answers[i].kind));
    }
    struct etd_out o;
    etd_begin(&o, space, sizeof space, &head, 0);
    ok(etd_read(space, etd_end(&o), &f, &fault) == ET_OK && !etd_answer_read(&f, &got),
       "a PING is no answer");
}

/* What a run's id is made of, and letters that are refused. */
static void
test_run_ids(void)
{
    static const char good[] = "00017f80ff10a5c0deadbeef01234567";
    static const unsigned char bytes[ETD_RUN_ID] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x10,
                                                    0xa5, 0xc0, 0xde, 0xad, 0xbe, 0xef,
                                                    0x01, 0x23, 0x45, 0x67};
    unsigned char id[ETD_RUN_ID];
    char text[sizeof good + 1];
    int taken = 0;
    ok(etd_run_id(good, id) && memcmp(id, bytes, sizeof id) == 0,
       "32 digits are the bytes of a run's id");
    ok(!etd_run_id(NULL, id) && !etd_run_id("", id) && !etd_run_id(good + 1, id),
       "nothing, and a digit less, are none");
    snprintf(text, sizeof text, "%s0", good);
    ok(!etd_run_id(text, id), "nor is a digit more");
    for (size_t i = 0; i < sizeof good - 1; i++)
        for (const char *other = "gAF -/:`"; *other; other++) {
            snprintf(text, sizeof text, "%s", good);
            text[i] = *other;
            taken += etd_run_id(text, id);
        }
    is_int(taken, 0, "nor is a text with anything else at any place");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_values();
    test_limits();
    test_kinds();
    test_versions();
    test_heads();
    test_whole_heads();
    test_whole_kinds();
    test_own_parts();
    test_next_records();
    test_reasons();
    test_zero();
    test_texts();
    test_forms();
    test_writing_limits();
    test_records();
    test_names_of_others();
    test_thinned();
    test_late_span();
    test_join_limit();
    test_commands();
    test_numbers_of_commands();
    test_negative_revision();
    test_texts_of_commands();
    test_answers();
    test_run_ids();
    et_ctx_free(&cx);
    return done();
}
