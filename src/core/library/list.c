/* SPDX-License-Identifier: Apache-2.0 */
/* list.c: see list.h. */
#define _GNU_SOURCE
#include "config.h"

#include "core/library/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/callbacks/callbacks.h"
#include "core/loggers/progress.h"
#include "etude/diagnostic.h"

/* ---- which ---- */

struct subject {
    const json_t *facts;
    char text[ETI_FACT_TEXT];
};

/* Words match what a person sees of a run. */
static bool
has_word(void *data, const char *word)
{
    static const char *const keys[] = {"name",       "state",     "recipe", "model",
                                       "train_data", "directory", "tags"};
    const struct subject *s = data;
    char text[ETI_FACT_TEXT];
    size_t i;
    json_t *v;
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = eti_facts_get(s->facts, keys[i], text);
        if (value && strcasestr(value, word))
            return true;
    }
    json_array_foreach(json_object_get(s->facts, "algorithms"), i,
                       v) if (strcasestr(json_string_value(v), word)) return true;
    return false;
}

static const char *
value(void *data, const char *key)
{
    struct subject *s = data;
    return eti_facts_get(s->facts, key, s->text);
}

json_t *
eti_runs_choose(const struct eti_filter *filter, const json_t *list)
{
    json_t *chosen = json_array(), *facts;
    size_t i;
    json_array_foreach(list, i, facts)
    {
        struct subject data = {.facts = facts};
        const struct eti_subject s = {
            .data = &data,
            .has_word = has_word,
            .value = value,
        };
        if (eti_filter_matches(filter, &s))
            json_array_append(chosen, facts);
    }
    return chosen;
}

/* ---- keys that there are ---- */

/* Of every run, whether or not it has a value yet. */
static const char *const own_keys[] = {
    "directory",     "name",         "id",         "state",   "exit_code", "started",
    "ended",         "pid",          "boot_id",    "version", "threads",   "written",
    "recipe",        "reason",       "ep",         "ba",      "sp",        "resumes",
    "train_seconds", "tags",         "problem",    "model",   "seed",      "precision",
    "train_data",    "max_duration", "algorithms",
};
enum { OWN_KEYS = sizeof own_keys / sizeof *own_keys, NAMES = 1024 };

static bool
is_known(void *data, const char *key)
{
    const json_t *list = data, *facts;
    char text[ETI_FACT_TEXT];
    size_t i;
    for (i = 0; i < OWN_KEYS; i++)
        if (strcmp(own_keys[i], key) == 0)
            return true;
    json_array_foreach(list, i, facts)
    {
        if (eti_facts_get(facts, key, text))
            return true;
    }
    return false;
}

/* The last part of a metric's name, as people write it. */
static const char *
short_name(const char *metric)
{
    const char *slash = strrchr(metric, '/');
    return slash ? slash + 1 : metric;
}

/* Puts names that a key may have into NAME [NAMES]: those of the newest runs. */
static int
gather_names(const json_t *list, const char **name)
{
    const json_t *facts;
    const char *key;
    json_t *v;
    size_t i;
    int n = 0;
    for (; n < OWN_KEYS; n++)
        name[n] = own_keys[n];
    json_array_foreach(list, i, facts)
    {
        json_object_foreach(json_object_get(facts, "config"), key, v)
        {
            if (n < NAMES)
                name[n++] = key;
        }
        json_object_foreach(json_object_get(facts, "metrics"), key, v)
        {
            if (n < NAMES)
                name[n++] = short_name(key);
        }
        if (n == NAMES || i == 8)
            break;
    }
    return n;
}

/* The shortest of N names that begin with KEY in upper or lower case: "acc" is short
 * for Accuracy. NULL: no name does, or KEY is too short to tell. */
static const char *
begun_by(const char *key, const char *const *name, int n)
{
    enum { LEAST = 3 };
    const size_t length = strlen(key);
    const char *found = NULL;
    for (int i = 0; i < n && length >= LEAST; i++)
        if (strncasecmp(name[i], key, length) == 0 &&
            (!found || strlen(name[i]) < strlen(found)))
            found = name[i];
    return found;
}

et_status
eti_runs_check(struct et_ctx *cx, const struct eti_filter *filter, const char *sort,
               const json_t *list)
{
    const char *name[NAMES], *unknown = NULL;
    if (json_array_size(list) == 0)
        return ET_OK;
    if (filter)
        unknown = eti_filter_unknown(filter, is_known, (void *)list);
    if (!unknown && sort) {
        sort += *sort == '-';
        unknown = is_known((void *)list, sort) ? NULL : sort;
    }
    if (!unknown)
        return ET_OK;
    const int n = gather_names(list, name);
    const char *near = et_nearest(unknown, name, n);
    near = near ? near : begun_by(unknown, name, n);
    return near ? ET_FAIL(cx, ET_EINVAL, "no run has the key '%s' (did you mean '%s'?)",
                          unknown, near)
                : ET_FAIL(cx, ET_EINVAL, "no run has the key '%s'", unknown);
}

/* ---- in which order ---- */

struct row {
    json_t *facts;
    char text[ETI_FACT_TEXT]; /* what it is sorted by */
    bool known, is_number;
    double number;
    int direction;
    size_t place; /* before */
};

static int
compare(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    int order = 0;
    if (a->known != b->known)
        return a->known ? -1 : 1;
    if (a->is_number && b->is_number)
        order = (a->number > b->number) - (a->number < b->number);
    else if (a->is_number != b->is_number)
        order = a->is_number ? -1 : 1; /* or 2, 10, 1a and 2 again were in order */
    else
        order = strcmp(a->text, b->text);
    if (order != 0)
        return order * a->direction;
    return a->place < b->place ? -1 : 1;
}

json_t *
eti_runs_sort(const json_t *list, const char *key)
{
    size_t n = json_array_size(list);
    struct row *row = calloc(n + 1, sizeof *row);
    json_t *sorted = json_array();
    bool reversed = *key == '-';
    const char *full;
    char *end;
    key += reversed;
    for (size_t i = 0; row && i < n; i++) {
        struct row *r = &row[i];
        r->facts = json_array_get((json_t *)list, i);
        const char *text = eti_facts_get(r->facts, key, r->text);
        r->known = text != NULL;
        size_t length = text ? strnlen(text, sizeof r->text - 1) : 0;
        memmove(r->text, text ? text : "", length);
        r->text[length] = '\0';
        r->number = strtod(r->text, &end);
        r->is_number = end != r->text && !*end && !isnan(r->number);
        bool less = !eti_facts_metric(r->facts, key, strlen(key), &full) ||
                    eti_less_is_better(full);
        r->direction = less != reversed ? 1 : -1;
        r->place = i;
    }
    if (row)
        qsort(row, n, sizeof *row, compare);
    for (size_t i = 0; row && i < n; i++)
        json_array_append(sorted, row[i].facts);
    free(row);
    return sorted;
}

/* ---- as text ---- */

const json_t *
eti_run_metric(const json_t *facts, const char **name)
{
    json_t *metrics = json_object_get(facts, "metrics"), *v;
    const json_t *found = NULL;
    const char *key;
    json_object_foreach(metrics, key, v)
    {
        if (!found && strncmp(key, "metrics/", 8) == 0 &&
            strncmp(key, "metrics/train/", 14) != 0) {
            *name = key;
            found = v;
        }
    }
    return found;
}

enum eti_state_kind
eti_run_kind(const json_t *facts)
{
    const char *state = json_string_value(json_object_get(facts, "state"));
    enum eti_state_kind kind = eti_state_kind_of(state);
    bool has_ended = kind == ETI_STATE_DONE || kind == ETI_STATE_HALTED;
    if (!has_ended && !eti_facts_is_alive(facts))
        kind = ETI_STATE_BROKEN;
    return kind;
}

const char *
eti_run_progress(const json_t *facts, char *buf, size_t size)
{
    static const char *const units[] = {"ep", "ba", "sp"};
    char text[ETI_FACT_TEXT];
    const char *limit = eti_facts_get(facts, "max_duration", text);
    if (!limit)
        limit = "";
    size_t n = strlen(limit);
    const json_t *ba = json_object_get(facts, "ba");
    for (size_t i = 0; n > 2 && i < sizeof units / sizeof *units; i++) {
        const json_t *done = json_object_get(facts, units[i]);
        if (strcmp(limit + n - 2, units[i]) == 0 && json_is_integer(done)) {
            snprintf(buf, size, "%lld/%s", (long long)json_integer_value(done), limit);
            return buf;
        }
    }
    if (json_is_integer(ba))
        snprintf(buf, size, "%lldba", (long long)json_integer_value(ba));
    else
        snprintf(buf, size, "-");
    return buf;
}

double
eti_run_speed(const json_t *facts)
{
    const json_t *told = json_object_get(json_object_get(facts, "metrics"),
                                         "throughput/samples_per_sec");
    const json_t *last = json_object_get(told, "last");
    double seconds = json_number_value(json_object_get(facts, "train_seconds"));
    if (json_is_number(last))
        return json_number_value(last);
    return seconds > 0 ? json_number_value(json_object_get(facts, "sp")) / seconds
                       : NAN;
}

double
eti_run_done(const json_t *facts)
{
    const json_t *all = json_object_get(facts, "batches");
    const json_t *ba = json_object_get(facts, "ba");
    char text[ETI_FACT_TEXT], unit[8];
    double done, of;
    if (json_is_integer(all) && json_is_integer(ba))
        return fmin(1, json_number_value(ba) / json_number_value(all));
    if (sscanf(eti_run_progress(facts, text, sizeof text), "%lf/%lf%7s", &done, &of,
               unit) == 3 &&
        of > 0)
        return fmin(1, done / of);
    return NAN;
}

const char *
eti_run_when(double t, double today, char *buf, size_t size)
{
    time_t then = (time_t)t, now = (time_t)today;
    struct tm a, b;
    localtime_r(&then, &a);
    localtime_r(&now, &b);
    bool year = a.tm_year == b.tm_year;
    const char *form = year && a.tm_yday == b.tm_yday ? "today %H:%M"
                       : year                         ? "%m-%d %H:%M"
                                                      : "%Y-%m-%d";
    if (t <= 0 || strftime(buf, size, form, &a) == 0)
        snprintf(buf, size, "-");
    return buf;
}
