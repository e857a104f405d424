/* SPDX-License-Identifier: Apache-2.0 */
/* What a save puts into an archive, and what a load takes from it: a second save in the
 * same memory, places among any number of values, what is left out, how large it is. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/checkpoint/archive.h"
#include "core/checkpoint/label.h"
#include "core/checkpoint/store.h"
#include "core/checkpoint/writer.h"
#include "core/graph/tensor.h"
#include "etude/checkpoint.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_device *dev;

static void
begin(struct et_archive *a)
{
    *a = (struct et_archive){0};
    eti_archive_begin(a, cx);
}

/* What has been saved is read from now on. */
static void
turn(struct et_archive *a)
{
    need(cx, eti_archive_end(a));
    need(cx, eti_archive_sort(a));
    a->mode = ET_ARCHIVE_LOAD;
    a->source = "memory";
}

/* Saves N numbers from FIRST on. */
static void
put_numbers(struct et_archive *a, const char *name, int64_t first, int64_t n)
{
    int64_t v[8];
    for (int64_t i = 0; i < n; i++)
        v[i] = first + i;
    need(cx, et_archive_i64(a, name, v, n));
}

/* A save has its own names, sizes and place, whatever the one before it left. */
static void
test_again(void)
{
    struct et_archive a;
    int64_t v[8] = {0};
    begin(&a);
    put_numbers(&a, "first", 10, 1);
    put_numbers(&a, "second", 20, 1);
    put_numbers(&a, "third", 30, 2);
    need(cx, et_archive_enter(&a, "left")); /* an error: nobody leaves it */
    eti_archive_begin(&a, cx);
    put_numbers(&a, "second", 40, 8);
    need(cx, et_archive_enter(&a, "in"));
    put_numbers(&a, "fourth", 50, 2);
    et_archive_leave(&a);
    turn(&a);
    ok(et_archive_has(&a, "second") && et_archive_has(&a, "in/fourth") && a.n == 2,
       "a second save has its own names, at its own place, and no other");
    ok(et_archive_i64(&a, "second", v, 8) == ET_OK && v[0] == 40 && v[7] == 47 &&
           et_archive_i64(&a, "in/fourth", v, 2) == ET_OK && v[0] == 50 && v[1] == 51,
       "and its own values, where they have grown too");
    eti_archive_release(&a);
}

/* Places among values of any number. */
static void
test_any_place(void)
{
    int wrong = 0;
    for (int n = 1; n <= 9; n++) {
        struct et_archive a;
        char name[16];
        begin(&a);
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "a%d/b", i);
            put_numbers(&a, name, i, 1);
        }
        turn(&a);
        for (int i = -1; i <= n; i++) {
            snprintf(name, sizeof name, i < 0 ? "a" : "a%d", i);
            need(cx, et_archive_enter(&a, name));
            wrong += eti_archive_has_place(&a) != (i >= 0 && i < n);
            et_archive_leave(&a);
        }
        eti_archive_release(&a);
    }
    is_int(wrong, 0, "of 1 to 9 values each is below its place, and below no other");
}

/* What a save leaves out, and what of it a load may miss. */
static void
test_left_out(void)
{
    static const char *const patterns[] = {"nothing", "state/optimizer", "model/w*",
                                           NULL};
    json_t *list = json_pack("[s, s]", "state/optimizer", "model/w*");
    struct et_archive a;
    int64_t v = 7;
    char text[8] = "kept";
    void *block = NULL;
    int64_t n = 3;
    begin(&a);
    a.ignore = patterns;
    put_numbers(&a, "model/w1", 1, 1);
    put_numbers(&a, "model/b", 2, 1);
    put_numbers(&a, "optimizer/m", 3, 1);
    put_numbers(&a, "optimize", 4, 1);
    is_int((int64_t)a.used, 6, "the patterns that something fits are known, each");
    turn(&a);
    ok(a.n == 2 && et_archive_has(&a, "model/b") && et_archive_has(&a, "optimize"),
       "what fits one is not saved");
    is_int(et_archive_i64(&a, "model/w1", &v, 1), ET_EFORMAT,
           "what is not there is missed");
    et_error_clear(cx);
    a.left_out = list;
    ok(et_archive_i64(&a, "model/w1", &v, 1) == ET_OK && v == 7 &&
           et_archive_text(&a, "optimizer/name", text, sizeof text) == ET_OK &&
           strcmp(text, "kept") == 0 &&
           et_archive_list(&a, "optimizer/list", &block, &n, 1) == ET_OK && n == 3 &&
           et_archive_counts(&a, "optimizer/steps", &v, 1, 0, 1) == ET_OK && v == 7,
       "unless it was left out: then the run keeps its own");
    is_int(et_archive_text(&a, "optimize/name", text, sizeof text), ET_EFORMAT,
           "and nothing else is excused");
    et_error_clear(cx);
    for (int64_t i = 0; i < a.n; i++)
        a.item[i].ignored = true;
    ok(et_archive_i64(&a, "model/b", &v, 1) == ET_OK && v == 7,
       "nor is read what who loads does not want");
    eti_archive_release(&a);
    json_decref(list);
}

/* A pattern fits a path, or a place that it lies in. */
static void
test_patterns(void)
{
    static const struct {
        const char *pattern, *path;
        bool fits;
    } rows[] = {
        {"optimizer", "optimizer/adam/m", true},
        {"optim", "optimizer/adam/m", false},
        {"optimizer/adam", "optimizer/adam/m", true},
        {"*adam", "optimizer/adam/m", true},
        {"*dam", "optimizer/adams/m", false},
        {"optimizer/adam/m", "optimizer/adam", false},
        {"model/*", "model/a/b", true},
        {"model/?", "model/ab", false},
        {"model/?", "model/a/b", true},
        {"*", "a/b/c", true},
        {"state/model", "model/w", true},
        {"state/*", "model", true},
        {"adam", "optimizer/adam/m", false},
        {"[ab]", "b/c", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ok(eti_archive_path_fits(rows[i].pattern, rows[i].path) == rows[i].fits,
           "'%s' %s '%s'", rows[i].pattern, rows[i].fits ? "fits" : "does not fit",
           rows[i].path);
}

/* Counting the bytes of a save keeps nothing. */
static void
test_size(void)
{
    struct et_tensor t = {0};
    struct et_archive a;
    bool flag = true;
    begin(&a);
    a.counts = true;
    put_numbers(&a, "v", 0, 3);
    et_desc_init(&t.desc, ET_F16, 2, (int64_t[]){5, 7}, ET_ROW_MAJOR);
    need(cx, et_archive_tensor(&a, "t", &t));
    need(cx, et_archive_f64(&a, "d", (double[]){1, 2}, 2));
    need(cx, et_archive_flag(&a, "f", &flag));
    need(cx, et_archive_text(&a, "s", (char[]){"five."}, 6));
    is_int((int64_t)a.bytes, 3 * 8 + 5 * 7 * 2 + 2 * 8 + 8 + 5,
           "the size of a save is that of all its values");
    is_int(a.n, 0, "which are not kept");
    eti_archive_release(&a);
}

/* An item of DTYPE with the bits of a number that is BITS wide, AT of three. */
static bool
is_finite_with(enum et_dtype dtype, uint64_t bits, int at)
{
    uint8_t block[24] = {0};
    size_t width = et_dtype_size(dtype);
    struct eti_archive_item item = {.data = block};
    memcpy(block + (size_t)at * width, &bits, width);
    et_desc_init(&item.desc, dtype, 1, (int64_t[]){3}, ET_ROW_MAJOR);
    return eti_archive_item_is_finite(&item);
}

static void
test_finite(void)
{
    static const struct {
        enum et_dtype dtype;
        uint64_t largest, infinity, nan;
    } rows[] = {
        {ET_F32, 0x7f7fffff, 0xff800000, 0x7f800001},
        {ET_F64, 0x7fefffffffffffff, 0xfff0000000000000, 0x7ff0000000000001},
        {ET_F16, 0x7bff, 0xfc00, 0x7c01},
        {ET_BF16, 0x7f7f, 0xff80, 0x7f81},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int wrong = 0;
        for (int at = 0; at < 3; at++)
            wrong += !is_finite_with(rows[i].dtype, rows[i].largest, at) ||
                     is_finite_with(rows[i].dtype, rows[i].infinity, at) ||
                     is_finite_with(rows[i].dtype, rows[i].nan, at);
        is_int(wrong, 0, "the largest %s is finite, infinity and NaN are not, anywhere",
               et_dtype_name(rows[i].dtype));
    }
    ok(is_finite_with(ET_I64, UINT64_MAX, 1) && is_finite_with(ET_U8, 255, 2),
       "whole numbers always are");
}

/* Ranks are of one machine, and their number is that of the run. */
static void
test_label(void)
{
    const struct et_timestamp ts = {.epoch = 2};
    char buf[32];
    need(cx, eti_checkpoint_label(cx, "{rank} {world_size} {local_world_size}", "run",
                                  4, &ts, buf, sizeof buf));
    is_str(buf, "0 4 4", "a checkpoint's name says how many ranks there are");
}

/* The list of a folder in which one is damaged. */
static void
test_list(void)
{
    char *dir = strdup(path_to(scratch_folder(), "listed"));
    struct et_checkpoint_info *list;
    int n, damaged, unfinished;
    make_folder(dir);
    make_folder(path_to(dir, "step-000000000007"));
    make_folder(path_to(dir, ".tmp-000000000008-0123456789abcdef"));
    make_folder(path_to(dir, ".old-000000000009-0123456789abcdef"));
    make_folder(path_to(dir, ".del-000000000009-0123456789abcdef"));
    need(cx, et_checkpoint_list(cx, dir, &list, &n, &damaged, &unfinished));
    ok(n == 0 && damaged == 1 && unfinished == 1,
       "one without MANIFEST is damaged, what has no name yet is unfinished");
    ok(et_error_get(cx)->status == ET_OK, "which is no error of who lists them");
    et_free(cx, list);
    remove_tree(dir);
    free(dir);
}

static void
test_names(void)
{
    static const struct {
        const char *name;
        int64_t step;
    } rows[] = {
        {"step-000000000007", 7},
        {"step-999999999999", 999999999999},
        {"step-00000000007", -1},
        {"step-0000000000071", -1},
        {"step-000000000007x", -1},
        {"step-000000000007.safetensors", -1},
        {"step-00000000000x", -1},
        {"stop-000000000007", -1},
        {"latest", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(eti_step_parse(rows[i].name), rows[i].step, "'%s' %s", rows[i].name,
               rows[i].step < 0 ? "is no checkpoint's name" : "is one of that step");
}

static void
is_link(const char *path, const char *want, const char *what)
{
    char target[64] = "";
    ssize_t n = readlink(path, target, sizeof target - 1);
    is_str(n < 0 ? "no link" : target, want, "%s", what);
}

/* The link to the newest, where a process died within the last, and where something of
 * the user's has its name. */
static void
test_link(void)
{
    char *dir = strdup(path_to(scratch_folder(), "links")), *text;
    size_t n;
    make_folder(dir);
    if (symlink("step-000000000001", path_to(dir, ".link")) != 0)
        bail("no link");
    need(cx, eti_store_link(cx, dir, "newest", 7));
    is_link(path_to(dir, "newest"), "step-000000000007",
            "the link leads to the newest");
    need(cx, eti_store_link(cx, dir, "newest", 9));
    is_link(path_to(dir, "newest"), "step-000000000009", "then to the next");
    ok(et_error_get(cx)->status == ET_OK && count_names(dir, ".link") == 0,
       "what a process left that died is gone");
    write_whole(path_to(dir, "mine"), "text", 4);
    is_int(eti_store_link(cx, dir, "mine", 9), ET_EIO,
           "a file of its name is not replaced");
    et_error_clear(cx);
    text = read_whole(path_to(dir, "mine"), &n);
    ok(n == 4 && memcmp(text, "text", 4) == 0, "and is as it was");
    free(text);
    remove_tree(dir);
    free(dir);
}

static void
test_clean(void)
{
    static const char *const names[] = {".tmp-1", ".tmp-2", ".del-3", ".old-4",
                                        "step-000000000005"};
    char *dir = strdup(path_to(scratch_folder(), "left"));
    int n;
    make_folder(dir);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        make_folder(path_to(dir, names[i]));
    write_whole(path_to(dir, ".tmp-1/MANIFEST"), "text", 4);
    need(cx, eti_store_clean(cx, dir, &n));
    is_int(n, 3, "what died processes left is removed, and counted");
    ok(count_names(dir, ".tmp-") == 0 && count_names(dir, ".del-") == 0 &&
           count_names(dir, ".old-") == 1 && count_names(dir, "step-") == 1,
       "and nothing else");
    remove_tree(dir);
    need(cx, eti_store_clean(cx, dir, &n));
    ok(n == 0 && et_error_get(cx)->status == ET_OK, "no folder has nothing to clean");
    free(dir);
}

static ssize_t
cannot_read(int fd, void *bytes, size_t n, off_t at)
{
    (void)fd, (void)bytes, (void)n, (void)at;
    errno = EIO;
    return -1;
}

/* Saves STEP, with one number in it, and keeps KEEP. */
static void
save(const char *dir, int64_t step, int64_t keep, bool stays)
{
    struct eti_manifest m = {.step = step, .stays = stays, .algorithms = json_array()};
    struct et_archive a;
    int64_t bytes;
    begin(&a);
    put_numbers(&a, "v", step, 1);
    need(cx, eti_archive_end(&a));
    need(cx, eti_store_write(cx, dir, &a, &m, keep, &bytes));
    json_decref(m.algorithms);
    eti_archive_release(&a);
}

/* How many of old checkpoints a save keeps. */
static void
test_keep(void)
{
    static const int left[] = {4, 1, 1, 2, 3};
    struct eti_seams seams = eti_system;
    seams.file.read = cannot_read;
    for (int keep = -1; keep <= 3; keep++) {
        char *dir = strdup(path_to(scratch_folder(), "keep"));
        for (int64_t step = 1; step <= 4; step++)
            save(dir, step, keep, false);
        is_int(count_names(dir, "step-"), left[keep + 1], "keep %d: so many are left",
               keep);
        save(dir, 5, -1, true);
        save(dir, 6, 1, false);
        save(dir, 7, 1, false);
        ok(count_names(dir, "step-") == 2 &&
               access(path_to(dir, "step-000000000005"), F_OK) == 0,
           "but for one that stays");
        const struct eti_seams *before = eti_ctx_seams(cx);
        eti_ctx_set_seams(cx, &seams);
        save(dir, 8, 1, false);
        eti_ctx_set_seams(cx, before);
        is_int(count_names(dir, "step-"), 3, "one that cannot be read may be such");
        remove_tree(dir);
        free(dir);
    }
}

/* The link leads to what is whole. */
static void
test_failed(void)
{
    char *dir = strdup(path_to(scratch_folder(), "failed"));
    struct eti_manifest m = {.step = 4, .algorithms = json_array()};
    struct eti_writer *w;
    struct eti_written r;
    need(cx, eti_writer_new(cx, dir, 1, "newest", &w));
    static const char *const names[] = {"model/w", "model/w", "model/v"};
    for (int k = 0; k < 3; k++) {
        struct et_archive *a = eti_writer_archive(w);
        struct et_tensor *t;
        const float v = k ? INFINITY : 1;
        need(cx, et_tensor_new(cx, dev, ET_F32, 0, NULL, ET_ROW_MAJOR, NULL, &t));
        need(cx, et_tensor_write(cx, t, &v, sizeof v));
        m.step = 4 + k;
        eti_archive_begin(a, cx);
        need(cx, et_archive_tensor(a, names[k], t));
        need(cx, eti_archive_end(a));
        eti_writer_start(w, &m);
        if (!eti_writer_wait(w, &r))
            bail("a save has no result");
        is_int(r.status, k ? ET_EINVAL : ET_OK, "a save of %g", (double)v);
        ok((strstr(r.why.message, names[k]) != NULL) == (k > 0),
           "and its own reason: %s", r.why.message);
        is_link(path_to(dir, "newest"), "step-000000000004",
                "the link leads to the first");
        et_tensor_free(&t);
    }
    eti_writer_free(&w);
    json_decref(m.algorithms);
    remove_tree(dir);
    free(dir);
}

int
main(void)
{
    struct et_alloc_stats stats;
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 1, &dev));
    test_again();
    test_any_place();
    test_left_out();
    test_patterns();
    test_size();
    test_finite();
    test_label();
    test_list();
    test_names();
    test_link();
    test_clean();
    test_keep();
    test_failed();
    et_device_close(&dev);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
