/* SPDX-License-Identifier: Apache-2.0 */
/* sketch.c: what Compose says of a recipe, the command line that it makes of changes,
 * and what it does to files: each sentence, and each refusal. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/compose/checks.h"
#include "core/compose/command.h"
#include "core/compose/layers.h"
#include "core/compose/sketch.h"
#include "etude/ctx.h"
#include "etude/data.h"
#include "t/tap.h"

static struct et_ctx *cx;

#define LEAST                                                                          \
    "max_duration: 2ep\nmodel: lenet\n"                                                \
    "train_data: {name: synthetic_images, batch_size: 8}\n"
#define WHOLE                                                                          \
    LEAST "eval_data: synthetic_images\noptimizer: {name: sgd, lr: 0.1}\n"             \
          "seed: 1\ncheckpoint: false\n"

static struct eti_sketch *
sketch_of(const char *text)
{
    struct eti_sketch *d;
    if (eti_sketch_new(cx, NULL, &d) != ET_OK ||
        eti_sketch_begin(d, text, strlen(text), "r.yaml") != ET_OK)
        bail("no sketch");
    return d;
}

/* A call that fails with STATUS and a message that has PART. */
static void
fails(et_status got, et_status want, const char *part, const char *name)
{
    if (!ok(got == want && strstr(et_error_get(cx)->message, part), "%s", name))
        diag("%s: %s", et_status_name(got), et_error_get(cx)->message);
    et_error_clear(cx);
}

/* ---- checks ---- */

/* What the tables cannot say is asked of each algorithm that is on. */
static void
test_algorithms(void)
{
    static const char text[] = LEAST "algorithms:\n  mixup: false\n"
                                     "  blurpool: false\n"
                                     "  ema: {half_life: 2ba, smoothing: 0.9}\n";
    struct eti_sketch *d = sketch_of(text);
    ok(d->errors.n == 1 && strstr(d->errors.v[0].message, "not both"),
       "an algorithm behind two that are off is checked");
    eti_sketch_free(&d);
}

/* N checks, a line each: "!" for a warning, "!!" where it ends all, the fix. */
static const char *
lines_of(const struct eti_check *c, int n)
{
    static char text[4096];
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
                               c[i].is_fatal     ? "!! "
                               : c[i].is_warning ? "! "
                                                 : "",
                               c[i].text);
        if (c[i].fix != ETI_FIX_NONE)
            at += (size_t)snprintf(text + at, sizeof text - at, " [%d %s %d]",
                                   (int)c[i].fix, c[i].who, c[i].by);
        if (c[i].line)
            at += (size_t)snprintf(text + at, sizeof text - at, " @%d:%d", c[i].line,
                                   c[i].column);
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    return text;
}

static void
checks_are(const char *recipe, const char *want, const char *name)
{
    struct eti_check c[ETI_CHECKS_MAX];
    struct eti_sketch *d = sketch_of(recipe);
    is_str(lines_of(c, eti_checks(cx, d->recipe, c, ETI_CHECKS_MAX)), want, "%s", name);
    eti_sketch_free(&d);
}

static void
test_checks(void)
{
    checks_are(LEAST,
               "! no optimizer is given: decoupled_sgdw with lr 0.1\n"
               "! no eval_data: nothing is evaluated\n"
               "batch 8 = 8 x 1 rank @3:1\n"
               "seed: drawn at the start, and recorded\n"
               "a checkpoint every 1ep, the last 3 kept\n",
               "the least recipe leaves much to defaults");
    checks_are(WHOLE,
               "! no checkpoints but at the end: a crash loses the run\n"
               "batch 8 = 8 x 1 rank @3:1\n",
               "checkpoints that are off are warned about, and not described");
    checks_are(LEAST "eval_data: synthetic_images\noptimizer: {name: sgd, lr: 0.1}\n"
                     "seed: 0\ncheckpoint: {keep: -1, interval: 40ba}\n"
                     "launch: {nproc: 4}\nmicrobatch_size: 2\n",
               "batch 8 = 2 x 4 ranks, 2 at a time @3:1\n"
               "a checkpoint every 40ba, all kept\n",
               "ranks share a batch, which is done in pieces of so many");
    checks_are(WHOLE "grad_accum: 4\n",
               "! no checkpoints but at the end: a crash loses the run\n"
               "batch 8 = 8 x 1 rank, in 4 pieces @3:1\n",
               "or in so many pieces");
}

static void
test_clashes(void)
{
    checks_are(
        WHOLE "algorithms:\n  label_smoothing:\n  ema:\n  mixup:\n",
        "! label_smoothing stands before mixup: only one part of the mixed labels "
        "is smoothed [2 mixup 2] @9:3\n"
        "! no checkpoints but at the end: a crash loses the run\n"
        "batch 8 = 8 x 1 rank @3:1\n",
        "an order that does not work is warned about, with what helps");
    checks_are(WHOLE "algorithms:\n  label_smoothing:\n  ema:\n  mixup: false\n",
               "! no checkpoints but at the end: a crash loses the run\n"
               "batch 8 = 8 x 1 rank @3:1\n",
               "not where one of them is off,");
    checks_are(WHOLE "algorithms:\n  mixup:\n  label_smoothing:\n",
               "! no checkpoints but at the end: a crash loses the run\n"
               "batch 8 = 8 x 1 rank @3:1\n",
               "nor the other way round");
}

static void
found_are(struct eti_sketch *d, const struct eti_found *f, const char *want,
          const char *name)
{
    struct eti_check c[ETI_CHECKS_MAX];
    is_str(lines_of(c, eti_checks_found(cx, d->recipe, f, c, ETI_CHECKS_MAX)), want,
           "%s", name);
}

static void
test_found(void)
{
    static const struct {
        const char *keep;
        double each, free;
        const char *want;
    } disks[] = {
        {"3", 1e6, 4e6, "disk: 3 checkpoints need 3.0 MB, 4.0 MB free\n"},
        {"3", 1e6, 3999999,
         "! disk: 3 checkpoints and the next need 4.0 MB, 4.0 MB free\n"},
        {"1", 999, 5e3, "disk: 1 checkpoint needs 999 B, 5.0 KB free\n"},
        {"0", 9.96e6, 20e6, "disk: 1 checkpoint needs 10 MB, 20 MB free\n"},
        {"0", 9.94e6, 19e6,
         "! disk: 1 checkpoint and the next need 20 MB, 19 MB free\n"},
        {"-1", 999.5e3, 2e12,
         "disk: each checkpoint needs 1.0 MB and is kept, 2.0 TB free\n"},
        {"-1", 9e14, 9e15,
         "disk: each checkpoint needs 900 TB and is kept, 9000 TB free\n"},
        {"2", NAN, 9e15, ""},
        {"2", 1, NAN, ""},
    };
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
        char text[512];
        const struct eti_found f = {.checkpoint_bytes = disks[i].each,
                                    .free_bytes = disks[i].free};
        snprintf(text, sizeof text, LEAST "checkpoint: {keep: %s}\n", disks[i].keep);
        struct eti_sketch *d = sketch_of(text);
        found_are(d, &f, disks[i].want, "the disk has room for the next, or not");
        eti_sketch_free(&d);
    }
    struct eti_sketch *d = sketch_of(LEAST);
    struct eti_found f = {
        .data = {{"a", true, 1000, 256}, {"b", true, 999, 1000}, {"c", false, 7, 10}},
        .n_data = 3,
        .checkpoint_bytes = NAN,
        .free_bytes = NAN,
        .microbatches = 1,
        .run = "calm-yak",
    };
    found_are(d, &f,
              "! a has 256 words, b has 1,000\n"
              "a: 1,000 tokens, 256 words in its vocabulary\n"
              "evaluation: b: 999 tokens, 1,000 words in its vocabulary\n"
              "evaluation: c: 7 images, 10 classes\n",
              "vocabularies differ; texts are not compared with images");
    f.n_data = 0;
    f.microbatches = 2;
    found_are(
        d, &f,
        "! grad_accum is auto, and calm-yak came to 2: save that? [3 grad_accum 2]\n",
        "two pieces are worth saving, one is not");
    eti_sketch_free(&d);
}

/* ---- the command line of changes ---- */

static void
put_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* The command line that makes of the file OLD the text NOW. */
static void
command_is(const char *old, const char *now, const char *want)
{
    struct eti_command c;
    struct eti_sketch *d;
    char *text = NULL;
    put_file("c.yaml", old, strlen(old));
    if (eti_sketch_new(cx, NULL, &d) != ET_OK || eti_sketch_open(d, "c.yaml") != ET_OK)
        bail("no sketch");
    /* as if every line had been typed */
    et_free(cx, d->text);
    void *copy;
    if (et_alloc(cx, strlen(now) + 1, &copy) != ET_OK)
        bail("no memory");
    memcpy(copy, now, strlen(now) + 1);
    d->text = copy;
    d->n = strlen(now);
    if (eti_sketch_put_line(d, 1, "max_duration: 2ep") != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_status status = eti_command_new(d, &c);
    if (status == ET_OK)
        status = eti_command_text(&c, "train", &text);
    is_str(status == ET_OK ? text : et_error_get(cx)->message, want, "%s", want);
    et_error_clear(cx);
    et_free(cx, text);
    eti_command_release(&c);
    eti_sketch_free(&d);
    unlink("c.yaml");
}

static void
test_commands(void)
{
    command_is(WHOLE, WHOLE, "etude train c.yaml");
    command_is(WHOLE, WHOLE "run_name: x\ntags: [\"it's\", b c]\n",
               "etude train c.yaml run_name=x 'tags=[\"it'\\''s\", \"b c\"]'");
    command_is(LEAST, LEAST "load: {path: a b}\n",
               "etude train c.yaml 'load.path=\"a b\"'");
    command_is(WHOLE "tags: [a]\n", WHOLE, "etude train c.yaml --unset tags");
    command_is(LEAST "seed: 1\n", LEAST "seed: 2\n", "etude train c.yaml seed=2");
    command_is(LEAST "optimizer: {name: sgd, lr: 0.1, momentum: 0.5}\n",
               LEAST "optimizer: {name: sgd, lr: 0.2}\n",
               "etude train c.yaml optimizer.lr=0.2 --unset optimizer.momentum");
    command_is(LEAST "optimizer: {name: sgd, lr: 0.1}\n",
               LEAST "optimizer: {name: adamw, lr: 0.1}\n",
               "etude train c.yaml 'optimizer={name: adamw, lr: 0.1}'");
    command_is(LEAST, LEAST "checkpoint: {keep: 4, interval: 2ep}\n",
               "etude train c.yaml checkpoint.keep=4 checkpoint.interval=2ep");
    command_is(LEAST "algorithms: {ema: , mixup: {alpha: 0.3}, blurpool: }\n",
               LEAST "algorithms: {ema: {half_life: 3ba}, blurpool: }\n",
               "etude train c.yaml 'algorithms.ema={half_life: 3ba}' --no-alg mixup");
    command_is(LEAST "algorithms: {ema: , blurpool: }\n",
               LEAST "algorithms: {blurpool: , ema: }\n",
               "etude train c.yaml --unset algorithms.ema --unset algorithms.blurpool "
               "--alg blurpool --alg ema");
    command_is(LEAST "algorithms: {ema: }\n",
               LEAST "algorithms: {ema: , mixup: {alpha: 0.5}, sam: false}\n",
               "etude train c.yaml algorithms.mixup.alpha=0.5 --no-alg sam");
    command_is("- a\n", "- a\n", "the recipe has faults: key 'model' is missing");
    struct eti_sketch *d = sketch_of(LEAST);
    struct eti_command c;
    char *text = NULL;
    if (eti_sketch_save(d, "c d.yaml", false) != ET_OK ||
        eti_command_new(d, &c) != ET_OK ||
        eti_command_text(&c, "train", &text) != ET_OK)
        bail("no command");
    is_str(text, "etude train 'c d.yaml'", "a file's name is quoted, too");
    et_free(cx, text);
    eti_command_release(&c);
    unlink("c d.yaml");
    eti_sketch_free(&d);
    d = sketch_of(LEAST);
    fails(eti_command_new(d, &c), ET_EINVAL, "it has no file yet: w saves it",
          "a text without a file has no command");
    eti_command_release(&c);
    if (eti_sketch_set(d, "optimizer", "{name: sgd, lr: fast}") != ET_OK)
        bail("set");
    fails(eti_command_new(d, &c), ET_EINVAL,
          "the recipe has faults: expected number >= 0, got \"fast\"",
          "nor has one with faults");
    eti_command_release(&c);
    eti_sketch_free(&d);
}

/* ---- lines and undo ---- */

static void
test_lines(void)
{
    struct eti_sketch *d = sketch_of("a: 1\nb: 2\nc: 3");
    const char *what;
    const struct {
        int line;
        const char *text, *want;
    } rows[] = {{2, "B: 5", "a: 1\nB: 5\nc: 3"},
                {1, "", "\nB: 5\nc: 3"},
                {3, "C", "\nB: 5\nC"},
                {3, "x\ny", "\nB: 5\nx\ny"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (eti_sketch_put_line(d, rows[i].line, rows[i].text) != ET_OK)
            bail("line");
        is_str(d->text, rows[i].want, "line %d becomes another", rows[i].line);
    }
    fails(eti_sketch_put_line(d, 5, "z"), ET_ENOENT, "there is no line 5",
          "behind the last line there is none");
    ok(eti_sketch_undo(d, &what) == ET_OK && strcmp(what, "line 3") == 0,
       "what was done is named when it is undone");
    is_str(d->text, "\nB: 5\nC", "and is");
    for (int i = 0; i < 3; i++)
        if (eti_sketch_undo(d, &what) != ET_OK)
            bail("undo");
    is_str(d->text, "a: 1\nb: 2\nc: 3", "as was all before");
    ok(eti_sketch_undo(d, &what) == ET_OK && !what, "there is an end to it");
    for (int i = 0; i < 2; i++)
        if (eti_sketch_redo(d, &what) != ET_OK)
            bail("redo");
    is_str(d->text, "\nB: 5\nc: 3", "what was undone is done again");
    if (eti_sketch_put_line(d, 3, "d: 4") != ET_OK)
        bail("line");
    ok(eti_sketch_redo(d, &what) == ET_OK && !what,
       "behind another change there is nothing to do again");
    eti_sketch_free(&d);
}

static void
test_many_steps(void)
{
    enum { MOST = 1000, MORE = 3 };
    struct eti_sketch *d = sketch_of("seed: 9\n");
    const char *what;
    char text[32];
    int undone = 0;
    for (int i = 0; i < MOST + MORE; i++) {
        snprintf(text, sizeof text, "seed: %d", i);
        if (eti_sketch_put_line(d, 1, text) != ET_OK)
            bail("line");
    }
    while (eti_sketch_undo(d, &what) == ET_OK && what)
        undone++;
    is_int(undone, MOST, "a thousand steps are kept");
    snprintf(text, sizeof text, "seed: %d\n", MORE - 1);
    is_str(d->text, text, "the newest of them");
    eti_sketch_free(&d);
}

static void
test_moves(void)
{
    struct eti_sketch *d =
        sketch_of(LEAST "algorithms:\n  ema:\n  mixup: {alpha: 0.3}\n");
    fails(eti_sketch_move(d, "sam", 1), ET_ENOENT, "sam is not in the recipe",
          "what is not there does not move");
    fails(eti_sketch_move(d, "ema", -1), ET_ENOENT, "ema is the first already",
          "nor does the first move up");
    fails(eti_sketch_move(d, "mixup", 1), ET_ENOENT, "mixup is the last already",
          "or the last down");
    const char *what;
    static const char *const names[] = {"mixup", "ema", "mixup", "ema"};
    static const char *const whats[] = {"mixup off", "ema off", "mixup on", "ema on"};
    for (int i = 0; i < 4; i++) {
        const bool was = eti_sketch_is_on(d, names[i]);
        ok(eti_sketch_toggle(d, names[i]) == ET_OK &&
               eti_sketch_is_on(d, names[i]) != was,
           "%s", whats[i]);
    }
    ok(strstr(d->text, "  ema:\n  mixup: {alpha: 0.3}\n") != NULL,
       "those that were off come back where they stood, with their options");
    ok(eti_sketch_undo(d, &what) == ET_OK && strcmp(what, whats[3]) == 0 &&
           !eti_sketch_is_on(d, "ema"),
       "and undo says what it undoes");
    eti_sketch_free(&d);
    static const char commented[] = LEAST "algorithms:\n"
                                          "  mixup:  # mixes\n"
                                          "    alpha: 0.3\n"
                                          "  # averages\n"
                                          "  ema:  # late\n"
                                          "    half_life: 7ba  # long\n";
    static const char *const last_first[] = {"ema", "mixup", "mixup", "ema"};
    d = sketch_of(commented);
    for (int i = 0; i < 4; i++)
        if (eti_sketch_toggle(d, last_first[i]) != ET_OK)
            bail("toggle");
    is_str(d->text, commented,
           "and with their comments, if the last that went off comes back first");
    eti_sketch_free(&d);
    d = sketch_of(LEAST "algorithms: {ema: false}\n");
    ok(eti_sketch_toggle(d, "ema") == ET_OK &&
           strstr(d->text, "algorithms: {ema: {}}") != NULL,
       "one that the recipe says is off is turned on where it stands");
    eti_sketch_free(&d);
}

/* ---- files ---- */

static void
test_files(void)
{
    struct eti_sketch *d = sketch_of(LEAST);
    char zero[] = "seed: 1\n", *large = malloc(300 << 10), *text;
    struct stat st;
    size_t n = 300 << 10;
    memset(large, '#', n);
    put_file("large.yaml", large, n);
    free(large);
    zero[3] = '\0';
    put_file("zero.yaml", zero, sizeof zero - 1);
    fails(eti_sketch_open(d, "none.yaml"), ET_ENOENT, "none.yaml",
          "a file that is not there is said");
    fails(eti_sketch_open(d, "."), ET_EIO, ". is no file", "a folder is no file");
    fails(eti_sketch_open(d, "large.yaml"), ET_EIO,
          "large.yaml has 307200 bytes, a recipe at most 262144",
          "one that is too long");
    fails(eti_sketch_open(d, "zero.yaml"), ET_EIO,
          "zero.yaml is no text: it has a zero byte", "and one that is no text");
    is_str(d->text, LEAST, "and the text stays");
    ok(d->path == NULL && !eti_sketch_is_stale(d), "without a file");

    put_file("real.yaml", LEAST, strlen(LEAST));
    chmod("real.yaml", 0640);
    if (symlink("real.yaml", "link.yaml") != 0)
        bail("no link");
    ok(eti_sketch_open(d, "link.yaml") == ET_OK && !eti_sketch_is_changed(d),
       "a link to a file is opened");
    if (eti_sketch_set(d, "seed", "4") != ET_OK)
        bail("set");
    ok(eti_sketch_is_changed(d) && eti_sketch_save(d, NULL, false) == ET_OK &&
           !eti_sketch_is_changed(d),
       "and saved");
    ok(lstat("link.yaml", &st) == 0 && S_ISLNK(st.st_mode), "the link stays one");
    ok(stat("real.yaml", &st) == 0 && (st.st_mode & 0777) == 0640,
       "and the file has its rights");
    put_file("real.yaml", d->text, d->n);
    ok(!eti_sketch_is_stale(d), "the same bytes are no change by others");
    char *other = strdup(d->text);
    *strchr(other, '4') = '5';
    put_file("real.yaml", other, d->n);
    free(other);
    ok(eti_sketch_is_stale(d), "others of the same number are");
    put_file("real.yaml", "a\0b", 3);
    ok(eti_sketch_is_stale(d), "and so are some that are no text");
    fails(eti_sketch_save(d, NULL, false), ET_ECANCELED,
          "link.yaml was changed by another program", "which are not lost");
    unlink("real.yaml");
    ok(!eti_sketch_is_stale(d), "where the file has gone there is nothing to lose");
    fails(eti_sketch_save(d, "no/such/folder/x.yaml", false), ET_ENOENT,
          "no/such/folder/x.yaml", "a folder that is not there is said");
    is_str(d->path, "link.yaml", "and the file is the one before");
    put_file("other.yaml", "seed: 6\n", 8);
    fails(eti_sketch_save(d, "other.yaml", false), ET_ECANCELED,
          "other.yaml is there already", "another file is not written over");
    ok(eti_sketch_save(d, "other.yaml", true) == ET_OK &&
           strcmp(d->path, "other.yaml") == 0 && strcmp(d->name, "other.yaml") == 0,
       "unless that is wanted, and then is the sketch's");
    FILE *f = fopen("other.yaml", "r");
    text = calloc(1, 4096);
    n = f ? fread(text, 1, 4095, f) : 0;
    ok(f && n == d->n && strcmp(text, d->text) == 0, "with all of its text");
    if (f)
        fclose(f);
    free(text);
    static const char *const files[] = {"large.yaml", "zero.yaml", "link.yaml",
                                        "other.yaml", "real.yaml"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(files[i]);
    eti_sketch_free(&d);
}

/* The call that fails from here on, as on a disk that is full; 0 none. */
static enum { NO_CALL, WRITE, SYNC, RENAME, CALLS } broken;

static ssize_t
write_or_fail(int fd, const void *buf, size_t n)
{
    if (broken != WRITE)
        return eti_system.file.write(fd, buf, n);
    errno = ENOSPC;
    return -1;
}

static int
sync_or_fail(int fd)
{
    if (broken != SYNC)
        return eti_system.file.sync(fd);
    errno = EIO;
    return -1;
}

static int
rename_or_fail(int from_dir, const char *from, int to_dir, const char *to)
{
    if (broken != RENAME)
        return eti_system.file.rename(from_dir, from, to_dir, to);
    errno = EACCES;
    return -1;
}

/* A save that fails, whatever call it is, leaves the file as it was, and nothing beside
 * it. */
static void
test_broken_saves(void)
{
    static const char *const names[CALLS] = {
        [WRITE] = "write", [SYNC] = "fsync", [RENAME] = "rename"};
    struct eti_seams seams = eti_system;
    seams.file.write = write_or_fail;
    seams.file.sync = sync_or_fail;
    seams.file.rename = rename_or_fail;
    put_file("kept.yaml", LEAST, strlen(LEAST));
    struct eti_sketch *d = sketch_of(LEAST);
    if (eti_sketch_open(d, "kept.yaml") != ET_OK ||
        eti_sketch_set(d, "seed", "7") != ET_OK)
        bail("no sketch");
    eti_ctx_set_seams(cx, &seams);
    for (broken = WRITE; broken < CALLS; broken++) {
        ok(eti_sketch_save(d, NULL, false) != ET_OK && eti_sketch_is_changed(d),
           "a save whose %s fails has not saved", names[broken]);
        et_error_clear(cx);
        char beside[64], text[512];
        FILE *f = fopen("kept.yaml", "r");
        size_t n = f ? fread(text, 1, sizeof text, f) : 0;
        if (f)
            fclose(f);
        ok(n == strlen(LEAST) && memcmp(text, LEAST, n) == 0, "the file is as it was");
        snprintf(beside, sizeof beside, "kept.yaml.%ld.tmp", (long)getpid());
        ok(access(beside, F_OK) != 0, "and nothing is beside it");
    }
    broken = NO_CALL;
    ok(eti_sketch_save(d, NULL, false) == ET_OK && !eti_sketch_is_changed(d),
       "the next save does it");
    eti_ctx_set_seams(cx, &eti_system);
    unlink("kept.yaml");
    eti_sketch_free(&d);
}

/* ---- layers ---- */

/* However few lines there is room for, they are the first, and none is beyond. */
static void
test_layer_room(void)
{
    enum { MOST = 16 };
    static struct eti_layer_line all[MOST], some[MOST + 1];
    struct eti_layer_line untouched;
    struct eti_sketch *d = sketch_of(
        "max_duration: 2ep\nmodel:\n  name: layers\n  layers:\n  - flatten\n"
        "  - residual:\n    - {linear: {out: 8}}\n    - relu\n  - body\n  - tail\n"
        "  blocks:\n    body: [relu, {linear: {out: 4}}]\n    tail: [relu]\n"
        "train_data: {name: synthetic_images, batch_size: 8}\n");
    int n = eti_layer_lines(d, all, MOST), wrong = 0;
    is_int(n, 11, "six lines of layers, and two blocks with three");
    memset(&untouched, 0x5a, sizeof untouched);
    for (int room = 0; room <= MOST; room++) {
        const int want = room < n ? room : n;
        for (int i = 0; i <= MOST; i++)
            some[i] = untouched;
        wrong += eti_layer_lines(d, some, room) != want;
        for (int i = 0; i < want; i++)
            wrong += strcmp(some[i].path, all[i].path) != 0 ||
                     strcmp(some[i].name, all[i].name) != 0;
        for (int i = want; i <= MOST; i++)
            wrong += memcmp(&some[i], &untouched, sizeof untouched) != 0;
    }
    is_int(wrong, 0, "with room for fewer they are the first, and nothing is beyond");
    eti_sketch_free(&d);
}

int
main(void)
{
    char folder[] = "/tmp/etude-sketch.XXXXXX";
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder) || chdir(folder) != 0)
        bail("no context or folder");
    test_algorithms();
    test_checks();
    test_clashes();
    test_found();
    test_commands();
    test_lines();
    test_many_steps();
    test_moves();
    test_files();
    test_broken_saves();
    test_layer_room();
    if (chdir("/") != 0 || rmdir(folder) != 0)
        ok(false, "%s is left with nothing", folder);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
