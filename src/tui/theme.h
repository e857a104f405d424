/* SPDX-License-Identifier: Apache-2.0 */
/* theme.h: roles and their colours, and whether there are any.
 *
 * Screens name roles; which colour that is the theme says. No role means anything by
 * its colour alone: whoever draws a state also writes its letter or sign. The colours
 * of the shipped themes are in themes/NAME.yaml, which are also compiled in. */
#ifndef TUI_THEME_H
#define TUI_THEME_H

#include <stdbool.h>

#include "etude/diagnostic.h"

/* X: code, word in theme files, colour of the terminal's own 16 on a dark and on a
 * light background (-1: its own text colour), attributes in colour, and without.
 * SAME: code, word, the role whose values it has where a theme sets none for it. */
#define TUI_ROLE_MAP(X, SAME)                                                          \
    X(TEXT, "text", -1, -1, 0, 0)                                                      \
    X(DIM, "dim", 8, 8, 0, TUI_FAINT)                                                  \
    SAME(LABEL, "label", DIM)                                                          \
    SAME(AXIS, "axis", DIM)                                                            \
    X(TITLE, "title", 6, 4, 0, TUI_BOLD)                                               \
    SAME(KEY, "key", TITLE)                                                            \
    X(FOCUS, "focus", 14, 4, TUI_BOLD, TUI_BOLD | TUI_REVERSE)                         \
    X(GOOD, "good", 2, 2, 0, TUI_BOLD)                                                 \
    SAME(ADD, "add", GOOD)                                                             \
    X(BAD, "bad", 9, 1, 0, TUI_REVERSE)                                                \
    SAME(REMOVE, "remove", BAD)                                                        \
    X(WARN, "warning", 3, 3, 0, TUI_BOLD)                                              \
    SAME(CHANGE, "change", WARN)                                                       \
    X(STALE, "stale", 8, 8, 0, TUI_FAINT)                                              \
    X(BAR, "bar", 12, 4, 0, 0)                                                         \
    X(S1, "series1", 12, 4, 0, 0)                                                      \
    X(S2, "series2", 3, 3, 0, 0)                                                       \
    X(S3, "series3", 2, 2, 0, 0)                                                       \
    X(S4, "series4", 5, 5, 0, 0)                                                       \
    X(S5, "series5", 1, 1, 0, 0)                                                       \
    X(S6, "series6", 14, 6, 0, 0)                                                      \
    X(S7, "series7", 11, 3, 0, 0)                                                      \
    X(S8, "series8", 13, 5, 0, 0)                                                      \
    X(RAW, "raw", 8, 8, 0, TUI_FAINT)                                                  \
    X(STRONG, "strong", -1, -1, TUI_BOLD, TUI_BOLD)                                    \
    X(SECTION, "section", -1, -1, TUI_BOLD, TUI_BOLD)                                  \
    X(RULE, "rule", 8, 8, 0, TUI_FAINT)                                                \
    X(BORDER_FOCUS, "border_focus", 6, 4, 0, TUI_BOLD)                                 \
    SAME(MARK, "mark", BORDER_FOCUS)                                                   \
    X(CHANGED, "changed", 3, 3, 0, TUI_BOLD)                                           \
    X(BEST, "best", 3, 3, TUI_BOLD, TUI_BOLD)                                          \
    X(OFF, "off", 8, 8, 0, TUI_FAINT)                                                  \
    X(LINK, "link", 6, 6, TUI_UNDERLINE, TUI_UNDERLINE)                                \
    X(BAR_LOW, "bar_low", 12, 4, 0, 0)                                                 \
    X(BAR_HIGH, "bar_high", 12, 4, 0, 0)                                               \
    X(TRACK, "track", 8, 8, 0, TUI_FAINT)                                              \
    X(CURSOR, "cursor", 7, 7, TUI_BOLD, TUI_REVERSE)                                   \
    X(HEAT0, "heat0", 8, 8, 0, 0)                                                      \
    X(HEAT1, "heat1", 4, 4, 0, 0)                                                      \
    X(HEAT2, "heat2", 2, 2, 0, 0)                                                      \
    X(HEAT3, "heat3", 3, 3, 0, 0)                                                      \
    X(HEAT4, "heat4", 15, 1, 0, TUI_BOLD)                                              \
    X(SELECT, "select", -1, -1, 0, 0)                                                  \
    X(SELECT_TEXT, "select_text", -1, -1, 0, 0)                                        \
    X(MATCH, "match", -1, -1, 0, 0)                                                    \
    SAME(MATCH_TEXT, "match_text", SELECT_TEXT)                                        \
    X(POPUP, "popup", -1, -1, 0, 0)                                                    \
    X(CHIP_TEXT, "chip_text", 0, 15, 0, 0)

enum tui_role {
#define TUI_ROLE_ENUM(code, word, dark, light, attr, mono) TUI_##code,
#define TUI_SAME_ENUM(code, word, as)                      TUI_##code,
    TUI_ROLE_MAP(TUI_ROLE_ENUM, TUI_SAME_ENUM)
#undef TUI_ROLE_ENUM
#undef TUI_SAME_ENUM
        TUI_ROLES
};

/* What a cell lies on. */
enum tui_ground {
    TUI_ON_OWN,    /* the terminal's background */
    TUI_ON_SELECT, /* the selected row */
    TUI_ON_MATCH,  /* what a search found */
    TUI_ON_POPUP,  /* inside a pop-up */
    TUI_ON_CHIP,   /* the colour of the cell's role, with chip_text on it */
    TUI_GROUNDS
};

/* How many colours a terminal has. */
enum tui_depth {
    TUI_DEPTH_NONE,
    TUI_DEPTH_8,
    TUI_DEPTH_16,
    TUI_DEPTH_256,
    TUI_DEPTH_TRUE,
    TUI_DEPTHS
};
/* COLORS: of a terminal that has no colour but those of a palette. */
enum tui_depth tui_depth_of(int colors);

struct tui_ink {
    int rgb;   /* 0xrrggbb; -1: the terminal's own */
    int index; /* of the palette of 256, -1 likewise */
    int base;  /* of the 16, -1 likewise */
    int attr;  /* enum tui_attr, or-ed */
};

struct tui_theme {
    char name[64];
    bool is_light; /* made for a light background */
    struct tui_ink ink[TUI_ROLES];
};

/* Themes that are compiled in, dark first. NULL ends them. */
struct tui_shipped_theme {
    const char *name, *text; /* text: of the file */
};
extern const struct tui_shipped_theme tui_shipped_themes[];

/* Reads the theme NAME into T: FOLDER/NAME.yaml (FOLDER NULL: no folder), else the
 * shipped one. Roles that a file does not set are those of dark, or with "ground:
 * light" of light. What is wrong with a file goes to ERRORS, and then EINVAL and T is
 * dark or light; ENOENT, EIO, ENOMEM. */
ET_NODISCARD et_status tui_theme_load(struct et_ctx *cx, struct tui_theme *t,
                                      const char *folder, const char *name,
                                      struct et_diagnostics *errors);

/* How a terminal shows a role. Colours are 0xrrggbb at TUI_DEPTH_TRUE, else numbers of
 * its palette; -1: its own. */
struct tui_paint {
    int fg, bg;
    int attr; /* enum tui_attr, or-ed */
};
/* T NULL: up to 16 colours, which are the same for all themes of a dark ground. */
struct tui_paint tui_theme_paint(const struct tui_theme *t, enum tui_depth depth,
                                 enum tui_role role, enum tui_ground ground);

/* The word of ROLE in theme files. */
const char *tui_role_word(enum tui_role role);
/* The contrast of two colours 0xrrggbb as WCAG 2.2 computes it: 1 to 21. */
double tui_contrast(int a, int b);
/* 0xrrggbb of number INDEX of xterm's 256. */
int tui_index_rgb(int index);
/* The nearest to 0xrrggbb of xterm's cube and greys: 16 to 255. */
int tui_nearest_index(int rgb);

/* Of a line of a log: enum et_log_level; -1: one that was printed without. */
enum tui_role tui_level_role(int level);
/* TEXT without the word of that level, which stands beside it: "error E6002: ...". */
const char *tui_level_text(int level, const char *text);
/* Are there to be colours? WHEN is enum eti_color: what the command line or the
 * configuration say; the environment is asked for NO_COLOR, CLICOLOR_FORCE and TERM.
 * COLORS: how many the terminal has. */
bool tui_has_color(int when, int colors);

#endif
