/* compose_draw.c: the screen Compose at its sizes: what lies where.
 *
 *     small    one panel at a time
 *     80x24    algorithms or recipe | options with warnings, above the timeline
 *     full     recipe with the learning rate | algorithms, options | timeline, checks,
 *              difference; the command line below */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/compose/command.h"
#include "tui/compose.h"
#include "tui/format.h"

enum {
    LEFT = 35,       /* columns of the left panel at 80 */
    OPTIONS = 7,     /* lines of options and warnings there, the title included */
    FULL_LEFT = 48,  /* of the three at 200 */
    FULL_RIGHT = 92, /* so the middle has 58 */
    FULL_FOOT = 5,   /* command line, runs alike, with titles, and a rule */
    CURVE = 13,      /* lines of the learning rate */
};

/* ---- the line that says what is shown ---- */

static const char *
base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *
fault_text(const struct compose *c, char *buf, size_t size, enum tui_role *role)
{
    int faults = c->sketch->errors.total;
    *role = faults ? TUI_BAD : c->n_warnings ? TUI_WARN : TUI_GOOD;
    if (faults)
        snprintf(buf, size, "x %d fault%s", faults, faults == 1 ? "" : "s");
    else if (c->n_warnings)
        snprintf(buf, size, "valid, %d warning%s", c->n_warnings,
                 c->n_warnings == 1 ? "" : "s");
    else
        snprintf(buf, size, "valid");
    return buf;
}

static const char *
estimate_text(const struct compose *c, bool is_wide, char *buf, size_t size)
{
    const struct tui_compose_numbers *n = &c->numbers;
    const struct et_recipe *r = c->sketch->recipe;
    char a[TUI_NUMBER], b[TUI_NUMBER];
    long long ranks =
        r && r->launch.nproc != ET_INT_UNSET ? (long long)r->launch.nproc : 1;
    const char *where = ranks == 1 ? "1 rank" : "ranks";
    buf[0] = '\0';
    if (n->of != c->sketch->changes || c->estimate.pid > 0 || c->explain.pid > 0)
        snprintf(buf, size, "est ...");
    else if (!n->is_known)
        snprintf(buf, size, "est -");
    else if (n->batches <= 0)
        snprintf(buf, size, "est %s a batch", tui_ms(n->seconds * 1e3, a));
    else if (is_wide)
        snprintf(buf, size, "estimate: %s or more on %s   %s peak",
                 tui_duration(n->seconds * (double)n->batches, a), where,
                 tui_bytes(n->peak_bytes, b));
    else
        snprintf(buf, size, "est %s on %s",
                 tui_duration(n->seconds * (double)n->batches, a), where);
    return buf;
}

static void
draw_status(struct compose *c, const struct tui_pane *p)
{
    const struct eti_sketch *s = c->sketch;
    char text[240], faults[64];
    enum tui_role role;
    bool is_wide = p->w >= 180;
    int on = 0, x = 1;
    if (compose_is_empty(c)) {
        tui_put(p, 0, 1, TUI_TEXT, "no recipe yet");
        return;
    }
    for (int i = 0; i < c->n_methods; i++)
        on += eti_sketch_is_on(s, c->method[i].name);
    const char *name = s->path && is_wide ? s->path : base_of(s->name);
    int most = p->w - 50 > 28 ? p->w - 50 : 28;
    x += tui_put_n(p, 0, x, TUI_TITLE, 0, most, name, strlen(name));
    x += tui_put(p, 0, x, TUI_WARN, eti_sketch_is_changed(s) ? " *" : "  ") + 3;
    x += tui_put(p, 0, x, TUI_TEXT, eti_recipe_domain(eti_sketch_shown(s))) + 3;
    fault_text(c, faults, sizeof faults, &role);
    x += tui_put(p, 0, x, role, faults) + 3;
    if (is_wide)
        tui_putf(p, 0, x, TUI_TEXT, "%d algorithms: %d on", c->n_methods, on);
    if (eti_sketch_is_valid(s)) {
        estimate_text(c, is_wide, text, sizeof text);
        tui_put_end(p, 0, p->w - 1, TUI_TEXT, text);
    }
}

/* ---- panels ---- */

/* A border of P from the place that it usually has, between LOW and HIGH. */
static int
place(struct compose *c, const struct tui_pane *p, const struct tui_border *b)
{
    return tui_border_place(&c->app->borders, p, b);
}

static void
draw_border(const struct tui_pane *p, int y, int x, int h)
{
    for (int i = 0; i < h; i++)
        tui_put_ch(p, y + i, x, p->grid->glyphs->down, TUI_DIM, 0);
}

static void
draw_panel(struct compose *c, enum tui_compose_panel panel, const struct tui_pane *p)
{
    bool has_focus = c->focus == panel;
    if (!c->sketch->recipe && !compose_is_empty(c) && panel != TUI_C_TIMELINE) {
        compose_draw_text(c, p);
        return;
    }
    switch (panel) {
    case TUI_C_ALGORITHMS:
        compose_draw_algorithms(c, p, has_focus);
        break;
    case TUI_C_OPTIONS:
        compose_draw_options(c, p, has_focus);
        break;
    case TUI_C_TIMELINE:
        compose_draw_timeline(c, p, has_focus);
        break;
    default:
        compose_draw_recipe(c, p, has_focus);
    }
}

/* ---- 80x24 and up ---- */

static void
draw_normal(struct compose *c, const struct tui_pane *p)
{
    bool has_recipe = c->focus == TUI_C_RECIPE;
    bool is_broken = !c->sketch->recipe;
    int left = is_broken ? p->w * 5 / 8 : p->w >= 120 ? 48 : LEFT, h = p->h - 1;
    int options = OPTIONS + (p->h > 24 ? (p->h - 24) / 2 : 0);
    left = place(
        c, p,
        &(struct tui_border){"compose.left", false, left, 20, p->w - 30, 1, h - 1});
    options = place(c, p,
                    &(struct tui_border){"compose.options", true, 1 + options, 4, h - 4,
                                         left + 1, p->w - left - 1}) -
              1;
    const struct tui_pane one = tui_pane_part(p, 1, 0, h - 1, left);
    const struct tui_pane right = tui_pane_part(p, 1, left + 1, h - 1, p->w - left - 1);
    const struct tui_pane two = tui_pane_part(&right, 0, 0, options, right.w);
    const struct tui_pane three =
        tui_pane_part(&right, options, 0, right.h - options, right.w);
    const struct tui_pane rule = tui_pane_part(p, p->h - 1, 0, 1, p->w);
    draw_panel(c, has_recipe || is_broken ? TUI_C_RECIPE : TUI_C_ALGORITHMS, &one);
    draw_border(p, 1, left, h - 1);
    tui_put_ch(p, 1, left, p->grid->glyphs->tee, TUI_DIM, 0);
    tui_put_ch(p, 1 + options, left, p->grid->glyphs->down, TUI_DIM, 0);
    if (c->shows_diff) {
        compose_draw_diff(c, &right);
    } else {
        if (is_broken)
            compose_draw_algorithms(c, &two, false);
        else if (has_recipe && p->h > 24)
            compose_draw_curve(c, &two);
        else
            draw_panel(c, TUI_C_OPTIONS, &two);
        draw_panel(c, TUI_C_TIMELINE, &three);
    }
    tui_title(&rule, 0, "", false);
}

/* ---- 200x50 ---- */

static void
draw_command(struct compose *c, const struct tui_pane *p)
{
    struct eti_command command;
    char *text = NULL;
    tui_title(p, 0, "command line for this recipe   (y copies)", false);
    et_status status = eti_command_new(c->sketch, &command);
    if (status == ET_OK)
        status = eti_command_text(&command, "train", &text);
    if (status == ET_OK)
        tui_put(p, 1, 1, TUI_TEXT, text);
    else
        tui_put(p, 1, 1, TUI_DIM, et_error_get(c->sketch->cx)->message);
    et_error_clear(c->sketch->cx);
    et_free(c->sketch->cx, text);
    eti_command_release(&command);
    tui_title(p, 2, "like this recipe, already run", false);
    tui_put(p, 3, 1, *c->alike ? TUI_TEXT : TUI_DIM,
            *c->alike ? c->alike : "no run of a recipe of this name is known");
    tui_title(p, 4, "", false);
}

static void
draw_right(struct compose *c, const struct tui_pane *p)
{
    enum { TIMELINE = 27 };
    int h = place(
        c, p,
        &(struct tui_border){"compose.checks", true, TIMELINE, 4, p->h - 4, 0, p->w});
    const struct tui_pane one = tui_pane_part(p, 0, 0, h, p->w);
    const struct tui_pane two = tui_pane_part(p, h, 0, p->h - h, p->w);
    draw_panel(c, TUI_C_TIMELINE, &one);
    tui_title(&two, 0, "checks", false);
    const struct tui_pane list = tui_pane_part(&two, 1, 0, two.h - 1, two.w);
    int used = 1 + compose_draw_checks(c, &list, true);
    const struct tui_pane three = tui_pane_part(&two, used, 0, two.h - used, two.w);
    compose_draw_diff(c, &three);
}

static void
draw_full(struct compose *c, const struct tui_pane *p)
{
    int h = p->h - 1 - FULL_FOOT;
    int x = place(c, p,
                  &(struct tui_border){"compose.right", false, p->w - FULL_RIGHT - 1,
                                       70, p->w - 40, 1, h});
    int left = place(
        c, p, &(struct tui_border){"compose.left", false, FULL_LEFT, 30, x - 36, 1, h});
    int middle = x - left - 1;
    int n = c->n_methods + 1 < h - 8 ? c->n_methods + 1 : h - 8;
    n = place(c, p,
              &(struct tui_border){"compose.options", true, 1 + n, 5, h - 3, left + 1,
                                   middle}) -
        1;
    int top = place(
        c, p,
        &(struct tui_border){"compose.curve", true, 1 + h - CURVE, 6, h - 4, 0, left});
    const struct tui_pane recipe = tui_pane_part(p, 1, 0, top - 1, left);
    const struct tui_pane curve = tui_pane_part(p, top, 0, 1 + h - top, left);
    const struct tui_pane methods = tui_pane_part(p, 1, left + 1, n, middle);
    const struct tui_pane options = tui_pane_part(p, 1 + n, left + 1, h - n, middle);
    const struct tui_pane right = tui_pane_part(p, 1, x + 1, h, p->w - x - 1);
    const struct tui_pane foot = tui_pane_part(p, 1 + h, 0, FULL_FOOT, p->w);
    draw_panel(c, TUI_C_RECIPE, &recipe);
    compose_draw_curve(c, &curve);
    compose_draw_algorithms(c, &methods, c->focus == TUI_C_ALGORITHMS);
    compose_draw_options(c, &options, c->focus == TUI_C_OPTIONS);
    draw_right(c, &right);
    draw_border(p, 1, left, h);
    draw_border(p, 1, x, h);
    tui_put_ch(p, 1, left, p->grid->glyphs->tee, TUI_DIM, 0);
    tui_put_ch(p, 1, x, p->grid->glyphs->tee, TUI_DIM, 0);
    draw_command(c, &foot);
}

/* ---- all ---- */

static void
draw_one(struct compose *c, const struct tui_pane *p)
{
    const struct tui_pane all = tui_pane_part(p, 1, 0, p->h - 1, p->w);
    if (c->shows_diff)
        compose_draw_diff(c, &all);
    else
        draw_panel(c, c->focus, &all);
}

void
compose_draw(struct tui_app *app, void *self, const struct tui_pane *p)
{
    struct compose *c = self;
    enum tui_size size = tui_size_of(app->grid.rows, app->grid.cols);
    compose_refresh(c);
    memset(c->area, 0, sizeof c->area);
    draw_status(c, p);
    if (compose_is_empty(c)) {
        const struct tui_pane all = tui_pane_part(p, 1, 0, p->h - 1, p->w);
        compose_draw_start(c, &all);
    } else if (size == TUI_TINY) {
        return; /* the message line says the newest */
    } else if (size == TUI_SMALL || c->is_full) {
        draw_one(c, p);
    } else if (size == TUI_FULL) {
        draw_full(c, p);
    } else {
        draw_normal(c, p);
    }
}
