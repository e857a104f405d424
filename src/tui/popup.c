/* SPDX-License-Identifier: Apache-2.0 */
/* popup.c: menus, and questions for a line of text, above a screen. */
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tui/glyphs.h"
#include "tui/widget.h"

enum { MOST_ROWS = 14, WIDE_ROWS = 13, WIDE = 74, COLUMN = 34, SHORT_NOTE = 20 };

void
tui_popup_close(struct tui_popup *p)
{
    if (p->item)
        et_free(p->cx, p->item);
    if (p->shown)
        et_free(p->cx, p->shown);
    *p = (struct tui_popup){0};
}

/* ---- menus: which items pass ---- */

static bool
contains(const char *text, const char *word, size_t n)
{
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && text[i] &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)word[i]))
            i++;
        if (i == n)
            return true;
    }
    return n == 0;
}

/* Does every word that was typed stand in it? */
static bool
passes(const struct tui_popup *p, const struct tui_item *item)
{
    for (const char *at = p->field.text; p->filters && *at;) {
        size_t n = strcspn(at, " ");
        if (!contains(item->text, at, n) && !contains(item->note, at, n))
            return false;
        at += n + (at[n] == ' ');
    }
    return true;
}

/* How well what was typed fits an item that passes: its name, with which its name
 * begins, or which stands somewhere in it. Before something is typed all fit alike. */
enum fit { IS_NAME, BEGINS, STANDS_IN, FITS };

static enum fit
fit_of(const struct tui_popup *p, const struct tui_item *item)
{
    const char *typed = p->field.text;
    size_t n = strlen(typed);
    while (n > 0 && typed[n - 1] == ' ')
        n--;
    if (!p->filters || n == 0)
        return IS_NAME;
    if (strncasecmp(item->text, typed, n) != 0)
        return STANDS_IN;
    return item->text[n] ? BEGINS : IS_NAME;
}

static bool
is_offered(const struct tui_popup *p, const struct tui_item *item)
{
    bool typed = p->filters && *p->field.text;
    return !item->is_heading && passes(p, item) &&
           (typed || !p->filters || !item->is_held);
}

/* Where the group of items that begins at FROM, with a heading or without, ends. *BEST:
 * how well the best of it fits; FITS: none of it is offered. */
static int
end_of_group(const struct tui_popup *p, int from, enum fit *best)
{
    int i = from;
    *best = FITS;
    for (; i < p->n_items && (i == from || !p->item[i].is_heading); i++) {
        enum fit fit = is_offered(p, &p->item[i]) ? fit_of(p, &p->item[i]) : FITS;
        *best = fit < *best ? fit : *best;
    }
    return i;
}

/* Adds what is offered of the items [FROM, END), the best first, to N that are
 * shown. */
static int
show_group(struct tui_popup *p, int from, int end, int n)
{
    if (p->item[from].is_heading)
        p->shown[n++] = from;
    for (enum fit fit = IS_NAME; fit < FITS; fit++)
        for (int i = from; i < end; i++)
            if (is_offered(p, &p->item[i]) && fit_of(p, &p->item[i]) == fit)
                p->shown[n++] = i;
    return n;
}

/* What fits best comes first, and with it its group; else all is in the order of the
 * items. Headings of which nothing passes go. */
static void
filter(struct tui_popup *p)
{
    int n = 0;
    for (enum fit fit = IS_NAME; fit < FITS; fit++)
        for (int from = 0, end; from < p->n_items; from = end) {
            enum fit best;
            end = end_of_group(p, from, &best);
            if (best == fit)
                n = show_group(p, from, end, n);
        }
    p->list.n = n;
    if (p->list.at >= n)
        p->list.at = n > 0 ? n - 1 : 0;
    if (n > 0 && p->item[p->shown[p->list.at]].is_heading)
        p->list.at++;
}

void
tui_popup_sift(struct tui_popup *p)
{
    filter(p);
}

et_status
tui_popup_menu(struct tui_popup *p, struct et_ctx *cx, const char *title,
               const struct tui_item *item, int n)
{
    void *items, *shown;
    tui_popup_close(p);
    ET_TRY(et_alloc(cx, (size_t)(n + 1) * sizeof *item, &items));
    et_status status = et_alloc(cx, (size_t)(n + 1) * sizeof *p->shown, &shown);
    if (status != ET_OK) {
        et_free(cx, items);
        return status;
    }
    *p = (struct tui_popup){
        .kind = TUI_MENU,
        .cx = cx,
        .item = items,
        .n_items = n,
        .shown = shown,
    };
    snprintf(p->title, sizeof p->title, "%s", title);
    memcpy(p->item, item, (size_t)n * sizeof *item);
    filter(p);
    return ET_OK;
}

void
tui_popup_prompt(struct tui_popup *p, struct et_ctx *cx, const char *title,
                 const char *text)
{
    tui_popup_close(p);
    p->kind = TUI_PROMPT;
    p->cx = cx;
    snprintf(p->title, sizeof p->title, "%s", title);
    tui_field_set(&p->field, text);
    p->asked = tui_width(text) + 2;
}

void
tui_popup_line(struct tui_popup *p, const char *fmt, ...)
{
    va_list ap;
    if (p->n_lines == TUI_POPUP_LINES)
        return;
    va_start(ap, fmt);
    vsnprintf(p->line[p->n_lines++], sizeof *p->line, fmt, ap);
    va_end(ap);
}

/* Why what is typed will not do; NULL: it will. */
static const char *
reason_of(const struct tui_popup *p, char *buf)
{
    return p->check
               ? p->check(p->check_data ? p->check_data : p->data, p->field.text, buf)
               : NULL;
}

/* ---- drawing ---- */

/* Columns of a menu: all keys, all texts, and the notes of all rows, which are at the
 * end where they are short, as keys are. */
struct columns {
    int key, text;
    bool has_texts; /* the notes are texts, which begin in a column */
};

static struct columns
columns_of(const struct tui_popup *p)
{
    char key[TUI_KEY_TEXT];
    struct columns c = {0};
    for (int i = 0; i < p->n_items; i++) {
        const struct tui_item *item = &p->item[i];
        int w = item->key ? tui_width(tui_key_text(item->key, key)) + 2 : 0;
        c.key = w > c.key ? w : c.key;
        w = tui_width(item->text);
        c.text = w > c.text ? w : c.text;
        c.has_texts = c.has_texts || tui_width(item->note) > SHORT_NOTE;
    }
    return c;
}

static int
item_width(const struct tui_item *item, const struct columns *c)
{
    int n = 2 + c->key + tui_width(item->text);
    if (*item->mid)
        n += 2 + tui_width(item->mid);
    if (*item->why)
        return n + 4 + tui_width(item->why);
    if (*item->note && c->has_texts)
        n = 2 + c->key + c->text;
    return *item->note ? n + 2 + tui_width(item->note) : n;
}

static int
widest(const struct tui_popup *p)
{
    int w = tui_width(p->title) + 6;
    for (int i = 0; i < p->n_lines; i++)
        if (tui_width(p->line[i]) > w)
            w = tui_width(p->line[i]);
    const struct columns c = columns_of(p);
    for (int i = 0; i < p->n_items; i++) {
        int one = item_width(&p->item[i], &c);
        w = one > w ? one : w;
    }
    int least = p->check ? 60 : p->filters || p->kind == TUI_PROMPT ? 36 : 0;
    least = p->asked > least ? p->asked : least;
    return w < least ? least
                     : w; /* a reason has room, and what is typed moves nothing */
}

/* What was typed, where it stands in the text of ITEM, which begins at X. */
static void
mark_typed(const struct tui_popup *p, const struct tui_pane *in, int y, int x,
           const struct tui_item *item)
{
    for (const char *at = p->field.text; p->filters && *at;) {
        size_t n = strcspn(at, " ");
        for (const char *t = item->text; n > 0 && strlen(t) >= n; t++)
            if (strncasecmp(t, at, n) == 0) {
                char before[sizeof item->text];
                snprintf(before, sizeof before, "%.*s", (int)(t - item->text),
                         item->text);
                tui_put_n(in, y, x + tui_width(before), TUI_KEY, 0, in->w, t, n);
                break;
            }
        at += n + (at[n] == ' ');
    }
}

/* A row with columns: name, where it leads, key. */
static void
put_wide(const struct tui_popup *p, const struct tui_pane *in, int y, int place,
         int text_width)
{
    const struct tui_item *item = &p->item[p->shown[place]];
    if (item->is_heading) {
        tui_put(in, y, 0, TUI_SECTION, item->text);
        return;
    }
    if (place == p->list.at)
        tui_select(in, y, true);
    int most = in->w - 2 - (*item->note ? tui_width(item->note) + 2 : 0);
    int column = text_width < COLUMN ? text_width : COLUMN;
    tui_put_n(in, y, 2, TUI_TEXT, 0, *item->mid ? column : most, item->text,
              strlen(item->text));
    mark_typed(p, in, y, 2, item);
    if (*item->mid)
        tui_put_cut(in, y, 4 + column, 2 + most, TUI_DIM, item->mid);
    tui_put_end(in, y, in->w, TUI_KEY, item->note);
}

static void
put_item(const struct tui_popup *p, const struct tui_pane *in, int y, int place,
         const struct columns *c)
{
    if (p->wide) {
        put_wide(p, in, y, place, c->text);
        return;
    }
    const struct tui_item *item = &p->item[p->shown[place]];
    if (item->is_heading) {
        tui_put(in, y, 0, TUI_SECTION, item->text);
        return;
    }
    char key[TUI_KEY_TEXT];
    bool selected = place == p->list.at;
    enum tui_role role = *item->why ? TUI_DIM : selected ? TUI_FOCUS : TUI_TEXT;
    int x = 2;
    if (selected)
        tui_select(in, y, true);
    if (item->key)
        tui_put(in, y, x, *item->why ? TUI_OFF : TUI_KEY, tui_key_text(item->key, key));
    x += c->key;
    int note = x + c->text + 2, behind = tui_width(item->note);
    bool at_end = behind > 0 && !c->has_texts && !*item->why;
    int most = in->w - x - (at_end ? behind + 1 : 0); /* the note is not written over */
    x += tui_put_n(in, y, x, role, 0, most > 0 ? most : 0, item->text,
                   strlen(item->text));
    if (*item->why)
        tui_putf(in, y, x + 2, TUI_DIM, "(%s)", item->why);
    else if (c->has_texts)
        tui_put_cut(in, y, note, in->w, TUI_DIM, item->note);
    else if (*item->note)
        tui_put_end(in, y, in->w, TUI_DIM, item->note);
}

static void
put_items(struct tui_popup *p, const struct tui_pane *in, int y)
{
    const struct columns c = columns_of(p);
    int rows = in->h - y;
    tui_list_show(&p->list, p->list.n, rows);
    p->first_row = y;
    for (int i = 0; i < rows && p->list.top + i < p->list.n; i++)
        put_item(p, in, y + i, p->list.top + i, &c);
    if (p->list.n == 0)
        tui_put(in, y, 2, TUI_DIM, "nothing is called so");
}

static void
put_border(const struct tui_pane *box, const struct tui_popup *p)
{
    const struct tui_glyphs *g = box->grid->glyphs;
    tui_blank(box);
    tui_lay(box, TUI_ON_POPUP);
    tui_title(box, 0, p->title, false);
    tui_rule(box, box->h - 1, 0, box->w);
    tui_divide(box, 1, 0, box->h - 2);
    tui_divide(box, 1, box->w - 1, box->h - 2);
    for (int i = 0; i < 4; i++)
        tui_put_ch(box, i < 2 ? 0 : box->h - 1, i % 2 ? box->w - 1 : 0, g->box[i],
                   TUI_RULE, 0);
}

/* What lies below steps back: it is dim, and its text keeps a column away. */
static void
put_below(const struct tui_pane *screen, const struct tui_pane *box)
{
    const struct tui_pane around = tui_pane_part(
        screen, box->y - screen->y, box->x - screen->x - 1, box->h, box->w + 2);
    tui_tint(screen, TUI_DIM);
    tui_lay(screen, TUI_ON_OWN);
    tui_blank(&around);
}

/* An empty one is a line, too. */
static int
lines_of(const char *text, int w)
{
    return *text ? tui_put_wrapped(NULL, 0, 0, w, TUI_TEXT, text) : 1;
}

void
tui_popup_renew(struct tui_popup *p, struct tui_app *app)
{
    if (p->kind != TUI_NO_POPUP && p->renew && !p->renew(app))
        tui_popup_close(p);
}

void
tui_popup_draw(struct tui_popup *p, const struct tui_pane *screen)
{
    char buf[160];
    if (p->kind == TUI_NO_POPUP)
        return;
    bool types = p->kind == TUI_PROMPT || p->filters;
    int w = p->wide ? WIDE : widest(p) + 4;
    w = w > screen->w ? screen->w : w;
    /* All of an answer is seen where there is room for it. */
    int typed = p->kind == TUI_PROMPT ? tui_field_rows(&p->field, w - 4) : types;
    typed = typed + 1 > screen->h - 2 ? types : typed;
    int rows = p->kind == TUI_MENU ? p->n_items + p->filters : typed + 1 + !!p->check;
    int most = p->wide ? WIDE_ROWS : MOST_ROWS;
    if (p->filters && rows > most)
        rows = most; /* the rest scrolls, and typing finds it */
    int h = rows + 2;
    for (int i = 0; i < p->n_lines; i++)
        h += lines_of(p->line[i], w - 4);
    h = h > screen->h ? screen->h : h;
    struct tui_pane box =
        tui_pane_part(screen, (screen->h - h) / 3, (screen->w - w) / 2, h, w);
    put_below(screen, &box);
    put_border(&box, p);
    p->area = tui_pane_part(&box, 1, 2, h - 2, w - 4);
    /* Where there is little room, the text above is cut, and the question is not. */
    int y = 0, least = typed + (p->kind == TUI_PROMPT ? 1
                                : p->n_items < 3      ? p->n_items
                                                      : 3);
    for (int i = 0; i < p->n_lines && y < h - 2 - least; i++) {
        const struct tui_pane said =
            tui_pane_part(&p->area, y, 0, h - 2 - least - y, w - 4);
        tui_put_wrapped(&said, 0, 0, w - 4, TUI_TEXT, p->line[i]);
        y += lines_of(p->line[i], w - 4);
        y = y > h - 2 - least ? h - 2 - least : y;
    }
    const char *reason = reason_of(p, buf);
    if (typed > 1)
        tui_field_draw_rows(&p->field, &p->area, y, typed, reason);
    else if (types)
        tui_field_draw(&p->field, &p->area, y, 0, p->area.w, reason);
    y += typed;
    if (p->kind == TUI_MENU)
        put_items(p, &p->area, y);
    else
        tui_put_wrapped(&p->area, y, 0, w - 4, TUI_DIM,
                        reason ? reason : "enter does it   esc leaves it");
}

/* ---- keys ---- */

/* Ends it; what is done then may open another. */
static void
finish(struct tui_popup *p, struct tui_app *app, int id)
{
    struct tui_popup was = *p;
    if (p->item)
        et_free(p->cx, p->item);
    if (p->shown)
        et_free(p->cx, p->shown);
    *p = (struct tui_popup){0};
    if (was.done)
        was.done(app, was.data, id, was.field.text);
}

static void
choose(struct tui_popup *p, struct tui_app *app, int place)
{
    if (place < 0 || place >= p->list.n)
        return;
    const struct tui_item *item = &p->item[p->shown[place]];
    if (*item->why || item->is_heading)
        p->list.at = place;
    else
        finish(p, app, item->id);
}

/* The movement that KEY means in every list; letters move where nothing is typed. */
static enum tui_action
movement(const struct tui_popup *p, int key)
{
    static const struct {
        int key, letter;
        enum tui_action action;
    } moves[] = {
        {TUI_K_UP, 'k', TUI_DO_everywhere_up},
        {TUI_K_DOWN, 'j', TUI_DO_everywhere_down},
        {TUI_K_PGUP, TUI_CTRL('u'), TUI_DO_everywhere_page_up},
        {TUI_K_PGDN, TUI_CTRL('d'), TUI_DO_everywhere_page_down},
    };
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (key == moves[i].key || (key == moves[i].letter && !p->filters))
            return moves[i].action;
    return TUI_DO_nothing;
}

/* Headings are no place to stay: the way goes on, or back where it ends. */
static void
step_over(struct tui_popup *p, enum tui_action move)
{
    bool up = move == TUI_DO_everywhere_up || move == TUI_DO_everywhere_page_up;
    if (p->list.n == 0 || !p->item[p->shown[p->list.at]].is_heading)
        return;
    p->list.at += up && p->list.at > 0 ? -1 : 1;
}

static void
menu_key(struct tui_popup *p, struct tui_app *app, int key)
{
    if (key == TUI_K_ENTER) {
        choose(p, app, p->list.at);
        return;
    }
    for (int i = 0; i < p->list.n && !p->filters; i++)
        if (p->item[p->shown[i]].key == key) {
            choose(p, app, i);
            return;
        }
    const enum tui_action move = movement(p, key);
    if (tui_list_act(&p->list, move)) {
        step_over(p, move);
    } else if (p->filters && tui_field_key(&p->field, key)) {
        p->list.at = 0;
        filter(p);
    }
}

/* Calls `moved` with the id of the selected item; AT_END: with -1, since the menu is
 * closed without a choice. */
static void
tell_moved(struct tui_popup *p, struct tui_app *app, bool at_end)
{
    int id = at_end || p->list.n == 0 ? -1 : p->item[p->shown[p->list.at]].id;
    if (p->kind == TUI_MENU && p->moved && (id != p->told || at_end))
        p->moved(app, id);
    p->told = id;
}

void
tui_popup_key(struct tui_popup *p, struct tui_app *app, int key)
{
    char buf[160];
    if (key == TUI_K_ESC || key == TUI_CTRL('c')) {
        tell_moved(p, app, true);
        tui_popup_close(p);
        return;
    }
    if (p->kind == TUI_MENU) {
        menu_key(p, app, key);
        tell_moved(p, app, false);
        return;
    }
    if (p->turned && (key == TUI_K_UP || key == TUI_K_DOWN))
        p->turned(app, p->data, key == TUI_K_UP ? -1 : 1);
    else if (key != TUI_K_ENTER)
        tui_field_key(&p->field, key);
    else if (!reason_of(p, buf))
        finish(p, app, 0);
}

void
tui_popup_click(struct tui_popup *p, struct tui_app *app, int y, int x)
{
    const struct tui_pane *a = &p->area;
    if (y < a->y - 1 || y > a->y + a->h || x < a->x - 2 || x >= a->x + a->w + 2) {
        tell_moved(p, app, true);
        tui_popup_close(p);
        return;
    }
    int row = y - a->y - p->first_row;
    if (p->kind == TUI_MENU && row >= 0 && y < a->y + a->h)
        choose(p, app, p->list.top + row);
}
