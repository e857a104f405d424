/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the base, each on both sides of its bounds: what a block of an arena may
 * hold, which draws are fair, what a description says, how collectives are queued. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/folders.h"
#include "core/base/thread.h"
#include "core/base/well_formed.h"
#include "etude/comm.h"
#include "etude/ctx.h"
#include "etude/diagnostic.h"
#include "etude/rng.h"
#include "etude/time.h"
#include "etude/types.h"
#include "t/tap.h"

static struct et_ctx *cx;

static uint64_t
count_allocs(void)
{
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    return stats.allocs;
}

/* ---- arenas ---- */

static void
test_blocks(void)
{
    struct eti_arena a;
    eti_arena_init(&a, cx, 64);
    uint64_t before = count_allocs();
    char *x = eti_arena_alloc(&a, 32), *y = eti_arena_alloc(&a, 17);
    is_int((int64_t)(count_allocs() - before), 1, "what fits a block is given from it");
    ok(y == x + 32, "to its last byte");
    memset(x, 0x55, 64);
    char *large = eti_arena_alloc(&a, 1000);
    is_int((int64_t)(count_allocs() - before), 2,
           "what is larger has a block of its own");
    memset(large, 0x55, 1000);
    eti_arena_reset(&a);
    before = count_allocs();
    char *again = eti_arena_alloc(&a, 64), *behind = eti_arena_alloc(&a, 1000);
    ok(again == x && behind == large, "after a reset the blocks are given again");
    int dirty = 0;
    for (int i = 0; i < 1000; i++)
        dirty += behind[i] != 0 || (i < 64 && again[i] != 0);
    is_int(dirty, 0, "and are zero again");
    eti_arena_reset(&a);
    (void)eti_arena_alloc(&a, 64);
    char *larger = eti_arena_alloc(&a, 2000);
    is_int((int64_t)(count_allocs() - before), 1,
           "one that is too small is passed over");
    memset(larger, 0x55, 2000);
    char *last = eti_arena_alloc(&a, 1000);
    ok(last == large, "and given later");
    eti_arena_release(&a);
}

/* ---- draws ---- */

static void
test_draws(void)
{
    static const uint32_t seeds[] = {0, 1, 0x10000, 0xffffffff};
    enum { SEEDS = sizeof seeds / sizeof *seeds, STREAMS = ET_RNG_NOISE + 1 };
    uint64_t key[SEEDS * STREAMS];
    int n = 0, twice = 0;
    for (int s = 0; s < SEEDS; s++)
        for (int stream = 0; stream < STREAMS; stream++)
            key[n++] = et_rng_key(seeds[s], (enum et_rng_stream)stream);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            twice += key[i] == key[j];
    is_int(twice, 0, "no stream of a seed is one of another seed");

    struct et_rng r = et_rng_at(3, ET_RNG_USER, 0);
    const uint64_t quarter = UINT64_C(1) << 62;
    int low = 0;
    for (int i = 0; i < 3000; i++)
        low += et_rng_below(&r, 3 * quarter) < quarter;
    ok(low > 900 && low < 1100,
       "of three equal parts of 2^64 x 3/4 each is drawn alike");

    int count[6] = {0};
    for (int i = 0; i < 6000; i++) {
        int32_t p[3];
        et_rng_permutation(&r, p, 3);
        count[2 * p[0] + (p[1] > p[2])]++;
    }
    int fair = 0;
    for (int i = 0; i < 6; i++)
        fair += count[i] > 850 && count[i] < 1150;
    is_int(fair, 6, "all six orders of three come as often");
}

/* ---- diagnostics ---- */

static void
test_visible(void)
{
    static const struct {
        const char *text, *want;
        size_t size;
    } rows[] = {
        {"abcdef", "abcdef", 7},
        {"\x7f", "\\x7f", 16},
        {"\xc2\x9f", "\\x9f", 16},
        {"\xc2\xa0", "\xc2\xa0", 16},
        {"\xe2\x81\xa9", "\\u2069", 16},
        {"\xe2\x81\xaa", "\xe2\x81\xaa", 16},
        {"\xed\x9f\xbf", "\xed\x9f\xbf", 16},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", 16},
        {"\xed\xbf\xbf", "\\xed\\xbf\\xbf", 16},
        {"\xee\x80\x80", "\xee\x80\x80", 16},
        {"\xc1\x81", "\\xc1\\x81", 16},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", 16},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", 32},
        {"abcdefg", "abc...", 7},
        {"abcdefgh", "abcdefgh", 9},
        {"abcdefghi", "abcde...", 9},
        {"abcd\x01", "abcd\\x01", 9},
        {"abcde\x01", "abcde...", 9},
        {"ab\x01", "...", 4},
        {"abc", "..", 3},
        {"abc", "", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char buf[64] = "";
        et_visible(buf, rows[i].size, rows[i].text, strlen(rows[i].text));
        is_str(buf, rows[i].want, "in %zu bytes '%s' is seen", rows[i].size,
               rows[i].want);
    }
}

static void
test_order(void)
{
    struct et_diagnostics list = {0};
    struct et_place at = {.order = 1, .column = 5};
    for (int i = 0; i < ET_DIAGNOSTICS_MAX; i++) {
        at.line = 100 + i;
        et_diagnostics_add(&list, ET_E_VALUE, &at, NULL, NULL, "at %d", at.line);
    }
    at = (struct et_place){.order = 1, .line = 100, .column = 7};
    et_diagnostics_add(&list, ET_E_VALUE, &at, NULL, NULL, "behind the first");
    at.column = 3;
    et_diagnostics_add(&list, ET_E_VALUE, &at, NULL, NULL, "before the first");
    at = (struct et_place){.order = 0, .line = 500};
    et_diagnostics_add(&list, ET_E_VALUE, &at, NULL, NULL, "of an earlier file");
    at = (struct et_place){.order = 1, .line = 999};
    et_diagnostics_add(&list, ET_E_VALUE, &at, NULL, NULL, "behind all");
    is_int(list.n, ET_DIAGNOSTICS_MAX, "a list of faults has room for so many");
    is_int(list.total, ET_DIAGNOSTICS_MAX + 4, "and counts them all");
    is_str(list.v[0].message, "of an earlier file", "the first are kept, by file");
    is_str(list.v[1].message, "before the first", "by line and by column");
    is_str(list.v[2].message, "at 100", "whenever they come");
    is_str(list.v[3].message, "behind the first", "and those behind after them");
    is_str(list.v[ET_DIAGNOSTICS_MAX - 1].message, "at 116", "the last go");
}

/* ---- folders ---- */

static void
test_folders(void)
{
    char home[256], path[320];
    const char *root = getenv("TMPDIR");
    char *old = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    snprintf(home, sizeof home, "%s/etude-t-XXXXXX", root ? root : "/tmp");
    if (!mkdtemp(home))
        bail("cannot make %s", home);
    size_t n = strlen(home);
    snprintf(home + n, sizeof home - n, "/h");
    mkdir(home, 0700);
    snprintf(home + n, sizeof home - n, "/h//");
    setenv("HOME", home, 1);
    home[n] = '\0';
    snprintf(path, sizeof path, "%s/h/.config/etude/x", home);
    ok(eti_make_user_folders(path, 0700),
       "folders are made in a home that ends with /");
    *strrchr(path, '/') = '\0';
    struct stat st;
    ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700,
       "down to the file's, for nobody else to read");
    snprintf(path, sizeof path, "%s/hx/a/x", home);
    ok(eti_make_user_folders(path, 0700),
       "one whose name begins as the home's is none of it");
    snprintf(path, sizeof path, "%s/no//", home);
    setenv("HOME", path, 1);
    snprintf(path, sizeof path, "%s/no/.config/x", home);
    ok(!eti_make_user_folders(path, 0700), "and a home that is missing is not made");
    snprintf(path, sizeof path, "%s/pipe", home);
    mkfifo(path, 0600);
    ok(!eti_open_regular(path), "a pipe is no file to read");
    ok(!eti_open_regular(home), "nor is a folder");
    if (old)
        setenv("HOME", old, 1);
    else
        unsetenv("HOME");
    free(old);
    snprintf(path, sizeof path, "rm -r %s", home);
    is_int(system(path), 0, "all of it is below one folder");
}

/* ---- descriptions ---- */

static void
test_descriptions(void)
{
    struct et_desc d, e;
    et_desc_init(&d, ET_F32, 3, (const int64_t[]){2, 3, 4}, ET_CHANNELS_LAST);
    ok(d.stride[0] == 12 && d.stride[1] == 4 && d.stride[2] == 1,
       "three axes lie in rows, whatever is asked for");
    et_desc_init(&d, ET_F32, 3, (const int64_t[]){2, 1, 4}, ET_ROW_MAJOR);
    d.stride[1] = 77;
    ok(et_desc_is_dense(&d), "where an axis has one element its stride says nothing");
    ok(et_desc_is_contiguous(&d, ET_ROW_MAJOR), "of how an array lies");
    e = d;
    e.stride[1] = 5;
    ok(et_desc_equal(&d, &e), "nor of whether two are alike");
    d.stride[0] = 5;
    ok(!et_desc_is_dense(&d), "that of an axis with two does");
    ok(!et_desc_is_contiguous(&d, ET_ROW_MAJOR), "of how it lies");
    ok(!et_desc_equal(&d, &e), "and of whether it is like another");
    et_desc_init(&d, ET_F32, 2, (const int64_t[]){2, 3}, ET_ROW_MAJOR);
    et_desc_init(&e, ET_F32, 3, (const int64_t[]){2, 3, 4}, ET_ROW_MAJOR);
    ok(!et_desc_same_shape(&d, &e) && !et_desc_same_shape(&e, &d),
       "a shape that begins another is not the same");
    et_desc_init(&d, ET_F32, 4, (const int64_t[]){2, 3, 4, 5}, ET_CHANNELS_LAST);
    et_desc_like(&e, ET_U8, 4, (const int64_t[]){1, 6, 7, 8}, &d);
    ok(et_desc_is_contiguous(&e, ET_CHANNELS_LAST), "another lies as its like does");
    et_desc_like(&e, ET_U8, 2, (const int64_t[]){6, 7}, &d);
    ok(et_desc_is_contiguous(&e, ET_ROW_MAJOR), "with fewer axes in rows");
    d.stride[2] = 0;
    et_desc_like(&e, ET_U8, 4, (const int64_t[]){2, 3, 4, 5}, &d);
    ok(et_desc_is_contiguous(&e, ET_ROW_MAJOR), "and like one that repeats, too");
}

/* ---- units ---- */

static void
test_units(void)
{
    static const enum et_time_unit never = ET_TIME_UNIT_COUNT;
    for (int u = 0; u < ET_TIME_UNIT_COUNT; u++) {
        const char *words[] = {et_time_unit_suffix((enum et_time_unit)u),
                               et_time_unit_name((enum et_time_unit)u)};
        for (int k = 0; k < 2; k++) {
            enum et_time_unit found = never;
            et_status status = et_time_unit_find(cx, words[k], &found);
            ok(status == ET_OK && (int)found == u, "'%s' is a unit", words[k]);
        }
    }
    enum et_time_unit found;
    ok(et_time_unit_find(cx, "fortnight", &found) == ET_EINVAL, "a fortnight is none");
    et_error_clear(cx);
}

/* ---- msgpack from outside ---- */

static void
test_well_formed(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool fine;
        const char *what;
    } rows[] = {
        {"\x01", 1, true, "a number"},
        {"\x01\x01", 2, false, "two numbers"},
        {"", 0, false, "nothing"},
        {"\xc1", 1, false, "a byte that begins nothing"},
        {"\x92\x01\x02", 3, true, "a list of two"},
        {"\x92\x01", 2, false, "a list that lacks one"},
        {"\x81\x01\x02", 3, true, "a mapping of one key"},
        {"\x81\x01", 2, false, "a key without a value"},
        {"\xa3xyz", 4, true, "a text"},
        {"\xa3xy", 3, false, "a text that is cut off"},
        {"\xd9\x02xy", 4, true, "a text with a length"},
        {"\xd9\x03xy", 4, false, "one that is too short"},
        {"\xdd\xff\xff\xff\xff\x01", 6, false, "a list of 2^32"},
        {"\x91\x91\x91\x91\x91\x91\x91\x01", 8, true, "seven lists in each other"},
        {"\x91\x91\x91\x91\x91\x91\x91\x91\x01", 9, false, "eight"},
        {"\x91\x91\x91\x91\x91\x91\x91\x90", 8, true, "an empty one in seven"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(eti_is_well_formed(rows[i].bytes, rows[i].n), rows[i].fine,
               "%s is %s whole", rows[i].what, rows[i].fine ? "a" : "not one");
}

/* ---- work in parts ---- */

struct covered {
    int64_t lot;
    unsigned char times[256]; /* each part writes its own */
    bool cut_between;         /* a part begins within a lot */
    atomic_int empty;         /* parts of nothing */
};

static void
cover(void *data, int64_t first, int64_t end)
{
    struct covered *c = data;
    if (first % c->lot != 0)
        c->cut_between = true;
    c->empty += first >= end;
    for (int64_t i = first; i < end; i++)
        c->times[i]++;
}

static void
test_parts(void)
{
    static const struct {
        int threads;
        int64_t n, lot;
    } rows[] = {{1, 10, 3}, {3, 10, 3}, {3, 9, 3}, {4, 1, 1},     {8, 3, 1},
                {0, 7, 2},  {2, 0, 4},  {5, 7, 7}, {100, 100, 1}, {3, 100, 64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct covered c = {.lot = rows[i].lot};
        eti_thread_split(rows[i].threads, rows[i].n, rows[i].lot, cover, &c);
        int wrong = c.cut_between + c.empty;
        for (int64_t k = 0; k < (int64_t)sizeof c.times; k++)
            wrong += c.times[k] != (k < rows[i].n);
        is_int(wrong, 0, "%d threads do each of %lld in lots of %lld once",
               rows[i].threads, (long long)rows[i].n, (long long)rows[i].lot);
    }
}

/* ---- collectives ---- */

enum { CALLS = 16 };

/* What a transport was asked to do; the ranks beside this one have the same. */
struct transport {
    struct et_comm_call call[CALLS];
    int n, fail_at;
};

static et_status
transport_run(void *self, const struct et_comm_call *call, char *why, size_t why_size)
{
    struct transport *t = self;
    if (t->n < CALLS)
        t->call[t->n] = *call;
    if (++t->n == t->fail_at) {
        snprintf(why, why_size, "rank 1 is gone");
        return ET_EPEER;
    }
    if (call->kind == ET_COMM_ALL_REDUCE && call->out != call->in)
        memcpy(call->out, call->in, (size_t)call->n * et_dtype_size(call->dtype));
    return ET_OK;
}

static void
transport_close(void *self, bool failed)
{
    ((struct transport *)self)->fail_at = failed ? -1 : 0;
}

static const struct et_comm_class transport_class = {
    .name = "test", .run = transport_run, .close = transport_close};

static void
test_reductions(void)
{
    static const enum et_dtype taken[] = {ET_F32, ET_F64, ET_I64, ET_U8};
    struct transport t = {0};
    struct et_comm *c;
    int64_t data[4] = {0};
    if (et_comm_new(cx, &transport_class, &t, 1, 3, &c) != ET_OK)
        bail("no communicator");
    for (int d = 1; d < ET_DTYPE_COUNT; d++) {
        bool is_taken = false;
        for (int i = 0; i < 4; i++)
            is_taken = is_taken || (int)taken[i] == d;
        et_status status =
            et_comm_all_reduce(cx, c, data, 4, (enum et_dtype)d, ET_COMM_SUM);
        is_int(status, is_taken ? ET_OK : ET_EDTYPE, "ranks %s %s",
               is_taken ? "reduce" : "do not reduce", et_dtype_name((enum et_dtype)d));
        et_error_clear(cx);
    }
    int before = t.n;
    ok(et_comm_all_reduce(cx, c, data, 0, ET_F32, ET_COMM_SUM) == ET_OK &&
           t.n == before,
       "of nothing nothing is asked");
    ok(et_comm_barrier(cx, c) == ET_OK && t.n == before + 1, "a barrier has nothing");
    int64_t whole[7] = {10, 11, 12, 13, 14, 15, 16}, part[3] = {0};
    ok(et_comm_reduce_scatter(cx, c, whole, 7, ET_I64, ET_COMM_SUM, part) == ET_OK &&
           part[0] == 12 && part[1] == 13 && part[2] == 0,
       "the second of three ranks has elements 2 and 3 of seven");
    int64_t eight[8] = {10, 11, 12, 13, 14, 15, 16, 17}, three[3] = {0};
    ok(et_comm_reduce_scatter(cx, c, eight, 8, ET_I64, ET_COMM_SUM, three) == ET_OK &&
           three[0] == 12 && three[1] == 13 && three[2] == 14,
       "and 2 to 4 of eight");
    et_comm_set_mark(c, 41, 3, 5);
    et_comm_set_mark(c, -1, 4, 6);
    (void)!et_comm_barrier(cx, c);
    const struct et_comm_mark *m = &t.call[t.n - 1].mark;
    ok(m->step == 41 && m->which == 4 && m->set == 6, "a mark without a step keeps it");
    struct et_comm_look look;
    et_comm_get_look(c, &look);
    ok(look.mark.step == 41 && look.mark.which == 4, "and is what a watcher sees");
    et_comm_close(&c);
    is_int(t.fail_at, 0, "a communicator that worked is closed as one");
}

/* Requests are done one after the other, in the order in which they were begun. */
static void
test_requests(void)
{
    struct transport t = {0};
    struct et_comm *c;
    float in[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, out[4][2] = {{0}}, two = 2;
    struct et_comm_request r[4];
    if (et_comm_new(cx, &transport_class, &t, 0, 2, &c) != ET_OK)
        bail("no communicator");
    et_comm_set_mark(c, 9, 0, 0);
    for (int i = 0; i < 4; i++) {
        r[i] = (struct et_comm_request){.in = in[i],
                                        .out = out[i],
                                        .n = 2,
                                        .dtype = ET_F32,
                                        .weight = i == 2 ? &two : NULL,
                                        .mark.which = 20 + i};
        if (et_comm_start(cx, c, &r[i]) != ET_OK)
            bail("a request is refused");
    }
    int done_well = 0, in_order = 0;
    for (int i = 3; i >= 0; i--)
        done_well += et_comm_wait(cx, c, &r[i]) == ET_OK;
    is_int(done_well, 4, "four requests that were begun at once are all done");
    for (int i = 0; i < 4; i++)
        in_order += t.call[i].mark.which == 20 + i && t.call[i].mark.step == 9;
    is_int(in_order, 4, "in their order, with their own mark and the common step");
    ok(out[1][0] == 3 && out[1][1] == 4, "a sum without a weight is of what is there");
    ok(out[2][0] == 10 && out[2][1] == 12, "with one of that times the weight");
    ok(in[2][0] == 5, "which stays as it is");

    t.fail_at = t.n + 1;
    r[0].done = false;
    ok(et_comm_start(cx, c, &r[0]) == ET_OK && et_comm_wait(cx, c, &r[0]) == ET_EPEER,
       "a failure is told to who waits");
    is_str(et_error_get(cx)->message, "rank 1 is gone", "with its reason");
    et_error_clear(cx);
    int before = t.n;
    ok(et_comm_barrier(cx, c) == ET_EPEER && t.n == before,
       "and afterwards nothing is tried");
    et_error_clear(cx);
    et_comm_close(&c);
    is_int(t.fail_at, -1, "nobody is waited for when it is closed");
}

/* ---- errors ---- */

static void
test_first_error(void)
{
    (void)ET_FAIL(cx, ET_EIO, "first");
    et_error_set_code(cx, 7);
    et_error_set_code(cx, 8);
    et_hint(cx, "one");
    et_hint(cx, "two");
    (void)ET_FAIL(cx, ET_EINVAL, "second");
    const struct et_error *e = et_error_get(cx);
    ok(e->status == ET_EIO && strcmp(e->message, "first") == 0,
       "the first error is the one that stands");
    is_int(e->code, 7, "with its first code");
    is_str(e->hint, "one", "and its first hint");
    et_error_clear(cx);
    et_hint(cx, "none");
    et_error_set_code(cx, 9);
    ok(!et_error_get(cx)->hint[0] && et_error_get(cx)->code == 0,
       "without an error there is neither");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_blocks();
    test_draws();
    test_visible();
    test_order();
    test_folders();
    test_descriptions();
    test_units();
    test_well_formed();
    test_parts();
    test_reductions();
    test_requests();
    test_first_error();
    et_ctx_free(&cx);
    return done();
}
