/* SPDX-License-Identifier: Apache-2.0 */
/* halves.h: a picture in half blocks, and the colour of a class. */
#ifndef TUI_HALVES_H
#define TUI_HALVES_H

#include <stdint.h>

#include "tui/grid.h"

/* RGB [H][W][3] in all of P, two rows of pixels to a row of cells, in its colours or,
 * where the terminal has few, in shades of grey; where glyphs are ASCII one, in
 * characters. */
void tui_halves_draw(const struct tui_pane *p, const uint8_t *rgb, int w, int h);

/* A block of the colour that pixels of CLASS have in a mask, at Y, X. Returns its
 * columns, with the blank behind it. */
int tui_swatch_put(const struct tui_pane *p, int y, int x, int class);

#endif
