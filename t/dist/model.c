/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a run is the same whenever one began to look: from the first record,
 * from a snapshot, or from the log that grows. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "dist/hub/follow.h"
#include "dist/hub/step.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static const unsigned char id[ETI_EVENTS_ID] = "0123456789abcde";

/* ---- a run ---- */

enum { EPOCH = 100, EPOCHS = 80 };

struct story {
    struct et_log_entry entry[4];
    char text[64];
};

/* Record I of a run with one number that peaks once, evaluations, ranks and a text now
 * and then. False past its end. */
static bool
tell(struct story *s, int64_t i, struct et_record *r)
{
    int64_t ba = i / 3 + 1, part = i % 3;
    *r = (struct et_record){
        .kind = ET_RECORD_BATCH,
        .seq = i + 1,
        .t = 1e9 + (double)i / 3,
        .ep = ba / EPOCH,
        .ba = ba,
        .sp = 64 * ba,
        .entry = s->entry,
    };
    if (ba > EPOCH * EPOCHS)
        return false;
    if (part == 0) {
        snprintf(s->entry[0].name, sizeof s->entry->name, "loss/train/total");
        s->entry[0].value = ba == 4321 ? 99 : ba % 997 == 5 ? NAN : 1.0 / (double)ba;
        snprintf(s->entry[1].name, sizeof s->entry->name, "lr-SGD/group0");
        s->entry[1].value = 0.1;
        r->n = 2;
    } else if (part == 1 && ba % EPOCH == 0) {
        r->kind = ET_RECORD_EVAL;
        r->text = "eval";
        snprintf(s->entry[0].name, sizeof s->entry->name, "metrics/eval/Accuracy");
        s->entry[0].value = ba == 40 * EPOCH ? 0.9 : 0.5;
        r->n = 1;
    } else if (part == 1) {
        r->kind = ET_RECORD_HEALTH;
        r->rank = (int)(ba % 4);
        snprintf(s->entry[0].name, sizeof s->entry->name, "own_ms");
        s->entry[0].value = (double)(ba % 7);
        r->n = 1;
    } else if (ba % 25 == 0) {
        r->kind = ET_RECORD_LOG;
        r->level = ba % 100 == 0 ? ET_LOG_WARN : ET_LOG_INFO;
        snprintf(s->text, sizeof s->text, "line %lld", (long long)ba);
        r->text = s->text;
    } else {
        r->kind = ET_RECORD_RUN;
        r->text = "running";
        snprintf(s->entry[0].name, sizeof s->entry->name, "run/batches");
        s->entry[0].value = EPOCH * EPOCHS;
        r->n = 1;
    }
    return true;
}

/* Records FROM to TO, the latter left out; TO 0: to the end. */
static void
apply(struct et_ctx *cx, struct etd_model *m, int64_t from, int64_t to)
{
    struct story s;
    struct et_record r;
    for (int64_t i = from; (to == 0 || i < to) && tell(&s, i, &r); i++)
        need(cx, etd_model_apply(m, &r));
}

static bool
same(struct et_ctx *cx, const struct etd_model *a, const struct etd_model *b)
{
    unsigned char x[16], y[16];
    need(cx, etd_model_digest(a, x));
    need(cx, etd_model_digest(b, y));
    return memcmp(x, y, sizeof x) == 0;
}

/* ---- what it knows ---- */

static void
test_series(struct etd_model *m)
{
    const struct etd_series *loss = etd_model_series(m, "loss/train/total");
    const struct etd_series *acc = etd_model_series(m, "metrics/eval/Accuracy");
    const struct etd_bin *peak = NULL;
    bool ordered = true;
    int64_t n = 0;
    for (int i = 0; loss && i < loss->n_bins; i++) {
        ordered = ordered && (i == 0 || loss->bin[i].bin > loss->bin[i - 1].bin);
        n += loss->bin[i].n;
        if (loss->bin[i].max == 99)
            peak = &loss->bin[i];
    }
    ok(loss && loss->n_bins <= ETD_BINS && m->width == 4 && ordered,
       "a series has at most %d bins, however long the run", ETD_BINS);
    ok(peak && peak->bin == 4321 / 4, "no peak is lost in them");
    is_int(n, 8000 - loss->bad, "each finite value is in one");
    is_int(loss->bad, 9, "and others are counted");
    ok(acc && acc->best == 0.9 && acc->best_ba == 4000 && acc->last == 0.5,
       "the best evaluation is known, and the last");
    ok(!etd_model_series(m, "loss") && etd_model_series_like(m, "lr-") != NULL,
       "series are found by name, or by its beginning");
    ok(m->axis[10].t > 1e9 && m->axis[10].sp == 64 * 40,
       "a bin's place on the other axes is that of its first record");
    const struct etd_bin *some = loss ? &loss->bin[100] : NULL;
    ok(some && some->bin == 100 && some->n == 4 && some->max == 1.0 / 400 &&
           some->min == 1.0 / 403 && some->last == 1.0 / 403,
       "it has the greatest, the least and the last value of its four batches");
    ok(loss && loss->n == 7991 && loss->last_ba == 8000 &&
           loss->last_t == 1e9 + 23997 / 3.0 && acc && acc->last_ba == 8000,
       "when a series was last is told by batch and by time");
}

/* Which value of a series is best, if any is: the first of equals. */
static void
test_best(struct et_ctx *cx)
{
    static const struct {
        const char *name;
        double value[4], best;
        int64_t ba;
    } row[] = {
        {"metrics/eval/CrossEntropy", {2, 1, 1, 3}, 1, 2},
        {"metrics/eval/Accuracy", {0.2, 0.7, 0.7, 0.1}, 0.7, 2},
        {"metrics/far/Accuracy", {NAN, INFINITY, 0.5, 0.1}, 0.5, 3},
        {"metrics/train/Accuracy", {0.2, 0.7, 0.7, 0.1}, NAN, 0},
        {"loss/train/total", {2, 1, 1, 3}, NAN, 0},
    };
    enum { ROWS = sizeof row / sizeof *row };
    struct et_log_entry entry[ROWS];
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < ROWS; i++) {
            snprintf(entry[i].name, sizeof entry->name, "%s", row[i].name);
            entry[i].value = row[i].value[k];
        }
        need(cx, etd_model_apply(m, &(struct et_record){.kind = ET_RECORD_METRIC,
                                                        .seq = k + 1,
                                                        .ba = k + 1,
                                                        .entry = entry,
                                                        .n = ROWS}));
    }
    for (int i = 0; i < ROWS; i++) {
        const struct etd_series *s = etd_model_series(m, row[i].name);
        ok(s && s->best_ba == row[i].ba &&
               (isnan(row[i].best) ? isnan(s->best) : s->best == row[i].best),
           "the best of %s is %g, of batch %d", row[i].name, row[i].best,
           (int)row[i].ba);
    }
    /* Of a record that stands for several the best is in between. */
    static const struct et_log_span span[] = {{3, 0, 0.5, 9, 6}, {3, 0, 0.1, 0.9, 1}};
    need(cx, etd_model_apply(m, &(struct et_record){.kind = ET_RECORD_METRIC,
                                                    .seq = 5,
                                                    .ba = 7,
                                                    .of = 3,
                                                    .from = 5,
                                                    .entry = entry,
                                                    .span = span,
                                                    .n = 2}));
    const struct etd_series *less = etd_model_series(m, row[0].name);
    const struct etd_series *more = etd_model_series(m, row[1].name);
    ok(less && less->best == 0.5 && less->best_ba == 7 && more && more->best == 0.9,
       "the least or the greatest of what a record stands for may be best");
    etd_model_free(&m);
}

/* A rank's own time is without that in which others had the processor; its last values
 * are kept, the newest last. */
static void
test_own(struct et_ctx *cx)
{
    static const struct {
        double own, queue, is;
    } row[] = {{10, 4, 6}, {10, 12, 0}, {10, 0, 10}, {7, 2, 5}};
    enum { MORE = ETD_TRAIL + 3 };
    struct et_log_entry entry[2] = {{.name = "own_ms"}, {.name = "queue_ms"}};
    struct etd_model *m;
    struct et_record r = {.kind = ET_RECORD_HEALTH, .rank = 1, .entry = entry, .n = 2};
    need(cx, etd_model_new(cx, &m));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        entry[0].value = row[i].own;
        entry[1].value = row[i].queue;
        r.seq++;
        r.ba = 5 * r.seq;
        need(cx, etd_model_apply(m, &r));
        const struct etd_part *p = &m->rank[1];
        ok(etd_part_own(p) == row[i].is &&
               p->trail[ETD_TRAIL - 1] == (float)row[i].is && p->ba == r.ba,
           "of %g ms %g were in the queue: %g are its own", row[i].own, row[i].queue,
           row[i].is);
    }
    for (int i = 0; i < MORE; i++) {
        entry[0].value = 100 + i;
        entry[1].value = 0;
        r.seq++;
        need(cx, etd_model_apply(m, &r));
    }
    bool right = true;
    for (int i = 0; i < ETD_TRAIL; i++)
        right = right && m->rank[1].trail[i] == (float)(100 + MORE - ETD_TRAIL + i);
    ok(right, "the last %d values are kept, in their order", ETD_TRAIL);
    /* As many numbers as a part has room for, in two records, and one more. */
    struct et_log_entry many[ETD_NUMBERS];
    r.entry = many;
    r.rank = 0;
    for (int n = 0; n < 2; n++) {
        for (int i = 0; i < ETD_NUMBERS; i++) {
            snprintf(many[i].name, sizeof many->name, "number %d", i + n);
            many[i].value = 10 * n + i;
        }
        r.seq++;
        r.n = ETD_NUMBERS;
        need(cx, etd_model_apply(m, &r));
    }
    char last[32], over[32];
    snprintf(last, sizeof last, "number %d", ETD_NUMBERS - 1);
    snprintf(over, sizeof over, "number %d", ETD_NUMBERS);
    ok(m->rank[0].n == ETD_NUMBERS && etd_part_get(&m->rank[0], "number 0") == 0 &&
           etd_part_get(&m->rank[0], last) == 10 + ETD_NUMBERS - 2 &&
           isnan(etd_part_get(&m->rank[0], over)),
       "a part has room for %d numbers", ETD_NUMBERS);
    etd_model_free(&m);
}

/* That a run goes on as it did is no event; nor is what another rank says. */
static void
test_states(struct et_ctx *cx)
{
    static const struct {
        const char *state;
        int rank, events;
        double since;
    } row[] = {{"running", 0, 1, 101},
               {"running", 0, 1, 101},
               {"paused", 1, 1, 101},
               {"paused", 0, 2, 104},
               {"running", 0, 3, 105}};
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    for (int i = 0; i < (int)(sizeof row / sizeof *row); i++) {
        need(cx, etd_model_apply(m, &(struct et_record){.kind = ET_RECORD_RUN,
                                                        .seq = i + 1,
                                                        .t = 101 + i,
                                                        .rank = row[i].rank,
                                                        .text = row[i].state}));
        ok(m->n_events == row[i].events && m->state_since == row[i].since,
           "record %d, %s of rank %d: %d events, since %g", i, row[i].state,
           row[i].rank, m->n_events, m->state_since);
    }
    etd_model_free(&m);
}

static void
test_rest(struct etd_model *m)
{
    bool settled;
    ok(m->n_ranks == 4 && etd_part_get(&m->rank[3], "own_ms") == 7999 % 7 &&
           m->rank[3].trail[ETD_TRAIL - 1] == 7999 % 7,
       "each rank's own time is known");
    is_int(m->n_warnings, 80, "warnings are counted");
    is_str(etd_model_event(m, m->n_events - 1)->text, "line 8000",
           "the newest event is the last");
    ok(m->n_events == ETD_EVENTS, "and the oldest make room");
    is_near(etd_model_done(m), 1, 1e-12, "all of the run is done");
    is_near(etd_model_left(m, &settled), 0, 1e-9, "and nothing is left");
}

static void
test_evaluations(struct et_ctx *cx)
{
    struct etd_model *m;
    static const double accuracy[] = {0.25, 0.5, NAN, 0.75};
    static const char *const wanted[] = {
        "ep 1  Accuracy 0.2500  CrossEntropy 2.0000",
        "ep 2  Accuracy 0.5000 (+0.2500)  CrossEntropy 2.0000",
        "ep 3  Accuracy nan  CrossEntropy 2.0000",
        "ep 4  Accuracy 0.7500  CrossEntropy 2.0000",
    };
    static const struct {
        int64_t ba;
        const char *text;
    } places[] = {{1, "ep 0.01  "},   {27, "ep 0.34  "},    {33, "ep 0.41  "},
                  {40, "ep 0.5  "},   {80, "ep 1  "},       {81, "ep 1.01  "},
                  {799, "ep 9.99  "}, {8100, "ep 101.25  "}};
    need(cx, etd_model_new(cx, &m));
    for (int i = 0; i < 4; i++) {
        struct et_log_entry e[] = {
            {.name = "time/total", .value = i},
            {.name = "metrics/eval/Accuracy", .value = accuracy[i]},
            {.name = "metrics/eval/CrossEntropy", .value = 2}};
        struct et_record r = {.kind = ET_RECORD_EVAL,
                              .seq = i + 1,
                              .t = 1e9,
                              .ep = i + 1,
                              .ba = 10 * (i + 1),
                              .text = "eval",
                              .entry = e,
                              .n = 3};
        need(cx, etd_model_apply(m, &r));
        is_str(etd_model_event(m, i)->text, wanted[i],
               "evaluation %d says what came of it", i + 1);
    }
    etd_model_free(&m);

    /* The epoch that an evaluation stands at the end of is not counted yet. */
    need(cx, etd_model_new(cx, &m));
    struct et_log_entry length = {.name = "run/epoch_batches", .value = 80};
    struct et_record begin = {.kind = ET_RECORD_RUN,
                              .seq = 1,
                              .t = 1e9,
                              .text = "running",
                              .entry = &length,
                              .n = 1};
    need(cx, etd_model_apply(m, &begin));
    for (int i = 0; i < (int)(sizeof places / sizeof *places); i++) {
        struct et_log_entry e = {.name = "metrics/eval/Accuracy", .value = 0.5};
        struct et_record r = {.kind = ET_RECORD_EVAL,
                              .seq = i + 2,
                              .t = 1e9 + i,
                              .ba = places[i].ba,
                              .text = "eval",
                              .entry = &e,
                              .n = 1};
        need(cx, etd_model_apply(m, &r));
        ok(strncmp(etd_model_event(m, i + 1)->text, places[i].text,
                   strlen(places[i].text)) == 0,
           "that after batch %d of 80 a part of an epoch: %s", (int)places[i].ba,
           etd_model_event(m, i + 1)->text);
    }
    etd_model_free(&m);
}

/* Values of three batches, in every order in which they may come. */
static void
test_late(struct et_ctx *cx)
{
    int wrong = 0;
    for (int order = 0; order < 3 * 3 * 3; order++) {
        struct etd_model *m;
        unsigned seen = 0;
        need(cx, etd_model_new(cx, &m));
        for (int i = 0, left = order; i < 3; i++, left /= 3) {
            const int ba = 2 + left % 3;
            const struct et_log_entry e = {"loss", ba};
            need(cx, etd_model_apply(m, &(struct et_record){.kind = ET_RECORD_METRIC,
                                                            .seq = i + 1,
                                                            .t = 1e9,
                                                            .ba = ba,
                                                            .entry = &e,
                                                            .n = 1}));
            seen |= 1u << ba;
        }
        const struct etd_series *s = etd_model_series(m, "loss");
        int n = 0, values = 0;
        for (int ba = 0; ba < 8; ba++)
            if (seen >> ba & 1) {
                wrong += n >= s->n_bins || s->bin[n].bin != ba || s->bin[n].min != ba ||
                         s->bin[n].max != ba;
                values += n < s->n_bins ? s->bin[n].n : 0;
                n++;
            }
        wrong += s->n_bins != n || values != 3;
        etd_model_free(&m);
    }
    is_int(wrong, 0, "values have their places, in whatever order they come");
}

static void
test_estimate(struct et_ctx *cx)
{
    struct etd_model *m;
    bool settled;
    need(cx, etd_model_new(cx, &m));
    apply(cx, m, 0, 3 * 5);
    ok(isnan(etd_model_left(m, &settled)) && !settled,
       "after 5 batches nobody knows how long it will take");
    apply(cx, m, 3 * 5, 3 * 1000);
    is_near(etd_model_left(m, &settled), 7000, 1e-9,
            "after 1,000 of 8,000, a second each, 7,000 s are left");
    ok(settled, "which has not changed for a while");
    is_near(etd_model_done(m), 0.125, 1e-12, "an eighth is done");
    etd_model_free(&m);
}

static void
test_resume(struct et_ctx *cx)
{
    struct etd_model *m;
    struct story s;
    struct et_record r;
    need(cx, etd_model_new(cx, &m));
    apply(cx, m, 0, 3 * 500);
    need(cx, etd_model_apply(m, &(struct et_record){.kind = ET_RECORD_RESUME,
                                                    .seq = 1501,
                                                    .t = 1e9,
                                                    .ba = 200,
                                                    .ep = 2}));
    ok(m->axis[200].t == 1e9 + 199 && isnan(m->axis[201].t) && isnan(m->axis[500].t),
       "and has the times of the first 200 alone");
    const struct etd_series *loss = etd_model_series(m, "loss/train/total");
    ok(loss->bin[loss->n_bins - 1].bin == 200 && m->ba == 200 && m->incarnation == 2,
       "a run that goes on from batch 200 has no values after it");
    ok(m->n_marks == 1 && etd_model_mark(m, 0)->ba == 200, "and a mark there");
    for (int64_t i = 3 * 200; i < 3 * 300; i++)
        if (tell(&s, i, &r))
            need(cx, etd_model_apply(m, &r));
    is_int(loss->bin[loss->n_bins - 1].bin, 300, "until they are done again");
    etd_model_free(&m);
}

/* ---- snapshots ---- */

static void
test_snapshots(struct et_ctx *cx, struct etd_model *early)
{
    static const int64_t joins[] = {1, 2, 3000, 12345, 23999};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        struct etd_model *first, *late;
        char *bytes;
        size_t n;
        need(cx, etd_model_new(cx, &first));
        need(cx, etd_model_new(cx, &late));
        apply(cx, first, 0, joins[i]);
        apply(cx, late, 50, 80); /* of another run: it goes */
        need(cx, etd_model_save(first, &bytes, &n));
        need(cx, etd_model_load(late, bytes, n));
        ok(same(cx, first, late),
           "who joins after %lld records knows what the first does",
           (long long)joins[i]);
        apply(cx, late, joins[i], 0);
        ok(same(cx, early, late), "and at the end too");
        et_free(cx, bytes);
        etd_model_free(&first);
        etd_model_free(&late);
    }
}

static void
test_damage(struct et_ctx *cx)
{
    struct etd_model *m, *victim;
    char *bytes;
    size_t n;
    int refused = 0, tried = 0, changed = 0;
    need(cx, etd_model_new(cx, &m));
    need(cx, etd_model_new(cx, &victim));
    apply(cx, m, 0, 900);
    apply(cx, victim, 0, 10);
    need(cx, etd_model_save(m, &bytes, &n));
    for (size_t cut = 0; cut < n; cut += 1 + cut / 50)
        changed += etd_model_load(victim, bytes, cut) == ET_OK || victim->seq != 10;
    is_int(changed, 0, "a snapshot that was cut off changes nothing");
    for (size_t at = 0; at < n; at += 7, tried++) {
        char keep = bytes[at];
        bytes[at] ^= (char)(1 << at % 8);
        refused += etd_model_load(m, bytes, n) == ET_EFORMAT;
        et_error_clear(cx);
        bytes[at] = keep;
    }
    ok(refused > 0 && refused < tried,
       "damage is refused (%d of %d) or is another run's state, and never more",
       refused, tried);
    et_error_clear(cx);
    ok(etd_model_load(m, "\x9c", 1) == ET_EFORMAT && et_error_get(cx)->message[0],
       "with a sentence");
    et_error_clear(cx);
    et_free(cx, bytes);
    etd_model_free(&m);
    etd_model_free(&victim);
}

/* A number at batch BA, epoch and sample of which follow from it. */
static void
add(struct et_ctx *cx, struct etd_model *m, int64_t ba)
{
    const struct et_log_entry entry = {"loss/train/total", 2};
    const struct et_record r = {.kind = ET_RECORD_BATCH,
                                .seq = m->seq + 1,
                                .t = 1e9 + (double)ba,
                                .ep = ba / 10,
                                .ba = ba,
                                .sp = 64 * ba,
                                .entry = &entry,
                                .n = 1};
    need(cx, etd_model_apply(m, &r));
}

/* Is bin I that of batch BA on the other axes? */
static bool
is_at(const struct etd_model *m, int i, int64_t ba)
{
    const struct etd_axis *a = &m->axis[i];
    return a->t == 1e9 + (double)ba && a->ep == ba / 10 && a->sp == 64 * ba;
}

/* A run that tells of few of its batches: bins have their times, however wide. */
static void
test_sparse(struct et_ctx *cx)
{
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    add(cx, m, 3);
    add(cx, m, 8);
    add(cx, m, 9);
    add(cx, m, 14);
    add(cx, m, ETD_BINS - 1);
    is_int(m->width, 1, "a short run has a bin for each batch");
    add(cx, m, ETD_BINS);
    is_int(m->width, 2, "a longer one has one for two");
    ok(is_at(m, 1, 3), "with the time of the second, where there is no first,");
    ok(is_at(m, 4, 8), "with that of the first, where there are both,");
    ok(is_at(m, 7, 14), "or that of the first alone");
    ok(is_at(m, ETD_BINS / 2 - 1, ETD_BINS - 1) && is_at(m, ETD_BINS / 2, ETD_BINS),
       "what was the last bin is in the middle, with the next behind it");
    int n = 0;
    for (int i = 0; i < ETD_BINS; i++)
        n += !isnan(m->axis[i].t);
    is_int(n, 5, "where no batch is told of no bin has a time");
    add(cx, m, ETD_BINS + 1);
    ok(is_at(m, ETD_BINS / 2, ETD_BINS), "which keeps the time of its first");
    add(cx, m, 2 * ETD_BINS + 5);
    ok(m->width == 4 && is_at(m, 0, 3) && is_at(m, 2, 8) && is_at(m, 3, 14) &&
           is_at(m, ETD_BINS / 4, ETD_BINS) &&
           is_at(m, ETD_BINS / 2 + 1, 2 * ETD_BINS + 5),
       "and so on, as the run grows");
    etd_model_free(&m);
}

/* Records that stand for more than the count of a bin can be. */
static void
test_thinned(struct et_ctx *cx)
{
    struct etd_model *m;
    const struct et_log_entry entry = {"loss/train/total", 2};
    const struct et_log_span span = {INT64_C(1) << 31, 1, 1, 3, 2};
    struct et_record r = {.kind = ET_RECORD_BATCH,
                          .ba = 1,
                          .of = (INT64_C(1) << 31) + 1,
                          .entry = &entry,
                          .span = &span,
                          .n = 1};
    if (etd_model_new(cx, &m) != ET_OK)
        bail("no model");
    for (r.seq = 1; r.seq <= 2; r.seq++)
        if (etd_model_apply(m, &r) != ET_OK)
            bail("a record is not taken");
    const struct etd_series *s = etd_model_series(m, entry.name);
    ok(s && s->n == INT64_C(1) << 32 && s->bad == 2,
       "of records that stand for several all values count");
    ok(s && s->n_bins == 1 && s->bin[0].n == INT32_MAX && s->bin[0].min == 1 &&
           s->bin[0].max == 3 && s->bin[0].last == 2,
       "a bin counts as far as it can, and has their least and greatest value");
    etd_model_free(&m);
}

static void
test_many(struct et_ctx *cx)
{
    struct etd_model *m;
    struct et_log_entry entry[64];
    char *bytes;
    size_t n;
    need(cx, etd_model_new(cx, &m));
    for (int64_t i = 0; i < 2000 * 9; i++) {
        struct et_record r = {.kind = ET_RECORD_BATCH,
                              .seq = i + 1,
                              .t = 1e9,
                              .ba = i / 9 + 1,
                              .entry = entry,
                              .n = 64};
        for (int k = 0; k < 64; k++) {
            snprintf(entry[k].name, sizeof entry->name, "m/%d", (int)(i % 9) * 64 + k);
            entry[k].value = (double)i / 7;
        }
        need(cx, etd_model_apply(m, &r));
    }
    is_int(m->n_series, ETD_SERIES, "of 576 series %d are kept", ETD_SERIES);
    is_int(m->left_out, 2000 * 64, "and the values of others are counted");
    ok(m->n_bins <= ETD_ALL_BINS && m->width == 8,
       "all together have no more than %d bins", ETD_ALL_BINS);
    need(cx, etd_model_save(m, &bytes, &n));
    ok(n < 16 << 20, "so that a snapshot is less than 16 MiB: %zu bytes", n);
    et_free(cx, bytes);
    etd_model_free(&m);
}

/* ---- following a log ---- */

static void
write_story(struct eti_events_writer *w, int64_t from, int64_t to)
{
    struct story s;
    struct et_record r;
    for (int64_t i = from; i < to && tell(&s, i, &r); i++)
        eti_events_write(w, &r);
    eti_events_flush(w);
}

static void
test_follow(struct et_ctx *cx)
{
    struct eti_events_writer w;
    struct etd_follow *f, *other;
    struct etd_model *m;
    int64_t left, done, all, at = 0, behind = 0;
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, &w));
    need(cx, etd_follow_open(cx, ".", &f));
    need(cx, etd_model_new(cx, &m));
    for (int64_t step = 1; at < 9000; step = step * 3 % 211) {
        write_story(&w, at, at + step);
        at += step;
        need(cx, etd_follow_read(f, 10, 0, &left));
        behind += left != 0 || etd_follow_model(f)->seq != at;
    }
    is_int(behind, 0, "a model follows the log as it grows");
    apply(cx, m, 0, at);
    ok(same(cx, m, etd_follow_model(f)), "and is the one of the records themselves");
    need(cx, etd_follow_open(cx, ".", &other));
    need(cx, etd_follow_read(other, 10, 777, &left));
    etd_follow_progress(other, &done, &all);
    ok(etd_follow_model(other)->seq == 777 && left > 0 && done + left == all,
       "one may stop at a record");
    need(cx, etd_follow_read(other, 10, 0, &left));
    ok(same(cx, etd_follow_model(other), m), "and go on");
    eti_events_end(&w);
    if (truncate("events.log", 100) != 0)
        bail("cannot cut the log");
    is_int(etd_follow_read(other, 1, 0, &left), ET_EFORMAT,
           "a log that shrank is an error");
    et_error_clear(cx);
    etd_follow_close(&other);
    etd_follow_close(&f);
    etd_model_free(&m);
    remove("events.log");
    is_int(etd_follow_open(cx, ".", &f), ET_ENOENT, "and so is none");
    et_error_clear(cx);
}

/* ---- where the step goes ---- */

/* Rank RANK's health after BA batches: a step of ALL ms, of it FORWARD. */
static void
say_health(struct et_ctx *cx, struct etd_model *m, int rank, int64_t ba, double all,
           double forward)
{
    static int64_t seq;
    const struct et_log_entry entry[] = {
        {"own_ms", all}, {"step_ms", all}, {"forward_ms", forward}, {"rss_gb", 1}};
    const int n = sizeof entry / sizeof *entry;
    struct et_record r = {
        .kind = ET_RECORD_HEALTH,
        .rank = rank,
        .seq = ++seq,
        .t = 1e9 + (double)ba,
        .ba = ba,
        .sp = 64 * ba,
        .entry = entry,
        .n = all > 0 ? n : 0,
    };
    need(cx, etd_model_apply(m, &r));
}

static void
test_step(struct et_ctx *cx)
{
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    say_health(cx, m, 1, 4, 30, 9);
    ok(!etd_model_series(m, ETD_STEP_ALL), "the other ranks add no point");
    say_health(cx, m, 0, 5, 10, 4);
    const struct etd_series *all = etd_model_series(m, ETD_STEP_ALL);
    const struct etd_series *forward = etd_model_series(m, "step/forward_ms");
    ok(all && all->n == 1 && all->last == 20 && all->last_ba == 5,
       "rank 0's health adds the median of all ranks' step to a series");
    ok(forward && forward->n == 1 && forward->last == 6.5, "and of each part it says");
    ok(m->n_series == 2 && !etd_model_series(m, "step/compute_ms"),
       "what it does not say has no series, and what is no part");
    say_health(cx, m, 0, 6, 0, 0);
    is_int(all->n, 1, "a second without a batch adds none");
    say_health(cx, m, 0, 7, 20, 8);
    ok(all->n == 2 && all->bin[1].bin == 7 && all->last == 25,
       "each has its place among the batches");
    etd_model_free(&m);
}

int
main(void)
{
    struct et_ctx *cx;
    struct etd_model *m;
    if (chdir(scratch_folder()) != 0)
        bail("cannot enter the scratch folder");
    if (et_ctx_new(&cx) != ET_OK || etd_model_new(cx, &m) != ET_OK)
        bail("no memory");
    apply(cx, m, 0, 0);
    test_series(m);
    test_rest(m);
    test_best(cx);
    test_own(cx);
    test_states(cx);
    test_evaluations(cx);
    test_late(cx);
    test_estimate(cx);
    test_resume(cx);
    test_snapshots(cx, m);
    test_damage(cx);
    test_sparse(cx);
    test_thinned(cx);
    test_many(cx);
    test_follow(cx);
    test_step(cx);
    etd_model_free(&m);
    et_ctx_free(&cx);
    return done();
}
