/* SPDX-License-Identifier: Apache-2.0 */
/* results.h: what a run's model made of each sample, as `etude predict` wrote it: which
 * classes are taken for which, numbers of each class, and the worst mistakes with their
 * pictures or masks; passages of tokens by their losses; values; and the same samples
 * at each evaluation, where the callback prediction_tracker kept them. A view of
 * Runs. */
#ifndef TUI_RESULTS_H
#define TUI_RESULTS_H

#include <limits.h>

#include "core/library/predictions.h"
#include "core/library/tracked.h"
#include "tui/app.h"
#include "tui/job.h"

enum tui_results_panel {
    TUI_RESULTS_CONFUSION,
    TUI_RESULTS_CLASSES,
    TUI_RESULTS_WORST,
    TUI_RESULTS_TRACKED,
    TUI_RESULTS_PANELS
};

enum { TUI_RESULTS_DATA = 16, TUI_RESULTS_WORST_MOST = 64 };

struct tui_results {
    struct tui_app *app;
    bool is_open;
    char directory[PATH_MAX], name[64]; /* of the run */
    char data[TUI_RESULTS_DATA][64];    /* labels of what was predicted */
    int n_data, at_data;
    struct eti_predictions all; /* n 0: nothing was read */
    struct eti_sheet sheet;     /* n 0: no pictures */
    int64_t *count;             /* [classes][classes]: label, class */
    char problem[200];          /* why nothing was read; "" */
    enum tui_results_panel panel;
    int label, class;        /* of the confusion that is selected */
    int first;               /* columns of it that lie to the left of the screen */
    struct tui_list rows;    /* of the confusion */
    struct tui_list classes; /* of the table */
    struct tui_list worst;   /* of the mistakes */
    bool of_pair;            /* those of LABEL taken for CLASS alone */
    int64_t mistake[TUI_RESULTS_WORST_MOST];
    int n_mistakes;
    json_t *track;             /* the same samples at each evaluation; NULL: not kept */
    struct eti_sheet pictures; /* of these samples */
    struct tui_list tracked;   /* of these samples */
    struct tui_job job;        /* etude predict, while it works */
};

/* ---- results.c ---- */

/* Shows what was predicted by the run of FACTS. */
void tui_results_open(struct tui_results *r, struct tui_app *app, const json_t *facts);
void tui_results_close(struct tui_results *r);
bool tui_results_act(struct tui_results *r, enum tui_action action);
bool tui_results_tick(struct tui_results *r);
const char *tui_results_hint(const struct tui_results *r, enum tui_action action);
enum tui_role tui_results_message(const struct tui_results *r, char *buf, size_t size);
/* Has each sample, or each of its pixels, a class? */
bool tui_results_has_classes(const struct tui_results *r);
/* So many samples, or pixels, of LABEL were taken for CLASS; of LABEL there are so
 * many. */
int64_t tui_results_count(const struct tui_results *r, int label, int class);
int64_t tui_results_samples(const struct tui_results *r, int label);

/* ---- results_draw.c ---- */

void tui_results_draw(struct tui_results *r, const struct tui_pane *p);

/* ---- results_worst.c ---- */

/* The worst samples in all of P: mistakes as pictures, passages, values. */
void tui_results_draw_worst(struct tui_results *r, const struct tui_pane *p);

/* ---- results_track.c ---- */

/* The same samples at each evaluation, in all of P. */
void tui_results_draw_tracked(struct tui_results *r, const struct tui_pane *p);

#endif
