/* help.c: what the keys of a screen do: type to search, enter does it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/app.h"

enum { ROWS = TUI_ACTIONS + 4, KEYS = 12 };

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

static void
put_row(const struct tui_app *app, const struct tui_pane *p, int y,
        const struct row *row, bool selected)
{
    char keys[64];
    if (row->binding < 0) {
        char heading[48];
        bool everywhere = strcmp(row->heading, "EVERYWHERE") == 0;
        snprintf(heading, sizeof heading, "%s%s",
                 everywhere ? "" : "HERE: ", row->heading);
        tui_put(p, y, 1, TUI_TITLE, heading);
        return;
    }
    tui_binding_keys(&app->config.keys, row->binding, keys, sizeof keys);
    int x = 1 + tui_put(p, y, 1, TUI_TITLE, keys);
    tui_put(p, y, x >= 1 + KEYS ? x + 1 : 1 + KEYS, selected ? TUI_FOCUS : TUI_TEXT,
            tui_bindings[row->binding].help);
    if (selected)
        tui_put_ch(p, y, 0, p->grid->glyphs->selected, TUI_FOCUS, 0);
}

/* Both lists, those of here first: a search that fits here fits best. */
static int
gather_all(const struct tui_app *app, struct row *row, int *n_here)
{
    enum tui_where here = tui_app_place(app);
    *n_here = here != TUI_IN_everywhere ? gather(app, here, row) : 0;
    return *n_here + gather(app, TUI_IN_everywhere, row + *n_here);
}

void
tui_help_draw(struct tui_app *app, const struct tui_pane *p)
{
    struct row row[ROWS];
    char title[96];
    int here, n = gather_all(app, row, &here);
    snprintf(title, sizeof title, "help: %s      type to search",
             tui_where_title(tui_app_place(app)));
    tui_title(p, 0, title, false);
    int x = 4 + tui_width(title);
    tui_field_draw(&app->search, p, 0, x, p->w - x - 2 < 24 ? p->w - x - 2 : 24, NULL);
    const char *foot = "keys file: keys.yaml   manual: etude-keys(5)";
    struct tui_pane in = tui_pane_part(p, 1, 0, p->h - 2, p->w);
    tui_put(p, p->h - 1, 1, TUI_DIM, foot);
    if (app->help.at < n && n > 0 && row[app->help.at].binding < 0)
        app->help.at++;
    bool both = p->w >= 76 && (here > n - here ? here : n - here) <= in.h;
    tui_list_show(&app->help, n, both ? n : in.h);
    for (int i = 0; i < n; i++) {
        bool second = both && i < here; /* EVERYWHERE stands on the left */
        int y = !both ? i - app->help.top : second ? i : i - here;
        struct tui_pane half =
            tui_pane_part(&in, 0, second ? p->w * 37 / 80 : 0, in.h,
                          both && !second ? p->w * 37 / 80 - 1 : p->w);
        put_row(app, &half, y, &row[i], i == app->help.at);
    }
    if (n == 0)
        tui_put(&in, 1, 1, TUI_DIM, "no key does that; bksp widens the search");
}

static void
run_selected(struct tui_app *app)
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
    if (key == TUI_K_ESC || key == TUI_K_F1 || key == TUI_CTRL('c'))
        app->shows_help = false;
    else if (key == TUI_K_ENTER)
        run_selected(app);
    else if (tui_field_key(&app->search, key))
        app->help.at = 0;
}
