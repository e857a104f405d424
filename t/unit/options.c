/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: defaults, one option at a time, what is refused and how, text and
 * back. */
#include "etude/option.h"

#include <stdio.h>
#include <string.h>

#include "etude/ctx.h"
#include "t/tap.h"

static const char *const devices[] = {"auto", "cpu", "gpu", NULL};
static const char *const words[] = {"auto", NULL};

struct inner {
    bool off;
    int64_t keep;
};
static const struct et_option inner_table[] = {
    {
        .name = "keep",
        .type = ET_OPT_INT,
        .offset = offsetof(struct inner, keep),
        .def = "3",
        .min = -1,
        .max = 1e9,
    },
    {0},
};

struct outer {
    int64_t count, workers, bytes;
    double lr, seconds;
    bool flag;
    char *text, *out;
    int device;
    struct et_time time;
    struct et_times times;
    struct et_floats betas;
    struct et_texts tags, some_tags;
    struct et_floats some_betas;
    struct et_times some_times;
    const struct et_value *node;
    struct inner inner;
    struct et_parts parts;
    int64_t some_bytes;
    double some_seconds;
    struct et_time some_time;
};

#define ROW(field, kind)                                                               \
    .name = #field, .type = ET_OPT_##kind, .offset = offsetof(struct outer, field)
static const struct et_option table[] = {
    {ROW(count, INT), .def = "4", .min = 1},
    {ROW(workers, INT), .def = "auto", .min = 0, .max = 64, .choices = words},
    {ROW(bytes, SIZE), .def = "64Ki"},
    {ROW(lr, FLOAT), .def = "1e-3", .flags = ET_OPT_MIN_OPEN},
    {ROW(seconds, SECONDS), .def = "5m"},
    {ROW(flag, BOOL), .def = "true", .also = "switch !off ~maybe"},
    {ROW(text, TEXT), .flags = ET_OPT_OPTIONAL},
    {ROW(out, TEXT), .def = "ep{epoch}", .flags = ET_OPT_OUTPUT},
    {ROW(device, ENUM), .def = "auto", .choices = devices},
    {ROW(time, TIME), .def = "1ep", .units = 1u << ET_TIME_EPOCH | 1u << ET_TIME_TOKEN},
    {ROW(times, TIMES), .def = "[1ep, 20ba]"},
    {ROW(betas, FLOATS), .def = "[0.9, 0.95]", .max = 1, .flags = ET_OPT_MAX_OPEN},
    {ROW(tags, TEXTS)},
    {ROW(some_tags, TEXTS), .def = "[a]", .choices = words},
    {ROW(some_betas, FLOATS), .def = "[1]", .choices = words},
    {ROW(some_times, TIMES), .def = "[1ep]", .choices = words},
    {ROW(node, NODE), .def = "[{conv: 3}]"},
    {ROW(inner, TABLE), .sub = inner_table, .sub_size = sizeof(struct inner),
     .flags = ET_OPT_FALSE},
    {ROW(some_bytes, SIZE), .def = "4K", .min = 1000, .max = 5000},
    {ROW(some_seconds, SECONDS), .def = "30s", .min = 1, .max = 60,
     .flags = ET_OPT_MIN_OPEN | ET_OPT_MAX_OPEN},
    {ROW(some_time, TIME), .def = "2ep", .min = 1, .max = 3},
    {ROW(parts, PARTS), .kind = ET_KIND_TRANSFORM, .flags = ET_OPT_BY_NAME},
    {0},
};

static struct et_ctx *cx;
static struct outer o;

/* The text of option NAME now, in a buffer that the next call overwrites. */
static const char *
text_of(const char *name)
{
    static char buf[256];
    for (const struct et_option *row = table; row->name; row++) {
        char *text;
        if (strcmp(row->name, name) != 0 || et_option_text(cx, row, &o, &text) != ET_OK)
            continue;
        snprintf(buf, sizeof buf, "%s", text);
        et_free(cx, text);
        return buf;
    }
    return NULL;
}

static void
accepts(const char *name, const char *text, const char *want)
{
    et_status status = et_options_set(cx, table, &o, name, text);
    if (status != ET_OK)
        diag("%s", et_error_get(cx)->message);
    et_error_clear(cx);
    is_str(status == ET_OK ? text_of(name) : "refused", want, "%s: %s reads as %s",
           name, text, want);
}

static void
refuses(const char *name, const char *text, const char *want)
{
    char before[256];
    snprintf(before, sizeof before, "%s", text_of(name) ? text_of(name) : "");
    et_status status = et_options_set(cx, table, &o, name, text);
    is_str(status == ET_EINVAL ? et_error_get(cx)->message : "accepted", want,
           "%s: %s is refused", name, text);
    et_error_clear(cx);
    if (text_of(name))
        is_str(text_of(name), before, "%s keeps its value", name);
}

static void
test_defaults(void)
{
    is_int(et_options_init(cx, table, &o), ET_OK, "defaults are filled in");
    is_int(o.count, 4, "an integer has its default");
    is_int(o.workers, ET_INT_UNSET, "a word that means unset leaves the number unset");
    is_int(o.bytes, 65536, "64Ki is 65,536 bytes");
    is_near(o.seconds, 300, 0, "5m is 300 seconds");
    ok(o.text == NULL && o.tags.n == 0, "what has no default is unset");
    is_int(o.times.n, 2, "a list of times has its default");
    is_int(o.inner.keep, 3, "a table in the table has its defaults");
    is_str(text_of("node"), "[{conv: 3}]", "a tree has its default");
}

static void
test_values(void)
{
    /* Two dots are a way out only where they are all of a name. */
    static const char *const inside[] = {
        "x",   "./x", "a/b.csv", "a//b",  "a/./b", "a/",
        "..x", "x..", "a/..b",   "a/b..", "a/...",
    };
    accepts("count", "0x10", "16");
    accepts("workers", "2", "2");
    accepts("workers", "auto", "auto");
    accepts("bytes", "3K", "3000");
    accepts("bytes", "2Gi", "2Gi");
    accepts("bytes", "1.5K", "1500");
    accepts("bytes", "1.5Ki", "1536");
    accepts("bytes", "1M", "1000000");
    accepts("bytes", "1Mi", "1Mi");
    accepts("bytes", "1T", "976562500Ki");
    accepts("bytes", "1Ti", "1024Gi");
    accepts("lr", ".95", "0.95");
    accepts("lr", "2", "2");
    accepts("lr", "1e-3", "0.001");
    accepts("lr", "0.30000000000000004", "0.30000000000000004");
    accepts("seconds", "1h30m", "90m");
    accepts("seconds", "2d", "2d");
    accepts("seconds", "0s", "0s");
    accepts("flag", "false", "false");
    accepts("text", "on", "on");
    accepts("text", "\"12\"", "\"12\"");
    accepts("text", "'a: b # \"c\"'", "\"a: b # \\\"c\\\"\"");
    accepts("text", "7", "\"7\"");
    accepts("text", "null", "null");
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        accepts("out", inside[i], inside[i]);
    accepts("device", "gpu", "gpu");
    accepts("time", "3", "3ep");
    accepts("time", "1e6tok", "1000000tok");
    accepts("times", "[1ep, 0.5dur]", "[1ep, 0.5dur]");
    accepts("times", "30ba", "[30ba]");
    accepts("betas", "[.9, 1e-1]", "[0.9, 0.1]");
    accepts("tags", "[a, 2, 'x y']", "[a, \"2\", \"x y\"]");
    accepts("tags", "[]", "[]");
    accepts("node", "{a: [1, two], b: }", "{a: [1, two], b: null}");
    accepts("parts", "[horizontal_flip, normalize: {mean: [.5], std: [.25]}]",
            "[{name: horizontal_flip, p: 0.5}, {name: normalize, mean: [0.5], std: "
            "[0.25]}]");
    ok(o.parts.n == 2 && !o.parts.v[1].value, "parts set by text keep no place");
    accepts("inner", "{keep: -1}", "{keep: -1}");
    accepts("inner", "false", "false");
    accepts("inner", "{}", "{keep: 3}");
    accepts("count", "null", "16"); /* as it was: an empty value changes nothing */
}

/* An option may be set by its other name, and its opposite by the opposite's other
 * name. A name that only resembles one of them is refused. */
static void
test_other_names(void)
{
    static const struct {
        const char *name, *text;
        et_status status;
        bool flag;
    } rows[] = {
        {"switch", "false", ET_OK, false},   {"switch", "true", ET_OK, true},
        {"off", "true", ET_OK, false},       {"off", "false", ET_OK, true},
        {"maybe", "false", ET_EINVAL, true}, {"of", "true", ET_EINVAL, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        is_int(et_options_set(cx, table, &o, rows[i].name, rows[i].text),
               rows[i].status, "%s: %s", rows[i].name, rows[i].text);
        is_int(o.flag, rows[i].flag, "and the flag is %s", rows[i].flag ? "on" : "off");
        et_error_clear(cx);
    }
}

/* Each bound is met, and passed, from both sides. */
static void
test_ranges(void)
{
    static const struct {
        const char *name, *text;
        bool fits;
    } rows[] = {
        {"some_bytes", "999", false},
        {"some_bytes", "1000", true},
        {"some_bytes", "1K", true},
        {"some_bytes", "5000", true},
        {"some_bytes", "5001", false},
        {"some_bytes", "5Ki", false},
        {"some_seconds", "1s", false},
        {"some_seconds", "1.5s", true},
        {"some_seconds", "59s", true},
        {"some_seconds", "1m", false},
        {"some_seconds", "2m", false},
        {"some_time", "0.5ep", false},
        {"some_time", "1ep", true},
        {"some_time", "3ba", true},
        {"some_time", "3.5ep", false},
        {"some_time", "4ba", false},
        {"betas", "[1]", false},
        {"betas", "[0.999]", true},
        {"lr", "0", false},
        {"lr", "1e-300", true},
        {"workers", "64", true},
        {"workers", "65", false},
        {"workers", "0", true},
        {"workers", "-1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const et_status status =
            et_options_set(cx, table, &o, rows[i].name, rows[i].text);
        is_int(status, rows[i].fits ? ET_OK : ET_EINVAL, "%s: %s %s", rows[i].name,
               rows[i].text, rows[i].fits ? "is in range" : "is out of it");
        et_error_clear(cx);
    }
    char text[100], want[200];
    for (int n = 80; n <= 81; n++) {
        memset(text, 'x', (size_t)n);
        text[n] = '\0';
        snprintf(want, sizeof want, "count: expected integer >= 1, got \"%.80s%s\"",
                 text, n > 80 ? "..." : "");
        (void)!et_options_set(cx, table, &o, "count", text);
        is_str(et_error_get(cx)->message, want, "%d letters are told%s", n,
               n > 80 ? " in part" : "");
        et_error_clear(cx);
    }
}

/* A generator that tests may repeat: xorshift64*. */
static uint64_t
draw(void)
{
    static uint64_t state = 11;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Sets option NAME to TEXT, and to what it is printed as then: false where one of both
 * is refused. */
static bool
twice(const char *name, const char *text)
{
    char printed[256];
    if (et_options_set(cx, table, &o, name, text) != ET_OK)
        return false;
    snprintf(printed, sizeof printed, "%s", text_of(name));
    return et_options_set(cx, table, &o, name, printed) == ET_OK &&
           strcmp(text_of(name), printed) == 0;
}

/* Whatever a value is, it is printed as a text that reads as that value. */
/* The word that a list's row names stands for none. */
static void
test_words_of_lists(void)
{
    static const char *const lists[] = {"some_tags", "some_betas", "some_times"};
    for (int i = 0; i < 3; i++) {
        const char *set = i == 0 ? "[b, c]" : i == 1 ? "[0.5, 2]" : "[2ep, 3ba]";
        is_int(et_options_set(cx, table, &o, lists[i], set), ET_OK, "%s may be a list",
               lists[i]);
        is_int(et_options_set(cx, table, &o, lists[i], "auto"), ET_OK,
               "%s may be the word that its row names", lists[i]);
        const int n[] = {o.some_tags.n, o.some_betas.n, o.some_times.n};
        is_int(n[i], 0, "and is empty then");
        is_int(et_options_set(cx, table, &o, lists[i], "never"),
               i == 0 ? ET_OK : ET_EINVAL, "another word is taken as a list would be");
        et_error_clear(cx);
    }
}

static void
test_printed(void)
{
    enum { VALUES = 2000 };
    int wrong = 0;
    char text[64];
    for (int i = 0; i < VALUES; i++) {
        const double x = (double)(draw() >> 11) * 0x1p-53 *
                         (i % 3 == 0   ? 1e-9
                          : i % 3 == 1 ? 1
                                       : 1e12);
        snprintf(text, sizeof text, "%.17g", x > 0 ? x : 1);
        wrong += !twice("lr", text) || o.lr != (x > 0 ? x : 1);
    }
    is_int(wrong, 0, "%d numbers are printed with all their digits", VALUES);
    wrong = 0;
    for (int i = 0; i < VALUES; i++) {
        const int64_t bytes = (int64_t)(draw() % 5000) << 10 * (i % 4);
        snprintf(text, sizeof text, "%lld", (long long)bytes);
        wrong += !twice("bytes", text) || o.bytes != bytes;
    }
    is_int(wrong, 0, "%d sizes are printed in a unit that they are multiples of",
           VALUES);
    wrong = 0;
    for (int i = 0; i < VALUES; i++) {
        static const double units[] = {1, 60, 3600, 86400, 0.5};
        const double seconds = (double)(draw() % 200) * units[i % 5];
        snprintf(text, sizeof text, "%.1fs", seconds);
        wrong += !twice("seconds", text) || o.seconds != seconds;
    }
    is_int(wrong, 0, "%d durations likewise", VALUES);
    wrong = 0;
    for (int c = 1; c < 0x80; c++) {
        const char want[] = {'a', (char)c, 'b', '\0'};
        snprintf(text, sizeof text, "\"a\\x%02xb\"", c);
        bool same = twice("text", text) && strcmp(o.text, want) == 0;
        for (const char *at = text_of("text"); *at; at++)
            same &= *at >= 0x20 && *at < 0x7f;
        wrong += !same;
    }
    is_int(wrong, 0, "texts are printed without the controls that they have");
}

static void
test_refusals(void)
{
    refuses("count", "0", "count: expected integer >= 1, got 0");
    refuses("count", "1.5", "count: expected integer >= 1, got 1.5");
    refuses("count", "99999999999999999999",
            "count: expected integer >= 1, got 99999999999999999999");
    refuses("workers", "many",
            "workers: expected integer >= 0 and <= 64, or auto, got \"many\"");
    refuses("lr", "fast", "lr: expected number > 0, got \"fast\"");
    refuses("lr", "0", "lr: expected number > 0, got 0");
    refuses("lr", ".nan", "lr: expected number > 0, got .nan");
    refuses("lr", "[1]", "lr: expected number > 0, got a list of 1 item");
    refuses("bytes", "3Q", "bytes: expected size such as 64K or 1Gi, got \"3Q\"");
    refuses("bytes", "1.5", "bytes: expected size such as 64K or 1Gi, got 1.5");
    refuses("bytes", "1.0005K",
            "bytes: expected size such as 64K or 1Gi, got \"1.0005K\"");
    refuses("bytes", "1Kib", "bytes: expected size such as 64K or 1Gi, got \"1Kib\"");
    refuses("bytes", "9e18", "bytes: expected size such as 64K or 1Gi, got 9e18");
    refuses("bytes", "-1", "bytes: expected size such as 64K or 1Gi, got -1");
    refuses("seconds", "5", "seconds: expected duration such as 25s or 5m, got 5");
    refuses("seconds", "30m1h",
            "seconds: expected duration such as 25s or 5m, got \"30m1h\"");
    refuses("flag", "yes", "flag: expected true or false, got \"yes\"");
    refuses("device", "gpus", "device: expected one of auto, cpu, gpu, got \"gpus\"");
    refuses("time", "5ba", "time: expected time in ep or tok, got \"5ba\"");
    refuses("betas", "[.9, 1]", "betas.1: expected number >= 0 and < 1, got 1");
    refuses("times", "[1ep, x]",
            "times.1: expected time such as 10ep or 500ba, got \"x\"");
    refuses("out", "../x", "out: output '../x' leaves the run directory");
    refuses("out", "a/../../x", "out: output 'a/../../x' leaves the run directory");
    refuses("out", "/etc/x", "out: output '/etc/x' leaves the run directory");
    refuses("out", "..", "out: output '..' leaves the run directory");
    refuses("out", "a/..", "out: output 'a/..' leaves the run directory");
    refuses("out", "a//..", "out: output 'a//..' leaves the run directory");
    refuses("out", "a/..//b", "out: output 'a/..//b' leaves the run directory");
    refuses("out", "./..", "out: output './..' leaves the run directory");
    refuses("out", "//x", "out: output '//x' leaves the run directory");
    refuses("inner", "{keeep: 1}",
            "unknown key 'inner.keeep' (did you mean 'inner.keep'?)");
    refuses("parts", "[normalise]",
            "parts.0: unknown transform 'normalise' (did you mean 'normalize'?)");
    refuses("parts", "[normalize]", "parts.0: key 'mean' is missing");
    refuses("inner", "5", "inner: expected mapping, got 5");
    refuses("cuont", "1", "unknown key 'cuont' (did you mean 'count'?)");
    refuses("zzzzz", "1", "unknown key 'zzzzz'");
    refuses("lr", "[1", "list not closed");
    refuses("text", "a\x1b[2J", "byte 1 is a control character");
}

static void
test_nearest(void)
{
    static const char *const names[] = {"lr", "momentum", "weight_decay", "betas"};
    is_str(et_nearest("momentun", names, 4), "momentum",
           "one wrong letter is forgiven");
    is_str(et_nearest("lrr", names, 4), "lr", "one letter too many is forgiven");
    is_str(et_nearest("rl", names, 4), "lr", "a swap counts once");
    is_str(et_nearest("wieght_deacy", names, 4), "weight_decay",
           "two swaps are forgiven");
    is_str(et_nearest("decay", names, 4), "weight_decay",
           "a word of one name alone is that name");
    static const char *const two[] = {"num_classes", "class_names", "num_samples"};
    is_str(et_nearest("classes", two, 3), "num_classes", "as is its last word");
    ok(et_nearest("num", two, 3) == NULL, "a word of two names is none of them");
    ok(et_nearest("x", names, 4) == NULL, "what is like nothing gets no suggestion");
    ok(et_nearest("nesterov", names, 4) == NULL,
       "what is far from all gets none either");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_defaults();
    test_values();
    test_ranges();
    test_other_names();
    test_words_of_lists();
    test_printed();
    test_refusals();
    test_nearest();
    et_options_release(table, &o);
    et_options_release(table, &o);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "release frees everything, and may be called twice");

    /* Each allocation in turn fails: the value stays, nothing leaks. */
    bool held = true;
    et_status status = ET_ENOMEM;
    for (uint64_t k = 1; status == ET_ENOMEM; k++) {
        et_alloc_fail_at(cx, k);
        memset(&o, 0, sizeof o);
        status = et_options_init(cx, table, &o);
        if (status == ET_OK)
            status = et_options_set(cx, table, &o, "tags", "[a, b]");
        et_alloc_fail_at(cx, 0);
        held &= status == ET_OK || (status == ET_ENOMEM && o.tags.n == 0);
        et_options_release(table, &o);
        et_alloc_get_stats(cx, &stats);
        held &= stats.live == 0;
        et_error_clear(cx);
    }
    ok(held && status == ET_OK, "memory may end at every allocation");
    et_ctx_free(&cx);
    return done();
}
