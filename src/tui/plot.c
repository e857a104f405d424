/* plot.c: see plot.h.
 *
 * A cell is DX x DY dots: 1x1 as a character, 2x2 as a block, 2x4 in Braille. A line is
 * drawn through the last value of the points that fall into each column of dots, with
 * straight lines over columns without; a span covers all from the least to the greatest
 * there, so that no peak is lost. What scatters has dots at these two alone, and none
 * in a cell that another line crosses: a cell has one colour, and without colours the
 * line would be lost among the dots. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/glyphs.h"
#include "tui/plot.h"

enum { MAX_DOTS = 2 * 512 };

struct canvas {
    struct tui_pane in; /* the values' cells */
    const struct tui_plot *plot;
    const struct tui_glyphs *g;
    int dx, dy;       /* dots of a cell */
    double low, high; /* of the scale, logarithms where that is one */
};

/* ---- the scale ---- */

void
tui_plot_scale(double *low, double *high, int n)
{
    static const double digits[] = {1, 1.2, 1.5, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10, 12};
    double range = *high - *low, size = fmax(fabs(*high), fabs(*low));
    if (n < 1)
        n = 1;
    if (!(range > size * 1e-6))
        range = size > 0 ? size * 0.1 : 1;
    double power = pow(10, floor(log10(range / n)));
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        double step = digits[i] * power;
        double base = floor(*low / (step / 2) + 1e-9) * step / 2;
        if (*low >= 0 && base < 0)
            base = 0;
        if (base + n * step < *high - 1e-9 * step)
            continue;
        *low = base;
        *high = base + n * step;
        return;
    }
    *high = *low + n * 20 * power;
}

void
tui_plot_label(double v, double step, char buf[TUI_PLOT_LABEL + 10])
{
    static const struct {
        double of;
        char suffix;
    } units[] = {{1e15, 'P'}, {1e12, 'T'}, {1e9, 'G'}, {1e6, 'M'}, {1e5, 'k'}};
    const size_t size = TUI_PLOT_LABEL + 10;
    if (fabs(v) < step * 1e-6)
        v = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (fabs(v) >= units[i].of) {
            double of = units[i].of == 1e5 ? 1e3 : units[i].of;
            snprintf(buf, size, "%.4g%c", v / of, units[i].suffix);
            return;
        }
    if (v != 0 && fabs(v) < 1e-3) {
        snprintf(buf, size, "%.0e", v);
        return;
    }
    int decimals = (int)ceil(-log10(step) - 1e-9) + 1;
    decimals = step >= 10 ? 0 : decimals < 0 ? 0 : decimals > 5 ? 5 : decimals;
    snprintf(buf, size, "%.*f", decimals, v);
    if (strlen(buf) > TUI_PLOT_LABEL && strncmp(buf, "0.", 2) == 0)
        memmove(buf, buf + 1, strlen(buf)); /* .00384 */
    if (strlen(buf) > TUI_PLOT_LABEL)
        snprintf(buf, size, "%.3g", v);
}

static double
scaled(const struct canvas *c, double v)
{
    return c->plot->is_log ? (v > 0 ? log10(v) : NAN) : v;
}

static void
find_range(struct canvas *c)
{
    c->low = INFINITY;
    c->high = -INFINITY;
    for (int i = 0; i < c->plot->n_lines; i++) {
        const struct tui_plot_line *l = &c->plot->line[i];
        for (int k = 0; k < l->n; k++) {
            const struct tui_point *q = &l->point[k];
            if (q->x < c->plot->from || q->x > c->plot->to)
                continue;
            bool is_last = l->kind == TUI_PLOT_LAST;
            double low = scaled(c, is_last ? q->last : q->min);
            double high = scaled(c, is_last ? q->last : q->max);
            if (isfinite(low))
                c->low = fmin(c->low, low);
            if (isfinite(high))
                c->high = fmax(c->high, high);
        }
    }
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

static void
put_dot(const struct canvas *c, int row, int column, const struct tui_plot_line *l)
{
    int y = row / c->dy, x = column / c->dx;
    if (row < 0 || column < 0 || y >= c->in.h || x >= c->in.w)
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

/* The row of dots of a value; values at the ends of the scale lie on the grid's edge.
 */
static int
row_of(const struct canvas *c, double v)
{
    int rows = c->in.h * c->dy;
    double part = (c->high - scaled(c, v)) / (c->high - c->low);
    return isnan(part) ? -1 : (int)lround(part * (rows - 1));
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
    if (y0 < 0 || y1 < 0)
        return;
    int before = y0;
    for (int x = x0 + 1; x <= x1; x++) {
        int y = y0 + (int)lround((double)(y1 - y0) * (x - x0) / (x1 - x0));
        int middle = before + (y - before) / 2, next = y > before ? 1 : -1;
        put_span(c, x - 1, before, middle, l);
        put_span(c, x, y == middle ? y : middle + next, y, l);
        before = y;
    }
}

static void
put_line(const struct canvas *c, const struct tui_plot_line *l)
{
    int last_column = -1, last_row = -1;
    for (int i = 0; i < l->n;) {
        int column = column_of(c, l->point[i].x);
        double min = INFINITY, max = -INFINITY, last = NAN;
        for (; i < l->n && column_of(c, l->point[i].x) == column; i++) {
            min = fmin(min, l->point[i].min);
            max = fmax(max, l->point[i].max);
            last = l->point[i].last;
        }
        int row = row_of(c, last);
        bool inside = column >= 0 && column < c->in.w * c->dx;
        int low = row_of(c, c->plot->is_log && min <= 0 ? last : min);
        if (l->kind != TUI_PLOT_LAST && inside && isfinite(min)) {
            if (l->kind == TUI_PLOT_SPAN)
                put_span(c, column, low, row_of(c, max), l);
            else {
                put_dot(c, low, column, l);
                put_dot(c, row_of(c, max), column, l);
            }
        } else if (row >= 0 && inside)
            put_dot(c, row, column, l);
        if (last_row >= 0 && row >= 0 && l->kind == TUI_PLOT_LAST &&
            column - last_column < MAX_DOTS && column >= 0)
            put_join(c, last_column, last_row, column, row, l);
        last_column = column;
        last_row = row;
    }
}

/* ---- what is around ---- */

static void
put_labels(const struct tui_pane *p, const struct canvas *c, bool is_empty)
{
    char text[TUI_PLOT_LABEL + 10];
    int rows = c->in.h;
    double step = rows > 1 ? (c->high - c->low) / (rows - 1) : 1;
    for (int y = 0; y < rows; y++) {
        tui_put_ch(p, y, TUI_PLOT_LABEL, c->g->down, TUI_DIM, 0);
        if (is_empty || y % 2 != 0)
            continue;
        double v = c->high - step * y;
        if (c->plot->is_log)
            snprintf(text, sizeof text, "%.2g", pow(10, v));
        else
            tui_plot_label(v, 2 * step, text);
        tui_put_end(p, y, TUI_PLOT_LABEL, TUI_DIM, text);
    }
}

static void
put_axis(const struct tui_pane *p, const struct canvas *c)
{
    const struct tui_plot *plot = c->plot;
    int y = p->h - 1, x = TUI_PLOT_LABEL;
    tui_fill(p, y, x, p->w - x, c->g->across, TUI_DIM);
    tui_put_ch(p, y, x, c->g->corner, TUI_DIM, 0);
    int right = p->w - 2 - tui_width(plot->right);
    if (plot->left && *plot->left) {
        tui_put_ch(p, y, x + 2, ' ', TUI_DIM, 0);
        int end = x + 3 + tui_put(p, y, x + 3, TUI_DIM, plot->left);
        tui_put_ch(p, y, end, ' ', TUI_DIM, 0);
    }
    if (right > x + 4 && *plot->right) {
        tui_put_ch(p, y, right - 1, ' ', TUI_DIM, 0);
        tui_put(p, y, right, TUI_DIM, plot->right);
        tui_put_ch(p, y, p->w - 2, ' ', TUI_DIM, 0);
    }
    for (int i = 0; i < plot->n_marks; i++) {
        int column = column_of(c, plot->mark[i]) / c->dx;
        if (column >= 0 && column < c->in.w)
            tui_put_ch(p, y, x + 1 + column, (unsigned char)plot->mark_sign[i],
                       TUI_WARN, 0);
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
            tui_put_ch(&c->in, y, x, c->g->down, TUI_FOCUS, 0);
        else
            tui_mark(&c->in, y, x, 1, TUI_REVERSE);
    }
}

void
tui_plot_draw(const struct tui_pane *p, const struct tui_plot *plot, int *columns)
{
    struct canvas c = {
        .in = tui_pane_part(p, 0, TUI_PLOT_LABEL + 1, p->h - 1, p->w),
        .plot = plot,
        .g = p->grid->glyphs,
    };
    c.in.w -= c.in.w > 1; /* the next column of charts begins there */
    c.dx = c.g->plot == ETI_PLOT_ASCII ? 1 : 2;
    c.dy = c.g->plot == ETI_PLOT_ASCII ? 1 : c.g->plot == ETI_PLOT_BLOCK ? 2 : 4;
    if (columns)
        *columns = c.in.w;
    if (c.in.h < 1 || c.in.w < 2)
        return;
    find_range(&c);
    bool is_empty = !(c.low <= c.high);
    if (is_empty)
        c.low = 0, c.high = 1;
    if (!plot->is_log || c.high - c.low < 1e-9)
        tui_plot_scale(&c.low, &c.high, (c.in.h - 1) / 2);
    if (c.in.h > 2 && c.in.h % 2 == 0 && !plot->is_log) /* half a step above */
        c.high += (c.high - c.low) / (c.in.h - 2);
    put_labels(p, &c, is_empty);
    put_axis(p, &c);
    for (int i = 0; i < plot->n_lines && plot->to > plot->from; i++)
        put_line(&c, &plot->line[i]);
    if (!isnan(plot->cursor) && plot->to > plot->from)
        put_cursor(&c);
}

void
tui_plot_smooth(struct tui_point *point, int n, double weight)
{
    double mean = 0, total = 0;
    for (int i = 0; i < n && weight > 0; i++) {
        if (!isfinite(point[i].last))
            continue;
        mean = weight * mean + (1 - weight) * point[i].last;
        total = weight * total + (1 - weight); /* so that the first counts in full */
        point[i].last = point[i].min = point[i].max = mean / total;
    }
}
