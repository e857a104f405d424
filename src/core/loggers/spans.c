/* SPDX-License-Identifier: Apache-2.0 */
/* spans.c: see spans.h. */
#include "config.h"

#include "core/loggers/spans.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *key;
    bool is_count;
} abouts[] = {
#define ROW(code, key, count) {key, count},
    ETI_ABOUT_MAP(ROW)
#undef ROW
};

const char *
eti_about_key(enum eti_about about)
{
    return abouts[about].key;
}

bool
eti_about_is_count(enum eti_about about)
{
    return abouts[about].is_count;
}

enum eti_about
eti_about_find(const char *key, size_t n)
{
    int about = 0;
    while (about < ETI_ABOUT_COUNT &&
           (strlen(abouts[about].key) != n || memcmp(abouts[about].key, key, n) != 0))
        about++;
    return (enum eti_about)about;
}

bool
eti_about_get(const struct et_record *r, int i, enum eti_about about, double *out)
{
    const struct et_log_span *s = &r->span[i];
    bool varies = s->n > 0 && (s->min != s->max || s->bad > 0);
    switch (about) {
    case ETI_ABOUT_MIN:
        *out = s->min;
        return varies;
    case ETI_ABOUT_MAX:
        *out = s->max;
        return varies;
    case ETI_ABOUT_MEAN:
        *out = s->n > 0 ? s->sum / (double)s->n : 0;
        return varies;
    case ETI_ABOUT_VALUES:
        *out = (double)s->n;
        return s->n != r->of - s->bad;
    default:
        *out = (double)s->bad;
        return s->bad > 0;
    }
}

int
eti_about_size(const struct et_record *r, int from, int end, enum eti_about about)
{
    double value;
    int n = 0;
    for (int i = from; r->span && i < end; i++)
        n += eti_about_get(r, i, about, &value);
    return n;
}

const struct et_log_span eti_span_unknown = {
    .n = -1, .bad = 0, .min = NAN, .max = NAN, .sum = NAN};

void
eti_span_set(struct et_log_span *s, enum eti_about about, double value)
{
    bool is_number = value >= 0 && value <= (double)ETI_SPAN_MOST;
    int64_t count = is_number ? (int64_t)value : 0;
    switch (about) {
    case ETI_ABOUT_MIN:
        s->min = value;
        break;
    case ETI_ABOUT_MAX:
        s->max = value;
        break;
    case ETI_ABOUT_MEAN:
        s->sum = value; /* until it is complete */
        break;
    case ETI_ABOUT_VALUES:
        s->n = count;
        break;
    default:
        s->bad = count;
    }
}

void
eti_span_complete(struct et_log_span *s, double value, int64_t of)
{
    /* Charts rely on the least being below the greatest, whoever wrote the file. */
    bool is_known =
        isfinite(s->min) && isfinite(s->max) && isfinite(s->sum) && s->min <= s->max;
    s->bad = s->bad < of ? s->bad : of;
    if (s->n < 0 || s->n > of - s->bad)
        s->n = of - s->bad;
    if (!is_known && !isfinite(value)) {
        s->bad = of;
        s->n = 0;
    }
    if (!is_known)
        s->min = s->max = s->sum = isfinite(value) ? value : 0;
    s->sum *= (double)s->n;
}
