/* SPDX-License-Identifier: Apache-2.0 */
/* Files of loggers in trouble: files that are removed, with one or two writers, or on a
 * full disk; and how much of metrics.jsonl and metrics.csv is written when a checkpoint
 * is, and when the file is large. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/loggers/loggers.h"
#include "core/loggers/thin.h"
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

/* The last bytes of a file; "" when it is missing. */
static const char *
end_of(const char *name)
{
    static char bytes[8192];
    FILE *f = fopen(path_of(name), "r");
    size_t n = 0;
    if (f) {
        if (fseek(f, -(long)(sizeof bytes - 1), SEEK_END) != 0)
            rewind(f);
        n = fread(bytes, 1, sizeof bytes - 1, f);
        fclose(f);
        for (size_t i = 0; i < n; i++) /* of a file with holes */
            bytes[i] = bytes[i] ? bytes[i] : ' ';
    }
    bytes[n] = '\0';
    return bytes;
}

static int
count_in(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

/* All that was reported. */
static char reported[4096];

static void
note(void *data, enum et_log_level level, const char *text)
{
    size_t n = strlen(reported);
    (void)data;
    (void)level;
    snprintf(reported + n, sizeof reported - n, "%s\n", text);
}

/* ---- files that are removed ---- */

static void
put(struct eti_output *out, const char *line)
{
    fputs(line, out->f);
    eti_output_flush(out);
}

static void
test_folder(struct et_ctx *cx)
{
    struct eti_output out;
    reported[0] = '\0';
    mkdir(path_of("sub"), 0700);
    need(cx, eti_output_open(cx, scratch_folder(), "sub/a.txt", &out));
    put(&out, "one\n");
    unlink(path_of("sub/a.txt"));
    rmdir(path_of("sub"));
    put(&out, "two\n");
    put(&out, "three\n");
    is_str(end_of("sub/a.txt"), "one\ntwo\nthree\n",
           "a file that was removed with its folder is made again whole");
    is_str(reported, "sub/a.txt was removed: it is made again\n",
           "a removed file is reported once, and no bytes as missing");
    eti_output_close(&out);
    unlink(path_of("sub/a.txt"));
    rmdir(path_of("sub"));
}

static void
test_two_writers(struct et_ctx *cx)
{
    struct eti_output a, b;
    need(cx, eti_output_open(cx, scratch_folder(), "two.txt", &a));
    need(cx, eti_output_open(cx, scratch_folder(), "two.txt", &b));
    put(&a, "a1\n");
    put(&b, "b1\n");
    unlink(path_of("two.txt"));
    put(&a, "a2\n");
    put(&b, "b2\n");
    put(&a, "a3\n");
    put(&b, "b3\n");
    is_str(end_of("two.txt"), "a1\nb1\na2\nb2\na3\nb3\n",
           "each of two writers of a removed file goes on with every line once");
    eti_output_close(&a);
    eti_output_close(&b);
    unlink(path_of("two.txt"));
}

static void
test_full(struct et_ctx *cx)
{
    struct eti_output out;
    if (access("/dev/full", W_OK) != 0) {
        skip(2, "no /dev/full");
        return;
    }
    reported[0] = '\0';
    need(cx, eti_output_open(cx, "/dev", "full", &out));
    for (int i = 0; i < 3; i++)
        put(&out, "a line\n");
    eti_output_close(&out);
    is_int(count_in(reported, "cannot write full: No space left on device"), 1,
           "a full disk is reported once: %s", reported);
    is_int(count_in(reported, "\n"), 1, "nothing but the full disk is reported");
}

/* ---- the loggers ---- */

/* The logger gets EVENT if it has asked for it. */
static void
fire(struct et_callback *c, enum et_event event, struct et_state *s)
{
    if (c->type->events & (UINT64_C(1) << event))
        need(s->cx, c->type->run(c, event, s, s->log));
}

static struct et_callback *
new_logger(struct et_ctx *cx, const char *name, const char *const *options)
{
    const struct et_callback_class *type = et_logger_find(name);
    struct et_callback *c;
    void *block;
    need(cx, et_options_new(cx, &type->info, options, &block));
    need(cx, et_callback_new(cx, type, block, scratch_folder(), &c));
    et_options_free(&type->info, &block);
    return c;
}

static struct et_callback *
open_logger(struct et_ctx *cx, const char *name, const char *const *options,
            struct et_state *s)
{
    struct et_callback *c = new_logger(cx, name, options);
    fire(c, ET_EVENT_INIT, s);
    fire(c, ET_EVENT_AFTER_LOAD, s);
    return c;
}

static void
finish(struct et_callback **c)
{
    (*c)->type->close(*c);
    et_callback_free(c);
}

static void
batch(struct et_callback *c, struct et_state *s, int64_t ba)
{
    s->timestamp.batch = ba;
    et_log_metric(s->log, "loss/train/total", (double)ba / 8);
    fire(c, ET_EVENT_BATCH_END, s);
    et_log_emit(s->log, ET_RECORD_BATCH, &s->timestamp, NULL);
}

static void
test_checkpoints(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        const char *logger, *file, *options[3];
        int before; /* batches in the file when no checkpoint is due */
    } rows[] = {
        {"csv", "metrics.csv", {NULL}, 0},
        {"jsonl", "metrics.jsonl", {NULL}, 0},
        {"jsonl", "metrics.jsonl", {"record_interval", "100ba", NULL}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *what = rows[i].options[0] ? "jsonl, thinned" : rows[i].logger;
        struct et_callback *c = open_logger(cx, rows[i].logger, rows[i].options, &s);
        char last[32];
        batch(c, &s, 1);
        batch(c, &s, 2);
        s.checkpoint_due = false;
        fire(c, ET_EVENT_BATCH_CHECKPOINT, &s);
        is_int(count_in(end_of(rows[i].file), "loss"), rows[i].before,
               "%s: a batch may wait while no checkpoint is due", what);
        s.checkpoint_due = true;
        fire(c, ET_EVENT_BATCH_CHECKPOINT, &s);
        snprintf(last, sizeof last, "%s", i == 0 ? ",2,0,loss" : "\"ba\":2,");
        ok(strstr(end_of(rows[i].file), last) != NULL,
           "%s: all batches before a checkpoint are written: %s", what,
           end_of(rows[i].file));
        batch(c, &s, 3);
        finish(&c);
        snprintf(last, sizeof last, "%s", i == 0 ? ",3,0,loss" : "\"ba\":3,");
        ok(strstr(end_of(rows[i].file), last) != NULL,
           "%s: the last batch is written when a run fails", what);
        unlink(path_of(rows[i].file));
    }
}

/* What each event of a run leaves in both files, if the logger has asked for it. */
static void
test_events(struct et_ctx *cx, struct et_state s)
{
    static const char *const files[][2] = {{"csv", "metrics.csv"},
                                           {"jsonl", "metrics.jsonl"}};
    for (int i = 0; i < 2; i++) {
        struct et_callback *c = open_logger(cx, files[i][0], NULL, &s);
        batch(c, &s, 1);
        fire(c, ET_EVENT_EPOCH_END, &s);
        is_int(count_in(end_of(files[i][1]), "loss"), 1,
               "%s: a batch is written when its epoch ends", files[i][0]);
        et_log_metric(s.log, "metrics/eval/Accuracy", 0.5);
        s.dataloader_label = "eval";
        fire(c, ET_EVENT_EVAL_END, &s);
        et_log_emit(s.log, ET_RECORD_EVAL, &s.timestamp, NULL);
        is_int(count_in(end_of(files[i][1]), "Accuracy"), 1,
               "%s: an evaluation is written when it ends", files[i][0]);
        batch(c, &s, 2);
        fire(c, ET_EVENT_FIT_END, &s);
        is_int(count_in(end_of(files[i][1]), "loss"), 2,
               "%s: the last batch is written when training ends", files[i][0]);
        finish(&c);
        c = open_logger(cx, files[i][0], NULL, &s);
        finish(&c);
        is_int(count_in(end_of(files[i][1]), "resume"), 1,
               "%s: a resumed run writes that it is", files[i][0]);
        unlink(path_of(files[i][1]));
    }
}

/* ---- the file of text ---- */

/* A logger of the file NAME that captures nothing. */
static struct et_callback *
plain_file(struct et_ctx *cx, const char *name, const char *interval)
{
    const char *const options[] = {"filename",
                                   name,
                                   "capture_stdout",
                                   "false",
                                   "capture_stderr",
                                   "false",
                                   "flush_interval",
                                   interval,
                                   NULL};
    return new_logger(cx, "file", options);
}

/* What the file logger writes, and when. */
static void
test_file_events(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = plain_file(cx, "a.txt", "100");
    fire(c, ET_EVENT_INIT, &s);
    batch(c, &s, 1);
    c->type->text(c, ET_LOG_INFO, "calm");
    is_str(end_of("a.txt"), "",
           "lines and numbers wait before they are written to the file");
    c->type->text(c, ET_LOG_WARN, "hot");
    ok(strstr(end_of("a.txt"), "[log][warn]: hot\n") != NULL,
       "a warning is written to the file at once, with all before it");
    batch(c, &s, 2);
    et_log_metric(s.log, "epoch/number", 7);
    fire(c, ET_EVENT_EPOCH_END, &s);
    et_log_emit(s.log, ET_RECORD_EPOCH, NULL, NULL);
    ok(strstr(end_of("a.txt"), "[metric][batch=2]: epoch/number: 7\n") != NULL,
       "an epoch's numbers are written to the file when it ends");
    et_log_metric(s.log, "metrics/eval/Accuracy", 0.75);
    fire(c, ET_EVENT_EVAL_END, &s);
    et_log_emit(s.log, ET_RECORD_EVAL, NULL, NULL);
    ok(strstr(end_of("a.txt"), "[metric][batch=2]: metrics/eval/Accuracy: 0.7500\n") !=
           NULL,
       "an evaluation's numbers are written to the file when it ends");
    batch(c, &s, 3);
    fire(c, ET_EVENT_FIT_END, &s);
    ok(strstr(end_of("a.txt"), "[metric][batch=3]: loss/train/total: 0.3750\n") != NULL,
       "the last batch's numbers are written to the file when the run ends");
    finish(&c);
    unlink(path_of("a.txt"));
}

/* More lines than the logger can hold before it opens its file. */
static void
test_early(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = plain_file(cx, "early.txt", "1");
    char line[512], want[512];
    int lines = 0, wrong = 0, far = 0;
    memset(line, 'x', sizeof line);
    line[280] = '\0';
    for (int i = 0; i < 20; i++) {
        line[0] = (char)('a' + i);
        c->type->text(c, ET_LOG_INFO, line);
    }
    c->type->text(c, ET_LOG_INFO, "short");
    fire(c, ET_EVENT_INIT, &s);
    c->type->text(c, ET_LOG_ERROR, "after");
    finish(&c);
    for (const char *p = end_of("early.txt"); *p; p += strcspn(p, "\n") + 1, lines++) {
        line[0] = (char)('a' + lines);
        snprintf(want, sizeof want, "[log][info]: %s\n", line);
        const bool is_long = strncmp(p, want, strlen(want)) == 0;
        const bool is_last = strncmp(p, "[log][info]: short\n", 19) == 0 ||
                             strncmp(p, "[log][error]: after\n", 20) == 0;
        wrong += !is_long && !is_last;
        far += is_last;
    }
    is_int(wrong, 0, "each line from before the file was opened is whole");
    ok(lines == 13 + 2 && far == 2,
       "the file has as many early lines as the logger can hold: %d", lines);
    unlink(path_of("early.txt"));
}

/* Names with every field, and names as long as the limit and around it. */
static void
test_file_names(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = plain_file(
        cx,
        "'{run_name}.{rank}.{local_rank}.{node_rank}.{world_size}.{local_world_size}'",
        "1");
    char name[128], option[128];
    s.world = 4;
    fire(c, ET_EVENT_INIT, &s);
    finish(&c);
    is_int(access(path_of("run.0.0.0.4.4"), F_OK), 0,
           "each field of a file's name is filled in");
    unlink(path_of("run.0.0.0.4.4"));
    for (int n = 94; n <= 96; n++) {
        memset(name, 'n', sizeof name);
        name[n] = '\0';
        snprintf(option, sizeof option, "%s", name);
        const struct et_callback_class *type = et_logger_find("file");
        void *block;
        need(cx, et_options_new(cx, &type->info,
                                (const char *[]){"filename", option, NULL}, &block));
        const et_status status = et_callback_new(cx, type, block, scratch_folder(), &c);
        is_int(status, n < 96 ? ET_OK : ET_EINVAL, "a file's name of %d bytes is %s", n,
               n < 96 ? "taken" : "refused");
        et_error_clear(cx);
        if (status == ET_OK)
            et_callback_free(&c);
        et_options_free(&type->info, &block);
    }
}

/* ---- large files ---- */

/* Makes metrics.jsonl a file of BYTES, with holes, whose first line is from time T. */
static void
make_large(double t, double bytes)
{
    FILE *f = fopen(path_of("metrics.jsonl"), "w");
    if (!f || fprintf(f, "{\"t\":%.3f,\"ev\":\"batch\"}\n", t) < 0 || fclose(f) != 0 ||
        truncate(path_of("metrics.jsonl"), (off_t)bytes) != 0)
        bail("no large file");
}

/* Logs five batches, STEP seconds apart, to a large file, and flushes it after the
 * first two; returns the lines that are added. */
static int
lines_added(struct et_ctx *cx, struct et_state *s, double age, double bytes,
            double step)
{
    struct own_clock *clock = own_clock(cx);
    make_large(clock->now - age, bytes);
    struct et_callback *c = open_logger(cx, "jsonl", NULL, s);
    for (int ba = 1; ba <= 5; ba++) {
        clock->now += step;
        batch(c, s, ba);
        if (ba <= 2)
            fire(c, ET_EVENT_EPOCH_END, s);
    }
    fire(c, ET_EVENT_FIT_END, s);
    const int n = count_in(end_of("metrics.jsonl"), "\"ev\":\"batch\"");
    finish(&c);
    unlink(path_of("metrics.jsonl"));
    return n;
}

static void
test_large(struct et_ctx *cx, struct et_state s)
{
    is_int(lines_added(cx, &s, 0, 1 << 20, 10), 5,
           "each batch of a slow run has a line");
    is_int(lines_added(cx, &s, 0, ETI_THIN_ADVANCE * 1.5, 10), 1,
           "the batches of a file too large for its age are thinned");
    is_int(lines_added(cx, &s, 1e6, ETI_THIN_ADVANCE * 1.5, 10), 5,
           "each batch has a line in a large file that is days old");
    /* Five bytes are left at the first batch, then each batch brings 30 more. */
    is_int(lines_added(cx, &s, 0, ETI_THIN_ADVANCE + 30 - 5, 0.01), 3,
           "the lines that a run adds count to the size of its file");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct run r;
    et_ctx_set_log(cx, ET_LOG_WARN, note, NULL);
    test_folder(cx);
    test_two_writers(cx);
    test_full(cx);
    (void)own_clock(cx);
    run_open(&r, cx, &(struct run_setup){0});
    test_checkpoints(cx, *r.state);
    test_events(cx, *r.state);
    test_large(cx, *r.state);
    test_file_events(cx, *r.state);
    test_early(cx, *r.state);
    test_file_names(cx, *r.state);
    run_close(&r);
    et_ctx_free(&cx);
    return done();
}
