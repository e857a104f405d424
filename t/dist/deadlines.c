/* SPDX-License-Identifier: Apache-2.0 */
/* What has a time in the supervisor has it of a clock that stops with the machine: a
 * command for which ranks and supervisor had no time has not expired (RELIABILITY.md
 * R27), and a rank for which there was none has not hung (R13). Of the commands that
 * wait meanwhile none gives way to another. */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/supervisor.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { TTL = 10, TIMEOUT = 20 }; /* seconds */

static double time_is = 1000;

static double
test_clock(void)
{
    return time_is;
}

static struct etd_launch launch = {.nproc = 1, .timeout = TIMEOUT};
static struct etd_sup_rank rank;
static struct etd_supervisor s = {
    .l = &launch,
    .rank = &rank,
    .front = -1,
    .hub_fd = -1,
    .failed = -1,
};

/* As a supervisor does whose machine has time for it: twice a second. */
static void
pass(double seconds)
{
    for (double end = time_is + seconds; time_is < end; time_is += 0.5) {
        etd_sup_expire(&s);
        etd_sup_watch(&s);
    }
}

/* ---- a command ---- */

static int
waiting(void)
{
    int n = 0;
    for (int i = 0; i < ETD_SUP_PENDING; i++)
        n += s.pending[i].id != 0;
    return n;
}

static void
test_command(void)
{
    const struct et_request request = {.op = ET_REQUEST_PAUSE, .id = 1};
    if (!etd_board_ask(s.board, &request))
        bail("the board is full");
    s.pending[0] = (struct etd_sup_pending){.id = 1, .until = etd_sup_now(&s) + TTL};
    pass(4);
    is_int(waiting(), 1, "a command waits for a rank to take it");
    time_is += 3600;
    pass(4);
    is_int(waiting(), 1, "also when the machine has stood still for an hour");
    pass(3);
    is_int(waiting(), 0, "and expires when its time is over");
    is_int((int)s.kept[0].kind, ETD_EXPIRED, "which is its answer");
    ok(!etd_board_next(s.board, &(struct et_request){0}), "no rank will take it");
}

/* ---- many commands ---- */

/* Requests FIRST, FIRST + 1 ... until there is no room: how many. */
static int
ask_many(uint64_t first)
{
    int n = 0;
    while (n < 2 * ETD_BOARD_ROOM &&
           etd_board_ask(s.board, &(struct et_request){.id = first + (uint64_t)n}))
        n++;
    return n;
}

/* Rank 0 takes all that waits: how many of requests FIRST, FIRST + 1 ... without LEFT
 * came, in their order; -1: something else did. */
static int
take_many(uint64_t first, uint64_t left)
{
    struct et_request r;
    int n = 0;
    bool right = true;
    for (uint64_t next = first; etd_board_next(s.board, &r); next = r.id + 1, n++) {
        next += next == left;
        right = right && r.id == next;
    }
    return right ? n : -1;
}

static void
test_many_commands(void)
{
    is_int(ask_many(100), ETD_BOARD_ROOM, "32 commands wait for rank 0, and no more");
    ok(etd_board_withdraw(s.board, 105) && !etd_board_withdraw(s.board, 105) &&
           !etd_board_withdraw(s.board, 100 + ETD_BOARD_ROOM),
       "one of them expires, once");
    is_int(ask_many(200), 0, "which makes no room before rank 0 comes by");
    is_int(take_many(100, 105), ETD_BOARD_ROOM - 1,
           "rank 0 takes the others, in their order");
    ok(!etd_board_withdraw(s.board, 106), "what it has taken does not expire");
    is_int(ask_many(300), ETD_BOARD_ROOM, "then there is room for 32 again");
    is_int(take_many(300, 0), ETD_BOARD_ROOM, "which are others");
}

/* ---- a rank that stands still ---- */

/* A process in the place of the rank's: it waits to be ended. */
static pid_t
stand(void)
{
    pid_t pid = fork();
    if (pid < 0)
        bail("no process");
    if (pid > 0)
        return pid;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    alarm(20); /* whatever becomes of the test */
    for (;;)
        pause();
}

static void
test_hang(void)
{
    static const enum etd_phase idle[] = {ETD_PHASE_STARTING, ETD_PHASE_PAUSED,
                                          ETD_PHASE_ENDED};
    int status;
    rank.pid = stand();
    s.run = (struct et_run *)&s; /* it is open: nobody looks into it */
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        etd_board_move(s.board, 0, idle[i]);
        pass(3 * TIMEOUT);
        ok(!s.hung, "a rank that is %s does not hang", etd_phase_name((int)idle[i]));
    }
    for (int phase = ETD_PHASE_DATA; phase < ETD_PHASE_COUNT; phase++) {
        etd_board_move(s.board, 0, (enum etd_phase)phase);
        pass(TIMEOUT - 2);
    }
    ok(!s.hung, "nor does one that moves within its time");
    etd_board_move(s.board, 0, ETD_PHASE_DATA);
    pass(TIMEOUT - 4);
    time_is += 3600;
    pass(2);
    ok(!s.hung, "nor one for which the machine has had no time");
    pass(3);
    ok(s.hung && s.failed == 0, "one that stands still for all of it does");
    ok(strstr(s.why, "rank 0 has not moved for 2") &&
           strstr(s.why, "s: after batch 0, in reading data"),
       "and is named, with where: %s", s.why);
    ok(s.kill_at > etd_sup_now(&s), "it has time to say where it stands");
    ok(waitpid(rank.pid, &status, 0) == rank.pid && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT,
       "and is told to");
}

/* ---- another start ---- */

/* Ranks that have not begun are looked at once a second. */
static void
pass_in_start(double seconds)
{
    for (double end = time_is + seconds; time_is < end; time_is += 1)
        etd_sup_watch_start(&s);
}

/* Of the run that has hung, which was at its 500th batch by then. */
static void
test_second_start(void)
{
    const struct et_request late = {.op = ET_REQUEST_PAUSE, .id = 2};
    for (int64_t step = 1; step <= 500; step++)
        etd_steps_look(&s.steps, time_is += 1, step);
    launch.timeout = 0;
    is_near(etd_sup_timeout(&s), 60, 1e-9, "(a run is settled, and hangs after 60 s)");
    s.began_stood = 10;
    etd_board_step(s.board, 0, 500);
    etd_board_collective(s.board, 0, &(struct et_comm_look){.busy = true, .seq = 9});
    if (!etd_board_ask(s.board, &late))
        bail("the board is full");

    etd_sup_forget_start(&s);
    is_near(etd_sup_timeout(&s), 300, 1e-9,
            "when it is started again, it has the time of one that is not");
    launch.timeout = TIMEOUT;
    ok(s.kill_at == 0, "its new ranks are not killed as the old ones were to be");
    ok(!etd_board_next(s.board, &(struct et_request){0}),
       "nothing that was asked of those is asked of them");
    const struct et_comm_look look = etd_board_look(s.board, 0);
    ok(s.board->rank[0].phase == ETD_PHASE_STARTING && s.board->rank[0].step == 0 &&
           s.board->rank[0].recorder.n == 0 && !look.busy && look.seq == 0,
       "they are starting, have done no batch, and are in no collective");
    rank = (struct etd_sup_rank){.pid = stand(), .stack = -1};
    pass_in_start(TIMEOUT - 5);
    ok(!s.hung, "and may do nothing for as long as any start");
    time_is += 3600;
    pass_in_start(2);
    ok(!s.hung, "and longer if the machine has had no time for them");
    pass(1);
    etd_board_move(s.board, 0, ETD_PHASE_DATA);
    pass(TIMEOUT - 2);
    ok(!s.hung, "a rank may stand still for as long as before");
    pass(4);
    ok(s.hung && s.failed == 0, "and hangs after the same time");
    ok(waitpid(rank.pid, NULL, 0) == rank.pid, "which ends it");

    etd_sup_forget_start(&s);
    rank = (struct etd_sup_rank){.pid = stand(), .stack = -1};
    pass_in_start(TIMEOUT + 2);
    ok(s.hung && strstr(s.why, "after batch 0, in starting"),
       "one that does nothing for all of a start hangs, too: %s", s.why);
    ok(waitpid(rank.pid, NULL, 0) == rank.pid, "and is ended");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    seams.monotonic = test_clock;
    eti_ctx_set_seams(cx, &seams);
    s.cx = cx;
    s.alive = 1;
    need(cx, etd_board_new(cx, 1, &s.board));
    etd_board_clear(s.board);
    test_command();
    test_many_commands();
    test_hang();
    test_second_start();
    etd_board_free(&s.board);
    et_ctx_free(&cx);
    return done();
}
