/* SPDX-License-Identifier: Apache-2.0 */
/* What Compose says each method bought: a table of the runs with and without it, and
 * which runs of other recipes count. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/library/facts.h"
#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/unit/store.h"
#include "tui/compose.h"

static const char recipe[] = "max_duration: 10ba\n"
                             "model: {name: mlp}\n"
                             "train_data: {name: synthetic_images, batch_size: 4}\n"
                             "eval_data: {name: synthetic_images}\n"
                             "optimizer: {name: sgd, lr: 0.02}\n"
                             "algorithms:\n"
                             "  label_smoothing: {smoothing: 0.1}\n"
                             "  ema:\n"
                             "  mixup:\n";
static const char *const methods[] = {"label_smoothing", "ema", "mixup"};
enum { METHODS = sizeof methods / sizeof *methods };

static struct et_ctx *cx;

static struct compose *
compose_of(struct tui_app *app)
{
    return tui_app_state(app, TUI_IN_compose);
}

/* The settings of the recipe that is open. */
static json_t *
settings(struct compose *c)
{
    char *text;
    if (et_recipe_resolved(cx, eti_sketch_shown(c->sketch), &text) != ET_OK)
        bail("no settings: %s", et_error_get(cx)->message);
    json_t *config = eti_facts_config(cx, text, strlen(text), NULL);
    et_free(cx, text);
    if (!config)
        bail("the settings cannot be read");
    return config;
}

/* A run of the recipe without the method LESS (-1: with all), whose KEY was VALUE,
 * unless that is NULL. */
static json_t *
run(struct compose *c, int seed, int less, const char *key, json_t *value, double loss,
    double seconds)
{
    json_t *config = settings(c), *names = json_array();
    char off[64];
    json_object_set_new(config, "seed", json_integer(seed));
    for (int i = 0; i < METHODS; i++) {
        snprintf(off, sizeof off, "algorithms.%s", methods[i]);
        json_array_append_new(names, json_string(methods[i]));
        if (i == less)
            json_object_set_new(config, off, json_false());
    }
    if (key)
        json_object_set_new(config, key, value);
    return json_pack("{s:s, s:s, s:o, s:o, s:f, s:{s:{s:f}}}", "name", "made", "state",
                     "finished", "algorithms", names, "config", config, "train_seconds",
                     seconds, "metrics", "metrics/eval/CrossEntropy", "last", loss);
}

/* Runs of the recipe and of those without each, whose KEY was VALUE. */
static json_t *
sweep(struct compose *c, const char *key, json_t *value)
{
    static const double loss[] = {0.5, 0.75, 0.46};
    json_t *list = json_array();
    json_array_append_new(list, run(c, 1, -1, key, json_incref(value), 0.5, 20));
    for (int i = 0; i < METHODS; i++)
        json_array_append_new(list,
                              run(c, 1, i, key, json_incref(value), loss[i], 10 + i));
    json_decref(value);
    return list;
}

static struct tui_app *
open_app(int rows, int cols)
{
    const struct tui_compose_setup setup = {.runs = "runs"};
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_compose,
        .rows = rows,
        .cols = cols,
    };
    FILE *f = fopen("r.yaml", "w");
    if (!f || fputs(recipe, f) < 0 || fclose(f) != 0)
        bail("cannot write r.yaml");
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK ||
        tui_compose_setup(app, &setup) != ET_OK ||
        tui_compose_open(app, "r.yaml") != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    picture_draw(app);
    return app;
}

/* RUNS are those of the recipe from now on; taken. */
static void
give(struct tui_app *app, json_t *runs)
{
    struct compose *c = compose_of(app);
    json_decref(c->runs_alike);
    c->runs_alike = runs;
    c->bought_of = -1;
    picture_draw(app);
}

static void
press(struct tui_app *app, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;) {
        tui_app_key(app, key);
        picture_draw(app);
    }
}

static void
test_table(void)
{
    struct tui_app *app = open_app(36, 120);
    press(app, "<tab>G");
    picture_has("not known yet: etude sweep r.yaml",
                "without a run it says how to know");
    give(app, sweep(compose_of(app), NULL, NULL));
    picture_has("CrossEntropy with all: .5000", "with runs, what all of them came to");
    picture_has("ema             +0.25    x0.55  ######",
                "without one: how much more it is, how long it took, and a bar");
    picture_has("mixup           -0.04    x0.60  -",
                "of one that made it worse a line, as long as that is of the most");
    picture_has("label_smoothing +0       x0.50", "of one that changed nothing none");
    ok(strstr(picture, "| ema   ") && strstr(picture, "| mixup   ") &&
           strstr(picture, "| ema   ") < strstr(picture, "| mixup   "),
       "what bought most stands first");
    picture_has("one run each: another seed", "and that nobody knows what a seed does");
    json_t *two = sweep(compose_of(app), NULL, NULL);
    json_array_append_new(two, run(compose_of(app), 2, -1, NULL, NULL, 0.6, 20));
    give(app, two);
    picture_has("CrossEntropy with all: .5500", "of two seeds the middle");
    picture_has("medians of runs that differ", "which is said");
    press(app, "y");
    picture_has("copied", "the command line is copied as with other runs");
    tui_app_free(&app);
}

static void
test_sizes(void)
{
    struct tui_app *app = open_app(24, 80);
    give(app, sweep(compose_of(app), NULL, NULL));
    press(app, "jjjjjjjj");
    picture_has("| ema             +0.25    x0.55", "80x24 has room for the change");
    press(app, "/ema<enter>");
    picture_has("without it CrossEntropy .7500", "a method says its own value,");
    picture_has("           +0.25  time x0.55", "and below it the change");
    tui_app_free(&app);
    app = open_app(50, 200);
    give(app, sweep(compose_of(app), NULL, NULL));
    press(app, "<tab>G");
    picture_has("ema                   .7500   +0.25    x0.55  ##########",
                "200x50 also for what it came to");
    picture_has("CrossEntropy .5000 in 20s (the same settings)",
                "and tells of runs of the recipe, that which is as it is first,");
    picture_has("in 11s (without ema)", "and of others what they have otherwise");
    tui_app_free(&app);
}

/* Of the same name, and yet other recipes. */
static void
test_others(void)
{
    struct tui_app *app = open_app(36, 120);
    struct compose *c = compose_of(app);
    press(app, "<tab>G");
    give(app, sweep(c, "model.name", json_string("resnet8")));
    picture_has("not known yet", "runs of another model do not count");
    give(app, sweep(c, "train_data.name", json_string("cifar10")));
    picture_has("not known yet", "nor of other data");
    give(app, sweep(c, "optimizer.lr", json_real(0.3)));
    picture_has("CrossEntropy with all: .5000", "those of another rate do,");
    picture_has("not as the recipe:", "which is said");
    picture_has("recipe: optimizer.lr", "with the key");
    json_t *both = sweep(c, "optimizer.lr", json_real(0.3)), *same;
    same = sweep(c, NULL, NULL);
    for (size_t i = 0; i < json_array_size(same); i++) {
        json_t *metric =
            json_object_get(json_object_get(json_array_get(same, i), "metrics"),
                            "metrics/eval/CrossEntropy");
        json_object_set_new(metric, "last", json_real(0.25 + 0.25 * (i == 2)));
    }
    json_array_extend(both, same);
    json_decref(same);
    give(app, both);
    picture_has("CrossEntropy with all: .2500", "older runs as the recipe come first");
    ok(!strstr(picture, "not as the recipe"), "and then nothing differs");
    tui_app_free(&app);
}

/* Of a metric of which more is better a method bought what it is worse without. */
static void
test_more(void)
{
    struct tui_app *app = open_app(50, 200);
    json_t *list = sweep(compose_of(app), NULL, NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *all = json_object_get(json_array_get(list, i), "metrics");
        json_object_set(all, "metrics/eval/Accuracy",
                        json_object_get(all, "metrics/eval/CrossEntropy"));
        json_object_del(all, "metrics/eval/CrossEntropy");
    }
    press(app, "<tab>G");
    give(app, list);
    picture_has("| mixup                 .4600   -0.04    x0.60  ##         |",
                "the one that bought most is the first, by its share of the most");
    picture_has("| label_smoothing       .5000   +0       x0.50             |",
                "then the one that changed nothing");
    picture_has("| ema                   .7500   +0.25    x0.55  ---------- |",
                "and last the one that made it worse");
    tui_app_free(&app);
}

/* The line of runs of the recipe: those first that differ least. */
static void
test_alike(void)
{
    static const struct {
        const char *name, *key;
        double value;
        const char *more;
    } rows[] = {
        {"far-elk", "optimizer.lr", 0.3, "train_data.batch_size"},
        {"lr-bat", "optimizer.lr", 0.3, NULL},
        {"same-owl", NULL, 0, NULL},
        {"mix-ant", "algorithms.label_smoothing.smoothing", 0.25, NULL},
        {"old-cat", "optimizer.lr", 0.5, NULL},
    };
    struct tui_app *app = open_app(50, 400);
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *one =
            run(compose_of(app), (int)i, -1, rows[i].key, json_real(rows[i].value),
                0.5 + (double)i / 100, 3 + (double)i);
        json_t *config = json_object_get(one, "config");
        json_object_set_new(one, "name", json_string(rows[i].name));
        if (rows[i].more) {
            json_object_set_new(config, rows[i].more, json_integer(77));
            json_object_set_new(config, "optimizer.momentum", json_real(0.8));
        }
        if (i == 1) /* its best is not its last */
            json_object_set_new(json_object_get(json_object_get(one, "metrics"),
                                                "metrics/eval/CrossEntropy"),
                                "best", json_real(0.125));
        json_array_append_new(list, one);
    }
    json_array_append_new(list, run(compose_of(app), 1, 2, NULL, NULL, 0.9, 9));
    json_t *far = json_incref(json_array_get(list, 0));
    give(app, list);
    picture_has("\n same-owl CrossEntropy .5200 in 5s (the same settings)"
                "    lr-bat CrossEntropy .1250 in 4s (optimizer.lr 0.3)"
                "    mix-ant CrossEntropy .5300 in 6s "
                "(algorithms.label_smoothing.smoothing 0.25)"
                "    old-cat CrossEntropy .5400 in 7s (optimizer.lr 0.5)\n",
                "of those that differ alike the newest, with what they have otherwise");
    /* What is not known, and methods that are on or off there. */
    json_t *dull = run(compose_of(app), 9, -1, "optimizer.lr", json_real(0.7), 1, 1);
    json_object_del(dull, "metrics");
    json_object_del(dull, "train_seconds");
    json_object_set_new(dull, "state", json_string("failed"));
    json_t *more = run(compose_of(app), 1, -1, NULL, NULL, 0.25, 8);
    json_array_append_new(json_object_get(more, "algorithms"), json_string("cutmix"));
    list = json_pack("[o, o, o, o]", far, dull, more,
                     run(compose_of(app), 1, 2, NULL, NULL, 0.9, 75));
    give(app, list);
    picture_has("\n made failed (optimizer.lr 0.7)"
                "    made CrossEntropy .2500 in 8s (with cutmix)"
                "    made CrossEntropy .9000 in 1m15s (without mixup)"
                "    far-elk CrossEntropy .5000 in 3s "
                "(train_data.batch_size 77, optimizer.lr 0.3, 1 more)\n",
                "methods that are on or off there, and of many settings the first two");
    tui_app_free(&app);
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-bought.XXXXXX";
    struct et_alloc_stats stats;
    (void)argv;
    if (argc > 1) /* the screen asks this program for an estimate */
        return 0;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    setenv("XDG_STATE_HOME", directory, 1);
    test_table();
    test_sizes();
    test_others();
    test_more();
    test_alike();
    free(picture);
    picture = NULL;
    if (chdir("/") != 0)
        bail("cannot leave");
    store_remove(directory);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
