/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: no size of a terminal has two things in one place, or one outside. */
#include <stdio.h>
#include <string.h>

#include "t/tap.h"
#include "tui/layout.h"

enum { ROWS = 80, COLS = 250 };

static int faults;
static char first_fault[160];

static void
fault(int rows, int cols, const char *what, int part)
{
    if (faults++ == 0)
        snprintf(first_fault, sizeof first_fault, "%dx%d: %s, part %d", cols, rows,
                 what, part);
}

/* Each cell belongs to one part at most, and all of a part is on the screen. */
static void
check(const struct tui_rect *r, int n, int rows, int cols)
{
    static unsigned char taken[ROWS][COLS];
    memset(taken, 0, sizeof taken);
    for (int i = 0; i < n; i++) {
        if (r[i].h < 0 || r[i].w < 0 || r[i].y < 0 || r[i].x < 0 ||
            r[i].y + r[i].h > rows || r[i].x + r[i].w > cols) {
            fault(rows, cols, "outside the screen", i);
            continue;
        }
        for (int y = r[i].y; y < r[i].y + r[i].h; y++)
            for (int x = r[i].x; x < r[i].x + r[i].w; x++)
                if (taken[y][x]++)
                    fault(rows, cols, "shares a cell", i);
    }
}

static bool
is_shown(struct tui_rect r)
{
    return r.h > 0 && r.w > 0;
}

static void
check_size(int rows, int cols, const struct tui_monitor_needs *needs)
{
    struct tui_rect all[TUI_M_PARTS + 3];
    const struct tui_frame f = tui_layout_frame(rows, cols);
    const struct tui_rect frame[] = {f.tabs, f.body, f.message, f.hints};
    check(frame, 4, rows, cols);
    const struct tui_monitor_layout l = tui_layout_monitor(rows, cols, needs);
    memcpy(all, l.part, sizeof l.part);
    all[TUI_M_PARTS] = f.tabs;
    all[TUI_M_PARTS + 1] = f.message;
    all[TUI_M_PARTS + 2] = f.hints;
    check(all, TUI_M_PARTS + 3, rows, cols);
    static const struct {
        int border, part;
    } below[] = {{TUI_M_BELOW_CHARTS, TUI_M_RANKS}, {TUI_M_BELOW_RANKS, TUI_M_EVENTS}};
    for (int i = 0; i < 2; i++) {
        const struct tui_rect at = l.border[below[i].border].at;
        if (is_shown(at) && at.y != l.part[below[i].part].y)
            fault(rows, cols, "a border is not where the part below it begins", i);
    }
    if (rows >= 24 && cols >= 80 && needs->only < 0) {
        int area = 0;
        for (int i = 0; i < TUI_M_PARTS + 3; i++)
            area += all[i].h * all[i].w;
        if (area != rows * cols)
            fault(rows, cols, "some cells belong to nothing", area);
        if (l.part[TUI_M_CHART].h < 6 || l.part[TUI_M_RANKS].h < 2 ||
            l.part[TUI_M_EVENTS].h < 2)
            fault(rows, cols, "a panel without a line", 0);
    }
}

/* Each size begins where it is said to: one row or column less is the next smaller
 * one. */
static void
check_sizes(void)
{
    static const struct {
        int rows, cols;
        enum tui_size size;
    } least[] = {{16, 60, TUI_SMALL},
                 {24, 80, TUI_NORMAL},
                 {36, 120, TUI_WIDE},
                 {45, 180, TUI_FULL}};
    bool good = true;
    for (int i = 0; i < 4; i++) {
        const int rows = least[i].rows, cols = least[i].cols;
        const enum tui_size size = least[i].size;
        good = good && tui_size_of(rows, cols) == size &&
               tui_size_of(rows - 1, cols) == size - 1 &&
               tui_size_of(rows, cols - 1) == size - 1;
    }
    ok(good, "each size begins at its rows and columns, and not before");
}

/* The column of numbers at each height: 7 lines of them, then the step if it has 4,
 * then the stragglers of 4 ranks, 6 lines, if 7 are left to the step. */
static void
check_column(void)
{
    bool seen[64] = {false}, good = true;
    for (int bars = 1; bars < 7; bars++)
        for (int rows = 24; rows < 45; rows++) {
            const struct tui_monitor_needs needs = {
                .bars = bars, .charts = 1, .ranks = 4, .only = -1};
            const struct tui_monitor_layout l = tui_layout_monitor(rows, 80, &needs);
            const int h = l.part[TUI_M_CHART].h; /* beside it */
            const int map = h >= 20 ? 6 : 0, step = h >= 11 ? h - 7 - map : 0;
            good = good && l.part[TUI_M_STEP].h == step && l.part[TUI_M_MAP].h == map &&
                   l.part[TUI_M_NUMBERS].h == h - step - map;
            seen[h] = true;
        }
    ok(good && seen[10] && seen[11] && seen[19] && seen[20],
       "below the numbers is what has room: from 11 lines on, and from 20");
}

/* MOVED: how far all borders are. */
static void
check_all(int bars, int ranks, int only, int moved, const char *name)
{
    struct tui_monitor_needs needs = {
        .bars = bars, .charts = ranks % 6, .ranks = ranks, .only = only};
    for (int i = 0; i < TUI_M_BORDERS; i++)
        needs.moved[i] = i % 2 ? -moved : moved;
    faults = 0;
    for (int rows = 1; rows <= ROWS; rows++)
        for (int cols = 1; cols <= COLS; cols++)
            check_size(rows, cols, &needs);
    if (!ok(faults == 0, "%s: at every size nothing overlaps or lies outside", name))
        diag("%d faults, the first at %s", faults, first_fault);
}

int
main(void)
{
    check_all(2, 8, -1, 0, "8 ranks");
    check_all(2, 1, -1, 0, "one rank");
    check_all(2, 0, -1, 0, "no rank yet");
    check_all(6, 1024, -1, 0, "1,024 ranks, 4 evaluations");
    check_all(2, 8, TUI_M_RANKS, 0, "one panel alone");
    check_all(2, 8, -1, 5, "borders that were moved");
    check_all(2, 8, -1, -5, "the other way");
    check_all(4, 64, -1, 1000, "and further than there is room");
    check_all(4, 64, -1, -1000, "the other way");

    check_sizes();
    check_column();
    struct tui_monitor_needs needs = {.bars = 2, .ranks = 8, .only = -1};
    struct tui_monitor_layout l = tui_layout_monitor(24, 80, &needs);
    is_int(l.part[TUI_M_CHART].h, 9, "80x24: the chart has nine lines");
    is_int(l.part[TUI_M_CHART].w, 46, "and 46 columns");
    is_int(l.part[TUI_M_RANKS].h, 5, "eight ranks have a title and four lines");
    is_int(l.rank_columns, 2, "two beside each other");
    is_int(l.part[TUI_M_EVENTS].h, 3, "events have a title and two lines");
    l = tui_layout_monitor(50, 200, &needs);
    is_int(l.part[TUI_M_CHART].h, 13, "200x50: the upper charts have 13 lines");
    is_int(l.part[TUI_M_CHART + 3].h, 11, "the lower ones 11");
    is_int(l.part[TUI_M_CHART + 1].x, 67, "the second column begins at 67");
    is_int(l.part[TUI_M_STEP].x, 133, "the third at 133");
    is_int(l.part[TUI_M_RANKS].h, 10, "ranks have a title, eight lines and the host's");
    is_int(l.part[TUI_M_EVENTS].h, 8, "events have a title and seven lines");
    ok(is_shown(l.part[TUI_M_MAP]) && is_shown(l.part[TUI_M_ALGORITHMS]),
       "stragglers and algorithms are shown");
    needs.moved[TUI_M_SIDE] = -4;
    needs.moved[TUI_M_BELOW_CHARTS] = 100;
    l = tui_layout_monitor(24, 80, &needs);
    is_int(l.part[TUI_M_NUMBERS].x, 42, "a border that was moved stands there");
    is_int(l.border[TUI_M_BELOW_CHARTS].moved, 4, "as far as there is room");
    is_int(l.part[TUI_M_EVENTS].h, 2, "which leaves a line of events");
    needs = (struct tui_monitor_needs){.bars = 2, .ranks = 8, .only = -1};
    l = tui_layout_monitor(36, 120, &needs);
    ok(is_shown(l.part[TUI_M_CHART + 3]) &&
           l.part[TUI_M_CHART + 1].y == l.part[TUI_M_CHART].y,
       "120x36: two columns of two charts");
    l = tui_layout_monitor(16, 60, &needs);
    ok(is_shown(l.part[TUI_M_CHART]) && !is_shown(l.part[TUI_M_RANKS]),
       "60x16: one panel at a time");
    l = tui_layout_monitor(15, 59, &needs);
    ok(is_shown(l.part[TUI_M_BARS]) && !is_shown(l.part[TUI_M_CHART]),
       "below: the bars alone");
    is_int(tui_layout_frame(5, 30).hints.h, 0, "and no hints");
    is_int(tui_layout_frame(5, 30).message.h, 1, "but the newest message");
    return done();
}
