/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor does about its run by itself: it answers the commands that the hub
 * passes on, and looks after the run's files. The test is the hub, the ranks and the
 * one that looks at the run, and has the clock. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/journal/events.h"
#include "dist/run/hub_child.h"
#include "dist/run/supervisor.h"
#include "dist/wire/errors.h"
#include "etude/control.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static double time_is = 1000;
static bool disk_is_full;
static int hub;    /* our end of its socket, */
static int screen; /* and of the front's */
static struct etd_launch launch;
static struct etd_supervisor s = {
    .l = &launch, .hub_fd = -1, .front = -1, .failed = -1};

static double
test_clock(void)
{
    return time_is;
}

static int
open_if_room(int dir, const char *path, int flags, mode_t mode)
{
    errno = ENOSPC;
    return disk_is_full && (flags & O_CREAT)
               ? -1
               : eti_system.file.open(dir, path, flags, mode);
}

/* ---- commands ---- */

/* C, as the hub passes it on: the kind of its answer, ETD_KIND_COUNT where it has none
 * yet. */
static enum etd_kind
ask(enum etd_op op, int64_t if_rev, struct etd_answer *a)
{
    static unsigned char number;
    char bytes[ETD_CONTROL_BYTES];
    struct etd_frame f;
    struct etd_fault fault;
    const struct etd_head head = {.kind = ETD_CMD};
    struct etd_command c = {.op = op, .if_rev = if_rev, .ttl_ms = 60000, .who = "me"};
    c.id[0] = ++number;
    if (op == ETD_OP_ANNOTATE)
        snprintf(c.value, sizeof c.value, "look here");
    size_t n = etd_command_write(bytes, sizeof bytes, &head, &c);
    if (send(hub, bytes, n, 0) < 0)
        bail("no hub");
    etd_sup_hear(&s);
    ssize_t got = recv(hub, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0)
        return ETD_KIND_COUNT;
    if (etd_read(bytes, (size_t)got, &f, &fault) != ET_OK || !etd_answer_read(&f, a) ||
        a->id[0] != number)
        bail("that is no answer to the command");
    return a->kind;
}

static void
waits(enum etd_op op, int64_t if_rev, const char *what)
{
    struct etd_answer a = {0};
    enum etd_kind kind = ask(op, if_rev, &a);
    ok(kind == ETD_KIND_COUNT, "%s waits for the ranks", what) ||
        (diag("%s: %s", etd_kind_name(kind), a.text), 0);
}

static void
is_refused(enum etd_op op, int64_t if_rev, const char *what)
{
    struct etd_answer a = {0};
    enum etd_kind kind = ask(op, if_rev, &a);
    ok(kind == ETD_REJECTED && a.code == 5011, "%s is rejected", what) ||
        (diag("%d: %d %s", (int)kind, a.code, a.text), 0);
}

/* Rank 0 takes the next that waits, and has done it. */
static void
obey(void)
{
    char text[64], answer[ETD_CONTROL_BYTES];
    struct et_request r;
    if (!etd_board_next(s.board, &r))
        bail("nothing waits for rank 0");
    snprintf(text, sizeof text, "%llu 1 1 ", (unsigned long long)r.id);
    etd_sup_answered(&s, text);
    if (recv(hub, answer, sizeof answer, MSG_DONTWAIT) <= 0)
        bail("nobody is told");
}

static void
test_revision(void)
{
    struct etd_answer a;
    waits(ETD_OP_PAUSE, -1, "a command for whatever the settings are");
    waits(ETD_OP_CONTINUE, -1, "another meanwhile");
    is_refused(ETD_OP_PAUSE, 0, "one for the settings as they are, while others wait,");
    is_int((int)ask(ETD_OP_ANNOTATE, -1, &a), ETD_APPLIED,
           "a note is taken at once all the same");
    obey();
    is_refused(ETD_OP_PAUSE, 1, "so is one while the second of them waits");
    obey();
    is_refused(ETD_OP_PAUSE, 1, "when none does, one for settings that have changed");
    is_refused(ETD_OP_PAUSE, 3, "or for those to come");
    waits(ETD_OP_PAUSE, 2, "one for the settings as they are");
    obey();
    waits(ETD_OP_CONTINUE, 3, "as does the next");
    obey();
}

/* ---- answers ---- */

/* The packet that the hub hears next, as *A. */
static void
hear(struct etd_answer *a)
{
    static char bytes[ETD_CONTROL_BYTES];
    struct etd_frame f;
    struct etd_fault fault;
    ssize_t got = recv(hub, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0 || etd_read(bytes, (size_t)got, &f, &fault) != ET_OK ||
        !etd_answer_read(&f, a))
        bail("the hub hears no answer");
}

static void
send_command(const struct etd_command *c)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = {.kind = ETD_CMD};
    size_t n = etd_command_write(bytes, sizeof bytes, &head, c);
    if (send(hub, bytes, n, 0) < 0)
        bail("no hub");
    etd_sup_hear(&s);
}

/* What rank 0 says of a command, as the hub hears it; and when the command comes again,
 * once others have been answered. */
static void
test_answers(void)
{
    static const struct {
        const char *said; /* behind the request's number */
        enum etd_kind kind;
        int code;
        const char *text;
    } row[] = {
        {"7 1 lr 0.1 -> 0.2", ETD_APPLIED, 0, "lr 0.1 -> 0.2"},
        {"8 0 refused: lr outside [0, 1]", ETD_REJECTED, 5008, "lr outside [0, 1]"},
        {"9 0 unknown", ETD_REJECTED, 5008, "unknown"},
        {"10 0 refused: it" ET_ANSWER_LATER, ETD_REJECTED, ETD_E_NOT_YET,
         "it" ET_ANSWER_LATER},
        {"11 1 refused: nothing", ETD_APPLIED, 0, "refused: nothing"},
    };
    enum { ROWS = sizeof row / sizeof *row };
    struct etd_answer a[ROWS], again;
    struct etd_command c[ROWS];
    int64_t revision = s.revision;
    for (int i = 0; i < ROWS; i++) {
        char text[128];
        struct et_request r;
        c[i] = (struct etd_command){
            .op = ETD_OP_PAUSE, .if_rev = -1, .ttl_ms = 60000, .who = "me"};
        memset(c[i].id, 0xa0 + i, sizeof c[i].id);
        send_command(&c[i]);
        if (!etd_board_next(s.board, &r))
            bail("nothing waits for rank 0");
        snprintf(text, sizeof text, "%llu %s", (unsigned long long)r.id, row[i].said);
        etd_sup_answered(&s, text);
        hear(&a[i]);
        revision += row[i].kind == ETD_APPLIED;
        ok(a[i].kind == row[i].kind && a[i].code == row[i].code &&
               a[i].step == (row[i].kind == ETD_APPLIED ? 7 + i : 0) &&
               memcmp(a[i].id, c[i].id, sizeof c[i].id) == 0,
           "'%s' is %s %d", row[i].said, etd_kind_name(a[i].kind), a[i].code);
        is_str(a[i].text, row[i].text, "with its text");
        is_int(s.revision, revision, "what is applied alone changes the settings");
        is_int(a[i].rev, row[i].kind == ETD_APPLIED ? revision : 0,
               "and says to which number");
    }
    for (int i = ROWS - 1; i >= 0; i--) {
        send_command(&c[i]);
        hear(&again);
        ok(again.kind == a[i].kind && again.code == a[i].code &&
               again.step == a[i].step && again.rev == a[i].rev &&
               strcmp(again.text, a[i].text) == 0 &&
               memcmp(again.id, c[i].id, sizeof again.id) == 0,
           "command %d that comes again has its answer", i + 1);
    }
    struct et_request r;
    ok(!etd_board_next(s.board, &r), "and no rank is asked again");
}

/* ---- one rank is ended ---- */

/* The text of the last command in the log. */
static const char *
last_command(void)
{
    static char text[ET_REQUEST_TEXT];
    struct et_events *log;
    struct et_record r;
    bool got = true;
    text[0] = '\0';
    et_run_flush(s.run);
    need(s.cx, et_events_open(s.cx, "run/events.log", &log));
    while (et_events_next(log, &r, &got) == ET_OK && got)
        if (r.kind == ET_RECORD_COMMAND)
            snprintf(text, sizeof text, "%s", r.text);
    et_events_close(&log);
    return text;
}

/* What rank 0 is asked, word by word. */
static void
test_requests(void)
{
    static const struct {
        enum etd_op op;
        const char *key, *value;
        enum et_request_op asked;
        const char *asked_key, *asked_value;
    } row[] = {
        {ETD_OP_PAUSE, "", "", ET_REQUEST_PAUSE, "", ""},
        {ETD_OP_CONTINUE, "", "", ET_REQUEST_CONTINUE, "", ""},
        {ETD_OP_STOP, "", "", ET_REQUEST_STOP, "", ""},
        {ETD_OP_CHECKPOINT, "", "a-tag", ET_REQUEST_CHECKPOINT, "", ""},
        {ETD_OP_SET, "optimizer.lr", "0.25", ET_REQUEST_SET, "optimizer.lr", "0.25"},
        {ETD_OP_ALGO, "mixup", "off", ET_REQUEST_ALGO, "mixup", "off"},
        {ETD_OP_LOGLEVEL, "", "debug", ET_REQUEST_LOGLEVEL, "", "debug"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_command c = {
            .op = row[i].op, .if_rev = -1, .ttl_ms = 60000, .who = "uid:7 at home"};
        struct et_request r = {0};
        struct etd_answer a;
        char text[64];
        c.id[0] = 77;
        c.id[1] = (unsigned char)i;
        snprintf(c.key, sizeof c.key, "%s", row[i].key);
        snprintf(c.value, sizeof c.value, "%s", row[i].value);
        send_command(&c);
        ok(etd_board_next(s.board, &r) && r.op == row[i].asked &&
               strcmp(r.who, "uid:7:at:home") == 0 &&
               strcmp(r.key, row[i].asked_key) == 0 &&
               strcmp(r.value, row[i].asked_value) == 0,
           "rank 0 is asked to %s by somebody: '%s' '%s'", etd_op_name(c.op), r.key,
           r.value);
        snprintf(text, sizeof text, "%llu 1 1 ", (unsigned long long)r.id);
        etd_sup_answered(&s, text);
        hear(&a);
        ok(a.kind == ETD_APPLIED && memcmp(a.id, c.id, sizeof a.id) == 0,
           "and who asked is told");
    }
}

/* The log has a note, and what became of the command, when its answer is heard. */
static void
test_note(void)
{
    char path[sizeof s.directory + 16], got[256] = "";
    struct et_events *e;
    struct et_record r;
    struct etd_answer a;
    bool more = true;
    s.board->rank[0].step = 17;
    is_int((int)ask(ETD_OP_ANNOTATE, -1, &a), ETD_APPLIED, "a note is taken");
    is_int(a.step, 17, "behind as many batches");
    snprintf(path, sizeof path, "%s/events.log", s.directory);
    need(s.cx, et_events_open(s.cx, path, &e));
    while (et_events_next(e, &r, &more) == ET_OK && more)
        if (r.ba == 17)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s: %s\n",
                     et_record_name(r.kind), r.text ? r.text : "");
    et_events_close(&e);
    is_str(got, "command: me annotate -> noted\nannotation: look here\n",
           "it is in the log, with the command, at its batch");
    s.board->rank[0].step = 0;
}

/* Ranks 6 to 8 are here: of the second machine of a run. */
static void
test_kill_one(void)
{
    /* (More places than ranks: nobody's process is in those behind them.) */
    struct etd_sup_rank rank[16] = {{.pid = 0}}, *before = s.rank;
    const struct etd_launch all = launch;
    int status = 0;
    launch.base = 6;
    launch.nproc = 3;
    s.rank = rank;
    rank[1].pid = fork();
    if (rank[1].pid == 0)
        for (;;)
            pause();
    for (int number = 5; number <= 9; number++) {
        struct etd_command c = {
            .op = ETD_OP_KILL, .if_rev = -1, .ttl_ms = 60000, .who = "me"};
        struct etd_answer a;
        c.id[0] = 78;
        c.id[1] = (unsigned char)number;
        snprintf(c.value, sizeof c.value, "%d", number);
        send_command(&c);
        hear(&a);
        is_int(a.kind == ETD_APPLIED ? 0 : a.code,
               number == 7                ? 0
               : number < 6 || number > 8 ? ETD_E_ARGUMENT
                                          : ETD_E_FULL,
               "rank %d %s", number,
               number == 7                ? "is ended"
               : number < 6 || number > 8 ? "is not here"
                                          : "does not run");
    }
    kill(rank[1].pid, SIGTERM); /* which changes nothing where it was killed */
    ok(waitpid(rank[1].pid, &status, 0) == rank[1].pid && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGKILL,
       "it was killed");
    s.rank = before;
    launch = all;
}

static void
test_kill(void)
{
    static const char *const wrong[] = {"1", "-1", "0x", " 0", "00000000000000000009"};
    struct etd_sup_rank rank = {.pid = fork()};
    struct etd_command c = {
        .op = ETD_OP_KILL, .if_rev = -1, .ttl_ms = 60000, .who = "me"};
    struct etd_answer a;
    int status = 0;
    if (rank.pid == 0)
        for (;;)
            pause();
    s.rank = &rank;
    launch.nproc = 1;
    memset(c.id, 0xc0, sizeof c.id);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        c.id[0] = (unsigned char)(0xc1 + i);
        snprintf(c.value, sizeof c.value, "%s", wrong[i]);
        send_command(&c);
        hear(&a);
        ok(a.kind == ETD_REJECTED && strstr(a.text, "the ranks here are 0 to 0"),
           "rank '%s' is none: %s", wrong[i], a.text);
    }
    is_int(waitpid(rank.pid, &status, WNOHANG), 0, "and none is ended");
    c.id[0] = 0xd0;
    snprintf(c.value, sizeof c.value, "0");
    send_command(&c);
    hear(&a);
    ok(a.kind == ETD_APPLIED && waitpid(rank.pid, &status, 0) == rank.pid &&
           WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
       "the one that is named is");
    is_str(last_command(), "me kill 0 -> killed", "the log has who asked for what");
    rank.pid = 0;
    c.id[0] = 0xd1;
    send_command(&c);
    hear(&a);
    ok(a.kind == ETD_REJECTED && a.code == ETD_E_FULL, "one that is gone cannot be");
    launch.nproc = 0;
    s.rank = NULL;
}

/* ---- files ---- */

/* Seconds pass, in which the supervisor looks at the run's files: lines with TEXT that
 * the front was told meanwhile; -1: it was told something else. */
static int
lines(int seconds, const char *text)
{
    static char bytes[1 << 16];
    struct etd_packet p;
    size_t used;
    int n = 0;
    bool others = false;
    for (int i = 0; i < seconds; i++, time_is += 1)
        etd_sup_look_at_files(&s);
    ssize_t got = recv(screen, bytes, sizeof bytes, MSG_DONTWAIT);
    for (size_t at = 0, all = got > 0 ? (size_t)got : 0;
         etd_packet_next(bytes + at, all - at, &p, &used) == 1; at += used) {
        bool has = memmem(p.body, p.n, text, strlen(text)) != NULL;
        n += has;
        others = others || !has;
    }
    return others ? -1 : n;
}

static void
test_files(void)
{
    is_int(lines(5, ""), 0, "nothing is said of a run whose files are there");
    unlink("run/events.log");
    is_int(lines(5, "events.log was removed: it is made again"), 1,
           "that its log was removed is said once");
    is_int(access("run/events.log", F_OK), 0, "as it is made again");
    rename("run", "elsewhere");
    is_int(lines(60, "run was removed: nothing of this run is kept"), 1,
           "that the run's directory was removed is said once, not each second");
    rename("elsewhere", "run");
    is_int(lines(5, ""), 0, "nothing is said when it is there again");
    rename("run", "elsewhere");
    is_int(lines(60, "run was removed: nothing of this run is kept"), 1,
           "it is said again where it is removed again");
    rename("elsewhere", "run");
    disk_is_full = true;
    unlink("run/events.log");
    is_int(lines(5, "and cannot be made again: "), 1,
           "that it was, and cannot be made, is said once, too");
    disk_is_full = false;
    is_int(lines(5, ""), 0, "no more is said of it");
}

/* ---- the hub ---- */

static int
open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* A program that is not there any more, as after an upgrade. */
static void
test_no_hub(void)
{
    static char bytes[1 << 14];
    const int before = open_files(), link = s.hub_fd;
    launch.program = "/nonexistent/etude";
    s.hub_fd = -1;
    for (int i = 0; i < 30; i++, time_is += 1)
        etd_hub_due(&s);
    is_int(open_files(), before, "a hub that cannot be started takes no descriptors");
    const char *at = bytes;
    int told = 0;
    ssize_t n = recv(screen, bytes, sizeof bytes, MSG_DONTWAIT);
    while (n > 0 &&
           (at = memmem(at, (size_t)(bytes + n - at), "cannot be started", 17)))
        told++, at++;
    is_int(told, 1, "people are told that nobody can attach, once");
    launch.program = NULL;
    s.hub_fd = link;
}

/* Hubs that end without a word, one after the other: each begins a second behind
 * the end of the one before; at the third in a row people are told of how it ended. */
static void
test_hubs_end(void)
{
    static const struct {
        const char *script, *how;
    } row[] = {
        {"#!/bin/sh\nexit 3\n", "the hub does not begin (exit code 3)"},
        {"#!/bin/sh\nkill -9 $$\n", "the hub does not begin (signal 9)"},
    };
    const int link = s.hub_fd;
    char program[512];
    snprintf(program, sizeof program, "%s/hub", scratch_folder());
    launch.program = program;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        FILE *f = fopen(program, "w");
        if (!f || fputs(row[i].script, f) < 0 || fclose(f) != 0 ||
            chmod(program, 0700) != 0)
            bail("no program");
        s.hub_failures = 0;
        s.hub_fd = -1;
        for (int times = 1; times <= 4; times++) {
            char told[1 << 12];
            siginfo_t info;
            int ticks = 0;
            s.hub_heard = true; /* the one before had said something */
            while (s.hub <= 0 && ticks++ < 10) {
                time_is += 0.3;
                etd_hub_due(&s);
            }
            ok(s.hub > 0 && (times == 1 || (ticks >= 4 && ticks <= 5)),
               "hub %d is started, a second behind the one before (%d)", times, ticks);
            ok(!s.hub_heard, "which has said nothing yet");
            const pid_t pid = s.hub;
            for (int k = 0; k < 10; k++, time_is += 0.3)
                etd_hub_due(&s);
            is_int(s.hub, pid, "while it is there no other is");
            if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0)
                bail("no hub ends");
            etd_hub_reap(&s);
            ok(s.hub == 0 && s.hub_fd == -1 && s.hub_pidfd == -1, "then it is gone");
            ssize_t n = recv(screen, told, sizeof told, MSG_DONTWAIT);
            ok(times == 3 ? n > 0 && memmem(told, (size_t)n, row[i].how,
                                            strlen(row[i].how)) != NULL
                          : n <= 0,
               "people are told %s", times == 3 ? row[i].how : "nothing");
        }
    }
    launch.program = NULL;
    s.hub_fd = link;
}

/* Where the hub says that it listens, or why it does not: people are told of what has
 * changed. */
static void
test_place(void)
{
    static const struct {
        const char *path, *why, *said; /* "": nothing */
    } row[] = {
        {"/run/a", "", ""},
        {"/run/a", "", ""},
        {"", "no room", "no command reaches it: no room"},
        {"", "no room", ""},
        {"", "no right", "no command reaches it: no right"},
        {"/run/b", "", "no right: the run listens at /run/b now"},
        {"/run/b", "", ""},
        {"/run/c", "b was removed", "b was removed: the run listens at /run/c now"},
        {"/run/c", "", ""},
        {"", "no room", "no command reaches it: no room"},
        {"/run/d", "d is new", "d is new: the run listens at /run/d now"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        static char told[1 << 14];
        char bytes[ETD_CONTROL_BYTES];
        const struct etd_head head = {.kind = ETD_HELLO};
        struct etd_out o;
        etd_begin(&o, bytes, sizeof bytes, &head, 2);
        etd_put_text(&o, "endpoint", row[i].path);
        etd_put_text(&o, "why", row[i].why);
        s.hub_failures = 2;
        s.hub_heard = false;
        if (send(hub, bytes, etd_end(&o), 0) < 0)
            bail("no hub");
        etd_sup_hear(&s);
        ssize_t n = recv(screen, told, sizeof told, MSG_DONTWAIT);
        if (*row[i].said)
            ok(n > 0 && memmem(told, (size_t)n, row[i].said, strlen(row[i].said)),
               "the hub is %s%s: that is said", *row[i].path ? "at " : "nowhere, for ",
               *row[i].path ? row[i].path : row[i].why);
        else
            ok(n <= 0, "the hub is where it was: nothing is said");
        ok(s.hub_heard && s.hub_failures == 0,
           "those before it that ended without a word count no more");
    }
}

/* Every field of a file's name, of the third rank of the second machine. */
static void
test_names(void)
{
    static const struct {
        const char *format, *path;
    } row[] = {
        {"{rank}.txt", "run/6.txt"},
        {"{local_rank}.txt", "run/2.txt"},
        {"{world_size}", "run/8"},
        {"{local_world_size}", "run/4"},
        {"{node_rank}", "run/1"},
        {"/tmp/{rank}-{local_rank}{node_rank}", "/tmp/6-21"},
        {"plain", "run/plain"},
        {"{other}{rank}}", "run/{other}6}"},
    };
    const struct etd_launch there = {.nproc = 4, .base = 4, .world = 8, .node = 1};
    struct etd_supervisor other = {.l = &there, .directory = "run"};
    char path[256];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        etd_print_path(&other, row[i].format, 2, path, sizeof path);
        is_str(path, row[i].path, "%s is the name of a file", row[i].format);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    int commands[2], front[2];
    const struct et_run_config config = {.directory = "run", .threads = 1};
    if (chdir(scratch_folder()) != 0 ||
        setenv("XDG_STATE_HOME", scratch_folder(), 1) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, commands) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, front) != 0)
        bail("no folder, or no sockets");
    seams.monotonic = test_clock;
    seams.file.open = open_if_room;
    eti_ctx_set_seams(cx, &seams);
    need(cx, et_run_open(cx, &config, &s.run));
    need(cx, etd_board_new(cx, 1, &s.board));
    etd_board_clear(s.board);
    s.cx = cx;
    s.alive = 1;
    snprintf(s.directory, sizeof s.directory, "%s", et_run_directory(s.run));
    s.hub_fd = commands[0];
    hub = commands[1];
    s.front = front[0];
    screen = front[1];
    test_revision();
    test_answers();
    test_requests();
    test_note();
    test_kill();
    test_kill_one();
    test_names();
    lines(0, "");
    test_files();
    test_no_hub();
    test_hubs_end();
    test_place();
    et_run_close(&s.run);
    etd_board_free(&s.board);
    etd_bytes_free(&s.to_front);
    for (int i = 0; i < 2; i++) {
        close(commands[i]);
        close(front[i]);
    }
    et_ctx_free(&cx);
    return done();
}
