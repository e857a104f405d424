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

/* The labels of predictions/LABEL.csv. */
static void
list_data(struct tui_results *r)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/predictions", r->directory);
    DIR *folder = opendir(path);
    r->n_data = 0;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        const size_t n = strlen(e->d_name);
        if (n < 5 || n - 4 >= sizeof r->data[0] || *e->d_name == '.' ||
            strcmp(e->d_name + n - 4, ".csv") != 0 || r->n_data == TUI_RESULTS_DATA)
            continue;
        snprintf(r->data[r->n_data++], sizeof r->data[0], "%.*s", (int)(n - 4),
                 e->d_name);
    }
    if (folder)
        closedir(folder);
    qsort(r->data, (size_t)r->n_data, sizeof r->data[0], by_text);
}

int64_t
tui_results_count(const struct tui_results *r, int label, int class)
{
    return r->count ? r->count[(int64_t)label * r->all.classes + class] : 0;
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
    et_free(r->app->cx, r->count);
    r->count = NULL;
}

static et_status
count_all(struct tui_results *r)
{
    const int64_t c = r->all.classes;
    void *block;
    ET_TRY(et_alloc(r->app->cx, (size_t)(c * c) * sizeof *r->count, &block));
    r->count = block;
    memset(r->count, 0, (size_t)(c * c) * sizeof *r->count);
    for (int64_t i = 0; i < r->all.n; i++)
        if (r->all.label[i] >= 0 && r->all.label[i] < c)
            r->count[r->all.label[i] * c + r->all.class[i]]++;
    /* What is mistaken most often is what one came for. */
    for (int64_t i = 0; i < c * c; i++)
        if (i / c != i % c &&
            (r->label == r->class || r->count[i] > r->count[r->label * c + r->class])) {
            r->label = (int)(i / c);
            r->class = (int)(i % c);
        }
    return ET_OK;
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
    snprintf(path, sizeof path, "%s/predictions/%s.csv", r->directory, label);
    et_status status = eti_predictions_read(cx, path, &r->all);
    if (status == ET_OK)
        status = count_all(r);
    if (status != ET_OK) {
        snprintf(r->problem, sizeof r->problem, "%.199s", et_error_get(cx)->message);
        et_error_clear(cx);
        return;
    }
    snprintf(path, sizeof path, "%s/predictions/%s.ppm", r->directory, label);
    if (eti_sheet_read(cx, path, &r->sheet) != ET_OK)
        et_error_clear(cx); /* mistakes are listed without pictures */
    find_mistakes(r);
}

void
tui_results_open(struct tui_results *r, struct tui_app *app, const json_t *facts)
{
    char fact[ETI_FACT_TEXT];
    const char *name = eti_facts_get(facts, "name", fact);
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    *r = (struct tui_results){.app = app, .is_open = true};
    r->all.cx = r->sheet.cx = app->cx;
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
move(struct tui_results *r, enum tui_action action)
{
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
        r->panel = (r->panel + 1) % TUI_RESULTS_PANELS;
        return true;
    case TUI_DO_results_only:
        r->of_pair = !r->of_pair && r->all.n > 0;
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
        return has_any ? NULL : "";
    case TUI_DO_results_only:
        return !has_any ? "" : r->of_pair ? "all mistakes" : NULL;
    case TUI_DO_results_data:
        return r->n_data > 1 ? NULL : "";
    case TUI_DO_results_predict:
        return has_any ? "again" : NULL;
    default:
        return NULL;
    }
}

enum tui_role
tui_results_message(const struct tui_results *r, char *buf, size_t size)
{
    buf[0] = '\0';
    if (*r->problem) {
        snprintf(buf, size, "x %s", r->problem);
        return TUI_BAD;
    }
    if (r->all.n == 0)
        return TUI_TEXT;
    const int64_t n = tui_results_count(r, r->label, r->class);
    const int64_t of = tui_results_samples(r, r->label);
    snprintf(buf, size, "%lld of %lld samples of class %d are taken for %d (%.1f%%)",
             (long long)n, (long long)of, r->label, r->class,
             of > 0 ? 100.0 * (double)n / (double)of : 0);
    return TUI_TEXT;
}
