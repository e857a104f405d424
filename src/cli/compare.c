/* compare.c: `etude compare`: in what runs differ, how good they were, and when each
 * came to a target.
 *
 * A run is on the Pareto front if no other is at least as good and as quick, and better
 * or quicker. With a target, how quick is the time (or samples) to it, else to the best
 * value. Time is of the clock, from the start of the run: a pause before a resume
 * counts.
 */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/workbench.h"
#include "core/loggers/progress.h"
#include "core/run/contest.h"
#include "tui/runs.h"

enum { CELL = 18 };

static const json_t *
config_of(const struct eti_contender *r)
{
    return json_object_get(r->facts, "config");
}

static int
judge_all(struct cli *c, struct eti_contest *k)
{
    int code = CLI_OK;
    for (int i = 0; i < k->n && code == CLI_OK; i++) {
        et_status status = eti_contest_judge(k, i);
        if (status != ET_OK)
            code = cli_fail_status(c, ETI_STAGE_DATA, status);
    }
    return code;
}

/* Runs that were evaluated on other data are no contest. */
static void
warn(struct cli *c, const json_t *differences)
{
    char visible[ET_VISIBLE_MAX + 1];
    const char *key = eti_contest_unlike(differences);
    if (key)
        et_report(c->cx, ET_LOG_WARN,
                  "the runs were evaluated on other data: %s differs",
                  et_visible(visible, sizeof visible, key, strlen(key)));
}

/* ---- printing ---- */

static void
print_cell(const char *text)
{
    char visible[CELL];
    printf(" %*s", CELL - 1, et_visible(visible, sizeof visible, text, strlen(text)));
}

static void
print_label(const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    printf("%-34s", et_visible(visible, sizeof visible, text, strlen(text)));
}

static void
print_fact_row(const struct eti_contest *k, const char *key)
{
    char text[ETI_FACT_TEXT];
    print_label(key);
    for (int i = 0; i < k->n; i++)
        print_cell(cli_fact(k->run[i].facts, key, text, sizeof text));
    putchar('\n');
}

enum figure { BEST, TO_TARGET_SECONDS, TO_TARGET_SAMPLES, TO_BEST_SECONDS, TRAINING };

static double
figure(const struct eti_contender *r, enum figure what)
{
    const json_t *training = json_object_get(r->facts, "train_seconds");
    switch (what) {
    case BEST:
        return r->best;
    case TO_TARGET_SECONDS:
        return r->seconds;
    case TO_TARGET_SAMPLES:
        return r->samples;
    case TO_BEST_SECONDS:
        return r->best_seconds;
    default:
        return json_is_number(training) ? json_number_value(training) : NAN;
    }
}

static void
print_figures(const struct eti_contest *k, const char *label, enum figure what)
{
    char text[64];
    print_label(label);
    for (int i = 0; i < k->n; i++) {
        double x = figure(&k->run[i], what);
        if (!isfinite(x))
            print_cell("-");
        else if (what == BEST)
            print_cell(eti_value_text(x, text, sizeof text));
        else if (what == TO_TARGET_SAMPLES)
            print_cell(cli_count(llround(x), text, sizeof text));
        else if (x < 60) {
            snprintf(text, sizeof text, "%.2fs", x);
            print_cell(text);
        } else
            print_cell(eti_duration_text(x, text, sizeof text));
    }
    putchar('\n');
}

static void
print_differences(const struct eti_contest *k, const json_t *differences)
{
    const char *key;
    json_t *values;
    json_object_foreach((json_t *)differences, key, values)
    {
        print_label(key);
        for (int i = 0; i < k->n; i++) {
            const json_t *v = json_object_get(config_of(&k->run[i]), key);
            char *text =
                v ? json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
            print_cell(json_is_string(v) ? json_string_value(v) : text ? text : "-");
            free(text);
        }
        putchar('\n');
    }
}

static void
print_contest(const struct cli *c, const struct eti_contest *k,
              const json_t *differences)
{
    char label[ET_METRIC_NAME + 32];
    print_fact_row(k, "name");
    print_fact_row(k, "state");
    print_differences(k, differences);
    print_figures(k, "training", TRAINING);
    if (k->metric[0]) {
        snprintf(label, sizeof label, "best %s", k->metric);
        print_figures(k, label, BEST);
        print_figures(k, "time to it", TO_BEST_SECONDS);
    }
    if (k->has_target) {
        snprintf(label, sizeof label, "time to %s", c->opt.target);
        print_figures(k, label, TO_TARGET_SECONDS);
        print_figures(k, "samples to it", TO_TARGET_SAMPLES);
    }
    if (c->opt.pareto) {
        snprintf(label, sizeof label, "Pareto front, %s", c->opt.pareto);
        print_label(label);
        for (int i = 0; i < k->n; i++)
            print_cell(k->run[i].on_front                          ? "#"
                       : isfinite(eti_contest_cost(k, &k->run[i])) ? "+"
                                                                   : "-");
        putchar('\n');
    }
    if (!json_object_get(differences, "seed"))
        printf("one seed: small differences may be those between seeds (3 advised)\n");
}

static json_t *
number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *
as_json(const struct cli *c, const struct eti_contest *k, json_t *differences)
{
    json_t *runs = json_array();
    for (int i = 0; i < k->n; i++) {
        const struct eti_contender *r = &k->run[i];
        json_t *v = json_pack("{s:O?, s:O?, s:O?, s:o, s:o, s:o, s:o}", "name",
                              json_object_get(r->facts, "name"), "directory",
                              json_object_get(r->facts, "directory"), "state",
                              json_object_get(r->facts, "state"), "training_seconds",
                              number(figure(r, TRAINING)), "best", number(r->best),
                              "seconds_to_best", number(r->best_seconds),
                              "samples_to_best", number(r->best_samples));
        if (k->has_target) {
            json_object_set_new(v, "seconds_to_target", number(r->seconds));
            json_object_set_new(v, "samples_to_target", number(r->samples));
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
choose_metric(struct cli *c, struct eti_contest *k)
{
    et_status status = eti_contest_choose(k);
    if (status == ET_OK)
        return CLI_OK;
    int code = cli_fail(c, status == ET_ENOENT ? CLI_E_NAME : CLI_E_VALUE,
                        status == ET_ENOENT ? "etude show lists a run's metrics" : NULL,
                        "--target: %s", et_error_get(c->cx)->message);
    et_error_clear(c->cx);
    return code;
}

static int
run(struct cli *c, struct eti_contest *k)
{
    int code = choose_metric(c, k);
    if (code == CLI_OK)
        code = judge_all(c, k);
    if (code != CLI_OK)
        return code;
    if (c->opt.pareto)
        eti_contest_front(k);
    json_t *differences = eti_contest_differences(k);
    warn(c, differences);
    if (c->opt.json)
        code = cli_print_json(as_json(c, k, differences));
    else
        print_contest(c, k, differences);
    json_decref(differences);
    return code;
}

static int
check_pareto(struct cli *c)
{
    const char *p = c->opt.pareto;
    if (!p || strcmp(p, "time") == 0 || strcmp(p, "samples") == 0)
        return CLI_OK;
    if (strcmp(p, "cost") == 0 || strcmp(p, "energy") == 0)
        return cli_fail(c, CLI_E_LATER, NULL,
                        "--pareto %s: runs of this version do not record it", p);
    return cli_fail(c, CLI_E_VALUE, NULL,
                    "--pareto: expected time, cost, energy or samples, got '%s'", p);
}

/* The runs of DATA beside each other, on the screen. */
static int
begin(struct cli *c, struct tui_app *app, void *data)
{
    const struct eti_contest *k = data;
    const char *directory[ETI_CONTENDERS];
    for (int i = 0; i < k->n; i++)
        directory[i] = json_string_value(json_object_get(k->run[i].facts, "directory"));
    const struct tui_runs_setup setup = {
        .target = k->target_text,
        .compare = directory,
        .n = k->n,
        .pareto = c->opt.pareto != NULL,
        .by_samples = k->by_samples,
    };
    et_status status = tui_runs_setup(app, &setup);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

int
cli_compare(struct cli *c)
{
    struct eti_contest *k;
    int code = check_pareto(c);
    if (code != CLI_OK)
        return code;
    if (c->n_args < 2 || c->n_args > ETI_CONTENDERS)
        return cli_fail(c, CLI_E_OPERAND, NULL, "compare takes 2 to %d runs, not %d",
                        ETI_CONTENDERS, c->n_args);
    k = calloc(1, sizeof *k);
    if (!k)
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory for %d runs", c->n_args);
    k->cx = c->cx;
    k->target_text = c->opt.target;
    k->by_samples = c->opt.pareto && strcmp(c->opt.pareto, "samples") == 0;
    for (int i = 0; i < c->n_args && code == CLI_OK; i++) {
        k->run[k->n].facts = cli_run_find(c, c->arg[i], &code);
        k->n += k->run[k->n].facts != NULL;
    }
    if (code == CLI_OK && c->opt.dump_screen)
        code = cli_workbench(c, TUI_IN_runs, begin, k);
    else if (code == CLI_OK)
        code = run(c, k);
    for (int i = 0; i < k->n; i++)
        json_decref(k->run[i].facts);
    free(k);
    return code;
}
