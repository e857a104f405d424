/* SPDX-License-Identifier: Apache-2.0 */
/* dump.c: a screen as text: what --dump-screen prints, and what tests compare. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tui/app.h"

static const double PATIENCE = 60; /* seconds for a hub that does not answer */

bool
tui_size_read(const char *text, int *rows, int *cols, bool *roles)
{
    int end = 0;
    if (sscanf(text, "%3dx%3d%n", cols, rows, &end) != 2)
        return false;
    *roles = strcmp(text + end, "+roles") == 0;
    return (!text[end] || *roles) && *rows >= 1 && *rows <= 500 && *cols >= 1 &&
           *cols <= 500;
}

/* All of the run's records that there are now, or those up to the one of the seq UNTIL;
 * and what it was asked for. */
static void
take_in(struct tui_app *app, int64_t until)
{
    const struct timespec pause = {0, 10000000};
    struct tui_source *source = app->source;
    double end = tui_now(app) + PATIENCE;
    int64_t done, all, now;
    bool changed = source != NULL;
    if (source)
        source->class->progress(source, &done, &all);
    while (changed || (source && tui_now(app) < end && source->class->waits &&
                       source->class->waits(source))) {
        if (!changed)
            nanosleep(&pause, NULL);
        changed = source->class->advance(source, 1, until);
        source->class->progress(source, &done, &now);
        /* One that goes on always has something new. */
        changed = changed && done < all && source->link != TUI_LINK_LOST;
    }
    tui_app_listen(app);
}

static void
work(struct tui_app *app)
{
    (void)tui_palette_tick(app);
    for (int i = 0; i < TUI_SCREENS; i++)
        while (app->state[i] && app->screen[i]->tick &&
               app->screen[i]->tick(app, app->state[i]))
            continue;
}

/* Until there is nothing to do; what a screen has asked the run for is waited for. */
static void
settle(struct tui_app *app, int64_t until)
{
    const struct tui_source *s;
    work(app);
    s = app->source;
    if (s && s->class->waits && s->class->waits(s)) {
        take_in(app, until);
        work(app);
    }
}

et_status
tui_dump_screen(struct tui_app *app, const struct tui_dump *dump, FILE *out)
{
    struct tui_source *source = app->source;
    take_in(app, dump->at);
    if (source && *source->problem && !source->is_refused)
        return ET_FAIL(app->cx, ET_EFORMAT, "%s", source->problem);
    if (source && dump->at > source->model->seq)
        return ET_FAIL(app->cx, ET_EINVAL,
                       "--at %" PRId64 ": the run has %" PRId64 " records", dump->at,
                       source->model->seq);
    for (const char *at = dump->keys ? dump->keys : ""; !app->leaves;) {
        settle(app, app->source == source ? dump->at : 0);
        tui_app_draw(app);
        int key = tui_keys_next(&at);
        if (key < 0)
            return ET_FAIL(app->cx, ET_EINVAL, "--keys: no key begins at '%.20s'", at);
        if (key == TUI_K_NONE)
            break;
        tui_app_key(app, key);
        if (app->source && (app->source != source || app->source->asked > 0))
            take_in(app, app->source == source ? dump->at : 0);
        source = app->source;
    }
    settle(app, app->source == source ? dump->at : 0);
    tui_app_draw(app);
    tui_grid_print(&app->grid, out);
    if (dump->roles) {
        fputs("roles:\n", out);
        tui_grid_print_roles(&app->grid, out);
    }
    return ET_OK;
}
