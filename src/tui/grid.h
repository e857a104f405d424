/* SPDX-License-Identifier: Apache-2.0 */
/* grid.h: what a screen looks like: cells, and how text gets into them.
 *
 * Screens draw into a grid, always all of it; what is shown is the difference from the
 * one before (term.c), or its text (--dump-screen). Nothing else reaches a terminal,
 * and no cell ever holds anything but one printable character of width one: text passes
 * et_visible and tui_is_narrow on its way in, wherever it is from. */
#ifndef TUI_GRID_H
#define TUI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "etude/ctx.h"
#include "tui/theme.h"

struct tui_glyphs;

struct tui_cell {
    uint32_t ch;    /* a code point of width one */
    uint8_t role;   /* enum tui_role */
    uint8_t attr;   /* enum tui_attr, or-ed */
    uint8_t ground; /* enum tui_ground */
    /* Of a picture: its upper and its lower half, TUI_RGB | 0xrrggbb, where the
     * terminal has 256 colours or more; elsewhere CH stands for both. 0: CH alone. */
    uint32_t upper, lower;
};
enum { TUI_RGB = 0x1000000 };

enum tui_attr {
    TUI_BOLD = 1,
    TUI_REVERSE = 2,
    TUI_FAINT = 4,
    TUI_UNDERLINE = 8,
};

struct tui_grid {
    struct et_ctx *cx;
    int rows, cols;
    struct tui_cell *cell;           /* [rows][cols] */
    const struct tui_glyphs *glyphs; /* those that everybody draws with; borrowed */
    int cursor_y, cursor_x;          /* where text is typed; -1: nowhere */
    bool is_mono; /* roles have no colours: what they tell apart has other signs */
};

/* A blank grid, at least 1x1. ENOMEM. */
ET_NODISCARD et_status tui_grid_init(struct tui_grid *g, struct et_ctx *cx,
                                     const struct tui_glyphs *glyphs, int rows,
                                     int cols);
void tui_grid_release(struct tui_grid *g);
void tui_grid_clear(struct tui_grid *g);
/* Copies the cells of FROM, which has the same size. */
void tui_grid_copy(struct tui_grid *to, const struct tui_grid *from);
/* Its lines, blanks at their ends cut off, in UTF-8. */
void tui_grid_print(const struct tui_grid *g, FILE *out);
/* Its roles, a line for each row that has others than text: " 4  rule 1-2  focus 4-13".
 * Columns count from 1. A ground follows as "@select", attributes as "+bold". Blanks
 * that show nothing belong to what they stand in. */
void tui_grid_print_roles(const struct tui_grid *g, FILE *out);
/* The UTF-8 of CH in BUF [5]; returns its bytes. */
int tui_utf8(uint32_t ch, char *buf);
/* Is CH a character that fills exactly one cell? */
bool tui_is_narrow(uint32_t ch);

/* ---- a part of a grid ----
 * Rows and columns count from its upper left corner; what lies outside is cut off. */

struct tui_pane {
    struct tui_grid *grid;
    int y, x, h, w; /* in the grid, and inside it */
};

struct tui_pane tui_pane_of(struct tui_grid *g);
/* The part of P that begins at Y, X and is H high, W wide, as far as P reaches. */
struct tui_pane tui_pane_part(const struct tui_pane *p, int y, int x, int h, int w);

/* Puts a character there. */
void tui_put_ch(const struct tui_pane *p, int y, int x, uint32_t ch, enum tui_role role,
                int attr);
/* The character that is there stands for two pixels, 0xrrggbb each: nothing in ASCII,
 * nor without colours. */
void tui_put_pixels(const struct tui_pane *p, int y, int x, uint32_t upper,
                    uint32_t lower);
/* Puts text there. Returns the columns that it took, or would have: x + that is where
 * the next begins. */
int tui_put(const struct tui_pane *p, int y, int x, enum tui_role role,
            const char *text);
int tui_putf(const struct tui_pane *p, int y, int x, enum tui_role role,
             const char *fmt, ...) ET_PRINTF(5, 6);
/* Bytes N of TEXT, with ATTR, in at most MOST columns. */
int tui_put_n(const struct tui_pane *p, int y, int x, enum tui_role role, int attr,
              int most, const char *text, size_t n);
/* Text that ends before column END. Returns the column at which it begins. */
int tui_put_end(const struct tui_pane *p, int y, int end, enum tui_role role,
                const char *text);
/* The same where that is not before column FROM; else nothing. */
void tui_put_right(const struct tui_pane *p, int y, int from, int end,
                   enum tui_role role, const char *text);
/* Text cut before column END, with a sign where something is missing. Returns the
 * columns that it takes. */
int tui_put_cut(const struct tui_pane *p, int y, int x, int end, enum tui_role role,
                const char *text);
/* The same without its middle: what tells paths apart is at their ends. */
int tui_put_ends(const struct tui_pane *p, int y, int x, int end, enum tui_role role,
                 const char *text);
/* TEXT in lines of W columns, broken at blanks where it can be; P NULL: nowhere. What P
 * has no line for is cut with a sign. Returns how many lines. */
int tui_put_wrapped(const struct tui_pane *p, int y, int x, int w, enum tui_role role,
                    const char *text);
/* The columns that TEXT takes. */
int tui_width(const char *text);
/* Bytes of TEXT, all characters of which are one column wide, that N columns take. */
size_t tui_bytes_of(const char *text, int n);
/* N times the same. */
void tui_fill(const struct tui_pane *p, int y, int x, int n, uint32_t ch,
              enum tui_role role);
/* Blanks all of P: what a pop-up lies on. */
void tui_blank(const struct tui_pane *p);
/* Adds ATTR to N cells. */
void tui_mark(const struct tui_pane *p, int y, int x, int n, int attr);
/* Gives all of P the role: of data that are stale. */
void tui_tint(const struct tui_pane *p, enum tui_role role);
/* N cells lie on GROUND from here on: also what is drawn into them later, until they
 * are blanked. tui_lay: all of P. */
void tui_ground(const struct tui_pane *p, int y, int x, int n, enum tui_ground ground);
void tui_lay(const struct tui_pane *p, enum tui_ground ground);
/* The place at which text is typed. */
void tui_cursor(const struct tui_pane *p, int y, int x);

#endif
