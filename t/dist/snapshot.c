/* SPDX-License-Identifier: Apache-2.0 */
/* What a snapshot of a model has room for (RELIABILITY.md 5.9): any number; a text or
 * list that fills its place is loaded, and a snapshot with one that is longer is
 * refused. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dist/hub/model.h"
#include "t/data/fixture.h"
#include "t/tap.h"

/* One of everything that has a text or is in a list. */
static struct etd_model *
new_full(struct et_ctx *cx)
{
    static const struct {
        enum et_record_kind kind;
        const char *text;
        struct et_log_entry entry;
    } row[] = {
        {ET_RECORD_RUN, "running", {"run/batches", 500}},
        {ET_RECORD_BATCH, NULL, {"loss", 1}},
        {ET_RECORD_HEALTH, NULL, {"own_ms", 1}},
        {ET_RECORD_ALGORITHM, "sam", {"rho", 1}},
        {ET_RECORD_LOG, "a line", {"", 0}},
        {ET_RECORD_RESUME, NULL, {"", 0}},
    };
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        need(cx,
             etd_model_apply(m, &(struct et_record){.kind = row[i].kind,
                                                    .seq = (int64_t)i + 1,
                                                    .t = 1e9,
                                                    .ba = 300,
                                                    .text = row[i].text,
                                                    .entry = &row[i].entry,
                                                    .n = row[i].entry.name[0] != 0}));
    m->eval[0] = (struct etd_eval){.label = "eval"};
    m->n_evals = 1;
    return m;
}

/* Does OTHER take the N BYTES, and is a model with the same then? */
static bool
loads(struct et_ctx *cx, struct etd_model *other, const char *bytes, size_t n)
{
    char *again;
    size_t n_again;
    if (etd_model_load(other, bytes, n) != ET_OK)
        return false;
    need(cx, etd_model_save(other, &again, &n_again));
    bool same = n_again == n && memcmp(again, bytes, n) == 0;
    et_free(cx, again);
    return same;
}

/* ---- texts ---- */

/* Is a model whose TEXT of SIZE bytes is as long as it may be saved and loaded, and not
 * loaded where that is a byte longer? */
static bool
is_bounded(struct et_ctx *cx, struct etd_model *m, char *text, size_t size)
{
    struct etd_model *other;
    char *bytes;
    size_t n;
    memset(text, 'x', size - 1);
    text[size - 1] = '\0';
    need(cx, etd_model_new(cx, &other));
    need(cx, etd_model_save(m, &bytes, &n));
    bool taken = loads(cx, other, bytes, n);
    char *longer = malloc(n + 1), *at = memmem(bytes, n, text, size - 1);
    if (!longer || !at)
        bail("a text of a model is not in its snapshot");
    size_t before = (size_t)(at - bytes);
    memcpy(longer, bytes, before);
    longer[before - 1]++; /* its length */
    longer[before] = 'x';
    memcpy(longer + before + 1, at, n - before);
    bool refused = etd_model_load(other, longer, n + 1) == ET_EFORMAT;
    et_error_clear(cx);
    memcpy(text, "short", sizeof "short");
    free(longer);
    et_free(cx, bytes);
    etd_model_free(&other);
    return taken && refused;
}

static void
test_long_texts(struct et_ctx *cx)
{
    struct etd_model *m = new_full(cx);
    struct {
        const char *what;
        char *text;
        size_t size;
    } row[] = {
        {"the state of a run", m->state, sizeof m->state},
        {"the name of a number of its length", m->length->name, sizeof m->length->name},
        {"the name of a series", m->series->name, sizeof m->series->name},
        {"the text of an event", m->event[m->first_event].text, sizeof m->event->text},
        {"the text of a mark", m->mark[m->first_mark].text, sizeof m->mark->text},
        {"the name of a rank", m->rank->name, sizeof m->rank->name},
        {"the name of a number of it", m->rank->number->name,
         sizeof m->rank->number->name},
        {"the name of an algorithm", m->algorithm->name, sizeof m->algorithm->name},
        {"the name of an evaluation", m->eval->label, sizeof m->eval->label},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        ok(is_bounded(cx, m, row[i].text, row[i].size),
           "in a snapshot %s has room for %zu bytes, and for no more", row[i].what,
           row[i].size - 1);
    etd_model_free(&m);
}

/* ---- lists ---- */

/* The snapshot of M, in which *COUNT equal elements are a list as long as it may be,
 * with one more of them: what is different with one less shows where the list is. */
static char *
add_element(struct et_ctx *cx, const struct etd_model *m, int *count, size_t *n)
{
    enum { HEAD = 3 }; /* 0xdc, and a number of two bytes */
    char *full, *less;
    size_t n_full, n_less, at = 0;
    int most = *count;
    need(cx, etd_model_save(m, &full, &n_full));
    *count = most - 1;
    need(cx, etd_model_save(m, &less, &n_less));
    *count = most;
    while (full[at] == less[at])
        at++;
    size_t size = n_full - n_less - (most == 16 ? HEAD - 1 : 0);
    while ((unsigned char)full[at] != 0xdc || full[at + 1] != (char)(most >> 8) ||
           full[at + 2] != (char)most)
        at--;
    char *more = malloc(n_full + size);
    if (!more)
        bail("no memory");
    memcpy(more, full, at + HEAD);
    more[at + 1] = (char)((most + 1) >> 8);
    more[at + 2] = (char)(most + 1);
    memcpy(more + at + HEAD, full + at + HEAD, size);
    memcpy(more + at + HEAD + size, full + at + HEAD, n_full - at - HEAD);
    *n = n_full + size;
    et_free(cx, full);
    et_free(cx, less);
    return more;
}

/* Makes MOST elements of SIZE bytes like the first, and *COUNT that. */
static void
repeat(void *list, size_t size, int *count, int most)
{
    for (int i = 1; i < most; i++)
        memcpy((char *)list + (size_t)i * size, list, size);
    *count = most;
}

static struct etd_part *
new_parts(struct et_ctx *cx, struct etd_part **list, int most)
{
    void *block;
    need(cx, et_alloc(cx, (size_t)most * sizeof **list, &block));
    memcpy(block, *list, sizeof **list);
    et_free(cx, *list);
    return *list = block;
}

static void
test_long_lists(struct et_ctx *cx)
{
    struct etd_model *m = new_full(cx), *other;
    m->first_tick = m->first_event = m->first_mark = 0;
    new_parts(cx, &m->rank, ETD_RANKS);
    new_parts(cx, &m->algorithm, ETD_ALGORITHMS);
    struct {
        const char *what;
        void *list;
        size_t size;
        int *count, most;
    } row[] = {
        {"numbers of a run's length", m->length, sizeof *m->length, &m->n_length,
         ETD_NUMBERS},
        {"batches whose times are kept", m->tick, sizeof *m->tick, &m->n_ticks,
         ETD_TICKS},
        {"events", m->event, sizeof *m->event, &m->n_events, ETD_EVENTS},
        {"marks", m->mark, sizeof *m->mark, &m->n_marks, ETD_MARKS},
        {"numbers of a rank", m->rank->number, sizeof *m->rank->number, &m->rank->n,
         ETD_NUMBERS},
        {"ranks", m->rank, sizeof *m->rank, &m->n_ranks, ETD_RANKS},
        {"algorithms", m->algorithm, sizeof *m->algorithm, &m->n_algorithms,
         ETD_ALGORITHMS},
        {"evaluations", m->eval, sizeof *m->eval, &m->n_evals, ETD_EVALS},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char *bytes;
        size_t n;
        int count = *row[i].count;
        need(cx, etd_model_new(cx, &other));
        repeat(row[i].list, row[i].size, row[i].count, row[i].most);
        need(cx, etd_model_save(m, &bytes, &n));
        bool taken = loads(cx, other, bytes, n);
        et_free(cx, bytes);
        bytes = add_element(cx, m, row[i].count, &n);
        bool refused = etd_model_load(other, bytes, n) == ET_EFORMAT;
        et_error_clear(cx);
        ok(taken && refused, "a snapshot may have %d %s, and not one more", row[i].most,
           row[i].what);
        free(bytes);
        etd_model_free(&other);
        *row[i].count = count;
    }
    etd_model_free(&m);
}

/* ---- numbers ---- */

/* One behind and one at each length that a number may have in a snapshot. */
static void
test_numbers(struct et_ctx *cx)
{
    static const int64_t value[] = {INT64_MIN, INT32_MIN - 1LL,
                                    INT32_MIN, -32769,
                                    -32768,    -129,
                                    -128,      -33,
                                    -32,       -1,
                                    0,         127,
                                    128,       255,
                                    256,       65535,
                                    65536,     INT32_MAX,
                                    1LL << 31, UINT32_MAX,
                                    1LL << 32, INT64_MAX};
    enum { N = sizeof value / sizeof *value };
    struct etd_model *m = new_full(cx), *other;
    need(cx, etd_model_new(cx, &other));
    for (int i = 0; i < N; i++) {
        char *bytes;
        size_t n;
        m->ep = value[i];
        m->ba = value[(i + 1) % N];
        m->sp = value[(i + 2) % N];
        m->train_s = (double)value[i];
        m->eval_s = -0.0;
        need(cx, etd_model_save(m, &bytes, &n));
        ok(etd_model_load(other, bytes, n) == ET_OK && other->ep == m->ep &&
               other->ba == m->ba && other->sp == m->sp &&
               other->train_s == m->train_s && signbit(other->eval_s),
           "%lld is what it was after a snapshot", (long long)value[i]);
        et_error_clear(cx);
        et_free(cx, bytes);
    }
    etd_model_free(&m);
    etd_model_free(&other);
}

/* Every number of a model but those that say where others are: how long a list is,
 * which bin, what kind of record. */
/* clang-format off */
#define NUMBERS(X)                                                                     \
    X(seq) X(t) X(from) X(ep) X(ba) X(sp) X(incarnation) X(state_since)                \
    X(length[0].value) X(epoch_t) X(epoch_ba) X(train_s) X(eval_s) X(n_evaluated)      \
    X(tick[0].t) X(tick[0].ba) X(tick[0].sp) X(finish[0]) X(finish[1]) X(finish[2])    \
    X(finish[3]) X(left_out) X(axis[0].t) X(axis[0].ep) X(axis[0].sp) X(series[0].n)   \
    X(series[0].bad) X(series[0].last) X(series[0].best) X(series[0].last_ba)          \
    X(series[0].best_ba) X(series[0].last_t) X(series[0].bin[0].n)                     \
    X(series[0].bin[0].min) X(series[0].bin[0].max) X(series[0].bin[0].last)           \
    X(event[0].t) X(event[0].seq) X(event[0].ba) X(event[0].rank) X(n_warnings)        \
    X(n_errors) X(mark[0].ba) X(mark[0].t) X(rank[0].t) X(rank[0].ba)                  \
    X(rank[0].number[0].value) X(rank[0].trail[0]) X(algorithm[0].t)                   \
    X(algorithm[0].ba) X(algorithm[0].number[0].value) X(eval[0].batch)                \
    X(eval[0].batches)
/* clang-format on */

static void
test_places(struct et_ctx *cx)
{
    struct etd_model *m = new_full(cx), *other;
    char *bytes;
    size_t n;
    int next = 100;
    need(cx, etd_model_new(cx, &other));
    m->n_ticks = 1;
#define GIVE(number) m->number = next++;
    NUMBERS(GIVE)
#undef GIVE
    m->eval[0].running = true;
    need(cx, etd_model_save(m, &bytes, &n));
    need(cx, etd_model_load(other, bytes, n));
#define COMPARE(number) ok(other->number == m->number, "a snapshot has " #number);
    NUMBERS(COMPARE)
#undef COMPARE
    ok(other->eval[0].running, "a snapshot has whether an evaluation runs");
    ok(other->width == m->width && other->n_series == m->n_series &&
           other->n_events == m->n_events && other->n_marks == m->n_marks &&
           other->n_ranks == m->n_ranks && other->n_algorithms == m->n_algorithms &&
           other->n_evals == m->n_evals && other->n_ticks == m->n_ticks &&
           other->n_length == m->n_length,
       "a snapshot has as many of everything");
    et_free(cx, bytes);
    etd_model_free(&m);
    etd_model_free(&other);
}

/* Bins of a series must ascend: a bin with the number of the one before is refused. */
static void
test_bins(struct et_ctx *cx)
{
    for (int step = 0; step < 2; step++) {
        struct etd_model *m = new_full(cx), *other;
        struct etd_bin *bin = m->series[0].bin;
        char *bytes;
        size_t n;
        need(cx, etd_model_new(cx, &other));
        bin[1] = bin[0];
        bin[1].bin += step;
        m->series[0].n_bins = 2;
        need(cx, etd_model_save(m, &bytes, &n));
        is_int(etd_model_load(other, bytes, n), step ? ET_OK : ET_EFORMAT,
               "a second bin %s",
               step ? "that follows the first is loaded"
                    : "with the first one's number is refused");
        et_error_clear(cx);
        et_free(cx, bytes);
        etd_model_free(&m);
        etd_model_free(&other);
    }
}

/* Is M, as it is now, taken from its snapshot? */
static bool
is_loaded(struct et_ctx *cx, const struct etd_model *m)
{
    struct etd_model *other;
    char *bytes;
    size_t n;
    need(cx, etd_model_new(cx, &other));
    need(cx, etd_model_save(m, &bytes, &n));
    const et_status status = etd_model_load(other, bytes, n);
    if (status != ET_OK && status != ET_EFORMAT)
        bail("a snapshot fails with %d", status);
    et_error_clear(cx);
    et_free(cx, bytes);
    etd_model_free(&other);
    return status == ET_OK;
}

/* Numbers that have a least or a greatest value: there they are loaded, one beyond it
 * they are refused. */
static void
test_bounds(struct et_ctx *cx)
{
    struct etd_model *m = new_full(cx);
    m->n_ticks = 1;
    m->eval[0].running = true;
#define BOUND(number, at, beyond)                                                      \
    do {                                                                               \
        const __typeof__(m->number) was = m->number;                                   \
        m->number = (at);                                                              \
        const bool taken = is_loaded(cx, m);                                           \
        m->number = (beyond);                                                          \
        ok(taken && !is_loaded(cx, m),                                                 \
           "a snapshot has " #number " as " #at ", and not as " #beyond);              \
        m->number = was;                                                               \
    } while (0)
    BOUND(seq, 0, -1);
    BOUND(incarnation, 1, 0);
    BOUND(n_evaluated, 0, -1);
    BOUND(left_out, 0, -1);
    BOUND(width, 1, 0);
    BOUND(width, 1LL << 40, (1LL << 40) + 1);
    BOUND(series[0].n, 0, -1);
    BOUND(series[0].bad, 0, -1);
    BOUND(series[0].bin[0].bin, 0, -1);
    BOUND(series[0].bin[0].bin, ETD_BINS - 1, ETD_BINS);
    BOUND(series[0].bin[0].n, 0, -1);
    BOUND(event[0].seq, 0, -1);
    BOUND(event[0].kind, (enum et_record_kind)(ET_RECORD_COUNT - 1),
          (enum et_record_kind)ET_RECORD_COUNT);
    BOUND(event[0].level, ET_LOG_DEBUG, (enum et_log_level)(ET_LOG_DEBUG - 1));
    BOUND(event[0].level, ET_LOG_ERROR, (enum et_log_level)(ET_LOG_ERROR + 1));
    BOUND(mark[0].kind, (enum et_record_kind)(ET_RECORD_COUNT - 1),
          (enum et_record_kind)ET_RECORD_COUNT);
    BOUND(n_warnings, 0, -1);
    BOUND(n_errors, 0, -1);
#undef BOUND
    m->series[1] = m->series[0];
    m->series[1].bin = NULL;
    m->series[1].n_bins = m->series[1].room = 0;
    m->n_series = 2;
    ok(!is_loaded(cx, m), "a name of two series is refused");
    m->series[1].name[0]++;
    ok(is_loaded(cx, m), "two names are not");
    m->n_series = 1;
    etd_model_free(&m);
}

/* Bytes that no model has. */
static void
test_damage(struct et_ctx *cx)
{
    struct etd_model *m = new_full(cx), *other;
    char *bytes, *all, *longest, *at;
    size_t n, n_all;
    need(cx, etd_model_new(cx, &other));
    m->sp = INT64_MAX;
    need(cx, etd_model_save(m, &bytes, &n));
    char *damaged = malloc(n + 1);
    if (!damaged)
        bail("no memory");
#define IS_REFUSED(change, size, what)                                                 \
    do {                                                                               \
        memcpy(damaged, bytes, n);                                                     \
        damaged[n] = 0;                                                                \
        change;                                                                        \
        is_int(etd_model_load(other, damaged, size), ET_EFORMAT, "%s is refused",      \
               what);                                                                  \
        et_error_clear(cx);                                                            \
    } while (0)
    ok(loads(cx, other, bytes, n), "a snapshot is loaded");
    need(cx, etd_model_save(other, &all, &n_all));
    IS_REFUSED((void)0, n + 1, "one with a byte behind it");
    IS_REFUSED((void)0, n - 1, "one without its last byte");
    IS_REFUSED(damaged[1] = 2, n, "one of another format");
    at = memmem(bytes, n, "\x7f\xff\xff\xff\xff\xff\xff\xff", 8);
    if (!at)
        bail("a number of the model is not in its snapshot");
    IS_REFUSED(damaged[at - bytes] = (char)0x80, n, "a number past all of ours");
    at = memmem(bytes, n, "running", 7);
    IS_REFUSED(damaged[at - bytes + 3] = '\0', n, "a text with an end inside");
    char *same;
    size_t n_same;
    need(cx, etd_model_save(other, &same, &n_same));
    ok(n_same == n_all && memcmp(same, all, n_all) == 0,
       "after all these a model is what it was");
#undef IS_REFUSED
    /* (16 MiB.) */
    longest = calloc(1, (16 << 20) + 1);
    if (!longest)
        bail("no memory");
    for (int more = 0; more < 2; more++) {
        ok(etd_model_load(other, longest, (16 << 20) + (size_t)more) == ET_EFORMAT &&
               !!strstr(et_error_get(cx)->message, "exceeds") == more,
           "%s: %s", more ? "and a byte more is too long" : "16 MiB are looked at",
           et_error_get(cx)->message);
        et_error_clear(cx);
    }
    free(longest);
    free(damaged);
    et_free(cx, same);
    et_free(cx, all);
    et_free(cx, bytes);
    etd_model_free(&m);
    etd_model_free(&other);
}

/* Whatever the bits of a NaN are, equal models have equal bytes. */
static void
test_nan(struct et_ctx *cx)
{
    struct etd_model *m = new_full(cx);
    const uint64_t bits[] = {0x7ff8000000000000, 0xfff8000000000000,
                             0x7ff8000000000005};
    char *bytes[3];
    size_t n[3];
    for (int i = 0; i < 3; i++) {
        memcpy(&m->train_s, &bits[i], sizeof m->train_s);
        need(cx, etd_model_save(m, &bytes[i], &n[i]));
    }
    for (int i = 1; i < 3; i++)
        ok(n[i] == n[0] && memcmp(bytes[i], bytes[0], n[0]) == 0,
           "a NaN of other bits is the same in a snapshot");
    for (int i = 0; i < 3; i++)
        et_free(cx, bytes[i]);
    etd_model_free(&m);
}

/* Records for a model that was loaded: more of all its lists. */
static void
test_going_on(struct et_ctx *cx)
{
    static const struct {
        enum et_record_kind kind;
        int rank;
        int64_t ba;
        const char *text;
        struct et_log_entry entry;
    } row[] = {
        {ET_RECORD_BATCH, 0, 301, NULL, {"loss", 0.5}},
        {ET_RECORD_BATCH, 0, 700, NULL, {"loss", 0.25}},
        {ET_RECORD_BATCH, 0, 701, NULL, {"other", 7}},
        {ET_RECORD_HEALTH, 3, 702, NULL, {"own_ms", 4}},
        {ET_RECORD_ALGORITHM, 0, 703, "swa", {"start", 0.75}},
        {ET_RECORD_LOG, 0, 704, "another line", {"", 0}},
    };
    struct etd_model *m = new_full(cx), *other;
    char *bytes, *again;
    size_t n, n_again;
    need(cx, etd_model_new(cx, &other));
    need(cx, etd_model_save(m, &bytes, &n));
    need(cx, etd_model_load(other, bytes, n));
    et_free(cx, bytes);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct et_record r = {.kind = row[i].kind,
                                    .seq = m->seq + 1,
                                    .t = 1e9 + (double)i,
                                    .ba = row[i].ba,
                                    .rank = row[i].rank,
                                    .text = row[i].text,
                                    .entry = &row[i].entry,
                                    .n = row[i].entry.name[0] != 0};
        need(cx, etd_model_apply(m, &r));
        need(cx, etd_model_apply(other, &r));
    }
    need(cx, etd_model_save(m, &bytes, &n));
    need(cx, etd_model_save(other, &again, &n_again));
    ok(n == n_again && memcmp(bytes, again, n) == 0,
       "a model that was loaded goes on as the one that was saved");
    et_free(cx, bytes);
    et_free(cx, again);
    etd_model_free(&m);
    etd_model_free(&other);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_bins(cx);
    test_bounds(cx);
    test_damage(cx);
    test_nan(cx);
    test_going_on(cx);
    test_numbers(cx);
    test_places(cx);
    test_long_texts(cx);
    test_long_lists(cx);
    et_ctx_free(&cx);
    return done();
}
