/* contest.c: see contest.h.
 *
 * A run is on the Pareto front if no other is at least as good and as quick, and better
 * or quicker. */
#include "config.h"

#include "core/run/contest.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/callbacks/callbacks.h"
#include "core/run/list.h"

enum { POINTS = 4096 };

static const json_t *
config_of(const struct eti_contender *r)
{
    return json_object_get(r->facts, "config");
}

/* ---- the metric and the target ---- */

/* "accuracy>=.765", as for train: a metric, < <= > or >=, a number. */
static et_status
parse_target(struct eti_contest *k, size_t *length)
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
eti_contest_choose(struct eti_contest *k)
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
is_reached(const struct eti_contest *k, double value)
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

/* What a run came to. Its facts have a best value, but perhaps of the other direction.
 */
static et_status
judge(struct eti_contest *k, struct eti_contender *r, struct et_events *e)
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
        r->best_seconds = best->t - started;
        r->best_samples = samples_at(e, best->ba);
    }
    if (hit) {
        r->seconds = hit->t - started;
        r->samples = samples_at(e, hit->ba);
    }
    et_free(k->cx, p);
    return status;
}

et_status
eti_contest_judge(struct eti_contest *k, int i)
{
    struct eti_contender *r = &k->run[i];
    struct et_events *e;
    char path[PATH_MAX];
    const char *directory = json_string_value(json_object_get(r->facts, "directory"));
    r->best = r->best_seconds = r->best_samples = r->seconds = r->samples = NAN;
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
eti_contest_cost(const struct eti_contest *k, const struct eti_contender *r)
{
    bool samples = k->by_samples;
    if (k->has_target)
        return samples ? r->samples : r->seconds;
    return samples ? r->best_samples : r->best_seconds;
}

static bool
beats(const struct eti_contest *k, const struct eti_contender *a,
      const struct eti_contender *b)
{
    double x = eti_contest_cost(k, a), y = eti_contest_cost(k, b),
           sign = k->less ? -1 : 1;
    double good = sign * a->best, other = sign * b->best;
    return x <= y && good >= other && (x < y || good > other);
}

void
eti_contest_front(struct eti_contest *k)
{
    for (int i = 0; i < k->n; i++) {
        struct eti_contender *r = &k->run[i];
        r->on_front = isfinite(r->best) && isfinite(eti_contest_cost(k, r));
        for (int j = 0; j < k->n; j++)
            r->on_front = r->on_front && !beats(k, &k->run[j], r);
    }
}

/* ---- what differs ---- */

static bool
differs(const struct eti_contest *k, const char *key)
{
    const json_t *first = json_object_get(config_of(&k->run[0]), key);
    for (int i = 1; i < k->n; i++) {
        const json_t *other = json_object_get(config_of(&k->run[i]), key);
        if (!first != !other ||
            (first && !json_equal((json_t *)first, (json_t *)other)))
            return true;
    }
    return false;
}

json_t *
eti_contest_differences(const struct eti_contest *k)
{
    json_t *all = json_object(), *v;
    const char *key;
    for (int i = 0; i < k->n; i++)
        json_object_foreach((json_t *)config_of(&k->run[i]), key, v)
        {
            if (json_object_get(all, key) || strcmp(key, "run_name") == 0 ||
                !differs(k, key))
                continue;
            json_t *values = json_array();
            for (int j = 0; j < k->n; j++) {
                json_t *of = json_object_get(config_of(&k->run[j]), key);
                json_array_append_new(values, of ? json_incref(of) : json_null());
            }
            json_object_set_new(all, key, values);
        }
    return all;
}

const char *
eti_contest_unlike(const json_t *differences)
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
