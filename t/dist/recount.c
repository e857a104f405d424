/* SPDX-License-Identifier: Apache-2.0 */
/* A model counts what records say. Here it is counted again, from all that was told and
 * by plain loops: bins of any width, what is best, last, left out, taken back by a
 * resume; how long a run trained and evaluated, and how far it is.
 *
 * The records are drawn: ETUDE_RECOUNT_SEED=7 draws others. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/hub/model.h"
#include "etude/rng.h"
#include "t/tap.h"

enum { SERIES = 5, RECORDS = 6000, LOOKS = 6 };

static const struct {
    const char *name;
    int better; /* as a model has it */
} series[SERIES] = {
    {"loss/train/total", 0},
    {"metrics/eval/Accuracy", 1},
    {"metrics/test/CrossEntropy", -1},
    {"metrics/train/Accuracy", 0},
    {"lr-SGD/group0", 0},
};

/* A value of a series as it was told. */
struct told {
    int series;
    double t, value;
    int64_t ba;
    struct et_log_span span; /* one value: of 1, or of none that is finite */
};

/* All that is known from the records, as they come. */
struct recount {
    struct told told[RECORDS * SERIES];
    int n;
    struct {
        double t;
        int64_t ba, ep, sp;
    } place[RECORDS]; /* of those with values */
    int n_places;
    int64_t width;
    struct {
        int64_t n, bad, last_ba, best_ba;
        double last, last_t, best;
    } all[SERIES]; /* whatever was taken back */
};

static struct recount known;
static struct et_rng rng;

static void
need(struct et_ctx *cx, et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* ---- the plain counts ---- */

static bool
is_better(int better, double value, double best)
{
    return isnan(best) || (better > 0 ? value > best : value < best);
}

static void
count_value(const struct told *v)
{
    int s = v->series, better = series[s].better;
    double best = better > 0 ? v->span.max : v->span.min;
    known.told[known.n++] = *v;
    known.all[s].n += v->span.n;
    known.all[s].bad += v->span.bad;
    known.all[s].last = v->value;
    known.all[s].last_ba = v->ba;
    known.all[s].last_t = v->t;
    if (better != 0 && v->span.n > 0 && is_better(better, best, known.all[s].best)) {
        known.all[s].best = best;
        known.all[s].best_ba = v->ba;
    }
}

/* What lies in bins that begin after BA is done again. */
static void
take_back(int64_t ba)
{
    int n = 0;
    for (int i = 0; i < known.n; i++)
        if (known.told[i].ba / known.width * known.width <= ba)
            known.told[n++] = known.told[i];
    known.n = n;
    n = 0;
    for (int i = 0; i < known.n_places; i++)
        if (known.place[i].ba / known.width * known.width <= ba)
            known.place[n++] = known.place[i];
    known.n_places = n;
}

/* The bins of series S, from all values that fall into them; those into which none does
 * have the number -1. */
static void
count_bins(int s, struct etd_bin bin[ETD_BINS])
{
    for (int i = 0; i < ETD_BINS; i++)
        bin[i] = (struct etd_bin){.bin = -1, .min = INFINITY, .max = -INFINITY};
    for (int i = 0; i < known.n; i++) {
        const struct told *v = &known.told[i];
        if (v->series != s)
            continue;
        struct etd_bin *b = &bin[v->ba / known.width];
        b->bin = (int32_t)(v->ba / known.width);
        b->n += (int32_t)v->span.n;
        b->last = v->value;
        if (v->span.n > 0) {
            b->min = fmin(b->min, v->span.min);
            b->max = fmax(b->max, v->span.max);
        }
    }
}

/* ---- the model's ---- */

static bool
is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool
is_same_bin(const struct etd_bin *a, const struct etd_bin *b)
{
    return a->bin == b->bin && a->n == b->n && is_same(a->last, b->last) &&
           (a->n == 0 || (a->min == b->min && a->max == b->max));
}

static int
wrong_bins(const struct etd_series *s, int number, int64_t *bins)
{
    static struct etd_bin own[ETD_BINS];
    int wrong = 0, at = 0;
    count_bins(number, own);
    for (int i = 0; i < ETD_BINS; i++) {
        if (own[i].bin < 0)
            continue;
        wrong += at >= s->n_bins || !is_same_bin(&s->bin[at], &own[i]);
        at++;
        ++*bins;
    }
    return wrong + abs(s->n_bins - at);
}

static void
look_at_series(const struct etd_model *m, int number, int64_t *bins)
{
    const struct etd_series *s = etd_model_series(m, series[number].name);
    if (!s)
        bail("there is no series %s", series[number].name);
    is_int(wrong_bins(s, number, bins), 0,
           "%s: each of %d bins has count, least, greatest and last of its values",
           s->name, s->n_bins);
    ok(s->n == known.all[number].n && s->bad == known.all[number].bad,
       "all its values are counted: %lld, and %lld that are not finite",
       (long long)s->n, (long long)s->bad);
    ok(is_same(s->last, known.all[number].last) &&
           s->last_ba == known.all[number].last_ba &&
           s->last_t == known.all[number].last_t,
       "the last is known, with its batch and time");
    is_int(s->better, series[number].better, "and what is better");
    if (series[number].better == 0)
        ok(isnan(s->best), "nothing is");
    else
        ok(s->best == known.all[number].best && s->best_ba == known.all[number].best_ba,
           "the best is %g, of batch %lld", s->best, (long long)s->best_ba);
}

static int
wrong_places(const struct etd_model *m)
{
    static struct etd_axis own[ETD_BINS];
    int wrong = 0;
    for (int i = 0; i < ETD_BINS; i++)
        own[i].t = NAN;
    for (int i = 0; i < known.n_places; i++) {
        struct etd_axis *a = &own[known.place[i].ba / known.width];
        if (isnan(a->t))
            *a = (struct etd_axis){known.place[i].t, known.place[i].ep,
                                   known.place[i].sp};
    }
    for (int i = 0; i < ETD_BINS; i++)
        wrong += !is_same(m->axis[i].t, own[i].t) ||
                 (!isnan(own[i].t) &&
                  (m->axis[i].ep != own[i].ep || m->axis[i].sp != own[i].sp));
    return wrong;
}

static void
look(const struct etd_model *m)
{
    int64_t bins = 0;
    is_int(m->width, known.width, "after batch %lld a bin has so many",
           (long long)m->ba);
    for (int i = 0; i < SERIES; i++)
        look_at_series(m, i, &bins);
    is_int(m->n_bins, bins, "all bins are counted");
    is_int(wrong_places(m), 0, "each has time, epoch and sample of its first record");
}

/* ---- drawn records ---- */

/* Values come in stretches that are finite, or not. */
static double
draw_value(int64_t ba)
{
    static const double others[] = {NAN, INFINITY, -INFINITY};
    if (ba / 16 % 3 == 1 || et_rng_below(&rng, 8) == 0)
        return others[et_rng_below(&rng, 3)];
    return ((double)et_rng_below(&rng, 4000) - 2000) / 8;
}

static struct told
draw(int s, const struct et_record *r, bool several)
{
    struct told v = {.series = s, .t = r->t, .ba = r->ba, .value = draw_value(r->ba)};
    bool is_finite = isfinite(v.value);
    v.span = (struct et_log_span){is_finite, !is_finite, v.value, v.value, v.value};
    if (several) {
        int64_t n = (int64_t)et_rng_below(&rng, 5);
        double low = ((double)et_rng_below(&rng, 4000) - 2000) / 8;
        v.span = (struct et_log_span){n, r->of - n, low,
                                      low + (double)et_rng_below(&rng, 100), 0};
    }
    return v;
}

/* A record of values of some series, in any order. */
static void
tell_values(struct etd_model *m, struct et_record *r)
{
    struct et_log_entry entry[SERIES];
    struct et_log_span span[SERIES];
    bool several = et_rng_below(&rng, 4) == 0;
    int first = (int)et_rng_below(&rng, SERIES),
        n = 1 + (int)et_rng_below(&rng, SERIES);
    r->kind = et_rng_below(&rng, 2) ? ET_RECORD_BATCH : ET_RECORD_EVAL;
    r->entry = entry;
    r->n = n;
    r->of = several ? 6 : 0;
    r->span = several ? span : NULL;
    while (r->ba / known.width >= ETD_BINS)
        known.width *= 2;
    known.place[known.n_places].t = r->t;
    known.place[known.n_places].ba = r->ba;
    known.place[known.n_places].ep = r->ep;
    known.place[known.n_places++].sp = r->sp;
    for (int i = 0; i < n; i++) {
        struct told v = draw((first + i) % SERIES, r, several);
        snprintf(entry[i].name, sizeof entry->name, "%s", series[v.series].name);
        entry[i].value = v.value;
        span[i] = v.span;
        count_value(&v);
    }
    need(m->cx, etd_model_apply(m, r));
}

static void
test_counts(struct et_ctx *cx)
{
    const char *given = getenv("ETUDE_RECOUNT_SEED");
    uint32_t seed = given ? (uint32_t)strtoul(given, NULL, 10) : 1;
    struct etd_model *m;
    int64_t ba = 0;
    diag("ETUDE_RECOUNT_SEED=%u", (unsigned)seed);
    rng = et_rng_at(seed, ET_RNG_SHUFFLE, 0);
    known.width = 1;
    for (int i = 0; i < SERIES; i++)
        known.all[i].best = known.all[i].last = NAN;
    need(cx, etd_model_new(cx, &m));
    for (int i = 1; i <= RECORDS; i++) {
        ba += (int64_t)et_rng_below(&rng, 4);
        struct et_record r = {
            .seq = i, .t = 1e9 + i, .ba = ba, .ep = ba / 100, .sp = 64 * ba + i};
        if (i % 701 == 0) {
            ba -= (int64_t)et_rng_below(&rng, 300);
            r.kind = ET_RECORD_RESUME;
            r.ba = ba;
            take_back(ba);
            need(cx, etd_model_apply(m, &r));
        } else {
            tell_values(m, &r);
        }
        if (i % (RECORDS / LOOKS) == 0)
            look(m);
    }
    is_int(m->incarnation, 1 + RECORDS / 701, "each start is counted");
    ok(m->width >= 4, "bins were joined more than once");
    etd_model_free(&m);
}

/* ---- how far ---- */

struct moment {
    double t;
    const char *state; /* that begins; NULL: a batch ends */
    double train, eval;
    int evaluated;
};

/* Batches that end at 1, 3, 6 s and so on, with what goes on between them. */
static const struct moment moments[] = {
    {0, "running", 0, 0, 0},        {1, NULL, 0, 0, 0},          {3, NULL, 2, 0, 0},
    {3, "evaluating", 2, 0, 0},     {10, "running", 2, 7, 1},    {12, NULL, 4, 7, 1},
    {12, "checkpointing", 4, 7, 1}, {15, "running", 4, 7, 1},    {16, NULL, 5, 7, 1},
    {16, "paused", 5, 7, 1},        {30, "running", 5, 7, 1},    {34, NULL, 9, 7, 1},
    {34, "evaluating", 9, 7, 1},    {39, "running", 9, 12, 2},   {40, NULL, 10, 12, 2},
    {41, "evaluating", 10, 12, 2},  {44, "stopping", 10, 12, 2},
};

static void
tell_moment(struct etd_model *m, const struct moment *at, int64_t seq, int64_t ba,
            const struct et_log_entry *entry, int n)
{
    const struct et_record r = {
        .kind = at->state ? ET_RECORD_RUN : ET_RECORD_BATCH,
        .seq = seq,
        .t = 1e9 + at->t,
        .ba = ba,
        .ep = ba / 3,
        .sp = 10 * ba,
        .text = at->state,
        .entry = entry,
        .n = n,
    };
    need(m->cx, etd_model_apply(m, &r));
}

static void
test_times(struct et_ctx *cx)
{
    struct etd_model *m;
    int64_t ba = 0;
    need(cx, etd_model_new(cx, &m));
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        const struct moment *at = &moments[i];
        ba += at->state == NULL;
        tell_moment(m, at, (int64_t)i + 1, ba, NULL, 0);
        ok(m->train_s == at->train && m->eval_s == at->eval &&
               m->n_evaluated == at->evaluated,
           "at %g s, %s: trained for %g s, and for %g s evaluated %d times", at->t,
           at->state ? at->state : "a batch's end", m->train_s, m->eval_s,
           (int)m->n_evaluated);
    }
    etd_model_free(&m);
}

/* Of a run of 4 batches in each unit of its length, of which it has done the first two;
 * and of several lengths that which is looked at first. */
static void
test_done(struct et_ctx *cx)
{
    static const struct {
        struct et_log_entry length[2];
        int n;
        double done;
    } row[] = {
        {{{"run/batches", 8}}, 1, 7.0 / 8},
        {{{"run/epochs", 4}}, 1, 2.0 / 4},
        {{{"run/samples", 700}}, 1, 70.0 / 700},
        {{{"run/seconds", 40}}, 1, 10.0 / 40},
        {{{"run/epochs", 4}, {"run/batches", 14}}, 2, 7.0 / 14},
        {{{"run/seconds", 4}}, 1, 1},
        {{{"run/epoch_batches", 4}}, 1, NAN},
    };
    bool settled;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_model *m;
        int64_t ba = 1;
        need(cx, etd_model_new(cx, &m));
        for (size_t k = 0; k < sizeof moments / sizeof *moments; k++) {
            ba += moments[k].state == NULL;
            tell_moment(m, &moments[k], (int64_t)k + 1, ba, k ? NULL : row[i].length,
                        k ? 0 : row[i].n);
        }
        ok(is_same(etd_model_done(m), row[i].done), "of %g %s %g is done",
           row[i].length[0].value, row[i].length[0].name + strlen("run/"),
           etd_model_done(m));
        if (strcmp(row[i].length[0].name, "run/seconds") == 0)
            is_near(etd_model_left(m, &settled), fmax(0, row[i].length[0].value - 10),
                    0, "and of its seconds the others are left");
        etd_model_free(&m);
    }
}

/* Two evaluators, one after the other, and again. */
static void
test_progress(struct et_ctx *cx)
{
    static const struct {
        const char *state;
        struct et_log_entry entry[2];
        int n;
        struct etd_eval wanted[2];
    } row[] = {
        {"running", {{"", 0}}, 0, {{.batch = 0}}},
        {"evaluating",
         {{"eval/eval/batch", 3}, {"eval/eval/batches", 10}},
         2,
         {{"eval", 3, 10, true}}},
        {"evaluating", {{"eval/eval/batch", 7}}, 1, {{"eval", 7, 10, true}}},
        {"evaluating",
         {{"eval/a/b/batches", 5}, {"eval/a/b/batch", 1}},
         2,
         {{"eval", 7, 10, true}, {"a/b", 1, 5, true}}},
        {"running", {{"", 0}}, 0, {{"eval", 7, 10, false}, {"a/b", 1, 5, false}}},
        {"evaluating",
         {{"eval/a/b/batch", 2}},
         1,
         {{"eval", 7, 10, false}, {"a/b", 2, 5, true}}},
    };
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct moment at = {.t = (double)i, .state = row[i].state};
        bool right = true;
        tell_moment(m, &at, (int64_t)i + 1, 1, row[i].entry, row[i].n);
        for (int k = 0; k < 2; k++) {
            const struct etd_eval *is = &m->eval[k], *must = &row[i].wanted[k];
            right = right && strcmp(is->label, must->label) == 0 &&
                    is->batch == must->batch && is->batches == must->batches &&
                    is->running == must->running;
        }
        ok(right, "%s, record %d: each evaluator is where it says, or has ended",
           row[i].state, (int)i + 1);
    }
    etd_model_free(&m);
}

/* ---- what a model keeps of records ---- */

static void
apply(struct et_ctx *cx, struct etd_model *m, const struct et_record *r)
{
    need(cx, etd_model_apply(m, r));
}

/* Records of ranks outside the limits are ignored; ranks within keep what their records
 * said. */
static void
test_ranks(struct et_ctx *cx)
{
    struct etd_model *m;
    const struct et_log_entry own[] = {{"own_ms", 7}, {"wait_ms", 3}};
    const struct et_log_entry other = {"wait_ms", 4};
    struct et_record r = {.kind = ET_RECORD_HEALTH, .t = 5, .entry = own, .n = 2};
    need(cx, etd_model_new(cx, &m));
    r.rank = -1;
    apply(cx, m, &r);
    r.rank = ETD_RANKS;
    apply(cx, m, &r);
    is_int(m->n_ranks, 0, "records of ranks -1 and ETD_RANKS make no rank");
    r.rank = 1;
    r.ba = 11;
    apply(cx, m, &r);
    r.rank = 9;
    apply(cx, m, &r);
    ok(m->n_ranks == 10 && etd_part_get(&m->rank[1], "own_ms") == 7 &&
           etd_part_get(&m->rank[1], "wait_ms") == 3 && m->rank[1].ba == 11 &&
           m->rank[1].t == 5 && strcmp(m->rank[1].name, "1") == 0 &&
           !m->rank[2].name[0],
       "each of ten ranks has the numbers of its own record");
    r.entry = &other;
    r.n = 1;
    r.rank = 2;
    apply(cx, m, &r);
    is_near(m->rank[2].trail[ETD_TRAIL - 1], 0, 0,
            "a rank that does not report own_ms has none");
    etd_model_free(&m);
}

/* Where a run is, its length, and which of its records are events. */
static void
test_records(struct et_ctx *cx)
{
    static const struct et_log_entry numbers[] = {
        {"run/batches", 50}, {"eval/eval/batch", 2}, {"other/number", 3}};
    struct etd_model *m;
    struct et_record r = {.kind = ET_RECORD_RUN,
                          .seq = 4,
                          .t = 100,
                          .ep = 2,
                          .ba = 30,
                          .sp = 500,
                          .entry = numbers,
                          .n = 3};
    need(cx, etd_model_new(cx, &m));
    apply(cx, m, &r);
    ok(m->n_events == 0 && !m->state[0],
       "a run record without a text is no event and no state");
    ok(m->n_length == 1 && etd_model_length(m, "run/batches") == 50,
       "only numbers of the run count as its length");
    r = (struct et_record){.kind = ET_RECORD_COMMAND,
                           .seq = 5,
                           .t = 101,
                           .ep = 3,
                           .ba = 31,
                           .sp = 501,
                           .level = ET_LOG_ERROR,
                           .text = "pause"};
    apply(cx, m, &r);
    ok(m->seq == 5 && m->t == 101 && m->from == 100 && m->ep == 3 && m->ba == 31 &&
           m->sp == 501,
       "a run is at the place of its last record");
    r.rank = 1;
    r.ba = r.ep = r.sp = 77;
    r.t = 102;
    r.kind = ET_RECORD_LOG;
    apply(cx, m, &r);
    r.rank = 0;
    apply(cx, m, &r);
    r.kind = ET_RECORD_ANNOTATION;
    apply(cx, m, &r);
    ok(m->t == 102 && m->ep == 3 && m->ba == 31 && m->sp == 501,
       "log lines, annotations and records of other ranks do not move the run");
    is_int(m->n_errors, 2,
           "log lines of level error count as errors, other records do not");
    const struct etd_event *e = etd_model_event(m, 0), *line = etd_model_event(m, 1);
    ok(m->n_events == 4 && e->kind == ET_RECORD_COMMAND && e->level == ET_LOG_INFO &&
           e->ba == 31 && e->t == 101 && e->rank == 0 && e->seq == 5 &&
           line->kind == ET_RECORD_LOG && line->level == ET_LOG_ERROR &&
           line->rank == 1 && line->ba == 77,
       "each event has its record's kind, level and place");
    static const struct et_log_entry values[] = {{"loss/a", 1}, {"lr-SGD", 2}};
    r = (struct et_record){.kind = ET_RECORD_METRIC, .entry = values, .n = 2};
    apply(cx, m, &r);
    const struct etd_series *like = etd_model_series_like(m, "lr-");
    ok(like && strcmp(like->name, "lr-SGD") == 0 && !etd_model_series_like(m, "m/"),
       "a series is found by the beginning of its name, or not at all");
    etd_model_free(&m);
}

int
main(void)
{
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_counts(cx);
    test_times(cx);
    test_done(cx);
    test_progress(cx);
    test_ranks(cx);
    test_records(cx);
    et_ctx_free(&cx);
    return done();
}
