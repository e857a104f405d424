/* SPDX-License-Identifier: Apache-2.0 */
/* The index of runs: what is looked at and read is what has changed and what is asked
 * for, counted, however many runs there are. */
#include "config.h"

#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "core/library/ending.h"
#include "core/library/facts.h"
#include "core/library/facts_pack.h"
#include "core/library/index.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/unit/store.h"

enum { RUNS = 300, PAGE = ETI_INDEX_PAGE };

static const char DB[] = "state/runs.db";
static char notices[1000];

static void
take_notice(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    if (level >= ET_LOG_WARN)
        snprintf(notices, sizeof notices, "%s", text);
}

static struct eti_index *
open_index(struct et_ctx *cx)
{
    struct eti_index *x;
    need(cx, eti_index_open(cx, DB, &x));
    return x;
}

/* "n0299 .. n0236, 64": the first and last of LIST, which is freed, and how many. */
static const char *
ends(json_t *list)
{
    static char text[200];
    size_t n = json_array_size(list);
    const char *first = "", *last = "";
    if (n > 0) {
        first = json_string_value(json_object_get(json_array_get(list, 0), "name"));
        last = json_string_value(json_object_get(json_array_get(list, n - 1), "name"));
    }
    snprintf(text, sizeof text, "%s .. %s, %zu", first, last, n);
    json_decref(list);
    return text;
}

static const char *
listed(struct et_ctx *cx, struct eti_index *x, int64_t most)
{
    json_t *list;
    need(cx, eti_index_list(x, most, &list));
    return ends(list);
}

/* The name of the run that NAME means. */
static const char *
found(struct et_ctx *cx, struct eti_index *x, const char *name)
{
    static char text[64];
    json_t *facts;
    need(cx, eti_index_find(x, "runs", name, &facts));
    const char *is = json_string_value(json_object_get(facts, "name"));
    snprintf(text, sizeof text, "%s", is ? is : "none");
    json_decref(facts);
    return text;
}

/* Looks at all in a process of its own, so that what is kept is all that is known. */
static struct eti_index_work
update(struct et_ctx *cx, bool again)
{
    struct eti_index *x = open_index(cx);
    need(cx, eti_index_update(x, "runs", again));
    struct eti_index_work work = *eti_index_get_work(x);
    eti_index_close(&x);
    return work;
}

/* ---- tests ---- */

static void
test_first(struct et_ctx *cx)
{
    struct eti_index *x = open_index(cx);
    const struct eti_index_work *work = eti_index_get_work(x);
    bool more = true;
    need(cx, eti_index_look(x, "runs", false));
    is_int(work->read, PAGE, "without an index a page of %d runs is read", RUNS);
    is_int(eti_index_count(x), RUNS, "and all are counted");
    is_str(listed(cx, x, PAGE), "n0300 .. n0237, 64", "they are the newest");
    need(cx, eti_index_look_on(x, 16, &more));
    is_int(work->read, PAGE + 16, "16 more are read when 16 are asked for");
    ok(more, "and there are others");
    is_str(listed(cx, x, 0), "n0300 .. n0221, 80", "which come behind");
    eti_index_close(&x);

    x = open_index(cx);
    work = eti_index_get_work(x);
    for (need(cx, eti_index_look(x, "runs", false)); more;)
        need(cx, eti_index_look_on(x, 16, &more));
    is_int(work->read, RUNS - PAGE - 16, "who comes next reads those that are left");
    is_int(work->folders, 1, "in a folder that is read once");
    is_str(listed(cx, x, 0), "n0300 .. n0001, 300", "then all are there");
    ok(!eti_index_has_changed(x), "and stay as they are");
    eti_index_close(&x);
}

static void
test_start(struct et_ctx *cx)
{
    json_t *list;
    struct eti_index *x = open_index(cx);
    const struct eti_index_work *work = eti_index_get_work(x);
    need(cx, eti_index_look(x, "runs", false));
    is_str(listed(cx, x, PAGE), "n0300 .. n0237, 64",
           "a page of an index that is there");
    is_int(work->read + work->stamps + work->folders, 0,
           "takes no file and no folder that is read");
    is_int(work->looks, PAGE + 1, "a look at each directory and the folder");
    is_int(work->loaded, PAGE, "and the facts of a page");
    need(cx, eti_index_live(x, &list));
    is_int((int64_t)json_array_size(list), 0, "no run goes on");
    json_decref(list);
    is_int(work->loaded, PAGE, "which is known without loading any");
    eti_index_close(&x);

    x = open_index(cx);
    work = eti_index_get_work(x);
    is_str(found(cx, x, "last"), "n0300", "the last run");
    is_int(work->loaded, 1, "is all that is loaded to find it");
    is_str(found(cx, x, "n0007"), "n0007", "a run by its name");
    is_int(work->loaded, 2, "likewise");
    is_int(work->looks, 2 * (PAGE + 1) + 2, "after a look at a page, and at itself");
    is_str(found(cx, x, "nobody"), "none", "no run is found where none is");
    need(cx, eti_index_names(x, &list));
    is_str(ends(list), "n0300 .. n0001, 300", "the names of all");
    need(cx, eti_index_of_recipe(x, "odd", 5, &list));
    is_str(ends(list), "n0299 .. n0291, 5", "the newest of a recipe");
    is_int(work->loaded, 7, "only those are loaded");
    is_int(work->read, 0, "and none is read");
    eti_index_close(&x);

    struct eti_index_work all = update(cx, false);
    is_int(all.looks, RUNS + 1, "to look at all takes one look at each");
    is_int(all.read + all.stamps + all.folders, 0, "and reads nothing");
    is_int(update(cx, true).read, RUNS, "unless all are to be read again");
}

static void
test_changes(struct et_ctx *cx)
{
    json_t *list;
    store_run("n0005", 5, "failed");
    store_date("runs/n0005", RUNS + 1);
    struct eti_index *x = open_index(cx);
    need(cx, eti_index_look(x, "runs", false));
    is_int(eti_index_get_work(x)->read, 0,
           "a run far back that changes is not in a look");
    eti_index_close(&x);
    is_int(update(cx, false).read, 1, "looking at all reads it, and no other");

    store_run("new", RUNS + 1, "finished");
    store_date("runs", RUNS + 2);
    x = open_index(cx);
    const struct eti_index_work *work = eti_index_get_work(x);
    is_str(found(cx, x, "last"), "new", "a new run is found");
    is_int(work->read, 1, "reading it alone");
    is_int(work->folders, 1, "and the names in its folder");
    eti_index_close(&x);

    if (mkdir("runs/later", 0700) != 0)
        bail("no directory");
    store_date("runs/later", RUNS + 2);
    store_date("runs", RUNS + 3);
    is_int(update(cx, false).read, 0, "a directory without a run is none");
    struct eti_index_work others = update(cx, false);
    is_int(others.folders + others.stamps, 0, "which is remembered");
    store_run("later", RUNS + 3, "finished");
    is_int(update(cx, false).read, 1, "until it is one, in a folder that is as it was");

    if (rename("runs/new", "runs/.gone") != 0)
        bail("cannot rename");
    store_date("runs", RUNS + 4);
    x = open_index(cx);
    need(cx, eti_index_look(x, "runs", false));
    is_str(listed(cx, x, PAGE), "later .. n0238, 64", "one that is gone is not shown");
    if (rename("runs/.gone", "runs/new") != 0)
        bail("cannot rename");
    store_date("runs", RUNS + 5);
    need(cx, eti_index_look(x, "runs", false));
    is_str(listed(cx, x, PAGE), "later .. n0239, 64", "one that comes back is");
    eti_index_close(&x);
    store_remove("runs/new");
    store_date("runs", RUNS + 4);
    is_str((x = open_index(cx), found(cx, x, "new")), "none", "nor found by its name");
    eti_index_close(&x);

    store_run("live", 3, "running");
    store_date("runs", RUNS + 6);
    (void)update(cx, false);
    x = open_index(cx);
    work = eti_index_get_work(x);
    need(cx, eti_index_look(x, "runs", false));
    need(cx, eti_index_live(x, &list));
    is_str(ends(list), "live .. live, 1",
           "a run that goes on is found, far back as it is");
    is_int(work->loaded, 1, "and is all that is loaded");
    (void)listed(cx, x, 0);
    ok(eti_index_has_changed(x), "a list with it may differ at any time");
    store_run("live", 3, "finished");
    store_date("runs/live/run.json", RUNS + 6);
    need(cx, eti_index_look(x, "runs", false));
    need(cx, eti_index_live(x, &list));
    is_str(ends(list), " .. , 0", "until its files say that it has ended");
    eti_index_close(&x);
}

/* What PATH is named by is written again, and its time is as it was. */
static void
keep_date(const char *path, const struct stat *was)
{
    const struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, was->st_mtim};
    if (utimensat(AT_FDCWD, path, t, 0) != 0)
        bail("%s cannot be given a time", path);
}

/* Names that change where no time tells. */
static void
test_hidden_changes(struct et_ctx *cx)
{
    struct stat was;
    (void)update(cx, false);
    if (stat("runs", &was) != 0 || rename("runs/n0200", "runs/other") != 0)
        bail("cannot rename");
    keep_date("runs", &was);
    struct eti_index *x = open_index(cx);
    is_str(found(cx, x, "other"), "none", "a directory that was renamed is not known,");
    need(cx, eti_index_update(x, "runs", false));
    is_str(found(cx, x, "other"), "n0200",
           "until it is missed under its old name, whatever the folder's time is");
    eti_index_close(&x);
    if (rename("runs/other", "runs/n0200") != 0)
        bail("cannot rename");
    store_date("runs", RUNS + 7);
    (void)update(cx, false);

    if (mkdir("runs/soon", 0700) != 0)
        bail("no directory");
    store_date("runs/soon", 0);
    store_date("runs", RUNS + 8);
    if (stat("runs/soon", &was) != 0)
        bail("no directory");
    (void)update(cx, false);
    store_run("soon", 7, "finished");
    keep_date("runs/soon", &was);
    is_int(update(cx, false).read, 1,
           "a directory becomes a run within the moment in which it was made");
    store_remove("runs/soon");
    store_date("runs", RUNS + 7);
    (void)update(cx, false);
}

/* Recipes may hold private paths. */
static void
test_private(void)
{
    struct stat st;
    if (stat(DB, &st) != 0)
        bail("no index");
    is_int(st.st_mode & 0777, 0600, "nobody else may read the index");
}

/* Times that are not over: what may be written again with the same. They are of the
 * future, as those of a moment ago are over before a slow machine has looked. */
static void
test_recent(struct et_ctx *cx)
{
    store_date("runs/n0100", 0);
    (void)update(cx, false);
    is_int(update(cx, false).stamps, 1,
           "files whose time is not over are looked at again");
    store_date("runs/n0100", 100);
    (void)update(cx, false);
    is_int(update(cx, false).stamps, 0, "those written long ago are not");
    store_date("runs", 0);
    (void)update(cx, false);
    is_int(update(cx, false).folders, 1, "likewise a folder");
    store_date("runs", RUNS + 9);
    (void)update(cx, false);
    is_int(update(cx, false).folders, 0, "which then is not read any more");
}

/* Directories that are newer than what is in them: a copy of runs. */
static void
test_copied(struct et_ctx *cx)
{
    char path[64];
    for (int i = 1; i <= RUNS; i++) {
        snprintf(path, sizeof path, "runs/n%04d", i);
        store_date(path, 1000 + RUNS - i);
    }
    store_remove("state");
    struct eti_index *x = open_index(cx);
    is_str(found(cx, x, "last"), "later",
           "the last run is the last, whatever the times of directories are");
    eti_index_close(&x);
    for (int i = 1; i <= RUNS; i++) {
        snprintf(path, sizeof path, "runs/n%04d", i);
        store_date(path, i);
    }
    store_remove("state");
    x = open_index(cx);
    (void)found(cx, x, "last");
    is_int(eti_index_get_work(x)->read, PAGE,
           "where they are their own, a page says so");
    eti_index_close(&x);
}

static void
test_facts(void)
{
    static const char text[] = "{\"a\": [1, -1, 9223372036854775807, "
                               "-9223372036854775808, true, false, null], "
                               "\"b\": {\"real\": 0.1, \"least\": 5e-324, \"\": "
                               "\"\\u00e4\\u0000\"}, \"c\": []}";
    json_t *facts = json_loads(text, JSON_ALLOW_NUL, NULL), *back;
    char *bytes;
    size_t n, whole = 0;
    ok(eti_facts_pack(facts, &bytes, &n), "facts are packed");
    back = eti_facts_unpack(bytes, n);
    ok(json_equal(facts, back), "and are the same when they are unpacked");
    json_decref(back);
    for (size_t i = 0; i < n; i++) {
        back = eti_facts_unpack(bytes, i);
        whole += back != NULL;
        json_decref(back);
    }
    is_int((int64_t)whole, 0, "of less than all of their %zu bytes nothing is made", n);
    for (size_t i = 0; i < 8 * n;
         i++) { /* whatever this makes, it is made or refused */
        bytes[i / 8] ^= (char)(1 << i % 8);
        json_decref(eti_facts_unpack(bytes, n));
        bytes[i / 8] ^= (char)(1 << i % 8);
    }
    back = eti_facts_unpack(bytes, n);
    ok(json_equal(facts, back), "bits that are turned over do no harm");
    json_decref(back);
    json_decref(facts);
    free(bytes);
}

/* Writes over block AT of the index; false where it has none. */
static bool
lose_block(struct et_ctx *cx, int at)
{
    enum { STEP = 4096 }; /* that of SQLite's pages, and of disks */
    char junk[STEP];
    struct stat st;
    off_t from = (off_t)at * STEP;
    (void)update(cx, false);
    memset(junk, 0x55, sizeof junk);
    if (stat(DB, &st) != 0 || from + STEP > st.st_size)
        return false;
    FILE *f = fopen(DB, "r+b");
    if (!f || fseeko(f, from, SEEK_SET) != 0 || fwrite(junk, STEP, 1, f) != 1)
        bail("%s cannot be damaged", DB);
    fclose(f);
    notices[0] = '\0';
    return true;
}

/* Whichever block a disk has lost. */
static void
test_damage(struct et_ctx *cx)
{
    char whole[200];
    int wrong[2] = {0}, tried = 0;
    (void)update(cx, false);
    struct eti_index *x = open_index(cx);
    need(cx, eti_index_update(x, "runs", false));
    snprintf(whole, sizeof whole, "%s", listed(cx, x, 0));
    eti_index_close(&x);
    for (; lose_block(cx, tried); tried++) {
        x = open_index(cx);
        bool fine = eti_index_update(x, "runs", false) == ET_OK &&
                    strcmp(listed(cx, x, 0), whole) == 0;
        eti_index_close(&x);
        x = open_index(cx);
        json_t *names = NULL;
        bool are_named = eti_index_update(x, "runs", false) == ET_OK &&
                         lose_block(cx, tried) && eti_index_names(x, &names) == ET_OK &&
                         strcmp(ends(names), whole) == 0;
        eti_index_close(&x);
        if (!fine || !are_named)
            diag("block %d: %s", tried, et_error_get(cx)->message);
        et_error_clear(cx);
        wrong[0] += !fine;
        wrong[1] += !are_named;
    }
    is_int(wrong[0], 0, "whichever of its %d blocks is damaged, the list is as it was",
           tried);
    is_int(wrong[1], 0,
           "the names are all there though a block is lost after the update");
}

/* A run of the odd recipe whose evaluation came to VALUE. */
static void
store_result(struct et_ctx *cx, const char *name, int number, double value)
{
    static const unsigned char id[ETI_EVENTS_ID] = "0123456789abcde";
    char directory[64];
    struct eti_events_writer w;
    struct et_log_entry entry = {.name = "metrics/eval/Accuracy", .value = value};
    const struct et_record r = {
        .kind = ET_RECORD_EVAL, .ba = 1, .entry = &entry, .n = 1};
    store_run(name, number, "finished");
    snprintf(directory, sizeof directory, "runs/%s", name);
    need(cx, eti_events_begin(cx, directory, id, &w));
    eti_events_write(&w, &r);
    eti_events_end(&w);
}

/* The end of a run, beside the best one before, with the largest numbers there are. */
static void
test_ending(struct et_ctx *cx)
{
    char here[PATH_MAX], state[PATH_MAX + 16];
    const char *seed = "";
    json_t *facts, *way;
    size_t i;
    if (!getcwd(here, sizeof here))
        bail("no path");
    snprintf(state, sizeof state, "%s/ending", here);
    setenv("XDG_STATE_HOME", state, 1);
    store_result(cx, "least", 901, -1e308);
    store_result(cx, "most", 903, 1e308);
    need(cx, eti_facts_read(cx, "runs/most", &facts));
    json_object_set_new(facts, "config",
                        json_pack("{s:I}", "seed", (json_int_t)INT64_MAX));
    json_t *ending = eti_ending(cx, facts);
    const json_t *earlier = json_object_get(ending, "earlier");
    is_str(json_string_value(json_object_get(earlier, "name")), "least",
           "a run is compared with the best before it");
    ok(json_number_value(json_object_get(earlier, "difference")) == DBL_MAX,
       "however far apart they are");
    json_array_foreach(json_object_get(ending, "ways"), i, way)
    {
        const json_t *command = json_object_get(way, "command");
        if (strcmp(json_string_value(json_object_get(way, "key")), "R") == 0)
            seed = json_string_value(json_array_get(command, 2));
    }
    is_str(seed ? seed : "", "seed=0", "behind the last seed comes the first");
    json_decref(ending);
    json_decref(facts);
    store_remove("ending");
}

int
main(void)
{
    char directory[] = "index-XXXXXX";
    struct et_alloc_stats stats;
    struct et_ctx *cx = need_ctx();
    et_ctx_set_log(cx, ET_LOG_DEBUG, take_notice, NULL);
    if (!mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    store_runs(1, RUNS + 1);
    test_first(cx);
    test_start(cx);
    test_private();
    test_changes(cx);
    test_hidden_changes(cx);
    test_recent(cx);
    test_copied(cx);
    test_facts();
    test_damage(cx);
    test_ending(cx);
    if (chdir("..") != 0)
        bail("cannot leave");
    store_remove(directory);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
