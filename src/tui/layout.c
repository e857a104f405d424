/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: see layout.h. UX.md section 3. */
#include "config.h"

#include <stddef.h>

#include "tui/layout.h"

enum {
    NUMBERS_WIDE = 34, /* columns of the panel of numbers, its border included */
    NUMBERS_HIGH = 7,
    STEP_HIGH = 7, /* where a step goes, with what is below it */
    EVENTS_FULL = 8,
    RANKS_MOST = 10,   /* rows of ranks at 50 lines */
    RANKS_BESIDE = 36, /* columns of ranks that stand beside events, of 80 */
    /* What borders that are moved leave of a panel: rows, columns. */
    CHART_LEAST = 6,
    LIST_LEAST = 2,
    SIDE_LEAST = 24,
    LEFT_LEAST = 40,
};

enum tui_size
tui_size_of(int rows, int cols)
{
    static const struct {
        int rows, cols;
        enum tui_size size;
    } from[] = {
        {45, 180, TUI_FULL},
        {36, 120, TUI_WIDE},
        {24, 80, TUI_NORMAL},
        {16, 60, TUI_SMALL},
    };
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        if (rows >= from[i].rows && cols >= from[i].cols)
            return from[i].size;
    return TUI_TINY;
}

static int
least(int a, int b)
{
    return a < b ? a : b;
}

static int
most(int a, int b)
{
    return a > b ? a : b;
}

struct tui_frame
tui_layout_frame(int rows, int cols)
{
    struct tui_frame f = {.tabs = {0, 0, 1, cols}};
    bool has_hints = tui_size_of(rows, cols) != TUI_TINY;
    int end = rows;
    if (has_hints)
        f.hints = (struct tui_rect){--end, 0, 1, cols};
    if (end > 2) /* one line at least for what it is about */
        f.message = (struct tui_rect){--end, 0, 1, cols};
    f.body = (struct tui_rect){1, 0, end - 1, cols};
    return f;
}

/* ---- Monitor ---- */

/* The next H lines at *Y, as far as END: all columns from X to X + W. */
static struct tui_rect
take(int *y, int end, int h, int x, int w)
{
    h = most(0, least(h, end - *y));
    struct tui_rect r = {*y, x, h, h > 0 ? w : 0};
    *y += h;
    return r;
}

/* Column I of N, as evenly as goes. */
static int
column(int cols, int i, int n)
{
    return i == 0 ? 0 : i == n ? cols : (cols * i + 1) / n;
}

/* Charts from part CHART + FIRST on, N beside each other. */
static void
put_charts(struct tui_monitor_layout *l, int first, int n, struct tui_rect r)
{
    for (int i = 0; i < n; i++) {
        int x = column(r.w, i, n);
        l->part[TUI_M_CHART + first + i] = (struct tui_rect){
            r.y,
            r.x + x,
            r.h,
            column(r.w, i + 1, n) - x,
        };
    }
}

/* The border's place: USUAL, moved as its user wants as far as it stays from LEAST to
 * MOST. */
static int
move(struct tui_monitor_layout *l, const struct tui_monitor_needs *needs,
     enum tui_monitor_border border, int usual, int low, int high)
{
    int at = most(low, least(high, usual + needs->moved[border]));
    if (low > high)
        at = usual;
    l->border[border].moved = at - usual;
    return at;
}

/* Rows of charts from Y on, of H lines, and ranks and events below them to END: their
 * rows, all three of a usual height. */
struct rows {
    int charts, ranks, events;
};

static struct rows
move_rows(struct tui_monitor_layout *l, const struct tui_monitor_needs *needs, int y,
          int cols, struct rows r, int charts_least, int ranks_least)
{
    int all = r.charts + r.ranks + r.events, below = ranks_least + LIST_LEAST;
    int charts =
        move(l, needs, TUI_M_BELOW_CHARTS, r.charts, charts_least, all - below);
    int left = all - charts;
    int ranks = most(ranks_least, least(r.ranks, left - LIST_LEAST));
    ranks = move(l, needs, TUI_M_BELOW_RANKS, ranks, ranks_least, left - LIST_LEAST);
    l->border[TUI_M_BELOW_CHARTS].at = (struct tui_rect){y + charts, 0, 1, cols};
    l->border[TUI_M_BELOW_RANKS].at = (struct tui_rect){y + charts + ranks, 0, 1, cols};
    return (struct rows){charts, ranks, left - ranks};
}

static int
charts_of(const struct tui_monitor_needs *needs)
{
    return needs->charts > 0 ? needs->charts : TUI_M_LAST_CHART - TUI_M_CHART;
}

/* N charts in AREA, two beside each other. */
static void
lay_charts(struct tui_monitor_layout *l, struct tui_rect area, int n,
           const struct tui_monitor_needs *needs)
{
    if (n <= 2) {
        put_charts(l, 0, n, area);
        return;
    }
    int half =
        move(l, needs, TUI_M_ROWS, (area.h + 1) / 2, CHART_LEAST, area.h - CHART_LEAST);
    const struct tui_rect upper = {area.y, area.x, half, area.w};
    const struct tui_rect lower = {area.y + half, area.x, area.h - half, area.w};
    l->border[TUI_M_ROWS].at = (struct tui_rect){lower.y, 0, 1, area.w};
    put_charts(l, 0, 2, upper);
    put_charts(l, 2, n - 2, lower);
}

/* The column of numbers, and below them as much as there is room for. */
static void
lay_numbers(struct tui_monitor_layout *l, struct tui_rect r,
            const struct tui_monitor_needs *needs)
{
    const int map = needs->ranks > 1 ? needs->ranks + 2 : 3;
    l->part[TUI_M_NUMBERS] = r;
    if (r.h < NUMBERS_HIGH + 4)
        return;
    l->part[TUI_M_NUMBERS].h = NUMBERS_HIGH;
    r.y += NUMBERS_HIGH;
    r.h -= NUMBERS_HIGH;
    l->part[TUI_M_STEP] = r;
    if (r.h < STEP_HIGH + map)
        return;
    l->part[TUI_M_STEP].h = r.h - map;
    l->part[TUI_M_MAP] = (struct tui_rect){r.y + r.h - map, r.x, map, r.w};
}

/* Charts and numbers, ranks and events below them: beside each other where the ranks
 * are few. */
static void
lay_normal(struct tui_monitor_layout *l, int y, int end, int cols,
           const struct tui_monitor_needs *needs, bool wide)
{
    const int n = charts_of(needs), few = wide ? 8 : 4, count = most(1, needs->ranks);
    const bool beside = count <= few;
    const int area_least = wide && n > 2 ? 2 * CHART_LEAST : CHART_LEAST;
    l->rank_columns = beside ? 1 : 2;
    struct rows rows = {0};
    if (beside) {
        rows.ranks = 1 + most(count, wide ? 6 : 3);
        rows.charts = end - y - rows.ranks;
        rows.charts = move(l, needs, TUI_M_BELOW_CHARTS, rows.charts, area_least,
                           end - y - LIST_LEAST);
        rows.ranks = end - y - rows.charts;
        l->border[TUI_M_BELOW_CHARTS].at =
            (struct tui_rect){y + rows.charts, 0, 1, cols};
    } else {
        int lines = (count + 1) / 2, spare = end - y - 9;
        rows.ranks = 1 + least(lines, most(1, least(spare - 4, few)));
        rows.events = wide ? 6 : 3;
        rows.charts = most(0, end - y - rows.ranks - rows.events);
        rows.events = end - y - rows.ranks - rows.charts;
        rows = move_rows(l, needs, y, cols, rows, area_least, LIST_LEAST);
    }
    const int left =
        move(l, needs, TUI_M_SIDE, cols - NUMBERS_WIDE, LEFT_LEAST, cols - SIDE_LEAST);
    const struct tui_rect area = take(&y, end, rows.charts, 0, left);
    l->border[TUI_M_SIDE].at = (struct tui_rect){area.y, left, area.h, 1};
    lay_numbers(l, (struct tui_rect){area.y, left, area.h, cols - left}, needs);
    lay_charts(l, area, wide ? least(n, 4) : 1, needs);
    l->part[TUI_M_RANKS] = take(&y, end, rows.ranks, 0, cols);
    l->part[TUI_M_EVENTS] = take(&y, end, end - y, 0, cols);
    if (beside) {
        const int w = most(RANKS_BESIDE, cols * 2 / 5);
        l->part[TUI_M_EVENTS] = l->part[TUI_M_RANKS];
        l->part[TUI_M_EVENTS].x = w;
        l->part[TUI_M_EVENTS].w = cols - w;
        l->part[TUI_M_RANKS].w = w;
    }
}

static void
lay_full(struct tui_monitor_layout *l, int y, int end, int cols,
         const struct tui_monitor_needs *needs)
{
    const int n = charts_of(needs), all = n + 1; /* where a step goes is the last */
    const int upper = all <= 3 ? all : (all + 1) / 2;
    int spare = end - y;
    int ranks = 2 + least(most(1, needs->ranks), most(RANKS_MOST, (spare - 20) / 3));
    int charts = spare - ranks - EVENTS_FULL - 1;
    const struct rows rows =
        move_rows(l, needs, y, cols, (struct rows){charts, ranks, EVENTS_FULL},
                  all > upper ? 2 * CHART_LEAST : CHART_LEAST, LIST_LEAST + 1);
    int half = all > upper ? move(l, needs, TUI_M_ROWS, (rows.charts + 2) / 2,
                                  CHART_LEAST, rows.charts - CHART_LEAST)
                           : rows.charts;
    int right = move(l, needs, TUI_M_SIDE, column(cols, 2, 3), LEFT_LEAST * 2,
                     cols - SIDE_LEAST);
    put_charts(l, 0, upper, take(&y, end, half, 0, cols));
    l->border[TUI_M_ROWS].at = (struct tui_rect){y, 0, all > upper, cols};
    if (all > upper)
        put_charts(l, upper, all - upper, take(&y, end, rows.charts - half, 0, cols));
    l->part[TUI_M_STEP] = l->part[TUI_M_CHART + n];
    l->part[TUI_M_CHART + n] = (struct tui_rect){0};
    l->border[TUI_M_SIDE].at = (struct tui_rect){y + 1, right - 1, end - y - 2, 2};
    const bool has_map = needs->ranks > 1; /* else there is nothing to compare */
    l->part[TUI_M_RANKS] = take(&y, end, rows.ranks, 0, has_map ? right : cols);
    if (has_map) {
        l->part[TUI_M_MAP] = l->part[TUI_M_RANKS];
        l->part[TUI_M_MAP].x = right;
        l->part[TUI_M_MAP].w = cols - right;
    }
    l->rank_columns = 1;
    l->part[TUI_M_EVENTS] = take(&y, end, end - y - 1, 0, right);
    l->part[TUI_M_ALGORITHMS] = l->part[TUI_M_EVENTS];
    l->part[TUI_M_ALGORITHMS].x = right;
    l->part[TUI_M_ALGORITHMS].w = cols - right;
    l->part[TUI_M_RULE] = take(&y, end, 1, 0, cols);
}

struct tui_monitor_layout
tui_layout_monitor(int rows, int cols, const struct tui_monitor_needs *needs)
{
    struct tui_monitor_layout l = {.rank_columns = 1};
    const struct tui_rect body = tui_layout_frame(rows, cols).body;
    const enum tui_size size = tui_size_of(rows, cols);
    int y = body.y, end = body.y + body.h;
    if (size != TUI_TINY || body.h > needs->bars)
        l.part[TUI_M_STATUS] = take(&y, end, 1, 0, cols);
    if (size != TUI_TINY || body.h > needs->bars + 1)
        l.part[TUI_M_HERO] = take(&y, end, 1, 0, cols);
    l.part[TUI_M_BARS] = take(&y, end, needs->bars, 0, cols);
    if (size == TUI_TINY)
        return l;
    if (size == TUI_SMALL || needs->only >= 0) {
        int only = needs->only >= 0 ? needs->only : TUI_M_CHART;
        l.rank_columns = cols >= 80 && needs->ranks > end - y - 1 ? 2 : 1;
        l.part[only] = take(&y, end, end - y, 0, cols);
    } else if (size == TUI_FULL) {
        lay_full(&l, y, end, cols, needs);
    } else {
        lay_normal(&l, y, end, cols, needs, size == TUI_WIDE);
    }
    return l;
}
