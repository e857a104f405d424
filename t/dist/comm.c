/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives promise, with ranks as processes on Gloo. */
#include "config.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <unistd.h>

#include "core/base/comm.h"
#include "dist/comm/store.h"
#include "t/dist/group.h"
#include "t/tap.h"

/* A rank's complaint, and its exit code. */
#define WRONG(...) (printf(__VA_ARGS__), 1)

static int
said(struct et_ctx *cx)
{
    printf("%s", et_error_get(cx)->message);
    return 2;
}

/* ---- values ---- */

static int
sums(struct et_ctx *cx, struct et_comm *c, void *data)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 31, 1000, 4097, 300001};
    int world = et_comm_world(c), rank = et_comm_rank(c);
    (void)data;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int64_t n = sizes[k];
        float *x = malloc((size_t)n * sizeof *x);
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)(i % 1000 + 1000 * rank);
        if (et_comm_all_reduce(cx, c, x, n, ET_F32, ET_COMM_SUM) != ET_OK)
            return said(cx);
        for (int64_t i = 0; i < n; i++) {
            float want = (float)(world * (i % 1000) + 1000 * (world * (world - 1) / 2));
            if (x[i] != want)
                return WRONG("sum of %lld: [%lld] is %g, not %g", (long long)n,
                             (long long)i, (double)x[i], (double)want);
        }
        free(x);
    }
    return 0;
}

static int
kinds(struct et_ctx *cx, struct et_comm *c, void *data)
{
    int world = et_comm_world(c), rank = et_comm_rank(c);
    double d[3] = {rank, -rank, 0.5};
    int64_t i[2] = {(int64_t)1 << 40, rank};
    uint8_t any[2] = {rank == world - 1, 0}, all[2] = {rank != 0, 1};
    float least[1] = {(float)(10 - rank)};
    (void)data;
    if (et_comm_all_reduce(cx, c, d, 3, ET_F64, ET_COMM_SUM) != ET_OK ||
        et_comm_all_reduce(cx, c, i, 2, ET_I64, ET_COMM_SUM) != ET_OK ||
        et_comm_all_reduce(cx, c, any, 2, ET_U8, ET_COMM_MAX) != ET_OK ||
        et_comm_all_reduce(cx, c, all, 2, ET_U8, ET_COMM_MIN) != ET_OK ||
        et_comm_all_reduce(cx, c, least, 1, ET_F32, ET_COMM_MIN) != ET_OK)
        return said(cx);
    double total = world * (world - 1) / 2.0;
    if (d[0] != total || d[1] != -total || d[2] != 0.5 * world)
        return WRONG("f64: %g %g %g", d[0], d[1], d[2]);
    if (i[0] != (int64_t)world << 40 || i[1] != world * (world - 1) / 2)
        return WRONG("i64: %lld %lld", (long long)i[0], (long long)i[1]);
    if (any[0] != 1 || any[1] != 0 || all[0] != 0 || all[1] != 1)
        return WRONG("u8: %d %d, %d %d", any[0], any[1], all[0], all[1]);
    if (least[0] != (float)(11 - world))
        return WRONG("least: %g", (double)least[0]);
    if (et_comm_all_reduce(cx, c, d, 1, ET_I32, ET_COMM_SUM) != ET_EDTYPE)
        return WRONG("i32 was taken");
    return 0;
}

/* The threads of the ranks' connections take no signals; the rank itself does. */
static int
signals(struct et_ctx *cx, struct et_comm *c, void *data)
{
    static const int all[] = {SIGINT, SIGTERM, SIGUSR1, SIGCHLD};
    sigset_t blocked;
    (void)cx, (void)c, (void)data;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (sigismember(&blocked, all[i]) != 0)
            return WRONG("signal %d is blocked", all[i]);
    return 0;
}

static int
others(struct et_ctx *cx, struct et_comm *c, void *data)
{
    int world = et_comm_world(c), rank = et_comm_rank(c);
    char all[GROUP_MOST][3], own[3] = {(char)('a' + rank), 'x', (char)rank},
                             word[6] = "none.";
    float in[7], out[7];
    (void)data;
    if (rank == world - 1)
        memcpy(word, "right", 6);
    for (int i = 0; i < 7; i++)
        in[i] = (float)i;
    if (et_comm_all_gather(cx, c, own, 3, all) != ET_OK ||
        et_comm_broadcast(cx, c, word, 6, world - 1) != ET_OK ||
        et_comm_barrier(cx, c) != ET_OK ||
        et_comm_reduce_scatter(cx, c, in, 7, ET_F32, ET_COMM_SUM, out) != ET_OK)
        return said(cx);
    for (int r = 0; r < world; r++)
        if (all[r][0] != 'a' + r || all[r][2] != r)
            return WRONG("all_gather: of rank %d came %d %d", r, all[r][0], all[r][2]);
    if (strcmp(word, "right") != 0)
        return WRONG("broadcast: %s", word);
    for (int i = 7 * rank / world, k = 0; i < 7 * (rank + 1) / world; i++, k++)
        if (out[k] != (float)(world * i))
            return WRONG("reduce_scatter: [%d] is %g", i, (double)out[k]);
    return in[6] == 6 ? 0 : WRONG("reduce_scatter changed what it was given");
}

static int
empty(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_comm_request r = {.dtype = ET_F32};
    float one = 1;
    (void)data;
    if (et_comm_all_reduce(cx, c, NULL, 0, ET_F32, ET_COMM_SUM) != ET_OK ||
        et_comm_all_gather(cx, c, NULL, 0, NULL) != ET_OK ||
        et_comm_broadcast(cx, c, NULL, 0, 0) != ET_OK ||
        et_comm_start(cx, c, &r) != ET_OK || et_comm_wait(cx, c, &r) != ET_OK ||
        et_comm_all_reduce(cx, c, &one, 1, ET_F32, ET_COMM_SUM) != ET_OK)
        return said(cx);
    return one == (float)et_comm_world(c) ? 0 : WRONG("%g", (double)one);
}

static int
large(struct et_ctx *cx, struct et_comm *c, void *data)
{
    const int64_t n = 25 << 20;
    float *x = malloc((size_t)n * sizeof *x);
    int world = et_comm_world(c), rank = et_comm_rank(c);
    (void)data;
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i % 65536 + rank);
    if (et_comm_all_reduce(cx, c, x, n, ET_F32, ET_COMM_SUM) != ET_OK)
        return said(cx);
    for (int64_t i = 0; i < n; i++)
        if (x[i] != (float)(world * (i % 65536) + world * (world - 1) / 2))
            return WRONG("[%lld] is %g", (long long)i, (double)x[i]);
    free(x);
    return 0;
}

/* ---- beside other work ---- */

static int
started(struct et_ctx *cx, struct et_comm *c, void *data)
{
    enum { N = 5, SIZE = 5000 };
    static float x[N][SIZE], y[N][SIZE];
    struct et_comm_request r[N];
    int world = et_comm_world(c), rank = et_comm_rank(c);
    float weight[N] = {1, 0.5f, 2, (float)rank, 1};
    double one = 1;
    (void)data;
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < SIZE; i++)
            x[k][i] = k == 3 && rank == 0 ? 0.0f / 0.0f : (float)(i + k);
        r[k] = (struct et_comm_request){.in = x[k],
                                        .out = k == 4 ? x[k] : y[k],
                                        .n = SIZE,
                                        .dtype = ET_F32,
                                        .weight = k == 0 ? NULL : &weight[k]};
        if (et_comm_start(cx, c, &r[k]) != ET_OK)
            return said(cx);
    }
    /* Waits for its turn behind them. */
    if (et_comm_all_reduce(cx, c, &one, 1, ET_F64, ET_COMM_SUM) != ET_OK)
        return said(cx);
    for (int k = N - 1; k >= 0; k--)
        if (et_comm_wait(cx, c, &r[k]) != ET_OK)
            return said(cx);
    const float *got[N] = {y[0], y[1], y[2], y[3], x[4]};
    const float times[N] = {(float)world, 0.5f * (float)world, 2 * (float)world,
                            (float)(world * (world - 1) / 2), (float)world};
    for (int k = 0; k < N; k++)
        for (int i = 0; i < SIZE; i++)
            if (got[k][i] != times[k] * (float)(i + k) && !(world == 1 && k == 3))
                return WRONG("request %d: [%d] is %g", k, i, (double)got[k][i]);
    return one == world ? 0 : WRONG("the one behind them: %g", one);
}

/* The same bits on all ranks, whatever the order of the summands makes of them. */
static int
agree(struct et_ctx *cx, struct et_comm *c, void *data)
{
    enum { N = 100003 };
    static float x[N], first[N], all[2 * GROUP_MOST];
    uint32_t seed = 1 + (uint32_t)et_comm_rank(c), h = 2166136261u;
    (void)data;
    for (int pass = 0; pass < 3; pass++) {
        seed = 1 + (uint32_t)et_comm_rank(c);
        for (int i = 0; i < N; i++) {
            seed = seed * 1664525u + 1013904223u;
            x[i] = (float)(int32_t)seed * 1e-7f;
        }
        if (et_comm_all_reduce(cx, c, x, N, ET_F32, ET_COMM_SUM) != ET_OK)
            return said(cx);
        if (pass == 0)
            memcpy(first, x, sizeof x);
        if (memcmp(first, x, sizeof x) != 0)
            return WRONG("sum %d has other bits than the first", pass);
    }
    for (size_t i = 0; i < sizeof x; i++)
        h = (h ^ ((unsigned char *)x)[i]) * 16777619u;
    uint32_t *digest = (uint32_t *)(void *)all;
    if (et_comm_all_gather(cx, c, &h, sizeof h, digest) != ET_OK)
        return said(cx);
    for (int r = 0; r < et_comm_world(c); r++)
        if (digest[r] != h)
            return WRONG("rank %d has other bits", r);
    return 0;
}

/* What ranks of a test see of each other. */
struct seen {
    atomic_bool stands; /* rank 0 does, in a collective */
    atomic_bool late;   /* rank 1 is at its end */
    atomic_bool left;   /* it was, when rank 0 had gone */
};

static struct seen *seen;

static void
see(void *data, const struct et_comm_look *look)
{
    (void)data;
    if (look->busy)
        atomic_store(&seen->stands, true);
}

static int64_t
clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Rank 1 comes 300 ms after rank 0 does. */
static int
looked_at(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_comm_look look;
    float x[3] = {1, 2, 3};
    (void)data;
    if (et_comm_rank(c) == 0)
        et_comm_watch(c, see, NULL);
    while (et_comm_rank(c) == 1 && !atomic_load(&seen->stands))
        usleep(1000);
    if (et_comm_rank(c) == 1)
        usleep(300000);
    int64_t before = clock_ns();
    if (et_comm_all_reduce(cx, c, x, 3, ET_F32, ET_COMM_SUM) != ET_OK)
        return said(cx);
    int64_t took = clock_ns() - before;
    et_comm_get_look(c, &look);
    if (look.seq != 1 || look.busy || look.kind != ET_COMM_ALL_REDUCE || look.n != 3 ||
        look.failed)
        return WRONG("seq %d, busy %d, n %d", (int)look.seq, look.busy, (int)look.n);
    if (et_comm_rank(c) == 0 && look.wait_ns < 300000000)
        return WRONG("rank 0 waited %lld ns only", (long long)look.wait_ns);
    if (look.wait_ns > took)
        return WRONG("rank %d waited %lld ns, in a call of %lld ns", et_comm_rank(c),
                     (long long)look.wait_ns, (long long)took);
    return 0;
}

static void
look_back(void)
{
    atomic_store(&seen->left, atomic_load(&seen->late));
}

/* Rank 1 comes to its end long after rank 0, which serves the table of names. */
static int
ends_late(struct et_ctx *cx, struct et_comm *c, void *data)
{
    (void)data;
    if (et_comm_barrier(cx, c) != ET_OK)
        return said(cx);
    if (et_comm_rank(c) == 0)
        return atexit(look_back);
    usleep(1500000);
    atomic_store(&seen->late, true);
    return 0;
}

static void
test_seen(void)
{
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (seen == MAP_FAILED)
        bail("no memory to share");
    ok(group_run(2, looked_at, NULL), "a rank knows how long it has waited for others");
    bool good = group_run(2, ends_late, NULL);
    ok(good && atomic_load(&seen->left), "rank 0 stays until the last rank has ended");
    munmap(seen, sizeof *seen);
}

/* ---- failure ---- */

/* Rank WHO does not come to the third collective: it is killed, or stands still. */
struct fault {
    int who;
    bool sleeps, started;
};

static int
fault(struct et_ctx *cx, struct et_comm *c, void *data)
{
    const struct fault *f = data;
    static float x[100000];
    for (int i = 0; i < 5; i++) {
        struct et_comm_request r = {.in = x, .out = x, .n = 100000, .dtype = ET_F32};
        if (i == 2 && et_comm_rank(c) == f->who) {
            while (f->sleeps)
                pause();
            raise(SIGKILL);
        }
        et_status status =
            f->started ? et_comm_start(cx, c, &r)
                       : et_comm_all_reduce(cx, c, x, 100000, ET_F32, ET_COMM_SUM);
        if (f->started && status == ET_OK)
            status = et_comm_wait(cx, c, &r);
        if (status == ET_OK)
            continue;
        if (status != ET_EPEER || i < 1 ||
            i > 2) /* 1: its last bytes were on the way */
            return WRONG("collective %d: status %d", i, status);
        said(cx);
        et_error_clear(cx);
        /* Poisoned: whatever comes next fails as well, at once. */
        if (et_comm_barrier(cx, c) != ET_EPEER)
            return WRONG("; a barrier after the failure went through");
        return 42;
    }
    return WRONG("nothing failed");
}

/* The others fail long before their time is over, where the rank is gone. (Where it
 * is not, they have more of it than to meet takes on any machine.) */
static void
test_fault(int world, struct fault f, const char *who)
{
    struct group g;
    int good = 0, named = 0;
    group_start(&g, world, f.sleeps ? 8 : 3600, fault, &f);
    group_wait(&g, 300, f.sleeps ? f.who : -1);
    for (int r = 0; r < world; r++) {
        if (r == f.who)
            continue;
        good += g.exit[r] == 42;
        named += strstr(g.text[r], who) != NULL;
        if (g.exit[r] != 42 || !strstr(g.text[r], who))
            diag("rank %d: exit %d: %s", r, g.exit[r], g.text[r]);
    }
    const char *what = f.sleeps ? "stands still" : "is killed";
    is_int(good, world - 1,
           "%d ranks, %d %s: the others' collectives fail, and all later", world, f.who,
           what);
    is_int(named, world - 1, "... with an error that says '%s'", who);
}

static int
nothing(struct et_ctx *cx, struct et_comm *c, void *data)
{
    (void)data;
    return et_comm_barrier(cx, c) == ET_OK ? 0 : said(cx);
}

/* A stranger talks to rank 0 while the others are on their way. */
static void
test_stranger(void)
{
    struct group g;
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char junk[4096];
    memset(junk, 0xff, sizeof junk);
    setenv("ETUDE_RANK_SECRET",
           "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF", 1);
    group_start(&g, 2, 20, nothing, NULL);
    unsetenv("ETUDE_RANK_SECRET");
    a.sin_port = htons((uint16_t)g.port);
    int reached = 0, answered = 0;
    for (int i = 0; i < 200 && reached < 3; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
            ssize_t n = send(fd, junk, sizeof junk, MSG_NOSIGNAL);
            struct timeval wait = {.tv_sec = 2};
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
            answered += n > 0 && recv(fd, junk, sizeof junk, 0) > 0;
            reached++;
        }
        close(fd);
        usleep(5000);
    }
    group_wait(&g, 120, -1);
    ok(g.exit[0] == 0 && g.exit[1] == 0,
       "what strangers say to rank 0 keeps nobody from meeting (%d came)", reached);
    is_int(answered, 0, "... and is not answered");
    if (g.exit[0] || g.exit[1])
        diag("%s / %s", g.text[0], g.text[1]);
}

/* ---- the environment ---- */

static void
test_place(struct et_ctx *cx)
{
    static const struct {
        const char *rank, *world, *local, *local_world, *port, *address, *secret, *says;
        et_status status;
    } rows[] = {
        {"1", "2", "1", "2", "29500", "127.0.0.1", NULL, NULL, ET_OK},
        {"1", "2", "1", NULL, "29500", NULL, NULL, NULL, ET_OK},
        {"0", "1", "0", "1", NULL, NULL, NULL, NULL, ET_OK},
        {"2", "2", "1", "2", "29500", NULL, NULL, "RANK is 2 and WORLD_SIZE 2",
         ET_EINVAL},
        {"x", "2", "0", "2", "29500", NULL, NULL, "RANK is 'x'", ET_EINVAL},
        {"0", "0", "0", "2", "29500", NULL, NULL, "WORLD_SIZE is '0'", ET_EINVAL},
        {"1", "2", "2", "2", "29500", NULL, NULL, "LOCAL_RANK is 2", ET_EINVAL},
        {"1", "4", "1", "2", "29500", NULL, NULL, "2 of 4 ranks", ET_ENOTSUP},
        {"1", "2", "1", "2", "29500", "10.0.0.1", NULL, "MASTER_ADDR is 10.0.0.1",
         ET_ENOTSUP},
        {"1", "2", "1", "2", NULL, NULL, NULL, "MASTER_PORT is not set", ET_EINVAL},
        {"1", "2", "1", "2", "70000", NULL, NULL, "MASTER_PORT is '70000'", ET_EINVAL},
        {"1", "2", "1", "2", "29500", NULL, "abc", "ETUDE_RANK_SECRET", ET_EINVAL},
    };
    struct etd_rank_env p;
    is_int(etd_rank_env_read(cx, &p), ET_OK,
           "without an environment there is one rank");
    ok(!p.is_rank && p.world == 1, "... and nobody else's");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const names[] = {
            "RANK",        "WORLD_SIZE",  "LOCAL_RANK",       "LOCAL_WORLD_SIZE",
            "MASTER_PORT", "MASTER_ADDR", "ETUDE_RANK_SECRET"};
        const char *const values[] = {
            rows[i].rank, rows[i].world,   rows[i].local, rows[i].local_world,
            rows[i].port, rows[i].address, rows[i].secret};
        for (int k = 0; k < 7; k++)
            if (values[k])
                setenv(names[k], values[k], 1);
            else
                unsetenv(names[k]);
        et_status status = etd_rank_env_read(cx, &p);
        bool says = !rows[i].says || strstr(et_error_get(cx)->message, rows[i].says);
        ok(status == rows[i].status && says, "RANK %s of %s, LOCAL_RANK %s: %s",
           rows[i].rank, rows[i].world, rows[i].local,
           rows[i].says ? rows[i].says : "taken");
        if (!says)
            diag("%s", et_error_get(cx)->message);
        et_error_clear(cx);
        for (int k = 0; k < 7; k++)
            unsetenv(names[k]);
    }
}

/* What rank 0 would listen with. */
static void
test_listener(struct et_ctx *cx)
{
    static const struct {
        const char *rank, *listener, *says;
    } rows[] = {
        {"0", "0",
         "ETUDE_RANK_LISTENER is 0 in the environment, and that is no socket"},
        {"0", "4000", "ETUDE_RANK_LISTENER is 4000"},
        {"0", "x", "ETUDE_RANK_LISTENER is 'x'"},
        {"1", "4000", NULL},
    };
    static const char *const names[] = {"RANK",        "LOCAL_RANK",
                                        "WORLD_SIZE",  "MASTER_PORT",
                                        "MASTER_ADDR", "ETUDE_RANK_LISTENER"};
    struct etd_rank_env p;
    int port;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const values[] = {rows[i].rank, rows[i].rank, "2",
                                      "29500",      "127.0.0.1",  rows[i].listener};
        for (int k = 0; k < 6; k++)
            setenv(names[k], values[k], 1);
        et_status status = etd_rank_env_read(cx, &p);
        const char *said = et_error_get(cx)->message;
        ok(rows[i].says ? status == ET_EINVAL && strstr(said, rows[i].says)
                        : status == ET_OK && p.listener == -1,
           "rank %s with descriptor %s to listen at: %s", rows[i].rank,
           rows[i].listener, rows[i].says ? said : "not its business");
        et_error_clear(cx);
    }
    for (int k = 0; k < 6; k++)
        unsetenv(names[k]);
    int fd = etd_store_listen("127.0.0.1", &port);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    int other = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    (void)setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ok(fd >= 0 && bind(other, (struct sockaddr *)&a, sizeof a) != 0,
       "nobody else has the port between its choice and rank 0");
    close(other);
    close(fd);
    is_int(etd_store_listen("192.0.2.1", &port), -1,
           "another machine's has no port here");
}

/* Rank 1 is alone: rank 0 never comes. */
static void
test_alone(struct et_ctx *cx)
{
    struct etd_rank_env p = {
        .is_rank = true,
        .rank = 1,
        .world = 2,
        .host = "127.0.0.1",
        .timeout_ms = 300,
    };
    struct et_comm *c;
    int fd = group_hold_port(&p.port);
    is_int(etd_comm_open(cx, &p, &c), ET_EPEER, "a rank that finds no rank 0 says so");
    ok(strstr(et_error_get(cx)->message, "found no rank 0"), "... in a sentence: %s",
       et_error_get(cx)->message);
    et_error_clear(cx);
    close(fd);
}

static void
test_one(struct et_ctx *cx)
{
    struct et_comm_look look;
    float x[3] = {1, 2, 3}, y[3] = {0}, half = 0.5f;
    struct et_comm_request r = {
        .in = x, .out = y, .n = 3, .dtype = ET_F32, .weight = &half};
    ok(et_comm_all_reduce(cx, NULL, x, 3, ET_F32, ET_COMM_SUM) == ET_OK && x[2] == 3 &&
           et_comm_broadcast(cx, NULL, x, sizeof x, 0) == ET_OK &&
           et_comm_barrier(cx, NULL) == ET_OK,
       "alone, a collective changes nothing");
    ok(et_comm_start(cx, NULL, &r) == ET_OK && et_comm_wait(cx, NULL, &r) == ET_OK &&
           y[2] == 1.5f,
       "... and one that is started is done");
    ok(et_comm_all_gather(cx, NULL, x, sizeof x, y) == ET_OK && y[1] == 2 &&
           et_comm_reduce_scatter(cx, NULL, x, 3, ET_F32, ET_COMM_SUM, y) == ET_OK &&
           y[2] == 3,
       "... or copied");
    et_comm_get_look(NULL, &look);
    ok(look.seq == 0 && et_comm_world(NULL) == 1 && et_comm_rank(NULL) == 0,
       "... and none has been");
}

static et_status
run_as_told(void *self, const struct et_comm_call *call, char *why, size_t size)
{
    const et_status *told = self;
    (void)call;
    if (*told != ET_OK)
        snprintf(why, size, "rank 1 is gone");
    return *told;
}

static void
close_none(void *self, bool failed)
{
    (void)self;
    (void)failed;
}

/* What comes of a barrier: "" or its error. */
static const char *
meets(struct et_ctx *cx, struct et_comm *c)
{
    static char text[2048];
    et_error_clear(cx);
    et_status status = et_comm_barrier(cx, c);
    snprintf(text, sizeof text, "%s", status == ET_OK ? "" : et_error_get(cx)->message);
    et_error_clear(cx);
    return text;
}

/* What a rank did wrong by itself is over when something new begins. Another rank that
 * is gone stays gone. */
static void
test_begin(struct et_ctx *cx)
{
    static const struct et_comm_class told = {
        .name = "told", .run = run_as_told, .close = close_none};
    et_status status = ET_OK;
    struct et_comm *c;
    is_int(et_comm_new(cx, NULL, NULL, 0, 2, &c), ET_EINVAL,
           "a communicator has a class");
    et_error_clear(cx);
    if (et_comm_new(cx, &told, &status, 0, 2, &c) != ET_OK)
        bail("no communicator");
    eti_comm_fail(c, ET_EIO);
    is_str(meets(cx, c), "rank 0 has failed", "a rank that failed meets nobody");
    eti_comm_begin(c);
    is_str(meets(cx, c), "", "when something new begins it does");
    status = ET_EPEER;
    is_str(meets(cx, c), "rank 1 is gone", "another rank is gone");
    status = ET_OK;
    eti_comm_begin(c);
    is_str(meets(cx, c), "rank 1 is gone", "it stays gone when something new begins");
    eti_comm_fail(c, ET_EIO);
    eti_comm_begin(c);
    is_str(meets(cx, c), "rank 1 is gone", "and when this one fails, too");
    et_comm_close(&c);
}

static void
test_ranks(struct et_ctx *cx)
{
    for (int world = 2; world <= 4; world++) {
        ok(group_run(world, sums, NULL), "%d ranks add up arrays of any length", world);
        ok(group_run(world, kinds, NULL), "%d ranks reduce f32, f64, i64 and u8",
           world);
        ok(group_run(world, signals, NULL), "%d ranks that have met take signals",
           world);
        ok(group_run(world, others, NULL), "%d ranks gather, broadcast, scatter",
           world);
        ok(group_run(world, empty, NULL), "%d ranks reduce nothing", world);
        ok(group_run(world, started, NULL), "%d ranks add up beside other work", world);
        ok(group_run(world, agree, NULL), "%d ranks have the same bits, always", world);
    }
    ok(group_run(2, large, NULL), "2 ranks add up 100 MB");
    test_seen();
    test_fault(2, (struct fault){.who = 1}, "rank 1 is gone");
    test_fault(2, (struct fault){.who = 0}, "rank 0 is gone");
    test_fault(4, (struct fault){.who = 2}, "rank 2 is gone");
    test_fault(3, (struct fault){.who = 1, .started = true}, "rank 1 is gone");
    test_fault(3, (struct fault){.who = 1, .sleeps = true}, "rank 1 did not come");
    test_alone(cx);
    test_stranger();
}

int
main(void)
{
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_place(cx);
    test_listener(cx);
    test_one(cx);
    test_begin(cx);
    if (group_possible())
        test_ranks(cx);
    else
        skip(1, "built without Gloo");
    et_ctx_free(&cx);
    return done();
}
