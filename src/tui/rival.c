/* SPDX-License-Identifier: Apache-2.0 */
/* rival.c: see rival.h. */
#include "config.h"

#include <stdio.h>

#include "core/library/earlier.h"
#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/rival.h"

static const double SLICE = 0.02; /* seconds of a tick that its history may take */
enum { MARK = TUI_SERIES - 2, DASH = 3 };

void
tui_rival_forget(struct tui_rival *r)
{
    tui_source_free(&r->source);
    *r = (struct tui_rival){0};
}

static void
seek(struct et_ctx *cx, struct tui_rival *r, const json_t *facts)
{
    struct eti_earlier found;
    char fact[ETI_FACT_TEXT], label[ET_METRIC_NAME], value[TUI_NUMBER];
    json_t *list = eti_earlier_list(cx, facts);
    r->is_sought = true;
    eti_earlier_find(list, facts, NULL, &found);
    /* (Its facts are the index's; a source changes its own.) */
    if (found.facts &&
        tui_source_dir(cx, json_copy((json_t *)found.facts), &r->source) != ET_OK)
        et_error_clear(cx); /* it was thrown away meanwhile: charts do without */
    if (r->source) {
        const char *name = eti_facts_get(found.facts, "name", fact);
        snprintf(r->name, sizeof r->name, "%.63s", name ? name : "-");
        snprintf(r->text, sizeof r->text, "%.60s, best of %d earlier run%s: %.40s %s",
                 name ? name : "-", found.n, found.n == 1 ? "" : "s",
                 tui_metric_label(found.metric, label),
                 tui_metric_value(found.metric, found.best, value));
    }
    json_decref(list);
}

bool
tui_rival_tick(struct tui_app *app, struct tui_rival *r, const json_t *facts)
{
    int64_t done, all;
    const bool was_sought = r->is_sought;
    if (!was_sought)
        seek(app->cx, r, facts);
    if (!r->source)
        return false;
    r->source->class->progress(r->source, &done, &all);
    if (done < all && r->source->class->advance(r->source, SLICE, 0)) {
        app->has_more = true;
        return true;
    }
    return !was_sought;
}

bool
tui_rival_line(const struct tui_rival *r, const char *name, enum tui_axis axis,
               int smooth, const struct tui_glyphs *g, struct tui_point *point,
               struct tui_plot_line *out)
{
    const struct etd_series *s =
        r->source ? etd_model_series(r->source->model, name) : NULL;
    if (!s)
        return false;
    const struct tui_metric_look look = tui_metric_look(name);
    const struct tui_across across = {r->source->model, axis, true};
    const double weight = tui_series_weight(s, smooth);
    const int n = tui_series_points(&across, s, &look, point);
    const double reach = look.can_burst ? tui_plot_reach(point, n, 0) : 0;
    tui_plot_smooth(point, n, weight, reach);
    *out = (struct tui_plot_line){
        .point = point,
        .n = n,
        .role = TUI_OFF,
        .mark = g->series[MARK],
        .kind = TUI_PLOT_LAST,
        .dash = DASH,
        .reach = reach,
    };
    return n > 0;
}

void
tui_rival_sample(const struct tui_pane *p, int y, int x)
{
    tui_plot_sample(p, y, x, TUI_OFF, p->grid->glyphs->series[MARK], DASH);
}
