/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c: a picture on a terminal. See picture.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_CHAFA
#include <chafa.h>
#endif

#include "cli/color.h"
#include "cli/picture.h"
#include "tui/glyphs.h"

/* ---- the sheet ---- */

et_status
cli_picture_new(struct et_ctx *cx, int columns, int rows, struct cli_picture *out)
{
    size_t bytes = (size_t)columns * CLI_CELL_W * (size_t)rows * CLI_CELL_H * 3;
    void *block = NULL;
    *out = (struct cli_picture){.columns = columns, .rows = rows};
    ET_TRY(et_alloc(cx, bytes, &block));
    out->rgb = block;
    return ET_OK;
}

void
cli_picture_free(struct et_ctx *cx, struct cli_picture *p)
{
    et_free(cx, p->rgb);
    p->rgb = NULL;
}

/* A rectangle of pixels of a sheet or of what is drawn on it. */
struct area {
    int64_t y, x, h, w;
};

/* The mean of channel C over A, of rows of W pixels. */
static uint8_t
mean(const uint8_t *rgb, int64_t w, struct area a, int c)
{
    int64_t sum = 0;
    for (int64_t y = a.y; y < a.y + a.h; y++)
        for (int64_t x = a.x; x < a.x + a.w; x++)
            sum += rgb[(y * w + x) * 3 + c];
    return (uint8_t)((sum + a.h * a.w / 2) / (a.h * a.w));
}

/* Which of N pixels number I of M shows: *FROM on, at least one. */
static int64_t
share(int64_t i, int64_t m, int64_t n, int64_t *from)
{
    *from = i * n / m;
    int64_t to = (i + 1) * n / m;
    return to > *from ? to - *from : 1;
}

void
cli_picture_put(struct cli_picture *p, struct cli_place at, const uint8_t *rgb,
                int64_t h, int64_t w)
{
    int64_t wide = (int64_t)at.columns * CLI_CELL_W,
            high = (int64_t)at.rows * CLI_CELL_H,
            line = (int64_t)p->columns * CLI_CELL_W;
    if (wide * h > high * w)
        wide = high * w / h > 0 ? high * w / h : 1;
    else
        high = wide * h / w > 0 ? wide * h / w : 1;
    for (int64_t i = 0; i < high; i++)
        for (int64_t j = 0; j < wide; j++) {
            struct area a;
            uint8_t *to = p->rgb + 3 * ((at.row * CLI_CELL_H + i) * line +
                                        at.column * CLI_CELL_W + j);
            a.h = share(i, high, h, &a.y);
            a.w = share(j, wide, w, &a.x);
            for (int c = 0; c < 3; c++)
                to[c] = mean(rgb, w, a, c);
        }
}

int
cli_picture_rows(int columns, int64_t h, int64_t w)
{
    int64_t rows = (columns * h * CLI_CELL_W + w * CLI_CELL_H - 1) / (w * CLI_CELL_H);
    return rows > 0 ? (int)rows : 1;
}

/* ---- without a library ---- */

static void
print_ascii(const struct cli_picture *p)
{
    static const char ramp[] = " .:-=+*#%@";
    int64_t w = (int64_t)p->columns * CLI_CELL_W;
    for (int row = 0; row < p->rows; row++) {
        for (int column = 0; column < p->columns; column++) {
            struct area a = {(int64_t)row * CLI_CELL_H, (int64_t)column * CLI_CELL_W,
                             CLI_CELL_H, CLI_CELL_W};
            int light = (299 * mean(p->rgb, w, a, 0) + 587 * mean(p->rgb, w, a, 1) +
                         114 * mean(p->rgb, w, a, 2)) /
                        1000;
            putchar(ramp[light * (int)(sizeof ramp - 1) / 256]);
        }
        putchar('\n');
    }
}

/* The sequence that sets one of both colours (38, 48), of all or of 256. */
static void
print_color(int which, const uint8_t rgb[3], bool all)
{
    if (all)
        printf("\033[%d;2;%d;%d;%dm", which, rgb[0], rgb[1], rgb[2]);
    else
        printf("\033[%d;5;%dm", which,
               16 + 36 * ((rgb[0] * 5 + 127) / 255) + 6 * ((rgb[1] * 5 + 127) / 255) +
                   (rgb[2] * 5 + 127) / 255);
}

static bool
has_all_colors(void)
{
    const char *term = getenv("COLORTERM");
    return term && (strcmp(term, "truecolor") == 0 || strcmp(term, "24bit") == 0);
}

static void
print_half_blocks(const struct cli_picture *p)
{
    const bool all = has_all_colors();
    int64_t w = (int64_t)p->columns * CLI_CELL_W;
    for (int row = 0; row < p->rows; row++) {
        for (int column = 0; column < p->columns; column++) {
            struct area upper = {(int64_t)row * CLI_CELL_H,
                                 (int64_t)column * CLI_CELL_W, CLI_CELL_H / 2,
                                 CLI_CELL_W};
            struct area lower = upper;
            uint8_t rgb[2][3];
            lower.y += CLI_CELL_H / 2;
            for (int c = 0; c < 3; c++) {
                rgb[0][c] = mean(p->rgb, w, upper, c);
                rgb[1][c] = mean(p->rgb, w, lower, c);
            }
            print_color(38, rgb[0], all);
            print_color(48, rgb[1], all);
            fputs("\u2580", stdout);
        }
        puts(CLI_SGR_OFF); /* raw: ours */
    }
}

/* ---- with it ---- */

#ifdef HAVE_CHAFA
/* What TERM shows best. */
static void
choose_mode(ChafaCanvasConfig *config, ChafaTermInfo *term)
{
    ChafaPixelMode mode = CHAFA_PIXEL_MODE_SYMBOLS;
    ChafaCanvasMode colors = CHAFA_CANVAS_MODE_INDEXED_16;
    if (chafa_term_info_have_seq(term, CHAFA_TERM_SEQ_SET_COLOR_FGBG_DIRECT))
        colors = CHAFA_CANVAS_MODE_TRUECOLOR;
    else if (chafa_term_info_have_seq(term, CHAFA_TERM_SEQ_SET_COLOR_FGBG_256))
        colors = CHAFA_CANVAS_MODE_INDEXED_240;
    if (chafa_term_info_have_seq(term, CHAFA_TERM_SEQ_BEGIN_KITTY_IMMEDIATE_IMAGE_V1))
        mode = CHAFA_PIXEL_MODE_KITTY;
    else if (chafa_term_info_have_seq(term, CHAFA_TERM_SEQ_BEGIN_SIXELS))
        mode = CHAFA_PIXEL_MODE_SIXELS;
    if (mode != CHAFA_PIXEL_MODE_SYMBOLS)
        colors = CHAFA_CANVAS_MODE_TRUECOLOR;
    chafa_canvas_config_set_pixel_mode(config, mode);
    chafa_canvas_config_set_canvas_mode(config, colors);
}

static void
print_chafa(const struct cli_picture *p)
{
    gchar **environment = g_get_environ();
    ChafaTermInfo *term =
        chafa_term_db_detect(chafa_term_db_get_default(), environment);
    ChafaCanvasConfig *config = chafa_canvas_config_new();
    ChafaSymbolMap *symbols = chafa_symbol_map_new();
    int w = p->columns * CLI_CELL_W, h = p->rows * CLI_CELL_H;
    chafa_symbol_map_add_by_tags(symbols, CHAFA_SYMBOL_TAG_SPACE |
                                              CHAFA_SYMBOL_TAG_BLOCK |
                                              CHAFA_SYMBOL_TAG_BORDER);
    chafa_canvas_config_set_symbol_map(config, symbols);
    chafa_canvas_config_set_geometry(config, p->columns, p->rows);
    chafa_canvas_config_set_cell_geometry(config, CLI_CELL_W, CLI_CELL_H);
    choose_mode(config, term);
    ChafaCanvas *canvas = chafa_canvas_new(config);
    chafa_canvas_draw_all_pixels(canvas, CHAFA_PIXEL_RGB8, p->rgb, w, h, w * 3);
    GString *text = chafa_canvas_print(canvas, term);
    /* raw: sequences that libchafa made of pixels */
    fwrite(text->str, 1, text->len, stdout);
    putchar('\n');
    g_string_free(text, TRUE);
    chafa_canvas_unref(canvas);
    chafa_symbol_map_unref(symbols);
    chafa_canvas_config_unref(config);
    chafa_term_info_unref(term);
    g_strfreev(environment);
}
#endif

enum cli_picture_form
cli_picture_form(const struct cli *c)
{
    if (c->opt.ascii || !tui_is_utf8() || !cli_has_color(c, STDOUT_FILENO))
        return CLI_PICTURE_ASCII;
#ifdef HAVE_CHAFA
    if (isatty(STDOUT_FILENO))
        return CLI_PICTURE_CHAFA;
#endif
    return CLI_PICTURE_HALF;
}

void
cli_picture_print(const struct cli_picture *p, enum cli_picture_form form)
{
    switch (form) {
    case CLI_PICTURE_CHAFA:
#ifdef HAVE_CHAFA
        print_chafa(p);
        return;
#endif
    case CLI_PICTURE_HALF:
        print_half_blocks(p);
        return;
    case CLI_PICTURE_ASCII:
        print_ascii(p);
        return;
    }
}

int
cli_picture_swatch(const uint8_t rgb[3], enum cli_picture_form form)
{
    if (form == CLI_PICTURE_ASCII)
        return 0;
    print_color(38, rgb, has_all_colors());
    fputs("\u2588\u2588" CLI_SGR_OFF, stdout); /* raw: ours */
    return 2;
}
