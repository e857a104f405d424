/* SPDX-License-Identifier: Apache-2.0 */
/* R07: the k-th call of each kind fails, or does less than it was asked to, for every k
 * until a save and a load come through clean: what was saved before is whole, nothing
 * half-made and no descriptor is left, and what can be done is done. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/fault/fixture.h"
#include "t/tap.h"

enum kind {
    OPEN,
    READ,
    WRITE,
    SYNC,
    CLOSE,
    RENAME,
    UNLINK,
    MAKE_FOLDER,
    STAT,
    NEXT,
    KINDS
};
static const char *const kind_names[KINDS] = {"open",  "read",   "write",  "fsync",
                                              "close", "rename", "unlink", "mkdir",
                                              "fstat", "readdir"};
static const struct {
    const char *name;
    int error; /* 0: the call does less than it was asked to */
} faults[] = {
    {"EIO", EIO},     {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},
    {"EROFS", EROFS}, {"EINTR", EINTR},   {"short", 0},
};
enum { FAULTS = sizeof faults / sizeof *faults };

/* ---- calls that fail ---- */

static struct {
    enum kind kind;
    int error;
    int left;      /* calls until the one that fails; 0: none will */
    bool hit;      /* it has */
    bool one_byte; /* every read and write does one byte */
} bad;

static bool
fails(enum kind kind)
{
    if (kind != bad.kind || bad.left == 0 || --bad.left > 0)
        return false;
    bad.hit = true;
    errno = bad.error;
    return true;
}

/* How many of N bytes a call of KIND does. */
static size_t
shorten(enum kind kind, size_t n)
{
    if (bad.one_byte)
        return n ? 1 : 0;
    return bad.error == 0 && fails(kind) ? n / 2 : n;
}

static int
bad_open(int dir, const char *path, int flags, mode_t mode)
{
    return bad.error && fails(OPEN) ? -1 : eti_system.file.open(dir, path, flags, mode);
}

static ssize_t
bad_read(int fd, void *buf, size_t n, off_t at)
{
    return bad.error && fails(READ)
               ? -1
               : eti_system.file.read(fd, buf, shorten(READ, n), at);
}

static ssize_t
bad_write(int fd, const void *buf, size_t n)
{
    return bad.error && fails(WRITE)
               ? -1
               : eti_system.file.write(fd, buf, shorten(WRITE, n));
}

static int
bad_sync(int fd)
{
    (void)fd; /* nobody waits for a real disk */
    return bad.error && fails(SYNC) ? -1 : 0;
}

/* As on Linux: the descriptor is gone whatever close answers. */
static int
bad_close(int fd)
{
    int failed = eti_system.file.close(fd);
    return bad.error && fails(CLOSE) ? -1 : failed;
}

static int
bad_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    return bad.error && fails(RENAME)
               ? -1
               : eti_system.file.rename(from_dir, from, to_dir, to);
}

static int
bad_unlink(int dir, const char *path, int flags)
{
    return bad.error && fails(UNLINK) ? -1 : eti_system.file.unlink(dir, path, flags);
}

static int
bad_make_folder(int dir, const char *path, mode_t mode)
{
    return bad.error && fails(MAKE_FOLDER)
               ? -1
               : eti_system.file.make_folder(dir, path, mode);
}

static int
bad_stat(int fd, struct stat *st)
{
    return bad.error && fails(STAT) ? -1 : eti_system.file.stat(fd, st);
}

static struct dirent *
bad_next(DIR *d)
{
    return bad.error && fails(NEXT) ? NULL : eti_system.file.next(d);
}

static const struct eti_seams seams = {
    .file =
        {
            .open = bad_open,
            .read = bad_read,
            .write = bad_write,
            .sync = bad_sync,
            .close = bad_close,
            .rename = bad_rename,
            .unlink = bad_unlink,
            .make_folder = bad_make_folder,
            .stat = bad_stat,
            .next = bad_next,
        },
};

static void
arm(enum kind kind, int error, int k)
{
    bad.kind = kind;
    bad.error = error;
    bad.left = k;
    bad.hit = false;
}

static void
disarm(void)
{
    bool hit = bad.hit;
    arm(KINDS, 0, 0);
    bad.hit = hit;
}

/* ---- a save and a load ---- */

static struct et_ctx *cx;
static char dir[512];

struct result {
    bool saved, loaded; /* did it come through? */
    int64_t step;       /* loaded */
    uint64_t digest;
};

static struct {
    uint64_t first, second; /* digests of the two checkpoints of a save */
} want;

/* Is STEP there and whole? */
static bool
is_whole(int64_t step)
{
    char name[ETI_STEP_NAME];
    struct eti_checkpoint c;
    bool whole = eti_store_read(cx, dir, eti_step_name(step, name), &c) == ET_OK;
    et_error_clear(cx);
    eti_checkpoint_release(&c);
    return whole;
}

static struct saving_run run;

static void
open_run(const struct et_checkpoint_config *to, const struct et_load_config *from)
{
    const struct saving_setup setup = {.checkpoint = to, .load = from};
    et_status status;
    if (!saving_open(&run, cx, &setup, &status))
        bail("%s", et_error_get(cx)->message);
}

/* The first call of each failing row is what a person wants to see. */
static int wrong;

static void
expect(bool holds, const char *call, const char *fault, int k, const char *what)
{
    if (!holds && wrong++ == 0)
        diag("call %d of %s, %s: %s", k, call, fault, what);
}

/* Saves at batch 2, then at 3 with the fault. False when the fault never came. */
static bool
try_save(enum kind kind, int f, int k)
{
    const struct et_checkpoint_config to = saves_to(dir, 1);
    const char *call = kind_names[kind], *fault = faults[f].name;
    int before, n;
    remove_tree(dir);
    open_run(&to, NULL);
    saving_train(&run, 2);
    before = count_descriptors();
    arm(kind, faults[f].error, k);
    saving_train(&run, 1);
    disarm();
    bool failed = et_trainer_outcome(run.r.trainer) == ET_OUTCOME_UNSAVED;
    bool hit = bad.hit, first = is_whole(2), second = is_whole(3);
    expect(count_descriptors() == before, call, fault, k, "a descriptor is left");
    expect(failed ? first : second, call, fault, k, "nothing whole is left");
    /* A file that cannot be removed waits for the next start. */
    if (kind != UNLINK)
        expect(count_names(dir, ".tmp") == 0, call, fault, k,
               "something half-made is left");
    expect(count_names(dir, "step-") == first + second, call, fault, k,
           "a name stands for nothing");
    if (faults[f].error == 0 || faults[f].error == EINTR)
        expect(!failed && !first, call, fault, k, "it was no reason to fail");
    if (kind == WRITE && hit && faults[f].error && faults[f].error != EINTR)
        expect(failed, call, fault, k, "it passed for success");
    /* And goes on: the next save is as good as any. */
    saving_train(&run, 1);
    expect(et_trainer_outcome(run.r.trainer) == ET_OUTCOME_FINISHED && is_whole(4),
           call, fault, k, "the next save fails too");
    saving_close(&run);
    need(cx, eti_store_clean(cx, dir, &n));
    expect(count_names(dir, ".") == count_names(dir, ".old-"), call, fault, k,
           "the next start does not clean up");
    return hit;
}

/* Loads with the fault where 2 and 3 are saved. */
static bool
try_load(enum kind kind, int f, int k)
{
    const struct et_load_config from = {.directory = dir, .set_aside = true};
    const struct saving_setup setup = {.load = &from};
    const char *call = kind_names[kind], *fault = faults[f].name;
    et_status status;
    int before = count_descriptors();
    arm(kind, faults[f].error, k);
    bool loaded = saving_open(&run, cx, &setup, &status);
    disarm();
    bool hit = bad.hit;
    et_error_clear(cx);
    if (loaded) {
        int64_t step = run.r.state->timestamp.batch;
        uint64_t digest = saving_digest(&run);
        expect(digest == (step == 3 ? want.second : want.first), call, fault, k,
               "what was loaded was never saved");
        if (faults[f].error == 0 || faults[f].error == EINTR)
            expect(step == 3, call, fault, k, "it was no reason for the older one");
        saving_close(&run);
    }
    if (faults[f].error == 0 || faults[f].error == EINTR)
        expect(loaded, call, fault, k, "it was no reason to fail");
    expect(count_descriptors() == before, call, fault, k, "a descriptor is left");
    expect(is_whole(2) && is_whole(3), call, fault, k, "a good checkpoint was touched");
    return hit;
}

static bool
applies(enum kind kind, int f)
{
    return faults[f].error || kind == READ || kind == WRITE;
}

static void
make_two(void)
{
    const struct et_checkpoint_config to = saves_to(dir, -1);
    remove_tree(dir);
    open_run(&to, NULL);
    saving_train(&run, 2);
    want.first = saving_digest(&run);
    saving_train(&run, 1);
    want.second = saving_digest(&run);
    saving_close(&run);
}

static void
test_each(const char *what, bool (*try)(enum kind, int, int))
{
    for (int kind = 0; kind < KINDS; kind++) {
        int tried = 0;
        wrong = 0;
        for (int f = 0; f < FAULTS; f++)
            for (int k = 1; applies((enum kind)kind, f); k++, tried++)
                if (!try((enum kind)kind, f, k))
                    break;
        ok(wrong == 0,
           "%s: whichever %s fails, and however, nothing is lost (%d tried)", what,
           kind_names[kind], tried);
    }
}

static void
test_one_byte(void)
{
    const struct et_checkpoint_config to = saves_to(dir, 1);
    const struct et_load_config from = {.directory = dir};
    remove_tree(dir);
    bad.one_byte = true;
    open_run(&to, NULL);
    saving_train(&run, 2);
    uint64_t digest = saving_digest(&run);
    is_int(et_trainer_outcome(run.r.trainer), ET_OUTCOME_FINISHED,
           "a save whose every write takes one byte succeeds");
    saving_close(&run);
    open_run(NULL, &from);
    ok(saving_digest(&run) == digest, "and loads, a byte at a time");
    bad.one_byte = false;
    saving_close(&run);
}

int
main(void)
{
    static struct eti_seams own;
    struct et_alloc_stats stats;
    own = seams;
    own.monotonic = eti_system.monotonic;
    own.wall = eti_system.wall;
    cx = need_ctx();
    eti_ctx_set_seams(cx, &own);
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    disarm();
    test_each("saving", try_save);
    make_two();
    test_each("loading", try_load);
    test_one_byte();
    remove_tree(dir);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "no memory is left");
    et_ctx_free(&cx);
    return done();
}
