/* compose.h: the screen Compose: what its files share, and how a program begins it. */
#ifndef TUI_COMPOSE_H
#define TUI_COMPOSE_H

#include <jansson.h>

#include "core/algorithms/methods.h"
#include "core/compose/checks.h"
#include "core/compose/form.h"
#include "core/compose/sketch.h"
#include "tui/app.h"
#include "tui/job.h"

/* What the screen needs of the program around it; all may be left out. */
struct tui_compose_setup {
    const struct et_recipe_env *env; /* borrowed */
    json_t *installed;               /* [{name, title, path}]; a reference is taken */
    const char *runs;                /* folder in which runs are begun */
};
/* Opens the screen, if need be, and tells it. */
et_status tui_compose_setup(struct tui_app *app, const struct tui_compose_setup *setup);
/* Takes the recipe at PATH into the screen; what is wrong with it is shown there.
 * ENOENT, EIO: it cannot be read. */
et_status tui_compose_open(struct tui_app *app, const char *path);

/* The text of the recipe that a run was begun with, as one that has no file yet. FACTS:
 * core/run/facts.h. */
et_status tui_compose_from_run(struct tui_app *app, const json_t *facts);

enum tui_compose_panel {
    TUI_C_ALGORITHMS,
    TUI_C_OPTIONS,
    TUI_C_TIMELINE,
    TUI_C_RECIPE,
    TUI_C_PANELS,
};
enum tui_compose_filter { TUI_C_ALL, TUI_C_DOMAIN, TUI_C_ON, TUI_C_FILTERS };

enum { TUI_C_SECTIONS = 64, TUI_C_IGNORED = 16, TUI_C_EVENTS = 40, TUI_C_POINTS = 257 };

/* A section of the recipe that was opened or shut by hand. */
struct tui_compose_section {
    char path[ETI_PATH_BYTES];
    int mode; /* enum tui_compose_mode */
};
enum tui_compose_mode { TUI_C_SHUT, TUI_C_SET, TUI_C_WHOLE };

/* What `etude estimate` and `etude explain` say of the text. */
struct tui_compose_numbers {
    int of; /* sketch->changes that they are of; -1: none yet */
    bool is_known;
    double seconds; /* of a batch, at least */
    double peak_bytes;
    double params;
    char problem[200]; /* why they are not known; "" */
    struct eti_found found;
    int64_t batches; /* of the run; -1: not known */
    int n;           /* points of the learning rate */
    double at[TUI_C_POINTS], rate[TUI_C_POINTS];
    double highest;
};

struct compose {
    struct tui_app *app;
    struct eti_sketch *sketch;
    struct tui_compose_setup setup;
    char *runs;
    int seen; /* sketch->changes that what follows was made of */

    struct eti_form form, options; /* of the recipe; of the method that is selected */
    int row[512], n_rows;          /* of the form that are shown; -1: "more" */
    struct tui_compose_section section[TUI_C_SECTIONS];
    int n_sections;
    struct eti_method method[ETI_METHODS_MAX];
    int n_methods, shown[ETI_METHODS_MAX], n_shown;
    struct eti_check check[ETI_CHECKS_MAX];
    int n_checks, n_warnings; /* those that are not ignored come first */
    char ignored[TUI_C_IGNORED][240];
    int n_ignored;
    int event[TUI_C_EVENTS], n_events; /* at which somebody acts */

    enum tui_compose_panel focus;
    struct tui_rect
        area[TUI_C_PANELS]; /* of the grid, as drawn last; h 0: it was not */
    enum tui_compose_filter filter;
    struct tui_list algorithms, values, timeline, recipe;
    struct tui_field find;
    bool is_finding, is_editing, shows_diff, is_full;
    int diff_top;
    struct tui_field field;     /* the value that is typed */
    struct eti_form_row target; /* the row that it is of; its texts are copies */
    char path[ETI_PATH_BYTES], label[64];
    char reason[200]; /* why it will not do; "" */
    int line;         /* > 0: that line of the text is typed, not a value */

    char alike[400];   /* runs of this recipe, in a line; "" */
    char last_run[64]; /* the newest of them; "" */
    int64_t last_microbatches;
    struct tui_job estimate, explain, launch;
    bool explains; /* the second job is still to come */
    double asked;  /* monotonic: when the text was last changed */
    struct tui_compose_numbers numbers;
    char run_name[64];    /* of the run that is being started, */
    char on[ETD_ADDRESS]; /* and where, as --on has it; "" on this machine */
};

/* ---- compose.c ---- */
/* The method under the cursor; NULL: there is none. */
const struct eti_method *compose_method(const struct compose *c);
bool compose_is_empty(const struct compose *c);
/* Is METHOD for models of this recipe's kind? */
bool compose_fits(const struct compose *c, const struct eti_method *method);
/* Makes what is shown anew, if the text has changed. */
void compose_refresh(struct compose *c);
/* Warnings that are not ignored, then what is as it should be. */
void compose_list_checks(struct compose *c);
int compose_mode_of(const struct compose *c, int row);

/* The list of a panel. */
struct tui_list *compose_list(struct compose *c, enum tui_compose_panel panel);
/* What the options of the selected method are, anew. */
void compose_list_options(struct compose *c);

/* ---- compose_draw.c, compose_panels.c ---- */
void compose_draw(struct tui_app *app, void *self, const struct tui_pane *p);
void compose_draw_algorithms(struct compose *c, const struct tui_pane *p,
                             bool has_focus);
void compose_draw_options(struct compose *c, const struct tui_pane *p, bool has_focus);
void compose_draw_recipe(struct compose *c, const struct tui_pane *p, bool has_focus);
void compose_draw_timeline(struct compose *c, const struct tui_pane *p, bool has_focus);
void compose_draw_text(struct compose *c, const struct tui_pane *p);
void compose_draw_diff(struct compose *c, const struct tui_pane *p);
/* Warnings in P, as many as fit. Returns the lines that they took. */
int compose_draw_checks(struct compose *c, const struct tui_pane *p, bool all);
void compose_draw_curve(struct compose *c, const struct tui_pane *p);
void compose_draw_start(struct compose *c, const struct tui_pane *p);
/* Why the algorithm under the timeline's cursor stands where it does. */
void compose_say_why(struct compose *c);

/* ---- compose_edit.c: what keys do to the text ---- */
bool compose_key(struct tui_app *app, void *self, int key);
void compose_edit(struct compose *c);
void compose_toggle(struct compose *c);
void compose_move(struct compose *c, int by);
void compose_default(struct compose *c);
void compose_mend(struct compose *c);
void compose_ignore(struct compose *c);
/* A list of all faults, as far as they are kept. */
void compose_list_faults(struct compose *c);
void compose_undo(struct compose *c, bool again);

/* ---- compose_file.c: files, starting points ---- */
void compose_save(struct compose *c);
void compose_save_as(struct compose *c);
void compose_copy(struct compose *c);
void compose_reload(struct compose *c);
/* Looks for runs of this recipe. */
void compose_find_alike(struct compose *c);
void compose_start_first(struct compose *c);
void compose_start_installed(struct compose *c);
void compose_start_run(struct compose *c);
void compose_start_blank(struct compose *c);
/* The newest runs, those of the recipe that is called RECIPE, or of any (NULL); the
 * caller owns *OUT. */
et_status compose_list_runs(struct compose *c, const char *recipe, json_t **out);
/* The folder that runs are in. */
const char *compose_folder(const struct compose *c);
/* "" where there is none. Borrowed from FACTS. */
const char *compose_fact(const json_t *facts, const char *key);

/* ---- compose_jobs.c ---- */
void compose_launch(struct compose *c);
/* Does a little of what is waited for. Is there something new to show? */
bool compose_tick(struct tui_app *app, void *self);

#endif
