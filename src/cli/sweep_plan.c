/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_plan.c: the runs of a sweep: every combination of the values that are listed,
 * some drawn at random, or the lines of a file.
 *
 *     key=a,b,c       these values
 *     key=0.1..0.9    for --random: uniform; integers: up to the last
 *     key=1e-4..1:log  uniform in the logarithm */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sweep.h"
#include "core/base/folders.h"
#include "core/base/seams.h"
#include "core/library/facts.h"

static const char suffix[] = ".sweep";

/* ---- values ---- */

json_t *
sweep_split(const char *text, char separator)
{
    json_t *list = json_array();
    int depth = 0;
    char quote = 0;
    const char *from = text;
    for (const char *p = text;; p++) {
        bool ends = *p == '\0' || (depth == 0 && !quote && *p == separator);
        if (ends && (separator != ' ' || p > from))
            json_array_append_new(list, json_stringn(from, (size_t)(p - from)));
        if (ends)
            from = p + 1;
        if (*p == '\0')
            return list;
        if (quote)
            quote = *p == quote ? 0 : quote;
        else if (*p == '\'' || *p == '"')
            quote = *p;
        else
            depth += (*p == '[' || *p == '{' || *p == '(') -
                     (*p == ']' || *p == '}' || *p == ')');
    }
}

/* What a key is drawn from. */
struct range {
    double from, to;
    bool is_log, is_whole;
};

/* Is TEXT a range? */
static bool
read_range(const char *text, struct range *out)
{
    const char *dots = strstr(text, "..");
    char first[64], *end;
    if (!dots || (size_t)(dots - text) >= sizeof first)
        return false;
    snprintf(first, sizeof first, "%.*s", (int)(dots - text), text);
    out->from = strtod(first, &end);
    if (end == first || *end)
        return false;
    out->to = strtod(dots + 2, &end);
    out->is_log = strcmp(end, ":log") == 0;
    if (end == dots + 2 || (*end && !out->is_log))
        return false;
    out->is_whole = strspn(first, "-0123456789") == strlen(first) &&
                    strspn(dots + 2, "-0123456789") == (size_t)(end - dots - 2);
    return true;
}

static void
draw_value(const struct range *r, struct et_rng *rng, char *buf, size_t size)
{
    double u = et_rng_uniform(rng);
    double to = r->is_whole && !r->is_log ? r->to + 1 : r->to;
    double x = r->is_log ? exp(log(r->from) + u * (log(to) - log(r->from)))
                         : r->from + u * (to - r->from);
    if (r->is_whole)
        snprintf(buf, size, "%.0f", r->is_log ? round(x) : floor(x));
    else
        snprintf(buf, size, "%.4g", x);
}

/* ---- what differs ---- */

enum { KEYS = 32 };
struct dimension {
    char key[256];  /* "": each of VALUES is a whole setting, or "" for none */
    json_t *values; /* [text]; owned; one: of RANGE */
    bool is_range;
    struct range range;
};
struct space {
    struct dimension v[KEYS];
    int n;
    json_t *words; /* what does not differ */
};

static void
release(struct space *s)
{
    for (int i = 0; i < s->n; i++)
        json_decref(s->v[i].values);
    json_decref(s->words);
}

/* The word TEXT, key=value, is one of what differs, or not. */
static int
add_setting(struct cli *c, struct space *s, const char *text)
{
    const char *equals = strchr(text, '=');
    struct range range;
    json_t *values = sweep_split(equals ? equals + 1 : text, ',');
    bool is_range = equals && read_range(equals + 1, &range);
    if (!equals || (json_array_size(values) < 2 && !is_range)) {
        json_decref(values);
        json_array_append_new(s->words, json_string(text));
        return CLI_OK;
    }
    if (s->n == KEYS || (size_t)(equals - text) >= sizeof s->v[0].key) {
        json_decref(values);
        return cli_fail(c, CLI_E_OPERAND, NULL, "more than %d keys that differ", KEYS);
    }
    struct dimension *d = &s->v[s->n++];
    *d = (struct dimension){.values = values, .is_range = is_range, .range = range};
    snprintf(d->key, sizeof d->key, "%.*s", (int)(equals - text), text);
    if (is_range && (range.from >= range.to || (range.is_log && range.from <= 0)))
        return cli_fail(c, CLI_E_VALUE, NULL, "%s: a range goes up%s", text,
                        range.is_log ? ", from above 0" : "");
    if (is_range && !c->opt.random)
        return cli_fail(c, CLI_E_VALUE, "--random N draws N runs from it",
                        "%s is a range, which has no list of values", text);
    return CLI_OK;
}

static int
read_words(struct cli *c, struct space *s)
{
    static const char *const options[] = {
        [ET_OVERRIDE_UNSET] = "--unset",
        [ET_OVERRIDE_ALG] = "--alg",
        [ET_OVERRIDE_NO_ALG] = "--no-alg",
    };
    int code = CLI_OK;
    *s = (struct space){.words = json_array()};
    for (int i = 0; i < c->n_overrides && code == CLI_OK; i++) {
        const struct et_override *o = &c->override[i];
        if (o->kind == ET_OVERRIDE_SET) {
            code = add_setting(c, s, o->text);
            continue;
        }
        json_array_append_new(s->words, json_string(options[o->kind]));
        json_array_append_new(s->words, json_string(o->text));
    }
    return code;
}

/* The recipe as all runs have it but for what differs; NULL: *EXIT says how to end. */
static struct et_recipe *
load_common(struct cli *c, int *exit)
{
    struct et_override *all = c->override;
    const int n = c->n_overrides;
    struct et_override *some = calloc((size_t)n + CLI_OWN_OVERRIDES, sizeof *some);
    if (!some) {
        *exit = cli_fail(c, CLI_E_MEMORY, NULL, "out of memory: the sweep's recipe");
        return NULL;
    }
    c->n_overrides = 0;
    c->override = some;
    for (int i = 0; i < n; i++) /* lists of values are none of a recipe's */
        if (all[i].kind != ET_OVERRIDE_SET)
            some[c->n_overrides++] = all[i];
    struct et_recipe *r = cli_load_recipe(c, c->arg[0], exit);
    c->override = all;
    c->n_overrides = n;
    free(some);
    return r;
}

/* The recipe as it is, and without each of its algorithms: one more of what differs,
 * the first. */
static int
add_algorithms(struct cli *c, struct space *s)
{
    int code;
    struct et_recipe *r = load_common(c, &code);
    if (!r)
        return code;
    json_t *values = json_pack("[s]", "");
    for (int i = 0; i < r->algorithms.n; i++)
        if (!r->algorithms.v[i].off)
            json_array_append_new(values,
                                  json_sprintf("algorithms.%s=false",
                                               r->algorithms.v[i].component->name));
    et_recipe_free(&r);
    if (s->n == KEYS || json_array_size(values) < 2) {
        json_decref(values);
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        s->n == KEYS ? "more than %d keys that differ"
                                     : "--leave-one-out: the recipe has no algorithms",
                        KEYS);
    }
    memmove(&s->v[1], &s->v[0], (size_t)s->n * sizeof *s->v);
    s->n++;
    s->v[0] = (struct dimension){.values = values};
    return CLI_OK;
}

/* ---- runs ---- */

/* Value number AT of D, or a draw, as "key=value". */
static json_t *
setting(const struct dimension *d, size_t at, struct et_rng *rng)
{
    char drawn[64];
    const char *value = drawn;
    if (d->is_range)
        draw_value(&d->range, rng, drawn, sizeof drawn);
    else
        value = json_string_value(json_array_get(d->values, at));
    return *d->key ? json_sprintf("%s=%s", d->key, value) : json_string(value);
}

/* How many values D is taken from; a range is drawn from, and is one. */
static int64_t
count_values(const struct dimension *d)
{
    return d->is_range ? 1 : (int64_t)json_array_size(d->values);
}

/* At most INT64_MAX. */
static int64_t
count_combinations(const struct space *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n; i++) {
        const int64_t each = s->v[i].is_range ? SWEEP_MOST + 1 : count_values(&s->v[i]);
        if (n > INT64_MAX / each)
            return INT64_MAX;
        n *= each;
    }
    return n;
}

/* Value AT[i] of each dimension i. */
static json_t *
combination(const struct space *s, const int64_t at[KEYS], struct et_rng *rng)
{
    json_t *set = json_array();
    for (int i = s->n - 1; i >= 0; i--) {
        json_t *one = setting(&s->v[i], (size_t)at[i], rng);
        if (json_string_length(one) > 0)
            json_array_insert(set, 0, one);
        json_decref(one);
    }
    return set;
}

/* Combination K of all, the last key turning fastest. */
static json_t *
combination_at(const struct space *s, int64_t k, struct et_rng *rng)
{
    int64_t at[KEYS];
    for (int i = s->n - 1; i >= 0; i--) {
        const int64_t n = count_values(&s->v[i]);
        at[i] = k % n;
        k /= n;
    }
    return combination(s, at, rng);
}

static json_t *
new_run(json_t *set)
{
    return json_pack("{s:o, s:i}", "set", set, "rung", 0);
}

static bool
has_run(const json_t *runs, const json_t *set)
{
    json_t *run;
    size_t i;
    json_array_foreach(
        runs, i, run) if (json_equal(json_object_get(run, "set"), set)) return true;
    return false;
}

/* N combinations without order, no two alike where there are as many. */
static void
draw_runs(const struct space *s, int64_t n, uint32_t seed, json_t *runs)
{
    struct et_rng rng = et_rng_at(seed, ET_RNG_USER, 0);
    int64_t all = count_combinations(s), misses = 0;
    bool has_range = false;
    for (int i = 0; i < s->n; i++)
        has_range |= s->v[i].is_range;
    n = !has_range && all < n ? all : n;
    while ((int64_t)json_array_size(runs) < n && misses < 100 * n) {
        int64_t at[KEYS];
        for (int i = 0; i < s->n; i++)
            at[i] = (int64_t)et_rng_below(&rng, (uint64_t)count_values(&s->v[i]));
        json_t *set = combination(s, at, &rng);
        if (has_run(runs, set)) {
            json_decref(set);
            misses++;
        } else {
            json_array_append_new(runs, new_run(set));
        }
    }
}

static int
read_number(struct cli *c, const char *option, const char *text, int64_t least,
            int64_t most, int64_t *out)
{
    char *end;
    if (!text)
        return CLI_OK;
    *out = strtoll(text, &end, 10);
    if (end != text && !*end && *out >= least && *out <= most)
        return CLI_OK;
    return cli_fail(c, CLI_E_VALUE, NULL, "%s: expected %lld to %lld, got '%s'", option,
                    (long long)least, (long long)most, text);
}

static int
add_combinations(struct cli *c, const struct space *s, json_t *runs)
{
    int64_t n = 0, seed = 17, all = count_combinations(s);
    int code = read_number(c, "--random", c->opt.random, 1, SWEEP_MOST, &n);
    if (code == CLI_OK)
        code = read_number(c, "--seed", c->opt.seed, 0, UINT32_MAX, &seed);
    if (code != CLI_OK)
        return code;
    if (s->n == 0)
        return cli_fail(c, CLI_E_OPERAND, "etude sweep RECIPE optimizer.lr=0.1,0.3",
                        "nothing differs: give a key several values");
    if (n > 0) {
        draw_runs(s, n, (uint32_t)seed, runs);
        return CLI_OK;
    }
    if (all > SWEEP_MOST)
        return cli_fail(c, CLI_E_OPERAND, "--random N takes some of them",
                        "%lld combinations, and a sweep has at most %d runs",
                        (long long)all, SWEEP_MOST);
    struct et_rng none = et_rng_at(0, ET_RNG_USER, 0);
    for (int64_t k = 0; k < all; k++)
        json_array_append_new(runs, new_run(combination_at(s, k, &none)));
    return CLI_OK;
}

/* A run for each line of the file, which has settings with blanks between. */
static int
add_lines(struct cli *c, const struct space *s, json_t *runs)
{
    char line[4096];
    FILE *f = eti_open_regular(c->opt.list);
    if (!f)
        return cli_fail(c, CLI_E_NAME, NULL, "--list %s cannot be read", c->opt.list);
    int code = CLI_OK;
    if (c->opt.leave_one_out)
        code = cli_fail(c, CLI_E_OPERAND, NULL,
                        "--list has what differs, without --leave-one-out");
    else if (s->n > 0)
        code = cli_fail(c, CLI_E_OPERAND, NULL,
                        "--list has what differs, so %s has one value", s->v[0].key);
    for (int number = 1; code == CLI_OK && fgets(line, sizeof line, f); number++) {
        line[strcspn(line, "\r\n#")] = '\0';
        json_t *set = sweep_split(line, ' '), *word;
        size_t i;
        json_array_foreach(set, i, word) if (!strchr(json_string_value(word), '=') &&
                                             code == CLI_OK) code =
            cli_fail(c, CLI_E_VALUE, NULL, "%s:%d: '%s' is not key=value", c->opt.list,
                     number, json_string_value(word));
        if (code == CLI_OK && json_array_size(set) > 0)
            json_array_append_new(runs, new_run(json_incref(set)));
        json_decref(set);
    }
    fclose(f);
    if (code == CLI_OK && json_array_size(runs) == 0)
        code = cli_fail(c, CLI_E_VALUE, NULL, "--list %s has no settings", c->opt.list);
    if (code == CLI_OK && json_array_size(runs) > SWEEP_MOST)
        code = cli_fail(c, CLI_E_VALUE, NULL, "--list %s: more than %d runs",
                        c->opt.list, SWEEP_MOST);
    return code;
}

/* ---- the plan ---- */

/* "NAME-07". */
static void
name_runs(json_t *runs, const char *name)
{
    int digits = json_array_size(runs) >= 100 ? 3 : 2;
    json_t *run;
    size_t i;
    json_array_foreach(runs, i, run) json_object_set_new(
        run, "name", json_sprintf("%s-%0*d", name, digits, (int)i + 1));
}

/* The keys of which a run says something, in order. */
static json_t *
keys_of(const json_t *runs)
{
    json_t *keys = json_array(), *run, *word, *key;
    size_t i, k, m;
    json_array_foreach(runs, i, run)
        json_array_foreach(json_object_get(run, "set"), k, word)
    {
        const char *text = json_string_value(word);
        size_t n = strcspn(text, "=");
        bool known = false;
        json_array_foreach(keys, m, key) known |=
            json_string_length(key) == n &&
            memcmp(json_string_value(key), text, n) == 0;
        if (!known)
            json_array_append_new(keys, json_stringn(text, n));
    }
    return keys;
}

/* The recipe's file name without what is before and behind it. */
static void
default_name(const char *recipe, char *buf, size_t size)
{
    const char *leaf = strrchr(recipe, '/');
    leaf = leaf ? leaf + 1 : recipe;
    snprintf(buf, size, "%.*s", (int)strcspn(leaf, "."), leaf);
}

json_t *
sweep_plan_make(struct cli *c, int *exit)
{
    struct space space;
    char name[ET_RUN_NAME];
    int64_t halving = 0;
    if (c->n_args != 1) {
        *exit = cli_fail(c, CLI_E_OPERAND, "etude sweep RECIPE optimizer.lr=0.1,0.3",
                         "sweep takes one recipe");
        return NULL;
    }
    json_t *runs = json_array();
    *exit = read_words(c, &space);
    if (*exit == CLI_OK && c->opt.leave_one_out)
        *exit = add_algorithms(c, &space);
    if (*exit == CLI_OK)
        *exit = read_number(c, "--halving", c->opt.halving, 2, SWEEP_MOST, &halving);
    if (*exit == CLI_OK)
        *exit = c->opt.list ? add_lines(c, &space, runs)
                            : add_combinations(c, &space, runs);
    json_t *plan = NULL;
    if (*exit == CLI_OK) {
        if (c->opt.run_name)
            snprintf(name, sizeof name, "%s", c->opt.run_name);
        else
            default_name(c->arg[0], name, sizeof name);
        name_runs(runs, name);
        plan = json_pack("{s:s, s:s, s:b, s:O, s:o, s:I, s:O}", "sweep", name, "recipe",
                         c->arg[0], "module", c->opt.module_mode, "words", space.words,
                         "keys", keys_of(runs), "halving", (json_int_t)halving, "runs",
                         runs);
        if (plan && c->opt.recipe_folder)
            json_object_set_new(plan, "folder", json_string(c->opt.recipe_folder));
        if (plan && c->opt.metric)
            json_object_set_new(plan, "metric", json_string(c->opt.metric));
        if (!plan)
            *exit = cli_fail(c, CLI_E_MEMORY, NULL, "out of memory: the sweep's plan");
    }
    json_decref(runs);
    release(&space);
    return plan;
}

const char *
sweep_path(const struct cli *c, const char *name, char buf[PATH_MAX])
{
    const char *folder = c->opt.run_directory ? c->opt.run_directory : "runs";
    size_t n = strlen(name), ending = strlen(suffix);
    if (n > ending && strcmp(name + n - ending, suffix) == 0)
        snprintf(buf, PATH_MAX, "%s", name);
    else
        snprintf(buf, PATH_MAX, "%s/%s%s", folder, name, suffix);
    return buf;
}

/* Was it written by sweep_plan_write? */
static bool
is_plan(const json_t *plan)
{
    json_t *run;
    size_t i;
    json_t *runs = json_object_get(plan, "runs");
    bool good = json_is_string(json_object_get(plan, "sweep")) &&
                json_is_string(json_object_get(plan, "recipe")) &&
                json_is_array(json_object_get(plan, "words")) &&
                json_is_array(json_object_get(plan, "keys")) &&
                json_array_size(runs) > 0 && json_array_size(runs) <= SWEEP_MOST;
    json_array_foreach(runs, i, run) good =
        good && json_is_string(json_object_get(run, "name")) &&
        json_is_array(json_object_get(run, "set")) &&
        json_is_integer(json_object_get(run, "rung"));
    return good;
}

json_t *
sweep_plan_read(struct cli *c, const char *name, int *exit)
{
    char path[PATH_MAX];
    json_error_t error;
    sweep_path(c, name, path);
    *exit = CLI_OK;
    json_t *plan = eti_facts_load(path, 0, &error);
    if (plan && is_plan(plan))
        return plan;
    json_decref(plan);
    *exit = cli_fail(c, CLI_E_NO_RUN, NULL, "%s is no sweep that was begun", path);
    return NULL;
}

int
sweep_plan_write(struct cli *c, const char *folder, const json_t *plan)
{
    char leaf[PATH_MAX];
    int dir;
    bool made;
    char *text = json_dumps(plan, JSON_INDENT(1));
    snprintf(leaf, sizeof leaf, "%s%s",
             json_string_value(json_object_get(plan, "sweep")), suffix);
    et_status status =
        text ? eti_make_folder_at(c->cx, AT_FDCWD, folder, &made) : ET_ENOMEM;
    if (status == ET_OK)
        status = eti_open_folder(c->cx, folder, &dir);
    if (status == ET_OK) {
        status = eti_replace_at(c->cx, dir, leaf, text, strlen(text));
        eti_close(c->cx, dir);
    }
    free(text);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

/* ---- rungs ---- */

static int64_t
halving_of(const json_t *plan)
{
    return json_integer_value(json_object_get(plan, "halving"));
}

int
sweep_rungs(const json_t *plan)
{
    int64_t each = halving_of(plan);
    int rungs = 1;
    for (int64_t n = (int64_t)json_array_size(json_object_get(plan, "runs"));
         each > 1 && n >= each; n /= each)
        rungs++;
    return rungs;
}

int
sweep_left(const json_t *plan, int rung)
{
    int64_t n = (int64_t)json_array_size(json_object_get(plan, "runs"));
    for (int i = 0; i <= rung && halving_of(plan) > 1; i++)
        n /= halving_of(plan);
    return n > 0 ? (int)n : 1;
}

/* Epochs are not divided: evaluations are at their ends. */
const char *
sweep_until(const json_t *plan, int rung, struct et_time max, char buf[SWEEP_RUNG])
{
    double part = pow((double)halving_of(plan), rung + 1 - sweep_rungs(plan));
    if (rung + 1 == sweep_rungs(plan))
        return NULL;
    if (max.unit == ET_TIME_EPOCH)
        snprintf(buf, SWEEP_RUNG, "%.0fep", ceil(max.value * part));
    else
        snprintf(buf, SWEEP_RUNG, "%.6gdur", part);
    return buf;
}
