/* SPDX-License-Identifier: Apache-2.0 */
/* palette.c: everything there is, by its name, from everywhere: screens, runs, themes,
 * settings, and every command of every screen. */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/settings.h"
#include "core/library/facts.h"
#include "core/library/index.h"
#include "tui/compose.h"

enum {
    RUNS = 400,  /* that are offered, the newest */
    FEW = 3,     /* of a group that are shown before something is typed */
    THEMES = 64, /* that are offered */
    /* What an item's id stands for: an action, or what is counted from here on. */
    FIRST_RUN = 10000,
    FIRST_THEME = 20000,
    FIRST_SETTING = 30000,
    FIRST_RECIPE = 40000,
};

/* What was gathered for the palette that is open. */
static struct {
    struct tui_item *item; /* [room] */
    int n, room;
    json_t *runs;
    char theme[THEMES][64];
    int n_themes;
    char setting[64]; /* that is being asked for */
    char own[64];     /* the theme that is there again after a preview */
    bool is_preview;
} all;

static struct tui_item *
add(struct tui_app *app, int id, const char *text, const char *mid)
{
    void *grown;
    if (all.n == all.room) {
        int room = all.room ? 2 * all.room : 128;
        if (et_alloc(app->cx, (size_t)room * sizeof *all.item, &grown) != ET_OK) {
            et_error_clear(app->cx);
            return NULL;
        }
        if (all.item)
            memcpy(grown, all.item, (size_t)all.n * sizeof *all.item);
        et_free(app->cx, all.item);
        all.item = grown;
        all.room = room;
    }
    struct tui_item *item = &all.item[all.n++];
    *item = (struct tui_item){.id = id};
    snprintf(item->text, sizeof item->text, "%s", text);
    snprintf(item->mid, sizeof item->mid, "%s", mid);
    return item;
}

static void
add_heading(struct tui_app *app, const char *text)
{
    struct tui_item *item = add(app, 0, text, "");
    if (item)
        item->is_heading = true;
}

/* Of a group: shown from the start, or only once something was typed? */
static void
hold_back(struct tui_item *item, int place)
{
    if (item)
        item->is_held = place >= FEW;
}

/* ---- screens and commands ---- */

static void
add_binding(struct tui_app *app, const struct tui_binding *b, const char *mid)
{
    struct tui_item *item = add(app, (int)b->action, b->name, mid);
    if (item)
        tui_binding_key(&app->config.keys, b, item->note);
}

static void
add_screens(struct tui_app *app)
{
    static const char *const what[TUI_SCREENS] = {
#define TUI_SCREEN(where, what) [TUI_IN_##where - TUI_IN_compose] = what,
#include "tui/screens.def"
#undef TUI_SCREEN
    };
    add_heading(app, "screens");
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        if (!tui_goes_to_screen(b->action))
            continue;
        int screen = (int)(b->action - TUI_DO_everywhere_compose);
        struct tui_item *item = add(
            app, (int)b->action,
            tui_where_title((enum tui_where)(TUI_IN_compose + screen)), what[screen]);
        if (item)
            tui_binding_key(&app->config.keys, b, item->note);
    }
}

/* The rows of WHERE that have a key of their own there: those of HERE and of everywhere
 * are done at once, those of another screen after going there. */
static void
add_commands(struct tui_app *app, enum tui_where rows, enum tui_where here)
{
    const char *mid =
        rows == TUI_IN_everywhere || rows == here ? "" : tui_where_title(rows);
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        if (b->where == rows && b->action != TUI_DO_everywhere_palette &&
            !tui_goes_to_screen(b->action) &&
            tui_binding_holds(&app->config.keys, b,
                              rows == TUI_IN_everywhere ? here : rows))
            add_binding(app, b, mid);
    }
}

/* ---- recipes ---- */

/* Those that are installed, and where others begin. */
static void
add_recipes(struct tui_app *app, enum tui_where here)
{
    const json_t *one;
    char text[sizeof((struct tui_item *)0)->text];
    size_t i;
    add_heading(app, "recipes");
    json_array_foreach(tui_compose_installed(app), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *title = json_string_value(json_object_get(one, "title"));
        snprintf(text, sizeof text, "recipe %.60s", name ? name : "-");
        hold_back(add(app, FIRST_RECIPE + (int)i, text, title ? title : ""), (int)i);
    }
    for (int k = 0; k < TUI_ACTIONS - 1 && here != TUI_IN_start; k++) {
        const struct tui_binding *b = &tui_bindings[k];
        if (b->where != TUI_IN_start)
            continue;
        snprintf(text, sizeof text, "new recipe: %s", b->name);
        hold_back(add(app, (int)b->action, text, ""), FEW);
    }
}

static void
begin_recipe(struct tui_app *app, int at)
{
    const json_t *one = json_array_get(tui_compose_installed(app), (size_t)at);
    tui_app_go(app, TUI_IN_compose);
    const char *path = json_string_value(json_object_get(one, "path"));
    tui_compose_begin(app, path ? path : "");
}

/* ---- runs ---- */

static struct eti_index *
open_index(struct tui_app *app, struct eti_index **own)
{
    *own = NULL;
    if (app->config.index)
        return app->config.index;
    if (eti_index_open(app->cx, NULL, own) != ET_OK)
        et_error_clear(app->cx);
    return *own;
}

static void
add_runs(struct tui_app *app)
{
    struct eti_index *own, *index = open_index(app, &own);
    json_t *one;
    size_t i;
    json_decref(all.runs);
    all.runs = NULL;
    if (index && (eti_index_look(index, "runs", false) != ET_OK ||
                  eti_index_names(index, &all.runs) != ET_OK))
        et_error_clear(app->cx);
    eti_index_close(&own);
    if (json_array_size(all.runs) > 0)
        add_heading(app, "runs");
    json_array_foreach(all.runs, i, one)
    {
        if (i == RUNS)
            break;
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *state = json_string_value(json_object_get(one, "state"));
        hold_back(add(app, FIRST_RUN + (int)i, name ? name : "-", state ? state : ""),
                  (int)i);
    }
}

static void
watch_run(struct tui_app *app, const char *name)
{
    struct eti_index *own, *index = open_index(app, &own);
    struct tui_source *source = NULL;
    json_t *facts = NULL;
    et_status status = index ? eti_index_find(index, "runs", name, &facts) : ET_OK;
    eti_index_close(&own);
    if (status == ET_OK && facts)
        status = tui_source_dir(app->cx, facts, &source);
    if (status != ET_OK) {
        tui_say_error(app);
    } else if (!source) {
        tui_say(app, TUI_WARN, "! %s is not there any more", name);
    } else {
        tui_app_attach(app, &source);
        tui_app_go(app, TUI_IN_monitor);
    }
}

/* ---- themes and settings ---- */

static void
add_theme(struct tui_app *app, const char *name, const char *mid)
{
    char text[96];
    for (int i = 0; i < all.n_themes; i++)
        if (strcmp(all.theme[i], name) == 0)
            return;
    if (all.n_themes == THEMES || strlen(name) >= sizeof all.theme[0])
        return;
    snprintf(all.theme[all.n_themes], sizeof all.theme[0], "%s", name);
    snprintf(text, sizeof text, "theme %s", name);
    hold_back(add(app, FIRST_THEME + all.n_themes, text, mid), all.n_themes);
    all.n_themes++;
}

/* Shipped ones, then files of the user's. */
static void
add_themes(struct tui_app *app)
{
    DIR *folder = app->config.themes ? opendir(app->config.themes) : NULL;
    all.n_themes = 0;
    add_heading(app, "themes");
    add_theme(app, "auto", "as the terminal's background is");
    for (const struct tui_shipped_theme *t = tui_shipped_themes; t->name; t++)
        add_theme(app, t->name, "");
    for (struct dirent *e; folder && (e = readdir(folder));) {
        char name[sizeof all.theme[0]];
        const char *end = strrchr(e->d_name, '.');
        if (!end || strcmp(end, ".yaml") != 0 || end - e->d_name >= (int)sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(end - e->d_name), e->d_name);
        add_theme(app, name, "your own");
    }
    if (folder)
        closedir(folder);
}

struct settings {
    struct tui_app *app;
    const char *wanted; /* only the path of the one that has the number AT is taken */
    int n, at;
    char path[64];
};

static void
add_setting(void *data, const char *path, const struct et_option *row)
{
    struct settings *s = data;
    char origin[256], mid[sizeof((struct tui_item *)0)->mid], *text = NULL;
    (void)row;
    if (s->n++ == s->at)
        snprintf(s->path, sizeof s->path, "%s", path);
    if (s->at >= 0)
        return;
    if (eti_config_get(s->app->config.settings, path, &text, origin, sizeof origin) !=
        ET_OK)
        et_error_clear(s->app->cx);
    snprintf(mid, sizeof mid, "now %.50s", text ? text : "not set");
    et_free(s->app->cx, text);
    hold_back(add(s->app, FIRST_SETTING + s->n - 1, path, mid), s->n - 1);
}

static void
add_settings(struct tui_app *app)
{
    struct settings s = {.app = app, .at = -1};
    if (!app->config.settings)
        return;
    add_heading(app, "settings");
    eti_config_each(app->config.settings, add_setting, &s);
}

/* By `etude config set`, as a person would. */
static void
save_setting(struct tui_app *app, const char *path, const char *value)
{
    const char *argument[] = {"config", "set", path, value, NULL};
    snprintf(app->saving, sizeof app->saving, "%.48s: %.48s%s", path, value,
             strcmp(path, "ui.theme") == 0 ? "" : ", from the next start on");
    if (tui_job_start(&app->saver, app->cx, argument, NULL, 0) != ET_OK)
        tui_say_error(app);
}

bool
tui_palette_tick(struct tui_app *app)
{
    if (!*app->saving || !tui_job_poll(&app->saver, app->config.is_dump ? 10 : 0))
        return false;
    if (app->saver.code == 0)
        tui_say(app, TUI_GOOD, "%s", app->saving);
    else
        tui_say(app, TUI_BAD, "x %.200s", app->saver.error);
    app->saving[0] = '\0';
    tui_job_stop(&app->saver);
    return true;
}

static void
setting_typed(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data, (void)id;
    save_setting(app, all.setting, text);
}

static void
ask_setting(struct tui_app *app, int at)
{
    struct settings s = {.app = app, .at = at};
    char origin[256], *text = NULL;
    eti_config_each(app->config.settings, add_setting, &s);
    snprintf(all.setting, sizeof all.setting, "%s", s.path);
    if (eti_config_get(app->config.settings, s.path, &text, origin, sizeof origin) !=
        ET_OK)
        et_error_clear(app->cx);
    tui_popup_prompt(&app->popup, app->cx, s.path, text ? text : "");
    tui_popup_line(&app->popup, "etude config set %s VALUE", s.path);
    app->popup.done = setting_typed;
    et_free(app->cx, text);
}

/* ---- choosing ---- */

/* One that cannot be read changes nothing. */
static void
show_theme(struct tui_app *app, const char *name)
{
    struct et_diagnostics errors = {0};
    if (app->term && tui_term_theme(app->term, name, &errors) != ET_OK)
        et_error_clear(app->cx);
}

/* A theme is shown while one is at its row. */
static void
preview(struct tui_app *app, int id)
{
    bool is_theme = id >= FIRST_THEME && id < FIRST_THEME + all.n_themes;
    if (is_theme)
        show_theme(app, all.theme[id - FIRST_THEME]);
    else if (all.is_preview)
        show_theme(app, all.own);
    all.is_preview = is_theme;
}

static void
choose(struct tui_app *app, void *data, int id, const char *text)
{
    char name[ET_RUN_NAME];
    (void)data, (void)text;
    if (id >= FIRST_RECIPE) {
        begin_recipe(app, id - FIRST_RECIPE);
    } else if (id >= FIRST_SETTING) {
        ask_setting(app, id - FIRST_SETTING);
    } else if (id >= FIRST_THEME) {
        const char *theme = all.theme[id - FIRST_THEME];
        show_theme(app, theme);
        all.is_preview = false;
        snprintf(all.own, sizeof all.own, "%s", theme);
        save_setting(app, "ui.theme", theme);
    } else if (id >= FIRST_RUN) {
        const json_t *one = json_array_get(all.runs, (size_t)(id - FIRST_RUN));
        const char *run = json_string_value(json_object_get(one, "name"));
        snprintf(name, sizeof name, "%s", run ? run : "");
        watch_run(app, name);
    } else {
        const struct tui_binding *b = tui_binding_of((enum tui_action)id);
        const enum tui_where here = tui_app_place(app);
        const enum tui_where where = b && b->where == TUI_IN_start ? TUI_IN_compose
                                     : b                           ? b->where
                                                                   : here;
        bool is_far =
            where != TUI_IN_everywhere && where != here && tui_is_screen(where);
        if (is_far)
            tui_app_go(app, where);
        if (is_far && tui_app_place(app) == TUI_IN_everywhere) {
            tui_say(app, TUI_WARN, "! %s: no run is watched", b->name);
            return;
        }
        tui_app_act(app, (enum tui_action)id);
    }
}

void
tui_palette_open(struct tui_app *app)
{
    const enum tui_where here = tui_app_place(app);
    const struct eti_config *settings = app->config.settings;
    all.n = 0;
    if (!*all.own)
        snprintf(all.own, sizeof all.own, "%s",
                 settings && settings->set.ui.theme ? settings->set.ui.theme : "auto");
    add_screens(app);
    add_runs(app);
    add_themes(app);
    add_settings(app);
    add_recipes(app, here);
    if (here != TUI_IN_everywhere) {
        char heading[48];
        snprintf(heading, sizeof heading, "here: %s", tui_where_title(here));
        add_heading(app, heading);
        add_commands(app, here, here);
    }
    add_heading(app, "commands");
    add_commands(app, TUI_IN_everywhere, here);
    for (int where = TUI_IN_compose; where < TUI_IN_compose + TUI_SCREENS; where++)
        if ((enum tui_where)where != here)
            add_commands(app, (enum tui_where)where, here);
    if (tui_popup_menu(&app->popup, app->cx, "go to, or do", all.item, all.n) !=
        ET_OK) {
        tui_say_error(app);
        return;
    }
    app->popup.filters = true;
    app->popup.wide = true;
    tui_popup_sift(&app->popup);
    app->popup.done = choose;
    app->popup.moved = preview;
}

void
tui_palette_close(struct tui_app *app)
{
    tui_job_stop(&app->saver);
    et_free(app->cx, all.item);
    json_decref(all.runs);
    all.item = NULL;
    all.runs = NULL;
    all.n = all.room = 0;
    all.own[0] = '\0';
}
