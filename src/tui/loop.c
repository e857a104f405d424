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
    app->term = term;
    if (notice)
        tui_say(app, TUI_WARN, "! %s", notice);
    take_signals(app, term);
    paint(app, term);
    double painted = tui_now(app);
    while (!app->leaves) {
        double due = painted + FRAME - tui_now(app);
        tui_term_wait(term, due, -1);
        take_signals(app, term);
        bool any = read_keys(app, term);
        if (any && !app->leaves)
            paint(app, term); /* the answer to a key does not wait */
        if (tui_now(app) < painted + FRAME)
            continue;
        app->phase++;
        tui_app_tick(app, WORK);
        if (app->changed)
            paint(app, term);
        painted = tui_now(app);
    }
    app->term = NULL;
    return app->exit;
}
