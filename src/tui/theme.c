/* SPDX-License-Identifier: Apache-2.0 */
/* theme.c: see theme.h. VISUAL.md section 2. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/settings.h"
#include "tui/grid.h"
#include "tui/theme.h"
#include "tui/userfile.h"

static const struct role {
    const char *word;
    enum tui_role as; /* whose values it has; itself: its own */
    int dark, light, attr, mono;
} roles[] = {
#define ROLE(code, word, dark, light, attr, mono)                                      \
    {word, TUI_##code, dark, light, attr, mono},
#define SAME(code, word, as) {word, TUI_##as, 0, 0, 0, 0},
    TUI_ROLE_MAP(ROLE, SAME)
#undef ROLE
#undef SAME
};

const char *
tui_role_word(enum tui_role role)
{
    return roles[role].word;
}

enum tui_depth
tui_depth_of(int colors)
{
    return colors >= 256  ? TUI_DEPTH_256
           : colors >= 16 ? TUI_DEPTH_16
           : colors >= 8  ? TUI_DEPTH_8
                          : TUI_DEPTH_NONE;
}

/* ---- colours as numbers ---- */

int
tui_index_rgb(int index)
{
    static const int steps[] = {0, 95, 135, 175, 215, 255};
    static const int first[] = {
        0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
        0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
    };
    if (index < 16)
        return first[index];
    int grey = 8 + 10 * (index - 232), cube = index - 16;
    if (index >= 232)
        return grey << 16 | grey << 8 | grey;
    return steps[cube / 36] << 16 | steps[cube / 6 % 6] << 8 | steps[cube % 6];
}

static int
channel_distance(int a, int b, int shift)
{
    int d = (a >> shift & 255) - (b >> shift & 255);
    return d * d;
}

/* The nearest of xterm's cube and greys. The first 16 are the user's own. */
int
tui_nearest_index(int rgb)
{
    int best = 16, least = 1 << 30;
    for (int i = 16; i < 256; i++) {
        int c = tui_index_rgb(i);
        int far = channel_distance(rgb, c, 16) + channel_distance(rgb, c, 8) +
                  channel_distance(rgb, c, 0);
        if (far < least) {
            least = far;
            best = i;
        }
    }
    return best;
}

static double
luminance(int rgb)
{
    static const double weight[] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double v = (rgb >> (16 - 8 * i) & 255) / 255.;
        sum += weight[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return sum;
}

double
tui_contrast(int a, int b)
{
    double x = luminance(a), y = luminance(b);
    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

/* ---- theme files ---- */

static const struct {
    const char *name;
    int index, base;
} names[] = {
    {"default", -1, -1}, {"black", 0, 0},    {"red", 167, 1},    {"green", 36, 2},
    {"teal", 36, 2},     {"yellow", 178, 3}, {"orange", 208, 3}, {"blue", 33, 4},
    {"magenta", 175, 5}, {"pink", 175, 5},   {"cyan", 39, 6},    {"sky", 117, 6},
    {"white", 255, 7},   {"grey", 244, 8},
};

static const struct {
    const char *word;
    int attr;
} attrs[] = {
    {"bold", TUI_BOLD},
    {"faint", TUI_FAINT},
    {"reverse", TUI_REVERSE},
    {"underline", TUI_UNDERLINE},
};

/* A number of the palette: all of TEXT. -1: it is no number. */
static int
index_of(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > 255 ? -1 : (int)n;
}

/* Six hexadecimal digits, and then nothing or a slash. -1: something else. */
static int
rgb_of(const char *text)
{
    if (strspn(text, "0123456789abcdefABCDEF") != 6 || (text[6] && text[6] != '/'))
        return -1;
    return (int)strtol(text, NULL, 16);
}

/* "default", "teal", "178", "#rrggbb", "rrggbb/NUMBER". The base stays where the file
 * names none of the 16. */
static bool
read_color(const char *text, struct tui_ink *ink)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i].name) == 0) {
            ink->index = names[i].index;
            ink->base = names[i].base;
            ink->rgb = ink->index < 0 ? -1 : tui_index_rgb(ink->index);
            return true;
        }
    bool is_marked = text[0] == '#';
    int index = index_of(text), rgb = rgb_of(text + is_marked);
    const char *slash = strchr(text, '/');
    if (rgb >= 0 && (is_marked || slash)) {
        index = slash ? index_of(slash + 1) : tui_nearest_index(rgb);
        if (index < 0)
            return false;
        ink->rgb = rgb;
        ink->index = index;
        return true;
    }
    if (index < 0)
        return false;
    ink->rgb = tui_index_rgb(index);
    ink->index = index;
    if (index < 16)
        ink->base = index;
    return true;
}

/* A colour, and attributes after it. */
static bool
read_ink(const char *text, struct tui_ink *ink)
{
    char word[32];
    int n = 0, attr = 0;
    if (sscanf(text, "%31s%n", word, &n) != 1 || !read_color(word, ink))
        return false;
    for (text += n; sscanf(text, "%31s%n", word, &n) == 1; text += n) {
        size_t i = 0;
        while (i < sizeof attrs / sizeof *attrs && strcmp(word, attrs[i].word) != 0)
            i++;
        if (i == sizeof attrs / sizeof *attrs)
            return false;
        attr |= attrs[i].attr;
    }
    ink->attr = attr ? attr : ink->attr;
    return true;
}

static int
role_of(const char *word)
{
    int i = 0;
    while (i < TUI_ROLES && strcmp(word, roles[i].word) != 0)
        i++;
    return i;
}

static void
set_role(struct tui_theme *t, const struct et_value *v, struct et_diagnostics *errors)
{
    const char *words[TUI_ROLES];
    struct et_place at = eti_value_key_place(v);
    int role = role_of(v->key);
    if (role < TUI_ROLES) {
        if (!v->text || !read_ink(v->text, &t->ink[role]))
            et_diagnostics_add(errors, ET_E_VALUE, &at, v->key, NULL,
                               "expected 0 to 255, a colour's name, #rrggbb or "
                               "rrggbb/NUMBER, and bold, faint, reverse or underline");
        for (int i = 0; i < TUI_ROLES; i++)
            if ((int)roles[i].as == role)
                t->ink[i] = t->ink[role];
        return;
    }
    for (int i = 0; i < TUI_ROLES; i++)
        words[i] = roles[i].word;
    const char *near = et_nearest(v->key, words, TUI_ROLES);
    et_diagnostics_add(errors, ET_E_UNKNOWN, &at, NULL, NULL, "unknown role '%s'%s%s%s",
                       v->key, near ? " (did you mean '" : "", near ? near : "",
                       near ? "'?)" : "");
}

/* Sets the roles that others take their values from first, and then those others: a
 * value that the file gives them stays. */
static void
set_roles(struct tui_theme *t, const struct et_value *root,
          struct et_diagnostics *errors)
{
    for (int own = 0; own < 2; own++)
        for (const struct et_value *v = root ? root->first : NULL; v; v = v->next) {
            int role = role_of(v->key);
            bool takes = role < TUI_ROLES && (int)roles[role].as != role;
            if (strcmp(v->key, "ground") != 0 && takes == own)
                set_role(t, v, errors);
        }
}

/* Whether it is made for a light background. */
static bool
is_light(const struct et_value *root, struct et_diagnostics *errors)
{
    for (const struct et_value *v = root ? root->first : NULL; v; v = v->next) {
        struct et_place at = eti_value_key_place(v);
        if (strcmp(v->key, "ground") != 0)
            continue;
        if (v->text && strcmp(v->text, "light") == 0)
            return true;
        if (!v->text || strcmp(v->text, "dark") != 0)
            et_diagnostics_add(errors, ET_E_VALUE, &at, v->key, NULL,
                               "expected dark or light");
    }
    return false;
}

static const char *
shipped_text(const char *name)
{
    const struct tui_shipped_theme *s = tui_shipped_themes;
    while (s->name && strcmp(s->name, name) != 0)
        s++;
    return s->text;
}

/* What all themes begin with: no colour but those of the 16. */
static void
begin_theme(struct tui_theme *t, bool light)
{
    t->is_light = light;
    for (int i = 0; i < TUI_ROLES; i++) {
        const struct role *r = &roles[roles[i].as];
        t->ink[i] = (struct tui_ink){
            .rgb = -1,
            .index = -1,
            .base = light ? r->light : r->dark,
            .attr = r->attr,
        };
    }
}

static et_status
read_shipped(struct et_ctx *cx, struct eti_arena *arena, struct tui_theme *t,
             const char *name, struct et_diagnostics *errors)
{
    struct et_value *root;
    const char *text = shipped_text(name);
    ET_TRY(tui_user_text(cx, arena, text, strlen(text), name, errors, &root));
    begin_theme(t, is_light(root, errors));
    set_roles(t, root, errors);
    return ET_OK;
}

static et_status
no_theme(struct et_ctx *cx, const char *name, const char *folder)
{
    char list[128] = "";
    size_t n = 0;
    for (const struct tui_shipped_theme *s = tui_shipped_themes; s->name; s++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s, ", s->name);
    return ET_FAIL(cx, ET_ENOENT, "there is no theme '%s': auto, %sor %s/%s.yaml", name,
                   list, folder ? folder : "themes", name);
}

static et_status
read_theme(struct et_ctx *cx, struct eti_arena *arena, struct tui_theme *t,
           const char *folder, const char *name, struct et_diagnostics *errors)
{
    char path[4096];
    struct et_value *root = NULL;
    if (folder && !strchr(name, '/')) {
        snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
        ET_TRY(tui_user_file(cx, arena, path, errors, &root));
    }
    if (!root && shipped_text(name))
        return read_shipped(cx, arena, t, name, errors);
    if (!root)
        return no_theme(cx, name, folder);
    const char *ground = is_light(root, errors) ? "light" : "dark";
    ET_TRY(read_shipped(cx, arena, t, ground, errors));
    set_roles(t, root, errors);
    return errors->total ? ET_FAIL(cx, ET_EINVAL, "%s: %s", path, errors->v[0].message)
                         : ET_OK;
}

et_status
tui_theme_load(struct et_ctx *cx, struct tui_theme *t, const char *folder,
               const char *name, struct et_diagnostics *errors)
{
    struct eti_arena arena;
    eti_arena_init(&arena, cx, 4096);
    begin_theme(t, false);
    et_status status = read_theme(cx, &arena, t, folder, name, errors);
    snprintf(t->name, sizeof t->name, "%s", name);
    eti_arena_release(&arena);
    return status;
}

/* ---- painting ---- */

static int
color_at(const struct tui_ink *ink, enum tui_depth depth)
{
    return depth == TUI_DEPTH_TRUE  ? ink->rgb
           : depth == TUI_DEPTH_256 ? ink->index
                                    : ink->base;
}

static int
rgb_at(const struct tui_ink *ink, enum tui_depth depth)
{
    return depth == TUI_DEPTH_TRUE || ink->index < 0 ? ink->rgb
                                                     : tui_index_rgb(ink->index);
}

/* With eight colours those above are bold, and black is the terminal's own, faint. */
static void
fold_to_8(struct tui_paint *p)
{
    if (p->fg == 8) {
        p->fg = -1;
        p->attr |= TUI_FAINT;
    } else if (p->fg > 8) {
        p->fg -= 8;
        p->attr |= TUI_BOLD;
    }
    if (p->bg >= 8)
        p->bg -= 8;
}

/* On a ground with a colour of its own a role keeps its colour where that can be read
 * there, else it has the ground's text. */
static int
color_on(const struct tui_ink *ink, const struct tui_ink *ground,
         const struct tui_ink *text, enum tui_depth depth)
{
    const double readable = 4.5;
    int a = rgb_at(ink, depth), b = rgb_at(ground, depth);
    return a < 0 || tui_contrast(a, b) < readable ? color_at(text, depth)
                                                  : color_at(ink, depth);
}

struct tui_paint
tui_theme_paint(const struct tui_theme *t, enum tui_depth depth, enum tui_role role,
                enum tui_ground ground)
{
    static const struct {
        enum tui_role ground, text;
    } grounds[TUI_GROUNDS] = {
        [TUI_ON_SELECT] = {TUI_SELECT, TUI_SELECT_TEXT},
        [TUI_ON_MATCH] = {TUI_MATCH, TUI_MATCH_TEXT},
        [TUI_ON_POPUP] = {TUI_POPUP, TUI_TEXT},
    };
    struct tui_theme plain;
    if (!t) {
        begin_theme(&plain, false);
        t = &plain;
    }
    const struct tui_ink *ink = &t->ink[role], *under = &t->ink[grounds[ground].ground];
    struct tui_paint p = {color_at(ink, depth), -1, ink->attr};
    bool is_lit = ground == TUI_ON_SELECT || ground == TUI_ON_MATCH;
    if (depth == TUI_DEPTH_NONE)
        p = (struct tui_paint){-1, -1, roles[roles[role].as].mono};
    if (ground == TUI_ON_OWN)
        ;
    else if (depth == TUI_DEPTH_NONE ? ground != TUI_ON_POPUP
                                     : is_lit && depth < TUI_DEPTH_256)
        p = (struct tui_paint){-1, -1, (p.attr & ~TUI_FAINT) | TUI_REVERSE};
    else if (ground == TUI_ON_CHIP) {
        p.bg = p.fg;
        p.fg = color_at(&t->ink[TUI_CHIP_TEXT], depth);
        p.attr &= ~TUI_REVERSE;
    } else if (depth >= TUI_DEPTH_256) {
        p.bg = color_at(under, depth);
        if (is_lit)
            p.fg = color_on(ink, under, &t->ink[grounds[ground].text], depth);
        else if (p.fg < 0) /* the terminal's own may be as dark, or as light, as this */
            p.fg = color_at(&t->ink[TUI_SELECT_TEXT], depth);
    }
    if (depth == TUI_DEPTH_8)
        fold_to_8(&p);
    return p;
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
