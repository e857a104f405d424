/* SPDX-License-Identifier: Apache-2.0 */
/* compose_edit.c: what keys do to the recipe's text: values typed and tried while they
 * are typed, switches, order, defaults, undo. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/compose.h"

/* The row under the cursor that has a value; NULL: no row, or one without. */
static const struct eti_form_row *
selected_row(const struct compose *c)
{
    enum tui_compose_panel place = compose_place(c);
    if (place == TUI_C_RECIPE)
        return compose_key_row(c);
    bool has_options = place == TUI_C_OPTIONS || place == TUI_C_ALGORITHMS;
    return has_options && c->values.at < c->options.n ? &c->options.row[c->values.at]
                                                      : NULL;
}

/* The error in the context, if the change failed. */
static bool
said(struct compose *c, et_status status)
{
    if (status == ET_OK)
        return true;
    tui_say_error(c->app);
    return false;
}

/* ---- typing ---- */

static const struct et_registry *
registry_of(const struct compose *c)
{
    return c->setup.env ? c->setup.env->registry : NULL;
}

/* Why the text that is typed will not do. */
static void
try_value(struct compose *c)
{
    c->reason[0] = '\0';
    if (c->line > 0)
        return;
    if (eti_form_try(c->sketch->cx, registry_of(c), &c->target,
                     *c->field.text ? c->field.text : "null") == ET_OK)
        return;
    snprintf(c->reason, sizeof c->reason, "%.199s",
             et_error_get(c->sketch->cx)->message);
    et_error_clear(c->sketch->cx);
}

void
compose_type(struct compose *c, const struct eti_form_row *r)
{
    c->target = *r;
    snprintf(c->path, sizeof c->path, "%s", r->path);
    snprintf(c->label, sizeof c->label, "%s", r->label);
    c->target.path = c->path;
    c->target.label = c->label;
    c->line = 0;
    c->is_editing = true;
    c->app->message_end = 0; /* the line above the hints is the value's now */
    c->reason[0] = '\0';
    tui_field_set(&c->field, strcmp(r->value, "null") == 0 ? "" : r->value);
    snprintf(c->was, sizeof c->was, "%.63s", c->field.text);
    c->target.value = c->field.text;
}

/* ---- a name out of a list ---- */

/* Asks for the first value that the component at PATH needs, and moves the cursor to
 * it. */
static void
ask_for_missing(struct compose *c, const char *path)
{
    size_t n = strlen(path);
    for (int i = 0; i < c->form.n; i++) {
        const struct eti_form_row *r = &c->form.row[i];
        if (strncmp(r->path, path, n) != 0 || r->path[n] != '.' ||
            !compose_is_missing(c, r) || !compose_go_to(c, r->path))
            continue;
        compose_type(c, compose_key_row(c));
        return;
    }
}

static void
choose(struct compose *c, const char *name)
{
    char part[ETI_PATH_BYTES];
    const char *dot = strrchr(c->path, '.');
    bool is_name = dot && strcmp(dot, ".name") == 0;
    snprintf(part, sizeof part, "%.*s",
             is_name ? (int)(dot - c->path) : (int)strlen(c->path), c->path);
    if (c->target.is_set && strcmp(name, c->was) == 0) { /* nor does a comment go */
        tui_say(c->app, TUI_TEXT, "%s is %s already", part, name);
        return;
    }
    if (!said(c, eti_sketch_choose(c->sketch, part, c->target.row->kind, name)))
        return;
    compose_refresh(c);
    ask_for_missing(c, part);
}

static void
chosen(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    const struct et_registry *r = registry_of(c);
    if (!r)
        r = et_registry_core();
    const struct et_component *it = r->get(r, c->target.row->kind, id - 1);
    (void)app;
    (void)text;
    if (it)
        choose(c, it->name);
    compose_refresh(c);
}

static void
offer_names(struct compose *c, const struct eti_form_row *row)
{
    enum { MOST = 96 };
    struct tui_item item[MOST];
    int n = 0, at = 0;
    const struct et_registry *r = registry_of(c);
    const struct et_component *it;
    if (!r)
        r = et_registry_core();
    compose_type(c, row);
    c->is_editing = false;
    for (; n < MOST && (it = r->get(r, row->row->kind, n)) != NULL; n++) {
        item[n] = (struct tui_item){.id = n + 1};
        snprintf(item[n].text, sizeof item[n].text, "%s", it->name);
        snprintf(item[n].note, sizeof item[n].note, "%s", it->summary);
        if (strcmp(it->name, row->value) == 0)
            at = n;
    }
    char title[96];
    snprintf(title, sizeof title, "%.60s: type to search", row->path);
    if (!said(c, tui_popup_menu(&c->app->popup, c->sketch->cx, title, item, n)))
        return;
    c->app->popup.filters = true;
    c->app->popup.list.at = at;
    c->app->popup.done = chosen;
    c->app->popup.data = c;
}

/* ---- the line that is no YAML ---- */

void
compose_type_line(struct compose *c, int line)
{
    const char *at = c->sketch->text;
    for (int i = 1; i < line && at; i++) {
        at = strchr(at, '\n');
        at += at != NULL;
    }
    if (line == 0 || !at)
        return;
    char text[TUI_FIELD];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "\n"), at);
    c->line = line;
    c->is_editing = true;
    c->reason[0] = '\0';
    snprintf(c->label, sizeof c->label, "line %d", line);
    tui_field_set(&c->field, text);
}

/* Is ROW a component that is not there yet, or the name of one? */
static bool
is_named(const struct eti_form_row *r)
{
    bool is_part = r->row->type == ET_OPT_PART && !r->is_section && !r->part;
    return is_part || (r->part && strcmp(r->label, "name") == 0);
}

void
compose_edit(struct compose *c)
{
    const struct eti_form_row *r = selected_row(c);
    const struct eti_method *m = compose_method(c);
    enum tui_compose_panel place = compose_place(c);
    if (!c->sketch->recipe) {
        compose_type_line(
            c, c->sketch->errors.n > 0 ? c->sketch->errors.v[c->fault].line : 0);
        return;
    }
    if (place == TUI_C_ALGORITHMS && m)
        c->focus = place = TUI_C_OPTIONS;
    if (r && r->is_section) {
        int name = compose_name_of(c, (int)(r - c->form.row));
        r = name >= 0 ? &c->form.row[name] : r;
    }
    if (!r && place == TUI_C_OPTIONS && m) {
        tui_say(c->app, TUI_TEXT, "%s has no options", m->name);
    } else if (r && is_named(r)) {
        offer_names(c, r);
    } else if (r && r->row->flags & ET_OPT_ITEMS && compose_pick_layers(c, NULL)) {
        return;
    } else if (r && !r->is_section) {
        compose_type(c, r);
    } else {
        tui_say(c->app, TUI_TEXT, "%s%s",
                r ? r->label : "there is no value to edit here",
                r ? " has parts: enter shows them" : "");
    }
}

static void
commit(struct compose *c)
{
    if (*c->reason) {
        tui_say(c->app, TUI_BAD, "x %s", c->reason);
        return;
    }
    c->is_editing = false;
    if (c->line > 0)
        said(c, eti_sketch_put_line(c->sketch, c->line, c->field.text));
    else if (c->target.part)
        choose(c, c->field.text);
    else
        said(c, eti_sketch_set(c->sketch, c->path,
                               *c->field.text ? c->field.text : "null"));
}

bool
compose_act_typing(struct compose *c, enum tui_action action)
{
    switch (action) {
    case TUI_DO_typing_leave:
        c->is_editing = false;
        return true;
    case TUI_DO_typing_set:
        commit(c);
        return true;
    case TUI_DO_typing_word:
    case TUI_DO_typing_before:
        tui_field_key(&c->field,
                      action == TUI_DO_typing_word ? TUI_CTRL('w') : TUI_CTRL('u'));
        try_value(c);
        return true;
    default:
        return false;
    }
}

bool
compose_key(struct tui_app *app, void *self, int key)
{
    struct compose *c = self;
    if (!c->is_editing)
        return false;
    if (!compose_act_typing(c, tui_keys_find(&app->config.keys, TUI_IN_typing, key)) &&
        tui_field_key(&c->field, key))
        try_value(c);
    return true;
}

/* ---- switches ---- */

static void
toggle_method(struct compose *c)
{
    const struct eti_method *m = compose_method(c);
    if (!m)
        return;
    bool was = eti_sketch_is_on(c->sketch, m->name);
    if (!said(c, eti_sketch_toggle(c->sketch, m->name)))
        return;
    if (!was && c->sketch->errors.n > 0 && strstr(c->sketch->errors.v[0].path, m->name))
        tui_say(c->app, TUI_WARN, "! %s is on; it needs more: %s", m->name,
                c->sketch->errors.v[0].message);
    else if (!was && !compose_fits(c, m))
        tui_say(c->app, TUI_WARN, "! %s is on; it is for %s", m->name, m->applies_to);
    else
        tui_say(c->app, TUI_TEXT, "%s is %s", m->name, was ? "off" : "on");
}

/* The choice behind VALUE, round and round. */
static const char *
next_choice(const char *const *choices, const char *value)
{
    int i = 0;
    while (choices[i] && strcmp(choices[i], value) != 0)
        i++;
    return choices[i] && choices[i + 1] ? choices[i + 1] : choices[0];
}

static void
toggle_value(struct compose *c, const struct eti_form_row *r)
{
    const char *value = NULL;
    bool is_named = r->part && strcmp(r->label, "name") != 0;
    bool is_off = strcmp(r->value, "false") == 0;
    if (is_named)
        value = is_off ? "{}" : "false";
    else if (!r->is_section && r->row->type == ET_OPT_BOOL)
        value = strcmp(r->value, "true") == 0 ? "false" : "true";
    else if (!r->is_section && r->row->type == ET_OPT_ENUM && r->row->choices)
        value = next_choice(r->row->choices, r->value);
    if (value)
        said(c, eti_sketch_set(c->sketch, r->path, value));
    else
        compose_edit(c);
}

void
compose_toggle(struct compose *c)
{
    const struct eti_form_row *r = selected_row(c);
    if (compose_place(c) == TUI_C_ALGORITHMS)
        toggle_method(c);
    else if (r)
        toggle_value(c, r);
    else
        tui_say(c->app, TUI_TEXT, "space turns algorithms and switches on and off");
}

void
compose_move(struct compose *c, int by)
{
    const struct eti_method *m = compose_method(c);
    if (m && said(c, eti_sketch_move(c->sketch, m->name, by)))
        tui_say(c->app, TUI_TEXT, "%s acts %s now", m->name,
                by < 0 ? "earlier" : "later");
}

/* Some keys that have a default are needed beside others. */
static void
give_default(struct compose *c, const char *at)
{
    char path[ETI_PATH_BYTES];
    snprintf(path, sizeof path, "%s", at);
    if (!said(c, eti_sketch_default(c->sketch, path)))
        return;
    compose_refresh(c);
    for (int i = 0; i < c->form.n; i++)
        if (strcmp(c->form.row[i].path, path) == 0 &&
            compose_is_missing(c, &c->form.row[i])) {
            tui_say(c->app, TUI_WARN, "! %s is needed; u brings it back",
                    c->form.row[i].label);
            return;
        }
    tui_say(c->app, TUI_TEXT, "default again; u takes that back");
}

void
compose_default(struct compose *c)
{
    const struct eti_form_row *r =
        compose_place(c) == TUI_C_ALGORITHMS ? NULL : selected_row(c);
    if (!r) {
        tui_say(c->app, TUI_TEXT, "backspace gives a value its default: tab to one");
    } else if (!r->is_set) {
        tui_say(c->app, TUI_TEXT, "%s has %s", r->label,
                compose_is_missing(c, r) ? "no default" : "its default");
    } else if (r->row->flags & ET_OPT_REQUIRED) {
        tui_say(c->app, TUI_TEXT, "%s has no default: e gives it another value",
                r->label);
    } else {
        give_default(c, r->path);
    }
}

/* ---- warnings ---- */

void
compose_mend(struct compose *c)
{
    if (compose_mend_fault(c))
        return;
    for (int i = 0; i < c->n_warnings; i++) {
        const struct eti_check *w = &c->check[i];
        if (w->fix == ETI_FIX_TURN_OFF) {
            if (said(c, eti_sketch_toggle(c->sketch, w->who)))
                tui_say(c->app, TUI_TEXT, "%s is off", w->who);
            return;
        }
        if (w->fix == ETI_FIX_MOVE_UP) {
            if (said(c, eti_sketch_move(c->sketch, w->who, -w->by)))
                tui_say(c->app, TUI_TEXT, "%s acts earlier now", w->who);
            return;
        }
        if (w->fix == ETI_FIX_SET) {
            char value[16];
            snprintf(value, sizeof value, "%d", w->by);
            if (said(c, eti_sketch_set(c->sketch, w->who, value)))
                tui_say(c->app, TUI_TEXT, "%s is %s now; w saves it", w->who, value);
            return;
        }
    }
    tui_say(c->app, TUI_TEXT, "there is no warning that a key can mend");
}

void
compose_ignore(struct compose *c)
{
    if (c->n_warnings == c->n_fatal || c->n_ignored == TUI_C_IGNORED) {
        tui_say(c->app, TUI_TEXT,
                c->n_warnings == c->n_fatal ? "there is no warning to ignore"
                                            : "no more can be ignored");
        return;
    }
    const struct eti_check first = c->check[c->n_fatal];
    snprintf(c->ignored[c->n_ignored++], sizeof *c->ignored, "%s", first.text);
    tui_say(c->app, TUI_TEXT, "ignored for now: %.180s", first.text);
}

void
compose_undo(struct compose *c, bool forth)
{
    const char *what;
    et_status status =
        forth ? eti_sketch_redo(c->sketch, &what) : eti_sketch_undo(c->sketch, &what);
    if (!said(c, status))
        return;
    if (what)
        tui_say(c->app, TUI_TEXT, "%s: %s", forth ? "again" : "undone", what);
    else
        tui_say(c->app, TUI_TEXT, "nothing to %s", forth ? "do again" : "undo");
}
