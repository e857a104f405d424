/* SPDX-License-Identifier: Apache-2.0 */
/* Many runs: the first picture of Runs needs those that it shows, and stays as it is
 * while the others are read. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/unit/store.h"
#include "tui/runs.h"

enum { RUNS = 300, PAGE = ETI_INDEX_PAGE, LINES = 8 };

/* The lines of the list, in a buffer that is the next call's, too. */
static const char *
list_lines(void)
{
    static char text[LINES * 100];
    const char *at = picture;
    for (int i = 0; i < 4; i++)
        at = strchr(at, '\n') + 1;
    const char *end = at;
    for (int i = 0; i < LINES; i++)
        end = strchr(end, '\n') + 1;
    snprintf(text, sizeof text, "%.*s", (int)(end - at), at);
    return text;
}

static struct tui_app *
open_app(struct et_ctx *cx, struct eti_index *index)
{
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = tui_glyphs_of(ETI_PLOT_ASCII),
        .index = index,
        .first = TUI_IN_runs,
        .rows = 24,
        .cols = 80,
    };
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    picture_draw(app);
    return app;
}

/* Ticks until there is no more to do at once. Returns how many pictures had another
 * list than the first. */
static int
tick_all(struct tui_app *app)
{
    char first[LINES * 100];
    int changes = 0;
    snprintf(first, sizeof first, "%s", list_lines());
    do {
        tui_app_tick(app, 0.02);
        picture_draw(app);
        changes += strcmp(list_lines(), first) != 0;
    } while (app->has_more);
    return changes;
}

static struct eti_index_work
work_of(struct tui_app *app)
{
    const struct runs *r = tui_app_state(app, TUI_IN_runs);
    return *eti_index_get_work(r->index);
}

int
main(void)
{
    char directory[] = "pages-XXXXXX", state[4096];
    struct et_alloc_stats stats;
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0 ||
        !getcwd(state, sizeof state))
        bail("no directory for files");
    setenv("XDG_STATE_HOME", state, 1);
    store_runs(1, RUNS + 1);

    struct tui_app *app = open_app(cx, NULL);
    ok(strstr(picture, "n0300") != NULL, "the newest run is in the first picture");
    ok(strstr(picture, "64 of 300 runs   still reading") != NULL,
       "which says how many there are, and that they are being read");
    is_int(work_of(app).read, PAGE, "and needs a page of them, where nothing is kept");
    is_int(tick_all(app), 0, "its lines stay while the others are read");
    is_int(work_of(app).read, RUNS, "each of them once");
    ok(strstr(picture, "300 of 300 runs   sort: newest") != NULL,
       "until all are there");
    tui_app_free(&app);

    app = open_app(cx, NULL);
    struct eti_index_work work = work_of(app);
    is_int(work.read + work.stamps + work.folders, 0, "the next time no run is read");
    is_int(work.loaded, PAGE, "and a page is loaded for the first picture");
    ok(strstr(picture, "64 of 300 runs   still reading") != NULL, "which says so");
    for (int i = 0; i < 40; i++)
        tui_app_key(app, 'j');
    picture_draw(app);
    ok(strstr(picture, "> + n0260") != NULL, "one can move at once");
    is_int(tick_all(app), 0, "and what is under the cursor stays there");
    ok(strstr(picture, "300 of 300 runs   sort: newest") != NULL, "with all behind it");
    work = work_of(app);
    is_int(work.loaded, RUNS, "each is loaded once");
    is_int(work.looks, RUNS + 1, "and looked at once");
    struct runs *r = tui_app_state(app, TUI_IN_runs);
    r->read -= 60;
    (void)tick_all(app);
    is_int(work_of(app).looks, 2 * (RUNS + 1),
           "a minute later they are looked at again");
    is_int(work_of(app).loaded, RUNS, "but nothing is loaded that is as it was");
    store_run("new", RUNS + 1, "finished");
    store_date("runs", RUNS + 2);
    r->read -= 60;
    (void)tick_all(app);
    ok(strstr(picture, "301 of 301 runs") != NULL, "one that is new comes to them");
    ok(strstr(picture, "> + n0260") != NULL, "without moving the cursor from its run");
    is_int(work_of(app).read, 1, "and is all that is read");
    tui_app_free(&app);

    struct eti_index *index;
    if (eti_index_open(cx, NULL, &index) != ET_OK ||
        eti_index_look(index, "runs", false) != ET_OK)
        bail("no index");
    int64_t looks = eti_index_get_work(index)->looks;
    app = open_app(cx, index);
    is_int(work_of(app).looks, looks,
           "a list that was just looked at is shown as it is");
    (void)tick_all(app);
    is_int(work_of(app).looks, RUNS + 2, "and the look goes on where it was");
    tui_app_free(&app);
    eti_index_close(&index);

    free(picture);
    if (chdir("..") != 0)
        bail("cannot leave");
    store_remove(directory);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
