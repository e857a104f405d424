/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h: where things lie on a screen: pure functions of its size.
 *
 *     TINY     below 60x16   tabs, bars and the newest message
 *     SMALL    below 80x24   one panel at a time, tab changes it
 *     NORMAL   80x24
 *     WIDE     120x36        two columns of charts
 *     FULL     180x45        everything, as drawn for 200x50 */
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include <stdbool.h>

enum tui_size { TUI_TINY, TUI_SMALL, TUI_NORMAL, TUI_WIDE, TUI_FULL };
enum tui_size tui_size_of(int rows, int cols);

/* Columns X to X + W of rows Y to Y + H; H or W 0: it is not shown. */
struct tui_rect {
    int y, x, h, w;
};

/* Of every screen: first line, last line, the one above it, and what is between. */
struct tui_frame {
    struct tui_rect tabs, body, message, hints;
};
struct tui_frame tui_layout_frame(int rows, int cols);

/* The parts of Monitor. All but the first three have a title line. */
enum tui_monitor_part {
    TUI_M_STATUS,
    TUI_M_HERO, /* the numbers that one comes for */
    TUI_M_BARS,
    TUI_M_CHART, /* and the next five */
    TUI_M_LAST_CHART = TUI_M_CHART + 5,
    TUI_M_NUMBERS, /* now: with a border on its left */
    TUI_M_STEP,    /* where the step goes */
    TUI_M_RANKS,
    TUI_M_MAP, /* of stragglers */
    TUI_M_EVENTS,
    TUI_M_ALGORITHMS,
    TUI_M_RULE, /* a line between them and the message */
    TUI_M_PARTS,
};
/* Its borders that can be moved: between columns, rows of charts, charts and ranks,
 * ranks and events. */
enum tui_monitor_border {
    TUI_M_SIDE,
    TUI_M_ROWS,
    TUI_M_BELOW_CHARTS,
    TUI_M_BELOW_RANKS,
    TUI_M_BORDERS
};
/* What the layout depends on besides the size. */
struct tui_monitor_needs {
    int bars;   /* lines of them */
    int charts; /* that have something to show: 1 to 5; 0: all */
    int ranks;  /* there are */
    int only;   /* enum tui_monitor_part: it alone, as large as can be; -1: all */
    int moved[TUI_M_BORDERS]; /* cells to the right or down from where they are else */
};
struct tui_monitor_layout {
    struct tui_rect part[TUI_M_PARTS];
    int rank_columns; /* ranks beside each other: 1 or 2 */
    struct {
        struct tui_rect at; /* h or w 0: the part has no place at this size */
        int moved;          /* as far as there was room */
    } border[TUI_M_BORDERS];
};
struct tui_monitor_layout tui_layout_monitor(int rows, int cols,
                                             const struct tui_monitor_needs *needs);

#endif
