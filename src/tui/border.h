/* SPDX-License-Identifier: Apache-2.0 */
/* border.h: borders between panels, which the mouse can drag.
 *
 * A screen that lays itself out asks how far its user has moved a border from its usual
 * place, and says, each time it is drawn, where it stands now: there it can be taken.
 * How far it was moved is kept by the border's name and the size of the screen, in a
 * file of the user's state: lines of "compose.left.80 -4". */
#ifndef TUI_BORDER_H
#define TUI_BORDER_H

#include "tui/grid.h"
#include "tui/layout.h"
#include "tui/term.h"

enum { TUI_BORDERS = 64, TUI_BORDER_NAME = 32, TUI_BORDER_SPOTS = 16 };

struct tui_borders {
    struct {
        char name[TUI_BORDER_NAME];
        int by; /* cells to the right, or down */
    } moved[TUI_BORDERS];
    int n_moved;
    struct {
        struct tui_rect at;
        bool is_level; /* it parts what is above from what is below */
        char name[TUI_BORDER_NAME];
        int by;
    } spot[TUI_BORDER_SPOTS]; /* of the frame that is shown */
    int n_spots;
    /* The one that is dragged. */
    char held[TUI_BORDER_NAME]; /* "": no border is held */
    bool is_level, was_moved;
    int from,
        by;   /* where it was taken, in rows or columns; how far it was moved then */
    int last; /* how far the mouse has moved it, whether it could go there or not */
};

/* Reads FILE; what is no line of it is left out. NULL, or a file that is not there:
 * none was moved. */
void tui_borders_read(struct tui_borders *b, const char *file);
/* Writes it, with its folder. False where that cannot be done. */
bool tui_borders_write(const struct tui_borders *b, const char *file);

/* How far the border NAME was moved on a screen of that SIZE. */
int tui_border_moved(const struct tui_borders *b, const char *name, enum tui_size size);
/* It stands AT, moved BY, which is as far as there was room for. */
void tui_border_stands(struct tui_borders *b, const char *name, enum tui_size size,
                       bool is_level, struct tui_rect at, int by);
/* Both, of a border that parts a pane. */
struct tui_border {
    const char *name;
    bool is_level;
    int usual, low, high; /* its row or column; how far it may go */
    int from, length;     /* of its other coordinate */
};
/* Where B stands in P. */
int tui_border_place(struct tui_borders *all, const struct tui_pane *p,
                     const struct tui_border *b);
/* Before a frame is drawn. */
void tui_borders_begin(struct tui_borders *b);

/* A press at M takes a border, what follows moves it. Is M about a border that is held,
 * so that nobody else needs to know? *ENDED: it was let go, somewhere else. */
bool tui_borders_mouse(struct tui_borders *b, const struct tui_mouse *m, bool *ended);

#endif
