/* SPDX-License-Identifier: Apache-2.0 */
/* time.c: training time: text, arithmetic, counters, conversion into schedule units.
 *
 * Source: MosaicML Composer, composer/core/time.py and optim/scheduler.py. */
#include "etude/time.h"
#include "core/base/need.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const double EXACT_MAX = 9007199254740992.0; /* 2^53: whole numbers are exact */

static const struct unit {
    const char *suffix, *name;
} units[] = {
#define ROW(code, number, suffix, name) [number] = {suffix, name},
    ET_TIME_UNIT_MAP(ROW)
#undef ROW
};

const char *
et_time_unit_suffix(enum et_time_unit unit)
{
    return unit < ET_TIME_UNIT_COUNT ? units[unit].suffix : "unset";
}

const char *
et_time_unit_name(enum et_time_unit unit)
{
    return unit < ET_TIME_UNIT_COUNT ? units[unit].name : "unset";
}

/* The unit that TEXT spells, or ET_TIME_UNIT_COUNT. */
static enum et_time_unit
unit_of(const char *text)
{
    int u = 0;
    while (u < ET_TIME_UNIT_COUNT && strcasecmp(text, units[u].suffix) != 0)
        u++;
    return u;
}

et_status
et_time_unit_find(struct et_ctx *cx, const char *text, enum et_time_unit *out)
{
    ETI_NEED(cx, text, out);
    *out = unit_of(text);
    for (int u = 0; *out == ET_TIME_UNIT_COUNT && u < ET_TIME_UNIT_COUNT; u++)
        if (strcasecmp(text, units[u].name) == 0)
            *out = u;
    if (*out == ET_TIME_UNIT_COUNT)
        return ET_FAIL(cx, ET_EINVAL,
                       "'%s' is not a unit of time: iter, ep, ba, sp, tok, dur or sec",
                       text);
    return ET_OK;
}

/* ---- text ---- */

static double
keep_unit(enum et_time_unit unit, double value)
{
    return unit == ET_TIME_DURATION ? value : trunc(value);
}

/* Reads digits with at most one point and perhaps an exponent; NULL if there are none.
 * strtod alone would also take signs, blanks, hexadecimal and "inf". The program leaves
 * LC_NUMERIC at "C", so the point is a point. */
static const char *
scan_number(const char *text, double *out)
{
    const char *s = text;
    int digits = 0, points = 0;
    for (; (*s >= '0' && *s <= '9') || *s == '.'; s++)
        *s == '.' ? points++ : digits++;
    if (digits == 0 || points > 1)
        return NULL;
    if (*s == 'e' || *s == 'E') {
        const char *e = s + 1;
        e += *e == '-' || *e == '+';
        if (*e >= '0' && *e <= '9') /* else the e of "ep" */
            s = e + strspn(e, "0123456789");
    }
    char *end;
    *out = strtod(text, &end);
    return end == s ? s : NULL;
}

/* "1h30m", "90s": each of h, m, s at most once and in this order. */
static bool
scan_clock(const char *text, double *seconds)
{
    static const char letters[] = "hms";
    static const double worth[] = {3600, 60, 1};
    const char *s = text;
    double sum = 0;
    for (int i = 0; *s; i++) {
        char *end;
        if (*s < '0' || *s > '9')
            return false;
        double n = strtod(s, &end);
        if (end != s + strspn(s, "0123456789"))
            return false;
        while (i < 3 && (*end | 0x20) != letters[i])
            i++;
        if (i == 3)
            return false;
        sum += n * worth[i];
        s = end + 1;
    }
    *seconds = sum;
    return s != text;
}

bool
et_time_placeholder(const char *text, struct et_time *out)
{
    if (!text)
        return false;
    static const struct {
        const char *name;
        enum et_time_unit unit;
    } placeholders[] = {
        {"NUM_EPOCHS", ET_TIME_DURATION},
        {"NUM_UPDATE_STEPS_PER_EPOCH", ET_TIME_EPOCH},
        {"PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH", ET_TIME_EPOCH},
        {"TRAIN_DATALOADER_LEN", ET_TIME_EPOCH},
    };
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++) {
        size_t length = strlen(placeholders[i].name);
        if (strncmp(text, placeholders[i].name, length) != 0)
            continue;
        *out = (struct et_time){1, placeholders[i].unit};
        const char *rest = text + length;
        if (*rest == '*')
            rest = scan_number(rest + 1, &out->value);
        if (rest && !*rest)
            return true;
    }
    return false;
}

et_status
et_time_parse(struct et_ctx *cx, const char *text, struct et_time *out)
{
    ETI_NEED(cx, text);
    struct et_time t = {0, ET_TIME_UNIT_COUNT};
    const char *rest = scan_number(text, &t.value);
    if (rest && *rest)
        t.unit = unit_of(rest);
    else if (rest && strspn(text, "0123456789") == strlen(text))
        t.unit = ET_TIME_EPOCH;
    if (!et_time_is_set(t) && scan_clock(text, &t.value))
        t.unit = ET_TIME_SECOND;
    if (!et_time_is_set(t)) {
        et_status status =
            ET_FAIL(cx, ET_EINVAL,
                    "'%s' is not a time such as 10ep, 500ba, 0.7dur or 1h30m", text);
        char unit[ET_TIME_TEXT_BYTES];
        if (et_time_placeholder(text, &t))
            et_hint(cx, "write %s", et_time_text(t, unit, sizeof unit));
        return status;
    }
    if (t.unit != ET_TIME_DURATION && t.value != trunc(t.value))
        return ET_FAIL(cx, ET_EINVAL, "'%s' is not a whole number of %s%s", text,
                       units[t.unit].name, t.unit == ET_TIME_BATCH ? "es" : "s");
    if (!(t.value <= EXACT_MAX))
        return ET_FAIL(cx, ET_EINVAL, "'%s' is longer than 2^53 can count", text);
    *out = t;
    return ET_OK;
}

const char *
et_time_text(struct et_time t, char *buf, size_t n)
{
    if (!buf)
        return NULL;
    if (!et_time_is_set(t)) {
        snprintf(buf, n, "unset");
        return buf;
    }
    /* The fewest digits that read back as the same number: 15 do for what people write,
     * 17 for every double. */
    char number[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, t.value);
        if (strtod(number, NULL) == t.value)
            break;
    }
    /* %g writes 1e+16; 1e16 says the same. */
    char *plus = strchr(number, '+');
    if (plus)
        memmove(plus, plus + 1, strlen(plus));
    snprintf(buf, n, "%s%s", number, units[t.unit].suffix);
    return buf;
}

/* ---- arithmetic ---- */

static et_status
same_unit(struct et_ctx *cx, struct et_time a, struct et_time b, const char *verb)
{
    if (a.unit == b.unit && et_time_is_set(a))
        return ET_OK;
    char x[ET_TIME_TEXT_BYTES], y[ET_TIME_TEXT_BYTES];
    return ET_FAIL(cx, ET_EINVAL, "%s and %s have different units and cannot be %s",
                   et_time_text(a, x, sizeof x), et_time_text(b, y, sizeof y), verb);
}

static et_status
not_zero(struct et_ctx *cx, struct et_time a, double divisor)
{
    char x[ET_TIME_TEXT_BYTES];
    if (divisor == 0)
        return ET_FAIL(cx, ET_EINVAL, "%s cannot be divided by 0",
                       et_time_text(a, x, sizeof x));
    return ET_OK;
}

et_status
et_time_add(struct et_ctx *cx, struct et_time a, struct et_time b, struct et_time *out)
{
    ETI_NEED(cx, out);
    ET_TRY(same_unit(cx, a, b, "added"));
    *out = (struct et_time){a.value + b.value, a.unit};
    return ET_OK;
}

et_status
et_time_sub(struct et_ctx *cx, struct et_time a, struct et_time b, struct et_time *out)
{
    ETI_NEED(cx, out);
    ET_TRY(same_unit(cx, a, b, "subtracted"));
    *out = (struct et_time){a.value - b.value, a.unit};
    return ET_OK;
}

et_status
et_time_mul(struct et_ctx *cx, struct et_time a, struct et_time b, struct et_time *out)
{
    char x[ET_TIME_TEXT_BYTES], y[ET_TIME_TEXT_BYTES];
    if (a.unit != ET_TIME_DURATION && b.unit != ET_TIME_DURATION)
        return ET_FAIL(cx, ET_EINVAL,
                       "%s and %s cannot be multiplied: neither is a dur",
                       et_time_text(a, x, sizeof x), et_time_text(b, y, sizeof y));
    enum et_time_unit unit = a.unit == ET_TIME_DURATION ? b.unit : a.unit;
    *out = (struct et_time){keep_unit(unit, a.value * b.value), unit};
    return ET_OK;
}

et_status
et_time_div(struct et_ctx *cx, struct et_time a, struct et_time b, struct et_time *out)
{
    ET_TRY(same_unit(cx, a, b, "divided"));
    ET_TRY(not_zero(cx, a, b.value));
    *out = (struct et_time){a.value / b.value, ET_TIME_DURATION};
    return ET_OK;
}

et_status
et_time_mod(struct et_ctx *cx, struct et_time a, struct et_time b, struct et_time *out)
{
    ET_TRY(same_unit(cx, a, b, "divided"));
    ET_TRY(not_zero(cx, a, b.value));
    *out = (struct et_time){fmod(a.value, b.value), a.unit};
    return ET_OK;
}

struct et_time
et_time_scale(struct et_time a, double x)
{
    return (struct et_time){keep_unit(a.unit, a.value * x), a.unit};
}

et_status
et_time_over(struct et_ctx *cx, struct et_time a, double x, struct et_time *out)
{
    ETI_NEED(cx, out);
    ET_TRY(not_zero(cx, a, x));
    *out = (struct et_time){keep_unit(a.unit, a.value / x), a.unit};
    return ET_OK;
}

et_status
et_time_compare(struct et_ctx *cx, struct et_time a, struct et_time b, int *out)
{
    ETI_NEED(cx, out);
    ET_TRY(same_unit(cx, a, b, "compared"));
    *out = (a.value > b.value) - (a.value < b.value);
    return ET_OK;
}

/* ---- where a run is ---- */

void
et_timestamp_next_batch(struct et_timestamp *ts, int64_t samples, int64_t tokens,
                        double seconds)
{
    if (!ts)
        return;
    ts->batch++;
    ts->batch_in_epoch++;
    ts->sample += samples;
    ts->sample_in_epoch += samples;
    ts->token += tokens;
    ts->token_in_epoch += tokens;
    ts->token_in_iteration += tokens;
    ts->total_wct += seconds;
    ts->iteration_wct += seconds;
    ts->epoch_wct += seconds;
    ts->batch_wct = seconds;
}

void
et_timestamp_next_epoch(struct et_timestamp *ts)
{
    if (!ts)
        return;
    ts->epoch++;
    ts->epoch_in_iteration++;
    ts->batch_in_epoch = 0;
    ts->sample_in_epoch = 0;
    ts->token_in_epoch = 0;
    ts->epoch_wct = 0;
    ts->batch_wct = 0;
}

void
et_timestamp_next_iteration(struct et_timestamp *ts)
{
    if (!ts)
        return;
    ts->iteration++;
    ts->epoch_in_iteration = 0;
    ts->token_in_iteration = 0;
    ts->iteration_wct = 0;
}

et_status
et_timestamp_get(struct et_ctx *cx, const struct et_timestamp *ts,
                 enum et_time_unit unit, struct et_time *out)
{
    ETI_NEED(cx, ts, out);
    const double counters[ET_TIME_UNIT_COUNT] = {
        [ET_TIME_ITERATION] = (double)ts->iteration,
        [ET_TIME_EPOCH] = (double)ts->epoch,
        [ET_TIME_BATCH] = (double)ts->batch,
        [ET_TIME_SAMPLE] = (double)ts->sample,
        [ET_TIME_TOKEN] = (double)ts->token,
        [ET_TIME_SECOND] = ts->total_wct,
    };
    if (unit == ET_TIME_DURATION || unit >= ET_TIME_UNIT_COUNT)
        return ET_FAIL(cx, ET_EINVAL, "a run has no counter in the unit '%s'",
                       et_time_unit_suffix(unit));
    *out = (struct et_time){counters[unit], unit};
    return ET_OK;
}

et_status
et_timestamp_compare(struct et_ctx *cx, const struct et_timestamp *ts, struct et_time t,
                     int *out)
{
    ETI_NEED(cx, ts, out);
    struct et_time now;
    ET_TRY(et_timestamp_get(cx, ts, t.unit, &now));
    return et_time_compare(cx, now, t, out);
}

et_status
et_timestamp_elapsed(struct et_ctx *cx, const struct et_timestamp *ts,
                     struct et_time max_duration, double *out)
{
    ETI_NEED(cx, ts);
    struct et_time now, fraction;
    if (!et_time_is_set(max_duration))
        return ET_FAIL(cx, ET_EINVAL,
                       "the elapsed fraction of a run without max_duration is unknown");
    ET_TRY(et_timestamp_get(cx, ts, max_duration.unit, &now));
    ET_TRY(et_time_div(cx, now, max_duration, &fraction));
    *out = fmin(1, fraction.value);
    return ET_OK;
}

/* ---- how long a run will be ---- */

et_status
et_time_scale_duration(struct et_ctx *cx, struct et_time max_duration, double ratio,
                       struct et_time *out)
{
    ETI_NEED(cx, out);
    char x[ET_TIME_TEXT_BYTES];
    *out = et_time_scale(max_duration, ratio);
    if (!(out->value > 0))
        return ET_FAIL(
            cx, ET_EINVAL,
            "max_duration %s times scale_schedule_ratio %g leaves no training",
            et_time_text(max_duration, x, sizeof x), ratio);
    return ET_OK;
}

static et_status
need_dataloader_len(struct et_ctx *cx, struct et_time t,
                    const struct et_run_length *length)
{
    char x[ET_TIME_TEXT_BYTES];
    if (length->dataloader_len < 0)
        return ET_FAIL(
            cx, ET_EINVAL,
            "%s cannot be counted in batches: the data's length is not known",
            et_time_text(t, x, sizeof x));
    return ET_OK;
}

et_status
et_time_resolve(struct et_ctx *cx, struct et_time t, const struct et_run_length *length,
                struct et_time *out)
{
    ETI_NEED(cx, length, out);
    char x[ET_TIME_TEXT_BYTES];
    const struct et_time *max = &length->max_duration;
    switch (t.unit) {
    case ET_TIME_DURATION:
        if (!et_time_is_set(*max))
            return ET_FAIL(cx, ET_EINVAL, "%s needs a max_duration, and none is set",
                           et_time_text(t, x, sizeof x));
        if (max->unit != ET_TIME_EPOCH)
            return et_time_mul(cx, t, *max, out);
        ET_TRY(need_dataloader_len(cx, t, length));
        *out = ET_BATCHES(trunc(t.value * (double)length->dataloader_len * max->value));
        return ET_OK;
    case ET_TIME_EPOCH:
        ET_TRY(need_dataloader_len(cx, t, length));
        t = ET_BATCHES(t.value * (double)length->dataloader_len);
        break;
    case ET_TIME_SECOND:
    case ET_TIME_UNIT_COUNT:
        return ET_FAIL(cx, ET_EINVAL, "a schedule cannot be written in %s",
                       t.unit == ET_TIME_SECOND ? "seconds" : "an unset time");
    default:
        break;
    }
    *out = et_time_scale(t, length->scale_schedule_ratio);
    return ET_OK;
}
