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
#include "tui/glyphs.h"
#include "tui/term.h"

#undef lines /* of term.h, as short as they come */
#undef columns

enum {
    ESCAPE_MS = 25,
    PAIRS_FROM = 1,
    KEY_OF_MOUSE = KEY_MAX + 1,
    KEY_OF_PASTE,
    KEY_OF_PASTE_END,
};

struct tui_term {
    struct et_ctx *cx;
    SCREEN *screen;
    int in, out; /* descriptors */
    struct tui_theme theme;
    bool has_color;
    struct tui_grid shown; /* what is on the terminal; no cell: nothing of ours */
    char notice[160];
    bool gone; /* the terminal hung up */
    bool has_mouse, has_paste, tells;
    char report[24]; /* of the mouse, as far as it has come */
    int n_report;    /* bytes; -1: none is under way */
    bool is_pasting;
    char pasted[TUI_PASTE];
    size_t n_pasted;
};

/* ---- opening ---- */

/* What to tell ncurses that the terminal is. */
static const char *
terminal_name(struct tui_term *t)
{
    static const char *const known[] = {"xterm-256color", "xterm", "vt100", "ansi"};
    const char *own = getenv("TERM");
    int error;
    if (own && *own && setupterm(own, t->out, &error) == OK)
        return own;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (setupterm(known[i], t->out, &error) == OK) {
            char visible[64];
            et_visible(visible, sizeof visible, own ? own : "", own ? strlen(own) : 0);
            snprintf(t->notice, sizeof t->notice,
                     "this machine does not know the terminal '%s': taken for %s",
                     visible, known[i]);
            return known[i];
        }
    return NULL;
}

static void
begin_colors(struct tui_term *t)
{
    start_color();
    use_default_colors();
    for (int i = 0; i < TUI_ROLES; i++)
        init_pair((short)(PAIRS_FROM + i), (short)t->theme.color[i], -1);
}

/* Arrows as terminals send them whose keypad is in the other mode than terminfo says.
 */
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
}

static et_status
read_theme(struct tui_term *t, const struct tui_term_config *config)
{
    int colors = has_colors() ? COLORS : 0;
    t->has_color = tui_has_color(config->color, colors) && colors >= 8;
    tui_theme_default(&t->theme, t->has_color ? colors : 0);
    return config->theme ? tui_theme_read(t->cx, &t->theme, config->theme,
                                          t->has_color ? colors : 0, config->errors)
                         : ET_OK;
}

static et_status
begin(struct tui_term *t, const struct tui_term_config *config)
{
    t->in = fileno(config->in);
    t->out = fileno(config->out);
    const char *name = terminal_name(t);
    if (!name || !tigetstr("cup") || tigetstr("cup") == (char *)-1)
        return ET_FAIL(t->cx, ET_ENOTSUP,
                       "a terminal of the kind '%s' cannot place its cursor",
                       name ? name : "unknown");
    setlocale(LC_CTYPE, "C.UTF-8"); /* what cells hold, whatever the language is */
    /* Before ncurses changes anything: a signal may come at any moment. */
    tui_crash_begin(t->in, t->out, config->crash);
    tui_crash_catch();
    t->screen = newterm(name, config->out, config->in);
    if (!t->screen)
        return ET_FAIL(t->cx, ET_ENOTSUP, "the terminal '%s' cannot be used", name);
    ET_TRY(read_theme(t, config));
    begin_input();
    const char *mouse = tigetstr("kmous");
    t->has_paste = mouse && mouse != (char *)-1; /* terminals have both or neither */
    t->has_mouse = config->mouse && t->has_paste;
    if (t->has_color)
        begin_colors(t);
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
    t->n_report = -1;
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
    if (!t->has_paste || on == t->tells)
        return;
    const char *mouse = !t->has_mouse ? ""
                        : on          ? "\033[?1002h\033[?1006h"
                                      : "\033[?1002l\033[?1006l";
    snprintf(ask, sizeof ask, "%s\033[?2004%c", mouse, on ? 'h' : 'l');
    if (write(t->out, ask, strlen(ask)) > 0) /* else there is neither */
        t->tells = on;
}

void
tui_term_close(struct tui_term **term)
{
    struct tui_term *t = *term;
    if (!t)
        return;
    if (t->screen) {
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

static void
put_cell(const struct tui_term *t, int y, int x, const struct tui_cell *c)
{
    const wchar_t text[] = {(wchar_t)c->ch, 0};
    int attr = c->attr | t->theme.attr[c->role];
    attr_t attrs = (attr & TUI_BOLD ? A_BOLD : 0) |
                   (attr & TUI_REVERSE ? A_REVERSE : 0) |
                   (attr & TUI_FAINT ? A_DIM : 0);
    cchar_t cell;
    setcchar(&cell, text, attrs, (short)(t->has_color ? PAIRS_FROM + c->role : 0),
             NULL);
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
        if (a->ch == b->ch && a->role == b->role && a->attr == b->attr)
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
