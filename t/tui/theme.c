/* SPDX-License-Identifier: Apache-2.0 */
/* theme.c: the shipped themes: all roles set, contrast as WCAG 2.2 computes it, and
 * colours that stay apart, also for eyes that see fewer. VISUAL.md section 2. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "etude/ctx.h"
#include "t/tap.h"
#include "tui/kind.h"
#include "tui/theme.h"

enum { MOST_GROUNDS = 4, VISIONS = 4 };

/* What each is held to. GROUNDS: the backgrounds that it is made for. APART: least
 * distance of series 1 to 4, and of good, warning and bad, for all four visions. */
static const struct held {
    const char *name;
    int grounds[MOST_GROUNDS], n_grounds;
    double text, series, states;
} themes[] = {
    {"dark", {0x000000, 0x1e1e1e, 0x282828, 0x2e3440}, 4, 4.5, 7.9, 8.9},
    {"light", {0xffffff, 0xfdf6e3, 0xeeeeee}, 3, 4.5, 11.0, 7.0},
    {"contrast", {0x000000}, 1, 7.0, 10.2, 10.3},
    {"mocha", {0x1e1e2e}, 1, 4.5, 2.0, 2.8},
    {"gruvbox", {0x282828}, 1, 4.5, 1.8, 3.5},
};
enum { THEMES = sizeof themes / sizeof *themes };

static const enum tui_role texts[] = {
    TUI_DIM,    TUI_LABEL,   TUI_AXIS,    TUI_TITLE,  TUI_KEY,    TUI_FOCUS, TUI_GOOD,
    TUI_ADD,    TUI_BAD,     TUI_WARN,    TUI_REMOVE, TUI_CHANGE, TUI_STALE, TUI_S1,
    TUI_S2,     TUI_S3,      TUI_S4,      TUI_S5,     TUI_S6,     TUI_S7,    TUI_S8,
    TUI_STRONG, TUI_SECTION, TUI_CHANGED, TUI_BEST,   TUI_OFF,    TUI_LINK,  TUI_CURSOR,
};
static const enum tui_role graphics[] = {
    TUI_BAR,   TUI_BAR_LOW, TUI_BAR_HIGH, TUI_BORDER_FOCUS, TUI_MARK,
    TUI_HEAT1, TUI_HEAT2,   TUI_HEAT3,    TUI_HEAT4,
};
static const enum tui_role decoration[] = {TUI_RULE, TUI_TRACK, TUI_RAW};

static struct et_ctx *cx;

static struct tui_theme
load(const char *name)
{
    struct tui_theme t;
    struct et_diagnostics errors = {0};
    if (tui_theme_load(cx, &t, NULL, name, &errors) != ET_OK)
        bail("%s: %s", name, errors.total ? errors.v[0].message : "?");
    return t;
}

/* 0xrrggbb of C, which tui_theme_paint gave for DEPTH. */
static int
rgb(int c, enum tui_depth depth)
{
    return depth == TUI_DEPTH_TRUE || c < 0 ? c : tui_index_rgb(c);
}

/* The least contrast of ROLE [N] on the theme's backgrounds; *WORST says which role.
 * The terminal's own text colour is not ours. */
static double
least_contrast(const struct held *h, const struct tui_theme *t, enum tui_depth depth,
               const enum tui_role *role, size_t n, enum tui_role *worst)
{
    double least = 21;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < h->n_grounds; k++) {
            int c = rgb(tui_theme_paint(t, depth, role[i], TUI_ON_OWN).fg, depth);
            double got = c < 0 ? 21 : tui_contrast(c, h->grounds[k]);
            if (got < least) {
                least = got;
                *worst = role[i];
            }
        }
    return least;
}

static void
has_contrast(const struct held *h, const struct tui_theme *t, enum tui_depth depth,
             const enum tui_role *role, size_t n, double wanted, const char *what)
{
    enum tui_role worst = role[0];
    double least = least_contrast(h, t, depth, role, n, &worst);
    ok(least >= wanted, "%s, %s: %s have %.1f:1 and more: %.2f, %s", h->name,
       depth == TUI_DEPTH_TRUE ? "all colours" : "256", what, wanted, least,
       tui_role_word(worst));
}

#define ALL_OF(roles) roles, sizeof roles / sizeof *roles

static void
test_contrast(const struct held *h)
{
    const struct tui_theme t = load(h->name);
    for (enum tui_depth d = TUI_DEPTH_256; d <= TUI_DEPTH_TRUE; d++) {
        has_contrast(h, &t, d, ALL_OF(texts), h->text, "texts");
        has_contrast(h, &t, d, ALL_OF(graphics), 3, "graphics");
        has_contrast(h, &t, d, ALL_OF(decoration), 2, "rules and tracks");
    }
}

/* On a ground of its own every text can be read, whatever its role. */
static void
test_grounds(const struct held *h)
{
    static const enum tui_ground grounds[] = {TUI_ON_SELECT, TUI_ON_MATCH};
    static const enum tui_role states[] = {TUI_GOOD, TUI_WARN, TUI_BAD, TUI_STALE};
    const struct tui_theme t = load(h->name);
    for (enum tui_depth d = TUI_DEPTH_256; d <= TUI_DEPTH_TRUE; d++) {
        double least = 21, chip = 21, popup = 21;
        for (size_t g = 0; g < sizeof grounds / sizeof *grounds; g++)
            for (int role = 0; role < TUI_ROLES; role++) {
                struct tui_paint p =
                    tui_theme_paint(&t, d, (enum tui_role)role, grounds[g]);
                least = fmin(least, tui_contrast(rgb(p.fg, d), rgb(p.bg, d)));
            }
        for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
            struct tui_paint p = tui_theme_paint(&t, d, states[i], TUI_ON_CHIP);
            chip = fmin(chip, tui_contrast(rgb(p.fg, d), rgb(p.bg, d)));
        }
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            struct tui_paint p = tui_theme_paint(&t, d, texts[i], TUI_ON_POPUP);
            popup = fmin(popup, tui_contrast(rgb(p.fg, d), rgb(p.bg, d)));
        }
        ok(least >= 4.5, "%s at depth %d: selected and found text has 4.5:1: %.2f",
           h->name, (int)d, least);
        ok(chip >= 4.5, "and that on a chip: %.2f", chip);
        ok(popup >= 4.5, "and that in a pop-up: %.2f", popup);
    }
}

/* ---- distances ---- */

struct vector {
    double v[3];
};

static struct vector
times(const double m[3][3], struct vector a)
{
    struct vector b = {{0}};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            b.v[i] += m[i][k] * a.v[k];
    return b;
}

/* OKLab of a colour as a vision sees it: Machado, Oliveira and Fernandes 2009, of
 * severity 1; 0: all of it. */
static struct vector
seen(int c, int vision)
{
    static const double machado[VISIONS - 1][3][3] = {
        {{0.152286, 1.052583, -0.204868},
         {0.114503, 0.786281, 0.099216},
         {-0.003882, -0.048116, 1.051998}},
        {{0.367322, 0.860646, -0.227968},
         {0.280085, 0.672501, 0.047413},
         {-0.011820, 0.042940, 0.968881}},
        {{1.255528, -0.076749, -0.178779},
         {-0.078411, 0.930809, 0.147602},
         {0.004733, 0.691367, 0.303900}},
    };
    static const double to_lms[3][3] = {{0.4122214708, 0.5363325363, 0.0514459929},
                                        {0.2119034982, 0.6806995451, 0.1073969566},
                                        {0.0883024619, 0.2817188376, 0.6299787005}};
    static const double to_lab[3][3] = {{0.2104542553, 0.7936177850, -0.0040720468},
                                        {1.9779984951, -2.4285922050, 0.4505937099},
                                        {0.0259040371, 0.7827717662, -0.8086757660}};
    struct vector a;
    for (int i = 0; i < 3; i++) {
        double v = (c >> (16 - 8 * i) & 255) / 255.;
        a.v[i] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    if (vision > 0)
        a = times(machado[vision - 1], a);
    for (int i = 0; i < 3; i++)
        a.v[i] = fmin(fmax(a.v[i], 0), 1);
    a = times(to_lms, a);
    for (int i = 0; i < 3; i++)
        a.v[i] = cbrt(a.v[i]);
    return times(to_lab, a);
}

static double
distance(int a, int b, int vision)
{
    struct vector x = seen(a, vision), y = seen(b, vision);
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += (x.v[i] - y.v[i]) * (x.v[i] - y.v[i]);
    return 100 * sqrt(sum);
}

static double
least_distance(const struct tui_theme *t, const enum tui_role *role, int n)
{
    double least = 1e9;
    for (int vision = 0; vision < VISIONS; vision++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < i; k++)
                least = fmin(
                    least, distance(t->ink[role[i]].rgb, t->ink[role[k]].rgb, vision));
    return least;
}

static void
test_distances(const struct held *h)
{
    static const enum tui_role series[] = {TUI_S1, TUI_S2, TUI_S3, TUI_S4};
    static const enum tui_role states[] = {TUI_GOOD, TUI_WARN, TUI_BAD};
    const struct tui_theme t = load(h->name);
    double far = least_distance(&t, series, 4);
    ok(far >= h->series, "%s: series 1 to 4 are %.1f apart for all eyes: %.2f", h->name,
       h->series, far);
    far = least_distance(&t, states, 3);
    ok(far >= h->states, "good, warning and bad %.1f: %.2f", h->states, far);
    far = distance(t.ink[TUI_TITLE].rgb, t.ink[TUI_S1].rgb, 0);
    ok(far >= 8.9, "and the accent is no series: %.2f", far);
}

/* ---- the files ---- */

static void
test_files(void)
{
    int n = 0, unset = 0;
    for (const struct tui_shipped_theme *s = tui_shipped_themes; s->name; s++, n++) {
        for (int role = 0; role < TUI_ROLES; role++) {
            const struct tui_theme t = load(s->name);
            bool is_own = t.ink[role].rgb < 0;
            if (is_own && (role != TUI_TEXT || strcmp(s->name, "contrast") == 0)) {
                diag("%s sets no %s", s->name, tui_role_word((enum tui_role)role));
                unset++;
            }
        }
        if (n < THEMES)
            is_str(s->name, themes[n].name, "theme %d", n + 1);
    }
    is_int(n, THEMES, "all that are shipped are held to something");
    is_int(unset, 0, "and set all roles, but for the terminal's own text");
}

/* What tells a light background. */
static void
test_backdrops(void)
{
    is_int(tui_fgbg_is_light("15;0"), 0, "COLORFGBG with black is dark");
    is_int(tui_fgbg_is_light("0;15"), 1, "with white light");
    is_int(tui_fgbg_is_light("0;default;15"), 1, "also in three parts");
    is_int(tui_fgbg_is_light("12;8"), 0, "bright black is dark");
    is_int(tui_fgbg_is_light("0;7"), 1, "grey is light");
    is_int(tui_fgbg_is_light("15;default"), -1, "a default is not known");
    is_int(tui_fgbg_is_light("15"), -1, "nor is half of it");
    is_int(tui_fgbg_is_light(NULL), -1, "nor nothing");
    is_int(tui_answer_rgb("rgb:1e1e/1e1e/2e2e"), 0x1e1e2e, "an answer of 16 bits");
    is_int(tui_answer_rgb("rgb:ff/8/000"), 0xff8800, "or of others");
    is_int(tui_answer_rgb("rgba:ffff/ffff/ffff/0000"), 0xffffff, "or with an alpha");
    is_int(tui_answer_rgb("?"), -1, "the question is no answer");
    is_int(tui_answer_rgb("rgb:12/34"), -1, "nor a part of one");
    is_int(tui_answer_rgb("rgb:zz/00/00"), -1, "nor what is no number");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    ok(fabs(tui_contrast(0, 0xffffff) - 21) < 1e-9, "black on white is 21:1");
    ok(fabs(tui_contrast(0x777777, 0xffffff) - 4.48) < 0.01, "the grey of WCAG's text");
    test_files();
    for (int i = 0; i < THEMES; i++) {
        test_contrast(&themes[i]);
        test_grounds(&themes[i]);
        test_distances(&themes[i]);
    }
    test_backdrops();
    et_ctx_free(&cx);
    return done();
}
