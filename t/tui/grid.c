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

/* Text that is left out or cut where it has no room, and is shown whole where it just
 * fits. */
static void
test_room(void)
{
    struct tui_grid g = grid(4, 8, ETI_PLOT_ASCII);
    struct tui_pane all = tui_pane_of(&g);
    tui_put_right(&all, 0, 4, 8, TUI_TEXT, "fits");
    tui_put_right(&all, 1, 5, 8, TUI_TEXT, "none");
    is_grid(&g, "    fits\n\n\n\n", "text at the right is there if it fits");
    is_int(tui_put_cut(&all, 0, 4, 8, TUI_TEXT, "just"), 4, "text may just fit");
    is_int(tui_put_cut(&all, 1, 4, 8, TUI_TEXT, "wider"), 4, "or have no room");
    is_int(tui_put_cut(&all, 2, 4, 7, TUI_TEXT, "wide"), 3, "or room for a letter");
    is_int(tui_put_cut(&all, 3, 4, 6, TUI_TEXT, "far"), 0, "or for the sign alone");
    is_grid(&g, "    just\n    wi..\n    w..\n\n",
            "what is cut ends in a sign, and is left out where only that has room");
    tui_grid_release(&g);
    g = grid(2, 8, ETI_PLOT_BRAILLE);
    all = tui_pane_of(&g);
    tui_put_cut(&all, 0, 4, 8, TUI_TEXT, "wider");
    tui_put_cut(&all, 1, 4, 5, TUI_TEXT, "far");
    is_grid(&g, "    wid\u2026\n\n", "which in UTF-8 is one character");
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
    is_grid(&g, " one two,\n a\u00f1\u00e9\u00ef\u00f6 a\u2026\n andthisi\n swithout\n blanks\n\n",
            "and the last says that there is more");
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
    is_grid(&g, "[   ====                           ]\n",
            "an unknown length has a mark");
    int marks = 0;
    for (int phase = 0; phase < 200; phase++) {
        tui_bar(&all, 0, 0, 36, (double)NAN, phase);
        for (int x = 1; x < 35; x++)
            marks += g.cell[x].ch == '=';
    }
    is_int(marks, 4 * 200, "that stays inside for ever");
    tui_bar(&all, 0, 0, 36, (double)NAN, -1);
    is_grid(&g, "[                                  ]\n",
            "and none where nothing may move");
    tui_grid_clear(&g);
    tui_gauge(&all, 0, 0, 11, 0.61, false);
    is_grid(&g, "[#####....]\n", "a gauge");
    tui_gauge(&all, 0, 0, 11, 0.9, true);
    is_int(g.cell[1].role, TUI_WARN, "memory warns over 85%%");
    tui_gauge(&all, 0, 0, 11, 0.96, true);
    is_int(g.cell[1].role, TUI_BAD, "and more over 95%%");
    is_int((int)g.cell[10].ch, '!', "with a sign");
    tui_grid_clear(&g);
    g.glyphs = tui_glyphs_of(ETI_PLOT_BRAILLE);
    tui_gauge(&all, 0, 0, 11, 0.001, false);
    ok(g.cell[1].ch == 0x258f && g.cell[2].ch == g.glyphs->rest &&
           g.cell[2].role == TUI_TRACK,
       "a little is seen, and the track behind it");
    tui_gauge(&all, 0, 0, 11, 0, false);
    is_int(g.cell[1].role, TUI_TRACK, "nothing is the track alone");
    tui_bar(&all, 0, 0, 14, 0.5, 0);
    ok(g.cell[1].role == TUI_BAR_LOW && g.cell[6].role == TUI_BAR &&
           g.cell[12].role == TUI_TRACK,
       "a bar's tint goes by the place on it");
    tui_grid_release(&g);
}

static void
test_shares(void)
{
    int wrong = 0;
    for (int n = 1; n < 20; n++)
        for (int k = 1; k < 50; k++) {
            double part[20];
            int percent[20], sum = 0;
            for (int i = 0; i < n; i++)
                part[i] = (i * 7919 + k * 104729) % 1000 + 0.01;
            tui_percents(part, n, percent);
            for (int i = 0; i < n; i++)
                sum += percent[i];
            wrong += sum != 100;
        }
    is_int(wrong, 0, "percents of shares sum to 100");
    double none[2] = {0, 0};
    int percent[2];
    tui_percents(none, 2, percent);
    is_int(percent[0] + percent[1], 0, "but those of nothing are 0");
}

static void
test_sparkline(void)
{
    struct tui_grid g;
    const double v[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    if (tui_grid_init(&g, cx, tui_glyphs_of(ETI_PLOT_BRAILLE), 1, 8) != ET_OK)
        bail("no memory");
    const struct tui_pane all = tui_pane_of(&g);
    tui_sparkline(&all, 0, 0, 8, v, 2, TUI_S1);
    is_int((int)g.cell[7].ch, ' ', "two values are no line");
    tui_sparkline(&all, 0, 0, 8, v, 12, TUI_S1);
    ok(g.cell[7].ch == 0x2588 && g.cell[0].ch == 0x2581,
       "the newest value stands at the end, the greatest is the highest");
    tui_grid_release(&g);
}

static struct tui_paint
paint(const struct tui_theme *t, enum tui_depth depth, enum tui_role role)
{
    return tui_theme_paint(t, depth, role, TUI_ON_OWN);
}

static void
test_theme(void)
{
    struct tui_theme t;
    struct et_diagnostics errors = {0};
    char folder[] = "/tmp/etude-theme.XXXXXX", path[sizeof folder + 16];
    if (!mkdtemp(folder))
        bail("no folder");
    snprintf(path, sizeof path, "%s/own.yaml", folder);
    FILE *f = fopen(path, "w");
    fputs("key: 9\ntitle: '#ff0000'\ngood: 12 bold\nbad: teal\ndim: a0a8b2/20\n", f);
    fclose(f);
    is_int(tui_theme_load(cx, &t, folder, "own", &errors), ET_OK,
           "a theme file is read");
    is_int(paint(&t, TUI_DEPTH_NONE, TUI_WARN).fg, -1,
           "without colours there are none");
    ok(paint(&t, TUI_DEPTH_NONE, TUI_WARN).attr & TUI_BOLD, "and a warning is bold");
    is_int(paint(&t, TUI_DEPTH_8, TUI_REMOVE).fg, 2, "of 8 colours teal is green");
    is_int(paint(&t, TUI_DEPTH_256, TUI_TITLE).fg, 196,
           "#rrggbb is the nearest of 256");
    is_int(paint(&t, TUI_DEPTH_TRUE, TUI_TITLE).fg, 0xff0000, "and itself of all");
    is_int(paint(&t, TUI_DEPTH_256, TUI_KEY).fg, 9,
           "a role that shares a colour can be set apart, in any order");
    is_int(paint(&t, TUI_DEPTH_256, TUI_GOOD).fg, 12, "a number is a number");
    ok(paint(&t, TUI_DEPTH_256, TUI_GOOD).attr & TUI_BOLD, "with an attribute");
    is_int(paint(&t, TUI_DEPTH_256, TUI_BAD).fg, 36, "a name is a name");
    is_int(paint(&t, TUI_DEPTH_TRUE, TUI_LABEL).fg, 0xa0a8b2, "rrggbb/NUMBER is both");
    is_int(paint(&t, TUI_DEPTH_256, TUI_LABEL).fg, 20, "one for each depth");
    is_int(paint(&t, TUI_DEPTH_256, TUI_S1).fg, 75, "the rest is dark's");
    f = fopen(path, "w");
    fputs("titel: 1\n", f);
    fclose(f);
    is_int(tui_theme_load(cx, &t, folder, "own", &errors), ET_EINVAL,
           "a wrong role is not");
    ok(strstr(errors.v[0].message, "did you mean 'title'") != NULL, "and is named");
    et_error_clear(cx);
    is_int(tui_theme_load(cx, &t, folder, "none", &errors), ET_ENOENT,
           "a theme that is not there is told from a wrong one");
    et_error_clear(cx);
    unlink(path);
    rmdir(folder);
}

/* What each depth makes of a role and a ground. */
static void
test_paint(void)
{
    struct tui_theme t;
    struct et_diagnostics errors = {0};
    is_int(tui_theme_load(cx, &t, NULL, "dark", &errors), ET_OK, "dark is shipped");
    struct tui_paint p = paint(&t, TUI_DEPTH_8, TUI_BAD);
    ok(p.fg == 1 && p.attr & TUI_BOLD, "of 8 colours, one over 7 is bold");
    p = paint(&t, TUI_DEPTH_8, TUI_RAW);
    ok(p.fg == -1 && p.attr & TUI_FAINT, "and bright black is faint");
    is_int(paint(&t, TUI_DEPTH_16, TUI_RAW).fg, 8, "of 16 it is itself");
    p = tui_theme_paint(&t, TUI_DEPTH_256, TUI_TEXT, TUI_ON_SELECT);
    ok(p.fg == 231 && p.bg == 237, "the selected row has its ground and its text");
    p = tui_theme_paint(&t, TUI_DEPTH_16, TUI_DIM, TUI_ON_SELECT);
    ok(p.fg == -1 && p.attr == TUI_REVERSE, "and of 16 colours is reversed as one");
    p = tui_theme_paint(&t, TUI_DEPTH_NONE, TUI_DIM, TUI_ON_MATCH);
    ok(p.fg == -1 && p.attr & TUI_REVERSE, "as what was found is without colours");
    p = tui_theme_paint(&t, TUI_DEPTH_TRUE, TUI_GOOD, TUI_ON_CHIP);
    ok(p.fg == 0x101418 && p.bg == 0x2fe0b5, "a chip has its state's colour below");
    p = tui_theme_paint(&t, TUI_DEPTH_TRUE, TUI_DIM, TUI_ON_POPUP);
    ok(p.fg == 0xa0a8b2 && p.bg == 0x1b222b, "a pop-up has a ground");
    is_int(tui_theme_load(cx, &t, NULL, "contrast", &errors), ET_OK, "so is contrast");
    p = tui_theme_paint(&t, TUI_DEPTH_TRUE, TUI_DIM, TUI_ON_SELECT);
    is_int(p.fg, 0x000000, "a colour that cannot be read on a ground gives way");
}

/* What is drawn keeps the ground that it is drawn on. */
static void
test_ground(void)
{
    struct tui_grid g = grid(2, 6, ETI_PLOT_ASCII);
    struct tui_pane all = tui_pane_of(&g);
    tui_ground(&all, 0, 1, 2, TUI_ON_SELECT);
    tui_put(&all, 0, 0, TUI_TEXT, "abcd");
    ok(g.cell[0].ground == TUI_ON_OWN && g.cell[1].ground == TUI_ON_SELECT &&
           g.cell[2].ground == TUI_ON_SELECT && g.cell[3].ground == TUI_ON_OWN,
       "text keeps the ground of its cells");
    tui_blank(&all);
    is_int(g.cell[1].ground, TUI_ON_OWN, "which blanks do not");
    tui_grid_release(&g);
}

static void
test_states(void)
{
    static const char *const states[] = {
#define WORD(word, kind) word,
        ETI_STATE_MAP(WORD)
#undef WORD
    };
    char seen[ETI_STATE_KINDS + 1] = "";
    int alike = 0;
    for (enum eti_state_kind k = 0; k < ETI_STATE_KINDS; k++) {
        alike += strchr(seen, eti_state_sign(k)) != NULL;
        seen[k] = eti_state_sign(k);
    }
    is_int(alike, 0, "each kind of state has a sign of its own");
    is_int(eti_state_kind_of("elsewhere"), ETI_STATE_UNKNOWN, "others are unknown");
    struct tui_grid g = grid(1, 20, ETI_PLOT_ASCII);
    struct tui_pane all = tui_pane_of(&g);
    int wrong = 0;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        tui_blank(&all);
        int w = tui_put_chip(&all, 0, 0, states[i]);
        wrong += w != (int)strlen(states[i]) + 4 || g.cell[w - 1].ground != TUI_ON_CHIP;
        wrong += g.cell[w].ground != TUI_ON_OWN;
    }
    is_int(wrong, 0, "a chip is as long as its word, its sign and three blanks");
    tui_blank(&all);
    tui_put_chip(&all, 0, 0, "diverged");
    is_grid(&g, " x DIVERGED\n", "it has sign and word");
    is_int(g.cell[1].role, TUI_BAD, "in the colour of the state");
    tui_blank(&all);
    tui_put_state(&all, 0, 0, "paused");
    is_grid(&g, "o paused\n", "as lists have");
    tui_grid_release(&g);
}

static void
test_cursor(void)
{
    struct tui_grid g = grid(6, 20, ETI_PLOT_ASCII);
    struct tui_pane all = tui_pane_of(&g), part = tui_pane_part(&all, 2, 5, 3, 10);
    tui_cursor(&part, 1, 4);
    ok(g.cursor_y == 3 && g.cursor_x == 9, "a cursor stands where its pane has it");
    tui_cursor(&part, 3, 0);
    tui_cursor(&part, 0, 10);
    ok(g.cursor_y == 3 && g.cursor_x == 9, "and nowhere outside of it");
    tui_grid_release(&g);
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
    test_room();
    test_wrapping();
    test_text();
    test_hostile();
    test_bars();
    test_shares();
    test_sparkline();
    test_theme();
    test_paint();
    test_ground();
    test_states();
    test_cursor();
    test_color();
    et_ctx_free(&cx);
    return done();
}
