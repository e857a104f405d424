/* SPDX-License-Identifier: Apache-2.0 */
/* compose_draw.c: the screen Compose at its sizes: what lies where.
 *
 *     small    one panel at a time
 *     80x24    recipe, with the algorithms in it | what is selected, the learning rate,
 *              checks, changes; the timeline takes their place
 *     100x30   recipe | algorithms above the same
 *     120x36   recipe | algorithms | the same
 *     full     recipe with the learning rate | algorithms, what is selected | timeline,
 *              checks, difference; the command line below */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/compose/command.h"
#include "tui/compose.h"
#include "tui/format.h"

enum {
    NARROW_LEFT = 45, /* columns of the recipe below 100, and from there on */
    LEFT = 44,
    METHODS = 34,    /* of the algorithms beside it */
    FULL_LEFT = 48,  /* of the three at 200 */
    FULL_RIGHT = 92, /* so the middle has 58 */
    FULL_FOOT = 5,   /* command line, runs alike, with titles, and a rule */
    CURVE = 13,      /* lines of the learning rate, at most and at least */
    CURVE_LEAST = 5,
    FEW_CHECKS = 4, /* lines of checks that come before the learning rate */
};

/* ---- the line that says what is shown ---- */

static const char *
base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "+ valid", and its colour. */
static const char *
fault_text(const struct compose *c, char *buf, size_t size, enum tui_role *role)
{
    int faults = c->sketch->errors.total;
    bool fails = compose_is_refused(c);
    *role = faults || fails ? TUI_BAD : c->n_warnings ? TUI_WARN : TUI_GOOD;
    if (!faults && !compose_is_estimated(c)) {
        *role = TUI_DIM;
        snprintf(buf, size, "checking...");
    } else if (faults) {
        snprintf(buf, size, "x %d fault%s", faults, faults == 1 ? "" : "s");
    } else if (fails) {
        snprintf(buf, size, "x cannot start");
    } else if (c->n_warnings) {
        snprintf(buf, size, "! valid, %d warning%s", c->n_warnings,
                 c->n_warnings == 1 ? "" : "s");
    } else {
        snprintf(buf, size, "+ valid");
    }
    return buf;
}

/* "est 37s  24 MB  1 rank". */
static const char *
estimate_text(const struct compose *c, char *buf, size_t size)
{
    const struct tui_compose_numbers *n = &c->numbers;
    const struct et_recipe *r = c->sketch->recipe;
    char a[TUI_NUMBER], b[TUI_NUMBER], ranks[32];
    long long of =
        r && r->launch.nproc != ET_INT_UNSET ? (long long)r->launch.nproc : 1;
    snprintf(ranks, sizeof ranks, "%lld rank%s", of, of == 1 ? "" : "s");
    buf[0] = '\0';
    if (n->of != c->sketch->changes || c->estimate.pid > 0 || c->explain.pid > 0)
        snprintf(buf, size, "est ...");
    else if (!n->is_known)
        snprintf(buf, size, "est -  %s", ranks);
    else if (n->batches <= 0)
        snprintf(buf, size, "est %s a batch  %s  %s", tui_ms(n->seconds * 1e3, a),
                 tui_bytes(n->peak_bytes, b), ranks);
    else
        snprintf(buf, size, "est %s  %s  %s",
                 tui_duration(n->seconds * (double)n->batches, a),
                 tui_bytes(n->peak_bytes, b), ranks);
    return buf;
}

static void
draw_status(struct compose *c, const struct tui_pane *p)
{
    const struct eti_sketch *s = c->sketch;
    enum { NAME = 8 }; /* columns of a name that is cut */
    char text[240], faults[64], estimate[240];
    enum tui_role role;
    bool is_wide = p->w >= 180;
    int x = 1, end = p->w - 1;
    if (compose_is_empty(c)) {
        tui_put(p, 0, 1, TUI_TEXT, "no recipe yet");
        return;
    }
    const char *name = s->path && is_wide ? s->path : base_of(s->name);
    fault_text(c, faults, sizeof faults, &role);
    if (eti_sketch_is_changed(s) && c->n_changes > 0)
        snprintf(text, sizeof text, " *%d unsaved", c->n_changes);
    else
        snprintf(text, sizeof text, "%s", eti_sketch_is_changed(s) ? " * unsaved" : "");
    int rest = tui_width(text) + tui_width(faults) + 6;
    estimate_text(c, estimate, sizeof estimate);
    if (eti_sketch_is_valid(s) && end - tui_width(estimate) >= x + NAME + rest)
        end = tui_put_end(p, 0, end, TUI_TEXT, estimate);
    int most = end - x - rest;
    x += compose_put_cut(p, 0, x, TUI_TITLE, most > NAME ? most : NAME, name);
    x += tui_put(p, 0, x, TUI_WARN, text) + 3;
    x += tui_put(p, 0, x, role, faults) + 3;
    snprintf(text, sizeof text, "%s", eti_recipe_domain(eti_sketch_shown(s)));
    if (x + tui_width(text) + 2 < end)
        tui_put(p, 0, x, TUI_DIM, text);
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
        tui_put_ch(p, y + i, x, p->grid->glyphs->down, TUI_RULE, 0);
}

/* The recipe, or its text where it cannot be read as one. */
static void
draw_left(struct compose *c, const struct tui_pane *p)
{
    if (c->sketch->recipe)
        compose_draw_recipe(c, p, c->focus == TUI_C_RECIPE);
    else
        compose_draw_text(c, p);
}

/* Checks and changes below what is selected: how many lines each gets, and what is left
 * for the learning rate. */
struct shares {
    int selected, curve, checks, changes;
};

static struct shares
share(const struct compose *c, int h, int w, int selected)
{
    struct shares s = {.selected = selected};
    int checks = 1 + compose_check_lines(c, w);
    int changes = 1 + (c->n_changes < 8 ? c->n_changes : 8);
    int few_checks = 1 + compose_first_check_lines(c, w);
    if (few_checks < FEW_CHECKS)
        few_checks = checks < FEW_CHECKS ? checks : FEW_CHECKS;
    int few_changes = changes < 3 ? changes : 3, left;
    if (s.selected > h - few_checks)
        s.selected = h - few_checks > 3 ? h - few_checks : h;
    left = h - s.selected;
    s.checks = few_checks < left ? few_checks : left;
    left -= s.checks;
    s.changes = c->n_changes == 0 || left < 2 ? 0
                : few_changes < left          ? few_changes
                                              : left;
    left -= s.changes;
    s.curve = left >= CURVE_LEAST ? left < CURVE ? left : CURVE : 0;
    left -= s.curve;
    if (s.curve > 0 && left > 0 && s.selected == selected) { /* a blank line */
        s.selected++;
        left--;
    }
    int more = checks - s.checks < left ? checks - s.checks : left;
    s.checks += more;
    left -= more;
    if (s.changes > 0)
        s.changes += changes - s.changes < left ? changes - s.changes : left;
    return s;
}

/* What is selected, the learning rate, checks, changes: as much as there is room. */
static void
draw_side(struct compose *c, const struct tui_pane *p)
{
    if (c->shows_diff) {
        compose_draw_diff(c, p);
        return;
    }
    if (c->focus == TUI_C_TIMELINE) {
        compose_draw_timeline(c, p, true);
        return;
    }
    if (!eti_sketch_is_valid(c->sketch) && c->focus != TUI_C_OPTIONS) {
        compose_draw_faults(c, p);
        return;
    }
    int used = compose_draw_selected(c, p, c->focus == TUI_C_OPTIONS);
    const struct shares s = share(c, p->h, p->w, used);
    int y = s.selected;
    const struct tui_pane curve = tui_pane_part(p, y, 0, s.curve, p->w);
    const struct tui_pane checks = tui_pane_part(p, y += s.curve, 0, s.checks, p->w);
    const struct tui_pane changes = tui_pane_part(p, y += s.checks, 0, s.changes, p->w);
    if (s.curve > 0)
        compose_draw_curve(c, &curve);
    if (s.checks > 1) {
        const struct tui_pane list = tui_pane_part(&checks, 1, 0, s.checks - 1, p->w);
        tui_blank(&checks);
        tui_title(&checks, 0, "checks", false);
        compose_draw_checks(c, &list);
    }
    if (s.changes > 1)
        compose_draw_changes(c, &changes);
}

/* ---- 80x24 and up ---- */

static void
draw_columns(struct compose *c, const struct tui_pane *p)
{
    int h = p->h - 2, x = p->w < TUI_C_TWO_PANELS ? NARROW_LEFT : LEFT, x2 = -1;
    bool has_three = p->w >= 120;
    bool is_broken = !c->sketch->recipe;
    x = place(c, p,
              &(struct tui_border){"compose.left", false, x, 24, p->w - 30, 1, h});
    if (has_three && !is_broken) {
        x2 = place(c, p,
                   &(struct tui_border){"compose.middle", false, x + 1 + METHODS,
                                        x + 20, p->w - 30, 1, h});
        const struct tui_pane methods = tui_pane_part(p, 1, x + 1, h, x2 - x - 1);
        compose_draw_algorithms(c, &methods, c->focus == TUI_C_ALGORITHMS);
        draw_border(p, 1, x2, h);
    }
    const struct tui_pane left = tui_pane_part(p, 1, 0, h, x);
    int from = x2 >= 0 ? x2 : x, top = 0;
    const struct tui_pane right = tui_pane_part(p, 1, from + 1, h, p->w - from - 1);
    draw_left(c, &left);
    if (x2 < 0 && !c->is_inline && !is_broken) { /* above the rest of the right */
        int n = 1 + c->n_shown + c->has_fold;
        top = place(c, p,
                    &(struct tui_border){"compose.options", true,
                                         1 + (n < h / 2 ? n : h / 2), 4, h - 4, x + 1,
                                         right.w}) -
              1;
        const struct tui_pane methods = tui_pane_part(&right, 0, 0, top, right.w);
        compose_draw_algorithms(c, &methods, c->focus == TUI_C_ALGORITHMS);
    }
    const struct tui_pane side = tui_pane_part(&right, top, 0, h - top, right.w);
    const struct tui_pane rule = tui_pane_part(p, p->h - 1, 0, 1, p->w);
    draw_side(c, &side);
    draw_border(p, 1, x, h);
    tui_put_ch(p, 1, x, p->grid->glyphs->tee, TUI_RULE, 0);
    if (x2 >= 0)
        tui_put_ch(p, 1, x2, p->grid->glyphs->tee, TUI_RULE, 0);
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
    compose_draw_alike(c, p, 3);
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
    compose_draw_timeline(c, &one, c->focus == TUI_C_TIMELINE);
    if (!eti_sketch_is_valid(c->sketch)) {
        compose_draw_faults(c, &two);
        return;
    }
    tui_title(&two, 0, "checks", false);
    const struct tui_pane list = tui_pane_part(&two, 1, 0, two.h - 1, two.w);
    int used = 1 + compose_draw_checks(c, &list);
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
    int middle = x - left - 1, n = 1 + c->n_shown + c->has_fold;
    n = place(c, p,
              &(struct tui_border){"compose.options", true,
                                   1 + (n < h - 12 ? n : h - 12), 5, h - 3, left + 1,
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
    draw_left(c, &recipe);
    compose_draw_curve(c, &curve);
    compose_draw_algorithms(c, &methods, c->focus == TUI_C_ALGORITHMS);
    compose_draw_selected(c, &options, c->focus == TUI_C_OPTIONS);
    draw_right(c, &right);
    draw_border(p, 1, left, h);
    draw_border(p, 1, x, h);
    tui_put_ch(p, 1, left, p->grid->glyphs->tee, TUI_RULE, 0);
    tui_put_ch(p, 1, x, p->grid->glyphs->tee, TUI_RULE, 0);
    draw_command(c, &foot);
}

/* ---- all ---- */

static void
draw_one(struct compose *c, const struct tui_pane *p)
{
    const struct tui_pane all = tui_pane_part(p, 1, 0, p->h - 1, p->w);
    if (c->shows_diff || c->focus == TUI_C_OPTIONS || c->focus == TUI_C_TIMELINE)
        draw_side(c, &all);
    else if (c->focus == TUI_C_ALGORITHMS)
        compose_draw_algorithms(c, &all, true);
    else
        draw_left(c, &all);
}

void
compose_draw(struct tui_app *app, void *self, const struct tui_pane *p)
{
    struct compose *c = self;
    enum tui_size size = tui_size_of(app->grid.rows, app->grid.cols);
    compose_refresh(c);
    memset(c->area, 0, sizeof c->area);
    if (c->samples.is_open) {
        tui_samples_draw(&c->samples, p);
        return;
    }
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
        draw_columns(c, p);
    }
}
