/* SPDX-License-Identifier: Apache-2.0 */
/* What hub and worker keep of RELIABILITY.md section 7, as far as it is a matter of
 * time, or of what nobody sees from outside: the table at the end has a row for each
 * limit. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "dist/comm/store_impl.h"
#include "dist/hub/client.h"
#include "dist/wire/auth.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "dist/worker/worker.h"
#include "t/dist/talk.h"
#include "t/tap.h"

static struct house h;
static struct talk watch;
static char list[128]; /* authorized_keys */
static struct etd_keys server, ann, bob;

/* ---- 7.1 the place of the hub ---- */

/* The hub has looked at its place since, a second later; what it says is heard. */
static void
look_at_place(void)
{
    talk_pass(&watch, 1);
    house_supervise(&h);
}

/* The inode at PATH; 0: nothing is there. */
static ino_t
inode(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? st.st_ino : 0;
}

/* A minute, in which the hub stays where it is, and says nothing of it. */
static void
stays(const char *what)
{
    int places = h.places;
    ino_t here = inode(h.socket);
    for (int i = 0; i < 60 && h.places == places; i++)
        look_at_place();
    if (!ok(here && inode(h.socket) == here && h.places == places, "%s", what))
        bail("the hub has left its place: %s", h.why);
}

/* Where others can enter its folder no hub listens, until they cannot any more. */
static void
test_unsafe_place(void)
{
    char folder[128];
    snprintf(folder, sizeof folder, "%s/etude", h.folder);
    int places = h.places;
    if (unlink(h.socket) != 0 || chmod(folder, 0755) != 0)
        bail("no other mode for %s", folder);
    for (int i = 0; i < 20; i++)
        look_at_place();
    ok(!inode(h.socket), "where others can enter its folder it listens nowhere");
    ok(h.places == places + 1 && !h.place[0] && strstr(h.why, "mode 0755"),
       "and says so once, with the reason: %s", h.why);
    chmod(folder, 0700);
    look_at_place();
    is_int(h.places, places + 2, "when they cannot any more it listens again,");
    is_str(h.place, h.socket, "says where,");
    ok(strstr(h.why, "mode 0755"), "and why it did not");
    stays("where it stays");
}

/* The status with which the hub's process ended; -1: it goes on, turn after turn. */
static int
exit_of_hub(void)
{
    double end = eti_system.monotonic() + 120;
    int turns = atomic_load(&desk->turns);
    siginfo_t how = {0};
    while (atomic_load(&desk->turns) < turns + 3 && eti_system.monotonic() < end) {
        (void)!send(h.supervisor, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (waitid(P_PID, (id_t)h.hub, &how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            how.si_pid == h.hub)
            return how.si_code == CLD_EXITED ? how.si_status : -1;
        usleep(200);
    }
    return -1;
}

/* A place that is lost leaves a socket open: after sixteen another hub begins. */
static void
test_place(void)
{
    enum { MOST = 16 };
    struct talk t;
    talk_restart(&h, &watch);
    house_supervise(&h);
    int places = h.places, again = 0;
    stays("a hub stays where it listens");
    is_int((int)talk_ping(&watch, 0), ETD_PONG, "with those who are there");
    if (unlink(h.socket) != 0)
        bail("no %s", h.socket);
    look_at_place();
    is_int(h.places, places + 1, "where its socket is removed it listens again");
    is_str(h.place, h.socket, "says where,");
    ok(strstr(h.why, "is gone"), "and why: %s", h.why);
    stays("and stays there");
    t = talk_open(&h);
    is_int((int)talk_hello(&t, -2, -1, NULL), ETD_WELCOME, "where it is found");
    talk_close(&t);
    test_unsafe_place();
    for (int i = 4; i <= MOST; i++) {
        (void)unlink(h.socket);
        look_at_place();
        again += inode(h.socket) != 0;
    }
    is_int(again, MOST - 3, "it does so for sixteen places");
    (void)unlink(h.socket);
    atomic_store(&desk->now, atomic_load(&desk->now) + 1);
    is_int(exit_of_hub(), 1, "when the last is gone, too, it ends, as one that failed");
    talk_restart(&h, &watch);
}

/* ---- 7.2 a stranger at the door ---- */

/* Does nobody listen at PORT of this machine, after a while? */
static bool
is_closed(const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)strtol(port, NULL, 10)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool refused = false;
    for (int i = 0; i < 1000 && !refused; i++, usleep(10000)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        refused =
            connect(fd, (struct sockaddr *)&a, sizeof a) != 0 && errno == ECONNREFUSED;
        close(fd);
    }
    return refused;
}

static void
test_stranger(void)
{
    struct etd_auth door;
    char bound[ETD_ADDRESS] = "";
    void *zmq = zmq_ctx_new();
    void *router = etd_endpoint_router(zmq, 8, 8, 1024, false);
    if (etd_auth_open(h.cx, zmq, list, &door) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    ok(etd_auth_bind(&door, router, &server, "tcp://127.0.0.1:0", bound) == ET_OK,
       "behind a door that turns a stranger away a worker listens");
    zmq_close(router);

    router = etd_endpoint_router(zmq, 8, 8, 1024, false);
    etd_auth_close(&door); /* nobody asks for keys: zmq lets all in */
    ok(etd_auth_bind(&door, router, &server, "tcp://127.0.0.1:0", bound) != ET_OK,
       "where nobody would turn a stranger away it does not");
    is_int(et_error_get(h.cx)->code, 5001, "%s", et_error_get(h.cx)->message);
    et_error_clear(h.cx);
    ok(is_closed(strrchr(bound, ':') + 1), "and nothing is left that listens");
    zmq_close(router);
    zmq_ctx_term(zmq);
}

/* ---- 7.3 a server that is another ---- */

/* What somebody at a server's address does who has not its key. */
enum impostor {
    LEAVES,  /* says who speaks, and goes */
    BREAKS,  /* takes a HELLO, which it cannot read, and goes: as libzmq does */
    ANSWERS, /* or answers it */
    IN_CLEAR /* does not ask for keys at all */
};

/* A socket that listens at this machine, where TO says. */
static int
listen_as_impostor(char to[ETD_ADDRESS])
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    const struct timeval patience = {.tv_sec = 120};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
        bail("nobody listens: %s", strerror(errno));
    snprintf(to, ETD_ADDRESS, "tcp://127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

/* Speaks ZMTP 3.0 with CURVE (rfc.zeromq.org, 23 and 26) to who calls at FD, as far as
 * one can who does not know the server's secret key. Returns that connection. */
static int
impersonate(int fd, enum impostor how)
{
    enum { GREETING = 64, HELLO = 2 + 200 };
    /* (Who calls says nothing more when it hears that no key is asked for.) */
    static const size_t waits_for[] = {[LEAVES] = GREETING,
                                       [BREAKS] = GREETING + HELLO,
                                       [ANSWERS] = GREETING + HELLO,
                                       [IN_CLEAR] = 0};
    char greeting[GREETING] = "\xff\0\0\0\0\0\0\0\0\x7f\3\0", heard[GREETING + HELLO];
    char welcome[2 + 168] =
        "\4\xa8\7WELCOME"; /* then zeros, which nobody has encrypted */
    const struct timeval patience = {.tv_sec = 120};
    int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    memcpy(greeting + 12, how == IN_CLEAR ? "NULL" : "CURVE", 5);
    greeting[32] = how != IN_CLEAR; /* as a server */
    if (c < 0)
        bail("nobody calls: %s", strerror(errno));
    (void)setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    /* Of what does not arrive the caller is told as well: its line is gone. */
    (void)send(c, greeting, sizeof greeting, MSG_NOSIGNAL);
    (void)recv(c, heard, waits_for[how], MSG_WAITALL);
    if (how == ANSWERS)
        (void)send(c, welcome, sizeof welcome, MSG_NOSIGNAL);
    if (how == LEAVES || how == BREAKS)
        shutdown(c, SHUT_RDWR);
    return c;
}

/* What becomes of ann's line to one who does that. */
static enum etd_got
call_impostor(enum impostor how)
{
    char to[ETD_ADDRESS];
    const char *bytes;
    size_t n;
    struct etd_channel *line;
    enum etd_got got = ETD_GOT_NOTHING;
    int fd = listen_as_impostor(to);
    const struct etd_channel_options o = {
        .target = to, .keys = &ann, .server = server.public_key};
    if (etd_channel_open(h.cx, &o, &line) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    int c = impersonate(fd, how);
    double end = eti_system.monotonic() + 120;
    while (got == ETD_GOT_NOTHING && eti_system.monotonic() < end) {
        struct pollfd p = {.fd = etd_channel_fd(line), .events = POLLIN};
        (void)poll(&p, 1, 100);
        got = etd_channel_receive(line, &bytes, &n);
    }
    etd_channel_close(&line);
    close(c);
    close(fd);
    return got;
}

/* A viewer of a server that is not the one known has no reason to try again. */
static void
test_denied_viewer(void)
{
    char to[ETD_ADDRESS];
    struct etd_client *c;
    int fd = listen_as_impostor(to);
    const struct etd_client_options o = {
        .channel = {.target = to, .keys = &ann, .server = server.public_key}};
    if (etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    int line = impersonate(fd, IN_CLEAR);
    const struct etd_client_status *s = etd_client_status(c);
    double end = eti_system.monotonic() + 120;
    while (!*s->code && eti_system.monotonic() < end) {
        struct pollfd p = {.fd = etd_client_fd(c), .events = POLLIN};
        (void)poll(&p, 1, 100);
        if (etd_client_step(c) != ET_OK)
            bail("%s", et_error_get(h.cx)->message);
    }
    is_str(s->code, "KEY", "a viewer is told that it is the key");
    is_int((int)s->link, ETD_LINK_REFUSED, "and does not try again");
    etd_client_close(&c);
    close(line);
    close(fd);
}

/* What a caller gave a viewer is its own: it comes again after the caller has written
 * over all of that. */
static void
test_copied_texts(void)
{
    char to[ETD_ADDRESS], key[sizeof server.public_key];
    struct etd_keys own = ann;
    struct etd_client *c;
    int fd = listen_as_impostor(to);
    memcpy(key, server.public_key, sizeof key);
    const struct etd_client_options o = {
        .channel = {.target = to, .keys = &own, .server = key}};
    if (etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    memset(to, 'x', sizeof to - 1);
    memset(key, 0x20, sizeof key - 1); /* no key has blanks */
    memset(&own, 'x', sizeof own);
    close(impersonate(fd, LEAVES));
    const struct etd_client_status *s = etd_client_status(c);
    bool again = false, gone = false;
    double end = eti_system.monotonic() + 60;
    while (!again && eti_system.monotonic() < end) {
        struct pollfd p[] = {{.fd = fd, .events = POLLIN},
                             {.fd = etd_client_fd(c), .events = POLLIN}};
        (void)poll(p, 2, 100);
        again = gone && p[0].revents & POLLIN;
        if (etd_client_step(c) != ET_OK)
            bail("%s", et_error_get(h.cx)->message);
        if (!gone && s->link == ETD_LINK_DISCONNECTED) {
            gone = true;
            etd_client_retry(c);
        }
    }
    ok(gone && again, "a viewer calls again where it called, with the keys it had");
    etd_client_close(&c);
    close(fd);
}

static void
test_impostor(void)
{
    static const struct {
        enum impostor how;
        enum etd_got got;
        const char *what;
    } row[] = {
        {LEAVES, ETD_GOT_GONE, "a server that goes is gone, and may come again"},
        {BREAKS, ETD_GOT_GONE, "also one that goes when it is spoken to"},
        {ANSWERS, ETD_GOT_DENIED,
         "one that answers without the key that is known is another"},
        {IN_CLEAR, ETD_GOT_DENIED, "so is one that asks for no keys"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        enum etd_got got = call_impostor(row[i].how);
        /* (A machine that stands still for 5 s breaks a handshake off.) */
        for (int k = 0; k < 5 && got == ETD_GOT_GONE && got != row[i].got; k++)
            got = call_impostor(row[i].how);
        is_int((int)got, (int)row[i].got, "%s", row[i].what);
    }
}

/* ---- 7.3 keys that are taken away ---- */

static void
write_list(const char *role, const struct etd_keys *keys, const char *more)
{
    FILE *f = fopen(list, "w");
    if (!f || fprintf(f, "%s %s name%s\n", role, keys->public_key, more) < 0 ||
        fclose(f) != 0 || chmod(list, 0600) != 0)
        bail("no %s", list);
}

/* After two seconds, in which the door is asked. */
static bool
is_let_in(struct etd_auth *door, const struct etd_keys *keys)
{
    atomic_store(&desk->now, atomic_load(&desk->now) + 2);
    return etd_auth_step(door) && etd_auth_find(door, keys->public_key) != NULL;
}

/* No descriptor is free, or as many as before. */
static void
forbid_files(bool none)
{
    static struct rlimit before;
    struct rlimit l;
    if (none) {
        getrlimit(RLIMIT_NOFILE, &before);
        l = before;
        const int next = dup(STDERR_FILENO);
        close(next);
        l.rlim_cur = (rlim_t)next;
    }
    if (setrlimit(RLIMIT_NOFILE, none ? &l : &before) != 0)
        bail("no other limit");
}

static void
test_removed_key(void)
{
    struct etd_auth door;
    void *zmq = zmq_ctx_new();
    write_list("viewer", &ann, "");
    if (etd_auth_open(h.cx, zmq, list, &door) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    ok(is_let_in(&door, &ann) && !is_let_in(&door, &bob),
       "a key in the list is let in");
    write_list("viewer", &bob, "");
    ok(!is_let_in(&door, &ann), "2 s after it is taken out it is not");
    ok(is_let_in(&door, &bob), "and one that is put in is");
    write_list("operator", &bob, "");
    ok(is_let_in(&door, &bob) && etd_auth_find(&door, bob.public_key)->is_operator,
       "a role that changes has changed in 2 s");
    write_list("nobody", &bob, "");
    ok(!is_let_in(&door, &bob), "a list with a wrong line lets nobody in");
    write_list("viewer", &bob, "");
    forbid_files(true);
    ok(!is_let_in(&door, &bob), "nor does one that cannot be opened");
    forbid_files(false);
    ok(is_let_in(&door, &bob), "it does when it can be, being the same");
    etd_auth_close(&door);
    zmq_ctx_term(zmq);
    write_list("viewer", &ann, "");
}

/* The desk's clock begins in November 2023. */
static void
test_expired_key(void)
{
    struct etd_auth door;
    void *zmq = zmq_ctx_new();
    write_list("viewer", &ann, " until=2023-11-14");
    et_status status = etd_auth_open(h.cx, zmq, list, &door);
    ok(status == ET_OK && etd_auth_find(&door, ann.public_key) != NULL,
       "a key is let in on its last day");
    atomic_store(&desk->now, atomic_load(&desk->now) + 24 * 3600);
    ok(!etd_auth_find(&door, ann.public_key), "and not on the next");
    etd_auth_close(&door);
    status = etd_auth_open(h.cx, zmq, list, &door);
    is_int(status == ET_OK ? 0 : et_error_get(h.cx)->code, 5004,
           "where it is the only one nothing begins to listen");
    et_error_clear(h.cx);
    zmq_ctx_term(zmq);
    write_list("viewer", &ann, "");
}

/* ---- 7.3 memory of hub and worker ---- */

static void
test_hub_memory(void)
{
    talk_settle(&h);
    is_int(atomic_load(&desk->dumpable), 0,
           "a hub leaves no core, and nobody looks into it");
}

static volatile int stopped;

static void
on_ready(void *data, const char *a, const char *fingerprint)
{
    (void)data, (void)a, (void)fingerprint;
    atomic_store(&desk->dumpable, prctl(PR_GET_DUMPABLE));
}

/* A worker with the hub's seams, in place of the hub; it listens. */
static pid_t
start_worker(void)
{
    double end = eti_system.monotonic() + 120;
    talk_close(&watch);
    house_kill(&h);
    atomic_store(&desk->dumpable, -1);
    pid_t child = fork();
    if (child == 0) {
        struct et_ctx *cx;
        const struct etd_serve o = {.program = "/bin/false",
                                    .folder = h.folder,
                                    .stop = &stopped,
                                    .ready = on_ready};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (et_ctx_new(&cx) != ET_OK)
            _exit(1);
        eti_ctx_set_seams(cx, h.seams);
        _exit(etd_worker_serve(cx, &o) == ET_OK ? 0 : 1);
    }
    while (atomic_load(&desk->dumpable) == -1 && eti_system.monotonic() < end)
        usleep(1000);
    return child;
}

static enum etd_kind
say_hello(struct talk *t)
{
    struct etd_out o = talk_say(ETD_HELLO, 1);
    etd_put_bool(&o, "worker", true);
    talk_send(t, &o);
    return talk_until(t, ETD_WELCOME);
}

static void
test_worker(void)
{
    enum { PLACES = 64 };
    struct talk v[PLACES + 1];
    struct house at = h;
    int in = 0;
    pid_t worker = start_worker();
    is_int(atomic_load(&desk->dumpable), 0, "a worker leaves no core either");
    snprintf(at.socket, sizeof at.socket, "%s/etude/_worker.sock", h.folder);
    at.supervisor = -1;
    for (int i = 0; i <= PLACES; i++)
        v[i] = talk_open(&at);
    for (int i = 0; i < PLACES; i++)
        in += say_hello(&v[i]) == ETD_WELCOME;
    is_int(in, PLACES, "64 viewers of a worker are let in");
    is_int((int)say_hello(&v[PLACES]), ETD_REFUSE, "the 65th is not");
    is_str(v[PLACES].code, "FULL", "for want of a place");
    atomic_store(&desk->now, atomic_load(&desk->now) + 9.75);
    talk_settle(&at);
    is_int((int)talk_ping(&v[0], 0), ETD_PONG, "one says something after 9.75 s");
    is_int((int)say_hello(&v[PLACES]), ETD_REFUSE,
           "the others still have their places");
    atomic_store(&desk->now, atomic_load(&desk->now) + 0.25);
    talk_settle(&at);
    is_int((int)talk_ping(&v[1], 0), ETD_BYE, "after 10 s they are left");
    is_str(v[1].code, "SILENT", "and told why");
    is_int((int)say_hello(&v[PLACES]), ETD_WELCOME, "there is room for others");
    is_int((int)talk_ping(&v[0], 0), ETD_PONG, "who spoke is served");
    atomic_store(&desk->now, atomic_load(&desk->now) + 1);
    talk_test_rate(&v[0], &v[PLACES]);
    for (int i = 0; i <= PLACES; i++)
        talk_close(&v[i]);
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    talk_restart(&h, &watch);
}

/* ---- 7.4 files ---- */

static void
test_control_log(void)
{
    char path[256], elsewhere[256];
    struct stat st;
    int code = -1;
    snprintf(path, sizeof path, "%s/control.log", h.directory);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", h.folder);
    ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600,
       "what was commanded is for the run's owner alone");
    talk_close(&watch);
    house_kill(&h);
    FILE *f = fopen(elsewhere, "w");
    if (!f || fputs("mine", f) < 0 || fclose(f) != 0 || unlink(path) != 0 ||
        symlink(elsewhere, path) != 0)
        bail("no link");
    ok(!house_start(&h, &code), "with a link in its place no hub starts");
    ok(stat(elsewhere, &st) == 0 && st.st_size == 4, "where it leads is untouched");
    unlink(path);
    talk_restart(&h, &watch);
}

/* ---- 7.7 the run's secret ---- */

/* Is who says HELLO to rank 0 answered? */
static bool
is_greeted(const struct etd_store_config *config, const struct etd_store_hello *hello)
{
    struct {
        struct etd_store_head head;
        struct etd_store_hello hello;
    } both = {{.op = ETD_STORE_HELLO, .value_bytes = sizeof *hello}, *hello};
    struct etd_store_head answer;
    const struct timeval patience = {.tv_sec = 120};
    int error, fd = etd_store_socket(config->host, config->port, false, &error);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool greeted = send(fd, &both, sizeof both, MSG_NOSIGNAL) == sizeof both &&
                   recv(fd, &answer, sizeof answer, MSG_WAITALL) == sizeof answer;
    close(fd);
    return greeted;
}

static void
test_secret(void)
{
    struct etd_store_config config = {
        .host = "127.0.0.1", .world = 2, .timeout_ms = 60000, .secret = "0123456789"};
    struct etd_store_hello right = {
        .magic = ETD_STORE_MAGIC, .version = ETD_STORE_VERSION, .rank = 1, .world = 2};
    struct etd_server *ranks;
    char why[256] = "";
    int wrong = 0;
    config.listener = etd_store_listen(config.host, &config.port);
    config.secret[31] = 9;
    memcpy(right.secret, config.secret, sizeof right.secret);
    if (etd_server_start(&config, &ranks, why, sizeof why) != ET_OK)
        bail("%s", why);
    for (int i = 0; i < 32; i++) {
        struct etd_store_hello other = right;
        other.secret[i] ^= 0x80;
        wrong += is_greeted(&config, &other);
    }
    is_int(wrong, 0,
           "who has one bit of 32 bytes of the run's secret wrong gets no answer");
    ok(is_greeted(&config, &right), "who has it is greeted");
    etd_server_stop(&ranks, false);
}

static const struct talk_limit limits[] = {
    {"7.1", "a socket that is removed is there again", test_place},
    {"7.2", "a stranger is turned away, or nothing listens", test_stranger},
    {"7.3", "a server with another key is refused", test_impostor},
    {"7.3", "a viewer of one does not try again", test_denied_viewer},
    {"7.3", "a viewer's keys are its own", test_copied_texts},
    {"7.3", "a removed key is cut within 2 s", test_removed_key},
    {"7.3", "until=DATE", test_expired_key},
    {"7.3", "a hub is not dumpable", test_hub_memory},
    {"7.3", "nor a worker, with 64 viewers who speak, and not often", test_worker},
    {"7.4", "control.log is no link", test_control_log},
    {"7.7", "a run secret of 32 bytes", test_secret},
};

int
main(void)
{
    talk_begin(&h, &watch);
    snprintf(list, sizeof list, "%s/authorized_keys", h.folder);
    if (etd_keys_draw(h.cx, &server) != ET_OK || etd_keys_draw(h.cx, &ann) != ET_OK ||
        etd_keys_draw(h.cx, &bob) != ET_OK)
        bail("no keys");
    write_list("viewer", &ann, "");
    return talk_run(&h, &watch, 0, limits, sizeof limits / sizeof *limits);
}
