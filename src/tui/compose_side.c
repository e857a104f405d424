/* SPDX-License-Identifier: Apache-2.0 */
/* compose_side.c: what Compose says beside its lists: the key or algorithm that is
 * selected, checks, changes, the learning rate; and where a recipe may begin. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/compose/diff.h"
#include "tui/compose.h"
#include "tui/glyphs.h"
#include "tui/plot.h"

enum { WIDE = 57 }; /* columns from which options have a line of help */

/* ---- a key ---- */

static const char *
or_none(const char *value)
{
    return !value || strcmp(value, "null") == 0 ? "-" : value;
}

/* A word and what it says, at Y; the next line. */
static int
put_fact(const struct tui_pane *p, int y, enum tui_role role, const char *word,
         const char *text)
{
    int x = 1 + tui_put(p, y, 1, TUI_LABEL, word) + 1, w = p->w - x - 1;
    int lines = tui_put_wrapped(p, y, x, w, role, text);
    return y + (lines > 0 ? lines : 1);
}

/* What the component is that stands there. */
static int
put_part(const struct compose *c, const struct tui_pane *p, int y,
         const struct eti_form_row *r)
{
    int name = compose_name_of(c, (int)(r - c->form.row));
    const struct eti_form_row *its = name >= 0 ? &c->form.row[name] : NULL;
    if (!its || !its->part)
        return y;
    tui_put(p, y, 1, TUI_SECTION, its->value);
    y++;
    y += tui_put_wrapped(p, y, 1, p->w - 2, TUI_TEXT, its->part->summary);
    tui_put(p, y++, 1, TUI_DIM, "e chooses another, enter opens it");
    return y;
}

static int
draw_key(struct compose *c, const struct tui_pane *p, const struct eti_form_row *r)
{
    char text[240];
    int y = 1;
    tui_title(p, 0, r->path, false);
    if (r->row->help)
        y += tui_put_wrapped(p, y, 1, p->w - 2, TUI_TEXT, r->row->help);
    if (r->is_section)
        return put_part(c, p, y, r);
    const char *def = r->row->def ? r->row->def : NULL;
    if (compose_is_missing(c, r)) {
        tui_put(p, y++, 1, TUI_BAD, "x needed: it has no default");
    } else {
        int used = 1 + tui_put(p, y, 1, TUI_LABEL, "now ");
        used +=
            compose_put_cut(p, y, used, TUI_STRONG, p->w - used - 1, or_none(r->value));
        snprintf(text, sizeof text, "default %.100s", or_none(def));
        if (used + 4 + tui_width(text) < p->w)
            tui_put(p, y, used + 4, TUI_DIM, text);
        else
            compose_put_cut(p, ++y, 1, TUI_DIM, p->w - 2, text);
        y++;
    }
    const struct tui_compose_change *change = compose_change_at(c, r->path);
    if (change)
        y = put_fact(p, y, TUI_CHANGED, "change", change->text);
    if (r->line > 0)
        tui_putf(p, y++, 1, TUI_DIM, "file line %d, column %d", r->line, r->column);
    if (!r->part)
        y = put_fact(p, y, TUI_TEXT, "range",
                     et_option_expects(r->row, text, sizeof text));
    return y;
}

/* ---- an algorithm ---- */

/* The value, then its default and what it is for, where there is room. */
static void
put_option(struct compose *c, const struct tui_pane *p, int y, int x,
           const struct eti_form_row *r)
{
    enum { NARROW = 8, VALUE = 14 };
    char text[160];
    bool is_wide = p->w >= WIDE;
    bool is_typed = c->is_editing && c->line == 0 && strcmp(c->path, r->path) == 0;
    int w = is_wide ? VALUE : NARROW;
    if (is_typed || tui_width(r->value) > w) {
        compose_put_value(c, p, y, x, p->w - x - 1, r);
        return;
    }
    compose_put_value(c, p, y, x, w, r);
    snprintf(text, sizeof text, "default %s",
             r->row->def                       ? r->row->def
             : r->row->flags & ET_OPT_REQUIRED ? "none"
                                               : "-");
    int used = 0;
    if (x + w + tui_width(text) < p->w)
        used = tui_put(p, y, x + w, TUI_DIM, text);
    if (is_wide && r->row->help)
        compose_put_cut(p, y, x + w + used + 2, TUI_DIM, p->w - x - w - used - 3,
                        r->row->help);
}

static int
draw_method(struct compose *c, const struct tui_pane *p, bool has_focus,
            const struct eti_method *m)
{
    char title[96];
    int y = 1, x = p->w >= WIDE ? 26 : 19;
    snprintf(title, sizeof title, "%s (%s, %s)", m->name, eti_sort_word(m->sort),
             m->applies_to);
    tui_title(p, 0, title, has_focus);
    y += tui_put_wrapped(p, y, 1, p->w - 2, TUI_TEXT, m->summary);
    if (!compose_fits(c, m))
        tui_putf(p, y++, 1, TUI_WARN, "for models of %s only", m->applies_to);
    y += compose_draw_bought(c, p, y, m);
    int rows = p->h - y > 4 ? p->h - y : c->options.n;
    tui_list_show(&c->values, c->options.n, rows);
    c->area[TUI_C_OPTIONS].y += y - 1; /* its lines begin below what is said */
    for (int i = 0; i < rows && c->values.top + i < c->options.n; i++, y++) {
        int at = c->values.top + i;
        const struct eti_form_row *r = &c->options.row[at];
        const struct tui_compose_change *change = compose_change_at(c, r->path);
        compose_put_marker(p, y, at == c->values.at && has_focus, has_focus);
        compose_put_cut(p, y, 1, TUI_TEXT, x - 3, r->label);
        if (change)
            tui_put_ch(p, y, x - 2, (unsigned char)change->sign,
                       compose_sign_role(change), 0);
        put_option(c, p, y, x, r);
    }
    return y;
}

/* ---- what is selected ---- */

static int
draw_fold(struct compose *c, const struct tui_pane *p)
{
    int cannot = c->n_methods - c->n_can, y = 1;
    tui_title(p, 0, "algorithms", false);
    tui_putf(p, y++, 1, TUI_TEXT, "%d on of %d that can act here", c->n_on, c->n_can);
    if (cannot > 0)
        tui_putf(p, y++, 1, TUI_DIM, "%d are not for models of %s", cannot,
                 eti_recipe_domain(eti_sketch_shown(c->sketch)));
    tui_put(p, y++, 1, TUI_DIM, "enter unfolds or folds them");
    return y + compose_draw_all_bought(c, p, y);
}

int
compose_draw_selected(struct compose *c, const struct tui_pane *p, bool has_focus)
{
    const struct eti_method *m = compose_method(c);
    const struct eti_form_row *r = compose_key_row(c);
    compose_remember(c, TUI_C_OPTIONS, p);
    if (c->is_about_method && m)
        return draw_method(c, p, has_focus, m);
    if (!c->is_about_method && r)
        return draw_key(c, p, r);
    return draw_fold(c, p);
}

/* ---- checks ---- */

/* What m and i do about warning K, the first that may be ignored. */
static const char *
keys_of(const struct eti_check *k, char *buf, size_t size)
{
    const char *fix = k->fix == ETI_FIX_TURN_OFF  ? "turns off"
                      : k->fix == ETI_FIX_MOVE_UP ? "moves up"
                      : k->fix == ETI_FIX_SET     ? "sets"
                                                  : NULL;
    if (fix)
        snprintf(buf, size, "m %s %s   i ignores it", fix, k->who);
    else
        snprintf(buf, size, "i ignores it");
    return buf;
}

int
compose_check_lines(const struct compose *c, int w)
{
    int n = 0;
    for (int i = 0; i < c->n_checks; i++)
        n += tui_put_wrapped(NULL, 0, 0, w - 4, TUI_TEXT, c->check[i].text);
    return n + (c->n_warnings > c->n_fatal);
}

int
compose_first_check_lines(const struct compose *c, int w)
{
    return c->n_warnings == 0
               ? 0
               : (c->n_fatal == 0) +
                     tui_put_wrapped(NULL, 0, 0, w - 4, TUI_TEXT, c->check[0].text);
}

int
compose_draw_checks(struct compose *c, const struct tui_pane *p)
{
    int y = 0;
    for (int i = 0; i < c->n_checks && y < p->h; i++) {
        const struct eti_check *k = &c->check[i];
        enum tui_role role = k->is_fatal     ? TUI_BAD
                             : k->is_warning ? TUI_WARN
                                             : TUI_TEXT;
        int lines = tui_put_wrapped(NULL, 0, 0, p->w - 4, role, k->text);
        if (y + lines > p->h)
            break;
        tui_put_ch(p, y, 1,
                   k->is_fatal     ? 'x'
                   : k->is_warning ? p->grid->glyphs->warning
                                   : '+',
                   k->is_warning ? role : TUI_GOOD, 0);
        y += tui_put_wrapped(p, y, 3, p->w - 4, role, k->text);
        if (k->is_warning && i == c->n_fatal && y < p->h) {
            char text[160];
            tui_put(p, y++, 3, TUI_TEXT, keys_of(k, text, sizeof text));
        }
    }
    return y;
}

/* ---- changes ---- */

void
compose_draw_changes(struct compose *c, const struct tui_pane *p)
{
    int n = c->n_changes < TUI_C_CHANGES ? c->n_changes : TUI_C_CHANGES;
    tui_title(p, 0, c->n_changes > 0 ? "this changes" : "nothing is unsaved", false);
    for (int i = 0; i < n && 1 + i < p->h; i++) {
        const struct tui_compose_change *x = &c->change[i];
        bool is_last = 2 + i == p->h && i + 1 < c->n_changes;
        if (is_last) {
            tui_putf(p, 1 + i, 3, TUI_DIM, "and %d more: d shows all",
                     c->n_changes - i);
            return;
        }
        tui_put_ch(p, 1 + i, 1, (unsigned char)x->sign, compose_sign_role(x), 0);
        int used = compose_put_cut(p, 1 + i, 3, TUI_TEXT, p->w - 4, x->path);
        compose_put_cut(p, 1 + i, 5 + used, TUI_TEXT, p->w - 6 - used, x->text);
    }
}

void
compose_draw_diff(struct compose *c, const struct tui_pane *p)
{
    const struct eti_sketch *s = c->sketch;
    struct eti_diff d;
    tui_title(p, 0, "unsaved changes (d)", c->shows_diff);
    if (eti_diff_new(s->cx, s->saved ? s->saved : "", s->n_saved, s->text, s->n, &d) !=
        ET_OK) {
        tui_put(p, 1, 2, TUI_BAD, et_error_get(s->cx)->message);
        et_error_clear(s->cx);
        return;
    }
    if (d.n == 0)
        tui_put(p, 1, 2, TUI_DIM, s->path ? "none: the file says the same" : "none");
    if (c->diff_top > d.n - p->h + 1)
        c->diff_top = d.n - p->h + 1;
    if (c->diff_top < 0)
        c->diff_top = 0;
    for (int k = 0; k < p->h - 1 && c->diff_top + k < d.n; k++) {
        const struct eti_diff_line *l = &d.line[c->diff_top + k];
        enum tui_role role = l->sign == '-'   ? TUI_REMOVE
                             : l->sign == '+' ? TUI_ADD
                                              : TUI_TEXT;
        tui_putf(p, 1 + k, 1, role == TUI_TEXT ? TUI_DIM : role, "%4d %c", l->line,
                 l->sign);
        tui_put_n(p, 1 + k, 8, role, 0, p->w - 9, l->text, l->n);
    }
    eti_diff_release(&d);
}

/* ---- the learning rate ---- */

void
compose_draw_curve(struct compose *c, const struct tui_pane *p)
{
    const struct tui_compose_numbers *n = &c->numbers;
    struct tui_point point[TUI_C_POINTS];
    bool is_now = n->of == c->sketch->changes && c->explain.pid <= 0 && !c->explains;
    int used = tui_put(p, 0, 1, TUI_SECTION, "lr over the run");
    if (n->n > 0 && !is_now)
        tui_put(p, 0, 1 + used, TUI_DIM, ", before the change");
    if (n->n == 0) {
        tui_put(p, 1, 1, TUI_DIM,
                !eti_sketch_is_valid(c->sketch) ? "not known: the recipe has faults"
                : is_now                        ? "not known before the run"
                                                : "...");
        return;
    }
    for (int i = 0; i < n->n; i++)
        point[i] = (struct tui_point){
            .x = n->at[i],
            .min = n->rate[i],
            .max = n->rate[i],
            .last = n->rate[i],
        };
    const struct tui_plot_line line = {
        .point = point,
        .n = n->n,
        .role = is_now ? TUI_S2 : TUI_DIM,
        .mark = p->grid->glyphs->series[0],
    };
    const struct tui_plot plot = {
        .from = 0,
        .to = n->batches > 1 ? (double)(n->batches - 1) : 1,
        .line = &line,
        .n_lines = 1,
        .done = NAN,
        .from_zero = true,
        .x_of = TUI_OF_COUNTS,
        .unit = "ba",
        .cursor = NAN,
    };
    const struct tui_pane part = tui_pane_part(p, 1, 0, p->h - 1, p->w - 1);
    tui_plot_draw(&part, &plot, NULL);
}

/* ---- where to begin ---- */

void
compose_draw_start(struct compose *c, const struct tui_pane *p)
{
    int y = p->h > 16 ? 3 : 1;
    y += tui_put_wrapped(p, y, 3, p->w - 4, TUI_TEXT,
                         "A recipe says what is trained, on what, and how. Begin with");
    y += p->h > 10;
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        char key[TUI_KEY_TEXT];
        const struct tui_binding *k = &tui_bindings[i];
        if (k->where != TUI_IN_start)
            continue;
        tui_put(p, y, 3, TUI_FOCUS, tui_binding_key(&c->app->config.keys, k, key));
        int w = tui_put_cut(p, y, 10, p->w - 1, TUI_TEXT, k->name);
        tui_add_spot(c->app, p->y + y++, p->x + 3, 7 + w, k->action);
    }
    y++;
    y += tui_put_wrapped(
        p, y, 3, p->w - 4, TUI_DIM,
        "Then L launches it, and Monitor shows its curve as it trains.");
    tui_put_wrapped(p, y, 3, p->w - 4, TUI_DIM,
                    "A file: etude compose RECIPE.   Help: ?   Leave: q");
}
