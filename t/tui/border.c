/* SPDX-License-Identifier: Apache-2.0 */
/* border.c: borders that a mouse drags: how far, on which screens, and what is kept. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Where a border may be taken, and how far it goes. */
static void
test_limits(void)
{
    struct tui_borders b = {0};
    int side, row, taken = 0;
    bool ended;
    frame(&b, &side, &row);
    for (int y = 0; y < 24; y++)
        for (int x = 0; x < 80; x++) {
            (void)mouse(&b, TUI_CLICK, y, x, &ended);
            const bool is_side = x == 30 && y >= 2 && y < 22;
            const bool is_row = y == 10 && x > 30 && x < 80;
            taken += (*b.held != '\0') != (is_side || is_row);
            (void)mouse(&b, TUI_RELEASE, y, x, &ended);
        }
    is_int(taken, 0, "a border is taken where it stands, and nowhere else");
    (void)mouse(&b, TUI_CLICK, 5, 30, &ended);
    (void)mouse(&b, TUI_DRAG, 5, 60, &ended);
    frame(&b, &side, &row);
    is_int(side, 60, "it goes to its highest place");
    (void)mouse(&b, TUI_DRAG, 5, 20, &ended);
    frame(&b, &side, &row);
    is_int(side, 20, "and to its lowest");
    (void)mouse(&b, TUI_RELEASE, 5, 20, &ended);
    (void)mouse(&b, TUI_CLICK, 5, 20, &ended);
    (void)mouse(&b, TUI_DRAG, 5, 21, &ended);
    frame(&b, &side, &row);
    is_int(side, 21, "taken again it goes on from there");
    (void)mouse(&b, TUI_RELEASE, 5, 21, &ended);

    const struct tui_pane all = tui_pane_of(&grid);
    const struct tui_border none = {
        .name = "t.side", .usual = 30, .low = 50, .high = 40, .length = 20};
    is_int(tui_border_place(&b, &all, &none), 30,
           "where there is no room to move it stands at its usual place");

    /* Many more than are kept. */
    struct tui_borders full = {0};
    for (int i = 0; i < TUI_BORDERS; i++) {
        snprintf(full.moved[i].name, TUI_BORDER_NAME, "x%d", i);
        full.moved[i].by = i + 1;
    }
    full.n_moved = TUI_BORDERS;
    frame(&full, &side, &row);
    (void)mouse(&full, TUI_CLICK, 5, 30, &ended);
    (void)mouse(&full, TUI_DRAG, 5, 35, &ended);
    frame(&full, &side, &row);
    int kept = 0;
    for (int i = 0; i < TUI_BORDERS; i++)
        kept += full.moved[i].by == i + 1;
    is_int(side, 30, "what has no room is not moved");
    is_int(kept, TUI_BORDERS, "and those that were are as before");
}

/* As many as have room are read; what cannot be written leaves nothing behind. */
static void
test_kept(void)
{
    static char folder[] = "/tmp/etude-borders.XXXXXX";
    char file[64], left[96];
    struct tui_borders b = {0};
    if (!mkdtemp(folder))
        bail("no folder");
    snprintf(file, sizeof file, "%s/layout", folder);
    FILE *f = fopen(file, "w");
    for (int i = 0; f && i < TUI_BORDERS + 2; i++)
        fprintf(f, "x%d %d\n", i, i - 3);
    if (!f || fclose(f) != 0)
        bail("%s cannot be written", file);
    tui_borders_read(&b, file);
    is_int(b.n_moved, TUI_BORDERS, "as many as have room are read");
    is_int(b.moved[TUI_BORDERS - 1].by, TUI_BORDERS - 4, "with the last of them");
    ok(tui_borders_write(&b, file), "they are written");
    tui_borders_read(&b, file);
    is_int(b.n_moved, TUI_BORDERS - 1, "but for the one that is where it was");
    is_int(b.moved[0].by, -3, "also those that went back");
    unlink(file);
    tui_borders_read(&b, file);
    is_int(b.n_moved, 0, "without the file none is moved");
    if (mkdir(file, 0700) != 0)
        bail("no folder");
    ok(!tui_borders_write(&b, file), "a folder is not written over");
    snprintf(left, sizeof left, "%s.%ld", file, (long)getpid());
    ok(access(left, F_OK) != 0, "and nothing is left beside it");
    rmdir(file);
    rmdir(folder);
}

/* A drag from Y, X to TO_Y, TO_X, where it is let go. */
static void
drag(struct tui_borders *b, int y, int x, int to_y, int to_x)
{
    int side, row;
    bool ended;
    frame(b, &side, &row);
    (void)mouse(b, TUI_CLICK, y, x, &ended);
    (void)mouse(b, TUI_DRAG, to_y, to_x, &ended);
    frame(b, &side, &row);
    (void)mouse(b, TUI_RELEASE, to_y, to_x, &ended);
}

/* Both sides of each end: of a border, and of the way that it has. */
static void
test_ends(void)
{
    static const struct {
        int y, x, to_y, to_x, side, row; /* how far they are moved */
    } rows[] = {
        {2, 30, 2, 33, 3, 0},    {1, 30, 1, 33, 0, 0},   {21, 30, 21, 33, 3, 0},
        {22, 30, 22, 33, 0, 0},  {5, 29, 5, 33, 0, 0},   {5, 31, 5, 33, 0, 0},
        {10, 31, 12, 31, 0, 2},  {10, 79, 12, 79, 0, 2}, {10, 80, 12, 80, 0, 0},
        {9, 50, 12, 50, 0, 0},   {11, 50, 12, 50, 0, 0}, {5, 30, 5, 60, 30, 0},
        {5, 30, 5, 61, 30, 0},   {5, 30, 5, 99, 30, 0},  {5, 30, 5, 20, -10, 0},
        {5, 30, 5, 19, -10, 0},  {5, 30, 5, 0, -10, 0},  {10, 50, 20, 50, 0, 10},
        {10, 50, 21, 50, 0, 10}, {10, 50, 4, 50, 0, -6}, {10, 50, 3, 50, 0, -6},
    };
    struct tui_borders b;
    const struct tui_pane all = tui_pane_of(&grid);
    int side, row;
    bool ended;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b = (struct tui_borders){0};
        drag(&b, rows[i].y, rows[i].x, rows[i].to_y, rows[i].to_x);
        const int by = tui_border_moved(&b, "t.side", TUI_NORMAL),
                  down = tui_border_moved(&b, "t.row", TUI_NORMAL);
        if (!ok(by == rows[i].side && down == rows[i].row, "from %d, %d to %d, %d",
                rows[i].y, rows[i].x, rows[i].to_y, rows[i].to_x))
            diag("%d, %d and not %d, %d", by, down, rows[i].side, rows[i].row);
    }
    b = (struct tui_borders){0};
    frame(&b, &side, &row);
    (void)mouse(&b, TUI_CLICK, 5, 30, &ended);
    (void)mouse(&b, TUI_DRAG, 5, 40, &ended);
    frame(&b, &side, &row);
    (void)mouse(&b, TUI_DRAG, 5, 30, &ended);
    frame(&b, &side, &row);
    is_int(side, 30, "a border can be dragged back");
    const struct tui_border none = {
        .name = "t.none", .usual = 30, .low = 50, .high = 40, .length = 5};
    is_int(tui_border_place(&b, &all, &none), 30, "one without a way stays");
}

/* As many borders as there is room for, and what cannot be written. */
static void
test_many(void)
{
    static char folder[] = "/tmp/etude-border.XXXXXX";
    char file[64], name[TUI_BORDER_NAME];
    struct tui_borders b = {0};
    if (!mkdtemp(folder))
        bail("no folder");
    snprintf(file, sizeof file, "%s/layout", folder);
    FILE *f = fopen(file, "w");
    for (int i = 0; f && i <= TUI_BORDERS; i++)
        fprintf(f, "b%d.80 %d\n", i, i + 1);
    if (!f || fclose(f) != 0)
        bail("%s cannot be written", file);
    tui_borders_read(&b, file);
    snprintf(name, sizeof name, "b%d", TUI_BORDERS - 1);
    is_int(tui_border_moved(&b, name, TUI_NORMAL), TUI_BORDERS,
           "all that have room are read");
    unlink(file);
    if (mkdir(file, 0700) != 0)
        bail("no folder in the way");
    ok(!tui_borders_write(&b, file), "a folder in the way of the file is said");
    rmdir(file);
    is_int(rmdir(folder), 0, "and nothing is left beside it");
}

int
main(void)
{
    test_drag();
    test_limits();
    test_kept();
    test_ends();
    test_many();
    test_sizes();
    test_file();
    return done();
}
