/* SPDX-License-Identifier: Apache-2.0 */
/* app.h: the workbench: screens, what they share, and the loop that runs them.
 *
 * A screen is a table of functions and a row in screens.def. It draws all of its part
 * of the grid from what is known, whenever it is asked to; keys come to it as actions
 * of keys.def; what it has to wait for it does a little at a time, in tick. Nothing in
 * here needs a terminal: --dump-screen feeds keys and prints the grid. */
#ifndef TUI_APP_H
#define TUI_APP_H

#include "core/config/settings.h"
#include "tui/border.h"
#include "tui/glyphs.h"
#include "tui/grid.h"
#include "tui/job.h"
#include "tui/keys.h"
#include "tui/layout.h"
#include "tui/source.h"
#include "tui/term.h"
#include "tui/widget.h"

struct tui_app;

/* One screen. SELF is its state, zeroed before open. */
struct tui_screen {
    enum tui_where where; /* its tab, title, and its rows of keys.def */
    size_t size;          /* of its state */
    /* (optional) Called when it is first shown. */
    et_status (*open)(struct tui_app *app, void *self);
    /* (optional) At the end, if it was opened. */
    void (*close)(struct tui_app *app, void *self);
    /* (optional) The run that is watched is another one now, or none. */
    void (*attached)(struct tui_app *app, void *self);
    bool needs_run; /* without one its keys do nothing, and are not shown */
    /* (optional) Whose keys hold: of a view of the screen that has its own. */
    enum tui_where (*place)(struct tui_app *app, void *self);
    /* (optional) The text of a key's hint at this moment; "": the key does nothing now
     * and has no hint; NULL: the text of keys.def. */
    const char *(*hint)(struct tui_app *app, void *self, enum tui_action action);
    /* Draws into P, all lines but the first and the last two: its first line says what
     * is shown. tui_size_of the grid says what there is room for. */
    void (*draw)(struct tui_app *app, void *self, const struct tui_pane *p);
    /* (optional) What the line above the hints says while there is nothing newer. */
    enum tui_role (*message)(struct tui_app *app, void *self, char *buf, size_t size);
    /* (optional) A key, before it is looked up: while something is typed. Taken? */
    bool (*key)(struct tui_app *app, void *self, int key);
    /* (optional) What a key asks for. Done? */
    bool (*act)(struct tui_app *app, void *self, enum tui_action action);
    /* (optional) A click or wheel at M, in P's rows and columns. */
    void (*mouse)(struct tui_app *app, void *self, const struct tui_mouse *m);
    /* (optional) A little work. Is there something new to draw? */
    bool (*tick)(struct tui_app *app, void *self);
    /* (optional) Why it should be asked before leaving; NULL: it need not. */
    const char *(*unsaved)(struct tui_app *app, void *self);
    /* (with unsaved) Saves it, which may ask for a name, and then acts on THEN. */
    void (*save)(struct tui_app *app, void *self, enum tui_action then);
};

struct tui_app_config {
    struct et_ctx *cx;
    const struct tui_glyphs *glyphs;
    struct tui_keys keys;
    bool is_readonly; /* -R: a viewer for good, of whom runs are asked nothing */
    bool is_mono;     /* screens have no colours */
    bool is_still;    /* nothing moves by itself: ui.motion */
    bool is_dump;     /* time is the run's: a screen is a function of its records */
    bool is_past;     /* a dump of a record before the last: so is the run's state */
    enum tui_where first; /* the screen to begin with */
    int rows, cols;
    const struct eti_config_price *price; /* borrowed; NULL: no price is set */
    const char *layout; /* where moved borders are kept; borrowed; NULL: nowhere */
    /* for the palette; borrowed; NULL: it lists no settings */
    const struct eti_config *settings;
    const char *themes; /* folder of the user's own themes; borrowed; NULL: no folder */
    const char *recent; /* where to begin: shown where there is no run; NULL */
    struct eti_index *index; /* of runs, just looked at; borrowed; NULL: the user's */
};

enum {
#define TUI_SCREEN(where, what) +1
    TUI_SCREENS = 0
#include "tui/screens.def"
#undef TUI_SCREEN
    ,
    TUI_MESSAGE = 240
};

/* A hint or tab that can be clicked. */
struct tui_spot {
    int y, x, w;
    enum tui_action action;
};
enum { TUI_SPOTS = 48 };

struct tui_app {
    struct et_ctx *cx;
    struct tui_app_config config;
    struct tui_grid grid;
    const struct tui_screen *screen[TUI_SCREENS]; /* NULL: not in this version */
    void *state[TUI_SCREENS];                     /* NULL: not opened yet */
    int at, before;         /* the screen that is shown, and that was */
    struct tui_popup popup; /* above it */
    struct tui_borders borders;
    struct tui_list help; /* of the help screen */
    struct tui_field search;
    bool shows_help;
    char message[TUI_MESSAGE];
    enum tui_role message_role;
    double message_end;        /* monotonic */
    struct tui_source *source; /* the run that is watched; NULL: no run is. Owned */
    bool is_viewer;            /* asks nothing of runs: v in Workers */
    bool is_frozen;            /* the source is not asked for more */
    bool changed;              /* there is something to draw */
    bool has_more;             /* a screen's tick has more to do at once */
    bool leaves;
    int exit;  /* of the program */
    int phase; /* counts tenths of seconds */
    struct tui_spot spot[TUI_SPOTS];
    int n_spots;
    struct tui_term *term; /* NULL: screens are dumped, to no terminal */
    struct tui_job saver;  /* of a setting, */
    char saving[128];      /* which is this one; "": no setting is being saved */
};

/* ENOMEM; EINVAL where the first screen cannot be opened. */
ET_NODISCARD et_status tui_app_new(const struct tui_app_config *config,
                                   struct tui_app **out);
void tui_app_free(struct tui_app **app);

/* Watches *SOURCE from now on (taken; NULL: nothing). */
void tui_app_attach(struct tui_app *app, struct tui_source **source);
/* Shows a screen; one that this version lacks is said so. */
void tui_app_go(struct tui_app *app, enum tui_where where);
/* Whose keys hold now, help aside. */
enum tui_where tui_app_place(const struct tui_app *app);
/* The state of a screen, which is opened if need be; NULL where it cannot be. */
void *tui_app_state(struct tui_app *app, enum tui_where where);
void tui_app_resize(struct tui_app *app, int rows, int cols);
void tui_app_key(struct tui_app *app, int key);
/* Types TEXT into the field that is open. Without one, says that a pasted text is not
 * taken for keys. */
void tui_app_paste(struct tui_app *app, const char *text);
void tui_app_act(struct tui_app *app, enum tui_action action);
void tui_app_mouse(struct tui_app *app, const struct tui_mouse *m);
/* Works for at most SECONDS. Is there more to do at once? */
bool tui_app_tick(struct tui_app *app, double seconds);
/* Why this user may send runs no requests; NULL: he may, if the run lets him. */
const char *tui_app_watches(const struct tui_app *app);
/* Makes him an operator, and takes the run that is watched. */
void tui_app_operate(struct tui_app *app);
/* Who has taken that run, as a sentence in BUF, which it returns; "": no such run. */
const char *tui_app_holder(const struct tui_app *app, char *buf, size_t size);
/* Says what the run's source has to say. */
void tui_app_listen(struct tui_app *app);
/* While a screen draws: a click on W columns at Y, X of the grid asks for ACTION. */
void tui_add_spot(struct tui_app *app, int y, int x, int w, enum tui_action action);
/* Draws app->grid. */
void tui_app_draw(struct tui_app *app);

/* Says something in the line above the hints, for some seconds. */
void tui_say(struct tui_app *app, enum tui_role role, const char *fmt, ...)
    ET_PRINTF(3, 4);
/* Says the error that stands in the context, and clears it. */
void tui_say_error(struct tui_app *app);
/* Puts TEXT on the clipboard as far as the terminal can, and in the message line. */
void tui_copy(struct tui_app *app, const char *text);
/* Seconds that only grow; of the day, which with a dump is the run's last record. */
double tui_now(const struct tui_app *app);
double tui_today(const struct tui_app *app);
/* The clock of what moves by itself, in tenths of seconds; -1: nothing moves
 * (ui.motion). */
int tui_app_phase(const struct tui_app *app);

/* Runs APP on a terminal until it is left; calls newly opened screens and all else.
 * Returns app->exit. */
int tui_run(struct tui_app *app, struct tui_term *term);

/* ---- dump.c: a screen as text ---- */

struct tui_dump {
    const char *keys; /* to press first, tui_keys_next; NULL: no keys */
    int64_t at;       /* the record to stop at; 0: the last */
    bool roles;       /* the roles of its cells, too, after a line "roles:" */
};
/* Takes in the run's records, presses the keys, and prints the screen. EINVAL for keys
 * that are none, or a record that is not there. */
ET_NODISCARD et_status tui_dump_screen(struct tui_app *app, const struct tui_dump *dump,
                                       FILE *out);
/* "80x24", "80x24+roles". False: another word, or a size that is not 1x1 to 500x500. */
bool tui_size_read(const char *text, int *rows, int *cols, bool *roles);

/* ---- help.c, palette.c ---- */

void tui_help_draw(struct tui_app *app, const struct tui_pane *p);
void tui_help_key(struct tui_app *app, int key);
/* A wheel, or a click at M of the screen: selects a row, and does what is selected. */
void tui_help_mouse(struct tui_app *app, const struct tui_mouse *m);
void tui_help_run(struct tui_app *app);
void tui_palette_open(struct tui_app *app);
/* Has a setting been saved? */
bool tui_palette_tick(struct tui_app *app);
void tui_palette_close(struct tui_app *app);

/* ---- logs.c ---- */

/* Shows Logs at the first line of that time of the day or later. */
void tui_logs_jump(struct tui_app *app, double t);

/* The screens, by TUI_IN_compose ...: screens.def. */
extern const struct tui_screen *const tui_screens[TUI_SCREENS];
/* Is it one of them, or a key that goes to one? */
static inline bool
tui_is_screen(enum tui_where where)
{
    return where >= TUI_IN_compose && where < TUI_IN_compose + TUI_SCREENS;
}
static inline bool
tui_goes_to_screen(enum tui_action action)
{
    return action >= TUI_DO_everywhere_compose &&
           action < TUI_DO_everywhere_compose + TUI_SCREENS;
}

#endif
