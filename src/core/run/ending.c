/* ending.c: see ending.h.
 *
 * A run that is resumed gives, bit for bit, what it would have given without a break. So
 * it may be made longer, but its rate stays. A run that diverged is therefore followed
 * by a new one with a lower rate, which loads the last checkpoint. */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/callbacks/callbacks.h"
#include "core/run/ending.h"
#include "core/run/facts.h"
#include "core/run/index.h"
#include "core/run/state.h"
#include "etude/checkpoint.h"

/* ---- what came out ---- */

/* The metric that the run is known by: an accuracy of its evaluations, else the first of
 * them; NULL. */
static const char *
main_metric(const json_t *facts)
{
    const char *name, *first = NULL;
    json_t *metrics = json_object_get(facts, "metrics"), *v;
    json_object_foreach(metrics, name, v)
    {
        if (strncmp(name, "metrics/", 8) != 0 ||
            strncmp(name, "metrics/train/", 14) == 0 ||
            !json_is_number(json_object_get(v, "best")))
            continue;
        if (strstr(name, "Accuracy"))
            return name;
        first = first ? first : name;
    }
    return first;
}

static double
best_of(const json_t *facts, const char *metric)
{
    const json_t *m = json_object_get(json_object_get(facts, "metrics"), metric);
    const json_t *best = json_object_get(m, "best");
    return json_is_number(best) ? json_number_value(best) : NAN;
}

/* The runs of the same recipe that lie beside this one, or are known elsewhere; NULL. */
static json_t *
list_others(struct et_ctx *cx, const json_t *facts)
{
    char folder[PATH_MAX];
    struct eti_index *index = NULL;
    json_t *others = NULL;
    const char *recipe = json_string_value(json_object_get(facts, "recipe"));
    const char *own = json_string_value(json_object_get(facts, "directory"));
    const char *slash = own ? strrchr(own, '/') : NULL;
    if (!recipe || !slash || slash == own)
        return NULL;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - own), own);
    if (eti_index_open(cx, NULL, &index) != ET_OK ||
        eti_index_look(index, folder, false) != ET_OK ||
        eti_index_of_recipe(index, recipe, ETI_INDEX_PAGE, &others) != ET_OK)
        et_error_clear(cx); /* the end is told without those before it */
    eti_index_close(&index);
    return others;
}

/* The best of the OTHERS that finished before, as `earlier`. */
static json_t *
find_earlier(const json_t *facts, const json_t *others, const char *metric)
{
    const json_t *found = NULL, *config = json_object_get(facts, "config");
    const char *own = json_string_value(json_object_get(facts, "directory"));
    const bool less = eti_less_is_better(metric);
    const double value = best_of(facts, metric);
    const double started = json_number_value(json_object_get(facts, "started"));
    double best = NAN;
    for (size_t i = 0; i < json_array_size(others); i++) {
        const json_t *one = json_array_get(others, i);
        const char *where = json_string_value(json_object_get(one, "directory"));
        const char *state = json_string_value(json_object_get(one, "state"));
        double theirs = best_of(one, metric);
        if (!where || (own && strcmp(where, own) == 0) || isnan(theirs) ||
            !(json_number_value(json_object_get(one, "started")) <= started) ||
            eti_state_kind_of(state) != ETI_STATE_DONE ||
            (!isnan(best) && (less ? theirs >= best : theirs <= best)))
            continue;
        best = theirs;
        found = one;
    }
    if (!found)
        return json_null();
    const json_t *seed = json_object_get(config, "seed");
    const json_t *their_seed =
        json_object_get(json_object_get(found, "config"), "seed");
    return json_pack(
        "{s:s?, s:f, s:f, s:b, s:b}", "name",
        json_string_value(json_object_get(found, "name")), "value", best, "difference",
        value - best, "better", less ? value < best : value > best, "same_seed",
        seed && their_seed && json_equal(seed, their_seed));
}

/* The newest checkpoint, as `kept`. */
static json_t *
find_kept(struct et_ctx *cx, const char *directory)
{
    char folder[PATH_MAX], path[PATH_MAX + 64];
    struct et_checkpoint_info *list = NULL;
    int n = 0, damaged, unfinished;
    if (!directory)
        return json_null();
    snprintf(folder, sizeof folder, "%s/checkpoints", directory);
    if (et_checkpoint_list(cx, folder, &list, &n, &damaged, &unfinished) != ET_OK) {
        et_error_clear(cx);
        n = 0;
    }
    json_t *kept = json_null();
    if (n > 0) {
        snprintf(path, sizeof path, "%s/%s", folder, list[0].name);
        kept = json_pack("{s:s, s:s, s:i}", "label",
                         *list[0].label ? list[0].label : list[0].name, "path", path,
                         "n", n);
    }
    et_free(cx, list);
    return kept;
}

/* ---- the ways on ---- */

/* Adds a way; WORD ends with NULL. */
static void
add_way(json_t *ways, const char *key, const char *text, const char *const *word)
{
    json_t *command = json_array();
    for (; *word; word++)
        json_array_append_new(command, json_string(*word));
    json_array_append_new(
        ways, json_pack("{s:s, s:s, s:o}", "key", key, "text", text, "command", command));
}

/* "max_duration=8ep" of a run of 4ep: twice as long. False: its length cannot
 * be doubled. */
static bool
twice_as_long(const json_t *facts, char *buf, size_t size)
{
    char fact[ETI_FACT_TEXT];
    const char *text = eti_facts_get(facts, "max_duration", fact);
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    if (digits == 0 || digits > 12)
        return false;
    snprintf(buf, size, "max_duration=%lld%.16s", 2 * strtoll(text, NULL, 10),
             text + digits);
    return true;
}

/* A tenth of the rate that the run diverged at. Where that is over 1 the rate was most
 * likely mistyped, and a tenth of 1e8 diverges again: a usual one. 0: it is not known. */
static double
gentler_rate(const json_t *facts)
{
    const json_t *config = json_object_get(facts, "config");
    const double rate = json_number_value(json_object_get(config, "optimizer.lr")) / 10;
    return rate > 1 ? 0.1 : rate;
}

/* A run that diverged: gentler, from what was saved before it did. */
static void
add_gentler(json_t *ways, const json_t *facts, const char *run, const json_t *kept)
{
    char rate[64] = "", load[PATH_MAX + 96] = "";
    const double lr = gentler_rate(facts);
    const char *path = json_string_value(json_object_get(kept, "path"));
    const char *word[9] = {"rerun", run};
    int n = 2;
    if (path) {
        snprintf(load, sizeof load, "load.path=%s", path);
        word[n++] = load;
    }
    if (lr > 0) {
        snprintf(rate, sizeof rate, "optimizer.lr=%.3g", lr);
        word[n++] = rate;
    }
    word[n++] = "--alg";
    word[n++] = "gradient_clipping(clipping_type=norm,clipping_threshold=1)";
    add_way(ways, "r",
            path ? "go back to the last checkpoint, gentler"
                 : "from the beginning, gentler",
            word);
}

static json_t *
find_ways(const json_t *facts, const json_t *kept)
{
    char longer[64], seed[48];
    const char *run = json_string_value(json_object_get(facts, "directory"));
    const char *state = json_string_value(json_object_get(facts, "state"));
    const json_t *own = json_object_get(json_object_get(facts, "config"), "seed");
    const enum eti_state_kind kind = eti_state_kind_of(state);
    const bool has_kept = json_is_object(kept);
    json_t *ways = json_array();
    if (!run)
        return ways;
    if (state && strcmp(state, "diverged") == 0) {
        add_gentler(ways, facts, run, kept);
    } else if (kind == ETI_STATE_DONE) {
        if (has_kept && twice_as_long(facts, longer, sizeof longer))
            add_way(ways, "r", "resume, train longer",
                    (const char *[]){"train", "--resume", run, longer, NULL});
    } else if (has_kept) {
        add_way(ways, "r", "resume where it was saved",
                (const char *[]){"train", "--resume", run, NULL});
    }
    if (kind == ETI_STATE_DONE && json_is_integer(own)) {
        snprintf(seed, sizeof seed, "seed=%lld",
                 (long long)(json_integer_value(own) + 1) & 0x7fffffff);
        add_way(ways, "R", "rerun with another seed",
                (const char *[]){"rerun", run, seed, NULL});
    } else {
        add_way(ways, "R", "rerun the recipe from the beginning",
                (const char *[]){"rerun", run, NULL});
    }
    add_way(ways, "l", "its log", (const char *[]){"logs", run, NULL});
    return ways;
}

json_t *
eti_ending(struct et_ctx *cx, const json_t *facts)
{
    const char *metric = main_metric(facts);
    const json_t *entry = json_object_get(json_object_get(facts, "metrics"),
                                          metric ? metric : "");
    if (eti_facts_goes_on(facts))
        return NULL;
    json_t *others = metric ? list_others(cx, facts) : NULL;
    json_t *earlier = metric ? find_earlier(facts, others, metric) : json_null();
    json_decref(others);
    json_t *kept =
        find_kept(cx, json_string_value(json_object_get(facts, "directory")));
    json_t *best =
        metric ? json_pack("{s:s, s:f, s:O?}", "metric", metric, "value",
                           best_of(facts, metric), "ba", json_object_get(entry, "best_ba"))
               : json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "best", best, "earlier", earlier, "ways",
                     find_ways(facts, kept), "kept", kept);
}
