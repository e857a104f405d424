/* SPDX-License-Identifier: Apache-2.0 */
/* compose_find.c: what is listed of a recipe while something is looked for, and where
 * the cursor goes: to an algorithm, or else to a key. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/compose.h"

/* Where algorithms are lines of the recipe, the cursor is on the one that is
 * selected. */
static void
follow_method(struct compose *c)
{
    for (int i = 0; c->is_inline && i < c->n_rows; i++)
        if ((c->row[i].kind == TUI_C_METHOD || c->row[i].kind == TUI_C_FOLDED) &&
            c->row[i].at == c->algorithms.at)
            c->recipe.at = i;
}

/* The cursor goes to the first key that was found. */
static void
follow_key(struct compose *c)
{
    for (int i = 0; i < c->n_rows; i++) {
        if (c->row[i].kind != TUI_C_KEY ||
            !strstr(c->form.row[c->row[i].at].path, c->find.text))
            continue;
        c->focus = TUI_C_RECIPE;
        c->recipe.at = i;
        return;
    }
}

/* Is there a key that is called just so, and no algorithm that begins so? */
static bool
finds_name(const struct compose *c)
{
    for (int i = 0; i < c->n_shown; i++)
        if (strncmp(c->method[c->shown[i]].name, c->find.text, c->find.n) == 0)
            return false;
    for (int i = 0; i < c->n_rows; i++) {
        const char *path = c->form.row[c->row[i].at].path;
        const char *leaf = c->row[i].kind == TUI_C_KEY ? strrchr(path, '.') : NULL;
        if (leaf && strcmp(leaf + 1, c->find.text) == 0)
            return true;
    }
    return false;
}

void
compose_list_found(struct compose *c)
{
    compose_list_methods(c);
    compose_list_rows(c);
    compose_list_options(c);
    if (c->is_finding)
        c->focus = c->is_inline ? TUI_C_RECIPE : TUI_C_ALGORITHMS;
    if (c->finds_keys && (c->n_shown == 0 || finds_name(c)))
        follow_key(c);
    else
        follow_method(c);
}

void
compose_end_search(struct compose *c)
{
    const struct eti_form_row *r =
        compose_place(c) == TUI_C_RECIPE ? compose_key_row(c) : NULL;
    char path[ETI_PATH_BYTES];
    snprintf(path, sizeof path, "%s", r ? r->path : "");
    tui_field_set(&c->find, "");
    compose_list_found(c);
    compose_selected(c);
    if (*path)
        compose_go_to(c, path);
}
