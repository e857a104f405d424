/* SPDX-License-Identifier: Apache-2.0 */
/* The run directory: its layout, its states, and a log of events that survives a
 * crash. */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/library/folder.h"
#include "core/library/run_impl.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

#include "etude/run.h"

static const char *
contents(const char *directory, const char *name)
{
    static char text[8192];
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "r");
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = '\0';
    if (f)
        fclose(f);
    return text;
}

static void
remove_tree(const char *directory)
{
    char path[512];
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (unlink(path) != 0)
            remove_tree(path);
    }
    if (d)
        closedir(d);
    rmdir(directory);
}

static int
count_hidden(const char *directory)
{
    int n = 0;
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] == '.' && e->d_name[1] != '\0' && e->d_name[1] != '.';
    if (d)
        closedir(d);
    return n;
}

static void
test_names(struct et_ctx *cx)
{
    char a[ET_RUN_NAME], b[ET_RUN_NAME];
    is_str(et_run_name_draw(7, a), et_run_name_draw(7, b),
           "a seed always draws the same name");
    ok(strcmp(a, et_run_name_draw(8, b)) != 0, "another seed another: %s, %s", a, b);
    int bad = 0;
    for (uint64_t i = 0; i < 2000; i++)
        bad += et_run_name_check(cx, et_run_name_draw(i, a)) != ET_OK;
    is_int(bad, 0, "names that are drawn are names");
    char drawn[2000][ET_RUN_NAME];
    int distinct = 0;
    for (int i = 0; i < 2000; i++) {
        int k = 0;
        et_run_name_draw((uint64_t)i, drawn[i]);
        while (k < i && strcmp(drawn[k], drawn[i]) != 0)
            k++;
        distinct += k == i;
    }
    /* 2000 of 2916 at random are 1450, give or take 16. */
    ok(distinct > 1300, "2000 seeds draw %d names", distinct);
    char longest[ET_RUN_NAME + 2];
    for (int n = 1; n <= ET_RUN_NAME + 1; n++) {
        memset(longest, 'a', sizeof longest);
        longest[n] = '\0';
        if (et_run_name_check(cx, longest) != (n < ET_RUN_NAME ? ET_OK : ET_EINVAL))
            bad++;
        et_error_clear(cx);
    }
    is_int(bad, 0, "a name has 1 to %d bytes", ET_RUN_NAME - 1);
    static const char *const wrong[] = {"",    ".hidden", "-x",      "a/b",
                                        "a b", "a\n",     "\xc3\xa9"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_int(et_run_name_check(cx, wrong[i]), ET_EINVAL, "case %zu is no name", i);
        et_error_clear(cx);
    }
    memset(a, 'a', sizeof a);
    a[ET_RUN_NAME - 1] = '\0';
    is_int(et_run_name_check(cx, a), ET_OK, "63 bytes are a name");
}

static void
test_layout(struct et_ctx *cx)
{
    static const char *const command[] = {"etude", "train", "x.yaml"};
    static const char recipe[] = "model: mlp # mine\r\n";
    const struct et_run_config config = {
        .directory = "some/where/",
        .name = "brisk-otter",
        .recipe = recipe,
        .recipe_bytes = sizeof recipe - 1,
        .recipe_name = "x",
        .resolved = "model: {name: mlp}\n",
        .command = command,
        .n_command = 3,
        .threads = 2,
    };
    struct et_run *r, *second;
    struct stat st;
    need(cx, et_run_open(cx, &config, &r));
    is_str(et_run_directory(r), "some/where", "folders on the way are made");
    ok(stat("some/where", &st) == 0 && (st.st_mode & 0777) == 0700,
       "it is its owner's alone");
    is_str(contents("some/where", "recipe.yaml"), recipe, "the recipe, byte for byte");
    is_str(contents("some/where", "recipe.resolved.yaml"), config.resolved,
           "and resolved");
    const char *json = contents("some/where", "run.json");
    ok(strstr(json, "\"name\": \"brisk-otter\"") &&
           strstr(json, "\"state\": \"starting\"") &&
           strstr(json, "\"exit_code\": null") && strstr(json, "\"threads\": 2") &&
           strstr(json, "\"x.yaml\"") && strstr(json, "\"recipe\": \"x\""),
       "run.json says what it is");
    et_run_log(r, ET_LOG_WARN, "hot\033");
    ok(strstr(contents("some/where", "logs/rank0.txt"), "Z warn hot\\x1b\n") != NULL,
       "a line of the log is there at once, with no control byte");

    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(descriptor, STDIN_FILENO);
    close(descriptor);
    is_int(et_run_open(cx, &config, &second), ET_EINVAL, "a second run is refused");
    ok(fcntl(STDIN_FILENO, F_GETFD) >= 0, "which closes nobody's files");
    is_str(et_error_get(cx)->message,
           "some/where holds brisk-otter (starting): use --resume, --autoresume or "
           "another "
           "directory",
           "with what is there, and what to do");
    et_error_clear(cx);

    struct et_metric_value metrics[] = {{"metrics/eval/Accuracy", 0.75}, {"bad", NAN}};
    const struct et_run_report report = {
        .reason = "enough",
        .ts =
            {.epoch = 2, .batch = 8, .sample = 32, .epoch_wct = 0.5, .total_wct = 1.5},
        .metrics = metrics,
        .n_metrics = 2,
        .microbatches = 4,
    };
    need(cx, et_run_finish(r, "finished", 6, &report));
    json = contents("some/where", "run.json");
    ok(strstr(json, "\"state\": \"finished\"") && strstr(json, "\"exit_code\": 6"),
       "the end is in run.json");
    json_t *all = json_loads(contents("some/where", "report.json"), 0, NULL);
    char *text = json_dumps(all, JSON_SORT_KEYS);
    is_str(text,
           "{\"ba\": 8, \"ep\": 2, \"exit_code\": 6, \"metrics\": {\"bad\": null, "
           "\"metrics/eval/Accuracy\": 0.75}, \"microbatches\": 4, \"name\": "
           "\"brisk-otter\", \"reason\": \"enough\", \"sp\": 32, \"state\": "
           "\"finished\", \"train_seconds\": 1.5}",
           "results are in report.json");
    free(text);
    json_decref(all);
    is_int(count_hidden("some/where"), 0, "nothing half written stays");
    struct et_events *e;
    struct et_record one, last = {.ba = 0};
    bool got = true;
    et_run_flush(r);
    need(cx, et_events_open(cx, "some/where/events.log", &e));
    while (et_events_next(e, &one, &got) == ET_OK && got)
        last = one;
    ok(last.kind == ET_RECORD_RUN && last.ep == 2 && last.ba == 8 && last.sp == 32,
       "the last record is at the report's place");
    et_events_close(&e);

    chmod("some/where", 0500);
    if (geteuid() == 0)
        skip(1, "root may write everywhere");
    else
        ok(et_run_set_state(r, "running") == ET_EIO &&
               strstr(contents("some/where", "run.json"), "finished"),
           "what cannot be replaced stays as it was");
    et_error_clear(cx);
    chmod("some/where", 0700);
    et_run_close(&r);
    remove_tree("some");
}

static void
test_default(struct et_ctx *cx)
{
    struct et_run *r[3];
    char want[64];
    own_clock(cx); /* which stands still */
    struct stat st;
    mode_t mask = umask(0);
    for (int i = 0; i < 3; i++)
        need(cx, et_run_open(cx, &(struct et_run_config){0}, &r[i]));
    umask(mask);
    ok(stat(et_run_directory(r[0]), &st) == 0 && (st.st_mode & 0777) == 0700,
       "a run whose directory has no name is its user's alone");
    const char *first = et_run_directory(r[0]);
    ok(strncmp(first, "runs/20", 7) == 0 &&
           strlen(first) >= strlen("runs/2025-11-20T13-56-38"),
       "the default is named after the time: %s", first);
    for (int i = 1; i < 3; i++) {
        snprintf(want, sizeof want, "%.40s-%d", first, i + 1);
        is_str(et_run_directory(r[i]), want,
               "runs of one second have folders of their own");
    }
    for (int i = 0; i < 3; i++)
        et_run_close(&r[i]);
    remove_tree("runs");
}

/* ---- events ---- */

/* A run in x/ that has trained; then its records. SECONDS pass at each look at the
 * clock. */
static void
train(struct et_ctx *cx, double seconds)
{
    struct et_run *run;
    struct et_callback *watch;
    struct run r;
    own_clock(cx)->step = seconds;
    need(cx, et_run_open(cx, &(struct et_run_config){.directory = "x"}, &run));
    need(cx, et_run_watch(cx, &watch));
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = &watch,
                 .n_callbacks = 1,
                 .evaluate = true,
                 .sink = et_run_sink(run),
             });
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    et_log_text(r.state->log, ET_LOG_WARN, &r.state->timestamp, "a %s", "warning");
    run_close(&r);
    et_callback_free(&watch);
    need(cx, et_run_finish(run, "finished", 0, NULL));
    et_run_close(&run);
}

/* Reads x/events.log to its end or first error; the kinds in TAPE, by first letters. */
static et_status
replay(struct et_ctx *cx, char *tape, int64_t *torn)
{
    struct et_events *e;
    struct et_record r;
    bool got = true;
    et_status status = et_events_open(cx, "x/events.log", &e);
    tape[0] = '\0';
    if (status != ET_OK)
        return status;
    while ((status = et_events_next(e, &r, &got)) == ET_OK && got) {
        size_t n = strlen(tape);
        snprintf(tape + n, 512 - n, "%s%s%s ", et_record_name(r.kind),
                 r.text ? ":" : "", r.text ? r.text : "");
    }
    *torn = et_events_torn_bytes(e);
    et_events_close(&e);
    et_error_clear(cx);
    return status;
}

static void
test_events(struct et_ctx *cx)
{
    static const char want[] =
        "run:starting run:running batch batch epoch run:evaluating "
        "run:evaluating eval:eval run:running run:running log:a warning "
        "run:finished ";
    char tape[512], path[] = "x/events.log";
    int64_t torn;
    train(cx, 0);
    is_int(replay(cx, tape, &torn), ET_OK, "a log reads back");
    is_str(tape, want, "as it was written");
    is_int(torn, 0, "and nothing is left over");

    struct et_events *e;
    struct et_record r;
    bool got;
    need(cx, et_events_open(cx, path, &e));
    for (int i = 0; i < 3; i++)
        need(cx, et_events_next(e, &r, &got));
    is_int(r.seq, 3, "records are counted from 1");
    ok(r.kind == ET_RECORD_BATCH && r.ba == 1 && r.sp == 4 && r.t > 1.7e9,
       "with their place");
    int at = 0;
    while (at < r.n && strcmp(r.entry[at].name, "loss/train/total") != 0)
        at++;
    ok(at < r.n && r.entry[at].value > 0 && r.entry[at].value < 100,
       "and their numbers");
    et_events_close(&e);

    struct stat st;
    stat(path, &st);
    int whole = 0, shorter = 0;
    for (off_t size = st.st_size - 1; size > st.st_size - 12; size--) {
        if (truncate(path, size) != 0)
            bail("cannot cut the log");
        whole += replay(cx, tape, &torn) == ET_OK && torn > 0;
        shorter += strcmp(tape, "") != 0 && !strstr(tape, "finished") &&
                   strncmp(tape, want, strlen(tape)) == 0;
    }
    is_int(whole, 11, "a log cut off in its last record ends before it");
    is_int(shorter, 11, "with all that came before");
    remove_tree("x");
}

/* An evaluation's progress is a record, but no more than 4 a second. */
static void
test_slow(struct et_ctx *cx)
{
    static const char *const parts[] = {
        "run:evaluating run:evaluating eval:eval ",
        "run:evaluating run:evaluating run:evaluating run:evaluating eval:eval "};
    char tape[512];
    int64_t torn;
    for (int i = 0; i < 2; i++) {
        train(cx, i ? 0.25 : 0.01);
        is_int(replay(cx, tape, &torn), ET_OK, "an evaluation of two batches");
        const char *part = strstr(tape, "run:evaluating");
        ok(part && strncmp(part, parts[i], strlen(parts[i])) == 0, "%s: %s",
           i ? "each is said where they take long" : "is said when it begins",
           part ? part : "nothing");
        remove_tree("x");
    }
}

/* Flips one bit of byte AT. */
static void
damage(long at)
{
    FILE *f = fopen("x/events.log", "r+b");
    fseek(f, at, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
}

static void
test_damage(struct et_ctx *cx)
{
    char tape[512];
    int64_t torn;
    struct stat st;
    train(cx, 0);
    stat("x/events.log", &st);
    damage(st.st_size - 1);
    is_int(replay(cx, tape, &torn), ET_OK, "a wrong checksum at the end is a torn end");
    ok(torn > 0 && !strstr(tape, "finished"), "which is not read");
    damage(st.st_size - 1);
    damage(32 + 8 + 3);
    is_int(replay(cx, tape, &torn), ET_EFORMAT, "elsewhere it is damage");
    damage(32 + 8 + 3);
    if (truncate("x/events.log", st.st_size + 100) != 0)
        bail("cannot lengthen the log");
    is_int(replay(cx, tape, &torn), ET_OK, "space that was never written ends the log");
    is_int(torn, 100, "and is counted");
    damage(9);
    is_int(replay(cx, tape, &torn), ET_EFORMAT, "a later version is refused");
    damage(9);
    damage(0);
    is_int(replay(cx, tape, &torn), ET_EFORMAT, "so is another file");
    remove_tree("x");
    is_int(replay(cx, tape, &torn), ET_ENOENT, "and one that is not there");
    et_error_clear(cx);
}

static void
test_note(struct et_ctx *cx)
{
    struct et_run *run;
    const struct et_record batch = {
        .kind = ET_RECORD_BATCH, .ep = 1, .ba = 7, .sp = 56};
    need(cx, et_run_open(cx, &(struct et_run_config){.directory = "x"}, &run));
    const struct et_record line = {.kind = ET_RECORD_LOG, .text = "from before"};
    et_run_sink(run)->write(et_run_sink(run), &batch);
    et_run_sink(run)->write(et_run_sink(run), &line);
    et_run_note(run, ET_LOG_ERROR, "it broke");
    et_run_close(&run);
    ok(strstr(contents("x", "logs/rank0.txt"), "Z error it broke\n") != NULL,
       "a note is a line of the rank's log");
    struct et_events *e;
    struct et_record r;
    bool got;
    need(cx, et_events_open(cx, "x/events.log", &e));
    for (int i = 0; i < 4; i++)
        need(cx, et_events_next(e, &r, &got));
    ok(got && r.kind == ET_RECORD_LOG && r.level == ET_LOG_ERROR && r.ep == 1 &&
           r.ba == 7 && r.sp == 56 && r.text && strcmp(r.text, "it broke") == 0,
       "and an event at the batch that the run has come to");
    et_events_close(&e);
    remove_tree("x");
}

/* The state that the records of rank 0 say is that of run.json; other ranks', no state
 * and other records change nothing. */
static void
test_states(struct et_ctx *cx)
{
    static const struct {
        enum et_record_kind kind;
        int rank;
        const char *text, *state;
    } row[] = {
        {ET_RECORD_RUN, 0, "running", "\"state\": \"running\""},
        {ET_RECORD_RUN, 1, "failed", "\"state\": \"running\""},
        {ET_RECORD_RUN, 0, NULL, "\"state\": \"running\""},
        {ET_RECORD_LOG, 0, "paused", "\"state\": \"running\""},
        {ET_RECORD_RUN, 0, "evaluating", "\"state\": \"evaluating\""},
    };
    struct et_run *run;
    need(cx, et_run_open(cx, &(struct et_run_config){.directory = "s"}, &run));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct et_record r = {
            .kind = row[i].kind, .rank = row[i].rank, .t = 1e9, .text = row[i].text};
        et_run_sink(run)->write(et_run_sink(run), &r);
        et_run_flush(run);
        ok(strstr(contents("s", "run.json"), row[i].state) != NULL,
           "rank %d says %s: %s", row[i].rank, row[i].text ? row[i].text : "nothing",
           row[i].state);
    }
    et_run_close(&run);
    remove_tree("s");
}

static struct et_record heard; /* the last */

static void
hear(struct et_sink *sink, const struct et_record *record)
{
    (void)sink;
    heard = *record;
}

/* A rank of a run whose files another process keeps: its records go there, and it
 * writes its log alone. */
static void
test_rank(struct et_ctx *cx)
{
    struct et_sink sink = {.write = hear};
    struct et_run *run;
    const struct et_run_place place = {.directory = "x/",
                                       .name = "calm-yak",
                                       .id = "abc",
                                       .rank = 2,
                                       .incarnation = 5};
    const struct et_record batch = {
        .kind = ET_RECORD_BATCH, .ep = 1, .ba = 7, .sp = 56};
    const struct et_run_report report = {.ts = {.batch = 8}};
    mkdir("x", 0700);
    need(cx, et_run_join(cx, &place, &sink, &run));
    is_str(et_run_directory(run), "x", "a rank has its run's folder,");
    is_str(et_run_name(run), "calm-yak", "name,");
    is_str(et_run_id(run), "abc", "id,");
    is_int(et_run_incarnation(run), 5, "and start");
    et_run_sink(run)->write(et_run_sink(run), &batch);
    ok(heard.kind == ET_RECORD_BATCH && heard.ba == 7, "its records go elsewhere");
    et_run_note(run, ET_LOG_WARN, "it is hot");
    ok(heard.kind == ET_RECORD_LOG && heard.level == ET_LOG_WARN && heard.ep == 1 &&
           heard.ba == 7 && heard.sp == 56,
       "and its notes, with where it is");
    need(cx, et_run_set_state(run, "paused"));
    ok(heard.kind == ET_RECORD_RUN && heard.ep == 1 && heard.ba == 7 && heard.sp == 56,
       "and its states");
    ok(et_run_flush(run), "nothing waits");
    need(cx, et_run_restore(run));
    et_run_blame(run, "no disk");
    need(cx, et_run_finish(run, "failed", 74, &report));
    et_run_close(&run);
    ok(strstr(contents("x", "logs/rank2.txt"), "Z warn it is hot\n") != NULL,
       "its log is its own");
    static const char *const files[] = {"x/run.json", "x/report.json", "x/events.log"};
    for (int i = 0; i < 3; i++)
        is_int(access(files[i], F_OK), -1, "it writes no %s", files[i]);
    remove_tree("x");
}

/* Of a process that died before it had a run.json there may be a log. */
static void
test_left(struct et_ctx *cx)
{
    struct et_run *run;
    struct et_events *e;
    struct et_record r;
    bool got;
    mkdir("x", 0700);
    FILE *f = fopen("x/events.log", "w");
    if (!f || fputs("what was left", f) < 0 || fclose(f) != 0)
        bail("no log");
    need(cx, et_run_open(cx, &(struct et_run_config){.directory = "x"}, &run));
    is_int(et_run_incarnation(run), 1, "a run is begun for the first time");
    ok(et_run_flush(run), "nothing of it waits");
    is_int(et_run_seq(run), 1, "one record is written");
    et_run_close(&run);
    need(cx, et_events_open(cx, "x/events.log", &e));
    need(cx, et_events_next(e, &r, &got));
    ok(got && r.kind == ET_RECORD_RUN && strcmp(r.text, "starting") == 0,
       "and its log begins anew");
    et_events_close(&e);
    remove_tree("x");
}

/* What run.json says at once of algorithms that the recipe does not name. */
static void
test_joined(struct et_ctx *cx)
{
    static const struct {
        const char *text, *joined;
    } row[] = {
        {"uid:7 algo mixup on -> was off", NULL},
        {"uid:7 set optimizer.lr 0.1 -> joined", NULL},
        {"uid:7 algo ema on half_life=2ba -> joined", "\"joined\": \"ema\""},
        {"uid:7 algo ema on -> was off", "\"joined\": \"ema\""},
        {"uid:7 algo sam on -> joined", "\"joined\": \"ema sam\""},
    };
    struct et_run *run;
    need(cx, et_run_open(cx, &(struct et_run_config){.directory = "j"}, &run));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct et_record r = {
            .kind = ET_RECORD_COMMAND, .t = 1e9, .ba = 1, .text = row[i].text};
        et_run_sink(run)->write(et_run_sink(run), &r);
        const char *json = contents("j", "run.json");
        ok(row[i].joined ? strstr(json, row[i].joined) != NULL
                         : !strstr(json, "\"joined\": \""),
           "after \"%s\" run.json names who has joined", row[i].text);
    }
    et_run_close(&run);
    remove_tree("j");
}

static void
test_warm(struct et_ctx *cx)
{
    struct et_run *run;
    struct et_alloc_stats before, after;
    need(cx, et_run_open(cx, &(struct et_run_config){.directory = "x"}, &run));
    const struct et_log_entry entry = {"loss/train/total", 0.5};
    const struct et_record record = {.kind = ET_RECORD_BATCH, .entry = &entry, .n = 1};
    for (int i = 0; i < 2000; i++) /* more than each have a record of their own */
        et_run_sink(run)->write(et_run_sink(run), &record);
    et_alloc_get_stats(cx, &before);
    for (int i = 0; i < 10000; i++)
        et_run_sink(run)->write(et_run_sink(run), &record);
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)(after.allocs - before.allocs), 0,
           "10,000 records allocate nothing");
    et_run_close(&run);
    struct et_events *e;
    struct et_record r;
    bool got = true;
    int64_t n = 0;
    need(cx, et_events_open(cx, "x/events.log", &e));
    while (et_events_next(e, &r, &got) == ET_OK && got)
        n += r.of > 0 ? r.of : 1;
    is_int(n, 12001, "and all are there");
    et_events_close(&e);
    remove_tree("x");
}

/* Folders that are made, that are there, and that cannot be. */
static void
test_folders(struct et_ctx *cx)
{
    struct stat st;
    need(cx, eti_make_parents(cx, "deep/er/still/name"));
    ok(stat("deep/er/still", &st) == 0 && S_ISDIR(st.st_mode),
       "all folders above a name are made");
    ok(stat("deep/er/still/name", &st) != 0, "and the name is not");
    need(cx, eti_make_parents(cx, "deep/er/still/name"));
    need(cx, eti_make_directory(cx, "deep", 0700));
    FILE *f = fopen("deep/er/still/name", "w");
    if (!f || fclose(f) != 0)
        bail("no file");
    is_int(eti_make_directory(cx, "deep/er/still/name", 0700), ET_EIO,
           "a file is no folder");
    is_str(et_error_get(cx)->message, "cannot make deep/er/still/name: it is no folder",
           "and the error says so");
    et_error_clear(cx);
    if (unlink("deep/er/still/name") != 0 || rmdir("deep/er/still") != 0 ||
        rmdir("deep/er") != 0 || rmdir("deep") != 0)
        bail("cannot remove folders");
}

/* The longest path of a directory, and one byte more: "./././x". */
static void
test_longest(struct et_ctx *cx)
{
    char path[ETI_RUN_FOLDER_BYTES + 2], want[128];
    struct et_run *r = NULL;
    struct stat st;
    for (int more = 0; more < 2; more++) {
        const int n = ETI_RUN_FOLDER_BYTES - 1 + more;
        for (int i = 0; i < n; i += 2)
            memcpy(path + i, "./", 2);
        memset(path + ((n - 1) & ~1), 'x', 2);
        path[n] = '\0';
        const struct et_run_config config = {.directory = path};
        et_status status = et_run_open(cx, &config, &r);
        is_int(status, more ? ET_EINVAL : ET_OK, "a path of %d bytes: %s", n,
               more ? "too long" : "a directory");
        if (!more)
            is_str(et_run_directory(r), path, "... that one");
        if (status == ET_OK)
            et_run_close(&r);
    }
    snprintf(want, sizeof want, "a run directory's path has 1 to %d bytes, not %d",
             ETI_RUN_FOLDER_BYTES - 1, ETI_RUN_FOLDER_BYTES);
    is_str(et_error_get(cx)->message, want, "which is said");
    et_error_clear(cx);
    ok(stat("xx", &st) != 0, "and no other is made instead");
    is_int(et_run_open(cx, &(struct et_run_config){.directory = ""}, &r), ET_EINVAL,
           "nor is a path without a byte one");
    et_error_clear(cx);
    remove_tree("x");
}

int
main(void)
{
    char directory[] = "rundir-XXXXXX";
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    need(NULL, et_ctx_new(&cx));
    (void)own_clock(cx);
    if (!mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    test_names(cx);
    test_folders(cx);
    test_longest(cx);
    test_layout(cx);
    test_default(cx);
    test_events(cx);
    test_slow(cx);
    test_damage(cx);
    test_note(cx);
    test_states(cx);
    test_rank(cx);
    test_left(cx);
    test_joined(cx);
    test_warm(cx);
    ok(chdir("..") == 0 && rmdir(directory) == 0, "every file is accounted for");
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
