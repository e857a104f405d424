/* SPDX-License-Identifier: Apache-2.0 */
/* mlperf: the lines of its result file. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/checkpoint/archive.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { MAX_LINES = 128 };

struct lines {
    json_t *v[MAX_LINES];
    int n, bad;
};

static struct et_callback *
make(struct et_ctx *cx, const char *const *options)
{
    const struct et_callback_class *c = et_callback_find("mlperf");
    struct et_callback *out;
    void *values;
    need(cx, et_options_new(cx, &c->info, options, &values));
    need(cx, et_callback_new(cx, c, values, scratch_folder(), &out));
    et_options_free(&c->info, &values);
    return out;
}

#define MAKE(cx, ...) make(cx, (const char *const[]){__VA_ARGS__, NULL})

static const char *
path_of(int index)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/mlperf/results/box/resnet/result_%d.txt",
             scratch_folder(), index);
    return path;
}

static const char *
key_of(const json_t *line)
{
    return json_string_value(json_object_get(line, "key"));
}

static bool
is_line(const json_t *o)
{
    return json_is_string(json_object_get(o, "namespace")) &&
           json_is_integer(json_object_get(o, "time_ms")) &&
           json_is_string(json_object_get(o, "event_type")) && key_of(o) &&
           json_object_get(o, "value") &&
           json_is_object(json_object_get(o, "metadata"));
}

static void
lines_open(struct lines *l, int index)
{
    char text[2048];
    FILE *f = fopen(path_of(index), "r");
    memset(l, 0, sizeof *l);
    while (f && fgets(text, sizeof text, f) && l->n < MAX_LINES) {
        json_t *o =
            strncmp(text, ":::MLLOG ", 9) == 0 ? json_loads(text + 9, 0, NULL) : NULL;
        l->bad += !o || !is_line(o);
        l->v[l->n++] = o;
    }
    if (f)
        fclose(f);
}

static void
lines_close(struct lines *l)
{
    for (int i = 0; i < l->n; i++)
        json_decref(l->v[i]);
}

/* All keys from line FIRST on, with what they say of epochs: "epoch_start:0 ...". */
static const char *
story(const struct lines *l, int first)
{
    static char text[2048];
    size_t used = 0;
    text[0] = '\0';
    for (int i = first; i < l->n; i++) {
        json_t *meta = json_object_get(l->v[i], "metadata");
        json_t *n = json_object_get(meta, "epoch_num");
        if (!n)
            n = json_object_get(meta, "first_epoch_num");
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 n ? "%s%s:%d" : "%s%s", i > first ? " " : "",
                                 key_of(l->v[i]), (int)json_integer_value(n));
    }
    return text;
}

static const json_t *
find(const struct lines *l, const char *key)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(key_of(l->v[i]), key) == 0)
            return l->v[i];
    return NULL;
}

static int64_t
number_of(const struct lines *l, const char *key)
{
    return json_integer_value(json_object_get(find(l, key), "value"));
}

static const char *
status_of(const struct lines *l)
{
    const json_t *o = find(l, "run_stop");
    return json_string_value(json_object_get(json_object_get(o, "metadata"), "status"));
}

/* Trains for EPOCHS with C and frees it; how many batches it were. */
static int64_t
fit(struct et_ctx *cx, struct et_callback *c, int epochs)
{
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = &c,
                 .n_callbacks = 1,
                 .n = 12,
                 .evaluate = true,
                 .max_duration = ET_EPOCHS(epochs),
             });
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    int64_t n = r.state->timestamp.batch;
    run_close(&r);
    et_callback_free(&c);
    return n;
}

#define BOX(cx, index, target)                                                         \
    MAKE(cx, "index", index, "target", target, "system_name", "box", "cache_cleared",  \
         "true", "submitter", "nobody")

static void
test_missed(struct et_ctx *cx)
{
    struct lines l;
    fit(cx, BOX(cx, "0", "2"), 2);
    lines_open(&l, 0);
    is_int(l.bad, 0, "every line is of mlperf_logging's form");
    is_str(
        story(&l, 0),
        "cache_clear init_start submission_benchmark submission_division "
        "submission_org submission_platform submission_status seed global_batch_size "
        "gradient_accumulation_steps train_samples init_stop run_start "
        "epoch_start:0 block_start:0 epoch_stop:0 eval_start:1 eval_samples "
        "eval_stop:1 eval_accuracy:1 block_stop:0 "
        "epoch_start:1 block_start:1 epoch_stop:1 eval_start:2 "
        "eval_stop:2 eval_accuracy:2 block_stop:1 run_stop",
        "they tell the run");
    ok(number_of(&l, "seed") == 17 && number_of(&l, "global_batch_size") == 4 &&
           number_of(&l, "train_samples") == 12 && number_of(&l, "eval_samples") == 12,
       "seed, batch size and samples are the run's");
    is_str(json_string_value(json_object_get(find(&l, "init_start"), "event_type")),
           "INTERVAL_START", "a start begins an interval");
    is_str(json_string_value(json_object_get(find(&l, "run_stop"), "event_type")),
           "INTERVAL_END", "a stop ends it");
    is_str(json_string_value(json_object_get(find(&l, "seed"), "event_type")),
           "POINT_IN_TIME", "a fact is a point in time");
    is_str(status_of(&l), "aborted", "a target that was missed is said to be");
    lines_close(&l);
}

static void
test_reached(struct et_ctx *cx)
{
    struct lines l;
    is_int(fit(cx, BOX(cx, "1", "-1"), 2), 6, "the run goes on behind the target");
    lines_open(&l, 1);
    is_str(status_of(&l), "success", "a target that was reached stops the clock");
    is_str(story(&l, l.n - 2), "block_stop:0 run_stop", "after the first evaluation");
    double accuracy =
        json_number_value(json_object_get(find(&l, "eval_accuracy"), "value"));
    ok(json_is_real(json_object_get(find(&l, "eval_accuracy"), "value")) &&
           accuracy >= 0 && accuracy <= 1,
       "with the accuracy");
    lines_close(&l);
    is_int(fit(cx,
               MAKE(cx, "index", "2", "target", "-1", "system_name", "box",
                    "exit_at_target", "true"),
               2),
           3, "exit_at_target ends the run there");
}

static void
test_files(struct et_ctx *cx)
{
    char path[512];
    struct run r;
    struct et_callback *c = BOX(cx, "0", "2");
    run_open(&r, cx, &(struct run_setup){.callbacks = &c, .n_callbacks = 1});
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_EINVAL,
       "results that are there are never overwritten");
    ok(strstr(take_error(cx), "result_0.txt") != NULL, "the message has the name");
    run_close(&r);
    et_callback_free(&c);
    snprintf(path, sizeof path, "%s/mlperf/systems/box.json", scratch_folder());
    json_t *system = json_load_file(path, 0, NULL);
    is_str(json_string_value(json_object_get(system, "submitter")), "nobody",
           "the system is described");
    ok(strtol(json_string_value(json_object_get(system, "host_processor_vcpu_count")),
              NULL, 10) == sysconf(_SC_NPROCESSORS_ONLN),
       "with its processors");
    is_str(json_string_value(json_object_get(system, "host_processors_per_node")), "",
           "what nobody has said is left to who completes it");
    json_decref(system);
    run_open(&r, cx, &(struct run_setup){0});
    c = MAKE(cx, "index", "9", "system_name", "../box");
    ok(c->type->run(c, ET_EVENT_INIT, r.state, NULL) == ET_EINVAL,
       "a system's name is no path");
    (void)take_error(cx);
    et_callback_free(&c);
    run_close(&r);
}

/* One epoch, then another by a callback that was loaded and a state that says so. */
static void
test_resume(struct et_ctx *cx)
{
    struct lines l;
    struct et_archive a = {0};
    struct run r;
    struct et_callback *c = BOX(cx, "5", "2");
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = &c,
                 .n_callbacks = 1,
                 .evaluate = true,
             });
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    eti_archive_begin(&a, cx);
    need(cx, c->type->archive(c, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    r.state->interrupted = true; /* as far as this callback sees */
    need(cx, c->type->run(c, ET_EVENT_FIT_END, r.state, NULL));
    r.state->interrupted = false;
    run_close(&r);
    et_callback_free(&c);
    lines_open(&l, 5);
    int before = l.n;
    ok(find(&l, "run_stop") == NULL, "who interrupts does not stop the clock");
    lines_close(&l);

    c = BOX(cx, "5", "2");
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = &c,
                 .n_callbacks = 1,
                 .evaluate = true,
                 .max_duration = ET_EPOCHS(2),
             });
    a.mode = ET_ARCHIVE_LOAD;
    a.source = "test";
    need(cx, c->type->archive(c, &a));
    eti_archive_release(&a);
    et_timestamp_next_batch(&r.state->timestamp, 4, 0, 1);
    et_timestamp_next_batch(&r.state->timestamp, 4, 0, 1);
    et_timestamp_next_epoch(&r.state->timestamp);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    et_callback_free(&c);
    lines_open(&l, 5);
    is_str(story(&l, before),
           "epoch_start:1 block_start:1 epoch_stop:1 eval_start:2 eval_stop:2 "
           "eval_accuracy:2 block_stop:1 run_stop",
           "the file goes on where it was");
    lines_close(&l);
}

static int warnings;

static void
count_warning(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    warnings += level == ET_LOG_WARN && strstr(text, "cannot write the results");
}

static int64_t
time_of(const struct lines *l, const char *key)
{
    return json_integer_value(json_object_get(find(l, key), "time_ms"));
}

/* An evaluation called LABEL that comes to ACCURACY. */
static void
evaluate(struct et_callback *c, struct et_state *s, const char *label, double accuracy)
{
    static struct et_metric_value values[1];
    values[0] = (struct et_metric_value){"metrics/eval/Accuracy", accuracy};
    s->eval_metrics = values;
    s->n_eval_metrics = 1;
    s->dataloader_label = label;
    need(c->cx, c->type->run(c, ET_EVENT_EVAL_START, s, NULL));
    need(c->cx, c->type->run(c, ET_EVENT_EVAL_END, s, NULL));
    s->dataloader_label = "train";
}

/* A run that is resumed between an epoch's beginning and its evaluation. */
static void
test_epoch(struct et_ctx *cx, struct et_state *s)
{
    struct et_archive a = {.source = "test"};
    struct lines l;
    struct et_callback *c = BOX(cx, "9", "2");
    s->timestamp.epoch = 3;
    need(cx, c->type->run(c, ET_EVENT_INIT, s, NULL));
    need(cx, c->type->run(c, ET_EVENT_FIT_START, s, NULL));
    need(cx, c->type->run(c, ET_EVENT_EPOCH_START, s, NULL));
    eti_archive_begin(&a, cx);
    need(cx, c->type->archive(c, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    c->type->close(c);
    et_callback_free(&c);
    c = BOX(cx, "9", "2");
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, c->type->archive(c, &a));
    eti_archive_release(&a);
    need(cx, c->type->run(c, ET_EVENT_INIT, s, NULL));
    need(cx, c->type->run(c, ET_EVENT_FIT_START, s, NULL));
    s->timestamp.epoch = 4;
    evaluate(c, s, "eval", 0.25);
    c->type->close(c);
    et_callback_free(&c);
    lines_open(&l, 9);
    is_str(story(&l, l.n - 2), "block_stop:3 run_stop",
           "the block that ends is the one that began before the run was resumed");
    lines_close(&l);
}

/* A run whose numbers are all different, in a time that passes. */
static void
test_numbers(struct et_ctx *cx)
{
    struct lines l;
    struct run r;
    struct own_clock *clock = own_clock(cx);
    struct et_callback *c = BOX(cx, "6", "0.5");
    run_open(&r, cx, &(struct run_setup){0});
    struct et_state s = *r.state;
    const int64_t begun = (int64_t)(clock->now * 1000);
    s.batch_size = 5;
    s.grad_accum = 3;
    s.train_samples = 77;
    s.train_len = 16;
    need(cx, c->type->run(c, ET_EVENT_INIT, &s, NULL));
    clock->now += 2;
    need(cx, c->type->run(c, ET_EVENT_FIT_START, &s, NULL));
    s.dataloader_label = "train";
    need(cx, c->type->run(c, ET_EVENT_EPOCH_START, &s, NULL));
    s.timestamp = (struct et_timestamp){.epoch = 1, .batch = 16, .sample = 77};
    s.eval_timestamp.sample = 9;
    need(cx, c->type->run(c, ET_EVENT_EPOCH_END, &s, NULL));
    evaluate(c, &s, "other", 0.75);
    s.interrupted = true;
    evaluate(c, &s, "eval", 0.75);
    s.interrupted = false;
    evaluate(c, &s, "eval", 0.5);
    ok(!c->stop, "a target that is only met ends nothing");
    need(cx, c->type->run(c, ET_EVENT_FIT_START, &s, NULL)); /* fit once more */
    evaluate(c, &s, "eval", 0.75);
    ok(!c->stop, "nor does one that is reached, unless it is to");
    need(cx, c->type->run(c, ET_EVENT_EPOCH_START, &s, NULL));
    evaluate(c, &s, "eval", 0.875);
    c->type->close(c);
    lines_open(&l, 6);
    is_int(number_of(&l, "global_batch_size"), 5, "the batch size");
    is_int(number_of(&l, "gradient_accumulation_steps"), 3, "the pieces of a batch");
    is_int(number_of(&l, "train_samples"), 77, "the samples of an epoch");
    is_int(number_of(&l, "eval_samples"), 9, "and those of an evaluation");
    is_int(time_of(&l, "cache_clear") - begun, 0, "caches were cleared at the start");
    is_int(time_of(&l, "init_start") - begun, 0, "where setting up began");
    is_int(time_of(&l, "run_start") - begun, 2000, "and the run two seconds later");
    is_str(story(&l, 13),
           "epoch_start:0 block_start:0 epoch_stop:0 eval_start:1 eval_start:1 "
           "eval_samples eval_stop:1 eval_accuracy:1 block_stop:0 "
           "eval_start:1 eval_stop:1 eval_accuracy:1 block_stop:0 run_stop",
           "other evaluations are none of it, nor is what comes behind the target");
    is_str(status_of(&l), "success", "which ends it");
    lines_close(&l);
    et_callback_free(&c);

    /* A disk that is full. */
    warnings = 0;
    et_ctx_set_log(cx, ET_LOG_WARN, count_warning, NULL);
    if (symlink("/dev/full", path_of(7)) != 0)
        bail("no link to a full disk");
    c = BOX(cx, "7", "0.5");
    need(cx, c->type->run(c, ET_EVENT_INIT, &s, NULL));
    need(cx, c->type->run(c, ET_EVENT_FIT_START, &s, NULL));
    evaluate(c, &s, "eval", 0.25);
    is_int(warnings, 1, "results that cannot be written are warned of once");
    c->type->close(c);
    et_callback_free(&c);
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    c = MAKE(cx, "index", "8", "system_name", ".box");
    is_int(c->type->run(c, ET_EVENT_INIT, &s, NULL), ET_EINVAL,
           "a system's name is not hidden");
    (void)take_error(cx);
    et_callback_free(&c);
    const struct et_callback_class *type = et_callback_find("mlperf");
    static const char *const there[] = {"index", "8", "root_folder", "/tmp/x", NULL};
    void *values;
    need(cx, et_options_new(cx, &type->info, there, &values));
    need(cx, et_callback_new(cx, type, values, NULL, &c));
    et_options_free(&type->info, &values);
    is_int(c->type->run(c, ET_EVENT_INIT, &s, NULL), ET_OK,
           "a folder of its own needs no run directory");
    et_callback_free(&c);
    test_epoch(cx, &s);
    run_close(&r);
}

static void
remove_files(void)
{
    static const char *const folders[] = {"results/box/resnet", "results/box",
                                          "results", "systems", ""};
    static const int made[] = {0, 1, 2, 5, 6, 7, 9};
    char path[512];
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(path_of(made[i]));
    snprintf(path, sizeof path, "%s/mlperf/systems/box.json", scratch_folder());
    unlink(path);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/mlperf/%s", scratch_folder(), folders[i]);
        rmdir(path);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    test_missed(cx);
    test_reached(cx);
    test_files(cx);
    test_resume(cx);
    test_numbers(cx);
    remove_files();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
