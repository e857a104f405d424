/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of one's own as ranks (spawn.h): what they find in their environment, whose
 * end counts, and how those that are left are ended. The programs are scripts of this
 * test, which has the clock: it goes on by three seconds with each look at it, but
 * stands while a rank that is asked to end has not said so. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/spawn.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static double time_is = 1000;

static const bool *asked; /* the ranks are, to end; NULL: it does not matter */

static double
test_clock(void)
{
    bool stands = asked && *asked && access("out.5", F_OK) != 0;
    return time_is += stands ? 0 : 3;
}

/* The ranks 4 and 5 of eight run SCRIPT, in which each has a number of its own. */
static et_status
spawn(const char *script, int port, int timeout, struct etd_spawned *out)
{
    char sh[] = "/bin/sh", file[] = "./script";
    char *const argv[] = {sh, file, NULL};
    struct etd_launch l = {.nproc = 2,
                           .world = 8,
                           .base = 4,
                           .node = 3,
                           .host = "127.0.0.1",
                           .port = port};
    FILE *f = fopen(file, "w");
    if (!f || fputs(script, f) < 0 || fclose(f) != 0)
        bail("no script");
    for (int i = 4; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "out.%d", i);
        (void)unlink(name);
        snprintf(name, sizeof name, "at.%d", i);
        (void)unlink(name);
    }
    return etd_spawn(cx, &l, timeout, argv, out);
}

static const char *
said_by(int rank)
{
    static char text[4096];
    char name[16];
    snprintf(name, sizeof name, "out.%d", rank);
    FILE *f = fopen(name, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    return text;
}

/* ---- what they find ---- */

static void
test_environment(void)
{
    static const char script[] =
        "listens=no; [ -e /proc/self/fd/${ETUDE_RANK_LISTENER:-none} ] && listens=yes\n"
        "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK $MASTER_ADDR "
        "$OMP_NUM_THREADS ${ETUDE_RANK_TIMEOUT:-none} $listens ${#ETUDE_RANK_SECRET} "
        "> out.$RANK\n"
        "if [ $MASTER_PORT = 7010 ]; then echo 7010 >> out.$RANK; fi\n";
    long cores = sysconf(_SC_NPROCESSORS_ONLN) / 2;
    struct etd_spawned out;
    char want[256];
    for (int given = 0; given < 2; given++) {
        unsetenv("ETUDE_RANK_SECRET");
        unsetenv("ETUDE_RANK_TIMEOUT");
        unsetenv("OMP_NUM_THREADS");
        if (given)
            setenv("OMP_NUM_THREADS", "17", 1);
        need(cx, spawn(script, given ? 7010 : 0, given ? 45 : 0, &out));
        ok(out.rank == -1 && out.exit == 0 && out.signal == 0 && !out.late,
           "two ranks end well");
        for (int i = 0; i < 2; i++) {
            snprintf(want, sizeof want, "%d/8 %d/2 3 127.0.0.1 %ld %s %s 64\n%s", 4 + i,
                     i,
                     given       ? 17
                     : cores > 1 ? cores
                                 : 1,
                     given ? "45" : "none", !given && i == 0 ? "yes" : "no",
                     given ? "7010\n" : "");
            is_str(said_by(4 + i), want, "rank %d finds who it is, %s", 4 + i,
                   given ? "with what was given" : "with what is usual");
        }
    }
}

/* Signals that are held back meanwhile are held back neither in the ranks nor
 * afterwards. */
static void
test_mask(void)
{
    struct etd_spawned out;
    sigset_t before, after;
    char text[64] = "";
    sigprocmask(SIG_BLOCK, NULL, &before);
    /* (No shell: some of them hold nothing back, whatever they were given.) */
    char cp[] = "cp", from[] = "/proc/self/status", to[] = "out.5";
    char *const argv[] = {cp, from, to, NULL};
    const struct etd_launch l = {.nproc = 1, .world = 1, .host = "127.0.0.1"};
    need(cx, etd_spawn(cx, &l, 0, argv, &out));
    sigprocmask(SIG_BLOCK, NULL, &after);
    for (int i = 1; i < 32; i++)
        if (sigismember(&before, i) != sigismember(&after, i))
            snprintf(text, sizeof text, "signal %d", i);
    is_str(text, "", "no signal is held back that was not before");
    unsigned long long blocked = ~0ULL;
    const char *line = strstr(said_by(5), "SigBlk:");
    if (line)
        (void)sscanf(line, "SigBlk: %llx", &blocked);
    ok(!(blocked &
         (1ULL << (SIGINT - 1) | 1ULL << (SIGTERM - 1) | 1ULL << (SIGHUP - 1))),
       "and none in the ranks");
}

/* ---- how they end ---- */

static void
test_ends(void)
{
    /* The second waits for the end of the first, and ends otherwise. */
    static const char then[] = "else\n"
                               "while kill -0 $(cat at.4 2>/dev/null || echo $$) "
                               "2>/dev/null; do sleep 0.02; done\nexit 9\nfi\n";
    static const struct {
        const char *first;
        int exit, signal, rank;
    } row[] = {{"exit 7", 7, 0, 4}, {"kill -9 $$", 137, 9, 4}, {"exit 0", 9, 0, 5}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char script[512];
        struct etd_spawned out;
        snprintf(script, sizeof script,
                 "if [ $RANK = 4 ]; then\necho $$ > at.tmp; mv at.tmp at.4; %s\n%s",
                 row[i].first, then);
        need(cx, spawn(script, 0, 0, &out));
        ok(out.rank == row[i].rank && out.exit == row[i].exit &&
               out.signal == row[i].signal && !out.late,
           "'%s' and then 9: rank %d with %d, signal %d", row[i].first, out.rank,
           out.exit, out.signal);
    }
}

/* One fails, and the other goes on: it is asked to end, and is made to where it does
 * not. */
static void
test_late(void)
{
    static const struct {
        const char *trap, *said;
    } row[] = {{"echo asked > tmp; mv tmp out.5; exit 0", "asked\n"},
               {"echo no > tmp; mv tmp out.5", "no\n"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char script[512];
        struct etd_spawned out = {0};
        snprintf(script, sizeof script,
                 "if [ $RANK = 4 ]; then\n"
                 "while ! [ -e at.5 ]; do sleep 0.02; done; exit 3\nfi\n"
                 "trap '%s' TERM; touch at.5\nwhile :; do sleep 0.02; done\n",
                 row[i].trap);
        const double began = time_is;
        asked = &out.late;
        need(cx, spawn(script, 0, 0, &out));
        asked = NULL;
        ok(out.rank == 4 && out.exit == 3 && out.signal == 0,
           "the one that failed counts");
        ok(out.late && time_is - began >= 10, "the other has ten seconds (%.0f)",
           time_is - began);
        is_str(said_by(5), row[i].said, "and is asked to end before it is made to");
    }
}

/* A child of ours that sends us NUMBER when the ranks are there, and once more when one
 * of them says that it has had it. */
static pid_t
send_signals(int number, bool twice)
{
    pid_t parent = getpid(), pid = fork();
    if (pid > 0)
        return pid;
    while (access("at.4", F_OK) != 0 || access("at.5", F_OK) != 0)
        usleep(5000);
    kill(parent, number);
    while (twice && (access("out.4", F_OK) != 0 || access("out.5", F_OK) != 0))
        usleep(5000);
    if (twice)
        kill(parent, number);
    _exit(0);
}

/* Signals are passed on as they are; a second one ends who takes no notice. */
static void
test_signals(void)
{
    static const struct {
        int number;
        const char *name;
        bool twice;
    } row[] = {{SIGINT, "INT", false}, {SIGTERM, "TERM", false}, {SIGHUP, "HUP", true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        signal(row[i].number, SIG_DFL); /* a test of `nohup make` is born ignoring it */
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char script[512], want[16];
        struct etd_spawned out;
        snprintf(script, sizeof script,
                 "for s in INT TERM HUP; do trap \"echo $s > tmp.$RANK; "
                 "mv tmp.$RANK out.$RANK; %s\" $s; done\n"
                 "touch at.$RANK\nwhile :; do sleep 0.02; done\n",
                 row[i].twice ? ":" : "exit 0");
        for (int k = 4; k < 6; k++) { /* before anybody looks for them */
            snprintf(want, sizeof want, "at.%d", k);
            (void)unlink(want);
            snprintf(want, sizeof want, "out.%d", k);
            (void)unlink(want);
        }
        const pid_t child = send_signals(row[i].number, row[i].twice);
        need(cx, spawn(script, 0, 0, &out));
        (void)waitpid(child, NULL, 0);
        snprintf(want, sizeof want, "%s\n", row[i].name);
        is_str(said_by(4), want, "SIG%s is passed on", row[i].name);
        is_str(said_by(5), want, "to each rank");
        ok(row[i].twice ? out.signal == SIGKILL && out.exit == 128 + SIGKILL
                        : out.rank == -1,
           "%s", row[i].twice ? "a second one kills" : "and they end by themselves");
    }
}

/* Programs that cannot be started leave nobody behind. */
static void
test_missing(void)
{
    char missing[] = "./not-there", folder[] = ".";
    char *const rows[] = {missing, folder};
    const struct etd_launch l = {.nproc = 2, .world = 2, .host = "127.0.0.1"};
    for (int i = 0; i < 2; i++) {
        char *const argv[] = {rows[i], NULL};
        struct etd_spawned out;
        is_int(etd_spawn(cx, &l, 0, argv, &out), i == 0 ? ET_ENOENT : ET_EIO,
               "'%s' is no program", rows[i]);
        ok(strstr(et_error_get(cx)->message, rows[i]) != NULL, "%s",
           et_error_get(cx)->message);
        et_error_clear(cx);
        is_int(out.rank, -1, "no rank has failed");
        ok(waitpid(-1, NULL, WNOHANG) < 0, "and no child is left");
    }
}

int
main(void)
{
    struct eti_seams seams = eti_system;
    cx = need_ctx();
    if (chdir(scratch_folder()) != 0)
        bail("no folder");
    seams.monotonic = test_clock;
    eti_ctx_set_seams(cx, &seams);
    test_environment();
    test_mask();
    test_ends();
    test_late();
    test_signals();
    test_missing();
    et_ctx_free(&cx);
    return done();
}
