/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c: the program `etude` in a world that breaks where it is told to.
 *
 *     ETUDE_FAILPOINTS="rename=kill@3;batch_end=stop@100;write=errno:ENOSPC@7"
 *     ETUDE_FAILPOINTS="rank1:before_forward=delay:40@*"
 *
 * A point is an event of training by its name, a point that core names ("checkpoint.
 * snapshot"), a file operation (open read write sync rename unlink folder), a
 * collective (all_reduce), or "*", any of these; behind "rankN:" only in that rank.
 * Actions: kill, stop and crash (signals; the last is SIGSEGV), abort, overflow (of the
 * stack), exit (with 0), spin (for ever), say (its name, to standard output and
 * standard error), errno:NAME and short (file operations), skip (a collective, which is
 * not done), delay:MILLISECONDS; they happen at the K-th time (@K; 1), counted from 1,
 * over all threads, or each time (@*). Every process counts for itself.
 * ETUDE_FAILPOINTS_COUNT names a file that at the end holds how many points were
 * reached. The program that people run has none of this: it is linked with main.c in
 * the place of this file. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/seams.h"
#include "etude/comm.h"

enum { MOST = 16 };

static struct fault {
    char point[64];
    enum {
        KILL,
        STOP,
        CRASH,
        ABORT,
        OVERFLOW,
        EXIT,
        SPIN,
        SAY,
        ERRNO,
        SHORT,
        SKIP,
        DELAY
    } action;
    int number;    /* errno, or milliseconds */
    int rank;      /* -1: any */
    long at, seen; /* at: 0: each time */
} fault[MOST];
static int n_faults;
static long reached;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct {
    const char *name;
    int number;
} errors[] = {
    {"EIO", EIO},     {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS},
    {"EINTR", EINTR}, {"EMFILE", EMFILE}, {"EACCES", EACCES},
};

/* Actions that are one word. */
static const struct {
    const char *name;
    int action;
} plain[] = {
    {"kill", KILL},         {"stop", STOP}, {"crash", CRASH}, {"abort", ABORT},
    {"overflow", OVERFLOW}, {"exit", EXIT}, {"spin", SPIN},   {"short", SHORT},
    {"skip", SKIP},         {"say", SAY},
};

static void
refuse(const char *text)
{
    fprintf(stderr, "ETUDE_FAILPOINTS: cannot read '%s'\n", text);
    exit(CLI_USAGE);
}

static int
error_number(const char *name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(errors[i].name, name) == 0)
            return errors[i].number;
    refuse(name);
    return 0;
}

static void
parse_one(char *text)
{
    char *action = strchr(text, '='), *at = strrchr(text, '@');
    if (!action || n_faults == MOST)
        refuse(text);
    struct fault *f = &fault[n_faults++];
    *action++ = '\0';
    f->at = at ? strtol(at + 1, NULL, 10) : 1;
    if (at)
        *at = '\0';
    f->rank = -1;
    if (strncmp(text, "rank", 4) == 0 && strchr(text, ':'))
        f->rank = (int)strtol(text + 4, &text, 10), text++;
    snprintf(f->point, sizeof f->point, "%s", text);
    size_t i = 0;
    while (i < sizeof plain / sizeof *plain && strcmp(action, plain[i].name) != 0)
        i++;
    if (i < sizeof plain / sizeof *plain)
        f->action = plain[i].action;
    else if (strncmp(action, "errno:", 6) == 0) {
        f->action = ERRNO;
        f->number = error_number(action + 6);
    } else if (strncmp(action, "delay:", 6) == 0) {
        f->action = DELAY;
        f->number = (int)strtol(action + 6, NULL, 10);
    } else {
        refuse(action);
    }
}

/* The rank that this process is, as its supervisor or launcher says; -1: none. */
static int
own_rank(void)
{
    const char *text = getenv("RANK");
    return text ? (int)strtol(text, NULL, 10) : -1;
}

static volatile char deepest;

/* Until there is no more stack. */
static void
sink(int depth)
{
    volatile char page[4096];
    page[0] = (char)depth;
    if (depth >= 0)
        sink(depth + 1);
    deepest = page[0];
}

/* Stands still until somebody lets the process go on, and then until the signals that
 * have come meanwhile are taken, which another thread may do (src/cli/signals.c). */
static void
stand(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    sigset_t left;
    kill(getpid(), SIGSTOP);
    while (sigpending(&left) == 0 &&
           (sigismember(&left, SIGINT) || sigismember(&left, SIGTERM) ||
            sigismember(&left, SIGUSR1) || sigismember(&left, SIGUSR2)))
        nanosleep(&moment, NULL);
}

static void
end_process(const struct fault *f)
{
    if (f->action == ABORT)
        abort();
    if (f->action == OVERFLOW)
        sink(0);
    if (f->action == EXIT)
        exit(0);
    if (f->action == KILL)
        kill(getpid(), SIGKILL);
    if (f->action == STOP)
        stand();
    if (f->action == CRASH)
        raise(SIGSEGV);
}

/* What happens at POINT now: 0, or an errno; *LESS is set for a short count, or where
 * nothing is to be done. */
static int
pass(const char *point, bool *less)
{
    int failed = 0, wait = 0;
    volatile bool spins = false;
    pthread_mutex_lock(&lock);
    reached++;
    for (int i = 0; i < n_faults; i++) {
        struct fault *f = &fault[i];
        if (strcmp(f->point, "*") != 0 && strcmp(f->point, point) != 0)
            continue;
        if ((f->rank >= 0 && f->rank != own_rank()) || (++f->seen != f->at && f->at))
            continue;
        end_process(f);
        if (f->action == SAY) {
            dprintf(STDOUT_FILENO, "out: %s\n", point);
            dprintf(STDERR_FILENO, "err: %s\n", point);
        }
        spins = spins || f->action == SPIN;
        if (f->action == ERRNO)
            failed = f->number;
        if (f->action == DELAY)
            wait = f->number;
        if ((f->action == SHORT || f->action == SKIP) && less)
            *less = true;
    }
    pthread_mutex_unlock(&lock);
    while (spins)
        ;
    struct timespec left = {wait / 1000, wait % 1000 * 1000000L};
    while (wait && nanosleep(&left, &left) != 0)
        ; /* a signal does not shorten it */
    return failed;
}

static void
reach(const char *point)
{
    (void)pass(point, NULL);
}

/* The calls themselves: one fault each, then the system. */
#define FAIL_OR(point, call)                                                           \
    do {                                                                               \
        int failed = pass(point, NULL);                                                \
        if (failed) {                                                                  \
            errno = failed;                                                            \
            return -1;                                                                 \
        }                                                                              \
        return call;                                                                   \
    } while (0)

static int
faulty_open(int dir, const char *path, int flags, mode_t mode)
{
    FAIL_OR("open", eti_system.file.open(dir, path, flags, mode));
}

static ssize_t
faulty_read(int fd, void *buf, size_t n, off_t at)
{
    bool shorter = false;
    int failed = pass("read", &shorter);
    if (failed)
        return errno = failed, -1;
    return eti_system.file.read(fd, buf, shorter && n > 1 ? 1 : n, at);
}

static ssize_t
faulty_write(int fd, const void *buf, size_t n)
{
    bool shorter = false;
    int failed = pass("write", &shorter);
    if (failed)
        return errno = failed, -1;
    return eti_system.file.write(fd, buf, shorter && n > 1 ? 1 : n);
}

static int
faulty_sync(int fd)
{
    FAIL_OR("sync", eti_system.file.sync(fd));
}

static int
faulty_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    FAIL_OR("rename", eti_system.file.rename(from_dir, from, to_dir, to));
}

static int
faulty_unlink(int dir, const char *path, int flags)
{
    FAIL_OR("unlink", eti_system.file.unlink(dir, path, flags));
}

static int
faulty_folder(int dir, const char *path, mode_t mode)
{
    FAIL_OR("folder", eti_system.file.make_folder(dir, path, mode));
}

/* The linker puts these in the place of core's (--wrap). */
et_status __real_et_comm_all_reduce(struct et_ctx *cx, struct et_comm *c, void *data,
                                    int64_t n, enum et_dtype dtype, enum et_comm_op op);
et_status __wrap_et_comm_all_reduce(struct et_ctx *cx, struct et_comm *c, void *data,
                                    int64_t n, enum et_dtype dtype, enum et_comm_op op);

et_status
__wrap_et_comm_all_reduce(struct et_ctx *cx, struct et_comm *c, void *data, int64_t n,
                          enum et_dtype dtype, enum et_comm_op op)
{
    bool skipped = false;
    if (c)
        (void)pass("all_reduce", &skipped);
    return skipped ? ET_OK : __real_et_comm_all_reduce(cx, c, data, n, dtype, op);
}

static void
write_count(const char *path)
{
    FILE *f = fopen(path, "w");
    if (f) {
        fprintf(f, "%ld\n", reached);
        fclose(f);
    }
}

int
main(int argc, char **argv)
{
    if (argc == 1) { /* it is among the tests' programs, and no test */
        puts("1..0 # SKIP this is the program that t/torture/kill.t runs");
        return 0;
    }
    const char *points = getenv("ETUDE_FAILPOINTS"),
               *count = getenv("ETUDE_FAILPOINTS_COUNT");
    char *text = strdup(points ? points : ""), *rest = text;
    struct eti_seams seams = eti_system;
    seams.file.open = faulty_open;
    seams.file.read = faulty_read;
    seams.file.write = faulty_write;
    seams.file.sync = faulty_sync;
    seams.file.rename = faulty_rename;
    seams.file.unlink = faulty_unlink;
    seams.file.make_folder = faulty_folder;
    seams.reach = reach;
    for (char *one; (one = strsep(&rest, ";"));)
        if (*one)
            parse_one(one);
    free(text);
    int code = cli_main(argc, argv, &seams);
    if (count)
        write_count(count);
    return code;
}
