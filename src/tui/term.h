/* SPDX-License-Identifier: Apache-2.0 */
/* term.h: the terminal: what is shown on it, what comes from it, and that it is as it
 * was afterwards. One at a time; the only file that knows ncurses is term.c. */
#ifndef TUI_TERM_H
#define TUI_TERM_H

#include "tui/grid.h"
#include "tui/keys.h"

struct tui_term_config {
    FILE *in, *out;    /* terminals; borrowed */
    int color;         /* enum eti_color */
    bool mouse;        /* listen to it */
    const char *theme; /* NULL, "auto": by the terminal's background */
    /* folder of the user's own; NULL: no folder. Borrowed until close */
    const char *themes;
    const char *terminfo; /* folder of Etude's own entry (kind.h); NULL: no folder */
    const char *crash;    /* folder of crash reports; NULL: no report is written */
    struct et_diagnostics *errors; /* of the theme */
};

struct tui_mouse {
    int y, x;
    enum {
        TUI_CLICK, /* the left button goes down */
        TUI_WHEEL_UP,
        TUI_WHEEL_DOWN,
        TUI_RIGHT_CLICK, /* the right one does, or the mouse moves while it is down */
        TUI_DRAG,        /* the mouse moves while the left one is down */
        TUI_RELEASE,     /* it goes up */
    } what;
};

struct tui_term;
/* Takes the terminal over. From here on fatal signals give it back before they end the
 * process, and leave a report. A TERM that is not known is taken as xterm-256color.
 * ENOTSUP for a terminal that cannot place its cursor; EINVAL for a wrong theme,
 * ENOENT for one that is not there. */
ET_NODISCARD et_status tui_term_open(struct et_ctx *cx,
                                     const struct tui_term_config *config,
                                     struct tui_term **out);
/* Gives it back as it was. */
void tui_term_close(struct tui_term **t);

/* What the user should be told once; NULL: nothing. */
const char *tui_term_notice(const struct tui_term *t);
void tui_term_size(const struct tui_term *t, int *rows, int *cols);
/* Shows G: writes what differs from what is shown; nothing where nothing does. */
void tui_term_show(struct tui_term *t, const struct tui_grid *g);
/* The next tui_term_show writes everything. */
void tui_term_forget(struct tui_term *t);
/* Waits at most SECONDS for a key, a signal, or FD (-1: no descriptor) to be
 * readable. */
void tui_term_wait(struct tui_term *t, double seconds, int fd);
/* The next key; TUI_K_NONE: no key was pressed. TUI_K_MOUSE: *MOUSE says what;
 * TUI_K_PASTE: tui_term_pasted has a text. */
enum {
    TUI_K_MOUSE = 0x120000,
    TUI_K_PASTE,
    TUI_COPY_MAX = 3 << 10,
    TUI_PASTE = 4 << 10
};
int tui_term_key(struct tui_term *t, struct tui_mouse *mouse);
/* Shows the theme NAME from the next tui_term_show on; "auto" as above. ENOENT, EINVAL
 * with ERRORS, and then the theme is what it was. */
ET_NODISCARD et_status tui_term_theme(struct tui_term *t, const char *name,
                                      struct et_diagnostics *errors);
/* Has it changed since the last call, so that all is to be shown again? */
bool tui_term_repaints(struct tui_term *t);
/* What was pasted, cut to TUI_PASTE bytes; good until the next tui_term_key. */
const char *tui_term_pasted(const struct tui_term *t);
bool tui_term_has_colors(const struct tui_term *t);
bool tui_term_has_mouse(const struct tui_term *t);
/* Was the size changed since the last call? */
bool tui_term_resized(struct tui_term *t);
/* Did a signal ask to leave, or has the terminal gone? */
bool tui_term_leaves(const struct tui_term *t);
/* Stops the process as ctrl-Z does; returns when it goes on. */
void tui_term_suspend(struct tui_term *t);
/* Has a signal asked for that? */
bool tui_term_suspends(struct tui_term *t);
/* Asks the terminal to put TEXT on its clipboard (OSC 52); many do not. */
void tui_term_copy(struct tui_term *t, const char *text);

#endif
