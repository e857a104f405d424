/* SPDX-License-Identifier: Apache-2.0 */
/* menus.c: what screens are made of: fields, lists, menus, bars. Fields and lists are
 * tried with random keys against plain ones of this file. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "tui/glyphs.h"
#include "tui/widget.h"

static struct et_ctx *cx;
static uint64_t state;

static int
draw(int below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((uint32_t)(state >> 33) % (uint32_t)below);
}

/* What DRAWN makes of ROWS x COLS. The caller frees it. */
typedef void drawn_fn(const struct tui_pane *p, void *data);
static char *
text_of(drawn_fn *drawn, void *data, int rows, int cols, enum eti_plot glyphs)
{
    struct tui_grid g;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f || tui_grid_init(&g, cx, tui_glyphs_of(glyphs), rows, cols) != ET_OK)
        bail("no memory");
    const struct tui_pane all = tui_pane_of(&g);
    drawn(&all, data);
    tui_grid_print(&g, f);
    fclose(f);
    tui_grid_release(&g);
    return text;
}

/* ---- fields ---- */

/* The same as characters, one after the other. */
struct plain {
    int ch[TUI_FIELD];
    int n, at;
};

static void
drop(struct plain *p, int from, int to)
{
    memmove(p->ch + from, p->ch + to, (size_t)(p->n - to) * sizeof *p->ch);
    p->n -= to - from;
    p->at = from;
}

static void
press_plain(struct plain *p, int key)
{
    int word = p->at;
    switch (key) {
    case TUI_K_LEFT:
        p->at -= p->at > 0;
        break;
    case TUI_K_RIGHT:
        p->at += p->at < p->n;
        break;
    case TUI_K_HOME:
    case TUI_CTRL('a'):
        p->at = 0;
        break;
    case TUI_K_END:
    case TUI_CTRL('e'):
        p->at = p->n;
        break;
    case TUI_K_BACKSPACE:
        if (p->at > 0)
            drop(p, p->at - 1, p->at);
        break;
    case TUI_K_DELETE:
        if (p->at < p->n)
            drop(p, p->at, p->at + 1);
        break;
    case TUI_CTRL('u'):
        drop(p, 0, p->at);
        break;
    case TUI_CTRL('k'):
        drop(p, p->at, p->n);
        break;
    case TUI_CTRL('w'):
        while (word > 0 && p->ch[word - 1] == ' ')
            word--;
        while (word > 0 && p->ch[word - 1] != ' ')
            word--;
        drop(p, word, p->at);
        break;
    default:
        memmove(p->ch + p->at + 1, p->ch + p->at,
                (size_t)(p->n - p->at) * sizeof *p->ch);
        p->ch[p->at++] = key;
        p->n++;
    }
}

/* The text of P up to AT. Returns its bytes. */
static size_t
plain_text(const struct plain *p, int at, char *buf)
{
    size_t n = 0;
    for (int i = 0; i < at; i++)
        n += (size_t)tui_utf8((uint32_t)p->ch[i], buf + n);
    buf[n] = '\0';
    return n;
}

static void
test_fields(void)
{
    static const int keys[] = {TUI_K_LEFT,
                               TUI_K_LEFT,
                               TUI_K_RIGHT,
                               TUI_K_HOME,
                               TUI_CTRL('a'),
                               TUI_K_END,
                               TUI_CTRL('e'),
                               TUI_CTRL('u'),
                               TUI_CTRL('k'),
                               TUI_CTRL('w'),
                               TUI_K_BACKSPACE,
                               TUI_K_DELETE,
                               ' ',
                               'a',
                               '~',
                               0xe9,
                               0x20ac,
                               'b',
                               'c',
                               ' '};
    enum { ROUNDS = 200, KEYS = 60, COUNT = sizeof keys / sizeof *keys };
    int failed = 0;
    for (int round = 1; round <= ROUNDS && !failed; round++) {
        struct tui_field f;
        struct plain p = {0};
        char text[TUI_FIELD + 8];
        state = (uint64_t)round;
        tui_field_set(&f, "");
        for (int i = 0; i < KEYS && !failed; i++) {
            const int key = keys[draw(COUNT)];
            failed += !tui_field_key(&f, key);
            press_plain(&p, key);
            const size_t n = plain_text(&p, p.n, text);
            failed += f.n != n || strcmp(f.text, text) != 0;
            failed += f.at != plain_text(&p, p.at, text);
        }
        if (failed)
            diag("round %d", round);
    }
    is_int(failed, 0, "a line takes keys as a row of characters does");
    struct tui_field f;
    static const int others[] = {TUI_K_UP, TUI_K_ENTER, TUI_K_TAB,
                                 TUI_K_F1, 31,          0x65e5};
    tui_field_set(&f, "x");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        failed += tui_field_key(&f, others[i]) || strcmp(f.text, "x") != 0;
    is_int(failed, 0, "other keys are not its own");
    tui_field_set(&f, "");
    for (int i = 0; i < TUI_FIELD + 5; i++)
        tui_field_key(&f, i % 2 ? 0xe9 : 'a');
    ok(f.n <= TUI_FIELD - 1 && f.n >= TUI_FIELD - 3 && strlen(f.text) == f.n &&
           f.at == f.n,
       "what has no room is not taken, and no half of a character");
}

static void
put_rows(const struct tui_pane *p, void *data)
{
    tui_field_draw_rows(data, p, 0, 3, NULL);
    char where[16];
    snprintf(where, sizeof where, "%d,%d", p->grid->cursor_y, p->grid->cursor_x);
    tui_put(p, 3, 0, TUI_TEXT, where);
}

static void
test_rows(void)
{
    struct tui_field f;
    tui_field_set(&f, "abcdefghij");
    is_int(tui_field_rows(&f, 11), 1, "a line and its cursor have room in one row");
    is_int(tui_field_rows(&f, 10), 2, "the cursor behind a full row needs another");
    is_int(tui_field_rows(&f, 4), 3, "and a long one several");
    char *text = text_of(put_rows, &f, 4, 4, ETI_PLOT_ASCII);
    is_str(text, "abcd\nefgh\nij\n2,2\n", "which are drawn with the cursor behind");
    free(text);
    f.at = 4;
    text = text_of(put_rows, &f, 4, 4, ETI_PLOT_ASCII);
    is_str(text, "abcd\nefgh\nij\n1,0\n", "or at the beginning of a row");
    free(text);
}

/* ---- lists ---- */

static void
test_lists(void)
{
    static const enum tui_action acts[] = {
        TUI_DO_everywhere_up,        TUI_DO_everywhere_down,  TUI_DO_everywhere_page_up,
        TUI_DO_everywhere_page_down, TUI_DO_everywhere_first, TUI_DO_everywhere_last,
    };
    int failed = 0;
    for (int round = 1; round <= 300 && !failed; round++) {
        struct tui_list l = {0};
        state = (uint64_t)round;
        const int n = draw(30), rows = 1 + draw(12);
        int at = 0, top = 0;
        tui_list_show(&l, n, rows);
        for (int i = 0; i < 40 && !failed; i++) {
            const int act = draw(6), page = rows > 1 ? rows - 1 : 1;
            const int by[] = {-1, 1, -page, page, -at, n - 1 - at};
            at += by[act];
            at = at > n - 1 ? n - 1 : at;
            at = at < 0 ? 0 : at;
            top = at < top ? at : at > top + rows - 1 ? at - rows + 1 : top;
            failed += !tui_list_act(&l, acts[act]);
            tui_list_show(&l, n, rows);
            failed += l.at != at || l.top != top;
        }
        if (failed)
            diag("round %d: at %d, top %d, not %d, %d", round, l.at, l.top, at, top);
    }
    is_int(failed, 0, "a list moves as keys say, and scrolls as little as it can");
    struct tui_list l = {.at = 9, .top = 5};
    tui_list_show(&l, 4, 3);
    ok(l.at == 3 && l.top == 1, "one that became shorter selects its last");
    ok(!tui_list_act(&l, TUI_DO_everywhere_left), "other keys are not its own");

    struct tui_mouse click = {.what = TUI_CLICK}, up = {.what = TUI_WHEEL_UP},
                     down = {.what = TUI_WHEEL_DOWN}, right = {.what = TUI_RIGHT_CLICK};
    l = (struct tui_list){0};
    tui_list_show(&l, 10, 4);
    ok(tui_list_mouse(&l, &click, 3) && l.at == 3, "a click selects");
    ok(!tui_list_mouse(&l, &click, 4) && !tui_list_mouse(&l, &click, -1) && l.at == 3,
       "not outside of the rows");
    ok(tui_list_mouse(&l, &down, 0) && l.at == 6, "a wheel moves by three");
    tui_list_show(&l, 10, 4);
    ok(tui_list_mouse(&l, &click, 1) && l.at == 4,
       "a click counts from the first shown");
    ok(tui_list_opens(&l, &click, 1) && !tui_list_opens(&l, &click, 2) &&
           !tui_list_opens(&l, &right, 1),
       "one on the selected row opens it");
    ok(tui_list_mouse(&l, &up, 0) && l.at == 1 && tui_list_mouse(&l, &up, 0) &&
           l.at == 0,
       "up as well, to the first");
    tui_list_show(&l, 2, 4);
    ok(!tui_list_mouse(&l, &click, 2), "below the last there is nothing");
}

/* ---- menus ---- */

static const struct tui_item items[] = {
    {.id = 1, .key = 'a', .text = "alpha", .note = "first"},
    {.is_heading = true, .text = "greek"},
    {.id = 2, .key = 'b', .text = "my beta", .why = "broken"},
    {.id = 3, .text = "betamax", .is_held = true},
    {.id = 4, .text = "beta"},
    {.is_heading = true, .text = "others"},
    {.id = 5, .text = "zeta", .note = "last"},
};
enum { ITEMS = sizeof items / sizeof *items };

static int chosen = -1, moved = -2;
static char told[80];

static void
note_done(struct tui_app *app, void *data, int id, const char *text)
{
    (void)app, (void)data;
    chosen = id;
    snprintf(told, sizeof told, "%s", text);
}

static void
note_moved(struct tui_app *app, int id)
{
    (void)app;
    moved = id;
}

static struct tui_popup
menu(bool filters)
{
    struct tui_popup p = {0};
    if (tui_popup_menu(&p, cx, "pick", items, ITEMS) != ET_OK)
        bail("no menu");
    p.filters = filters;
    p.done = note_done;
    p.moved = note_moved;
    tui_popup_sift(&p);
    chosen = -1;
    moved = -2;
    return p;
}

static void
press(struct tui_popup *p, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;)
        tui_popup_key(p, NULL, key);
}

/* The rows of P after TYPED: the ids, 0 for a heading. */
static const char *
rows_of(const char *typed)
{
    static char rows[32];
    struct tui_popup p = menu(true);
    press(&p, typed);
    rows[0] = '\0';
    for (int i = 0; i < p.list.n; i++)
        snprintf(rows + i, sizeof rows - (size_t)i, "%d", p.item[p.shown[i]].id);
    tui_popup_close(&p);
    return rows;
}

static void
test_menus(void)
{
    static const struct {
        const char *typed, *rows, *name;
    } filters[] = {
        {"", "102405", "before something is typed all but what is held is there"},
        {"beta", "0432",
         "the name itself comes first, then what begins so, then others"},
        {"beta ", "0432", "a blank behind it changes nothing"},
        {"BETA", "0432", "in any case"},
        {"eta", "023405", "what stands in several stays in order"},
        {"first", "1", "what stands behind a row is looked at, too"},
        {"zeta last", "05", "several words must all stand there"},
        {"last beta", "", "and where one does not nothing is left"},
        {"z", "05", "a group goes with its heading"},
    };
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        is_str(rows_of(filters[i].typed), filters[i].rows, "'%s': %s", filters[i].typed,
               filters[i].name);

    static const struct {
        const char *keys;
        bool filters;
        int chosen, moved;
        const char *name;
    } ends[] = {
        {"<enter>", false, 1, -2, "enter takes the first"},
        {"<down><enter>", false, -1, 2, "headings are stepped over; what cannot be"},
        {"b", false, -1, 2, "nor by its key"},
        {"a", false, 1, -2, "a key takes its row at once"},
        {"<down><down><enter>", false, 3, 3, "the one behind can be taken"},
        {"jjj<enter>", false, 4, 4, "letters move where nothing is typed"},
        {"<PgDn><enter>", false, 5, 5, "pages end at the last"},
        {"<PgDn><PgUp><enter>", false, 1, 1, "and at the first"},
        {"<esc>", false, -1, -1, "esc takes nothing"},
        {"<ctrl-c>", false, -1, -1, "nor does ctrl-c"},
        {"zet<enter>", true, 5, 5, "typing finds"},
        {"ab<enter>", true, -1, -2, "letters are no keys there"},
        {"<down><down><down>beta<enter>", true, 4, 4, "and begins at the best again"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct tui_popup p = menu(ends[i].filters);
        p.list.page = 6;
        p.told = 1;
        press(&p, ends[i].keys);
        if (!ok(chosen == ends[i].chosen && (moved == ends[i].moved || ends[i].filters),
                "%s: %s", ends[i].keys, ends[i].name))
            diag("%d taken, moved to %d", chosen, moved);
        tui_popup_close(&p);
    }
}

static void
put_popup(const struct tui_pane *p, void *data)
{
    tui_popup_draw(data, p);
}

static void
popup_is(struct tui_popup *p, int rows, int cols, const char *want, const char *name)
{
    char *text = text_of(put_popup, p, rows, cols, ETI_PLOT_ASCII);
    if (!is_str(text, want, "%s", name))
        diag("\n%s", text);
    free(text);
}

static const char *
refuse(void *data, const char *text, char *buf)
{
    (void)data, (void)text, (void)buf;
    return "that is not its name";
}

static void
test_pictures(void)
{
    struct tui_popup p = menu(false);
    tui_popup_line(&p, "one line");
    popup_is(&p, 12, 44,
             "         +- pick -----------------+\n"
             "         | one line               |\n"
             "         | > a  alpha       first |\n"
             "         | greek                  |\n"
             "         |   b  my beta  (broken) |\n"
             "         |      betamax           |\n"
             "         |      beta              |\n"
             "         | others                 |\n"
             "         |      zeta         last |\n"
             "         +------------------------+\n"
             "\n\n",
             "a menu has its lines and its rows");
    tui_popup_close(&p);
    tui_popup_prompt(&p, cx, "name", "calm");
    tui_popup_line(&p, "Of the run.");
    popup_is(&p, 8, 50,
             "\n"
             "     +- name -------------------------------+\n"
             "     | Of the run.                          |\n"
             "     | calm                                 |\n"
             "     | enter does it   esc leaves it        |\n"
             "     +--------------------------------------+\n"
             "\n\n",
             "a question has its field");
    snprintf(p.line[0], sizeof p.line[0], "%s", "");
    p.check = refuse;
    popup_is(&p, 7, 40,
             "+- name -------------------------------+\n"
             "|                                      |\n"
             "| calm                                 |\n"
             "| that is not its name                 |\n"
             "|                                      |\n"
             "+--------------------------------------+\n"
             "\n",
             "and says why an answer will not do");
    press(&p, "<enter>");
    ok(p.kind == TUI_PROMPT, "which enter does not take");
    tui_popup_close(&p);
}

static void
test_clicks(void)
{
    struct tui_popup p = menu(false);
    char *text = text_of(put_popup, &p, 20, 60, ETI_PLOT_ASCII);
    free(text);
    const struct tui_pane a = p.area;
    tui_popup_click(&p, NULL, a.y + p.first_row + 1, a.x);
    ok(p.kind == TUI_MENU && chosen == -1, "a click on a heading takes nothing");
    tui_popup_click(&p, NULL, a.y + p.first_row + 4, a.x);
    ok(p.kind == TUI_NO_POPUP && chosen == 4, "one on a row takes it");
    static const struct {
        int y, x;
        bool stays;
    } places[] = {{-1, 0, true}, {-2, 0, false}, {-1, -2, true}, {-1, -3, false}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        p = menu(false);
        p.area = a;
        tui_popup_click(&p, NULL, a.y + places[i].y, a.x + places[i].x);
        ok((p.kind == TUI_MENU) == places[i].stays, "%d,%d from its corner a click %s",
           places[i].y, places[i].x, places[i].stays ? "changes nothing" : "closes it");
        tui_popup_close(&p);
        p = menu(false);
        p.area = a;
        tui_popup_click(&p, NULL, a.y + a.h - 1 - places[i].y,
                        a.x + a.w - 1 - places[i].x);
        ok((p.kind == TUI_MENU) == places[i].stays, "at the other end too");
        tui_popup_close(&p);
    }
}

/* ---- bars ---- */

static void
test_percents(void)
{
    int failed = 0;
    for (int round = 1; round <= 500; round++) {
        double part[TUI_SHARES], sum = 0;
        int percent[TUI_SHARES], all = 0;
        state = (uint64_t)round;
        const int n = 1 + draw(12);
        for (int i = 0; i < n; i++)
            sum += part[i] = draw(3) ? draw(1000) : 0;
        tui_percents(part, n, percent);
        for (int i = 0; i < n; i++) {
            all += percent[i];
            failed += sum > 0 && fabs(percent[i] - 100 * part[i] / sum) >= 1;
            failed += part[i] == 0 && percent[i] != 0;
        }
        failed += all != (sum > 0 ? 100 : 0);
        if (failed) {
            diag("round %d", round);
            break;
        }
    }
    is_int(failed, 0, "percents sum to a hundred, and none is off by one");
}

struct bar {
    double done;
    int phase;
};

static void
put_bar(const struct tui_pane *p, void *data)
{
    const struct bar *b = data;
    tui_bar(p, 0, 0, p->w, b->done, b->phase);
}

static void
put_gauge(const struct tui_pane *p, void *data)
{
    const struct bar *b = data;
    tui_gauge(p, 0, 0, p->w, b->done, b->phase);
}

static void
put_share(const struct tui_pane *p, void *data)
{
    const struct bar *b = data;
    tui_share(p, 0, 0, p->w, b->done, (int)(b->done * 100), false);
}

static void
test_bars(void)
{
    static const struct {
        drawn_fn *drawn;
        struct bar bar;
        const char *want, *name;
    } rows[] = {
        {put_bar, {0, 0}, "[          ]\n", "nothing is done"},
        {put_bar, {.1, 0}, "[>         ]\n", "a tenth of it"},
        {put_bar,
         {.55, 0},
         "[====>     ]\n",
         "half of it, what is begun does not count"},
        {put_bar, {1, 0}, "[==========]\n", "all of it has no tip"},
        {put_bar, {7, 0}, "[==========]\n", "nor has more"},
        {put_bar, {-1, 0}, "[          ]\n", "less than nothing is nothing"},
        {put_bar, {NAN, -1}, "[          ]\n", "a length that is not known"},
        {put_bar, {NAN, 0}, "[====      ]\n", "has a mark"},
        {put_bar, {NAN, 6}, "[      ====]\n", "that goes to the end"},
        {put_bar, {NAN, 7}, "[     ==== ]\n", "and back"},
        {put_bar, {NAN, 12}, "[====      ]\n", "where it begins again"},
        {put_gauge, {0, 1}, "[..........]\n", "an empty gauge"},
        {put_gauge, {.001, 1}, "[#.........]\n", "shows a trace"},
        {put_gauge, {.29, 1}, "[###.......]\n", "what is full by half of its cells"},
        {put_gauge, {.849, 1}, "[########..]\n", "up to 85 % it does not warn"},
        {put_gauge, {.851, 1}, "[#########.!\n", "above it does"},
        {put_gauge, {.851, 0}, "[#########.]\n", "where that matters"},
        {put_gauge, {NAN, 1}, "[..........]\n", "what is not known is empty"},
        {put_gauge, {1.5, 0}, "[##########]\n", "more than all is all"},
        {put_share, {.5, 0}, "####     50%\n", "a share of the room, and its percents"},
        {put_share, {1, 0}, "####### 100%\n", "all of it"},
        {put_share, {0, 0}, "          0%\n", "nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = text_of(rows[i].drawn, (void *)(uintptr_t)&rows[i].bar, 1, 12,
                             ETI_PLOT_ASCII);
        is_str(text, rows[i].want, "%s", rows[i].name);
        free(text);
    }
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_fields();
    test_rows();
    test_lists();
    test_menus();
    test_pictures();
    test_clicks();
    test_percents();
    test_bars();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
