/* SPDX-License-Identifier: Apache-2.0 */
/* comparison.c: see comparison.h.
 *
 * A run is on the Pareto front if no other is at least as good and as quick, and better
 * or quicker. */
#include "config.h"

#include "core/library/comparison.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/callbacks/callbacks.h"
#include "core/library/list.h"

enum { POINTS = 4096 };
const char *const eti_figure_names[] = {"time",    "cost", "energy",
                                        "samples", "cpu",  NULL};

static const json_t *
config_of(const struct eti_compared_run *r)
{
    return json_object_get(r->facts, "config");
}

/* ---- the metric and the target ---- */

/* "accuracy>=.765", as for train: a metric, < <= > or >=, a number. */
static et_status
parse_target(struct eti_comparison *k, size_t *length)
{
    const char *text = k->target_text;
    *length = strcspn(text, "<> ");
    const char *op = text + *length + strspn(text + *length, " ");
    char *end = NULL;
    k->has_target = true;
    k->below = *op == '<';
    k->or_equal = op[0] && op[1] == '=';
    if (*op == '<' || *op == '>')
        k->target = strtod(op + 1 + k->or_equal, &end);
    if (*length == 0 || !end || end == op + 1 + k->or_equal || *end)
        return ET_FAIL(k->cx, ET_EINVAL, "'%s' is not METRIC>=NUMBER or METRIC<=NUMBER",
                       text);
    return ET_OK;
}

et_status
eti_comparison_choose(struct eti_comparison *k)
{
    const char *name = NULL, *full = NULL;
    size_t length = 0;
    k->metric[0] = '\0';
    k->has_target = k->less = false;
    if (k->target_text) {
        ET_TRY(parse_target(k, &length));
        for (int i = 0; i < k->n && !full; i++)
            (void)eti_facts_metric(k->run[i].facts, k->target_text, length, &full);
        if (!full)
            return ET_FAIL(k->cx, ET_ENOENT,
                           "in none of the runs one metric is called '%.*s'",
                           (int)length, k->target_text);
        name = full;
    } else {
        for (int i = 0; i < k->n && !name; i++)
            (void)eti_run_metric(k->run[i].facts, &name);
    }
    if (name)
        snprintf(k->metric, sizeof k->metric, "%s", name);
    k->less = name && (k->has_target ? k->below : eti_less_is_better(name));
    return ET_OK;
}

static bool
is_reached(const struct eti_comparison *k, double value)
{
    if (k->or_equal && value == k->target)
        return true;
    return k->below ? value < k->target : value > k->target;
}

/* Samples after batch BA. */
static double
samples_at(struct et_events *e, int64_t ba)
{
    struct et_series_point p[2];
    int n;
    if (et_events_fetch(e, "time/sample", ba, ba, 2, p, &n) == ET_OK && n > 0)
        return p[0].value;
    return NAN;
}

/* ---- energy and processors' time ---- */

enum { RANKS = 1024, MOMENTS = 2 };
static const double GAP = 5; /* seconds without a word: nothing ran meanwhile */

/* Joules that were drawn, and processors' seconds used, before each of some moments. */
struct draw {
    double until[MOMENTS]; /* seconds since 1970; NaN: none is asked for */
    double gpu[MOMENTS], host[MOMENTS], cpu[MOMENTS];
    bool has_gpu, has_host, has_cpu;
    int ranks, machines;
    double at[RANKS];                      /* when each was last heard of; 0: not yet */
    double used[RANKS], per_second[RANKS]; /* of processors, as it then said */
};

/* Watts for the time that one record stands for: that since the one before. */
static void
add_power(const struct draw *d, double *joules, double t, double seconds, double watts)
{
    for (int i = 0; i < MOMENTS; i++)
        joules[i] += t <= d->until[i] && watts > 0 ? watts * seconds : 0;
}

/* USED seconds of processors by rank R at T, which was last heard of at BEFORE. A
 * process that went on with the run has begun to count again. */
static void
add_cpu(struct draw *d, int r, double before, double t, double used)
{
    double more = used >= d->used[r] ? used - d->used[r] : used;
    double past = before > 0 ? t - before : INFINITY;
    d->has_cpu = true;
    for (int i = 0; i < MOMENTS; i++) {
        if (t <= d->until[i])
            d->cpu[i] += more;
        else if (before < d->until[i] && past <= GAP)
            d->cpu[i] += more * (d->until[i] - before) / past;
    }
    d->used[r] = used;
    d->per_second[r] = past <= GAP && past > 0 ? more / past : 0;
}

/* What was used behind the last word of each rank: as much a second as before it. */
static void
add_last_cpu(struct draw *d)
{
    for (int r = 0; r < d->ranks; r++)
        for (int i = 0; i < MOMENTS; i++) {
            double rest = d->until[i] - d->at[r];
            d->cpu[i] += rest > 0 && rest <= GAP ? rest * d->per_second[r] : 0;
        }
}

static void
add_health(struct draw *d, const struct et_record *r)
{
    if (r->rank < 0 || r->rank >= RANKS)
        return;
    double before = d->at[r->rank], since = r->t - before;
    double seconds = since >= 0 && since <= GAP ? since : 1; /* they come each second */
    d->at[r->rank] = r->t;
    d->ranks = r->rank >= d->ranks ? r->rank + 1 : d->ranks;
    for (int i = 0; i < r->n; i++) {
        const struct et_log_entry *e = &r->entry[i];
        if (strcmp(e->name, "power_w") == 0) {
            d->has_gpu = true;
            add_power(d, d->gpu, r->t, seconds, e->value);
        } else if (strcmp(e->name, "host_power_w") == 0) {
            d->has_host = true;
            add_power(d, d->host, r->t, seconds, e->value);
        } else if (strcmp(e->name, "cpu_s") == 0) {
            add_cpu(d, r->rank, before, r->t, e->value);
        }
    }
}

/* Each machine's first rank tells of it. */
static void
count_machines(struct draw *d, const struct et_record *r, bool seen[RANKS])
{
    for (int i = 0; i < r->n && r->rank >= 0 && r->rank < RANKS; i++)
        if (strcmp(r->entry[i].name, "host_cpu") == 0 && !seen[r->rank]) {
            seen[r->rank] = true;
            d->machines++;
        }
}

static et_status
read_health(struct et_events *e, struct draw *d)
{
    bool seen[RANKS] = {false}, got = true;
    struct et_record r;
    ET_TRY(et_events_only(e, UINT64_C(1) << ET_RECORD_HEALTH));
    while (got) {
        ET_TRY(et_events_next(e, &r, &got));
        if (!got)
            break;
        add_health(d, &r);
        count_machines(d, &r, seen);
    }
    add_last_cpu(d);
    return ET_OK;
}

/* Of a run whose ranks said nothing: one, on one machine. */
static double
price_factor(const struct eti_comparison *k, const struct draw *d)
{
    int n = k->price->of == ETI_PRICE_OF_RANK      ? d->ranks
            : k->price->of == ETI_PRICE_OF_MACHINE ? d->machines
                                                   : 1;
    return k->price->hour / 3600 * (n > 0 ? n : 1);
}

static et_status
judge_draw(struct eti_comparison *k, struct eti_compared_run *r, struct et_events *e)
{
    void *block;
    double started = json_number_value(json_object_get(r->facts, "started"));
    double *to[MOMENTS] = {r->to_best, r->to_target};
    if (k->by != ETI_ENERGY && k->by != ETI_CPU_TIME &&
        !(k->by == ETI_COST && eti_comparison_has_price(k)))
        return ET_OK;
    ET_TRY(et_alloc(k->cx, sizeof(struct draw), &block));
    struct draw *d = block;
    for (int i = 0; i < MOMENTS; i++)
        d->until[i] = started + to[i][ETI_TIME];
    et_status status = read_health(e, d);
    for (int i = 0; i < MOMENTS && status == ET_OK; i++) {
        double joules = d->has_gpu ? d->gpu[i] : d->host[i];
        if (joules > 0 && isfinite(to[i][ETI_TIME]))
            to[i][ETI_ENERGY] = joules / 3.6e6;
        if (d->has_cpu && isfinite(to[i][ETI_TIME]))
            to[i][ETI_CPU_TIME] = d->cpu[i];
        if (k->by == ETI_COST)
            to[i][ETI_COST] = to[i][ETI_TIME] * price_factor(k, d);
    }
    et_free(k->cx, d);
    return status;
}

bool
eti_comparison_has_price(const struct eti_comparison *k)
{
    return k->price && isfinite(k->price->hour);
}

double
eti_run_cost(const json_t *facts, const struct eti_config_price *price)
{
    const json_t *ended = json_object_get(facts, "ended");
    const json_t *training = json_object_get(facts, "train_seconds");
    json_int_t ranks = json_integer_value(
        json_object_get(json_object_get(facts, "config"), "launch.nproc"));
    double seconds = NAN;
    if (json_is_number(ended))
        seconds = json_number_value(ended) -
                  json_number_value(json_object_get(facts, "started"));
    else if (json_is_number(training))
        seconds = json_number_value(training);
    if (!price || !(seconds >= 0))
        return NAN;
    return seconds / 3600 * price->hour *
           (price->of == ETI_PRICE_OF_RANK && ranks > 1 ? (double)ranks : 1);
}

const char *
eti_energy_text(double kwh, char *buf, size_t size)
{
    if (kwh >= 0.9995)
        snprintf(buf, size, kwh < 9.95 ? "%.2f kWh" : "%.0f kWh", kwh);
    else
        snprintf(buf, size, "%.3g Wh", kwh * 1000);
    return buf;
}

const char *
eti_money_text(const struct eti_config_price *price, double money, char *buf,
               size_t size)
{
    snprintf(buf, size, money < 0.095 ? "%.2g %s" : "%.2f %s", money,
             price && price->currency ? price->currency : "");
    return buf;
}

/* ---- what a run came to ---- */

/* Its facts have a best value, but perhaps of the other direction. */
static et_status
judge(struct eti_comparison *k, struct eti_compared_run *r, struct et_events *e)
{
    struct et_series_point *p;
    void *block;
    const struct et_series_point *best = NULL, *hit = NULL;
    double started = json_number_value(json_object_get(r->facts, "started"));
    int n;
    ET_TRY(et_alloc(k->cx, POINTS * sizeof *p, &block));
    p = block;
    et_status status = et_events_fetch(e, k->metric, 0, INT64_MAX, POINTS, p, &n);
    if (status != ET_OK)
        n = 0;
    for (int i = 0; i < n; i++) {
        if (!best || (k->less ? p[i].value < best->value : p[i].value > best->value))
            best = &p[i];
        if (!hit && k->has_target && is_reached(k, p[i].value))
            hit = &p[i];
    }
    if (best) {
        r->best = best->value;
        r->to_best[ETI_TIME] = best->t - started;
        r->to_best[ETI_SAMPLES] = samples_at(e, best->ba);
    }
    if (hit) {
        r->to_target[ETI_TIME] = hit->t - started;
        r->to_target[ETI_SAMPLES] = samples_at(e, hit->ba);
    }
    et_free(k->cx, p);
    return status == ET_OK ? judge_draw(k, r, e) : status;
}

et_status
eti_comparison_judge(struct eti_comparison *k, int i)
{
    struct eti_compared_run *r = &k->run[i];
    struct et_events *e;
    char path[PATH_MAX];
    const char *directory = json_string_value(json_object_get(r->facts, "directory"));
    r->best = NAN;
    for (int f = 0; f < ETI_FIGURES; f++)
        r->to_best[f] = r->to_target[f] = NAN;
    if (!k->metric[0])
        return ET_OK;
    snprintf(path, sizeof path, "%s/events.log", directory ? directory : "");
    ET_TRY(et_events_open(k->cx, path, &e));
    et_status status = judge(k, r, e);
    et_events_close(&e);
    return status;
}

/* ---- the Pareto front ---- */

double
eti_comparison_cost(const struct eti_comparison *k, const struct eti_compared_run *r)
{
    return k->has_target ? r->to_target[k->by] : r->to_best[k->by];
}

static bool
beats(const struct eti_comparison *k, const struct eti_compared_run *a,
      const struct eti_compared_run *b)
{
    double x = eti_comparison_cost(k, a), y = eti_comparison_cost(k, b),
           sign = k->less ? -1 : 1;
    double good = sign * a->best, other = sign * b->best;
    return x <= y && good >= other && (x < y || good > other);
}

void
eti_comparison_front(struct eti_comparison *k)
{
    for (int i = 0; i < k->n; i++) {
        struct eti_compared_run *r = &k->run[i];
        r->on_front = isfinite(r->best) && isfinite(eti_comparison_cost(k, r));
        for (int j = 0; j < k->n; j++)
            r->on_front = r->on_front && !beats(k, &k->run[j], r);
    }
}

/* ---- what differs ---- */

/* What R has at KEY; NULL: nothing, written down or not. */
static json_t *
value_at(const struct eti_compared_run *r, const char *key)
{
    json_t *v = json_object_get(config_of(r), key);
    return json_is_null(v) ? NULL : v;
}

static bool
differs(const struct eti_comparison *k, const char *key)
{
    const json_t *first = value_at(&k->run[0], key);
    for (int i = 1; i < k->n; i++) {
        const json_t *other = value_at(&k->run[i], key);
        if (!first != !other ||
            (first && !json_equal((json_t *)first, (json_t *)other)))
            return true;
    }
    return false;
}

/* Have some of the runs keys in BLOCK, while it is off in others? */
static bool
is_partly_off(const struct eti_comparison *k, const char *block)
{
    const size_t n = strlen(block);
    bool is_off = false, is_on = false;
    const char *key;
    json_t *v;
    for (int i = 0; i < k->n; i++)
        json_object_foreach((json_t *)config_of(&k->run[i]), key, v)
        {
            is_off = is_off || (json_is_false(v) && strcmp(key, block) == 0);
            is_on = is_on || (strncmp(key, block, n) == 0 && key[n] == '.');
        }
    return is_off && is_on;
}

/* "checkpoint", of that and of "checkpoint.keep", where a run has `checkpoint: false`,
 * in BUF. False: no run has turned off a block that KEY is in. */
static bool
find_block(const struct eti_comparison *k, const char *key, char *buf, size_t size)
{
    for (size_t n = strcspn(key, ".");; n += 1 + strcspn(key + n + 1, ".")) {
        snprintf(buf, size, "%.*s", (int)n, key);
        if (is_partly_off(k, buf))
            return true;
        if (!key[n])
            return false;
    }
}

/* Do those runs that have KEY differ in it? */
static bool
differs_inside(const struct eti_comparison *k, const char *key)
{
    const json_t *first = NULL;
    for (int i = 0; i < k->n; i++) {
        const json_t *v = value_at(&k->run[i], key);
        if (v && first && !json_equal((json_t *)first, (json_t *)v))
            return true;
        first = first ? first : v;
    }
    return false;
}

/* What the runs have at KEY; of a BLOCK that is off in some, "off" and "on". */
static void
add_difference(const struct eti_comparison *k, const char *key, bool block, json_t *all)
{
    json_t *values = json_array();
    for (int i = 0; i < k->n; i++) {
        json_t *of = json_object_get(config_of(&k->run[i]), key);
        json_array_append_new(values,
                              block ? json_string(json_is_false(of) ? "off" : "on")
                              : of  ? json_incref(of)
                                    : json_null());
    }
    json_object_set_new(all, key, values);
}

json_t *
eti_comparison_differences(const struct eti_comparison *k)
{
    json_t *all = json_object(), *v;
    const char *key;
    char block[512];
    for (int i = 0; i < k->n; i++)
        json_object_foreach((json_t *)config_of(&k->run[i]), key, v)
        {
            if (json_object_get(all, key) || strcmp(key, "run_name") == 0 ||
                !differs(k, key))
                continue;
            const bool in_block = find_block(k, key, block, sizeof block);
            if (in_block && !json_object_get(all, block))
                add_difference(k, block, true, all);
            if (!in_block || (strcmp(key, block) != 0 && differs_inside(k, key)))
                add_difference(k, key, false, all);
        }
    return all;
}

const char *
eti_comparison_unlike(const json_t *differences)
{
    static const char *const same[] = {
        "name", "split", "num_samples", "subset_num_batches", "datadir", "path"};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)differences, key, v)
    {
        const char *last = strrchr(key, '.');
        if (strncmp(key, "eval_data.", 10) != 0 || !last)
            continue;
        for (size_t i = 0; i < sizeof same / sizeof *same; i++)
            if (strcmp(last + 1, same[i]) == 0)
                return key;
    }
    return NULL;
}
