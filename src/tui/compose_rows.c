/* SPDX-License-Identifier: Apache-2.0 */
/* compose_rows.c: what the screen Compose lists: algorithms, keys, events, checks, and
 * what differs from the file. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/assemble/assemble.h"
#include "core/compose/timeline.h"
#include "tui/compose.h"

/* ---- sections that are open ---- */

int
compose_mode_at(const struct compose *c, const char *path, int first)
{
    for (int i = 0; i < c->n_sections; i++)
        if (strcmp(c->section[i].path, path) == 0)
            return c->section[i].mode;
    return first;
}

void
compose_turn_section(struct compose *c, const char *path, int mode)
{
    int at = 0;
    while (at < c->n_sections && strcmp(c->section[at].path, path) != 0)
        at++;
    if (at == TUI_C_SECTIONS)
        return;
    snprintf(c->section[at].path, sizeof c->section[at].path, "%s", path);
    c->section[at].mode = mode;
    c->n_sections += at == c->n_sections;
    compose_list_methods(c);
    compose_list_rows(c);
}

static int
first_mode(const struct compose *c, const struct eti_form_row *r)
{
    enum et_kind kind = r->row->kind;
    bool is_part = r->row->type == ET_OPT_PART || r->row->type == ET_OPT_PARTS;
    bool is_open =
        is_part && r->is_set && r->depth == 0 &&
        (kind == ET_KIND_MODEL || kind == ET_KIND_OPTIMIZER ||
         (kind == ET_KIND_SCHEDULER && c->has_room) || kind == ET_KIND_DATASET) &&
        strcmp(r->path, "eval_data") != 0;
    return is_open ? TUI_C_SET : TUI_C_SHUT;
}

/* The name of one of a list's items is a row above its options, as of "scheduler": it
 * is open where the list is. */
static bool
is_name_of_item(const struct eti_form_row *r)
{
    return r->part && !r->is_section && r->parent >= 0;
}

int
compose_mode_of(const struct compose *c, int row)
{
    while (row >= 0 && is_name_of_item(&c->form.row[row]))
        row = c->form.row[row].parent;
    if (row < 0)
        return compose_mode_at(c, "", TUI_C_SET);
    return compose_mode_at(c, c->form.row[row].path, first_mode(c, &c->form.row[row]));
}

/* ---- algorithms ---- */

const struct eti_method *
compose_method(const struct compose *c)
{
    return c->algorithms.at < c->n_shown ? &c->method[c->shown[c->algorithms.at]]
                                         : NULL;
}

bool
compose_fits(const struct compose *c, const struct eti_method *m)
{
    const char *domain = eti_recipe_domain(eti_sketch_shown(c->sketch));
    return strcmp(m->applies_to, "any") == 0 || strcmp(domain, "any") == 0 ||
           strcmp(m->applies_to, domain) == 0;
}

bool
compose_can_act(const struct compose *c, const struct eti_method *m)
{
    return compose_fits(c, m) || eti_sketch_is_on(c->sketch, m->name);
}

/* Puts method I in the list, unless it is there. */
static void
show_method(struct compose *c, int i)
{
    if (c->find.n > 0 && !strstr(c->method[i].name, c->find.text))
        return;
    for (int k = 0; k < c->n_shown; k++)
        if (c->shown[k] == i)
            return;
    c->shown[c->n_shown++] = i;
}

/* Those that are on, in the order of the recipe. */
static void
show_on(struct compose *c)
{
    const struct et_recipe *r = eti_sketch_shown(c->sketch);
    for (int k = 0; r && k < r->algorithms.n; k++)
        for (int i = 0; r->algorithms.v[k].component && i < c->n_methods; i++)
            if (strcmp(c->method[i].name, r->algorithms.v[k].component->name) == 0 &&
                eti_sketch_is_on(c->sketch, c->method[i].name))
                show_method(c, i);
    for (int i = 0; i < c->n_methods; i++)
        if (eti_sketch_is_on(c->sketch, c->method[i].name))
            show_method(c, i);
}

/* The cursor goes where NAME is listed, if it is. */
static void
stay_at(struct compose *c, const char *name)
{
    for (int i = 0; i < c->n_shown; i++)
        if (strcmp(c->method[c->shown[i]].name, name) == 0)
            c->algorithms.at = i;
    int last = c->n_shown - 1 + c->has_fold;
    if (c->algorithms.at > last)
        c->algorithms.at = last > 0 ? last : 0;
}

/* Which methods are shown: those that are on, those that can act, and, where they are
 * asked for, the others; the one that was selected stays so. */
void
compose_list_methods(struct compose *c)
{
    enum { FEW = 4 }; /* of a recipe's section before it is opened */
    const struct eti_method *old = compose_method(c);
    char name[64] = "";
    if (old)
        snprintf(name, sizeof name, "%s", old->name);
    c->n_methods = eti_methods(c->setup.env ? c->setup.env->registry : NULL, c->method,
                               ETI_METHODS_MAX);
    bool finds = c->find.n > 0;
    bool has_few = c->is_inline && !finds && c->filter == TUI_C_CAN &&
                   compose_mode_at(c, "algorithms", TUI_C_SET) != TUI_C_WHOLE;
    c->n_shown = c->n_on = c->n_can = 0;
    for (int i = 0; i < c->n_methods; i++) {
        c->n_on += eti_sketch_is_on(c->sketch, c->method[i].name);
        c->n_can += compose_can_act(c, &c->method[i]);
    }
    show_on(c);
    for (int i = 0; i < c->n_methods && (finds || c->filter != TUI_C_ON); i++)
        if (compose_can_act(c, &c->method[i]) && !(has_few && c->n_shown >= FEW))
            show_method(c, i);
    for (int i = 0; i < c->n_methods && (finds || c->filter == TUI_C_ALL); i++)
        show_method(c, i);
    c->has_fold = !finds && (c->n_shown < c->n_methods || c->filter == TUI_C_ALL);
    stay_at(c, name);
}

void
compose_list_options(struct compose *c)
{
    const struct eti_method *m = compose_method(c);
    eti_form_release(&c->options);
    c->options_of = m;
    if (!m)
        return;
    if (eti_form_of_algorithm(c->sketch->cx, c->sketch->recipe, m->class,
                              &c->options) != ET_OK)
        tui_say_error(c->app);
}

/* ---- checks and events ---- */

static bool
is_ignored(const struct compose *c, const struct eti_check *check)
{
    for (int i = 0; i < c->n_ignored; i++)
        if (strcmp(c->ignored[i], check->text) == 0)
            return true;
    return false;
}

/* Takes those of CHECK [N] that are warnings, or those that are not. */
static void
take_checks(struct compose *c, const struct eti_check *check, int n, bool warnings)
{
    for (int i = 0; i < n && c->n_checks < ETI_CHECKS_MAX; i++)
        if (check[i].is_warning == warnings &&
            (!warnings || check[i].is_fatal || !is_ignored(c, &check[i])))
            c->check[c->n_checks++] = check[i];
}

void
compose_list_checks(struct compose *c)
{
    const struct et_recipe *recipe = eti_sketch_shown(c->sketch);
    const struct tui_compose_numbers *known = &c->numbers;
    struct eti_check all[ETI_CHECKS_MAX], seen[ETI_CHECKS_MAX];
    struct eti_found found = {.checkpoint_bytes = NAN, .free_bytes = NAN};
    if (compose_is_estimated(c) && known->is_known)
        found = known->found;
    else if (compose_is_estimated(c))
        snprintf(found.problem, sizeof found.problem, "%s", known->problem);
    found.is_refused = compose_is_refused(c);
    snprintf(found.run, sizeof found.run, "%s", c->last_run);
    found.microbatches = c->last_microbatches;
    int n = eti_checks(c->sketch->cx, recipe, all, ETI_CHECKS_MAX);
    int n_seen = eti_checks_found(c->sketch->cx, recipe, &found, seen, ETI_CHECKS_MAX);
    c->n_checks = 0;
    take_checks(c, seen, n_seen, true);
    take_checks(c, all, n, true);
    c->n_warnings = c->n_checks;
    c->n_fatal = c->n_warnings > 0 && c->check[0].is_fatal;
    take_checks(c, all, n, false);
    take_checks(c, seen, n_seen, false);
}

/* The events at which somebody acts, in their order. */
void
compose_list_events(struct compose *c)
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
 * others follow. "algorithms" is their section, where they have no panel. */
static const char *const main_keys[] = {
    "model",        "train_data", "eval_data", "optimizer",  "scheduler",
    "max_duration", "algorithms", "precision", "grad_accum", "seed",
    "checkpoint",   "loggers",    "launch"};
enum { N_MAIN = sizeof main_keys / sizeof *main_keys, ALGORITHMS = 6 };

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

/* The form counts what stands in a list, also where the text has one thing without a
 * list: "scheduler.0.t_warmup" for scheduler: {t_warmup: 1ep}. */
bool
compose_is_path(const char *told, const char *path)
{
    const char *at = path;
    while (*told) {
        if (*told == *at) {
            told++;
            at++;
        } else if (strncmp(at, "0.", 2) == 0 && at > path && at[-1] == '.') {
            at += 2;
        } else {
            return false;
        }
    }
    return !*at;
}

/* Some keys are required by others, so the faults are asked as well. */
bool
compose_is_missing(const struct compose *c, const struct eti_form_row *r)
{
    char says[96], path[ETI_PATH_BYTES];
    if (r->is_set || r->is_section)
        return false;
    if (r->row->flags & ET_OPT_REQUIRED)
        return true;
    snprintf(says, sizeof says, "key '%.64s' is missing", r->label);
    for (int i = 0; i < c->sketch->errors.n; i++) {
        const struct et_diagnostic *d = &c->sketch->errors.v[i];
        if (d->code == ET_E_MISSING && strcmp(d->message, says) == 0 &&
            compose_is_path(eti_path_join(path, d->path, r->label), r->path))
            return true;
    }
    return false;
}

int
compose_name_of(const struct compose *c, int i)
{
    int found = -1;
    for (int k = i + 1; k < c->form.n && c->form.row[k].depth > c->form.row[i].depth;
         k++) {
        const struct eti_form_row *r = &c->form.row[k];
        if (r->parent != i || !r->part || strcmp(r->label, "name") != 0)
            continue;
        if (found >= 0)
            return -1; /* a list of several */
        found = k;
    }
    return found;
}

int
compose_depth_of(const struct compose *c, int i)
{
    int depth = c->form.row[i].depth;
    for (int p = c->form.row[i].parent; p >= 0; p = c->form.row[p].parent)
        depth -= c->form.row[p].parent >= 0 &&
                 compose_name_of(c, c->form.row[p].parent) == p;
    return depth;
}

/* Does row I, or one of its section, have what is looked for in its path? */
static bool
is_found(const struct compose *c, int i)
{
    const int depth = c->form.row[i].depth;
    if (strstr(c->form.row[i].path, c->find.text))
        return true;
    for (int k = i + 1; k < c->form.n && c->form.row[k].depth > depth; k++)
        if (strstr(c->form.row[k].path, c->find.text))
            return true;
    return false;
}

static bool
is_row_shown(const struct compose *c, int i)
{
    const struct eti_form_row *r = &c->form.row[i];
    if (c->finds_keys)
        return is_found(c, i) &&
               !(r->parent >= 0 && compose_name_of(c, r->parent) == i);
    int mode = compose_mode_of(c, r->parent);
    bool is_told = r->is_set || r->part || compose_is_missing(c, r) ||
                   (r->depth == 0 && main_key(r->path) < N_MAIN);
    for (int p = r->parent; p >= 0; p = c->form.row[p].parent)
        if (compose_mode_of(c, p) == TUI_C_SHUT)
            return false;
    if (r->parent >= 0 && compose_name_of(c, r->parent) == i)
        return false; /* it stands beside the section */
    return mode == TUI_C_WHOLE || is_told;
}

static void
add_row(struct compose *c, enum tui_compose_kind kind, int at)
{
    if (c->n_rows < TUI_C_ROWS)
        c->row[c->n_rows++] = (struct tui_compose_row){kind, at};
}

static void
list_section(struct compose *c)
{
    add_row(c, TUI_C_METHODS, 0);
    if (compose_mode_at(c, "algorithms", TUI_C_SET) == TUI_C_SHUT && c->find.n == 0)
        return;
    for (int i = 0; i < c->n_shown; i++)
        add_row(c, TUI_C_METHOD, i);
    if (c->has_fold)
        add_row(c, TUI_C_FOLDED, c->n_shown);
}

void
compose_list_rows(struct compose *c)
{
    c->n_rows = 0;
    c->finds_keys = false;
    for (int i = 0; i < c->form.n && c->find.n > 0; i++)
        c->finds_keys = c->finds_keys || strstr(c->form.row[i].path, c->find.text);
    for (int key = 0; key <= N_MAIN && c->form.n > 0; key++) {
        if (key == ALGORITHMS && c->is_inline)
            list_section(c);
        for (int i = 0; i < c->form.n; i++)
            if (main_key(c->form.row[i].path) == key && is_row_shown(c, i))
                add_row(c, TUI_C_KEY, i);
    }
    if (c->form.n > 0 && !c->finds_keys)
        add_row(c, TUI_C_MORE, 0);
    if (c->recipe.at >= c->n_rows)
        c->recipe.at = c->n_rows > 0 ? c->n_rows - 1 : 0;
}

const struct eti_form_row *
compose_key_row(const struct compose *c)
{
    if (c->recipe.at >= c->n_rows || c->row[c->recipe.at].kind != TUI_C_KEY)
        return NULL;
    return &c->form.row[c->row[c->recipe.at].at];
}

/* ---- what differs from the file ---- */

static void
add_change(struct compose *c, char sign, const char *path, const char *from,
           const char *to)
{
    struct tui_compose_change *x;
    if (c->n_changes++ >= TUI_C_CHANGES)
        return;
    x = &c->change[c->n_changes - 1];
    *x = (struct tui_compose_change){.sign = sign};
    snprintf(x->path, sizeof x->path, "%s", path);
    if (from && to)
        snprintf(x->text, sizeof x->text, "%.40s -> %.40s", from, to);
    else
        snprintf(x->text, sizeof x->text, "%.90s", from ? from : to ? to : "");
}

static const struct eti_form_row *
find_row(const struct eti_form *f, const char *path)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->row[i].path, path) == 0)
            return &f->row[i];
    return NULL;
}

static bool
is_written(const struct eti_form_row *r)
{
    return r && r->is_set && !r->is_section;
}

/* Keys of NOW against those of BEFORE. */
static void
compare_forms(struct compose *c, const struct eti_form *before,
              const struct eti_form *now)
{
    for (int i = 0; i < now->n; i++) {
        const struct eti_form_row *r = &now->row[i], *old = find_row(before, r->path);
        if (!is_written(r))
            continue;
        if (!is_written(old))
            add_change(c, '+', r->path, NULL, r->value);
        else if (strcmp(old->value, r->value) != 0)
            add_change(c, '~', r->path, old->value, r->value);
    }
    for (int i = 0; i < before->n; i++)
        if (is_written(&before->row[i]) &&
            !is_written(find_row(now, before->row[i].path)))
            add_change(c, '-', before->row[i].path, before->row[i].value, NULL);
}

static bool
has_method(const struct et_recipe *r, const char *name)
{
    for (int i = 0; i < r->algorithms.n; i++)
        if (r->algorithms.v[i].component && !r->algorithms.v[i].off &&
            strcmp(r->algorithms.v[i].component->name, name) == 0)
            return true;
    return false;
}

static void
compare_methods(struct compose *c, const struct et_recipe *before,
                const struct et_recipe *now)
{
    for (int i = 0; i < c->n_methods; i++) {
        const struct eti_method *m = &c->method[i];
        char path[ETI_PATH_BYTES];
        bool was = has_method(before, m->name);
        bool is = has_method(now, m->name);
        eti_path_join(path, "algorithms", m->name);
        if (was != is)
            add_change(c, is ? '+' : '-', path, NULL, is ? "on" : "off");
        if (!was || !is)
            continue;
        struct eti_form a, b = {0};
        if (eti_form_of_algorithm(c->sketch->cx, before, m->class, &a) == ET_OK &&
            eti_form_of_algorithm(c->sketch->cx, now, m->class, &b) == ET_OK)
            compare_forms(c, &a, &b);
        else
            et_error_clear(c->sketch->cx);
        eti_form_release(&a);
        eti_form_release(&b);
    }
}

/* Reads the file's text, as it was when it was read or written. */
static void
read_filed(struct compose *c)
{
    const struct eti_sketch *s = c->sketch;
    struct et_diagnostics errors = {0};
    if (c->filed_text == s->saved)
        return;
    eti_form_release(&c->before);
    et_recipe_free(&c->filed);
    c->filed_text = s->saved;
    if (!s->saved)
        return;
    if (eti_recipe_sketch(s->cx, s->saved, s->n_saved, s->name, eti_sketch_place(s),
                          NULL, 0, s->env, &c->filed, &errors) != ET_OK ||
        (c->filed && eti_form_of_recipe(s->cx, c->filed, &c->before) != ET_OK))
        et_error_clear(s->cx);
}

void
compose_list_changes(struct compose *c)
{
    c->n_changes = 0;
    read_filed(c);
    if (!c->filed || !c->sketch->recipe)
        return;
    compare_forms(c, &c->before, &c->form);
    compare_methods(c, c->filed, c->sketch->recipe);
}

const struct tui_compose_change *
compose_change_at(const struct compose *c, const char *path)
{
    int n = c->n_changes < TUI_C_CHANGES ? c->n_changes : TUI_C_CHANGES;
    for (int i = 0; i < n; i++)
        if (strcmp(c->change[i].path, path) == 0)
            return &c->change[i];
    return NULL;
}
