/* SPDX-License-Identifier: Apache-2.0 */
/* help.c: what the keys of a screen do: type to search, enter does it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/app.h"

enum { ROWS = TUI_ACTIONS + 4, LEAST_KEYS = 10 };

/* A line of help. */
struct row {
    int binding; /* of tui_bindings; -1: a heading */
    const char *heading;
};

static bool
stands_in(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (; strlen(text) >= n; text++)
        if (strncasecmp(text, word, n) == 0)
            return true;
    return false;
}

static bool
is_wanted(const struct tui_app *app, const struct tui_binding *b)
{
    const char *word = app->search.text;
    return !*word || stands_in(b->help, word) || stands_in(b->name, word) ||
           stands_in(b->key, word);
}

/* The rows of WHERE, its heading first. Returns how many, 0 where none is wanted. */
static int
gather(const struct tui_app *app, enum tui_where where, struct row *row)
{
    const enum tui_where here = tui_app_place(app);
    int n = 0;
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        if (b->where != where || !b->help || !is_wanted(app, b) ||
            !tui_binding_holds(&app->config.keys, b, here))
            continue;
        if (n == 0)
            row[n++] = (struct row){
                -1, where == TUI_IN_everywhere ? "EVERYWHERE" : tui_where_title(where)};
        row[n++] = (struct row){i, NULL};
    }
    return n;
}

/* Columns of the longest key of ROW [N], and two behind it. */
static int
keys_width(const struct tui_app *app, const struct row *row, int n)
{
    char keys[64];
    int most = LEAST_KEYS;
    for (int i = 0; i < n; i++) {
        int w =
            row[i].binding < 0
                ? 0
                : tui_width(tui_binding_keys(&app->config.keys, row[i].binding,
                                             tui_app_place(app), keys, sizeof keys));
        most = w > most ? w : most;
    }
    return most + 2;
}

static void
put_row(const struct tui_app *app, const struct tui_pane *p, int y,
        const struct row *row, int width, bool selected)
{
    char keys[64];
    if (row->binding < 0) {
        char heading[48];
        bool everywhere = strcmp(row->heading, "EVERYWHERE") == 0;
        snprintf(heading, sizeof heading, "%s%s",
                 everywhere ? "" : "HERE: ", row->heading);
        tui_put(p, y, 1, TUI_SECTION, heading);
        return;
    }
    tui_binding_keys(&app->config.keys, row->binding, tui_app_place(app), keys,
                     sizeof keys);
    tui_put(p, y, 1, TUI_KEY, keys);
    tui_put_cut(p, y, 1 + width, p->w, TUI_TEXT, tui_bindings[row->binding].help);
    if (selected)
        tui_select(p, y, true);
}

/* Both lists, those of here first: a search that fits here fits best. */
static int
gather_all(const struct tui_app *app, struct row *row, int *n_here)
{
    enum tui_where here = tui_app_place(app);
    *n_here = here != TUI_IN_everywhere ? gather(app, here, row) : 0;
    return *n_here + gather(app, TUI_IN_everywhere, row + *n_here);
}

/* Where the lists stand in a body of H lines and W columns: beside each other where
 * they have room, those of everywhere on the left. */
struct halves {
    bool both;
    int h;      /* lines for rows */
    int second; /* column of the right one */
};

static struct halves
halves_of(int h, int w, int here, int n)
{
    const int longer = here > n - here ? here : n - here;
    return (struct halves){w >= 76 && longer <= h - 2, h - 2, w * 37 / 80};
}

/* Draws what the mouse does, if there is one, from line Y on, behind a blank line if P
 * has room for it. */
static void
put_mouse(const struct tui_app *app, const struct tui_pane *p, int y, int width)
{
    static const char *const rows[][2] = {
        {"click", "select, again: open"},
        {"wheel", "scroll, zoom a chart"},
        {"drag", "move a border"},
        {"shift-drag", "select text"},
    };
    enum { N = sizeof rows / sizeof *rows };
    if (*app->search.text || y + N >= p->h ||
        (app->term && !tui_term_has_mouse(app->term)))
        return;
    y += y + 1 + N < p->h;
    tui_put(p, y, 1, TUI_SECTION, "MOUSE");
    for (int i = 0; i < N; i++) {
        tui_put(p, y + 1 + i, 1, TUI_KEY, rows[i][0]);
        tui_put_cut(p, y + 1 + i, 1 + width, p->w, TUI_TEXT, rows[i][1]);
    }
}

/* What is typed, from column X of the title on, as long as it is. */
static void
put_search(const struct tui_app *app, const struct tui_pane *p, int x)
{
    const int most = p->w - x - 2 < 40 ? p->w - x - 2 : 40;
    int w = tui_width(app->search.text) + 1;
    tui_put(p, 0, x - 1, TUI_TEXT, " ");
    if (!*app->search.text)
        tui_put(p, 0, x + 1, TUI_DIM, "type to search ");
    tui_field_draw(&app->search, p, 0, x, w < most ? w : most, NULL);
}

void
tui_help_draw(struct tui_app *app, const struct tui_pane *p)
{
    struct row row[ROWS];
    char title[96];
    int here, n = gather_all(app, row, &here);
    snprintf(title, sizeof title, "help: %s", tui_where_title(tui_app_place(app)));
    tui_title(p, 0, title, false);
    put_search(app, p, 6 + tui_width(title));
    const char *foot = "keys file: keys.yaml   manual: etude-keys(5)";
    struct tui_pane in = tui_pane_part(p, 1, 0, p->h - 2, p->w);
    tui_put(p, p->h - 1, 1, TUI_DIM, foot);
    if (app->help.at < n && n > 0 && row[app->help.at].binding < 0)
        app->help.at++;
    const struct halves place = halves_of(p->h, p->w, here, n);
    tui_list_show(&app->help, n, place.both ? n : in.h);
    int width = keys_width(app, row, n);
    int left = place.both ? keys_width(app, row + here, n - here) : width;
    int right = place.both ? keys_width(app, row, here) : width;
    for (int i = 0; i < n; i++) {
        bool second = place.both && i < here;
        int y = !place.both ? i - app->help.top : second ? i : i - here;
        struct tui_pane half =
            tui_pane_part(&in, 0, second ? place.second : 0, in.h,
                          place.both && !second ? place.second - 1 : p->w);
        put_row(app, &half, y, &row[i], second ? right : left, i == app->help.at);
    }
    if (place.both) {
        const struct tui_pane half = tui_pane_part(&in, 0, 0, in.h, place.second - 1);
        put_mouse(app, &half, n - here, left);
    }
    if (n == 0)
        tui_put(&in, 1, 1, TUI_DIM, "no key does that; bksp widens the search");
}

void
tui_help_run(struct tui_app *app)
{
    struct row row[ROWS];
    int here, n = gather_all(app, row, &here);
    app->shows_help = false;
    if (app->help.at < n && row[app->help.at].binding >= 0)
        tui_app_act(app, tui_bindings[row[app->help.at].binding].action);
}

void
tui_help_key(struct tui_app *app, int key)
{
    static const struct {
        int key;
        enum tui_action action;
    } moves[] = {
        {TUI_K_UP, TUI_DO_everywhere_up},
        {TUI_K_DOWN, TUI_DO_everywhere_down},
        {TUI_K_PGUP, TUI_DO_everywhere_page_up},
        {TUI_K_PGDN, TUI_DO_everywhere_page_down},
    };
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (moves[i].key == key) {
            struct row row[ROWS];
            int here;
            app->help.n = gather_all(app, row, &here);
            tui_list_act(&app->help, moves[i].action);
            if (row[app->help.at].binding < 0) /* headings are stepped over */
                tui_list_act(&app->help, app->help.at > 0 ? moves[i].action
                                                          : TUI_DO_everywhere_down);
            return;
        }
    enum tui_action action = tui_keys_find(&app->config.keys, TUI_IN_help, key);
    if (action == TUI_DO_help_close || action == TUI_DO_help_run)
        tui_app_act(app, action);
    else if (tui_field_key(&app->search, key))
        app->help.at = 0;
}

void
tui_help_mouse(struct tui_app *app, const struct tui_mouse *m)
{
    struct row row[ROWS];
    int here, n = gather_all(app, row, &here);
    if (m->what == TUI_WHEEL_UP || m->what == TUI_WHEEL_DOWN) {
        tui_help_key(app, m->what == TUI_WHEEL_UP ? TUI_K_UP : TUI_K_DOWN);
        return;
    }
    const struct tui_frame f = tui_layout_frame(app->grid.rows, app->grid.cols);
    struct halves in = halves_of(f.body.h, f.body.w, here, n);
    int line = m->y - f.body.y - 1;
    int at = !in.both ? app->help.top + line : m->x < in.second ? here + line : line;
    bool is_row = line >= 0 && line < in.h && at < n && row[at].binding >= 0;
    if (m->what != TUI_CLICK || !is_row || (in.both && m->x >= in.second && at >= here))
        return;
    if (at == app->help.at)
        tui_help_run(app);
    else
        app->help.at = at;
}
