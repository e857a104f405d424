/* SPDX-License-Identifier: Apache-2.0 */
/* Progress beyond the one line of each kind in t/unit/progress: bars of evaluations,
 * the lines that stay when an epoch or a run ends, and lines of runs of unknown length;
 * and the console, whose lines stand between those of a bar. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/loggers/progress.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

static char *text; /* what the last progress wrote */
static size_t length;
static FILE *out;

static struct et_callback *
start(struct et_ctx *cx, enum et_progress_kind kind, struct et_time every)
{
    struct et_callback *c;
    free(text);
    text = NULL;
    out = open_memstream(&text, &length);
    fflush(out); /* makes TEXT an empty text */
    const struct et_progress p = {kind, out, every, 132};
    need(cx, et_progress_new(cx, &p, &c));
    return c;
}

static const char *
finish(struct et_callback **c)
{
    (*c)->type->close(*c);
    et_callback_free(c);
    fclose(out);
    return text;
}

/* What follows the last C in text; "" if text has no C. */
static const char *
behind(char c)
{
    const char *at = strrchr(text, c);
    return at ? at + 1 : "";
}

/* The text behind the last \r or \n. */
static const char *
last_line(void)
{
    const char *end = text + strlen(text), *from = end;
    while (from > text && from[-1] != '\n' && from[-1] != '\r')
        from--;
    return from;
}

/* Progress gets EVENT if it has asked for it, and flushes what it writes. */
static void
fire(struct et_callback *c, enum et_event event, struct et_state *s)
{
    if (c->type->events & (UINT64_C(1) << event))
        need(s->cx, c->type->run(c, event, s, s->log));
}

static void
place(struct et_state *s)
{
    s->timestamp = (struct et_timestamp){
        .epoch = 3,
        .batch = 37,
        .sample = 300,
        .token = 9000,
        .batch_in_epoch = 7,
        .sample_in_epoch = 50,
        .epoch_wct = 20,
        .total_wct = 100,
    };
    s->train_len = 10;
    s->dataloader_len = 10;
    s->max_duration = ET_EPOCHS(5);
    s->loss_value = 0.5;
    s->dataloader_label = "train";
    et_log_emit(s->log, ET_RECORD_METRIC, &s->timestamp, NULL);
}

static void
place_eval(struct et_state *s, int64_t batch, int64_t of)
{
    s->dataloader_label = "ev\x1b";
    s->dataloader_len = of;
    s->eval_timestamp.batch = batch;
}

/* ---- bars ---- */

static void
test_evaluation(struct et_ctx *cx, struct et_state s)
{
    struct own_clock *clock = own_clock(cx);
    struct et_callback *c =
        start(cx, ET_PROGRESS_BAR, (struct et_time){2, ET_TIME_SECOND});
    place(&s);
    clock->now += 100;
    for (int round = 0; round < 2; round++) {
        fire(c, ET_EVENT_EVAL_START, &s);
        clock->now += 8;
        place_eval(&s, 4, 20);
        fire(c, ET_EVENT_EVAL_BATCH_END, &s);
        is_str(last_line(),
               "ev\\x1b Epoch   3:  20%|=====                    | 4/20 [00:08<00:32, "
               "0.50ba/s]",
               "the bar of an evaluation has its batches and its time");
        clock->now += 1;
        place_eval(&s, 5, 20);
        fire(c, ET_EVENT_EVAL_BATCH_END, &s);
        ok(strstr(last_line(), " 4/20 ") != NULL,
           "a bar is not drawn again within its interval");
        clock->now += 1;
        place_eval(&s, 6, -1);
        fire(c, ET_EVENT_EVAL_BATCH_END, &s);
        is_str(last_line(),
               "ev\\x1b Epoch   3:   ?%|                         | 6/? [00:10<?, "
               "0.60ba/s]     ",
               "the bar of an evaluation of unknown length has no share, and nothing "
               "of the bar before");
        clock->now += 50;
    }
    c->type->text(c, ET_LOG_ERROR, "red \033[31m");
    is_str(last_line(), "", "a line of the log ends the bar's line");
    ok(strstr(text, "\rerror: red \\x1b[31m\n") != NULL && !strstr(text, "red \033"),
       "a line of the log takes the bar's place and sends no escape to the terminal");
    et_log_metric(s.log, "metrics/eval/LanguagePerplexity", 2);
    et_log_metric(s.log, "metrics/eval/MIoU", 0.25);
    et_log_metric(s.log, "metrics/eval/LanguageCrossEntropy", 0.75);
    et_log_metric(s.log, "metrics/eval/Other", 0.125);
    et_log_metric(s.log, "time/batch", 7);
    s.eval_timestamp.total_wct = 65;
    fire(c, ET_EVENT_EVAL_END, &s);
    ok(strstr(text, "\nev\\x1b Epoch   3: perplexity=2.0000 miou=0.2500 ce=0.7500 "
                    "Other=0.1250 time=1m05s\n") != NULL,
       "an evaluation's line has its metrics under short labels, and nothing else: %s",
       text);
    finish(&c);
}

/* The last lines when a run ends. */
static void
test_ends(struct et_ctx *cx, struct et_state s)
{
    static const char in_epoch[] =
        "train  Epoch   3:  70%|=================        | 7/10 [00:20<00:08, "
        "0.35ba/s, loss/train=0.5000]  total 74% ETA -\n";
    struct et_callback *c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1000));
    place(&s);
    fire(c, ET_EVENT_FIT_END, &s);
    is_str(behind('\r'), in_epoch, "a run that ends within an epoch leaves its bar");
    const struct et_run_notice end = {
        .name = "a", .directory = "d", .state = "failed", .at_end = &s};
    et_progress_notice(c, &end);
    is_str(behind('\r'), in_epoch, "progress prints nothing of how a run ended");
    const struct et_run_notice begin = {
        .name = "brisk-otter", .directory = "runs/\x1bx", .state = "starting"};
    et_progress_notice(c, &begin);
    ok(strstr(text, "\nrun    brisk-otter in runs/\\x1bx\n") != NULL,
       "progress prints the folder of a run that begins");
    et_progress_clear(c);
    ok(text[strlen(text) - 1] == '\n',
       "clearing progress that has no bar prints nothing");
    finish(&c);

    c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1));
    place(&s);
    s.timestamp.batch_in_epoch = 10;
    fire(c, ET_EVENT_BATCH_END, &s);
    const size_t drawn = strlen(behind('\r'));
    size_t before = strlen(text);
    et_progress_clear(c);
    ok(drawn > 60 && strlen(text + before) == drawn + 2 && text[before] == '\r' &&
           strspn(text + before + 1, " ") == drawn && text[strlen(text) - 1] == '\r',
       "clearing writes blanks over the whole bar, and stays in its line");
    before = strlen(text);
    et_progress_clear(c);
    is_str(text + before, "", "and does so once");
    s.timestamp.epoch = 4;
    s.timestamp.batch_in_epoch = 0;
    s.timestamp.epoch_wct = 0;
    before = strlen(text);
    fire(c, ET_EVENT_EPOCH_END, &s);
    ok(strstr(text + before,
              "\rtrain  Epoch   3: 100%|=========================| 10/10 "
              "[00:20<00:00, 0.50ba/s,") != NULL,
       "the bar of an ended epoch has the time of this epoch: %s", behind('\r'));
    before = strlen(text);
    fire(c, ET_EVENT_FIT_END, &s);
    is_str(text + before, "", "a run that ends with an epoch draws no empty bar");
    finish(&c);
}

/* Runs whose length is not in epochs. */
static void
test_other_lengths(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        struct et_time length;
        const char *shown;
    } rows[] = {
        {{40, ET_TIME_BATCH},
         " 92%|=======================  | 37/40 [01:40<00:08, 0.37ba/s"},
        {{400, ET_TIME_SAMPLE},
         " 75%|==================       | 300/400 [01:40<00:33, 3.00sp/s"},
        {{10000, ET_TIME_TOKEN},
         " 90%|======================   | 9000/10000 [01:40<00:11, 90.00tok/s"},
        {{20, ET_TIME_BATCH}, "100%|=========================| 37/20 ["},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_callback *c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1));
        place(&s);
        s.max_duration = rows[i].length;
        fire(c, ET_EVENT_BATCH_END, &s);
        ok(strstr(last_line(), rows[i].shown) != NULL,
           "a bar spans the whole run: %s, not %s", rows[i].shown, last_line());
        const size_t before = strlen(text);
        fire(c, ET_EVENT_EPOCH_END, &s);
        is_str(text + before, "",
               "a bar that spans the run goes on when an epoch ends");
        finish(&c);
    }
}

/* ---- plain lines ---- */

static void
test_unknown(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = start(cx, ET_PROGRESS_PLAIN, ET_BATCHES(1));
    place(&s);
    const struct et_run_notice end = {
        .name = "a", .directory = "d", .state = "failed", .at_end = &s};
    et_progress_notice(c, &end);
    is_str(text + 20, " info end a failed ep=3 ba=37 total=74% time=1m40s\n",
           "a run that has not trained has no loss in its last line");
    fire(c, ET_EVENT_BATCH_END, &s);
    is_str(behind('Z'),
           " info train ep=3 ba=7/10 total=74% loss/train=0.5000 samples/s=2.50 "
           "eta=-\n",
           "a line without a speed monitor has the epoch's speed");
    s.train_len = -1;
    s.max_duration = ET_TIME_UNSET;
    s.timestamp.batch++;
    s.timestamp.sample_in_epoch = 200;
    fire(c, ET_EVENT_BATCH_END, &s);
    is_str(behind('Z'), " info train ep=3 ba=7 loss/train=0.5000 samples/s=10 eta=-\n",
           "a line of a run of unknown length has no share, and a speed from ten on "
           "has no decimals");
    s.timestamp.batch++;
    s.timestamp.sample_in_epoch = 199;
    s.timestamp.epoch_wct = 0;
    fire(c, ET_EVENT_BATCH_END, &s);
    is_str(behind('Z'), " info train ep=3 ba=7 loss/train=0.5000 eta=-\n",
           "a line has no speed where no time has passed");
    place_eval(&s, 1, 1);
    s.eval_timestamp.total_wct = 3;
    et_log_metric(s.log, "metrics/eval/MIoU", 0.25);
    fire(c, ET_EVENT_EVAL_END, &s);
    is_str(behind('Z'), " info ev\\x1b ep=3 ba=39 miou=0.2500 time=3s\n",
           "a line sends no escape of an evaluator's name to the terminal");
    finish(&c);
}

static void
test_seconds(struct et_ctx *cx, struct et_state s)
{
    struct own_clock *clock = own_clock(cx);
    struct et_callback *c =
        start(cx, ET_PROGRESS_PLAIN, (struct et_time){5, ET_TIME_SECOND});
    int lines = 0;
    place(&s);
    for (int i = 0; i < 20; i++, clock->now++)
        fire(c, ET_EVENT_BATCH_END, &s);
    for (const char *p = finish(&c); (p = strchr(p, '\n')); p++)
        lines++;
    is_int(lines, 4, "lines are five seconds apart, as was asked for");
    const struct et_progress none = {ET_PROGRESS_PLAIN, stderr, ET_BATCHES(0), 0};
    need(cx, et_progress_new(cx, &none, &c));
    ok(!et_time_is_set(((struct eti_progress *)c->state)->config.every),
       "an interval of 0 batches counts as not set");
    et_callback_free(&c);
}

/* ---- JSON ---- */

static void
test_json(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = start(cx, ET_PROGRESS_JSON, ET_BATCHES(1));
    place(&s);
    for (int level = ET_LOG_DEBUG; level <= ET_LOG_ERROR; level++) {
        char want[96];
        c->type->text(c, (enum et_log_level)level, "said");
        snprintf(want, sizeof want,
                 ",\"level\":\"%s\",\"ev\":\"log\",\"text\":\"said\"}\n",
                 et_log_level_name((enum et_log_level)level));
        is_str(strstr(text, "{") ? strchr(strrchr(text, '{'), ',') : "", want,
               "a line of the log has its level");
    }
    et_log_metric(s.log, "a", 2);
    fire(c, ET_EVENT_EPOCH_END, &s);
    is_str(strchr(strstr(text, "\"ev\":\"epoch\"") ? strstr(text, "\"ev\":\"epoch\"")
                                                   : ",",
                  ','),
           ",\"ep\":3,\"ba\":37,\"m\":{\"a\":2}}\n",
           "the end of an epoch is printed as an event");
    const struct et_run_notice end = {.name = "a",
                                      .directory = "d",
                                      .state = "failed",
                                      .at_end = &s,
                                      .exit_code = 70};
    et_progress_notice(c, &end);
    ok(strstr(text, "\"name\":\"a\",\"directory\":\"d\",\"state\":\"failed\","
                    "\"exit_code\":70,\"ep\":3,\"ba\":37,") != NULL,
       "the end of a run is printed with its name, folder, state, exit code and place");
    finish(&c);
}

/* ---- the time to go ---- */

/* The time left in a run of ten epochs of two batches of a second each; where it
 * EVALUATES, with an evaluation of ten seconds after each epoch. */
static double
left_after(struct et_ctx *cx, struct et_state s, bool evaluates)
{
    struct et_callback *c = start(cx, ET_PROGRESS_JSON, ET_BATCHES(1));
    place(&s);
    s.timestamp = (struct et_timestamp){0};
    s.train_len = 2;
    s.max_duration = ET_EPOCHS(10);
    for (int ba = 1; ba <= 6; ba++) {
        s.timestamp.batch = ba;
        s.timestamp.batch_in_epoch = 2 - ba % 2;
        s.timestamp.epoch = (ba - 1) / 2;
        s.timestamp.total_wct += 1;
        fire(c, ET_EVENT_BATCH_END, &s);
        if (ba % 2 == 0 && evaluates) {
            s.timestamp.epoch = ba / 2;
            s.timestamp.batch_in_epoch = 0;
            s.eval_timestamp.total_wct = 10;
            et_log_metric(s.log, "metrics/eval/A", 1);
            fire(c, ET_EVENT_EVAL_END, &s);
            et_log_emit(s.log, ET_RECORD_EVAL, NULL, NULL);
        }
    }
    const char *eta = NULL;
    for (const char *p = finish(&c); (p = strstr(p, "\"eta_s\":")); p++)
        eta = p;
    return eta ? strtod(eta + 8, NULL) : NAN;
}

static void
test_left(struct et_ctx *cx, struct et_state s)
{
    const double without = left_after(cx, s, false), with = left_after(cx, s, true);
    ok(without == 14, "fourteen batches of a second are left: %g", without);
    ok(with > without + 50, "the time left includes evaluations of ten seconds: %g",
       with);
}

/* ---- the console ---- */

static const char *
path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    return path;
}

/* The bytes of a file, valid until the next call. */
static const char *
bytes_of(const char *name)
{
    static char bytes[64 << 10];
    FILE *f = fopen(path_of(name), "r");
    size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    if (f)
        fclose(f);
    bytes[n] = '\0';
    return bytes;
}

/* Makes descriptor FD a file of that name; returns where it led. */
static int
divert(int fd, const char *name)
{
    fflush(NULL);
    int before = dup(fd), to = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (before < 0 || to < 0 || dup2(to, fd) < 0)
        bail("cannot divert descriptor %d", fd);
    close(to);
    return before;
}

static void
restore(int fd, int before)
{
    fflush(NULL);
    dup2(before, fd);
    close(before);
}

static struct et_callback *
make(struct et_ctx *cx, const char *const *options)
{
    const struct et_callback_class *type = et_logger_find("console");
    struct et_callback *c;
    void *block;
    need(cx, et_options_new(cx, &type->info, options, &block));
    need(cx, et_callback_new(cx, type, block, scratch_folder(), &c));
    et_options_free(&type->info, &block);
    return c;
}

static void
end(struct et_callback **c)
{
    (*c)->type->close(*c);
    et_callback_free(c);
}

static void
evaluate(struct et_callback *c, struct et_state *s, int64_t n)
{
    s->dataloader_label = "eval";
    s->dataloader_len = n;
    for (int64_t i = 1; i <= n; i++) {
        s->eval_timestamp.batch = i;
        fire(c, ET_EVENT_EVAL_BATCH_END, s);
    }
    et_log_metric(s->log, "metrics/eval/Accuracy", 0.75);
    fire(c, ET_EVENT_EVAL_END, s);
    et_log_emit(s->log, ET_RECORD_EVAL, NULL, NULL);
}

/* The batches of an evaluation of N that the console prints, about ten of them; also an
 * interrupted evaluation, and an epoch of unknown length. */
static void
test_console_tenths(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        int64_t n;
        const char *named;
    } rows[] = {
        {-1, ""},
        {1, "1 "},
        {2, "1 2 "},
        {10, "1 2 3 4 5 6 7 8 9 10 "},
        {11, "1 2 3 4 5 6 7 8 9 10 11 "},
        {12, "1 2 3 4 5 6 8 9 10 11 12 "},
        {21, "1 3 5 7 9 11 13 15 17 19 21 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_callback *c = make(cx, NULL);
        char named[128] = "";
        int before = divert(STDERR_FILENO, "err");
        fire(c, ET_EVENT_INIT, &s);
        evaluate(c, &s, rows[i].n);
        restore(STDERR_FILENO, before);
        for (const char *p = bytes_of("err"); (p = strstr(p, "batch=")); p++)
            snprintf(named + strlen(named), sizeof named - strlen(named), "%ld ",
                     strtol(p + 6, NULL, 10));
        is_str(rows[i].n < 0 ? "" : named, rows[i].named,
               "the console prints these of %d batches of an evaluation",
               (int)rows[i].n);
        end(&c);
    }
    struct et_callback *c = make(cx, NULL);
    int before = divert(STDERR_FILENO, "err");
    fire(c, ET_EVENT_INIT, &s);
    s.train_len = -1;
    s.max_duration = ET_EPOCHS(2);
    s.timestamp.epoch = 4;
    et_log_metric(s.log, "a\x1b[31m", 1000000.5);
    et_log_metric(s.log, "b", 0.001);
    et_log_metric(s.log, "c", 0.0009996);
    et_log_metric(s.log, "d", 999999.5);
    et_log_metric(s.log, "loss/train/total", 1);
    s.timestamp.batch = s.timestamp.batch_in_epoch = 3;
    fire(c, ET_EVENT_BATCH_END, &s);
    et_log_emit(s.log, ET_RECORD_BATCH, NULL, NULL);
    s.dataloader_len = 2;
    s.eval_timestamp.batch = 2;
    fire(c, ET_EVENT_EVAL_END, &s); /* without a number */
    restore(STDERR_FILENO, before);
    is_str(bytes_of("err"),
           "[epoch=5][batch=3/?]:\n"
           "\t Train a\\x1b[31m: 1e+06\n"
           "\t Train b: 0.0010\n"
           "\t Train c: 0.0009996\n"
           "\t Train d: 999999.5000\n"
           "\t Train loss/train/total: 1\n",
           "the console prints a batch of an epoch of unknown length, and nothing of "
           "an interrupted evaluation");
    end(&c);
    unlink(path_of("err"));
}

/* The console takes a bar on the same terminal back before each of its lines. */
static void
test_console_bar(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c[2];
    struct et_algorithm *a;
    FILE *f = fopen(path_of("bar"), "w+");
    if (!f)
        bail("no file");
    const struct et_progress p = {ET_PROGRESS_BAR, f, ET_BATCHES(1), 100};
    c[0] = make(cx, (const char *[]){"log_traces", "true", "stream", "stdout", NULL});
    need(cx, et_progress_new(cx, &p, &c[1]));
    need(cx, et_algorithm_new(cx, et_algorithm_find("label_smoothing"), NULL, &a));
    s.callbacks = c;
    s.n_callbacks = 2;
    s.train_len = 4;
    s.max_duration = ET_EPOCHS(2);
    int before = divert(STDOUT_FILENO, "out");
    fire(c[0], ET_EVENT_INIT, &s);
    int wrong = 0;
    static const enum et_event events[] = {ET_EVENT_FIT_START, ET_EVENT_BATCH_END,
                                           ET_EVENT_EVAL_BATCH_END, ET_EVENT_EVAL_END,
                                           ET_EVENT_COUNT};
    for (int i = 0; i < 5; i++) {
        s.timestamp.batch = i + 1;
        s.dataloader_label = "eval";
        s.dataloader_len = 4;
        s.eval_timestamp.batch = 1;
        et_log_metric(s.log, "metrics/eval/Accuracy", 0.75);
        fire(c[1], ET_EVENT_BATCH_END, &s);
        if (i < 4)
            fire(c[0], events[i], &s);
        else
            c[0]->type->trace(c[0], &s, a, ET_EVENT_BEFORE_LOSS);
        const char *drawn = bytes_of("bar");
        wrong += drawn[0] == '\0' || drawn[strlen(drawn) - 1] != '\r';
    }
    restore(STDOUT_FILENO, before);
    is_int(
        wrong, 0,
        "the console prints no line behind a bar: settings, numbers, places, traces");
    ok(strstr(bytes_of("out"),
              "[trace]: algorithm_traces/LabelSmoothing/before_loss: 1") != NULL,
       "the console prints traces to its own stream");
    end(&c[1]);
    end(&c[0]);
    fclose(f);
    et_algorithm_free(&a);
    unlink(path_of("out"));
    unlink(path_of("bar"));
}

/* The settings of a run: each algorithm, and numbers of which this run has 1. */
static void
test_given(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = make(cx, NULL);
    struct et_algorithm *a[2];
    need(cx, et_algorithm_new(cx, et_algorithm_find("label_smoothing"), NULL, &a[0]));
    need(cx, et_algorithm_new(cx, et_algorithm_find("mixup"), NULL, &a[1]));
    s.algorithms = a;
    s.n_algorithms = 2;
    int before = divert(STDERR_FILENO, "err");
    fire(c, ET_EVENT_INIT, &s);
    fire(c, ET_EVENT_FIT_START, &s);
    restore(STDERR_FILENO, before);
    is_str(bytes_of("err"),
           "******************************\n"
           "Config:\n"
           "enabled_algorithms/LabelSmoothing: true\n"
           "enabled_algorithms/MixUp: true\n"
           "num_cpus_per_node: 1\n"
           "num_nodes: 1\n"
           "rank_zero_seed: 17\n"
           "******************************\n",
           "the console prints each algorithm among the settings");
    end(&c);
    for (int i = 0; i < 2; i++)
        et_algorithm_free(&a[i]);
    unlink(path_of("err"));
}

static void
test_intervals(struct et_ctx *cx)
{
    static const struct {
        const char *text;
        bool is_fine;
    } rows[] = {{"1ba", true},  {"1", true},    {"2ep", true},
                {"0ba", false}, {"0ep", false}, {"0.5ep", false}};
    const struct et_callback_class *type = et_logger_find("console");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_callback *c = NULL;
        void *block;
        need(cx, et_alloc(cx, type->info.options_size, &block));
        need(cx, et_options_init(cx, type->info.options, block));
        et_status status =
            et_options_set(cx, type->info.options, block, "interval", rows[i].text);
        if (status == ET_OK)
            status = et_callback_new(cx, type, block, scratch_folder(), &c);
        is_int(status == ET_OK, rows[i].is_fine, "the console's interval %s is %s",
               rows[i].text, rows[i].is_fine ? "taken" : "refused");
        et_error_clear(cx);
        if (status == ET_OK)
            et_callback_free(&c);
        et_options_release(type->info.options, block);
        et_free(cx, block);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct run r;
    (void)own_clock(cx);
    run_open(&r, cx, &(struct run_setup){0});
    test_evaluation(cx, *r.state);
    test_ends(cx, *r.state);
    test_other_lengths(cx, *r.state);
    test_unknown(cx, *r.state);
    test_seconds(cx, *r.state);
    test_json(cx, *r.state);
    test_left(cx, *r.state);
    test_console_tenths(cx, *r.state);
    test_console_bar(cx, *r.state);
    test_given(cx, *r.state);
    test_intervals(cx);
    run_close(&r);
    free(text);
    et_ctx_free(&cx);
    return done();
}
