/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c: what sets the scale of a chart, and how much room it needs. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "t/tui/drawn.h"

static struct et_ctx *cx;

/* The labels of a chart, from above, as text. */
static void
labels_of(const struct tui_plot *plot, int rows, char *out, size_t size)
{
    char *text = drawn_text(cx, plot, ETI_PLOT_ASCII, rows, 40);
    size_t n = 0;
    out[0] = '\0';
    for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        const int w = (int)strcspn(s, "\n");
        if (w > TUI_PLOT_LABEL && s[TUI_PLOT_LABEL] == '+' &&
            s[TUI_PLOT_LABEL - 1] != ' ')
            n += (size_t)snprintf(out + n, size - n, "%s%.*s", n ? " " : "",
                                  TUI_PLOT_LABEL - (int)strspn(s, " "),
                                  s + strspn(s, " "));
    }
    free(text);
}

static void
have_labels(const struct tui_plot *plot, int rows, const char *want, const char *name)
{
    char got[200];
    labels_of(plot, rows, got, sizeof got);
    is_str(got, want, "%s", name);
}

/* What sets the scale: the values that are shown, and those alone. */
static void
test_window(void)
{
    struct tui_point p[] = {drawn_point(-1, 900), drawn_point(0, 1), drawn_point(5, 2),
                            drawn_point(10, 3), drawn_point(11, -900)};
    struct tui_plot_line line = {
        .point = p, .n = 5, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
    struct tui_plot plot = {
        .from = 0, .to = 10, .line = &line, .n_lines = 1, .done = NAN, .cursor = NAN};
    have_labels(&plot, 6, "3 2 1",
                "what lies before and behind does not set the scale,");
    line.kind = TUI_PLOT_SPAN;
    have_labels(&plot, 6, "3 2 1", "nor where spans are drawn,");
    line.reach = 100;
    struct tui_plot_seen seen;
    struct tui_grid g;
    if (tui_grid_init(&g, cx, tui_glyphs_of(ETI_PLOT_ASCII), 6, 40) != ET_OK)
        bail("no memory");
    const struct tui_pane all = tui_pane_of(&g);
    tui_plot_draw(&all, &plot, &seen);
    is_near(seen.farthest, 0, 0, "nor is it told as what went out of hand");
    plot.from = -1;
    tui_plot_draw(&all, &plot, &seen);
    is_near(seen.farthest, 900, 0, "until the window holds it");
    tui_grid_release(&g);
    plot.from = 0;
    line.reach = 0;
    p[2].min = -INFINITY;
    p[2].max = INFINITY;
    have_labels(&plot, 6, "3 2 1", "values that are not finite do not set it either");
}

/* Values up to 0 have no place among logarithms: they are counted, and left out. */
static void
test_log(void)
{
    struct tui_point p[] = {drawn_point(0, 10), drawn_point(1, 0), drawn_point(2, -5),
                            drawn_point(3, 1000), drawn_point(9, -1)};
    const struct tui_plot_line line = {
        .point = p, .n = 5, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_POINTS};
    struct tui_plot plot = {.from = 0,
                            .to = 3,
                            .is_log = true,
                            .line = &line,
                            .n_lines = 1,
                            .done = NAN,
                            .cursor = NAN};
    struct tui_plot_seen seen;
    struct tui_grid g;
    drawn_is(cx, &plot, ETI_PLOT_ASCII, 6, 19,
             "  1000+          *\n"
             "      |\n"
             "   100+\n"
             "      |\n"
             "    10+*\n"
             "      +0--1---2--3\n",
             "values up to 0 leave a gap in a logarithmic chart");
    if (tui_grid_init(&g, cx, tui_glyphs_of(ETI_PLOT_ASCII), 6, 19) != ET_OK)
        bail("no memory");
    const struct tui_pane all = tui_pane_of(&g);
    tui_plot_draw(&all, &plot, &seen);
    is_int(seen.n_hidden, 2, "and those in the window are counted");
    plot.is_log = false;
    tui_plot_draw(&all, &plot, &seen);
    ok(seen.n_hidden == 0 && !seen.wants_log,
       "a linear one has all, and wants no logarithms where a value is below 0");
    p[1] = drawn_point(1, 20);
    p[2] = drawn_point(2, 9.9);
    p[4] = drawn_point(9, 1e9);
    tui_plot_draw(&all, &plot, &seen);
    ok(seen.wants_log, "it does where the greatest is over 100 times the least,");
    p[3] = drawn_point(3, 900);
    tui_plot_draw(&all, &plot, &seen);
    ok(!seen.wants_log, "of those in the window");
    tui_grid_release(&g);
}

/* One value, and values that are all alike. */
static void
test_alike(void)
{
    struct tui_point p[] = {drawn_point(2, 7), drawn_point(4, 7), drawn_point(6, 7)};
    struct tui_plot_line line = {
        .point = p, .n = 3, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
    struct tui_plot plot = {
        .from = 0, .to = 10, .line = &line, .n_lines = 1, .done = NAN, .cursor = NAN};
    drawn_is(cx, &plot, ETI_PLOT_ASCII, 6, 19,
             "      |\n"
             "      |\n"
             "     7+  *****\n"
             "      |\n"
             "      |\n"
             "      +0----5---10\n",
             "values that are alike are a line in the middle, at their label");
    line.n = 1;
    plot.is_log = true;
    drawn_is(cx, &plot, ETI_PLOT_ASCII, 6, 19,
             "      |\n"
             "      |\n"
             "     7+  *\n"
             "      |\n"
             "      |\n"
             "      +0----5---10\n",
             "one value is a point there, among logarithms too");
}

/* Accuracies. */
static void
test_parts(void)
{
    struct tui_point p[] = {drawn_point(0, 0.1), drawn_point(5, 0.95),
                            drawn_point(10, 1)};
    const struct tui_plot_line line = {
        .point = p, .n = 3, .role = TUI_S3, .mark = '*', .kind = TUI_PLOT_LAST};
    struct tui_plot plot = {.from = 0,
                            .to = 10,
                            .of = TUI_OF_PARTS,
                            .line = &line,
                            .n_lines = 1,
                            .done = NAN,
                            .cursor = NAN};
    have_labels(&plot, 7, "1.0 0.5 0.0", "an axis of accuracies ends at 1");
    p[2] = drawn_point(10, 0.96);
    have_labels(&plot, 7, "1.0 0.5 0.0", "also where none is that high");
    p[0] = drawn_point(0, 0.9);
    have_labels(&plot, 7, "0.96 0.94 0.92 0.90", "or at a tick below it");
}

/* How many characters a chart of that size has, and whether its axis has a line for its
 * labels. */
static int
written(const struct tui_plot *plot, int rows, int cols, bool *has_line)
{
    char *text = drawn_text(cx, plot, ETI_PLOT_ASCII, rows, cols);
    int n = 0;
    for (const char *s = text; *s; s++)
        n += *s != ' ' && *s != '\n';
    *has_line = strstr(text, "++") != NULL;
    free(text);
    return n;
}

/* Charts of just the size that there is a form for, and of one less. */
static void
test_room(void)
{
    struct tui_point p[] = {drawn_point(0, 1), drawn_point(10, 3)};
    const struct tui_plot_line line = {
        .point = p, .n = 2, .role = TUI_S1, .mark = '*', .kind = TUI_PLOT_LAST};
    const struct tui_plot plot = {
        .from = 0, .to = 10, .line = &line, .n_lines = 1, .done = NAN, .cursor = NAN};
    bool has_line;
    ok(written(&plot, 2, 10, &has_line) > 0,
       "a chart has room in 2 rows of 10 columns,");
    is_int(written(&plot, 1, 10, &has_line), 0, "but none in one row");
    is_int(written(&plot, 2, 9, &has_line), 0, "or nine columns");
    (void)written(&plot, 7, 40, &has_line);
    ok(has_line, "from 7 rows on the labels of its axis have a line,");
    (void)written(&plot, 6, 40, &has_line);
    ok(!has_line, "below they stand in the axis");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_window();
    test_log();
    test_alike();
    test_parts();
    test_room();
    et_ctx_free(&cx);
    return done();
}
