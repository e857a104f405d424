/* SPDX-License-Identifier: Apache-2.0 */
/* drawn.c: see drawn.h. */
#include "config.h"

#include "t/tui/drawn.h"

#include <stdio.h>
#include <stdlib.h>

#include "t/tap.h"

char *
drawn_text(struct et_ctx *cx, const struct tui_plot *plot, enum eti_plot glyphs,
           int rows, int cols)
{
    struct tui_grid g;
    char *text = NULL;
    size_t n;
    if (tui_grid_init(&g, cx, tui_glyphs_of(glyphs), rows, cols) != ET_OK)
        bail("no memory");
    struct tui_pane all = tui_pane_of(&g);
    tui_plot_draw(&all, plot, NULL);
    FILE *f = open_memstream(&text, &n);
    tui_grid_print(&g, f);
    fclose(f);
    tui_grid_release(&g);
    return text;
}

void
drawn_is(struct et_ctx *cx, const struct tui_plot *plot, enum eti_plot glyphs, int rows,
         int cols, const char *want, const char *name)
{
    char *text = drawn_text(cx, plot, glyphs, rows, cols);
    if (!is_str(text, want, "%s", name))
        diag("\n%s", text);
    free(text);
}

struct tui_point
drawn_point(double x, double v)
{
    return (struct tui_point){.x = x, .min = v, .max = v, .last = v};
}
