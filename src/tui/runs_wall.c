/* SPDX-License-Identifier: Apache-2.0 */
/* runs_wall.c: all charts of the runs that are marked: see wall.h. */
#include "config.h"

#include "tui/runs.h"

static void
wall_add(struct runs *r, const json_t *facts)
{
    struct tui_source *source;
    if (tui_source_dir(r->app->cx, json_copy((json_t *)facts), &source) != ET_OK)
        tui_say_error(r->app);
    else
        (void)tui_wall_add(&r->wall, source, true);
}

void
runs_open_wall(struct runs *r)
{
    json_t *facts;
    size_t i;
    if (tui_wall_open(&r->wall, r->app) != ET_OK) {
        tui_say_error(r->app);
        return;
    }
    json_array_foreach(r->all, i, facts)
    {
        if (runs_is_marked(r, facts))
            wall_add(r, facts);
    }
    if (runs_n_marked(r) == 0)
        wall_add(r, runs_selected(r));
    if (r->wall.n_runs == 0)
        tui_wall_close(&r->wall);
}
