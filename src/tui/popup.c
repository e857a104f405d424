/* popup.c: menus, and questions for a line of text, above a screen. */
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tui/glyphs.h"
#include "tui/widget.h"

enum { MOST_ROWS = 14, SHORT_NOTE = 20 };

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

static void
filter(struct tui_popup *p)
{
    int n = 0;
    for (int i = 0; i < p->n_items; i++)
        if (passes(p, &p->item[i]))
            p->shown[n++] = i;
    p->list.n = n;
    if (p->list.at >= n)
        p->list.at = n > 0 ? n - 1 : 0;
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

static int
item_width(const struct tui_item *item)
{
    char key[TUI_KEY_TEXT];
    int n = 2 + tui_width(item->text);
    if (item->key)
        n += tui_width(tui_key_text(item->key, key)) + 2;
    if (*item->why)
        return n + 4 + tui_width(item->why);
    return *item->note ? n + 2 + tui_width(item->note) : n;
}

static int
widest(const struct tui_popup *p)
{
    int w = tui_width(p->title) + 6;
    for (int i = 0; i < p->n_lines; i++)
        if (tui_width(p->line[i]) > w)
            w = tui_width(p->line[i]);
    int text = 0;
    for (int i = 0; i < p->n_items; i++)
        text = tui_width(p->item[i].text) > text ? tui_width(p->item[i].text) : text;
    for (int i = 0; i < p->n_items; i++) {
        const struct tui_item *item = &p->item[i];
        bool begins = tui_width(item->note) > SHORT_NOTE;
        int more = begins ? text - tui_width(item->text) : 0;
        w = item_width(item) + more > w ? item_width(item) + more : w;
    }
    int least = p->check ? 60 : p->filters || p->kind == TUI_PROMPT ? 36 : 0;
    return w < least ? least
                     : w; /* a reason has room, and what is typed moves nothing */
}

static void
put_item(const struct tui_popup *p, const struct tui_pane *in, int y, int place,
         int key_width, int text_width)
{
    const struct tui_item *item = &p->item[p->shown[place]];
    const struct tui_glyphs *g = in->grid->glyphs;
    char key[TUI_KEY_TEXT];
    bool selected = place == p->list.at;
    enum tui_role role = *item->why ? TUI_DIM : selected ? TUI_FOCUS : TUI_TEXT;
    int x = 2;
    tui_put_ch(in, y, 0, selected ? g->selected : ' ', TUI_FOCUS, 0);
    if (item->key) {
        tui_put(in, y, x, *item->why ? TUI_DIM : TUI_TITLE,
                tui_key_text(item->key, key));
        x += key_width;
    }
    int note = x + text_width + 2, behind = tui_width(item->note);
    bool at_end = behind > 0 && behind <= SHORT_NOTE && !*item->why;
    int most = in->w - x - (at_end ? behind + 1 : 0); /* the note is not written over */
    x += tui_put_n(in, y, x, role, 0, most > 0 ? most : 0, item->text,
                   strlen(item->text));
    if (*item->why)
        tui_putf(in, y, x + 2, TUI_DIM, "(%s)", item->why);
    else if (tui_width(item->note) > SHORT_NOTE) /* a text, which begins in a column */
        tui_put(in, y, note, TUI_DIM, item->note);
    else if (*item->note)
        tui_put_end(in, y, in->w, TUI_DIM, item->note);
}

static void
put_items(struct tui_popup *p, const struct tui_pane *in, int y)
{
    char key[TUI_KEY_TEXT];
    int key_width = 0, text_width = 0;
    for (int i = 0; i < p->n_items; i++) {
        int w = p->item[i].key ? tui_width(tui_key_text(p->item[i].key, key)) + 2 : 0;
        key_width = w > key_width ? w : key_width;
        w = tui_width(p->item[i].text);
        text_width = w > text_width ? w : text_width;
    }
    int rows = in->h - y;
    tui_list_show(&p->list, p->list.n, rows);
    p->first_row = y;
    for (int i = 0; i < rows && p->list.top + i < p->list.n; i++)
        put_item(p, in, y + i, p->list.top + i, key_width, text_width);
    if (p->list.n == 0)
        tui_put(in, y, 2, TUI_DIM, "nothing is called so");
}

static void
put_border(const struct tui_pane *box, const struct tui_popup *p)
{
    const struct tui_glyphs *g = box->grid->glyphs;
    tui_blank(box);
    tui_title(box, 0, p->title, true);
    tui_fill(box, box->h - 1, 0, box->w, g->across, TUI_DIM);
    for (int y = 1; y < box->h - 1; y++) {
        tui_put_ch(box, y, 0, g->down, TUI_DIM, 0);
        tui_put_ch(box, y, box->w - 1, g->down, TUI_DIM, 0);
    }
    for (int i = 0; i < 4; i++)
        tui_put_ch(box, i < 2 ? 0 : box->h - 1, i % 2 ? box->w - 1 : 0, g->box[i],
                   TUI_DIM, 0);
}

/* An empty one is a line, too. */
static int
lines_of(const char *text, int w)
{
    return *text ? tui_put_wrapped(NULL, 0, 0, w, TUI_TEXT, text) : 1;
}

void
tui_popup_draw(struct tui_popup *p, const struct tui_pane *screen)
{
    char buf[160];
    if (p->kind == TUI_NO_POPUP)
        return;
    bool types = p->kind == TUI_PROMPT || p->filters;
    int rows = p->kind == TUI_MENU ? p->n_items + p->filters : p->check ? 3 : 2;
    if (p->filters && rows > MOST_ROWS)
        rows = MOST_ROWS; /* the rest scrolls, and typing finds it */
    int w = widest(p) + 4;
    w = w > screen->w ? screen->w : w;
    int h = rows + 2;
    for (int i = 0; i < p->n_lines; i++)
        h += lines_of(p->line[i], w - 4);
    h = h > screen->h ? screen->h : h;
    struct tui_pane box =
        tui_pane_part(screen, (screen->h - h) / 3, (screen->w - w) / 2, h, w);
    put_border(&box, p);
    p->area = tui_pane_part(&box, 1, 2, h - 2, w - 4);
    /* Where there is little room what is asked is seen before what is said of it. */
    int y = 0, least = types + (p->kind == TUI_PROMPT ? 1
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
    if (types)
        tui_field_draw(&p->field, &p->area, y++, 0, p->area.w, reason);
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
    if (*item->why)
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
    if (!tui_list_act(&p->list, movement(p, key)) && p->filters &&
        tui_field_key(&p->field, key)) {
        p->list.at = 0;
        filter(p);
    }
}

void
tui_popup_key(struct tui_popup *p, struct tui_app *app, int key)
{
    char buf[160];
    if (key == TUI_K_ESC || key == TUI_CTRL('c')) {
        tui_popup_close(p);
        return;
    }
    if (p->kind == TUI_MENU) {
        menu_key(p, app, key);
        return;
    }
    if (key != TUI_K_ENTER)
        tui_field_key(&p->field, key);
    else if (!reason_of(p, buf))
        finish(p, app, 0);
}

void
tui_popup_click(struct tui_popup *p, struct tui_app *app, int y, int x)
{
    const struct tui_pane *a = &p->area;
    if (y < a->y - 1 || y > a->y + a->h || x < a->x - 2 || x >= a->x + a->w + 2) {
        tui_popup_close(p);
        return;
    }
    int row = y - a->y - p->first_row;
    if (p->kind == TUI_MENU && row >= 0 && y < a->y + a->h)
        choose(p, app, p->list.top + row);
}
