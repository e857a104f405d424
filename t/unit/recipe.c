/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes: the examples, what wins over what, every refusal and its place, and the
 * resolved text that reads back to itself. */
#include "etude/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etude/ctx.h"
#include "core/recipe/recipe.h"
#include "t/tap.h"
#include "t/unit/recipe_fakes.h"
#include "t/unit/recipe_read.h"

static const char *const variables[] = {
    "HOME=/home/x",
    "DATA=/big",
    "N=64",
    "ETUDE_SET_optimizer__lr=0.5",
    "ETUDE_SET_seed=9",
    "ETUDE_SET_run_name=with__two",
    NULL,
};

static const char *
source_path(const char *name)
{
    static char buf[4096];
    const char *root = getenv("ET_SRCDIR");
    snprintf(buf, sizeof buf, "%s/t/recipes/%s", root ? root : ".", name);
    return buf;
}

/* ---- the examples ---- */

static void
test_examples(void)
{
    is_int(load(source_path("vision.yaml")), ET_OK, "the vision example is a recipe");
    for (int i = 0; i < errors.n; i++)
        diag("%s: %s", errors.v[i].path, errors.v[i].message);
    if (!recipe)
        return;
    is_str(recipe->model.component->name, "resnet8", "it names its model");
    const struct et_data_options *train = recipe->train_data.options;
    const struct et_data_options *eval = recipe->eval_data.v[0].options;
    is_int(train->split * 10 + eval->split, ET_SPLIT_TRAIN * 10 + ET_SPLIT_TEST,
           "data to train is the train split, to evaluate the test split");
    ok(train->shuffle && !eval->shuffle, "data to train is shuffled, to evaluate not");
    is_int(train->transforms.n, 3, "transforms are components in order");
    is_str(train->transforms.v[1].component->name, "horizontal_flip", "by their names");
    is_int(recipe->algorithms.n, 3, "algorithms are an ordered mapping");
    is_str(recipe->algorithms.v[2].component->name, "ema", "in the user's order");
    const struct fake *ema = recipe->algorithms.v[2].options;
    is_near(ema->half_life.value, 100, 0, "with the user's options");
    is_int(recipe->callbacks.n, 4, "the four default callbacks are there");
    is_int(recipe->loggers.n, 1, "and one logger");
    is_int(recipe->checkpoint.keep, 3, "sections are filled in");
    ok(recipe->profiler.off && !recipe->checkpoint.off,
       "what is off by default is off");

    is_int(load(source_path("text.yaml")), ET_OK, "the text example is a recipe");
    for (int i = 0; i < errors.n; i++)
        diag("%s: %s", errors.v[i].path, errors.v[i].message);
    if (!recipe)
        return;
    eval = recipe->eval_data.v[0].options;
    is_int(eval->batch_size, 32, "evaluation takes the batch size of training");
    is_int(recipe->loggers.n, 2, "a logger named with no options has its defaults");
}

/* ---- forms ---- */

static void
test_forms(void)
{
    parse(LEAST "optimizer: {name: adamw, lr: 1e-3}\nscheduler: [constant, linear]\n"
                "algorithms: [ema, cutmix: {alpha: .5}]\n"
                "callbacks: {lr_monitor: false, early_stopper: }\n");
    is_str(line_of("algorithms.ema.half_life"),
           "algorithms.ema.half_life = 1000ba  (default)",
           "a list of algorithms is read as the mapping");
    is_str(line_of("algorithms.cutmix.alpha"),
           "algorithms.cutmix.alpha = 0.5  (recipe.yaml:6:35)", "with their options");
    is_str(line_of("callbacks.lr_monitor"),
           "callbacks.lr_monitor = false  (recipe.yaml:7:25)",
           "a default is turned off by name");
    is_int(recipe ? recipe->callbacks.n : 0, 5, "the other defaults stay");
    is_str(line_of("scheduler.1.name"), "scheduler.1.name = linear  (recipe.yaml:5:23)",
           "several schedulers are a list");
    parse(LEAST);
    is_str(line_of("optimizer.lr"), "optimizer.lr = 0.1  (default)",
           "without an optimizer it is decoupled_sgdw with lr 0.1");
    is_str(line_of("scheduler.0.name"), "scheduler.0.name = constant  (default)",
           "without a scheduler it is constant");
    parse(LEAST "scheduler: cosine_decay\n");
    is_str(line_of("scheduler.0.name"), "scheduler.0.name = cosine  (recipe.yaml:4:12)",
           "Composer's names of schedulers are read");
    parse(LEAST "algorithms: [ema, cutmix, ema: {half_life: 5ba}]\n");
    is_int(recipe ? recipe->algorithms.n : 0, 3, "a list may name one algorithm twice");
    parse(LEAST "algorithms: [{name: ema}, {cutmix: }, {name: cutmix, alpha: .25}]\n");
    is_str(line_of("algorithms.0.ema.half_life"),
           "algorithms.0.ema.half_life = 1000ba  (default)",
           "an item of a list may be a name alone");
    is_str(line_of("algorithms.2.cutmix.alpha"),
           "algorithms.2.cutmix.alpha = 0.25  (recipe.yaml:4:61)",
           "or a name beside options");
    is_int(recipe ? recipe->algorithms.n : 0, 3, "or without any");
    parse(LEAST "checkpoint: false\nprofiler:\neval_data: bible_kjv\n");
    ok(recipe && recipe->checkpoint.off && !recipe->profiler.off,
       "false turns a section off, an empty one turns it on");
    parse(LEAST "train_data.x: 1\n");
    is_int(errors.v[0].code, ET_E_UNKNOWN, "a dotted key in a file is no path");
    parse(LEAST "model: resnet8\n");
    is_int(errors.v[0].code, ET_E_DUPLICATE,
           "a key given twice is refused at the top too");
}

/* ---- what wins ---- */

static void
test_precedence(void)
{
    static const struct et_override overrides[] = {
        {ET_OVERRIDE_SET, "optimizer.lr=2.0"},
        {ET_OVERRIDE_SET, "eval_data.0.metrics=[Accuracy]"},
        {ET_OVERRIDE_ALG, "cutmix(alpha=.5)"},
        {ET_OVERRIDE_ALG, "ema(half_life=7ba, update_interval=2ba)"},
        {ET_OVERRIDE_NO_ALG, "blurpool"},
        {ET_OVERRIDE_SET, "algorithms.label_smoothing.smoothing=.25"},
        {ET_OVERRIDE_UNSET, "tags"},
        {ET_OVERRIDE_SET, "optimizer.betas=[.8,.9]"},
    };
    const char *text = LEAST "seed: 1\ntags: [x]\noptimizer: adamw\n"
                             "eval_data: {name: bible_kjv}\n"
                             "algorithms: [blurpool, {ema: {half_life: 3ba}}, "
                             "label_smoothing: {smoothing: .1}]\n";
    parse_with(text, overrides, 8, variables);
    is_str(line_of("optimizer.lr"), "optimizer.lr = 2  (command line optimizer.lr=2.0)",
           "the command line wins over the environment");
    is_str(line_of("seed"), "seed = 9  (environment ETUDE_SET_seed)",
           "the environment wins over the recipe");
    is_str(line_of("run_name"),
           "run_name = with__two  (environment ETUDE_SET_run_name)",
           "two underscores are a dot in a key, not in its value");
    is_str(line_of("optimizer.name"), "optimizer.name = adamw  (recipe.yaml:6:12)",
           "a path into a component written as its name keeps the name");
    is_str(line_of("optimizer.betas"),
           "optimizer.betas = [0.8, 0.9]  (command line optimizer.betas=[.8,.9])",
           "a list is replaced");
    is_str(line_of("eval_data.0.metrics"),
           "eval_data.0.metrics = [Accuracy]  (command line "
           "eval_data.0.metrics=[Accuracy])",
           "index 0 is the one component where a list may stand");
    is_str(line_of("algorithms.cutmix.alpha"),
           "algorithms.cutmix.alpha = 0.5  (command line cutmix(alpha=.5))",
           "--alg appends");
    is_str(line_of("algorithms.ema.half_life"),
           "algorithms.ema.half_life = 7ba  (command line "
           "ema(half_life=7ba, update_interval=2ba))",
           "--alg changes in place");
    is_int(recipe ? recipe->algorithms.n : 0, 4, "and nothing is there twice");
    is_str(line_of("algorithms.blurpool"),
           "algorithms.blurpool = false  (command line blurpool)",
           "--no-alg turns off");
    is_str(line_of("algorithms.label_smoothing.smoothing"),
           "algorithms.label_smoothing.smoothing = 0.25  (command line "
           "algorithms.label_smoothing.smoothing=.25)",
           "a path finds an item of a list by its name");
    is_str(line_of("tags"), "tags = []  (default)", "--unset gives the default back");
}

/* Where an argument of --alg ends: commas and brackets within brackets and quotes are
 * its own. */
static void
test_arguments(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"cutmix(layers=[a, b], alpha=.5)", "[a, b]"},
        {"cutmix(layers=[f(x), b], alpha=.5)", "[f(x), b]"},
        {"cutmix(layers=['a,b)', \"c'],\"], alpha=.5)", "[\"a,b)\", \"c'],\"]"},
        {"cutmix( alpha=.5 , layers=[a, b])", "[a, b]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct et_override o = {ET_OVERRIDE_ALG, rows[i].text};
        char want[256];
        parse_with(LEAST, &o, 1, NULL);
        snprintf(want, sizeof want, "algorithms.cutmix.layers = %s  (command line %s)",
                 rows[i].want, rows[i].text);
        is_str(line_of("algorithms.cutmix.layers"), want, "--alg %s has a list",
               rows[i].text);
        snprintf(want, sizeof want, "algorithms.cutmix.alpha = 0.5  (command line %s)",
                 rows[i].text);
        is_str(line_of("algorithms.cutmix.alpha"), want,
               "and the argument beside it is its own");
    }
}

/* Paths into a list that must stay one: a name stands in it twice. */
static void
test_lists(void)
{
    static const struct et_override overrides[] = {
        {ET_OVERRIDE_SET, "algorithms.cutmix.alpha=.25"},
        {ET_OVERRIDE_NO_ALG, "blurpool"},
        {ET_OVERRIDE_ALG, "label_smoothing(smoothing=.1)"},
        {ET_OVERRIDE_SET, "algorithms.2.half_life=8ba"},
        {ET_OVERRIDE_UNSET, "algorithms.gradient_clipping"},
    };
    parse_with(
        LEAST
        "algorithms: [blurpool, cutmix: {alpha: 1}, {name: ema, half_life: 5ba},\n"
        "  ema, gradient_clipping: {clipping_threshold: 1}]\n",
        overrides, 5, NULL);
    is_str(
        line_of("algorithms.1.cutmix.alpha"),
        "algorithms.1.cutmix.alpha = 0.25  (command line algorithms.cutmix.alpha=.25)",
        "an option of an item is set by its name");
    is_str(line_of("algorithms.0.blurpool"),
           "algorithms.0.blurpool = false  (command line blurpool)",
           "an item is turned off by its name");
    is_str(
        line_of("algorithms.2.ema.half_life"),
        "algorithms.2.ema.half_life = 8ba  (command line algorithms.2.half_life=8ba)",
        "one of two by its index");
    is_str(line_of("algorithms.4.label_smoothing.smoothing"),
           "algorithms.4.label_smoothing.smoothing = 0.1  (command line "
           "label_smoothing(smoothing=.1))",
           "--alg appends to a list");
    is_int(recipe ? recipe->algorithms.n : 0, 5, "--unset takes an item out");
    parse_with(LEAST "algorithms: [{name: ema}]\n",
               &(struct et_override){ET_OVERRIDE_SET, "algorithms.ema.half_life=3ba"},
               1, NULL);
    is_str(
        line_of("algorithms.ema.half_life"),
        "algorithms.ema.half_life = 3ba  (command line algorithms.ema.half_life=3ba)",
        "an item that is a name alone takes options too");
    static const char *const off[] = {"false", "null"};
    for (int i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof text, LEAST "checkpoint: %s\n", off[i]);
        parse_with(text, &(struct et_override){ET_OVERRIDE_SET, "checkpoint.keep=4"}, 1,
                   NULL);
        ok(recipe && !recipe->checkpoint.off && recipe->checkpoint.keep == 4,
           "a key of a section that is %s turns it on", off[i]);
    }
    parse_with(LEAST "scheduler: constant\n",
               &(struct et_override){ET_OVERRIDE_SET, "scheduler.0=linear"}, 1, NULL);
    is_str(line_of("scheduler.0.name"),
           "scheduler.0.name = linear  (command line scheduler.0=linear)",
           "item 0 of one component is replaced whole");
    parse_with(LEAST "eval_data: bible_kjv\n",
               &(struct et_override){ET_OVERRIDE_SET, "eval_data.0.label=x"}, 1, NULL);
    is_str(line_of("eval_data.0.label"),
           "eval_data.0.label = x  (command line eval_data.0.label=x)",
           "and an option of it is set");
}

/* A list of one component is as that component. */
static void
test_only_item(void)
{
    static const struct {
        const char *text, *set, *path, *want, *what;
    } rows[] = {
        {"eval_data: [{name: bible_kjv}]\n", "eval_data.subset_num_batches=3",
         "eval_data.0.subset_num_batches", "3", "{name: NAME}"},
        {"eval_data: [bible_kjv]\n", "eval_data.subset_num_batches=3",
         "eval_data.0.subset_num_batches", "3", "NAME"},
        {"scheduler: [linear]\n", "scheduler.alpha_f=0.5", "scheduler.0.alpha_f", "0.5",
         "a scheduler"},
        {"algorithms: [ema]\n", "algorithms.cutmix.alpha=0.5",
         "algorithms.cutmix.alpha", "0.5", "but a component is added"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256], want[256];
        snprintf(text, sizeof text, LEAST "%s", rows[i].text);
        parse_with(text, &(struct et_override){ET_OVERRIDE_SET, rows[i].set}, 1, NULL);
        snprintf(want, sizeof want, "%s = %s  (command line %s)", rows[i].path,
                 rows[i].want, rows[i].set);
        is_str(line_of(rows[i].path), want, "the option of a list's only item: %s",
               rows[i].what);
    }
    parse_with(LEAST "eval_data: [{name: bible_kjv, subset_num_batches: 3}]\n",
               &(struct et_override){ET_OVERRIDE_UNSET, "eval_data.subset_num_batches"},
               1, NULL);
    ok(recipe && strcmp(line_of("eval_data.0.subset_num_batches"), "") != 0 &&
           !strstr(line_of("eval_data.0.subset_num_batches"), "= 3"),
       "and is unset");
    parse_with(LEAST "eval_data: [{name: bible_kjv, label: a}, {name: bible_kjv}]\n",
               &(struct et_override){ET_OVERRIDE_SET, "eval_data.subset_num_batches=3"},
               1, NULL);
    ok(recipe == NULL, "of two items neither is meant");
}

static void
test_bad_overrides(void)
{
    static const struct {
        enum et_override_kind kind;
        const char *text, *want;
    } rows[] = {
        {ET_OVERRIDE_SET, "optimizer.lrr=1",
         "error E1205: unknown key 'optimizer.lrr' (did you mean 'optimizer.lr'?)"},
        {ET_OVERRIDE_SET, "optimzer.lr=1",
         "error E1205: unknown key 'optimzer' (did you mean 'optimizer'?)"},
        {ET_OVERRIDE_SET, "optimizer.lr=fast",
         "error E1203: optimizer.lr: expected number >= 0, got \"fast\""},
        {ET_OVERRIDE_SET, "optimizer.lr=.inf",
         "error E1203: optimizer.lr: expected number >= 0, got .inf"},
        {ET_OVERRIDE_SET, "tags=[x, ghp_0123456789abcdefghijklmnop]",
         "error E1210: tags: the value looks like a secret; recipes are copied and "
         "shown"},
        {ET_OVERRIDE_SET, "include=x.yaml",
         "error E1213: include: only a recipe's file can include others"},
        {ET_OVERRIDE_SET, "run_name=a/b",
         "error E1203: run_name: 'a/b' is not a run's name: letters, digits and . _ - "
         "only, and one of the first two to begin with"},
        {ET_OVERRIDE_SET, "optimizer.lr=[1",
         "error E1213: optimizer.lr: list not closed"},
        {ET_OVERRIDE_SET, "lr",
         "error E1213: 'lr' is not KEY=VALUE\n  hint: write optimizer.lr=0.1"},
        {ET_OVERRIDE_SET, "a..b=1",
         "error E1213: a..b: a path is keys with single dots between"},
        {ET_OVERRIDE_SET, "scheduler.3=linear",
         "error E1213: scheduler.3: the list ends at 0, there is no 3"},
        {ET_OVERRIDE_SET, "seed.x=1",
         "error E1213: seed.x: seed is no mapping or list"},
        {ET_OVERRIDE_UNSET, "optimizer.eps",
         "error E1213: optimizer.eps is not set, nothing to unset"},
        {ET_OVERRIDE_ALG, "cutmix(alpha=.5",
         "error E1213: 'cutmix(alpha=.5' is not NAME or NAME(KEY=VALUE, ...)"},
        {ET_OVERRIDE_ALG, "", "error E1213: '' is not the name of an algorithm"},
        {ET_OVERRIDE_ALG, "cutmx",
         "error E1205: algorithms.cutmx: unknown algorithm 'cutmx' (did you mean "
         "'cutmix'?)"},
        {ET_OVERRIDE_ALG, "cutmix(alpha={a: 1, b: 2})",
         "error E1203: algorithms.cutmix.alpha: expected number > 0, got a mapping"},
        {ET_OVERRIDE_ALG, "cutmix(alpa=1)",
         "error E1205: unknown key "
         "'algorithms.cutmix.alpa' (did you mean "
         "'algorithms.cutmix.alpha'?)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct et_override o = {rows[i].kind, rows[i].text};
        char got[2048] = "accepted";
        parse_with(LEAST
                   "seed: 1\noptimizer: {name: adamw, lr: 1}\nscheduler: [constant]\n",
                   &o, 1, NULL);
        if (errors.n)
            et_diagnostic_text(&errors.v[0], got, sizeof got);
        is_str(got, rows[i].want, "override '%s' is refused", rows[i].text);
    }
}

/* ---- refusals ---- */

static void
test_refusals(void)
{
    refuses("model: resnet8\ntrain_data: {name: fashion_mnist, batch_size: 1}\n",
            "error E1206: recipe.yaml:1:1: key 'max_duration' is missing");
    refuses(LEAST "optimizer:\n  name: sgd\n  lr: 0.1\n  momentun: 0.9\n",
            "error E1205: recipe.yaml:7:3: optimizer: unknown key 'momentun' "
            "(did you mean 'momentum'?)");
    refuses(LEAST "optimizer: {sgd: {lr: 0.1}}\n",
            "error E1205: recipe.yaml:4:13: optimizer: unknown key 'sgd'\n"
            "  hint: write {name: sgd, ...}, its options beside it");
    refuses(LEAST "epochs: 3\n", "error E1205: recipe.yaml:4:1: unknown key 'epochs' "
                                 "(did you mean 'max_duration'?)");
    refuses(LEAST "train_dataloader: {}\n",
            "error E1205: recipe.yaml:4:1: unknown key 'train_dataloader' "
            "(did you mean 'train_data'?)");
    refuses(LEAST "save_interval: 1ep\n",
            "error E1205: recipe.yaml:4:1: unknown key 'save_interval' "
            "(did you mean 'checkpoint.interval'?)");
    refuses(
        LEAST "precision: amp\n",
        "error E1203: recipe.yaml:4:12: precision: expected one of auto, fp32, "
        "amp_fp16, amp_bf16, amp_fp8, got \"amp\"\n  hint: did you mean 'amp_fp16'?");
    refuses(LEAST "deterministic: yes\n",
            "error E1203: recipe.yaml:4:16: deterministic: expected true or false, "
            "got \"yes\"\n  hint: write true");
    refuses(LEAST "optimizer: {name: adamw, lr: 1e-3x}\n",
            "error E1203: recipe.yaml:4:30: optimizer.lr: expected number >= 0, "
            "got \"1e-3x\"\n  hint: write 1e-3");
    refuses(LEAST "optimizer: {name: adamv, lr: 1}\n",
            "error E1205: recipe.yaml:4:19: optimizer: unknown optimizer 'adamv' "
            "(did you mean 'adam'?)");
    refuses(LEAST "optimizer: [sgd]\n",
            "error E1203: recipe.yaml:4:12: optimizer: expected name or mapping with "
            "name, got a list of 1 item");
    refuses(LEAST "eval_data: {batch_size: 1}\n",
            "error E1206: recipe.yaml:4:12: eval_data: key 'name' is missing");
    refuses(LEAST "algorithms: {label_smoothing: }\n",
            "error E1206: recipe.yaml:4:14: algorithms.label_smoothing: "
            "key 'smoothing' is missing");
    refuses(
        LEAST "algorithms: {ema: 5}\n",
        "error E1203: recipe.yaml:4:19: algorithms.ema: expected mapping of options, "
        "or false, got 5");
    refuses(LEAST "algorithms: ema\n",
            "error E1203: recipe.yaml:4:13: algorithms: expected mapping from names to "
            "options, got \"ema\"");
    refuses(
        LEAST "seed: 4294967296\n",
        "error E1203: recipe.yaml:4:7: seed: expected integer >= 0 and <= 4294967295, "
        "got 4294967296");
    refuses(LEAST "iteration_length: 5ba\n",
            "error E1203: recipe.yaml:4:19: iteration_length: expected time in ep or "
            "tok > 0 "
            "and <= 9.007199255e+15, got \"5ba\"");
    refuses(
        LEAST "grad_accum: 2\nmicrobatch_size: 8\n",
        "error E1207: recipe.yaml:5:18: microbatch_size: microbatch_size 8 excludes "
        "grad_accum 2\n  hint: leave one of the two out");
    refuses(
        LEAST "eval_data: [bible_kjv, bible_kjv]\n",
        "error E1207: recipe.yaml:4:24: eval_data: eval_data 0 and 1 are both called "
        "'eval'\n  hint: give each a label of its own");
    refuses(
        LEAST "target: accuracy\n",
        "error E1203: recipe.yaml:4:9: target: expected a metric and its goal such as "
        "accuracy>=.765, got \"accuracy\"");
    refuses(LEAST "checkpoint: {name: ../../x}\n",
            "error E1208: recipe.yaml:4:20: checkpoint.name: output '../../x' leaves "
            "the run "
            "directory");
    refuses(LEAST "loggers:\n  api_token: abc\n",
            "error E1210: recipe.yaml:5:3: loggers.api_token: 'api_token' looks like a "
            "secret; recipes are copied and shown");
    refuses(LEAST "loggers: {jsnl: }\n",
            "error E1205: recipe.yaml:4:11: loggers.jsnl: unknown logger 'jsnl' "
            "(did you mean 'jsonl'?)");
    refuses(LEAST "loggers: {wandb: 1}\n",
            "error E1205: recipe.yaml:4:11: loggers.wandb: unknown logger 'wandb'\n"
            "  hint: known: jsonl, tensorboard, csv");
    refuses(LEAST "launch:\n  nproc: 2\n  api_token: abc\n",
            "error E1210: recipe.yaml:6:3: launch: 'api_token' looks like a secret; "
            "recipes "
            "are copied and shown");
    refuses(LEAST "run_name: ghp_0123456789abcdefghijklmnop\n",
            "error E1210: recipe.yaml:4:11: run_name: the value looks like a secret; "
            "recipes "
            "are copied and shown");
    refuses(LEAST "run_name: hf_0123456789abcdefghijklmnopqrstuvwx\n",
            "error E1210: recipe.yaml:4:11: run_name: the value looks like a secret; "
            "recipes "
            "are copied and shown");
    refuses(
        LEAST "run_name: ${env:AWS_KEY}\n",
        "error E1209: recipe.yaml:4:11: environment variable AWS_KEY is not allowed in "
        "recipes\n  hint: only your own config.yaml can allow it");
    refuses(LEAST "run_name: ${env:ABSENT}\n",
            "error E1209: recipe.yaml:4:11: environment variable ABSENT is not set");
    refuses(LEAST "run_name: ${variables.x}\n",
            "error E1209: recipe.yaml:4:11: ${variables.x} is not known here\n"
            "  hint: write the value, or an include");
    refuses(
        "- a\n",
        "error E1203: recipe.yaml:1:1: a recipe is a mapping of keys, not a list of 1 "
        "item");
    refuses(
        LEAST "include: x.yaml\n",
        "error E1208: recipe.yaml:4:10: include 'x.yaml' needs a recipe in a folder");
    refuses("max_duration: 1ep\nmodel: resnet8\n",
            "error E1206: recipe.yaml:1:1: key 'train_data' is missing");
    refuses("max_duration: 1ep\nmodel: resnet8\ntrain_data: bible_kjv\n",
            "error E1206: recipe.yaml:3:13: train_data: key 'batch_size' is missing");
    refuses("max_duration: 1ep\nmodel: resnet8\n"
            "train_data: {name: bible_kjv, batch_size: }\n",
            "error E1206: recipe.yaml:3:13: train_data: key 'batch_size' is missing");
    refuses(
        "max_duration: 1ep\nmodel: resnet8\n"
        "train_data: {name: bible_kjv, batch_size: -4}\n",
        "error E1203: recipe.yaml:3:43: train_data.batch_size: expected integer >= 1 "
        "and <= 16777216, got -4");
}

static void
test_many(void)
{
    parse(LEAST "optimizer: {name: adamw, lr: 1e-3x}\n");
    is_str(et_error_get(cx)->message,
           "recipe.yaml:4:30: optimizer.lr: expected number >= 0, got \"1e-3x\"",
           "the context's error is the first of the list");
    is_str(et_error_get(cx)->hint, "write 1e-3", "with its hint");
    parse(LEAST "eval_interval: NUM_UPDATE_STEPS_PER_EPOCH*2\n");
    is_str(et_error_get(cx)->hint, "write 2ep",
           "another library's placeholder is a unit");
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text, LEAST);
    for (int i = 0; i < 30; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "zz%d: 1\n", i);
    snprintf(text + n, sizeof text - n, "seed: x\n");
    parse(text);
    is_int(errors.n, 20, "twenty errors are kept");
    is_int(errors.total, 31, "all are counted");
    bool in_order = true;
    for (int i = 0; i < errors.n; i++)
        in_order &= errors.v[i].line == 4 + i;
    ok(in_order, "in the order of the file");
    parse("seed: x\nmodel: {name: resnet8, num_classes: no, zzzz: 1}\nbogus: 1\n"
          "max_duration: soon\n");
    is_int(errors.total, 6, "every fault of a file is reported at once");
}

/* ---- files ---- */

static void
test_files(void)
{
    char folder[] = "recipe-test-XXXXXX";
    char path[64], got[2048];
    if (!mkdtemp(folder))
        bail("no folder to write in");
    put_file(folder, "main.yaml",
             "include: [base.yaml, parts/more.yaml]\ntrain_data: {batch_size: 50, "
             "path: ././d/x}\n"
             "optimizer: {name: sgd, lr: .3}\ntags: [c]\n");
    put_file(folder, "base.yaml",
             LEAST "tags: [a, b]\noptimizer: {name: adamw, lr: .1, betas: [.1, .2]}\n");
    snprintf(path, sizeof path, "%s/parts", folder);
    mkdir(path, 0700);
    put_file(path, "more.yaml", "include: even.yaml\nseed: 4\n");
    put_file(path, "even.yaml", "seed: 3\nrun_name: deep\n");
    put_file(folder, "bad.yaml",
             LEAST
             "include: [../x.yaml, /etc/x.yaml, .., parts/.., parts/../base.yaml,\n"
             "  link.yaml, nothing.yaml, parts]\n");
    put_file(folder, "loop.yaml", LEAST "include: loop.yaml\n");
    snprintf(path, sizeof path, "%s/link.yaml", folder);
    if (symlink("base.yaml", path) != 0)
        bail("no link");

    snprintf(path, sizeof path, "%s/main.yaml", folder);
    is_int(load(path), ET_OK, "a recipe may include files beneath its folder");
    is_str(line_of("seed"), "seed = 4  (include parts/more.yaml:2:7)",
           "an including file wins over what it includes");
    is_str(line_of("run_name"), "run_name = deep  (include parts/even.yaml:2:11)",
           "includes of includes are relative to their own folder");
    ok(strncmp(line_of("tags"), "tags = [c]  (", 13) == 0, "lists are replaced");
    is_str(line_of("train_data.name"),
           "train_data.name = fashion_mnist  (include base.yaml:3:20)",
           "mappings merge");
    ok(recipe && !strstr(line_of("optimizer.lr"), "0.1"),
       "the recipe wins over includes");
    if (recipe) {
        const struct et_data_options *d = recipe->train_data.options;
        ok(d->path[0] == '/' && strstr(d->path, folder) && strstr(d->path, "/d/x") &&
               !strstr(d->path, "/./"),
           "a path is relative to the recipe's folder: %s", d->path);
    }

    snprintf(path, sizeof path, "%s/bad.yaml", folder);
    load(path);
    static const char *const whys[] = {
        "include '../x.yaml' leaves the recipe's folder",
        "include '/etc/x.yaml' leaves the recipe's folder",
        "include '..' leaves the recipe's folder",
        "include 'parts/..' leaves the recipe's folder",
        "include 'parts/../base.yaml' leaves the recipe's folder",
        "cannot read link.yaml: it is a link",
        "cannot read nothing.yaml: No such file or directory",
        "cannot read parts: Is a directory",
    };
    for (size_t i = 0; i < sizeof whys / sizeof *whys; i++)
        is_str(errors.v[i].message, whys[i], "%s", whys[i]);
    snprintf(path, sizeof path, "%s/loop.yaml", folder);
    load(path);
    is_str(errors.v[0].message, "include 'loop.yaml' is nested deeper than 4",
           "a file that includes itself is refused");

    snprintf(path, sizeof path, "%s/none.yaml", folder);
    is_int(load(path), ET_ENOENT, "a recipe that is not there is not found");
    snprintf(got, sizeof got, "cannot read %s: No such file or directory", path);
    is_str(errors.v[0].message, got, "and the message names it");
    is_int(load(folder), ET_ENOENT, "a folder is no recipe");
    snprintf(got, sizeof got, "cannot read %s: Is a directory", folder);
    is_str(errors.v[0].message, got, "and the message says so");

    snprintf(path, sizeof path, "%s/large.yaml", folder);
    put_file(folder, "large.yaml", LEAST);
    if (truncate(path, 31 * (1 << 20) / 10) != 0)
        bail("cannot make %s large", path);
    is_int(load(path), ET_EINVAL, "a file of 3.1 MiB is refused");
    is_str(errors.v[0].message, "3.1 MiB exceeds 256 KiB", "and its size is said");

    static const char *const files[] = {
        "main.yaml",       "large.yaml", "base.yaml", "parts/more.yaml",
        "parts/even.yaml", "bad.yaml",   "loop.yaml", "link.yaml"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/parts", folder);
    rmdir(path);
    rmdir(folder);
}

static void
test_environment(void)
{
    static const char *const given[] = {"DATA=/big", "N=64", NULL};
    parse_with("max_duration: 5ep\nmodel: resnet8\n"
               "train_data: {name: fashion_mnist, path: \"${env:DATA}/x\"}\n"
               "eval_data:\n  name: bible_kjv\n  seq_len: ${env:N}\n",
               &(struct et_override){ET_OVERRIDE_SET, "train_data.batch_size=8"}, 1,
               given);
    is_str(line_of("train_data.path"), "train_data.path = /big/x  (recipe.yaml:3:41)",
           "a variable that is allowed is put in");
    is_str(line_of("eval_data.0.seq_len"),
           "eval_data.0.seq_len = 64  (recipe.yaml:6:12)",
           "and a number stays a number");
}

/* ---- the resolved text ---- */

/* Cuts comments off, in place. */
static char *
without_comments(char *text)
{
    char *to = text;
    for (char *from = text; *from;) {
        size_t n = strcspn(from, "\n");
        char *comment = strstr(from, "  # ");
        size_t keep = comment && comment < from + n ? (size_t)(comment - from) : n;
        while (keep && from[keep - 1] == ' ')
            keep--;
        bool has_end = from[n] == '\n';
        memmove(to, from, keep);
        to += keep;
        if (has_end)
            *to++ = '\n';
        from += n + has_end;
    }
    *to = '\0';
    return text;
}

static void
resolves_to_itself(const char *what)
{
    char *first = NULL, *second = NULL;
    if (!recipe) {
        ok(false, "%s: %s", what, errors.v[0].message);
        return;
    }
    if (et_recipe_resolved(cx, recipe, &first) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    if (parse(first) != ET_OK)
        diag("%s:%d: %s", errors.v[0].path, errors.v[0].line, errors.v[0].message);
    else if (et_recipe_resolved(cx, recipe, &second) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    is_str(second ? without_comments(second) : "refused", without_comments(first), "%s",
           what);
    et_free(cx, first);
    et_free(cx, second);
}

static void
test_resolved(void)
{
    load(source_path("vision.yaml"));
    resolves_to_itself("the vision example resolves to itself");
    load(source_path("text.yaml"));
    resolves_to_itself("the text example resolves to itself");
    parse(LEAST);
    resolves_to_itself("the least recipe resolves to itself");
    parse(LEAST
          "run_name: 7.5e-otter\ntags: ['a: \"b\" # c', 1, 'null', ~x, 'ünï', '']\n"
          "algorithms: [ema, cutmix: {alpha: .3}, ema: {half_life: 5ba}]\n"
          "callbacks: {lr_monitor: false}\nloggers: {jsonl: false, csv: {}}\n"
          "checkpoint: false\nprofiler: {active: 9}\ntimeout: 90s\n"
          "eval_data: [bible_kjv, {name: fashion_mnist, label: x, eval_interval: 2ep,\n"
          "  transforms: [horizontal_flip, horizontal_flip]}]\n"
          "seed: 0\nscale_schedule_ratio: 0.3333333333333333\n"
          "scheduler: [constant, {name: multistep, milestones: [1ep, .5dur]}]\n");
    resolves_to_itself("everything odd at once resolves to itself");
    parse(LEAST);
    if (recipe) {
        recipe->seed = 17;
        recipe->device = ET_RUN_CPU;
        recipe->grad_accum = 2;
    }
    is_str(line_of("grad_accum"), "grad_accum = 2  (chosen)",
           "what auto chose is written");
    resolves_to_itself("and resolves to itself");
}

static void
test_checks(void)
{
    parse(LEAST);
    struct et_recipe *saved = recipe;
    recipe = NULL;
    struct et_diagnostics found = {0};
    is_int(et_recipe_check_train(cx, saved, 4, &found), ET_OK,
           "100 samples are 4 times 25");
    is_int(et_recipe_check_train(cx, saved, 8, &found), ET_EINVAL,
           "but not 8 times any");
    is_str(found.v[0].message, "batch 100 is not divisible by 8 ranks",
           "and it says so");
    parse_with(LEAST,
               (const struct et_override[]){{ET_OVERRIDE_SET, "optimizer.lr=0.2"},
                                            {ET_OVERRIDE_SET, "max_duration=9ep"},
                                            {ET_OVERRIDE_SET, "checkpoint=false"},
                                            {ET_OVERRIDE_SET, "optimizer.name="
                                                              "decoupled_sgdw"}},
               4, NULL);
    et_error_clear(cx);
    memset(&found, 0, sizeof found);
    is_int(recipe ? et_recipe_check_resume(cx, recipe, saved, &found) : ET_OK,
           ET_EINVAL, "a resumed run cannot have another learning rate");
    is_int(found.total, 1, "but it may last longer and save otherwise");
    is_str(found.v[0].message,
           "optimizer.lr is 0.2, saved run has 0.1; resume cannot change it, rerun can",
           "the message names both values");
    parse(LEAST "algorithms: {ema: {half_life: 5ba}}\n");
    memset(&found, 0, sizeof found);
    is_int(et_recipe_check_resume(cx, recipe, saved, &found), ET_EINVAL,
           "nor what the saved run has not");
    is_str(found.v[found.total - 1].message,
           "algorithms.ema.half_life is 5ba, saved run has none; resume cannot change "
           "it, rerun can",
           "which is named");
    memset(&found, 0, sizeof found);
    is_int(et_recipe_check_resume(cx, saved, recipe, &found), ET_EINVAL,
           "nor be without what that has");
    is_str(found.v[0].message,
           "algorithms.ema.half_life is not set, saved run has 5ba; resume cannot "
           "change it, rerun can",
           "likewise");
    int emptied = 0;
    for (int i = 0; i < found.total; i++)
        emptied += strstr(found.v[i].message, "[]") != NULL;
    is_int(emptied, 0, "and the list that is empty now is not named besides");
    et_error_clear(cx);
    et_recipe_free(&saved);
}

static void
test_memory(void)
{
    const char *text = LEAST "algorithms: {ema: {half_life: 5ba}}\ntags: [a, b]\n"
                             "eval_data: {name: bible_kjv, metrics: [x]}\n";
    struct et_alloc_stats before, after;
    et_recipe_free(&recipe);
    et_alloc_get_stats(cx, &before);
    et_status status = ET_ENOMEM;
    bool held = true;
    for (uint64_t k = 1; status == ET_ENOMEM; k++) {
        et_alloc_fail_at(cx, k);
        status = parse(text);
        et_alloc_fail_at(cx, 0);
        held &= status == ET_OK || (status == ET_ENOMEM && !recipe);
        et_recipe_free(&recipe);
        et_alloc_get_stats(cx, &after);
        held &= after.live == before.live;
    }
    ok(held && status == ET_OK, "memory may end at every allocation of a reading");
}

/* Where a text would lie is where its relative paths begin, whether it is there or
 * not. */
static void
test_places(void)
{
    static const char text[] = "max_duration: 5ep\n"
                               "model: {name: resnet8, num_classes: 10}\n"
                               "train_data: {name: fashion_mnist, path: d/x, "
                               "batch_size: 100}\n";
    static const struct {
        const char *place, *want;
    } rows[] = {{"/none.yaml", "//d/x"},
                {"/usr/none.yaml", "/usr/d/x"},
                {"/usr/../none.yaml", "//d/x"},
                {"/usr/lib/../none.yaml", "/usr/d/x"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_recipe *r = NULL;
        struct et_diagnostics said = {0};
        if (eti_recipe_sketch(cx, text, strlen(text), "none.yaml", rows[i].place, NULL,
                              0, NULL, &r, &said) != ET_OK ||
            !r)
            bail("%s", et_error_get(cx)->message);
        const struct et_data_options *d = r->train_data.options;
        is_str(d->path, rows[i].want, "of %s paths begin in its folder", rows[i].place);
        et_recipe_free(&r);
    }
}

int
main(void)
{
    begin_reading();
    test_examples();
    test_forms();
    test_precedence();
    test_lists();
    test_arguments();
    test_only_item();
    test_bad_overrides();
    test_refusals();
    test_many();
    test_files();
    test_places();
    test_environment();
    test_resolved();
    test_checks();
    test_memory();
    end_reading();
    return done();
}
