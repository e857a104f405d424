/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a run from its directory: each fact from the file that has it, also
 * where two have it; what a log says of its metrics and of its course; what makes a
 * list look again; and what is true of a run whose process is gone. */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "core/library/facts.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static const unsigned char id[ETI_EVENTS_ID] = "0123456789abcde";
static char directory[600];

/* A folder of its own for each test. */
static void
begin(const char *name)
{
    snprintf(directory, sizeof directory, "%s/%s", scratch_folder(), name);
    if (mkdir(directory, 0700) != 0)
        bail("no folder for a run");
}

static void
put_file(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static json_t *
read_facts(struct et_ctx *cx)
{
    json_t *facts;
    need(cx, eti_facts_read(cx, directory, &facts));
    return facts;
}

static void
has(const json_t *facts, const char *key, const char *wanted, const char *what)
{
    char *text = json_dumps(json_object_get(facts, key), JSON_ENCODE_ANY);
    is_str(text ? text : "nothing", wanted, "%s: %s", key, what);
    free(text);
}

/* ---- files ---- */

static void
test_files(struct et_ctx *cx)
{
    static const struct {
        const char *key, *run, *report, *fact;
    } row[] = {
        {"name", "\"brisk-otter\"", NULL, "\"brisk-otter\""},
        {"id", "\"00\"", NULL, "\"00\""},
        {"recipe", "\"net\"", NULL, "\"net\""},
        {"state", "\"failed\"", "\"other\"", "\"failed\""},
        {"exit_code", "3", "4", "3"},
        {"started", "1001.5", NULL, "1001.5"},
        {"ended", "1002.5", NULL, "1002.5"},
        {"pid", "17", NULL, "17"},
        {"pid_started", "18", NULL, "18"},
        {"boot_id", "\"b\"", NULL, "\"b\""},
        {"version", "\"9\"", NULL, "\"9\""},
        {"threads", "5", NULL, "5"},
        {"joined", "\"ema sam\"", NULL, "\"ema sam\""},
        {"rested", "7.5", NULL, "7.5"},
        {"reason", "\"of run\"", "null", "\"of run\""},
        {"ep", NULL, "11", "11"},
        {"ba", NULL, "12", "12"},
        {"sp", NULL, "13", "13"},
        {"train_seconds", NULL, "14.5", "14.5"},
        {"microbatches", NULL, "15", "15"},
        {"command", "[\"etude\"]", NULL, "nothing"},
        {"other", "1", "2", "nothing"},
    };
    char text[2][2048] = {"{", "{"};
    begin("files");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int k = 0; k < 2; k++) {
            const char *value = k ? row[i].report : row[i].run;
            size_t n = strlen(text[k]);
            if (value)
                snprintf(text[k] + n, sizeof text[k] - n, "%s\"%s\": %s",
                         n > 1 ? ", " : "", row[i].key, value);
        }
    for (int k = 0; k < 2; k++) {
        size_t n = strlen(text[k]);
        snprintf(text[k] + n, sizeof text[k] - n, "}");
        put_file(k ? "report.json" : "run.json", text[k]);
    }
    json_t *facts = read_facts(cx);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        has(facts, row[i].key, row[i].fact, "from the file that has it");
    has(facts, "problem", "nothing", "all could be read");
    has(facts, "algorithms", "[\"ema\", \"sam\"]", "those that joined");
    json_decref(facts);
    put_file("report.json", "{\"reason\": \"of report\"}");
    facts = read_facts(cx);
    has(facts, "reason", "\"of report\"", "that of the report where it has one");
    json_decref(facts);
}

static void
test_tags(struct et_ctx *cx)
{
    static const struct {
        const char *recipe, *file, *tags;
    } row[] = {
        {"tags: [a, bb, ccc]\n", NULL, "\"a bb ccc\""},
        {"tags: [a]\n", NULL, "\"a\""},
        {"tags: []\n", NULL, "nothing"},
        {"seed: 1\n", NULL, "nothing"},
        {"tags: [a, bb]\n", "mine", "\"mine\""},
        {"seed: 1\n", "two words", "\"two words\""},
        {"tags: [a]\n", "", "nothing"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char name[16];
        snprintf(name, sizeof name, "tags-%zu", i);
        begin(name);
        put_file("run.json", "{\"name\": \"brisk-otter\"}");
        put_file("recipe.resolved.yaml", row[i].recipe);
        if (row[i].file)
            put_file("tags", row[i].file);
        json_t *facts = read_facts(cx);
        has(facts, "tags", row[i].tags,
            row[i].file ? "those of its file" : "those of its recipe, with blanks");
        json_decref(facts);
    }
}

static void
test_algorithms(struct et_ctx *cx)
{
    begin("algorithms");
    put_file("run.json", "{\"name\": \"otter\", \"joined\": \"sam\"}");
    put_file("recipe.resolved.yaml", "algorithms:\n  ema: {half_life: 10ba}\n"
                                     "  mixup: false\n  channels_last:\n");
    json_t *facts = read_facts(cx);
    has(facts, "algorithms", "[\"ema\", \"channels_last\", \"sam\"]",
        "those that are off are no algorithms of the run");
    json_decref(facts);
}

/* ---- the log ---- */

static void
write_record(struct eti_events_writer *w, enum et_record_kind kind, int64_t ba,
             const char *name, double value)
{
    struct et_log_entry entry = {.value = value};
    snprintf(entry.name, sizeof entry.name, "%s", name);
    const struct et_record r = {.kind = kind,
                                .t = 1000 + (double)ba,
                                .ba = ba,
                                .text = kind == ET_RECORD_RUN ? "running" : NULL,
                                .entry = &entry,
                                .n = *name != '\0'};
    eti_events_write(w, &r);
}

/* The last is neither least nor greatest, and these are apart. */
static void
test_metrics(struct et_ctx *cx)
{
    static const double values[] = {3, 9, NAN, 1, 4};
    static const struct {
        const char *name;
        double best, best_ba;
    } row[] = {{"metrics/eval/Accuracy", 9, 20},
               {"metrics/eval/CrossEntropy", 1, 40},
               {"loss/train/total", 1, 40}};
    struct eti_events_writer w;
    begin("metrics");
    put_file("run.json", "{\"name\": \"brisk-otter\"}");
    need(cx, eti_events_begin(cx, directory, id, &w));
    for (int i = 0; i < 5; i++)
        for (size_t k = 0; k < sizeof row / sizeof *row; k++)
            write_record(&w, ET_RECORD_EVAL, 10 * (i + 1), row[k].name, values[i]);
    eti_events_end(&w);
    json_t *facts = read_facts(cx), *all = json_object_get(facts, "metrics");
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        json_t *m = json_object_get(all, row[k].name);
        const struct {
            const char *key;
            double value;
        } wanted[] = {{"n", 4},
                      {"last", 4},
                      {"ba", 50},
                      {"best", row[k].best},
                      {"best_ba", row[k].best_ba},
                      {"best_t", 1000 + row[k].best_ba},
                      {"min", 1},
                      {"max", 9}};
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            is_near(json_number_value(json_object_get(m, wanted[i].key)),
                    wanted[i].value, 0, "%s of %s", wanted[i].key, row[k].name);
    }
    json_decref(facts);
}

/* The first group has the greater last rate, the second had the greatest. */
static void
test_rates(struct et_ctx *cx)
{
    static const double values[][2] = {{1, 2}, {5, 9}, {4, 3}};
    struct eti_events_writer w;
    begin("rates");
    put_file("run.json", "{\"name\": \"brisk-otter\"}");
    need(cx, eti_events_begin(cx, directory, id, &w));
    write_record(&w, ET_RECORD_BATCH, 1, "metrics/train/Accuracy", 20);
    eti_events_flush(&w);
    json_t *facts = read_facts(cx);
    has(facts, "greatest_lr", "nothing", "no batch told of a rate");
    json_decref(facts);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++)
            write_record(&w, ET_RECORD_BATCH, i + 1,
                         k ? "lr-SGD/group1" : "lr-SGD/group0", values[i][k]);
    eti_events_end(&w);
    facts = read_facts(cx);
    has(facts, "greatest_lr", "9.0", "that of any group, at any time");
    json_decref(facts);
}

static void
test_course(struct et_ctx *cx)
{
    struct eti_events_writer w;
    begin("course");
    put_file("run.json", "{\"name\": \"brisk-otter\"}");
    need(cx, eti_events_begin(cx, directory, id, &w));
    write_record(&w, ET_RECORD_RUN, 0, "run/batches", 100);
    write_record(&w, ET_RECORD_RUN, 0, "run/epochs", 7);
    eti_events_flush(&w);
    json_t *facts = read_facts(cx);
    has(facts, "batches", "100", "how many the run is to have");
    has(facts, "resumes", "0", "it was not resumed");
    json_decref(facts);
    write_record(&w, ET_RECORD_RESUME, 50, "", 0);
    write_record(&w, ET_RECORD_RUN, 50, "run/batches", 300);
    write_record(&w, ET_RECORD_RESUME, 60, "", 0);
    write_record(&w, ET_RECORD_RUN, 60, "run/batches", 0);
    write_record(&w, ET_RECORD_BATCH, 61, "run/batches", 5);
    eti_events_end(&w);
    facts = read_facts(cx);
    has(facts, "batches", "300", "the last word counts");
    has(facts, "resumes", "2", "it was resumed twice");
    json_decref(facts);
}

/* While there is no report, counts say how far a run is. */
static void
test_progress(struct et_ctx *cx)
{
    static const struct {
        const char *name, *key, *last, *reported;
        double first, second;
    } row[] = {{"time/epoch", "ep", "2", "2", 1, 2},
               {"time/batch", "ba", "30", "77", 15, 30},
               {"time/sample", "sp", "480", "480", 240, 480}};
    struct eti_events_writer w;
    begin("progress");
    put_file("run.json", "{\"name\": \"brisk-otter\"}");
    need(cx, eti_events_begin(cx, directory, id, &w));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        write_record(&w, ET_RECORD_BATCH, 1, row[i].name, row[i].first);
        write_record(&w, ET_RECORD_BATCH, 2, row[i].name, row[i].second);
    }
    eti_events_end(&w);
    for (int k = 0; k < 2; k++) {
        json_t *facts = read_facts(cx);
        for (size_t i = 0; i < sizeof row / sizeof *row; i++)
            has(facts, row[i].key, k ? row[i].reported : row[i].last,
                k ? "what the report says, else the last count" : "the last count");
        json_decref(facts);
        put_file("report.json", "{\"ba\": 77}");
    }
}

/* The first of several problems is told, and the others do not hide it. */
static void
test_problems(struct et_ctx *cx)
{
    begin("problems");
    put_file("run.json", "[]");
    put_file("report.json", "3");
    put_file("recipe.resolved.yaml", "a: [");
    json_t *facts = read_facts(cx);
    has(facts, "state", "\"unreadable\"", "of a run whose file is no object");
    has(facts, "problem", "\"run.json is no object\"", "the first that was met");
    json_decref(facts);
    put_file("run.json", "{\"name\": \"otter\"}");
    facts = read_facts(cx);
    has(facts, "problem", "\"report.json cannot be read\"", "the next where that is");
    json_decref(facts);
    put_file("report.json", "{}");
    facts = read_facts(cx);
    has(facts, "problem", "\"recipe.resolved.yaml cannot be read\"", "and the last");
    has(facts, "config", "{}", "of what could not be read");
    has(facts, "algorithms", "[]", "likewise");
    json_decref(facts);
    put_file("recipe.resolved.yaml",
             "a: true\nb: 3\nc: 0.5\nd: .inf\ne: text\nf: null\n");
    facts = read_facts(cx);
    has(facts, "config",
        "{\"a\": true, \"b\": 3, \"c\": 0.5, \"d\": \".inf\", \"e\": \"text\", \"f\": "
        "null}",
        "each value of the recipe as it is");
    has(facts, "problem", "nothing", "there is none");
    json_decref(facts);
}

/* ---- what has changed ---- */

static void
test_stamp(void)
{
    static const char *const files[] = {"run.json", "report.json", "events.log",
                                        "tags"};
    char before[ETI_FACT_TEXT], after[ETI_FACT_TEXT];
    double newest;
    begin("stamp");
    is_str(eti_facts_stamp(directory, before, &newest), "", "a folder is no run");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        eti_facts_stamp(directory, before, &newest);
        put_file(files[i], "{}");
        eti_facts_stamp(directory, after, &newest);
        ok(strcmp(before, after) != 0, "%s that is new is seen", files[i]);
        put_file(files[i], "{ }");
        eti_facts_stamp(directory, before, &newest);
        ok(strcmp(before, after) != 0, "and that is longer");
        eti_facts_stamp(directory, after, &newest);
        is_str(after, before, "what is as it was is not");
    }
    /* Written within one tick of the clock, a file is another by its size alone. */
    static const struct timespec at[] = {{1000, 500000000}, {3000, 250000000}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (int k = 0; k < 2; k++) {
            put_file(files[i], k ? "{ }" : "{}");
            for (size_t n = 0; n < sizeof files / sizeof *files; n++) {
                char path[1024];
                snprintf(path, sizeof path, "%s/%s", directory, files[n]);
                if (utimensat(AT_FDCWD, path,
                              (const struct timespec[]){at[n == i], at[n == i]},
                              0) != 0)
                    bail("no time for %s", path);
            }
            eti_facts_stamp(directory, k ? after : before, &newest);
            is_near(newest, 3000.25, 0, "%s is the newest", files[i]);
            ok(!k || strcmp(before, after) != 0, "its size is looked at");
        }
}

/* ---- the truth ---- */

static void
test_end(struct et_ctx *cx)
{
    static const char *const keys[] = {"state", "exit_code", "ended", "reason"};
    begin("end");
    put_file("run.json", "{\"name\": \"brisk-otter\", \"state\": \"running\", "
                         "\"pid\": 2147483000, \"pid_started\": 1}");
    json_t *facts = read_facts(cx);
    put_file("run.json", "{\"name\": \"other\", \"state\": \"failed\", "
                         "\"exit_code\": 5, \"ended\": 77.5, \"reason\": \"no\"}");
    eti_facts_make_true(facts);
    static const char *const wanted[] = {"\"failed\"", "5", "77.5", "\"no\""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        has(facts, keys[i], wanted[i],
            "of a run that ended since it was looked at, as written");
    has(facts, "name", "\"brisk-otter\"", "and no other fact");
    put_file("run.json", "{\"state\": \"paused\"}");
    json_object_set_new(facts, "state", json_string("running"));
    eti_facts_make_true(facts);
    has(facts, "state", "\"crashed\"", "where none was written it has crashed");
    json_decref(facts);
}

/* A run is alive while its process is: this one's number alone is not enough. */
static void
test_alive(void)
{
    static const char *const on[] = {"queued",     "starting",      "running",
                                     "evaluating", "checkpointing", "paused",
                                     "stopping"};
    static const char *const off[] = {"finished", "failed", "stopped", "crashed", ""};
    const int64_t started = eti_process_started(getpid());
    const struct {
        const char *what;
        int64_t pid, started;
        const char *boot; /* NULL: this one */
        bool alive;
    } row[] = {
        {"this process", getpid(), started, NULL, true},
        {"one of its number that began later", getpid(), started + 1, NULL, false},
        {"one of its number that began before", getpid(), started - 1, NULL, false},
        {"one of another boot", getpid(), started, "00000000", false},
        {"none", 0, 0, NULL, false},
        {"a group", -1, 0, NULL, false},
    };
    ok(started > 0, "a process knows when it began");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        json_t *facts = json_pack(
            "{s:s, s:I, s:I, s:o}", "state", "running", "pid", (json_int_t)row[i].pid,
            "pid_started", (json_int_t)row[i].started, "boot_id",
            row[i].boot ? json_string(row[i].boot) : eti_boot_id());
        ok(eti_facts_is_alive(facts) == row[i].alive, "%s is %s", row[i].what,
           row[i].alive ? "alive" : "gone");
        json_object_del(facts, "boot_id");
        ok(!eti_facts_is_alive(facts), "without a boot it is gone");
        json_decref(facts);
    }
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < (k ? sizeof off : sizeof on) / sizeof *on; i++) {
            json_t *facts =
                json_pack("{s:s, s:I, s:I, s:o}", "state", k ? off[i] : on[i], "pid",
                          (json_int_t)getpid(), "pid_started", (json_int_t)started,
                          "boot_id", eti_boot_id());
            ok(eti_facts_goes_on(facts) == !k && eti_facts_is_alive(facts) == !k,
               "a run that is '%s' %s", k ? off[i] : on[i],
               k ? "has ended" : "goes on");
            json_decref(facts);
        }
    siginfo_t info;
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (child < 0 || waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0)
        bail("no child");
    is_int(eti_process_started(child), 0, "one that has ended and is not waited for");
    (void)waitid(P_PID, (id_t)child, &info, WEXITED);
    is_int(eti_process_started(child), 0, "and one that is gone never began");
}

/* ---- algorithms that joined ---- */

static void
test_joined(void)
{
    json_t *facts = json_pack("{s:[s, s]}", "algorithms", "mixup", "sa");
    ok(eti_facts_note_name(facts, "sam"), "a first name is noted");
    ok(eti_facts_note_name(facts, "mixup"), "another is");
    ok(!eti_facts_note_name(facts, "sam"), "one that is there is not noted again");
    ok(eti_facts_note_name(facts, "mix"), "the beginning of one is a name of its own");
    has(facts, "joined", "\"sam mixup mix\"", "in their order, with blanks between");
    eti_facts_add_joined(facts);
    has(facts, "algorithms", "[\"mixup\", \"sa\", \"sam\", \"mix\"]",
        "those of the recipe, then those that joined, each once");
    json_decref(facts);
}

/* ---- values by their keys ---- */

static void
test_get(void)
{
    static const struct {
        const char *key, *want; /* want NULL: the key is missing */
    } row[] = {
        {"name", "otter"},
        {"threads", "5"},
        {"seed", "7"},
        {"lr", "0.123456789"},
        {"yes", "true"},
        {"no", "false"},
        {"optimizer", "sgd"},
        {"scheduler", "cosine"},
        {"accuracy", "0.75"},
        {"metrics/eval/Accuracy", "0.75"},
        {"algorithms.ema", ""},
        {"algorithms.sam", ""},
        {"algorithms.mixup", NULL},
        {"algorithms.em", NULL},
        {"nothing", NULL},
        {"optimize", NULL},
    };
    json_t *facts = json_pack(
        "{s:s, s:i, s:{s:i, s:f, s:b, s:b, s:n, s:s, s:s, s:s, s:s}, s:[s, s], "
        "s:{s:{s:f, s:f}}}",
        "name", "otter", "threads", 5, "config", "seed", 7, "lr", 0.123456789, "yes", 1,
        "no", 0, "nothing", "optimizer.name", "sgd", "scheduler.0.name", "cosine",
        "scheduler.1.name", "linear", "algorithms.ema.half_life", "10ba", "algorithms",
        "ema", "sam", "metrics", "metrics/eval/Accuracy", "best", 0.75, "last", 0.5);
    char buf[ETI_FACT_TEXT];
    if (!facts)
        bail("no facts");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *got = eti_facts_get(facts, row[i].key, buf);
        is_str(got ? got : "none", row[i].want ? row[i].want : "none",
               "the value of %s", row[i].key);
    }
    json_decref(facts);
}

/* ---- names of metrics ---- */

static void
test_names(void)
{
    static const struct {
        const char *name, *found;
    } row[] = {
        {"accuracy", ""}, /* of eval and of test */
        {"metrics/eval/Accuracy", "metrics/eval/Accuracy"},
        {"metrics/train/Accuracy", "metrics/train/Accuracy"},
        {"CROSSENTROPY", "metrics/eval/CrossEntropy"},
        {"Entropy", ""},
        {"crossentrop", ""},
        {"MIoU", ""}, /* of training alone */
        {"total", "loss/train/total"},
    };
    json_t *facts = json_pack(
        "{s:{s:{s:f}, s:{s:f}, s:{s:f}, s:{s:f}, s:{s:f}, s:{s:f}}}", "metrics",
        "metrics/train/CrossEntropy", "best", 1.0, "metrics/eval/CrossEntropy", "best",
        2.0, "metrics/eval/Accuracy", "best", 3.0, "metrics/test/Accuracy", "best", 4.0,
        "loss/train/total", "best", 5.0, "metrics/train/MIoU", "best", 6.0);
    json_object_set_new(json_object_get(facts, "metrics"), "metrics/train/Accuracy",
                        json_object());
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *full = "";
        const json_t *m =
            eti_facts_metric(facts, row[i].name, strlen(row[i].name), &full);
        is_str(m ? full : "", row[i].found, "'%s' is %s", row[i].name,
               *row[i].found ? "the name of one metric" : "none's, or of two");
    }
    json_decref(facts);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_algorithms(cx);
    test_files(cx);
    test_tags(cx);
    test_metrics(cx);
    test_rates(cx);
    test_course(cx);
    test_stamp();
    test_end(cx);
    test_names();
    test_progress(cx);
    test_problems(cx);
    test_alive();
    test_joined();
    test_get();
    et_ctx_free(&cx);
    return done();
}
