/* compose_panels.c: what the panels of Compose show. */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/compose/diff.h"
#include "core/compose/timeline.h"
#include "core/run/assemble.h"
#include "tui/compose.h"
#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/plot.h"

enum { NAME = 5, SORT = 26, WIDE_SORT = 29, SUMMARY = 37, OPTIONS_WIDE = 57 };

/* Where PANEL is, for the mouse. */
static void
remember(struct compose *c, enum tui_compose_panel panel, const struct tui_pane *p)
{
    c->area[panel] = (struct tui_rect){p->y, p->x, p->h, p->w};
}

static void
put_marker(const struct tui_pane *p, int y, bool is_here, bool has_focus)
{
    if (is_here)
        tui_put_ch(p, y, 0, p->grid->glyphs->selected, has_focus ? TUI_FOCUS : TUI_DIM,
                   0);
}

/* " v 10 more", where a list goes on below. */
static void
put_more(const struct tui_pane *p, int y, const struct tui_list *l)
{
    int below = l->n - l->top - l->page;
    if (below > 0)
        tui_putf(p, y, 1, TUI_DIM, "v %d more", below);
}

/* ---- algorithms ---- */

/* "half_life 100ba": what is set of it, or the first of its defaults. */
static const char *
sum_up(const struct compose *c, const struct eti_method *m, char *buf, size_t size)
{
    const struct et_recipe *r = c->sketch->recipe;
    struct eti_form f = {0};
    size_t used = 0;
    buf[0] = '\0';
    if (!r || eti_form_of_algorithm(c->sketch->cx, r, m->built, &f) != ET_OK) {
        et_error_clear(c->sketch->cx);
        eti_form_release(&f);
        return buf;
    }
    for (int set = 1; set >= 0; set--)
        for (int i = 0; i < f.n && used < size; i++)
            if (f.row[i].is_set == set && strcmp(f.row[i].value, "null") != 0)
                used +=
                    (size_t)snprintf(buf + used, size - used, "%s%s %s",
                                     used ? " " : "", f.row[i].label, f.row[i].value);
    eti_form_release(&f);
    return buf;
}

static void
put_method(const struct compose *c, const struct tui_pane *p, int y,
           const struct eti_method *m)
{
    char text[160];
    bool is_on = eti_sketch_is_on(c->sketch, m->name);
    bool fits = compose_fits(c, m);
    bool is_open = m->built && (fits || is_on);
    enum tui_role role = is_on ? TUI_GOOD : is_open ? TUI_TEXT : TUI_DIM;
    bool is_wide = p->w > SUMMARY + 10;
    int sort = is_wide ? WIDE_SORT : SORT;
    snprintf(text, sizeof text, "[%c]", is_on ? 'x' : is_open ? ' ' : '-');
    tui_put(p, y, 1, role, text);
    tui_put_n(p, y, NAME, role, 0, sort - NAME - 1, m->name, strlen(m->name));
    if (!is_open && !is_wide) {
        snprintf(text, sizeof text, m->built || !fits ? "%s only" : "later",
                 m->applies_to);
        tui_put(p, y, SORT, TUI_DIM, text);
        return;
    }
    tui_put(p, y, sort, TUI_DIM, eti_sort_word(m->sort));
    if (!is_wide)
        return;
    if (!m->built)
        snprintf(text, sizeof text, "later: %s", m->summary);
    else if (!fits && !is_on)
        snprintf(text, sizeof text, "%s only", m->applies_to);
    else
        sum_up(c, m, text, sizeof text);
    tui_put_n(p, y, SUMMARY, TUI_DIM, 0, p->w - SUMMARY - 1, text, strlen(text));
}

void
compose_draw_algorithms(struct compose *c, const struct tui_pane *p, bool has_focus)
{
    static const char *const filters[] = {"all", "this model's", "on"};
    char title[96];
    int on = 0;
    for (int i = 0; i < c->n_methods; i++)
        on += eti_sketch_is_on(c->sketch, c->method[i].name);
    bool is_wide = p->w >= OPTIONS_WIDE;
    snprintf(title, sizeof title, "Algorithms %d/%d%s%s", on, c->n_methods,
             is_wide ? "      f: " : "", is_wide ? filters[c->filter] : "");
    remember(c, TUI_C_ALGORITHMS, p);
    tui_title(p, 0, title, has_focus);
    bool fits = c->n_shown <= p->h - 1 && c->filter == TUI_C_ALL && c->find.n == 0;
    int rows = p->h - 1 - !fits;
    tui_list_show(&c->algorithms, c->n_shown, rows);
    for (int i = 0; i < rows && c->algorithms.top + i < c->n_shown; i++) {
        int at = c->algorithms.top + i;
        put_marker(p, 1 + i, at == c->algorithms.at, has_focus);
        put_method(c, p, 1 + i, &c->method[c->shown[at]]);
    }
    if (c->n_shown == 0)
        tui_put(p, 1, 2, TUI_DIM,
                c->find.n > 0 ? "none: esc ends the search" : "none: f shows others");
    if (!fits) {
        put_more(p, p->h - 1, &c->algorithms);
        if (c->is_finding || c->find.n > 0)
            tui_put(p, p->h - 1, 13, TUI_TITLE, "/");
        if (c->is_finding)
            tui_field_draw(&c->find, p, p->h - 1, 15, p->w - 16, NULL);
        else if (c->find.n > 0)
            tui_putf(p, p->h - 1, 15, TUI_DIM, "%s   esc: all", c->find.text);
        else
            tui_putf(p, p->h - 1, 13, TUI_DIM, "f: %s", filters[c->filter]);
    }
}

/* ---- options ---- */

static void
put_value(struct compose *c, const struct tui_pane *p, int y, int x, int w,
          const struct eti_form_row *r)
{
    bool is_typed = c->is_editing && c->line == 0 && strcmp(c->path, r->path) == 0;
    bool is_wrong = false;
    for (int i = 0; i < c->sketch->errors.n; i++)
        is_wrong = is_wrong || strcmp(c->sketch->errors.v[i].path, r->path) == 0;
    if (is_typed) {
        tui_field_draw(&c->field, p, y, x, w, *c->reason ? c->reason : NULL);
        return;
    }
    enum tui_role role = is_wrong ? TUI_BAD : r->is_set ? TUI_TEXT : TUI_DIM;
    const char *value = strcmp(r->value, "null") == 0 ? "-" : r->value;
    int used = tui_put_n(p, y, x, role, 0, w, value, strlen(value));
    if (is_wrong && used + 2 < w)
        tui_put(p, y, x + used, TUI_BAD, " x");
}

/* The value, then its default and what it is for, where there is room. */
static void
put_option(struct compose *c, const struct tui_pane *p, int y, int x,
           const struct eti_form_row *r)
{
    enum { NARROW = 8, WIDE = 14 };
    char text[160];
    bool is_wide = p->w >= OPTIONS_WIDE;
    bool is_typed = c->is_editing && c->line == 0 && strcmp(c->path, r->path) == 0;
    int w = is_wide ? WIDE : NARROW;
    if (is_typed || tui_width(r->value) > w) {
        put_value(c, p, y, x, p->w - x - 1, r);
        return;
    }
    put_value(c, p, y, x, w, r);
    snprintf(text, sizeof text, "default %s",
             r->row->def                       ? r->row->def
             : r->row->flags & ET_OPT_REQUIRED ? "none"
                                               : "-");
    int used = tui_put_n(p, y, x + w, TUI_DIM, 0, p->w - x - w, text, strlen(text));
    if (is_wide && r->row->help)
        tui_put_n(p, y, x + w + used + 2, TUI_DIM, 0, p->w - x - w - used - 3,
                  r->row->help, strlen(r->row->help));
}

void
compose_draw_options(struct compose *c, const struct tui_pane *p, bool has_focus)
{
    const struct eti_method *m = compose_method(c);
    char title[96];
    int y = 1, x = p->w >= OPTIONS_WIDE ? 26 : 19;
    remember(c, TUI_C_OPTIONS, p);
    if (!m) {
        tui_title(p, 0, "", false);
        return;
    }
    snprintf(title, sizeof title, "%s (%s, %s)", m->name, eti_sort_word(m->sort),
             m->applies_to);
    tui_title(p, 0, title, has_focus);
    if (p->w >= OPTIONS_WIDE && p->h > 10) {
        tui_put_n(p, y++, 1, TUI_TEXT, 0, p->w - 2, m->summary, strlen(m->summary));
        y++;
    }
    const struct tui_grid *g = &c->app->grid;
    bool has_checks = tui_size_of(g->rows, g->cols) != TUI_FULL;
    int room = p->h - y - (has_checks && c->n_warnings > 0 ? 3 : 0);
    if (!m->built)
        tui_put(p, y++, 1, TUI_DIM, "a later version brings it");
    else if (c->options.n == 0)
        tui_put(p, y++, 1, TUI_DIM, "no options");
    tui_list_show(&c->values, c->options.n, room > 0 ? room : 1);
    for (int i = 0; i < room && c->values.top + i < c->options.n; i++, y++) {
        int at = c->values.top + i;
        const struct eti_form_row *r = &c->options.row[at];
        put_marker(p, y, at == c->values.at && has_focus, has_focus);
        tui_put_n(p, y, 1, TUI_TEXT, 0, x - 1, r->label, strlen(r->label));
        put_option(c, p, y, x + (tui_width(r->label) >= x - 1), r); /* apart */
    }
    if (has_checks && y < p->h) {
        const struct tui_pane rest = tui_pane_part(p, y, 0, p->h - y, p->w);
        compose_draw_checks(c, &rest, false);
    }
}

/* ---- warnings ---- */

int
compose_draw_checks(struct compose *c, const struct tui_pane *p, bool all)
{
    int y = 0;
    char text[300];
    for (int i = 0; i < c->n_checks && y < p->h; i++) {
        const struct eti_check *k = &c->check[i];
        if (!k->is_warning && !all)
            break;
        if (!all && i > 0)
            break; /* the others come when this one is settled */
        if (!k->is_warning) {
            tui_put(p, y, 3, TUI_GOOD, "ok");
            tui_put_n(p, y++, 7, TUI_TEXT, 0, p->w - 8, k->text, strlen(k->text));
            continue;
        }
        tui_put_ch(p, y, 1, p->grid->glyphs->warning, TUI_WARN, 0);
        y += tui_put_wrapped(p, y, 3, p->w - 4, TUI_WARN, k->text);
        const char *fix = k->fix == ETI_FIX_TURN_OFF  ? "turn off"
                          : k->fix == ETI_FIX_MOVE_UP ? "move up"
                          : k->fix == ETI_FIX_SET     ? "set"
                                                      : NULL;
        if (fix && i == 0)
            snprintf(text, sizeof text, "m: %s %s   i: ignore", fix, k->who);
        else
            snprintf(text, sizeof text, "%s", i == 0 ? "i: ignore" : "");
        if (all && k->line > 0)
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     "   (line %d, column %d)", k->line, k->column);
        if (y < p->h && *text)
            tui_put(p, y++, 3, TUI_TEXT, text);
    }
    return y;
}

/* ---- the timeline ---- */

/* The recipe's algorithms that are on: their classes, in its order. */
static int
classes_of(const struct et_recipe *r, const struct et_algorithm_class **out)
{
    int n = 0;
    for (int i = 0; r && i < r->algorithms.n && n < ET_MAX_ALGORITHMS; i++)
        if (r->algorithms.v[i].component && !r->algorithms.v[i].off)
            out[n++] = ETI_CLASS(algorithm, r->algorithms.v[i].component);
    return n;
}

static void
upper(char *text)
{
    for (; *text; text++)
        *text = (char)toupper((unsigned char)*text);
}

/* "mixup>CUTMIX>label_smoothing": who acts at EVENT; who is selected in capitals. */
static void
put_turns(const struct compose *c, const struct tui_pane *p, int y, int x,
          const struct et_algorithm_class *const *all, int n, enum et_event event,
          enum tui_role role)
{
    struct eti_turn turn[ET_MAX_ALGORITHMS];
    const struct eti_method *m = compose_method(c);
    int who = eti_timeline_at(all, n, event, turn), room = p->w - 1;
    for (int i = 0; i < who && x < room; i++) {
        char name[64];
        bool here = m && strcmp(all[turn[i].who]->info.name, m->name) == 0;
        snprintf(name, sizeof name, "%s", all[turn[i].who]->info.name);
        if (here)
            upper(name);
        int w = tui_width(name);
        bool fits = x + w <= (i + 1 < who ? room - 3 : room);
        if (!fits) {
            int part = room - 2 - x;
            if (part > 3)
                x += tui_put_n(p, y, x, role, 0, part, name, (size_t)part);
            tui_put(p, y, x, TUI_DIM, "..");
            return;
        }
        x += tui_put(p, y, x, here && role != TUI_DIM ? TUI_FOCUS : role, name);
        if (i + 1 < who)
            x += tui_put(p, y, x, TUI_DIM, ">");
    }
}

/* The events of a run as they follow each other, and how deep they lie. */
static const struct {
    enum et_event event;
    int depth;
} course[] = {
    {ET_EVENT_INIT, 0},
    {ET_EVENT_BEFORE_LOAD, 0},
    {ET_EVENT_AFTER_LOAD, 0},
    {ET_EVENT_FIT_START, 0},
    {ET_EVENT_EPOCH_START, 1},
    {ET_EVENT_BEFORE_DATALOADER, 2},
    {ET_EVENT_AFTER_DATALOADER, 2},
    {ET_EVENT_BATCH_START, 2},
    {ET_EVENT_BEFORE_TRAIN_BATCH, 2},
    {ET_EVENT_BEFORE_FORWARD, 3},
    {ET_EVENT_AFTER_FORWARD, 3},
    {ET_EVENT_BEFORE_LOSS, 3},
    {ET_EVENT_AFTER_LOSS, 3},
    {ET_EVENT_BEFORE_BACKWARD, 3},
    {ET_EVENT_AFTER_BACKWARD, 3},
    {ET_EVENT_AFTER_TRAIN_BATCH, 2},
    {ET_EVENT_BATCH_END, 2},
    {ET_EVENT_BATCH_CHECKPOINT, 2},
    {ET_EVENT_EPOCH_END, 1},
    {ET_EVENT_EPOCH_CHECKPOINT, 1},
    {ET_EVENT_EVAL_START, 1},
    {ET_EVENT_EVAL_END, 1},
    {ET_EVENT_FIT_END, 0},
};
enum { N_COURSE = sizeof course / sizeof *course };

static const char *
event_text(enum et_event event, char buf[40])
{
    snprintf(buf, 40, "%s", et_event_name(event));
    upper(buf);
    return buf;
}

/* A table: a row for each event, a column for each algorithm, its place as a number. */
static void
draw_table(struct compose *c, const struct tui_pane *p, bool has_focus,
           const struct et_algorithm_class *const *all, int n, enum tui_role role)
{
    enum { FIRST = 30, CELL = 7 };
    const struct eti_method *m = compose_method(c);
    char text[40];
    for (int i = 0; i < n; i++) {
        bool here = m && strcmp(all[i]->info.name, m->name) == 0;
        snprintf(text, sizeof text, "%.5s", all[i]->info.name);
        if (here)
            upper(text);
        tui_put(p, 1, FIRST + CELL * i, here ? TUI_FOCUS : TUI_TITLE, text);
    }
    tui_list_show(&c->timeline, N_COURSE, p->h - 4);
    for (int k = 0; k < p->h - 4 && c->timeline.top + k < N_COURSE; k++) {
        int at = c->timeline.top + k, y = 2 + k;
        struct eti_turn turn[ET_MAX_ALGORITHMS];
        int who = eti_timeline_at(all, n, course[at].event, turn);
        put_marker(p, y, has_focus && at == c->timeline.at, true);
        tui_put(p, y, 1 + 2 * course[at].depth, who ? role : TUI_DIM,
                event_text(course[at].event, text));
        for (int i = 0; i < n; i++)
            tui_put(p, y, FIRST + CELL * i + 1, TUI_DIM, ".");
        for (int i = 0; i < who; i++)
            tui_putf(p, y, FIRST + CELL * turn[i].who + 1, role, "%d", i + 1);
    }
    tui_put(p, p->h - 1, 1, TUI_DIM,
            "AFTER_* events run in reverse order (first in, last out). Enter on a row: "
            "why");
}

void
compose_draw_timeline(struct compose *c, const struct tui_pane *p, bool has_focus)
{
    const struct et_algorithm_class *all[ET_MAX_ALGORITHMS];
    int n = classes_of(eti_sketch_shown(c->sketch), all);
    bool is_old = !eti_sketch_is_valid(c->sketch);
    enum tui_role role = is_old ? TUI_DIM : TUI_TEXT;
    bool is_table = p->h >= 27 && p->w >= 90;
    char text[40];
    remember(c, TUI_C_TIMELINE, p);
    c->area[TUI_C_TIMELINE].y += is_table; /* its columns have names */
    tui_title(p, 0,
              is_old ? "Event timeline (of the last valid text)"
              : is_table
                  ? "Event timeline: rows fire top to bottom, numbers are run order"
                  : "Event timeline (resolved order)",
              has_focus);
    if (is_table) {
        draw_table(c, p, has_focus, all, n, role);
        return;
    }
    if (c->n_events == 0)
        tui_put(p, 1, 2, TUI_DIM, "no algorithm is on: space turns one on");
    tui_list_show(&c->timeline, c->n_events, p->h - 1);
    for (int i = 0; i < p->h - 1 && c->timeline.top + i < c->n_events; i++) {
        int at = c->timeline.top + i;
        enum et_event event = (enum et_event)c->event[at];
        put_marker(p, 1 + i, has_focus && at == c->timeline.at, true);
        event_text(event, text);
        tui_put_n(p, 1 + i, 1, role, 0, 18, text, strlen(text));
        put_turns(c, p, 1 + i, 20, all, n, event, role);
    }
}

void
compose_say_why(struct compose *c)
{
    const struct et_algorithm_class *all[ET_MAX_ALGORITHMS];
    struct eti_turn turn[ET_MAX_ALGORITHMS];
    const struct tui_grid *g = &c->app->grid;
    bool is_table = tui_size_of(g->rows, g->cols) == TUI_FULL;
    char text[TUI_MESSAGE], event_name[40];
    size_t used = 0;
    int n = classes_of(eti_sketch_shown(c->sketch), all);
    int at = c->timeline.at, m;
    if (at >= (is_table ? N_COURSE : c->n_events))
        return;
    enum et_event event = is_table ? course[at].event : (enum et_event)c->event[at];
    m = eti_timeline_at(all, n, event, turn);
    for (int i = 0; i < m && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %d %s (%s)",
                                 i ? "," : "", i + 1, all[turn[i].who]->info.name,
                                 *turn[i].reason ? turn[i].reason : "as in the recipe");
    tui_say(c->app, TUI_TEXT, "%s:%s", event_text(event, event_name),
            m ? text : " nobody acts there");
}

/* ---- the recipe ---- */

void
compose_draw_recipe(struct compose *c, const struct tui_pane *p, bool has_focus)
{
    int rows = p->h - 1, x = p->w >= 44 ? 23 : 19;
    remember(c, TUI_C_RECIPE, p);
    tui_title(p, 0, "Recipe", has_focus);
    tui_list_show(&c->recipe, c->n_rows, rows);
    for (int k = 0; k < rows && c->recipe.top + k < c->n_rows; k++) {
        int at = c->recipe.top + k, i = c->row[at], y = 1 + k;
        put_marker(p, y, at == c->recipe.at, has_focus);
        if (i < 0) {
            tui_put(p, y, 1, TUI_DIM,
                    compose_mode_of(c, -1) == TUI_C_WHOLE ? "^ only what is set"
                                                          : "v all keys (enter)");
            continue;
        }
        const struct eti_form_row *r = &c->form.row[i];
        int in = 3 + 2 * r->depth;
        if (r->is_section)
            tui_put_ch(p, y, in - 2,
                       compose_mode_of(c, i) == TUI_C_SHUT ? '>'
                                                           : p->grid->glyphs->more,
                       TUI_DIM, 0);
        tui_put_n(p, y, in,
                  r->is_section ? TUI_TITLE
                  : r->is_set   ? TUI_TEXT
                                : TUI_DIM,
                  0, x - in, r->label, strlen(r->label));
        if (!r->is_section || compose_mode_of(c, i) == TUI_C_SHUT)
            put_value(c, p, y, x + 1, p->w - x - 2, r);
    }
}

/* The text itself, where it is no YAML: the line in red, what is wrong below it. */
void
compose_draw_text(struct compose *c, const struct tui_pane *p)
{
    const struct eti_sketch *s = c->sketch;
    const struct et_diagnostic *d = s->errors.n > 0 ? &s->errors.v[0] : NULL;
    int wrong = d && d->line > 0 ? d->line : 1, line = 1, y = 1;
    int first = wrong > p->h / 2 ? wrong - p->h / 2 : 1;
    tui_title(p, 0, "text (e edits the line, R reads the file again)", true);
    for (const char *at = s->text; *at && y < p->h; line++) {
        size_t n = strcspn(at, "\n");
        enum tui_role role = line == wrong ? TUI_BAD : TUI_DIM;
        if (line >= first) {
            tui_putf(p, y, 0, role, "%4d", line);
            if (c->is_editing && c->line == line)
                tui_field_draw(&c->field, p, y, 6, p->w - 7, NULL);
            else
                tui_put_n(p, y, 6, role, 0, p->w - 7, at, n);
            y++;
            if (line == wrong && d) {
                int x = 6 + (d->column > 0 ? d->column - 1 : 0);
                tui_put(p, y, x < p->w - 2 ? x : p->w - 2, TUI_BAD, "^");
                y += 1 + tui_put_wrapped(p, y + 1, 6, p->w - 7, TUI_BAD, d->message);
            }
        }
        at += n + (at[n] == '\n');
    }
}

/* ---- what differs from the file ---- */

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
        enum tui_role role = l->sign == '-'   ? TUI_BAD
                             : l->sign == '+' ? TUI_GOOD
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
    char right[40], a[TUI_NUMBER];
    bool is_now = n->of == c->sketch->changes && c->explain.pid <= 0 && !c->explains;
    tui_put(p, 0, 1, TUI_TITLE, "LR over the run");
    if (n->n == 0) {
        tui_put(p, 1, 1, TUI_DIM,
                !eti_sketch_is_valid(c->sketch) ? "not known: the recipe has faults"
                : is_now                        ? "not known before the run"
                                                : "...");
        return;
    }
    for (int i = 0; i < n->n; i++)
        point[i] = (struct tui_point){n->at[i], n->rate[i], n->rate[i], n->rate[i]};
    snprintf(right, sizeof right, "%sba", tui_count(n->batches, a));
    const struct tui_plot_line line = {
        .point = point,
        .n = n->n,
        .role = is_now ? TUI_S1 : TUI_DIM,
        .mark = p->grid->glyphs->series[0],
    };
    const struct tui_plot plot = {
        .from = 0,
        .to = n->batches > 1 ? (double)(n->batches - 1) : 1,
        .line = &line,
        .n_lines = 1,
        .left = "0",
        .right = right,
        .cursor = NAN,
    };
    const struct tui_pane part = tui_pane_part(p, 1, 0, p->h - 2, p->w - 1);
    tui_plot_draw(&part, &plot, NULL);
}

/* ---- where to begin ---- */

void
compose_draw_start(struct compose *c, const struct tui_pane *p)
{
    int y = p->h > 16 ? 3 : 1;
    tui_put(p, y, 3, TUI_TEXT,
            "A recipe says what is trained, on what, and how. Begin with");
    y += 2;
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        char key[TUI_KEY_TEXT];
        const struct tui_binding *k = &tui_bindings[i];
        if (k->where != TUI_IN_start)
            continue;
        tui_put(p, y, 3, TUI_FOCUS, tui_binding_key(&c->app->config.keys, k, key));
        int w = tui_put(p, y, 10, TUI_TEXT, k->name);
        tui_add_spot(c->app, p->y + y++, p->x + 3, 7 + w, k->action);
    }
    y++;
    tui_put(p, y++, 3, TUI_DIM,
            "Then L launches it, and Monitor shows its curve as it trains.");
    tui_put(p, y++, 3, TUI_DIM, "A file: etude compose RECIPE.   Help: ?   Leave: q");
}
