/* palette.c: every action by its name. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/app.h"

static void
run_action(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data;
    (void)text;
    tui_app_act(app, (enum tui_action)id);
}

/* The rows of WHERE that have a key of their own there. */
static int
add_items(struct tui_app *app, enum tui_where rows, struct tui_item *item, int n)
{
    const enum tui_where here = tui_app_place(app);
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        if (b->where != rows || b->action == TUI_DO_everywhere_palette ||
            !tui_binding_holds(&app->config.keys, b, here))
            continue;
        item[n] = (struct tui_item){.id = (int)b->action};
        snprintf(item[n].text, sizeof item[n].text, "%s", b->name);
        tui_binding_key(&app->config.keys, b, item[n].note);
        n++;
    }
    return n;
}

void
tui_palette_open(struct tui_app *app)
{
    static struct tui_item item[TUI_ACTIONS];
    const enum tui_where here = tui_app_place(app);
    int n = here != TUI_IN_everywhere ? add_items(app, here, item, 0) : 0;
    n = add_items(app, TUI_IN_everywhere, item, n);
    if (tui_popup_menu(&app->popup, app->cx, "type a command", item, n) != ET_OK) {
        tui_say_error(app);
        return;
    }
    app->popup.filters = true;
    app->popup.done = run_action;
}
