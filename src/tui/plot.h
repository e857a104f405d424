/* SPDX-License-Identifier: Apache-2.0 */
/* plot.h: a chart of some series in cells. */
#ifndef TUI_PLOT_H
#define TUI_PLOT_H

#include "tui/grid.h"
#include "tui/ticks.h"

enum { TUI_PLOT_LABEL = TUI_TICK_COLUMNS, TUI_PLOT_LINES = 6, TUI_PLOT_MARKS = 64 };

/* What a stretch of the axis has: its least, greatest and last value. LAST may be one
 * that is not finite: the line ends there. */
struct tui_point {
    double x, min, max, last;
    bool is_apart; /* values are missing before it: no line leads to it */
};

enum tui_plot_kind {
    TUI_PLOT_LAST,    /* one line through LAST of all points */
    TUI_PLOT_SPAN,    /* each point from min to max */
    TUI_PLOT_SCATTER, /* each point's min and max alone; gives way to other lines */
    TUI_PLOT_POINTS,  /* LAST, with a mark on each point where they are few */
};

struct tui_plot_line {
    const struct tui_point *point; /* [n], x does not fall; borrowed */
    int n;
    enum tui_role role;
    uint32_t mark; /* of its points where the glyphs are characters */
    enum tui_plot_kind kind;
    int dash;     /* 0 to 3: of four dots that many are left out, where there are no
                     colours */
    double reach; /* a linear scale leaves out what is farther from 0; 0: nothing is */
};

/* Drawn in the order of their importance, the most important last: a cell has the
 * colour of the last line that crosses it. */
struct tui_plot {
    double from, to;      /* of the axis: what is shown */
    double done;          /* behind it the axis is dotted; NaN: nowhere */
    enum tui_quantity of; /* what the values are */
    bool is_log;          /* the values' scale; only values above 0 are then drawn */
    bool from_zero;       /* the scale begins at 0 where no value is below */
    bool is_tame;         /* the values went out of hand: the scale leaves out those
                             over ten times their median */
    const struct tui_plot_line *line;
    int n_lines;
    enum tui_quantity x_of; /* what the axis counts, and */
    double x_per;           /* how much of that one of its units is; 0: 1 */
    const char *unit;       /* of the axis, behind its last label; NULL: of X_OF */
    const double *mark;     /* places with a sign on the axis */
    const char *mark_sign;  /* one for each */
    int n_marks;
    double cursor; /* a place with a line across; NaN: no line */
};

/* What a chart turned out to be, for its title and messages. */
struct tui_plot_seen {
    char unit[8];    /* of the values' labels: "MB", "x1e-12"; "" */
    double per;      /* and how many of the values' own unit that is */
    int n_hidden;    /* values that a logarithmic scale has no place for */
    double farthest; /* of the values that the scale leaves out for a line's reach; 0 */
    bool wants_log;  /* the values above 0 differ more than a hundredfold */
};

/* Draws PLOT into all of P: labels, values, and the axis on the last line, or where
 * there is room on the last two. SEEN may be NULL. */
void tui_plot_draw(const struct tui_pane *p, const struct tui_plot *plot,
                   struct tui_plot_seen *seen);
/* How far from 0 the values of POINT [N] stay as long as they are in hand: up to one
 * that is over a hundred times what was there before it, or over that of BASE (0: none
 * is known). 0: all are in hand. */
double tui_plot_reach(const struct tui_point *point, int n, double base);
/* POINT [N] smoothed in place, as an exponential mean of WEIGHT (0: not at all). What
 * is beyond REACH (0: nothing is) stays what it is, and moves no mean. */
void tui_plot_smooth(struct tui_point *point, int n, double weight, double reach);
/* How a line of that ROLE, MARK and DASH is told in a legend, at Y, X of P: a sign, or
 * where there are no colours its dashes. */
void tui_plot_sample(const struct tui_pane *p, int y, int x, enum tui_role role,
                     uint32_t mark, int dash);
/* Columns of a sample on G, the blank behind it included. */
int tui_plot_sample_columns(const struct tui_grid *g);

#endif
