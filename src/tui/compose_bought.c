/* SPDX-License-Identifier: Apache-2.0 */
/* compose_bought.c: what each method of the recipe bought: the runs of it beside those
 * without one method, which `etude sweep --leave-one-out` makes. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/compose.h"
#include "tui/format.h"

/* What the runs of the recipe tell of the methods that are on in it now. */
static const struct eti_ablation *
bought(struct compose *c)
{
    const struct et_recipe *r = eti_sketch_shown(c->sketch);
    const char *name[ETI_ABLATION_METHODS];
    int n = 0;
    if (c->bought_of == c->sketch->changes)
        return &c->bought;
    for (int i = 0; r && i < r->algorithms.n && n < ETI_ABLATION_METHODS; i++)
        if (r->algorithms.v[i].component && !r->algorithms.v[i].off)
            name[n++] = r->algorithms.v[i].component->name;
    eti_ablation_find(c->runs_alike, name, n, &c->bought);
    c->bought_of = c->sketch->changes;
    return &c->bought;
}

static bool
is_on(const struct compose *c, const struct eti_method *method)
{
    const struct et_recipe *r = eti_sketch_shown(c->sketch);
    for (int i = 0; r && i < r->algorithms.n; i++)
        if (r->algorithms.v[i].component && !r->algorithms.v[i].off &&
            strcmp(r->algorithms.v[i].component->name, method->name) == 0)
            return true;
    return false;
}

static const char *
leaf_of(const char *metric)
{
    const char *slash = strrchr(metric, '/');
    return slash ? slash + 1 : metric;
}

/* "+0.0537", "-0.0411": how much more WITHOUT has; green where the method is what made
 * it better. */
static int
put_more(const struct tui_pane *p, int y, int x, const struct eti_ablation *a,
         const struct eti_ablation_runs *without)
{
    const double more = without->value - a->with.value;
    const bool is_worse = more != 0 && (more > 0) == a->less;
    return tui_putf(p, y, x,
                    is_worse    ? TUI_GOOD
                    : more != 0 ? TUI_WARN
                                : TUI_DIM,
                    "%+.3g", more);
}

/* "x1.04": how much longer it takes without. */
static int
put_time(const struct tui_pane *p, int y, int x, const struct eti_ablation *a,
         const struct eti_ablation_runs *without)
{
    const double of = without->seconds / a->with.seconds;
    return isfinite(of) ? tui_putf(p, y, x, TUI_TEXT, "x%.2f", of)
                        : tui_put(p, y, x, TUI_DIM, "-");
}

int
compose_draw_bought(struct compose *c, const struct tui_pane *p, int y,
                    const struct eti_method *method)
{
    const struct eti_ablation *a = bought(c);
    const struct eti_ablation_runs *without = eti_ablation_of(a, method->name);
    char value[TUI_NUMBER];
    int x = 1;
    if (!is_on(c, method) || !c->runs_alike)
        return 0;
    if (!without)
        return tui_put_wrapped(p, y, 1, p->w - 2, TUI_DIM,
                               "what it buys is not known: etude sweep "
                               "--leave-one-out trains without it");
    x += tui_put(p, y, x, TUI_LABEL, "without it") + 1;
    x += tui_putf(p, y, x, TUI_TEXT, "%.16s %s", leaf_of(a->metric),
                  tui_value(without->value, value)) +
         1;
    x += put_more(p, y, x, a, without) + 2;
    if (x + 16 > p->w) {
        x = 12;
        tui_put(p, ++y, x, TUI_LABEL, "time ");
        put_time(p, y, x + 5, a, without);
        return 2;
    }
    x += tui_put(p, y, x, TUI_LABEL, "time ");
    put_time(p, y, x, a, without);
    return 1;
}

int
compose_draw_all_bought(struct compose *c, const struct tui_pane *p, int y)
{
    enum { NAME = 21, VALUE = 9, MORE = 9 };
    const struct eti_ablation *a = bought(c);
    const int from = y;
    char value[TUI_NUMBER], title[96];
    if (!c->runs_alike || c->n_on == 0)
        return 0;
    tui_title(p, y++, "what each bought", false);
    if (a->n == 0)
        return 1 + tui_put_wrapped(p, y, 1, p->w - 2, TUI_DIM,
                                   "no run of this recipe lacks one of them: etude "
                                   "sweep RECIPE --leave-one-out makes such runs");
    snprintf(title, sizeof title, "%.20s, more, time", leaf_of(a->metric));
    tui_put(p, y, 1, TUI_LABEL, "without");
    tui_put(p, y++, 1 + NAME, TUI_LABEL, title);
    tui_put(p, y, 1, TUI_TEXT, "none of them: all on");
    tui_put(p, y++, 1 + NAME, TUI_STRONG, tui_value(a->with.value, value));
    for (int i = 0; i < a->n && y < p->h; i++, y++) {
        const struct eti_ablation_runs *without = &a->method[i].without;
        compose_put_cut(p, y, 1, TUI_TEXT, NAME - 1, a->method[i].name);
        tui_put(p, y, 1 + NAME, TUI_TEXT, tui_value(without->value, value));
        put_more(p, y, 1 + NAME + VALUE, a, without);
        put_time(p, y, 1 + NAME + VALUE + MORE, a, without);
    }
    if (y < p->h)
        y += tui_put_wrapped(p, y, 1, p->w - 2, TUI_DIM,
                             a->with.n > 1 ? "medians of runs that differ by their seed"
                                           : "one run each: seeds differ, too");
    return y - from;
}
