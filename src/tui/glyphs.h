/* SPDX-License-Identifier: Apache-2.0 */
/* glyphs.h: the characters that things are drawn with. */
#ifndef TUI_GLYPHS_H
#define TUI_GLYPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config/settings.h"

enum { TUI_SERIES = 8, TUI_EIGHTHS = 8 };

struct tui_glyphs {
    bool is_ascii;
    enum eti_plot plot;               /* what charts are drawn with; never auto */
    uint32_t across, down, corner;    /* lines */
    uint32_t tee, side;               /* a column that begins at a title; passes one */
    uint32_t heavy;                   /* across, of the panel that the keys go to */
    uint32_t tick, tick_down, dotted; /* on a scale, an axis; of what is to come */
    uint32_t box[4]; /* corners: upper left, upper right, lower left, lower right */
    uint32_t bar_open, bar_close; /* around bars */
    uint32_t progress, half,
        tip;       /* done; half a cell, the last cell (0: no sign for it) */
    uint32_t rest; /* not done yet */
    uint32_t gauge[TUI_EIGHTHS + 1], gauge_rest; /* eighths of a cell; the others */
    uint32_t series[TUI_SERIES]; /* the mark of each, where a point is a character */
    uint32_t raw;
    uint32_t heat[4];                                 /* ok, over, far over, worst */
    uint32_t spark[TUI_EIGHTHS];                      /* heights */
    uint32_t live, warning, failed, selected, marked; /* signs of states and places */
    uint32_t more, folded; /* of a section that is open, and one that is not */
};

extern const struct tui_glyphs tui_glyphs_ascii;
/* The set for PLOT (never auto): ETI_PLOT_ASCII is all ASCII. */
const struct tui_glyphs *tui_glyphs_of(enum eti_plot plot);
/* As the C library finds the locale of characters. */
bool tui_is_utf8(void);
/* What the locale, TERM and the user say: --ascii and ui.plot. */
enum eti_plot tui_plot_choose(bool ascii, enum eti_plot wanted);

#endif
