/* SPDX-License-Identifier: Apache-2.0 */
/* Runs beside each other: what each came to and when, what that cost by each price, who
 * is on the front, and how figures are written. Logs are written by hand, at times by
 * hand. */
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

/* ---- logs ---- */

static char directory[600];
static struct eti_events_writer log_of_run;

static void
begin(struct et_ctx *cx, const char *name)
{
    snprintf(directory, sizeof directory, "%s/%s", scratch_folder(), name);
    if (mkdir(directory, 0700) != 0)
        bail("no folder for a run");
    need(cx, eti_events_begin(cx, directory, id, &log_of_run));
}

static void
write_numbers(enum et_record_kind kind, double t, int64_t ba, int rank,
              const struct et_log_entry *entry, int n)
{
    const struct et_record r = {.kind = kind,
                                .t = STARTED + t,
                                .ba = ba,
                                .rank = rank,
                                .text = kind == ET_RECORD_EVAL ? "eval" : NULL,
                                .entry = entry,
                                .n = n};
    eti_events_write(&log_of_run, &r);
}

static void
write_value(double t, int64_t ba, double value)
{
    struct et_log_entry entry[] = {{.value = value},
                                   {"time/sample", 32.0 * (double)ba}};
    snprintf(entry[0].name, sizeof entry[0].name, "%s", metric);
    write_numbers(ET_RECORD_EVAL, t, ba, 0, entry, 2);
}

/* Facts of the run that was written last. */
static json_t *
facts_of(double best)
{
    return json_pack("{s:s, s:f, s:{s:{s:f}}}", "directory", directory, "started",
                     (double)STARTED, "metrics", metric, "best", best);
}

/* ---- targets ---- */

static void
test_targets(struct et_ctx *cx)
{
    static const struct {
        const char *text;
        bool is_one, less;
        double time; /* of the first value that reaches it; 0: none does */
    } row[] = {
        {"accuracy>.25", true, false, 30},   {"accuracy>=.25", true, false, 20},
        {"accuracy<.5", true, true, 10},     {"accuracy<.125", true, true, 0},
        {"accuracy<=.125", true, true, 10},  {"ACCURACY > .5", true, false, 0},
        {"accuracy >=0.5", true, false, 30}, {"accuracy>=.9", true, false, 0},
        {"accuracy=.5", false, false, 0},    {"accuracy", false, false, 0},
        {"accuracy>", false, false, 0},      {">.5", false, false, 0},
        {"accuracy>=.5x", false, false, 0},  {"accuracy>=", false, false, 0},
    };
    begin(cx, "targets");
    write_value(10, 1, 0.125);
    write_value(20, 2, 0.25);
    write_value(30, 3, 0.5);
    write_value(40, 4, 0.375);
    eti_events_end(&log_of_run);
    json_t *facts = facts_of(0.5);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_comparison k = {
            .cx = cx, .n = 1, .run[0].facts = facts, .target_text = row[i].text};
        et_status status = eti_comparison_choose(&k);
        is_int(status, row[i].is_one ? ET_OK : ET_EINVAL, "'%s' is %s target",
               row[i].text, row[i].is_one ? "a" : "no");
        et_error_clear(cx);
        if (status != ET_OK)
            continue;
        need(cx, eti_comparison_judge(&k, 0));
        const struct eti_compared_run *r = &k.run[0];
        is_int(k.less, row[i].less, "what is better is the side of the target");
        ok(row[i].time > 0
               ? r->to_target[ETI_TIME] == row[i].time &&
                     r->to_target[ETI_SAMPLES] == 3.2 * row[i].time
               : isnan(r->to_target[ETI_TIME]) && isnan(r->to_target[ETI_SAMPLES]),
           "it is reached after %g s, %g samples", r->to_target[ETI_TIME],
           r->to_target[ETI_SAMPLES]);
        ok(r->best == (row[i].less ? 0.125 : 0.5) &&
               r->to_best[ETI_TIME] == (row[i].less ? 10 : 30) &&
               r->to_best[ETI_SAMPLES] == (row[i].less ? 32 : 96),
           "and the best %g after %g s", r->best, r->to_best[ETI_TIME]);
    }
    json_decref(facts);
}

/* ---- energy and money ---- */

/* A second of rank 0, of a GPU and a machine, and of rank 1, of another GPU. */
static void
write_second(double t, double gpu0, double gpu1, double host)
{
    const struct et_log_entry first[] = {
        {"host_cpu", 0.5}, {"power_w", gpu0}, {"host_power_w", host}};
    const struct et_log_entry other[] = {{"power_w", gpu1}};
    write_numbers(ET_RECORD_HEALTH, t, 0, 0, first + 2 * (gpu0 < 0), gpu0 < 0 ? 1 : 3);
    if (gpu1 >= 0)
        write_numbers(ET_RECORD_HEALTH, t, 0, 1, other, 1);
}

/* 2 s, a minute in which it did not run, and 2 s more: the target comes before. */
static void
test_energy(struct et_ctx *cx)
{
    begin(cx, "energy");
    write_second(1, 100, 200, 7);
    write_second(3, 100, 200, 7);
    write_value(3, 1, 0.5);
    write_second(63, 300, 400, 7);
    write_second(65, 300, 400, 7);
    write_value(65, 2, 0.75);
    write_second(66, 1000, 1000, 1000); /* after the best */
    eti_events_end(&log_of_run);
    json_t *facts = facts_of(0.75);
    struct eti_comparison k = {.cx = cx,
                               .n = 1,
                               .run[0].facts = facts,
                               .by = ETI_ENERGY,
                               .target_text = "accuracy>=.5"};
    need(cx, eti_comparison_choose(&k));
    need(cx, eti_comparison_judge(&k, 0));
    /* The first of a rank, and the first after a rest, stand for a second each. */
    is_near(k.run[0].to_target[ETI_ENERGY], 300.0 * (1 + 2) / 3.6e6, 1e-12,
            "GPUs have drawn so much until the target");
    is_near(k.run[0].to_best[ETI_ENERGY], (300.0 * 3 + 700.0 * 3) / 3.6e6, 1e-12,
            "and so much until the best value, not counting the time between");
    is_near(eti_comparison_cost(&k, &k.run[0]), k.run[0].to_target[ETI_ENERGY], 0,
            "with a target it costs what it took until that");
    k.target_text = NULL;
    need(cx, eti_comparison_choose(&k));
    need(cx, eti_comparison_judge(&k, 0));
    is_near(eti_comparison_cost(&k, &k.run[0]), k.run[0].to_best[ETI_ENERGY], 0,
            "without one until the best");
    json_decref(facts);

    begin(cx, "processors");
    write_second(1, -1, -1, 50);
    write_second(2, -1, -1, 50);
    write_value(2, 1, 0.5);
    eti_events_end(&log_of_run);
    facts = facts_of(0.5);
    k = (struct eti_comparison){
        .cx = cx, .n = 1, .run[0].facts = facts, .by = ETI_ENERGY};
    need(cx, eti_comparison_choose(&k));
    need(cx, eti_comparison_judge(&k, 0));
    is_near(k.run[0].to_best[ETI_ENERGY], 100 / 3.6e6, 1e-12,
            "without a GPU it is what processors have drawn");
    json_decref(facts);
}

/* ---- processors ---- */

static void
write_used(double t, int rank, double seconds)
{
    const struct et_log_entry entry[] = {{"cpu_s", seconds}};
    write_numbers(ET_RECORD_HEALTH, t, 0, rank, entry, 1);
}

/* Two ranks; the second begins again after a minute. */
static void
test_processors(struct et_ctx *cx)
{
    begin(cx, "cpu");
    write_used(1, 0, 2);
    write_used(1, 1, 1);
    write_value(1.5, 1, 0.5);
    write_used(2, 0, 3);
    write_used(2, 1, 1.5);
    write_used(62, 0, 7);
    write_used(62, 1, 0.25);
    write_value(63, 2, 0.75);
    eti_events_end(&log_of_run);
    json_t *facts = facts_of(0.75);
    struct eti_comparison k = {.cx = cx,
                               .n = 1,
                               .run[0].facts = facts,
                               .by = ETI_CPU_TIME,
                               .target_text = "accuracy>=.5"};
    need(cx, eti_comparison_choose(&k));
    need(cx, eti_comparison_judge(&k, 0));
    is_near(k.run[0].to_target[ETI_CPU_TIME], 2 + 0.5 + 1 + 0.25, 1e-6,
            "processors' seconds of both ranks, those of half a second half");
    is_near(k.run[0].to_best[ETI_CPU_TIME], 7 + 1.75, 1e-6,
            "a process that goes on with the run counts anew");
    json_decref(facts);

    begin(cx, "cpu_end");
    write_used(1, 0, 2);
    write_used(2, 0, 5);
    write_value(2.5, 1, 0.5);
    eti_events_end(&log_of_run);
    facts = facts_of(0.5);
    k = (struct eti_comparison){
        .cx = cx, .n = 1, .run[0].facts = facts, .by = ETI_CPU_TIME};
    need(cx, eti_comparison_choose(&k));
    need(cx, eti_comparison_judge(&k, 0));
    is_near(k.run[0].to_best[ETI_CPU_TIME], 6.5, 1e-6,
            "behind the last word it goes on as before it");
    json_decref(facts);
}

/* ---- runs alike but for their seed ---- */

static json_t *
run_of(const char *name, int seed, double lr)
{
    return json_pack("{s:s, s:{s:i, s:f}}", "name", name, "config", "seed", seed,
                     "optimizer.lr", lr);
}

/* Where the picture TEXT has the run NAME, and is its dot filled? */
static bool
find_dot(const char *text, const char *name, double *x, double *y)
{
    char title[64], fill[32] = "";
    snprintf(title, sizeof title, "<title>%s:", name);
    const char *p = strstr(text, title);
    while (p && p > text && strncmp(p, "<circle ", 8) != 0)
        p--;
    if (!p || sscanf(p,
                     "<circle stroke=\"%*[^\"]\" fill=\"%31[^\"]\" cx=\"%lf\" "
                     "cy=\"%lf\"",
                     fill, x, y) != 3)
        bail("%s has no dot", name);
    return strcmp(fill, "#fff") != 0;
}

/* What costs more is further right, what is better higher; the front goes right, and
 * only then up, through those that are on it. */
static void
check_front(const char *text)
{
    enum { N = 6 };
    static const char *const by_cost[N] = {"s-03", "s-01", "s-02",
                                           "s-06", "s-05", "s-04"};
    static const int by_value[N] = {5, 0, 4, 2, 1, 3}; /* the best first */
    double x[N], y[N], from[2], to[3];
    int filled = 0, wrong = 0;
    for (int i = 0; i < N; i++)
        filled |= find_dot(text, by_cost[i], &x[i], &y[i]) << i;
    for (int i = 1; i < N; i++)
        wrong += x[i] <= x[i - 1] || y[by_value[i]] <= y[by_value[i - 1]];
    is_int(wrong, 0, "costs grow to the right, values upwards");
    is_int(filled, 1 << 0 | 1 << 5, "the dots of the front are filled");
    const char *p = strstr(text, "fill=\"none\" d=\"M");
    if (!p || sscanf(p, "fill=\"none\" d=\"M%lf %lfH%lfV%lfH%lf", &from[0], &from[1],
                     &to[0], &to[1], &to[2]) != 5)
        bail("no front");
    ok(from[0] == x[0] && from[1] == y[0] && to[0] == x[5] && to[1] == y[5] &&
           to[2] > x[5],
       "the front goes through them, and is no better before what makes it so");
}

static void
test_alike(struct et_ctx *cx)
{
    static const struct {
        const char *name;
        double place, lr, best, time;
    } row[] = {
        {"s-04", 40, 0.2, 0.9, 9},   {"s-02", 20, 0.1, 0.6, 3},
        {"s-05", 50, 0.2, 0.7, 7},   {"s-01", 10, 0.1, 0.5, 2},
        {"s-03", 30, 0.1, 0.8, 1},   {"s-06", 60, 0.3, 0.4, 4},
        {"s-07", 70, 0.2, NAN, NAN},
    };
    enum { N = sizeof row / sizeof *row };
    struct eti_comparison k = {.cx = cx, .n = N, .by = ETI_TIME};
    static struct eti_alike a[ETI_COMPARED_RUNS];
    snprintf(k.metric, sizeof k.metric, "%s", metric);
    for (int i = 0; i < N; i++) {
        k.run[i].facts = run_of(row[i].name, i, row[i].lr);
        k.run[i].best = row[i].best;
        k.run[i].place = (int)row[i].place;
        for (int f = 0; f < ETI_FIGURES; f++)
            k.run[i].to_best[f] = k.run[i].to_target[f] = row[i].time;
    }
    json_t *differences = eti_comparison_differences(&k);
    is_int(eti_comparison_alike(&k, differences, a), 3, "three settings");
    ok(a[0].n == 3 && a[1].n == 3 && a[2].n == 1, "of three, three and one run");
    is_str(a[0].label, "as s-01", "that of the run that was named first is the first");
    is_str(a[1].label, "optimizer.lr=0.2", "others are called by what differs from it");
    is_str(a[2].label, "optimizer.lr=0.3", "the best of them first");
    ok(a[0].best == 0.6 && eti_alike_cost(&k, &a[0]) == 2, "medians");
    ok(a[1].best == 0.7 && eti_alike_cost(&k, &a[1]) == 9,
       "a run without a value is worse and slower than all others");

    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    eti_comparison_front(&k);
    need(cx, eti_comparison_svg(&k, a, 3, f));
    fclose(f);
    int dots = 0, rings = 0;
    for (const char *p = text; (p = strstr(p, "<circle ")); p++) {
        dots += strncmp(p, "<circle stroke=", 15) == 0;
        rings += strncmp(p, "<circle fill=\"none\"", 19) == 0;
    }
    is_int(dots, 6, "a run without a value is not in the picture");
    is_int(rings, 2, "a median of several runs is ringed");
    ok(strstr(text, "optimizer.lr=0.2: 0.7 in 9, median") != NULL, "and said");
    ok(strstr(text, "s-03: 1, 0.8, on the front") != NULL &&
           strstr(text, "s-02: 3, 0.6</title>") != NULL,
       "a run says what it is");
    check_front(text);
    free(text);

    for (int i = 0; i < N; i++) {
        k.run[i].best = 0.5;
        for (int j = 0; j < ETI_FIGURES; j++)
            k.run[i].to_best[j] = k.run[i].to_target[j] = 2;
    }
    f = open_memstream(&text, &size);
    need(cx, eti_comparison_svg(&k, a, 3, f));
    fclose(f);
    f = fopen("/dev/full", "w");
    is_int(f ? eti_comparison_svg(&k, a, 3, f) : ET_EIO, ET_EIO,
           "a picture that there is no room for is an error");
    et_error_clear(cx);
    if (f)
        fclose(f);
    ok(!strstr(text, "nan") && !strstr(text, "inf"), "runs that are equal have places");
    free(text);
    for (int i = 0; i < N; i++)
        k.run[i].best = NAN;
    f = open_memstream(&text, &size);
    is_int(eti_comparison_svg(&k, a, 3, f), ET_EINVAL, "without a value there is none");
    et_error_clear(cx);
    fclose(f);
    free(text);
    json_decref(differences);
    for (int i = 0; i < N; i++)
        json_decref((json_t *)k.run[i].facts);
}

/* Three ranks on two machines, for half an hour. */
static void
test_prices(struct et_ctx *cx)
{
    static const int ranks[] = {3, 2, 1}; /* by enum eti_price_of */
    const struct et_log_entry host[] = {{"host_cpu", 0.5}}, other[] = {{"own_ms", 1}};
    begin(cx, "prices");
    for (int t = 1; t <= 3; t++)
        for (int rank = 0; rank < 3; rank++)
            write_numbers(ET_RECORD_HEALTH, t, 0, rank, rank == 1 ? other : host, 1);
    write_value(1800, 1, 0.5);
    eti_events_end(&log_of_run);
    json_t *facts = facts_of(0.5);
    for (int of = ETI_PRICE_OF_RANK; of <= ETI_PRICE_OF_RUN; of++) {
        const struct eti_config_price price = {.hour = 4, .of = of};
        struct eti_comparison k = {
            .cx = cx, .n = 1, .run[0].facts = facts, .by = ETI_COST, .price = &price};
        need(cx, eti_comparison_choose(&k));
        need(cx, eti_comparison_judge(&k, 0));
        is_near(k.run[0].to_best[ETI_COST], 2.0 * ranks[of], 1e-12,
                "half an hour costs as many times its price as there are %s",
                of == ETI_PRICE_OF_RANK      ? "ranks"
                : of == ETI_PRICE_OF_MACHINE ? "machines"
                                             : "runs");
    }
    json_decref(facts);
}

static void
test_run_cost(void)
{
    static const struct {
        const char *facts;
        int of;
        double cost;
    } row[] = {
        {"{\"started\": 100, \"ended\": 3700}", ETI_PRICE_OF_RUN, 4},
        {"{\"started\": 100, \"ended\": null, \"train_seconds\": 1800}",
         ETI_PRICE_OF_RUN, 2},
        {"{\"started\": 100, \"ended\": 3700, \"train_seconds\": 1800}",
         ETI_PRICE_OF_RUN, 4},
        {"{\"started\": 100}", ETI_PRICE_OF_RUN, NAN},
        {"{\"started\": 100, \"ended\": 3700, \"config\": {\"launch.nproc\": 3}}",
         ETI_PRICE_OF_RANK, 12},
        {"{\"started\": 100, \"ended\": 3700, \"config\": {\"launch.nproc\": 3}}",
         ETI_PRICE_OF_MACHINE, 4},
        {"{\"started\": 100, \"ended\": 3700, \"config\": {\"launch.nproc\": 3}}",
         ETI_PRICE_OF_RUN, 4},
        {"{\"started\": 100, \"ended\": 3700, \"config\": {\"launch.nproc\": 0}}",
         ETI_PRICE_OF_RANK, 4},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct eti_config_price price = {.hour = 4, .of = row[i].of};
        json_t *facts = json_loads(row[i].facts, 0, NULL);
        double cost = eti_run_cost(facts, &price);
        ok(isnan(row[i].cost) ? isnan(cost) : fabs(cost - row[i].cost) < 1e-12,
           "a run of %s costs %g", row[i].facts, cost);
        ok(isnan(eti_run_cost(facts, NULL)), "nobody knows what without a price");
        json_decref(facts);
    }
}

/* ---- the front ---- */

static void
test_front(struct et_ctx *cx)
{
    static const struct {
        const char *what;
        struct {
            double best, time;
            bool on_front;
        } run[3];
    } row[] = {
        {"one is better, one is quicker",
         {{0.9, 20, true}, {0.8, 10, true}, {0.7, 15, false}}},
        {"two are alike", {{0.9, 10, true}, {0.9, 10, true}, {0.8, 10, false}}},
        {"one is as good and quicker",
         {{0.9, 20, false}, {0.9, 10, true}, {0.1, 5, true}}},
        {"of some it is not known",
         {{NAN, 10, false}, {0.5, NAN, false}, {0.1, 30, true}}},
    };
    for (int less = 0; less < 2; less++)
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
            struct eti_comparison k = {.cx = cx, .n = 3, .less = less};
            bool right = true;
            for (int r = 0; r < 3; r++) {
                k.run[r].best = less ? -row[i].run[r].best : row[i].run[r].best;
                k.run[r].to_best[ETI_TIME] = row[i].run[r].time;
            }
            eti_comparison_front(&k);
            for (int r = 0; r < 3; r++)
                right = right && k.run[r].on_front == row[i].run[r].on_front;
            ok(right, "where %s the front has those that nobody beats (%s is better)",
               row[i].what, less ? "less" : "more");
        }
}

/* ---- words ---- */

static void
test_texts(void)
{
    static const struct {
        double kwh;
        const char *text;
    } energy[] = {{0.0123, "12.3 Wh"}, {0.999, "999 Wh"}, {0.9995, "1.00 kWh"},
                  {9.94, "9.94 kWh"},  {9.95, "10 kWh"},  {123.4, "123 kWh"},
                  {0, "0 Wh"},         {4e-6, "0.004 Wh"}};
    static const struct {
        double money;
        const char *text;
    } money[] = {{0.0123, "0.012 EUR"},
                 {0.094, "0.094 EUR"},
                 {0.095, "0.10 EUR"},
                 {12.5, "12.50 EUR"}};
    char buf[64], currency[] = "EUR";
    const struct eti_config_price price = {.hour = 1, .currency = currency};
    for (size_t i = 0; i < sizeof energy / sizeof *energy; i++)
        is_str(eti_energy_text(energy[i].kwh, buf, sizeof buf), energy[i].text,
               "%g kWh are written so", energy[i].kwh);
    for (size_t i = 0; i < sizeof money / sizeof *money; i++)
        is_str(eti_money_text(&price, money[i].money, buf, sizeof buf), money[i].text,
               "%g of money so", money[i].money);
}

/* JSON, with ' for ". */
static json_t *
read_quoted(const char *text)
{
    char json[256];
    snprintf(json, sizeof json, "%s", text);
    for (char *c = json; (c = strchr(c, '\''));)
        *c = '"';
    json_t *v = json_loads(json, 0, NULL);
    if (!v)
        bail("no JSON: %s", text);
    return v;
}

/* What differs among runs with such configurations, by key. */
static void
test_differences(void)
{
    static const struct {
        const char *config[3], *want, *what;
    } row[] = {
        {{"{'lr': 1, 'seed': 2}", "{'lr': 1, 'seed': 2}", NULL},
         "{}",
         "runs of the same recipe differ in nothing"},
        {{"{'lr': 1, 'seed': 2}", "{'lr': 1, 'seed': 3}", NULL},
         "{'seed': [2, 3]}",
         "what differs is told with each run's value"},
        {{"{'lr': 1}", "{'lr': 1}", "{'lr': 2}"},
         "{'lr': [1, 1, 2]}",
         "also where the last of three differs"},
        {{"{'run_name': 'a'}", "{'run_name': 'b'}", NULL},
         "{}",
         "a run's name is no difference"},
        {{"{'lr': 1}", "{'lr': 1, 'target': 'x'}", NULL},
         "{'target': [null, 'x']}",
         "a key that only the second has is"},
        {{"{'lr': 1, 'target': 'x'}", "{'lr': 1}", NULL},
         "{'target': ['x', null]}",
         "and one that only the first has"},
        {{"{'target': null}", "{}", NULL},
         "{}",
         "a key without a value is as one that is not there"},
        {{"{'ema': false}", "{'ema.half_life': '1ep'}", NULL},
         "{'ema': ['off', 'on']}",
         "a block that a run has turned off is off there, and on in the other"},
        {{"{'ema.half_life': '1ep', 'ema.update_interval': '1ba'}", "{'ema': false}",
          "{'ema.half_life': '2ep', 'ema.update_interval': '1ba'}"},
         "{'ema': ['on', 'off', 'on'], 'ema.half_life': ['1ep', null, '2ep']}",
         "and those that have it on are compared inside it"},
        {{"{'a.ema': false, 'lr': 1}", "{'a.ema.half_life': '1ep', 'lr': 2}", NULL},
         "{'a.ema': ['off', 'on'], 'lr': [1, 2]}",
         "also where it is in another block"},
        {{"{'ema': false}", "{'ema': true, 'ema.half_life': '1ep'}", NULL},
         "{'ema': ['off', 'on']}",
         "and that it is on is told once"},
        {{"{'ema': false}", "{'emas.x': 1}", NULL},
         "{'ema': [false, null], 'emas.x': [null, 1]}",
         "a key that only begins like the block is not in it"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_comparison k = {0};
        for (; k.n < 3 && row[i].config[k.n]; k.n++)
            k.run[k.n].facts =
                json_pack("{s:o}", "config", read_quoted(row[i].config[k.n]));
        json_t *got = eti_comparison_differences(&k), *want = read_quoted(row[i].want);
        if (!ok(json_equal(got, want), "%s", row[i].what)) {
            char *text = json_dumps(got, 0);
            diag("%s", text);
            free(text);
        }
        json_decref(got);
        json_decref(want);
        while (k.n > 0)
            json_decref(k.run[--k.n].facts);
    }
}

static void
test_unlike(void)
{
    static const struct {
        const char *key;
        bool unlike;
    } row[] = {
        {"eval_data.name", true},          {"eval_data.split", true},
        {"eval_data.num_samples", true},   {"eval_data.subset_num_batches", true},
        {"eval_data.datadir", true},       {"eval_data.path", true},
        {"eval_data.0.datadir", true},     {"eval_data.batch_size", false},
        {"train_data.datadir", false},     {"eval_interval", false},
        {"eval_data.transforms.0", false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        json_t *all = json_pack("{s:[i, i], s:[i, i]}", "seed", 1, 2, row[i].key, 1, 2);
        const char *key = eti_comparison_unlike(all);
        is_str(key ? key : "", row[i].unlike ? row[i].key : "",
               "runs that differ in %s were%s evaluated on the same data", row[i].key,
               row[i].unlike ? " not" : "");
        json_decref(all);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_targets(cx);
    test_energy(cx);
    test_processors(cx);
    test_alike(cx);
    test_prices(cx);
    test_run_cost();
    test_front(cx);
    test_texts();
    test_differences();
    test_unlike();
    et_ctx_free(&cx);
    return done();
}
