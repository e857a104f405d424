/* SPDX-License-Identifier: Apache-2.0 */
/* Viewers that are cut, slow, many or hostile: rows R16 and R18 to R21 of
 * RELIABILITY.md section 10, in their short forms. Counts are compared, not times. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "etude/rng.h"
#include "t/dist/house.h"
#include "t/tap.h"

/* Sanitizers keep memory that was freed, or notes of all that is used: there is nothing
 * to measure. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool measures = false;
#else
static const bool measures = true;
#endif
static struct house h;
static struct et_rng rng;
static bool is_long;

static double
now(void)
{
    return eti_monotonic(h.cx);
}

/* ---- R16: a link that is cut, held up, or slow ---- */

enum { LINKS = 8, HELD = 64 << 10 };

/* Bytes between viewers and the hub; stepped from house_drive. */
static struct proxy {
    int listener;
    char path[128];
    struct link {
        int side[2]; /* the viewer's, the hub's; -1: free */
        char held[2][HELD];
        size_t n[2]; /* on their way from that side */
    } link[LINKS];
    bool frozen, trickles;
} proxy;

static int
unix_socket(const char *path, bool listens)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (listens ? SOCK_NONBLOCK : 0), 0);
    bool right =
        listens ? bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 8) == 0
                : connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
    if (!right) {
        close(fd);
        return -1;
    }
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void
close_link(struct link *l)
{
    for (int i = 0; i < 2; i++) {
        if (l->side[i] >= 0)
            close(l->side[i]);
        l->side[i] = -1;
        l->n[i] = 0;
    }
}

/* What has come from side I goes to the other, a byte at a time where it trickles. */
static void
pump(struct link *l, int i)
{
    ssize_t got = read(l->side[i], l->held[i] + l->n[i], HELD - l->n[i]);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        close_link(l);
        return;
    }
    l->n[i] += got > 0 ? (size_t)got : 0;
    size_t done = 0;
    while (done < l->n[i]) {
        size_t n = proxy.trickles ? 1 : l->n[i] - done;
        ssize_t sent = send(l->side[1 - i], l->held[i] + done, n, MSG_NOSIGNAL);
        if (sent <= 0)
            break;
        done += (size_t)sent;
    }
    memmove(l->held[i], l->held[i] + done, l->n[i] - done);
    l->n[i] -= done;
}

static void
step_proxy(void)
{
    int fd = proxy.frozen ? -1 : accept4(proxy.listener, NULL, NULL, SOCK_NONBLOCK);
    for (struct link *l = proxy.link; l < proxy.link + LINKS && fd >= 0; l++) {
        if (l->side[0] >= 0)
            continue;
        l->side[0] = fd;
        l->side[1] = unix_socket(h.socket, false);
        fd = -1;
    }
    for (struct link *l = proxy.link; l < proxy.link + LINKS && !proxy.frozen; l++)
        for (int i = 0; i < 2 && l->side[0] >= 0; i++)
            pump(l, i);
}

static void
cut_all(void)
{
    for (struct link *l = proxy.link; l < proxy.link + LINKS; l++)
        close_link(l);
}

static bool
equal_through_proxy(struct house *house, struct etd_client **c, int n)
{
    step_proxy();
    return all_equal(house, c, n);
}

static double until;
static bool
is_time(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)c, (void)n;
    step_proxy();
    return now() >= until;
}

static void
test_cuts(int times)
{
    struct etd_client *c;
    int late = 0, other = 0, cuts = 0;
    snprintf(proxy.path, sizeof proxy.path, "%s/proxy.sock", h.folder);
    for (int i = 0; i < LINKS; i++)
        proxy.link[i].side[0] = proxy.link[i].side[1] = -1;
    proxy.listener = unix_socket(proxy.path, true);
    const struct etd_client_options o = {.channel = {.target = proxy.path}};
    if (proxy.listener < 0 || etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("no proxy");
    ok(house_drive(&h, &c, 1, equal_through_proxy), "a viewer behind a link");
    for (int i = 0; i < times; i++) {
        uint64_t what = et_rng_below(&rng, 3);
        until = now() + 0.01 * (double)et_rng_below(&rng, 30);
        proxy.frozen = what == 1;
        proxy.trickles = what == 2;
        cuts += what == 0;
        if (what == 0)
            cut_all();
        house_tell(&h, (int)et_rng_below(&rng, 300));
        (void)house_drive(&h, &c, 1, is_time);
        proxy.frozen = proxy.trickles = false;
        if (i % 10 != 0) /* one in ten waits for its own second attempt */
            etd_client_retry(c);
        late += !house_drive(&h, &c, 1, equal_through_proxy);
        other += i % 10 == 0 && !house_is_equal(&h, c);
    }
    is_int(late, 0,
           "R16: %d times cut, held up or slowed to single bytes, it catches up",
           times);
    is_int(other, 0, "and knows what the log says");
    is_int(etd_client_status(c)->wrong, 0, "no digest ever was another");
    ok(cuts > 0 && etd_client_status(c)->snapshots == 1,
       "%d cuts, and one snapshot: gaps are filled by number", cuts);
    etd_client_close(&c);
    cut_all();
    close(proxy.listener);
}

/* ---- R18: many, stuck, hostile ---- */

enum { GOOD = 55, STUCK = 8 };

static void
send_raw(struct etd_channel *line, enum etd_kind kind, int64_t credit)
{
    char bytes[512];
    struct etd_out o;
    const struct etd_head head = {.kind = kind};
    etd_begin(&o, bytes, sizeof bytes, &head, 1);
    etd_put_int(&o, "credit", credit);
    (void)etd_channel_send(line, bytes, etd_end(&o));
}

static struct etd_channel *
open_raw(void)
{
    struct etd_channel *line;
    const struct etd_channel_options o = {.target = h.socket};
    if (etd_channel_open(h.cx, &o, &line) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    return line;
}

/* One turn of somebody who means harm: garbage, the largest messages, endless
 * requests. */
static void
annoy(struct etd_channel **line, char *big, int turn)
{
    const char *bytes;
    size_t n;
    for (int i = 0; i < 50; i++) {
        switch (et_rng_below(&rng, 4)) {
        case 0:
            memset(big, (int)et_rng_below(&rng, 256), ETD_INBOUND_BYTES);
            (void)etd_channel_send(*line, big, ETD_INBOUND_BYTES);
            break;
        case 1:
            send_raw(*line, ETD_HELLO, 1 << 20);
            break;
        case 2:
            send_raw(*line, ETD_HIST, 1 << 20);
            break;
        default:
            send_raw(*line, ETD_NACK, 1);
        }
    }
    enum etd_got got = ETD_GOT_MESSAGE;
    for (int i = 0; i < 20 && got == ETD_GOT_MESSAGE; i++)
        got = etd_channel_receive(*line, &bytes, &n);
    if (turn % 50 == 49 || got == ETD_GOT_GONE) {
        etd_channel_close(line);
        *line = open_raw();
    }
}

static void
test_crowd(int records)
{
    static struct etd_client *c[GOOD];
    struct etd_channel *stuck[STUCK], *hostile;
    char *big = malloc(ETD_INBOUND_BYTES);
    int wrong = 0, gaps = 0;
    for (int i = 0; i < STUCK; i++) {
        stuck[i] = open_raw(); /* grants much, and never reads */
        send_raw(stuck[i], ETD_HELLO, 1 << 16);
    }
    hostile = open_raw();
    for (int i = 0; i < GOOD; i++)
        c[i] = house_client(&h, false);
    ok(house_drive(&h, c, GOOD, all_live), "R18: %d viewers, %d stuck, one hostile",
       GOOD, STUCK);
    int64_t most = house_memory(&h);
    for (int told = 0, turn = 0; told < records; told += 250, turn++) {
        house_tell(&h, 250);
        annoy(&hostile, big, turn);
        until = now() + 0.02;
        (void)house_drive(&h, c, GOOD, is_time);
        int64_t memory = house_memory(&h);
        most = memory > most ? memory : most;
    }
    ok(house_drive(&h, c, GOOD, all_equal), "all who read have every record");
    for (int i = 0; i < GOOD; i++) {
        wrong += (int)etd_client_status(c[i])->wrong;
        gaps += (int)etd_client_status(c[i])->gaps;
    }
    is_int(wrong, 0, "the right ones");
    is_int(gaps, 0, "without a gap");
    ok(house_is_equal(&h, c[GOOD - 1]), "as the log says");
    ok(!measures || most <= 64 << 20, "the hub had %.1f MiB of memory at most",
       (double)most / (1 << 20));
    for (int i = 0; i < GOOD; i++)
        etd_client_close(&c[i]);
    for (int i = 0; i < STUCK; i++)
        etd_channel_close(&stuck[i]);
    etd_channel_close(&hostile);
    free(big);
}

/* ---- R19: connections beyond what the system allows ---- */

static bool
is_dead(const struct house *house)
{
    siginfo_t i = {0};
    return waitid(P_PID, (id_t)house->hub, &i, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           i.si_pid == house->hub;
}

static bool
equal_or_dead(struct house *house, struct etd_client **c, int n)
{
    return is_dead(house) || all_equal(house, c, n);
}

static void
test_descriptors(int connections)
{
    int code, opened = 0;
    int *fd = malloc(sizeof *fd * (size_t)connections);
    struct rlimit old, low;
    house_kill(&h);
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = 128;
    setrlimit(RLIMIT_NOFILE, &low); /* which the hub inherits */
    if (!house_start(&h, &code))
        bail("no hub");
    setrlimit(RLIMIT_NOFILE, &old);
    struct etd_client *c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal),
       "R19: a viewer of a hub with 128 descriptors");
    for (int i = 0; i < connections; i++) {
        fd[i] = unix_socket(h.socket, false); /* half open: it never says a word */
        opened += fd[i] >= 0;
    }
    house_tell(&h, 500);
    until = now() + 1;
    (void)house_drive(&h, &c, 1, is_time);
    for (int i = 0; i < connections; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    int hubs = 1;
    bool served = false;
    while (!served && house_drive(&h, &c, 1, equal_or_dead)) {
        served = !is_dead(&h);
        if (served)
            break;
        house_kill(&h); /* libzmq may end it: its supervisor starts another */
        if (!house_start(&h, &code))
            bail("no second hub");
        hubs++;
        etd_client_retry(c);
    }
    ok(served && house_is_equal(&h, c),
       "%d of %d connections later %s, and the viewer has every record", opened,
       connections, hubs > 1 ? "another hub serves" : "it still serves");
    etd_client_close(&c);
    free(fd);
    house_kill(&h);
    if (!house_start(&h, &code))
        bail("no hub");
}

/* ---- R20: coming and going ---- */

/* Says HELLO, waits for an answer, and goes: with BYE, or killed. */
static bool
come_and_go(bool killed)
{
    pid_t child = killed ? fork() : 0;
    if (child > 0) {
        int status;
        waitpid(child, &status, 0);
        return WIFSIGNALED(status);
    }
    struct etd_channel *line = open_raw();
    const char *bytes;
    size_t n;
    struct etd_frame f = {0};
    struct etd_fault fault;
    double end = now() + 120;
    send_raw(line, ETD_HELLO, 8);
    while (now() < end && f.head.kind != ETD_WELCOME) {
        struct pollfd p = {.fd = etd_channel_fd(line), .events = POLLIN};
        enum etd_got got;
        while ((got = etd_channel_receive(line, &bytes, &n)) == ETD_GOT_MESSAGE) {
            if (etd_read(bytes, n, &f, &fault) != ET_OK || f.head.kind == ETD_WELCOME)
                break;
            if (f.head.kind ==
                ETD_REFUSE) { /* full: those who died are being forgotten */
                usleep(20000);
                send_raw(line, ETD_HELLO, 8);
            }
        }
        if (got == ETD_GOT_GONE) { /* a handshake of 5 s, as the machine stood still */
            etd_channel_close(&line);
            line = open_raw();
            send_raw(line, ETD_HELLO, 8);
        }
        if (f.head.kind != ETD_WELCOME)
            (void)poll(&p, 1, 100);
    }
    if (killed && f.head.kind == ETD_WELCOME)
        kill(getpid(), SIGKILL);
    if (killed)
        _exit(1);
    etd_channel_close(&line);
    return f.head.kind == ETD_WELCOME;
}

/* The hub's descriptors once it has closed those of who has gone: as many for a
 * second. */
static int
descriptors_left(void)
{
    int left = house_descriptors(&h);
    for (int same = 0; same < 100; usleep(10000)) {
        int before = left;
        left = house_descriptors(&h);
        same = left == before ? same + 1 : 0;
    }
    return left;
}

/* The same when there are no more than MOST, which are waited for. */
static int
descriptors_within(int most)
{
    int left = house_descriptors(&h);
    for (double end = now() + 120; left > most && now() < end; usleep(10000))
        left = house_descriptors(&h);
    return left;
}

static void
test_churn(int times)
{
    int served = 0;
    for (int i = 0; i < 150; i++)
        (void)come_and_go(i % 2);
    int descriptors = descriptors_left();
    int64_t memory = house_memory(&h);
    for (int i = 0; i < times; i++)
        served += come_and_go(i % 2);
    int left = descriptors_within(descriptors);
    is_int(served, times, "R20: %d viewers come and go, half of them killed", times);
    int64_t grown = house_memory(&h) - memory;
    ok(!measures || grown <= 1 << 20, "the hub has grown by %.2f MiB",
       (double)grown / (1 << 20));
    ok(left <= descriptors, "and has the %d descriptors that it had (%d)", descriptors,
       left);
}

/* ---- R21: joining a flood ---- */

static int answers;

static bool
is_answered(struct house *house, struct etd_client **c, int n)
{
    struct etd_answer a;
    (void)house, (void)n;
    while (etd_client_answer(c[0], &a)) {
        answers++;
        if (a.kind == ETD_APPLIED)
            return true;
    }
    return false;
}

static void
test_flood(int joins)
{
    struct etd_client *c;
    int other = 0, wrong = 0;
    int64_t before = h.log.seq;
    double began = now();
    for (int i = 0; i < joins; i++) {
        c = house_client(&h, false);
        for (uint64_t k = et_rng_below(&rng, 8) + 1; k > 0; k--) {
            house_tell(&h, 200);
            until = now() + 0.02;
            (void)house_drive(&h, &c, 1, is_time);
        }
        if (!house_drive(&h, &c, 1, all_equal))
            wrong++;
        else
            other += !house_is_equal(&h, c);
        wrong += (int)etd_client_status(c)->wrong;
        etd_client_close(&c);
    }
    ok(wrong == 0 && other == 0, "R21: %d viewers join among %.0f records a second",
       joins, (double)(h.log.seq - before) / (now() - began));
    is_int(other, 0, "and each knows what the log says");

    /* One that does not look for a while: it gives credit as fast as it reads. */
    c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    house_tell(&h, 45000);
    ok(house_drive(&h, &c, 1, all_equal), "that finds 45,000 records reads them all");
    is_int(etd_client_status(c)->snapshots, 1, "without another snapshot");
    etd_client_close(&c);

    /* Its answers wait behind a stream that fills its connection. */
    c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    unsigned char id[ETD_CMD_ID];
    answers = 0;
    house_tell(&h, 20000);
    ok(etd_client_command(c, ETD_OP_PAUSE, NULL, NULL, -1, ETD_TTL_MS, id) == ET_OK &&
           house_drive(&h, &c, 1, is_answered) && answers == 2,
       "that steers in a flood is told that its command is written down and applied");
    etd_client_close(&c);

    /* One that does not look for so long that the ring is not long enough. Another
     * does, so that the hub is known to have gone on. */
    c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    int64_t snapshots = etd_client_status(c)->snapshots;
    struct etd_client *other_one = house_client(&h, false);
    int behind = 0;
    for (int i = 0; i < 16; i++) {
        house_tell(&h, 5000);
        behind += !house_drive(&h, &other_one, 1, all_equal);
    }
    is_int(behind, 0, "another viewer reads 80,000 records");
    etd_client_close(&other_one);
    etd_client_retry(c);
    ok(house_drive(&h, &c, 1, all_equal), "one that slept for them goes on");
    is_int(etd_client_status(c)->snapshots, snapshots + 1, "with one more snapshot");
    ok(house_is_equal(&h, c), "and knows what the log says");
    etd_client_close(&c);
}

int
main(void)
{
    int code;
    is_long = getenv("ETUDE_LONG") != NULL;
    rng = et_rng_at(16, ET_RNG_SELECT, 0);
    house_begin(&h);
    house_tell(&h, 2000);
    if (!house_start(&h, &code))
        bail("no hub");
    test_cuts(is_long ? 5000 : 100);
    test_crowd(is_long ? 200000 : 10000);
    test_churn(is_long ? 100000 : 1000);
    /* Before the flood: its hubs read the log, which then has millions of records. */
    test_descriptors(is_long ? 20000 : 300);
    test_flood(is_long ? 10000 : 200);
    house_end(&h);
    return done();
}
