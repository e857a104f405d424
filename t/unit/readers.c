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
open_logger(struct et_ctx *cx, const char *name, struct et_state *s)
{
    struct et_callback *c;
    need(cx, et_callback_new(cx, et_logger_find(name), NULL, scratch_folder(), &c));
    need(cx, c->type->run(c, ET_EVENT_AFTER_LOAD, s, s->log));
    return c;
}

static void
fire(struct et_callback *c, enum et_event event, struct et_state *s)
{
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

/* The files below FOLDER of the scratch folder into PATH, which has room for 64. */
static int
list(const char *folder, char path[64][512])
{
    char whole[PATH_BYTES], name[512];
    struct stat st;
    int n = 0;
    snprintf(whole, sizeof whole, "%s/%s", scratch_folder(), folder);
    DIR *d = opendir(whole);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || n == 64)
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
    static char bytes[MOST], path[64][512];
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
    static char bytes[MOST], path[64][512];
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
    static char bytes[MOST], path[64][512];
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
    static char bytes[MOST], path[64][512];
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
    static char all[MOST], text[MOST], path[64][512];
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
    et_log_free(&s.log);
    et_ctx_free(&cx);
    return done();
}
