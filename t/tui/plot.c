/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c: charts in cells. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/rng.h"
#include "t/tap.h"
#include "t/tui/drawn.h"

static struct et_ctx *cx;

static void
test_line(void)
{
    struct tui_point p[11];
    for (int i = 0; i <= 10; i++)
        p[i] = drawn_point(i, 10 - i);
    const struct tui_plot_line line = {
        .point = p, .n = 11, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
    const struct tui_plot plot = {
        .from = 0, .to = 10, .line = &line, .n_lines = 1, .done = NAN, .cursor = NAN};
    drawn_is(cx, &plot, ETI_PLOT_ASCII, 6, 19,
             "    10+**\n"
             "      |  **\n"
             "     5+    ***\n"
             "      |       **\n"
             "     0+         **\n"
             "      +0----5---10\n",
             "a falling line, its labels and its axis");
    drawn_is(cx, &plot, ETI_PLOT_BLOCK, 4, 14,
             "    10\u2524\u259a\u2596\n"
             "      \u2502 \u259d\u259a\u2584\n"
             "     0\u2524    \u2580\u2584\n"
             "      \u25140\u2500\u2500\u250010\n",
             "the same in blocks, in less room");
}

static void
test_peak(void)
{
    struct tui_point p[1000];
    for (int i = 0; i < 1000; i++)
        p[i] = drawn_point(i, i == 500 ? 9 : 1);
    const struct tui_plot_line raw = {
        .point = p, .n = 1000, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_SPAN};
    const struct tui_plot plot = {
        .from = 0, .to = 1000, .line = &raw, .n_lines = 1, .done = NAN, .cursor = NAN};
    char *text = drawn_text(cx, &plot, ETI_PLOT_ASCII, 6, 30);
    ok(strchr(text, '*') && strchr(text, '*') < strchr(text, '\n'),
       "a peak of one batch in a thousand reaches the first line");
    free(text);
}

/* Noise between 1 and 9 with a line through its middle. */
static void
test_scatter(void)
{
    struct tui_point noise[400], middle[400];
    for (int i = 0; i < 400; i++) {
        noise[i] = drawn_point(i, i % 2 ? 9 : 1);
        middle[i] = drawn_point(i, 5);
    }
    const struct tui_plot_line lines[] = {
        {.point = noise,
         .n = 400,
         .role = TUI_RAW,
         .mark = '.',
         .kind = TUI_PLOT_SCATTER},
        {.point = middle, .n = 400, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST},
    };
    const struct tui_plot plot = {
        .from = 0, .to = 399, .line = lines, .n_lines = 2, .done = NAN, .cursor = NAN};
    drawn_is(cx, &plot, ETI_PLOT_ASCII, 6, 17,
             "    10+.........\n"
             "      |\n"
             "     5+*********\n"
             "      |\n"
             "     0+.........\n"
             "      +0---200--\n",
             "values that scatter are dots above and below");
    drawn_is(cx, &plot, ETI_PLOT_BRAILLE, 3, 12,
             "    10\u2524\u2812\u2812\u2812\u2812\n"
             "     0\u2524\u2809\u2809\u2809\u2809\n"
             "      \u25140\u2500\u2500\u2500\n",
             "in Braille the line has its cells for itself");
}

/* One value in a hundred at either end may lie outside of what scatters, no more. */
static void
test_outliers(void)
{
    enum { POINTS = 400 };
    struct tui_point noise[POINTS];
    const struct tui_plot_line line = {.point = noise,
                                       .n = POINTS,
                                       .role = TUI_RAW,
                                       .mark = '.',
                                       .kind = TUI_PLOT_SCATTER};
    const struct tui_plot plot = {.from = 0,
                                  .to = POINTS - 1,
                                  .line = &line,
                                  .n_lines = 1,
                                  .done = NAN,
                                  .cursor = NAN};
    for (int far = 2; far <= 20; far += 18) {
        for (int i = 0; i < POINTS; i++)
            noise[i] = drawn_point(i, i % 2 ? 9 : 1);
        for (int i = 0; i < far; i++)
            noise[7 + 11 * i] = drawn_point(7 + 11 * i, i % 2 ? 5000 : -5000);
        char *text = drawn_text(cx, &plot, ETI_PLOT_ASCII, 12, 60);
        is_int(strstr(text, "5,000") != NULL, far > 8,
               "%d values of %d that lie far off %s the scale", far, POINTS,
               far > 8 ? "widen" : "do not widen");
        if (far <= 8)
            ok(strchr(text, '^') && strchr(text, 'v'), "a sign at the edge says where");
        free(text);
    }
}

/* Of values that the scale leaves out the farthest is told, on either side. */
static void
test_farthest(void)
{
    enum { POINTS = 12 };
    struct tui_grid g;
    struct et_rng r = et_rng_at(7, ET_RNG_USER, 0);
    bool same = true;
    if (tui_grid_init(&g, cx, &tui_glyphs_ascii, 8, 40) != ET_OK)
        bail("no grid");
    const struct tui_pane p = tui_pane_of(&g);
    for (int round = 0; round < 100; round++) {
        struct tui_point point[POINTS];
        struct tui_plot_seen seen;
        double want = 0;
        for (int i = 0; i < POINTS; i++) {
            const double v = 200 * et_rng_uniform(&r) - 100;
            point[i] = drawn_point(i, v);
            if (fabs(v) > 50 && fabs(v) > fabs(want))
                want = v;
        }
        const struct tui_plot_line line = {.point = point,
                                           .n = POINTS,
                                           .role = TUI_S1,
                                           .mark = '*',
                                           .kind = TUI_PLOT_LAST,
                                           .reach = 50};
        const struct tui_plot plot = {
            .to = POINTS - 1, .line = &line, .n_lines = 1, .done = NAN, .cursor = NAN};
        tui_plot_draw(&p, &plot, &seen);
        same = same && seen.farthest == want;
    }
    ok(same, "of values beyond the scale the farthest is told, with its sign");
    tui_grid_release(&g);
}

/* Of more points than are sampled the last set the scale as much as the first. */
static void
test_many(void)
{
    enum { MOST = 9000, SAMPLES = 4096 };
    static const int counts[] = {SAMPLES / 2 - 1, SAMPLES / 2 + 1, SAMPLES - 1,
                                 SAMPLES + 1, MOST};
    static struct tui_point p[MOST];
    for (size_t k = 0; k < 2 * sizeof counts / sizeof *counts; k++) {
        const int n = counts[k / 2], kind = k % 2 ? TUI_PLOT_SCATTER : TUI_PLOT_LAST;
        for (int i = 0; i < n; i++)
            p[i] = drawn_point(i, i < n * 9 / 10 ? 1 : 500);
        const struct tui_plot_line line = {
            .point = p, .n = n, .role = TUI_RAW, .mark = '.', .kind = kind};
        const struct tui_plot plot = {.from = 0,
                                      .to = n,
                                      .line = &line,
                                      .n_lines = 1,
                                      .done = NAN,
                                      .cursor = NAN};
        char *text = drawn_text(cx, &plot, ETI_PLOT_ASCII, 8, 40);
        if (!ok(strstr(text, "   400+") && !strchr(text, '^'),
                "the scale of %d points has room for the last of them", n))
            diag("\n%s", text);
        free(text);
    }
}

static void
test_smooth(void)
{
    struct tui_point p[100];
    for (int i = 0; i < 100; i++)
        p[i] = drawn_point(i, 3);
    p[50].last = NAN;
    tui_plot_smooth(p, 100, 0.9, 0);
    is_near(p[0].last, 3, 1e-12, "the first value counts in full");
    is_near(p[99].last, 3, 1e-12, "what is constant stays, also past a NaN");
    for (int i = 0; i < 100; i++)
        p[i] = drawn_point(i, i == 50 ? 7e23 : 3);
    tui_plot_smooth(p, 100, 0.9, tui_plot_reach(p, 100, 0));
    is_near(p[51].last, 3, 1e-12,
            "a value out of hand does not spoil those behind it,");
    is_near(p[50].last / 7e23, 1, 1e-12, "and stays what it is");
}

static void
test_empty(void)
{
    struct tui_point p[] = {drawn_point(0, -1), drawn_point(1, 0)};
    const struct tui_plot_line line = {
        .point = p, .n = 2, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
    struct tui_plot plot = {
        .from = 0, .to = 0, .line = &line, .n_lines = 0, .done = NAN, .cursor = NAN};
    free(drawn_text(cx, &plot, ETI_PLOT_BRAILLE, 5, 20));
    plot.n_lines = 1;
    plot.is_log = true;
    free(drawn_text(cx, &plot, ETI_PLOT_BRAILLE, 5, 20));
    plot.to = 1;
    char *text = drawn_text(cx, &plot, ETI_PLOT_ASCII, 5, 20);
    ok(!strchr(text, '*'), "a logarithmic scale has nothing for values up to 0");
    free(text);
    p[0] = drawn_point(0, INFINITY);
    p[1] = drawn_point(1, NAN);
    plot.is_log = false;
    for (int rows = 1; rows < 9; rows++)
        for (int cols = 1; cols < 12; cols++)
            free(drawn_text(cx, &plot, ETI_PLOT_BRAILLE, rows, cols));
    ok(true, "nothing, nothing finite and no room are drawn without a fault");
}

/* A run that went out of hand: the scale shows its descent, and its end is marked. */
static void
test_not_finite(void)
{
    struct tui_point p[20];
    for (int i = 0; i < 20; i++)
        p[i] = drawn_point(i, i < 16 ? 4 - i / 8.0 : i == 16 ? 3e23 : NAN);
    const struct tui_plot_line line = {
        .point = p, .n = 20, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
    const struct tui_plot plot = {.from = 0,
                                  .to = 19,
                                  .done = NAN,
                                  .line = &line,
                                  .n_lines = 1,
                                  .x_of = TUI_OF_COUNTS,
                                  .unit = "ba",
                                  .cursor = NAN};
    drawn_is(cx, &plot, ETI_PLOT_ASCII, 8, 28,
             "      |               *x\n"
             "     4+**             *\n"
             "      |  ****         *\n"
             "     3+      ****     *\n"
             "      |          **** *\n"
             "     2+              **\n"
             "      ++----+----+----+----\n"
             "       0    5    10   15ba\n",
             "a value that is not finite ends the line with a sign");
    for (int i = 0; i < 20; i++)
        p[i] = drawn_point(i, i == 10 ? 1e30 : 4);
    struct tui_plot tame = plot;
    tame.is_tame = true;
    char *text = drawn_text(cx, &tame, ETI_PLOT_ASCII, 8, 28);
    ok(strchr(text, '^') && strchr(text, '^') < strchr(text, '\n') &&
           !strstr(text, "e30"),
       "what is outside the scale has a sign at its edge");
    free(text);
}

/* A line whose last values leave the scale, by more and more, and then are not finite:
 * wherever that is, one sign says that it failed. */
static void
test_failed_edge(void)
{
    enum { STEADY = 8, LINE = STEADY + 2, STEPS = 400 };
    struct tui_point p[LINE];
    const struct tui_plot_line line = {.point = p,
                                       .n = LINE,
                                       .role = TUI_S1,
                                       .mark = '*',
                                       .kind = TUI_PLOT_LAST,
                                       .reach = 0.1};
    const struct tui_plot plot = {.from = 0,
                                  .to = LINE - 1,
                                  .line = &line,
                                  .n_lines = 1,
                                  .done = NAN,
                                  .cursor = NAN};
    int wrong = 0;
    for (int i = 0; i < STEADY; i++)
        p[i] = drawn_point(i, i % 2 ? 0.1 : -0.1);
    p[STEADY + 1] = drawn_point(STEADY + 1, NAN);
    for (int side = -1; side <= 1; side += 2)
        for (int k = 0; k < STEPS; k++) {
            p[STEADY] = drawn_point(STEADY, side * (0.05 + 0.001 * k));
            char *text = drawn_text(cx, &plot, ETI_PLOT_ASCII, 8, 28);
            const char *sign = strchr(text, 'x');
            wrong += !sign || strchr(sign + 1, 'x');
            free(text);
        }
    is_int(wrong, 0, "a line that fails outside of the scale has one sign at its edge");
}

/* One value of 7e23 in a descent, all of them finite. */
static void
test_burst(void)
{
    struct tui_point p[20];
    for (int i = 0; i < 20; i++)
        p[i] = drawn_point(i, i == 12 ? 7e23 : 4 - i / 8.0);
    struct tui_plot_line line = {
        .point = p, .n = 20, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
    struct tui_plot plot = {.from = 0,
                            .to = 19,
                            .done = NAN,
                            .line = &line,
                            .n_lines = 1,
                            .x_of = TUI_OF_COUNTS,
                            .unit = "ba",
                            .cursor = NAN};
    line.reach = tui_plot_reach(p, 20, 0);
    drawn_is(cx, &plot, ETI_PLOT_ASCII, 8, 34,
             "     4+**             *^* 7.0e23\n"
             "      |  ******      *  *\n"
             "     3+        ***** *  *\n"
             "      |             **  *\n"
             "     2+                  *****\n"
             "      |                       ***\n"
             "      ++------+-----+------+-----\n"
             "       0      5     10     15ba\n",
             "a value out of hand is told at the edge, and the rest has the scale");
    plot.is_log = true;
    char *text = drawn_text(cx, &plot, ETI_PLOT_ASCII, 8, 34);
    ok(!strchr(text, '^') && strstr(text, "e2"), "a logarithmic scale has all of them");
    free(text);
    plot.is_log = false;
    for (int i = 0; i < 20; i++)
        p[i] = drawn_point(i, i == 3 ? -7e23 : -4 + i / 8.0);
    line.reach = tui_plot_reach(p, 20, 0);
    text = drawn_text(cx, &plot, ETI_PLOT_ASCII, 8, 34);
    ok(strstr(text, "v") && strstr(text, "-7.0e23"), "below the scale too");
    free(text);

    for (int i = 0; i < 20; i++)
        p[i] = drawn_point(i, 1e4 / pow(2, i));
    is_near(tui_plot_reach(p, 20, 0), 0, 0, "a steep descent is in hand,");
    for (int i = 0; i < 20; i++)
        p[i] = drawn_point(i, i == 15 ? 50 : 1);
    is_near(tui_plot_reach(p, 20, 0), 0, 0, "as is a peak of 50 times what was before");
    for (int i = 0; i < 20; i++)
        p[i] = drawn_point(i, 1e20 + i);
    is_near(tui_plot_reach(p, 20, 0), 0, 0,
            "what is great from the first on is usual,");
    ok(tui_plot_reach(p, 20, 2) < 1e3, "but not beside others that are not");
    p[0] = drawn_point(0, NAN);
    is_near(tui_plot_reach(p, 1, 0), 0, 0, "nothing finite has no reach");
}

/* Without colours lines have dashes. */
static void
test_dashes(void)
{
    struct tui_point p[] = {drawn_point(0, 0), drawn_point(1, 1), drawn_point(2, 1),
                            drawn_point(40, 1)};
    int dots[4];
    struct tui_grid g;
    for (int dash = 0; dash < 4; dash++) {
        const struct tui_plot_line line = {
            .point = p, .n = 4, .role = TUI_S1, .kind = TUI_PLOT_LAST, .dash = dash};
        const struct tui_plot plot = {.from = 1,
                                      .to = 40,
                                      .done = NAN,
                                      .line = &line,
                                      .n_lines = 1,
                                      .cursor = NAN};
        if (tui_grid_init(&g, cx, tui_glyphs_of(ETI_PLOT_BRAILLE), 6, 72) != ET_OK)
            bail("no memory");
        const struct tui_pane all = tui_pane_of(&g);
        int drawn[2] = {0};
        for (int mono = 0; mono < 2; mono++) {
            tui_grid_clear(&g);
            g.is_mono = mono;
            tui_plot_draw(&all, &plot, NULL);
            for (int i = 0; i < g.rows * g.cols; i++)
                if (g.cell[i].role == TUI_S1)
                    drawn[mono] += __builtin_popcount(g.cell[i].ch & 0xff);
        }
        dots[dash] = 100 * drawn[1] / drawn[0];
        tui_grid_clear(&g);
        tui_plot_sample(&all, 0, 0, TUI_S1, '*', dash);
        int cells = 0;
        for (int i = 0; i < tui_plot_sample_columns(&g) - 1; i++)
            cells += g.cell[i].ch != ' ';
        ok(cells == 4 - dash, "a legend shows %d of its 4 cells", cells);
        tui_grid_release(&g);
    }
    ok(dots[0] == 100 && abs(dots[1] - 75) <= 5 && abs(dots[2] - 50) <= 5 &&
           abs(dots[3] - 25) <= 5,
       "lines have all, 3, 2 and 1 of 4 dots: %d %d %d %d%%", dots[0], dots[1], dots[2],
       dots[3]);
}

static void
test_points(void)
{
    struct tui_point p[4];
    for (int i = 0; i < 4; i++)
        p[i] = drawn_point(i, i);
    struct tui_plot_line line = {
        .point = p, .n = 4, .role = TUI_S3, .mark = '*', .kind = TUI_PLOT_POINTS};
    struct tui_plot plot = {.from = 0,
                            .to = 3,
                            .done = 1.5,
                            .line = &line,
                            .n_lines = 1,
                            .unit = "ep",
                            .cursor = NAN};
    char *text = drawn_text(cx, &plot, ETI_PLOT_BRAILLE, 9, 40);
    int n = 0;
    for (const char *s = text; (s = strstr(s, "\u25cf")); s++)
        n++;
    is_int(n, 4, "four evaluations are four points");
    ok(strstr(text, "\u2504") && strstr(text, "3ep"),
       "the axis is dotted where the run has not come yet, and its unit stands once");
    free(text);
    line.n = 1;
    line.kind = TUI_PLOT_LAST;
    text = drawn_text(cx, &plot, ETI_PLOT_BRAILLE, 9, 40);
    ok(strstr(text, "\u25cf"), "a line of one point is a point");
    free(text);
    struct tui_point apart[] = {drawn_point(0, 1), drawn_point(1, 1), drawn_point(9, 1),
                                drawn_point(10, 1)};
    apart[2].is_apart = true;
    const struct tui_plot_line gap = {
        .point = apart, .n = 4, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
    plot.line = &gap;
    plot.to = 10;
    text = drawn_text(cx, &plot, ETI_PLOT_ASCII, 4, 29);
    ok(strstr(text, "***") && strstr(text, "*             "),
       "values that are missing are a gap");
    free(text);
}

static double
random_part(void)
{
    static unsigned state = 4321;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

/* Of the first COLUMNS of a line, the number it begins with; NaN: it begins with blanks
 * alone. *CUT: it is no number. */
static double
label_of(const char *line, bool *cut)
{
    char text[TUI_PLOT_LABEL + 1], digits[16];
    size_t n = 0;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    const char *begin = text + strspn(text, " ");
    if (!*begin)
        return NAN;
    for (const char *c = begin; *c; c++)
        if (*c != ',')
            digits[n++] = *c;
    digits[n] = '\0';
    char *end;
    double v = strtod(digits, &end);
    const char *unit = *end ? strchr("kMGTP", *end) : NULL;
    *cut = end == digits || (*end && (!unit || end[1]));
    return unit ? v * pow(1000, (double)(unit - "kMGTP" + 1)) : v;
}

/* Labels at every size: whole, in their order, each on the row of a tick. */
static void
test_labels(void)
{
    int cut = 0, unordered = 0, off = 0, few = 0;
    for (int k = 0; k < 3000; k++) {
        struct tui_point p[30];
        double size = pow(10, -9 + 39 * random_part()), part = random_part();
        for (int i = 0; i < 30; i++)
            p[i] = drawn_point(i, size * (k % 4 == 3 ? -1 : 1) *
                                      (1 - part * random_part()));
        if (k % 5 == 4)
            p[29].last = k % 2 ? NAN : INFINITY;
        const struct tui_plot_line line = {
            .point = p, .n = 30, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
        const struct tui_plot plot = {.from = 0,
                                      .to = 29,
                                      .done = NAN,
                                      .line = &line,
                                      .n_lines = 1,
                                      .is_log = k % 7 == 6,
                                      .x_of = TUI_OF_COUNTS,
                                      .unit = "ba",
                                      .cursor = NAN};
        int rows = 3 + k % 20, labels = 0, below = -1, y = 0;
        char *text = drawn_text(cx, &plot, ETI_PLOT_ASCII, rows, 60 + k % 181);
        double before = NAN;
        for (const char *s = text; s && *s;
             s = strchr(s, '\n'), s = s ? s + 1 : s, y++) {
            bool is_cut = false;
            if (y >= rows - 1 - (rows >= 7))
                break;
            double v = label_of(s, &is_cut);
            bool is_tick =
                strcspn(s, "\n") > TUI_PLOT_LABEL && s[TUI_PLOT_LABEL] == '+';
            off += isnan(v) == is_tick;
            if (isnan(v))
                continue;
            cut += is_cut;
            unordered += !isnan(before) && !(v < before);
            before = v;
            below = y;
            labels++;
        }
        (void)below;
        few += rows >= 8 && part > 0.1 && !plot.is_log && labels < 3;
        free(text);
    }
    is_int(cut, 0, "no label is cut, of values of 1e-9 to 1e30 in 60 to 240 columns");
    is_int(unordered, 0, "labels fall from row to row");
    is_int(off, 0, "each stands at its tick");
    is_int(few, 0, "and there are 3 of them where there are 6 rows");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_line();
    test_peak();
    test_scatter();
    test_outliers();
    test_farthest();
    test_many();
    test_smooth();
    test_empty();
    test_not_finite();
    test_failed_edge();
    test_burst();
    test_dashes();
    test_points();
    test_labels();
    et_ctx_free(&cx);
    return done();
}
