/* SPDX-License-Identifier: Apache-2.0 */
/* halves.c: a picture in half blocks. A cell has one colour: where both of its pixels
 * are about as bright it is full, else the brighter one is its half. */
#include "config.h"

#include <stdlib.h>

#include "tui/glyphs.h"
#include "tui/results.h"

enum { UPPER = 0x2580, LOWER = 0x2584, FULL = 0x2588 };

/* From black, which is the terminal's own ground, to white. */
static const enum tui_role shades[] = {TUI_TEXT, TUI_TRACK,   TUI_RAW,
                                       TUI_DIM,  TUI_SECTION, TUI_STRONG};
enum { SHADES = sizeof shades / sizeof *shades };

/* How bright pixel Y, X of a picture of ROWS x COLS is, of which RGB [H][W] is shown:
 * 0 to 255. */
static int
brightness(const uint8_t *rgb, int w, int h, int rows, int cols, int y, int x)
{
    const int y0 = y * h / rows, y1 = (y + 1) * h / rows;
    const int x0 = x * w / cols, x1 = (x + 1) * w / cols;
    int64_t sum = 0, n = 0;
    for (int i = y0; i < y1 || i == y0; i++)
        for (int k = x0; k < x1 || k == x0; k++, n++) {
            const uint8_t *c = rgb + 3 * ((int64_t)i * w + k);
            sum += (2 * c[0] + 5 * c[1] + c[2]) / 8;
        }
    return (int)(sum / n);
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
        for (int x = 0; x < p->w; x++)
            if (is_ascii)
                tui_put_ch(p, y, x,
                           (unsigned char)
                               ramp[brightness(rgb, w, h, rows, p->w, y, x) * 9 / 255],
                           TUI_TEXT, 0);
            else
                put_pair(p, y, x, brightness(rgb, w, h, rows, p->w, 2 * y, x),
                         brightness(rgb, w, h, rows, p->w, 2 * y + 1, x));
}
