/* plot.c: charts in cells. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "tui/glyphs.h"
#include "tui/plot.h"

static struct et_ctx *cx;

static char *
draw(const struct tui_plot *plot, enum eti_plot glyphs, int rows, int cols)
{
    struct tui_grid g;
    char *text = NULL;
    size_t n;
    if (tui_grid_init(&g, cx, tui_glyphs_of(glyphs), rows, cols) != ET_OK)
        bail("no memory");
    struct tui_pane all = tui_pane_of(&g);
    tui_plot_draw(&all, plot, NULL);
    FILE *f = open_memstream(&text, &n);
    tui_grid_print(&g, f);
    fclose(f);
    tui_grid_release(&g);
    return text;
}

static void
is_plot(const struct tui_plot *plot, enum eti_plot glyphs, int rows, int cols,
        const char *want, const char *name)
{
    char *text = draw(plot, glyphs, rows, cols);
    if (!is_str(text, want, "%s", name))
        diag("\n%s", text);
    free(text);
}

static struct tui_point
at(double x, double v)
{
    return (struct tui_point){x, v, v, v};
}

static void
test_line(void)
{
    struct tui_point p[11];
    for (int i = 0; i <= 10; i++)
        p[i] = at(i, 10 - i);
    const struct tui_plot_line line = {p, 11, TUI_S1, '*', TUI_PLOT_LAST};
    const struct tui_plot plot = {.from = 0,
                                  .to = 10,
                                  .line = &line,
                                  .n_lines = 1,
                                  .left = "0",
                                  .right = "10ba",
                                  .cursor = NAN};
    is_plot(&plot, ETI_PLOT_ASCII, 6, 19,
            "  10.0|**\n"
            "      |  **\n"
            "   5.0|    ***\n"
            "      |       **\n"
            "   0.0|         **\n"
            "      +- 0 - 10ba -\n",
            "a falling line, its labels and its axis");
    is_plot(&plot, ETI_PLOT_BLOCK, 4, 14,
            "    10\u2502\u259a\u2596\n"
            "      \u2502 \u259d\u259a\u2584\n"
            "     0\u2502    \u2580\u2584\n"
            "      \u2514\u2500 0 \u2500\u2500\u2500\n",
            "the same in blocks, in less room");
}

static void
test_peak(void)
{
    struct tui_point p[1000];
    for (int i = 0; i < 1000; i++)
        p[i] = at(i, i == 500 ? 9 : 1);
    const struct tui_plot_line raw = {p, 1000, TUI_S1, '*', TUI_PLOT_SPAN};
    const struct tui_plot plot = {.from = 0,
                                  .to = 1000,
                                  .line = &raw,
                                  .n_lines = 1,
                                  .left = "",
                                  .right = "",
                                  .cursor = NAN};
    char *text = draw(&plot, ETI_PLOT_ASCII, 6, 30);
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
        noise[i] = at(i, i % 2 ? 9 : 1);
        middle[i] = at(i, 5);
    }
    const struct tui_plot_line lines[] = {
        {noise, 400, TUI_RAW, '.', TUI_PLOT_SCATTER},
        {middle, 400, TUI_S1, '*', TUI_PLOT_LAST},
    };
    const struct tui_plot plot = {.from = 0,
                                  .to = 399,
                                  .line = lines,
                                  .n_lines = 2,
                                  .left = "",
                                  .right = "",
                                  .cursor = NAN};
    is_plot(&plot, ETI_PLOT_ASCII, 6, 17,
            "  10.0|.........\n"
            "      |\n"
            "   5.0|*********\n"
            "      |\n"
            "   0.0|.........\n"
            "      +----------\n",
            "values that scatter are dots above and below");
    is_plot(&plot, ETI_PLOT_BRAILLE, 3, 12,
            "    10\u2502\u2812\u2812\u2812\u2812\n"
            "      \u2502\u2809\u2809\u2809\u2809\n"
            "      \u2514\u2500\u2500\u2500\u2500\u2500\n",
            "in Braille the line has its cells for itself");
}

static void
test_smooth(void)
{
    struct tui_point p[100];
    for (int i = 0; i < 100; i++)
        p[i] = at(i, 3);
    p[50].last = NAN;
    tui_plot_smooth(p, 100, 0.9);
    is_near(p[0].last, 3, 1e-12, "the first value counts in full");
    is_near(p[99].last, 3, 1e-12, "what is constant stays, also past a NaN");
}

static void
test_empty(void)
{
    struct tui_point p[] = {at(0, -1), at(1, 0)};
    const struct tui_plot_line line = {p, 2, TUI_S1, '*', TUI_PLOT_LAST};
    struct tui_plot plot = {.from = 0,
                            .to = 0,
                            .line = &line,
                            .n_lines = 0,
                            .left = "",
                            .right = "",
                            .cursor = NAN};
    free(draw(&plot, ETI_PLOT_BRAILLE, 5, 20));
    plot.n_lines = 1;
    plot.is_log = true;
    free(draw(&plot, ETI_PLOT_BRAILLE, 5, 20));
    plot.to = 1;
    char *text = draw(&plot, ETI_PLOT_ASCII, 5, 20);
    ok(!strchr(text, '*'), "a logarithmic scale has nothing for values up to 0");
    free(text);
    p[0] = at(0, INFINITY);
    p[1] = at(1, NAN);
    plot.is_log = false;
    for (int rows = 1; rows < 9; rows++)
        for (int cols = 1; cols < 12; cols++)
            free(draw(&plot, ETI_PLOT_BRAILLE, rows, cols));
    ok(true, "nothing, nothing finite and no room are drawn without a fault");
}

static void
test_scale(void)
{
    int outside = 0, wide = 0;
    for (int i = -40; i < 40; i++)
        for (int k = 1; k < 50; k++)
            for (int n = 1; n < 9; n++) {
                double base = pow(1.7, i) * (i % 2 ? 1 : -1), span = pow(1.5, k - 25);
                double low = base, high = base + span;
                tui_plot_scale(&low, &high, n);
                outside += low > base + 1e-9 * span ||
                           high < (base + span) - 1e-9 * fabs(base + span);
                wide += span > 1e-5 * fabs(base) && high - low > 3.1 * span &&
                        high - low > 3.1 * 0.1 * fabs(base);
            }
    is_int(outside, 0, "a scale holds its values");
    is_int(wide, 0, "and is not much wider");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_line();
    test_peak();
    test_scatter();
    test_smooth();
    test_empty();
    test_scale();
    et_ctx_free(&cx);
    return done();
}
