/* faults.c: the program `etude` in a world that breaks where it is told to.
 *
 *     ETUDE_FAILPOINTS="rename=kill@3;batch_end=stop@100;write=errno:ENOSPC@7"
 *
 * A point is an event of training by its name, a point that core names ("checkpoint.
 * snapshot"), a file operation (open read write sync rename unlink folder), or "*", any
 * of these. Actions: kill and stop (the signals), errno:NAME and short (file
 * operations), delay:MILLISECONDS; they happen at the K-th time (@K; 1), counted from
 * 1, over all threads. ETUDE_FAILPOINTS_COUNT names a file that at the end holds how
 * many points were reached. The program that people run has none of this: it is linked
 * with main.c in the place of this file. */
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

enum { MOST = 16 };

static struct fault {
    char point[64];
    enum { KILL, STOP, ERRNO, SHORT, DELAY } action;
    int number; /* errno, or milliseconds */
    long at, seen;
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
    snprintf(f->point, sizeof f->point, "%s", text);
    if (strcmp(action, "kill") == 0)
        f->action = KILL;
    else if (strcmp(action, "stop") == 0)
        f->action = STOP;
    else if (strcmp(action, "short") == 0)
        f->action = SHORT;
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

/* What happens at POINT now: 0, or an errno; SHORTER is set for a short count. */
static int
pass(const char *point, bool *shorter)
{
    int failed = 0, wait = 0;
    pthread_mutex_lock(&lock);
    reached++;
    for (int i = 0; i < n_faults; i++) {
        struct fault *f = &fault[i];
        if (strcmp(f->point, "*") != 0 && strcmp(f->point, point) != 0)
            continue;
        if (++f->seen != f->at)
            continue;
        if (f->action == KILL)
            kill(getpid(), SIGKILL);
        if (f->action == STOP)
            kill(getpid(), SIGSTOP);
        if (f->action == ERRNO)
            failed = f->number;
        if (f->action == DELAY)
            wait = f->number;
        if (f->action == SHORT && shorter)
            *shorter = true;
    }
    pthread_mutex_unlock(&lock);
    if (wait)
        nanosleep(&(struct timespec){wait / 1000, wait % 1000 * 1000000L}, NULL);
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
