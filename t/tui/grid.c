/* grid.c: text on its way into cells, colours, characters. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etude/diagnostic.h"
#include "t/tap.h"
#include "tui/glyphs.h"
#include "tui/grid.h"
#include "tui/widget.h"

static struct et_ctx *cx;

/* The grid as text, in a buffer of the caller's to free. */
static char *
text_of(const struct tui_grid *g)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    tui_grid_print(g, f);
    fclose(f);
    return text;
}

static void
is_grid(const struct tui_grid *g, const char *want, const char *name)
{
    char *text = text_of(g);
    is_str(text, want, "%s", name);
    free(text);
}

static struct tui_grid
grid(int rows, int cols, enum eti_plot plot)
{
    struct tui_grid g;
    if (tui_grid_init(&g, cx, tui_glyphs_of(plot), rows, cols) != ET_OK)
        bail("no memory");
    return g;
}

static void
test_clipping(void)
{
    struct tui_grid g = grid(3, 8, ETI_PLOT_ASCII);
    struct tui_pane all = tui_pane_of(&g), part = tui_pane_part(&all, 1, 2, 1, 4);
    tui_put(&part, 0, -2, TUI_TEXT, "abcdefghij");
    tui_put(&part, 1, 0, TUI_TEXT, "below");
    tui_put(&part, -1, 0, TUI_TEXT, "above");
    is_grid(&g, "\n  cdef\n\n", "text stays inside its pane");
    struct tui_pane far = tui_pane_part(&all, 5, 9, 3, 3);
    ok(far.h == 0 && far.w == 0, "a pane outside has no cells");
    tui_put(&far, 0, 0, TUI_TEXT, "nowhere");
    is_grid(&g, "\n  cdef\n\n", "and takes no text");
    is_int(tui_put_end(&all, 0, 8, TUI_TEXT, "end"), 5, "text can end at a column");
    is_grid(&g, "     end\n  cdef\n\n", "and does");
    tui_grid_release(&g);
}

static void
test_wrapping(void)
{
    static const char text[] =
        "one two, a\u00f1\u00e9\u00ef\u00f6 andthisiswithoutblanks";
    struct tui_grid g = grid(6, 10, ETI_PLOT_BRAILLE);
    struct tui_pane all = tui_pane_of(&g), two = tui_pane_part(&all, 0, 0, 2, 10);
    is_int(tui_put_wrapped(&all, 0, 1, 8, TUI_TEXT, text), 5, "text takes lines");
    is_grid(&g,
            " one two,\n a\u00f1\u00e9\u00ef\u00f6\n andthisi\n swithout\n blanks\n\n",
            "it is broken at blanks, and a word where it must be");
    is_int(tui_put_wrapped(NULL, 0, 0, 8, TUI_TEXT, text), 5, "as many as counted");
    is_int(tui_put_wrapped(&two, 0, 1, 8, TUI_TEXT, text), 2, "no more than there are");
    is_int(tui_put_wrapped(&all, 0, 0, 0, TUI_TEXT, text), 0, "none in no columns");
    tui_grid_release(&g);
}

static void
test_text(void)
{
    struct tui_grid g = grid(1, 40, ETI_PLOT_BRAILLE);
    struct tui_pane all = tui_pane_of(&g);
    tui_put(&all, 0, 0, TUI_TEXT, "a\033[2Jb\nc");
    is_grid(&g, "a\\x1b[2Jb\\x0ac\n", "controls are made visible");
    tui_grid_clear(&g);
    tui_put(&all, 0, 0, TUI_TEXT, "caf\u00e9 \u00b5s \u2192");
    is_grid(&g, "caf\u00e9 \u00b5s \u2192\n", "UTF-8 of width one is shown");
    tui_grid_clear(&g);
    tui_put(&all, 0, 0, TUI_TEXT, "\u6570e\u0301\U0001f600\u200d.");
    is_grid(&g, "?e???.\n", "wide, joining and coloured characters are not");
    tui_grid_release(&g);
    g = grid(1, 40, ETI_PLOT_ASCII);
    all = tui_pane_of(&g);
    tui_put(&all, 0, 0, TUI_TEXT, "caf\u00e9");
    is_grid(&g, "caf?\n", "ASCII is ASCII");
    is_int(tui_width("caf\u00e9\n"), 8, "a width is that of what is shown");
    tui_grid_release(&g);
}

/* A generator that tests may repeat: xorshift64*. */
static uint64_t
draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static void
hostile_string(uint64_t *state, char *buf, size_t size)
{
    static const char *const pieces[] = {
        "\033[2J",
        "\033]0;x\a",
        "\033P",
        "\x9b"
        "31m",
        "\xc2\x9b"
        "1m",
        "\r\n",
        "\u202e",
        "\u2066",
        "\u200b",
        "\xf0\x9f",
        "\xed\xa0\x80",
        "\xc0\xaf",
        "\u0300",
        "\x7f",
        "\b\b",
        "\ufeff",
        "%s%n",
        "\u6570",
        "\U0010ffff",
        "\xff",
        "text",
        "\033c",
        "\x0e",
        "\u00ad",
    };
    size_t n = 0;
    buf[0] = '\0';
    for (int i = (int)(draw(state) % 12); i >= 0 && n + 16 < size; i--) {
        if (draw(state) % 4 == 0) {
            buf[n++] = (char)(draw(state) % 255 + 1);
            buf[n] = '\0';
        } else {
            n += (size_t)snprintf(
                buf + n, size - n, "%s",
                pieces[draw(state) % (sizeof pieces / sizeof *pieces)]);
        }
    }
}

static void
test_hostile(void)
{
    enum { STRINGS = 10000 };
    char text[400];
    int bad = 0;
    uint64_t state = 35;
    struct tui_grid g = grid(4, 60, ETI_PLOT_BRAILLE);
    struct tui_pane all = tui_pane_of(&g);
    for (int i = 0; i < STRINGS; i++) {
        hostile_string(&state, text, sizeof text);
        tui_putf(&all, 0, -3, TUI_TEXT, "%s", text);
        tui_title(&all, 1, text, false);
        tui_put_end(&all, 2, 60, TUI_TEXT, text);
        tui_put_ch(&all, 3, 0, (unsigned char)text[0], TUI_TEXT, 0);
        for (int k = 0; k < g.rows * g.cols; k++)
            if (g.cell[k].ch < 32 || (g.cell[k].ch >= 127 && g.cell[k].ch < 160) ||
                !tui_is_narrow(g.cell[k].ch))
                bad++;
    }
    is_int(bad, 0, "%d hostile strings put no control into a cell", STRINGS);
    tui_grid_release(&g);
}

static void
test_bars(void)
{
    struct tui_grid g = grid(1, 36, ETI_PLOT_ASCII);
    struct tui_pane all = tui_pane_of(&g);
    tui_bar(&all, 0, 0, 36, 0.38, 0);
    is_grid(&g, "[===========>                      ]\n", "38% of a bar");
    tui_bar(&all, 0, 0, 36, 0, 0);
    is_grid(&g, "[                                  ]\n", "none of it");
    tui_bar(&all, 0, 0, 36, 1.5, 0);
    is_grid(&g, "[==================================]\n", "never more than all");
    tui_bar(&all, 0, 0, 36, (double)NAN, 3);
    is_grid(&g, "[   =                              ]\n",
            "an unknown length has a mark");
    tui_bar(&all, 0, 0, 36, (double)NAN, 66 + 3);
    ok(g.cell[4].ch == ' ' || g.cell[4].ch == '=', "that stays inside for ever");
    tui_grid_clear(&g);
    tui_gauge(&all, 0, 0, 11, 0.61, false);
    is_grid(&g, "[#####....]\n", "a gauge");
    tui_gauge(&all, 0, 0, 11, 0.9, true);
    is_int(g.cell[1].role, TUI_WARN, "memory warns over 85%%");
    tui_gauge(&all, 0, 0, 11, 0.96, true);
    is_int(g.cell[1].role, TUI_BAD, "and more over 95%%");
    tui_grid_release(&g);
}

static void
test_theme(void)
{
    struct tui_theme t;
    struct et_diagnostics errors = {0};
    char path[] = "/tmp/etude-theme.XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    fputs("title: '#ff0000'\ngood: 12\nbad: teal\n", f);
    fclose(f);
    tui_theme_default(&t, 0);
    is_int(t.color[TUI_WARN], -1, "without colours there are none");
    ok(t.attr[TUI_WARN] & TUI_BOLD, "and a warning is bold");
    tui_theme_default(&t, 8);
    is_int(t.color[TUI_BAD], 1, "eight colours have a red");
    tui_theme_default(&t, 256);
    is_int(tui_theme_read(cx, &t, path, 256, &errors), ET_OK, "a theme file is read");
    is_int(t.color[TUI_TITLE], 196, "#rrggbb is the nearest of 256");
    is_int(t.color[TUI_GOOD], 12, "a number is a number");
    is_int(t.color[TUI_BAD], 36, "a name is a name");
    f = fopen(path, "w");
    fputs("titel: 1\n", f);
    fclose(f);
    is_int(tui_theme_read(cx, &t, path, 256, &errors), ET_EINVAL,
           "a wrong role is not");
    ok(strstr(errors.v[0].message, "did you mean 'title'") != NULL, "and is named");
    et_error_clear(cx);
    unlink(path);
}

static void
test_color(void)
{
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    setenv("TERM", "xterm-256color", 1);
    ok(tui_has_color(ETI_COLOR_AUTO, 256), "a terminal with colours has them");
    ok(!tui_has_color(ETI_COLOR_AUTO, 0), "one without has none");
    ok(!tui_has_color(ETI_COLOR_NEVER, 256), "--color never");
    setenv("NO_COLOR", "", 1);
    ok(tui_has_color(ETI_COLOR_AUTO, 256), "an empty NO_COLOR says nothing");
    setenv("NO_COLOR", "1", 1);
    ok(!tui_has_color(ETI_COLOR_AUTO, 256), "NO_COLOR");
    ok(tui_has_color(ETI_COLOR_ALWAYS, 256), "--color always is stronger");
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    ok(!tui_has_color(ETI_COLOR_AUTO, 8), "TERM=dumb");
    setenv("CLICOLOR_FORCE", "1", 1);
    ok(tui_has_color(ETI_COLOR_AUTO, 8), "CLICOLOR_FORCE");
    unsetenv("CLICOLOR_FORCE");
    setenv("LC_ALL", "C.UTF-8", 1);
    is_int(tui_plot_choose(false, ETI_PLOT_AUTO), ETI_PLOT_BRAILLE,
           "UTF-8 has Braille");
    is_int(tui_plot_choose(true, ETI_PLOT_BLOCK), ETI_PLOT_ASCII, "--ascii has not");
    is_int(tui_plot_choose(false, ETI_PLOT_BLOCK), ETI_PLOT_BLOCK, "ui.plot: block");
    setenv("TERM", "linux", 1);
    is_int(tui_plot_choose(false, ETI_PLOT_AUTO), ETI_PLOT_ASCII, "TERM=linux: ASCII");
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C", 1);
    is_int(tui_plot_choose(false, ETI_PLOT_AUTO), ETI_PLOT_ASCII,
           "another locale: ASCII");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_clipping();
    test_wrapping();
    test_text();
    test_hostile();
    test_bars();
    test_theme();
    test_color();
    et_ctx_free(&cx);
    return done();
}
