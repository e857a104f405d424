/* SPDX-License-Identifier: Apache-2.0 */
/* What a recipe is made into: each value of it in the trainer's configuration, the data
 * of each rank, how many batches a limit leaves, and which observers there are. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/assemble/assemble.h"
#include "core/assemble/saving.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#define DATA                                                                           \
    "{name: synthetic_images, channels: 1, resolution: 4, num_classes: 3, "            \
    "num_samples: 128, num_unique: 128, batch_size: 16, workers: 0, shuffle: false"

static const char plain[] = "max_duration: 2ep\n"
                            "seed: 9\n"
                            "model: {name: mlp, hidden: 8}\n"
                            "train_data: " DATA "}\n"
                            "optimizer: {name: sgd, lr: 0.5}\n";

static struct et_ctx *cx;

/* TEXT with the changes SET, NULL-terminated. */
static struct et_recipe *
read_recipe(const char *text, const char *const *set)
{
    struct et_override change[32];
    struct et_diagnostics errors = {0};
    struct et_recipe *recipe;
    const struct et_recipe_env env = {0};
    char why[2048];
    int n = 0;
    for (; set && set[n]; n++)
        change[n] = (struct et_override){ET_OVERRIDE_SET, set[n]};
    if (et_recipe_parse(cx, text, strlen(text), "recipe.yaml", change, n, &env, &recipe,
                        &errors) != ET_OK)
        bail("%s", et_diagnostic_text(&errors.v[0], why, sizeof why));
    return recipe;
}

static const struct eti_assemble_options usual = {
    .device = "ref", .threads = 1, .with_train = true, .with_eval = true};

/* ---- values ---- */

/* As a text: a number, a time, or what is written. */
enum type { INT, INT64, UINT32, BOOL, DOUBLE, TIME, TEXT };

#define AT(field) offsetof(struct et_trainer_config, field)

static const struct {
    const char *set, *what;
    enum type type;
    size_t at;
    const char *plain, *want; /* without it, and with it */
} values[] = {
    {"max_duration=7ba", "max_duration", TIME, AT(max_duration), "2ep", "7ba"},
    {"eval_interval=3ba", "eval_interval", TIME, AT(eval_interval), "1ep", "3ba"},
    {"iteration_length=4ep", "iteration_length", TIME, AT(iteration_length), "unset",
     "4ep"},
    {"scale_schedule_ratio=0.5", "scale_schedule_ratio", DOUBLE,
     AT(scale_schedule_ratio), "1", "0.5"},
    {"grad_accum=2", "grad_accum", INT64, AT(grad_accum), "0", "2"},
    {"microbatch_size=5", "microbatch_size", INT64, AT(microbatch_size), "0", "5"},
    {"seed=4294967295", "seed", UINT32, AT(seed), "9", "4294967295"},
    {"deterministic=true", "deterministic", BOOL, AT(deterministic), "0", "1"},
    {"run_name=calm-bird", "run_name", TEXT, AT(run_name), "none", "calm-bird"},
    {"target=accuracy>=0.5", "target", TEXT, AT(target), "none", "accuracy>=0.5"},
    {"nonfinite.grace=6", "nonfinite.grace", INT64, AT(nonfinite_grace), "3", "6"},
    {"nonfinite.action=skip", "nonfinite.action", INT, AT(nonfinite_action), NULL,
     NULL},
    {"nonfinite.hold_schedule=true", "nonfinite.hold_schedule", BOOL, AT(hold_schedule),
     "0", "1"},
    {"sync_batch_norm=true", "sync_batch_norm", BOOL, AT(sync_batch_norm), "0", "1"},
};
enum { VALUES = sizeof values / sizeof *values };

static const char *
text_of(const struct et_trainer_config *c, int i)
{
    static char text[64];
    const char *at = (const char *)c + values[i].at;
    const struct et_time *time = (const void *)at;
    const char *const *word = (const void *)at;
    switch (values[i].type) {
    case INT:
        snprintf(text, sizeof text, "%d", *(const int *)(const void *)at);
        break;
    case INT64:
        snprintf(text, sizeof text, "%lld",
                 (long long)*(const int64_t *)(const void *)at);
        break;
    case UINT32:
        snprintf(text, sizeof text, "%u", *(const uint32_t *)(const void *)at);
        break;
    case BOOL:
        snprintf(text, sizeof text, "%d", *(const bool *)at);
        break;
    case DOUBLE:
        snprintf(text, sizeof text, "%g", *(const double *)(const void *)at);
        break;
    case TIME:
        if (!et_time_is_set(*time))
            return "unset";
        return et_time_text(*time, text, sizeof text);
    case TEXT:
        return *word ? *word : "none";
    }
    return text;
}

static void
test_values(void)
{
    struct eti_assembly a;
    struct et_recipe *r = read_recipe(plain, NULL);
    need(cx, eti_assemble(cx, r, &usual, &a));
    for (int i = 0; i < VALUES; i++)
        if (values[i].plain)
            is_str(text_of(&a.config, i), values[i].plain,
                   "%s is what it is where a recipe does not say", values[i].what);
    const int stop = a.config.nonfinite_action;
    eti_assembly_release(&a);
    et_recipe_free(&r);
    for (int i = 0; i < VALUES; i++) {
        const char *set[] = {values[i].set, NULL};
        int others = 0;
        r = read_recipe(plain, set);
        need(cx, eti_assemble(cx, r, &usual, &a));
        for (int k = 0; k < VALUES; k++)
            others += k != i && values[k].plain &&
                      strcmp(text_of(&a.config, k), values[k].plain) != 0;
        if (values[i].want)
            is_str(text_of(&a.config, i), values[i].want, "%s is", values[i].set);
        else
            ok(a.config.nonfinite_action != stop, "%s is", values[i].set);
        is_int(others, 0, "and changes nothing else");
        eti_assembly_release(&a);
        et_recipe_free(&r);
    }
}

static void
test_never(void)
{
    static const char *const never[] = {"eval_interval=0ep", NULL};
    struct eti_assembly a;
    struct et_recipe *r = read_recipe(plain, never);
    const struct et_time want = ET_NEVER;
    need(cx, eti_assemble(cx, r, &usual, &a));
    ok(a.config.eval_interval.value == want.value &&
           a.config.eval_interval.unit == want.unit,
       "an interval of 0 is never");
    ok(a.config.train && a.config.n_evaluators == 0 && a.config.model &&
           a.config.optimizer && a.config.n_schedulers == 1,
       "a recipe without eval_data has no evaluator, and a schedule");
    ok(a.config.dev == a.dev && !a.config.comm && !a.config.load,
       "one device, one rank, and begins at 0");
    eti_assembly_release(&a);
    et_recipe_free(&r);
}

/* A fault is reported with its place in the recipe's keys, however deep it lies. */
static void
test_places(void)
{
    static const struct {
        const char *set, *place;
    } row[] = {
        {"scheduler={name: linear_with_warmup, t_warmup: 1ba, t_max: 3ba}",
         "scheduler: "},
        {"scheduler=[{name: constant}, {name: linear_with_warmup, t_warmup: 1ba, "
         "t_max: 3ba}]",
         "scheduler.1: "},
        {"optimizer.groups=[{match: a, scheduler: {name: constant}}, {match: b, "
         "scheduler: {name: linear_with_warmup, t_warmup: 1ba, t_max: 3ba}}]",
         "optimizer.groups.1.scheduler: "},
        {"optimizer={name: adam, betas: [0.5, 0.6, 0.7]}", "optimizer: "},
        {"callbacks=[{name: speed_monitor}, {weights_saver: {name: a/b}}]",
         "callbacks.weights_saver: "},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *set[] = {row[i].set, NULL};
        struct eti_assembly a;
        struct et_recipe *r = read_recipe(plain, set);
        et_status status = eti_assemble(cx, r, &usual, &a);
        const char *why = et_error_get(cx)->message;
        ok(status == ET_EINVAL && strstr(why, row[i].place) != NULL,
           "%s is refused at its place: %s", row[i].set, why);
        et_error_clear(cx);
        eti_assembly_release(&a);
        et_recipe_free(&r);
    }
}

static void
test_outcomes(void)
{
    static const struct {
        enum et_outcome outcome;
        const char *state;
    } row[] = {
        {ET_OUTCOME_FINISHED, "finished"},
        {ET_OUTCOME_TARGET_MISSED, "finished"},
        {ET_OUTCOME_STOPPED, "preempted"},
        {ET_OUTCOME_UNSAVED, "failed"},
        {ET_OUTCOME_DIVERGED, "diverged"},
        {ET_OUTCOME_TARGET_REACHED, "reached-target"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        is_str(eti_outcome_state(row[i].outcome), row[i].state,
               "a run that ended so is %s", row[i].state);
}

/* ---- data ---- */

static et_status
meet(void *self, const struct et_comm_call *call, char *why, size_t why_size)
{
    (void)self, (void)call, (void)why, (void)why_size;
    return ET_OK;
}

static void
leave(void *self, bool failed)
{
    (void)self, (void)failed;
}

static const struct et_comm_class others = {"others", meet, leave};

/* The pixels of the first batch of the LOADER; how many samples. */
static int
first_batch(struct et_loader *loader, float *out, size_t room)
{
    const struct et_batch *b;
    need(cx, et_loader_next(cx, loader, &b));
    const size_t bytes = et_desc_bytes(&b->field[ET_FIELD_X].desc);
    if (bytes > room)
        bail("a batch of %zu bytes", bytes);
    memcpy(out, b->field[ET_FIELD_X].host.f32, bytes);
    const int n = (int)b->n_samples;
    et_loader_release(loader, b);
    return n;
}

/* Two ranks share each batch of what they train on and evaluate on. */
static void
test_ranks(void)
{
    enum { PIXELS = 16, MOST = 16 * PIXELS };
    static const char text[] = "max_duration: 2ep\nseed: 9\n"
                               "model: {name: mlp, hidden: 8}\n"
                               "train_data: " DATA "}\neval_data: " DATA "}\n"
                               "optimizer: {name: sgd, lr: 0.5}\n";
    static float x[2][2][MOST]; /* of train_data and eval_data, of each rank */
    int samples = 0;
    for (int rank = 0; rank < 2; rank++) {
        struct eti_assembly a;
        struct et_comm *comm;
        struct et_recipe *r = read_recipe(text, NULL);
        struct eti_assemble_options o = usual;
        need(cx, et_comm_new(cx, &others, NULL, rank, 2, &comm));
        o.comm = comm;
        need(cx, eti_assemble(cx, r, &o, &a));
        samples += first_batch(a.train.loader, x[0][rank], sizeof x[0][0]);
        samples += first_batch(a.eval[0].loader, x[1][rank], sizeof x[1][0]);
        ok(a.config.comm == comm, "rank %d trains with the others", rank);
        eti_assembly_release(&a);
        et_recipe_free(&r);
        et_comm_close(&comm);
    }
    is_int(samples, 2 * 16, "two ranks have a batch between them");
    for (int data = 0; data < 2; data++)
        ok(memcmp(x[data][0], x[data][1], 8 * PIXELS * sizeof(float)) != 0,
           "and neither has what the other has of %s",
           data ? "eval_data" : "train_data");
}

/* The processor computes with as many threads as are asked for, chosen or not. */
static void
test_threads(void)
{
    static const char *const device[] = {"device=cpu", "device=auto"};
    for (int i = 0; i < 2; i++)
        for (int n = 1; n <= 3; n++) {
            struct et_recipe *r =
                read_recipe(plain, (const char *const[]){device[i], NULL});
            struct et_device *dev;
            struct et_device_info info;
            if (strcmp(eti_assemble_cpu, "cpu") != 0) {
                skip(1, "built without oneDNN");
            } else {
                need(cx, eti_assemble_device(cx, r, NULL, n, &dev));
                et_device_get_info(dev, &info);
                ok(!info.host_memory || info.threads == n, "%s: %d of %d threads",
                   device[i], info.threads, n);
                et_device_close(&dev);
            }
            et_recipe_free(&r);
        }
}

/* Batches of an epoch of eight, of a recipe that wants SUBSET of them, under LIMIT. */
static void
test_limits(void)
{
    static const int subset[] = {-1, 2, 5}, limit[] = {0, 1, 2, 3, 7, 9};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 6; k++) {
            struct eti_assembly a;
            struct et_loader_info info;
            struct eti_assemble_options o = usual;
            char set[64];
            const char *change[] = {set, NULL};
            int want = subset[i] < 0 ? 8 : subset[i];
            want = limit[k] > 0 && limit[k] < want ? limit[k] : want;
            snprintf(set, sizeof set, "train_data.subset_num_batches=%d", subset[i]);
            struct et_recipe *r = read_recipe(plain, change);
            o.limit_batches = limit[k];
            need(cx, eti_assemble(cx, r, &o, &a));
            et_loader_get_info(a.train.loader, &info);
            is_int(info.batches_per_epoch, want, "of 8 batches, %d of them, at most %d",
                   subset[i], limit[k]);
            eti_assembly_release(&a);
            et_recipe_free(&r);
        }
}

/* ---- evaluators ---- */

static void
test_evaluators(void)
{
    static const char text[] =
        "max_duration: 2ep\nseed: 9\nmodel: {name: mlp, hidden: 8}\n"
        "train_data: " DATA "}\noptimizer: {name: sgd, lr: 0.5}\n"
        "eval_data:\n  - " DATA "}\n"
        "  - " DATA ", label: other, eval_interval: 3ba, metrics: [Accuracy, Cross]}\n"
        "  - " DATA ", label: never, eval_interval: 0ba}\n";
    struct eti_assembly a;
    const struct et_time never = ET_NEVER;
    struct et_recipe *r = read_recipe(text, NULL);
    need(cx, eti_assemble(cx, r, &usual, &a));
    const struct et_evaluator *e = a.config.evaluators;
    is_int(a.config.n_evaluators, 3, "each of eval_data has an evaluator");
    ok(strcmp(e[0].label, "eval") == 0 && !et_time_is_set(e[0].interval) &&
           !e[0].metrics,
       "one that says nothing has the usual label, interval and metrics");
    ok(strcmp(e[1].label, "other") == 0 && e[1].interval.value == 3 &&
           e[1].interval.unit == ET_TIME_BATCH,
       "another its own label and interval");
    ok(e[1].metrics && strcmp(e[1].metrics[0], "Accuracy") == 0 &&
           strcmp(e[1].metrics[1], "Cross") == 0 && !e[1].metrics[2],
       "and metrics");
    ok(e[2].interval.value == never.value && e[2].interval.unit == never.unit,
       "one of 0 never comes");
    ok(e[0].loader == a.eval[0].loader && e[1].loader == a.eval[1].loader &&
           e[2].loader == a.eval[2].loader,
       "each reads its own data");
    eti_assembly_release(&a);
    et_recipe_free(&r);
}

static char warning[256];

static void
hear(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    if (level == ET_LOG_WARN)
        snprintf(warning, sizeof warning, "%s", text);
}

/* Data with a file of their own have numbers of their own for their classes. */
static void
test_other_classes(void)
{
    static const struct {
        const char *eval, *says;
    } row[] = {
        {"x,k\n1,dog\n2,cat\n", ""},
        {"x,k\n1,cat\n2,cat\n", ""},
        {"x,k\n1,cat\n2,eel\n",
         "class 1 of eval_data is 'eel', and 'dog' of train_data: "
         "their numbers are not the same"},
        {"x,k\n1,dog\n2,eel\n",
         "class 0 of eval_data is 'dog', and 'cat' of train_data: "
         "their numbers are not the same"},
        {"x,k\n1,7\n2,8\n", ""},
    };
    static const char train[] = "x,k\n1,dog\n2,cat\n";
    char text[2048], path[600];
    snprintf(path, sizeof path, "%s",
             write_file("own.csv", train, sizeof train - 1, false));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_assembly a;
        const char *other =
            write_file("other.csv", row[i].eval, strlen(row[i].eval), false);
        snprintf(text, sizeof text,
                 "max_duration: 1ep\nseed: 9\nmodel: {name: mlp, hidden: 8, "
                 "num_classes: 9}\n"
                 "train_data: {name: table, path: '%s', batch_size: 2, "
                 "test_fraction: 0}\n"
                 "eval_data: {name: table, path: '%s', split: train, test_fraction: 0, "
                 "task: auto}\noptimizer: {name: sgd, lr: 0.5}\n",
                 path, other);
        struct et_recipe *r = read_recipe(text, NULL);
        warning[0] = '\0';
        et_ctx_set_log(cx, ET_LOG_WARN, hear, NULL);
        need(cx, eti_assemble(cx, r, &usual, &a));
        et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
        is_str(warning, row[i].says, "%s", *row[i].says ? row[i].says : "alike");
        eti_assembly_release(&a);
        et_recipe_free(&r);
    }
}

/* As many as there may be, and one more. */
static void
test_most(void)
{
    static const struct {
        const char *what, *key, *one;
        int most;
        const char *why;
    } row[] = {
        {"eval_data", "eval_data:\n", "  - " DATA ", label: e%d}\n", ETI_MAX_EVAL_DATA,
         "17 eval_data, at most 16 are possible"},
        {"schedules", "scheduler:\n", "  - {name: constant, alpha: 1.%d}\n",
         ETI_MAX_SCHEDULERS, "more than 16 schedulers"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int more = 0; more < 2; more++) {
            static char text[1 << 14];
            struct eti_assembly a;
            size_t n = (size_t)snprintf(text, sizeof text, "%s%s", plain, row[i].key);
            for (int k = 0; k < row[i].most + more; k++)
                n += (size_t)snprintf(text + n, sizeof text - n, row[i].one, k);
            struct et_recipe *r = read_recipe(text, NULL);
            et_status status = eti_assemble(cx, r, &usual, &a);
            if (more) {
                is_int((int64_t)status, ET_EINVAL, "one more of %s are too many",
                       row[i].what);
                is_str(take_error(cx), row[i].why, "which is said");
            } else {
                is_int((int64_t)status, ET_OK, "%d of %s are possible", row[i].most,
                       row[i].what);
            }
            eti_assembly_release(&a);
            et_recipe_free(&r);
        }
}

/* ---- observers ---- */

static void
test_observers(void)
{
    static const struct {
        const char *set[4];
        int rank;
        bool has_run;
        int n;
    } row[] = {
        {{NULL}, 0, true, 4 + 1},
        {{NULL}, 0, false, 4},
        {{NULL}, 1, true, 1}, /* memory_monitor acts on all ranks */
        {{"loggers.csv={}"}, 0, true, 4 + 2},
        {{"loggers.csv={}"}, 0, false, 4},
        {{"callbacks.early_stopper={monitor: loss, dataloader_label: train}"},
         1,
         true,
         2},
        {{"callbacks.lr_monitor=false"}, 0, true, 3 + 1},
        {{"loggers.jsonl=false"}, 0, true, 4},
        {{"profiler={}"}, 0, true, 4 + 1 + 1},
        {{"profiler={}"}, 0, false, 4},
    };
    mkdir("run", 0700);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_assembly a;
        struct et_comm *comm;
        struct eti_assemble_options o = usual;
        struct et_recipe *r = read_recipe(plain, row[i].set);
        need(cx, et_comm_new(cx, &others, NULL, row[i].rank, 2, &comm));
        o.comm = comm;
        need(cx, eti_assemble(cx, r, &o, &a));
        need(cx, eti_assemble_callbacks(&a, r, row[i].has_run ? "run" : NULL));
        is_int(a.config.n_callbacks, row[i].n, "rank %d has %d observers %s run: %s",
               row[i].rank, row[i].n, row[i].has_run ? "of a" : "without a",
               row[i].set[0] ? row[i].set[0] : "as usual");
        eti_assembly_release(&a);
        et_recipe_free(&r);
        et_comm_close(&comm);
    }
}

/* The record_interval of the first logger of R, once its run is assembled. */
static const char *
interval_of(const struct et_recipe *r)
{
    static char text[64];
    char *own = NULL;
    const struct et_part *part = &r->loggers.v[0];
    const struct et_option *row = part->component->options;
    while (row->name && strcmp(row->name, "record_interval") != 0)
        row++;
    need(cx, et_option_text(cx, row, part->options, &own));
    snprintf(text, sizeof text, "%s", own);
    et_free(cx, own);
    return text;
}

static void
test_intervals(void)
{
    static const struct {
        const char *set[4], *want, *what;
    } row[] = {
        {{"loggers.csv={}"}, "null", "it likes, where nobody says"},
        {{"record_interval=5ba", "loggers.csv={}"}, "5ba", "the recipe says"},
        {{"record_interval=5ba", "loggers.jsonl.record_interval=7ba"},
         "7ba",
         "it says itself"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_assembly a;
        struct et_recipe *r = read_recipe(plain, row[i].set);
        need(cx, eti_assemble(cx, r, &usual, &a));
        need(cx, eti_assemble_callbacks(&a, r, "run"));
        is_str(interval_of(r), row[i].want, "a logger writes as often as %s",
               row[i].what);
        eti_assembly_release(&a);
        et_recipe_free(&r);
    }
}

int
main(void)
{
    cx = need_ctx();
    if (chdir(scratch_folder()) != 0)
        bail("no folder");
    test_values();
    test_never();
    test_places();
    test_outcomes();
    test_ranks();
    test_threads();
    test_limits();
    test_evaluators();
    test_other_classes();
    test_most();
    test_observers();
    test_intervals();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
