/* SPDX-License-Identifier: Apache-2.0 */
/* colors.c: colours of a theme's file, what each depth makes of a role and a ground,
 * and which terminals are sent how many. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etude/ctx.h"
#include "t/tap.h"
#include "tui/glyphs.h"
#include "tui/grid.h"
#include "tui/kind.h"
#include "tui/theme.h"

static struct et_ctx *cx;

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

/* The colours that a file gives a role, at each depth. */
static void
test_inks(void)
{
    static const struct {
        const char *text;
        int rgb, index, base, attr; /* attr -1: dark's own */
    } inks[] = {
        {"9", 0xff0000, 9, 9, -1},
        {"7", 0xe5e5e5, 7, 7, -1},
        {"15", 0xffffff, 15, 15, -1},
        {"16", 0x000000, 16, -2, -1},
        {"196", 0xff0000, 196, -2, -1},
        {"231", 0xffffff, 231, -2, -1},
        {"232", 0x080808, 232, -2, -1},
        {"255", 0xeeeeee, 255, -2, -1},
        {"'#808080'", 0x808080, 244, -2, -1},
        {"'#ff8700'", 0xff8700, 208, -2, -1},
        {"102030/40", 0x102030, 40, -2, -1},
        {"teal", 0x00af87, 36, 2, -1},
        {"default", -1, -1, -1, -1},
        {"1 bold underline", 0xcd0000, 1, 1, TUI_BOLD | TUI_UNDERLINE},
        {"1 faint reverse bold", 0xcd0000, 1, 1, TUI_FAINT | TUI_REVERSE | TUI_BOLD},
    };
    static const char *const wrong[] = {
        "256",     "-1", "'#12345'",      "123456", "purple",  "102030/256",
        "1 blink", "''", "1 bold, faint", "12x",    "1x2 bold"};
    char folder[] = "/tmp/etude-theme.XXXXXX", path[sizeof folder + 16];
    struct tui_theme t, dark;
    struct et_diagnostics errors = {0};
    if (!mkdtemp(folder) || tui_theme_load(cx, &dark, NULL, "dark", &errors) != ET_OK)
        bail("no theme");
    snprintf(path, sizeof path, "%s/own.yaml", folder);
    for (size_t i = 0; i < sizeof inks / sizeof *inks; i++) {
        FILE *f = fopen(path, "w");
        fprintf(f, "good: %s\n", inks[i].text);
        fclose(f);
        const struct tui_ink *was = &dark.ink[TUI_GOOD], *ink = &t.ink[TUI_GOOD];
        const int base = inks[i].base == -2 ? was->base : inks[i].base;
        const int attr = inks[i].attr == -1 ? was->attr : inks[i].attr;
        ok(tui_theme_load(cx, &t, folder, "own", &errors) == ET_OK &&
               ink->rgb == inks[i].rgb && ink->index == inks[i].index &&
               ink->base == base && ink->attr == attr,
           "%s is a colour at each depth, with its attributes", inks[i].text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FILE *f = fopen(path, "w");
        fprintf(f, "good: %s\n", wrong[i]);
        fclose(f);
        errors = (struct et_diagnostics){0};
        is_int(tui_theme_load(cx, &t, folder, "own", &errors), ET_EINVAL, "%s is none",
               wrong[i]);
        et_error_clear(cx);
    }
    unlink(path);
    rmdir(folder);
}

/* Reads FOLDER/NAME.yaml, which has TEXT. */
static et_status
read_own(struct tui_theme *t, const char *folder, const char *name, const char *text)
{
    char path[64];
    struct et_diagnostics errors = {0};
    snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
    FILE *f = fopen(path, "w");
    fprintf(f, "%s\n", text);
    fclose(f);
    et_status status = tui_theme_load(cx, t, folder, name, &errors);
    et_error_clear(cx);
    unlink(path);
    return status;
}

/* What a file of the user's begins with, and what it keeps of that. */
static void
test_own(void)
{
    char folder[] = "/tmp/etude-theme.XXXXXX", text[64];
    struct tui_theme t, dark, light;
    struct et_diagnostics errors = {0};
    int differ = 0, n = 0;
    if (!mkdtemp(folder) || tui_theme_load(cx, &dark, NULL, "dark", &errors) != ET_OK ||
        tui_theme_load(cx, &light, NULL, "light", &errors) != ET_OK)
        bail("no theme");
    for (int i = 0; i < TUI_ROLES; i++) {
        snprintf(text, sizeof text, "%s: 9", tui_role_word((enum tui_role)i));
        if (read_own(&t, folder, "own", text) != ET_OK)
            bail("%s", text);
        differ += t.ink[i].attr != dark.ink[i].attr || t.ink[i].index != 9;
        n += t.ink[i].attr != 0;
    }
    ok(differ == 0 && n > 0, "a colour without attributes keeps those of each role");
    is_int(read_own(&t, folder, "own", "ground: grey"), ET_EINVAL,
           "a ground is dark or light");
    is_int(read_own(&t, folder, "own", "ground: light\ngood: 9"), ET_OK,
           "a theme for a light ground is read");
    ok(t.is_light && t.ink[TUI_BAD].rgb == light.ink[TUI_BAD].rgb &&
           light.ink[TUI_BAD].rgb != dark.ink[TUI_BAD].rgb,
       "which begins as light does");
    is_int(read_own(&t, folder, "dark", "good: 9"), ET_OK,
           "a dark of one's own is read");
    is_int(t.ink[TUI_GOOD].index, 9, "in place of ours");
    if (read_own(&t, folder, "own", "good: 9 reverse faint") != ET_OK)
        bail("no theme");
    struct tui_paint p = tui_theme_paint(&t, TUI_DEPTH_256, TUI_GOOD, TUI_ON_CHIP);
    ok(p.bg == 9 && p.attr == TUI_FAINT, "a chip is not reversed once more");
    p = tui_theme_paint(&t, TUI_DEPTH_8, TUI_GOOD, TUI_ON_CHIP);
    is_int(p.bg, 1, "of 8 colours its ground is one of them");
    p = tui_theme_paint(&t, TUI_DEPTH_16, TUI_GOOD, TUI_ON_SELECT);
    is_int(p.attr, TUI_REVERSE, "what is selected is not faint");
    is_int(dark.ink[TUI_TEXT].index, -1, "the text is the terminal's own");
    p = tui_theme_paint(&dark, TUI_DEPTH_256, TUI_TEXT, TUI_ON_POPUP);
    is_int(p.fg, dark.ink[TUI_SELECT_TEXT].index,
           "but on a pop-up, which has a ground");
    p = tui_theme_paint(&dark, TUI_DEPTH_16, TUI_TEXT, TUI_ON_POPUP);
    ok(p.fg == -1 && p.bg == -1, "which it has not in 16 colours");
    is_str(tui_level_text(ET_LOG_ERROR, "error is near"), "is near",
           "an error does not say twice that it is one");
    is_str(tui_level_text(ET_LOG_WARN, "error is near"), "error is near",
           "what is none keeps its words");
    is_str(tui_level_text(ET_LOG_ERROR, "errors are near"), "errors are near",
           "and so does another word");
    rmdir(folder);
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
    setenv("CLICOLOR_FORCE", "1", 1);
    ok(!tui_has_color(ETI_COLOR_AUTO, 256), "and CLICOLOR_FORCE weaker");
    unsetenv("CLICOLOR_FORCE");
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    ok(!tui_has_color(ETI_COLOR_AUTO, 8), "TERM=dumb");
    setenv("CLICOLOR_FORCE", "1", 1);
    ok(tui_has_color(ETI_COLOR_AUTO, 8), "CLICOLOR_FORCE");
    setenv("CLICOLOR_FORCE", "0", 1);
    ok(!tui_has_color(ETI_COLOR_AUTO, 8), "CLICOLOR_FORCE=0 forces nothing");
    unsetenv("CLICOLOR_FORCE");
    setenv("TERM", "xterm", 1);
    ok(tui_has_color(ETI_COLOR_AUTO, 8) && !tui_has_color(ETI_COLOR_AUTO, 7),
       "eight colours are the least");
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

/* The depth that a terminal is sent, its environment being so. */
static void
is_sent(const char *term, const char *colorterm, const char *screen, const char *tmux,
        enum tui_depth want, const char *name)
{
    struct tui_kind k;
    char folder[4096];
    const char *build = getenv("ET_BUILDDIR");
    const char *const variables[][2] = {
        {"TERM", term}, {"COLORTERM", colorterm}, {"STY", screen}, {"TMUX", tmux}};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (variables[i][1])
            setenv(variables[i][0], variables[i][1], 1);
        else
            unsetenv(variables[i][0]);
    snprintf(folder, sizeof folder, "%s/terminfo", build ? build : ".");
    tui_kind_find(&k, STDOUT_FILENO, ETI_COLOR_AUTO, folder);
    is_int(k.depth, want, "%s", name);
}

static void
test_terminals(void)
{
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    is_sent("xterm-256color", NULL, NULL, NULL, TUI_DEPTH_256,
            "a terminal is sent the colours of its entry");
    is_sent("xterm-256color", "truecolor", NULL, NULL, TUI_DEPTH_TRUE,
            "all where COLORTERM says so");
    is_sent("xterm-256color", "24bit", NULL, NULL, TUI_DEPTH_TRUE, "in either word");
    is_sent("xterm-256color", "yes", NULL, NULL, TUI_DEPTH_256, "and in no other");
    is_sent("xterm-256color", "truecolor", "1.x", NULL, TUI_DEPTH_256,
            "but not in GNU screen, which only passes it on");
    is_sent("xterm-256color", "truecolor", "1.x", "t", TUI_DEPTH_TRUE,
            "unless tmux runs in that");
    is_sent("xterm-256color", "truecolor", "", NULL, TUI_DEPTH_TRUE,
            "an empty STY is none");
    is_sent("linux", "truecolor", NULL, NULL, TUI_DEPTH_8,
            "nor on a console, whatever it says");
    is_sent("vt100", NULL, NULL, NULL, TUI_DEPTH_NONE, "one without colours has none");
    struct tui_kind k;
    setenv("TERM", "no-such-terminal", 1);
    tui_kind_find(&k, STDOUT_FILENO, ETI_COLOR_AUTO, NULL);
    is_str(k.name, "xterm-256color", "one that nobody knows is taken for an xterm");
    ok(strstr(k.notice, "'no-such-terminal'") != NULL, "which is said");
}

static void
test_backgrounds(void)
{
    static const struct {
        const char *text;
        int is_light;
    } answers[] = {
        {"15;0", 0},  {"0;15", 1}, {"0;7", 1},    {"0;8", 0},        {"0;9", 1},
        {"0;6", 0},   {"7;4", 0},  {"0;x;15", 1}, {"0;default", -1}, {"15", -1},
        {"0;16", -1}, {"0;", -1},  {"0;-1", -1},  {NULL, -1},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        is_int(tui_fgbg_is_light(answers[i].text), answers[i].is_light,
               "COLORFGBG=%s is light (1), dark (0) or says nothing (-1)",
               answers[i].text ? answers[i].text : "(unset)");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_theme();
    test_paint();
    test_inks();
    test_own();
    test_color();
    test_terminals();
    test_backgrounds();
    et_ctx_free(&cx);
    return done();
}
