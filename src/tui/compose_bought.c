/* SPDX-License-Identifier: Apache-2.0 */
/* compose_bought.c: what each method of the recipe bought: the runs of it beside those
 * without one method, which `etude sweep --leave-one-out` makes. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "tui/compose.h"
#include "tui/format.h"
#include "tui/glyphs.h"

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
    eti_ablation_find(c->runs_alike, compose_settings(c), name, n, &c->bought);
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
    enum { CHANGE = 22 }; /* columns: "-0.00781  time x0.99 " */
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
    const bool has_room = x + CHANGE <= p->w;
    if (!has_room) {
        x = 12;
        y++;
    }
    x += put_more(p, y, x, a, without) + 2;
    x += tui_put(p, y, x, TUI_LABEL, "time ");
    put_time(p, y, x, a, without);
    return has_room ? 1 : 2;
}

/* ---- all of them ---- */

/* Where the columns of the table are, in a panel of some width; 0: there is no room. */
struct columns {
    int name, value, more, time, bar; /* NAME: its width */
};

static struct columns
columns_of(int w)
{
    enum { VALUE = 8, MORE = 9, TIME = 7, LEAST_BAR = 6, NARROW = 15, WIDE = 21 };
    struct columns c = {.name = w < 54 ? NARROW : WIDE};
    int x = 1 + c.name + 1;
    if (w >= 54) {
        c.value = x;
        x += VALUE;
    }
    c.more = x;
    c.time = x + MORE;
    x = c.time + TIME;
    c.bar = w - x - 1 >= LEAST_BAR ? x : 0;
    return c;
}

/* What leaving it out makes worse: what the method bought. */
static double
gain_of(const struct eti_ablation *a, int i)
{
    const double more = a->method[i].without.value - a->with.value;
    return a->less ? more : -more;
}

/* The methods by what they bought, the most first, in ORDER. */
static void
sort_by_gain(const struct eti_ablation *a, int order[ETI_ABLATION_METHODS])
{
    for (int i = 0; i < a->n; i++) {
        int at = i;
        for (; at > 0 && gain_of(a, order[at - 1]) < gain_of(a, i); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* How much a method bought as a part of the MOST that one did or cost: a bar; of one
 * that made it worse, a line. */
static void
put_gain(const struct tui_pane *p, int y, int x, double gain, double most)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    const int room = p->w - 1 - x;
    const double length = most > 0 ? fabs(gain) / most * room : 0;
    for (int i = 0; i < room && i < length; i++) {
        const int eighths = length - i < 1 && !g->is_ascii
                                ? (int)ceil((length - i) * TUI_EIGHTHS)
                                : TUI_EIGHTHS;
        tui_put_ch(p, y, x + i, gain > 0 ? g->gauge[eighths] : g->across,
                   gain > 0 ? TUI_GOOD : TUI_WARN, 0);
    }
}

static void
put_row(const struct tui_pane *p, int y, const struct columns *c,
        const struct eti_ablation *a, int i, double most)
{
    const struct eti_ablation_runs *without = &a->method[i].without;
    char value[TUI_NUMBER];
    compose_put_cut(p, y, 1, TUI_TEXT, c->name, a->method[i].name);
    if (c->value)
        tui_put(p, y, c->value, TUI_TEXT, tui_value(without->value, value));
    put_more(p, y, c->more, a, without);
    put_time(p, y, c->time, a, without);
    if (c->bar)
        put_gain(p, y, c->bar, gain_of(a, i), most);
}

static void
put_head(const struct tui_pane *p, int y, const struct columns *c)
{
    tui_put(p, y, 1, TUI_LABEL, "without");
    if (c->value)
        tui_put(p, y, c->value, TUI_LABEL, "it is");
    tui_put(p, y, c->more, TUI_LABEL, "more");
    tui_put(p, y, c->time, TUI_LABEL, "time");
    if (c->bar)
        tui_put_cut(p, y, c->bar, p->w - 1, TUI_LABEL, "bought");
}

/* Which runs these are, and how far they are from the recipe. */
static int
put_source(const struct tui_pane *p, int y, const struct eti_ablation *a)
{
    char text[240];
    const char *which = a->with.n > 1 ? "medians of runs that differ by their seed"
                                      : "one run each: another seed differs, too";
    size_t n = (size_t)snprintf(text, sizeof text, "%s", which);
    if (a->n_differ > 0)
        snprintf(text + n, sizeof text - n, "; not as the recipe: %s%s", a->differs,
                 a->n_differ > 1 ? " and more" : "");
    return tui_put_wrapped(p, y, 1, p->w - 2, TUI_DIM, text);
}

/* How one comes to know. */
static int
put_way(const struct compose *c, const struct tui_pane *p, int y)
{
    char text[240];
    const char *path = c->sketch->path ? c->sketch->path : "RECIPE";
    const char *slash = strrchr(path, '/');
    snprintf(text, sizeof text,
             "not known yet: etude sweep %.60s --leave-one-out trains the recipe, and "
             "the same without each of them",
             slash ? slash + 1 : path);
    return tui_put_wrapped(p, y, 1, p->w - 2, TUI_DIM, text);
}

int
compose_draw_all_bought(struct compose *c, const struct tui_pane *p, int y)
{
    const struct eti_ablation *a = bought(c);
    const struct columns at = columns_of(p->w);
    int order[ETI_ABLATION_METHODS];
    const int from = y;
    char value[TUI_NUMBER];
    if (c->n_on == 0)
        return 0;
    tui_title(p, y++, "what each bought", false);
    if (a->n == 0)
        return 1 + put_way(c, p, y);
    sort_by_gain(a, order);
    const double most =
        fmax(fabs(gain_of(a, order[0])), fabs(gain_of(a, order[a->n - 1])));
    const int x =
        1 + tui_putf(p, y, 1, TUI_TEXT, "%.20s with all: ", leaf_of(a->metric));
    tui_put(p, y++, x, TUI_STRONG, tui_value(a->with.value, value));
    put_head(p, y++, &at);
    for (int i = 0; i < a->n && y < p->h; i++, y++)
        put_row(p, y, &at, a, order[i], most);
    if (y < p->h)
        y += put_source(p, y, a);
    return y - from;
}
