/* SPDX-License-Identifier: Apache-2.0 */
/* compose_panels.c: the lists of Compose: algorithms, and the recipe. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/compose/form.h"
#include "tui/compose.h"
#include "tui/glyphs.h"

/* Columns: of values and their marks in the recipe; of an algorithm's name; of what is
 * said of it, where a name may be long and where there is room for its sort. */
enum { VALUE = 25, NARROW_VALUE = 21, NAME = 5, NOTE = 26, SORT = 29, WIDE_NOTE = 37 };

void
compose_remember(struct compose *c, enum tui_compose_panel panel,
                 const struct tui_pane *p)
{
    c->area[panel] = (struct tui_rect){p->y, p->x, p->h, p->w};
}

void
compose_put_marker(const struct tui_pane *p, int y, bool is_here, bool has_focus)
{
    if (is_here)
        tui_select(p, y, has_focus);
}

enum tui_role
compose_sign_role(const struct tui_compose_change *change)
{
    return change->sign == '+'   ? TUI_ADD
           : change->sign == '-' ? TUI_REMOVE
                                 : TUI_CHANGED;
}

int
compose_put_cut(const struct tui_pane *p, int y, int x, enum tui_role role, int w,
                const char *text)
{
    bool is_ascii = p->grid->glyphs->is_ascii;
    int used = tui_width(text), mark = is_ascii ? 2 : 1;
    if (used <= w)
        return tui_put(p, y, x, role, text);
    if (w <= mark)
        return 0;
    used = tui_put_n(p, y, x, role, 0, w - mark, text, strlen(text));
    return used + tui_put(p, y, x + used, role, is_ascii ? ".." : "\u2026");
}

/* The sign before what can be folded. */
static void
put_sign(const struct tui_pane *p, int y, int x, bool is_shut)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    tui_put_ch(p, y, x, is_shut ? g->folded : g->more, TUI_DIM, 0);
}

/* ---- algorithms ---- */

/* "half_life 100ba": what is set of it, or the first of its defaults, as much as has
 * room in W columns. */
static const char *
sum_up(const struct compose *c, const struct eti_method *m, char *buf, size_t size,
       int w)
{
    const struct et_recipe *r = c->sketch->recipe;
    struct eti_form f = {0};
    size_t used = 0;
    buf[0] = '\0';
    if (!r || eti_form_of_algorithm(c->sketch->cx, r, m->class, &f) != ET_OK) {
        et_error_clear(c->sketch->cx);
        eti_form_release(&f);
        return buf;
    }
    for (int set = 1; set >= 0; set--)
        for (int i = 0; i < f.n; i++) {
            char piece[160];
            int n = snprintf(piece, sizeof piece, "%s%s %.120s", used ? "  " : "",
                             f.row[i].label, f.row[i].value);
            if (f.row[i].is_set != set || strcmp(f.row[i].value, "null") == 0)
                continue;
            if (tui_width(buf) + tui_width(piece) > w || used + (size_t)n >= size)
                w = 0; /* what follows is less telling */
            else
                used += (size_t)snprintf(buf + used, size - used, "%s", piece);
        }
    eti_form_release(&f);
    return buf;
}

/* Why METHOD cannot act here. */
static const char *
reason_of(const struct compose *c, const struct eti_method *m, char *buf, size_t size)
{
    if (!compose_fits(c, m))
        snprintf(buf, size, "%s only", m->applies_to);
    else
        buf[0] = '\0';
    return buf;
}

static void
put_method(const struct compose *c, const struct tui_pane *p, int y, int x,
           const struct eti_method *m)
{
    char text[160];
    bool is_on = eti_sketch_is_on(c->sketch, m->name);
    bool can = compose_can_act(c, m);
    bool is_wide = p->w >= WIDE_NOTE + 12;
    enum tui_role role = is_on ? TUI_GOOD : can ? TUI_TEXT : TUI_OFF;
    snprintf(text, sizeof text, "[%c]", is_on ? 'x' : can ? ' ' : '-');
    tui_put(p, y, x, role, text);
    int end = x + 4 +
              tui_put_n(p, y, x + 4, is_on ? TUI_TEXT : role, 0, p->w - x - 5, m->name,
                        strlen(m->name));
    int note = is_wide ? WIDE_NOTE : x + NOTE - NAME;
    if (is_wide)
        tui_put(p, y, SORT, TUI_DIM, eti_sort_word(m->sort));
    if (note < end + 2)
        note = end + 2;
    int room = p->w - note - 1;
    if (can)
        sum_up(c, m, text, sizeof text, room);
    else
        reason_of(c, m, text, sizeof text);
    if (tui_width(text) <= room)
        tui_put(p, y, note, TUI_DIM, text);
}

/* "5 more can act, 19 cannot act here" at the end of a list. */
static void
put_fold(const struct compose *c, const struct tui_pane *p, int y, int x)
{
    char text[80] = "";
    int can = c->n_can - (c->filter == TUI_C_ON ? c->n_on : c->n_shown);
    int cannot = c->n_methods - c->n_can;
    if (c->filter == TUI_C_ALL)
        snprintf(text, sizeof text, "only those that can act");
    else if (can > 0 && cannot > 0)
        snprintf(text, sizeof text, "%d more, %d cannot act here", can, cannot);
    else if (can > 0)
        snprintf(text, sizeof text, "%d more", can);
    else
        snprintf(text, sizeof text, "%d cannot act here", cannot);
    put_sign(p, y, x, c->filter != TUI_C_ALL);
    compose_put_cut(p, y, x + 2, TUI_DIM, p->w - x - 3, text);
}

void
compose_draw_algorithms(struct compose *c, const struct tui_pane *p, bool has_focus)
{
    static const char *const filters[] = {"", ", on", ", all"};
    char title[96];
    bool finds = c->is_finding || c->find.n > 0;
    int rows = p->h - 1 - finds, n = c->n_shown + c->has_fold;
    snprintf(title, sizeof title, "algorithms %d of %d on%s", c->n_on, c->n_can,
             filters[c->filter]);
    compose_remember(c, TUI_C_ALGORITHMS, p);
    tui_title(p, 0, title, has_focus);
    tui_list_show(&c->algorithms, n, rows);
    for (int i = 0; i < rows && c->algorithms.top + i < n; i++) {
        int at = c->algorithms.top + i;
        compose_put_marker(p, 1 + i, at == c->algorithms.at, has_focus);
        if (at < c->n_shown)
            put_method(c, p, 1 + i, 1, &c->method[c->shown[at]]);
        else
            put_fold(c, p, 1 + i, 1);
    }
    if (n == 0)
        tui_put(p, 1, 2, TUI_DIM, "none: esc ends the search");
    if (!finds)
        return;
    tui_put(p, p->h - 1, 1, TUI_TITLE, "/");
    if (c->is_finding)
        tui_field_draw(&c->find, p, p->h - 1, 3, p->w - 4, NULL);
    else
        tui_putf(p, p->h - 1, 3, TUI_DIM, "%s   esc: all", c->find.text);
}

/* ---- values ---- */

/* The fault of ROW; NULL: it is right. */
static const struct et_diagnostic *
fault_of(const struct compose *c, const struct eti_form_row *r)
{
    char part[ETI_PATH_BYTES];
    size_t n = strlen(r->path);
    bool is_name = r->part && n > 5 && strcmp(r->path + n - 5, ".name") == 0;
    snprintf(part, sizeof part, "%.*s", (int)(is_name ? n - 5 : n), r->path);
    for (int i = 0; i < c->sketch->errors.n; i++) {
        const char *path = c->sketch->errors.v[i].path;
        if (compose_is_path(path, r->path) ||
            (is_name && compose_is_path(path, part) &&
             c->sketch->errors.v[i].code != ET_E_MISSING &&
             strncmp(c->sketch->errors.v[i].message, "unknown key", 11) != 0))
            return &c->sketch->errors.v[i];
    }
    return NULL;
}

void
compose_put_value(struct compose *c, const struct tui_pane *p, int y, int x, int w,
                  const struct eti_form_row *r)
{
    bool is_typed = c->is_editing && c->line == 0 && strcmp(c->path, r->path) == 0;
    const struct et_diagnostic *fault = fault_of(c, r);
    char text[TUI_FIELD];
    if (is_typed) {
        tui_field_draw(&c->field, p, y, x, w, *c->reason ? c->reason : NULL);
        return;
    }
    if (compose_is_missing(c, r)) {
        tui_put(p, y, x, TUI_BAD, "x needed");
        return;
    }
    if (fault) { /* what was not understood is as if it were not written */
        int used = tui_put(p, y, x, TUI_BAD, "x ");
        compose_put_cut(p, y, x + used, TUI_BAD, w - used,
                        compose_wrong_text(c, fault, text, sizeof text));
        return;
    }
    const char *value = strcmp(r->value, "null") == 0 ? "-" : r->value;
    compose_put_cut(p, y, x, r->is_set ? TUI_TEXT : TUI_DIM, w, value);
}

/* ---- the recipe ---- */

static void
put_key(struct compose *c, const struct tui_pane *p, int y, int x, int i)
{
    const struct eti_form_row *r = &c->form.row[i];
    int in = 3 + 2 * compose_depth_of(c, i);
    int name = r->is_section ? compose_name_of(c, i) : -1;
    bool is_shut = r->is_section && compose_mode_of(c, i) == TUI_C_SHUT;
    const struct eti_form_row *value = name >= 0 ? &c->form.row[name] : r;
    if (r->is_section)
        put_sign(p, y, in - 2, is_shut && !c->finds_keys);
    compose_put_cut(p, y, in,
                    r->is_section ? TUI_SECTION
                    : r->is_set   ? TUI_TEXT
                                  : TUI_DIM,
                    x - in - 2, r->label);
    const struct tui_compose_change *change = compose_change_at(c, value->path);
    if (change)
        tui_put_ch(p, y, x - 2, (unsigned char)change->sign, compose_sign_role(change),
                   0);
    if (!r->is_section || is_shut || name >= 0)
        compose_put_value(c, p, y, x, p->w - x - 1, value);
}

static void
put_section(const struct compose *c, const struct tui_pane *p, int y, int x)
{
    bool is_shut = compose_mode_at(c, "algorithms", TUI_C_SET) == TUI_C_SHUT;
    char text[TUI_FIELD + 16];
    snprintf(text, sizeof text, "/ %s%s", c->find.text,
             c->is_finding ? "" : "  esc: all");
    put_sign(p, y, 1, is_shut);
    tui_put(p, y, 3, TUI_SECTION, "algorithms");
    if (c->is_finding || c->find.n > 0)
        tui_put_cut(p, y, x, p->w - 1, c->is_finding ? TUI_TITLE : TUI_DIM, text);
    else
        tui_putf(p, y, x, TUI_TEXT, "%d of %d on", c->n_on, c->n_can);
}

static void
put_row(struct compose *c, const struct tui_pane *p, int y, int x,
        struct tui_compose_row row)
{
    switch (row.kind) {
    case TUI_C_KEY:
        put_key(c, p, y, x, row.at);
        break;
    case TUI_C_METHODS:
        put_section(c, p, y, x);
        break;
    case TUI_C_METHOD:
        put_method(c, p, y, NAME, &c->method[c->shown[row.at]]);
        break;
    case TUI_C_FOLDED:
        put_fold(c, p, y, NAME);
        break;
    case TUI_C_MORE:
        if (compose_mode_of(c, -1) == TUI_C_WHOLE)
            tui_put(p, y, 1, TUI_DIM, "^ only what is set");
        else {
            put_sign(p, y, 1, true);
            tui_putf(p, y, 3, TUI_DIM, "all %d keys", c->form.n);
        }
        break;
    }
}

void
compose_draw_recipe(struct compose *c, const struct tui_pane *p, bool has_focus)
{
    int rows = p->h - 1, x = p->w >= 40 ? VALUE : NARROW_VALUE;
    char title[64] = "recipe";
    if (c->finds_keys)
        snprintf(title, sizeof title, "recipe: keys with %.24s", c->find.text);
    compose_remember(c, TUI_C_RECIPE, p);
    tui_title(p, 0, title, has_focus);
    tui_list_show(&c->recipe, c->n_rows, rows);
    for (int k = 0; k < rows && c->recipe.top + k < c->n_rows; k++) {
        int at = c->recipe.top + k;
        compose_put_marker(p, 1 + k, at == c->recipe.at, has_focus);
        put_row(c, p, 1 + k, x, c->row[at]);
    }
}
