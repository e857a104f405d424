/* SPDX-License-Identifier: Apache-2.0 */
/* best_model_saver and model_ema: the file holds the weights that the best evaluation
 * used. weights_saver: files of the weights of certain times. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/checkpoint/archive.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { MAX_EVALS = 16 };

/* What evaluations said, and whether somebody warned. */
struct notes {
    struct et_sink sink; /* first */
    double entropy[MAX_EVALS], ema[MAX_EVALS], loss[MAX_EVALS];
    int n, n_ema, n_losses, warnings, saved;
};

static void
note(struct et_sink *sink, const struct et_record *r)
{
    struct notes *notes = (struct notes *)sink;
    if (r->kind == ET_RECORD_LOG) {
        notes->warnings += r->level == ET_LOG_WARN;
        notes->saved += strstr(r->text, "the best so far") != NULL;
    }
    for (int i = 0; i < r->n; i++) {
        const char *name = r->entry[i].name;
        double value = r->entry[i].value;
        if (strcmp(name, "metrics/eval/CrossEntropy") == 0 && notes->n < MAX_EVALS)
            notes->entropy[notes->n++] = value;
        if (strcmp(name, "metrics/ema_model_eval/CrossEntropy") == 0 &&
            notes->n_ema < MAX_EVALS)
            notes->ema[notes->n_ema++] = value;
        if (strcmp(name, "loss/train/total") == 0 && notes->n_losses < MAX_EVALS)
            notes->loss[notes->n_losses++] = value;
    }
}

static struct et_callback *
make(struct et_ctx *cx, const char *name, const char *const *options)
{
    const struct et_callback_class *c = et_callback_find(name);
    struct et_callback *out;
    void *values;
    need(cx, et_options_new(cx, &c->info, options, &values));
    need(cx, et_callback_new(cx, c, values, scratch_folder(), &out));
    et_options_free(&c->info, &values);
    return out;
}

#define MAKE(cx, ...)                                                                  \
    make(cx, "best_model_saver", (const char *const[]){__VA_ARGS__, NULL})
#define MAKE_EMA(cx, ...)                                                              \
    make(cx, "model_ema", (const char *const[]){__VA_ARGS__, NULL})

static const char *
path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    return path;
}

static double
extreme(const struct notes *notes, bool most)
{
    double best = notes->entropy[0];
    for (int i = 1; i < notes->n; i++)
        if (most ? notes->entropy[i] > best : notes->entropy[i] < best)
            best = notes->entropy[i];
    return best;
}

static void
fit(struct run *r, struct et_ctx *cx, struct et_callback *c, struct et_algorithm *a,
    struct notes *notes)
{
    *notes = (struct notes){.sink = {.write = note}};
    run_open(r, cx,
             &(struct run_setup){
                 .callbacks = &c,
                 .n_callbacks = 1,
                 .algorithms = &a,
                 .n_algorithms = a ? 1 : 0,
                 .evaluate = true,
                 .max_duration = ET_EPOCHS(4),
                 .sink = &notes->sink,
             });
    need(cx, et_trainer_fit(r->trainer, ET_TIME_UNSET));
}

/* What the cross entropy is with the model as it is. */
static double
entropy_now(struct run *r)
{
    double value;
    need(r->cx, et_trainer_eval(r->trainer));
    return et_state_metric(r->state, "metrics/eval/CrossEntropy", &value) ? value : NAN;
}

/* And with the file's weights. */
static double
entropy_of(struct et_ctx *cx, const char *name)
{
    struct run r;
    run_open(&r, cx, &(struct run_setup){.evaluate = true});
    need(cx, et_model_load_weights(cx, r.model, path_of(name)));
    double value = entropy_now(&r);
    run_close(&r);
    return value;
}

static void
test_least(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_callback *c = MAKE(cx, "save_path", "least.safetensors");
    fit(&r, cx, c, NULL, &notes);
    ok(notes.n == 4 && notes.saved >= 1, "of four evaluations %d were the best so far",
       notes.saved);
    ok(entropy_of(cx, "least.safetensors") == extreme(&notes, false),
       "the file's weights have the least cross entropy of the run");
    run_close(&r);
    et_callback_free(&c);

    FILE *f = fopen(path_of("least.safetensors"), "r");
    char header[512] = "", want[64];
    size_t n = f ? fread(header, 1, sizeof header - 1, f) : 0;
    if (f)
        fclose(f);
    snprintf(want, sizeof want, "\"value\":\"%.9g\"", extreme(&notes, false));
    ok(n > 8 && strstr(header + 8, "\"metric\":\"metrics/eval/CrossEntropy\"") &&
           strstr(header + 8, want),
       "it says which metric and value they are of");
    int best = 0;
    while (notes.entropy[best] != extreme(&notes, false))
        best++;
    snprintf(want, sizeof want, "\"ep\":\"%d\"", best + 1);
    ok(n > 8 && strstr(header + 8, want),
       "the saved file names the epoch of the best evaluation");
    snprintf(want, sizeof want, "\"ba\":\"%d\"", 2 * (best + 1));
    ok(n > 8 && strstr(header + 8, want),
       "the saved file names the batch of the best evaluation");
}

/* Does C save, as the best so far, an evaluation with this VALUE? */
static bool
is_best(struct et_callback *c, const struct et_state *of, double value)
{
    struct notes notes = {.sink = {.write = note}};
    struct et_metric_value one = {"metrics/eval/CrossEntropy", value};
    struct et_state s = *of;
    s.eval_metrics = &one;
    s.n_eval_metrics = 1;
    s.dataloader_label = "eval";
    need(c->cx, et_log_new(c->cx, &notes.sink, &s.log));
    need(c->cx, c->type->evaluated(c, &s, s.log));
    et_log_free(&s.log);
    return notes.saved == 1;
}

static void
test_values(struct et_ctx *cx)
{
    struct run r;
    struct et_callback *c = MAKE(cx, "save_path", "values.safetensors");
    run_open(&r, cx, &(struct run_setup){0});
    ok(!is_best(c, r.state, NAN) && access(path_of("values.safetensors"), F_OK) != 0,
       "an evaluation of NaN is not saved as the best");
    ok(is_best(c, r.state, 4) && !is_best(c, r.state, 4) && is_best(c, r.state, 3),
       "the first number is saved as the best, an equal one is not, a better one is");
    et_callback_free(&c);

    c = MAKE(cx, "save_path", "later/values.safetensors");
    ok(!is_best(c, r.state, 4),
       "an evaluation whose file cannot be written is not the best");
    need(cx, mkdir(path_of("later"), 0700) == 0 ? ET_OK : ET_EIO);
    ok(is_best(c, r.state, 5), "a worse evaluation is saved as the best where the "
                               "better one could not be written");
    unlink(path_of("later/values.safetensors"));
    rmdir(path_of("later"));
    et_callback_free(&c);

    for (int reset = 0; reset < 2; reset++) {
        c = MAKE(cx, "reset_on_train", reset ? "true" : "false");
        bool first = is_best(c, r.state, 4);
        need(cx, c->type->run(c, ET_EVENT_FIT_START, r.state, r.state->log));
        ok(first && !is_best(c, r.state, 5),
           "the first fit keeps the best value that was loaded");
        need(cx, c->type->run(c, ET_EVENT_FIT_END, r.state, r.state->log));
        need(cx, c->type->run(c, ET_EVENT_FIT_START, r.state, r.state->log));
        ok(is_best(c, r.state, 5) == reset,
           "a further fit forgets the best value only with reset_on_train");
        et_callback_free(&c);
    }
    run_close(&r);
}

/* A run that is interrupted goes on with its own weights. */
static void
test_interrupted(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_callback *of_run = MAKE(cx, "save_path", "run.safetensors");
    struct et_callback *c =
        MAKE(cx, "load_at_end", "true", "save_path", "kept.safetensors");
    fit(&r, cx, of_run, NULL, &notes);
    bool first = is_best(c, r.state, 4);
    size_t bytes = et_desc_bytes(&r.state->params->values->desc);
    float *trained = malloc(bytes), *now = calloc(1, bytes);
    need(cx, et_tensor_read(cx, r.state->params->values, trained, bytes));
    need(cx, et_tensor_write(cx, r.state->params->values, now, bytes));
    r.state->interrupted = true;
    need(cx, c->type->run(c, ET_EVENT_FIT_END, r.state, r.state->log));
    need(cx, et_tensor_read(cx, r.state->params->values, now, bytes));
    ok(first && memcmp(now, trained, bytes) != 0,
       "load_at_end leaves the weights of an interrupted run alone");
    r.state->interrupted = false;
    need(cx, c->type->run(c, ET_EVENT_FIT_END, r.state, r.state->log));
    need(cx, et_tensor_read(cx, r.state->params->values, now, bytes));
    ok(memcmp(now, trained, bytes) == 0,
       "load_at_end gives a run that has ended the best weights");
    free(now);
    free(trained);
    run_close(&r);
    et_callback_free(&of_run);
    et_callback_free(&c);
}

static void
test_greatest(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_callback *c =
        MAKE(cx, "watch_metric", "crossentropy", "greater_is_better", "true",
             "load_at_end", "true", "save_path", "greatest.safetensors");
    fit(&r, cx, c, NULL, &notes);
    double most = extreme(&notes, true);
    ok(most != notes.entropy[3], "the last epoch is not the worst");
    ok(entropy_of(cx, "greatest.safetensors") == most,
       "greater_is_better wants the most, whatever the name");
    ok(entropy_now(&r) == most, "load_at_end: the model has these weights");
    need(cx, et_trainer_fit(r.trainer, ET_EPOCHS(1)));
    ok(entropy_of(cx, "greatest.safetensors") == notes.entropy[5],
       "another call of fit begins anew, by reset_on_train");
    run_close(&r);
    et_callback_free(&c);
}

static void
test_average(struct et_ctx *cx)
{
    const struct et_algorithm_class *ema = et_algorithm_find("ema");
    struct notes notes;
    struct run r;
    struct et_algorithm *a;
    struct et_callback *c = MAKE(cx, "save_path", "average.safetensors");
    need(cx, et_algorithm_new(cx, ema, NULL, &a));
    fit(&r, cx, c, a, &notes);
    ok(entropy_of(cx, "average.safetensors") == extreme(&notes, false),
       "what was evaluated is what is saved: the average of ema");
    run_close(&r);
    et_callback_free(&c);
    et_algorithm_free(&a);
}

static void
test_faults(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_callback *c = MAKE(cx, "save_path", "nowhere/best.safetensors");
    fit(&r, cx, c, NULL, &notes);
    ok(notes.warnings >= 1 && notes.saved == 0 && notes.n == 4,
       "a file that cannot be written is warned about and the run goes on");
    run_close(&r);
    et_callback_free(&c);
    c = MAKE(cx, "watch_metric", "MIoU");
    fit(&r, cx, c, NULL, &notes);
    is_int(notes.warnings, 1, "a metric that no evaluation has is warned about");
    run_close(&r);
    et_callback_free(&c);
    need(cx, et_callback_new(cx, et_callback_find("best_model_saver"), NULL, NULL, &c));
    ok(c->type->run(c, ET_EVENT_INIT, NULL, NULL) == ET_EINVAL,
       "it needs a run directory");
    is_str(take_error(cx), "best_model_saver needs a run directory, and there is none",
           "and says so");
    et_callback_free(&c);
}

static void
test_archive(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_archive a = {0};
    struct et_callback *c = MAKE(cx, "save_path", "resumed.safetensors");
    fit(&r, cx, c, NULL, &notes);
    eti_archive_begin(&a, cx);
    need(cx, c->type->archive(c, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    run_close(&r);
    et_callback_free(&c);
    double least = extreme(&notes, false);

    c = MAKE(cx, "save_path", "resumed.safetensors");
    a.mode = ET_ARCHIVE_LOAD;
    a.source = "test";
    need(cx, c->type->archive(c, &a));
    eti_archive_release(&a);
    fit(&r, cx, c, NULL, &notes); /* the same losses, none better */
    is_int(notes.saved, 0, "resumed, it knows the best value of before");
    ok(entropy_of(cx, "resumed.safetensors") == least, "and leaves the file alone");
    run_close(&r);
    et_callback_free(&c);
}

/* ---- weights_saver ---- */

#define MAKE_SAVER(cx, ...)                                                            \
    make(cx, "weights_saver", (const char *const[]){__VA_ARGS__, NULL})

/* The files of weights/, in order, with blanks between. */
static const char *
saved_names(void)
{
    static char names[256];
    glob_t found;
    names[0] = '\0';
    if (glob(path_of("weights/*"), 0, NULL, &found) != 0)
        return names;
    size_t used = 0;
    for (size_t i = 0; i < found.gl_pathc && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 i ? " " : "", strrchr(found.gl_pathv[i], '/') + 1);
    globfree(&found);
    return names;
}

static void
remove_saved(void)
{
    glob_t found;
    if (glob(path_of("weights/*"), 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    rmdir(path_of("weights"));
}

/* Four epochs of two batches, evaluated at the end of each. */
static void
test_saver(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_callback *c = MAKE_SAVER(cx, "interval", "2ep", "at", "[3ba, 0.75dur]");
    fit(&r, cx, c, NULL, &notes);
    is_str(saved_names(),
           "ep1-ba3.safetensors ep2-ba4.safetensors ep2-ba6.safetensors "
           "ep4-ba8.safetensors",
           "weights of every second epoch, of batch 3, and of three quarters");
    ok(entropy_of(cx, "weights/ep2-ba4.safetensors") == notes.entropy[1] &&
           entropy_of(cx, "weights/ep2-ba6.safetensors") == notes.entropy[2] &&
           entropy_of(cx, "weights/ep4-ba8.safetensors") == notes.entropy[3],
       "each file's weights are those of its time");
    run_close(&r);
    et_callback_free(&c);

    c = MAKE_SAVER(cx, "interval", "0", "at", "[1dur]", "name", "'{run_name}-last'");
    fit(&r, cx, c, NULL, &notes);
    ok(entropy_of(cx, "weights/run-last.safetensors") == notes.entropy[3],
       "an interval of 0 leaves those at their own times, under any name");
    run_close(&r);
    et_callback_free(&c);

    const char *const bad[] = {"x{nothing}", "a/b"};
    for (int i = 0; i < 2; i++) {
        const struct et_callback_class *type = et_callback_find("weights_saver");
        void *values;
        need(cx, et_alloc(cx, type->info.options_size, &values));
        need(cx, et_options_init(cx, type->info.options, values));
        need(cx, et_options_set(cx, type->info.options, values, "name", bad[i]));
        ok(et_callback_new(cx, type, values, scratch_folder(), &c) == ET_EINVAL &&
               strstr(take_error(cx), bad[i]),
           "the name %s is refused", bad[i]);
        et_options_release(type->info.options, values);
        et_free(cx, values);
    }
}

/* Batch 9 after one that was resumed at batch 8, in files of every second. */
static void
test_saver_archive(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_archive a = {0};
    struct et_callback *c = MAKE_SAVER(cx, "interval", "2ba");
    fit(&r, cx, c, NULL, &notes);
    eti_archive_begin(&a, cx);
    need(cx, c->type->archive(c, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    struct et_callback *next = MAKE_SAVER(cx, "interval", "2ba", "name", "next{batch}");
    a.mode = ET_ARCHIVE_LOAD;
    a.source = "test";
    need(cx, next->type->archive(next, &a));
    eti_archive_release(&a);
    remove_saved();
    need(cx, next->type->run(next, ET_EVENT_INIT, r.state, r.state->log));
    struct et_state s = *r.state;
    for (int i = 0; i < 2; i++) {
        s.timestamp.batch++;
        need(cx, next->type->run(next, ET_EVENT_BATCH_CHECKPOINT, &s, s.log));
        is_str(saved_names(), i ? "next10.safetensors" : "",
               "resumed at batch 8: what is there after batch %d", 9 + i);
    }
    remove_saved();
    run_close(&r);
    et_callback_free(&next);
    et_callback_free(&c);
}

/* ---- model_ema ---- */

static float *by_hand;

/* The average over epochs with a decay of 0.75, by hand. */
static et_status
follow(struct et_callback *self, enum et_event event, const struct et_state *s,
       struct et_log *log)
{
    size_t bytes = et_desc_bytes(&s->params->values->desc), n = bytes / sizeof(float);
    float *now = malloc(bytes);
    (void)self;
    (void)log;
    need(s->cx, et_tensor_read(s->cx, s->params->values, now, bytes));
    if (event == ET_EVENT_FIT_START) {
        free(by_hand);
        by_hand = now;
        return ET_OK;
    }
    for (size_t i = 0; i < n; i++)
        by_hand[i] = (float)(.75 * by_hand[i] + .25 * now[i]);
    free(now);
    return ET_OK;
}

static const struct et_callback_class follow_class = {
    .info = {.name = "follow", .class_name = "Follow"},
    .events = ET_ON(FIT_START) | ET_ON(EPOCH_END),
    .run = follow,
};

/* Do the file's weights equal the average by hand? Each epoch rounds a few times, to
 * eps = 6e-8 of numbers below 1. */
static void
compare_file(struct et_ctx *cx, const char *name)
{
    struct run r;
    run_open(&r, cx, &(struct run_setup){0});
    need(cx, et_model_load_weights(cx, r.model, path_of(name)));
    int64_t n = r.state->params->total;
    float *now = malloc((size_t)n * sizeof *now);
    need(cx, et_tensor_read(cx, r.state->params->values, now, (size_t)n * sizeof *now));
    is_near_array(now, by_hand, n, 1e-6, "%s holds the average over epochs", name);
    free(now);
    run_close(&r);
}

/* Four epochs with the callback C, which may be NULL and is freed, and evaluations. */
static void
fit_ema(struct et_ctx *cx, struct et_callback *c, struct notes *notes)
{
    struct et_callback own = {.type = &follow_class, .cx = cx};
    struct et_callback *both[] = {&own, c};
    struct run r;
    *notes = (struct notes){.sink = {.write = note}};
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = both,
                 .n_callbacks = c ? 2 : 1,
                 .evaluate = true,
                 .max_duration = ET_EPOCHS(4),
                 .sink = &notes->sink,
                 .target = "crossentropy<=-1",
             });
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    int evals = notes->n_ema;
    need(cx, et_trainer_eval(r.trainer));
    is_int(notes->n_ema, evals, "an evaluation outside of fit has no second");
    run_close(&r);
    et_callback_free(&c);
}

static void
test_ema(struct et_ctx *cx)
{
    struct notes plain, with, without;
    fit_ema(cx, NULL, &plain);
    fit_ema(cx, MAKE_EMA(cx, "decay", "0.75"), &with);
    ok(with.n_ema == 4 && with.n == plain.n,
       "each evaluation has a second, of the average");
    ok(with.n_losses == 8 &&
           memcmp(with.loss, plain.loss, 8 * sizeof *plain.loss) == 0 &&
           memcmp(with.entropy, plain.entropy, 4 * sizeof *plain.entropy) == 0,
       "training and its evaluations are bit by bit what they are without");
    double least = with.ema[0];
    for (int i = 1; i < 4; i++)
        least = with.ema[i] < least ? with.ema[i] : least;
    ok(entropy_of(cx, "ema_model.safetensors") == least,
       "the file holds the average that did best");
    struct notes worse;
    fit_ema(cx,
            MAKE_EMA(cx, "decay", "0.75", "greater_is_better", "true", "save_path",
                     "most.safetensors"),
            &worse);
    double most = worse.ema[0];
    for (int i = 1; i < 4; i++)
        most = worse.ema[i] > most ? worse.ema[i] : most;
    ok(most > worse.ema[3] && entropy_of(cx, "most.safetensors") == most,
       "though it is not the last one");
    fit_ema(cx,
            MAKE_EMA(cx, "decay", "0.75", "evaluate_during_training", "false",
                     "save_path", "last.safetensors"),
            &without);
    is_int(without.n_ema, 0, "with evaluate_during_training off there is no second");
    compare_file(cx, "last.safetensors");
    free(by_hand);
    by_hand = NULL;
}

/* Keeps the weights that the first evaluation sees, and fails in the second. */
static float *trained;
static int evaluations;

static et_status
fail_second(struct et_callback *self, enum et_event event, const struct et_state *s,
            struct et_log *log)
{
    size_t bytes = et_desc_bytes(&s->params->values->desc);
    (void)self, (void)event, (void)log;
    if (++evaluations == 2)
        return ET_FAIL(s->cx, ET_EINVAL, "the second evaluation fails");
    trained = malloc(bytes);
    return et_tensor_read(s->cx, s->params->values, trained, bytes);
}

static const struct et_callback_class fail_class = {
    .info = {.name = "fail_second", .class_name = "FailSecond"},
    .events = ET_ON(EVAL_START),
    .run = fail_second,
};

static void
test_ema_fails(struct et_ctx *cx)
{
    struct et_callback failing = {.type = &fail_class, .cx = cx};
    struct et_callback *ema = MAKE_EMA(cx, "decay", "0.75");
    struct et_callback *both[] = {&failing, ema};
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = both,
                 .n_callbacks = 2,
                 .evaluate = true,
                 .max_duration = ET_EPOCHS(4),
             });
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_EINVAL,
       "a run ends when an evaluation of the average fails");
    size_t bytes = et_desc_bytes(&r.state->params->values->desc);
    float *now = malloc(bytes);
    need(cx, et_tensor_read(cx, r.state->params->values, now, bytes));
    ok(memcmp(now, trained, bytes) == 0, "and leaves the trained weights in the model");
    free(now);
    free(trained);
    run_close(&r);
    et_callback_free(&ema);
}

/* Interrupts at the average's first evaluation. */
static volatile int interrupt;

static et_status
interrupt_average(struct et_callback *self, enum et_event event,
                  const struct et_state *s, struct et_log *log)
{
    (void)self, (void)event, (void)log;
    if (strncmp(s->dataloader_label, "ema_model_", 10) == 0 && evaluations++ == 0)
        interrupt = 1;
    return ET_OK;
}

static const struct et_callback_class interrupt_class = {
    .info = {.name = "interrupt_average", .class_name = "InterruptAverage"},
    .events = ET_ON(EVAL_START),
    .run = interrupt_average,
};

/* An evaluation of the average that was interrupted is made up for, once. */
static void
test_ema_owed(struct et_ctx *cx)
{
    struct et_callback breaking = {.type = &interrupt_class, .cx = cx};
    struct et_callback *ema = MAKE_EMA(cx, "decay", "0.75");
    struct et_callback *both[] = {&breaking, ema};
    struct notes notes = {.sink = {.write = note}};
    struct run r;
    evaluations = interrupt = 0;
    run_prepare(&r, cx,
                &(struct run_setup){
                    .callbacks = both,
                    .n_callbacks = 2,
                    .evaluate = true,
                    .max_duration = ET_EPOCHS(4),
                    .sink = &notes.sink,
                });
    r.config.interrupt = &interrupt;
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    ok(notes.n == 1 && notes.n_ema == 0,
       "the first evaluation of the average is interrupted");
    struct et_archive a = {0};
    eti_archive_begin(&a, cx);
    need(cx, ema->type->archive(ema, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    interrupt = 0;
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    is_int(notes.n_ema, 2,
           "the next fit makes up for the interrupted evaluation, and evaluates at its "
           "end");
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    is_int(notes.n_ema, 3, "a fit after that evaluates the average at its end alone");
    run_close(&r);
    et_callback_free(&ema);

    ema = MAKE_EMA(cx, "decay", "0.75");
    run_open(&r, cx,
             &(struct run_setup){.callbacks = &ema,
                                 .n_callbacks = 1,
                                 .evaluate = true,
                                 .sink = &notes.sink});
    a.source = "test";
    a.mode = ET_ARCHIVE_CHECK;
    need(cx, ema->type->archive(ema, &a));
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, ema->type->archive(ema, &a));
    eti_archive_release(&a);
    r.state->dataloader_label = "train";
    need(cx, ema->type->run(ema, ET_EVENT_FIT_START, r.state, r.state->log));
    is_int(notes.n_ema, 4,
           "a resumed run makes up for the interrupted evaluation of the average");
    run_close(&r);
    et_callback_free(&ema);
}

/* A target's name fits one metric still. */
static void
test_ema_target(struct et_ctx *cx)
{
    struct run r;
    struct et_callback *c = MAKE_EMA(cx, "save_path", "target.safetensors");
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = &c,
                 .n_callbacks = 1,
                 .evaluate = true,
                 .max_duration = ET_EPOCHS(3),
                 .target = "crossentropy<=1000",
             });
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    ok(r.state->target_reached && r.state->timestamp.epoch == 1,
       "a target is of the evaluators' metrics, not of the average's");
    run_close(&r);
    et_callback_free(&c);
}

/* An average that goes through a checkpoint evaluates to the same. */
static void
test_ema_archive(struct et_ctx *cx)
{
    struct et_archive a = {0};
    struct notes notes = {.sink = {.write = note}};
    struct run r;
    struct et_callback *c = MAKE_EMA(cx, "decay", "0.75");
    struct run_setup setup = {
        .callbacks = &c,
        .n_callbacks = 1,
        .evaluate = true,
        .max_duration = ET_EPOCHS(2),
        .sink = &notes.sink,
    };
    run_open(&r, cx, &setup);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    eti_archive_begin(&a, cx);
    need(cx, c->type->archive(c, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    run_close(&r);
    et_callback_free(&c);
    c = MAKE_EMA(cx, "decay", "0.75");
    run_open(&r, cx, &setup);
    a.source = "test";
    a.mode = ET_ARCHIVE_CHECK;
    need(cx, c->type->archive(c, &a));
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, c->type->archive(c, &a));
    eti_archive_release(&a);
    r.state->dataloader_label = "train";
    need(cx, c->type->run(c, ET_EVENT_FIT_START, r.state, r.state->log));
    int saved = notes.saved;
    need(cx, c->type->run(c, ET_EVENT_EVAL_AFTER_ALL, r.state, r.state->log));
    ok(notes.n_ema == 3 && notes.ema[2] == notes.ema[1],
       "an average that was resumed evaluates to the same");
    is_int(notes.saved, saved,
           "an evaluation that is no better than the resumed best is not saved");
    run_close(&r);
    et_callback_free(&c);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    test_least(cx);
    test_values(cx);
    test_interrupted(cx);
    test_greatest(cx);
    test_average(cx);
    test_faults(cx);
    test_archive(cx);
    test_saver(cx);
    test_saver_archive(cx);
    test_ema(cx);
    test_ema_fails(cx);
    test_ema_owed(cx);
    test_ema_target(cx);
    test_ema_archive(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
