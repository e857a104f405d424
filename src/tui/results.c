/* SPDX-License-Identifier: Apache-2.0 */
/* results.c: what keys do among the results of a run: see results.h. */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/facts.h"
#include "tui/results.h"

/* ---- reading ---- */

static int
by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* LABEL of a file called LABEL and an ending; false: it has another. */
static bool
take_label(const char *file, char label[64])
{
    static const char *const endings[] = {".csv", ".track.jsonl"};
    const size_t n = strlen(file);
    for (int i = 0; i < 2; i++) {
        const size_t end = strlen(endings[i]);
        if (n > end && n - end < 64 && strcmp(file + n - end, endings[i]) == 0) {
            snprintf(label, 64, "%.*s", (int)(n - end), file);
            return true;
        }
    }
    return false;
}

/* The labels of predictions/LABEL.csv and LABEL.track.jsonl. */
static void
list_data(struct tui_results *r)
{
    char path[PATH_MAX + 16], label[64];
    snprintf(path, sizeof path, "%s/predictions", r->directory);
    DIR *folder = opendir(path);
    r->n_data = 0;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        bool known = *e->d_name == '.' || !take_label(e->d_name, label);
        for (int i = 0; i < r->n_data && !known; i++)
            known = strcmp(r->data[i], label) == 0;
        if (!known && r->n_data < TUI_RESULTS_DATA)
            snprintf(r->data[r->n_data++], sizeof r->data[0], "%s", label);
    }
    if (folder)
        closedir(folder);
    qsort(r->data, (size_t)r->n_data, sizeof r->data[0], by_text);
}

int64_t
tui_results_count(const struct tui_results *r, int label, int class)
{
    const int64_t *n = r->all.confusion ? r->all.confusion : r->count;
    return n ? n[(int64_t)label * r->all.classes + class] : 0;
}

bool
tui_results_has_classes(const struct tui_results *r)
{
    return r->all.answer == ETI_ANSWER_CLASS || r->all.answer == ETI_ANSWER_MASK;
}

int64_t
tui_results_samples(const struct tui_results *r, int label)
{
    int64_t sum = 0;
    for (int k = 0; k < r->all.classes; k++)
        sum += tui_results_count(r, label, k);
    return sum;
}

/* The worst mistakes: all, or those of the pair that is selected. */
static void
find_mistakes(struct tui_results *r)
{
    r->worst = (struct tui_list){0};
    r->n_mistakes =
        (int)eti_predictions_worst(&r->all, r->of_pair ? r->label : -1, r->class,
                                   r->mistake, TUI_RESULTS_WORST_MOST);
}

static void
release(struct tui_results *r)
{
    eti_predictions_release(&r->all);
    eti_sheet_release(&r->sheet);
    eti_sheet_release(&r->pictures);
    json_decref(r->track);
    r->track = NULL;
    et_free(r->app->cx, r->count);
    r->count = NULL;
}

/* What is mistaken most often is what one came for. */
static void
select_worst(struct tui_results *r)
{
    const int c = r->all.classes;
    for (int i = 0; i < c * c; i++) {
        const int label = i / c, class = i % c;
        if (label != class &&
            (r->label == r->class || tui_results_count(r, label, class) >
                                         tui_results_count(r, r->label, r->class))) {
            r->label = label;
            r->class = class;
        }
    }
}

static et_status
count_all(struct tui_results *r)
{
    const int64_t c = r->all.classes;
    void *block;
    if (r->all.answer != ETI_ANSWER_CLASS)
        return ET_OK;
    ET_TRY(et_alloc(r->app->cx, (size_t)(c * c) * sizeof *r->count, &block));
    r->count = block;
    memset(r->count, 0, (size_t)(c * c) * sizeof *r->count);
    for (int64_t i = 0; i < r->all.n; i++)
        if (r->all.label[i] >= 0 && r->all.label[i] < c)
            r->count[r->all.label[i] * c + r->all.class[i]]++;
    return ET_OK;
}

/* What the callback prediction_tracker kept of data LABEL. */
static void
load_tracked(struct tui_results *r, const char *label)
{
    char path[PATH_MAX + 96];
    snprintf(path, sizeof path, "%s/predictions/%s.track.jsonl", r->directory, label);
    r->track = eti_tracked_read(path);
    r->tracked = (struct tui_list){0};
    snprintf(path, sizeof path, "%s/predictions/%s.track.ppm", r->directory, label);
    if (eti_sheet_read(r->app->cx, path, &r->pictures) != ET_OK)
        et_error_clear(r->app->cx);
}

static void
load(struct tui_results *r)
{
    struct et_ctx *cx = r->app->cx;
    char path[PATH_MAX + 96];
    release(r);
    r->problem[0] = '\0';
    r->label = r->class = r->first = 0;
    r->of_pair = false;
    r->rows = r->classes = (struct tui_list){0};
    if (r->n_data == 0)
        return;
    const char *label = r->data[r->at_data];
    load_tracked(r, label);
    snprintf(path, sizeof path, "%s/predictions/%s.csv", r->directory, label);
    et_status status = eti_predictions_read(cx, path, &r->all);
    if (status == ET_OK)
        status = count_all(r);
    if (status == ET_ENOENT && r->track) { /* predicting has not been asked for */
        et_error_clear(cx);
        r->panel = TUI_RESULTS_TRACKED;
        return;
    }
    if (status != ET_OK) {
        snprintf(r->problem, sizeof r->problem, "%.199s", et_error_get(cx)->message);
        et_error_clear(cx);
        return;
    }
    snprintf(path, sizeof path, "%s/predictions/%s.ppm", r->directory, label);
    if (eti_sheet_read(cx, path, &r->sheet) != ET_OK)
        et_error_clear(cx); /* mistakes are listed without pictures */
    if (tui_results_has_classes(r))
        select_worst(r);
    else
        r->panel = TUI_RESULTS_WORST;
    find_mistakes(r);
}

void
tui_results_open(struct tui_results *r, struct tui_app *app, const json_t *facts)
{
    char fact[ETI_FACT_TEXT];
    const char *name = eti_facts_get(facts, "name", fact);
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    *r = (struct tui_results){.app = app, .is_open = true};
    r->all.cx = r->sheet.cx = r->pictures.cx = app->cx;
    tui_job_stop(&r->job);
    snprintf(r->name, sizeof r->name, "%.63s", name ? name : "-");
    snprintf(r->directory, sizeof r->directory, "%s", directory ? directory : "");
    list_data(r);
    load(r);
}

void
tui_results_close(struct tui_results *r)
{
    if (!r->is_open)
        return;
    tui_job_stop(&r->job);
    release(r);
    r->is_open = false;
}

/* ---- predicting ---- */

static void
predict(struct tui_results *r)
{
    const char *const argument[] = {"predict", r->directory, NULL};
    if (tui_job_start(&r->job, r->app->cx, argument, NULL, 0) != ET_OK)
        tui_say_error(r->app);
    else
        tui_say(r->app, TUI_TEXT, "%s predicts its eval_data...", r->name);
}

bool
tui_results_tick(struct tui_results *r)
{
    if (!tui_job_poll(&r->job, r->app->config.is_dump ? 60 : 0))
        return false;
    if (r->job.code != 0) {
        tui_say(r->app, TUI_BAD, "x %.200s", r->job.error);
        return true;
    }
    tui_say(r->app, TUI_GOOD, "%s has predicted its eval_data", r->name);
    list_data(r);
    r->at_data = r->at_data < r->n_data ? r->at_data : 0;
    load(r);
    return true;
}

/* ---- keys ---- */

static bool
move_in_confusion(struct tui_results *r, enum tui_action action)
{
    const int last = r->all.classes - 1;
    switch (action) {
    case TUI_DO_everywhere_left:
        r->class -= r->class > 0;
        return true;
    case TUI_DO_everywhere_right:
        r->class += r->class < last;
        return true;
    default:
        break;
    }
    r->rows.at = r->label;
    r->rows.n = r->all.classes;
    if (!tui_list_act(&r->rows, action))
        return false;
    r->label = r->rows.at;
    return true;
}

static bool
has_panel(const struct tui_results *r, enum tui_results_panel panel)
{
    return panel == TUI_RESULTS_TRACKED ? r->track != NULL || r->all.n == 0
           : panel == TUI_RESULTS_WORST ? r->all.n > 0
                                        : r->all.n > 0 && tui_results_has_classes(r);
}

static bool
move(struct tui_results *r, enum tui_action action)
{
    if (r->panel == TUI_RESULTS_TRACKED)
        return tui_list_act(&r->tracked, action);
    if (r->all.n == 0)
        return false;
    switch (r->panel) {
    case TUI_RESULTS_CONFUSION:
        return move_in_confusion(r, action);
    case TUI_RESULTS_CLASSES:
        if (!tui_list_act(&r->classes, action))
            return false;
        r->label = r->class = r->classes.at;
        return true;
    default:
        if (action == TUI_DO_everywhere_left || action == TUI_DO_everywhere_right)
            action = action == TUI_DO_everywhere_left ? TUI_DO_everywhere_up
                                                      : TUI_DO_everywhere_down;
        return tui_list_act(&r->worst, action);
    }
}

bool
tui_results_act(struct tui_results *r, enum tui_action action)
{
    if (move(r, action))
        return true;
    switch (action) {
    case TUI_DO_results_panel:
        do
            r->panel = (r->panel + 1) % TUI_RESULTS_PANELS;
        while (!has_panel(r, r->panel));
        return true;
    case TUI_DO_results_only:
        r->of_pair = !r->of_pair && r->all.n > 0 && r->all.answer == ETI_ANSWER_CLASS;
        find_mistakes(r);
        r->panel = TUI_RESULTS_WORST;
        return true;
    case TUI_DO_results_data:
        r->at_data = r->n_data > 0 ? (r->at_data + 1) % r->n_data : 0;
        load(r);
        return true;
    case TUI_DO_results_predict:
        predict(r);
        return true;
    case TUI_DO_results_back:
    case TUI_DO_everywhere_close:
        if (r->of_pair) {
            r->of_pair = false;
            find_mistakes(r);
        } else {
            tui_results_close(r);
        }
        return true;
    default:
        return false;
    }
}

const char *
tui_results_hint(const struct tui_results *r, enum tui_action action)
{
    const bool has_any = r->all.n > 0;
    switch (action) {
    case TUI_DO_results_panel:
        return has_any && (tui_results_has_classes(r) || r->track) ? NULL : "";
    case TUI_DO_results_only:
        return !has_any || r->all.answer != ETI_ANSWER_CLASS ? ""
               : r->of_pair                                  ? "all mistakes"
                                                             : NULL;
    case TUI_DO_results_data:
        return r->n_data > 1 ? NULL : "";
    case TUI_DO_results_predict:
        return has_any ? "again" : NULL;
    default:
        return NULL;
    }
}

/* The mistake that is selected, whose names a tile may cut. */
static void
put_selected(const struct tui_results *r, char *buf, size_t size)
{
    const struct eti_predictions *all = &r->all;
    const int64_t at = r->mistake[r->worst.at];
    char label[64], class[64];
    int n = snprintf(buf, size, "sample %lld: loss %.4g", (long long)at,
                     (double)all->loss[at]);
    if (all->answer == ETI_ANSWER_CLASS && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, ", taken for %s, is %s",
                 eti_predictions_name(all, all->class[at], class, sizeof class),
                 eti_predictions_name(all, all->label[at], label, sizeof label));
}

enum tui_role
tui_results_message(const struct tui_results *r, char *buf, size_t size)
{
    buf[0] = '\0';
    if (*r->problem) {
        snprintf(buf, size, "x %s", r->problem);
        return TUI_BAD;
    }
    if (r->all.n == 0 || r->panel == TUI_RESULTS_TRACKED)
        return TUI_TEXT;
    if (!tui_results_has_classes(r)) {
        const int64_t at = r->worst.at < r->n_mistakes ? r->mistake[r->worst.at] : 0;
        snprintf(buf, size, "sample %lld: loss %.4g", (long long)at,
                 (double)r->all.loss[at]);
        return TUI_TEXT;
    }
    if (r->panel == TUI_RESULTS_WORST && r->worst.at < r->n_mistakes) {
        put_selected(r, buf, size);
        return TUI_TEXT;
    }
    char label[64], class[64];
    const int64_t n = tui_results_count(r, r->label, r->class);
    const int64_t of = tui_results_samples(r, r->label);
    snprintf(buf, size, "%lld of %lld %s of class %s are taken for %s (%.1f%%)",
             (long long)n, (long long)of,
             r->all.answer == ETI_ANSWER_MASK ? "pixels" : "samples",
             eti_predictions_name(&r->all, r->label, label, sizeof label),
             eti_predictions_name(&r->all, r->class, class, sizeof class),
             of > 0 ? 100.0 * (double)n / (double)of : 0);
    return TUI_TEXT;
}
