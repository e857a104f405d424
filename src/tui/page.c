/* SPDX-License-Identifier: Apache-2.0 */
/* page.c: see page.h. */
#include "config.h"

#include "tui/page.h"

#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "tui/format.h"

static void
put_way(struct tui_app *app, const struct tui_pane *p, int y, const struct tui_way *way,
        bool first)
{
    char key[TUI_KEY_TEXT] = "";
    const struct tui_binding *b = tui_binding_of(way->action);
    if (first)
        tui_put_ch(p, y, 1, p->grid->glyphs->selected, TUI_MARK, 0);
    if (b)
        tui_binding_key(&app->config.keys, b, key);
    int x = 3 + tui_put(p, y, 3, TUI_KEY, way->how ? way->how : key) + 2;
    x += tui_put(p, y, x < 6 ? 6 : x, TUI_TEXT, way->text);
    if (b)
        tui_add_spot(app, p->y + y, p->x + 1, x, way->action);
}

void
tui_page_draw(struct tui_app *app, const struct tui_pane *p, int y, enum tui_role role,
              const char *what, const char *why, const struct tui_way *way, int n)
{
    tui_put(p, y, 1, role, what);
    if (*why)
        tui_put(p, y + 1, 1, TUI_TEXT, why);
    y += *why ? 3 : 2;
    for (int i = 0; i < n && y + i < p->h; i++)
        put_way(app, p, y + i, &way[i], i == 0);
}

/* ---- of the run that is watched ---- */

static void
draw_none(struct tui_app *app, const struct tui_pane *p)
{
    static const struct tui_way ways[] = {
        {TUI_DO_everywhere_compose, NULL, "compose and launch one"},
        {TUI_DO_everywhere_runs, NULL, "open one that there was: enter watches it"},
        {TUI_DO_everywhere_workers, NULL, "attach to another machine"},
    };
    tui_page_draw(app, p, 1, TUI_STRONG, "No run is watched.", "", ways, 3);
    if (app->config.recent)
        tui_put(p, 7, 1, TUI_DIM, app->config.recent);
}

/* Why the other side refuses, and what can be done there or here. */
static void
draw_refusal(struct tui_app *app, const struct tui_pane *p)
{
    static const struct tui_way other_run[] = {
        {TUI_DO_everywhere_workers, NULL,
         "enter on the worker lists the runs that it has"},
        {TUI_DO_everywhere_runs, NULL, "the runs of this machine"},
    };
    static const struct tui_way key[] = {
        {TUI_DO_nothing, "etude worker key", "here prints the key of this machine"},
        {TUI_DO_nothing, "etude worker allow KEY",
         "there lets it in; then R tries again"},
        {TUI_DO_everywhere_workers, NULL,
         "k shows this machine's key and the one of the host"},
    };
    static const struct tui_way version[] = {
        {TUI_DO_nothing, "etude version",
         "here and there: the older one is to be updated"},
        {TUI_DO_everywhere_workers, NULL, "the workers, with their versions"},
    };
    static const struct tui_way other[] = {
        {TUI_DO_everywhere_retry, NULL, "try again"},
        {TUI_DO_everywhere_workers, NULL, "t tests the worker"},
    };
    static const struct {
        const char *code;
        const struct tui_way *way;
        int n;
    } known[] = {
        {"NO_RUN", other_run, 2},
        {"KEY", key, 3},
        {"VERSION", version, 2},
        {"", other, 2},
    };
    const struct tui_source *s = app->source;
    char what[ETI_FACT_TEXT + 32], fact[ETI_FACT_TEXT];
    const char *name = eti_facts_get(s->facts, "name", fact);
    int i = 0;
    while (*known[i].code && strcmp(known[i].code, s->code) != 0)
        i++;
    snprintf(what, sizeof what, "%s cannot be shown.", name ? name : "The run");
    tui_page_draw(app, p, 1, TUI_STRONG, what, s->problem, known[i].way, known[i].n);
}

static void
draw_waiting(struct tui_app *app, const struct tui_pane *p)
{
    static const struct tui_way ways[] = {
        {TUI_DO_everywhere_retry, NULL, "try at once"},
        {TUI_DO_everywhere_workers, NULL, "the workers: t tests one"},
    };
    const struct tui_source *s = app->source;
    char what[ETI_FACT_TEXT + 64], why[ETD_TEXT + 64], fact[ETI_FACT_TEXT];
    const char *name = eti_facts_get(s->facts, "name", fact);
    int64_t done, all;
    double left = s->retry - tui_now(app);
    s->class->progress(s, &done, &all);
    snprintf(what, sizeof what, "%s has not answered yet.", name ? name : "The worker");
    if (all > 0)
        snprintf(why, sizeof why, "Its history comes: %.0f%% of it are here.",
                 100.0 * (double)done / (double)all);
    else if (*s->code)
        snprintf(why, sizeof why, "%s; it is tried again in %.0f s", s->said,
                 left > 0 ? left : 0);
    else
        snprintf(why, sizeof why, "connecting, %.0f s", tui_now(app) - s->heard);
    tui_page_draw(app, p, 1, TUI_STRONG, what, why, ways, 2);
}

bool
tui_page_of_run(struct tui_app *app, const struct tui_pane *p)
{
    const struct tui_source *s = app->source;
    if (!s)
        draw_none(app, p);
    else if (s->is_refused && s->model->seq == 0)
        draw_refusal(app, p);
    else if (s->link == TUI_LINK_CONNECTING && s->model->seq == 0)
        draw_waiting(app, p);
    else
        return false;
    return true;
}
