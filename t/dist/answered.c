/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor answers to commands, and what it keeps of them: the numbers of an
 * answer, as many commands as may wait, and those that come a second time. The test is
 * the hub and rank 0, and has the clock. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/journal/events.h"
#include "dist/run/supervisor.h"
#include "dist/wire/errors.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { STEP = 17, REVISION = 5 };

static double time_is = 1000;
static int hub; /* our end of its socket */
static struct etd_launch launch = {.nproc = 1, .world = 1};
static struct etd_sup_rank rank = {.pidfd = -1, .stack = -1};
static struct etd_supervisor s = {
    .l = &launch, .rank = &rank, .hub_fd = -1, .front = -1, .failed = -1};

static double
test_clock(void)
{
    return time_is;
}

/* Command NUMBER, as the hub passes it on. */
static void
ask(int number, enum etd_op op, int64_t if_rev, const char *value)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = {.kind = ETD_CMD};
    struct etd_command c = {.op = op, .if_rev = if_rev, .ttl_ms = 9000, .who = "me"};
    c.id[0] = (unsigned char)number;
    c.id[1] = (unsigned char)(number >> 8);
    snprintf(c.value, sizeof c.value, "%s", value);
    size_t n = etd_command_write(bytes, sizeof bytes, &head, &c);
    if (send(hub, bytes, n, 0) < 0)
        bail("no hub");
    etd_sup_hear(&s);
}

/* The answer that the hub hears now; kind ETD_KIND_COUNT: it hears none. */
static struct etd_answer
hear(void)
{
    static char bytes[ETD_CONTROL_BYTES];
    struct etd_answer a = {.kind = ETD_KIND_COUNT};
    struct etd_frame f;
    struct etd_fault fault;
    ssize_t n = recv(hub, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0 &&
        (etd_read(bytes, (size_t)n, &f, &fault) != ET_OK || !etd_answer_read(&f, &a)))
        bail("the hub hears no answer");
    return a;
}

static bool
is_for(const struct etd_answer *a, int number)
{
    return a->id[0] == (number & 255) && a->id[1] == number >> 8;
}

/* How many commands the log has; the batch and the text of the last one. */
static int
logged(int64_t *ba, char *text, size_t size)
{
    struct et_events *log;
    struct et_record r;
    bool got = true;
    int n = 0;
    et_run_flush(s.run);
    need(s.cx, et_events_open(s.cx, "run/events.log", &log));
    while (et_events_next(log, &r, &got) == ET_OK && got)
        if (r.kind == ET_RECORD_COMMAND) {
            n++;
            *ba = r.ba;
            snprintf(text, size, "%s", r.text);
        }
    et_events_close(&log);
    return n;
}

/* What is done at once is answered with the batch and the settings that there are. */
static void
test_at_once(void)
{
    static const struct {
        enum etd_op op;
        const char *value, *logged;
    } row[] = {
        {ETD_OP_TAKE, "", "me take -> taken"},
        {ETD_OP_ANNOTATE, "look here", "me annotate -> noted"},
        {ETD_OP_KILL, "0", "me kill 0 -> killed"},
        {ETD_OP_KILL, "", "me kill -> killed"},
    };
    int status;
    s.revision = REVISION;
    for (int i = 0; i < (int)(sizeof row / sizeof *row); i++) {
        char text[ET_REQUEST_TEXT] = "";
        int64_t ba = 0;
        rank.pid = fork();
        if (rank.pid == 0)
            for (;;)
                pause();
        s.board->rank[0].step = STEP + i;
        ask(1000 + i, row[i].op, REVISION, row[i].value);
        const struct etd_answer a = hear();
        ok(a.kind == ETD_APPLIED && is_for(&a, 1000 + i) && a.step == STEP + i &&
               a.rev == REVISION && a.code == 0 && !a.text[0],
           "%s is applied, after %d batches, and leaves the settings as they are",
           row[i].logged, STEP + i);
        is_int(logged(&ba, text, sizeof text), i + 1, "the log has it");
        is_str(text, row[i].logged, "with who asked for what");
        is_int(ba, STEP + i, "and when");
        kill(rank.pid, SIGTERM); /* which changes nothing where it was killed */
        ok(waitpid(rank.pid, &status, 0) == rank.pid && WIFSIGNALED(status) &&
               WTERMSIG(status) == (row[i].op == ETD_OP_KILL ? SIGKILL : SIGTERM),
           "the rank %s", row[i].op == ETD_OP_KILL ? "is ended" : "goes on");
        is_int(s.killed, row[i].op == ETD_OP_KILL && !row[i].value[0],
               "all of the run is killed only where no rank is named");
    }
    s.killed = false;
    rank.pid = 0;
}

/* What nobody but the supervisor answers: settings that are others by now, and ranks
 * that train no more. */
static void
test_refused(void)
{
    static const struct {
        int64_t if_rev;
        int alive;
        enum etd_phase phase;
        int code; /* 0: it waits for rank 0 */
    } row[] = {
        {0, 1, ETD_PHASE_DATA, ETD_E_REVISION},
        {REVISION - 1, 1, ETD_PHASE_DATA, ETD_E_REVISION},
        {REVISION + 1, 1, ETD_PHASE_DATA, ETD_E_REVISION},
        {REVISION, 1, ETD_PHASE_ENDED, ETD_E_FULL},
        {REVISION, 0, ETD_PHASE_DATA, ETD_E_FULL},
        {REVISION, 1, ETD_PHASE_DATA, 0},
    };
    struct et_request r;
    for (int i = 0; i < (int)(sizeof row / sizeof *row); i++) {
        s.alive = row[i].alive;
        etd_board_move(s.board, 0, row[i].phase);
        ask(1100 + i, ETD_OP_PAUSE, row[i].if_rev, "");
        const struct etd_answer a = hear();
        is_int(a.kind == ETD_REJECTED && is_for(&a, 1100 + i) ? a.code : 0, row[i].code,
               "a command for revision %d, %d ranks and phase %d", (int)row[i].if_rev,
               row[i].alive, (int)row[i].phase);
        is_int(etd_board_next(s.board, &r), row[i].code == 0,
               "rank 0 is asked, or not");
    }
    s.alive = 1;
    etd_sup_answered(&s, "0 1 1 of a signal");
    is_int(hear().kind, ETD_KIND_COUNT, "what a signal did is no command's answer");
    ask(1105, ETD_OP_PAUSE, REVISION, "");
    is_int(hear().kind, ETD_KIND_COUNT, "one that comes again while it waits");
    ok(!etd_board_next(s.board, &r), "is asked of rank 0 once");
    is_int(s.revision, REVISION, "and nothing has changed");
    time_is += 1;
    for (int i = 0; i < 9; i++, time_is += 1)
        etd_sup_expire(&s);
    is_int(hear().kind, ETD_KIND_COUNT, "what rank 0 has taken does not expire");
    s.alive = 0;
    etd_sup_expire(&s);
    const struct etd_answer a = hear();
    ok(a.kind == ETD_EXPIRED && is_for(&a, 1105), "but for ranks that are gone");
    s.alive = 1;
}

/* As many commands wait as there is room for. Each has a number of its own, by which
 * its answer is found, and the first for given settings waits for all of them. */
static void
test_many(void)
{
    enum { MOST = ETD_SUP_PENDING };
    uint64_t id[MOST];
    char text[64];
    struct et_request r;
    int wrong = 0;
    etd_board_clear(s.board);
    etd_board_move(s.board, 0, ETD_PHASE_DATA);
    for (int i = 0; i < MOST; i++) {
        ask(2000 + i, ETD_OP_PAUSE, -1, "");
        wrong += hear().kind != ETD_KIND_COUNT;
    }
    is_int(wrong, 0, "%d commands wait", MOST);
    ask(2000 + MOST, ETD_OP_PAUSE, -1, "");
    struct etd_answer a = hear();
    ok(a.kind == ETD_REJECTED && a.code == ETD_E_FULL && is_for(&a, 2000 + MOST),
       "one more is refused");
    for (int i = 0; i < MOST; i++) {
        wrong += !etd_board_next(s.board, &r);
        id[i] = r.id;
        for (int k = 0; k < i; k++)
            wrong += id[k] == id[i];
    }
    is_int(wrong + etd_board_next(s.board, &r), 0,
           "rank 0 takes each, and each has its own number");
    for (int i = MOST - 1; i >= 0; i--) {
        ask(2100 + i, ETD_OP_PAUSE, s.revision, "");
        a = hear();
        wrong += a.kind != ETD_REJECTED || a.code != ETD_E_REVISION;
        snprintf(text, sizeof text, "%llu %d 1 done", (unsigned long long)id[i], i);
        etd_sup_answered(&s, text);
        a = hear();
        wrong += a.kind != ETD_APPLIED || !is_for(&a, 2000 + i) || a.step != i ||
                 a.rev != REVISION + MOST - i;
    }
    is_int(wrong, 0,
           "each is answered, by the last that waits in the first place, too");
    ask(2200, ETD_OP_PAUSE, REVISION + MOST, "");
    ok(hear().kind == ETD_KIND_COUNT && etd_board_next(s.board, &r),
       "then the settings are known again, and there is room");
    snprintf(text, sizeof text, "%llu 1 1 done", (unsigned long long)r.id);
    etd_sup_answered(&s, text);
    is_int(hear().kind, ETD_APPLIED, "for another");
}

/* The answers of the last commands are kept: one that comes again is not done again. */
static void
test_kept(void)
{
    char text[ET_REQUEST_TEXT];
    int64_t ba;
    int wrong = 0;
    const int before = logged(&ba, text, sizeof text);
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < ETD_KEPT; i++) {
            ask(3000 + i, ETD_OP_TAKE, -1, "");
            const struct etd_answer a = hear();
            wrong += a.kind != ETD_APPLIED || !is_for(&a, 3000 + i);
        }
    is_int(wrong, 0, "%d commands are answered, twice", ETD_KEPT);
    is_int(logged(&ba, text, sizeof text), before + ETD_KEPT, "and done once");
}

/* A hub that is gone: its socket is closed, and those who wait are nobody's. */
static void
test_gone(void)
{
    close(hub);
    etd_sup_hear(&s);
    is_int(s.hub_fd, -1, "a hub that has ended is heard no more");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    const struct et_run_config config = {.directory = "run", .threads = 1};
    int commands[2];
    if (chdir(scratch_folder()) != 0 ||
        setenv("XDG_STATE_HOME", scratch_folder(), 1) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, commands) != 0)
        bail("no folder, or no sockets");
    seams.monotonic = test_clock;
    eti_ctx_set_seams(cx, &seams);
    need(cx, et_run_open(cx, &config, &s.run));
    need(cx, etd_board_new(cx, 1, &s.board));
    etd_board_clear(s.board);
    s.cx = cx;
    s.alive = 1;
    s.hub_fd = commands[0];
    hub = commands[1];
    test_at_once();
    test_refused();
    test_many();
    test_kept();
    test_gone();
    et_run_close(&s.run);
    etd_board_free(&s.board);
    et_ctx_free(&cx);
    return done();
}
