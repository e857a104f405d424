/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of comparing runs, a case each: the metric, the processors and power that count
 * for a moment, the names, order and medians of runs that differ by their seed, and the
 * text of the front's picture. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/journal/events.h"
#include "core/library/comparison.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { STARTED = 1000000000 };
static const char metric[] = "metrics/eval/Accuracy";
static const unsigned char id[ETI_EVENTS_ID] = "0123456789abcde";
static char directory[600];

/* ---- one run, by its log ---- */

/* A record of the log: what rank RANK reported T seconds after the start. */
struct said {
    const char *name; /* NULL: there are no more */
    double t;
    int rank;
    double value;
};

/* Writes the log of a run; returns its facts. */
static json_t *
write_run(struct et_ctx *cx, const char *name, const struct said *said)
{
    struct eti_events_writer w;
    snprintf(directory, sizeof directory, "%s/%s", scratch_folder(), name);
    if (mkdir(directory, 0700) != 0)
        bail("no folder for a run");
    need(cx, eti_events_begin(cx, directory, id, &w));
    for (int64_t ba = 1; said->name; said++, ba++) {
        struct et_log_entry entry = {.value = said->value};
        bool is_value = strcmp(said->name, metric) == 0;
        snprintf(entry.name, sizeof entry.name, "%s", said->name);
        const struct et_record r = {.kind =
                                        is_value ? ET_RECORD_EVAL : ET_RECORD_HEALTH,
                                    .t = STARTED + said->t,
                                    .ba = ba,
                                    .rank = said->rank,
                                    .text = is_value ? "eval" : NULL,
                                    .entry = &entry,
                                    .n = 1};
        eti_events_write(&w, &r);
    }
    eti_events_end(&w);
    return json_pack("{s:s, s:f, s:{s:{s:f}}}", "directory", directory, "started",
                     (double)STARTED, "metrics", metric, "best", 0.5);
}

/* What a run took up to its best value, by each figure. */
static void
test_moments(struct et_ctx *cx)
{
    static const struct eti_config_price of_rank = {.hour = 3600,
                                                    .of = ETI_PRICE_OF_RANK};
    static const struct {
        const char *what;
        enum eti_figure by;
        double figure;
        struct said said[6];
    } row[] = {
        {"of two equal values the first is the best",
         ETI_TIME,
         4,
         {{metric, 4, 0, 0.5}, {metric, 9, 0, 0.5}}},
        {"negative power counts as 0",
         ETI_ENERGY,
         100 / 3.6e6,
         {{"power_w", 1, 0, 100}, {"power_w", 2, 0, -40}, {metric, 3, 0, 0.5}}},
        {"use around a moment counts by the part before it",
         ETI_CPU_TIME,
         2 + 0.5 * 4,
         {{"cpu_s", 1, 0, 2},
          {metric, 1.5, 0, 0.5},
          {"cpu_s", 2, 0, 6},
          {"cpu_s", 3, 0, 9}}},
        {"use is not divided where a rank was silent for long",
         ETI_CPU_TIME,
         2,
         {{"cpu_s", 1, 0, 2}, {metric, 4, 0, 0.5}, {"cpu_s", 20, 0, 21}}},
        {"use does not go on long after a rank's last report",
         ETI_CPU_TIME,
         5,
         {{"cpu_s", 1, 0, 2}, {"cpu_s", 2, 0, 5}, {metric, 30, 0, 0.5}}},
        {"each rank costs, whichever reported last",
         ETI_COST,
         3 * 8,
         {{"cpu_s", 1, 0, 2},
          {"cpu_s", 1, 2, 2},
          {"cpu_s", 2, 0, 3},
          {metric, 8, 0, 0.5}}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char name[32];
        snprintf(name, sizeof name, "moment-%zu", i);
        struct eti_comparison k = {.cx = cx,
                                   .n = 1,
                                   .by = row[i].by,
                                   .price = &of_rank,
                                   .run[0].facts = write_run(cx, name, row[i].said)};
        need(cx, eti_comparison_choose(&k));
        need(cx, eti_comparison_judge(&k, 0));
        is_near(eti_comparison_cost(&k, &k.run[0]), row[i].figure, 1e-9, "%s",
                row[i].what);
        json_decref(k.run[0].facts);
    }
}

/* The first run may lack the metric of the others. */
static void
test_choose(struct et_ctx *cx)
{
    json_t *bare =
        json_pack("{s:{s:{s:f}}}", "metrics", "loss/train/total", "best", 1.);
    json_t *full = json_pack("{s:{s:{s:f}}}", "metrics", metric, "best", 1.0);
    struct eti_comparison k = {
        .cx = cx, .n = 2, .run[0].facts = bare, .run[1].facts = full};
    need(cx, eti_comparison_choose(&k));
    is_str(k.metric, metric, "runs are measured by a metric that one of them has");
    k.target_text = "accuracy<=.5";
    need(cx, eti_comparison_choose(&k));
    ok(strcmp(k.metric, metric) == 0 && k.less && k.has_target && k.or_equal,
       "the metric of a target may be that of any run");
    k.target_text = NULL;
    need(cx, eti_comparison_choose(&k));
    ok(!k.less && !k.has_target,
       "without a target the better side is the metric's own again");
    static const struct eti_config_price price = {.hour = 2};
    json_t *back = json_pack("{s:f, s:f}", "started", 50.0, "ended", 40.0);
    ok(isnan(eti_run_cost(back, &price)),
       "the cost of a run that ended before it began is unknown");
    json_decref(back);
    json_decref(bare);
    json_decref(full);
}

/* ---- runs that differ by their seed alone ---- */

struct one {
    const char *name, *config; /* JSON with ' for " */
    double best, to_best, to_target;
    int place;
};

static json_t *
config_of(const char *quoted)
{
    char text[256];
    snprintf(text, sizeof text, "%s", quoted);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *json = json_loads(text, 0, NULL);
    if (!json)
        bail("no JSON: %s", quoted);
    return json;
}

static void
take_runs(struct eti_comparison *k, const struct one *one, int n)
{
    for (k->n = 0; k->n < n; k->n++) {
        struct eti_compared_run *r = &k->run[k->n];
        const struct one *o = &one[k->n];
        *r = (struct eti_compared_run){.best = o->best, .place = o->place};
        r->facts =
            json_pack("{s:s, s:o}", "name", o->name, "config", config_of(o->config));
        for (int f = 0; f < ETI_FIGURES; f++) {
            r->to_best[f] = o->to_best;
            r->to_target[f] = o->to_target;
        }
    }
}

static void
drop_runs(struct eti_comparison *k)
{
    for (int i = 0; i < k->n; i++)
        json_decref(k->run[i].facts);
    k->n = 0;
}

static void
test_labels(struct et_ctx *cx)
{
    static const struct {
        const char *what;
        int n;
        const char *labels; /* the labels, with bars between */
        struct one one[4];
    } row[] = {
        {"their names without numbers, where the numbers are the seeds",
         3,
         "a|ab|net18",
         {{"a-1", "{'seed':1,'lr':1}", .9, 1, 1, 1},
          {"ab-1", "{'seed':1,'lr':2}", .8, 1, 1, 2},
          {"net18", "{'seed':1,'lr':3}", .7, 1, 1, 3}}},
        {"their differences, where two settings have one stem",
         3,
         "as b-1|lr=2 optimizer=adam|lr=-",
         {{"b-1", "{'lr':1,'optimizer':'sgd'}", .9, 1, 1, 1},
          {"b-2", "{'lr':2,'optimizer':'adam'}", .8, 1, 1, 2},
          {"b-3", "{'optimizer':'sgd'}", .7, 1, 1, 3}}},
        {"their differences, where one setting has two stems",
         2,
         "as c-1|lr=2",
         {{"c-1", "{'lr':1}", .9, 1, 1, 1},
          {"e", "{'lr':2}", .8, 1, 1, 2},
          {"d-1", "{'lr':1}", .7, 1, 1, 3}}},
    };
    static struct eti_alike a[ETI_COMPARED_RUNS];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_comparison k = {.cx = cx};
        char labels[512] = "";
        take_runs(&k, row[i].one, 3);
        json_t *differences = eti_comparison_differences(&k);
        int n = eti_comparison_alike(&k, differences, a);
        is_int(n, row[i].n, "runs that differ by their seed alone are grouped");
        for (int g = 0; g < n; g++) {
            size_t used = strlen(labels);
            snprintf(labels + used, sizeof labels - used, "%s%s", g ? "|" : "",
                     a[g].label);
        }
        is_str(labels, row[i].labels, "groups of runs are called by %s", row[i].what);
        json_decref(differences);
        drop_runs(&k);
    }
}

/* Six runs of five settings; the run that was named first is not the best. */
static void
test_medians(struct et_ctx *cx)
{
    static const struct one one[] = {
        {"x", "{'seed':1,'lr':1}", NAN, NAN, NAN, 3},
        {"b", "{'seed':2,'lr':2}", 8, 2, 10, 2},
        {"w", "{'seed':1,'lr':3}", 2, 5, 50, 5},
        {"a", "{'seed':1,'lr':2}", 4, 6, 30, 1},
        {"v", "{'seed':1,'lr':4}", 3, 7, 70, 6},
        {"t", "{'seed':1,'lr':5}", 1, 8, NAN, 7},
    };
    static const struct {
        bool less;
        const char *order;
    } row[] = {{true, "a t w v x"}, {false, "a v w t x"}};
    static struct eti_alike a[ETI_COMPARED_RUNS];
    for (int i = 0; i < 2; i++) {
        struct eti_comparison k = {.cx = cx, .less = row[i].less, .by = ETI_ENERGY};
        char order[64] = "";
        take_runs(&k, one, 6);
        json_t *differences = eti_comparison_differences(&k);
        int n = eti_comparison_alike(&k, differences, a);
        for (int g = 0; g < n; g++) {
            size_t used = strlen(order);
            snprintf(order + used, sizeof order - used, "%s%s", g ? " " : "",
                     one[a[g].run[0]].name);
        }
        is_str(order, row[i].order,
               "the setting named first is first, then the best where %s is better",
               row[i].less ? "less" : "more");
        is_int(a[0].n, 2, "the setting with two seeds has two runs");
        ok(a[0].best == 6 && a[0].to_best[ETI_ENERGY] == 4 &&
               a[0].to_target[ETI_ENERGY] == 20,
           "the median of two runs is their mean");
        ok(eti_alike_cost(&k, &a[0]) == 4,
           "without a target a setting costs what its best value took");
        k.has_target = true;
        ok(eti_alike_cost(&k, &a[0]) == 20,
           "with a target a setting costs what the target took");
        ok(isnan(a[4].best), "a setting without a value comes last");
        json_decref(differences);
        drop_runs(&k);
    }
}

/* ---- the picture ---- */

static char *
picture_of(const struct eti_comparison *k, const struct eti_alike *a, int n)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        bail("no memory for a picture");
    need(k->cx, eti_comparison_svg(k, a, n, f));
    if (fclose(f) != 0 || !text)
        bail("no memory for a picture");
    return text;
}

static void
test_picture(struct et_ctx *cx)
{
    static char euro[] = "EUR";
    static const struct eti_config_price price = {.hour = 1, .currency = euro},
                                         bare = {.hour = 1};
    static const struct {
        enum eti_figure by;
        const struct eti_config_price *price;
        const char *target, *axis;
    } axes[] = {
        {ETI_TIME, NULL, NULL, "seconds of the clock to the best value"},
        {ETI_COST, &price, NULL, "EUR to the best value"},
        {ETI_COST, &bare, NULL, "money to the best value"},
        {ETI_ENERGY, NULL, "accuracy>=.55", "kWh to accuracy&gt;=.55"},
        {ETI_SAMPLES, NULL, NULL, "samples to the best value"},
        {ETI_CPU_TIME, NULL, NULL, "seconds of processors to the best value"},
    };
    static const struct one one[] = {
        {"r1", "{'seed':1,'lr':1}", 0.75, 12, 12, 1},
        {"r2", "{'seed':2,'lr':2}", 0.5, 8, 8, 2},
        {"r3", "{'seed':3,'lr':2}", 0.7, 14, 14, 3},
        {"r4", "{'seed':1,'lr':3}", 0.25, NAN, NAN, 4},
    };
    static struct eti_alike a[ETI_COMPARED_RUNS];
    struct eti_comparison k = {.cx = cx};
    snprintf(k.metric, sizeof k.metric, "%s", metric);
    take_runs(&k, one, 4);
    json_t *differences = eti_comparison_differences(&k);
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        k.by = axes[i].by;
        k.price = axes[i].price;
        k.target_text = axes[i].target;
        k.has_target = axes[i].target != NULL;
        k.target = 0.55;
        int n = eti_comparison_alike(&k, differences, a);
        eti_comparison_front(&k);
        char *text = picture_of(&k, a, n);
        ok(strstr(text, axes[i].axis) != NULL, "the picture's axis is %s",
           axes[i].axis);
        ok(!strstr(text, ">target<") == !axes[i].target,
           "the picture has a line for a target, where there is one");
        if (i == 0) {
            static const char *const says[] = {
                "Pareto front of Accuracy",
                "<title>r1: 12, 0.75, on the front<",
                "<title>r3: 14, 0.7<",
                ">as r1: 0.75 in 12<",
                ">lr=2: 0.6 in 11, median<",
                ">2 seeds<",
                ">lr=3: 0.25<",
            };
            for (size_t s = 0; s < sizeof says / sizeof *says; s++)
                ok(strstr(text, says[s]) != NULL, "the picture says %s", says[s]);
            const char *ring = strstr(text, "r=\"9\"");
            ok(ring && !strstr(ring + 1, "r=\"9\""),
               "only the point of a median has a ring");
        }
        free(text);
    }
    k.target = 3;
    k.has_target = true;
    k.target_text = "accuracy>=3";
    char *text = picture_of(&k, a, 3);
    ok(!strstr(text, ">target<"), "a target outside the picture has no line");
    free(text);
    json_decref(differences);
    drop_runs(&k);
}

/* Runs that all lie in one place still have axes. */
static void
test_one_place(struct et_ctx *cx)
{
    static const double values[][2] = {{0.5, 10}, {0, 0}};
    for (int i = 0; i < 2; i++) {
        const struct one one[] = {{"a", "{'lr':1}", values[i][0], values[i][1], 0, 1},
                                  {"b", "{'lr':2}", values[i][0], values[i][1], 0, 2}};
        static struct eti_alike a[ETI_COMPARED_RUNS];
        struct eti_comparison k = {.cx = cx};
        snprintf(k.metric, sizeof k.metric, "%s", metric);
        take_runs(&k, one, 2);
        json_t *differences = eti_comparison_differences(&k);
        int n = eti_comparison_alike(&k, differences, a);
        eti_comparison_front(&k);
        char *text = picture_of(&k, a, n);
        ok(k.run[0].on_front && k.run[1].on_front,
           "runs with equal values are both on the front");
        ok(!strstr(text, "nan") && !strstr(text, "inf"),
           "a picture of runs that are all at %g after %g has no nan or inf",
           values[i][0], values[i][1]);
        free(text);
        json_decref(differences);
        drop_runs(&k);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_moments(cx);
    test_choose(cx);
    test_labels(cx);
    test_medians(cx);
    test_picture(cx);
    test_one_place(cx);
    et_ctx_free(&cx);
    return done();
}
