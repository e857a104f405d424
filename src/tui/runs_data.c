/* SPDX-License-Identifier: Apache-2.0 */
/* runs_data.c: what the screen Runs knows of runs, and what it does to them. */
#include "config.h"

#include "tui/runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/callbacks/callbacks.h"

static const char FOLDER[] = "runs";

/* ---- the list ---- */

void
runs_choose(struct runs *r)
{
    struct eti_filter *filter = NULL;
    char selected[PATH_MAX];
    int before = r->rows.at;
    snprintf(selected, sizeof selected, "%s", runs_fact(runs_selected(r), "directory"));
    r->fault[0] = '\0';
    et_status status = eti_filter_new(r->app->cx, r->filter.text, &filter);
    if (status == ET_OK && !runs_is_busy(r)) /* (one that is still read may have it) */
        status = eti_runs_check(r->app->cx, filter, NULL, r->all);
    if (status != ET_OK)
        eti_filter_free(&filter);
    if (status == ET_OK) {
        snprintf(r->last_filter, sizeof r->last_filter, "%s", r->filter.text);
    } else { /* half a word is no reason to show nothing */
        snprintf(r->fault, sizeof r->fault, "%.159s",
                 et_error_get(r->app->cx)->message);
        et_error_clear(r->app->cx);
        if (eti_filter_new(r->app->cx, r->last_filter, &filter) != ET_OK) {
            et_error_clear(r->app->cx);
            return;
        }
    }
    json_decref(r->list);
    r->list = eti_runs_choose(filter, r->all);
    eti_filter_free(&filter);
    if (*r->sort) {
        json_t *sorted = eti_runs_sort(r->list, r->sort);
        json_decref(r->list);
        r->list = sorted;
    }
    for (size_t i = 0; i < json_array_size(r->list); i++)
        if (strcmp(runs_fact(json_array_get(r->list, i), "directory"), selected) == 0)
            r->rows.at = (int)i;
    if (r->rows.top > 0) /* the line under the cursor stays where it is */
        r->rows.top += r->rows.at - before;
    r->rows.n = (int)json_array_size(r->list);
    if (r->rows.at >= r->rows.n)
        r->rows.at = r->rows.n > 0 ? r->rows.n - 1 : 0;
}

static void find_bests(struct runs *r);

/* Takes the newest MOST (0: all). Could it? */
static bool
list(struct runs *r, int64_t most)
{
    json_t *all = NULL;
    if (eti_index_list(r->index, most, &all) != ET_OK)
        return false;
    r->of = eti_index_count(r->index) + (int64_t)json_array_size(r->guests);
    r->problem[0] = '\0';
    if (eti_index_problem(r->index))
        snprintf(r->problem, sizeof r->problem, "the list cannot be kept: %.160s",
                 eti_index_problem(r->index));
    json_decref(r->all);
    r->all = all;
    json_array_extend(r->all, r->guests);
    find_bests(r);
    runs_choose(r);
    return true;
}

void
runs_welcome(struct runs *r, const json_t *facts)
{
    json_t *one;
    size_t i;
    json_array_foreach(r->all, i, one)
    {
        if (strcmp(runs_fact(one, "directory"), runs_fact(facts, "directory")) == 0)
            return;
    }
    json_array_append(r->guests, (json_t *)facts);
    json_array_append(r->all, (json_t *)facts);
    r->of++;
    find_bests(r);
}

/* What could not be done is said, and done again at the next look. */
static void
give_up(struct runs *r)
{
    snprintf(r->problem, sizeof r->problem, "%.199s",
             et_error_get(r->app->cx)->message);
    et_error_clear(r->app->cx);
    r->is_looking = r->is_partial = false;
}

void
runs_read(struct runs *r)
{
    r->read = tui_now(r->app);
    r->is_looking = r->is_partial = false;
    if (eti_index_update(r->index, FOLDER, false) != ET_OK || !list(r, 0))
        give_up(r);
}

void
runs_begin(struct runs *r, bool again)
{
    const struct tui_app_config *config = &r->app->config;
    bool is_first = r->read == 0;
    bool was_looked_at = is_first && config->index && config->first == TUI_IN_runs;
    r->read = tui_now(r->app);
    r->is_looking = true;
    r->read_before = eti_index_get_work(r->index)->read;
    if (!was_looked_at && eti_index_look(r->index, FOLDER, again) != ET_OK) {
        give_up(r);
    } else if (is_first) {
        r->is_partial = true;
        r->page = ETI_INDEX_PAGE;
        if (!list(r, r->page))
            give_up(r);
    }
}

/* Shows the newest of those that were read, ten times a second; when all are, loads the
 * facts of the others. */
static bool
list_more(struct runs *r)
{
    static const double OFTEN = 0.1;
    enum { STEP = 64 };
    int64_t read = eti_index_get_work(r->index)->read - r->read_before;
    if (r->is_looking && tui_now(r->app) < r->read + OFTEN)
        return false;
    r->read = tui_now(r->app);
    if (r->is_looking)
        r->page = ETI_INDEX_PAGE + read;
    else
        r->page += STEP;
    if (!list(r, r->page))
        give_up(r);
    else if (!r->is_looking)
        r->is_partial = (int64_t)json_array_size(r->all) >= r->page;
    return true;
}

bool
runs_go_on(struct runs *r)
{
    enum { STEP = 16 };
    if (r->is_looking && eti_index_look_on(r->index, STEP, &r->is_looking) != ET_OK) {
        give_up(r);
        return true;
    }
    if (r->is_partial)
        return list_more(r);
    if (r->is_looking || !eti_index_has_changed(r->index))
        return false;
    if (!list(r, 0))
        give_up(r);
    return true;
}

/* ---- curves ---- */

static int64_t
ba_of(const json_t *facts)
{
    return json_integer_value(json_object_get(facts, "ba"));
}

static et_status
read_curve(struct runs *r, struct runs_curve *c, const json_t *facts)
{
    char path[PATH_MAX + 16];
    struct et_events *e;
    struct et_series_point *p;
    void *block;
    double started = json_number_value(json_object_get(facts, "started"));
    snprintf(path, sizeof path, "%s/events.log", c->directory);
    ET_TRY(et_alloc(r->app->cx, TUI_R_POINTS * sizeof *p, &block));
    p = block;
    c->n = 0;
    et_status status = et_events_open(r->app->cx, path, &e);
    if (status == ET_OK)
        status = et_events_fetch(e, c->metric, 0, INT64_MAX, TUI_R_POINTS, p, &c->n);
    et_events_close(&e);
    for (int i = 0; i < c->n; i++)
        c->point[i] = (struct tui_point){
            .x = (p[i].t - started) / 60,
            .min = p[i].value,
            .max = p[i].value,
            .last = p[i].value,
        };
    et_free(r->app->cx, p);
    return status;
}

const struct runs_curve *
runs_curve_of(struct runs *r, const json_t *facts, const char *metric)
{
    const char *directory = runs_fact(facts, "directory");
    for (int i = 0; i < TUI_R_CACHE; i++)
        if (strcmp(r->curve[i].directory, directory) == 0 &&
            strcmp(r->curve[i].metric, metric) == 0 && r->curve[i].ba == ba_of(facts))
            return &r->curve[i];
    struct runs_curve *c = &r->curve[r->next_curve++ % TUI_R_CACHE];
    snprintf(c->directory, sizeof c->directory, "%s", directory);
    snprintf(c->metric, sizeof c->metric, "%s", metric);
    c->ba = ba_of(facts);
    if (read_curve(r, c, facts) != ET_OK)
        et_error_clear(r->app->cx); /* the row says that it cannot be read */
    return c;
}

/* ---- time to the target ---- */

bool
runs_judge_one(struct runs *r)
{
    json_t *facts;
    size_t i;
    if (!*r->target)
        return false;
    json_array_foreach(r->list, i, facts)
    {
        const char *directory = runs_fact(facts, "directory");
        const json_t *j = json_object_get(r->judged, directory);
        if (j && json_integer_value(json_object_get(j, "ba")) == ba_of(facts))
            continue;
        struct eti_comparison k = {.cx = r->app->cx, .n = 1, .target_text = r->target};
        k.run[0].facts = facts;
        et_status status = eti_comparison_choose(&k);
        if (status == ET_OK)
            status = eti_comparison_judge(&k, 0);
        et_error_clear(r->app->cx);
        bool is_known = status == ET_OK && isfinite(k.run[0].to_target[ETI_TIME]);
        json_object_set_new(r->judged, directory,
                            json_pack("{s:I, s:o}", "ba", (json_int_t)ba_of(facts),
                                      "to",
                                      is_known ? json_real(k.run[0].to_target[ETI_TIME])
                                               : json_null()));
        return true;
    }
    return false;
}

/* ---- sparklines ---- */

int
runs_spark(const struct runs *r, const json_t *facts, double *value)
{
    const json_t *known = json_object_get(r->sparks, runs_fact(facts, "directory"));
    const json_t *v = json_object_get(known, "v"), *one;
    size_t i;
    json_array_foreach(v, i, one) value[i] =
        json_is_number(one) ? json_number_value(one) : NAN;
    return (int)json_array_size(v);
}

static json_t *
read_spark(struct runs *r, const char *directory)
{
    char path[PATH_MAX + 16];
    struct et_series_point point[RUNS_SPARK];
    struct et_events *e;
    int n = 0;
    json_t *v = json_array();
    snprintf(path, sizeof path, "%s/events.log", directory);
    et_status status = et_events_open(r->app->cx, path, &e);
    if (status == ET_OK)
        status =
            et_events_fetch(e, "loss/train/total", 0, INT64_MAX, RUNS_SPARK, point, &n);
    et_events_close(&e);
    et_error_clear(r->app->cx); /* the row says where a run cannot be read */
    for (int i = 0; status == ET_OK && i < n; i++)
        json_array_append_new(v, isfinite(point[i].value) ? json_real(point[i].value)
                                                          : json_null());
    return v;
}

/* (Of the rows on the screen: thousands of others are not read.) */
bool
runs_spark_one(struct runs *r)
{
    int end = r->rows.top + r->rows.page;
    for (int i = r->rows.top; i < end && i < (int)json_array_size(r->list); i++) {
        const json_t *facts = json_array_get(r->list, (size_t)i);
        const char *directory = runs_fact(facts, "directory");
        const json_t *known = json_object_get(r->sparks, directory);
        if (known && json_integer_value(json_object_get(known, "ba")) == ba_of(facts))
            continue;
        json_object_set_new(r->sparks, directory,
                            json_pack("{s:I, s:o}", "ba", (json_int_t)ba_of(facts), "v",
                                      read_spark(r, directory)));
        return true;
    }
    return false;
}

/* ---- the best of a recipe ---- */

/* What runs are compared by: recipe and metric, in BUF. The best value of FACTS;
 * NaN. */
static double
contender(const json_t *facts, char *buf, size_t size)
{
    const char *metric = "";
    const json_t *best = json_object_get(eti_run_metric(facts, &metric), "best");
    snprintf(buf, size, "%s\n%s", runs_fact(facts, "recipe"), metric);
    return json_is_number(best) ? json_number_value(best) : NAN;
}

static void
find_bests(struct runs *r)
{
    char key[PATH_MAX + ET_METRIC_NAME];
    json_t *facts;
    size_t i;
    json_object_clear(r->bests);
    json_array_foreach(r->all, i, facts)
    {
        double value = contender(facts, key, sizeof key);
        const json_t *known = json_object_get(r->bests, key);
        double best = json_number_value(json_object_get(known, "best"));
        int n = (int)json_integer_value(json_object_get(known, "n"));
        if (isnan(value))
            continue;
        bool less = eti_less_is_better(strchr(key, '\n') + 1);
        if (n == 0 || (less ? value < best : value > best))
            best = value;
        json_object_set_new(r->bests, key,
                            json_pack("{s:i, s:f}", "n", n + 1, "best", best));
    }
}

bool
runs_is_best(const struct runs *r, const json_t *facts)
{
    char key[PATH_MAX + ET_METRIC_NAME];
    double value = contender(facts, key, sizeof key);
    const json_t *known = json_object_get(r->bests, key);
    return json_integer_value(json_object_get(known, "n")) > 1 &&
           value == json_number_value(json_object_get(known, "best"));
}

/* ---- the comparison ---- */

void
runs_contest(struct runs *r)
{
    struct eti_comparison *k = &r->comparison;
    enum eti_figure by = k->by;
    *k = (struct eti_comparison){
        .cx = r->app->cx, .by = by, .price = r->app->config.price};
    k->target_text = *r->target ? r->target : NULL;
    for (size_t i = 0; i < json_array_size(r->rivals) && k->n < ETI_COMPARED_RUNS; i++)
        k->run[k->n++].facts = json_array_get(r->rivals, i);
    if (eti_comparison_choose(k) != ET_OK)
        tui_say_error(r->app);
    if (*r->metric && !k->target_text) {
        snprintf(k->metric, sizeof k->metric, "%s", r->metric);
        k->less = eti_less_is_better(k->metric);
    }
    for (int i = 0; i < k->n; i++)
        if (eti_comparison_judge(k, i) != ET_OK)
            et_error_clear(r->app->cx);
    eti_comparison_front(k);
    json_decref(r->differences);
    r->differences = eti_comparison_differences(k);
}

bool
runs_compare(struct runs *r)
{
    json_t *facts;
    size_t i;
    json_decref(r->rivals);
    r->rivals = json_array();
    json_array_foreach(r->all, i, facts) if (runs_is_marked(r, facts))
        json_array_append(r->rivals, facts);
    if (json_array_size(r->rivals) < 2) {
        tui_say(r->app, TUI_WARN, "! mark two or more runs with space first");
        return false;
    }
    r->keys = (struct tui_list){0};
    r->first = 0;
    r->metric[0] = '\0';
    runs_contest(r);
    return true;
}

/* ---- the trash ---- */

/* "a/b/run" -> "a/b/.trash/run". False: it cannot be there, and errno says why. */
static bool
trash_path(const char *directory, char out[PATH_MAX], bool make)
{
    const char *slash = strrchr(directory, '/');
    char folder[PATH_MAX];
    errno = ENAMETOOLONG;
    if (!slash)
        return false;
    int n = snprintf(folder, sizeof folder, "%.*s/.trash", (int)(slash - directory),
                     directory);
    if (n < 0 || n >= (int)sizeof folder)
        return false;
    if (make && mkdir(folder, 0700) != 0 && errno != EEXIST)
        return false;
    n = snprintf(out, PATH_MAX, "%.*s/.trash%s", (int)(slash - directory), directory,
                 slash);
    if (n < 0 || n >= PATH_MAX)
        return false;
    errno = EEXIST;
    return access(out, F_OK) != 0;
}

void
runs_trash(struct runs *r)
{
    json_t *facts = runs_selected(r);
    const char *directory = runs_fact(facts, "directory");
    char to[PATH_MAX];
    if (!facts)
        return;
    if (eti_facts_is_alive(facts)) {
        tui_say(r->app, TUI_WARN, "! %s is going on: stop it first",
                runs_fact(facts, "name"));
    } else if (!trash_path(directory, to, true) || rename(directory, to) != 0) {
        tui_say(r->app, TUI_BAD, "x %s cannot be moved: %s", directory,
                strerror(errno));
    } else {
        tui_say(r->app, TUI_TEXT, "%s is in %s; u brings it back",
                runs_fact(facts, "name"), to);
        json_object_del(r->marks, directory);
        snprintf(r->from, sizeof r->from, "%s", directory);
        snprintf(r->to, sizeof r->to, "%s", to);
        runs_read(r);
    }
}

void
runs_restore(struct runs *r)
{
    if (!*r->to) {
        tui_say(r->app, TUI_TEXT, "nothing was thrown away");
    } else if (access(r->from, F_OK) == 0 || rename(r->to, r->from) != 0) {
        tui_say(r->app, TUI_BAD, "x it cannot be brought back to %s", r->from);
    } else {
        tui_say(r->app, TUI_GOOD, "%s is back", r->from);
        r->to[0] = '\0';
        runs_read(r);
    }
}

/* ---- tags ---- */

static void
tagged(struct tui_app *app, void *data, int id, const char *text)
{
    struct runs *r = data;
    const char *directory = runs_fact(runs_selected(r), "directory");
    int folder = -1;
    (void)id;
    et_status status = eti_open_folder(app->cx, directory, &folder);
    if (status == ET_OK)
        status = eti_replace_at(app->cx, folder, "tags", text, strlen(text));
    if (folder >= 0)
        eti_close(app->cx, folder);
    if (status != ET_OK)
        tui_say_error(app);
    else
        tui_say(app, TUI_TEXT, *text ? "tags: %s" : "no tags", text);
    runs_read(r);
}

void
runs_tag(struct runs *r)
{
    json_t *facts = runs_selected(r);
    if (!facts)
        return;
    tui_popup_prompt(&r->app->popup, r->app->cx, "tags, with blanks between",
                     runs_fact(facts, "tags"));
    r->app->popup.done = tagged;
    r->app->popup.data = r;
}

/* ---- export ---- */

static void
export_run(struct runs *r)
{
    const json_t *facts = runs_selected(r);
    char file[80];
    if (!facts)
        return;
    snprintf(file, sizeof file, "%.70s.svg", runs_fact(facts, "name"));
    const char *argument[] = {
        "export", runs_fact(facts, "directory"), "--to", "svg", "-o", file, NULL};
    r->job_file[0] = '\0';
    snprintf(r->job_says, sizeof r->job_says, "its charts are in %.100s", file);
    if (tui_job_start(&r->job, r->app->cx, argument, NULL, 0) != ET_OK)
        tui_say_error(r->app);
}

static void
export_contest(struct runs *r)
{
    const char *argument[ETI_COMPARED_RUNS + 8] = {"compare", "--json"};
    int n = 2;
    for (int i = 0; i < r->comparison.n; i++)
        argument[n++] = runs_fact(r->comparison.run[i].facts, "directory");
    if (*r->target) {
        argument[n++] = "--target";
        argument[n++] = r->target;
    }
    argument[n++] = "--pareto";
    argument[n++] = eti_figure_names[r->comparison.by];
    snprintf(r->job_file, sizeof r->job_file, "compare.json");
    snprintf(r->job_says, sizeof r->job_says, "it is in compare.json");
    if (tui_job_start(&r->job, r->app->cx, argument, NULL, 0) != ET_OK)
        tui_say_error(r->app);
}

void
runs_export(struct runs *r)
{
    if (r->compares)
        export_contest(r);
    else
        export_run(r);
}
