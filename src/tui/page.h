/* SPDX-License-Identifier: Apache-2.0 */
/* page.h: a page that stands where a screen has nothing of a run to show: one sentence
 * what, one why, and the keys that lead on. VISUAL section 5. */
#ifndef TUI_PAGE_H
#define TUI_PAGE_H

#include "tui/app.h"

struct tui_way {
    enum tui_action action; /* its key stands in front; TUI_DO_nothing: HOW does */
    const char *how;        /* a command for a shell; NULL */
    const char *text;
};
/* Draws it from line Y of P on: the first way is marked as the likeliest. A click on a
 * way does it. */
void tui_page_draw(struct tui_app *app, const struct tui_pane *p, int y,
                   enum tui_role role, const char *what, const char *why,
                   const struct tui_way *way, int n);

/* The page of a run that is not watched, and of one that the other side refuses or that
 * has not answered yet. False: there is something of the run to show, and nothing was
 * drawn. */
bool tui_page_of_run(struct tui_app *app, const struct tui_pane *p);

#endif
