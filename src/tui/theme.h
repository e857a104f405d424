/* theme.h: roles and their colours, and whether there are any.
 *
 * Screens name roles; which colour that is the theme says. No role means anything by
 * its colour alone: whoever draws a state also writes its letter or sign. */
#ifndef TUI_THEME_H
#define TUI_THEME_H

#include <stdbool.h>

#include "etude/diagnostic.h"

/* role, word in theme files, colour of 256, of 8 (-1: the terminal's own), attributes
 * in colour, and where there is none (UX.md section 5). Backgrounds are the terminal's
 * own. */
#define TUI_ROLE_MAP(X)                                                                \
    X(TEXT, "text", -1, -1, 0, 0)                                                      \
    X(DIM, "dim", 244, -1, 0, TUI_FAINT)                                               \
    X(TITLE, "title", 39, 6, 0, TUI_BOLD)                                              \
    X(FOCUS, "focus", 39, 6, TUI_BOLD, TUI_BOLD | TUI_REVERSE)                         \
    X(GOOD, "good", 36, 2, 0, TUI_BOLD)                                                \
    X(WARN, "warning", 178, 3, 0, TUI_BOLD)                                            \
    X(BAD, "bad", 167, 1, 0, TUI_REVERSE)                                              \
    X(STALE, "stale", 244, 4, 0, TUI_FAINT)                                            \
    X(BAR, "bar", 33, 6, 0, 0)                                                         \
    X(S1, "series1", 33, 6, 0, 0)                                                      \
    X(S2, "series2", 208, 3, 0, 0)                                                     \
    X(S3, "series3", 36, 2, 0, 0)                                                      \
    X(S4, "series4", 175, 5, 0, 0)                                                     \
    X(S5, "series5", 167, 1, 0, 0)                                                     \
    X(S6, "series6", 117, 4, 0, 0)                                                     \
    X(RAW, "raw", 240, -1, 0, 0)

enum tui_role {
#define TUI_ROLE_ENUM(code, word, c256, c8, attr, mono) TUI_##code,
    TUI_ROLE_MAP(TUI_ROLE_ENUM)
#undef TUI_ROLE_ENUM
        TUI_ROLES
};

struct tui_theme {
    int color[TUI_ROLES]; /* number in the terminal's palette; -1: its own */
    int attr[TUI_ROLES];  /* enum tui_attr, or-ed */
};

/* The built-in one for a terminal of COLORS colours: fewer than 8 are none. */
void tui_theme_default(struct tui_theme *t, int colors);
/* Puts what the theme file PATH says over T: "role: colour" a line, a colour being a
 * number of the palette, a word ("teal"), or "#rrggbb", which is taken as the nearest
 * of 256. What is wrong goes to ERRORS, and then EINVAL; ENOENT, EIO. */
ET_NODISCARD et_status tui_theme_read(struct et_ctx *cx, struct tui_theme *t,
                                      const char *path, int colors,
                                      struct et_diagnostics *errors);

/* Of a line of a log: enum et_log_level; -1: one that was printed without. */
enum tui_role tui_level_role(int level);
/* TEXT without the word of that level, which stands beside it: "error E6002: ...". */
const char *tui_level_text(int level, const char *text);
/* Are there to be colours? WHEN is enum eti_color: what the command line or the
 * configuration say; the environment is asked for NO_COLOR, CLICOLOR_FORCE and TERM.
 * COLORS: how many the terminal has. */
bool tui_has_color(int when, int colors);

#endif
