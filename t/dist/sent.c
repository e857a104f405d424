/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes that are sent to a worker: what came of one is said for a day, to whoever
 * asks again; one whose worker ended meanwhile is given up; and what is old is removed.
 * The program that starts is a script of the test's. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/wire/errors.h"
#include "dist/worker/child.h"
#include "dist/worker/start.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { DAY = 24 * 3600, LOST = 120 };
static struct etd_starts s;
static char folder[600], program[600];

/* What is started says TEXT and exits with CODE. */
static void
make_program(const char *text, int code)
{
    FILE *f = fopen(program, "w");
    if (!f || fprintf(f, "#!/bin/sh\nprintf '%s'\nexit %d\n", text, code) < 0 ||
        fclose(f) != 0 || chmod(program, 0700) != 0)
        bail("no program");
}

/* Sends a recipe as command NUMBER. False: *A says why not. */
static bool
take(unsigned char number, int64_t gpus, struct etd_answer *a)
{
    char bytes[ETD_CONTROL_BYTES];
    const unsigned char id[ETD_CMD_ID] = {number};
    const struct etd_head head = {.kind = ETD_START};
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    etd_begin(&o, bytes, sizeof bytes, &head, 3);
    etd_put_bin(&o, "id", id, sizeof id);
    etd_put_bin(&o, "recipe", "model: x\n", 9);
    etd_put_int(&o, "gpus", gpus);
    size_t n = etd_end(&o);
    if (n == 0 || etd_read(bytes, n, &f, &fault) != ET_OK)
        bail("no frame");
    return etd_start_take(&s, &f, 2, a);
}

/* Until what was begun has ended. */
static void
finish(void)
{
    while (etd_starts_any(&s)) {
        for (int i = 0; i < ETD_STARTING; i++)
            if (s.start[i].used)
                (void)poll(
                    &(struct pollfd){.fd = s.start[i].child.fd, .events = POLLIN}, 1,
                    60000);
        etd_starts_step(&s);
    }
}

static void
place_of(unsigned char number, char path[700])
{
    snprintf(path, 700, "%s/start-%02x%030d", folder, number, 0);
}

static bool
is_there(unsigned char number)
{
    char path[700];
    struct stat st;
    place_of(number, path);
    return lstat(path, &st) == 0;
}

/* The folder of command NUMBER, which was written to SECONDS ago. */
static void
age(unsigned char number, double seconds)
{
    char path[700];
    place_of(number, path);
    (void)mkdir(path, 0700);
    const struct timespec t = {.tv_sec = (time_t)(eti_wall(s.cx) - seconds)};
    if (utimensat(AT_FDCWD, path, (struct timespec[]){t, t}, 0) != 0)
        bail("cannot age %s", path);
}

/* Runs ARGV until it ends; its exit status. */
static int
run_child(struct etd_child *c, const char *const *argv, bool errors)
{
    int status = -1;
    if (!etd_child_start(c, argv[0], argv, errors))
        bail("%s does not start", argv[0]);
    while (!etd_child_step(c, &status))
        (void)poll(&(struct pollfd){.fd = c->fd, .events = POLLIN}, 1, 60000);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A program that a worker starts: what it is told, and what is taken of its words. */
static void
test_child(void)
{
    static struct etd_child c;
    int status;
    static const char *const talks[] = {
        "sh", "-c",
        "printf \"$ETUDE_SERVED one\"; sleep .05; printf ' two'; printf three >&2; "
        "exit 7",
        NULL};
    for (int errors = 0; errors < 2; errors++) {
        is_int(run_child(&c, talks, errors), 7, "a child's exit code is told,");
        is_str(c.said, errors ? "1 one twothree" : "1 one two",
               "and all that it said, %s its errors", errors ? "with" : "without");
        ok(c.pid == 0 && c.fd == -1 && !etd_child_step(&c, &status),
           "and then there is none any more");
        etd_child_kill(&c);
    }
    static const char *const much[] = {
        "sh", "-c",
        "i=0; while [ $i -lt 500 ]; do printf 0123456789; i=$((i + 1)); done", NULL};
    is_int(run_child(&c, much, false), 0, "one that says more than there is room for");
    ok(strlen(c.said) == sizeof c.said - 1 && c.n == sizeof c.said - 1 &&
           strcmp(c.said + c.n - 5, "01234") == 0,
       "is heard as far as there is room");
    static const char *const signals[] = {
        "grep", "Sig[BI][lg][kn]:", "/proc/self/status", NULL};
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    signal(SIGUSR1, SIG_IGN);
    is_int(run_child(&c, signals, false), 0, "who holds back and ignores signals");
    signal(SIGUSR1, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    const unsigned long long user1 = 1ULL << (SIGUSR1 - 1);
    unsigned long long held = user1, ignored = user1;
    (void)sscanf(c.said, "SigBlk: %llx SigIgn: %llx", &held, &ignored);
    ok(!(held & user1) && !(ignored & user1), "starts programs that do neither");
}

static void
test_answers(void)
{
    static const struct {
        const char *said;
        int exit;
        enum etd_kind kind;
        int code;
        const char *text;
    } row[] = {
        {"calm-heron goes on", 0, ETD_APPLIED, 0, "calm-heron goes on"},
        {"one\\ntwo\\n", 0, ETD_APPLIED, 0, "one"},
        {"etude: warn: slow\\ncalm-heron goes on\\n", 0, ETD_APPLIED, 0,
         "calm-heron goes on"},
        {"etude: warn: a\\netude: warn: b\\netude: error E2003: no such key\\n", 2,
         ETD_REJECTED, 2003, "no such key"},
        {"etude: error E3001: none", 1, ETD_REJECTED, 3001, "none"},
        {"went wrong", 1, ETD_REJECTED, ETD_E_ARGUMENT, "went wrong"},
        {"", 0, ETD_APPLIED, 0, "etude train said nothing"},
        {"etude: warn: alone", 0, ETD_APPLIED, 0, "etude: warn: alone"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const unsigned char number = (unsigned char)(i + 1);
        const unsigned char id[ETD_CMD_ID] = {number};
        struct etd_answer a;
        make_program(row[i].said, row[i].exit);
        ok(take(number, 0, &a), "a recipe is taken");
        finish();
        for (int times = 0; times < 2; times++)
            ok(etd_start_answer(&s, id, &a) && a.kind == row[i].kind &&
                   a.code == row[i].code && strcmp(a.text, row[i].text) == 0 &&
                   memcmp(a.id, id, sizeof id) == 0,
               "its answer, time %d: %s %d %s", times + 1, etd_kind_name(a.kind),
               a.code, a.text);
    }
    struct etd_answer a;
    make_program("other", 0);
    ok(take(1, 0, &a) && !etd_starts_any(&s),
       "one that comes again is not begun again");
    ok(etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){1}, &a) &&
           strcmp(a.text, "calm-heron goes on") == 0,
       "and has its answer");
}

static void
test_gpus(void)
{
    struct etd_answer a;
    make_program("fine", 0);
    ok(take(51, 2, &a), "a recipe for as many GPUs as there are is taken");
    finish();
    ok(!take(52, 3, &a) && a.kind == ETD_REJECTED && a.code == ETD_E_FULL,
       "one for more is not: %s", a.text);
    ok(!take(53, -1, &a), "nor one for fewer than none");
}

static void
test_lost(void)
{
    struct etd_answer a;
    age(61, LOST - 60);
    ok(!etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){61}, &a),
       "what another worker began a minute ago may have an answer yet");
    age(61, LOST + 60);
    ok(etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){61}, &a) &&
           a.kind == ETD_EXPIRED,
       "what it began three minutes ago is given up");
    ok(etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){62}, &a) &&
           a.kind == ETD_EXPIRED,
       "so is what nobody knows of");
}

static void
test_old(void)
{
    struct etd_answer a;
    make_program("fine", 0);
    age(71, DAY - 600);
    age(72, DAY + 600);
    ok(take(73, 0, &a), "when a recipe is taken");
    finish();
    ok(is_there(71), "what is younger than a day stays");
    ok(!is_there(72), "what is older goes");
    ok(is_there(73), "what was begun is there");
}

int
main(void)
{
    s.cx = need_ctx();
    snprintf(folder, sizeof folder, "%s/etude", scratch_folder());
    snprintf(program, sizeof program, "%s/program", scratch_folder());
    if (mkdir(folder, 0700) != 0)
        bail("no folder");
    s.folder = folder;
    s.program = program;
    test_child();
    test_answers();
    test_gpus();
    test_lost();
    test_old();
    et_ctx_free(&s.cx);
    return done();
}
