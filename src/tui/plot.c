/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c: see plot.h.
 *
 * A cell is DX x DY dots: 1x1 as a character, 2x2 as a block, 2x4 in Braille. A line is
 * drawn through the last value of the points that fall into each column of dots, with
 * straight lines over columns without; a span covers all from the least to the greatest
 * there, so that no peak is lost. What scatters has dots at these two alone, and none
 * in a cell that another line crosses: a cell has one colour, and without colours the
 * line would be lost among the dots. */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/plot.h"

enum {
    MAX_DOTS = 2 * 512,
    SAMPLES = 4096, /* values that a percentile is taken of */
    TWO_LINES = 7,  /* rows of a chart whose axis has a line for its labels */
    DASH = 2,       /* dots of a quarter of a dash */
    LEAST = 10,     /* values from which on it is known what is usual */
};

struct canvas {
    struct tui_pane in; /* the values' cells */
    const struct tui_plot *plot;
    const struct tui_glyphs *g;
    int dx, dy;       /* dots of a cell */
    double low, high; /* of the scale, logarithms where that is one */
    struct tui_ticks ticks;
    struct tui_plot_seen seen;
    double farthest_x; /* where seen.farthest is */
    enum tui_role farthest_role;
};

/* ---- the scale ---- */

static double
scaled(const struct canvas *c, double v)
{
    return c->plot->is_log ? (v > 0 ? log10(v) : NAN) : v;
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The finite values of L on the axis, the least and greatest of each point where they
 * are shown: [SAMPLES] of them at most, evenly taken. Returns how many. */
static int
sample(const struct canvas *c, const struct tui_plot_line *l, double *out)
{
    const bool is_span = l->kind == TUI_PLOT_SPAN || l->kind == TUI_PLOT_SCATTER;
    const int every = 1 + 2 * l->n / SAMPLES;
    int n = 0;
    for (int i = 0; i < l->n && n < SAMPLES - 1; i += every) {
        const struct tui_point *q = &l->point[i];
        if (q->x < c->plot->from || q->x > c->plot->to)
            continue;
        double low = is_span ? q->min : q->last, high = is_span ? q->max : q->last;
        if (isfinite(low))
            out[n++] = low;
        if (isfinite(high))
            out[n++] = high;
    }
    return n;
}

static bool
has_bad(const struct tui_plot_line *l)
{
    for (int i = 0; i < l->n; i++)
        if (!isfinite(l->point[i].last))
            return true;
    return false;
}

/* Looks for the value of Q that is farthest beyond the reach of L. */
static void
find_farthest(struct canvas *c, const struct tui_plot_line *l,
              const struct tui_point *q)
{
    const bool is_span = l->kind == TUI_PLOT_SPAN || l->kind == TUI_PLOT_SCATTER;
    const double of[] = {is_span ? q->min : q->last, is_span ? q->max : q->last};
    for (int k = 0; k < 2; k++)
        if (isfinite(of[k]) && fabs(of[k]) > l->reach &&
            fabs(of[k]) > fabs(c->seen.farthest)) {
            c->seen.farthest = of[k];
            c->farthest_x = q->x;
            c->farthest_role = l->role;
        }
}

/* What of L the scale has to hold: all of it; of a scatter all but one of a hundred at
 * either end; nothing beyond its reach; of values that went out of hand those up to ten
 * times their median. */
static void
find_range_of(struct canvas *c, const struct tui_plot_line *l, double *low,
              double *high)
{
    double v[SAMPLES];
    const int n = sample(c, l, v);
    const bool cuts = l->kind == TUI_PLOT_SCATTER;
    const bool has_reach = l->reach > 0 && !c->plot->is_log;
    const bool tames = !has_reach && (c->plot->is_tame || has_bad(l));
    double floor = -INFINITY, ceiling = INFINITY;
    if (n > 0 && (cuts || tames)) {
        qsort(v, (size_t)n, sizeof *v, by_size);
        if (cuts) {
            floor = v[n / 100];
            ceiling = v[n - 1 - n / 100];
        }
        if (tames) {
            double reach = 10 * fmax(fabs(v[n / 2]), fabs(v[n / 4]));
            floor = reach > 0 ? fmax(floor, -reach) : floor;
            ceiling = reach > 0 ? fmin(ceiling, reach) : ceiling;
        }
    }
    if (has_reach) {
        floor = fmax(floor, -l->reach);
        ceiling = fmin(ceiling, l->reach);
    }
    for (int i = 0; i < l->n; i++) {
        const struct tui_point *q = &l->point[i];
        const bool is_span = l->kind == TUI_PLOT_SPAN || cuts;
        if (q->x < c->plot->from || q->x > c->plot->to)
            continue;
        const double of[] = {is_span ? q->min : q->last, is_span ? q->max : q->last};
        if (has_reach)
            find_farthest(c, l, q);
        for (int k = 0; k < 2; k++) {
            if (!isfinite(of[k]) || of[k] < floor || of[k] > ceiling)
                continue;
            if (c->plot->is_log && of[k] <= 0) {
                c->seen.n_hidden += k == 0;
                continue;
            }
            *low = fmin(*low, of[k]);
            *high = fmax(*high, of[k]);
        }
    }
}

static void
find_scale(struct canvas *c)
{
    struct tui_scale s = {
        .low = INFINITY,
        .high = -INFINITY,
        .rows = c->in.h,
        .of = c->plot->of,
        .is_log = c->plot->is_log,
        .from_zero = c->plot->from_zero,
    };
    for (int i = 0; i < c->plot->n_lines; i++)
        find_range_of(c, &c->plot->line[i], &s.low, &s.high);
    if (!(s.low <= s.high)) { /* nothing to show: no labels either */
        c->low = 0;
        c->high = 1;
        return;
    }
    c->seen.wants_log =
        !s.is_log && s.low > 0 && fmax(s.high, c->seen.farthest) > 100 * s.low;
    tui_ticks_of_scale(&s, &c->ticks);
    c->low = scaled(c, s.low);
    c->high = scaled(c, s.high);
    c->seen.per = c->ticks.per;
    snprintf(c->seen.unit, sizeof c->seen.unit, "%s", c->ticks.unit);
}

/* ---- dots ---- */

/* Of Braille, by row and column of dots; of blocks, bits of the quadrants. */
static const int braille_bit[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
static const uint32_t quadrants[16] = {
    ' ',    0x2598, 0x259d, 0x2580, 0x2596, 0x258c, 0x259e, 0x259b,
    0x2597, 0x259a, 0x2590, 0x259c, 0x2584, 0x2599, 0x259f, 0x2588,
};

static int
quadrant_bits(uint32_t ch)
{
    for (int i = 0; i < 16; i++)
        if (quadrants[i] == ch)
            return i;
    return 0;
}

/* Is L told from others by its dashes? Characters have marks, and colours do it too. */
static bool
is_dashed(const struct canvas *c, const struct tui_plot_line *l)
{
    return l->dash > 0 && c->dx > 1 && c->in.grid->is_mono;
}

static void
put_dot(const struct canvas *c, int row, int column, const struct tui_plot_line *l)
{
    int y = row / c->dy, x = column / c->dx;
    if (row < 0 || column < 0 || y >= c->in.h || x >= c->in.w ||
        (is_dashed(c, l) && (column + row) / DASH % 4 >= 4 - l->dash))
        return;
    const struct tui_grid *grid = c->in.grid;
    const struct tui_cell *cell =
        &grid->cell[(size_t)(c->in.y + y) * (size_t)grid->cols + c->in.x + x];
    uint32_t was = cell->role == TUI_RAW && l->role != TUI_RAW ? ' ' : cell->ch;
    uint32_t ch = l->mark;
    if (c->dy == 4)
        ch = 0x2800 | (was >= 0x2800 && was < 0x2900 ? was & 0xff : 0) |
             (uint32_t)braille_bit[row % 4][column % 2];
    else if (c->dy == 2)
        ch = quadrants[quadrant_bits(was) | 1 << (row % 2 * 2 + column % 2)];
    tui_put_ch(&c->in, y, x, ch, l->role, 0);
}

enum { ROW_NONE = INT_MIN };

/* The row of dots of a value, rows outside the scale included; values at the ends of
 * the scale lie on the grid's edge. ROW_NONE: it has no row. */
static int
row_of(const struct canvas *c, double v)
{
    const int rows = c->in.h * c->dy;
    double part = (c->high - scaled(c, v)) / (c->high - c->low);
    if (!isfinite(v) || !isfinite(part))
        return ROW_NONE;
    return (int)lround(fmin(fmax(part, -1), 2) * (rows - 1));
}

static int
column_of(const struct canvas *c, double x)
{
    double part = (x - c->plot->from) / (c->plot->to - c->plot->from);
    return (int)floor(part * (c->in.w * c->dx - 1) + 0.5);
}

static void
put_span(const struct canvas *c, int column, int a, int b,
         const struct tui_plot_line *l)
{
    int from = a < b ? a : b, to = a < b ? b : a, rows = c->in.h * c->dy;
    if (to < 0 || from >= rows)
        return;
    for (int row = from < 0 ? 0 : from; row <= to && row < rows; row++)
        put_dot(c, row, column, l);
}

/* From one column's row to the next's: what lies between belongs half to each. */
static void
put_join(const struct canvas *c, int x0, int y0, int x1, int y1,
         const struct tui_plot_line *l)
{
    int before = y0;
    for (int x = x0 + 1; x <= x1; x++) {
        int y = y0 + (int)lround((double)(y1 - y0) * (x - x0) / (x1 - x0));
        int middle = before + (y - before) / 2, next = y > before ? 1 : -1;
        put_span(c, x - 1, before, middle, l);
        put_span(c, x, y == middle ? y : middle + next, y, l);
        before = y;
    }
}

/* The cell of a dot; false: it lies outside. */
static bool
cell_of(const struct canvas *c, int row, int column, int *y, int *x)
{
    *y = row / c->dy;
    *x = column / c->dx;
    return row >= 0 && column >= 0 && *y < c->in.h && *x < c->in.w;
}

/* A value above or below the scale: a sign at that edge. */
static void
put_outside(const struct canvas *c, int row, int column, const struct tui_plot_line *l)
{
    int rows = c->in.h * c->dy, y, x;
    if (row == ROW_NONE || (row >= 0 && row < rows) ||
        !cell_of(c, row < 0 ? 0 : rows - 1, column, &y, &x))
        return;
    tui_put_ch(&c->in, y, x, row < 0 ? '^' : 'v', l->role, 0);
}

/* The places of single values: of an evaluation's where they are few, and of a line
 * that has one only. A value that is not finite ends its line with a sign. */
static void
put_signs(const struct canvas *c, const struct tui_plot_line *l)
{
    const bool is_ascii = c->g->plot == ETI_PLOT_ASCII;
    const bool has_marks = (l->kind == TUI_PLOT_POINTS && 3 * l->n <= c->in.w) ||
                           (l->n == 1 && l->kind != TUI_PLOT_SCATTER);
    int last_row = ROW_NONE, last_column = 0, y, x;
    for (int i = 0; i < l->n && l->kind != TUI_PLOT_SCATTER; i++) {
        int row = row_of(c, l->point[i].last), column = column_of(c, l->point[i].x);
        if (has_marks && cell_of(c, row, column, &y, &x))
            tui_put_ch(&c->in, y, x, is_ascii ? l->mark : c->g->live, l->role, 0);
        if (!isfinite(l->point[i].last) && last_row != ROW_NONE) {
            last_row = last_row < 0                  ? 0
                       : last_row >= c->in.h * c->dy ? c->in.h * c->dy - 1
                                                     : last_row;
            if (cell_of(c, last_row, last_column, &y, &x))
                tui_put_ch(&c->in, y, x, c->g->failed, TUI_BAD, 0);
            last_row = ROW_NONE;
        }
        if (isfinite(l->point[i].last)) {
            last_row = row;
            last_column = column;
        }
    }
}

static void
put_line(const struct canvas *c, const struct tui_plot_line *l)
{
    const bool is_line = l->kind == TUI_PLOT_LAST || l->kind == TUI_PLOT_POINTS;
    int last_column = -1, last_row = ROW_NONE;
    for (int i = 0; i < l->n;) {
        int column = column_of(c, l->point[i].x);
        const bool is_apart = l->point[i].is_apart;
        double min = INFINITY, max = -INFINITY, last = NAN;
        for (; i < l->n && column_of(c, l->point[i].x) == column; i++) {
            min = fmin(min, l->point[i].min);
            max = fmax(max, l->point[i].max);
            last = l->point[i].last;
        }
        int row = row_of(c, last);
        bool inside = column >= 0 && column < c->in.w * c->dx;
        int low = row_of(c, c->plot->is_log && min <= 0 ? last : min);
        if (!is_line && inside && isfinite(min)) {
            if (l->kind == TUI_PLOT_SPAN)
                put_span(c, column, low, row_of(c, max), l);
            else {
                put_dot(c, low, column, l);
                put_dot(c, row_of(c, max), column, l);
            }
            put_outside(c, low, column, l);
            put_outside(c, row_of(c, max), column, l);
        } else if (row != ROW_NONE && inside) {
            put_dot(c, row, column, l);
            put_outside(c, row, column, l);
        }
        if (last_row != ROW_NONE && row != ROW_NONE && is_line && !is_apart &&
            column - last_column < MAX_DOTS && column >= 0)
            put_join(c, last_column, last_row, column, row, l);
        last_column = column;
        last_row = row;
    }
}

static bool
is_blank(const struct tui_pane *p, int y, int x, int w)
{
    const struct tui_grid *g = p->grid;
    for (int i = 0; i < w; i++)
        if (g->cell[(size_t)(p->y + y) * (size_t)g->cols + p->x + x + i].ch != ' ')
            return false;
    return true;
}

/* The farthest value beyond a line's reach, beside its sign at the edge. */
static void
put_farthest(const struct canvas *c)
{
    char text[TUI_NUMBER];
    if (c->seen.farthest == 0)
        return;
    tui_value(c->seen.farthest, text);
    const int w = tui_width(text), at = column_of(c, c->farthest_x) / c->dx;
    const int edge = c->seen.farthest > 0 ? 0 : c->in.h - 1;
    const int next = edge == 0 && c->in.h > 1 ? 1 : edge > 0 ? edge - 1 : 0;
    for (int i = 0; i < 8; i++) { /* at the edge, else one row inside; right, left */
        const int y = i < 4 ? edge : next, off = 2 + i % 2;
        const int x = i % 4 < 2 ? at + off : at + 1 - off - w;
        if (x < 1 || x + w + 1 > c->in.w || !is_blank(&c->in, y, x - 1, w + 2))
            continue;
        tui_put(&c->in, y, x, c->farthest_role == TUI_RAW ? TUI_AXIS : c->farthest_role,
                text);
        return;
    }
}

/* ---- what is around ---- */

static void
put_labels(const struct tui_pane *p, const struct canvas *c)
{
    for (int y = 0; y < c->in.h; y++)
        tui_put_ch(p, y, TUI_PLOT_LABEL, c->g->down, TUI_RULE, 0);
    for (int i = 0; i < c->ticks.n; i++) {
        int row = row_of(c, c->ticks.at[i]), y = row / c->dy;
        if (row < 0 || y >= c->in.h)
            continue;
        tui_put_ch(p, y, TUI_PLOT_LABEL, c->g->tick, TUI_RULE, 0);
        tui_put_end(p, y, TUI_PLOT_LABEL, TUI_AXIS, c->ticks.label[i]);
    }
}

/* The line of the axis, dotted where the run has not come yet, and its labels: below
 * it, or where there are few rows in it. */
static void
put_axis(const struct tui_pane *p, const struct canvas *c)
{
    const struct tui_plot *plot = c->plot;
    const double per = plot->x_per > 0 ? plot->x_per : 1;
    const double from = plot->from * per, to = plot->to * per;
    const bool has_line = p->h >= TWO_LINES;
    const int y = p->h - 1 - has_line, x = TUI_PLOT_LABEL + 1;
    struct tui_ticks t;
    tui_ticks_of_axis(from, to, c->in.w, plot->x_of, plot->unit, &t);
    tui_put_ch(p, y, x - 1, c->g->corner, TUI_RULE, 0);
    int done = isnan(plot->done) ? c->in.w : column_of(c, plot->done) / c->dx;
    for (int i = 0; i < c->in.w; i++)
        tui_put_ch(p, y, x + i, i <= done ? c->g->across : c->g->dotted, TUI_RULE, 0);
    for (int i = 0; i < t.n; i++) {
        int at = column_of(c, t.at[i] / per) / c->dx;
        int begin = tui_tick_column(&t, i, from, to, c->in.w);
        if (at >= 0 && at < c->in.w && has_line)
            tui_put_ch(p, y, x + at, c->g->tick_down, TUI_RULE, 0);
        if (begin >= 0)
            tui_put(p, y + has_line, x + begin, TUI_AXIS, t.label[i]);
    }
    for (int i = 0; i < plot->n_marks; i++) {
        int column = column_of(c, plot->mark[i]) / c->dx;
        if (column >= 0 && column < c->in.w)
            tui_put_ch(p, y, x + column, (unsigned char)plot->mark_sign[i], TUI_WARN,
                       0);
    }
}

static void
put_cursor(const struct canvas *c)
{
    int x = column_of(c, c->plot->cursor) / c->dx;
    for (int y = 0; y < c->in.h && x >= 0 && x < c->in.w; y++) {
        const struct tui_grid *grid = c->in.grid;
        if (grid->cell[(size_t)(c->in.y + y) * (size_t)grid->cols + c->in.x + x].ch ==
            ' ')
            tui_put_ch(&c->in, y, x, c->g->down, TUI_CURSOR, 0);
        else
            tui_mark(&c->in, y, x, 1, TUI_REVERSE);
    }
}

void
tui_plot_draw(const struct tui_pane *p, const struct tui_plot *plot,
              struct tui_plot_seen *seen)
{
    struct canvas c = {
        .in = tui_pane_part(p, 0, TUI_PLOT_LABEL + 1, p->h - 1 - (p->h >= TWO_LINES),
                            p->w),
        .plot = plot,
        .g = p->grid->glyphs,
        .seen = {.per = 1},
    };
    c.in.w -= c.in.w > 1; /* the next column of charts begins there */
    c.dx = c.g->plot == ETI_PLOT_ASCII ? 1 : 2;
    c.dy = c.g->plot == ETI_PLOT_ASCII ? 1 : c.g->plot == ETI_PLOT_BLOCK ? 2 : 4;
    if (seen)
        *seen = (struct tui_plot_seen){.per = 1};
    if (c.in.h < 1 || c.in.w < 2)
        return;
    find_scale(&c);
    put_labels(p, &c);
    put_axis(p, &c);
    for (int i = 0; i < plot->n_lines && plot->to > plot->from; i++) {
        put_line(&c, &plot->line[i]);
        put_signs(&c, &plot->line[i]);
    }
    put_farthest(&c);
    if (!isnan(plot->cursor) && plot->to > plot->from)
        put_cursor(&c);
    if (seen)
        *seen = c.seen;
}

static double
farthest_of(const struct tui_point *p)
{
    double far = isfinite(p->last) ? fabs(p->last) : 0;
    far = isfinite(p->min) ? fmax(far, fabs(p->min)) : far;
    return isfinite(p->max) ? fmax(far, fabs(p->max)) : far;
}

/* (What comes first says what is usual; later a curve may rise that far slowly, and yet
 * hide all the rest.) */
double
tui_plot_reach(const struct tui_point *point, int n, double base)
{
    enum { BURST = 100 };
    double usual = base, most = base;
    int seen = 0, i = 0;
    for (; i < n; i++) {
        const double far = farthest_of(&point[i]);
        if (usual > 0 && far > BURST * usual)
            break;
        most = fmax(most, far);
        if (far > 0 && base == 0 && seen++ < LEAST)
            usual = fmax(usual, far);
    }
    return i < n ? 2 * most : 0; /* what comes back down is seen, too */
}

void
tui_plot_smooth(struct tui_point *point, int n, double weight, double reach)
{
    double mean = 0, total = 0;
    for (int i = 0; i < n && weight > 0; i++) {
        if (!isfinite(point[i].last) || (reach > 0 && fabs(point[i].last) > reach))
            continue;
        mean = weight * mean + (1 - weight) * point[i].last;
        total = weight * total + (1 - weight); /* so that the first counts in full */
        point[i].last = point[i].min = point[i].max = mean / total;
    }
}

enum { SAMPLE = 4 }; /* cells of a dashed line in a legend */

int
tui_plot_sample_columns(const struct tui_grid *g)
{
    return 1 + (g->is_mono && g->glyphs->plot != ETI_PLOT_ASCII ? SAMPLE : 1);
}

void
tui_plot_sample(const struct tui_pane *p, int y, int x, enum tui_role role,
                uint32_t mark, int dash)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    const bool is_braille = g->plot == ETI_PLOT_BRAILLE;
    if (tui_plot_sample_columns(p->grid) == 2)
        tui_put_ch(p, y, x, g->plot == ETI_PLOT_ASCII ? mark : g->live, role, 0);
    else
        for (int i = 0; i < SAMPLE; i++)
            tui_put_ch(p, y, x + i,
                       i >= SAMPLE - dash ? ' '
                       : is_braille       ? 0x2812
                                          : 0x2580,
                       role, 0);
}
