/* SPDX-License-Identifier: Apache-2.0 */
/* Reading YAML into values: types, places, limits, attacks. */
#include "core/recipe/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "t/tap.h"

/* What RELIABILITY.md R32 grants an attack: 100 ms of a machine that reads an honest
 * text of as many keys as there may be in 5. On others, under a sanitizer and on a busy
 * one, both take longer: so it is that many times the honest text. (What grew with the
 * square of the attack would take some thousand times as long.) */
enum { MOST_TIMES = 20 };
static double honest_ms;

static struct et_ctx *cx;
static struct eti_arena arena;
static struct et_diagnostics errors;
static const struct eti_source source = {.origin = ETI_ORIGIN_RECIPE,
                                         .name = "recipe.yaml"};

static struct et_value *
read_with(const char *text, size_t n, const struct eti_yaml_limits *limits)
{
    struct et_value *v;
    eti_arena_reset(&arena);
    memset(&errors, 0, sizeof errors);
    if (eti_yaml_parse(&arena, text, n, &source, limits, &errors, &v) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return v;
}

static struct et_value *
read_text(const char *text)
{
    return read_with(text, strlen(text), &eti_yaml_limits);
}

/* A text without anything is a null, which is at its beginning. */
static void
test_nothing(void)
{
    static const char *const texts[] = {"", "\n\n", "# a comment\n", "---\n", "~"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct et_value *v = read_text(texts[i]);
        ok(v && v->type == ET_VALUE_NULL && v->line >= 1 && v->column >= 1,
           "'%s' is nothing, and has a place", texts[i]);
    }
}

/* ---- scalars ---- */

static void
test_scalars(void)
{
    static const struct {
        const char *text;
        enum et_value_type type;
    } rows[] = {
        {"", ET_VALUE_NULL},        {"~", ET_VALUE_NULL},
        {"null", ET_VALUE_NULL},    {"nULL", ET_VALUE_STRING},
        {"true", ET_VALUE_BOOL},    {"FALSE", ET_VALUE_BOOL},
        {"on", ET_VALUE_STRING},    {"yes", ET_VALUE_STRING},
        {"12", ET_VALUE_INT},       {"-12", ET_VALUE_INT},
        {"+12", ET_VALUE_INT},      {"0x1F", ET_VALUE_INT},
        {"0o17", ET_VALUE_INT},     {"017", ET_VALUE_INT},
        {"0x", ET_VALUE_STRING},    {"0o8", ET_VALUE_STRING},
        {"1_000", ET_VALUE_STRING}, {".95", ET_VALUE_FLOAT},
        {"1.", ET_VALUE_FLOAT},     {"1e-3", ET_VALUE_FLOAT},
        {"1e", ET_VALUE_STRING},    {".", ET_VALUE_STRING},
        {"-", ET_VALUE_STRING},     {".e1", ET_VALUE_STRING},
        {"-.inf", ET_VALUE_FLOAT},  {".nan", ET_VALUE_FLOAT},
        {"inf", ET_VALUE_STRING},   {"99999999999999999999", ET_VALUE_FLOAT},
        {"1h30m", ET_VALUE_STRING}, {"10ep", ET_VALUE_STRING},
        {"1.5.2", ET_VALUE_STRING}, {"1e3x", ET_VALUE_STRING},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct et_value v = {.text = rows[i].text};
        eti_value_resolve_plain(&v);
        is_int(v.type, rows[i].type, "\"%s\" has the type the core schema gives it",
               rows[i].text);
    }
    static const struct {
        const char *text;
        double number;
    } numbers[] = {
        {"12", 12},
        {"-12", -12},
        {"+12", 12},
        {"017", 17},
        {"0o17", 15},
        {"0o0", 0},
        {"0x1F", 31},
        {"0xaB", 171},
        {"-0", 0},
        {".95", .95},
        {"1.", 1},
        {"-1e-3", -1e-3},
        {"+.5E+2", 50},
        {".inf", INFINITY},
        {"+.INF", INFINITY},
        {"-.inf", -INFINITY},
        {"-.Inf", -INFINITY},
        {"9223372036854775807", 0x1p63},
        {"-9223372036854775808", -0x1p63},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct et_value n = {.text = numbers[i].text};
        eti_value_resolve_plain(&n);
        ok(eti_value_number(&n) == numbers[i].number, "\"%s\" is the number %g",
           numbers[i].text, numbers[i].number);
    }
    static const char *const truths[] = {"true",  "True",  "TRUE",
                                         "false", "False", "FALSE"};
    for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++) {
        struct et_value b = {.text = truths[i]};
        eti_value_resolve_plain(&b);
        ok(b.type == ET_VALUE_BOOL && b.b == (i < 3), "%s is %s", truths[i],
           i < 3 ? "true" : "false");
    }
    struct et_value *v =
        read_text("{a: '12', b: \"on\", c: !!str 12, d: !!float 1, e: 017}");
    is_int(eti_value_get(v, "a")->type, ET_VALUE_STRING, "a quoted number is text");
    is_int(eti_value_get(v, "c")->type, ET_VALUE_STRING, "!!str makes a number text");
    is_int(eti_value_get(v, "d")->type, ET_VALUE_FLOAT,
           "!!float makes an integer a float");
    is_int(eti_value_get(v, "e")->i, 17, "a leading zero is no octal");
}

/* ---- places ---- */

static void
test_places(void)
{
    const char *text = "a: &x {b: 1, c: [1.5, \"q\"]}\n"
                       "d: *x\n"
                       "e:\n"
                       "  <<: *x\n"
                       "  b: 2\n"
                       "f:\n"
                       "g: 'z'   # comment\n";
    struct et_value *v = read_text(text);
    is_int(errors.total, 0, "a text without faults reports none");
    struct et_value *q = eti_value_at(eti_value_get(eti_value_get(v, "a"), "c"), 1);
    is_int(q->line * 100 + q->column, 123, "a quoted scalar is where its quote is");
    is_str(eti_arena_text(&arena, text + q->start, q->end - q->start), "\"q\"",
           "its bytes include the quotes");
    struct et_value *a = eti_value_get(v, "a");
    is_str(eti_arena_text(&arena, text + a->start, a->end - a->start),
           "{b: 1, c: [1.5, \"q\"]}", "a flow mapping's bytes include its braces");
    struct et_value *e = eti_value_get(v, "e");
    is_int(e->n, 2, "<< adds the keys that are not there");
    is_int(eti_value_get(e, "b")->i, 2, "a key that is there wins over <<");
    is_int(eti_value_get(eti_value_get(v, "d"), "b")->i, 1, "an alias is a copy");
    struct et_value *d = eti_value_get(v, "d");
    is_int(d->line * 100 + d->column, 204, "and lies where the alias does");
    is_str(eti_arena_text(&arena, text + d->start, d->end - d->start), "*x",
           "its bytes are the alias");
    struct et_value *f = eti_value_get(v, "f");
    is_int(f->type, ET_VALUE_NULL, "nothing is null");
    is_int(f->line * 100 + f->column, 601, "and lies at its key");
    struct et_value *g = eti_value_get(v, "g");
    is_int(g->key_line * 100 + g->key_column, 701, "a key knows its own place");
    is_str(eti_arena_text(&arena, text + g->start, g->end - g->start), "'z'",
           "a comment is no part of a value");

    v = read_text("a: &x [1, two, {k: [3, 4], l: 5}]\nb: *x\n");
    const struct et_value *all = eti_value_get(v, "b"), *map = eti_value_at(all, 2);
    is_int(all ? all->n : -1, 3, "an alias of a list has as many items");
    is_int(map ? map->n : -1, 2, "a mapping in it as many keys");
    is_int(eti_value_get(map, "k") ? eti_value_get(map, "k")->n : -1, 2,
           "and a list in that");
    ok(map && eti_value_get(map, "l") && eti_value_get(map, "l")->i == 5 &&
           strcmp(eti_value_at(all, 1)->text, "two") == 0 &&
           eti_value_at(all, 0)->i == 1,
       "with all that is in them");

    v = read_text("x: {<<: [{a: 1}, {a: 2, b: 3}], c: 4}\n");
    is_int(eti_value_get(eti_value_get(v, "x"), "a")->i, 1,
           "of a list of mappings the earlier wins");
    is_int(read_text("")->type, ET_VALUE_NULL, "an empty text is null");
    is_int(read_text("\xef\xbb\xbf"
                     "a: b\n")
               ->type,
           ET_VALUE_MAP, "a byte order mark is skipped");
}

/* ---- refusals: RELIABILITY.md 9, row Recipe ---- */

static void
refuses(const char *text, size_t n, const char *want, const char *what)
{
    char got[2048] = "accepted";
    read_with(text, n, &eti_yaml_limits);
    if (errors.n)
        et_diagnostic_text(&errors.v[0], got, sizeof got);
    is_str(got, want, "%s is refused", what);
}

static void
test_refusals(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"a: [1, 2\nb: 3\n", "error E1202: recipe.yaml:1:4: list not closed"},
        {"x: 1\nb: {c: [1],\n", "error E1202: recipe.yaml:2:4: mapping not closed"},
        {"a: ]", "error E1202: recipe.yaml:1:4: "
                 "flow sequence with invalid extra closing bracket"},
        {"a: 'x", "error E1202: recipe.yaml:1:5: "
                  "single-quoted scalar without closing quote"},
        {"a: b: c\n", "error E1202: recipe.yaml:1:5: "
                      "invalid nested block mapping on the same line"},
        {"a: *q\n",
         "error E1202: recipe.yaml:1:4: no anchor before this alias is called q"},
        {"a: &x [*x]\n",
         "error E1202: recipe.yaml:1:8: alias to a node that contains it: x"},
        {"a: &x {b: {c: *x}}\n",
         "error E1202: recipe.yaml:1:15: alias to a node that contains it: x"},
        {"? [1]\n: 2\n", "error E1202: recipe.yaml:1:3: a key must be text"},
        {"a: 1\n---\nb: 1\n", "error E1202: recipe.yaml:2:1: a second document; "
                              "a recipe is one"},
        {"x: {<<: 3}", "error E1202: recipe.yaml:1:9: "
                       "<< takes a mapping or a list of mappings"},
        {"a: !!python/object 1\n",
         "error E1212: recipe.yaml:1:4: tag !!python/object not allowed"},
        {"a: !!int x\n", "error E1212: recipe.yaml:1:4: tag !!int not allowed"},
        {"a: !x {}\n", "error E1212: recipe.yaml:1:4: tag !x not allowed"},
        {"a: [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]\n",
         "error E1211: recipe.yaml:1:19: nesting deeper than 16"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        refuses(rows[i].text, strlen(rows[i].text), rows[i].want, rows[i].want);
    read_text(
        "# [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n"
        "a: 1\n");
    is_int(errors.n, 0, "brackets in a comment are no nesting");
    refuses("a: 1\0b", 6, "error E1202: recipe.yaml: byte 4 is NUL", "NUL");
    refuses("a: \xff", 4, "error E1202: recipe.yaml: byte 3 is not UTF-8",
            "a stray byte");
    refuses("a: \xc0\xaf", 5, "error E1202: recipe.yaml: byte 3 is not UTF-8",
            "an overlong form");
    refuses("a: \xed\xa0\x80", 6, "error E1202: recipe.yaml: byte 3 is not UTF-8",
            "a surrogate");
    refuses("a: \x1b[2J", 8, "error E1202: recipe.yaml: byte 3 is a control character",
            "an escape");
    refuses("a: \x7f", 4, "error E1202: recipe.yaml: byte 3 is a control character",
            "a deletion");
    read_text("a: [1,\t2]\r\nb: 1\r\n");
    is_int(errors.n, 0, "tabs and the line ends of others are none");
    char blank[1040];
    size_t blanks = (size_t)snprintf(blank, sizeof blank, "a: 1\n# %%\nb:%1001s", "");
    refuses(blank, blanks,
            "error E1211: recipe.yaml:3:1: "
            "more than 1000 blanks and line ends in a row",
            "a row of blanks");
    blanks = (size_t)snprintf(blank, sizeof blank, "a: [1,%600s 2,%400s 3]", "", "");
    read_with(blank, blanks, &eti_yaml_limits);
    is_int(errors.n, 0, "blanks that are in no one row are read");
    size_t large = 31 * ((size_t)1 << 20) / 10;
    char *text = calloc(1, large);
    refuses(text, large, "error E1202: recipe.yaml: 3.1 MiB exceeds 256 KiB",
            "a text of 3.1 MiB");
    free(text);

    read_text("a: 1\nb: {c: 1, c: 2}\na: 2\n");
    is_int(errors.n, 2, "all duplicate keys are reported");
    is_str(errors.v[0].message, "key 'c' already set at 2:5", "first the first");
    is_str(errors.v[1].message, "key 'a' already set at 1:1", "then the next");
    is_int(errors.v[1].line * 100 + errors.v[1].column, 301, "where the key is");
}

/* ---- limits ---- */

/* BEGIN, N times EACH, MIDDLE, N times LAST. */
static size_t
write_many(char *buf, const char *begin, const char *each, int n, const char *middle,
           const char *last)
{
    char *at = stpcpy(buf, begin);
    for (int i = 0; i < n; i++)
        at = stpcpy(at, each);
    at = stpcpy(at, middle);
    for (int i = 0; i < n; i++)
        at = stpcpy(at, last);
    return (size_t)(at - buf);
}

/* A list of 1,990 words, and another that has it four times: 9,960 values and keys. */
static const char *
copies(void)
{
    enum { WORDS = 1990 };
    static char text[2 * WORDS + 64];
    write_many(text, "a: [&a [", "x,", WORDS, "]]\nb: [*a,*a,*a,*a,", "");
    return text;
}

/* What is at the limit is read, and what is one beyond it is not (RELIABILITY.md
 * 7.5). */
static void
test_limits(void)
{
    enum { SIZE = 256 << 10 };
    const struct {
        const char *what, *begin, *each, *middle, *last;
        int most;
        const char *says;
    } row[] = {
        {"15 lists within each other, in a mapping,", "a: ", "[", "1", "]", 15,
         "nesting deeper than 16"},
        {"64 aliases", "a: &a 1\nb: [", "*a,", "]", "", 64, "more than 64 aliases"},
        {"10,000 values and keys", "a: [", "x,", "]", "", 9997,
         "the text has more than 10,000 nodes"},
        {"10,000 with aliases", copies(), "x,", "]", "", 40,
         "aliases expand to more than 10,000 nodes"},
        {"256 KiB", "a: 1\n", "#", "", "", SIZE - 5, "exceeds 256 KiB"},
        {"1000 blanks", "a:", " ", "1", "", 1000,
         "more than 1000 blanks and line ends in a row"},
        {"1000 line ends", "a: 1", "\n", "b: 1", "", 1000,
         "more than 1000 blanks and line ends in a row"},
        {"1000 of both", "a: 1\r\n\t #\n", " \n", "b: 1", "", 499,
         "more than 1000 blanks and line ends in a row"},
        {"a directive of 1000 bytes", "%", "A", "\n---\na: 1", "", 998,
         "directives (%) of more than 1000 bytes"},
        {"1000 line ends at the end", "a: 1", "\n", "", "", 1000,
         "more than 1000 blanks and line ends in a row"},
        {"one behind a comment", "# 1\n%", "A", "\n---\na: 1", "", 998,
         "directives (%) of more than 1000 bytes"},
        {"two of them", "%ONE 2\n%", "A", "\n---\na: 1", "", 991,
         "directives (%) of more than 1000 bytes"},
    };
    char *text = malloc(SIZE + 64);
    for (size_t i = 0; text && i < sizeof row / sizeof *row; i++)
        for (int more = 0; more < 2; more++) {
            size_t n = write_many(text, row[i].begin, row[i].each, row[i].most + more,
                                  row[i].middle, row[i].last);
            const struct et_value *v = read_with(text, n, &eti_yaml_limits);
            const char *got = errors.n ? errors.v[0].message : "";
            ok(more ? !v && strstr(got, row[i].says) : v && errors.n == 0,
               "%s are read%s", row[i].what, more ? ", and one more is not" : "");
            if (got[0] && !(more && strstr(got, row[i].says)))
                diag("%s", got);
        }
    free(text);
}

/* An alias may lie before what it leaves room for. */
static void
test_last_alias(void)
{
    char text[8192];
    for (int more = 0; more < 2; more++) {
        size_t n = (size_t)snprintf(text, sizeof text, "c: [");
        for (int i = 0; i < 38 + more; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "x,");
        n += (size_t)snprintf(text + n, sizeof text - n, "]\n%s]", copies());
        read_with(text, n, &eti_yaml_limits);
        ok((errors.n > 0) == more, "10,000 whose last are an alias's are read%s",
           more ? ", and one more is not" : "");
    }
}

/* Anchors whose names begin with each other's, before and behind, and one that is told
 * twice. */
static void
test_alias_names(void)
{
    struct et_value *v = read_text("a: &x 1\nb: &xy 2\nc: &xyz 3\n"
                                   "d: [*x, *xy, *xyz]\n"
                                   "e: &xy 5\nf: [*x, *xy, *xyz]\n");
    static const int64_t want[] = {1, 2, 3, 1, 5, 3};
    int64_t got[6];
    for (int i = 0; i < 6; i++)
        got[i] = eti_value_at(eti_value_get(v, i < 3 ? "d" : "f"), i % 3)->i;
    ok(errors.total == 0 && memcmp(got, want, sizeof want) == 0,
       "an alias is the last anchor before it that has its whole name");
}

/* ---- attacks ---- */

static double
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* The least of five: whatever else the machine is busy with adds to a time, and takes
 * nothing from it. */
static double
time_ms(const char *text, size_t n, const struct eti_yaml_limits *limits)
{
    double least = INFINITY;
    for (int i = 0; i < 5; i++) {
        double start = now_ms();
        read_with(text, n, limits);
        least = fmin(least, now_ms() - start);
    }
    return least;
}

static void
survives(const char *text, size_t n, const struct eti_yaml_limits *limits,
         const char *want, const char *what)
{
    double ms = time_ms(text, n, limits);
    is_str(errors.n ? errors.v[0].message : "accepted", want, "%s is seen", what);
    ok(ms <= MOST_TIMES * honest_ms, "%s takes %.1f ms, %.1f times an honest text",
       what, ms, ms / honest_ms);
}

/* LINES keys that begin with PREFIX. */
static size_t
fill_lines(char *buf, size_t size, const char *prefix, int lines)
{
    size_t n = 0;
    for (int i = 0; i < lines; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%d: 1\n", prefix, i);
    return n;
}

static void
test_attacks(void)
{
    enum { SIZE = 256 << 10 };
    char *text = malloc(SIZE + 1);
    size_t n =
        fill_lines(text, SIZE, "a_key_that_is_long_enough_to_fill_the_file_", 4990);
    honest_ms = time_ms(text, n, &eti_yaml_limits);
    is_int(errors.n, 0, "4,990 keys are a text like any other");

    n = (size_t)snprintf(text, SIZE, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 10; i++) {
        n += (size_t)snprintf(text + n, SIZE - n, "a%d: &a%d [", i, i);
        for (int j = 0; j < 6; j++)
            n += (size_t)snprintf(text + n, SIZE - n, "%s*a%d", j ? "," : "", i - 1);
        n += (size_t)snprintf(text + n, SIZE - n, "]\n");
    }
    survives(text, n, &eti_yaml_limits, "aliases expand to more than 10,000 nodes",
             "a billion laughs");

    n = (size_t)snprintf(text, SIZE, "a: &a 1\nb: [");
    for (int i = 0; i < 65; i++)
        n += (size_t)snprintf(text + n, SIZE - n, "*a,");
    survives(text, n, &eti_yaml_limits, "more than 64 aliases", "a list of aliases");

    memset(text, '[', SIZE);
    survives(text, SIZE, &eti_yaml_limits, "nesting deeper than 16", "256 KiB of [");
    memset(text, '{', SIZE);
    survives(text, SIZE, &eti_yaml_limits, "a key must be text", "256 KiB of {");
    for (size_t i = 0; i < SIZE; i += 2)
        memcpy(text + i, "- ", 2);
    survives(text, SIZE, &eti_yaml_limits, "nesting deeper than 16", "256 KiB of -");
    for (size_t i = 0; i < SIZE; i += 2)
        memcpy(text + i, "x\n", 2);
    survives(text, SIZE, &eti_yaml_limits, "accepted", "a scalar of 131,072 lines");
    memset(text, '"', SIZE);
    survives(text, SIZE, &eti_yaml_limits,
             "invalid trailing content after double-quoted scalar",
             "256 KiB of quotes");

    /* 5,000 pairs of 50 bytes: the most that the node budget lets through. */
    n = fill_lines(text, SIZE, "a_key_that_is_long_enough_to_fill_the_file_", 4990);
    n += (size_t)snprintf(text + n, SIZE - n,
                          "a_key_that_is_long_enough_to_fill_the_file_17: 1\n");
    survives(text, n, &eti_yaml_limits,
             "key 'a_key_that_is_long_enough_to_fill_the_file_17' already set at 18:1",
             "one duplicate among 4,990 keys");
    /* And with no budget: the check itself is not quadratic. */
    struct eti_yaml_limits wide = eti_yaml_limits;
    wide.nodes = 1 << 20;
    n = fill_lines(text, SIZE, "k", 24000);
    n += (size_t)snprintf(text + n, SIZE - n, "k0: 1\n");
    survives(text, n, &wide, "key 'k0' already set at 1:1", "one among 24,000");
    n = fill_lines(text, SIZE, "k", 24000);
    survives(text, n, &eti_yaml_limits, "the text has more than 10,000 nodes",
             "24,000 keys under the budget");
    free(text);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    eti_arena_init(&arena, cx, 64 << 10);
    test_nothing();
    test_scalars();
    test_places();
    test_refusals();
    test_limits();
    test_last_alias();
    test_alias_names();
    test_attacks();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    ok(stats.peak <= 64 << 20, "no attack takes more than 64 MiB (%zu)", stats.peak);
    eti_arena_release(&arena);
    et_ctx_free(&cx);
    return done();
}
