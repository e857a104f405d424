/* SPDX-License-Identifier: Apache-2.0 */
/* compose.c: the screen Compose: a recipe as a form, its algorithms, and when they act.
 *
 * All of it is made anew from the sketch (core/compose/sketch.h) whenever its text has
 * changed; what takes long (estimate, learning rate) another process computes. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/compose.h"

bool
compose_is_empty(const struct compose *c)
{
    return c->sketch->n == 0 && !c->sketch->path && c->sketch->at_step == 0;
}

/* ---- all of it ---- */

/* Algorithms have no panel of their own on narrow screens. */
static bool
is_narrow(const struct compose *c)
{
    const struct tui_grid *g = &c->app->grid;
    return g->cols < TUI_C_TWO_PANELS || tui_size_of(g->rows, g->cols) < TUI_NORMAL;
}

void
compose_refresh(struct compose *c)
{
    bool is_inline = is_narrow(c), has_room = c->app->grid.rows >= TUI_C_ROOM;
    if (c->seen == c->sketch->changes && is_inline == c->is_inline &&
        has_room == c->has_room)
        return;
    c->is_inline = is_inline;
    c->has_room = has_room;
    if (is_inline && c->focus == TUI_C_ALGORITHMS)
        c->focus = TUI_C_RECIPE;
    const struct et_recipe *recipe =
        c->sketch->recipe ? c->sketch->recipe : c->sketch->last;
    c->seen = c->sketch->changes;
    c->asked = tui_now(c->app);
    eti_form_release(&c->form);
    if (recipe && eti_form_of_recipe(c->sketch->cx, recipe, &c->form) != ET_OK)
        tui_say_error(c->app);
    c->fault = compose_first_fault(c);
    compose_list_methods(c);
    compose_list_options(c);
    compose_list_checks(c);
    compose_list_events(c);
    compose_list_rows(c);
    compose_list_changes(c);
    c->app->changed = true;
}

static void
again(struct compose *c)
{
    c->seen = -1;
    compose_refresh(c);
}

void
compose_begun(struct compose *c)
{
    c->n_ignored = c->n_sections = 0;
    c->algorithms = c->values = c->timeline = c->recipe = (struct tui_list){0};
    tui_field_set(&c->find, "");
    compose_find_alike(c);
    again(c);
}

/* ---- where the cursor is ---- */

enum tui_compose_panel
compose_place(const struct compose *c)
{
    if (c->focus != TUI_C_RECIPE || c->recipe.at >= c->n_rows)
        return c->focus;
    enum tui_compose_kind kind = c->row[c->recipe.at].kind;
    return kind == TUI_C_METHOD || kind == TUI_C_FOLDED ? TUI_C_ALGORITHMS
                                                        : TUI_C_RECIPE;
}

void
compose_selected(struct compose *c)
{
    enum tui_compose_panel place = compose_place(c);
    if (place == TUI_C_ALGORITHMS && c->focus == TUI_C_RECIPE)
        c->algorithms.at = c->row[c->recipe.at].at;
    if (place != TUI_C_TIMELINE)
        c->is_about_method = place != TUI_C_RECIPE;
    if (compose_method(c) != c->options_of) {
        c->values = (struct tui_list){0};
        compose_list_options(c);
    }
}

bool
compose_go_to(struct compose *c, const char *path)
{
    int i = 0;
    if (c->find.n > 0) { /* it may not be among what was found */
        tui_field_set(&c->find, "");
        compose_list_methods(c);
        compose_list_rows(c);
    }
    while (i < c->form.n && !compose_is_path(path, c->form.row[i].path))
        i++;
    if (i == c->form.n)
        return false;
    int parent = c->form.row[i].parent;
    if (parent >= 0 && compose_name_of(c, parent) == i)
        i = parent;
    bool is_told = c->form.row[i].is_set || compose_is_missing(c, &c->form.row[i]);
    for (int p = c->form.row[i].parent; p >= 0; p = c->form.row[p].parent)
        if (c->form.row[p].is_section && compose_mode_of(c, p) != TUI_C_WHOLE)
            compose_turn_section(c, c->form.row[p].path,
                                 is_told ? TUI_C_SET : TUI_C_WHOLE);
    for (int k = 0; k < c->n_rows; k++)
        if (c->row[k].kind == TUI_C_KEY && c->row[k].at == i) {
            c->focus = TUI_C_RECIPE;
            c->recipe.at = k;
            compose_selected(c);
            return true;
        }
    return false;
}

/* ---- keys ---- */

struct tui_list *
compose_list(struct compose *c, enum tui_compose_panel panel)
{
    switch (panel) {
    case TUI_C_OPTIONS:
        return &c->values;
    case TUI_C_TIMELINE:
        return &c->timeline;
    case TUI_C_RECIPE:
        return &c->recipe;
    default:
        return &c->algorithms;
    }
}

static bool
act_on_list(struct compose *c, enum tui_action action)
{
    if (c->shows_diff &&
        (action == TUI_DO_everywhere_up || action == TUI_DO_everywhere_down)) {
        c->diff_top += action == TUI_DO_everywhere_up ? -1 : 1;
        return true;
    }
    if (!tui_list_act(compose_list(c, c->focus), action))
        return false;
    compose_selected(c);
    return true;
}

/* The next panel, BY 1 or -1, that there is. */
static void
turn_panel(struct compose *c, int by)
{
    bool was_method = c->is_about_method;
    do
        c->focus = (enum tui_compose_panel)(((int)c->focus + by + TUI_C_PANELS) %
                                            TUI_C_PANELS);
    while ((c->focus == TUI_C_ALGORITHMS && c->is_inline) ||
           (c->focus == TUI_C_OPTIONS && c->is_inline && !was_method));
    compose_selected(c);
}

/* A section: shut, what is set, all of it, and so on. */
static void
open_section(struct compose *c, int i)
{
    int mode = compose_mode_of(c, i) + 1;
    if (mode > TUI_C_WHOLE)
        mode = i < 0 ? TUI_C_SET : TUI_C_SHUT;
    compose_turn_section(c, i < 0 ? "" : c->form.row[i].path, mode);
}

/* More algorithms: those that can act, then all, then fewer again. */
static void
unfold(struct compose *c)
{
    bool has_few = c->filter == TUI_C_CAN && c->n_shown < c->n_can;
    bool is_last = c->filter != TUI_C_CAN;
    if (!has_few)
        c->filter = is_last ? TUI_C_CAN : TUI_C_ALL;
    compose_turn_section(c, "algorithms", is_last ? TUI_C_SET : TUI_C_WHOLE);
    compose_list_options(c);
}

static void
open_selected(struct compose *c)
{
    enum tui_compose_panel place = compose_place(c);
    if (place == TUI_C_TIMELINE) {
        compose_say_why(c);
    } else if (place == TUI_C_ALGORITHMS && !compose_method(c)) {
        unfold(c);
    } else if (place == TUI_C_ALGORITHMS) {
        c->focus = TUI_C_OPTIONS;
    } else if (place == TUI_C_RECIPE && c->n_rows > 0) {
        struct tui_compose_row at = c->row[c->recipe.at];
        int mode = compose_mode_at(c, "algorithms", TUI_C_SET) + 1;
        if (at.kind == TUI_C_METHODS)
            compose_turn_section(c, "algorithms",
                                 mode > TUI_C_WHOLE ? TUI_C_SHUT : mode);
        else if (at.kind == TUI_C_MORE)
            open_section(c, -1);
        else if (c->form.row[at.at].is_section)
            open_section(c, at.at);
        else
            compose_edit(c);
    } else {
        compose_edit(c);
    }
}

static void
turn_filter(struct compose *c)
{
    static const char *const words[] = {"those that can act here", "those that are on",
                                        "all"};
    c->filter = (c->filter + 1) % TUI_C_FILTERS;
    compose_list_methods(c);
    compose_list_rows(c);
    compose_list_options(c);
    tui_say(c->app, TUI_TEXT, "algorithms: %s", words[c->filter]);
}

static bool
close_something(struct compose *c)
{
    bool any = c->shows_diff || c->is_full || c->find.n > 0;
    c->shows_diff = c->is_full = false;
    if (c->find.n > 0)
        compose_end_search(c);
    return any;
}

static bool
act(struct tui_app *app, void *self, enum tui_action action)
{
    struct compose *c = self;
    (void)app;
    c->then = TUI_DO_nothing; /* it was not saved */
    if (c->samples.is_open)
        return tui_samples_act(&c->samples, action);
    if (c->is_editing) { /* a hint was clicked on */
        bool is_done = compose_act_typing(c, action);
        compose_refresh(c);
        return is_done;
    }
    if (act_on_list(c, action))
        return true;
    switch (action) {
    case TUI_DO_start_first:
    case TUI_DO_start_installed:
    case TUI_DO_start_run:
    case TUI_DO_start_blank:
    case TUI_DO_start_file:
    case TUI_DO_compose_another:
        compose_another(c, action);
        break;
    case TUI_DO_compose_panel:
    case TUI_DO_everywhere_next_panel:
        turn_panel(c, 1);
        break;
    case TUI_DO_everywhere_previous_panel:
        turn_panel(c, -1);
        break;
    case TUI_DO_everywhere_open:
        open_selected(c);
        break;
    case TUI_DO_compose_toggle:
    case TUI_DO_everywhere_toggle:
        compose_toggle(c);
        break;
    case TUI_DO_compose_find:
        c->is_finding = true;
        tui_field_set(&c->find, "");
        compose_list_found(c);
        compose_selected(c);
        break;
    case TUI_DO_everywhere_undo:
    case TUI_DO_compose_undo:
        compose_undo(c, false);
        break;
    case TUI_DO_everywhere_redo:
    case TUI_DO_compose_redo:
        compose_undo(c, true);
        break;
    case TUI_DO_everywhere_full:
        c->is_full = !c->is_full;
        break;
    case TUI_DO_everywhere_retry:
        compose_reload(c);
        break;
    case TUI_DO_everywhere_close:
        return close_something(c);
    case TUI_DO_compose_edit:
        compose_edit(c);
        break;
    case TUI_DO_compose_earlier:
        compose_move(c, -1);
        break;
    case TUI_DO_compose_later:
        compose_move(c, 1);
        break;
    case TUI_DO_compose_default:
        compose_default(c);
        break;
    case TUI_DO_compose_domain:
        turn_filter(c);
        break;
    case TUI_DO_compose_mend:
        compose_mend(c);
        break;
    case TUI_DO_compose_faults:
        compose_list_faults(c);
        break;
    case TUI_DO_compose_samples:
        compose_open_samples(c);
        break;
    case TUI_DO_compose_ignore:
        compose_ignore(c);
        compose_list_checks(c);
        break;
    case TUI_DO_compose_diff:
        c->shows_diff = !c->shows_diff;
        c->diff_top = 0;
        break;
    case TUI_DO_compose_copy:
        compose_copy(c);
        break;
    case TUI_DO_compose_save:
        compose_save(c);
        break;
    case TUI_DO_compose_save_as:
        compose_save_as(c);
        break;
    case TUI_DO_compose_launch:
        compose_launch(c);
        break;
    default:
        return false;
    }
    compose_refresh(c);
    return true;
}

static bool
key(struct tui_app *app, void *self, int pressed)
{
    struct compose *c = self;
    bool taken;
    if (c->is_finding) {
        if (pressed == TUI_K_ENTER || pressed == TUI_K_ESC)
            c->is_finding = false;
        if (pressed == TUI_K_ESC) {
            compose_end_search(c);
            return true;
        }
        taken = tui_field_key(&c->find, pressed) || !c->is_finding ||
                (pressed >= ' ' && pressed < TUI_K_UP); /* too wide for a cell */
        compose_list_found(c);
        compose_selected(c);
        return taken;
    }
    taken = compose_key(app, self, pressed);
    compose_refresh(c);
    return taken;
}

static enum tui_where
place(struct tui_app *app, void *self)
{
    struct compose *c = self;
    (void)app;
    return c->samples.is_open    ? TUI_IN_samples
           : c->is_editing       ? TUI_IN_typing
           : compose_is_empty(c) ? TUI_IN_start
                                 : TUI_IN_compose;
}

static const char *
hint(struct tui_app *app, void *self, enum tui_action action)
{
    const struct compose *c = self;
    (void)app;
    return c->samples.is_open ? tui_samples_hint(&c->samples, action) : NULL;
}

/* The panel at Y, X of the grid; -1: no panel lies there. */
static int
panel_at(const struct compose *c, int y, int x)
{
    for (int i = 0; i < TUI_C_PANELS; i++) {
        const struct tui_rect *r = &c->area[i];
        if (y >= r->y && y < r->y + r->h && x >= r->x && x < r->x + r->w)
            return i;
    }
    return -1;
}

/* A click selects the panel and the line; on one that was selected it opens that. */
static void
click(struct compose *c, int y, int x)
{
    int panel = panel_at(c, y, x);
    if (panel < 0)
        return;
    struct tui_list *l = compose_list(c, (enum tui_compose_panel)panel);
    int at = l->top + y - c->area[panel].y - 1;
    bool was = (int)c->focus == panel && l->at == at;
    c->focus = (enum tui_compose_panel)panel;
    if (y == c->area[panel].y || at >= l->n)
        return;
    l->at = at;
    compose_selected(c);
    if (was && compose_place(c) == TUI_C_ALGORITHMS && compose_method(c))
        compose_toggle(c);
    else if (was)
        open_selected(c);
    compose_refresh(c);
}

static void
mouse(struct tui_app *app, void *self, const struct tui_mouse *m)
{
    struct compose *c = self;
    int top = tui_layout_frame(app->grid.rows, app->grid.cols).body.y;
    if (c->samples.is_open)
        return;
    if (m->what == TUI_CLICK)
        click(c, m->y + top, m->x);
    else if (m->what == TUI_WHEEL_UP)
        act_on_list(c, TUI_DO_everywhere_up);
    else if (m->what == TUI_WHEEL_DOWN)
        act_on_list(c, TUI_DO_everywhere_down);
}

/* ---- messages ---- */

/* A line about what is selected. */
static enum tui_role
about(const struct compose *c, char *buf, size_t size)
{
    const struct eti_method *m = compose_method(c);
    const struct eti_form_row *r = compose_key_row(c);
    char expects[160];
    if (compose_is_empty(c))
        return TUI_TEXT;
    if (c->focus == TUI_C_OPTIONS && c->values.at < c->options.n) {
        r = &c->options.row[c->values.at];
        snprintf(buf, size, "%s: %s   %s", r->label, r->row->help,
                 et_option_expects(r->row, expects, sizeof expects));
    } else if (c->is_about_method && m) {
        snprintf(buf, size, "%s  %s", m->name, m->summary);
    } else if (c->is_about_method) {
        snprintf(buf, size, "enter shows more or fewer algorithms");
    } else if (r) {
        snprintf(buf, size, "%s: %s   %s", r->path, r->row->help,
                 r->part || r->is_section
                     ? ""
                     : et_option_expects(r->row, expects, sizeof expects));
    }
    return TUI_TEXT;
}

/* Does a panel beside the recipe say what is selected? */
static bool
is_told(const struct compose *c, enum tui_size screen)
{
    if (screen < TUI_NORMAL || c->is_full)
        return false;
    return screen == TUI_FULL ||
           (!c->shows_diff && c->focus != TUI_C_TIMELINE &&
            (eti_sketch_is_valid(c->sketch) || c->focus == TUI_C_OPTIONS));
}

static enum tui_role
message(struct tui_app *app, void *self, char *buf, size_t size)
{
    struct compose *c = self;
    const struct eti_sketch *s = c->sketch;
    if (c->samples.is_open)
        return tui_samples_message(&c->samples, buf, size);
    if (c->is_finding) {
        snprintf(buf, size, "/ %s", c->find.text);
        return TUI_TITLE;
    }
    if (c->is_editing && *c->reason) {
        snprintf(buf, size, "x %s", c->reason);
        return TUI_BAD;
    }
    const enum tui_size screen = tui_size_of(app->grid.rows, app->grid.cols);
    if (c->is_editing) {
        if (c->line > 0)
            snprintf(buf, size, "%s is typed", c->label);
        else if (is_told(c, screen))
            snprintf(buf, size, "%s  was %s", c->label, *c->was ? c->was : "not set");
        else
            snprintf(buf, size, "%s: %s%s%s", c->label,
                     c->target.row ? c->target.row->help : "", *c->was ? "   was " : "",
                     c->was);
        return TUI_TEXT;
    }
    bool is_shown = screen >= TUI_NORMAL;
    if (!compose_is_empty(c) && s->errors.n > 0 && !is_shown) {
        const struct et_diagnostic *d = &s->errors.v[c->fault];
        size_t n = 0;
        if (s->errors.total > 1) /* behind the first there is no room for it */
            n = (size_t)snprintf(buf, size, "x (x lists all %d) ", s->errors.total);
        else
            n = (size_t)snprintf(buf, size, "x ");
        if (d->line > 0)
            snprintf(buf + n, size - n, "line %d, column %d: %s%s%s", d->line,
                     d->column, d->path, *d->path ? ": " : "", d->message);
        else
            snprintf(buf + n, size - n, "%s%s%s", d->path, *d->path ? ": " : "",
                     d->message);
        return TUI_BAD;
    }
    return is_told(c, screen) ? TUI_TEXT : about(c, buf, size);
}

static const char *
unsaved(struct tui_app *app, void *self)
{
    const struct compose *c = self;
    (void)app;
    return eti_sketch_is_changed(c->sketch)
               ? "The recipe has changes that are not saved."
               : NULL;
}

static void
save(struct tui_app *app, void *self, enum tui_action then)
{
    (void)app;
    compose_save_then(self, then);
}

/* ---- life ---- */

static et_status
open_screen(struct tui_app *app, void *self)
{
    struct compose *c = self;
    c->app = app;
    c->seen = -1;
    c->numbers.of = -1;
    tui_job_stop(&c->estimate);
    tui_job_stop(&c->explain);
    tui_job_stop(&c->outline);
    tui_job_stop(&c->launch);
    ET_TRY(eti_sketch_new(app->cx, NULL, &c->sketch));
    compose_refresh(c);
    return ET_OK;
}

static void
close_screen(struct tui_app *app, void *self)
{
    struct compose *c = self;
    tui_job_stop(&c->estimate);
    tui_job_stop(&c->explain);
    tui_job_stop(&c->outline);
    tui_job_stop(&c->launch);
    tui_samples_close(&c->samples);
    compose_forget_layers(c);
    eti_form_release(&c->form);
    eti_form_release(&c->options);
    eti_form_release(&c->before);
    et_recipe_free(&c->filed);
    eti_sketch_free(&c->sketch);
    json_decref(c->runs_alike);
    json_decref(c->settings);
    json_decref(c->setup.installed);
    et_free(app->cx, c->runs);
}

et_status
tui_compose_setup(struct tui_app *app, const struct tui_compose_setup *setup)
{
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    void *block;
    if (!c)
        return ET_EINVAL;
    json_decref(c->setup.installed);
    c->setup = *setup;
    json_incref(c->setup.installed);
    c->sketch->env = setup->env;
    const char *runs = setup->runs ? setup->runs : "runs";
    ET_TRY(et_alloc(app->cx, strlen(runs) + 1, &block));
    et_free(app->cx, c->runs);
    c->runs = memcpy(block, runs, strlen(runs) + 1);
    again(c);
    return ET_OK;
}

et_status
tui_compose_open(struct tui_app *app, const char *path)
{
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    if (!c)
        return ET_EINVAL;
    ET_TRY(eti_sketch_open(c->sketch, path));
    compose_begun(c);
    return ET_OK;
}

const struct tui_screen tui_screen_compose = {
    .where = TUI_IN_compose,
    .size = sizeof(struct compose),
    .open = open_screen,
    .close = close_screen,
    .draw = compose_draw,
    .place = place,
    .hint = hint,
    .message = message,
    .key = key,
    .act = act,
    .mouse = mouse,
    .tick = compose_tick,
    .unsaved = unsaved,
    .save = save,
};
