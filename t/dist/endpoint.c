/* SPDX-License-Identifier: Apache-2.0 */
/* A run listens where nobody else can come, and removes nothing that is not its own. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "dist/wire/channel.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char base[64], folder[80];

static void
forget_error(void)
{
    et_error_clear(cx);
}

static void
is_refused(const char *name, int code, const char *what)
{
    struct etd_endpoint e;
    et_status status = etd_endpoint_claim(cx, name, NULL, &e);
    ok(status != ET_OK, "%s: nothing listens", what);
    is_int(et_error_get(cx)->code, code, "%s", et_error_get(cx)->message);
    forget_error();
    if (status == ET_OK)
        etd_endpoint_release(&e);
}

static int
keep_socket(void *data, const char *address, int fd)
{
    (void)address;
    *(int *)data = fd;
    return 0;
}

static void
drop_socket(void *data, const char *address, int fd)
{
    (void)address;
    close(fd);
    *(int *)data = -1;
}

static int
open_socket(void *data, const char *address, int fd)
{
    chmod(address + strlen("ipc://"), 0666);
    return keep_socket(data, address, fd);
}

static const struct etd_listener keeper = {keep_socket, drop_socket};
static const struct etd_listener opener = {open_socket, drop_socket};

/* The same with a socket of zmq. */
static int
open_zmq(void *data, const char *address, int fd)
{
    chmod(address + strlen("ipc://"), 0666);
    return etd_endpoint_zmq.listen(data, address, fd);
}

/* Open descriptors of this process that are sockets. */
static int
count_sockets(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *d; dir && (d = readdir(dir));) {
        char to[64] = "";
        n += readlinkat(dirfd(dir), d->d_name, to, sizeof to - 1) > 0 &&
             strncmp(to, "socket:", 7) == 0;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Binding is tried again each second where the place is unsafe: that must cost
 * nothing. */
static void
test_given_up(void)
{
    struct etd_listener unsafe = etd_endpoint_zmq;
    void *zmq = zmq_ctx_new();
    void *router = etd_endpoint_router(zmq, 8, 8, 1024, true);
    unsafe.listen = open_zmq;
    int before = count_sockets(), after = -1, refused = 0;
    for (int i = 0; i < 20; i++) {
        struct etd_endpoint e;
        refused += etd_endpoint_claim(cx, "unsafe", NULL, &e) == ET_OK &&
                   etd_endpoint_bind(&e, &unsafe, router) != ET_OK;
        forget_error();
        etd_endpoint_release(&e);
    }
    is_int(refused, 20, "a place that is open to others is given up again and again");
    for (int i = 0; i < 1000 && (after = count_sockets()) > before; i++)
        usleep(10000); /* zmq's thread closes them */
    is_int(after, before, "and nothing goes on listening there");
    zmq_close(router);
    zmq_ctx_term(zmq);
}

/* Somebody who listens at PATH without a claim; -1: it is taken. */
static int
listen_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

static void
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static void
test_folder(void)
{
    struct stat st;
    char elsewhere[96];
    struct etd_endpoint e;
    ok(etd_endpoint_claim(cx, "a", NULL, &e) == ET_OK, "the folder is made");
    ok(lstat(folder, &st) == 0 && (st.st_mode & 07777) == 0700, "for its owner alone");
    etd_endpoint_release(&e);
    chmod(folder, 0750);
    is_refused("a", ETD_E_UNSAFE, "a folder that the group can enter");
    chmod(folder, 0701);
    is_refused("a", ETD_E_UNSAFE, "a folder that others can enter");
    chmod(folder, 0700);
    if (geteuid() == 0) {
        ok(chown(folder, 65534, 65534) == 0, "somebody else's folder");
        is_refused("a", ETD_E_UNSAFE, "a folder of another user");
        ok(chown(folder, geteuid(), getegid()) == 0, "and ours again");
    } else {
        skip(4, "root alone can give folders away");
    }
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", base);
    rename(folder, elsewhere);
    ok(symlink(elsewhere, folder) == 0, "a link in the folder's place");
    is_refused("a", ETD_E_UNSAFE, "a link to a folder");
    unlink(folder);
    write_file(folder, "");
    is_refused("a", ETD_E_UNSAFE, "a file");
    unlink(folder);
    rename(elsewhere, folder);
}

static void
test_place(void)
{
    struct etd_endpoint e, other;
    struct stat st;
    char path[128], text[16] = "", link[160];
    int fd, fd2 = -1;
    snprintf(path, sizeof path, "%s/b.sock", folder);
    write_file(path, "mine");
    is_refused("b", ETD_E_TAKEN, "a file in the socket's place");
    FILE *f = fopen(path, "r");
    ok(f && fgets(text, sizeof text, f) && strcmp(text, "mine") == 0,
       "it is untouched");
    fclose(f);
    ok(etd_endpoint_is_ours(cx, path) == ET_ENOENT,
       "nothing listens there, it is told");
    et_error_clear(cx);
    unlink(path);

    snprintf(link, sizeof link, "%s/target", folder);
    write_file(link, "mine");
    ok(symlink(link, path) == 0, "a link in the socket's place");
    is_refused("b", ETD_E_TAKEN, "a link");
    ok(lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && lstat(link, &st) == 0,
       "link and file are untouched");
    unlink(path);
    ok(mkdir(path, 0700) == 0, "a folder in the socket's place");
    is_refused("b", ETD_E_TAKEN, "a folder there");
    rmdir(path);

    ok(etd_endpoint_claim(cx, "b", NULL, &e) == ET_OK &&
           etd_endpoint_bind(&e, &keeper, &fd) == ET_OK,
       "a free place is taken");
    ok(lstat(path, &st) == 0 && (st.st_mode & 077) == 0, "and others kept out");
    is_refused("b", ETD_E_TAKEN, "a place that is taken");
    ok(etd_endpoint_claim(cx, "b", "0123456789abcdef", &other) == ET_OK,
       "another run of that name listens beside it");
    ok(strstr(other.path, "b-01234567.sock") != NULL, "at %s", other.path);
    char found[ETD_SOCKET_PATH];
    ok(etd_endpoint_bind(&other, &keeper, &fd2) == ET_OK &&
           etd_endpoint_find(cx, "b", "0123456789abcdef", found) == ET_OK &&
           strcmp(found, other.path) == 0,
       "where it is found by its id");
    close(fd2);
    etd_endpoint_release(&other);

    /* Its process dies: the lock is gone, the socket stays. */
    close(fd);
    close(e.lock);
    ok(lstat(path, &st) == 0, "a dead socket is left behind");
    ok(etd_endpoint_claim(cx, "b", NULL, &e) == ET_OK, "and cleared away by the next");
    ok(lstat(path, &st) != 0, "which finds a free place");
    et_status status = etd_endpoint_bind(&e, &opener, &fd);
    ok(status != ET_OK, "a socket that turns out open to others is given up");
    is_int(et_error_get(cx)->code, ETD_E_UNSAFE, "%s", et_error_get(cx)->message);
    forget_error();
    etd_endpoint_release(&e);
    is_int(fd, -1, "and whoever was to listen has left it");

    /* A live socket that somebody bound without the lock. */
    ok((fd = listen_at(path)) >= 0, "somebody listens without the lock");
    is_refused("b", ETD_E_TAKEN, "a socket that answers");
    ok(lstat(path, &st) == 0, "it is untouched");
    close(fd);
    unlink(path);

    snprintf(link, sizeof link, "%s/c.lock", folder);
    snprintf(path, sizeof path, "%s/target", folder);
    ok(symlink(path, link) == 0, "a link in the lock's place");
    is_refused("c", ETD_E_TAKEN, "a link for a lock");

    /* A run has another place to go to. */
    snprintf(path, sizeof path, "%s/f.sock", folder);
    write_file(path, "mine");
    ok(etd_endpoint_claim(cx, "f", "0123456789abcdef", &e) == ET_OK &&
           strstr(e.path, "f-01234567.sock") != NULL,
       "a file in the place of a run's socket: it listens beside it");
    etd_endpoint_release(&e);
    ok(lstat(path, &st) == 0 && S_ISREG(st.st_mode), "and leaves the file alone");
}

/* Folders are removed under runs, and made again by others. */
static void
test_lost(void)
{
    struct etd_endpoint e, again;
    struct stat st;
    char path[128], found[ETD_SOCKET_PATH], command[256];
    int fd = -1, other = -1;
    ok(etd_endpoint_claim(cx, "g", NULL, &e) == ET_OK &&
           etd_endpoint_bind(&e, &keeper, &fd) == ET_OK && etd_endpoint_stands(&e),
       "what was bound stands");
    snprintf(path, sizeof path, "%s", e.path);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ok(system(command) == 0 && !etd_endpoint_stands(&e),
       "with its folder removed it does not");
    ok(etd_endpoint_claim(cx, "g", NULL, &again) == ET_OK &&
           etd_endpoint_bind(&again, &keeper, &other) == ET_OK,
       "another can take the place");
    ok(!etd_endpoint_stands(&e), "which is not the first one's for that");
    etd_endpoint_release(&e);
    ok(lstat(path, &st) == 0 && etd_endpoint_stands(&again),
       "and stays when the first one ends");
    close(fd);
    etd_endpoint_release(&again);
    close(other);

    /* The folder in /tmp is that of everybody without one of his own. */
    char common[64];
    snprintf(common, sizeof common, "/tmp/etude-%ld", (long)getuid());
    bool had_common = lstat(common, &st) == 0;
    snprintf(command, sizeof command, "%s/nowhere", base);
    setenv("XDG_RUNTIME_DIR", command, 1);
    ok(etd_endpoint_claim(cx, "lost-otter", NULL, &e) == ET_OK &&
           etd_endpoint_bind(&e, &keeper, &fd) == ET_OK &&
           strncmp(e.path, common, strlen(common)) == 0,
       "with an XDG_RUNTIME_DIR that is not there it listens at %s", e.path);
    setenv("XDG_RUNTIME_DIR", base, 1);
    ok(etd_endpoint_find(cx, "lost-otter", NULL, found) == ET_OK &&
           strcmp(found, e.path) == 0,
       "and is found by who has one");
    ok(etd_endpoint_is_ours(cx, found) == ET_OK, "who may speak to it");
    snprintf(path, sizeof path, "%s.lock", e.path);
    etd_endpoint_release(&e);
    close(fd);
    snprintf(path, sizeof path, "%s/lost-otter.lock", common);
    (void)unlink(path);
    if (!had_common)
        (void)rmdir(common);
}

/* Another machine is spoken to with a key of each side, or not at all. */
static void
test_both_keys(void)
{
    static const struct etd_keys own = {.public_key = "", .secret = ""};
    const struct etd_channel_options without[] = {
        {.target = "tcp://127.0.0.1:9"},
        {.target = "tcp://127.0.0.1:9", .keys = &own},
        {.target = "tcp://127.0.0.1:9",
         .server = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"},
    };
    static const char *const what[] = {"any key", "the other's key",
                                       "a key of its own"};
    for (size_t i = 0; i < 3; i++) {
        struct etd_channel *line = NULL;
        ok(etd_channel_open(cx, &without[i], &line) == ET_EINVAL && !line &&
               et_error_get(cx)->code == ETD_E_KEYS,
           "nobody sets out over TCP without %s", what[i]);
        forget_error();
    }
}

/* Nothing is said to sockets of others. */
static void
test_owner(void)
{
    char path[128], found[ETD_SOCKET_PATH];
    struct etd_channel *line;
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/h.sock", folder);
    const struct etd_channel_options o = {.target = path};
    int fd = listen_at(path);
    ok(etd_channel_open(cx, &o, &line) == ET_OK, "a socket of ours is spoken to");
    etd_channel_close(&line);
    if (geteuid() == 0 && chown(path, 65534, 65534) == 0) {
        ok(etd_channel_open(cx, &o, &line) == ET_ECANCELED,
           "one of another user is not");
        is_int(et_error_get(cx)->code, ETD_E_UNSAFE, "%s", et_error_get(cx)->message);
        forget_error();
    } else {
        skip(2, "root alone can give sockets away");
    }
    chmod(folder, 0755);
    ok(etd_endpoint_find(cx, "h", NULL, found) != ET_OK &&
           et_error_get(cx)->code == ETD_E_UNSAFE,
       "nor is one looked for where others can enter: %s", et_error_get(cx)->message);
    ok(strstr(et_error_get(cx)->hint, "chmod 700") != NULL, "with what helps: %s",
       et_error_get(cx)->hint);
    forget_error();
    chmod(folder, 0700);
    close(fd);
    unlink(path);
}

/* What a channel gives is there until the next is asked for, and then no more. */
static void
test_messages_go(void)
{
    enum { MESSAGES = 512, BYTES = 64 << 10, PATIENCE = 60 * 1000 };
    static char message[BYTES];
    char path[128], address[160], id[256];
    struct rusage before, after;
    struct etd_channel *line;
    const char *bytes;
    size_t n;
    int good = 0;
    snprintf(path, sizeof path, "%s/many.sock", folder);
    snprintf(address, sizeof address, "ipc://%s", path);
    void *zmq = zmq_ctx_new(), *router = zmq_socket(zmq, ZMQ_ROUTER);
    const int patience = PATIENCE, none = 0;
    zmq_setsockopt(router, ZMQ_RCVTIMEO, &patience, sizeof patience);
    zmq_setsockopt(router, ZMQ_LINGER, &none, sizeof none);
    const struct etd_channel_options o = {.target = path};
    if (zmq_bind(router, address) != 0 || etd_channel_open(cx, &o, &line) != ET_OK ||
        !etd_channel_send(line, "x", 1))
        bail("nobody speaks");
    int id_n = zmq_recv(router, id, sizeof id, 0);
    (void)zmq_recv(router, message, sizeof message, 0);
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; id_n > 0 && i < MESSAGES; i++) {
        struct pollfd p = {.fd = etd_channel_fd(line), .events = POLLIN};
        enum etd_got got;
        message[BYTES - 1] = (char)i;
        (void)zmq_send(router, id, (size_t)id_n, ZMQ_SNDMORE);
        (void)zmq_send(router, message, BYTES, 0);
        while ((got = etd_channel_receive(line, &bytes, &n)) == ETD_GOT_NOTHING &&
               poll(&p, 1, PATIENCE) > 0)
            ;
        good += got == ETD_GOT_MESSAGE && n == BYTES && bytes[n - 1] == (char)i;
    }
    getrusage(RUSAGE_SELF, &after);
    is_int(good, MESSAGES, "messages come as they were sent");
#ifdef __SANITIZE_ADDRESS__
    skip(1, "what is freed is kept for a while: leaks are found at the end");
#else
    ok(after.ru_maxrss - before.ru_maxrss < (long)MESSAGES * BYTES / 1024 / 2,
       "and do not stay: %ld KiB more for %d of them",
       after.ru_maxrss - before.ru_maxrss, MESSAGES);
#endif
    etd_channel_close(&line);
    zmq_close(router);
    zmq_ctx_term(zmq);
    unlink(path);
}

/* ---- squatters: somebody who puts things where ours are to be, at any moment ---- */

enum { THINGS = 3 }; /* a folder that others can enter, a link, a file */

/* What a squatter knows: shared with it. */
static struct squat {
    _Atomic bool stop;
    _Atomic long put, lost; /* things put there; of them gone without its doing */
} * squat;

static bool
put_thing(const char *path, const char *victim, int what)
{
    if (what == 0)
        return mkdir(path, 0755) == 0;
    if (what == 1)
        return symlink(victim, path) == 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Until it is told to stop. It takes away what it has put, and nothing else. */
static pid_t
start_squatter(const char *path, const char *victim)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    for (int i = 0; !squat->stop && getppid() == parent; i++) {
        int what = i % THINGS;
        if (!put_thing(path, victim, what))
            continue;
        squat->put++;
        usleep((unsigned)(i * 7 % 60)); /* so that each comes in between the other */
        if ((what == 0 ? rmdir(path) : unlink(path)) != 0)
            squat->lost++;
    }
    _exit(0);
}

/* Claims and binds N times; how often that was possible. *WRONG: times that it came to
 * listen where it must not. */
static int
claim_often(const char *place, int n, int *wrong)
{
    int taken = 0, fd;
    *wrong = 0;
    for (int i = 0; i < n; i++) {
        struct etd_endpoint e;
        struct stat st, at;
        fd = -1;
        usleep((unsigned)(i * 11 % 60));
        if (etd_endpoint_claim(cx, "race", NULL, &e) == ET_OK) {
            bool bound = etd_endpoint_bind(&e, &keeper, &fd) == ET_OK;
            taken += bound;
            *wrong += bound && !(lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
                                 st.st_uid == getuid() && !(st.st_mode & 077) &&
                                 lstat(e.path, &at) == 0 && S_ISSOCK(at.st_mode));
        }
        forget_error();
        etd_endpoint_release(&e);
        if (fd >= 0)
            close(fd);
        if (strcmp(place, folder) == 0) { /* it is to be made again */
            char lock[128];
            snprintf(lock, sizeof lock, "%s/race.lock", folder);
            if (lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & 077)) {
                (void)unlink(lock);
                (void)rmdir(folder);
            }
        }
    }
    return taken;
}

/* R24: as many races as N for the folder, and as many for the socket in it. */
static void
test_races(int n)
{
    char victim[96], place[128], command[256];
    int wrong;
    squat = mmap(NULL, sizeof *squat, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(victim, sizeof victim, "%s/victim", base);
    if (squat == MAP_FAILED || mkdir(victim, 0755) != 0)
        bail("no memory to share, or no folder");
    for (int k = 0; k < 2; k++) {
        snprintf(command, sizeof command, "rm -rf '%s'", folder);
        if (system(command) != 0 || (k == 1 && mkdir(folder, 0700) != 0))
            bail("the folder stays");
        snprintf(place, sizeof place, "%s%s", folder, k ? "/race.sock" : "");
        memset(squat, 0, sizeof *squat);
        pid_t pid = start_squatter(place, victim);
        int taken = claim_often(place, n, &wrong);
        squat->stop = true;
        waitpid(pid, NULL, 0);
        is_int(wrong, 0,
               "R24: %d races for %s (%d won, %ld things put there): it "
               "listens nowhere else",
               n, k ? "the socket" : "the folder", taken, (long)squat->put);
        is_int(squat->lost, 0, "and nothing that is not its own is removed");
    }
    ok(rmdir(victim) == 0, "nothing was made where links lead");
    munmap(squat, sizeof *squat);
}

/* How many have the place at this moment, and how often more than one had. */
struct owners {
    atomic_int now, shared;
};

static void
own_often(struct owners *o, int n)
{
    for (int i = 0; i < n; i++) {
        struct etd_endpoint e;
        if (etd_endpoint_claim(cx, "turns", NULL, &e) == ET_OK) {
            o->shared += atomic_fetch_add(&o->now, 1) != 0;
            usleep((unsigned)(i % 20));
            atomic_fetch_sub(&o->now, 1);
        }
        forget_error();
        etd_endpoint_release(&e);
    }
}

/* Who gives a place back removes the lock's file, which others may have opened. */
static void
test_turns(int n)
{
    char lock[128];
    struct stat st;
    int status;
    struct owners *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (o == MAP_FAILED)
        bail("no memory to share");
    (void)mkdir(folder, 0700);
    (void)chmod(folder, 0700);
    pid_t pid = fork();
    if (pid == 0) {
        own_often(o, n);
        _exit(0);
    }
    own_often(o, n);
    waitpid(pid, &status, 0);
    is_int(o->shared, 0, "two who want a place %d times never have it at once", n);
    snprintf(lock, sizeof lock, "%s/turns.lock", folder);
    ok(lstat(lock, &st) != 0 && errno == ENOENT, "and leave no lock behind");
    munmap(o, sizeof *o);
}

int
main(void)
{
    char name[128], path[ETD_SOCKET_PATH];
    umask(022);
    snprintf(base, sizeof base, "/tmp/etd-XXXXXX");
    if (!mkdtemp(base) || et_ctx_new(&cx) != ET_OK)
        bail("no folder: %s", strerror(errno));
    setenv("XDG_RUNTIME_DIR", base, 1);
    snprintf(folder, sizeof folder, "%s/etude", base);
    test_folder();
    test_place();
    test_given_up();
    test_lost();
    test_both_keys();
    test_owner();
    test_messages_go();
    test_turns(2000);
    test_races(getenv("ETUDE_LONG") ? 10000 : 300);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    is_refused(name, ETD_E_ADDRESS, "a name too long for a socket");
    unsetenv("XDG_RUNTIME_DIR");
    ok(etd_endpoint_path(cx, "d", path) == ET_OK, "without XDG_RUNTIME_DIR");
    snprintf(name, sizeof name, "/tmp/etude-%ld/d.sock", (long)getuid());
    is_str(path, name, "the folder is in /tmp, with the uid in its name");
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    ok(system(command) == 0, "(what the test made is removed)");
    et_ctx_free(&cx);
    return done();
}
