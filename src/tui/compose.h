/* SPDX-License-Identifier: Apache-2.0 */
/* compose.h: the screen Compose: what its files share, and how a program begins it. */
#ifndef TUI_COMPOSE_H
#define TUI_COMPOSE_H

#include <jansson.h>
#include <limits.h>

#include "core/algorithms/methods.h"
#include "core/compose/checks.h"
#include "core/compose/form.h"
#include "core/compose/layers.h"
#include "core/compose/sketch.h"
#include "core/library/ablation.h"
#include "tui/app.h"
#include "tui/job.h"
#include "tui/samples.h"

/* What the screen needs of the program around it; all may be left out. */
struct tui_compose_setup {
    const struct et_recipe_env *env; /* borrowed */
    json_t *installed;               /* [{name, title, path}]; a reference is taken */
    const char *runs;                /* folder in which runs are begun */
    /* Is PATH in a folder of installed recipes, which are not for writing? */
    bool (*is_installed)(const char *path);
};
/* Opens the screen, if need be, and tells it. */
ET_NODISCARD et_status tui_compose_setup(struct tui_app *app,
                                         const struct tui_compose_setup *setup);
/* Takes the recipe at PATH into the screen; what is wrong with it is shown there.
 * ENOENT, EIO: it cannot be read. */
ET_NODISCARD et_status tui_compose_open(struct tui_app *app, const char *path);

/* The recipes that are installed, as setup has them; borrowed, NULL: none are known. */
const json_t *tui_compose_installed(struct tui_app *app);
/* The same as a user asks for it: where changes would be lost it is asked first. */
void tui_compose_begin(struct tui_app *app, const char *path);

/* The text of the recipe that a run was begun with, as one that has no file yet. FACTS:
 * core/library/facts.h. */
ET_NODISCARD et_status tui_compose_from_run(struct tui_app *app, const json_t *facts);

enum tui_compose_panel {
    TUI_C_RECIPE,
    TUI_C_ALGORITHMS, /* a section of the recipe where it has no panel */
    TUI_C_OPTIONS,
    TUI_C_TIMELINE,
    TUI_C_PANELS,
};
/* Which algorithms are listed: those that can act on this model, those that are on,
 * all 27 and what plugins bring. */
enum tui_compose_filter { TUI_C_CAN, TUI_C_ON, TUI_C_ALL, TUI_C_FILTERS };

enum {
    TUI_C_SECTIONS = 64,
    TUI_C_IGNORED = 16,
    TUI_C_EVENTS = 40,
    TUI_C_POINTS = 257,
    TUI_C_ROWS = 640,
    TUI_C_CHANGES = 64,
    TUI_C_TWO_PANELS = 100, /* columns from which algorithms have a panel */
    TUI_C_ROOM = 36,        /* rows from which the schedule is open from the start */
};

/* A line of the recipe's panel. */
enum tui_compose_kind {
    TUI_C_KEY,     /* row AT of the form */
    TUI_C_METHODS, /* the section of the algorithms */
    TUI_C_METHOD,  /* number AT of those that are listed */
    TUI_C_FOLDED,  /* algorithms that are not listed */
    TUI_C_MORE,    /* keys that are not listed */
};
struct tui_compose_row {
    enum tui_compose_kind kind;
    int at;
};

/* A key whose value differs from the file's. */
struct tui_compose_change {
    char sign; /* '+' it is new, '-' it is gone, '~' its value is another */
    char path[ETI_PATH_BYTES];
    char text[96]; /* "0.1 -> 0.3" */
};

/* A section of the recipe that was opened or shut by hand. */
struct tui_compose_section {
    char path[ETI_PATH_BYTES];
    int mode; /* enum tui_compose_mode */
};
enum tui_compose_mode { TUI_C_SHUT, TUI_C_SET, TUI_C_WHOLE };

/* What `etude estimate` and `etude explain` say of the text. */
struct tui_compose_numbers {
    int of; /* sketch->changes that they are of; -1: nothing is computed yet */
    bool is_known;
    double seconds; /* of a batch, at least */
    double peak_bytes;
    double params;
    char problem[200]; /* why they are not known; "" */
    bool is_refused;   /* for that, training would not begin here either */
    struct eti_found found;
    int64_t batches; /* of the run; -1: not known */
    int n;           /* points of the learning rate */
    double at[TUI_C_POINTS], rate[TUI_C_POINTS];
    double highest;
};

/* A network that the recipe spells out, as it is listed and changed. */
struct compose_layers {
    struct eti_layer_line *line; /* [n], owned */
    int n, at;                   /* lines; the one that was chosen */
    json_t *shapes;              /* of what `etude explain --model` says of the text; */
    int of;                      /* sketch->changes that it is of */
    struct tui_item *name_item;  /* [n_names], owned: what may be inserted */
    int n_names;
    char name[80];               /* whose options are asked for */
    bool is_new, is_block;       /* to be inserted; one of the recipe's blocks */
    char list[ETI_PATH_BYTES];   /* where it goes, */
    int place;                   /* and which it is to be there */
    char path[ETI_PATH_BYTES];   /* where the cursor is afterwards */
    char target[ETI_PATH_BYTES]; /* the value that is typed, of a repeat */
};

struct compose {
    struct tui_app *app;
    struct eti_sketch *sketch;
    struct tui_compose_setup setup;
    char *runs;
    int seen; /* sketch->changes that what follows was made of */

    struct eti_form form, options; /* of the recipe; of the method that is selected */
    const struct eti_method *options_of; /* that method; NULL: no method is selected */
    struct eti_form before;  /* of the file's text; as far as it can be read */
    struct et_recipe *filed; /* what that form is of; NULL: nothing */
    const char *filed_text;  /* sketch->saved when it was read; not to be read */
    struct tui_compose_change change[TUI_C_CHANGES];
    int n_changes; /* found, also those that are not kept */
    struct tui_compose_row row[TUI_C_ROWS];
    int n_rows;
    struct tui_compose_section section[TUI_C_SECTIONS];
    int n_sections;
    struct eti_method method[ETI_METHODS_MAX];
    int n_methods, shown[ETI_METHODS_MAX], n_shown;
    int n_on, n_can;      /* of all: those that are on; those that are on or could be */
    bool has_fold;        /* a line behind them says how many are not shown */
    bool is_inline;       /* they are a section of the recipe */
    bool has_room;        /* for sections that are folded on smaller screens */
    bool is_about_method; /* what is selected is an algorithm, not a key */
    struct eti_check check[ETI_CHECKS_MAX];
    int n_checks, n_warnings; /* those that are not ignored come first, */
    int n_fatal;              /* and before them those that keep it from starting */
    char ignored[TUI_C_IGNORED][240];
    int n_ignored;
    int event[TUI_C_EVENTS], n_events; /* at which somebody acts */
    bool has_table; /* the timeline, as drawn last, lists all events, not those */

    enum tui_compose_panel focus;
    /* of the grid, as drawn last; h 0: it was not */
    struct tui_rect area[TUI_C_PANELS];
    enum tui_compose_filter filter;
    struct tui_list algorithms, values, timeline, recipe;
    struct tui_field find;
    bool finds_keys; /* no others are listed than those that have it in their paths */
    bool is_finding, is_editing, shows_diff, is_full;
    int diff_top;
    struct tui_field field;     /* the value that is typed */
    struct eti_form_row target; /* the row that it is of; its texts are copies */
    char path[ETI_PATH_BYTES], label[64];
    char was[64];     /* its value before; "" where it was not set */
    char reason[200]; /* why it will not do; "" */
    int line;         /* > 0: that line of the text is typed, not a value */
    int fault;        /* of the sketch's errors, that is looked at */

    char last_run[64];          /* the newest run of this recipe; "" */
    json_t *runs_alike;         /* facts of its runs, the newest first; NULL: none */
    json_t *settings;           /* of the recipe, as those of runs are; NULL */
    int settings_of;            /* sketch->changes that they are of; -1: not read */
    struct eti_ablation bought; /* by each method that is on, in those runs, */
    int bought_of;              /* sketch->changes that it is of; -1: not looked for */
    int64_t last_microbatches;
    double looked;  /* monotonic: when they were looked for, */
    bool was_shown; /* and whether the screen was shown at the last tick */
    struct tui_job estimate, explain, outline, launch;
    bool explains, outlines; /* the second and third job are still to come */
    struct compose_layers layers;
    struct tui_samples samples; /* instead of the recipe */
    double asked;               /* monotonic: when the text was last changed */
    struct tui_compose_numbers numbers;
    enum tui_action then;  /* what is done once the text is saved */
    enum tui_action begin; /* the way to another recipe, if that was asked for: */
    char wanted[PATH_MAX]; /* its file; "": it is asked for */
    char run_name[64];     /* of the run that is being started, */
    char on[ETD_ADDRESS];  /* and where, as --on has it; "" on this machine */
};

/* ---- compose.c ---- */
bool compose_is_empty(const struct compose *c);
/* Makes what is shown anew, if the text has changed. */
void compose_refresh(struct compose *c);
/* Where keys go: the recipe's panel, with the cursor on an algorithm, is that of
 * algorithms. */
enum tui_compose_panel compose_place(const struct compose *c);
/* The list of a panel. */
struct tui_list *compose_list(struct compose *c, enum tui_compose_panel panel);
/* The cursor has come to another line: what is selected now is shown. */
void compose_selected(struct compose *c);
/* The cursor goes to the key at PATH, which is opened to be seen. Is there one? */
bool compose_go_to(struct compose *c, const char *path);
/* compose_find.c: what is listed after the text to find has changed; and all of it
 * again, with the cursor on the key that it is on. */
void compose_list_found(struct compose *c);
void compose_end_search(struct compose *c);

/* The text is another recipe's: what belonged to the one before goes. */
void compose_begun(struct compose *c);

/* ---- compose_rows.c: what is listed ---- */
/* The method under the cursor; NULL: no method is. */
const struct eti_method *compose_method(const struct compose *c);
/* Is METHOD for models of this recipe's kind? */
bool compose_fits(const struct compose *c, const struct eti_method *method);
/* Can METHOD be turned on, or is it on? */
bool compose_can_act(const struct compose *c, const struct eti_method *method);
void compose_list_methods(struct compose *c);
/* What the options of the selected method are, anew. */
void compose_list_options(struct compose *c);
/* Warnings that are not ignored, then what is as it should be. */
void compose_list_checks(struct compose *c);
void compose_list_events(struct compose *c);
void compose_list_rows(struct compose *c);
/* What differs from the file. */
void compose_list_changes(struct compose *c);
/* Whether a section is open; PATH "" = the keys that are not set, "algorithms". */
int compose_mode_at(const struct compose *c, const char *path, int first);
int compose_mode_of(const struct compose *c, int row);
/* A section: shut, what is set, all of it, and so on. */
void compose_turn_section(struct compose *c, const char *path, int mode);
/* Form row I is a component's section: the row of its name; -1: it has no name. */
int compose_name_of(const struct compose *c, int i);
/* How far row I is indented: a name that stands beside its section takes no step. */
int compose_depth_of(const struct compose *c, int i);
/* The key under the cursor of the recipe; NULL: the cursor is on no key. */
const struct eti_form_row *compose_key_row(const struct compose *c);
/* Is TOLD, as a fault has it, the key of the form's PATH? */
bool compose_is_path(const char *told, const char *path);
/* Is ROW required, and not set? */
bool compose_is_missing(const struct compose *c, const struct eti_form_row *row);
/* What differs at PATH from the file; NULL: nothing. */
const struct tui_compose_change *compose_change_at(const struct compose *c,
                                                   const char *path);

/* ---- compose_draw.c: what lies where ---- */
void compose_draw(struct tui_app *app, void *self, const struct tui_pane *p);

/* ---- compose_panels.c ---- */
void compose_remember(struct compose *c, enum tui_compose_panel panel,
                      const struct tui_pane *p);
void compose_put_marker(const struct tui_pane *p, int y, bool is_here, bool has_focus);
enum tui_role compose_sign_role(const struct tui_compose_change *change);
/* TEXT in W columns, its end marked where it is cut. Returns the columns used. */
int compose_put_cut(const struct tui_pane *p, int y, int x, enum tui_role role, int w,
                    const char *text);
void compose_put_value(struct compose *c, const struct tui_pane *p, int y, int x, int w,
                       const struct eti_form_row *row);
void compose_draw_algorithms(struct compose *c, const struct tui_pane *p,
                             bool has_focus);
void compose_draw_recipe(struct compose *c, const struct tui_pane *p, bool has_focus);

/* ---- compose_side.c: what is selected, and what is to be said of the recipe ---- */
/* The key or algorithm that is selected. Returns the lines that it takes. */
int compose_draw_selected(struct compose *c, const struct tui_pane *p, bool has_focus);
/* Warnings, then what is as it should be, as far as there is room. Returns the lines
 * that they took; the other, those that all would take in W columns. */
int compose_draw_checks(struct compose *c, const struct tui_pane *p);
int compose_check_lines(const struct compose *c, int w);
/* Those of the first warning with the keys that act on it; 0: nothing is warned of. */
int compose_first_check_lines(const struct compose *c, int w);
/* The keys that differ from the file. */
void compose_draw_changes(struct compose *c, const struct tui_pane *p);
void compose_draw_diff(struct compose *c, const struct tui_pane *p);
void compose_draw_curve(struct compose *c, const struct tui_pane *p);
void compose_draw_start(struct compose *c, const struct tui_pane *p);

/* ---- compose_bought.c: what each method bought, as runs of the recipe tell ---- */
/* Of METHOD in a line, below what is said of it; that there are no such runs, too.
 * Returns the lines. */
int compose_draw_bought(struct compose *c, const struct tui_pane *p, int y,
                        const struct eti_method *method);
/* A table of all methods from line Y on. Returns the lines. */
int compose_draw_all_bought(struct compose *c, const struct tui_pane *p, int y);

/* ---- compose_faults.c: what is wrong with the text ---- */
/* All of the text around the fault, where it is no YAML. */
void compose_draw_text(struct compose *c, const struct tui_pane *p);
/* The fault that is looked at, with its lines, and the others in a line each. */
void compose_draw_faults(struct compose *c, const struct tui_pane *p);
/* The value that FAULT is about, as it is written; "" where it is not in this text. */
const char *compose_wrong_text(const struct compose *c,
                               const struct et_diagnostic *fault, char *buf,
                               size_t size);
/* A list of all faults, as far as they are kept. */
void compose_list_faults(struct compose *c);
/* The fault to look at first: a key that is missing may be there, misspelt. */
int compose_first_fault(const struct compose *c);
/* Does what the hint of the fault says, as far as that is known. Was it done, or
 * begun? */
bool compose_mend_fault(struct compose *c);

/* ---- compose_timeline.c ---- */
void compose_draw_timeline(struct compose *c, const struct tui_pane *p, bool has_focus);
/* Why the algorithm under the timeline's cursor stands where it does. */
void compose_say_why(struct compose *c);

/* ---- compose_edit.c: what keys do to the text ---- */
bool compose_key(struct tui_app *app, void *self, int key);
/* ACTION while a value is typed. False: it means nothing then. */
bool compose_act_typing(struct compose *c, enum tui_action action);
void compose_edit(struct compose *c);
void compose_toggle(struct compose *c);
void compose_move(struct compose *c, int by);
void compose_default(struct compose *c);
void compose_mend(struct compose *c);
void compose_ignore(struct compose *c);
/* Begins to type the value of ROW; the line FROM of the text. */
void compose_type(struct compose *c, const struct eti_form_row *row);
void compose_type_line(struct compose *c, int line);
void compose_undo(struct compose *c, bool again);

/* ---- compose_layers.c: a network spelled out ---- */
/* Lists the layers, with the cursor at PATH ("model.layers.2"; NULL: the first). False:
 * the model is none that is spelled out. */
bool compose_pick_layers(struct compose *c, const char *path);
/* What the job `outline` said. */
void compose_take_outline(struct compose *c);
void compose_forget_layers(struct compose *c);

/* ---- compose_alike.c: runs of the recipe ---- */
/* Looks for them. */
void compose_find_alike(struct compose *c);
/* The settings of the recipe as it stands, as eti_facts_config gives those of runs;
 * borrowed, until it changes. NULL: it is not valid. */
const json_t *compose_settings(struct compose *c);
/* Those that differ least from it, in row Y of P. */
void compose_draw_alike(struct compose *c, const struct tui_pane *p, int y);

/* ---- compose_file.c: files, starting points ---- */
/* Has the text a file, and may that be written? */
bool compose_is_ours(const struct compose *c);
void compose_save(struct compose *c);
void compose_save_as(struct compose *c);
/* Saves, and then acts on THEN. */
void compose_save_then(struct compose *c, enum tui_action then);
void compose_copy(struct compose *c);
void compose_reload(struct compose *c);
void compose_start_first(struct compose *c);
void compose_start_installed(struct compose *c);
void compose_start_run(struct compose *c);
void compose_start_blank(struct compose *c);
/* The newest runs, those of the recipe that is called RECIPE, or of any (NULL); the
 * caller owns *OUT. */
ET_NODISCARD et_status compose_list_runs(struct compose *c, const char *recipe,
                                         json_t **out);
/* The folder that runs are in. */
const char *compose_folder(const struct compose *c);
/* "" for a run without it. Borrowed from FACTS. */
const char *compose_fact(const json_t *facts, const char *key);

/* ---- compose_another.c ---- */
/* Begins another recipe by WAY, an action of the page where one begins; by any other
 * action the user chooses the way. Where changes would be lost it is asked first. */
void compose_another(struct compose *c, enum tui_action way);
/* Begins what was wanted. */
void compose_begin_wanted(struct compose *c);

/* ---- compose_jobs.c ---- */
/* Has the estimate of the text as it is been made? */
bool compose_is_estimated(const struct compose *c);
/* Would the run not start on this machine, for the problem of its numbers? */
bool compose_is_refused(const struct compose *c);
void compose_launch(struct compose *c);
/* Shows samples of the recipe's data. */
void compose_open_samples(struct compose *c);
/* Does a little of what is waited for. Is there something new to show? */
bool compose_tick(struct tui_app *app, void *self);

#endif
