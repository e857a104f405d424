/* SPDX-License-Identifier: Apache-2.0 */
/* What a run's processes do for each other, whatever the ranks train: how each way to
 * end ends the run, what is started again, who gets which signal and how long it has,
 * and where what ranks say and print goes (RELIABILITY.md R10 to R13, UX.md section
 * 2). */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "dist/run/supervisor.h"
#include "t/data/fixture.h"
#include "t/dist/scripted.h"
#include "t/tap.h"

/* ---- a run that goes well ---- */

static int
number_in(const char *name)
{
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : -1;
}

/* What is set for a rank, in words; the fourth to sixth of a run of nine. */
static void
tell_environment(char *text)
{
    const char *secret = getenv("ETUDE_RANK_SECRET");
    const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    snprintf(text, SCRIPTED_TEXT, "%d of %d, %d of %d on %d at %s; %d s%s%s: %s",
             number_in("RANK"), number_in("WORLD_SIZE"), number_in("LOCAL_RANK"),
             number_in("LOCAL_WORLD_SIZE"), number_in("NODE_RANK"),
             getenv("MASTER_ADDR"), number_in("ETUDE_RANK_TIMEOUT"),
             number_in("MASTER_PORT") > 0 ? ", port" : "",
             number_in("ETUDE_RANK_LISTENER") >= 0 ? ", listens" : "",
             agent    ? "an agent"
             : secret ? secret
                      : "no secret");
}

static void
note(struct etd_rank *r, struct et_run *run)
{
    char text[32];
    struct et_sink *sink = et_run_sink(run);
    snprintf(text, sizeof text, "note of %d", etd_rank_number(r));
    sink->write(sink, &(struct et_record){.kind = ET_RECORD_ANNOTATION, .text = text});
}

static int
go_well(struct etd_rank *r, int start)
{
    int number = etd_rank_number(r), mine = own_place();
    (void)start;
    printf("early %d\n", number);
    fflush(stdout);
    tell_environment(all->text[mine]);
    reach(1);
    wait_to_go(1);
    /* Rank 1 waits for the run, and rank 2 comes when it is there. */
    if (mine == 0)
        wait_for_rank(1, 2);
    if (mine == 2)
        wait_for_rank(0, 3);
    reach(2);
    struct et_run *run = open_run(r);
    reach(3);
    etd_rank_line(r, ET_LOG_WARN, "a line");
    fprintf(etd_rank_out(r), "result of %d\n", number);
    fprintf(etd_rank_err(r), "excuse of %d\n", number);
    printf("late %d\n", number);
    fprintf(stderr, "trouble %d\n", number);
    fflush(stdout);
    note(r, run);
    train_to(r, 5);
    et_run_close(&run);
    return end_rank(r, "done", 0);
}

/* The log's notes: "TEXT/RANK ..." by ranks, and whether they are numbered. */
static void
test_notes(const char *directory)
{
    char path[256], text[3][64] = {{0}};
    struct et_events *log;
    struct et_record r;
    bool got = true;
    int notes = 0;
    int64_t seq = 0;
    snprintf(path, sizeof path, "%s/events.log", directory);
    need(context, et_events_open(context, path, &log));
    for (;;) {
        need(context, et_events_next(log, &r, &got));
        if (!got)
            break;
        seq += r.seq == seq + 1;
        if (r.kind != ET_RECORD_ANNOTATION || r.rank < 3 || r.rank > 5)
            continue;
        notes++;
        snprintf(text[r.rank - 3], sizeof text[0], "%s", r.text);
    }
    et_events_close(&log);
    ok(notes == 3 && strcmp(text[0], "note of 3") == 0 &&
           strcmp(text[1], "note of 4") == 0 && strcmp(text[2], "note of 5") == 0,
       "the log has what each rank recorded, as its own");
    ok(seq >= 3, "and counts its records");
}

static void
test_well(void)
{
    struct etd_launch l = launch_of("well", 3);
    char want[SCRIPTED_TEXT], secret[SCRIPTED_TEXT] = "";
    l.base = 3;
    l.world = 9;
    l.node = 1;
    l.timeout = 1000;
    l.out = "{rank}.out";
    l.err = "{local_rank}.err";
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("ETUDE_RANK_LISTENER", "7", 1);
    launch(&l, go_well);
    hear_until(are_at, 1, "the beginning");
    settle(); /* what was printed early has been read */
    all->go = 1;
    finish();
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    unsetenv("ETUDE_RANK_LISTENER");
    is_str(ending(), "done 0 3", "a run whose ranks are done is done");
    ok(heard.end.began && heard.end.said && !heard.end.why[0],
       "and has said so itself");
    is_int(all->code, 0, "its supervisor ends as the run did");
    is_str(facts("well"), "done 0 1", "which is written down");
    is_int(heard.opened, 1, "the front hears once where it is");
    json_t *json = json_loads(text_of("well", "run.json"), 0, NULL);
    is_str(heard.as.name, json_string_value(json_object_get(json, "name")),
           "with its name");
    json_decref(json);
    is_str(heard.as.directory, "well", "and its folder");
    ok(heard.as.seq > 0 && heard.line_seq >= heard.as.seq &&
           heard.line_seq < heard.as.seq + 20 && heard.raw_seq >= heard.as.seq &&
           heard.raw_seq < heard.as.seq + 20,
       "and what it hears stands behind those of its records (%d: %d, %d)",
       (int)heard.as.seq, (int)heard.line_seq, (int)heard.raw_seq);
    for (int i = 0; i < 3; i++) {
        const char *at = strrchr(all->text[i], ' ');
        if (i == 0)
            snprintf(secret, sizeof secret, "%s", at ? at + 1 : "");
        snprintf(want, sizeof want,
                 "%d of 9, %d of 3 on 1 at 127.0.0.1; 1060 s, port%s: %s", 3 + i, i,
                 i == 0 ? ", listens" : "", secret);
        is_str(all->text[i], want, "rank %d is told which of them it is", 3 + i);
    }
    ok(strlen(secret) == 64 && strspn(secret, "0123456789abcdef") == 64,
       "they have a secret that they share");
    test_notes("well");
    static const char *const lines[] = {
        "raw 1 early 3\n",     "line 2 a line\n", "out 0 result of 3\n",
        "err 0 excuse of 3\n", "late 3\n",        "raw 2 trouble 3\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ok(strstr(heard.text, lines[i]) != NULL, "the front hears of rank 3: %.*s",
           (int)strcspn(lines[i], "\n"), lines[i]);
    ok(!strpbrk(heard.text, "45"), "and of rank 3 alone");
    is_str(text_of("well", "4.out"), "late 4\n",
           "a rank's file has what it printed when the run was there");
    is_str(text_of("well", "2.err"), "trouble 5\n", "and for errors likewise");
    static const char *const kept[] = {"early 5\n", "late 5\n", "trouble 5\n",
                                       "result of 5\n", "excuse of 5\n"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        ok(strstr(text_of("well", "logs/rank5.txt"), kept[i]) != NULL,
           "logs/rank5.txt has what it said: %.*s", (int)strcspn(kept[i], "\n"),
           kept[i]);
    ok(!strstr(text_of("well", "logs/rank3.txt"), "result"),
       "what the front shows at the end is not in the log of the first rank");
}

/* ---- how each way to end ends the run ---- */

static const struct way {
    const char *what;
    int place;   /* of the rank that ends so; */
    int said;    /* what it says that its exit code is; -1: nothing */
    int exit;    /* what it is; -N: it is ended by signal N */
    bool opened; /* the run is, before */
    const char *ending, *facts, *why;
    bool its_own; /* the rank has said why */
} ways[] = {
    {"a rank that ends with 3, by its own account", 1, 3, 3, true, "ended 3 1",
     "ended 3 1", "", false},
    {"the first that does", 0, 3, 3, true, "ended 3 0", "ended 3 1", "", true},
    {"one that ends without a word", 1, -1, 7, true, "failed 1 1", "failed 1 1",
     "rank 1 ended by itself, with exit 7, after batch 12; dumps/rank1.txt has what it "
     "did last",
     false},
    {"one that ends otherwise than it says", 1, 0, 9, true, "failed 1 1", "failed 1 1",
     "rank 1 ended by itself, with exit 9, after batch 12; dumps/rank1.txt has what it "
     "did last",
     false},
    {"one that is ended after its last word", 0, 0, -SIGKILL, true, "failed 1 0",
     "failed 1 1",
     "rank 0 was ended by signal 9 (Killed) after batch 12; dumps/rank0.txt has what "
     "it "
     "did last",
     false},
    {"one that crashes", 0, -1, -SIGSEGV, true, "failed 1 0", "failed 1 1",
     "rank 0 was ended by signal 11 (Segmentation fault) after batch 12; "
     "dumps/rank0.txt "
     "has what it did last",
     false},
    {"one that ends before there is a run", 0, -1, 6, false, " 6 0", "none 0 0",
     "rank 0 ended by itself, with exit 6, after batch 0", true},
    {"one that says so", 0, 6, 6, false, "ended 6 0", "none 0 0", "", true},
    {"one that crashes before there is a run", 1, -1, -SIGKILL, false, " 1 1",
     "none 0 0", "rank 1 was ended by signal 9 (Killed) after batch 0", false},
};
static const struct way *way;

static int
end_some_way(struct etd_rank *r, int start)
{
    bool other = own_place() != way->place;
    (void)start;
    if (way->opened) {
        (void)open_run(r);
        train_to(r, other ? 14 : 12);
    }
    reach(1);
    /* All are there before one ends, and the others end when that is known. */
    wait_to_go(other ? 2 : 1);
    if (other || way->said >= 0)
        (void)end_rank(r, other ? "done" : "ended", other ? 0 : way->said);
    if (!other && way->exit < 0)
        kill(getpid(), -way->exit);
    return other ? 0 : way->exit;
}

/* Its process has ended, and the supervisor has seen that. */
static bool
is_gone(int place)
{
    return kill(all->pid[place], 0) != 0 && errno == ESRCH;
}

/* Why the run ended, as its run.json has it; "" for no reason. */
static const char *
reason_of(const char *directory)
{
    static char text[ETD_WHY];
    json_t *json = json_loads(text_of(directory, "run.json"), 0, NULL);
    const char *reason = json_string_value(json_object_get(json, "reason"));
    snprintf(text, sizeof text, "%s", reason ? reason : "");
    json_decref(json);
    return text;
}

/* The last error that the run's log has; "" for none. */
static const char *
error_of(const char *directory)
{
    static char text[ETD_WHY];
    char path[256];
    struct et_events *log;
    struct et_record r;
    bool got = true;
    text[0] = '\0';
    snprintf(path, sizeof path, "%s/events.log", directory);
    if (access(path, F_OK) != 0)
        return text;
    need(context, et_events_open(context, path, &log));
    for (;;) {
        need(context, et_events_next(log, &r, &got));
        if (!got)
            break;
        if (r.kind == ET_RECORD_LOG && r.level == ET_LOG_ERROR)
            snprintf(text, sizeof text, "%s", r.text);
    }
    et_events_close(&log);
    return text;
}

static void
test_way(void)
{
    char directory[16], line[64];
    snprintf(directory, sizeof directory, "way%d", (int)(way - ways));
    struct etd_launch l = launch_of(directory, 2);
    launch(&l, end_some_way);
    hear_until(are_at, 1, "the beginning");
    all->go = 1;
    hear_until(is_gone, way->place, "the end of a rank");
    settle();
    all->go = 2;
    finish();
    is_str(ending(), way->ending, "%s", way->what);
    is_str(facts(directory), way->facts, "as its run.json has it");
    is_str(heard.end.why, way->why, "why");
    is_str(reason_of(directory), way->opened ? way->why : "", "as run.json has it");
    is_str(error_of(directory), way->opened ? way->why : "",
           "and the log, as an error");
    ok(heard.end.said == way->its_own, "who has said it");
    ok(heard.end.began == way->opened, "and whether it had begun");
    is_int(all->code, heard.end.exit, "its supervisor has the same exit code");
    bool failed = strncmp(way->ending, "failed", 6) == 0;
    const char *dump =
        text_of(directory, way->place ? "dumps/rank1.txt" : "dumps/rank0.txt");
    snprintf(line, sizeof line, "of start 1: after batch 12, in %s\n",
             way->said >= 0 ? "at its end" : "reading data");
    ok((strstr(dump, line) != NULL) == failed,
       "what a rank that failed did last is kept");
    ok((strstr(dump, "-- signal 11: ") != NULL) == (way->exit == -SIGSEGV),
       "and where it crashed");
}

/* The fourth and fifth rank of a run, of which the fifth ends without a word. */
static void
test_numbers(void)
{
    struct etd_launch l = launch_of("numbers", 2);
    l.base = 3;
    l.world = 5;
    way = &ways[2];
    launch(&l, end_some_way);
    hear_until(are_at, 1, "the beginning");
    all->go = 1;
    hear_until(is_gone, 1, "the end of a rank");
    settle();
    all->go = 2;
    finish();
    is_str(ending(), "failed 1 4", "a rank that fails is named as in the whole run");
    ok(strstr(heard.end.why, "rank 4 ended by itself, with exit 7") != NULL,
       "also in why: %s", heard.end.why);
    ok(*text_of("numbers", "dumps/rank4.txt"), "and where it has its dump");
}

/* ---- ranks that do not leave ---- */

static int
stay(struct etd_rank *r, int start)
{
    (void)start;
    struct et_run *run = open_run(r);
    train_to(r, 1);
    reach(1);
    if (own_place() == 1) {
        wait_to_go(1);
        return 3;
    }
    wait_to_go(2);
    et_run_close(&run);
    return 0;
}

static void
test_leave(void)
{
    struct etd_launch l = launch_of("leave", 2);
    launch(&l, stay);
    hear_until(are_at, 1, "the beginning");
    all->go = 1;
    hear_until(is_gone, 1, "the end of rank 1");
    pass(4.5);
    ok(!is_gone(0), "where a rank fails the others have five seconds to leave");
    pass(1);
    finish();
    ok(is_gone(0), "and are made to");
    is_str(ending(), "failed 1 1", "it is the first that failed");
}

/* ---- started again ---- */

static const struct crashes {
    const char *what;
    int64_t at[5];   /* batches; 0: none, it is done */
    double waits[4]; /* seconds until the next start */
    const char *ending, *facts, *why;
} crashes[] = {
    {"a run that crashes once goes on", {10}, {1}, "done 0 0", "done 0 2", ""},
    {"it crashes three times, and not four",
     {10, 20, 30, 40},
     {1, 2, 4},
     "failed 1 1",
     "failed 1 4",
     "rank 1 was ended by signal 9 (Killed) after batch 40; dumps/rank1.txt has what "
     "it "
     "did last"},
    {"nor three times at one batch",
     {10, 10, 10},
     {1, 2},
     "failed 1 1",
     "failed 1 3",
     "rank 1 was ended by signal 9 (Killed) after batch 10; dumps/rank1.txt has what "
     "it "
     "did last: the third time at this batch"},
    {"one that had gone on for long enough has them again",
     {10, 20, 220},
     {1, 2, 1},
     "done 0 0",
     "done 0 4",
     ""},
};
static const struct crashes *crash;

static int
crash_again(struct etd_rank *r, int start)
{
    const char *resumes = etd_rank_resumes(r);
    snprintf(all->text[own_place()], SCRIPTED_TEXT, "%s", resumes ? resumes : "none");
    struct et_run *run = open_run(r);
    int64_t at = crash->at[start - 1];
    printf("start %d\n", start);
    fflush(stdout);
    train_to(r, at ? at : 1000);
    reach(start);
    wait_for_rank(1 - own_place(), start);
    if (at && own_place() == 1)
        kill(getpid(), SIGKILL);
    et_run_close(&run);
    return end_rank(r, at ? "broken" : "done", at ? 1 : 0);
}

static void
test_crashes(void)
{
    char directory[16], line[SCRIPTED_TEXT];
    snprintf(directory, sizeof directory, "crash%d", (int)(crash - crashes));
    struct etd_launch l = launch_of(directory, 2);
    l.restart = true;
    launch(&l, crash_again);
    for (int i = 0; crash->waits[i] > 0; i++) {
        hear_until(is_said, i + 1, "a crash");
        snprintf(line, sizeof line,
                 "after batch %d; dumps/rank1.txt has what it did last; "
                 "it is started again in %.0f s (%d left)",
                 (int)crash->at[i], crash->waits[i],
                 crash->waits[i] > 3   ? 0
                 : crash->waits[i] > 1 ? 1
                                       : 2);
        ok(strstr(heard.text, line) != NULL, "crash %d: that is said", i + 1);
        pass(crash->waits[i] - 0.25);
        is_int(all->starts[0], i + 1, "it is not started again before");
        pass(0.5);
        hear_until(has_started, i + 2, "another start");
    }
    finish();
    is_str(ending(), crash->ending, "%s", crash->what);
    is_str(facts(directory), crash->facts, "as its run.json has it");
    is_str(heard.end.why, crash->why, "with the reason");
    is_int(heard.opened, all->starts[0], "the front has heard of each start");
    is_str(all->text[1], directory, "the ranks of a later start know the run");
    const char *log = text_of(directory, "logs/rank1.txt");
    for (int i = 1; i <= all->starts[1]; i++) {
        snprintf(line, sizeof line, "start %d\n", i);
        ok(strstr(log, line) != NULL, "the log of a rank has start %d", i);
    }
}

static int
crash_early(struct etd_rank *r, int start)
{
    (void)r, (void)start;
    kill(getpid(), SIGKILL);
    return 0;
}

/* How the log of DIRECTORY says that batches are thinned: events.h. */
static uint32_t
thinned(const char *directory)
{
    char path[256];
    unsigned char head[16] = {0};
    snprintf(path, sizeof path, "%s/events.log", directory);
    FILE *f = fopen(path, "r");
    if (!f || fread(head, sizeof head, 1, f) != 1)
        bail("no log in %s", directory);
    fclose(f);
    return head[12] | head[13] << 8 | head[14] << 16 | (uint32_t)head[15] << 24;
}

static void
test_not_again(void)
{
    struct etd_launch l = launch_of("early", 1);
    l.restart = true;
    launch(&l, crash_early);
    finish();
    is_str(ending(), " 1 0", "a run that is not there is not started again");
    is_int(all->starts[0], 1, "after its first crash");
    l = launch_of("between", 2);
    l.restart = true;
    l.config.record_interval = ET_BATCHES(3);
    crash = &crashes[0];
    launch(&l, crash_again);
    hear_until(is_said, 1, "a crash");
    kill(all->supervisor, SIGTERM);
    finish();
    is_str(ending(), "preempted 75 -1",
           "one that is asked to end before it is started again ends at once");
    is_str(facts("between"), "preempted 75 2",
           "and can be gone on with: it is opened again to write that down");
    is_int(thinned("between"), 3 | ETI_THINNED_BATCHES,
           "with the interval of its records");
    is_int(all->starts[0], 1, "it is not started again");
}

/* ---- signals ---- */

/* Asked to end, it does so when the test lets it. */
static int
obey(struct etd_rank *r, int start)
{
    (void)start;
    catch_signal(SIGTERM);
    catch_signal(SIGINT);
    struct et_run *run = open_run(r);
    reach(1);
    wait_to_go(1);
    train_to(r, 8);
    reach(2);
    wait_to_go(3);
    et_run_close(&run);
    return end_rank(r, "preempted", 75);
}

/* A run of two ranks, which trains or is starting. */
static void
begin_obedient(const char *directory, double grace, bool trains)
{
    struct etd_launch l = launch_of(directory, 2);
    l.grace = grace;
    l.restart = true;
    launch(&l, obey);
    hear_until(are_at, 1, "the beginning");
    if (!trains)
        return;
    all->go = 1;
    hear_until(are_at, 2, "the first batch");
}

static bool
have_got(int number)
{
    return all->got[0] & 1 << number && all->got[1] & 1 << number;
}

static void
ask_to_end(int number)
{
    kill(all->supervisor, number);
    hear_until(have_got, number, "the signal");
}

static bool
both_live(void)
{
    return !is_gone(0) && !is_gone(1);
}

/* Both ranks live SECONDS more, but for a quarter of one, and not much longer. */
static void
is_ended_after(double seconds, const char *what)
{
    pass(seconds - 0.25);
    ok(both_live(), "%s: not before", what);
    pass(0.5);
    finish();
    /* (Whose end is seen first is left to the system.) */
    ok(strncmp(ending(), "killed 143 ", 11) == 0, "%s: then they are killed", what);
    ok(strstr(heard.end.why, "without a checkpoint of its last batch") != NULL,
       "which is said");
}

static void
test_stops(void)
{
    begin_obedient("asked", 10, true);
    ask_to_end(SIGTERM);
    all->go = 3;
    finish();
    is_str(ending(), "preempted 75 0",
           "a run that is asked to end ends as its ranks say");
    is_str(facts("asked"), "preempted 75 1", "which is written down");

    begin_obedient("grace", 10, true);
    ask_to_end(SIGTERM);
    is_ended_after(12, "ranks have the grace and two seconds");

    begin_obedient("starting", 10, false);
    ask_to_end(SIGTERM);
    is_ended_after(5, "ranks that have not begun have five seconds");

    begin_obedient("begins", 10, false);
    ask_to_end(SIGTERM);
    pass(3);
    all->go = 1;
    hear_until(are_at, 2, "the first batch");
    is_ended_after(9, "who begins meanwhile has the grace");

    begin_obedient("twice", 0, true);
    ask_to_end(SIGTERM);
    pass(20);
    ok(both_live(), "without a grace there is no end to it");
    ask_to_end(SIGINT);
    is_ended_after(1, "the second signal gives them one second");
}

/* ---- who is told to save ---- */

static int
save(struct etd_rank *r, int start)
{
    (void)start;
    catch_signal(SIGUSR1);
    catch_signal(SIGUSR2);
    catch_signal(SIGHUP);
    struct et_run *run = open_run(r);
    train_to(r, 1);
    reach(1);
    wait_for_signal(SIGUSR2);
    et_run_close(&run);
    return end_rank(r, "preempted", 75);
}

static bool
has_saved(int times)
{
    return all->saves[0] >= times;
}

static void
test_saves(void)
{
    struct etd_launch l = launch_of("saves", 2);
    launch(&l, save);
    hear_until(are_at, 1, "the beginning");
    kill(all->supervisor, SIGHUP);
    for (int times = 1; times <= 2; times++) {
        etd_front_signal(front, SIGUSR1);
        hear_until(has_saved, times, "the signal to save");
    }
    etd_front_signal(front, SIGUSR2);
    finish();
    is_str(ending(), "preempted 75 0", "SIGUSR2 ends a run");
    ok(all->saves[0] == 2 && all->saves[1] == 0,
       "SIGUSR1 goes to its first rank, and to no other");
    ok(!((all->got[0] | all->got[1]) & 1 << SIGHUP), "SIGHUP goes to none");
}

/* ---- when a process is gone ---- */

/* The first leaves when it is let, the second later. */
static int
outlive(struct etd_rank *r, int start)
{
    (void)start;
    catch_signal(SIGTERM);
    struct et_run *run = open_run(r);
    train_to(r, 1);
    reach(1);
    wait_to_go(1 + own_place());
    et_run_close(&run);
    return end_rank(r, "done", 0);
}

static void
test_front_leaves(void)
{
    struct etd_launch l = launch_of("alone", 2);
    launch(&l, outlive);
    hear_until(are_at, 1, "the beginning");
    etd_front_free(&front);
    settle();
    all->go = 2;
    is_int(waitpid(all->supervisor, NULL, 0), all->supervisor, "(it ends)");
    is_int(all->code, 0, "a run goes on when its front has left");
    is_str(facts("alone"), "done 0 1", "to its end");
}

static bool
is_locked(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_CLOEXEC);
    bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

static void
test_supervisor_dies(void)
{
    struct etd_launch l = launch_of("orphans", 2);
    launch(&l, outlive);
    hear_until(are_at, 1, "the beginning");
    kill(all->supervisor, SIGKILL);
    hear_until(have_got, SIGTERM, "the signal of a supervisor's end");
    ok(is_locked("orphans"), "when the supervisor is gone its ranks are told to end");
    all->go = 1;
    hear_until(is_gone, 0, "the end of rank 0");
    ok(is_locked("orphans"), "while one lives nobody else can train there");
    ok(!heard.over, "and the run is not lost");
    all->go = 2;
    finish();
    is_str(ending(), "lost", "it is when they are gone");
    ok(!is_locked("orphans"), "and another may go on");
}

static volatile sig_atomic_t caught; /* a bit for each signal of the front */

static void
note_caught(int number)
{
    caught |= 1 << number;
}

static void
test_catch(void)
{
    static const int passed[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    struct etd_launch l = launch_of("caught", 2);
    int wanted = 0;
    launch(&l, outlive);
    etd_front_catch(note_caught);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        raise(passed[i]);
        wanted |= 1 << passed[i];
    }
    etd_front_catch(SIG_DFL);
    is_int(caught, wanted, "a front can catch each signal that it is to pass on");
    all->go = 2;
    finish();
}

/* ---- a run that cannot be opened ---- */

static int
be_refused(struct etd_rank *r, int start)
{
    struct et_run *run;
    const struct etd_rank_open open = {.threads = 1};
    (void)start;
    if (own_place() == 1) /* rank 0 has heard by now that it cannot be */
        wait_for_rank(0, 1);
    et_status status = etd_rank_open(context, r, &open, &run);
    reach(1);
    const struct et_error *e = et_error_get(context);
    snprintf(all->text[own_place()], SCRIPTED_TEXT, "%d %d %.200s; %.200s", (int)status,
             e->code, e->message, e->hint);
    et_error_clear(context);
    return end_rank(r, "", 2);
}

static void
test_refused(void)
{
    char want[SCRIPTED_TEXT];
    struct et_run *run;
    const struct et_run_config config = {.directory = "well"};
    struct etd_launch l = launch_of("well", 2);
    et_status status = et_run_open(context, &config, &run);
    const struct et_error *e = et_error_get(context);
    snprintf(want, sizeof want, "%d %d %.200s; %.200s", (int)status, e->code,
             e->message, e->hint);
    et_error_clear(context);
    launch(&l, be_refused);
    finish();
    for (int i = 0; i < 2; i++)
        is_str(all->text[i], want,
               "rank %d hears why the run cannot be, whenever it asks", i);
    is_str(ending(), " 2 0", "and what they make of it is the end");
    is_str(facts("well"), "done 0 1", "the run that is there is left as it is");
}

/* ---- what is printed early ---- */

enum { SOME = 40000, TOO_MUCH = 30000 };

static void
print_many(char c, int n)
{
    for (int i = 0; i < n; i++)
        putchar(c);
    fflush(stdout);
}

static int
print_early(struct etd_rank *r, int start)
{
    (void)start;
    print_many('a', SOME);
    wait_to_go(1);
    print_many('b', TOO_MUCH);
    wait_to_go(2);
    struct et_run *run = open_run(r);
    print_many('c', 10);
    et_run_close(&run);
    return end_rank(r, "done", 0);
}

static bool
has_printed(int n)
{
    return heard.raw >= (size_t)n;
}

static void
test_early(void)
{
    struct etd_launch l = launch_of("printed", 1);
    launch(&l, print_early);
    hear_until(has_printed, SOME, "what is printed");
    all->go = 1;
    hear_until(has_printed, SOME + TOO_MUCH, "more");
    all->go = 2;
    finish();
    const char *log = strchr(text_of("printed", "logs/rank0.txt"), 'a');
    size_t n = log ? strspn(log, "a") : 0, more = log ? strspn(log + n, "b") : 0;
    is_int((int64_t)n, SOME,
           "what is printed before there is a run is kept for its log");
    ok(n + more <= ETD_EARLY, "up to 64 KiB of it");
    ok(log && strstr(log + n + more, "cccccccccc"), "and all that is printed later");
}

/* ---- its hub ---- */

/* A program in place of etude, which writes down how it is called. It ends when its
 * socket does, as hubs do when the run ends; or at once. */
static void
write_hub(const char *name, const char *ends)
{
    FILE *f = fopen(name, "w");
    if (!f || fprintf(f, "#!/bin/sh\necho $$ $1 $2 >>hubs\n%s\n", ends) < 0 ||
        fclose(f) != 0 || chmod(name, 0700) != 0)
        bail("cannot write %s", name);
    unlink("hubs");
}

/* How often it has been called. */
static bool
has_called(int times)
{
    int n = 0;
    for (const char *at = text_of(".", "hubs"); (at = strchr(at, '\n')); at++)
        n++;
    return n >= times;
}

static bool
is_warned(int unused)
{
    (void)unused;
    return strstr(heard.text, "nobody can attach") != NULL;
}

/* The process that was called last. */
static pid_t
last_hub(void)
{
    const char *text = text_of(".", "hubs"), *line = text;
    for (const char *at = text; (at = strchr(at, '\n')) && at[1]; at++)
        line = at + 1;
    return (pid_t)strtol(line, NULL, 10);
}

static void
begin_with_hub(const char *directory, const char *program)
{
    struct etd_launch l = launch_of(directory, 2);
    l.program = program;
    launch(&l, outlive);
    hear_until(are_at, 1, "the beginning");
}

static void
test_hub(void)
{
    char line[64];
    write_hub("hub", "ls -l /proc/$$/fd >descriptors; exec cat <&3 >/dev/null");
    for (int fd = 3; fd < 1024; fd++) /* what this test was started with */
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    begin_with_hub("viewed", "./hub");
    pass(0.1);
    ok(!has_called(1), "a hub does not hold the first step back");
    pass(0.2);
    hear_until(has_called, 1, "a hub");
    pid_t first = last_hub();
    snprintf(line, sizeof line, "%d __hub viewed\n", (int)first);
    is_str(text_of(".", "hubs"), line, "then it is called for the run's directory");
    for (int ms = 0; !strstr(text_of(".", "descriptors"), "3 -> ") && ms < 30000; ms++)
        usleep(1000);
    ok(strstr(text_of(".", "descriptors"), "3 -> socket:") &&
           !strstr(text_of(".", "descriptors"), "pipe:"),
       "with its socket, and nothing else of the run") ||
        (diag("%s", text_of(".", "descriptors")), 0);
    pass(5);
    ok(!has_called(2), "and is not while it is there");
    kill(first, SIGKILL);
    for (int ms = 0; kill(first, 0) == 0 && ms < 30000; ms++)
        usleep(1000);
    settle();
    pass(0.75);
    ok(!has_called(2), "one that ends is not called again at once");
    pass(0.5);
    hear_until(has_called, 2, "another");
    settle();
    hear_rest();
    ok(!is_warned(0), "but after a second, which is not worth a word");
    all->go = 2;
    finish();
    is_str(ending(), "done 0 0", "the run ends,");
    for (int ms = 0; kill(last_hub(), 0) == 0 && ms < 30000; ms++)
        usleep(1000);
    ok(kill(last_hub(), 0) != 0, "and its hub with it");

    write_hub("bad", "exit 3");
    begin_with_hub("unseen", "./bad");
    for (int times = 1; times <= 3; times++) {
        pass(1.25);
        hear_until(has_called, times, "a hub");
        settle();
        hear_rest();
        if (times == 2)
            ok(!is_warned(0), "two hubs that end at once may be an accident");
    }
    hear_until(is_warned, 0, "a warning");
    ok(strstr(heard.text, "the hub does not begin (exit code 3)") != NULL,
       "the third in a row is said, with how it ended");
    all->go = 2;
    finish();
    is_str(ending(), "done 0 0", "the run goes on without");
}

int
main(void)
{
    begin_scripted();
    test_well();
    for (way = ways; way < ways + sizeof ways / sizeof *ways; way++)
        test_way();
    test_numbers();
    test_leave();
    for (crash = crashes; crash < crashes + sizeof crashes / sizeof *crashes; crash++)
        test_crashes();
    test_not_again();
    test_stops();
    test_saves();
    test_front_leaves();
    test_supervisor_dies();
    test_catch();
    test_refused();
    test_early();
    test_hub();
    end_scripted();
    return done();
}
