/* SPDX-License-Identifier: Apache-2.0 */
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
    struct tui_pane over = tui_pane_part(&all, -1, -2, 3, 5);
    ok(over.y == 0 && over.x == 0 && over.h == 2 && over.w == 3,
       "of one that begins outside what lies inside is left");
    over = tui_pane_part(&part, 0, 3, 2, 2);
    ok(over.y == 1 && over.x == 5 && over.h == 1 && over.w == 1,
       "a part of a part ends with it");
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

/* A path loses its middle; columns of a list begin in theirs. */
static void
test_ends(void)
{
    struct tui_grid g = grid(4, 20, ETI_PLOT_ASCII);
    struct tui_pane all = tui_pane_of(&g);
    is_int(tui_put_ends(&all, 0, 2, 12, TUI_TEXT, "/abcdefghi"), 10, "a path may fit");
    is_int(tui_put_ends(&all, 1, 2, 12, TUI_TEXT, "/abcdefghij"), 10, "or not");
    is_int(tui_put_ends(&all, 2, 2, 12, TUI_TEXT, "/1/2/3/4/5/6/last"), 10, "by far");
    is_int(tui_put_ends(&all, 3, 2, 4, TUI_TEXT, "/abc"), 0, "or have no room");
    is_grid(&g, "  /abcdefghi\n  /a..efghij\n  /1..6/last\n\n",
            "what has no room loses its middle, and ends as it did");
    tui_grid_clear(&g);
    static const struct tui_column columns[] = {
        {"a", 4, false}, {"b", 6, true}, {"c", 0, false}};
    const char *const row[] = {"ab", "12", "the rest of it"};
    const char *const wide[] = {"abcdef", "1234567", ""};
    tui_columns(&all, 0, 1, columns, 3, row, TUI_TEXT);
    tui_columns(&all, 1, 1, columns, 3, wide, TUI_TEXT);
    is_grid(
        &g, " ab       12 the res\n abcd 123456\n\n\n",
        "columns have their widths, numbers stand at the end, the last has the rest");
    tui_grid_release(&g);
    g = grid(1, 20, ETI_PLOT_BRAILLE);
    all = tui_pane_of(&g);
    tui_put_ends(&all, 0, 0, 10, TUI_TEXT, "/\u00e9b\u00e9defghij\u00e9");
    is_grid(&g, "/\u00e9b\u2026fghij\u00e9\n",
            "characters count, not bytes, and the sign is one in UTF-8");
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
    is_grid(&g,
            " one two,\n a\u00f1\u00e9\u00ef\u00f6 a\u2026\n andthisi\n swithout\n "
            "blanks\n\n",
            "and the last says that there is more");
    is_int(tui_put_wrapped(&all, 0, 0, 0, TUI_TEXT, text), 0, "none in no columns");
    tui_grid_clear(&g);
    tui_put_wrapped(&all, 0, 0, 10, TUI_TEXT, "a bc def ghij klm no pqrstuvwxy z");
    is_grid(&g, "a bc def\nghij klm\nno\npqrstuvwxy\nz\n\n",
            "a line has as many words as there is room for");
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

/* The role of a gauge's first cell and the sign at its end, USED being so much. */
static void
is_gauge(struct tui_grid *g, double used, bool warns, enum tui_role role, char end)
{
    struct tui_pane all = tui_pane_of(g);
    tui_gauge(&all, 0, 0, 12, used, warns);
    ok(g->cell[1].role == role && g->cell[11].ch == (uint32_t)end,
       "a gauge of %g that %s ends in '%c' and has its colour", used,
       warns ? "may warn" : "never warns", end);
}

/* Bars, gauges and shares on both sides of where they change. */
static void
test_limits(void)
{
    struct tui_grid g = grid(1, 36, ETI_PLOT_ASCII);
    struct tui_pane all = tui_pane_of(&g);
    tui_bar(&all, 0, 0, 36, 0.999, 0);
    is_grid(&g, "[================================> ]\n",
            "a bar is full when all is done, and not before");
    tui_bar(&all, 0, 0, 36, 1 / 34., 0);
    is_grid(&g, "[>                                 ]\n", "a first cell is seen");
    tui_bar(&all, 0, 0, 36, 0.99 / 34, 0);
    is_grid(&g, "[                                  ]\n", "once all of it is done");
    tui_grid_clear(&g);
    is_gauge(&g, 0.85, true, TUI_BAR_LOW, ']');
    is_gauge(&g, 0.86, true, TUI_WARN, '!');
    is_gauge(&g, 0.95, true, TUI_WARN, '!');
    is_gauge(&g, 0.96, true, TUI_BAD, '!');
    is_gauge(&g, 0.99, false, TUI_BAR_LOW, ']');
    tui_grid_clear(&g);
    tui_gauge(&all, 0, 0, 12, (double)NAN, true);
    is_grid(&g, "[..........]\n", "what is not known is an empty gauge");
    tui_gauge(&all, 0, 0, 12, 7, false);
    is_grid(&g, "[##########]\n", "and never more than full");
    tui_grid_clear(&g);
    tui_share(&all, 0, 0, 15, 0.5, 50, false);
    is_grid(&g, "#####       50%\n", "a share has its percents at its end");
    tui_grid_clear(&g);
    tui_share(&all, 0, 2, 15, 0.001, 0, false);
    is_grid(&g, "               0%\n", "one of 0% has no cell in ASCII");
    tui_share(&all, 0, 2, 15, 1, 100, true);
    is_grid(&g, "  ########## 100%\n", "one of all fills its cells");
    is_int(g.cell[2].role, TUI_WARN, "and has the colour of a warning where it warns");
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
    int percent[3];
    const double thirds[] = {1, 1, 1}, most[] = {0.006, 0.004, 1.99};
    tui_percents(thirds, 3, percent);
    ok(percent[0] == 34 && percent[1] == 33 && percent[2] == 33,
       "what is cut off goes to the first of equals");
    tui_percents(most, 3, percent);
    ok(percent[0] == 0 && percent[1] == 0 && percent[2] == 100,
       "or to the one that lost most");
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
    tui_grid_clear(&g);
    const double few[] = {2, (double)NAN, 1, 3};
    tui_sparkline(&all, 0, 0, 8, few, 4, TUI_S1);
    is_grid(&g, "    \u2585 \u2581\u2588\n",
            "few values stand at the right, and none where one is not finite");
    tui_grid_clear(&g);
    const double flat[] = {4, 4, 4};
    tui_sparkline(&all, 0, 0, 8, flat, 3, TUI_S1);
    is_grid(&g, "     \u2581\u2581\u2581\n", "values that are alike are a low line");
    tui_grid_release(&g);
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

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_clipping();
    test_room();
    test_ends();
    test_wrapping();
    test_text();
    test_hostile();
    test_bars();
    test_limits();
    test_shares();
    test_sparkline();
    test_ground();
    test_states();
    test_cursor();
    et_ctx_free(&cx);
    return done();
}
