/* SPDX-License-Identifier: Apache-2.0 */
/* made.h: a run that is made up record by record, without files or processes, and what
 * is shown of it. */
#ifndef ETUDE_T_TUI_MADE_H
#define ETUDE_T_TUI_MADE_H

#include "t/tap.h"
#include "tui/app.h"
#include "tui/monitor.h"

struct made {
    struct tui_source source; /* its class: never has more, takes what is asked */
    struct etd_model *model;  /* source.model */
    struct et_record at;      /* the time and the place of the next record */
    struct tui_app *app;      /* NULL: none was opened */
    char asked[4][160];       /* what was asked of it last, the newest first */
    const char *refusal;      /* why nothing can be asked; NULL */
    const char *mute;         /* why no note can be made; NULL */
};

/* The run whose facts are the JSON text FACTS, with no record; it goes on, live. */
struct made *made_run(struct et_ctx *cx, const char *facts);
/* Its screen WHERE in ASCII, whose time is the run's. */
void made_open(struct made *m, enum tui_where where, int rows, int cols);
/* Frees the screen, and the run. */
void made_free(struct made **m);

/* A record at m->at; numbers are written {"name", value}. */
#define MADE_SAY(m, kind, its_rank, text, ...)                                         \
    made_say(m, kind, its_rank, text, (const struct et_log_entry[]){__VA_ARGS__},      \
             (int)(sizeof((const struct et_log_entry[]){__VA_ARGS__}) /                \
                   sizeof(struct et_log_entry)))
void made_say(struct made *m, enum et_record_kind kind, int rank, const char *text,
              const struct et_log_entry *entry, int n);
/* The state of the run is WORD from now on; a line of rank RANK; N batches of MS each,
 * with SAMPLES samples, whose loss is 1. */
void made_state(struct made *m, const char *word);
void made_line(struct made *m, int rank, enum et_log_level level, const char *text);
void made_batches(struct made *m, int n, double ms, int samples);

/* Presses KEYS ("c<enter>", tui_keys_next), and draws. */
void made_press(struct made *m, const char *keys);
/* What the screen shows, lines of text; good until the next call. */
const char *made_screen(struct made *m);

/* What a panel of Monitor is drawn from, its ranks gathered. */
struct tui_view made_view(struct made *m);
/* What PANEL draws in ROWS x COLS: lines; with ROLES, then those of its cells. Good
 * until the next call. */
typedef void made_panel(const struct tui_view *v, const struct tui_pane *p, bool focus);
const char *made_panel_text(struct made *m, made_panel *panel, int rows, int cols,
                            bool roles);

#endif
