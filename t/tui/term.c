/* SPDX-License-Identifier: Apache-2.0 */
/* term.c: a terminal shows what --dump-screen prints, and is as it was afterwards.
 *
 * The screens run in a child on a pseudo-terminal; libvterm is the terminal.
 * RELIABILITY.md section 10, R12 and R35. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>
#include <vterm.h>

#include "core/library/facts.h"
#include "t/tap.h"
#include "tui/app.h"

enum {
    QUIET_MS = 100,    /* without output: likely there is no more at once */
    PATIENCE = 120000, /* ms until what should be there is */
};

static char folder[] = "/tmp/etude-term.XXXXXX";
static char run_path[64];
static char layout_path[64]; /* what the mouse moved */

struct seat {
    pid_t pid;
    int fd; /* the master's end */
    struct termios before;
    VTerm *vt;
    VTermScreen *screen;
    bool alternate, cursor;
    int mouse;    /* what it tells: VTERM_PROP_MOUSE_ */
    int controls; /* bytes that are no text and no escape sequence's beginning */
    int64_t bytes;
    int rows, cols;
};

/* ---- the terminal ---- */

static int
set_property(VTermProp prop, VTermValue *value, void *data)
{
    struct seat *s = data;
    if (prop == VTERM_PROP_ALTSCREEN)
        s->alternate = value->boolean;
    if (prop == VTERM_PROP_MOUSE)
        s->mouse = value->number;
    if (prop == VTERM_PROP_CURSORVISIBLE)
        s->cursor = value->boolean;
    return 1;
}
static const VTermScreenCallbacks callbacks = {.settermprop = set_property};

static void
sit_down(struct seat *s, int rows, int cols)
{
    s->rows = rows;
    s->cols = cols;
    s->cursor = true;
    s->vt = vterm_new(rows, cols);
    vterm_set_utf8(s->vt, 1);
    s->screen = vterm_obtain_screen(s->vt);
    vterm_screen_set_callbacks(s->screen, &callbacks, s);
    vterm_screen_enable_altscreen(s->screen, 1);
    vterm_screen_reset(s->screen, 1);
}

/* Feeds what comes until nothing has for so long. False when the child's end is
 * closed. */
static bool
watch(struct seat *s, int quiet_ms)
{
    char bytes[4096];
    for (;;) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        int n = poll(&p, 1, quiet_ms);
        if (n <= 0)
            return true;
        ssize_t got = read(s->fd, bytes, sizeof bytes);
        if (got <= 0)
            return false;
        s->bytes += got;
        for (ssize_t i = 0; i < got; i++)
            s->controls += (unsigned char)bytes[i] < 32 &&
                           !strchr("\033\r\n\b\t\016\017", bytes[i]);
        vterm_input_write(s->vt, bytes, (size_t)got);
    }
}

/* The picture as tui_grid_print would write it. The caller frees it. */
static char *
picture(const struct seat *s)
{
    char *text = NULL, ch[5];
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (int y = 0; y < s->rows; y++) {
        int blanks = 0;
        for (int x = 0; x < s->cols; x++) {
            VTermScreenCell cell;
            vterm_screen_get_cell(s->screen, (VTermPos){y, x}, &cell);
            if (cell.chars[0] == 0 || cell.chars[0] == ' ') {
                blanks++;
                continue;
            }
            fprintf(f, "%*s", blanks, "");
            blanks = 0;
            tui_utf8(cell.chars[0], ch);
            fputs(ch, f);
        }
        putc('\n', f);
    }
    fclose(f);
    return text;
}

static bool
stands(const struct seat *s, const char *text)
{
    char *now = picture(s);
    bool found = strstr(now, text) != NULL;
    free(now);
    return found;
}

/* Does TEXT come to stand on the terminal? */
static bool
comes(struct seat *s, const char *text)
{
    for (int i = 0; i < PATIENCE / QUIET_MS && !stands(s, text); i++)
        watch(s, QUIET_MS);
    return stands(s, text);
}

/* Waits until it does not: an escape and the key behind it, taken from the terminal in
 * one piece, are another key. */
static void
goes(struct seat *s, const char *text)
{
    for (int i = 0; i < PATIENCE / QUIET_MS && stands(s, text); i++)
        watch(s, QUIET_MS);
}

/* Until the first picture is there: what follows it asks for the mouse. */
static void
await(struct seat *s)
{
    for (int i = 0; i < PATIENCE / QUIET_MS && s->mouse == 0; i++)
        if (!watch(s, QUIET_MS))
            return;
}

/* ---- screens in a child ---- */

struct scene {
    int rows, cols;
    enum eti_plot plot;
    const char *term;
};

/* What the next child writes waits until somebody lets it go on. */
static bool holds_output;

static struct tui_app *
open_app(struct et_ctx *cx, const struct scene *scene)
{
    struct tui_app *app;
    struct tui_source *source;
    json_t *facts;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = tui_glyphs_of(scene->plot),
        .is_dump = true,
        .is_past = true, /* it goes on, as its last record says */
        .layout = layout_path,
        .first = TUI_IN_monitor,
        .rows = scene->rows,
        .cols = scene->cols,
    };
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK ||
        eti_facts_read(cx, run_path, &facts) != ET_OK ||
        tui_source_dir(cx, facts, &source) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    tui_app_attach(app, &source);
    while (app->source->class->advance(app->source, 1, 0))
        continue;
    return app;
}

/* What the program does between its beginning and its end. */
static void
run_screens(const struct scene *scene)
{
    struct et_ctx *cx;
    struct tui_term *term;
    struct et_diagnostics errors = {0};
    const struct tui_term_config config = {
        .in = stdin, .out = stdout, .mouse = true, .errors = &errors};
    setenv("TERM", scene->term, 1);
    if (et_ctx_new(&cx) != ET_OK)
        _exit(1);
    struct tui_app *app = open_app(cx, scene);
    if (tui_term_open(cx, &config, &term) != ET_OK)
        _exit(2);
    tui_run(app, term);
    tui_term_close(&term);
    tui_app_free(&app);
    et_ctx_free(&cx);
    _exit(0);
}

static void
begin(struct seat *s, const struct scene *scene, char *const *argv)
{
    struct winsize w = {.ws_row = (unsigned short)scene->rows,
                        .ws_col = (unsigned short)scene->cols};
    int slave;
    *s = (struct seat){0};
    sit_down(s, scene->rows, scene->cols);
    if (openpty(&s->fd, &slave, NULL, NULL, &w) != 0)
        bail("no pseudo-terminal: %s", strerror(errno));
    tcgetattr(s->fd, &s->before);
    if (holds_output)
        tcflow(slave, TCOOFF);
    s->pid = fork();
    if (s->pid == 0) {
        close(s->fd);
        login_tty(slave);
        if (!argv)
            run_screens(scene);
        setenv("TERM", scene->term, 1);
        execv(argv[0], argv);
        _exit(127);
    }
    close(slave);
}

static int
end(struct seat *s)
{
    int status = 0;
    bool is_open = true;
    for (int i = 0; i < PATIENCE / QUIET_MS && is_open; i++)
        is_open = watch(s, QUIET_MS);
    if (is_open)
        kill(s->pid, SIGKILL); /* it does not leave */
    waitpid(s->pid, &status, 0);
    close(s->fd);
    vterm_free(s->vt);
    return status;
}

static void
press(struct seat *s, const char *keys)
{
    if (write(s->fd, keys, strlen(keys)) < 0)
        diag("the terminal takes no keys");
    watch(s, QUIET_MS);
}

/* The screen after KEYS, and then after MOUSE; NULL: it was not used. */
static char *
dump_mouse(const struct scene *scene, const char *keys, const struct tui_mouse *mouse)
{
    char *text = NULL;
    size_t size;
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    struct tui_app *app = open_app(cx, scene);
    const struct tui_dump what = {.keys = keys};
    FILE *f = open_memstream(&text, &size);
    if (tui_dump_screen(app, &what, f) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    if (mouse) {
        rewind(f);
        tui_app_mouse(app, mouse);
        tui_app_draw(app);
        tui_grid_print(&app->grid, f);
    }
    fclose(f);
    tui_app_free(&app);
    et_ctx_free(&cx);
    return text;
}

static char *
dump(const struct scene *scene, const char *keys)
{
    return dump_mouse(scene, keys, NULL);
}

/* Does the terminal come to show WANT? */
static void
becomes(struct seat *s, const struct scene *scene, const char *want, const char *name)
{
    char *got = picture(s);
    for (int i = 0; i < PATIENCE / QUIET_MS && strcmp(got, want) != 0; i++) {
        free(got);
        watch(s, QUIET_MS);
        got = picture(s);
    }
    if (!ok(strcmp(got, want) == 0, "%dx%d on %s: %s", scene->cols, scene->rows,
            scene->term, name))
        diag("\n%s\n%s", got, want);
    free(got);
}

static void
is_shown(struct seat *s, const struct scene *scene, const char *keys, const char *name)
{
    char *want = dump(scene, keys);
    becomes(s, scene, want, name);
    free(want);
}

static void
test_pictures(const struct scene *scene)
{
    struct seat s;
    begin(&s, scene, NULL);
    is_shown(&s, scene, "", "Monitor as it is printed");
    if (strcmp(scene->term, "vt100") != 0)
        ok(s.alternate, "on a screen of its own");
    press(&s, "+xs");
    is_shown(&s, scene, "+xs", "zoomed, over epochs, smoother");
    press(&s, "c");
    is_shown(&s, scene, "+xsc", "a menu above it");
    press(&s, "\033");
    is_shown(&s, scene, "+xs", "which is closed");
    press(&s, "?");
    is_shown(&s, scene, "+xs?", "help");
    press(&s, "\033");
    is_shown(&s, scene, "+xs", "likewise");
    press(&s, "5");
    is_shown(&s, scene, "+xs5", "Logs, whose lines have escapes in them");
    press(&s, "\033[A\033[A");
    is_shown(&s, scene, "+xs5<up><up>", "arrows");
    press(&s, "q");
    int status = end(&s);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "q leaves");
    is_int(s.controls, 0, "no control byte went to the terminal");
}

static void
test_resize(void)
{
    struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    struct seat s;
    static const int sizes[][2] = {{50, 200}, {16, 60}, {5, 20}, {1, 1}, {24, 80}};
    begin(&s, &scene, NULL);
    await(&s);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct winsize w = {.ws_row = (unsigned short)sizes[i][0],
                            .ws_col = (unsigned short)sizes[i][1]};
        scene.rows = s.rows = sizes[i][0];
        scene.cols = s.cols = sizes[i][1];
        vterm_set_size(s.vt, s.rows, s.cols);
        ioctl(s.fd, TIOCSWINSZ, &w);
        is_shown(&s, &scene, "", "after the window has changed its size");
    }
    press(&s, "q");
    end(&s);
}

/* Tabs, hints and panels are where one clicks; the wheel scrolls. */
static void
test_mouse(void)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    struct seat s;
    begin(&s, &scene, NULL);
    is_shown(&s, &scene, "", "before anything is clicked");
    press(&s, "\033[<0;52;1M\033[<0;52;1m"); /* column 52 of the first line */
    is_shown(&s, &scene, "5", "a click on a tab goes there");
    press(&s, "\033[<64;10;10M");
    is_shown(&s, &scene, "5<up><up><up>", "the wheel moves by three lines");
    press(&s, "\033[<0;20;1M\033[<0;20;1m");
    is_shown(&s, &scene, "", "another tab leads back");
    press(&s, "\033[<0;32;24M\033[<0;32;24m");
    is_shown(&s, &scene, "y", "a click on a hint does it");
    press(&s, "\033[<0;10;17M\033[<0;10;17m");
    press(&s, "z");
    is_shown(&s, &scene, "y<tab><tab>z", "a click on a panel gives it the keys");
    press(&s, "q");
    end(&s);
}

/* What is selected is opened by a click; the right button inspects where it goes. */
static void
test_clicks(void)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    struct seat s;
    begin(&s, &scene, NULL);
    is_shown(&s, &scene, "", "before anything is clicked");
    const struct tui_mouse right = {.what = TUI_RIGHT_CLICK, .y = 9, .x = 19},
                           further = {.what = TUI_RIGHT_CLICK, .y = 9, .x = 29};
    char *at_20 = dump_mouse(&scene, "", &right);
    char *at_30 = dump_mouse(&scene, "", &further);
    ok(strcmp(at_20, at_30) != 0, "the right button shows values");
    press(&s, "\033[<2;20;10M\033[<2;20;10m");
    becomes(&s, &scene, at_20, "of where it is pressed");
    press(&s, "\033[<2;30;10M\033[<2;30;10m");
    becomes(&s, &scene, at_30, "and pressed again");
    press(&s, "\033[<2;30;10M\033[<34;25;10M\033[<34;20;10M\033[<2;20;10m");
    becomes(&s, &scene, at_20, "of where it is dragged to");
    free(at_20);
    free(at_30);
    press(&s, "\033");
    is_shown(&s, &scene, "", "until they are closed");
    press(&s, "?");
    is_shown(&s, &scene, "?", "help");
    press(&s, "\033[<0;45;5M\033[<0;45;5m");
    is_shown(&s, &scene, "?<down>", "a click selects a row of the help");
    press(&s, "\033[<0;45;5M\033[<0;45;5m");
    is_shown(&s, &scene, "/", "and on the one that is selected does it");
    press(&s, "\033");
    is_shown(&s, &scene, "", "what it began is left");
    press(&s, "?");
    is_shown(&s, &scene, "?", "for the help again");
    press(&s, "\033[<0;3;24M\033[<0;3;24m");
    is_shown(&s, &scene, "", "a click on its hint closes it");
    press(&s, "q");
    end(&s);
}

/* The number of the palette that the cell at Y, X is painted with; -1: of none. */
static int
color_at(const struct seat *s, int y, int x)
{
    VTermScreenCell cell;
    vterm_screen_get_cell(s->screen, (VTermPos){y, x}, &cell);
    return VTERM_COLOR_IS_INDEXED(&cell.fg) && !VTERM_COLOR_IS_DEFAULT_FG(&cell.fg)
               ? cell.fg.indexed.idx
               : -1;
}

static bool
is_painted(struct seat *s, int y, int x, int want)
{
    for (int i = 0; i < PATIENCE / QUIET_MS && color_at(s, y, x) != want; i++)
        watch(s, QUIET_MS);
    return color_at(s, y, x) == want;
}

/* The theme follows what the terminal says of its background, whenever it does. */
static void
test_backdrop(void)
{
    enum { ON_DARK = 252, ON_LIGHT = 237 }; /* of the word "etude": section */
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    struct seat s;
    unsetenv("COLORTERM");
    unsetenv("COLORFGBG");
    begin(&s, &scene, NULL);
    is_shown(&s, &scene, "", "before the terminal says anything");
    ok(is_painted(&s, 0, 1, ON_DARK), "it is taken for dark");
    press(&s, "\033]11;rgb:fafa/fafa/fafa\033\\");
    ok(is_painted(&s, 0, 1, ON_LIGHT), "until it says that it is light");
    press(&s, "\033]11;rgb:1e1e/1e1e/2e2e\a");
    is_shown(&s, &scene, "", "and the answer is no keys");
    ok(is_painted(&s, 0, 1, ON_LIGHT), "nor another one, which nobody asked for");
    press(&s, "q");
    end(&s);
    setenv("COLORFGBG", "0;15", 1);
    begin(&s, &scene, NULL);
    ok(is_painted(&s, 0, 1, ON_LIGHT), "COLORFGBG says it, too");
    press(&s, "q");
    int status = end(&s);
    unsetenv("COLORFGBG");
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "and it ends as always");
}

/* What is pasted is text, never keys. */
static void
test_paste(void)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    char long_text[6000];
    struct seat s;
    begin(&s, &scene, NULL);
    is_shown(&s, &scene, "", "before anything is pasted");
    press(&s, "\033[200~y q\r5\033[201~");
    ok(comes(&s, "what was pasted is not used"), "where nothing is typed it says so");
    press(&s, "y");
    ok(comes(&s, "log \u2501 ema"),
       "and neither leaves nor does what its letters mean");
    press(&s, "y/\033[200~loss\nlr\n\033[201~");
    ok(comes(&s, " loss lr "), "where something is typed lines become one");
    press(&s, "\025");
    memset(long_text, 'w', sizeof long_text);
    memcpy(long_text, "\033[200~", 6);
    memcpy(long_text + sizeof long_text - 7, "\033[201~", 7);
    press(&s, long_text);
    ok(comes(&s, "too long: cut to 511 bytes"),
       "and a text without end is cut, which is said");
    press(&s, "\033");
    goes(&s, "wwww");
    press(&s, "q");
    int status = end(&s);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "the keys behind it are keys again");
}

/* Waits until the file of borders is there, and says something else than TEXT, which it
 * then is: it is written after the picture has changed. */
static void
until_kept(struct seat *s, char *text, size_t size)
{
    char now[256];
    for (int i = 0; i < PATIENCE / QUIET_MS; i++) {
        FILE *f = fopen(layout_path, "r");
        size_t n = f ? fread(now, 1, sizeof now - 1, f) : 0;
        now[n] = '\0';
        if (f)
            fclose(f);
        if (n > 0 && strcmp(now, text) != 0)
            break;
        watch(s, QUIET_MS);
    }
    snprintf(text, size, "%s", now);
}

/* Borders go where they are dragged, and are there again the next time: is_shown prints
 * what another program shows that reads where they are. */
static void
test_borders(void)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    struct seat s;
    char *before = dump(&scene, ""), *now, kept[256] = "";
    begin(&s, &scene, NULL);
    is_shown(&s, &scene, "", "before anything is dragged");
    await(&s);
    is_int(s.mouse, VTERM_PROP_MOUSE_DRAG, "the terminal tells moves of the mouse");
    press(&s, "\033[<0;47;10M\033[<32;44;10M\033[<32;40;11M\033[<0;40;11m");
    until_kept(&s, kept, sizeof kept);
    is_shown(&s, &scene, "<tab>", "a border between columns is dragged");
    now = picture(&s);
    ok(strcmp(now, before) != 0, "which changes the picture");
    free(now);
    press(&s, "\033[<0;60;15M\033[<32;60;13M\033[<32;60;1M\033[<0;60;1m");
    until_kept(&s, kept, sizeof kept);
    is_shown(&s, &scene, "<tab><tab>",
             "and one between lines, as far as there is room");
    press(&s, "q");
    end(&s);
    begin(&s, &scene, NULL);
    is_shown(&s, &scene, "", "both are there the next time");
    press(&s, "\033[<0;10;11M\033[<32;11;12M\033[<0;11;12m");
    is_shown(&s, &scene, "", "what is no border is not dragged");
    press(&s, "q");
    end(&s);
    free(before);
    unlink(layout_path);
}

/* When nothing changes nothing is written. */
static void
test_silence(void)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    struct seat s;
    begin(&s, &scene, NULL);
    is_shown(&s, &scene, "", "as it is printed");
    await(&s);
    int64_t before = s.bytes;
    struct pollfd p = {.fd = s.fd, .events = POLLIN};
    ok(poll(&p, 1, 1500) == 0, "a screen on which nothing changes writes nothing");
    press(&s, "y");
    ok(s.bytes - before < 2500, "a key writes what it changes: %lld bytes",
       (long long)(s.bytes - before));
    press(&s, "q");
    end(&s);
}

/* ---- the program itself, and its end ---- */

static bool
is_usable(const struct seat *s, const struct termios *now)
{
    return !s->alternate && s->cursor && now->c_lflag == s->before.c_lflag &&
           now->c_iflag == s->before.c_iflag && now->c_oflag == s->before.c_oflag;
}

/* Begins `etude attach` of the run. */
static void
begin_program(struct seat *s, const struct scene *scene)
{
    const char *build = getenv("ET_BUILDDIR");
    char program[4096];
    snprintf(program, sizeof program, "%s/etude", build ? build : ".");
    char *argv[] = {program, "attach", run_path, NULL};
    begin(s, scene, argv);
}

/* As `etude worker add` does, in another shell. */
static void
add_worker(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/workers.yaml", folder);
    FILE *f = fopen(path, "a");
    if (!f || fprintf(f, "%s: {address: ssh://nowhere.invalid}\n", name) < 0 ||
        fclose(f) != 0)
        bail("cannot write %s", path);
}

/* Its rows ask other processes, which only the program is. */
static void
test_workers(void)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    struct seat s;
    begin_program(&s, &scene);
    await(&s);
    press(&s, "4");
    ok(comes(&s, "[4 Workers]") && comes(&s, "role     operator"), "Workers is there");
    add_worker("abbey");
    ok(comes(&s, "abbey"), "a worker that is added elsewhere comes by itself");
    press(&s, "\033[<0;10;22M\033[<0;10;22m");
    press(&s, "nobody");
    ok(comes(&s, "address  nobody"), "a click on its form types there");
    press(&s, "\033");
    goes(&s, "address  nobody");
    press(&s, "\033[<0;10;5M\033[<0;10;5m");
    ok(comes(&s, "[3 Runs]"),
       "and one on this machine, which is selected, shows its runs");
    press(&s, "1");
    ok(comes(&s, "Begin with"), "Compose says how one begins");
    press(&s, "\033[<0;12;11M\033[<0;12;11m");
    ok(comes(&s, "a new recipe, of"), "and a click on a way goes it");
    press(&s, "\033");
    goes(&s, "a new recipe, of");
    press(&s, "q");
    end(&s);
}

/* Until keys come to it one by one: then it writes, for the first time. */
static void
until_raw(const struct seat *s)
{
    struct termios now = s->before;
    for (int i = 0; i < PATIENCE / 10 && now.c_lflag & ICANON; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        tcgetattr(s->fd, &now);
    }
}

/* EARLY: before a byte of the screen is on the terminal. */
static void
test_signal(int number, bool leaves, bool early)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    char keeper[64];
    struct termios now;
    struct seat s;
    holds_output = early;
    begin_program(&s, &scene);
    holds_output = false;
    /* Somebody keeps the terminal open, so that its settings can be looked at. */
    int keep = open(ptsname_r(s.fd, keeper, sizeof keeper) == 0 ? keeper : "/dev/null",
                    O_RDWR | O_NOCTTY);
    if (early)
        until_raw(&s);
    else
        await(&s);
    bool began = early || s.alternate;
    kill(s.pid, number);
    tcflow(keep, TCOON);
    int status = 0;
    for (int i = 0; i < PATIENCE / QUIET_MS && waitpid(s.pid, &status, WNOHANG) == 0;
         i++)
        watch(&s, QUIET_MS);
    watch(&s, QUIET_MS);
    tcgetattr(s.fd, &now);
    ok(began && is_usable(&s, &now), "SIG%s%s leaves a usable terminal",
       sigabbrev_np(number), early ? ", however early," : "");
    if (leaves)
        ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "and is a way to leave");
    else
        ok(WIFSIGNALED(status) && WTERMSIG(status) == number,
           "and ends the process as it would have");
    close(keep);
    close(s.fd);
    vterm_free(s.vt);
}

static void
test_unknown_terminal(void)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-of-tomorrow"};
    struct seat s;
    begin(&s, &scene, NULL);
    ok(comes(&s, "does not know the terminal 'xterm-of-tomorrow'"),
       "a terminal that is not known is taken for another, and that is said");
    ok(comes(&s, "[2 Monitor]"), "and the screen is there");
    press(&s, "q");
    end(&s);
}

/* The terminal is closed: the screen goes, quietly. */
static void
test_hang_up(void)
{
    const struct scene scene = {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"};
    struct seat s;
    int status = 0;
    begin(&s, &scene, NULL);
    await(&s);
    close(s.fd);
    for (int i = 0; i < PATIENCE / 100 && waitpid(s.pid, &status, WNOHANG) == 0; i++)
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "a terminal that is closed ends the screen");
    vterm_free(s.vt);
}

static void
make_run(void)
{
    char command[4096 + 128];
    const char *build = getenv("ET_BUILDDIR");
    if (!mkdtemp(folder))
        bail("no folder");
    snprintf(run_path, sizeof run_path, "%s/otter", folder);
    snprintf(layout_path, sizeof layout_path, "%s/state/layout", folder);
    snprintf(command, sizeof command, "%s/t/tui/example %s", build ? build : ".",
             run_path);
    if (system(command) != 0)
        bail("%s failed", command);
}

int
main(void)
{
    static const struct scene scenes[] = {
        {24, 80, ETI_PLOT_BRAILLE, "xterm-256color"},
        {24, 80, ETI_PLOT_ASCII, "xterm"},
        {50, 200, ETI_PLOT_BLOCK, "xterm-256color"},
        {16, 60, ETI_PLOT_ASCII, "vt100"},
    };
    static const int fatal[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,
                                SIGSEGV, SIGSYS, SIGXCPU, SIGXFSZ, SIGALRM, SIGUSR1};
    static const int leaving[] = {SIGTERM, SIGINT, SIGHUP};
    char command[128];
    setenv("TZ", "UTC", 1);
    make_run();
    setenv("XDG_STATE_HOME", folder, 1);
    setenv("ETUDE_CONFIG_DIR", folder, 1);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        test_pictures(&scenes[i]);
    test_resize();
    test_mouse();
    test_clicks();
    test_backdrop();
    test_paste();
    test_borders();
    test_silence();
    test_workers();
    test_unknown_terminal();
    test_hang_up();
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        test_signal(fatal[i], false, false);
    for (size_t i = 0; i < sizeof leaving / sizeof *leaving; i++)
        test_signal(leaving[i], true, false);
    test_signal(SIGSEGV, false, true);
    test_signal(SIGTERM, true, true);
    snprintf(command, sizeof command, "ls %s/etude/crash-*.txt >/dev/null && rm -r %s",
             folder, folder);
    is_int(system(command), 0, "crashes leave a report");
    return done();
}
