/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_rules.c: rules of recipes that hold for every word, row or order: what looks
 * like a secret, what variables may say, what changes change, what is printed and read
 * again. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/recipe/options.h"
#include "etude/ctx.h"
#include "t/tap.h"
#include "t/unit/recipe_fakes.h"
#include "t/unit/recipe_read.h"

/* The text of the first fault; "accepted" where the recipe has no fault. */
static const char *
fault(void)
{
    static char text[2048];
    snprintf(text, sizeof text, "accepted");
    return errors.n ? et_diagnostic_text(&errors.v[0], text, sizeof text) : text;
}

/* ---- secrets ---- */

static bool
key_is_secret(const char *key)
{
    char text[512];
    snprintf(text, sizeof text, LEAST "%s: 1\n", key);
    parse(text);
    return strstr(fault(), "looks like a secret") != NULL;
}

static void
test_secret_keys(void)
{
    static const char *const words[] = {
        "secret",     "password",  "passwd",       "passphrase", "api_key",
        "apikey",     "api-key",   "auth_key",     "access_key", "private_key",
        "credential", "api_token", "access_token", "auth_token", "bearer",
        "token",      "hub_token",
    };
    static const char *const others[] = {"tokens", "token_count", "pass", "key",
                                         "monkey", "tokenizer",   "_tok"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char capitals[64] = "", longer[64];
        for (size_t k = 0; words[i][k]; k++)
            capitals[k] = (char)toupper((unsigned char)words[i][k]);
        snprintf(longer, sizeof longer, "my_%s", words[i]);
        ok(key_is_secret(words[i]) && key_is_secret(capitals) && key_is_secret(longer),
           "a key '%s' is refused as a secret, in capitals and behind another word",
           words[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ok(!key_is_secret(others[i]), "a key '%s' is unknown, and no secret",
           others[i]);
}

static bool
value_is_secret(const char *value)
{
    char text[512];
    snprintf(text, sizeof text, LEAST "tags: [x, \"%s\"]\n", value);
    parse(text);
    return strstr(fault(), "looks like a secret") != NULL;
}

static void
test_secret_values(void)
{
    static const struct {
        const char *start, *more;
    } keys[] = {
        {"ghp_", ""},     {"gho_", ""},   {"github_pat_", "_"},
        {"glpat-", "-_"}, {"xoxb-", "-"}, {"xoxp-", "-"},
        {"AKIA", ""},     {"sk-", "-_"},  {"hf_", ""},
    };
    enum { LEAST_LONG = 20 };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char value[LEAST_LONG + 2];
        memset(value, 'a', sizeof value);
        memcpy(value, keys[i].start, strlen(keys[i].start));
        value[LEAST_LONG] = '\0';
        ok(value_is_secret(value), "20 characters that begin with %s are a secret",
           keys[i].start);
        for (const char *more = "-_"; *more; more++) {
            value[LEAST_LONG - 2] = *more;
            is_int(value_is_secret(value), strchr(keys[i].more, *more) != NULL,
                   "with a '%c' in them they %s", *more,
                   strchr(keys[i].more, *more) ? "are one, too" : "are a name");
        }
        value[LEAST_LONG - 2] = '.';
        ok(!value_is_secret(value), "with a point in them they are a name");
        value[LEAST_LONG - 2] = 'a';
        value[LEAST_LONG - 1] = '\0';
        ok(!value_is_secret(value), "and 19 are no secret");
    }
    ok(value_is_secret("-----BEGIN RSA PRIVATE KEY-----"), "a private key is one");
    ok(!value_is_secret("-----BEGIN CERTIFICATE-----"), "a certificate is none");
}

/* ---- variables ---- */

static void
test_variables(void)
{
    static const char *const given[] = {"DAT=/no", "DATAX=/wrong", "DATA=/big", "N=64",
                                        NULL};
#define WITH_PATH(path)                                                                \
    "max_duration: 5ep\nmodel: resnet8\n"                                              \
    "train_data: {name: fashion_mnist, batch_size: 8, path: \"" path "\"}\n"
    parse_with(WITH_PATH("${env:DATA}/x"), NULL, 0, given);
    is_str(line_of("train_data.path"), "train_data.path = /big/x  (recipe.yaml:3:56)",
           "of names that begin alike the variable that is asked for is taken");
    parse_with(WITH_PATH("${env:DATA}/${env:N}-${env:DATA}"), NULL, 0, given);
    is_str(line_of("train_data.path"),
           "train_data.path = /big/64-/big  (recipe.yaml:3:56)",
           "a text may name several");
    parse_with(WITH_PATH("/a/${env:DATA"), NULL, 0, given);
    is_str(line_of("train_data.path"),
           "train_data.path = \"/a/${env:DATA\"  (recipe.yaml:3:56)",
           "what is not closed is text");
    static const char *const refused[] = {"DAT", "DATAX", "DATAS", ""};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[512];
        snprintf(text, sizeof text, WITH_PATH("${env:%s}"), refused[i]);
        parse_with(text, NULL, 0, given);
        ok(strstr(fault(), "is not allowed in recipes") != NULL,
           "a name like an allowed one, '%s', is not allowed", refused[i]);
    }
    parse_with(LEAST "seed: ${env:N}\n", NULL, 0, given);
    is_str(line_of("seed"), "seed = 64  (recipe.yaml:4:7)", "a number is one");
    parse_with(LEAST "seed: \"${env:N}\"\n", NULL, 0, given);
    is_str(fault(),
           "error E1203: recipe.yaml:4:7: seed: expected integer >= 0 and <= "
           "4294967295, got \"64\"\n  hint: write 64",
           "in quotes it is a text");
}

/* A mapping and a key of it from the environment, in both orders. */
static void
test_settings(void)
{
    static const char *const orders[][3] = {
        {"ETUDE_SET_optimizer__lr=0.5", "ETUDE_SET_optimizer=adamw", NULL},
        {"ETUDE_SET_optimizer=adamw", "ETUDE_SET_optimizer__lr=0.5", NULL},
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        parse_with(LEAST, NULL, 0, orders[i]);
        is_str(line_of("optimizer.lr"),
               "optimizer.lr = 0.5  (environment ETUDE_SET_optimizer__lr)",
               "a variable for a key stands whatever the environment's order");
        is_str(line_of("optimizer.name"),
               "optimizer.name = adamw  (environment ETUDE_SET_optimizer)",
               "beside the one for its mapping");
    }
}

/* ---- changes ---- */

/* What becomes of TEXT, behind LEAST, by one change: the line of PATH is WANT. */
static void
changes(const char *text, enum et_override_kind kind, const char *change,
        const char *path, const char *want, const char *name)
{
    const struct et_override o = {kind, change};
    char all[1024], line[512];
    snprintf(all, sizeof all, LEAST "%s", text);
    parse_with(all, &o, 1, NULL);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(line_of(path), "("),
             line_of(path));
    is_str(line, want, "%s", name);
}

static void
test_changes(void)
{
    static const char list[] = "scheduler: [constant, linear]\n";
    changes(list, ET_OVERRIDE_SET, "scheduler.2=constant", "scheduler.2.name",
            "scheduler.2.name = constant  ",
            "the number of a list's items appends one");
    changes(list, ET_OVERRIDE_SET, "scheduler.1=constant", "scheduler.1.name",
            "scheduler.1.name = constant  ", "a lower one is an item");
    changes(list, ET_OVERRIDE_SET, "scheduler.3=constant", "scheduler",
            "error E1213: scheduler.3: the list ends at 1, there is no 3",
            "a higher one is refused");
    changes("algorithms: {ema: false}\n", ET_OVERRIDE_ALG, "ema",
            "algorithms.ema.half_life", "algorithms.ema.half_life = 1000ba  ",
            "--alg turns an algorithm on that is off");
    changes("algorithms: {ema: {half_life: 3ba}}\n", ET_OVERRIDE_ALG, "ema",
            "algorithms.ema.half_life", "algorithms.ema.half_life = 3ba  ",
            "and keeps the options of one that is on");
    changes("algorithms: {ema: {half_life: 3ba}}\n", ET_OVERRIDE_NO_ALG, "ema",
            "algorithms.ema", "algorithms.ema = false  ", "--no-alg turns it off");
    changes("", ET_OVERRIDE_NO_ALG, "ema", "algorithms.ema", "algorithms.ema = false  ",
            "also where the recipe has none");
    changes("algorithms: [ema, cutmix, ema]\n", ET_OVERRIDE_SET,
            "algorithms.2.half_life=8ba", "algorithms.2.ema.half_life",
            "algorithms.2.ema.half_life = 8ba  ",
            "of two of a name in a list the one at the number changes");
    changes("algorithms: {label_smoothing: {smoothing: .1}}\n", ET_OVERRIDE_SET,
            "algorithms.label_smoothing.smoothing=null", "algorithms",
            "error E1206: recipe.yaml:4:31: algorithms.label_smoothing: key "
            "'smoothing' is missing",
            "what is required cannot be null");
    changes("algorithms: {label_smoothing: false}\n", ET_OVERRIDE_SET, "seed=1", "seed",
            "seed = 1  ", "what is off need not be whole");
    changes("", ET_OVERRIDE_ALG, "cutmix(layers=['it\"s, b'], alpha=.5)",
            "algorithms.cutmix.layers", "algorithms.cutmix.layers = [\"it\\\"s, b\"]  ",
            "a quote of the other kind ends no argument");
    changes("run_name: x\n", ET_OVERRIDE_SET, "run_name=null", "run_name",
            "run_name = null  ", "what is optional can be unset");
}

/* Components that are named several times, and in several places. */
static void
test_components(void)
{
    parse(LEAST "algorithms: [ema, cutmix, ema: {half_life: 5ba}]\n");
    is_int(recipe ? recipe->algorithms.n : 0, 3,
           "an algorithm that a list names twice is there twice");
    parse(LEAST "callbacks: {lr_monitor: {}, early_stopper: {}}\n");
    is_int(recipe ? recipe->callbacks.n : 0, 5,
           "a default callback that is named is there once, beside the others");
    parse(LEAST "loggers: {jsonl: false}\n");
    ok(recipe && recipe->loggers.n == 1 && recipe->loggers.v[0].off,
       "a default that is turned off is there as off");
    parse("max_duration: 5ep\nmodel: resnet8\n"
          "train_data: {name: fashion_mnist, batch_size: 96}\n"
          "eval_data: [{name: bible_kjv, label: a}, {name: bible_kjv, label: b},\n"
          "  {name: bible_kjv, label: c, batch_size: 12}]\n");
    const int64_t want[] = {96, 96, 12};
    for (int i = 0; i < 3; i++)
        is_int(recipe ? ((const struct et_data_options *)recipe->eval_data.v[i].options)
                            ->batch_size
                      : 0,
               want[i], "eval_data %d has a batch size of its own or train_data's", i);
    struct et_diagnostics found = {0};
    is_int(et_recipe_check_train(cx, recipe, 12, &found), ET_OK, "12 ranks share all");
    is_int(et_recipe_check_train(cx, recipe, 8, &found), ET_EINVAL, "8 do not");
    ok(found.total == 1 &&
           strcmp(found.v[0].message, "batch 12 is not divisible by 8 ranks") == 0,
       "since the last of eval_data cannot be");
    et_error_clear(cx);
}

/* ---- what is printed ---- */

/* Paths of the rows of TABLE that hold one value, and what each can be beside its
 * default. */
static const char *
other_value(const struct et_option *row)
{
    static char text[32];
    switch (row->type) {
    case ET_OPT_BOOL:
        return row->def && strcmp(row->def, "true") == 0 ? "false" : "true";
    case ET_OPT_INT:
        return "2";
    case ET_OPT_FLOAT:
        return "0.1";
    case ET_OPT_SECONDS:
        return "90m";
    case ET_OPT_TEXT:
        return strcmp(row->name, "target") == 0 ? "a>=0.5" : "x-1";
    case ET_OPT_TEXTS:
        return "[p, \"2\", \"a b\"]";
    case ET_OPT_TIME:
        return row->units && !(row->units & 1u << ET_TIME_EPOCH) ? "7ba" : "7ep";
    case ET_OPT_ENUM:
        snprintf(text, sizeof text, "%s", row->choices[1]);
        return text;
    default:
        return NULL;
    }
}

/* Sets the row at PATH to VALUE: it is printed so, and what is printed reads so. */
static bool
comes_back(const char *path, const char *value)
{
    char change[256], want[256], *resolved = NULL;
    snprintf(change, sizeof change, "%s=%s", path, value);
    snprintf(want, sizeof want, "%s = %s  (", path, value);
    const struct et_override o = {ET_OVERRIDE_SET, change};
    parse_with(LEAST, &o, 1, NULL);
    bool is_same = recipe && strncmp(line_of(path), want, strlen(want)) == 0;
    if (is_same && et_recipe_resolved(cx, recipe, &resolved) == ET_OK) {
        parse(resolved);
        is_same = recipe && strncmp(line_of(path), want, strlen(want)) == 0;
    }
    et_free(cx, resolved);
    if (!is_same)
        diag("%s: %s", change, recipe ? line_of(path) : fault());
    return is_same;
}

static int
count_lost(const struct et_option *table, const char *prefix, int *n)
{
    int lost = 0;
    for (const struct et_option *row = table; row->name; row++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", prefix, row->name);
        if (row->type == ET_OPT_TABLE) {
            snprintf(path, sizeof path, "%s%s.", prefix, row->name);
            lost += count_lost(row->sub, path, n);
        } else if (strcmp(path, "include") != 0 && strcmp(path, "plugins") != 0 &&
                   other_value(row)) {
            ++*n;
            lost += !comes_back(path, other_value(row));
        }
    }
    return lost;
}

static void
test_round_trips(void)
{
    int n = 0, chosen = 0;
    is_int(count_lost(et_recipe_table, "", &n), 0,
           "each value of a recipe is printed, and read again");
    ok(n > 35, "all of them were tried (%d)", n);
    parse(LEAST);
    char *all = NULL;
    if (!recipe || et_recipe_origins(cx, recipe, &all) != ET_OK)
        bail("no recipe");
    for (const char *at = all; (at = strstr(at, "(chosen)")); at++)
        chosen++;
    is_int(chosen, 0, "nothing is chosen before a run chooses");
    et_free(cx, all);
    const struct et_option *row = eti_option_find(et_recipe_table, "eval_data");
    parse(LEAST "eval_data: [{name: bible_kjv, label: x, metrics: [y]}]\n");
    if (!recipe || et_option_text(cx, row, recipe, &all) != ET_OK)
        bail("no recipe");
    ok(strstr(all, "label: x, metrics: [y], eval_interval: null") != NULL,
       "a list of parts on one line has what they have beside their own options");
    et_free(cx, all);
    static const struct {
        const char *weights, *printed;
    } briefs[] = {
        {"x.safetensors", "x.safetensors"},
        {"{path: x.safetensors}", "x.safetensors"},
        {"{path: x.safetensors, strict: false}", NULL},
        {"{path: x.safetensors, ignore: [fc]}", NULL},
    };
    for (size_t i = 0; i < sizeof briefs / sizeof *briefs; i++) {
        char text[256], line[256];
        snprintf(text, sizeof text,
                 "max_duration: 5ep\nmodel: {name: resnet8, weights: %s}\n"
                 "train_data: {name: fashion_mnist, batch_size: 8}\n",
                 briefs[i].weights);
        parse(text);
        snprintf(line, sizeof line, "%s", line_of("model.weights"));
        is_int(strncmp(line, "model.weights = x.safetensors  (", 32) == 0,
               briefs[i].printed != NULL,
               "weights: %s is printed as a path alone where that is all",
               briefs[i].weights);
    }
}

/* An include's component gives its options to one of the same name alone. */
static void
test_merges(void)
{
    char folder[] = "recipe-rules-XXXXXX", path[64];
    static const char *const names[] = {"base.yaml", "same.yaml", "other.yaml"};
    if (!mkdtemp(folder))
        bail("no folder to write in");
    put_file(folder, "base.yaml", LEAST "optimizer: {name: adamw, betas: [.1, .2]}\n");
    put_file(folder, "same.yaml",
             "include: base.yaml\noptimizer: {name: adamw, lr: .3}\n");
    put_file(folder, "other.yaml",
             "include: base.yaml\noptimizer: {name: adam, lr: .3}\n");
    snprintf(path, sizeof path, "%s/same.yaml", folder);
    load(path);
    ok(strstr(line_of("optimizer.betas"), "[0.1, 0.2]") != NULL,
       "options of an include's component hold where it is named again");
    snprintf(path, sizeof path, "%s/other.yaml", folder);
    load(path);
    ok(strstr(line_of("optimizer.betas"), "(default)") != NULL,
       "and not for another, whose name begins alike");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* ---- what is refused beside what is accepted ---- */

/* A test: LEAST with LINES is refused with a text that has PART, or accepted ("-"). */
static void
says(const char *lines, const char *part, const char *what)
{
    char text[1024];
    snprintf(text, sizeof text, LEAST "%s\n", lines);
    parse(text);
    bool fits = strcmp(part, "-") == 0 ? errors.total == 0 && recipe != NULL
                                       : !recipe && strstr(fault(), part) != NULL;
    if (!ok(fits, "%s", what))
        diag("%s: %s", lines, fault());
}

static void
test_pairs(void)
{
    says("eval_data: [{name: fashion_mnist, batch_size: 10}, {name: fashion_mnist, "
         "label: b, batch_size: x}]",
         " eval_data.1.batch_size: expected",
         "the second of several data by its number");
    says("scheduler: [constant, {name: cosine, t_max: x}]",
         " scheduler.1.t_max: expected", "likewise a schedule");
    says("algorithms: [ema, {cutmix: {alpha: x}}]",
         " algorithms.cutmix.alpha: expected", "a method by its name");
    says("algorithms: [ema, {name: cutmix, alpha: x}]", " algorithms.1.alpha: expected",
         "by its number where it says its name");
    says("algorithms: {ema: , cutmix: {alpha: x}}",
         " algorithms.cutmix.alpha: expected", "by its name in a mapping");
    says("scheduler: {name: linear, t_max: 3ep, alpha_f: 1 / (NUM_EPOCHS + 1)}", "-",
         "a schedule may have a formula");
    says("optimizer: {name: sgd, lr: 1 / (NUM_EPOCHS + 1)}", " optimizer.lr: expected",
         "an optimizer may not");
    says("algorithms: {ema: {half_life: NUM_EPOCHS ep}}",
         " algorithms.ema.half_life: expected", "nor may a method");
    says("optimizer: {adamw: {lr: 0.1}}", "write {name: adamw, ...}",
         "how a part has its name is said");
    says("optimizer: {adamw: }", "write {name: adamw, ...}",
         "also of one without options");
    static const struct {
        const char *lines, *part, *what;
    } rows[] = {
        {"microbatch_size: 4", "-", "microbatches have a size"},
        {"grad_accum: 1", "-", "or a number, such as one"},
        {"microbatch_size: 4\ngrad_accum: 1", "microbatch_size 4 excludes grad_accum 1",
         "and not both"},
        {"target: accuracy>=.7", "-", "a target is at least a number"},
        {"target: accuracy>1", "-", "or above it"},
        {"target: loss<=1e-3", "-", "or at most"},
        {"target: loss<.5", "-", "or below"},
        {"target: '>=.7'", "expected a metric and its goal", "a target has a metric"},
        {"target: accuracy>=", "expected a metric and its goal", "and a number"},
        {"target: accuracy>=.7x", "expected a metric and its goal", "and no more"},
        {"target: accuracy=.7", "expected a metric and its goal", "and < or >"},
        {"target: accuracy", "expected a metric and its goal", "which it needs"},
        {"timeout: .5m", "-", "half a minute is a duration"},
        {"timeout: 1h30m", "-", "so are an hour and a half"},
        {"timeout: 30m1h", "expected", "but not the smaller unit first"},
        {"timeout: 1h1h", "expected", "or one unit twice"},
        {"timeout: m", "expected", "or a unit alone"},
        {"timeout: 90", "write 90s", "or a number alone"},
        {"seed: 7 apples", "write 7", "of a number with a word the number is told"},
        {"eval_data: {name: fashion_mnist, lable: x}", "did you mean 'label'",
         "a key that evaluation adds to a dataset's is suggested too"},
        {"callbacks: [{lr_monitor: {}, speed_monitor: {}}]", "key 'name' is missing",
         "an item of a list is one component"},
        {"callbacks: [{lr_monitor: {}}, {speed_monitor: {}}]", "-",
         "of which there may be several"},
        {"seed: 4294967295", "-", "a seed may be the largest of 32 bits"},
        {"seed: 4294967296", "4294967295", "and no larger"},
        {"seed: -1", ">= 0", "nor below 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        says(rows[i].lines, rows[i].part, rows[i].what);
    parse(LEAST "seed: 4294967296 apples\n");
    ok(!recipe && strstr(fault(), "write") == NULL, "but not one that is out of range");
    parse(LEAST "timeout: .5m\ngrace: 0.25m\n");
    ok(recipe && recipe->timeout == 30 && recipe->grace == 15,
       "durations that begin with a point are fractions");
}

/* What variables hold counts against the size that a recipe may have, once. */
static void
test_large_variables(void)
{
    enum { KIB = 1024 };
    static char value[200 * KIB];
    memcpy(value, "DATA=", 5);
    memset(value + 5, 'x', sizeof value - 6);
    const char *const given[] = {value, NULL};
    parse_with(LEAST "tags: [\"a}${env:DATA}\"]\n", NULL, 0, given);
    ok(recipe && strncmp(recipe->tags.v[0], "a}xxx", 5) == 0,
       "a brace before a variable is text, and 200 KiB of a variable are taken");
    parse_with(LEAST "tags: [\"${env:DATA}\", \"${env:DATA}\", \"${env:DATA}\"]\n",
               NULL, 0, given);
    ok(!recipe && strstr(fault(), "it has more than 256 KiB") != NULL,
       "600 KiB are not");
    int said = 0;
    for (int i = 0; i < errors.n; i++)
        said += strstr(errors.v[i].message, "more than 256 KiB") != NULL;
    is_int(said, 1, "which is said once");
}

/* What et_plugins_load does with a library that is not there. */
static et_status
load_nothing(void *data, const char *const *names, const struct et_place *places, int n,
             struct et_diagnostics *list, const struct et_registry **out)
{
    (void)data;
    *out = NULL;
    if (n != 1)
        bail("%d libraries, of one", n);
    et_diagnostics_add(list, 4002, places, "plugins", NULL, "%s is missing", names[0]);
    return ET_FAIL(cx, ET_EINVAL, "%s", list->v[0].message);
}

static void
test_plugins(void)
{
    static const char text[] = "max_duration: 1ep\nplugins: [mine]\n";
    const struct et_recipe_env env = {.load_plugins = load_nothing};
    refuses(text,
            "error E1215: recipe.yaml:2:11: plugins: this program loads no plugins\n"
            "  hint: a program that loads plugins gives its struct et_recipe_env a "
            "load_plugins");
    et_recipe_free(&recipe);
    et_error_clear(cx);
    memset(&errors, 0, sizeof errors);
    ok(et_recipe_parse(cx, text, strlen(text), "recipe.yaml", NULL, 0, &env, &recipe,
                       &errors) == ET_EINVAL &&
           errors.total == 1,
       "a plugin that cannot be loaded is an error of the recipe");
    is_str(et_error_get(cx)->message, "recipe.yaml:2:11: plugins: mine is missing",
           "which says where the recipe names it");
    static const char lone[] = "max_duration: 1ep\nplugins: his\n";
    et_recipe_free(&recipe);
    et_error_clear(cx);
    memset(&errors, 0, sizeof errors);
    is_int(et_recipe_parse(cx, lone, strlen(lone), "recipe.yaml", NULL, 0, &env,
                           &recipe, &errors),
           ET_EINVAL, "one that is not in a list is loaded, too: %s",
           et_error_get(cx)->message);
}

int
main(void)
{
    begin_reading();
    test_secret_keys();
    test_secret_values();
    test_variables();
    test_settings();
    test_changes();
    test_components();
    test_round_trips();
    test_merges();
    test_pairs();
    test_large_variables();
    test_plugins();
    end_reading();
    return done();
}
