/* glyphs.h: the characters that things are drawn with. */
#ifndef TUI_GLYPHS_H
#define TUI_GLYPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config/settings.h"

enum { TUI_SERIES = 6, TUI_EIGHTHS = 8 };

struct tui_glyphs {
    bool is_ascii;
    enum eti_plot plot;                 /* what charts are drawn with; never auto */
    uint32_t across, down, corner, tee; /* lines; tee: where a title meets a column */
    uint32_t box[4]; /* corners: upper left, upper right, lower left, lower right */
    uint32_t bar_open, bar_close; /* around bars */
    uint32_t progress, half, tip; /* done; half a cell (0: none); the last (0: none) */
    uint32_t gauge[TUI_EIGHTHS + 1], gauge_rest; /* eighths of a cell; the others */
    uint32_t series[TUI_SERIES]; /* the mark of each, where a point is a character */
    uint32_t raw;
    uint32_t heat[4];                               /* ok, over, far over, worst */
    uint32_t spark[TUI_EIGHTHS];                    /* heights */
    uint32_t live, warning, failed, selected, more; /* signs of states and places */
};

extern const struct tui_glyphs tui_glyphs_ascii;
/* The set for PLOT (never auto): ETI_PLOT_ASCII is all ASCII. */
const struct tui_glyphs *tui_glyphs_of(enum eti_plot plot);
/* As the C library finds the locale of characters. */
bool tui_is_utf8(void);
/* What the locale, TERM and the user say: --ascii and ui.plot. */
enum eti_plot tui_plot_choose(bool ascii, enum eti_plot wanted);

#endif
