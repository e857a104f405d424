/* runs.c: `etude runs`: the list of runs, filtered and sorted. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "core/base/seams.h"
#include "core/callbacks/callbacks.h"
#include "core/loggers/progress.h"
#include "core/run/facts.h"
#include "core/run/filter.h"

/* ---- which ---- */

struct subject {
    const json_t *facts;
    char text[ETI_FACT_TEXT];
};

/* Words match what a person sees of a run. */
static bool
has_word(void *data, const char *word)
{
    static const char *const keys[] = {"name",  "state",      "recipe",
                                       "model", "train_data", "directory"};
    const struct subject *s = data;
    char text[ETI_FACT_TEXT];
    size_t i;
    json_t *v;
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = eti_facts_get(s->facts, keys[i], text);
        if (value && strcasestr(value, word))
            return true;
    }
    json_array_foreach(json_object_get(s->facts, "algorithms"), i,
                       v) if (strcasestr(json_string_value(v), word)) return true;
    return false;
}

static const char *
value(void *data, const char *key)
{
    struct subject *s = data;
    return eti_facts_get(s->facts, key, s->text);
}

static json_t *
choose(const struct eti_filter *filter, const json_t *list)
{
    json_t *chosen = json_array(), *facts;
    size_t i;
    json_array_foreach(list, i, facts)
    {
        struct subject data = {.facts = facts};
        const struct eti_subject s = {
            .data = &data,
            .has_word = has_word,
            .value = value,
        };
        if (eti_filter_matches(filter, &s))
            json_array_append(chosen, facts);
    }
    return chosen;
}

/* ---- in which order ---- */

struct row {
    json_t *facts;
    char text[ETI_FACT_TEXT]; /* what it is sorted by */
    bool known, is_number;
    double number;
    int direction;
    size_t place; /* before */
};

static int
compare(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    int order = 0;
    if (a->known != b->known)
        return a->known ? -1 : 1;
    if (a->is_number && b->is_number)
        order = (a->number > b->number) - (a->number < b->number);
    else
        order = strcmp(a->text, b->text);
    if (order != 0)
        return order * a->direction;
    return a->place < b->place ? -1 : 1;
}

/* By KEY: metrics from the best, others from the least, -KEY the other way round. */
static json_t *
sort(json_t *list, const char *key)
{
    size_t n = json_array_size(list);
    struct row *row = calloc(n + 1, sizeof *row);
    json_t *sorted = json_array();
    bool reversed = *key == '-';
    const char *full;
    char *end;
    key += reversed;
    for (size_t i = 0; row && i < n; i++) {
        struct row *r = &row[i];
        r->facts = json_array_get(list, i);
        const char *text = eti_facts_get(r->facts, key, r->text);
        r->known = text != NULL;
        size_t length = text ? strnlen(text, sizeof r->text - 1) : 0;
        memmove(r->text, text ? text : "", length);
        r->text[length] = '\0';
        r->number = strtod(r->text, &end);
        r->is_number = end != r->text && !*end;
        bool less = !eti_facts_metric(r->facts, key, strlen(key), &full) ||
                    eti_less_is_better(full);
        r->direction = less != reversed ? 1 : -1;
        r->place = i;
    }
    if (row)
        qsort(row, n, sizeof *row, compare);
    for (size_t i = 0; row && i < n; i++)
        json_array_append(sorted, row[i].facts);
    free(row);
    return sorted;
}

/* ---- as text ---- */

static char
sign(const char *state, bool alive)
{
    static const struct {
        const char *state;
        char sign;
    } signs[] = {{"finished", '+'},
                 {"reached-target", '+'},
                 {"stopped", 'p'},
                 {"preempted", 'p'}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcmp(state, signs[i].state) == 0)
            return signs[i].sign;
    return alive ? '*' : 'x';
}

/* "6/16ep": in the unit that the run ends in, where that is counted. */
static const char *
progress(const json_t *facts, char *buf, size_t size)
{
    static const char *const units[] = {"ep", "ba", "sp"};
    char text[ETI_FACT_TEXT];
    const char *limit = cli_fact(facts, "max_duration", text, sizeof text);
    size_t n = strlen(limit);
    const json_t *ba = json_object_get(facts, "ba");
    for (size_t i = 0; n > 2 && i < sizeof units / sizeof *units; i++) {
        const json_t *done = json_object_get(facts, units[i]);
        if (strcmp(limit + n - 2, units[i]) == 0 && json_is_integer(done)) {
            snprintf(buf, size, "%lld/%s", (long long)json_integer_value(done), limit);
            return buf;
        }
    }
    if (json_is_integer(ba))
        snprintf(buf, size, "%lldba", (long long)json_integer_value(ba));
    else
        snprintf(buf, size, "-");
    return buf;
}

/* "today 13:56", "11-20 13:56", "2025-11-20". */
static const char *
when(double t, double today, char *buf, size_t size)
{
    time_t then = (time_t)t, now = (time_t)today;
    struct tm a, b;
    localtime_r(&then, &a);
    localtime_r(&now, &b);
    bool year = a.tm_year == b.tm_year;
    const char *form = year && a.tm_yday == b.tm_yday ? "today %H:%M"
                       : year                         ? "%m-%d %H:%M"
                                                      : "%Y-%m-%d";
    if (t <= 0 || strftime(buf, size, form, &a) == 0)
        snprintf(buf, size, "-");
    return buf;
}

/* Of the metric that the run is known by: "Accuracy 0.7212". */
static const char *
best(const json_t *facts, char *buf, size_t size)
{
    const char *metric;
    char number[32], label[10];
    const json_t *m = cli_main_metric(facts, &metric);
    snprintf(buf, size, "-");
    if (json_is_number(json_object_get(m, "best"))) {
        const char *last = strrchr(metric, '/') + 1;
        snprintf(buf, size, "%s %s",
                 et_visible(label, sizeof label, last, strlen(last)),
                 eti_value_text(json_number_value(json_object_get(m, "best")), number,
                                sizeof number));
    }
    return buf;
}

static void
print_run(const json_t *facts, double now)
{
    char name[ETI_FACT_TEXT], state[ETI_FACT_TEXT], done[ETI_FACT_TEXT], value[64];
    char started[32], speed[32] = "-";
    const json_t *metrics = json_object_get(facts, "metrics");
    const json_t *v = json_object_get(metrics, "throughput/samples_per_sec");
    if (json_is_number(json_object_get(v, "last")))
        cli_count(llround(json_number_value(json_object_get(v, "last"))), speed,
                  sizeof speed);
    cli_fact(facts, "state", state, sizeof state);
    printf("%c %-15s %-11s %-12s %-10s %-16s %8s\n",
           sign(state, eti_facts_is_alive(facts)),
           cli_fact(facts, "name", name, sizeof name),
           when(json_number_value(json_object_get(facts, "started")), now, started,
                sizeof started),
           state, progress(facts, done, sizeof done), best(facts, value, sizeof value),
           speed);
    if (json_object_get(facts, "problem"))
        printf("    %s\n", cli_fact(facts, "problem", name, sizeof name));
}

static void
print_table(const json_t *list, size_t of, double now)
{
    size_t n = json_array_size(list), i;
    json_t *facts;
    if (of == 0) {
        printf("no runs in ./runs, and none known elsewhere: etude train -m "
               "fashion_mnist\n");
        return;
    }
    printf("  %-15s %-11s %-12s %-10s %-15s %9s\n", "NAME", "STARTED", "STATE",
           "PROGRESS", "BEST", "samples/s");
    json_array_foreach(list, i, facts) print_run(facts, now);
    if (n < of)
        printf("%zu of %zu runs\n", n, of);
}

/* ---- the command ---- */

static char *
join(const char *const *words, int n)
{
    size_t size = 1;
    for (int i = 0; i < n; i++)
        size += strlen(words[i]) + 1;
    char *text = calloc(size, 1);
    for (int i = 0, at = 0; text && i < n; i++)
        at += snprintf(text + at, size - (size_t)at, "%s%s", i ? " " : "", words[i]);
    return text;
}

static int
list_runs(struct cli *c, const struct eti_filter *filter)
{
    int code;
    json_t *all = cli_run_list(c, c->opt.reindex, &code);
    if (!all)
        return code;
    json_t *chosen = choose(filter, all);
    size_t of = json_array_size(all);
    json_decref(all);
    if (c->opt.sort) {
        json_t *sorted = sort(chosen, c->opt.sort);
        json_decref(chosen);
        chosen = sorted;
    }
    while (c->opt.limit > 0 && json_array_size(chosen) > (size_t)c->opt.limit)
        json_array_remove(chosen, json_array_size(chosen) - 1);
    if (c->opt.json)
        return cli_print_json(chosen);
    print_table(chosen, of, eti_wall(c->cx));
    json_decref(chosen);
    return CLI_OK;
}

int
cli_runs(struct cli *c)
{
    struct eti_filter *filter;
    char *text = join(c->arg, c->n_args);
    if (!text)
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory for a filter");
    et_status status = eti_filter_new(c->cx, text, &filter);
    free(text);
    if (status == ET_EINVAL) {
        int code = cli_fail(c, CLI_E_OPERAND, NULL, "the filter: %s",
                            et_error_get(c->cx)->message);
        et_error_clear(c->cx);
        return code;
    }
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    int code = list_runs(c, filter);
    eti_filter_free(&filter);
    return code;
}
