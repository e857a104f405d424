/* SPDX-License-Identifier: Apache-2.0 */
/* The ways on from a run that has ended: which are offered, in which order, and as
 * which commands; and what it came to. The facts are JSON of this test. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "core/library/earlier.h"
#include "core/library/ending.h"
#include "core/library/facts.h"
#include "t/data/fixture.h"
#include "t/tap.h"

/* JSON with ' for ". */
static json_t *
parse(const char *quoted)
{
    char text[4096];
    json_error_t error;
    snprintf(text, sizeof text, "%s", quoted);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json_t *json = json_loads(text, 0, &error);
    if (!json)
        bail("%s: %s", error.text, text);
    return json;
}

/* "KEY: WORD WORD; KEY: ..." */
static const char *
text_of(const json_t *ways)
{
    static char text[4096];
    size_t i, k, n = 0;
    json_t *way, *word;
    text[0] = '\0';
    json_array_foreach(ways, i, way)
    {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s:", i ? "; " : "",
                              json_string_value(json_object_get(way, "key")));
        json_array_foreach(json_object_get(way, "command"), k, word) n +=
            (size_t)snprintf(text + n, sizeof text - n, " %s", json_string_value(word));
    }
    return text;
}

#define CLIP "--alg gradient_clipping(clipping_type=norm,clipping_threshold=1)"
#define KEPT "{'path':'runs/a/checkpoints/step-000000000010'}"
#define LOAD "load.path=runs/a/checkpoints/step-000000000010"

static void
test_ways(struct et_ctx *cx)
{
    static const struct {
        const char *what, *facts, *kept, *written; /* the recipe's lr; NULL: none */
        const char *ways;
    } row[] = {
        {"one that was stopped", "'state':'stopped'", KEPT, NULL,
         "r: train --resume runs/a; R: rerun runs/a; l: logs runs/a"},
        {"one that has saved nothing", "'state':'crashed'", "null", NULL,
         "R: rerun runs/a; l: logs runs/a"},
        {"one that has finished",
         "'state':'finished','config':{'max_duration':'5ep','seed':3}", KEPT, NULL,
         "r: train --resume runs/a max_duration=10ep; R: rerun runs/a seed=4; l: logs "
         "runs/a"},
        {"one that has finished and saved nothing",
         "'state':'finished','config':{'max_duration':'5ep','seed':2147483647}", "null",
         NULL, "R: rerun runs/a seed=0; l: logs runs/a"},
        {"one that has come to its target",
         "'state':'reached-target','config':{'max_duration':'100ba'}", KEPT, NULL,
         "r: train --resume runs/a --unset target max_duration=200ba; R: rerun runs/a; "
         "l: logs runs/a"},
        {"one that failed, with a seed", "'state':'failed','config':{'seed':3}", KEPT,
         NULL, "r: train --resume runs/a; R: rerun runs/a; l: logs runs/a"},
        {"one that diverged",
         "'state':'diverged','config':{'optimizer.name':'sgd','optimizer.lr':2}", KEPT,
         "2",
         "r: rerun runs/a " LOAD " optimizer.lr=0.2 " CLIP "; R: rerun runs/a; l: logs "
         "runs/a"},
        {"one whose rate was raised at the command line",
         "'state':'diverged','config':{'optimizer.name':'sgd','optimizer.lr':2}", KEPT,
         "1",
         "r: rerun runs/a " LOAD " optimizer.lr=1 " CLIP "; R: rerun runs/a; l: logs "
         "runs/a"},
        {"but not by half",
         "'state':'diverged','config':{'optimizer.name':'sgd','optimizer.lr':1.9}",
         "null", "1",
         "r: rerun runs/a optimizer.lr=0.19 " CLIP "; R: rerun runs/a; l: logs runs/a"},
        {"one with a rate out of all reason",
         "'state':'diverged','config':{'optimizer.name':'adamw','optimizer.lr':1e8}",
         "null", NULL,
         "r: rerun runs/a optimizer.lr=0.001 " CLIP "; R: rerun runs/a; l: logs "
         "runs/a"},
        {"a run whose rate is high, but not out of all reason",
         "'state':'diverged','config':{'optimizer.name':'adamw','optimizer.lr':0.05}",
         "null", NULL,
         "r: rerun runs/a optimizer.lr=0.005 " CLIP "; R: rerun runs/a; l: logs "
         "runs/a"},
        {"a run whose rate is out of all reason, with an optimizer without a usual "
         "rate",
         "'state':'diverged','config':{'optimizer.name':'sgd','optimizer.lr':1e6}",
         "null", NULL,
         "r: rerun runs/a optimizer.lr=0.1 " CLIP "; R: rerun runs/a; l: logs runs/a"},
        {"a run that came to another rate than its recipe's",
         "'state':'diverged','config':{'optimizer.name':'sgd','optimizer.lr':2},"
         "'greatest_lr':7,'metrics':{'loss':{'max':90}}",
         "null", NULL,
         "r: rerun runs/a optimizer.lr=0.7 " CLIP "; R: rerun runs/a; l: logs runs/a"},
        {"a run that has trained longer than its recipe says",
         "'state':'finished','ep':7,'ba':800,'sp':9000,'config':{'max_duration':'5ep'}",
         KEPT, NULL,
         "r: train --resume runs/a max_duration=14ep; R: rerun runs/a; l: logs runs/a"},
        {"a run that has trained longer than its recipe's batches",
         "'state':'finished','ep':7,'ba':800,'sp':9000,"
         "'config':{'max_duration':'500ba'}",
         KEPT, NULL,
         "r: train --resume runs/a max_duration=1600ba; R: rerun runs/a; l: logs "
         "runs/a"},
        {"a run that has trained longer than its recipe's samples",
         "'state':'finished','ep':7,'ba':800,'sp':9000,"
         "'config':{'max_duration':'500sp'}",
         KEPT, NULL,
         "r: train --resume runs/a max_duration=18000sp; R: rerun runs/a; l: logs "
         "runs/a"},
        {"a run whose length is in tokens, which its facts do not count",
         "'state':'finished','ep':7,'ba':800,"
         "'config':{'max_duration':'500tok'}",
         KEPT, NULL,
         "r: train --resume runs/a max_duration=1000tok; R: rerun runs/a; l: logs "
         "runs/a"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{'directory':'runs/a',%s}", row[i].facts);
        unlink("runs/a/recipe.yaml");
        if (row[i].written) {
            FILE *f = fopen("runs/a/recipe.yaml", "w");
            if (!f ||
                fprintf(f, "optimizer: {name: sgd, lr: %s}\n", row[i].written) < 0 ||
                fclose(f) != 0)
                bail("no recipe");
        }
        json_t *facts = parse(text), *kept = json_loads("null", JSON_DECODE_ANY, NULL);
        if (strcmp(row[i].kept, "null") != 0) {
            json_decref(kept);
            kept = parse(row[i].kept);
        }
        json_t *ways = eti_ending_ways(cx, facts, kept);
        is_str(text_of(ways), row[i].ways, "%s", row[i].what);
        json_decref(ways);
        json_decref(kept);
        json_decref(facts);
    }
}

/* What it came to: of a metric of its evaluations, and of no run that goes on. */
static void
test_end(struct et_ctx *cx)
{
    json_t *facts = parse(
        "{'directory':'runs/a','name':'a','state':'finished','sp':300,"
        "'train_seconds':10,'metrics':{'loss/train/total':{'best':0.1,'best_ba':9},"
        "'metrics/train/Accuracy':{'best':0.99,'best_ba':8},"
        "'metrics/eval/Accuracy':{'best':0.9,'best_ba':7,'n':2}}}");
    json_t *end = eti_ending(cx, facts);
    const json_t *best = json_object_get(end, "best");
    const char *metric = json_string_value(json_object_get(best, "metric"));
    is_str(metric ? metric : "none", "metrics/eval/Accuracy",
           "a run is measured by its evaluations");
    ok(json_number_value(json_object_get(best, "value")) == 0.9 &&
           json_integer_value(json_object_get(best, "ba")) == 7,
       "by the best of them, with the batch");
    is_near(json_number_value(json_object_get(end, "speed")), 30, 1e-12,
            "and has a speed");
    ok(json_is_null(json_object_get(end, "kept")), "it has saved nothing");
    ok(json_is_null(json_object_get(end, "earlier")), "and none was before it");
    json_decref(end);
    json_object_set_new(facts, "state", json_string("running"));
    end = eti_ending(cx, facts);
    ok(!end, "a run that goes on has no end");
    json_decref(end);
    json_decref(facts);
}

/* A run in the list for eti_earlier_find. */
static json_t *
run_of(const char *name, const char *state, double started, double best)
{
    return json_pack("{s:s, s:s, s:s, s:f, s:{s:{s:f, s:f}, s:{s:f, s:f}}}", "name",
                     name, "directory", name, "state", state, "started", started,
                     "metrics", "metrics/eval/Accuracy", "best", best, "last", 0.01,
                     "metrics/eval/CrossEntropy", "best", 10 - best, "last", 0.02);
}

/* The best of the runs before this one, and how many there are. */
static void
test_earlier(void)
{
    struct eti_earlier out;
    json_t *facts = run_of("own", "finished", 50, 0.9);
    json_t *list = json_pack(
        "[o, o, o, o, o, o, o]", run_of("late", "finished", 51, 0.99),
        run_of("own", "finished", 50, 0.98), run_of("with", "reached-target", 50, 0.4),
        run_of("broken", "crashed", 20, 0.97), run_of("same", "finished", 15, 0.6),
        run_of("good", "finished", 10, 0.6), run_of("poor", "finished", 5, 0.5));
    json_object_del(json_object_get(json_array_get(list, 6), "metrics"),
                    "metrics/eval/CrossEntropy");
    eti_earlier_find(list, facts, "metrics/eval/Accuracy", &out);
    is_int(out.n, 4, "only runs that finished before this one count as earlier");
    is_str(json_string_value(json_object_get(out.facts, "name")), "same",
           "the best earlier run is named, the newer one of two");
    ok(out.best == 0.6, "the best earlier run has its best value");
    eti_earlier_find(list, facts, "metrics/eval/CrossEntropy", &out);
    is_int(out.n, 3, "only earlier runs with the metric count");
    ok(out.best == 9.4, "the best earlier run of a loss has the least value");
    is_str(out.metric, "metrics/eval/CrossEntropy",
           "the earlier run is found by the metric that was asked for");
    eti_earlier_find(list, facts, NULL, &out);
    is_str(out.metric, "metrics/eval/Accuracy",
           "without a metric of its own a run is compared by that of an earlier one");
    json_decref(list);
    json_decref(facts);
}

/* A run in FOLDER/NAME, of the recipe FOLDER, with one value of METRIC. */
static void
write_run(struct et_ctx *cx, const char *folder, const char *name, int started,
          const char *seed, const char *metric, double value)
{
    static const unsigned char id[ETI_EVENTS_ID] = {1};
    struct eti_events_writer w;
    char directory[128], path[192];
    struct et_log_entry entry = {.value = value};
    const struct et_record r = {
        .kind = ET_RECORD_EVAL, .t = started, .ba = 1, .entry = &entry, .n = 1};
    snprintf(directory, sizeof directory, "%s/%s", folder, name);
    if ((mkdir(folder, 0700) != 0 && errno != EEXIST) || mkdir(directory, 0700) != 0)
        bail("no folder");
    snprintf(path, sizeof path, "%s/run.json", directory);
    FILE *f = fopen(path, "w");
    if (!f ||
        fprintf(f,
                "{\"name\": \"%s\", \"recipe\": \"%s\", \"state\": \"finished\", "
                "\"started\": %d, \"ended\": %d}",
                name, folder, started, started + 1) < 0 ||
        fclose(f) != 0)
        bail("no run");
    snprintf(path, sizeof path, "%s/recipe.resolved.yaml", directory);
    f = fopen(path, "w");
    if (!f || fprintf(f, "%s", seed) < 0 || fclose(f) != 0)
        bail("no recipe");
    snprintf(entry.name, sizeof entry.name, "%s", metric);
    need(cx, eti_events_begin(cx, directory, id, &w));
    eti_events_write(&w, &r);
    eti_events_end(&w);
}

/* Beside the best run before it: by how much, which of them is better, whether with the
 * same seed. */
static void
test_difference(struct et_ctx *cx)
{
    static const struct {
        const char *metric;
        double own, theirs;
        const char *seed, *their_seed, *says;
    } row[] = {
        {"metrics/eval/Accuracy", 0.5, 0.75, "seed: 3\n", "seed: 3\n",
         "{\"better\": false, \"difference\": -0.25, \"name\": \"theirs\", "
         "\"same_seed\": true, \"value\": 0.75}"},
        {"metrics/eval/Accuracy", 1, 0.75, "seed: 3\n", "seed: 4\n",
         "{\"better\": true, \"difference\": 0.25, \"name\": \"theirs\", "
         "\"same_seed\": false, \"value\": 0.75}"},
        {"metrics/eval/CrossEntropy", 2, 0.5, "seed: 3\n", "tags: [a]\n",
         "{\"better\": false, \"difference\": 1.5, \"name\": \"theirs\", "
         "\"same_seed\": false, \"value\": 0.5}"},
        {"metrics/eval/CrossEntropy", 0.25, 0.5, "tags: [a]\n", "tags: [a]\n",
         "{\"better\": true, \"difference\": -0.25, \"name\": \"theirs\", "
         "\"same_seed\": false, \"value\": 0.5}"},
        {"metrics/eval/CrossEntropy", 0.5, 0.5, "tags: [a]\n", "tags: [a]\n",
         "{\"better\": false, \"difference\": 0.0, \"name\": \"theirs\", "
         "\"same_seed\": false, \"value\": 0.5}"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char folder[32], own[64];
        json_t *facts;
        snprintf(folder, sizeof folder, "beside%zu", i);
        write_run(cx, folder, "theirs", 100, row[i].their_seed, row[i].metric,
                  row[i].theirs);
        write_run(cx, folder, "own", 200, row[i].seed, row[i].metric, row[i].own);
        snprintf(own, sizeof own, "%s/own", folder);
        need(cx, eti_facts_read(cx, own, &facts));
        json_t *end = eti_ending(cx, facts);
        char *text = json_dumps(json_object_get(end, "earlier"),
                                JSON_SORT_KEYS | JSON_ENCODE_ANY);
        is_str(text ? text : "nothing", row[i].says, "%g beside %g of %s", row[i].own,
               row[i].theirs, row[i].metric);
        free(text);
        json_decref(end);
        json_decref(facts);
    }
}

/* The metric that a run is measured by. */
static void
test_main_metric(void)
{
    static const struct {
        const char *metrics, *main, *what;
    } row[] = {
        {"'loss/train':{'best':1},'metrics/train/Accuracy':{'best':1}", "none",
         "by no metric of its training"},
        {"'metrics/eval/mIoU':{'best':1},'metrics/eval/MSE':{'best':1}",
         "metrics/eval/mIoU", "by the first metric of its evaluations"},
        {"'metrics/eval/MSE':{'best':1},'metrics/a/MulticlassAccuracy':{'best':1}",
         "metrics/a/MulticlassAccuracy", "by an accuracy, where there is one"},
        {"'metrics/eval/Accuracy':{'best':null},'metrics/eval/MSE':{'best':1}",
         "metrics/eval/MSE", "by a metric that has a best value"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{'metrics':{%s}}", row[i].metrics);
        json_t *facts = parse(text);
        const char *main = eti_facts_main_metric(facts);
        is_str(main ? main : "none", row[i].main, "a run is measured %s", row[i].what);
        json_decref(facts);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    if (chdir(scratch_folder()) != 0 ||
        setenv("XDG_STATE_HOME", scratch_folder(), 1) != 0 ||
        mkdir("runs", 0700) != 0 || mkdir("runs/a", 0700) != 0)
        bail("no folder");
    test_ways(cx);
    test_end(cx);
    test_earlier();
    test_difference(cx);
    test_main_metric();
    et_ctx_free(&cx);
    return done();
}
