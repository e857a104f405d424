/* theme.c: see theme.h. UX.md section 5. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/settings.h"
#include "tui/grid.h"
#include "tui/theme.h"
#include "tui/userfile.h"

static const struct {
    const char *word;
    int c256, c8, attr, mono;
} roles[] = {
#define ROLE(code, word, c256, c8, attr, mono) {word, c256, c8, attr, mono},
    TUI_ROLE_MAP(ROLE)
#undef ROLE
};

void
tui_theme_default(struct tui_theme *t, int colors)
{
    for (int i = 0; i < TUI_ROLES; i++) {
        bool none = colors < 8;
        t->color[i] = none ? -1 : colors < 256 ? roles[i].c8 : roles[i].c256;
        t->attr[i] = none ? roles[i].mono : roles[i].attr;
        if (colors < 256 && i == TUI_DIM)
            t->attr[i] |= TUI_FAINT; /* 8 colours have no grey */
    }
}

/* ---- theme files ---- */

static const struct {
    const char *name;
    int c256, c8;
} names[] = {
    {"default", -1, -1}, {"black", 0, 0},    {"red", 167, 1},    {"green", 36, 2},
    {"teal", 36, 2},     {"yellow", 178, 3}, {"orange", 208, 3}, {"blue", 33, 4},
    {"magenta", 175, 5}, {"pink", 175, 5},   {"cyan", 39, 6},    {"sky", 117, 6},
    {"white", 255, 7},   {"grey", 244, -1},
};

static int
channel_distance(int a, int b)
{
    return (a - b) * (a - b);
}

/* The nearest of xterm's 256: its 6x6x6 cube (0, 95, 135, ... 255) and 24 greys. */
static int
nearest_color(int r, int g, int b)
{
    int best = 16, least = 1 << 30;
    for (int i = 16; i < 256; i++) {
        static const int steps[] = {0, 95, 135, 175, 215, 255};
        int grey = 8 + 10 * (i - 232), cube = i - 16;
        int cr = i < 232 ? steps[cube / 36] : grey;
        int cg = i < 232 ? steps[cube / 6 % 6] : grey;
        int cb = i < 232 ? steps[cube % 6] : grey;
        int far =
            channel_distance(r, cr) + channel_distance(g, cg) + channel_distance(b, cb);
        if (far < least) {
            least = far;
            best = i;
        }
    }
    return best;
}

/* -2: TEXT is no colour. A terminal of 8 has no more than those; of others it keeps
 * what it had (-3). */
static int
color_of(const char *text, int colors)
{
    char *end;
    unsigned rgb;
    if (text[0] == '#' && strlen(text) == 7 && sscanf(text + 1, "%6x", &rgb) == 1) {
        int c =
            nearest_color((int)(rgb >> 16), (int)(rgb >> 8 & 255), (int)(rgb & 255));
        return colors < 256 ? -3 : c;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i].name) == 0)
            return colors < 256 ? names[i].c8 : names[i].c256;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 0 || n > 255)
        return -2;
    return n < colors ? (int)n : -3;
}

static void
set_role(struct tui_theme *t, const struct et_value *v, int colors,
         struct et_diagnostics *errors)
{
    const char *words[TUI_ROLES];
    struct et_place at = eti_value_key_place(v);
    for (int i = 0; i < TUI_ROLES; i++) {
        words[i] = roles[i].word;
        if (strcmp(v->key, words[i]) != 0)
            continue;
        int c = v->text ? color_of(v->text, colors) : -2;
        if (c == -2)
            et_diagnostics_add(errors, ET_E_VALUE, &at, v->key, NULL,
                               "expected 0 to 255, a colour's name or #rrggbb");
        else if (c != -3 && colors >= 8)
            t->color[i] = c;
        return;
    }
    const char *near = et_nearest(v->key, words, TUI_ROLES);
    et_diagnostics_add(errors, ET_E_UNKNOWN, &at, NULL, NULL, "unknown role '%s'%s%s%s",
                       v->key, near ? " (did you mean '" : "", near ? near : "",
                       near ? "'?)" : "");
}

et_status
tui_theme_read(struct et_ctx *cx, struct tui_theme *t, const char *path, int colors,
               struct et_diagnostics *errors)
{
    struct eti_arena arena;
    struct et_value *root;
    eti_arena_init(&arena, cx, 4096);
    et_status status = tui_user_file(cx, &arena, path, errors, &root);
    if (status == ET_OK && !root)
        status = ET_FAIL(cx, ET_ENOENT, "there is no theme %s", path);
    for (struct et_value *v = status == ET_OK ? root->first : NULL; v; v = v->next)
        set_role(t, v, colors, errors);
    if (status == ET_OK && errors->total)
        status = ET_FAIL(cx, ET_EINVAL, "%s: %s", path, errors->v[0].message);
    eti_arena_release(&arena);
    return status;
}

/* ---- whether ---- */

enum tui_role
tui_level_role(int level)
{
    return level == ET_LOG_ERROR   ? TUI_BAD
           : level == ET_LOG_WARN  ? TUI_WARN
           : level == ET_LOG_DEBUG ? TUI_DIM
                                   : TUI_TEXT;
}

const char *
tui_level_text(int level, const char *text)
{
    static const char word[] = "error ";
    bool says_it = level == ET_LOG_ERROR && strncmp(text, word, sizeof word - 1) == 0;
    return says_it ? text + sizeof word - 1 : text;
}

bool
tui_has_color(int when, int colors)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    const char *term = getenv("TERM");
    if (when == ETI_COLOR_NEVER)
        return false;
    if (when == ETI_COLOR_ALWAYS)
        return true;
    if (no && *no)
        return false;
    if (force && *force && strcmp(force, "0") != 0)
        return true;
    return colors >= 8 && !(term && strcmp(term, "dumb") == 0);
}
