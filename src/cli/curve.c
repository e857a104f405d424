/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c: the learning rate over a run, drawn in 80 columns or as JSON.
 *
 *     learning rate        set at each batch
 *        0.3|   ****
 *           |***    ******
 *          0|             *****
 *           +- 0 -------- 1,876ba = 4ep -
 *           first 0, highest 0.3 at 200ba, last 0.000179 at 1,875ba */
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "tui/glyphs.h"

enum {
    LABEL = 7, /* columns before the axis */
    COLUMNS = 80 - LABEL - 1,
    ROWS = 9, /* an odd number: the middle has a label */
    JSON_POINTS = 257,
};

/* What the glyph sets differ in. */
struct glyphs {
    const char *bar, *corner, *line;
    int dots_x, dots_y; /* of a cell */
};
static const struct glyphs sets[] = {
    [ETI_PLOT_ASCII] = {"|", "+", "-", 1, 1},
    [ETI_PLOT_BLOCK] = {"\u2502", "\u2514", "\u2500", 2, 2},
    [ETI_PLOT_BRAILLE] = {"\u2502", "\u2514", "\u2500", 2, 4},
};

enum eti_plot
cli_plot_glyphs(const struct cli *c)
{
    const char *term = getenv("TERM");
    int wanted = c->config ? c->config->set.ui.plot : ETI_PLOT_AUTO;
    if (c->opt.ascii)
        return ETI_PLOT_ASCII;
    if (wanted != ETI_PLOT_AUTO)
        return (enum eti_plot)wanted;
    bool linux_console = term && strcmp(term, "linux") == 0;
    return tui_is_utf8() && !linux_console ? ETI_PLOT_BRAILLE : ETI_PLOT_ASCII;
}

/* ---- what is worth saying ---- */

static int
highest(const struct eti_curve *curve)
{
    int at = 0;
    for (int i = 1; i < curve->n; i++)
        if (curve->rate[i] > curve->rate[at])
            at = i;
    return at;
}

static double
lowest_rate(const struct eti_curve *curve)
{
    double least = curve->rate[0];
    for (int i = 1; i < curve->n; i++)
        least = fmin(least, curve->rate[i]);
    return least;
}

/* ---- the plot ---- */

/* The point that holds at update BATCH. */
static int
point_of(const struct eti_curve *curve, double batch)
{
    double at = curve->batches > 1 ? batch / (double)(curve->batches - 1) : 0;
    return (int)fmin(floor(at * (curve->n - 1)), curve->n - 1);
}

/* Sets SPAN to the lowest and highest rate of column X of WIDTH, reached from FROM
 * (NaN: there is no column before). Returns the rate with which the column ends. */
static double
column(const struct eti_curve *curve, int x, int width, double from, double span[2])
{
    double batches = (double)curve->batches;
    double first = floor(x * batches / width);
    double last = fmax(first, floor((x + 1) * batches / width) - 1);
    int i = point_of(curve, first), end = point_of(curve, last);
    span[0] = span[1] = curve->rate[i];
    if (!isnan(from)) {
        span[0] = fmin(span[0], from);
        span[1] = fmax(span[1], from);
    }
    for (; i <= end; i++) {
        span[0] = fmin(span[0], curve->rate[i]);
        span[1] = fmax(span[1], curve->rate[i]);
    }
    return curve->rate[end];
}

/* Which dot of HEIGHT, from the top, RATE falls on. */
static int
dot_of(double rate, double low, double high, int height)
{
    double down = high > low ? (high - rate) / (high - low) : 0;
    return (int)lround(down * (height - 1));
}

/* Marks every dot of the curve: DOT [height][width]. */
static void
mark(const struct eti_curve *curve, double low, double high, int width, int height,
     bool *dot)
{
    double from = NAN, span[2];
    for (int x = 0; x < width; x++) {
        from = column(curve, x, width, from, span);
        int bottom = dot_of(span[0], low, high, height);
        for (int y = dot_of(span[1], low, high, height); y <= bottom; y++)
            dot[y * width + x] = true;
    }
}

/* The cell of ROW and COLUMN in braille: U+2800 and a bit for each of its 2 x 4
 * dots. */
static void
print_braille(const bool *dot, int width, int row, int column)
{
    static const int bit[4][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}};
    int bits = 0;
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 2; x++)
            if (dot[(row * 4 + y) * width + column * 2 + x])
                bits |= 1 << bit[y][x];
    if (bits)
        printf("\xe2%c%c", 0xa0 + (bits >> 6), 0x80 + (bits & 0x3f));
    else
        putchar(' ');
}

/* The same in blocks of quarters. */
static void
print_block(const bool *dot, int width, int row, int column)
{
    /* by bits: upper left, upper right, lower left, lower right */
    static const char *const quarters[16] = {
        " ",      "\u2598", "\u259d", "\u2580", "\u2596", "\u258c", "\u259e", "\u259b",
        "\u2597", "\u259a", "\u2590", "\u259c", "\u2584", "\u2599", "\u259f", "\u2588",
    };
    int bits = 0;
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 2; x++)
            bits |= dot[(row * 2 + y) * width + column * 2 + x] << (2 * y + x);
    fputs(quarters[bits], stdout); /* raw: a glyph */
}

static void
print_cell(const bool *dot, int width, int row, int column, const struct glyphs *g)
{
    if (g->dots_y == 4)
        print_braille(dot, width, row, column);
    else if (g->dots_y == 2)
        print_block(dot, width, row, column);
    else
        putchar(dot[row * width + column] ? '*' : ' ');
}

/* Cells of ROW up to the last with a dot: lines end without blanks. */
static int
used_columns(const bool *dot, int width, int row, const struct glyphs *g)
{
    int used = 0;
    for (int y = row * g->dots_y; y < (row + 1) * g->dots_y; y++)
        for (int x = used * g->dots_x; x < width; x++)
            if (dot[y * width + x])
                used = x / g->dots_x + 1;
    return used;
}

static void
print_label(double value)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%.3g", value);
    if (n > LABEL)
        snprintf(text, sizeof text, "%.2g", value);
    et_print(stdout, "%*s", LABEL, text);
}

static void
print_axis(const struct eti_curve *curve, const struct glyphs *g)
{
    char count[32], end[80];
    int n = snprintf(end, sizeof end, " %sba",
                     cli_count(curve->batches, count, sizeof count));
    if (curve->per_epoch > 0)
        n += snprintf(end + n, sizeof end - (size_t)n, " = %.4gep",
                      (double)curve->batches / (double)curve->per_epoch);
    et_print(stdout, "%*s%s%s 0 ", LABEL, "", g->corner, g->line);
    for (int i = 4; i < COLUMNS - n - 2; i++)
        fputs(g->line, stdout); /* raw: a glyph */
    et_print(stdout, "%s %s\n", end, g->line);
}

static int
print_plot(const struct eti_curve *curve, const struct glyphs *g)
{
    int width = COLUMNS * g->dots_x, height = ROWS * g->dots_y;
    double high = curve->rate[highest(curve)], low = fmin(0, lowest_rate(curve));
    bool *dot = calloc((size_t)(width * height), sizeof *dot);
    if (!dot)
        return CLI_NO_MEMORY;
    mark(curve, low, high, width, height, dot);
    for (int row = 0; row < ROWS; row++) {
        if (row % 2 == 0)
            print_label(high - (high - low) * row / (ROWS - 1));
        else
            et_print(stdout, "%*s", LABEL, "");
        fputs(g->bar, stdout); /* raw: a glyph */
        int end = used_columns(dot, width, row, g);
        for (int column = 0; column < end; column++)
            print_cell(dot, width, row, column, g);
        putchar('\n');
    }
    free(dot);
    print_axis(curve, g);
    return CLI_OK;
}

/* "0.3 at 200ba (0.43ep)" */
static void
print_point(const struct eti_curve *curve, const char *what, int i)
{
    char count[32];
    et_print(stdout, "%s %.4g at %sba", what, curve->rate[i],
             cli_count(curve->batch[i], count, sizeof count));
    if (curve->per_epoch > 0)
        printf(" (%.4gep)", (double)curve->batch[i] / (double)curve->per_epoch);
}

int
cli_print_curve(struct cli *c, const struct eti_curve *curve, const char *what)
{
    int top = highest(curve);
    et_print(stdout, "\n%-20s set at each %s\n", what,
             curve->by_epoch ? "epoch" : "batch");
    int code = print_plot(curve, &sets[cli_plot_glyphs(c)]);
    if (code != CLI_OK)
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory for a plot");
    et_print(stdout, "%*s first %.4g, ", LABEL, "", curve->rate[0]);
    if (curve->rate[top] > curve->rate[0]) {
        print_point(curve, "highest", top);
        printf(", ");
    }
    print_point(curve, "last", curve->n - 1);
    putchar('\n');
    return CLI_OK;
}

/* ---- JSON ---- */

static json_t *
point_json(const struct eti_curve *curve, int i)
{
    return json_pack("{s:I, s:f}", "ba", (json_int_t)curve->batch[i], "lr",
                     curve->rate[i]);
}

struct json_t *
cli_curve_json(const struct eti_curve *curve)
{
    int n = curve->n < JSON_POINTS ? curve->n : JSON_POINTS;
    json_t *points = json_array();
    for (int k = 0; k < n; k++) {
        int i = n > 1 ? (int)((int64_t)k * (curve->n - 1) / (n - 1)) : 0;
        json_array_append_new(points, point_json(curve, i));
    }
    return json_pack("{s:I, s:o, s:s, s:o, s:o, s:o}", "batches",
                     (json_int_t)curve->batches, "batches_per_epoch",
                     curve->per_epoch > 0 ? json_integer(curve->per_epoch)
                                          : json_null(),
                     "set_at_each", curve->by_epoch ? "epoch" : "batch", "highest",
                     point_json(curve, highest(curve)), "last",
                     point_json(curve, curve->n - 1), "points", points);
}
