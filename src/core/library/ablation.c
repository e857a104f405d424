/* SPDX-License-Identifier: Apache-2.0 */
/* ablation.c: see ablation.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/callbacks/callbacks.h"
#include "core/library/ablation.h"
#include "core/library/list.h"
#include "core/library/state.h"

enum { SEEDS = 64 }; /* runs of a kind that count */

static const char prefix[] = "algorithms.";
enum { PREFIX = sizeof prefix - 1 };

/* Is KEY that of method NAME, or one of its options? */
static bool
is_of_method(const char *key, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(key, prefix, PREFIX) == 0 && strncmp(key + PREFIX, name, n) == 0 &&
           (key[PREFIX + n] == '\0' || key[PREFIX + n] == '.');
}

bool
eti_ablation_has(const json_t *facts, const char *name)
{
    char key[PREFIX + ETI_ABLATION_NAME];
    const json_t *all = json_object_get(facts, "algorithms");
    snprintf(key, sizeof key, "%s%s", prefix, name);
    if (json_is_false(json_object_get(json_object_get(facts, "config"), key)))
        return false;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *one = json_string_value(json_array_get(all, i));
        if (one && strcmp(one, name) == 0)
            return true;
    }
    return false;
}

static bool
is_seed(const char *key)
{
    const size_t n = strlen(key);
    return strcmp(key, "seed") == 0 || (n > 5 && strcmp(key + n - 5, ".seed") == 0);
}

/* Does KEY say nothing of what was trained, or only of the method LESS (NULL: none)? */
static bool
is_aside(const char *key, const char *less)
{
    return is_seed(key) || strcmp(key, "run_name") == 0 ||
           strcmp(key, "run_directory") == 0 || (less && is_of_method(key, less));
}

/* Has B all settings of A, but for those aside? */
static bool
covers(const json_t *a, const json_t *b, const char *less)
{
    json_t *config = json_object_get(a, "config"), *value;
    const json_t *other = json_object_get(b, "config");
    const char *key;
    json_object_foreach(config, key, value)
    {
        if (!is_aside(key, less) && !json_equal(value, json_object_get(other, key)))
            return false;
    }
    return true;
}

static bool
are_equal(const json_t *a, const json_t *b, const char *less)
{
    return covers(a, b, less) && covers(b, a, less);
}

/* The METRIC of the last evaluation of a run that counts; NaN. */
static double
value_of(const json_t *facts, const char *metric)
{
    const char *state = json_string_value(json_object_get(facts, "state"));
    const json_t *entry = json_object_get(json_object_get(facts, "metrics"), metric);
    const json_t *last = json_object_get(entry, "last");
    const char *joined = json_string_value(json_object_get(facts, "joined"));
    if (eti_state_kind_of(state) != ETI_STATE_DONE || (joined && *joined))
        return NAN;
    return json_is_number(last) ? json_number_value(last) : NAN;
}

static int
by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double
median(double *v, int n)
{
    if (n == 0)
        return NAN;
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Those of LIST that are as BASE, without the method LESS (NULL: with all). */
static struct eti_ablation_runs
gather(const json_t *list, const json_t *base, const char *less, const char *metric)
{
    struct eti_ablation_runs out = {.n = 0};
    double value[SEEDS], seconds[SEEDS];
    int timed = 0;
    for (size_t i = 0; i < json_array_size(list) && out.n < SEEDS; i++) {
        const json_t *one = json_array_get(list, i);
        const json_t *took = json_object_get(one, "train_seconds");
        const double v = value_of(one, metric);
        if (!isfinite(v) || (less && eti_ablation_has(one, less)) ||
            !are_equal(base, one, less))
            continue;
        value[out.n++] = v;
        if (json_is_number(took))
            seconds[timed++] = json_number_value(took);
    }
    out.value = median(value, out.n);
    out.seconds = median(seconds, timed);
    return out;
}

/* Has the run the methods NAME [N]? */
static bool
has_all(const json_t *facts, const char *const *name, int n)
{
    for (int i = 0; i < n; i++)
        if (!eti_ablation_has(facts, name[i]))
            return false;
    return true;
}

/* How many methods the run has that are not off. */
static int
count_methods(const json_t *facts)
{
    const json_t *all = json_object_get(facts, "algorithms");
    int n = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *name = json_string_value(json_array_get(all, i));
        n += name && eti_ablation_has(facts, name);
    }
    return n;
}

/* What the runs beside BASE tell; false: none is without one of its methods. */
static bool
tell(const json_t *list, const json_t *base, const char *const *name, int n,
     struct eti_ablation *out)
{
    const char *metric = NULL, *run = json_string_value(json_object_get(base, "name"));
    *out = (struct eti_ablation){.n = 0};
    eti_run_metric(base, &metric);
    if (!metric || !isfinite(value_of(base, metric)))
        return false;
    for (int i = 0; i < n && out->n < ETI_ABLATION_METHODS; i++) {
        const struct eti_ablation_runs without = gather(list, base, name[i], metric);
        if (without.n == 0)
            continue;
        snprintf(out->method[out->n].name, ETI_ABLATION_NAME, "%s", name[i]);
        out->method[out->n++].without = without;
    }
    out->with = gather(list, base, NULL, metric);
    out->less = eti_less_is_better(metric);
    snprintf(out->metric, sizeof out->metric, "%s", metric);
    snprintf(out->run, sizeof out->run, "%s", run ? run : "-");
    return out->n > 0;
}

/* ---- runs that are of the recipe ---- */

/* Does KEY say what is learned, and from what? */
static bool
is_of_subject(const char *key)
{
    return strncmp(key, "model.", 6) == 0 || strcmp(key, "train_data.name") == 0 ||
           strcmp(key, "train_data.path") == 0;
}

/* A recipe leaves settings to be chosen, which its runs then have. */
static bool
is_left_open(const json_t *value)
{
    const char *text = json_string_value(value);
    return json_is_null(value) || (text && strcmp(text, "auto") == 0);
}

/* How many settings of the recipe CONFIG the run has otherwise, methods left out; -1:
 * it learns something else. *FIRST: one of them, or NULL. */
static int
differences(json_t *config, const json_t *facts, const char **first)
{
    const json_t *own = json_object_get(facts, "config");
    const char *key;
    json_t *value;
    int n = 0;
    *first = NULL;
    json_object_foreach(config, key, value)
    {
        if (is_aside(key, NULL) || strncmp(key, prefix, PREFIX) == 0 ||
            is_left_open(value) || json_equal(value, json_object_get(own, key)))
            continue;
        if (is_of_subject(key))
            return -1;
        *first = *first ? *first : key;
        n++;
    }
    return n;
}

struct unlike {
    char (*key)[ETI_ABLATION_NAME];
    int n, most;
};

static void
note(struct unlike *u, const char *key)
{
    char text[ETI_ABLATION_NAME];
    snprintf(text, sizeof text, "%s", key);
    if (u->n < u->most)
        memcpy(u->key[u->n], text, sizeof text);
    u->n++;
}

/* Is the method NAME on in CONFIG? An option of it may be false. */
static bool
is_on(const json_t *config, const char *name)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)config, key, value)
    {
        if (is_of_method(key, name))
            return key[PREFIX + strlen(name)] == '.' || !json_is_false(value);
    }
    return false;
}

/* The method that KEY is about; false: it is about none. */
static bool
method_of(const char *key, char name[ETI_ABLATION_NAME])
{
    if (strncmp(key, prefix, PREFIX) != 0)
        return false;
    snprintf(name, ETI_ABLATION_NAME, "%.*s", (int)strcspn(key + PREFIX, "."),
             key + PREFIX);
    return true;
}

/* Methods that are on in one of both alone, each once. */
static void
note_methods(struct unlike *u, const json_t *config, const json_t *facts)
{
    const json_t *all = json_object_get(facts, "algorithms");
    char name[ETI_ABLATION_NAME], last[ETI_ABLATION_NAME] = "";
    char path[PREFIX + ETI_ABLATION_NAME];
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)config, key, value)
    {
        if (!method_of(key, name) || strcmp(name, last) == 0)
            continue;
        memcpy(last, name, sizeof last);
        snprintf(path, sizeof path, "%s%s", prefix, name);
        if (is_on(config, name) && !eti_ablation_has(facts, name))
            note(u, path);
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *one = json_string_value(json_array_get(all, i));
        if (!one || is_on(config, one) || !eti_ablation_has(facts, one))
            continue;
        snprintf(path, sizeof path, "%s%.63s", prefix, one);
        note(u, path);
    }
}

int
eti_ablation_differences(const json_t *config, const json_t *facts,
                         char (*key)[ETI_ABLATION_NAME], int most)
{
    const json_t *own = json_object_get(facts, "config");
    struct unlike u = {.key = key, .most = most};
    char name[ETI_ABLATION_NAME];
    const char *path;
    json_t *value;
    note_methods(&u, config, facts);
    json_object_foreach((json_t *)config, path, value)
    {
        const bool is_option = method_of(path, name);
        if (is_aside(path, NULL) || is_left_open(value) ||
            (is_option && !(is_on(config, name) && eti_ablation_has(facts, name))) ||
            json_equal(value, json_object_get(own, path)))
            continue;
        note(&u, path);
    }
    return u.n;
}

void
eti_ablation_find(const json_t *list, const json_t *config, const char *const *name,
                  int n, struct eti_ablation *out)
{
    *out = (struct eti_ablation){.n = 0};
    for (size_t i = 0; i < json_array_size(list) && n > 0; i++) {
        const json_t *one = json_array_get(list, i);
        const char *first;
        struct eti_ablation told;
        const int differ = differences((json_t *)config, one, &first);
        if (differ < 0 || (out->n > 0 && differ >= out->n_differ) ||
            !has_all(one, name, n) || count_methods(one) != n ||
            !tell(list, one, name, n, &told))
            continue;
        told.n_differ = differ;
        snprintf(told.differs, sizeof told.differs, "%s", first ? first : "");
        *out = told;
    }
}

const struct eti_ablation_runs *
eti_ablation_of(const struct eti_ablation *a, const char *name)
{
    for (int i = 0; i < a->n; i++)
        if (strcmp(a->method[i].name, name) == 0)
            return &a->method[i].without;
    return NULL;
}
