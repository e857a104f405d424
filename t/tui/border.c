/* SPDX-License-Identifier: Apache-2.0 */
/* border.c: borders that a mouse drags: how far, on which screens, and what is kept. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/tap.h"
#include "tui/border.h"

static struct tui_grid grid = {.rows = 24, .cols = 80};

/* A frame: a border between columns at 30, one between lines at 10. */
static void
frame(struct tui_borders *b, int *side, int *row)
{
    const struct tui_pane all = tui_pane_of(&grid);
    tui_borders_begin(b);
    *side = tui_border_place(b, &all,
                             &(struct tui_border){.name = "t.side",
                                                  .usual = 30,
                                                  .low = 20,
                                                  .high = 60,
                                                  .from = 2,
                                                  .length = 20});
    *row = tui_border_place(b, &all,
                            &(struct tui_border){.name = "t.row",
                                                 .is_level = true,
                                                 .usual = 10,
                                                 .low = 4,
                                                 .high = 20,
                                                 .from = *side + 1,
                                                 .length = 79 - *side});
}

/* Is it taken as a move of a border? *ENDED: it was let go. */
static bool
mouse(struct tui_borders *b, int what, int y, int x, bool *ended)
{
    struct tui_mouse m = {.y = y, .x = x};
    m.what = what;
    return tui_borders_mouse(b, &m, ended);
}

static void
test_drag(void)
{
    struct tui_borders b = {0};
    int side, row;
    bool ended;
    frame(&b, &side, &row);
    ok(side == 30 && row == 10, "nothing moved: borders stand where they usually do");
    ok(!mouse(&b, TUI_CLICK, 5, 30, &ended) && !ended,
       "a press on a border is also one on what stands there");
    ok(mouse(&b, TUI_DRAG, 6, 35, &ended) && !ended,
       "a move then is the border's alone");
    frame(&b, &side, &row);
    ok(side == 35 && row == 10, "it goes along");
    (void)mouse(&b, TUI_DRAG, 6, 75, &ended);
    frame(&b, &side, &row);
    is_int(side, 60, "as far as there is room");
    (void)mouse(&b, TUI_DRAG, 6, 40, &ended);
    frame(&b, &side, &row);
    is_int(side, 40, "and comes back with the mouse");
    ok(mouse(&b, TUI_RELEASE, 6, 40, &ended) && ended, "until it is let go");
    (void)mouse(&b, TUI_DRAG, 6, 50, &ended);
    frame(&b, &side, &row);
    is_int(side, 40, "then it stays");
    (void)mouse(&b, TUI_CLICK, 10, 45, &ended);
    (void)mouse(&b, TUI_DRAG, 12, 50, &ended);
    frame(&b, &side, &row);
    ok(side == 40 && row == 12, "one between lines goes up and down");
    (void)mouse(&b, TUI_RELEASE, 12, 50, &ended);
    (void)mouse(&b, TUI_CLICK, 5, 40, &ended);
    ok(mouse(&b, TUI_RELEASE, 5, 40, &ended) && !ended, "a click moves nothing");
    (void)mouse(&b, TUI_CLICK, 22, 5, &ended);
    (void)mouse(&b, TUI_DRAG, 22, 9, &ended);
    frame(&b, &side, &row);
    ok(side == 40 && row == 12, "nor does a press beside the borders");
    grid.cols = 200;
    grid.rows = 50;
    frame(&b, &side, &row);
    ok(side == 30 && row == 10, "another size of screen has its own places");
    grid.cols = 80;
    grid.rows = 24;
}

/* Each size of screen has its own places: a border is moved by another number of
 * columns on each, and stands so on all of them. */
static void
test_sizes(void)
{
    static const int sizes[][2] = {{10, 40}, {16, 60}, {24, 80}, {36, 120}, {45, 180}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct tui_borders b = {0};
    int side, row, wrong = 0;
    bool ended;
    for (int i = 0; i < SIZES; i++) {
        grid.rows = sizes[i][0];
        grid.cols = sizes[i][1];
        frame(&b, &side, &row);
        (void)mouse(&b, TUI_CLICK, 5, 30, &ended);
        (void)mouse(&b, TUI_DRAG, 5, 31 + i, &ended);
        frame(&b, &side, &row);
        (void)mouse(&b, TUI_RELEASE, 5, 31 + i, &ended);
    }
    for (int i = 0; i < SIZES; i++) {
        grid.rows = sizes[i][0];
        grid.cols = sizes[i][1];
        frame(&b, &side, &row);
        wrong += side != 31 + i;
    }
    is_int(wrong, 0,
           "a border that is moved on a screen stays on those of other sizes");
    grid.cols = 80;
    grid.rows = 24;
}

static void
test_file(void)
{
    static char folder[] = "/tmp/etude-border.XXXXXX";
    char file[64], deep[80];
    struct tui_borders b = {0}, again;
    int side, row;
    bool ended;
    if (!mkdtemp(folder))
        bail("no folder");
    snprintf(deep, sizeof deep, "%s/state", folder);
    snprintf(file, sizeof file, "%s/state/layout", folder);
    tui_borders_read(&b, file);
    frame(&b, &side, &row);
    is_int(side, 30, "without a file nothing is moved");
    (void)mouse(&b, TUI_CLICK, 5, 30, &ended);
    (void)mouse(&b, TUI_DRAG, 5, 25, &ended);
    frame(&b, &side, &row);
    ok(tui_borders_write(&b, file), "what was moved is written, with its folder");
    tui_borders_read(&again, file);
    frame(&again, &side, &row);
    ok(side == 25 && row == 10, "and read");
    (void)mouse(&again, TUI_CLICK, 5, 25, &ended);
    (void)mouse(&again, TUI_DRAG, 5, 30, &ended);
    frame(&again, &side, &row);
    ok(tui_borders_write(&again, file), "what is back at its place is written");
    FILE *f = fopen(file, "r");
    is_int(f ? fgetc(f) : 0, EOF, "as nothing");
    if (f)
        fclose(f);
    f = fopen(file, "w");
    if (!f || fputs("t.side.80 nonsense\n\nt.row.80 3\nt.side.80 9999999\n", f) < 0 ||
        fclose(f) != 0)
        bail("%s cannot be written", file);
    tui_borders_read(&again, file);
    frame(&again, &side, &row);
    is_int(row, 13, "what can be read of a damaged file holds");
    is_int(side, 60, "within bounds");
    unlink(file);
    rmdir(deep);
    rmdir(folder);
    ok(!tui_borders_write(&again, "/dev/null/layout"), "a file that cannot be is said");
    ok(!tui_borders_write(&again, NULL), "as is none");
}

int
main(void)
{
    test_drag();
    test_sizes();
    test_file();
    return done();
}
