/* SPDX-License-Identifier: Apache-2.0 */
/* compose_another.c: another recipe in Compose, in place of the one that is open. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/compose.h"

/* ---- the ways to one ---- */

static void
file_typed(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data, (void)id;
    if (*text && tui_compose_open(app, text) != ET_OK)
        tui_say_error(app);
}

static void
ask_file(struct compose *c)
{
    struct tui_popup *p = &c->app->popup;
    tui_popup_prompt(p, c->sketch->cx, "open a recipe", "");
    tui_popup_line(p, "The path of its file, from the working directory.");
    p->done = file_typed;
}

static void
way_chosen(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)app, (void)text;
    c->begin = (enum tui_action)id;
    compose_begin_wanted(c);
}

/* Those of the page where one begins. */
static void
offer_ways(struct compose *c)
{
    enum { MOST = 8 };
    struct tui_item item[MOST];
    int n = 0;
    for (int i = 0; i < TUI_ACTIONS - 1 && n < MOST; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        char key[TUI_KEY_TEXT];
        if (b->where != TUI_IN_start)
            continue;
        item[n] = (struct tui_item){.id = (int)b->action};
        tui_binding_key(&c->app->config.keys, b, key);
        if (strlen(key) == 1)
            item[n].key = key[0];
        snprintf(item[n++].text, sizeof item->text, "%s", b->name);
    }
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, "another recipe", item, n) !=
        ET_OK) {
        tui_say_error(c->app);
        return;
    }
    c->app->popup.done = way_chosen;
    c->app->popup.data = c;
}

void
compose_begin_wanted(struct compose *c)
{
    switch (c->begin) {
    case TUI_DO_start_first:
        compose_start_first(c);
        break;
    case TUI_DO_start_installed:
        compose_start_installed(c);
        break;
    case TUI_DO_start_run:
        compose_start_run(c);
        break;
    case TUI_DO_start_blank:
        compose_start_blank(c);
        break;
    case TUI_DO_start_file:
        if (!*c->wanted)
            ask_file(c);
        else if (tui_compose_open(c->app, c->wanted) != ET_OK)
            tui_say_error(c->app);
        break;
    default:
        offer_ways(c);
    }
}

/* ---- what would be lost ---- */

enum { STAY, SAVE, LOSE };

static void
answered(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)app, (void)text;
    if (id == SAVE)
        compose_save_then(c, TUI_DO_compose_another);
    else if (id == LOSE)
        compose_begin_wanted(c);
}

static void
begin(struct compose *c, enum tui_action way, const char *path)
{
    static const struct tui_item items[] = {
        {.id = STAY, .key = 'n', .text = "stay"},
        {.id = SAVE, .key = 's', .text = "save, then go on"},
        {.id = LOSE, .key = 'y', .text = "go on, and lose that"},
    };
    struct tui_popup *p = &c->app->popup;
    c->begin = way;
    snprintf(c->wanted, sizeof c->wanted, "%s", path);
    if (!eti_sketch_is_changed(c->sketch)) {
        compose_begin_wanted(c);
        return;
    }
    if (tui_popup_menu(p, c->sketch->cx, "another recipe", items, 3) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    tui_popup_line(p, "This recipe has changes that are not saved.");
    p->done = answered;
    p->data = c;
}

void
compose_another(struct compose *c, enum tui_action way)
{
    begin(c, way, "");
}

/* ---- from elsewhere ---- */

const json_t *
tui_compose_installed(struct tui_app *app)
{
    const struct compose *c = tui_app_state(app, TUI_IN_compose);
    return c ? c->setup.installed : NULL;
}

void
tui_compose_begin(struct tui_app *app, const char *path)
{
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    if (c)
        begin(c, TUI_DO_start_file, path);
}
