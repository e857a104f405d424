/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c: `etude runs`: the list of runs, filtered and sorted. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/color.h"
#include "cli/workbench.h"
#include "core/base/seams.h"
#include "core/library/list.h"
#include "core/loggers/progress.h"
#include "tui/runs.h"
#include "tui/widget.h"

/* ---- as text ---- */

/* Of the metric that the run is known by: "Accuracy 0.7212". */
static const char *
best(const json_t *facts, char *buf, size_t size)
{
    const char *metric;
    char number[32], label[10];
    const json_t *m = eti_run_metric(facts, &metric);
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

/* "6/16ep"; a length that its column has no room for is told as a part of it. */
static const char *
progress(const json_t *facts, char *buf, size_t size)
{
    enum { WIDTH = 10 };
    const double done = eti_run_done(facts);
    if (strlen(eti_run_progress(facts, buf, size)) > WIDTH && !isnan(done))
        snprintf(buf, size, "%d%%", (int)(100 * done + 1e-9));
    return buf;
}

/* Of the column of names: as the longest is, within limits. */
static int
name_width(const json_t *list)
{
    enum { LEAST = 15, MOST = 40 };
    int width = LEAST;
    size_t i;
    json_t *facts;
    json_array_foreach(list, i, facts)
    {
        char name[ETI_FACT_TEXT];
        int n = (int)strlen(cli_fact(facts, "name", name, sizeof name));
        width = n > width ? n : width;
    }
    return width < MOST ? width : MOST;
}

/* WIDTH: of its name. COLOR: it is for a terminal that shows them. */
static void
print_run(const json_t *facts, int width, double now, bool color)
{
    char name[ETI_FACT_TEXT], state[ETI_FACT_TEXT], done[ETI_FACT_TEXT], value[64];
    char started[32], speed[32] = "-", sgr[CLI_SGR];
    const double rate = eti_run_speed(facts);
    if (isfinite(rate))
        cli_count(llround(rate), speed, sizeof speed);
    cli_fact(facts, "state", state, sizeof state);
    enum eti_state_kind kind = eti_run_kind(facts);
    const char *on = color ? cli_sgr(tui_state_role(kind), sgr) : "";
    const char *off = color ? CLI_SGR_OFF : "";
    /* raw: a colour */
    printf("%s%c%s ", on, eti_state_sign(kind), off);
    et_print(stdout, "%-*s %-11s ", width, cli_fact(facts, "name", name, sizeof name),
             eti_run_when(json_number_value(json_object_get(facts, "started")), now,
                          started, sizeof started));
    fputs(on, stdout); /* raw: a colour */
    et_print(stdout, "%-12s", state);
    fputs(off, stdout); /* raw: likewise */
    et_print(stdout, " %-10s %-16s %8s\n", progress(facts, done, sizeof done),
             best(facts, value, sizeof value), speed);
    if (json_object_get(facts, "problem"))
        et_print(stdout, "    %s\n", cli_fact(facts, "problem", name, sizeof name));
}

static void
print_table(const json_t *list, int64_t of, double now, bool color)
{
    size_t n = json_array_size(list), i;
    const int width = name_width(list);
    char sgr[CLI_SGR];
    json_t *facts;
    if (of == 0) {
        printf("no runs in ./runs, and none known elsewhere: etude train -m "
               "fashion_mnist\n");
        return;
    }
    /* raw: words of ours, and a colour */
    printf("%s  %-*s %-11s %-12s %-10s %-15s %9s%s\n",
           color ? cli_sgr(TUI_DIM, sgr) : "", width, "NAME", "STARTED", "STATE",
           "PROGRESS", "BEST", "samples/s", color ? CLI_SGR_OFF : "");
    json_array_foreach(list, i, facts) print_run(facts, width, now, color);
    if ((int64_t)n < of)
        printf("%zu of %lld runs\n", n, (long long)of);
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
begin(struct cli *c, struct tui_app *app, void *data)
{
    const struct tui_runs_setup setup = {
        .filter = data,
        .sort = c->opt.sort,
    };
    et_status status = tui_runs_setup(app, &setup);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

static int
list_runs(struct cli *c, const struct eti_filter *filter)
{
    int code;
    int64_t of;
    /* The newest are the first of all, where all are chosen. */
    bool is_plain = c->n_args == 0 && !c->opt.sort && c->opt.limit > 0;
    json_t *all =
        cli_run_list(c, c->opt.reindex, is_plain ? c->opt.limit : 0, &of, &code);
    if (!all)
        return code;
    if (eti_runs_check(c->cx, filter, c->opt.sort, all) != ET_OK) {
        json_decref(all);
        code = cli_fail(c, CLI_E_OPERAND, "etude show RUN --json has the keys of a run",
                        "%s", et_error_get(c->cx)->message);
        et_error_clear(c->cx);
        return code;
    }
    json_t *chosen = eti_runs_choose(filter, all);
    json_decref(all);
    if (c->opt.sort) {
        json_t *sorted = eti_runs_sort(chosen, c->opt.sort);
        json_decref(chosen);
        chosen = sorted;
    }
    while (c->opt.limit > 0 && json_array_size(chosen) > (size_t)c->opt.limit)
        json_array_remove(chosen, json_array_size(chosen) - 1);
    if (c->opt.json)
        return cli_print_json(chosen);
    print_table(chosen, of, eti_wall(c->cx), cli_has_color(c, STDOUT_FILENO));
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
    if (c->opt.dump_screen) {
        int code = cli_workbench(c, TUI_IN_runs, begin, text);
        free(text);
        return code;
    }
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
