/* SPDX-License-Identifier: Apache-2.0 */
/* ticks.c: labels of axes, over many ranges. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "tui/format.h"
#include "tui/ticks.h"

static char first[200];
static int faults;

static void
fault(const char *what, const struct tui_scale *given, const struct tui_ticks *t)
{
    if (faults++ > 0)
        return;
    int n = snprintf(first, sizeof first, "%s: %.9g to %.9g, %d rows%s:", what,
                     given->low, given->high, given->rows, given->is_log ? " log" : "");
    for (int i = 0; i < t->n; i++)
        n += snprintf(first + n, sizeof first - (size_t)n, " %s", t->label[i]);
}

static void
begin(void)
{
    faults = 0;
    first[0] = '\0';
}

static void
is_without_fault(const char *name)
{
    if (!is_int(faults, 0, "%s", name))
        diag("%s", first);
}

/* Does a comma at S, with BEFORE digits between it and what stands before them, divide
 * digits in threes? */
static bool
is_in_place(const char *s, size_t before)
{
    return before >= 1 && before <= 3 && strspn(s + 1, "0123456789") == 3;
}

/* What a label says, the unit of all left aside; NaN: it is no number, or has commas
 * where none belong. */
static double
read_label(const char *label)
{
    char digits[32];
    size_t n = 0, run = 0;
    for (const char *s = label; *s && n < sizeof digits - 1; s++) {
        if (*s == ',' && !is_in_place(s, run))
            return NAN;
        if (*s != ',')
            digits[n++] = *s;
        run = *s >= '0' && *s <= '9' ? run + 1 : 0;
    }
    digits[n] = '\0';
    char *end;
    double v = strtod(digits, &end);
    const char *suffix = *end ? strchr("kMGTP", *end) : NULL;
    if (*end && (!suffix || end[1]))
        return NAN;
    return suffix ? v * pow(1000, (double)(suffix - "kMGTP" + 1)) : v;
}

static double
unit_of(const struct tui_ticks *t)
{
    static const struct {
        const char *name;
        double per;
    } units[] = {{"", 1},      {"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
                 {"TB", 1e12}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, t->unit) == 0)
            return units[i].per;
    return strncmp(t->unit, "x1e", 3) == 0 ? pow(10, strtod(t->unit + 3, NULL)) : NAN;
}

static bool
is_nice(double step)
{
    double power = pow(10, floor(log10(step) + 1e-9));
    static const double nice[] = {1, 2, 2.5, 5, 10};
    for (int i = 0; i < 5; i++)
        if (fabs(step / power - nice[i]) < 1e-6)
            return true;
    return false;
}

static void
check_labels(const struct tui_scale *given, const struct tui_ticks *t)
{
    const double unit = unit_of(t);
    char last = 0;
    for (int i = 0; i < t->n; i++) {
        const char *label = t->label[i];
        double size = fmax(fabs(t->at[i]), t->n > 1 ? fabs(t->at[1] - t->at[0]) : 0);
        if (strlen(label) > TUI_TICK_COLUMNS || !*label)
            fault("a label is too wide", given, t);
        if (t->n > 1 && !(fabs(read_label(label) * unit - t->at[i]) < 1e-6 * size))
            fault("a label says another value", given, t);
        char end = label[strlen(label) - 1];
        end = end >= '0' && end <= '9' ? strchr(label, 'e') ? 'e' : '0' : end;
        if (strcmp(label, "0") != 0) {
            if (last && last != end)
                fault("two notations", given, t);
            last = end;
        }
        for (int k = 0; k < i; k++)
            if (strcmp(label, t->label[k]) == 0)
                fault("two labels are alike", given, t);
    }
}

static void
check_scale(double low, double high, int rows, enum tui_quantity of, bool is_log)
{
    const struct tui_scale given = {low, high, rows, of, is_log, false};
    struct tui_scale s = given;
    struct tui_ticks t;
    double range = high - low, size = fmax(fabs(low), fabs(high));
    tui_ticks_of_scale(&s, &t);
    if (s.low > low + 1e-9 * range || s.high < high - 1e-9 * range ||
        !isfinite(s.low) || !isfinite(s.high))
        fault("the scale does not hold its values", &given, &t);
    check_labels(&given, &t);
    if (!is_log && range > 1e-6 * size) {
        if (t.n > 1 && !is_nice((t.at[1] - t.at[0]) / unit_of(&t)))
            fault("not 1, 2, 2.5 or 5", &given, &t);
        if (rows >= 5 && range > size * 0.03 && (s.high - s.low) > 2.5 * range)
            fault("the scale is much wider than its values", &given, &t);
    }
    if (rows >= 6 && (t.n < 3 || t.n > 6) &&
        (is_log ? high > 10 * low : range > size * 0.03))
        fault("not 3 to 6 ticks", &given, &t);
    if (rows >= 2 && t.n < 1)
        fault("no tick", &given, &t);
    for (int i = 0; i < t.n; i++) {
        double least = is_log ? log(s.low) : s.low,
               most = is_log ? log(s.high) : s.high;
        double at = is_log ? log(t.at[i]) : t.at[i];
        double next = i + 1 == t.n ? NAN : is_log ? log(t.at[i + 1]) : t.at[i + 1];
        if (at < least - 1e-6 * (most - least) || at > most + 1e-6 * (most - least))
            fault("a tick is outside", &given, &t);
        if ((next - at) * (rows - 1) < 0.99 * (most - least))
            fault("two ticks on a row", &given, &t);
    }
}

static double
random_part(void)
{
    static unsigned state = 12345;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

/* Of few rows as many lie between any two ticks, where that need not make the scale
 * twice as wide. */
static void
test_even(void)
{
    int uneven = 0, n = 0;
    for (int i = 0; i < 10000; i++) {
        double size = pow(10, -9 + 39 * random_part()), part = 0.05 + random_part();
        double low = i % 2 ? 0 : size, high = low + size * part;
        const int rows = 5 + i % 5;
        struct tui_scale s = {low, high, rows, TUI_OF_NUMBERS, false, false};
        struct tui_ticks t;
        tui_ticks_of_scale(&s, &t);
        double step = t.n > 1 ? (t.at[1] - t.at[0]) / (s.high - s.low) * (rows - 1) : 1;
        double below = t.n > 0 ? (t.at[0] - s.low) / (s.high - s.low) * (rows - 1) : 0;
        uneven += fabs(step - round(step)) > 1e-6 || fabs(below - round(below)) > 1e-6;
        n++;
    }
    ok(uneven < n / 20, "of %d scales %d have ticks that are unevenly apart", n,
       uneven);
}

/* The row of V, from the scale's end downwards, in parts of a row; NaN: V is no power
 * of ten. */
static double
row_of_power(const struct tui_scale *s, double v)
{
    const double power = log10(v);
    return fabs(power - round(power)) > 1e-6
               ? NAN
               : (log10(s->high) - power) / log10(s->high / s->low) * (s->rows - 1);
}

/* Of logarithms each power of ten that is a tick lies on a row, so that as many rows
 * lie between any two of them, where that need not make the scale much wider. */
static void
test_even_powers(void)
{
    enum { SCALES = 4000 };
    int uneven = 0;
    begin();
    for (int i = 0; i < SCALES; i++) {
        const double low = pow(10, -9 + 30 * random_part()), part = random_part();
        const double high = low * pow(10, 0.1 + (i % 3 ? 2.5 : 9) * part);
        const struct tui_scale given = {low,  high, 5 + i % 16, TUI_OF_NUMBERS,
                                        true, false};
        struct tui_scale s = given;
        struct tui_ticks t;
        bool is_even = true;
        tui_ticks_of_scale(&s, &t);
        for (int k = 0; k < t.n; k++) {
            const double row = row_of_power(&s, t.at[k]);
            is_even = is_even && !(fabs(row - round(row)) > 1e-6);
        }
        uneven += !is_even;
        if (high > 10 * low && pow(high / low, 3.1) < s.high / s.low)
            fault("the scale is much wider than its values", &given, &t);
    }
    is_without_fault("scales of logarithms are not much wider than their values");
    ok(uneven < SCALES / 50, "of %d, %d have a power of ten between two rows", SCALES,
       uneven);
}

static void
test_scales(void)
{
    begin();
    for (int i = 0; i < 10000; i++) {
        double size = pow(10, -9 + 39 * random_part()),
               range = pow(10, -8 * random_part());
        double low = size * (i % 3 ? 1 : -1), high = low + size * range;
        if (i % 5 == 0)
            low = 0;
        check_scale(low, high, 2 + i % 24, TUI_OF_NUMBERS, false);
    }
    is_without_fault("values of 1e-9 to 1e30, of either sign");
    begin();
    for (int i = 0; i < 10000; i++) {
        double low = random_part(), high = low + (1 - low) * random_part();
        check_scale(low, high, 6 + i % 20, TUI_OF_PARTS, false);
        struct tui_scale s = {low, high, 6 + i % 20, TUI_OF_PARTS, false, false};
        struct tui_ticks t;
        tui_ticks_of_scale(&s, &t);
        if (s.low < 0 || s.high > 1 || (t.n > 1 && fabs(t.at[t.n - 1] - s.high) > 1e-9))
            fault("the end is no tick, or above 1", &s, &t);
    }
    is_without_fault("accuracies end at a tick, and at most at 1");
    begin();
    for (int i = 0; i < 10000; i++) {
        double low = pow(10, 13 * random_part()),
               high = low * (1.1 + 4 * random_part());
        check_scale(low, high, 6 + i % 20, i % 2 ? TUI_OF_BYTES : TUI_OF_SECONDS,
                    false);
    }
    is_without_fault("bytes and seconds, in their units");
    begin();
    for (int i = 0; i < 10000; i++) {
        double low = pow(10, -9 + 30 * random_part());
        double high = low * pow(10, 0.1 + 9 * random_part());
        check_scale(low, high, 6 + i % 20, TUI_OF_NUMBERS, true);
    }
    is_without_fault("logarithms");
    begin();
    for (int i = 0; i < 1000; i++) {
        double low = pow(10, -9 + 30 * random_part());
        const struct tui_scale given = {low,  low * 7, 6 + i % 20, TUI_OF_NUMBERS,
                                        true, true};
        struct tui_scale s = given, plain = given;
        struct tui_ticks t, u;
        plain.from_zero = false;
        tui_ticks_of_scale(&s, &t);
        tui_ticks_of_scale(&plain, &u);
        if (s.low != plain.low || s.high != plain.high || t.n != u.n)
            fault("another scale", &given, &t);
    }
    is_without_fault("logarithms of what else begins at zero, which has none");
}

static double
unit_named(const char *name)
{
    struct tui_ticks t = {0};
    snprintf(t.unit, sizeof t.unit, "%s", name);
    return unit_of(&t);
}

/* A chart and a number beside it count the same bytes. */
static void
test_bytes(void)
{
    begin();
    for (double v = 300; v < 9e14; v *= 1.7) {
        const struct tui_scale given = {v, v, 8, TUI_OF_BYTES, false, false};
        struct tui_scale s = given;
        struct tui_ticks t;
        char text[TUI_NUMBER], *unit;
        tui_ticks_of_scale(&s, &t);
        const double number = strtod(tui_bytes(v, text), &unit);
        if (!(fabs(number * unit_named(unit + 1) - v) < 0.051 * v))
            fault("the number says other bytes", &given, &t);
        if (!(fabs(read_label(t.label[0]) * unit_of(&t) - v) < 0.001 * v))
            fault("the chart says other bytes", &given, &t);
    }
    is_without_fault("bytes are counted in thousands in charts and beside them");
}

/* The labels of a scale, from below. */
static void
is_scale(double low, double high, int rows, enum tui_quantity of, const char *want)
{
    struct tui_scale s = {low, high, rows, of, false, false};
    struct tui_ticks t;
    char text[200] = "";
    tui_ticks_of_scale(&s, &t);
    for (int i = 0; i < t.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 t.label[i]);
    if (*t.unit)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", %s", t.unit);
    is_str(text, want, "%g to %g", low, high);
}

static void
test_words(void)
{
    is_scale(0, 11804, 7, TUI_OF_NUMBERS, "0 5k 10k");
    is_scale(-3000, -500, 8, TUI_OF_NUMBERS, "-3,000 -2,000 -1,000");
    is_scale(0.862, 0.922, 6, TUI_OF_PARTS, "0.86 0.88 0.90 0.92 0.94");
    is_scale(0.1, 0.915, 8, TUI_OF_PARTS, "0.2 0.4 0.6 0.8 1.0");
    is_scale(1e23, 3.6e23, 8, TUI_OF_NUMBERS, "1e23 2e23 3e23");
    is_scale(23.7e6, 24.1e6, 8, TUI_OF_BYTES, "23.6 23.8 24.0 24.2, MB");
    is_scale(2.5, 2.5, 8, TUI_OF_NUMBERS, "2.5");
    is_scale(0.1 + 0.2, 0.3, 8, TUI_OF_NUMBERS, "0.3");
    is_scale(0, 0, 8, TUI_OF_NUMBERS, "0");
    is_scale(1234567, 1234567, 8, TUI_OF_NUMBERS, "1235k");
    is_scale(7200, 43200, 8, TUI_OF_SECONDS, "2 4 6 8 10 12, h");
}

static void
is_axis(double from, double to, int columns, enum tui_quantity of, const char *want)
{
    struct tui_ticks t;
    char text[200] = "";
    tui_ticks_of_axis(from, to, columns, of, of == TUI_OF_COUNTS ? "ba" : NULL, &t);
    for (int i = 0; i < t.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 t.label[i]);
    is_str(text, want, "%g to %g in %d columns", from, to, columns);
}

/* Says label I of T, which has UNIT behind the last, the value of its tick? */
static bool
says_its_value(const struct tui_ticks *t, int i, const char *unit)
{
    char text[TUI_TICK_LABEL];
    const size_t n = strlen(t->label[i]) - (i == t->n - 1 ? strlen(unit) : 0);
    snprintf(text, sizeof text, "%.*s", (int)n, t->label[i]);
    text[strcspn(text, " ")] = '\0';
    return fabs(read_label(text) - t->at[i]) < 1e-6 * fmax(1, fabs(t->at[i]));
}

static void
test_axes(void)
{
    is_axis(0, 4, 40, TUI_OF_COUNTS, "0 1 2 3 4ba");
    is_axis(0, 1876, 40, TUI_OF_COUNTS, "0 500 1,000 1,500ba");
    is_axis(99990, 100010, 60, TUI_OF_COUNTS,
            "99,990 99,995 100,000 100,005 100,010ba");
    is_axis(240480, 240500, 60, TUI_OF_COUNTS,
            "240,480 240,485 240,490 240,495 240,500ba");
    is_axis(0, 240000, 60, TUI_OF_COUNTS, "0 50k 100k 150k 200k ba");
    is_axis(0, 90, 60, TUI_OF_SECONDS, "0 20 40 60 80s");
    is_axis(0, 5400, 60, TUI_OF_SECONDS, "0 20 40 60 80min");
    is_axis(0, 119, 60, TUI_OF_SECONDS, "0 20 40 60 80 100s");
    is_axis(0, 120, 60, TUI_OF_SECONDS, "0.0 0.5 1.0 1.5 2.0min");
    is_axis(0, 7199, 60, TUI_OF_SECONDS, "0 20 40 60 80 100min");
    is_axis(0, 7200, 60, TUI_OF_SECONDS, "0.0 0.5 1.0 1.5 2.0h");
    is_axis(0, 172799, 60, TUI_OF_SECONDS, "0 10 20 30 40h");
    is_axis(0, 172800, 60, TUI_OF_SECONDS, "0.0 0.5 1.0 1.5 2.0d");
    is_axis(0, 864000, 60, TUI_OF_SECONDS, "0 2 4 6 8 10d");
    is_axis(0, 2, 40, TUI_OF_COUNTS, "0 1 2ba");
    is_axis(0, 1, 40, TUI_OF_COUNTS, "0 1ba");
    is_axis(0, 3e9, 40, TUI_OF_BYTES, "0 1 2 3GB");
    is_axis(0, 2e12, 40, TUI_OF_BYTES, "0.0 0.5 1.0 1.5 2.0TB");
    is_axis(0, 3, 40, TUI_OF_NUMBERS, "0 1 2 3");
    is_axis(0, 0, 60, TUI_OF_COUNTS, "");
    begin();
    for (int i = 0; i < 10000; i++) {
        double from = i % 2 ? 0 : pow(10, 8 * random_part());
        double to = from + pow(10, 8 * random_part());
        int columns = 4 + i % 200, end = -1;
        struct tui_ticks t;
        const struct tui_scale given = {from, to, columns, TUI_OF_COUNTS, false, false};
        tui_ticks_of_axis(from, to, columns, TUI_OF_COUNTS, "ba", &t);
        if (columns > 80 && to - from >= 4 && t.n < 3)
            fault("too few", &given, &t);
        for (int k = 0; k < t.n; k++) {
            int at = tui_tick_column(&t, k, from, to, columns);
            if (at <= end || at + (int)strlen(t.label[k]) > columns)
                fault("labels touch", &given, &t);
            if (!says_its_value(&t, k, "ba"))
                fault("a label says another value", &given, &t);
            end = at + (int)strlen(t.label[k]);
        }
    }
    is_without_fault("labels of axes say their values, and have room for themselves");
}

int
main(void)
{
    test_scales();
    test_even();
    test_even_powers();
    test_bytes();
    test_words();
    test_axes();
    return done();
}
