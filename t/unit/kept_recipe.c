/* SPDX-License-Identifier: Apache-2.0 */
/* What a run keeps of its recipe: which values a resume may change, how short a run may
 * be made that goes on, where it saves and what it begins from, and the rates that it
 * will have, which are those of its schedules at each batch. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/assemble/curve.h"
#include "core/assemble/parts.h"
#include "core/assemble/saving.h"
#include "core/checkpoint/store.h"
#include "etude/checkpoint.h"
#include "etude/diagnostic.h"
#include "etude/sched.h"
#include "etude/trainer.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_diagnostics errors;

/* Of TEXT with N changes, by the core's own components. */
static struct et_recipe *
read_changed(struct et_ctx *cx, const char *text, const struct et_override *o, int n)
{
    struct et_recipe *recipe;
    const struct et_recipe_env env = {0};
    char why[2048];
    memset(&errors, 0, sizeof errors);
    if (et_recipe_parse(cx, text, strlen(text), "recipe.yaml", o, n, &env, &recipe,
                        &errors) != ET_OK)
        bail("%s", et_diagnostic_text(&errors.v[0], why, sizeof why));
    memset(&errors, 0, sizeof errors);
    return recipe;
}

static struct et_recipe *
read_recipe(struct et_ctx *cx, const char *text)
{
    return read_changed(cx, text, NULL, 0);
}

static void
save(struct et_ctx *cx, const char *directory, int64_t step)
{
    struct et_archive a = {0};
    struct eti_manifest m = {.step = step, .epoch = step / 10, .world_size = 1};
    int64_t bytes;
    snprintf(m.label, sizeof m.label, "at%d", (int)step);
    m.algorithms = json_array();
    eti_archive_begin(&a, cx);
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    need(cx, eti_store_write(cx, directory, &a, &m, -1, &bytes));
    json_decref(m.algorithms);
    eti_archive_release(&a);
}

/* ---- what may change ---- */

#define PLAIN                                                                          \
    "max_duration: 5ep\n"                                                              \
    "model: {name: mlp, num_classes: 10, hidden: 8}\n"                                 \
    "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"                                 \
    "train_data: {name: synthetic_images, batch_size: 4, num_samples: 30}\n"           \
    "algorithms: {label_smoothing: {smoothing: 0.1}}\n"                                \
    "seed: 3\n"

static void
test_changes(struct et_ctx *cx)
{
    static const struct {
        enum et_override_kind kind;
        const char *change;
        const char *told; /* NULL: it may change */
    } row[] = {
        {ET_OVERRIDE_SET, "max_duration=5ep", NULL},
        {ET_OVERRIDE_SET, "max_duration=50ba", NULL},
        {ET_OVERRIDE_SET, "tags=[good]", NULL},
        {ET_OVERRIDE_SET, "checkpoint.keep=7", NULL},
        {ET_OVERRIDE_SET, "eval_interval=3ep", NULL},
        {ET_OVERRIDE_SET, "optimizer.lr=0.2",
         "optimizer.lr is 0.2, saved run has 0.1; resume cannot change it, rerun can"},
        {ET_OVERRIDE_SET, "seed=4",
         "seed is 4, saved run has 3; resume cannot change it, rerun can"},
        {ET_OVERRIDE_SET, "train_data.batch_size=8",
         "train_data.batch_size is 8, saved run has 4; resume cannot change it, rerun "
         "can"},
        {ET_OVERRIDE_SET, "model.hidden=9",
         "model.hidden is 9, saved run has 8; resume cannot change it, rerun can"},
        {ET_OVERRIDE_NO_ALG, "label_smoothing",
         "algorithms.label_smoothing.smoothing is not set, saved run has 0.1; resume "
         "cannot change it, rerun can"},
    };
    char was[ETI_RECIPE_DIGEST], is[ETI_RECIPE_DIGEST], text[2048];
    struct et_recipe *then = read_recipe(cx, PLAIN);
    need(cx, eti_recipe_digest(cx, then, was));
    is_int((int64_t)strlen(was), 64, "what may not change has a digest");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct et_override o = {row[i].kind, row[i].change};
        struct et_recipe *now = read_changed(cx, PLAIN, &o, 1);
        need(cx, eti_recipe_digest(cx, now, is));
        ok((strcmp(was, is) == 0) == !row[i].told, "with %s it is %s", row[i].change,
           row[i].told ? "another" : "the same");
        et_status status = eti_recipe_check_resume(cx, then, now, &errors);
        is_int(status, row[i].told ? ET_EINVAL : ET_OK, "and a resume may %s",
               row[i].told ? "not" : "do that");
        et_error_clear(cx);
        bool told = false;
        for (int k = 0; k < errors.n; k++)
            told = told || (row[i].told &&
                            strstr(et_diagnostic_text(&errors.v[k], text, sizeof text),
                                   row[i].told));
        ok(told == (row[i].told != NULL) && (told || errors.n == 0),
           "which is said: %s", row[i].told ? row[i].told : "nothing");
        memset(&errors, 0, sizeof errors);
        status = eti_recipe_check_resume(cx, now, then, &errors);
        is_int(status, row[i].told ? ET_EINVAL : ET_OK, "the same the other way round");
        et_error_clear(cx);
        et_recipe_free(&now);
    }
    et_recipe_free(&then);
}

/* ---- how short ---- */

static void
test_length(struct et_ctx *cx)
{
    static const struct {
        const char *length, *name, *told;
    } row[] = {
        {"3ep", "", NULL},
        {"4ep", "", NULL},
        {"2ep", "", "max_duration is 2ep, but the saved run has trained 3ep"},
        {"2ep", "step-000000000020", NULL},
        {"1ep", "step-000000000020",
         "max_duration is 1ep, but the saved run has trained 2ep"},
        {"30ba", "", NULL},
        {"29ba", "", "max_duration is 29ba, but the saved run has trained 30ba"},
        {"10ba", "step-000000000010", NULL},
        {"9ba", "step-000000000010",
         "max_duration is 9ba, but the saved run has trained 10ba"},
        {"1ba", "step-000000000015", NULL}, /* which there is not */
        {"1sp", "", NULL},
        {"1sec", "", NULL},
    };
    char change[64], text[2048];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_origin_run run = {.checkpoints = "saved/checkpoints"};
        snprintf(run.name, sizeof run.name, "%s", row[i].name);
        snprintf(change, sizeof change, "max_duration=%s", row[i].length);
        const struct et_override o = {ET_OVERRIDE_SET, change};
        struct et_recipe *now = read_changed(cx, PLAIN, &o, 1);
        et_status status = eti_resume_check_length(cx, &run, now, &errors);
        is_int(status, row[i].told ? ET_EINVAL : ET_OK, "%s from '%s'", row[i].length,
               row[i].name);
        et_error_clear(cx);
        ok(row[i].told ? errors.n == 1 &&
                             strstr(et_diagnostic_text(&errors.v[0], text, sizeof text),
                                    row[i].told)
                       : errors.n == 0,
           "says %s", row[i].told ? row[i].told : "nothing");
        et_recipe_free(&now);
    }
}

/* ---- where it saves, and from what it begins ---- */

static void
test_saving(struct et_ctx *cx)
{
    struct eti_saving s;
    struct et_trainer_config config = {0};
    struct et_recipe *recipe = read_recipe(
        cx, PLAIN "checkpoint: {interval: 7ba, keep: 9, weights_only: true, at: [3ba, "
                  "0.5dur], name: mine, latest: newest, ignore_keys: ['optimizer/*']}\n"
                  "load: {path: saved/at20, strict: false, weights_only: true, "
                  "ignore_keys: ['model/*', 'x'], exclude_algorithms: [ema]}\n");
    need(cx, eti_saving_init_at(&s, cx, recipe, "digest", "own", "id", 6));
    const struct et_checkpoint_config *c = &s.checkpoint;
    ok(strcmp(c->directory, "own/checkpoints") == 0 && c->keep == 9 &&
           c->interval.value == 7 && c->interval.unit == ET_TIME_BATCH &&
           c->weights_only && !c->only_at_end && !c->stop_on_failure &&
           strcmp(c->run_id, "id") == 0 && c->incarnation == 6 &&
           strcmp(c->recipe, "digest") == 0,
       "a run saves as its recipe says");
    ok(c->n_at == 2 && c->at[0].value == 3 && c->at[1].unit == ET_TIME_DURATION &&
           strcmp(c->label, "mine") == 0 && strcmp(c->latest, "newest") == 0 &&
           c->ignore && strcmp(c->ignore[0], "optimizer/*") == 0 && !c->ignore[1],
       "when, under which names, and without what");
    const struct et_load_config *l = &s.load;
    ok(strcmp(l->directory, "saved/checkpoints") == 0 &&
           strcmp(l->name, "step-000000000020") == 0 && l->weights_only && l->lenient &&
           !l->set_aside && !l->recipe,
       "and begins from the checkpoint that it names");
    ok(l->ignore && strcmp(l->ignore[0], "model/*") == 0 &&
           strcmp(l->ignore[1], "x") == 0 && !l->ignore[2] && l->exclude &&
           strcmp(l->exclude[0], "ema") == 0 && !l->exclude[1],
       "without what it leaves out");
    eti_saving_apply(&s, &config);
    ok(config.checkpoint == &s.checkpoint && config.load == &s.load,
       "the trainer is told of both");
    eti_saving_resume(&s, "");
    ok(strcmp(l->directory, "own/checkpoints") == 0 && !l->name && !l->weights_only &&
           !l->lenient && !l->ignore && l->set_aside &&
           strcmp(l->recipe, "digest") == 0,
       "a run that goes on begins from its own newest");
    eti_saving_resume(&s, "step-000000000010");
    is_str(l->name, "step-000000000010", "or from the one that is named");
    eti_saving_release(&s);
    eti_saving_release(&s); /* does nothing */
    et_recipe_free(&recipe);
    recipe = read_recipe(cx, PLAIN "checkpoint: {on_failure: stop}\n");
    need(cx, eti_saving_init_at(&s, cx, recipe, "digest", "own", "id", 1));
    eti_saving_apply(&s, &config);
    ok(!config.load && s.checkpoint.stop_on_failure,
       "one that loads nothing begins at 0");
    eti_saving_release(&s);
    et_recipe_free(&recipe);
    recipe = read_recipe(cx, PLAIN "load: {path: saved/at20, weights_only: true}\n");
    need(cx, eti_saving_init_at(&s, cx, recipe, "digest", "own", "id", 1));
    ok(l->weights_only && !l->lenient && !l->ignore && !l->exclude &&
           !s.checkpoint.weights_only && !s.checkpoint.ignore,
       "one may begin from weights alone and save all");
    eti_saving_release(&s);
    et_recipe_free(&recipe);
    recipe = read_recipe(cx, PLAIN "load: {path: saved/never}\n");
    is_int(eti_saving_init_at(&s, cx, recipe, "digest", "own", "id", 1), ET_ENOENT,
           "what is not there cannot be begun from");
    et_error_clear(cx);
    eti_saving_release(&s);
    et_recipe_free(&recipe);
}

/* ---- rates ---- */

/* 30 samples in batches of 4: 8 batches an epoch, the last of 2. */
enum { SAMPLES = 30, BATCH = 4, PER_EPOCH = 8 };

static const struct {
    const char *duration, *scheduler;
    int64_t batches; /* -1: not known */
    bool by_epoch;
} curves[] = {
    {"3ep", "{name: cosine, t_max: 3ep}", 24, false},
    {"3ep", "{name: linear, t_max: 3ep, step_every: epoch}", 24, true},
    {"20ba", "{name: linear, t_max: 20ba}", 20, false},
    {"20ba", "{name: step, step_size: 2ep, gamma: 0.5}", 20, false},
    {"40sp", "{name: constant}", 11, false},
    {"60sp", "{name: constant}", 16, false},
    {"61sp", "{name: linear, t_max: 61sp}", 17, false},
    {"1ba", "{name: linear, t_max: 1ba}", 1, false},
    {"3ep", "{name: step, step_size: 9ba, gamma: 0.5}", 24, false},
    {"1h", "{name: constant}", -1, false},
};

/* A run as it goes, batch by batch. */
static void
test_curve(struct et_ctx *cx, size_t row)
{
    char text[1024];
    struct eti_curve curve;
    struct et_timestamp ts = {0};
    int wrong = 0;
    snprintf(text, sizeof text,
             "max_duration: %s\nmodel: {name: mlp, num_classes: 10}\n"
             "optimizer: {name: sgd, lr: 0.5}\nscheduler: %s\n"
             "train_data: {name: synthetic_images, batch_size: %d, num_samples: %d, "
             "drop_last: false}\n",
             curves[row].duration, curves[row].scheduler, BATCH, SAMPLES);
    struct et_recipe *recipe = read_recipe(cx, text);
    et_status status = eti_curve_of_recipe(cx, recipe, &curve);
    is_int(status, curves[row].batches < 0 ? ET_EINVAL : ET_OK, "%s with %s",
           curves[row].duration, curves[row].scheduler);
    et_error_clear(cx);
    if (status == ET_OK) {
        is_int(curve.batches, curves[row].batches, "has as many batches");
        ok(curve.by_epoch == curves[row].by_epoch, "and a rate for each %s",
           curves[row].by_epoch ? "epoch" : "batch");
    }
    const struct et_part *part = &recipe->scheduler.v[0];
    const struct et_scheduler s = {et_scheduler_find(part->component->name),
                                   part->options};
    const struct et_run_length length = {.max_duration = recipe->max_duration,
                                         .dataloader_len = PER_EPOCH,
                                         .scale_schedule_ratio = 1};
    for (int i = 0; status == ET_OK && i < curve.n; i++) {
        double alpha;
        need(cx, et_schedule_alpha(cx, &s, 1, &ts, &length, &alpha));
        wrong += curve.batch[i] != i || fabs(curve.rate[i] - 0.5 * alpha) > 1e-12;
        int64_t n =
            SAMPLES - ts.sample_in_epoch < BATCH ? SAMPLES - ts.sample_in_epoch : BATCH;
        ts.batch++;
        ts.batch_in_epoch++;
        ts.sample += n;
        ts.sample_in_epoch += n;
        if (ts.sample_in_epoch == SAMPLES) {
            ts.epoch++;
            ts.batch_in_epoch = ts.sample_in_epoch = 0;
        }
    }
    is_int(wrong, 0, "its rates are those of the schedule at each batch");
    eti_curve_release(&curve);
    et_recipe_free(&recipe);
}

/* ---- refusals ---- */

/* What a part says is wrong gets the part's place; an error that has a code says by
 * itself where it is, and keeps both. */
static void
test_refused(struct et_ctx *cx)
{
    struct et_recipe *recipe = read_recipe(cx, PLAIN);
    for (int code = 0; code <= ET_E_SYSTEM_LIMIT; code += ET_E_SYSTEM_LIMIT) {
        (void)ET_FAIL(cx, ET_EINVAL, "it will not do");
        if (code)
            et_error_set_code(cx, code);
        is_int(eti_part_refused(cx, &recipe->model, "model", -1, ET_EINVAL), ET_EINVAL,
               "an error of a part stays one");
        const struct et_error *e = et_error_get(cx);
        ok(e->code == code &&
               (code ? strcmp(e->message, "it will not do") == 0
                     : strstr(e->message, "model: it will not do") != NULL),
           code ? "with a code it is what it was" : "without a code it has a place") ||
            (diag("%d: %s", e->code, e->message), 0);
        et_error_clear(cx);
    }
    et_recipe_free(&recipe);
}

/* The curve of a run of three epochs with SCHEDULER. */
static void
curve_with(struct et_ctx *cx, const char *scheduler, struct eti_curve *out)
{
    char text[1024];
    snprintf(text, sizeof text,
             "max_duration: 3ep\nmodel: {name: mlp, num_classes: 10}\n"
             "optimizer: {name: sgd, lr: 0.5}\nscheduler: %s\n"
             "train_data: {name: synthetic_images, batch_size: %d, num_samples: %d, "
             "drop_last: false}\n",
             scheduler, BATCH, SAMPLES);
    struct et_recipe *recipe = read_recipe(cx, text);
    need(cx, eti_curve_of_recipe(cx, recipe, out));
    et_recipe_free(&recipe);
}

/* A formula draws what the number that it comes to draws. */
static void
test_formulas(struct et_ctx *cx)
{
    static const char *const pairs[][2] = {
        {"{name: cosine, t_max: (NUM_EPOCHS - 1) * NUM_UPDATE_STEPS_PER_EPOCH ba}",
         "{name: cosine, t_max: 16ba}"},
        {"{name: linear, t_max: 3ep, alpha_f: 1 / (NUM_EPOCHS + 1)}",
         "{name: linear, t_max: 3ep, alpha_f: 0.25}"},
        {"{name: step, step_size: TRAIN_DATALOADER_LEN ba, gamma: 0.5}",
         "{name: step, step_size: 8ba, gamma: 0.5}"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct eti_curve formula, number;
        curve_with(cx, pairs[i][0], &formula);
        curve_with(cx, pairs[i][1], &number);
        ok(formula.n == number.n && formula.n == 3 * PER_EPOCH, "%s: each batch",
           pairs[i][0]);
        int wrong = 0;
        for (int k = 0; k < number.n && k < formula.n; k++)
            wrong += !(fabs(formula.rate[k] - number.rate[k]) <= 1e-12);
        is_int(wrong, 0, "has the rate that it has with the number");
        eti_curve_release(&formula);
        eti_curve_release(&number);
    }
}

/* The curve of the recipe that begins with HEAD, on images, or on texts of 6 tokens. */
static void
curve_of(struct et_ctx *cx, const char *head, bool tokens, struct eti_curve *out)
{
    char text[2048];
    snprintf(text, sizeof text, "%s\noptimizer: {name: sgd, lr: 0.5}\nmodel: %s\n",
             head,
             tokens ? "{name: gpt2, n_layers: 1, d_model: 8, n_heads: 1}"
                    : "{name: mlp, num_classes: 10}");
    for (int eval = 0; eval < 2; eval++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s: {name: synthetic_%s, batch_size: %d, num_samples: %d, workers: "
                 "3%s%s}\n",
                 eval ? "eval_data" : "train_data", tokens ? "tokens" : "images", BATCH,
                 eval ? SAMPLES - BATCH : SAMPLES, eval ? "" : ", drop_last: false",
                 tokens ? ", seq_len: 6, vocab_size: 16" : "");
    struct et_recipe *recipe = read_recipe(cx, text);
    need(cx, eti_curve_of_recipe(cx, recipe, out));
    const struct et_data_options *data = recipe->train_data.options;
    is_int(data->workers, 3, "whoever looks leaves the data's workers");
    et_recipe_free(&recipe);
}

/* What comes to the same is drawn the same. */
static void
test_same(struct et_ctx *cx)
{
    static const struct {
        const char *one, *other;
        bool tokens;
    } rows[] = {
        {"max_duration: 4ep\nscale_schedule_ratio: 0.5\n"
         "scheduler: {name: constant}",
         "max_duration: 16ba\nscheduler: {name: constant}", false},
        {"max_duration: 4ep\nscale_schedule_ratio: 0.5\n"
         "scheduler: {name: linear, t_max: 4ep}",
         "max_duration: 2ep\nscheduler: {name: linear, t_max: 2ep}", false},
        {"max_duration: 2iter\niteration_length: 2ep\n"
         "scheduler: {name: step, step_size: 1iter, gamma: 0.5}",
         "max_duration: 4ep\nscheduler: {name: step, step_size: 2ep, gamma: 0.5}",
         false},
        {"max_duration: 288tok\nscheduler: {name: linear, t_max: 288tok}",
         "max_duration: 48sp\nscheduler: {name: linear, t_max: 48sp}", true},
        {"max_duration: 3iter\niteration_length: 96tok\n"
         "scheduler: {name: step, step_size: 1iter, gamma: 0.5}",
         "max_duration: 288tok\n"
         "scheduler: {name: step, step_size: 96tok, gamma: 0.5}",
         true},
        {"max_duration: 60sp\nscheduler: {name: linear, t_max: NUM_EPOCHS ep}",
         "max_duration: 60sp\nscheduler: {name: linear, t_max: 2ep}", false},
        {"max_duration: 3ep\nscheduler: {name: linear, t_max: EVAL_DATALOADER_LEN ba}",
         "max_duration: 3ep\nscheduler: {name: linear, t_max: 7ba}", false},
        {"max_duration: 20ba\nscheduler: [{name: linear, t_max: 20ba, step_every: "
         "epoch}, {name: constant}]",
         "max_duration: 20ba\nscheduler: {name: linear, t_max: 20ba, step_every: "
         "epoch}",
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct eti_curve one, other;
        curve_of(cx, rows[i].one, rows[i].tokens, &one);
        curve_of(cx, rows[i].other, rows[i].tokens, &other);
        int wrong = 0;
        for (int k = 0; k < one.n && k < other.n; k++)
            wrong += !(fabs(one.rate[k] - other.rate[k]) <= 1e-12);
        ok(one.batches == other.batches && one.n == other.n && wrong == 0,
           "two ways to say one run draw the same, case %d: %d and %d points, %d "
           "differ",
           (int)i, one.n, other.n, wrong);
        eti_curve_release(&one);
        eti_curve_release(&other);
    }
}

/* A rate is one for each epoch where all schedules have it so; of a long run batches
 * from the first to the last are drawn. */
static void
test_long(struct et_ctx *cx)
{
    static const char *const lists[] = {
        "[{name: constant, step_every: epoch}, {name: constant}]",
        "[{name: constant}, {name: constant, step_every: epoch}]",
        "[{name: constant, step_every: epoch}, {name: constant, step_every: epoch}]"};
    struct eti_curve c;
    for (int i = 0; i < 3; i++) {
        curve_with(cx, lists[i], &c);
        is_int(c.by_epoch, i == 2, "by epoch: %s", lists[i]);
        eti_curve_release(&c);
    }
    curve_of(cx, "max_duration: 200000ba\nscheduler: {name: constant}", false, &c);
    ok(c.n == ETI_CURVE_POINTS && c.batches == 200000, "of a long run there are some");
    ok(c.batch[0] == 0 && c.batch[c.n - 1] == 199999, "from the first to the last");
    int wrong = 0;
    for (int k = 1; k < c.n; k++)
        wrong += c.batch[k] - c.batch[k - 1] < 3 || c.batch[k] - c.batch[k - 1] > 4;
    is_int(wrong, 0, "evenly");
    eti_curve_release(&c);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    if (chdir(scratch_folder()) != 0 || mkdir("saved", 0700) != 0)
        bail("no folder");
    for (int64_t step = 10; step <= 30; step += 10)
        save(cx, "saved/checkpoints", step);
    test_changes(cx);
    test_length(cx);
    test_saving(cx);
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        test_curve(cx, i);
    test_formulas(cx);
    test_same(cx);
    test_long(cx);
    test_refused(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
