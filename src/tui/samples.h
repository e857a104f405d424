/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h: the data of a recipe as they reach the model: pictures, masks in colours,
 * texts with what is to be guessed, numbers; how many there are of each class; and the
 * transforms, each of which can be left out while one watches. A view of Compose and of
 * Runs. What it shows is the answer of `etude data show --pictures`. */
#ifndef TUI_SAMPLES_H
#define TUI_SAMPLES_H

#include <jansson.h>

#include "tui/app.h"
#include "tui/job.h"

enum { TUI_SAMPLES_AT_ONCE = 20, TUI_SAMPLES_STEPS = 16 };

/* Starts JOB: "etude WORDS... RECIPE AFTER...", both ending with NULL. */
typedef et_status tui_samples_start(void *owner, struct tui_job *job,
                                    const char *const *words, const char *const *after);

struct tui_samples {
    struct tui_app *app;
    bool is_open;
    char name[64]; /* of the recipe or the run */
    tui_samples_start *start;
    void *owner; /* for START; borrowed */
    struct tui_job job;
    bool is_eval;
    int64_t epoch, from; /* that are shown, or asked for */
    int64_t first;       /* of these, on the screen */
    int64_t shown;       /* that the screen has room for */
    bool off[TUI_SAMPLES_STEPS];
    struct tui_list steps;
    json_t *all;       /* the answer; NULL: not yet, or a problem */
    char problem[200]; /* "" */
};

/* ---- samples.c ---- */

void tui_samples_open(struct tui_samples *s, struct tui_app *app, const char *name,
                      tui_samples_start *start, void *owner);
void tui_samples_close(struct tui_samples *s);
bool tui_samples_act(struct tui_samples *s, enum tui_action action);
bool tui_samples_tick(struct tui_samples *s);
const char *tui_samples_hint(const struct tui_samples *s, enum tui_action action);
enum tui_role tui_samples_message(const struct tui_samples *s, char *buf, size_t size);

/* ---- samples_draw.c ---- */

void tui_samples_draw(struct tui_samples *s, const struct tui_pane *p);

#endif
