/* SPDX-License-Identifier: Apache-2.0 */
/* kind.c: see kind.h.
 *
 * ncurses sends all colours only for an entry that says RGB. Most terminals that can
 * show them have one without (xterm-256color), and say so in COLORTERM. */
#include "config.h"

#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>

#include "etude/diagnostic.h"
#include "tui/kind.h"

#undef lines
#undef columns

static const char own_entry[] = "etude-direct";

/* Makes the entry NAME the one that tigetnum and tigetstr read. */
static bool
look_up(const char *name, int fd)
{
    int error;
    TERMINAL *was = set_curterm(NULL);
    if (was)
        del_curterm(was);
    return *name && setupterm(name, fd, &error) == OK;
}

static void
find_name(struct tui_kind *k, int fd)
{
    static const char *const known[] = {"xterm-256color", "xterm", "vt100", "ansi"};
    const char *own = getenv("TERM");
    own = own ? own : "";
    if (look_up(own, fd)) {
        snprintf(k->name, sizeof k->name, "%s", own);
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (look_up(known[i], fd)) {
            char visible[64];
            et_visible(visible, sizeof visible, own, strlen(own));
            snprintf(k->name, sizeof k->name, "%s", known[i]);
            snprintf(k->notice, sizeof k->notice,
                     "this machine does not know the terminal '%s': taken for %s",
                     visible, known[i]);
            return;
        }
}

/* A capability that terminfo's extensions write as a flag, a number or a text. */
static bool
has_extension(const char *name)
{
    const char *text = tigetstr(name);
    return tigetflag(name) > 0 || tigetnum(name) > 0 || (text && text != (char *)-1);
}

/* Is it said that the terminal shows all colours? GNU screen passes COLORTERM on from
 * the terminal around it, but not the colours. */
static bool
says_true(const char *term)
{
    const char *color = getenv("COLORTERM"), *in_screen = getenv("STY");
    const char *in_tmux = getenv("TMUX");
    if (has_extension("RGB") || has_extension("Tc"))
        return true;
    if (strcmp(term, "linux") == 0 ||
        (in_screen && *in_screen && !(in_tmux && *in_tmux)))
        return false;
    return color && (strcmp(color, "truecolor") == 0 || strcmp(color, "24bit") == 0);
}

static bool
is_direct(void)
{
    return has_extension("RGB") && tigetnum("colors") > 256;
}

static void
set_dirs(const char *dirs)
{
    if (dirs)
        setenv("TERMINFO_DIRS", dirs, 1);
    else
        unsetenv("TERMINFO_DIRS");
}

/* Takes the entry NAME if it has all colours, and its folder is the first of DIRS. */
static bool
takes_direct(struct tui_kind *k, int fd, const char *name, const char *dirs)
{
    if (!look_up(name, fd) || !is_direct())
        return false;
    snprintf(k->name, sizeof k->name, "%s", name);
    snprintf(k->known_dirs, sizeof k->known_dirs, "%s", dirs);
    return true;
}

/* The terminal's own entry first; but many a terminal calls itself xterm, so that of
 * xterm is the last. */
static bool
find_direct(struct tui_kind *k, int fd, const char *folder)
{
    char name[80], dirs[sizeof k->known_dirs];
    const char *was = getenv("TERMINFO_DIRS");
    char *kept = was ? strdup(was) : NULL;
    snprintf(name, sizeof name, "%.*s-direct", (int)strcspn(k->name, "-"), k->name);
    if (strncmp(name, "xterm-", 6) != 0 && takes_direct(k, fd, name, ""))
        return free(kept), true;
    bool found = false;
    int n = folder ? snprintf(dirs, sizeof dirs, "%s:%s", folder, kept ? kept : "") : 0;
    if (n > 0 && n < (int)sizeof dirs) {
        set_dirs(dirs);
        found = takes_direct(k, fd, own_entry, dirs);
        set_dirs(kept);
    }
    free(kept);
    return found || takes_direct(k, fd, "xterm-direct", "");
}

void
tui_kind_find(struct tui_kind *k, int fd, int when, const char *folder)
{
    *k = (struct tui_kind){0};
    find_name(k, fd);
    if (!*k->name)
        return;
    const char *mouse = tigetstr("kmous");
    k->can_ask = mouse && mouse != (char *)-1;
    int colors = tigetnum("colors");
    if (!tui_has_color(when, colors))
        return;
    k->depth = is_direct() ? TUI_DEPTH_TRUE : tui_depth_of(colors);
    if (k->depth < TUI_DEPTH_TRUE && says_true(k->name) && find_direct(k, fd, folder))
        k->depth = TUI_DEPTH_TRUE;
}

int
tui_fgbg_is_light(const char *text)
{
    const char *last = text ? strrchr(text, ';') : NULL;
    char *end;
    long n = last ? strtol(last + 1, &end, 10) : -1;
    if (!last || end == last + 1 || *end || n < 0 || n > 15)
        return -1;
    return n == 7 || n > 8;
}

int
tui_answer_rgb(const char *text)
{
    char part[3][5], rest;
    int rgb = 0;
    const char *at = strchr(text, ':');
    if (strncmp(text, "rgb", 3) != 0 || !at ||
        sscanf(at, ":%4[0-9a-fA-F]/%4[0-9a-fA-F]/%4[0-9a-fA-F]%c", part[0], part[1],
               part[2], &rest) < 3)
        return -1;
    for (int i = 0; i < 3; i++) {
        long most = (1L << (4 * strlen(part[i]))) - 1;
        rgb = rgb << 8 | (int)(strtol(part[i], NULL, 16) * 255 / most);
    }
    return rgb;
}
