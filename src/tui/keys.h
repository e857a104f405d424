/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h: what keys do. keys.def is the one table: the hint line, the help screen, the
 * palette, etude-keys(5) and what keys.yaml may change are made of it. */
#ifndef TUI_KEYS_H
#define TUI_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "etude/diagnostic.h"

/* Where a binding holds; those of a screen go before those of everywhere. word,
 * title */
#define TUI_WHERE_MAP(X)                                                               \
    X(everywhere, "Everywhere")                                                        \
    X(compose, "Compose")                                                              \
    X(monitor, "Monitor")                                                              \
    X(runs, "Runs")                                                                    \
    X(workers, "Workers")                                                              \
    X(logs, "Logs")                                                                    \
    X(compare, "Compare")                                                              \
    X(wall, "Charts")                                                                  \
    X(results, "Results")                                                              \
    X(samples, "Data")                                                                 \
    X(start, "Start")                                                                  \
    X(ending, "End of a run")                                                          \
    X(typing, "Typing a value")                                                        \
    X(help, "Help")

enum tui_where {
#define TUI_WHERE_ENUM(word, title) TUI_IN_##word,
    TUI_WHERE_MAP(TUI_WHERE_ENUM)
#undef TUI_WHERE_ENUM
        TUI_WHERES
};
/* The bit of a screen in a set of them; those with lists. */
#define TUI_AT(word) (1u << TUI_IN_##word)
#define TUI_LISTS                                                                      \
    (TUI_AT(compose) | TUI_AT(monitor) | TUI_AT(runs) | TUI_AT(compare) |              \
     TUI_AT(workers) | TUI_AT(logs) | TUI_AT(ending) | TUI_AT(wall) |                  \
     TUI_AT(results) | TUI_AT(samples))
const char *tui_where_title(enum tui_where where); /* "Monitor" */
const char *tui_where_word(enum tui_where where);  /* "monitor" */

/* What a key asks for: TUI_DO_monitor_axis. */
enum tui_action {
    TUI_DO_nothing,
#define TUI_KEY(where, id, ...) TUI_DO_##where##_##id,
#include "tui/keys.def"
#undef TUI_KEY
    TUI_ACTIONS
};

/* A key: a code point (control keys too), or one of these. */
enum tui_key {
    TUI_K_NONE,
    TUI_K_TAB = 9,
    TUI_K_ENTER = 13,
    TUI_K_ESC = 27,
    TUI_K_BACKSPACE = 127,
    TUI_K_UP = 0x110000,
    TUI_K_DOWN,
    TUI_K_LEFT,
    TUI_K_RIGHT,
    TUI_K_PGUP,
    TUI_K_PGDN,
    TUI_K_HOME,
    TUI_K_END,
    TUI_K_BACKTAB,
    TUI_K_DELETE,
    TUI_K_INSERT,
    TUI_K_F1, /* to F12, one behind the other */
    TUI_K_F12 = TUI_K_F1 + 11,
};
#define TUI_CTRL(letter) ((letter)&31)

enum { TUI_KEY_TEXT = 16, TUI_TWINS = 3 };
/* "ctrl-l", "s-tab", "x": as the table and keys.yaml write it. Returns BUF. */
const char *tui_key_text(int key, char buf[TUI_KEY_TEXT]);
/* The key that the N bytes of TEXT name; TUI_K_NONE: they name no key. */
int tui_key_of(const char *text, size_t n);
/* The next key of *TEXT, which then stands behind it: a character, or a name in angle
 * brackets ("<tab>", "<ctrl-l>", "<lt>" for <). TUI_K_NONE at the end; -1 for a name
 * that is none, and *TEXT stays at it. */
int tui_keys_next(const char **text);

/* One row. */
struct tui_binding {
    enum tui_where where;
    enum tui_action action;
    const char *id;  /* of the action, in keys.yaml: "axis" */
    const char *key; /* as tui_key_text writes it */
    /* others that do the same, separated by blanks; NULL: no other does */
    const char *twin;
    const char *name;     /* what it does, for the palette */
    const char *help;     /* for help; NULL: the row before speaks for this one too */
    int order;            /* among the hints; 0: it is no hint */
    const char *hint_key; /* what the hint shows in place of the key; NULL */
    const char *hint;     /* for 80 columns; NULL: only where there is room */
    const char *wide;     /* from 180 columns; NULL: as HINT */
    unsigned only; /* of everywhere: the screens that it is for, TUI_AT; 0: all */
};
extern const struct tui_binding tui_bindings[]; /* TUI_ACTIONS - 1 of them, by action */

/* The row of ACTION; NULL: no row is about it. */
const struct tui_binding *tui_binding_of(enum tui_action action);

/* The keys in force. */
struct tui_keys {
    int key[TUI_ACTIONS][TUI_TWINS]; /* by action; TUI_K_NONE behind the last */
};
void tui_keys_default(struct tui_keys *k);
/* Puts the bindings of the file PATH over K: "monitor: {axis: X, log: [y, F5]}". Where
 * there is no file K stays. What is wrong goes to ERRORS, and then EINVAL, EIO. */
ET_NODISCARD et_status tui_keys_read(struct et_ctx *cx, struct tui_keys *k,
                                     const char *path, struct et_diagnostics *errors);
/* What KEY asks for there; TUI_DO_nothing. */
enum tui_action tui_keys_find(const struct tui_keys *k, enum tui_where where, int key);
/* Does it hold there: its own row, or everywhere's that no row of the screen hides? */
bool tui_binding_holds(const struct tui_keys *k, const struct tui_binding *b,
                       enum tui_where where);
/* The first key of B, as text. */
const char *tui_binding_key(const struct tui_keys *k, const struct tui_binding *b,
                            char buf[TUI_KEY_TEXT]);
/* The keys that the help of WHERE shows in front of row I of tui_bindings: those of the
 * rows that it speaks for included, where they hold. Returns BUF. */
const char *tui_binding_keys(const struct tui_keys *k, int i, enum tui_where where,
                             char *buf, size_t size);

#endif
