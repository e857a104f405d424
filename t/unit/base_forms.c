/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of the base: every header of msgpack, a diagnostic as text and as JSON, what a
 * context says that may not go yet, how an arena lays out its pieces. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "config.h"

#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/checks.h"
#include "core/base/installed.h"
#include "core/base/thread.h"
#include "core/base/utf8.h"
#include "core/base/well_formed.h"
#include "etude/ctx.h"
#include "etude/diagnostic.h"
#include "etude/time.h"
#include "etude/types.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- msgpack ---- */

enum { COUNT_8 = 3, COUNT_16 = 259 /* 1 and 3: the first byte counts, too */ };

/* Is an object whole that begins with FIRST, has LENGTH bytes of a length, and then N,
 * and is it none with one less or one more? */
static bool
is_form(unsigned char first, int length, size_t n)
{
    char bytes[2048];
    size_t count = length == 1 ? COUNT_8 : COUNT_16, whole = 1 + (size_t)length + n;
    memset(bytes, 1, sizeof bytes); /* each a number by itself */
    bytes[0] = (char)first;
    for (int i = 0; i < length; i++)
        bytes[1 + i] = (char)(count >> 8 * (length - 1 - i));
    return eti_is_well_formed(bytes, whole) && !eti_is_well_formed(bytes, whole - 1) &&
           !eti_is_well_formed(bytes, whole + 1);
}

static void
test_forms(void)
{
    static const struct {
        unsigned char first, length; /* bytes of a length */
        int fixed, each; /* bytes besides; for each that the length counts */
        const char *what;
    } rows[] = {
        {0x00, 0, 0, 0, "0"},        {0x7f, 0, 0, 0, "127"},
        {0xe0, 0, 0, 0, "-32"},      {0xff, 0, 0, 0, "-1"},
        {0x80, 0, 0, 0, "no pairs"}, {0x8f, 0, 30, 0, "15 pairs"},
        {0x90, 0, 0, 0, "no list"},  {0x9f, 0, 15, 0, "a list of 15"},
        {0xa0, 0, 0, 0, "no text"},  {0xbf, 0, 31, 0, "a text of 31"},
        {0xc0, 0, 0, 0, "nil"},      {0xc2, 0, 0, 0, "false"},
        {0xc3, 0, 0, 0, "true"},     {0xc4, 1, 0, 1, "bin 8"},
        {0xc5, 2, 0, 1, "bin 16"},   {0xc6, 4, 0, 1, "bin 32"},
        {0xc7, 1, 1, 1, "ext 8"},    {0xc8, 2, 1, 1, "ext 16"},
        {0xc9, 4, 1, 1, "ext 32"},   {0xca, 0, 4, 0, "float 32"},
        {0xcb, 0, 8, 0, "float 64"}, {0xcc, 0, 1, 0, "uint 8"},
        {0xcd, 0, 2, 0, "uint 16"},  {0xce, 0, 4, 0, "uint 32"},
        {0xcf, 0, 8, 0, "uint 64"},  {0xd0, 0, 1, 0, "int 8"},
        {0xd1, 0, 2, 0, "int 16"},   {0xd2, 0, 4, 0, "int 32"},
        {0xd3, 0, 8, 0, "int 64"},   {0xd4, 0, 2, 0, "fixext 1"},
        {0xd5, 0, 3, 0, "fixext 2"}, {0xd6, 0, 5, 0, "fixext 4"},
        {0xd7, 0, 9, 0, "fixext 8"}, {0xd8, 0, 17, 0, "fixext 16"},
        {0xd9, 1, 0, 1, "str 8"},    {0xda, 2, 0, 1, "str 16"},
        {0xdb, 4, 0, 1, "str 32"},   {0xdc, 2, 0, 1, "array 16"},
        {0xdd, 4, 0, 1, "array 32"}, {0xde, 2, 0, 2, "map 16"},
        {0xdf, 4, 0, 2, "map 32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int count = rows[i].length == 1 ? COUNT_8 : COUNT_16;
        ok(is_form(rows[i].first, rows[i].length,
                   (size_t)(rows[i].fixed + rows[i].each * count)),
           "%s is whole with its last byte, and with no other", rows[i].what);
    }
    ok(!eti_is_well_formed("\xc1", 1), "0xc1 begins nothing");
}

/* ---- diagnostics ---- */

static void
test_diagnostics(void)
{
    static const struct {
        struct et_place at;
        const char *path, *hint, *text;
    } rows[] = {
        {{.file = "a.yaml", .line = 3, .column = 5},
         "optimizer.lr",
         "try less",
         "error E101: a.yaml:3:5: optimizer.lr: it is 2\n  hint: try less"},
        {{.file = "a.yaml", .line = 3, .column = 5},
         NULL,
         NULL,
         "error E101: a.yaml:3:5: it is 2"},
        {{.file = "a.yaml"}, "lr", NULL, "error E101: a.yaml: lr: it is 2"},
        {{.line = 3, .column = 5},
         NULL,
         "try less",
         "error E101: it is 2\n  hint: try less"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_diagnostics list = {0};
        char text[2048];
        et_diagnostics_add(&list, 101, &rows[i].at, rows[i].path, rows[i].hint,
                           "it is %d", 2);
        is_str(et_diagnostic_text(&list.v[0], text, sizeof text), rows[i].text,
               "a diagnostic as text, %d", (int)i);
        et_diagnostic_json(&list.v[0], text, sizeof text);
        json_t *json = json_loads(text, 0, NULL);
        json_t *want = json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:s}", "code", "E101",
                                 "file", rows[i].at.file ? rows[i].at.file : "", "line",
                                 rows[i].at.line, "column", rows[i].at.column, "path",
                                 rows[i].path ? rows[i].path : "", "message", "it is 2",
                                 "hint", rows[i].hint ? rows[i].hint : "");
        ok(json && json_equal(json, want), "and as JSON: %s", text);
        json_decref(json);
        json_decref(want);
    }
    struct et_diagnostics list = {0};
    const struct et_place at = {.file = "C:\\a \"b\".yaml", .line = 1, .column = 1};
    char text[2048];
    et_diagnostics_add(&list, 7, &at, "a\\b", "\"x\"", "%s", "\\ and \"");
    et_diagnostic_json(&list.v[0], text, sizeof text);
    json_t *json = json_loads(text, 0, NULL);
    is_str(json_string_value(json_object_get(json, "file")), at.file,
           "a name with quotes and backslashes is itself in JSON");
    is_str(json_string_value(json_object_get(json, "message")), "\\ and \"",
           "so is a message");
    json_decref(json);
    char longest[300];
    memset(longest, 'h', sizeof longest);
    longest[255] = '\0';
    et_diagnostics_add(&list, 8, &at, NULL, longest, "m");
    is_str(list.v[1].hint, longest, "a hint may fill its room");
}

/* What must not reach a terminal: the bounds of each range. */
static void
test_hostile(void)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                  {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069}};
    int wrong = 0;
    for (uint32_t u = 0; u < 0x3000; u++) {
        bool hostile = false;
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
            hostile |= u >= ranges[i].first && u <= ranges[i].last;
        wrong += eti_is_hostile(u) != hostile;
    }
    is_int(wrong, 0, "controls and marks of direction are hostile, and nothing else");
}

/* Every character there is, and those that are none. */
static void
test_characters(void)
{
    static const struct {
        const char *bytes;
        uint32_t want; /* 0: no character */
    } rows[] = {
        {"\x7f", 0x7f},
        {"\xc2\x80", 0x80},
        {"\xc1\xbf", 0},
        {"\xdf\xbf", 0x7ff},
        {"\xe0\xa0\x80", 0x800},
        {"\xe0\x9f\xbf", 0},
        {"\xed\x9f\xbf", 0xd7ff},
        {"\xed\xa0\x80", 0},
        {"\xed\xbf\xbf", 0},
        {"\xee\x80\x80", 0xe000},
        {"\xef\xbf\xbf", 0xffff},
        {"\xf0\x90\x80\x80", 0x10000},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x8f\xbf\xbf", 0x10ffff},
        {"\xf4\x90\x80\x80", 0},
        {"\x80", 0},
        {"\xc2", 0},
        {"\xc2z", 0},
        {"\xf8\x88\x80\x80\x80", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t u = 0;
        size_t n = strlen(rows[i].bytes);
        int length = eti_utf8_decode(rows[i].bytes, n, &u);
        ok(rows[i].want ? length == (int)n && u == rows[i].want : length == 0,
           "U+%04X %s", (unsigned)(rows[i].want ? rows[i].want : i),
           rows[i].want ? "is read" : "(or what it were) is no character");
    }
}

/* ---- contexts ---- */

static char said[256];

static void
keep(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    snprintf(said, sizeof said, "%s:%s", et_log_level_name(level), text);
}

static void
test_leaving(void)
{
    struct et_ctx *own;
    void *a, *b;
    if (et_ctx_new(&own) != ET_OK)
        bail("no context");
    et_ctx_set_checks(own, true);
    et_ctx_set_log(own, ET_LOG_ERROR, keep, NULL);
    if (et_alloc(own, 8, &a) != ET_OK || et_alloc(own, 8, &b) != ET_OK)
        bail("no memory");
    eti_ctx_set_devices(own, NULL, 1);
    eti_ctx_set_devices(own, NULL, 1);
    eti_ctx_set_devices(own, NULL, 1);
    eti_ctx_set_devices(own, NULL, -1);
    struct et_ctx *kept = own;
    et_ctx_free(&own);
    ok(own == kept && et_error_get(kept)->status == ET_EINVAL,
       "a context with memory left stays, and has an error");
    is_str(said, "error:et_ctx_free: 2 open devices and 2 blocks of memory are left",
           "which says what is left");
    is_str(et_error_get(kept)->message, said + strlen("error:"), "in the error, too");
    own = kept;
    eti_ctx_set_devices(own, NULL, -2);
    et_free(own, a);
    et_free(own, b);
    et_ctx_free(&own);
    ok(!own, "without them it goes");
}

static void
test_module_path(void)
{
    ok(et_ctx_set_module_path(cx, "/a:/b") == ET_OK, "folders of modules are set");
    is_str(eti_ctx_module_path(cx), "/a:/b", "and kept");
    ok(et_ctx_set_module_path(cx, NULL) == ET_OK && !eti_ctx_module_path(cx),
       "and taken back");
}

/* ---- arenas and threads ---- */

static void
test_pieces(void)
{
    struct eti_arena a;
    int wrong = 0;
    char *last = NULL;
    eti_arena_init(&a, cx, 1 << 10);
    for (size_t n = 1; n <= 40; n++) {
        char *p = eti_arena_alloc(&a, n);
        wrong += (uintptr_t)p % 16 != 0;
        wrong += last && p > last && p - last < 16;
        last = p;
    }
    is_int(wrong, 0, "pieces of any size lie at multiples of 16");
    eti_arena_release(&a);
    eti_arena_init(&a, cx, 64);
    struct et_alloc_stats before, after;
    (void)eti_arena_alloc(&a, 64);
    et_alloc_get_stats(cx, &before);
    (void)eti_arena_alloc(&a, 1);
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)(after.allocs - before.allocs), 1,
           "a full block has no room for one byte");
    eti_arena_release(&a);
}

static void *
note_signals(void *data)
{
    pthread_sigmask(SIG_SETMASK, NULL, data);
    return NULL;
}

static void
test_signals(void)
{
    sigset_t within, after;
    pthread_t thread;
    if (eti_thread_begin(&thread, note_signals, &within) != 0)
        bail("no thread");
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    ok(sigismember(&within, SIGTERM) && sigismember(&within, SIGINT),
       "a thread hears no signal");
    ok(!sigismember(&after, SIGTERM) && !sigismember(&after, SIGINT),
       "who begins it does");
}

/* OMP_NUM_THREADS says how many threads there are, where it is a number. */
static void
test_thread_count(void)
{
    char *old = getenv("OMP_NUM_THREADS") ? strdup(getenv("OMP_NUM_THREADS")) : NULL;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        bail("no processors");
    static const char *const other[] = {"0", "-2", "many", ""};
    setenv("OMP_NUM_THREADS", "7", 1);
    is_int(eti_thread_count(), 7, "as many threads as OMP_NUM_THREADS says");
    for (int i = 0; i < 4; i++) {
        setenv("OMP_NUM_THREADS", other[i], 1);
        is_int(eti_thread_count(), CPU_COUNT(&set), "of '%s' as many as processors",
               other[i]);
    }
    unsetenv("OMP_NUM_THREADS");
    is_int(eti_thread_count(), CPU_COUNT(&set), "without it, too");
    if (old)
        setenv("OMP_NUM_THREADS", old, 1);
    free(old);
}

/* ---- types and times ---- */

static void
test_dtypes(void)
{
    static const enum et_dtype floats[] = {ET_F32, ET_F64, ET_BF16, ET_F16};
    int wrong = 0;
    for (int d = ET_NONE; d < ET_DTYPE_COUNT; d++) {
        bool is_float = false;
        for (int i = 0; i < 4; i++)
            is_float |= floats[i] == (enum et_dtype)d;
        wrong += et_dtype_is_float((enum et_dtype)d) != is_float;
    }
    is_int(wrong, 0, "four dtypes are floats");
}

static void
test_times(void)
{
    struct et_time t;
    const struct et_run_length run = {
        .max_duration = ET_EPOCHS(3), .dataloader_len = 7, .scale_schedule_ratio = 1};
    if (et_time_over(cx, ET_BATCHES(7), 2, &t) != ET_OK)
        bail("no quotient");
    ok(t.value == 3 && t.unit == ET_TIME_BATCH, "half of 7 batches is 3");
    if (et_time_over(cx, (struct et_time){0.5, ET_TIME_DURATION}, 2, &t) != ET_OK)
        bail("no quotient");
    ok(t.value == 0.25, "half of 0.5dur is 0.25dur");
    if (et_time_resolve(cx, (struct et_time){0.25, ET_TIME_DURATION}, &run, &t) !=
        ET_OK)
        bail("not resolved");
    ok(t.value == 5 && t.unit == ET_TIME_BATCH,
       "a quarter of 3 epochs of 7 batches is 5 batches");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_forms();
    test_diagnostics();
    test_hostile();
    test_characters();
    test_leaving();
    test_module_path();
    test_pieces();
    test_signals();
    test_thread_count();
    test_dtypes();
    test_times();
    et_ctx_free(&cx);
    return done();
}
