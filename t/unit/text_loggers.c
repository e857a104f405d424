/* SPDX-License-Identifier: Apache-2.0 */
/* The loggers that write text for people: the lines of the console, and a file that
 * also holds what the process prints. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

static const char *
path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    return path;
}

/* The bytes of a file, borrowed until the next; "" when there is none. */
static const char *
bytes_of(const char *name)
{
    static char bytes[4 << 20];
    FILE *f = fopen(path_of(name), "r");
    size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    if (f)
        fclose(f);
    bytes[n] = '\0';
    return bytes;
}

static int
lines_of(const char *text, const char *with)
{
    int n = 0;
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
        n += strncmp(p, with, strlen(with)) == 0;
    return n;
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

/* The logger NAME with options (name, value, ..., NULL), not yet at INIT. */
static struct et_callback *
make(struct et_ctx *cx, const char *name, const char *const *options)
{
    const struct et_callback_class *type = et_logger_find(name);
    struct et_callback *c;
    void *block;
    need(cx, et_options_new(cx, &type->info, options, &block));
    need(cx, et_callback_new(cx, type, block, scratch_folder(), &c));
    et_options_free(&type->info, &block);
    return c;
}

/* C gets EVENT if it has asked for it. */
static void
fire(struct et_callback *c, enum et_event event, struct et_state *s)
{
    if (c->type->events & (UINT64_C(1) << event))
        need(s->cx, c->type->run(c, event, s, s->log));
}

static void
finish(struct et_callback **c)
{
    (*c)->type->close(*c);
    et_callback_free(c);
}

static void
batch(struct et_callback *c, struct et_state *s, int64_t ba, double loss)
{
    s->timestamp.batch = ba;
    s->timestamp.batch_in_epoch = (ba - 1) % 4 + 1;
    et_log_metric(s->log, "loss/train/total", loss);
    fire(c, ET_EVENT_BATCH_END, s);
    et_log_emit(s->log, ET_RECORD_BATCH, &s->timestamp, NULL);
}

static void
end_epoch(struct et_callback *c, struct et_state *s)
{
    s->timestamp.epoch++;
    s->timestamp.batch_in_epoch = 0;
    fire(c, ET_EVENT_EPOCH_END, s);
    et_log_emit(s->log, ET_RECORD_EPOCH, &s->timestamp, NULL);
}

static void
evaluate(struct et_callback *c, struct et_state *s, const char *label, int64_t n)
{
    s->dataloader_label = label;
    s->dataloader_len = n;
    for (int64_t i = 1; i <= n; i++) {
        s->eval_timestamp.batch = i;
        fire(c, ET_EVENT_EVAL_BATCH_END, s);
    }
    et_log_metric(s->log, "metrics/eval/Accuracy", 0.75);
    fire(c, ET_EVENT_EVAL_END, s);
    et_log_emit(s->log, ET_RECORD_EVAL, &s->timestamp, NULL);
}

/* ---- console ---- */

static void
test_console(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c =
        make(cx, "console", (const char *[]){"interval", "2ba", NULL});
    int before = divert(STDERR_FILENO, "err");
    s.train_len = 4;
    s.max_duration = ET_EPOCHS(2);
    fire(c, ET_EVENT_INIT, &s);
    fire(c, ET_EVENT_FIT_START, &s);
    batch(c, &s, 1, 2.302585);
    et_log_metric(s.log, "only/once", 3);
    batch(c, &s, 2, 0.0000123);
    batch(c, &s, 3, 1);
    batch(c, &s, 4, NAN);
    end_epoch(c, &s);
    evaluate(c, &s, "e\x1b[31m", 3);
    restore(STDERR_FILENO, before);
    is_str(
        bytes_of("err"),
        "******************************\n"
        "Config:\n"
        "num_cpus_per_node: 1\n"
        "num_nodes: 1\n"
        "rank_zero_seed: 17\n"
        "******************************\n"
        "[epoch=1][batch=1/4]:\n"
        "\t Train loss/train/total: 2.3026\n"
        "[epoch=1][batch=2/4]:\n"
        "\t Train only/once: 3\n"
        "\t Train loss/train/total: 1.23e-05\n"
        "[epoch=1][batch=4/4]:\n"
        "\t Train loss/train/total: nan\n"
        "[Eval batch=1/3] Eval on e\\x1b[31m data\n"
        "[Eval batch=2/3] Eval on e\\x1b[31m data\n"
        "[Eval batch=3/3] Eval on e\\x1b[31m data:\n"
        "\t Eval metrics/eval/Accuracy: 0.7500\n",
        "the console: settings, then the latest of each number at every second batch");
    finish(&c);
    unlink(path_of("err"));
}

static void
test_console_epochs(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = make(
        cx, "console", (const char *[]){"interval", "2", "stream", "stdout", NULL});
    int before = divert(STDOUT_FILENO, "out");
    s.train_len = 4;
    s.max_duration = ET_EPOCHS(9);
    fire(c, ET_EVENT_INIT, &s);
    for (int ba = 1; ba <= 16; ba++) {
        batch(c, &s, ba, ba);
        if (ba % 4 == 0)
            end_epoch(c, &s);
    }
    s.max_duration = ET_BATCHES(1000);
    s.timestamp.epoch = 5;
    end_epoch(c, &s);
    evaluate(c, &s, "eval", 30);
    restore(STDOUT_FILENO, before);
    is_str(bytes_of("out"),
           "[epoch=1][batch=4/4]:\n\t Train loss/train/total: 4\n"
           "[epoch=2][batch=4/4]:\n\t Train loss/train/total: 8\n"
           "[epoch=4][batch=4/4]:\n\t Train loss/train/total: 16\n"
           "[batch=16/1000]:\n"
           "[Eval batch=1/30] Eval on eval data\n"
           "[Eval batch=4/30] Eval on eval data\n"
           "[Eval batch=7/30] Eval on eval data\n"
           "[Eval batch=10/30] Eval on eval data\n"
           "[Eval batch=13/30] Eval on eval data\n"
           "[Eval batch=16/30] Eval on eval data\n"
           "[Eval batch=18/30] Eval on eval data\n"
           "[Eval batch=21/30] Eval on eval data\n"
           "[Eval batch=24/30] Eval on eval data\n"
           "[Eval batch=27/30] Eval on eval data\n"
           "[Eval batch=30/30] Eval on eval data:\n"
           "\t Eval metrics/eval/Accuracy: 0.7500\n",
           "by epochs: the first and every second; runs in batches; tenths of "
           "evaluations");
    finish(&c);
    unlink(path_of("out"));
}

/* ---- file ---- */

static void
test_file(struct et_ctx *cx, struct et_state s)
{
    const char *const options[] = {"filename",
                                   "'{run_name}-{rank}of{world_size}.txt'",
                                   "capture_stdout",
                                   "false",
                                   "capture_stderr",
                                   "false",
                                   "flush_interval",
                                   "2",
                                   NULL};
    struct et_callback *c = make(cx, "file", options);
    c->type->text(c, ET_LOG_WARN, "before anything");
    c->type->text(c, ET_LOG_DEBUG, "too low");
    fire(c, ET_EVENT_INIT, &s);
    fire(c, ET_EVENT_FIT_START, &s);
    batch(c, &s, 1, 2.302585);
    ok(!strstr(bytes_of("run-0of1.txt"), "2.3026"),
       "flush_interval 2: one batch is kept back");
    batch(c, &s, 2, 7);
    ok(strstr(bytes_of("run-0of1.txt"), "2.3026") != NULL, "the second writes both");
    c->type->text(c, ET_LOG_INFO, "a line");
    finish(&c);
    static const char first[] = "[log][warn]: before anything\n"
                                "[hyperparameter]: num_cpus_per_node: 1\n"
                                "[hyperparameter]: num_nodes: 1\n"
                                "[hyperparameter]: rank_zero_seed: 17\n"
                                "[metric][batch=1]: loss/train/total: 2.3026\n"
                                "[metric][batch=2]: loss/train/total: 7\n"
                                "[log][info]: a line\n";
    is_str(bytes_of("run-0of1.txt"), first,
           "a file by its template, with numbers and log");
    c = make(cx, "file", options);
    fire(c, ET_EVENT_INIT, &s);
    c->type->text(c, ET_LOG_ERROR, "again");
    finish(&c);
    ok(strncmp(bytes_of("run-0of1.txt"), first, sizeof first - 1) == 0 &&
           strstr(bytes_of("run-0of1.txt"), "[log][error]: again\n"),
       "a run that is resumed adds to it");
    c = make(cx, "file",
             (const char *[]){"filename", "run-0of1.txt", "overwrite", "true",
                              "log_level", "debug", NULL});
    fire(c, ET_EVENT_INIT, &s);
    c->type->text(c, ET_LOG_DEBUG, "low");
    finish(&c);
    is_str(bytes_of("run-0of1.txt"), "[log][debug]: low\n", "overwrite begins it anew");
    unlink(path_of("run-0of1.txt"));
}

enum { LONGEST_NAME = 95 }; /* bytes of a log's name */

static void
test_names(struct et_ctx *cx)
{
    static const char *const bad[] = {"'{rang}.txt'", "'{rank.txt'", "'{}'",
                                      "'{rank}{epoch}'"};
    const struct et_callback_class *type = et_logger_find("file");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct et_callback *c;
        void *block;
        need(cx, et_alloc(cx, type->info.options_size, &block));
        need(cx, et_options_init(cx, type->info.options, block));
        need(cx, et_options_set(cx, type->info.options, block, "filename", bad[i]));
        is_int(et_callback_new(cx, type, block, scratch_folder(), &c), ET_EINVAL,
               "%s is refused", bad[i]);
        ok(strstr(take_error(cx), "{run_name}") != NULL, "and what there is named");
        et_options_release(type->info.options, block);
        et_free(cx, block);
    }
    /* The longest name, and one that is longer by a byte. */
    for (size_t n = LONGEST_NAME; n <= LONGEST_NAME + 1; n++) {
        char name[LONGEST_NAME + 2];
        struct et_callback *c = NULL;
        void *block;
        memset(name, 'n', n);
        name[n] = '\0';
        need(cx, et_alloc(cx, type->info.options_size, &block));
        need(cx, et_options_init(cx, type->info.options, block));
        need(cx, et_options_set(cx, type->info.options, block, "filename", name));
        is_int(et_callback_new(cx, type, block, scratch_folder(), &c),
               n == LONGEST_NAME ? ET_OK : ET_EINVAL, "a name of %zu bytes", n);
        if (c)
            et_callback_free(&c);
        else
            (void)take_error(cx);
        et_options_release(type->info.options, block);
        et_free(cx, block);
    }
}

/* ---- capture ---- */

enum { MANY = 20000 }; /* lines; far more than a pipe holds */

/* Prints in all ways there are; returns a child that still holds the descriptors. */
static pid_t
chatter(void)
{
    printf("by stdio\n");
    fflush(stdout);
    if (write(STDOUT_FILENO, "by a library\n", 13) != 13 ||
        write(STDERR_FILENO, "a warning\n", 10) != 10)
        bail("cannot write");
    for (int i = 0; i < MANY; i++)
        printf("line %d of many that a run may print\n", i);
    printf("10%%\r50%%\r100%%\n");
    printf("with a return\r\n");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dprintf(STDOUT_FILENO, "by a child\n");
        pause();
        _exit(0);
    }
    while (!strstr(bytes_of("out"), "by a child"))
        usleep(1000);
    printf("without an end");
    return child;
}

static void
test_capture(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = make(cx, "file", NULL);
    struct stat first, last;
    int out = divert(STDOUT_FILENO, "out"), err = divert(STDERR_FILENO, "err");
    fstat(STDOUT_FILENO, &first);
    printf("before\n");
    fire(c, ET_EVENT_INIT, &s);
    pid_t child = chatter();
    finish(&c);
    printf("after\n");
    fflush(stdout);
    fstat(STDOUT_FILENO, &last);
    restore(STDOUT_FILENO, out);
    restore(STDERR_FILENO, err);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    ok(first.st_ino == last.st_ino, "at the end stdout leads where it led");
    const char *text = bytes_of("out");
    is_int(lines_of(text, "line "), MANY, "all %d lines went there meanwhile", MANY);
    ok(strncmp(text, "before\nby stdio\nby a library\n", 29) == 0, "in their order");
    ok(strstr(text, "10%\r50%\r100%\n") && strstr(text, "without an endafter\n"),
       "byte for byte");
    is_str(bytes_of("err"), "a warning\n", "and stderr's to its own place");
    text = bytes_of("logs-rank0.txt");
    is_int(lines_of(text, "[stdout]: line "), MANY, "the file has them too");
    is_int(lines_of(text, "[stdout]: "), MANY + 6, "with what came by other ways");
    for (const char *const *p =
             (const char *[]){"[stdout]: by stdio\n", "[stdout]: by a library\n",
                              "[stdout]: by a child\n", "[stderr]: a warning\n",
                              "[stdout]: without an end\n", "[stdout]: with a return\n",
                              NULL};
         *p; p++)
        ok(strstr(text, *p) != NULL, "%.*s", (int)strlen(*p) - 1, *p);
    ok(strstr(text, "[stdout]: 100%\n") && !strstr(text, "50%"),
       "of a line that was drawn over the last state");
    ok(!strstr(text, "before") && !strstr(text, "after"),
       "and nothing from outside the run");
    unlink(path_of("out"));
    unlink(path_of("err"));
    unlink(path_of("logs-rank0.txt"));
}

/* What is captured comes at any instant, between lines of numbers and never inside. */
static void
test_whole_lines(struct et_ctx *cx, struct et_state s)
{
    enum { LINES = 2000 };
    struct et_callback *c =
        make(cx, "file", (const char *[]){"filename", "whole.txt", NULL});
    int err = divert(STDERR_FILENO, "err"), numbers = 0, captured = 0, others = 0;
    fire(c, ET_EVENT_INIT, &s);
    for (int i = 0; i < LINES; i++) {
        if (write(STDERR_FILENO, "a warning\n", 10) != 10)
            bail("cannot write");
        batch(c, &s, 1, 2.5);
    }
    finish(&c);
    restore(STDERR_FILENO, err);
    FILE *f = fopen(path_of("whole.txt"), "re");
    for (char line[128]; f && fgets(line, sizeof line, f);)
        if (strcmp(line, "[metric][batch=1]: loss/train/total: 2.5000\n") == 0)
            numbers++;
        else if (strcmp(line, "[stderr]: a warning\n") == 0)
            captured++;
        else
            others++;
    if (f)
        fclose(f);
    is_int(numbers, LINES, "a number has its line while others print");
    is_int(captured, LINES, "so has what they print");
    is_int(others, 0, "and no line is of both");
    unlink(path_of("whole.txt"));
    unlink(path_of("err"));
}

/* A logger of FILE that captures what is "true". */
static struct et_callback *
capturing(struct et_ctx *cx, const char *file, const char *out, const char *err)
{
    const char *const options[] = {
        "filename", file, "capture_stdout", out, "capture_stderr", err, NULL};
    return make(cx, "file", options);
}

static void
test_two(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        const char *what, *out[2], *err[2];
        bool refused;
    } rows[] = {
        {"stdout", {"true", "true"}, {"true", "false"}, true},
        {"stderr", {"false", "true"}, {"true", "true"}, true},
        {"one of them each", {"true", "false"}, {"false", "true"}, false},
        {"the other one each", {"false", "true"}, {"true", "false"}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_callback *c[] = {
            capturing(cx, "a.txt", rows[i].out[0], rows[i].err[0]),
            capturing(cx, "b.txt", rows[i].out[1], rows[i].err[1])};
        s.callbacks = c;
        s.n_callbacks = 2;
        fire(c[0], ET_EVENT_INIT, &s);
        et_status status = c[1]->type->run(c[1], ET_EVENT_INIT, &s, s.log);
        finish(&c[1]);
        finish(&c[0]);
        is_int(status, rows[i].refused ? ET_EINVAL : ET_OK,
               "two that capture %s are %s", rows[i].what,
               rows[i].refused ? "refused" : "taken");
        if (rows[i].refused)
            ok(strstr(take_error(cx), "capture_stdout") != NULL, "with a way out");
        unlink(path_of("a.txt"));
        unlink(path_of("b.txt"));
    }
}

/* An epoch of two batches, with an algorithm that acts once in each. */
static void
test_traces(struct et_ctx *cx)
{
    const char *const quiet[] = {"filename", "quiet.txt",      "capture_stdout",
                                 "false",    "capture_stderr", "false",
                                 NULL};
    const char *const said[] = {"filename",   "said.txt",       "capture_stdout",
                                "false",      "capture_stderr", "false",
                                "log_traces", "true",           NULL};
    const char *const on[] = {"log_traces", "true", NULL};
    struct et_callback *c[] = {make(cx, "file", quiet), make(cx, "file", said),
                               make(cx, "console", on)};
    struct et_algorithm *a;
    struct run r;
    need(cx, et_algorithm_new(cx, et_algorithm_find("label_smoothing"), NULL, &a));
    int err = divert(STDERR_FILENO, "err");
    run_open(&r, cx,
             &(struct run_setup){.callbacks = c,
                                 .n_callbacks = 3,
                                 .algorithms = &a,
                                 .n_algorithms = 1,
                                 .n = 8});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    restore(STDERR_FILENO, err);
    static const char line[] =
        "[trace]: algorithm_traces/LabelSmoothing/before_loss: 1\n";
    is_int(lines_of(bytes_of("said.txt"), line), 2,
           "with log_traces a line for each time that an algorithm has acted");
    is_int(lines_of(bytes_of("err"), line), 2, "the console likewise");
    is_int(lines_of(bytes_of("quiet.txt"), "[trace]"), 0, "and otherwise none");
    for (int i = 0; i < 3; i++)
        et_callback_free(&c[i]);
    et_algorithm_free(&a);
    unlink(path_of("said.txt"));
    unlink(path_of("quiet.txt"));
    unlink(path_of("err"));
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    struct run r;
    run_open(&r, cx, &(struct run_setup){0});
    test_console(cx, *r.state);
    test_console_epochs(cx, *r.state);
    test_file(cx, *r.state);
    test_names(cx);
    test_capture(cx, *r.state);
    test_whole_lines(cx, *r.state);
    test_two(cx, *r.state);
    run_close(&r);
    test_traces(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
