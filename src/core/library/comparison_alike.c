/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_alike.c: runs of a comparison that differ by their seed alone, as one:
 * their medians. */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/comparison.h"

static bool
is_setting(const char *key)
{
    return strcmp(key, "seed") != 0;
}

static bool
are_alike(const json_t *differences, int a, int b)
{
    const char *key;
    json_t *values;
    json_object_foreach((json_t *)differences, key, values)
    {
        if (is_setting(key) && !json_equal(json_array_get(values, (size_t)a),
                                           json_array_get(values, (size_t)b)))
            return false;
    }
    return true;
}

static int
divide(const struct eti_comparison *k, const json_t *differences, struct eti_alike *out)
{
    int n = 0;
    for (int i = 0; i < k->n; i++) {
        int at = 0;
        while (at < n && !are_alike(differences, out[at].run[0], i))
            at++;
        if (at == n)
            out[n++] = (struct eti_alike){.n = 0};
        out[at].run[out[at].n++] = i;
    }
    return n;
}

/* ---- labels ---- */

/* The name of run I without "-07" behind it. */
static const char *
stem_of(const struct eti_comparison *k, int i, int *length)
{
    const char *name = json_string_value(json_object_get(k->run[i].facts, "name"));
    name = name ? name : "";
    int n = (int)strlen(name), end = n;
    while (end > 0 && isdigit((unsigned char)name[end - 1]))
        end--;
    *length = end > 1 && end < n && name[end - 1] == '-' ? end - 1 : n;
    return name;
}

static bool
share_stem(const struct eti_comparison *k, int a, int b)
{
    int n, m;
    const char *x = stem_of(k, a, &n), *y = stem_of(k, b, &m);
    return n == m && memcmp(x, y, (size_t)n) == 0;
}

/* Does a stem stand for the same runs as what they are alike in, for all of them? */
static bool
stems_divide(const struct eti_comparison *k, const struct eti_alike *a, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 1; j < a[i].n; j++)
            if (!share_stem(k, a[i].run[0], a[i].run[j]))
                return false;
        for (int j = 0; j < i; j++)
            if (share_stem(k, a[i].run[0], a[j].run[0]))
                return false;
    }
    return true;
}

static void
add_setting(struct eti_alike *a, const char *key, const json_t *value)
{
    size_t used = strlen(a->label);
    char *text = json_is_string(value)
                     ? NULL
                     : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    snprintf(a->label + used, sizeof a->label - used, "%s%s=%s", used > 0 ? " " : "",
             key,
             json_is_string(value)          ? json_string_value(value)
             : text && !json_is_null(value) ? text
                                            : "-");
    free(text);
}

/* What A has that FIRST has not. */
static void
name_settings(const json_t *differences, const struct eti_alike *first,
              struct eti_alike *a)
{
    const char *key;
    json_t *values;
    json_object_foreach((json_t *)differences, key, values)
    {
        const json_t *own = json_array_get(values, (size_t)a->run[0]);
        if (is_setting(key) &&
            !json_equal((json_t *)own, json_array_get(values, (size_t)first->run[0])))
            add_setting(a, key, own);
    }
}

static void
name_all(const struct eti_comparison *k, const json_t *differences, struct eti_alike *a,
         int n)
{
    bool by_stem = stems_divide(k, a, n);
    for (int i = 0; i < n; i++) {
        int length;
        const char *name = stem_of(k, a[i].run[0], &length);
        if (by_stem)
            snprintf(a[i].label, sizeof a[i].label, "%.*s", length, name);
        else if (i == 0)
            snprintf(a[i].label, sizeof a[i].label, "as %.200s", name);
        else
            name_settings(differences, &a[0], &a[i]);
    }
}

/* ---- medians ---- */

static int
by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Of V [N], of which those that are not known are greater than all others. */
static double
median(double *v, int n)
{
    for (int i = 0; i < n; i++)
        v[i] = isnan(v[i]) ? INFINITY : v[i];
    qsort(v, (size_t)n, sizeof *v, by_value);
    double middle = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    return isfinite(middle) ? middle : NAN;
}

static void
take_medians(const struct eti_comparison *k, struct eti_alike *a)
{
    double v[ETI_COMPARED_RUNS];
    const double sign = k->less ? 1 : -1; /* a run without a value is the worst */
    for (int i = 0; i < a->n; i++)
        v[i] = sign * k->run[a->run[i]].best;
    a->best = sign * median(v, a->n);
    for (int f = 0; f < ETI_FIGURES; f++) {
        for (int i = 0; i < a->n; i++)
            v[i] = k->run[a->run[i]].to_best[f];
        a->to_best[f] = median(v, a->n);
        for (int i = 0; i < a->n; i++)
            v[i] = k->run[a->run[i]].to_target[f];
        a->to_target[f] = median(v, a->n);
    }
}

double
eti_alike_cost(const struct eti_comparison *k, const struct eti_alike *a)
{
    return k->has_target ? a->to_target[k->by] : a->to_best[k->by];
}

/* ---- order ---- */

static int
place_of(const struct eti_comparison *k, int run)
{
    return k->run[run].place;
}

/* The run that was named first is the first of A. */
static void
order_runs(const struct eti_comparison *k, struct eti_alike *a)
{
    for (int i = 1; i < a->n; i++)
        if (place_of(k, a->run[i]) < place_of(k, a->run[0])) {
            int first = a->run[i];
            a->run[i] = a->run[0];
            a->run[0] = first;
        }
}

static bool
comes_before(const struct eti_comparison *k, const struct eti_alike *a,
             const struct eti_alike *b)
{
    if (isnan(a->best) || isnan(b->best))
        return !isnan(a->best);
    return k->less ? a->best < b->best : a->best > b->best;
}

/* Those with the run that was named first, then by how good they are. */
static void
order(const struct eti_comparison *k, struct eti_alike *a, int n)
{
    for (int i = 0; i < n; i++)
        order_runs(k, &a[i]);
    for (int i = 1; i < n; i++)
        if (place_of(k, a[i].run[0]) < place_of(k, a[0].run[0])) {
            struct eti_alike first = a[i];
            a[i] = a[0];
            a[0] = first;
        }
    for (int i = 2; i < n; i++)
        for (int j = i; j > 1 && comes_before(k, &a[j], &a[j - 1]); j--) {
            struct eti_alike better = a[j];
            a[j] = a[j - 1];
            a[j - 1] = better;
        }
}

int
eti_comparison_alike(const struct eti_comparison *k, const json_t *differences,
                     struct eti_alike *out)
{
    int n = divide(k, differences, out);
    for (int i = 0; i < n; i++)
        take_medians(k, &out[i]);
    order(k, out, n);
    name_all(k, differences, out, n);
    return n;
}
