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

#include "cli/cli.h"
#include "core/callbacks/callbacks.h"
#include "core/loggers/progress.h"
#include "core/run/facts.h"

enum { MOST_RUNS = 64, CELL = 18, POINTS = 4096 };

struct contender {
    json_t *facts;
    double best, best_seconds, best_samples; /* NaN: not known */
    double seconds, samples;                 /* to the target; NaN: never */
    bool on_front;
};

struct contest {
    struct cli *c;
    struct contender run[MOST_RUNS];
    int n;
    char metric[ET_METRIC_NAME]; /* "" without one that all have */
    bool less;                   /* is better */
    bool has_target, below, or_equal;
    double target;
};

static const json_t *
config_of(const struct contender *r)
{
    return json_object_get(r->facts, "config");
}

/* ---- the metric and the target ---- */

/* "accuracy>=.765", as for train: a metric, < <= > or >=, a number. */
static int
parse_target(struct contest *k, size_t *length)
{
    const char *text = k->c->opt.target;
    *length = strcspn(text, "<> ");
    const char *op = text + *length + strspn(text + *length, " ");
    char *end = NULL;
    k->has_target = true;
    k->below = *op == '<';
    k->or_equal = op[0] && op[1] == '=';
    if (*op == '<' || *op == '>')
        k->target = strtod(op + 1 + k->or_equal, &end);
    if (*length == 0 || !end || end == op + 1 + k->or_equal || *end)
        return cli_fail(k->c, CLI_E_VALUE, NULL,
                        "--target: '%s' is not METRIC>=NUMBER or METRIC<=NUMBER", text);
    return CLI_OK;
}

/* The target's metric, or what the first run is known by. */
static int
choose_metric(struct contest *k)
{
    const char *name = NULL, *full = NULL;
    size_t length = 0;
    if (k->c->opt.target) {
        int code = parse_target(k, &length);
        if (code != CLI_OK)
            return code;
        for (int i = 0; i < k->n && !full; i++)
            (void)eti_facts_metric(k->run[i].facts, k->c->opt.target, length, &full);
        if (!full)
            return cli_fail(k->c, CLI_E_NAME, "etude show lists a run's metrics",
                            "--target: in none of the runs one metric is called '%.*s'",
                            (int)length, k->c->opt.target);
        name = full;
    } else {
        for (int i = 0; i < k->n && !name; i++)
            (void)cli_main_metric(k->run[i].facts, &name);
    }
    if (name)
        snprintf(k->metric, sizeof k->metric, "%s", name);
    k->less = name && (k->has_target ? k->below : eti_less_is_better(name));
    return CLI_OK;
}

static bool
is_reached(const struct contest *k, double value)
{
    if (k->or_equal && value == k->target)
        return true;
    return k->below ? value < k->target : value > k->target;
}

/* Samples after batch BA. */
static double
samples_at(struct et_events *e, int64_t ba)
{
    struct et_series_point p[2];
    int n;
    if (et_events_fetch(e, "time/sample", ba, ba, 2, p, &n) == ET_OK && n > 0)
        return p[0].value;
    return NAN;
}

/* What a run came to. Its facts have a best value, but perhaps of the other direction.
 */
static et_status
judge(struct contest *k, struct contender *r, struct et_events *e)
{
    static struct et_series_point p[POINTS];
    const struct et_series_point *best = NULL, *hit = NULL;
    double started = json_number_value(json_object_get(r->facts, "started"));
    int n;
    ET_TRY(et_events_fetch(e, k->metric, 0, INT64_MAX, POINTS, p, &n));
    for (int i = 0; i < n; i++) {
        if (!best || (k->less ? p[i].value < best->value : p[i].value > best->value))
            best = &p[i];
        if (!hit && k->has_target && is_reached(k, p[i].value))
            hit = &p[i];
    }
    if (best) {
        r->best = best->value;
        r->best_seconds = best->t - started;
        r->best_samples = samples_at(e, best->ba);
    }
    if (hit) {
        r->seconds = hit->t - started;
        r->samples = samples_at(e, hit->ba);
    }
    return ET_OK;
}

static int
judge_all(struct contest *k)
{
    int code = CLI_OK;
    for (int i = 0; i < k->n && code == CLI_OK; i++) {
        struct contender *r = &k->run[i];
        r->best = r->best_seconds = r->best_samples = r->seconds = r->samples = NAN;
        if (!k->metric[0])
            continue;
        struct et_events *e = cli_run_events(k->c, r->facts, &code);
        if (!e)
            return code;
        et_status status = judge(k, r, e);
        et_events_close(&e);
        if (status != ET_OK)
            code = cli_fail_status(k->c, ETI_STAGE_DATA, status);
    }
    return code;
}

/* ---- the Pareto front ---- */

static double
cost(const struct contest *k, const struct contender *r)
{
    bool samples = strcmp(k->c->opt.pareto, "samples") == 0;
    if (k->has_target)
        return samples ? r->samples : r->seconds;
    return samples ? r->best_samples : r->best_seconds;
}

static bool
beats(const struct contest *k, const struct contender *a, const struct contender *b)
{
    double x = cost(k, a), y = cost(k, b), sign = k->less ? -1 : 1;
    double good = sign * a->best, other = sign * b->best;
    return x <= y && good >= other && (x < y || good > other);
}

static void
find_front(struct contest *k)
{
    for (int i = 0; i < k->n; i++) {
        struct contender *r = &k->run[i];
        r->on_front = isfinite(r->best) && isfinite(cost(k, r));
        for (int j = 0; j < k->n; j++)
            r->on_front = r->on_front && !beats(k, &k->run[j], r);
    }
}

/* ---- what differs ---- */

static bool
differs(const struct contest *k, const char *key)
{
    const json_t *first = json_object_get(config_of(&k->run[0]), key);
    for (int i = 1; i < k->n; i++) {
        const json_t *other = json_object_get(config_of(&k->run[i]), key);
        if (!first != !other ||
            (first && !json_equal((json_t *)first, (json_t *)other)))
            return true;
    }
    return false;
}

/* The keys of the recipes in which not all agree; a run's name is no setting. */
static json_t *
find_differences(const struct contest *k)
{
    json_t *all = json_object(), *v;
    const char *key;
    for (int i = 0; i < k->n; i++)
        json_object_foreach((json_t *)config_of(&k->run[i]), key, v)
        {
            if (json_object_get(all, key) || strcmp(key, "run_name") == 0 ||
                !differs(k, key))
                continue;
            json_t *values = json_array();
            for (int j = 0; j < k->n; j++) {
                json_t *of = json_object_get(config_of(&k->run[j]), key);
                json_array_append_new(values, of ? json_incref(of) : json_null());
            }
            json_object_set_new(all, key, values);
        }
    return all;
}

/* Runs that were evaluated on other data are no contest. */
static void
warn(const struct contest *k, const json_t *differences)
{
    static const char *const same[] = {
        "name", "split", "num_samples", "subset_num_batches", "datadir", "path"};
    const char *key;
    json_t *v;
    char visible[ET_VISIBLE_MAX + 1];
    json_object_foreach((json_t *)differences, key, v)
    {
        const char *last = strrchr(key, '.');
        if (strncmp(key, "eval_data.", 10) != 0 || !last)
            continue;
        for (size_t i = 0; i < sizeof same / sizeof *same; i++)
            if (strcmp(last + 1, same[i]) == 0)
                et_report(k->c->cx, ET_LOG_WARN,
                          "the runs were evaluated on other data: %s differs",
                          et_visible(visible, sizeof visible, key, strlen(key)));
    }
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
print_fact_row(const struct contest *k, const char *key)
{
    char text[ETI_FACT_TEXT];
    print_label(key);
    for (int i = 0; i < k->n; i++)
        print_cell(cli_fact(k->run[i].facts, key, text, sizeof text));
    putchar('\n');
}

enum figure { BEST, TO_TARGET_SECONDS, TO_TARGET_SAMPLES, TO_BEST_SECONDS, TRAINING };

static double
figure(const struct contender *r, enum figure what)
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
print_figures(const struct contest *k, const char *label, enum figure what)
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
print_differences(const struct contest *k, const json_t *differences)
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
print_contest(const struct contest *k, const json_t *differences)
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
        snprintf(label, sizeof label, "time to %s", k->c->opt.target);
        print_figures(k, label, TO_TARGET_SECONDS);
        print_figures(k, "samples to it", TO_TARGET_SAMPLES);
    }
    if (k->c->opt.pareto) {
        snprintf(label, sizeof label, "Pareto front, %s", k->c->opt.pareto);
        print_label(label);
        for (int i = 0; i < k->n; i++)
            print_cell(k->run[i].on_front              ? "#"
                       : isfinite(cost(k, &k->run[i])) ? "+"
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
as_json(const struct contest *k, json_t *differences)
{
    json_t *runs = json_array();
    for (int i = 0; i < k->n; i++) {
        const struct contender *r = &k->run[i];
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
        if (k->c->opt.pareto)
            json_object_set_new(v, "on_front", json_boolean(r->on_front));
        json_array_append_new(runs, v);
    }
    return json_pack("{s:o, s:s?, s:s?, s:O}", "runs", runs, "metric",
                     k->metric[0] ? k->metric : NULL, "target", k->c->opt.target,
                     "differences", differences);
}

/* ---- the command ---- */

static int
run(struct contest *k)
{
    int code = choose_metric(k);
    if (code == CLI_OK)
        code = judge_all(k);
    if (code != CLI_OK)
        return code;
    if (k->c->opt.pareto)
        find_front(k);
    json_t *differences = find_differences(k);
    warn(k, differences);
    if (k->c->opt.json)
        code = cli_print_json(as_json(k, differences));
    else
        print_contest(k, differences);
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

int
cli_compare(struct cli *c)
{
    struct contest *k;
    int code = check_pareto(c);
    if (code != CLI_OK)
        return code;
    if (c->n_args < 2 || c->n_args > MOST_RUNS)
        return cli_fail(c, CLI_E_OPERAND, NULL, "compare takes 2 to %d runs, not %d",
                        MOST_RUNS, c->n_args);
    k = calloc(1, sizeof *k);
    if (!k)
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory for %d runs", c->n_args);
    k->c = c;
    for (int i = 0; i < c->n_args && code == CLI_OK; i++) {
        k->run[k->n].facts = cli_run_find(c, c->arg[i], &code);
        k->n += k->run[k->n].facts != NULL;
    }
    if (code == CLI_OK)
        code = run(k);
    for (int i = 0; i < k->n; i++)
        json_decref(k->run[i].facts);
    free(k);
    return code;
}
