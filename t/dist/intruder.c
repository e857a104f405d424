/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever holds a viewer's key, or none, tries at a worker that listens: to go on
 * with another's conversation, to take all places, memory or descriptors, to end it.
 * Connections are plain sockets of zmq with routing ids of the test's choice. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "core/base/seams.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "dist/worker/target.h"
#include "dist/worker/worker.h"
#include "t/dist/house.h"
#include "t/tap.h"

enum { PATIENCE = 60, FILES = 200 };
static struct house h;
static char config[128], address[128];
static struct etd_keys server, viewer, other, operator_;
static pid_t worker;
static void *zmq;

static void
put_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", config, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || chmod(path, 0600) != 0)
        bail("cannot write %s", path);
}

/* A worker with FILES descriptors at most. */
static void
start_worker(void)
{
    char program[4096], resolved[4096], line[512] = "";
    const char *build = getenv("ET_BUILDDIR");
    const struct rlimit few = {FILES, FILES};
    int out[2];
    size_t n = 0;
    snprintf(program, sizeof program, "%s/etude", build ? build : ".");
    if (!realpath(program, resolved) || pipe2(out, O_CLOEXEC) != 0)
        bail("no program %s", program);
    worker = fork();
    if (worker == 0) {
        dup2(out[1], STDOUT_FILENO);
        if (!getenv("ET_SHOW"))
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        if (chdir(h.folder) != 0 || setrlimit(RLIMIT_NOFILE, &few) != 0)
            _exit(127);
        execl(resolved, resolved, "worker", "serve", "--listen", "tcp://127.0.0.1:0",
              NULL);
        _exit(127);
    }
    close(out[1]);
    while (n < sizeof line - 1 && read(out[0], line + n, 1) == 1 && line[n] != '\n')
        n++;
    if (sscanf(line, "listening at %127[^,]", address) != 1)
        bail("the worker says %s", line);
    close(out[0]);
}

static struct etd_channel_options
line_to(const struct etd_keys *keys)
{
    return (struct etd_channel_options){
        .target = address, .keys = keys, .server = server.public_key};
}

/* The role in which KEYS is let in, as a client asks; "" where it is not. */
static const char *
role_of(const struct etd_keys *keys)
{
    static struct etd_worker_info info;
    const struct etd_channel_options o = line_to(keys);
    double end = eti_monotonic(h.cx) + PATIENCE;
    do {
        if (etd_worker_info(h.cx, &o, 5, &info) == ET_OK)
            return info.role;
        et_error_clear(h.cx);
    } while (eti_monotonic(h.cx) < end);
    return "";
}

/* The process that serves, whose keeper WORKER is; 0: none does now. */
static pid_t
serving(void)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)worker, (int)worker);
    FILE *f = fopen(path, "r");
    if (!f)
        bail("%s cannot be read", path);
    pid_t child = fgets(text, sizeof text, f) ? (pid_t)strtol(text, NULL, 10) : 0;
    fclose(f);
    return child;
}

/* Is this machine's user answered? */
static bool
answers_here(void)
{
    struct etd_worker_info info;
    char path[ETD_SOCKET_PATH];
    double end = eti_monotonic(h.cx) + PATIENCE;
    if (etd_endpoint_path(h.cx, ETD_WORKER_SOCKET, path) != ET_OK)
        bail("no path");
    const struct etd_channel_options o = {.target = path};
    do {
        if (etd_worker_info(h.cx, &o, 5, &info) == ET_OK)
            return true;
        et_error_clear(h.cx);
        usleep(100000);
    } while (eti_monotonic(h.cx) < end);
    return false;
}

/* ---- connections ---- */

/* One of KEYS that is called NAME (N bytes). */
static void *
connect_as(const struct etd_keys *keys, const void *name, size_t n)
{
    int zero = 0, wait = 3000;
    void *s = zmq_socket(zmq, ZMQ_DEALER);
    if (zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof zero) != 0 ||
        zmq_setsockopt(s, ZMQ_RCVTIMEO, &wait, sizeof wait) != 0 ||
        (n > 0 && zmq_setsockopt(s, ZMQ_ROUTING_ID, name, n) != 0) ||
        zmq_setsockopt(s, ZMQ_CURVE_SERVERKEY, server.public_key, 41) != 0 ||
        zmq_setsockopt(s, ZMQ_CURVE_PUBLICKEY, keys->public_key, 41) != 0 ||
        zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, keys->secret, 41) != 0 ||
        zmq_connect(s, address) != 0)
        bail("no socket");
    return s;
}

/* What is answered to a message of KIND, as "KIND CODE"; "" where nothing is. */
static const char *
say(void *socket, enum etd_kind kind)
{
    static char text[128];
    static char bytes[ETD_CHUNK_BYTES];
    char code[32];
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    const struct etd_head head = {.kind = kind};
    etd_begin(&o, bytes, sizeof bytes, &head, 1);
    etd_put_bool(&o, "worker", true);
    if (zmq_send(socket, bytes, etd_end(&o), 0) < 0)
        return "";
    int n = zmq_recv(socket, bytes, sizeof bytes, 0);
    if (n < 0 || etd_read(bytes, (size_t)n, &f, &fault) != ET_OK)
        return "";
    etd_get_text(&f.body, "code", code, sizeof code);
    snprintf(text, sizeof text, "%s%s%s", etd_kind_name(f.head.kind),
             code[0] ? " " : "", code);
    return text;
}

/* ---- what is tried ---- */

static void
test_takeover(void)
{
    void *first = connect_as(&operator_, "mine", 4);
    is_str(say(first, ETD_HELLO), "WELCOME", "an operator's conversation begins");
    is_str(say(first, ETD_PING), "PONG", "and goes on");
    zmq_close(first); /* without a word, as when its network is gone */
    /* Until that is noticed, nobody else is heard under its name. */
    void *second = NULL;
    const char *said = "";
    for (int i = 0; i < 20 && !said[0]; i++) {
        if (second)
            zmq_close(second);
        usleep(20000);
        second = connect_as(&viewer, "mine", 4);
        said = say(second, ETD_PING);
    }
    is_str(said, "BYE UNKNOWN",
           "a viewer who takes its routing id does not go on with it");
    is_str(say(second, ETD_HELLO), "WELCOME", "but begins one of its own");
    zmq_close(second);
    is_str(role_of(&viewer), "viewer", "as what it is");
}

static void
test_places(void)
{
    enum { SAME = 16 };
    void *s[SAME + 1];
    int in = 0;
    for (int i = 0; i < SAME; i++) {
        s[i] = connect_as(&viewer, NULL, 0);
        in += strcmp(say(s[i], ETD_HELLO), "WELCOME") == 0;
    }
    is_int(in, SAME, "one key has 16 places");
    s[SAME] = connect_as(&viewer, NULL, 0);
    is_str(say(s[SAME], ETD_HELLO), "REFUSE FULL", "and no more");
    is_str(role_of(&other), "viewer", "another finds one");
    is_str(role_of(&operator_), "operator", "and so does an operator");
    for (int i = 0; i <= SAME; i++)
        zmq_close(s[i]);
}

/* A connection to TO, or -1. The worker that has too many closes all, and its port with
 * them for a moment: then it is tried again. */
static int
connect_plainly(const struct sockaddr_in *to)
{
    const double end = eti_monotonic(h.cx) + PATIENCE;
    do {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const void *)to, sizeof *to) == 0)
            return fd;
        int why = errno;
        close(fd);
        if (why != ECONNREFUSED)
            return -1;
        usleep(10000);
    } while (eti_monotonic(h.cx) < end);
    return -1;
}

/* Plain connections that say nothing, without any key, each of which is kept for 5 s.
 */
static void
test_descriptors(void)
{
    const pid_t child = serving();
    int fd[2 * FILES], port = 0, n = 0;
    struct sockaddr_in to = {.sin_family = AF_INET};
    if (sscanf(address, "tcp://127.0.0.1:%d", &port) != 1)
        bail("no port in %s", address);
    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (; n < 2 * FILES; n++) {
        fd[n] = connect_plainly(&to);
        if (fd[n] < 0)
            break;
        if (n % 20 == 19 && !answers_here()) /* it has had a look at them */
            break;
    }
    ok(n > FILES / 2, "%d connections are made", n);
    ok(answers_here(), "this machine's user is answered all the same");
    is_str(role_of(&viewer), "viewer", "and so are others, after all were closed");
    is_int(serving(), child, "by the process that it was");
    for (int i = 0; i < n; i++)
        close(fd[i]);
}

/* The process that serves ends by a signal, as where a library's assertion fails. */
static void
test_abort(void)
{
    const pid_t child = serving();
    kill(child, SIGABRT);
    double end = eti_monotonic(h.cx) + PATIENCE;
    while (serving() == child && eti_monotonic(h.cx) < end)
        usleep(100000);
    ok(answers_here(), "a worker that a signal has ended begins again");
}

/* The numbers that zmq would give to connections, had nobody seeded rand(). */
static void
test_numbers(void)
{
    enum { SOCKETS = 4, OF_EACH = 6 };
    void *s[SOCKETS * OF_EACH], *next;
    int status;
    srand(1); /* as at the start of a program */
    for (int i = 0; i < SOCKETS; i++) {
        uint32_t first = (uint32_t)rand();
        first |= (uint32_t)rand() << 31;
        for (int k = 0; k < OF_EACH; k++) {
            const uint32_t number = first + (uint32_t)k;
            unsigned char name[5] = {0};
            for (int b = 0; b < 4; b++)
                name[1 + b] = (unsigned char)(number >> (24 - 8 * b));
            s[i * OF_EACH + k] = connect_as(&other, name, sizeof name);
            (void)say(s[i * OF_EACH + k], ETD_PING);
        }
    }
    next = connect_as(&viewer, NULL, 0);
    is_str(say(next, ETD_HELLO), "WELCOME",
           "nobody takes the number of the next connection beforehand");
    ok(waitpid(worker, &status, WNOHANG) == 0, "the worker goes on");
    zmq_close(next);
    for (int i = 0; i < SOCKETS * OF_EACH; i++)
        zmq_close(s[i]);
}

int
main(void)
{
    struct etd_keys *const all[] = {&server, &viewer, &other, &operator_};
    char path[256], text[512];
    int code = 0, status = 0;
    house_begin(&h);
    house_tell(&h, 10);
    snprintf(config, sizeof config, "%s/config", h.folder);
    mkdir(config, 0700);
    setenv("ETUDE_CONFIG_DIR", config, 1);
    for (int i = 0; i < 4; i++)
        if (etd_keys_draw(h.cx, all[i]) != ET_OK)
            bail("%s", et_error_get(h.cx)->message);
    snprintf(path, sizeof path, "%s/curve.key", config);
    if (etd_keys_write(h.cx, path, &server) != ET_OK || !house_start(&h, &code))
        bail("no key, or no hub");
    snprintf(text, sizeof text, "viewer %s ann\nviewer %s cid\noperator %s bob\n",
             viewer.public_key, other.public_key, operator_.public_key);
    put_file("authorized_keys", text);
    zmq = zmq_ctx_new();
    start_worker();
    test_takeover();
    test_numbers();
    test_places();
    test_descriptors();
    test_abort();
    zmq_ctx_term(zmq);
    kill(worker, SIGTERM);
    waitpid(worker, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "the worker ends when it is asked to");
    house_end(&h);
    return done();
}
