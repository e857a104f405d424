/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor decides, row by row (RELIABILITY.md section 4): whether a run that
 * has crashed is started again, how long a rank may stand still, who is to blame, how
 * long a stop may take, and what a run came to. That the supervisor does as is decided
 * here, runs of processes show: processes.t, hangs.t, signals.t. */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "dist/run/supervisor.h"
#include "t/tap.h"

/* ---- crashes ---- */

enum { MOST = 5, SPENT = -1, LOOP = -2 };

/* Crashes at STEP, as many as WANT has: the seconds until the run is started again,
 * or why it is not. */
static const struct {
    const char *what;
    int64_t step[MOST];
    int want[MOST + 1];
} crashes[] = {
    {"three crashes are survived, after 1, 2 and 4 s, and no fourth",
     {10, 20, 30, 40},
     {1, 2, 4, SPENT}},
    {"199 steps further on the budget is what it was",
     {10, 20, 219, 418},
     {1, 2, 4, SPENT}},
    {"after 200 steps it is full again", {10, 20, 220, 230, 240}, {1, 2, 1, 2, 4}},
    {"which counts from the crash before, not from the first",
     {150, 300, 450, 600},
     {1, 2, 4, SPENT}},
    {"also when it was spent", {10, 20, 30, 230, 240}, {1, 2, 4, 1, 2}},
    {"the third crash in a row at a step is the last", {50, 50, 50}, {1, 2, LOOP}},
    {"also before any step", {0, 0, 0}, {1, 2, LOOP}},
    {"also where the budget is full again", {50, 300, 300, 300}, {1, 1, 2, LOOP}},
    {"and not where another step lies between", {50, 60, 50, 50}, {1, 2, 4, SPENT}},
    {"a crash before the first batch takes nothing back: the steps were not further",
     {300, 0, 300, 320},
     {1, 2, 4, SPENT}},
    {"nor does one at an earlier checkpoint", {900, 600, 1000, 1050}, {1, 2, 4, SPENT}},
    {"200 steps behind the furthest crash are", {900, 600, 1100}, {1, 2, 1}},
};

static void
test_crashes(void)
{
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        struct etd_crashes c;
        bool right = true;
        etd_crashes_init(&c);
        for (int k = 0; k < MOST && crashes[i].want[k]; k++) {
            double seconds;
            enum etd_again again = etd_crashes_add(&c, crashes[i].step[k], &seconds);
            int got = again == ETD_SPENT  ? SPENT
                      : again == ETD_LOOP ? LOOP
                                          : (int)seconds;
            if (got != crashes[i].want[k])
                diag("crash %d, at step %d: got %d, want %d", k + 1,
                     (int)crashes[i].step[k], got, crashes[i].want[k]);
            right = right && got == crashes[i].want[k];
        }
        ok(right, "%s", crashes[i].what);
    }
}

/* ---- hangs ---- */

static const struct {
    const char *what;
    double asked;
    int64_t steps; /* that it has made behind its first, of */
    double each;   /* seconds, but for one of */
    double longest;
    double want;
} hangs[] = {
    {"nobody says how long: 5 minutes", 0, 0, 1, 1, 300},
    {"also after 199 steps", 0, 199, 1, 1, 300},
    {"after 200 steps a minute is enough", 0, 200, 1, 1, 60},
    {"or ten of the longest step", 0, 200, 1, 9, 90},
    {"but no more than 5 minutes", 0, 200, 1, 70, 300},
    {"the recipe's timeout is what it says", 20, 0, 1, 1, 20},
    {"however long the steps are", 20, 500, 1, 30, 20},
    {"and may be longer than 5 minutes", 3600, 500, 1, 1, 3600},
};

static void
test_hangs(void)
{
    for (size_t i = 0; i < sizeof hangs / sizeof *hangs; i++) {
        struct etd_steps s = {0};
        double t = 1000;
        etd_steps_look(&s, t, 1);
        for (int64_t k = 1; k <= hangs[i].steps; k++)
            etd_steps_look(&s, t += k == 100 ? hangs[i].longest : hangs[i].each, 1 + k);
        is_near(etd_hang_seconds(hangs[i].asked, &s), hangs[i].want, 1e-9, "%s",
                hangs[i].what);
    }
}

static void
test_looks(void)
{
    struct etd_steps s = {0};
    etd_steps_look(&s, 1000, 0);
    etd_steps_look(&s, 1001, 1);
    etd_steps_look(&s, 1021, 201);
    is_near(s.longest, 0.1, 1e-9,
            "steps that are seen together took the same time each");
    etd_steps_look(&s, 1041, 201);
    is_near(s.longest, 0.1, 1e-9, "a look at which there is no new step says nothing");
    etd_steps_look(&s, 1051, 202);
    is_near(s.longest, 30, 1e-9, "the next counts from the last step that was seen");
    etd_steps_look(&s, 1052, 203);
    is_near(s.longest, 30, 1e-9, "a short one later changes nothing");
}

/* A run that goes on after STEPS: its first step takes as long as its start. Returns
 * when that was. */
static double
tell_start(struct etd_steps *s, int64_t steps)
{
    *s = (struct etd_steps){0};
    etd_steps_look(s, 1000, 0);
    etd_steps_look(s, 1005, 0);
    etd_steps_look(s, 1200, steps + 1);
    return 1200;
}

static void
test_starts(void)
{
    struct etd_steps s;
    double t = tell_start(&s, 0);
    is_near(s.longest, 0, 0, "what a run takes to begin is no step");
    t = tell_start(&s, 10000);
    is_near(etd_hang_seconds(0, &s), 300, 1e-9,
            "a run that goes on after 10,000 steps is not settled after its next one");
    for (int k = 1; k < 200; k++)
        etd_steps_look(&s, t += 7, 10001 + k);
    is_near(etd_hang_seconds(0, &s), 300, 1e-9, "nor after 199 behind that");
    etd_steps_look(&s, t += 7, 10201);
    is_near(etd_hang_seconds(0, &s), 70, 1e-9,
            "after 200 it is, by how long its own steps take");
}

/* ---- who is behind ---- */

/* Ranks of a run that hangs: how far they have gone on; in which collective or behind
 * which, and of so many elements. */
#define IN(moved, number, elements)                                                    \
    .pid = 1, .moves = (moved), .look = {.busy = true, .seq = (number), .n = (elements)}
#define BEHIND(moved, number, elements)                                                \
    .pid = 1, .moves = (moved), .look = {.seq = (number), .n = (elements)}
#define FREE(moved)  BEHIND(moved, 0, 0)
#define ENDED(moved) .moves = (moved)

/* Which is to blame, and which of the others is named as one that waits; -1: none. */
static const struct {
    const char *what;
    struct etd_sup_rank rank[3]; /* fewer ranks: the others have moves 0 */
    int behind, waits;
} stands[] = {
    {"of ranks in no collective the one that has gone on the least is behind",
     {{FREE(70)}, {FREE(69)}, {FREE(71)}},
     1,
     -1},
    {"however many collectives they have behind them",
     {{BEHIND(70, 8, 64)}, {BEHIND(69, 9, 64)}, {BEHIND(71, 8, 64)}},
     1,
     -1},
    {"one that has ended is not", {{FREE(70)}, {ENDED(50)}, {FREE(71)}}, 0, -1},
    {"of ranks in the same collective likewise",
     {{IN(70, 9, 64)}, {IN(69, 9, 64)}, {IN(71, 9, 64)}},
     1,
     -1},
    {"one in no collective is, while others wait in theirs: also if it has gone on "
     "more",
     {{IN(70, 9, 64)}, {FREE(75)}, {IN(71, 9, 64)}},
     1,
     0},
    {"also if it was in the same one, and has left it",
     {{IN(70, 9, 64)}, {BEHIND(75, 9, 64)}, {IN(71, 9, 64)}},
     1,
     0},
    {"one whose collectives are fewer is: also if it has gone on more",
     {{IN(70, 9, 64)}, {IN(75, 8, 64)}, {IN(71, 9, 64)}},
     1,
     0},
    {"also if it has company",
     {{IN(70, 8, 64)}, {IN(69, 8, 64)}, {IN(60, 9, 64)}},
     1,
     2},
    {"of ranks that wait in different ones the one that is alone is: also if it has "
     "gone on less",
     {{IN(70, 9, 64)}, {IN(69, 9, 1)}, {IN(71, 9, 64)}},
     1,
     0},
    {"of two that both are alone the one that has gone on more: it has left one out",
     {{IN(70, 9, 64)}, {IN(71, 9, 1)}},
     1,
     0},
    {"one whose process is stopped is, whatever it is in",
     {{IN(70, 9, 64)}, {IN(75, 9, 64), .stopped = true}, {FREE(60)}},
     1,
     -1},
    {"also where others wait in a later one",
     {{IN(70, 9, 64)}, {IN(75, 8, 64), .stopped = true}, {FREE(60)}},
     1,
     0},
};

/* Whoever has stood still the longest, and in whatever order the ranks are. */
static void
test_behind(void)
{
    for (size_t i = 0; i < sizeof stands / sizeof *stands; i++) {
        struct etd_sup_rank all[2][3];
        int n = 0, wrong = 0;
        while (n < 3 && stands[i].rank[n].moves > 0)
            n++;
        for (int k = 0; k < n; k++)
            all[0][k] = all[1][n - 1 - k] = stands[i].rank[k];
        for (int back = 0; back < 2; back++)
            for (int longest = 0; longest < n; longest++) {
                int got = etd_rank_behind(all[back], n, longest);
                wrong += all[back][longest].pid > 0 &&
                         got != (back ? n - 1 - stands[i].behind : stands[i].behind);
            }
        is_int(wrong, 0, "%s", stands[i].what);
        is_int(etd_rank_that_waits(all[0], n, stands[i].behind), stands[i].waits,
               "... and %s waits for it", stands[i].waits < 0 ? "nobody" : "another");
    }
}

/* What makes two collectives with the same number different ones. */
static void
test_different(void)
{
    static const struct {
        const char *what;
        struct et_comm_look look;
    } row[] = {
        {"another kind", {.kind = ET_COMM_BROADCAST}},
        {"another dtype", {.dtype = ET_F64}},
        {"another size", {.n = 2}},
        {"another step", {.mark = {.step = 1}}},
        {"another part of the step", {.mark = {.which = 1}}},
        {"another set of tensors", {.mark = {.set = 1}}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_sup_rank all[3];
        for (int k = 0; k < 3; k++) {
            all[k] = (struct etd_sup_rank){.pid = 1, .moves = 70 + (uint64_t)k};
            if (k == 1)
                all[k].look = row[i].look;
            all[k].look.busy = true;
            all[k].look.seq = 9;
        }
        is_int(etd_rank_behind(all, 3, 0), 1,
               "one that waits with %s is in another collective", row[i].what);
    }
}

static void
test_equal(void)
{
    const struct etd_sup_rank all[] = {{IN(70, 9, 64)}, {IN(70, 9, 1)}};
    ok(etd_rank_behind(all, 2, 0) == 1 && etd_rank_behind(all, 2, 1) == 1,
       "of two that are different in nothing else it is the last, each time");
}

/* ---- stops ---- */

static const struct {
    const char *what;
    int stops;
    double grace;
    bool starting;
    double first, later;
} stops[] = {
    {"the first signal gives ranks their grace, and 2 s to be heard of", 1, 25, false,
     27, 27},
    {"without a limit nobody is killed", 1, 0, false, 0, 0},
    {"a run that starts has 5 s, and its grace once it trains", 1, 25, true, 5, 27},
    {"also without a limit", 1, 0, true, 5, 0},
    {"the second signal gives a second", 2, 25, false, 1, 1},
    {"also without a limit", 2, 0, false, 1, 1},
    {"also where the run starts", 2, 25, true, 1, 1},
    {"and so does the third", 3, 25, true, 1, 1},
};

static void
test_stops(void)
{
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        struct etd_patience p =
            etd_stop_patience(stops[i].stops, stops[i].grace, stops[i].starting);
        bool right = p.first == stops[i].first && p.later == stops[i].later;
        ok(right, "%s", stops[i].what);
        if (!right)
            diag("got %g and %g s", p.first, p.later);
    }
}

/* ---- ends ---- */

/* As waitpid has them. */
#define EXITED(code) ((code) << 8)

#define UNSAVED "the run was ended without a checkpoint of its last batch"

static const struct {
    const char *what;
    struct etd_failure f; /* why is "it broke" */
    int exit;
    const char *state, *why;
    bool said;
} ends[] = {
    {"a rank that crashes fails the run",
     {.status = SIGSEGV, .is_open = true, .has_directory = true},
     1,
     "failed",
     "it broke",
     false},
    {"one that ends with another exit than it has told, likewise",
     {.status = EXITED(3), .is_open = true, .has_directory = true},
     1,
     "failed",
     "it broke",
     false},
    {"one that ends for a signal that nobody sent to the run, likewise",
     {.status = EXITED(128 + SIGTERM), .is_open = true, .has_directory = true},
     1,
     "failed",
     "it broke",
     false},
    {"one that is killed after a signal to the run was too slow to save: 128 + that",
     {.status = SIGKILL, .stop_signal = SIGINT, .is_open = true, .has_directory = true},
     128 + SIGINT,
     "killed",
     UNSAVED,
     false},
    {"so was one that ends itself as its grace is over",
     {.status = EXITED(128 + SIGTERM),
      .stop_signal = SIGTERM,
      .is_open = true,
      .has_directory = true},
     128 + SIGTERM,
     "killed",
     UNSAVED,
     false},
    {"the signal that counts is the run's first, not the rank's",
     {.status = EXITED(128 + SIGTERM),
      .stop_signal = SIGUSR2,
      .is_open = true,
      .has_directory = true},
     128 + SIGUSR2,
     "killed",
     UNSAVED,
     false},
    {"an exit of its own after such a signal is a failure",
     {.status = EXITED(1),
      .stop_signal = SIGTERM,
      .is_open = true,
      .has_directory = true},
     1,
     "failed",
     "it broke",
     false},
    {"so is a crash after it",
     {.status = SIGSEGV,
      .stop_signal = SIGTERM,
      .is_open = true,
      .has_directory = true},
     1,
     "failed",
     "it broke",
     false},
    {"also of a program that has caught it, and of one that gives up",
     {.status = EXITED(128 + SIGABRT),
      .stop_signal = SIGINT,
      .is_open = true,
      .has_directory = true},
     1,
     "failed",
     "it broke",
     false},
    {"and where the run was being started again",
     {.status = SIGBUS,
      .stop_signal = SIGTERM,
      .is_open = true,
      .has_directory = true,
      .again = true},
     1,
     "failed",
     "it broke",
     false},
    {"one that hangs after it, and is told to say where, was too slow",
     {.status = SIGABRT,
      .stop_signal = SIGTERM,
      .hung = true,
      .is_open = true,
      .has_directory = true},
     128 + SIGTERM,
     "killed",
     UNSAVED,
     false},
    {"a run that was being started again has saved what there was: preempted",
     {.status = SIGKILL,
      .stop_signal = SIGTERM,
      .is_open = true,
      .has_directory = true,
      .again = true},
     75,
     "preempted",
     "",
     false},
    {"but not where the rank failed by itself",
     {.status = EXITED(1),
      .stop_signal = SIGTERM,
      .is_open = true,
      .has_directory = true,
      .again = true},
     1,
     "failed",
     "it broke",
     false},
    {"nor without a signal to the run",
     {.status = SIGSEGV, .is_open = true, .has_directory = true, .again = true},
     1,
     "failed",
     "it broke",
     false},
    {"a run that is killed on request is killed: 143",
     {.status = SIGKILL, .killed = true, .is_open = true, .has_directory = true},
     128 + SIGTERM,
     "killed",
     UNSAVED,
     false},
    {"also if a signal came before: that one",
     {.status = EXITED(1),
      .stop_signal = SIGINT,
      .killed = true,
      .is_open = true,
      .has_directory = true},
     128 + SIGINT,
     "killed",
     UNSAVED,
     false},
    {"also while it is started again",
     {.status = SIGKILL,
      .killed = true,
      .is_open = true,
      .has_directory = true,
      .again = true},
     128 + SIGTERM,
     "killed",
     UNSAVED,
     false},
    {"ranks that stand still hang: 5",
     {.status = SIGABRT, .hung = true, .is_open = true, .has_directory = true},
     5,
     "hung",
     "it broke",
     false},
    {"also before there is a run",
     {.status = SIGABRT, .hung = true},
     5,
     "hung",
     "it broke",
     false},
    {"a rank that cannot be started: 69",
     {.status = 0, .no_rank = true, .is_open = true, .has_directory = true},
     69,
     "failed",
     "it broke",
     false},
    {"one that ends before there is a run has said why: its exit",
     {.status = EXITED(65)},
     65,
     "",
     "it broke",
     true},
    {"one that crashes there has not: 1",
     {.status = SIGSEGV},
     1,
     "",
     "it broke",
     false},
    {"a signal before there is a run: 128 + that, and no state",
     {.status = SIGKILL, .stop_signal = SIGTERM},
     128 + SIGTERM,
     "",
     UNSAVED,
     false},
};

static void
test_ends(void)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct etd_failure f = ends[i].f;
        f.why = "it broke";
        struct etd_end end = etd_failure_end(&f);
        bool right = end.exit == ends[i].exit && end.said == ends[i].said &&
                     strcmp(end.state, ends[i].state) == 0 &&
                     strcmp(end.why, ends[i].why) == 0;
        ok(right, "%s", ends[i].what);
        if (!right)
            diag("got exit %d, state '%s', said %d, '%s'", end.exit, end.state,
                 end.said, end.why);
    }
}

/* ---- ranks ---- */

static const struct {
    const char *what;
    int n, exit[4], want;
} ranks[] = {
    {"all ranks end well: rank 0's end is the run's", 4, {0}, 0},
    {"one of the others fails: its end", 4, {0, 0, 4, 0}, 2},
    {"two of the others fail, in two ways: the first of them", 4, {0, 3, 4, 1}, 1},
    {"rank 0 fails too, in another way: rank 0's", 4, {75, 1, 1, 1}, 0},
    {"rank 0 only lost another one: the end of that", 4, {1, 1, 65, 1}, 2},
    {"the last rank counts", 4, {0, 0, 0, 1}, 3},
    {"one rank has its own end", 1, {3}, 0},
};

static void
test_ranks(void)
{
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        struct etd_sup_rank all[4] = {0};
        for (int k = 0; k < 4; k++)
            all[k].end.exit = ranks[i].exit[k];
        is_int(etd_rank_that_counts(all, ranks[i].n), ranks[i].want, "%s",
               ranks[i].what);
    }
}

/* The rank whose exit tells why the run ended: the first of two or the second. */
static void
test_reasons(void)
{
    static const struct {
        int first, second, counts;
    } row[] = {
        {0, 0, 0},   {0, 1, 1},   {0, 143, 1}, {1, 0, 0},  {1, 1, 0},
        {1, 2, 1},   {1, 5, 1},   {1, 75, 0},  {1, 76, 1}, {1, 127, 1},
        {1, 128, 0}, {1, 143, 0}, {2, 5, 0},   {5, 1, 0},  {143, 5, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_sup_rank rank[2] = {{.pid = 0}};
        rank[0].end.exit = row[i].first;
        rank[1].end.exit = row[i].second;
        is_int(etd_rank_that_counts(rank, 2), row[i].counts,
               "of two ranks that exit with %d and %d the right one tells why",
               row[i].first, row[i].second);
    }
}

/* A step that was looked at twice lasts from the first look. */
static void
test_first_looks(void)
{
    struct etd_steps s = {0};
    etd_steps_look(&s, 100, 5);
    etd_steps_look(&s, 160, 5);
    is_near(s.longest, 0, 0, "the first step of a run is not measured");
    etd_steps_look(&s, 180, 6);
    ok(s.longest == 80 && s.first == 5 && s.last == 6,
       "the second step of a run is measured from its first look");
}

/* Which signals are those of a program that is wrong, whether they ended it or it has
 * caught them and says so. */
static void
test_crash_signals(void)
{
    static const bool crash[32] = {
        [SIGILL] = true, [SIGTRAP] = true, [SIGABRT] = true, [SIGBUS] = true,
        [SIGFPE] = true, [SIGSEGV] = true, [SIGSYS] = true,
    };
    for (int number = 1; number < 32; number++)
        ok(etd_is_crash(number) == crash[number] &&
               etd_is_crash(EXITED(128 + number)) == crash[number] &&
               !etd_is_crash(EXITED(number)),
           "an end by signal %d is %s crash", number, crash[number] ? "a" : "no");
}

static void
test_three_reasons(void)
{
    static const int row[][4] = {
        {0, 1, 5, 2}, {1, 5, 2, 1}, {0, 5, 1, 1},
        {1, 0, 2, 2}, {0, 0, 1, 2}, {1, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_sup_rank rank[3] = {{.pid = 0}};
        for (int k = 0; k < 3; k++)
            rank[k].end.exit = row[i][k];
        is_int(etd_rank_that_counts(rank, 3), row[i][3],
               "of exits with %d, %d and %d the right one tells why", row[i][0],
               row[i][1], row[i][2]);
    }
}

int
main(void)
{
    test_reasons();
    test_three_reasons();
    test_crash_signals();
    test_first_looks();
    test_crashes();
    test_hangs();
    test_looks();
    test_starts();
    test_behind();
    test_different();
    test_equal();
    test_stops();
    test_ends();
    test_ranks();
    return done();
}
