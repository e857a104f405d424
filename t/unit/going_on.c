/* SPDX-License-Identifier: Apache-2.0 */
/* Going on with a run: what a path names, and what a directory still says of its run
 * when run.json or events.log were lost or damaged (RELIABILITY.md section 3). */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/assemble/resume.h"
#include "core/checkpoint/store.h"
#include "core/library/facts.h"
#include "core/library/run_impl.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct own_clock *the_clock;

static void
put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static const char *
text_of(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    return text;
}

/* A checkpoint without values. JOINED: an algorithm that had; NULL. */
static void
save(struct et_ctx *cx, const char *directory, int64_t step, const char *label,
     const char *joined)
{
    struct et_archive a = {0};
    struct eti_manifest m = {.step = step,
                             .epoch = step / 10,
                             .incarnation = 4,
                             .saved = 77,
                             .world_size = 1};
    int64_t bytes;
    snprintf(m.label, sizeof m.label, "%s", label);
    snprintf(m.run_name, sizeof m.run_name, "saved-name");
    snprintf(m.run_id, sizeof m.run_id, "0123456789abcdef0123456789abcdef");
    m.algorithms =
        joined ? json_pack("[{s:s, s:{}, s:b}]", "name", joined, "options", "joined", 1)
               : json_array();
    eti_archive_begin(&a, cx);
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    need(cx, eti_store_write(cx, directory, &a, &m, -1, &bytes));
    json_decref(m.algorithms);
    eti_archive_release(&a);
}

/* ---- what a path names ---- */

#define STEP10 "step-000000000010"
#define STEP20 "step-000000000020"
#define STEP30 "step-000000000030"

static void
test_find(struct et_ctx *cx)
{
    static char many[ETI_RUN_PATH + 8];
    static const struct {
        const char *text, *directory, *checkpoints, *name;
        const char *why; /* it is not found */
    } row[] = {
        {"plain", "plain", "plain/checkpoints", "", NULL},
        {"plain///", "plain", "plain/checkpoints", "", NULL},
        {"./plain", "./plain", "./plain/checkpoints", "", NULL},
        {"plain/early", "plain", "plain/checkpoints", STEP30, NULL},
        {"plain/late", "plain", "plain/checkpoints", STEP20, NULL},
        {"plain/late/", "plain", "plain/checkpoints", STEP20, NULL},
        {"plain/" STEP10, "plain", "plain/checkpoints", STEP10, NULL},
        {"plain/checkpoints/" STEP10, "plain", "plain/checkpoints", STEP10, NULL},
        {"plain/checkpoints/" STEP10 "/", "plain", "plain/checkpoints", STEP10, NULL},
        {"lost", "lost", "lost/checkpoints", "", NULL},
        {"lost/only", "lost", "lost/checkpoints", STEP10, NULL},
        {"alone/" STEP10, "", "alone", STEP10, NULL},
        {"plain/checkpoints/newest", "plain", "plain/checkpoints", STEP20, NULL},
        {"plain/checkpoints/newest/", "plain", "plain/checkpoints", STEP20, NULL},
        {"alone/newest", "", "alone", STEP10, NULL},
        {"alone/odd", "", "", "",
         "alone/odd is neither a run's directory nor a "
         "checkpoint"},
        {STEP20, "", ".", STEP20, NULL},
        {"plain/never", "", "", "", "plain has no checkpoint called 'never'"},
        {"plain/run.json", "", "", "", "plain has no checkpoint called 'run.json'"},
        {"alone", "", "", "", "alone is neither a run's directory nor a checkpoint"},
        {"nothing", "", "", "",
         "nothing is neither a run's directory nor a checkpoint"},
        {"alone/" STEP30, "", "", "",
         "alone/" STEP30 " is neither a run's directory nor a checkpoint"},
        {many, "", "", "", "a path of 3072 bytes is too long"},
    };
    memset(many, 'm', ETI_RUN_PATH);
    mkdir("plain", 0700);
    mkdir("lost", 0700);
    put_file("plain/run.json", "{}");
    save(cx, "plain/checkpoints", 10, "early", NULL);
    save(cx, "plain/checkpoints", 20, "late", NULL);
    save(cx, "plain/checkpoints", 30, "early", NULL);
    save(cx, "lost/checkpoints", 10, "only", NULL);
    save(cx, "alone", 10, "only", NULL);
    save(cx, ".", 20, "here", NULL);
    if (symlink(STEP20, "plain/checkpoints/newest") != 0 ||
        symlink(STEP10, "alone/newest") != 0 || symlink("early", "alone/odd") != 0)
        bail("no links");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_origin_run run;
        et_status status = eti_origin_find(cx, row[i].text, &run);
        if (row[i].why) {
            ok(status != ET_OK, "%.40s is not found", row[i].text);
            is_str(take_error(cx), row[i].why, "and why");
            continue;
        }
        need(cx, status);
        ok(strcmp(run.directory, row[i].directory) == 0 &&
               strcmp(run.checkpoints, row[i].checkpoints) == 0 &&
               strcmp(run.name, row[i].name) == 0,
           "%s is of '%s': '%s' of %s", row[i].text, run.directory, run.name,
           run.checkpoints);
    }
    put_file("file", "no weights");
    struct eti_origin_run run;
    ok(eti_origin_find(cx, "file", &run) != ET_OK && !strstr(take_error(cx), "neither"),
       "of a file is said what is wrong with it");
}

/* ---- a run that goes on ---- */

enum { NOTES = 5 };

static void
tell(struct et_run *run, enum et_record_kind kind, const char *text)
{
    struct et_sink *sink = et_run_sink(run);
    sink->write(sink,
                &(struct et_record){.kind = kind, .t = the_clock->now, .text = text});
}

/* A run that began at 1000 and ended at 1100, called first-name; its id in ID. */
static void
make_run(struct et_ctx *cx, const char *directory, bool saves, char id[64])
{
    struct et_run *run;
    char path[256];
    const struct et_run_config config = {
        .directory = directory, .name = "first-name", .threads = 1};
    the_clock->now = 1000;
    need(cx, et_run_open(cx, &config, &run));
    snprintf(id, 64, "%s", et_run_id(run));
    for (int i = 0; i < NOTES; i++)
        tell(run, ET_RECORD_ANNOTATION, "a note");
    et_run_flush(run);
    the_clock->now = 1100;
    need(cx, et_run_finish(run, "stopped", 75, NULL));
    et_run_close(&run);
    snprintf(path, sizeof path, "%s/checkpoints", directory);
    if (saves)
        save(cx, path, 10, "only", "mixup");
}

static int
count_notes(struct et_ctx *cx, const char *directory)
{
    char path[256];
    struct et_events *log;
    struct et_record r;
    bool got = true;
    int n = 0;
    snprintf(path, sizeof path, "%s/events.log", directory);
    need(cx, et_events_open(cx, path, &log));
    while (et_events_next(log, &r, &got) == ET_OK && got)
        n += r.kind == ET_RECORD_ANNOTATION;
    et_error_clear(cx);
    et_events_close(&log);
    return n;
}

/* What is done to a file of the run: NULL, "": removed; else it has that text. */
static void
damage(const char *directory, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (!text)
        return;
    if (strcmp(text, "removed") == 0)
        unlink(path);
    else if (strcmp(text, "cut") == 0) {
        struct stat st;
        if (stat(path, &st) != 0 || truncate(path, st.st_size - 3) != 0)
            bail("cannot cut %s", path);
    } else
        put_file(path, text);
}

static const struct lost {
    const char *what, *facts, *events; /* what is done to run.json and events.log */
    const char *name;                  /* the run is called; NULL: it cannot go on */
    int64_t incarnation;
    bool own_id, saved_id; /* it has; neither: another */
    int notes;             /* that its log has still */
    const char *kept;      /* a file that is there now; NULL: none */
    const char *said[2];   /* in its log */
} losses[] = {
    {"nothing is lost", NULL, NULL, "first-name", 2, true, false, NOTES, NULL, {NULL}},
    {"run.json is",
     "removed",
     NULL,
     "saved-name",
     5,
     true,
     false,
     NOTES,
     NULL,
     {"run.json is missing; a new one is made"}},
    {"run.json is empty",
     "",
     NULL,
     "saved-name",
     5,
     true,
     false,
     NOTES,
     "run.json.bad-1",
     {"run.json is empty: it is kept as run.json.bad-1; a new one is made"}},
    {"run.json is no JSON",
     "{\n\"name\":",
     NULL,
     "saved-name",
     5,
     true,
     false,
     NOTES,
     "run.json.bad-1",
     {"run.json is not JSON: line 2: it is kept as run.json.bad-1; a new one is made"}},
    {"run.json is something else",
     "[1]",
     NULL,
     "saved-name",
     5,
     true,
     false,
     NOTES,
     "run.json.bad-1",
     {"run.json is not a JSON object: it is kept as run.json.bad-1; a new one is "
      "made"}},
    {"run.json has no id",
     "{\"name\":\"n\"}",
     NULL,
     "saved-name",
     5,
     true,
     false,
     NOTES,
     "run.json.bad-1",
     {"it is kept as run.json.bad-1; a new one is made"}},
    {"run.json has a name that is none",
     "{\"name\":\"../n\",\"id\":\"00\"}",
     NULL,
     "saved-name",
     5,
     true,
     false,
     NOTES,
     "run.json.bad-1",
     {"run.json names no run: it is kept as run.json.bad-1; a new one is made"}},
    {"events.log is lost",
     NULL,
     "removed",
     "first-name",
     2,
     true,
     false,
     0,
     NULL,
     {"events.log is missing; a new one begins, without the charts so far"}},
    {"events.log is empty",
     NULL,
     "",
     "first-name",
     2,
     true,
     false,
     0,
     "events.log.bad-1",
     {"events.log is empty: it is kept as events.log.bad-1; a new one begins, "
      "without"}},
    {"events.log is something else",
     NULL,
     "a diary",
     "first-name",
     2,
     true,
     false,
     0,
     "events.log.bad-1",
     {": it is kept as events.log.bad-1; a new one begins, without"}},
    {"the last record of events.log is cut off",
     NULL,
     "cut",
     "first-name",
     2,
     true,
     false,
     NOTES,
     NULL,
     {"bytes that a crash cut off are gone"}},
    {"both are lost",
     "removed",
     "removed",
     "saved-name",
     5,
     false,
     true,
     0,
     NULL,
     {"run.json is missing; a new one is made",
      "events.log is missing; a new one begins"}},
};

static void
test_loss(struct et_ctx *cx, const struct lost *l)
{
    char directory[32], id[64], path[256];
    struct et_run *run;
    snprintf(directory, sizeof directory, "loss%d", (int)(l - losses));
    const struct et_run_config config = {.directory = directory, .resume = true};
    make_run(cx, directory, true, id);
    damage(directory, "run.json", l->facts);
    damage(directory, "events.log", l->events);
    the_clock->now = 1500;
    et_status status = et_run_open(cx, &config, &run);
    ok(status == ET_OK, "%s, and the run goes on", l->what) ||
        (diag("%s", take_error(cx)), 0);
    if (status != ET_OK)
        return;
    is_str(et_run_name(run), l->name, "under the name that is known of it");
    is_int(et_run_incarnation(run), l->incarnation, "its start is counted");
    bool own = strcmp(et_run_id(run), id) == 0;
    bool saved = strcmp(et_run_id(run), "0123456789abcdef0123456789abcdef") == 0;
    ok(own == l->own_id && saved == l->saved_id, "it is the run that it was");
    et_run_close(&run);
    is_int(count_notes(cx, directory), l->notes, "its log has what could be read");
    snprintf(path, sizeof path, "%s/logs/rank0.txt", directory);
    const char *log = text_of(path);
    for (int i = 0; i < 2 && l->said[i]; i++)
        ok(strstr(log, l->said[i]) != NULL, "its log says: %s", l->said[i]);
    ok(l->said[0] || !strstr(log, " warn "), "and says nothing where nothing was");
    snprintf(path, sizeof path, "%s/%s", directory,
             l->kept ? l->kept : "run.json.bad-1");
    is_int(access(path, F_OK) == 0, l->kept != NULL, "what is damaged is kept");
    snprintf(path, sizeof path, "%s/run.json", directory);
    json_t *facts = json_loads(text_of(path), 0, NULL);
    is_str(json_string_value(json_object_get(facts, "state")), "starting",
           "the run is starting");
    ok(json_is_null(json_object_get(facts, "exit_code")) &&
           json_is_null(json_object_get(facts, "ended")) &&
           json_integer_value(json_object_get(facts, "pid")) == getpid(),
       "it has not ended, and this process has it");
    is_near(json_number_value(json_object_get(facts, "started")),
            l->facts && l->events ? 77 : 1000, 1e-9, "it began when it did");
    const char *joined = json_string_value(json_object_get(facts, "joined"));
    is_str(joined ? joined : "", l->facts ? "mixup" : "",
           "of a checkpoint is known what had joined");
    json_decref(facts);
}

/* Without checkpoints there is nothing to go on with. */
static void
test_nothing(struct et_ctx *cx)
{
    char id[64];
    struct et_run *run;
    const struct et_run_config config = {.directory = "bare", .resume = true};
    make_run(cx, "bare", false, id);
    unlink("bare/run.json");
    is_int(et_run_open(cx, &config, &run), ET_ENOENT, "without both there is no run");
    is_str(take_error(cx), "bare holds no run", "which is said");
    is_int(access("bare/events.log", F_OK), 0, "and what is there is left as it is");
}

/* A new run is not begun where there is one, or what is left of one. */
static void
test_used(struct et_ctx *cx)
{
    struct et_run *run;
    const struct et_run_config alone = {.directory = "alone"},
                               told = {.directory = "told"};
    mkdir("alone", 0777);
    save(cx, "alone/checkpoints", 10, "only", NULL);
    is_int(et_run_open(cx, &alone, &run), ET_EINVAL, "checkpoints are of a run");
    is_str(take_error(cx),
           "alone holds a run (in an unknown state): use --resume, --autoresume or "
           "another directory",
           "which is said");
    mkdir("told", 0777);
    put_file("told/run.json", "{\"name\": \"otter\", \"state\": \"failed\"}");
    is_int(et_run_open(cx, &told, &run), ET_EINVAL, "so is run.json");
    is_str(take_error(cx),
           "told holds otter (failed): use --resume, --autoresume or another directory",
           "which is said, too");
}

static double
rested(const char *directory)
{
    char path[256];
    snprintf(path, sizeof path, "%s/run.json", directory);
    json_t *facts = json_loads(text_of(path), 0, NULL);
    double seconds = json_number_value(json_object_get(facts, "rested"));
    json_decref(facts);
    return seconds;
}

static void
test_again(struct et_ctx *cx)
{
    char id[64], path[64], name[32];
    struct et_run *run, *other;
    const struct et_run_config config = {.directory = "again", .resume = true};
    make_run(cx, "again", true, id);
    the_clock->now = 1160;
    need(cx, et_run_open(cx, &config, &run));
    is_near(rested("again"), 60, 1e-9, "the time since a run's end is not of the run");
    is_int(et_run_open(cx, &config, &other), ET_ECANCELED,
           "a run that goes on is not "
           "begun twice");
    ok(strncmp(take_error(cx), "first-name is active (pid ", 26) == 0,
       "as it is active");
    the_clock->now = 1200;
    need(cx, et_run_finish(run, "stopped", 75, NULL));
    et_run_close(&run);
    the_clock->now = 1240;
    need(cx, et_run_open(cx, &config, &run));
    is_near(rested("again"), 100, 1e-9, "nor is that since its next");
    is_int(et_run_incarnation(run), 3, "each start is counted");
    need(cx, et_run_finish(run, "stopped", 75, NULL));
    et_run_close(&run);
    the_clock->now = 1000; /* set back */
    need(cx, et_run_open(cx, &config, &run));
    is_near(rested("again"), 100, 1e-9, "a clock that was set back takes nothing off");
    et_run_close(&run);
    for (int i = 1; i <= 3; i++) {
        put_file("again/run.json", "damaged");
        need(cx, et_run_open(cx, &config, &run));
        et_run_close(&run);
        snprintf(name, sizeof name, "run.json.bad-%d", i);
        snprintf(path, sizeof path, "again/%s", name);
        is_str(text_of(path), "damaged", "what is damaged is kept each time: %s", name);
    }
}

/* Starts are counted from what run.json says, if that can be. */
static void
test_starts(struct et_ctx *cx)
{
    static const struct {
        const char *said;
        int64_t now;
    } row[] = {{"null", 2},
               {"-1", 2},
               {"0", 2},
               {"1", 2},
               {"8", 9},
               {"\"8\"", 2},
               {"2147483646", 2147483647},
               {"2147483647", 2}};
    char id[64], text[256];
    make_run(cx, "starts", true, id);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct et_run *run;
        const struct et_run_config config = {.directory = "starts", .resume = true};
        snprintf(text, sizeof text,
                 "{\"name\": \"otter\", \"id\": \"0123\", \"incarnation\": %s}",
                 row[i].said);
        put_file("starts/run.json", text);
        need(cx, et_run_open(cx, &config, &run));
        is_int(et_run_incarnation(run), row[i].now, "%s was the last start",
               row[i].said);
        et_run_close(&run);
    }
}

/* run.json in DIRECTORY, sorted; what is this process's own is "own". */
static char *
facts_of(const char *directory)
{
    char path[256];
    snprintf(path, sizeof path, "%s/run.json", directory);
    json_t *facts = json_loads(text_of(path), 0, NULL), *boot = eti_boot_id();
    const struct {
        const char *key;
        json_t *own;
    } rows[] = {
        {"pid", json_integer(getpid())},
        {"pid_started", json_integer(eti_process_started(getpid()))},
        {"boot_id", boot},
        {"version", json_string(PACKAGE_VERSION)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (json_equal(json_object_get(facts, rows[i].key), rows[i].own))
            json_object_set_new(facts, rows[i].key, json_string("own"));
        json_decref(rows[i].own);
    }
    char *text = json_dumps(facts, JSON_SORT_KEYS | JSON_REAL_PRECISION(9));
    json_decref(facts);
    return text;
}

/* All that run.json says of a new run, and of one that has ended. */
static void
test_new_facts(struct et_ctx *cx)
{
    static const char *const words[] = {"etude", "train", "\xff"};
    struct et_run *run;
    char id[64], want[512];
    const struct et_run_config config = {
        .directory = "new",
        .name = "calm-yak",
        .recipe_name = "net",
        .command = words,
        .n_command = 3,
        .threads = 5,
    };
    static const char form[] =
        "{\"boot_id\": \"own\", \"command\": [\"etude\", \"train\", \"?\"], "
        "\"ended\": %s, \"exit_code\": %s, \"id\": \"%s\", \"incarnation\": 1, "
        "\"name\": \"calm-yak\", \"pid\": \"own\", \"pid_started\": \"own\", "
        "%s\"recipe\": \"net\", \"started\": 2000.5, \"state\": \"%s\", \"threads\": "
        "5, "
        "\"version\": \"own\"}";
    the_clock->now = 2000.5;
    need(cx, et_run_open(cx, &config, &run));
    snprintf(id, sizeof id, "%s", et_run_id(run));
    snprintf(want, sizeof want, form, "null", "null", id, "", "starting");
    char *text = facts_of("new");
    is_str(text, want, "what is known of a new run");
    free(text);
    the_clock->now = 2100.5;
    et_run_blame(run, "no disk");
    need(cx, et_run_finish(run, "failed", 74, NULL));
    snprintf(want, sizeof want, form, "2100.5", "74", id, "\"reason\": \"no disk\", ",
             "failed");
    text = facts_of("new");
    is_str(text, want, "and of one that has ended");
    free(text);
    et_run_close(&run);
}

/* All that run.json says of a run that goes on: of what the process before it left only
 * what is the run's. */
static void
test_facts(struct et_ctx *cx)
{
    static const char *const words[] = {"etude", "train", "--resume"};
    char id[64];
    struct et_run *run;
    const struct et_run_config config = {
        .directory = "facts",
        .resume = true,
        .resolved = "seed: 7\n",
        .command = words,
        .n_command = 3,
        .threads = 5,
    };
    make_run(cx, "facts", true, id);
    put_file("facts/recipe.resolved.yaml", "seed: 6\n");
    put_file("facts/report.json", "{}");
    put_file("facts/run.json",
             "{\"name\": \"first-name\", \"id\": \"0123\", \"recipe\": \"net\", "
             "\"incarnation\": 6, \"state\": \"failed\", \"exit_code\": 75, "
             "\"started\": 900.5, \"ended\": 1100.0, \"rested\": 20, \"pid\": 1, "
             "\"pid_started\": 2, \"boot_id\": \"old\", \"version\": \"old\", "
             "\"command\": [\"old\"], \"threads\": 9, \"reason\": \"old\", "
             "\"joined\": \"ema\"}");
    the_clock->now = 1130;
    need(cx, et_run_open(cx, &config, &run));
    char *text = facts_of("facts");
    is_str(text,
           "{\"boot_id\": \"own\", \"command\": [\"etude\", \"train\", "
           "\"--resume\"], \"ended\": null, \"exit_code\": null, \"id\": \"0123\", "
           "\"incarnation\": 7, \"joined\": \"ema\", \"name\": \"first-name\", "
           "\"pid\": \"own\", \"pid_started\": \"own\", \"recipe\": \"net\", "
           "\"rested\": 50.0, \"started\": 900.5, \"state\": \"starting\", "
           "\"threads\": 5, \"version\": \"own\"}",
           "what is known of a run that goes on is the run's, or this process's");
    free(text);
    is_int(access("facts/report.json", F_OK), -1,
           "it has not ended: no report is left");
    is_str(text_of("facts/recipe.resolved.yaml"), "seed: 7\n", "it has its new recipe");
    struct stat log;
    ok(stat("facts/events.log", &log) == 0 && log.st_size > 100 &&
           run->thin.bytes == log.st_size && run->thin.begun == 1000,
       "what is left out of its log follows from all of that, and from its beginning");
    is_str(et_run_id(run), "0123", "its own id");
    is_int(et_run_incarnation(run), 7, "and its number");
    et_run_close(&run);
    ok(!strstr(text_of("facts/logs/rank0.txt"), " warn "),
       "nothing is said of a run of which nothing was lost");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    the_clock = own_clock(cx);
    if (chdir(scratch_folder()) != 0 ||
        setenv("XDG_STATE_HOME", scratch_folder(), 1) != 0)
        bail("no folder");
    test_find(cx);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        test_loss(cx, &losses[i]);
    test_nothing(cx);
    test_used(cx);
    test_again(cx);
    test_starts(cx);
    test_new_facts(cx);
    test_facts(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
