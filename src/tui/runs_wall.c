/* SPDX-License-Identifier: Apache-2.0 */
/* runs_wall.c: what takes the place of the list: all charts of the runs that are marked
 * (wall.h), and the data of one (samples.h). */
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

/* Starts "etude WORDS... RECIPE AFTER..." of the run's own recipe. */
static et_status
start_samples(void *owner, struct tui_job *job, const char *const *words,
              const char *const *after)
{
    struct runs *r = owner;
    const char *argument[32];
    char path[PATH_MAX + 32];
    int n = 0;
    snprintf(path, sizeof path, "%s/recipe.resolved.yaml",
             runs_fact(runs_selected(r), "directory"));
    for (; words[n] && n < 28; n++)
        argument[n] = words[n];
    argument[n++] = path;
    for (; *after && n < 31; after++)
        argument[n++] = *after;
    argument[n] = NULL;
    return tui_job_start(job, r->app->cx, argument, NULL, 0);
}

void
runs_open_samples(struct runs *r)
{
    tui_samples_open(&r->samples, r->app, runs_fact(runs_selected(r), "name"),
                     start_samples, r);
}
