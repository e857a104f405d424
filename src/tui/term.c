/* SPDX-License-Identifier: Apache-2.0 */
/* term.c: see term.h.
 *
 * ncurses reads keys, knows what each terminal can do, and writes the cells that
 * differ; sizes and signals are ours, because its own handlers would redraw in the
 * middle of ours. */
#include "config.h"

/* ncurses declares what it has under this. */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#include "tui/crash.h"
#include "tui/kind.h"
#include "tui/term.h"

#undef lines /* of term.h, as short as they come */
#undef columns

enum {
    ESCAPE_MS = 25,
    ANSWER_TRIES = 8,
    ANSWER_MS = 50, /* for what the terminal was asked as it was opened */
    KEY_OF_MOUSE = KEY_MAX + 1,
    KEY_OF_PASTE,
    KEY_OF_PASTE_END,
    KEY_OF_ANSWER,
};

struct tui_term {
    struct et_ctx *cx;
    SCREEN *screen;
    int in, out; /* descriptors */
    struct tui_theme theme;
    enum tui_depth depth;
    struct {
        int pair; /* of ncurses; -1: not asked for yet */
        int attr;
    } look[TUI_ROLES][TUI_GROUNDS];
    struct tui_grid shown; /* what is on the terminal; no cell: nothing of ours */
    char notice[160];
    bool gone; /* the terminal hung up */
    bool has_mouse, tells;
    bool
        can_ask; /* it understands xterm's questions, and brackets around pasted text */
    const char *themes; /* folder of the user's own */
    bool is_auto;       /* the theme follows the background */
    int backdrop;       /* 0xrrggbb, as the terminal has told; -1: it has not */
    bool asks;          /* and may still */
    bool repaints;
    char answer[48];
    int n_answer;    /* bytes; -1: no answer is under way */
    char report[24]; /* of the mouse, as far as it has come */
    int n_report;    /* bytes; -1: no report is under way */
    bool is_pasting;
    char pasted[TUI_PASTE];
    size_t n_pasted;
};

/* ---- opening ---- */

/* What a cell looks like is asked for when the first of its kind is shown: a terminal
 * of 8 colours has 64 pairs. */
static void
forget_looks(struct tui_term *t)
{
    for (int i = 0; i < TUI_ROLES; i++)
        for (int k = 0; k < TUI_GROUNDS; k++)
            t->look[i][k].pair = -1;
}

static void
find_look(struct tui_term *t, enum tui_role role, enum tui_ground ground)
{
    const int least = 8; /* of all colours, those below are numbers of the palette */
    struct tui_paint p = tui_theme_paint(&t->theme, t->depth, role, ground);
    if (t->depth == TUI_DEPTH_TRUE && p.fg >= 0 && p.fg < least)
        p.fg = least;
    if (t->depth == TUI_DEPTH_TRUE && p.bg >= 0 && p.bg < least)
        p.bg = least;
    int pair = t->depth == TUI_DEPTH_NONE ? 0 : alloc_pair(p.fg, p.bg);
    t->look[role][ground].pair = pair < 0 ? 0 : pair;
    t->look[role][ground].attr = p.attr;
}

/* Arrows as terminals send them whose keypad is in the other mode than terminfo
 * says. */
static void
define_arrows(void)
{
    static const struct {
        const char *text;
        int key;
    } keys[] = {
        {"\033[A", KEY_UP},     {"\033OA", KEY_UP},     {"\033[B", KEY_DOWN},
        {"\033OB", KEY_DOWN},   {"\033[C", KEY_RIGHT},  {"\033OC", KEY_RIGHT},
        {"\033[D", KEY_LEFT},   {"\033OD", KEY_LEFT},   {"\033[H", KEY_HOME},
        {"\033OH", KEY_HOME},   {"\033[F", KEY_END},    {"\033OF", KEY_END},
        {"\033[5~", KEY_PPAGE}, {"\033[6~", KEY_NPAGE}, {"\033[Z", KEY_BTAB},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        define_key(keys[i].text, keys[i].key);
}

static void
begin_input(void)
{
    raw();
    noecho();
    keypad(stdscr, TRUE);
    meta(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    intrflush(stdscr, FALSE);
    set_escdelay(ESCAPE_MS);
    define_arrows();
    define_key("\033[<", KEY_OF_MOUSE);
    define_key("\033[200~", KEY_OF_PASTE);
    define_key("\033[201~", KEY_OF_PASTE_END);
    define_key("\033]11;", KEY_OF_ANSWER);
}

/* The theme NAME; of auto the one for the background that the terminal has told, or its
 * environment; else dark. */
static et_status
load_theme(struct tui_term *t, const char *name, struct et_diagnostics *errors)
{
    struct tui_theme theme;
    bool is_auto = !name || strcmp(name, "auto") == 0;
    int light = t->backdrop < 0 ? tui_fgbg_is_light(getenv("COLORFGBG"))
                                : tui_contrast(t->backdrop, 0) >
                                      tui_contrast(t->backdrop, 0xffffff);
    if (is_auto)
        name = light > 0 ? "light" : "dark";
    ET_TRY(tui_theme_load(t->cx, &theme, t->themes, name, errors));
    t->is_auto = is_auto;
    t->repaints = t->repaints || strcmp(theme.name, t->theme.name) != 0;
    t->theme = theme;
    forget_looks(t);
    tui_grid_release(&t->shown);
    return ET_OK;
}

et_status
tui_term_theme(struct tui_term *t, const char *name, struct et_diagnostics *errors)
{
    return load_theme(t, name, errors);
}

bool
tui_term_repaints(struct tui_term *t)
{
    bool repaints = t->repaints;
    t->repaints = false;
    return repaints;
}

/* The terminal answers among the keys, or never; nothing waits for it. */
static void
ask_backdrop(struct tui_term *t)
{
    static const char ask[] = "\033]11;?\033\\";
    if (t->is_auto && t->depth != TUI_DEPTH_NONE && t->can_ask)
        t->asks = write(t->out, ask, sizeof ask - 1) > 0;
}

/* newterm with the folders in which the entry is. */
static SCREEN *
open_screen(const struct tui_kind *kind, const struct tui_term_config *config)
{
    const char *was = getenv("TERMINFO_DIRS");
    char *kept = was ? strdup(was) : NULL;
    if (*kind->known_dirs)
        setenv("TERMINFO_DIRS", kind->known_dirs, 1);
    SCREEN *screen = newterm(kind->name, config->out, config->in);
    if (*kind->known_dirs && kept)
        setenv("TERMINFO_DIRS", kept, 1);
    else if (*kind->known_dirs)
        unsetenv("TERMINFO_DIRS");
    free(kept);
    return screen;
}

static et_status
begin(struct tui_term *t, const struct tui_term_config *config)
{
    struct tui_kind kind;
    t->in = fileno(config->in);
    t->out = fileno(config->out);
    tui_kind_find(&kind, t->out, config->color, config->terminfo);
    memcpy(t->notice, kind.notice, sizeof t->notice);
    if (!*kind.name || !tigetstr("cup") || tigetstr("cup") == (char *)-1)
        return ET_FAIL(t->cx, ET_ENOTSUP,
                       "a terminal of the kind '%s' cannot place its cursor",
                       *kind.name ? kind.name : "unknown");
    setlocale(LC_CTYPE, "C.UTF-8"); /* what cells hold, whatever the language is */
    /* Before ncurses changes anything: a signal may come at any moment. */
    tui_crash_begin(t->in, t->out, config->crash);
    tui_crash_catch();
    t->screen = open_screen(&kind, config);
    if (!t->screen)
        return ET_FAIL(t->cx, ET_ENOTSUP, "the terminal '%s' cannot be used",
                       kind.name);
    /* (COLORS is 0 until start_color.) */
    if (kind.depth != TUI_DEPTH_NONE && start_color() == OK &&
        use_default_colors() == OK)
        t->depth = kind.depth;
    t->themes = config->themes;
    ET_TRY(load_theme(t, config->theme, config->errors));
    t->repaints = false;
    begin_input();
    t->can_ask = kind.can_ask; /* terminals have all of these or none */
    t->has_mouse = config->mouse && t->can_ask;
    ask_backdrop(t);
    return ET_OK;
}

et_status
tui_term_open(struct et_ctx *cx, const struct tui_term_config *config,
              struct tui_term **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof(struct tui_term), &block));
    struct tui_term *t = block;
    t->cx = cx;
    t->n_report = t->n_answer = t->backdrop = -1;
    et_status status = begin(t, config);
    if (status == ET_OK)
        *out = t;
    else
        tui_term_close(&t);
    return status;
}

/* Presses, releases, and moves while a button is down, in the form of SGR 1006: that of
 * ncurses joins what comes at once, and so loses the steps of a drag. And pasted text
 * in brackets, so that it is not taken for keys. */
static void
tell(struct tui_term *t, bool on)
{
    char ask[48];
    if (!t->can_ask || on == t->tells)
        return;
    const char *mouse = !t->has_mouse ? ""
                        : on          ? "\033[?1002h\033[?1006h"
                                      : "\033[?1002l\033[?1006l";
    snprintf(ask, sizeof ask, "%s\033[?2004%c", mouse, on ? 'h' : 'l');
    if (write(t->out, ask, strlen(ask)) > 0) /* else there is neither */
        t->tells = on;
}

/* An answer that comes later would stand in the shell. */
static void
await_answer(struct tui_term *t)
{
    struct pollfd p = {.fd = t->in, .events = POLLIN};
    struct tui_mouse mouse;
    /* A terminal that hung up is readable for ever. */
    for (int i = 0; i < ANSWER_TRIES && t->asks && !t->gone; i++)
        if (poll(&p, 1, ANSWER_MS) <= 0 || p.revents != POLLIN ||
            tui_term_key(t, &mouse) != TUI_K_NONE)
            return;
}

void
tui_term_close(struct tui_term **term)
{
    struct tui_term *t = *term;
    if (!t)
        return;
    if (t->screen) {
        await_answer(t);
        tell(t, false);
        endwin();
        delscreen(t->screen);
    }
    tui_crash_end();
    tui_grid_release(&t->shown);
    et_free(t->cx, t);
    *term = NULL;
}

const char *
tui_term_notice(const struct tui_term *t)
{
    return *t->notice ? t->notice : NULL;
}

void
tui_term_size(const struct tui_term *t, int *rows, int *cols)
{
    struct winsize w = {0};
    if (ioctl(t->out, TIOCGWINSZ, &w) != 0 || w.ws_row == 0 || w.ws_col == 0)
        w = (struct winsize){.ws_row = 24, .ws_col = 80};
    *rows = w.ws_row;
    *cols = w.ws_col;
}

/* ---- showing ---- */

/* Of a pixel, in colours of the terminal. Of all colours the last three bits are left
 * out: pairs of colours are not without number, and below 8 they are the palette's. */
static int
pixel_color(const struct tui_term *t, uint32_t rgb)
{
    if (t->depth == TUI_DEPTH_TRUE)
        return (int)((rgb & 0xf8f8f8) | 0x040404);
    return tui_nearest_index((int)(rgb & 0xffffff));
}

/* Two pixels of a picture; false: the terminal has too few colours. */
static bool
put_pixels(struct tui_term *t, int y, int x, const struct tui_cell *c)
{
    static const wchar_t half[] = {0x2580, 0};
    cchar_t cell;
    if (c->upper == 0 || (t->depth != TUI_DEPTH_TRUE && t->depth != TUI_DEPTH_256))
        return false;
    int pair = alloc_pair(pixel_color(t, c->upper), pixel_color(t, c->lower));
    if (pair < 0)
        return false;
    setcchar(&cell, half, 0, 0, &pair);
    mvadd_wch(y, x, &cell);
    return true;
}

static void
put_cell(struct tui_term *t, int y, int x, const struct tui_cell *c)
{
    if (put_pixels(t, y, x, c))
        return;
    const wchar_t text[] = {(wchar_t)c->ch, 0};
    if (t->look[c->role][c->ground].pair < 0)
        find_look(t, (enum tui_role)c->role, (enum tui_ground)c->ground);
    int attr = c->attr | t->look[c->role][c->ground].attr;
    int pair = t->look[c->role][c->ground].pair;
    attr_t attrs =
        (attr & TUI_BOLD ? A_BOLD : 0) | (attr & TUI_REVERSE ? A_REVERSE : 0) |
        (attr & TUI_FAINT ? A_DIM : 0) | (attr & TUI_UNDERLINE ? A_UNDERLINE : 0);
    cchar_t cell;
    setcchar(&cell, text, attrs, 0, &pair); /* pairs over 255 go by the pointer */
    mvadd_wch(y, x, &cell);
}

static void
put_cursor(const struct tui_grid *g)
{
    curs_set(g->cursor_y >= 0);
    if (g->cursor_y >= 0)
        move(g->cursor_y, g->cursor_x);
}

/* A grid of the new size, whose cells are all unlike any. */
static bool
fit(struct tui_term *t, const struct tui_grid *g)
{
    if (t->shown.cell && t->shown.rows == g->rows && t->shown.cols == g->cols)
        return true;
    tui_grid_release(&t->shown);
    if (tui_grid_init(&t->shown, t->cx, g->glyphs, g->rows, g->cols) != ET_OK) {
        et_error_clear(t->cx);
        return false;
    }
    resizeterm(g->rows, g->cols);
    memset(t->shown.cell, 0xff,
           (size_t)g->rows * (size_t)g->cols * sizeof *t->shown.cell);
    erase();
    return true;
}

void
tui_term_show(struct tui_term *t, const struct tui_grid *g)
{
    int changed = 0;
    if (!fit(t, g))
        return; /* the next frame tries again */
    for (int i = 0; i < g->rows * g->cols; i++) {
        const struct tui_cell *a = &g->cell[i], *b = &t->shown.cell[i];
        if (a->ch == b->ch && a->role == b->role && a->attr == b->attr &&
            a->ground == b->ground && a->upper == b->upper && a->lower == b->lower)
            continue;
        put_cell(t, i / g->cols, i % g->cols, a);
        changed++;
    }
    if (changed == 0 && g->cursor_y == t->shown.cursor_y &&
        g->cursor_x == t->shown.cursor_x)
        return;
    tui_grid_copy(&t->shown, g);
    put_cursor(g);
    refresh();
    tell(t, true);
}

void
tui_term_forget(struct tui_term *t)
{
    clearok(curscr, TRUE);
    tui_grid_release(&t->shown);
}

/* ---- keys and signals ---- */

void
tui_term_wait(struct tui_term *t, double seconds, int fd)
{
    struct pollfd p[] = {
        {.fd = t->in, .events = POLLIN},
        {.fd = tui_crash_fd(), .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };
    int ms = seconds > 3600 ? 3600000 : seconds > 0 ? (int)ceil(seconds * 1e3) : 0;
    if (poll(p, 3, ms) > 0 && p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
        t->gone = true;
    tui_crash_drain();
}

/* "0;52;1M": button, column and row from 1; "m" ends the report of a release. Of the
 * button, 3 are its number, 32 a move, 64 a wheel; others say which keys are down. */
static int
read_report(const struct tui_term *t, struct tui_mouse *mouse)
{
    enum { NUMBER = 3, RIGHT = 2, MOVE = 32, WHEEL = 64 };
    int button, x, y;
    char end;
    if (sscanf(t->report, "%d;%d;%d%c", &button, &x, &y, &end) != 4)
        return TUI_K_NONE;
    *mouse = (struct tui_mouse){.y = y - 1, .x = x - 1};
    int number = button & NUMBER;
    if (button & WHEEL && end == 'M' && number < 2)
        mouse->what = number ? TUI_WHEEL_DOWN : TUI_WHEEL_UP;
    else if (button & WHEEL)
        return TUI_K_NONE;
    else if (number == RIGHT && end == 'M')
        mouse->what = TUI_RIGHT_CLICK;
    else if (number == 0)
        mouse->what = end == 'm' ? TUI_RELEASE : button & MOVE ? TUI_DRAG : TUI_CLICK;
    else
        return TUI_K_NONE;
    return TUI_K_MOUSE;
}

/* One more byte of a report. */
static int
mouse_key(struct tui_term *t, wint_t ch, struct tui_mouse *mouse)
{
    bool ends = ch == 'M' || ch == 'm';
    if (t->n_report == (int)sizeof t->report - 1 ||
        !(ends || ch == ';' || (ch >= '0' && ch <= '9'))) {
        t->n_report = -1; /* it is none */
        return TUI_K_NONE;
    }
    t->report[t->n_report++] = (char)ch;
    t->report[t->n_report] = '\0';
    if (!ends)
        return TUI_K_NONE;
    t->n_report = -1;
    return read_report(t, mouse);
}

static int
special_key(wint_t code)
{
    static const struct {
        int theirs, ours;
    } keys[] = {
        {KEY_UP, TUI_K_UP},
        {KEY_DOWN, TUI_K_DOWN},
        {KEY_LEFT, TUI_K_LEFT},
        {KEY_RIGHT, TUI_K_RIGHT},
        {KEY_PPAGE, TUI_K_PGUP},
        {KEY_NPAGE, TUI_K_PGDN},
        {KEY_HOME, TUI_K_HOME},
        {KEY_END, TUI_K_END},
        {KEY_BTAB, TUI_K_BACKTAB},
        {KEY_DC, TUI_K_DELETE},
        {KEY_IC, TUI_K_INSERT},
        {KEY_ENTER, TUI_K_ENTER},
        {KEY_BACKSPACE, TUI_K_BACKSPACE},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].theirs == (int)code)
            return keys[i].ours;
    if ((int)code >= KEY_F(1) && (int)code <= KEY_F(12))
        return TUI_K_F1 + (int)code - KEY_F(1);
    return TUI_K_NONE;
}

/* One more character of an answer, which BEL ends, or an escape and a backslash. An
 * answer that names no colour is dropped. */
static void
answer_key(struct tui_term *t, bool is_code, wint_t ch)
{
    bool is_text = !is_code && ch > ' ' && ch < 127 && ch != '\\';
    if (is_text && t->n_answer < (int)sizeof t->answer - 1) {
        t->answer[t->n_answer++] = (char)ch;
        return;
    }
    if (!is_code && ch == TUI_K_ESC) /* the backslash comes */
        return;
    t->answer[t->n_answer] = '\0';
    t->n_answer = -1;
    int rgb = tui_answer_rgb(t->answer);
    struct et_diagnostics errors = {0};
    if (rgb < 0 || !t->asks)
        return;
    t->asks = false;
    t->backdrop = rgb;
    if (t->is_auto && load_theme(t, NULL, &errors) != ET_OK)
        et_error_clear(t->cx); /* it stays what it was */
}

static void
begin_paste(struct tui_term *t)
{
    t->is_pasting = true;
    t->n_pasted = 0;
    t->pasted[0] = '\0';
}

/* One more character of a pasted text. What is no text is a blank; an escape of its own
 * ends it, too, lest a terminal that forgets the end takes all keys away. */
static int
pasted_key(struct tui_term *t, bool is_code, wint_t ch)
{
    char utf8[5];
    if (is_code ? ch == KEY_OF_PASTE_END : ch == TUI_K_ESC) {
        t->is_pasting = false;
        return TUI_K_PASTE;
    }
    size_t n = (size_t)tui_utf8(is_code || ch < ' ' || ch == 127 ? ' ' : ch, utf8);
    if (t->n_pasted + n < sizeof t->pasted) {
        memcpy(t->pasted + t->n_pasted, utf8, n);
        t->n_pasted += n;
        t->pasted[t->n_pasted] = '\0';
    }
    return TUI_K_NONE;
}

const char *
tui_term_pasted(const struct tui_term *t)
{
    return t->pasted;
}

bool
tui_term_has_colors(const struct tui_term *t)
{
    return t->depth != TUI_DEPTH_NONE;
}

bool
tui_term_has_mouse(const struct tui_term *t)
{
    return t->has_mouse;
}

int
tui_term_key(struct tui_term *t, struct tui_mouse *mouse)
{
    wint_t ch;
    for (;;) {
        int kind = wget_wch(stdscr, &ch), key = TUI_K_NONE;
        if (kind == ERR)
            return TUI_K_NONE;
        if (kind == KEY_CODE_YES && ch == KEY_OF_MOUSE)
            t->n_report = 0;
        else if (kind == KEY_CODE_YES && ch == KEY_OF_ANSWER)
            t->n_answer = 0;
        else if (t->n_answer >= 0)
            answer_key(t, kind == KEY_CODE_YES, ch);
        else if (kind == KEY_CODE_YES && ch == KEY_OF_PASTE)
            begin_paste(t);
        else if (t->is_pasting)
            key = pasted_key(t, kind == KEY_CODE_YES, ch);
        else if (t->n_report >= 0)
            key = mouse_key(t, kind == KEY_CODE_YES ? 0 : ch, mouse);
        else if (kind == KEY_CODE_YES)
            key = special_key(ch);
        else if (ch == '\n' || ch == '\r')
            key = TUI_K_ENTER;
        else
            key = ch == 8 ? TUI_K_BACKSPACE : (int)ch;
        if (key != TUI_K_NONE)
            return key;
    }
}

bool
tui_term_resized(struct tui_term *t)
{
    (void)t;
    return tui_crash_take(TUI_CAUGHT_RESIZE);
}

bool
tui_term_leaves(const struct tui_term *t)
{
    return t->gone || tui_crash_is(TUI_CAUGHT_LEAVE);
}

bool
tui_term_suspends(struct tui_term *t)
{
    (void)t;
    return tui_crash_take(TUI_CAUGHT_SUSPEND);
}

void
tui_term_suspend(struct tui_term *t)
{
    tell(t, false);
    endwin();
    tui_crash_stop();
    tui_term_forget(t);
    refresh();
}

void
tui_term_copy(struct tui_term *t, const char *text)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char out[8 + 4 * (TUI_COPY_MAX / 3 + 1) + 2];
    size_t n = strlen(text), at = 0;
    const unsigned char *s = (const unsigned char *)text;
    if (n > TUI_COPY_MAX)
        return;
    at += (size_t)snprintf(out, sizeof out, "\033]52;c;");
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)s[i] << 16 | (i + 1 < n ? (uint32_t)s[i + 1] << 8 : 0) |
                     (i + 2 < n ? s[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            out[at++] = k <= n - i ? digits[v >> (18 - 6 * k) & 63] : '=';
    }
    out[at++] = '\a';
    for (size_t done = 0; done < at;) {
        ssize_t w = write(t->out, out + done, at - done);
        if (w <= 0 && errno != EINTR)
            return;
        done += w > 0 ? (size_t)w : 0;
    }
}
