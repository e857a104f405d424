/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's side of the store (store.h): what it says, and what it makes of answers.
 * Rank 0 is a thread of this test, which answers as a script says. */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/comm/store_impl.h"
#include "t/tap.h"

enum { MOST = 8, PATIENCE_MS = 60000 };

static int listener, port;

/* How rank 0 treats one request. It answers with the N bytes at VALUE in one piece, or
 * in several, or it closes the connection, or it waits. */
enum how { ANSWERS, IN_PARTS, CLOSES, WAITS /* for the rank's end */ };
struct step {
    enum how how;
    const void *value;
    size_t n;
};

/* One connection to rank 0 as it is played, and what was heard there. */
struct play {
    pthread_t thread;
    const struct step *step; /* as many as there are questions; more get no bytes */
    int steps;
    struct {
        uint32_t op;
        char key[ETD_STORE_KEY + 1];
        char value[256]; /* its first bytes */
        size_t n;
    } heard[MOST];
    atomic_int n;
    bool ended; /* the other side has closed the connection */
};
static struct play play, second;

static bool
take(int fd, void *bytes, size_t n)
{
    return n == 0 || recv(fd, bytes, n, MSG_WAITALL) == (ssize_t)n;
}

static void
give(int fd, const struct step *s)
{
    char both[sizeof(struct etd_store_head) + 1024];
    const struct etd_store_head head = {.op = ETD_STORE_ANSWER,
                                        .value_bytes = (uint32_t)s->n};
    const size_t all = sizeof head + s->n;
    memcpy(both, &head, sizeof head);
    if (s->n > 0)
        memcpy(both + sizeof head, s->value, s->n);
    for (size_t at = 0, n; at < all; at += n) {
        n = s->how == IN_PARTS && all - at > 100 ? 7 + at / 2 : all - at;
        (void)!send(fd, both + at, n, MSG_NOSIGNAL);
        if (s->how == IN_PARTS)
            usleep(500);
    }
}

static void *
be_rank_0(void *data)
{
    struct play *p = data;
    char *value = malloc(ETD_STORE_VALUE + 1);
    const struct step plain = {.how = ANSWERS};
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    int fd = poll(&wait, 1, PATIENCE_MS) > 0 ? accept(listener, NULL, NULL) : -1;
    struct etd_store_head head;
    const struct step *s = &plain;
    while (s->how != CLOSES && p->n < MOST && value && take(fd, &head, sizeof head) &&
           head.key_bytes <= ETD_STORE_KEY && head.value_bytes <= ETD_STORE_VALUE &&
           take(fd, p->heard[p->n].key, head.key_bytes) &&
           take(fd, value, head.value_bytes)) {
        p->heard[p->n].op = head.op;
        p->heard[p->n].n = head.value_bytes;
        memcpy(p->heard[p->n].value, value,
               head.value_bytes < 256 ? head.value_bytes : 256);
        s = p->n < p->steps ? &p->step[p->n] : &plain;
        p->n++;
        if (s->how == ANSWERS || s->how == IN_PARTS)
            give(fd, s);
    }
    p->ended = s->how != CLOSES && recv(fd, &head, 1, MSG_DONTWAIT) == 0;
    close(fd);
    free(value);
    return NULL;
}

static void
begin(struct play *p, const struct step *step, int steps)
{
    *p = (struct play){.step = step, .steps = steps};
    if (pthread_create(&p->thread, NULL, be_rank_0, p) != 0)
        bail("no thread");
}

static void
end(struct play *p)
{
    pthread_join(p->thread, NULL);
}

static struct etd_store_config
config_of(int rank)
{
    struct etd_store_config c = {.host = "127.0.0.1",
                                 .port = port,
                                 .listener = -1,
                                 .rank = rank,
                                 .world = 5,
                                 .timeout_ms = PATIENCE_MS};
    for (int i = 0; i < ETD_STORE_SECRET; i++)
        c.secret[i] = (uint8_t)(7 * i + 3);
    return c;
}

/* Rank 2 of rank 0 as it is played. */
static struct etd_store *
open_store(void)
{
    char why[256] = "";
    const struct etd_store_config c = config_of(2);
    struct etd_store *s;
    if (etd_store_open(&c, &s, why, sizeof why) != ET_OK)
        bail("%s", why);
    return s;
}

/* ---- letting in ---- */

static void
is_hello(const struct play *p, bool watches)
{
    struct etd_store_hello hello;
    const struct etd_store_config c = config_of(2);
    memcpy(&hello, p->heard[0].value, sizeof hello);
    ok(p->heard[0].op == ETD_STORE_HELLO && p->heard[0].n == sizeof hello &&
           memcmp(hello.magic, ETD_STORE_MAGIC, sizeof hello.magic) == 0 &&
           hello.version == ETD_STORE_VERSION && hello.rank == 2 && hello.world == 5 &&
           hello.watches == watches &&
           memcmp(hello.secret, c.secret, sizeof c.secret) == 0,
       "a rank says which it is, of how many, and the secret, %s watch",
       watches ? "to" : "not to");
}

static void
test_hello(void)
{
    begin(&play, NULL, 0);
    struct etd_store *s = open_store();
    etd_store_close(&s, 0);
    end(&play);
    is_hello(&play, false);
    ok(play.n == 1 && play.ended, "one that ends in haste says nothing more");
    begin(&play, NULL, 0);
    s = open_store();
    etd_store_close(&s, PATIENCE_MS);
    end(&play);
    ok(play.n == 2 && play.heard[1].op == ETD_STORE_BYE && play.heard[1].n == 0 &&
           play.heard[1].key[0] == '\0' && play.ended,
       "any other says goodbye, and waits for the answer");
}

static void
test_refused(void)
{
    static const struct {
        struct step step;
        const char *why;
    } row[] = {
        {{ANSWERS, "full moon", 9}, "rank 0 refused rank 2: full moon"},
        {{CLOSES, NULL, 0},
         "127.0.0.1:%d answered rank 2 and is no rank 0 of this run: another program, "
         "or another secret"},
    };
    for (int i = 0; i < 2; i++) {
        char why[256] = "", want[256];
        const struct etd_store_config c = config_of(2);
        struct etd_store *s;
        begin(&play, &row[i].step, 1);
        ok(etd_store_open(&c, &s, why, sizeof why) == ET_EPEER && !s,
           "a rank that is not let in has no store");
        end(&play);
        const char *digits = strstr(row[i].why, "%d");
        snprintf(want, sizeof want, "%.*s", digits ? 10 : 255, row[i].why);
        if (digits)
            snprintf(want + strlen(want), sizeof want - strlen(want), "%d%s", port,
                     digits + 2);
        is_str(why, want, "and knows why");
    }
}

/* Nobody listens there, and nobody comes for as long as the rank waits. */
static void
test_nobody(void)
{
    char why[256] = "", want[256];
    struct etd_store_config c = config_of(3);
    struct etd_store *s;
    int no_port, fd = etd_store_listen("127.0.0.1", &no_port);
    close(fd);
    c.port = no_port;
    c.timeout_ms = 50;
    ok(etd_store_open(&c, &s, why, sizeof why) == ET_EPEER && !s,
       "a rank does not wait for ever");
    snprintf(want, sizeof want,
             "rank 3 found no rank 0 at 127.0.0.1:%d in 0.1 s: Connection refused",
             no_port);
    is_str(why, want, "and says how long it did");
}

/* ---- questions ---- */

static void
test_parts(void)
{
    char value[1000], why[256] = "";
    static char got[ETD_STORE_VALUE];
    size_t n;
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)(i * i + 5 * i);
    const struct step step[] = {{IN_PARTS, NULL, 0}, {IN_PARTS, value, sizeof value}};
    begin(&play, step, 2);
    struct etd_store *s = open_store();
    ok(etd_store_get(s, "a/name", got, &n, why, sizeof why) == ET_OK &&
           n == sizeof value && memcmp(got, value, n) == 0,
       "an answer that comes in parts is put together");
    etd_store_close(&s, 0);
    end(&play);
    ok(play.heard[1].op == ETD_STORE_GET && play.heard[1].n == 0 &&
           strcmp(play.heard[1].key, "a/name") == 0,
       "rank 0 was asked for that name");
}

/* An answer that no rank 0 gives is followed by one that would be right: what comes
 * after something that was not understood is not looked at. */
static void
test_broken(void)
{
    const struct etd_store_head right = {.op = ETD_STORE_ANSWER};
    const struct step step[] = {{ANSWERS, NULL, 0}, {ANSWERS, &right, sizeof right}};
    char why[256] = "", value[8], want[64];
    size_t n = 0;
    begin(&play, step, 2);
    struct etd_store *s = open_store();
    ok(etd_store_set(s, "a", "b", 1, why, sizeof why) == ET_EPEER,
       "an answer longer than any is none");
    snprintf(want, sizeof want,
             "rank 0 at 127.0.0.1:%d does not answer rank 2: ", port);
    ok(strncmp(why, want, strlen(want)) == 0, "which is said: %s", why);
    ok(etd_store_set(s, "a", "b", 1, why, sizeof why) == ET_EPEER,
       "and no other answer is taken");
    ok(etd_store_get(s, "c/d", value, &n, why, sizeof why) == ET_EPEER && n == 0,
       "nor a value");
    ok(strncmp(why, "rank 2 waited for c/d of another rank: ", 39) == 0,
       "which is said, too: %s", why);
    etd_store_close(&s, PATIENCE_MS);
    end(&play);
    ok(play.n == 2 && play.ended, "the connection was closed, and nothing more said");
}

static void
test_longest(void)
{
    static char value[ETD_STORE_VALUE + 1], key[ETD_STORE_KEY + 1];
    char why[256] = "";
    memset(key, 'k', ETD_STORE_KEY);
    memset(value, 'v', sizeof value);
    begin(&play, NULL, 0);
    struct etd_store *s = open_store();
    ok(etd_store_set(s, key, value, 1, why, sizeof why) == ET_EINVAL,
       "a key of 256 bytes is too long");
    is_str(why, "a key of 256 bytes, a value of 1: too long", "which is said");
    key[ETD_STORE_KEY - 1] = '\0';
    ok(etd_store_set(s, key, value, ETD_STORE_VALUE + 1, why, sizeof why) == ET_EINVAL,
       "so is a value of 64 KiB and a byte");
    ok(etd_store_set(s, key, value, ETD_STORE_VALUE, why, sizeof why) == ET_OK,
       "a byte less of both is not");
    etd_store_close(&s, 0);
    end(&play);
    ok(play.n == 2 && play.heard[1].op == ETD_STORE_SET &&
           play.heard[1].n == ETD_STORE_VALUE && strcmp(play.heard[1].key, key) == 0,
       "and rank 0 hears nothing of the others");
}

static void
test_report(void)
{
    struct etd_report told[5] = {{.fate = ETD_FATE_REPORTED, .seq = 11},
                                 {.fate = ETD_FATE_LEFT},
                                 {.fate = ETD_FATE_REPORTED, .seq = 13},
                                 {.fate = ETD_FATE_SILENT},
                                 {.fate = ETD_FATE_ABSENT}},
                      got[5];
    for (int less = 0; less < 2; less++) {
        const struct step step[] = {{ANSWERS, NULL, 0},
                                    {ANSWERS, told, sizeof told - (size_t)less}};
        uint64_t seq;
        begin(&play, step, 2);
        struct etd_store *s = open_store();
        memset(got, 0xee, sizeof got);
        etd_store_report(s, 0x123456789a, got);
        etd_store_close(&s, 0);
        end(&play);
        memcpy(&seq, play.heard[1].value, sizeof seq);
        ok(play.heard[1].op == ETD_STORE_REPORT && play.heard[1].n == sizeof seq &&
               seq == 0x123456789a,
           "a rank reports which collective failed");
        if (!less) {
            ok(memcmp(got, told, sizeof told) == 0, "and hears of all ranks");
            continue;
        }
        const struct etd_report known[5] = {{.fate = ETD_FATE_GONE},
                                            {.fate = ETD_FATE_SILENT},
                                            {.fate = ETD_FATE_REPORTED}};
        ok(memcmp(got, known, sizeof known) == 0,
           "of half an answer nothing is left: rank 0 is gone");
    }
}

/* ---- watching ---- */

static void
count(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

/* A second connection, which rank 0 closes, or keeps until the rank does. */
static void
test_watch(void)
{
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        const struct step step[] = {{ANSWERS, NULL, 0},
                                    {is_lost ? CLOSES : WAITS, NULL, 0}};
        char why[256] = "";
        atomic_int calls = 0;
        begin(&play, NULL, 0);
        struct etd_store *s = open_store();
        begin(&second, step, 2);
        if (etd_store_watch(s, count, &calls, why, sizeof why) != ET_OK)
            bail("%s", why);
        double patience = eti_system.monotonic() + 60;
        while ((is_lost ? atomic_load(&calls) < 1 : atomic_load(&second.n) < 2) &&
               eti_system.monotonic() < patience)
            usleep(1000);
        etd_store_close(&s, 0);
        end(&play);
        end(&second);
        is_hello(&second, true);
        ok(second.n == 2 && second.heard[1].op == ETD_STORE_WATCH,
           "and asks to be told");
        is_int(atomic_load(&calls), is_lost, "%s",
               is_lost ? "a rank that is lost is told of, once"
                       : "what a rank ends itself is no loss");
    }
}

int
main(void)
{
    listener = etd_store_listen("127.0.0.1", &port);
    if (listener < 0)
        bail("no port");
    test_hello();
    test_refused();
    test_nobody();
    test_parts();
    test_broken();
    test_longest();
    test_report();
    test_watch();
    close(listener);
    return done();
}
