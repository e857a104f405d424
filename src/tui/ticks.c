/* SPDX-License-Identifier: Apache-2.0 */
/* ticks.c: see ticks.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/ticks.h"

static const double steps[] = {1, 2, 2.5, 5};
enum {
    MANY_ROWS = 10,
    STEPS = sizeof steps / sizeof *steps,
    COLUMNS_X = 9, /* of a label of an axis */
    MOST_X = 8,
};

static int
least(int a, int b)
{
    return a < b ? a : b;
}

/* ---- distances ---- */

/* A power of ten as exactly as a double has it. */
static double
times_ten(double v, int power)
{
    return power < 0 ? v / pow(10, -power) : v * pow(10, power);
}

/* Distance number I, ascending: 1, 2, 2.5, 5, 10, 20, ... and the same below 1. */
static double
step_of(int i)
{
    int power = i >= 0 ? i / STEPS : -((STEPS - 1 - i) / STEPS);
    return times_ten(steps[i - power * STEPS], power);
}

/* The number of the least distance that is not below V. */
static int
step_from(double v)
{
    int i = (int)floor(log10(v)) * STEPS - 1;
    while (step_of(i) < v * (1 - 1e-9))
        i++;
    return i;
}

/* Digits behind the point that tell multiples of distance I apart, where they are
 * written in units of 10^POWER. */
static int
decimals_of(int i, int power)
{
    int own = i >= 0 ? i / STEPS : -((STEPS - 1 - i) / STEPS);
    int digits = power - own + (i - own * STEPS == 2); /* 2.5 has one more */
    return digits > 0 ? digits : 0;
}

/* ---- notations ---- */

/* "11,804" from "11804": the digits before the point in threes. */
static void
put_commas(char *text)
{
    char *digits = text + (*text == '-');
    size_t whole = strspn(digits, "0123456789");
    for (size_t at = whole; whole >= 4 && at > 3;) {
        at -= 3;
        memmove(digits + at + 1, digits + at, strlen(digits + at) + 1);
        digits[at] = ',';
    }
}

/* "0.00384" as ".00384". */
static void
drop_zero(char *text)
{
    char *zero = text + (*text == '-');
    if (zero[0] == '0' && zero[1] == '.')
        memmove(zero, zero + 1, strlen(zero));
}

/* "2.50e+07" as "2.5e7". */
static void
shorten_power(char *text)
{
    char *e = strchr(text, 'e');
    if (!e)
        return;
    char *end = e;
    if (strchr(text, '.') && strchr(text, '.') < e)
        while (end[-1] == '0' || end[-1] == '.')
            if (*--end == '.')
                break;
    int power = 0;
    sscanf(e + 1, "%d", &power);
    snprintf(end, (size_t)(TUI_TICK_LABEL - (end - text)), "e%d", power);
}

enum notation { PLAIN, COMMAS, NO_ZERO, THOUSANDS, POWERS = THOUSANDS + 5, NOTATIONS };
static const char suffixes[] = "kMGTP"; /* of THOUSANDS on; P is tried last of them */

/* V in a notation, the distance of labels being number STEP. */
static void
write_label(double v, int step, enum notation how, char text[TUI_TICK_LABEL])
{
    char room[400];
    if (how >= THOUSANDS && how < POWERS) {
        int power = 3 * ((int)how - THOUSANDS + 1);
        snprintf(room, sizeof room, "%.*f%c", decimals_of(step, power),
                 times_ten(v, -power), suffixes[how - THOUSANDS]);
        if (v == 0)
            snprintf(room, sizeof room, "0");
    } else if (how == POWERS) {
        int power = v == 0 ? 0 : (int)floor(log10(fabs(v)) + 1e-9);
        snprintf(room, sizeof room, "%.*e", least(12, decimals_of(step, power)), v);
        shorten_power(room);
        if (v == 0)
            snprintf(room, sizeof room, "0");
    } else {
        snprintf(room, sizeof room, "%.*f", decimals_of(step, 0), v == 0 ? 0 : v);
        if (how == COMMAS)
            put_commas(room);
        if (how == NO_ZERO)
            drop_zero(room);
    }
    snprintf(text, TUI_TICK_LABEL, "%.*s", TUI_TICK_LABEL - 1, room);
    if (strlen(room) >= TUI_TICK_LABEL)
        memset(text, '?', TUI_TICK_LABEL - 1); /* as wide as none may be */
}

/* The widest label in a notation. */
static int
write_all(struct tui_ticks *t, double per, int step, enum notation how)
{
    int widest = 0;
    for (int i = 0; i < t->n; i++) {
        write_label(t->at[i] / per, step, how, t->label[i]);
        int width = (int)strlen(t->label[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* May values up to SIZE be written so? */
static bool
suits(enum notation how, double size)
{
    if (how == COMMAS)
        return size >= 1000;
    if (how >= THOUSANDS && how < POWERS)
        return size >= 9999.5 && size < 1e18 &&
               size >= times_ten(1, 3 * ((int)how - THOUSANDS + 1));
    if (how == POWERS)
        return size >= 1e5 || size < 1e-3;
    return how != PLAIN || size < 999.5e3;
}

/* Writes the labels in at most COLUMNS; false: no notation has room. Values are in
 * units of PER. */
static bool
write_labels(struct tui_ticks *t, double per, int step, int columns)
{
    double size = fmax(fabs(t->at[0]), fabs(t->at[t->n - 1])) / per;
    int best = -1, width = columns + 1;
    for (int how = 0; how < NOTATIONS; how++) {
        if (!suits((enum notation)how, size) ||
            (how == PLAIN && size >= 999.5 && columns > TUI_TICK_COLUMNS))
            continue;
        int wide = write_all(t, per, step, (enum notation)how);
        bool first = how == NO_ZERO || how == POWERS ? best < 0 : wide < width;
        if (wide <= columns && first) {
            best = how;
            width = how == PLAIN && size >= 999.5 ? columns + 1 : wide;
        }
    }
    if (best < 0)
        return false;
    write_all(t, per, step, (enum notation)best);
    return true;
}

/* ---- units ---- */

struct unit {
    double per;
    const char *name;
};
static const struct unit byte_units[] = {
    {1, "B"}, {1e3, "KB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}, {0, NULL},
};
static const struct unit second_units[] = {
    {1, "s"}, {60, "min"}, {3600, "h"}, {86400, "d"}, {0, NULL},
};

/* The unit that values up to SIZE are counted in. */
static double
unit_of(enum tui_quantity of, double size, char name[8])
{
    const struct unit *u = of == TUI_OF_BYTES     ? byte_units
                           : of == TUI_OF_SECONDS ? second_units
                                                  : NULL;
    name[0] = '\0';
    if (!u)
        return 1;
    while (u[1].name && size >= 2 * u[1].per)
        u++;
    snprintf(name, 8, "%s", u->name);
    return u->per;
}

/* ---- a scale of values ---- */

/* All values are alike: one tick, with as many of its digits as there is room for. */
static void
scale_of_one(struct tui_scale *s, struct tui_ticks *out)
{
    const double v = s->low / 2 + s->high / 2, room = v != 0 ? fabs(v) / 2 : 1;
    const double per = unit_of(s->of, fabs(v), out->unit), in_unit = v / per;
    const int top = v != 0 ? (int)floor(log10(fabs(in_unit)) + 1e-9) : 0;
    bool fits = false;
    out->n = 1;
    out->per = per;
    for (int power = v != 0 ? top - 5 : top; power <= top && !fits; power++) {
        int step = power;
        double rounded = times_ten(round(times_ten(in_unit, -power)), power);
        while (step < top && /* no zeros at its end */
               fabs(times_ten(round(times_ten(rounded, -step - 1)), step + 1) -
                    rounded) < 1e-9 * fabs(rounded))
            step++;
        out->at[0] = rounded * per;
        fits = write_labels(out, per, step * STEPS, TUI_TICK_COLUMNS);
    }
    out->at[0] = v;
    s->low = s->is_log ? v / 2 : v - room;
    s->high = s->is_log ? v * 2 : v + room;
}

/* The ends of S and its ticks with distance STEP, in units of PER; IS_WHOLE: both ends
 * are ticks. */
static void
divide(const struct tui_scale *s, double per, int step, bool is_whole, double *low,
       double *high, struct tui_ticks *t)
{
    const double by = step_of(step) * per;
    double first = floor(s->low / by + 1e-6), last = ceil(s->high / by - 1e-6);
    double near = is_whole ? 2 : 0.4; /* of the distance to a tick that is taken in */
    *low = s->low / by - first <= near ? first * by : s->low;
    *high = last - s->high / by <= near || s->of == TUI_OF_PARTS ? last * by : s->high;
    if (s->of == TUI_OF_PARTS && s->high <= 1)
        *high = fmin(*high, 1);
    t->n = 0;
    for (double k = first; k <= last && t->n < TUI_TICKS; k++) {
        double v = k * step_of(step) * per;
        if (v >= *low - 1e-6 * by && v <= *high + 1e-6 * by)
            t->at[t->n++] = v;
    }
}

/* Does each tick of that distance have a row of its own? */
static bool
has_rows(const struct tui_scale *s, const struct tui_ticks *t, double low, double high)
{
    return t->n >= 2 && t->n <= TUI_TICKS_Y &&
           (t->at[1] - t->at[0]) * (s->rows - 1) >= (high - low) * 0.999;
}

/* Moves the ends LOW and HIGH outwards so that as many rows lie between any two ticks
 * of T. Accuracies keep their upper end. Where that would widen the scale too far it
 * stays. */
static bool
spread_evenly(const struct tui_scale *s, const struct tui_ticks *t, double *low,
              double *high)
{
    const double by = t->n > 1 ? t->at[1] - t->at[0] : 0;
    const int gaps = t->n - 1, rows = s->rows - 1;
    if (gaps < 1)
        return true;
    const double below = (t->at[0] - *low) / by, above = (*high - t->at[gaps]) / by;
    for (int step = rows / gaps; step > 0; step--) {
        int under = (int)ceil(step * below - 1e-6);
        const int over = (int)ceil(step * above - 1e-6);
        const int spare = rows - step * gaps - under - over;
        if (spare < 0)
            continue;
        under += s->of == TUI_OF_PARTS ? spare : 0;
        const double least = t->at[0] - under * by / step;
        const double most = t->at[gaps] + (rows - step * gaps - under) * by / step;
        if (most - least > 2.2 * (s->high - s->low) ||
            (s->low >= 0 && least < -1e-9 * by))
            return false;
        *low = s->low >= 0 ? fmax(0, least) : least;
        *high = most;
        return true;
    }
    return false;
}

/* How good a scale with ticks T from LOW to HIGH is: it has as many ticks as are
 * wanted, little of it lies beside the values of S, and its ticks are evenly apart. In
 * many rows one more or less is hardly seen, and blank ones would be. */
static double
score_of(const struct tui_scale *s, const struct tui_ticks *t, int want, bool is_even,
         double low, double high)
{
    const double gap = t->n > 1 ? (s->rows - 1) / (t->n - 1.0) : 1;
    const double seen = is_even               ? 1
                        : s->rows < MANY_ROWS ? 0.3
                                              : 1 - 0.6 / fmax(gap, 1);
    return 10 * least(t->n, want) + seen * (s->high - s->low) / (high - low);
}

/* With values in units of PER: the best distance of those that have room, WIDER: the
 * least of those where both ends have to move. False: the labels of none fit. */
static bool
divide_best(const struct tui_scale *s, double per, bool wider, double *low,
            double *high, struct tui_ticks *out)
{
    const int want = s->rows >= MANY_ROWS ? 4 : s->rows >= 5 ? 3 : 2;
    const int middle = step_from((s->high - s->low) / per);
    const int top = middle + STEPS, bottom = middle - 3 * STEPS;
    double best = 0;
    out->n = 0;
    for (int i = wider ? bottom : top; i >= bottom && i <= top + 16 * STEPS;
         i += wider ? 1 : -1) {
        for (int way = 0; way < 4; way++) { /* with both ends at ticks; spread */
            struct tui_ticks t = {0};
            double from, to;
            divide(s, per, i, wider || way % 2, &from, &to, &t);
            if (!has_rows(s, &t, from, to) ||
                (!wider && to - from > 2.2 * (s->high - s->low)) ||
                !write_labels(&t, per, i, TUI_TICK_COLUMNS))
                continue;
            const bool is_even = way / 2 && spread_evenly(s, &t, &from, &to);
            const double score = score_of(s, &t, want, is_even, from, to);
            if (score < best + 1e-6)
                continue;
            best = score;
            *out = t;
            *low = from;
            *high = to;
        }
        if (wider && out->n > 0)
            break;
    }
    return out->n > 0;
}

static void
scale_of_numbers(struct tui_scale *s, struct tui_ticks *out)
{
    char unit[8] = "";
    const double size = fmax(fabs(s->low), fabs(s->high));
    const double own = unit_of(s->of, size, unit);
    const int power = (int)floor(log10(size) + 1e-9);
    double per = own;
    double low = s->low, high = s->high;
    bool is_found = divide_best(s, own, false, &low, &high, out);
    if ((!is_found || out->n < 3) && s->of == TUI_OF_NUMBERS &&
        (power < -3 || power > 4)) { /* digits without their power of ten, then */
        struct tui_ticks t;
        double from, to;
        if (divide_best(s, times_ten(1, power), false, &from, &to, &t) &&
            t.n > (is_found ? out->n : 0)) {
            *out = t;
            low = from;
            high = to;
            is_found = true;
            per = times_ten(1, power);
            snprintf(unit, sizeof unit, "x1e%d", power);
        }
    }
    if (!is_found)
        is_found = divide_best(s, own, true, &low, &high, out);
    if (!is_found)
        out->n = 0;
    s->low = low;
    s->high = high;
    out->per = per;
    memcpy(out->unit, unit, sizeof unit);
}

/* ---- a scale of logarithms ---- */

/* Which multiples of powers of ten are ticks. DENSE 2: 1, 2 and 5 of each; 1: each
 * power; 0, -1, ...: every 2nd, 5th, 10th, ... of them. */
static int
jump_of(int dense)
{
    static const int jumps[] = {1, 2, 5, 10, 20, 50, 100};
    return jumps[dense >= 1 ? 0 : 1 - dense];
}

/* The tick that is number I in a row without end; number 0 is 1. */
static double
log_tick(int dense, int i)
{
    static const double of[] = {1, 2, 5};
    if (dense < 2)
        return times_ten(1, i * jump_of(dense));
    const int power = (i - (i < 0) * 2) / 3;
    return times_ten(of[i - 3 * power], power);
}

/* The number of the last tick up to V. */
static int
log_tick_below(int dense, double v)
{
    int i = (int)floor(log10(v) / jump_of(dense)) * (dense < 2 ? 1 : 3) - 1;
    while (log_tick(dense, i + 1) <= v * (1 + 1e-9))
        i++;
    return i;
}

static void
divide_log(int dense, double low, double high, struct tui_ticks *t)
{
    int i = log_tick_below(dense, low);
    i += log_tick(dense, i) < low * (1 - 1e-9);
    t->n = 0;
    for (; log_tick(dense, i) <= high * (1 + 1e-9) && t->n < TUI_TICKS; i++)
        t->at[t->n++] = log_tick(dense, i);
}

/* Moves the ends outwards to ticks. */
static void
end_at_ticks(int dense, double *low, double *high)
{
    const int first = log_tick_below(dense, *low), last = log_tick_below(dense, *high);
    const bool is_tick = log_tick(dense, last) >= *high * (1 - 1e-9);
    *low = fmin(*low, log_tick(dense, first));
    *high = fmax(*high, log_tick(dense, is_tick ? last : last + 1));
}

/* Moves the ends outwards so that as many rows lie between any two powers of ten that
 * are ticks, and these are rows themselves. Where that would widen the scale too far it
 * stays. */
static bool
spread_powers(int rows, int dense, double *low, double *high)
{
    const int jump = jump_of(dense);
    const double from = log10(*low) / jump, to = log10(*high) / jump;
    for (int per = (int)((rows - 1) / (to - from) + 1e-6); per > 0; per--) {
        const double begin = floor(from * per + 1e-6) / per;
        const double end = begin + (rows - 1.0) / per;
        const double least = pow(10, begin * jump), most = pow(10, end * jump);
        if (end < to - 1e-9 || (dense == 2 && per == 5)) /* 2 and 5 too near */
            continue;
        if (end - begin > 2.2 * (to - from) || least <= 0 || !isfinite(most))
            return false;
        *low = fmin(*low, least);
        *high = fmax(*high, most);
        return true;
    }
    return false;
}

/* Does each tick have a row of its own, of ROWS from LOW to HIGH? */
static bool
has_log_rows(int rows, const struct tui_ticks *t, double low, double high)
{
    for (int i = 1; i < t->n; i++)
        if (log10(t->at[i] / t->at[i - 1]) * (rows - 1) < 0.999 * log10(high / low))
            return false;
    return true;
}

static void
write_log_labels(struct tui_ticks *t)
{
    bool is_plain = t->at[0] >= 0.9e-3 && t->at[t->n - 1] < 9.9e5;
    for (int i = 0; i < t->n; i++) {
        snprintf(t->label[i], TUI_TICK_LABEL, is_plain ? "%.6g" : "%.0e", t->at[i]);
        if (is_plain)
            drop_zero(t->label[i]);
        else
            shorten_power(t->label[i]);
    }
}

/* The densest ticks of which there are enough and not too many, evenly apart where that
 * can be; ends that need not move to ticks do not. */
static void
scale_of_logs(struct tui_scale *s, struct tui_ticks *out)
{
    enum { DENSITIES = 8, WAYS = 2 * DENSITIES };
    const int most = least(s->rows, TUI_TICKS_Y), want = least(3, most);
    double low = s->low, high = s->high;
    out->n = 0;
    for (int i = 0; i < 2 * WAYS && out->n < want; i++) {
        const int dense = 2 - i % WAYS / 2;
        struct tui_ticks t = {0};
        double from = s->low, to = s->high;
        if (i % 2)
            end_at_ticks(dense, &from, &to);
        if (i < WAYS && (!spread_powers(s->rows, dense, &from, &to) ||
                         log10(to / from) > fmax(1, 3 * log10(s->high / s->low))))
            continue;
        divide_log(dense, from, to, &t);
        if (t.n > most || t.n <= out->n || !has_log_rows(s->rows, &t, from, to))
            continue;
        *out = t;
        low = from;
        high = to;
    }
    s->low = low;
    s->high = high;
    out->per = 1;
    if (out->n > 0)
        write_log_labels(out);
}

void
tui_ticks_of_scale(struct tui_scale *s, struct tui_ticks *out)
{
    *out = (struct tui_ticks){0};
    if (s->from_zero && s->low > 0 && !s->is_log)
        s->low = 0;
    double size = fmax(fabs(s->low), fabs(s->high));
    if (!(s->high - s->low > size * 1e-6))
        scale_of_one(s, out);
    else if (s->is_log)
        scale_of_logs(s, out);
    else
        scale_of_numbers(s, out);
}

/* ---- an axis ---- */

/* Where a label of WIDTH begins: around its tick, and inside. */
static int
begin_of(const struct tui_ticks *t, int i, double from, double to, int columns)
{
    const int width = (int)strlen(t->label[i]);
    const int own = i == t->n - 1 && t->n > 1 ? (int)strlen(t->label[0]) : width;
    int at = (int)lround((t->at[i] - from) / (to - from) * (columns - 1));
    int begin = at - ((own < width ? own : width) - 1) / 2; /* the unit lies behind */
    begin = begin + width > columns ? columns - width : begin;
    return begin < 0 ? 0 : begin;
}

int
tui_tick_column(const struct tui_ticks *t, int i, double from, double to, int columns)
{
    int begin = begin_of(t, i, from, to, columns);
    if (i > 0 &&
        begin <= begin_of(t, i - 1, from, to, columns) + (int)strlen(t->label[i - 1]))
        return -1;
    return begin + (int)strlen(t->label[i]) > columns ? -1 : begin;
}

/* Do all labels have room beside each other? */
static bool
have_room(const struct tui_ticks *t, double from, double to, int columns)
{
    for (int i = 0; i < t->n; i++)
        if (tui_tick_column(t, i, from, to, columns) < 0)
            return false;
    return true;
}

static void
put_unit(struct tui_ticks *t, const char *unit)
{
    char *last = t->label[t->n - 1];
    const size_t n = strlen(last);
    snprintf(last + n, TUI_TICK_LABEL - n, "%s%s",
             strchr("kMGTP", last[n - 1]) && *unit ? " " : "", unit);
}

void
tui_ticks_of_axis(double from, double to, int columns, enum tui_quantity of,
                  const char *unit, struct tui_ticks *out)
{
    *out = (struct tui_ticks){0};
    if (!(to > from) || columns < 4)
        return;
    char own[8];
    const double per = unit_of(of, fmax(fabs(from), fabs(to)), own);
    const int top = step_from((to - from) / per);
    for (int i = top; i >= top - 2 * STEPS && out->n < 4; i--) {
        const double by = step_of(i) * per;
        struct tui_ticks t = {0};
        if (i - (int)floor((double)i / STEPS) * STEPS == 2 || /* 2.5 */
            (of == TUI_OF_COUNTS && by < 1))
            continue;
        for (double k = ceil(from / by - 1e-6);
             k <= floor(to / by + 1e-6) && t.n < TUI_TICKS; k++)
            t.at[t.n++] = k * step_of(i) * per;
        if (t.n == 0 || t.n > MOST_X || t.n <= out->n ||
            !write_labels(&t, per, i, COLUMNS_X))
            continue;
        put_unit(&t, unit ? unit : own);
        if (have_room(&t, from, to, columns))
            *out = t;
    }
    memcpy(out->unit, own, sizeof own);
    out->per = per;
}
