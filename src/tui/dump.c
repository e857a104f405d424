/* dump.c: a screen as text: what --dump-screen prints, and what tests compare. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tui/app.h"

static const double PATIENCE = 10; /* seconds for a hub that does not answer */

bool
tui_size_read(const char *text, int *rows, int *cols)
{
    int end = 0;
    return sscanf(text, "%3dx%3d%n", cols, rows, &end) == 2 && !text[end] &&
           *rows >= 1 && *rows <= 500 && *cols >= 1 && *cols <= 500;
}

/* All of the run's records, or those up to the one of the seq UNTIL. */
static void
take_in(struct tui_app *app, struct tui_source *source, int64_t until)
{
    const struct timespec pause = {0, 10000000};
    double end = tui_now(app) + PATIENCE;
    for (;;) {
        if (source->class->advance(source, 1, until) && source->link != TUI_LINK_LOST)
            continue;
        if (!source->class->waits || !source->class->waits(source) ||
            tui_now(app) > end)
            return;
        nanosleep(&pause, NULL);
    }
}

static void
settle(struct tui_app *app)
{
    for (int i = 0; i < TUI_SCREENS; i++)
        while (app->state[i] && app->screen[i]->tick &&
               app->screen[i]->tick(app, app->state[i]))
            continue;
}

et_status
tui_dump_screen(struct tui_app *app, const struct tui_dump *dump, FILE *out)
{
    struct tui_source *source = app->source;
    if (source)
        take_in(app, source, dump->at);
    if (source && *source->problem)
        return ET_FAIL(app->cx, ET_EFORMAT, "%s", source->problem);
    if (source && dump->at > source->model->seq)
        return ET_FAIL(app->cx, ET_EINVAL,
                       "--at %" PRId64 ": the run has %" PRId64 " records", dump->at,
                       source->model->seq);
    for (const char *at = dump->keys ? dump->keys : ""; !app->leaves;) {
        settle(app);
        tui_app_draw(app);
        int key = tui_keys_next(&at);
        if (key < 0)
            return ET_FAIL(app->cx, ET_EINVAL, "--keys: no key begins at '%.20s'", at);
        if (key == TUI_K_NONE)
            break;
        tui_app_key(app, key);
    }
    settle(app);
    tui_app_draw(app);
    tui_grid_print(&app->grid, out);
    return ET_OK;
}
