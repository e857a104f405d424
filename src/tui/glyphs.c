/* SPDX-License-Identifier: Apache-2.0 */
/* glyphs.c: see glyphs.h. UX.md section 5. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tui/glyphs.h"

const struct tui_glyphs tui_glyphs_ascii = {
    .is_ascii = true,
    .plot = ETI_PLOT_ASCII,
    .across = '-',
    .heavy = '=',
    .down = '|',
    .corner = '+',
    .tee = '+',
    .side = '+',
    .tick = '+',
    .tick_down = '+',
    .dotted = '.',
    .box = {'+', '+', '+', '+'},
    .bar_open = '[',
    .bar_close = ']',
    .progress = '=',
    .tip = '>',
    .rest = ' ',
    .gauge = {'.', '.', '.', '.', '#', '#', '#', '#', '#'},
    .gauge_rest = '.',
    .series = {'*', 'o', '+', 'x', '@', '%', '=', '&'},
    .raw = '.',
    .heat = {'.', '-', '+', '#'},
    .spark = {'_', '.', '.', '-', '-', '=', '=', '#'},
    .live = '*',
    .warning = '!',
    .failed = 'x',
    .selected = '>',
    .marked = '#',
    .more = 'v',
    .folded = '>',
};

#define UNICODE                                                                        \
    .across = 0x2500, .heavy = 0x2501, .down = 0x2502, .corner = 0x2514,               \
    .tee = 0x252c, .side = 0x251c, .tick = 0x2524, .tick_down = 0x252c,                \
    .dotted = 0x2504, .box = {0x256d, 0x256e, 0x2570, 0x256f}, .bar_open = ' ',        \
    .bar_close = ' ', .progress = 0x2501, .half = 0x2578, .rest = 0x2504,              \
    .gauge = {0x2504, 0x258f, 0x258e, 0x258d, 0x258c, 0x258b, 0x258a, 0x2589, 0x2588}, \
    .gauge_rest = 0x2504, .series = {'*', 'o', '+', 'x', '@', '%', '=', '&'},          \
    .raw = '.', .heat = {0x00b7, '-', '+', '#'},                                       \
    .spark = {0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587, 0x2588},         \
    .live = 0x25cf, .warning = 0x25b2, .failed = 0x2717, .selected = 0x258c,           \
    .marked = 0x25c6, .more = 0x25be, .folded = 0x25b8

static const struct tui_glyphs braille = {.plot = ETI_PLOT_BRAILLE, UNICODE};
static const struct tui_glyphs block = {.plot = ETI_PLOT_BLOCK, UNICODE};

const struct tui_glyphs *
tui_glyphs_of(enum eti_plot plot)
{
    return plot == ETI_PLOT_BRAILLE ? &braille
           : plot == ETI_PLOT_BLOCK ? &block
                                    : &tui_glyphs_ascii;
}

bool
tui_is_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    static const char *const words[] = {"UTF-8", "utf-8", "UTF8", "utf8"};
    const char *locale = NULL;
    for (int i = 0; i < 3 && (!locale || !*locale); i++)
        locale = getenv(variables[i]);
    for (int i = 0; i < 4; i++)
        if (locale && strstr(locale, words[i]))
            return true;
    return false;
}

enum eti_plot
tui_plot_choose(bool ascii, enum eti_plot wanted)
{
    const char *term = getenv("TERM");
    if (ascii || !tui_is_utf8() || (term && strcmp(term, "linux") == 0))
        return ETI_PLOT_ASCII;
    return wanted == ETI_PLOT_AUTO ? ETI_PLOT_BRAILLE : wanted;
}
