/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0 knows of the other ranks (store.h): which of them are lost, and what each
 * has come to when a collective failed. The ranks are connections of this test. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "dist/comm/store_impl.h"
#include "t/tap.h"

enum { WORLD = 4, KEY = 4 };
static const char key[] = "name";

static struct etd_store_config config;
static struct etd_server *server;

static void
begin(void)
{
    char why[256] = "";
    config = (struct etd_store_config){.host = "127.0.0.1", .world = WORLD};
    config.listener = etd_store_listen(config.host, &config.port);
    if (etd_server_start(&config, &server, why, sizeof why) != ET_OK)
        bail("%s", why);
}

static struct etd_store_hello
hello_of(int rank, bool watches)
{
    return (struct etd_store_hello){
        .magic = ETD_STORE_MAGIC,
        .version = ETD_STORE_VERSION,
        .rank = rank,
        .world = WORLD,
        .watches = watches,
    };
}

static int
reach(void)
{
    const struct timeval patience = {.tv_sec = 60};
    int error, fd = etd_store_socket(config.host, config.port, false, &error);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience))
        bail("rank 0 cannot be reached: %s", strerror(error));
    return fd;
}

/* A message without a key, or with KEY. */
static void
say(int fd, enum etd_store_op op, bool has_key, const void *value, size_t n)
{
    const struct etd_store_head head = {
        .op = op, .key_bytes = has_key ? KEY : 0, .value_bytes = (uint32_t)n};
    if (send(fd, &head, sizeof head, MSG_NOSIGNAL) != sizeof head ||
        (has_key && send(fd, key, KEY, MSG_NOSIGNAL) != KEY) ||
        (n > 0 && send(fd, value, n, MSG_NOSIGNAL) != (ssize_t)n))
        bail("rank 0 hears nothing: %s", strerror(errno));
}

/* The answer, which has N bytes. */
static void
hear(int fd, void *value, size_t n)
{
    struct etd_store_head head;
    if (recv(fd, &head, sizeof head, MSG_WAITALL) != sizeof head ||
        head.op != ETD_STORE_ANSWER || head.value_bytes != n ||
        (n > 0 && recv(fd, value, n, MSG_WAITALL) != (ssize_t)n))
        bail("rank 0 says something else than %zu bytes", n);
}

/* RANK is there. */
static int
enter(int rank, bool watches)
{
    const struct etd_store_hello hello = hello_of(rank, watches);
    int fd = reach();
    say(fd, ETD_STORE_HELLO, false, &hello, sizeof hello);
    hear(fd, NULL, 0);
    return fd;
}

/* It ends, and rank 0 has seen that: its own end of the connection is closed. */
static void
leave(int fd)
{
    char byte;
    shutdown(fd, SHUT_WR);
    ssize_t n = recv(fd, &byte, 1, 0);
    if (n > 0 || (n < 0 && errno != ECONNRESET))
        bail("rank 0 does not see that a rank ends");
    close(fd);
}

/* All that rank 0 has to say by now has been said: a question is answered behind a
 * look at each connection, and the second behind all of the one before it. */
static void
settle(int fd)
{
    char value[4];
    say(fd, ETD_STORE_SET, true, "here", sizeof value);
    hear(fd, NULL, 0);
    for (int i = 0; i < 2; i++) {
        say(fd, ETD_STORE_GET, true, NULL, 0);
        hear(fd, value, sizeof value);
    }
}

/* AWAITED: it should have been told, and its answer may still be on the way. */
static bool
is_told(int fd, bool awaited)
{
    struct etd_store_head head;
    return recv(fd, &head, sizeof head, awaited ? MSG_WAITALL : MSG_DONTWAIT) ==
           sizeof head;
}

/* ---- who is lost ---- */

static const uint64_t failed[WORLD] = {7, 6, 5, 0};

static void
report(int fd, int rank)
{
    say(fd, ETD_STORE_REPORT, false, &failed[rank], sizeof failed[rank]);
}

/* Rank 1 says OP and ends; rank 3 never comes. */
static const struct {
    const char *what, *after;
    int op; /* -1: nothing */
    enum etd_fate fate;
    bool lost;
} ends[] = {
    {"who ends without a word is lost", "and is gone, whoever asks", -1, ETD_FATE_GONE,
     true},
    {"so is who ends after a collective failed",
     "but is not what went wrong: it has said so", ETD_STORE_REPORT, ETD_FATE_REPORTED,
     true},
    {"who ends after goodbye is not", "it has left", ETD_STORE_BYE, ETD_FATE_LEFT,
     false},
};

static void
test_end(size_t row)
{
    struct etd_report seen[2][WORLD];
    int fd[3];
    begin();
    for (int rank = 0; rank < 3; rank++)
        fd[rank] = enter(rank, false);
    int own = enter(1, true), watches = enter(2, true);
    say(watches, ETD_STORE_WATCH, false, NULL, 0);
    settle(fd[0]);
    bool early = is_told(watches, false);
    if (ends[row].op == ETD_STORE_REPORT)
        report(fd[1], 1);
    else if (ends[row].op >= 0)
        say(fd[1], (enum etd_store_op)ends[row].op, false, NULL, 0);
    settle(fd[0]);
    early = early || is_told(watches, false); /* it is there still, whatever it said */
    leave(fd[1]);
    settle(fd[0]);
    bool told = is_told(watches, ends[row].lost);
    ok(!early && told == ends[row].lost, "%s", ends[row].what);
    report(fd[0], 0);
    report(fd[2], 2);
    hear(fd[0], seen[0], sizeof seen[0]);
    hear(fd[2], seen[1], sizeof seen[1]);
    is_int(seen[0][1].fate, ends[row].fate, "%s", ends[row].after);
    ok(memcmp(seen[0], seen[1], sizeof seen[0]) == 0 &&
           seen[0][0].fate == ETD_FATE_REPORTED && seen[0][0].seq == failed[0] &&
           seen[0][2].fate == ETD_FATE_REPORTED && seen[0][2].seq == failed[2] &&
           seen[0][3].fate == ETD_FATE_ABSENT,
       "the others have reported, each its collective, or have not come");
    close(fd[0]);
    close(fd[2]);
    close(own);
    close(watches);
    etd_server_stop(&server, false);
}

static void
test_watch_ends(void)
{
    int fd[2], watches[2];
    begin();
    for (int rank = 0; rank < 2; rank++) {
        fd[rank] = enter(rank, false);
        watches[rank] = enter(rank, true);
    }
    say(watches[0], ETD_STORE_WATCH, false, NULL, 0);
    leave(watches[1]);
    settle(fd[0]);
    ok(!is_told(watches[0], false), "a rank that watches no more is not lost");
    leave(fd[1]);
    settle(fd[0]);
    ok(is_told(watches[0], true), "before it ends");
    close(fd[0]);
    close(watches[0]);
    etd_server_stop(&server, false);
}

/* ---- questions ---- */

/* A name is asked for before it is set: the answer waits. (Who comes in after the
 * question has come in after it was looked at.) */
static void
test_early_question(void)
{
    char value[7];
    begin();
    int asks = enter(1, false), sets = enter(0, false);
    say(asks, ETD_STORE_GET, true, NULL, 0);
    int other = enter(2, false);
    ok(!is_told(asks, false), "a name that nobody has set is not answered for");
    say(sets, ETD_STORE_SET, true, "at last", sizeof value);
    hear(sets, NULL, 0);
    hear(asks, value, sizeof value);
    ok(memcmp(value, "at last", sizeof value) == 0, "until somebody does");
    close(asks);
    close(sets);
    close(other);
    etd_server_stop(&server, false);
}

/* Who waits for one answer and asks for another is no rank of ours. */
static void
test_two_questions(void)
{
    char byte;
    begin();
    int fd = enter(1, false);
    say(fd, ETD_STORE_GET, true, NULL, 0);
    say(fd, ETD_STORE_GET, true, NULL, 0);
    ssize_t n = recv(fd, &byte, 1, 0);
    ok(n == 0 || (n < 0 && errno == ECONNRESET),
       "who asks again before it is answered is cut off");
    close(fd);
    etd_server_stop(&server, false);
}

/* ---- goodbye ---- */

static void
test_goodbye(void)
{
    struct etd_report seen[WORLD];
    int fd[3];
    begin();
    for (int rank = 0; rank < 3; rank++)
        fd[rank] = enter(rank, false);
    say(fd[0], ETD_STORE_BYE, false, NULL, 0);
    say(fd[1], ETD_STORE_BYE, false, NULL, 0);
    settle(fd[2]);
    ok(!is_told(fd[0], false) && !is_told(fd[1], false),
       "who says goodbye waits for who is there");
    report(fd[2], 2);
    hear(fd[2], seen, sizeof seen);
    settle(fd[2]);
    ok(!is_told(fd[0], false) && !is_told(fd[1], false),
       "also for who has only reported");
    leave(fd[2]);
    ok(is_told(fd[0], true) && is_told(fd[1], true), "until that one ends");
    close(fd[0]);
    close(fd[1]);
    etd_server_stop(&server, false);
}

/* ---- rank 0 ends ---- */

static struct etd_store *
open_store(int rank)
{
    char why[256] = "";
    struct etd_store *s;
    config.rank = rank;
    config.timeout_ms = 60000;
    if (etd_store_open(&config, &s, why, sizeof why) != ET_OK)
        bail("%s", why);
    return s;
}

static void *
close_store(void *data)
{
    struct etd_store *s = data;
    etd_store_close(&s, 0);
    return NULL;
}

/* Rank 0 has failed and ends; what the others report then, each hears of the other. */
static void
test_failed_rank_0(void)
{
    struct etd_report seen[WORLD];
    pthread_t closing;
    int fd[3];
    config = (struct etd_store_config){.host = "127.0.0.1", .world = WORLD};
    config.listener = etd_store_listen(config.host, &config.port);
    struct etd_store *s = open_store(0);
    for (int rank = 1; rank < 3; rank++)
        fd[rank] = enter(rank, false);
    if (pthread_create(&closing, NULL, close_store, s) != 0)
        bail("no thread");
    usleep(50000); /* by now it has left, were it to leave at once */
    report(fd[1], 1);
    report(fd[2], 2);
    for (int rank = 1; rank < 3; rank++) {
        hear(fd[rank], seen, sizeof seen);
        ok(seen[0].fate == ETD_FATE_GONE && seen[1].fate == ETD_FATE_REPORTED &&
               seen[1].seq == failed[1] && seen[2].fate == ETD_FATE_REPORTED &&
               seen[2].seq == failed[2],
           "a rank 0 that ends tells rank %d first who reported what", rank);
        close(fd[rank]);
    }
    pthread_join(closing, NULL);
}

/* Rank 0 is gone without a word. */
static void
test_no_rank_0(void)
{
    struct etd_report seen[WORLD];
    begin();
    struct etd_store *s = open_store(1);
    etd_server_stop(&server, false);
    etd_store_report(s, 9, seen);
    ok(seen[0].fate == ETD_FATE_GONE && seen[1].fate == ETD_FATE_REPORTED,
       "a rank that nobody answers knows that rank 0 is gone, and that itself is not");
    ok(seen[2].fate == ETD_FATE_SILENT && seen[3].fate == ETD_FATE_SILENT,
       "and nothing of the others");
    etd_store_close(&s, 0);
}

/* ---- haste ---- */

/* A rank that goes on the moment it is let in: its next message is there before the
 * server has looked up from its hello. */
static void
test_hasty(void)
{
    struct {
        struct etd_store_head hello_head;
        struct etd_store_hello hello;
        struct etd_store_head head;
        char key[KEY], value[1000];
    } both = {
        .hello_head = {.op = ETD_STORE_HELLO, .value_bytes = sizeof both.hello},
        .hello = hello_of(1, false),
        .head = {.op = ETD_STORE_SET,
                 .key_bytes = sizeof both.key,
                 .value_bytes = sizeof both.value},
        .key = {'n', 'a', 'm', 'e'},
    };
    struct etd_store_head answer[2];
    begin();
    int fd = reach();
    ssize_t sent = send(fd, &both, sizeof both, MSG_NOSIGNAL);
    ok(sent == (ssize_t)sizeof both &&
           recv(fd, answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer &&
           answer[0].op == ETD_STORE_ANSWER && answer[1].op == ETD_STORE_ANSWER,
       "a rank's first message may come with its hello");
    close(fd);
    etd_server_stop(&server, false);
}

/* ---- who is let in, and names that change ---- */

/* What FD hears: "" where it is let in, else why not; NULL: nothing, and the connection
 * is closed. */
static const char *
outcome(int fd)
{
    static char text[256];
    struct etd_store_head head;
    if (recv(fd, &head, sizeof head, MSG_WAITALL) != sizeof head)
        return NULL;
    size_t n = head.value_bytes;
    if (head.op != ETD_STORE_ANSWER || n >= sizeof text ||
        (n > 0 && recv(fd, text, n, MSG_WAITALL) != (ssize_t)n))
        bail("rank 0 says what is no answer");
    text[n] = '\0';
    return text;
}

static void
test_hellos(void)
{
    static const struct {
        int version, rank, world;
        bool right_magic, right_secret;
        const char *outcome;
    } row[] = {
        {ETD_STORE_VERSION, 1, WORLD, true, true, ""},
        {ETD_STORE_VERSION, 1, WORLD, true, true, "there is a rank 1 already"},
        {ETD_STORE_VERSION, WORLD - 1, WORLD, true, true, ""},
        {ETD_STORE_VERSION, WORLD, WORLD, true, true,
         "it is one of 4 ranks, and this run has 4"},
        {ETD_STORE_VERSION, -1, WORLD, true, true,
         "it is one of 4 ranks, and this run has 4"},
        {ETD_STORE_VERSION, 2, WORLD + 1, true, true,
         "it is one of 5 ranks, and this run has 4"},
        {ETD_STORE_VERSION, 2, WORLD - 1, true, true,
         "it is one of 3 ranks, and this run has 4"},
        {ETD_STORE_VERSION + 1, 2, WORLD, true, true,
         "it is of another version of etude"},
        {ETD_STORE_VERSION, 2, WORLD, false, true, NULL},
        {ETD_STORE_VERSION, 2, WORLD, true, false, NULL},
        {ETD_STORE_VERSION, 2, WORLD, true, true, ""},
    };
    int fd[sizeof row / sizeof *row];
    begin();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_store_hello hello = hello_of(row[i].rank, false);
        hello.version = row[i].version;
        hello.world = row[i].world;
        hello.magic[0] ^= !row[i].right_magic;
        hello.secret[ETD_STORE_SECRET - 1] ^= !row[i].right_secret;
        fd[i] = reach();
        say(fd[i], ETD_STORE_HELLO, false, &hello, sizeof hello);
        const char *got = outcome(fd[i]);
        is_str(got ? got : "nothing", row[i].outcome ? row[i].outcome : "nothing",
               "rank %d of %d hears %s", row[i].rank, row[i].world,
               !row[i].outcome   ? "nothing, as it is a stranger"
               : *row[i].outcome ? "why it is not let in"
                                 : "that it is let in");
    }
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        close(fd[i]);
    etd_server_stop(&server, false);
}

/* A name that is set again is what it was set to last, shorter or longer. */
static void
test_values(void)
{
    static const size_t sizes[] = {3, 1000, 5, 0, ETD_STORE_VALUE};
    static char value[ETD_STORE_VALUE], got[ETD_STORE_VALUE];
    begin();
    int fd = enter(1, false), other = enter(2, false);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(value, (int)('a' + i), sizes[i]);
        say(fd, ETD_STORE_SET, true, value, sizes[i]);
        hear(fd, NULL, 0);
        say(other, ETD_STORE_GET, true, NULL, 0);
        hear(other, got, sizes[i]);
        ok(memcmp(got, value, sizes[i]) == 0, "a name has the %zu bytes set last",
           sizes[i]);
    }
    close(fd);
    close(other);
    etd_server_stop(&server, false);
}

/* Why there is no connection is what the system says. */
static void
test_unreachable(void)
{
    int error = 0, port = 0;
    const int held = etd_store_listen("127.0.0.1", &port);
    if (held < 0)
        bail("no port");
    is_int(etd_store_socket("127.0.0.1", port, true, &error), -1,
           "a port that is taken cannot be listened at");
    is_int(error, EADDRINUSE, "which is said");
    close(held);
    is_int(etd_store_socket("127.0.0.1", port, false, &error), -1,
           "one that nobody listens at cannot be reached");
    is_int(error, ECONNREFUSED, "which is said, too");
}

/* A rank 0 that thinks for a while before each answer, of which there are two. */
static void *
answer_late(void *listener)
{
    const struct timespec a_while = {.tv_nsec = 100 * 1000 * 1000};
    const struct etd_store_head answer = {.op = ETD_STORE_ANSWER};
    struct pollfd p = {.fd = *(int *)listener, .events = POLLIN};
    struct etd_store_head head;
    char body[KEY + sizeof(struct etd_store_hello)];
    (void)poll(&p, 1, 60000);
    int fd = accept(p.fd, NULL, NULL);
    for (int i = 0; fd >= 0 && i < 2; i++) {
        if (recv(fd, &head, sizeof head, MSG_WAITALL) != sizeof head ||
            recv(fd, body, head.key_bytes + head.value_bytes, MSG_WAITALL) < 0)
            break;
        nanosleep(&a_while, NULL);
        if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            break;
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

/* The time that is allowed is one of milliseconds, of which a slow machine has many. */
static void
test_patience(void)
{
    char why[256] = "";
    struct etd_store_config c = {
        .host = "127.0.0.1", .rank = 1, .world = 2, .timeout_ms = 60 * 1000};
    struct etd_store *s;
    pthread_t thread;
    int listener = etd_store_listen(c.host, &c.port);
    if (listener < 0 || pthread_create(&thread, NULL, answer_late, &listener) != 0)
        bail("no rank 0");
    ok(etd_store_open(&c, &s, why, sizeof why) == ET_OK,
       "a rank 0 that answers late is waited for%s%s", *why ? ": " : "", why);
    ok(s && etd_store_set(s, key, key, KEY, why, sizeof why) == ET_OK,
       "with each answer");
    etd_store_close(&s, 0);
    pthread_join(thread, NULL);
    close(listener);
}

/* Somebody else listens at rank 0's port. */
static void
test_taken(void)
{
    char why[256] = "", want[64];
    struct etd_store_config c = {
        .host = "127.0.0.1", .listener = -1, .world = 2, .timeout_ms = 200};
    struct etd_store *s = NULL;
    int other = etd_store_listen(c.host, &c.port);
    if (other < 0)
        bail("no port");
    snprintf(want, sizeof want, "rank 0 cannot have 127.0.0.1:%d ", c.port);
    is_int(etd_store_open(&c, &s, why, sizeof why), ET_ENOTSUP,
           "rank 0 does not begin at a port that somebody else has");
    ok(!s && strstr(why, want) == why, "rank 0 says which port it cannot have: %s",
       why);
    close(other);
}

int
main(void)
{
    test_unreachable();
    test_taken();
    test_patience();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        test_end(i);
    test_watch_ends();
    test_early_question();
    test_two_questions();
    test_goodbye();
    test_failed_rank_0();
    test_no_rank_0();
    test_hasty();
    test_hellos();
    test_values();
    return done();
}
