/* compose.c: the screen Compose: a recipe as a form, its algorithms, and when they act.
 *
 * All of it is made anew from the sketch (core/compose/sketch.h) whenever its text has
 * changed; what takes long (estimate, learning rate) another process computes. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/compose/timeline.h"
#include "core/run/assemble.h"
#include "tui/compose.h"

/* ---- what is shown ---- */

const struct eti_method *
compose_method(const struct compose *c)
{
    return c->n_shown > 0 ? &c->method[c->shown[c->algorithms.at]] : NULL;
}

bool
compose_is_empty(const struct compose *c)
{
    return c->sketch->n == 0 && !c->sketch->path && c->sketch->at_step == 0;
}

bool
compose_fits(const struct compose *c, const struct eti_method *m)
{
    const char *domain = eti_recipe_domain(eti_sketch_shown(c->sketch));
    return strcmp(m->applies_to, "any") == 0 || strcmp(domain, "any") == 0 ||
           strcmp(m->applies_to, domain) == 0;
}

/* Can it be turned on? Those that cannot stand behind the others. */
static bool
is_open(const struct compose *c, const struct eti_method *m)
{
    return m->built && (compose_fits(c, m) || eti_sketch_is_on(c->sketch, m->name));
}

static bool
passes(const struct compose *c, const struct eti_method *m)
{
    if (c->find.n > 0 && !strstr(m->name, c->find.text))
        return false;
    if (c->filter == TUI_C_DOMAIN)
        return compose_fits(c, m);
    return c->filter == TUI_C_ALL || eti_sketch_is_on(c->sketch, m->name);
}

/* Which methods are shown; the one that was selected stays so. */
static void
list_methods(struct compose *c)
{
    const struct eti_method *old = compose_method(c);
    char name[64] = "";
    if (old)
        snprintf(name, sizeof name, "%s", old->name);
    c->n_methods = eti_methods(c->setup.env ? c->setup.env->registry : NULL, c->method,
                               ETI_METHODS_MAX);
    c->n_shown = 0;
    for (int open = 1; open >= 0; open--)
        for (int i = 0; i < c->n_methods; i++)
            if (is_open(c, &c->method[i]) == open && passes(c, &c->method[i]))
                c->shown[c->n_shown++] = i;
    for (int i = 0; i < c->n_shown; i++)
        if (strcmp(c->method[c->shown[i]].name, name) == 0)
            c->algorithms.at = i;
    if (c->algorithms.at >= c->n_shown)
        c->algorithms.at = c->n_shown > 0 ? c->n_shown - 1 : 0;
}

static bool
is_ignored(const struct compose *c, const struct eti_check *check)
{
    for (int i = 0; i < c->n_ignored; i++)
        if (strcmp(c->ignored[i], check->text) == 0)
            return true;
    return false;
}

void
compose_list_checks(struct compose *c)
{
    const struct et_recipe *recipe = eti_sketch_shown(c->sketch);
    const struct tui_compose_numbers *known = &c->numbers;
    struct eti_check all[ETI_CHECKS_MAX];
    int n = eti_checks(c->sketch->cx, recipe, all, ETI_CHECKS_MAX);
    struct eti_found found = {.checkpoint_bytes = NAN, .free_bytes = NAN};
    if (known->is_known && known->of == c->sketch->changes)
        found = known->found;
    snprintf(found.run, sizeof found.run, "%s", c->last_run);
    found.microbatches = c->last_microbatches;
    n += eti_checks_found(c->sketch->cx, recipe, &found, all + n, ETI_CHECKS_MAX - n);
    c->n_checks = 0;
    for (int i = 0; i < n; i++)
        if (all[i].is_warning && !is_ignored(c, &all[i]))
            c->check[c->n_checks++] = all[i];
    c->n_warnings = c->n_checks;
    for (int i = 0; i < n; i++)
        if (!all[i].is_warning)
            c->check[c->n_checks++] = all[i];
}

/* The events at which somebody acts, in their order. */
static void
list_events(struct compose *c)
{
    const struct et_recipe *r = eti_sketch_shown(c->sketch);
    uint64_t any = 0;
    for (int i = 0; r && i < r->algorithms.n; i++)
        if (r->algorithms.v[i].component && !r->algorithms.v[i].off)
            any |= ETI_CLASS(algorithm, r->algorithms.v[i].component)->events;
    c->n_events = 0;
    for (int e = 0; e < ET_EVENT_COUNT && c->n_events < TUI_C_EVENTS; e++)
        if (any & UINT64_C(1) << e)
            c->event[c->n_events++] = e;
}

/* ---- the recipe's rows ---- */

/* Keys in the order in which people think of them, shown even if they are not set; the
 * others follow. */
static const char *const main_keys[] = {
    "model",     "train_data", "eval_data", "optimizer",  "scheduler", "max_duration",
    "precision", "grad_accum", "seed",      "checkpoint", "loggers",   "launch"};
enum { N_MAIN = sizeof main_keys / sizeof *main_keys };

/* The place of the top-level key that PATH begins with; N_MAIN for the others. */
static int
main_key(const char *path)
{
    size_t n = strcspn(path, ".");
    int i = 0;
    while (i < N_MAIN &&
           (strlen(main_keys[i]) != n || strncmp(main_keys[i], path, n) != 0))
        i++;
    return i;
}

static int
first_mode(const struct eti_form_row *r)
{
    enum et_kind kind = r->row->kind;
    bool is_part = r->row->type == ET_OPT_PART || r->row->type == ET_OPT_PARTS;
    bool is_open = is_part && r->is_set && r->depth == 0 &&
                   (kind == ET_KIND_MODEL || kind == ET_KIND_OPTIMIZER ||
                    kind == ET_KIND_SCHEDULER || kind == ET_KIND_DATASET) &&
                   strcmp(r->path, "eval_data") != 0;
    return is_open ? TUI_C_SET : TUI_C_SHUT;
}

static int
mode_of(const struct compose *c, const char *path, int first)
{
    for (int i = 0; i < c->n_sections; i++)
        if (strcmp(c->section[i].path, path) == 0)
            return c->section[i].mode;
    return first;
}

int
compose_mode_of(const struct compose *c, int row)
{
    if (row < 0)
        return mode_of(c, "", TUI_C_SET);
    return mode_of(c, c->form.row[row].path, first_mode(&c->form.row[row]));
}

static bool
is_row_shown(const struct compose *c, int i)
{
    const struct eti_form_row *r = &c->form.row[i];
    int mode = compose_mode_of(c, r->parent);
    bool is_told =
        r->is_set || r->part || (r->depth == 0 && main_key(r->path) < N_MAIN);
    for (int p = r->parent; p >= 0; p = c->form.row[p].parent)
        if (compose_mode_of(c, p) == TUI_C_SHUT)
            return false;
    return mode == TUI_C_WHOLE || is_told;
}

static void
list_rows(struct compose *c)
{
    enum { MOST = sizeof c->row / sizeof *c->row };
    c->n_rows = 0;
    for (int key = 0; key <= N_MAIN; key++)
        for (int i = 0; i < c->form.n && c->n_rows < MOST - 1; i++)
            if (main_key(c->form.row[i].path) == key && is_row_shown(c, i))
                c->row[c->n_rows++] = i;
    if (c->form.n > 0)
        c->row[c->n_rows++] = -1; /* the other keys, or less of them */
}

/* ---- all of it ---- */

void
compose_list_options(struct compose *c)
{
    const struct eti_method *m = compose_method(c);
    eti_form_release(&c->options);
    if (!m || !m->built)
        return;
    if (eti_form_of_algorithm(c->sketch->cx, c->sketch->recipe, m->built,
                              &c->options) != ET_OK)
        tui_say_error(c->app);
}

void
compose_refresh(struct compose *c)
{
    if (c->seen == c->sketch->changes)
        return;
    const struct et_recipe *recipe =
        c->sketch->recipe ? c->sketch->recipe : c->sketch->last;
    c->seen = c->sketch->changes;
    c->asked = tui_now(c->app);
    eti_form_release(&c->form);
    if (recipe && eti_form_of_recipe(c->sketch->cx, recipe, &c->form) != ET_OK)
        tui_say_error(c->app);
    list_methods(c);
    compose_list_options(c);
    compose_list_checks(c);
    list_events(c);
    list_rows(c);
    c->app->changed = true;
}

static void
again(struct compose *c)
{
    c->seen = -1;
    compose_refresh(c);
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
    struct tui_list *l = compose_list(c, c->focus);
    int before = l->at;
    if (c->shows_diff &&
        (action == TUI_DO_everywhere_up || action == TUI_DO_everywhere_down)) {
        c->diff_top += action == TUI_DO_everywhere_up ? -1 : 1;
        return true;
    }
    if (!tui_list_act(l, action))
        return false;
    if (c->focus == TUI_C_ALGORITHMS && l->at != before) {
        c->values = (struct tui_list){0};
        compose_list_options(c);
    }
    return true;
}

/* A section: shut, what is set, all of it, and so on. */
static void
open_section(struct compose *c, int i)
{
    const char *path = i < 0 ? "" : c->form.row[i].path;
    int mode = compose_mode_of(c, i) + 1, at = 0;
    if (mode > TUI_C_WHOLE)
        mode = i < 0 ? TUI_C_SET : TUI_C_SHUT;
    while (at < c->n_sections && strcmp(c->section[at].path, path) != 0)
        at++;
    if (at == TUI_C_SECTIONS)
        return;
    snprintf(c->section[at].path, sizeof c->section[at].path, "%s", path);
    c->section[at].mode = mode;
    c->n_sections += at == c->n_sections;
    list_rows(c);
}

static void
open_selected(struct compose *c)
{
    if (c->focus == TUI_C_TIMELINE) {
        compose_say_why(c);
    } else if (c->focus == TUI_C_ALGORITHMS) {
        c->focus = TUI_C_OPTIONS;
    } else if (c->focus == TUI_C_RECIPE && c->n_rows > 0) {
        int i = c->row[c->recipe.at];
        if (i < 0 || c->form.row[i].is_section)
            open_section(c, i);
        else
            compose_edit(c);
    } else {
        compose_edit(c);
    }
}

static void
turn_filter(struct compose *c)
{
    static const char *const words[] = {"all", "those for this model",
                                        "those that are on"};
    c->filter = (c->filter + 1) % TUI_C_FILTERS;
    list_methods(c);
    compose_list_options(c);
    tui_say(c->app, TUI_TEXT, "algorithms: %s", words[c->filter]);
}

static bool
close_something(struct compose *c)
{
    bool any = c->shows_diff || c->is_full || c->find.n > 0;
    c->shows_diff = c->is_full = false;
    if (c->find.n > 0) {
        tui_field_set(&c->find, "");
        list_methods(c);
        compose_list_options(c);
    }
    return any;
}

static bool
act(struct tui_app *app, void *self, enum tui_action action)
{
    struct compose *c = self;
    (void)app;
    if (act_on_list(c, action))
        return true;
    switch (action) {
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
    case TUI_DO_compose_panel:
    case TUI_DO_everywhere_next_panel:
        c->focus = (c->focus + 1) % TUI_C_PANELS;
        break;
    case TUI_DO_everywhere_previous_panel:
        c->focus = (c->focus + TUI_C_PANELS - 1) % TUI_C_PANELS;
        break;
    case TUI_DO_everywhere_open:
        open_selected(c);
        break;
    case TUI_DO_compose_toggle:
    case TUI_DO_everywhere_toggle:
        compose_toggle(c);
        break;
    case TUI_DO_compose_find:
        c->focus = TUI_C_ALGORITHMS;
        c->is_finding = true;
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
        if (pressed == TUI_K_ESC)
            tui_field_set(&c->find, "");
        taken = tui_field_key(&c->find, pressed) || !c->is_finding ||
                (pressed >= ' ' && pressed < TUI_K_UP); /* too wide for a cell */
        list_methods(c);
        compose_list_options(c);
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
    return compose_is_empty(c) && !c->is_editing ? TUI_IN_start : TUI_IN_compose;
}

/* The panel at Y, X of the grid; -1: none. */
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
    if (panel == TUI_C_ALGORITHMS) {
        c->values = (struct tui_list){0};
        compose_list_options(c);
    }
    if (was && panel == TUI_C_ALGORITHMS)
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
    if (m->what == TUI_CLICK)
        click(c, m->y + top, m->x);
    else if (m->what == TUI_WHEEL_UP)
        act_on_list(c, TUI_DO_everywhere_up);
    else if (m->what == TUI_WHEEL_DOWN)
        act_on_list(c, TUI_DO_everywhere_down);
}

/* ---- messages ---- */

static enum tui_role
message(struct tui_app *app, void *self, char *buf, size_t size)
{
    struct compose *c = self;
    const struct eti_method *m = compose_method(c);
    const struct eti_sketch *s = c->sketch;
    (void)app;
    if (c->is_finding) {
        snprintf(buf, size, "/ %s", c->find.text);
        return TUI_TITLE;
    }
    if (c->is_editing && *c->reason) {
        snprintf(buf, size, "x %s", c->reason);
        return TUI_BAD;
    }
    if (c->is_editing) {
        const char *help = c->line == 0 && c->target.row ? c->target.row->help : NULL;
        snprintf(buf, size, "%s: %s   enter sets it, esc leaves it", c->label,
                 help ? help : "");
        return TUI_TEXT;
    }
    if (!compose_is_empty(c) && s->errors.n > 0) {
        const struct et_diagnostic *d = &s->errors.v[0];
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
    if (c->focus == TUI_C_RECIPE && c->n_rows > 0 && c->row[c->recipe.at] >= 0) {
        const struct eti_form_row *r = &c->form.row[c->row[c->recipe.at]];
        char expects[160];
        snprintf(buf, size, "%s: %s   %s", r->path, r->row->help,
                 r->part || r->is_section
                     ? ""
                     : et_option_expects(r->row, expects, sizeof expects));
    } else if (c->focus == TUI_C_OPTIONS && c->values.at < c->options.n) {
        const struct eti_form_row *r = &c->options.row[c->values.at];
        char expects[160];
        snprintf(buf, size, "%s: %s   %s", r->label, r->row->help,
                 et_option_expects(r->row, expects, sizeof expects));
    } else if (m && !compose_is_empty(c)) {
        snprintf(buf, size, "%s  %s%s", m->name, m->summary,
                 m->built ? "" : "   (a later version brings it)");
    }
    return TUI_TEXT;
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
    tui_job_stop(&c->launch);
    eti_form_release(&c->form);
    eti_form_release(&c->options);
    eti_sketch_free(&c->sketch);
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
    c->n_ignored = c->n_sections = 0;
    c->algorithms = c->values = c->timeline = c->recipe = (struct tui_list){0};
    compose_find_alike(c);
    again(c);
    return ET_OK;
}

const struct tui_screen tui_screen_compose = {
    .where = TUI_IN_compose,
    .size = sizeof(struct compose),
    .open = open_screen,
    .close = close_screen,
    .draw = compose_draw,
    .place = place,
    .message = message,
    .key = key,
    .act = act,
    .mouse = mouse,
    .tick = compose_tick,
    .unsaved = unsaved,
};
