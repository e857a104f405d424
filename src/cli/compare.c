/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c: `etude compare`: in what runs differ, how good they were, and when each
 * came to a target.
 *
 * A run is on the Pareto front if no other is at least as good and as quick (or cheap),
 * and better or quicker: comparison.h. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare.h"
#include "cli/sweep.h"
#include "cli/workbench.h"
#include "dist/worker/target.h"
#include "core/loggers/progress.h"
#include "core/library/comparison.h"
#include "tui/runs.h"

enum { CELL = 18, HEAD = 5 };

/* What is printed: the runs, in columns of CELL. */
struct table {
    const struct eti_comparison *k;
    int cell;
};

static int
judge_all(struct cli *c, struct eti_comparison *k)
{
    int code = CLI_OK;
    for (int i = 0; i < k->n && code == CLI_OK; i++) {
        et_status status = eti_comparison_judge(k, i);
        if (status != ET_OK)
            code = cli_fail_status(c, ETI_STAGE_DATA, status);
    }
    return code;
}

/* Runs that were evaluated on other data are not compared. */
static void
warn(struct cli *c, const json_t *differences)
{
    char visible[ET_VISIBLE_MAX + 1];
    const char *key = eti_comparison_unlike(differences);
    if (key)
        et_report(c->cx, ET_LOG_WARN,
                  "the runs were evaluated on other data: %s differs",
                  et_visible(visible, sizeof visible, key, strlen(key)));
}

/* ---- printing ---- */

/* Is S within a character of UTF-8? */
static bool
is_inside(const char *s)
{
    return ((unsigned char)*s & 0xc0) == 0x80;
}

/* TEXT without its middle where that is too long: the ends of paths tell them apart. */
static void
print_cell(const struct table *t, const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    const int most = t->cell - 1;
    et_visible(visible, sizeof visible, text, strlen(text));
    int n = (int)strlen(visible), head = HEAD;
    const char *tail = visible + n - (most - HEAD - 3);
    if (n <= most) {
        et_print(stdout, " %*s", most, visible);
        return;
    }
    while (is_inside(visible + head)) /* no character is cut */
        head--;
    while (is_inside(tail))
        tail++;
    et_print(stdout, " %.*s...%s", head, visible, tail);
}

static void
print_label(const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    et_print(stdout, "%-34s", et_visible(visible, sizeof visible, text, strlen(text)));
}

static void
print_fact_row(const struct table *t, const char *key)
{
    const struct eti_comparison *k = t->k;
    char text[ETI_FACT_TEXT];
    print_label(key);
    for (int i = 0; i < k->n; i++)
        print_cell(t, cli_fact(k->run[i].facts, key, text, sizeof text));
    putchar('\n');
}

static double
training_seconds(const struct eti_compared_run *r)
{
    const json_t *training = json_object_get(r->facts, "train_seconds");
    return json_is_number(training) ? json_number_value(training) : NAN;
}

/* A row of what the runs took, to their best or to the target. */
static void
print_figures(const struct table *t, const char *label, enum eti_figure what,
              bool to_target)
{
    const struct eti_comparison *k = t->k;
    char text[64];
    print_label(label);
    for (int i = 0; i < k->n; i++) {
        const struct eti_compared_run *r = &k->run[i];
        double x = to_target ? r->to_target[what] : r->to_best[what];
        print_cell(t, isfinite(x) ? compare_figure_text(k, what, x, text, sizeof text)
                                  : "-");
    }
    putchar('\n');
}

static void
print_best(const struct table *t)
{
    const struct eti_comparison *k = t->k;
    char text[64];
    snprintf(text, sizeof text, "best %.58s", k->metric);
    print_label(text);
    for (int i = 0; i < k->n; i++)
        print_cell(t, isfinite(k->run[i].best)
                          ? eti_value_text(k->run[i].best, text, sizeof text)
                          : "-");
    putchar('\n');
}

static void
print_training(const struct table *t)
{
    const struct eti_comparison *k = t->k;
    char text[64];
    print_label("training");
    for (int i = 0; i < k->n; i++) {
        double x = training_seconds(&k->run[i]);
        print_cell(t, isfinite(x)
                          ? compare_figure_text(k, ETI_TIME, x, text, sizeof text)
                          : "-");
    }
    putchar('\n');
}

/* What a run has at a key, in BUF: whole. */
static const char *
value_text(const json_t *v, char *buf, size_t size)
{
    char *text = NULL;
    if (json_is_string(v))
        return json_string_value(v);
    if (v && !json_is_null(v))
        text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    snprintf(buf, size, "%s", text ? text : "-");
    free(text);
    return buf;
}

static void
print_differences(const struct table *t, const json_t *differences)
{
    char text[ET_VISIBLE_MAX + 1];
    const char *key;
    json_t *values;
    json_object_foreach((json_t *)differences, key, values)
    {
        print_label(key);
        for (int i = 0; i < t->k->n; i++)
            print_cell(
                t, value_text(json_array_get(values, (size_t)i), text, sizeof text));
        putchar('\n');
    }
}

/* On a terminal all lines are of one length; in a file nothing is cut. */
static int
choose_cell(const struct eti_comparison *k, const json_t *differences)
{
    char name[ETI_FACT_TEXT], text[ET_VISIBLE_MAX + 1], visible[ET_VISIBLE_MAX + 1];
    const char *key;
    json_t *values, *v;
    size_t i, n, most = CELL - 1;
    if (isatty(STDOUT_FILENO))
        return CELL;
    for (int r = 0; r < k->n; r++) {
        n = strlen(cli_fact(k->run[r].facts, "name", name, sizeof name));
        most = n > most ? n : most;
    }
    json_object_foreach((json_t *)differences, key, values)
    {
        json_array_foreach(values, i, v)
        {
            const char *whole = value_text(v, text, sizeof text);
            n = strlen(et_visible(visible, sizeof visible, whole, strlen(whole)));
            most = n > most ? n : most;
        }
    }
    return (int)most + 1;
}

static void
print_comparison(const struct cli *c, const struct eti_comparison *k,
                 const json_t *differences)
{
    const struct table t = {k, choose_cell(k, differences)};
    char label[ET_METRIC_NAME + 32];
    print_fact_row(&t, "name");
    print_fact_row(&t, "state");
    print_differences(&t, differences);
    print_training(&t);
    if (k->metric[0]) {
        print_best(&t);
        print_figures(&t, "time to it", ETI_TIME, false);
    }
    if (k->has_target) {
        snprintf(label, sizeof label, "time to %s", c->opt.target);
        print_figures(&t, label, ETI_TIME, true);
        print_figures(&t, "samples to it", ETI_SAMPLES, true);
    }
    if (k->by != ETI_TIME && k->by != ETI_SAMPLES) {
        snprintf(label, sizeof label, "%s to it", eti_figure_names[k->by]);
        print_figures(&t, label, k->by, k->has_target);
    }
    if (c->opt.pareto) {
        snprintf(label, sizeof label, "Pareto front, %s", c->opt.pareto);
        print_label(label);
        for (int i = 0; i < k->n; i++)
            print_cell(&t, k->run[i].on_front                             ? "#"
                           : isfinite(eti_comparison_cost(k, &k->run[i])) ? "+"
                                                                          : "-");
        putchar('\n');
    }
    if (!json_object_get(differences, "seed"))
        printf("one seed: small differences may be those between seeds (3 advised)\n");
}

static json_t *
as_json(const struct cli *c, const struct eti_comparison *k, json_t *differences)
{
    char key[32];
    json_t *runs = json_array();
    for (int i = 0; i < k->n; i++) {
        const struct eti_compared_run *r = &k->run[i];
        json_t *v = json_pack(
            "{s:O?, s:O?, s:O?, s:o, s:o}", "name", json_object_get(r->facts, "name"),
            "directory", json_object_get(r->facts, "directory"), "state",
            json_object_get(r->facts, "state"), "training_seconds",
            compare_number(training_seconds(r)), "best", compare_number(r->best));
        for (int f = 0; f < ETI_FIGURES; f++) {
            if (f != ETI_TIME && f != ETI_SAMPLES && (int)k->by != f)
                continue; /* it was not asked for */
            snprintf(key, sizeof key, "%s_to_best", compare_figure_keys[f]);
            json_object_set_new(v, key, compare_number(r->to_best[f]));
            snprintf(key, sizeof key, "%s_to_target", compare_figure_keys[f]);
            if (k->has_target)
                json_object_set_new(v, key, compare_number(r->to_target[f]));
        }
        if (c->opt.pareto)
            json_object_set_new(v, "on_front", json_boolean(r->on_front));
        json_array_append_new(runs, v);
    }
    return json_pack("{s:o, s:s?, s:s?, s:O}", "runs", runs, "metric",
                     k->metric[0] ? k->metric : NULL, "target", c->opt.target,
                     "differences", differences);
}

/* ---- the command ---- */

static int
choose_metric(struct cli *c, struct eti_comparison *k)
{
    et_status status = eti_comparison_choose(k);
    if (status == ET_OK)
        return CLI_OK;
    int code = cli_fail(c, status == ET_ENOENT ? CLI_E_NAME : CLI_E_VALUE,
                        status == ET_ENOENT ? "etude show lists a run's metrics" : NULL,
                        "--target: %s", et_error_get(c->cx)->message);
    et_error_clear(c->cx);
    return code;
}

/* Names the runs that have not measured it; if none has, there is nothing to
 * compare. */
static int
check_recorded(struct cli *c, const struct eti_comparison *k)
{
    const bool energy = k->by == ETI_ENERGY;
    const char *what = energy ? "what it drew" : "its processors' time";
    const char *how = energy ? "a GPU's sensors say it, and for processors "
                               "/sys/class/powercap where it can be read"
                             : "runs of this version and later do, once a second";
    char text[ETI_FACT_TEXT];
    int known = 0;
    for (int i = 0; i < k->n; i++)
        known += isfinite(k->run[i].to_best[k->by]);
    if (known == 0)
        return cli_fail(c, CLI_E_LATER, how, "--pareto %s: no run has recorded %s",
                        eti_figure_names[k->by], what);
    for (int i = 0; i < k->n; i++)
        if (!isfinite(k->run[i].to_best[k->by]))
            et_report(c->cx, ET_LOG_WARN, "%s has not recorded %s: %s",
                      cli_fact(k->run[i].facts, "name", text, sizeof text), what, how);
    return CLI_OK;
}

static int
print_result(struct cli *c, const struct eti_comparison *k, json_t *differences)
{
    if (c->opt.seeds)
        return compare_print_seeds(c, k, differences);
    if (c->opt.json)
        return cli_print_json(as_json(c, k, differences));
    print_comparison(c, k, differences);
    return CLI_OK;
}

static int
run(struct cli *c, struct eti_comparison *k)
{
    int code = choose_metric(c, k);
    if (code == CLI_OK)
        code = judge_all(c, k);
    if (code != CLI_OK)
        return code;
    if (c->opt.pareto || c->opt.svg)
        eti_comparison_front(k);
    if (k->by == ETI_ENERGY || k->by == ETI_CPU_TIME)
        code = check_recorded(c, k);
    if (code != CLI_OK)
        return code;
    json_t *differences = eti_comparison_differences(k);
    warn(c, differences);
    if (c->opt.svg)
        code = compare_draw(c, k, differences);
    if (code == CLI_OK)
        code = print_result(c, k, differences);
    json_decref(differences);
    return code;
}

static int
read_pareto(struct cli *c, struct eti_comparison *k)
{
    const char *p = c->opt.pareto;
    int i = 0;
    while (p && i < ETI_FIGURES && strcmp(p, eti_figure_names[i]) != 0)
        i++;
    if (i == ETI_FIGURES)
        return cli_fail(
            c, CLI_E_VALUE, NULL,
            "--pareto: expected time, cost, energy, samples or cpu, got '%s'", p);
    k->by = (enum eti_figure)i;
    k->price = c->config ? &c->config->set.price : NULL;
    if (k->by == ETI_COST && !eti_comparison_has_price(k))
        return cli_fail(c, CLI_E_LATER, "etude config set price.hour 2.50",
                        "--pareto cost: no price is set");
    return CLI_OK;
}

/* The runs of DATA beside each other, on the screen. */
static int
begin(struct cli *c, struct tui_app *app, void *data)
{
    const struct eti_comparison *k = data;
    const json_t *facts[ETI_COMPARED_RUNS];
    for (int i = 0; i < k->n; i++)
        facts[i] = k->run[i].facts;
    const struct tui_runs_setup setup = {
        .target = k->target_text,
        .compare = facts,
        .n = k->n,
        .pareto = c->opt.pareto != NULL,
        .by = k->by,
    };
    et_status status = tui_runs_setup(app, &setup);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

static bool
is_sweep(const struct cli *c, const char *text)
{
    char path[PATH_MAX];
    return access(sweep_path(c, text, path), F_OK) == 0;
}

/* Which of the runs of a sweep RUN is, from 0. */
static int
place_in(const struct sweep_view *view, const json_t *run)
{
    const json_t *other;
    size_t i;
    json_array_foreach(sweep_runs(view), i, other) if (other == run) break;
    return (int)i;
}

/* The runs of the sweep TEXT that have begun; the first of its plan has PLACE. */
static int
add_sweep(struct cli *c, struct eti_comparison *k, const char *text, int place)
{
    int code, n = 0;
    json_t *plan = sweep_plan_read(c, text, &code);
    const struct sweep_view view = {c, plan, "runs"};
    struct sweep_ranked *list = plan ? sweep_rank(&view, true, &n) : NULL;
    for (int i = 0; i < n && code == CLI_OK; i++) {
        if (k->n == ETI_COMPARED_RUNS)
            code = cli_fail(c, CLI_E_OPERAND, "name the runs that count",
                            "compare takes up to %d runs, and sweep %s has more",
                            ETI_COMPARED_RUNS, text);
        else if (list[i].facts)
            k->run[k->n++] = (struct eti_compared_run){
                .facts = json_incref(list[i].facts),
                .place = place + place_in(&view, list[i].run),
            };
    }
    sweep_free_ranking(list, n);
    json_decref(plan);
    return code;
}

/* The run that operand I means, or the runs of a sweep that is called so. */
static int
add_runs(struct cli *c, struct eti_comparison *k, int i, bool *is_copy)
{
    const char *text = c->arg[i];
    const int place = i * SWEEP_MOST;
    struct etd_target target;
    int code = CLI_OK;
    if (is_sweep(c, text))
        return add_sweep(c, k, text, place);
    k->run[k->n].place = place;
    is_copy[k->n] = cli_run_is_far(c, text, &target);
    k->run[k->n].facts = is_copy[k->n] ? cli_run_fetch(c, text, &target, true, &code)
                                       : cli_run_find(c, text, &code);
    k->n += k->run[k->n].facts != NULL;
    return code;
}

int
cli_compare(struct cli *c)
{
    struct eti_comparison *k;
    bool is_copy[ETI_COMPARED_RUNS + 1] = {false};
    int code;
    bool few = c->n_args < 2 && !(c->n_args == 1 && is_sweep(c, c->arg[0]));
    if (few || c->n_args > ETI_COMPARED_RUNS)
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them",
                        "compare takes 2 to %d runs, not %d", ETI_COMPARED_RUNS,
                        c->n_args);
    k = calloc(1, sizeof *k);
    if (!k)
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory for %d runs", c->n_args);
    k->cx = c->cx;
    k->target_text = c->opt.target;
    code = read_pareto(c, k);
    for (int i = 0; i < c->n_args && code == CLI_OK; i++)
        code = add_runs(c, k, i, is_copy);
    if (code == CLI_OK && c->opt.dump_screen)
        code = cli_workbench(c, TUI_IN_runs, begin, k);
    else if (code == CLI_OK)
        code = run(c, k);
    for (int i = 0; i < k->n; i++) {
        const json_t *directory = json_object_get(k->run[i].facts, "directory");
        if (is_copy[i])
            cli_run_forget_copy(json_string_value(directory));
        json_decref(k->run[i].facts);
    }
    free(k);
    return code;
}
