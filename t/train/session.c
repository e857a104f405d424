/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: a program trains, evaluates and asks recipes (etude/session.h). */
#include "config.h"

#include "etude/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/trainer/state.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char recipe[700], folder[700];

static const char text[] =
    "model: {name: mlp, hidden: 8, num_classes: 10, in_channels: 1}\n"
    "train_data: {name: synthetic_images, type: separable, channels: 1, resolution: "
    "4,\n"
    "  num_samples: 64, num_unique: 64, batch_size: 16}\n"
    "eval_data: {name: synthetic_images, type: separable, channels: 1, resolution: 4,\n"
    "  num_samples: 32, num_unique: 32, batch_size: 16}\n"
    "optimizer: {name: sgd, lr: 0.1}\n"
    "seed: 3\n"
    "max_duration: 2ep\n";

/* ---- what is seen at events ---- */

struct seen {
    int batches, others, stop_at;
    double loss, epoch, lr, accuracy;
    et_status answer;
    struct et_session *session;
};

static et_status
look(void *data, enum et_event event, const struct et_state *s)
{
    struct seen *seen = data;
    seen->others += event != ET_EVENT_BATCH_END;
    if (event != ET_EVENT_BATCH_END)
        return ET_OK;
    if (++seen->batches == seen->stop_at && seen->session)
        et_session_stop(seen->session);
    if (!et_state_number(s, "loss", &seen->loss) ||
        !et_state_number(s, "batch_in_epoch", &seen->epoch) ||
        !et_state_number(s, "lr", &seen->lr))
        return ET_EINTERNAL;
    return seen->batches == seen->stop_at ? seen->answer : ET_OK;
}

static struct et_session *
open_session(const char *path, struct seen *seen, struct et_session_options o)
{
    struct et_session *s;
    o.device = "ref";
    if (seen) {
        o.fn = look;
        o.data = seen;
        o.events = ET_ON(BATCH_END);
    }
    need(cx, et_session_open(cx, path, &o, NULL, &s));
    return s;
}

/* run.json of the run in DIRECTORY. */
static const char *
facts_of(const char *directory)
{
    static char path[1024], json[8192];
    snprintf(path, sizeof path, "%s/run.json", directory);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(json, 1, sizeof json - 1, f) : 0;
    if (f)
        fclose(f);
    json[n] = '\0';
    return json;
}

/* The state that it has. */
static const char *
state_of(const char *directory)
{
    static char state[64];
    const char *at = strstr(facts_of(directory), "\"state\":");
    if (!at || sscanf(at, "\"state\": \"%63[^\"]", state) != 1)
        snprintf(state, sizeof state, "none");
    return state;
}

/* The records of its log. */
static int
records_of(const char *directory)
{
    char path[1024];
    struct et_events *log;
    struct et_record r;
    bool got = true;
    int n = 0;
    snprintf(path, sizeof path, "%s/events.log", directory);
    need(cx, et_events_open(cx, path, &log));
    while (et_events_next(log, &r, &got) == ET_OK && got)
        n++;
    et_events_close(&log);
    return n;
}

/* ---- tests ---- */

static void
test_fit(void)
{
    struct seen seen = {0};
    struct et_session *s =
        open_session(recipe, &seen, (struct et_session_options){.directory = folder});
    double value = 0;
    ok(!et_session_outcome(s) && !et_session_directory(s),
       "before it trains a session has no run");
    ok(et_session_fit(s) == ET_OK, "a recipe is trained: %s",
       et_error_get(cx)->message);
    is_str(et_session_outcome(s), "finished", "to its end");
    is_int(seen.batches, 8, "a function of the program is called after each batch");
    is_int(seen.others, 0, "and at no other event");
    ok(seen.loss > 0 && seen.epoch == 4 && seen.lr == 0.1,
       "it reads numbers of the state: %g, %g, %g", seen.loss, seen.epoch, seen.lr);
    ok(et_state_number(et_session_state(s), "metrics/eval/CrossEntropy", &value) &&
           value > 0,
       "so does the program, of the last evaluation");
    ok(!et_state_number(et_session_state(s), "accuracy", &value),
       "what has no number is said");
    is_str(et_session_directory(s), folder, "the run has its directory");
    is_str(state_of(folder), "finished", "which says how it ended");
    const int records = records_of(folder);
    ok(et_session_eval(s) == ET_OK, "the model is evaluated once more");
    is_str(state_of(folder), "finished", "which the run's directory has no part in");
    ok(et_session_fit(s) == ET_EINVAL, "a session trains once");
    (void)take_error(cx);
    et_session_close(&s);
    is_int(records_of(folder), records, "nor has its log of the second evaluation");
}

/* ---- every number of a state ---- */

/* Reads the numbers after the second batch of the second epoch. */
static et_status
read_numbers(void *data, enum et_event event, const struct et_state *s)
{
    const struct et_timestamp *ts = et_state_get_timestamp(s);
    const struct {
        const char *name;
        double want;
    } number[] = {
        {"epoch", 1},
        {"batch", 6},
        {"sample", 96},
        {"token", 0},
        {"batch_size", 16},
        {"batch_in_epoch", 2},
        {"seconds", ts->total_wct},
        {"grad_accum", 2},
        {"lr", 0.1},
    };
    bool *read = data;
    double got, loss;
    if (event != ET_EVENT_BATCH_END || ts->batch != 6)
        return ET_OK;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        ok(et_state_number(s, number[i].name, &got) && got == number[i].want,
           "number %s of a state is %g: %g", number[i].name, number[i].want, got);
    ok(et_state_number(s, "loss", &loss) &&
           et_state_number(s, "loss/train/total", &got) && loss == got && loss > 0,
       "the number loss of a state is the batch's logged loss");
    int named = 0, metrics = 0, evaluated = 0;
    for (const char *name; (name = et_state_number_name(s, named)); named++) {
        metrics += strcmp(name, "metrics/eval/Accuracy") == 0;
        evaluated += strncmp(name, "metrics/eval/", 13) == 0;
        if (!et_state_number(s, name, &got))
            ok(false, "%s, which the state names, has a number", name);
        for (int k = 0; k < named; k++)
            if (strcmp(et_state_number_name(s, k), name) == 0)
                ok(false, "the state names %s once", name);
    }
    ok(named > 2 && metrics == 1,
       "the state names the logged numbers and those of the last evaluation");
    is_int(evaluated, s->n_eval_metrics, "all of those");
    ok(!et_state_number_name(s, named + 1),
       "the state names nothing behind its last number");
    ok(!et_state_number_name(s, -1), "nor before its first");
    *read = true;
    return ET_OK;
}

static void
test_numbers(void)
{
    bool read = false;
    struct et_session *s;
    const struct et_override change = {ET_OVERRIDE_SET, "grad_accum=2"};
    const struct et_session_options o = {.device = "ref",
                                         .overrides = &change,
                                         .n_overrides = 1,
                                         .no_directory = true,
                                         .events = ET_ON(BATCH_END),
                                         .fn = read_numbers,
                                         .data = &read};
    need(cx, et_session_open(cx, recipe, &o, NULL, &s));
    need(cx, et_session_fit(s));
    ok(read, "a program reads a state's numbers while the run trains");
    et_session_close(&s);
}

/* Outputs of the model of S for the same numbers. */
static void
predict(struct et_session *s, float out[2][10])
{
    static const int64_t shape[] = {2, 1, 4, 4};
    float pixel[32];
    struct et_tensor *x, *y;
    for (int i = 0; i < 32; i++)
        pixel[i] = (float)(i % 7) - 3;
    need(cx, et_tensor_new(cx, et_session_device(s), ET_F32, 4, shape, ET_ROW_MAJOR,
                           NULL, &x));
    need(cx, et_tensor_write(cx, x, pixel, sizeof pixel));
    need(cx, et_session_predict(s, x, &y));
    need(cx, et_tensor_read(cx, y, out, 20 * sizeof(float)));
    et_tensor_free(&x);
    et_tensor_free(&y);
}

static void
test_runs(void)
{
    float trained[2][10], again[2][10], fresh[2][10];
    struct et_session *s = open_session(folder, NULL, (struct et_session_options){0});
    predict(s, trained);
    double value = 0;
    ok(et_session_eval(s) == ET_OK &&
           et_state_number(et_session_state(s), "metrics/eval/Accuracy", &value),
       "the model of a run is evaluated");
    et_session_close(&s);
    s = open_session(folder, NULL,
                     (struct et_session_options){.no_train = true, .no_eval = true});
    predict(s, again);
    ok(memcmp(trained, again, sizeof trained) == 0,
       "it predicts the same where none of its data are opened");
    ok(et_session_eval(s) != ET_OK, "and cannot be evaluated then");
    (void)take_error(cx);
    et_session_close(&s);
    s = open_session(recipe, NULL, (struct et_session_options){.no_train = true});
    predict(s, fresh);
    ok(memcmp(trained, fresh, sizeof trained) != 0,
       "that of its recipe, which has not been trained, predicts something else");
    ok(et_session_fit(s) == ET_EINVAL, "a session without train_data does not train");
    (void)take_error(cx);
    et_session_close(&s);
    char weights[1100];
    const struct et_override from = {ET_OVERRIDE_SET, weights};
    snprintf(weights, sizeof weights,
             "model.weights=%s/checkpoints/step-000000000008/model-00000.safetensors",
             folder);
    s = open_session(
        recipe, NULL,
        (struct et_session_options){
            .overrides = &from, .n_overrides = 1, .no_train = true, .no_eval = true});
    predict(s, again);
    ok(memcmp(trained, again, sizeof trained) == 0,
       "that of a recipe with a file of weights has them, also without data");
    et_session_close(&s);
}

static int64_t
batches_of(struct et_trainer *t)
{
    return et_state_get_timestamp(et_trainer_state(t))->batch;
}

/* A run whose trainer the program calls itself. */
static void
test_trainer(void)
{
    struct et_trainer *t, *again;
    char other[800];
    snprintf(other, sizeof other, "%s-parts", folder);
    struct et_session *s =
        open_session(recipe, NULL, (struct et_session_options){.directory = other});
    need(cx, et_session_trainer(s, &t));
    need(cx, et_trainer_fit(t, ET_BATCHES(3)));
    need(cx, et_trainer_fit(t, ET_BATCHES(2)));
    ok(et_session_trainer(s, &again) == ET_OK && again == t,
       "a session has one trainer, which may fit in parts");
    et_session_close(&s);
    is_str(state_of(other), "finished", "the run ends with its session");
    ok(strstr(facts_of(other), "\"exit_code\": 0"), "as one that went well");

    s = open_session(recipe, NULL,
                     (struct et_session_options){.directory = other, .resume = true});
    need(cx, et_session_trainer(s, &t));
    is_int(batches_of(t), 5, "a session that resumes goes on where it was");
    need(cx, et_session_fit(s));
    is_int(batches_of(t), 8, "to the end of the recipe");
    et_session_close(&s);

    snprintf(other, sizeof other, "%s-nothing", folder);
    s = open_session(recipe, NULL, (struct et_session_options){.directory = other});
    need(cx, et_session_trainer(s, &t));
    et_session_close(&s);
    is_str(state_of(other), "failed",
           "a run that has not trained to an end has failed");
    struct et_session_options o = {.directory = other, .device = "ref"};
    ok(et_trainer_from_recipe(cx, recipe, &o, NULL, &t) == ET_EINVAL && !t,
       "a directory that holds a run is taken by one that resumes alone");
    (void)take_error(cx);
}

static void
test_ends(void)
{
    struct seen seen = {.stop_at = 3};
    struct et_session *s =
        open_session(recipe, &seen, (struct et_session_options){.no_directory = true});
    seen.session = s;
    ok(et_session_fit(s) == ET_OK, "a run that is asked to stop does");
    is_int(seen.batches, 3, "after the batch under way");
    ok(!et_session_directory(s), "without a directory it leaves nothing");
    et_session_close(&s);

    seen = (struct seen){.stop_at = 2, .answer = ET_ECANCELED};
    char other[800];
    snprintf(other, sizeof other, "%s-failed", folder);
    s = open_session(recipe, &seen, (struct et_session_options){.directory = other});
    ok(et_session_fit(s) == ET_ECANCELED, "a function that fails ends the run");
    is_str(take_error(cx), "the session's function failed at batch_end",
           "which is said where it has not said why");
    is_str(state_of(other), "failed", "and the run's directory knows");
    const int batches = seen.batches;
    ok(et_session_fit(s) == ET_EINVAL && seen.batches == batches,
       "a run that has failed does not go on in the same session");
    (void)take_error(cx);
    is_str(et_session_outcome(s), "failed", "it stays failed");
    et_session_close(&s);
}

/* A run goes on with a recipe that differs from its own where it may, and no other. */
static void
test_changes(void)
{
    static const struct {
        const char *change;
        bool may;
    } row[] = {
        {"model.hidden=9", false},        {"seed=4", false},
        {"optimizer.lr=0.2", false},      {"train_data.batch_size=8", false},
        {"grad_accum=2", false},          {"eval_data.batch_size=8", false},
        {"eval_interval=2ep", true},      {"checkpoint.keep=1", true},
        {"target=accuracy>=0.999", true}, {"max_duration=3ep", true},
    };
    char other[800];
    snprintf(other, sizeof other, "%s-changed", folder);
    struct et_session *s =
        open_session(recipe, NULL, (struct et_session_options){.directory = other});
    need(cx, et_session_fit(s));
    et_session_close(&s);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct et_diagnostics errors = {0};
        const struct et_override change = {ET_OVERRIDE_SET, row[i].change};
        const struct et_session_options o = {.directory = other,
                                             .device = "ref",
                                             .resume = true,
                                             .overrides = &change,
                                             .n_overrides = 1};
        et_status status = et_session_open(cx, recipe, &o, &errors, &s);
        ok((status == ET_OK) == row[i].may && (errors.total == 0) == row[i].may,
           "a run that goes on may%s have %s", row[i].may ? "" : " not", row[i].change);
        et_error_clear(cx);
        et_session_close(&s);
    }
}

/* The exit code in its run.json. */
static int
exit_code_of(const char *directory)
{
    int code = -1;
    const char *at = strstr(facts_of(directory), "\"exit_code\":");
    return at && sscanf(at, "\"exit_code\": %d", &code) == 1 ? code : -1;
}

/* A run that a program trains to its target. */
static void
test_target(void)
{
    char other[800];
    struct et_trainer *t;
    const struct et_override change = {ET_OVERRIDE_SET, "target=crossentropy<=1000"};
    snprintf(other, sizeof other, "%s-target", folder);
    struct et_session *s =
        open_session(recipe, NULL,
                     (struct et_session_options){
                         .directory = other, .overrides = &change, .n_overrides = 1});
    need(cx, et_session_trainer(s, &t));
    need(cx, et_trainer_fit(t, ET_TIME_UNSET));
    et_session_close(&s);
    is_str(state_of(other), "reached-target", "a run that comes to its target says so");
    is_int(exit_code_of(other), 0, "and went well");
}

/* Who is to leave nothing begins anew, whatever is in the directory. */
static void
test_no_directory(void)
{
    struct et_trainer *t;
    const int records = records_of(folder);
    struct et_session *s =
        open_session(recipe, NULL,
                     (struct et_session_options){
                         .directory = folder, .no_directory = true, .resume = true});
    need(cx, et_session_trainer(s, &t));
    is_int(batches_of(t), 0, "a session without a directory goes on with no run");
    need(cx, et_session_fit(s));
    is_int(batches_of(t), 8, "but trains from the beginning");
    et_session_close(&s);
    is_int(records_of(folder), records, "and leaves the run as it is");
    const struct et_override other = {ET_OVERRIDE_SET, "model.hidden=9"};
    s = open_session(recipe, NULL,
                     (struct et_session_options){.directory = folder,
                                                 .no_directory = true,
                                                 .resume = true,
                                                 .overrides = &other,
                                                 .n_overrides = 1});
    ok(s != NULL, "its recipe may be any other");
    et_session_close(&s);
}

static void
test_faults(void)
{
    struct et_diagnostics errors = {0};
    struct et_session *s;
    const struct et_override wrong[] = {{ET_OVERRIDE_SET, "optimizer.lrr=1"},
                                        {ET_OVERRIDE_SET, "seeed=1"}};
    ok(et_session_open(
           cx, recipe,
           &(struct et_session_options){.overrides = wrong, .n_overrides = 2}, &errors,
           &s) == ET_EINVAL &&
           !s,
       "a recipe with faults is refused");
    is_int(errors.total, 2, "all of them are told");
    (void)take_error(cx);
    ok(et_session_open(cx, "/no/such/recipe.yaml", NULL, NULL, &s) == ET_ENOENT && !s,
       "a recipe that is not there as well");
    (void)take_error(cx);
}

static void
test_layout(void)
{
    size_t offset = 0, size = 0;
    ok(et_layout_field("et_desc", "shape", &offset, &size) &&
           offset == offsetof(struct et_desc, shape) &&
           size == sizeof(int64_t) * ET_MAX_DIMS,
       "a program in another language can ask where a field is");
    ok(!et_layout_field("et_desc", "no_field", &offset, &size),
       "and is told that there is none of a name");
}

/* ---- what a program brings along ---- */

struct hearing {
    struct et_sink sink;
    int records, rates;
};

static void
hear_record(struct et_sink *sink, const struct et_record *record)
{
    struct hearing *h = (struct hearing *)sink;
    h->records++;
    for (int i = 0; i < record->n; i++)
        h->rates += strncmp(record->entry[i].name, "lr-", 3) == 0;
}

static int own_batches;

static et_status
count_batches(struct et_callback *self, enum et_event event,
              const struct et_state *state, struct et_log *log)
{
    (void)self;
    (void)event;
    (void)state;
    (void)log;
    own_batches++;
    return ET_OK;
}

static const struct et_callback_class counts_batches = {
    .info = {.name = "counts_batches", .summary = "counts", .applies_to = "any"},
    .events = ET_ON(BATCH_END),
    .run = count_batches,
};

/* A program's sink hears what the run does, and what is evaluated after it; its
 * callback stands beside the recipe's; all of its changes are made. */
static void
test_own(void)
{
    static const struct et_override changes[] = {
        {ET_OVERRIDE_SET, "callbacks={speed_monitor: false, memory_monitor: false, "
                          "runtime_estimator: false}"},
        {ET_OVERRIDE_SET, "optimizer.lr=0.25"},
        {ET_OVERRIDE_SET, "seed=77"},
    };
    struct hearing h[2] = {{.sink = {hear_record}}, {.sink = {hear_record}}};
    struct et_callback *own;
    char other[800];
    snprintf(other, sizeof other, "%s-own", folder);
    for (int k = 0; k < 2; k++) {
        own_batches = 0;
        need(cx, et_callback_new(cx, &counts_batches, NULL, NULL, &own));
        struct et_session *s =
            open_session(recipe, NULL,
                         (struct et_session_options){.directory = other,
                                                     .no_directory = k == 0,
                                                     .overrides = changes,
                                                     .n_overrides = 3,
                                                     .callbacks = &own,
                                                     .n_callbacks = 1,
                                                     .sink = &h[k].sink});
        ok(strstr(et_session_recipe(s), "lr: 0.25") &&
               strstr(et_session_recipe(s), "seed: 77"),
           "each change of the recipe is made");
        need(cx, et_session_fit(s));
        is_int(own_batches, 8, "a callback of the program is called");
        ok(h[k].records > 8 && h[k].rates >= 8,
           "and the recipe's: %d rates in %d records that its sink hears", h[k].rates,
           h[k].records);
        const int before = h[k].records, log = k ? records_of(other) : 0;
        need(cx, et_session_eval(s));
        ok(h[k].records > before, "and what is evaluated when the run has ended");
        is_int(k ? records_of(other) : 0, log, "of which the run has nothing");
        et_session_close(&s);
        et_callback_free(&own);
    }
}

/* Of the recipe's and the program's there are no more than a trainer takes. */
static void
test_too_many(void)
{
    static struct et_algorithm *many[ET_MAX_ALGORITHMS];
    static const struct et_override change = {ET_OVERRIDE_SET,
                                              "algorithms={label_smoothing: {}}"};
    struct et_session *s =
        open_session(recipe, NULL,
                     (struct et_session_options){.no_directory = true,
                                                 .overrides = &change,
                                                 .n_overrides = 1,
                                                 .algorithms = many,
                                                 .n_algorithms = ET_MAX_ALGORITHMS});
    ok(et_session_fit(s) == ET_EINVAL && strstr(take_error(cx), "more than"),
       "one algorithm more than there may be is refused");
    et_session_close(&s);
}

/* The file NAME of the run in DIRECTORY. */
static const char *
file_of(const char *directory, const char *name)
{
    static char path[1024], bytes[16384];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    if (f)
        fclose(f);
    bytes[n] = '\0';
    return bytes;
}

/* What a run leaves says how it was computed and why it ended; what begins from it has
 * a name of its own, and from one of its checkpoints that one's values. */
static void
test_report(void)
{
    static const struct et_override changes[] = {
        {ET_OVERRIDE_SET, "grad_accum=2"},
        {ET_OVERRIDE_SET, "seed=0"},
        {ET_OVERRIDE_SET, "run_name=calm-bird"},
        {ET_OVERRIDE_SET, "target=crossentropy<=0"},
    };
    char other[800], first[900];
    snprintf(other, sizeof other, "%s-report", folder);
    struct et_session *s =
        open_session(recipe, NULL,
                     (struct et_session_options){
                         .directory = other, .overrides = changes, .n_overrides = 4});
    need(cx, et_session_fit(s));
    et_session_close(&s);
    ok(strstr(file_of(other, "recipe.resolved.yaml"), "\nseed: 0 "),
       "a seed of 0 is one");
    ok(strstr(file_of(other, "report.json"), "\"microbatches\": 2"),
       "a report says how many microbatches a batch had");
    ok(strstr(file_of(other, "report.json"), "CrossEntropy") &&
           strstr(file_of(other, "report.json"), "Accuracy"),
       "and what each metric came to");
    float newest[2][10], older[2][10];
    s = open_session(other, NULL, (struct et_session_options){0});
    ok(!strstr(et_session_recipe(s), "calm-bird"),
       "what begins from it is called anew");
    predict(s, newest);
    et_session_close(&s);
    snprintf(first, sizeof first, "%s/checkpoints/step-000000000004", other);
    s = open_session(first, NULL, (struct et_session_options){0});
    predict(s, older);
    ok(memcmp(newest, older, sizeof newest) != 0,
       "an older checkpoint has other values than the newest");
    et_session_close(&s);
    s = open_session(recipe, NULL, (struct et_session_options){.no_directory = true});
    need(cx, et_session_eval(s));
    ok(et_session_fit(s) == ET_EINVAL && strstr(take_error(cx), "trains once"),
       "a session does not train when it has evaluated");
    et_session_close(&s);
}

/* Several data to evaluate on have each their loader. */
static void
test_loaders(void)
{
    static const struct et_override two = {
        ET_OVERRIDE_SET,
        "eval_data=[{name: synthetic_images, type: separable, channels: 1, resolution: "
        "4, num_samples: 32, num_unique: 32, batch_size: 16}, {name: synthetic_images, "
        "type: separable, channels: 1, resolution: 4, num_samples: 48, num_unique: 48, "
        "batch_size: 16, label: more}]"};
    static const struct {
        int i;
        bool bare;
        int want; /* batches of an epoch; 0: no such loader */
    } row[] = {{-1, false, 4}, {0, false, 2}, {1, false, 3}, {2, false, 0},
               {99, false, 0}, {-1, true, 0}, {0, true, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct et_session *s =
            open_session(recipe, NULL,
                         (struct et_session_options){.no_directory = true,
                                                     .overrides = &two,
                                                     .n_overrides = 1,
                                                     .no_train = row[i].bare,
                                                     .no_eval = row[i].bare});
        struct et_loader *l = et_session_loader(s, row[i].i);
        struct et_loader_info info = {0};
        if (l)
            et_loader_get_info(l, &info);
        is_int(info.batches_per_epoch, row[i].want, "loader %d%s", row[i].i,
               row[i].bare ? " of a session that opens no data" : "");
        et_session_close(&s);
    }
}

int
main(void)
{
    cx = need_ctx();
    snprintf(recipe, sizeof recipe, "%s",
             write_file("session.yaml", text, strlen(text), false));
    snprintf(folder, sizeof folder, "%s/run", scratch_folder());
    test_fit();
    test_numbers();
    test_runs();
    test_trainer();
    test_ends();
    test_changes();
    test_target();
    test_no_directory();
    test_faults();
    test_layout();
    test_own();
    test_too_many();
    test_report();
    test_loaders();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
