/* SPDX-License-Identifier: Apache-2.0 */
/* Files for other programs: TensorBoard's events, what `wandb sync` reads, MLflow's
 * file store. They are compared byte by byte with t/golden/readers, which
 * t/golden/readers.py has read with the real packages; ETUDE_UPDATE=1 writes those
 * anew, for that script to read them again. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/loggers/given.h"
#include "core/loggers/wandb_file.h"
#include "core/trainer/log.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { MOST = 1 << 20, PATH_BYTES = 4096 };
static const char id[] = "1f2e3d4c5b6a79881f2e3d4c5b6a7988";
static const char recipe[] = "seed: 17\nmodel:\n  name: mlp\n  widths: [8, 4]\n"
                             "optimizer:\n  name: sgd\n  lr: 0.25\n  nesterov: true\n"
                             "run_name: \"it's one\"\nload: null\n";

static const char *
golden(const char *name)
{
    static char path[PATH_BYTES];
    const char *root = getenv("ET_SRCDIR");
    snprintf(path, sizeof path, "%s/t/golden/readers/%s", root ? root : ".", name);
    return path;
}

static size_t
read_all(const char *path, char *buf)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(buf, 1, MOST, f) : 0;
    if (f)
        fclose(f);
    return n;
}

static void
same(const char *bytes, size_t n, const char *name, const char *what)
{
    static char want[MOST];
    if (getenv("ETUDE_UPDATE")) {
        FILE *f = fopen(golden(name), "wb");
        if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
            bail("cannot write %s", golden(name));
    }
    const size_t there = read_all(golden(name), want);
    if (!ok(there == n && memcmp(want, bytes, n) == 0, "%s", what)) {
        size_t at = 0;
        while (at < n && at < there && want[at] == bytes[at])
            at++;
        diag("%zu bytes where %zu were, another from %zu on", n, there, at);
    }
}

/* ---- a run of two batches and an evaluation ---- */

static struct et_callback *
open_with(struct et_ctx *cx, const char *name, const char *const *options,
          struct et_state *s)
{
    const struct et_callback_class *type = et_logger_find(name);
    struct et_callback *c;
    void *block;
    need(cx, et_options_new(cx, &type->info, options, &block));
    need(cx, et_callback_new(cx, type, block, scratch_folder(), &c));
    et_options_free(&type->info, &block);
    need(cx, c->type->run(c, ET_EVENT_AFTER_LOAD, s, s->log));
    return c;
}

static struct et_callback *
open_logger(struct et_ctx *cx, const char *name, struct et_state *s)
{
    return open_with(cx, name, NULL, s);
}

/* C gets EVENT if it has asked for it. */
static void
fire(struct et_callback *c, enum et_event event, struct et_state *s)
{
    if (c->type->events & (UINT64_C(1) << event))
        need(s->cx, c->type->run(c, event, s, s->log));
    et_log_emit(s->log, ET_RECORD_BATCH, &s->timestamp, NULL);
}

static void
play(struct et_callback *c, struct et_state *s)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
    char picture[PATH_BYTES];
    write_file("picture.png", png, sizeof png, false);
    snprintf(picture, sizeof picture, "%s/picture.png", scratch_folder());
    for (int ba = 1; ba <= 2; ba++) {
        own_clock(s->cx)->now += 0.5;
        s->timestamp.batch = ba;
        et_log_metric(s->log, "loss/train/total", 2.0 / ba);
        et_log_metric(s->log, "a name: with=signs", ba == 2 ? NAN : 1e-7);
        fire(c, ET_EVENT_BATCH_END, s);
    }
    et_log_metric(s->log, "metrics/eval/Accuracy", 0.75);
    eti_log_picture(s->log, "images/eval", picture, 28, 14);
    eti_log_passage(s->log, "generate", "In the beginning");
    s->dataloader_label = "eval";
    fire(c, ET_EVENT_EVAL_END, s);
}

static void
finish(struct et_callback **c)
{
    (*c)->type->close(*c);
    et_callback_free(c);
}

/* ---- files ---- */

static int
by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Writes the paths of the files below FOLDER of the scratch folder to PATH, at most
 * 256. */
static int
list(const char *folder, char path[256][512])
{
    char whole[PATH_BYTES], name[512];
    struct stat st;
    int n = 0;
    snprintf(whole, sizeof whole, "%s/%s", scratch_folder(), folder);
    DIR *d = opendir(whole);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || n == 256)
            continue;
        snprintf(name, sizeof name, "%.250s/%.250s", folder, e->d_name);
        snprintf(whole, sizeof whole, "%s/%s", scratch_folder(), name);
        if (stat(whole, &st) == 0 && S_ISDIR(st.st_mode))
            n += list(name, path + n);
        else
            snprintf(path[n++], sizeof path[0], "%s", name);
    }
    if (d)
        closedir(d);
    qsort(path, (size_t)n, sizeof path[0], by_name);
    return n;
}

/* TEXT with the scratch folder's path, which differs, left out. */
static void
forget_place(char *text)
{
    char place[PATH_BYTES];
    if (!realpath(scratch_folder(), place))
        bail("no scratch folder");
    for (char *at; (at = strstr(text, place));)
        memmove(at, at + strlen(place), strlen(at + strlen(place)) + 1);
}

static void
test_tensorboard(struct et_ctx *cx, struct et_state s)
{
    static char bytes[MOST], path[256][512];
    char whole[PATH_BYTES];
    struct et_callback *c = open_logger(cx, "tensorboard", &s);
    play(c, &s);
    fire(c, ET_EVENT_FIT_END, &s);
    finish(&c);
    is_int(list("tb", path), 1, "tensorboard: one file");
    snprintf(whole, sizeof whole, "%.3000s/%.500s", scratch_folder(), path[0]);
    same(bytes, read_all(whole, bytes), "events.tfevents",
         "with numbers, a picture, a text and hyperparameters");
}

/* How often WHAT stands in the files of FOLDER. */
static int
count_in(const char *folder, const char *what)
{
    static char bytes[MOST], path[256][512];
    char whole[PATH_BYTES];
    int found = 0;
    for (int i = list(folder, path); i-- > 0;) {
        snprintf(whole, sizeof whole, "%.3000s/%.500s", scratch_folder(), path[i]);
        const size_t n = read_all(whole, bytes), length = strlen(what);
        for (size_t at = 0; at + length <= n; at++)
            found += memcmp(bytes + at, what, length) == 0;
    }
    return found;
}

static void
test_pictures(struct et_ctx *cx, struct et_state s)
{
    static const char *const names[] = {"first", "second"};
    struct et_callback *c = open_logger(cx, "tensorboard", &s);
    for (int i = 0; i < 2; i++) {
        char path[PATH_BYTES], tag[64], text[64];
        snprintf(text, sizeof text, "what %s.png is", names[i]);
        snprintf(tag, sizeof tag, "%s.png", names[i]);
        write_file(tag, text, strlen(text), false);
        snprintf(path, sizeof path, "%s/%s", scratch_folder(), tag);
        eti_log_picture(s.log, names[i], path, 4, 4);
    }
    s.dataloader_label = "eval";
    fire(c, ET_EVENT_EVAL_END, &s);
    fire(c, ET_EVENT_FIT_END, &s);
    finish(&c);
    ok(count_in("tb", "what first.png is") == 1 &&
           count_in("tb", "what second.png is") == 1,
       "of two pictures of a step each is in the file");
}

static void
test_wandb(struct et_ctx *cx, struct et_state s)
{
    static char bytes[MOST], path[256][512];
    char whole[PATH_BYTES];
    setenv("TZ", "UTC", 1);
    struct et_callback *c = open_logger(cx, "wandb", &s);
    play(c, &s);
    fire(c, ET_EVENT_FIT_END, &s);
    finish(&c);
    is_int(list("wandb", path), 1, "wandb: one file");
    ok(strstr(path[0], "-1f2e3d4c/run-1f2e3d4c.wandb") != NULL &&
           strstr(path[0], "wandb/offline-run-2027") != NULL,
       "in a folder that wandb sync looks for");
    snprintf(whole, sizeof whole, "%.3000s/%.500s", scratch_folder(), path[0]);
    same(bytes, read_all(whole, bytes), "run-1f2e3d4c.wandb",
         "with the run, its configuration, rows and a summary");
}

/* Rows that do not fit a block of the file. */
static void
test_blocks(struct et_ctx *cx, struct et_state s)
{
    static char bytes[MOST], path[256][512];
    char whole[PATH_BYTES], name[ET_METRIC_NAME];
    struct et_callback *c = open_logger(cx, "wandb", &s);
    for (int ba = 1; ba <= 2; ba++) {
        s.timestamp.batch = ba;
        for (int i = 0; i < (ba == 1 ? 50 : 900); i++) {
            snprintf(name, sizeof name, "a/name/of/some/length/%d", i);
            et_log_metric(s.log, name, i);
        }
        fire(c, ET_EVENT_BATCH_END, &s);
    }
    finish(&c);
    is_int(list("wandb", path), 2, "another run has a folder of its own");
    snprintf(whole, sizeof whole, "%.3000s/%.500s", scratch_folder(), path[1]);
    const size_t n = read_all(whole, bytes);
    ok(n > 32768, "rows of many numbers fill blocks");
    same(bytes, n, "blocks.wandb", "and go on in the next, cut as LevelDB's log is");
}

static void
test_mlflow(struct et_ctx *cx, struct et_state s)
{
    static char all[MOST], text[MOST], path[256][512];
    size_t used = 0;
    char whole[PATH_BYTES];
    struct et_callback *c = open_logger(cx, "mlflow", &s);
    play(c, &s);
    fire(c, ET_EVENT_FIT_END, &s);
    finish(&c);
    const int n = list("mlruns", path);
    for (int i = 0; i < n; i++) {
        snprintf(whole, sizeof whole, "%.3000s/%.500s", scratch_folder(), path[i]);
        text[read_all(whole, text)] = '\0';
        forget_place(text);
        used += (size_t)snprintf(all + used, sizeof all - used, "== %s\n%s\n", path[i],
                                 text);
    }
    same(all, used, "mlruns.txt",
         "mlflow: an experiment, a run, its parameters, tags and metrics");
    s.timestamp.batch = 1; /* as a checkpoint had it */
    c = open_logger(cx, "mlflow", &s);
    finish(&c);
    is_int(list("mlruns", path), n, "a run that is resumed goes on in its folder");
    snprintf(whole, sizeof whole, "%.3000s/%.400s", scratch_folder(), path[1]);
    for (int i = 0; i < n; i++)
        if (strstr(path[i], id) && strstr(path[i], "meta.yaml"))
            snprintf(whole, sizeof whole, "%.3000s/%.400s", scratch_folder(), path[i]);
    text[read_all(whole, text)] = '\0';
    ok(strstr(text, "status: 4") != NULL,
       "and one that did not come to its end failed");
}

/* ---- options, and resumed runs ---- */

/* Logs a batch with N numbers, whose values tell the batch and the name. */
static void
batch(struct et_callback *c, struct et_state *s, int64_t ba, int n)
{
    char name[ET_METRIC_NAME];
    s->timestamp.batch = ba;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "n%d", i);
        et_log_metric(s->log, name, (double)(1000 * ba + i));
    }
    fire(c, ET_EVENT_BATCH_END, s);
}

static void
test_wandb_options(struct et_ctx *cx, struct et_state s)
{
    /* Fields 2, 3, 6 and 14 of the record Run; field 18: it was resumed. */
    static const char *const said[] = {"\x12\x05"
                                       "squad",
                                       "\x1a\x04"
                                       "work",
                                       "\x32\x06"
                                       "groups",
                                       "\x70\x07", "\x90\x01\x01"};
    struct et_callback *c =
        open_with(cx, "wandb",
                  (const char *[]){"project", "work", "entity", "squad", "group",
                                   "groups", "log_dir", "w1", NULL},
                  &s);
    finish(&c);
    for (int i = 0; i < 5; i++)
        is_int(count_in("w1", said[i]), i < 3, "option %d of wandb stands in its field",
               i);
    is_int(count_in("w1", "\x08\x01\x10"), 1, "a wandb run that failed exits with 1");
    s.timestamp.batch = 7;
    c = open_with(cx, "wandb", (const char *[]){"log_dir", "w2", NULL}, &s);
    ok(count_in("w2", said[3]) == 1 && count_in("w2", said[4]) == 1,
       "a resumed wandb run says from where it goes on");
    is_int(count_in("w2", "\x1a\x04"
                          "tiny"),
           1, "the wandb project is the recipe's name by default");
    batch(c, &s, 8, 100);
    own_clock(cx)->now += 1;
    is_int(count_in("w2", "n99"), 0, "a wandb row waits for others");
    for (int ba = 9; ba < 108; ba++)
        batch(c, &s, ba, 1);
    is_int(count_in("w2", "n99"), 1, "wandb rows are written once there are a hundred");
    et_log_metric(s.log, "late", 1);
    batch(c, &s, 108, 1);
    batch(c, &s, 109, 1);
    own_clock(cx)->now += 30;
    is_int(count_in("w2", "late"), 0,
           "a wandb row that has just come waits, also after half a minute");
    batch(c, &s, 110, 1);
    is_int(count_in("w2", "late"), 1,
           "a wandb row is written at the first batch after half a minute");
    fire(c, ET_EVENT_FIT_END, &s);
    is_int(count_in("w2", "n99"), 2, "the wandb summary has each of a hundred names");
    finish(&c);
}

/* The lines of the metric NAME in the store FOLDER. */
static const char *
lines_of(const char *folder, const char *name)
{
    static char text[MOST];
    static char path[256][512];
    char whole[PATH_BYTES];
    const int n = list(folder, path);
    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        const char *slash = strstr(path[i], "/metrics/");
        if (!slash || strcmp(slash + 9, name) != 0)
            continue;
        snprintf(whole, sizeof whole, "%.3000s/%.500s", scratch_folder(), path[i]);
        text[read_all(whole, text)] = '\0';
    }
    return text;
}

static int
count_lines(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

static void
test_mlflow_options(struct et_ctx *cx, struct et_state s)
{
    const char *const options[] = {"experiment", "mine", "folder", "m1", NULL};
    struct et_callback *c = open_with(cx, "mlflow", options, &s);
    struct own_clock *clock = own_clock(cx);
    char before[64];
    snprintf(before, sizeof before, "creation_time: %.0f\n", floor(clock->now * 1000));
    is_int(count_in("m1", "name: 'mine'"), 1,
           "the mlflow experiment has the name that was given");
    et_log_metric(s.log, "../up", 1);
    et_log_metric(s.log, "/root", 2);
    et_log_metric(s.log, "a//b", 3);
    et_log_metric(s.log, ".hidden", 4);
    et_log_metric(s.log, "a/../b", 5);
    batch(c, &s, 1, 2);
    is_int(count_lines(lines_of("m1", "n1")), 0, "mlflow values wait for others");
    batch(c, &s, 2, 2);
    clock->now += 30;
    batch(c, &s, 3, 2);
    is_int(count_lines(lines_of("m1", "n1")), 3,
           "mlflow values are written after half a minute");
    batch(c, &s, 4, 2);
    is_int(count_lines(lines_of("m1", "n1")), 3,
           "mlflow values wait again after they were written");
    fire(c, ET_EVENT_EPOCH_END, &s);
    is_int(count_lines(lines_of("m1", "n1")), 4,
           "mlflow values are written when an epoch ends");
    ok(strstr(lines_of("m1", "n1"), " 3001 3\n") &&
           strstr(lines_of("m1", "n0"), " 4000 4\n"),
       "each mlflow value stands once, behind its time and before its batch");
    static const char *const tamed[] = {"_./up", "_root", "a_/b", "_hidden", "a/_./b"};
    for (int i = 0; i < 5; i++)
        is_int(count_lines(lines_of("m1", tamed[i])), 1,
               "an mlflow name that would lead out of the store becomes %s", tamed[i]);
    finish(&c);
    clock->now += 1000;
    c = open_with(cx, "mlflow", options, &s);
    is_int(count_in("m1", before), 1,
           "a resumed mlflow run leaves the experiment as it is");
    batch(c, &s, 5, 2);
    finish(&c);
    is_int(count_lines(lines_of("m1", "n1")), 5,
           "a resumed mlflow run adds its values to those before");
}

/* More names and values than fit at first. */
static void
test_mlflow_many(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c =
        open_with(cx, "mlflow", (const char *[]){"folder", "m2", NULL}, &s);
    char name[ET_METRIC_NAME];
    int wrong = 0;
    for (int ba = 1; ba <= 60; ba++)
        batch(c, &s, ba, 100);
    finish(&c);
    for (int i = 0; i < 100; i += 33) {
        snprintf(name, sizeof name, "n%d", i);
        char *line = (char *)lines_of("m2", name), *next;
        wrong += count_lines(line) != 60;
        for (int ba = 1; ba <= 60 && *line; ba++, line = next) {
            char want[64];
            next = strchr(line, '\n') + 1;
            snprintf(want, sizeof want, " %d %d\n", 1000 * ba + i, ba);
            wrong += strncmp(strchr(line, ' '), want, strlen(want)) != 0;
        }
    }
    is_int(wrong, 0,
           "each of 6000 mlflow values of 100 names is in its file, in order");
}

/* Numbers as JSON that Python reads: whole ones whole, up to 2^53. */
static void
test_wandb_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } row[] = {
        {NAN, "NaN"},
        {INFINITY, "Infinity"},
        {-INFINITY, "-Infinity"},
        {0, "0"},
        {-7, "-7"},
        {0.25, "0.25"},
        {1234567890123, "1234567890123"},
        {9007199254740991, "9007199254740991"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[ETI_NUMBER];
        is_str(eti_wandb_number(row[i].value, text), row[i].text, "%g for wandb",
               row[i].value);
    }
}

/* ---- the name of a run ---- */

static void
test_given(void)
{
    static const struct {
        const char *json, *id, *name, *recipe;
    } rows[] = {
        {"{\"id\": \"0123456789abcdef0123456789abcdef\", \"name\": \"a\", "
         "\"recipe\": \"x/y/z.tar.yaml\"}",
         "0123456789abcdef0123456789abcdef", "a", "z"},
        {"{\"id\": \"0123\", \"name\": \"\", \"recipe\": \"\"}", NULL, NULL, "run"},
        {"{\"recipe\": \"plain\"}", NULL, NULL, "plain"},
        {"", NULL, NULL, "run"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct eti_given g;
        const char *leaf = strrchr(scratch_folder(), '/');
        write_file("run.json", rows[i].json, strlen(rows[i].json), false);
        eti_given_read(scratch_folder(), &g);
        is_str(g.name, rows[i].name ? rows[i].name : leaf + 1,
               "a run has its name, or that of its folder");
        is_str(g.recipe, rows[i].recipe,
               "a run has its recipe's name without folder and endings");
        if (rows[i].id)
            is_str(g.id, rows[i].id, "a run has the id of its run.json");
        else
            ok(strlen(g.id) == 32 && strncmp(g.id, g.id + 16, 16) != 0 &&
                   strncmp(g.id, "0123", 4) != 0,
               "a run without an id is given one of 32 digits: %s", g.id);
    }
}

int
main(void)
{
    struct et_ctx *cx;
    struct et_state s;
    char json[256];
    cx = need_ctx();
    (void)own_clock(cx);
    int n = snprintf(json, sizeof json,
                     "{\"id\": \"%s\", \"name\": \"calm-heron\", \"recipe\": "
                     "\"recipes/tiny.yaml\"}",
                     id);
    write_file("run.json", json, (size_t)n, false);
    write_file("recipe.resolved.yaml", recipe, sizeof recipe - 1, false);
    s = (struct et_state){.cx = cx};
    need(cx, et_log_new(cx, NULL, &s.log));
    test_tensorboard(cx, s);
    test_pictures(cx, s);
    test_wandb(cx, s);
    test_blocks(cx, s);
    test_mlflow(cx, s);
    test_wandb_options(cx, s);
    test_mlflow_options(cx, s);
    test_mlflow_many(cx, s);
    test_given();
    test_wandb_numbers();
    et_log_free(&s.log);
    et_ctx_free(&cx);
    return done();
}
