/* SPDX-License-Identifier: Apache-2.0 */
/* halves.c: a picture in half blocks. Where the terminal has few colours a cell has one
 * shade: where both of its pixels are about as bright it is full, else the brighter one
 * is its half. */
#include "config.h"

#include <stdlib.h>

#include "core/image/class_color.h"
#include "tui/glyphs.h"
#include "tui/halves.h"

enum { UPPER = 0x2580, LOWER = 0x2584, FULL = 0x2588 };

/* From black, which is the terminal's own ground, to white. */
static const enum tui_role shades[] = {TUI_TEXT, TUI_TRACK,   TUI_RAW,
                                       TUI_DIM,  TUI_SECTION, TUI_STRONG};
enum { SHADES = sizeof shades / sizeof *shades };

/* The mean of channel C of what pixel Y, X of a picture of ROWS x COLS shows of RGB
 * [H][W]. */
static int
mean_of(const uint8_t *rgb, int w, int h, int rows, int cols, int y, int x, int c)
{
    const int y0 = y * h / rows, y1 = (y + 1) * h / rows;
    const int x0 = x * w / cols, x1 = (x + 1) * w / cols;
    int64_t sum = 0, n = 0;
    for (int i = y0; i < y1 || i == y0; i++)
        for (int k = x0; k < x1 || k == x0; k++, n++)
            sum += rgb[3 * ((int64_t)i * w + k) + c];
    return (int)(sum / n);
}

/* That pixel, 0xrrggbb. */
static uint32_t
pixel_of(const uint8_t *rgb, int w, int h, int rows, int cols, int y, int x)
{
    uint32_t pixel = 0;
    for (int c = 0; c < 3; c++)
        pixel = pixel << 8 | (uint32_t)mean_of(rgb, w, h, rows, cols, y, x, c);
    return pixel;
}

/* 0 to 255. */
static int
brightness(uint32_t pixel)
{
    return (int)(2 * (pixel >> 16) + 5 * (pixel >> 8 & 255) + (pixel & 255)) / 8;
}

static int
shade_of(int bright)
{
    return bright * (SHADES - 1) / 255 + (bright % 51 > 25 && bright < 255);
}

static void
put_pair(const struct tui_pane *p, int y, int x, int upper, int lower)
{
    const int u = shade_of(upper), l = shade_of(lower), most = u > l ? u : l;
    const bool is_even = abs(u - l) <= 1 && u > 0 && l > 0;
    if (most > 0)
        tui_put_ch(p, y, x, is_even ? FULL : u > l ? UPPER : LOWER, shades[most], 0);
}

void
tui_halves_draw(const struct tui_pane *p, const uint8_t *rgb, int w, int h)
{
    static const char ramp[] = " .:-=+*#%@";
    const bool is_ascii = p->grid->glyphs->is_ascii;
    const int rows = is_ascii ? p->h : 2 * p->h;
    for (int y = 0; y < p->h; y++)
        for (int x = 0; x < p->w; x++) {
            const int row = is_ascii ? y : 2 * y;
            const uint32_t upper = pixel_of(rgb, w, h, rows, p->w, row, x);
            if (is_ascii) {
                tui_put_ch(p, y, x, (unsigned char)ramp[brightness(upper) * 9 / 255],
                           TUI_TEXT, 0);
                continue;
            }
            const uint32_t lower = pixel_of(rgb, w, h, rows, p->w, row + 1, x);
            put_pair(p, y, x, brightness(upper), brightness(lower));
            tui_put_pixels(p, y, x, upper, lower);
        }
}

int
tui_swatch_put(const struct tui_pane *p, int y, int x, int class)
{
    enum { CELLS = 2 };
    const struct tui_pane part = tui_pane_part(p, y, x, 1, CELLS);
    uint8_t rgb[3];
    if (eti_class_color(class, rgb))
        tui_halves_draw(&part, rgb, 1, 1);
    return CELLS + 1;
}
