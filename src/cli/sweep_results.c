/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_results.c: what the runs of a sweep came to, and in what order. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sweep.h"
#include "core/callbacks/callbacks.h"
#include "core/library/facts.h"
#include "core/library/list.h"

json_t *
sweep_runs(const struct sweep_view *s)
{
    return json_object_get(s->plan, "runs");
}

const char *
sweep_run_name(const json_t *run)
{
    return json_string_value(json_object_get(run, "name"));
}

int64_t
sweep_run_rung(const json_t *run)
{
    return json_integer_value(json_object_get(run, "rung"));
}

bool
sweep_run_is_out(const json_t *run)
{
    return json_is_true(json_object_get(run, "out"));
}

const char *
sweep_run_directory(const struct sweep_view *s, const json_t *run, char buf[PATH_MAX])
{
    snprintf(buf, PATH_MAX, "%s/%s", s->folder, sweep_run_name(run));
    return buf;
}

/* What is known of a run; NULL: it has not begun. The caller's. */
static json_t *
facts_of(const struct sweep_view *s, const json_t *run)
{
    char directory[PATH_MAX];
    json_t *facts = NULL;
    if (eti_facts_read(s->c->cx, sweep_run_directory(s, run, directory), &facts) !=
        ET_OK)
        et_error_clear(s->c->cx);
    return facts;
}

const char *
sweep_run_set(const json_t *run, char *buf, size_t size)
{
    json_t *word;
    size_t i, used = 0;
    buf[0] = '\0';
    json_array_foreach(json_object_get(run, "set"), i, word)
    {
        int n = snprintf(buf + used, size - used, "%s%s", i > 0 ? " " : "",
                         json_string_value(word));
        used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
    }
    return buf;
}

static const char *
state_of(const json_t *facts)
{
    const char *state = json_string_value(json_object_get(facts, "state"));
    return state ? state : "-";
}

/* ---- how good a run is ---- */

/* Its best value; NaN without one. *NAME: the metric. */
static double
judge(const struct sweep_view *s, const json_t *facts, const char **name)
{
    const char *metric = json_string_value(json_object_get(s->plan, "metric"));
    const json_t *entry = metric ? eti_facts_metric(facts, metric, strlen(metric), name)
                                 : eti_run_metric(facts, name);
    const json_t *best = entry ? json_object_get(entry, "best") : NULL;
    return json_is_number(best) ? json_number_value(best) : NAN;
}

double
sweep_run_best(const struct sweep_view *s, const json_t *run,
               char metric[ET_METRIC_NAME])
{
    const char *name = NULL;
    json_t *facts = facts_of(s, run);
    double best = facts ? judge(s, facts, &name) : NAN;
    snprintf(metric, ET_METRIC_NAME, "%s", name ? name : "");
    json_decref(facts);
    return best;
}

static bool
has_failed(const json_t *run)
{
    return json_is_true(json_object_get(run, "failed"));
}

/* Those that failed come last, whatever they once had, and before them those without a
 * value; else in the plan's order. */
static int
by_best(const void *x, const void *y)
{
    const struct sweep_ranked *a = x, *b = y;
    if (has_failed(a->run) != has_failed(b->run))
        return has_failed(a->run) - has_failed(b->run);
    if (isnan(a->best) != isnan(b->best))
        return isnan(a->best) - isnan(b->best);
    if (a->best == b->best || isnan(a->best))
        return strcmp(sweep_run_name(a->run), sweep_run_name(b->run));
    return (a->best < b->best) == a->less ? -1 : 1;
}

struct sweep_ranked *
sweep_rank(const struct sweep_view *s, bool all, int *n)
{
    json_t *run;
    size_t i;
    struct sweep_ranked *list = calloc(json_array_size(sweep_runs(s)), sizeof *list);
    *n = 0;
    json_array_foreach(sweep_runs(s), i, run)
    {
        if (!list || (sweep_run_is_out(run) && !all))
            continue;
        const char *metric = NULL;
        struct sweep_ranked *r = &list[(*n)++];
        *r = (struct sweep_ranked){.run = run, .facts = facts_of(s, run), .best = NAN};
        if (r->facts)
            r->best = judge(s, r->facts, &metric);
        snprintf(r->metric, sizeof r->metric, "%s", metric ? metric : "");
        r->less = metric && eti_less_is_better(metric);
    }
    if (list)
        qsort(list, (size_t)*n, sizeof *list, by_best);
    return list;
}

void
sweep_free_ranking(struct sweep_ranked *list, int n)
{
    for (int i = 0; list && i < n; i++)
        json_decref(list[i].facts);
    free(list);
}

/* ---- results ---- */

static json_t *
as_json(const struct sweep_view *s, const struct sweep_ranked *list, int n)
{
    json_t *runs = json_array();
    char directory[PATH_MAX];
    for (int i = 0; i < n; i++)
        json_array_append_new(
            runs,
            json_pack("{s:s, s:o, s:s, s:O, s:o, s:o}", "name",
                      sweep_run_name(list[i].run), "directory",
                      cli_json_text(sweep_run_directory(s, list[i].run, directory)),
                      "state", list[i].facts ? state_of(list[i].facts) : "-", "set",
                      json_object_get(list[i].run, "set"), "best",
                      isfinite(list[i].best) ? json_real(list[i].best) : json_null(),
                      "out", json_boolean(sweep_run_is_out(list[i].run))));
    return json_pack("{s:O, s:s?, s:o}", "sweep", json_object_get(s->plan, "sweep"),
                     "metric", n > 0 && list[0].metric[0] ? list[0].metric : NULL,
                     "runs", runs);
}

/* What RUN has KEY set to. */
static const char *
value_of(const json_t *run, const char *key)
{
    json_t *word;
    size_t i, n = strlen(key);
    json_array_foreach(json_object_get(run, "set"), i, word)
    {
        const char *text = json_string_value(word);
        if (strncmp(text, key, n) == 0 && text[n] == '=')
            return text + n + 1;
    }
    return "-";
}

static void
print_table(const struct sweep_view *s, const struct sweep_ranked *list, int n)
{
    const json_t *keys = json_object_get(s->plan, "keys");
    char text[ET_VISIBLE_MAX + 1];
    json_t *key;
    size_t k;
    int name = (int)strlen("run");
    for (int i = 0; i < n; i++)
        name = (int)strlen(sweep_run_name(list[i].run)) > name
                   ? (int)strlen(sweep_run_name(list[i].run))
                   : name;
    const char *metric = n > 0 ? list[0].metric : "";
    const char *leaf = strrchr(metric, '/');
    et_print(stdout, "%-*s  %-12.30s  %8s  %-10s", name, "run",
             *metric ? leaf ? leaf + 1 : metric : "best", "seconds", "state");
    json_array_foreach(keys, k, key)
        et_print(stdout, "  %-16s", json_string_value(key));
    putchar('\n');
    for (int i = 0; i < n; i++) {
        const json_t *train = json_object_get(list[i].facts, "train_seconds");
        char best[32] = "-", seconds[32] = "-";
        if (isfinite(list[i].best))
            snprintf(best, sizeof best, "%.6g", list[i].best);
        if (json_is_number(train))
            snprintf(seconds, sizeof seconds, "%.1f", json_number_value(train));
        const char *state = list[i].facts ? state_of(list[i].facts) : "-";
        if (sweep_run_is_out(list[i].run) && !has_failed(list[i].run) &&
            sweep_run_rung(list[i].run) > 0)
            state = "left";
        et_print(stdout, "%-*s  %-12s  %8s  %-10s", name, sweep_run_name(list[i].run),
                 best, seconds, state);
        json_array_foreach(keys, k, key)
        {
            const char *value = value_of(list[i].run, json_string_value(key));
            et_print(stdout, "  %-16s",
                     et_visible(text, sizeof text, value, strlen(value)));
        }
        putchar('\n');
    }
}

void
sweep_print(const struct sweep_view *s, const struct sweep_ranked *list, int n)
{
    if (s->c->opt.json)
        cli_print_json(as_json(s, list, n));
    else
        print_table(s, list, n);
}
