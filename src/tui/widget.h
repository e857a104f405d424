/* SPDX-License-Identifier: Apache-2.0 */
/* widget.h: what screens are made of. */
#ifndef TUI_WIDGET_H
#define TUI_WIDGET_H

#include "core/library/filter.h"
#include "core/library/state.h"
#include "tui/grid.h"
#include "tui/keys.h"
#include "tui/term.h"

/* ---- lines and bars: bar.c ---- */

/* "-- TEXT ----" over all of row Y; HAS_FOCUS: the keys go to what is below, so that
 * the rule is heavy ("==" in ASCII) and the text wears the accent. */
void tui_title(const struct tui_pane *p, int y, const char *text, bool has_focus);
/* A rule of W columns in row Y; a rule of H rows in column X. */
void tui_rule(const struct tui_pane *p, int y, int x, int w);
void tui_divide(const struct tui_pane *p, int y, int x, int h);
/* That of a panel of H rows whose title is in row Y: it begins there, or goes on from
 * the panel above, if that has been drawn. */
void tui_border(const struct tui_pane *p, int y, int x, int h);
/* Row Y is the selected one: a bar in its first column, and the ground of a selection
 * below all of it where the list HAS_FOCUS. Before or after its text is drawn. */
void tui_select(const struct tui_pane *p, int y, bool has_focus);
/* "[====>   ]", W columns with its ends. DONE of 1; NaN: not known, a mark that moves
 * with PHASE (-1: no mark). */
void tui_bar(const struct tui_pane *p, int y, int x, int w, double done, int phase);
/* "[#####....]" likewise, of USED of 1; where WARNS, one over 85 % has the colour of a
 * warning and "!" at its end. NaN: empty. */
void tui_gauge(const struct tui_pane *p, int y, int x, int w, double used, bool warns);
/* "####      47%" in W columns: PART of 1, and PERCENT (tui_percents) at the end. */
void tui_share(const struct tui_pane *p, int y, int x, int w, double part, int percent,
               bool warns);
enum { TUI_SHARES = 64 };
/* PART [N], at most TUI_SHARES, as whole percents that sum to 100; all 0 where their
 * sum is. */
void tui_percents(const double *part, int n, int *percent);
/* VALUE [N], the newest at the end of W columns, from their own least to their
 * greatest; nothing for fewer than three. */
void tui_sparkline(const struct tui_pane *p, int y, int x, int w, const double *value,
                   int n, enum tui_role role);

/* ---- the state of a run: state.c ---- */

enum tui_role tui_state_role(enum eti_state_kind kind);
uint32_t tui_state_sign(const struct tui_glyphs *g, enum eti_state_kind kind);
/* Sign and word: "* running". Returns the columns. */
int tui_put_state(const struct tui_pane *p, int y, int x, const char *state);
/* The same in capitals on the state's colour, a blank on each side: once a screen, for
 * the run that it is about. */
int tui_put_chip(const struct tui_pane *p, int y, int x, const char *state);

/* ---- a list that scrolls: list.c ---- */

struct tui_list {
    int n;    /* lines there are */
    int at;   /* the one that is selected */
    int top;  /* the first that is shown */
    int page; /* lines that are shown; tui_list_show sets it */
};
/* Moves by one of everywhere's actions. Was it one of those? */
bool tui_list_act(struct tui_list *l, enum tui_action action);
/* Of N lines, ROWS of which can be shown: moves as little as need be. */
void tui_list_show(struct tui_list *l, int n, int rows);

/* A click that is ROW lines below the first that is shown selects; a wheel moves by
 * three. Did either? */
bool tui_list_mouse(struct tui_list *l, const struct tui_mouse *m, int row);
/* Is it a click on the line that is selected, which opens it? */
bool tui_list_opens(const struct tui_list *l, const struct tui_mouse *m, int row);

struct tui_column {
    const char *title;
    int width;     /* columns; 0: what is left */
    bool is_right; /* numbers stand at the end */
};
/* Puts TEXT [N] in the columns, from X on, each cut to its width, one blank between. */
void tui_columns(const struct tui_pane *p, int y, int x,
                 const struct tui_column *column, int n, const char *const *text,
                 enum tui_role role);

/* ---- a line to type in: field.c ---- */

enum { TUI_FIELD = 512 };
struct tui_field {
    char text[TUI_FIELD];
    size_t n, at; /* bytes; of the cursor */
};
void tui_field_set(struct tui_field *f, const char *text);
/* Types, moves, deletes. Was it such a key? */
bool tui_field_key(struct tui_field *f, int key);
/* Draws W columns of it around the cursor, which it shows, with signs where there is
 * more; REASON: why the text will not do (its colour is another), NULL: it will. */
void tui_field_draw(const struct tui_field *f, const struct tui_pane *p, int y, int x,
                    int w, const char *reason);
/* The lines of W columns that it and a cursor behind it take. */
int tui_field_rows(const struct tui_field *f, int w);
/* Likewise, in ROWS lines of P. */
void tui_field_draw_rows(const struct tui_field *f, const struct tui_pane *p, int y,
                         int rows, const char *reason);

struct tui_app;

/* ---- a filter that is typed: sieve.c ---- */

struct tui_sieve {
    char text[TUI_FIELD];        /* as it was typed; "": no filter */
    struct eti_filter *filter;   /* the same, read; NULL: all pass */
    void (*changed)(void *data); /* (optional) it is another now */
    const char *const *keys;     /* that values have, to a NULL; NULL: any */
    struct et_ctx *cx;           /* while it is asked for */
    void *data;
};
/* Asks for one, beginning with TEXT; what is none says why while it is typed. */
void tui_sieve_ask(struct tui_app *app, struct tui_sieve *s, const char *title);
/* A text that is no filter is said, and then all pass. */
void tui_sieve_set(struct tui_app *app, struct tui_sieve *s, const char *text);
bool tui_sieve_passes(const struct tui_sieve *s, const struct eti_subject *subject);
void tui_sieve_release(struct tui_sieve *s);

/* ---- what lies above a screen: popup.c ---- */

struct tui_item {
    int id;  /* what DONE is told */
    int key; /* chooses it at once; TUI_K_NONE: no key does */
    char text[80];
    char mid[64];   /* in a column behind it, dim: where it leads; "" */
    char note[112]; /* behind it, dim: a key, a value, a command */
    char why[80];   /* "": it can be chosen; else the reason that it cannot */
    /* of those that follow: stepped over, and gone where none passes */
    bool is_heading;
    bool is_held; /* of a menu with a filter: shown once something is typed */
};

enum { TUI_POPUP_LINES = 10 };
struct tui_popup {
    enum { TUI_NO_POPUP, TUI_MENU, TUI_PROMPT } kind;
    char title[96];
    char line[TUI_POPUP_LINES][160]; /* above what is asked */
    int n_lines;
    struct tui_item *item; /* of a menu; owned */
    int n_items;
    bool filters; /* typing looks among the items */
    bool wide;    /* it has columns: name, where it leads, key */
    struct tui_list list;
    int *shown; /* [n_items] those that pass, n of the list; owned */
    struct tui_field field;
    /* What the end is told: the item's id, or the text. Not called after esc. */
    void (*done)(struct tui_app *app, void *data, int id, const char *text);
    /* (optional) Up (BY -1) or down was pressed where text is typed. */
    void (*turned)(struct tui_app *app, void *data, int by);
    /* (optional) The item of this id is selected now; -1: it is closed without one. */
    void (*moved)(struct tui_app *app, int id);
    /* (optional) Renews what stands above, before it is drawn; false: what it asks for
     * is no longer to be had, and it is closed. */
    bool (*renew)(struct tui_app *app);
    int told;  /* the id that MOVED was called with last */
    int asked; /* columns of the text that a question begins with */
    /* (optional) Why TEXT will not do, in BUF [160] or of its own; NULL: it will. */
    const char *(*check)(void *data, const char *text, char *buf);
    void *data;
    void *check_data; /* what CHECK is called with; NULL: DATA */
    struct et_ctx *cx;
    /* Where it was drawn, for the mouse. */
    struct tui_pane area;
    int first_row;
};

/* P becomes a menu of a copy of ITEM [N], with nothing above; DONE and DATA as above.
 * What was open is closed. ENOMEM. */
ET_NODISCARD et_status tui_popup_menu(struct tui_popup *p, struct et_ctx *cx,
                                      const char *title, const struct tui_item *item,
                                      int n);
/* Looks again which items pass: after FILTERS was set. */
void tui_popup_sift(struct tui_popup *p);
/* P becomes a question for a line of text. */
void tui_popup_prompt(struct tui_popup *p, struct et_ctx *cx, const char *title,
                      const char *text);
void tui_popup_line(struct tui_popup *p, const char *fmt, ...) ET_PRINTF(2, 3);
void tui_popup_close(struct tui_popup *p);
/* Renews P, or closes it: see RENEW. */
void tui_popup_renew(struct tui_popup *p, struct tui_app *app);
void tui_popup_draw(struct tui_popup *p, const struct tui_pane *screen);
/* A key; it may close P and call DONE. */
void tui_popup_key(struct tui_popup *p, struct tui_app *app, int key);
/* A click at Y, X of the screen: chooses an item, closes outside. */
void tui_popup_click(struct tui_popup *p, struct tui_app *app, int y, int x);

#endif
