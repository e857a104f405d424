/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of runs: what is known of one is true, and the index is no more than a
 * cache. */
#include "config.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "core/library/filter.h"
#include "core/library/index.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static char notices[4096];
static int n_notices;

static void
take_notice(void *data, enum et_log_level level, const char *text)
{
    size_t n = strlen(notices);
    (void)data;
    if (level < ET_LOG_WARN)
        return;
    snprintf(notices + n, sizeof notices - n, "%s%s", n ? "; " : "", text);
    n_notices++;
}

static void
remove_tree(const char *directory)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command) != 0)
        bail("cannot remove %s", directory);
}

/* A run in runs/NAME of learning rate LR that has reached ACCURACY and "running". */
static struct et_run *
make_run(struct et_ctx *cx, const char *name, double lr, double accuracy)
{
    char directory[256], resolved[256];
    const char *const command[] = {"etude", "train", "nets/other.yaml", "a.b=c"};
    struct et_run *r;
    snprintf(directory, sizeof directory, "runs/%s", name);
    snprintf(resolved, sizeof resolved,
             "max_duration: 2ep\nmodel: {name: mlp}\noptimizer: {name: sgd, lr: %g}\n"
             "algorithms: {mixup: {alpha: 0.2}, channels_last: {}}\n",
             lr);
    const struct et_run_config config = {
        .directory = directory,
        .name = name,
        .recipe_name = "net",
        .resolved = resolved,
        .command = command,
        .n_command = 4,
    };
    need(cx, et_run_open(cx, &config, &r));
    for (int ba = 1; ba <= 3; ba++) {
        struct et_log_entry entry[] = {
            {"loss/train/total", 3.0 - ba}, {"time/batch", ba}, {"l2_norm/x", 1}};
        const struct et_record record = {
            .kind = ET_RECORD_BATCH, .t = 1e9 + ba, .ba = ba, .entry = entry, .n = 3};
        et_run_sink(r)->write(et_run_sink(r), &record);
    }
    struct et_log_entry entry = {"metrics/eval/Accuracy", accuracy};
    const struct et_record record = {
        .kind = ET_RECORD_EVAL, .t = 1e9 + 4, .ba = 3, .entry = &entry, .n = 1};
    et_run_sink(r)->write(et_run_sink(r), &record);
    need(cx, et_run_set_state(r, "running"));
    return r;
}

static void
end_run(struct et_ctx *cx, struct et_run **r, const char *state)
{
    need(cx, et_run_finish(*r, state, 0, NULL));
    et_run_close(r);
}

static const char *
fact(const json_t *facts, const char *key)
{
    static char buf[ETI_FACT_TEXT];
    const char *text = eti_facts_get(facts, key, buf);
    return text ? text : "(none)";
}

static void
test_facts(struct et_ctx *cx)
{
    struct et_run *r = make_run(cx, "brisk-otter", 0.5, 0.75);
    json_t *facts;
    need(cx, eti_facts_read(cx, "runs/brisk-otter", &facts));
    eti_facts_make_true(facts);
    is_str(fact(facts, "state"), "running", "a run whose process lives is running");
    is_str(fact(facts, "name"), "brisk-otter", "its name is known");
    is_str(fact(facts, "recipe"), "net", "and its recipe's");
    is_str(fact(facts, "optimizer.lr"), "0.5", "a key of the recipe");
    is_str(fact(facts, "model"), "mlp", "a part of it by its name");
    is_str(fact(facts, "algorithms.channels_last"), "", "an algorithm without options");
    is_str(fact(facts, "algorithms.mixup"), "", "and one with");
    is_str(fact(facts, "accuracy"), "0.75", "a metric by its last part");
    is_str(fact(facts, "loss/train/total"), "0", "the least loss is the best");
    is_str(fact(facts, "ba"), "3", "how far it is, from its log");
    is_str(fact(facts, "l2_norm/x"), "(none)", "norms of layers are left out");
    json_object_set_new(facts, "pid", json_integer(0x7ffffff0));
    eti_facts_make_true(facts);
    is_str(fact(facts, "state"), "crashed", "without its process it has crashed");
    json_object_set_new(facts, "state", json_string("running"));
    json_object_set_new(facts, "pid", json_integer(getpid()));
    json_object_set_new(facts, "boot_id", json_string("another"));
    ok(!eti_facts_is_alive(facts), "since the machine began anew it is not alive");
    json_decref(facts);
    need(cx, eti_facts_read(cx, "runs/brisk-otter", &facts));
    json_object_set_new(facts, "pid_started", json_integer(1000));
    ok(!eti_facts_is_alive(facts),
       "a process that began at another time has only its number");
    int go[2];
    siginfo_t how;
    ok(pipe(go) == 0, "(a pipe)");
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(go[1]);
        _exit(read(go[0], &byte, 1) != 0);
    }
    json_object_set_new(facts, "pid", json_integer(child));
    json_object_set_new(facts, "pid_started", json_integer(eti_process_started(child)));
    ok(eti_facts_is_alive(facts), "one that began when the run did is the run's");
    close(go[0]);
    close(go[1]);
    ok(waitid(P_PID, (id_t)child, &how, WEXITED | WNOWAIT) == 0 &&
           !eti_facts_is_alive(facts),
       "but not when it has ended, also before anybody has asked how");
    (void)waitpid(child, NULL, 0);
    json_decref(facts);
    need(cx, eti_facts_read(cx, "runs/brisk-otter", &facts));
    json_object_set_new(facts, "pid_started", json_integer(1000)); /* it is gone */
    end_run(cx, &r, "finished");
    eti_facts_make_true(facts);
    is_str(fact(facts, "state"), "finished",
           "one that ended between two looks has not crashed");
    is_str(fact(facts, "exit_code"), "0", "and has its exit code");
    json_decref(facts);
    need(cx, eti_facts_read(cx, "runs/brisk-otter", &facts));
    eti_facts_make_true(facts);
    is_str(fact(facts, "state"), "finished", "the end of a run is its end");
    json_decref(facts);
    is_int(eti_facts_read(cx, "runs", &facts), ET_ENOENT, "a folder is no run");
    et_error_clear(cx);
}

/* A run.json of 17 MiB: an object, and blanks. */
static void
test_large(struct et_ctx *cx)
{
    json_t *facts;
    FILE *f;
    if (mkdir("runs/vast-otter", 0700) != 0 ||
        !(f = fopen("runs/vast-otter/run.json", "w")))
        bail("no folder");
    fprintf(f, "{\"name\": \"vast-otter\"}%*s\n", 17 << 20, "");
    fclose(f);
    need(cx, eti_facts_read(cx, "runs/vast-otter", &facts));
    is_str(fact(facts, "state"), "unreadable", "a run.json without end is not read");
    is_str(fact(facts, "problem"),
           "run.json has 17825815 bytes: more than 16777216 are not read",
           "which is said");
    json_decref(facts);
    remove_tree("runs/vast-otter");
}

/* Names of the list, joined. */
static const char *
names(struct eti_index *x)
{
    static char text[512];
    json_t *list, *facts;
    size_t i;
    text[0] = '\0';
    if (eti_index_list(x, 0, &list) != ET_OK)
        return "(failed)";
    json_array_foreach(list, i, facts)
    {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s:%s", n ? " " : "",
                 fact(facts, "name"),
                 json_string_value(json_object_get(facts, "state")));
    }
    json_decref(list);
    return text;
}

static struct eti_index *
open_index(struct et_ctx *cx)
{
    struct eti_index *x;
    need(cx, eti_index_open(cx, "state/etude/runs.db", &x));
    return x;
}

static void
write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static void
test_index(struct et_ctx *cx)
{
    static const char both[] = "calm-heron:stopped brisk-otter:finished";
    struct et_run *r = make_run(cx, "calm-heron", 0.1, 0.8);
    struct eti_index *x = open_index(cx);
    need(cx, eti_index_update(x, "runs", false));
    is_str(names(x), "calm-heron:running brisk-otter:finished",
           "runs of a folder are listed, the newest first");
    end_run(cx, &r, "stopped");
    need(cx, eti_index_update(x, "elsewhere", false));
    is_str(names(x), both, "what changes is read again, from wherever one looks");
    eti_index_close(&x);
    x = open_index(cx);
    is_str(names(x), both, "the next process finds them");

    write_text("runs/calm-heron/report.json", "{\"ba\": 7}");
    struct eti_index *other = open_index(cx);
    need(cx, eti_index_update(other, "runs", false));
    need(cx, eti_index_update(x, "runs", true));
    is_str(names(x), both, "two may write it");
    eti_index_close(&other);
    eti_index_close(&x);

    remove_tree("state");
    x = open_index(cx);
    need(cx, eti_index_update(x, "runs", false));
    is_str(names(x), both, "deleting it loses nothing");
    eti_index_close(&x);
    is_str(notices, "", "all that without a word");

    write_text("state/etude/runs.db", "this is no database, but a text of some length");
    x = open_index(cx);
    need(cx, eti_index_update(x, "runs", false));
    is_str(names(x), both, "a damaged one is made anew");
    eti_index_close(&x);
    ok(n_notices == 1 && strstr(notices, "damaged"), "and one line says so: %s",
       notices);
    FILE *f = fopen("state/etude/runs.db", "r+b");
    for (int at = 4096; at < 8192; at++) {
        fseek(f, at, SEEK_SET);
        fputc(at * 7, f);
    }
    fclose(f);
    x = open_index(cx);
    need(cx, eti_index_update(x, "runs", false));
    is_str(names(x), both, "also one with damaged pages");
    eti_index_close(&x);

    remove_tree("state");
    write_text("state", "in the way");
    x = open_index(cx);
    need(cx, eti_index_update(x, "runs", false));
    is_str(names(x), both, "where it cannot be kept there is a list all the same");
    ok(eti_index_problem(x) != NULL, "with the reason: %s", eti_index_problem(x));
    eti_index_close(&x);
    remove("state");

    write_text("runs/brisk-otter/run.json", "{\"name\": \"brisk-otter\", ");
    x = open_index(cx);
    need(cx, eti_index_update(x, "runs", false));
    json_t *list;
    need(cx, eti_index_list(x, 0, &list));
    int problems = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        problems += json_object_get(json_array_get(list, i), "problem") != NULL;
    ok(json_array_size(list) == 2 && problems == 1,
       "a run that cannot be read keeps its row, with the reason");
    json_decref(list);
    remove_tree("runs/brisk-otter");
    need(cx, eti_index_update(x, "runs", false));
    is_str(names(x), "calm-heron:stopped", "a run that is gone is forgotten");
    eti_index_close(&x);
}

static void
test_processes(struct et_ctx *cx)
{
    enum { PROCESSES = 4, TIMES = 25 };
    int bad = 0, status;
    remove_tree("state");
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            int failed = 0;
            for (int k = 0; k < TIMES; k++) {
                struct eti_index *x;
                failed |= eti_index_open(cx, "state/etude/runs.db", &x) != ET_OK ||
                          eti_index_update(x, "runs", k % 2) != ET_OK;
                eti_index_close(&x);
            }
            _exit(failed);
        }
    while (wait(&status) > 0)
        bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    is_int(bad, 0, "%d processes at once, from no index on, do not fail", PROCESSES);
    struct eti_index *x = open_index(cx);
    is_str(names(x), "calm-heron:stopped", "and leave one");
    eti_index_close(&x);
}

static void
tell(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        bail("%s: %s", sql, sqlite3_errmsg(db));
}

static sqlite3 *
open_other(void)
{
    sqlite3 *db;
    if (sqlite3_open("state/etude/runs.db", &db) != SQLITE_OK)
        bail("%s", sqlite3_errmsg(db));
    return db;
}

static void
test_held(struct et_ctx *cx)
{
    struct eti_index *x = open_index(cx);
    sqlite3 *other = open_other();
    tell(other, "BEGIN EXCLUSIVE");
    is_int(eti_index_update(x, "runs", true), ET_OK,
           "an index that another process does not let go");
    is_str(names(x), "calm-heron:stopped", "is no reason not to list runs");
    const char *problem = eti_index_problem(x);
    ok(problem && strstr(problem, "locked"), "which is said: %s", problem);
    eti_index_close(&x);
    tell(other, "COMMIT");
    sqlite3_close(other);
}

/* Another process that makes the index, as soon as this one is about to. */
static char make[64];

static int
make_first(unsigned kind, void *data, void *statement, void *sql)
{
    (void)kind;
    (void)data;
    (void)statement;
    if (make[0] && strncmp(sql, "BEGIN IMMEDIATE", 15) == 0) {
        char once[sizeof make];
        memcpy(once, make, sizeof once);
        make[0] = '\0'; /* the other's own statements come here as well */
        sqlite3 *other = open_other();
        tell(other, once);
        sqlite3_close(other);
    }
    return 0;
}

static int
watch(sqlite3 *db, char **why, const struct sqlite3_api_routines *api)
{
    (void)why;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, make_first, NULL);
}

static void
test_made(struct et_ctx *cx)
{
    sqlite3 *other = open_other();
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(other, "PRAGMA user_version", -1, &s, NULL) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_ROW)
        bail("%s", sqlite3_errmsg(other));
    int version = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    tell(other, "PRAGMA user_version = 0");
    sqlite3_close(other);
    snprintf(make, sizeof make, "PRAGMA user_version = %d", version);
    sqlite3_auto_extension((void (*)(void))watch);
    struct eti_index *x = open_index(cx);
    sqlite3_reset_auto_extension();
    ok(version > 0 && make[0] == '\0', "an index of an old version is made anew");
    is_str(names(x), "calm-heron:stopped",
           "but not if another process has been quicker");
    eti_index_close(&x);
}

static bool
has_word(void *data, const char *word)
{
    (void)data;
    return strcasestr("Calm Heron", word) != NULL;
}

static const char *
value(void *data, const char *key)
{
    (void)data;
    if (strcmp(key, "lr") == 0)
        return "0.10";
    if (strcmp(key, "note") == 0)
        return "two words";
    return strcmp(key, "state") == 0 ? "finished" : NULL;
}

static void
test_filters(struct et_ctx *cx)
{
    static const struct {
        const char *text;
        bool fits;
    } cases[] = {
        {"", true},
        {"heron", true},
        {"HERON calm", true},
        {"heron otter", false},
        {"otter | heron", true},
        {"otter | heron otter", false},
        {"heron | otter fox", true},
        {"!otter", true},
        {"!heron", false},
        {"\"calm heron\"", true},
        {"\"calm  heron\"", false},
        {"lr=.1", true},
        {"lr=0.1", true},
        {"lr!=.1", false},
        {"lr<1", true},
        {"lr<0.1", false},
        {"lr<=1e-1", true},
        {"lr>.05", true},
        {"lr>=.2", false},
        {"state:^fin", true},
        {"state:FAIL|fin", false},
        {"state:\"fail|fin\"", true},
        {"state=finished", true},
        {"state!=finished", false},
        {"state!=failed", true},
        {"note=\"two words\"", true},
        {"note=\"two  words\"", false},
        {"note!=\"two words\"", false},
        {"note=two words", false},
        {"note:\"o w\"", true},
        {"has:lr", true},
        {"has:seed", false},
        {"!has:seed", true},
        {"seed=1", false},
        {"seed!=1", true},
        {"seed<1", false},
    };
    static const char *const wrong[] = {"|",   "a |", "| a",  "a | | b", "!",
                                        "lr=", "=3",  "lr:(", "\"open",  "has:"};
    const struct eti_subject s = {.has_word = has_word, .value = value};
    struct eti_filter *f;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        need(cx, eti_filter_new(cx, cases[i].text, &f));
        is_int(eti_filter_matches(f, &s), cases[i].fits, "'%s' %s", cases[i].text,
               cases[i].fits ? "fits" : "does not fit");
        eti_filter_free(&f);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_int(eti_filter_new(cx, wrong[i], &f), ET_EINVAL, "'%s' is no filter: %s",
               wrong[i], et_error_get(cx)->message);
        et_error_clear(cx);
    }
}

/* What the one key of a run has; NULL: it has none. */
static const char *own_value;

static const char *
value_of_one(void *data, const char *key)
{
    (void)data;
    return strcmp(key, "x") == 0 ? own_value : NULL;
}

/* Each operator, with a value on each side of what it is compared with, equal to it,
 * and neither. */
static void
test_operators(struct et_ctx *cx)
{
    static const struct {
        const char *value, *other;
        char order; /* value < = > other, ? neither, ! without a value */
    } pairs[] = {
        {"0.10", ".2", '<'}, {"0.10", "1e-1", '='}, {"0.10", ".05", '>'},
        {"-3", "2", '<'},    {"12", "9", '>'},      {"nan", "1", '?'},
        {"1", "nan", '?'},   {"fin", "gone", '<'},  {"fin", "fin", '='},
        {"fin", "far", '>'}, {"fin", "12", '>'},    {NULL, "1", '!'},
        {NULL, "fin", '!'},  {"0", "-0.0", '='},    {"inf", "1e308", '>'},
    };
    static const struct {
        const char *text, *fits; /* in these orders */
    } ops[] = {{"=", "="},   {"!=", "<>?!"}, {"<", "<"},
               {"<=", "<="}, {">", ">"},     {">=", ">="}};
    const struct eti_subject s = {.has_word = has_word, .value = value_of_one};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            char text[64];
            struct eti_filter *f;
            const bool fits = strchr(ops[k].fits, pairs[i].order);
            own_value = pairs[i].value;
            snprintf(text, sizeof text, "x%s%s", ops[k].text, pairs[i].other);
            need(cx, eti_filter_new(cx, text, &f));
            is_int(eti_filter_matches(f, &s), fits, "%s %s a run whose x is %s", text,
                   fits ? "finds" : "does not find", own_value ? own_value : "missing");
            eti_filter_free(&f);
        }
}

int
main(void)
{
    char directory[] = "runlist-XXXXXX";
    struct et_alloc_stats stats;
    struct et_ctx *cx = need_ctx();
    et_ctx_set_log(cx, ET_LOG_DEBUG, take_notice, NULL);
    if (!mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    test_filters(cx);
    test_operators(cx);
    test_facts(cx);
    test_large(cx);
    test_index(cx);
    test_processes(cx);
    test_held(cx);
    test_made(cx);
    if (chdir("..") != 0)
        bail("cannot leave");
    remove_tree(directory);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
