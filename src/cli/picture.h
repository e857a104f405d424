/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h: a picture on a terminal, as well as that can show it.
 *
 * A picture is a sheet of pixels, of which every character cell shows CLI_CELL_W x
 * CLI_CELL_H. libchafa writes it as sixels, as kitty's pictures, or as the symbols that
 * come nearest, whatever the terminal has. Without the library a cell is an upper half
 * block in two colours; where there are to be no colours, or no UTF-8, it is a
 * character that covers as much of its cell as the pixels are bright. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include "cli/cli.h"

enum { CLI_CELL_W = 8, CLI_CELL_H = 16 };

/* How to write pictures, from what any screen shows on. */
enum cli_picture_form { CLI_PICTURE_ASCII, CLI_PICTURE_HALF, CLI_PICTURE_CHAFA };

struct cli_picture {
    int columns, rows; /* in cells */
    uint8_t *rgb;      /* [rows * CLI_CELL_H][columns * CLI_CELL_W][3]; black */
};

/* A place on a sheet, in cells. */
struct cli_place {
    int column, row, columns, rows;
};

/* Makes an empty sheet, to be freed. ENOMEM. */
ET_NODISCARD et_status cli_picture_new(struct et_ctx *cx, int columns, int rows,
                                       struct cli_picture *out);
void cli_picture_free(struct et_ctx *cx, struct cli_picture *p);
/* Draws pixels RGB [H][W][3] at AT, as large as they fit there with square pixels:
 * averages of several where they shrink, the nearest one where they grow. */
void cli_picture_put(struct cli_picture *p, struct cli_place at, const uint8_t *rgb,
                     int64_t h, int64_t w);
/* Rows of a place of COLUMNS in which a picture of H x W pixels is as wide as it. */
int cli_picture_rows(int columns, int64_t h, int64_t w);
/* What standard output and the command line allow. */
enum cli_picture_form cli_picture_form(const struct cli *c);
/* Writes P to standard output, its lines ended. */
void cli_picture_print(const struct cli_picture *p, enum cli_picture_form form);
/* Writes two cells in that colour, as print shows it; nothing where pictures have no
 * colours. Returns the columns. */
int cli_picture_swatch(const uint8_t rgb[3], enum cli_picture_form form);

#endif
