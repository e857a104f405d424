/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c: see ending.h.
 *
 * A run that is resumed gives, bit for bit, what it would have given without a break.
 * So it may be made longer, but its rate stays. A run that diverged is therefore
 * followed by a new one with a lower rate, which loads the last checkpoint. */
#include "config.h"

#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/seams.h"
#include "core/callbacks/callbacks.h"
#include "core/library/earlier.h"
#include "core/library/ending.h"
#include "core/library/facts.h"
#include "core/library/index.h"
#include "core/library/list.h"
#include "core/library/state.h"
#include "core/recipe/recipe.h"
#include "etude/checkpoint.h"
#include "etude/recipe.h"

/* ---- what came out ---- */

/* The best of the OTHERS that finished before, as `earlier`. */
static json_t *
find_earlier(const json_t *facts, const json_t *others, const char *metric)
{
    struct eti_earlier found;
    const json_t *config = json_object_get(facts, "config");
    const bool less = eti_less_is_better(metric);
    const double value = eti_facts_best(facts, metric);
    eti_earlier_find(others, facts, metric, &found);
    if (!found.facts)
        return json_null();
    const json_t *seed = json_object_get(config, "seed");
    const json_t *their_seed =
        json_object_get(json_object_get(found.facts, "config"), "seed");
    return json_pack("{s:s?, s:f, s:f, s:b, s:b}", "name",
                     json_string_value(json_object_get(found.facts, "name")), "value",
                     found.best, "difference",
                     /* (JSON has no infinity) */
                     fmax(fmin(value - found.best, DBL_MAX), -DBL_MAX), "better",
                     less ? value < found.best : value > found.best, "same_seed",
                     seed && their_seed && json_equal(seed, their_seed));
}

/* The checkpoints, as `kept`. */
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
    json_t *all = json_array();
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, list[i].name);
        json_array_append_new(all,
                              json_pack("{s:s, s:s}", "label",
                                        *list[i].label ? list[i].label : list[i].name,
                                        "path", path));
    }
    et_free(cx, list);
    json_t *kept = n > 0 ? json_copy(json_array_get(all, 0)) : json_null();
    if (n > 0) {
        json_object_set_new(kept, "n", json_integer(n));
        json_object_set(kept, "all", all);
    }
    json_decref(all);
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
    json_array_append_new(ways, json_pack("{s:s, s:s, s:o}", "key", key, "text", text,
                                          "command", command));
}

/* What the run has trained in UNIT, as FACTS count it; 0: they do not. */
static int64_t
trained_in(const json_t *facts, const char *unit)
{
    const bool is_fact =
        strcmp(unit, "ep") == 0 || strcmp(unit, "ba") == 0 || strcmp(unit, "sp") == 0;
    return is_fact ? json_integer_value(json_object_get(facts, unit)) : 0;
}

/* "max_duration=8ep" of a run of 4ep: twice as long, or as what it has trained where
 * that is more. False: its length cannot be doubled. */
static bool
twice_as_long(const json_t *facts, char *buf, size_t size)
{
    char fact[ETI_FACT_TEXT];
    const char *text = eti_facts_get(facts, "max_duration", fact);
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    if (digits == 0 || digits > 12)
        return false;
    const int64_t length = strtoll(text, NULL, 10);
    const int64_t trained = trained_in(facts, text + digits);
    snprintf(buf, size, "max_duration=%lld%.16s",
             2 * (long long)(trained > length ? trained : length), text + digits);
    return true;
}

/* The greatest rate that the run came to; what its recipe sets where no batch said any.
 * 0: not known. */
static double
reached_rate(const json_t *facts)
{
    const double most = json_number_value(json_object_get(facts, "greatest_lr"));
    return most > 0 ? most
                    : json_number_value(json_object_get(
                          json_object_get(facts, "config"), "optimizer.lr"));
}

/* The text of recipe.yaml in the folder RUN, N bytes; NULL: it cannot be read, or is
 * too long for one. The caller frees it. */
static char *
read_recipe(struct et_ctx *cx, const char *run, size_t *n)
{
    struct stat st;
    int folder = -1, fd = -1;
    char *text = NULL;
    et_status status = eti_open_folder(cx, run, &folder);
    if (status == ET_OK)
        status = eti_open_at(cx, folder, "recipe.yaml", O_RDONLY | O_NONBLOCK, 0, &fd);
    if (status == ET_OK && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (size_t)st.st_size <= eti_yaml_limits.bytes) {
        *n = (size_t)st.st_size;
        text = malloc(*n + 1);
    }
    if (text && eti_read_all(cx, fd, "recipe.yaml", text, *n, 0) != ET_OK) {
        free(text);
        text = NULL;
    }
    if (fd >= 0)
        eti_close(cx, fd);
    if (folder >= 0)
        eti_close(cx, folder);
    et_error_clear(cx);
    return text;
}

/* The rate that is written in recipe.yaml, without what the command line changed. 0: it
 * is not there. */
static double
written_rate(struct et_ctx *cx, const char *run)
{
    static const struct eti_source source = {.name = "recipe.yaml"};
    struct et_diagnostics errors = {0};
    struct eti_arena arena;
    struct et_value *root = NULL;
    double rate = 0;
    size_t n = 0;
    char *text = read_recipe(cx, run, &n);
    eti_arena_init(&arena, cx, 64 << 10);
    if (text && eti_yaml_parse(&arena, text, n, &source, &eti_yaml_limits, &errors,
                               &root) != ET_OK)
        et_error_clear(cx);
    const struct et_value *lr =
        root ? eti_value_get(eti_value_get(root, "optimizer"), "lr") : NULL;
    if (lr && (lr->type == ET_VALUE_FLOAT || lr->type == ET_VALUE_INT))
        rate = lr->type == ET_VALUE_INT ? (double)lr->i : lr->f;
    eti_arena_release(&arena);
    free(text);
    return rate;
}

/* What the run's optimizer takes where a recipe sets no rate; of those that ask for
 * one, what SGD is mostly begun with. 0: not known. */
static double
default_rate(const json_t *facts)
{
    const char *name = json_string_value(
        json_object_get(json_object_get(facts, "config"), "optimizer.name"));
    const struct et_component *optimizer =
        name ? et_registry_find(NULL, ET_KIND_OPTIMIZER, name) : NULL;
    for (const struct et_option *o = optimizer ? optimizer->options : NULL;
         o && o->name; o++)
        if (strcmp(o->name, "lr") == 0)
            return o->def ? strtod(o->def, NULL) : 0.1;
    return 0;
}

/* Below the rate that the run diverged at: the recipe's own, where that was raised at
 * the command line; else a tenth, or the optimizer's usual rate where a tenth would
 * still be far above that, as of 1e8. 0: no rate is known. */
static double
gentler_rate(struct et_ctx *cx, const json_t *facts, const char *run)
{
    const double reached = reached_rate(facts), written = written_rate(cx, run);
    const double usual = default_rate(facts);
    if (written > 0 && written <= reached / 2)
        return written;
    return usual > 0 && reached / 10 > 10 * usual ? usual : reached / 10;
}

/* A run that diverged: gentler, from what was saved before it did. */
static void
add_gentler(struct et_ctx *cx, json_t *ways, const json_t *facts, const char *run,
            const json_t *kept)
{
    char rate[64] = "", load[PATH_MAX + 96] = "";
    const double lr = gentler_rate(cx, facts, run);
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

/* A run that came to its target would end at once with it. */
static void
add_longer(json_t *ways, const char *run, const char *longer, const char *state)
{
    const char *word[7] = {"train", "--resume", run};
    int n = 3;
    if (strcmp(state, "reached-target") == 0) {
        word[n++] = "--unset";
        word[n++] = "target";
    }
    word[n] = longer;
    add_way(ways, "r", "resume, train longer", word);
}

json_t *
eti_ending_ways(struct et_ctx *cx, const json_t *facts, const json_t *kept)
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
        add_gentler(cx, ways, facts, run, kept);
    } else if (kind == ETI_STATE_DONE) {
        if (has_kept && twice_as_long(facts, longer, sizeof longer))
            add_longer(ways, run, longer, state);
    } else if (has_kept) {
        add_way(ways, "r", "resume where it was saved",
                (const char *[]){"train", "--resume", run, NULL});
    }
    if (kind == ETI_STATE_DONE && json_is_integer(own)) {
        snprintf(seed, sizeof seed, "seed=%lld",
                 (long long)(((uint64_t)json_integer_value(own) + 1) & 0x7fffffff));
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
    const char *metric = eti_facts_main_metric(facts);
    const json_t *entry =
        json_object_get(json_object_get(facts, "metrics"), metric ? metric : "");
    if (eti_facts_goes_on(facts))
        return NULL;
    json_t *others = metric ? eti_earlier_list(cx, facts) : NULL;
    json_t *earlier = metric ? find_earlier(facts, others, metric) : json_null();
    json_decref(others);
    json_t *kept =
        find_kept(cx, json_string_value(json_object_get(facts, "directory")));
    json_t *best = metric ? json_pack("{s:s, s:f, s:O?}", "metric", metric, "value",
                                      eti_facts_best(facts, metric), "ba",
                                      json_object_get(entry, "best_ba"))
                          : json_null();
    const double speed = eti_run_speed(facts);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "best", best, "speed",
                     isfinite(speed) ? json_real(speed) : json_null(), "earlier",
                     earlier, "ways", eti_ending_ways(cx, facts, kept), "kept", kept);
}
