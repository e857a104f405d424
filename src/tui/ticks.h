/* SPDX-License-Identifier: Apache-2.0 */
/* ticks.h: the labelled places of an axis: which values, and how they are written.
 *
 * The distance of two of them is 1, 2, 2.5 or 5 times a power of ten, in the unit that
 * they count. All labels of an axis have one notation, with as many digits as the
 * distance needs, so that no two read alike and none has to be cut: where a notation is
 * too wide another is taken ("11,804", "12k", "3.6e23"), and where none fits a greater
 * distance. Pure functions of numbers. */
#ifndef TUI_TICKS_H
#define TUI_TICKS_H

#include <stdbool.h>

enum {
    TUI_TICKS = 12,       /* of an axis, at most */
    TUI_TICKS_Y = 6,      /* of a scale of values */
    TUI_TICK_COLUMNS = 6, /* of a label of a scale of values */
    TUI_TICK_LABEL = 16,  /* bytes of a label */
};

/* What values are: it decides how they are divided. */
enum tui_quantity {
    TUI_OF_NUMBERS,
    TUI_OF_PARTS,   /* of one, as accuracies are: the axis ends at a tick, at most 1 */
    TUI_OF_BYTES,   /* counted in powers of 1,000, as everywhere on the screens */
    TUI_OF_SECONDS, /* counted in seconds, minutes, hours or days */
    TUI_OF_COUNTS,  /* whole numbers only, as batches are */
};

struct tui_ticks {
    double at[TUI_TICKS]; /* ascending, in the values' own unit */
    char label[TUI_TICKS][TUI_TICK_LABEL];
    int n;
    char unit[8]; /* what all labels count: "MB", "min", "x1e-12"; "" */
    double per;   /* how many of the values' own unit that is */
};

/* What is known of a scale of values. */
struct tui_scale {
    double low, high; /* in: the least and greatest value; out: the scale's ends */
    int rows;         /* of cells that it has */
    enum tui_quantity of;
    bool is_log;    /* both ends above 0 */
    bool from_zero; /* begin at 0 where no value is below */
};

/* Chooses the ends and ticks of S: 3 to 6 where there are 6 rows, each on a row of its
 * own; one, in the middle, where all values are alike. */
void tui_ticks_of_scale(struct tui_scale *s, struct tui_ticks *out);
/* The ticks from FROM to TO of an axis of COLUMNS cells: 4 to 8 where there is room.
 * The last label has UNIT behind it; NULL: the unit that OF is counted in. */
void tui_ticks_of_axis(double from, double to, int columns, enum tui_quantity of,
                       const char *unit, struct tui_ticks *out);
/* Where on COLUMNS cells the label of tick I of an axis from FROM to TO begins; -1: it
 * would touch another. */
int tui_tick_column(const struct tui_ticks *t, int i, double from, double to,
                    int columns);

#endif
