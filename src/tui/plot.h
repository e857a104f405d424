/* plot.h: a chart of one or two series in cells. */
#ifndef TUI_PLOT_H
#define TUI_PLOT_H

#include "tui/grid.h"

enum { TUI_PLOT_LABEL = 6, TUI_PLOT_LINES = 4, TUI_PLOT_MARKS = 64 };

/* What a stretch of the axis has: its least, greatest and last value. */
struct tui_point {
    double x, min, max, last;
};

enum tui_plot_kind {
    TUI_PLOT_LAST,    /* one line through LAST of all points */
    TUI_PLOT_SPAN,    /* each point from min to max */
    TUI_PLOT_SCATTER, /* each point's min and max alone; gives way to other lines */
};

struct tui_plot_line {
    const struct tui_point *point; /* [n], x does not fall; borrowed */
    int n;
    enum tui_role role;
    uint32_t mark; /* of its points where the glyphs are characters */
    enum tui_plot_kind kind;
};

struct tui_plot {
    double from, to; /* of the axis: what is shown */
    bool is_log;     /* the values' scale; only values above 0 are then drawn */
    const struct tui_plot_line *line;
    int n_lines;
    const char *left, *right; /* what stands at the ends of the axis */
    const double *mark;       /* places with a sign on the axis */
    const char *mark_sign;    /* one for each */
    int n_marks;
    double cursor; /* a place with a line across; NaN: none */
};

/* Draws PLOT into all of P: labels, values, and the axis on the last line. *COLUMNS: of
 * the values, which begin at column TUI_PLOT_LABEL + 1; may be NULL. */
void tui_plot_draw(const struct tui_pane *p, const struct tui_plot *plot, int *columns);
/* POINT [N] smoothed in place, as an exponential mean of WEIGHT (0: not at all). */
void tui_plot_smooth(struct tui_point *point, int n, double weight);

/* Round limits for values from *LOW to *HIGH with N steps between labels. */
void tui_plot_scale(double *low, double *high, int n);
/* V as a label of TUI_PLOT_LABEL columns whose neighbours are STEP away. */
void tui_plot_label(double v, double step, char buf[TUI_PLOT_LABEL + 10]);

#endif
