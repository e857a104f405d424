/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint holds, value by value: each field comes back as itself, and what is
 * read is refused from the first number, letter or byte on that cannot be. In memory,
 * but for what a save says of itself. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/checkpoint/archive.h"
#include "core/checkpoint/writer.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- archives ---- */

static void
begin(struct et_archive *a)
{
    *a = (struct et_archive){0};
    eti_archive_begin(a, cx);
}

/* What has been saved is read from now on. */
static void
turn(struct et_archive *a, enum et_archive_mode mode)
{
    need(cx, eti_archive_end(a));
    need(cx, eti_archive_sort(a));
    a->mode = mode;
    a->source = "memory";
}

static void
test_timestamp(void)
{
    /* Each number once: two that are exchanged would not be these. */
    const struct et_timestamp want = {
        .iteration = 1,
        .epoch = 2,
        .batch = 3,
        .sample = 4,
        .token = 5,
        .epoch_in_iteration = 6,
        .token_in_iteration = 7,
        .batch_in_epoch = 8,
        .sample_in_epoch = 9,
        .token_in_epoch = 10,
        .total_wct = 0.5,
        .iteration_wct = 1.5,
        .epoch_wct = 2.5,
        .batch_wct = 3.5,
    };
    struct et_timestamp ts = want, got = {0};
    struct et_archive a;
    int64_t again = 7;
    begin(&a);
    need(cx, et_archive_timestamp(&a, "ts", &ts));
    need(cx, et_archive_i64(&a, "after", &again, 1));
    turn(&a, ET_ARCHIVE_CHECK);
    need(cx, et_archive_timestamp(&a, "ts", &got));
    ok(got.epoch == 0 && got.batch_wct == 0, "checking a time changes nothing");
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, et_archive_timestamp(&a, "ts", &got));
    ok(memcmp(&got, &want, sizeof got) == 0, "each number of a time comes back");
    ok(et_archive_has(&a, "after"), "and what is saved next is beside it");
    eti_archive_release(&a);
}

/* Reads three counts of which number AT is VALUE, from 10 to 20. */
static et_status
read_count(enum et_archive_mode mode, int at, int64_t value, int64_t *out)
{
    struct et_archive a;
    int64_t v[] = {10, 15, 20};
    v[at] = value;
    begin(&a);
    need(cx, et_archive_i64(&a, "v", v, 3));
    turn(&a, mode);
    et_status status = et_archive_counts(&a, "v", out, 3, 10, 20);
    eti_archive_release(&a);
    et_error_clear(cx);
    return status;
}

static void
test_counts(void)
{
    static const enum et_archive_mode modes[] = {ET_ARCHIVE_CHECK, ET_ARCHIVE_LOAD};
    for (int k = 0; k < 2; k++)
        for (int at = 0; at < 3; at++) {
            int64_t v[3] = {0};
            bool fits = read_count(modes[k], at, 10, v) == ET_OK &&
                        read_count(modes[k], at, 20, v) == ET_OK;
            ok(fits && v[at] == (k ? 20 : 0) &&
                   read_count(modes[k], at, 9, v) == ET_EFORMAT &&
                   read_count(modes[k], at, 21, v) == ET_EFORMAT,
               "number %d of three is from 10 to 20, %s", at,
               k ? "and read" : "which is seen before");
        }
}

/* Status of reading a time of UNIT. */
static et_status
read_unit(double unit)
{
    struct et_archive a;
    struct et_time time = {1, ET_TIME_BATCH};
    begin(&a);
    need(cx, et_archive_f64(&a, "t", (double[]){2.5, unit}, 2));
    turn(&a, ET_ARCHIVE_LOAD);
    et_status status = et_archive_time(&a, "t", &time);
    if (status == ET_OK && (time.value != 2.5 || (double)time.unit != unit))
        status = ET_EINTERNAL;
    eti_archive_release(&a);
    et_error_clear(cx);
    return status;
}

/* Status of reading a timestamp whose clock AT is SECONDS. */
static et_status
read_clock(int at, double seconds)
{
    struct et_archive a;
    struct et_timestamp ts = {0};
    double clocks[4] = {1, 1, 1, 1};
    clocks[at] = seconds;
    begin(&a);
    need(cx, et_archive_i64(&a, "ts/counts", (int64_t[10]){0}, 10));
    need(cx, et_archive_f64(&a, "ts/clocks", clocks, 4));
    turn(&a, ET_ARCHIVE_CHECK);
    et_status status = et_archive_timestamp(&a, "ts", &ts);
    eti_archive_release(&a);
    et_error_clear(cx);
    return status;
}

static void
test_times(void)
{
    int read = 0;
    for (int unit = 0; unit <= ET_TIME_UNIT_COUNT; unit++)
        read += read_unit(unit) == ET_OK;
    is_int(read, ET_TIME_UNIT_COUNT + 1, "a time is read in each unit, and unset");
    ok(read_unit(ET_TIME_UNIT_COUNT + 1) == ET_EFORMAT && read_unit(-1) == ET_EFORMAT &&
           read_unit(NAN) == ET_EFORMAT,
       "and in none beyond them");
    for (int at = 0; at < 4; at++)
        ok(read_clock(at, 0) == ET_OK && read_clock(at, -1e-9) == ET_EFORMAT &&
               read_clock(at, (double)ET_COUNT_MAX) == ET_EFORMAT &&
               read_clock(at, NAN) == ET_EFORMAT,
           "clock %d is 0 or more, and no endless time", at);
}

static void
test_texts(void)
{
    struct et_archive a;
    char room[6] = "", fits[6] = "five.", more[7] = "sixth.";
    void *list = NULL;
    int64_t n = 0;
    begin(&a);
    need(cx, et_archive_text(&a, "fits", fits, sizeof fits));
    need(cx, et_archive_text(&a, "more", more, sizeof more));
    turn(&a, ET_ARCHIVE_LOAD);
    need(cx, et_archive_text(&a, "fits", room, sizeof room));
    is_str(room, "five.", "text that fills its room comes back whole");
    is_int(et_archive_text(&a, "more", room, sizeof room), ET_EFORMAT,
           "one letter more does not");
    for (size_t width = 1; width <= 6; width++) {
        bool whole = 6 % width == 0;
        et_status status = et_archive_list(&a, "more", &list, &n, width);
        ok(status == (whole ? ET_OK : ET_EFORMAT) &&
               (!whole || n == (int64_t)(6 / width)),
           "six bytes are %s items of %zu", whole ? "as many" : "no whole number of",
           width);
    }
    et_error_clear(cx);
    et_free(cx, list);
    eti_archive_release(&a);
}

/* Places within places, and names as long as they may be. */
static void
test_places(void)
{
    char name[ETI_ARCHIVE_PATH + 1];
    struct et_archive a;
    int64_t v = 1;
    begin(&a);
    need(cx, et_archive_enter(&a, "one"));
    need(cx, et_archive_enter(&a, "two"));
    need(cx, et_archive_i64(&a, "deep", &v, 1));
    et_archive_leave(&a);
    need(cx, et_archive_i64(&a, "middle", &v, 1));
    et_archive_leave(&a);
    need(cx, et_archive_i64(&a, "top", &v, 1));
    memset(name, 'n', sizeof name);
    name[ETI_ARCHIVE_PATH - 1] = '\0';
    need(cx, et_archive_i64(&a, name, &v, 1));
    turn(&a, ET_ARCHIVE_LOAD);
    ok(et_archive_has(&a, "one/two/deep") && et_archive_has(&a, "one/middle") &&
           et_archive_has(&a, "top"),
       "who leaves a place is where he was before");
    ok(et_archive_has(&a, name) && et_archive_i64(&a, name, &v, 1) == ET_OK,
       "a name may fill its room");
    name[ETI_ARCHIVE_PATH - 1] = 'n';
    name[ETI_ARCHIVE_PATH] = '\0';
    is_int(et_archive_i64(&a, name, &v, 1), ET_EINTERNAL, "and be no longer");
    name[ETI_ARCHIVE_PATH - 1] = '\0';
    is_int(et_archive_enter(&a, name), ET_EINTERNAL, "a place is named with its slash");
    name[ETI_ARCHIVE_PATH - 2] = '\0';
    need(cx, et_archive_enter(&a, name));
    ok(!et_archive_has(&a, "x"), "in which it just fits");
    et_archive_leave(&a);
    static const struct {
        const char *place;
        bool there;
    } rows[] = {{"one", true}, {"on", false}, {"one/tw", false}, {"zero", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        need(cx, et_archive_enter(&a, rows[i].place));
        ok(eti_archive_has_place(&a) == rows[i].there, "%s below %s/",
           rows[i].there ? "something is" : "nothing is", rows[i].place);
        for (const char *c = rows[i].place; c; c = strchr(c + 1, '/'))
            et_archive_leave(&a);
    }
    et_error_clear(cx);
    eti_archive_release(&a);
}

static void
silent(void *data, enum et_log_level level, const char *text)
{
    (void)level, (void)text;
    ++*(int *)data;
}

/* A value that is another, or not there: parameters may stay as they are where that is
 * allowed, and nothing else may. */
static void
test_lenient(void)
{
    static const char *const names[] = {"model/w", "modest/w", "optimizer/w", "w"};
    int warnings = 0;
    et_ctx_set_log(cx, ET_LOG_WARN, silent, &warnings);
    for (int lenient = 0; lenient < 2; lenient++)
        for (int i = 0; i < 4; i++) {
            struct et_archive a;
            int64_t v = 1;
            double d = 5;
            bool excused = lenient && i == 0;
            begin(&a);
            need(cx, et_archive_i64(&a, names[i], &v, 1));
            turn(&a, ET_ARCHIVE_LOAD);
            a.lenient = lenient;
            ok(et_archive_f64(&a, names[i], &d, 1) == (excused ? ET_OK : ET_EFORMAT) &&
                   d == 5,
               "%s of another dtype %s", names[i], excused ? "stays" : "is refused");
            et_error_clear(cx);
            int before = warnings;
            a.mode = ET_ARCHIVE_CHECK;
            is_int(et_archive_f64(&a, names[i], &d, 1), excused ? ET_OK : ET_EFORMAT,
                   "as it is when checking");
            et_error_clear(cx);
            ok(before == 0 && warnings == (excused ? 1 : 0) &&
                   a.item[0].taken == excused,
               "which %s", excused ? "is said once, when checking" : "is no warning");
            warnings = 0;
            eti_archive_release(&a);
        }
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
}

/* ---- what saves say ---- */

static struct eti_written
save(struct eti_writer *w, int64_t step, json_t *algorithms)
{
    struct eti_manifest m = {
        .step = step, .epoch = 3, .weights_only = step % 2, .algorithms = algorithms};
    struct et_archive *a = eti_writer_archive(w);
    struct eti_written result;
    double odd[] = {NAN, -INFINITY, 5e-324};
    eti_archive_begin(a, cx);
    need(cx, et_archive_f64(a, "best", odd, 3));
    need(cx, eti_archive_end(a));
    eti_writer_start(w, &m);
    if (!eti_writer_wait(w, &result))
        bail("a save has no result");
    return result;
}

static int64_t
size_on_disk(const char *folder)
{
    static const char *const files[] = {"MANIFEST", "model-00000.safetensors",
                                        "state-00000.safetensors"};
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        struct stat st;
        if (stat(path_to(folder, files[i]), &st) != 0)
            bail("no %s in %s", files[i], folder);
        sum += st.st_size;
    }
    return sum;
}

static void
test_saves(void)
{
    json_t *none = json_array();
    char *dir = strdup(path_to(scratch_folder(), "saves"));
    struct et_checkpoint_info *list;
    struct eti_writer *w;
    int n, damaged, unfinished;
    need(cx, eti_writer_new(cx, dir, 1, NULL, &w));
    write_whole(dir, "", 0); /* no folder */
    struct eti_written r = save(w, 1, none);
    ok(r.status == ET_EIO && r.why.message[0] && r.bytes == 0,
       "where there is no folder a save fails, and says why");
    remove_tree(dir);
    r = save(w, 2, none);
    ok(r.status == ET_OK && r.step == 2 && !r.why.message[0] && !r.note[0],
       "the next one succeeds and has no reason left of that");
    is_int(r.bytes, size_on_disk(path_to(dir, "step-000000000002")),
           "its bytes are those on the disk");
    make_folder(path_to(dir, "step-000000000002/within"));
    r = save(w, 3, none);
    ok(r.status == ET_OK && strstr(r.note, "an old checkpoint stays"),
       "an old one that cannot be removed is noted, and no failure");
    need(cx, et_checkpoint_list(cx, dir, &list, &n, &damaged, &unfinished));
    ok(n >= 1 && list[0].step == 3 && list[0].epoch == 3 && list[0].weights_only,
       "the list has the epoch, and that it is weights alone");
    et_free(cx, list);
    r = save(w, 4, none);
    need(cx, et_checkpoint_list(cx, dir, &list, &n, &damaged, &unfinished));
    ok(r.status == ET_OK && n >= 1 && list[0].step == 4 && !list[0].weights_only,
       "or that it is whole");
    et_free(cx, list);
    struct eti_checkpoint c;
    double got[3] = {0};
    need(cx, eti_store_read(cx, dir, "step-000000000004", &c));
    c.archive.mode = ET_ARCHIVE_LOAD;
    need(cx, et_archive_f64(&c.archive, "best", got, 3));
    ok(isnan(got[0]) && got[1] == -INFINITY && got[2] == 5e-324,
       "a number, other than a weight, may be any");
    eti_checkpoint_release(&c);
    eti_writer_free(&w);
    remove_tree(dir);
    free(dir);
    json_decref(none);
}

/* As many values as the largest models have: their MANIFEST is a long text. */
static void
test_many(void)
{
    enum { MANY = 3000 };
    json_t *none = json_array();
    struct eti_manifest m = {.step = 5, .algorithms = none};
    struct et_archive a;
    struct eti_checkpoint c;
    char name[64], *dir = strdup(path_to(scratch_folder(), "many"));
    int64_t v, bytes, wrong = 0;
    begin(&a);
    for (v = 0; v < MANY; v++) {
        snprintf(name, sizeof name, "layer/%d/number/of/updates", (int)v);
        need(cx, et_archive_i64(&a, name, &v, 1));
    }
    need(cx, eti_archive_end(&a));
    need(cx, eti_store_write(cx, dir, &a, &m, -1, &bytes));
    need(cx, eti_store_read(cx, dir, "step-000000000005", &c));
    c.archive.mode = ET_ARCHIVE_LOAD;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "layer/%d/number/of/updates", i);
        wrong += et_archive_i64(&c.archive, name, &v, 1) != ET_OK || v != i;
    }
    is_int(wrong, 0, "of %d values each is read by its name", MANY);
    eti_checkpoint_release(&c);
    eti_archive_release(&a);
    remove_tree(dir);
    free(dir);
    json_decref(none);
}

int
main(void)
{
    struct et_alloc_stats stats;
    cx = need_ctx();
    test_timestamp();
    test_counts();
    test_times();
    test_texts();
    test_places();
    test_lenient();
    test_saves();
    test_many();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
