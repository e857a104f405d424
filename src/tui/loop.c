/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c: the workbench on a terminal: keys at once, all else ten times a second. */
#include "config.h"

#include "tui/app.h"

static const double FRAME = 0.1; /* seconds between frames that no key asked for */
static const double WORK = 0.02; /* of work between two looks at the keys */

/* All keys that there are. Was there one? */
static bool
read_keys(struct tui_app *app, struct tui_term *term)
{
    struct tui_mouse mouse;
    bool any = false;
    for (;;) {
        int key = tui_term_key(term, &mouse);
        if (key == TUI_K_NONE || app->leaves)
            return any;
        any = true;
        if (key == TUI_K_MOUSE)
            tui_app_mouse(app, &mouse);
        else if (key == TUI_K_PASTE)
            tui_app_paste(app, tui_term_pasted(term));
        else
            tui_app_key(app, key);
    }
}

static void
take_signals(struct tui_app *app, struct tui_term *term)
{
    int rows, cols;
    if (tui_term_suspends(term))
        tui_term_suspend(term);
    if (tui_term_leaves(term))
        app->leaves = true;
    tui_term_resized(term);
    tui_term_size(term, &rows, &cols); /* the flag can be lost while stopped */
    if (rows != app->grid.rows || cols != app->grid.cols)
        tui_app_resize(app, rows, cols);
}

static void
paint(struct tui_app *app, struct tui_term *term)
{
    tui_app_draw(app);
    tui_term_show(term, &app->grid);
}

int
tui_run(struct tui_app *app, struct tui_term *term)
{
    const char *notice = tui_term_notice(term);
    bool busy = false;
    app->term = term;
    if (notice)
        tui_say(app, TUI_WARN, "! %s", notice);
    take_signals(app, term);
    paint(app, term);
    for (double painted = tui_now(app); !app->leaves;) {
        tui_term_wait(term, busy ? 0 : painted + FRAME - tui_now(app), -1);
        take_signals(app, term);
        if (read_keys(app, term) && !app->leaves)
            paint(app, term); /* the answer to a key does not wait */
        bool due = tui_now(app) >= painted + FRAME;
        if (due)
            app->phase++;
        if (due || busy)
            busy = tui_app_tick(app, WORK);
        if (!due)
            continue;
        if (app->changed || tui_term_repaints(term))
            paint(app, term);
        painted = tui_now(app);
    }
    app->term = NULL;
    return app->exit;
}
