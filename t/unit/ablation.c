/* SPDX-License-Identifier: Apache-2.0 */
/* What a method bought: runs of a recipe beside the same without it, by their facts. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/library/ablation.h"
#include "t/tap.h"

/* A run that came to LOSS in SECONDS; MIXUP and EMA: whether it had them. */
static json_t *
run(const char *name, int seed, bool mixup, bool ema, double loss, double seconds)
{
    json_t *config = json_pack("{s:i, s:s, s:f, s:i}", "seed", seed, "run_name", name,
                               "optimizer.lr", 0.1, "train_data.seed", seed);
    if (mixup)
        json_object_set_new(config, "algorithms.mixup.alpha", json_real(0.2));
    else
        json_object_set_new(config, "algorithms.mixup", json_false());
    if (!ema)
        json_object_set_new(config, "algorithms.ema", json_false());
    return json_pack("{s:s, s:s, s:[s, s], s:o, s:f, s:{s:{s:f, s:f}}}", "name", name,
                     "state", "finished", "algorithms", "mixup", "ema", "config",
                     config, "train_seconds", seconds, "metrics",
                     "metrics/eval/CrossEntropy", "last", loss, "best", loss - 1);
}

static json_t *
sweep(void)
{
    return json_pack(
        "[o, o, o, o, o, o, o]", run("a-7", 3, true, false, 2.5, 9),
        run("a-6", 2, false, true, 2.4, 30), run("a-5", 1, false, true, 2.2, 20),
        run("a-4", 1, true, false, 1.5, 8), run("a-3", 3, true, true, 2, 12),
        run("a-2", 2, true, true, 1.9, 10), run("a-1", 1, true, true, 1, 8));
}

static const char *const both[] = {"mixup", "ema"};

static void
tells(void)
{
    struct eti_ablation a;
    json_t *list = sweep();
    eti_ablation_find(list, NULL, both, 2, &a);
    is_int(a.n, 2, "both methods have runs without them");
    is_str(a.run, "a-3", "beside the newest run that has all");
    is_str(a.metric, "metrics/eval/CrossEntropy", "by what the runs are known by");
    ok(a.less, "of which less is better");
    is_int(a.with.n, 3, "three seeds have all methods");
    ok(a.with.value == 1.9 && a.with.seconds == 10, "their medians count");
    const struct eti_ablation_runs *mixup = eti_ablation_of(&a, "mixup");
    const struct eti_ablation_runs *ema = eti_ablation_of(&a, "ema");
    ok(mixup && mixup->n == 2 && fabs(mixup->value - 2.3) < 1e-9 &&
           mixup->seconds == 25,
       "without one, the middle of two seeds, of the last value and not of the best");
    ok(ema && ema->n == 2 && ema->value == 2, "without the other");
    ok(!eti_ablation_of(&a, "cutmix"), "another method is not told of");
    json_decref(list);
}

static void
refuses(void)
{
    struct eti_ablation a;
    json_t *list = sweep();
    eti_ablation_find(list, NULL, both, 1, &a);
    is_int(a.n, 0, "a recipe with fewer methods is another");
    json_object_set_new(json_object_get(json_array_get(list, 1), "config"),
                        "optimizer.lr", json_real(0.3));
    json_object_set_new(json_array_get(list, 2), "state", json_string("diverged"));
    eti_ablation_find(list, NULL, both, 2, &a);
    is_int(a.n, 1, "a run with another rate and one that diverged do not count");
    ok(!eti_ablation_of(&a, "mixup"), "so nothing tells of that method");
    json_object_set_new(json_array_get(list, 0), "joined", json_string("cutmix"));
    eti_ablation_find(list, NULL, both, 2, &a);
    const struct eti_ablation_runs *ema = eti_ablation_of(&a, "ema");
    ok(ema && ema->n == 1 && ema->value == 1.5,
       "nor does one to which a method was added while it went on");
    json_decref(list);
    eti_ablation_find(NULL, NULL, both, 2, &a);
    is_int(a.n, 0, "without runs nothing is known");
}

static void
knows_the_recipe(void)
{
    struct eti_ablation a;
    json_t *list = sweep();
    json_t *config = json_pack("{s:f, s:n, s:s, s:i}", "optimizer.lr", 0.2,
                               "model.width", "precision", "auto", "seed", 99);
    eti_ablation_find(list, config, both, 2, &a);
    ok(a.n == 2 && a.n_differ == 1 && strcmp(a.differs, "optimizer.lr") == 0,
       "a setting that the runs have otherwise is told, seeds and open ones are not");
    json_object_set_new(config, "model.width", json_integer(8));
    eti_ablation_find(list, config, both, 2, &a);
    is_int(a.n, 0, "runs of another model do not count, however they are called");
    json_object_set_new(config, "model.width", json_null());
    for (size_t i = 3; i < 7; i++)
        json_object_set_new(json_object_get(json_array_get(list, i), "config"),
                            "optimizer.lr", json_real(0.2));
    json_array_append_new(list, run("b", 1, true, false, 4, 9));
    json_object_set_new(json_object_get(json_array_get(list, 7), "config"),
                        "optimizer.lr", json_real(0.2));
    eti_ablation_find(list, config, both, 2, &a);
    ok(a.n == 1 && a.n_differ == 0, "older runs as the recipe count before newer ones");
    json_decref(config);
    json_decref(list);
}

static void
differs(void)
{
    enum { MOST = 2 };
    static const struct {
        bool mixup, ema;
        int n;
        const char *first, *second, *what;
    } rows[] = {
        {true, false, 1, "optimizer.lr", "", "a setting"},
        {true, true, 2, "algorithms.ema", "optimizer.lr", "a method that the run has"},
        {false, false, 2, "algorithms.mixup", "optimizer.lr", "one that it lacks"},
        {false, true, 3, "algorithms.mixup", "algorithms.ema", "both, once each"},
    };
    json_t *config =
        json_pack("{s:f, s:f, s:f, s:b, s:s, s:i}", "optimizer.lr", 0.2,
                  "algorithms.mixup.alpha", 0.2, "algorithms.mixup.beta", 0.1,
                  "algorithms.cutmix", 0, "precision", "auto", "seed", 99);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[MOST][ETI_ABLATION_NAME] = {"", ""};
        json_t *facts = run("a", 1, rows[i].mixup, rows[i].ema, 1, 1);
        json_object_set_new(json_object_get(facts, "config"), "algorithms.mixup.beta",
                            rows[i].mixup ? json_real(0.1) : NULL);
        is_int(eti_ablation_differences(config, facts, key, MOST), rows[i].n,
               "what differs from a recipe is counted: %s", rows[i].what);
        ok(strcmp(key[0], rows[i].first) == 0 && strcmp(key[1], rows[i].second) == 0,
           "and named, methods first");
        json_decref(facts);
    }
    json_decref(config);
}

/* Runs by their facts: each value shows which runs were taken. */
static void
tells_apart(void)
{
    static const char *const two[] = {"mix", "mixup"};
    struct eti_ablation a;
    json_t *list = sweep(), *config = json_object();
    json_object_set_new(json_array_get(list, 3), "name", json_string("a-4"));
    json_t *first = json_array_get(list, 4), *last = json_array_get(list, 6);
    json_object_set_new(
        json_object_get(json_object_get(first, "metrics"), "metrics/eval/CrossEntropy"),
        "last", json_real(1.2));
    json_object_del(last, "train_seconds");
    eti_ablation_find(list, NULL, both, 2, &a);
    ok(a.with.n == 3 && fabs(a.with.value - 1.2) < 1e-9,
       "the median is that of the sorted values");
    ok(a.with.seconds == 11, "the median of seconds is that of the runs that have any");
    json_object_set_new(config, "optimizer.lr", json_real(0.2));
    json_object_set_new(config, "optimizer.momentum", json_real(0.9));
    eti_ablation_find(list, config, both, 2, &a);
    ok(a.n_differ == 2 && strcmp(a.differs, "optimizer.lr") == 0,
       "of two options that differ the first is named, and both are counted");
    json_object_set_new(config, "train_data.path", json_string("other"));
    eti_ablation_find(list, config, both, 2, &a);
    is_int(a.n, 0, "a run with other data is no run of the recipe");
    json_decref(config);
    json_decref(list);

    json_t *base = run("b-2", 1, true, false, 1, 9);
    json_t *less = run("b-1", 1, true, false, 2, 9);
    json_object_set_new(base, "algorithms", json_pack("[s, s]", "mix", "mixup"));
    json_object_set_new(less, "algorithms", json_pack("[s]", "mixup"));
    json_object_set_new(json_object_get(base, "config"), "algorithms.mix.p",
                        json_real(0.5));
    list = json_pack("[o, O]", base, less);
    eti_ablation_find(list, NULL, two, 2, &a);
    ok(a.n == 1 && eti_ablation_of(&a, "mix") != NULL,
       "a run that lacks one method is compared for this method");
    json_object_set_new(json_object_get(less, "config"), "algorithms.mixup.alpha",
                        json_real(0.7));
    eti_ablation_find(list, NULL, two, 2, &a);
    is_int(a.n, 0, "options of mixup that differ are no options of the method mix");
    json_decref(less);
    json_decref(list);
}

/* A method whose first option is false is on all the same. */
static void
knows_what_is_on(void)
{
    char key[2][ETI_ABLATION_NAME] = {"", ""};
    json_t *config = json_pack("{s:b, s:i}", "algorithms.blurpool.replace_convs", 0,
                               "algorithms.blurpool.min_channels", 16);
    json_t *facts =
        json_pack("{s:[s], s:O}", "algorithms", "blurpool", "config", config);
    is_int(eti_ablation_differences(config, facts, key, 2), 0,
           "a run does not differ from its own recipe");
    json_object_set_new(facts, "algorithms", json_array());
    is_int(eti_ablation_differences(config, facts, key, 2), 1,
           "a run that lacks the recipe's method differs in one thing");
    is_str(key[0], "algorithms.blurpool",
           "the difference of a run that lacks a method is the method");
    json_decref(facts);
    json_decref(config);
}

int
main(void)
{
    tells();
    tells_apart();
    knows_what_is_on();
    differs();
    knows_the_recipe();
    refuses();
    return done();
}
