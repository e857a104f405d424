/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c: what every screen has: tabs, messages, hints; and drawing it all. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "tui/app.h"
#include "tui/format.h"
#include "tui/source.h"

enum { TABS_FULL = 56, WIDE_HINTS = 180, MESSAGE_LINES = 3 };

void
tui_add_spot(struct tui_app *app, int y, int x, int w, enum tui_action action)
{
    if (app->n_spots < TUI_SPOTS)
        app->spot[app->n_spots++] = (struct tui_spot){y, x, w, action};
}

/* ---- the first line ---- */

static int
put_tab(struct tui_app *app, const struct tui_pane *p, int x, int i, bool is_short)
{
    const enum tui_where where = (enum tui_where)(TUI_IN_compose + i);
    char text[48];
    bool here = i == app->at;
    if (is_short)
        snprintf(text, sizeof text, "%d", i + 1);
    else
        snprintf(text, sizeof text, "%d %s", i + 1, tui_where_title(where));
    int w = tui_width(text) + 2;
    tui_put(p, 0, x + 1, here ? TUI_FOCUS : app->screen[i] ? TUI_TEXT : TUI_DIM, text);
    if (here) {
        tui_put_ch(p, 0, x, '[', TUI_FOCUS, 0);
        tui_put_ch(p, 0, x + w - 1, ']', TUI_FOCUS, 0);
    }
    tui_add_spot(app, p->y, p->x + x, w,
                 (enum tui_action)(TUI_DO_everywhere_compose + i));
    return x + w;
}

static void
put_tabs(struct tui_app *app, const struct tui_pane *p)
{
    char text[ETI_FACT_TEXT + 80], clock[TUI_NUMBER], fact[ETI_FACT_TEXT];
    const char *name =
        app->source ? eti_facts_get(app->source->facts, "name", fact) : "(no run)";
    int x = tui_put(p, 0, 1, TUI_SECTION, "etude") + 2;
    for (int i = 0; i < TUI_SCREENS; i++)
        x = put_tab(app, p, x, i, p->w < TABS_FULL + 20);
    const char *place = app->source ? app->source->place : "";
    tui_clock(tui_today(app), 0, clock);
    snprintf(text, sizeof text, "%s@%s  %s", name ? name : "-", place, clock);
    if (!*place || p->w - 1 - tui_width(text) <= x)
        snprintf(text, sizeof text, "%s  %s", name ? name : "-", clock);
    if (p->w - 1 - tui_width(text) > x)
        tui_put_end(p, 0, p->w - 1, TUI_TEXT, text);
    else if (p->w - 1 - tui_width(clock) > x)
        tui_put_end(p, 0, p->w - 1, TUI_TEXT, clock);
}

/* ---- the last two ---- */

static enum tui_where
place(const struct tui_app *app)
{
    return app->shows_help ? TUI_IN_help : tui_app_place(app);
}

/* Draws the message in as many lines as it needs. They cover the screen above until the
 * next key. */
static void
put_said(struct tui_app *app, const struct tui_pane *p)
{
    const struct tui_pane all = tui_pane_of(&app->grid);
    int n = tui_put_wrapped(NULL, 0, 0, p->w - 2, TUI_TEXT, app->message);
    n = n < MESSAGE_LINES ? n : MESSAGE_LINES;
    n = n < p->y ? n : 1; /* the tabs stay */
    const struct tui_pane lines = tui_pane_part(&all, p->y + 1 - n, p->x, n, p->w);
    if (n > 1)
        tui_blank(&lines);
    tui_put_wrapped(&lines, 0, 1, p->w - 2, app->message_role, app->message);
}

static void
put_message(struct tui_app *app, const struct tui_pane *p)
{
    const struct tui_screen *s = app->screen[app->at];
    char text[TUI_MESSAGE];
    if (app->message_end > 0) {
        put_said(app, p);
    } else if (s->message) {
        text[0] = '\0';
        enum tui_role role = s->message(app, app->state[app->at], text, sizeof text);
        tui_put_cut(p, 0, 1, p->w - 1, role, text);
    }
}

/* What the screen says instead of the texts of B; NULL: nothing. */
static const char *
own_hint(struct tui_app *app, const struct tui_binding *b)
{
    const struct tui_screen *s = app->screen[app->at];
    if (b->action == TUI_DO_everywhere_leave &&
        (!app->source || app->source->link == TUI_LINK_ENDED))
        return "leave"; /* no run goes on */
    return s->hint ? s->hint(app, app->state[app->at], b->action) : NULL;
}

/* The hints of a screen in their order; those of everywhere where none of its own hides
 * them. */
static int
gather_hints(struct tui_app *app, const struct tui_binding **hint)
{
    const bool types = place(app) == TUI_IN_help || place(app) == TUI_IN_typing;
    int n = 0;
    for (int order = 1; order < 100; order++)
        for (int i = 0; i < TUI_ACTIONS - 1; i++) {
            const struct tui_binding *b = &tui_bindings[i];
            if (b->order != order || !(b->hint || b->wide) ||
                (b->where != place(app) && types) || /* all else is typed */
                !tui_binding_holds(&app->config.keys, b, place(app)))
                continue;
            const char *own = own_hint(app, b);
            if (!own || *own)
                hint[n++] = b;
        }
    return n;
}

static const char *
hint_text(struct tui_app *app, const struct tui_binding *b, bool wide, char *buf,
          size_t size)
{
    char key[TUI_KEY_TEXT];
    const char *own = own_hint(app, b);
    snprintf(buf, size, "%s %s",
             b->hint_key ? b->hint_key : tui_binding_key(&app->config.keys, b, key),
             own                             ? own
             : b->wide && (wide || !b->hint) ? b->wide
                                             : b->hint);
    return buf;
}

/* Leaves out the least important until the rest has room: unless WIDE first those that
 * have no short text. */
static int
fit_hints(struct tui_app *app, const struct tui_binding **hint, int n, bool wide,
          int room)
{
    char text[64];
    const int gap = wide ? 3 : 2;
    for (;;) {
        int total = 1, worst = -1, extra = -1;
        for (int i = 0; i < n; i++) {
            total += tui_width(hint_text(app, hint[i], wide, text, sizeof text)) + gap;
            if (hint[i]->order < 90)
                worst = i;
            if (!wide && !hint[i]->hint)
                extra = i;
        }
        worst = extra >= 0 ? extra : worst;
        if (total - gap <= room || worst < 0)
            return n;
        memmove(hint + worst, hint + worst + 1, (size_t)(n - worst - 1) * sizeof *hint);
        n--;
    }
}

static void
put_hints(struct tui_app *app, const struct tui_pane *p)
{
    const struct tui_binding *hint[TUI_ACTIONS];
    char text[64];
    bool wide = p->w >= WIDE_HINTS;
    int n = gather_hints(app, hint), x = 1;
    n = fit_hints(app, hint, n, wide, p->w);
    for (int i = 0; i < n; i++) {
        hint_text(app, hint[i], wide, text, sizeof text);
        int w = tui_put(p, 0, x, TUI_DIM, text);
        int key = (int)strcspn(text, " ");
        if (hint[i]->hint_key)
            key = tui_width(hint[i]->hint_key);
        for (int k = 0; k < key; k++)
            tui_put_n(p, 0, x + k, TUI_KEY, 0, 1, text + k, 1);
        tui_add_spot(app, p->y, p->x + x, w, hint[i]->action);
        x += w + (wide ? 3 : 2);
    }
}

/* ---- all ---- */

static struct tui_pane
pane(struct tui_grid *g, struct tui_rect r)
{
    struct tui_pane all = tui_pane_of(g);
    return tui_pane_part(&all, r.y, r.x, r.h, r.w);
}

void
tui_app_draw(struct tui_app *app)
{
    const struct tui_screen *s = app->screen[app->at];
    const struct tui_frame f = tui_layout_frame(app->grid.rows, app->grid.cols);
    const struct tui_pane tabs = pane(&app->grid, f.tabs);
    const struct tui_pane body = pane(&app->grid, f.body);
    const struct tui_pane message = pane(&app->grid, f.message);
    const struct tui_pane hints = pane(&app->grid, f.hints);
    const struct tui_pane all = tui_pane_of(&app->grid);
    tui_popup_renew(&app->popup, app);
    tui_grid_clear(&app->grid);
    app->grid.is_mono = app->config.is_mono;
    app->n_spots = 0;
    tui_borders_begin(&app->borders);
    put_tabs(app, &tabs);
    if (app->shows_help)
        tui_help_draw(app, &body);
    else
        s->draw(app, app->state[app->at], &body);
    put_message(app, &message);
    put_hints(app, &hints);
    tui_popup_draw(&app->popup, &all);
    if (app->popup.kind != TUI_NO_POPUP)
        tui_borders_begin(&app->borders); /* what lies below cannot be taken */
    app->changed = false;
}
